//! Arguments and results of calls, as far as two runs have the same.

use super::beside_strace::Call;

/// Compares two calls in which each argument is an address in both, or in neither.
pub fn same_but_for_addresses(wanted: &Call, got: &Call) {
    assert_eq!(masked(&got.args), masked(&wanted.args), "{wanted:?}");
}

/// Arguments in which each hexadecimal number, which may be an address, is the same word.
pub fn masked(args: &str) -> String {
    let mut text = String::new();
    let mut rest = args;
    while let Some((before, after)) = rest.split_once("0x") {
        text += before;
        text += "ADDRESS";
        rest = after.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    text + rest
}

/// Arguments, counted from 0, that are not as strace shows them (docs/limits.md), or differ from run to run.
const OTHER_ARGUMENTS: [(&str, usize); 9] = [
    ("getrandom", 0),
    ("sigaltstack", 1),
    ("sched_getaffinity", 2),
    ("sysinfo", 0),
    ("statx", 2),
    ("statx", 3),
    ("statx", 4),
    ("statfs", 1),
    ("fstatfs", 1),
];
/// Calls whose results are numbers of processes.
pub const OTHER_RESULTS: [&str; 3] = ["gettid", "getpid", "set_tid_address"];

/// Separates arguments at the commas that are in no brackets and no text.
pub fn separated(args: &str) -> Vec<&str> {
    let (mut parts, mut from) = (Vec::new(), 0);
    let (mut depth, mut in_text, mut is_escaped) = (0, false, false);
    for (at, c) in args.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if in_text => is_escaped = true,
            '"' => in_text = !in_text,
            _ if in_text => {}
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(args[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(args[from..].trim());
    parts
}

/// Arguments without those that are not compared, without strace's remarks, and without what a call found: strace shows that with
/// the result.
pub fn comparable(call: &Call) -> Call {
    let mut args = separated(&call.args);
    for (name, index) in OTHER_ARGUMENTS {
        if name == call.name {
            args[index] = "*";
        }
    }
    let args = args.iter().map(|arg| {
        let arg = arg.split_once(" /* ").map_or(*arg, |(before, _)| before);
        match call.name.as_str() {
            "poll" => arg.split_once(" => ").map_or(arg, |(before, _)| before),
            _ => arg,
        }
    });
    let args: Vec<&str> = args.collect();
    let is_other = OTHER_RESULTS.contains(&call.name.as_str());
    Call {
        name: call.name.clone(),
        args: args.join(", "),
        result: if is_other {
            "*".to_owned()
        } else {
            call.result.clone()
        },
    }
}
