//! Messages, semaphores and shared memory of System V, message queues, and keys.

use super::call::{Call, Ranges, none, one};
use super::files::filled;
use super::written::Written;

const TYPE: u64 = 8;
const INT: u64 = 4;
const SHMID: u64 = size_of::<libc::shmid_ds>() as u64;
const MSQID: u64 = size_of::<libc::msqid_ds>() as u64;
const SEMID: u64 = size_of::<libc::semid_ds>() as u64;

pub(super) fn written(call: &Call) -> Option<Written> {
    let result = call.returned();
    Some(match call.number() {
        libc::SYS_msgrcv => match result {
            Some(count) => one(call.arg(1), TYPE.saturating_add(count)),
            None => none(),
        },
        libc::SYS_mq_timedreceive => match (result, filled(call, call.arg(1), call.arg(2))) {
            (Some(_), Written::Exactly(message)) => {
                let mut ranges = Ranges::default().with(call.arg(3), INT);
                for (start, len) in message {
                    ranges.push(start, len);
                }
                ranges.done()
            }
            (_, other) => other,
        },
        libc::SYS_shmctl | libc::SYS_msgctl | libc::SYS_semctl if result.is_none() => none(),
        libc::SYS_shmctl => shared_memory(call.int(1), call.arg(2)),
        libc::SYS_msgctl => messages(call.int(1), call.arg(2)),
        libc::SYS_semctl => semaphores(call.int(2), call.arg(3)),
        libc::SYS_keyctl => keys(call),
        libc::SYS_syslog => match (call.int(0), result) {
            // To read the log: next, all, all and clear it.
            (2..=4, Some(count)) => one(call.arg(1), count),
            (0..=10, _) | (_, None) => none(),
            _ => Written::Unknown,
        },
        _ => return None,
    })
}

fn shared_memory(command: i32, to: u64) -> Written {
    match command {
        // IPC_STAT, SHM_STAT, SHM_STAT_ANY
        2 | 13 | 15 => one(to, SHMID),
        // IPC_INFO: nine limits. SHM_INFO: a count, then five numbers.
        3 => one(to, 72),
        14 => one(to, 48),
        // IPC_RMID, IPC_SET, SHM_LOCK, SHM_UNLOCK
        0 | 1 | 11 | 12 => none(),
        _ => Written::Unknown,
    }
}

fn messages(command: i32, to: u64) -> Written {
    match command {
        // IPC_STAT, MSG_STAT, MSG_STAT_ANY
        2 | 11 | 13 => one(to, MSQID),
        // IPC_INFO, MSG_INFO: seven numbers and a short one.
        3 | 12 => one(to, 32),
        // IPC_RMID, IPC_SET
        0 | 1 => none(),
        _ => Written::Unknown,
    }
}

fn semaphores(command: i32, to: u64) -> Written {
    match command {
        // IPC_STAT, SEM_STAT, SEM_STAT_ANY
        2 | 18 | 20 => one(to, SEMID),
        // IPC_INFO, SEM_INFO: ten numbers.
        3 | 19 => one(to, 40),
        // IPC_RMID, IPC_SET, GETPID, GETVAL, GETNCNT, GETZCNT, SETVAL, SETALL
        0 | 1 | 11 | 12 | 14..=17 => none(),
        // GETALL: how many semaphores there are is not known here.
        _ => Written::Unknown,
    }
}

fn keys(call: &Call) -> Written {
    match (call.int(0), call.returned()) {
        // To describe, to read, to tell the label; the result is how much there is.
        (6 | 11 | 17, Some(count)) => one(call.arg(2), count.min(call.arg(3))),
        (0..=22, _) | (_, None) => none(),
        _ => Written::Unknown,
    }
}
