//! Recordings that are built without running a program, and the `hindsight` binary run on them as a user would.
#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use store::control::{Control, FunctionDef, Param, ParameterPlace, ValueKind};
use store::seal::{Ending, SealOptions, Sealer};
use store::synth::{Synth, debugged};
use store::wire::{EnterFields, EnterForm, GapReason, Leave};

/// The stack address of the first synthetic thread.
const STACK: u64 = 0x7f00_0000_0000;
const INT: ValueKind = ValueKind::Int {
    bytes: 4,
    signed: true,
};

/// A temporary folder with recordings.
pub struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    /// Makes a folder with the recording `app.hindsight`, closed and sealed.
    pub fn with_app() -> Folder {
        let folder = Folder::empty();
        let recording = app().record(&folder.path("app.hindsight")).unwrap();
        let sealer = Sealer::own(&recording, SealOptions::default()).unwrap();
        sealer.finish(Ending::Close, |_| {}).unwrap();
        folder
    }

    /// Makes a folder with the recording `app.hindsight`, whose recorder died before it closed it.
    pub fn with_interrupted_app() -> Folder {
        let folder = Folder::empty();
        app()
            .record_interrupted(&folder.path("app.hindsight"))
            .unwrap();
        folder
    }

    /// Makes a folder with `debugged.hindsight`, a synthetic debugging session, closed and sealed.
    pub fn with_debugged() -> Folder {
        let folder = Folder::empty();
        folder.add_debugged();
        folder
    }

    /// Adds `debugged.hindsight`.
    pub fn add_debugged(&self) {
        let recording = debugged().record(&self.path("debugged.hindsight")).unwrap();
        let sealer = Sealer::own(&recording, SealOptions::default()).unwrap();
        sealer.finish(Ending::Close, |_| {}).unwrap();
    }

    /// Makes a folder with a copy of the frozen recording `shop.hindsight`.
    pub fn with_shop() -> Folder {
        Folder::with_frozen(&["shop"])
    }

    /// Makes a folder with copies of frozen recordings.
    pub fn with_frozen(names: &[&str]) -> Folder {
        let folder = Folder::empty();
        for name in names {
            folder.add_frozen(name);
        }
        folder
    }

    /// Adds a copy of a frozen recording.
    pub fn add_frozen(&self, name: &str) {
        let name = format!("{name}.hindsight");
        let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
        copy_folder(&recordings.join(&name), &self.path(&name));
        // git does not store empty folders.
        std::fs::create_dir(self.path(&name).join("log")).unwrap();
    }

    /// Runs lines of `hindsight repl RECORDING` through `--cmd` and returns the transcript.
    pub fn repl(&self, recording: &str, lines: &[&str]) -> String {
        let mut args = vec!["repl", recording];
        for line in lines {
            args.extend(["--cmd", line]);
        }
        self.transcript(&args)
    }

    /// Flips one bit of a file in the folder.
    pub fn damage(&self, name: &str, offset: usize) {
        let mut bytes = std::fs::read(self.path(name)).unwrap();
        bytes[offset] ^= 1;
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// Makes an empty folder.
    pub fn empty() -> Folder {
        Folder {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the command `hindsight ARGS`, run in this folder without the caller's settings.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(args);
        self.at_home(&mut command);
        command
    }

    /// Runs a command in this folder, without the caller's settings.
    pub fn at_home(&self, command: &mut Command) {
        command.current_dir(self.dir.path());
        for name in [
            "COLUMNS",
            "NO_COLOR",
            "PAGER",
            "LESS",
            "HINDSIGHT_LOG",
            "TERM",
        ] {
            command.env_remove(name);
        }
        command
            .env("HOME", self.dir.path())
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_CACHE_HOME");
    }

    /// As [`Self::on_terminal_of`], with 40 rows.
    pub fn on_terminal(
        &self,
        columns: usize,
        variables: &[&str],
        args: &[&str],
        steps: &[(&str, &str)],
    ) -> String {
        self.on_terminal_of((columns, 40), variables, args, steps)
    }

    /// Runs `hindsight ARGS` on a terminal of the given columns and rows, with additional variables (`NAME=VALUE`).
    /// Each step waits for a text, then types another one. Returns what the terminal received, with the exit code at
    /// the end.
    pub fn on_terminal_of(
        &self,
        size: (usize, usize),
        variables: &[&str],
        args: &[&str],
        steps: &[(&str, &str)],
    ) -> String {
        self.terminal(size, &[], variables, args, steps)
    }

    /// Runs `hindsight ARGS` on a terminal as on a machine that is a tenth as fast, so that work that takes a moment
    /// shows its progress. Returns as [`Self::on_terminal_of`].
    pub fn on_slow_terminal(&self, args: &[&str]) -> String {
        let variables = ["TERM=xterm-256color", "NO_COLOR=1", "PAGER=cat"];
        self.terminal((80, 40), &["--slowly"], &variables, args, &[])
    }

    fn terminal(
        &self,
        (columns, rows): (usize, usize),
        options: &[&str],
        variables: &[&str],
        args: &[&str],
        steps: &[(&str, &str)],
    ) -> String {
        let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/terminal.py");
        let mut command = Command::new("python3");
        command.arg(driver).arg(format!("{columns}x{rows}"));
        command.args(options);
        for (wait, send) in steps {
            command.args(["--step", wait, send]);
        }
        command
            .arg("--")
            .arg("env")
            .args(variables)
            .arg(binary())
            .args(args);
        self.at_home(&mut command);
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        self.redact(&output.stdout).replace('\r', "")
    }

    /// Runs `hindsight ARGS` with `stdin` and returns its output.
    pub fn run_with(&self, args: &[&str], stdin: &str) -> Output {
        let mut command = self.command(args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // A command that does not read its stdin may have ended already.
        let _ = pipe.write_all(stdin.as_bytes());
        drop(pipe);
        child.wait_with_output().unwrap()
    }

    /// As [`Self::run_with`], but returns one text: stdout, then stderr unless empty, and the exit code unless 0.
    pub fn transcript_with(&self, args: &[&str], stdin: &str) -> String {
        let output = self.run_with(args, stdin);
        let mut text = self.redact(&output.stdout);
        if !output.stderr.is_empty() {
            text += "--- stderr\n";
            text += &self.redact(&output.stderr);
        }
        match output.status.code() {
            Some(0) => {}
            Some(code) => text += &format!("--- exit code {code}\n"),
            None => text += &format!("--- {}\n", output.status),
        }
        text
    }

    /// As [`Self::transcript_with`], with an empty stdin.
    pub fn transcript(&self, args: &[&str]) -> String {
        self.transcript_with(args, "")
    }

    /// Replaces the folder's path in the output.
    fn redact(&self, text: &[u8]) -> String {
        let folder = self.dir.path().to_string_lossy().into_owned();
        String::from_utf8_lossy(text).replace(&folder, "FOLDER")
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let copy = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &copy),
            false => drop(std::fs::copy(entry.path(), copy).unwrap()),
        }
    }
}

