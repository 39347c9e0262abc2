//! Watched expressions: which memory their values are made of, and at which events the runtime captures it.
//!
//! An expression over global variables is captured at every enter and leave. One over a function's parameters and local
//! variables is captured while they exist: a parameter where the function is entered, both where something that the function
//! has called is entered or left.

mod callers;
mod trace;
mod way;

use agent::shared::{Shared, WATCH_WORDS};
use debuginfo::{Space, Svma};
use store::control::FunctionDef;

use self::callers::at_calls;
use self::trace::{Problem, Standing, ways};
use self::way::{When, program};
use crate::{Error, Result};

/// The expressions, and what the runtime knows of them.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    all: Vec<Watch>,
    words: Vec<u64>,
}

#[derive(Debug)]
struct Watch {
    text: String,
    scope: Scope,
}

/// Where a watched expression has a value.
#[derive(Debug, PartialEq, Eq)]
enum Scope {
    /// Nowhere yet, and why.
    Nowhere(String),
    /// Where functions with a certain parameter are entered; more of them may come with other modules.
    Functions,
    Everywhere,
}

impl Watches {
    /// Takes the expressions; none is looked for yet.
    pub(crate) fn new(expressions: &[String]) -> Self {
        let all = expressions.iter().map(|text| Watch {
            text: text.clone(),
            scope: Scope::Nowhere(String::new()),
        });
        Self {
            all: all.collect(),
            words: Vec::new(),
        }
    }

    /// Looks for what could not be found before, now that `space` is what is mapped and these functions are newly traced,
    /// and tells the runtime.
    ///
    /// # Errors
    /// [`Error::Watch`]: one is no expression, or too large.
    pub(crate) fn resolve(
        &mut self,
        space: &Space,
        functions: &[FunctionDef],
        shared: &Shared,
    ) -> Result<()> {
        let mut failed = None;
        for watch in &mut self.all {
            let refused = |reason: String| Error::Watch {
                expression: watch.text.clone(),
                reason,
            };
            let room = WATCH_WORDS - self.words.len();
            let found = match words_of(&watch.text, &watch.scope, space, functions, room) {
                Ok(found) => found,
                Err(reason) => {
                    failed.get_or_insert(refused(reason));
                    continue;
                }
            };
            self.words.extend(found.words);
            watch.scope = found.scope;
        }
        shared.set_watches(&self.words);
        match failed {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Returns those that have not been found, and why.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all.iter().filter_map(|watch| match &watch.scope {
            Scope::Nowhere(why) => Some((watch.text.as_str(), why.as_str())),
            _ => None,
        })
    }

    /// Tells whether modules that come may have something to watch.
    pub(crate) fn may_find_more(&self) -> bool {
        let mut all = self.all.iter();
        all.any(|watch| watch.scope != Scope::Everywhere)
    }
}

/// What was found out about an expression.
struct Found {
    scope: Scope,
    /// What the runtime is to be told in addition.
    words: Vec<u64>,
}

/// Finds where an expression has a value. `scope`: what is known already; `room`: for how many words.
///
/// # Errors
/// Why it can never be watched.
fn words_of(
    text: &str,
    scope: &Scope,
    space: &Space,
    functions: &[FunctionDef],
    room: usize,
) -> std::result::Result<Found, String> {
    let mut scope = match scope {
        Scope::Everywhere => {
            return Ok(Found {
                scope: Scope::Everywhere,
                words: Vec::new(),
            });
        }
        Scope::Functions => Scope::Functions,
        Scope::Nowhere(_) => match ways(text, space, Standing::Anywhere) {
            Ok(found) => {
                let words = program(&found, When::Always);
                return match words.len() <= room {
                    true => Ok(Found {
                        words,
                        scope: Scope::Everywhere,
                    }),
                    false => Err("there is no room for so many watches".to_owned()),
                };
            }
            Err(Problem::NotThere(reason)) => Scope::Nowhere(match path(text) {
                Some(_) => reason,
                None => format!("{reason}; variables of a function are written FUNCTION::VARIABLE"),
            }),
            // What a library calls so may be a function, and what is meant a parameter.
            Err(problem) => {
                let reason = match problem {
                    Problem::Wrong(reason) => reason,
                    _ => "it has no variable in memory".to_owned(),
                };
                if !functions.iter().any(|f| inside(text, f).is_some()) {
                    return Err(reason);
                }
                Scope::Nowhere(reason)
            }
        },
    };
    let mut words = Vec::new();
    for function in functions {
        let Some(inside) = inside(text, function) else {
            continue;
        };
        let mut modules = space.modules().iter();
        let Some(mapped) = modules.find(|mapped| mapped.number == function.module) else {
            continue;
        };
        match words_inside(
            &inside,
            space,
            function,
            mapped.address(Svma(function.svma)),
        ) {
            Ok(found) => words.extend(found),
            Err(Problem::NotThere(_) | Problem::NoMemory) => continue,
            Err(Problem::Wrong(reason)) => return Err(format!("in {}: {reason}", function.name)),
        }
        if words.len() > room {
            return Err(match path(text) {
                Some(_) => "it lies in too many places: a logpoint shows it at one of them",
                None => "too many functions have such a parameter: FUNCTION::PARAMETER names one",
            }
            .to_owned());
        }
        scope = Scope::Functions;
    }
    Ok(Found { scope, words })
}

/// Finds what to capture of `text` in `function`, whose first instruction is at `entry`: the words for the runtime.
fn words_inside(
    text: &str,
    space: &Space,
    function: &FunctionDef,
    entry: u64,
) -> std::result::Result<Vec<u64>, Problem> {
    let at_calls = at_calls(text, space, entry);
    if !names_parameter(text, function) {
        return at_calls;
    }
    let standing = Standing::Entry {
        function,
        pc: entry,
    };
    let mut words = match ways(text, space, standing) {
        Ok(found) => program(&found, When::Entered(function.id)),
        // All of it is in argument registers, which every enter has.
        Err(Problem::NoMemory) => Vec::new(),
        Err(problem) => return Err(problem),
    };
    // It need not be kept any longer.
    words.extend(at_calls.unwrap_or_default());
    Ok(words)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn names_parameter(text: &str, function: &FunctionDef) -> bool {
    let mut words = text.split(|c| !is_word(c));
    words.any(|word| function.params.iter().any(|param| param.name == word))
}

/// The path before the expression's first name, `push` in `*push::q`: where it begins, and where the name does.
fn path(text: &str) -> Option<(usize, usize)> {
    let from = text.find(is_word)?;
    let rest = &text[from..];
    let to = rest.find(|c| !is_word(c) && c != ':').unwrap_or(rest.len());
    let end = rest[..to].rfind("::")?;
    Some((from, from + end + 2))
}

/// Returns the expression as it reads inside a function, if it may be about a variable of it: `q->len` if that is a parameter, or
/// `push::q->len`.
fn inside(text: &str, function: &FunctionDef) -> Option<String> {
    match path(text) {
        None => names_parameter(text, function).then(|| text.to_owned()),
        Some((from, to)) => {
            let named = &text[from..to - 2];
            let name = function.name.split(['(', '<']).next().unwrap_or_default();
            let is_named = name == named || name.ends_with(&format!("::{named}"));
            is_named.then(|| format!("{}{}", &text[..from], &text[to..]))
        }
    }
}
