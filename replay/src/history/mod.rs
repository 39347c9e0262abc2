//! The value of an expression over time, as far as a recording shows it.
//!
//! A value is evaluated only at events where it can be known. All values can be known at stops, changes from outside
//! and copies of memory; globals also where memory of modules was captured; variables of a function where it is
//! entered, and where something was captured at a call that it makes. Only known values count: a stale or unknown one
//! is neither a value nor a change. Values of different threads are compared only where the threads share the variable.
//! A variable means that of the innermost call. A list of all changes also has those of the calls around it in a recursion,
//! where the entry of the inner call shows them.

mod caller;
mod changes;
mod entries;
mod last;
mod logged;
mod parameter;
mod tracking;
mod unseen;
mod walk;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use debuginfo::value::Look;
use debuginfo::{
    AddressSpace, Diagnostic, Frame, FrameContext, Machine, Type, Value, at_frame, has_variable,
    variables_at,
};
use expr::{Context, Expr, ExprKind};
use values::{RenderOptions, render_known, render_shortened};

pub use changes::{Change, Changes, Progress, Stand};
pub use last::LastChange;
pub use logged::type_of_logged;
pub use parameter::Parameters;
use rustc_hash::FxHashMap;
use walk::When;

use crate::error::{Error, Result};
use crate::machine::StateMachine;
use crate::moment::Moment;
use crate::state::State;
use crate::timeline::Timeline;

/// The variables that an expression refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryScope {
    /// Thread-independent names: globals, and registers of each thread.
    Everywhere,
    /// Variables of functions, in the innermost call of one of them.
    Within(Functions),
}

/// The functions whose variables are tracked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Functions {
    /// Their ids, if they were traced.
    pub ids: BTreeSet<u32>,
    /// The first instruction of an untraced one, in the process.
    pub entry: Option<u64>,
    /// Their name.
    pub name: String,
    /// The variables are those of the function `name` where it is inlined into these functions.
    pub is_inlined: bool,
}

/// An expression that is tracked through time.
pub struct Tracked {
    text: String,
    expression: Expr,
    scope: HistoryScope,
    has_registers: bool,
    parameters: Parameters,
    /// The names in the expression.
    names: Vec<String>,
    /// How values are shown, in addition to the texts that are compared.
    showing: Option<RenderOptions>,
    /// The functions' own names for their variables, by entry and inlined calls around.
    own_names: Mutex<HashMap<(u64, usize), Arc<[String]>>>,
    /// Its type where it is the target of logged writes.
    logged_type: OnceLock<Option<Type>>,
    /// The functions whose entries were judged: whether none shows the value unless something was captured there.
    unseen: FxHashMap<u32, bool>,
}

/// A known value as text.
struct Seen {
    /// What is compared.
    whole: String,
    /// What is shown, if that leaves something out.
    shown: Option<String>,
}

/// The value of an expression at a moment.
enum Sight {
    /// Its value, and the thread if it is that thread's own.
    Known(Seen, Option<u32>),
    /// It has a meaning, but its value is stale or unknown.
    Unknown,
    /// It has no meaning there, and why.
    Meaningless(Diagnostic),
    /// The function is not on the stack, or the thread's place in it is unknown.
    Elsewhere,
}

impl Tracked {
    fn new(text: &str, expression: Expr, scope: HistoryScope) -> Self {
        Self {
            text: text.to_owned(),
            has_registers: has_registers(&expression),
            names: names(&expression),
            own_names: Mutex::default(),
            logged_type: OnceLock::new(),
            unseen: FxHashMap::default(),
            expression,
            scope,
            parameters: Parameters::default(),
            showing: None,
        }
    }

    /// Returns the expression as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the variables it refers to.
    #[must_use]
    pub fn scope(&self) -> &HistoryScope {
        &self.scope
    }

    /// Shows values in this way too, in addition to the texts that are compared.
    #[must_use]
    pub fn showing(self, options: RenderOptions) -> Self {
        Self {
            showing: Some(options),
            ..self
        }
    }

