//! Variables of the functions that a nested function is declared in, and what a lambda captured.

use debuginfo::Diagnostic;
use debuginfo::location::{FrameContext, at_frame};
use debuginfo::scope::{self, Enclosing, Variable, language_at, variable_at};
use debuginfo::types::Language;
use debuginfo::value::Value;

use crate::Expression;
use crate::ast::{Expr, ExprKind, Span};
use crate::eval::names::{is_in_each_object, member_type};
use crate::eval::{Answer, Context, EvalError, Evaluator, with_evaluator};

impl Expression {
    /// Returns whether its value may depend on a far caller of the frame: it names a scope, a variable of a function
    /// around the frame's function in the source, or a member of an object that only callers know.
    #[must_use]
    pub fn needs_callers(&self, context: &Context<'_>) -> bool {
        let parsed = || self.within(context).ok();
        self.names_scopes()
            || parsed().is_some_and(|parsed| {
                with_evaluator(context, |evaluator| evaluator.names_outer_variable(&parsed))
            })
    }
}

impl Evaluator<'_> {
    fn names_outer_variable(&self, expr: &Expr) -> bool {
        let mut names = match &expr.kind {
            ExprKind::Name(name) => {
                self.variable(name).is_none()
                    && (self.is_declared_around(name) || self.is_of_lost_object(name))
            }
            _ => false,
        };
        expr.kind
            .for_each_child(|child| names = names || self.names_outer_variable(child));
        names
    }

    /// Returns what the lambda that the frame at this inline depth executes captured under this name, or a member of the
    /// object that it captured.
    pub(super) fn captured_in(
        &self,
        inline_depth: usize,
        name: &str,
        at: Span,
    ) -> Answer<Option<Value>> {
        let Some((closure, path)) = self.capture(inline_depth, name) else {
            return Ok(None);
        };
        let mut value = closure.read(self.site);
        for step in path {
            let object = self.pointee(&value, at)?;
            let found = object.member(&step, &self.look);
            value = found.map_err(|error| EvalError::of_value(at, &error))?;
        }
        Ok(Some(value))
    }

    /// Returns the variable that leads to the closure, and the members that lead from there to what `name` means. G++ calls
    /// the captured `x` `__x`. For Clang, the closure is `this`, and one of its members has the name `this`.
    pub(super) fn capture(
        &self,
        inline_depth: usize,
        name: &str,
    ) -> Option<(Variable, Vec<String>)> {
        let marked = self.variable_in(inline_depth, "__closure");
        let (closure, own, object) = match marked {
            Some(closure) => (closure, format!("__{name}"), "__this"),
            None => (
                self.variable_in(inline_depth, "this")?,
                name.to_owned(),
                "this",
            ),
        };
        let ty = closure.ty();
        if ty.language() != Language::Cpp {
            return None;
        }
        let captured = member_type(&ty, object);
        if object == "this" && captured.is_none() {
            return None;
        }
        if is_in_each_object(&ty, &own) {
            return Some((closure, vec![own]));
        }
        let is_member = captured.is_some_and(|object| is_in_each_object(&object, name));
        is_member.then(|| (closure, vec![object.to_owned(), name.to_owned()]))
    }

    /// Returns whether a function around the frame's function in the source declares a variable of this name.
    pub(super) fn is_declared_around(&self, name: &str) -> bool {
        let around = scope::enclosing(self.site);
        around.iter().any(|outer| !outer.called(name).is_empty())
    }

    /// Returns a variable of the innermost function around the frame's function in the source that declares it.
    pub(super) fn declared_around(&self, name: &str, at: Span) -> Answer<Option<Value>> {
        let around = scope::enclosing(self.site);
        let declares = |outer: &Enclosing| !outer.called(name).is_empty();
        let Some(level) = around.iter().position(declares) else {
            return Ok(None);
        };
        let outer = &around[level];
        let is_cpp = language_at(self.site) == Language::Cpp;
        let own = outer.called(name);
        let fixed = own.first().filter(|one| one.is_static(self.site));
        if let Some(fixed) = fixed.filter(|_| own.len() == 1) {
            return Ok(Some(fixed.read(self.site)));
        }
        let unknown = |why: Diagnostic| {
            let what = Diagnostic {
                message: format!("{name} is a variable of {}: {}", outer.name(), why.message),
                hint: why.hint,
            };
            EvalError::unknown(at, what)
        };
        if is_cpp {
            // Which blocks are around a class or a lambda is not stated.
            return Err(unknown(match own.len() {
                1 => "it cannot be reached from here".into(),
                _ => which_of(&own),
            }));
        }
        let mut index = self.context.index;
        for outer in &around[..=level] {
            index = self.frame_around(index, outer).map_err(unknown)?;
        }
        let read = self.in_site(index, |site| {
            variable_at(site, name).map(|variable| variable.read(site))
        });
        match read.flatten() {
            Some(value) => Ok(Some(value)),
            None => Err(unknown(
                "it is not in scope where that function stands".into(),
            )),
        }
    }

    /// Finds the frame of the call that frame `index`, of a function nested in `outer`, belongs to.
    fn frame_around(&self, index: usize, outer: &Enclosing) -> Result<usize, Diagnostic> {
        let link = self.in_site(index, scope::static_link).unwrap_or(Ok(None));
        let link = link.map_err(|why| Diagnostic {
            message: why.reason,
            hint: why.hint,
        })?;
        let inner = index + 1..self.context.frames.len();
        let is_call = |at: &usize| self.in_site(*at, |site| outer.is_at(site)) == Some(true);
        let mut calls = inner.filter(is_call);
        let Some(link) = link else {
            return match (calls.next(), calls.next()) {
                (Some(only), None) => Ok(only),
                (None, _) => Err(format!("no call of {} is among the frames", outer.name()).into()),
                _ => Err(format!(
                    "{} is called several times, and which call this one belongs to is not known",
                    outer.name()
                )
                .into()),
            };
        };
        let base = |at: &usize| self.in_site(*at, scope::frame_base)?.ok();
        let cfa = |at: usize| self.context.frames.get(at)?.cfa;
        let holds = |at: &usize, slot: u64| {
            let (Some(below), Some(end)) = (cfa(at - 1), cfa(*at)) else {
                return false;
            };
            (below..end).contains(&slot)
        };
        let is_it = |at: &usize| match link.base {
            Some(stated) if base(at) == Some(stated) => true,
            _ => link.slot.is_some_and(|slot| holds(at, slot)),
        };
        calls
            .find(is_it)
            .ok_or_else(|| format!("its call of {} is not among the frames", outer.name()).into())
    }

    fn in_site<T>(&self, index: usize, work: impl FnOnce(&FrameContext<'_>) -> T) -> Option<T> {
        let Context {
            space,
            machine,
            frames,
            ..
        } = self.context;
        at_frame(space, machine, frames, index, work)
    }
}

/// Explains that several variables of one name may be meant.
fn which_of(all: &[Variable]) -> Diagnostic {
    let lines: Vec<String> = all
        .iter()
        .filter_map(|one| Some(one.line?.to_string()))
        .collect();
    let message = format!(
        "it has several, of lines {}, and the compiler does not say which is in scope here",
        lines.join(" and ")
    );
    message.into()
}
