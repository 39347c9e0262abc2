//! What is reported, what is ignored, and what is refused.

use std::fs;

use e2e::{
    Hindsight, Program, Scratch, Signal, Steady, change_version, fixture_artifact, fixture_source,
    share, wait_until,
};

use crate::{build, compare, ends_with, record};

/// Builds and records `invoices` unchanged, and once with a wrong tax.
pub fn with_a_bug(scratch: &Scratch) {
    let source = fs::read_to_string(fixture_source("hunts").join("invoices.c")).expect("a source");
    let wrong = source.replace("per_mille / 1000", "per_mille / 900");
    for (name, text) in [("good", source), ("bad", wrong)] {
        made(scratch, name, &text);
    }
}

/// Builds and records `invoices` as `worse`, with another bug.
pub fn with_a_worse_one(scratch: &Scratch) {
    let source = fs::read_to_string(fixture_source("hunts").join("invoices.c")).expect("a source");
    let worse = source.replace("unsigned sum = 7;", "unsigned sum = 8;");
    made(scratch, "worse", &worse);
}

fn made(scratch: &Scratch, name: &str, text: &str) {
    let folder = scratch.join(name);
    fs::create_dir(&folder).expect("the test's folder is writable");
    fs::write(folder.join("invoices.c"), text).expect("the test's folder is writable");
    build(&folder, "gcc -O0 -g -o invoices invoices.c");
    let program = Program::new(folder.join("invoices"), scratch.path());
    record(scratch, name, &[], &program);
}

