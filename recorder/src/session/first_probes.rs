//! Checks whether the first probes can be set, before anything is written and the program runs.

use std::{fs::File, os::unix::fs::FileExt};

use debuginfo::{AddressSpace, Diagnostic, Machine};

use crate::{
    Error, Result,
    live::{
        FirstProbes, Location, LoggedPlace,
        probes::{
            logged_place::{self, Globals, Unplaced},
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
                check_logged(place, (space, &machine), first.pending, &mut free)
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

fn check_logged(
    place: &LoggedPlace,
    (space, machine): (&AddressSpace, &dyn Machine),
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
            let hint = "it is in a library that is loaded later: --pending";
            let hint = match &what.hint {
                Some(near) => format!("{near} Or {hint}"),
                None => hint.to_owned(),
            };
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
