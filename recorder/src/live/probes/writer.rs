//! Who wrote: the instruction after which the processor stopped a thread, and the source line of the program itself that led
//! to it.
//!
//! A thread has run past the instruction that wrote. The one before its next instruction is found by decoding the function
//! from its beginning; a repeated string instruction may have been stopped between two of its rounds.

use std::{collections::HashMap, sync::Arc};

use debuginfo::{AddressSpace, SourceLine, backtrace};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, UsedMemory,
};

use super::logged_place::LoggedRange;
use crate::{
    live::{
        breakpoints::Breakpoints,
        model::Tid,
        probes::{Probes, evaluate::Evaluator},
        tracee::{Tracee, machine::register_value},
    },
    stop::Registers,
};

/// Most callers that are searched for the program's own code.
const MOST_FRAMES: usize = 64;
/// Longer functions are not decoded.
const MOST_CODE: usize = 1 << 20;
/// Most bytes that one round of a string instruction writes.
const ROUND: u64 = 8;
/// Who wrote.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    /// The instruction, if it is known.
    pub pc: Option<u64>,
    /// The function of the program's own code.
    pub function: Option<String>,
    /// Where in it.
    pub file: Option<String>,
    pub line: Option<u32>,
    /// The function that wrote, if it is another one.
    pub via: Option<String>,
}

/// What is known about code that has written.
#[derive(Debug, Default)]
pub(crate) struct Writers {
    /// The instructions that may have been executed last, by the next instruction.
    before: HashMap<(u64, bool), Arc<[Instruction]>>,
    /// Where an instruction is in the program's own code; `None`: it is outside, so its callers are used.
    named: HashMap<u64, Option<Arc<Writer>>>,
}

impl Probes {
    /// Finds who wrote to `place`, for a thread that was stopped for that write. `None`: the instruction is known, and
    /// wrote elsewhere.
    pub fn writer(
        &mut self,
        breakpoints: &Breakpoints,
        tracee: &Tracee,
        tid: Tid,
        place: LoggedRange,
    ) -> Option<Arc<Writer>> {
        let Ok(registers) = tracee.registers(tid) else {
            return Some(Arc::default());
        };
        let executed = breakpoints.sites.executed_before(registers.rip);
        let next = executed.unwrap_or_else(|| breakpoints.original_pc(tracee, registers.rip));
        // In our own copy, the reported instruction may be the one that was just executed.
        let is_ours = next != registers.rip;
        let candidates = self.before(tracee, next, is_ours);
        let pc = match chosen(&candidates, next, !is_ours, &registers, place) {
            Chosen::This(pc) => Some(pc),
            Chosen::Unknown => None,
            Chosen::Elsewhere => return None,
        };
        // An address inside the instruction names its line too.
        let inside = pc.unwrap_or(next.wrapping_sub(1));
        let space = tracee.space_now();
        let known = &mut self.write_log.writers.named;
        let named = known.entry(inside).or_insert_with(|| {
            let own = in_own_code(&space, inside);
            own.map(|own| Arc::new(Writer { pc, ..own }))
        });
        if let Some(named) = named {
            return Some(Arc::clone(named));
        }
        let evaluator = Evaluator {
            tracee,
            breakpoints,
            probes: self,
        };
        let called = evaluator.own_caller(tid, &space, inside);
        Some(Arc::new(Writer { pc, ..called }))
    }

    /// The instructions that a thread about to execute the one at `next` may have executed last.
    fn before(&mut self, tracee: &Tracee, next: u64, is_ours: bool) -> Arc<[Instruction]> {
        let key = (next, is_ours);
        if let Some(known) = self.write_log.writers.before.get(&key) {
            return Arc::clone(known);
        }
        let found: Arc<[Instruction]> = tracee.decoded_before(next, is_ours).into();
        let known = &mut self.write_log.writers.before;
        known.insert(key, Arc::clone(&found));
        found
    }
}

