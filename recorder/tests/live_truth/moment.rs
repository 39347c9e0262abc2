//! A stopped moment as text: what Hindsight reports, what gdb reports, and the differences.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    ops::Range,
};

use debuginfo::types::{Language, TypeKind};
use debuginfo::value::{Look, Value};
use debuginfo::{
    AddressSpace, Certainty, Frame, Machine, Register, at_frame, backtrace, variables_at,
};
use values::{RenderOptions, children, render_certain};

use crate::stops::place;

/// Number of frames whose variables are compared.
const FRAMES_WITH_VARIABLES: usize = 5;
/// For structures: the depth of comparison, and the number of compared elements of an array.
const DEEPEST: usize = 4;
const ELEMENTS: usize = 4;

/// A report of one stop.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    pub place: String,
    pub registers: BTreeMap<String, u64>,
    /// Vector registers, if reported.
    pub vectors: Vectors,
    /// Function, file name, line, whether inlined, and address.
    pub frames: Vec<String>,
    /// Frame, name and text, innermost block first.
    pub variables: Vec<Variable>,
    /// Variables declared at or after the frame's position: they need not have a value yet.
    pub undeclared: Vec<(usize, String)>,
    /// Variables in memory: frame, name and addresses.
    pub places: Vec<(usize, String, Range<u64>)>,
    /// Bytes from rsp on, if gdb was asked for them.
    pub stack: Vec<u8>,
    /// The parts of the stack with a value that the program gave them, and gdb's name for it; see `lasting.py`.
    pub lasting: Vec<(Range<u64>, String)>,
}

/// Frame, name and text.
type Variable = (usize, String, String);

/// Vector registers by number.
pub type Vectors = BTreeMap<usize, u128>;

const REGISTERS: [&str; 20] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "rip", "fs_base", "gs_base", "eflags",
];
const VECTORS: usize = 16;

/// After a call these hold whatever the callee left in them, and a traced callee returns through a thunk. If they
/// matter then, as arguments or for variables, the variables show it.
const SCRATCH: [&str; 9] = [
    "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "eflags",
];
/// Libc leaves other values in these once the agent has had a thread: its locks and its allocator take other paths.
pub const LEFT_BY_LIBC: [&str; 4] = ["r8", "r9", "r10", "r11"];

/// Returns the part of a register's value that does not depend on whose code made the last system call: it leaves rflags
/// in r11 (Intel SDM volume 2, SYSCALL), of libc's code, or of the runtime's if that replaces libc's function. Its
/// status flags are CF, PF, AF, ZF, SF and OF.
pub fn left_value(name: &str, value: u64) -> u64 {
    match value & !0x8d5 {
        0x202 if name == "r11" => 0x202,
        _ => value,
    }
}

/// The heap of a program without address randomisation, after its file's memory.
const HEAP: std::ops::Range<u64> = 0x5555_5557_0000..0x5556_0000_0000;
/// Alignment of malloc's blocks.
const HEAP_ALIGNMENT: u64 = 16;

/// Compares vector registers by their halves. Two pointers to heap blocks are not comparable: a block's address depends
/// on what was allocated before the program ran.
fn holds_the_same(ours: u128, theirs: u128) -> bool {
    [0, 64].into_iter().all(|half| {
        let (ours, theirs) = ((ours >> half) as u64, (theirs >> half) as u64);
        let are_blocks = HEAP.contains(&ours) && HEAP.contains(&theirs);
        ours == theirs || are_blocks && ours.abs_diff(theirs).is_multiple_of(HEAP_ALIGNMENT)
    })
}

impl Moment {
    /// Returns Hindsight's report of a stopped thread.
    pub fn of(space: &AddressSpace, machine: &dyn Machine) -> Moment {
        let frames = backtrace(space, machine, 60).frames;
        let mut moment = Moment::with(space, machine, &REGISTERS, &frames);
        for number in 0..VECTORS {
            let register = Register(Register::XMM0.0 + number as u16);
            let (bytes, _) = machine.vector(register).expect("a register that was seen");
            moment.vectors.insert(number, u128::from_le_bytes(bytes));
        }
        moment
    }

