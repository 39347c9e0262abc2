//! Watched expressions: which memory their values are made of, and at which events the runtime captures it.
//!
//! An expression over global variables is captured at every enter and leave. One over a function's parameters and local
//! variables is captured while they exist: a parameter where the function is entered, both where something that the function
//! has called is entered or left.

mod callers;
mod pointer_path;
mod trace;

use agent::shared::{Shared, WATCH_WORDS};
use debuginfo::{AddressSpace, Diagnostic, Svma};
use expr::{path_of, without_path};
use store::control::FunctionDef;

use self::callers::at_calls;
use self::pointer_path::{When, program};
use self::trace::{Problem, Standing, ways};
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
    scope: WatchScope,
    /// All places are captured in which it lies.
    is_whole: bool,
}

/// Where a watched expression has a value.
#[derive(Debug, PartialEq, Eq)]
enum WatchScope {
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
            scope: WatchScope::Nowhere(String::new()),
            is_whole: true,
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
        space: &AddressSpace,
        functions: &[FunctionDef],
        shared: &Shared,
    ) -> Result<()> {
        let mut failed = None;
        for watch in &mut self.all {
            let refused = |reason: Diagnostic| Error::Watch {
                expression: watch.text.clone(),
                reason,
            };
            let room = WATCH_WORDS - self.words.len();
            let known = (&self.words[..], room);
            let found = match words_of(&watch.text, &watch.scope, space, functions, known) {
                Ok(found) => found,
                Err(reason) => {
                    failed.get_or_insert(refused(reason));
                    continue;
                }
            };
            self.words.extend(found.words);
            watch.scope = found.scope;
            watch.is_whole &= found.is_whole;
        }
        shared.set_watches(&self.words);
        match failed {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Reports those that have not been found, and those that are not captured in all places in which they lie.
    pub(crate) fn warn(&self, observer: &dyn crate::Observer) {
        for watch in &self.all {
            let expression = &watch.text;
            if let WatchScope::Nowhere(why) = &watch.scope {
                observer.warning(&format!(
                    "--watch {expression}: {why}; it is looked for again in each module that is loaded"
                ));
            }
            if !watch.is_whole {
                observer.warning(&format!(
                    "--watch {expression}: there is no room for all the places that it lies in, and it is not captured at all calls; \
                     FUNCTION::PARAMETER takes less"
                ));
            }
        }
    }

    /// Tells whether modules that come may have something to watch.
    pub(crate) fn may_find_more(&self) -> bool {
        let mut all = self.all.iter();
        all.any(|watch| watch.scope != WatchScope::Everywhere)
    }
}

/// What was found out about an expression.
struct Found {
    scope: WatchScope,
    /// What the runtime is to be told in addition.
    words: Vec<u64>,
    /// There was room for all of that.
    is_whole: bool,
}

impl Found {
    /// What is captured at every enter and leave.
    fn whole(words: Vec<u64>) -> Found {
        Found {
            scope: WatchScope::Everywhere,
            words,
            is_whole: true,
        }
    }
}

/// Finds where an expression has a value. `scope`: what is known already; `known`: the words that the runtime has been told;
/// `room`: for how many more.
///
/// # Errors
/// Why it can never be watched.
fn words_of(
    text: &str,
    scope: &WatchScope,
    space: &AddressSpace,
    functions: &[FunctionDef],
    (known, room): (&[u64], usize),
) -> std::result::Result<Found, Diagnostic> {
    let scope = match scope {
        WatchScope::Everywhere => return Ok(Found::whole(Vec::new())),
        WatchScope::Functions => WatchScope::Functions,
        WatchScope::Nowhere(_) => match ways(text, space, Standing::Anywhere) {
            Ok(found) => {
                let words = program(&found, When::Always);
                return match words.len() <= room {
                    true => Ok(Found::whole(words)),
                    false => Err("there is no room for so many watches".into()),
                };
            }
            Err(problem) => WatchScope::Nowhere(why_not_global(text, problem, functions)?),
        },
    };
    words_within(text, scope, space, functions, (known, room))
}

/// Says why no global variable is meant where a function's may be.
///
/// # Errors
/// None can be.
fn why_not_global(
    text: &str,
    problem: Problem,
    functions: &[FunctionDef],
) -> std::result::Result<String, Diagnostic> {
    let reason = match (problem, path_of(text)) {
        (Problem::NotThere(reason), Some(function)) => {
            let reason = reason.one_line();
            return Ok(format!("{reason}, and no function {function} is recorded"));
        }
        (Problem::NotThere(reason), None) => {
            return Ok(format!(
                "{}; variables of a function are written FUNCTION::VARIABLE",
                reason.one_line()
            ));
        }
        (Problem::Wrong(reason), _) => reason,
        (Problem::NoMemory, _) => "it has no variable in memory".into(),
    };
    // What a library calls so may be a function, and what is meant a parameter.
    match functions.iter().any(|f| inside(text, f).is_some()) {
        true => Ok(reason.one_line()),
        false => Err(reason),
    }
}

/// Finds what to capture of an expression in functions, as [`words_of`] does.
///
/// # Errors
/// As there.
fn words_within(
    text: &str,
    mut scope: WatchScope,
    space: &AddressSpace,
    functions: &[FunctionDef],
    (known, room): (&[u64], usize),
) -> std::result::Result<Found, Diagnostic> {
    // What is kept where functions are entered, and at their calls as far as there is room for that.
    let (mut words, mut at_calls) = (Vec::new(), Vec::new());
    let mut refused = None;
    for function in functions {
        let Some(inside) = inside(text, function) else {
            continue;
        };
        let mut modules = space.modules().iter();
        let Some(mapped) = modules.find(|mapped| mapped.number == function.module) else {
            continue;
        };
        let entry = mapped.address(Svma(function.svma));
        match words_inside(&inside, space, function, entry) {
            Ok(found) => {
                words.extend(found.at_entry);
                // A library that is loaded again lies where it lay.
                let is_new = |found: &[u64]| !known.windows(found.len()).any(|w| w == found);
                at_calls.extend(Some(found.at_calls).filter(|w| !w.is_empty() && is_new(w)));
                scope = WatchScope::Functions;
            }
            Err(Problem::NoMemory) => {}
            // Where the function is named no module that comes will have more.
            Err(Problem::NotThere(_)) if path_of(text).is_none() => {}
            Err(Problem::NotThere(reason) | Problem::Wrong(reason)) => {
                let reason = reason.map(|reason| format!("in {}: {reason}", function.name));
                refused.get_or_insert(reason);
            }
        }
        if words.len() > room {
            return Err(
                "too many functions have such a parameter: FUNCTION::PARAMETER names one".into(),
            );
        }
    }
    let mut is_whole = true;
    for more in at_calls {
        match words.len() + more.len() <= room {
            true => words.extend(more),
            false => is_whole = false,
        }
    }
    match (&scope, refused) {
        (WatchScope::Nowhere(_), Some(reason)) => Err(reason),
        _ if !is_whole && words.is_empty() => {
            Err("it lies in too many places: a logpoint shows it at one of them".into())
        }
        _ => Ok(Found {
            scope,
            words,
            is_whole,
        }),
    }
}

/// What to capture in a function: words for the runtime.
struct Inside {
    /// Where it is entered.
    at_entry: Vec<u64>,
    /// At the calls that it makes.
    at_calls: Vec<u64>,
}

/// Finds what to capture of `text` in `function`, whose first instruction is at `entry`.
fn words_inside(
    text: &str,
    space: &AddressSpace,
    function: &FunctionDef,
    entry: u64,
) -> std::result::Result<Inside, Problem> {
    let at_calls = at_calls(text, space, entry);
    let standing = Standing::Entry {
        function,
        pc: entry,
    };
    let is_there = names_parameter(text, function);
    let at_entry = match is_there.then(|| ways(text, space, standing)) {
        Some(Ok(found)) => program(&found, When::Entered(function.id)),
        // All of it is in argument registers, which every enter has.
        Some(Err(Problem::NoMemory)) => Vec::new(),
        Some(Err(problem @ Problem::Wrong(_))) if at_calls.is_err() => return Err(problem),
        // Other variables do not exist yet.
        None | Some(Err(_)) => {
            return Ok(Inside {
                at_entry: Vec::new(),
                at_calls: at_calls?,
            });
        }
    };
    Ok(Inside {
        at_entry,
        // It need not be kept any longer.
        at_calls: at_calls.unwrap_or_default(),
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn names_parameter(text: &str, function: &FunctionDef) -> bool {
    let mut words = text.split(|c| !is_word(c));
    words.any(|word| function.params.iter().any(|param| param.name == word))
}

/// Returns the expression as it reads inside a function, if it may be about a variable of it: `q->len` if that is a parameter, or
/// `push::q->len`.
fn inside(text: &str, function: &FunctionDef) -> Option<String> {
    let Some(named) = path_of(text) else {
        return names_parameter(text, function).then(|| text.to_owned());
    };
    let name = function.name.split(['(', '<']).next().unwrap_or_default();
    let is_named = name == named || name.ends_with(&format!("::{named}"));
    is_named.then(|| without_path(text, named))
}
