//! An opened recording: its events by number and by thread.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use debuginfo::{Diagnostic, SourceCopies};
use rustc_hash::FxHashMap;
use store::columns::{ReadCall, ReadEvent};
use store::control::{Control, FunctionDef};
use store::{Reader, Recording};

use crate::calls::{CallHead, Calls};
use crate::captures::Captures;
use crate::core_file::Core;
use crate::error::{Error, Result};
use crate::event::{Event, Kind};
use crate::every::Every;
use crate::heap::Heap;
use crate::logged_writes::LoggedBytes;
use crate::marks::Marks;
use crate::modules::{Loaded, Modules};
use crate::others::Others;
use crate::pack;
use crate::pauses::{Pauses, ShownBytes};
use crate::snapshots::Snapshots;

/// A recording as of its opening.
pub struct Timeline {
    pub(crate) calls: Calls,
    pub(crate) others: Others,
    pub(crate) marks: Marks,
    pub(crate) modules: Modules,
    pub(crate) snapshots: Snapshots,
    pub(crate) captures: Captures,
    pub(crate) pauses: Pauses,
    pub(crate) core: Option<Core>,
    pub(crate) every: Option<Every>,
    pub(crate) on_demand: OnDemand,
    functions: Vec<Option<FunctionDef>>,
    sources: Arc<SourceCopies>,
    reader: Arc<Reader>,
}

/// What is read when it is needed first.
#[derive(Default)]
pub(crate) struct OnDemand {
    /// Bytes that were written from outside, in the order of seq.
    written: OnceLock<Vec<ShownBytes>>,
    /// What logged writes wrote.
    pub(crate) logged_bytes: OnceLock<LoggedBytes>,
    /// Where probes of live control were set, in the order of seq.
    placed: OnceLock<Vec<Placed>>,
    heap: OnceLock<Option<Heap>>,
    logged: OnceLock<FxHashMap<u32, Vec<u64>>>,
}

/// The known facts about a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Its number.
    pub tid: u32,
    /// Its first event.
    pub first: u64,
    /// The time at which it began to end, if it did.
    pub exit: Option<u64>,
    /// Its name, where known.
    pub name: Option<String>,
}

impl Timeline {
    /// Opens the recording that `path` names. Seals its unsealed rest into a folder below `temp_dir`.
    ///
    /// # Errors
    /// The recording cannot be read, the folder cannot be written, or there are no events.
    pub fn open(path: &Path, temp_dir: &Path) -> Result<Self> {
        Self::new(Arc::new(Reader::open(path, temp_dir)?))
    }

    /// Returns the timeline of an opened recording.
    ///
    /// # Errors
    /// The recording cannot be read, or there are no events.
    pub fn new(reader: Arc<Reader>) -> Result<Self> {
        if reader.events() == 0 {
            return Err(Error::Empty);
        }
        let (recording, parts) = (reader.recording(), reader.parts());
        let calls = Calls::open(parts)?;
        let others = Others::open(parts)?;
        let marks = Marks::read(&others)?;
        let (functions, mut loads) = definitions_of(&reader)?;
        let sources = Arc::new(pack::use_copies(recording, &mut loads));
        // A position may have several events; what is mapped there is the same at all of them.
        let is_every = recording.manifest().settings.has_every_instruction();
        let modules = Modules::new(loads, (&marks, &others), is_every)?;
        let snapshots = Snapshots::open(recording, &marks, &others)?;
        Ok(Self {
            calls,
            others,
            marks,
            modules,
            snapshots,
            captures: Captures::open(parts)?,
            pauses: Pauses::open(parts)?,
            core: Core::of(recording)?,
            every: Every::of(recording),
            on_demand: OnDemand::default(),
            functions,
            sources,
            reader,
        })
    }

    /// Returns the opened recording.
    #[must_use]
    pub fn reader(&self) -> &Arc<Reader> {
        &self.reader
    }