    /// Returns Hindsight's report of these frames if only these registers are known.
    pub fn with(
        space: &AddressSpace,
        machine: &dyn Machine,
        registers: &[&str],
        frames: &[Frame],
    ) -> Moment {
        let mut moment = Moment::default();
        for name in registers {
            let register = Register::by_name(name).expect("a register");
            let (value, _) = machine
                .register(register)
                .expect("a register that was seen");
            moment.registers.insert((*name).to_owned(), value);
        }
        let source = frames.first().and_then(|frame| frame.source.as_ref());
        moment.place = source.map_or_else(|| "?:0".to_owned(), |s| place(&s.file, s.line));
        let shown = shown(frames);
        let described = shown.iter().map(|at| described(&frames[*at]));
        moment.frames = described.collect();
        let options = RenderOptions {
            raw: true,
            ..RenderOptions::default()
        };
        for (level, at) in shown.into_iter().enumerate().take(FRAMES_WITH_VARIABLES) {
            at_frame(space, machine, frames, at, |site| {
                let look = Look {
                    space,
                    machine: site.machine,
                };
                for variable in variables_at(site) {
                    let value = variable.read(site);
                    let name = variable.name.clone();
                    let line = frames[at].source.as_ref().map(|source| source.line);
                    if variable.line >= line && !variable.is_parameter {
                        moment.undeclared.push((level, name.clone()));
                    }
                    if is_told_in_parts(&value) {
                        let parts = parts(&name, &value, 0, &look);
                        let parts = parts.into_iter().map(|(name, text)| (level, name, text));
                        moment.variables.extend(parts);
                        continue;
                    }
                    let text = text_of(&value, &options, &look);
                    let is_c = matches!(value.ty.language(), Language::C | Language::Cpp);
                    let has_members = is_c && text.starts_with('{');
                    moment.variables.push((level, name.clone(), text));
                    if has_members {
                        let members = members(&name, &value, 0, &look).into_iter();
                        let members = members.map(|(name, text)| (level, name, text));
                        moment.variables.extend(members);
                    }
                }
            });
        }
        moment
    }

