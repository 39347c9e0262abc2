//! The file of the program's own memory (/proc/self/mem): what is written to it is in memory, where its offset says.

use std::fs;
use std::path::Path;

use super::Recorder;
use super::system_call::Call;
use crate::log::Bytes;

/// The process or thread whose memory a file is.
fn memory_of(file: &Path) -> Option<u64> {
    let owner = file
        .to_str()?
        .strip_prefix("/proc/")?
        .strip_suffix("/mem")?;
    owner.rsplit('/').next()?.parse().ok()
}

impl Recorder {
    /// What a call has written into the program's memory by that file.
    pub(super) fn written_by_file(&self, call: &Call, result: i64) -> Option<Bytes> {
        let length = u64::try_from(result).ok().filter(|length| *length > 0)?;
        let [descriptor, _, _, offset, ..] = call.args;
        let start = match i64::try_from(call.number).unwrap_or(-1) {
            libc::SYS_write | libc::SYS_writev => None,
            libc::SYS_pwritev2 if offset == u64::MAX => None,
            libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => Some(offset),
            _ => return None,
        };
        let link = format!("/proc/{}/fd/{}", self.process.shown, descriptor as i32);
        let number = memory_of(&fs::read_link(link).ok()?)?;
        if !self.is_own(number) {
            return None;
        }
        let at = match start {
            Some(start) => start,
            None => self.position(descriptor)?.checked_sub(length)?,
        };
        let bytes = self.process.bytes(at, length as usize);
        Some(Bytes { at, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_memory_are_told_from_others() {
        let of = |path: &str| memory_of(Path::new(path));
        assert_eq!(of("/proc/17/mem"), Some(17));
        assert_eq!(of("/proc/17/task/18/mem"), Some(18));
        for other in [
            "/proc/17/maps",
            "/proc/self/mem",
            "/dev/mem",
            "/proc/mem",
            "/tmp/17/mem",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
