//! The command lines of `break`, `logpoint`, `watch` and `catch`. The first word may be `add`, `list`, `remove`,
//! `enable` or `disable`.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Chosen, Form, ProbeArgs, Word};
use crate::protocol::Failure;

/// The words of a command line as fields.
pub(super) type Written = Map<String, Value>;

pub(super) const CONDITION: Word = Word::new(
    "condition",
    "EXPRESSION",
    Form::TextOption(None),
    "Only if this is true",
);
pub(super) const HIT_COUNT: Word = Word::new(
    "hit_count",
    "N",
    Form::NumberOption,
    "Only on the Nth hit; 0: on every one [default: 0]",
)
.named("hit-count");
pub(super) const ALL: Word = Word::flag(
    "all",
    None,
    "With remove, enable or disable: apply to all; break remove --all also removes watchpoints, catchpoints and logpoints",
);
/// As [`ALL`], for a verb that knows its own kind only.
pub(super) const ALL_OF_KIND: Word =
    Word::flag("all", None, "With remove, enable or disable: apply to all");
pub(super) const FUNCTION: Word = Word::new(
    "function",
    "NAME",
    Form::TextOption(Some('f')),
    "A function name, taken literally except for * and ?",
);
pub(super) const PENDING: Word =
    Word::flag("pending", None, "Wait for a library that is loaded later");
pub(super) const ALL_THREADS: Word = Word::flag(
    "all_threads",
    None,
    "Stop all threads, not only the one that hits it",
)
.named("all-threads");

/// The requested action.
#[derive(Debug, PartialEq, Eq)]
enum Task<'a> {
    Add(&'a [String]),
    Other(&'a str, Vec<u32>),
}

/// Where the selected frame stands.
const HERE: &str = "*$pc";

/// Adds the default location, if no words, or only a condition after `if`, are given.
pub(super) fn here_by_default(written: &mut Written) {
    let is_of_others = written.contains_key("function") || written.get("all") == Some(&json!(true));
    let words = written.entry("words").or_insert_with(|| json!([]));
    let Some(words) = words.as_array_mut().filter(|_| !is_of_others) else {
        return;
    };
    if words.first().is_none_or(|first| first == "if") {
        words.insert(0, json!(HERE));
    }
}

/// Parses the action. For `add`, the words become fields of the arguments.
pub(super) fn read<A: DeserializeOwned>(
    mut written: Written,
    add: impl FnOnce(&[String], &mut Written) -> Result<(), Failure>,
) -> Result<ProbeArgs<A>, Failure> {
    let words = written.remove("words").unwrap_or_default();
    let words: Vec<String> = serde_json::from_value(words).unwrap_or_default();
    let all = written.remove("all") == Some(Value::Bool(true));
    let chosen = |ids| Chosen { ids, all };
    Ok(match task(&words, written.contains_key("function"), all)? {
        Task::Add(words) => {
            add(words, &mut written)?;
            let added = serde_json::from_value(Value::Object(written));
            ProbeArgs::Add(added.map_err(|error| Failure::bad_request(error.to_string()))?)
        }
        Task::Other("remove", ids) => ProbeArgs::Remove(chosen(ids)),
        Task::Other("enable", ids) => ProbeArgs::Enable(chosen(ids)),
        Task::Other("disable", ids) => ProbeArgs::Disable(chosen(ids)),
        Task::Other(..) => ProbeArgs::List,
    })
}

/// Parses the words: `add LOCATION`, `list`, `remove 1 2`, or just a location.
fn task(words: &[String], has_more: bool, has_all: bool) -> Result<Task<'_>, Failure> {
    match words.split_first() {
        // Each of the words may be a function's name: `break list if n > 3`.
        Some((_, [next, ..])) if next == "if" => Ok(Task::Add(words)),
        // `add` alone may be one, too.
        Some((first, rest)) if first == "add" && (has_more || !rest.is_empty()) => {
            Ok(Task::Add(rest))
        }
        Some((first, rest))
            if matches!(first.as_str(), "list" | "remove" | "enable" | "disable") =>
        {
            if has_all && !rest.is_empty() {
                return Err(Failure::bad_request("write the numbers, or --all"));
            }
            let ids = rest
                .iter()
                .map(|word| word.parse().map_err(|_| no_number(first, word)));
            Ok(Task::Other(first, ids.collect::<Result<_, _>>()?))
        }
        None if !has_more => Ok(Task::Other("list", Vec::new())),
        _ => Ok(Task::Add(words)),
    }
}

