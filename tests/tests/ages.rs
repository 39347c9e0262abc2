//! Goal: a container is never shown with contents of another time. Method: a program whose containers are a function of its
//! number of steps; what is shown of them at any event, perhaps as of an earlier one, is what they were at that event.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Hindsight, Program, Recording, Scratch, fixture_artifact, in_turn};
use serde_json::Value;

/// Steps between two copies of memory.
const BETWEEN: usize = 20;
const STEPS: usize = 120;
const NAMES: [&str; 7] = [
    "order", "names", "name", "queue", "squares", "wide", "maybe",
];

/// A build of the program.
struct Build {
    artifact: &'static str,
    /// Where it keeps whether `maybe` has a value.
    maybe: &'static str,
    is_rust: bool,
}

const BUILDS: [Build; 3] = [
    Build {
        artifact: "ages",
        maybe: "maybe._M_payload._M_engaged",
        is_rust: false,
    },
    Build {
        artifact: "ages_libcxx",
        maybe: "maybe.__engaged_",
        is_rust: false,
    },
    Build {
        artifact: "ages_rust",
        maybe: "MAYBE",
        is_rust: true,
    },
];

impl Build {
    /// A container's name in its language.
    fn spelt(&self, name: &str) -> String {
        match self.is_rust {
            true => name.to_uppercase(),
            false => name.to_owned(),
        }
    }
}

/// The contents of a container after this number of steps, without its label.
fn expected(build: &Build, name: &str, steps: usize) -> String {
    let text = |n: usize| {
        let letter = char::from(b'a' + (n % 26) as u8);
        format!("\"{}\"", letter.to_string().repeat(20 + n))
    };
    let (open, close) = match build.is_rust {
        true => ('[', ']'),
        false => ('{', '}'),
    };
    let joined = |items: Vec<String>| format!("{open}{}{close}", items.join(", "));
    match name {
        "order" => joined((0..steps).map(|n| n.to_string()).collect()),
        "names" => joined((0..steps).map(text).collect()),
        "name" => steps.checked_sub(1).map_or("\"\"".to_owned(), text),
        "queue" => joined((steps / 3..steps).map(|n| n.to_string()).collect()),
        "squares" => {
            let pairs: Vec<String> = (0..steps).map(|n| format!("[{n}] = {}", n * n)).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        "wide" => joined(vec![(steps.max(1) - 1).to_string(); 100]),
        "maybe" if build.is_rust => match steps.is_multiple_of(2) {
            true => "None".to_owned(),
            false => format!("Some({})", steps - 1),
        },
        "maybe" if steps.is_multiple_of(2) => "{}".to_owned(),
        "maybe" => format!("{{{}}}", steps - 1),
        other => panic!("no container {other}"),
    }
}

/// The contents without the label in front of them, which values of C++ have.
fn contents<'t>(build: &Build, text: &'t str) -> &'t str {
    match text.find(['{', '"']) {
        _ if build.is_rust => text,
        Some(start) => &text[start..],
        None => "{}",
    }
}

fn recorded(build: &Build, scratch: &Scratch, options: &[&str]) -> Recording {
    let program = Program::new(fixture_artifact("ages", build.artifact), scratch.path());
    let every = format!("every={}events", 2 * BETWEEN);
    let mut all = vec!["-f", "step", "--snapshot", &every];
    all.extend_from_slice(options);
    Hindsight::record(scratch, &all, &program).1
}

/// The display of a container at an event.
struct Shown {
    seq: u64,
    name: &'static str,
    text: String,
    /// The event at which its contents were last seen, if it is not this one.
    stale_since: Option<u64>,
}

fn shown(build: &Build, recording: &Recording, scratch: &Scratch, seqs: &[u64]) -> Vec<Shown> {
    let mut script = String::new();
    for seq in seqs {
        script.push_str(&format!("goto {seq}\n"));
        for name in NAMES {
            script.push_str(&format!("print --full {}\n", build.spelt(name)));
        }
    }
    let path = scratch.join("script");
    std::fs::write(&path, script).expect("a script");
    let path = path.to_str().expect("paths of tests are text");
    let ended = recording.command("repl", &["--json", "--script", path]);
    let output = ended.text();
    let answers = serde_json::Deserializer::from_str(&output).into_iter::<Value>();
    let answers = answers.map(|answer| answer.expect("JSON")["result"].take());
    let values: Vec<Value> = answers
        .filter(|answer| !answer["expression"].is_null())
        .collect();
    assert_eq!(values.len(), seqs.len() * NAMES.len());
    let asked = seqs.iter().flat_map(|seq| NAMES.map(|name| (*seq, name)));
    let found = asked.zip(values).map(|((seq, name), value)| Shown {
        seq,
        name,
        text: value["value"].as_str().expect("a value").to_owned(),
        stale_since: value["stale_since"].as_u64(),
    });
    found.collect()
}

