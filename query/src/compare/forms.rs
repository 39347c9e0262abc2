//! What is compared of a call: its arguments and its result, as the debug information describes them, in a form that is
//! the same in two runs.
//!
//! Registers that are no parameters or no result hold what is left of earlier work, so they are not compared. Without
//! debug information only what library functions return through their stubs (`read@plt`) is: most of them return something.

use debuginfo::prototypes::prototype;
use debuginfo::value::Meant;
use store::control::{FunctionDef, Param, ParameterPlace, RetPlace, SecondPlace, ValueKind};

use super::hash;
use super::origins::{Seen, is_descriptor_name, returns_descriptor};
use super::places::Places;

const ARGC: u64 = 0x61_7267_6320;

/// Where the recording has a word of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// An argument: rdi, rsi, rdx, rcx, r8, r9.
    Int(u8),
    /// An argument: xmm0 to xmm7.
    Sse(u8),
    /// rax at the end.
    Rax,
    /// rdx at the end.
    Rdx,
    /// xmm0 or xmm1 at the end.
    RetSse(u8),
    /// The stack pointer at the beginning.
    Sp,
}

/// How a word is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Its low bits.
    Number {
        /// These.
        mask: u64,
    },
    /// Bits of a structure: some always, others if a bit of the word is set.
    Parts {
        /// Those that always count.
        mask: u64,
        /// The number of the flag, and the bits that count with it.
        held: Option<(u32, u64)>,
    },
    /// Which call opened it.
    Descriptor,
    /// A number that is the same if it is how many arguments the programs got.
    Argc {
        /// Its bits.
        mask: u64,
        /// How many each of the two got.
        counts: (u64, u64),
    },
    /// Whether its low byte is zero.
    Bool,
    /// What it points into.
    Pointer,
    /// It may be a number or a pointer.
    Either,
    /// The same, and nothing says what it is.
    Unknown,
}

/// A word in the form in which it is compared, or a hash of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Formed {
    /// What every run has: of a pointer what it points into.
    pub class: u64,
    /// The same, and which block or descriptor it is. Two runs have that alike for as long as they do the same.
    pub exact: u64,
}

impl Formed {
    /// A form that is alike in all runs.
    pub const fn of(class: u64) -> Formed {
        let exact = class;
        Formed { class, exact }
    }

    /// Adds another one.
    #[inline]
    fn and(self, other: Formed) -> Formed {
        Formed {
            class: hash::fold(self.class, other.class),
            exact: hash::fold(self.exact, other.exact),
        }
    }

    /// Tells whether it is the same, exactly or by its class.
    pub fn is_same(self, other: Formed, is_exact: bool) -> bool {
        self.class == other.class && (!is_exact || self.exact == other.exact)
    }
}

/// A word that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atom {
    /// Where it is.
    pub word: Word,
    way: Way,
}

impl Way {
    /// Returns how a value of a kind is compared, of which a word has so many bytes; `None` if it is not.
    pub fn of(kind: &ValueKind, bytes: u64) -> Option<Way> {
        let mask = |bytes: u64| match bytes {
            0 | 8.. => u64::MAX,
            bytes => (1 << (8 * bytes)) - 1,
        };
        Some(match kind {
            ValueKind::Void => return None,
            ValueKind::Bool => Way::Bool,
            ValueKind::Char => Way::Number { mask: 0xff },
            ValueKind::Pointer => Way::Pointer,
            ValueKind::Int { bytes: 8.., .. } => Way::Either,
            ValueKind::Unknown => Way::Unknown,
            ValueKind::Int { bytes, .. }
            | ValueKind::Enum { bytes, .. }
            | ValueKind::Unicode { bytes } => Way::Number {
                mask: mask(u64::from(*bytes)),
            },
            ValueKind::Float { bytes: 4 } => Way::Number { mask: mask(4) },
            ValueKind::Float { bytes: 8 } => Way::Number { mask: u64::MAX },
            ValueKind::Float { .. } => return None,
            ValueKind::Struct { .. } if bytes >= 8 => Way::Either,
            ValueKind::Struct { .. } => Way::Number { mask: mask(bytes) },
        })
    }

