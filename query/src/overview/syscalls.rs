//! System calls that failed, by name, error and what they were about: a path or a socket's address.
//!
//! Not told is what programs meet every day: errors that mean to wait or to try again, what libraries find out by an error,
//! and where the dynamic linker looks in vain. The table `syscalls` has all. Of a frequent error only the first calls are read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use debuginfo::syscalls::number;
use serde::Serialize;

use super::ending::module_at;
use super::source::Source;
use crate::error::Result;
use crate::functions::syscalls::{error, named};
use crate::rows::Row;
use crate::syscalls::{Call, each_argument};
use crate::unrecorded::has_syscalls;

/// Most groups of calls that are reported.
const GROUPS: usize = 6;
/// Most calls of one system call with one error that are read.
const READ: u64 = 500;
/// A system call that fails with one error for more paths than this is one group.
const PATHS: usize = 3;

/// Results that mean to wait, or that a signal came: EINTR, ECHILD, EAGAIN, ETIMEDOUT, EALREADY, EINPROGRESS, and the
/// kernel's own for calls that it restarts.
const WAIT: &str = "-4, -10, -11, -110, -114, -115, -512, -513, -514, -516";
/// Calls for which some of these results mean more: there is no room for another process, or nobody answers.
const MEANT: [(&str, &[&str]); 2] = [
    ("-11", &["clone", "clone3", "fork", "vfork"]),
    ("-110", &["connect"]),
];
/// Questions of libraries: is it a terminal, a link; has it a position, an attribute?
const ASKED: [(&str, &str); 6] = [
    ("ioctl", "ENOTTY"),
    ("lseek", "ESPIPE"),
    ("readlink", "EINVAL"),
    ("readlinkat", "EINVAL"),
    ("getxattr", "ENODATA"),
    ("lgetxattr", "ENODATA"),
];
/// Errors of the dynamic linker's own calls that do not keep it from loading a program.
const OF_LINKER: [&str; 3] = ["ENOENT", "EINVAL", "ENOSYS"];
/// Programs often look for a file in several places.
const OF_SEARCH: &str = "ENOENT";

/// The system calls that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedSyscalls {
    /// Those that are reported.
    pub told: Vec<SyscallFailures>,
    /// How many more groups there are.
    pub more: u64,
}

/// Calls of one system call that failed with one error: those about one path or address, or all of them if these are many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SyscallFailures {
    /// The system call.
    pub name: String,
    /// The name of the error.
    pub errno: String,
    /// How many calls.
    pub calls: u64,
    /// There may be more of them: of an error that is frequent, only the first calls are read.
    pub is_least: bool,
    /// How many different paths or addresses these calls had.
    pub paths: u64,
    /// The first call.
    pub first: About,
    /// The last call, if they had several paths, and all are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<About>,
}

/// A system call and what it was about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct About {
    /// Its event.
    pub seq: u64,
    /// The path or address, as the table `syscalls` writes it; `None`: it takes none.
    pub path: Option<String>,
}

/// The end of a call.
struct End {
    result: i64,
    /// All calls with this result are read.
    is_all: bool,
}

/// A call that failed.
struct Failed {
    name: String,
    errno: String,
    about: About,
    is_all: bool,
}

/// Finds them; `None`: system calls were not recorded.
///
/// # Errors
/// The recording cannot be read.
pub fn failed_syscalls(source: &Source<'_>, has_failed: bool) -> Result<Option<FailedSyscalls>> {
    let manifest = source.session().reader().recording().manifest();
    if !has_syscalls(&manifest.settings.captures) {
        return Ok(None);
    }
    let mut told = groups(&calls(source)?);
    let late = source.late();
    // The cause of a failure is rare and comes late.
    told.sort_by_key(|group| {
        let is_usual = !has_failed || group.first.seq < late;
        (
            group.errno == OF_SEARCH,
            is_usual,
            group.calls,
            group.first.seq,
        )
    });
    let more = told.len().saturating_sub(GROUPS) as u64;
    told.truncate(GROUPS);
    Ok(Some(FailedSyscalls { told, more }))
}

