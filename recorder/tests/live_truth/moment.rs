//! A stopped moment as text: what Hindsight says, what gdb says, and where they differ.

use std::{collections::BTreeMap, fmt::Write, ops::Range};

use debuginfo::types::{Language, TypeKind};
use debuginfo::value::{Look, Value};
use debuginfo::{
    AddressSpace, Certainty, Frame, Machine, Register, at_frame, backtrace, variables_at,
};
use values::{RenderOptions, children, render_certain};

use crate::stops::place;

/// Frames whose variables are compared.
const FRAMES_WITH_VARIABLES: usize = 5;
/// Of structures: how deep they are looked into, and how many elements of an array are compared.
const DEEPEST: usize = 4;
const ELEMENTS: usize = 4;

/// What is said of one stop.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    pub place: String,
    pub registers: BTreeMap<String, u64>,
    /// Vector registers, where they are told.
    pub vectors: Vectors,
    /// Function, file's name, line, whether inlined, and address.
    pub frames: Vec<String>,
    /// Frame, name and text, the innermost block first.
    pub variables: Vec<Variable>,
    /// Variables here that are declared where the frame stands, or behind that: they need not have a value yet.
    pub undeclared: Vec<(usize, String)>,
    /// Where variables are that lie in memory: frame, name and addresses.
    pub places: Vec<(usize, String, Range<u64>)>,
    /// Bytes from rsp on, where gdb was asked for them.
    pub stack: Vec<u8>,
    /// Of those, what holds a value that the program gave it, and what gdb calls it; see `lasting.py`.
    pub lasting: Vec<(Range<u64>, String)>,
}

/// Frame, name and text.
type Variable = (usize, String, String);

/// Vector registers by their numbers.
pub type Vectors = BTreeMap<usize, u128>;

const REGISTERS: [&str; 20] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "rip", "fs_base", "gs_base", "eflags",
];
const VECTORS: usize = 16;

/// Behind a call these hold whatever the callee left in them, and a traced callee returns by way of a thunk. Where they
/// matter then, as arguments or for variables, the variables show it.
const SCRATCH: [&str; 9] = [
    "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "eflags",
];
/// Libc leaves other things in these once the agent has had a thread: its locks and its memory go other ways.
pub const LEFT_BY_LIBC: [&str; 4] = ["r8", "r9", "r10", "r11"];

/// Where a program without address randomisation has its heap, behind what its file takes.
const HEAP: std::ops::Range<u64> = 0x5555_5557_0000..0x5556_0000_0000;
/// What malloc hands out lies at multiples of this.
const HEAP_ALIGNMENT: u64 = 16;

/// Compares vector registers by their halves. Two pointers to blocks of the heap are not comparable: where a block lies depends on
/// what was allocated before the program ran.
fn holds_the_same(ours: u128, theirs: u128) -> bool {
    [0, 64].into_iter().all(|half| {
        let (ours, theirs) = ((ours >> half) as u64, (theirs >> half) as u64);
        let are_blocks = HEAP.contains(&ours) && HEAP.contains(&theirs);
        ours == theirs || are_blocks && ours.abs_diff(theirs).is_multiple_of(HEAP_ALIGNMENT)
    })
}

impl Moment {
    /// What Hindsight says of a stopped thread.
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

    /// What Hindsight says of these frames where only these registers are known.
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

    /// What gdb printed about several stops.
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

    /// Forgets vector registers that hold on both sides what they held at the entry point: that was left there by whatever ran
    /// before the program.
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

    /// How many vector registers are the same, and how many are not: no call keeps one, so that libc leaves what it likes in them.
    pub fn vectors_left(&self, theirs: &Moment) -> [usize; 2] {
        let apart = self.vectors_apart(theirs).len();
        [self.vectors.len() - apart, apart]
    }

    /// The vector registers that are not the same, with what they hold here and there.
    pub fn vectors_apart(&self, theirs: &Moment) -> Vec<(usize, u128, u128)> {
        let pair = |(number, value): (&usize, &u128)| {
            let other = theirs.vectors.get(number).copied().unwrap_or_default();
            (!holds_the_same(*value, other)).then_some((*number, *value, other))
        };
        self.vectors.iter().filter_map(pair).collect()
    }

    /// How many registers that libc leaves other things in are the same, and how many are not.
    pub fn left(&self, theirs: &Moment) -> [usize; 2] {
        let is_same = |name: &&&str| self.registers.get(**name) == theirs.registers.get(**name);
        let same = LEFT_BY_LIBC.iter().filter(is_same).count();
        [same, LEFT_BY_LIBC.len() - same]
    }

