//! Qualified names: `function::variable`, and `module::name` for names of other modules.

use crate::ast::Span;
use crate::eval::names::{entry_in, nearest};
use crate::eval::{Answer, Context, EvalError, Evaluator, Missing};
use crate::is_called;
use debuginfo::location::{FrameContext, at_frame};
use debuginfo::scope::{
    Variable, globals_of, globals_of_file, has_variable, imported, rivals, split_module,
    variable_at, variables_of, variables_of_copy,
};
use debuginfo::value::Value;
use debuginfo::{Diagnostic, Frame};

/// Inlined copies of a function whose variables are listed, at most: all have those of the function.
const MOST_COPIES: usize = 16;

impl Evaluator<'_> {
    /// Returns a variable that is qualified with its function: from the innermost call, starting at the frame and going
    /// outwards, or else from any call. A static variable needs no call.
    pub(super) fn of_function(&self, name: &str, at: Span) -> Answer<Option<Value>> {
        if let Some(found) = self.of_function_called(name, at)? {
            return Ok(Some(found));
        }
        for meant in imported(self.site, name) {
            if let Some(found) = self.of_function_called(&meant.name, at)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn of_function_called(&self, name: &str, at: Span) -> Answer<Option<Value>> {
        let Some((path, last)) = name.rsplit_once("::").filter(|(path, _)| !path.is_empty()) else {
            return Ok(None);
        };
        let frames = self.context.frames;
        let selected = frames.get(self.context.index);
        let first = selected.map_or(0, |_| self.context.index);
        let outwards = first..frames.len();
        let inwards = (0..first).rev();
        let is_it = |frame: &Frame| {
            let function = frame.function.as_deref();
            function.is_some_and(|function| is_called(function, path))
        };
        let mut why = None;
        for index in outwards.chain(inwards).filter(|at| is_it(&frames[*at])) {
            if !frames[index].pc_is_known {
                let lost = format!("where in {path} the thread was is not known at this moment");
                why.get_or_insert(lost);
                continue;
            }
            match self.in_frame(index, last) {
                Some(Ok(found)) => return Ok(Some(found)),
                Some(Err(hidden)) => _ = why.get_or_insert(hidden),
                None => {}
            }
        }
        if let Some(why) = why {
            return Err(EvalError::new(at, why));
        }
        self.of_idle_function(path, last, at)
    }

    /// Returns a variable of a frame. The error states that its scope is elsewhere in the function.
    fn in_frame(&self, index: usize, name: &str) -> Option<Result<Value, String>> {
        let Context {
            space,
            machine,
            frames,
            ..
        } = self.context;
        let found = at_frame(space, machine, frames, index, |site| {
            let variable = variable_at(site, name);
            let read = variable.map(|variable| Ok(variable.read(site)));
            read.or_else(|| {
                let hidden = format!("{name} is not in scope where its function stands");
                has_variable(site, name).then_some(Err(hidden))
            })
        });
        found.flatten()
    }

    /// Returns a variable of a function that the thread does not execute.
    fn of_idle_function(&self, path: &str, last: &str, at: Span) -> Answer<Option<Value>> {
        let space = self.look.space;
        let near = space.near(self.site.lookup_pc);
        let functions = near.iter().flat_map(|m| m.functions_matching(path));
        let own = functions.map(|function| (false, variables_of(space, function.entry)));
        let copies = near.iter().flat_map(|m| m.inlined_copies(path));
        let copied = copies.map(|copy| (true, variables_of_copy(space, &copy)));
        let mut names: Vec<String> = Vec::new();
        let mut is_function = false;
        for (is_copy, all) in own.chain(copied.take(MOST_COPIES)) {
            is_function = true;
            let own: Vec<&Variable> = all.iter().filter(|one| one.name == last).collect();
            if !own.is_empty() {
                let outside = FrameContext::outside(space, self.look.machine);
                let fixed = only_static(&own, &outside);
                let fixed = fixed.map_err(|lines| several(path, last, &lines, at))?;
                let Some(fixed) = fixed else {
                    let why = match is_copy {
                        true => "which is inlined elsewhere and does not run here",
                        false => "which does not run here",
                    };
                    let what = Diagnostic {
                        message: format!("{last} is a variable of {path}, {why}"),
                        hint: Some(format!(
                            "it has a value only during a call of {path}: stop in one, for example by break {path}"
                        )),
                    };
                    return Err(EvalError::meaningless(at, what));
                };
                return Ok(Some(fixed.read(&outside)));
            }
            names.extend(all.iter().map(|variable| variable.name.clone()));
        }
        if !is_function {
            return Ok(None);
        }
        let near = nearest(last, names.iter().map(String::as_str));
        let what = Diagnostic {
            message: format!("{path} has no variable \"{last}\""),
            hint: near.map(|near| format!("did you mean \"{path}::{near}\"?")),
        };
        Err(EvalError::missing(at, Missing::OfFunction, what))
    }

    /// Returns whether a qualified name refers to nothing in any state of the thread.
    pub(super) fn is_unknown_path(&self, name: &str) -> bool {
        let in_function = self.of_function(name, Span::default());
        let is_unknown = match in_function {
            Ok(found) => found.is_none(),
            Err(error) => error.missing.is_some(),
        };
        is_unknown && self.of_module(name, self.site).is_none()
    }

    /// Returns a variable qualified with a module or a source file. A quoted file may be that of another module.
    pub(super) fn of_module(&self, name: &str, site: &FrameContext<'_>) -> Option<Value> {
        let (module, rest) = split_module(name)?;
        let modules = self.look.space.called(module);
        let of_module = || {
            let mut found = modules.iter().flat_map(|m| globals_of(m, self.site, rest));
            found.next()
        };
        let of_file = || {
            let near = self.look.space.near(self.site.lookup_pc);
            let all = near.into_iter();
            let mut found = all.flat_map(|m| globals_of_file(m, module, rest));
            found.next()
        };
        let variable = of_module().or_else(of_file);
        let variable = variable.or_else(|| self.of_foreign_file(name));
        if let Some(variable) = variable {
            return Some(variable.read(site));
        }
        Some(self.function_value(entry_in(&modules, rest)?))
    }

    /// Returns a diagnostic if several variables have this name and none is nearer than the others.
    pub(super) fn undecided(&self, name: &str) -> Option<Diagnostic> {
        let plain = name.strip_prefix("::").unwrap_or(name);
        let all = rivals(self.site, plain);
        let mut ways: Vec<String> = all.iter().map(|one| one.name.clone()).collect();
        ways.dedup();
        if let [_] = ways[..] {
            let file = |one: &Variable| Some((one.unit_file()?, plain));
            let files = all.iter().filter_map(file);
            let last = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
            ways = files
                .map(|(file, name)| format!("'{}'::{name}", last(&file)))
                .collect();
            ways.dedup();
        }
        let (last, others) = ways.split_last()?;
        let first = others.first()?;
        let more = match others.len() {
            1 => String::new(),
            more => format!(", {} more", more - 1),
        };
        let what = Diagnostic::new(format!("several variables are called {plain}"));
        Some(what.with_hint(format!("write which one: {first}{more} or {last}")))
    }
}

/// Returns the static variable among those of one name in a function: that of the function's own block, as in gdb, or else the
/// only one.
///
/// # Errors
/// There are several, with these lines.
fn only_static<'v>(
    all: &[&'v Variable],
    outside: &FrameContext<'_>,
) -> Result<Option<&'v Variable>, Vec<String>> {
    let mut fixed: Vec<&Variable> = all.to_vec();
    fixed.retain(|one| one.is_static(outside));
    let outermost = fixed.iter().map(|one| one.scope_depth).min();
    if outermost == Some(0) {
        fixed.retain(|one| one.scope_depth == 0);
    }
    match fixed[..] {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        _ => {
            let lines = fixed.iter().filter_map(|one| one.line);
            Err(lines.map(|line| line.to_string()).collect())
        }
    }
}

/// Explains that a function has several static variables of one name.
fn several(path: &str, name: &str, lines: &[String], at: Span) -> EvalError {
    let lines = lines.join(" and ");
    let message = format!("{path} has several static variables {name}, of lines {lines}");
    let error = EvalError::meaningless(at, message);
    error.with_hint(format!(
        "stop in {path} where the one that you mean is in scope"
    ))
}
