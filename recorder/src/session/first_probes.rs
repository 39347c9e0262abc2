//! Checks whether the first probes can be set, before anything is written and the program runs.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
};

use debuginfo::{AddressSpace, Diagnostic, Machine};
use expr::Kept;

use crate::{
    Error, Observer, Result,
    live::{
        FirstProbes, Location, LoggedPlace,
        probes::{
            logged_place::{self, Globals, Unplaced},
            names::missing_in_message,
            places::in_code,
            watchpoints::too_few,
        },
    },
};

/// How many places of at most eight bytes the processor watches.
const WATCHPOINTS: usize = 4;

/// Refuses probes that cannot work in a process that has these modules.
pub(super) fn check(first: &FirstProbes, space: &AddressSpace, pid: i32) -> Result<()> {
    let memory = File::open(format!("/proc/{pid}/mem"))
        .map_err(Error::system("open the program's memory"))?;
    let machine = Globals(|address, bytes: &mut [u8]| memory.read_exact_at(bytes, address));
    let mut free = WATCHPOINTS;
    for spec in &first.specs {
        let checked = match &spec.location {
            Location::Logged(place) => {
                check_logged(place, (space, &machine, pid), first.pending, &mut free)
            }
            _ if first.pending => Ok(()),
            _ => (first.check)(space, spec),
        };
        checked.map_err(|reason| Error::Probe {
            place: spec.location.to_string(),
            reason,
        })?;
    }
    Ok(())
}

/// Warns of messages with values that do not exist at their places.
pub(super) fn warn(first: &FirstProbes, space: &AddressSpace, observer: &dyn Observer) {
    let kept = Kept::default();
    for spec in &first.specs {
        // Places that no module has yet may come with a later one.
        let places = in_code(space, &spec.location).unwrap_or_default();
        if let Some(told) = missing_in_message(space, &kept, spec, &places) {
            observer.warning(&format!("--logpoint {}: {told}", spec.location).into());
        }
    }
}

/// Returns whether the program itself, and not a library, has no debug information, which names its variables.
fn is_undescribed(space: &AddressSpace, pid: i32) -> bool {
    let Ok(path) = fs::read_link(format!("/proc/{pid}/exe")) else {
        return false;
    };
    let mut modules = space.modules().iter();
    let program = modules.find(|mapped| mapped.module.path() == path);
    program.is_some_and(|program| !program.module.has_dwarf())
}

fn check_logged(
    place: &LoggedPlace,
    (space, machine, pid): (&AddressSpace, &dyn Machine, i32),
    pending: bool,
    free: &mut usize,
) -> std::result::Result<(), Diagnostic> {
    let found = match logged_place::find(place, space, machine) {
        Ok(found) => found,
        Err(Unplaced::Missing(_)) if pending => {
            // It takes at least one once its library is loaded.
            *free = free.saturating_sub(1);
            return Ok(());
        }
        Err(Unplaced::Missing(what)) => {
            let first = match &what.hint {
                Some(near) => format!("{near} Or"),
                None if is_undescribed(space, pid) => {
                    "the program has no debug information: compile it with -g; or".to_owned()
                }
                None => "check the name; or".to_owned(),
            };
            let hint = format!("{first}, if it is in a library that is loaded later: --pending");
            return Err(Diagnostic {
                hint: Some(hint),
                ..what
            });
        }
        Err(Unplaced::Refused(what) | Unplaced::Unreachable(what)) => return Err(what),
        // `find` has looked for its function.
        Err(Unplaced::InCalls { function, .. }) => {
            return Err(format!("no code of {function} was found").into());
        }
    };
    let needed = found.needed();
    if needed > *free {
        return Err(too_few(&place.to_string(), &found, *free));
    }
    *free -= needed;
    Ok(())
}
