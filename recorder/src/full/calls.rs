//! The calls of a program of which every instruction is recorded: found by running it once more, and written as threads write
//! them in other recordings.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use debuginfo::{Held, Module, Register, Svma};
use exact::{Became, Hints, Hook, Leaver, Region, Switcher, ThreadSpan, Traced};
use store::{
    control::{Control, Exception, ExceptionPhase, FunctionDef},
    log::LogWriter,
    wire::{
        EnterFields, EnterForm, Leave, Section, WORD_LEN, push_enter, push_exec, push_fork,
        push_frames_left, push_leave, push_output, push_stack_switch, push_syscall,
        push_syscall_end, push_thread, push_thread_exit,
    },
};

use super::{modules::FoundModule, probing::InOrder};
use crate::{
    Observer, Result,
    arm::{Candidate, Filter, Place, candidates},
};

/// Bytes of records of all threads that are gathered before they are written.
const GATHERED: usize = 1 << 20;
/// xmm registers that carry arguments (System V ABI, 3.2.3).
const MOST_VECTORS: u8 = 8;
/// The bits of an address that a record has room for.
const RETURN_BITS: u64 = (1 << 48) - 1;
/// About so many bytes has a record.
const RECORD_LEN: usize = 64;
/// No tenancy but the first: each thread has a ring of its own.
const TENANCY: u32 = 0;

/// The functions whose calls are recorded.
#[derive(Debug, Default)]
pub(super) struct Functions {
    /// Their definitions; the index is the id.
    pub definitions: Vec<FunctionDef>,
    /// Their addresses in the process, each once.
    entries: Vec<u64>,
    /// What was at each of these addresses, in the order of time.
    placed: Vec<Vec<Placed>>,
    /// Words of xmm registers at entries.
    vectors: Vec<u8>,
    /// Whether results may be in such registers.
    wide: Vec<bool>,
    /// Where frames are left without a return, and stacks for other ones.
    hints: Hints,
}

/// A function that is at an address as long as its module is mapped there.
#[derive(Debug)]
struct Placed {
    /// How many instructions had been executed before it was mapped.
    from: u64,
    /// The same of its end.
    until: Option<u64>,
    /// The index of its definition.
    function: usize,
}

impl Placed {
    fn is_there(&self, position: u64) -> bool {
        self.from <= position && self.until.is_none_or(|until| position < until)
    }
}

impl Functions {
    /// Their addresses.
    pub fn entries(&self) -> &[u64] {
        &self.entries
    }

    /// Where they are found, and what is wanted there.
    fn hooks(&self) -> impl Iterator<Item = Hook> {
        let all = self.entries.iter().zip(&self.placed);
        all.map(|(address, placed)| {
            let vectors = placed.iter().map(|placed| self.vectors[placed.function]);
            Hook {
                address: *address,
                vectors: vectors.max().unwrap_or(0).min(MOST_VECTORS),
            }
        })
    }

    /// Returns the function that an entry was of: a library may be mapped where another one was before.
    fn at(&self, entry: usize, position: u64) -> Option<usize> {
        let placed = &self.placed[entry];
        let after = placed.partition_point(|placed| placed.from <= position);
        let last = placed[..after].last()?;
        last.is_there(position).then_some(last.function)
    }

    /// Adds a function of a module, unless another one is at the address at that time: one copy of code has one name.
    fn place(&mut self, entry: usize, modules: &[FoundModule], added: Added) {
        let module = &modules[added.module];
        let is_taken = |placed: &Placed| placed.until.is_none_or(|until| module.from < until);
        if self.placed[entry].last().is_some_and(is_taken) {
            return;
        }
        let is_same = |placed: &&Placed| {
            let known = &self.definitions[placed.function];
            known.svma == added.candidate.def.svma
                && modules[known.module as usize].path == module.path
        };
        let known = self.placed[entry].iter().find(is_same);
        let function = known.map_or(self.definitions.len(), |known| known.function);
        if function == self.definitions.len() {
            self.vectors.push(added.candidate.xmm_args);
            self.wide.push(added.candidate.ret_xmm);
            self.definitions.push(FunctionDef {
                id: function as u32,
                module: added.module as u32,
                ..added.candidate.def
            });
        }
        self.placed[entry].push(Placed {
            from: module.from,
            until: module.until,
            function,
        });
    }

