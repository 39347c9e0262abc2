//! Distinguishes the program's own code from that of libraries, which may be inlined into it.

use std::path::Path;

use crate::address_space::AddressSpace;
use crate::lines::SourceLine;
use crate::unwind::Frame;

/// Where compilers keep the sources of their libraries.
const LIBRARY_SOURCES: [&str; 5] = [
    "/usr/include/",
    "/usr/lib/",
    "/usr/local/include/",
    "/rustc/",
    "/rust/deps/",
];
/// The same where the sources of Rust's library are installed.
const RUST_SOURCES: &str = "/rustlib/src/rust/";
/// Folders of the system's libraries.
const SYSTEM_FOLDERS: [&str; 6] = [
    "/lib/",
    "/lib64/",
    "/lib32/",
    "/usr/lib/",
    "/usr/lib64/",
    "/usr/lib32/",
];

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

impl AddressSpace {
    /// Returns the line of the code at an address: the program's own line if code of a library is inlined there.
    #[must_use]
    pub fn own_line_at(&self, address: u64) -> Option<SourceLine> {
        let innermost = self.line_at(address)?;
        if !innermost.is_of_a_library() {
            return Some(innermost);
        }
        let inlined = self.calls_at(address).into_iter().rev();
        let mut around = inlined.filter_map(|call| call.call);
        let own = around.find(|line| !line.is_of_a_library());
        Some(own.unwrap_or(innermost))
    }
}

impl SourceLine {
    /// Returns whether it belongs to a library that comes with a compiler.
    #[must_use]
    pub fn is_of_a_library(&self) -> bool {
        is_library_source(&self.file)
    }
}

/// Returns whether a source file belongs to a library that comes with a compiler.
#[must_use]
pub fn is_library_source(file: &str) -> bool {
    let mut folders = LIBRARY_SOURCES.iter();
    folders.any(|folder| file.starts_with(folder)) || file.contains(RUST_SOURCES)
}

/// Returns whether a file is in a folder of the system's libraries.
#[must_use]
pub fn is_system_path(path: &Path) -> bool {
    let text = path.to_string_lossy();
    SYSTEM_FOLDERS.iter().any(|folder| text.starts_with(folder))
}
