//! Goal: runtime/layout.h, this module and docs/wire.md agree. Method: a compiled C program, made from the header's own
//! names, prints their values; the page is read as text. A test of `store` compares that page with store's constants.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command};

use super::*;
use crate::runtime::{BLOCK_TID_GLIBC, LOCAL_TID};

pub(super) type Fields = BTreeMap<String, (usize, usize)>;

/// The compiled layout.h: constants by name, and each structure's fields with offset and size.
struct Header {
    constants: BTreeMap<String, u64>,
    structures: BTreeMap<String, Fields>,
    lengths: BTreeMap<String, u64>,
}

fn in_repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(in_repository(path)).unwrap()
}

/// Returns the names of the constants with a value.
fn constant_names(header: &str) -> Vec<&str> {
    let lines = header
        .lines()
        .filter_map(|line| line.strip_prefix("#define "));
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(name, _)| name)
        .collect()
}

/// Returns each structure with its fields' names, in order.
fn structures(header: &str) -> Vec<(&str, Vec<String>)> {
    let mut code = String::new();
    let mut rest = header;
    let mut found = Vec::new();
    while let Some((_, after)) = rest.split_once("\nstruct ") {
        let (name, body) = after.split_once("\n{").unwrap();
        let (body, next) = body.split_once("\n};").unwrap();
        code.clear();
        for piece in body.split("/*") {
            code.push_str(piece.split_once("*/").map_or(piece, |(_, code)| code));
        }
        let fields = code.split(';').map(|field| {
            let declared = field.split('[').next().unwrap().trim();
            declared.rsplit(' ').next().unwrap().to_owned()
        });
        found.push((name, fields.filter(|field| !field.is_empty()).collect()));
        rest = next;
    }
    found
}

fn compiled() -> Header {
    let text = read("agent/runtime/layout.h");
    let mut program =
        String::from("#include <stdio.h>\n#include \"layout.h\"\nint main (void) {\n");
    for name in constant_names(&text) {
        program += &format!("printf (\"c {name} %llu\\n\", (unsigned long long) ({name}));\n");
    }
    for (structure, fields) in structures(&text) {
        program += &format!(
            "printf (\"s {structure} %zu\\n\", sizeof (struct {structure}));\nstruct {structure} * {structure};\n"
        );
        for field in fields {
            program += &format!(
                "printf (\"f {structure} {field} %zu %zu\\n\", offsetof (struct {structure}, {field}), sizeof ({structure}->{field}));\n"
            );
        }
    }
    program += "}\n";
    let folder = tempfile::tempdir().unwrap();
    let (source, binary) = (folder.path().join("print.c"), folder.path().join("print"));
    fs::write(&source, program).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "gcc".into());
    let status = Command::new(compiler)
        .args(["-std=gnu11", "-I"])
        .arg(in_repository("agent/runtime"))
        .arg("-o")
        .args([&binary, &source])
        .status();
    assert!(status.unwrap().success());
    let output = Command::new(&binary).output().unwrap();
    let mut header = Header {
        constants: BTreeMap::new(),
        structures: BTreeMap::new(),
        lengths: BTreeMap::new(),
    };
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["c", name, value] => {
                header.constants.insert(name.into(), value.parse().unwrap());
            }
            ["s", name, len] => {
                header.lengths.insert(name.into(), len.parse().unwrap());
            }
            ["f", structure, field, at, len] => {
                let place = (at.parse().unwrap(), len.parse().unwrap());
                let fields = header.structures.entry(structure.into()).or_default();
                fields.insert(field.into(), place);
            }
            _ => panic!("the program printed {line:?}"),
        }
    }
    header
}

