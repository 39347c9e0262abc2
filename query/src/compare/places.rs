//! What addresses point into, so that two runs can be compared although nothing is at the same address.
//!
//! An address in a module is the function, the text or the variable there. Otherwise it is its offset if both recordings have the same
//! build of the module. All other memory is one class; where the calls that allocate were recorded, the block of a thread's own
//! that an address lies in is told by them (`origins`).

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use debuginfo::{AddressSpace, SharedVariables, Svma};
use rustc_hash::{FxHashMap, FxHashSet};

use super::forms::Formed;
use super::hash;
use super::identity::module_key;
use super::moments::Moments;
use super::origins::{Origins, Seen, Span};
use super::variables::Variables;
use crate::definitions::Definitions;
use crate::session::Session;

/// Below this, and above its negative, a word is a number even where an address is expected: null, sentinels, errors.
const FIRST_ADDRESS: u64 = 4096;
/// The kernel maps programs without a fixed address, their heaps, libraries and stacks between these addresses.
const RANDOMISED: Range<u64> = 0x5500_0000_0000..0x8000_0000_0000;
/// Programs without a fixed address and their heaps lie between these addresses; libraries and stacks lie above.
const PROGRAMS: Range<u64> = RANDOMISED.start..0x5800_0000_0000;
/// Addresses whose places are remembered.
const REMEMBERED: usize = 1 << 18;
/// Bytes of a text that are compared.
const TEXT_BYTES: u64 = 128;

/// The heap begins at most so many bytes behind the program (the kernel's `arch_randomize_brk` and a generous size).
const HEAP_BYTES: u64 = 3 << 30;

/// Pointers to the stack lie at most so many bytes above the stack pointer: what systems give to a stack.
pub const STACK_BYTES: u64 = 8 << 20;

const STACK: u64 = 0x73_7461_636b;
const MEMORY: u64 = 0x6d65_6d6f_7279;
const OWN_PROCESS: u64 = 0x70_6964;
const MOMENT: u64 = 0x74_696d_6573;
const DESCRIPTOR: u64 = 0x66_6473;

/// A module of one recording.
struct Placed {
    start: u64,
    end: u64,
    key: u64,
    /// The other recording has another build of it.
    is_other_build: bool,
    /// The file that was recorded is still there, on both sides: what is known of one side only is no difference.
    is_readable: bool,
    /// Its texts end with a zero byte: it is not written in Rust.
    has_texts: bool,
    /// The variables that the other build has too.
    variables: Option<Arc<SharedVariables>>,
}

/// The address space of one recording.
pub struct Places {
    modules: Vec<Placed>,
    /// Where the heap of a program with fixed addresses may be.
    heap: Option<Range<u64>>,
    space: Arc<AddressSpace>,
    /// The processes and threads of both recordings; their numbers differ in each run.
    numbers: Arc<FxHashSet<u64>>,
    /// Times of both runs.
    moments: Moments,
    /// The lowest and the highest of them.
    numbered: (u64, u64),
    /// The blocks and descriptors of this recording.
    origins: Arc<Origins>,
    /// By thread: where the outermost recorded call begins. Above it no frame is known.
    tops: Option<FxHashMap<u32, u64>>,
    known: RefCell<FxHashMap<u64, u64>>,
    /// Addresses between two modules, where the last one lay that is in none. Those of the heap follow each other.
    gap: Cell<(u64, u64)>,
    /// An address in the program's heap was seen, and not the block that it lies in.
    saw_heap: Cell<bool>,
}

/// Where the program lies, if its addresses are fixed when it is linked.
fn fixed_program(definitions: &Definitions) -> Option<Range<u64>> {
    let program = definitions.module(0)?;
    let end = program.addr.saturating_add(program.size);
    (end < RANDOMISED.start).then_some(program.addr..end)
}

