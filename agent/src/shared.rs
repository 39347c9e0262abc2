//! The memory that the target's threads write their records to and the recorder reads: agent/runtime/layout.h in Rust.
//!
//! It holds one control page, the headers of all rings, and the rings. Each ring has one producer (its thread) and one
//! consumer (the recorder). Positions are addresses in the target. Only touched pages exist.

use std::{
    fs::File,
    io,
    ops::Range,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering::*},
    },
    time::{Duration, Instant},
};

use crate::{Error, Result};

mod asks;
mod last;
mod owner;
mod sandbox;
mod sleep;

pub use asks::{Asked, Verdict};
pub use last::{LAST_EXIT, LAST_SIGNALS, Last};
pub use owner::RobustOwner;
pub use sandbox::Sandbox;

/// First word of the control page.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HINDSHM1");
/// Threads that can write at the same time.
pub const RINGS: usize = 4096;
/// Bytes of each of the stacks on which calls of Go code are written.
pub const GO_STACK_BYTES: u64 = 16 << 10;
/// Bytes of a ring.
pub const RING_BYTES: u64 = 8 << 20;
const CONTROL_BYTES: u64 = 4096;
/// Offset of the first ring, in bytes.
pub const DATA_OFFSET: u64 = CONTROL_BYTES + (RINGS * size_of::<Ring>()) as u64;
/// Offset in bytes of the counters of conditions that the program evaluates itself: after the rings. Code that the
/// recorder generates counts there, so that the counts outlive the program.
pub const COUNTERS_OFFSET: u64 = DATA_OFFSET + RINGS as u64 * RING_BYTES;
/// Bytes of the counters.
pub const COUNTERS_BYTES: u64 = 8 << 20;
/// Offset in bytes of the questions that this code asks without a stop.
pub const ASKS_OFFSET: u64 = COUNTERS_OFFSET + COUNTERS_BYTES;
/// Length of the shared memory in bytes.
pub const TOTAL_BYTES: u64 = ASKS_OFFSET + asks::BYTES;

/// Memory for the return addresses of stacks: slot `a` has its shadow at `a ^ (1 << SHADOW_BIT)`.
#[derive(Clone, Copy, Debug)]
pub struct Shadow {
    /// Address in the target.
    pub base: u64,
    /// Length in bytes; reserved only, pages exist when touched.
    pub bytes: u64,
}

/// In [`Shared::set_capture`]: general registers at each enter and leave.
pub const CAPTURE_REGISTERS: u32 = 1;
/// In [`Shared::set_capture`]: texts that arguments point to.
pub const CAPTURE_TEXTS: u32 = 2;
/// In [`Shared::set_capture`]: the targets of arguments.
pub const CAPTURE_POINTEES: u32 = 4;
/// Most bytes of an argument's target that are captured.
pub const POINTEE_MAX: u16 = 256;
/// Flag on the number of bytes that an argument points to: they are captured at the return only.
pub const POINTEE_RESULT: u16 = 0x8000;
/// Another flag there: a text, up to its NUL.
pub const POINTEE_TEXT: u16 = 0x4000;
/// Most bytes of the stack that are captured with a call.
pub const CAPTURE_STACK_MAX: u32 = 16384;
/// Words of all watched values.
pub const WATCH_WORDS: usize = 381;
/// In the head of a watched value: 1 + the DWARF number of the register that its address is relative to, or 0.
pub const WATCH_BASE_SHIFT: u32 = 8;
/// In the head of a watched value: 1 + the function at whose enters it is captured, or 0.
pub const WATCH_FUNCTION_SHIFT: u32 = 16;
/// In the head of a watched value of a caller, whose variables live between two calls: it is captured where a function
/// that returns there is entered. Two more words follow the head: the first return address and the end of the range.
pub const WATCH_CALLER_ENTER: u64 = 1 << 62;
/// The same where a function that returns there is left; both may be set.
pub const WATCH_CALLER_LEAVE: u64 = 1 << 63;
/// In the last word of a watched value, with the number of bytes: as many of them as exist.
pub const WATCH_PARTLY: u64 = 1 << 16;
/// In the last word of a watched value, with the number of bytes: up to a NUL.
pub const WATCH_TEXT: u64 = 1 << 17;

