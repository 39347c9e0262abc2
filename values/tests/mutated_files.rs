//! Goal: no file makes a reader panic, loop endlessly or use disproportionate memory. Method: small programs with every
//! kind of debug information are changed at random from a fixed seed, a bounded number of times, and given to the entry
//! of the fuzz target. `VALUES_FUZZ_ROUNDS` makes the search longer, `VALUES_FUZZ_CORPUS` names a folder that the good
//! inputs are written to, for the fuzz target to begin with.

#[path = "../../debuginfo/tests/common/mod.rs"]
mod common;

use std::path::Path;
use std::process::Command;

use common::mutate::{Random, mutate, targets};
use common::{Bench, program, run};
use debuginfo::Module;
use debuginfo::fuzzing::{self, entry};
use values::fuzzing::show;

/// More of them on request, for a longer search.
fn rounds_per_seed() -> usize {
    let asked = std::env::var("VALUES_FUZZ_ROUNDS").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(300)
}

const LIBRARY: [&str; 4] = ["-g", "-shared", "-fPIC", "-nostdlib"];

struct Seed {
    name: &'static str,
    input: Vec<u8>,
    /// Where the file that is changed begins in `input`.
    start: usize,
}

fn module(name: &'static str, path: &Path) -> Seed {
    let input = [vec![fuzzing::MODULE], read(path)].concat();
    Seed {
        name,
        input,
        start: 1,
    }
}

/// A pair of files, of which the second is changed.
fn pair(name: &'static str, way: u8, path: &Path, other: &Path) -> Seed {
    let module = read(path);
    Seed {
        name,
        input: fuzzing::join(way, &module, &read(other)),
        start: 5 + module.len(),
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("read {}: {e}", path.display()))
}

fn seeds(bench: &Bench) -> Vec<Seed> {
    let c = |output: &str, options: &[&str]| {
        let options = [&LIBRARY[..], options].concat();
        bench.compile("gcc", &program("small.c"), output, &options)
    };
    let cxx = |output: &str, options: &[&str]| {
        let options = [&LIBRARY[..], &["-fno-exceptions"], options].concat();
        bench.compile("g++", &program("small.cpp"), output, &options)
    };
    let mut seeds = vec![
        module("C, DWARF 5", &c("c5.so", &["-O2"])),
        module(
            "C, DWARF 2",
            &c("c2.so", &["-O0", "-gdwarf-2", "-gstrict-dwarf"]),
        ),
        module("C, compressed", &c("cz.so", &["-O1", "-gz"])),
        module("C++, DWARF 5", &cxx("cpp5.so", &["-O0"])),
        module(
            "C++, DWARF 4 with type units",
            &cxx("cpp4.so", &["-O1", "-gdwarf-4", "-fdebug-types-section"]),
        ),
        module("Rust", &rust(bench)),
    ];
    seeds.push(debug_file(
        bench,
        &c("whole.so", &["-O2", "-Wl,--build-id"]),
    ));
    seeds.extend(split(bench));
    seeds.push(supplement(bench));
    seeds.push(sections(bench, &c("parts.so", &["-O2", "-gdwarf-4"])));
    seeds
}

fn rust(bench: &Bench) -> std::path::PathBuf {
    let options = [
        "--edition=2024",
        "-g",
        "-O",
        "-Cpanic=abort",
        "--crate-type=cdylib",
    ];
    let options = [
        &options[..],
        &["-Clink-arg=-nostdlib", "-Coverflow-checks=no"],
    ]
    .concat();
    bench.compile("rustc", &program("small.rs"), "rust.so", &options)
}

fn debug_file(bench: &Bench, whole: &Path) -> Seed {
    let (stripped, debug) = (bench.path("stripped.so"), bench.path("stripped.debug"));
    let objcopy = |option: &str, to: &Path| {
        run(Command::new("objcopy").arg(option).arg(whole).arg(to));
    };
    objcopy("--strip-debug", &stripped);
    objcopy("--only-keep-debug", &debug);
    pair("debug file", fuzzing::BUILD_ID, &stripped, &debug)
}

