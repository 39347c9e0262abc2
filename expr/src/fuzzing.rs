//! Feeds arbitrary text to the parsers of expressions and templates. No text may cause a panic.

use crate::{Expr, Template, parse, parse_assignment, parse_with};

/// Parses `data` as an expression, an assignment and a template. A parsed text must have the same meaning after
/// printing.
///
/// # Panics
/// The meaning differs, or an error's position is outside the text.
pub fn expression(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse(&text) {
        Ok(read) => same_again(&read),
        Err(error) => assert!(error.position <= text.len(), "{error}"),
    }
    // The opposite decision leads through other rules.
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
        // The added parentheses take space.
        Err(error) => assert!(
            printed.len() > crate::MAX_LENGTH || read.height() > 30,
            "{error}"
        ),
    }
}
