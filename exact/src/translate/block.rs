//! One block: from an address to the next branch.

use iced_x86::{
    Code as Opcode, Decoder, DecoderOptions, Encoder, FlowControl, Instruction,
    InstructionInfoFactory, MemoryOperand, Mnemonic, OpAccess, OpKind, Register,
};

use rustc_hash::{FxHashMap, FxHashSet};

use super::blocks::Blocks;
use super::emit::{Emitter, FAR_JUMP, R15, RAX, RCX, Reg};
use super::instructions::{
    StackAfter, decode, ends_block, is_chance, is_too_long, is_unsupported, loads_flags,
    stack_after, traps_by_number,
};
use super::notes::Notes;
use super::{Code, CodeSpan, Exit, Mode, Translator, Trap, layout};

/// Instructions of a block at most: its number is added to the counter by a byte.
const MOST: usize = 96;
/// The same where each may have a lot of code added.
const MOST_NOTED: usize = 32;
/// Blocks that are translated at once at most, and bytes after which there are enough.
const MOST_AHEAD: usize = 64;
const MOST_BYTES: usize = 16 << 10;
/// Bytes of code that are read for a block.
const BYTES: usize = 1024;

/// Translates the block at `pc`, and where `code` says so those that it leads to: each block that is translated when it is needed costs
/// a stop. Returns where the translation begins. `None`: there is no code.
pub(super) fn translate(translator: &mut Translator, pc: u64, code: &dyn Code) -> Option<u64> {
    let caches = &translator.caches;
    let cache = caches.near(pc).or_else(|| caches.count().checked_sub(1))?;
    let blocks = &mut translator.blocks;
    let kind = Kind {
        mode: translator.mode,
        table: translator.table.low as u32,
        stops: &translator.stops,
        hooks: &translator.hooks,
    };
    let mut block = Block {
        e: caches.begin(cache),
        bytes: [0; BYTES],
        pc,
        began: 0,
        ahead: 0,
        swapped: false,
        places: Vec::new(),
        exits: Vec::new(),
        returns: Vec::new(),
        traps: Vec::new(),
        kind,
        notes: &mut translator.notes,
        origins: (translator.mode == Mode::Record).then_some(&mut translator.origins),
        info: &mut translator.info,
    };
    let base = block.e.base;
    let end = block.translate(code)?;
    blocks.add(pc, end, base);
    let mut bodies = vec![(pc, base)];
    block.translate_ahead(blocks, &mut bodies, code);
    let unknown = block.tail(blocks);
    let Block {
        mut e,
        mut places,
        traps,
        returns,
        ..
    } = block;
    let returns = returns.into_iter().map(|(_, pc)| pc);
    let known = returns.filter_map(|pc| Some((pc, blocks.get(pc)?)));
    let checks: Vec<_> = known.collect();
    let links = translator
        .table
        .check_all(&checks, &mut e, &mut places, caches.miss());
    translator.traps.extend(traps);
    translator.caches.end(cache, e, places);
    for (at, to) in links {
        translator.caches.write(at, to.to_le_bytes().to_vec());
    }
    translator.link_waiting(&bodies, unknown);
    Some(base)
}

/// What is translated, and what for.
struct Kind<'a> {
    mode: Mode,
    /// By which indirect jumps find the translations of their targets: it lies here.
    table: u32,
    stops: &'a FxHashSet<u64>,
    hooks: &'a FxHashMap<u64, (u32, u8)>,
}

/// Blocks that are put together, one behind the other, and the stubs behind all of them.
pub(super) struct Block<'a> {
    pub(super) e: Emitter,
    /// The program's code from `pc` on.
    bytes: [u8; BYTES],
    pc: u64,
    /// Where the translation begins.
    began: u64,
    pub(super) ahead: u8,
    pub(super) swapped: bool,
    places: Vec<CodeSpan>,
    exits: Vec<(u64, u64)>,
    /// Where calls return to, and where the distances to these constants are filled in.
    returns: Vec<(u64, u64)>,
    traps: Vec<(u64, Trap)>,
    kind: Kind<'a>,
    pub(super) notes: &'a mut Notes,
    /// In code that is recorded.
    origins: Option<&'a mut Vec<u64>>,
    pub(super) info: &'a mut InstructionInfoFactory,
}