    /// Returns the recording.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        self.reader.recording()
    }

    /// Returns whether it is a core file: one moment, for which the file's content is known.
    #[must_use]
    pub fn is_core(&self) -> bool {
        self.core.is_some()
    }

    /// Returns whether every instruction is recorded: all registers and all memory are known at each of them.
    #[must_use]
    pub fn has_every_instruction(&self) -> bool {
        self.every.is_some()
    }

    /// Returns the recording's copies of source files.
    #[must_use]
    pub fn sources(&self) -> &Arc<SourceCopies> {
        &self.sources
    }

    /// Returns the number of events; the last one has one less as its number.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.reader.events()
    }

    /// Returns the last event's number.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.events() - 1
    }

    /// Returns the time of the last event, in ns since the recording began.
    #[must_use]
    pub fn last_ts_ns(&self) -> i64 {
        self.reader.last_ts_ns()
    }

    /// Returns a function's definition.
    #[must_use]
    pub fn function(&self, id: u32) -> Option<&FunctionDef> {
        self.functions.get(id as usize)?.as_ref()
    }

    /// Returns all functions, in the order of their ids.
    pub fn functions(&self) -> impl Iterator<Item = &FunctionDef> {
        self.functions.iter().flatten()
    }

    /// Lists names of the program's global variables, not the system's, at most `limit` per module.
    #[must_use]
    pub fn global_names(&self, limit: usize) -> Vec<String> {
        debuginfo::global_names(&self.modules.space(self.last()), limit)
    }

    /// Returns the modules.
    #[must_use]
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// Returns an event.
    ///
    /// # Errors
    /// [`Error::NoEvent`], or the files cannot be read.
    pub fn event(&self, seq: u64) -> Result<Event> {
        self.check(seq)?;
        if let Some(call) = self.calls.left_at(seq)? {
            return Ok(Event::Leave(call));
        }
        if let Some(event) = self.others.event(seq)? {
            return Ok(Event::Other(Box::new(event)));
        }
        match self.calls.entered_at(seq)? {
            Some(call) => Ok(Event::Enter(call)),
            None => Err(Error::Missing { seq }),
        }
    }

    /// Returns the events of a kind, by its name in queries, in order: all of them, or those that `wanted` accepts.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn events_of(
        &self,
        kind: &str,
        wanted: Option<&dyn Fn(&ReadEvent) -> bool>,
    ) -> Result<Vec<u64>> {
        self.others.named(kind, wanted)
    }

    /// Returns the last stop of a thread.
    #[must_use]
    pub fn last_stop(&self, tid: u32) -> Option<u64> {
        self.marks.last_pause(tid, self.last())
    }

    pub(crate) fn check(&self, seq: u64) -> Result<()> {
        match seq < self.events() {
            true => Ok(()),
            false => Err(Error::NoEvent {
                seq,
                last: self.last(),
            }),
        }
    }

    /// Returns the time of an event, in ns since the recording began.
    ///
    /// # Errors
    /// As for [`Self::event`].
    pub fn ts_ns(&self, seq: u64) -> Result<i64> {
        match self.event(seq)? {
            Event::Enter(call) => Ok(self.calls.call(&call)?.ts_ns),
            Event::Leave(call) => {
                let call = self.calls.call(&call)?;
                Ok(call.ts_ns + call.dur_ns)
            }
            Event::Other(event) => Ok(event.ts_ns),
        }
    }

    /// Returns the number of instructions executed before an event, if every instruction is recorded: it is its time.
    ///
    /// # Errors
    /// As for [`Self::event`].
    pub fn position(&self, seq: u64) -> Result<u64> {
        Ok(u64::try_from(self.ts_ns(seq)?).unwrap_or(0))
    }

    /// Makes the error of a question about instructions that are not recorded.
    pub(crate) fn no_instructions(&self) -> Error {
        let what = Diagnostic::new("this recording does not have every instruction");
        Error::Target(what.with_hint("record with: hindsight record --full -- PROGRAM"))
    }

    /// Returns all captured data of a call.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn call(&self, head: &CallHead) -> Result<ReadCall> {
        self.calls.call(head)
    }

    /// Returns the enclosing call of a call.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn parent(&self, head: &CallHead) -> Result<Option<CallHead>> {
        self.calls.parent(head)
    }

    /// Finds for each of `values` the last call, of any thread, that had it in rax at its return before event `seq`, and of which
    /// `is_result` says, with rax and the value, that it is its result: a function without one leaves anything there. For a value
    /// of 32 bits, the upper half of rax may be anything. One search serves all of them; it reads the results of all calls before
    /// if one was never returned.
    ///
    /// # Errors The files cannot be read, or `is_interrupted` returned true: [`Error::Interrupted`].
    pub fn returned_before(
        &self,
        values: &[u64],
        seq: u64,
        is_result: &dyn Fn(&CallHead, u64, u64) -> bool,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Vec<Option<CallHead>>> {
        self.calls
            .returned_before(values, seq, is_result, is_interrupted)
    }

    /// Returns the call that began with event `seq`.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn entered_at(&self, seq: u64) -> Result<Option<CallHead>> {
        self.calls.entered_at(seq)
    }

    /// Returns an event that is not an enter or leave.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn other(&self, seq: u64) -> Result<Option<ReadEvent>> {
        self.others.event(seq)
    }

    /// Returns the event at which the program ended or was detached, with its number; `None` if the recording does
    /// not have it.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn end(&self) -> Result<Option<(u64, ReadEvent)>> {
        let Some(mark) = self.marks.all(Kind::End).last() else {
            return Ok(None);
        };
        let event = self.other(mark.seq)?;
        // A program that continues was not replaced.
        let is_end = |event: &ReadEvent| event.kind != "exec" || mark.seq == self.last();
        Ok(event.filter(is_end).map(|event| (mark.seq, event)))
    }

    /// Returns the bytes that were written to memory from outside.
    pub(crate) fn written(&self) -> Result<&[ShownBytes]> {
        if let Some(written) = self.on_demand.written.get() {
            return Ok(written);
        }
        let mut found = Vec::new();
        for event in self.others.events(self.marks.all(Kind::Write))? {
            if let (Some(address), Some(bytes)) = (event.addr, event.bytes) {
                found.push((event.seq, address, bytes));
            }
        }
        Ok(self.on_demand.written.get_or_init(|| found))
    }

    /// Returns the place of the thread that wrote or passed a logpoint with `event`: as it was captured, or else the only place
    /// of the probe then. `None` if the probe had several, or its place is not recorded.
    pub(crate) fn place_of_logpoint(&self, event: &ReadEvent) -> Result<Option<u64>> {
        if Kind::of_name(&event.kind) == Kind::LoggedWrite {
            return Ok(event.value.map(|pc| pc as u64));
        }
        if event.addr.is_some() {
            return Ok(event.addr);
        }
        let Some(probe) = event.probe else {
            return Ok(None);
        };
        let placed = self.placed()?;
        let before = placed.partition_point(|placed| placed.seq < event.seq);
        let of_probe = placed[..before].iter().rev();
        let last = of_probe.into_iter().find(|placed| placed.probe == probe);
        Ok(last.and_then(|placed| placed.address))
    }

    /// Returns the logpoints and logged writes with captures, by thread, in order.
    pub(crate) fn logged(&self) -> Result<&FxHashMap<u32, Vec<u64>>> {
        if let Some(logged) = self.on_demand.logged.get() {
            return Ok(logged);
        }
        let mut found: FxHashMap<u32, Vec<u64>> = FxHashMap::default();
        if self.captures.is_any() && !self.marks.all(Kind::Probe).is_empty() {
            for head in self.others.of_kind(Kind::Logpoint)? {
                if let Some(tid) = head.tid
                    && self.captures.at(head.seq)?.is_some()
                {
                    found.entry(tid).or_default().push(head.seq);
                }
            }
            for mark in self.marks.all(Kind::LoggedWrite) {
                if let Some(tid) = mark.tid
                    && self.captures.at(mark.seq)?.is_some()
                {
                    found.entry(tid).or_default().push(mark.seq);
                }
            }
            found.values_mut().for_each(|seqs| seqs.sort_unstable());
        }
        Ok(self.on_demand.logged.get_or_init(|| found))
    }

    /// Returns the blocks of the heap, if their allocation was recorded.
    pub(crate) fn heap(&self) -> Result<Option<&Heap>> {
        if self.on_demand.heap.get().is_none() {
            let heap = Heap::read(&self.calls, self.functions())?;
            self.on_demand.heap.get_or_init(|| heap);
        }
        Ok(self.on_demand.heap.get().and_then(Option::as_ref))
    }

    /// Returns where probes were set, in order.
    fn placed(&self) -> Result<&[Placed]> {
        if let Some(placed) = self.on_demand.placed.get() {
            return Ok(placed);
        }
        let mut found = Vec::new();
        for event in self.others.events(self.marks.all(Kind::Probe))? {
            if let Some(probe) = event.probe {
                found.push(Placed {
                    seq: event.seq,
                    probe,
                    address: event.addr,
                });
            }
        }
        Ok(self.on_demand.placed.get_or_init(|| found))
    }

    /// Returns whether only the entries of calls are recorded: when they end, and what they call, is not known.
    #[must_use]
    pub fn only_entries(&self) -> bool {
        self.calls.only_entries()
    }

    /// Returns the innermost recorded call of a thread that was open just after event `seq`.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn innermost(&self, tid: u32, seq: u64) -> Result<Option<CallHead>> {
        let open = self.calls.innermost(tid, seq)?;
        if self.only_entries() {
            return Ok(open);
        }
        let floor = open.map_or(0, |open| open.start);
        // With calls on several stacks, the one that ends next need not be the running one.
        let Some(left) = self.calls.last_ended(tid, seq, floor)? else {
            return Ok(open);
        };
        if left.parent == open.map(|open| open.start) {
            return Ok(open);
        }
        match self.calls.parent(&left)? {
            Some(parent) if parent.is_open_at(seq) => Ok(Some(parent)),
            _ => Ok(open),
        }
    }

    /// Returns the last event of a thread at or before `seq` and not before `floor`.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn last_of_thread(&self, tid: u32, seq: u64, floor: u64) -> Result<Option<u64>> {
        let ended = self.calls.last_ended(tid, seq, floor)?;
        let mut best = ended.and_then(|call| call.place());
        let floor = best.unwrap_or(floor);
        if let Some(open) = self.calls.innermost(tid, seq)?
            && open.start >= floor
        {
            best = Some(open.start);
        }
        let floor = best.unwrap_or(floor);
        let other = self
            .others
            .last(floor, seq, |head| head.tid == Some(tid))?
            .map(|head| head.seq);
        Ok(best.max(other))
    }

    /// Returns the first event of a thread at or after `seq`.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn first_of_thread(&self, tid: u32, seq: u64) -> Result<Option<u64>> {
        let other = self
            .others
            .first(seq, u64::MAX, |head| head.tid == Some(tid))?
            .map(|head| head.seq);
        let ceiling = other.unwrap_or(u64::MAX);
        let ended = self.calls.first_ended(tid, seq, ceiling)?;
        let mut best = ended.and_then(|call| call.place()).or(other);
        // The first call to end may have begun after `seq`, and so may its enclosing calls.
        let mut inside = match ended {
            Some(call) => Some(call),
            None => self.calls.first_unfinished(tid, seq)?,
        };
        if ended.is_none() && other.is_some() {
            // A call that begins before the other event ends after it.
            inside = self.innermost_from(tid, ceiling, seq)?.or(inside);
        }
        while let Some(call) = inside {
            if call.start < seq {
                break;
            }
            if best.is_none_or(|best| call.start < best) {
                best = Some(call.start);
            }
            inside = self.calls.parent(&call)?;
        }
        Ok(best)
    }

    fn innermost_from(&self, tid: u32, at: u64, seq: u64) -> Result<Option<CallHead>> {
        let open = self.calls.innermost(tid, at)?;
        Ok(open.filter(|call| call.start >= seq))
    }

    /// Returns the threads of the recording, in the order of their first events.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn threads(&self) -> Result<Vec<ThreadInfo>> {
        let mut threads: Vec<ThreadInfo> = Vec::new();
        for kind in [Kind::ThreadStart, Kind::Pause] {
            for mark in self.marks.all(kind) {
                let Some(tid) = mark.tid else { continue };
                match threads.iter_mut().find(|thread| thread.tid == tid) {
                    Some(thread) => thread.first = thread.first.min(mark.seq),
                    None => threads.push(ThreadInfo {
                        tid,
                        first: mark.seq,
                        exit: self.marks.last_of(Kind::ThreadExit, tid, u64::MAX),
                        name: self.thread_name(tid)?,
                    }),
                }
            }
        }
        if let Some(every) = &self.every {
            self.add_threads(every, &mut threads)?;
        }
        threads.sort_by_key(|thread| thread.first);
        Ok(threads)
    }

    /// Adds the threads that no event names.
    fn add_threads(&self, every: &Every, threads: &mut Vec<ThreadInfo>) -> Result<()> {
        for span in &every.outline()?.threads {
            let tid = span.tid.cast_unsigned();
            if threads.iter().any(|thread| thread.tid == tid) {
                continue;
            }
            let at = |position: u64| self.at_time(i64::try_from(position).unwrap_or(i64::MAX));
            threads.push(ThreadInfo {
                tid,
                first: at(span.from)?,
                exit: span.until.map(at).transpose()?,
                name: None,
            });
        }
        Ok(())
    }

    fn thread_name(&self, tid: u32) -> Result<Option<String>> {
        let start = self.marks.last_of(Kind::ThreadStart, tid, u64::MAX);
        let renamed = self.marks.last_of(Kind::ThreadName, tid, u64::MAX);
        let named = start.max(renamed);
        let event = named.map(|seq| self.others.event(seq)).transpose()?;
        Ok(event.flatten().and_then(|event| event.text))
    }
}

fn definitions_of(reader: &Reader) -> Result<(Vec<Option<FunctionDef>>, Vec<Loaded>)> {
    let (mut functions, mut loads) = (Vec::new(), Vec::new());
    reader.definitions(|control| match control {
        Control::Function(function) => {
            let at = function.id as usize;
            if at < store::control::MAX_FUNCTIONS as usize {
                if at >= functions.len() {
                    functions.resize(at + 1, None);
                }
                functions[at] = Some(function);
            }
        }
        Control::ModuleLoad {
            module,
            path,
            build_id,
            addr,
            size,
            system,
            ..
        } => loads.push(Loaded {
            number: module,
            path: path.into(),
            build_id,
            addr,
            size,
            is_system: system,
            copy: None,
            debug_dirs: vec![PathBuf::from("/usr/lib/debug")],
        }),
        _ => {}
    })?;
    Ok((functions, loads))
}

/// A probe that was set, changed or removed.
#[derive(Clone, Copy, Debug)]
struct Placed {
    seq: u64,
    probe: u32,
    /// Its place, if it has exactly one.
    address: Option<u64>,
}
