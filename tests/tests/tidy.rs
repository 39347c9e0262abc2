//! Goal: the repository keeps its own rules, as far as a program can tell. Method: its files are read; what ARCHITECTURE.md lists is
//! compared with what is there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

const CRATES: [&str; 9] = [
    "agent",
    "store",
    "debuginfo",
    "recorder",
    "replay",
    "query",
    "server",
    "repl",
    "tests",
];

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().expect("the crate lies in a workspace")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every file below a folder whose name ends so, by its path from the root.
fn files_below(folder: &Path, endings: &[&str], found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("the folder can be read").path();
        let name = path.to_str().expect("names of the repository are text");
        if path.is_dir() {
            files_below(&path, endings, found);
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            let root = root();
            let from_root = path.strip_prefix(root).expect("it lies below the root");
            found.push(from_root.to_string_lossy().into_owned());
        }
    }
}

fn files(endings: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for name in CRATES {
        files_below(&root().join(name), endings, &mut found);
    }
    found.sort();
    assert!(found.len() > 10, "{endings:?}: {found:?}");
    found
}

/// The Rust files of our crates; programs that tests compile are not among them.
fn rust_files() -> Vec<String> {
    let mut found = files(&[".rs"]);
    found.retain(|path| !path.starts_with("debuginfo/tests/programs/"));
    found
}

/// The cells of a line of a table.
fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// What stands in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_file_begins_with_what_it_is() {
    let texts = rust_files().into_iter().map(|path| (read(&path), path));
    let wrong = texts.filter(|(text, _)| !text.starts_with("//!"));
    let wrong: Vec<String> = wrong.map(|(_, path)| path).collect();
    assert!(wrong.is_empty(), "without //! at the top: {wrong:#?}");
}

