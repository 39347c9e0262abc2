//! Lets the program see that the recorder has died, for any reason: the kernel marks it.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Release},
};

use super::{Control, Shared};

/// Holds a word that the kernel marks with FUTEX_OWNER_DIED when the owning thread ends without releasing it
/// (get_robust_list(2)): the target's threads see it even if the recorder is killed.
#[derive(Debug)]
pub struct RobustOwner {
    shared: Arc<Shared>,
    word: fn(&Control) -> &AtomicU32,
    list: Box<RobustList>,
    previous: (usize, usize),
    not_send: std::marker::PhantomData<*const ()>,
}

/// `struct robust_list_head` with one entry.
#[repr(C)]
#[derive(Debug)]
struct RobustList {
    first: *const usize,
    futex_offset: isize,
    pending: *const usize,
    entry: usize,
}

impl RobustOwner {
    pub(super) fn new(shared: Arc<Shared>, which: fn(&Control) -> &AtomicU32) -> Self {
        let word = which(shared.control());
        let mut previous: (usize, usize) = (0, 0);
        let mut list = Box::new(RobustList {
            first: std::ptr::null(),
            futex_offset: 0,
            pending: std::ptr::null(),
            entry: 0,
        });
        list.first = &raw const list.entry;
        list.entry = &raw const *list as usize; // the list is a ring through its head
        list.futex_offset = (word.as_ptr() as isize) - (&raw const list.entry as isize);
        // SAFETY: gettid has no arguments; the list stays where it is and alive until `drop` unregisters it, on this
        // same thread (the type is not Send). The C library's own list is then restored.
        unsafe {
            word.store(libc::syscall(libc::SYS_gettid) as u32, Release);
            libc::syscall(
                libc::SYS_get_robust_list,
                0,
                &mut previous.0,
                &mut previous.1,
            );
            libc::syscall(
                libc::SYS_set_robust_list,
                &raw const *list,
                3 * size_of::<usize>(),
            );
        }
        Self {
            shared,
            word: which,
            list,
            previous,
            not_send: std::marker::PhantomData,
        }
    }
}

impl Drop for RobustOwner {
    fn drop(&mut self) {
        let _ = &self.list;
        // SAFETY: restores what `new` found on this thread.
        unsafe { libc::syscall(libc::SYS_set_robust_list, self.previous.0, self.previous.1) };
        (self.word)(self.shared.control()).store(0, Release);
    }
}
