//! Goal: what a shell completes comes from the session that runs, and names of all kinds are completed. Method: a daemon, and the
//! program asked as bash's script asks it; the script itself, with words split as bash splits them.

use e2e::{Hindsight, Live, Program, Scratch, Status, compiled, fixture_artifact};

/// The words that are offered for the last of these.
fn offered(live: &Live, words: &[&str]) -> Vec<String> {
    let line = [&["--", "hindsight"], words].concat();
    let ended = live
        .command(&line)
        .env("COMPLETE", "bash")
        .env("_CLAP_IFS", "\n")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("_CLAP_COMPLETE_COMP_TYPE", "9")
        .env("_CLAP_COMPLETE_SPACE", "false")
        .run();
    let text = ended.text();
    let words = text.lines().map(str::trim);
    let words = words.filter(|word| !word.is_empty() && !word.starts_with('-'));
    words.map(str::to_owned).collect()
}

#[test]
fn numbers_of_breakpoints_are_offered() {
    let program = fixture_artifact("control", "control_O0_fixed");
    let options = ["--break", "leaf", "--break", "middle"];
    let live = Live::started("completion", &options, &program, &[]);
    for word in ["delete", "disable", "d"] {
        assert_eq!(offered(&live, &[word, ""]), ["1", "2"], "{word}");
    }
    live.ask(&["break", "remove", "1"]);
    assert_eq!(offered(&live, &["delete", ""]), ["2"]);
}

const SHOP: &str = "namespace shop {
__attribute__((noinline)) int price(int n) { asm(\"\"); return n * 3; }
__attribute__((noinline)) int tax(int n) { asm(\"\"); return n + 1; }
}
struct Coin {
    int n;
    __attribute__((noinline)) operator unsigned int() const { asm(\"\"); return n; }
};
int main() { return shop::price(2) - shop::tax(5) + unsigned(Coin{0}); }
";

/// What the script of bash inserts for the last of these words.
fn inserted(scratch: &Scratch, words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let script = format!(
        "hindsight() {{ \"$PROGRAM\" \"$@\"; }}
         source <(hindsight completions bash)
         COMP_WORDS=({}) COMP_CWORD={} COMP_TYPE=9
         \"$(complete -p hindsight | sed 's/.*-F \\([^ ]*\\).*/\\1/')\" hindsight
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        words.len() - 1
    );
    let ended = Program::new("/bin/bash", scratch.path())
        .args(["-c", &script])
        .env("PROGRAM", Hindsight::path())
        .run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let text = ended.text();
    let words = text.lines().map(str::trim_end);
    let words = words.filter(|word| !word.is_empty() && !word.starts_with('-'));
    words.map(str::to_owned).collect()
}

/// Bash splits words at colons and equals signs, and inserts what it is given as it is.
#[test]
fn names_with_colons_and_spaces_are_completed_in_bash() {
    let scratch = Scratch::new("completion-bash");
    let program = compiled(&scratch, "shop.cc", SHOP, &["-g", "-O0"]);
    let program = Program::new(program, scratch.path());
    for name in ["orders", "my run"] {
        Hindsight::recorded(&scratch, name, &[], &program);
    }
    for (words, expected) in [
        (
            &["hindsight", "report", "orders", "sho"][..],
            &["shop::price", "shop::tax"][..],
        ),
        (
            &["hindsight", "report", "orders", "shop", "::"],
            &["price", "tax"],
        ),
        (
            &["hindsight", "report", "orders", "shop", "::", "pr"],
            &["price"],
        ),
        (
            &["hindsight", "report", "orders", "'shop::pr"],
            &["shop::price"],
        ),
        (
            &["hindsight", "report", "orders", "Co"],
            &["Coin::operator\\ unsigned\\ int"],
        ),
        (
            &["hindsight", "report", "orders", "'Coin::operator u"],
            &["Coin::operator unsigned int"],
        ),
        (
            &[
                "hindsight",
                "report",
                "orders",
                "Coin",
                "::",
                "operator\\\\ u",
            ],
            &["operator\\ unsigned\\ int"],
        ),
        (&["hindsight", "report", "'my run'", "mai"], &["main"]),
        (&["hindsight", "report", "my\\\\ run", "mai"], &["main"]),
        (&["hindsight", "info", "my"], &["my\\ run"]),
        (&["hindsight", "info", "'my"], &["my run"]),
        (
            &["hindsight", "sql", "orders", "'select * from cal"],
            &["select * from calls"],
        ),
        (
            &["hindsight", "sql", "orders", "'select count(*) from backtr"],
            &["select count(*) from backtrace("],
        ),
        (&["hindsight", "sql", "ord"], &["orders"]),
        (&["hindsight", "--color", "=", "al"], &["always"]),
        (&["hindsight", "overv"], &["overview"]),
    ] {
        assert_eq!(inserted(&scratch, words), expected, "{words:?}");
    }
}
