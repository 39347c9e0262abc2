//! Three questions to ask next, as commands that can be pasted into a shell, and in a form that can become another call.

use serde::Serialize;

use super::Overview;
use super::ending::How;
use super::threads::ThreadEnd;
use super::unusual::Unusual;

/// How many are asked.
const QUESTIONS: usize = 3;
/// Questions about functions with longer names use their ids.
const LONGEST_NAME: usize = 48;
/// Most events before a printed error that a question selects.
const EVENTS_BEFORE: u64 = 30;

/// Functions of glibc's malloc in which a damaged heap shows.
const OF_HEAP: [&str; 5] = [
    "malloc_printerr",
    "_int_free",
    "_int_malloc",
    "malloc_consolidate",
    "unlink_chunk",
];

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    /// What it answers.
    pub about: String,
    /// The command, for a shell.
    pub command: String,
    /// What the command does.
    #[serde(skip)]
    pub way: Way,
}

/// What the command of a question does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// It asks in SQL.
    Sql(String),
    /// It shows what led to the call of an event.
    Why(u64),
    /// It reports on locks.
    Locks,
    /// It reports on the blocks of the heap.
    Memory,
    /// It records the program again, with all blocks of the heap.
    RecordMemory,
    /// It opens the recording, to look around.
    LookAround,
    /// It says how the recording was made.
    Info,
    /// It checks the recording.
    Check,
}

/// Chooses questions about what the overview reported.
pub fn questions(overview: &Overview, recording: &str) -> Vec<Question> {
    let mut chosen = candidates(overview, recording);
    chosen.truncate(QUESTIONS);
    chosen
}

/// Returns all questions about what an overview of `recording` reported, each once: first those about its end, last the usual ones.
pub fn candidates(overview: &Overview, recording: &str) -> Vec<Question> {
    let name = store::shell::word(recording);
    let sql = |about: &str, question: &str| Question {
        about: about.to_owned(),
        command: format!("hindsight sql {name} {}", shell_text(question)),
        way: Way::Sql(question.to_owned()),
    };
    let mut all = of_ending(overview, &name, &sql);
    all.extend(of_failures(overview, &name, &sql));
    all.extend(of_unusual(overview, &name, &sql));
    all.extend(of_waiting(overview, &sql));
    if let Some(most) = overview.time.functions.first() {
        all.push(slowest(&most.function, most.function_id, &sql));
    }
    all.extend(usual(overview, &name, &sql));
    let mut chosen: Vec<Question> = Vec::new();
    for question in all {
        if chosen.iter().all(|known| known.command != question.command) {
            chosen.push(question);
        }
    }
    chosen
}

/// What to ask if the program crashed or panicked, or threads are stuck.
fn of_ending(
    overview: &Overview,
    name: &str,
    sql: &dyn Fn(&str, &str) -> Question,
) -> Vec<Question> {
    let mut all = Vec::new();
    if let Some(crash) = &overview.ending.crash {
        let seq = crash.seq;
        let question = format!("select frame, function, file, line from backtrace({seq})");
        all.push(sql("the stack where it ended", &question));
        let question = format!("select * from locals({seq})");
        all.push(sql("the variables there", &question));
    }
    let has = |what: &str| overview.program.captures.iter().any(|one| one == what);
    if let Some(question) = of_heap(overview, name, has("memory")) {
        all.insert(0, question);
    }
    let is_in_call = |thread: &super::threads::Thread| matches!(thread.end, ThreadEnd::In { .. });
    let has_stuck = overview.threads.told.iter().any(is_in_call);
    if has("locks") && (has_stuck || !overview.deadlocks.is_empty()) {
        all.insert(
            0,
            Question {
                about: "which locks were held and waited for, and deadlocks".to_owned(),
                command: format!("hindsight report {name} --locks"),
                way: Way::Locks,
            },
        );
    }
    let panicked = overview.ending.last_calls.first();
    if let Some((call, seq)) = panicked.zip(overview.ending.panic) {
        all.push(Question {
            about: "the call that panicked, and what led to it".to_owned(),
            command: format!("hindsight why {name} {}", call.seq),
            way: Way::Why(call.seq),
        });
        let from = seq.saturating_sub(EVENTS_BEFORE);
        let question = format!(
            "select seq, kind, function, args, ret_text from events where seq between {from} and {seq} order by seq"
        );
        all.push(sql("what happened before the panic", &question));
    }
    all
}

/// What to ask about failed calls and what was printed about errors.
fn of_failures(
    overview: &Overview,
    name: &str,
    sql: &dyn Fn(&str, &str) -> Question,
) -> Vec<Question> {
    let mut all = Vec::new();
    let first = overview
        .failures
        .told
        .iter()
        .find(|failure| !failure.guessed);
    if let Some(failure) = first {
        let seq = failure.first.seq;
        all.push(Question {
            about: format!("the first failure of {}, step by step", failure.function),
            command: format!("hindsight why {name} {seq}"),
            way: Way::Why(seq),
        });
    }
    let syscalls = overview.failed_syscalls.as_ref();
    if first.is_none() && syscalls.is_some_and(|failed| !failed.told.is_empty()) {
        let question = "select seq, name, args, errno from syscalls where errno is not null order by seq desc limit 20";
        all.push(sql("the system calls that failed last", question));
    }
    let has_panicked = !overview.ending.last_calls.is_empty() && overview.ending.panic.is_some();
    if let Some(line) = overview.errors.lines.last().filter(|_| !has_panicked) {
        let from = line.seq.saturating_sub(EVENTS_BEFORE);
        let question = format!(
            "select seq, kind, function, args, ret from events where tid = {} and seq between {from} and {} order by seq",
            line.tid, line.seq
        );
        all.push(sql(
            "what led to the last line on standard error",
            &question,
        ));
    }
    all
}