pub(super) fn size_of_field<T, F>(_: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

macro_rules! fields {
    ($type:ident: $($field:ident)*) => {
        Fields::from([$((
            stringify!($field).to_owned(),
            (std::mem::offset_of!($type, $field), size_of_field(|of: &$type| &of.$field)),
        )),*])
    };
}

pub(super) use fields;

fn ring_fields() -> Fields {
    fields!(Ring: head wrap_at tid tenancy lost exiting waits told unused_a tail may_sleep began ended)
}

fn control_fields() -> Fields {
    fields!(Control:
        magic stop drop_when_full owner modules_asked modules_answered main_tid main_stack_high stack_bytes
        lost_no_ring map_address map_bytes map_result map_asked map_answered tracer
        capture capture_stack watch_words forbidden foreign_count reserved_data taken watch
        last_wanted last_tid last_state last_signal last_info last_context last_sandboxed sandbox
        copy_every copy_records copied_records foreign reserved_space sandbox_asked sandbox_answered
        copies_pass recorder_sleeps modules_tid modules_since exit_ticks)
}

#[test]
fn both_sides_see_the_same_structures() {
    let header = compiled();
    assert_eq!(header.structures["hs_ask"], asks::ask_fields());
    assert_eq!(header.structures["hs_asks"], asks::asks_fields());
    assert_eq!(header.structures["hs_ring"], ring_fields());
    assert_eq!(header.structures["hs_control"], control_fields());
    assert_eq!(header.lengths["hs_ring"], size_of::<Ring>() as u64);
    assert_eq!(header.lengths["hs_control"], size_of::<Control>() as u64);
}

#[test]
fn both_sides_have_the_same_constants() {
    let header = compiled();
    for (name, value) in [
        ("HS_MAGIC", MAGIC),
        ("HS_RINGS", RINGS as u64),
        ("HS_RING_BYTES", RING_BYTES),
        ("HS_DATA_OFFSET", DATA_OFFSET),
        ("HS_COUNTERS_OFFSET", COUNTERS_OFFSET),
        ("HS_COUNTERS_BYTES", COUNTERS_BYTES),
        ("HS_ASKS_OFFSET", ASKS_OFFSET),
        ("HS_ASKS", asks::ASKS as u64),
        ("HS_ASK_STACK_BYTES", asks::STACK_BYTES as u64),
        ("HS_ASK_FREE", asks::FREE),
        ("HS_ASK_WAITING", asks::WAITING),
        ("HS_ASK_TAKEN", asks::TAKEN),
        ("HS_ASK_PASS", asks::PASS),
        ("HS_ASK_STOP", asks::STOP),
        ("HS_LAST_SIGNALS", LAST_SIGNALS.into()),
        ("HS_LAST_EXIT", LAST_EXIT.into()),
        ("HS_EXITING", last::EXITING),
        ("HS_LAST_ASKED", last::ASKED.into()),
        ("HS_LAST_TAKEN", last::TAKEN.into()),
        ("HS_LAST_DONE", last::DONE.into()),
        ("HS_RECORDER_SLEEPS", sleep::SLEEPS.into()),
        ("HS_RECORDER_SLEEPS_ALONE", sleep::SLEEPS_ALONE.into()),
        ("HS_SANDBOX_SEEN", sandbox::SEEN.into()),
        ("HS_SANDBOX_ASK", sandbox::ASK.into()),
        ("HS_SANDBOX_ENTERED", sandbox::ENTERED.into()),
        ("HS_SANDBOX_STRICT", sandbox::STRICT.into()),
        ("HS_SHADOW_BIT", SHADOW_BIT.into()),
        ("HS_CAPTURE_REGISTERS", CAPTURE_REGISTERS.into()),
        ("HS_CAPTURE_TEXTS", CAPTURE_TEXTS.into()),
        ("HS_CAPTURE_POINTEES", CAPTURE_POINTEES.into()),
        ("HS_CAPTURE_TEXT_MAX", POINTEE_MAX.into()),
        ("HS_POINTEE_RESULT", POINTEE_RESULT.into()),
        ("HS_POINTEE_TEXT", POINTEE_TEXT.into()),
        ("HS_CAPTURE_STACK_MAX", CAPTURE_STACK_MAX.into()),
        ("HS_WATCH_WORDS", WATCH_WORDS as u64),
        ("HS_FOREIGN", FOREIGN as u64),
        ("HS_WATCH_BASE_SHIFT", WATCH_BASE_SHIFT.into()),
        ("HS_WATCH_FUNCTION_SHIFT", WATCH_FUNCTION_SHIFT.into()),
        ("HS_WATCH_PARTLY", WATCH_PARTLY),
        ("HS_WATCH_TEXT", WATCH_TEXT),
        ("HS_TEXT_TERMINATED", Text::Terminated.code().into()),
        ("HS_TEXT_SLICE", Text::Slice.code().into()),
        ("HS_TEXT_VIEW", Text::View.code().into()),
    ] {
        assert_eq!(header.constants[name], value, "{name}");
    }
    let constant = |name: &str| header.constants[name];
    let caller = |which: &str| {
        constant(&format!("HS_WATCH_CALLER_{which}")) << constant("HS_WATCH_CALLER_SHIFT")
    };
    assert_eq!(WATCH_CALLER_ENTER, caller("ENTER"));
    assert_eq!(WATCH_CALLER_LEAVE, caller("LEAVE"));
    let (address, length) = (2, 1);
    assert_eq!(
        u64::from(Text::Behind { address, length }.code()),
        constant("HS_TEXT_BEHIND")
            | u64::from(address) << constant("HS_TEXT_ADDRESS_SHIFT")
            | u64::from(length) & constant("HS_TEXT_LENGTH_MASK")
    );
}

/// The header's `HS_LOCAL_CUR` and the like: the structure, and the field whose name begins like the constant's end.
fn offset_of_name(header: &Header, name: &str) -> Option<usize> {
    let (structure, field) = name.strip_prefix("HS_")?.split_once('_')?;
    let fields = header
        .structures
        .get(&format!("hs_{}", structure.to_lowercase()))?;
    let field = field.to_lowercase();
    let found = fields.iter().find(|(name, _)| name.starts_with(&field));
    found.map(|(_, (at, _))| *at)
}

/// Rows of the page's tables, as cells without their quotes.
fn rows(page: &str) -> Vec<Vec<String>> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("| "));
    lines
        .map(|line| {
            let cells = line.trim_end_matches('|').split('|');
            cells.map(|cell| cell.trim().replace('`', "")).collect()
        })
        .collect()
}

