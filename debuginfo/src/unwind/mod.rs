//! Backtraces: finds a thread's frames from its registers and stack, with the unwind tables of the modules.
//!
//! A frame is certain as long as tables describe all code inside it. Where there are none, frame pointers are followed,
//! and the result says so. Damaged stacks and tables end a backtrace, but never cause an endless one.

mod fallback;
mod frame;
mod leaving;
mod own;
mod rules;
mod tables;
pub(crate) mod tail_calls;

pub use frame::{Backtrace, Frame, FrameMachine, FrameRegisters, Wish};
pub use leaving::{FrameLeaver, Held};
pub(crate) use own::OwnRegisters;

use std::sync::{Arc, OnceLock};

use gimli::CfaRule;

use crate::address_space::{AddressSpace, Mapped};
use crate::files::Files;
use crate::frames;
use crate::lines::SourceLine;
use crate::machine::{Certainty, Machine, Register, Unknown};
use crate::model::{CodeRange, Svma};
use crate::module::Module;
use rules::{Caller, Step};
use tables::{Rules, UnwindTables};
use tail_calls::KnownCalls;

/// The unwind tables of one module and the calls of its functions, read on first use.
#[derive(Debug)]
pub(crate) struct Unwind {
    files: Arc<Files>,
    tables: OnceLock<UnwindTables>,
    frames: OnceLock<Vec<CodeRange>>,
    calls: KnownCalls,
    leavers: OnceLock<Vec<FrameLeaver>>,
}

impl Unwind {
    pub(crate) fn new(files: Arc<Files>) -> Unwind {
        Unwind {
            files,
            tables: OnceLock::new(),
            frames: OnceLock::new(),
            calls: KnownCalls::default(),
            leavers: OnceLock::new(),
        }
    }

    pub(crate) fn tables(&self) -> &UnwindTables {
        let read = || UnwindTables::read(self.files.clone());
        self.tables.get_or_init(read)
    }

    /// Returns where code of the module leaves frames without a return.
    pub(crate) fn leavers(&self, module: &Module) -> &[FrameLeaver] {
        self.leavers.get_or_init(|| leaving::find_in(module))
    }

    /// Returns the ranges that the tables describe, by address.
    pub(crate) fn frames(&self) -> &[CodeRange] {
        self.frames.get_or_init(|| frames::read(&self.files))
    }
}

/// Returns the frames of the thread that `machine` represents, at most `limit`, innermost first. Inlined calls are
/// frames of their own.
#[must_use]
pub fn backtrace(space: &AddressSpace, machine: &dyn Machine, limit: usize) -> Backtrace {
    walk(space, machine, limit, true)
}

/// Like [`backtrace`], for a thread that resumes at rip when a call returns. rip and rsp have their values after the
/// return.
#[must_use]
pub fn backtrace_of_caller(space: &AddressSpace, machine: &dyn Machine, limit: usize) -> Backtrace {
    walk(space, machine, limit, false)
}

fn walk(space: &AddressSpace, machine: &dyn Machine, limit: usize, is_exact: bool) -> Backtrace {
    let mut trace = Backtrace::default();
    let innermost = FrameRegisters::innermost(machine);
    let pc = match innermost.get(Register::RIP) {
        Ok((pc, _)) => machine.original_pc(pc),
        Err(why) => {
            trace.end = Some(Unknown::because(format!("rip is not known: {why}")));
            return trace;
        }
    };
    let mut walk = Walk {
        space,
        machine,
        trace: &mut trace,
        limit,
        guessed: None,
    };
    let end = walk.run(innermost.with_pc(pc), pc, is_exact).err();
    let guessed = walk.guessed;
    trace.end = end.or_else(|| {
        guessed.map(|at| {
            Unknown::because(format!(
                "there are no unwind tables for frame {at}; the frames after it were found by frame pointers and may be wrong"
            ))
        })
    });
    trace
}

/// Returns the register (its DWARF number) and the offset whose sum is the CFA at `address`, if the rule has this form.
pub(crate) fn cfa_rule(space: &AddressSpace, address: u64) -> Option<(u16, i64)> {
    let mapped = space.at(address)?;
    let module = &mapped.module;
    let rules = module.unwind().tables().rules(mapped.svma(address).0)?;
    match rules.ok()?.cfa {
        gimli::CfaRule::RegisterAndOffset { register, offset } => Some((register.0, offset)),
        gimli::CfaRule::Expression(_) => None,
    }
}

