//! JUnit's XML, which build servers read as the result of a test.

use query::compare::Comparison;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use values::quantity::count;

use super::findings::{Finding, Weight};

/// Writes the comparison as a test suite: each thread, the output and the functions are test cases.
///
/// # Errors
/// None in practice: the report is written to memory.
pub fn junit(
    comparison: &Comparison,
    findings: &[Finding],
) -> Result<String, quick_junit::SerializeError> {
    let name = format!("{} and {}", comparison.a.name, comparison.b.name);
    let mut suite = TestSuite::new(name);
    for thread in &comparison.threads {
        let case = format!("thread {} {}", thread.function, thread.number);
        let status = match thread.differing > 0 || thread.parting.is_some() || thread.is_untold {
            true => failure(
                &format!("{} of calls", count(thread.differing, "difference")),
                None,
            ),
            false => TestCaseStatus::success(),
        };
        suite.add_test_case(TestCase::new(case, status));
    }
    let mut passed = vec![
        ("output", "the output is the same"),
        ("event", "exit, exceptions and other events are the same"),
        ("function", "the calls of all functions are the same"),
        ("thread", "both have the same threads"),
        ("only", "both have the same functions"),
    ];
    for finding in findings {
        passed.retain(|(kind, _)| *kind != finding.kind);
        let case = format!("{} {}", finding.kind, finding.subject);
        let status = match finding.weight {
            Weight::Note => TestCaseStatus::skipped(),
            Weight::Error | Weight::Warning => failure(&finding.message, finding.place.as_ref()),
        };
        suite.add_test_case(TestCase::new(case, status));
    }
    for (_, case) in passed {
        suite.add_test_case(TestCase::new(case, TestCaseStatus::success()));
    }
    let mut report = Report::new("hindsight compare");
    report.add_test_suite(suite);
    report.to_string()
}

fn failure(message: &str, place: Option<&(String, u32)>) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_message(message);
    if let Some((file, line)) = place {
        status.set_description(format!("{file}:{line}"));
    }
    status
}
