//! Wakes a thread that waits for its tracees and for other threads.
//!
//! The kernel reports a state change of a tracee with SIGCHLD to the whole process, and drops the signal if it has no
//! handler. Our handler passes it on to every waiting thread. The handler is installed only while a thread waits: a
//! thread that is awake checks anyway, and a signal would only interrupt it, which takes 13 us on virtual processors.

use std::{
    cell::Cell,
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd},
    ptr,
    sync::{
        Mutex, PoisonError,
        atomic::{
            AtomicBool, AtomicPtr,
            Ordering::{Acquire, Relaxed, SeqCst},
        },
    },
    time::Duration,
};

/// An event that stays set until it is cleared (eventfd(2)).
#[derive(Debug)]
pub(crate) struct Event(File);

impl Event {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor with no other owner.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    /// Sets the event. Async-signal-safe.
    pub fn signal(&self) {
        // A failure is harmless: a full counter also means set.
        let _ = (&self.0).write(&1u64.to_ne_bytes());
    }

    pub fn clear(&self) {
        // A failure means that the event was not set.
        let _ = (&self.0).read(&mut [0; 8]);
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until one of the descriptors is readable, a signal arrives, or `longest` has passed. Returns the index of the
/// first readable one.
pub(crate) fn wait_for(descriptors: &[BorrowedFd<'_>], longest: Option<Duration>) -> Option<usize> {
    let readable = |fd: &BorrowedFd<'_>| libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let mut waited: Vec<libc::pollfd> = descriptors.iter().map(readable).collect();
    let timeout = longest.map(|longest| libc::timespec {
        tv_sec: longest.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: longest.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    let count = waited.len() as libc::nfds_t;
    // SAFETY: the array and the timeout, if there is one, outlive the call.
    unsafe { libc::ppoll(waited.as_mut_ptr(), count, timeout, ptr::null()) };
    waited.iter().position(|waited| waited.revents != 0)
}

/// The wake-up state of one thread. Never freed, since a handler may access it at any time; the next thread reuses it.
#[derive(Debug)]
struct Slot {
    event: Event,
    is_asleep: AtomicBool,
    is_taken: AtomicBool,
    next: AtomicPtr<Slot>,
}

static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(ptr::null_mut());

fn slots() -> impl Iterator<Item = &'static Slot> {
    let at = |from: &AtomicPtr<Slot>| {
        // SAFETY: slots are leaked before they are linked, and stay linked.
        unsafe { from.load(Acquire).as_ref() }
    };
    std::iter::successors(at(&SLOTS), move |slot| at(&slot.next))
}

impl Slot {
    fn take() -> io::Result<&'static Self> {
        if let Some(free) = slots().find(|slot| !slot.is_taken.swap(true, SeqCst)) {
            return Ok(free);
        }
        let slot: &'static Self = Box::leak(Box::new(Self {
            event: Event::new()?,
            is_asleep: AtomicBool::new(false),
            is_taken: AtomicBool::new(true),
            next: AtomicPtr::new(ptr::null_mut()),
        }));
        let mut first = SLOTS.load(Acquire);
        loop {
            slot.next.store(first, Relaxed);
            let linked =
                SLOTS.compare_exchange(first, ptr::from_ref(slot).cast_mut(), SeqCst, Acquire);
            match linked {
                Ok(_) => return Ok(slot),
                Err(found) => first = found,
            }
        }
    }

    fn wake(&self) {
        if self.is_asleep.swap(false, SeqCst) {
            self.event.signal();
        }
    }
}

/// Wakes the thread that owns the slot. That thread may have ended and another one reuse the slot: a spurious wake-up
/// does no harm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waker(&'static Slot);

impl Waker {
    pub fn wake(self) {
        self.0.wake();
    }
}

/// Waits until a tracee changes or another thread wakes this one.
#[derive(Debug)]
pub(crate) struct Waiter {
    slot: &'static Slot,
    is_armed: Cell<bool>,
}

