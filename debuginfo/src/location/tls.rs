//! Addresses of thread-local variables (ELF Handling for Thread-Local Storage, section 3.4.6: variant II, x86-64).
//!
//! The program's storage ends at the thread pointer. That of a library is where the dynamic linker decided; a word of the
//! library's global offset table tells.

use std::sync::Arc;

use super::{FrameContext, bias_of};
use crate::elf::{TlsSegment, TlsSlot};
use crate::machine::{Certainty, Register, Unknown};
use crate::module::Module;

/// What a thread's table has for storage that was not needed yet (glibc: `TLS_DTV_UNALLOCATED`).
const NOT_YET: u64 = u64::MAX;

/// Where byte `offset` of the thread-local storage of `module` is for the site's thread.
pub(super) fn address(
    site: &FrameContext<'_>,
    module: &Arc<Module>,
    offset: u64,
) -> Result<(u64, Certainty), Unknown> {
    let (thread, certainty) = site.machine.register(Register::FS_BASE)?;
    let name = module.path().display();
    let none = || Unknown::because(format!("{name} has no thread-local storage"));
    let TlsSegment { size, align, .. } = module.files.tls().ok_or_else(none)?;
    let (start, start_certainty) = if module.is_library() {
        library(site, module, thread)?
    } else {
        let size = size.checked_next_multiple_of(align.max(1));
        (
            thread.wrapping_sub(size.ok_or_else(none)?),
            Certainty::Known,
        )
    };
    Ok((start.wrapping_add(offset), certainty.and(start_certainty)))
}

/// Which byte of the thread-local storage of `module` a word of `.debug_addr` means.
///
/// gcc asks for the variable's address there (`R_X86_64_64`) where it should ask for its place in the storage
/// (`R_X86_64_DTPOFF64`). GNU's linker writes the address in the file then, others write the place.
pub(super) fn indexed(module: &Module, word: u64) -> Result<u64, Unknown> {
    let Some(tls) = module.files.tls() else {
        return Ok(word);
    };
    let from_address = word.checked_sub(tls.vaddr).filter(|at| *at < tls.size);
    match (word < tls.size, from_address) {
        (true, Some(_)) => Err(Unknown::because(
            "gcc's split debug information does not tell a place from an address in so much thread-local storage",
        )),
        (_, from_address) => Ok(from_address.unwrap_or(word)),
    }
}

/// Where the storage of a library begins.
fn library(
    site: &FrameContext<'_>,
    module: &Arc<Module>,
    thread: u64,
) -> Result<(u64, Certainty), Unknown> {
    let name = module.path().display();
    let word = |address: u64| {
        let mut bytes = [0; 8];
        let certainty = site.machine.memory(address, &mut bytes)?;
        Ok::<_, Unknown>((u64::from_le_bytes(bytes), certainty))
    };
    let of_file = |svma: u64| word(svma.wrapping_add(bias_of(site, module)));
    match module.files.tls_slot() {
        None => Err(Unknown::because(format!(
            "it is not known where the thread-local storage of {name} is: no code in it tells"
        ))),
        Some(TlsSlot::Distance { at, offset }) => {
            let (distance, certainty) = of_file(at)?;
            let byte = thread.wrapping_add(distance);
            Ok((byte.wrapping_sub(offset), certainty))
        }
        Some(TlsSlot::Number(at)) => {
            let (number, numbered) = of_file(at)?;
            if number == 0 {
                return Err(Unknown::because(format!("{name} is not linked yet")));
            }
            // glibc: the second word of the thread's control block points to its table, of two words for each module. In
            // front of it stands how many modules it has room for.
            let (table, tabled) = word(thread.wrapping_add(8))?;
            let (room, roomed) = word(table.wrapping_sub(16))?;
            let not_yet = || {
                Unknown::because(format!(
                    "the thread has not used thread-local variables of {name} yet"
                ))
            };
            if number > room {
                return Err(not_yet());
            }
            let (start, started) = word(table.wrapping_add(number.wrapping_mul(16)))?;
            if start == NOT_YET {
                return Err(not_yet());
            }
            Ok((start, numbered.and(tabled).and(roomed).and(started)))
        }
    }
}