/// Returns the binary under test.
pub fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_hindsight"))
}

/// A small program: `main` calls `json::parse` three times, which calls `scale`. A worker loses events and throws.
pub fn app() -> Synth {
    let mut synth = Synth::new();
    synth.control(Control::ProcessStart {
        ticks: 0,
        pid: 4711,
        argv: vec!["./app".into(), "--port".into(), "8080".into()],
        exe: "/home/me/app".into(),
        cwd: "/home/me".into(),
        attached: false,
    });
    synth.control(Control::ModuleLoad {
        ticks: 0,
        module: 0,
        path: "/home/me/app".into(),
        build_id: Some("5d1f0c3a".into()),
        addr: 0x40_0000,
        size: 0x8000,
        system: false,
    });
    synth.control(Control::ModuleLoad {
        ticks: 0,
        module: 1,
        path: "/usr/lib/libc.so.6".into(),
        build_id: None,
        addr: 0x7fff_0000_0000,
        size: 0x20_0000,
        system: true,
    });
    define(&mut synth);
    records(&mut synth);
    synth.control(Control::ProcessExit {
        ticks: 5_000_000,
        code: Some(3),
        signal: None,
    });
    synth
}

fn define(synth: &mut Synth) {
    let param = Param::in_one_place;
    synth.define(function(
        0,
        "main",
        vec![param("argc", INT, ParameterPlace::Int(0))],
        INT,
    ));
    let text = param("text", ValueKind::Pointer, ParameterPlace::Int(0));
    let len = param("len", INT, ParameterPlace::Int(1));
    synth.define(function(1, "json::parse", vec![text, len], INT));
    let double = ValueKind::Float { bytes: 8 };
    let by = param("by", double.clone(), ParameterPlace::Sse(0));
    synth.define(function(2, "scale", vec![by], double));
    synth.control(Control::Skipped {
        module: 0,
        svma: 0x1200,
        name: "tiny".into(),
        reason: "too short to patch".into(),
    });
}

fn function(id: u32, name: &str, params: Vec<Param>, ret: ValueKind) -> FunctionDef {
    FunctionDef {
        id,
        module: 0,
        svma: 0x1000 + u64::from(id) * 0x40,
        size: 0x40,
        name: name.into(),
        linkage: name.into(),
        file: Some("src/app.c".into()),
        line: Some(10 * (id + 1)),
        params,
        ret,
        params_known: true,
        ret_place: None,
    }
}

fn records(synth: &mut Synth) {
    let slot = STACK + 0xff00;
    synth.thread(4711).at(1_000);
    synth.enter_full(&enter(0, slot, [2, 0, 0, 0, 0, 0], &[]));
    for i in 0..3u64 {
        synth.at(2_000 + i * 1_000_000);
        synth.enter_full(&enter(
            1,
            slot - 0x40,
            [0x55d0_c3a4_b2a0, 5 + i, 0, 0, 0, 0],
            &[],
        ));
        synth.enter_full(&enter(
            2,
            slot - 0x80,
            [0; 6],
            &[(0.5 * i as f64).to_bits()],
        ));
        synth.leave_full(&Leave {
            slot: slot - 0x80,
            rax: 0,
            rdx: 0,
            xmm: Some([i as f64, 0.0].map(f64::to_bits)),
        });
        synth
            .at(2_100 + i * 1_500_000)
            .leave_value(slot - 0x40, (-(i as i64)) as u64);
    }
    synth
        .output(1, b"hello\tworld\n")
        .output(2, b"\x1b[31mred\xff");
    synth.thread(4712).at(4_000_000);
    let worker = STACK + 0x10_0000 + 0xff00;
    synth.enter_full(&enter(1, worker, [0, 0, 0, 0, 0, 0], &[]));
    synth.gap(17, GapReason::RingFull);
    synth.thread_exit();
    synth.thread(4711).at(4_900_000).leave_value(slot, 3);
}

fn enter(id: u32, slot: u64, regs: [u64; 6], xmm: &[u64]) -> EnterFields<'_> {
    EnterFields {
        form: EnterForm::Hooked,
        function_id: id,
        slot,
        return_addr: 0x40_1234,
        args: regs,
        xmm,
    }
}
