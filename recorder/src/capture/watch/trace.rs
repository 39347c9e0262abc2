//! Finds the pointer paths to the memory that an expression reads.
//!
//! The expression is evaluated on a machine where each word of memory, and each register that the runtime has, holds
//! the address of a region of its own. A read within a region therefore goes through that word or register. This
//! reveals the path to every byte without knowing the pointers of the program. In a second run, data shorter than a
//! word holds another number. If other memory is read then, the path depends on numbers, which the runtime cannot
//! follow.

use std::cell::RefCell;

use debuginfo::value::Look;
use debuginfo::{
    AddressSpace, Certainty, Diagnostic, EntryPlace, Frame, Machine, Mapped, Register, TypeKind,
    Unknown, Value, backtrace, backtrace_of_caller,
};
use expr::{BinaryOp, Context, Expr, ExprKind, is_called};
use store::control::{FunctionDef, ParameterPlace};
use values::containers::Container;

use super::pointer_path::{PointerPath, Read, Reads, Until, without_parts, without_steps};

/// Regions lie where no program maps memory, far enough apart for any offset. Numbers, such as the lengths of
/// containers, are addresses of regions too, so that many elements must appear to fit into memory.
const REGIONS_AT: u64 = 0x10_0000_0000;
/// The distance between regions is a multiple of most element sizes: some containers store a pointer to their end.
const REGION_LEN: u64 = 256 * 9 * 5 * 7 * 11 * 13 * 17 * 19;
const MAX_REGIONS: usize = 256;
/// How far pointers move in the second run: further than the length of any value, with bits set in each of the low
/// bytes.
const MOVED: u64 = 0x0101_0110;
/// Maximum number of pointers to follow in one path.
const MAX_STEPS: usize = 8;
/// Maximum number of pieces of memory that one expression may read.
const MAX_READS: usize = 1000;
const DEPENDS: &str =
    "which memory it looks at depends on a number: only addresses can be followed";
const AT_ONCE: &str = "it looks at more than 256 bytes at once: watch a part of it";
/// Maximum number of bytes of one value, or of the text or elements that it points to.
const MAX_LEN: usize = 256;
/// Maximum number of bytes to read at once on the way to a value, enough for pointers and slices. Larger objects are
/// read in parts.
const MAX_STEP_LEN: usize = 16;
/// Maximum depth of inlined calls inside a call.
const MAX_INLINED: usize = 64;
/// Registers that hold the same value in the caller as at the start of the callee, as far as unwinders know:
/// callee-saved registers (System V ABI for x86-64, figure 3.4) and rsp.
const KEPT: [u16; 7] = [3, 6, 7, 12, 13, 14, 15];
/// rax to r15.
const GENERAL: u16 = 16;

/// Where a thread is when an expression is examined.
#[derive(Clone, Copy)]
pub(super) enum Standing<'a> {
    /// Anywhere: only globals have a value.
    Anywhere,
    /// At the first instruction of a function, which is at `pc`.
    Entry { function: &'a FunctionDef, pc: u64 },
    /// At the entry of a callee that will return to this address.
    Calling(u64),
    /// Just returned to this address.
    Returned(u64),
}

impl Standing<'_> {
    fn pc(self) -> Option<u64> {
        match self {
            Standing::Anywhere => None,
            Standing::Entry { pc, .. } | Standing::Calling(pc) | Standing::Returned(pc) => Some(pc),
        }
    }

    /// Returns whether the runtime has the register. For a frame, rsp is its value after the return.
    fn has(self, register: Register) -> bool {
        match self {
            Standing::Anywhere => false,
            Standing::Entry { .. } => {
                register == Register::RSP || ParameterPlace::INT_REGISTERS.contains(&register.0)
            }
            Standing::Calling(_) => KEPT.contains(&register.0),
            Standing::Returned(_) => register.0 < GENERAL,
        }
    }
}

/// Why an expression cannot be watched.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// It names something that no module has. A module loaded later may have it.
    NotThere(Diagnostic),
    /// It reads no memory.
    NoMemory,
    /// It can never be watched.
    Wrong(Diagnostic),
}

