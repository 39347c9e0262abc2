//! What a backtrace is made of: frames, and the registers as each of them sees them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::lines::SourceLine;
use crate::machine::{Certainty, EntryPlace, Machine, Register, Unknown};

/// How many registers a frame has: the general ones and rip.
const COUNT: usize = 17;

/// A function being executed; several share a physical frame where functions were inlined.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The next instruction of this frame: where it stopped, or where it goes on when what it called returns.
    pub pc: u64,
    /// Where in its function this frame stands is known. If not, `pc` is the function's first instruction, and neither
    /// lines nor variables can be told.
    pub pc_is_known: bool,
    /// The address to look up lines, functions and variables at: `pc`, or in a caller the address before, since a call
    /// may be the last instruction of its line or function.
    pub lookup_pc: u64,
    /// The canonical frame address: the value of rsp just before the call that entered the physical frame. `None` if
    /// nothing tells.
    pub cfa: Option<u64>,
    /// The registers as this frame sees them.
    pub registers: FrameRegisters,
    /// The function's readable name, as in [`crate::Function::name`]; where there is no debug information that of the
    /// symbol.
    pub function: Option<String>,
    /// The first instruction of the function that has the code, also for functions inlined into it.
    pub function_entry: Option<u64>,
    /// The number of the module.
    pub module: Option<u32>,
    /// The line that is executed, or the line of the call that has not returned yet.
    pub source: Option<SourceLine>,
    /// This is an inlined call: it shares the physical frame with the next frame.
    pub inlined: bool,
    /// How many inlined calls of the same physical frame lie around this one.
    pub inline_depth: usize,
    /// The function has jumped to the one of the next frame inside, and is done: nothing returns to it. It is there because
    /// only this way leads from the caller to that function.
    pub is_tail_call: bool,
    /// The kernel made this frame to call a signal handler; the next one is what the signal interrupted.
    pub is_signal: bool,
}

/// The frames of a thread, the innermost first.
#[derive(Debug, Clone, Default)]
pub struct Backtrace {
    /// The frames.
    pub frames: Vec<Frame>,
    /// Why it ends before the outermost frame, or from where on it is not certain; `None` if it is whole.
    pub end: Option<Unknown>,
}

/// The general registers and rip as one frame sees them.
#[derive(Debug, Clone)]
pub struct FrameRegisters {
    values: Values,
    /// Where in memory they lie; none do if there is no list.
    saved: Option<Arc<[Option<u64>; COUNT]>>,
}

type All = [Result<(u64, Certainty), Unknown>; COUNT];

#[derive(Debug, Clone)]
enum Values {
    All(Arc<All>),
    /// Those that have been read, which are known, and who wants to hear of others.
    Read([Option<u64>; COUNT], Wish),
}

/// Notes that registers were wanted that have not been read.
#[derive(Debug, Clone, Default)]
pub struct Wish(Arc<AtomicBool>);

impl Wish {
    /// Tells whether one of them was asked for.
    #[must_use]
    pub fn was_made(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl FrameRegisters {
    /// Makes those of a frame whose registers have not been read: it seems that nothing is known of them, and `wish` says
    /// whether that made a difference.
    #[must_use]
    pub fn unread(wish: Wish) -> FrameRegisters {
        FrameRegisters::partly(|_| None, wish)
    }

    /// Makes those of a frame of whose registers only some have been read: `read` has their values, which are known. As for
    /// the others see [`FrameRegisters::unread`].
    #[must_use]
    pub fn partly(read: impl Fn(Register) -> Option<u64>, wish: Wish) -> FrameRegisters {
        let read = |number: usize| read(Register(number as u16));
        FrameRegisters {
            values: Values::Read(std::array::from_fn(read), wish),
            saved: None,
        }
    }

    /// Reads those of the innermost frame.
    #[must_use]
    pub fn innermost(machine: &dyn Machine) -> FrameRegisters {
        let read = |number: usize| machine.register(Register(number as u16));
        FrameRegisters::of(std::array::from_fn(read), None)
    }

    /// Makes those of a frame of which nothing is known, and says why.
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

    /// The values to change them; those that have not been read are not known then.
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

    /// The same with another value in a register.
    pub(super) fn with(mut self, register: Register, value: u64) -> FrameRegisters {
        if let Some(slot) = self.values_mut().get_mut(usize::from(register.0)) {
            *slot = Ok((value, Certainty::Known));
        }
        self
    }

    /// Makes those of a caller; `saved` says where in memory the values lie.
    pub(super) fn recovered(
        values: [Result<(u64, Certainty), Unknown>; COUNT],
        saved: [Option<u64>; COUNT],
    ) -> FrameRegisters {
        FrameRegisters::of(values, Some(saved))
    }

    /// The same with another rip.
    pub(super) fn with_pc(mut self, pc: u64) -> FrameRegisters {
        if let Ok((value, _)) = &mut self.values_mut()[COUNT - 1] {
            *value = pc;
        }
        self
    }

    /// Returns a register's value.
    ///
    /// # Errors
    /// Calls do not preserve it, or it could not be read; or it is no general register.
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

    /// Returns the address at which a caller's register was saved: writing there changes what the frame will find in
    /// it. `None` if it is still in the register itself, or nowhere.
    #[must_use]
    pub fn saved_at(&self, register: Register) -> Option<u64> {
        *self.saved.as_ref()?.get(usize::from(register.0))?
    }
}

/// A machine as one frame of its thread sees it: the frame's registers, the same memory.
pub struct FrameMachine<'a> {
    machine: &'a dyn Machine,
    frame: &'a Frame,
    innermost: bool,
}

impl<'a> FrameMachine<'a> {
    /// Makes the view of `frame` on `machine`; `innermost` says that no physical frame lies inside it, so that the
    /// registers that calls do not preserve are still its own.
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
        // What was inlined shares the physical frame.
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

    fn vector_low(&self, register: Register) -> Result<([u8; 8], Certainty), Unknown> {
        match self.innermost {
            true => self.machine.vector_low(register),
            false => Err(not_preserved(register)),
        }
    }

    fn entry_parameter(&self, name: &str) -> Option<EntryPlace> {
        match self.innermost {
            true => self.machine.entry_parameter(name),
            false => None,
        }
    }
}

/// Why a register of a caller is not known.
pub(super) fn not_preserved(register: Register) -> Unknown {
    let name = register.name();
    let name = name.unwrap_or_else(|| format!("register {}", register.0));
    Unknown::because(format!(
        "{name} is not saved by the functions that were called"
    ))
}
