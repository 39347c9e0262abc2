//! Watched expressions: which memory their values are made of, as steps that the runtime can take by itself.
//!
//! The expression is evaluated on a machine where each word of memory, and each register that has an argument, hold the
//! address of a region that nothing else uses. Whatever is read in such a region is read through that word: so the way to
//! every byte is known without knowing what pointers the program will have. A second time, what is shorter than a word holds
//! another number: if other memory is read then, the way depends on numbers, which the runtime cannot follow.
//!
//! An expression over global variables is captured at every enter and leave. One that names a parameter has a value where
//! the parameter's functions are entered: later its register may hold something else.

use std::cell::RefCell;

use agent::shared::{
    Shared, WATCH_BASE_SHIFT, WATCH_FUNCTION_SHIFT, WATCH_PARTLY, WATCH_TEXT, WATCH_WORDS,
};
use debuginfo::expr::{self, BinaryOp, Context, Expr, ExprKind};
use debuginfo::value::Look;
use debuginfo::value::containers::Container;
use debuginfo::{
    Certainty, EntryPlace, Machine, Mapped, Register, Space, TypeKind, Unknown, Value, backtrace,
};
use store::control::{FunctionDef, Place};

use crate::{Error, Result};

/// Regions lie where no program has anything, far enough from each other for any offset. Numbers are taken for addresses
/// too, lengths of containers for example: so many elements must be thought to fit into memory.
const REGIONS_AT: u64 = 0x10_0000_0000;
/// From one region to the next is a whole number of elements of most sizes: containers end where their second pointer says.
const REGION_LEN: u64 = 256 * 9 * 5 * 7 * 11 * 13 * 17 * 19;
const MAX_REGIONS: usize = 256;
/// By how much pointers differ the second time: more than any value is long, with bits in each of the low bytes.
const MOVED: u64 = 0x0101_0110;
/// Pointers that may be followed one after the other.
const MAX_STEPS: usize = 8;
/// Pieces of memory that one expression may look at.
const MAX_READS: usize = 1000;
const DEPENDS: &str =
    "which memory it looks at depends on a number: only addresses can be followed";
/// Bytes of one value, or of the text or the elements that it leads to.
const MAX_LEN: usize = 256;
/// Bytes that are read on the way to a value: pointers and slices. What is larger is not read, but parts of it.
const MAX_STEP_LEN: usize = 16;
/// The expressions, and what the runtime knows of them.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    all: Vec<Watch>,
    words: Vec<u64>,
}

#[derive(Debug)]
struct Watch {
    text: String,
    scope: Scope,
}

/// Where a watched expression has a value.
#[derive(Debug, PartialEq, Eq)]
enum Scope {
    /// Nowhere yet, and why.
    Nowhere(String),
    /// Where functions with a certain parameter are entered; more of them may come with other modules.
    Functions,
    Everywhere,
}

/// How to get to memory: from an address, through pointers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Way {
    /// The register that the address is counted from.
    base: Option<Register>,
    /// Counted from there, modulo 2^64.
    address: u64,
    /// Behind each pointer, how many bytes to go on, modulo 2^64.
    offsets: Vec<u64>,
}

/// A function as its first instruction is about to run.
#[derive(Clone, Copy)]
struct Entry<'a> {
    function: &'a FunctionDef,
    /// The instruction's address in the program.
    pc: u64,
}

impl Watches {
    /// Takes the expressions; none is looked for yet.
    pub(crate) fn new(expressions: &[String]) -> Self {
        let all = expressions.iter().map(|text| Watch {
            text: text.clone(),
            scope: Scope::Nowhere(String::new()),
        });
        Self {
            all: all.collect(),
            words: Vec::new(),
        }
    }

