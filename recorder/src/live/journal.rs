//! Records what happens to the program: each stop, resume and change becomes an event of the recording.
//!
//! An event is sent before its thread resumes: in the recording it comes before anything the thread records next
//! (`drain/log.rs`).

use std::sync::{
    Arc,
    atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Acquire, Release},
    },
};

use agent::shared::Shared;
use crossbeam::channel::Sender;
use debuginfo::AddressSpace;
use store::control::{
    ByteBuf, Control, Exception, ExceptionPhase, LiveProbe, MAX_STACK_LEN, Pause, PauseReason,
    ProbeKind, ProbePlace, SavedRegisters, Watched, Write,
};

use crate::{
    clock,
    live::{
        error::LiveError,
        model::{Action, Displayed, Location, Motion, ProbeState, ProbeView, Reason, Tid},
        tracee::{
            Tracee,
            machine::{LiveMachine, RED_ZONE},
            memory::LiveMemory,
        },
    },
    stop::Registers,
};

/// Number of events for which the recorder is woken once, if there are very many.
const TOGETHER: u64 = 64;

/// The sender of events to the log.
#[derive(Clone)]
pub(crate) struct Journal {
    log: Sender<Control>,
    counts: Arc<Counts>,
    recorder: Arc<Shared>,
}

/// What a stop is recorded with.
pub(crate) struct Paused<'a> {
    pub reason: &'a Reason,
    pub machine: Option<LiveMachine>,
    /// The address of the watchpoint that it is about.
    pub watched_at: Option<u64>,
    pub displayed: &'a [Displayed],
}

/// The number of events sent, and the number already in the log.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    sent: AtomicU64,
    written: AtomicU64,
    /// No thread of the program runs: the rings do not change.
    is_standing: AtomicBool,
}

impl Counts {
    /// Counts an event that is now in the log.
    pub fn written(&self) {
        self.written.fetch_add(1, Release);
    }

    pub fn is_standing(&self) -> bool {
        self.is_standing.load(Acquire)
    }
}

impl Journal {
    /// Creates a journal. `recorder` sleeps while there is nothing to write.
    pub fn new(log: Sender<Control>, recorder: Arc<Shared>) -> Self {
        Self {
            log,
            counts: Arc::default(),
            recorder,
        }
    }

    /// Makes the recorder check for work.
    pub fn wake_recorder(&self) {
        self.recorder.wake();
    }

    pub fn set_standing(&self, is_standing: bool) {
        let was_standing = self.counts.is_standing();
        if was_standing != is_standing {
            self.counts.is_standing.store(is_standing, Release);
            // The recorder sleeps without a timeout while all threads are stopped.
            self.wake_recorder();
        }
    }

    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    pub fn sent(&self) -> u64 {
        self.counts.sent.load(Acquire)
    }

    pub fn written(&self) -> u64 {
        self.counts.written.load(Acquire)
    }

    /// Sends an event. Once the recording is closed, the event is dropped without an error.
    pub fn send(&self, control: Control) {
        self.counts.sent.fetch_add(1, Release);
        let _ = self.log.send(control);
        self.wake_recorder();
    }

    /// Sends one of very many events: the recorder is woken for a number of them together. If it wakes earlier, it takes them
    /// first, and so does a thread that waits for it.
    pub fn send_one_of_many(&self, control: Control) {
        let sent = self.counts.sent.fetch_add(1, Release);
        let _ = self.log.send(control);
        if sent.is_multiple_of(TOGETHER) {
            self.wake_recorder();
        }
    }

    /// Records an internal error.
    pub fn log_panic(&self, error: &LiveError) {
        self.send(Control::Warning {
            ticks: clock::ticks(),
            message: error.one_line(),
        });
    }