    /// Evaluates the expression at an event.
    fn sight(&mut self, timeline: &Timeline, when: &When) -> Result<Sight> {
        if let Some(sight) = self.sight_of_target(timeline, when)? {
            return Ok(sight);
        }
        if let (Some(call), ExprKind::Name(name)) = (&when.entered, &self.expression.kind)
            && let Some(value) = self.parameters.at_entry(timeline, call, name)?
        {
            return Ok(match value {
                // A number is never too long.
                Some(whole) => Sight::Known(Seen { whole, shown: None }, when.tid),
                None => Sight::Unknown,
            });
        }
        let tid = match when.tid {
            Some(tid) => tid,
            None => timeline.thread_at(when.seq)?,
        };
        match &self.scope {
            HistoryScope::Everywhere => self.sight_anywhere(timeline, when.seq, tid),
            HistoryScope::Within(functions) => {
                self.sight_within(timeline, functions, when.seq, tid, when.frames)
            }
        }
    }

    fn sight_anywhere(&self, timeline: &Timeline, seq: u64, tid: u32) -> Result<Sight> {
        let logged = timeline.logged_bytes()?.at(seq);
        let written = logged.map(|written| (written.address, written.bytes));
        if let Some(sight) = written.and_then(|written| self.sight_logged(timeline, seq, written)) {
            return Ok(sight);
        }
        let state = State::new(timeline, seq, tid)?;
        let space = timeline.modules.space(seq);
        let machine = StateMachine::new(&state, &space);
        let context = outside(&space, &machine);
        // Variables of one thread alone lie in no module.
        let is_own = self.has_registers
            || names(&self.expression).iter().any(|name| {
                let address = place_of(name, &context);
                address.is_some_and(|address| !timeline.modules.covers(address, seq))
            });
        Ok(self.seen(&context, is_own.then_some(tid)))
    }

    fn sight_within(
        &self,
        timeline: &Timeline,
        functions: &Functions,
        seq: u64,
        tid: u32,
        limit: usize,
    ) -> Result<Sight> {
        let moment = Moment::at(timeline, seq, tid, limit)?;
        let frames = &moment.trace.backtrace.frames;
        let mut entries: Vec<u64> = functions.entry.into_iter().collect();
        let ids = functions.ids.iter();
        entries.extend(ids.filter_map(|id| timeline.entry_of(*id, seq)));
        if entries.is_empty()
            && let Some(why) = functions.why_unusable(timeline)
        {
            let name = &functions.name;
            let what = format!("nothing is known of {name}: {why}");
            return Ok(Sight::Meaningless(what.into()));
        }
        let is_one = |frame: &Frame| {
            let is_there = |entry: u64| entries.contains(&entry);
            frame.function_entry.is_some_and(is_there) && functions.is_frame(frame)
        };
        let index = frames.iter().position(is_one);
        let Some(index) = index.filter(|index| frames[*index].pc_is_known) else {
            return Ok(Sight::Elsewhere);
        };
        let machine = StateMachine::new(&moment.state, &moment.space);
        Ok(self.sight_in(&moment.space, &machine, (frames, index), tid))
    }

    /// Evaluates the expression in a frame of one of the functions.
    fn sight_in(
        &self,
        space: &AddressSpace,
        machine: &dyn Machine,
        (frames, index): (&[Frame], usize),
        tid: u32,
    ) -> Sight {
        // The name means the function's own variable, even before its scope begins, and never another one of that name.
        let hidden = at_frame(space, machine, frames, index, |site| {
            let visible = variables_at(site);
            let own = self.own_names(site, frames[index].function_entry);
            own.iter()
                .any(|name| visible.iter().all(|v| v.name != *name))
        });
        if hidden == Some(true) {
            return Sight::Elsewhere;
        }
        let context = Context::new(space, machine, frames, index);
        self.seen(&context, Some(tid))
    }

    /// The names that a function has for variables in any of its blocks.
    fn own_names(&self, site: &FrameContext<'_>, entry: Option<u64>) -> Arc<[String]> {
        let key = (entry.unwrap_or(0), site.inline_depth);
        let known = self.own_names.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        let read = || {
            let names = self.names.iter().filter(|name| has_variable(site, name));
            names.cloned().collect()
        };
        Arc::clone(known.entry(key).or_insert_with(read))
    }

