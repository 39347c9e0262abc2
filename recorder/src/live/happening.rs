//! What the kernel reports about a program, as places of probes: new processes, other programs, system calls; and handlers
//! of exceptions.

use std::fmt;

/// What a catchpoint waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A process created by fork(2), or by clone(2) with its own memory.
    Fork,
    /// A process created by vfork(2) or posix_spawn(3).
    Vfork,
    /// Another program that the process executes.
    Exec,
    /// A system call with one of these numbers; none: any.
    Syscall(Vec<u64>),
    /// A handler of a C++ exception is entered.
    Handler,
    /// A C++ exception is thrown again.
    Rethrow,
    /// The dynamic linker has mapped a library, whose file has a name that this glob matches; without one, any.
    Load(Option<String>),
}

/// In the user's words, as the recording stores it.
impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Happening::Fork => "fork",
            Happening::Vfork => "vfork",
            Happening::Exec => "exec",
            Happening::Handler => "catch",
            Happening::Rethrow => "rethrow",
            Happening::Load(None) => "load",
            Happening::Load(Some(pattern)) => return write!(f, "load {pattern}"),
            Happening::Syscall(numbers) => {
                f.write_str("syscall")?;
                return numbers
                    .iter()
                    .try_for_each(|number| write!(f, " {}", system_call(*number)));
            }
        })
    }
}

impl Happening {
    /// The functions at whose entry it happens, by linkage name; empty if the kernel reports it.
    pub(crate) fn entries(&self) -> &'static [&'static str] {
        match self {
            Happening::Handler => &["__cxa_begin_catch"],
            Happening::Rethrow => &["__cxa_rethrow"],
            // The dynamic linker calls it for debuggers before and after each change of its list (`r_brk` in link.h).
            Happening::Load(_) => &["_dl_debug_state"],
            _ => &[],
        }
    }
}

/// The name of a system call, or its number.
pub(crate) fn system_call(number: u64) -> String {
    debuginfo::syscalls::name(number).map_or_else(|| number.to_string(), str::to_owned)
}
