//! Variables of functions whose writes are logged: where a call has them, and whether a write is theirs.
//!
//! The debug information must state one place in the frame for the whole call. Compilers reuse memory: a write belongs to the
//! innermost variable that is visible where the call stands.

use std::cell::RefCell;

use debuginfo::scope::{Variable, variable_at, variables_at, variables_of};
use debuginfo::{
    AddressSpace, Certainty, Diagnostic, Frame, FrameRegisters, InnermostFrame, LinePlace, Machine,
    Register, Unknown, Wish, at_frame,
};
use expr::Context;

use super::logged_place::{LoggedRange, check_len, parsed};

/// A register's value in a call that does not exist: some address of a stack.
const SOME_STACK: u64 = 0x7fff_ffff_0000;

/// A variable of a function, or a part of one, whose place in a call is known once the frame is.
#[derive(Clone, Debug)]
pub(crate) struct CallVariable {
    variable: Variable,
    /// The expression, without the function's name.
    inside: String,
    /// Where a call has set up its frame.
    pub at: u64,
    /// The first instruction of its function.
    pub entry: u64,
    /// An address at which it is visible.
    seen_at: u64,
    pub len: u64,
}

/// Finds the variable `name` that `text` begins with in each copy of its function.
///
/// # Errors
/// It cannot be logged in each call.
pub(super) fn in_each_call(
    text: &str,
    (function, name): (&str, &str),
    space: &AddressSpace,
) -> Result<Vec<CallVariable>, Diagnostic> {
    let places = space.function_places(function);
    let found = match places.iter().any(|place| place.inlined) {
        true => Err(format!(
            "calls of {function} are inlined, and the end of an inlined call cannot be seen"
        )),
        false if places.is_empty() => Err(format!("no code of {function} was found")),
        false => {
            let inside = expr::without_path(text, function);
            let copies = places.iter();
            copies
                .map(|place| CallVariable::of(&inside, name, place, space))
                .collect()
        }
    };
    found.map_err(|why| {
        let what = Diagnostic::new(format!("the writes of {text} cannot be logged: {why}"));
        let moves = |place: &LinePlace| {
            let variable = the_only(name, place.address, space);
            !place.inlined
                && variable.is_ok_and(|(variable, _)| variable.why_unsettled().is_some())
        };
        let inside = expr::without_path(text, function);
        what.with_hint(match places.iter().any(moves) {
            // Writes to memory do not tell what a register holds.
            true => format!(
                "see it line by line: record --full, then break {function}, continue, and at each next: print {inside}"
            ),
            false => format!("find every write afterwards: record --full, then last-write {text}"),
        })
    })
}

impl CallVariable {
    fn of(
        inside: &str,
        name: &str,
        place: &LinePlace,
        space: &AddressSpace,
    ) -> Result<Self, String> {
        let (variable, seen_at) = the_only(name, place.address, space)?;
        if let Some(why) = variable.why_unsettled() {
            return Err(why.to_owned());
        }
        let function = space.function_at(place.address);
        let frame = InnermostFrame::at(space, place.address, usize::MAX);
        let registers = FrameRegisters::partly(|_| Some(SOME_STACK), Wish::default());
        let frame = frame.and_then(|frame| frame.of(registers));
        let (Some(function), Some(frame)) = (function, frame) else {
            return Err("where a call has its variables is not known".to_owned());
        };
        let mut found = Self {
            variable,
            inside: inside.to_owned(),
            at: place.address,
            entry: function.entry,
            seen_at,
            len: 0,
        };
        let machine = Blank::default();
        let frame = found.seen_from(&frame);
        let part = found.evaluated(&frame, space, &machine)?;
        let whole = found.whole(&frame, space, &machine);
        let whole = whole.ok_or("its place is computed")?;
        let read = machine.read.take();
        if !read.iter().all(|read| whole.has_all_of(*read)) || !whole.has_all_of(part) {
            return Err(
                "it is reached through a pointer, an index or a reference of the call, which may change".to_owned(),
            );
        }
        check_len(inside, part).map_err(|error| error.one_line())?;
        found.len = part.len;
        Ok(found)
    }

    /// Returns whether its value comes from its function's caller.
    pub fn is_parameter(&self) -> bool {
        self.variable.is_parameter
    }

    /// The frame, where the variable is visible.
    fn seen_from(&self, frame: &Frame) -> Frame {
        Frame {
            lookup_pc: self.seen_at,
            inlined: false,
            inline_depth: 0,
            ..frame.clone()
        }
    }