    /// Parses what gdb printed about several stops.
    pub fn all(output: &str) -> Vec<Moment> {
        let mut moments: Vec<Moment> = Vec::new();
        for line in output.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            if let ["STOP", place] = fields[..] {
                moments.push(Moment {
                    place: place.to_owned(),
                    ..Moment::default()
                });
            }
            let Some(moment) = moments.last_mut() else {
                continue;
            };
            match fields[..] {
                ["REGISTER", name, value] => {
                    let value = u64::from_str_radix(value, 16).expect("a number");
                    moment.registers.insert(name.to_owned(), value);
                }
                ["WHOLE", number, value] => {
                    let number = number.parse().expect("a number");
                    let value = u128::from_str_radix(value, 16).expect("a number");
                    moment.vectors.insert(number, value);
                }
                ["STACK", text] => {
                    let bytes = (0..text.len()).step_by(2);
                    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("a byte");
                    moment.stack = bytes.map(byte).collect();
                }
                ["PLACE", level, name, address, len] => {
                    let level = level.parse().expect("a number");
                    let start = u64::from_str_radix(address, 16).expect("a number");
                    let len: u64 = len.parse().expect("a number");
                    let place = (level, name.to_owned(), start..start + len);
                    moment.places.push(place);
                }
                ["LASTING", address, len, what] => {
                    let start = u64::from_str_radix(address, 16).expect("a number");
                    let len: u64 = len.parse().expect("a number");
                    moment.lasting.push((start..start + len, what.to_owned()));
                }
                ["FRAME", text] => moment.frames.push(without_arguments(text)),
                ["VARIABLE", level, name, text] => {
                    let level = level.parse().expect("a number");
                    let text = plain(&text.replace("\\\\", "\\"));
                    moment.variables.push((level, name.to_owned(), text));
                }
                _ => {}
            }
        }
        moments
    }

    /// Drops vector registers that hold on both sides what they held at the entry point: values left there before the
    /// program ran.
    pub fn forget_vectors(&mut self, ours_at_entry: &Vectors, theirs: &Moment, output: &str) {
        for line in output.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            if let ["AT_ENTRY", number, value] = fields[..] {
                let number = number.parse().expect("a number");
                let value = u128::from_str_radix(value, 16).expect("a number");
                let is_ours = self.vectors.get(&number) == ours_at_entry.get(&number);
                if is_ours && theirs.vectors.get(&number) == Some(&value) {
                    self.vectors.remove(&number);
                }
            }
        }
    }

    /// Counts the equal and the different vector registers: no call preserves one, so libc leaves arbitrary values in
    /// them.
    pub fn vectors_left(&self, theirs: &Moment) -> [usize; 2] {
        let apart = self.vectors_apart(theirs).len();
        [self.vectors.len() - apart, apart]
    }

    /// Returns the vector registers that differ, with both values.
    pub fn vectors_apart(&self, theirs: &Moment) -> Vec<(usize, u128, u128)> {
        let pair = |(number, value): (&usize, &u128)| {
            let other = theirs.vectors.get(number).copied().unwrap_or_default();
            (!holds_the_same(*value, other)).then_some((*number, *value, other))
        };
        self.vectors.iter().filter_map(pair).collect()
    }

    /// Counts the equal and the different registers among those in which libc leaves other values.
    pub fn left(&self, theirs: &Moment) -> [usize; 2] {
        let value = |of: &Moment, name: &str| Some(left_value(name, *of.registers.get(name)?));
        let is_same = |name: &&&str| value(self, name) == value(theirs, name);
        let same = LEFT_BY_LIBC.iter().filter(is_same).count();
        [same, LEFT_BY_LIBC.len() - same]
    }

    /// Returns the variables that the other report does not have.
    fn without(&self, other: &Moment) -> Vec<&Variable> {
        let mut left: Vec<&Variable> = other.variables.iter().collect();
        let is_left = |(level, name, text): &&Variable| {
            let same = |v: &&Variable| v.0 == *level && v.1 == *name;
            // Among several of the same name, prefer one with the same text.
            let at = left.iter().position(|v| same(v) && v.2 == *text);
            let at = at.or_else(|| left.iter().position(same));
            at.map(|at| left.remove(at)).is_none()
        };
        let mut own: Vec<&Variable> = self.variables.iter().collect();
        let only: Vec<bool> = own.iter().map(is_left).collect();
        let mut only = only.iter();
        own.retain(|_| only.next() == Some(&true));
        own
    }

    /// Returns whether a variable, or a part of one, holds what earlier calls left on the stack: compilers fill
    /// variables with a pattern where they are declared, but not a va_list.
    fn has_no_value_yet(&self, level: usize, name: &str) -> bool {
        let mut undeclared = self.undeclared.iter().filter(|(at, _)| *at == level);
        undeclared.any(|(_, whole)| is_part(name, whole)) || is_part(name, "argp")
    }

    /// Forgets what differs between two runs under gdb: what setjmp mixes with a secret of the process, the time, and numbers
    /// from a seed of the clock.
    pub fn forget_chance(&mut self, once: &Moment, again: &Moment) {
        self.registers
            .retain(|name, _| once.registers.get(name) == again.registers.get(name));
        self.variables.retain(|(level, name, _)| {
            let in_run = |run: &Moment| {
                let is_it = |v: &&Variable| v.0 == *level && v.1 == *name;
                run.variables.iter().find(is_it).map(|v| v.2.clone())
            };
            in_run(once) == in_run(again)
        });
    }

    /// Returns the structures that have not been filled yet, with their frames: optimised code moves that to where they are
    /// used, and parts still have the pattern that compilers fill variables with.
    pub fn unfilled(&self) -> BTreeSet<(usize, String)> {
        let is_unset = |v: &&Variable| v.1.contains('.') && is_pattern(&v.2);
        let unset = self.variables.iter().filter(is_unset);
        unset
            .map(|(level, name, _)| (*level, whole(name)))
            .collect()
    }

    /// Forgets variables with all their parts.
    pub fn forget(&mut self, those: &BTreeSet<(usize, String)>) {
        self.variables
            .retain(|(level, name, _)| !those.contains(&(*level, whole(name))));
    }

    /// Returns the differences between two reports of a stop. Without `with_values`, neither variables' values nor
    /// registers that calls clobber are compared.
    pub fn differences(&self, theirs: &Moment, with_values: bool) -> Vec<String> {
        let mut found = Vec::new();
        let place = &self.place;
        if !is_same_place(place, &theirs.place) {
            return vec![format!("{place}: gdb is at {}", theirs.place)];
        }
        for (name, value) in &self.registers {
            let other = theirs.registers.get(name);
            let name = name.as_str();
            let counts = with_values || !SCRATCH.contains(&name);
            let counts = counts && !LEFT_BY_LIBC.contains(&name);
            // A system call leaves its return address there: in libc, or in the runtime if that replaces libc's
            // function.
            let in_libraries = |value: &u64| (0x7fff_f700_0000..0x7fff_ffff_0000).contains(value);
            let is_of_call =
                name == "rcx" && in_libraries(value) && other.is_some_and(in_libraries);
            let counts = counts && !is_of_call;
            // The process id.
            let is_pid = std::path::Path::new(&format!("/proc/{value}")).exists() && *value > 1;
            if other != Some(value) && counts && !is_pid {
                found.push(format!("{place}: {name} is {value:x}, gdb: {other:x?}"));
            }
        }
        for at in 0..self.frames.len().max(theirs.frames.len()) {
            let (ours, other) = (self.frames.get(at), theirs.frames.get(at));
            let is_same = match (ours, other) {
                (Some(ours), Some(other)) => is_same_place(ours, other),
                _ => false,
            };
            if !is_same {
                found.push(format!("{place}: frame {at} is {ours:?}, gdb: {other:?}"));
                break;
            }
        }
        let (mut ours, mut other) = (self.without(theirs), theirs.without(self));
        // gdb reads memory to choose a variant, even if it lies nowhere, and then reports nothing of the whole.
        let is_error = |v: &&Variable| {
            v.2.starts_with("<error: Cannot access memory at address 0x0")
        };
        // On other failures, gdb reports nothing of the contents.
        let is_failure = |v: &&Variable| v.2.starts_with("<error: ");
        let failed: Vec<&Variable> = theirs.variables.iter().filter(is_failure).collect();
        let is_inside = |v: &&Variable| {
            let rest = |whole: &&Variable| {
                let rest = v.1.strip_prefix(&whole.1).filter(|_| v.0 == whole.0)?;
                Some((rest, is_error(whole)))
            };
            let mut rests = failed.iter().filter_map(rest);
            rests.any(|(rest, is_nowhere)| match rest.is_empty() {
                true => is_nowhere,
                false => rest.starts_with(['.', '[']),
            })
        };
        ours.retain(|v| !is_inside(v));
        other.retain(|v| !is_inside(v));
        // gdb shows the parts of a variable without bytes even where the variable has no place.
        other.retain(|v| v.2 != "0 bytes");
        // We name the variables of a block that an inlined copy has lost; there is no value to be wrong.
        ours.retain(|v| v.2 != "<optimized out>");
        // For a block that the compiler has dissolved, gdb lists the variables anywhere in the function without values,
        // although each has a place in the block that it was moved to.
        let is_moved = |(_, _, text): &&Variable| is_gone(text);
        let other: Vec<&Variable> = other.into_iter().filter(|v| !is_moved(v)).collect();
        if !ours.is_empty() || !other.is_empty() {
            found.push(format!(
                "{place}: only here {ours:?}, only in gdb {other:?}"
            ));
        }
        let mut left = theirs.variables.clone();
        for (level, name, text) in &self.variables {
            let is_it = |v: &Variable| v.0 == *level && v.1 == *name;
            let at = left.iter().position(|v| is_it(v) && v.2 == *text);
            let at = at.or_else(|| left.iter().position(is_it));
            let Some((_, _, other)) = at.map(|at| left.remove(at)) else {
                continue;
            };
            if with_values
                && !self.has_no_value_yet(*level, name)
                && is_comparable(text, &other)
                && !is_same(text, &other)
            {
                found.push(format!(
                    "{place}: #{level} {name} is {text:?}, gdb: {other:?}"
                ));
            }
        }
        found
    }
}

