//! Goal: lines and addresses equal those of readelf, addr2line and gdb: the line of an address, with inlined calls; the
//! places where gdb sets breakpoints on lines and functions; the lines with code. Method: optimised and unoptimised
//! programs in three languages and two versions of DWARF are queried for every address of their functions and every
//! line of their sources, and so are the tools. Each run takes a third of the programs; `WHOLE=1` all.

mod addresses;
mod names;
mod places;
mod sources;

#[path = "../common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::share::{Shared, in_turn};
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

/// The programs in turn, built once for all tests.
fn all() -> Arc<Vec<Built>> {
    static SHARED: Shared<Vec<Built>> = Shared::new();
    SHARED.get(|| {
        let mut all: Vec<(&str, &'static str, Vec<&str>)> = Vec::new();
        for (level, rust) in [("-O0", "opt-level=0"), ("-O2", "opt-level=2")] {
            for version in ["-gdwarf-4", "-gdwarf-5"] {
                all.push(("gcc", "frames.c", vec!["-g", version, level, "-pthread"]));
                all.push(("g++", "frames.cpp", vec!["-g", version, level]));
            }
            let split = vec!["-g", "-gsplit-dwarf", level, "-pthread"];
            all.push(("gcc", "frames.c", split));
            all.push(("rustc", "frames.rs", vec!["-g", "-C", rust]));
        }
        let taken = in_turn(all);
        taken
            .map(|(compiler, source, options)| built(compiler, source, &options))
            .collect()
    })
}

/// Those of compilers whose output tools other than gdb read differently, in turn.
fn others_for_gdb() -> Arc<Vec<Built>> {
    static SHARED: Shared<Vec<Built>> = Shared::new();
    SHARED.get(|| {
        let levels = ["-O0", "-O1", "-O2"].into_iter();
        let all = levels.flat_map(|level| {
            [
                ("gcc", "places.c", level),
                ("clang", "places.c", level),
                ("clang++", "frames.cpp", level),
            ]
        });
        in_turn(all)
            .map(|(compiler, source, level)| built(compiler, source, &["-g", level]))
            .collect()
    })
}

/// Returns the functions of the fixture's own source file.
fn own_functions(built: &Built) -> Vec<debuginfo::Function> {
    let module = open(&built.path);
    let list = module.functions().list.iter();
    let is_own =
        |f: &&debuginfo::Function| f.file.as_ref().is_some_and(|f| f.ends_with(built.source));
    list.filter(is_own).cloned().collect()
}