    pub fn pause(
        &self,
        tracee: &Tracee,
        tid: Tid,
        paused: Paused<'_>,
        (pc, calls_to_come): (u64, usize),
    ) {
        let Paused {
            reason,
            machine,
            watched_at,
            displayed,
        } = paused;
        let space = tracee.space_now();
        let (probe, hits, watched) = about(reason, watched_at);
        let place = space.standing(pc, calls_to_come);
        let source = place.source.as_ref();
        let sp = machine
            .as_ref()
            .map_or(0, |machine| machine.registers.general.rsp);
        let (stack_addr, stack) = read_stack(&tracee.memory, sp, MAX_STACK_LEN);
        let values = displayed
            .iter()
            .map(|shown| (shown.display.expression.clone(), shown.value.clone()))
            .collect();
        self.send(Control::Pause(Box::new(Pause {
            ticks: clock::ticks(),
            tid: tid as u32,
            reason: reason_kind(reason),
            probe,
            hits,
            pc,
            function: place.function.map(|name| name.to_string()),
            file: source.map(|source| source.file.to_string()),
            line: source.map(|source| source.line),
            registers: machine.map(|machine| SavedRegisters {
                general: words(&machine.registers.general),
                vectors: machine.registers.vectors,
            }),
            stack_addr,
            stack: ByteBuf::from(stack),
            values,
            watched,
        })));
    }

    pub fn resume(&self, tid: Tid, motion: &Motion) {
        let action = match motion {
            Motion::Continue => "continue".to_owned(),
            Motion::Next => "next".to_owned(),
            Motion::Step => "step".to_owned(),
            Motion::Instruction => "step instruction".to_owned(),
            Motion::NextInstruction => "next instruction".to_owned(),
            Motion::Finish { frame } => format!("finish {frame}"),
            Motion::Past => "until".to_owned(),
            Motion::Until { place, deeper, .. } => match deeper {
                true => format!("advance {place}"),
                false => format!("until {place}"),
            },
        };
        self.send(Control::Resume {
            ticks: clock::ticks(),
            tid: tid as u32,
            action,
        });
    }

    /// Records that every instruction of a stopped thread is recorded from here on.
    pub fn records(&self, tid: Tid) {
        self.send(Control::Resume {
            ticks: clock::ticks(),
            tid: tid as u32,
            action: "full".to_owned(),
        });
    }

    /// Records that a stopped thread runs a function for the user. The thread is at the same place afterwards.
    pub fn call(&self, tid: Tid, function: u64) {
        self.send(Control::Resume {
            ticks: clock::ticks(),
            tid: tid as u32,
            action: format!("call {function:#x}"),
        });
    }

    pub fn write(
        &self,
        tid: Tid,
        target: &str,
        place: WrittenPlace,
        old: Option<Vec<u8>>,
        new: Vec<u8>,
    ) {
        let (addr, register) = match place {
            WrittenPlace::Memory(addr) => (Some(addr), None),
            WrittenPlace::Register(name) => (None, Some(name)),
        };
        self.send(Control::Write(Write {
            ticks: clock::ticks(),
            tid: tid as u32,
            target: target.to_owned(),
            addr,
            register,
            old: old.map(ByteBuf::from),
            new: ByteBuf::from(new),
            by: "user".to_owned(),
        }));
    }

    pub fn exception(
        &self,
        tid: Tid,
        signal: Option<i32>,
        type_name: Option<String>,
        is_unhandled: bool,
        addr: Option<u64>,
        message: Option<String>,
    ) {
        let phase = if is_unhandled {
            ExceptionPhase::Unhandled
        } else {
            ExceptionPhase::FirstChance
        };
        self.send(Control::Exception(Exception {
            ticks: clock::ticks(),
            tid: tid as u32,
            signal,
            type_name,
            phase,
            addr,
            message,
        }));
    }

    pub fn probe(&self, space: &AddressSpace, view: &ProbeView) {
        self.send(Control::Probe(described(clock::ticks(), space, view)));
    }
}