/// Where a program with fixed addresses and its heap are, if the recording is of one.
pub fn fixed_addresses(session: &Session) -> Option<Range<u64>> {
    let program = fixed_program(session.definitions())?;
    Some(program.start..program.end.saturating_add(HEAP_BYTES))
}

/// Tells whether a number is where the kernel maps programs, heaps, libraries and stacks at random.
pub fn is_randomised(number: u64) -> bool {
    RANDOMISED.contains(&number)
}

/// Tells whether an address lies above a stack pointer, and near it.
#[inline]
fn is_above(address: u64, sp: u64) -> bool {
    sp != 0 && address > sp && address - sp < STACK_BYTES
}

impl Places {
    /// Takes the modules of a recording and of the other one, each with those whose files can be read, and the numbers of
    /// the processes and threads of both.
    pub fn new(
        (own, space): (&Definitions, Arc<AddressSpace>),
        (other, other_space): (&Definitions, &AddressSpace),
        variables: &Variables,
        numbers: Arc<FxHashSet<u64>>,
        moments: Moments,
    ) -> Self {
        let is_there = |space: &AddressSpace, id| space.modules().iter().any(|m| m.number == id);
        let twins: FxHashMap<String, (Option<&str>, bool)> = other
            .modules()
            .map(|module| {
                let build = module.build_id.as_deref();
                let is_readable = is_there(other_space, module.id);
                (module_key(Some(module)), (build, is_readable))
            })
            .collect();
        let range = |module: &crate::definitions::Module| {
            // Older recordings count only what is mapped from the file.
            let mapped = space.modules().iter().find(|m| m.number == module.id);
            let recorded = module.addr.saturating_add(module.size);
            let key = module_key(Some(module));
            let (build, is_other_readable) = twins.get(&key).copied().unwrap_or_default();
            Placed {
                start: module.addr,
                end: mapped.map_or(recorded, |mapped| recorded.max(mapped.range.end)),
                key: hash::of_bytes(key.as_bytes()),
                is_other_build: build.is_none() || build != module.build_id.as_deref(),
                is_readable: is_other_readable && is_there(&space, module.id),
                has_texts: !own.is_rust(module.id),
                variables: variables.get(&key).cloned(),
            }
        };
        let mut modules: Vec<Placed> = own.modules().map(range).collect();
        modules.sort_by_key(|module| module.start);
        Self {
            modules,
            heap: fixed_program(own)
                .map(|program| program.end..program.end.saturating_add(HEAP_BYTES)),
            space,
            numbered: (
                numbers.iter().min().copied().unwrap_or(u64::MAX),
                numbers.iter().max().copied().unwrap_or(0),
            ),
            numbers,
            moments,
            origins: Arc::default(),
            tops: None,
            known: RefCell::default(),
            gap: Cell::default(),
            saw_heap: Cell::default(),
        }
    }

    #[inline]
    fn module(&self, address: u64) -> Option<&Placed> {
        let (start, end) = self.gap.get();
        match (start..end).contains(&address) {
            true => None,
            false => self.found_module(address),
        }
    }

    fn found_module(&self, address: u64) -> Option<&Placed> {
        let after = self
            .modules
            .partition_point(|module| module.start <= address);
        let module = self.modules[..after].last();
        if let Some(module) = module.filter(|module| address < module.end) {
            return Some(module);
        }
        let start = module.map_or(0, |module| module.end);
        let end = self.modules.get(after).map_or(u64::MAX, |next| next.start);
        self.gap.set((start, end));
        None
    }

    /// Tells whether blocks are known.
    pub fn has_blocks(&self) -> bool {
        self.origins.has_blocks()
    }

    /// Reads what is known of a block that begins at an address.
    #[inline]
    pub fn touch(&self, address: u64) -> u64 {
        self.origins.touch(address)
    }

    /// Takes the blocks and descriptors of the recording.
    pub fn set_origins(&mut self, origins: Arc<Origins>) {
        self.origins = origins;
    }

