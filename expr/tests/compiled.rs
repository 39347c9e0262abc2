//! Goal: a compiled expression has the evaluator's value, or no answer. Method: random expressions over the variables
//! of real functions, optimised and unoptimised, are computed both ways on machines with random registers and memory.

#[path = "../../debuginfo/tests/common/mod.rs"]
mod common;

use std::sync::Arc;

use common::{Bench, program};
use debuginfo::{AddressSpace, Certainty, Machine, Mapped, Module, Register, Unknown, backtrace};
use expr::{
    Context, Expression, MessagePart, Shown, Template, compile_condition, compile_message,
    evaluate_condition, is_type, parse_with,
};

const BIAS: u64 = 0x5555_5555_4000;

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        mixed(self.0)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (number ^ number >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ number >> 32
}

/// A thread whose registers and memory are derived from a number. One page in five is missing.
struct Fake {
    seed: u64,
    pc: u64,
}

impl Fake {
    fn word(&self, number: u64) -> u64 {
        let random = mixed(self.seed ^ mixed(number));
        match random % 8 {
            0 => 0,
            1 => random >> 60,
            2 => (random >> 56).wrapping_sub(128),
            3 => u64::from(random as u32 >> 20) << 32 | 5,
            4 => f64::from((random >> 48) as i16).to_bits(),
            5 => 0x7fff_0000_0000 + (random >> 44 & !7),
            _ => random,
        }
    }
}

impl Machine for Fake {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        for (at, byte) in (address..).zip(bytes.iter_mut()) {
            if at < 4096 || mixed(self.seed ^ at >> 12).is_multiple_of(5) && at >> 44 != 7 {
                return Err(Unknown::because("not there"));
            }
            *byte = self.word(at >> 3).to_le_bytes()[(at & 7) as usize];
        }
        Ok(Certainty::Known)
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        let value = match register {
            Register::RIP => self.pc,
            Register::RSP | Register::RBP => 0x7fff_0000_8000 + u64::from(register.0) * 64,
            register => self.word(1 << 40 | u64::from(register.0)),
        };
        Ok((value, Certainty::Known))
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        let word = self.word(1 << 41 | u64::from(register.0)).to_le_bytes();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&word);
        bytes[8..].copy_from_slice(&word);
        Ok((bytes, Certainty::Known))
    }
}

struct Grammar {
    numbers: &'static [&'static str],
    pointers: &'static [&'static str],
    types: &'static [&'static str],
}

const OPERATORS: &[&str] = &[
    "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=", "&&",
    "||",
];

impl Grammar {
    fn number(&self, random: &mut Random, depth: usize) -> String {
        let deeper = depth.saturating_sub(1);
        match if depth == 0 {
            random.below(4)
        } else {
            random.below(13)
        } {
            0..3 => random.one(self.numbers).to_owned(),
            3 => random
                .one(&[
                    "0",
                    "1",
                    "7",
                    "100u",
                    "-1",
                    "0xffffffff",
                    "2147483647",
                    "5l",
                    "1.5",
                    "0.1f",
                    "'a'",
                    "true",
                    "$rdi",
                    "4294967296",
                ])
                .to_owned(),
            4 => format!("({}){}", random.one(self.types), self.number(random, 0)),
            5 => format!(
                "{}({})",
                random.one(&["-", "~", "!", "+"]),
                self.number(random, deeper)
            ),
            6 => format!(
                "({} ? {} : {})",
                self.number(random, deeper),
                self.number(random, 0),
                self.number(random, 0)
            ),
            7 if !self.pointers.is_empty() => {
                let (a, b) = (random.one(self.pointers), random.one(self.pointers));
                format!("({a} {} {b})", random.one(&["==", "<", "!="]))
            }
            8 if !self.pointers.is_empty() => {
                format!(
                    "({} != {})",
                    random.one(self.pointers),
                    self.number(random, 0)
                )
            }
            _ => format!(
                "({} {} {})",
                self.number(random, deeper),
                random.one(OPERATORS),
                self.number(random, deeper)
            ),
        }
    }
}

struct Tally {
    compiled: usize,
    answered: usize,
    refused: usize,
}

fn space_of(path: &std::path::Path) -> AddressSpace {
    let module = Arc::new(Module::open(path).expect("a module"));
    AddressSpace::new(vec![Mapped {
        module,
        number: 1,
        bias: BIAS,
        range: BIAS..BIAS + (1 << 24),
        is_system: false,
    }])
}

