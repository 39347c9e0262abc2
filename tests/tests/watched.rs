//! Goal: what `record --watch` captures of thread-local variables and of what containers hold is what gdb prints at the same
//! calls, and what cannot be captured is refused before the program runs. Method: fixtures whose values change from call to
//! call; every expression is asked of the recording and, written so that gdb needs no help, of gdb.

use std::collections::BTreeMap;

use e2e::{
    Comparison, Hindsight, Nesting, Program, Recording, Scratch, fixture_artifact, gdb_prints,
};

/// A watched expression, and what gdb is asked for the same.
struct Watched {
    ours: &'static str,
    /// `number`, `text` or `bytes`, then expressions.
    gdbs: &'static str,
    /// At how many calls it must be known, if not at all of them.
    known: Option<usize>,
}

const fn same(ours: &'static str, gdbs: &'static str) -> Watched {
    Watched {
        ours,
        gdbs,
        known: None,
    }
}

const fn at(known: usize, ours: &'static str, gdbs: &'static str) -> Watched {
    Watched {
        ours,
        gdbs,
        known: Some(known),
    }
}

fn program_of(artifact: &str, scratch: &Scratch) -> Program {
    Program::new(fixture_artifact("watched", artifact), scratch.path())
}

/// Records a program with all these watched, without any copy of memory that could know them too.
fn recorded(artifact: &str, watched: &[Watched], prefix: &str) -> Comparison {
    let scratch = Scratch::new(artifact);
    let program = program_of(artifact, &scratch);
    let texts: Vec<String> = watched
        .iter()
        .map(|watched| format!("{prefix}{}", watched.ours))
        .collect();
    let mut options = vec!["--snapshot", "never"];
    options.extend(texts.iter().flat_map(|text| ["--watch", text]));
    Comparison::of_program(scratch, &program, &options, Nesting::Proper)
}

/// The text in quotes, or the number, as gdb is asked for it; `None` for what is not known.
fn bare(value: &serde_json::Value) -> Option<String> {
    let text = value.as_str()?;
    assert!(!text.contains("stale"), "{text}");
    if text.contains("unknown:") || text.starts_with("0x") && !text.contains('"') {
        return None;
    }
    let quoted = text.find('"').map(|from| &text[from + 1..]);
    match quoted {
        Some(quoted) => Some(
            quoted
                .trim_end_matches('.')
                .trim_end_matches('"')
                .to_owned(),
        ),
        None => text.split(' ').next().map(str::to_owned),
    }
}

/// The values of an expression at the entries of a function, by its first two integer arguments.
fn values(
    recording: &Recording,
    function: &str,
    at: &str,
    expression: &str,
) -> Vec<([i64; 2], Option<String>)> {
    let name = function
        .rsplit("::")
        .next()
        .expect("a name has a last part");
    let sql = format!(
        "SELECT a0, a1, value({at}, '{expression}') AS value FROM calls \
         WHERE function = '{function}' OR function LIKE '{name}(%' OR function LIKE '%::{name}' ORDER BY {at}"
    );
    let rows = recording.rows(&sql);
    let argument =
        |row: &e2e::Row, name: &str| row[name].as_i64().map_or(0, |word| i64::from(word as i32));
    rows.iter()
        .map(|row| {
            let arguments = [argument(row, "a0"), argument(row, "a1")];
            (arguments, bare(&row["value"]))
        })
        .collect()
}

