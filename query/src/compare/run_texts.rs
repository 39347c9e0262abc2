//! What texts have of the run that wrote them: dates and numbers of its clock, and names in its folder of temporary files.
//!
//! Only a date at which one of the two programs ran is one of these. It keeps its form, and its distance from UTC where that is
//! clear, so a program that takes another time zone differs. A time without a date is recognised only where the zone is clear.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::clock_texts::ClockTexts;
use crate::session::Session;

/// A clock may be read before the recording begins, and dates are rounded.
const SLACK_S: i64 = 2;
const DAY_S: i64 = 86_400;
/// Time zones are so many seconds apart at least.
const ZONE_S: i64 = 900;
/// The zones, in these units from UTC.
const ZONES: Range<i64> = -48..57;
/// Bytes of a date and a time as ISO 8601 has them, without parts of seconds.
const ISO_BYTES: usize = 19;
const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";

/// ISO 8601 and the like, with the time or without; `asctime` and `date`; the dates of mails and of HTTP; times of the day.
static DATES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let month = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)";
    let day = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
    let time = |n: u8| format!(r"(?P<h{n}>\d\d):(?P<m{n}>\d\d):(?P<s{n}>\d\d)");
    let iso = format!(
        r"\b(?P<y1>\d{{4}})[-/](?P<o1>\d\d)[-/](?P<d1>\d\d)(?:[T ]{}(?P<f1>[.,]\d{{1,9}})?(?P<z1>Z| ?[+-]\d\d:?\d\d)?)?\b",
        time(1)
    );
    let asctime = format!(
        r"\b{day} (?P<o2>{month}) (?P<d2>[ \d]\d) {}(?P<z2> [A-Z]{{2,5}})? (?P<y2>\d{{4}})\b",
        time(2)
    );
    let mail = format!(
        r"\b{day}, (?P<d3>\d\d?) (?P<o3>{month}) (?P<y3>\d{{4}}) {}(?P<z3> [A-Z]{{2,5}}| [+-]\d{{4}})?\b",
        time(3)
    );
    let of_day = format!(r"\b{}(?P<f4>[.,]\d{{1,9}})?\b", time(4));
    Regex::new(&format!("{iso}|{asctime}|{mail}|{of_day}")).ok()
});

/// What two runs have of their own.
#[derive(Clone, Debug, Default)]
pub struct RunTexts {
    /// When they ran, in seconds since 1970.
    spans: Vec<Range<i64>>,
    /// No time of one run is one of the other in another zone.
    tells_zones: bool,
    /// No day began while they ran, in any zone.
    tells_days: bool,
    /// Their folders of temporary files, each with a slash at its end.
    folders: Vec<String>,
    /// The numbers that are times of both.
    clock: ClockTexts,
    /// Those of each.
    own_clocks: [ClockTexts; 2],
}

impl RunTexts {
    /// Takes both recordings.
    pub fn of(a: &Session, b: &Session) -> Self {
        let mut found = Self::during(vec![span(a), span(b)].into_iter().flatten().collect());
        found.folders = [a, b].into_iter().filter_map(folder).collect();
        found.folders.dedup();
        found.clock = ClockTexts::of(&[a, b]);
        found.own_clocks = [a, b].map(|one| ClockTexts::of(&[one]));
        found
    }

    fn during(spans: Vec<Range<i64>>) -> Self {
        let is_short = spans.iter().all(|span| span.end - span.start < ZONE_S / 2);
        let apart = |a: &Range<i64>, b: &Range<i64>| {
            let between = (b.start - a.start).rem_euclid(ZONE_S);
            a == b
                || between > a.end - a.start && ZONE_S - between > b.end - b.start
                || (b.start - a.start).abs() < ZONE_S / 2
        };
        let mut pairs = spans.iter().zip(spans.iter().skip(1));
        let quarters = |at: &i64| at.div_euclid(ZONE_S);
        let first = spans.iter().map(|span| span.start).min();
        let last = spans.iter().map(|span| span.end).max();
        Self {
            tells_zones: is_short && pairs.all(|(a, b)| apart(a, b)),
            tells_days: first.as_ref().map(quarters) == last.as_ref().map(quarters),
            spans,
            ..Self::default()
        }
    }

    /// Returns the numbers that are times of either run.
    pub fn clock(&self) -> &ClockTexts {
        &self.clock
    }

    /// Returns those of the first run, and those of the second one.
    pub fn own_clocks(&self) -> &[ClockTexts; 2] {
        &self.own_clocks
    }

    /// Returns the folders of temporary files.
    pub fn folders(&self) -> &[String] {
        &self.folders
    }

