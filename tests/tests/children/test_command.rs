//! `hindsight test` keeps the recordings of programs that failed.

use std::collections::BTreeSet;

use e2e::{Hindsight, Recording, Scratch, Status, compiled};

use crate::{Set, program_of};

/// `hindsight test` keeps the recordings of failed programs.
#[test]
fn recordings_of_what_passed_are_removed() {
    let scratch = Scratch::new("children_test");
    let test = |keep: &str| {
        let args = [
            "test",
            "--record-to",
            "runs",
            "--keep",
            keep,
            "--",
            "/bin/sh",
            "-c",
        ];
        let script = "cat /dev/null; ls /does/not/exist 2> /dev/null; exit 3";
        Hindsight::command(&scratch, &args).args([script]).run()
    };
    for (run, keep, kept) in [
        ("sh", "failed", &["ls.hindsight", "sh.hindsight"][..]),
        (
            "sh-2",
            "all",
            &["cat.hindsight", "ls.hindsight", "sh.hindsight"],
        ),
        ("sh-3", "none", &[]),
    ] {
        let ended = test(keep);
        assert_eq!(ended.status, Status::Code(3), "{}", ended.errors());
        assert!(
            ended.errors().contains("ls /does/not/exist ended with 2"),
            "{}",
            ended.errors()
        );
        let dir = scratch.join("runs").join(format!("{run}.children"));
        let rows = Set::rows(&dir);
        assert_eq!(rows.len(), 3, "{rows:#?}");
        let listed = rows.iter().filter_map(|row| row["recording"].as_str());
        let listed: BTreeSet<&str> = listed.collect();
        assert_eq!(listed.into_iter().collect::<Vec<_>>(), kept, "{keep}");
        let found = std::fs::read_dir(&dir).expect("it is there").flatten();
        let found =
            found.filter(|entry| entry.path().extension().is_some_and(|e| e == "hindsight"));
        assert_eq!(found.count(), kept.len(), "{keep}");
    }
}

/// With `--copies`, forked workers are judged like programs.
#[test]
fn a_failed_worker_of_a_test_is_kept_if_asked_for() {
    let scratch = Scratch::new("children_workers");
    let source = "#include <sys/wait.h>\n#include <unistd.h>\nint work(int n) { return n == 2 ? 7 : 0; }\n\
        int main(void) { for (int i = 1; i < 4; i++) if (fork() == 0) _exit(work(i));\n\
        while (wait(0) > 0); return 0; }\n";
    compiled(&scratch, "workers.c", source, &["-O0", "-g"]);
    for (run, options, kept) in [("workers", &["--copies"][..], 1), ("workers-2", &[], 0)] {
        let test = &["test", "--record-to", "runs"][..];
        let args = [test, options, &["--", "./workers"][..]].concat();
        let ended = Hindsight::command(&scratch, &args).run();
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        let dir = scratch.join("runs").join(format!("{run}.children"));
        let rows = Set::rows(&dir);
        assert_eq!(rows.len(), 4, "{rows:#?}");
        let recorded = rows.iter().filter(|row| row["recording"].is_string());
        let codes = recorded.clone().filter_map(|row| row["exit_code"].as_i64());
        assert_eq!(codes.collect::<Vec<_>>(), vec![7; kept], "{rows:#?}");
        let told = ended.errors().contains("./workers ended with 7: ");
        assert_eq!(told, kept == 1, "{}", ended.errors());
        for row in recorded {
            let name = row["recording"].as_str().expect("it is recorded");
            let calls = "SELECT count(*) FROM calls WHERE function = 'work'";
            assert_eq!(Recording::new(dir.join(name)).number(calls), 1);
        }
    }
}

/// Two programs, of which one fails, and the folder with them.
fn checks(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    for (name, code) in [("passes", "0"), ("fails", "n == 6 ? 4 : 0")] {
        let source = format!(
            "int judge(int n) {{ return {code}; }}\nint main(void) {{ return judge(6); }}\n"
        );
        compiled(&scratch, &format!("{name}.c"), &source, &["-O0", "-g"]);
    }
    scratch
}

/// Runs `hindsight test`, and returns the recorded programs that are left, with their exit codes.
fn tested(scratch: &Scratch, command: &[&str], run: &str, code: i32) -> Vec<(String, i64)> {
    let args = ["test", "--record-to", "runs", "--"];
    let ended = Hindsight::command(scratch, &[&args, command].concat()).run();
    let told = format!("{}{}", ended.text(), ended.errors());
    assert_eq!(ended.status, Status::Code(code), "{told}");
    assert!(told.contains("fails ended with 4"), "{told}");
    let dir = scratch.join("runs").join(format!("{run}.children"));
    let rows = Set::rows(&dir);
    let passed = rows.iter().find(|row| program_of(row) == "passes");
    assert!(passed.expect("it ran")["recording"].is_null(), "{rows:#?}");
    let failed = rows.iter().find(|row| program_of(row) == "fails");
    let failed = failed.expect("it ran")["recording"].as_str();
    let recording = Recording::new(dir.join(failed.expect("it failed")));
    let results = "select cast(ret as int) from calls where function = 'judge'";
    assert_eq!(recording.number(results), 4);
    let labels = format!(
        "select count(*) from runs where label(labels, 'result') = 'failed' and label(labels, 'test') = '{}'",
        command.join(" ")
    );
    assert_eq!(recording.number(&labels), 1);
    let kept = rows.iter().filter(|row| row["recording"].is_string());
    let kept = kept.map(|row| (program_of(row), row["exit_code"].as_i64().unwrap_or(-1)));
    kept.collect()
}

#[test]
fn the_recordings_of_a_failed_make_check_are_kept() {
    let scratch = checks("children_make_check");
    let makefile = "check:\n\t./passes\n\t./fails\n";
    std::fs::write(scratch.join("Makefile"), makefile).expect("writable");
    let mut kept = tested(&scratch, &["make", "check"], "make", 2);
    kept.sort();
    assert_eq!(kept, [("fails".to_owned(), 4), ("make".to_owned(), 2)]);
}

#[test]
fn the_recordings_of_a_failed_pytest_are_kept() {
    let scratch = checks("children_pytest");
    let test = "import subprocess\n\
                def test_passes(): assert subprocess.run(['./passes']).returncode == 0\n\
                def test_fails(): assert subprocess.run(['./fails']).returncode == 0\n";
    std::fs::write(scratch.join("test_programs.py"), test).expect("writable");
    let python = e2e::python_with("pytest", &["pytest==9.2.0"], "pytest");
    let python = python.to_str().expect("paths of tests are text");
    let command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"];
    let kept = tested(&scratch, &command, "python", 1);
    assert!(kept.contains(&("fails".to_owned(), 4)), "{kept:?}");
    assert!(kept.iter().all(|(_, code)| *code != 0), "{kept:?}");
}