fn split(bench: &Bench) -> [Seed; 2] {
    let in_bench = |command: &mut Command| run(command.current_dir(bench.dir()));
    let object = bench.path("fuzz.o");
    let options = ["-g", "-O2", "-fPIC", "-gsplit-dwarf", "-gdwarf-4", "-c"];
    let source = program("small.c");
    in_bench(
        Command::new("gcc")
            .args(options)
            .arg(source)
            .arg("-o")
            .arg(&object),
    );
    let module = bench.compile("gcc", &object, "split.so", &["-shared", "-nostdlib"]);
    let (dwo, dwp) = (bench.path("moved.dwo"), bench.path("fuzz.dwp"));
    in_bench(Command::new("dwp").args(["-o", "fuzz.dwp", fuzzing::SPLIT_NAME]));
    // Where the compiler wrote it, it would be found before the one that is changed.
    std::fs::rename(bench.path(fuzzing::SPLIT_NAME), &dwo).expect("a file that gcc wrote");
    [
        pair("split", fuzzing::SPLIT, &module, &dwo),
        pair("package", fuzzing::PACKAGE, &module, &dwp),
    ]
}

fn supplement(bench: &Bench) -> Seed {
    let (module, supplement) = common::with_supplement(bench);
    pair("supplement", fuzzing::SUPPLEMENT, &module, &supplement)
}

fn sections(bench: &Bench, whole: &Path) -> Seed {
    let names = ["info", "abbrev", "str", "line", "loc", "ranges"];
    let contents = names.map(|name| {
        let (name, path) = (format!(".debug_{name}"), bench.path(name));
        let mut objcopy = Command::new("objcopy");
        objcopy
            .arg("--dump-section")
            .arg(format!("{name}={}", path.display()));
        run(objcopy.arg(whole).arg(bench.path("copy")));
        (name, read(&path))
    });
    let contents: Vec<_> = contents.iter().map(|(n, c)| (n.as_str(), &c[..])).collect();
    Seed {
        name: "sections",
        input: fuzzing::join_sections(&contents),
        start: 1,
    }
}

/// For thousands of short-lived small files, memory spares the disk, if the system offers it.
fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().expect("a folder"))
}

#[test]
fn no_changed_file_makes_a_reader_panic() {
    let (bench, dir) = (Bench::new(), in_memory());
    let seeds = seeds(&bench);
    if let Ok(corpus) = std::env::var("VALUES_FUZZ_CORPUS") {
        for seed in &seeds {
            let name = Path::new(&corpus).join(seed.name.replace(' ', "_"));
            std::fs::write(name, &seed.input).expect("the folder for the corpus exists");
        }
    }
    let mut random = Random::new(20);
    for seed in seeds {
        entry(&seed.input, dir.path(), &show).unwrap();
        if seed.input[0] == fuzzing::MODULE {
            let module = Module::from_bytes(seed.name, seed.input[1..].to_vec()).unwrap();
            assert!(module.functions().list.len() > 2, "{}", seed.name);
        }
        let targets = targets(&seed.input, seed.start);
        for round in 0..rounds_per_seed() {
            let mut input = seed.input.clone();
            mutate(&mut input, &targets, &mut random);
            let outcome = std::panic::catch_unwind(|| entry(&input, dir.path(), &show));
            if !matches!(outcome, Ok(Ok(()))) {
                let kept = std::env::temp_dir().join("debuginfo-mutated");
                std::fs::write(&kept, &input).expect("a temporary file");
                panic!(
                    "{}, round {round}: input kept in {}",
                    seed.name,
                    kept.display()
                );
            }
        }
    }
    let peak = common::peak_memory_kib();
    assert!(peak < 256 << 10, "files of 20 kB took {peak} KiB of memory");
}

/// Every length that a header could be cut at, then steps through the rest.
#[test]
fn no_length_makes_a_reader_panic() {
    let (bench, dir) = (Bench::new(), in_memory());
    let options = [&LIBRARY[..], &["-O2"]].concat();
    let path = bench.compile("gcc", &program("small.c"), "c.so", &options);
    let input = module("C", &path).input;
    for length in (0..200).chain((200..input.len()).step_by(97)) {
        entry(&input[..length], dir.path(), &show).unwrap();
    }
}
