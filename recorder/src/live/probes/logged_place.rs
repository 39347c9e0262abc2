//! Which memory a logged place means, and how the processor's watchpoints cover it.

use std::cell::Cell;

use debuginfo::value::Look;
use debuginfo::{
    AddressSpace, Certainty, Diagnostic, Frame, InnermostFrame, Machine, Mapped, Register, Unknown,
    Wish, global_names,
};
use expr::{Context, EvalError, Missing};

use crate::live::model::{LoggedPlace, MAX_LOGGED_LEN};

/// Most functions that are searched for a local variable of a name that is not global.
const MOST_FUNCTIONS: usize = 20_000;
/// Most global variables of each module that are considered for suggestions.
const MOST_NAMES: usize = 20_000;

/// Below this address the kernel maps nothing, as `vm.mmap_min_addr` usually is.
const LOWEST: u64 = 0x1_0000;
/// Addresses of programs end here, except the larger ones that they must request.
const HIGHEST: u64 = 0x7fff_ffff_f000;

/// Memory whose writes are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub address: u64,
    pub len: u64,
}

impl Place {
    /// Returns the watchpoints that cover exactly its bytes: address and length of each, which is a multiple of its length.
    pub fn pieces(self) -> Vec<(u64, u8)> {
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
}

/// Why there is no such place.
#[derive(Debug)]
pub(crate) enum Unplaced {
    /// It names something that no loaded module has; one that is loaded later may have it.
    Missing(Diagnostic),
    /// It is not to be logged.
    Refused(Diagnostic),
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
) -> Result<Place, Unplaced> {
    let found = match place {
        LoggedPlace::Address { address, len } => Place {
            address: *address,
            len: *len,
        },
        LoggedPlace::Expression(text) => evaluated(text, space, machine)?,
    };
    if found.len == 0 || found.len > MAX_LOGGED_LEN {
        let what = Diagnostic::new(format!(
            "{place} has {} bytes, and the processor watches at most {MAX_LOGGED_LEN} at once, in four places of eight",
            found.len
        ));
        return Err(Unplaced::Refused(
            what.with_hint("log a member or an element of it, or ADDRESS:LENGTH"),
        ));
    }
    match place {
        LoggedPlace::Address { .. } if !is_of_programs(found) => Err(Unplaced::Refused(
            format!("{place}: no program has memory there").into(),
        )),
        // The program may get memory there later: its heap does not exist when it begins.
        LoggedPlace::Address { .. } => Ok(found),
        LoggedPlace::Expression(text) => {
            let mut bytes = vec![0; found.len as usize];
            let read = machine.memory(found.address, &mut bytes);
            read.map_err(|why| Unplaced::Refused(unreachable(text, &why.to_string())))?;
            Ok(found)
        }
    }
}

/// Whether a program can have memory at all bytes of a place.
fn is_of_programs(place: Place) -> bool {
    let end = place.address.checked_add(place.len);
    place.address >= LOWEST && end.is_some_and(|end| end <= HIGHEST)
}

fn evaluated(text: &str, space: &AddressSpace, machine: &dyn Machine) -> Result<Place, Unplaced> {
    match evaluated_in(text, space, machine, &[]) {
        // A name that only a library has is visible to its own code.
        Err(Unplaced::Missing(what)) => {
            let modules = space.modules().iter().filter(|module| !module.is_system);
            let mut found = modules.filter_map(|module| {
                let frame = frame_in(module, space)?;
                let place = evaluated_in(text, space, machine, &[frame]).ok()?;
                let is_of_module = module.range.contains(&place.address);
                is_of_module.then_some(place)
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

fn evaluated_in(
    text: &str,
    space: &AddressSpace,
    machine: &dyn Machine,
    frames: &[Frame],
) -> Result<Place, Unplaced> {
    let machine = &OfProgram {
        machine,
        asks_thread: Cell::new(false),
    };
    let context = Context {
        space,
        machine,
        frames,
        index: 0,
        calls: None,
        kept: None,
    };
    let is_type = |name: &str| expr::is_type(name, &context);
    let expression = expr::parse_with(text, &is_type).map_err(|error| {
        Unplaced::Refused(Diagnostic {
            message: format!(
                "{text}: {} (at character {})",
                error.message,
                error.position + 1
            ),
            hint: error.hint,
        })
    })?;
    let look = Look { space, machine };
    let value = expr::evaluate(&expression, &context)
        .map(|value| value.unreferenced(&look).unwrap_or(value))
        .map_err(|error| match machine.asks_thread.get() {
            true => Unplaced::Refused(of_each_thread(text)),
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
        (Some(address), Some(len)) => Ok(Place { address, len }),
        (None, _) if machine.asks_thread.get() => Err(Unplaced::Refused(of_each_thread(text))),
        (None, _) if value.bytes.is_err() => {
            let why = value.bytes.err().map(|why| why.to_string());
            let why = why.unwrap_or_default();
            Err(Unplaced::Refused(unreachable(text, &why)))
        }
        (None, _) => Err(Unplaced::Refused(
            format!("{text} does not lie in memory: only what is stored there is written").into(),
        )),
        (Some(_), None) => Err(Unplaced::Refused(
            format!("the size of {text} is not known").into(),
        )),
    }
}

/// Explains why an expression has no value, and what to do.
fn unplaced(
    text: &str,
    expression: &expr::Expr,
    space: &AddressSpace,
    error: EvalError,
) -> Unplaced {
    if let Some(local) = local(expression, space) {
        return Unplaced::Refused(local);
    }
    match error.missing {
        Some(Missing::Name | Missing::Elsewhere | Missing::Type) => {
            let near = nearest_global(expression, space);
            let what = Diagnostic::from(error);
            Unplaced::Missing(match (near, &what.hint) {
                (Some(near), None) => what.with_hint(format!("did you mean \"{near}\"?")),
                _ => what,
            })
        }
        _ if error.is_meaningless => Unplaced::Refused(error.into()),
        _ => Unplaced::Refused(unreachable(text, &error.message)),
    }
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

/// The target of an expression does not exist yet.
fn unreachable(text: &str, why: &str) -> Diagnostic {
    let what = format!("nothing is known to be at {text} before the program runs: {why}");
    Diagnostic::new(what).with_hint(format!(
        "log the writes of the pointer itself; or stop where it is set (hindsight start --break LOCATION PROGRAM) and then: hindsight watch '{text}'"
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
}

impl Machine for OfProgram<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
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

/// What to do about a name of a function's local variable.
fn local(expression: &expr::Expr, space: &AddressSpace) -> Option<Diagnostic> {
    let names = expr::names(expression);
    let (function, name) = names.iter().find_map(|name| function_with(name, space))?;
    let message = format!(
        "{name} is a variable of {function}, which has a place in memory only while {function} runs"
    );
    Some(Diagnostic::new(message).with_hint(format!(
        "stop there and watch it: hindsight start --break {function} PROGRAM, then hindsight watch {name}; see it at each pass: --logpoint {function} '{name}={{{name}}}'; or find every write afterwards: record --full, then last-write {name}"
    )))
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
        Place { address, len }.pieces()
    }

    #[test]
    fn watchpoints_cover_exactly_the_bytes_of_a_place() {
        assert_eq!(pieces(0x1000, 8), [(0x1000, 8)]);
        assert_eq!(pieces(0x1004, 4), [(0x1004, 4)]);
        assert_eq!(pieces(0x1004, 8), [(0x1004, 4), (0x1008, 4)]);
        assert_eq!(pieces(0x1001, 3), [(0x1001, 1), (0x1002, 2)]);
        assert_eq!(pieces(0x1000, 12), [(0x1000, 8), (0x1008, 4)]);
        assert_eq!(pieces(0x1000, 32).len(), 4);
        assert_eq!(pieces(0x1001, 32).len(), 7);
    }

    #[test]
    fn places_overlap_where_they_share_a_byte() {
        let place = Place {
            address: 0x1000,
            len: 4,
        };
        assert!(place.has_some_of(0x1003, 1));
        assert!(place.has_some_of(0xff8, 16));
        assert!(!place.has_some_of(0x1004, 4));
        assert!(!place.has_some_of(0xffc, 4));
    }
}