    fn seen(&self, context: &Context<'_>, own: Option<u32>) -> Sight {
        let value = match expr::evaluate(&self.expression, context) {
            Ok(value) => value,
            Err(error) => return Sight::Meaningless(error.into()),
        };
        let look = Look {
            space: context.space,
            machine: context.machine,
        };
        self.shown(&value, &look, own)
    }

    /// The text of a value.
    fn shown(&self, value: &Value, look: &Look<'_>, own: Option<u32>) -> Sight {
        match render_known(value, &RenderOptions::default(), look) {
            Some(whole) => {
                let short = self.showing.as_ref();
                let short = short.map(|options| render_shortened(value, options, look));
                let short = short.filter(|short| short.left_out.is_some());
                let shown = short.map(|short| short.text);
                Sight::Known(Seen { whole, shown }, own)
            }
            None => Sight::Unknown,
        }
    }
}

impl Functions {
    /// The reason why the functions are unknown, if their modules cannot be used.
    fn why_unusable(&self, timeline: &Timeline) -> Option<String> {
        let mut functions = self.ids.iter().filter_map(|id| timeline.function(*id));
        functions.find_map(|function| timeline.modules.why_unusable(function.module))
    }

    /// Returns whether a frame that lies in one of the functions has the variables: an inlined copy has its own.
    fn is_frame(&self, frame: &Frame) -> bool {
        match frame.inlined {
            true => self.is_inlined && self.is_copy(frame),
            false => !self.is_inlined,
        }
    }

    fn is_copy(&self, frame: &Frame) -> bool {
        let name = frame.function.as_deref();
        name.is_some_and(|name| expr::is_called(name, &self.name))
    }

    /// The function that contains the code of a frame.
    fn of_frame(timeline: &Timeline, frame: &debuginfo::Frame, seq: u64) -> Option<Self> {
        let entry = frame.function_entry?;
        let is_it = |id: &u32| timeline.entry_of(*id, seq) == Some(entry);
        let ids = timeline.functions().map(|function| function.id);
        let ids: BTreeSet<u32> = ids.filter(is_it).collect();
        Some(Self {
            entry: ids.is_empty().then_some(entry),
            ids,
            name: frame.function.clone().unwrap_or_default(),
            is_inlined: frame.inlined,
        })
    }
}

fn outside<'c>(space: &'c AddressSpace, machine: &'c dyn Machine) -> Context<'c> {
    Context::new(space, machine, &[], 0)
}

fn parsed(text: &str, context: &Context<'_>) -> Result<Expr> {
    let is_type = |name: &str| expr::is_type(name, context);
    let expression = expr::parse_with(text, &is_type).map_err(|error| Error::Expression {
        what: Diagnostic {
            message: format!("the expression \"{text}\": {error}"),
            hint: error.hint,
        },
        position: Some(error.position),
    })?;
    // A register that does not exist is unknown everywhere: an error, not a value without a history.
    let mut wrong = None;
    each_node(&expression, &mut |node| {
        if let ExprKind::Register(name) = &node.kind
            && debuginfo::Register::by_name(name).is_none()
            && debuginfo::RegisterPart::by_name(name).is_none()
        {
            wrong = expr::evaluate(node, context).err();
        }
    });
    match wrong {
        Some(error) => Err(Error::expression(error)),
        None => Ok(expression),
    }
}

/// The address of `name`, if it lies in memory.
fn place_of(name: &str, context: &Context<'_>) -> Option<u64> {
    let named = Expr::new(ExprKind::Name(name.to_owned()), expr::Span::default());
    expr::evaluate(&named, context).ok()?.address()
}

/// All names in an expression that stand alone.
fn names(expression: &Expr) -> Vec<String> {
    let mut found = Vec::new();
    each_node(expression, &mut |node| {
        if let ExprKind::Name(name) = &node.kind {
            found.push(name.clone());
        }
    });
    found
}

fn has_registers(expression: &Expr) -> bool {
    let mut found = false;
    each_node(expression, &mut |node| {
        found |= matches!(node.kind, ExprKind::Register(_));
    });
    found
}

fn each_node<'e>(expression: &'e Expr, see: &mut dyn FnMut(&'e Expr)) {
    see(expression);
    expression
        .kind
        .for_each_child(|child| each_node(child, see));
}
