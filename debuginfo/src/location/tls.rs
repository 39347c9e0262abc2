//! Addresses of thread-local variables (x86-64: variant II, the storage lies below the thread pointer).

use std::sync::Arc;

use super::Site;
use crate::machine::{Certainty, Register, Unknown};
use crate::module::Module;

/// Where byte `offset` of the thread-local storage of `module` is for the site's thread.
pub(super) fn address(
    site: &Site<'_>,
    module: &Arc<Module>,
    offset: u64,
) -> Result<(u64, Certainty), Unknown> {
    let (thread, certainty) = site.machine.register(Register::FS_BASE)?;
    let name = module.path().display();
    let none = || Unknown::because(format!("{name} has no thread-local storage"));
    module.tls().ok_or_else(none)?;
    let mut below: u64 = 0;
    let mut number: u64 = 0;
    for mapped in site.space.modules() {
        let Some((size, align)) = mapped.module.tls() else {
            continue;
        };
        number += 1;
        let align = align.max(1);
        below = below
            .checked_add(size)
            .and_then(|end| end.checked_next_multiple_of(align))
            .ok_or_else(none)?;
        if Arc::ptr_eq(&mapped.module, module) {
            let start = thread.wrapping_sub(below);
            if number > 1 || module.is_library() {
                // Only the program's own place is fixed by the linker; that of a library is confirmed.
                confirm(site, thread, number, start, module)?;
            }
            return Ok((start.wrapping_add(offset), certainty));
        }
    }
    Err(none())
}

/// Checks with the thread's table that the storage of the module with this number is at `start`.
fn confirm(
    site: &Site<'_>,
    thread: u64,
    number: u64,
    start: u64,
    module: &Module,
) -> Result<(), Unknown> {
    let word = |address: u64| {
        let mut bytes = [0; 8];
        site.machine.memory(address, &mut bytes)?;
        Ok::<u64, Unknown>(u64::from_le_bytes(bytes))
    };
    // glibc: the second word of the thread's control block points to its table, of two words for each module.
    let table = word(thread.wrapping_add(8))?;
    let found = word(table.wrapping_add(number.wrapping_mul(16)))?;
    match found == start {
        true => Ok(()),
        false => Err(Unknown::because(format!(
            "it is not known where the thread-local storage of {} is",
            module.path().display()
        ))),
    }
}
