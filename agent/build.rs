//! Compiles and embeds the runtime that is loaded into targets: one for programs with a dynamic linker, and a
//! self-contained one for those without.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// The files of both.
const FILES: [&str; 13] = [
    "runtime.c",
    "allowed.c",
    "ask.c",
    "capture.c",
    "fronts.c",
    "interpose.c",
    "last.c",
    "limits.c",
    "logpoint.c",
    "readable.c",
    "system_calls.c",
    "traps.c",
    "thunks.S",
];
/// Only in the self-contained one, which uses no library and finds its thread by fs and gs.
const OWN_FILES: [&str; 2] = ["begin.c", "own_image.c"];
const OWN_OPTIONS: [&str; 5] = [
    "-DHS_SELF_CONTAINED",
    "-mfsgsbase",
    "-ffreestanding",
    "-nostdlib",
    "-Wl,-z,defs",
];

fn main() {
    let source =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("runtime");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    println!("cargo:rerun-if-changed=runtime");
    println!("cargo:rerun-if-env-changed=CC");
    compile(&source, &FILES, &[], &out.join("runtime.so"));
    let files = [&FILES[..], &OWN_FILES].concat();
    compile(
        &source,
        &files,
        &OWN_OPTIONS,
        &out.join("self_contained.so"),
    );
}

fn compile(source: &Path, files: &[&str], options: &[&str], out: &Path) {
    let compiler = env::var("CC").unwrap_or_else(|_| "gcc".into());
    let status = Command::new(&compiler)
        .args([
            "-std=gnu11",
            "-O2",
            "-g1",
            "-fPIC",
            "-shared",
            "-Wall",
            "-Wextra",
            "-Werror",
        ])
        // The vector registers are the program's; the stack protector needs the program's thread block.
        .args([
            "-mgeneral-regs-only",
            "-fno-stack-protector",
            "-fcf-protection=none",
        ])
        .args([
            "-fvisibility=hidden",
            "-fexceptions",
            "-fasynchronous-unwind-tables",
        ])
        // Never unloaded: threads may return into it after a detach. Bound now: no lazy binding on a hot path.
        .args(["-Wl,-z,nodelete,-z,now", "-Wl,--build-id"])
        .args(options)
        .arg("-o")
        .arg(out)
        .args(files.iter().map(|file| source.join(file)))
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => {
            panic!("{compiler} failed ({status}) to compile the runtime in agent/runtime")
        }
        Err(error) => panic!(
            "{compiler} is needed to compile the runtime in agent/runtime: {error}; install gcc"
        ),
    }
}
