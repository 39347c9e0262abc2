//! Lets the C library's allocator keep memory between batches.
//!
//! Decoding makes and drops arrays of some hundred kilobytes, thousands a second. By default the allocator returns free
//! memory at the end of the heap to the kernel at once and fetches it again, zeroed page by page. That took a quarter
//! of the time of some queries (docs/benchmarks.md).

use std::sync::Once;

/// Free memory that each arena of the allocator keeps, in bytes.
const KEPT_BYTES: i32 = 64 << 20;
/// Allocations of more bytes go to the kernel alone and back to it; the largest value that glibc takes.
const ALONE_BYTES: i32 = 32 << 20;

/// Says so to the allocator of this process, the first time it is called.
#[allow(unsafe_code)]
pub fn keep_freed_memory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: mallopt(3) takes numbers only and may be called at any time. A refusal leaves things as they are.
        #[cfg(target_env = "gnu")]
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
            libc::mallopt(libc::M_MMAP_THRESHOLD, ALONE_BYTES);
        }
    });
}
