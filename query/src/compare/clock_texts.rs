//! Numbers in texts that are times of the clock while a program ran: since 1970 in seconds, with a fraction or without, in ms, us and
//! ns; and since the machine started in seconds with a fraction, in us and in ns.
//!
//! A number that no clock of the run showed is no such time. What is computed from two of them, such as how long something took, is not
//! recognised.

use std::borrow::Cow;
use std::ops::Range;

use crate::session::Session;

/// The program may have read the clock before the recording began, and rounds times.
const SLACK_NS: u64 = 1_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Shorter numbers are sizes and durations rather than times.
const LEAST_DIGITS: usize = 5;
/// The first whole number that is a time since the machine started: ten seconds in ns, almost three hours in us.
const FIRST_UPTIME: u64 = 10_000_000_000;
/// The digits of a fraction that belongs to a time since the machine started.
const UPTIME_DIGITS: usize = 3;
/// What stands for a whole number since 1970, and how many ns it counts.
const SINCE_1970: [(&str, u64); 4] = [
    ("CLOCK(s)", SECOND_NS),
    ("CLOCK(ms)", 1_000_000),
    ("CLOCK(us)", 1_000),
    ("CLOCK(ns)", 1),
];
/// The same since the machine started.
const UPTIME: [(&str, u64); 2] = [("UPTIME(us)", 1_000), ("UPTIME(ns)", 1)];

/// The times of one run or of two, in ns.
#[derive(Clone, Debug, Default)]
pub struct ClockTexts {
    since_1970: Vec<Range<u64>>,
    uptimes: Vec<Range<u64>>,
}

impl ClockTexts {
    /// Takes the times of recordings.
    pub fn of(sessions: &[&Session]) -> Self {
        let mut found = Self::default();
        for session in sessions {
            let manifest = session.reader().recording().manifest();
            let lasted = session.extent().duration_ns;
            let start = u64::try_from(manifest.start_unix_ns).unwrap_or(0);
            let starts = (start > 0).then_some(start);
            found.since_1970.extend(starts.map(|at| span(at, lasted)));
            let uptime = manifest.start_monotonic_ns;
            found.uptimes.extend(uptime.map(|at| span(at, lasted)));
        }
        found
    }

    /// Returns a text without these times.
    pub fn without<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut normal = String::new();
        let mut rest = text;
        let mut taken = 0;
        while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
            let begin = text.len() - rest.len() + at;
            let (number, after) = Number::at(&rest[at..]);
            let is_whole = !is_begun(&text[..begin]) && !is_followed(after);
            if is_whole && let Some(stands) = self.time(&number) {
                normal.push_str(&text[taken..begin]);
                normal.push_str(stands);
                taken = text.len() - after.len();
            }
            rest = after;
        }
        match taken {
            0 => Cow::Borrowed(text),
            _ => Cow::Owned(normal + &text[taken..]),
        }
    }

    /// Returns what stands for a number that is one of these times.
    fn time(&self, number: &Number<'_>) -> Option<&'static str> {
        let whole: u64 = match number.whole.len() >= LEAST_DIGITS {
            true => number.whole.parse().ok()?,
            false => return None,
        };
        let Some(fraction) = number.fraction else {
            let is_in = |spans: &[Range<u64>], (_, unit): &(&str, u64)| {
                let ns = whole.checked_mul(*unit);
                ns.is_some_and(|ns| has(spans, ns, unit - 1))
            };
            let mut units = SINCE_1970.iter();
            let found = units.find(|unit| is_in(&self.since_1970, unit));
            let mut units = UPTIME.iter().filter(|_| whole >= FIRST_UPTIME);
            let found = found.or_else(|| units.find(|unit| is_in(&self.uptimes, unit)));
            return found.map(|(stands, _)| *stands);
        };
        let digits: String = fraction
            .chars()
            .chain("000000000".chars())
            .take(9)
            .collect();
        let ns = whole.checked_mul(SECOND_NS)?;
        let ns = ns.checked_add(digits.parse().ok()?)?;
        match () {
            () if has(&self.since_1970, ns, 0) => Some("CLOCK(s.?)"),
            () if fraction.len() >= UPTIME_DIGITS && has(&self.uptimes, ns, 0) => {
                Some("UPTIME(s.?)")
            }
            () => None,
        }
    }
}