/// What to ask about calls that took unusually long.
fn of_unusual(
    overview: &Overview,
    name: &str,
    sql: &dyn Fn(&str, &str) -> Question,
) -> Vec<Question> {
    let all = overview.unusual.iter();
    let question = |unusual: &Unusual| match unusual {
        Unusual::SlowCall {
            function,
            function_id,
            ..
        } => slowest(function, *function_id, sql),
        Unusual::OnceLate { seq, .. } | Unusual::LongStay { seq, .. } => Question {
            about: "how it came to that call".to_owned(),
            command: format!("hindsight why {name} {seq}"),
            way: Way::Why(*seq),
        },
        Unusual::StillAllocated { .. } => Question {
            about: "who allocated the blocks that were left".to_owned(),
            command: format!("hindsight report {name} --memory"),
            way: Way::Memory,
        },
    };
    all.map(question).collect()
}

/// What to ask about a thread that is still in a call.
fn of_waiting(overview: &Overview, sql: &dyn Fn(&str, &str) -> Question) -> Option<Question> {
    let waiting = overview
        .threads
        .told
        .iter()
        .find_map(|thread| match &thread.end {
            ThreadEnd::In { last_seq, .. } if overview.threads.total > 1 => {
                Some((thread.tid, *last_seq))
            }
            _ => None,
        });
    let (tid, last) = waiting?;
    let from = last.saturating_sub(EVENTS_BEFORE);
    let question = format!(
        "select seq, kind, function, args from events where tid = {tid} and seq between {from} and {last} order by seq"
    );
    Some(sql("what a thread did last", &question))
}

/// What to ask if the program died in the heap's own functions.
fn of_heap(overview: &Overview, name: &str, has_memory: bool) -> Option<Question> {
    let crash = overview.ending.crash.as_ref()?;
    let mut functions = crash.frames.iter().map(|frame| frame.function.as_str());
    if !functions.any(|function| OF_HEAP.contains(&function)) {
        return None;
    }
    let (about, command, way) = match has_memory {
        true => (
            "blocks that were freed twice, and those left",
            format!("hindsight report {name} --memory"),
            Way::Memory,
        ),
        false => (
            "the same with all blocks: then report --memory names those freed twice",
            format!("hindsight rerun {name} --memory"),
            Way::RecordMemory,
        ),
    };
    Some(Question {
        about: about.to_owned(),
        command,
        way,
    })
}

/// The slowest calls of a function.
fn slowest(function: &str, id: u32, sql: &dyn Fn(&str, &str) -> Question) -> Question {
    let is_it = match function.len() <= LONGEST_NAME && !function.contains('\'') {
        true => format!("function = '{function}'"),
        false => format!("function_id = {id}"),
    };
    let question = format!(
        "select start_seq, args, self_ns from calls where {is_it} order by self_ns desc limit 10"
    );
    sql("the slowest calls of that function", &question)
}

/// Those that any recording answers.
fn usual(overview: &Overview, name: &str, sql: &dyn Fn(&str, &str) -> Question) -> Vec<Question> {
    let mut usual = Vec::new();
    if matches!(overview.ending.how, How::Core { .. }) {
        return vec![Question {
            about: "a prompt, to look around in it".to_owned(),
            command: format!("hindsight repl {name}"),
            way: Way::LookAround,
        }];
    }
    if overview.program.calls > 0 {
        let question = "select function, count(*) as calls from calls group by function order by calls desc limit 20";
        usual.push(sql("the functions that were called most", question));
    }
    if overview.program.events > 0 {
        let question = "select seq, kind, text from events where kind not in ('enter', 'leave') order by seq limit 50";
        usual.push(sql("what happened besides calls", question));
    }
    let question =
        "select module, reason, count(*) from probes where state = 'skipped' group by 1, 2";
    usual.push(sql("which functions were not recorded, and why", question));
    usual.push(Question {
        about: "what was recorded, and with which settings".to_owned(),
        command: format!("hindsight info {name}"),
        way: Way::Info,
    });
    usual.push(Question {
        about: "whether the recording is whole".to_owned(),
        command: format!("hindsight check {name}"),
        way: Way::Check,
    });
    usual
}

/// Quotes a question, which has single quotes itself, for a shell.
fn shell_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '$' | '`' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_what_was_meant() {
        assert_eq!(shell_text(r#"f = 'a$b"c'"#), r#""f = 'a\$b\"c'""#);
    }
}
