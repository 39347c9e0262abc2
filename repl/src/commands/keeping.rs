//! Options for how a recording is made, shared by `record` and sessions.

use recorder::{OnFull, SnapshotTimes};

use crate::duration::parse as parse_duration;

/// How a recording is made.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Keeping {
    /// What a thread does when the recorder cannot keep up [default: block]
    #[arg(
        long,
        value_name = "POLICY",
        default_value = "block",
        hide_default_value = true
    )]
    pub on_full: FullPolicy,
    /// When to copy the program's memory: start, every=TIME or every=N events (every=100ms, every=5000events; only changed pages), or never [default: start]
    #[arg(long, value_name = "WHEN", default_value = "start", hide_default_value = true, value_parser = parse_snapshot)]
    pub snapshot: SnapshotTimes,
    /// Keep the raw log after it has been converted to columns
    #[arg(long)]
    pub keep_log: bool,
}

/// What a thread does when it finds no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum FullPolicy {
    /// The thread waits: nothing is lost
    #[default]
    Block,
    /// The thread goes on: a gap counts what is lost
    Drop,
}

impl From<FullPolicy> for OnFull {
    fn from(policy: FullPolicy) -> OnFull {
        match policy {
            FullPolicy::Block => OnFull::Block,
            FullPolicy::Drop => OnFull::Drop,
        }
    }
}

impl Keeping {
    /// Returns whether any of the options is given.
    pub fn is_given(&self) -> bool {
        self.keep_log
            || self.on_full != FullPolicy::default()
            || self.snapshot != SnapshotTimes::default()
    }
}

fn parse_snapshot(text: &str) -> Result<SnapshotTimes, String> {
    match (text, text.strip_prefix("every=")) {
        ("start", _) => Ok(SnapshotTimes::AtPauses),
        ("never", _) => Ok(SnapshotTimes::Never),
        (_, Some(interval)) => match interval.strip_suffix("events") {
            Some(count) => match count.trim().parse() {
                Ok(count) => Ok(SnapshotTimes::EveryEvents(count)),
                Err(_) => Err("write how many events, from 1, as in every=5000events".to_owned()),
            },
            None if interval.parse::<f64>().is_ok() => Err(format!(
                "write of what, as in every={interval}s, every={interval}ms or every={interval}events"
            )),
            None => parse_duration(interval).map(SnapshotTimes::Every),
        },
        _ => Err("write start, never, every=100ms, or every=5000events".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_of_snapshots() {
        let every = SnapshotTimes::Every(Duration::from_millis(100));
        assert_eq!(parse_snapshot("every=100ms"), Ok(every));
        assert_eq!(parse_snapshot("start"), Ok(SnapshotTimes::AtPauses));
        assert_eq!(parse_snapshot("never"), Ok(SnapshotTimes::Never));
        let count = NonZeroU64::new(5000).map(SnapshotTimes::EveryEvents);
        assert_eq!(parse_snapshot("every=5000events").ok(), count);
        assert_eq!(parse_snapshot("every=5000 events").ok(), count);
        let bad_counts = [
            "every=events",
            "every=0events",
            "every=100",
            "every=-1events",
            "every=1.5events",
        ];
        let bad_times = [
            "",
            "every",
            "every=",
            "every=0s",
            "100ms",
            "Never",
            "5000events",
        ];
        for bad in bad_counts.into_iter().chain(bad_times) {
            assert!(parse_snapshot(bad).is_err(), "{bad}");
        }
    }
}
