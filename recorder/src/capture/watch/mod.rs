//! Watched expressions: determines which memory their values consist of, and at which events the runtime captures it.
//!
//! An expression over global variables is captured at every enter and leave. An expression over parameters and local
//! variables of a function is captured while they exist: parameters at the function's entry, and both kinds where a
//! callee of the function is entered or left.

mod callers;
mod pointer_path;
mod trace;

use std::collections::{BTreeMap, BTreeSet};

use agent::shared::{Shared, WATCH_WORDS};
use debuginfo::{AddressSpace, Diagnostic, InlinedCopy, Mapped, Svma};
use expr::{path_of, without_path};
use store::control::FunctionDef;

use self::callers::{at_calls, at_calls_of_copies};
use self::pointer_path::{When, program};
use self::trace::{Problem, Standing, ways};
use crate::{Error, Result};

/// The expressions, and what the runtime knows about them.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    all: Vec<Watch>,
    words: Vec<u64>,
}

#[derive(Debug)]
struct Watch {
    text: String,
    scope: WatchScope,
    /// Whether every place of the value is captured.
    is_whole: bool,
}

/// Where a watched expression has a value.
#[derive(Debug, PartialEq, Eq)]
enum WatchScope {
    /// Nowhere yet, with the reason.
    Nowhere(Diagnostic),
    /// At the entries of functions with a certain parameter. Later modules may bring more.
    Functions,
    Everywhere,
}

impl Watches {
    /// Takes the expressions. Resolves none yet.
    pub(crate) fn new(expressions: &[String]) -> Self {
        let all = expressions.iter().map(|text| Watch {
            text: text.clone(),
            scope: WatchScope::Nowhere("".into()),
            is_whole: true,
        });
        Self {
            all: all.collect(),
            words: Vec::new(),
        }
    }

    /// Resolves expressions that were not found before, using the current mappings `space` and the newly traced
    /// functions. Tells the runtime.
    ///
    /// # Errors
    /// [`Error::Watch`]: an expression is invalid or too large.
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

    /// Reports expressions that were not found, and those of which not every place is captured.
    pub(crate) fn warn(&self, observer: &dyn crate::Observer) {
        for watch in &self.all {
            let expression = &watch.text;
            if let WatchScope::Nowhere(why) = &watch.scope {
                let later = "it is looked for again in each module that is loaded";
                let why = why.clone();
                observer.warning(&why.map(|why| format!("--watch {expression}: {why}; {later}")));
            }
            if !watch.is_whole {
                let why = format!(
                    "--watch {expression}: there is no room for all the places that it lies in, and it is not captured at all calls"
                );
                observer.warning(&Diagnostic::new(why).with_hint("FUNCTION::PARAMETER takes less"));
            }
        }
    }

    /// Returns whether later modules may have something to watch.
    pub(crate) fn may_find_more(&self) -> bool {
        let mut all = self.all.iter();
        all.any(|watch| watch.scope != WatchScope::Everywhere)
    }
}

/// What was found for an expression.
struct Found {
    scope: WatchScope,
    /// Additional words for the runtime.
    words: Vec<u64>,
    /// Whether everything found had room.
    is_whole: bool,
}

impl Found {
    /// Captures the words at every enter and leave.
    fn whole(words: Vec<u64>) -> Found {
        Found {
            scope: WatchScope::Everywhere,
            words,
            is_whole: true,
        }
    }
}

/// Finds where an expression has a value. `scope` is what is already known, `known` the words that the runtime has,
/// `room` the number of free words.
///
/// # Errors
/// Why the expression can never be watched.
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
            Err(problem) => WatchScope::Nowhere(why_not_global(text, problem, space, functions)?),
        },
    };
    words_within(text, scope, space, functions, (known, room))
}