    /// Returns the form of a word.
    #[inline]
    pub fn form(self, word: u64, seen: Seen, places: &Places) -> Formed {
        match self {
            Way::Number { mask } => places.of_integer(word & mask, seen),
            Way::Parts { mask, held } => {
                let held = held.filter(|(flag, _)| word >> flag & 1 == 1);
                places.of_result(word & (mask | held.map_or(0, |(_, bits)| bits)), seen)
            }
            Way::Descriptor => places.of_descriptor(word, seen),
            Way::Argc { mask, counts } => match word & mask {
                number if number == counts.0 || number == counts.1 => Formed::of(ARGC),
                number => places.of_integer(number, seen),
            },
            Way::Bool => Formed::of(u64::from(word as u8 != 0)),
            Way::Pointer => places.of_pointer(word, seen),
            Way::Either => places.of_word(word, seen),
            Way::Unknown => places.of_unknown(word, seen),
        }
    }
}

impl Atom {
    fn new(word: Word, kind: &ValueKind, bytes: u64) -> Option<Atom> {
        let way = Way::of(kind, bytes)?;
        Some(Atom { word, way })
    }

    /// Returns the form of a word.
    #[inline]
    pub fn form(self, word: u64, seen: Seen, places: &Places) -> Formed {
        self.way.form(word, seen, places)
    }

    /// Tells whether a word may be a descriptor, and not an address.
    pub fn is_number(self) -> bool {
        matches!(
            self.way,
            Way::Number { .. } | Way::Parts { .. } | Way::Descriptor | Way::Argc { .. }
        )
    }

    /// Returns a word as a whole number, if it may be one.
    pub fn whole(self, word: u64) -> Option<u64> {
        let is_whole = matches!(self.word, Word::Int(_) | Word::Rax);
        match self.way {
            Way::Number { mask } if is_whole => Some(word & mask),
            Way::Either | Way::Unknown if is_whole => Some(word),
            _ => None,
        }
    }

    /// Returns the highest whole number that it can be.
    pub fn highest(self) -> u64 {
        match self.way {
            Way::Number { mask } => mask,
            _ => u64::MAX,
        }
    }

    /// Tells whether a word may be an address.
    pub fn is_pointer(self) -> bool {
        !self.is_number() && self.way != Way::Bool
    }

    /// Compares a whole number as how many arguments the programs may have got.
    pub fn compare_as_argc(&mut self, counts: (u64, u64)) {
        let mask = match self.way {
            Way::Number { mask } => mask,
            Way::Either => u64::MAX,
            _ => return,
        };
        self.way = Way::Argc { mask, counts };
    }

    /// Tells whether the debug information says that a word is a pointer.
    pub fn is_typed_pointer(self) -> bool {
        self.way == Way::Pointer
    }

    /// Leaves out the bits of a structure that mean nothing; a word that is a pointer is compared as one. It has the bits from
    /// `first` on.
    fn limit(&mut self, meant: Meant, first: u32) {
        // Damaged definitions may say any number of bits.
        let part = |bits: u128| bits.checked_shr(first).unwrap_or(0) as u64;
        let mask = part(meant.always);
        // A flag in the other register cannot be asked.
        let held = meant.held.and_then(|(flag, bits)| {
            let flag = flag.checked_sub(first).filter(|flag| *flag < 64)?;
            Some((flag, part(bits)))
        });
        if mask != u64::MAX {
            self.way = Way::Parts { mask, held };
        } else if part(meant.pointers) == u64::MAX {
            self.way = Way::Pointer;
        }
    }
}

/// What is compared of the calls of a function.
#[derive(Clone, Debug, Default)]
pub struct Form {
    /// Words of the arguments, each with the number of its parameter.
    pub args: Vec<(usize, Atom)>,
    /// Words of the result.
    pub result: Vec<Atom>,
}

/// Parts of a call that are not compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Its arguments.
    pub args: bool,
    /// Its result.
    pub result: bool,
}

impl Form {
    /// Returns what is compared of a function's calls. `is_ignored` says so of a parameter.
    pub fn of(function: &FunctionDef, left: Left, is_ignored: impl Fn(&Param) -> bool) -> Form {
        let mut form = Form::default();
        if has_types(function) && !left.args {
            for (number, param) in function.params.iter().enumerate() {
                if !is_ignored(param) {
                    let atoms = words_of(param).into_iter().flatten();
                    form.args.extend(atoms.map(|atom| (number, atom)));
                }
            }
        }
        if !left.result {
            form.result = result_of(function);
        }
        form
    }

