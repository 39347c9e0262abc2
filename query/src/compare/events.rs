//! Events that are neither calls nor output: exceptions, forks, executed programs, messages of logpoints, and the end.
//!
//! The order of threads varies, so each thread is compared with the one that belongs to it; the end is the process's. A first
//! pass hashes the events of each thread. Only threads whose hashes differ are read again, so memory does not grow with the
//! recordings.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashMap;
use serde::Serialize;
use store::Reader;
use store::columns::{EventsFile, ReadEvent};

use super::output::{Known, Numbers, normal};
use super::threads::Thread;
use super::{Asked, MOST_THREADS, hash, realign};
use crate::error::Result;
use crate::syscalls::error_name;

const END: &str = "process_exit";

/// Something else that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventDifference {
    /// The kind of the events.
    pub kind: String,
    /// What the first program did there: a text and its event.
    pub a: Option<(String, u64)>,
    /// What the second program did.
    pub b: Option<(String, u64)>,
    /// The same for the same difference in every run.
    #[serde(serialize_with = "hash::as_hex")]
    pub fingerprint: u64,
}

impl EventDifference {
    /// The event at which it shows.
    fn seq(&self) -> Option<u64> {
        self.a.as_ref().or(self.b.as_ref()).map(|event| event.1)
    }
}

/// The other events of a recording, page by page.
pub struct Events {
    files: Vec<EventsFile>,
    at: (usize, usize),
    read: VecDeque<ReadEvent>,
}

impl Events {
    /// Opens the files.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn open(reader: &Reader) -> Result<Self> {
        let filled = reader.parts().iter().filter(|part| part.part.events > 0);
        let files = filled.map(|part| EventsFile::open(&part.events));
        Ok(Self {
            files: files.collect::<store::Result<_>>()?,
            at: (0, 0),
            read: VecDeque::new(),
        })
    }

    /// Returns the next event; `None` at the end.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn next(&mut self) -> Result<Option<ReadEvent>> {
        while self.read.is_empty() {
            let (file, page) = self.at;
            let Some(events) = self.files.get(file) else {
                return Ok(None);
            };
            if page >= events.pages().len() {
                self.at = (file + 1, 0);
                continue;
            }
            let mut seqs = Vec::new();
            events.heads(page, |head| seqs.push(head.seq))?;
            self.read.extend(events.events(page, &seqs)?);
            self.at.1 += 1;
        }
        Ok(self.read.pop_front())
    }
}

/// What is compared in one order: the kind of the events, and the number of the pair of threads. `None` is the process with
/// all threads that have no counterpart.
type Group = (&'static str, Option<usize>);

/// An event as it is compared: a text without what differs in each run, and its number.
type Told = (String, u64);

/// One of the programs.
struct Program<'p> {
    reader: &'p Reader,
    /// The numbers of the pairs to which its threads belong.
    pairs: FxHashMap<u32, usize>,
    asked: &'p Asked,
    numbers: Numbers<'p>,
}

impl Program<'_> {
    fn events(&self) -> Result<Stream<'_>> {
        Ok(Stream {
            events: Events::open(self.reader)?,
            of: self,
        })
    }

    fn group(&self, event: &ReadEvent) -> Option<Group> {
        let kind = self.kind(event)?;
        let tid = event.tid.filter(|_| kind != END);
        let pair = tid.and_then(|tid| self.pairs.get(&tid).copied());
        Some((kind, pair))
    }

    /// Returns the kind as which an event is compared; `None` if it is not.
    fn kind(&self, event: &ReadEvent) -> Option<&'static str> {
        let rules = &self.asked.rules;
        Some(match event.kind.as_str() {
            END if !rules.ignores_exit() => END,
            "exception" if !rules.ignores_exceptions() => "exception",
            "exec" | "exec_failed" if !rules.ignores_others() => "exec",
            "fork" if !rules.ignores_others() => "fork",
            "logpoint" if !rules.ignores_others() => "logpoint",
            _ => return None,
        })
    }

    fn text(&self, event: &ReadEvent) -> String {
        let text = || normal(event.text.as_deref().unwrap_or_default(), self.numbers);
        match event.kind.as_str() {
            END => end(event),
            "exception" => {
                let phase = event.detail.as_deref().unwrap_or_default();
                let kind = event.aux.as_deref().unwrap_or_default();
                let text = text();
                [kind, phase, without_sender(&text)]
                    .join(" ")
                    .trim()
                    .to_owned()
            }
            "exec_failed" => {
                let error = event.value.and_then(error_name);
                format!("failed: {}", error.unwrap_or("unknown"))
            }
            "fork" => "a child".to_owned(),
            _ => text(),
        }
    }

    /// Reads the recording once.
    fn sums(&self) -> Result<BTreeMap<Group, Sum>> {
        let mut sums = BTreeMap::new();
        let mut events = self.events()?;
        while let Some((group, event)) = events.next(|_| true)? {
            let sum: &mut Sum = sums.entry(group).or_insert_with(|| Sum::before(event.1));
            sum.add(&event.0);
        }
        Ok(sums)
    }
}

/// Returns what is told of a signal without the process that sent it: `timeout` and `kill` are others in each run.
fn without_sender(text: &str) -> &str {
    let sent = "sent by process";
    let sender = text.strip_prefix(sent).unwrap_or_default().trim();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match sender == "?" || is_number(sender) {
        true => "sent by a process",
        false => text,
    }
}

