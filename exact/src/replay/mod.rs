//! Running a recording again: a process gets the program's memory and registers, runs translated code that stops at an exact
//! instruction, and is told what the kernel and the processor had answered.

mod apply;
mod approach;
mod asked;
mod cause;
mod chance;
mod changes;
mod checkpoint;
mod guarded;
mod limit;
mod notes;
mod oversee;
mod pages;
#[cfg(test)]
mod planted;
mod recorded;
mod refused;
mod remote_call;
mod repeated;
mod run;
mod search;
mod seek;
mod shared;
mod stacks;
mod step;
mod stub;
#[cfg(test)]
mod tested;
mod trace;
mod unsure;
mod verify;
mod writes;

use std::ops::Range;
use std::path::Path;

use libc::user_regs_struct;
use rustc_hash::FxHashMap;

use crate::error::{Context as _, Error, Result};
use crate::log::{Bytes, Context, Registers, Space};
use crate::maps;
use crate::ptrace;
use crate::tracee::{Sharing, Tracee, own_extended, own_registers};
use crate::translate::{Mode, Translator, layout};
use changes::{Changes, Steady};
use checkpoint::Checkpoints;
use limit::Limit;
pub use oversee::Overseer;
use recorded::Recorded;
pub use remote_call::{Call, Called, Returned};
pub use seek::{Access, Batch, Executed, Instruction, Seek};
pub use trace::{Hints, Leaver, Region, Switcher, Traced, trace};
pub use verify::{Contradiction, Verdict, verify};

/// Everything of a moment but the memory.
#[derive(Debug, Clone)]
struct Moment {
    /// Instructions executed.
    count: u64,
    /// The first entry that has not been applied.
    next: usize,
    /// The thread that runs.
    running: i32,
    /// All others, where they stopped.
    others: FxHashMap<i32, Context>,
}

/// A recording that is run again. It must be used by the thread that opened it: only that one may trace the process.
pub struct Replay {
    recorded: Recorded,
    process: Tracee,
    translator: Translator,
    changes: Changes,
    now: Moment,
    limit: Limit,
    checkpoints: Checkpoints,
    objects: shared::Objects,
    /// Bytes that are watched at the moment.
    watch: Option<search::Watch>,
    /// Calls that are traced.
    calls: Option<trace::Calls>,
    /// What is looked for at the moment, and was found.
    found: Option<seek::Found>,
    noting: notes::Noting,
    /// What is compared, while the recording is verified.
    verifying: Option<verify::Verifying>,
    /// Who is asked whether to go on.
    overseer: Option<Overseer>,
}

impl Replay {
    /// Opens the recording in a folder, at its start.
    pub fn open(folder: &Path) -> Result<Replay> {
        let (recorded, start) = Recorded::read(folder)?;
        let pid = stub::start()?;
        let mut process = Tracee::new(pid, Sharing::Code)?;
        empty(&mut process)?;
        // Of small pages the kernel tells whether they are shared.
        let args = [libc::PR_SET_THP_DISABLE as u64, 1, 0, 0, 0, 0];
        process.call(pid, libc::SYS_prctl, args)?;
        let free = recorded.free();
        let low = process.map_low(pid, &free)?;
        let noting = notes::Noting::new(process.map_low(pid, &free)?);
        drop(free);
        let mut replay = Replay {
            now: Moment {
                count: 0,
                next: 0,
                running: recorded.first,
                others: FxHashMap::default(),
            },
            recorded,
            process,
            translator: Translator::new(Mode::Replay, low),
            changes: Changes::default(),
            limit: Limit::default(),
            checkpoints: Checkpoints::default(),
            objects: shared::Objects::default(),
            watch: None,
            calls: None,
            found: None,
            noting,
            verifying: None,
            overseer: None,
        };
        replay.make_objects(start.plan)?;
        for span in start.spans {
            replay.space(Space::Map(span))?;
        }
        replay.make_caches()?;
        replay.make_noting()?;
        replay.make_window()?;
        replay.write(&start.memory)?;
        replay.load(&start.context)?;
        replay.keep()?;
        Ok(replay)
    }

    /// How many instructions have been executed.
    pub fn position(&self) -> u64 {
        self.now.count
    }

    /// The threads that are there now, but the one that runs.
    pub fn others(&self) -> Vec<i32> {
        let mut tids: Vec<i32> = self.now.others.keys().copied().collect();
        tids.sort_unstable();
        tids
    }

    /// The registers of a thread that does not run.
    pub fn registers_of(&self, tid: i32) -> Option<user_regs_struct> {
        self.now
            .others
            .get(&tid)
            .map(|context| user_regs_struct::from(&context.registers))
    }

    /// The x87, SSE and later registers of a thread that does not run.
    pub fn extended_of(&self, tid: i32) -> Option<&[u8]> {
        self.now
            .others
            .get(&tid)
            .map(|context| context.extended.as_slice())
    }

    /// The thread that executes the next instruction.
    pub fn thread(&self) -> i32 {
        self.now.running
    }