/// Returns the page's value of the record constant `name`: from a table, or from `NAME` = value words.
fn stated(page: &str, name: &str) -> u64 {
    let rows = rows(page);
    if let Some(row) = rows.iter().find(|row| row[0] == name) {
        return row[1].parse().unwrap();
    }
    let (_, after) = page.split_once(&format!("`{name}` = ")).unwrap();
    let digits = after.split(' ').next().unwrap();
    digits.parse().unwrap()
}

/// Constants of records that the page states under the name without `HS_`.
const OF_RECORDS: [&str; 8] = [
    "LOG_COUNT_SHIFT",
    "LOG_MAX_VALUES",
    "SECTION_THREAD",
    "SYSCALL_BEGINS",
    "SYSCALL_ENDS",
    "FRAMES_LEFT",
    "RING_WAIT",
    "STACK_SWITCH",
];

/// Constants that are first in a row of the page's tables.
const OF_TABLES: [&str; 56] = [
    "HS_RINGS",
    "HS_DATA_OFFSET",
    "HS_GUARD_BYTES",
    "HS_FRAMES",
    "HS_FRAMES_AT_SLOT",
    "HS_FRAMES_BYTES",
    "HS_COUNTERS_OFFSET",
    "HS_COUNTERS_BYTES",
    "HS_ASKS_OFFSET",
    "HS_ASKS",
    "HS_ASK_STACK_BYTES",
    "HS_ASK_FREE",
    "HS_ASK_WRITING",
    "HS_ASK_WAITING",
    "HS_ASK_TAKEN",
    "HS_ASK_PASS",
    "HS_ASK_STOP",
    "HS_LAST_SIGNALS",
    "HS_LAST_EXIT",
    "HS_EXITING",
    "HS_LAST_ASKED",
    "HS_LAST_TAKEN",
    "HS_LAST_DONE",
    "HS_RECORDER_SLEEPS",
    "HS_RECORDER_SLEEPS_ALONE",
    "HS_SANDBOX_SEEN",
    "HS_SANDBOX_ASK",
    "HS_SANDBOX_ENTERED",
    "HS_SANDBOX_STRICT",
    "HS_SHADOW_BIT",
    "HS_CAPTURE_STACK_MAX",
    "HS_CAPTURE_TEXT_MAX",
    "HS_WATCH_WORDS",
    "HS_FOREIGN",
    "HS_WATCH_STEPS_MASK",
    "HS_WATCH_BASE_SHIFT",
    "HS_WATCH_FUNCTION_SHIFT",
    "HS_WATCH_FUNCTION_MASK",
    "HS_WATCH_THREAD_BASE",
    "HS_WATCH_CALLER_SHIFT",
    "HS_WATCH_CALLER_ENTER",
    "HS_WATCH_CALLER_LEAVE",
    "HS_WATCH_BYTES_MASK",
    "HS_WATCH_PARTLY",
    "HS_WATCH_TEXT",
    "HS_CAPTURE_TEXTS",
    "HS_CAPTURE_POINTEES",
    "HS_POINTEE_BYTES_MASK",
    "HS_POINTEE_RESULT",
    "HS_POINTEE_TEXT",
    "HS_TEXT_TERMINATED",
    "HS_TEXT_SLICE",
    "HS_TEXT_VIEW",
    "HS_TEXT_BEHIND",
    "HS_TEXT_ADDRESS_SHIFT",
    "HS_TEXT_LENGTH_MASK",
];

/// The header's constants that were not looked for in the page yet.
struct Left(BTreeMap<String, u64>);

impl Left {
    fn take(&mut self, name: &str) -> u64 {
        let taken = self.0.remove(name);
        taken.unwrap_or_else(|| panic!("no {name}"))
    }

    /// The kinds of records, by the rows of their table.
    fn check_kinds(&mut self, page: &str) {
        let mut kinds = 0;
        for row in rows(page) {
            let Some(kind) = row.last().and_then(|name| name.strip_prefix("KIND_")) else {
                continue;
            };
            assert_eq!(row[1], kind);
            let value = self.take(&format!("HS_{kind}"));
            assert_eq!(value, row[0].parse::<u64>().unwrap());
            kinds += 1;
        }
        assert_eq!(kinds, 16);
    }

