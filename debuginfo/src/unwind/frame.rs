//! The elements of a backtrace: frames, and each frame's view of the registers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::lines::SourceLine;
use crate::machine::{Certainty, EntryPlace, Machine, Register, Unknown};

/// The number of registers in a frame: the general ones and rip.
const COUNT: usize = 17;

/// A function being executed. Inlined functions share a physical frame.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The next instruction of this frame: where it stopped, or where it resumes when its callee returns.
    pub pc: u64,
    /// The position in the function is known. If not, `pc` is the function's first instruction, and neither lines nor
    /// variables are known.
    pub pc_is_known: bool,
    /// The address at which lines, functions and variables are looked up: `pc` or, in a caller, the address before it,
    /// since a call may be the last instruction of its line or function.
    pub lookup_pc: u64,
    /// The CFA: the value of rsp just before the call that entered the physical frame. `None` if it is unknown.
    pub cfa: Option<u64>,
    /// This frame's view of the registers.
    pub registers: FrameRegisters,
    /// The function's readable name, as in [`crate::Function::name`], or that of the symbol if there is no debug
    /// information.
    pub function: Option<String>,
    /// The first instruction of the function with code, also for functions inlined into it.
    pub function_entry: Option<u64>,
    /// The number of the module.
    pub module: Option<u32>,
    /// The current line, or the line of the call that has not returned yet.
    pub source: Option<SourceLine>,
    /// This is an inlined call. It shares the physical frame with the next frame.
    pub inlined: bool,
    /// The number of inlined calls of the same physical frame around this one.
    pub inline_depth: usize,
    /// The function has made a tail call to the function of the next inner frame and is finished; nothing returns to
    /// it. It is listed because it is the only path from the caller to that function.
    pub is_tail_call: bool,
    /// The kernel made this frame to call a signal handler. The next frame is the code that the signal interrupted.
    pub is_signal: bool,
}

/// The frames of a thread, innermost first.
#[derive(Debug, Clone, Default)]
pub struct Backtrace {
    /// The frames.
    pub frames: Vec<Frame>,
    /// Why it ends before the outermost frame, or from where it is uncertain. `None` if it is complete.
    pub end: Option<Unknown>,
}

/// One frame's view of the general registers and rip.
#[derive(Debug, Clone)]
pub struct FrameRegisters {
    values: Values,
    /// Where the registers are stored in memory. Without a list, none are.
    saved: Option<Arc<[Option<u64>; COUNT]>>,
}

type All = [Result<(u64, Certainty), Unknown>; COUNT];

#[derive(Debug, Clone)]
enum Values {
    All(Arc<All>),
    /// The registers that have been read, which are known, and a flag to set if others are needed.
    Read([Option<u64>; COUNT], Wish),
}

/// Records that a register was needed that has not been read.
#[derive(Debug, Clone, Default)]
pub struct Wish(Arc<AtomicBool>);