impl Tracee {
    fn decoded_before(&self, next: u64, is_ours: bool) -> Vec<Instruction> {
        let space = self.space_now();
        let inside = next.wrapping_sub(1);
        let function = space.function_at(inside);
        let ranges = function.iter().flat_map(|function| &function.ranges);
        let mut ranges = ranges.filter(|range| range.contains(&inside));
        let start = match (ranges.next(), &function) {
            (Some(range), _) => Some(range.start),
            (None, Some(function)) => Some(function.entry),
            (None, None) => None,
        };
        let mut found = Vec::new();
        let start = start.filter(|start| *start < next && next - start <= MOST_CODE as u64);
        if let Some(start) = start {
            let code = self.code(start, (next - start) as usize);
            let mut decoder = Decoder::with_ip(64, &code, start, DecoderOptions::NONE);
            let mut last = None;
            while decoder.can_decode() {
                last = Some(decoder.decode());
            }
            // A thread does not come from a jump or a call to the instruction behind it.
            let goes_on = |last: &Instruction| last.flow_control() == FlowControl::Next;
            found.extend(last.filter(|last| last.next_ip() == next && goes_on(last)));
        }
        // Between two rounds it is the next one too.
        let code = self.code(next, 15);
        let mut decoder = Decoder::with_ip(64, &code, next, DecoderOptions::NONE);
        let here = decoder.decode();
        let repeats = here.has_rep_prefix() || here.has_repne_prefix();
        let is_candidate = is_ours || repeats && here.is_string_instruction();
        found.extend((is_candidate && !here.is_invalid()).then_some(here));
        found
    }

    /// The program's own code, as far as it exists.
    fn code(&self, start: u64, len: usize) -> Vec<u8> {
        let mut code = self.memory.read_up_to(start, len);
        // It was just read, so it can be read again.
        let _ = self.memory.read(start, &mut code);
        code
    }
}

impl Evaluator<'_> {
    /// Finds the innermost caller in the program's own code of what is executed at `pc`.
    fn own_caller(&self, tid: Tid, space: &AddressSpace, pc: u64) -> Writer {
        let Ok(mut machine) = self.tracee.machine(self.breakpoints, tid) else {
            return Writer::default();
        };
        machine.registers.general.rip = pc;
        let frames = backtrace(space, &machine, MOST_FRAMES).frames;
        let via = frames.first().and_then(|frame| frame.function.clone());
        let own = frames.iter().find(|frame| space.is_own_code(frame));
        match own {
            Some(frame) => Writer {
                pc: None,
                function: frame.function.clone(),
                file: frame.source.as_ref().map(|source| source.file.to_string()),
                line: frame.source.as_ref().map(|source| source.line),
                via,
            },
            None => {
                let source = frames.first().and_then(|frame| frame.source.as_ref());
                Writer {
                    pc: None,
                    function: via,
                    file: source.map(|source| source.file.to_string()),
                    line: source.map(|source| source.line),
                    via: None,
                }
            }
        }
    }
}

impl Writer {
    /// Names the instruction that wrote.
    pub fn at(space: &AddressSpace, pc: u64) -> Writer {
        let place = space.standing(pc, 0);
        let source = place.source.as_ref();
        Writer {
            pc: Some(pc),
            function: place.function.map(|name| name.to_string()),
            file: source.map(|source| source.file.to_string()),
            line: source.map(|source| source.line),
            via: None,
        }
    }
}

/// Names the place of an instruction if it is in the program's own code.
fn in_own_code(space: &AddressSpace, pc: u64) -> Option<Writer> {
    space.at(pc).filter(|module| !module.is_system)?;
    let source = space.standing(pc, 0).source;
    if source.as_ref().is_some_and(SourceLine::is_of_a_library) {
        return None;
    }
    Some(Writer::at(space, pc))
}

/// Which of some instructions wrote.
#[derive(Debug, PartialEq, Eq)]
enum Chosen {
    This(u64),
    Unknown,
    /// All are known, and none wrote there.
    Elsewhere,
}

fn chosen(
    candidates: &[Instruction],
    next: u64,
    is_exact: bool,
    registers: &Registers,
    place: LoggedRange,
) -> Chosen {
    let mut factory = InstructionInfoFactory::new();
    let mut may_have = None;
    let mut is_certain = is_exact && candidates.iter().any(|found| found.next_ip() == next);
    for instruction in candidates {
        let info = factory.info(instruction);
        for used in info.used_memory().iter().filter(|used| writes(used)) {
            match wrote(instruction, used, registers, place) {
                Some(true) => return Chosen::This(instruction.ip()),
                Some(false) => {}
                None => {
                    may_have.get_or_insert(instruction.ip());
                    is_certain = false;
                }
            }
        }
    }
    match may_have {
        Some(pc) => Chosen::This(pc),
        None if is_certain => Chosen::Elsewhere,
        None => Chosen::Unknown,
    }
}

