//! Goal: what is read is read as JavaScript has it, and what is not compiled is refused. Method: texts whose trees are
//! written down in brackets.

use super::{Script, parse};

/// A tree with a bracket around every operator.
fn shown(script: &Script) -> String {
    let all = |list: &[Script]| list.iter().map(shown).collect::<Vec<_>>().join(", ");
    let mark = |optional: bool| if optional { "?." } else { "" };
    match script {
        Script::Number(number) => format!("{number}"),
        Script::Text(text) => format!("{text:?}"),
        Script::Bool(value) => format!("{value}"),
        Script::Null => "null".to_owned(),
        Script::Name(name) => name.clone(),
        Script::List(list) => format!("[{}]", all(list)),
        Script::Pattern(pattern) => format!("{pattern:?}"),
        Script::Member { of, name, optional } => {
            let dot = if *optional { "?." } else { "." };
            format!("{}{dot}{name}", shown(of))
        }
        Script::Index {
            of,
            index,
            optional,
        } => format!("{}{}[{}]", shown(of), mark(*optional), shown(index)),
        Script::Call {
            function,
            arguments,
        } => format!("{}({})", shown(function), all(arguments)),
        Script::Group(of) => format!("{{{}}}", shown(of)),
        Script::Unary(op, of) => format!("({op:?} {})", shown(of)),
        Script::Binary(op, a, b) => format!("({} {op:?} {})", shown(a), shown(b)),
        Script::Conditional {
            condition,
            if_true,
            if_false,
        } => format!(
            "({} ? {} : {})",
            shown(condition),
            shown(if_true),
            shown(if_false)
        ),
    }
}

#[test]
fn expressions_are_read_by_precedence() {
    for (text, tree) in [
        ("a + b * c - d", "((a Add (b Multiply c)) Subtract d)"),
        ("a ** b ** c * d", "((a Power (b Power c)) Multiply d)"),
        (
            "a === b && c !== d || !e",
            "(((a StrictEqual b) And (c StrictNotEqual d)) Or (Not e))",
        ),
        (
            "a | b ^ c & d == e",
            "(a BitOr (b BitXor (c BitAnd (d Equal e))))",
        ),
        (
            "a << 2 >>> 1 < b",
            "(((a ShiftLeft 2) ShiftRightUnsigned 1) Less b)",
        ),
        ("a?.5:b", "(a ? 0.5 : b)"),
        ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
        ("p?.next?.[1].x", "p?.next?.[1].x"),
        ("(p?.next).x ?? 3", "({p?.next}.x Coalesce 3)"),
        ("[1, 'a',].includes(x, )", "[1, \"a\"].includes(x)"),
        (
            "typeof x === 'string'",
            "((TypeOf x) StrictEqual \"string\")",
        ),
        ("typeofx", "typeofx"),
        ("- -x + ~y", "((Negate (Negate x)) Add (Complement y))"),
        ("$rax > $('p->x')", "($rax Greater $(\"p->x\"))"),
        ("f().g[h]", "f().g[h]"),
    ] {
        let read = parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        assert_eq!(shown(&read), tree, "{text}");
    }
}

#[test]
fn numbers_and_texts_have_their_values() {
    for (text, number) in [
        ("0", 0.0),
        ("1_000", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1e3),
        ("1.5e-3", 1.5e-3),
        ("2E+2", 200.0),
        ("0x1F", 31.0),
        ("0b101", 5.0),
        ("0o17", 15.0),
        ("0.25", 0.25),
        ("9007199254740993", 9007199254740992.0),
    ] {
        assert_eq!(parse(text), Ok(Script::Number(number)), "{text}");
    }
    for (text, value) in [
        (r#""a'b""#, "a'b"),
        (r"'\x41\u0042\u{1F600}\0\n\q'", "AB\u{1F600}\0\nq"),
        ("`two\nlines $ {}`", "two\nlines $ {}"),
        ("''", ""),
    ] {
        assert_eq!(parse(text), Ok(Script::Text(value.to_owned())), "{text}");
    }
}

#[test]
fn regular_expressions_without_anything_special_are_texts() {
    for (text, wanted) in [
        ("/abc/", Some(("abc", false, false))),
        ("/^a-b$/", Some(("a-b", true, true))),
        (r"/\.c$/", Some((".c", false, true))),
        ("/^/", Some(("", true, false))),
        ("/=x/", Some(("=x", false, false))),
        ("/a.c/", None),
        ("/a/i", None),
        ("/a$b/", None),
        ("/a^/", None),
        (r"/\d/", None),
        ("/[/]/", None),
        ("/abc", None),
    ] {
        let read = match parse(text) {
            Ok(Script::Pattern(p)) => Some((p.text, p.at_start, p.at_end)),
            _ => None,
        };
        let wanted = wanted.map(|(text, a, b)| (text.to_owned(), a, b));
        assert_eq!(read, wanted, "{text}");
    }
}

#[test]
fn what_is_not_compiled_is_refused() {
    for text in [
        "",
        "a = 1",
        "a += 1",
        "a++",
        "--a",
        "x => x",
        "(a, b)",
        "a, b",
        "new X()",
        "function() {}",
        "{a: 1}",
        "...a",
        "a in b",
        "a instanceof b",
        "010",
        "08",
        "1n",
        "0x1n",
        "3px",
        "1__e",
        "a.1",
        "a..b",
        "`${a}`",
        "f`x`",
        "'open",
        r"'\8'",
        r"'\ud83d'",
        "a // b",
        "a /* b */",
        "a <!--b",
        "a ? b",
        "[1, , 2]",
        "p?.(1)",
        "await x",
        "state.n",
        "a b",
        "#x",
        "a->b",
        "a::b",
        "a @ b",
        "'a\nb'",
        "0x",
        "0x20000000000001",
    ] {
        assert!(parse(text).is_err(), "{text}: {:?}", parse(text));
    }
    let deep = format!("{}a{}", "(".repeat(500), ")".repeat(500));
    assert!(parse(&deep).is_err());
    assert!(parse(&"!".repeat(5000)).is_err());
    assert!(parse(&vec!["a"; 5000].join("+")).is_err());
    assert!(parse(&vec!["a"; 5000].join(".")).is_err());
    assert!(parse(&vec!["a"; 5000].join("**")).is_err());
}
