//! Goal: symbols, functions, names, stubs, build ids, files and lines equal those of readelf, nm, objdump and gdb.
//! Method: programs in three languages are compiled in different ways, and everything that the tools list is compared.
//! For the system's own libraries, the contents of stripped files are compared.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Bench, open, program, run, tools};
use debuginfo::{Function, Module, Svma, SymbolKind, ValueKind};

fn symbols_agree(path: &Path, module: &Module) -> usize {
    let ours = module.symbols();
    let ours: BTreeSet<_> = ours
        .iter()
        .map(|s| {
            let is_ifunc = s.kind == SymbolKind::Ifunc;
            (s.svma.0, s.size, s.linkage.clone(), is_ifunc)
        })
        .collect();
    let mut theirs = tools::symbols(path);
    if let Some(debug) = module.debug_path() {
        theirs.extend(tools::symbols(debug));
    }
    let missing: Vec<_> = theirs.difference(&ours).collect();
    let invented: Vec<_> = ours.difference(&theirs).collect();
    assert!(
        missing.is_empty() && invented.is_empty(),
        "missing {missing:?}, invented {invented:?}"
    );
    theirs.len()
}

/// Stubs have objdump's names. objdump names those of indirect functions by the resolver's address. There, a symbol
/// with the stub's name must exist. If there is no symbol at all, the stub is not listed.
fn stubs_agree(path: &Path, module: &Module) -> usize {
    let ours = module.plt_entries().iter();
    let ours: BTreeMap<_, _> = ours.map(|e| (e.svma.0, e.symbol.clone())).collect();
    let (indirect, theirs): (BTreeMap<_, _>, BTreeMap<_, _>) = tools::plt(path)
        .into_iter()
        .partition(|(_, name)| name.starts_with("*ABS*"));
    let mut named = ours.clone();
    let symbols = module.symbols();
    for (address, resolver) in indirect {
        let resolver = common::hex(resolver.trim_start_matches("*ABS*+"));
        let mut there = symbols.iter().filter(|s| s.svma.0 == resolver).peekable();
        let found = named.remove(&address);
        assert_eq!(found.is_some(), there.peek().is_some(), "{address:#x}");
        assert!(
            found.is_none_or(|name| there.any(|s| s.linkage == name)),
            "{address:#x}"
        );
    }
    assert_eq!(named, theirs);
    ours.len()
}

/// Functions are exactly the symbols of compiled code, with their sizes. `runtime` covers what the linker adds.
fn functions_agree(path: &Path, module: &Module) -> usize {
    // Thunks, which the compiler generates without describing them, also count as runtime, as do the parts of libgcc
    // that compute with types the processor lacks.
    const RUNTIME: [&str; 6] = [
        "_start",
        "_init",
        "_fini",
        "deregister_tm_clones",
        "register_tm_clones",
        "frame_dummy",
    ];
    let is_runtime = |name: &str| {
        RUNTIME.contains(&name)
            || name.starts_with("__")
            || name.starts_with("_ZT")
            || name == "_dl_relocate_static_pie"
    };
    let ours: BTreeMap<u64, u64> = list(module).iter().map(|f| (f.svma.0, f.size)).collect();
    let symbols = tools::symbols(path).into_iter();
    let theirs: BTreeMap<u64, u64> = symbols
        .filter(|(_, _, name, _)| !is_runtime(name) && !name.contains(".cold"))
        .map(|(address, size, ..)| (address, size))
        .collect();
    assert_eq!(ours, theirs);
    theirs.len()
}

fn list(module: &Module) -> &[Function] {
    assert!(
        module.functions().warnings.is_empty(),
        "{:?}",
        module.functions().warnings
    );
    &module.functions().list
}

/// Each readable name equals nm's, apart from the parameters and the result, which nm includes.
fn names_agree(path: &Path, module: &Module) {
    let theirs = tools::demangled(path);
    for f in list(module) {
        let names = &theirs[&f.svma.0];
        let own = f.name.replace("::<", "<");
        let same = |name: &String| {
            // A name that is not mangled states no scope.
            if *name == f.linkage && own.ends_with(&format!("::{name}")) {
                return true;
            }
            let name = name.split(" [clone").next().unwrap_or_default();
            // Rust writes generic arguments of functions differently in expressions and in types.
            let name = &*name.replace("::<", "<");
            // The legacy Rust mangling ends in a hash.
            let name = match name.rsplit_once("::h") {
                Some((name, hash)) if hash.len() == 16 => name,
                _ => name,
            };
            let end =
                |at: usize| matches!(name.as_bytes().get(at), None | Some(b'(' | b'[' | b'.'));
            let begin =
                |at: usize| at == 0 || matches!(name.as_bytes()[at - 1], b' ' | b'*' | b'&');
            let generic = own
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('<'));
            generic
                || name
                    .match_indices(&own)
                    .any(|(at, text)| begin(at) && end(at + text.len()))
        };
        assert!(names.iter().any(same), "{} is called {names:?}", f.name);
    }
}

