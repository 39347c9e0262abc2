//! Probes as text, for programs and recordings.

use debuginfo::short_name;

use super::{Column, ProbeArgs, ProbeKind, ProbeReport, Text, page, show};
use crate::past::{Break, WatchLine};
use crate::protocol::Code;
use crate::quantity::count;
use crate::session::PlaceReport;

/// How many places of a probe are listed.
const MAX_PLACES: usize = 10;

/// Reports what was done with probes of a program.
pub(super) fn of_program<A>(probes: &[ProbeReport], asked: &ProbeArgs<A>) -> Text {
    match asked {
        ProbeArgs::List => of_page(probes, listed),
        ProbeArgs::Remove(_) => Text::lines(
            probes
                .iter()
                .map(|probe| format!("{} removed: {}", name(probe), short_name(&probe.location))),
        ),
        _ => of_page(probes, |probes| Text::lines(probes.iter().flat_map(set))),
    }
}

/// Shows the first page of a list, and how to see the others.
fn of_page<T>(all: &[T], shown: impl FnOnce(&[T]) -> Text) -> Text {
    let (first, rest) = all.split_at(page::ROWS.min(all.len()));
    let text = shown(first);
    match rest.len() {
        0 => text,
        more => text.and(Text::hint(format!(
            "({more} more: info breakpoints --skip {}, or --limit 0 for all)",
            page::ROWS
        ))),
    }
}

fn name(probe: &ProbeReport) -> String {
    let mut kind = probe.kind.word().to_owned();
    kind[..1].make_ascii_uppercase();
    format!("{kind} {}", probe.id)
}

/// Writes a probe, `Breakpoint 1: parse at parse.c:42`, and remarks on it.
fn set(probe: &ProbeReport) -> Vec<String> {
    let several = probe.places.len() > 1;
    // The place in the C++ runtime or the dynamic linker says nothing about what is caught.
    let is_catch = probe.kind == ProbeKind::Catchpoint;
    let mut first = match probe.places.as_slice() {
        [_] if is_catch => format!("{}: {}", name(probe), probe.location),
        [place] => format!("{}: {}", name(probe), show::place(place)),
        [] => format!("{}: {}", name(probe), short_name(&probe.location)),
        places => format!(
            "{}: {} ({} places)",
            name(probe),
            short_name(&probe.location),
            places.len()
        ),
    };
    let state = match (probe.enabled, probe.verified) {
        (false, _) => " [disabled]",
        (true, false) if is_for_next_run(probe) => " [for the next run]",
        (true, false) => " [pending: no loaded module has it]",
        (true, true) => "",
    };
    let mut lines = Vec::new();
    if several {
        lines.extend(
            probe
                .places
                .iter()
                .take(MAX_PLACES)
                .map(|place| format!("  {}", show::place(place))),
        );
        let left = probe.places.len().saturating_sub(MAX_PLACES);
        if left > 0 {
            lines.push(format!("  and {left} more"));
        }
    }
    lines.last_mut().unwrap_or(&mut first).push_str(state);
    lines.insert(0, first);
    for place in &probe.places {
        if let Some(problem) = &place.problem {
            lines.push(format!("  {}: {problem}", place.address));
        }
    }
    lines.extend(told(probe).map(|told| format!("  {told}")));
    lines
}

/// How the recorder begins the remark on a probe that existed before.
const EXISTED: &str = "Breakpoint already exists at this location";

/// The remark on a probe. If it existed before, it says what has become of its condition.
fn told(probe: &ProbeReport) -> Option<String> {
    let message = probe.message.as_ref()?;
    if !probe.existed {
        return Some(message.clone());
    }
    let condition = match &probe.condition {
        Some(condition) => format!("its condition is now {condition}"),
        None => "it has no condition".to_owned(),
    };
    let others = message.strip_prefix(EXISTED).unwrap_or_default();
    Some(format!(
        "{} exists already; {condition}{others}",
        name(probe)
    ))
}

