//! Commands of gdb that have another name here, for hints. `spelling.rs` handles those that differ only in spelling.

/// Commands of gdb by their shortest abbreviation, and their names here.
const COMMANDS: [(&str, &str); 5] = [
    ("run", "continue, or restart to begin again"),
    ("r", "continue, or restart to begin again"),
    ("k", "stop"),
    ("u", "until LOCATION, or next"),
    ("dprintf", "logpoint LOCATION \"x={x}\""),
];

/// Returns the name here of the gdb command that a line begins with.
pub fn ours(words: &[String]) -> Option<&'static str> {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let first = words.first_mut()?;
    *first = first.split('/').next()?;
    let line = words.join(" ");
    let begins = |command: &str| {
        line.strip_prefix(command)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let found = COMMANDS.iter().find(|(command, _)| begins(command));
    found.map(|(_, ours)| *ours)
}

/// Returns the same for the shell, where no program runs yet.
pub fn in_shell(words: &[String]) -> Option<&'static str> {
    match words.first()?.as_str() {
        "run" | "r" => Some("start PROGRAM, or restart to begin again"),
        _ => ours(words),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{commands, words::names};
    use super::*;

    fn of(line: &str) -> Option<&'static str> {
        ours(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn commands_of_gdb_are_known() {
        assert_eq!(of("k"), Some("stop"));
        assert_eq!(of("run"), of("r"));
        assert_eq!(of("dprintf f"), Some("logpoint LOCATION \"x={x}\""));
        assert_eq!(of("running"), None);
        assert_eq!(of("frobnicate"), None);
        let run = in_shell(&["run".to_owned()]);
        assert_eq!(run, Some("start PROGRAM, or restart to begin again"));
        assert_eq!(in_shell(&["k".to_owned()]), Some("stop"));
    }

    #[test]
    fn what_is_proposed_exists_and_what_is_not_ours_is_proposed_for() {
        let verbs = names(&commands());
        for (theirs, ours) in COMMANDS {
            let first = |text: &str| text.split([' ', ',']).next().unwrap().to_owned();
            assert!(!verbs.contains(&first(theirs)), "{theirs} is a verb here");
            let ours = first(ours);
            assert!(
                ours == "SELECT" || verbs.contains(&ours),
                "{ours} is no verb"
            );
        }
    }
}
