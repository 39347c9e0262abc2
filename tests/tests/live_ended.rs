//! Goal: what a program's files say is answered after its end, breakpoints are then for the next run, and a program that is
//! started has the standard input and the end that its user means. Method: small programs, asked before and after.

use std::path::{Path, PathBuf};

use e2e::{Hindsight, Live, Signal, Status, compiled, is_alive, wait_until};

const ENDED: &str = "#include <stdio.h>

struct point { int x; int y; };
static struct point table[4];
double dd = 2.5;

static int sq(int n) {
  return n * n;
}

int main(void) {
  int total = 0;
  for (int n = 0; n < 4; n++)
    total += table[n].x + sq(n);
  printf(\"%d\\n\", total);
  return 0;
}
";

const READS: &str = "#include <stdio.h>
int main(void) {
  char line[64];
  while (fgets(line, sizeof line, stdin))
    printf(\"read %s\", line);
  return 0;
}
";

/// Writes its process id to a file and waits.
const WAITS: &str = "#include <stdio.h>
#include <unistd.h>
int main(void) {
  FILE *file = fopen(\"new\", \"w\");
  fprintf(file, \"%d\", getpid());
  fclose(file);
  rename(\"new\", \"begun\");
  for (;;)
    pause();
}
";

fn text(live: &Live, words: &[&str]) -> String {
    let ended = live.command(words).run();
    ended.text() + &ended.errors()
}

fn said(live: &Live, line: &str) -> String {
    text(live, &line.split(' ').collect::<Vec<_>>())
}

/// A program that stands in its `main`.
fn in_main(name: &str) -> Live {
    let live = Live::new(name);
    let program = compiled(&live.scratch, "ended.c", ENDED, &["-g", "-O0"]);
    live.start(&["--break", "main"], &program, &[]);
    live
}

#[test]
fn types_and_code_are_answered_after_the_end_as_before() {
    let live = in_main("ended-code");
    let lines = [
        "ptype table",
        "whatis dd",
        "whatis table[0].x",
        "disassemble sq",
        "list ended.c:7,9",
    ];
    let before = lines.map(|line| said(&live, line));
    assert!(
        before[0].starts_with("type = struct point {\n"),
        "{before:?}"
    );
    assert_eq!(before[1], "type = double\n");
    assert_eq!(live.run_to_end(), 0);
    for (line, before) in lines.iter().zip(before) {
        assert_eq!(said(&live, line), before, "{line}");
    }
    for (refused, why) in [
        ("print dd", "has ended"),
        ("whatis nothere", "nothere"),
        ("disassemble", "has ended"),
        ("list +2", "no current line"),
    ] {
        let said = said(&live, refused);
        assert!(said.starts_with("error: "), "{refused}: {said}");
        assert!(said.contains(why), "{refused}: {said}");
    }
}

/// The session shows the last event of the recording: nothing runs there.
#[test]
fn threads_have_ended_with_the_program() {
    let live = in_main("ended-threads");
    let pid = live.ask(&["threads"])["threads"][0]["thread"].clone();
    assert_eq!(live.run_to_end(), 0);
    let refused = said(&live, "info threads");
    assert!(
        refused.starts_with("error: ") && refused.contains("has ended with exit code 0"),
        "{refused}"
    );
    live.ask(&["goto", "last"]);
    let reply = live.ask(&["threads"]);
    assert_eq!(reply["is_over"], true, "{reply:#}");
    assert_eq!(
        reply["threads"],
        serde_json::json!([{"thread": pid, "name": "ended", "state": "ended", "selected": true}])
    );
    let shown = said(&live, "info threads");
    assert!(
        shown.ends_with("| ended | \nThe program has ended: no thread runs.\n"),
        "{shown}"
    );
}

#[test]
fn lines_without_a_file_are_those_of_main_or_of_the_file_shown_last() {
    let live = in_main("ended-lines");
    let other = live.scratch.join("other.txt");
    std::fs::write(&other, "one\ntwo\nthree\n").expect("the test's folder is writable");
    assert_eq!(live.run_to_end(), 0);
    let said = |line: &str| said(&live, line);
    assert!(said("list 11,12").contains("11 | int main(void) {\n"));
    let shown = said(&format!("list {}:2,3", other.display()));
    assert!(shown.contains("two") && shown.contains("three"), "{shown}");
    assert!(said("list 1,1").contains("one\n"));
}

#[test]
fn breakpoints_that_are_set_after_the_end_are_for_the_next_run() {
    let live = in_main("ended-breaks");
    assert_eq!(live.run_to_end(), 0);
    let file = live.scratch.join("ended.c");
    let ended = "  the program has ended: restart sets it\n";
    assert_eq!(
        said(&live, "break 14"),
        format!(
            "Breakpoint 2: {}:14 [for the next run]\n{ended}",
            file.display()
        )
    );
    assert_eq!(
        said(&live, "rbreak ^sq$"),
        format!("Breakpoint 3: sq [for the next run]\n{ended}")
    );
    assert_eq!(
        said(&live, "catch signal SIGUSR1"),
        format!("Catchpoint 4: SIGUSR1 [for the next run]\n{ended}")
    );
    let list = live.ask(&["info", "breakpoints"]);
    assert_eq!(list["probes"][1]["code"], "NOT_RUNNING", "{list:#}");
    assert!(said(&live, "info breakpoints").contains(" next run "));
    said(&live, "break disable 1");
    let begun = live.ask(&["restart"]);
    live.keep(&begun);
    assert_eq!(begun["stop"]["line"], 14, "{begun:#}");
    assert_eq!(live.moved(&["continue"])["function"], "sq");
    let caught = live.ask(&["catch", "list"]);
    assert_eq!(caught["probes"][0]["verified"], true, "{caught:#}");
}

/// gdb takes both between two runs, too.
#[test]
fn conditions_and_skipped_hits_are_changed_after_the_end() {
    let live = in_main("ended-conditions");
    said(&live, "break sq");
    said(&live, "break 14 if n==30");
    said(&live, "break disable 1 2");
    assert_eq!(live.run_to_end(), 0);
    said(&live, "break enable 2");
    let next = ", in the next run\n";
    assert_eq!(
        said(&live, "ignore 2 1"),
        format!("Breakpoint 2 skips its next hit{next}")
    );
    assert_eq!(
        said(&live, "condition 3 n==2"),
        format!("Breakpoint 3: only if n==2{next}")
    );
    let refused = said(&live, "condition 3 nothing==2");
    assert!(refused.contains("error: "), "{refused}");
    assert!(refused.contains("nothing"), "{refused}");
    let refused = said(&live, "ignore 9 1");
    assert!(refused.contains("there is no breakpoint 9"), "{refused}");
    let begun = live.ask(&["restart"]);
    live.keep(&begun);
    assert_eq!(begun["stop"]["function"], "sq", "{begun:#}");
    assert_eq!(live.print("n"), "1", "the first hit was skipped");
    assert_eq!(live.moved(&["continue"])["line"], 14);
    assert_eq!(live.print("n"), "2");
}

/// Starts the program with the file `input` by a redirection.
fn start_redirected(live: &Live, program: &Path) {
    let hindsight = Hindsight::path().to_str().expect("text");
    let program = program.to_str().expect("text");
    let line = "exec \"$0\" start \"$1\" < input";
    let words = ["-c", line, hindsight, program];
    let started = live.program(Path::new("/bin/sh"), &words).run();
    assert_eq!(started.status, Status::Code(0), "{}", started.errors());
}

fn wait_for_end(live: &Live) {
    let has_ended = || (live.session()["status"] == "ended").then_some(());
    wait_until("the program to end", has_ended);
}

fn reads(live: &Live) -> PathBuf {
    std::fs::write(live.scratch.join("input"), "one\ntwo\n").expect("the folder is writable");
    compiled(&live.scratch, "reads.c", READS, &["-g"])
}

#[test]
fn a_program_reads_the_file_that_start_is_given_and_so_does_its_next_run() {
    let live = Live::new("ended-redirected");
    let program = reads(&live);
    start_redirected(&live, &program);
    wait_for_end(&live);
    assert_eq!(live.output(), "read one\nread two\n");
    live.keep(&live.ask(&["restart"]));
    wait_for_end(&live);
    assert_eq!(live.output(), "read one\nread two\n");
}

#[test]
fn a_program_reads_the_file_that_is_named_and_nothing_else() {
    let live = Live::new("ended-stdin");
    let program = reads(&live);
    let program = program.to_str().expect("text");
    let words = ["repl", "--stdin", "input", program, "--cmd", "continue"];
    let shown = text(&live, &[&words[..], &["--cmd", "output --tail 9"]].concat());
    assert!(shown.contains("read one\nread two\n"), "{shown}");
    // The text in a pipe is not for the program.
    let piped = live.command(&["start", program]).stdin("three\n").run();
    assert_eq!(piped.status, Status::Code(0), "{}", piped.errors());
    wait_for_end(&live);
    assert_eq!(live.output(), "");
    let missing = text(&live, &["start", "--stdin", "nowhere", program]);
    assert!(missing.starts_with("error: "), "{missing}");
    assert!(missing.contains("nowhere"), "{missing}");
    let folder = text(&live, &["start", "--stdin", ".", program]);
    assert!(folder.contains("it is not a file\nhelp: "), "{folder}");
}

#[test]
fn a_script_that_is_terminated_ends_the_program_that_it_started() {
    let live = Live::new("ended-terminated");
    let program = compiled(&live.scratch, "waits.c", WAITS, &["-g"]);
    let program = program.to_str().expect("text");
    let script = live
        .command(&["repl", program, "--cmd", "continue"])
        .start();
    let begun = live.scratch.join("begun");
    let pid = wait_until("the program to run", || {
        std::fs::read_to_string(&begun).ok()?.parse::<i32>().ok()
    });
    script.signal(Signal::TERM);
    assert_eq!(script.finish().status, Status::Code(143));
    wait_until("the program to end", || (!is_alive(pid)).then_some(()));
}