/// Finds the memory that the value of `text` consists of: paths and lengths.
pub(super) fn ways(
    text: &str,
    space: &AddressSpace,
    standing: Standing<'_>,
) -> std::result::Result<Reads, Problem> {
    ways_in(text, space, (standing, None))
}

/// Like [`ways`], in the innermost copy of `function` that is inlined where the thread is.
pub(super) fn ways_in_copy(
    text: &str,
    function: &str,
    space: &AddressSpace,
    standing: Standing<'_>,
) -> std::result::Result<Reads, Problem> {
    ways_in(text, space, (standing, Some(function)))
}

/// Where a thread is, and the inlined function whose frame is examined, if any.
type Place<'a> = (Standing<'a>, Option<&'a str>);

fn ways_in(
    text: &str,
    space: &AddressSpace,
    place: Place<'_>,
) -> std::result::Result<Reads, Problem> {
    match ways_by(text, space, place, MAX_STEP_LEN) {
        // The index of an array element may depend on a number. Then the whole array is captured.
        Err(Problem::Wrong(why)) => match ways_by(text, space, place, MAX_LEN) {
            Err(_) if why.message != AT_ONCE => Err(Problem::Wrong(why)),
            found => found,
        },
        found => found,
    }
}

/// As [`ways`], but reads at most `step_len` bytes at once on the way to the value.
fn ways_by(
    text: &str,
    space: &AddressSpace,
    place: Place<'_>,
    step_len: usize,
) -> std::result::Result<Reads, Problem> {
    let [first, second] = [0, 1].map(|fill| ways_with(text, space, place, (step_len, fill)));
    let (first, second) = (first?, second?);
    match first == second {
        true => Ok(without_parts(without_steps(first))),
        false => Err(Problem::Wrong(DEPENDS.into())),
    }
}

fn ways_with(
    text: &str,
    space: &AddressSpace,
    (standing, copy): Place<'_>,
    (step_len, fill): (usize, u8),
) -> std::result::Result<Reads, Problem> {
    let is_static = |address| space.modules().iter().any(|mapped| has(mapped, address));
    let machine = Tracing {
        is_static: &is_static,
        standing,
        calls_to_come: copy.map_or(usize::MAX, |_| 0),
        step_len,
        fill,
        seen: RefCell::default(),
    };
    let frames = frames(space, &machine);
    let index = match copy {
        None => frames.len().saturating_sub(1),
        Some(function) => innermost_copy(&frames, function)?,
    };
    // Memory read to find frames is not part of the value.
    let seen = machine.seen.take();
    machine.seen.borrow_mut().regions = seen.regions;
    let context = Context::new(space, &machine, &frames, index);
    let is_type = |name: &str| expr::is_type(name, &context);
    let expression = expr::parse_with(text, &is_type).map_err(|error| {
        Problem::Wrong(Diagnostic {
            message: format!("{} (at character {})", error.message, error.position + 1),
            hint: error.hint,
        })
    })?;
    if chooses(&expression) {
        return Err(Problem::Wrong(DEPENDS.into()));
    }
    let look = Look {
        space,
        machine: &machine,
    };
    // The value of a reference is its referent.
    let value = expr::evaluate(&expression, &context)
        .map(|value| value.unreferenced(&look).unwrap_or(value));
    if let Some(reason) = machine.seen.borrow_mut().refused.take() {
        return Err(Problem::Wrong(reason.into()));
    }
    let value = value.map_err(|error| match error.missing.is_some() {
        true => Problem::NotThere(error.into()),
        false => Problem::Wrong(error.into()),
    })?;
    machine
        .note_whole(&value)
        .map_err(|why| Problem::Wrong(why.into()))?;
    machine.note_contents(&value, &look);
    let seen = machine.seen.into_inner();
    match seen.reads.is_empty() {
        true => Err(Problem::NoMemory),
        false => Ok(seen.reads),
    }
}

