//! Watched expressions: which memory their values are made of, as steps that the runtime can take by itself.
//!
//! The expression is evaluated on a machine where each word of memory, and each register that has an argument, hold the
//! address of a region that nothing else uses. Whatever is read in such a region is read through that word: so the way to
//! every byte is known without knowing what pointers the program will have. A second time, what is shorter than a word holds
//! another number: if other memory is read then, the way depends on numbers, which the runtime cannot follow. The same holds
//! where regions lie the other way round, unless the value makes no sense then: containers compare their words, and a vector
//! whose end is before its beginning, or with more elements than it has room for, is none.
//!
//! Of a value that is a text or a container with its elements side by side, those are captured too. How many there are says
//! a word whose way is known like that of any other.
//!
//! An expression over global variables is captured at every enter and leave, one over variables of a thread for the thread
//! that enters or leaves. One that names a parameter has a value where the parameter's functions are entered: later its
//! register may hold something else.

use std::cell::RefCell;

use agent::shared::{
    Shared, WATCH_BASE_SHIFT, WATCH_BYTES_MAX, WATCH_COUNT_SHIFT, WATCH_COUNT_TERMINATED,
    WATCH_FUNCTION_SHIFT, WATCH_UNIT_SHIFT, WATCH_WORDS,
};
use debuginfo::expr::{self, Context};
use debuginfo::location::thread_storage;
use debuginfo::value::Look;
use debuginfo::value::containers::{Container, Stretch};
use debuginfo::{
    Certainty, EntryPlace, Machine, Mapped, Register, Space, TypeKind, Unknown, Value, backtrace,
};
use store::control::{FunctionDef, Place};

use crate::{Error, Result};

/// Regions lie where no program has anything, far enough from each other for any offset, and so low that a region's
/// address is a possible number of elements as well. Elements of most sizes fit between two of them without a rest.
const REGIONS_AT: u64 = 1 << 36;
const REGION_LEN: u64 = (27 * 25 * 7 * 11 * 13) << 10;
const MAX_REGIONS: usize = 256;
/// By how much pointers differ the second time: more than any value is long, with bits in each of the low bytes.
const MOVED: u64 = 0x0101_0110;
/// Pointers that may be followed one after the other.
const MAX_STEPS: usize = 8;
const DEPENDS: &str = "which memory it looks at depends on a number: only addresses can be followed; \
    members, what pointers lead to, elements with constant numbers of arrays, vectors and lists, and texts can be watched";
/// Bytes of one value.
const MAX_LEN: usize = WATCH_BYTES_MAX;
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

/// Memory that a value is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Read {
    way: Way,
    /// Bytes, at most.
    len: usize,
    count: Count,
}

/// How many bytes there are.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Count {
    All,
    /// Up to a NUL.
    Terminated,
    /// So many units as the word there says, of so many bytes.
    Units(Way, u64),
    /// Up to where the word there points to.
    End(Way),
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
            let start = self.words.len();
            let found = match words_of(&watch.text, &watch.scope, (space, functions), start) {
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

/// Finds where an expression has a value. `scope`: what is known already; `start`: how many words the runtime has been told.
///
/// # Errors
/// Why it can never be watched.
fn words_of(
    text: &str,
    scope: &Scope,
    (space, functions): (&Space, &[FunctionDef]),
    start: usize,
) -> std::result::Result<Found, String> {
    let mut unfit = None;
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
                    words: program(&found, None, start),
                    scope: Scope::Everywhere,
                });
            }
            Err(Problem::NotThere(reason)) => Scope::Nowhere(reason),
            Err(Problem::Unfit(reason)) => {
                unfit = Some(reason.clone());
                Scope::Nowhere(reason)
            }
            Err(Problem::NoMemory) => return Err("it has no variable in memory".to_owned()),
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
            Ok(found) => words.extend(program(&found, Some(function), start + words.len())),
            // All of it is in argument registers, which every enter has.
            Err(Problem::NoMemory) => {}
            Err(Problem::NotThere(_) | Problem::Unfit(_)) => continue,
            Err(Problem::Wrong(reason)) => return Err(format!("in {}: {reason}", function.name)),
        }
        scope = Scope::Functions;
    }
    match (&scope, unfit) {
        (Scope::Nowhere(_), Some(reason)) => Err(reason),
        _ => Ok(Found { scope, words }),
    }
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
    /// What it names is there and has no such value; a parameter of the same name may have.
    Unfit(String),
    /// No memory is looked at.
    NoMemory,
    /// It never can.
    Wrong(String),
}

