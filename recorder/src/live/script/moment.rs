//! A moment of a stopped thread, as seen by JavaScript conditions. Frames and values are looked up on demand, and at
//! most once.

use std::{
    cell::{OnceCell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::Arc,
};

use ::values::containers::Container;
use ::values::{RenderOptions, render};
use debuginfo::value::Look;
use debuginfo::{AddressSpace, Frame, Machine, Register, Value, backtrace};
use expr::{Context, PlainValue};

use super::{
    known::{Found, KnownNames},
    program::{Answer, Handle, Program, Seen},
    values::{self, reason},
};

/// Minimum number of elements to walk at once in a container without random access.
const FIRST_WALK: usize = 1024;

pub struct Moment {
    space: Arc<AddressSpace>,
    machine: Box<dyn Machine>,
    /// Number of frames to search for names: one, or several for watched memory, since the writing function may not
    /// have the names.
    asked: usize,
    /// Maximum number of frames to unwind. The caller's frame gives values that only it still has.
    unwound: usize,
    /// The frame itself, without its callers: most values need none, and unwinding costs as much as all the rest.
    innermost: OnceCell<Vec<Frame>>,
    frames: OnceCell<Vec<Frame>>,
    names: RefCell<HashMap<String, Answer<Option<Seen>>>>,
    /// The values handed out, by handle.
    values: RefCell<Vec<Value>>,
    /// Elements of containers walked so far.
    walked: RefCell<HashMap<Handle, Vec<Value>>>,
    /// The cached names where the thread is, if its frame is the first to search.
    known: Option<(Rc<KnownNames>, u64)>,
}

impl Moment {
    /// A moment of a thread. Names are looked up in the innermost `asked` frames, of at most `unwound`.
    pub fn new(
        space: Arc<AddressSpace>,
        machine: Box<dyn Machine>,
        known: &Rc<KnownNames>,
        asked: usize,
        unwound: usize,
    ) -> Moment {
        let pc = machine.register(Register::RIP).ok();
        let pc = pc.filter(|_| machine.calls_to_come() == 0);
        Moment {
            known: pc.map(|(pc, _)| (Rc::clone(known), pc)),
            space,
            machine,
            asked,
            unwound,
            innermost: OnceCell::new(),
            frames: OnceCell::new(),
            names: RefCell::default(),
            values: RefCell::default(),
            walked: RefCell::default(),
        }
    }

    fn frames(&self) -> &[Frame] {
        let unwind = || backtrace(&self.space, &*self.machine, self.unwound).frames;
        self.frames.get_or_init(unwind)
    }

    fn context(&self, index: usize) -> Context<'_> {
        self.context_of(self.frames(), index)
    }

    fn context_of<'m>(&'m self, frames: &'m [Frame], index: usize) -> Context<'m> {
        Context::new(&self.space, &*self.machine, frames, index)
    }

    /// Finds a variable of the innermost frame whose value needs no caller.
    fn find_innermost(&self, name: &str) -> Option<Value> {
        let unwind = || backtrace(&self.space, &*self.machine, 1).frames;
        let frames = self.innermost.get_or_init(unwind);
        let found = expr::find_local(name, &self.context_of(frames, 0)).ok()??;
        found.bytes.is_ok().then_some(found)
    }

    /// Returns the context for reading values.
    pub(super) fn look(&self) -> Look<'_> {
        Look {
            space: &self.space,
            machine: &*self.machine,
        }
    }

    /// Keeps a value and returns its handle.
    pub(super) fn keep(&self, value: Value) -> Handle {
        let mut values = self.values.borrow_mut();
        values.push(value);
        values.len() - 1
    }

    /// Replaces the value of a handle.
    pub(super) fn replace(&self, handle: Handle, value: Value) {
        if let Some(kept) = self.values.borrow_mut().get_mut(handle) {
            *kept = value;
        }
    }

    fn value(&self, handle: Handle) -> Answer<Value> {
        let values = self.values.borrow();
        let found = values.get(handle).cloned();
        found.ok_or_else(|| "this value is not of this hit".to_owned())
    }

    fn find_local(&self, name: &str) -> Answer<Option<Seen>> {
        if let Some(register) = name.strip_prefix('$') {
            return match Register::by_name(register) {
                Some(_) => self.expression(name).map(Some),
                None => Ok(None),
            };
        }
        if let Some((known, pc)) = &self.known {
            match known.local(name, &self.space, *pc, &*self.machine) {
                Found::Value(value) => return Ok(Some(self.named(name, value))),
                Found::Nothing if self.asked == 1 => return Ok(None),
                Found::Nothing | Found::Unsure => {}
            }
        }
        if let Some(value) = self.find_innermost(name) {
            return Ok(Some(self.named(name, value)));
        }
        for index in 0..self.frames().len().min(self.asked).max(1) {
            if let Some(value) = expr::find_local(name, &self.context(index))? {
                return Ok(Some(self.named(name, value)));
            }
        }
        Ok(None)
    }

    /// Converts a named value. If it is unknown, the reason includes the name.
    fn named(&self, name: &str, value: Value) -> Seen {
        match values::seen(self, value) {
            Seen::Unknown(why) if why == values::OPTIMIZED_OUT => {
                Seen::Unknown(format!("{name} is optimized out here"))
            }
            Seen::Unknown(why) => Seen::Unknown(format!("{name} is not known: {why}")),
            seen => seen,
        }
    }

    /// Walks a container from its beginning, to at least `wanted` elements if it has them.
    fn walk(&self, of: Handle, container: &Container, wanted: usize) -> Answer<()> {
        let mut walked = self.walked.borrow_mut();
        let known = walked.entry(of).or_default();
        if known.len() >= wanted {
            return Ok(());
        }
        let limit = wanted.max(known.len() * 2).max(FIRST_WALK);
        let entries = container.entries(limit, &self.look());
        if let (Some(why), true) = (entries.error, entries.list.len() < wanted) {
            return Err(why.to_string());
        }
        *known = entries.list.into_iter().map(|entry| entry.value).collect();
        Ok(())
    }

    fn contained(
        &self,
        of: Handle,
        container: &Container,
        from: usize,
        count: usize,
    ) -> Answer<Vec<Value>> {
        let len = match container.len(&self.look()) {
            Some(Ok(len)) => usize::try_from(len).unwrap_or(usize::MAX),
            Some(Err(why)) => return Err(why.to_string()),
            None => return Err("it has no elements".to_owned()),
        };
        let count = count.min(len.saturating_sub(from));
        let known = self.walked.borrow().get(&of).map_or(0, Vec::len);
        // A single distant element is looked up directly; consecutive ones are walked.
        if from > known.max(FIRST_WALK) {
            let numbers = from..from + count;
            let found = numbers.map(|at| container.at(at as u64, &self.look()));
            return found
                .collect::<Result<_, _>>()
                .map_err(|why| why.to_string());
        }
        self.walk(of, container, from + count)?;
        let walked = self.walked.borrow();
        let known = walked.get(&of).map_or(&[][..], |known| known);
        Ok(known.iter().skip(from).take(count).cloned().collect())
    }
}

