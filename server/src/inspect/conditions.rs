//! Conditions and log messages, read before they are given to the recorder, so that a mistake is told with its place.

use recorder::live::{check_condition as understood, check_message};

use super::values::of_parse;
use crate::protocol::{Code, Failure};

/// Refuses a condition that is an expression neither of our language nor of JavaScript.
///
/// # Errors
/// [`Code::InvalidCondition`], with the position.
pub fn check_condition(text: &str) -> Result<(), Failure> {
    understood(text).map_err(|error| of_parse(Code::InvalidCondition, "condition", text, &error))
}

/// Refuses a log message whose expressions are none.
///
/// # Errors
/// [`Code::InvalidCondition`], with the position.
pub fn check_template(text: &str) -> Result<(), Failure> {
    check_message(text).map_err(|error| of_parse(Code::InvalidCondition, "message", text, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_told_with_its_place() {
        check_condition("i > 30 && p->len == 0").unwrap();
        let wrong = check_condition("i >").unwrap_err();
        assert_eq!(wrong.code, Code::InvalidCondition);
        assert_eq!(wrong.details.position, Some(3));
        assert!(wrong.message.ends_with(" at position 3"), "{wrong:?}");
        check_condition("[1, 2].includes(i) && name.startsWith('x')").unwrap();
        let wrong = check_condition("items.some(i => i.price >)").unwrap_err();
        assert_eq!(wrong.details.position, Some(25));
        assert!(wrong.message.contains("line 1, column 26"), "{wrong:?}");
        assert!(!wrong.message.contains("at position"), "once: {wrong:?}");
        check_template("len={p->len} {{x}}").unwrap();
        let wrong = check_template("len={p->}").unwrap_err();
        assert_eq!(wrong.code, Code::InvalidCondition);
        assert_eq!(wrong.details.position, Some(8));
        assert!(wrong.message.ends_with(" at position 8"), "{wrong:?}");
    }
}