fn expression(text: &str) -> Expression {
    Expression::parse_with_any_types(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Computes an expression both ways. Panics if the results differ.
fn compare(space: &AddressSpace, pc: u64, text: &str, seeds: u64, tally: &mut Tally) {
    let compiled = match compile_condition(&expression(text), space, pc, 0) {
        Ok(compiled) => compiled,
        Err(_) => {
            tally.refused += 1;
            return;
        }
    };
    tally.compiled += 1;
    for seed in 0..seeds {
        let machine = Fake { seed, pc };
        let Some(ours) = compiled.run(&machine) else {
            continue;
        };
        tally.answered += 1;
        let frames = backtrace(space, &machine, 2).frames;
        let context = Context::new(space, &machine, &frames, 0);
        let is_type = |name: &str| is_type(name, &context);
        let expr = parse_with(text, &is_type).expect("it was compiled");
        match evaluate_condition(&expr, &context) {
            Ok((theirs, _)) => assert_eq!(ours != 0, theirs, "{text} at {pc:#x}, machine {seed}"),
            Err(why) => panic!("{text} at {pc:#x}, machine {seed}: {ours}, but {why}"),
        }
    }
}

fn places(space: &AddressSpace, function: &str) -> Vec<u64> {
    let found = space.functions_matching(function);
    let place = found.first().expect("the function exists");
    let range = &place.ranges[0];
    let begins = |at: &u64| {
        let line = space.step_line(*at);
        line.is_some_and(|line| line.is_statement && line.range.start == *at)
    };
    let mut all: Vec<u64> = range.clone().filter(begins).collect();
    all.push(place.after_prologue);
    all
}

fn random_expressions(path: &std::path::Path, function: &str, grammar: &Grammar) -> Tally {
    let space = space_of(path);
    let mut random = Random(42);
    let mut tally = Tally {
        compiled: 0,
        answered: 0,
        refused: 0,
    };
    let places = places(&space, function);
    for _ in 0..1500 {
        let depth = random.below(4);
        let text = grammar.number(&mut random, depth);
        let pc = places[random.below(places.len())];
        compare(&space, pc, &text, 8, &mut tally);
    }
    eprintln!(
        "{function}: {} compiled, {} not, {} answers",
        tally.compiled, tally.refused, tally.answered
    );
    tally
}

const TYPES: &[&str] = &[
    "char",
    "unsigned char",
    "short",
    "int",
    "unsigned",
    "long",
    "unsigned long",
    "float",
    "double",
];

const SCALARS: Grammar = Grammar {
    numbers: &[
        "first",
        "second",
        "c",
        "sc",
        "uc",
        "s",
        "us",
        "l",
        "ul",
        "f",
        "d",
        "yes",
        "no",
        "color",
        "both",
        "odd",
        "alias",
        "vol",
        "global_number",
        "text[1]",
        "global_points[1].y",
        "RED",
        "first",
        "l",
    ],
    pointers: &[
        "text",
        "null",
        "pointer",
        "&global_number",
        "global_points",
        "&vol",
    ],
    types: TYPES,
};

const AGGREGATES: Grammar = Grammar {
    numbers: &[
        "n",
        "by_value.x",
        "o.at.y",
        "o.i",
        "o.f",
        "o.bits.a",
        "o.bits.b",
        "o.bits.d",
        "o.bits.flag",
        "o.name[2]",
        "o.grid[1][n]",
        "o.grid[1][2]",
        "o.points[0]->x",
        "u.number",
        "u.real",
        "first.next->value",
        "first.next->next->value",
        "second.value",
        "many[n * 2]",
        "*zeros",
        "(*first.next).value",
        "inner",
        "full[1]",
        "first.next->name[1]",
    ],
    pointers: &[
        "first.next",
        "&second",
        "first.name",
        "o.points",
        "o.points[1]",
        "many",
        "&many[4]",
    ],
    types: TYPES,
};

const CPP: Grammar = Grammar {
    numbers: &[
        "c",
        "uc",
        "s",
        "us",
        "i",
        "u",
        "l",
        "ul",
        "f",
        "d",
        "yes",
        "letter",
        "k",
        "arr[2]",
        "arr[k & 3]",
        "grid[1][2]",
        "*p",
        "ref",
        "color",
        "level",
        "level == Level::High",
        "pair.first",
        "value",
        "base_value",
        "in[1].x",
        "in[2].bits",
        "in[2].sbits",
        "next->value",
        "this->next->base_value",
        "as_int",
        "as_float",
        "ns::counter",
        "hidden",
        "self->in[1].x",
        "(*pp)->value",
        "end - p",
    ],
    pointers: &[
        "p", "end", "text", "this", "self", "*pp", "&arr[1]", "&ref", "next", "null",
    ],
    types: TYPES,
};

const RUST: Grammar = Grammar {
    numbers: &[
        "byte",
        "small",
        "word",
        "half",
        "yes",
        "letter",
        "pair.0",
        "pair.1",
        "array[2]",
        "array[k & 3]",
        "*number",
        "number",
        "self.x",
        "self.y",
        "x",
        "boxed.x",
        "boxed.y",
        "LIMIT",
        "k",
        "slice[0]",
    ],
    pointers: &["&byte", "&array[1]", "self"],
    types: &["i8", "u8", "i16", "i32", "u32", "i64", "u64", "f32", "f64"],
};

fn check(source: &str, compiler: &str, function: &str, grammar: &Grammar, least: usize) {
    let bench = Bench::new();
    for optimised in [false, true] {
        let options: &[&str] = match (compiler, optimised) {
            ("rustc", false) => &["--edition=2024", "-g", "-Copt-level=0"],
            ("rustc", true) => &["--edition=2024", "-g", "-Copt-level=2"],
            (_, false) => &["-g", "-O0", "-pie", "-fPIE"],
            (_, true) => &["-g", "-O2", "-pie", "-fPIE"],
        };
        let path = bench.compile(
            compiler,
            &program(source),
            &format!("p{optimised}"),
            options,
        );
        let tally = random_expressions(&path, function, grammar);
        let least = if optimised { least / 8 } else { least };
        assert!(tally.compiled >= least, "only {} compiled", tally.compiled);
        assert!(tally.answered >= least, "only {} answers", tally.answered);
    }
}

#[test]
fn numbers_of_c_are_compiled_as_they_are_evaluated() {
    check("values.c", "gcc", "scalars", &SCALARS, 700);
}

#[test]
fn structures_of_c_are_compiled_as_they_are_evaluated() {
    check("values.c", "gcc", "aggregates", &AGGREGATES, 500);
}

#[test]
fn members_and_references_of_cpp_are_compiled_as_they_are_evaluated() {
    check("expressions.cpp", "g++", "Node::work", &CPP, 500);
}

#[test]
fn variables_of_rust_are_compiled_as_they_are_evaluated() {
    check("expressions.rs", "rustc", "Point::work", &RUST, 300);
}

#[test]
fn what_cannot_be_compiled_says_why() {
    let bench = Bench::new();
    let path = bench.compile(
        "gcc",
        &program("values.c"),
        "p",
        &["-g", "-O0", "-pie", "-fPIE"],
    );
    let space = space_of(&path);
    let pc = space.functions_matching("scalars")[0].after_prologue;
    let why = |text: &str| {
        compile_condition(&expression(text), &space, pc, 0)
            .expect_err(text)
            .0
    };
    assert_eq!(why("twice(1)"), "twice(1) is a call");
    assert_eq!(why("nothing == 1"), "nothing is not a variable");
    assert_eq!(why("wide > 1"), "__int128 has more than 64 bits");
    assert_eq!(
        why("thread_number == 1"),
        "thread_number: each thread has its own"
    );
    assert_eq!(why("text == \"a\""), "char [2] may be a text");
    assert_eq!(why("ld > 1"), "long double is not computed with");
    assert_eq!(why("$xmm0"), "$xmm0 is not a general register");
}

#[test]
fn messages_are_compiled_with_how_they_are_shown() {
    let bench = Bench::new();
    let path = bench.compile(
        "gcc",
        &program("values.c"),
        "p",
        &["-g", "-O0", "-pie", "-fPIE"],
    );
    let space = space_of(&path);
    let pc = space.functions_matching("scalars")[0].after_prologue;
    let template = "a {s} {us:x} {color} {yes} {d} {text} {pointer:d}";
    let template = Template::parse(template).expect("it is a template");
    let message = compile_message(&template, &space, pc, 0).expect("all of them are plain");
    let shown = message.parts.iter().filter_map(|part| match part {
        MessagePart::Text(_) => None,
        MessagePart::Value(value) => Some((value.source.as_str(), value.shown.clone())),
    });
    let shown = shown.collect::<Vec<_>>();
    assert_eq!(shown[0], ("s", Shown::Signed));
    assert_eq!(shown[1], ("us", Shown::Hex));
    let Shown::Named(names) = &shown[2].1 else {
        panic!("{:?}", shown[2]);
    };
    assert!(names.contains(&(5, "GREEN".to_owned())), "{names:?}");
    let Shown::Named(names) = &shown[3].1 else {
        panic!("{:?}", shown[3]);
    };
    assert_eq!(
        names[..3],
        [(0, "false".into()), (1, "true".into()), (2, "2".into())]
    );
    assert_eq!(shown[4], ("d", Shown::Float { bytes: 8 }));
    assert_eq!(shown[5], ("text", Shown::Text { limit: 200 }));
    assert_eq!(shown[6], ("pointer", Shown::Signed));
}
