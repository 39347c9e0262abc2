//! What a shell sees of the command line: completion in bash, manual pages, colour, and help in groups.

mod common;

use std::process::Command;

use common::{Folder, binary};

/// Runs bash with the completion script and returns its candidates for the last of `words`.
fn offered(folder: &Folder, words: &[&str]) -> Vec<String> {
    let program = binary();
    let bin = std::path::Path::new(&program).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "source <(hindsight completions bash)\n\
         COMP_WORDS=({}); COMP_CWORD={}; COMP_TYPE=9\n\
         \"$(complete -p hindsight | sed 's/.*-F \\([^ ]*\\).*/\\1/')\" hindsight \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        words.len() - 1
    );
    let mut bash = Command::new("bash");
    folder.at_home(&mut bash);
    bash.args(["-c", &script]).env("PATH", path);
    let output = bash
        .env("XDG_RUNTIME_DIR", folder.path("run"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

#[test]
fn bash_completes_commands_options_and_recordings() {
    let folder = Folder::empty();
    for name in ["orders.hindsight", "other", "yard.hindsight"] {
        std::fs::create_dir(folder.path(name)).unwrap();
    }
    assert_eq!(offered(&folder, &["hindsight", "overv"]), ["overview"]);
    assert_eq!(
        offered(&folder, &["hindsight", "overview", "o"]),
        ["orders", "other/"]
    );
    assert_eq!(offered(&folder, &["hindsight", "sql", "y"]), ["yard"]);
    let options = offered(&folder, &["hindsight", "record", "--snap"]);
    assert!(
        options
            .iter()
            .any(|option| option.starts_with("--snapshot")),
        "{options:?}"
    );
    // No daemon runs: there are no candidates and no messages.
    let words = offered(&folder, &["hindsight", "break", "re"]);
    assert_eq!(words, ["remove"]);
    // gdb's words become ours when a line is run.
    assert_eq!(offered(&folder, &["hindsight", "info", "lo"]), ["locals"]);
    assert_eq!(offered(&folder, &["hindsight", "info", "y"]), ["yard"]);
    for word in ["delete", "disable", "d"] {
        let words = offered(&folder, &["hindsight", word, ""]);
        assert!(words.iter().all(|word| word.starts_with('-')), "{words:?}");
    }
}

#[test]
fn bash_completes_functions_of_the_recording_before() {
    let folder = Folder::with_frozen(&["orders"]);
    let words = offered(&folder, &["hindsight", "report", "orders", ""]);
    let functions = words.iter().filter(|word| !word.starts_with('-'));
    assert_eq!(
        functions.collect::<Vec<_>>(),
        [
            "closing", "evening", "main", "ordered", "price", "say", "settle"
        ]
    );
    assert_eq!(
        offered(&folder, &["hindsight", "report", "orders", "pr"]),
        ["price"]
    );
}

#[test]
fn each_command_has_a_manual_page_that_groff_reads() {
    let folder = Folder::empty();
    let pages = folder.path("man1");
    let status = folder.command(&["man", "--to", "man1"]).status().unwrap();
    assert!(status.success());
    let page = std::fs::read_to_string(pages.join("hindsight-record.1")).unwrap();
    assert!(
        page.contains(".SH SYNOPSIS") && page.contains("hindsight record"),
        "{page}"
    );
    let help = folder.command(&["--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let commands = help.lines().filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty()
            && !name.starts_with('-')
            && line.len() > 20
            && line.as_bytes()[19] == b' ')
            .then_some(name)
    });
    let mut known = 0;
    for name in commands.filter(|name| pages.join(format!("hindsight-{name}.1")).exists()) {
        known += 1;
        let page = std::fs::read_to_string(pages.join(format!("hindsight-{name}.1"))).unwrap();
        assert!(page.contains(".SH NAME"), "{name}");
    }
    assert!(known > 50, "{known} pages");
}

#[test]
fn colour_is_as_it_was_chosen() {
    let folder = Folder::empty();
    let stderr = |words: &[&str]| {
        let output = folder.command(words).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(stderr(&["--color", "always", "info", "none"]).contains("\x1b[1;31merror"));
    assert!(stderr(&["info", "none", "--color=always"]).contains("\x1b[1;31merror"));
    assert!(!stderr(&["info", "none", "--color=never"]).contains('\x1b'));
    assert!(!stderr(&["info", "none"]).contains('\x1b'));
    assert!(
        stderr(&["--color", "perhaps", "info", "none"])
            .contains("possible values: auto, always, never")
    );
    // Tables in a pipe.
    let app = Folder::with_app();
    let answer = |choice| app.transcript(&["--color", choice, "sql", "app", "select 1 as a"]);
    assert_eq!(
        answer("always"),
        "\x1b[2m \x1b[0m\x1b[1ma\x1b[0m\n\x1b[2m---\x1b[0m\n\x1b[2m \x1b[0m1\n"
    );
    assert_eq!(answer("auto"), " a\n---\n 1\n");
    let list = |choice| app.transcript(&["--color", choice, "ls"]);
    assert!(list("always").contains("\x1b[1mrecording\x1b[0m"));
    assert!(!list("auto").contains('\x1b'));
    // The program that is recorded has options of its own.
    assert!(stderr(&["--color=always", "why", "none", "1"]).contains('\x1b'));
}

/// `cargo deb` packs them; new ones: `hindsight man --to packaging/man`, `hindsight completions SHELL`.
#[test]
fn packaged_pages_and_completions_are_those_of_this_program() {
    let folder = Folder::empty();
    let packaging = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging");
    let told = folder.transcript(&["man", "--to", "man"]);
    assert!(
        told.is_empty() || told.ends_with("--- exit code 0\n"),
        "{told}"
    );
    let names = |dir: &std::path::Path| {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let (made, packed) = (folder.path("man"), packaging.join("man"));
    assert_eq!(names(&made), names(&packed));
    for name in names(&made) {
        let page = std::fs::read_to_string(made.join(&name)).unwrap();
        let known = std::fs::read_to_string(packed.join(&name)).unwrap();
        assert!(
            page == known,
            "packaging/man/{name} is not what the program writes"
        );
    }
    for (shell, file) in [
        ("bash", "hindsight.bash"),
        ("zsh", "_hindsight"),
        ("fish", "hindsight.fish"),
    ] {
        let told = folder.transcript(&["completions", shell]);
        let known = std::fs::read_to_string(packaging.join("completions").join(file)).unwrap();
        assert!(
            told.starts_with(known.trim_end()),
            "packaging/completions/{file}: {told}"
        );
    }
}