fn bytes(kind: &ValueKind) -> Option<u64> {
    match kind {
        ValueKind::Void => None,
        ValueKind::Bool => Some(1),
        ValueKind::Char { bytes }
        | ValueKind::Int { bytes, .. }
        | ValueKind::Float { bytes }
        | ValueKind::Enum { bytes, .. } => Some(u64::from(*bytes)),
        ValueKind::Pointer => Some(8),
        ValueKind::Struct { bytes } => Some(*bytes),
        other => panic!("{other:?} has no size"),
    }
}

/// Files, lines, sizes, parameters and results equal those that gdb reads from the same debug information.
fn gdb_agrees(path: &Path, module: &Module) {
    let addresses: Vec<u64> = list(module).iter().map(|f| f.svma.0).collect();
    let theirs = tools::described(path, &addresses);
    for f in list(module) {
        let theirs = &theirs[&f.svma.0];
        assert_eq!(f.line, Some(theirs.line).filter(|l| *l > 0), "{f:?}");
        let file = f.file.as_deref().expect("every function has a file");
        assert_eq!(plain(file), plain(&theirs.file), "{f:?}");
        if f.ranges.len() == 1 {
            assert_eq!(f.size, theirs.size, "{f:?}");
        }
        params_agree(f, theirs);
        if f.ret != ValueKind::Unknown {
            assert_eq!(bytes(&f.ret), theirs.result, "{f:?}");
        }
    }
}

/// Names and sizes of the parameters are equal. gdb lists no unnamed parameters. For constructors and destructors, it
/// also lists hidden ones that not all of their variants have.
fn params_agree(f: &Function, theirs: &tools::Described) {
    let named = f.params.iter().filter(|p| !p.name.is_empty());
    let ours: Vec<_> = named.map(|p| (p.name.clone(), bytes(&p.kind))).collect();
    let is_hidden = |name: &str| matches!(name, "__in_chrg" | "__vtt_parm");
    let theirs = theirs
        .params
        .iter()
        .filter(|t| !is_hidden(&t.0) || ours.contains(t));
    let (mut ours, mut theirs) = (ours.clone(), theirs.cloned().collect::<Vec<_>>());
    if f.linkage.contains('.') {
        // For a changed function, gdb lists the remaining parameters first.
        ours.sort();
        theirs.sort();
    }
    assert_eq!(ours, theirs, "{f:?}");
}

/// Resolves `..` in a path, like gdb.
fn plain(path: &str) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            std::path::Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// In code that was not moved, the line of each function's first instruction is the function's own. Included files are
/// omitted, because some versions of addr2line name the wrong file for them.
fn first_lines_agree(path: &Path, module: &Module) {
    let is_own = |f: &&Function| {
        f.file
            .as_deref()
            .is_some_and(|file| file.ends_with("arguments.c"))
    };
    let own: Vec<&Function> = list(module).iter().filter(is_own).collect();
    assert!(own.len() > 40);
    let addresses: Vec<String> = own.iter().map(|f| f.svma.to_string()).collect();
    let output = run(Command::new("addr2line")
        .arg("-e")
        .arg(path)
        .args(addresses));
    for (f, line) in own.into_iter().zip(output.lines()) {
        let line = line.split(" (discriminator").next().unwrap_or_default();
        let (file, number) = line.rsplit_once(':').expect("a line");
        let (own_file, own_line) = (f.file.as_deref().expect("a file"), f.line.expect("a line"));
        assert_eq!(plain(file), plain(own_file), "{f:?}");
        // Or the line of the brace below it.
        let number: u32 = number.parse().expect("a line number");
        assert!(
            (own_line..=own_line + 1).contains(&number),
            "{number}: {f:?}"
        );
    }
}

fn everything_agrees(path: &Path) -> Module {
    let module = open(path);
    assert_eq!(module.build_id().map(str::to_owned), tools::build_id(path));
    assert!(symbols_agree(path, &module) > 0);
    stubs_agree(path, &module);
    names_agree(path, &module);
    gdb_agrees(path, &module);
    module
}

fn c(options: &[&str]) {
    let bench = Bench::new();
    let options = [&["-g", "-w", "-Wno-psabi"], options].concat();
    let path = bench.compile("gcc", &program("arguments.c"), "arguments", &options);
    let module = everything_agrees(&path);
    assert!(functions_agree(&path, &module) > 40);
    if options.contains(&"-O0") {
        first_lines_agree(&path, &module);
    }
}

#[test]
fn c_at_any_address() {
    c(&["-O0", "-fpie", "-pie", "-Wl,--build-id=sha1"]);
}

#[test]
fn c_optimised_at_any_address() {
    c(&["-O2", "-fpie", "-pie", "-Wl,--build-id=md5"]);
}

#[test]
fn c_at_a_fixed_address() {
    c(&["-O0", "-no-pie", "-Wl,--build-id=none"]);
}