/// How an argument register refers to a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// The register has its address; it ends with a NUL.
    Terminated,
    /// The register has its address, the next one its length.
    Slice,
    /// The register has its length, the next one its address.
    View,
    /// The register has the address of words; which of them (0 to 3) are the text's address and length.
    Behind {
        /// The address.
        address: u8,
        /// The length.
        length: u8,
    },
}

impl Text {
    /// Returns the runtime's constant for it: `HS_TEXT_`.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Terminated => 1,
            Self::Slice => 2,
            Self::View => 3,
            Self::Behind { address, length } => 0x10 | (address & 3) << 2 | length & 3,
        }
    }
}

/// Flipping this bit of a stack slot's address gives its shadow's address.
pub const SHADOW_BIT: u32 = 46;

/// For stacks of the kernel or pthreads, for heaps of position-independent programs (coroutines), and for
/// those of other programs.
pub const SHADOWS: [Shadow; 3] = [
    Shadow {
        base: 0x2000_0000_0000,
        bytes: 0x2000_0000_0000,
    },
    Shadow {
        base: 0x1500_0000_0000,
        bytes: 0x0200_0000_0000,
    },
    Shadow {
        base: 0x4000_0000_0000,
        bytes: 0x0001_0000_0000,
    },
];

/// The record of a thread (docs/wire.md): its kind in word 1, its length. The thread's name is at the end.
const KIND_MASK: u64 = 0xf;
const KIND_THREAD: u64 = 4;
const THREAD_BYTES: u64 = 48;

/// Most ranges that [`Shared::set_foreign`] takes.
pub const FOREIGN: usize = 19;

/// The head of a ring: `struct hs_ring`.
#[repr(C)]
#[derive(Debug)]
pub struct Ring {
    head: AtomicU64,
    wrap_at: AtomicU64,
    tid: AtomicU32,
    tenancy: AtomicU32,
    lost: AtomicU64,
    exiting: AtomicU64,
    waits: AtomicU64,
    told: AtomicU64,
    unused_a: [u64; 1],
    tail: AtomicU64,
    may_sleep: AtomicU64,
    began: Times,
    ended: Times,
}

/// How long a thread has lived and run: `struct hs_times`.
#[repr(C)]
#[derive(Debug)]
struct Times {
    clock_ns: AtomicU64,
    ran_ns: AtomicU64,
    sleeps: AtomicU64,
}

impl Times {
    /// `None`: the thread has not noted them.
    fn read(&self) -> Option<Lifetime> {
        let clock_ns = self.clock_ns.load(Acquire);
        (clock_ns != 0).then(|| Lifetime {
            passed_ns: clock_ns,
            ran_ns: self.ran_ns.load(Acquire),
            sleeps: self.sleeps.load(Acquire),
        })
    }
}

/// The control page: `struct hs_control`.
#[repr(C)]
#[derive(Debug)]
pub struct Control {
    magic: AtomicU64,
    stop: AtomicU32,
    drop_when_full: AtomicU32,
    owner: AtomicU32,
    modules_asked: AtomicU32,
    modules_answered: AtomicU32,
    main_tid: AtomicU32,
    main_stack_high: AtomicU64,
    stack_bytes: AtomicU64,
    lost_no_ring: AtomicU64,
    map_address: AtomicU64,
    map_bytes: AtomicU64,
    map_result: AtomicU64,
    map_asked: AtomicU32,
    map_answered: AtomicU32,
    tracer: AtomicU32,
    capture: AtomicU32,
    capture_stack: AtomicU32,
    watch_words: AtomicU32,
    forbidden: AtomicU32,
    foreign_count: AtomicU32,
    reserved_data: AtomicU64,
    taken: [AtomicU64; RINGS / 64],
    watch: [AtomicU64; WATCH_WORDS],
    last_wanted: AtomicU32,
    last_tid: AtomicU32,
    last_state: AtomicU32,
    last_signal: AtomicU32,
    last_info: AtomicU64,
    last_context: AtomicU64,
    last_sandboxed: AtomicU32,
    sandbox: AtomicU32,
    copy_every: AtomicU64,
    copy_records: AtomicU64,
    copied_records: AtomicU64,
    foreign: [AtomicU64; 2 * FOREIGN],
    reserved_space: AtomicU64,
    sandbox_asked: AtomicU32,
    sandbox_answered: AtomicU32,
    copies_pass: AtomicU32,
    recorder_sleeps: AtomicU32,
    modules_tid: AtomicU32,
    modules_since: AtomicU64,
    exit_ticks: AtomicU64,
}

