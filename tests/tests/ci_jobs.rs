//! The jobs of `docs/ci.md`, run as far as a shell can: the commands of each step, in order, on the main branch and on branches
//! with an equal build and with a planted bug. What the build server does itself (its checkout, its store of artifacts, its command-line
//! client) is done by small programs in its place.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use e2e::{Hindsight, Scratch, workspace_dir};

/// A step of a job.
#[derive(Debug, Default)]
struct Step {
    condition: String,
    /// Its commands; empty if the build server does it.
    script: String,
    /// The name of an artifact, and the folder that becomes it.
    artifact: Option<(String, String)>,
}

/// The page's block of YAML after a heading.
fn yaml(heading: &str) -> String {
    let page = fs::read_to_string(workspace_dir().join("docs/ci.md")).expect("the page is there");
    let (_, after) = page.split_once(heading).expect("the heading is there");
    let (_, block) = after.split_once("```yaml\n").expect("a block follows");
    block.split("```").next().expect("it ends").to_owned()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The items of the list below `key`, each with its lines.
fn items(text: &str, key: &str) -> Vec<Vec<String>> {
    let mut lines = text.lines().skip_while(|line| line.trim() != key);
    let own = indent(lines.next().expect("the key is there"));
    let mut found: Vec<Vec<String>> = Vec::new();
    for line in lines.take_while(|line| indent(line) > own) {
        let start = own + 2;
        match line[start.min(line.len())..].strip_prefix("- ") {
            Some(first) if indent(line) == start => {
                found.push(vec![format!("{}{first}", " ".repeat(start + 2))]);
            }
            _ => found
                .last_mut()
                .expect("an item begins")
                .push(line.to_owned()),
        }
    }
    found
}

/// A block of text after `|`, or the rest of the line.
fn block(first: &str, rest: &[String]) -> String {
    match first.trim() {
        "|" => rest
            .iter()
            .map(|line| format!("{}\n", line.trim()))
            .collect(),
        text => text.to_owned(),
    }
}

fn github() -> Vec<Step> {
    let step = |lines: Vec<String>| {
        let mut step = Step::default();
        for (at, line) in lines.iter().enumerate() {
            let rest: Vec<String> = lines[at + 1..].to_vec();
            match line.trim().split_once(':') {
                Some(("if", condition)) => condition.trim().clone_into(&mut step.condition),
                Some(("run", first)) => step.script = block(first, &rest),
                Some(("with", of)) => step.artifact = artifact(of),
                _ => {}
            }
        }
        step
    };
    items(&yaml("## GitHub Actions"), "steps:")
        .into_iter()
        .map(step)
        .collect()
}

/// Reads `{ name: NAME, path: PATH, ... }`.
fn artifact(of: &str) -> Option<(String, String)> {
    let value = |key: &str| {
        let (_, after) = of.split_once(&format!("{key}: "))?;
        let end = after.find([',', ' ', '}'])?;
        Some(after[..end].to_owned())
    };
    value("name").zip(value("path"))
}

fn gitlab() -> Vec<Step> {
    let step = |lines: Vec<String>| Step {
        script: block(&lines[0], &lines[1..]),
        ..Step::default()
    };
    items(&yaml("## GitLab CI"), "script:")
        .into_iter()
        .map(step)
        .collect()
}

/// A build server: the artifacts of its main branch, and programs in place of its own.
struct Server {
    scratch: Scratch,
}

const STAND_INS: [(&str, &str); 6] = [
    ("sudo", "exec \"$@\""),
    ("apt-get", "exit 0"),
    ("make", "gcc -g -O1 -DLIMIT=$LIMIT -o app app.c"),
    (
        "gh",
        "case \"$1 $2\" in\n'run list') if [ -d \"$ARTIFACTS/baseline\" ]; then echo 17; fi;;\n\
         'run download') cp -r \"$ARTIFACTS/$5\" \"$7\";;\nesac",
    ),
    (
        "curl",
        "while [ $# -gt 0 ]; do if [ \"$1\" = --output ]; then to=$2; fi; shift; done\n\
         [ -d \"$ARTIFACTS/baseline\" ] || exit 22\n\
         touch \"$to\"",
    ),
    ("unzip", "cp -r \"$ARTIFACTS/baseline\" ."),
];

impl Server {
    fn new(name: &str) -> Server {
        let scratch = Scratch::new(name);
        let bin = scratch.join("bin");
        fs::create_dir_all(&bin).expect("the test's folder is writable");
        for (name, script) in STAND_INS {
            let path = bin.join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("the folder is writable");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        }
        Server { scratch }
    }

    fn shell(&self, job: &str, branch: &str, limit: u32, script: &str) -> Output {
        let own = Hindsight::path().parent().expect("it is in a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.scratch.join("bin");
        Command::new("sh")
            .args(["-e", "-c", script])
            .current_dir(self.scratch.join(job))
            .env(
                "PATH",
                format!("{}:{}:{path}", bin.display(), own.display()),
            )
            .env("XDG_DATA_HOME", self.scratch.join("data"))
            .env("ARTIFACTS", self.scratch.join("artifacts"))
            .env("LIMIT", limit.to_string())
            .envs([
                ("CI", "true"),
                ("CI_COMMIT_BRANCH", branch),
                ("CI_DEFAULT_BRANCH", "main"),
            ])
            .envs([
                ("CI_API_V4_URL", "http://localhost/api/v4"),
                ("CI_PROJECT_ID", "1"),
            ])
            .env("CI_JOB_TOKEN", "none")
            .output()
            .expect("there is a shell")
    }

    /// Runs a job on a fresh checkout. Returns whether all its steps succeeded, and what they printed.
    fn run(&self, job: &str, steps: &[Step], branch: &str, limit: u32) -> (bool, String) {
        let folder = self.scratch.join(job);
        fs::create_dir_all(folder.join("tests")).expect("the test's folder is writable");
        fs::write(folder.join("app.c"), PROGRAM).expect("the folder is writable");
        fs::write(folder.join("tests/input.txt"), "1 2 3 4 5\n").expect("the folder is writable");
        let known = r#"{"about": "none", "fingerprints": []}"#;
        fs::write(folder.join("known-differences.json"), known).expect("the folder is writable");
        let (mut succeeds, mut said) = (true, String::new());
        for step in steps {
            let is_wanted = match step.condition.as_str() {
                "" => succeeds,
                "failure()" => !succeeds,
                "github.ref == 'refs/heads/main'" => succeeds && branch == "main",
                "github.ref != 'refs/heads/main'" => succeeds && branch != "main",
                other => panic!("what does {other} mean?"),
            };
            if !is_wanted {
                continue;
            }
            let ended = self.shell(job, branch, limit, &step.script);
            said += &String::from_utf8_lossy(&ended.stdout);
            said += &String::from_utf8_lossy(&ended.stderr);
            succeeds &= ended.status.success();
            if let Some((name, path)) = &step.artifact {
                let kept = format!("mkdir -p \"$ARTIFACTS\" && cp -r {path} \"$ARTIFACTS/{name}\"");
                assert!(
                    self.shell(job, branch, limit, &kept).status.success(),
                    "{name}"
                );
            }
        }
        (succeeds, said)
    }
}

const PROGRAM: &str = r#"#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) long price(long pieces) { return pieces * 450 - (pieces > LIMIT) * 100; }
int main(int count, char **words) {
  long sold = 0;
  FILE *input = fopen(words[count - 1], "r");
  for (long pieces; input && fscanf(input, "%ld", &pieces) == 1;) sold += price(pieces);
  printf("sold for %ld\n", sold);
  return 0;
}
"#;

fn branches_are_compared_with_main(server: &Server, steps: &[Step], keep: impl Fn(&str)) {
    // A branch before there is a baseline.
    let (succeeds, said) = server.run("early", steps, "early", 3);
    assert!(succeeds && !said.contains("compared"), "{said}");
    let (succeeds, said) = server.run("main", steps, "main", 3);
    assert!(succeeds, "{said}");
    keep("main");
    let (succeeds, said) = server.run("equal", steps, "equal", 3);
    assert!(succeeds && said.contains("the same"), "{said}");
    let (succeeds, said) = server.run("bug", steps, "bug", 4);
    assert!(!succeeds && said.contains("1. price"), "{said}");
    assert!(server.scratch.join("bug/compare.html").is_file());
}

#[test]
fn the_job_for_github_compares_with_the_artifact_of_main() {
    let server = Server::new("ci-github");
    let steps = github();
    assert!(steps.len() > 8, "{steps:#?}");
    branches_are_compared_with_main(&server, &steps, |_| {});
    assert!(server.scratch.join("artifacts/comparison").is_file());
    assert!(server.scratch.join("bug/compare.sarif").is_file());
}

#[test]
fn the_job_for_gitlab_compares_with_the_artifact_of_the_default_branch() {
    let server = Server::new("ci-gitlab");
    let steps = gitlab();
    assert_eq!(steps.len(), 5, "{steps:#?}");
    // `paths: [baseline, ...]` of the job.
    let keep = |job: &str| {
        let kept = "mkdir -p \"$ARTIFACTS\" && cp -r baseline \"$ARTIFACTS/baseline\"";
        assert!(server.shell(job, "main", 3, kept).status.success());
    };
    branches_are_compared_with_main(&server, &steps, keep);
    assert!(server.scratch.join("bug/compare.xml").is_file());
}