/// Tells whether one of the next `more` ns, or a moment itself, lies in one of the spans.
fn has(spans: &[Range<u64>], ns: u64, more: u64) -> bool {
    let last = ns.saturating_add(more);
    spans.iter().any(|span| ns < span.end && span.start <= last)
}

fn span(start: u64, lasted: u64) -> Range<u64> {
    let end = start.saturating_add(lasted).saturating_add(SLACK_NS);
    start.saturating_sub(SLACK_NS)..end
}

/// Digits, and those after a decimal point.
struct Number<'t> {
    whole: &'t str,
    fraction: Option<&'t str>,
}

impl<'t> Number<'t> {
    /// Takes the number that a text begins with. Returns the rest, too.
    fn at(text: &'t str) -> (Self, &'t str) {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, after) = text.split_at(digits(text));
        let fraction = after.strip_prefix('.').filter(|rest| digits(rest) > 0);
        let (fraction, after) = match fraction.map(|rest| rest.split_at(digits(rest))) {
            Some((fraction, after)) => (Some(fraction), after),
            None => (None, after),
        };
        (Self { whole, fraction }, after)
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Tells whether a number after this text is part of a longer word or number, or negative.
fn is_begun(before: &str) -> bool {
    let is_negative = || {
        let sign = before.strip_suffix('-');
        sign.is_some_and(|before| !before.ends_with(is_word))
    };
    before.ends_with(is_word) || before.ends_with('.') || is_negative()
}

/// Tells whether a number goes on in this text.
fn is_followed(after: &str) -> bool {
    let after_point = after.strip_prefix('.');
    after.starts_with(is_word)
        || after_point.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_795_845_600_500_000_000;

    fn clock(uptime_s: u64) -> ClockTexts {
        ClockTexts {
            since_1970: vec![span(START, 3 * SECOND_NS)],
            uptimes: vec![span(uptime_s * SECOND_NS, 3 * SECOND_NS)],
        }
    }

    #[test]
    fn times_of_the_run_alone_are_left_out() {
        let clock = clock(41_234);
        for (text, expected) in [
            ("at 1795845601", "at CLOCK(s)"),
            ("1795845602.25: begun", "CLOCK(s.?): begun"),
            ("[1795845600.000001]", "[CLOCK(s.?)]"),
            ("t=1795845601999 ms", "t=CLOCK(ms) ms"),
            ("1795845601999999 us", "CLOCK(us) us"),
            ("1795845601999999999", "CLOCK(ns)"),
            ("run-1795845601.log, 7", "run-CLOCK(s).log, 7"),
            ("done at 1795845601.", "done at CLOCK(s)."),
            ("1795845601 1795845602", "CLOCK(s) CLOCK(s)"),
            ("up 41234.567 s", "up UPTIME(s.?) s"),
            ("41234567890 us", "UPTIME(us) us"),
            ("41234567890123", "UPTIME(ns)"),
        ] {
            assert_eq!(clock.without(text), expected);
        }
        for other in [
            "",
            "1795845598",
            "1795845605",
            "1795845606.5",
            "1795845590000 ms",
            "-1795845601",
            "x=-1795845601.5",
            "x1795845601",
            "1795845601s",
            "1795845601_2",
            "0x1795845601",
            "21795845601",
            "1.1795845601",
            "1795845601.5.1",
            "41234",
            "41234.56",
            "41239.567",
            "99999999999999999999999 99999999999999999999999.5",
        ] {
            assert_eq!(clock.without(other), other);
        }
    }

    #[test]
    fn a_machine_that_has_just_started_shows_durations() {
        let clock = clock(1234);
        for text in ["1234.567", "1234567000", "took 1234.567890 ms"] {
            assert_eq!(clock.without(text), text);
        }
        assert_eq!(clock.without("1234567000000"), "UPTIME(ns)");
    }
}
