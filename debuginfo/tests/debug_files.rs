//! Goal: debug information is found in every place where it may be, and used only if it belongs to the module. Method:
//! the usual tools strip, split, pack and compress a program. The functions must equal those of the whole file.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Bench, function, open, program, run};
use debuginfo::{Function, Module, OpenOptions, ParameterPlace, SymbolKind, ValueKind, Warning};

fn compile(bench: &Bench, options: &[&str]) -> PathBuf {
    let options = [&["-g", "-O1", "-Wl,--build-id"], options].concat();
    bench.compile("gcc", &program("arguments.c"), "whole", &options)
}

fn objcopy(args: &[&str], from: &Path, to: &Path) {
    run(Command::new("objcopy").args(args).arg(from).arg(to));
}

/// Strips `whole` and moves its debug information to `debug`.
fn strip(whole: &Path, stripped: &Path, debug: &Path) {
    objcopy(&["--only-keep-debug"], whole, debug);
    objcopy(&["--strip-all"], whole, stripped);
}

fn link(stripped: &Path, debug: &Path) {
    let option = format!("--add-gnu-debuglink={}", debug.display());
    objcopy(&[&option], stripped, stripped);
}

fn list(module: &Module) -> &[Function] {
    assert!(module.functions().warnings.is_empty());
    &module.functions().list
}

/// Checks that functions and symbols equal those of the whole file.
fn same(whole: &Path, module: &Module) {
    let whole = open(whole);
    assert!(list(&whole).len() > 40);
    assert_eq!(list(&whole), list(module));
    assert_eq!(whole.symbols(), module.symbols());
}

#[test]
fn without_debug_file_there_are_no_functions_but_starts() {
    let bench = Bench::new();
    let (whole, stripped) = (compile(&bench, &[]), bench.path("stripped"));
    strip(&whole, &stripped, &bench.path("elsewhere.debug"));
    let module = open(&stripped);
    assert!(!module.has_dwarf() && module.debug_path().is_none());
    assert_eq!(list(&module), []);
    for f in list(&open(&whole)) {
        assert_eq!(
            module.frame_at(f.svma).map(|r| r.start),
            Some(f.svma),
            "{}",
            f.name
        );
        assert_eq!(
            module.function_end(f.svma).map(|s| s.0),
            Some(f.svma.0 + f.size),
            "{}",
            f.name
        );
    }
}

#[test]
fn by_link_beside_the_module_and_in_its_folder() {
    let bench = Bench::new();
    let (whole, stripped) = (
        compile(&bench, &["-Wl,--build-id=none"]),
        bench.path("stripped"),
    );
    let debug = bench.path("stripped.debug");
    strip(&whole, &stripped, &debug);
    link(&stripped, &debug);
    let module = open(&stripped);
    assert_eq!(module.debug_path(), Some(&*debug));
    same(&whole, &module);
    let folder = bench.path(".debug");
    std::fs::create_dir(&folder).unwrap();
    std::fs::rename(&debug, folder.join("stripped.debug")).unwrap();
    let module = open(&stripped);
    assert_eq!(module.debug_path(), Some(&*folder.join("stripped.debug")));
    same(&whole, &module);
}

#[test]
fn by_link_in_the_folder_for_all_modules() {
    let bench = Bench::new();
    let (whole, stripped) = (
        compile(&bench, &["-Wl,--build-id=none"]),
        bench.path("stripped"),
    );
    let debug = bench.path("stripped.debug");
    strip(&whole, &stripped, &debug);
    link(&stripped, &debug);
    let real = std::fs::canonicalize(bench.dir()).unwrap();
    let folder = bench.path("global").join(real.strip_prefix("/").unwrap());
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::rename(&debug, folder.join("stripped.debug")).unwrap();
    let options = OpenOptions::new().debug_dirs([bench.path("global")]);
    same(&whole, &options.open(&stripped).unwrap());
}

#[test]
fn by_build_id() {
    let bench = Bench::new();
    let (whole, stripped) = (compile(&bench, &[]), bench.path("stripped"));
    let id = open(&whole).build_id().unwrap().to_owned();
    let folder = bench.path("global").join(".build-id").join(&id[..2]);
    std::fs::create_dir_all(&folder).unwrap();
    let debug = folder.join(format!("{}.debug", &id[2..]));
    strip(&whole, &stripped, &debug);
    let options = OpenOptions::new().debug_dirs([bench.path("nowhere"), bench.path("global")]);
    let module = options.open(&stripped).unwrap();
    assert_eq!(module.debug_path(), Some(&*debug));
    assert_eq!(module.warnings(), []);
    same(&whole, &module);
}

