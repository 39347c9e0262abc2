//! Every program that is started is recorded, and linked to the process that started it.

use std::collections::BTreeSet;

use e2e::{Hindsight, Program, Row, Scratch, Status, compiled};

use crate::{Set, assert_same, program_of};

#[test]
fn a_pipeline_is_its_programs() {
    let scratch = Scratch::new("children_pipeline");
    let (native, set) = Set::of_shell(&scratch, "printf 'a\\nb\\nc\\n' | cat | wc -l; exit 7");
    assert_same(&native, &set);
    assert_eq!(set.ended.status, Status::Code(7));
    set.assert_whole();
    let shell = set.one("sh");
    for name in ["cat", "wc"] {
        let row = set.one(name);
        assert_eq!(row["parent"], shell["pid"], "{name}");
        assert_eq!(row["exit_code"], 0, "{name}");
        let calls = set.recording(row).number("SELECT count(*) FROM events");
        assert!(calls > 0, "{name}");
    }
    // The one that prints is a copy of the shell.
    let copies: Vec<&Row> = set
        .rows
        .iter()
        .filter(|row| row["image_unix_ns"].is_null())
        .collect();
    assert_eq!(copies.len(), 1, "{:#?}", set.rows);
    assert_eq!(
        (&copies[0]["parent"], &copies[0]["recording"].is_null()),
        (&shell["pid"], &true)
    );
    assert!(
        set.ended.errors().contains("4 processes, 3 recordings"),
        "{}",
        set.ended.errors()
    );
}

#[test]
fn a_program_that_becomes_another_one_is_two_recordings() {
    let scratch = Scratch::new("children_exec");
    let (native, set) = Set::of_shell(&scratch, "echo before; exec cat /proc/self/comm");
    assert_same(&native, &set);
    set.assert_whole();
    let (shell, cat) = (set.one("sh"), set.one("cat"));
    assert_eq!(shell["pid"], cat["pid"]);
    assert_eq!(
        (&shell["became_another"], &cat["became_another"]),
        (&true.into(), &false.into())
    );
    assert_eq!(shell["end_unix_ns"], cat["start_unix_ns"]);
    let output =
        |row: &Row| String::from_utf8_lossy(&set.recording(row).output("stdout")).into_owned();
    assert_eq!(
        (output(shell), output(cat)),
        ("before\n".to_owned(), "cat\n".to_owned())
    );
}

/// `gcc -v` prints the command lines that it starts.
#[test]
fn a_compiler_shows_its_parts() {
    let scratch = Scratch::new("children_gcc");
    std::fs::write(scratch.join("hello.c"), "int main(void) { return 42; }\n").expect("writable");
    let program = Program::new("/usr/bin/gcc", scratch.path()).args(["hello.c", "-o", "hello"]);
    let native = program.run();
    let built = std::fs::read(scratch.join("hello")).expect("it was built");
    std::fs::remove_file(scratch.join("hello")).expect("it is there");
    let set = Set::of(&scratch, &program);
    assert_same(&native, &set);
    assert_eq!(
        std::fs::read(scratch.join("hello")).expect("it was built"),
        built
    );
    set.assert_whole();
    let names: BTreeSet<String> = set.rows.iter().map(program_of).collect();
    for name in ["gcc", "cc1", "as", "collect2", "ld"] {
        assert!(names.contains(name), "{name}: {names:?}");
        let row = set.one(name);
        assert_eq!(row["exit_code"], 0, "{row:?}");
        assert!(row["recording"].is_string(), "{row:?}");
    }
    assert_eq!(set.one("ld")["parent"], set.one("collect2")["pid"]);
    // SQL sees the set as one.
    let processes = "SELECT p.program, p.pid, p.parent, p.arguments, p.exit_code, r.parent_run \
                     FROM processes p JOIN runs r ON r.run = p.run \
                     WHERE p.pid = r.pid AND p.made_by = 'execve'";
    for path in ["set", "set.children", "set.children/*"] {
        let args = ["sql", path, "-f", "json", processes];
        let asked = Hindsight::command(&scratch, &args).run();
        assert_eq!(asked.errors(), "", "{path}");
        let rows: Vec<Row> = serde_json::from_str(&asked.text()).expect("an array of objects");
        for name in ["gcc", "cc1", "as", "collect2", "ld"] {
            let is_it = |row: &&Row| row["program"].as_str().is_some_and(|it| it.ends_with(name));
            let row = rows.iter().find(is_it);
            let row = row.unwrap_or_else(|| panic!("{name}: {rows:#?}"));
            let known = set.one(name);
            assert_eq!(
                (&row["pid"], &row["parent"], &row["exit_code"]),
                (&known["pid"], &known["parent"], &known["exit_code"]),
            );
            let arguments = row["arguments"].as_str().expect("text");
            let last = known["argv"].as_array().expect("words").last();
            assert!(arguments.ends_with(last.and_then(|it| it.as_str()).expect("text")));
            assert_eq!(row["parent_run"].is_null(), name == "gcc", "{row:?}");
        }
        let counted = "SELECT count(*) AS n, count(DISTINCT pid) AS pids FROM processes";
        let counted = Hindsight::command(&scratch, &["sql", path, counted, "--json"]).run();
        let counted = &counted.result()[0];
        assert_eq!(counted["n"], counted["pids"], "each process has one row");
    }
}

