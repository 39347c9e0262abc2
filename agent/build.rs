//! Compiles the runtime that is loaded into targets and embeds it.

use std::{env, path::PathBuf, process::Command};

fn main() {
    let source =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("runtime");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("runtime.so");
    println!("cargo:rerun-if-changed=runtime");
    println!("cargo:rerun-if-env-changed=CC");
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
        .args(["-Wl,-z,nodelete,-z,now", "-Wl,--build-id", "-o"])
        .arg(&out)
        .args(
            [
                "runtime.c",
                "allowed.c",
                "ask.c",
                "capture.c",
                "interpose.c",
                "last.c",
                "logpoint.c",
                "traps.c",
                "thunks.S",
            ]
            .map(|file| source.join(file)),
        )
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