#[test]
fn a_debug_file_of_another_build_is_refused_and_named() {
    let bench = Bench::new();
    let (whole, stripped) = (
        compile(&bench, &["-Wl,--build-id=none"]),
        bench.path("stripped"),
    );
    let debug = bench.path("stripped.debug");
    strip(&whole, &stripped, &debug);
    link(&stripped, &debug);
    let mut bytes = std::fs::read(&debug).unwrap();
    bytes.push(0);
    std::fs::write(&debug, bytes).unwrap();
    let module = open(&stripped);
    assert_eq!(module.debug_path(), None);
    let [warning @ Warning::DebugFileRefused { path, .. }] = module.warnings() else {
        panic!("{:?}", module.warnings());
    };
    assert_eq!(*path, debug);
    assert!(warning.to_string().contains("checksum"), "{warning}");
}

#[test]
fn a_build_id_that_differs_is_refused() {
    let bench = Bench::new();
    let (whole, stripped) = (compile(&bench, &[]), bench.path("stripped"));
    let id = open(&whole).build_id().unwrap().to_owned();
    let folder = bench.path(".build-id").join(&id[..2]);
    std::fs::create_dir_all(&folder).unwrap();
    let other = bench.compile(
        "gcc",
        &program("small.c"),
        "other.so",
        &["-g", "-shared", "-fPIC", "-Wl,--build-id"],
    );
    let debug = folder.join(format!("{}.debug", &id[2..]));
    strip(&other, &bench.path("ignored"), &debug);
    objcopy(&["--strip-all"], &whole, &stripped);
    let module = OpenOptions::new()
        .debug_dirs([bench.dir().to_owned()])
        .open(&stripped)
        .unwrap();
    assert_eq!(module.debug_path(), None);
    let text = module.warnings()[0].to_string();
    assert!(text.contains("build id") && text.contains(&id), "{text}");
}

#[test]
fn compressed_sections() {
    for option in ["zlib", "zlib-gnu", "zstd"] {
        let bench = Bench::new();
        let whole = compile(&bench, &[]);
        let compressed = bench.path("compressed");
        objcopy(
            &[&format!("--compress-debug-sections={option}")],
            &whole,
            &compressed,
        );
        assert!(
            std::fs::metadata(&compressed).unwrap().len()
                < std::fs::metadata(&whole).unwrap().len()
        );
        same(&whole, &open(&compressed));
    }
}

#[test]
fn a_section_that_claims_to_be_huge_is_named() {
    let bench = Bench::new();
    let whole = compile(&bench, &[]);
    let compressed = bench.path("compressed");
    objcopy(&["--compress-debug-sections=zlib"], &whole, &compressed);
    let mut bytes = std::fs::read(&compressed).unwrap();
    let sections = common::tool("readelf", &["-SW"], &compressed);
    let line = sections
        .lines()
        .find(|l| l.contains(" .debug_info "))
        .unwrap();
    let offset = line
        .split_whitespace()
        .rev()
        .nth(6)
        .map(common::hex)
        .unwrap() as usize;
    assert_eq!(
        bytes[offset..offset + 4],
        [1, 0, 0, 0],
        "a header that says zlib: {line}"
    );
    bytes[offset + 8..offset + 16].fill(0x7f);
    let module = Module::from_bytes("claims", bytes).unwrap();
    let warnings = &module.functions().warnings;
    assert!(
        matches!(&warnings[..], [Warning::BadSection { section, .. }] if section == ".debug_info"),
        "{warnings:?}"
    );
}

fn split(bench: &Bench, options: &[&str]) -> PathBuf {
    let options = [&["-g", "-O1", "-gsplit-dwarf", "-c"], options].concat();
    for name in ["arguments", "small"] {
        let mut gcc = Command::new("gcc");
        let source = program(&format!("{name}.c"));
        gcc.current_dir(bench.dir())
            .args(&options)
            .arg(source)
            .args(["-o", &format!("{name}.o")]);
        run(&mut gcc);
    }
    bench.compile("gcc", &bench.path("arguments.o"), "split", &["small.o"])
}

/// Checks that the functions equal those of the same program without splitting.
fn same_as_unsplit(bench: &Bench, module: &Module, options: &[&str]) {
    let small = program("small.c");
    let options = [&["-g", "-O1", small.to_str().unwrap()], options].concat();
    let whole = bench.compile("gcc", &program("arguments.c"), "whole", &options);
    assert_eq!(list(&open(&whole)), list(module));
}