impl Program for Moment {
    fn local(&self, name: &str) -> Answer<Option<Seen>> {
        if let Some((known, pc)) = &self.known
            && let Some(plain) = known.plain_local(name, &self.space, *pc, &*self.machine)
        {
            return Ok(Some(match plain {
                PlainValue::Bool(value) => Seen::Bool(value),
                PlainValue::Integer(value) => Seen::Integer(value),
                PlainValue::Float(value) => Seen::Float(value),
            }));
        }
        if let Some(known) = self.names.borrow().get(name) {
            return known.clone();
        }
        let found = self.find_local(name);
        let mut names = self.names.borrow_mut();
        names.insert(name.to_owned(), found.clone());
        found
    }

    fn global(&self, name: &str) -> Option<Seen> {
        if name == expr::HIT_COUNT {
            let found = expr::find_global(name, &self.context(0))?;
            return Some(self.named(name, found));
        }
        if let Some((known, pc)) = &self.known {
            match known.global(name, &self.space, *pc, &*self.machine) {
                Found::Value(value) => return Some(self.named(name, value)),
                Found::Nothing => return None,
                Found::Unsure => {}
            }
        }
        let value = expr::find_global(name, &self.context(0))?;
        Some(self.named(name, value))
    }

    fn unknown(&self, name: &str) -> String {
        expr::unknown_name(name, &self.context(0))
    }

