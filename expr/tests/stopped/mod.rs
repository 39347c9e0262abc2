//! Values at the stops of a program, of which gdb writes core files.
#![allow(dead_code)]

use std::path::Path;
use std::process::Command;

use debuginfo::backtrace;
use expr::{Calls, Context, is_type, parse_with};
use values::{RenderOptions, render};

use crate::common::{Bench, run};
use crate::core_file::CoreFile;

/// Stops at `place`, and again after each of `steps` further instructions.
pub fn stopped(bench: &Bench, path: &Path, place: &str, steps: usize) -> Vec<CoreFile> {
    let name = path.file_name().expect("it is a file").display();
    let core = |at: usize| bench.path(&format!("{name}.{at}.core"));
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-ex", "set breakpoint pending on", "-ex"]);
    gdb.arg(format!("break {place}")).args(["-ex", "run"]);
    for at in 0..=steps {
        gdb.arg("-ex").arg(format!("gcore {}", core(at).display()));
        gdb.args(["-ex", "stepi"]);
    }
    run(gdb.args(["-ex", "kill"]).arg(path));
    (0..=steps).map(|at| CoreFile::open(&core(at))).collect()
}

/// Calls `work` with a frame of the first thread. `calls` calls functions of the program.
pub fn in_frame<T>(
    core: &CoreFile,
    frame: usize,
    calls: Option<&dyn Calls>,
    work: impl FnOnce(&Context<'_>) -> T,
) -> T {
    let thread = core.thread(core.threads[0].tid);
    let frames = backtrace(&core.space, &thread, 64).frames;
    work(&Context {
        space: &core.space,
        machine: &thread,
        frames: &frames,
        index: frame,
        calls,
        kept: None,
    })
}

/// Returns the text of an expression's value in a frame.
pub fn said(core: &CoreFile, frame: usize, text: &str) -> String {
    in_frame(core, frame, None, |context| {
        let is_type = |name: &str| is_type(name, context);
        let parsed = parse_with(text, &is_type).unwrap_or_else(|error| panic!("{text}: {error}"));
        match expr::evaluate(&parsed, context) {
            Ok(value) => {
                let options = RenderOptions::default();
                render(&value, &options, context.machine, context.space)
            }
            Err(error) => format!("<error: {error}>"),
        }
    })
}

pub fn is_known(said: &str) -> bool {
    !said.contains("<unknown") && !said.contains("<error") && !said.contains("<optimized out>")
}

pub fn all_say(core: &CoreFile, frame: usize, expected: &[(&str, &str)]) {
    let wrong: Vec<String> = expected
        .iter()
        .map(|(text, right)| (text, right, said(core, frame, text)))
        .filter(|(_, right, said)| said != *right)
        .map(|(text, right, said)| format!("{text}: {said} and not {right}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
