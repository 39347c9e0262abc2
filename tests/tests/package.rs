//! Goal: the Debian package has what it should, and its program runs where nothing else is installed. Method: the list in
//! `repl/Cargo.toml` is packed with the tested program, stripped, and looked at with Debian's own tools; the program is started with no
//! libraries but those on which the package depends. `packaging/check` builds the real package and installs it on a bare Debian 12.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use e2e::{Hindsight, Program, Scratch, Status, workspace_dir};

/// Libraries of libc6 and libgcc-s1, which every Debian system has.
const LIBRARIES: [&str; 4] = [
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libgcc_s.so.1",
    "libm.so.6",
];
/// The C library of Debian 12.
const GLIBC: (u32, u32) = (2, 36);
/// Where Debian 12 has libraries.
const FOLDERS: [&str; 3] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
];

/// One line of the package's list: files, and the folder or the name that they get.
struct Asset {
    from: String,
    to: String,
}

fn manifest() -> String {
    let path = workspace_dir().join("repl/Cargo.toml");
    std::fs::read_to_string(path).expect("the manifest")
}

/// The list that `cargo deb` packs.
fn assets() -> Vec<Asset> {
    let manifest = manifest();
    let (_, list) = manifest.split_once("\nassets = [\n").expect("a list");
    let (list, _) = list.split_once("\n]").expect("its end");
    let lines = list.lines().map(|line| {
        let parts: Vec<String> =
            serde_json::from_str(line.trim().trim_end_matches(',')).expect("a list of texts");
        let [from, to, _mode]: [String; 3] = parts.try_into().expect("from, to and rights");
        Asset { from, to }
    });
    lines.collect()
}

impl Asset {
    /// The files that are meant.
    fn files(&self) -> Vec<PathBuf> {
        if self.from.starts_with("target/") {
            return vec![Hindsight::path().to_owned()];
        }
        let pattern = workspace_dir().join("repl").join(&self.from);
        let Some(ending) = self
            .from
            .rsplit('/')
            .next()
            .and_then(|name| name.strip_prefix('*'))
        else {
            return vec![pattern];
        };
        let folder = pattern.parent().expect("a folder");
        let entries = std::fs::read_dir(folder).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths
            .filter(|path| path.to_string_lossy().ends_with(ending))
            .collect()
    }

    fn is_program(&self) -> bool {
        self.to == "usr/bin/"
    }
}

fn run(tool: &str, folder: &Path, words: &[&str]) -> String {
    let ended = Program::new(format!("/usr/bin/{tool}"), folder)
        .args(words)
        .run();
    assert_eq!(ended.status, Status::Code(0), "{tool}: {}", ended.errors());
    ended.text()
}

/// Lays the files out as in the package, the program stripped.
fn lay_out(root: &Path) {
    for asset in assets() {
        let files = asset.files();
        assert!(!files.is_empty(), "{} names no file", asset.from);
        for file in files {
            let name = file.file_name().expect("a name");
            let place = match asset.to.ends_with('/') {
                true => root.join(&asset.to).join(name),
                false => root.join(&asset.to),
            };
            std::fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
            let path = |path: &Path| path.to_str().expect("text").to_owned();
            match asset.is_program() {
                true => {
                    let place = path(&root.join("usr/bin/hindsight"));
                    run("strip", root, &["-o", &place, &path(&file)]);
                }
                false => {
                    std::fs::copy(&file, &place).expect("the file of the list");
                }
            }
        }
    }
}

/// Packs a folder, and returns the names of what Debian's tool finds in the package.
fn packed(scratch: &Scratch, root: &Path) -> BTreeSet<String> {
    let control = root.join("DEBIAN");
    std::fs::create_dir_all(&control).expect("a folder");
    let text = "Package: hindsight\nVersion: 0.1.0\nArchitecture: amd64\nMaintainer: nobody <a@b>\nDescription: a test\n";
    std::fs::write(control.join("control"), text).expect("a file");
    let root = root.to_str().expect("text");
    let pack = ["--root-owner-group", "-Znone", "-b", root, "hindsight.deb"];
    run("dpkg-deb", scratch.path(), &pack);
    let listed = run("dpkg-deb", scratch.path(), &["-c", "hindsight.deb"]);
    let names = listed.lines().filter_map(|line| line.rsplit_once(" ./"));
    names.map(|(_, name)| name.to_owned()).collect()
}

