//! Goal: `record --children` follows every process that a program starts, records each program that they execute, and
//! changes nothing for any of them. Method: what the programs print, leave and return is compared with a native run; the
//! programs themselves report which process was started and how it ended.

mod copies;
mod ends;
mod odd_files;
mod programs;
mod sql;
mod test_command;

use std::path::{Path, PathBuf};

use e2e::{Ended, Hindsight, Program, Recording, Row, Scratch, Status};

/// A program that was recorded with its children.
struct Set {
    ended: Ended,
    dir: PathBuf,
    rows: Vec<Row>,
}

impl Set {
    fn of(scratch: &Scratch, program: &Program) -> Set {
        let ended = Hindsight::record_command(scratch, "set", &["--children"], program).run();
        let dir = scratch.join("set.children");
        assert!(dir.is_dir(), "no set was made: {ended:?}");
        let rows = Set::rows(&dir);
        Set { ended, dir, rows }
    }

    fn rows(dir: &Path) -> Vec<Row> {
        let listed = Program::new(Hindsight::path(), dir.parent().expect("a folder"))
            .args(["processes", "--json"])
            .args([dir])
            .run();
        assert_eq!(listed.status, Status::Code(0), "{}", listed.errors());
        serde_json::from_value(listed.result()).expect("an array of objects")
    }

    fn of_shell(scratch: &Scratch, script: &str) -> (Ended, Set) {
        let program = Program::new("/bin/sh", scratch.path()).args(["-c", script]);
        let native = program.run();
        (native, Set::of(scratch, &program))
    }

    /// The programs with that name, without copies of their parents.
    fn named(&self, name: &str) -> Vec<&Row> {
        let is_it = |row: &&Row| program_of(row) == name && !row["image_unix_ns"].is_null();
        self.rows.iter().filter(is_it).collect()
    }

    fn one(&self, name: &str) -> &Row {
        let rows = self.named(name);
        assert_eq!(rows.len(), 1, "{name}: {:#?}", self.rows);
        rows[0]
    }

    fn recording(&self, row: &Row) -> Recording {
        let name = row["recording"].as_str().expect("it is recorded");
        Recording::new(self.dir.join(name))
    }

    /// SQL has one row for each process of the set; none of them executed two programs.
    fn assert_known_to_sql(&self, scratch: &Scratch) {
        let counted = "SELECT count(*) AS n, count(DISTINCT pid) AS pids FROM processes";
        let counted = Hindsight::command(scratch, &["sql", "set", counted, "--json"]).run();
        let counted = &counted.result()[0];
        let all = self.rows.len();
        assert_eq!(
            (&counted["n"], &counted["pids"]),
            (&all.into(), &all.into())
        );
    }

    /// Every recording is whole, and has its process's ids.
    fn assert_whole(&self) {
        for row in &self.rows {
            if row["recording"].is_null() {
                continue;
            }
            let recording = self.recording(row);
            let checked = recording.command("check", &[]);
            assert_eq!(
                checked.status,
                Status::Code(0),
                "{row:?}: {}",
                checked.text()
            );
            let start = "SELECT value FROM events WHERE kind = 'process_start'";
            assert_eq!(Some(recording.number(start)), row["pid"].as_i64());
        }
    }
}

fn program_of(row: &Row) -> String {
    let first = row["argv"][0].as_str().unwrap_or_default();
    first.rsplit('/').next().unwrap_or_default().to_owned()
}

fn assert_same(native: &Ended, set: &Set) {
    assert_eq!(native.text(), set.ended.text(), "{}", set.ended.errors());
    let theirs = e2e::split_own_lines(&set.ended.stderr).0;
    assert_eq!(native.errors(), String::from_utf8_lossy(&theirs));
    assert_eq!(
        native.status.as_shell_code(),
        set.ended.status.as_shell_code()
    );
}
