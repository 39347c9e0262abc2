//! Reconstructs tail calls. A function that made one has no frame any more, but often only one path leads from its
//! caller to the current function. The rules are those of gdb.
//!
//! All facts come from call site DIEs (DWARF 5, section 3.4). If one of them does not state its target, nothing is
//! concluded.

use std::collections::HashSet;
use std::sync::Arc;

use gimli::constants as dw;

use crate::cache::Cache;
use crate::dies::{Die, DieReader};
use crate::model::{Binding, Svma};
use crate::module::Module;
use crate::scope::function_at;
use crate::types::with_session;

/// Call sites followed in search of one path, at most.
const MAX_STEPS: usize = 4096;
/// Functions whose calls are kept.
const MAX_KEPT: usize = 1 << 14;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CallSite {
    /// The address after the call.
    back: u64,
    /// The entry of the callee, if it is stated.
    target: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    all: Vec<CallSite>,
    /// The tail calls. Empty if the debug information does not claim to list all of them.
    tail: Vec<CallSite>,
}

/// The cached calls of a module's functions, by function entry.
pub(super) type KnownCalls = Cache<u64, Option<Arc<Calls>>, MAX_KEPT>;

/// Finds the tail calls between the call that returns to `back` and the function that begins at `callee`, innermost
/// first. Each is given by the address after it. If there are several paths, only the calls common to all are returned.
pub(super) fn between(module: &Arc<Module>, back: u64, callee: u64) -> Vec<u64> {
    let find = || {
        let caller = entry_of(module, back.wrapping_sub(1))?;
        let calls = calls_of(module, caller)?;
        let made = calls.all.iter().find(|site| site.back == back)?;
        let target = made.target.filter(|target| *target != callee)?;
        let mut search = Search {
            module,
            callee,
            path: Vec::new(),
            found: None,
            steps: 0,
        };
        search.follow(target)?;
        search.found
    };
    find().map_or(Vec::new(), |ways| ways.certain())
}

/// Returns whether the function that begins at `entry` may jump to its own start, by any path. In that case, the
/// arguments passed by its caller say nothing.
pub(crate) fn may_restart(module: &Arc<Module>, entry: u64) -> bool {
    let mut seen = HashSet::new();
    let mut left = vec![entry];
    while let Some(function) = left.pop() {
        let Some(calls) = calls_of(module, function) else {
            return true;
        };
        for site in &calls.tail {
            match site.target {
                Some(target) if target != entry && seen.len() < MAX_STEPS => {
                    if seen.insert(target) {
                        left.push(target);
                    }
                }
                _ => return true,
            }
        }
    }
    false
}

/// The paths from one function to another.
struct Ways {
    first: Vec<u64>,
    /// The number of tail calls with which all paths begin, and the number with which all end.
    callers: usize,
    callees: usize,
}

impl Ways {
    /// Returns the tail calls that are part of every path, innermost first.
    fn certain(&self) -> Vec<u64> {
        let (first, all) = (&self.first, self.first.len());
        if self.callers == all && self.callees == all {
            return first.iter().rev().copied().collect();
        }
        let inner = first[all - self.callees..].iter().rev();
        let outer = first[..self.callers].iter().rev();
        inner.chain(outer).copied().collect()
    }

    fn add(&mut self, way: &[u64]) {
        let same = |pairs: &mut dyn Iterator<Item = (&u64, &u64)>| {
            pairs.take_while(|(one, other)| one == other).count()
        };
        let begin = same(&mut self.first.iter().zip(way));
        let end = same(&mut self.first.iter().rev().zip(way.iter().rev()));
        self.callers = self.callers.min(begin);
        self.callees = self.callees.min(end);
    }
}

struct Search<'s> {
    module: &'s Arc<Module>,
    callee: u64,
    path: Vec<u64>,
    found: Option<Ways>,
    steps: usize,
}

impl Search<'_> {
    /// Follows the tail calls of a function. Returns `None` if nothing can be concluded.
    fn follow(&mut self, function: u64) -> Option<()> {
        let calls = calls_of(self.module, function)?;
        for site in &calls.tail {
            if self.path.contains(&site.back) {
                continue;
            }
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return None;
            }
            self.path.push(site.back);
            match site.target? {
                target if target == self.callee => self.arrive()?,
                target => self.follow(target)?,
            }
            self.path.pop();
        }
        Some(())
    }

    fn arrive(&mut self) -> Option<()> {
        let Some(ways) = &mut self.found else {
            self.found = Some(Ways {
                first: self.path.clone(),
                callers: self.path.len(),
                callees: self.path.len(),
            });
            return Some(());
        };
        ways.add(&self.path);
        (ways.callers + ways.callees > 0).then_some(())
    }
}

