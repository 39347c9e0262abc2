//! Goal: logpoints and logged writes beside `record --full` are events as in other recordings. Method: one program is recorded in both
//! ways with the same options, and the events are compared; what it prints tells how many there must be.

use e2e::{Hindsight, Program, Recording, Row, Scratch, Status, compiled};

const SOURCE: &str = r#"
#include <stdio.h>
#include <string.h>
struct node { long value; struct node *next; };
struct node one = {1, 0}, two = {2, 0};
struct node *head;
long total;
char name[8];
__attribute__((noinline)) long add(long amount) {
  total += amount;
  return total; // added
}
int main(void) {
  head = &one;
  for (long i = 1; i <= 20; i++) {
    add(i);
    if (i == 10)
      head = &two;
    head->value += i;
  }
  strcpy(name, "abc");
  printf("%ld %ld %ld\n", total, one.value, two.value);
  return 3;
}
"#;

const OPTIONS: [&str; 13] = [
    "--logpoint",
    "app.c:11",
    "amount={amount} total={total}",
    "--condition",
    "amount > 15",
    "--logpoint",
    "add",
    "{nobody}",
    "--log-writes",
    "total",
    "--log-writes",
    "head->value",
    "--no-aslr",
];

/// The program, recorded without and with all of its instructions.
fn both(scratch: &Scratch, options: &[&str]) -> [Recording; 2] {
    let program = compiled(scratch, "app.c", SOURCE, &["-g", "-O0"]);
    let program = Program::new(program, scratch.path()).ending(3);
    let command = Hindsight::record_command(scratch, "plain", options, &program);
    assert_eq!(command.run().status, Status::Code(3));
    let plain = Recording::new(scratch.join("plain.hindsight"));
    let options = [&["--full"], options].concat();
    let command = Hindsight::record_command(scratch, "full", &options, &program);
    let ended = command.run();
    assert_eq!(ended.status, Status::Code(3), "{}", ended.errors());
    assert_eq!(ended.text(), "210 46 167\n");
    let errors = ended.errors();
    assert!(
        errors.contains("a logpoint's message failed 20 times"),
        "{errors}"
    );
    [plain, Recording::new(scratch.join("full.hindsight"))]
}

#[test]
fn they_are_events_as_in_other_recordings() {
    let scratch = Scratch::new("full-logs");
    let [plain, full] = both(&scratch, &OPTIONS);
    for (sql, count) in [
        (
            "SELECT probe, message, captured FROM logpoints ORDER BY seq",
            25,
        ),
        (
            "SELECT target, addr, old, new, by, probe, function, line FROM writes ORDER BY seq",
            // `head` is written twice, and leads to a value that is written 20 times.
            42,
        ),
        (
            "SELECT id, kind, state, location, condition, action, places, hits FROM probes WHERE id IS NOT NULL ORDER BY id",
            4,
        ),
    ] {
        let found = full.rows(sql);
        assert_eq!(found.len(), count, "{sql}: {found:#?}");
        assert_eq!(found, plain.rows(sql), "{sql}");
    }
    // Each is at its own instruction: the values of that moment are those of the message.
    let known = "SELECT count(*) FROM logpoints WHERE probe = 3 \
        AND message = 'amount=' || value(seq, 'amount') || ' total=' || value(seq, 'total')";
    assert_eq!(full.number(known), 5);
    let failed: Row = full.row("SELECT max(aux) AS why FROM events WHERE kind = 'logpoint'");
    assert!(
        failed["why"]
            .as_str()
            .is_some_and(|why| why.contains("nobody")),
        "{failed:?}"
    );
    let checked = full.command("check", &["--replay"]);
    assert_eq!(checked.status, Status::Code(0), "{}", checked.text());
}

/// The C library writes it; the kernel writes, too.
#[test]
fn writes_of_libraries_and_of_the_kernel_are_seen() {
    let source = "#include <string.h>\n#include <unistd.h>\nchar text[8];\n\
        int main(void) { int p[2]; if (pipe(p) || write(p[1], \"kernel!\", 8) != 8) return 1;\n\
        volatile unsigned long n = 8; memset(text, 'x', n); return read(p[0], text, 8) != 8; }\n";
    let scratch = Scratch::new("full-logs-kernel");
    let program = compiled(&scratch, "app.c", source, &["-g", "-O1", "-fno-builtin"]);
    let program = Program::new(program, scratch.path());
    let options = ["--full", "--log-writes", "text"];
    let recording = Hindsight::recorded(&scratch, "rec", &options, &program);
    let rows = recording
        .rows("SELECT old, new, pc IS NULL AS by_kernel, function FROM writes ORDER BY seq");
    let last = rows.last().expect("it is written");
    assert_eq!(last["old"], "7878787878787878", "{rows:#?}");
    assert_eq!(last["new"], "6b65726e656c2100", "{rows:#?}");
    assert_eq!(last["by_kernel"], true, "{rows:#?}");
    let before = &rows[rows.len() - 2];
    assert_eq!(before["new"], "7878787878787878", "{rows:#?}");
    let function = before["function"].as_str().unwrap_or_default();
    assert!(function.contains("memset"), "{rows:#?}");
}

#[test]
fn what_has_no_place_is_told_and_scripts_are_refused() {
    let scratch = Scratch::new("full-logs-none");
    let program = Program::new("/bin/true", scratch.path());
    let options = [
        "--full",
        "--logpoint",
        "nowhere_at_all",
        "x",
        "--log-writes",
        "nothing_here",
    ];
    let ended = Hindsight::record_command(&scratch, "rec", &options, &program).run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    for told in [
        "nothing is logged for nowhere_at_all: ",
        "nothing is logged for nothing_here: ",
    ] {
        assert!(ended.errors().contains(told), "{}", ended.errors());
    }
    let options = ["--full", "--logpoint", "main", "{js: 1 + 1}"];
    let ended = Hindsight::record_command(&scratch, "script", &options, &program).run();
    assert_eq!(ended.status, Status::Code(2), "{}", ended.errors());
    assert!(ended.errors().contains("JavaScript"), "{}", ended.errors());
    assert!(!scratch.join("script.hindsight").exists());
}
