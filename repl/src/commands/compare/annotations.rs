//! Annotations as GitHub shows them beside the source ("Workflow commands for GitHub Actions").

use std::fmt::Write;

use super::findings::{Finding, Weight};
use super::sarif::within;
use crate::render::escaped;

/// GitHub shows ten of each level for a step.
const MOST: usize = 10;

/// Writes one line for each relevant finding, up to ten per level.
pub fn annotations(findings: &[Finding]) -> String {
    let mut text = String::new();
    for weight in [Weight::Error, Weight::Warning] {
        for finding in findings.iter().filter(|f| f.weight == weight).take(MOST) {
            let level = match weight {
                Weight::Error => "error",
                Weight::Warning | Weight::Note => "warning",
            };
            let mut properties = format!("title=hindsight {}", property(finding.kind));
            if let Some((file, line)) = &finding.place {
                write!(properties, ",file={},line={line}", property(&within(file)))
                    .expect("a String takes all");
            }
            writeln!(text, "::{level} {properties}::{}", data(&finding.message))
                .expect("a String takes all");
        }
    }
    text
}

fn data(text: &str) -> String {
    // What the program printed may control the terminal of those who read the log.
    let lines: Vec<_> = text.split('\n').map(escaped).collect();
    let text = lines.join("\n");
    text.replace('%', "%25").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_in_a_command_is_escaped() {
        let finding = Finding {
            kind: "suspect",
            subject: "f".to_owned(),
            message: "100 % of a,b:\nmore\x1b[2J\r".to_owned(),
            weight: Weight::Error,
            place: Some(("src/a,b.c".to_owned(), 7)),
            near: None,
            difference: None,
            repeated: 0,
        };
        assert_eq!(
            annotations(&[finding]),
            "::error title=hindsight suspect,file=src/a%2Cb.c,line=7::100 %25 of a,b:%0Amore\\x1b[2J\\r\n"
        );
    }
}