fn end(event: &ReadEvent) -> String {
    let code = event.value.map(|code| format!("exit code {code}"));
    let how = event.aux.clone().or(code);
    how.unwrap_or_else(|| "an end that is not known".to_owned())
}

/// The events of a program that are compared.
struct Stream<'s> {
    events: Events,
    of: &'s Program<'s>,
}

impl Stream<'_> {
    /// Returns the next event of the wanted groups.
    fn next(&mut self, is_wanted: impl Fn(Group) -> bool) -> Result<Option<(Group, Told)>> {
        while let Some(event) = self.events.next()? {
            self.of.asked.stop.check()?;
            if let Some(group) = self.of.group(&event).filter(|group| is_wanted(*group)) {
                return Ok(Some((group, (self.of.text(&event), event.seq))));
            }
        }
        Ok(None)
    }

    fn next_of(&mut self, group: Group) -> Result<Option<Told>> {
        let found = self.next(|own| own == group)?;
        Ok(found.map(|(_, event)| event))
    }
}

/// The events of a group, in short.
struct Sum {
    count: u64,
    hash: u64,
    first: u64,
}

impl Sum {
    fn before(first: u64) -> Self {
        Self {
            count: 0,
            hash: 0,
            first,
        }
    }

    fn add(&mut self, text: &str) {
        self.count += 1;
        self.hash = hash::fold(self.hash, hash::of_bytes(text.as_bytes()));
    }

    fn what(&self) -> (u64, u64) {
        (self.count, self.hash)
    }

    /// What is told of it where too many threads differ to go through all of them.
    fn untold(&self) -> Told {
        let events = match self.count {
            1 => "1 event".to_owned(),
            count => format!("{count} events"),
        };
        let text = format!(
            "{events} of a thread (hash {:016x}): too many threads differ to compare them one by one",
            self.hash
        );
        (text, self.first)
    }
}

/// The differences, of each kind the first one that is not accepted.
struct Found<'f, 'k> {
    known: &'f mut Known<'k>,
    first: BTreeMap<&'static str, EventDifference>,
}

impl Found<'_, '_> {
    /// Takes what differs.
    fn take(&mut self, kind: &'static str, a: Option<Told>, b: Option<Told>) {
        let (own, other) = (text_of(a.as_ref()), text_of(b.as_ref()));
        let Some(fingerprint) = self.known.take(kind, own, other) else {
            return;
        };
        let difference = EventDifference {
            kind: kind.to_owned(),
            a,
            b,
            fingerprint,
        };
        let first = self.first.get(kind);
        if first.is_none_or(|first| difference.seq() < first.seq()) {
            self.first.insert(kind, difference);
        }
    }

    /// Compares the events of a group one by one.
    fn go_through(&mut self, group: Group, (a, b): (&Program<'_>, &Program<'_>)) -> Result<()> {
        let (mut own, mut other) = (a.events()?, b.events()?);
        realign::pairs(
            || own.next_of(group),
            || other.next_of(group),
            |a, b| a.0 == b.0,
            |event| hash::of_bytes(event.0.as_bytes()),
            |a, b| {
                if text_of(a.as_ref()) != text_of(b.as_ref()) {
                    self.take(group.0, a, b);
                }
            },
        )
    }
}

fn text_of(event: Option<&Told>) -> Option<&str> {
    event.map(|event| event.0.as_str())
}

/// Compares the other events of two programs, kind by kind and thread by thread. `pairs` are the threads that belong
/// together. Returns the first difference of each kind.
///
/// # Errors
/// A recording cannot be read; [`crate::Error::Stopped`].
pub fn compare(
    (a, b): (&Reader, &Reader),
    pairs: &[(Thread, Thread, u32)],
    asked: &Asked,
    known: &mut Known<'_>,
) -> Result<Vec<EventDifference>> {
    let numbers = known.numbers;
    let program = |reader, tids: Vec<u32>| Program {
        reader,
        pairs: tids.into_iter().zip(0..).collect(),
        asked,
        numbers,
    };
    let a = program(a, pairs.iter().map(|pair| pair.0.tid).collect());
    let b = program(b, pairs.iter().map(|pair| pair.1.tid).collect());
    let (in_a, in_b) = (a.sums()?, b.sums()?);
    let groups: BTreeSet<Group> = in_a.keys().chain(in_b.keys()).copied().collect();
    let sums = |group: &Group| (in_a.get(group), in_b.get(group));
    let differs = |group: &Group| {
        let (own, other) = sums(group);
        own.map(Sum::what) != other.map(Sum::what)
    };
    let mut found = Found {
        known,
        first: BTreeMap::new(),
    };
    for (number, group) in groups.into_iter().filter(differs).enumerate() {
        if number < MOST_THREADS {
            found.go_through(group, (&a, &b))?;
        } else {
            let (own, other) = sums(&group);
            found.take(group.0, own.map(Sum::untold), other.map(Sum::untold));
        }
    }
    Ok(found.first.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::without_sender;

    #[test]
    fn who_sent_a_signal_is_no_difference() {
        for (text, expected) in [
            ("sent by process 31675", "sent by a process"),
            // One of the program's own.
            ("sent by process ?", "sent by a process"),
            ("sent by process 5 of 7", "sent by process 5 of 7"),
            ("sent by process", "sent by process"),
            ("", ""),
        ] {
            assert_eq!(without_sender(text), expected);
        }
    }
}
