//! Which memory a logged place means, and how the processor's watchpoints cover it.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

use debuginfo::scope::{globals, variables_of_copy};
use debuginfo::value::Look;
use debuginfo::{
    AddressSpace, Certainty, Diagnostic, Frame, FrameContext, InnermostFrame, Machine, Mapped,
    Register, Unknown, Wish, global_names,
};
use expr::{Context, EvalError, Missing};

use super::logged_variable::{self, CallVariable};
use super::watchpoints::REGISTERS;

use crate::live::model::{LoggedPlace, MAX_LOGGED_LEN};

/// Most functions that are searched for a local variable of a name that is not global.
const MOST_FUNCTIONS: usize = 20_000;
/// Most global variables of each module that are considered for suggestions.
const MOST_NAMES: usize = 20_000;

/// Bytes of the longest watchpoint.
const WORD: u64 = 8;
/// Below this address the kernel maps nothing, as `vm.mmap_min_addr` usually is.
const LOWEST: u64 = 0x1_0000;
/// Addresses of programs end here, except the larger ones that they must request.
const HIGHEST: u64 = 0x7fff_ffff_f000;

/// Memory whose writes are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoggedRange {
    pub address: u64,
    pub len: u64,
}

impl LoggedRange {
    /// Returns the watchpoints that cover its bytes: address and length of each; the address is a multiple of the length. They cover
    /// nothing else if the processor has enough of them for that.
    pub fn pieces(self) -> Vec<(u64, u8)> {
        let exact = self.exact_pieces();
        match exact.len() <= REGISTERS {
            true => exact,
            false => self.words(),
        }
    }

    /// Returns whether its watchpoints also cover bytes around it, whose writes are not its own.
    pub fn is_covered_widely(self) -> bool {
        self.exact_pieces().len() > REGISTERS
    }

    /// The aligned words that its bytes lie in.
    fn words(self) -> Vec<(u64, u8)> {
        let end = self.address.saturating_add(self.len);
        let first = self.address - self.address % WORD;
        let words = (first..end).step_by(WORD as usize);
        words.map(|at| (at, WORD as u8)).collect()
    }

    fn exact_pieces(self) -> Vec<(u64, u8)> {
        let end = self.address.saturating_add(self.len);
        let mut pieces = Vec::new();
        let mut at = self.address;
        while at < end {
            let fits = |len: u64| at.is_multiple_of(len) && len <= end - at;
            let len = [8, 4, 2, 1].into_iter().find(|len| fits(*len));
            let len = len.unwrap_or(1);
            pieces.push((at, len as u8));
            at += len;
        }
        pieces
    }

    /// Returns whether some of `len` bytes at `address` are among its own.
    pub fn has_some_of(self, address: u64, len: u64) -> bool {
        let end = self.address.saturating_add(self.len);
        address < end && self.address < address.saturating_add(len)
    }

    /// Returns whether all bytes of another place are among its own.
    pub fn has_all_of(self, other: LoggedRange) -> bool {
        let end = |place: LoggedRange| place.address.saturating_add(place.len);
        self.address <= other.address && end(other) <= end(self)
    }

    /// Describes where it is.
    pub fn told(self) -> String {
        let LoggedRange { address, len } = self;
        match len {
            1 => format!("at {address:#x}, 1 byte"),
            _ => format!("at {address:#x}, {len} bytes"),
        }
    }
}

/// What is to be watched for a place.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// Memory that stays the same.
    Fixed(LoggedRange),
    /// Memory that pointers lead to: it is another one when they change, and none while one of them leads nowhere.
    Followed {
        pointers: Vec<LoggedRange>,
        target: Option<LoggedRange>,
    },
    /// A variable of each call of a function, which may have several copies.
    InCalls {
        function: String,
        variables: Arc<[CallVariable]>,
    },
}

