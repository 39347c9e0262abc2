//! Goal: expressions have gdb's values, and errors are stated in plain words. Method: gdb stops programs, evaluates a
//! list of expressions in a caller's frame and writes a core file. The same expressions are evaluated on the core file.

#[path = "../../debuginfo/tests/common/mod.rs"]
mod common;
#[path = "../../debuginfo/tests/core_file/mod.rs"]
mod core_file;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Bench, program, run};
use core_file::{CoreFile, CoreThread};
use debuginfo::types::TypeKind;
use debuginfo::value::Value;
use debuginfo::{AddressSpace, Certainty, Frame, Machine, Register, Unknown, backtrace};
use expr::{
    Context, Template, assign, assign_value, evaluate, is_type, parse, parse_assignment, parse_with,
};
use values::{RenderOptions, WriteTarget, render};

/// A program that gdb stopped.
struct Stopped {
    core: CoreFile,
    tid: u32,
    /// gdb's result for each expression.
    theirs: Vec<Result<String, String>>,
}

fn stop(bench: &Bench, path: &Path, expressions: &[&str]) -> Stopped {
    let list = bench.write("list", &expressions.join("\n"));
    let core = bench.path("core");
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-x"])
        .arg(program("expressions.py"))
        .arg(path)
        .env("EXPRESSIONS", &list)
        .env("CORE", &core)
        .env("LC_ALL", "C");
    let output = run(&mut gdb);
    let mut theirs = Vec::new();
    let mut stop = None;
    for line in output.lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["VALUE", _, value] => theirs.push(Ok(value.to_owned())),
            ["ERROR", _, why] => theirs.push(Err(why.to_owned())),
            ["STOP", core, tid] => {
                stop = Some((PathBuf::from(core), tid.parse().expect("a number")))
            }
            _ => {}
        }
    }
    let (core, tid) = stop.unwrap_or_else(|| panic!("gdb said:\n{output}"));
    assert_eq!(theirs.len(), expressions.len(), "gdb said:\n{output}");
    Stopped {
        core: CoreFile::open(&core),
        tid,
        theirs,
    }
}

/// Evaluates expressions in the frame that called `stop_here`.
struct Asker<'a> {
    space: &'a AddressSpace,
    machine: CoreThread<'a>,
    frames: Vec<Frame>,
}

impl<'a> Asker<'a> {
    fn new(stopped: &'a Stopped) -> Asker<'a> {
        let machine = stopped.core.thread(stopped.tid);
        let frames = backtrace(&stopped.core.space, &machine, 20).frames;
        Asker {
            space: &stopped.core.space,
            machine,
            frames,
        }
    }

    fn context(&self) -> Context<'_> {
        Context::new(self.space, &self.machine, &self.frames, 1)
    }

    fn value(&self, text: &str) -> Result<Value, String> {
        let context = self.context();
        let is_type = |name: &str| is_type(name, &context);
        let expr = parse_with(text, &is_type).map_err(|e| e.one_line())?;
        evaluate(&expr, &context).map_err(|e| e.one_line())
    }

    /// Returns a number in the format of gdb's script.
    fn number(&self, text: &str) -> Result<String, String> {
        let value = self.value(text)?;
        let value = value
            .unreferenced(&debuginfo::value::Look {
                space: self.space,
                machine: &self.machine,
            })
            .map_err(|e| e.to_string())?;
        match value.kind() {
            TypeKind::Float => Ok(format!(
                "{:?}",
                values::float(&value).map_err(|e| e.to_string())?
            )),
            TypeKind::Array => Ok(value.address().ok_or("not in memory")?.to_string()),
            _ => Ok(value.as_integer().map_err(|e| e.to_string())?.to_string()),
        }
    }

    fn shown(&self, text: &str) -> String {
        match self.value(text) {
            Ok(value) => render(&value, &RenderOptions::default(), &self.machine, self.space),
            Err(why) => format!("error: {why}"),
        }
    }

    fn written(&self, text: &str) -> Result<Vec<(WriteTarget, Vec<u8>)>, String> {
        let assignment = parse_assignment(text).map_err(|e| e.to_string())?;
        let writes = assign(&assignment, &self.context()).map_err(|e| e.one_line())?;
        Ok(writes.into_iter().map(|w| (w.target, w.bytes)).collect())
    }
}

