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
    /// Why there may be more.
    unseen: Unseen,
}

/// What is known of processes that no event tells of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Unseen {
    #[default]
    None,
    /// Go code may have started some: it makes system calls itself, and these are not recorded.
    InGo,
    /// The program waited for at least one. It must have made it by a system call of its own.
    WaitedFor,
}

impl Started {
    /// Asks a recording. `waited`: the program waited for at least one process that it had started.
    pub fn ask(asker: &mut Asker, with_syscalls: bool, waited: bool) -> Started {
        let untold = with_syscalls.then_some(UNTOLD);
        let queries = [TOLD].into_iter().chain(untold);
        let numbers = queries.filter_map(|query| u64::try_from(asker.number(query).ok()?).ok());
        let seen: u64 = numbers.sum();
        let program = asker.texts(PROGRAM).ok();
        let program = program.and_then(|mut rows| rows.pop()?.pop()?);
        let unseen = match program.is_some_and(|path| starts_in_go(Path::new(&path))) {
            true => Unseen::InGo,
            false if waited && seen == 0 => Unseen::WaitedFor,
            false => Unseen::None,
        };
        Started { seen, unseen }
    }

    /// Returns the number; `None` if it is not known.
    pub fn number(self) -> Option<u64> {
        (self.unseen == Unseen::None).then_some(self.seen)
    }

    /// One line: `it started 2 processes, which are not recorded; hindsight record --children records them too`. `None` if there is
    /// nothing to say.
    pub fn line(self) -> Option<String> {
        let what = match self.seen {
            0 if self.unseen == Unseen::WaitedFor => {
                return Some(
                    "it started processes by system calls of its own, which are neither recorded nor counted; \
                     hindsight record --syscalls counts them, --children records them"
                        .to_owned(),
                );
            }
            0 if self.unseen == Unseen::InGo => {
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
        let least = if self.unseen == Unseen::InGo {
            "at least "
        } else {
            ""
        };
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
        let told = |seen, unseen| {
            let started = Started { seen, unseen };
            (started.number(), started.line().unwrap_or_default())
        };
        assert_eq!(told(0, Unseen::None), (Some(0), String::new()));
        let all = "hindsight record --children records them too";
        let one = format!("it started 1 process, which is not recorded; {all}");
        assert_eq!(told(1, Unseen::None), (Some(1), one));
        let some = format!("it started at least 2,000 processes, which are not recorded; {all}");
        assert_eq!(told(2000, Unseen::InGo), (None, some));
        for unseen in [Unseen::InGo, Unseen::WaitedFor] {
            let (number, line) = told(0, unseen);
            assert_eq!(number, None);
            assert!(line.contains("neither recorded nor counted"), "{line}");
        }
    }

    #[test]
    fn a_program_without_go_starts_nothing_in_go() {
        assert!(!starts_in_go(Path::new("/bin/true")));
        assert!(!starts_in_go(Path::new("/no/such/program")));
    }
}
