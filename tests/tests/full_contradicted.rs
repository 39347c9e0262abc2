//! Goal: `check --replay` says that a recording is wrong, where, and up to where registers agree. Method: one byte of what the kernel
//! gave the program is changed in the log; the program writes as many bytes as that byte tells.

use std::fs;

use e2e::{Hindsight, Program, Recording, Scratch, Status, compiled};
use serde_json::Value;

const SOURCE: &str = r#"#include <fcntl.h>
#include <unistd.h>
static unsigned char noise[1 << 19];
int main(int argc, char **argv) {
  if (argc < 2) return 2;
  long length = read(open(argv[1], O_RDONLY), noise, sizeof noise);
  unsigned char sum = 0;
  for (long i = 0; i < length; i++) sum ^= noise[i];
  write(1, "12345678", sum & 7);
  return 0;
}
"#;

/// Bytes that cannot be compressed, so that they are in the log as they are (xorshift64, Marsaglia 2003).
fn noise() -> Vec<u8> {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut bytes = Vec::new();
    while bytes.len() < 1 << 19 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}

/// Changes the lowest bit of a byte in the middle of the noise.
fn change(recording: &Recording, noise: &[u8]) {
    let log = recording.path().join("instructions/log.zst");
    let mut bytes = fs::read(&log).expect("the log is there");
    let wanted = &noise[noise.len() / 2..][..32];
    let at = bytes.windows(wanted.len()).position(|some| some == wanted);
    bytes[at.expect("the noise is in the log")] ^= 1;
    fs::write(&log, bytes).expect("the log can be written");
}

/// What `check --replay` says, as text and as JSON, and how it ends.
fn checked(recording: &Recording) -> (Status, String, Value) {
    let told = recording.command("check", &["--replay"]);
    let as_json = recording.command("check", &["--replay", "--json"]);
    assert_eq!(as_json.status, told.status);
    (told.status, told.text(), as_json.result())
}

#[test]
fn a_changed_byte_is_a_contradiction() {
    let scratch = Scratch::new("full-contradicted");
    let (noise, file) = (noise(), scratch.join("noise"));
    fs::write(&file, &noise).expect("the folder can be written");
    let app = compiled(&scratch, "app.c", SOURCE, &["-O1", "-g"]);
    let app = Program::new(app, scratch.path()).args([&file]);
    let recording = Hindsight::recorded(&scratch, "rec", &["--full"], &app);
    let (status, _, right) = checked(&recording);
    assert_eq!(status, Status::Code(0), "{right:#}");
    assert_eq!(right["verdict"], "whole");
    assert_eq!(right["replay"]["whole"], true);
    assert_eq!(right["replay"]["contradiction"], Value::Null);

    change(&recording, &noise);
    let write = recording.number("SELECT ts_ns FROM syscalls WHERE name = 'write'");
    let (status, text, wrong) = checked(&recording);
    assert_eq!(status, Status::Code(1), "{text}");
    assert_eq!(wrong["verdict"], "damaged");
    assert_eq!(wrong["replay"]["whole"], false);
    let found = &wrong["replay"]["contradiction"];
    assert_eq!(found["what"], "registers before system call 1", "{found:#}");
    assert_eq!(found["position"], write, "{found:#}");
    let agreed = found["agreed"].as_i64().expect("a position");
    assert!(agreed < write, "{found:#}");
    let line = text.lines().find(|line| line.contains("damage: "));
    let line = line.expect("the contradiction is told");
    let begins = format!("damage: at instruction {}, thread ", grouped(write));
    let ends = format!(
        "; the registers that were compared up to instruction {} are as recorded, but memory is compared only at the end: the cause may lie before that",
        grouped(agreed)
    );
    assert!(line.trim().starts_with(&begins), "{line}");
    assert!(line.ends_with(&ends), "{line}");
}

/// A number as it is told: `2,202,621`.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).collect();
    groups.reverse();
    let groups = groups.iter().map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(",")
}