const CPP: &[&str] = &[
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
    "broad",
    "k",
    "c + uc",
    "uc + 10",
    "s * us",
    "i / 2",
    "i % 3",
    "i >> 1",
    "u >> 1",
    "i << 3",
    "u + u",
    "u * 2",
    "l + i",
    "ul + 10",
    "i + u",
    "i < u",
    "(long)i < u",
    "c < uc",
    "-c",
    "~uc",
    "!i",
    "!zero",
    "-u",
    "+us",
    "f + 1",
    "f * d",
    "f / 3",
    "d * i",
    "f == 1.25",
    "d < f",
    "-d",
    "(int)d",
    "(unsigned char)i",
    "(char)us",
    "(double)i / 2",
    "(float)1 / 3",
    "(int)f + 1",
    "(short)70000",
    "(bool)5",
    "(unsigned long)-1",
    "5 / 2.0",
    "7 & 3 | 8 ^ 1",
    "1 + 2 * 3 - 4",
    "i == -7 && u > 5",
    "zero && 1 / zero",
    "i || 1 / zero",
    "i > 0 ? 1 : 2",
    "yes + 1",
    "letter == 'q'",
    "'a' + 1",
    "0x10 + 010 + 0b11",
    "1 == 1",
    "sizeof(int)",
    "sizeof(arr)",
    "sizeof arr / sizeof arr[0]",
    "sizeof(Inner)",
    "sizeof(Node*)",
    "sizeof(struct Inner)",
    "arr[2]",
    "*p",
    "p[1]",
    "p[-1]",
    "*(p + 2)",
    "*(1 + p)",
    "end - p",
    "p - arr",
    "p == &arr[1]",
    "p < end",
    "p != 0",
    "null == 0",
    "!null",
    "&arr[2] - &arr[0]",
    "*arr + 1",
    "arr",
    "&arr",
    "grid[1][2]",
    "*grid[1]",
    "*(grid[0] + 1)",
    "ref",
    "ref + 1",
    "&ref == arr + 3",
    "text[1]",
    "*text",
    "color",
    "color == GREEN",
    "GREEN + 1",
    "(int)level",
    "(Color)0",
    "pair.first + pair.second",
    "this->value",
    "value",
    "next->value",
    "next->next->in[2].x",
    "in[1].bits",
    "in[2].sbits",
    "in[1].bits + in[2].sbits",
    "base_value",
    "self->Base::base_value",
    "(*pp)->value",
    "ns::counter + hidden",
    "ns::Pair<int>::made",
    "*(short*)&u",
    "((Node*)this)->in[0].name[0]",
];

fn cpp(bench: &Bench, expressions: &[&str]) -> Stopped {
    let options = ["-g", "-O0", "-std=c++17"];
    let path = bench.compile("g++", &program("expressions.cpp"), "expressions", &options);
    stop(bench, &path, expressions)
}