impl Found {
    /// Returns how many watchpoints it takes, at least.
    pub fn needed(&self) -> usize {
        let pieces = |place: &LoggedRange| place.pieces().len();
        match self {
            Self::Fixed(place) => pieces(place),
            Self::Followed { pointers, target } => {
                let led = target.as_ref().map_or(1, pieces);
                pointers.iter().map(pieces).sum::<usize>() + led
            }
            Self::InCalls { variables, .. } => {
                let lens = variables.iter().map(|variable| variable.len.div_ceil(8));
                lens.max().unwrap_or(1) as usize
            }
        }
    }

    /// Returns memory that exists before its target does.
    fn first(&self) -> Option<LoggedRange> {
        match self {
            Self::Fixed(place) => Some(*place),
            Self::Followed { pointers, .. } => pointers.first().copied(),
            Self::InCalls { .. } => None,
        }
    }

    /// Describes it to the user.
    pub fn told(&self) -> String {
        match self {
            Self::Fixed(place) => place.told(),
            Self::Followed { pointers, target } => {
                let at: Vec<String> = pointers
                    .iter()
                    .map(|pointer| format!("{:#x}", pointer.address))
                    .collect();
                let at = at.join(" and ");
                match target {
                    Some(place) => format!("{}, as the pointer at {at} says", place.told()),
                    None => format!("nowhere until the pointer at {at} is set"),
                }
            }
            Self::InCalls { function, .. } => format!("in each call of {function}"),
        }
    }
}

/// Why there is no such place.
#[derive(Debug)]
pub(crate) enum Unplaced {
    /// It names something that no loaded module has; one that is loaded later may have it.
    Missing(Diagnostic),
    /// It is not to be logged.
    Refused(Diagnostic),
    /// A pointer leads nowhere now.
    Unreachable(Diagnostic),
    /// It begins with a variable of a function, which exists while that runs.
    InCalls { function: String, name: String },
}

/// Memory of a process, without a thread.
pub(crate) struct Globals<R>(pub R);

impl<R: Fn(u64, &mut [u8]) -> std::io::Result<()>> Machine for Globals<R> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        let read = (self.0)(address, bytes);
        read.map(|()| Certainty::Known)
            .map_err(|_| Unknown::because(format!("there is no memory at {address:#x}")))
    }

    fn register(&self, _: Register) -> Result<(u64, Certainty), Unknown> {
        Err(Unknown::because(
            "it belongs to a thread, and not to the whole program",
        ))
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        self.register(register).map(|_| ([0; 16], Certainty::Known))
    }
}

/// Finds the memory of a place in a program whose modules are `space`.
///
/// # Errors
/// There is none, or it cannot be logged.
pub(crate) fn find(
    place: &LoggedPlace,
    space: &AddressSpace,
    machine: &dyn Machine,
) -> Result<Found, Unplaced> {
    match place {
        LoggedPlace::Address { address, len } => {
            let found = LoggedRange {
                address: *address,
                len: *len,
            };
            check_len(&place.to_string(), found).map_err(Unplaced::Refused)?;
            // The program may get memory there later: its heap does not exist when it begins.
            match is_of_programs(found) {
                true => Ok(Found::Fixed(found)),
                false => Err(Unplaced::Refused(
                    format!("{place}: no program has memory there").into(),
                )),
            }
        }
        LoggedPlace::Expression(text) => match evaluated(text, space, machine) {
            Err(Unplaced::InCalls { function, name }) => {
                let found = logged_variable::in_each_call(text, (&function, &name), space);
                let variables = found.map_err(Unplaced::Refused)?.into();
                Ok(Found::InCalls {
                    function,
                    variables,
                })
            }
            found => found,
        },
    }
}

/// Returns whether logging tells who writes a variable of a function, or a part of one, in a process that has these modules: `text`
/// is `FUNCTION::VARIABLE`. A parameter's value comes from the caller.
#[must_use]
pub fn tells_writes_in_calls(text: &str, space: &AddressSpace) -> bool {
    let nowhere = Globals(|_, _: &mut [u8]| Err(std::io::ErrorKind::NotFound.into()));
    let place = LoggedPlace::Expression(text.to_owned());
    let Ok(Found::InCalls { variables, .. }) = find(&place, space, &nowhere) else {
        return false;
    };
    !variables.iter().any(CallVariable::is_parameter)
}