    /// Looks for what could not be found before, now that `space` is what is mapped and these functions are newly traced,
    /// and tells the runtime.
    ///
    /// # Errors
    /// [`Error::Watch`]: one is no expression, or too large.
    pub(crate) fn resolve(
        &mut self,
        space: &Space,
        functions: &[FunctionDef],
        shared: &Shared,
    ) -> Result<()> {
        let mut failed = None;
        for watch in &mut self.all {
            let refused = |reason: String| Error::Watch {
                expression: watch.text.clone(),
                reason,
            };
            let found = match words_of(&watch.text, &watch.scope, space, functions) {
                Ok(found) => found,
                Err(reason) => {
                    failed.get_or_insert(refused(reason));
                    continue;
                }
            };
            if self.words.len() + found.words.len() > WATCH_WORDS {
                let reason = match found.scope {
                    Scope::Functions => {
                        "too many functions have such a parameter: FUNCTION::PARAMETER names one"
                    }
                    _ => "there is no room for so many watches",
                };
                failed.get_or_insert(refused(reason.to_owned()));
                continue;
            }
            self.words.extend(found.words);
            watch.scope = found.scope;
        }
        shared.set_watches(&self.words);
        match failed {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Returns those that have not been found, and why.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all.iter().filter_map(|watch| match &watch.scope {
            Scope::Nowhere(why) => Some((watch.text.as_str(), why.as_str())),
            _ => None,
        })
    }

    /// Tells whether modules that come may have something to watch.
    pub(crate) fn may_find_more(&self) -> bool {
        let mut all = self.all.iter();
        all.any(|watch| watch.scope != Scope::Everywhere)
    }
}

/// What was found out about an expression.
struct Found {
    scope: Scope,
    /// What the runtime is to be told in addition.
    words: Vec<u64>,
}

/// Finds where an expression has a value. `scope`: what is known already.
///
/// # Errors
/// Why it can never be watched.
fn words_of(
    text: &str,
    scope: &Scope,
    space: &Space,
    functions: &[FunctionDef],
) -> std::result::Result<Found, String> {
    let mut scope = match scope {
        Scope::Everywhere => {
            return Ok(Found {
                scope: Scope::Everywhere,
                words: Vec::new(),
            });
        }
        Scope::Functions => Scope::Functions,
        Scope::Nowhere(_) => match ways(text, space, None) {
            Ok(found) => {
                return Ok(Found {
                    words: program(&found, None),
                    scope: Scope::Everywhere,
                });
            }
            Err(Problem::NotThere(reason)) => Scope::Nowhere(reason),
            // What a library calls so may be a function, and what is meant a parameter.
            Err(Problem::NoMemory) => {
                let reason = "it has no variable in memory".to_owned();
                if !functions
                    .iter()
                    .any(|function| inside(text, function).is_some())
                {
                    return Err(reason);
                }
                Scope::Nowhere(reason)
            }
            Err(Problem::Wrong(reason)) => return Err(reason),
        },
    };
    let mut words = Vec::new();
    for function in functions {
        let Some(inside) = inside(text, function) else {
            continue;
        };
        let mut modules = space.modules().iter();
        let Some(mapped) = modules.find(|mapped| mapped.number == function.module) else {
            continue;
        };
        let entry = Entry {
            function,
            pc: mapped.bias.wrapping_add(function.svma),
        };
        match ways(inside, space, Some(entry)) {
            Ok(found) => words.extend(program(&found, Some(function))),
            // All of it is in argument registers, which every enter has.
            Err(Problem::NoMemory) => {}
            Err(Problem::NotThere(_)) => continue,
            Err(Problem::Wrong(reason)) => return Err(format!("in {}: {reason}", function.name)),
        }
        scope = Scope::Functions;
    }
    Ok(Found { scope, words })
}

/// Returns the expression as it reads inside a function, if it may name a parameter of it: `q->len`, or from everywhere
/// `push::q->len`.
fn inside<'t>(text: &'t str, function: &FunctionDef) -> Option<&'t str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let has = |text: &str| {
        let mut words = text.split(|c| !is_word(c));
        words.any(|word| function.params.iter().any(|param| param.name == word))
    };
    let path = text.find(|c| !is_word(c) && c != ':').unwrap_or(text.len());
    match text[..path].rfind("::") {
        None => has(text).then_some(text),
        Some(at) => {
            let (named, rest) = (&text[..at], &text[at + 2..]);
            let name = function.name.split(['(', '<']).next().unwrap_or_default();
            let is_named = name == named || name.ends_with(&format!("::{named}"));
            (is_named && has(rest)).then_some(rest)
        }
    }
}

/// Why an expression cannot be watched.
#[derive(Debug, PartialEq, Eq)]
enum Problem {
    /// It names what no module has; one that is loaded later may.
    NotThere(String),
    /// No memory is looked at.
    NoMemory,
    /// It never can.
    Wrong(String),
}

type Reads = Vec<Read>;

/// Memory that is captured.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Read {
    way: Way,
    len: usize,
    until: Until,
}

/// Where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// All of it is there, or none is captured.
    Len,
    /// As much as is there.
    There,
    /// Behind a NUL.
    Nul,
}

/// Finds the memory that the value of `text` is made of: ways and lengths.
fn ways(
    text: &str,
    space: &Space,
    entry: Option<Entry<'_>>,
) -> std::result::Result<Reads, Problem> {
    match ways_by(text, space, entry, MAX_STEP_LEN) {
        // Which element of an array it is may depend on a number: then all of them are captured.
        Err(Problem::Wrong(why)) => {
            ways_by(text, space, entry, MAX_LEN).map_err(|_| Problem::Wrong(why))
        }
        found => found,
    }
}