    /// Tells whether every argument of a function is compared, as far as its words go.
    pub fn has_all_args(&self, function: &FunctionDef) -> bool {
        let is_compared = |number: usize| self.args.iter().any(|(of, _)| *of == number);
        function.params_known && (0..function.params.len()).all(is_compared)
    }

    /// Leaves out what is known of the calls of one build's function alone: `other` is compared of those of the other one.
    pub fn match_other(&mut self, other: &Form) {
        let words = |form: &Form, number: usize| {
            let atoms = form.args.iter().filter(|(of, _)| *of == number);
            atoms.count()
        };
        let own = self.clone();
        self.args
            .retain(|(number, _)| words(&own, *number) == words(other, *number));
        if self.result.len() != other.result.len() {
            self.result.clear();
        }
    }

    /// Leaves out what means nothing in structures, and structures of which that is not known. `of_param` returns it for a
    /// parameter, by its number.
    pub fn limit(
        &mut self,
        function: &FunctionDef,
        of_param: impl Fn(usize) -> Option<Meant>,
        of_result: impl Fn() -> Option<Meant>,
    ) {
        let is_structure = |kind: &ValueKind| matches!(kind, ValueKind::Struct { .. });
        for (number, param) in function.params.iter().enumerate() {
            if !is_structure(&param.kind) {
                continue;
            }
            let Some(meant) = of_param(number) else {
                self.args.retain(|(of, _)| *of != number);
                continue;
            };
            let second = param.second.map_or(8, |second| u32::from(second.from));
            let atoms = self.args.iter_mut().filter(|(of, _)| *of == number);
            for (first, (_, atom)) in [0, 8 * second].into_iter().zip(atoms) {
                atom.limit(meant, first);
            }
        }
        if is_structure(&function.ret)
            && let [atom] = self.result.as_mut_slice()
        {
            match of_result() {
                Some(meant) => atom.limit(meant, 0),
                None => self.result.clear(),
            }
        }
    }

    /// Returns the words that any of `forms` compares.
    pub fn words<'f>(forms: impl Iterator<Item = &'f Form>) -> Vec<Word> {
        let mut words = Vec::new();
        for form in forms {
            let atoms = form.args.iter().map(|(_, atom)| atom).chain(&form.result);
            for atom in atoms {
                if !words.contains(&atom.word) {
                    words.push(atom.word);
                }
            }
        }
        words
    }

    /// Returns the words that any of `forms` compares by what they point into.
    pub fn pointers<'f>(forms: impl Iterator<Item = &'f Form>) -> Vec<Word> {
        let mut words = Vec::new();
        for form in forms {
            let atoms = form.args.iter().map(|(_, atom)| atom).chain(&form.result);
            for atom in atoms.filter(|atom| atom.is_pointer()) {
                if !words.contains(&atom.word) {
                    words.push(atom.word);
                }
            }
        }
        words
    }

    /// Hashes the arguments of a call.
    #[inline]
    pub fn args_hash(
        &self,
        word: impl Fn(Word) -> Option<u64>,
        seen: Seen,
        places: &Places,
    ) -> Formed {
        let atoms = self.args.iter().map(|(_, atom)| atom);
        hashed(atoms, word, seen, places)
    }

    /// Hashes the result of a call.
    #[inline]
    pub fn result_hash(
        &self,
        word: impl Fn(Word) -> Option<u64>,
        seen: Seen,
        places: &Places,
    ) -> Formed {
        hashed(self.result.iter(), word, seen, places)
    }
}

#[inline]
fn hashed<'a>(
    atoms: impl Iterator<Item = &'a Atom>,
    word: impl Fn(Word) -> Option<u64>,
    seen: Seen,
    places: &Places,
) -> Formed {
    atoms.fold(Formed::default(), |hash, atom| {
        let form = word(atom.word).map_or(hash, |word| atom.form(word, seen, places));
        hash.and(form)
    })
}

