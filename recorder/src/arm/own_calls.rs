//! Detects code of the program that may make system calls without the C library's functions. The runtime replaces those
//! functions, so such code can enter a sandbox unseen.
//!
//! When in doubt, the answer is yes. Code generated at run time is not inspected.

use debuginfo::Module;
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use memchr::memmem;

use super::{LoadedModule, libraries::Library};

/// `syscall` and `int 0x80`.
const CALLS: [&[u8]; 2] = [&[0x0f, 0x05], &[0xcd, 0x80]];
/// With more occurrences of the byte patterns, some are assumed to be instructions: checking them all takes longer than
/// asking whether there is a sandbox.
const MOST_LOOKS: usize = 64;
/// Maximum distance in bytes from a known start of code to an instruction.
const MOST_BYTES: u64 = 1 << 16;

/// Returns whether the code of a module may make system calls itself.
pub fn makes_system_calls(module: &LoadedModule) -> bool {
    // The C library's own system calls enter no sandbox: its functions that could are replaced, but not those of a second one.
    let is_of_c = |library: Library| library.is_of_c() || library == Library::Linker;
    if module.library.is_some_and(is_of_c) && !module.is_foreign {
        return false;
    }
    module.elf.as_ref().is_none_or(|elf| has_calls(elf))
}

fn has_calls(elf: &Module) -> bool {
    let mut places = Vec::new();
    for range in elf.code_ranges() {
        let Some(code) = elf.code(range.start, range.len()) else {
            return true;
        };
        let found = CALLS.iter().flat_map(|call| memmem::find_iter(code, call));
        let found = found.map(|at| (code, range.start.0, range.start.0 + at as u64));
        places.extend(found.take(MOST_LOOKS + 1 - places.len()));
        // Decide before the first check, which reads the module's tables.
        if places.len() > MOST_LOOKS {
            return true;
        }
    }
    places
        .into_iter()
        .any(|(code, code_at, svma)| is_instruction(elf, code, code_at, svma))
}

/// Returns whether an instruction begins at `svma`, decoding from the nearest known start of code before it.
fn is_instruction(elf: &Module, code: &[u8], code_at: u64, svma: u64) -> bool {
    let starts = elf.code_starts();
    let before = starts.partition_point(|start| *start <= svma);
    let start = before.checked_sub(1).map_or(code_at, |last| starts[last]);
    let start = start.max(code_at);
    if svma - start > MOST_BYTES {
        return true;
    }
    let bytes = &code[(start - code_at) as usize..];
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    while decoder.ip() < svma && decoder.can_decode() {
        // After data between functions, instructions may begin anywhere.
        if decoder.decode().mnemonic() == Mnemonic::INVALID {
            return true;
        }
    }
    decoder.ip() == svma
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use e2e::fixture_artifact;

    use super::*;

    #[test]
    fn code_that_makes_system_calls_is_found_and_other_bytes_are_none() {
        let library = Path::new("/lib/x86_64-linux-gnu/libm.so.6").to_owned();
        for (path, expected) in [
            (fixture_artifact("no_time", "no_time"), true),
            (fixture_artifact("strict_thread", "strict_thread"), true),
            (fixture_artifact("fib", "fib_static"), true),
            (fixture_artifact("seccomp", "seccomp"), false),
            (fixture_artifact("many_threads", "many_threads"), false),
            (library, false),
        ] {
            let module = Module::open(&path).expect("it is a module");
            assert_eq!(has_calls(&module), expected, "{}", path.display());
        }
    }
}
