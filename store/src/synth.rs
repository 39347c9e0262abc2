//! Builds logs and recordings from a few calls, so that tests need no running program.
//!
//! ```
//! use store::synth::Synth;
//! let dir = tempfile::tempdir().unwrap();
//! let mut synth = Synth::new();
//! let f = synth.function("f");
//! synth.thread(1).enter(f, 0x7f00).output(1, b"hello").leave(0x7f00);
//! let recording = synth.record(&dir.path().join("example")).unwrap();
//! assert_eq!(recording.manifest().argv, ["synth"]);
//! ```

mod live;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use crate::clock::ClockCalibration;
use crate::control::{Control, FunctionDef, Param, ParameterPlace, ValueKind};
use crate::error::Result;
use crate::format::FORMAT_VERSION;
use crate::log::{ClosedLog, LogWriter};
use crate::manifest::{Host, Manifest, RecordingId, Settings};
use crate::recording::{Created, OnTaken, OpenRecording, Recording};
use crate::storage::Storage;
use crate::wire::{self, EnterFields, EnterForm, GapReason, INT_ARGS, Leave, Section};

pub use live::{debugged, pause};

/// Ticks from one event to the next, by default.
const STEP_TICKS: u64 = 10;
/// Return address of every synthetic call.
const RETURN_ADDR: u64 = 0x40_1234;
/// The lowest address and the end of each synthetic thread's stack, per thread.
const STACK_LEN: u64 = 0x10_0000;
const FIRST_STACK: u64 = 0x7f00_0000_0000;

/// A log under construction. Records go to the thread named last.
#[derive(Clone, Debug, Default)]
pub struct Synth {
    frames: Vec<SynthFrame>,
    rings: BTreeMap<u32, Ring>,
    current: u32,
    functions: u32,
    ticks: u64,
    ticks_set: bool,
}

/// One frame of a log.
#[derive(Clone, Debug, PartialEq)]
pub enum SynthFrame {
    /// Whole records of one thread.
    Block {
        /// Number of the ring.
        ring: u32,
        /// The use of the ring.
        tenancy: u32,
        /// The records.
        bytes: Vec<u8>,
    },
    /// A control event.
    Control(Control),
    /// A lower bound for the ticks of later frames.
    Watermark(u64),
}

#[derive(Clone, Debug, Default)]
struct Ring {
    tid: u32,
    tenancy: u32,
    block: Vec<u8>,
}

impl Synth {
    /// Returns an empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Defines a function `int name(int n)` and returns its id.
    pub fn function(&mut self, name: &str) -> u32 {
        let id = self.functions;
        let int = ValueKind::Int {
            bytes: 4,
            signed: true,
        };
        self.define(FunctionDef {
            id,
            module: 0,
            svma: 0x1000 + u64::from(id) * 0x40,
            size: 0x40,
            name: name.into(),
            linkage: name.into(),
            file: Some("synth.c".into()),
            line: Some(id + 1),
            params: vec![Param::in_one_place(
                "n",
                int.clone(),
                ParameterPlace::Int(0),
            )],
            ret: int,
            params_known: true,
            ret_place: None,
        })
    }

    /// Defines a function with all fields as given and returns its id.
    pub fn define(&mut self, function: FunctionDef) -> u32 {
        let id = function.id;
        self.functions = self.functions.max(id + 1);
        self.frames
            .push(SynthFrame::Control(Control::Function(function)));
        id
    }

    /// Continues with thread `tid`; the first time it gets the next free ring and a THREAD record.
    pub fn thread(&mut self, tid: u32) -> &mut Self {
        let known = self.rings.iter().find(|(_, ring)| ring.tid == tid);
        match known.map(|(number, _)| *number) {
            Some(number) => self.current = number,
            None => {
                let number = self.rings.len() as u32;
                self.thread_on(tid, number);
            }
        }
        self
    }

    /// Continues with the new thread `tid` on a ring that another thread may have used before.
    pub fn thread_on(&mut self, tid: u32, ring: u32) -> &mut Self {
        self.flush();
        self.current = ring;
        let used = self.rings.get(&ring).map(|ring| ring.tenancy + 1);
        let tenancy = used.unwrap_or(0);
        let block = Vec::new();
        self.rings.insert(
            ring,
            Ring {
                tid,
                tenancy,
                block,
            },
        );
        let low = FIRST_STACK + u64::from(ring) * STACK_LEN;
        let name = format!("synth-{tid}");
        self.record_with(|block, ticks| {
            wire::push_thread(block, ticks, tid, (low, low + STACK_LEN), name.as_bytes());
        })
    }

    /// Sets the time of the next event to `ticks` since the clock base; otherwise it comes 10 after the last one.
    pub fn at(&mut self, ticks: u64) -> &mut Self {
        self.ticks = ticks;
        self.ticks_set = true;
        self
    }

