//! Programs that end by SIGSEGV, their core files, and gdb on both.

use std::path::{Path, PathBuf};

use e2e::{Hindsight, Program, Scratch, Status, fixture_artifact};
use serde_json::Value;

/// A core file, and its program.
pub struct Dumped {
    pub scratch: Scratch,
    pub program: PathBuf,
    pub core: PathBuf,
}

impl Dumped {
    pub fn of(artifact: &str, args: &[&str]) -> Dumped {
        let scratch = Scratch::new(&format!("core-{artifact}"));
        let program = fixture_artifact("core_files", artifact);
        Dumped::running(scratch, program, args)
    }

    /// The kernel's core file; gdb's, if the kernel gives core files to a program.
    pub fn running(scratch: Scratch, program: PathBuf, args: &[&str]) -> Dumped {
        let shell = ["-c", "ulimit -c unlimited; exec \"$0\" \"$@\""];
        let path = program.to_str().expect("text");
        let words: Vec<&str> = shell
            .into_iter()
            .chain([path])
            .chain(args.iter().copied())
            .collect();
        let ended = Program::new("/bin/sh", scratch.path()).args(words).run();
        assert_eq!(ended.status, Status::Signal(11), "{}", ended.errors());
        let find = || {
            let entries = std::fs::read_dir(scratch.path()).expect("a folder");
            let mut paths = entries.map(|entry| entry.expect("an entry").path());
            paths.find(|path| {
                path.file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with("core"))
            })
        };
        let core = find().unwrap_or_else(|| {
            let arguments = format!("run {}", args.join(" "));
            let made = gdb(
                scratch.path(),
                &[path],
                &[&arguments, "generate-core-file core"],
            );
            find().unwrap_or_else(|| panic!("no core file: {made}"))
        });
        Dumped {
            scratch,
            program,
            core,
        }
    }

    pub fn gdb(&self, commands: &[&str]) -> String {
        let files = [&self.program, &self.core].map(|path| path.to_str().expect("text"));
        gdb(self.scratch.path(), &files, commands)
    }

    pub fn command(&self, words: &[&str]) -> Program {
        command(&self.scratch, words)
    }

    pub fn text(&self, words: &[&str]) -> String {
        let ended = self.command(words).run();
        assert_eq!(
            ended.status,
            Status::Code(0),
            "{words:?}: {}",
            ended.errors()
        );
        ended.text()
    }

    /// What verbs at the prompt print.
    pub fn prompt(&self, core: &Path, lines: &[&str]) -> (String, String) {
        let mut words = vec!["repl", core.to_str().expect("text")];
        for line in lines {
            words.extend(["--cmd", line]);
        }
        let ended = self.command(&words).run();
        (ended.text(), ended.errors())
    }

    pub fn core(&self) -> &str {
        self.core.to_str().expect("text")
    }

    pub fn rows(&self, sql: &str) -> Vec<Value> {
        let text = self.text(&["sql", self.core(), "-f", "jsonl", sql]);
        let rows = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        rows.collect()
    }

    /// The event of the stop of the thread with the signal.
    pub fn stop(&self) -> i64 {
        let rows = self.rows("SELECT max(seq) AS seq FROM events WHERE kind = 'pause'");
        rows[0]["seq"].as_i64().expect("a stop")
    }
}

pub fn command(scratch: &Scratch, words: &[&str]) -> Program {
    let home = scratch.path().as_os_str();
    Hindsight::command(scratch, words)
        .env("XDG_CACHE_HOME", home)
        .env("HOME", home)
}

pub fn gdb(folder: &Path, files: &[&str], commands: &[&str]) -> String {
    let mut words = vec![
        "-batch",
        "-nx",
        "-q",
        "-ex",
        "set width 0",
        "-ex",
        "set confirm off",
    ];
    for command in commands {
        words.extend(["-ex", command]);
    }
    words.push("--args");
    let (program, core) = (files[0], files.get(1));
    words.pop();
    words.push(program);
    words.extend(core);
    let ended = Program::new("/usr/bin/gdb", folder).args(words).run();
    ended.text()
}