/// Returns the frame of the function where the thread is, after those of functions inlined there.
fn frames(space: &AddressSpace, machine: &Tracing<'_>) -> Vec<Frame> {
    let mut frames = match machine.standing {
        Standing::Anywhere => Vec::new(),
        Standing::Entry { .. } => backtrace(space, machine, 1).frames,
        Standing::Calling(_) => backtrace_of_caller(space, machine, MAX_INLINED).frames,
        Standing::Returned(_) => backtrace(space, machine, MAX_INLINED).frames,
    };
    let physical = frames.iter().position(|frame| !frame.inlined);
    frames.truncate(physical.map_or(0, |index| index + 1));
    frames
}

/// Returns the index of the innermost frame of an inlined function.
fn innermost_copy(frames: &[Frame], function: &str) -> std::result::Result<usize, Problem> {
    let is_copy = |frame: &Frame| {
        let name = frame.function.as_deref().filter(|_| frame.inlined);
        name.is_some_and(|name| is_called(name, function))
    };
    let found = frames.iter().position(is_copy);
    found.ok_or_else(|| Problem::Wrong(format!("{function} is not inlined there").into()))
}

/// Returns whether a number decides which part of the expression yields the value.
fn chooses(expression: &Expr) -> bool {
    let mut found = matches!(
        expression.kind,
        ExprKind::Conditional { .. } | ExprKind::Binary(BinaryOp::And | BinaryOp::Or, ..)
    );
    expression
        .kind
        .for_each_child(|child| found |= chooses(child));
    found
}

/// Returns whether the module's file, or its zero-initialised data, covers `address`.
fn has(mapped: &Mapped, address: u64) -> bool {
    let svma = mapped.svma(address).0;
    let segments = mapped.module.load_segments().iter();
    segments
        .map(|segment| segment.vaddr.0..segment.vaddr.0.saturating_add(segment.memsz))
        .any(|range| range.contains(&svma))
}

/// A machine that records what is read.
struct Tracing<'a> {
    is_static: &'a dyn Fn(u64) -> bool,
    standing: Standing<'a>,
    /// Inlined calls that have no frames: all, or none if the frame of one is examined.
    calls_to_come: usize,
    /// Maximum number of bytes in one read.
    step_len: usize,
    /// The value of bytes that do not form a whole word.
    fill: u8,
    seen: RefCell<Seen>,
}

#[derive(Default)]
struct Seen {
    reads: Reads,
    /// For each region, what holds its address.
    regions: Vec<Holder>,
    refused: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Holder {
    /// The word at the end of this path.
    Word(PointerPath),
    Register(Register),
}

impl Seen {
    /// Returns the path to `address`; `None` if the address was not computed from a pointer.
    fn way_to(
        &self,
        address: u64,
        is_static: &dyn Fn(u64) -> bool,
        fill: u8,
    ) -> Option<PointerPath> {
        let end = REGIONS_AT + MAX_REGIONS as u64 * region_len(fill);
        if !(REGIONS_AT..end).contains(&address) {
            return is_static(address).then(|| PointerPath {
                base: None,
                address,
                offsets: Vec::new(),
            });
        }
        let region = (address - REGIONS_AT) / region_len(fill);
        let offset = address.wrapping_sub(pointer_to(region, fill));
        Some(match self.regions.get(region as usize)? {
            Holder::Register(register) => PointerPath {
                base: Some(*register),
                address: offset,
                offsets: Vec::new(),
            },
            Holder::Word(way) => {
                let mut way = way.clone();
                way.offsets.push(offset);
                way
            }
        })
    }

    /// Returns the address of the region for `holder`. Each holder has its own region.
    fn region(&mut self, holder: Holder, fill: u8) -> u64 {
        let found = self.regions.iter().position(|other| *other == holder);
        let region = found.unwrap_or_else(|| {
            self.regions.push(holder);
            self.regions.len() - 1
        });
        pointer_to(region as u64, fill)
    }