impl Block<'_> {
    /// Appends the block at `pc`; returns the end of its code. `None`: there is no code.
    fn translate(&mut self, code: &dyn Code) -> Option<u64> {
        let pc = self.pc;
        self.began = self.e.here();
        let count = code.read(pc, &mut self.bytes);
        let most = match self.notes.wanted.is_any() {
            true => MOST_NOTED,
            false => MOST,
        };
        let instructions = decode(&self.bytes[..count], pc, most, |ip| {
            self.kind.stops.contains(&ip) || self.kind.hooks.contains_key(&ip)
        });
        let last = instructions.last()?;
        self.ahead = instructions.len() as u8;
        let is_stop = self.kind.stops.contains(&pc);
        let hook = self.kind.hooks.get(&pc).copied();
        if self.kind.mode == Mode::Replay && (is_stop || hook.is_some()) {
            self.limit();
        }
        if is_stop {
            self.stop();
        }
        if let Some((number, vectors)) = hook {
            self.entry(number, vectors);
        }
        self.head();
        self.note_block(&instructions);
        for instruction in &instructions {
            self.instruction(instruction);
        }
        if !ends_block(last) {
            self.normal(last.next_ip());
            // Here the last instruction counts as executed: a write of it is told after it.
            self.place(last.next_ip(), false, false);
            self.exit_to(last.next_ip());
        }
        Some(last.next_ip())
    }

    /// Appends blocks that were not translated yet: first what comes behind each other, so that no jump is needed from one to the next.
    fn translate_ahead(
        &mut self,
        blocks: &mut Blocks,
        bodies: &mut Vec<(u64, u64)>,
        code: &dyn Code,
    ) {
        let (mut looked_at, mut returned) = (0, 0);
        for _ in 0..MOST_AHEAD {
            let is_new = |target: &u64| blocks.get(*target).is_none() && code.may_be_ahead(*target);
            let follows = self.follows().filter(is_new);
            let next = follows.or_else(|| {
                let rest = &self.exits[looked_at..];
                let found = rest.iter().position(|(_, target)| is_new(target));
                looked_at += found.map_or(rest.len(), |found| found + 1);
                found.map(|found| rest[found].1)
            });
            let next = next.or_else(|| {
                let rest = &self.returns[returned..];
                let found = rest.iter().position(|(_, target)| is_new(target));
                returned += found.map_or(rest.len(), |found| found + 1);
                found.map(|found| rest[found].1)
            });
            let Some(pc) = next.filter(|_| self.e.bytes.len() < MOST_BYTES) else {
                break;
            };
            let jump = follows.and_then(|_| self.exits.pop());
            if jump.is_some() {
                self.e.take_jump_back();
                if self.kind.mode == Mode::Replay {
                    // The process can be stopped before the jump, so that has a place of its own.
                    self.e.put(&[0x90]);
                }
            }
            self.end_block();
            self.pc = pc;
            self.swapped = false;
            let Some(end) = self.translate(code) else {
                if jump.is_some() {
                    self.exit_to(pc);
                }
                break;
            };
            blocks.add(pc, end, self.began);
            bodies.push((pc, self.began));
        }
        self.end_block();
    }

    /// Makes the block long enough: once it is forgotten, it begins with a jump to the new one, which must not reach into the next.
    fn end_block(&mut self) {
        self.e.fill(self.began + FAR_JUMP);
    }

    /// Where the last block goes on at its end, if it does so by a jump.
    fn follows(&self) -> Option<u64> {
        let (distance_at, target) = self.exits.last()?;
        (distance_at + 4 == self.e.here()).then_some(*target)
    }

    pub(super) fn place(&mut self, pc: u64, boundary: bool, saved: bool) {
        let place = CodeSpan {
            at: self.e.here(),
            pc,
            ahead: self.ahead,
            boundary,
            swapped: self.swapped,
            saved,
        };
        self.places.push(place);
    }

    /// A stop that was set, before anything is counted.
    fn stop(&mut self) {
        let ahead = std::mem::take(&mut self.ahead);
        self.trap(self.pc, Trap::Stop { pc: self.pc });
        self.ahead = ahead;
    }

    /// A record of a call, before anything is counted.
    fn entry(&mut self, number: u32, vectors: u8) {
        let ahead = std::mem::take(&mut self.ahead);
        self.place(self.pc, true, false);
        self.e.record_entry(number, vectors);
        self.ahead = ahead;
    }

    /// Counts. Who runs again has the process write to where the counter points then: behind the limit it cannot.
    fn head(&mut self) {
        let count = self.ahead;
        self.ahead = 0;
        self.place(self.pc, true, false);
        self.ahead = count;
        self.e.count(count);
        if self.kind.mode == Mode::Replay {
            self.place(self.pc, false, false);
            self.e.touch_counter();
        }
    }

    /// Stops the process at the limit, before anything else is done.
    fn limit(&mut self) {
        let ahead = std::mem::take(&mut self.ahead);
        self.place(self.pc, true, false);
        self.e.touch_next();
        self.ahead = ahead;
    }

    /// Makes r15 the counter.
    fn normal(&mut self, pc: u64) {
        if self.swapped {
            self.place(pc, true, false);
            self.e.swap_out();
            self.swapped = false;
        }
    }

    /// Makes r15 the program's.
    fn own(&mut self, pc: u64) {
        if !self.swapped {
            self.place(pc, true, false);
            self.e.swap_in();
            self.swapped = true;
        }
    }

    fn uses(&mut self, instruction: &Instruction) -> Vec<Register> {
        let info = self.info.info(instruction);
        let registers = info.used_registers().iter();
        registers
            .filter(|used| used.access() != OpAccess::None)
            .map(|used| used.register().full_register())
            .collect()
    }

    fn instruction(&mut self, instruction: &Instruction) {
        if !self.kind.hooks.is_empty() {
            match stack_after(instruction) {
                StackAfter::Same => {}
                StackAfter::Frame => self.e.forget_lowest_at_leave(),
                StackAfter::Any => self.e.forget_lowest(),
            }
        }
        let used = self.uses(instruction);
        if used.contains(&Register::R15) {
            self.own(instruction.ip());
        }
        if !ends_block(instruction) {
            let note = self.note_before(instruction);
            self.place(instruction.ip(), note.is_none(), false);
            self.copy(instruction, &used);
            self.note_after(instruction, note);
        } else {
            self.end(instruction);
        }
        self.ahead = self.ahead.saturating_sub(1);
    }

    pub(super) fn original(&self, instruction: &Instruction) -> Vec<u8> {
        let start = (instruction.ip() - self.pc) as usize;
        self.bytes[start..start + instruction.len()].to_vec()
    }

    /// An instruction as it is, but for what it addresses relative to itself.
    fn copy(&mut self, instruction: &Instruction, used: &[Register]) {
        // Who runs again knows that they are harmless.
        if self.origins.is_some() && loads_flags(instruction) {
            let pc = instruction.ip();
            self.trap(pc, Trap::Flags { pc });
            self.place(pc, true, false);
        }
        let mut bytes = self.original(instruction);
        if !instruction.is_ip_rel_memory_operand() {
            self.e.put(&bytes);
            return;
        }
        let target = instruction.ip_rel_memory_address();
        let distance = target.wrapping_sub(self.e.here() + bytes.len() as u64) as i64;
        let mut decoder = Decoder::with_ip(64, &bytes, instruction.ip(), DecoderOptions::NONE);
        let again = decoder.decode();
        let offset = decoder.get_constant_offsets(&again).displacement_offset();
        if let Ok(distance) = i32::try_from(distance) {
            bytes[offset..offset + 4].copy_from_slice(&distance.to_le_bytes());
            self.e.put(&bytes);
            return;
        }
        self.through_scratch(instruction, used, target);
    }

    /// An instruction that addresses what is too far from here: by a register that it does not use.
    fn through_scratch(&mut self, instruction: &Instruction, used: &[Register], target: u64) {
        const CHOICE: [(Register, u8); 8] = [
            (Register::RCX, 1),
            (Register::RDX, 2),
            (Register::RBX, 3),
            (Register::RSI, 6),
            (Register::RDI, 7),
            (Register::R8, 8),
            (Register::R9, 9),
            (Register::R10, 10),
        ];
        let free = CHOICE.iter().find(|(register, _)| !used.contains(register));
        let (register, number) =
            *free.expect("no instruction uses eight registers with an address relative to itself");
        let mut changed = *instruction;
        changed.set_memory_base(register);
        changed.set_memory_displacement64(0);
        changed.set_memory_displ_size(1);
        self.e.save(Reg(number), layout::SLOT_SCRATCH);
        self.e.set(Reg(number), target);
        let mut encoder = Encoder::new(64);
        match encoder.encode(&changed, self.e.here()) {
            Ok(_) => {
                let bytes = encoder.take_buffer();
                self.e.put(&bytes);
            }
            Err(_) => {
                self.e.load(Reg(number), layout::SLOT_SCRATCH);
                self.traps.push((
                    self.e.here(),
                    Trap::Unsupported {
                        pc: instruction.ip(),
                    },
                ));
                self.e.put(&[0xcc]);
            }
        }
        self.ahead = self.ahead.saturating_sub(1);
        self.place(instruction.next_ip(), false, false);
        self.ahead += 1;
        self.e.load(Reg(number), layout::SLOT_SCRATCH);
    }

    /// A trap at which the thread is before `pc`, or at its start.
    pub(super) fn trap(&mut self, pc: u64, trap: Trap) {
        self.place(pc, true, false);
        self.traps.push((self.e.here(), trap));
        self.e.put(&[0xcc]);
    }

    /// A jump to the translation of `target`.
    fn exit_to(&mut self, target: u64) {
        let distance_at = self.e.jump();
        self.exits.push((distance_at, target));
    }

    fn end(&mut self, instruction: &Instruction) {
        let (pc, next) = (instruction.ip(), instruction.next_ip());
        if is_unsupported(instruction) {
            self.normal(pc);
            return self.trap(pc, Trap::Unsupported { pc });
        }
        if is_chance(instruction) {
            self.own(pc);
            self.trap(pc, Trap::Chance { pc, next });
            // Where it faults, it does so before the instruction.
            self.place(pc, true, false);
            let used = self.uses(instruction);
            self.copy(instruction, &used);
            return self.trap(next, Trap::Unsupported { pc });
        }
        match instruction.flow_control() {
            FlowControl::Call if instruction.code() == Opcode::Syscall => {
                self.system_call(pc, next)
            }
            FlowControl::UnconditionalBranch => {
                self.normal(pc);
                self.place(pc, true, false);
                self.exit_to(instruction.near_branch_target());
            }
            FlowControl::ConditionalBranch => self.branch(instruction),
            FlowControl::Call if instruction.is_call_near() => {
                self.normal(pc);
                self.note_end(instruction);
                self.place(pc, true, false);
                self.push_return(next);
                self.ahead = self.ahead.saturating_sub(1);
                self.place(instruction.near_branch_target(), false, false);
                self.exit_to(instruction.near_branch_target());
            }
            FlowControl::Return => self.ret(instruction),
            FlowControl::IndirectBranch | FlowControl::IndirectCall => self.indirect(instruction),
            FlowControl::XbeginXabortXend if instruction.mnemonic() == Mnemonic::Xbegin => {
                // A transaction may always fail at once, for no reason given.
                self.normal(pc);
                self.place(pc, true, false);
                self.e.put(&[0xb8, 0, 0, 0, 0]);
                self.exit_to(instruction.near_branch_target());
            }
            // What faults here faults as it does in the program.
            _ => {
                self.place(pc, true, false);
                let bytes = match instruction.is_invalid() {
                    // hlt, which raises the fault of an instruction that is too long.
                    true if is_too_long(&self.bytes) => vec![0xf4],
                    true => vec![0x0f, 0x0b],
                    // Who runs again has the signal, and wants to be stopped behind the instruction by whatever.
                    false if self.origins.is_none() && traps_by_number(instruction) => vec![0xcc],
                    false => self.original(instruction),
                };
                self.e.put(&bytes);
                self.ahead = self.ahead.saturating_sub(1);
                self.normal(next);
                self.place(next, true, false);
                self.exit_to(next);
            }
        }
    }

    fn push_return(&mut self, value: u64) {
        let distance_at = self.e.push_constant();
        self.returns.push((distance_at, value));
    }

    fn system_call(&mut self, pc: u64, next: u64) {
        self.own(pc);
        self.trap(pc, Trap::SystemCall { next });
        self.place(pc, true, false);
        self.e.put(&[0x0f, 0x05]);
        self.ahead = self.ahead.saturating_sub(1);
        self.trap(next, Trap::Returned { next });
        self.normal(next);
        self.exit_to(next);
    }

    fn branch(&mut self, instruction: &Instruction) {
        let (pc, next, target) = (
            instruction.ip(),
            instruction.next_ip(),
            instruction.near_branch_target(),
        );
        self.normal(pc);
        self.place(pc, true, false);
        if instruction.is_jcc_short_or_near() {
            let condition = iced_condition(instruction);
            let distance_at = self.e.jump_if(condition);
            self.exits.push((distance_at, target));
            self.ahead = self.ahead.saturating_sub(1);
            self.place(next, false, false);
            return self.exit_to(next);
        }
        // jrcxz, loop and their kind have a distance of one byte.
        let mut bytes = self.original(instruction);
        *bytes.last_mut().expect("it has a distance") = 2;
        self.e.put(&bytes);
        self.ahead = self.ahead.saturating_sub(1);
        self.place(next, false, false);
        self.e.put(&[0xeb, 5]);
        self.place(target, false, false);
        self.exit_to(target);
        self.place(next, false, false);
        self.exit_to(next);
    }

    /// Saves what a lookup needs, and which instruction it is for.
    fn save_for_look_up(&mut self, pc: u64) {
        self.e.save(RAX, layout::SLOT_RAX);
        self.e.save(RCX, layout::SLOT_RCX);
        if let Some(origins) = &mut self.origins {
            self.e
                .save_number(origins.len() as u32, layout::SLOT_ORIGIN);
            origins.push(pc);
        }
    }

    fn ret(&mut self, instruction: &Instruction) {
        let pc = instruction.ip();
        let drop = if instruction.op_count() == 1 {
            u32::from(instruction.immediate16())
        } else {
            0
        };
        self.normal(pc);
        if !self.kind.hooks.is_empty() {
            self.place(pc, true, false);
            let distance_at = self.e.skip_return();
            self.place(pc, true, false);
            self.e.record_return();
            self.e.aim(distance_at, self.e.here());
        }
        self.note_end(instruction);
        self.place(pc, true, false);
        self.save_for_look_up(pc);
        self.e.put(&[0x48, 0x8b, 0x04, 0x24]); // mov rax, [rsp]
        self.place(pc, false, true);
        self.e.put(&[0x48, 0x8d, 0xa4, 0x24]); // lea rsp, [rsp + ..]
        self.e.put(&(8 + drop).to_le_bytes());
        self.e.look_up(self.kind.table);
    }

    fn indirect(&mut self, instruction: &Instruction) {
        let (pc, next) = (instruction.ip(), instruction.next_ip());
        self.note_end(instruction);
        self.place(pc, true, false);
        self.save_for_look_up(pc);
        if instruction.is_ip_rel_memory_operand() {
            self.e.put(&[0x48, 0xa1]); // mov rax, [absolute]
            self.e
                .put(&instruction.ip_rel_memory_address().to_le_bytes());
        } else {
            let load = load_target(instruction);
            let mut encoder = Encoder::new(64);
            if encoder.encode(&load, self.e.here()).is_err() {
                self.normal(pc);
                return self.trap(pc, Trap::Unsupported { pc });
            }
            let bytes = encoder.take_buffer();
            self.e.put(&bytes);
        }
        self.place(pc, false, true);
        if self.swapped {
            self.e.save(R15, layout::SLOT_R15);
            self.e.load(R15, layout::SLOT_COUNTER);
            self.swapped = false;
            self.place(pc, false, true);
        }
        if instruction.flow_control() == FlowControl::IndirectCall {
            self.push_return(next);
            self.ahead = self.ahead.saturating_sub(1);
            self.place(pc, false, true);
        }
        self.e.look_up(self.kind.table);
    }

    /// Exits that are not linked, and constants.
    fn tail(&mut self, blocks: &Blocks) -> Vec<Exit> {
        self.ahead = 0;
        self.swapped = false;
        let mut unknown = Vec::new();
        for (distance_at, target) in std::mem::take(&mut self.exits) {
            let known = blocks.get(target);
            let near = known
                .filter(|body| i32::try_from(body.wrapping_sub(distance_at + 4) as i64).is_ok());
            if let Some(body) = near {
                self.e.aim(distance_at, body);
                continue;
            }
            let stub = self.e.here();
            self.e.aim(distance_at, stub);
            self.place(target, true, false);
            if let Some(body) = known {
                self.e.far_jump(body);
            } else {
                let trap = Trap::Exit {
                    target,
                    distance_at,
                };
                self.traps.push((stub, trap));
                unknown.push(Exit {
                    target,
                    stub,
                    distance_at,
                });
                self.e.put(&[0xcc; 14]);
            }
        }
        for (distance_at, value) in self.returns.clone() {
            while !self.e.here().is_multiple_of(8) {
                self.e.put(&[0xcc]);
            }
            let at = self.e.here();
            self.e.aim(distance_at, at);
            self.e.put(&value.to_le_bytes());
        }
        unknown
    }
}