/// Offset from the control page of the word that is marked when the tracing thread dies.
pub const TRACER_OFFSET: u64 = std::mem::offset_of!(Control, tracer) as u64;

const _: () = assert!(size_of::<Ring>() == 128);
const _: () = assert!(size_of::<Control>() <= CONTROL_BYTES as usize);

/// The recorder's mapping of the shared memory.
#[derive(Debug)]
pub struct Shared {
    base: *mut u8,
    file: File,
    /// Address of the target's mapping.
    target_base: AtomicU64,
}

// SAFETY: the mapping lives as long as the value, and everything in it is reached through atomics, except the bytes
// of rings, which `Drain` hands out only between a ring's tail and its head, where the producer does not write.
unsafe impl Send for Shared {}
// SAFETY: see above.
unsafe impl Sync for Shared {}

impl Shared {
    /// Makes and maps the memory; it has no name in any file system and ends with its last user.
    ///
    /// # Errors
    /// [`Error::Shared`] when the kernel refuses.
    pub fn create(drop_when_full: bool, uid: u32) -> Result<Self> {
        let error = |source| Error::Shared {
            bytes: TOTAL_BYTES,
            source,
        };
        // SAFETY: the name is NUL-terminated; a non-negative result is a new descriptor without another owner.
        let fd = unsafe { libc::memfd_create(c"hindsight".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(error(io::Error::last_os_error()));
        }
        // SAFETY: see above.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        file.set_len(TOTAL_BYTES).map_err(error)?;
        // SAFETY: plain calls on our own descriptor. Without the right to give it away, the target must be ours anyway.
        unsafe {
            libc::fchmod(fd, 0o600);
            libc::fchown(fd, uid, u32::MAX);
        }
        // SAFETY: a new mapping of our own file; its length is the file's.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                TOTAL_BYTES as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                fd,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(error(io::Error::last_os_error()));
        }
        let shared = Self {
            base: base.cast(),
            file,
            target_base: AtomicU64::new(0),
        };
        shared.control().magic.store(MAGIC, Release);
        shared
            .control()
            .drop_when_full
            .store(drop_when_full.into(), Release);
        Ok(shared)
    }

    /// Returns a path by which the target can open the memory while this process lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Tells the runtime which thread is the main one, where its stack ends, and the default size of stacks.
    pub fn set_main_thread(&self, tid: u32, stack_high: u64, stack_bytes: u64) {
        let control = self.control();
        control.main_tid.store(tid, Release);
        control.main_stack_high.store(stack_high, Release);
        control.stack_bytes.store(stack_bytes, Release);
    }

    /// Tells the runtime what to capture with each enter and leave. Must be called before anything is armed.
    pub fn set_capture(&self, what: u32, stack_len: u32) {
        let control = self.control();
        control.capture.store(what, Release);
        control
            .capture_stack
            .store(stack_len.min(CAPTURE_STACK_MAX), Release);
    }

    /// Tells the runtime what to watch: docs/wire.md, the control page. Later calls may only add words;
    /// words beyond the limit are omitted.
    pub fn set_watches(&self, words: &[u64]) {
        let control = self.control();
        for (place, word) in control.watch.iter().zip(words) {
            place.store(*word, Relaxed);
        }
        let count = words.len().min(WATCH_WORDS) as u32;
        control.watch_words.store(count, Release);
    }

    /// Prepares all rings, once the target's mapping is known.
    pub fn set_target_base(&self, base: u64) {
        self.target_base.store(base, Release);
    }

    /// Returns the address of the target's mapping.
    pub fn range_in_target(&self) -> Range<u64> {
        let base = self.target_base.load(Acquire);
        base..base + TOTAL_BYTES
    }

    /// Makes threads wait for a copy of memory after every `records` records. Must be called before anything is armed.
    pub fn copy_every(&self, records: u64) {
        self.control().copy_every.store(records, Release);
    }

    /// Returns the number of written records that count for copies of memory.
    pub fn copy_records(&self) -> u64 {
        self.control().copy_records.load(Acquire)
    }

    /// Stores the number of records at the time of a copy of memory, made or skipped.
    pub fn copied(&self, records: u64) {
        self.control().copied_records.store(records, Release);
    }

