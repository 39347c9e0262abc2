//! Memory: what is told about pages, and what is copied from other processes.

use super::call::{Call, Outcome, Ranges, none, one};
use super::files::buffers;
use super::written::Written;

const PAGE: u64 = 4096;
const INT: u64 = 4;

pub(super) fn written(call: &Call) -> Option<Written> {
    Some(match call.number() {
        libc::SYS_mincore => match call.outcome() {
            // What comes before a page that is not mapped may have been told.
            Outcome::Returned(_) | Outcome::Failed(libc::ENOMEM) => {
                one(call.arg(2), call.arg(1).div_ceil(PAGE))
            }
            _ => none(),
        },
        libc::SYS_get_mempolicy => match call.returned() {
            Some(_) => {
                let words = call.arg(2).saturating_sub(1).div_ceil(64);
                let policy = Ranges::default().with(call.arg(0), INT);
                policy.with(call.arg(1), words.saturating_mul(8)).done()
            }
            None => none(),
        },
        // What it told before an error stays.
        libc::SYS_move_pages => one(call.arg(4), call.arg(1).saturating_mul(INT)),
        libc::SYS_process_vm_readv => buffers(call, 1, 2),
        // As if the other process were the same one: who knows that it is not knows that nothing is written.
        libc::SYS_process_vm_writev => buffers(call, 3, 4),
        libc::SYS_modify_ldt => descriptors(call),
        _ => return None,
    })
}

/// The result is an `unsigned int`, also when it is an error.
fn descriptors(call: &Call) -> Written {
    let Some(result) = call.returned() else {
        return none();
    };
    match (call.int(0), result as u32 as i32) {
        (_, error) if error == -libc::EFAULT => Written::Unknown,
        (0 | 2, count @ 0..) => one(call.arg(1), count as u64),
        (0 | 2 | 1 | 0x11, _) | (_, ..0) => none(),
        _ => Written::Unknown,
    }
}
