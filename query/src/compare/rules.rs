//! What the user does not want compared.

use debuginfo::Glob;
use store::control::{FunctionDef, Param};

use super::forms::{Form, Left};
use crate::error::{Error, Result};

/// What is not compared.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    functions: Vec<Glob>,
    results: Vec<Glob>,
    args: Vec<(Glob, String)>,
    output: Vec<regex::Regex>,
    kinds: Vec<Ignored>,
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
    /// Patterns of functions whose results are not compared.
    pub results: Vec<String>,
    /// `FUNCTION:ARGUMENT`: arguments that are not compared.
    pub args: Vec<String>,
    /// Regular expressions: lines of output that are left out.
    pub output: Vec<String>,
    /// `output`, `exit`, `exceptions` or `events`.
    pub kinds: Vec<String>,
}

fn wrong(what: &str, text: &str, why: impl std::fmt::Display) -> Error {
    Error::Rule {
        what: format!("{what} {text:?}"),
        why: why.to_string(),
    }
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
            let split = text
                .rsplit_once(':')
                .filter(|(function, _)| !function.ends_with(':'));
            let (function, arg) =
                split.ok_or_else(|| wrong("argument", text, "it is not FUNCTION:ARGUMENT"))?;
            Ok((Glob::new(function), arg.to_owned()))
        });
        let output = texts
            .output
            .iter()
            .map(|text| regex::Regex::new(text).map_err(|why| wrong("output", text, why)));
        let kinds = texts.kinds.iter().map(|text| match text.as_str() {
            "output" => Ok(Ignored::Output),
            "exit" => Ok(Ignored::Exit),
            "exceptions" => Ok(Ignored::Exceptions),
            "events" => Ok(Ignored::Others),
            _ => Err(wrong(
                "kind",
                text,
                "it is not output, exit, exceptions or events",
            )),
        });
        Ok(Rules {
            functions: globs(&texts.functions),
            results: globs(&texts.results),
            args: args.collect::<Result<_>>()?,
            output: output.collect::<Result<_>>()?,
            kinds: kinds.collect::<Result<_>>()?,
        })
    }

    /// Tells whether the calls of a function are left out.
    pub fn ignores_function(&self, name: &str) -> bool {
        self.functions
            .iter()
            .any(|glob| glob.matches_function(name))
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

    /// Tells whether a line of output is left out.
    pub fn ignores_line(&self, line: &str) -> bool {
        self.output.iter().any(|regex| regex.is_match(line))
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
