//! Files: what is read of them, their directories, names and attributes.

use super::call::{Call, Outcome, Ranges, known, none, one};
use super::written::Written;

/// The length of `struct file_handle` before the handle itself.
const HANDLE_HEADER: u64 = 8;
/// `AT_HANDLE_MNT_ID_UNIQUE`: the mount's number has 8 bytes.
const LONG_MOUNT_NUMBER: i32 = 1;

pub(super) fn written(call: &Call) -> Option<Written> {
    Some(match call.number() {
        libc::SYS_read | libc::SYS_pread64 => filled(call, call.arg(1), call.arg(2)),
        libc::SYS_getdents | libc::SYS_getdents64 => {
            filled(call, call.arg(1), u64::from(call.int(2) as u32))
        }
        libc::SYS_readv | libc::SYS_preadv | libc::SYS_preadv2 | libc::SYS_vmsplice => {
            // vmsplice writes only from a pipe's end for reading, which its arguments do not show.
            buffers(call, 1, 2)
        }
        libc::SYS_readlink => counted(call, 1),
        libc::SYS_readlinkat => counted(call, 2),
        libc::SYS_getcwd | libc::SYS_getrandom => counted(call, 0),
        libc::SYS_getxattr | libc::SYS_lgetxattr | libc::SYS_fgetxattr => sized(call, 2, 3),
        libc::SYS_listxattr | libc::SYS_llistxattr | libc::SYS_flistxattr => sized(call, 1, 2),
        libc::SYS_name_to_handle_at => handle(call),
        _ => return None,
    })
}

/// As many bytes as the result says.
fn counted(call: &Call, at: usize) -> Written {
    one(call.arg(at), call.returned().unwrap_or(0))
}

/// As many bytes as the result says, unless the call was to tell only how many there are.
fn sized(call: &Call, at: usize, size: usize) -> Written {
    match call.arg(size) {
        0 => none(),
        _ => counted(call, at),
    }
}

/// The start of a buffer that may be filled in part.
pub(super) fn filled(call: &Call, buffer: u64, room: u64) -> Written {
    match call.returned() {
        Some(count) => filled_to(call, buffer, count, room),
        None => none(),
    }
}

/// So many bytes of a buffer that has room for more.
pub(super) fn filled_to(call: &Call, buffer: u64, count: u64, room: u64) -> Written {
    if count < room && !call.is_whole(buffer.saturating_add(count), room - count) {
        return Written::Unknown;
    }
    one(buffer, count.min(room))
}

/// The buffers of an array of `iovec`, whose address and length two arguments are.
pub(super) fn buffers(call: &Call, array: usize, count: usize) -> Written {
    match call.returned() {
        Some(filled @ 1..) => known(call.spread(call.arg(array), call.arg(count), filled)),
        _ => none(),
    }
}

fn handle(call: &Call) -> Written {
    let (handle, mount) = (call.arg(2), call.arg(3));
    let handle_len = match call.outcome() {
        Outcome::Returned(_) => match call.u32_at(handle) {
            Some(len) => HANDLE_HEADER + u64::from(len),
            None => return Written::Unknown,
        },
        // It says how much room the handle needs.
        Outcome::Failed(libc::EOVERFLOW) => HANDLE_HEADER,
        _ => return none(),
    };
    let mount_len = match call.int(4) & LONG_MOUNT_NUMBER {
        0 => 4,
        _ => 8,
    };
    let ranges = Ranges::default().with(handle, handle_len);
    ranges.with(mount, mount_len).done()
}