/// Returns why no global variable matches, if a variable of a function still may.
///
/// # Errors
/// If none can match.
fn why_not_global(
    text: &str,
    problem: Problem,
    space: &AddressSpace,
    functions: &[FunctionDef],
) -> std::result::Result<Diagnostic, Diagnostic> {
    let reason = match (problem, path_of(text)) {
        (Problem::NotThere(reason), Some(function)) => {
            let reason = reason.map(|why| format!("{why}, and no function {function} is recorded"));
            return Ok(reason);
        }
        (Problem::NotThere(reason), None) => {
            let written = "variables of a function are written FUNCTION::VARIABLE";
            let hint = match reason.hint {
                Some(hint) => format!("{hint}; {written}"),
                None => written.to_owned(),
            };
            return Ok(Diagnostic::new(reason.message).with_hint(hint));
        }
        (Problem::Wrong(reason), _) => reason,
        (Problem::NoMemory, _) => "it has no variable in memory".into(),
    };
    // The expression may mean a parameter even if a library has a function of that name.
    let is_inside = functions.iter().any(|f| inside(text, f).is_some());
    match is_inside || !copies_named(text, space, functions).is_empty() {
        true => Ok(reason),
        false => Err(reason),
    }
}

/// Returns the function that `text` names, by the function into which it is inlined with its copies there, in the
/// modules of `functions`.
fn copies_named(
    text: &str,
    space: &AddressSpace,
    functions: &[FunctionDef],
) -> BTreeMap<u64, Vec<InlinedCopy>> {
    let mut by_function: BTreeMap<u64, Vec<InlinedCopy>> = BTreeMap::new();
    let traced: BTreeSet<u32> = functions.iter().map(|function| function.module).collect();
    let is_traced = |mapped: &&Mapped| traced.contains(&mapped.number);
    for mapped in space.modules().iter().filter(is_traced) {
        for copy in path_of(text).map_or_else(Vec::new, |path| mapped.inlined_copies(path)) {
            let same = by_function.entry(copy.function_entry).or_default();
            same.push(copy);
        }
    }
    by_function
}

/// Finds what to capture of an expression in functions, as [`words_of`] does.
///
/// # Errors
/// As for [`words_of`].
fn words_within(
    text: &str,
    mut scope: WatchScope,
    space: &AddressSpace,
    functions: &[FunctionDef],
    (known, room): (&[u64], usize),
) -> std::result::Result<Found, Diagnostic> {
    // Captures at entries come first; captures at calls get the remaining room.
    let (mut words, mut at_calls) = (Vec::new(), Vec::new());
    let mut refused = None;
    // A library that is loaded again at its old address adds nothing new.
    let is_new = |found: &[u64]| !known.windows(found.len()).any(|w| w == found);
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
                at_calls.extend(Some(found.at_calls).filter(|w| !w.is_empty() && is_new(w)));
                scope = WatchScope::Functions;
            }
            Err(Problem::NoMemory) => {}
            // If the expression does not name a function, a later module may still match.
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
    for (entry, copies) in copies_named(text, space, functions) {
        let path = path_of(text).expect("copies are found by it");
        match at_calls_of_copies(text, path, space, (entry, &copies)) {
            Ok(found) => {
                at_calls.extend(Some(found).filter(|found| is_new(found)));
                scope = WatchScope::Functions;
            }
            Err(Problem::NoMemory) => {}
            Err(Problem::NotThere(reason) | Problem::Wrong(reason)) => {
                refused.get_or_insert(reason);
            }
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
    /// At its entry.
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
        // The whole value is in argument registers, which every enter records.
        Some(Err(Problem::NoMemory)) => Vec::new(),
        Some(Err(problem @ Problem::Wrong(_))) if at_calls.is_err() => return Err(problem),
        // Local variables do not exist yet.
        None | Some(Err(_)) => {
            return Ok(Inside {
                at_entry: Vec::new(),
                at_calls: at_calls?,
            });
        }
    };
    Ok(Inside {
        at_entry,
        // A parameter need not live beyond the entry.
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

/// Returns the expression as written inside a function, if it may refer to a variable of the function: `q->len` if `q`
/// is a parameter, or `push::q->len`.
fn inside(text: &str, function: &FunctionDef) -> Option<String> {
    let Some(named) = path_of(text) else {
        return names_parameter(text, function).then(|| text.to_owned());
    };
    let name = function.name.split(['(', '<']).next().unwrap_or_default();
    let is_named = name == named || name.ends_with(&format!("::{named}"));
    is_named.then(|| without_path(text, named))
}