    /// Chooses them as in other recordings.
    pub fn choose(modules: &[FoundModule], filter: &Filter) -> Functions {
        let mut all = Functions::default();
        let mut entries = HashMap::new();
        let mut chosen = Vec::new();
        let mut exported = HashSet::new();
        for (number, module) in modules.iter().enumerate() {
            let Some(file) = module.file.as_ref() else {
                continue;
            };
            let leavers = file.frame_leavers().iter();
            all.hints.leavers.extend(leavers.filter_map(|leaver| {
                // Leavers have it in the fourth or the fifth.
                let argument = match leaver.stack {
                    Held::Register(Register::RCX) => 3,
                    Held::Register(Register::R8) => 4,
                    _ => return None,
                };
                Some(Leaver {
                    address: module.address(leaver.start.0),
                    argument,
                    words: leaver.words,
                })
            }));
            // The C library, which has both, or a static program.
            if !file.frame_leavers().is_empty() {
                all.hints.switchers.extend(switchers(module, file));
            }
            let place = Place::of(&module.path, file, module.is_system);
            if !filter.considers(place, module.is_system, |name| file.exports(name)) {
                continue;
            }
            let found = candidates(file, filter, module.is_system);
            if module.is_system {
                let svmas = found.iter().map(|candidate| Svma(candidate.def.svma));
                exported.extend(svmas.flat_map(|svma| file.linker_names_at(svma)));
            }
            chosen.push((module, number, found));
        }
        for (module, number, found) in chosen {
            for candidate in found {
                // A call through a stub to a recorded function would be recorded twice.
                let target = candidate.def.linkage.strip_suffix("@plt");
                if target.is_some_and(|target| exported.contains(target)) {
                    continue;
                }
                let address = module.address(candidate.def.svma);
                let entry = *entries.entry(address).or_insert_with(|| {
                    all.entries.push(address);
                    all.placed.push(Vec::new());
                    all.entries.len() - 1
                });
                let added = Added {
                    module: number,
                    candidate,
                };
                all.place(entry, modules, added);
            }
        }
        all
    }
}

/// A function that is to be recorded.
struct Added {
    /// The number of its module.
    module: usize,
    candidate: Candidate,
}

/// Functions of the C library that go on on the stack of another context, and which argument it is.
const SWITCHERS: [(&str, usize); 2] = [("setcontext", 0), ("swapcontext", 1)];

fn switchers(module: &FoundModule, file: &Module) -> Vec<Switcher> {
    let symbols = file.symbols();
    let found = SWITCHERS.iter().filter_map(|(name, argument)| {
        let symbol = symbols.iter().find(|symbol| symbol.linkage == *name)?;
        Some(Switcher {
            address: module.address(symbol.svma.0),
            argument: *argument,
        })
    });
    found.collect()
}

/// Writes records and control events in the order of time.
pub(super) struct Writing<'w> {
    log: &'w mut LogWriter,
    functions: &'w Functions,
    /// Those that are still to be written, the first one first.
    controls: InOrder<'w>,
    next: Option<Control>,
    threads: Vec<Thread>,
    /// The index of the one that was written for last.
    last: usize,
    /// The end of the recording.
    end: u64,
    gathered: usize,
    /// Processes that it has made.
    children: u64,
    failed: Option<store::Error>,
}

/// What is known when all is written.
#[derive(Debug)]
pub(super) struct Written {
    /// Processes that the program has made.
    pub children: u64,
    /// Why not all calls are known.
    pub problem: Option<String>,
}

/// A thread and its records.
struct Thread {
    span: ThreadSpan,
    records: Vec<u8>,
    has_ended: bool,
    /// What is to be shared with the process or thread that it is about to make (clone(2)).
    shares: u64,
}

