//! A stopped thread as a `debuginfo` machine, and the names of its registers.

use std::sync::Arc;

use agent::shared::Asked;
use debuginfo::{Certainty, Limit, Machine, Register, Unknown};
use exact::abi::vectors;
pub(crate) use exact::abi::{RED_ZONE, XMM_OFFSET};

use super::{hooks::shadow_of, memory::LiveMemory};
use crate::{
    live::{
        breakpoints::Breakpoints,
        error::{LiveError, LiveResult},
        model::{AllRegisters, Stop, Tid},
        tracee::Tracee,
    },
    stop::Registers,
};

/// A stopped thread and its memory. Registers are those at the stop; memory is read on demand.
#[derive(Clone)]
pub struct LiveMachine {
    /// The stop that this is about.
    pub stop: Stop,
    /// Its registers.
    pub registers: AllRegisters,
    pub(crate) memory: LiveMemory,
    /// How often threads have reached the probe being evaluated.
    pub(crate) hit_count: Option<u64>,
    /// Set if the thread is not stopped but asks: its vector registers and its stack.
    pub(crate) asked: Option<Arc<Asked>>,
    /// All of the x87, SSE and later registers, in XSAVE's layout; empty if they are not known.
    pub(crate) extended: Arc<Vec<u8>>,
    /// Time limit for reading memory.
    pub(crate) limit: Option<Limit>,
}

impl LiveMachine {
    /// Limits the time for reading memory.
    #[must_use]
    pub fn limited(self, limit: Limit) -> LiveMachine {
        LiveMachine {
            limit: Some(limit),
            ..self
        }
    }
}

impl Machine for LiveMachine {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        if let Some(limit) = &self.limit {
            limit.check()?;
        }
        if let Some(asked) = &self.asked {
            let hooks = self.memory.hooks_now();
            if asked.read_stack(address, bytes, |word| hooks.leave().is(word)) {
                return Ok(Certainty::Known);
            }
        }
        let len = bytes.len();
        self.memory
            .read_unhooked(address, bytes)
            .map(|()| Certainty::Known)
            .map_err(|_| match len {
                1 => Unknown::because(format!("there is no memory at {address:#x}")),
                _ => Unknown::because(format!(
                    "there are no {len} bytes of memory at {address:#x}"
                )),
            })
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        general(&self.registers.general, register)
            .map(|value| (value, Certainty::Known))
            .ok_or_else(|| Unknown::because("not a register that is read"))
    }

    fn extended(&self) -> Option<Vec<u8>> {
        (!self.extended.is_empty()).then(|| Vec::clone(&self.extended))
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        let index = register.0.checked_sub(Register::XMM0.0).map(usize::from);
        let found = index.and_then(|index| match &self.asked {
            Some(asked) => asked.vector(index),
            None => self.registers.vectors.get(index).copied(),
        });
        found
            .map(|value| (value, Certainty::Known))
            .ok_or_else(|| Unknown::because("not a vector register"))
    }

    fn return_address(&self, slot: u64, found: u64) -> Result<u64, Unknown> {
        if !self.memory.hooks_now().leave().is(found) {
            return Ok(found);
        }
        self.memory
            .word(shadow_of(slot))
            .map_err(|_| Unknown::because("the return address is hooked, and its original is gone"))
    }

    fn original_pc(&self, pc: u64) -> u64 {
        // In `registers` hooks are already undone; other addresses may be in copies made by hooks.
        self.memory.hooks_now().original_pc(pc).unwrap_or(pc)
    }

    fn calls_to_come(&self) -> usize {
        self.stop.calls_to_come
    }

    fn hit_count(&self) -> Option<u64> {
        self.hit_count
    }
}

