//! Which variables an expression means: those of the function that it names, those of a frame, or global ones.

use std::collections::BTreeSet;

use debuginfo::scope::variables_of_copy;
use debuginfo::{
    AddressSpace, Diagnostic, Frame, InlinedCopy, InnermostFrame, Role, Type, Wish, at_frame,
    has_variable, variables_at,
};
use expr::{Context, Expr, ExprKind};

use super::{Functions, HistoryScope, Tracked, names, outside, parsed, place_of};
use crate::error::{Error, Result};
use crate::event::Kind;
use crate::machine::StateMachine;
use crate::moment::Moment;
use crate::state::State;
use crate::timeline::Timeline;

/// Most frames around the inspected one that are unwound: the arguments that callers passed may give a parameter's
/// value.
const CALLERS: usize = 16;
/// Most frames that are searched for the function of a qualified variable.
const MOST_FRAMES: usize = 256;

impl Tracked {
    /// Tracks `text` as the function that it names sees it, as in `push::q->len`; otherwise as frame `frame` of thread
    /// `tid` at event `seq` sees it; if that frame is in no function, as global scope.
    ///
    /// # Errors
    /// [`Error::Expression`]: it is malformed, or names neither a variable there nor a global one.
    pub fn at(timeline: &Timeline, text: &str, seq: u64, tid: u32, frame: usize) -> Result<Self> {
        match Self::in_function(timeline, text, seq, tid)? {
            Some(found) => Ok(found),
            None => Self::here(timeline, text, seq, tid, frame),
        }
    }

    /// Tracks variables of the function that qualifies them; `None` if there is none: the qualifier may be a namespace.
    fn in_function(timeline: &Timeline, text: &str, seq: u64, tid: u32) -> Result<Option<Self>> {
        let Some(path) = expr::path_of(text) else {
            return Ok(None);
        };
        if Self::in_modules(timeline, text).is_ok() {
            return Ok(None);
        }
        if let Some(Ok(found)) = Self::in_named(timeline, text) {
            return Ok(Some(found));
        }
        if let Some(found) = Self::in_logged(timeline, text)? {
            return Ok(Some(found));
        }
        // The function may be unrecorded, but among the callers.
        let moment = Moment::at(timeline, seq, tid, MOST_FRAMES)?;
        let is_it = |frame: &Frame| {
            let name = frame.function.as_deref();
            frame.pc_is_known && name.is_some_and(|name| expr::is_called(name, path))
        };
        let frames = &moment.trace.backtrace.frames;
        let Some(index) = frames.iter().position(is_it) else {
            return Ok(None);
        };
        let inside = expr::without_path(text, path);
        let found = Self::here(timeline, &inside, seq, tid, index);
        let found = found
            .ok()
            .filter(|found| found.scope != HistoryScope::Everywhere);
        Ok(found.map(|found| Self {
            text: text.to_owned(),
            ..found
        }))
    }

    fn here(timeline: &Timeline, text: &str, seq: u64, tid: u32, frame: usize) -> Result<Self> {
        let moment = Moment::at(timeline, seq, tid, frame + 1 + CALLERS)?;
        let machine = StateMachine::new(&moment.state, &moment.space);
        let frames = &moment.trace.backtrace.frames;
        let here = frames.get(frame);
        let is_known = here.is_some_and(|frame| frame.pc_is_known);
        let context = Context::new(
            &moment.space,
            &machine,
            if is_known { frames } else { &[] },
            if is_known { frame } else { 0 },
        );
        let global = outside(&moment.space, &machine);
        let expression = parsed(text, &context)?;
        let names = names(&expression);
        let own: Vec<String> = match is_known {
            true => at_frame(&moment.space, &machine, frames, frame, |site| {
                variables_at(site)
                    .into_iter()
                    .map(|v| v.name.clone())
                    .collect()
            })
            .unwrap_or_default(),
            false => Vec::new(),
        };
        let function = here.and_then(|frame| Functions::of_frame(timeline, frame, seq));
        let is_own = names.iter().any(|name| {
            own.contains(name) || is_known && place_of(name, &context) != place_of(name, &global)
        });
        let wrong = match is_own {
            true => None,
            false => not_global(&names, &global),
        };
        let scope = match (function, is_own, wrong) {
            (_, false, None) => HistoryScope::Everywhere,
            (Some(_), false, Some(wrong))
                if !has_all(&names, (&moment.space, &machine), frames, frame) =>
            {
                return Self::in_modules(timeline, text)
                    .map_err(|last| wrong_at(text, wrong, last, (timeline, seq)));
            }
            (Some(function), _, _) => HistoryScope::Within(function),
            // Its module may be loaded later, or be unloaded.
            (None, _, Some(wrong)) => {
                return Self::in_modules(timeline, text)
                    .map_err(|last| wrong_at(text, wrong, last, (timeline, seq)));
            }
            (None, true, None) => HistoryScope::Everywhere,
        };
        Ok(Self::new(text, expression, scope))
    }

