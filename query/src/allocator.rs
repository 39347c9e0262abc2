//! Lets the C library's allocator keep memory between batches.
//!
//! Decoding makes and drops arrays of some hundred kilobytes, thousands a second. By default the allocator returns free
//! memory at the end of the heap to the kernel at once and fetches it again, zeroed page by page. That took a quarter
//! of the time of some queries (docs/benchmarks.md).

use std::sync::Once;

/// Free memory that each arena of the allocator keeps, in bytes.
const KEPT_BYTES: i32 = 64 << 20;
/// Larger allocations are mapped one by one and go back to the kernel; the largest value that glibc accepts.
const ALONE_BYTES: i32 = 32 << 20;

/// Configures the allocator of this process, on the first call.
#[allow(unsafe_code)]
pub fn keep_freed_memory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: mallopt(3) takes numbers only and may be called at any time. A refusal changes nothing.
        #[cfg(target_env = "gnu")]
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
            libc::mallopt(libc::M_MMAP_THRESHOLD, ALONE_BYTES);
        }
    });
}
