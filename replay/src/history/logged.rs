//! Values at logged writes, of which there may be millions: only the written bytes are read if they suffice.

use std::cell::Cell;

use debuginfo::scope::variables_of;
use debuginfo::value::Look;
use debuginfo::{
    AddressSpace, Certainty, Frame, FrameRegisters, InnermostFrame, Machine, Register, Type,
    Unknown, Value, Wish,
};
use expr::Context;

use super::walk::When;
use super::{Functions, HistoryScope, Sight, Tracked, outside, parsed};
use crate::error::Result;
use crate::timeline::Timeline;

/// The bytes that a write has left at an address; nothing else is known.
struct Left<'b> {
    address: u64,
    bytes: &'b [u8],
    /// Some of them were read.
    is_used: Cell<bool>,
    /// Bytes outside these were requested.
    lacks: Cell<bool>,
}

impl Left<'_> {
    fn inside(&self, address: u64, len: usize) -> Option<&[u8]> {
        let offset = usize::try_from(address.checked_sub(self.address)?).ok()?;
        self.bytes.get(offset..offset.checked_add(len)?)
    }

    /// Returns whether some bytes of a range are among its own.
    fn overlaps(&self, address: u64, len: usize) -> bool {
        let end = self.address.saturating_add(self.bytes.len() as u64);
        address < end && self.address < address.saturating_add(len as u64)
    }
}

impl Machine for Left<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        let overlaps = self.overlaps(address, bytes.len());
        self.is_used.set(self.is_used.get() || overlaps);
        match self.inside(address, bytes.len()) {
            Some(found) => {
                bytes.copy_from_slice(found);
                Ok(Certainty::Known)
            }
            None => {
                self.lacks.set(true);
                Err(Unknown::because("it was not written"))
            }
        }
    }

    fn register(&self, _: Register) -> Result<(u64, Certainty), Unknown> {
        self.lacks.set(true);
        Err(Unknown::because("it was not written"))
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        self.register(register).map(|_| ([0; 16], Certainty::Known))
    }
}

/// Memory whose words are all 1, and registers: enough for the type of an expression. No pointer is null.
struct One;

impl Machine for One {
    fn memory(&self, _: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from(at.is_multiple_of(8));
        }
        Ok(Certainty::Known)
    }

    fn register(&self, _: Register) -> Result<(u64, Certainty), Unknown> {
        Ok((1, Certainty::Known))
    }

    fn vector(&self, _: Register) -> Result<([u8; 16], Certainty), Unknown> {
        Ok(([0; 16], Certainty::Known))
    }
}

impl Functions {
    /// Returns whether a place whose writes are logged is a variable of one of the functions, as in `push::q`.
    pub(super) fn is_of(&self, target: &str) -> bool {
        let name = self.name.strip_prefix("*::").unwrap_or(&self.name);
        expr::path_of(target)
            .is_some_and(|path| expr::is_called(&self.name, path) || expr::is_called(path, name))
    }
}

/// Returns the type of a place whose writes are logged, by the name that the user gave it.
#[must_use]
pub fn type_of_logged(timeline: &Timeline, target: &str, seq: u64) -> Option<Type> {
    let tracked = Tracked::everywhere(timeline, target).ok()?;
    tracked.type_of(timeline, &timeline.modules.space(seq), seq)
}

impl Tracked {
    /// Tracks a variable of a function whose calls are not recorded, but the writes to the variable are.
    pub(super) fn in_logged(timeline: &Timeline, text: &str) -> Result<Option<Self>> {
        let targets = timeline.logged_bytes()?.targets();
        let Some(path) = expr::path_of(text).filter(|_| targets.iter().any(|it| it == text)) else {
            return Ok(None);
        };
        let space = timeline.modules.space(timeline.last());
        let places = space.function_places(path);
        let entry = places
            .first()
            .and_then(|place| space.function_at(place.address));
        let Some(entry) = entry else {
            return Ok(None);
        };
        let inside = expr::without_path(text, path);
        let expression = parsed(&inside, &outside(&space, &One))?;
        let scope = HistoryScope::Within(Functions {
            ids: timeline.functions_matching(path),
            entry: Some(entry.entry),
            name: path.to_owned(),
            is_inlined: false,
        });
        Ok(Some(Self::new(text, expression, scope)))
    }

