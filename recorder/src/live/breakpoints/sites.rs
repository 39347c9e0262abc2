//! Places where a thread can be stopped: a trap byte, and a slot where the displaced instruction runs.
//!
//! A trap is never lifted while it is in use. A thread that continues from it jumps to the slot, so that no other
//! thread can run past meanwhile. Slots are never reused, because a thread may be in one, or return into one from a
//! signal handler, long after the trap is gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::PoisonError,
};

use super::compiled::Stub;
use crate::{
    displace::{MAX_TRAMPOLINE_BYTES, PATCH_BYTES, REACH, Trampoline, single},
    live::{
        error::{LiveError, LiveResult},
        model::{ProbeId, Tid},
        tracee::memory::{Covered, LiveMemory},
    },
};

/// `int3`.
pub(crate) const TRAP: u8 = 0xcc;
const LONGEST_INSTRUCTION: usize = 15;
const SLOT_ALIGNMENT: u64 = 16;

/// A user of a site, for which a thread is to stop there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum User {
    Probe(ProbeId),
    /// A thread that is stepping.
    Step(Tid),
    /// The unwinder or longjmp is about to leave frames, and a stepping thread needs to know the target.
    Unwind,
    /// A call whose variables' writes are logged returns there.
    Leave,
    /// The call whose variable a watchpoint watches returns there.
    Return(ProbeId),
}

/// A place where a thread can be stopped.
#[derive(Debug)]
pub(crate) struct BreakpointSite {
    /// The address of the instruction in the program.
    pub address: u64,
    /// Where the trap is: at `address`, or in the copy that a hook made.
    pub patched_at: u64,
    /// The displaced instruction.
    pub slot: Trampoline,
    pub users: BTreeSet<User>,
    /// Code that evaluates the probe in the program.
    pub compiled: Option<Compiled>,
}

/// A site's code, and the jump that leads there.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub stub: Stub,
    /// The instructions under the jump.
    pub copy: Trampoline,
    /// The address of each instruction in the copy, and its address in the program.
    pub exact: Vec<(u64, u64)>,
    pub jump: [u8; PATCH_BYTES],
    /// Whether the jump is in place.
    pub is_armed: bool,
}

impl BreakpointSite {
    /// Returns where a thread continues once its probe was evaluated.
    pub fn pass_at(&self) -> u64 {
        match &self.compiled {
            Some(compiled) if compiled.is_armed => compiled.copy.at,
            _ => self.slot.at,
        }
    }

    pub(super) fn is_armed(&self) -> bool {
        self.compiled.as_ref().is_some_and(|c| c.is_armed)
    }
}

/// A copy of instructions: its end, and where the program's instructions begin in it.
#[derive(Debug)]
pub(super) struct Copied {
    /// The site it belongs to.
    pub site: u64,
    pub end: u64,
    /// Address in the copy, address in the program.
    pub exact: Vec<(u64, u64)>,
}

/// The instructions of a stub that may fault, and where it continues then.
#[derive(Debug)]
pub(super) struct Faults {
    pub end: u64,
    pub loads: Vec<u64>,
    pub no_answer_at: u64,
}

/// All sites, including dropped ones: a thread may have run into a trap just before it was removed.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    pub(super) by_address: BTreeMap<u64, BreakpointSite>,
    pub(super) by_trap: BTreeMap<u64, u64>,
    pub(super) by_slot: BTreeMap<u64, Copied>,
    pub(super) stubs: BTreeMap<u64, Faults>,
    /// The jumps in place, by address, with their sites.
    pub(super) armed: BTreeMap<u64, u64>,
    regions: Vec<SlotRegion>,
}

#[derive(Debug)]
pub(crate) struct SlotRegion {
    pub range: Range<u64>,
    pub used: u64,
}

/// What is missing to create a site.
#[derive(Debug)]
pub(crate) enum Missing {
    /// Memory for slots within reach of this address.
    SlotsNear(u64),
    /// The site cannot be created.
    Refused(LiveError),
}

impl Sites {
    pub fn at(&self, address: u64) -> Option<&BreakpointSite> {
        self.by_address.get(&address)
    }

    /// Returns the site whose trap is, or was, at `address`.
    pub fn by_trap(&self, address: u64) -> Option<&BreakpointSite> {
        self.by_address.get(self.by_trap.get(&address)?)
    }

    /// Returns where a trap for `address` is, or would be.
    pub fn trap_address(&self, memory: &LiveMemory, address: u64) -> u64 {
        if let Some(site) = self.by_address.get(&address) {
            return site.patched_at;
        }
        let hooks = memory.hooks_now();
        let hook = hooks.over(address);
        hook.and_then(|(_, hook)| hook.trampoline.moved(address))
            .unwrap_or(address)
    }

    pub fn add_region(&mut self, range: Range<u64>) {
        self.regions.push(SlotRegion { range, used: 0 });
    }

