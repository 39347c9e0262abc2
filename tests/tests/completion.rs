//! Goal: what a shell completes comes from the session that runs. Method: a daemon, and the program asked as bash's script asks it.

use e2e::{Live, fixture_artifact};

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
