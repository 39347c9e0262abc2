//! The processes that a recorded program has started. Without `--children` they are not recorded, and the summary says so.

use std::path::Path;

use debuginfo::Module;
use server::quantity::grouped;

use crate::ask::Asker;

/// Those that the C library's functions made: each is an event.
const TOLD: &str = "select count(*) from events where kind = 'fork' and value > 0";
/// Those that the program's own system calls made.
const UNTOLD: &str = "select count(*) from syscalls where name in ('fork', 'vfork', 'clone', 'clone3') and result > 0 \
    and args not like '%CLONE_THREAD%' and result not in (select value from events where kind = 'fork' and value > 0)";
const PROGRAM: &str = "select path from modules where module_id = 0";
/// The function by which Go code starts a process. Its name is in stripped programs, too.
const IN_GO: &[u8] = b"syscall.forkExec";

/// How many processes a program has started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Started {
    /// Those that the recording tells of.
    seen: u64,
    /// Whether Go code may have started more: it makes system calls itself, and these are not recorded.
    may_be_more: bool,
}

impl Started {
    /// Asks a recording.
    pub fn ask(asker: &mut Asker, with_syscalls: bool) -> Started {
        let untold = with_syscalls.then_some(UNTOLD);
        let queries = [TOLD].into_iter().chain(untold);
        let numbers = queries.filter_map(|query| u64::try_from(asker.number(query).ok()?).ok());
        let seen: u64 = numbers.sum();
        let program = asker.texts(PROGRAM).ok();
        let program = program.and_then(|mut rows| rows.pop()?.pop()?);
        let may_be_more = program.is_some_and(|path| starts_in_go(Path::new(&path)));
        Started { seen, may_be_more }
    }

    /// Returns the number; `None` if it is not known.
    pub fn number(self) -> Option<u64> {
        (!self.may_be_more).then_some(self.seen)
    }

    /// One line: `it started 2 processes, which are not recorded; hindsight record --children records them too`. `None` if there is
    /// nothing to say.
    pub fn line(self) -> Option<String> {
        let what = match self.seen {
            0 if self.may_be_more => {
                return Some(
                    "processes that its Go code started, if any, are neither recorded nor counted; \
                     hindsight record --children records them"
                        .to_owned(),
                );
            }
            0 => return None,
            1 => "1 process, which is".to_owned(),
            seen => format!("{} processes, which are", grouped(seen)),
        };
        let least = if self.may_be_more { "at least " } else { "" };
        Some(format!(
            "it started {least}{what} not recorded; hindsight record --children records them too"
        ))
    }
}

/// Returns whether a program has Go code that can start processes.
fn starts_in_go(program: &Path) -> bool {
    let has_go = || Module::open(program).is_ok_and(|module| module.has_go());
    let has_name = |bytes: Vec<u8>| bytes.windows(IN_GO.len()).any(|part| part == IN_GO);
    has_go() && std::fs::read(program).is_ok_and(has_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_counted_is_not_none() {
        let told = |seen, may_be_more| {
            let started = Started { seen, may_be_more };
            (started.number(), started.line().unwrap_or_default())
        };
        assert_eq!(told(0, false), (Some(0), String::new()));
        let all = "hindsight record --children records them too";
        let one = format!("it started 1 process, which is not recorded; {all}");
        assert_eq!(told(1, false), (Some(1), one));
        let some = format!("it started at least 2,000 processes, which are not recorded; {all}");
        assert_eq!(told(2000, true), (None, some));
        let (number, line) = told(0, true);
        assert_eq!(number, None);
        assert!(line.contains("neither recorded nor counted"), "{line}");
    }

    #[test]
    fn a_program_without_go_starts_nothing_in_go() {
        assert!(!starts_in_go(Path::new("/bin/true")));
        assert!(!starts_in_go(Path::new("/no/such/program")));
    }
}