/// Returns the entry of the function whose code contains `svma`.
pub(crate) fn entry_of(module: &Module, svma: u64) -> Option<u64> {
    let scopes = module.units().find(svma)?.scopes(module);
    let function = *scopes.chain(svma).first()?;
    Some(scopes.list[function].entry())
}

/// Returns the calls of the function that begins at `entry`, or `None` if nothing describes such a function.
fn calls_of(module: &Arc<Module>, entry: u64) -> Option<Arc<Calls>> {
    let read = || {
        if entry_of(module, entry)? != entry {
            return None;
        }
        let function = function_at(module, Svma(entry))?;
        let calls = with_session(module.entries(), function, |session, die| {
            read(module, session, die)
        })?;
        Some(Arc::new(calls))
    };
    module.unwind().calls.get(&entry, read)
}

fn read<'a>(module: &Arc<Module>, session: &DieReader<'_, 'a>, function: &Die<'a>) -> Calls {
    let is_stated = |name| session.flag(function, name);
    let is_whole = [
        dw::DW_AT_call_all_calls,
        dw::DW_AT_call_all_tail_calls,
        dw::DW_AT_GNU_all_call_sites,
        dw::DW_AT_GNU_all_tail_call_sites,
    ]
    .into_iter()
    .any(is_stated);
    let mut calls = Calls::default();
    each_call(session, function, |die| {
        let address = |name| {
            let value = session.attr(die, name)?;
            session.dwarf(die).attr_address(&die.unit, value).ok()?
        };
        let back = address(dw::DW_AT_call_return_pc).or_else(|| address(dw::DW_AT_low_pc));
        let Some(back) = back else { return };
        let site = CallSite {
            back,
            target: target(module, session, die),
        };
        let is_tail = session.flag(die, dw::DW_AT_call_tail_call)
            || session.flag(die, dw::DW_AT_GNU_tail_call);
        if is_tail && is_whole {
            calls.tail.push(site);
        }
        calls.all.push(site);
    });
    calls
}

/// Visits all call sites of a function, including those of inlined calls.
fn each_call<'a>(session: &DieReader<'_, 'a>, function: &Die<'a>, mut visit: impl FnMut(&Die<'a>)) {
    let Ok(mut entries) = function.unit.entries_raw(Some(function.offset)) else {
        return;
    };
    let start = entries.next_depth();
    loop {
        let (offset, depth) = (entries.next_offset(), entries.next_depth());
        if entries.is_empty() || depth <= start && offset != function.offset {
            return;
        }
        let Ok(next) = entries.read_abbreviation() else {
            return;
        };
        let Some(abbreviation) = next else { continue };
        let specs = abbreviation.attributes();
        if session.spend(1).is_none() || entries.skip_attributes(specs).is_err() {
            return;
        }
        if let dw::DW_TAG_call_site | dw::DW_TAG_GNU_call_site = abbreviation.tag() {
            visit(&function.sibling(offset));
        }
    }
}

/// Returns the entry of the function that a call site names.
fn target<'a>(module: &Arc<Module>, session: &DieReader<'_, 'a>, site: &Die<'a>) -> Option<u64> {
    let origin = session
        .follow(site, dw::DW_AT_call_origin)
        .or_else(|| session.follow(site, dw::DW_AT_abstract_origin))?;
    let low = session.attr(&origin, dw::DW_AT_low_pc);
    let low = low.and_then(|low| {
        session
            .dwarf(&origin)
            .attr_address(&origin.unit, low)
            .ok()?
    });
    let ranged = || {
        let stated = session.attr(&origin, dw::DW_AT_ranges)?;
        let mut ranges = session
            .dwarf(&origin)
            .attr_ranges(&origin.unit, stated)
            .ok()??;
        let first = ranges.next().ok()??;
        entry_of(module, first.begin)
    };
    let named = || {
        let chain = session.chain(&origin);
        let of = |name| chain.iter().find_map(|die| session.string(die, name));
        let name = of(dw::DW_AT_linkage_name).or_else(|| of(dw::DW_AT_name))?;
        linked(module, &name.to_string_lossy())
    };
    match session.flag(&origin, dw::DW_AT_declaration) {
        true => named(),
        false => low.or_else(ranged),
    }
}

/// Returns the only function of the module with linker name `name`. The debug information of another unit may lack this
/// name. The list of all functions takes long to read, so it is asked only where no symbol tells.
fn linked(module: &Module, name: &str) -> Option<u64> {
    let mut named = module.code.functions_linked(name);
    if named.is_empty() {
        let functions = &module.functions().list;
        let described = functions.iter().find(|function| function.linkage == name);
        return described.map(|function| function.svma.0);
    }
    // Another file may have a local function of the same name.
    if named.iter().any(|(_, binding)| *binding != Binding::Local) {
        named.retain(|(_, binding)| *binding != Binding::Local);
    }
    let (first, _) = *named.first()?;
    let is_one = named.iter().all(|(svma, _)| *svma == first);
    is_one.then_some(first.0)
}