impl Wish {
    /// Returns whether such a register was needed.
    #[must_use]
    pub fn was_made(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl FrameRegisters {
    /// Makes the registers of a frame that have not been read. They appear as unknown, and `wish` records whether that
    /// mattered.
    #[must_use]
    pub fn unread(wish: Wish) -> FrameRegisters {
        FrameRegisters::partly(|_| None, wish)
    }

    /// Makes the registers of a frame of which only some have been read. `read` returns their values, which are known.
    /// The others behave as in [`FrameRegisters::unread`].
    #[must_use]
    pub fn partly(read: impl Fn(Register) -> Option<u64>, wish: Wish) -> FrameRegisters {
        let read = |number: usize| read(Register(number as u16));
        FrameRegisters {
            values: Values::Read(std::array::from_fn(read), wish),
            saved: None,
        }
    }

    /// Reads the registers of the innermost frame.
    #[must_use]
    pub fn innermost(machine: &dyn Machine) -> FrameRegisters {
        let read = |number: usize| machine.register(Register(number as u16));
        FrameRegisters::of(std::array::from_fn(read), None)
    }

    /// Makes the registers of a frame of which none is known, with the reason.
    #[must_use]
    pub fn none(why: &Unknown) -> FrameRegisters {
        FrameRegisters::of(std::array::from_fn(|_| Err(why.clone())), None)
    }

    fn of(values: All, saved: Option<[Option<u64>; COUNT]>) -> FrameRegisters {
        FrameRegisters {
            values: Values::All(Arc::new(values)),
            saved: saved.map(Arc::new),
        }
    }

    /// Returns the values for modification. Registers that have not been read are unknown from then on.
    fn values_mut(&mut self) -> &mut All {
        if let Values::Read(..) = self.values {
            let value = |number: usize| self.get(Register(number as u16));
            self.values = Values::All(Arc::new(std::array::from_fn(value)));
        }
        match &mut self.values {
            Values::All(values) => Arc::make_mut(values),
            Values::Read(..) => unreachable!("they were replaced"),
        }
    }

    pub(super) fn with(mut self, register: Register, value: u64) -> FrameRegisters {
        if let Some(slot) = self.values_mut().get_mut(usize::from(register.0)) {
            *slot = Ok((value, Certainty::Known));
        }
        self
    }

    /// Makes the registers of a caller. `saved` states where in memory they are stored.
    pub(super) fn recovered(
        values: [Result<(u64, Certainty), Unknown>; COUNT],
        saved: [Option<u64>; COUNT],
    ) -> FrameRegisters {
        FrameRegisters::of(values, Some(saved))
    }

    pub(super) fn with_pc(mut self, pc: u64) -> FrameRegisters {
        if let Ok((value, _)) = &mut self.values_mut()[COUNT - 1] {
            *value = pc;
        }
        self
    }

    /// Returns a register's value.
    ///
    /// # Errors
    /// The register is not preserved by calls, could not be read, or is not a general register.
    pub fn get(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        let number = usize::from(register.0);
        if number >= COUNT {
            return Err(Unknown::because("it is not a general register"));
        }
        match &self.values {
            Values::All(values) => values[number].clone(),
            Values::Read(values, Wish(is_made)) => match values[number] {
                Some(value) => Ok((value, Certainty::Known)),
                None => {
                    is_made.store(true, Ordering::Relaxed);
                    Err(Unknown::because("it was not read"))
                }
            },
        }
    }

    /// Returns the address at which a caller's register was saved. Writing to it changes the frame's value. Returns
    /// `None` if the value is still in the register itself, or nowhere.
    #[must_use]
    pub fn saved_at(&self, register: Register) -> Option<u64> {
        *self.saved.as_ref()?.get(usize::from(register.0))?
    }
}

/// One frame's view of a machine: the frame's registers and the same memory.
pub struct FrameMachine<'a> {
    machine: &'a dyn Machine,
    frame: &'a Frame,
    innermost: bool,
}

impl<'a> FrameMachine<'a> {
    /// Makes the view of `frame` on `machine`. `innermost`: there is no physical frame inside it, so its caller-saved
    /// registers are still its own.
    #[must_use]
    pub fn new(machine: &'a dyn Machine, frame: &'a Frame, innermost: bool) -> FrameMachine<'a> {
        FrameMachine {
            machine,
            frame,
            innermost,
        }
    }

    /// Makes the view of frame `index` of `frames`.
    ///
    /// # Panics
    /// There is no such frame.
    #[must_use]
    pub fn of(machine: &'a dyn Machine, frames: &'a [Frame], index: usize) -> FrameMachine<'a> {
        assert!(index < frames.len(), "frame {index} of {}", frames.len());
        // Inlined calls share the physical frame.
        let innermost = frames[..index].iter().all(|f| f.inlined);
        FrameMachine::new(machine, &frames[index], innermost)
    }

    /// The frame.
    #[must_use]
    pub fn frame(&self) -> &'a Frame {
        self.frame
    }
}

impl Machine for FrameMachine<'_> {
    fn behind(&self) -> Option<&dyn Machine> {
        Some(self.machine)
    }

    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        self.machine.memory(address, bytes)
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        match register {
            Register(0..=16) => self.frame.registers.get(register),
            Register::FS_BASE | Register::GS_BASE => self.machine.register(register),
            _ if self.innermost => self.machine.register(register),
            _ => Err(not_preserved(register)),
        }
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        match self.innermost {
            true => self.machine.vector(register),
            false => Err(not_preserved(register)),
        }
    }

    fn extended(&self) -> Option<Vec<u8>> {
        self.innermost.then(|| self.machine.extended())?
    }

    fn vector_low(&self, register: Register) -> Result<([u8; 8], Certainty), Unknown> {
        match self.innermost {
            true => self.machine.vector_low(register),
            false => Err(not_preserved(register)),
        }
    }

    fn is_before_frame(&self, event: u64) -> bool {
        // When the frames around the innermost one began is not known.
        self.innermost && self.machine.is_before_frame(event)
    }

    fn entry_parameter(&self, name: &str) -> Option<EntryPlace> {
        match self.innermost {
            true => self.machine.entry_parameter(name),
            false => None,
        }
    }
}

/// Why a register of a caller is unknown.
pub(super) fn not_preserved(register: Register) -> Unknown {
    let name = register.name();
    let name = name.unwrap_or_else(|| format!("register {}", register.0));
    Unknown::because(format!(
        "{name} is not saved by the functions that were called"
    ))
}