#[test]
fn a_difference_is_told_with_both_sides() {
    let scratch = Scratch::new("told");
    with_a_bug(&scratch);
    let ended = compare(&scratch, &["good", "bad"]);
    ends_with(&ended, 1);
    let text = ended.text();
    assert!(text.lines().count() <= 40, "{text}");
    for part in [
        "A good and B bad: different",
        "1. tax_of at invoices.c:",
        "its code differs",
        "per_mille / 1000",
        "per_mille / 900",
        "stdout differs",
        "with another result",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let found = compare(&scratch, &["good", "bad", "--json"]).result();
    assert_eq!(found["is_same"], false);
    assert_eq!(found["suspects"][0]["function"], "tax_of");
    assert_eq!(found["threads"][0]["parting"]["how"], "result");
    let values = &found["threads"][0]["parting"]["values"][0];
    assert_eq!(values["name"], "result");
    let number = |side: &str| {
        values[side]
            .as_str()
            .and_then(|text| text.parse::<i64>().ok())
            .expect("a number")
    };
    // Both taxes are of the same net: 1000 times the one is 900 times the other, but for what division drops.
    assert!(
        (number("a") * 1000 - number("b") * 900).abs() < 2000,
        "{values}"
    );
}

const STEPS: &str = r#"#include <stdio.h>
long total;
int step(int number) { return number * 3; }
int run(int number) {
  int doubled = number * 2, kept = 5;
  total += number;
  int got = step(doubled + MORE);
  return got + kept;
}
int main(void) {
  int sum = 0;
  for (int i = 0; i < 20; i++) sum += run(i);
  printf("%d\n", sum);
  return 0;
}
"#;

#[test]
fn a_source_file_with_a_new_name_is_no_difference() {
    let scratch = Scratch::new("renamed");
    let source = fs::read_to_string(fixture_source("hunts").join("invoices.c")).expect("a source");
    for (name, file) in [("before", "invoices.c"), ("after", "accounts.c")] {
        let folder = scratch.join(name);
        fs::create_dir(&folder).expect("the test's folder is writable");
        fs::write(folder.join(file), &source).expect("the test's folder is writable");
        build(&folder, &format!("gcc -O0 -g -o invoices {file}"));
        let program = Program::new(folder.join("invoices"), scratch.path());
        record(&scratch, name, &[], &program);
    }
    let ended = compare(&scratch, &["before", "after"]);
    ends_with(&ended, 0);
    assert!(ended.text().contains("same"), "{}", ended.text());
}

#[test]
fn variables_and_watched_values_are_told_where_it_differs_first() {
    let scratch = Scratch::new("held");
    for (name, more) in [("good", "0"), ("bad", "(number == 7)")] {
        let folder = scratch.join(name);
        fs::create_dir(&folder).expect("the test's folder is writable");
        fs::write(folder.join("steps.c"), STEPS).expect("the test's folder is writable");
        build(
            &folder,
            &format!("gcc -O0 -g '-DMORE={more}' -o steps steps.c"),
        );
        record(
            &scratch,
            name,
            &["--regs", "--stack", "256", "--watch", "total"],
            &Program::new(folder.join("steps"), scratch.path()),
        );
    }
    let page = scratch.join("page.html");
    let html = page.to_str().expect("a path");
    let ended = compare(&scratch, &["good", "bad", "--html", html]);
    ends_with(&ended, 1);
    let text = ended.text();
    for part in [
        "run called step with other arguments",
        "    number: A 14, B 15\n",
        "    local doubled: 14 on both sides\n",
        "    local kept: 5 on both sides\n",
        "    watched total: 28 on both sides\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let page = fs::read_to_string(page).expect("a page");
    for part in ["local <code>doubled</code>", "watched <code>total</code>"] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    let found = compare(&scratch, &["good", "bad", "--json"]).result();
    let held = found["threads"][0]["parting"]["held"]
        .as_array()
        .expect("a list");
    let total = held.iter().find(|held| held["name"] == "total");
    let total = total.expect("the watched one");
    assert_eq!(
        (&total["kind"], &total["differs"]),
        (&"watched".into(), &false.into())
    );
    assert_eq!((&total["a"], &total["b"]), (&"28".into(), &"28".into()));
}

#[test]
fn accepted_differences_are_no_news() {
    let scratch = Scratch::new("accepted");
    with_a_bug(&scratch);
    ends_with(
        &compare(&scratch, &["good", "bad", "--accept", "known.json"]),
        0,
    );
    let again = compare(&scratch, &["good", "bad", "--accept", "known.json"]);
    assert!(again.text().contains("were accepted"), "{}", again.text());
    ends_with(&again, 0);
    ends_with(&compare(&scratch, &["good", "bad"]), 1);
    with_a_worse_one(&scratch);
    let other = compare(&scratch, &["good", "worse", "--accept", "known.json"]);
    assert!(other.text().contains("checksum"), "{}", other.text());
    ends_with(&other, 1);
    fs::write(scratch.join("known.json"), "{}").expect("the test's folder is writable");
    let wrong = compare(&scratch, &["good", "bad", "--accept", "known.json"]);
    assert!(wrong.errors().contains("known.json"), "{}", wrong.errors());
    ends_with(&wrong, 2);
}

#[test]
fn a_new_file_of_accepted_differences_is_told() {
    let scratch = Scratch::new("newly-accepted");
    with_a_bug(&scratch);
    let reports = ["--junit", "r.xml", "--sarif", "r.sarif", "--github"];
    let args = [&["good", "bad", "--accept", "new.json"], &reports[..]].concat();
    let first = compare(&scratch, &args);
    ends_with(&first, 0);
    let told = first.errors();
    assert!(told.contains("there was no new.json: wrote "), "{told}");
    assert!(
        told.contains("known differences to it; all of them are accepted"),
        "{told}"
    );
    assert!(
        first.text().contains("A good and B bad: different"),
        "people read what they accept"
    );
    assert!(!first.text().contains("::error"), "{}", first.text());
    let junit = fs::read_to_string(scratch.join("r.xml")).expect("it was written");
    assert!(junit.contains("failures=\"0\""), "{junit}");
    let later = compare(&scratch, &args);
    ends_with(&later, 0);
    assert_eq!(later.errors(), "");
    assert_eq!(
        junit,
        fs::read_to_string(scratch.join("r.xml")).expect("it was written")
    );

    // On a build server, a name that is misspelled would pass each time.
    let job = ["compare", "good", "bad", "--accept", "misspelled.json"];
    let refused = Hindsight::command(&scratch, &job).env("CI", "true").run();
    ends_with(&refused, 2);
    assert!(
        refused.errors().contains("misspelled.json"),
        "{}",
        refused.errors()
    );
    assert!(!scratch.join("misspelled.json").exists());
    let known = ["compare", "good", "bad", "--accept", "new.json"];
    ends_with(
        &Hindsight::command(&scratch, &known).env("CI", "true").run(),
        0,
    );
}

#[test]
fn what_the_project_ignores_is_no_difference() {
    let scratch = Scratch::new("ignored");
    with_a_bug(&scratch);
    let rules = |text: &str| {
        fs::write(
            scratch.join("hindsight.toml"),
            format!("[compare.ignore]\n{text}\n"),
        )
        .expect("the test's folder is writable");
        compare(&scratch, &["good", "bad"])
    };
    ends_with(&rules("output = [\"^invoice\", \"cents\"]"), 1);
    let functions = "functions = [\"tax_of\", \"total_of\", \"print_invoice\"]";
    let ended = rules(&format!("{functions}\noutput = [\".\"]"));
    ends_with(&ended, 0);
    let ended = rules(
        "results = [\"tax_of\", \"total_of\"]\nargs = [\"print_invoice:total\"]\nkinds = [\"output\"]",
    );
    ends_with(&ended, 0);
    for wrong in [
        "output = [\"(\"]",
        "kinds = [\"all\"]",
        "args = [\"f\"]",
        "functoins = []",
        "output = 1",
    ] {
        let ended = rules(wrong);
        assert!(
            ended.text().is_empty() && !ended.errors().is_empty(),
            "{wrong}: {}",
            ended.text()
        );
        ends_with(&ended, 2);
        let told = ended.errors();
        assert!(told.contains("hindsight.toml"), "{wrong}: {told}");
    }
    let ended = rules(
        "functions = [\"tax_fo\", \"tax_of\"]\nresults = [\"zzz\"]\nargs = [\"print_invoice:y\"]\noutput = [\"^took\", \"cents\"]",
    );
    let text = ended.text();
    for part in [
        "the rule \"tax_fo\" of functions in hindsight.toml matched nothing; functions near it: tax_of\n",
        "the rule \"zzz\" of results in hindsight.toml matched nothing\n",
        "the rule \"print_invoice:y\" of args in hindsight.toml matched nothing; parameters of print_invoice: ",
        "the rule \"^took\" of output in hindsight.toml matched nothing\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(text.matches("matched nothing").count(), 4, "{text}");
}

/// A program that prints its argument with `\\n` as newline, in pieces of so many bytes.
fn printer(scratch: &Scratch) {
    let source = "#include <string.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
        int main(int count, char **words) {\n\
          size_t step = atoi(words[2]); static char text[300000]; size_t len = 0;\n\
          for (char *c = words[1]; *c; c++) {\n\
            if (*c == '@') for (int i = 0; i < 65536; i++) text[len++] = 'x';\n\
            else text[len++] = *c == '|' ? 10 : *c; }\n\
          for (size_t at = 0; at < len; at += step) write(1, text + at, len - at < step ? len - at : step);\n\
          return 0; }\n";
    fs::write(scratch.join("print.c"), source).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O1 -g -o print print.c");
}

fn print(scratch: &Scratch, name: &str, text: &str, step: &str) {
    let program = Program::new(scratch.join("print"), scratch.path());
    record(scratch, name, &["-f", "main"], &program.args([text, step]));
}

#[test]
fn a_missing_final_newline_is_a_difference_of_the_output() {
    let scratch = Scratch::new("final-end");
    fs::write(
        scratch.join("hindsight.toml"),
        "[compare.ignore]\nargs = [\"main:*\"]\nkinds = [\"exit\"]\n",
    )
    .expect("the test's folder is writable");
    printer(&scratch);
    for (name, text, step) in [
        ("ended", "one|two|", "100"),
        ("pieces", "one|two|", "1"),
        ("cut", "one|two", "100"),
        ("short", "one|", "100"),
        ("long", "@|@y|", "1000000"),
        ("longpieces", "@|@y|", "65536"),
        ("longcut", "@|@y", "1000"),
    ] {
        print(&scratch, name, text, step);
    }
    let told = |a, b, code| {
        let ended = compare(&scratch, &[a, b]);
        ends_with(&ended, code);
        ended.text()
    };
    let text = told("ended", "cut", 1);
    let why = "stdout differs: A ends with a newline, B does not";
    assert!(text.contains(why) && text.contains("A line 2"), "{text}");
    assert!(told("cut", "ended", 1).contains("B ends with a newline, A does not"));
    let text = told("cut", "short", 1);
    assert!(
        text.contains("B no such line") && !text.contains("newline"),
        "{text}"
    );
    told("ended", "pieces", 0);
    told("long", "longpieces", 0);
    assert!(told("long", "longcut", 1).contains(why));
    let json = compare(&scratch, &["ended", "cut", "--json"]).result();
    assert_eq!(json["output"][0]["a"]["newline"], true);
    assert_eq!(json["output"][0]["b"]["newline"], false);
    ends_with(
        &compare(&scratch, &["ended", "cut", "--accept", "known.json"]),
        0,
    );
    ends_with(
        &compare(&scratch, &["ended", "cut", "--accept", "known.json"]),
        0,
    );
}

#[test]
fn other_arguments_and_environments_are_told() {
    let scratch = Scratch::new("launched");
    printer(&scratch);
    print(&scratch, "a", "one|", "100");
    print(&scratch, "b", "one|", "50");
    let program = Program::new(scratch.join("print"), scratch.path());
    let program = program.args(["one|", "100"]).env("EXTRA", "secret");
    record(&scratch, "c", &["-f", "main"], &program);
    let text = compare(&scratch, &["a", "b"]).text();
    assert!(
        text.contains("A ran ") && text.contains("print one| 50"),
        "{text}"
    );
    assert!(!text.contains("environment"), "{text}");
    let found = compare(&scratch, &["a", "c"]);
    ends_with(&found, 0);
    let text = found.text();
    assert!(
        text.contains("their environments differ: EXTRA\n"),
        "{text}"
    );
    assert!(
        !text.contains("A ran ") && !text.contains("secret"),
        "{text}"
    );
    let json = compare(&scratch, &["a", "c", "--json"]).result();
    assert_eq!(json["environment"], serde_json::json!(["EXTRA"]));
}

const OPTIONS: &str = r#"#include <stdio.h>
static int mode;
int tax(int n) { return mode ? n / 10 : n / 100; }
int total(int n) { return n + tax(n); }
int main(int words, char **all) {
  int sum = 0;
  for (int i = 1; i < words; i++) mode |= all[i][0] == '-' && all[i][1] == 'f';
  for (int i = 1; i < 5; i++) sum += total(i * 100);
  printf("%d\n", sum > 0);
  return 0;
}
"#;

#[test]
fn another_number_of_arguments_is_no_difference_by_itself() {
    let scratch = Scratch::new("compare-options");
    fs::write(scratch.join("app.c"), OPTIONS).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O0 -g -o app app.c");
    let runs: [(&str, &[&str]); 3] = [
        ("one", &["in"]),
        ("quiet", &["-q", "in"]),
        ("fast", &["-f", "in"]),
    ];
    for (name, args) in runs {
        let app = Program::new(scratch.join("app"), scratch.path()).args(args.iter().copied());
        record(&scratch, name, &[], &app);
    }
    ends_with(&compare(&scratch, &["one", "quiet"]), 0);
    let found = compare(&scratch, &["one", "fast", "--json"]).result();
    assert_eq!(
        found["threads"][0]["parting"]["function"], "tax",
        "{found:#}"
    );
    assert_eq!(found["suspects"][0]["function"], "tax", "{found:#}");
}

#[test]
fn what_differs_far_behind_in_a_line_is_shown() {
    let scratch = Scratch::new("compare-far");
    printer(&scratch);
    let long = "y".repeat(500);
    for end in ["5", "6"] {
        print(
            &scratch,
            &format!("far{end}"),
            &format!("{long}{end}|"),
            "100",
        );
        print(
            &scratch,
            &format!("farther{end}"),
            &format!("one|@@{end}|"),
            "100000",
        );
    }
    let ended = compare(&scratch, &["far5", "far6"]);
    ends_with(&ended, 1);
    for shown in ["yyy5\n", "yyy6\n"] {
        assert!(ended.text().contains(shown), "{}", ended.text());
    }
    let found = compare(&scratch, &["far5", "far6", "--json"]).result();
    for (side, end) in [("a", "yyy5"), ("b", "yyy6")] {
        let text = found["output"][0][side]["text"].as_str().expect("a line");
        assert!(text.starts_with("...yyy") && text.ends_with(end), "{text}");
    }
    // Long lines are compared in parts; the number is that of the line.
    let ended = compare(&scratch, &["farther5", "farther6"]);
    ends_with(&ended, 1);
    let text = ended.text();
    assert!(
        text.contains("A line 2 (seq ") && text.contains("): ...5\n"),
        "{text}"
    );
    assert!(
        text.contains("B line 2 (seq ") && text.contains("): ...6\n"),
        "{text}"
    );
}

#[test]
fn a_recording_beside_a_baseline_is_refused() {
    let scratch = Scratch::new("compare-beside");
    let args = ["nosuch", "--baseline", "a", "--candidate", "b"];
    let ended = compare(&scratch, &args);
    ends_with(&ended, 2);
    assert!(ended.errors().contains("--baseline"), "{}", ended.errors());
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_reason() {
    let scratch = Scratch::new("refused");
    let fib = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args(["12"]);
    record(&scratch, "one", &[], &fib);
    record(&scratch, "two", &[], &fib);
    record(
        &scratch,
        "other",
        &[],
        &Program::new(
            fixture_artifact("typed_args", "typed_args_O0"),
            scratch.path(),
        ),
    );
    let refused = |a: &str, b: &str, why: &str| {
        let ended = compare(&scratch, &[a, b]);
        assert!(
            ended.errors().contains(why),
            "{a} {b}: {}{}",
            ended.text(),
            ended.errors()
        );
        assert!(ended.text().is_empty(), "{}", ended.text());
        ends_with(&ended, 3);
    };
    refused("one", "one", "are the same recording");
    refused("one", "other", "are of different programs");
    let damaged = |name: &str, change: fn(Vec<u8>) -> Vec<u8>| {
        let from = scratch.join("two.hindsight");
        let to = scratch.join(&format!("{name}.hindsight"));
        let copied = Program::new("/bin/cp", scratch.path())
            .args([&*from.to_string_lossy(), "-r", &*to.to_string_lossy()])
            .run();
        ends_with(&copied, 0);
        let calls = to.join("columns/calls-000000.parquet");
        let bytes = fs::read(&calls).expect("a sealed file");
        fs::write(&calls, change(bytes)).expect("the test's folder is writable");
    };
    damaged("cut", |bytes| bytes[..bytes.len() / 2].to_vec());
    damaged("empty", |_| Vec::new());
    refused("one", "cut", "calls-000000.parquet");
    refused("one", "empty", "calls-000000.parquet");
    damaged("changed", |mut bytes| {
        bytes[100] ^= 0xff;
        bytes
    });
    let why = "error: changed.hindsight/columns/calls-000000.parquet is damaged at offset 0";
    refused("one", "changed", why);
    ends_with(&compare(&scratch, &["one", "missing"]), 2);
    ends_with(&compare(&scratch, &["one"]), 2);
}

#[test]
fn a_recording_of_a_newer_release_is_refused() {
    let scratch = Scratch::new("newer");
    let fib = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args(["12"]);
    record(&scratch, "one", &[], &fib);
    record(&scratch, "two", &[], &fib);
    change_version(&scratch.join("two.hindsight/manifest"), 99, &[]);
    for args in [
        &["one", "two"][..],
        &["two", "one"],
        &["two", "two"],
        &[
            "--baseline",
            "one",
            "one",
            "one",
            "--candidate",
            "one",
            "one",
            "two",
        ],
    ] {
        let ended = compare(&scratch, args);
        let told = ended.errors();
        let why = "two.hindsight/manifest has format version 99, this build reads up to ";
        assert!(told.contains(why), "{args:?}: {told}");
        assert!(told.contains("help: use a newer hindsight"), "{told}");
        assert!(ended.text().is_empty(), "{}", ended.text());
        ends_with(&ended, 3);
    }
}

#[test]
fn too_few_recordings_do_not_say_what_is_slower() {
    let scratch = Scratch::new("few");
    let fib = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args(["12"]);
    record(&scratch, "one", &[], &fib);
    record(&scratch, "two", &[], &fib);
    let refused = |args: &[&str], why: &str, help: &str| {
        let ended = compare(&scratch, args);
        let told = ended.errors();
        assert!(
            told.contains(why) && told.contains(help),
            "{args:?}: {told}"
        );
        ends_with(&ended, 3);
    };
    let few = ["--baseline", "one", "--candidate", "two"];
    let why = "one recording a side is too few to show a difference";
    refused(&few, why, "make 5 of each build at least");
    let few = ["--baseline", "one", "two", "--candidate", "two", "one"];
    refused(&few, "chance alone does that in 16.7 %", "make 5 of each");
    refused(
        &few,
        "the whole program gets half of the 2.5 %",
        "6 are enough to judge each of 10 functions, too",
    );
}

#[test]
fn the_limits_of_percentages_are_told_as_they_are() {
    let scratch = Scratch::new("percent");
    let help = compare(&scratch, &["--help"]).text();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let sides = ["--baseline", "missing", "--candidate", "missing"];
    let asked = |option, value| compare(&scratch, &[&sides[..], &[option, value]].concat());
    for (option, range, wrong, right) in [
        (
            "--alpha",
            "more than 0 and less than 50",
            ["0", "50", "NaN"],
            ["0.1", "49.9"],
        ),
        (
            "--change",
            "from 0 to 10000",
            ["-1", "10001", "inf"],
            ["0", "300"],
        ),
    ] {
        assert!(help.contains(range), "{help}");
        for value in wrong {
            let ended = asked(option, value);
            let told = ended.errors();
            assert!(told.contains(range), "{option} {value}: {told}");
            ends_with(&ended, 2);
        }
        for value in right {
            let told = asked(option, value).errors();
            assert!(told.contains("missing"), "{option} {value}: {told}");
            assert!(!told.contains("it must be"), "{option} {value}: {told}");
        }
    }
}

#[test]
fn the_same_build_is_seldom_called_slower() {
    let scratch = Scratch::new("no-slower");
    let fib = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args(["14"]);
    let mut alarms = Vec::new();
    for pair in 0..share(4) {
        let runs = |side: char| -> Vec<String> {
            (0..5).map(|run| format!("{side}{pair}{run}")).collect()
        };
        let (own, other) = (runs('a'), runs('b'));
        // In turn, because the machine may become slower meanwhile.
        for (a, b) in own.iter().zip(&other) {
            record(&scratch, a, &[], &fib);
            record(&scratch, b, &[], &fib);
        }
        let mut args = vec!["--baseline"];
        args.extend(own.iter().map(String::as_str));
        args.push("--candidate");
        args.extend(other.iter().map(String::as_str));
        let ended = compare(&scratch, &args);
        match ended.status.as_shell_code() {
            0 => {}
            1 => alarms.push(ended.text()),
            code => panic!("{code}: {}{}", ended.text(), ended.errors()),
        }
    }
    // By chance, at most one of twenty pairs is.
    assert!(alarms.len() <= 1, "{alarms:#?}");
}

#[test]
fn a_comparison_is_coloured_where_it_is_wanted() {
    let scratch = Scratch::new("colours");
    with_a_bug(&scratch);
    let plain = compare(&scratch, &["good", "bad"]).text();
    assert!(!plain.contains('\x1b'), "{plain}");
    let coloured = compare(&scratch, &["good", "bad", "--color", "always"]).text();
    let bare: String = coloured
        .split('\x1b')
        .enumerate()
        .map(|(at, part)| match at {
            0 => part,
            _ => part.split_once('m').expect("an escape ends").1,
        })
        .collect();
    assert_eq!(bare, plain);
    let line = |beginning: &str| {
        let found = coloured.lines().find(|line| line.starts_with(beginning));
        found.unwrap_or_else(|| panic!("{beginning:?}\n{coloured}"))
    };
    line("\x1b[1mA good and B bad: different\x1b[0m");
    assert!(line("\x1b[31m  A tax_of(").ends_with("\x1b[0m"));
    line("\x1b[32m  B tax_of(");
    // The statement that made the call, between its neighbours.
    let source: Vec<&str> = plain
        .lines()
        .skip_while(|line| !line.starts_with("      called at invoices.c:"))
        .skip(1)
        .take(3)
        .collect();
    assert!(
        source[1].starts_with("      > ") && source[1].contains("tax_of("),
        "{source:?}"
    );
    for at in [0, 2] {
        assert!(source[at].starts_with("        "), "{source:?}");
    }
    let same = ", the same lines";
    assert_eq!(plain.matches(same).count(), 1, "{plain}");
    let terminal = Hindsight::command(&scratch, &["compare", "good", "bad"]).env("TERM", "xterm");
    let shown = terminal.in_terminal().run().text();
    assert!(shown.contains("\x1b[31m  A tax_of("), "{shown}");
    let bare = terminal.env("NO_COLOR", "1").in_terminal().run().text();
    // What a slow machine shows meanwhile has been erased.
    let bare = bare.rsplit("\x1b[2K").next().unwrap_or_default();
    assert!(
        bare.contains("  A tax_of(") && !bare.contains('\x1b'),
        "{bare}"
    );
}

#[test]
fn a_recording_that_grows_or_was_cut_is_refused() {
    let scratch = Scratch::new("unfinished");
    let steady = Steady::new(&scratch);
    let program = steady.unhurried(&scratch);
    let (running, _) = Hindsight::start_recording(&scratch, &[], &program);
    wait_until("three rounds", || (steady.rounds() >= 3).then_some(()));
    let fib = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args(["12"]);
    record(&scratch, "one", &[], &fib);
    let ended = compare(&scratch, &["one", "rec"]);
    assert!(
        ended.errors().contains("still being recorded"),
        "{}",
        ended.errors()
    );
    ends_with(&ended, 3);
    running.signal(Signal::KILL);
    steady.stop();
    let _ = running.finish();
    let ended = compare(&scratch, &["one", "rec"]);
    assert!(ended.errors().contains("is cut"), "{}", ended.errors());
    ends_with(&ended, 3);
}

const LEAVES: &str = r#"#include <stdio.h>
static int leaf(int x) { return x + 1; }
static int body(int n) {
  int s = 0;
  for (int i = 0; i < n; i++) {
    STEP
  }
  return s;
}
static long base(void) {
  volatile long t = 0;
  for (int i = 0; i < 3000000; i++) t += i;
  return t;
}
int main(void) {
  long t = base();
  for (int i = 0; i < 20; i++) t += body(3000);
  for (int i = 0; i < 200; i++) t += leaf(i);
  printf("%ld\n", t);
  return 0;
}
"#;

#[test]
fn what_recording_more_calls_costs_is_told() {
    let scratch = Scratch::new("leaves");
    let (mut own, mut other) = (Vec::new(), Vec::new());
    let programs = [("one", "s += i + 1;"), ("two", "s += leaf(i);")];
    for (name, step) in programs {
        let folder = scratch.join(name);
        fs::create_dir(&folder).expect("the test's folder is writable");
        fs::write(folder.join("leaves.c"), LEAVES).expect("the test's folder is writable");
        build(
            &folder,
            &format!("gcc -O0 -g '-DSTEP={step}' -o leaves leaves.c"),
        );
    }
    for run in 0..6 {
        for ((program, _), names) in programs.iter().zip([&mut own, &mut other]) {
            let name = format!("{program}{run}");
            let program = Program::new(scratch.join(program).join("leaves"), scratch.path());
            record(&scratch, &name, &[], &program);
            names.push(name);
        }
    }
    let sides = |a: &[String], b: &[String]| {
        let mut args = vec!["--baseline"];
        args.extend(a.iter().map(String::as_str));
        args.push("--candidate");
        args.extend(b.iter().map(String::as_str));
        compare(&scratch, &args)
    };
    for (a, b, more) in [(&own, &other, "more"), (&other, &own, "fewer")] {
        let ended = sides(a, b);
        let text = ended.text();
        let why = format!("60,000 {more} calls: the cost of recording them may explain");
        assert!(text.contains(&why), "{text}{}", ended.errors());
    }
    // A report takes out what a comparison does, but for the median.
    let report = Hindsight::command(&scratch, &["report", "two0"]).run();
    let taken = |text: &str| {
        let line = text
            .lines()
            .find(|line| line.contains("the cost of recording: "));
        line.expect("it is told").contains(" ns within each call, ")
    };
    assert!(taken(&report.text()) && taken(&sides(&own, &other).text()));
}