#[test]
fn make_builds_the_same() {
    let scratch = Scratch::new("children_make");
    let makefile =
        "all: a.o b.o c.o d.o\n\tcat a.o b.o c.o d.o > all\n%.o: %.c\n\tgcc -c $< -o $@\n";
    std::fs::write(scratch.join("Makefile"), makefile).expect("writable");
    for name in ["a", "b", "c", "d"] {
        let source = format!("int {name}(int x) {{ return x + 1; }}\n");
        std::fs::write(scratch.join(&format!("{name}.c")), source).expect("writable");
    }
    let program = Program::new("/usr/bin/make", scratch.path()).args(["-j2", "-s"]);
    let native = program.run();
    let built = std::fs::read(scratch.join("all")).expect("it was built");
    let clean = Program::new("/bin/sh", scratch.path()).args(["-c", "rm all *.o"]);
    assert_eq!(clean.run().status, Status::Code(0));
    let set = Set::of(&scratch, &program);
    assert_same(&native, &set);
    assert_eq!(
        std::fs::read(scratch.join("all")).expect("it was built"),
        built
    );
    for (name, count) in [("cc1", 4), ("as", 4), ("gcc", 4), ("cat", 1), ("make", 1)] {
        let rows = set.named(name);
        assert_eq!(rows.len(), count, "{name}: {:#?}", set.rows);
        assert!(
            rows.iter()
                .all(|row| row["exit_code"] == 0 && row["recording"].is_string())
        );
    }
}

const STARTER: &str = r#"#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void done(const char *how, pid_t pid) { int status; waitpid(pid, &status, 0); printf("%s %d %d\n", how, pid, WEXITSTATUS(status)); fflush(stdout); }
int main(int count, char **words) {
  if (count > 1) { fputs("", stdout); return words[1][0] - '0'; }
  pid_t pid;
  if ((pid = fork()) == 0) { execl(words[0], "forked", "1", (char *)0); _exit(99); }
  done("fork", pid);
  if ((pid = vfork()) == 0) { execl(words[0], "vforked", "2", (char *)0); _exit(99); }
  done("vfork", pid);
  char *args[] = {"spawned", "3", 0};
  posix_spawn(&pid, words[0], 0, 0, args, environ);
  done("posix_spawn", pid);
  execl(words[0], "executed", "4", (char *)0);
  return 98;
}
"#;

/// The program itself prints which process each way has made, and how it ended.
#[test]
fn each_way_to_start_a_program_is_linked_to_its_parent() {
    let scratch = Scratch::new("children_ways");
    let starter = compiled(&scratch, "starter.c", STARTER, &["-O0", "-g"]);
    let set = Set::of(&scratch, &Program::new(&starter, scratch.path()));
    assert_eq!(set.ended.status, Status::Code(4), "the last program's code");
    set.assert_whole();
    let first = set.one("starter");
    assert_eq!(first["became_another"], true);
    for (line, name) in set
        .ended
        .text()
        .lines()
        .zip(["forked", "vforked", "spawned"])
    {
        let row = set.one(name);
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(row["pid"].to_string(), words[1], "{line}");
        assert_eq!(row["exit_code"].to_string(), words[2], "{line}");
        assert_eq!(row["parent"], first["pid"], "{line}");
    }
    let executed = set.one("executed");
    assert_eq!(
        (&executed["pid"], &executed["exit_code"]),
        (&first["pid"], &4.into())
    );

    let sql = "select child.run as run, child.pid as pid, child.parent_pid as parent_pid, parent.pid as its_pid \
               from runs child join runs parent on child.parent_run = parent.run order by child.pid, child.run";
    let asked = Hindsight::command(&scratch, &["sql", "set", sql, "--json"]).run();
    let rows: Vec<Row> = serde_json::from_value(asked.result()).expect("rows");
    assert_eq!(rows.len(), 4, "{rows:#?}");
    for row in &rows {
        assert_eq!(row["its_pid"], first["pid"], "{rows:#?}");
        let is_same = row["pid"] == first["pid"];
        assert!(is_same || row["parent_pid"] == first["pid"], "{rows:#?}");
    }
    let ends = "select pid, exit_code from processes order by exit_code";
    let asked = Hindsight::command(&scratch, &["sql", "set", ends, "--json"]).run();
    let rows: Vec<Row> = serde_json::from_value(asked.result()).expect("rows");
    let codes: Vec<i64> = rows
        .iter()
        .filter_map(|row| row["exit_code"].as_i64())
        .collect();
    assert_eq!(codes, [1, 2, 3, 4], "{rows:#?}");
}

#[test]
fn without_children_the_summary_says_how_many_there_were() {
    let scratch = Scratch::new("children_told");
    let program = Program::new("/bin/sh", scratch.path())
        .args(["-c", "true; cat < /dev/null; (exit 3); exit 0"]);
    let (ended, _) = Hindsight::record(&scratch, &[], &program);
    let told = "it started 2 processes, which are not recorded; hindsight record --children records them too";
    assert!(ended.errors().contains(told), "{}", ended.errors());
    let program = Program::new("/bin/true", scratch.path());
    let ended = Hindsight::record_command(&scratch, "alone", &[], &program).run();
    assert!(!ended.errors().contains("it started"), "{}", ended.errors());
}