/// Describes a probe as it is at a time.
pub(crate) fn described(ticks: u64, space: &AddressSpace, view: &ProbeView) -> LiveProbe {
    let places = view.places.iter().map(|place| {
        let module = space.at(place.address);
        ProbePlace {
            addr: place.address,
            module: module.map(|module| module.number),
            svma: module.map(|module| module.svma(place.address).0),
            function: place.function.clone(),
            file: place.file.clone(),
            line: place.line,
        }
    });
    let (kind, action) = match (&view.spec.location, &view.spec.action) {
        (_, Action::Log(message)) => (ProbeKind::Logpoint, message.source().to_owned()),
        (_, Action::LogWrites) => (ProbeKind::Watchpoint, "log writes".to_owned()),
        (Location::Memory { .. }, _) => (ProbeKind::Watchpoint, "stop".to_owned()),
        (
            Location::Throw { .. } | Location::Panic | Location::Signal(_) | Location::Event(_),
            _,
        ) => (ProbeKind::Catch, "stop".to_owned()),
        (_, Action::Break { all_threads, .. }) => {
            let action = if *all_threads {
                "stop all threads"
            } else {
                "stop"
            };
            (ProbeKind::Breakpoint, action.to_owned())
        }
    };
    LiveProbe {
        ticks,
        id: view.id,
        kind,
        location: view.spec.location.to_string(),
        condition: view.spec.condition_text(),
        hit_count: view.spec.hit_count,
        action,
        state: match view.state {
            ProbeState::Pending => store::control::ProbeState::Pending,
            ProbeState::Bound => store::control::ProbeState::Bound,
            ProbeState::Disabled => store::control::ProbeState::Disabled,
        },
        places: places.collect(),
    }
}

/// Reads at most `len` bytes of the stack, starting with the red zone, where leaf functions keep their variables.
pub(crate) fn read_stack(memory: &LiveMemory, sp: u64, len: usize) -> (u64, Vec<u8>) {
    let read = |at: u64| (at, memory.read_stack(at, len));
    match (sp, len) {
        (0, _) | (_, 0) => (0, Vec::new()),
        // The red zone may begin on a page that does not exist yet.
        (sp, _) => match read(sp.saturating_sub(RED_ZONE)) {
            (_, bytes) if bytes.is_empty() => read(sp),
            found => found,
        },
    }
}

/// The target of a write.
pub(crate) enum WrittenPlace {
    Memory(u64),
    Register(String),
}

fn about(reason: &Reason, watched_at: Option<u64>) -> (Option<u32>, Option<u64>, Option<Watched>) {
    match reason {
        Reason::Breakpoint { probe, hits } => (Some(*probe), Some(*hits), None),
        Reason::Watch {
            probe, old, new, ..
        } => {
            let watched = watched_at.map(|addr| Watched {
                addr,
                old: Some(ByteBuf::from(old.clone())),
                new: Some(ByteBuf::from(new.clone())),
            });
            (Some(*probe), None, watched)
        }
        Reason::Throw { probe, .. } => (Some(*probe), None, None),
        Reason::Happened { probe, hits, .. } => (Some(*probe), Some(*hits), None),
        Reason::Signal { probe, .. } => (*probe, None, None),
        Reason::Entry | Reason::Step | Reason::User | Reason::AllThreads => (None, None, None),
    }
}

fn reason_kind(reason: &Reason) -> PauseReason {
    match reason {
        Reason::Entry => PauseReason::Entry,
        Reason::Breakpoint { .. } | Reason::Happened { .. } => PauseReason::Breakpoint,
        Reason::Watch { .. } => PauseReason::Watch,
        Reason::Step => PauseReason::Step,
        Reason::User => PauseReason::User,
        Reason::Signal { .. } => PauseReason::Signal,
        Reason::Throw { .. } => PauseReason::Exception,
        Reason::AllThreads => PauseReason::AllThreads,
    }
}

/// In the kernel's order (struct user_regs_struct).
fn words(r: &Registers) -> [u64; store::control::GENERAL_REGISTERS] {
    [
        r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11, r.r10, r.r9, r.r8, r.rax, r.rcx, r.rdx,
        r.rsi, r.rdi, r.orig_rax, r.rip, r.cs, r.eflags, r.rsp, r.ss, r.fs_base, r.gs_base, r.ds,
        r.es, r.fs, r.gs,
    ]
}
