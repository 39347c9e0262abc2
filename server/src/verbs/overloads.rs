//! Functions of one name in a list of probes: the types of their parameters tell their places apart.

use std::collections::{HashMap, HashSet};

use debuginfo::AddressSpace;
use debuginfo::scope::function_type;

use super::ProbeReport;
use crate::inspect::short_name;
use crate::location;
use crate::session::PlaceReport;

/// Adds the types of the parameters to places in different functions of the same name.
pub(super) fn tell_apart(space: &AddressSpace, probes: &mut [ProbeReport]) {
    let shared = shared_names(space, probes);
    for place in probes.iter_mut().flat_map(|probe| &mut probe.places) {
        if let Some(name) = place
            .function
            .as_ref()
            .filter(|name| shared.contains(*name))
        {
            let entry = entry(space, place);
            place.parameters = entry.and_then(|entry| parameters(space, name, entry));
        }
    }
}

/// Returns the names that more than one function among the places has.
fn shared_names(space: &AddressSpace, probes: &[ProbeReport]) -> HashSet<String> {
    let mut by_name: HashMap<&str, Vec<&PlaceReport>> = HashMap::new();
    for place in probes.iter().flat_map(|probe| &probe.places) {
        if let Some(name) = &place.function {
            by_name.entry(name).or_default().push(place);
        }
    }
    let are_of_several = |places: &[&PlaceReport]| {
        let entries = places.iter().filter_map(|place| entry(space, place));
        entries.collect::<HashSet<u64>>().len() > 1
    };
    by_name
        .into_iter()
        .filter(|(_, places)| places.len() > 1 && are_of_several(places))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Returns the entry of a place's function, unless the place is in a copy that is inlined into another one.
fn entry(space: &AddressSpace, place: &PlaceReport) -> Option<u64> {
    let address = location::address(&place.address).ok()?;
    let function = space.function_at(address)?;
    (Some(&function.name) == place.function.as_ref()).then_some(function.entry)
}

/// Returns the types of the parameters as a location states them: `(int, char)`.
fn parameters(space: &AddressSpace, name: &str, entry: u64) -> Option<String> {
    let mapped = space.at(entry)?;
    let ty = function_type(&mapped.module, mapped.svma(entry))?;
    let names: Vec<String> = ty.parameters().iter().map(|ty| ty.name()).collect();
    // A location does not state the object of a member function.
    let mut lists = [Some(&names[..]), names.get(1..)].into_iter().flatten();
    let means_it = |list: &&[String]| {
        let location = format!("{name}({})", list.join(", "));
        let meant = space.functions_matching(&location);
        meant.iter().any(|function| function.entry == entry)
    };
    let list = lists.find(means_it)?;
    let short: Vec<String> = list.iter().map(|name| short_name(name)).collect();
    Some(format!("({})", short.join(", ")))
}