    /// Tracks a global variable or an expression over globals; otherwise variables of the function that it names, as in
    /// `push::q->len`.
    ///
    /// # Errors
    /// [`Error::Expression`]: it is malformed, or names something that no module has as a global variable.
    pub fn everywhere(timeline: &Timeline, text: &str) -> Result<Self> {
        let global = Self::in_modules(timeline, text);
        let named = global.or_else(|error| Self::in_named(timeline, text).unwrap_or(Err(error)));
        named.or_else(|error| Self::in_logged(timeline, text)?.ok_or(error))
    }

    /// Tracks an expression in the recorded function that it names; `None` if it names none.
    fn in_named(timeline: &Timeline, text: &str) -> Option<Result<Self>> {
        let path = expr::path_of(text)?;
        let name = [path.to_owned(), format!("*::{path}")]
            .into_iter()
            .find(|name| !timeline.functions_matching(name).is_empty());
        let inside = expr::without_path(text, path);
        let Some(name) = name else {
            let found = Self::in_copies(timeline, &inside, path).transpose()?;
            return Some(found.map(|found| Self {
                text: text.to_owned(),
                ..found
            }));
        };
        let found = match Self::within(timeline, &inside, &name) {
            Ok(found) => found,
            Err(error) => return Some(Err(error)),
        };
        found.may_mean_something(timeline).then(|| {
            Ok(Self {
                text: text.to_owned(),
                ..found
            })
        })
    }

    /// Tracks an expression in the copies of a function that are inlined into recorded ones; `None` if it has none, or
    /// not all the variables.
    fn in_copies(timeline: &Timeline, text: &str, function: &str) -> Result<Option<Self>> {
        let seq = timeline.last();
        let state = State::new(timeline, seq, timeline.thread_at(seq)?)?;
        let space = timeline.modules.space(seq);
        let machine = StateMachine::new(&state, &space);
        let global = outside(&space, &machine);
        let expression = parsed(text, &global)?;
        let names = names(&expression);
        let has_all = |copy: &InlinedCopy| {
            let own = variables_of_copy(&space, copy);
            let has = |name: &String| own.iter().any(|variable| variable.name == *name);
            let is_global =
                |name: &String| not_global(std::slice::from_ref(name), &global).is_none();
            names.iter().all(|name| has(name) || is_global(name))
        };
        let modules = space.modules().iter();
        let copies: Vec<InlinedCopy> = modules
            .flat_map(|mapped| mapped.inlined_copies(function))
            .collect();
        if !copies.first().is_some_and(has_all) {
            return Ok(None);
        }
        let entries: BTreeSet<u64> = copies.iter().map(|copy| copy.function_entry).collect();
        let is_around = |id: &u32| {
            let entry = timeline.entry_of(*id, seq);
            entry.is_some_and(|entry| entries.contains(&entry))
        };
        let ids = timeline.functions().map(|function| function.id);
        let functions = Functions {
            ids: ids.filter(is_around).collect(),
            entry: None,
            name: function.to_owned(),
            is_inlined: true,
        };
        let is_any = !functions.ids.is_empty();
        Ok(is_any.then(|| Self::new(text, expression, HistoryScope::Within(functions))))
    }

    /// Returns whether one of the functions has all named variables, or its variables are unknown.
    fn may_mean_something(&self, timeline: &Timeline) -> bool {
        let HistoryScope::Within(functions) = &self.scope else {
            return true;
        };
        let names = names(&self.expression);
        let seq = timeline.last();
        let state = timeline
            .thread_at(seq)
            .and_then(|tid| State::new(timeline, seq, tid));
        let Ok(state) = state else {
            return true;
        };
        let space = timeline.modules.space(seq);
        let machine = StateMachine::new(&state, &space);
        functions.ids.iter().any(|id| {
            let entry = timeline.entry_of(*id, seq);
            let frame = entry.and_then(|pc| InnermostFrame::at(&space, pc, usize::MAX));
            frame.is_none_or(|frame| {
                let frames = [frame.unread(Wish::default())];
                has_all(&names, (&space, &machine), &frames, 0)
            })
        })
    }