type Reads = Vec<Read>;

/// What the words of the machine hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Guess {
    /// What bytes hold that are no whole word.
    fill: u8,
    /// Words further on hold lower addresses.
    is_falling: bool,
}

/// Finds the memory that the value of `text` is made of.
fn ways(
    text: &str,
    space: &Space,
    entry: Option<Entry<'_>>,
) -> std::result::Result<Reads, Problem> {
    let guessed = |is_falling: bool| {
        let guess = |fill| ways_with(text, space, entry, Guess { fill, is_falling });
        match (guess(0), guess(1)) {
            (Ok(first), Ok(second)) if first == second => Ok(first),
            (Err(first), Err(_)) => Err(first),
            _ => Err(Problem::Wrong(DEPENDS.to_owned())),
        }
    };
    match (guessed(false), guessed(true)) {
        (Ok(rising), Ok(falling)) if rising != falling => Err(Problem::Wrong(DEPENDS.to_owned())),
        (Ok(found), _) | (Err(Problem::Unfit(_)), Ok(found)) => Ok(found),
        (Err(problem), _) => Err(problem),
    }
}

fn ways_with(
    text: &str,
    space: &Space,
    entry: Option<Entry<'_>>,
    guess: Guess,
) -> std::result::Result<Reads, Problem> {
    let is_static = |address| space.modules().iter().any(|mapped| has(mapped, address));
    let storage = |number| thread_storage(space, number);
    let machine = Tracing {
        is_static: &is_static,
        storage: &storage,
        entry,
        guess,
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
    let has_read = !machine.seen.borrow().reads.is_empty();
    let value = value.map_err(|message| match has_read {
        false => Problem::NotThere(message),
        // What a container holds here is made up.
        true if message.starts_with("corrupt") => Problem::Unfit(DEPENDS.to_owned()),
        true => Problem::Unfit(message),
    })?;
    if let Err(Unknown(reason)) = &value.bytes {
        return Err(Problem::Wrong(reason.clone()));
    }
    let contents = machine.contents(&value, &look);
    let mut reads = machine.seen.into_inner().reads;
    reads.extend(contents);
    match reads.is_empty() {
        true => Err(Problem::NoMemory),
        false => Ok(without_steps(reads)),
    }
}

/// Tells whether a module's file lies at `address`, or what it wants to have zeroed there.
fn has(mapped: &Mapped, address: u64) -> bool {
    let svma = mapped.svma(address).0;
    let segments = mapped.module.load_segments().iter();
    segments
        .map(|segment| segment.vaddr.0..segment.vaddr.0.saturating_add(segment.memsz))
        .any(|range| range.contains(&svma))
}

/// Leaves out the pointers that other ways go through, which the runtime captures anyway, and what others have in them.
fn without_steps(reads: Reads) -> Reads {
    let mut kept: Reads = Vec::new();
    for (index, read) in reads.iter().enumerate() {
        let is_step = |other: &Read| {
            let (way, other) = (&read.way, &other.way);
            read.len == 8
                && other.base == way.base
                && other.address == way.address
                && other.offsets.len() > way.offsets.len()
                && other.offsets.starts_with(&way.offsets)
        };
        let mut others = reads.iter().enumerate();
        let is_elsewhere = read.count == Count::All
            && others.any(|(at, other)| {
                at != index
                    && (is_step(other) || other.holds(read) && !(at > index && read.holds(other)))
            });
        if !is_elsewhere && !kept.contains(read) {
            kept.push(read.clone());
        }
    }
    kept
}

impl Read {
    /// Tells whether all bytes of `other` are among those of this one.
    fn holds(&self, other: &Read) -> bool {
        let (way, len) = (&self.way, self.len as u64);
        let apart = match (way.offsets.split_last(), other.way.offsets.split_last()) {
            (None, None) => other.way.address.wrapping_sub(way.address),
            (Some((own, path)), Some((its, other_path)))
                if path == other_path && way.address == other.way.address =>
            {
                its.wrapping_sub(*own)
            }
            _ => return false,
        };
        self.count == Count::All
            && way.base == other.way.base
            && apart
                .checked_add(other.len as u64)
                .is_some_and(|end| end <= len)
    }
}

/// What the runtime is told, behind `start` words that it has been told before: docs/wire.md, the control page.
fn program(reads: &[Read], function: Option<&FunctionDef>, start: usize) -> Vec<u64> {
    let function = function.map_or(0, |function| 1 + u64::from(function.id));
    let mut words = Vec::new();
    let one = |words: &mut Vec<u64>, way: &Way, last: u64| {
        let base = way.base.map_or(0, |register| 1 + u64::from(register.0));
        let steps = way.offsets.len() as u64;
        words.push(steps | base << WATCH_BASE_SHIFT | function << WATCH_FUNCTION_SHIFT);
        words.push(way.address);
        words.extend(&way.offsets);
        words.push(last);
    };
    for read in reads {
        let counter = match &read.count {
            Count::Units(counter, _) | Count::End(counter) => Some(counter),
            Count::All | Count::Terminated => None,
        };
        let at = 1 + (start + words.len()) as u64;
        if let Some(counter) = counter {
            one(&mut words, counter, 8);
        }
        let count = match &read.count {
            Count::All => 0,
            Count::Terminated => WATCH_COUNT_TERMINATED << WATCH_COUNT_SHIFT,
            Count::Units(_, size) => at << WATCH_COUNT_SHIFT | size << WATCH_UNIT_SHIFT,
            Count::End(_) => at << WATCH_COUNT_SHIFT,
        };
        one(&mut words, &read.way, read.len as u64 | count);
    }
    words
}

/// A machine that notes what is read.
struct Tracing<'a> {
    is_static: &'a dyn Fn(u64) -> bool,
    /// How far below the thread pointer the storage of the module with a number is.
    storage: &'a dyn Fn(u64) -> Option<u64>,
    entry: Option<Entry<'a>>,
    guess: Guess,
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
    fn way_to(&self, address: u64, is_static: &dyn Fn(u64) -> bool, guess: Guess) -> Option<Way> {
        let end = REGIONS_AT + MAX_REGIONS as u64 * REGION_LEN;
        if !(REGIONS_AT..end).contains(&address) {
            return is_static(address).then(|| Way {
                base: None,
                address,
                offsets: Vec::new(),
            });
        }
        let region = guess.turned((address - REGIONS_AT) / REGION_LEN);
        let offset = address.wrapping_sub(guess.pointer_to(region));
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
    fn region(&mut self, holder: Holder, guess: Guess) -> u64 {
        let found = self.regions.iter().position(|other| *other == holder);
        let region = found.unwrap_or_else(|| {
            self.regions.push(holder);
            self.regions.len() - 1
        });
        guess.pointer_to(region as u64)
    }

    /// The word that holds exactly `number`.
    fn holder_of(&self, number: u64, guess: Guess) -> Option<Way> {
        let all = self.regions.iter().enumerate();
        let mut fitting = all.filter(|(region, _)| guess.pointer_to(*region as u64) == number);
        match fitting.next()?.1 {
            Holder::Word(way) => Some(way.clone()),
            Holder::Register(_) => None,
        }
    }

    fn refuse(&mut self, reason: &str) -> Unknown {
        self.refused.get_or_insert_with(|| reason.to_owned());
        Unknown(reason.to_owned())
    }
}

impl Guess {
    /// The number of a region from its place, and its place from its number.
    fn turned(self, region: u64) -> u64 {
        match self.is_falling {
            true => MAX_REGIONS as u64 - 1 - region,
            false => region,
        }
    }

    /// Offsets may be negative: pointers lead into the middle of regions. Where exactly depends on `fill`, so that a part of
    /// an address that is used as a number shows.
    fn pointer_to(self, region: u64) -> u64 {
        let middle = self.turned(region) * REGION_LEN + REGION_LEN / 2;
        REGIONS_AT + middle + u64::from(self.fill) * MOVED
    }
}

impl Tracing<'_> {
    /// What is captured besides the value itself: the text that it points to, or elements that lie side by side.
    fn contents(&self, value: &Value, look: &Look<'_>) -> Option<Read> {
        let ty = value.ty.strip();
        let is_text = ty.kind() == TypeKind::Pointer
            && ty.target().is_some_and(|target| {
                let target = target.strip();
                target.size() == Some(1) && matches!(target.kind(), TypeKind::Char { .. })
            });
        if is_text {
            let way =
                self.seen
                    .borrow()
                    .way_to(value.as_address().ok()?, self.is_static, self.guess)?;
            return Some(Read {
                way,
                len: MAX_LEN,
                count: Count::Terminated,
            });
        }
        // The words that tell where they are belong to the value.
        let before = self.seen.borrow().reads.len();
        let container = Container::of(value, look);
        self.seen.borrow_mut().reads.truncate(before);
        self.stretched(container?.ok()?.stretch()?)
    }

    fn stretched(&self, Stretch { start, len, size }: Stretch) -> Option<Read> {
        let seen = self.seen.borrow();
        let way = seen.way_to(start, self.is_static, self.guess)?;
        let most = (MAX_LEN as u64).checked_div(size)?.checked_mul(size)?;
        let end = start.wrapping_add(len.checked_mul(size)?);
        let counter = seen
            .holder_of(len, self.guess)
            .map(|word| Count::Units(word, size));
        let count = counter.or_else(|| seen.holder_of(end, self.guess).map(Count::End))?;
        let is_short = way.offsets.len() <= MAX_STEPS;
        (is_short && most > 0).then_some(Read {
            way,
            len: most as usize,
            count,
        })
    }

    /// What a word says that leads to a module's storage of the thread: its place is confirmed with it.
    fn stored(&self, way: &Way, seen: &mut Seen) -> Option<u64> {
        const TABLE: u64 = 8;
        const ENTRY: u64 = 16;
        if way.base != Some(Register::FS_BASE) || way.address != TABLE {
            return None;
        }
        let [offset] = way.offsets[..] else {
            return None;
        };
        let below = (self.storage)(offset / ENTRY).filter(|_| offset % ENTRY == 0)?;
        let thread = seen.region(Holder::Register(Register::FS_BASE), self.guess);
        Some(thread.wrapping_sub(below))
    }
}

