//! Options for probes that are set before a program runs: those of `record` and `start`.
//!
//! A condition belongs to the logpoint before it, so the order of these options matters.

use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, error::ErrorKind};
use server::location::Target;
use server::session::{FirstLogpoint, Probes};

/// Probes that are set before a program runs.
#[derive(Clone, Debug, Default)]
pub struct Probing {
    /// All of them; another option says whether they may wait.
    pub probes: Probes,
}

const LOG_WRITES: &str = "log_writes";
const LOGPOINT: &str = "logpoint";
const CONDITION: &str = "condition";

impl Probing {
    /// Returns whether any probe was requested.
    pub fn is_given(&self) -> bool {
        !self.probes.is_empty()
    }

    /// Returns the probes, which may wait for modules with `pending`.
    pub fn probes(&self, pending: bool) -> Probes {
        Probes {
            pending,
            ..self.probes.clone()
        }
    }

    fn read(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let texts = |id: &str| -> Vec<String> {
            let found = matches.get_many::<String>(id);
            found.map_or_else(Vec::new, |found| found.cloned().collect())
        };
        let indices = |id: &str| -> Vec<usize> {
            let found = matches.indices_of(id);
            found.map_or_else(Vec::new, Iterator::collect)
        };
        let mut logpoints: Vec<FirstLogpoint> = texts(LOGPOINT)
            .chunks_exact(2)
            .map(|pair| FirstLogpoint {
                at: Target::Text(pair[0].clone()),
                message: pair[1].clone(),
                condition: None,
            })
            .collect();
        let stand: Vec<usize> = indices(LOGPOINT).into_iter().step_by(2).collect();
        for (at, condition) in indices(CONDITION).into_iter().zip(texts(CONDITION)) {
            let before = stand.iter().take_while(|place| **place < at).count();
            let point = before
                .checked_sub(1)
                .and_then(|index| logpoints.get_mut(index));
            match point {
                Some(point) if point.condition.is_none() => point.condition = Some(condition),
                _ => {
                    let what = format!(
                        "--condition '{condition}' belongs to no --logpoint: write it after one\n"
                    );
                    return Err(clap::Error::raw(ErrorKind::ArgumentConflict, what));
                }
            }
        }
        Ok(Self {
            probes: Probes {
                log_writes: texts(LOG_WRITES),
                logpoints,
                pending: false,
            },
        })
    }
}

impl FromArgMatches for Probing {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::read(matches)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::read(matches)?;
        Ok(())
    }
}

impl clap::Args for Probing {
    fn augment_args(command: Command) -> Command {
        command
            .arg(
                Arg::new(LOG_WRITES)
                    .long("log-writes")
                    .value_name("EXPRESSION|0xADDRESS[:LENGTH]")
                    .action(ArgAction::Append)
                    .help("Record every write to a global variable, with the line that wrote, the old and the new value; up to four places of 8 bytes; may be repeated"),
            )
            .arg(
                Arg::new(LOGPOINT)
                    .long("logpoint")
                    .value_names(["LOCATION", "MESSAGE"])
                    .num_args(2)
                    .action(ArgAction::Append)
                    .help("Record a message each time the program passes a place (function, file:line or 0xADDRESS); {EXPRESSION} in it is replaced by its value; may be repeated"),
            )
            .arg(
                Arg::new(CONDITION)
                    .long("condition")
                    .value_name("EXPRESSION")
                    .action(ArgAction::Append)
                    .help("Log the preceding --logpoint only if this is true"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        probing: Probing,
    }

    fn read(line: &[&str]) -> Result<Probes, clap::Error> {
        let line = Line::try_parse_from([&["x"], line].concat())?;
        Ok(line.probing.probes)
    }

    #[test]
    fn a_condition_belongs_to_the_logpoint_before_it() {
        let line = [
            "--logpoint",
            "a.c:3",
            "x={x}",
            "--logpoint",
            "f",
            "here",
            "--condition",
            "n > 1",
            "--log-writes",
            "total",
            "--log-writes",
            "0x10:4",
        ];
        let probes = read(&line).unwrap();
        let conditions = probes
            .logpoints
            .iter()
            .map(|point| point.condition.as_deref());
        assert_eq!(conditions.collect::<Vec<_>>(), [None, Some("n > 1")]);
        assert_eq!(probes.logpoints[1].message, "here");
        assert_eq!(probes.log_writes, ["total", "0x10:4"]);
        let first = read(&[
            "--logpoint",
            "f",
            "a",
            "--condition",
            "1",
            "--logpoint",
            "g",
            "b",
        ]);
        assert_eq!(first.unwrap().logpoints[0].condition.as_deref(), Some("1"));
    }

    #[test]
    fn a_condition_of_nothing_is_refused() {
        assert!(read(&["--condition", "1"]).is_err());
        assert!(
            read(&[
                "--logpoint",
                "f",
                "a",
                "--condition",
                "1",
                "--condition",
                "2"
            ])
            .is_err()
        );
        assert!(read(&["--logpoint", "f"]).is_err());
    }
}