/// The same where at most `step_len` bytes are read at once on the way to the value.
fn ways_by(
    text: &str,
    space: &Space,
    entry: Option<Entry<'_>>,
    step_len: usize,
) -> std::result::Result<Reads, Problem> {
    let [first, second] = [0, 1].map(|fill| ways_with(text, space, entry, (step_len, fill)));
    let (first, second) = (first?, second?);
    match first == second {
        true => Ok(without_parts(without_steps(first))),
        false => Err(Problem::Wrong(DEPENDS.to_owned())),
    }
}

fn ways_with(
    text: &str,
    space: &Space,
    entry: Option<Entry<'_>>,
    (step_len, fill): (usize, u8),
) -> std::result::Result<Reads, Problem> {
    let is_static = |address| space.modules().iter().any(|mapped| has(mapped, address));
    let machine = Tracing {
        is_static: &is_static,
        entry,
        step_len,
        fill,
        seen: RefCell::default(),
    };
    let frames = entry.map(|_| backtrace(space, &machine, 1).frames);
    let frames = frames.unwrap_or_default();
    // What frames are found by is not part of the value.
    let seen = machine.seen.take();
    machine.seen.borrow_mut().regions = seen.regions;
    let context = Context {
        space,
        machine: &machine,
        frames: &frames,
        index: 0,
        calls: None,
    };
    let is_type = |name: &str| expr::is_type(name, &context);
    let expression = expr::parse_with(text, &is_type).map_err(|error| {
        Problem::Wrong(format!(
            "{} (at character {})",
            error.message,
            error.position + 1
        ))
    })?;
    if chooses(&expression) {
        return Err(Problem::Wrong(DEPENDS.to_owned()));
    }
    let look = Look {
        space,
        machine: &machine,
    };
    // The value of a reference is what it refers to.
    let value = expr::evaluate(&expression, &context)
        .map_err(|error| error.message)
        .map(|value| value.unreferenced(&look).unwrap_or(value));
    if let Some(reason) = machine.seen.borrow_mut().refused.take() {
        return Err(Problem::Wrong(reason));
    }
    let value = value.map_err(Problem::NotThere)?;
    machine.note_whole(&value).map_err(Problem::Wrong)?;
    machine.note_contents(&value, &look);
    let seen = machine.seen.into_inner();
    match seen.reads.is_empty() {
        true => Err(Problem::NoMemory),
        false => Ok(seen.reads),
    }
}

/// Tells whether a number decides which part of the expression has the value.
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

/// Tells whether a module's file lies at `address`, or what it wants to have zeroed there.
fn has(mapped: &Mapped, address: u64) -> bool {
    let svma = mapped.svma(address).0;
    let segments = mapped.module.load_segments().iter();
    segments
        .map(|segment| segment.vaddr.0..segment.vaddr.0.saturating_add(segment.memsz))
        .any(|range| range.contains(&svma))
}

/// Leaves out the pointers that other ways go through: the runtime captures those anyway.
fn without_steps(reads: Reads) -> Reads {
    let mut kept: Reads = Vec::new();
    for read in &reads {
        let way = &read.way;
        let is_step = |other: &Read| {
            let other = &other.way;
            read.len == 8
                && other.base == way.base
                && other.address == way.address
                && other.offsets.len() > way.offsets.len()
                && other.offsets.starts_with(&way.offsets)
        };
        if !reads.iter().any(is_step) && !kept.contains(read) {
            kept.push(read.clone());
        }
    }
    kept
}

/// Leaves out what lies in something else that is captured.
fn without_parts(reads: Reads) -> Reads {
    let is_in = |part: &Read, whole: &Read| {
        let last = |way: &Way| way.offsets.last().copied().unwrap_or(way.address);
        let mut same = part.way.clone();
        match same.offsets.last_mut() {
            Some(offset) => *offset = last(&whole.way),
            None => same.address = last(&whole.way),
        }
        let from = last(&part.way).wrapping_sub(last(&whole.way));
        same == whole.way
            && whole.until == Until::Len
            && part.len < whole.len
            && from <= (whole.len - part.len) as u64
    };
    let kept = reads
        .iter()
        .filter(|part| !reads.iter().any(|whole| is_in(part, whole)));
    kept.cloned().collect()
}

/// What the runtime is told: docs/wire.md, the control page.
fn program(reads: &[Read], function: Option<&FunctionDef>) -> Vec<u64> {
    let function = function.map_or(0, |function| 1 + u64::from(function.id));
    let mut words = Vec::new();
    for Read { way, len, until } in reads {
        let base = way.base.map_or(0, |register| 1 + u64::from(register.0));
        let steps = way.offsets.len() as u64;
        words.push(steps | base << WATCH_BASE_SHIFT | function << WATCH_FUNCTION_SHIFT);
        words.push(way.address);
        words.extend(&way.offsets);
        let until = match until {
            Until::Len => 0,
            Until::There => WATCH_PARTLY,
            Until::Nul => WATCH_TEXT,
        };
        words.push(*len as u64 | until);
    }
    words
}