    /// The registers before the next instruction.
    pub fn registers(&self) -> Result<user_regs_struct> {
        let registers = ptrace::registers(self.process.pid).context("read registers")?;
        own_registers(&self.process, &self.translator, &registers, self.block())
    }

    /// The x87, SSE and later registers, in XSAVE's layout.
    pub fn extended(&self) -> Result<Vec<u8>> {
        let extended = ptrace::extended_state(self.process.pid).context("read registers")?;
        Ok(own_extended(&self.translator, extended))
    }

    /// Fills as much of `into` as there is memory from `address` on; returns how many bytes that are.
    pub fn read(&self, address: u64, into: &mut [u8]) -> usize {
        self.process.read(address, into)
    }

    fn block(&self) -> u64 {
        layout::block(self.translator.low(), 0)
    }

    fn write(&self, memory: &[Bytes]) -> Result<()> {
        memory
            .iter()
            .try_for_each(|bytes| self.process.write(bytes.at, &bytes.bytes))
    }

    /// The thread goes on with these registers.
    fn load(&mut self, context: &Context) -> Result<()> {
        ptrace::set_extended_state(self.process.pid, &context.extended).context("set registers")?;
        self.enter(&user_regs_struct::from(&context.registers))
    }

    /// What the thread has in its registers.
    fn save(&self) -> Result<Context> {
        Ok(Context {
            registers: Registers::from(&self.registers()?),
            extended: self.extended()?,
        })
    }

    /// Maps caches near all code that there will be, before there are copies of the process: all of them share the caches.
    fn make_caches(&mut self) -> Result<()> {
        let pid = self.process.pid;
        for index in 0..self.recorded.taken.len() {
            let span = self.recorded.taken[index];
            if span.protection & libc::PROT_EXEC as u32 != 0
                && self.translator.needs_cache(span.start)
            {
                let free = self.recorded.free();
                match self
                    .process
                    .add_cache(pid, &mut self.translator, span.start, &free)
                {
                    // Its translation lies far away, in the cache of other code.
                    Err(Error::NoRoom) => {}
                    made => made?,
                }
            }
        }
        match self.translator.has_room() {
            true => Ok(()),
            false => Err(Error::NoRoom),
        }
    }

    /// The translation of the code at `pc`. When the caches are full, all of it is made anew.
    fn translated_at(&mut self, pc: u64) -> Result<Option<u64>> {
        if self.translator.is_full() {
            self.translator.reset();
        }
        let code = Steady::new(&self.recorded, &self.changes, self.now.next, &self.process);
        let body = self.translator.entry(pc, &code);
        self.process.flush(&mut self.translator)?;
        let pages = self.translator.take_fresh();
        match self.changes.guarded {
            Some(_) => self.guard(&pages)?,
            None => self.changes.executed(&pages),
        }
        Ok(body)
    }

    /// Enters translated code with these registers of the program.
    fn enter(&mut self, own: &user_regs_struct) -> Result<()> {
        let mut registers = *own;
        let block = self.block();
        registers.gs_base = block;
        registers.orig_rax = u64::MAX;
        let Some(body) = self.translated_at(own.rip)? else {
            // It stands where it has a fault, and goes no further.
            return ptrace::set_registers(self.process.pid, &registers).context("set registers");
        };
        self.process
            .set_word(block + u64::from(layout::SLOT_R15), own.r15)?;
        if self.calls.is_some() {
            // The thread may be another one, or on another stack.
            self.process
                .set_word(block + u64::from(layout::SLOT_LOWEST), 0)?;
        }
        self.note_entry(own)?;
        registers.r15 = self.limit.counter(self.now.count);
        registers.rip = body;
        ptrace::set_registers(self.process.pid, &registers).context("set registers")
    }

    fn diverged(&self, what: &str) -> Error {
        let mut what = what.to_owned();
        if let Some(since) = self
            .recorded
            .shares
            .filter(|since| *since <= self.now.count)
        {
            what += &format!(
                " (since instruction {since} it had shared memory with another process, whose writes are seen only at system calls)"
            );
        }
        Error::Diverged {
            at: self.now.count,
            what,
        }
    }

    /// It comes to a system call, or to an instruction whose results are noted.
    fn asks(&self) -> Error {
        let at = self.registers().map_or(0, |registers| registers.rip);
        self.diverged(&format!(
            "a system call, or an instruction such as rdtsc, at address {at:#x}, that was not recorded"
        ))
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.checkpoints.end();
        checkpoint::end(self.process.pid);
    }
}

/// Unmaps all that the stub got from the kernel, but its own page.
fn empty(process: &mut Tracee) -> Result<()> {
    let maps = maps::read(process.pid).context("read the mappings of a process")?;
    for mapping in maps {
        let Range { start, end } = mapping.range;
        if start != stub::AT && mapping.path != "[vsyscall]" {
            let pid = process.pid;
            process.call(pid, libc::SYS_munmap, [start, end - start, 0, 0, 0, 0])?;
        }
    }
    Ok(())
}