    /// Says where the outermost recorded call of each thread begins, so that addresses below are places on its stack.
    pub fn set_tops(&mut self, tops: FxHashMap<u32, u64>) {
        self.tops = Some(tops);
    }

    /// Returns whether the threads' stacks are known, so that places on them are compared.
    pub fn has_tops(&self) -> bool {
        self.tops.is_some()
    }

    /// Returns what a pointer points into.
    #[inline]
    pub fn of_pointer(&self, address: u64, seen: Seen) -> Formed {
        match address.wrapping_add(FIRST_ADDRESS) < 2 * FIRST_ADDRESS {
            true => Formed::of(address),
            false => self.within(address, seen),
        }
    }

    /// Returns what a word of 64 bits stands for: it may be a number or a pointer.
    #[inline]
    pub fn of_word(&self, word: u64, seen: Seen) -> Formed {
        match RANDOMISED.contains(&word) || word >= FIRST_ADDRESS && self.module(word).is_some() {
            true => self.within(word, seen),
            false => self.of_result(word, seen),
        }
    }

    /// Returns what a word without a known type stands for. In a program with fixed addresses, those of its heap look like
    /// numbers.
    #[inline]
    pub fn of_unknown(&self, word: u64, seen: Seen) -> Formed {
        match self.may_be_fixed_heap(word) {
            true => self.within(word, seen),
            false => self.of_word(word, seen),
        }
    }

    /// Tells whether the recording is of a program with fixed addresses.
    pub fn has_fixed_heap(&self) -> bool {
        self.heap.is_some()
    }

    /// Tells whether a word lies where the heap of a program with fixed addresses may be.
    #[inline]
    pub fn may_be_fixed_heap(&self, word: u64) -> bool {
        self.heap.as_ref().is_some_and(|heap| heap.contains(&word))
    }

    /// Returns what an integer stands for. Programs keep addresses in integers too.
    #[inline]
    pub fn of_integer(&self, number: u64, seen: Seen) -> Formed {
        match RANDOMISED.contains(&number) {
            true => self.within(number, seen),
            false => self.of_result(number, seen),
        }
    }

    /// Returns what a number stands for. What a call returns may be a descriptor that was opened within it.
    #[inline]
    pub fn of_result(&self, number: u64, seen: Seen) -> Formed {
        match seen.at > seen.start && self.origins.is_opened_within(number, seen) {
            true => self.of_descriptor(number, seen),
            false => Formed::of(self.of_number(number)),
        }
    }

    #[inline]
    fn of_number(&self, number: u64) -> u64 {
        let (lowest, highest) = self.numbered;
        let may_be = number >= 300 && (lowest..=highest).contains(&number);
        match may_be && self.numbers.contains(&number) {
            true => OWN_PROCESS,
            false if self.moments.contains(number) => MOMENT,
            false => number,
        }
    }

    /// Returns what a descriptor stands for: those from 3 on have another number in each run.
    pub fn of_descriptor(&self, word: u64, seen: Seen) -> Formed {
        let number = word as u32;
        match (3..=i32::MAX as u32).contains(&number) {
            true => Formed {
                class: DESCRIPTOR,
                exact: match self.origins.descriptor(number, seen) {
                    Some(span) => hash::fold(DESCRIPTOR, u64::from(span.number)),
                    None => DESCRIPTOR,
                },
            },
            false => Formed::of(u64::from(number)),
        }
    }

    /// Returns the call from which a word comes that is a pointer, or a descriptor, and the bytes of the block before it.
    pub fn origin(&self, word: u64, seen: Seen, is_number: bool) -> Option<(Span, u64)> {
        match is_number {
            true => Some((self.origins.descriptor(word as u32, seen)?, 0)),
            false => {
                let found = self.origins.block(word, seen)?;
                Some((found.span, found.offset))
            }
        }
    }

