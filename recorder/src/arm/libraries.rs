//! Knows the C library and what belongs to it by the names that the files give themselves (`DT_SONAME`): distributions have other names
//! for the files (`libc-2.31.so`), and they may lie anywhere.

use debuginfo::Module;

/// A library that the runtime has to know, or a program that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    /// The C library. In musl's case it is the dynamic linker too.
    C,
    /// Functions for threads, which were a library of their own before glibc 2.34. It has some of the C library's too (`write`, `fork`).
    Threads,
    /// Another part of glibc.
    Part,
    /// glibc's dynamic linker.
    Linker,
    /// GCC's unwinder.
    Unwinder,
    /// The executable, if it uses no libraries.
    Program,
}

const SONAMES: [(&str, Library); 9] = [
    ("libc.so.6", Library::C),
    ("libc.so", Library::C),
    ("libc.musl-x86_64.so.1", Library::C),
    ("libpthread.so.0", Library::Threads),
    ("libm.so.6", Library::Part),
    ("libdl.so.2", Library::Part),
    ("librt.so.1", Library::Part),
    ("ld-linux-x86-64.so.2", Library::Linker),
    ("libgcc_s.so.1", Library::Unwinder),
];
/// What only a C library has. Some builds of musl give themselves no name.
const OF_C_ALONE: &str = "__libc_start_main";

impl Library {
    /// Returns what a library is.
    pub(crate) fn of(elf: &Module) -> Option<Self> {
        let Some(soname) = elf.soname() else {
            // Others than a C library need one.
            let is_c = elf.needed().is_empty() && elf.exports(OF_C_ALONE);
            return is_c.then_some(Self::C);
        };
        let mut known = SONAMES.iter();
        let known = known.find(|(name, _)| *name == soname);
        known.map(|(_, library)| *library)
    }

    /// Returns what the executable is. If it has shared libraries, its own functions may have the names of the C library's.
    pub(super) fn of_executable(elf: &Module) -> Option<Self> {
        elf.needed().is_empty().then_some(Self::Program)
    }

    /// Returns what a program's interpreter is, whatever its name.
    pub(super) fn of_interpreter(elf: &Module) -> Self {
        let unknown = match elf.exports(OF_C_ALONE) {
            true => Self::C,
            false => Self::Linker,
        };
        Self::of(elf).unwrap_or(unknown)
    }

    /// Returns whether its functions are those of the C library.
    pub(crate) fn is_of_c(self) -> bool {
        matches!(self, Self::C | Self::Threads | Self::Part)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn of(path: &Path) -> Option<Library> {
        Library::of(&Module::open(path).unwrap())
    }

    #[test]
    fn libraries_are_known_wherever_they_lie_and_whatever_their_files_are_called() {
        let folder = tempfile::tempdir().unwrap();
        for (file, expected) in [
            ("libc.so.6", Some(Library::C)),
            ("libm.so.6", Some(Library::Part)),
            ("libpthread.so.0", Some(Library::Threads)),
            ("ld-linux-x86-64.so.2", Some(Library::Linker)),
            ("libgcc_s.so.1", Some(Library::Unwinder)),
            ("libstdc++.so.6", None),
        ] {
            let copy = folder.path().join("lib-2.31.so");
            let from = Path::new("/usr/lib/x86_64-linux-gnu").join(file);
            fs::copy(from, &copy).unwrap();
            assert_eq!(of(&copy), expected, "{file}");
        }
        let musl = Path::new("/usr/lib/x86_64-linux-musl/libc.so");
        assert_eq!(of(musl), Some(Library::C));
        assert_eq!(of(&std::env::current_exe().unwrap()), None);
    }
}
