//! Places in time as users write them: `48211`, `48211+300`, `first`, `last`, `crash`, `50%`, `1.5s`, `@note`, `output:17`.

use debuginfo::Diagnostic;

use crate::error::{Error, Result};
use crate::event::Kind;
use crate::timeline::Timeline;
use crate::walk::Instant;

/// A place in time.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// The event of that number.
    Seq(u64),
    /// This many instructions after the event of that number.
    Instruction(Instant),
    /// The first event.
    First,
    /// The last event.
    Last,
    /// Where a signal ended the program.
    Crash,
    /// A percentage of the way from the first event to the last.
    Percent(f64),
    /// The last event at or before that time, in ns since the recording began.
    Time(i64),
    /// The note with that text, or the first that begins with it.
    Note(String),
    /// The event that wrote the first byte of that line of output, from 1.
    Output(u64),
}

/// Units of time and their nanoseconds; longer names come before those they end with.
const UNITS: [(&str, f64); 6] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("\u{b5}s", 1e3),
    ("ms", 1e6),
    ("min", 60e9),
    ("s", 1e9),
];

impl Target {
    /// Reads a place in time.
    ///
    /// # Errors
    /// [`Error::Target`] lists the forms.
    pub fn parse(text: &str) -> Result<Target> {
        let text = text.trim();
        let wrong = || {
            let hint = "write an event's number, first, last, crash, 50%, 1.5s, @NOTE, output:LINE or EVENT+INSTRUCTIONS";
            let what = Diagnostic::new(format!("\"{text}\" is not a place in time"));
            Error::Target(what.with_hint(hint))
        };
        match text {
            "first" | "start" => return Ok(Target::First),
            "last" | "end" => return Ok(Target::Last),
            "crash" => return Ok(Target::Crash),
            _ => {}
        }
        if let Some(note) = text.strip_prefix('@') {
            let quoted = note.strip_prefix('"').and_then(|n| n.strip_suffix('"'));
            return match quoted.unwrap_or(note) {
                "" => Err(wrong()),
                note => Ok(Target::Note(note.to_owned())),
            };
        }
        if let Some(line) = text.strip_prefix("output:") {
            let line: u64 = line.parse().map_err(|_| wrong())?;
            return match line {
                0 => Err(wrong()),
                line => Ok(Target::Output(line)),
            };
        }
        if let Some(part) = text.strip_suffix('%') {
            let part: f64 = part.trim().parse().map_err(|_| wrong())?;
            return match (0.0..=100.0).contains(&part) {
                true => Ok(Target::Percent(part)),
                false => {
                    let what = format!("{text} is not between 0% and 100% of the recording");
                    Err(Error::Target(what.into()))
                }
            };
        }
        // Numbers are read with a sign in front, which would look like a distance here.
        if text.starts_with('+') {
            return Err(wrong());
        }
        if let Ok(seq) = text.replace(['_', ','], "").parse() {
            return Ok(Target::Seq(seq));
        }
        if let Some((seq, steps)) = text.split_once('+')
            && let Ok(seq) = seq.replace(['_', ','], "").trim().parse()
            && let Ok(steps) = steps.replace(['_', ','], "").trim().parse()
        {
            return Ok(Target::Instruction(Instant { seq, steps }));
        }
        for (unit, ns) in UNITS {
            if let Some(number) = text.strip_suffix(unit)
                && let Ok(number) = number.trim().parse::<f64>()
                && number >= 0.0
                && number * ns < 9e18
            {
                return Ok(Target::Time((number * ns).round() as i64));
            }
        }
        Err(wrong())
    }
}

