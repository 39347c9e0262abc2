//! Names that say where they belong: `function::variable`, and `module::name` for what other modules have.

use super::super::ast::Span;
use super::names::{entry_in, nearest};
use super::{Answer, Context, EvalError, Evaluator, Missing};
use crate::diagnostic::Diagnostic;
use crate::layout::name_fit;
use crate::location::{Site, at_frame};
use crate::scope::{globals_of, has_variable, split_module, variable_at, variables_of};
use crate::space::Mapped;
use crate::unwind::Frame;
use crate::value::Value;

impl Evaluator<'_> {
    /// A variable that is named with its function: that of the innermost call from the frame outwards, or else of any. One that
    /// is static needs none.
    pub(super) fn of_function(&self, name: &str, at: Span) -> Answer<Option<Value>> {
        let Some((path, last)) = name.rsplit_once("::").filter(|(path, _)| !path.is_empty()) else {
            return Ok(None);
        };
        let frames = self.context.frames;
        let outwards = self.context.index..frames.len();
        let inwards = (0..self.context.index.min(frames.len())).rev();
        let is_it = |frame: &Frame| {
            let function = frame.function.as_deref();
            function.is_some_and(|function| name_fit(path, function).is_some())
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

    /// The variable of a frame; the error says that its place is elsewhere in the function.
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

    /// A variable of a function that the thread is not in.
    fn of_idle_function(&self, path: &str, last: &str, at: Span) -> Answer<Option<Value>> {
        let near = self.look.space.near(self.site.lookup_pc);
        let functions = near.iter().flat_map(|m| m.functions_matching(path));
        let mut names: Vec<String> = Vec::new();
        let mut is_function = false;
        for function in functions {
            is_function = true;
            let all = variables_of(self.look.space, function.entry);
            let mut own = all
                .iter()
                .filter(|variable| variable.name == last)
                .peekable();
            if own.peek().is_some() {
                let outside = Site::outside(self.look.space, self.look.machine);
                let fixed = own.find(|variable| variable.is_static(&outside));
                let Some(fixed) = fixed else {
                    let message =
                        format!("{last} is a variable of {path}, which does not run here");
                    return Err(EvalError::meaningless(at, message));
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

    /// Tells whether a name with a path means nothing, whatever the thread does.
    pub(super) fn is_unknown_path(&self, name: &str) -> bool {
        let in_function = self.of_function(name, Span::default());
        let is_unknown = match in_function {
            Ok(found) => found.is_none(),
            Err(error) => error.missing.is_some(),
        };
        is_unknown && self.of_module(name, self.site).is_none()
    }

    /// What a module has that is named with it.
    pub(super) fn of_module(&self, name: &str, site: &Site<'_>) -> Option<Value> {
        let (module, rest) = split_module(name)?;
        let modules = self.look.space.called(module);
        let variable = modules.iter().find_map(|m| {
            let found = globals_of(m, self.site, rest);
            found.into_iter().next()
        });
        if let Some(variable) = variable {
            return Some(variable.read(site));
        }
        Some(self.function_value(entry_in(&modules, rest, "")?))
    }

    /// Says which other module has something of this name.
    pub(super) fn elsewhere(&self, name: &str) -> Option<Diagnostic> {
        let plain = name.strip_prefix("::").unwrap_or(name);
        let foreign = self.look.space.foreign(self.site.lookup_pc);
        let has = |m: &&&Mapped| {
            !globals_of(m, self.site, plain).is_empty() || entry_in(&[m], plain, "").is_some()
        };
        let found = foreign.iter().find(has)?;
        let message = format!("no \"{name}\" here, but one in {}", found.file_name());
        let hint = format!("if that is meant, write {}", found.with_name(plain));
        Some(Diagnostic::new(message).with_hint(hint))
    }
}
