//! Goal: messages with values are parsed as their authors intend.

use crate::template::{Format, Part, Template};

fn value(source: &str, printed: &str, format: Format) -> (String, String, Format) {
    (source.to_owned(), printed.to_owned(), format)
}

fn values(text: &str) -> Vec<(String, String, Format)> {
    let template = Template::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let parts = template.parts.iter();
    let values = parts.filter_map(|part| match part {
        Part::Text(_) | Part::Script { .. } => None,
        Part::Value { expression, format } => Some((
            expression.text().to_owned(),
            expression.to_string(),
            *format,
        )),
    });
    values.collect()
}

fn refused(text: &str) -> String {
    Template::parse(text).unwrap_err().one_line()
}

#[test]
fn expressions_and_formats_are_found() {
    assert_eq!(values("nothing"), []);
    let both = [
        value("p->len", "p->len", Format::Natural),
        value("flags", "flags", Format::Hex),
    ];
    assert_eq!(values("len={p->len}, flags={flags:x}!"), both);
    let name = value("ns::x", "ns::x", Format::Binary);
    assert_eq!(values("{ ns::x : binary }"), [name]);
    let chosen = value("a ? b : c", "(a ? b : c)", Format::Decimal);
    assert_eq!(values("{a ? b : c:d}"), [chosen]);
    let text = value("\"}\" == s", "(\"}\" == s)", Format::Natural);
    assert_eq!(values("{\"}\" == s}"), [text]);
    let debug = value("x", "x", Format::Natural);
    assert_eq!(values("{x:?}"), [debug]);
}

#[test]
fn doubled_braces_are_text() {
    let template = Template::parse("{{{x}}} {{}}").unwrap();
    let [Part::Text(open), Part::Value { .. }, Part::Text(close)] = &template.parts[..] else {
        panic!("{template:?}");
    };
    assert_eq!((open.as_str(), close.as_str()), ("{", "} {}"));
    assert_eq!(template.to_string(), "{{{x}}} {{}}");
}

#[test]
fn mistakes_are_placed_in_the_whole_text() {
    assert_eq!(
        refused("abc {}"),
        "expected an expression, found \"}\" at position 5"
    );
    assert_eq!(
        refused("abc {x"),
        "expected an operator, \":\" or \"}\" at position 6"
    );
    assert_eq!(
        refused("x}"),
        "a \"}\" without \"{\" at position 1; to write the brace itself, double it"
    );
    assert_eq!(
        refused("{x:q}"),
        "unknown format \"q\" at position 3; known are x, d, u, o, b, c, s and a"
    );
    assert_eq!(
        refused("{x:x"),
        "expected an operator, \":\" or \"}\" at position 4"
    );
}