/// The number of a branch's condition in machine code.
fn iced_condition(instruction: &Instruction) -> u8 {
    use iced_x86::ConditionCode as C;
    match instruction.condition_code() {
        C::None => unreachable!("a conditional jump has a condition"),
        C::o => 0,
        C::no => 1,
        C::b => 2,
        C::ae => 3,
        C::e => 4,
        C::ne => 5,
        C::be => 6,
        C::a => 7,
        C::s => 8,
        C::ns => 9,
        C::p => 10,
        C::np => 11,
        C::l => 12,
        C::ge => 13,
        C::le => 14,
        C::g => 15,
    }
}

/// `mov rax, ` what the jump or call goes to.
fn load_target(instruction: &Instruction) -> Instruction {
    if instruction.op0_kind() == OpKind::Register {
        return Instruction::with2(
            Opcode::Mov_r64_rm64,
            Register::RAX,
            instruction.op0_register(),
        )
        .expect("two registers");
    }
    let memory = MemoryOperand::new(
        instruction.memory_base(),
        instruction.memory_index(),
        instruction.memory_index_scale(),
        instruction.memory_displacement64() as i64,
        instruction.memory_displ_size(),
        false,
        instruction.segment_prefix(),
    );
    Instruction::with2(Opcode::Mov_r64_rm64, Register::RAX, memory).expect("a register and memory")
}
