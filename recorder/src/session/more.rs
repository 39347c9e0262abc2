//! Functions that a live session begins to record while the program runs. They are armed like those of a module that is loaded
//! later: calls that are already in progress are not recorded.

use agent::shared::Shared;
use crossbeam::channel::Sender;
use store::control::Control;

use super::{Session, lay_out, reserve};
use crate::{
    Error, Observer, Result,
    arm::{Filter, patch::Plan},
    live::{Traced, Untraced, commands::ask},
};

/// A wish for more functions.
pub(crate) struct More {
    /// Patterns as `-f` takes them.
    pub filter: Filter,
    /// The waiting client.
    pub reply: Sender<Result<Traced>>,
}

/// A function of a plan.
struct Planned {
    name: String,
    entry: u64,
}

impl Session {
    /// Fulfils the requests of clients. Returns whether there were any.
    pub(super) fn look_at_wishes(&mut self, shared: &Shared, observer: &dyn Observer) -> bool {
        let wishes: Vec<More> = match &self.live {
            Some(live) => live.more.try_iter().collect(),
            None => Vec::new(),
        };
        let any = !wishes.is_empty();
        for More { filter, reply } in wishes {
            // The client may have gone.
            let _ = reply.send(self.record_more(&filter, shared, observer));
        }
        any
    }

    fn record_more(
        &mut self,
        filter: &Filter,
        shared: &Shared,
        observer: &dyn Observer,
    ) -> Result<Traced> {
        let mut traced = Traced::default();
        let mut plan = Plan::default();
        let mut skipped = Vec::new();
        let modules = &self.arming.modules.loaded;
        let mut all = Vec::with_capacity(modules.len());
        for module in modules {
            let (prepared, already) = self.armer().prepare_more(module, filter);
            traced.already += already;
            all.push(prepared);
        }
        self.armer().leave_out_stubs(modules, &mut all);
        for mut prepared in all {
            let base = reserve(&prepared, self.target.pid, |address, bytes| {
                self.map_code(address, bytes)
            })?;
            lay_out(&mut self.armer(), &mut prepared, base, &mut plan, observer);
            skipped.append(&mut prepared.skipped);
        }
        traced.untraced.extend(skipped.iter().filter_map(untraced));
        let planned: Vec<Planned> = plan
            .functions
            .iter()
            .filter_map(|function| {
                let module = self.arming.modules.by_number(function.module)?;
                Some(Planned {
                    name: function.name.clone(),
                    entry: module.addr_from_svma(function.svma),
                })
            })
            .collect();
        self.watch_more(shared, &plan, observer);
        self.log_probes(skipped, &plan)?;
        if !planned.is_empty() {
            self.release(plan)?;
        }
        for Planned { name, entry } in planned {
            match self.armer().has_patched(entry) {
                true => traced.functions.push(name),
                false => traced.untraced.push(Untraced {
                    function: name,
                    reason: "its code in memory is not the file's: a breakpoint may stand at its beginning"
                        .to_owned(),
                }),
            }
        }
        Ok(traced)
    }

    /// Makes the program map memory for code.
    fn map_code(&self, address: u64, bytes: u64) -> Result<bool> {
        let Some(live) = &self.live else {
            return Ok(false);
        };
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        ask(&live.commands, move |tracer| {
            tracer.map_at(address, bytes, protection)
        })?
        .map_err(Error::from)
    }
}

fn untraced(control: &Control) -> Option<Untraced> {
    match control {
        Control::Skipped { name, reason, .. } => Some(Untraced {
            function: name.clone(),
            reason: reason.clone(),
        }),
        _ => None,
    }
}