/// Refuses a word in place of a number. Some are gdb's.
fn no_number(task: &str, word: &str) -> Failure {
    let hint = match (task, word) {
        ("enable", "once" | "delete") => {
            "one that stops once is set by: tbreak LOCATION".to_owned()
        }
        ("enable", "count") => {
            "ignore N COUNT skips hits; break LOCATION --hit-count N stops at one of them"
                .to_owned()
        }
        ("enable" | "disable", "display") => {
            "undisplay N removes a display, and display EXPRESSION shows it again".to_owned()
        }
        _ => format!(
            "write list in place of {task} to see the numbers, or add {task} for a function of that name"
        ),
    };
    Failure::bad_request(format!("\"{word}\" is not a number")).hint(hint)
}

/// Moves the locations to their fields, the first and the others. They come from the words or `--function`.
pub(super) fn locations(words: &[String], written: &mut Written) -> Result<(), Failure> {
    let words = with_if(words, written)?;
    refuse_thread(words)?;
    match words {
        [first, others @ ..] if !others.is_empty() => {
            written.insert("also".to_owned(), json!(others));
            location(std::slice::from_ref(first), written)
        }
        words => location(words, written),
    }
}

/// Refuses `thread N`, which gdb accepts after a location.
fn refuse_thread(words: &[String]) -> Result<(), Failure> {
    let is_thread = |pair: &[String]| pair[0] == "thread" && pair[1].parse::<u32>().is_ok();
    let Some(pair) = words.windows(2).find(|pair| is_thread(pair)) else {
        return Ok(());
    };
    let id = &pair[1];
    let message = format!("a breakpoint stops every thread that comes there, not only thread {id}");
    Err(Failure::bad_request(message).hint(format!(
        "each thread has its own $fs_base: select the thread, print $fs_base, then break LOCATION if $fs_base == VALUE; in a recording of calls: continue where tid = {id} and function = 'NAME', with the thread's number from threads"
    )))
}

/// Takes the condition out of the words: `LOCATION if CONDITION`. Returns the words before.
pub(super) fn with_if<'w>(
    words: &'w [String],
    written: &mut Written,
) -> Result<&'w [String], Failure> {
    let Some(at) = words.iter().position(|word| word == "if") else {
        return Ok(words);
    };
    let condition = words[at + 1..].join(" ");
    if condition.is_empty() {
        return Err(Failure::bad_request("there is no condition after if")
            .hint("write break LOCATION if CONDITION; a function of that name: --function if"));
    }
    if written.contains_key("condition") {
        return Err(Failure::bad_request(
            "give the condition after if or with --condition, not with both",
        ));
    }
    written.insert("condition".to_owned(), json!(condition));
    Ok(&words[..at])
}

