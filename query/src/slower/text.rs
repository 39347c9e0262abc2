//! The answer in words, no longer than a screen.

use std::fmt::Write;

use values::one_line::fitted;
use values::quantity::{count, duration};

use super::{FunctionTimes, Shift, Slower, Times, Verdict};

/// Columns of a function's name.
const NAME: usize = 40;
/// Functions without a difference that are shown in addition to those with one.
const SAME: usize = 3;

impl Slower {
    /// Writes the answer: at most `functions` functions that differ, and a few that take most of the time.
    #[must_use]
    pub fn text(&self, functions: usize) -> String {
        let mut text = String::new();
        let (before, after) = self.recordings;
        let said = match (self.is_slower(), self.all.verdict) {
            (true, Verdict::Slower) => "The candidate is slower",
            (true, _) => "Functions of the candidate are slower",
            (false, Verdict::Faster) => "The candidate is faster",
            (false, Verdict::Unsure) => {
                "Not sure: what recording more calls cost may explain the difference"
            }
            (false, _) => "No difference that counts",
        };
        line(
            &mut text,
            format_args!("{said} ({before} and {after} recordings)"),
        );
        line(
            &mut text,
            format_args!("  all functions: {}", told(&self.all)),
        );
        let (differ, same): (Vec<_>, Vec<_>) = self
            .functions
            .iter()
            .partition(|function| function.times.verdict != Verdict::Same);
        for function in differ.iter().take(functions) {
            line(&mut text, format_args!("  {}", one(function)));
        }
        if differ.len() > functions {
            let more = count((differ.len() - functions) as u64, "more function");
            line(&mut text, format_args!("  {more}: see --json"));
        }
        for function in same.iter().take(SAME) {
            line(&mut text, format_args!("  {}", one(function)));
        }
        self.notes(&mut text);
        text
    }

    fn notes(&self, text: &mut String) {
        let not_shown = self
            .functions
            .iter()
            .filter(|f| f.times.verdict == Verdict::Same)
            .count();
        let not_shown = not_shown.saturating_sub(SAME);
        if not_shown > 0 {
            let functions = count(not_shown as u64, "function");
            line(
                text,
                format_args!("  {functions} more without a difference that counts"),
            );
        }
        if self.not_tested > 0 {
            let functions = count(self.not_tested as u64, "function");
            line(
                text,
                format_args!("  {functions} with less than 1 % of the time: not tested"),
            );
        }
        if self.unknown_waits > 0 {
            let recordings = count(self.unknown_waits as u64, "recording");
            line(
                text,
                format_args!(
                    "  {recordings} with waits for a processor in the times: of some threads they are not known; \
                     hindsight report names these"
                ),
            );
        }
        if let Some(needed) = self.needed {
            line(
                text,
                format_args!(
                    "  {} a side are too few to name one of {} with a chance of {} %: record {needed} a side",
                    count(self.recordings.0.min(self.recordings.1) as u64, "recording"),
                    count(self.functions.len() as u64, "function"),
                    self.alpha * 100.0
                ),
            );
        }
        line(
            text,
            format_args!(
                "  a difference counts from {} % on, where chance alone shows one in at most {} % of all comparisons;\n  \
                 subtracted as the cost of recording: {:.0} ns within each call, {:.0} ns in its caller",
                self.change * 100.0,
                self.alpha * 100.0,
                self.inside_ns,
                self.outside_ns
            ),
        );
    }
}

fn line(text: &mut String, words: std::fmt::Arguments<'_>) {
    writeln!(text, "{words}").expect("a String takes all");
}

fn one(function: &FunctionTimes) -> String {
    let calls = match (function.calls_before, function.calls_after) {
        (before, after) if before == after && before == 1.0 => "1 call".to_owned(),
        (before, after) if before == after => format!("{before} calls"),
        (before, after) => format!("{before} -> {after} calls"),
    };
    let word = match function.times.verdict {
        Verdict::Slower => "slower",
        Verdict::Faster => "faster",
        Verdict::Same => "same",
        Verdict::Unsure => "unsure",
        Verdict::New => "new",
        Verdict::Gone => "gone",
    };
    let name = fitted(&function.function, NAME);
    format!("{word:<7}{name:<NAME$}  {}; {calls}", told(&function.times))
}

fn told(times: &Times) -> String {
    let mut told = format!(
        "{} -> {}",
        duration(times.before_ns as u64),
        duration(times.after_ns as u64)
    );
    let Some(shift) = times.shift else {
        return told;
    };
    write!(
        told,
        ", {:.2} times ({:.0} %: {:.2} to {:.2})",
        shift.ratio,
        shift.covered * 100.0,
        shift.low,
        shift.high
    )
    .expect("a String takes all");
    told + &why(times, shift)
}

/// Says how likely the difference is by chance, or what else may explain it.
fn why(times: &Times, shift: Shift) -> String {
    if times.verdict == Verdict::Unsure {
        let more = match times.more_calls < 0.0 {
            true => "fewer call",
            false => "more call",
        };
        return format!(
            "; {}: the cost of recording them may explain {}",
            count(times.more_calls.abs() as u64, more),
            duration(times.unsure_ns as u64)
        );
    }
    let chance = match shift.ratio >= 1.0 {
        true => times.slower_by_chance,
        false => times.faster_by_chance,
    };
    format!(", by chance {:.1} %", chance * 100.0)
}