/// Reads the calls that failed, in order.
fn calls(source: &Source<'_>) -> Result<Vec<Failed>> {
    let mut ends = ends(source, &format!("value not in ({WAIT})"))?;
    for (result, names) in MEANT {
        let numbers = names.iter().filter_map(|name| number(name));
        let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
        let meant = format!(
            "value = {result} and size in (select seq from events where kind = 'syscall' and value in ({}))",
            numbers.join(", ")
        );
        ends.extend(self::ends(source, &meant)?);
    }
    if ends.is_empty() {
        return Ok(Vec::new());
    }
    let seqs: Vec<String> = ends.keys().map(u64::to_string).collect();
    let begun = source.ask(&format!(
        "select seq, value, addr, tid, bytes from events where kind = 'syscall' and seq in ({}) order by seq",
        seqs.join(", ")
    ))?;
    let mut linkers = HashMap::new();
    let failed = begun.iter().filter_map(|row| {
        let failed = failed(row, ends.get(&row.count(0)?)?)?;
        let is_told = is_programs(source, row, failed.about.seq)
            && !is_usual(&failed, || is_linkers(source, row, &mut linkers));
        is_told.then_some(failed)
    });
    Ok(failed.collect())
}

/// Reads the ends of calls that failed and for which a condition holds, by the events in which the calls began.
fn ends(source: &Source<'_>, condition: &str) -> Result<BTreeMap<u64, End>> {
    let rows = source.ask(&format!(
        "with failed as (select size, value from events \
         where kind = 'syscall_end' and size is not null and value between -4095 and -1 and {condition}) \
         select size, value, of_it from (select failed.size, failed.value, \
         count(*) over (partition by failed.value, begun.value) as of_it, \
         row_number() over (partition by failed.value, begun.value order by failed.size) as nth \
         from failed join events begun on begun.seq = failed.size \
         where begun.kind = 'syscall' and not ({})) where nth <= {READ}",
        asked()
    ))?;
    let end = |row: &Row| {
        let end = End {
            result: row.number(1)?,
            is_all: row.count(2)? <= READ,
        };
        Some((row.count(0)?, end))
    };
    Ok(rows.iter().filter_map(end).collect())
}

/// The condition for questions of libraries, which take no room among the calls that are read.
fn asked() -> String {
    let condition = |(name, errno): &(&str, &str)| {
        let result = (-4095..0).find(|result| error(*result).as_deref() == Some(*errno))?;
        let number = number(name)?;
        Some(format!(
            "begun.value = {number} and failed.value = {result}"
        ))
    };
    let conditions: Vec<String> = ASKED.iter().filter_map(condition).collect();
    conditions.join(" or ")
}

fn failed(row: &Row, end: &End) -> Option<Failed> {
    let number = row.number(1)?;
    let call = Call {
        number: u64::try_from(number).ok()?,
        begun: row.bytes(4).unwrap_or_default(),
        written: &[],
        result: Some(end.result),
    };
    let mut arguments = each_argument(&call).into_iter();
    let path = arguments.find(|argument| matches!(argument.kind, "path" | "addr"));
    Some(Failed {
        name: named(number),
        errno: error(end.result)?,
        about: About {
            seq: row.count(0)?,
            path: path.map(|path| path.text),
        },
        is_all: end.is_all,
    })
}

/// Returns whether the program made a call, and not a debugger.
fn is_programs(source: &Source<'_>, row: &Row, seq: u64) -> bool {
    let tid = row.count(3).and_then(|tid| u32::try_from(tid).ok());
    !tid.is_some_and(|tid| source.left_out().has(tid, seq))
}

fn is_usual(failed: &Failed, is_linkers: impl FnOnce() -> bool) -> bool {
    let (name, errno) = (failed.name.as_str(), failed.errno.as_str());
    ASKED.contains(&(name, errno)) || OF_LINKER.contains(&errno) && is_linkers()
}

/// Returns whether the dynamic linker's own code made a call. That of musl is the C library, too.
fn is_linkers(source: &Source<'_>, row: &Row, known: &mut HashMap<i64, bool>) -> bool {
    let (Some(address), Some(seq)) = (row.number(2), row.count(0)) else {
        return false;
    };
    *known.entry(address).or_insert_with(|| {
        let module = module_at(source, address as u64, seq);
        module.is_some_and(|(name, _)| name.starts_with("ld-") && !name.starts_with("ld-musl"))
    })
}