/// Returns whether logging tells who writes what global pointers lead to, in a process that has these modules and this memory, as far as
/// it is known.
#[must_use]
pub fn follows(text: &str, space: &AddressSpace, machine: &dyn Machine) -> bool {
    let place = LoggedPlace::Expression(text.to_owned());
    let Ok(found @ Found::Followed { .. }) = find(&place, space, machine) else {
        return false;
    };
    let first = found.first();
    let is_global = first.is_some_and(|first| space.at(first.address).is_some());
    is_global && found.needed() <= REGISTERS
}

/// Refuses a place that the processor cannot watch as a whole.
pub(super) fn check_len(text: &str, found: LoggedRange) -> Result<(), Diagnostic> {
    if (1..=MAX_LOGGED_LEN).contains(&found.len) {
        return Ok(());
    }
    let what = Diagnostic::new(format!(
        "{text} has {} bytes, and the processor watches at most {MAX_LOGGED_LEN} at once, in four places of eight",
        found.len
    ));
    Err(what.with_hint("log a member or an element of it, or ADDRESS:LENGTH"))
}

/// Whether a program can have memory at all bytes of a place.
fn is_of_programs(place: LoggedRange) -> bool {
    let end = place.address.checked_add(place.len);
    place.address >= LOWEST && end.is_some_and(|end| end <= HIGHEST)
}

fn evaluated(text: &str, space: &AddressSpace, machine: &dyn Machine) -> Result<Found, Unplaced> {
    match evaluated_in(text, space, machine, &[]) {
        // A name that only a library has is visible to its own code.
        Err(Unplaced::Missing(what)) => {
            let modules = space.modules().iter().filter(|module| !module.is_system);
            let mut found = modules.filter_map(|module| {
                let frame = frame_in(module, space)?;
                let found = evaluated_in(text, space, machine, &[frame]).ok()?;
                let is_of_module = module.range.contains(&found.first()?.address);
                is_of_module.then_some(found)
            });
            found.next().ok_or(Unplaced::Missing(what))
        }
        found => found,
    }
}

/// A frame of some function of a module, for looking up names there.
fn frame_in(module: &Mapped, space: &AddressSpace) -> Option<Frame> {
    let functions = module.module.functions().list.iter();
    let mut entries = functions.map(|function| module.address(function.svma));
    let inside = entries.find_map(|entry| InnermostFrame::at(space, entry, usize::MAX));
    Some(inside?.unread(Wish::default()))
}

pub(super) fn parsed(text: &str, context: &Context<'_>) -> Result<expr::Expr, Diagnostic> {
    let is_type = |name: &str| expr::is_type(name, context);
    expr::parse_with(text, &is_type).map_err(|error| Diagnostic {
        message: format!(
            "{text}: {} (at character {})",
            error.message,
            error.position + 1
        ),
        hint: error.hint,
    })
}

/// Evaluates an expression: its memory, and the memory that was read to find it.
fn evaluated_in(
    text: &str,
    space: &AddressSpace,
    machine: &dyn Machine,
    frames: &[Frame],
) -> Result<Found, Unplaced> {
    let machine = &OfProgram {
        machine,
        asks_thread: Cell::new(false),
        read: RefCell::default(),
    };
    let found = placed_in(text, space, machine, frames);
    let read = machine.read.take();
    match found {
        Ok(place) => {
            let is_its_own = |read: &LoggedRange| place.has_some_of(read.address, read.len);
            let pointers = read.into_iter().filter(|read| !is_its_own(read));
            let pointers = outermost(pointers.collect());
            let target = Some(place);
            Ok(match pointers.is_empty() {
                true => Found::Fixed(place),
                false => Found::Followed { pointers, target },
            })
        }
        Err(Unplaced::Unreachable(what)) if read.is_empty() => Err(Unplaced::Refused(what)),
        Err(Unplaced::Unreachable(_)) => Ok(Found::Followed {
            pointers: outermost(read),
            target: None,
        }),
        Err(other) => Err(other),
    }
}