    /// What the expression is at a logged write to what it names; `None`: it is no such write.
    pub(super) fn sight_of_target(
        &self,
        timeline: &Timeline,
        when: &When,
    ) -> Result<Option<Sight>> {
        let logged = timeline.logged_bytes()?;
        let Some(written) = logged.at(when.seq) else {
            return Ok(None);
        };
        let own = match &self.scope {
            HistoryScope::Everywhere if written.target != self.text => return Ok(None),
            HistoryScope::Everywhere => None,
            HistoryScope::Within(functions) => {
                let inside = |text: &str| match expr::path_of(text) {
                    Some(path) => expr::without_path(text, path),
                    None => text.to_owned(),
                };
                let is_it =
                    functions.is_of(written.target) && inside(written.target) == inside(&self.text);
                if !is_it {
                    return Ok(Some(Sight::Elsewhere));
                }
                logged.owner(written.address)
            }
        };
        let space = timeline.modules.space(when.seq);
        let read = || self.type_of(timeline, &space, when.seq);
        let Some(ty) = self.logged_type.get_or_init(read) else {
            return Ok(None);
        };
        if ty.size() != Some(written.bytes.len() as u64) {
            return Ok(None);
        }
        let machine = Left {
            address: written.address,
            bytes: written.bytes,
            is_used: Cell::new(false),
            lacks: Cell::new(false),
        };
        let value = Value::at(ty.clone(), written.address, &machine);
        let look = Look {
            space: &space,
            machine: &machine,
        };
        Ok(Some(self.shown(&value, &look, own)))
    }

    /// The type of the expression, which needs no values.
    fn type_of(&self, timeline: &Timeline, space: &AddressSpace, seq: u64) -> Option<Type> {
        let frames: Vec<Frame> = match &self.scope {
            HistoryScope::Everywhere => Vec::new(),
            HistoryScope::Within(functions) => {
                let ids = functions.ids.iter();
                let entry = ids.filter_map(|id| timeline.entry_of(*id, seq)).next();
                vec![self.frame_in(entry.or(functions.entry)?, space)?]
            }
        };
        let context = Context::new(space, &One, &frames, 0);
        let value = expr::evaluate(&self.expression, &context).ok()?;
        let look = Look {
            space,
            machine: &One,
        };
        Some(value.unreferenced(&look).unwrap_or(value).ty)
    }

    /// A frame of a function, where its variable of the expression is visible.
    fn frame_in(&self, entry: u64, space: &AddressSpace) -> Option<Frame> {
        let at = space.function_at(entry)?.after_prologue;
        let all = variables_of(space, entry).into_iter();
        let its = all.filter(|variable| self.names.contains(&variable.name));
        let outermost = its.min_by_key(|variable| variable.scope_depth);
        let begins = outermost.and_then(|variable| variable.block_begins(space.at(at)?));
        let registers = FrameRegisters::partly(|_| Some(0), Wish::default());
        let frame = InnermostFrame::at(space, at, usize::MAX)?.of(registers)?;
        Some(Frame {
            lookup_pc: begins.unwrap_or(at),
            inlined: false,
            inline_depth: 0,
            ..frame
        })
    }

    /// Evaluates the expression where the program has just written `bytes` at `address`. `None`: more must be read.
    pub(super) fn sight_logged(
        &self,
        timeline: &Timeline,
        seq: u64,
        (address, bytes): (u64, &[u8]),
    ) -> Option<Sight> {
        let space = timeline.modules.space(seq);
        let machine = Left {
            address,
            bytes,
            is_used: Cell::new(false),
            lacks: Cell::new(false),
        };
        let sight = self.seen(&outside(&space, &machine), None);
        match (machine.lacks.get(), machine.is_used.get()) {
            (false, true) => Some(sight),
            // The rest of the expression is unknown at this event, or constant and was known before.
            (true, false) => Some(Sight::Unknown),
            _ => None,
        }
    }
}