/// The words of a parameter, as far as registers hold them.
fn words_of(param: &Param) -> [Option<Atom>; 2] {
    if param.is_indirect {
        // The address of a copy of the caller's: the debug information says no more.
        return [None, None];
    }
    let bytes = match param.kind {
        ValueKind::Struct { bytes } => bytes,
        ValueKind::Int { bytes, .. } => u64::from(bytes),
        _ => 8,
    };
    let word = |place: ParameterPlace| match place {
        ParameterPlace::Int(at @ ..6) => Some(Word::Int(at)),
        ParameterPlace::Sse(at @ ..8) => Some(Word::Sse(at)),
        _ => None,
    };
    let Some(first) = word(param.place) else {
        return [None, None];
    };
    let first_atom = match param.kind {
        ValueKind::Int { bytes: 4, .. } if is_descriptor_name(&param.name) => Some(Atom {
            word: first,
            way: Way::Descriptor,
        }),
        _ => Atom::new(first, &param.kind, bytes.min(8)),
    };
    let second = match (param.second, &param.kind, first) {
        (Some(SecondPlace { from, place }), ..) => {
            word(place).map(|word| (word, bytes.saturating_sub(u64::from(from))))
        }
        (None, ValueKind::Int { bytes: 16, .. }, Word::Int(at @ ..5)) => {
            Some((Word::Int(at + 1), 8))
        }
        _ => None,
    };
    let rest = |bytes: u64| ValueKind::Struct { bytes };
    let second = second.and_then(|(word, bytes)| Atom::new(word, &rest(bytes), bytes));
    [first_atom, second]
}

/// Functions of the C library whose results are those of the moment or the machine, such as the free memory. Groups and sessions of
/// processes are numbers of processes, perhaps of one long ago.
const OF_THE_MOMENT: [&str; 23] = [
    "arc4random",
    "clock",
    "get_avphys_pages",
    "get_phys_pages",
    "getauxval",
    "gethostid",
    "getpgid",
    "getpgrp",
    "getpid",
    "getppid",
    "getsid",
    "gettid",
    "msgget",
    "pthread_self",
    "sched_getcpu",
    "semget",
    "shmget",
    "sysconf",
    "sysinfo",
    "tcgetpgrp",
    "tcgetsid",
    "time",
    "times",
];

/// Tells whether the words of a function's calls are compared by their types. Those of the C library's functions, which a header
/// describes, are times, process ids, descriptors and the like: they are not.
fn has_types(function: &FunctionDef) -> bool {
    let name = function.name.strip_suffix("@plt");
    let is_described = || prototype(name.unwrap_or(&function.name)).is_some();
    function.params_known && (function.file.is_some() || !is_described())
}

fn result_of(function: &FunctionDef) -> Vec<Atom> {
    let kind = &function.ret;
    let bytes = match kind {
        ValueKind::Struct { bytes } => *bytes,
        ValueKind::Int { bytes, .. } => u64::from(*bytes),
        _ => 8,
    };
    let is_float = matches!(kind, ValueKind::Float { bytes: 4 | 8 });
    let words: &[Word] = match function.ret_place {
        _ if !has_types(function) && function.name.ends_with("@plt") => &[Word::Rax],
        _ if !has_types(function) => &[],
        Some(RetPlace::Rax) => &[Word::Rax],
        Some(RetPlace::Xmm0) => &[Word::RetSse(0)],
        None if is_float => &[Word::RetSse(0)],
        None => &[Word::Rax],
        // Which of the four registers hold it is not recorded, and the others hold anything.
        Some(RetPlace::Registers) => match kind {
            ValueKind::Int { bytes: 16, .. } => &[Word::Rax, Word::Rdx],
            _ => &[],
        },
        Some(RetPlace::Nowhere | RetPlace::Memory | RetPlace::X87 | RetPlace::Unknown) => &[],
    };
    let name = function.name.strip_suffix("@plt");
    let name = name.unwrap_or(&function.name);
    if !has_types(function) && OF_THE_MOMENT.contains(&name) {
        return Vec::new();
    }
    if !has_types(function) && returns_descriptor(name) {
        let way = Way::Descriptor;
        return words.iter().map(|word| Atom { word: *word, way }).collect();
    }
    let unknown = ValueKind::Unknown;
    let kind = if has_types(function) { kind } else { &unknown };
    words
        .iter()
        .filter_map(|word| Atom::new(*word, kind, bytes.min(8)))
        .collect()
}
