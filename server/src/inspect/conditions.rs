//! Parses conditions and log messages as soon as they arrive, so that a mistake is reported with its position.

use expr::Expression;
use recorder::live::{Condition, DisplayFormat, Displaying, Message};
use values::Units;

use super::values::{ValueFormat, of_parse};
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

/// How a displayed value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayedAs {
    /// As a value.
    Value(ValueFormat),
    /// As the memory at this address.
    Memory(Units),
    /// As so many instructions from this address on.
    Instructions(usize),
}

/// Splits what is to be displayed into its format and its expression: `n`, `/x n`, `/i $pc`, `/4xw &table`.
///
/// # Errors
/// [`Code::BadRequest`]: there is no such format, or no expression.
pub fn display_parts(text: &str) -> Result<(DisplayedAs, &str), Failure> {
    let text = text.trim();
    let Some(rest) = text.strip_prefix('/') else {
        return Ok((DisplayedAs::Value(ValueFormat::Natural), text));
    };
    let (letter, expression) = rest
        .split_once(char::is_whitespace)
        .ok_or_else(|| Failure::bad_request("name what to display: display /x n"))?;
    let format = match letter {
        "s" => ValueFormat::Natural,
        "x" => ValueFormat::Hex,
        "z" => ValueFormat::Zeros,
        "d" => ValueFormat::Decimal,
        "u" => ValueFormat::Unsigned,
        "o" => ValueFormat::Octal,
        "t" => ValueFormat::Binary,
        "c" => ValueFormat::Char,
        "a" => ValueFormat::Address,
        "f" => ValueFormat::Float,
        letters => return Ok((of_memory(letters)?, expression.trim())),
    };
    Ok((DisplayedAs::Value(format), expression.trim()))
}

/// Parses a format with a count or a size: `4xw`, `3i`.
fn of_memory(letters: &str) -> Result<DisplayedAs, Failure> {
    let has_size = letters.contains(|c: char| c.is_ascii_digit() || "bhwg".contains(c));
    match Units::read(letters) {
        Ok(units) if units.is_backwards => {
            let refusal = "display shows no memory before an address";
            Err(Failure::bad_request(refusal).hint("give the address of the first unit"))
        }
        Ok(units) if units.letter == 'i' => Ok(DisplayedAs::Instructions(units.count)),
        Ok(units) if units.letter != 's' && has_size => Ok(DisplayedAs::Memory(units)),
        _ => {
            let refusal = Failure::bad_request(format!("display has no format /{letters}"));
            Err(refusal.hint(
                "a format is one of x z d u o t c a f i s, or, for memory, a count, a format and a size: display/4xw &table",
            ))
        }
    }
}

/// Parses what is to be displayed at every stop. Names are resolved, and types distinguished from variables, only at the stop.
///
/// # Errors
/// [`Code::EvalFailed`], with the position; and as for [`display_parts`].
pub fn displayable(text: &str) -> Result<Displaying, Failure> {
    let (format, expression) = display_parts(text)?;
    let parsed = Expression::parse_with_any_types(expression)
        .map_err(|error| of_parse(Code::EvalFailed, "expression", expression, &error))?;
    Ok(Displaying {
        text: text.trim().to_owned(),
        expression: parsed,
        format: match format {
            DisplayedAs::Value(format) => DisplayFormat::Value(format.into()),
            DisplayedAs::Memory(units) => DisplayFormat::Memory(units),
            DisplayedAs::Instructions(count) => DisplayFormat::Instructions(count),
        },
    })
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
        let hex = displayable("/x a + 1").unwrap();
        assert_eq!(
            (hex.text.as_str(), hex.expression.text()),
            ("/x a + 1", "a + 1")
        );
        assert_eq!(
            displayable("/i $pc").unwrap().format,
            DisplayFormat::Instructions(1)
        );
        let memory = displayable("/4xb &a").unwrap().format;
        let DisplayFormat::Memory(units) = memory else {
            panic!("{memory:?}");
        };
        assert_eq!((units.count, units.bytes), (4, 1));
        assert!(displayable("/2s a").is_err(), "no texts");
        for before in ["/-2xw &a", "/-2i $pc"] {
            assert!(displayable(before).is_err(), "{before}");
        }
        assert_eq!(displayable("/q a").unwrap_err().code, Code::BadRequest);
        assert_eq!(displayable("a +").unwrap_err().details.position, Some(3));
        message("len={p->len} {{x}}").unwrap();
        let wrong = message("len={p->}").unwrap_err();
        assert_eq!(wrong.code, Code::InvalidCondition);
        assert_eq!(wrong.details.position, Some(8));
        assert!(wrong.message.ends_with(" at position 8"), "{wrong:?}");
    }
}
