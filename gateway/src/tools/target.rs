//! The location of a breakpoint or a logpoint: a function, or a line of a source file.

use server::location::{AddressTarget, FunctionTarget, LineTarget, Target};
use server::protocol::Failure;

/// Makes a place from the parameters of a tool.
///
/// # Errors
/// They name none, or two.
pub fn target(
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    address: Option<String>,
) -> Result<Target, Failure> {
    match (function, file, line, address) {
        (Some(function), None, None, None) => Ok(Target::Function(FunctionTarget { function })),
        (None, Some(file), Some(line), None) => Ok(Target::Line(LineTarget {
            file,
            line,
            column: None,
        })),
        (None, None, None, Some(address)) => Ok(Target::Address(AddressTarget { address })),
        _ => Err(
            Failure::bad_request("a place is a function, or a file and a line")
                .hint("write {\"function\": \"parse\"} or {\"file\": \"parse.c\", \"line\": 12}"),
        ),
    }
}

/// Reads the numbers of breakpoints or logpoints.
///
/// # Errors One is not a number.
pub fn ids(texts: &[String]) -> Result<Vec<u32>, Failure> {
    let number = |text: &String| {
        let wrong = || Failure::bad_request(format!("\"{text}\" is not the id of anything"));
        text.parse().map_err(|_| wrong())
    };
    texts.iter().map(number).collect()
}

/// The time limit of a tool that waits, in seconds.
pub fn seconds(timeout_ms: Option<u64>) -> f64 {
    timeout_ms.unwrap_or(20_000).min(600_000) as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_without_a_limit_lasts_20_seconds_and_none_lasts_longer_than_10_minutes() {
        assert_eq!(seconds(None), 20.0);
        assert_eq!(seconds(Some(1_500)), 1.5);
        assert_eq!(seconds(Some(u64::MAX)), 600.0);
    }
}
