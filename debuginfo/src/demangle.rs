//! Turns linker names into readable ones: C++ without the parameter list, Rust without the hash.

use std::fmt;

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

/// Longest linker name that is tried; longer ones stay as they are.
const MAX_MANGLED_BYTES: usize = 64 << 10;
/// Longest readable name; hostile substitutions could grow without bound.
const MAX_READABLE_BYTES: usize = 64 << 10;

/// Which language a linker name was made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mangling {
    Cpp,
    RustLegacy,
    RustV0,
}

/// Returns the readable form of `linkage`, or `None` if it is not a mangled name.
pub(crate) fn readable(linkage: &str) -> Option<(String, Mangling)> {
    if linkage.len() > MAX_MANGLED_BYTES {
        return None;
    }
    rust(linkage).or_else(|| Some((cpp(linkage)?, Mangling::Cpp)))
}

fn rust(linkage: &str) -> Option<(String, Mangling)> {
    let demangled = rustc_demangle::try_demangle(linkage).ok()?;
    let mut out = Bounded(String::new());
    fmt::write(&mut out, format_args!("{demangled:#}")).ok()?;
    if linkage.trim_start_matches('_').starts_with('R') {
        return Some((without_turbofish(&out.0), Mangling::RustV0));
    }
    Some((out.0, Mangling::RustLegacy))
}

/// `f::<T>` as `f<T>`, the way the older mangling, debug information and other debuggers write it.
fn without_turbofish(name: &str) -> String {
    name.replace("::<", "<")
}

fn cpp(linkage: &str) -> Option<String> {
    let mangled = linkage.strip_prefix("_Z").map(|_| linkage)?;
    // `.isra.0`, `.cold` and the like follow the first dot; a dot cannot occur in the mangled name itself.
    let base = mangled.split('.').next()?;
    let parse = ParseOptions::default().recursion_limit(128);
    let (symbol, tail) = BorrowedSymbol::with_tail_and_options(base.as_bytes(), &parse).ok()?;
    if !tail.is_empty() {
        return None;
    }
    let options = DemangleOptions::new()
        .no_params()
        .no_return_type()
        .recursion_limit(128);
    let mut out = Bounded(String::new());
    symbol.structured_demangle(&mut out, &options).ok()?;
    (!out.0.is_empty()).then_some(out.0)
}

/// A string that refuses to grow past [`MAX_READABLE_BYTES`].
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_READABLE_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}