/// Leaves out places that lie in others.
fn outermost(places: Vec<LoggedRange>) -> Vec<LoggedRange> {
    let is_inside = |place: &LoggedRange| {
        let mut others = places.iter().filter(|other| *other != place);
        others.any(|other| other.has_all_of(*place))
    };
    let all = places.iter().filter(|place| !is_inside(place));
    all.copied().collect()
}

fn placed_in(
    text: &str,
    space: &AddressSpace,
    machine: &OfProgram<'_>,
    frames: &[Frame],
) -> Result<LoggedRange, Unplaced> {
    let context = Context::new(space, machine, frames, 0);
    let expression = parsed(text, &context).map_err(Unplaced::Refused)?;
    let look = Look { space, machine };
    let value = expr::evaluate(&expression, &context)
        .map(|value| value.unreferenced(&look).unwrap_or(value))
        .map_err(|error| match machine.asks_thread.get() {
            true => in_calls_or(text, &expression, space),
            false => unplaced(text, &expression, space, error),
        })?;
    if value.bits.is_some() {
        let what = Diagnostic::new(format!(
            "{text} is a bit field, and only whole bytes are watched"
        ));
        return Err(Unplaced::Refused(
            what.with_hint("log the structure around it"),
        ));
    }
    match (value.address(), value.ty.size()) {
        (Some(address), Some(len)) => {
            let place = LoggedRange { address, len };
            check_len(text, place).map_err(Unplaced::Refused)?;
            // Whether its memory exists is no pointer that leads to it.
            let mut bytes = vec![0; len as usize];
            let there = machine.machine.memory(address, &mut bytes);
            there.map_err(|why| Unplaced::Unreachable(unreachable(text, &why.to_string())))?;
            Ok(place)
        }
        (None, _) if machine.asks_thread.get() => Err(in_calls_or(text, &expression, space)),
        (None, _) if value.bytes.is_err() => {
            let why = value.bytes.err().map(|why| why.to_string());
            let why = why.unwrap_or_default();
            Err(Unplaced::Unreachable(unreachable(text, &why)))
        }
        (None, _) => Err(Unplaced::Refused(
            format!("{text} does not lie in memory: only what is stored there is written").into(),
        )),
        (Some(_), None) => Err(Unplaced::Refused(
            format!("the size of {text} is not known").into(),
        )),
    }
}

/// A thread is needed: for a variable of a function, or for one that each thread has.
fn in_calls_or(text: &str, expression: &expr::Expr, space: &AddressSpace) -> Unplaced {
    local(text, expression, space).unwrap_or_else(|| Unplaced::Refused(of_each_thread(text)))
}

/// Explains why an expression has no value, and what to do.
fn unplaced(
    text: &str,
    expression: &expr::Expr,
    space: &AddressSpace,
    error: EvalError,
) -> Unplaced {
    if let Some(local) = local(text, expression, space) {
        return local;
    }
    match error.missing {
        Some(Missing::Name | Missing::Elsewhere | Missing::Type) => {
            if let Some(known) = of_function(expression, space) {
                return known;
            }
            let near = nearest_global(expression, space);
            let what = Diagnostic::from(error);
            Unplaced::Missing(match (near, &what.hint) {
                (Some(near), None) => what.with_hint(format!("did you mean \"{near}\"?")),
                _ => what,
            })
        }
        _ if error.is_meaningless => Unplaced::Refused(error.into()),
        _ => Unplaced::Unreachable(unreachable(text, &error.message)),
    }
}

