//! `docs/ci.md`: its shell steps do what the page says, and the reports of a comparison are what browsers and build servers
//! read. Python's XML and JSON readers read them.

use std::path::Path;
use std::process::{Command, Output};

use e2e::{Hindsight, Scratch, workspace_dir};

const PROGRAM: &str = r#"#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) long price(long pieces) { return pieces * 450 - (pieces > LIMIT) * 100; }
__attribute__((noinline)) long busy(long turns) { volatile long sum = 0; for (long i = 0; i < turns; i++) sum += i; return sum; }
int main(int count, char **words) {
  long sold = 0;
  FILE *input = fopen(words[count - 1], "r");
  for (long pieces; input && fscanf(input, "%ld", &pieces) == 1;) sold += price(pieces);
  busy(TURNS);
  printf("sold for %ld\n", sold);
  return 0;
}
"#;

/// The page's blocks of shell, in order.
fn blocks() -> Vec<String> {
    let page = std::fs::read_to_string(workspace_dir().join("docs/ci.md")).unwrap();
    let parts = page.split("```sh\n").skip(1);
    parts
        .map(|part| part.split("```").next().unwrap().to_owned())
        .collect()
}

fn compile(scratch: &Scratch, program: &str, limit: u32, turns: u32) {
    std::fs::write(scratch.join("app.c"), PROGRAM).unwrap();
    let done = Command::new("gcc")
        .args(["-g", "-O1", "-o", program, "app.c"])
        .args([format!("-DLIMIT={limit}"), format!("-DTURNS={turns}")])
        .current_dir(scratch.path())
        .status()
        .unwrap();
    assert!(done.success());
}

fn shell(scratch: &Scratch, script: &str) -> Output {
    let bin = Hindsight::path();
    let path = format!(
        "{}:{}",
        bin.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    Command::new("sh")
        .args(["-e", "-c", script])
        .env("PATH", path)
        .env("XDG_DATA_HOME", scratch.join("data"))
        .env("CI", "true")
        .current_dir(scratch.path())
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Removes the files of a job, except the baseline.
fn next_job(scratch: &Scratch) {
    std::fs::remove_dir_all(scratch.join("candidate.hindsight")).unwrap();
}

#[test]
fn the_steps_of_a_job_pass_equal_builds_and_fail_others() {
    let scratch = Scratch::new("ci-page");
    let steps = &blocks()[0];
    std::fs::create_dir_all(scratch.join("tests")).unwrap();
    std::fs::write(scratch.join("tests/input.txt"), "1 2 3 4 5\n").unwrap();
    let known = r#"{"about": "none", "fingerprints": []}"#;
    std::fs::write(scratch.join("known-differences.json"), known).unwrap();
    compile(&scratch, "app", 3, 10);

    let first = shell(&scratch, steps);
    assert!(first.status.success(), "{}", text(&first));
    std::fs::create_dir_all(scratch.join("baseline")).unwrap();
    let moved = Command::new("cp")
        .args(["-r", "candidate.hindsight", "baseline/"])
        .current_dir(scratch.path())
        .status();
    assert!(moved.unwrap().success());
    next_job(&scratch);

    let same = shell(&scratch, steps);
    assert!(same.status.success(), "{}", text(&same));
    assert!(text(&same).contains("the same"), "{}", text(&same));
    next_job(&scratch);

    // One more or fewer: a typical mistake.
    compile(&scratch, "app", 4, 10);
    let different = shell(&scratch, steps);
    assert_eq!(different.status.code(), Some(1), "{}", text(&different));
    assert!(
        text(&different).contains("1. price"),
        "{}",
        text(&different)
    );
    reports_can_be_read(&scratch);
    let github = shell(
        &scratch,
        "hindsight compare baseline/candidate candidate --github",
    );
    assert_eq!(github.status.code(), Some(1), "{}", text(&github));
    let annotations = text(&github);
    let mut annotations = annotations.lines().filter(|line| line.starts_with("::"));
    let first = annotations.next().unwrap();
    let place = "::error title=hindsight suspect,file=app.c,line=3::price";
    assert!(first.starts_with(place), "{first}");
    let output = annotations.find(|line| line.contains("title=hindsight output"));
    assert!(output.unwrap().contains("sold for"), "{output:?}");

    // Accepted differences do not count in the next job.
    std::fs::remove_file(scratch.join("known-differences.json")).unwrap();
    let accepted = shell(
        &scratch,
        "unset CI; hindsight compare baseline/candidate candidate --accept known-differences.json",
    );
    assert!(accepted.status.success(), "{}", text(&accepted));
    next_job(&scratch);
    let later = shell(&scratch, steps);
    assert!(later.status.success(), "{}", text(&later));
}

fn reports_can_be_read(scratch: &Scratch) {
    let script = r#"
import html.parser, json, xml.etree.ElementTree as tree
suite = tree.parse("compare.xml").getroot()[0]
failed = [case.get("name") for case in suite if case.find("failure") is not None]
assert "suspect price" in failed and "output stdout" in failed, failed
assert int(suite.get("failures")) == len(failed) and int(suite.get("tests")) == len(suite)
log = json.load(open("compare.sarif"))
assert log["version"] == "2.1.0"
run, = log["runs"]
rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
assert all(result["ruleId"] in rules for result in run["results"])
suspect = run["results"][0]
place = suspect["locations"][0]["physicalLocation"]
assert suspect["ruleId"] == "suspect" and suspect["level"] == "error", suspect
assert place["artifactLocation"]["uri"] == "app.c" and place["region"]["startLine"] == 3, place
assert {result["ruleId"] for result in run["results"]} >= {"suspect", "output", "function"}, run["results"]
for result in run["results"]:
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] >= 1, result
prints = [result["partialFingerprints"]["hindsight/v1"] for result in run["results"]]
assert prints[0].startswith("suspect:price:") and len(set(prints)) == len(prints), prints
class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(); self.open, self.words = [], []
    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "link", "br"): self.open.append(tag)
        for name, value in attrs: assert name not in ("src", "href"), "the page needs no other file"
    def handle_endtag(self, tag): assert self.open.pop() == tag
    def handle_data(self, data): self.words.append(data)
text = open("compare.html").read()
for other in ("url(", "@import"): assert other not in text.lower(), "the page needs no other file"
page = Page(); page.feed(text)
assert not page.open and "price" in page.words and any("sold for" in word for word in page.words)
"#;
    let read = Command::new("python3")
        .args(["-c", script])
        .current_dir(scratch.path())
        .output()
        .unwrap();
    assert!(read.status.success(), "{}", text(&read));
}

