//! Goal: JavaScript conditions see a program's values as users expect, end when they must, and change nothing.
//! Method: the engine queries a fake program whose answers are known; texts of all kinds are given as conditions.

use std::{cell::RefCell, rc::Rc};

use expr::MAX_LENGTH;
use proptest::{
    prelude::{Strategy, any},
    prop_assert, prop_assert_eq, prop_oneof,
    test_runner::{Config, TestRunner},
};

use crate::live::condition::Condition;

use super::{
    Scripts,
    condition::Script,
    engine::{Engine, TIME_LIMIT},
    program::{Answer, Handle, Program, Seen},
};

/// Answers without a program. Handle 1 is a list, 2 a structure, 3 a pointer.
struct Made;

fn text(text: &str) -> Seen {
    Seen::Text(text.to_owned())
}

impl Program for Made {
    fn local(&self, name: &str) -> Answer<Option<Seen>> {
        Ok(Some(match name {
            "n" => Seen::Integer(7),
            "name" => text("req-1"),
            "large" => Seen::Integer((1 << 60) + 1),
            "list" => Seen::List(1, 100),
            "endless" => Seen::List(1, 1 << 40),
            "p" | "this" => Seen::Object(2),
            "numbers" => Seen::Pointer(3),
            "nothing" => Seen::Null,
            "ratio" => Seen::Float(0.5),
            "color" => red(),
            "prices" => Seen::Map(vec![
                (text("tea"), Seen::Integer(3)),
                (text("salt"), Seen::Null),
            ]),
            "names" => Seen::Set(vec![text("a"), text("b")]),
            "gone" => Seen::Unknown("gone is optimized out here".to_owned()),
            "$rax" => Seen::Integer(99),
            _ => return Ok(None),
        }))
    }

    fn global(&self, name: &str) -> Option<Seen> {
        match name {
            "total" | "Math" => Some(Seen::Integer(100)),
            "RED" => Some(red()),
            _ => None,
        }
    }

    fn unknown(&self, name: &str) -> String {
        format!("no variable {name:?} here")
    }

    fn argument(&self, number: u32) -> Answer<Seen> {
        match number {
            0 => Ok(Seen::Integer(10)),
            1 => Ok(text("two")),
            _ => Err(format!("no argument {number}")),
        }
    }

    fn argument_count(&self) -> u32 {
        2
    }

    fn expression(&self, asked: &str) -> Answer<Seen> {
        Ok(text(asked))
    }

    fn member(&self, of: Handle, name: &str) -> Answer<Option<Seen>> {
        match (of, name) {
            (2, "price") => Ok(Some(Seen::Integer(3))),
            (2, "next") => Ok(Some(Seen::Object(2))),
            (2, "lost") => Err("its place is not known".to_owned()),
            (_, "$address") => Ok(Some(Seen::Integer(0x1000))),
            _ => Ok(None),
        }
    }

    fn members(&self, _: Handle) -> Vec<String> {
        vec!["price".to_owned(), "next".to_owned()]
    }

    fn missing(&self, _: Handle, name: &str) -> String {
        format!("struct item has no member {name}")
    }

    fn elements(&self, _: Handle, from: u64, count: usize) -> Answer<Vec<Seen>> {
        let element = |at| match at {
            90 => Seen::Unknown("there is no memory at 0x5a".to_owned()),
            at => Seen::Integer(at as i128),
        };
        Ok((from..from + count as u64).map(element).collect())
    }

    fn at(&self, _: Handle, index: i64) -> Answer<Seen> {
        Ok(Seen::Integer(i128::from(index) * 2))
    }

    fn text(&self, _: Handle) -> String {
        "{price = 3}".to_owned()
    }
}

fn red() -> Seen {
    Seen::Enumerator {
        of: "color".to_owned(),
        name: Some("RED".to_owned()),
        number: 4,
    }
}

fn judged(engine: &Engine, script: &Script) -> Answer<bool> {
    engine.holds(script, Rc::new(Made))
}

fn judge(condition: &str) -> Answer<bool> {
    let engine = Engine::new().expect("there is memory");
    let script = engine.compile(condition);
    judged(
        &engine,
        &script.unwrap_or_else(|e| panic!("{condition}: {e:?}")),
    )
}