/// Moves the only location to its field. It comes from the words or `--function`.
pub(super) fn location(words: &[String], written: &mut Written) -> Result<(), Failure> {
    let at = match (words, written.remove("function")) {
        ([at], None) => json!(at),
        ([], Some(function)) => json!({ "function": function }),
        _ => {
            return Err(Failure::bad_request("exactly one location is needed").hint(
                "write function, file:line, file:line:column, 0xADDRESS or --function NAME",
            ));
        }
    };
    written.insert("at".to_owned(), at);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_first_word_may_be_what_to_do() {
        let a = words("a.c:3");
        assert_eq!(
            task(&words("add a.c:3"), false, false).unwrap(),
            Task::Add(&a)
        );
        assert_eq!(task(&a, false, false).unwrap(), Task::Add(&a));
        let add = words("add");
        assert_eq!(
            task(&add, false, false).unwrap(),
            Task::Add(&add),
            "a function"
        );
        assert_eq!(
            task(&words("add add"), false, false).unwrap(),
            Task::Add(&add)
        );
        assert_eq!(
            task(&add, true, false).unwrap(),
            Task::Add(&[]),
            "--function"
        );
        assert_eq!(
            task(&[], false, false).unwrap(),
            Task::Other("list", vec![])
        );
        assert_eq!(
            task(&[], true, false).unwrap(),
            Task::Add(&[]),
            "--function"
        );
        let removed = words("remove 1 2");
        assert_eq!(
            task(&removed, false, false).unwrap(),
            Task::Other("remove", vec![1, 2])
        );
        assert!(task(&words("remove 1"), false, true).is_err());
        assert!(task(&words("remove x"), false, false).is_err());
        assert_eq!(
            task(&words("add list"), false, false).unwrap(),
            Task::Add(&words("list"))
        );
    }

    #[test]
    fn without_a_location_it_is_here() {
        let with = |written: Value| {
            let Value::Object(mut written) = written else {
                panic!("an object");
            };
            here_by_default(&mut written);
            written.remove("words").unwrap()
        };
        assert_eq!(with(json!({})), json!(["*$pc"]));
        assert_eq!(with(json!({"words": [], "once": true})), json!(["*$pc"]));
        assert_eq!(
            with(json!({"words": ["if", "i"]})),
            json!(["*$pc", "if", "i"])
        );
        assert_eq!(with(json!({"words": ["f"]})), json!(["f"]));
        assert_eq!(with(json!({"words": [], "function": "f"})), json!([]));
        assert_eq!(with(json!({"words": [], "all": true})), json!([]));
    }

    #[test]
    fn exactly_one_location_is_taken() {
        let taken = |text: &str, function: Option<&str>| {
            let mut written = Written::new();
            if let Some(function) = function {
                written.insert("function".to_owned(), json!(function));
            }
            location(&words(text), &mut written)
        };
        assert!(taken("a", None).is_ok());
        assert!(taken("", Some("f")).is_ok());
        assert!(taken("a", Some("f")).is_err());
        assert!(taken("a b", None).is_err());
        assert!(taken("", None).is_err());
    }

    #[test]
    fn a_breakpoint_may_be_set_at_many_locations_at_once() {
        let taken = |text: &str, function: Option<&str>| {
            let mut written = Written::new();
            if let Some(function) = function {
                written.insert("function".to_owned(), json!(function));
            }
            locations(&words(text), &mut written).map(|()| Value::Object(written))
        };
        assert_eq!(taken("a", None).unwrap(), json!({ "at": "a" }));
        assert_eq!(
            taken("a b c", None).unwrap(),
            json!({ "at": "a", "also": ["b", "c"] })
        );
        assert_eq!(
            taken("", Some("f")).unwrap(),
            json!({ "at": { "function": "f" } })
        );
        assert!(taken("a", Some("f")).is_err());
        assert!(taken("a b", Some("f")).is_err());
        assert!(taken("", None).is_err());
        assert_eq!(
            taken("a if i == 3", None).unwrap(),
            json!({ "at": "a", "condition": "i == 3" })
        );
        assert_eq!(
            taken("if i == 3", Some("f")).unwrap(),
            json!({ "at": { "function": "f" }, "condition": "i == 3" })
        );
        assert!(taken("a if", None).is_err());
        for of_a_thread in ["a thread 2", "a thread 2 if i == 3", "thread 2"] {
            assert!(taken(of_a_thread, None).is_err(), "{of_a_thread}");
        }
        assert!(taken("a thread", None).is_ok(), "a function");
    }
}