/// Returns whether a variable is another one or a part of it.
fn is_part(name: &str, whole: &str) -> bool {
    let rest = name.strip_prefix(whole);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns the name of the variable of which this is a part.
fn whole(name: &str) -> String {
    name.split(['.', '[']).next().unwrap_or_default().to_owned()
}

/// Returns whether a number of eight bytes is the pattern that compilers fill variables with.
fn is_pattern(text: &str) -> bool {
    const PATTERN: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    text == PATTERN.to_string() || text == format!("{PATTERN:#x}")
}

/// Returns the vector registers of a stopped thread.
pub fn vectors(machine: &dyn Machine) -> Vectors {
    let vector = |number: usize| {
        let register = Register(Register::XMM0.0 + number as u16);
        let (bytes, _) = machine.vector(register).expect("a register that was seen");
        (number, u128::from_le_bytes(bytes))
    };
    (0..VECTORS).map(vector).collect()
}

/// Returns the frames that gdb shows: if an inlined function has jumped elsewhere, it leaves out those around it.
fn shown(frames: &[Frame]) -> Vec<usize> {
    let is_left_out = |at: usize| {
        let inner = at.checked_sub(1).and_then(|inner| frames.get(inner));
        frames[at].is_tail_call && inner.is_some_and(|f| f.is_tail_call && f.inlined)
    };
    (0..frames.len()).filter(|at| !is_left_out(*at)).collect()
}

/// Returns a value as gdb would write it. Of Rust's pointers, which we follow, and of other pointers if their target
/// may have changed, only the address. Stale values are marked as such.
pub fn text_of(value: &Value, options: &RenderOptions, look: &Look<'_>) -> String {
    let (text, certainty) = render_certain(value, options, look);
    let is_rust = value.ty.language() == Language::Rust;
    let mut text = match value.as_address() {
        Ok(address)
            if value.kind() == TypeKind::Pointer && (is_rust || certainty != Certainty::Known) =>
        {
            format!("{address:#x}")
        }
        _ => plain(&text),
    };
    let oldest = match value.kind() {
        TypeKind::Pointer => value.certainty,
        _ => certainty,
    };
    if let (Certainty::Stale { as_of }, Ok(_)) = (oldest, &value.bytes) {
        text.push_str(&format!(" <stale: as of event {as_of}>"));
    }
    text
}

/// gdb writes Rust's structures in a style of its own: they are compared by address and in parts.
fn is_told_in_parts(value: &Value) -> bool {
    let is_plain = matches!(
        value.kind(),
        TypeKind::Integer { .. }
            | TypeKind::Float
            | TypeKind::Bool
            | TypeKind::Char { .. }
            | TypeKind::Pointer
    );
    value.ty.language() == Language::Rust && !is_plain
}

/// Returns a structure, then its parts. Types with variants have none, since gdb crashes on uninitialised ones.
fn parts(name: &str, value: &Value, depth: usize, look: &Look<'_>) -> Vec<(String, String)> {
    let options = RenderOptions {
        raw: true,
        max_elements: ELEMENTS,
        ..RenderOptions::default()
    };
    if !is_told_in_parts(value) {
        return vec![(name.to_owned(), text_of(value, &options, look))];
    }
    let size = value.ty.size().unwrap_or(0);
    let place = value
        .address()
        .map_or(String::new(), |at| format!(" at {at:x}"));
    let mut all = vec![(name.to_owned(), format!("{size} bytes{place}"))];
    // gdb does not look into unions.
    let ty = value.ty.strip();
    if ty.variants().is_some() || ty.kind() == TypeKind::Union || depth == DEEPEST {
        return all;
    }
    for (part, inner) in children(value, &options, look) {
        let dot = if part.starts_with('[') { "" } else { "." };
        let name = format!("{name}{dot}{part}");
        all.extend(parts(&name, &inner, depth + 1, look));
    }
    all
}

/// Returns the numbers and pointers in a C or C++ structure or array. What setjmp saves is mixed with a secret of the
/// process.
fn members(name: &str, value: &Value, depth: usize, look: &Look<'_>) -> Vec<(String, String)> {
    let options = RenderOptions {
        raw: true,
        max_elements: ELEMENTS,
        ..RenderOptions::default()
    };
    let mut types = [value.ty.name(), value.ty.strip().name()].into_iter();
    if depth == DEEPEST || types.any(|name| name.contains("jmp_buf")) {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (part, inner) in children(value, &options, look) {
        if part == "*" {
            // The referent of a reference.
            return members(name, &inner, depth, look);
        }
        let name = match part.starts_with('[') {
            true => format!("{name}{part}"),
            false => format!("{name}.{part}"),
        };
        let is_whole = matches!(
            inner.kind(),
            TypeKind::Struct | TypeKind::Class | TypeKind::Union | TypeKind::Array
        );
        match is_whole {
            _ if part == "<unnamed>" => {}
            true => all.extend(members(&name, &inner, depth + 1, look)),
            false => all.push((name, text_of(&inner, &options, look))),
        }
    }
    all
}

/// Returns a frame as one line, in the format of gdb's script.
pub fn described(frame: &Frame) -> String {
    let name = frame.function.as_deref().unwrap_or("?");
    let source = frame.source.as_ref();
    let file = source.map_or("", |s| s.file.rsplit('/').next().unwrap_or(""));
    let line = source.map_or(0, |s| s.line);
    let kind = if frame.inlined && !frame.is_tail_call {
        "inlined"
    } else {
        ""
    };
    without_arguments(&format!("{name} {file}:{line} {kind} {:x}", frame.pc))
}

/// Returns a name without generic arguments, which not all linkage names have: `<a::B<T> as C>::d::<E>` becomes
/// `<a::B as C>::d`.
pub fn without_arguments(name: &str) -> String {
    let mut kept = String::new();
    let mut depth = 0usize;
    let mut before = ' ';
    for character in name.chars() {
        let is_arrow = std::mem::replace(&mut before, character) == '-';
        let opens = character == '<' && kept.ends_with(|c: char| c.is_alphanumeric() || c == ':');
        match character {
            '<' if depth > 0 || opens => depth += 1,
            '>' if depth > 0 && !is_arrow => depth -= 1,
            _ if depth > 0 => {}
            _ => kept.push(character),
        }
        if depth == 1 && opens && kept.ends_with("::") {
            kept.truncate(kept.len() - 2);
        }
    }
    kept
}

/// Returns whether two texts with a `FILE:LINE` are the same. gdb keeps the line of an inlined call in 16 bits. Code to
/// which compilers give no line (line 0, as clang does for merged code) has none here; gdb takes the line of the
/// preceding code.
pub fn is_same_place(ours: &str, theirs: &str) -> bool {
    let folded = || {
        let (before, rest) = ours.split_once(':')?;
        // Rust names contain colons too; the line follows the last one.
        let (before, rest) = match rest.rsplit_once(':') {
            Some((more, rest)) => (format!("{before}:{more}"), rest),
            None => (before.to_owned(), rest),
        };
        let end = rest.find(' ').unwrap_or(rest.len());
        let line = rest[..end].parse::<u32>().ok()? & 0xffff;
        Some(format!("{before}:{line}{}", &rest[end..]))
    };
    let is_of_no_line = || {
        let (name, rest) = ours.split_once(" :0 ")?;
        let (before, after) = (theirs.strip_prefix(name)?, theirs.strip_suffix(rest)?);
        Some(before.starts_with(' ') && after.ends_with(' '))
    };
    ours == theirs || folded().as_deref() == Some(theirs) || is_of_no_line() == Some(true)
}

/// Structures and arrays are not compared as a whole: parts of them may be uninitialised, and jump buffers hold a
/// secret of the process. In strings, gdb counts repeated characters.
///
/// Caller-saved registers are unknown in callers; gdb assumes that they hold what the callee left there. It does the
/// same for the stack of functions that jumped to others.
fn is_comparable(ours: &str, theirs: &str) -> bool {
    let unknown = [
        "is not saved by the functions that were called",
        "gave up its part of the stack",
    ];
    if unknown.iter().any(|why| ours.contains(why)) {
        return false;
    }
    if let "<guessed>" | "<no target>" = theirs {
        return false;
    }
    let is_whole = theirs.starts_with(['{', '"']);
    !is_whole && !theirs.contains(" <repeats ")
}

/// Returns whether nothing of a value is left; for a structure, none of its parts.
fn is_gone(text: &str) -> bool {
    let left = text.replace("<optimized out>", "");
    let mut parts = left.split(['{', '}', ',']).map(str::trim);
    let is_empty = |part: &str| {
        let repeats = part.starts_with("<repeats ") && part.ends_with(" times>");
        part.is_empty() || part.ends_with('=') || repeats
    };
    text.contains("<optimized out>") && parts.all(is_empty)
}

/// Returns whether two texts are the same except for the digits of floating-point numbers: gdb writes 17, we as many as
/// identify the number.
pub fn is_same(ours: &str, theirs: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let parts = text.split([' ', ',', '{', '}', '[', ']']);
        parts.map(str::to_owned).collect()
    };
    let caller = ["the caller does not tell", "the argument was optimized out"];
    if caller.iter().any(|why| ours.contains(why)) {
        return theirs == "<optimized out>";
    }
    if theirs.starts_with("<error: ") {
        // gdb cannot read GCC's description of pieces that may be unset; otherwise both sides do not know.
        return theirs.contains("DW_OP_GNU_uninit must always be the very last op")
            || ours.contains('<')
            || ours.ends_with(" bytes");
    }
    if theirs == "<synthetic pointer>" && ours == "<optimized out>" {
        // gdb's text for parts of a structure after the last described piece.
        return true;
    }
    let (ours, theirs) = (words(ours), words(theirs));
    let is_one = |a: &String, b: &String| {
        let numbers = (a.parse::<f64>(), b.parse::<f64>());
        a == b
            || a.contains(['.', 'e'])
                && matches!(numbers, (Ok(a), Ok(b)) if a.to_bits() == b.to_bits())
    };
    ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(a, b)| is_one(a, b))
}

/// Writes non-ASCII characters as their bytes, as gdb is told to.
fn in_ascii(text: &str) -> String {
    let mut written = String::new();
    for character in text.chars() {
        match character.is_ascii() {
            true => written.push(character),
            false => {
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    write!(written, "\\{byte:o}").expect("a String takes all");
                }
            }
        }
    }
    written
}

/// Reduces a text to what both sides write: without the symbols after pointers and the zeros at the end of strings,
/// which gdb counts.
pub fn plain(text: &str) -> String {
    let mut text = in_ascii(text);
    for (from, to) in [(", '\\000' <repeats ", "times>"), (" <", ">")] {
        let mut start = 0;
        while let Some(at) = text[start..].find(from).map(|at| start + at) {
            let before = text[..at]
                .rsplit([' ', '{', '('])
                .next()
                .unwrap_or_default();
            let end = text[at..]
                .find(to)
                .map_or(text.len(), |end| at + end + to.len());
            match before.starts_with("0x") || to == "times>" {
                true => text.replace_range(at..end, ""),
                false => start = at + 1,
            }
        }
    }
    while text.contains("\\000\"") {
        text = text.replace("\\000\"", "\"");
    }
    text
}
