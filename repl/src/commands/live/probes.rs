//! `break`, `logpoint`, `watch` and `catch`: the first word may be `add`, `list`, `remove`, `enable` or `disable`.

use server::location::{FunctionTarget, Target};
use server::session::PlaceReport;
use server::verbs::{
    self, BreakAdd, BreakReply, CatchAdd, Caught, Chosen, LogpointAdd, ProbeArgs, ProbeKind,
    ProbeReport, ProbesReply, Verb, WatchAccess, WatchAdd, WatchReply,
};

use super::Link;
use super::ask::{Common, Patience, ask};
use super::{recorded, show};
use crate::error::Error;
use crate::render::{Align, Terminal, count};

/// Places of one probe that are named.
const MAX_PLACES: usize = 10;

/// What all of them take.
#[derive(Debug, clap::Args)]
struct Shared {
    #[command(flatten)]
    common: Common,
    /// Only if this is true
    #[arg(long, value_name = "EXPRESSION")]
    condition: Option<String>,
    /// Only on the Nth hit; 0: on every one
    #[arg(long, value_name = "N", default_value_t = 0)]
    hit_count: u64,
    /// With remove, enable and disable: all of them
    #[arg(long)]
    all: bool,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
enum Task<'a> {
    Add(&'a [String]),
    Other(&'a str, Vec<u32>),
}

/// Reads the words: `add LOCATION`, `list`, `remove 1 2`, or a location at once.
fn task<'a>(words: &'a [String], has_more: bool) -> Result<Task<'a>, Error> {
    match words.split_first() {
        // Alone it is no task: a function may be called so.
        Some((first, rest)) if first == "add" && (has_more || !rest.is_empty()) => {
            Ok(Task::Add(rest))
        }
        Some((first, rest))
            if matches!(first.as_str(), "list" | "remove" | "enable" | "disable") =>
        {
            let ids = rest.iter().map(|word| {
                word.parse().map_err(|_| {
                    let help = format!(
                        "write list in place of {first} to see the numbers, or add {first} for a function of that name"
                    );
                    Error::usage(format!("\"{word}\" is not a number"), Some(help))
                })
            });
            Ok(Task::Other(first, ids.collect::<Result<_, _>>()?))
        }
        None if !has_more => Ok(Task::Other("list", Vec::new())),
        _ => Ok(Task::Add(words)),
    }
}

impl Shared {
    fn run<A, V: Verb<Args = ProbeArgs<A>, Reply: Replied>>(
        &self,
        link: &Link,
        words: &[String],
        has_more: bool,
        add: impl FnOnce(&[String]) -> Result<A, Error>,
    ) -> Result<u8, Error> {
        let task = task(words, has_more)?;
        let chosen = |ids| Chosen { ids, all: self.all };
        let args = match task {
            Task::Add(words) => ProbeArgs::Add(add(words)?),
            Task::Other("remove", ids) => ProbeArgs::Remove(chosen(ids)),
            Task::Other("enable", ids) => ProbeArgs::Enable(chosen(ids)),
            Task::Other("disable", ids) => ProbeArgs::Disable(chosen(ids)),
            Task::Other(..) => ProbeArgs::List,
        };
        let done = Done::of(&args);
        ask::<V>(&self.common, link, &args, Patience::Answer, |reply| {
            reply.text(done, link.terminal())
        })
    }
}

/// What was done with probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// They were listed.
    Listed,
    /// They were removed.
    Removed,
    /// They were added or switched.
    Set,
}

impl Done {
    /// Tells it by what was asked for.
    pub fn of<A>(args: &ProbeArgs<A>) -> Done {
        match args {
            ProbeArgs::List => Done::Listed,
            ProbeArgs::Remove(_) => Done::Removed,
            ProbeArgs::Add(_) | ProbeArgs::Enable(_) | ProbeArgs::Disable(_) => Done::Set,
        }
    }
}

/// A reply about probes.
pub trait Replied {
    /// Writes it.
    fn text(&self, done: Done, terminal: &Terminal) -> String;
}

impl Replied for ProbesReply {
    fn text(&self, done: Done, terminal: &Terminal) -> String {
        let line = |word| move |probe| line(probe, word);
        match done {
            Done::Listed => listed(&self.probes, terminal),
            Done::Removed => self.probes.iter().map(line("removed")).collect(),
            Done::Set => self.probes.iter().map(line("")).collect(),
        }
    }
}