impl Waiter {
    /// Creates a waiter for any thread that then calls [`receive_signals`](Self::receive_signals).
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            slot: Slot::take()?,
            is_armed: Cell::new(false),
        })
    }

    /// Unblocks the signals in the calling thread, since the process may have inherited a mask that blocks them.
    pub fn receive_signals(&self) {
        // SAFETY: the set is ours, and only this thread's mask changes.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGCHLD);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, ptr::null_mut());
        }
    }

    pub fn waker(&self) -> Waker {
        Waker(self.slot)
    }

    /// From now on any event ends the wait that follows. The caller must check again for earlier events.
    pub fn arm(&self) {
        if !self.is_armed.replace(true) {
            handle_signals(1);
        }
        self.slot.is_asleep.store(true, SeqCst);
    }

    /// Cancels the wait, because there is work to do.
    pub fn disarm(&self) {
        if !self.slot.is_asleep.swap(false, SeqCst) {
            self.slot.event.clear();
        }
        if self.is_armed.replace(false) {
            handle_signals(-1);
        }
    }

    /// Waits, after [`arm`](Self::arm).
    pub fn wait(&self, longest: Option<Duration>) {
        wait_for(&[self.slot.event.as_fd()], longest);
        self.disarm();
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.disarm();
        self.slot.is_taken.store(false, SeqCst);
    }
}

extern "C" fn tracee_changed(_: libc::c_int) {
    // SAFETY: errno is this thread's; the interrupted code may be about to read it.
    let errno = unsafe { *libc::__errno_location() };
    slots().for_each(Slot::wake);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// The number of waiting threads, and the process's SIGCHLD action before the first of them.
static WAITING: Mutex<(usize, Option<libc::sigaction>)> = Mutex::new((0, None));

/// Adds or removes a waiting thread.
fn handle_signals(more: isize) {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    let (count, before) = &mut *waiting;
    *count = count.saturating_add_signed(more);
    match (*count, *before) {
        (0, Some(action)) => {
            // SAFETY: the action came from sigaction in this process.
            unsafe { libc::sigaction(libc::SIGCHLD, &action, ptr::null_mut()) };
            *before = None;
        }
        (1.., None) => {
            // SAFETY: the handler loads and swaps atomics and writes to descriptors that are never closed; both structures are
            // ours, and valid when all zero.
            unsafe {
                let mut ours: libc::sigaction = std::mem::zeroed();
                let mut found: libc::sigaction = std::mem::zeroed();
                ours.sa_sigaction = tracee_changed as *const () as usize;
                ours.sa_flags = libc::SA_RESTART;
                libc::sigaction(libc::SIGCHLD, &ours, &mut found);
                *before = Some(found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::{process::Command, thread, time::Instant};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_child_that_ends_wakes_whoever_sleeps() {
        let waiter = Waiter::new().unwrap();
        waiter.receive_signals();
        let began = Instant::now();
        let mut child = Command::new("true").spawn().unwrap();
        loop {
            waiter.arm();
            if child.try_wait().unwrap().is_some() {
                waiter.disarm();
                break;
            }
            waiter.wait(Some(LONG));
        }
        assert!(began.elapsed() < LONG);
    }

    #[test]
    fn who_is_woken_before_the_sleep_does_not_sleep() {
        let waiter = Waiter::new().unwrap();
        let waker = waiter.waker();
        waiter.arm();
        thread::spawn(move || waker.wake()).join().unwrap();
        let began = Instant::now();
        waiter.wait(Some(LONG));
        assert!(began.elapsed() < LONG);
        // The wake-up was consumed: the next wait times out.
        waiter.arm();
        waiter.wait(Some(Duration::from_millis(1)));
    }

    #[test]
    fn a_slot_is_used_again() {
        let first = Waiter::new().unwrap();
        let count = slots().count();
        drop(first);
        for _ in 0..100 {
            drop(Waiter::new().unwrap());
        }
        // Other tests use some slots meanwhile.
        assert!(slots().count() < count + 50);
    }
}
