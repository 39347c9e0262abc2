//! Determines what was thrown: the type of a C++ exception with its bases, and the text of the exception or of a Rust
//! panic.
//!
//! Texts are found without running anything in the program: `what()` is emulated, starting from the object's table of
//! virtual functions. A text that cannot be found in this way is unknown.

use debuginfo::Glob;

use super::emulate::{Call, Program, follow};
use crate::{
    live::{
        model::{Location, Tid},
        tracee::Tracee,
    },
    stop::Registers,
};

/// Longer texts are cut.
const LONGEST_TEXT: usize = 4096;
/// Maximum depth of a chain of base classes.
const DEEPEST: usize = 16;
const MOST_BASES: u32 = 64;
/// Length of the C++ runtime's header, after which the thrown object begins (Itanium C++ ABI, Exception Handling,
/// 2.2.1; libstdc++'s `unwind-cxx.h`).
const HEADER_BYTES: u64 = 0x70;
/// Offset of the exception class in the header. Its lowest bit says that the header refers to another exception.
const EXCEPTION_CLASS_OFFSET: u64 = 0x50;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Thrown {
    /// The type, or `panic`.
    pub what: String,
    /// The text of the exception or panic.
    pub message: Option<String>,
}

/// A class of an object: its own, or a base.
struct Class {
    /// The demangled name.
    name: String,
    /// The mangled name.
    mangled: String,
    /// Address of this part of the object, if known.
    at: Option<u64>,
}

/// Finds out what a thread has thrown: it only reads the program.
pub(crate) struct Exceptions<'t> {
    pub(super) tracee: &'t Tracee,
}

impl<'t> Exceptions<'t> {
    pub fn of(tracee: &'t Tracee) -> Self {
        Self { tracee }
    }
}