    /// Returns the program's address for a `pc` in a slot or copy. The inner value is `None` unless an instruction
    /// begins exactly at `pc`.
    pub fn original_pc(&self, pc: u64) -> Option<Option<u64>> {
        let (_, copied) = self.by_slot.range(..=pc).next_back()?;
        let exact = copied.exact.iter().find(|(new, _)| *new == pc);
        (pc < copied.end).then(|| exact.map(|(_, original)| *original))
    }

    /// Returns the program's address of the instruction whose copy a thread has just executed, if it is at `pc` behind that copy,
    /// on its way back.
    pub fn executed_before(&self, pc: u64) -> Option<u64> {
        let (_, copied) = self.by_slot.range(..pc).next_back()?;
        let is_exact = copied.exact.iter().any(|(new, _)| *new == pc);
        let before = copied.exact.iter().filter(|(new, _)| *new < pc);
        let last = before.max_by_key(|(new, _)| *new)?;
        (pc < copied.end && !is_exact).then_some(last.1)
    }

    /// Returns whether `pc` lies in compiled probe code, where the registers are not the program's.
    pub fn is_judging(&self, pc: u64) -> bool {
        self.stub_at(pc).is_some()
    }

    /// Returns where the code continues after its load at `pc` has faulted.
    pub fn no_answer_at(&self, pc: u64) -> Option<u64> {
        let stub = self.stub_at(pc)?;
        stub.loads.contains(&pc).then_some(stub.no_answer_at)
    }

    fn stub_at(&self, pc: u64) -> Option<&Faults> {
        let (_, stub) = self.stubs.range(..=pc).next_back()?;
        (pc < stub.end).then_some(stub)
    }

    /// Makes threads stop at `address`, for `user`.
    pub fn add(&mut self, memory: &LiveMemory, address: u64, user: User) -> Result<(), Missing> {
        if let Some(site) = self.by_address.get_mut(&address) {
            let first = site.users.is_empty();
            site.users.insert(user);
            if first {
                let patched_at = site.patched_at;
                set_trap(memory, patched_at).map_err(Missing::Refused)?;
            }
            return Ok(());
        }
        let mut code = [0; LONGEST_INSTRUCTION];
        let read = memory.read(address, &mut code).or_else(|_| {
            // The last instruction before unmapped memory.
            code = [TRAP; LONGEST_INSTRUCTION];
            let bytes = memory.read_up_to(address, LONGEST_INSTRUCTION);
            code[..bytes.len()].copy_from_slice(&bytes);
            (!bytes.is_empty())
                .then_some(())
                .ok_or(std::io::ErrorKind::NotFound.into())
        });
        read.map_err(|_: std::io::Error| Missing::Refused(LiveError::Memory { address, len: 1 }))?;
        let (patched_at, resume) = self.around(memory, address)?;
        let displaced = single(&code, address, resume)
            .map_err(|refusal| refused(address, refusal.to_string()))?;
        let place = self.room_near(address).ok_or(Missing::SlotsNear(address))?;
        let slot = match displaced.encode(place) {
            Ok(slot) => slot,
            Err(crate::displace::Refusal::OutOfReach { .. }) => {
                return Err(Missing::SlotsNear(address));
            }
            Err(refusal) => return Err(refused(address, refusal.to_string())),
        };
        memory
            .write_raw(slot.at, &slot.bytes)
            .map_err(|_| Missing::SlotsNear(address))?;
        self.take_room(slot.at, slot.bytes.len() as u64);
        set_trap(memory, patched_at).map_err(Missing::Refused)?;
        self.by_trap.insert(patched_at, address);
        let copied = Copied {
            site: address,
            end: slot.at + slot.bytes.len() as u64,
            exact: slot.moves.iter().map(|m| (m.new, m.old)).collect(),
        };
        self.by_slot.insert(slot.at, copied);
        self.by_address.insert(
            address,
            BreakpointSite {
                address,
                patched_at,
                slot,
                users: BTreeSet::from([user]),
                compiled: None,
            },
        );
        Ok(())
    }

    /// Returns where the trap for `address` must be, and how to map the address of a following instruction. Both
    /// differ if a hook has moved the instruction.
    fn around(
        &self,
        memory: &LiveMemory,
        address: u64,
    ) -> Result<(u64, impl Fn(u64) -> u64 + use<>), Missing> {
        let hooks = memory.hooks_now();
        let Some((_, hook)) = hooks.over(address) else {
            return Ok((address, Resume::default().at()));
        };
        let Some(copy) = hook.trampoline.moved(address) else {
            let reason = "it is not the beginning of an instruction".to_owned();
            return Err(refused(address, reason));
        };
        let moves = hook.trampoline.moves.iter().map(|m| (m.old, m.new));
        Ok((
            copy,
            Resume {
                moves: moves.collect(),
            }
            .at(),
        ))
    }

    /// Returns where traps and jumps are, or have been.
    pub fn places(&self) -> impl Iterator<Item = u64> {
        self.by_address.values().map(|site| site.patched_at)
    }

