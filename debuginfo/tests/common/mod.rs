//! Builds the test programs with the system's compilers and queries other tools about them.
#![allow(dead_code)]

pub mod mutate;
pub mod observed;
// Which part of its samples a run of all tests takes.
#[path = "../../../tests/src/share.rs"]
pub mod share;
pub mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;

use debuginfo::{Function, Module};
use tempfile::TempDir;

/// A directory for one test's files. It is removed when dropped and kept when the test fails.
pub struct Bench {
    dir: Option<TempDir>,
}

impl Bench {
    pub fn new() -> Bench {
        let dir = tempfile::Builder::new().prefix("debuginfo-").tempdir();
        Bench {
            dir: Some(dir.expect("a temporary directory")),
        }
    }

    pub fn dir(&self) -> &Path {
        self.dir.as_ref().expect("present until dropped").path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// Writes a source file that the test contains.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a writable temporary directory");
        path
    }

    /// Runs `compiler options source -o output` and returns the path of the output.
    pub fn compile(
        &self,
        compiler: &str,
        source: &Path,
        output: &str,
        options: &[&str],
    ) -> PathBuf {
        let path = self.path(output);
        let mut command = Command::new(compiler);
        command.current_dir(self.dir()).args(options).arg(source);
        run(command.arg("-o").arg(&path));
        path
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let (true, Some(dir)) = (std::thread::panicking(), self.dir.take()) {
            eprintln!("files kept in {}", dir.keep().display());
        }
    }
}

/// Returns the path of a file of `debuginfo/tests/programs`. Tests of the crates above also use these files.
pub fn program(name: &str) -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let crates = crates.expect("the crate lies in a workspace");
    crates.join("debuginfo/tests/programs").join(name)
}

/// Runs a command that must succeed and returns what it printed.
pub fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("run {command:?}: {e}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a tool with arguments, followed by a file.
pub fn tool(name: &str, args: &[&str], file: &Path) -> String {
    run(Command::new(name).env("LC_ALL", "C").args(args).arg(file))
}

/// Returns the module of `altlink.s` and, next to it, its supplementary file as dwz would make it.
pub fn with_supplement(bench: &Bench) -> (PathBuf, PathBuf) {
    let options = ["-shared", "-nostdlib"];
    let module = bench.compile("gcc", &program("altlink.s"), "altlink.so", &options);
    let supplement = bench.compile("as", &program("supplement.s"), "fuzz.sup", &[]);
    (module, supplement)
}

/// Returns the peak memory use of this process, in KiB.
pub fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|l| l.starts_with("VmHWM:"));
    let number = line.and_then(|l| l.split_whitespace().nth(1));
    let number = number.expect("the kernel counts it");
    number.parse().expect("a number")
}

pub fn open(path: &Path) -> Module {
    Module::open(path).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the only function with this readable name or mangled linker name.
pub fn function<'m>(module: &'m Module, name: &str) -> &'m Function {
    let list = &module.functions().list;
    // Optimisers append suffixes to the names of functions whose parameters they changed.
    let is_linkage = |f: &Function| {
        let rest = f.linkage.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let is_named = |f: &&Function| f.name == name || name.starts_with("_Z") && is_linkage(f);
    let found: Vec<_> = list.iter().filter(is_named).collect();
    match found.as_slice() {
        [one] => one,
        _ => panic!("{} functions are called {name}", found.len()),
    }
}

pub fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16)
        .unwrap_or_else(|e| panic!("hexadecimal {text}: {e}"))
}

pub fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().collect();
    let pair = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("ASCII digits");
        u8::from_str_radix(pair, 16).unwrap_or_else(|e| panic!("byte {pair}: {e}"))
    };
    digits.chunks(2).map(pair).collect()
}