#[test]
fn c_optimised_at_a_fixed_address() {
    c(&[
        "-O2",
        "-no-pie",
        "-gdwarf-4",
        "-Wl,--build-id=0x1234567890abcdef",
    ]);
}

#[test]
fn c_with_stubs_for_indirect_branch_tracking() {
    c(&["-O1", "-fcf-protection", "-Wl,-z,ibtplt", "-Wl,-z,lazy"]);
}

#[test]
fn c_with_stubs_that_are_bound_at_start() {
    c(&["-O1", "-Wl,-z,now", "-fcf-protection=none"]);
}

fn cxx(options: &[&str]) {
    let bench = Bench::new();
    let options = [&["-g", "-w", "-std=c++17"], options].concat();
    let path = bench.compile("g++", &program("library.cpp"), "library", &options);
    let module = everything_agrees(&path);
    assert!(functions_agree(&path, &module) >= 15);
}

#[test]
fn cxx_unoptimised() {
    cxx(&["-O0", "-pie", "-fpie"]);
}

#[test]
fn cxx_optimised() {
    cxx(&["-O2", "-no-pie"]);
}

#[test]
fn cxx_dwarf_4() {
    cxx(&["-O1", "-gdwarf-4", "-fdebug-types-section"]);
}

/// The standard library is compiled without type descriptions, so gdb is asked only about the program's own functions.
fn rust(options: &[&str]) {
    let bench = Bench::new();
    let options = [&["--edition=2024", "-g", "-Cpanic=abort"], options].concat();
    let path = bench.compile("rustc", &program("plain.rs"), "plain", &options);
    let module = open(&path);
    assert_eq!(module.build_id().map(str::to_owned), tools::build_id(&path));
    assert!(symbols_agree(&path, &module) > 100);
    stubs_agree(&path, &module);
    names_agree(&path, &module);
    let own: Vec<&Function> = list(&module)
        .iter()
        .filter(|f| f.name.starts_with("plain::"))
        .collect();
    let addresses: Vec<u64> = own.iter().map(|f| f.svma.0).collect();
    assert!(addresses.len() >= 5, "{addresses:?}");
    let theirs = tools::described(&path, &addresses);
    for f in own {
        let theirs = &theirs[&f.svma.0];
        assert_eq!((f.line, f.size), (Some(theirs.line), theirs.size), "{f:?}");
        assert_eq!(f.file.as_deref(), Some(theirs.file.as_str()));
        params_agree(f, theirs);
    }
}

#[test]
fn rust_unoptimised() {
    rust(&["-Copt-level=0"]);
}

#[test]
fn rust_optimised_with_new_names() {
    rust(&[
        "-Copt-level=2",
        "-Csymbol-mangling-version=v0",
        "-Crelocation-model=static",
    ]);
}

/// Returns a library that the compilers here need themselves.
fn library(name: &str) -> PathBuf {
    let path = run(Command::new("gcc").arg(format!("-print-file-name={name}")));
    PathBuf::from(path.trim())
}

#[test]
fn system_libraries() {
    for (name, symbols, stubs) in [
        ("libc.so.6", 2000, 5),
        ("libstdc++.so.6", 3000, 5),
        ("libm.so.6", 500, 1),
    ] {
        let path = library(name);
        let module = open(&path);
        assert!(module.is_library() && !module.is_pie(), "{name}");
        assert_eq!(module.build_id().map(str::to_owned), tools::build_id(&path));
        assert!(symbols_agree(&path, &module) >= symbols, "{name}");
        assert!(stubs_agree(&path, &module) >= stubs, "{name}");
    }
}

#[test]
fn system_programs() {
    for name in ["gdb", "objdump", "readelf"] {
        let path = run(Command::new("sh").args(["-c", &format!("command -v {name}")]));
        let path = Path::new(path.trim());
        let module = open(path);
        assert!(!module.is_library() && module.interp().is_some(), "{name}");
        assert_eq!(module.build_id().map(str::to_owned), tools::build_id(path));
        symbols_agree(path, &module);
        assert!(stubs_agree(path, &module) > 50, "{name}");
    }
}

/// What precedes the first stub resolves names for all of them, and has no symbol. gdb leaves it unnamed, too.
#[test]
fn code_between_symbols_of_two_sections_has_no_name() {
    const STUB: u64 = 16;
    let bench = Bench::new();
    let source = bench.write(
        "stubs.c",
        "#include <stdio.h>\nint main(void) { return puts(\"hello\"); }\n",
    );
    let options = ["-O1", "-fcf-protection=none", "-Wl,-z,lazy"];
    let module = open(&bench.compile("gcc", &source, "stubs", &options));
    let mut stubs = module.plt_entries().iter();
    let puts = stubs.find(|stub| stub.symbol == "puts");
    let puts = puts.expect("it calls puts by a stub").svma;
    let named = |svma: u64| module.symbol_at(Svma(svma));
    assert_eq!(named(puts.0 - STUB), None);
    assert_eq!(named(puts.0 + 6), Some(("puts@plt".to_owned(), puts)));
}