impl Timeline {
    /// Finds the event of a place in time.
    ///
    /// # Errors
    /// [`Error::NoEvent`] or [`Error::Target`] if there is none; the files cannot be read.
    pub fn find(&self, target: &Target) -> Result<u64> {
        match target {
            Target::Seq(seq) => self.check(*seq).map(|()| *seq),
            Target::Instruction(instant) => Ok(self.instant(self.position_of(*instant)?)?.seq),
            Target::First => Ok(0),
            Target::Last => Ok(self.last()),
            Target::Crash => self.crash()?.ok_or_else(|| {
                let what = "no signal ended the program while it was recorded";
                Error::Target(Diagnostic::new(what).with_hint("the end is at: goto last"))
            }),
            Target::Percent(part) => {
                let seq = (self.last() as f64 * part / 100.0).round() as u64;
                Ok(seq.min(self.last()))
            }
            Target::Time(ns) => self.at_time(*ns),
            Target::Note(text) => self.at_note(text),
            Target::Output(line) => self.at_output_line(*line),
        }
    }

    /// Finds a place in time, exact to the instruction.
    ///
    /// # Errors
    /// As for [`Self::find`].
    pub fn find_instant(&self, target: &Target) -> Result<Instant> {
        match target {
            Target::Instruction(instant) if instant.steps > 0 => {
                self.instant(self.position_of(*instant)?)
            }
            // The time of an instruction is its number.
            Target::Time(ns) if self.has_every_instruction() => {
                let position = u64::try_from(*ns).unwrap_or(0);
                self.instant(self.position_of(Instant {
                    seq: 0,
                    steps: position,
                })?)
            }
            target => Ok(Instant::at(self.find(target)?)),
        }
    }

    /// The last event at or before a time; the first one if all are later.
    pub(crate) fn at_time(&self, ns: i64) -> Result<u64> {
        let (mut low, mut high) = (0, self.events());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match self.ts_ns(middle)? <= ns {
                true => low = middle,
                false => high = middle,
            }
        }
        Ok(low)
    }

    fn at_note(&self, text: &str) -> Result<u64> {
        let notes = self.notes()?;
        let exact = notes.iter().find(|note| note.text == text);
        let begins = || notes.iter().find(|note| note.text.starts_with(text));
        if let Some(note) = exact.or_else(begins) {
            return Ok(note.seq);
        }
        let what = Diagnostic::new(format!("there is no note \"{text}\""));
        Err(Error::Target(what.with_hint(match notes.len() {
            0 => "the recording has no notes",
            _ => "list them with: notes",
        })))
    }

    fn at_output_line(&self, wanted: u64) -> Result<u64> {
        let mut line = 1;
        let mut at_start = true;
        let mut from = 0;
        loop {
            let head = self
                .others
                .first(from, u64::MAX, |head| head.kind == Kind::Output)?;
            let Some(head) = head else {
                let lines = line - u64::from(at_start);
                let what = Diagnostic::new(format!("there is no line {wanted} of output"));
                return Err(Error::Target(
                    what.with_hint(format!("the program wrote {lines}")),
                ));
            };
            let event = self.others.event(head.seq)?;
            for byte in event.and_then(|event| event.bytes).unwrap_or_default() {
                if line == wanted {
                    return Ok(head.seq);
                }
                at_start = byte == b'\n';
                line += u64::from(at_start);
            }
            from = head.seq + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_people_write_them() {
        let cases = [
            ("48211", Target::Seq(48211)),
            ("1_000", Target::Seq(1000)),
            ("first", Target::First),
            ("last", Target::Last),
            ("crash", Target::Crash),
            ("50%", Target::Percent(50.0)),
            ("1.5s", Target::Time(1_500_000_000)),
            ("20 ms", Target::Time(20_000_000)),
            ("7us", Target::Time(7_000)),
            ("3ns", Target::Time(3)),
            ("2min", Target::Time(120_000_000_000)),
            (
                "@before the crash",
                Target::Note("before the crash".to_owned()),
            ),
            (
                "@\"before the crash\"",
                Target::Note("before the crash".to_owned()),
            ),
            ("output:17", Target::Output(17)),
            (
                "12+1_300",
                Target::Instruction(Instant {
                    seq: 12,
                    steps: 1300,
                }),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(Target::parse(text).unwrap(), expected, "{text}");
        }
        for text in [
            "", "soon", "101%", "12+", "+5", "-1s", "output:0", "output:x", "@", "1.5",
        ] {
            assert!(Target::parse(text).is_err(), "{text}");
        }
    }
}