impl Machine for Tracing<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> std::result::Result<Certainty, Unknown> {
        let mut seen = self.seen.borrow_mut();
        if bytes.len() > MAX_LEN {
            return Err(seen.refuse("its value is larger than 256 bytes: watch a part of it"));
        }
        let Some(way) = seen.way_to(address, self.is_static, self.guess) else {
            return Err(seen.refuse(DEPENDS));
        };
        if way.offsets.len() > MAX_STEPS {
            return Err(seen.refuse(
                "it follows more than 8 pointers: parts of maps and sets, and of lists far from their beginning, cannot be watched",
            ));
        }
        bytes.fill(self.guess.fill);
        let (words, _) = bytes.as_chunks_mut::<8>();
        for (index, word) in words.iter_mut().enumerate() {
            if seen.regions.len() < MAX_REGIONS {
                let mut at = way.clone();
                let offset = 8 * index as u64;
                match at.offsets.last_mut() {
                    Some(last) => *last = last.wrapping_add(offset),
                    None => at.address = at.address.wrapping_add(offset),
                }
                *word = seen.region(Holder::Word(at), self.guess).to_le_bytes();
            }
        }
        if let (Some(stored), 8) = (self.stored(&way, &mut seen), bytes.len()) {
            bytes.copy_from_slice(&stored.to_le_bytes());
        }
        seen.reads.push(Read {
            way,
            len: bytes.len(),
            count: Count::All,
        });
        Ok(Certainty::Known)
    }

    fn register(&self, register: Register) -> std::result::Result<(u64, Certainty), Unknown> {
        let mut seen = self.seen.borrow_mut();
        if let Some(entry) = self.entry.filter(|_| register == Register::RIP) {
            return Ok((entry.pc, Certainty::Known));
        }
        let is_argument = self.entry.is_some() && Place::INT_REGISTERS.contains(&register.0);
        if is_argument || register == Register::FS_BASE {
            let address = seen.region(Holder::Register(register), self.guess);
            return Ok((address, Certainty::Known));
        }
        Err(seen.refuse(
            "registers and local variables cannot be watched: --regs captures registers, a logpoint shows variables",
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
    use agent::shared::WATCH_BASE_THREAD;

    use super::*;

    const GUESS: Guess = Guess {
        fill: 0,
        is_falling: false,
    };

    /// Everything below 64 KiB belongs to the program; module 2 has its storage 0x40 bytes below the thread pointer.
    fn machine() -> Tracing<'static> {
        Tracing {
            is_static: &|address| address < 0x10000,
            storage: &|number| (number == 2).then_some(0x40),
            entry: None,
            guess: GUESS,
            seen: RefCell::default(),
        }
    }

    fn read(machine: &Tracing<'_>, address: u64) -> u64 {
        let mut bytes = [0; 8];
        machine.memory(address, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    }

    fn told(machine: Tracing<'_>) -> Vec<u64> {
        program(&without_steps(machine.seen.into_inner().reads), None, 0)
    }

    #[test]
    fn what_is_read_through_pointers_becomes_steps() {
        let machine = machine();
        let queue = read(&machine, 0x5000);
        let next = read(&machine, queue.wrapping_sub(16));
        machine.memory(next + 4, &mut [0; 4]).unwrap();
        machine.memory(0x6000, &mut [0; 1]).unwrap();
        let minus_16 = 16u64.wrapping_neg();
        assert_eq!(told(machine), [2, 0x5000, minus_16, 4, 4, 0, 0x6000, 1]);
    }

    #[test]
    fn structures_hold_a_pointer_in_each_word() {
        let machine = machine();
        let mut bytes = [0; 24];
        machine.memory(0x5000, &mut bytes).unwrap();
        let second = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
        machine.memory(second, &mut [0; 2]).unwrap();
        // A part of what is read anyway is not read again.
        read(&machine, 0x5010);
        assert_eq!(told(machine), [0, 0x5000, 24, 1, 0x5008, 0, 2]);
    }

    #[test]
    fn what_is_stored_for_a_thread_is_counted_from_its_pointer() {
        let machine = machine();
        let (thread, _) = machine.register(Register::FS_BASE).unwrap();
        let table = read(&machine, thread + 8);
        let storage = read(&machine, table + 32);
        assert_eq!(storage, thread - 0x40);
        machine.memory(storage + 4, &mut [0; 4]).unwrap();
        let head = WATCH_BASE_THREAD << WATCH_BASE_SHIFT;
        let minus = 0x3c_u64.wrapping_neg();
        assert_eq!(told(machine), [head | 1, 8, 32, 8, head, minus, 4]);
    }

    #[test]
    fn elements_are_counted_by_the_word_that_says_how_many() {
        for is_falling in [false, true] {
            let machine = Tracing {
                guess: Guess {
                    fill: 1,
                    is_falling,
                },
                ..machine()
            };
            let (start, end) = (read(&machine, 0x5000), read(&machine, 0x5008));
            let len = end;
            let reads = [
                machine.stretched(Stretch {
                    start,
                    len,
                    size: 24,
                }),
                match is_falling {
                    true => None,
                    false => machine.stretched(Stretch {
                        start,
                        len: (end - start) / 4,
                        size: 4,
                    }),
                },
                machine.stretched(Stretch {
                    start,
                    len: 5,
                    size: 4,
                }),
            ];
            let reads: Vec<Read> = reads.into_iter().flatten().collect();
            let units = 240 | (1 + 7) << WATCH_COUNT_SHIFT | 24 << WATCH_UNIT_SHIFT;
            let mut expected = vec![0, 0x5008, 8, 1, 0x5000, 0, units];
            if !is_falling {
                let end = 256 | (1 + 7 + 7) << WATCH_COUNT_SHIFT;
                expected.extend([0, 0x5008, 8, 1, 0x5000, 0, end]);
            }
            assert_eq!(program(&reads, None, 7), expected, "{is_falling}");
        }
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