fn groups(calls: &[Failed]) -> Vec<SyscallFailures> {
    type ByPath<'c> = BTreeMap<Option<&'c str>, Vec<&'c Failed>>;
    let mut by_error: BTreeMap<(&str, &str), ByPath<'_>> = BTreeMap::new();
    for call in calls {
        let error = (call.name.as_str(), call.errno.as_str());
        let by_path = by_error.entry(error).or_default();
        let path = call.about.path.as_deref();
        by_path.entry(path).or_default().push(call);
    }
    let of_error = |by_path: ByPath<'_>| -> Vec<SyscallFailures> {
        let is_one = by_path.len() > PATHS;
        let each: Vec<Vec<&Failed>> = by_path.into_values().collect();
        match is_one {
            true => group(each.concat()).into_iter().collect(),
            false => each.into_iter().filter_map(group).collect(),
        }
    };
    by_error.into_values().flat_map(of_error).collect()
}

/// Makes a group of some calls; `None`: there are none.
fn group(mut calls: Vec<&Failed>) -> Option<SyscallFailures> {
    calls.sort_by_key(|call| call.about.seq);
    let (first, last) = (calls.first()?, calls.last()?);
    let is_least = calls.iter().any(|call| !call.is_all);
    let paths: BTreeSet<&str> = calls
        .iter()
        .filter_map(|call| call.about.path.as_deref())
        .collect();
    Some(SyscallFailures {
        name: first.name.clone(),
        errno: first.errno.clone(),
        calls: calls.len() as u64,
        is_least,
        paths: paths.len() as u64,
        first: first.about.clone(),
        last: (paths.len() > 1 && !is_least).then(|| last.about.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(seq: u64, name: &str, errno: &str, path: Option<&str>) -> Failed {
        Failed {
            name: name.to_owned(),
            errno: errno.to_owned(),
            about: About {
                seq,
                path: path.map(str::to_owned),
            },
            is_all: true,
        }
    }

    #[test]
    fn calls_with_few_paths_are_told_apart_and_others_are_one_group() {
        let mut calls = vec![
            failed(3, "openat", "EACCES", Some("\"/a\"")),
            failed(5, "openat", "EACCES", Some("\"/b\"")),
            failed(8, "openat", "EACCES", Some("\"/a\"")),
            failed(9, "close", "EBADF", None),
        ];
        for seq in 10..14 {
            let path = format!("\"/{seq}\"");
            calls.push(failed(seq, "openat", "ENOENT", Some(&path)));
        }
        let found = groups(&calls);
        let told = found.iter().map(|group| {
            let last = group.last.as_ref().map(|last| last.seq);
            let path = group.first.path.as_deref().unwrap_or_default();
            (
                (group.calls, group.paths),
                (group.first.seq, path, last),
                group.errno.as_str(),
            )
        });
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                ((1, 0), (9, "", None), "EBADF"),
                ((2, 1), (3, "\"/a\"", None), "EACCES"),
                ((1, 1), (5, "\"/b\"", None), "EACCES"),
                ((4, 4), (10, "\"/10\"", Some(13)), "ENOENT"),
            ]
        );
    }

    #[test]
    fn what_is_not_read_to_its_end_has_no_last_call() {
        let mut calls = ["\"/a\"", "\"/b\"", "\"/c\"", "\"/d\""]
            .map(|path| failed(3, "openat", "ENOENT", Some(path)));
        calls[2].is_all = false;
        let found = groups(&calls);
        assert_eq!(found.len(), 1);
        assert!(found[0].is_least && found[0].last.is_none(), "{found:?}");
    }

    #[test]
    fn what_libraries_ask_is_usual_and_what_the_linker_does_not_find() {
        for (name, errno, is_linkers, expected) in [
            ("ioctl", "ENOTTY", false, true),
            ("ioctl", "EINVAL", false, false),
            ("openat", "ENOENT", false, false),
            ("openat", "ENOENT", true, true),
            ("openat", "EACCES", true, false),
        ] {
            let call = failed(1, name, errno, None);
            assert_eq!(is_usual(&call, || is_linkers), expected, "{name} {errno}");
        }
    }

    #[test]
    fn calls_whose_results_mean_more_have_numbers() {
        let mut names = MEANT.iter().flat_map(|(_, names)| *names);
        assert!(names.all(|name| number(name).is_some()));
    }
}
