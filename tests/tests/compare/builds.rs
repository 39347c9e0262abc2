//! Two builds of a program: which source is shown and where it is, also when the first build's files are gone.

use std::fs;
use std::path::Path;

use e2e::{Program, Scratch};
use serde_json::Value;

use crate::{build, compare, record};

const SOURCE: &str = "#include <stdio.h>\n\
    int tripled(int n) {\n\
    return n * 3; }\n\
    int more(int n) { return n + 1; }\n\
    int less(int n) { return n - 1; }\n\
    int main(void) {\n\
    for (int i = 1; i < 5; i++) printf(\"%d\\n\", tripled(less(more(i))));\n\
    return 0; }\n";

fn made(scratch: &Scratch, name: &str, text: &str, options: &[&str]) {
    fs::write(scratch.join("app.c"), text).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O0 -g -o app app.c");
    let app = Program::new(scratch.join("app"), scratch.path());
    record(scratch, name, options, &app);
}

#[test]
fn each_build_has_its_own_source_and_places_are_the_second_ones() {
    let scratch = Scratch::new("compare-builds");
    made(&scratch, "good", SOURCE, &["--portable"]);
    let edited = SOURCE.replace("n * 3", "n * 4");
    made(&scratch, "bad", &format!("\n\n\n{edited}"), &["--portable"]);
    let ended = compare(&scratch, &["good", "bad", "--sarif", "found.sarif"]);
    let text = ended.text();
    for part in ["app.c:3  return n * 3; }", "app.c:6"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let log = fs::read_to_string(scratch.join("found.sarif")).expect("it was written");
    let log: Value = serde_json::from_str(&log).expect("JSON");
    let first = &log["runs"][0]["results"][0];
    assert_eq!(first["ruleId"], "suspect", "{first:#}");
    let region = &first["locations"][0]["physicalLocation"]["region"];
    assert_eq!(region["startLine"], 6, "the line that differs: {first:#}");
    let ended = compare(&scratch, &["good", "bad", "--github"]);
    let text = ended.text();
    assert!(text.contains("app.c,line=6::tripled"), "{text}");
    // Patterns name recordings too; one of each is too few.
    let ended = compare(&scratch, &["--baseline", "goo*", "--candidate", "ba*"]);
    let errors = ended.errors();
    assert!(errors.contains("one recording a side"), "{errors}");
}

#[test]
fn a_renamed_program_is_compared_and_says_what_was_not_recorded() {
    let scratch = Scratch::new("compare-renamed");
    made(&scratch, "old", SOURCE, &[]);
    fs::rename(scratch.join("app.c"), scratch.join("shop.c")).expect("the test's folder");
    build(scratch.path(), "gcc -O0 -g -o shop shop.c");
    let shop = Program::new(scratch.join("shop"), scratch.path());
    record(&scratch, "new", &[], &shop);
    let ended = compare(&scratch, &["old", "new"]);
    assert!(ended.status.as_shell_code() < 2, "{}", ended.errors());
    record(&scratch, "few", &["-f", "main", "-f", "less"], &shop);
    let text = compare(&scratch, &["new", "few"]).text();
    assert!(text.contains("was recorded with other options"), "{text}");
}

/// At -O2 the code of `price` begins with that of a function of another file.
const HEADER: &str = "#ifndef RATE_H\n#define RATE_H\n\
    static inline __attribute__((always_inline)) int rate(const int *of, int n) {\n\
    int sum = 0;\n\
    for (int i = 0; i < n; i++) sum += of[i] * 7;\n\
    return sum;\n\
    }\n#endif\n";
const PRICE: &str = "#include <stdio.h>\n#include \"rate.h\"\n\
    __attribute__((noinline)) int price(const int *of, int n) {\n\
    int all = rate(of, n);\n\
    return all + 40;\n\
    }\n\
    int main(int argc, char **argv) {\n\
    int of[] = {argc, 2, 3};\n\
    for (int i = 1; i < 4; i++) printf(\"%d\\n\", price(of, i));\n\
    return 0; }\n";

/// All lines of source in an answer: file, line and text.
fn lines_in(value: &Value, found: &mut Vec<(String, u64, String)>) {
    if let (Some(file), Some(line), Some(text)) = (
        value["file"].as_str(),
        value["line"].as_u64(),
        value["text"].as_str(),
    ) {
        found.push((file.to_owned(), line, text.to_owned()));
    }
    match value {
        Value::Array(all) => all.iter().for_each(|value| lines_in(value, found)),
        Value::Object(all) => all.values().for_each(|value| lines_in(value, found)),
        _ => {}
    }
}

#[test]
fn every_line_of_source_is_that_of_its_file() {
    let scratch = Scratch::new("compare-lines");
    for (name, header, text) in [
        ("good", HEADER.to_owned(), PRICE.to_owned()),
        ("body", HEADER.to_owned(), PRICE.replace("+ 40", "+ 41")),
        ("inlined", HEADER.replace("* 7", "* 8"), PRICE.to_owned()),
    ] {
        let folder = scratch.join(name);
        fs::create_dir(&folder).expect("the test's folder is writable");
        fs::write(folder.join("rate.h"), header).expect("the test's folder is writable");
        fs::write(folder.join("app.c"), text).expect("the test's folder is writable");
        build(&folder, "gcc -O2 -g -o app \"$PWD/app.c\"");
        let app = Program::new(folder.join("app"), &folder);
        record(&scratch, name, &[], &app);
    }
    for (other, changed) in [("body", "app.c"), ("inlined", "rate.h")] {
        let ended = compare(&scratch, &["good", other, "--json"]);
        let mut lines = Vec::new();
        lines_in(&ended.result(), &mut lines);
        for (file, line, text) in &lines {
            let own = fs::read_to_string(file).expect("the source is there");
            let own = own.lines().nth(*line as usize - 1).map(str::trim);
            assert_eq!(own, Some(text.trim()), "{file}:{line}");
        }
        let is_changed = |line: &&(String, u64, String)| {
            Path::new(&line.0).ends_with(changed) && line.2.contains("return all + 4")
        };
        if other == "body" {
            assert_eq!(lines.iter().filter(is_changed).count(), 2, "{lines:?}");
        }
        assert!(!lines.is_empty(), "{}", ended.text());
    }
}

#[test]
fn a_line_in_a_pipe_is_whole() {
    let scratch = Scratch::new("compare-long");
    let long = "and never halved ".repeat(12);
    let text = SOURCE.replace("return n * 3; }", &format!("return n * 3; /* {long}*/ }}"));
    made(&scratch, "good", &text, &["--portable"]);
    made(&scratch, "bad", &text.replace("n * 3", "n * 4"), &[]);
    let text = compare(&scratch, &["good", "bad"]).text();
    let line = format!("return n * 4; /* {long}*/ }}");
    assert!(text.contains(&line), "{text}");
}