#[test]
fn containers_are_never_of_two_times() {
    for build in in_turn(&BUILDS) {
        never_of_two_times(build);
    }
}

fn never_of_two_times(build: &Build) {
    let scratch = Scratch::new(build.artifact);
    let mut watches = ["order", "queue", "squares", "name", "wide"]
        .map(|name| build.spelt(name))
        .to_vec();
    watches.push(build.maybe.to_owned());
    let options: Vec<&str> = watches
        .iter()
        .flat_map(|watch| ["--watch", watch])
        .collect();
    let recording = recorded(build, &scratch, &options);
    let ends = recording.rows("SELECT end_seq FROM calls ORDER BY end_seq");
    let ends = ends
        .iter()
        .map(|row| row["end_seq"].as_u64().expect("it returned"));
    let ends: Vec<u64> = ends.collect();
    assert_eq!(ends.len(), STEPS);
    let steps = |seq: u64| ends.iter().filter(|end| **end <= seq).count();
    let (mut known, mut stale, mut parts, mut unknown) = (0, 0, 0, 0);
    for shown in shown(build, &recording, &scratch, &ends) {
        let Shown {
            seq,
            name,
            text,
            stale_since,
        } = shown;
        let expected = expected(build, name, steps(stale_since.unwrap_or(seq)));
        let text = text.split(" <stale:").next().expect("the value itself");
        let whole = contents(build, text);
        match (text.find("<unknown"), stale_since) {
            (Some(_), _) if text.starts_with("<unknown") => unknown += 1,
            (Some(_), _) => {
                let (seen, _) = whole.split_once("<unknown").expect("it was found");
                let of = build.artifact;
                assert!(
                    expected.starts_with(seen),
                    "{name} of {of} at {seq}: {text}"
                );
                parts += 1;
            }
            (None, since) => {
                assert_eq!(
                    whole, expected,
                    "{name} of {} at {seq}, as of {since:?}",
                    build.artifact
                );
                match since {
                    None => known += 1,
                    Some(_) => stale += 1,
                }
            }
        }
    }
    // `names` is stale after each copy, long lists are headers without contents, short vectors are captured whole.
    let counts = format!(
        "{}: {known} known, {stale} stale, {parts} in part, {unknown} unknown",
        build.artifact
    );
    assert!(known > STEPS / 2 && stale > STEPS / 2, "{counts}");
    assert!(parts > STEPS, "{counts}");
}

/// The values of a heap block from before it was allocated again belonged to another object.
#[test]
fn what_another_object_held_is_no_older_value() {
    let wanted = ["-f", "seen", "-f", "asked"];
    for (more, is_told) in [(&[][..], false), (&["-f", "module:libc.so*"], true)] {
        let scratch = Scratch::new("heap_blocks");
        let program = Program::new(
            fixture_artifact("heap_blocks", "heap_blocks"),
            scratch.path(),
        );
        let watches = ["--watch", "first->id", "--watch", "second"];
        let options = [&wanted[..], more, &watches[..]].concat();
        let (_, recording) = Hindsight::record(&scratch, &options, &program);
        let seq = recording.number("SELECT start_seq FROM calls WHERE function = 'asked'");
        let seen = recording.number("SELECT start_seq FROM calls WHERE function = 'seen'");
        let first = format!("SELECT value({seen}, 'first->id') AS v");
        assert_eq!(recording.row(&first)["v"], "111");
        let ask = |what: &str| {
            let at = seq.to_string();
            let goto = format!("goto {at}");
            let ended = recording.prompt(&[&goto, what]);
            ended.text() + &ended.errors()
        };
        let shown = ask("print second->id");
        match is_told {
            true => assert!(
                shown.contains("that block of the heap was allocated"),
                "{shown}"
            ),
            // Without calls of malloc this is unknown: the output says that the value is old, and may be another
            // object's.
            false => {
                assert!(shown.contains("111 <stale: as of event"), "{shown}");
                assert!(
                    shown.contains("no recorded call of malloc returned that block"),
                    "{shown}"
                );
                let why = format!("SELECT explain_value({seq}, 'second->id') AS why");
                let why = recording.row(&why)["why"].to_string();
                assert!(
                    why.contains("no recorded call of malloc returned that block"),
                    "{why}"
                );
            }
        }
    }
}

