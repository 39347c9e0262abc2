//! Output that cannot be written: a full disk, and a reader that has gone.

use super::common::{self, Folder};

#[test]
fn a_full_disk_is_told() {
    let folder = Folder::with_shop();
    for args in [
        &["info", "shop"] as &[_],
        &["check", "shop"],
        &["sql", "shop", "select 1"],
    ] {
        let mut command = folder.command(args);
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = command.stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            said, "error: cannot write to stdout: No space left on device\n",
            "{args:?}"
        );
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let folder = Folder::with_shop();
    let endless = "select a.start_seq, b.args from calls a, calls b, calls c";
    for form in ["table", "csv", "json", "jsonl"] {
        let pipe = "\"$0\" sql shop \"$1\" -f $2 | head -c 10 >/dev/null; echo ${PIPESTATUS[0]}";
        let mut command = std::process::Command::new("bash");
        command
            .args(["-c", pipe])
            .arg(common::binary())
            .args([endless, form]);
        folder.at_home(&mut command);
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n", "{form}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{form}");
    }
}
