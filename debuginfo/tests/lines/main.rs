//! Goal: lines and addresses equal those of readelf, addr2line and gdb: the line of an address, with inlined calls; the
//! places where gdb sets breakpoints on lines and functions; the lines with code. Method: optimised and unoptimised
//! programs in three languages and two versions of DWARF are queried for every address of their functions and every
//! line of their sources, and so are the tools.

mod addresses;
mod names;
mod places;
mod sources;

#[path = "../common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{Bench, open, program};
use debuginfo::{AddressSpace, Certainty, Machine, Mapped, Register, Unknown};

fn space(path: &Path) -> AddressSpace {
    AddressSpace::new(vec![Mapped {
        module: Arc::new(open(path)),
        number: 0,
        bias: 0,
        range: 0..u64::MAX,
        is_system: false,
    }])
}

/// A thread of which only the position is known.
struct At(u64);

impl Machine for At {
    fn memory(&self, address: u64, _: &mut [u8]) -> Result<Certainty, Unknown> {
        Err(Unknown::because(format!("no memory at {address:#x}")))
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        match register {
            Register::RIP => Ok((self.0, Certainty::Known)),
            _ => Err(Unknown::because("not captured")),
        }
    }

    fn vector(&self, _: Register) -> Result<([u8; 16], Certainty), Unknown> {
        Err(Unknown::because("not captured"))
    }
}

struct Built {
    bench: Bench,
    path: PathBuf,
    source: &'static str,
    what: String,
}

fn built(compiler: &str, source: &'static str, options: &[&str]) -> Built {
    let bench = Bench::new();
    let path = bench.compile(compiler, &program(source), "lines", options);
    Built {
        path,
        source,
        what: format!("{compiler} {options:?} {source}"),
        bench,
    }
}

fn all() -> Vec<Built> {
    let mut all = Vec::new();
    for level in ["-O0", "-O2"] {
        for version in ["-gdwarf-4", "-gdwarf-5"] {
            all.push(built(
                "gcc",
                "frames.c",
                &["-g", version, level, "-pthread"],
            ));
            all.push(built("g++", "frames.cpp", &["-g", version, level]));
        }
        all.push(built(
            "gcc",
            "frames.c",
            &["-g", "-gsplit-dwarf", level, "-pthread"],
        ));
        let rust = level.replace("-O", "opt-level=");
        all.push(built("rustc", "frames.rs", &["-g", "-C", &rust]));
    }
    all
}

/// All programs, and those of compilers whose output tools other than gdb read differently.
fn all_for_gdb() -> Vec<Built> {
    let mut all = all();
    for level in ["-O0", "-O1", "-O2"] {
        all.push(built("gcc", "places.c", &["-g", level]));
        all.push(built("clang", "places.c", &["-g", level]));
        all.push(built("clang++", "frames.cpp", &["-g", level]));
    }
    all
}

/// Returns the functions of the fixture's own source file.
fn own_functions(built: &Built) -> Vec<debuginfo::Function> {
    let module = open(&built.path);
    let list = module.functions().list.iter();
    let is_own =
        |f: &&debuginfo::Function| f.file.as_ref().is_some_and(|f| f.ends_with(built.source));
    list.filter(is_own).cloned().collect()
}