/// Returns the distance from `register` (rbp or rsp) up to the CFA in the function that begins at `entry`, while its
/// frame is set up.
pub(crate) fn frame_distance(module: &Module, entry: u64, register: u16) -> Option<i64> {
    module.unwind().tables().distance(entry, register)
}

/// The innermost frame of all threads stopped at one instruction. What does not depend on the thread is looked up once.
#[derive(Debug, Clone)]
pub struct InnermostFrame {
    frame: Frame,
    base: Register,
    offset: i64,
}

impl InnermostFrame {
    /// Finds the innermost frame at `pc`, as in [`backtrace`]. For `to_come` see [`Machine::calls_to_come`]. Returns
    /// `None` if the frame depends on more than registers.
    #[must_use]
    pub fn at(space: &AddressSpace, pc: u64, to_come: usize) -> Option<InnermostFrame> {
        let (base, offset) = cfa_rule(space, pc)?;
        let frames = walk(space, &Standing { pc, to_come }, 1, true).frames;
        let frame = frames.into_iter().next()?;
        (base <= 15).then_some(InnermostFrame {
            frame,
            base: Register(base),
            offset,
        })
    }

    /// Returns the frame of a thread whose registers have not been read.
    #[must_use]
    pub fn unread(&self, wish: Wish) -> Frame {
        Frame {
            cfa: None,
            registers: FrameRegisters::unread(wish),
            ..self.frame.clone()
        }
    }

    /// Returns the frame of a thread with these registers, or `None` if they do not determine its place for certain.
    #[must_use]
    pub fn of(&self, registers: FrameRegisters) -> Option<Frame> {
        let (base, Certainty::Known) = registers.get(self.base).ok()? else {
            return None;
        };
        Some(Frame {
            cfa: Some(base.wrapping_add_signed(self.offset)),
            registers,
            ..self.frame.clone()
        })
    }
}

/// A thread of which only the position is known.
struct Standing {
    pc: u64,
    to_come: usize,
}

impl Machine for Standing {
    fn memory(&self, _: u64, _: &mut [u8]) -> Result<Certainty, Unknown> {
        Err(Unknown::because("there is no thread"))
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        let value = if register == Register::RIP {
            self.pc
        } else {
            0
        };
        Ok((value, Certainty::Known))
    }

    fn vector(&self, _: Register) -> Result<([u8; 16], Certainty), Unknown> {
        Err(Unknown::because("there is no thread"))
    }

    fn calls_to_come(&self) -> usize {
        self.to_come
    }
}

/// Returns the number of inlined calls around the innermost frame of a thread stopped at `address`, and the start of
/// the function with code.
pub fn innermost_call(space: &AddressSpace, address: u64) -> (usize, Option<u64>) {
    let calls = calls(space, address);
    (calls.len() - 1, calls[0].entry)
}

struct Walk<'w> {
    space: &'w AddressSpace,
    machine: &'w dyn Machine,
    trace: &'w mut Backtrace,
    limit: usize,
    /// The first frame whose caller was found without tables.
    guessed: Option<usize>,
}