#[test]
fn the_package_has_the_program_its_pages_and_its_completions() {
    let scratch = Scratch::new("package");
    let root = scratch.join("root");
    lay_out(&root);
    let names = packed(&scratch, &root);
    for name in [
        "usr/bin/hindsight",
        "usr/share/man/man1/hindsight.1",
        "usr/share/man/man1/hindsight-record.1",
        "usr/share/man/man1/hindsight-sql.1",
        "usr/share/bash-completion/completions/hindsight",
        "usr/share/zsh/vendor-completions/_hindsight",
        "usr/share/fish/vendor_completions.d/hindsight.fish",
        "usr/share/doc/hindsight/README.md",
        "usr/share/doc/hindsight/docs/install.md",
        "usr/share/doc/hindsight/docs/gdb.md",
    ] {
        assert!(
            names.contains(name),
            "{name} is not in the package: {names:?}"
        );
    }
    let pages = names
        .iter()
        .filter(|name| name.starts_with("usr/share/man/man1/hindsight-"));
    let help = Hindsight::command(&scratch, &["help"]).run().text();
    let is_command = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let commands = help.lines().filter(is_command).count();
    assert!(pages.count() > 40 && commands > 40, "{names:?}");
    // Its line tables lie beside it, where debuggers look for them.
    assert!(manifest().contains("\nseparate-debug-symbols = true\n"));
    let profiles =
        std::fs::read_to_string(workspace_dir().join("Cargo.toml")).expect("the manifest");
    assert!(
        profiles.contains("[profile.deb]\ninherits = \"release\"\ndebug = \"line-tables-only\"\n")
    );
}

#[test]
fn the_program_needs_nothing_that_a_bare_debian_lacks() {
    let scratch = Scratch::new("package-bare");
    let root = scratch.join("root");
    lay_out(&root);
    let program = root.join("usr/bin/hindsight");
    let path = program.to_str().expect("text");
    let sections = run("readelf", scratch.path(), &["-SW", path]);
    assert!(
        sections.contains(" .text ") && !sections.contains(" .symtab "),
        "{sections}"
    );
    let needed = run("readelf", scratch.path(), &["-dW", path]);
    let needed = needed.lines().filter(|line| line.contains("(NEEDED)"));
    let needed: BTreeSet<&str> = needed
        .filter_map(|line| line.split_once('[')?.1.strip_suffix(']'))
        .collect();
    assert!(needed.contains("libc.so.6"), "{needed:?}");
    for library in &needed {
        assert!(
            LIBRARIES.contains(library),
            "{library} is of another package"
        );
    }
    let versions = run("readelf", scratch.path(), &["-VW", path]);
    let versions = versions.split("GLIBC_").skip(1).filter_map(|text| {
        let number = text
            .split(|c: char| !c.is_ascii_digit() && c != '.')
            .next()?;
        let (first, second) = number.split_once('.')?;
        Some((first.parse().ok()?, second.split('.').next()?.parse().ok()?))
    });
    let newest: (u32, u32) = versions.max().expect("a version");
    assert!(newest <= GLIBC, "it needs glibc {newest:?}");
    // It runs with these libraries alone.
    let bare = scratch.join("bare");
    std::fs::create_dir(&bare).expect("a folder");
    for library in LIBRARIES {
        let mut places = FOLDERS.iter().map(|folder| Path::new(folder).join(library));
        let found = places.find(|path| path.is_file()).expect(library);
        std::fs::copy(found, bare.join(library)).expect("a library");
    }
    let libraries = bare.to_str().expect("text");
    for words in [
        &["--version"][..],
        &["sql", "--help"],
        &["completions", "fish"],
    ] {
        let ended = Program::new(bare.join(LIBRARIES[0]), scratch.path())
            .args(["--inhibit-cache", "--library-path", libraries, path])
            .args(words)
            .run();
        assert_eq!(
            ended.status,
            Status::Code(0),
            "{words:?}: {}",
            ended.errors()
        );
        assert!(!ended.text().is_empty(), "{words:?}");
    }
}