/// Says of a name whose path is a function of the program what that has of it: a variable of inlined calls, or none of that name.
fn of_function(expression: &expr::Expr, space: &AddressSpace) -> Option<Unplaced> {
    let names = expr::names(expression);
    let own = || space.modules().iter().filter(|module| !module.is_system);
    names.iter().find_map(|name| {
        let (path, last) = name.rsplit_once("::")?;
        let mut copies = own().flat_map(|module| module.inlined_copies(path));
        let has_it = |copy: &debuginfo::InlinedCopy| {
            let variables = variables_of_copy(space, copy);
            variables.iter().any(|variable| variable.name == last)
        };
        if copies.any(|copy| has_it(&copy)) {
            return Some(Unplaced::InCalls {
                function: path.to_owned(),
                name: last.to_owned(),
            });
        }
        let mut found = own().flat_map(|module| module.functions_matching(path));
        let function = found.next()?.name;
        let what = Diagnostic::new(format!("{function} has no variable \"{last}\""));
        let globals = global_names(space, MOST_NAMES);
        let is_global = globals.iter().any(|known| known == last);
        Some(Unplaced::Refused(match is_global {
            true => what.with_hint(format!("did you mean \"{last}\"?")),
            false => what,
        }))
    })
}

/// Returns the global variable whose name is most similar to one in the expression, if any is similar enough.
fn nearest_global(expression: &expr::Expr, space: &AddressSpace) -> Option<String> {
    let known = global_names(space, MOST_NAMES);
    let names = expr::names(expression);
    names.iter().find_map(|name| {
        let last = name.rsplit("::").next()?;
        let others = known
            .iter()
            .map(String::as_str)
            .filter(|known| *known != last);
        expr::nearest(last, others).map(str::to_owned)
    })
}

/// There is no memory to watch.
fn unreachable(text: &str, why: &str) -> Diagnostic {
    let what = format!("nothing is known to be at {text} before the program runs: {why}");
    Diagnostic::new(what).with_hint(format!(
        "find every write afterwards: record --full, then last-write {text}"
    ))
}

/// Each thread has its own.
fn of_each_thread(text: &str) -> Diagnostic {
    let what = Diagnostic::new(format!(
        "each thread has a {text} of its own, and no thread is named"
    ));
    what.with_hint(format!(
        "stop in the thread and watch it there: hindsight start --break LOCATION PROGRAM, then hindsight watch '{text}'"
    ))
}

/// The machine of a program, which notes whether something was requested that only a thread has.
struct OfProgram<'m> {
    machine: &'m dyn Machine,
    asks_thread: Cell<bool>,
    /// Memory that was read.
    read: RefCell<Vec<LoggedRange>>,
}

impl Machine for OfProgram<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        let place = LoggedRange {
            address,
            len: bytes.len() as u64,
        };
        let mut read = self.read.borrow_mut();
        if !read.contains(&place) {
            read.push(place);
        }
        self.machine.memory(address, bytes)
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        self.asks_thread.set(true);
        self.machine.register(register)
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        self.asks_thread.set(true);
        self.machine.vector(register)
    }
}

/// What to do about a name of a function's local variable: `FUNCTION::NAME` is logged in its calls.
fn local(text: &str, expression: &expr::Expr, space: &AddressSpace) -> Option<Unplaced> {
    let names = expr::names(expression);
    let nowhere = Globals(|_, _: &mut [u8]| Err(std::io::ErrorKind::NotFound.into()));
    let site = FrameContext::outside(space, &nowhere);
    let is_global = |name: &str| globals(&site, name).iter().any(|one| one.name == name);
    let (asked, (function, name)) = names
        .iter()
        .filter(|name| !is_global(name))
        .find_map(|name| Some((name, function_with(name, space)?)))?;
    if let Some((path, _)) = asked.rsplit_once("::") {
        return Some(Unplaced::InCalls {
            function: path.to_owned(),
            name,
        });
    }
    let message = format!(
        "{name} is a variable of {function}, which has a place in memory only while {function} runs"
    );
    let qualified = with_function(text, &name, &function);
    // The variable alone may be too large, and what is reached through it may move.
    let in_calls = match logged_variable::in_each_call(&qualified, (&function, &name), space) {
        Ok(_) => format!("log it in each call: --log-writes {qualified}; or "),
        Err(_) => String::new(),
    };
    Some(Unplaced::Refused(Diagnostic::new(message).with_hint(format!(
        "{in_calls}see it at each pass: --logpoint {function} '{text}={{{text}}}'; or find every write afterwards: record --full, then last-write {text}"
    ))))
}