impl Walk<'_> {
    /// Adds frames up to the outermost one.
    ///
    /// # Errors
    /// The reason why the backtrace ends earlier.
    fn run(
        &mut self,
        mut registers: FrameRegisters,
        mut pc: u64,
        mut is_exact: bool,
    ) -> Result<(), Unknown> {
        // After a call, the next instruction may belong to other code. A signal arrives before an instruction.
        let mut below: Option<u64> = None;
        loop {
            let lookup = if is_exact { pc } else { pc.wrapping_sub(1) };
            let first = self.trace.frames.len();
            let (found, own) = self.found(registers, pc, lookup, is_exact);
            let lookup = if found.is_signal { pc } else { lookup };
            let is_hidden = self.space.is_hidden(lookup);
            if !is_hidden && self.push(&own, (pc, lookup), found.cfa, found.is_signal) {
                return Err(self.too_many());
            }
            if found.is_guess {
                self.guessed.get_or_insert(first);
            }
            let caller = match found.caller {
                Way::Rules(rules, at) => self.by_rules(&own, rules, at),
                Way::Guess(caller) => caller,
            };
            let next = match caller? {
                Caller::Frame(next) => next,
                Caller::None => return Ok(()),
            };
            // Callers are at higher addresses, except that a signal handler may have a stack of its own.
            if let (Some(below), Some(cfa), false) = (below, found.cfa, found.is_signal)
                && cfa <= below
            {
                return Err(Unknown::because(format!(
                    "frame {first} does not lie above the one it called: the stack is damaged"
                )));
            }
            below = found.cfa.filter(|_| !found.is_signal);
            (pc, _) = next.get(Register::RIP)?;
            if !found.is_signal && !found.is_guess {
                self.push_tail_calls(&next, lookup, pc, found.cfa)?;
            }
            is_exact = found.is_signal;
            registers = next;
        }
    }

    /// Finds the caller of a frame. Also returns the frame's registers, to which its CFA may add one.
    fn found(
        &self,
        registers: FrameRegisters,
        pc: u64,
        lookup: u64,
        is_exact: bool,
    ) -> (Found, FrameRegisters) {
        let found = self.caller(&registers, pc, lookup, is_exact);
        if found.cfa.is_some() && !found.is_guess {
            return (found, registers);
        }
        let sp = registers.get(Register::RSP).map_or(0, |(sp, _)| sp);
        match self.machine.frame_address(lookup, sp) {
            None => (found, registers),
            Some(cfa) => {
                let known = self.with_address(registers, lookup, cfa);
                (self.caller(&known, pc, lookup, is_exact), known)
            }
        }
    }

    /// Adds the register that follows from a frame's CFA: the one that the CFA is relative to.
    fn with_address(&self, registers: FrameRegisters, lookup: u64, cfa: u64) -> FrameRegisters {
        let rules = self.space.unwound_at(lookup).and_then(|mapped| {
            let module = &mapped.module;
            let svma = mapped.svma(lookup).0;
            module.unwind().tables().rules(svma)?.ok()
        });
        match rules.map(|rules| rules.cfa) {
            Some(CfaRule::RegisterAndOffset { register, offset }) => {
                registers.with(Register(register.0), cfa.wrapping_sub(offset as u64))
            }
            _ => registers,
        }
    }

    /// Finds the way to the caller of a frame.
    fn caller(&self, registers: &FrameRegisters, pc: u64, lookup: u64, is_exact: bool) -> Found {
        let tabled = self.by_tables(registers, lookup);
        // The kernel returns to the first instruction of a signal frame without having called it.
        let signal = || {
            self.by_tables(registers, pc)
                .filter(|found| found.is_signal)
        };
        if let Some(found) = tabled.or_else(signal) {
            return found;
        }
        let guess = fallback::caller(self.space, self.machine, registers, pc, is_exact);
        let (cfa, caller) = match guess {
            Ok((cfa, caller)) => (Some(cfa), Ok(Caller::Frame(caller))),
            Err(why) => (None, Err(why)),
        };
        Found {
            cfa,
            caller: Way::Guess(caller),
            is_signal: false,
            is_guess: true,
        }
    }

    /// Finds the way to the caller with the unwind tables. Returns `None` if none describes `lookup`.
    fn by_tables(&self, registers: &FrameRegisters, lookup: u64) -> Option<Found> {
        let mapped = self.space.unwound_at(lookup)?;
        let module = &mapped.module;
        let svma = mapped.svma(lookup).0;
        let rules = module.unwind().tables().rules(svma)?;
        let is_signal = rules.as_ref().is_ok_and(|r| r.is_signal);
        let step = self.step(registers, mapped);
        let cfa = rules.as_ref().ok().and_then(|rules| step.cfa(rules).ok());
        Some(Found {
            cfa,
            caller: Way::Rules(rules, lookup),
            is_signal,
            is_guess: false,
        })
    }

    /// Finds the caller of a frame with the rules found for `lookup`.
    fn by_rules(
        &self,
        registers: &FrameRegisters,
        rules: Result<Rules, Unknown>,
        lookup: u64,
    ) -> Result<Caller, Unknown> {
        let mapped = self.space.unwound_at(lookup);
        let mapped = mapped.expect("rules are a module's");
        let step = self.step(registers, mapped);
        let rules = rules?;
        step.caller(&rules, step.cfa(&rules)?)
    }

    fn step<'s>(&'s self, registers: &'s FrameRegisters, mapped: &'s Mapped) -> Step<'s> {
        Step {
            machine: self.machine,
            mapped,
            registers,
        }
    }

    /// Adds the frames of one physical frame, inlined calls first. Returns whether there were too many.
    fn push(
        &mut self,
        registers: &FrameRegisters,
        (pc, lookup_pc): (u64, u64),
        cfa: Option<u64>,
        is_signal: bool,
    ) -> bool {
        let mut calls = calls(self.space, lookup_pc);
        if self.trace.frames.is_empty() {
            let to_come = self.machine.calls_to_come();
            calls.drain(..to_come.min(calls.len() - 1));
        }
        let count = calls.len();
        for (at, call) in calls.into_iter().enumerate() {
            if self.trace.frames.len() >= self.limit {
                return true;
            }
            self.trace.frames.push(Frame {
                pc,
                pc_is_known: true,
                lookup_pc,
                cfa,
                registers: registers.clone(),
                function: call.function,
                function_entry: call.entry,
                module: call.module,
                source: call.source,
                inlined: at + 1 < count,
                inline_depth: count - 1 - at,
                is_signal,
                is_tail_call: false,
            });
        }
        self.trace.frames.len() >= self.limit
    }

    /// Adds the functions that made tail calls between a frame, looked up at `lookup`, and the call that returns to
    /// `back`. They had the registers of the caller.
    fn push_tail_calls(
        &mut self,
        caller: &FrameRegisters,
        lookup: u64,
        back: u64,
        cfa: Option<u64>,
    ) -> Result<(), Unknown> {
        let (Some(inside), Some(outside)) = (self.space.at(lookup), self.space.at(back)) else {
            return Ok(());
        };
        if !Arc::ptr_eq(&inside.module, &outside.module) {
            return Ok(());
        }
        let module = &inside.module;
        let callee = tail_calls::entry_of(module, inside.svma(lookup).0);
        let back = inside.svma(back).0;
        let between = callee.map(|callee| tail_calls::between(module, back, callee));
        for pc in between.unwrap_or_default() {
            let pc = inside.address(Svma(pc));
            let first = self.trace.frames.len();
            let registers = caller.clone().with_pc(pc);
            if self.push(&registers, (pc, pc.wrapping_sub(1)), cfa, false) {
                return Err(self.too_many());
            }
            for frame in &mut self.trace.frames[first..] {
                frame.is_tail_call = true;
            }
        }
        Ok(())
    }

    fn too_many(&self) -> Unknown {
        Unknown::limit(self.limit)
    }
}

