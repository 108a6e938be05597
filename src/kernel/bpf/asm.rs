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
/// Fifth argument.
pub const R5: Reg = Reg(5);
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
        self.code.push(
            u64::from(op)
                | regs << 8
                | u64::from(offset as u16) << 16
                | u64::from(imm as u32) << 32,
        );
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
    /// `d *= value`.
    pub fn mul(&mut self, d: Reg, value: i32) -> &mut Self {
        self.put(0x27, d, 0, 0, value)
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
        assert!(again.is_none(), "label {name} is set twice");
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
    /// If a jump leads to a label that is not set, or too far: a mistake in a program of ours.
    pub fn finish(mut self) -> Vec<u64> {
        for (at, name) in &self.jumps {
            let to = *self.labels.get(name).unwrap_or_else(|| panic!("no label {name}"));
            let offset =
                i16::try_from(to as i64 - *at as i64 - 1).expect("jumps reach 32767 instructions");
            self.code[*at] |= u64::from(offset as u16) << 16;
        }
        self.code
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::vm;
    use super::*;

    fn execute(a: Asm) -> u64 {
        let code = vm::program(&a.finish());
        rbpf::EbpfVmRaw::new(Some(&code))
            .and_then(|vm| vm.execute_program(&mut []))
            .expect("runs to its end")
    }

    fn bytes(a: Asm) -> Vec<u8> {
        a.finish().into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// Another assembler writes the same instructions.
    #[test]
    fn instructions_are_encoded_as_elsewhere() {
        let mut a = Asm::default();
        a.copy(R6, R1)
            .set(R2, -7)
            .set64(R3, 0x1234_5678_9abc_def0)
            .add(R2, 40)
            .add_reg(R2, R3)
            .and(R2, 0xfc)
            .shl(R2, 3)
            .shr(R2, 32);
        a.load(Width::Byte, R1, R6, 1)
            .load(Width::Half, R1, R6, 2)
            .load(Width::Word, R1, R6, 4)
            .load(Width::Long, R1, R6, 8);
        a.store(Width::Word, FP, -4, R1).store(Width::Long, FP, -16, R1).call(26).jump_if(
            R0,
            When::Ne,
            3,
            "end",
        );
        a.jump_if_reg(R1, When::Lt, R2, "end").jump("end").set(R0, 1).label("end").exit();
        let text = "mov r6, r1\nmov r2, -7\nlddw r3, 0x123456789abcdef0\nadd r2, 40\nadd r2, r3\nand r2, 0xfc\nlsh r2, 3\nrsh r2, 32
            ldxb r1, [r6+1]\nldxh r1, [r6+2]\nldxw r1, [r6+4]\nldxdw r1, [r6+8]\nstxw [r10-4], r1\nstxdw [r10-16], r1\ncall 26
            jne r0, 3, +3\njlt r1, r2, +2\nja +1\nmov r0, 1\nexit";
        assert_eq!(bytes(a), rbpf::assembler::assemble(text).expect("assembles"));
    }

    #[test]
    fn labels_reach_backwards_and_forwards() {
        // The sum of 1 to 10 by a loop, over wide instructions.
        let mut a = Asm::default();
        a.set(R0, 0)
            .set64(R1, 10)
            .label("again")
            .jump_if(R1, When::Eq, 0, "done")
            .add_reg(R0, R1)
            .set64(R2, 1 << 40)
            .add(R1, -1);
        a.jump("again").label("done").exit();
        assert_eq!(execute(a), 55);
    }

    #[test]
    fn an_atomic_addition_adds() {
        let mut a = Asm::default();
        a.set(R1, 40)
            .store(Width::Long, FP, -8, R1)
            .set(R2, 2)
            .jump_if(R1, When::Ne, 40, "out")
            .atomic_add(FP, -8, R2)
            .label("out");
        a.load(Width::Long, R0, FP, -8).exit();
        assert_eq!(execute(a), 42);
    }

    #[test]
    #[should_panic(expected = "no label nowhere")]
    fn a_jump_needs_its_label() {
        let mut a = Asm::default();
        a.jump("nowhere");
        a.finish();
    }

    #[test]
    #[should_panic(expected = "label here is set twice")]
    fn a_label_stands_once() {
        Asm::default().label("here").label("here");
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn comparisons_are_unsigned(x: u64, y in prop_oneof![any::<u64>(), 0..4u64], same: bool, small in 0..i32::MAX) {
            let all = [When::Eq, When::Ne, When::Gt, When::Ge, When::Lt];
            let holds = |w, x: u64, y: u64| match w {
                When::Eq => x == y,
                When::Ne => x != y,
                When::Gt => x > y,
                When::Ge => x >= y,
                When::Lt => x < y,
            };
            let y = if same { x } else { y };
            for w in all {
                let mut a = Asm::default();
                a.set64(R1, x).set64(R2, y).jump_if_reg(R1, w, R2, "yes").ret(0).label("yes").ret(1);
                prop_assert_eq!(execute(a) == 1, holds(w, x, y));
                let x = if same { small as u64 } else { x };
                let mut a = Asm::default();
                a.set64(R1, x).jump_if(R1, w, small, "yes").ret(0).label("yes").ret(1);
                prop_assert_eq!(execute(a) == 1, holds(w, x, small as u64));
            }
        }

        #[test]
        fn stores_and_loads_keep_their_width(v: u64) {
            for (w, mask) in [(Width::Byte, 0xff), (Width::Half, 0xffff), (Width::Word, 0xffff_ffff), (Width::Long, u64::MAX)] {
                let mut a = Asm::default();
                a.set64(R1, v).set(R2, 0).store(Width::Long, FP, -8, R2).store(w, FP, -8, R1).load(Width::Long, R0, FP, -8).exit();
                prop_assert_eq!(execute(a), v & mask);
            }
        }
    }
}