impl Replied for BreakReply {
    fn text(&self, done: Done, terminal: &Terminal) -> String {
        let (breaks, of_a_program) = match self {
            BreakReply::Probes(reply) => return reply.text(done, terminal),
            BreakReply::Recorded {
                breaks,
                of_a_program,
            } => (breaks, *of_a_program),
        };
        match done {
            Done::Listed => recorded::breaks(breaks, terminal),
            Done::Removed => format!("{} removed\n", count(breaks.len() as u64, "breakpoint")),
            Done::Set => {
                let added = breaks
                    .iter()
                    .map(|added| recorded::added(added, of_a_program));
                added.collect()
            }
        }
    }
}

impl Replied for WatchReply {
    fn text(&self, done: Done, terminal: &Terminal) -> String {
        match (self, done) {
            (WatchReply::Probes(reply), done) => reply.text(done, terminal),
            (WatchReply::Added(line), _) => recorded::watched(line),
            (WatchReply::Recorded(reply), Done::Removed) => recorded::unwatched(reply),
            (WatchReply::Recorded(reply), _) => recorded::watches(reply, terminal),
        }
    }
}

/// Writes one probe: `Breakpoint 1: parse at parse.c:42`.
fn line(probe: &ProbeReport, done: &str) -> String {
    let mut kind = probe.kind.word().to_owned();
    kind[..1].make_ascii_uppercase();
    let mut text = format!("{kind} {}", probe.id);
    text += &match (done, probe.places.as_slice()) {
        ("", [place]) => format!(": {}", show::place(place)),
        ("", []) => format!(": {}", probe.location),
        ("", places) => several(&probe.location, places),
        (done, _) => format!(" {done}: {}", probe.location),
    };
    if !probe.enabled && done.is_empty() {
        text += " [disabled]";
    } else if !probe.verified && done.is_empty() {
        text += " [pending: no loaded module has it]";
    }
    if !done.is_empty() {
        // What stood in its way, or is to be known of it, is of no use any more.
        return text + "\n";
    }
    for place in &probe.places {
        if let Some(problem) = &place.problem {
            text += &format!("\n  {}: {problem}", place.address);
        }
    }
    if let Some(message) = &probe.message {
        text += &format!("\n  {message}");
    }
    text + "\n"
}

/// Writes the places of a probe, of which there are several: a line each.
fn several(location: &str, places: &[PlaceReport]) -> String {
    let mut text = format!(": {location} ({} places)", places.len());
    for place in places.iter().take(MAX_PLACES) {
        text += &format!("\n  {}", show::place(place));
    }
    if let Some(left) = places
        .len()
        .checked_sub(MAX_PLACES)
        .filter(|left| *left > 0)
    {
        text += &format!("\n  and {left} more");
    }
    text
}

fn listed(probes: &[ProbeReport], terminal: &Terminal) -> String {
    if probes.is_empty() {
        return "There are none.\n".to_owned();
    }
    let row = |probe: &ProbeReport| {
        let state = match (probe.enabled, probe.verified) {
            (false, _) => "disabled",
            (true, true) => "set",
            (true, false) => "pending",
        };
        let place = match probe.places.as_slice() {
            [place] => show::place(place),
            // What is watched lies where it lies, not in code.
            _ if probe.kind == ProbeKind::Watchpoint => String::new(),
            places => format!("{} places", places.len()),
        };
        vec![
            Some(probe.id.to_string()),
            Some(probe.location.clone()),
            Some(state.to_owned()),
            Some(probe.hits.to_string()),
            Some(probe.condition.clone().unwrap_or_default()),
            Some(place),
        ]
    };
    let headings = [
        ("ID", Align::Right),
        ("Location", Align::Left),
        ("State", Align::Left),
        ("Hits", Align::Right),
        ("Condition", Align::Left),
        ("Place", Align::Left),
    ];
    let table = show::table(&headings, probes.iter().map(row).collect(), terminal);
    let notes: String = probes.iter().filter_map(note).collect();
    table + &notes
}

/// Says what is wrong with a probe, and why its hits take longer than they might, if they do.
fn note(probe: &ProbeReport) -> Option<String> {
    let message = probe.message.as_ref();
    let message = message.map(|message| format!("{}: {message}\n", probe.id));
    match (message, slow(probe)) {
        (None, slow) => slow,
        (Some(message), slow) => Some(message + &slow.unwrap_or_default()),
    }
}

fn slow(probe: &ProbeReport) -> Option<String> {
    let slow = |place: &&PlaceReport| place.not_compiled.is_some();
    let place = probe.places.iter().find(slow)?;
    let why = place.not_compiled.as_deref()?;
    Some(match place.compiled {
        Some(true) => format!("{}: its condition is compiled, {why}\n", probe.id),
        _ => format!("{}: not compiled into the program: {why}\n", probe.id),
    })
}

