//! Whether the files of a module contain the name of a function at all.
//!
//! A breakpoint's function is looked up in every module of the process. Searching the names takes a small part of the time that
//! reading all functions of, say, libc takes, and most modules do not contain them.

use memchr::memmem;

use crate::lines::key;
use crate::module::Module;

/// Classes whose names Itanium's mangling abbreviates, so that constructors of theirs may not spell them (Itanium C++ ABI, 5.1.10).
const ABBREVIATED: [&str; 9] = [
    "allocator",
    "basic_string",
    "string",
    "basic_istream",
    "istream",
    "basic_ostream",
    "ostream",
    "basic_iostream",
    "iostream",
];

impl Module {
    /// Returns false only if no function of the module, nor an inlined copy of one, can be called `name`, which is a readable name
    /// or one for the linker. Does not read the functions.
    pub(crate) fn may_have_function(&self, name: &str) -> bool {
        let key = key(name);
        // Names in other files are not searched.
        let is_alone = self.supplement_path().is_none();
        if self.functions.are_known() || !is_alone || !is_verbatim(&key) {
            return true;
        }
        let units = self.entries().units();
        let is_described = units.is_some_and(|kept| kept.table().mentions(&key));
        let holds = |names: &[u8]| memmem::find(names, key.as_bytes()).is_some();
        is_described || self.files.symbol_names().any(holds)
    }
}

/// Returns whether files contain the last component of a function's name as it is, also when it is part of a mangled name.
fn is_verbatim(key: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_spelt = !key.starts_with("operator") && !ABBREVIATED.contains(&key);
    !key.is_empty() && key.bytes().all(is_word) && is_spelt
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;

    /// Compiles one of the test programs.
    fn built(compiler: &str, source: &str, options: &[&str], folder: &Path) -> PathBuf {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let path = folder.join(format!("{compiler}-{source}{}", options.concat()));
        let mut command = Command::new(compiler);
        command
            .args(options)
            .arg(programs.join(source))
            .arg("-o")
            .arg(&path);
        assert!(
            command.status().expect("a compiler").success(),
            "{command:?}"
        );
        path
    }

    /// Returns how many functions, symbols and inlined copies a module has. None of them may be passed over.
    fn passes_nothing_over(path: &Path) -> usize {
        let module = Module::open(path).expect("a module");
        let functions = module.functions().list.iter();
        let functions = functions.flat_map(|f| [f.name.clone(), f.linkage.clone()]);
        let symbols = module.code.symbols().iter();
        let symbols = symbols.flat_map(|s| [s.name.clone(), s.linkage.clone()]);
        let units = module.units().list.iter();
        let scopes = units.flat_map(|unit| unit.scopes(&module).list.iter());
        let copies = scopes.filter_map(|scope| scope.name.as_deref().map(str::to_owned));
        let names: Vec<String> = functions.chain(symbols).chain(copies).collect();
        for name in &names {
            assert!(
                module.may_have_function(name),
                "{name} of {}",
                path.display()
            );
        }
        assert!(
            !module.may_have_function("no_such_function_anywhere"),
            "{}",
            path.display()
        );
        names.len()
    }

    #[test]
    fn every_name_of_a_function_is_in_the_files() {
        let folder = tempfile::tempdir().expect("a folder");
        for options in [
            &["-g", "-O0"][..],
            &["-g", "-O2"],
            &["-O2"],
            &["-g", "-O2", "-gz"],
        ] {
            for (compiler, source) in [
                ("gcc", "frames.c"),
                ("g++", "overloads.cpp"),
                ("clang++", "overloads.cpp"),
            ] {
                let path = built(compiler, source, options, folder.path());
                assert!(passes_nothing_over(&path) > 10, "{compiler} {options:?}");
            }
        }
        for options in [
            &["-g"][..],
            &["-g", "-O"],
            &["-O", "-Csymbol-mangling-version=v0"],
        ] {
            let path = built("rustc", "plain.rs", options, folder.path());
            assert!(passes_nothing_over(&path) > 1000, "rustc {options:?}");
        }
        let split = built("gcc", "frames.c", &["-g", "-gsplit-dwarf"], folder.path());
        assert!(
            Module::open(&split)
                .expect("a module")
                .may_have_function("any")
        );
    }

    #[test]
    fn every_name_of_a_function_of_the_systems_libraries_is_in_the_files() {
        for name in ["libc.so.6", "libstdc++.so.6", "ld-linux-x86-64.so.2"] {
            let path = Path::new("/lib/x86_64-linux-gnu").join(name);
            assert!(passes_nothing_over(&path) > 30, "{name}");
        }
    }

    #[test]
    fn names_that_mangling_changes_are_not_searched() {
        for key in ["f", "push_back", "_start", "r2"] {
            assert!(is_verbatim(key), "{key}");
        }
        for key in [
            "",
            "operator+",
            "operator bool",
            "~Box",
            "{closure#0}",
            "$_0",
            "é",
            "allocator",
            "puts@plt",
        ] {
            assert!(!is_verbatim(key), "{key}");
        }
    }
}