/// A machine that notes what is read.
struct Tracing<'a> {
    is_static: &'a dyn Fn(u64) -> bool,
    entry: Option<Entry<'a>>,
    /// Bytes that are read at once at most.
    step_len: usize,
    /// What bytes hold that are no whole word.
    fill: u8,
    seen: RefCell<Seen>,
}

#[derive(Default)]
struct Seen {
    reads: Reads,
    /// What holds the address of each region.
    regions: Vec<Holder>,
    refused: Option<String>,
}

/// What holds an address.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Holder {
    /// The word that this leads to.
    Word(Way),
    Register(Register),
}

impl Seen {
    /// How to get to `address`; `None` where it was computed from something that is no pointer.
    fn way_to(&self, address: u64, is_static: &dyn Fn(u64) -> bool, fill: u8) -> Option<Way> {
        let end = REGIONS_AT + MAX_REGIONS as u64 * region_len(fill);
        if !(REGIONS_AT..end).contains(&address) {
            return is_static(address).then(|| Way {
                base: None,
                address,
                offsets: Vec::new(),
            });
        }
        let region = (address - REGIONS_AT) / region_len(fill);
        let offset = address.wrapping_sub(pointer_to(region, fill));
        Some(match self.regions.get(region as usize)? {
            Holder::Register(register) => Way {
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

    /// The address of a region of its own for what holds it.
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
        Unknown(reason.to_owned())
    }
}

impl Tracing<'_> {
    /// Notes the bytes of the value itself, if they were not read on the way to it.
    ///
    /// # Errors
    /// They cannot be captured.
    fn note_whole(&self, value: &Value) -> std::result::Result<(), String> {
        let Err(Unknown(reason)) = &value.bytes else {
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

    /// Notes what the value leads to and is shown with it: the text of a string, the elements of a vector, as much as is
    /// captured of them. Containers with their elements here and there are captured without.
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
        // Whatever was read to find that out lies in the value, or cannot be followed.
        seen.reads = before;
        seen.refused = None;
        drop(seen);
        if let Some(start) = start {
            self.note(start, MAX_LEN, until);
        }
    }

    /// Notes memory; `None` if no way leads there.
    fn note(&self, address: u64, len: usize, until: Until) -> Option<()> {
        let mut seen = self.seen.borrow_mut();
        let way = seen.way_to(address, self.is_static, self.fill)?;
        if way.offsets.len() <= MAX_STEPS {
            seen.reads.push(Read { way, len, until });
        }
        Some(())
    }
}

/// Offsets may be negative: pointers lead into the middle of regions. Where exactly depends on `fill`, so that a part of an
/// address that is used as a number shows.
fn pointer_to(region: u64, fill: u8) -> u64 {
    let len = region_len(fill);
    REGIONS_AT + region * len + len / 2 + u64::from(fill) * MOVED
}

/// Distances between pointers are numbers too, and differ the second time.
fn region_len(fill: u8) -> u64 {
    REGION_LEN * (1 + u64::from(fill))
}

impl Machine for Tracing<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> std::result::Result<Certainty, Unknown> {
        let mut seen = self.seen.borrow_mut();
        if bytes.len() > self.step_len {
            return Err(Unknown::because("it is read in parts"));
        }
        let Some(way) = seen.way_to(address, self.is_static, self.fill) else {
            return Err(seen.refuse(DEPENDS));
        };
        if way.offsets.len() > MAX_STEPS {
            return Err(seen.refuse("it follows more than 8 pointers"));
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
        if let Some(entry) = self.entry.filter(|_| register == Register::RIP) {
            return Ok((entry.pc, Certainty::Known));
        }
        if self.entry.is_some() && Place::INT_REGISTERS.contains(&register.0) {
            let argument = seen.region(Holder::Register(register), self.fill);
            return Ok((argument, Certainty::Known));
        }
        if register == Register::FS_BASE {
            return Ok((
                seen.region(Holder::Register(register), self.fill),
                Certainty::Known,
            ));
        }
        Err(seen.refuse(
            "registers and local variables cannot be watched: --regs captures registers, --stack the callers' variables, a logpoint shows any",
        ))
    }

    fn calls_to_come(&self) -> usize {
        usize::MAX
    }

    fn entry_parameter(&self, name: &str) -> Option<EntryPlace> {
        let function = self.entry?.function;
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
    use super::*;

    /// Everything below 64 KiB belongs to the program.
    fn machine() -> Tracing<'static> {
        Tracing {
            is_static: &|address| address < 0x10000,
            entry: None,
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
            program(&reads, None),
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
        assert_eq!(program(&reads, None), [0, 0x5000, 16, 1, 0x5008, 0, 2]);
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