    fn refuse(&mut self, reason: &str) -> Unknown {
        self.refused.get_or_insert_with(|| reason.to_owned());
        Unknown::because(reason.to_owned())
    }
}

impl Tracing<'_> {
    /// Records the bytes of the value itself, unless they were read on the way to it.
    ///
    /// # Errors
    /// If they cannot be captured.
    fn note_whole(&self, value: &Value) -> std::result::Result<(), String> {
        let Err(Unknown { reason, .. }) = &value.bytes else {
            return Ok(());
        };
        let size = value.ty.size().and_then(|size| usize::try_from(size).ok());
        let (Some(address), Some(len)) = (value.address(), size) else {
            return Err(reason.clone());
        };
        if len > MAX_LEN {
            return Err("its value is larger than 256 bytes: watch a part of it".to_owned());
        }
        self.note(address, len, Until::Len)
            .ok_or_else(|| DEPENDS.to_owned())
    }

    /// Records what is shown with the value: the text of a string, the elements of a vector, as far as they are
    /// captured. The elements of node-based containers are left out.
    fn note_contents(&self, value: &Value, look: &Look<'_>) {
        let before = self.seen.borrow().reads.clone();
        let is_text = |value: &Value| {
            let target = value.ty.strip().target()?;
            let is_one = target.size() == Some(1);
            let is_character = matches!(target.strip().kind(), TypeKind::Char { .. });
            (value.kind() == TypeKind::Pointer && is_one && is_character).then_some(())
        };
        let (start, until) = match Container::of(value, look) {
            Some(Ok(container)) => (
                container.start(),
                match container.is_terminated() {
                    true => Until::Nul,
                    false => Until::There,
                },
            ),
            Some(Err(_)) => (None, Until::There),
            None => (
                is_text(value).and_then(|()| value.as_address().ok()),
                Until::Nul,
            ),
        };
        let mut seen = self.seen.borrow_mut();
        // The reads that determined this lie in the value, or cannot be followed.
        seen.reads = before;
        seen.refused = None;
        drop(seen);
        if let Some(start) = start {
            self.note(start, MAX_LEN, until);
        }
    }

    /// Records memory; `None` if no path leads there.
    fn note(&self, address: u64, len: usize, until: Until) -> Option<()> {
        let mut seen = self.seen.borrow_mut();
        let way = seen.way_to(address, self.is_static, self.fill)?;
        if way.offsets.len() <= MAX_STEPS {
            seen.reads.push(Read { way, len, until });
        }
        Some(())
    }
}

/// Points to the middle of a region, since offsets may be negative. The exact place depends on `fill`, so that using
/// part of an address as a number shows.
fn pointer_to(region: u64, fill: u8) -> u64 {
    let len = region_len(fill);
    REGIONS_AT + region * len + len / 2 + u64::from(fill) * MOVED
}

/// Distances between pointers are numbers too, so they differ in the second run.
fn region_len(fill: u8) -> u64 {
    REGION_LEN * (1 + u64::from(fill))
}

