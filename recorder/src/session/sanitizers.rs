//! Finds sanitizers that lay out the whole address space, so that there is no room for shadows. Any of these signs is
//! enough: a symbol, a library that is loaded with it, and, if symbols were stripped, a string.

use debuginfo::Module;

use crate::process::Maps;

struct Sanitizer {
    name: &'static str,
    /// One of its functions.
    symbol: &'static str,
    /// Prefixes of its libraries' names.
    libraries: [&'static str; 2],
    /// The begin of a C string that occurs only in it; a space follows. Programs that look for sanitizers, as this one does,
    /// have the text too, but not between a zero byte and a space.
    text: &'static str,
}

const COLLIDING: [Sanitizer; 3] = [
    Sanitizer {
        name: "ThreadSanitizer",
        symbol: "__tsan_init",
        libraries: ["libtsan.so", "libclang_rt.tsan"],
        text: "ThreadSanitizer: incorrect value for io_sync",
    },
    Sanitizer {
        name: "MemorySanitizer",
        symbol: "__msan_init",
        libraries: ["libmsan.so", "libclang_rt.msan"],
        text: "FATAL: MemorySanitizer can not mmap",
    },
    Sanitizer {
        name: "DataFlowSanitizer",
        symbol: "dfsan_union",
        libraries: ["libdfsan.so", "libclang_rt.dfsan"],
        text: "WARNING: DataFlowSanitizer: call to uninstrumented function",
    },
];
/// Part of all these strings.
const COMMON: &[u8] = b"Sanitizer";

/// Returns the name of the sanitizer linked into an executable.
pub(super) fn of_program(module: &Module) -> Option<&'static str> {
    let mut all = COLLIDING.iter();
    let found = all.find(|sanitizer| module.address_of(sanitizer.symbol).is_some());
    found
        .or_else(|| by_library(module.needed().iter().map(String::as_str)))
        .or_else(|| by_text(module.constants()))
        .map(|sanitizer| sanitizer.name)
}

/// Returns the name of the sanitizer mapped as a library.
pub(super) fn mapped(maps: &Maps) -> Option<&'static str> {
    let names = maps.mappings.iter();
    let names = names.filter_map(|mapping| mapping.path.rsplit('/').next());
    by_library(names).map(|sanitizer| sanitizer.name)
}

fn by_library<'n>(mut names: impl Iterator<Item = &'n str>) -> Option<&'static Sanitizer> {
    names.find_map(|name| {
        COLLIDING.iter().find(|sanitizer| {
            let mut libraries = sanitizer.libraries.iter();
            libraries.any(|start| name.starts_with(start))
        })
    })
}

fn by_text(constants: &[u8]) -> Option<&'static Sanitizer> {
    let places = constants
        .windows(COMMON.len())
        .enumerate()
        .filter(|(_, window)| *window == COMMON)
        .map(|(at, _)| at);
    places.into_iter().find_map(|at| {
        COLLIDING.iter().find(|sanitizer| {
            let before = sanitizer.text.find("Sanitizer").unwrap_or(0);
            let Some(start) = at.checked_sub(before) else {
                return false;
            };
            let begins = start == 0 || constants[start - 1] == 0;
            let rest = constants[start..].strip_prefix(sanitizer.text.as_bytes());
            begins && rest.is_some_and(|rest| rest.starts_with(b" "))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_wherever_it_stands() {
        for sanitizer in &COLLIDING {
            let text = [b"x\0", sanitizer.text.as_bytes(), b" (must be)\0"].concat();
            let found = by_text(&text).map(|found| found.name);
            assert_eq!(found, Some(sanitizer.name));
            let of_rust = [b"x", sanitizer.text.as_bytes(), b"y"].concat();
            assert!(by_text(&of_rust).is_none(), "{}", sanitizer.name);
        }
        for text in [
            "",
            "Sanitizer",
            "AddressSanitizer: incorrect value for io_sync",
            "ThreadSanitizer: incorrect",
        ] {
            assert!(by_text(text.as_bytes()).is_none(), "{text}");
        }
    }
}