    /// Lets threads that wait for a copy of memory run, or makes them wait again: the copier may need one of them.
    pub fn pass_copies(&self, pass: bool) {
        self.control().copies_pass.store(pass.into(), Release);
    }

    /// Returns the number of records written at the last copy.
    pub fn copied_records(&self) -> u64 {
        self.control().copied_records.load(Acquire)
    }

    /// Makes the calling thread the one whose death ends the recording: the kernel marks the word when it dies.
    pub fn own(self: &Arc<Self>) -> RobustOwner {
        RobustOwner::new(Arc::clone(self), |control| &control.owner)
    }

    /// Makes the calling thread the tracer of the program: the kernel marks the word when that thread dies, before it
    /// releases the program.
    pub fn own_as_tracer(self: &Arc<Self>) -> RobustOwner {
        RobustOwner::new(Arc::clone(self), |control| &control.tracer)
    }

    /// Returns a word of the counters, `offset` bytes after [`COUNTERS_OFFSET`].
    ///
    /// # Panics
    /// When there is no whole word there.
    pub fn counter(&self, offset: u64) -> &AtomicU64 {
        assert!(
            offset.is_multiple_of(8) && offset < COUNTERS_BYTES,
            "a word of the counters"
        );
        let at = COUNTERS_OFFSET + offset;
        // SAFETY: inside the mapping and aligned, by the check above; all users of the word use atomics or the
        // processor's own.
        unsafe { &*self.base.add(at as usize).cast::<AtomicU64>() }
    }

    /// Tells the runtime which mappings are not the program's, the most important first: when the program locks its
    /// memory, these stay unlocked. Mappings beyond the limit are omitted.
    pub fn set_foreign(&self, ranges: &[Range<u64>]) {
        let control = self.control();
        let words = ranges.iter().flat_map(|range| [range.start, range.end]);
        for (place, word) in control.foreign.iter().zip(words) {
            place.store(word, Relaxed);
        }
        let count = ranges.len().min(FOREIGN) as u32;
        control.foreign_count.store(count, Release);
    }

    /// Tells the runtime how many of these bytes count for the program's limits on address space and on data.
    pub fn set_reserved(&self, space_bytes: u64, data_bytes: u64) {
        let control = self.control();
        control.reserved_data.store(data_bytes, Release);
        control.reserved_space.store(space_bytes, Release);
    }

    /// Returns how many threads were found that must not read the time stamp counter, and have recorded nothing since.
    pub fn forbidden(&self) -> u32 {
        self.control().forbidden.load(Acquire)
    }

    /// Tells all threads to stop recording; they notice when they next reserve room.
    pub fn stop(&self) {
        self.control().stop.store(1, Release);
    }

    /// Returns how often the runtime has requested a check of the list of modules.
    pub fn modules_asked(&self) -> u32 {
        self.control().modules_asked.load(Acquire)
    }

    /// Returns how many of these requests were answered.
    pub fn modules_answered(&self) -> u32 {
        self.control().modules_answered.load(Acquire)
    }

    /// Returns the thread whose request is not answered, and since when it waits, in ticks, if both are known.
    pub fn waits_for_modules(&self) -> Option<(u32, u64)> {
        let control = self.control();
        let tid = control.modules_tid.load(Acquire);
        let since = control.modules_since.load(Acquire);
        (tid != 0 && since != 0).then_some((tid, since))
    }

    /// Makes the pages of the first ring, which the main thread will take: fresh memory can cost more than the recorded
    /// call. Where the kernel cannot do that (before Linux 5.14), the thread makes them itself.
    pub fn populate_first_ring(&self) {
        // SAFETY: the first ring lies in the mapping; no content changes.
        unsafe {
            let ring = self.base.add(DATA_OFFSET as usize);
            libc::madvise(ring.cast(), RING_BYTES as usize, libc::MADV_POPULATE_WRITE);
        }
    }

    /// Returns how many records ring `index` has lost since it was given to its thread.
    pub fn lost(&self, index: usize) -> u64 {
        self.ring(index).lost.load(Acquire)
    }

    /// Returns how many of the lost records of ring `index` no GAP record reports. Final once its thread is gone.
    pub fn lost_untold(&self, index: usize) -> u64 {
        let ring = self.ring(index);
        let told = ring.told.load(Acquire);
        ring.lost.load(Acquire).saturating_sub(told)
    }

