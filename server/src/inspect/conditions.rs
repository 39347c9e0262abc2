//! Parses conditions and log messages as soon as they arrive, so that a mistake is reported with its position.

use expr::Expression;
use recorder::live::{Condition, Message};

use super::values::of_parse;
use crate::protocol::{Code, Failure};

/// Parses a condition, if there is one.
///
/// # Errors
/// [`Code::InvalidCondition`], with the position, if the text is an expression of neither Hindsight's language nor
/// JavaScript.
pub fn condition(text: Option<&str>) -> Result<Option<Condition>, Failure> {
    let parsed = text.map(|text| {
        Condition::parse(text)
            .map_err(|error| of_parse(Code::InvalidCondition, "condition", text, &error))
    });
    parsed.transpose()
}

/// Parses a log message.
///
/// # Errors
/// [`Code::InvalidCondition`], with the position.
pub fn message(text: &str) -> Result<Message, Failure> {
    Message::parse(text).map_err(|error| of_parse(Code::InvalidCondition, "message", text, &error))
}

/// Parses an expression to display at every stop. Names are resolved, and types distinguished from variables, only at
/// the stop.
///
/// # Errors
/// [`Code::EvalFailed`], with the position.
pub fn displayable(text: &str) -> Result<Expression, Failure> {
    Expression::parse_with_any_types(text)
        .map_err(|error| of_parse(Code::EvalFailed, "expression", text, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let refused = |text: &str| condition(Some(text)).unwrap_err();
        let parsed = condition(Some("i > 30 && p->len == 0")).unwrap();
        assert!(matches!(parsed, Some(Condition::Own(_))), "{parsed:?}");
        let wrong = refused("i >");
        assert_eq!(wrong.code, Code::InvalidCondition);
        assert_eq!(wrong.details.position, Some(3));
        assert!(wrong.message.ends_with(" at position 3"), "{wrong:?}");
        let parsed = condition(Some("[1, 2].includes(i) && name.startsWith('x')")).unwrap();
        assert!(
            matches!(parsed, Some(Condition::JavaScript(_))),
            "{parsed:?}"
        );
        let wrong = refused("items.some(i => i.price >)");
        assert_eq!(wrong.details.position, Some(25));
        assert!(wrong.message.contains("line 1, column 26"), "{wrong:?}");
        assert!(!wrong.message.contains("at position"), "once: {wrong:?}");
        assert_eq!(condition(None).unwrap(), None);
        displayable("(order_t *)a").unwrap();
        assert_eq!(displayable("a +").unwrap_err().details.position, Some(3));
        message("len={p->len} {{x}}").unwrap();
        let wrong = message("len={p->}").unwrap_err();
        assert_eq!(wrong.code, Code::InvalidCondition);
        assert_eq!(wrong.details.position, Some(8));
        assert!(wrong.message.ends_with(" at position 8"), "{wrong:?}");
    }
}