fn writes(used: &UsedMemory) -> bool {
    matches!(
        used.access(),
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

/// Returns whether an instruction that was just executed has written to `place`; `None`: that can no longer be
/// determined.
fn wrote(
    instruction: &Instruction,
    used: &UsedMemory,
    registers: &Registers,
    place: LoggedRange,
) -> Option<bool> {
    if instruction.is_string_instruction() {
        let base = register_value(registers, used.base())?;
        // The pointer has moved on.
        let around = place.has_some_of(base.saturating_sub(ROUND), 2 * ROUND);
        return around.then_some(true);
    }
    let address = used.virtual_address(0, |register, _, _| match register {
        iced_x86::Register::FS => Some(registers.fs_base),
        iced_x86::Register::GS => Some(registers.gs_base),
        iced_x86::Register::ES
        | iced_x86::Register::CS
        | iced_x86::Register::SS
        | iced_x86::Register::DS => Some(0),
        register => register_value(registers, register),
    })?;
    let len = used.memory_size().size() as u64;
    match place.has_some_of(address, len.max(1)) {
        true => Some(true),
        // A register that it has also changed no longer shows the address.
        false if changes_its_address(instruction, used) => None,
        false => Some(false),
    }
}

fn changes_its_address(instruction: &Instruction, used: &UsedMemory) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(instruction);
    let parts = [used.base(), used.index()];
    let changed = info
        .used_registers()
        .iter()
        .filter(|register| !matches!(register.access(), OpAccess::Read | OpAccess::CondRead));
    let changed: Vec<_> = changed
        .map(|used| used.register().full_register())
        .collect();
    parts
        .iter()
        .any(|part| changed.contains(&part.full_register()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::code_asm::{self as asm, CodeAssembler};

    fn registers() -> Registers {
        Registers {
            r15: 0,
            r14: 0,
            r13: 0,
            r12: 0,
            rbp: 0,
            rbx: 0,
            r11: 0,
            r10: 0,
            r9: 0,
            r8: 0,
            rax: 0,
            rcx: 0,
            rdx: 0,
            rsi: 0,
            rdi: 0,
            orig_rax: 0,
            rip: 0,
            cs: 0,
            eflags: 0,
            rsp: 0,
            ss: 0,
            fs_base: 0,
            gs_base: 0,
            ds: 0,
            es: 0,
            fs: 0,
            gs: 0,
        }
    }

    fn decoded(assembler: &mut CodeAssembler) -> Instruction {
        let code = assembler.assemble(0x40_0000).unwrap();
        Decoder::with_ip(64, &code, 0x40_0000, DecoderOptions::NONE).decode()
    }

    const PLACE: LoggedRange = LoggedRange {
        address: 0x60_0010,
        len: 4,
    };

    fn choose(instruction: Instruction, registers: &Registers) -> Chosen {
        chosen(
            &[instruction],
            instruction.next_ip(),
            true,
            registers,
            PLACE,
        )
    }

    #[test]
    fn the_instruction_that_wrote_is_told_by_its_address() {
        let mut code = CodeAssembler::new(64).unwrap();
        code.mov(asm::dword_ptr(asm::rdi + asm::rsi * 4), asm::eax)
            .unwrap();
        let store = decoded(&mut code);
        let at = |rdi, rsi| Registers {
            rdi,
            rsi,
            ..registers()
        };
        assert_eq!(choose(store, &at(0x60_0000, 4)), Chosen::This(0x40_0000));
        assert_eq!(choose(store, &at(0x60_0000, 5)), Chosen::Elsewhere);
    }

    #[test]
    fn a_string_instruction_is_taken_where_its_pointer_is_near() {
        let mut code = CodeAssembler::new(64).unwrap();
        code.stosd().unwrap();
        let store = decoded(&mut code);
        let behind = Registers {
            rdi: 0x60_0014,
            ..registers()
        };
        assert_eq!(choose(store, &behind), Chosen::This(0x40_0000));
    }

    #[test]
    fn what_cannot_be_told_any_more_is_not_excluded() {
        let mut code = CodeAssembler::new(64).unwrap();
        code.xchg(asm::qword_ptr(asm::rax), asm::rax).unwrap();
        let exchange = decoded(&mut code);
        let far = Registers {
            rax: 5,
            ..registers()
        };
        assert_eq!(choose(exchange, &far), Chosen::This(0x40_0000));
        assert_eq!(chosen(&[], 0x40_0000, true, &far, PLACE), Chosen::Unknown);
    }

    #[test]
    fn loads_write_nothing() {
        let mut code = CodeAssembler::new(64).unwrap();
        code.mov(asm::eax, asm::dword_ptr(asm::rdi)).unwrap();
        let load = decoded(&mut code);
        let there = Registers {
            rdi: 0x60_0010,
            ..registers()
        };
        assert_eq!(choose(load, &there), Chosen::Elsewhere);
    }
}
