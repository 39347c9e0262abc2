//! Feeds arbitrary text to the readers of expressions and templates; no text may make them panic.

use crate::{Expr, Template, parse, parse_assignment, parse_with};

/// Reads `data` as an expression, an assignment and a template. What is read must mean the same when it is printed.
///
/// # Panics
/// When it does not, or when an error's place is outside the text.
pub fn expression(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse(&text) {
        Ok(read) => same_again(&read),
        Err(error) => assert!(error.position <= text.len(), "{error}"),
    }
    // Deciding the other way leads through other rules.
    let _ = parse_with(&text, &|_| true);
    if let Ok(assignment) = parse_assignment(&text) {
        same_again(&assignment.place);
    }
    match Template::parse(&text) {
        Ok(template) => {
            let printed = template.to_string();
            if let Ok(again) = Template::parse(&printed) {
                assert_eq!(again.to_string(), printed);
            } else {
                assert!(printed.len() > text.len(), "{printed}");
            }
        }
        Err(error) => assert!(error.position <= text.len(), "{error}"),
    }
}

fn same_again(read: &Expr) {
    let printed = read.to_string();
    match parse(&printed) {
        Ok(again) => assert_eq!(
            again.without_positions(),
            read.without_positions(),
            "{printed}"
        ),
        // All the parentheses take room.
        Err(error) => assert!(
            printed.len() > crate::MAX_LENGTH || read.height() > 30,
            "{error}"
        ),
    }
}