    /// Enters function `id`, with the return address at `slot`, rdi = `slot` and the other arguments 0.
    pub fn enter(&mut self, id: u32, slot: u64) -> &mut Self {
        self.enter_full(&enter(id, slot, EnterForm::Hooked))
    }

    /// Enters function `id` by a tail call.
    pub fn enter_tail(&mut self, id: u32, slot: u64) -> &mut Self {
        self.enter_full(&enter(id, slot, EnterForm::Tail))
    }

    /// Enters function `id`, whose return is not hooked.
    pub fn enter_noleave(&mut self, id: u32, slot: u64) -> &mut Self {
        self.enter_full(&enter(id, slot, EnterForm::NoLeave))
    }

    /// Enters function `id`, with no other data.
    pub fn enter_only(&mut self, id: u32, slot: u64) -> &mut Self {
        self.enter_full(&enter(id, slot, EnterForm::Only))
    }

    /// Enters a function with all fields as given.
    pub fn enter_full(&mut self, fields: &EnterFields<'_>) -> &mut Self {
        self.record_with(|block, ticks| wire::push_enter(block, ticks, fields))
    }

    /// Leaves the function at `slot` with rax = 0.
    pub fn leave(&mut self, slot: u64) -> &mut Self {
        self.leave_value(slot, 0)
    }

    /// Leaves the function at `slot` with `rax`.
    pub fn leave_value(&mut self, slot: u64, rax: u64) -> &mut Self {
        self.leave_full(&Leave {
            slot,
            rax,
            rdx: 0,
            xmm: None,
        })
    }

    /// Leaves a function with all fields as given.
    pub fn leave_full(&mut self, leave: &Leave) -> &mut Self {
        self.record_with(|block, ticks| wire::push_leave(block, ticks, leave))
    }

    /// Writes `bytes` to descriptor `fd`.
    pub fn output(&mut self, fd: u8, bytes: &[u8]) -> &mut Self {
        self.record_with(|block, ticks| wire::push_output(block, ticks, fd, bytes))
    }

    /// Loses records.
    pub fn gap(&mut self, lost: u64, reason: GapReason) -> &mut Self {
        self.record_with(|block, ticks| wire::push_gap(block, ticks, lost, reason))
    }

    /// Forks.
    pub fn fork(&mut self, child_pid: u32) -> &mut Self {
        self.record_with(|block, ticks| wire::push_fork(block, ticks, child_pid))
    }

    /// Runs another program.
    pub fn exec(&mut self, path: &str) -> &mut Self {
        self.record_with(|block, ticks| wire::push_exec(block, ticks, path.as_bytes()))
    }

    /// Makes the system call `number` at the stack pointer `stack`, with `args` and the memory that they point to.
    pub fn syscall(
        &mut self,
        number: u64,
        args: [u64; INT_ARGS],
        stack: u64,
        memory: &[Section<'_>],
    ) -> &mut Self {
        self.record_with(|block, ticks| {
            wire::push_syscall(block, ticks, (number, args), (RETURN_ADDR, stack), memory);
        })
    }

    /// Returns `result` from the system call at `stack`, with what the kernel has written.
    pub fn syscall_end(&mut self, result: i64, stack: u64, memory: &[Section<'_>]) -> &mut Self {
        self.record_with(|block, ticks| {
            wire::push_syscall_end(block, ticks, result as u64, stack, memory);
        })
    }

    /// The unwinder or `longjmp` resumes the program at the stack pointer `stack`.
    pub fn frames_left(&mut self, stack: u64) -> &mut Self {
        self.record_with(|block, ticks| wire::push_frames_left(block, ticks, stack))
    }

    /// The thread leaves the stack with the stack pointer `from` for the one at `to`.
    pub fn stack_switch(&mut self, from: u64, to: Option<Range<u64>>) -> &mut Self {
        self.record_with(|block, ticks| wire::push_stack_switch(block, ticks, from, to))
    }

    /// The thread has waited since `since`, in ticks, for room in its ring.
    pub fn ring_wait(&mut self, since: u64) -> &mut Self {
        self.record_with(|block, ticks| wire::push_ring_wait(block, ticks, since))
    }

    /// Ends the thread.
    pub fn thread_exit(&mut self) -> &mut Self {
        let tid = self.ring().tid;
        self.record_with(|block, ticks| wire::push_thread_exit(block, ticks, tid))
    }

    /// Appends raw bytes to the thread's block, for torn and unknown records.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.ring().block.extend_from_slice(bytes);
        self
    }

    /// Appends a control event; an event (not a definition) comes after all records so far.
    pub fn control(&mut self, control: Control) -> &mut Self {
        if let Some(ticks) = control.ticks() {
            self.flush();
            self.ticks = self.ticks.max(ticks);
        }
        self.frames.push(SynthFrame::Control(control));
        self
    }

    /// Ends all blocks, with a watermark at the ticks of the next event.
    pub fn watermark(&mut self) -> &mut Self {
        let ticks = self.next_ticks();
        self.at(ticks).watermark_at(ticks)
    }

    /// Ends all blocks, with a watermark at `ticks`, which need not be true.
    pub fn watermark_at(&mut self, ticks: u64) -> &mut Self {
        self.flush();
        self.frames.push(SynthFrame::Watermark(ticks));
        self
    }

    /// Ends the blocks of all threads, in the order of their rings: later records go to new ones.
    pub fn flush(&mut self) -> &mut Self {
        for (number, ring) in &mut self.rings {
            if !ring.block.is_empty() {
                self.frames.push(SynthFrame::Block {
                    ring: *number,
                    tenancy: ring.tenancy,
                    bytes: std::mem::take(&mut ring.block),
                });
            }
        }
        self
    }

    /// Returns the ticks of the last event.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Returns the log's frames in order.
    pub fn frames(&self) -> Vec<SynthFrame> {
        let mut whole = self.clone();
        whole.flush();
        whole.frames
    }

    /// Appends all frames to a log.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn append_to<S: Storage>(&self, log: &mut LogWriter<S>) -> Result<()> {
        self.frames()
            .iter()
            .try_for_each(|frame| append_frame(log, frame))
    }