#[test]
fn values_are_what_people_expect() {
    for condition in [
        "n === 7 && ratio === 0.5 && $rax === 99 && total === 100",
        "typeof large === 'bigint' && large === (1n << 60n) + 1n && large > n",
        "nothing === null && (nothing ?? 5) === 5",
        "['alpha', 'req-1'].includes(name)",
        "name.startsWith('req-') && list.some(i => i > 30)",
        "/^r.*1$/.test(name) && `${name}!` === 'req-1!'",
        "(() => { let n = 0; for (const x of list.slice(0, 5)) n += x; return n === 10 })()",
        "list.length === 100 && list[99] === 99 && list[100] === undefined && Array.isArray(list)",
        "list.slice(64, 66).join() === '64,65' && [...list.slice(0, 2)].length === 2",
        "p.price === 3 && p.next.next.price === 3 && this.price === 3 && 'price' in p && !('x' in p)",
        "JSON.stringify(Object.keys(p)) === '[\"price\",\"next\"]' && String(p) === '{price = 3}'",
        "numbers[0] === 0 && numbers[3] === 6 && numbers[-1] === -2 && numbers.$address === 4096",
        "color === RED && color == 'RED' && color > 3 && color.value === 4 && color.name === 'RED'",
        "[RED].includes(color) && (color & 4) === 4 && `${color}` === 'RED'",
        "prices.get('tea') === 3 && prices.has('salt') && prices.size === 2 && names.has('b')",
        "[...prices.keys()].join() === 'tea,salt' && [...names].join('') === 'ab'",
        "args[0] === 10 && args[1].length === 3 && args.length === 2 && args.name === 'req-1'",
        "[...args].join() === '10,two' && args.includes('two')",
        "$('p->len') === 'p->len'",
        "Math.max(1, 2) === 2",
        "[1, 2, 3].map(n => n * 2).join() === '2,4,6'",
        "((n) => n)(1) === 1 && n === 7",
    ] {
        assert_eq!(judge(condition), Ok(true), "{condition}");
    }
    assert_eq!(
        judge("list.some(i => i < 0 || i > 80 && i < 0) || 0").unwrap_err(),
        "there is no memory at 0x5a"
    );
    assert_eq!(judge("list.slice(0, 64).some(i => i < 0)"), Ok(false));
}

#[test]
fn what_is_not_known_is_an_error_with_its_reason() {
    for (condition, why) in [
        ("gone > 3", "gone is optimized out here"),
        ("nope > 3", "ReferenceError: no variable \"nope\" here"),
        ("p.lost", "its place is not known"),
        ("p.prise > 3", "struct item has no member prise"),
        ("args[7]", "no argument 7"),
        ("nothing.x", "TypeError: cannot read property 'x' of null"),
        ("(() => { throw 3 })()", "it threw 3"),
        ("(() => { throw new Error('mine') })()", "mine"),
    ] {
        assert_eq!(judge(condition).unwrap_err(), why, "{condition}");
    }
}

/// A condition is called with its names as arguments if possible. Evaluated in the scope object, where each name is
/// looked up when it is used, it has the same result.
#[test]
fn names_are_the_same_in_both_ways() {
    let engine = Engine::new().expect("there is memory");
    for condition in [
        "n === 7 && name === 'req-1' && total === 100",
        "typeof nope === 'undefined'",
        "typeof n === 'number'",
        "typeof total === 'number'",
        "n = 3",
        "n += 1",
        "total++",
        "[n] = [3]",
        "nope = 3",
        "(() => { nope = 1 })()",
        "state.n = n, state.n === 7",
        "false && gone > 3",
        "gone > 3",
        "true || nope",
        "nope",
        "[1].some(nope => nope === 1)",
        "[1].some(n => n === 1)",
        "`${n}` === '7' && `${`${name}`}` === 'req-1'",
        "p . price === 3 && p?.price === 3 && p /* . */ .next.price === 3",
        "[...list].length === 100 && Math.max(...list.slice(0, 3)) === 2",
        "({n}).n === 7 && ({n: 1}).n === 1 && ({['n']: n}).n === 7",
        "Math.max(n, 1) === 7 && Math !== total",
        "eval('n') === 7",
        "new Function('return 1')() === 1",
        "(function () { return n })() === 7",
        "(() => { const n = 1; return n })() === 1",
        "(() => { let total = 1; total++; return total })() === 2",
        "this.price === 3",
        "this === undefined",
        "\\u006e === 7",
        "((a, b = n) => b)(1) === 7",
        "nothing === null && undefined === void 0",
        "NaN !== NaN && Infinity > n",
        "/n/.test(name) || 'gone'.length === 4",
        "'gone' === 'gone'",
        "args.name === 'req-1' && args[0] === 10 && $('n') === 'n'",
        "$rax === 99",
        "color === RED && color === color",
        "prices.get('tea') + numbers[1] === 5",
        "large > 3n && ratio < 1",
        "(() => { throw n })()",
        "nope.x + gone",
        "name.nope.x",
    ] {
        let compiled = || {
            let script = engine.compile(condition);
            script.unwrap_or_else(|e| panic!("{condition}: {e:?}"))
        };
        let alone = compiled().in_scope_alone();
        let (direct, scoped) = (judged(&engine, &compiled()), judged(&engine, &alone));
        assert_eq!(direct, scoped, "{condition}");
    }
}

