//! Locations as users write them: `function`, `file:line`, `file:line:column`, `*0xADDRESS`, `0xADDRESS`, or a line of
//! the selected file: `12`, or `+2` and `-2` from the current one.

use serde::{Deserialize, Serialize};

use crate::protocol::{Code, Failure};

/// A location on the wire, in one of these forms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Target {
    /// The text of a user.
    Text(String),
    /// A function name or a glob.
    Function(FunctionTarget),
    /// A line.
    Line(LineTarget),
    /// An address.
    Address(AddressTarget),
}

/// A function name or a glob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionTarget {
    /// Its name, with scopes: `audio::process`, `Filter::*`.
    pub function: String,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineTarget {
    /// The file, or the end of its path.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// An address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddressTarget {
    /// The address, in hexadecimal.
    pub address: String,
}

/// A parsed location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedLocation {
    /// The functions that match.
    Function(String),
    /// A line.
    Line(LineTarget),
    /// A line of the selected file.
    LineHere(LineHere),
    /// An address.
    Address(u64),
}

/// A line of the selected file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineHere {
    /// Its number, from 1.
    Number(u32),
    /// So many lines after the current one, or before it if negative.
    Offset(i64),
}

impl Target {
    /// Parses the location.
    ///
    /// # Errors
    /// [`Code::BadRequest`].
    pub fn parse(&self) -> Result<ParsedLocation, Failure> {
        match self {
            Target::Text(text) => parse(text),
            Target::Function(target) if target.function.trim().is_empty() => Err(empty()),
            Target::Function(target) => {
                Ok(ParsedLocation::Function(target.function.trim().to_owned()))
            }
            Target::Line(target) => checked(target.clone()).map(ParsedLocation::Line),
            Target::Address(target) => address(&target.address).map(ParsedLocation::Address),
        }
    }
}

impl Target {
    /// Returns the expression after `*`, if its value is the address: `*main`, but not `*0x401136`.
    #[must_use]
    pub fn address_expression(&self) -> Option<&str> {
        let Target::Text(text) = self else {
            return None;
        };
        let expression = text.trim().strip_prefix('*')?.trim();
        (!expression.is_empty() && address(expression).is_err()).then_some(expression)
    }
}

impl std::fmt::Display for Target {
    /// Writes the location as a user would.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Text(text) => f.write_str(text),
            Target::Function(target) => f.write_str(&target.function),
            Target::Line(target) => write!(f, "{}:{}", target.file, target.line),
            Target::Address(target) => write!(f, "*{}", target.address),
        }
    }
}

/// Parses a location as users write it.
///
/// # Errors
/// [`Code::BadRequest`].
pub fn parse(text: &str) -> Result<ParsedLocation, Failure> {
    let text = text.trim();
    if text.is_empty() {
        return Err(empty());
    }
    if let Some(rest) = text.strip_prefix('*') {
        return address(rest.trim())
            .map(ParsedLocation::Address)
            .map_err(|failure| {
                failure.hint(format!(
                    "write it as *0x401136; for functions that match: --function '{text}'"
                ))
            });
    }
    if text.starts_with("0x") || text.starts_with("0X") {
        return address(text).map(ParsedLocation::Address);
    }
    if is_number(text) {
        let line = LineHere::Number(number(text)?);
        return Ok(ParsedLocation::LineHere(line));
    }
    if let Some(digits) = text.strip_prefix(['+', '-']).filter(|rest| is_number(rest)) {
        let lines = i64::from(number(digits)?);
        let by = if text.starts_with('-') { -lines } else { lines };
        return Ok(ParsedLocation::LineHere(LineHere::Offset(by)));
    }
    let Some((rest, last)) = text.rsplit_once(':').filter(|(_, last)| is_number(last)) else {
        return Ok(ParsedLocation::Function(text.to_owned()));
    };
    let target = match rest.rsplit_once(':') {
        Some((file, line)) if is_number(line) => LineTarget {
            file: file.to_owned(),
            line: number(line)?,
            column: Some(number(last)?),
        },
        _ => LineTarget {
            file: rest.to_owned(),
            line: number(last)?,
            column: None,
        },
    };
    checked(target).map(ParsedLocation::Line)
}

/// Parses an address: hexadecimal with `0x`, or decimal.
///
/// # Errors
/// [`Code::InvalidAddress`].
pub fn address(text: &str) -> Result<u64, Failure> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    let read = match digits {
        // The standard library accepts a sign, which an address cannot have.
        Some(digits) if !digits.starts_with(['+', '-']) => u64::from_str_radix(digits, 16).ok(),
        None if is_number(text) => text.parse().ok(),
        _ => None,
    };
    read.ok_or_else(|| {
        Failure::new(
            Code::InvalidAddress,
            format!("\"{text}\" is not an address"),
        )
        .hint("write it as 0x401136")
    })
}

