//! Goal: the repository keeps its own rules, as far as a program can check. Method: its files are read. The names in
//! ARCHITECTURE.md and the other pages are compared with the tree.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// The folders of the crates.
const CRATES: [&str; 14] = [
    "agent",
    "store",
    "exact",
    "debuginfo",
    "values",
    "expr",
    "recorder",
    "replay",
    "query",
    "query/rust",
    "server",
    "gateway",
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

/// Every file in a folder with one of these endings, as a path from the root.
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
    let found = files_of(endings);
    assert!(found.len() > 10, "{endings:?}: {found:?}");
    found
}

/// The same where there may be few.
fn files_of(endings: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for name in CRATES {
        files_below(&root().join(name), endings, &mut found);
    }
    found.sort();
    // One crate lies in the folder of another.
    found.dedup();
    found
}

/// The Rust files of the crates, without programs that tests compile.
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

/// The beginnings of a file that says in a comment what it is, by the endings of names.
const HEADS: [(&str, &[&str]); 7] = [
    (".c", &["//", "/*"]),
    (".h", &["//", "/*"]),
    (".cc", &["//", "/*"]),
    (".cpp", &["//", "/*"]),
    (".js", &["//", "/*"]),
    (".S", &["//", "/*", "# "]),
    (".py", &["\"\"\"", "# "]),
];

#[test]
fn every_file_of_another_language_begins_with_what_it_is() {
    let mut wrong = Vec::new();
    for (ending, heads) in HEADS {
        for path in files_of(&[ending]) {
            let text = read(&path);
            let is_for_a_shell = text.starts_with("#!");
            let first = text.lines().nth(usize::from(is_for_a_shell));
            let first = first.unwrap_or_default();
            if !heads.iter().any(|head| first.starts_with(head)) {
                wrong.push(path);
            }
        }
    }
    assert!(wrong.is_empty(), "without a comment at the top: {wrong:#?}");
}

/// The next step is separate data, and is never parsed from the message: a name in the message may contain a semicolon
/// too.
#[test]
fn no_source_cuts_a_text_at_a_semicolon() {
    let cuts = |text: &str| {
        text.split("split").skip(1).any(|rest| {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '_');
            let argument = rest.strip_prefix('(').map(str::trim_start);
            argument.is_some_and(|argument| argument.starts_with("\"; \""))
        })
    };
    assert!(cuts(concat!("text.rsplit_", "once(\"; \")")));
    let sources = rust_files().into_iter();
    let wrong: Vec<String> = sources
        .filter(|path| path.contains("/src/") && cuts(&read(path)))
        .collect();
    assert!(wrong.is_empty(), "texts are cut at \"; \": {wrong:#?}");
}

/// They panic if stdout is full or its reader has gone, and what was asked is left half done. `output::line` returns that,
/// and `output::Told` keeps it until the end.
#[test]
fn the_commands_print_nothing_that_can_panic() {
    let prints = |text: &str| {
        ["print!(", "println!("].iter().any(|name| {
            let mut found = text.match_indices(name);
            found.any(|(at, _)| !text[..at].ends_with(char::is_alphabetic))
        })
    };
    assert!(prints("println!(\"x\")") && !prints("eprintln!(\"x\")"));
    let sources = rust_files().into_iter();
    let wrong: Vec<String> = sources
        .filter(|path| path.starts_with("repl/src/") && prints(&read(path)))
        .collect();
    assert!(wrong.is_empty(), "they print to stdout: {wrong:#?}");
}