impl Machine for Tracing<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> std::result::Result<Certainty, Unknown> {
        let mut seen = self.seen.borrow_mut();
        if bytes.len() > self.step_len {
            return Err(Unknown::because(AT_ONCE));
        }
        let Some(way) = seen.way_to(address, self.is_static, self.fill) else {
            return Err(seen.refuse(DEPENDS));
        };
        if way.offsets.len() > MAX_STEPS {
            return Err(seen.refuse(
                "it follows more than 8 pointers: what is searched for in a container cannot be watched",
            ));
        }
        if seen.reads.len() >= MAX_READS {
            return Err(seen.refuse("it looks at too much: watch a part of it"));
        }
        bytes.fill(self.fill);
        let (words, _) = bytes.as_chunks_mut::<8>();
        for (index, word) in words.iter_mut().enumerate() {
            if seen.regions.len() < MAX_REGIONS {
                let mut at = way.clone();
                let offset = 8 * index as u64;
                match at.offsets.last_mut() {
                    Some(last) => *last = last.wrapping_add(offset),
                    None => at.address = at.address.wrapping_add(offset),
                }
                *word = seen.region(Holder::Word(at), self.fill).to_le_bytes();
            }
        }
        seen.reads.push(Read {
            way,
            len: bytes.len(),
            until: Until::Len,
        });
        Ok(Certainty::Known)
    }

    fn is_symbolic(&self) -> bool {
        true
    }

    fn register(&self, register: Register) -> std::result::Result<(u64, Certainty), Unknown> {
        let mut seen = self.seen.borrow_mut();
        if let Some(pc) = self.standing.pc().filter(|_| register == Register::RIP) {
            return Ok((pc, Certainty::Known));
        }
        if self.standing.has(register) || register == Register::FS_BASE {
            let held = seen.region(Holder::Register(register), self.fill);
            return Ok((held, Certainty::Known));
        }
        Err(seen.refuse(match self.standing {
            Standing::Anywhere => "registers cannot be watched: --regs captures them",
            Standing::Entry { .. } => "it is not an argument",
            _ => "it lies in a register that calls do not keep: a logpoint shows it",
        }))
    }

    fn calls_to_come(&self) -> usize {
        self.calls_to_come
    }

    fn entry_parameter(&self, name: &str) -> Option<EntryPlace> {
        let Standing::Entry { function, .. } = self.standing else {
            return None;
        };
        let param = function.params.iter().find(|p| p.name == name)?;
        let registers = param.registers()?;
        Some(EntryPlace {
            first: Register(registers.first),
            second: registers.second.map(|(from, rest)| (from, Register(rest))),
            is_indirect: param.is_indirect,
        })
    }

    fn vector(&self, _: Register) -> std::result::Result<([u8; 16], Certainty), Unknown> {
        let mut seen = self.seen.borrow_mut();
        Err(seen.refuse("vector registers cannot be watched"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::pointer_path::{When, program};
    use super::*;

    /// Everything below 64 KiB is static memory of the program.
    fn machine() -> Tracing<'static> {
        Tracing {
            is_static: &|address| address < 0x10000,
            standing: Standing::Anywhere,
            calls_to_come: usize::MAX,
            step_len: MAX_STEP_LEN,
            fill: 0,
            seen: RefCell::default(),
        }
    }

    fn read(machine: &Tracing<'_>, address: u64) -> u64 {
        let mut bytes = [0; 8];
        machine.memory(address, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    }

    #[test]
    fn what_is_read_through_pointers_becomes_steps() {
        let machine = machine();
        let queue = read(&machine, 0x5000);
        let next = read(&machine, queue.wrapping_sub(16));
        machine.memory(next + 4, &mut [0; 4]).unwrap();
        machine.memory(0x6000, &mut [0; 1]).unwrap();
        let reads = without_steps(machine.seen.into_inner().reads);
        let minus_16 = 16u64.wrapping_neg();
        assert_eq!(
            program(&reads, When::Always),
            [2, 0x5000, minus_16, 4, 4, 0, 0x6000, 1]
        );
    }

    #[test]
    fn structures_hold_a_pointer_in_each_word() {
        let machine = machine();
        let mut bytes = [0; 16];
        machine.memory(0x5000, &mut bytes).unwrap();
        let second = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
        machine.memory(second, &mut [0; 2]).unwrap();
        let reads = without_steps(machine.seen.into_inner().reads);
        assert_eq!(
            program(&reads, When::Always),
            [0, 0x5000, 16, 1, 0x5008, 0, 2]
        );
    }

    #[test]
    fn what_cannot_be_watched_is_refused() {
        let machine = machine();
        assert!(machine.memory(0x5000, &mut [0; 257]).is_err());
        assert!(machine.register(Register::RSP).is_err());
        let index = read(&machine, 0x5000);
        let element = 0x7000u64.wrapping_add(index.wrapping_mul(8));
        assert!(machine.memory(element, &mut [0; 4]).is_err());
        assert!(machine.seen.borrow().refused.is_some());
    }
}