#[test]
fn values_are_those_of_gdb() {
    let bench = Bench::new();
    let stopped = cpp(&bench, CPP);
    let asker = Asker::new(&stopped);
    let mut wrong = Vec::new();
    for (text, theirs) in CPP.iter().zip(&stopped.theirs) {
        let ours = asker.number(text);
        match (&ours, theirs) {
            (Ok(ours), Ok(theirs)) if ours == theirs => {}
            _ => wrong.push(format!("{text}: ours {ours:?}, gdb's {theirs:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn mistakes_are_said_in_plain_words() {
    let bench = Bench::new();
    let stopped = cpp(&bench, &[]);
    let asker = Asker::new(&stopped);
    let refused = |text: &str| asker.value(text).map(|v| v.ty.name()).unwrap_err();
    assert_eq!(
        refused("leter"),
        "no variable \"leter\" here; did you mean \"letter\"?"
    );
    assert_eq!(
        refused("valeu"),
        "no variable \"valeu\" here; did you mean \"value\"?"
    );
    assert_eq!(
        refused("nothing_like_it"),
        "no variable \"nothing_like_it\" here"
    );
    assert_eq!(refused("i / zero"), "division by zero");
    assert_eq!(
        refused("i << 32"),
        "a shift by 32; a number of 32 bits can be shifted by 0 to 31"
    );
    assert_eq!(
        refused("f % 2"),
        "\"%\" is not for floating-point numbers; convert them to integers"
    );
    assert_eq!(refused("((Node*)0)->value"), "the pointer is null");
    assert_eq!(
        refused("*null"),
        "it points to void; convert it to another pointer first, such as (char*)"
    );
    assert_eq!(
        refused("*i"),
        "int is not a pointer; to look at that address, convert it: *(char*)..."
    );
    assert_eq!(refused("(Nothing*)p"), "no type \"Nothing*\" here");
    assert_eq!(
        refused("&(i + 1)"),
        "it is not in memory and has no address"
    );
    assert_eq!(refused("&in[0].bits"), "a bit field has no address");
    assert_eq!(
        refused("in[0] + 1"),
        "\"+\" is not for Inner and int; use their members"
    );
    assert_eq!(
        refused("stop_here(0)"),
        "stop_here cannot be called here; eval calls functions; everything else only looks at memory"
    );
    assert_eq!(
        refused("args[6]"),
        "no argument 6; args has 0 to 5, the integer argument registers"
    );
    for text in ["in[0].nam", "(&in[0])->nam", "(&in[0]).nam"] {
        let missing = refused(text);
        assert!(
            missing.starts_with("Inner has no member nam; it has "),
            "{text}: {missing}"
        );
    }
}

#[test]
fn texts_and_arrays_are_compared_and_shown() {
    let bench = Bench::new();
    let stopped = cpp(&bench, &[]);
    let asker = Asker::new(&stopped);
    let mut wrong = Vec::new();
    for (text, shown) in [
        ("text == \"hello\"", "true"),
        ("text != \"hello\"", "false"),
        ("text === 'hello'", "true"),
        ("(char*)1 == null", "false"),
        ("\"help\" > text", "true"),
        ("in[1].name == \"bz\"", "true"),
        ("strlen(text)", "5"),
        ("strcmp(text, \"hello\") == 0", "true"),
        ("$_streq(text, \"x\")", "false"),
        ("arr[1..3]", "{20, 30}"),
        ("arr[..=1]", "{10, 20}"),
        ("arr[3..]", "{40, 50}"),
        ("*p@2", "{20, 30}"),
        ("arr.len", "5"),
        ("arr.length > 4", "true"),
        ("args[1]", "1234"),
        ("args.0 == this", "true"),
        ("int(d)", "-2"),
        ("(Level)(1) == Level::Low", "true"),
        ("s as u8", "212"),
        ("wide", "1267650600228229401496703205376"),
        ("wide * 2 >> 100", "2"),
        ("as_int", "1078530011"),
        ("as_float > 3.14", "true"),
        ("kind == Far", "true"),
        ("Far == kind", "true"),
    ] {
        let ours = asker.shown(text);
        if ours != shown {
            wrong.push(format!("{text}: {ours}, expected {shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same memory, as seen at an earlier event.
struct Earlier<'m>(&'m CoreThread<'m>);

impl Machine for Earlier<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        self.0.memory(address, bytes)?;
        Ok(Certainty::Stale { as_of: 8 })
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        self.0.register(register)
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        self.0.vector(register)
    }
}

#[test]
fn answers_are_as_old_as_the_oldest_operand() {
    let bench = Bench::new();
    let stopped = cpp(&bench, &[]);
    let asker = Asker::new(&stopped);
    let earlier = Earlier(&asker.machine);
    let context = Context {
        machine: &earlier,
        ..asker.context()
    };
    for (text, certainty) in [
        ("i + 1", Certainty::Stale { as_of: 8 }),
        ("1 + 1", Certainty::Known),
        ("arr[2] == 30 ? 1 : 2", Certainty::Stale { as_of: 8 }),
        ("zero && i", Certainty::Stale { as_of: 8 }),
        ("1 || i", Certainty::Known),
        ("$rsp", Certainty::Known),
        ("next->value", Certainty::Stale { as_of: 8 }),
        ("sizeof(i)", Certainty::Known),
    ] {
        let value = evaluate(&parse(text).unwrap(), &context).unwrap();
        assert_eq!(value.certainty, certainty, "{text}");
    }
}

#[test]
fn assignments_become_writes() {
    let bench = Bench::new();
    let stopped = cpp(&bench, &[]);
    let asker = Asker::new(&stopped);
    let address = |text: &str| asker.value(text).unwrap().address().unwrap();
    let memory =
        |text: &str, bytes: &[u8]| Ok(vec![(WriteTarget::Memory(address(text)), bytes.to_vec())]);
    assert_eq!(asker.written("i = 5"), memory("i", &[5, 0, 0, 0]));
    assert_eq!(asker.written("i += 1"), memory("i", &[78, 0, 0, 0]));
    assert_eq!(
        asker.written("p[2] = arr[0]"),
        memory("arr[3]", &[10, 0, 0, 0])
    );
    assert_eq!(asker.written("ref = 1"), memory("arr[3]", &[1, 0, 0, 0]));
    assert_eq!(asker.written("f = 1"), memory("f", &1f32.to_le_bytes()));
    assert_eq!(
        asker.written("next->in[1].name = \"new\""),
        memory("next->in[1].name", b"new\0")
    );
    assert_eq!(asker.written("next = null"), memory("next", &[0; 8]));
    assert_eq!(asker.written("yes = 2 > 3"), memory("yes", &[0]));
    let bits = asker.written("in[1].bits = 3").unwrap();
    assert_eq!(bits[0].1[0] & 7, 3, "the neighbours keep their bits");
    assert_eq!(bits[0].1[0] >> 3, 0x1e);
    let refused = |text: &str| asker.written(text).unwrap_err();
    assert!(refused("uc = 256").starts_with("256 does not fit unsigned char"));
    assert!(refused("i + 1 = 2").starts_with("(i + 1) cannot be assigned to"));
    assert!(refused("in[1].name = \"much too long a text\"").contains("holds 16"));
    let place = parse("color").unwrap();
    let written = assign_value(&place, "BLUE", &asker.context()).unwrap();
    assert_eq!(written[0].bytes, (-3i32).to_le_bytes());
}

#[test]
fn what_is_optimized_out_is_said() {
    let bench = Bench::new();
    let source = bench.write(
        "gone.c",
        "void stop_here(void *p) { __asm__ volatile(\"\" :: \"r\"(p) : \"memory\"); }\n\
         __attribute__((noinline, noipa)) int other(void) { return 3; }\n\
         __attribute__((noinline)) int work(int given) { int x = other(); stop_here((void *)0); return other(); }\n\
         int main(int argc, char **argv) { return work(argc + 4); }\n",
    );
    let options = ["-g", "-O2", "-fno-inline"];
    let path = bench.compile("gcc", &source, "gone", &options);
    let stopped = stop(&bench, &path, &[]);
    let asker = Asker::new(&stopped);
    assert!(
        asker.value("x").unwrap().bytes.is_err(),
        "it can still be named"
    );
    let why = asker.value("x + 1").unwrap_err();
    assert!(
        why.contains("optimized out") || why.contains("not known"),
        "{why}"
    );
    let written = asker.written("x = 1").unwrap_err();
    assert_eq!(
        written,
        "Variable 'x' is optimized out at this PC. Recompile with -O0."
    );
}

#[test]
fn rust_is_understood() {
    let bench = Bench::new();
    let options = ["-g", "-Copt-level=0", "--edition=2024"];
    let path = bench.compile("rustc", &program("expressions.rs"), "looked_at", &options);
    let stopped = stop(&bench, &path, &[]);
    let asker = Asker::new(&stopped);
    let mut wrong = Vec::new();
    for (text, shown) in [
        ("byte + 100", "300"),
        ("small as u8", "253"),
        ("big >> 99", "-2"),
        ("word == 5 && k > 1000", "true"),
        ("half * 3", "1.5"),
        ("yes && letter == 'x'", "true"),
        ("pair.0 + pair.1", "-1"),
        ("pair.2 == \"in\"", "true"),
        ("array[3] + slice[0]", "6"),
        ("slice.len() + array.len()", "7"),
        ("slice[1..3]", "[3, 4]"),
        ("slice[..].len", "3"),
        ("text == \"hello\"", "true"),
        ("text.len", "5"),
        ("text < \"help\"", "true"),
        ("some.is_some() && none.is_none()", "true"),
        ("some.0", "9"),
        ("shape.side * 2", "12"),
        ("circle.0", "1.5"),
        ("*number + 1", "6"),
        ("number == 5", "true"),
        ("self.x + self.y", "-10"),
        ("x", "10"),
        ("boxed.x", "70"),
        ("(*boxed).y", "71"),
        ("args[1]", "1234"),
        ("args.1 == k", "true"),
        ("LIMIT", "17"),
        ("sizeof(u64) + sizeof(Point)", "16"),
        ("7u8 as f64 / 2", "3.5"),
        ("slice[3]", "error: there is no element 3; it has 3"),
        (
            "bytee",
            "error: no variable \"bytee\" here; did you mean \"byte\"?",
        ),
    ] {
        let ours = asker.shown(text);
        if ours != shown {
            wrong.push(format!("{text}: {ours}, expected {shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let template =
        Template::parse("{text}: {byte:x} {self.y:d} {{{pair.0:b}}} {none_of_them} {text:s}")
            .unwrap();
    assert_eq!(
        template.render(&asker.context(), &RenderOptions::default()),
        "hello: 0xc8 -20 {0b11} <error: no variable \"none_of_them\" here> hello"
    );
}