/// Takes the locations, from the words or `--function`: the first, and the others.
fn targets(words: &[String], function: Option<&String>) -> Result<(Target, Vec<Target>), Error> {
    match (words, function) {
        ([first, others @ ..], None) if !others.is_empty() => {
            let others = others.iter().cloned().map(Target::Text).collect();
            Ok((Target::Text(first.clone()), others))
        }
        _ => Ok((target(words, function)?, Vec::new())),
    }
}

/// Takes the one location, from the words or `--function`.
fn target(words: &[String], function: Option<&String>) -> Result<Target, Error> {
    match (words, function) {
        ([at], None) => Ok(Target::Text(at.clone())),
        ([], Some(function)) => Ok(Target::Function(FunctionTarget {
            function: function.clone(),
        })),
        _ => Err(Error::usage(
            "exactly one location is needed",
            Some(
                "write function, file:line, file:line:column, 0xADDRESS or --function NAME"
                    .to_owned(),
            ),
        )),
    }
}

const WORDS: &str = "[add] LOCATION.. | list | remove ID.. | enable ID.. | disable ID..";

#[derive(Debug, clap::Args)]
pub struct Break {
    #[command(flatten)]
    shared: Shared,
    /// Locations: function, file:line, file:line:column, 0xADDRESS
    #[arg(value_name = WORDS)]
    words: Vec<String>,
    /// A function, whatever it is called; * and ? match
    #[arg(short, long, value_name = "NAME")]
    function: Option<String>,
    /// Stop all threads, not only the one that hits it
    #[arg(long)]
    all_threads: bool,
    /// Stop once, then be gone
    #[arg(long)]
    once: bool,
    /// Wait for a library that is loaded later
    #[arg(long)]
    pending: bool,
}

impl Break {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let more = self.function.is_some();
        self.shared
            .run::<_, verbs::Break>(link, &self.words, more, |words| {
                let (at, also) = targets(words, self.function.as_ref())?;
                Ok(BreakAdd {
                    at,
                    also,
                    condition: self.shared.condition.clone(),
                    hit_count: self.shared.hit_count,
                    all_threads: self.all_threads,
                    once: self.once,
                    pending: self.pending,
                })
            })
    }
}

#[derive(Debug, clap::Args)]
pub struct Logpoint {
    #[command(flatten)]
    shared: Shared,
    /// A location and the message, in which {EXPRESSION} stands for values
    #[arg(value_name = "[add] LOCATION MESSAGE | list | remove ID.. | enable ID.. | disable ID..")]
    words: Vec<String>,
    /// A function, whatever it is called; * and ? match
    #[arg(short, long, value_name = "NAME")]
    function: Option<String>,
    /// Wait for a library that is loaded later
    #[arg(long)]
    pending: bool,
}

impl Logpoint {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let more = self.function.is_some();
        self.shared
            .run::<_, verbs::Logpoint>(link, &self.words, more, |words| {
                let Some((message, location)) = words.split_last() else {
                    let help = "hindsight logpoint parse.c:42 'n={n}'".to_owned();
                    return Err(Error::usage("a message is needed", Some(help)));
                };
                Ok(LogpointAdd {
                    at: target(location, self.function.as_ref())?,
                    message: message.clone(),
                    condition: self.shared.condition.clone(),
                    hit_count: self.shared.hit_count,
                    pending: self.pending,
                })
            })
    }
}

#[derive(Debug, clap::Args)]
pub struct Watch {
    #[command(flatten)]
    shared: Shared,
    /// A value that lies in memory, of 1, 2, 4 or 8 bytes
    #[arg(value_name = "[add] EXPRESSION | list | remove ID.. | enable ID.. | disable ID..")]
    words: Vec<String>,
    /// Stop at reads
    #[arg(long, conflicts_with = "access")]
    read: bool,
    /// Stop at reads and writes
    #[arg(long)]
    access: bool,
    /// Stop all threads
    #[arg(long)]
    all_threads: bool,
}

impl Watch {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        self.shared
            .run::<_, verbs::Watch>(link, &self.words, false, |words| {
                Ok(WatchAdd {
                    expression: words.join(" "),
                    access: match (self.read, self.access) {
                        (true, _) => WatchAccess::Read,
                        (false, true) => WatchAccess::Both,
                        (false, false) => WatchAccess::Write,
                    },
                    condition: self.shared.condition.clone(),
                    hit_count: self.shared.hit_count,
                    all_threads: self.all_threads,
                })
            })
    }
}

