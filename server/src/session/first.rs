//! Probes that are set before a program runs: converts the command line of `record` and `start` to the recorder's probes.

use debuginfo::{AddressSpace, Diagnostic};
use recorder::live::{Action, FirstProbes, Location, LoggedPlace, ProbeSpec};
use serde::{Deserialize, Serialize};

use crate::inspect;
use crate::location::{self, ParsedLocation, Target};
use crate::protocol::{Code, Failure};
use crate::verbs::checked_location;

/// How many bytes an address without a length means.
const WORD: u64 = 8;

/// Probes that are set before a program runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Probes {
    /// Places whose writes are all logged: an expression over global variables, or `0xADDRESS[:LENGTH]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log_writes: Vec<String>,
    /// Logpoints.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub logpoints: Vec<FirstLogpoint>,
    /// All of them may wait for modules that are loaded later.
    pub pending: bool,
}

/// A logpoint that is set before a program runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstLogpoint {
    /// Where.
    pub at: Target,
    /// The text; values replace `{EXPR}`.
    pub message: String,
    /// Only if this is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

impl Probes {
    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.log_writes.is_empty() && self.logpoints.is_empty()
    }

    /// Reads those among the recorded options of a recording.
    #[must_use]
    pub fn of_options(options: &[String]) -> Probes {
        let mut probes = Probes::default();
        let mut words = options.iter().cloned();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--log-writes" => probes.log_writes.extend(words.next()),
                "--logpoint" => {
                    if let (Some(at), Some(message)) = (words.next(), words.next()) {
                        probes.logpoints.push(FirstLogpoint {
                            at: Target::Text(at),
                            message,
                            condition: None,
                        });
                    }
                }
                "--condition" => {
                    if let Some(last) = probes.logpoints.last_mut() {
                        last.condition = words.next();
                    }
                }
                "-f" | "-x" | "--label" => drop(words.next()),
                _ => {}
            }
        }
        probes
    }

    /// Parses them, as far as possible without a program.
    ///
    /// # Errors
    /// [`Code::BadRequest`], [`Code::InvalidAddress`], [`Code::InvalidCondition`]: something has a mistake.
    pub fn parsed(&self) -> Result<FirstProbes, Failure> {
        let logged = self.log_writes.iter().map(|text| {
            Ok(ProbeSpec {
                location: Location::Logged(logged_place(text)?),
                action: Action::LogWrites,
                condition: None,
                hit_count: 0,
            })
        });
        let points = self.logpoints.iter().map(|point| {
            Ok(ProbeSpec {
                location: point_location(&point.at)?,
                action: Action::Log(inspect::message(&point.message)?),
                condition: inspect::condition(point.condition.as_deref())?,
                hit_count: 0,
            })
        });
        Ok(FirstProbes {
            specs: logged.chain(points).collect::<Result<_, Failure>>()?,
            pending: self.pending,
            check,
        })
    }
}

/// Reads what is logged: an expression, or an address with a length.
///
/// # Errors
/// [`Code::BadRequest`], [`Code::InvalidAddress`].
pub fn logged_place(text: &str) -> Result<LoggedPlace, Failure> {
    let text = text.trim();
    if text.is_empty() {
        return Err(
            Failure::bad_request("no place is named whose writes are to be logged")
                .hint("write a global variable, or 0xADDRESS:LENGTH"),
        );
    }
    let is_address = text.starts_with("0x") || text.starts_with("0X");
    if !is_address {
        return Ok(LoggedPlace::Expression(text.to_owned()));
    }
    let (address, len) = match text.split_once(':') {
        Some((address, len)) => {
            let len = location::address(len).map_err(|_| {
                Failure::bad_request(format!("\"{len}\" is not a number of bytes"))
                    .hint("write it as 0x404028:4")
            })?;
            (address, len)
        }
        None => (text, WORD),
    };
    Ok(LoggedPlace::Address {
        address: location::address(address)?,
        len,
    })
}

fn point_location(target: &Target) -> Result<Location, Failure> {
    Ok(match target.parse()? {
        ParsedLocation::Function(name) => Location::Function(name),
        ParsedLocation::Line(line) => Location::Line {
            file: line.file,
            line: line.line,
            column: line.column,
        },
        ParsedLocation::LineHere(_) => {
            let message = format!("{target} names a line of no file");
            return Err(Failure::new(Code::InvalidFile, message).hint("write file:line"));
        }
        ParsedLocation::Address(address) => Location::Address(address),
    })
}

/// Explains why a place does not exist in a program that begins with these modules.
fn check(space: &AddressSpace, spec: &ProbeSpec) -> Result<(), Diagnostic> {
    let checked = checked_location(space, &spec.location);
    checked.map_err(|failure| Diagnostic {
        message: failure.message,
        hint: failure.hint,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_expression_or_an_address_with_a_length() {
        let address = |address, len| LoggedPlace::Address { address, len };
        assert_eq!(logged_place("0x404028:4").unwrap(), address(0x40_4028, 4));
        assert_eq!(logged_place("0x404028").unwrap(), address(0x40_4028, 8));
        assert_eq!(logged_place("0x10:0x20").unwrap(), address(16, 32));
        let expression = LoggedPlace::Expression("f::total".to_owned());
        assert_eq!(logged_place(" f::total ").unwrap(), expression);
        for wrong in ["", "0x", "0x10:", "0x10:four", "0xzz:4"] {
            assert!(logged_place(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn recorded_options_give_the_same_probes() {
        let words = "-x --logpoint --full --log-writes p->x --logpoint a.c:3 n={n} --condition n>1 --logpoint f here";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let probes = Probes::of_options(&words);
        assert_eq!(probes.log_writes, ["p->x"]);
        let points = probes.logpoints.iter();
        let points = points.map(|point| (point.at.to_string(), point.condition.as_deref()));
        let points: Vec<_> = points.collect();
        assert_eq!(
            points,
            [("a.c:3".to_owned(), Some("n>1")), ("f".to_owned(), None)]
        );
    }

    #[test]
    fn mistakes_are_found_before_a_program_runs() {
        let point = |at: &str, message: &str, condition: Option<&str>| Probes {
            logpoints: vec![FirstLogpoint {
                at: Target::Text(at.to_owned()),
                message: message.to_owned(),
                condition: condition.map(str::to_owned),
            }],
            ..Probes::default()
        };
        assert!(point("f", "n={n}", Some("n > 1")).parsed().is_ok());
        for wrong in [
            point("12", "x", None),
            point("", "x", None),
            point("f", "{n", None),
            point("f", "x", Some("n >")),
        ] {
            assert!(wrong.parsed().is_err(), "{wrong:?}");
        }
    }
}