/// Returns the functions around an address, innermost first: at least one, which may be unknown.
fn calls(space: &AddressSpace, lookup: u64) -> Vec<Call> {
    let Some(mapped) = space.at(lookup) else {
        return vec![Call::default()];
    };
    let module = &mapped.module;
    let svma = mapped.svma(lookup);
    let number = Some(mapped.number);
    let mut source = space.line_at(lookup);
    let symbol = || {
        let start = module.unwind().tables().start(svma.0);
        let named = module.symbol_at(svma);
        let entry = named.as_ref().map(|(_, at)| at.0).or(start);
        (named.map(|(name, _)| name), entry)
    };
    let Some(unit) = module.units().find(svma.0) else {
        let (function, entry) = symbol();
        return vec![Call {
            function,
            entry: entry.map(|e| e.wrapping_add(mapped.bias)),
            module: number,
            source,
        }];
    };
    let scopes = unit.scopes(module);
    let chain = scopes.chain(svma.0);
    let function = chain.first().map(|at| scopes.list[*at].entry());
    let entry = function.or_else(|| symbol().1);
    let entry = entry.map(|e| e.wrapping_add(mapped.bias));
    let mut calls = Vec::new();
    for at in chain.iter().rev() {
        let scope = &scopes.list[*at];
        let next = scope.call.clone();
        calls.push(Call {
            function: scope.name.as_deref().map(str::to_owned),
            entry,
            module: number,
            source: std::mem::replace(&mut source, next),
        });
    }
    if calls.is_empty() {
        calls.push(Call {
            function: symbol().0,
            entry,
            module: number,
            source,
        });
    }
    calls
}

#[derive(Default)]
struct Call {
    function: Option<String>,
    entry: Option<u64>,
    module: Option<u32>,
    source: Option<SourceLine>,
}

/// What is known about a frame and the way to its caller.
struct Found {
    cfa: Option<u64>,
    caller: Way,
    is_signal: bool,
    is_guess: bool,
}

/// How to find a frame's caller. Applying rules reads memory, so it is delayed until the caller is needed.
enum Way {
    /// With these rules, which were found for this address.
    Rules(Result<Rules, Unknown>, u64),
    /// Found without rules.
    Guess(Result<Caller, Unknown>),
}