/// Texts of tests may hold anything; the compiler sees to names (`non_ascii_idents`).
#[test]
fn comments_are_ascii() {
    let mut wrong = Vec::new();
    for path in files(&[".rs", ".c", ".h", ".S", ".js", ".py", ".toml"]) {
        for (number, line) in read(&path).lines().enumerate() {
            let is_comment = ["//", "#", "/*", " *"]
                .iter()
                .any(|sign| line.trim_start().starts_with(sign.trim_start()));
            if is_comment && !line.is_ascii() {
                wrong.push(format!("{path}:{}: {line}", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The crates that each may use, by the table of layers.
fn layers() -> BTreeMap<String, BTreeSet<String>> {
    let page = read("ARCHITECTURE.md");
    let (_, section) = page.split_once("## Layers").expect("the page has layers");
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in section.lines().skip_while(|line| !line.starts_with("| 0")) {
        if !line.starts_with('|') {
            break;
        }
        let cells = cells(line);
        let name = quoted(cells[1]).next().expect("the crate's name");
        let below = match cells[2] {
            "all above" => all.keys().cloned().collect(),
            "" | "none of them" => BTreeSet::new(),
            list => list.split(", ").map(str::to_owned).collect(),
        };
        all.insert(name.to_owned(), below);
    }
    assert_eq!(all.len(), CRATES.len(), "{all:?}");
    all
}

/// The crates of ours in a section of a `Cargo.toml`.
fn own_dependencies(manifest: &str) -> BTreeSet<String> {
    let (_, section) = manifest
        .split_once("\n[dependencies]")
        .expect("every crate has dependencies");
    let section = section.split("\n[").next().unwrap_or_default();
    let names = section
        .lines()
        .filter_map(|line| line.split([' ', '.', '=']).next());
    names
        .filter(|name| CRATES.contains(name))
        .map(str::to_owned)
        .collect()
}

#[test]
fn crates_use_only_those_below_them() {
    for (name, allowed) in layers() {
        let used = own_dependencies(&read(&format!("{name}/Cargo.toml")));
        let wrong: Vec<_> = used.difference(&allowed).collect();
        assert!(wrong.is_empty(), "{name} uses {wrong:?}");
    }
}

/// What is public and named nowhere else is dead; the compiler cannot tell that of public names.
#[test]
fn nothing_public_is_named_only_once() {
    let texts: Vec<(String, String)> = rust_files()
        .into_iter()
        .map(|path| (read(&path), path))
        .collect();
    let mut uses: HashMap<&str, usize> = HashMap::new();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for (text, _) in &texts {
        for word in text.split(|c| !is_word(c)) {
            *uses.entry(word).or_default() += 1;
        }
    }
    let mut dead = Vec::new();
    for (text, path) in texts.iter().filter(|(_, path)| path.contains("/src/")) {
        for line in text.lines().map(str::trim) {
            let Some(rest) = line.strip_prefix("pub ") else {
                continue;
            };
            let mut words = rest.split(|c| !is_word(c));
            let kinds = ["fn", "struct", "enum", "static", "trait", "type", "mod"];
            let kind = words.find(|word| *word != "const" && *word != "unsafe" && *word != "async");
            let name = match kind {
                Some(kind) if kinds.contains(&kind) => words.next(),
                _ => rest
                    .strip_prefix("const ")
                    .and_then(|rest| rest.split(':').next()),
            };
            if let Some(name) = name.filter(|name| uses.get(name) == Some(&1)) {
                dead.push(format!("{path}: {name}"));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

/// The paths in the tables of ARCHITECTURE.md, with the files and folders that they name. A path counts from the root, from the crate
/// that the section is about or its `src`, or from the folders of a path before it in the same line.
fn named_paths(page: &str) -> Vec<(String, Option<PathBuf>)> {
    let mut section: Option<&str> = None;
    let mut found = Vec::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            section = heading.split([':', ',']).next();
        } else if line.starts_with("## ") {
            section = None;
        }
        if !line.starts_with('|') {
            continue;
        }
        let mut places = vec![PathBuf::new()];
        if let Some(name) = section {
            places.extend([PathBuf::from(name), Path::new(name).join("src")]);
        }
        for word in quoted(line).filter(|word| is_path(word)) {
            let named = places.iter().map(|place| place.join(word));
            let there = named.into_iter().find(|path| root().join(path).exists());
            if let Some(path) = &there {
                let folders = path.ancestors().skip(usize::from(!word.ends_with('/')));
                places.extend(folders.map(Path::to_path_buf).collect::<Vec<_>>());
            }
            found.push((word.to_owned(), there));
        }
    }
    found
}

fn is_path(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    let endings = [".rs", ".c", ".h", ".S", ".js", ".py", ".md", "/"];
    word.chars().all(is_plain)
        && !word.contains("NAME")
        && endings.iter().any(|ending| word.ends_with(ending))
}

#[test]
fn every_path_that_the_architecture_names_exists() {
    let paths = named_paths(&read("ARCHITECTURE.md"));
    assert!(paths.len() > 100, "{paths:?}");
    let missing: Vec<_> = paths.iter().filter(|(_, there)| there.is_none()).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn unsafe_is_where_the_architecture_says() {
    let page = read("ARCHITECTURE.md");
    let (_, section) = page
        .split_once("## Where `unsafe` is")
        .expect("the page says where unsafe is");
    let section = section.split("\n## ").next().unwrap_or_default();
    let firsts: String = section
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| format!("| {} |\n", cells(line)[0]))
        .collect();
    let named: BTreeSet<String> = named_paths(&firsts)
        .into_iter()
        .filter_map(|(_, path)| Some(path?.to_string_lossy().into_owned()))
        .collect();
    let words = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"];
    let own = Path::new(file!()).file_name().expect("a file has a name");
    let found: BTreeSet<String> = rust_files()
        .into_iter()
        .filter(|path| !Path::new(path).ends_with(own))
        .filter(|path| {
            let text = read(path);
            words.iter().any(|word| text.contains(word))
        })
        .collect();
    let unnamed: Vec<_> = found.difference(&named).collect();
    let gone: Vec<_> = named.difference(&found).collect();
    assert!(
        unnamed.is_empty() && gone.is_empty(),
        "unsafe and not named: {unnamed:#?}; named and not unsafe: {gone:#?}"
    );
}

#[test]
fn every_test_that_is_known_to_be_flaky_has_a_cause() {
    let list = read(".ci/flaky");
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let cause = line.split_once(": ").map(|(_, cause)| cause.trim());
        assert!(
            cause.is_some_and(|cause| !cause.is_empty() && !cause.starts_with('?')),
            "say what is known of the cause: {line}"
        );
    }
}
