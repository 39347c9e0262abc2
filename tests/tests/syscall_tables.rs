//! Goal: the tables `files` and `processes` have what system calls did: bytes, addresses of sockets, processes with their
//! arguments and their ends. Method: programs that are recorded with --syscalls.

use e2e::{Hindsight, Program, Scratch, compiled, fixture_artifact};
use serde_json::{Value, json};

#[test]
fn files_have_their_bytes() {
    let scratch = Scratch::new("files");
    let words = "pear\nfig\napple\n".repeat(400);
    std::fs::write(scratch.join("words"), &words).expect("it can be written");
    let program = Program::new("/bin/cp", scratch.path()).args(["words", "copy"]);
    let (_, recording) = Hindsight::record(&scratch, &["--syscalls"], &program);
    let size = i64::try_from(words.len()).expect("it is small");
    for (path, column) in [("words", "bytes_read"), ("copy", "bytes_written")] {
        let row = recording.row(&format!(
            "SELECT opened_by, {column} AS bytes, closed_seq > opened_seq AS closed FROM files WHERE path = '{path}'"
        ));
        assert_eq!(row["opened_by"], "openat", "{row:?}");
        assert_eq!(row["bytes"], size, "{row:?}");
        assert_eq!(row["closed"], true, "{row:?}");
    }
}

/// Sends and receives two messages of four bytes at once, and moves four bytes into a pipe.
const AT_ONCE: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
int main(void)
{
  char bytes[] = "abcdefgh";
  struct iovec parts[] = { { bytes, 4 }, { bytes + 4, 4 } };
  struct mmsghdr both[] = {
    { .msg_hdr = { .msg_iov = parts, .msg_iovlen = 1 } },
    { .msg_hdr = { .msg_iov = parts + 1, .msg_iovlen = 1 } },
  };
  int sockets[2], ends[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) || pipe(ends))
    return 1;
  if (sendmmsg(sockets[0], both, 2, 0) != 2 || recvmmsg(sockets[1], both, 2, 0, 0) != 2)
    return 2;
  return vmsplice(ends[1], parts, 1, 0) != 4;
}
"#;

#[test]
fn bytes_of_calls_that_move_many_messages_count() {
    for way in ["--syscalls", "--full"] {
        let scratch = Scratch::new("at_once");
        let program = compiled(&scratch, "at_once.c", AT_ONCE, &["-O0"]);
        let program = Program::new(program, scratch.path());
        let (_, recording) = Hindsight::record(&scratch, &[way], &program);
        let rows = recording.rows(
            "SELECT bytes_read, bytes_written FROM files WHERE opened_by IN ('socketpair', 'pipe', 'pipe2') ORDER BY opened_seq, fd",
        );
        let rows: Vec<[&Value; 2]> = rows
            .iter()
            .map(|row| [&row["bytes_read"], &row["bytes_written"]])
            .collect();
        let (none, four, eight) = (json!(0), json!(4), json!(8));
        let expected = [
            [&none, &eight],
            [&eight, &none],
            [&none, &none],
            [&none, &four],
        ];
        assert_eq!(rows, expected, "{way}");
    }
}

/// A pipe that was there before: nobody knows which of its ends the descriptor is, so nobody knows who wrote.
const INHERITED: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>
int main(void)
{
  struct iovec part = { "pear", 4 };
  return vmsplice(STDOUT_FILENO, &part, 1, 0) != 4;
}
"#;

#[test]
fn an_unknown_count_of_bytes_is_null() {
    let scratch = Scratch::new("inherited_pipe");
    let program = compiled(&scratch, "inherited.c", INHERITED, &["-O0"]);
    let program = Program::new(program, scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &["--syscalls"], &program);
    assert_eq!(ended.text(), "pear", "{}", ended.errors());
    let row = recording.row("SELECT bytes_read, bytes_written FROM files WHERE fd = 1");
    assert!(row["bytes_read"].is_null(), "{row:?}");
    assert!(row["bytes_written"].is_null(), "{row:?}");
}