#[test]
fn nothing_is_written() {
    for condition in [
        "n = 5",
        "p.price = 9",
        "list[0] = 1",
        "delete p.price",
        "numbers[0] = 1",
        "list.push(1)",
        "args[0] = 1",
        "total++",
        "Object.defineProperty(p, 'price', {value: 1})",
    ] {
        let why = judge(condition).unwrap_err();
        assert!(
            why.contains("cannot change the program"),
            "{condition}: {why}"
        );
    }
    let why = judge("count = 1").unwrap_err();
    assert!(why.contains("state.count = 1"), "{why}");
}

#[test]
fn each_condition_keeps_a_state_of_its_own() {
    let engine = Engine::new().expect("there is memory");
    let count = "state[n] = (state[n] ?? 0) + 1, state[n] == 3";
    let (one, other) = (
        engine.compile(count).unwrap(),
        engine.compile(count).unwrap(),
    );
    let answers: Vec<_> = (0..4).map(|_| judged(&engine, &one)).collect();
    assert_eq!(answers, [Ok(false), Ok(false), Ok(true), Ok(false)]);
    assert_eq!(judged(&engine, &other), Ok(false));
    for condition in [
        "Array.prototype.mine = 1",
        "globalThis.mine = 1",
        "Math.max = null",
        "Object.prototype.n = 1",
    ] {
        let _ = judged(&engine, &engine.compile(condition).unwrap());
    }
    let unchanged = engine
        .compile("[].mine === undefined && globalThis.mine === undefined && Math.max(1, 2) === 2");
    assert_eq!(judged(&engine, &unchanged.unwrap()), Ok(true));
}

#[test]
fn a_value_of_an_earlier_hit_is_an_error() {
    let engine = Engine::new().expect("there is memory");
    let kept = engine
        .compile("state.p ? state.p.price == 3 : (state.p = p, false)")
        .unwrap();
    assert_eq!(judged(&engine, &kept), Ok(false));
    let why = judged(&engine, &kept).unwrap_err();
    assert!(why.contains("of an earlier hit"), "{why}");
}

#[test]
fn what_takes_too_much_ends() {
    let engine = Engine::new().expect("there is memory");
    for (condition, why) in [
        ("(() => { for (;;); })()", "it was ended after 100 ms"),
        (
            "(() => { for (;;) try { for (;;); } catch { } })()",
            "it was ended after 100 ms",
        ),
        (
            "/(a+)+$/.test('a'.repeat(40) + 'b')",
            "it was ended after 100 ms",
        ),
        ("endless.includes(-1)", "too many"),
        ("(() => { for (const x of endless) ; })()", "too many"),
        ("[].indexOf.call({length: 2 ** 53 - 1}, 1)", "too many"),
        ("'x'.repeat(1e9).length", "too much memory"),
        (
            "['x'.repeat(2e7), 'y'.repeat(2e7)].length",
            "too much memory",
        ),
        (
            "(function f() { return f() })()",
            "Maximum call stack size exceeded",
        ),
        (
            "(() => { let a = []; for (let i = 0; i < 2e4; i++) a = [a]; return String(a) })()",
            "stack",
        ),
    ] {
        let script = engine.compile(condition).unwrap();
        let began = std::time::Instant::now();
        let told = judged(&engine, &script).unwrap_err();
        assert!(told.contains(why), "{condition}: {told}");
        // Other programs may take much of the processor.
        assert!(
            began.elapsed() < TIME_LIMIT * 50,
            "{condition}: {:?}",
            began.elapsed()
        );
        // The next evaluation is not affected.
        assert_eq!(
            judged(&engine, &engine.compile("n === 7").unwrap()),
            Ok(true),
            "{condition}"
        );
    }
}

