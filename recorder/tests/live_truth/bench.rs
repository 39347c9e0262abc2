//! Starts programs, live and natively.

use std::{
    ffi::OsString,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use debuginfo::AddressSpace;
use e2e::{Scratch, fixture_artifact};
use recorder::{
    Captures, Exit, Observer, OnFull, RecordOptions, SnapshotTimes, Surroundings, Target, live::*,
};

/// A program under test.
pub struct Subject {
    pub path: PathBuf,
    pub args: &'static [&'static str],
    /// Substrings of the paths of its own source files.
    pub sources: &'static [&'static str],
}

impl Subject {
    pub fn new(artifact: &str) -> Subject {
        let args: &[&str] = match artifact {
            name if name.starts_with("threads") => &["16000"],
            name if name.starts_with("sqlite") => &["4"],
            _ => &[],
        };
        let sources: &[&str] = match artifact {
            name if name.starts_with("sqlite") => {
                &["/sqlite3.c", "/sqlite/driver.c", "/statements/sqlite.c"]
            }
            name if name.starts_with("lua") => {
                &["/lua-5.4.9/", "/lua/driver.c", "/statements/lua.c"]
            }
            name if name.starts_with("orders") => &["/orders.rs"],
            name if name.starts_with("shapes") => &["/shapes.cc"],
            _ => &["/threads.c"],
        };
        Subject {
            path: fixture_artifact("statements", artifact),
            args,
            sources,
        }
    }

    pub fn is_optimised(&self) -> bool {
        !self.path.to_string_lossy().ends_with("_O0")
    }

    /// Returns whether variables have their places before they have their values. This is so in optimised code, and in
    /// Rust, which does not fill variables with a pattern as the C and C++ compilers are told to.
    pub fn has_idle_variables(&self) -> bool {
        self.is_optimised() || self.pads_vectors()
    }

    /// Returns whether vector registers hold padding: Rust copies structures through them, and the bytes between the
    /// fields have no value.
    pub fn pads_vectors(&self) -> bool {
        self.sources.contains(&"/orders.rs")
    }

    /// Its own source files, as its line tables name them.
    pub fn files(&self, space: &AddressSpace) -> Vec<Arc<str>> {
        let mut files = space.source_files();
        files.retain(|file| self.sources.iter().any(|part| file.contains(part)));
        assert!(!files.is_empty(), "the program has line tables");
        files
    }

    /// Returns whether a file's code does the same in every run. Lua's random number code reads the time of day.
    pub fn does_the_same(file: &str) -> bool {
        !file.ends_with("/lmathlib.c")
    }

    /// Returns every line with code in its own files.
    pub fn lines(&self, space: &AddressSpace) -> Vec<(Arc<str>, u32)> {
        let mut all = Vec::new();
        for file in self.files(space) {
            let lines = space.valid_lines(&file).expect("a file of the space");
            all.extend(lines.into_iter().map(|line| (file.clone(), line)));
        }
        all
    }

    /// Runs it without a debugger.
    pub fn native(&self, scratch: &Scratch) -> Ended {
        fixed_addresses();
        let done = Command::new(&self.path)
            .args(self.args)
            .env_clear()
            .current_dir(scratch.path())
            .output()
            .expect("the program can be started");
        Ended {
            stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
            exit: Exit::Code(done.status.code().expect("it exits")),
        }
    }
}

/// Compiles a single-file program of this folder.
pub fn built(scratch: &Scratch, name: &str, options: &[&str]) -> PathBuf {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/live_truth/programs")
        .join(name);
    let path = scratch.join(&format!("{name}{}", options.first().unwrap_or(&"")));
    let done = Command::new("gcc")
        .arg("-g")
        .args(options)
        .arg("-o")
        .arg(&path)
        .arg(&source)
        .output()
        .expect("gcc can be started");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    path
}

/// How a program ended and what it printed.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    pub stdout: String,
    pub stderr: String,
    pub exit: Exit,
}

/// Disables address randomisation for programs started by this thread and by threads that it creates.
pub fn fixed_addresses() {
    // SAFETY: no memory is involved; the flag only changes what exec does.
    let old = unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
    assert_ne!(old, -1, "the kernel knows ADDR_NO_RANDOMIZE");
}

struct Quiet;
impl Observer for Quiet {}

/// A program under control.
pub struct Controlled {
    pub live: Live,
    pub tid: Tid,
    outputs: [JoinHandle<String>; 2],
}

impl Controlled {
    /// Starts it, stopped at its entry point.
    pub fn start(subject: &Subject, scratch: &Scratch, name: &str) -> Controlled {
        Controlled::start_without(subject, scratch, name, &[])
    }

    /// As [`Controlled::start`], without tracing the given functions.
    pub fn start_without(
        subject: &Subject,
        scratch: &Scratch,
        name: &str,
        untraced: &[&str],
    ) -> Controlled {
        let (captures, snapshots) = (Captures::default(), SnapshotTimes::default());
        Controlled::start_with(subject, scratch, name, untraced, captures, snapshots)
    }

