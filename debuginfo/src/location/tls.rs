//! Addresses of thread-local variables (x86-64: variant II, the storage lies below the thread pointer).

use std::sync::Arc;

use super::Site;
use crate::machine::{Certainty, Register, Unknown};
use crate::module::Module;
use crate::space::Space;

/// Where byte `offset` of the thread-local storage of `module` is for the site's thread.
pub(super) fn address(
    site: &Site<'_>,
    module: &Arc<Module>,
    offset: u64,
) -> Result<(u64, Certainty), Unknown> {
    let (thread, certainty) = site.machine.register(Register::FS_BASE)?;
    let storages = storages(site.space);
    let own = storages
        .iter()
        .position(|(owner, _)| Arc::ptr_eq(owner, module));
    let Some(index) = own else {
        let name = module.path().display();
        let why = format!("{name} has no thread-local storage");
        return Err(Unknown::because(why));
    };
    let start = thread.wrapping_sub(storages[index].1);
    if index > 0 || module.is_library() {
        // Only the program's own place is fixed by the linker; that of a library is confirmed.
        confirm(site, thread, index as u64 + 1, start, module)?;
    }
    Ok((start.wrapping_add(offset), certainty))
}

/// The modules with thread-local storage in the order of their numbers, from 1 on, and how far below the thread pointer
/// that of each begins if it was there when the program started.
fn storages(space: &Space) -> Vec<(&Arc<Module>, u64)> {
    let mut below: u64 = 0;
    let mut found = Vec::new();
    for mapped in space.modules() {
        let Some((size, align)) = mapped.module.tls() else {
            continue;
        };
        let end = below.checked_add(size);
        let Some(end) = end.and_then(|end| end.checked_next_multiple_of(align.max(1))) else {
            break;
        };
        below = end;
        found.push((&mapped.module, below));
    }
    found
}

/// Returns how far below the thread pointer the thread-local storage of the module with this number begins, if it was there
/// when the program started: what word `2 * number` of the thread's table should lead to.
#[must_use]
pub fn thread_storage(space: &Space, number: u64) -> Option<u64> {
    let index = usize::try_from(number.checked_sub(1)?).ok()?;
    storages(space).get(index).map(|(_, below)| *below)
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
