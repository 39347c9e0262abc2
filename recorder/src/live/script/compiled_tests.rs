//! Goal: a compiled condition in JavaScript is what the engine says, or has no answer. Method: random conditions over the
//! variables of real functions, optimised and not, at machines whose registers and memory are random, asked both ways.

use std::{path::Path, process::Command, rc::Rc, sync::Arc};

use debuginfo::{
    Certainty, Machine, Mapped, Module, Register, Space, Unknown,
    expr::{ENGINE_NAMES, compile_script},
};
use e2e::{Scratch, fixture_artifact};

mod grammar;

use self::grammar::{Grammar, Random, mixed};
use super::{condition::Script, engine::Engine, moment::Moment};

const BIAS: u64 = 0x5555_5555_4000;
/// Letters of the texts in memory.
const LETTERS: &[u8] = b"abrq-1\0\0e5abreq-01x\xc3\xa9\0other";

/// A thread whose registers and memory follow from a number. One page in five is not there.
#[derive(Clone, Copy)]
struct Fake {
    seed: u64,
    pc: u64,
}

impl Fake {
    fn word(&self, number: u64) -> u64 {
        let random = mixed(self.seed ^ mixed(number));
        let letter = |at: u64| LETTERS[(random >> at) as usize % LETTERS.len()];
        match random % 9 {
            0 => 0,
            1 => random >> 60,
            2 => (random >> 56).wrapping_sub(128),
            3 => u64::from(random as u32 >> 20) << 32 | 5,
            4 => f64::from((random >> 48) as i16).to_bits(),
            5 => 0x7fff_0000_0000 + (random >> 44 & !7),
            6 | 7 => u64::from_le_bytes(std::array::from_fn(|at| letter(at as u64 * 7))),
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
        Ok((bytes, Certainty::Known))
    }
}

#[derive(Debug, Default)]
struct Tally {
    compiled: usize,
    refused: usize,
    falsehoods: usize,
    truths: usize,
    none: usize,
    /// The engine has read more of a text than was needed, and met its end of memory.
    unread: usize,
    wrong: Vec<String>,
}

fn space_of(path: &Path) -> Arc<Space> {
    let module = Arc::new(Module::open(path).expect("a module"));
    Arc::new(Space::new(vec![Mapped {
        module,
        number: 1,
        bias: BIAS,
        range: BIAS..BIAS + (1 << 24),
        is_system: false,
    }]))
}

/// StoplessQueries both ways; panics where they differ.
fn compare(space: &Arc<Space>, pc: u64, engine: &Engine, text: &str, tally: &mut Tally) {
    let script: Script = engine
        .compile(text)
        .unwrap_or_else(|mistake| panic!("{text}: {mistake:?}"));
    let Ok(compiled) = compile_script(text, space, pc, 0) else {
        tally.refused += 1;
        return;
    };
    tally.compiled += 1;
    for seed in 0..6 {
        let machine = Fake { seed, pc };
        let Some(ours) = compiled.run(&machine) else {
            tally.none += 1;
            continue;
        };
        let moment = Moment::new(Arc::clone(space), Box::new(machine), &Rc::default(), 1, 2);
        let said = engine.holds(&script, Rc::new(moment));
        let is_unread = |why: &str| {
            let ends = [
                "is too long for a condition",
                "not there",
                "more than memory holds",
            ];
            ends.iter().any(|end| why.ends_with(end))
        };
        match said {
            Ok(theirs) if theirs == (ours != 0) => {}
            Err(why) if is_unread(&why) => tally.unread += 1,
            said => tally.wrong.push(format!(
                "{text} at {pc:#x}, machine {seed}: {ours}, but {said:?}"
            )),
        }
        match ours {
            0 => tally.falsehoods += 1,
            _ => tally.truths += 1,
        }
    }
}

fn places(space: &Space, function: &str) -> Vec<u64> {
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

/// Compares many conditions; there must be so many answers of each kind.
fn check(path: &Path, function: &str, grammar: &Grammar, least: usize) {
    let space = space_of(path);
    let engine = Engine::new().expect("there is memory");
    let mut random = Random(42);
    let mut tally = Tally::default();
    let places = places(&space, function);
    for _ in 0..1500 {
        let depth = random.below(4);
        let text = grammar.condition(&mut random, depth);
        let pc = places[random.below(places.len())];
        compare(&space, pc, &engine, &text, &mut tally);
    }
    eprintln!("{function} in {}: {tally:?}", path.display());
    assert!(tally.wrong.is_empty(), "{:#?}", tally.wrong);
    let answers = tally.falsehoods + tally.truths;
    assert!(tally.unread * 20 <= answers, "{tally:?}");
    assert!(tally.compiled >= least, "{tally:?}");
    assert!(
        tally.falsehoods >= least && tally.truths >= least,
        "{tally:?}"
    );
}

fn built(scratch: &Scratch, compiler: &str, source: &str, level: &str) -> std::path::PathBuf {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../debuginfo/tests/programs");
    let path = scratch.join(&format!("{source}{level}"));
    let done = Command::new(compiler)
        .args(["-g", level, "-pie", "-fPIE", "-o"])
        .arg(&path)
        .arg(programs.join(source))
        .output()
        .expect("the compiler can be started");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    path
}

const SCALARS: Grammar = Grammar {
    numbers: &[
        "first",
        "second",
        "sc",
        "uc",
        "s",
        "us",
        "l",
        "ul",
        "f",
        "d",
        "alias",
        "vol",
        "global_number",
        "l",
        "first",
    ],
    bools: &["yes", "no"],
    texts: &["text", "null", "global_text"],
    characters: &["c", "text[1]"],
    enumerators: &["color", "both", "odd", "RED", "BLUE"],
    others: &["text", "pointer", "null", "undefined", "color"],
};

const AGGREGATES: Grammar = Grammar {
    numbers: &[
        "n",
        "by_value.x",
        "o.at.y",
        "o.i",
        "o.bits.a",
        "o.bits.b",
        "o.bits.d",
        "o.grid[1][n]",
        "o.grid[1][2]",
        "o.points[0].x",
        "u.number",
        "u.real",
        "first.next.value",
        "first.next?.next?.value",
        "second.value",
        "many[n * 2]",
        "inner",
        "many.length",
        "first['value']",
        "$('first.next->value')",
    ],
    bools: &["o.bits.flag"],
    texts: &[
        "o.name",
        "first.name",
        "first.next.name",
        "full",
        "first.next?.name",
    ],
    characters: &["o.name[0]", "full[3]"],
    enumerators: &[],
    others: &[
        "first.next",
        "o",
        "many",
        "o.points[1]",
        "first.next?.next",
        "first.next?.name",
    ],
};

const CXX: Grammar = Grammar {
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
        "k",
        "arr[2]",
        "arr[k & 3]",
        "grid[1][2]",
        "p[0]",
        "p[2]",
        "ref",
        "pair.first",
        "value",
        "base_value",
        "this.in[1].x",
        "this.value",
        "next.value",
        "next?.base_value",
        "as_int",
        "as_float",
        "next.in[1].bits",
    ],
    bools: &["yes"],
    texts: &["text", "next?.in[1].name"],
    characters: &["letter", "broad"],
    enumerators: &["color", "level", "kind", "RED"],
    others: &["p", "next", "null", "this", "end", "arr"],
};

const RUST: Grammar = Grammar {
    numbers: &[
        "byte",
        "small",
        "word",
        "half",
        "pair[0]",
        "pair[1]",
        "array[2]",
        "array[k & 3]",
        "number",
        "self.x",
        "self.y",
        "x",
        "LIMIT",
        "k",
        "array.length",
    ],
    bools: &["yes"],
    texts: &["text", "pair[2]"],
    characters: &["letter"],
    enumerators: &[],
    others: &["self", "array"],
};

#[test]
fn numbers_of_c_are_compiled_as_the_engine_sees_them() {
    let scratch = Scratch::new("script-scalars");
    for (level, least) in [("-O0", 700), ("-O2", 90)] {
        let path = built(&scratch, "gcc", "values.c", level);
        check(&path, "scalars", &SCALARS, least);
    }
}

#[test]
fn structures_of_c_are_compiled_as_the_engine_sees_them() {
    let scratch = Scratch::new("script-aggregates");
    for (level, least) in [("-O0", 500), ("-O2", 60)] {
        let path = built(&scratch, "gcc", "values.c", level);
        check(&path, "aggregates", &AGGREGATES, least);
    }
}

#[test]
fn members_of_cxx_are_compiled_as_the_engine_sees_them() {
    let scratch = Scratch::new("script-cxx");
    for (level, least) in [("-O0", 500), ("-O2", 60)] {
        let path = built(&scratch, "g++", "expressions.cpp", level);
        check(&path, "Node::work", &CXX, least);
    }
}

#[test]
fn variables_of_rust_are_compiled_as_the_engine_sees_them() {
    let scratch = Scratch::new("script-rust");
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../debuginfo/tests/programs");
    let path = scratch.join("expressions");
    let done = Command::new("rustc")
        .args(["--edition=2024", "-g", "-Copt-level=0", "-o"])
        .arg(&path)
        .arg(programs.join("expressions.rs"))
        .output()
        .expect("rustc can be started");
    assert!(done.status.success());
    check(&path, "Point::work", &RUST, 300);
}

#[test]
fn strings_of_cxx_and_rust_are_compiled_as_the_engine_sees_them() {
    let cxx = Grammar {
        numbers: &["id", "count", "this.count"],
        bools: &[],
        texts: &["name", "town", "this.town"],
        characters: &[],
        enumerators: &[],
        others: &["name", "this"],
    };
    let path = fixture_artifact("conditions", "conditions_cxx");
    check(&path, "Shop::visit", &cxx, 300);
    let rust = Grammar {
        numbers: &["id"],
        bools: &[],
        texts: &["name"],
        characters: &[],
        enumerators: &[],
        others: &["name"],
    };
    let path = fixture_artifact("conditions", "conditions_rust");
    check(&path, "conditions::visit", &rust, 300);
}

#[test]
fn the_names_of_the_engine_are_known() {
    let engine = Engine::new().expect("there is memory");
    let path = fixture_artifact("conditions", "conditions_c_O0");
    let space = space_of(&path);
    let pc = space.functions_matching("visit")[0].after_prologue;
    let known = ENGINE_NAMES.join("', '");
    let text = format!(
        "(n => {{ if (n.length > 0) throw new Error(String(n)); return true }})(\
         Object.getOwnPropertyNames(globalThis).filter(n => !['{known}', 'unescape'].includes(n)))"
    );
    let script = engine.compile(&text).expect("it is right");
    let moment = Moment::new(space, Box::new(Fake { seed: 1, pc }), &Rc::default(), 1, 2);
    assert_eq!(engine.holds(&script, Rc::new(moment)), Ok(true));
}