    /// As [`Controlled::start_without`], with captures at each enter and leave, and with other snapshot times.
    pub fn start_with(
        subject: &Subject,
        scratch: &Scratch,
        name: &str,
        untraced: &[&str],
        captures: Captures,
        snapshots: SnapshotTimes,
    ) -> Controlled {
        fixed_addresses();
        let argv = [subject.path.clone().into_os_string()];
        let args = subject.args.iter().map(OsString::from);
        let options = LiveOptions {
            record: RecordOptions {
                output: Some(scratch.join(&format!("{name}.hindsight"))),
                include: Vec::new(),
                exclude: untraced.iter().map(|name| (*name).to_owned()).collect(),
                on_full: OnFull::Block,
                snapshots,
                keep_log: false,
                max_size: None,
                surroundings: Surroundings::default(),
                captures,
                guardian: None,
                labels: Default::default(),
                target: Target::Spawn {
                    argv: argv.into_iter().chain(args).collect(),
                },
            },
            stop_on_entry: true,
            stdio: Stdio::Piped {
                cwd: scratch.path().to_path_buf(),
                env: Vec::new(),
            },
            first: FirstProbes::default(),
        };
        let live = Live::start(options, Arc::new(Quiet)).expect("the program can be started");
        let (stdout, stderr) = live.take_output().expect("its output goes to pipes");
        let tid = live.pid();
        match live.wait(0, Duration::from_secs(120)) {
            Waited::Stopped(entry) => assert_eq!(entry.reason, Reason::Entry),
            other => panic!("it is not stopped at its entry: {other:?}"),
        }
        Controlled {
            live,
            tid,
            outputs: [stdout, stderr].map(collect),
        }
    }

    pub fn break_at(&self, location: Location, hit_count: u64, once: bool) -> ProbeView {
        let spec = ProbeSpec {
            location,
            action: Action::Break {
                all_threads: false,
                once,
            },
            condition: None,
            hit_count,
        };
        self.live.add_probe(spec).expect("the place exists")
    }

    /// Resumes the stopped thread and waits for the next stop; `None` if the program has ended.
    pub fn go(&mut self, motion: Motion) -> Option<Stop> {
        let after = self
            .live
            .resume(self.tid, motion, false)
            .expect("the thread is stopped");
        self.next_stop(after)
    }

    pub fn next_stop(&mut self, after: u64) -> Option<Stop> {
        match self.live.wait(after, Duration::from_secs(120)) {
            Waited::Stopped(stop) => {
                self.tid = stop.tid;
                Some(stop)
            }
            Waited::Ended(_) => None,
            Waited::TimedOut | Waited::Woken | Waited::ThreadEnded(_) => {
                panic!("no stop and no end: {:?}", self.live.threads())
            }
        }
    }

    /// Waits for the end, which must be the same as in a native run.
    pub fn end_as_alone(self, subject: &Subject, scratch: &Scratch) {
        let ended = self.end();
        assert_eq!(
            ended.exit,
            subject.native(scratch).exit,
            "{}{}",
            ended.stdout,
            ended.stderr
        );
    }

    pub fn end(self) -> Ended {
        let exit = match self.live.wait(u64::MAX, Duration::from_secs(120)) {
            Waited::Ended(exit) => exit,
            other => panic!("it has not ended: {other:?}"),
        };
        let [stdout, stderr] = self
            .outputs
            .map(|output| output.join().expect("output can be read"));
        Ended {
            stdout,
            stderr,
            exit,
        }
    }
}

fn collect(mut from: File) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        from.read_to_end(&mut all).expect("output can be read");
        String::from_utf8_lossy(&all).into_owned()
    })
}

/// Random numbers that are the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    pub fn take<T>(&mut self, all: &mut Vec<T>) -> T {
        let at = self.below(all.len());
        all.swap_remove(at)
    }
}

/// Runs gdb with a script of this test on a subject. Returns what it printed.
pub fn gdb(subject: &Subject, scratch: &Scratch, script: &str, plan: &Path) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/live_truth")
        .join(script);
    let done = Command::new("gdb")
        // It executes an instruction under a breakpoint elsewhere, and takes some with a VEX prefix for others there.
        .args(["-nx", "-batch", "-iex", "set displaced-stepping off", "-x"])
        .arg(script)
        .arg(&subject.path)
        .env("PLAN", plan)
        .env("ARGS", subject.args.join(" "))
        .env("LC_ALL", "C.UTF-8")
        .env("SHELL", "/bin/sh")
        .current_dir(scratch.path())
        .output()
        .expect("gdb can be started");
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    let is_whole = done.status.success() && !errors.contains("Traceback");
    assert!(is_whole, "gdb: {output}\n{errors}");
    output
}