    /// The variables that another account does not have.
    fn without(&self, other: &Moment) -> Vec<&Variable> {
        let mut left: Vec<&Variable> = other.variables.iter().collect();
        let is_left = |(level, name, text): &&Variable| {
            let same = |v: &&Variable| v.0 == *level && v.1 == *name;
            // Of several of the same name, the one that says the same.
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

    /// Tells whether a variable, or a part of one, has what calls before left on the stack: compilers fill variables with a pattern where
    /// they are declared, and a va_list not at all.
    fn has_no_value_yet(&self, level: usize, name: &str) -> bool {
        let is_part = |whole: &str| {
            let rest = name.strip_prefix(whole);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let mut undeclared = self.undeclared.iter().filter(|(at, _)| *at == level);
        undeclared.any(|(_, whole)| is_part(whole)) || is_part("argp")
    }

    /// Where two accounts of a stop differ. Without values, neither what variables hold is compared nor what calls leave in registers.
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
            // A system call leaves its return address there: that in libc, or in the runtime, where that stands in for libc.
            let in_libraries = |value: &u64| (0x7fff_f700_0000..0x7fff_ffff_0000).contains(value);
            let is_of_call =
                name == "rcx" && in_libraries(value) && other.is_some_and(in_libraries);
            let counts = counts && !is_of_call;
            // The process's number.
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
        // gdb chooses variants by reading them, also where they lie nowhere, and then has nothing to say of the whole.
        let is_error = |v: &&Variable| {
            v.2.starts_with("<error: Cannot access memory at address 0x0")
        };
        // Where it fails otherwise, it has nothing to say of what is inside.
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
        // Of a block that the compiler has dissolved, gdb lists the variables wherever the function is, without values,
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

/// The vector registers of a stopped thread.
pub fn vectors(machine: &dyn Machine) -> Vectors {
    let vector = |number: usize| {
        let register = Register(Register::XMM0.0 + number as u16);
        let (bytes, _) = machine.vector(register).expect("a register that was seen");
        (number, u128::from_le_bytes(bytes))
    };
    (0..VECTORS).map(vector).collect()
}

/// The frames that gdb shows: where an inlined function has jumped elsewhere, it leaves out those around it.
fn shown(frames: &[Frame]) -> Vec<usize> {
    let is_left_out = |at: usize| {
        let inner = at.checked_sub(1).and_then(|inner| frames.get(inner));
        frames[at].is_tail_call && inner.is_some_and(|f| f.is_tail_call && f.inlined)
    };
    (0..frames.len()).filter(|at| !is_left_out(*at)).collect()
}

/// A value as gdb would write it: of Rust's pointers, which we follow, the address, and of others if what is behind them may
/// have changed. What is stale says so.
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

/// gdb writes the structures of Rust in a style of its own: they are compared by where they are and by their parts.
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

/// A structure, then what is in it; of types with variants nothing, since gdb dies of those that are not initialised yet.
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

/// Of a structure or array of C or C++, the numbers and pointers in it. What setjmp keeps is mixed with a secret of the process.
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
            // What a reference stands for.
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

/// A frame as a line, as gdb's script writes it.
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

/// A name without the arguments of generic functions and types, which not all names of the linker have:
/// `<a::B<T> as C>::d::<E>` becomes `<a::B as C>::d`.
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

/// Tells whether two texts with a `FILE:LINE` in them are the same. gdb keeps the line of an inlined call in 16 bits. What compilers say
/// is of no line (line 0, as clang does where it has merged code) has none here; gdb takes the line of the code before it.
pub fn is_same_place(ours: &str, theirs: &str) -> bool {
    let folded = || {
        let (before, rest) = ours.split_once(':')?;
        // Names of Rust have colons too; the line follows the last one.
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

/// Structures and arrays are not compared as a whole: parts of them nobody has initialised, and jump buffers hold a
/// secret of the process. Of texts, gdb counts characters that repeat.
///
/// Registers that calls need not preserve are unknown in callers; gdb takes them to hold what the callee left there.
/// So it does with the stack of functions that jumped to others.
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

/// Tells whether nothing of a value is left, of a structure none of its parts.
fn is_gone(text: &str) -> bool {
    let left = text.replace("<optimized out>", "");
    let mut parts = left.split(['{', '}', ',']).map(str::trim);
    let is_empty = |part: &str| {
        let repeats = part.starts_with("<repeats ") && part.ends_with(" times>");
        part.is_empty() || part.ends_with('=') || repeats
    };
    text.contains("<optimized out>") && parts.all(is_empty)
}

/// Tells whether two texts are the same, but for the digits of floating point numbers: gdb writes 17, we as many as tell
/// the number from others.
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
        // gdb cannot read what GCC writes of pieces that may be unset; otherwise neither knows.
        return theirs.contains("DW_OP_GNU_uninit must always be the very last op")
            || ours.contains('<')
            || ours.ends_with(" bytes");
    }
    if theirs == "<synthetic pointer>" && ours == "<optimized out>" {
        // gdb's word for parts of a structure behind the last piece that is described.
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

/// Characters beyond ASCII as their bytes: gdb is told to write them so.
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

/// What both sides say, however they like to say it: without the symbols behind pointers and the zeros at the end of
/// texts, which gdb counts.
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