impl Exceptions<'_> {
    /// Returns what a thread at the entry of `__cxa_throw` throws, if its type or one of its bases matches.
    pub fn thrown(&self, tid: Tid, pattern: Option<&str>) -> Option<Thrown> {
        let registers = self.tracee.registers(tid).ok()?;
        // __cxa_throw (void * object, std::type_info * type, ...)
        self.described(&registers, registers.rdi, registers.rsi, pattern)
    }

    /// Returns the uncaught exception of a thread at the entry of `std::terminate`. That function may be called without
    /// an exception; then any pattern matches.
    pub fn unhandled(&self, tid: Tid, pattern: Option<&str>) -> Option<Thrown> {
        let registers = self.tracee.registers(tid).ok()?;
        match self.current_exception(&registers) {
            Some((object, type_info)) => self.described(&registers, object, type_info, pattern),
            None => Some(Thrown {
                what: "std::terminate".to_owned(),
                message: None,
            }),
        }
    }

    /// Returns the exception of a type at an address, thrown or caught by a thread.
    pub fn exception_at(&self, tid: Tid, object: u64, type_info: u64) -> Option<Thrown> {
        let registers = self.tracee.registers(tid).ok()?;
        self.described(&registers, object, type_info, None)
    }

    /// Returns the panic of a thread at the entry of `rust_panic`.
    pub fn panicked(&self, tid: Tid) -> Thrown {
        let registers = self.tracee.registers(tid);
        let message = registers
            .ok()
            .and_then(|registers| self.panic_text(&registers));
        Thrown {
            what: "panic".to_owned(),
            message,
        }
    }

    fn described(
        &self,
        registers: &Registers,
        object: u64,
        type_info: u64,
        pattern: Option<&str>,
    ) -> Option<Thrown> {
        let mut classes = Vec::new();
        self.classes(type_info, Some(object), 0, &mut classes);
        let what = classes.first()?.name.clone();
        if !matches(pattern, &classes) {
            return None;
        }
        let message = self.exception_text(registers, object, &classes);
        Some(Thrown { what, message })
    }

    /// Adds the class of a `std::type_info` and its base classes (Itanium C++ ABI, 2.9.5) to `found`.
    fn classes(&self, type_info: u64, at: Option<u64>, depth: usize, found: &mut Vec<Class>) {
        let word = |at: u64| self.tracee.memory.word(at).ok();
        let name_at = type_info.checked_add(8).and_then(word);
        let Some((vtable, name_at)) = word(type_info).zip(name_at) else {
            return;
        };
        let mangled = self.type_text(name_at);
        found.push(Class {
            name: debuginfo::type_name(&mangled),
            mangled,
            at,
        });
        if depth == DEEPEST {
            return;
        }
        // The class of the type_info object shows the kind of type. Its own type_info is found before its virtual
        // functions.
        let class = word(vtable.wrapping_sub(8)).and_then(|class| word(class.wrapping_add(8)));
        let kind = class.map_or_else(String::new, |name_at| self.type_text(name_at));
        if kind.contains("__si_class_type_info") {
            if let Some(base) = word(type_info + 16) {
                self.classes(base, at, depth + 1, found);
            }
        } else if kind.contains("__vmi_class_type_info") {
            let count = word(type_info + 16).map_or(0, |word| (word >> 32) as u32);
            for index in 0..count.min(MOST_BASES) {
                let entry = type_info + 24 + u64::from(index) * 16;
                if let Some((base, flags)) = word(entry).zip(word(entry + 8)) {
                    let at = at.and_then(|at| self.base_at(at, flags));
                    self.classes(base, at, depth + 1, found);
                }
            }
        }
    }

    /// Returns the address of a base class in the object at `at`. `flags` are those of its entry, with the distance in
    /// the upper bits.
    fn base_at(&self, at: u64, flags: u64) -> Option<u64> {
        const VIRTUAL: u64 = 1;
        let distance = (flags as i64) >> 8;
        let distance = match flags & VIRTUAL {
            0 => distance,
            _ => {
                let table = self.tracee.memory.word(at).ok()?;
                self.tracee
                    .memory
                    .word(table.wrapping_add_signed(distance))
                    .ok()? as i64
            }
        };
        Some(at.wrapping_add_signed(distance))
    }

    /// Returns the mangled name in a `type_info`. The names of types local to a module begin with an asterisk.
    fn type_text(&self, at: u64) -> String {
        let text = self.tracee.memory.read_up_to(at, 1024);
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let mangled = String::from_utf8_lossy(text);
        mangled.trim_start_matches('*').to_owned()
    }

    fn exception_text(
        &self,
        registers: &Registers,
        object: u64,
        classes: &[Class],
    ) -> Option<String> {
        /// After the two destructors.
        const WHAT_OFFSET: u64 = 16;
        let standard = classes.iter().find(|class| class.name == "std::exception");
        if let Some(at) = standard.and_then(|class| class.at) {
            let table = self.tracee.memory.word(at).ok()?;
            let what = self
                .tracee
                .memory
                .word(table.checked_add(WHAT_OFFSET)?)
                .ok()?;
            let (text, _) = self.follow(registers, what, [at, 0])?;
            return self.c_text(text);
        }
        self.plain_text(object, &classes.first()?.mangled)
    }

    /// Returns the text of a thrown number, character pointer or string.
    fn plain_text(&self, object: u64, mangled: &str) -> Option<String> {
        const STRING: &str = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
        let word = self.tracee.memory.word(object).ok()?;
        match mangled {
            "PKc" | "Pc" => self.c_text(word),
            STRING => {
                let len = self.tracee.memory.word(object.checked_add(8)?).ok()?;
                self.text(word, len)
            }
            "b" => Some((word & 1 != 0).to_string()),
            "i" => Some((word as i32).to_string()),
            "j" => Some((word as u32).to_string()),
            "s" => Some((word as i16).to_string()),
            "t" => Some((word as u16).to_string()),
            "l" | "x" => Some((word as i64).to_string()),
            "m" | "y" => Some(word.to_string()),
            "f" => Some(f32::from_bits(word as u32).to_string()),
            "d" => Some(f64::from_bits(word).to_string()),
            _ => None,
        }
    }

    /// Returns the object and the type_info of the exception that the thread is handling.
    fn current_exception(&self, registers: &Registers) -> Option<(u64, u64)> {
        let space = self.tracee.space_now();
        let entry = |name: &str| Some(self.tracee.entries(&space, name).first()?.address);
        let (globals, _) = self.follow(registers, entry("__cxa_get_globals")?, [0; 2])?;
        let (type_info, _) =
            self.follow(registers, entry("__cxa_current_exception_type")?, [0; 2])?;
        let header = self
            .tracee
            .memory
            .word(globals)
            .ok()
            .filter(|header| *header != 0)?;
        let class = self
            .tracee
            .memory
            .word(header.checked_add(EXCEPTION_CLASS_OFFSET)?)
            .ok()?;
        let object = match class & 1 {
            0 => header.checked_add(HEADER_BYTES)?,
            // An exception rethrown by std::rethrow_exception begins with the address of the object.
            _ => self.tracee.memory.word(header).ok()?,
        };
        (type_info != 0).then_some((object, type_info))
    }

    /// rust_panic (data, vtable) of a `&mut dyn PanicPayload`: emulates the call that gives the payload `catch_unwind`
    /// gets.
    fn panic_text(&self, registers: &Registers) -> Option<String> {
        /// The words of a vtable: destructor, size, alignment, then functions.
        const SIZE_OFFSET: u64 = 8;
        // `get` follows `fmt` and `take_box`; before Rust 1.81 there was no `fmt`.
        const GET_OFFSETS: [u64; 2] = [5 * 8, 4 * 8];
        let (payload, table) = (registers.rdi, registers.rsi);
        GET_OFFSETS.into_iter().find_map(|offset| {
            let get = self.tracee.memory.word(table.checked_add(offset)?).ok()?;
            let (data, any) = self.follow(registers, get, [payload, 0])?;
            let size = self
                .tracee
                .memory
                .word(any.checked_add(SIZE_OFFSET)?)
                .ok()?;
            let word = |index: u64| self.tracee.memory.word(data.checked_add(index * 8)?).ok();
            match size {
                16 => self.text(word(0)?, word(1)?),
                24 => self.string_text([word(0)?, word(1)?, word(2)?]),
                _ => None,
            }
        })
    }

    /// Reads a Rust `String`: capacity, pointer and length, in an order that the compiler chooses.
    fn string_text(&self, words: [u64; 3]) -> Option<String> {
        [[0, 1, 2], [1, 0, 2], [0, 2, 1]]
            .into_iter()
            .filter(|[capacity, _, len]| words[*len] <= words[*capacity])
            .filter(|[capacity, _, _]| words[*capacity] < 1 << 40)
            .find_map(|[_, pointer, len]| self.text(words[pointer], words[len]))
    }

    fn follow(
        &self,
        registers: &Registers,
        function: u64,
        arguments: [u64; 2],
    ) -> Option<(u64, u64)> {
        let call = Call {
            function,
            arguments,
            stack: registers.rsp,
            fs_base: registers.fs_base,
        };
        follow(self, call)
    }

    fn c_text(&self, at: u64) -> Option<String> {
        let bytes = self.tracee.memory.read_up_to(at, LONGEST_TEXT);
        let end = bytes.iter().position(|byte| *byte == 0);
        // A text that is longer than what was read is cut. If memory ends before the text does, it is not a text.
        let end = end.or((bytes.len() == LONGEST_TEXT).then_some(LONGEST_TEXT))?;
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    fn text(&self, at: u64, len: u64) -> Option<String> {
        let len = usize::try_from(len).ok()?.min(LONGEST_TEXT);
        if len == 0 {
            return Some(String::new());
        }
        let bytes = self.tracee.memory.read_up_to(at, len);
        (bytes.len() == len).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Program for Exceptions<'_> {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
        self.tracee.memory.read(address, bytes).ok()
    }

    fn callee(&self, target: u64) -> Option<u64> {
        let space = self.tracee.space_now();
        let Some(module) = space.at(target) else {
            return Some(target);
        };
        let svma = module.svma(target);
        let stubs = module.module.plt_entries();
        let is_stub = |svma: u64| {
            move |stub: &&debuginfo::PltEntry| stub.svma.0 <= svma && svma < stub.svma.0 + stub.size
        };
        let Some(stub) = stubs.iter().find(is_stub(svma.0)) else {
            return Some(target);
        };
        let bound = self.tracee.memory.word(module.address(stub.slot)).ok()?;
        let is_function = |symbol: &debuginfo::Symbol| {
            symbol.linkage == stub.symbol && symbol.kind == debuginfo::SymbolKind::Function
        };
        // If the linker has not resolved the function yet, the slot leads back to the stub's own module.
        let found = space.modules().iter().find_map(|module| {
            let symbol = module.module.symbols().into_iter().find(is_function)?;
            Some(module.address(symbol.svma))
        });
        match module.range.contains(&bound) {
            true => found,
            false => Some(bound),
        }
    }
}

/// Returns whether the name of one of the classes matches `pattern`.
fn matches(pattern: Option<&str>, classes: &[Class]) -> bool {
    let names = classes.iter().map(|class| class.name.as_str());
    pattern.is_none_or(|pattern| any_is_like(pattern, names))
}

fn any_is_like<'n>(pattern: &str, mut names: impl Iterator<Item = &'n str>) -> bool {
    let glob = Glob::new(pattern);
    names.any(|name| glob.matches(name))
}

impl Tracee {
    /// Returns whether no loaded module has a throwable type with such a name. It may be wrong if the program's own
    /// types are not among its symbols.
    pub fn throws_nothing_like(&self, location: &Location) -> bool {
        let Location::Throw {
            pattern: Some(pattern),
            ..
        } = location
        else {
            return false;
        };
        let space = self.space_now();
        let mut names = Vec::new();
        for mapped in space.modules() {
            let (own, is_complete) = mapped.module.thrown_types();
            if !is_complete && !mapped.is_system {
                return false;
            }
            names.extend(own);
        }
        !any_is_like(pattern, names.iter().map(String::as_str))
    }
}