    /// Returns the number of the wait for which the thread of ring `index` asks permission to sleep.
    pub fn asks_to_sleep(&self, index: usize) -> Option<u64> {
        let ring = self.ring(index);
        let waits = ring.waits.load(Acquire);
        (waits != ring.may_sleep.load(Acquire)).then_some(waits)
    }

    /// Lets the thread of ring `index` sleep in wait number `wait`.
    pub fn let_sleep(&self, index: usize, wait: u64) {
        self.ring(index).may_sleep.store(wait, Release);
    }

    /// Lets the threads whose questions are answered continue: those up to `asked`.
    pub fn answer_modules(&self, asked: u32) {
        let word = &self.control().modules_answered;
        word.store(asked, Release);
        // SAFETY: wakes a waiter on our own word; no memory is touched.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }

    /// Asks the thread that waits for an answer about modules to reserve memory for code at `address`; returns whether
    /// it was reserved, or `None` when no answer came in time.
    pub fn reserve(&self, address: u64, bytes: u64, patience: Duration) -> Option<bool> {
        let control = self.control();
        control.map_address.store(address, Release);
        control.map_bytes.store(bytes, Release);
        let asked = control.map_asked.fetch_add(1, AcqRel) + 1;
        let deadline = Instant::now() + patience;
        while control.map_answered.load(Acquire) != asked {
            if Instant::now() > deadline {
                return None;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        Some(control.map_result.load(Acquire) == address)
    }

    /// Returns and resets the number of records lost because no ring was free.
    pub fn take_lost_no_ring(&self) -> u64 {
        self.control().lost_no_ring.swap(0, AcqRel)
    }

    /// Returns the rings with a thread, by index.
    pub fn taken(&self) -> impl Iterator<Item = usize> + '_ {
        let words = self.control().taken.iter().enumerate();
        words.flat_map(|(index, word)| {
            let mut bits = word.load(Acquire);
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits.wrapping_sub(1);
                (bit < 64).then_some(index * 64 + bit)
            })
        })
    }

    /// Returns the thread that has ring `index`, how often the ring was reused, and whether the thread
    /// ran its last destructors.
    pub fn tenant(&self, index: usize) -> Tenant {
        let ring = self.ring(index);
        Tenant {
            tid: ring.tid.load(Acquire),
            tenancy: ring.tenancy.load(Acquire),
            exiting: ring.exiting.load(Acquire) != 0,
        }
    }

    /// Returns how long the thread of ring `index` has recorded, if it has noted that at its end.
    pub fn lifetime(&self, index: usize) -> Option<Lifetime> {
        let ring = self.ring(index);
        let (began, ended) = (ring.began.read()?, ring.ended.read()?);
        Some(Lifetime {
            passed_ns: ended.passed_ns.saturating_sub(began.passed_ns),
            ran_ns: ended.ran_ns.saturating_sub(began.ran_ns),
            sleeps: ended.sleeps.saturating_sub(began.sleeps),
        })
    }

