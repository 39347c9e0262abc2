//! Clocks, timers and pauses.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::region::Region;

/// Runs what waits, in a thread that another one sends signals to.
pub fn after_a_signal(waits: impl FnOnce()) {
    extern "C" fn nothing(_: i32) {}
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // SAFETY: the handler does nothing; no flag asks to repeat calls.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as *const () as usize;
            assert_eq!(
                libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()),
                0
            );
        }
    });
    // SAFETY: these only ask for numbers.
    let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(50));
                // SAFETY: the thread waits for this one before it ends.
                unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1) };
            }
        });
        waits();
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn clocks() {
    let region = Region::new();
    let (to, other) = (region.room(256), region.room(256));
    region.ok(libc::SYS_time, &[to], 8);
    region.ok(libc::SYS_time, &[0], 0);
    region.ok(libc::SYS_gettimeofday, &[to, other], 16 + 8);
    region.ok(libc::SYS_gettimeofday, &[to, 0], 16);
    region.ok(libc::SYS_clock_gettime, &[1, to], 16);
    region.fails(libc::SYS_clock_gettime, &[77, to], libc::EINVAL, 0);
    region.ok(libc::SYS_clock_getres, &[1, to], 16);
    region.ok(libc::SYS_clock_getres, &[1, 0], 0);
    region.ok(libc::SYS_times, &[to], 32);
    region.ok(libc::SYS_getrusage, &[0, to], 144);
    region.fails(libc::SYS_getrusage, &[9, to], libc::EINVAL, 0);
    region.ok(libc::SYS_sysinfo, &[to], 112);
    let adjust = region.put(&[0; 208]);
    region.ok(libc::SYS_adjtimex, &[adjust], 208);
    region.ok(libc::SYS_clock_adjtime, &[0, adjust], 208);
    let wrong = region.put(&[0xff; 208]);
    region.fails(libc::SYS_adjtimex, &[wrong], libc::EINVAL, 208);
    region.fails(libc::SYS_clock_adjtime, &[77, adjust], libc::EINVAL, 0);
}

#[test]
fn timers() {
    let region = Region::new();
    let (to, timer) = (region.room(32), region.room(4));
    let event = region.put(&[0; 64]);
    region.put_at(event + 12, &1_u32.to_le_bytes());
    region.ok(libc::SYS_timer_create, &[1, event, timer], 4);
    let id = region.int(timer) as u64;
    let far = region.put_words(&[0, 0, 1000, 0]);
    region.ok(libc::SYS_timer_settime, &[id, 0, far, to], 32);
    region.ok(libc::SYS_timer_gettime, &[id, to], 32);
    region.ok(libc::SYS_timer_delete, &[id], 0);
    region.fails(libc::SYS_timer_gettime, &[id, to], libc::EINVAL, 0);
    let virtually = libc::ITIMER_VIRTUAL as u64;
    region.ok(libc::SYS_setitimer, &[virtually, far, to], 32);
    region.ok(libc::SYS_getitimer, &[virtually, to], 32);
    region.ok(libc::SYS_setitimer, &[virtually, 0, 0], 0);
    region.fails(libc::SYS_getitimer, &[9, to], libc::EINVAL, 0);
    let fd = region.ok(libc::SYS_timerfd_create, &[1, 0], 0);
    region.ok(libc::SYS_timerfd_settime, &[fd, 0, far, to], 32);
    region.ok(libc::SYS_timerfd_settime, &[fd, 0, far, 0], 0);
    region.ok(libc::SYS_timerfd_gettime, &[fd, to], 32);
}

#[test]
fn pauses_tell_their_rest_to_who_was_interrupted() {
    let region = Region::new();
    let (short, long) = (region.put_words(&[0, 1000]), region.put_words(&[60, 0]));
    let rest = region.room(16);
    region.ok(libc::SYS_nanosleep, &[short, rest], 0);
    region.ok(libc::SYS_clock_nanosleep, &[1, 0, short, rest], 0);
    after_a_signal(|| region.fails(libc::SYS_nanosleep, &[long, rest], libc::EINTR, 16));
    after_a_signal(|| region.fails(libc::SYS_nanosleep, &[long, 0], libc::EINTR, 0));
    after_a_signal(|| {
        region.fails(
            libc::SYS_clock_nanosleep,
            &[1, 0, long, rest],
            libc::EINTR,
            16,
        );
    });
    let never = region.put_words(&[1 << 40, 0]);
    after_a_signal(|| {
        region.fails(
            libc::SYS_clock_nanosleep,
            &[1, 1, never, rest],
            libc::EINTR,
            0,
        );
    });
}