/// Tests may contain any text in strings; the compiler checks names (`non_ascii_idents`).
#[test]
fn comments_and_code_are_ascii() {
    let mut wrong = Vec::new();
    for path in files(&[".rs", ".c", ".h", ".S", ".js", ".py", ".toml"]) {
        let mut is_in_tests = path.contains("/tests/");
        for (number, line) in read(&path).lines().enumerate() {
            is_in_tests |= line == "#[cfg(test)]";
            let is_comment = ["//", "#", "/*", " *"]
                .iter()
                .any(|sign| line.trim_start().starts_with(sign.trim_start()));
            if (is_comment || !is_in_tests) && !line.is_ascii() {
                wrong.push(format!("{path}:{}: {line}", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A row of the table of layers.
struct Row {
    /// The number of the layer; none if it uses no crate.
    layer: Option<u32>,
    crate_name: String,
    may_use: BTreeSet<String>,
    heavy: BTreeSet<String>,
}

/// The table of layers.
fn layers() -> Vec<Row> {
    let page = read("ARCHITECTURE.md");
    let (_, section) = page.split_once("## Layers").expect("the page has layers");
    let mut all: Vec<Row> = Vec::new();
    for line in section.lines().skip_while(|line| !line.starts_with("| 0")) {
        if !line.starts_with('|') {
            break;
        }
        let cells = cells(line);
        let may_use = match cells[2] {
            "all above" => all.iter().map(|row| row.crate_name.clone()).collect(),
            "" | "none of them" => BTreeSet::new(),
            list => list.split(", ").map(str::to_owned).collect(),
        };
        all.push(Row {
            layer: cells[0].parse().ok(),
            crate_name: quoted(cells[1]).next().expect("a name").to_owned(),
            may_use,
            heavy: quoted(cells[3]).map(str::to_owned).collect(),
        });
    }
    assert_eq!(all.len(), CRATES.len(), "a row for each crate");
    all
}

/// The dependencies of the product in a `Cargo.toml`.
fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest = read(&format!("{name}/Cargo.toml"));
    let (_, section) = manifest
        .split_once("\n[dependencies]")
        .expect("every crate has dependencies");
    let section = section.split("\n[").next().unwrap_or_default();
    let names = section
        .lines()
        .filter_map(|line| line.split([' ', '.', '=']).next());
    names.map(str::to_owned).collect()
}

#[test]
fn crates_use_only_those_below_them() {
    let rows = layers();
    for row in &rows {
        let used = dependencies(&row.crate_name);
        let ours = used.iter().filter(|name| CRATES.contains(&name.as_str()));
        let wrong: Vec<_> = ours.filter(|name| !row.may_use.contains(*name)).collect();
        assert!(wrong.is_empty(), "{} uses {wrong:?}", row.crate_name);
        for other in rows.iter().filter(|o| row.may_use.contains(&o.crate_name)) {
            assert!(
                other.layer < row.layer,
                "{} is not above {}",
                row.crate_name,
                other.crate_name
            );
        }
    }
}

#[test]
fn heavy_dependencies_are_where_the_layers_say() {
    let rows = layers();
    let heavy: BTreeSet<String> = rows.iter().flat_map(|row| row.heavy.clone()).collect();
    for row in &rows {
        let used = dependencies(&row.crate_name);
        let used: BTreeSet<String> = used.intersection(&heavy).cloned().collect();
        assert_eq!(used, row.heavy, "{}", row.crate_name);
    }
}

/// A public name that occurs nowhere else is dead; the compiler does not detect that for public names.
#[test]
fn nothing_public_is_named_only_once() {
    let texts: Vec<(String, String)> = rust_files()
        .into_iter()
        .map(|path| (read(&path), path))
        .collect();
    let mut uses: HashMap<&str, usize> = HashMap::new();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let code = |line: &&str| !line.trim_start().starts_with("//");
    for line in texts.iter().flat_map(|(text, _)| text.lines()).filter(code) {
        for word in line.split(|c| !is_word(c)) {
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

/// The lines of a page that are not in blocks of code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The paths in ARCHITECTURE.md, with the files and folders that they refer to. A path is relative to the root, to a folder of the
/// path before it in the same line, or to the crate of the section or its `src`.
fn named_paths<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<(String, Option<PathBuf>)> {
    let mut section: Vec<PathBuf> = Vec::new();
    let mut found = Vec::new();
    for line in lines {
        if line.starts_with('#') {
            let name = line.strip_prefix("### ").map(|rest| {
                let name = rest.split(':').next().unwrap_or(rest);
                vec![PathBuf::from(name), Path::new(name).join("src")]
            });
            section = name.unwrap_or_default();
        }
        let mut before: Vec<PathBuf> = Vec::new();
        for word in quoted(line).filter(|word| is_path(word)) {
            let places = [PathBuf::new()].into_iter();
            let mut named = places
                .chain(before.clone())
                .chain(section.clone())
                .map(|place| place.join(word));
            let there = named.find(|path| root().join(path).exists());
            if let Some(path) = &there {
                let folders = path.ancestors().skip(usize::from(!word.ends_with('/')));
                before = folders.map(Path::to_path_buf).collect();
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
    let paths = named_paths(prose(&read("ARCHITECTURE.md")));
    assert!(paths.len() > 100, "{paths:?}");
    let missing: Vec<_> = paths.iter().filter(|(_, there)| there.is_none()).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Anything beyond a map is in docs/decisions, docs/limits.md and the files themselves.
#[test]
fn the_architecture_is_a_map() {
    let len = read("ARCHITECTURE.md").len();
    assert!(len <= 12_000, "ARCHITECTURE.md has {len} bytes");
}

/// The kernel answers about, changes and resumes only a halted thread. The guards of stopped.rs make these requests; what belongs to
/// another process than the program has no thread there.
#[test]
fn requests_about_halted_threads_are_made_by_their_guards() {
    let requests = [
        "registers",
        "set_registers",
        "set_rip",
        "set_rax",
        "extended_state",
        "set_extended_state",
        "debug_register",
        "set_debug_register",
        "stop_info",
        "set_stop_info",
        "call_entered",
        "has_untold_trap",
        "cont",
        "cont_to_call",
        "step",
        "listen",
    ];
    let live = "recorder/src/live/";
    let of_others = ["family", "follow.rs", "tracee/children.rs"];
    let is_checked = |path: &&String| {
        let file = path.strip_prefix(live);
        file.is_some_and(|file| {
            file != "tracee/stopped.rs" && !of_others.iter().any(|other| file.starts_with(other))
        })
    };
    let files = rust_files();
    let checked: Vec<&String> = files.iter().filter(is_checked).collect();
    assert!(checked.len() > 50, "{checked:?}");
    let mut wrong = Vec::new();
    for path in checked {
        let text = read(path);
        let made = requests
            .iter()
            .filter(|request| text.contains(&format!("ptrace::{request}(")));
        wrong.extend(made.map(|request| format!("{path}: {request}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_folder_of_sources_is_on_the_map() {
    let paths = named_paths(prose(&read("ARCHITECTURE.md")));
    let named: BTreeSet<PathBuf> = paths.into_iter().filter_map(|(_, path)| path).collect();
    let of_crates = CRATES.iter().map(|name| format!("{name}/src"));
    let mut unnamed = Vec::new();
    for folder in of_crates.filter(|folder| folder != "tests/src") {
        for entry in fs::read_dir(root().join(&folder)).expect("crates have sources") {
            let entry = entry.expect("the folder can be read");
            let path = Path::new(&folder).join(entry.file_name());
            // Naming a module's file also covers its folder; folders of tests belong to the code that they test.
            let file = path.with_extension("rs");
            let has_sources = fs::read_dir(entry.path()).is_ok_and(|mut files| {
                files.any(|file| file.is_ok_and(|file| !file.file_name().eq("tests.rs")))
            });
            if has_sources && !named.contains(&path) && !named.contains(&file) {
                unnamed.push(path);
            }
        }
    }
    assert!(unnamed.is_empty(), "{unnamed:#?}");
}

/// The files that ARCHITECTURE.md lists as unsafe.
fn named_unsafe() -> BTreeSet<String> {
    let page = read("ARCHITECTURE.md");
    let (_, section) = page
        .split_once("## Where `unsafe` is")
        .expect("the page says where unsafe is");
    let section = section.split("\n## ").next().unwrap_or_default();
    let items = section.lines().filter(|line| line.starts_with("- "));
    named_paths(items)
        .into_iter()
        .filter_map(|(_, path)| Some(path?.to_string_lossy().into_owned()))
        .collect()
}

/// Whether a line has unsafe code.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default().trim_end();
    let words = ["{", "fn", "impl", "extern", "trait"];
    code.ends_with("unsafe")
        || code.contains("unsafe(")
        || words
            .iter()
            .any(|word| code.contains(&format!("unsafe {word}")))
}

#[test]
fn unsafe_is_where_the_architecture_says() {
    let named = named_unsafe();
    let own = Path::new(file!()).file_name().expect("a file has a name");
    let found: BTreeSet<String> = rust_files()
        .into_iter()
        .filter(|path| !Path::new(path).ends_with(own))
        .filter(|path| read(path).lines().any(is_unsafe))
        .collect();
    let unnamed: Vec<_> = found.difference(&named).collect();
    let gone: Vec<_> = named.difference(&found).collect();
    assert!(
        unnamed.is_empty() && gone.is_empty(),
        "unsafe and not named: {unnamed:#?}; named and not unsafe: {gone:#?}"
    );
}

#[test]
fn crates_without_unsafe_code_forbid_it() {
    let named = named_unsafe();
    for name in CRATES {
        if named
            .iter()
            .any(|path| path.starts_with(&format!("{name}/")))
        {
            continue;
        }
        let roots = ["lib.rs", "main.rs"].map(|file| root().join(name).join("src").join(file));
        let mut texts = roots
            .iter()
            .filter_map(|path| fs::read_to_string(path).ok());
        let forbids = texts.any(|text| text.contains("#![forbid(unsafe_code)]"));
        assert!(forbids, "{name} does not forbid unsafe code");
    }
}

/// The pages for people: those of the root and of docs.
fn pages() -> Vec<String> {
    let mut found = Vec::new();
    files_below(&root().join("docs"), &[".md"], &mut found);
    for entry in fs::read_dir(root()).expect("the root can be read") {
        let name = entry.expect("the root can be read").file_name();
        let name = name.to_string_lossy().into_owned();
        if name.ends_with(".md") {
            found.push(name);
        }
    }
    assert!(found.len() > 20, "{found:?}");
    found
}

/// A path of the repository in backquotes begins with one of its folders.
#[test]
fn every_path_that_a_page_names_exists() {
    let mut missing = Vec::new();
    for page in pages() {
        let text = read(&page);
        for line in prose(&text) {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
            let words = quoted(line).filter(|word| word.chars().all(is_plain));
            let of_ours = words.filter(|word| {
                let first = word.split_once('/').map(|(first, _)| first);
                let folders = ["docs", "fixtures", ".ci"];
                first.is_some_and(|first| CRATES.contains(&first) || folders.contains(&first))
            });
            let gone = of_ours.filter(|word| !word.contains("NAME") && !root().join(word).exists());
            missing.extend(gone.map(|word| format!("{page}: {word}")));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The anchors of the headings of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = prose(page).filter(|line| line.starts_with('#'));
    let slug = |line: &str| {
        let text = line.trim_start_matches('#').trim().to_lowercase();
        let kept = text
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(slug).collect()
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let mut broken = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = read(&page);
        let folder = root().join(&page);
        let folder = folder.parent().expect("a page lies in a folder");
        for line in prose(&text) {
            let targets = line.split("](").skip(1);
            let targets = targets.filter_map(|rest| rest.split(')').next());
            for target in targets.filter(|target| !target.contains("://")) {
                count += 1;
                let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
                let there = match file {
                    "" => root().join(&page),
                    file => folder.join(file),
                };
                let is_there = match anchor {
                    "" => there.exists(),
                    anchor => {
                        fs::read_to_string(there).is_ok_and(|text| anchors(&text).contains(anchor))
                    }
                };
                if !is_there {
                    broken.push(format!("{page}: {target}"));
                }
            }
        }
    }
    assert!(count > 50, "{count} links");
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_decision_is_whole_and_in_the_index() {
    let index = read("docs/decisions/README.md");
    let mut found = Vec::new();
    files_below(&root().join("docs/decisions"), &[".md"], &mut found);
    found.retain(|path| !path.ends_with("README.md"));
    found.sort();
    for (at, path) in found.iter().enumerate() {
        let (_, name) = path.rsplit_once('/').expect("it lies in a folder");
        let number = at + 1;
        assert!(name.starts_with(&format!("{number:04}-")), "{path}");
        let text = read(path);
        let title = text.lines().next().and_then(|line| line.strip_prefix("# "));
        let title = title.expect("a page begins with its title");
        assert!(title.starts_with(&format!("{number}. ")), "{path}: {title}");
        let line = format!("- [{title}]({name})");
        assert!(index.lines().any(|l| l == line), "the index lacks {line}");
        for part in ["## Context", "## Decision", "## Consequences"] {
            assert!(text.lines().any(|l| l == part), "{path} lacks {part}");
        }
    }
    let links = index.lines().filter(|line| line.starts_with("- ["));
    assert_eq!(links.count(), found.len(), "the index has each page once");
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

/// Product code of a file: without comments, without the tests at its end, and without what is declared for tests in a line.
fn product(text: &str) -> impl Iterator<Item = &str> {
    let mut lines = text.lines();
    std::iter::from_fn(move || {
        let line = lines.next()?;
        if line.trim() != "#[cfg(test)]" {
            return Some(line);
        }
        let declared = lines.next()?;
        declared.trim_end().ends_with(';').then_some("")
    })
    .filter(|line| !line.trim_start().starts_with("//"))
}

#[test]
fn what_follows_a_module_of_tests_in_another_file_is_product_code() {
    let text = "mod a;\n#[cfg(test)]\nmod tests;\n// why\nstruct B;\n#[cfg(test)]\nmod more {\n    fn c() {}\n}\n";
    let lines: Vec<&str> = product(text).collect();
    assert_eq!(lines, ["mod a;", "", "struct B;"]);
}

fn product_files() -> impl Iterator<Item = String> {
    let files = rust_files().into_iter();
    files.filter(|path| path.contains("/src/") && !path.starts_with("tests/"))
}

/// Returns the words after `hindsight` in a line, where it is the name of the binary.
fn commands_in(line: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_ascii_lowercase() || c == '-';
    line.match_indices("hindsight ")
        .filter_map(move |(at, name)| {
            let is_name = |c: char| !c.is_ascii_alphanumeric() && !"./=-_".contains(c);
            if !line[..at].chars().next_back().is_none_or(is_name) {
                return None;
            }
            let rest = &line[at + name.len()..];
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            Some(&rest[..end]).filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()))
        })
}

/// A hint that names a command which does not exist leads nowhere. The pages of the manual are those of all commands.
#[test]
fn every_command_that_a_text_names_exists() {
    let mut manual = Vec::new();
    files_below(&root().join("packaging/man"), &[".1"], &mut manual);
    let page = |path: &String| {
        let (_, name) = path.rsplit_once("/hindsight-")?;
        Some(name.strip_suffix(".1")?.to_owned())
    };
    let mut known: BTreeSet<String> = manual.iter().filter_map(page).collect();
    assert!(
        known.contains("record") && known.contains("print"),
        "{known:?}"
    );
    known.insert("help".to_owned());
    let (mut wrong, mut named) = (Vec::new(), 0);
    for path in product_files() {
        let text = read(&path);
        for line in product(&text) {
            for word in commands_in(line) {
                named += 1;
                if !known.contains(word) {
                    wrong.push(format!("{path}: {}", line.trim()));
                }
            }
        }
    }
    assert!(named > 100, "{named} commands are named");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The most fields of a struct.
const MOST_FIELDS: usize = 14;

/// A struct that is read or written as a whole has the fields of its format: of JSON, of a command line, of memory that two processes
/// share, or of a table's columns.
fn has_fields_of_a_format(path: &str, attributes: &str) -> bool {
    let formats = ["Serialize", "Deserialize", "Args", "Parser", "repr(C)"];
    path.starts_with("store/src/columns/") || formats.iter().any(|word| attributes.contains(word))
}

/// Returns the structs of a file that have named fields, with the number of those and with the attributes.
fn structs(text: &str) -> Vec<(String, usize, String)> {
    let mut found: Vec<(String, usize, String)> = Vec::new();
    let (mut attributes, mut inside) = (String::new(), None);
    for line in product(text) {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if let Some(own) = inside {
            if indent == own && code.starts_with('}') {
                inside = None;
            } else if indent == own + 4 {
                let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let code = code.strip_prefix("pub").map_or(code, |rest| {
                    let rest = rest.trim_start();
                    match rest.strip_prefix('(') {
                        Some(rest) => rest.split_once(") ").map_or(rest, |(_, rest)| rest),
                        None => rest,
                    }
                });
                let is_field = code
                    .split_once(':')
                    .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(is_word));
                if let Some(last) = found.last_mut() {
                    last.1 += usize::from(is_field);
                }
            }
        } else if code.ends_with('{') && code.split(' ').any(|word| word == "struct") {
            let mut words = code.split(' ').skip_while(|word| *word != "struct");
            let name = words.nth(1).unwrap_or_default().to_owned();
            found.push((name, 0, std::mem::take(&mut attributes)));
            inside = Some(indent);
        } else if code.starts_with("#[") {
            attributes += code;
        } else if code.ends_with([';', '}', '{']) {
            attributes.clear();
        }
    }
    found
}

#[test]
fn no_struct_has_many_fields() {
    let sample = "#[derive(Args)]\npub struct A {\n    pub(crate) a: u8,\n    #[arg(long)]\n    b: Vec<u8>,\n}\nfn f() {}\nstruct B<T> {\n    c: T,\n}\n";
    let found = structs(sample);
    let expected = [("A", 2, "#[derive(Args)]"), ("B<T>", 1, "")];
    let expected =
        expected.map(|(name, fields, attributes)| (name.into(), fields, attributes.into()));
    assert_eq!(found, expected);
    let (mut large, mut all) = (Vec::new(), 0);
    for path in product_files() {
        for (name, fields, attributes) in structs(&read(&path)) {
            all += 1;
            if fields > MOST_FIELDS && !has_fields_of_a_format(&path, &attributes) {
                large.push(format!("{path}: {name} has {fields}"));
            }
        }
    }
    assert!(all > 1000, "{all} structs");
    assert!(large.is_empty(), "{large:#?}");
}
