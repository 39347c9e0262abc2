//! Distinguishes the program's own code from that of libraries, which may be inlined into it.

use crate::address_space::AddressSpace;
use crate::lines::SourceLine;
use crate::unwind::Frame;

/// Where compilers keep the sources of their libraries.
const LIBRARY_SOURCES: [&str; 4] = [
    "/usr/include/",
    "/usr/lib/",
    "/usr/local/include/",
    "/rustc/",
];
/// The same where the sources of Rust's library are installed.
const RUST_SOURCES: &str = "/rustlib/src/rust/";

impl AddressSpace {
    /// Returns whether a frame is one of the program's own code: in no module of the system, and from no source of a
    /// compiler's library.
    #[must_use]
    pub fn is_own_code(&self, frame: &Frame) -> bool {
        let mut modules = self.modules().iter();
        let module = modules.find(|module| Some(module.number) == frame.module);
        module.is_some_and(|module| !module.is_system)
            && !frame
                .source
                .as_ref()
                .is_some_and(SourceLine::is_of_a_library)
    }
}

impl SourceLine {
    /// Returns whether it belongs to a library that comes with a compiler.
    #[must_use]
    pub fn is_of_a_library(&self) -> bool {
        let mut folders = LIBRARY_SOURCES.iter();
        folders.any(|folder| self.file.starts_with(folder)) || self.file.contains(RUST_SOURCES)
    }
}
