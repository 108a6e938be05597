//! The machine in a line.

use std::fs::read_to_string;

use crate::cli::{machine, tables};
use crate::units::Bytes;

/// Versions, processors and memory, as far as the kernel says them.
pub fn line() -> String {
    let (kernel, model, processors) = (machine::kernel(), machine::processor(), machine::cores());
    let of = if model.is_empty() { String::new() } else { format!(" ({model})") };
    let memory = tables::bytes(memory(&read_to_string("/proc/meminfo").unwrap_or_default()));
    let version = env!("CARGO_PKG_VERSION");
    format!("Heliostat {version}; Linux {kernel}; {processors} processors{of}, {memory} of memory")
}

/// All memory, of `/proc/meminfo`.
fn memory(meminfo: &str) -> Bytes {
    let kib = meminfo
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Bytes(kib.unwrap_or(0) * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_kibibytes() {
        assert_eq!(memory("MemTotal:       1000 kB\nMemFree: 7 kB\n"), Bytes(1_024_000));
        assert_eq!(memory(""), Bytes::ZERO);
    }
}
