//! The list of commands in the help, in groups. A verb's properties decide its group, so a new verb needs no entry
//! here.

use std::fmt::Write;

use clap::Command;
use server::verbs::{Does, find};

use crate::render::fold;

/// A group, in the order of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Begin,
    Recordings,
    Sessions,
    Move,
    Look,
    Change,
    Tool,
}

const GROUPS: [(Group, &str); 7] = [
    (Group::Begin, "Begin with these"),
    (Group::Recordings, "Ask and keep recordings"),
    (
        Group::Sessions,
        "Sessions: a live program, or a recording that is open",
    ),
    (Group::Move, "Run the program, or travel in time"),
    (
        Group::Look,
        "Look: at a stop, or at a moment of a recording",
    ),
    (
        Group::Change,
        "Set breakpoints, log messages, change values",
    ),
    (Group::Tool, "Hindsight itself"),
];

/// The commands for first steps.
const BEGIN: [&str; 5] = ["record", "overview", "report", "sql", "repl"];

/// Commands for Hindsight itself.
const TOOLS: [&str; 5] = ["setup", "mcp", "completions", "man", "help"];

/// Verbs that begin, end or follow sessions.
const SESSIONS: [&str; 10] = [
    "start", "attach", "detach", "stop", "restart", "status", "open", "close", "output", "await",
];

/// The columns before the description: indent, the longest name, a space.
const DESCRIPTION_AT: usize = 20;

/// Makes the help template of the program, with its commands in groups. `columns` is the width of the help.
pub fn template(program: &Command, columns: usize) -> String {
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        list(program, columns)
    )
}

fn list(program: &Command, columns: usize) -> String {
    let mut text = String::new();
    for (group, heading) in GROUPS {
        // Writing to a text cannot fail.
        _ = writeln!(text, "{heading}:");
        let mut commands: Vec<&Command> = program
            .get_subcommands()
            .filter(|command| !command.is_hide_set() && of(command.get_name()) == group)
            .collect();
        if group == Group::Begin {
            commands
                .sort_by_key(|command| BEGIN.iter().position(|name| *name == command.get_name()));
        }
        for command in commands {
            push(&mut text, command, columns);
        }
        if group == Group::Tool && program.find_subcommand("help").is_none() {
            row(
                &mut text,
                "help",
                "Show this page, or that of a command: hindsight help record",
                columns,
            );
        }
        text.push('\n');
    }
    text
}

fn push(text: &mut String, command: &Command, columns: usize) {
    let mut about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let aliases: Vec<&str> = command.get_visible_aliases().collect();
    if !aliases.is_empty() {
        _ = write!(about, " [also {}]", aliases.join(", "));
    }
    row(text, command.get_name(), &about, columns);
}

fn row(text: &mut String, name: &str, about: &str, columns: usize) {
    let lines = fold(about, columns.saturating_sub(DESCRIPTION_AT).max(20));
    for (index, line) in lines.iter().enumerate() {
        let name = if index == 0 { name } else { "" };
        // The template would interpret braces as fields.
        let line = line.replace(['{', '}'], "");
        _ = writeln!(text, "  {name:width$}{line}", width = DESCRIPTION_AT - 2);
    }
}

/// Returns the group of a command by its name.
fn of(name: &str) -> Group {
    if BEGIN.contains(&name) {
        return Group::Begin;
    }
    if TOOLS.contains(&name) {
        return Group::Tool;
    }
    if SESSIONS.contains(&name) {
        return Group::Sessions;
    }
    match find(name).map(|verb| verb.does) {
        None => Group::Recordings,
        Some(Does::Move) => Group::Move,
        Some(Does::Look) => Group::Look,
        Some(Does::Change) => Group::Change,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_people_begin_with_exist() {
        let program = super::super::Cli::whole();
        for name in BEGIN
            .iter()
            .chain(&SESSIONS)
            .chain(&TOOLS)
            .filter(|name| **name != "help")
        {
            assert!(program.find_subcommand(name).is_some(), "{name}");
        }
    }

    #[test]
    fn each_command_is_listed_once() {
        let program = super::super::Cli::whole();
        let text = list(&program, 100);
        for command in program
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
        {
            let start = format!("  {} ", command.get_name());
            let listed = text.lines().filter(|line| line.starts_with(&start)).count();
            assert_eq!(listed, 1, "{}", command.get_name());
        }
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }
}