    /// Returns a text without the dates of the runs.
    pub fn without_dates<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let may_be = text.contains([':', '-', '/']) && !self.spans.is_empty();
        match DATES.as_ref().filter(|_| may_be) {
            Some(dates) => dates.replace_all(text, |found: &Captures<'_>| {
                let own = found.get(0).map_or("", |found| found.as_str());
                let stands = self.date(found).or_else(|| self.time_of_day(text, found));
                stands.unwrap_or_else(|| own.to_owned())
            }),
            None => Cow::Borrowed(text),
        }
    }

    /// Returns what stands for a date, if one of the programs ran then.
    fn date(&self, found: &Captures<'_>) -> Option<String> {
        let form = (1..=3).find(|form| found.name(&format!("y{form}")).is_some())?;
        let part = |name: char| {
            found
                .name(&format!("{name}{form}"))
                .map(|part| part.as_str())
        };
        let number = |name: char| part(name)?.trim().parse::<i64>().ok();
        let month = match form {
            1 => number('o')?,
            _ => MONTHS.find(part('o')?)? as i64 / 3 + 1,
        };
        let day = days(number('y')?, month, number('d')?)? * DAY_S;
        let own = found.get(0)?.as_str();
        let Some(hour) = number('h') else {
            let is_told = self.is_day(day) && !self.tells_days;
            return is_told.then(|| format!("TODAY({})", without_digits(own)));
        };
        let time = day + hour * 3600 + number('m')? * 60 + number('s')?;
        let is_there = |zone: &i64| {
            let at = time - zone * ZONE_S;
            self.spans.iter().any(|span| span.contains(&at))
        };
        let zone = ZONES.into_iter().find(is_there)?;
        let shape = match form {
            1 => without_digits(own.get(..ISO_BYTES)?) + part('f').map_or("", |_| ".?"),
            2 => "??? ??? ?? ??:??:?? ????".to_owned(),
            _ => "???, ?? ??? ???? ??:??:??".to_owned(),
        };
        let named = part('z').unwrap_or_default();
        Some(match self.tells_zones {
            true => format!("NOW{}({shape}{named})", distance(zone)),
            false => format!("NOW({shape}{named})"),
        })
    }

    /// Returns what stands for a time without a date, if one of the programs ran then in some zone.
    fn time_of_day(&self, text: &str, found: &Captures<'_>) -> Option<String> {
        let part = |name: &str| found.name(name)?.as_str().parse::<i64>().ok();
        let (hour, minute, second) = (part("h4")?, part("m4")?, part("s4")?);
        let own = found.get(0)?;
        // Such as the address of a network card.
        let is_longer =
            text[..own.start()].ends_with([':', '.', ',']) || text[own.end()..].starts_with(':');
        if is_longer || !self.tells_zones || hour > 23 || minute > 59 {
            return None;
        }
        let time = hour * 3600 + minute * 60 + second;
        let is_there = |zone: &i64| {
            let mut spans = self.spans.iter();
            spans.any(|span| {
                (time - zone * ZONE_S - span.start).rem_euclid(DAY_S) < span.end - span.start
            })
        };
        let zone = ZONES.into_iter().find(is_there)?;
        let fraction = found.name("f4").map_or("", |_| ".?");
        Some(format!("NOW{}(??:??:??{fraction})", distance(zone)))
    }

    /// Tells whether a day, in any time zone, is one on which a program ran.
    fn is_day(&self, day: i64) -> bool {
        let first = day - (ZONES.end - 1) * ZONE_S;
        let end = day + DAY_S - ZONES.start * ZONE_S;
        let mut spans = self.spans.iter();
        spans.any(|span| span.start < end && first < span.end)
    }
}