/// Compares what both say at the entries of `function`; threads come there in any order, so calls are told apart by their
/// arguments if `by_arguments`.
fn compare(
    artifact: &str,
    (function, language): (&str, &str),
    prefix: &str,
    watched: &[Watched],
    by_arguments: bool,
) {
    let comparison = recorded(artifact, watched, prefix);
    let scratch = Scratch::new(&format!("{artifact}-gdb"));
    let mut asked = vec!["number\t(int)$rdi", "number\t(int)$rsi"];
    if language == "rust" {
        asked = vec!["number\t$rdi as i32", "number\t$rsi as i32"];
    }
    asked.extend(watched.iter().map(|watched| watched.gdbs));
    let program = program_of(artifact, &scratch);
    let told = gdb_prints(&scratch, &program, (function, language), &asked);
    let mut differences = Vec::new();
    for (index, one) in watched.iter().enumerate() {
        let ours = values(&comparison.recording, function, "start_seq", one.ours);
        assert_eq!(
            ours.len(),
            told.len(),
            "{artifact}: {function} is called as often"
        );
        let mut theirs: BTreeMap<[String; 2], Option<String>> = BTreeMap::new();
        for (number, entry) in told.iter().enumerate() {
            let word = |at: usize| entry[at].clone().expect("registers can be read");
            let key = match by_arguments {
                true => [word(0), word(1)],
                false => [number.to_string(), String::new()],
            };
            theirs.insert(key, entry[2 + index].clone());
        }
        assert_eq!(theirs.len(), told.len(), "arguments tell calls apart");
        let mut known = 0;
        for (number, ([first, second], value)) in ours.iter().enumerate() {
            let key = match by_arguments {
                true => [first.to_string(), second.to_string()],
                false => [number.to_string(), String::new()],
            };
            let Some(value) = value else { continue };
            known += 1;
            if theirs[&key].as_ref() != Some(value) {
                let theirs = &theirs[&key];
                differences.push(format!(
                    "{artifact}, {}, {key:?}: {value}, gdb: {theirs:?}",
                    one.ours
                ));
            }
        }
        let wanted = one.known.unwrap_or(ours.len());
        if known != wanted {
            differences.push(format!(
                "{artifact}, {}: known at {known} calls, not {wanted}: {ours:?}",
                one.ours
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn variables_of_threads_are_those_of_gdb() {
    let watched = [
        same("mine", "number\tmine"),
        same("account.sum", "number\taccount.sum"),
        // Where nothing was stored yet there is a null pointer.
        at(9, "account.who", "text\taccount.who"),
        at(9, "my_text", "text\tmy_text._M_dataplus._M_p"),
        same("in_library", "number\tin_library"),
        same("before[1]", "number\tbefore[1]"),
    ];
    for artifact in ["watched_cxx_O0", "watched_cxx_O2"] {
        compare(artifact, ("work", "c++"), "", &watched, true);
    }
}

/// What a thread's variable is when a call returns, it is when the thread calls again.
#[test]
fn variables_of_threads_are_known_at_returns() {
    let comparison = recorded("watched_cxx_O2", &[same("mine", "")], "");
    let recording = &comparison.recording;
    let unknown = "SELECT count(*) FROM calls WHERE value(start_seq, 'mine') IS NULL OR value(end_seq, 'mine') IS NULL";
    assert_eq!(recording.number(unknown), 0);
    let mut by_worker: BTreeMap<i64, Vec<Option<String>>> = BTreeMap::new();
    for ([worker, _], value) in values(recording, "work", "start_seq", "mine") {
        by_worker.entry(worker).or_default().push(value);
    }
    for ([worker, round], value) in values(recording, "work", "end_seq", "mine") {
        let next = by_worker[&worker].get(round as usize + 1);
        assert!(
            next.is_none_or(|next| *next == value),
            "{worker}, {round}: {value:?}"
        );
    }
    // Another thread's is never taken for it: each begins with the same.
    for (worker, values) in &by_worker {
        let first = values.first().cloned().flatten();
        let expected = if *worker == 7 { 1 } else { 4 };
        assert_eq!(
            (first.as_deref(), values.len()),
            (Some("5"), expected),
            "{worker}"
        );
    }
}

#[test]
fn what_containers_of_cxx_hold_is_what_gdb_prints() {
    let watched = [
        at(2, "numbers[2]", "number\tnumbers._M_impl._M_start[2]"),
        at(4, "*numbers.begin()", "number\tnumbers._M_impl._M_start[0]"),
        at(4, "numbers.front()", "number\tnumbers._M_impl._M_start[0]"),
        same(
            "numbers.size()",
            "number\tnumbers._M_impl._M_finish - numbers._M_impl._M_start",
        ),
        at(3, "triples[1].c", "number\ttriples._M_impl._M_start[1].c"),
        at(
            3,
            "items[1].name",
            "text\titems._M_impl._M_start[1].name._M_dataplus._M_p",
        ),
        at(
            4,
            "items[0].parts[2]",
            "number\titems._M_impl._M_start[0].parts._M_impl._M_start[2]",
        ),
        at(
            2,
            "(*names)[2]",
            "text\tnames->_M_impl._M_start[2]._M_dataplus._M_p",
        ),
        same("chain.size()", "number\tchain._M_impl._M_node._M_size"),
        at(
            4,
            "chain.front()",
            "number\t*(int*)(chain._M_impl._M_node._M_next + 1)",
        ),
        at(
            3,
            "chain[1]",
            "number\t*(int*)(chain._M_impl._M_node._M_next->_M_next + 1)",
        ),
        same("tree.size()", "number\ttree._M_t._M_impl._M_node_count"),
        same("text", "text\ttext._M_dataplus._M_p"),
        same("text.size()", "number\ttext._M_string_length"),
        same("text[4]", "number\ttext._M_dataplus._M_p[4]"),
        same("view", "bytes\tview._M_str\tview._M_len"),
        same("plain", "text\tplain"),
        same(
            "owned->name",
            "text\t(*(item**)&owned)->name._M_dataplus._M_p",
        ),
        at(4, "*(int*)&maybe", "number\t*(int*)&maybe"),
    ];
    for artifact in ["watched_cxx_O0", "watched_cxx_O2"] {
        for some in watched.chunks(7) {
            compare(artifact, ("grow", "c++"), "", some, false);
        }
    }
}

#[test]
fn what_parameters_of_cxx_hold_is_what_gdb_prints() {
    let watched = [
        same("name", "text\t((std::string*)$rdx)->_M_dataplus._M_p"),
        same(
            "local[2]",
            "number\t((std::vector<int>*)$rsi)->_M_impl._M_start[2]",
        ),
        same(
            "local.size()",
            "number\t((std::vector<int>*)$rsi)->_M_impl._M_finish - ((std::vector<int>*)$rsi)->_M_impl._M_start",
        ),
    ];
    for artifact in ["watched_cxx_O0", "watched_cxx_O2"] {
        compare(artifact, ("grow", "c++"), "grow::", &watched, false);
    }
}

#[test]
fn what_containers_of_rust_hold_is_what_gdb_prints() {
    macro_rules! queue {
        ($rest:literal) => {
            concat!("(*($rdi as *mut watched::Queue))", $rest)
        };
    }
    macro_rules! item {
        ($number:literal, $rest:literal) => {
            concat!("(*((*($rdi as *mut watched::Queue)).items.buf.inner.ptr.pointer.pointer as *mut watched::Item + ", $number, "))", $rest)
        };
    }
    let watched = [
        same(
            "queue.items.len()",
            concat!("number\t", queue!(".items.len")),
        ),
        at(
            4,
            "queue.items[0].number",
            concat!("number\t", item!("0", ".number")),
        ),
        at(
            3,
            "queue.items[1].name",
            concat!(
                "bytes\t",
                item!("1", ".name.vec.buf.inner.ptr.pointer.pointer"),
                "\t",
                item!("1", ".name.vec.len")
            ),
        ),
        at(
            3,
            "queue.small[1][0]",
            concat!(
                "number\t*((*($rdi as *mut watched::Queue)).small.buf.inner.ptr.pointer.pointer as *mut u32 + 3)"
            ),
        ),
        same("queue.list.len", concat!("number\t", queue!(".list.len"))),
        same("queue.ring.len()", concat!("number\t", queue!(".ring.len"))),
        same(
            "queue.tree.len()",
            concat!("number\t", queue!(".tree.length")),
        ),
        same(
            "name",
            "bytes\t(*($rdx as *mut alloc::string::String)).vec.buf.inner.ptr.pointer.pointer\t(*($rdx as *mut alloc::string::String)).vec.len",
        ),
    ];
    for artifact in ["watched_rust_O0", "watched_rust_O2"] {
        compare(artifact, ("watched::grow", "rust"), "", &watched, false);
    }
}

#[test]
fn variables_of_threads_in_rust_are_those_of_gdb() {
    // gdb finds them by what the compiler calls them only.
    let watched = [same("MINE", "number\tMINE")];
    for artifact in ["watched_rust_O0", "watched_rust_O2"] {
        let comparison = recorded(artifact, &watched, "");
        let recording = &comparison.recording;
        let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
        let ours = values(recording, "watched::work", "start_seq", "MINE.value.value");
        assert_eq!(ours.len(), 12, "{artifact}");
        for ([worker, round], value) in ours {
            let sum = sums.entry(worker).or_insert(5);
            assert_eq!(
                value,
                Some(sum.to_string()),
                "{artifact}: {worker}, {round}"
            );
            *sum += worker + round;
        }
    }
}

#[test]
fn what_cannot_be_watched_is_refused_before_the_program_runs() {
    let scratch = Scratch::new("watched_refusals");
    let program = fixture_artifact("watched", "watched_cxx_O2");
    let program = program.to_str().expect("paths of tests are text");
    for (expression, wanted) in [
        ("tree[3]", "parts of maps and sets"),
        ("numbers[mine]", "depends on a number"),
        ("numbers.back()", "depends on a number"),
        ("*maybe", "depends on a number"),
        ("items[0].nome", "did you mean \"name\"?"),
        ("text.nobody", "has no member nobody"),
        ("grow::local[by]", "depends on a number"),
    ] {
        let args = ["record", "--watch", expression, "--", program];
        let ended = Hindsight::command(&scratch, &args).run();
        assert!(
            ended.errors().contains(wanted),
            "{expression}: {}",
            ended.errors()
        );
        assert!(ended.text().is_empty(), "{expression}: the program ran");
        assert_eq!(ended.status.as_shell_code(), 2, "{expression}");
    }
}
