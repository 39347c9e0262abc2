//! Results that no program sees: those of calls that the kernel is about to repeat. And calls that are not known.

use exact::system_calls::written::{Finished, Memory, Written, written};

/// Memory that cannot be read.
struct Nowhere;

impl Memory for Nowhere {
    fn read(&self, _address: u64, _into: &mut [u8]) -> usize {
        0
    }
}

fn said(number: i64, args: [u64; 6], result: i64) -> Written {
    let number = number as u64;
    let finished = Finished {
        number,
        args,
        result,
    };
    written(&finished, &Nowhere)
}

const NOTHING: Written = Written::Exactly(Vec::new());
const TO_RESTART: i64 = -512;
const NO_HANDLER: i64 = -514;
const BY_BLOCK: i64 = -516;

#[test]
fn what_is_repeated_has_written_nothing_but_its_rest() {
    let args = [0x1000, 0, 0x3000, 0x4000, 0x5000, 0];
    for number in [
        libc::SYS_read,
        libc::SYS_wait4,
        libc::SYS_futex,
        libc::SYS_accept,
    ] {
        assert_eq!(said(number, args, TO_RESTART), NOTHING, "{number}");
    }
    let rest = |at| Written::Exactly(vec![(at, 16)]);
    let sleep = [0x1000, 0x2000, 0, 0, 0, 0];
    assert_eq!(said(libc::SYS_nanosleep, sleep, BY_BLOCK), rest(0x2000));
    let sleep = [1, 0, 0x1000, 0x4000, 0, 0];
    assert_eq!(
        said(libc::SYS_clock_nanosleep, sleep, BY_BLOCK),
        rest(0x4000)
    );
    assert_eq!(said(libc::SYS_select, args, NO_HANDLER), rest(0x5000));
    let events = Written::Exactly(vec![(0x1006, 10)]);
    assert_eq!(
        said(libc::SYS_poll, [0x1000, 2, 99, 0, 0, 0], BY_BLOCK),
        events
    );
    assert_eq!(said(libc::SYS_restart_syscall, args, 0), Written::Unknown);
}

#[test]
fn what_a_tracer_is_told() {
    let of = |request, result| said(libc::SYS_ptrace, [request, 5, 100, 0x4000, 0, 0], result);
    let bytes = |len| Written::Exactly(vec![(0x4000, len)]);
    assert_eq!(of(libc::PTRACE_PEEKDATA as u64, 0), bytes(8));
    assert_eq!(of(libc::PTRACE_GETREGS as u64, 0), bytes(27 * 8));
    assert_eq!(of(libc::PTRACE_GETSIGINFO as u64, 0), bytes(128));
    // PTRACE_GET_SYSCALL_INFO has room for 100 bytes here.
    assert_eq!(of(0x420e, 88), bytes(88));
    assert_eq!(of(0x420e, 120), bytes(100));
    for request in [libc::PTRACE_CONT, libc::PTRACE_POKEDATA, libc::PTRACE_SEIZE] {
        assert_eq!(of(request as u64, 0), NOTHING);
    }
    assert_eq!(of(libc::PTRACE_GETREGS as u64, -3), NOTHING);
    // The iovec of PTRACE_GETREGSET cannot be read.
    assert_eq!(of(0x4204, 0), Written::Unknown);
}

#[test]
fn what_is_not_known_is_said_so() {
    let args = [0x1000, 2, 0x3000, 0x4000, 0x5000, 0];
    for number in [
        9999,
        libc::SYS_bpf,
        libc::SYS_io_uring_enter,
        libc::SYS_ptrace,
        0x4000_0000,
    ] {
        assert_eq!(said(number, args, 0), Written::Unknown, "{number}");
    }
    for number in [libc::SYS_io_submit, libc::SYS_io_getevents, libc::SYS_rseq] {
        assert_eq!(said(number, args, 1), Written::Unknown, "{number}");
    }
    assert_eq!(said(9999, args, -38), NOTHING);
    assert_eq!(said(libc::SYS_read, args, -14), Written::Unknown);
    // The buffers cannot be read.
    assert_eq!(said(libc::SYS_readv, args, 5), Written::Unknown);
    assert_eq!(said(libc::SYS_recvmsg, args, 5), Written::Unknown);
    // A map of extents, and TUNGETIFF, which gives more than it says.
    for number in [0xc020_660b, 0x8004_54d2] {
        let control = [3, number, 0x1000, 0, 0, 0];
        assert_eq!(said(libc::SYS_ioctl, control, 0), Written::Unknown);
    }
}
