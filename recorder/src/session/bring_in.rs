//! Loads the agent into the program: our loader, or Frida, loads the runtime and reserves memory for code.

use std::{ops::Range, path::Path, sync::Arc, thread};

use agent::{
    host::{self, Host, Started},
    shared::{SHADOWS, Shared, TOTAL_BYTES},
};
use debuginfo::Diagnostic;

use super::{
    last, lay_out,
    program::{Running, about_target, read_maps},
    reserve, sandbox,
};
use crate::{
    Error, Observer, Result,
    arm::{
        Armer, Modules,
        patch::{Plan, Prepared},
        unwinders_can_be_told,
    },
    loader::{Loader, ThreadKeys},
    process::{Maps, Way, limits::Lifted},
};

pub(super) struct BringIn<'a> {
    pub target: &'a Running,
    pub shared: &'a Arc<Shared>,
    pub runtime: &'a Path,
    pub observer: &'a dyn Observer,
}

impl BringIn<'_> {
    /// Starts the runtime in the program and fills `plan` with the patches. Returns the prepared functions of each
    /// module.
    pub fn agent(
        self,
        host: Option<&mut (dyn Host + 'static)>,
        modules: &mut Modules,
        armer: &mut Armer,
        plan: &mut Plan,
    ) -> Result<Vec<Prepared>> {
        let pid = self.target.pid;
        let limits = Lifted::of(pid, self.reserved_bytes()).map_err(|why| self.refused(why))?;
        let before = read_maps(pid)?;
        let brought = match host {
            Some(host) => self.by_frida(host, modules, armer, plan),
            None => self.by_loader(modules, armer, plan),
        };
        let prepared = match brought {
            Ok(prepared) => prepared,
            Err(error) => {
                self.settle_rest(limits, &before);
                return Err(error);
            }
        };
        // Frida leaves some libraries that its agent needed, and memory.
        let after = read_maps(pid)?;
        modules.ignore(&after.files());
        let foreign = self.foreign(&before, &after);
        self.shared.set_foreign(&foreign);
        let (space_bytes, data_bytes) = self.counted(&foreign, &before, &after);
        // The limits already account for what an earlier recording has left.
        let new = foreign.iter().filter(|range| !begins_in(&before, range));
        let new_bytes = new.map(|range| range.end - range.start).sum();
        let data_bytes = limits
            .settle(new_bytes, data_bytes)
            .map_err(Error::system("set the program's limits on memory"))?;
        self.shared.set_reserved(space_bytes, data_bytes);
        Ok(prepared)
    }

    /// Sets the limits of a program that cannot be recorded, but may run on: what could not be unmapped still counts.
    fn settle_rest(&self, limits: Lifted, before: &Maps) {
        // A program that is gone needs no limits.
        let after = read_maps(self.target.pid).unwrap_or_default();
        let foreign = self.foreign(before, &after);
        let left = foreign
            .iter()
            .filter(|range| begins_in(&after, range) && !begins_in(before, range));
        let left_bytes = left.map(|range| range.end - range.start).sum();
        let _ = limits.settle(left_bytes, 0);
    }

    /// Returns how much address space is about to be reserved.
    fn reserved_bytes(&self) -> u64 {
        let shadows = match self.target.way {
            Way::LoaderForGo => 0,
            Way::Frida | Way::Loader => SHADOWS.iter().map(|shadow| shadow.bytes).sum(),
        };
        shadows + TOTAL_BYTES
    }

    /// Returns the error for a program into which the runtime cannot be loaded.
    fn refused(&self, reason: Diagnostic) -> Error {
        match self.target.spawned {
            true => Error::Unsupported {
                path: self.target.exe.clone(),
                reason,
            },
            false => Error::Attach {
                pid: self.target.pid,
                reason,
            },
        }
    }

    /// Counts the bytes that are not the program's as its limits do: as address space, and as data.
    fn counted(&self, foreign: &[Range<u64>], before: &Maps, after: &Maps) -> (u64, u64) {
        let space = foreign.iter().map(|range| range.end - range.start).sum();
        let of_shadows: u64 = SHADOWS
            .iter()
            .filter(|shadow| foreign.iter().any(|range| range.contains(&shadow.base)))
            .map(|shadow| shadow.bytes)
            .sum();
        let data = match self.target.spawned {
            true => after.data_since(before).saturating_sub(of_shadows),
            // The program maps memory of its own meanwhile.
            false => 0,
        };
        (space, data)
    }

    fn by_frida(
        &self,
        host: &mut dyn Host,
        modules: &mut Modules,
        armer: &mut Armer,
        plan: &mut Plan,
    ) -> Result<Vec<Prepared>> {
        let pid = self.target.pid;
        // It waits at its entry point.
        let was_alone = self.target.spawned && host::has_one_thread(pid);
        let mut prepared = self.start(modules, armer, || {
            host.ready()
                .and_then(|()| {
                    let library = self.runtime.to_string_lossy();
                    host::start_runtime(host, pid, &library, &self.shared.path())
                })
                .map_err(|error| about_target(error, self.target))
        })?;
        armer.leave_out_stubs(&modules.loaded, &mut prepared);
        for (module, prepared) in modules.loaded.iter().zip(&mut prepared) {
            armer.prepare_replacements(module, prepared);
        }
        sandbox::watch_replaced(self.shared, &prepared);
        for prepared in &mut prepared {
            let base = reserve(prepared, pid, |address, bytes| {
                host::reserve(host, address, bytes).map_err(Error::from)
            })?;
            lay_out(armer, prepared, base, plan, self.observer);
        }
        host.detach()?;
        host::wait_until_gone(pid, was_alone)?;
        Ok(prepared)
    }

    /// Returns the mappings that are not the program's. A running program maps memory meanwhile; then only large
    /// mappings count.
    fn foreign(&self, before: &Maps, after: &Maps) -> Vec<Range<u64>> {
        if self.target.spawned {
            return after.since(before);
        }
        let reserved = SHADOWS
            .iter()
            .map(|shadow| shadow.base..shadow.base + shadow.bytes);
        reserved.chain([self.shared.range_in_target()]).collect()
    }

    fn by_loader(
        &self,
        modules: &mut Modules,
        armer: &mut Armer,
        plan: &mut Plan,
    ) -> Result<Vec<Prepared>> {
        let pid = self.target.pid;
        armer.goes_by(self.target.way);
        let entries_only = !unwinders_can_be_told(pid, &modules.loaded);
        let loader = Loader {
            pid,
            way: self.target.way,
            library: self.runtime,
            shared: self.shared,
            entries_only,
            keys: ThreadKeys::find(modules),
        };
        let mut prepared = self.start(modules, armer, || loader.load())?;
        armer.leave_out_stubs(&modules.loaded, &mut prepared);
        for (module, prepared) in modules.loaded.iter().zip(&mut prepared) {
            armer.prepare_replacements(module, prepared);
        }
        sandbox::watch_replaced(self.shared, &prepared);
        plan.warnings = self.unseen(&prepared, entries_only);
        if !last::hides_handlers(&modules.loaded, &prepared) && self.shared.pass_signals() {
            plan.warnings.push(
                "if a signal ends the program, its last moment is not recorded: its symbols do not tell how it handles signals"
                    .to_owned(),
            );
        }
        for prepared in &mut prepared {
            let base = reserve(prepared, pid, |address, bytes| {
                loader.reserve(address, bytes)
            })?;
            lay_out(armer, prepared, base, plan, self.observer);
        }
        Ok(prepared)
    }

    /// Returns what a recording misses without the dynamic linker's help.
    fn unseen(&self, prepared: &[Prepared], entries_only: bool) -> Vec<String> {
        let mut unseen = Vec::new();
        let is_go = self.target.way == Way::LoaderForGo;
        if is_go {
            unseen.push(
                "of Go functions only entries are recorded, without arguments, --regs, --stack, --strings or --watch: \
                 goroutines' stacks move, and return addresses must stay as they are"
                    .to_owned(),
            );
        } else if entries_only {
            unseen.push(
                "only entries of functions are recorded: the program's unwinder cannot follow hooked returns"
                    .to_owned(),
            );
        }
        let replaces = |name: &str| prepared.iter().any(|prepared| prepared.replaces(name));
        // A program that prints with musl's stdio alone has no `write`.
        let has_stdio = replaces("__stdio_write");
        if !replaces("write") && !has_stdio {
            unseen.push(
                "what the program prints is not in the recording: no function `write` of a C library was found in it"
                    .to_owned(),
            );
        } else if self.target.has_musl() && !has_stdio {
            unseen.push(
                "what the program prints with stdio is not in the recording: musl's library has no symbols for it"
                    .to_owned(),
            );
        }
        unseen
    }

    /// Reads the files while the runtime is loaded by `load`.
    fn start(
        &self,
        modules: &Modules,
        armer: &mut Armer,
        load: impl FnOnce() -> Result<Started>,
    ) -> Result<Vec<Prepared>> {
        let (prepared, started) = thread::scope(|scope| {
            scope.spawn(|| self.shared.populate_first_ring());
            scope.spawn(|| sandbox::watch_code(self.shared, &modules.loaded));
            let files = scope.spawn(|| {
                modules
                    .loaded
                    .iter()
                    .map(|module| armer.prepare(module))
                    .collect::<Vec<_>>()
            });
            let started = load();
            (files.join().expect("preparing does not panic"), started)
        });
        let started = started?;
        self.shared.set_target_base(started.shared);
        armer.runtime_started(started);
        Ok(prepared)
    }
}

/// Returns whether a mapping begins where `range` does.
fn begins_in(maps: &Maps, range: &Range<u64>) -> bool {
    let mut mappings = maps.mappings.iter();
    mappings.any(|mapping| mapping.range.start == range.start)
}