#[test]
fn each_result_has_a_place_even_without_debug_information() {
    let scratch = Scratch::new("ci-places");
    for limit in [1, 2] {
        let script = format!(
            "printf '#include <stdio.h>\\nint main(void) {{ puts(\"{limit}\"); return {limit}; }}\\n' > one.c
             gcc -O1 -o one one.c; hindsight record --portable -o r{limit} ./one || true"
        );
        assert!(shell(&scratch, &script).status.success());
    }
    let compared = shell(&scratch, "hindsight compare r1 r2 --sarif r.sarif");
    assert_eq!(compared.status.code(), Some(1), "{}", text(&compared));
    let log = std::fs::read_to_string(scratch.join("r.sarif")).unwrap();
    let log: serde_json::Value = serde_json::from_str(&log).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert!(results.iter().any(|result| result["ruleId"] == "output"));
    for result in results {
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "one", "{result:#}");
        assert_eq!(place["region"]["startLine"], 1, "{result:#}");
    }
}

#[test]
fn a_build_that_is_slower_is_told_by_six_recordings_a_side() {
    let scratch = Scratch::new("ci-slower");
    let steps = blocks().pop().unwrap();
    compile(&scratch, "app-main", 3, 40_000_000);
    // So much slower that a busy machine does not hide it.
    compile(&scratch, "app-candidate", 3, 800_000_000);
    std::fs::write(scratch.join("input.txt"), "1 2 3\n").unwrap();
    let slower = shell(&scratch, &format!("INPUT=input.txt\n{steps}"));
    assert_eq!(slower.status.code(), Some(1), "{}", text(&slower));
    let told = text(&slower);
    assert!(told.contains("The candidate is slower"), "{told}");
    assert!(
        told.lines()
            .any(|line| line.trim_start().starts_with("slower busy")),
        "{told}"
    );
    // The same recordings on both sides would show nothing.
    let runs = "a1 a2 a3 a4 a5 a6";
    let same = shell(
        &scratch,
        &format!("hindsight compare --baseline {runs} --candidate {runs}"),
    );
    assert_eq!(same.status.code(), Some(3), "{}", text(&same));
    assert!(
        text(&same).contains("are the same recording"),
        "{}",
        text(&same)
    );
    assert!(Path::new(&scratch.join("a1.hindsight")).is_dir());
}