/// The distance of a zone from UTC: `+01:00`.
fn distance(zone: i64) -> String {
    let minutes = zone.abs() * ZONE_S / 60;
    let sign = if zone < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

fn without_digits(text: &str) -> String {
    text.replace(|c: char| c.is_ascii_digit(), "?")
}

/// When a program ran.
fn span(session: &Session) -> Option<Range<i64>> {
    let manifest = session.reader().recording().manifest();
    let start = manifest.start_unix_ns / 1_000_000_000;
    let lasted = i64::try_from(session.extent().duration_ns / 1_000_000_000).ok()?;
    (start > 0).then(|| start - SLACK_S..start.saturating_add(lasted).saturating_add(SLACK_S))
}

/// The folder that a program was given for temporary files. Others than `/tmp` have a name of at least two parts.
fn folder(session: &Session) -> Option<String> {
    let launch = session.reader().recording().manifest().launch.as_ref()?;
    let mut values = launch
        .env
        .iter()
        .filter_map(|pair| pair.strip_prefix(b"TMPDIR="));
    let value = String::from_utf8(values.next()?.to_vec()).ok()?;
    let value = value.trim_end_matches('/');
    let is_deep = value.starts_with('/') && value[1..].contains('/');
    is_deep.then(|| format!("{value}/"))
}

/// Counts the days from 1970 to a date.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March have the leap day at their end.
    let (year, month) = match month {
        3.. => (year, month - 3),
        _ => (year - 1, month + 9),
    };
    let of_year = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(of_year + (153 * month + 2) / 5 + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_the_run_alone_are_left_out() {
        // 2026-11-28 06:00:00 UTC, for a minute; and a day later.
        let start = 1_795_845_600;
        let runs = RunTexts::during(vec![start..start + 60, start + 87_000..start + 87_060]);
        assert!(runs.tells_zones && !runs.tells_days);
        for (text, expected) in [
            (
                "at 2026-11-28T06:00:10Z.",
                "at NOW+00:00(????-??-??T??:??:??Z).",
            ),
            (
                "at 2026/11/28 07:00:10,123456",
                "at NOW+01:00(????/??/?? ??:??:??.?)",
            ),
            (
                "2026-11-28 07:00:10+02:00",
                "NOW+01:00(????-??-?? ??:??:??+02:00)",
            ),
            (
                "Sat Nov 28 06:00:59 2026",
                "NOW+00:00(??? ??? ?? ??:??:?? ????)",
            ),
            (
                "Sat Nov 28 06:00:59 UTC 2026!",
                "NOW+00:00(??? ??? ?? ??:??:?? ???? UTC)!",
            ),
            (
                "Date: Sat, 28 Nov 2026 01:00:30 -0500",
                "Date: NOW-05:00(???, ?? ??? ???? ??:??:?? -0500)",
            ),
            ("[06:00:30] begun", "[NOW+00:00(??:??:??)] begun"),
            ("07:00:30.125 begun", "NOW+01:00(??:??:??.?) begun"),
            ("00:00:05,5", "NOW-06:00(??:??:??.?)"),
            ("took 00:04:10", "took 00:04:10"),
            ("06:00:30:11:22:33", "06:00:30:11:22:33"),
            ("11:06:00:30", "11:06:00:30"),
            ("1.06:00:30 06:00:30s", "1.06:00:30 06:00:30s"),
            ("99:00:30 06:75:30", "99:00:30 06:75:30"),
            ("log of 2026/11/29", "log of TODAY(????/??/??)"),
            ("2026-11-28 06:02:10", "2026-11-28 06:02:10"),
            ("2025-11-28 06:00:10", "2025-11-28 06:00:10"),
            ("due 2026-12-05", "due 2026-12-05"),
            ("part 12026-11-28", "part 12026-11-28"),
            ("2026-13-28", "2026-13-28"),
        ] {
            assert_eq!(runs.without_dates(text), expected);
        }
    }

    #[test]
    fn days_are_told_unless_one_began_somewhere() {
        // From 06:00:10 to 06:01:10, and from 05:59:50.
        let start = 1_795_845_610;
        let runs = RunTexts::during(vec![start..start + 5, start + 30..start + 60]);
        assert_eq!(runs.without_dates("due 2026-11-28"), "due 2026-11-28");
        let runs = RunTexts::during(vec![start - 20..start, start + 30..start + 60]);
        assert_eq!(
            runs.without_dates("due 2026-11-28"),
            "due TODAY(????-??-??)"
        );
    }

    #[test]
    fn zones_are_told_only_where_they_are_clear() {
        let apart = |seconds: i64| vec![0..60, seconds..seconds + 60];
        assert!(RunTexts::during(apart(30)).tells_zones);
        assert!(!RunTexts::during(apart(ZONE_S + 30)).tells_zones);
        assert!(!RunTexts::during(vec![0..ZONE_S]).tells_zones);
        let long = RunTexts::during(vec![0..ZONE_S]);
        assert_eq!(long.without_dates("00:00:30 begun"), "00:00:30 begun");
    }

    #[test]
    fn days_are_counted_from_1970() {
        for (date, expected) in [
            ((1970, 1, 1), Some(0)),
            ((2000, 2, 29), Some(11_016)),
            ((2026, 11, 28), Some(20_785)),
            ((2026, 0, 1), None),
        ] {
            assert_eq!(days(date.0, date.1, date.2), expected);
        }
    }
}