/// Lists probes of a program.
pub(super) fn listed(probes: &[ProbeReport]) -> Text {
    if probes.is_empty() {
        return Text::line("There are none.");
    }
    let row = |probe: &ProbeReport| {
        let place = match probe.places.as_slice() {
            [place] => show::place(place),
            // A watchpoint is in memory, not in code; the kernel reports what some catchpoints wait for.
            [] if probe.kind == ProbeKind::Catchpoint => String::new(),
            _ if probe.kind == ProbeKind::Watchpoint => String::new(),
            [] if is_for_next_run(probe) => String::new(),
            places => format!("{} places", places.len()),
        };
        vec![
            probe.id.to_string(),
            short_name(&probe.location),
            state(probe),
            probe.hits.to_string(),
            probe.condition.clone().unwrap_or_default(),
            place,
        ]
    };
    let columns = [
        Column::number("ID"),
        Column::text("Location"),
        Column::text("State"),
        Column::number("Hits"),
        Column::text("Condition"),
        Column::text("Place"),
    ];
    let table = Text::table(&columns, probes.iter().map(row).collect());
    table.and(Text::lines(probes.iter().flat_map(notes)))
}

/// Whether a probe is set, and whether it stops only once.
fn state(probe: &ProbeReport) -> String {
    let state = match (probe.enabled, probe.verified) {
        (false, _) => "disabled",
        (true, true) => "set",
        (true, false) if is_for_next_run(probe) => "next run",
        (true, false) => "pending",
    };
    match probe.once {
        true => format!("{state}, once"),
        false => state.to_owned(),
    }
}

/// Says for an answer about a probe that the change is for the next run, if it is.
pub(super) fn in_which_run(probe: &ProbeReport) -> &'static str {
    match is_for_next_run(probe) {
        true => ", in the next run",
        false => "",
    }
}

/// Returns whether the program has ended and its next run sets the probe.
fn is_for_next_run(probe: &ProbeReport) -> bool {
    probe.code == Some(Code::NotRunning)
}

/// Describes the faults of a probe, and why its hits are slower than possible, if they are.
fn notes(probe: &ProbeReport) -> impl Iterator<Item = String> {
    let id = probe.id;
    let message = probe.message.as_ref();
    let message = message.map(|message| format!("{id}: {message}"));
    let why = |place: &PlaceReport| {
        let why = place.not_compiled.as_ref()?;
        Some(match place.compiled {
            Some(true) => format!("{id}: its condition is compiled, {why}"),
            _ => format!("{id}: not compiled into the program: {why}"),
        })
    };
    message.into_iter().chain(probe.places.iter().find_map(why))
}

/// Reports what was done with breakpoints of a recording, which may be the past of a program.
pub(super) fn breaks<A>(breaks: &[Break], of_a_program: bool, asked: &ProbeArgs<A>) -> Text {
    match asked {
        ProbeArgs::List => of_page(breaks, listed_breaks),
        ProbeArgs::Remove(_) => Text::line(format!(
            "{} removed",
            count(breaks.len() as u64, "breakpoint")
        )),
        _ => {
            let added = |added: &Break| {
                let live = "It stops runs through the past; to stop the program, first: goto live";
                let title = if added.caught.is_some() {
                    "Catchpoint"
                } else {
                    "Breakpoint"
                };
                let mut line = format!(
                    "{title} {}: {} ({})",
                    added.id,
                    short_name(&added.location),
                    reach(added)
                );
                line += &conditions(added).map_or_else(String::new, |when| format!(", {when}"));
                if added.disabled {
                    line += " [disabled]";
                }
                [Some(line), of_a_program.then(|| live.to_owned())]
            };
            of_page(breaks, |breaks| {
                Text::lines(breaks.iter().flat_map(added).flatten())
            })
        }
    }
}

/// The functions or addresses of a breakpoint in a recording.
fn reach(known: &Break) -> String {
    if let Some(caught) = known.caught {
        return count(caught, "event");
    }
    match known.addresses.is_empty() {
        true => count(known.functions.len() as u64, "function"),
        false => count(known.addresses.len() as u64, "place"),
    }
}

/// When a breakpoint of a recording stops; `None`: each time.
fn conditions(known: &Break) -> Option<String> {
    let mut all = Vec::new();
    all.extend(
        known
            .condition
            .as_ref()
            .map(|text| format!("only if {text}")),
    );
    if known.hit_count > 0 {
        all.push(format!("at hit {} of the whole run", known.hit_count));
    }
    if known.ignored > 0 {
        all.push(super::probes::skips(known.ignored));
    }
    if known.once {
        all.push("once".to_owned());
    }
    (!all.is_empty()).then(|| all.join(", "))
}