    /// Removes a user. The trap goes with the last user. A jump there must already be gone.
    pub fn remove(&mut self, memory: &LiveMemory, address: u64, user: User) {
        let Some(site) = self.by_address.get_mut(&address) else {
            return;
        };
        if site.users.remove(&user) && site.users.is_empty() {
            assert!(
                !site.is_armed(),
                "the jump is taken away before its last user"
            );
            lift_trap(memory, site.patched_at);
        }
    }

    /// Removes all traps and jumps; the slots stay. No thread may run.
    pub fn lift_all(&mut self, memory: &LiveMemory) {
        for site in self.by_address.values_mut() {
            site.users.clear();
            if let Some(compiled) = &mut site.compiled {
                compiled.is_armed = false;
            }
        }
        self.armed.clear();
        let mut traps = memory.traps.write().unwrap_or_else(PoisonError::into_inner);
        for (at, covered) in std::mem::take(&mut *traps) {
            put_back(memory, at, covered);
        }
    }

    /// Forgets the sites in an unloaded module.
    pub fn forget(&mut self, memory: &LiveMemory, range: &Range<u64>) {
        let mut traps = memory.traps.write().unwrap_or_else(PoisonError::into_inner);
        self.by_address.retain(|address, site| {
            let stays = !range.contains(address);
            if !stays {
                let len = if site.is_armed() { PATCH_BYTES } else { 1 };
                for at in site.patched_at..site.patched_at + len as u64 {
                    traps.remove(&at);
                }
            }
            stays
        });
        self.armed.retain(|_, address| !range.contains(address));
        self.by_trap.retain(|_, address| !range.contains(address));
        self.by_slot
            .retain(|_, copied| !range.contains(&copied.site));
    }

    /// Forgets everything after the program has executed another program.
    pub fn clear(&mut self, memory: &LiveMemory) {
        memory
            .traps
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        *self = Self::default();
    }

    /// Allocates `len` bytes for something other than a slot.
    pub fn spare_room(&mut self, near: u64, len: u64) -> Option<u64> {
        let at = self.room_near(near)?;
        self.take_room(at, len);
        Some(at)
    }

    fn room_near(&self, address: u64) -> Option<u64> {
        self.room_of(address, MAX_TRAMPOLINE_BYTES as u64)
    }

    /// Returns an address with room for `len` bytes within reach of `address`.
    pub fn room_of(&self, address: u64, len: u64) -> Option<u64> {
        self.regions
            .iter()
            .find(|region| {
                let at = region.range.start + region.used;
                at.abs_diff(address) < REACH && at + len <= region.range.end
            })
            .map(|region| region.range.start + region.used)
    }

    /// Allocates `len` bytes at `at`, where there must be room.
    pub fn take_room(&mut self, at: u64, len: u64) {
        let region = self
            .regions
            .iter_mut()
            .find(|region| region.range.contains(&at))
            .expect("slots are made in regions");
        region.used = (at + len).next_multiple_of(SLOT_ALIGNMENT) - region.range.start;
    }
}

/// Where the program continues after a displaced instruction.
#[derive(Default)]
struct Resume {
    moves: Vec<(u64, u64)>,
}

impl Resume {
    fn at(self) -> impl Fn(u64) -> u64 + use<> {
        move |next| {
            let copy = self.moves.iter().find(|(old, _)| *old == next);
            copy.map_or(next, |(_, new)| *new)
        }
    }
}

fn refused(address: u64, reason: String) -> Missing {
    Missing::Refused(LiveError::CannotStop {
        address,
        reason,
        nearest: address,
    })
}

fn set_trap(memory: &LiveMemory, at: u64) -> LiveResult<()> {
    let missing = |_| LiveError::Memory {
        address: at,
        len: 1,
    };
    let mut original = [0];
    memory.read_raw(at, &mut original).map_err(missing)?;
    let mut traps = memory.traps.write().unwrap_or_else(PoisonError::into_inner);
    if traps.contains_key(&at) {
        return Ok(());
    }
    if let Some(guardian) = &memory.guardian {
        guardian.trap(at, original[0]);
    }
    let covered = Covered {
        original: original[0],
        ours: TRAP,
    };
    traps.insert(at, covered);
    let written = memory.write_raw(at, &[TRAP]);
    if written.is_err() {
        traps.remove(&at);
    }
    written.map_err(missing)
}

fn lift_trap(memory: &LiveMemory, at: u64) {
    let mut traps = memory.traps.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(covered) = traps.remove(&at) {
        put_back(memory, at, covered);
    }
}

fn put_back(memory: &LiveMemory, at: u64, covered: Covered) {
    let mut found = [0];
    // The module may be gone, or the program may have written other code there.
    if memory.read_raw(at, &mut found).is_ok() && found[0] == covered.ours {
        let _ = memory.write_raw(at, &[covered.original]);
    }
}