#[test]
fn nothing_outside_is_in_reach() {
    for condition in [
        "typeof globalThis.require === 'undefined' && typeof globalThis.process === 'undefined'",
        "typeof globalThis.std === 'undefined' && typeof globalThis.os === 'undefined'",
        "typeof globalThis.Atomics === 'undefined' && typeof globalThis.setTimeout === 'undefined'",
        "typeof globalThis.fetch === 'undefined' && typeof globalThis.print === 'undefined'",
    ] {
        assert_eq!(judge(condition), Ok(true), "{condition}");
    }
}

#[test]
fn the_language_is_decided_by_the_text() {
    for (condition, is_script) in [
        ("i > 30", false),
        ("p->len == 0 && strcmp(p->name, \"x\") == 0", false),
        ("a === 3 && v.len() > 2 && v.is_empty()", false),
        ("ns::total > 3", false),
        ("compute(3) > 2", false),
        ("name.startsWith('x')", false),
        ("js: name.startsWith('x')", true),
        (" js:i > 30", true),
        ("js::total > 3", false),
        ("Math.abs(x) > 2", false),
        ("[1, 2].includes(i)", true),
        ("list.some(i => i > 3)", true),
        ("(a ?? b) > 3", true),
        ("/x/.test(name)", true),
        ("typeof a === 'string'", true),
    ] {
        let parsed = Condition::parse(condition);
        let parsed = parsed.unwrap_or_else(|e| panic!("{condition}: {e}"));
        let is_javascript = matches!(parsed, Condition::JavaScript(_));
        assert_eq!(is_javascript, is_script, "{condition}");
    }
}

#[test]
fn mistakes_have_positions() {
    for (condition, position, message) in [
        ("i >", 3, "expected an expression"),
        ("items.some(i => i.price >)", 25, "line 1, column 26"),
        ("[1, 2].includes(i", 17, "JavaScript"),
        ("list.some(i =>\n i >)", 19, "line 2, column 5"),
        ("1) } , function() { return (2 => 1", 3, "JavaScript"),
        ("p->items.some(i => i > 1)", 16, "expected"),
        ("js: p->items.some(i => i > 1)", 6, "p->x is p.x"),
        ("js: i >", 7, "line 1, column 8"),
    ] {
        let error = Condition::parse(condition).unwrap_err();
        assert_eq!(error.position, position, "{condition}: {error}");
        assert!(error.one_line().contains(message), "{condition}: {error}");
    }
    let long = format!("[{}].includes(i)", "1,".repeat(MAX_LENGTH));
    assert!(Condition::parse(&long).is_err());
}

/// A word of either language.
fn word() -> impl Strategy<Value = String> {
    let known = [
        "n", "p", "list", "=>", "(", ")", "[", "]", "{", "}", "'", "\"", "`", "${", "/", "*", "\\",
        "//", "/*", "\n", ";", "function", "return", "class", "yield", "await", "async", "new",
        "this", "state", "args", "$", "->", "::", "=", "==", "===", "...", "?.", "??", ",", "1",
        "0x", "1n", "\u{0}", "\u{2028}", "#x", "@", "with", "import", "super",
    ];
    proptest::sample::select(known.to_vec()).prop_map(str::to_owned)
}

/// A condition to evaluate after any other.
const SOUND: &str = "n === 7 && [1].map(x => x)[0] === 1";

#[test]
fn any_text_is_a_condition_or_has_a_mistake_at_a_place() {
    let words = || proptest::collection::vec(word(), 0..24);
    let texts = prop_oneof![
        words().prop_map(|words| words.join(" ")),
        words().prop_map(|words| words.concat()),
        any::<String>(),
    ];
    let scripts = RefCell::new(Scripts::default());
    let mut runner = TestRunner::new(Config {
        cases: 2000,
        source_file: Some(file!()),
        ..Config::default()
    });
    let ran = runner.run(&texts, |text| {
        let mut scripts = scripts.borrow_mut();
        match Condition::parse(&text) {
            Ok(Condition::JavaScript(source)) => {
                let script = scripts.compile(&source).expect("it compiles");
                let engine = scripts.engine.as_ref().expect("it has compiled");
                // The engine still works after any result.
                let _ = judged(engine, &script);
                let sound = engine.compile(SOUND).expect("it is right");
                prop_assert_eq!(judged(engine, &sound), Ok(true));
            }
            Ok(Condition::Own(_)) => {}
            Err(error) => {
                prop_assert!(error.position <= text.len(), "{}", error);
                prop_assert!(text.is_char_boundary(error.position), "{}", error);
                prop_assert!(!error.message.is_empty());
            }
        }
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
}