#[test]
fn split_units_in_files_and_in_a_package() {
    for options in [["-gdwarf-5"], ["-gdwarf-4"]] {
        let bench = Bench::new();
        let path = split(&bench, &options);
        same_as_unsplit(&bench, &open(&path), &options);
        if options == ["-gdwarf-5"] {
            // The dwp of GNU binutils loses sections that are new in DWARF 5.
            continue;
        }
        let mut dwp = Command::new("dwp");
        run(dwp
            .current_dir(bench.dir())
            .args(["-o", "split.dwp", "arguments.dwo", "small.dwo"]));
        for name in ["arguments", "small"] {
            std::fs::remove_file(bench.path(&format!("{name}.dwo"))).unwrap();
        }
        same_as_unsplit(&bench, &open(&path), &options);
    }
}

#[test]
fn a_split_unit_that_is_missing_is_named() {
    let bench = Bench::new();
    let path = split(&bench, &[]);
    let missing = bench.path("small.dwo");
    std::fs::remove_file(&missing).unwrap();
    let module = open(&path);
    function(&module, "tell");
    let [Warning::SplitUnitMissing { name }] = &module.functions().warnings[..] else {
        panic!("{:?}", module.functions().warnings);
    };
    assert_eq!(*name, missing.to_str().unwrap());
}

#[test]
fn bytes_in_memory_open_no_other_file() {
    let bench = Bench::new();
    let path = split(&bench, &[]);
    let module = Module::from_bytes(&path, std::fs::read(&path).unwrap()).unwrap();
    let warnings = &module.functions().warnings;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
}

#[test]
fn names_and_types_in_a_supplementary_file() {
    let bench = Bench::new();
    let (path, supplement) = common::with_supplement(&bench);
    let module = open(&path);
    assert_eq!(module.supplement_path(), Some(&*supplement));
    assert_eq!((module.warnings(), list(&module).len()), (&[][..], 1));
    let f = function(&module, "f");
    let int = |bytes, signed| ValueKind::Int { bytes, signed };
    assert_eq!(f.ret, int(8, true));
    let params: Vec<_> = f
        .params
        .iter()
        .map(|p| (&*p.name, p.kind.clone(), p.place))
        .collect();
    let expected = [
        ("first", int(8, true), ParameterPlace::Int(0)),
        ("second", int(2, false), ParameterPlace::Int(1)),
    ];
    assert_eq!(params, expected);
}

#[test]
fn a_supplementary_file_that_is_missing_is_named() {
    let bench = Bench::new();
    let (path, supplement) = common::with_supplement(&bench);
    std::fs::remove_file(supplement).unwrap();
    let module = open(&path);
    assert_eq!(
        module.warnings(),
        [Warning::SupplementMissing {
            name: "fuzz.sup".to_owned()
        }]
    );
    assert!(!module.functions().list[0].params_known);
}

#[test]
fn indirect_functions_are_marked_and_have_stubs() {
    let bench = Bench::new();
    let options = ["-g", "-O1", "-shared", "-fPIC", "-nostdlib", "-Wl,-z,lazy"];
    let path = bench.compile("gcc", &program("small.c"), "small.so", &options);
    let module = open(&path);
    let symbols = module.symbols();
    let chosen = symbols.iter().find(|s| s.linkage == "chosen").unwrap();
    let resolver = symbols.iter().find(|s| s.linkage == "choose").unwrap();
    assert_eq!(
        (chosen.kind, chosen.svma),
        (SymbolKind::Ifunc, resolver.svma)
    );
    let stubs: Vec<_> = module.plt_entries().iter().map(|e| &*e.symbol).collect();
    assert!(stubs.contains(&"chosen"), "{stubs:?}");
}

#[test]
fn indirect_functions_of_a_static_program_have_named_stubs() {
    let bench = Bench::new();
    let options = [
        "-g",
        "-O1",
        "-static",
        "-no-pie",
        "-nostartfiles",
        "-nostdlib",
    ];
    let text =
        "extern int calls_chosen(void); void _start(void) { calls_chosen(); __builtin_trap(); }";
    let start = bench.write("start.c", text);
    let options = [&options[..], &[start.to_str().unwrap()]].concat();
    let path = bench.compile("gcc", &program("small.c"), "static", &options);
    let module = open(&path);
    assert!(!module.is_pie() && !module.is_library() && module.interp().is_none());
    let stubs: Vec<_> = module.plt_entries().iter().map(|e| &*e.symbol).collect();
    // The name of the resolver or of the indirect function: both are at the address that fills the slot.
    assert!(matches!(stubs[..], ["chosen" | "choose"]), "{stubs:?}");
}