    /// Returns the unreleased bytes of ring `index`: one piece, or two where it wraps.
    pub fn pending(&self, index: usize) -> Pending<'_> {
        let ring = self.ring(index);
        let base = self.ring_base(index);
        let head = ring.head.load(Acquire).max(base);
        let tail = ring.tail.load(Acquire).max(base);
        let end = base + RING_BYTES;
        let (first, second) = if head >= tail {
            (tail..head, base..base)
        } else {
            (tail..ring.wrap_at.load(Acquire), base..head)
        };
        let bytes = |range: std::ops::Range<u64>| {
            // The target writes these words: for any values, only the ring itself is read.
            let start = range.start.clamp(base, end);
            let stop = range.end.clamp(start, end);
            let offset = DATA_OFFSET + index as u64 * RING_BYTES + (start - base);
            // SAFETY: inside the mapping by the clamps, and between tail and head, where the producer is done.
            unsafe {
                std::slice::from_raw_parts(self.base.add(offset as usize), (stop - start) as usize)
            }
        };
        Pending {
            first: bytes(first),
            second: bytes(second),
            head,
        }
    }

    /// Returns whether ring `index` begins with an unreleased record of its thread without a name.
    pub fn is_nameless(&self, index: usize) -> bool {
        let ring = self.ring(index);
        let is_first = ring.tail.load(Acquire) == 0
            && ring.head.load(Acquire) >= self.ring_base(index) + THREAD_BYTES;
        let [_, word1, _, _, name @ ..] = self.first_record(index);
        is_first
            && word1.load(Relaxed) & KIND_MASK == KIND_THREAD
            && name.iter().all(|word| word.load(Relaxed) == 0)
    }

    /// Puts a name, zero padded, into that record.
    pub fn name_thread(&self, index: usize, name: &[u8; 16]) {
        let (low, high) = name.split_at(8);
        let [.., first, second] = self.first_record(index);
        for (place, bytes) in [first, second].into_iter().zip([low, high]) {
            let bytes = bytes.try_into().expect("a word has 8 bytes");
            place.store(u64::from_le_bytes(bytes), Relaxed);
        }
    }

    fn first_record(&self, index: usize) -> &[AtomicU64; THREAD_BYTES as usize / 8] {
        assert!(index < RINGS, "ring {index} of {RINGS}");
        let at = DATA_OFFSET + index as u64 * RING_BYTES;
        // SAFETY: inside the mapping by the assertion, and aligned; the thread no longer writes to a complete record.
        unsafe { &*self.base.add(at as usize).cast() }
    }

    /// Lets the thread of ring `index` reuse everything before `head`.
    pub fn release(&self, index: usize, head: u64) {
        self.ring(index).tail.store(head, Release);
    }

    /// Takes ring `index` back from a thread that has ended; the next thread finds it empty.
    pub fn free(&self, index: usize) {
        let ring = self.ring(index);
        ring.tenancy.fetch_add(1, AcqRel);
        for word in [
            &ring.head,
            &ring.tail,
            &ring.wrap_at,
            &ring.exiting,
            &ring.lost,
            &ring.told,
            &ring.began.clock_ns,
            &ring.ended.clock_ns,
        ] {
            word.store(0, Release);
        }
        ring.tid.store(0, Release);
        self.control().taken[index / 64].fetch_and(!(1 << (index % 64)), AcqRel);
    }

    fn control(&self) -> &Control {
        // SAFETY: the mapping begins with the control page, is zeroed, and all its fields are atomics.
        unsafe { &*self.base.cast() }
    }

    fn ring(&self, index: usize) -> &Ring {
        assert!(index < RINGS, "ring {index} of {RINGS}");
        // SAFETY: inside the mapping by the assertion; all fields that change are atomics.
        unsafe {
            &*self
                .base
                .add(CONTROL_BYTES as usize)
                .cast::<Ring>()
                .add(index)
        }
    }

    fn ring_base(&self, index: usize) -> u64 {
        self.target_base.load(Acquire) + DATA_OFFSET + index as u64 * RING_BYTES
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A program that goes on unrecorded keeps the mapping, but not the rings' memory.
        let data = (COUNTERS_OFFSET - DATA_OFFSET) as i64;
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: our own file, which nobody reads any more. If it fails, the memory stays.
        unsafe { libc::fallocate(self.file.as_raw_fd(), mode, DATA_OFFSET as i64, data) };
        // SAFETY: the mapping made in `create`, which nothing borrows any more.
        unsafe { libc::munmap(self.base.cast(), TOTAL_BYTES as usize) };
    }
}

/// The thread of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Tenant {
    /// Thread id, 0 while the thread is still taking the ring.
    pub tid: u32,
    /// How often the ring was reused.
    pub tenancy: u32,
    /// True once the thread ran its last destructors.
    pub exiting: bool,
}

/// What a thread has noted of the time from its first record to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// All of it, in ns.
    pub passed_ns: u64,
    /// In which it had a processor, in ns.
    pub ran_ns: u64,
    /// How often it gave its processor up because it could not go on.
    pub sleeps: u64,
}

/// Whole records that wait in a ring.
#[derive(Clone, Copy, Debug)]
pub struct Pending<'a> {
    /// The older bytes.
    pub first: &'a [u8],
    /// The newer ones, from the ring's beginning, where it wrapped.
    pub second: &'a [u8],
    /// The positions to release once the records are kept.
    pub head: u64,
}

impl Pending<'_> {
    /// Returns whether no records wait.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty() && self.second.is_empty()
    }
}

#[cfg(test)]
mod layout_tests;
