//! What the user does not want compared.

use debuginfo::Glob;
use store::control::{FunctionDef, Param};

use super::forms::{Form, Left};
use crate::error::{Error, Result};

/// What is not compared.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    functions: Vec<Glob>,
    inside: Vec<Glob>,
    results: Vec<Glob>,
    args: Vec<(Glob, String)>,
    output: Vec<regex::Regex>,
    kinds: Vec<Ignored>,
    pub(super) texts: RuleTexts,
}

/// Kinds of events that need not be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ignored {
    Output,
    Exit,
    Exceptions,
    Others,
}

/// The same as texts, as a user writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleTexts {
    /// Patterns of functions whose calls are left out.
    pub functions: Vec<String>,
    /// Patterns of functions whose calls are left out with all calls within them.
    pub inside: Vec<String>,
    /// Patterns of functions whose results are not compared.
    pub results: Vec<String>,
    /// `FUNCTION:ARGUMENT`: arguments that are not compared.
    pub args: Vec<String>,
    /// Regular expressions: lines of output that are left out.
    pub output: Vec<String>,
    /// `output`, `exit`, `exceptions` or `events`.
    pub kinds: Vec<String>,
    /// Where they stand, as `hindsight.toml`.
    pub place: String,
}

fn wrong(texts: &RuleTexts, what: &str, text: &str, why: impl std::fmt::Display) -> Error {
    let place = match texts.place.as_str() {
        "" => String::new(),
        place => format!(" in {place}"),
    };
    Error::Rule {
        what: format!("{what} {text:?}{place}"),
        why: why.to_string(),
    }
}

/// Returns the two parts of `FUNCTION:ARGUMENT`.
pub(super) fn argument(text: &str) -> Option<(&str, &str)> {
    let split = text.rsplit_once(':');
    split.filter(|(function, _)| !function.ends_with(':'))
}

fn globs(texts: &[String]) -> Vec<Glob> {
    texts.iter().map(|text| Glob::new(text)).collect()
}

impl Rules {
    /// Reads rules.
    ///
    /// # Errors
    /// [`Error::Rule`]: one of them is wrong.
    pub fn read(texts: &RuleTexts) -> Result<Rules> {
        let args = texts.args.iter().map(|text| {
            let (function, arg) = argument(text)
                .ok_or_else(|| wrong(texts, "argument", text, "it is not FUNCTION:ARGUMENT"))?;
            Ok((Glob::new(function), arg.to_owned()))
        });
        let output = texts
            .output
            .iter()
            .map(|text| regex::Regex::new(text).map_err(|why| wrong(texts, "output", text, why)));
        let kinds = texts.kinds.iter().map(|text| match text.as_str() {
            "output" => Ok(Ignored::Output),
            "exit" => Ok(Ignored::Exit),
            "exceptions" => Ok(Ignored::Exceptions),
            "events" => Ok(Ignored::Others),
            _ => Err(wrong(
                texts,
                "kind",
                text,
                "it is not output, exit, exceptions or events",
            )),
        });
        Ok(Rules {
            functions: globs(&texts.functions),
            inside: globs(&texts.inside),
            results: globs(&texts.results),
            args: args.collect::<Result<_>>()?,
            output: output.collect::<Result<_>>()?,
            kinds: kinds.collect::<Result<_>>()?,
            texts: texts.clone(),
        })
    }

    /// Tells whether the calls of a function are left out.
    pub fn ignores_function(&self, name: &str) -> bool {
        self.functions
            .iter()
            .any(|glob| glob.matches_function(name))
    }

    /// Tells whether the calls of a function are left out with all calls within them.
    pub fn ignores_inside(&self, name: &str) -> bool {
        self.inside.iter().any(|glob| glob.matches_function(name))
    }

    /// Returns what is compared of a function's calls.
    pub fn form(&self, function: &FunctionDef, left: Left) -> Form {
        let matches = |glob: &Glob| glob.matches_function(&function.name);
        let left = Left {
            result: left.result || self.results.iter().any(matches),
            ..left
        };
        let is_ignored = |param: &Param| {
            let mut args = self.args.iter();
            args.any(|(glob, arg)| (arg == "*" || *arg == param.name) && matches(glob))
        };
        Form::of(function, left, is_ignored)
    }

    /// Returns the numbers of the rules that leave out a line of output.
    pub fn ignoring_line(&self, line: &str) -> impl Iterator<Item = usize> {
        let rules = self.output.iter().enumerate();
        rules.filter_map(move |(number, regex)| regex.is_match(line).then_some(number))
    }

    fn ignores(&self, kind: Ignored) -> bool {
        self.kinds.contains(&kind)
    }

    /// Tells whether output is not compared.
    pub fn ignores_output(&self) -> bool {
        self.ignores(Ignored::Output)
    }

    /// Tells whether ends are not compared.
    pub fn ignores_exit(&self) -> bool {
        self.ignores(Ignored::Exit)
    }

    /// Tells whether exceptions and signals are not compared.
    pub fn ignores_exceptions(&self) -> bool {
        self.ignores(Ignored::Exceptions)
    }

    /// Tells whether forks, programs that were run and names of threads are not compared.
    pub fn ignores_others(&self) -> bool {
        self.ignores(Ignored::Others)
    }
}