/// Puts a function before its variable in an expression: `work::cache.head` of `cache.head`.
fn with_function(text: &str, name: &str, function: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = text.match_indices(name).map(|(at, _)| at);
    let begins = found.find(|at| {
        let (before, behind) = (&text[..*at], &text[at + name.len()..]);
        !before.ends_with(|c: char| is_word(c) || ".>:".contains(c)) && !behind.starts_with(is_word)
    });
    let (before, rest) = text.split_at(begins.unwrap_or(0));
    format!("{before}{function}::{rest}")
}

/// Finds a function of the program's own modules that has a variable of that name, `FUNCTION::NAME` or `NAME`.
fn function_with(name: &str, space: &AddressSpace) -> Option<(String, String)> {
    let (path, last) = match name.rsplit_once("::") {
        Some((path, last)) => (Some(path), last),
        None => (None, name),
    };
    let own = space.modules().iter().filter(|module| !module.is_system);
    let functions = own.flat_map(|module| {
        let all = module.module.functions().list.iter();
        all.map(move |function| (module, function))
    });
    let mut looked_at = functions
        .filter(|(_, function)| path.is_none_or(|path| expr::is_called(&function.name, path)))
        .take(MOST_FUNCTIONS);
    let found = looked_at.find(|(module, function)| {
        let variables = debuginfo::scope::variables_of(space, module.address(function.svma));
        variables.iter().any(|variable| variable.name == last)
    });
    let (_, function) = found?;
    let bare = function.name.split(['(', '<']).next().unwrap_or_default();
    Some((bare.to_owned(), last.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(address: u64, len: u64) -> Vec<(u64, u8)> {
        LoggedRange { address, len }.pieces()
    }

    #[test]
    fn watchpoints_cover_exactly_the_bytes_of_a_place_if_there_are_enough() {
        assert_eq!(pieces(0x1000, 8), [(0x1000, 8)]);
        assert_eq!(pieces(0x1004, 4), [(0x1004, 4)]);
        assert_eq!(pieces(0x1004, 8), [(0x1004, 4), (0x1008, 4)]);
        assert_eq!(pieces(0x1001, 3), [(0x1001, 1), (0x1002, 2)]);
        assert_eq!(pieces(0x1000, 12), [(0x1000, 8), (0x1008, 4)]);
        assert_eq!(pieces(0x1000, 32).len(), 4);
        // Exactly, it would take six of them: of 1, 2, 4, 8, 8 and 1 bytes.
        let words = [(0x1000, 8), (0x1008, 8), (0x1010, 8), (0x1018, 8)];
        assert_eq!(pieces(0x1001, 24), words);
        assert_eq!(pieces(0x1001, 32).len(), 5);
    }

    #[test]
    fn places_overlap_where_they_share_a_byte() {
        let place = LoggedRange {
            address: 0x1000,
            len: 4,
        };
        assert!(place.has_some_of(0x1003, 1));
        assert!(place.has_some_of(0xff8, 16));
        assert!(!place.has_some_of(0x1004, 4));
        assert!(!place.has_some_of(0xffc, 4));
    }

    #[test]
    fn pointers_inside_of_others_need_no_watchpoint() {
        let at = |address, len| LoggedRange { address, len };
        let read = vec![at(0x1000, 16), at(0x1008, 8), at(0x100c, 8), at(0x2000, 8)];
        assert_eq!(
            outermost(read),
            [at(0x1000, 16), at(0x100c, 8), at(0x2000, 8)]
        );
    }
}
