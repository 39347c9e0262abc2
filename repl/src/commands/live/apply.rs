//! `thread apply`: a verb that looks, at several threads.

use std::ffi::OsString;

use clap::ArgMatches;
use server::verbs::{Command, Does, OfThread, Text, ThreadApplyReply, find};

use super::generic::{commands, described, run_for};
use super::{Common, Link};
use crate::cli::with_negative_numbers;
use crate::error::Error;
use crate::spelling;

/// Runs the verb that the words name, for the threads that they name.
///
/// # Errors
/// The words name no verb that looks, or the verb fails.
pub fn run(common: Common, words: Vec<String>, link: &Link) -> Result<u8, Error> {
    let at = spelling::applied_at(&words);
    let (threads, verb) = words.split_at(at);
    let threads = numbers(threads)?;
    let name = verb.first().map(String::as_str).unwrap_or_default();
    let known = find(name).filter(|verb| verb.does == Does::Look && verb.words.is_some());
    if known.is_none() {
        return Err(no_verb(name));
    }
    let verb = verb.iter().map(OsString::from).collect();
    let matches = parsed(with_negative_numbers(verb, 0))?;
    let (name, matches) = matches.subcommand().ok_or_else(|| no_verb(name))?;
    let ran = run_for(&threads, common, (name, matches), link);
    ran.unwrap_or_else(|| Err(no_verb(name)))
}

/// The threads; none for all.
fn numbers(words: &[String]) -> Result<Vec<i32>, Error> {
    let is_all = |word: &String| word == "all";
    match words.iter().any(is_all) {
        true if words.len() == 1 => Ok(Vec::new()),
        false if !words.is_empty() => {
            let numbers = words.iter().map(|word| word.parse());
            let numbers: Result<_, _> = numbers.collect();
            numbers.map_err(|_| no_threads())
        }
        _ => Err(no_threads()),
    }
}

fn parsed(words: Vec<OsString>) -> Result<ArgMatches, Error> {
    let command = clap::Command::new("hindsight")
        .no_binary_name(true)
        .disable_help_subcommand(true)
        .subcommands(commands(true));
    let matches = described(command).try_get_matches_from(words);
    matches.map_err(|error| Error::of_words(&error))
}

fn no_threads() -> Error {
    let help = "write thread apply all print x, or the numbers of threads in place of all";
    Error::usage(
        "thread apply takes all, or the numbers of threads",
        Some(help.to_owned()),
    )
}

fn no_verb(name: &str) -> Error {
    let message = match name {
        "" => "a verb is missing after the threads".to_owned(),
        name => format!("thread apply does not take {name}"),
    };
    let help = "it takes verbs that look at one thread: thread apply all print x";
    Error::usage(message, Some(help.to_owned()))
}

/// Returns the text of a reply: that of verb `V` for each thread.
pub fn text<V: Command>(reply: &ThreadApplyReply, args: &V::Args) -> Text {
    let mut text = Text::default();
    for of in &reply.threads {
        text = text.and(of.heading()).and(said::<V>(of, args));
    }
    text.and(reply.of_running())
}

fn said<V: Command>(of: &OfThread, args: &V::Args) -> Text {
    if let Some(failure) = &of.error {
        let line = Text::line(format!("error: {}", failure.message));
        let help = failure.hint.as_ref();
        let help = help.map(|hint| Text::line(format!("help: {hint}")));
        return line.and(help.unwrap_or_default());
    }
    let reply = of.result.clone().unwrap_or_default();
    match serde_json::from_value::<V::Reply>(reply) {
        Ok(reply) => V::text(&reply, args),
        Err(error) => Text::line(format!("error: the reply cannot be read: {error}")),
    }
}