impl<'w> Writing<'w> {
    /// Begins with `controls`, which are ordered by time, and the threads of the program.
    pub fn new(
        log: &'w mut LogWriter,
        functions: &'w Functions,
        mut controls: InOrder<'w>,
        spans: &[ThreadSpan],
    ) -> Writing<'w> {
        let threads = spans.iter().map(|span| {
            let mut records = Vec::new();
            push_thread(
                &mut records,
                span.from,
                span.tid.cast_unsigned(),
                (0, 0),
                b"",
            );
            Thread {
                span: *span,
                records,
                has_ended: false,
                shares: 0,
            }
        });
        let threads: Vec<Thread> = threads.collect();
        Writing {
            log,
            functions,
            next: controls.next(),
            controls,
            threads,
            last: 0,
            end: 0,
            gathered: 0,
            children: 0,
            failed: None,
        }
    }

    /// Runs the program in `folder` once more, and writes its calls, and what it became at the end.
    ///
    /// # Errors
    /// The log cannot be written. That the program cannot be run again is returned as a text.
    pub fn calls(
        mut self,
        folder: &Path,
        end: u64,
        became: Option<&Became>,
        observer: &dyn Observer,
    ) -> Result<Written> {
        let functions = self.functions;
        self.end = end;
        let hooks: Vec<Hook> = functions.hooks().collect();
        let traced = exact::trace(folder, &hooks, &functions.hints, &mut |traced| {
            self.add(traced, observer)
        });
        let problem = traced.err().map(|error| error.to_string());
        if let Some(error) = self.failed.take() {
            return Err(error.into());
        }
        if let Some(why) = &problem {
            self.log.append_control(&Control::Warning {
                ticks: end,
                message: format!("not all calls are known: {why}"),
            })?;
        }
        if let Some(became) = became
            && let Some(thread) = self.thread(became.tid, end)
        {
            push_exec(&mut thread.records, end, became.program.as_bytes());
        }
        self.write(end + 1)?;
        let children = self.children;
        self.rest()?;
        Ok(Written { children, problem })
    }

    /// Adds what was traced; returns whether more is wanted.
    fn add(&mut self, traced: &Traced, observer: &dyn Observer) -> bool {
        let written = match self.gathered >= GATHERED {
            true => {
                let position = position_of(traced);
                observer.finding_calls(position, self.end);
                self.write(position)
            }
            false => Ok(()),
        };
        if let Err(error) = written.and_then(|()| self.take(traced)) {
            self.failed = Some(error);
        }
        self.failed.is_none()
    }

    fn take(&mut self, traced: &Traced) -> store::Result<()> {
        match *traced {
            Traced::Enter { .. } => self.enter(traced),
            Traced::Leave { .. } => self.leave(traced),
            Traced::SystemCall { .. } => self.asked(traced),
            Traced::Answer { .. } => self.answered(traced),
            Traced::Signal {
                position,
                tid,
                number,
            } => {
                let exception = Exception {
                    ticks: position,
                    tid: tid.cast_unsigned(),
                    signal: Some(number),
                    type_name: None,
                    phase: ExceptionPhase::FirstChance,
                    addr: None,
                    message: None,
                };
                // Events of the log are in the order of time.
                self.controls_before(position)?;
                self.log.append_control(&Control::Exception(exception))?;
            }
            Traced::Switch {
                position,
                tid,
                stack,
                ref to,
            } => {
                if let Some(thread) = self.thread(tid, position) {
                    push_stack_switch(&mut thread.records, position, stack, to.clone());
                    self.gathered += RECORD_LEN;
                }
            }
            // What is called next at its place does not replace it.
            Traced::Unwound {
                position,
                tid,
                stack,
                ..
            } => {
                if let Some(thread) = self.thread(tid, position) {
                    push_frames_left(&mut thread.records, position, stack + WORD_LEN as u64);
                }
            }
        }
        Ok(())
    }

    /// A system call begins.
    fn asked(&mut self, traced: &Traced) {
        let Traced::SystemCall {
            position,
            tid,
            number,
            arguments,
            address,
            stack,
            ref memory,
        } = *traced
        else {
            return;
        };
        // The call that ends the program is told by the event of its end, which is the last one.
        if matches!(i64::try_from(number), Ok(libc::SYS_exit_group)) {
            return;
        }
        let Some(thread) = self.thread(tid, position) else {
            return;
        };
        let first = memory.first().and_then(|region| region.bytes.first_chunk());
        thread.shares = match i64::try_from(number).unwrap_or(-1) {
            libc::SYS_clone => arguments[0],
            libc::SYS_clone3 => first.map_or(0, |flags| u64::from_le_bytes(*flags)),
            _ => 0,
        };
        let call = (number, arguments);
        let place = (address, stack);
        push_syscall(
            &mut thread.records,
            position,
            call,
            place,
            &sections(memory),
        );
        self.gathered += 2 * RECORD_LEN;
    }

    /// A system call returns.
    fn answered(&mut self, traced: &Traced) {
        let Traced::Answer {
            position,
            tid,
            number,
            arguments,
            result,
            stack,
            ref memory,
            ref output,
        } = *traced
        else {
            return;
        };
        let Some(thread) = self.thread(tid, position) else {
            return;
        };
        let makes_process = match i64::try_from(number).unwrap_or(-1) {
            libc::SYS_fork | libc::SYS_vfork => true,
            libc::SYS_clone | libc::SYS_clone3 => thread.shares & libc::CLONE_THREAD as u64 == 0,
            _ => false,
        };
        let child = u32::try_from(result).ok().filter(|pid| *pid > 0);
        let child = child.filter(|_| makes_process);
        if let Some(child) = child {
            push_fork(&mut thread.records, position, child);
        }
        let answer = result.cast_unsigned();
        push_syscall_end(
            &mut thread.records,
            position,
            answer,
            stack,
            &sections(memory),
        );
        let mut length = RECORD_LEN;
        if let Some(bytes) = output {
            // A descriptor is told by its low bits.
            push_output(&mut thread.records, position, arguments[0] as u8, bytes);
            length += bytes.len();
        }
        self.gathered += length;
        self.children += u64::from(child.is_some());
    }

    fn enter(&mut self, traced: &Traced) {
        let Traced::Enter {
            position,
            tid,
            function,
            stack,
            return_address,
            arguments,
            is_tail,
            vectors,
        } = *traced
        else {
            return;
        };
        let functions = self.functions;
        let Some(function) = functions.at(function, position) else {
            return;
        };
        let Some(thread) = self.thread(tid, position).filter(|_| is_slot(stack)) else {
            return;
        };
        let count = usize::from(functions.vectors[function]).min(vectors.len());
        let fields = EnterFields {
            form: match is_tail {
                true => EnterForm::Tail,
                false => EnterForm::Hooked,
            },
            function_id: functions.definitions[function].id,
            slot: stack,
            return_addr: return_address & RETURN_BITS,
            args: arguments,
            xmm: &vectors[..count],
        };
        push_enter(&mut thread.records, position, &fields);
        self.gathered += RECORD_LEN;
    }

    fn leave(&mut self, traced: &Traced) {
        let Traced::Leave {
            position,
            tid,
            function,
            stack,
            results,
        } = *traced
        else {
            return;
        };
        let Some(function) = self.functions.at(function, position) else {
            return;
        };
        let is_wide = self.functions.wide[function];
        let last = self.end.saturating_sub(1);
        let Some(thread) = self.thread(tid, position).filter(|_| is_slot(stack)) else {
            return;
        };
        let [rax, rdx, xmm @ ..] = results;
        let leave = Leave {
            slot: stack,
            rax,
            rdx,
            xmm: is_wide.then_some(xmm),
        };
        // It has returned with the next instruction; at the end of the recording, before that is told.
        let returned = (position + 1).min(last).max(position);
        push_leave(&mut thread.records, returned, &leave);
        self.gathered += RECORD_LEN;
    }

    /// The thread that had a number at a position. At the end of one, another may have it.
    fn thread(&mut self, tid: i32, position: u64) -> Option<&mut Thread> {
        let is_in = |span: &ThreadSpan| span.tid == tid && span.from <= position;
        let is_last = self.threads.get(self.last).is_some_and(|last| {
            is_in(&last.span) && last.span.until.is_none_or(|until| position < until)
        });
        if !is_last {
            let is_it = |thread: &Thread| {
                let until = thread.span.until;
                is_in(&thread.span) && until.is_none_or(|until| position <= until)
            };
            self.last = self.threads.iter().rposition(is_it)?;
        }
        self.threads.get_mut(self.last)
    }

    /// Writes what is before a position.
    fn write(&mut self, position: u64) -> store::Result<()> {
        for (thread, ring) in self.threads.iter_mut().zip(0..) {
            let ended = thread.span.until.filter(|until| *until < position);
            if let Some(until) = ended.filter(|_| !thread.has_ended) {
                thread.has_ended = true;
                push_thread_exit(&mut thread.records, until, thread.span.tid.cast_unsigned());
            }
            let has_begun = thread.span.from < position;
            if has_begun && !thread.records.is_empty() {
                self.log
                    .append_block(ring, TENANCY, [&thread.records, &[]])?;
                thread.records.clear();
            }
        }
        self.gathered = 0;
        self.controls_before(position)?;
        self.log.append_watermark(position)
    }

    /// Writes the control events before a position.
    fn controls_before(&mut self, position: u64) -> store::Result<()> {
        while let Some(control) = &self.next
            && control.ticks().is_none_or(|ticks| ticks < position)
        {
            self.log.append_control(control)?;
            self.next = self.controls.next();
        }
        Ok(())
    }

    /// Writes the control events that are left.
    fn rest(&mut self) -> store::Result<()> {
        while let Some(control) = self.next.take() {
            self.log.append_control(&control)?;
            self.next = self.controls.next();
        }
        Ok(())
    }
}

fn sections(memory: &[Region]) -> Vec<Section<'_>> {
    let sections = memory.iter().map(|region| Section {
        addr: region.address,
        bytes: &region.bytes,
    });
    sections.collect()
}

/// Says whether a stack pointer can be the slot of a call.
fn is_slot(stack: u64) -> bool {
    stack.is_multiple_of(8) && stack >> 47 == 0
}

/// When it was reported: positions never go down.
fn position_of(traced: &Traced) -> u64 {
    match traced {
        Traced::Enter { position, .. }
        | Traced::Leave { position, .. }
        | Traced::SystemCall { position, .. }
        | Traced::Answer { position, .. }
        | Traced::Signal { position, .. }
        | Traced::Switch { position, .. }
        | Traced::Unwound { position, .. } => *position,
    }
}
