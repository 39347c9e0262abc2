//! What the filters of a thread in a sandbox (seccomp(2)) say to a system call. They are programs of the classic BPF (bpf_common.h in
//! the kernel's headers), which the kernel shows to a privileged tracer.

use super::ptrace;

/// An instruction (`struct sock_filter`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub code: u16,
    /// How many instructions a jump skips if its condition holds, and if not.
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

/// A system call as filters see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemCall {
    pub number: i64,
    pub arguments: [u64; 6],
}

/// `AUDIT_ARCH_X86_64`.
const ARCH: u32 = 0xc000_003e;
/// Length of `struct seccomp_data` in bytes.
const DATA_BYTES: u32 = 64;
/// Actions without their data: the call is made, or is made and logged.
const ACTION: u32 = 0xffff_0000;
const ALLOW: u32 = 0x7fff_0000;
const LOG: u32 = 0x7ffc_0000;
/// Most filters of a thread that are read. The kernel has a limit on their total length.
const MOST: u64 = 1 << 12;
const SCRATCH_WORDS: usize = 16;

/// Returns whether a stopped thread's filters let it make all of `calls`; false if the kernel does not show them.
pub(crate) fn allow(tid: i32, calls: &[SystemCall]) -> bool {
    let mut seen = false;
    for index in 0..MOST {
        match ptrace::seccomp_filter(tid, index) {
            Ok(filter) => {
                let lets = |call: &SystemCall| {
                    run(&filter, call).is_some_and(|to| matches!(to & ACTION, ALLOW | LOG))
                };
                if !calls.iter().all(lets) {
                    return false;
                }
                seen = true;
            }
            Err(error) => return seen && error.raw_os_error() == Some(libc::ENOENT),
        }
    }
    false
}

impl SystemCall {
    /// Returns a word of `struct seccomp_data`. The address of the instruction is not known yet: 0.
    fn word(&self, offset: u32) -> Option<u32> {
        let argument = |at: u32| self.arguments.get(at as usize / 8);
        match offset {
            0 => Some(self.number as u32),
            4 => Some(ARCH),
            8 | 12 => Some(0),
            16.. if offset.is_multiple_of(8) => Some(*argument(offset - 16)? as u32),
            16.. if offset.is_multiple_of(4) => Some((*argument(offset - 20)? >> 32) as u32),
            _ => None,
        }
    }
}

/// Returns what a filter returns; `None` if it is not valid.
fn run(filter: &[Instruction], call: &SystemCall) -> Option<u32> {
    let (mut a, mut x, mut scratch) = (0u32, 0u32, [0u32; SCRATCH_WORDS]);
    let mut at = 0;
    // Jumps lead forwards only, so it ends.
    loop {
        let Instruction { code, jt, jf, k } = *filter.get(at)?;
        at += 1;
        match code {
            0x00 => a = k,
            0x01 => x = k,
            0x20 => a = call.word(k)?,
            0x60 => a = *scratch.get(k as usize)?,
            0x61 => x = *scratch.get(k as usize)?,
            0x80 => a = DATA_BYTES,
            0x81 => x = DATA_BYTES,
            0x02 => *scratch.get_mut(k as usize)? = a,
            0x03 => *scratch.get_mut(k as usize)? = x,
            0x07 => x = a,
            0x87 => a = x,
            0x05 => at = at.checked_add(k as usize)?,
            0x06 => return Some(k),
            0x16 => return Some(a),
            _ => {
                let operand = if code & 8 == 0 { k } else { x };
                match code & 7 {
                    4 => a = calculated(code & 0xf0, a, operand)?,
                    5 => {
                        let holds = compared(code & 0xf0, a, operand)?;
                        at += usize::from(if holds { jt } else { jf });
                    }
                    _ => return None,
                }
            }
        }
    }
}

fn calculated(operation: u16, a: u32, operand: u32) -> Option<u32> {
    Some(match operation {
        0x00 => a.wrapping_add(operand),
        0x10 => a.wrapping_sub(operand),
        0x20 => a.wrapping_mul(operand),
        0x30 => a.checked_div(operand)?,
        0x40 => a | operand,
        0x50 => a & operand,
        0x60 => a.wrapping_shl(operand),
        0x70 => a.wrapping_shr(operand),
        0x80 => a.wrapping_neg(),
        0xa0 => a ^ operand,
        _ => return None,
    })
}

fn compared(condition: u16, a: u32, operand: u32) -> Option<bool> {
    Some(match condition {
        0x10 => a == operand,
        0x20 => a > operand,
        0x30 => a >= operand,
        0x40 => a & operand != 0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(instructions: &[(u16, u8, u8, u32)]) -> Vec<Instruction> {
        let instructions = instructions.iter();
        let made = instructions.map(|(code, jt, jf, k)| Instruction {
            code: *code,
            jt: *jt,
            jf: *jf,
            k: *k,
        });
        made.collect()
    }

    fn call(number: i64, third: u64) -> SystemCall {
        SystemCall {
            number,
            arguments: [0, 0, third, 0, 0, 0],
        }
    }

    #[test]
    fn a_filter_decides_by_number_architecture_and_arguments() {
        // As systemd's MemoryDenyWriteExecute: mmap and mprotect to execute and write are refused.
        let filter = filter(&[
            (0x20, 0, 0, 4),
            (0x15, 1, 0, ARCH),
            (0x06, 0, 0, 0),
            (0x20, 0, 0, 0),
            (0x15, 0, 4, libc::SYS_mmap as u32),
            (0x20, 0, 0, 32),
            (0x54, 0, 0, 6),
            (0x15, 0, 1, 6),
            (0x06, 0, 0, 0x0005_0001),
            (0x06, 0, 0, ALLOW),
        ]);
        assert_eq!(run(&filter, &call(libc::SYS_mmap, 3)), Some(ALLOW));
        assert_eq!(run(&filter, &call(libc::SYS_mmap, 7)), Some(0x0005_0001));
        assert_eq!(run(&filter, &call(libc::SYS_close, 7)), Some(ALLOW));
    }

    #[test]
    fn upper_halves_of_arguments_and_the_scratch_memory_are_read() {
        let filter = filter(&[
            (0x20, 0, 0, 36),
            (0x02, 0, 0, 3),
            (0x00, 0, 0, 5),
            (0x61, 0, 0, 3),
            (0x0c, 0, 0, 0),
            (0x16, 0, 0, 0),
        ]);
        assert_eq!(run(&filter, &call(0, 7 << 32)), Some(12));
    }

    #[test]
    fn a_filter_that_is_not_valid_allows_nothing() {
        for instruction in [
            (0x20, 0, 0, 2),
            (0x20, 0, 0, 64),
            (0x28, 0, 0, 0),
            (0x34, 0, 0, 0),
            (0x15, 9, 9, 0),
            (0x60, 0, 0, 16),
        ] {
            assert_eq!(run(&filter(&[instruction]), &call(0, 0)), None);
        }
    }
}
