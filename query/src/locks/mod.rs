//! Which thread held which lock when, who waited for it, and who waited when the recording ended.
//!
//! All of it comes from the recorded calls of lock functions. Locks acquired without a call are unknown.

mod holds;
mod kinds;
mod report;

pub use holds::{Outcome, Point, Wish};
pub use kinds::Kind;
pub use report::{LockReport, LockTotal, NotRecorded, Span, Waiter, Who};

use store::control::FunctionDef;

use crate::callers::{Progress, Tree, walk};
use crate::error::Result;
use crate::report::Source;
use crate::session::Session;
use kinds::{Act, act};

/// All that threads wanted of locks.
#[derive(Debug)]
pub struct Locks {
    /// In the order in which they began.
    pub wishes: Vec<Wish>,
    /// The paths to the calls.
    pub(crate) tree: Tree,
}

/// Finds what threads did with locks. `progress` receives the numbers of calls read and of all calls.
///
/// # Errors
/// The recording cannot be read.
pub(crate) fn read(source: &Source, progress: Progress<'_>) -> Result<Locks> {
    let mut acts = Vec::new();
    for function in source.definitions.functions() {
        let id = function.id as usize;
        if acts.len() <= id {
            acts.resize(id + 1, None);
        }
        acts[id] = act(&function.name);
    }
    let of = |function: u32| acts.get(function as usize).copied().flatten();
    let mut calls = Vec::new();
    let tree = walk(
        &source.calls,
        &|function| of(function).is_some(),
        progress,
        &mut |found| {
            let act = of(found.call.function);
            let act = act.and_then(|act| act.of_call(&found.call.args));
            let Some((act, lock)) = act else {
                return 0;
            };
            // A function of Rust's waits by futex; the C library may have two of one name, one of which calls the other.
            let outer = found.around.copied().unwrap_or_default();
            let is_inner = match act {
                Act::FutexWaits => outer != 0,
                _ => lock == outer,
            };
            if !is_inner {
                calls.push(holds::LockCall {
                    call: *found.call,
                    act,
                    lock,
                    node: found.node,
                });
            }
            lock
        },
    )?;
    let wishes = holds::wishes(&calls);
    Ok(Locks { wishes, tree })
}

/// Returns whether one of these functions locks, unlocks or waits. The system call by which a few also wait is no lock in itself.
pub(crate) fn is_of<'f>(mut functions: impl Iterator<Item = &'f FunctionDef>) -> bool {
    functions.any(|function| act(&function.name).is_some_and(|act| act != Act::Calls))
}

/// Sums up what threads did with locks. `progress` receives the numbers of calls read and of all calls.
///
/// # Errors
/// The recording cannot be read.
pub fn locks(session: &Session, progress: &mut dyn FnMut(u64, u64)) -> Result<LockReport> {
    session.check_ends("the recording")?;
    let locks = read(session.report_source(), progress)?;
    report::report(&locks, session)
}

/// Returns the name of the variable that has a lock, with how far in it the lock is: `queue`, `table+16`; `None` if it is in no
/// global variable.
pub(crate) fn name_of(source: &Source, lock: u64, seq: u64) -> Result<Option<String>> {
    let Some(timeline) = source.timeline()? else {
        return Ok(None);
    };
    let space = timeline.modules().space(seq);
    Ok(space.at(lock).and_then(|module| {
        let svma = module.svma(lock);
        let (name, start) = module.module.variable_symbol_at(svma)?;
        Some(match svma.0 - start.0 {
            0 => name,
            offset => format!("{name}+{offset}"),
        })
    }))
}
