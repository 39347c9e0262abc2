//! The single findings of a comparison, as build servers list them.

use std::collections::BTreeMap;

use query::compare::{
    CallPair, Comparison, EventDifference, FunctionPair, Line, OutputDifference, Suspect,
};
use values::quantity::count;

/// How much a finding counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// A difference in the program's output, or the function that most likely made it.
    Error,
    /// Another difference.
    Warning,
    /// What could not be compared.
    Note,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its kind: one of [`KINDS`].
    pub kind: &'static str,
    /// Its subject: a function, a stream.
    pub subject: String,
    /// What was found.
    pub message: String,
    /// How much it counts.
    pub weight: Weight,
    /// The source file of the subject, and its first line that differs, or its first line where that is not known.
    pub place: Option<(String, u32)>,
    /// Where to point to without that: to what most likely made the difference, or to the program.
    pub near: Option<(String, u32)>,
    /// The fingerprint of the first difference that it is about.
    pub difference: Option<u64>,
    /// How many findings of the same kind, subject and difference come before it.
    pub repeated: u32,
}

/// The kinds of findings, and what they mean.
pub const KINDS: [(&str, &str); 6] = [
    ("suspect", "The function most likely made the difference"),
    ("function", "Calls of the function differ"),
    ("output", "The output differs"),
    (
        "event",
        "Another event differs, such as the exit or an exception",
    ),
    ("thread", "Only one of the recordings has the thread"),
    ("only", "Only one of the recordings has the function"),
];

impl Finding {
    /// Returns an identifier that stays the same for the same finding in later comparisons, and that another one of the
    /// same function or stream does not have.
    pub fn fingerprint(&self) -> String {
        let mut print = format!("{}:{}", self.kind, self.subject);
        if let Some(number) = self.difference {
            print += &format!(":{number:016x}");
        }
        if self.repeated > 0 {
            print += &format!(":{}", self.repeated + 1);
        }
        print
    }
}

/// Lists all findings, the most relevant first.
pub fn findings(comparison: &Comparison) -> Vec<Finding> {
    if comparison.is_same {
        return Vec::new();
    }
    let finding = |kind, subject: &str, weight, message: String| Finding {
        kind,
        subject: subject.to_owned(),
        message,
        weight,
        place: None,
        near: near(comparison),
        difference: None,
        repeated: 0,
    };
    let first_of = |function: &str| {
        let mut calls = comparison.calls.iter();
        calls
            .find(|pair| pair.function == function)
            .map(|pair| pair.fingerprint)
    };
    let mut all = Vec::new();
    for (at, suspect) in comparison.suspects.iter().enumerate() {
        let weight = if at == 0 {
            Weight::Error
        } else {
            Weight::Warning
        };
        all.push(Finding {
            place: place_of(suspect),
            // What a function did wrong may show in its callees or in the output alone.
            difference: first_of(&suspect.function).or_else(|| first(comparison)),
            ..finding(
                "suspect",
                &suspect.function,
                weight,
                format!("{}: {}", suspect.function, suspect.why),
            )
        });
    }
    for difference in &comparison.output {
        let message = output_message(difference);
        all.push(Finding {
            difference: Some(difference.fingerprint),
            ..finding("output", difference.stream, Weight::Error, message)
        });
    }
    for difference in &comparison.events {
        let message = event_message(difference);
        all.push(Finding {
            difference: Some(difference.fingerprint),
            ..finding("event", &difference.kind, Weight::Error, message)
        });
    }
    for pair in comparison.functions.iter().filter(|pair| differs(pair)) {
        all.push(Finding {
            place: place(&comparison.calls, &pair.function),
            difference: first_of(&pair.function),
            ..finding(
                "function",
                &pair.function,
                Weight::Warning,
                format!("{}: {}", pair.function, counted(pair)),
            )
        });
    }
    for thread in &comparison.lone.threads {
        let message = format!(
            "only {} has the thread that ran {} first",
            upper(thread.side),
            thread.function
        );
        all.push(finding(
            "thread",
            &thread.function,
            Weight::Warning,
            message,
        ));
    }
    for lone in &comparison.lone.functions {
        let message = format!(
            "only {} has {}: {}",
            upper(lone.side),
            lone.function,
            lone.why
        );
        all.push(Finding {
            place: lone.place.clone(),
            ..finding("only", &lone.function, Weight::Note, message)
        });
    }
    number(&mut all);
    all
}

