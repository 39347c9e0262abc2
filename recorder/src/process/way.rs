//! How the runtime gets into a program: our own loader does it where threads can find their data by the bases of fs and
//! gs, and Frida elsewhere.

use std::fs;

use debuginfo::{Diagnostic, Module};

const AT_HWCAP2: u64 = 26;
/// In `AT_HWCAP2`: user code may read and write the fs and gs bases.
const FSGSBASE: u64 = 1 << 1;

/// What loads the runtime into a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Frida, through the program's dynamic linker.
    Frida,
    /// Our loader.
    Loader,
    /// Our loader; for Go code only entries are recorded.
    LoaderForGo,
}

impl Way {
    /// Determines what a program needs on this machine. `HINDSIGHT_FRIDA=1` asks for Frida, where it can be used.
    ///
    /// # Errors
    /// Why it cannot be recorded.
    pub fn of(module: &Module) -> Result<Self, Diagnostic> {
        match Self::by_file(module)? {
            Self::Frida if !Self::may_be_frida() => Ok(Self::Loader),
            way => Ok(way),
        }
    }

    /// Returns whether there are programs that take Frida on this machine, or with this environment.
    #[must_use]
    pub fn may_be_frida() -> bool {
        let is_wanted = std::env::var_os("HINDSIGHT_FRIDA").is_some_and(|value| value == "1");
        is_wanted || !has_fsgsbase()
    }

    /// Determines what loads the runtime; Frida, if it can.
    fn by_file(module: &Module) -> Result<Self, Diagnostic> {
        let linker = module.interp().map(|path| path.rsplit('/').next());
        let is_musl = linker
            .flatten()
            .is_some_and(|name| name.starts_with("ld-musl"));
        // Frida calls functions of the C library, which a program without libraries does not have.
        if linker.is_some() && !is_musl && !module.needed().is_empty() {
            return Ok(Self::Frida);
        }
        if linker.is_none() && module.soname().is_some() {
            return Err(Diagnostic::new("it is a library")
                .with_hint("record the program that it is to run instead"));
        }
        if !has_fsgsbase() {
            return Err(
                Diagnostic::new("it has no dynamic linker of glibc, or no C library").with_hint(
                    "such programs take Linux 5.9 or newer and a processor with FSGSBASE",
                ),
            );
        }
        // Go with cgo needs the C library. Of such a program only the C code is recorded.
        Ok(match module.needed().is_empty() && module.has_go() {
            true => Self::LoaderForGo,
            false => Self::Loader,
        })
    }

    /// Returns our loader instead of Frida, where that is possible: for a process that is in the middle of something.
    #[must_use]
    pub fn without_frida(self) -> Self {
        match self {
            Self::Frida if has_fsgsbase() => Self::Loader,
            way => way,
        }
    }
}

fn has_fsgsbase() -> bool {
    let told = fs::read("/proc/self/auxv").unwrap_or_default();
    let (words, _) = told.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    pairs
        .iter()
        .map(|pair| pair.map(u64::from_le_bytes))
        .any(|[key, value]| key == AT_HWCAP2 && value & FSGSBASE != 0)
}