/// Gives one socket a name, connects another one to it and a third one to an address, and becomes `echo`.
const SOCKETS: &str = r#"
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
int main(void)
{
  struct sockaddr_un here = { .sun_family = AF_UNIX, .sun_path = "here" };
  struct sockaddr_in there = { .sin_family = AF_INET, .sin_port = htons(9) };
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int bound = socket(AF_UNIX, SOCK_STREAM, 0), other = socket(AF_UNIX, SOCK_STREAM, 0);
  int third = socket(AF_INET, SOCK_DGRAM, 0);
  unlink(here.sun_path);
  if (bind(bound, (struct sockaddr *)&here, sizeof here) || listen(bound, 1))
    return 1;
  if (connect(other, (struct sockaddr *)&here, sizeof here) || write(other, "hello", 5) != 5)
    return 2;
  if (connect(third, (struct sockaddr *)&there, sizeof there))
    return 3;
  execl("/bin/echo", "echo", "two words", "plain", (char *)0);
  return 4;
}
"#;

#[test]
fn sockets_have_their_addresses_and_an_executed_program_its_arguments() {
    let scratch = Scratch::new("sockets");
    let program = compiled(&scratch, "sockets.c", SOCKETS, &["-g", "-O0"]);
    let program = Program::new(program, scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &["--syscalls"], &program);
    assert_eq!(ended.text(), "two words plain\n", "{}", ended.errors());
    let rows = recording.rows(
        "SELECT path, bytes_written FROM files WHERE opened_by = 'socket' ORDER BY opened_seq",
    );
    let rows: Vec<(&Value, &Value)> = rows
        .iter()
        .map(|row| (&row["path"], &row["bytes_written"]))
        .collect();
    let here = json!(r#"{sa_family=AF_UNIX, sun_path="here"}"#);
    let there = json!(r#"{sa_family=AF_INET, sin_port=htons(9), sin_addr=inet_addr("127.0.0.1")}"#);
    let (none, five) = (json!(0), json!(5));
    assert_eq!(rows, [(&here, &none), (&here, &five), (&there, &none)]);
    let executed = recording
        .row("SELECT program, arguments, made_by FROM processes ORDER BY seq DESC LIMIT 1");
    assert_eq!(executed["program"], "/bin/echo");
    assert_eq!(executed["arguments"], "'two words' plain");
    assert_eq!(executed["made_by"], "execve");
}

/// The call that created a process, and the process's status as its parent received it.
#[test]
fn processes_have_their_ends() {
    let scratch = Scratch::new("processes_table");
    let program = Program::new(fixture_artifact("happens", "happens"), scratch.path()).ending(5);
    let (_, recording) = Hindsight::record(&scratch, &["--syscalls"], &program);
    let rows = recording.rows(
        "SELECT parent, program, made_by, exit_code, exit_signal, ended_seq > seq AS waited FROM processes ORDER BY seq",
    );
    let own = recording.number("SELECT value FROM events WHERE kind = 'process_start'");
    assert_eq!(rows.len(), 4, "{rows:#?}");
    let (begun, forked) = (&rows[0], &rows[1]);
    let (spawned, executed) = (&rows[2], &rows[3]);
    let path = begun["program"].as_str().expect("text");
    assert!(path.ends_with("happens"), "{begun:#?}");
    // The recorder started it.
    assert!(
        begun["parent"]
            .as_i64()
            .is_some_and(|parent| parent > 1 && parent != own),
        "{begun:#?}"
    );
    assert_eq!(forked["parent"], own);
    assert_eq!(
        (&forked["exit_code"], &forked["waited"]),
        (&json!(3), &json!(true)),
        "{forked:#?}"
    );
    assert!(["clone", "fork"].contains(&forked["made_by"].as_str().expect("text")));
    assert_eq!(spawned["exit_code"], 0, "{spawned:#?}");
    assert!(
        ["clone3", "clone", "vfork"].contains(&spawned["made_by"].as_str().expect("text")),
        "{spawned:#?}"
    );
    assert_eq!(executed["made_by"], "execve");
    let path = executed["program"].as_str().expect("text");
    assert!(path.ends_with("happens"), "{path}");
    assert_eq!(executed["parent"], begun["parent"], "{executed:#?}");
    let called = recording.row(
        "SELECT c.function FROM processes p JOIN calls c ON c.start_seq = p.call ORDER BY p.seq LIMIT 1",
    );
    assert_eq!(called["function"], "forks");
    // Without system calls it is only known that there was one.
    let scratch = Scratch::new("processes_plain");
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    let row =
        recording.row("SELECT made_by, exit_code FROM processes ORDER BY seq LIMIT 1 OFFSET 1");
    assert_eq!(
        (&row["made_by"], row["exit_code"].is_null()),
        (&json!("fork"), true)
    );
}