    /// Lengths of records, and what is stated of their words.
    fn check_records(&mut self, page: &str) {
        let word = stated(page, "WORD_LEN");
        assert!(page.contains(&format!("`WORD_LEN` = {word}")));
        for (bytes, words) in [
            ("HS_ENTER_BYTES", "ENTER_WORDS"),
            ("HS_LEAVE_BYTES", "LEAVE_WORDS"),
            ("HS_LOG_BYTES", "LOG_WORDS"),
            ("HS_CONDITION_ERROR_BYTES", "CONDITION_ERROR_WORDS"),
        ] {
            assert_eq!(self.take(bytes), stated(page, words) * word, "{bytes}");
        }
        for name in OF_RECORDS {
            assert_eq!(
                self.take(&format!("HS_{name}")),
                stated(page, name),
                "{name}"
            );
        }
        for (name, words) in [
            ("HS_EXEC_UNKNOWN_ERROR", "UNKNOWN_ERROR"),
            ("HS_CAPTURE_WORDS", "CAPTURE_REGISTER_WORDS"),
            ("HS_CAPTURE_REGISTERS", "CAPTURE_REGISTERS"),
        ] {
            assert_eq!(self.take(name), stated(page, words), "{name}");
        }
        let (full, no_ring) = (self.take("HS_GAP_FULL"), self.take("HS_GAP_NO_RING"));
        assert!(page.contains(&format!("{full} ring full, {no_ring} no free ring")));
        let forbidden = self.take("HS_GAP_FORBIDDEN");
        assert!(page.contains(&format!("{forbidden} the program has forbidden the thread")));
        let shared = self.take("HS_GAP_SHARED");
        assert!(page.contains(&format!("{shared} the ring is shared with a child")));
    }

    /// Those of the tables.
    fn check_tables(&mut self, page: &str) {
        let rows = rows(page);
        for name in OF_TABLES {
            let mut rows = rows.iter();
            let row = rows.find(|row| row[0].split(", ").next() == Some(name));
            let value = row.unwrap()[1].parse::<u64>().unwrap();
            assert_eq!(self.take(name), value, "{name}");
        }
        let mebibytes = self.take("HS_RING_BYTES") >> 20;
        assert!(page.contains(&format!(
            "| `HS_RING_BYTES`, `RING_BYTES` | {mebibytes} MiB |"
        )));
        let magic = String::from_utf8(self.take("HS_MAGIC").to_le_bytes().into()).unwrap();
        assert!(page.contains(&format!("| `HS_MAGIC`, `MAGIC` | `{magic}` |")));
    }
}

#[test]
fn the_page_and_the_header_say_the_same_of_records() {
    let header = compiled();
    let page = read("docs/wire.md");
    let mut left = Left(header.constants.clone());
    left.check_kinds(&page);
    left.check_records(&page);
    left.check_tables(&page);
    // These do not concern the recorder's records.
    assert_eq!(left.take("HS_GO_STACK_BYTES"), GO_STACK_BYTES);
    assert_eq!(left.take("HS_LOCAL_BYTES"), header.lengths["hs_local"]);
    assert_eq!(left.take("HS_LOCAL_TID"), u64::from(LOCAL_TID));
    assert_eq!(left.take("HS_BLOCK_TID_GLIBC"), u64::from(BLOCK_TID_GLIBC));
    // The rest only tells the assembler where C has put a field.
    for (name, value) in left.0 {
        let place = offset_of_name(&header, &name);
        assert_eq!(place, Some(value as usize), "{name}");
    }
}

#[test]
fn the_page_and_the_code_say_the_same_of_shared_memory() {
    let page = read("docs/wire.md");
    for (heading, mut expected) in [
        ("### The control page", control_fields()),
        ("### A ring's header", ring_fields()),
        ("### Questions", asks::asks_fields()),
        ("### A question", asks::ask_fields()),
    ] {
        let (_, section) = page.split_once(heading).unwrap();
        let section = section.split("\n#").next().unwrap();
        for row in rows(section).iter().skip(1).filter(|row| row[0] != "---") {
            let cells = |index: usize| row[index].split(", ").map(str::to_owned);
            for (name, (at, len)) in cells(2).zip(cells(0).zip(cells(1))) {
                let place = (at.parse().unwrap(), len.parse().unwrap());
                if name.is_empty() {
                    let unused = expected.iter().find(|(_, found)| **found == place);
                    let unused = unused.map(|(name, _)| name.clone()).unwrap();
                    assert!(unused.starts_with("unused"), "{unused}");
                    expected.remove(&unused);
                } else {
                    assert_eq!(expected.remove(&name), Some(place), "{name}");
                }
            }
        }
        assert!(expected.is_empty(), "{heading} lacks {expected:?}");
    }
}