/// The same for all other functions that allocate blocks.
#[test]
fn what_was_in_a_block_before_it_was_handed_out_is_no_value() {
    for how in [
        "memalign",
        "calloc",
        "realloc",
        "reallocarray",
        "aligned_alloc",
        "new",
        "array",
        "mmap",
    ] {
        let scratch = Scratch::new(&format!("heap_ways_{how}"));
        let program = Program::new(fixture_artifact("heap_blocks", "ways"), scratch.path());
        let options = [
            ["-f", "seen"],
            ["-f", "asked"],
            ["-f", "module:libc.so*"],
            ["-f", "module:libstdc++*"],
            ["--watch", "first->id"],
            ["--watch", "second"],
        ];
        let (_, recording) = Hindsight::record(&scratch, &options.concat(), &program.args([how]));
        let seq = recording.number("SELECT start_seq FROM calls WHERE function = 'asked'");
        let goto = format!("goto {seq}");
        let ended = recording.prompt(&[&goto, "print second->id"]);
        let shown = ended.text() + &ended.errors();
        // posix_memalign stores the address: without debug information no function is known that returns it.
        let sql = "SELECT count(*) FROM calls WHERE function IN ('_mid_memalign', '_mid_memalign.constprop.0')";
        let is_told = how != "memalign" || recording.number(sql) > 0;
        let wanted = match is_told {
            true => "<unknown: that block of the heap was allocated",
            false => "no recorded call of malloc returned that block",
        };
        assert!(shown.contains(wanted), "{how}: {shown}");
        let value = format!("SELECT value({seq}, 'second->id') AS v");
        assert!(recording.row(&value)["v"].is_null(), "{how}");
    }
}

/// The value of an expression as of an earlier event is its value there, with all of its operands.
#[test]
fn what_is_computed_is_of_one_moment() {
    let scratch = Scratch::new("moments");
    let program = Program::new(fixture_artifact("ages", "moments"), scratch.path());
    let watches = ["--watch", "both.a", "--watch", "idx"];
    let (_, recording) = Hindsight::record(&scratch, &watches, &program);
    let expressions = [
        "idx * 100 + tab[0]",
        "tab[idx]",
        "both.a + both.b",
        "both.a > 0 && tab[0] == 10",
        "idx ? tab[0] : tab[1]",
        "-both.b + idx",
    ];
    let answers = |seq: u64| -> Vec<Value> {
        let goto = format!("goto {seq}");
        let prints: Vec<String> = expressions.iter().map(|e| format!("print {e}")).collect();
        let mut words = vec!["--json", "--cmd", &goto];
        words.extend(prints.iter().flat_map(|print| ["--cmd", print]));
        let output = recording.command("repl", &words).text();
        let answers = serde_json::Deserializer::from_str(&output).into_iter::<Value>();
        let answers = answers.map(|answer| answer.expect("JSON")["result"].take());
        answers
            .filter(|answer| !answer["expression"].is_null())
            .collect()
    };
    let rows = recording.rows("SELECT end_seq FROM calls WHERE function = 'set'");
    let mut stale = 0;
    for row in rows {
        let seq = row["end_seq"].as_u64().expect("it returned");
        for (index, found) in answers(seq).into_iter().enumerate() {
            // Known, or unknown with a reason.
            let Some(since) = found["stale_since"].as_u64() else {
                continue;
            };
            let then = answers(since)[index].take();
            let text = found["value"].as_str().expect("a value");
            let value = text.split(" <stale:").next().expect("the value itself");
            assert_eq!(then["value"], value, "{found:#}, as of {then:#}");
            assert_eq!(then["stale_since"], Value::Null, "{then:#}");
            stale += 1;
        }
    }
    assert!(stale >= 15, "{stale}");
}

/// Copies of memory that are made where a function is entered show nothing of its frame: its first instructions had not run.
#[test]
fn a_copy_at_an_entry_shows_no_variables() {
    for artifact in in_turn(["frames", "frames_clang"]) {
        let scratch = Scratch::new(artifact);
        let program = Program::new(fixture_artifact("ages", artifact), scratch.path());
        let every = ["--snapshot", "every=1events"];
        let (_, recording) = Hindsight::record(&scratch, &every, &program);
        let rows = recording.rows("SELECT start_seq FROM calls WHERE function = 'leaf'");
        assert_eq!(rows.len(), 8);
        for (call, row) in rows.into_iter().enumerate() {
            let goto = format!("goto {}", row["start_seq"]);
            let shown = recording.prompt(&[&goto, "backtrace --locals"]).text();
            let k = call / 2 + 1;
            for (name, value) in [
                ("k=", k.to_string()),
                ("wide=", "900".to_owned()),
                ("m=", k.to_string()),
            ] {
                for (at, _) in shown.match_indices(name) {
                    if !shown[..at].ends_with(['(', ' ']) {
                        continue;
                    }
                    let rest = &shown[at + name.len()..];
                    let is_right = rest.starts_with(&value) || rest.starts_with("<unknown");
                    assert!(is_right, "{name} is {value}: {shown}");
                }
            }
        }
    }
}