/// Returns the fingerprint of the first difference.
fn first(comparison: &Comparison) -> Option<u64> {
    let calls = comparison.calls.iter().map(|pair| pair.fingerprint);
    let output = comparison.output.iter();
    let output = output.map(|difference| difference.fingerprint);
    let events = comparison.events.iter();
    let events = events.map(|difference| difference.fingerprint);
    calls.chain(output).chain(events).next()
}

/// Tells findings apart that are alike, such as two threads with the same function.
fn number(all: &mut [Finding]) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for finding in all {
        let before = seen.entry(finding.fingerprint()).or_default();
        finding.repeated = *before;
        *before += 1;
    }
}

fn output_message(difference: &OutputDifference) -> String {
    let line = |line: &Option<Line>| match line {
        Some(line) => format!("\"{}\"", line.text),
        None => "no such line".to_owned(),
    };
    let why = difference.why.map(|why| format!(": {why}"));
    format!(
        "{} differs{}: A {}, B {}",
        difference.stream,
        why.unwrap_or_default(),
        line(&difference.a),
        line(&difference.b)
    )
}

fn event_message(difference: &EventDifference) -> String {
    fn event(event: &Option<(String, u64)>) -> &str {
        let event = event.as_ref();
        event.map_or("nothing of the kind there", |(text, _)| text)
    }
    format!(
        "{} differs: A {}, B {}",
        difference.kind,
        event(&difference.a),
        event(&difference.b)
    )
}

/// Returns the line of a suspect that differs, or its first one.
fn place_of(suspect: &Suspect) -> Option<(String, u32)> {
    let changed = suspect.source.as_ref();
    let changed = changed.map(|(_, line)| (line.file.clone(), line.line));
    changed.or_else(|| suspect.place.clone())
}

/// Returns the place that is best known for what has none of its own, such as output.
fn near(comparison: &Comparison) -> Option<(String, u32)> {
    let suspected = comparison.suspects.iter().find_map(place_of);
    let main = || {
        let mains = [&comparison.b, &comparison.a];
        mains.into_iter().find_map(|side| side.main.clone())
    };
    suspected.or_else(main)
}

/// Returns whether calls of a function differ.
pub fn differs(pair: &FunctionPair) -> bool {
    pair.differing() != (0, 0)
}

/// Counts the calls of a function that differ, by kind of difference.
pub fn counted(pair: &FunctionPair) -> String {
    let parts = [
        (pair.arguments, "with other arguments"),
        (pair.results, "with another result"),
        (pair.inside, "with other calls inside"),
        (pair.only.0, "only in A"),
        (pair.only.1, "only in B"),
    ];
    let parts = parts.iter().filter(|(number, _)| *number > 0);
    let parts: Vec<String> = parts
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
    format!(
        "{}; {} in A, {} in B",
        parts.join(", "),
        count(pair.calls.0, "call"),
        pair.calls.1
    )
}

/// The side in words for people.
pub fn upper(side: char) -> char {
    side.to_ascii_uppercase()
}

fn place(calls: &[CallPair], function: &str) -> Option<(String, u32)> {
    let pair = calls.iter().find(|pair| pair.function == function)?;
    let call = pair.b.as_ref().or(pair.a.as_ref())?;
    Some((call.file.clone()?, call.line?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_that_are_alike_are_told_apart() {
        let finding = |kind, subject: &str, difference| Finding {
            kind,
            subject: subject.to_owned(),
            message: String::new(),
            weight: Weight::Note,
            place: None,
            near: None,
            difference,
            repeated: 0,
        };
        let mut all = [
            finding("thread", "work", None),
            finding("suspect", "main", Some(1)),
            finding("thread", "work", None),
            finding("suspect", "main", Some(2)),
        ];
        number(&mut all);
        let prints = all.each_ref().map(Finding::fingerprint);
        let expected = [
            "thread:work",
            "suspect:main:0000000000000001",
            "thread:work:2",
            "suspect:main:0000000000000002",
        ];
        assert_eq!(prints, expected);
    }
}