    /// Writes the log into the empty folder `dir` and closes it.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_log(&self, dir: &Path) -> Result<ClosedLog> {
        let mut log = LogWriter::create(dir, RECORDING_ID)?;
        self.append_to(&mut log)?;
        log.close()
    }

    /// Makes a recording that is closed cleanly; its columns are not sealed.
    ///
    /// # Errors
    /// Those of [`OpenRecording::create`] and of the writer.
    pub fn record(&self, path: &Path) -> Result<Recording> {
        let Created { open, mut log } = OpenRecording::create(path, OnTaken::Refuse, manifest())?;
        self.append_to(&mut log)?;
        open.close(log.close()?)
    }

    /// Makes a recording whose recorder died without closing it.
    ///
    /// # Errors
    /// As for [`Self::record`].
    pub fn record_interrupted(&self, path: &Path) -> Result<Recording> {
        let Created { open, mut log } = OpenRecording::create(path, OnTaken::Refuse, manifest())?;
        self.append_to(&mut log)?;
        let dir = open.recording().dir().to_path_buf();
        drop((open, log));
        Recording::open(&dir)
    }

    fn record_with(&mut self, push: impl FnOnce(&mut Vec<u8>, u64)) -> &mut Self {
        self.ticks = self.next_ticks();
        self.ticks_set = false;
        let ticks = self.ticks;
        push(&mut self.ring().block, ticks);
        self
    }

    fn next_ticks(&self) -> u64 {
        match self.ticks_set {
            true => self.ticks,
            false => self.ticks + STEP_TICKS,
        }
    }

    fn ring(&mut self) -> &mut Ring {
        let current = self.current;
        self.rings
            .get_mut(&current)
            .expect("name a thread before its records")
    }
}

/// The id of every synthetic recording.
pub const RECORDING_ID: RecordingId = RecordingId(*b"synthetic record");

/// Returns the manifest of synthetic recordings: one tick is one nanosecond.
pub fn manifest() -> Manifest {
    Manifest {
        format_version: FORMAT_VERSION,
        recording_id: RECORDING_ID,
        hindsight_version: "0.0.0".into(),
        frida_version: None,
        host: Host::default(),
        argv: vec!["synth".into()],
        cwd: "/".into(),
        start_unix_ns: 1_700_000_000_000_000_000,
        start_monotonic_ns: None,
        clock: ClockCalibration {
            tsc_hz: 1e9,
            tsc_base: 0,
        },
        settings: Settings::default(),
        launch: None,
        labels: BTreeMap::new(),
        run_of: None,
        lineage: None,
    }
}

/// Appends one frame to a log.
///
/// # Errors
/// Those of the writer.
pub fn append_frame<S: Storage>(log: &mut LogWriter<S>, frame: &SynthFrame) -> Result<()> {
    match frame {
        SynthFrame::Block {
            ring,
            tenancy,
            bytes,
        } => log.append_block(*ring, *tenancy, [bytes, &[]]),
        SynthFrame::Control(control) => log.append_control(control),
        SynthFrame::Watermark(ticks) => log.append_watermark(*ticks),
    }
}

fn enter(function_id: u32, slot: u64, form: EnterForm) -> EnterFields<'static> {
    EnterFields {
        form,
        function_id,
        slot,
        return_addr: RETURN_ADDR,
        args: [slot, 0, 0, 0, 0, 0],
        xmm: &[],
    }
}