#[derive(Debug, clap::Args)]
pub struct Catch {
    #[command(flatten)]
    shared: Shared,
    /// What is caught
    #[arg(value_name = "throw [TYPE] | panic | signal [NAME] | list | remove ID..")]
    words: Vec<String>,
    /// With throw: only what nobody will catch
    #[arg(long)]
    unhandled: bool,
    /// Stop all threads
    #[arg(long)]
    all_threads: bool,
}

impl Catch {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        self.shared
            .run::<_, verbs::Catch>(link, &self.words, false, |words| {
                Ok(CatchAdd {
                    what: caught(words, self.unhandled)?,
                    condition: self.shared.condition.clone(),
                    hit_count: self.shared.hit_count,
                    all_threads: self.all_threads,
                })
            })
    }
}

fn caught(words: &[String], unhandled_only: bool) -> Result<Caught, Error> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["panic"] => Ok(Caught::Panic),
        ["throw"] => Ok(Caught::Throw {
            pattern: None,
            unhandled_only,
        }),
        ["throw", pattern] => Ok(Caught::Throw {
            pattern: Some((*pattern).to_owned()),
            unhandled_only,
        }),
        ["signal"] => Ok(Caught::Signal { signal: None }),
        ["signal", name] => Ok(Caught::Signal {
            signal: Some((*name).to_owned()),
        }),
        _ => Err(Error::usage(
            format!("\"{}\" cannot be caught", words.join(" ")),
            Some("write throw, throw TYPE, panic, signal or signal NAME".to_owned()),
        )),
    }
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
        assert_eq!(task(&words("add a.c:3"), false).unwrap(), Task::Add(&a));
        assert_eq!(task(&a, false).unwrap(), Task::Add(&a));
        let add = words("add");
        assert_eq!(task(&add, false).unwrap(), Task::Add(&add), "a function");
        assert_eq!(task(&words("add add"), false).unwrap(), Task::Add(&add));
        assert_eq!(task(&add, true).unwrap(), Task::Add(&[]), "--function");
        assert_eq!(task(&[], false).unwrap(), Task::Other("list", vec![]));
        assert_eq!(task(&[], true).unwrap(), Task::Add(&[]), "--function");
        let removed = words("remove 1 2");
        assert_eq!(
            task(&removed, false).unwrap(),
            Task::Other("remove", vec![1, 2])
        );
        assert!(task(&words("remove x"), false).is_err());
        assert_eq!(
            task(&words("add list"), false).unwrap(),
            Task::Add(&words("list"))
        );
    }

    #[test]
    fn a_probe_that_is_removed_is_named_and_nothing_else() {
        let reply = serde_json::json!({
            "id": 3, "kind": "breakpoint", "location": "plugin_init", "verified": false, "enabled": true, "places": [],
            "hit_count": 0, "all_threads": false, "once": false, "hits": 0, "existed": false,
            "message": "no loaded module has plugin_init; it waits until one does",
        });
        let probe: ProbeReport = serde_json::from_value(reply).expect("a probe");
        assert_eq!(
            line(&probe, ""),
            "Breakpoint 3: plugin_init [pending: no loaded module has it]\n  \
             no loaded module has plugin_init; it waits until one does\n"
        );
        assert_eq!(
            line(&probe, "removed"),
            "Breakpoint 3 removed: plugin_init\n"
        );
    }

    #[test]
    fn exactly_one_location_is_taken() {
        let f = "f".to_owned();
        assert!(target(&words("a"), None).is_ok());
        assert!(target(&[], Some(&f)).is_ok());
        assert!(target(&words("a"), Some(&f)).is_err());
        assert!(target(&words("a b"), None).is_err());
        assert!(target(&[], None).is_err());
    }

    #[test]
    fn a_breakpoint_may_be_set_at_many_locations_at_once() {
        let (at, also) = targets(&words("a b c"), None).unwrap();
        assert_eq!(at, Target::Text("a".to_owned()));
        assert_eq!(also.len(), 2);
        assert!(targets(&words("a"), None).unwrap().1.is_empty());
        assert!(targets(&words("a b"), Some(&"f".to_owned())).is_err());
        assert!(targets(&[], None).is_err());
    }

    #[test]
    fn what_can_be_caught_is_read() {
        assert_eq!(caught(&words("panic"), false).unwrap(), Caught::Panic);
        assert!(caught(&words("signal SEGV"), false).is_ok());
        assert!(caught(&words("throw std::exception"), true).is_ok());
        assert!(caught(&words("rain"), false).is_err());
        assert!(caught(&[], false).is_err());
    }
}
