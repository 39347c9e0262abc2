//! Two builds of a program: which source is shown and where it is, also when the first build's files are gone.

use std::fs;

use e2e::{Program, Scratch};
use serde_json::Value;

use crate::{build, compare, record};

const SOURCE: &str = "#include <stdio.h>\n\
    int tripled(int n) { return n * 3; }\n\
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
    for part in ["app.c:2  int tripled(int n) { return n * 3; }", "app.c:5"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let log = fs::read_to_string(scratch.join("found.sarif")).expect("it was written");
    let log: Value = serde_json::from_str(&log).expect("JSON");
    let first = &log["runs"][0]["results"][0];
    assert_eq!(first["ruleId"], "suspect", "{first:#}");
    let region = &first["locations"][0]["physicalLocation"]["region"];
    assert_eq!(region["startLine"], 5, "{first:#}");
    // Patterns name recordings too; one of each is too few.
    let ended = compare(&scratch, &["--baseline", "goo*", "--candidate", "ba*"]);
    let errors = ended.errors();
    assert!(errors.contains("1 recording and 1 recording"), "{errors}");
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