    /// Returns its memory in a call that has just set up `frame`.
    ///
    /// # Errors
    /// Why it has none.
    pub fn place_in(
        &self,
        frame: &Frame,
        space: &AddressSpace,
        machine: &dyn Machine,
    ) -> Result<LoggedRange, String> {
        self.evaluated(&self.seen_from(frame), space, machine)
    }

    fn evaluated(
        &self,
        frame: &Frame,
        space: &AddressSpace,
        machine: &dyn Machine,
    ) -> Result<LoggedRange, String> {
        let context = Context::new(space, machine, std::slice::from_ref(frame), 0);
        let expression = parsed(&self.inside, &context).map_err(|error| error.one_line())?;
        let value = expr::evaluate(&expression, &context).map_err(|error| error.one_line())?;
        if value.bits.is_some() {
            return Err("it is a bit field, and only whole bytes are watched".to_owned());
        }
        match (value.address(), value.ty.size()) {
            (Some(address), Some(len)) => Ok(LoggedRange { address, len }),
            _ => Err("it does not lie in memory".to_owned()),
        }
    }

    /// The memory of the whole variable.
    fn whole(
        &self,
        frame: &Frame,
        space: &AddressSpace,
        machine: &dyn Machine,
    ) -> Option<LoggedRange> {
        let frames = std::slice::from_ref(frame);
        at_frame(space, machine, frames, 0, |site| {
            let value = self.variable.read(site);
            let (address, len) = (value.address()?, value.ty.size()?);
            Some(LoggedRange { address, len })
        })?
    }

    /// Returns whether `place` belongs to the variable where a call stands: `frames` are the calls inlined there and the call
    /// itself, as they are in `all`.
    pub fn owns(
        &self,
        place: LoggedRange,
        (all, frames): (&[Frame], std::ops::RangeInclusive<usize>),
        space: &AddressSpace,
        machine: &dyn Machine,
    ) -> bool {
        let mut owners = frames.filter_map(|index| {
            at_frame(space, machine, all, index, |site| {
                let mut visible = variables_at(site).into_iter();
                // Others are found in memory of another variable while they have its value.
                visible.find(|variable| {
                    let value = variable.read(site);
                    let there = value.address().zip(value.ty.size());
                    there.is_some_and(|(address, len)| place.has_some_of(address, len))
                        && variable.why_unsettled().is_none()
                })
            })?
        });
        owners
            .next()
            .is_some_and(|owner| owner.is_same(&self.variable))
    }
}

/// Finds the variable of a name in a function, and an address at which it is visible.
fn the_only(name: &str, at: u64, space: &AddressSpace) -> Result<(Variable, u64), String> {
    let all = variables_of(space, at).into_iter();
    let named: Vec<Variable> = all.filter(|variable| variable.name == name).collect();
    let outermost = named.iter().filter(|variable| variable.scope_depth == 0);
    let outermost: Vec<&Variable> = outermost.collect();
    let variable = match (&*outermost, &*named) {
        ([one], _) => *one,
        (_, [one]) => one,
        (_, []) => return Err(format!("the function has no variable {name}")),
        _ => {
            let lines = named.iter().filter_map(|variable| variable.line);
            let lines: Vec<String> = lines.map(|line| line.to_string()).collect();
            return Err(format!(
                "the function has several variables of that name (lines {})",
                lines.join(", ")
            ));
        }
    };
    let mapped = space.at(at).ok_or("its module is not loaded")?;
    let seen_at = variable.block_begins(mapped).unwrap_or(at);
    let machine = Blank::default();
    let site = debuginfo::FrameContext {
        lookup_pc: seen_at,
        ..debuginfo::FrameContext::outside(space, &machine)
    };
    match variable_at(&site, name) {
        Some(seen) if seen.is_same(variable) => Ok((variable.clone(), seen_at)),
        _ => Err("where it is visible is not known".to_owned()),
    }
}

/// A machine whose words are all 1, so that no pointer is null. It notes what was read.
#[derive(Default)]
struct Blank {
    read: RefCell<Vec<LoggedRange>>,
}

impl Machine for Blank {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from(at.is_multiple_of(8));
        }
        let len = bytes.len() as u64;
        self.read.borrow_mut().push(LoggedRange { address, len });
        Ok(Certainty::Known)
    }

    fn register(&self, _: Register) -> Result<(u64, Certainty), Unknown> {
        Ok((SOME_STACK, Certainty::Known))
    }

    fn vector(&self, _: Register) -> Result<([u8; 16], Certainty), Unknown> {
        Ok(([0; 16], Certainty::Known))
    }
}