fn checked(target: LineTarget) -> Result<LineTarget, Failure> {
    if target.file.trim().is_empty() {
        return Err(Failure::bad_request("the name of the file is empty").hint(FORMS));
    }
    if target.line == 0 {
        return Err(Failure::new(Code::InvalidLine, "lines are counted from 1"));
    }
    if target.column == Some(0) {
        return Err(Failure::new(
            Code::InvalidColumn,
            "columns are counted from 1",
        ));
    }
    Ok(target)
}

const FORMS: &str = "write function, file:line, file:line:column, +LINES or 0xADDRESS";

fn empty() -> Failure {
    Failure::bad_request("the location is empty").hint(FORMS)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(digits: &str) -> Result<u32, Failure> {
    digits.parse().map_err(|_| {
        Failure::new(
            Code::InvalidLine,
            format!("{digits} is greater than any line"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(file: &str, line: u32, column: Option<u32>) -> ParsedLocation {
        ParsedLocation::Line(LineTarget {
            file: file.to_owned(),
            line,
            column,
        })
    }

    #[test]
    fn every_form_is_understood() {
        let function = |name: &str| ParsedLocation::Function(name.to_owned());
        assert_eq!(parse("main").unwrap(), function("main"));
        assert_eq!(parse(" ns::Klass::* ").unwrap(), function("ns::Klass::*"));
        assert_eq!(parse("a.c:12").unwrap(), line("a.c", 12, None));
        assert_eq!(parse("/x/a.c:12:3").unwrap(), line("/x/a.c", 12, Some(3)));
        assert_eq!(parse("a:b.c:12").unwrap(), line("a:b.c", 12, None));
        assert_eq!(parse("*0x40").unwrap(), ParsedLocation::Address(0x40));
        assert_eq!(parse("0X40").unwrap(), ParsedLocation::Address(0x40));
        assert_eq!(parse("*64").unwrap(), ParsedLocation::Address(64));
        let here = |line| ParsedLocation::LineHere(line);
        assert_eq!(parse("42").unwrap(), here(LineHere::Number(42)));
        assert_eq!(parse("+2").unwrap(), here(LineHere::Offset(2)));
        assert_eq!(parse("-12").unwrap(), here(LineHere::Offset(-12)));
        assert_eq!(parse("operator()").unwrap(), function("operator()"));
    }

    #[test]
    fn an_address_may_be_an_expression() {
        let of = |text: &str| Target::Text(text.to_owned());
        assert_eq!(of("*main").address_expression(), Some("main"));
        assert_eq!(of("* $pc + 4").address_expression(), Some("$pc + 4"));
        for text in ["*0x40", "*64", "main", "*"] {
            assert_eq!(of(text).address_expression(), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_place_is_refused() {
        let code = |text: &str| parse(text).unwrap_err().code;
        assert_eq!(code(""), Code::BadRequest);
        assert_eq!(code("  "), Code::BadRequest);
        assert_eq!(code(":12"), Code::BadRequest);
        assert_eq!(code("a.c:0"), Code::InvalidLine);
        assert_eq!(code("a.c:1:0"), Code::InvalidColumn);
        assert_eq!(code("a.c:99999999999"), Code::InvalidLine);
        assert_eq!(code("*main"), Code::InvalidAddress);
        assert_eq!(code("0x"), Code::InvalidAddress);
        assert_eq!(code("0x+1"), Code::InvalidAddress);
        assert_eq!(code("0x11112222333344445"), Code::InvalidAddress);
    }

    #[test]
    fn on_the_wire_it_is_text_or_an_object() {
        let spot = |value| {
            serde_json::from_value::<Target>(value)
                .unwrap()
                .parse()
                .unwrap()
        };
        assert_eq!(spot(json!("a.c:12")), line("a.c", 12, None));
        assert_eq!(
            spot(json!({"file": "a.c", "line": 3})),
            line("a.c", 3, None)
        );
        assert_eq!(
            spot(json!({"address": "0x10"})),
            ParsedLocation::Address(16)
        );
        // A function's name may look like a line.
        let function = json!({"function": "a.c:12"});
        assert_eq!(
            spot(function),
            ParsedLocation::Function("a.c:12".to_owned())
        );
        let both = json!({"function": "f", "file": "a.c", "line": 3});
        assert!(serde_json::from_value::<Target>(both).is_err());
    }
}