    fn in_modules(timeline: &Timeline, text: &str) -> Result<Self> {
        let unloads = timeline.marks.all(Kind::ModuleUnload).iter().rev();
        let before = unloads.filter_map(|mark| mark.seq.checked_sub(1));
        let mut wrong = None;
        for seq in std::iter::once(timeline.last()).chain(before) {
            let state = State::new(timeline, seq, timeline.thread_at(seq)?)?;
            let space = timeline.modules.space(seq);
            let machine = StateMachine::new(&state, &space);
            let context = outside(&space, &machine);
            let expression = parsed(text, &context)?;
            match not_global(&names(&expression), &context) {
                None => return Ok(Self::new(text, expression, HistoryScope::Everywhere)),
                Some(error) => wrong.get_or_insert(error),
            };
        }
        let wrong = wrong.expect("the last event was looked at");
        Err(with_absent(wrong, timeline, timeline.last()))
    }

    /// Tracks `text` in the functions called `function`, in which `*` matches any text.
    ///
    /// # Errors
    /// [`Error::Expression`]: it is malformed, or no recorded function has that name.
    pub fn within(timeline: &Timeline, text: &str, function: &str) -> Result<Self> {
        let ids = timeline.functions_matching(function);
        if ids.is_empty() {
            let what = Diagnostic::new(format!("no recorded function is called {function}"));
            return Err(Error::expression(
                what.with_hint("SELECT name FROM functions lists them"),
            ));
        }
        let seq = timeline.last();
        let state = State::new(timeline, seq, timeline.thread_at(seq)?)?;
        let space = timeline.modules.space(seq);
        let machine = StateMachine::new(&state, &space);
        let expression = parsed(text, &outside(&space, &machine))?;
        let functions = Functions {
            ids,
            entry: None,
            name: function.to_owned(),
            is_inlined: false,
        };
        Ok(Self::new(text, expression, HistoryScope::Within(functions)))
    }
}

/// The same error, with the unusable module that may cause it.
fn with_absent(error: Error, timeline: &Timeline, seq: u64) -> Error {
    match (error, timeline.modules.first_absent(seq)) {
        (Error::Expression { what, position }, Some(why)) => Error::Expression {
            what: Diagnostic::new(format!("{what} ({why})")),
            position,
        },
        (error, _) => error,
    }
}

/// Chooses the reason why names are wrong: here, or at the last event for a name with its function. Here, the module with the
/// function may not be mapped yet.
fn wrong_at(text: &str, here: Error, last: Error, (timeline, seq): (&Timeline, u64)) -> Error {
    match expr::path_of(text) {
        Some(_) => last,
        None => with_absent(here, timeline, seq),
    }
}

/// The reason why the first non-global one of `names` is not found.
fn not_global(names: &[String], context: &Context<'_>) -> Option<Error> {
    names.iter().find_map(|name| {
        let named = Expr::new(ExprKind::Name(name.clone()), expr::Span::default());
        let error = expr::evaluate(&named, context).err()?;
        let is_type = expr::is_type(name, context);
        (!is_type).then(|| Error::expression(error))
    })
}

/// Returns whether each non-global one of `names` is a variable somewhere in the function of a frame.
fn has_all(
    names: &[String],
    (space, machine): (&AddressSpace, &StateMachine<'_>),
    frames: &[Frame],
    frame: usize,
) -> bool {
    let global = outside(space, machine);
    let found = at_frame(space, machine, frames, frame, |site| {
        let has = |name: &String| {
            has_variable(site, name) || not_global(std::slice::from_ref(name), &global).is_none()
        };
        // Members of a method's object need no variable's name.
        let variables = variables_at(site);
        let this = variables.iter().find(|variable| variable.name == "this");
        let object = this.and_then(|this| this.ty().strip().target());
        let is_member = |name: &String| {
            object
                .as_ref()
                .is_some_and(|ty| has_member(ty, name, MAX_BASES))
        };
        names.iter().all(|name| has(name) || is_member(name))
    });
    found.unwrap_or(true)
}

/// Most levels of base classes that are searched.
const MAX_BASES: usize = 16;

fn has_member(ty: &Type, name: &str, depth: usize) -> bool {
    let members = ty.strip().members();
    let mut members = members.iter();
    members.any(|member| {
        let is_inside = member.name.is_none() || member.role != Role::Member;
        member.name.as_deref() == Some(name)
            || is_inside && depth > 0 && has_member(&member.ty, name, depth - 1)
    })
}