impl Tracee {
    pub fn registers(&self, tid: Tid) -> LiveResult<Registers> {
        if let Some((registers, _)) = self.published(tid) {
            return Ok(*registers);
        }
        let stopped = self.stopped(tid)?;
        stopped
            .registers()
            .map_err(|source| match source.raw_os_error() {
                Some(libc::ESRCH) => LiveError::NoThread(tid),
                _ => LiveError::System {
                    action: "read the registers",
                    source,
                },
            })
    }

    /// Returns a stopped thread as a machine.
    pub fn machine(&self, breakpoints: &Breakpoints, tid: Tid) -> LiveResult<LiveMachine> {
        let thread = self.threads.get(&tid).ok_or(LiveError::NoThread(tid))?;
        let hit_count = thread.hit_count;
        let mut general = self.registers(tid)?;
        general.rip = breakpoints.original_pc(self, general.rip);
        let stop = thread.stop().cloned().unwrap_or(Stop {
            number: 0,
            tid,
            reason: crate::live::model::Reason::Step,
            pc: general.rip,
            calls_to_come: thread.calls_to_come,
            displayed: Vec::new(),
        });
        if let Some((_, asked)) = self.published(tid) {
            return Ok(LiveMachine {
                stop,
                registers: AllRegisters {
                    general,
                    vectors: [[0; 16]; 16],
                },
                memory: self.memory.clone(),
                hit_count,
                asked: Some(Arc::clone(asked)),
                extended: Arc::default(),
                limit: None,
            });
        }
        let state = self.stopped(tid)?.extended_state().unwrap_or_default();
        Ok(LiveMachine {
            stop,
            registers: AllRegisters {
                general,
                vectors: vectors(&state),
            },
            memory: self.memory.clone(),
            hit_count,
            asked: None,
            extended: Arc::new(state),
            limit: None,
        })
    }
}

/// Returns a general register by its DWARF number.
pub(crate) fn general(registers: &Registers, register: Register) -> Option<u64> {
    Some(*field(&mut registers.clone(), register)?)
}

/// Returns a reference to a general register by its DWARF number.
pub(crate) fn field(registers: &mut Registers, register: Register) -> Option<&mut u64> {
    Some(match register.0 {
        0 => &mut registers.rax,
        1 => &mut registers.rdx,
        2 => &mut registers.rcx,
        3 => &mut registers.rbx,
        4 => &mut registers.rsi,
        5 => &mut registers.rdi,
        6 => &mut registers.rbp,
        7 => &mut registers.rsp,
        8 => &mut registers.r8,
        9 => &mut registers.r9,
        10 => &mut registers.r10,
        11 => &mut registers.r11,
        12 => &mut registers.r12,
        13 => &mut registers.r13,
        14 => &mut registers.r14,
        15 => &mut registers.r15,
        16 => &mut registers.rip,
        49 => &mut registers.eflags,
        50 => &mut registers.es,
        51 => &mut registers.cs,
        52 => &mut registers.ss,
        53 => &mut registers.ds,
        54 => &mut registers.fs,
        55 => &mut registers.gs,
        58 => &mut registers.fs_base,
        59 => &mut registers.gs_base,
        _ => return None,
    })
}

/// Returns a general register by its iced name.
pub(crate) fn register_value(registers: &Registers, register: iced_x86::Register) -> Option<u64> {
    use iced_x86::Register as R;
    let value = match register.full_register() {
        R::RAX => registers.rax,
        R::RDX => registers.rdx,
        R::RCX => registers.rcx,
        R::RBX => registers.rbx,
        R::RSI => registers.rsi,
        R::RDI => registers.rdi,
        R::RBP => registers.rbp,
        R::RSP => registers.rsp,
        R::R8 => registers.r8,
        R::R9 => registers.r9,
        R::R10 => registers.r10,
        R::R11 => registers.r11,
        R::R12 => registers.r12,
        R::R13 => registers.r13,
        R::R14 => registers.r14,
        R::R15 => registers.r15,
        R::RIP => registers.rip,
        _ => return None,
    };
    Some(value)
}