    fn argument(&self, number: u32) -> Answer<Seen> {
        if let Some((known, pc)) = &self.known
            && let Found::Value(value) = known.argument(number, &self.space, *pc, &*self.machine)
        {
            return Ok(self.named(&format!("args[{number}]"), value));
        }
        let value = expr::argument(i128::from(number), &self.context(0))?;
        Ok(self.named(&format!("args[{number}]"), value))
    }

    fn argument_count(&self) -> u32 {
        let count = expr::argument_count(&self.context(0));
        let count = count.and_then(|count| count.as_integer().ok());
        count
            .and_then(|count| u32::try_from(count).ok())
            .unwrap_or(0)
    }

    fn expression(&self, text: &str) -> Answer<Seen> {
        let context = self.context(0);
        let is_type = |name: &str| expr::is_type(name, &context);
        let parsed = expr::parse_with(text, &is_type).map_err(|error| error.one_line())?;
        let value = expr::evaluate(&parsed, &context).map_err(|error| error.one_line())?;
        Ok(self.named(text, value))
    }

    fn member(&self, of: Handle, name: &str) -> Answer<Option<Seen>> {
        let value = self.value(of)?;
        let found = values::member(self, &value, name)?;
        Ok(found.map(|seen| match seen {
            Seen::Unknown(why) if why == values::OPTIMIZED_OUT => {
                Seen::Unknown(format!("{name} is optimized out here"))
            }
            seen => seen,
        }))
    }

    fn members(&self, of: Handle) -> Vec<String> {
        let value = self.value(of);
        value.map_or(Vec::new(), |value| values::members(self, &value))
    }

    fn missing(&self, of: Handle, name: &str) -> String {
        match self.value(of) {
            Ok(value) => values::missing(self, &value, name),
            Err(why) => why,
        }
    }

    fn elements(&self, of: Handle, from: u64, count: usize) -> Answer<Vec<Seen>> {
        let value = self.value(of)?;
        let first = usize::try_from(from).map_err(|_| format!("there is no element {from}"))?;
        if let Some(container) = Container::of(&value, &self.look()) {
            let container = container.map_err(|why| why.to_string())?;
            let found = self.contained(of, &container, first, count)?;
            return Ok(found.into_iter().map(|v| values::seen(self, v)).collect());
        }
        let len = value.ty.strip().count().unwrap_or(0);
        let end = len.min(from.saturating_add(count as u64));
        let element = |at: u64| match value.nth(at, &self.look()) {
            Ok(value) => values::seen(self, value),
            Err(error) => Seen::Unknown(values::reason(&error)),
        };
        Ok((from..end).map(element).collect())
    }

    fn at(&self, of: Handle, index: i64) -> Answer<Seen> {
        let found = self.value(of)?.index(index, &self.look());
        found
            .map(|value| values::seen(self, value))
            .map_err(|error| reason(&error))
    }

    fn text(&self, of: Handle) -> String {
        match self
            .value(of)
            .and_then(|value| values::holder(self, &value))
        {
            Ok(value) => render(
                &value,
                &RenderOptions::default(),
                &*self.machine,
                &self.space,
            ),
            Err(why) => format!("<error: {why}>"),
        }
    }
}