    #[inline]
    fn within(&self, address: u64, seen: Seen) -> Formed {
        let class = self.of_address(address);
        if class != MEMORY {
            return Formed::of(class);
        }
        let exact = match self.origins.block(address, seen) {
            Some(found) if self.origins.is_placed(found.span) => {
                hash::of_words(&[MEMORY, u64::from(found.span.number), found.offset])
            }
            Some(found) => hash::of_words(&[MEMORY, u64::from(found.span.number)]),
            None if is_above(address, seen.sp) && self.is_below_top(address, seen) => {
                hash::of_words(&[STACK, address - seen.sp])
            }
            None => {
                if self.is_in_heap(address) {
                    self.saw_heap.set(true);
                }
                MEMORY
            }
        };
        Formed { class, exact }
    }

    /// Tells whether an address that is in no module lies in the heap that the kernel gives a program behind its data.
    #[inline]
    fn is_in_heap(&self, address: u64) -> bool {
        match &self.heap {
            Some(heap) => heap.contains(&address),
            None => PROGRAMS.contains(&address),
        }
    }

    /// Tells whether pointers to blocks were seen where no allocation is known.
    pub fn saw_untold_blocks(&self) -> bool {
        self.saw_heap.get() && !self.has_blocks()
    }

    fn is_below_top(&self, address: u64, seen: Seen) -> bool {
        let top = self.tops.as_ref().and_then(|tops| tops.get(&seen.tid));
        top.is_some_and(|top| address < *top)
    }

    /// Tells whether an address may lie on the stack of a call with a stack pointer: in none of the modules and blocks.
    pub fn is_near_stack(&self, address: u64, sp: u64, seen: Seen) -> bool {
        is_above(address, sp)
            && self.of_address(address) == MEMORY
            && self.origins.block(address, seen).is_none()
    }

    fn of_address(&self, address: u64) -> u64 {
        let Some(module) = self.module(address) else {
            return MEMORY;
        };
        if let Some(known) = self.known.borrow().get(&address) {
            return *known;
        }
        let offset = (!module.is_other_build).then_some(address - module.start);
        let content = match module.is_readable {
            true => self.content(address, module),
            false => None,
        };
        let place = content.or(offset).unwrap_or(MEMORY);
        let place = hash::fold(module.key, place);
        let mut known = self.known.borrow_mut();
        if known.len() < REMEMBERED {
            known.insert(address, place);
        }
        place
    }

    /// What is at an address in a module: a function or a text, which have no other address in another build.
    fn content(&self, address: u64, module: &Placed) -> Option<u64> {
        let mapped = self.space.at(address)?;
        let svma = mapped.svma(address);
        if let Some((name, start)) = mapped.module.symbol_at(svma) {
            // Inside a function, offsets differ wherever its code does.
            let place = if svma == start { 1 } else { 2 };
            return Some(hash::fold(hash::of_bytes(name.as_bytes()), place));
        }
        let shared = module.variables.as_ref();
        if let Some((name, offset)) = shared.and_then(|shared| shared.at(&mapped.module, svma)) {
            return Some(hash::fold(hash::of_bytes(name.as_bytes()), offset));
        }
        let mut segments = mapped.module.load_segments().iter();
        let inside = |svma: u64| {
            move |s: &&debuginfo::Segment| s.vaddr.0 <= svma && svma < s.vaddr.0 + s.filesz
        };
        let segment = segments.find(inside(svma.0))?;
        if segment.flags.write || !module.has_texts {
            return None;
        }
        let len = TEXT_BYTES.min(segment.vaddr.0 + segment.filesz - svma.0);
        let bytes = mapped.module.code(Svma(svma.0), len)?;
        let text = bytes.split(|byte| *byte == 0).next()?;
        let is_text = text.iter().all(|byte| matches!(byte, 9..=13 | 32..=126));
        is_text.then(|| hash::of_bytes(text))
    }
}
