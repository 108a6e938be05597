//! A small assembler for eBPF with labels: enough for programs of some hundred instructions.

use std::collections::BTreeMap;

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reg(pub u8);

/// Result and scratch.
pub const R0: Reg = Reg(0);
/// First argument.
pub const R1: Reg = Reg(1);
/// Second argument.
pub const R2: Reg = Reg(2);
/// Third argument.
pub const R3: Reg = Reg(3);
/// Fourth argument.
pub const R4: Reg = Reg(4);
/// Kept across calls.
pub const R6: Reg = Reg(6);
/// Kept across calls.
pub const R7: Reg = Reg(7);
/// Kept across calls.
pub const R8: Reg = Reg(8);
/// Kept across calls.
pub const R9: Reg = Reg(9);
/// Frame pointer, read only.
pub const FP: Reg = Reg(10);

/// Width of a load or store.
#[derive(Clone, Copy)]
pub enum Width {
    /// 8 bits.
    Byte,
    /// 16 bits.
    Half,
    /// 32 bits.
    Word,
    /// 64 bits.
    Long,
}

impl Width {
    fn bits(self) -> u8 {
        match self {
            Self::Word => 0x00,
            Self::Half => 0x08,
            Self::Byte => 0x10,
            Self::Long => 0x18,
        }
    }
}

/// When a jump is taken; all comparisons are unsigned.
#[derive(Clone, Copy)]
pub enum When {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Less.
    Lt,
}

impl When {
    fn bits(self) -> u8 {
        match self {
            Self::Eq => 0x10,
            Self::Gt => 0x20,
            Self::Ge => 0x30,
            Self::Ne => 0x50,
            Self::Lt => 0xa0,
        }
    }
}

/// A program being written.
#[derive(Default)]
pub struct Asm {
    code: Vec<u64>,
    labels: BTreeMap<String, usize>,
    jumps: Vec<(usize, String)>,
}

impl Asm {
    fn put(&mut self, op: u8, dst: Reg, src: u8, offset: i16, imm: i32) -> &mut Self {
        let regs = u64::from(dst.0 | src << 4);
        self.code.push(u64::from(op) | regs << 8 | u64::from(offset as u16) << 16 | u64::from(imm as u32) << 32);
        self
    }

    /// `d = s`.
    pub fn copy(&mut self, d: Reg, s: Reg) -> &mut Self {
        self.put(0xbf, d, s.0, 0, 0)
    }
    /// `d = value`.
    pub fn set(&mut self, d: Reg, value: i32) -> &mut Self {
        self.put(0xb7, d, 0, 0, value)
    }
    /// `d = value`, all 64 bits.
    pub fn set64(&mut self, d: Reg, value: u64) -> &mut Self {
        self.put(0x18, d, 0, 0, value as u32 as i32);
        self.code.push(value & 0xffff_ffff_0000_0000);
        self
    }
    /// `d += value`.
    pub fn add(&mut self, d: Reg, value: i32) -> &mut Self {
        self.put(0x07, d, 0, 0, value)
    }
    /// `d += s`.
    pub fn add_reg(&mut self, d: Reg, s: Reg) -> &mut Self {
        self.put(0x0f, d, s.0, 0, 0)
    }
    /// `d &= value`.
    pub fn and(&mut self, d: Reg, value: i32) -> &mut Self {
        self.put(0x57, d, 0, 0, value)
    }
    /// `d <<= bits`.
    pub fn shl(&mut self, d: Reg, bits: i32) -> &mut Self {
        self.put(0x67, d, 0, 0, bits)
    }
    /// `d >>= bits`, zeros come in.
    pub fn shr(&mut self, d: Reg, bits: i32) -> &mut Self {
        self.put(0x77, d, 0, 0, bits)
    }
    /// `d = *(s + offset)`.
    pub fn load(&mut self, w: Width, d: Reg, s: Reg, offset: i16) -> &mut Self {
        self.put(0x61 | w.bits(), d, s.0, offset, 0)
    }
    /// `*(d + offset) = s`.
    pub fn store(&mut self, w: Width, d: Reg, offset: i16, s: Reg) -> &mut Self {
        self.put(0x63 | w.bits(), d, s.0, offset, 0)
    }
    /// `*(d + offset) += s`, atomic, 64 bits.
    pub fn atomic_add(&mut self, d: Reg, offset: i16, s: Reg) -> &mut Self {
        self.put(0xdb, d, s.0, offset, 0)
    }
    /// `d = ` the map with this number.
    pub fn map(&mut self, d: Reg, number: i32) -> &mut Self {
        self.put(0x18, d, 1, 0, number);
        self.code.push(0);
        self
    }
    /// Calls a kernel helper by number; R1 to R5 are gone afterwards.
    pub fn call(&mut self, helper: i32) -> &mut Self {
        self.put(0x85, R0, 0, 0, helper)
    }
    /// Ends the program with R0.
    pub fn exit(&mut self) -> &mut Self {
        self.put(0x95, R0, 0, 0, 0)
    }
    /// Ends the program with a constant.
    pub fn ret(&mut self, value: i32) -> &mut Self {
        self.set(R0, value).exit()
    }
    /// Names this place.
    pub fn label(&mut self, name: &str) -> &mut Self {
        let again = self.labels.insert(name.into(), self.code.len());
        assert!(again.is_none(), "label {name} stands twice");
        self
    }
    /// Jumps.
    pub fn jump(&mut self, to: &str) -> &mut Self {
        self.jumps.push((self.code.len(), to.into()));
        self.put(0x05, R0, 0, 0, 0)
    }
    /// Jumps if `r` compares so with a constant.
    pub fn jump_if(&mut self, r: Reg, when: When, value: i32, to: &str) -> &mut Self {
        self.jumps.push((self.code.len(), to.into()));
        self.put(0x05 | when.bits(), r, 0, 0, value)
    }
    /// Jumps if `r` compares so with `s`.
    pub fn jump_if_reg(&mut self, r: Reg, when: When, s: Reg, to: &str) -> &mut Self {
        self.jumps.push((self.code.len(), to.into()));
        self.put(0x0d | when.bits(), r, s.0, 0, 0)
    }

    /// The finished instructions.
    ///
    /// # Panics
    /// If a jump leads to a label that does not stand, or too far: a mistake in a program of ours.
    pub fn finish(mut self) -> Vec<u64> {
        for (at, name) in &self.jumps {
            let to = *self.labels.get(name).unwrap_or_else(|| panic!("no label {name}"));
            let offset = i16::try_from(to as i64 - *at as i64 - 1).expect("jumps reach 32767 instructions");
            self.code[*at] |= u64::from(offset as u16) << 16;
        }
        self.code
    }
}