/// Lists breakpoints of a recording.
pub(super) fn listed_breaks(breaks: &[Break]) -> Text {
    if breaks.is_empty() {
        return Text::line(
            "There are no breakpoints; runs through time stop where the recording did.",
        );
    }
    let knows_all = breaks.iter().any(|known| !known.addresses.is_empty());
    let is_plain =
        |known: &Break| conditions(known).is_none() && !known.disabled && known.caught.is_none();
    if !knows_all && breaks.iter().all(is_plain) {
        let row = |known: &Break| {
            vec![
                known.id.to_string(),
                short_name(&known.location),
                known.hits.to_string(),
                known.functions.len().to_string(),
            ]
        };
        let columns = [
            Column::number("ID"),
            Column::text("Location"),
            Column::number("Hits"),
            Column::number("Functions"),
        ];
        return Text::table(&columns, breaks.iter().map(row).collect());
    }
    let has_places_alone = breaks.iter().all(|known| !known.addresses.is_empty());
    let row = |known: &Break| {
        let state = if known.disabled { "disabled" } else { "set" };
        vec![
            known.id.to_string(),
            short_name(&known.location),
            state.to_owned(),
            known.hits.to_string(),
            conditions(known).unwrap_or_default(),
            match has_places_alone {
                true => known.addresses.len().to_string(),
                false => reach(known),
            },
        ]
    };
    let columns = [
        Column::number("ID"),
        Column::text("Location"),
        Column::text("State"),
        Column::number("Hits"),
        Column::text("Stops"),
        match has_places_alone {
            true => Column::number("Places"),
            false => Column::text("Where"),
        },
    ];
    Text::table(&columns, breaks.iter().map(row).collect())
}

/// Reports what was done with watches of a recording.
pub(super) fn watches<A>(watches: &[WatchLine], asked: &ProbeArgs<A>) -> Text {
    match (asked, watches.is_empty()) {
        (ProbeArgs::Remove(_), true) => Text::line("Nothing was watched."),
        (ProbeArgs::Remove(_), false) => {
            let removed =
                |line: &WatchLine| format!("Watch {} removed: {}", line.id, line.expression);
            Text::lines(watches.iter().map(removed))
        }
        (_, true) => Text::line("Nothing is watched."),
        (_, false) => {
            let row = |line: &WatchLine| {
                vec![
                    line.id.to_string(),
                    line.expression.clone(),
                    line.hits.to_string(),
                    scope(line),
                ]
            };
            let columns = [
                Column::number("ID"),
                Column::text("Expression"),
                Column::number("Hits"),
                Column::text("Where"),
            ];
            Text::table(&columns, watches.iter().map(row).collect())
        }
    }
}

pub(super) fn watched(line: &WatchLine) -> Text {
    Text::line(format!(
        "Watch {}: {} ({})",
        line.id,
        line.expression,
        scope(line)
    ))
}

fn scope(line: &WatchLine) -> String {
    match &line.function {
        Some(function) => format!("in {function}"),
        None => "everywhere".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::Chosen;

    #[test]
    fn a_probe_that_is_removed_is_named_and_nothing_else() {
        let reply = serde_json::json!({
            "id": 3, "kind": "breakpoint", "location": "plugin_init", "verified": false, "enabled": true, "places": [],
            "hit_count": 0, "all_threads": false, "once": false, "hits": 0, "existed": false,
            "message": "no loaded module has plugin_init; it waits until one does",
        });
        let probe: ProbeReport = serde_json::from_value(reply).expect("a probe");
        assert_eq!(
            of_program(std::slice::from_ref(&probe), &ProbeArgs::Add(())),
            Text::lines(
                [
                    "Breakpoint 3: plugin_init [pending: no loaded module has it]",
                    "  no loaded module has plugin_init; it waits until one does"
                ]
                .map(str::to_owned)
            )
        );
        assert_eq!(
            of_program::<()>(&[probe], &ProbeArgs::Remove(Chosen::default())),
            Text::line("Breakpoint 3 removed: plugin_init")
        );
    }
}
