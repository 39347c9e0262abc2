//! The differences of a comparison one by one, in the order of time, each with the moment at which it shows on both sides.

use debuginfo::short_name;
use serde::Serialize;

use super::differences::Kind;
use super::parted::{Values, kind_text};
use super::report::{CallPair, Comparison};

/// Characters of a line of output.
const LINE_CHARS: usize = 100;

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What differs, in a line.
    pub text: String,
    /// The arguments or the result, where these are known.
    pub values: Vec<Values>,
    /// The event in both recordings at which it shows. Of a recording that does not have it: where it was then; `None` if
    /// nothing had happened before.
    pub seqs: [Option<u64>; 2],
    /// Which of the recordings has it: both, or one.
    pub has: [bool; 2],
}

impl Comparison {
    /// Lists the differences that it has described, in the order of time: that of the first recording, and of the second
    /// where only that one has something.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        let calls = self.calls.iter().map(of_call);
        let output = self.output.iter().map(|difference| {
            let texts = difference.texts(LINE_CHARS);
            let line = |line: &Option<super::Line>, text: &Option<String>| match (line, text) {
                (Some(line), Some(text)) => format!("line {}: {text}", line.line),
                _ => "no such line".to_owned(),
            };
            let seq = |line: &Option<super::Line>| line.as_ref().map(|line| line.seq);
            let why = difference.why.map(|why| format!(": {why}"));
            step(
                format!("{} differs{}", difference.stream, why.unwrap_or_default()),
                (
                    "line",
                    line(&difference.a, &texts[0]),
                    line(&difference.b, &texts[1]),
                ),
                [seq(&difference.a), seq(&difference.b)],
            )
        });
        let events = self.events.iter().map(|difference| {
            let event = |event: &Option<(String, u64)>| match event {
                Some((text, _)) => text.clone(),
                None => "nothing of the kind there".to_owned(),
            };
            let seq = |event: &Option<(String, u64)>| event.as_ref().map(|(_, seq)| *seq);
            step(
                format!("{} differs", difference.kind),
                ("event", event(&difference.a), event(&difference.b)),
                [seq(&difference.a), seq(&difference.b)],
            )
        });
        let mut steps: Vec<Step> = calls.chain(output).chain(events).collect();
        steps.sort_by_key(|step| step.seqs[0].or(step.seqs[1]).unwrap_or(0));
        steps
    }
}

fn step(text: String, (name, a, b): (&str, String, String), seqs: [Option<u64>; 2]) -> Step {
    Step {
        text,
        values: vec![Values {
            name: name.to_owned(),
            a,
            b,
        }],
        has: seqs.map(|seq| seq.is_some()),
        seqs,
    }
}

fn of_call(pair: &CallPair) -> Step {
    let mut values = pair.values.clone();
    let result = |call: &Option<crate::overview::CallLine>| {
        let call = call.as_ref()?;
        Some(match (&call.result, call.end_seq) {
            (_, None) if call.only_entered => "its end is not recorded".to_owned(),
            (_, None) => "had not ended".to_owned(),
            _ if call.open_at_end => "had not returned".to_owned(),
            _ if call.unwound => "left by an exception or longjmp".to_owned(),
            (Some(result), _) => result.clone(),
            (None, _) => "returned".to_owned(),
        })
    };
    if let (Kind::Result, Some(a), Some(b)) = (pair.kind, result(&pair.a), result(&pair.b)) {
        values.push(Values {
            name: "result".to_owned(),
            a,
            b,
        });
    }
    Step {
        text: format!("{}: {}", short_name(&pair.function), kind_text(pair.kind)),
        values,
        seqs: pair.places.map(|place| place.map(|place| place.seq)),
        has: [pair.a.is_some(), pair.b.is_some()],
    }
}
