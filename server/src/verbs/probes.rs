//! The common part of `break`, `logpoint`, `watch` and `catch`: listing, removing and switching probes.

use debuginfo::LineError;
use recorder::live::{
    Access, Action, EvaluatedBy, Location, ProbeId, ProbeSpec, ProbeState, ProbeView,
};
use serde::{Deserialize, Serialize};

use super::{Call, overloads};
use crate::inspect::{self, signal_name};
use crate::location::{LineTarget, ParsedLocation, Target};
use crate::protocol::{Code, Details, Failure};
use crate::quantity::count;
use crate::session::{LiveSession, Origin, PlaceReport, hex, of_recorder};

/// Arguments of a verb about probes; `A` holds those of adding one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ProbeArgs<A> {
    /// Adds a probe.
    Add(A),
    /// Lists all probes of this kind.
    List,
    /// Removes probes.
    Remove(Chosen),
    /// Switches probes on.
    Enable(Chosen),
    /// Switches probes off.
    Disable(Chosen),
}

/// A choice of probes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Chosen {
    /// The probes with these numbers.
    pub ids: Vec<ProbeId>,
    /// All probes of this kind; `break remove` means those of every kind.
    pub all: bool,
}

/// Kinds of probes, named after the verbs that make them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// `break`.
    Breakpoint,
    /// `logpoint`.
    Logpoint,
    /// `watch`.
    Watchpoint,
    /// `catch`.
    Catchpoint,
}

/// A probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Its number.
    pub id: ProbeId,
    /// Its kind.
    pub kind: ProbeKind,
    /// Its location, as a user would write it.
    pub location: String,
    /// The probe is in place.
    pub verified: bool,
    /// The probe is switched on.
    pub enabled: bool,
    /// [`Code::ModuleNotLoaded`] while no loaded module has such a place, [`Code::NotRunning`] if the program has ended and
    /// `restart` sets the probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Its places.
    pub places: Vec<PlaceReport>,
    /// The probe counts only if this expression is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The probe acts only on the Nth hit; 0: on every hit.
    pub hit_count: u64,
    /// The text of a logpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// A hit stops all threads.
    pub all_threads: bool,
    /// The probe stops once and is then removed.
    pub once: bool,
    /// How often the probe was hit with its condition true.
    pub hits: u64,
    /// How many of its next hits are skipped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skips: u64,
    /// The probe existed before; its condition was replaced.
    pub existed: bool,
    /// A remark on the probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The probes that were added, listed, changed or removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbesReply {
    /// The probes, by number.
    pub probes: Vec<ProbeReport>,
}

/// Performs the action; `add` makes the specifications of new probes.
pub(super) fn run<A>(
    call: &Call<'_>,
    args: ProbeArgs<A>,
    kind: ProbeKind,
    add: impl FnOnce(&LiveSession, A) -> Result<Vec<ProbeSpec>, Failure>,
) -> Result<ProbesReply, Failure> {
    let session = call.live()?;
    let views = match args {
        ProbeArgs::List => of_kind(&session, kind),
        ProbeArgs::Add(args) => {
            may_be_added(&session, kind)?;
            let specs = add(&session, args)?;
            insert_all(&session, specs)?
        }
        ProbeArgs::Remove(chosen) => {
            // `delete` means probes of every kind, as in gdb.
            let all = (kind == ProbeKind::Breakpoint).then(|| session.live.probes());
            let known = all.unwrap_or_else(|| of_kind(&session, kind));
            let removed = each(&known, kind, &chosen, |id| session.live.remove_probe(id))?;
            for gone in &removed {
                session.at_stops.set(gone.id, Vec::new());
            }
            removed
        }
        ProbeArgs::Enable(chosen) => {
            each(&switched(&session, kind, &chosen), kind, &chosen, |id| {
                session.live.enable_probe(id, true)
            })?
        }
        ProbeArgs::Disable(chosen) => {
            each(&switched(&session, kind, &chosen), kind, &chosen, |id| {
                session.live.enable_probe(id, false)
            })?
        }
    };
    Ok(ProbesReply {
        probes: reports(&session, &views),
    })
}

/// Checks that a probe can be added. Once the program has ended, `restart` sets it; a place in memory is known only while
/// the program is there.
pub(super) fn may_be_added(session: &LiveSession, kind: ProbeKind) -> Result<(), Failure> {
    match kind {
        ProbeKind::Watchpoint => session.must_run(),
        _ => may_be_changed(session),
    }
}

/// Returns whether `restart` can start the program again.
fn can_run_again(session: &LiveSession) -> bool {
    matches!(session.origin, Origin::Started(_))
}

/// Describes probes of a session. Once its program has ended, those without a place wait for the next run.
pub(super) fn reports(session: &LiveSession, views: &[ProbeView]) -> Vec<ProbeReport> {
    let mut reports: Vec<ProbeReport> = views.iter().map(ProbeReport::of).collect();
    if session.has_ended() && can_run_again(session) {
        for code in reports.iter_mut().filter_map(|report| report.code.as_mut()) {
            *code = Code::NotRunning;
        }
    }
    overloads::tell_apart(&session.live.space(), &mut reports);
    reports
}

/// Checks that a probe's condition or its count of skipped hits can be changed. Once the program has ended, `restart` sets it
/// as it is then.
pub(super) fn may_be_changed(session: &LiveSession) -> Result<(), Failure> {
    match can_run_again(session) {
        true => Ok(()),
        false => session.must_run(),
    }
}

/// Calls `remove` for each chosen number of a recording, or once with `None` for all.
pub(super) fn each_id<T>(
    chosen: &Chosen,
    mut remove: impl FnMut(Option<u32>) -> Result<Vec<T>, Failure>,
) -> Result<Vec<T>, Failure> {
    if chosen.all {
        return remove(None);
    }
    let mut removed = Vec::new();
    for id in &chosen.ids {
        removed.extend(remove(Some(*id))?);
    }
    match chosen.ids.is_empty() {
        true => Err(Failure::bad_request("name the numbers, or --all")),
        false => Ok(removed),
    }
}

/// Adds all probes or none; of a program that has ended, for its next run.
pub(super) fn insert_all(
    session: &LiveSession,
    specs: Vec<ProbeSpec>,
) -> Result<Vec<ProbeView>, Failure> {
    if session.has_ended() {
        let kept = specs.into_iter().map(|spec| session.live.keep_probe(spec));
        return Ok(kept.collect());
    }
    let mut added: Vec<ProbeView> = Vec::with_capacity(specs.len());
    for spec in specs {
        match session.live.add_probe(spec) {
            Ok(view) => added.push(view),
            Err(error) => {
                for view in added.iter().filter(|view| !view.existed) {
                    // A probe that is gone already need not be removed.
                    let _ = session.live.remove_probe(view.id);
                }
                return Err(of_recorder(&error));
            }
        }
    }
    Ok(added)
}

fn of_kind(session: &LiveSession, kind: ProbeKind) -> Vec<ProbeView> {
    let mut views = session.live.probes();
    views.retain(|view| ProbeKind::of(&view.spec) == kind);
    views
}

/// Returns the probes that may be switched. All kinds share their numbers, so `disable 3` may mean any kind.
fn switched(session: &LiveSession, kind: ProbeKind, chosen: &Chosen) -> Vec<ProbeView> {
    match (kind, chosen.all) {
        (ProbeKind::Breakpoint, false) => session.live.probes(),
        _ => of_kind(session, kind),
    }
}

fn each(
    known: &[ProbeView],
    kind: ProbeKind,
    chosen: &Chosen,
    change: impl Fn(ProbeId) -> recorder::Result<ProbeView>,
) -> Result<Vec<ProbeView>, Failure> {
    let ids = match chosen.all {
        true => known.iter().map(|view| view.id).collect(),
        false => chosen.ids.clone(),
    };
    if ids.is_empty() && !chosen.all {
        return Err(Failure::bad_request("name the numbers, or --all"));
    }
    // All or nothing: a mistyped number changes nothing.
    if let Some(id) = ids
        .iter()
        .find(|id| known.iter().all(|view| view.id != **id))
    {
        return Err(no_such(*id, kind, known));
    }
    ids.into_iter()
        .map(|id| change(id).map_err(|error| of_recorder(&error)))
        .collect()
}

pub(super) fn no_such(id: ProbeId, kind: ProbeKind, known: &[ProbeView]) -> Failure {
    let word = kind.word();
    let numbers: Vec<String> = known.iter().map(|view| view.id.to_string()).collect();
    Failure::new(Code::BreakpointNotFound, format!("there is no {word} {id}")).hint(
        match numbers.as_slice() {
            [] => format!("there are no {word}s"),
            numbers => format!("{word}s: {}", numbers.join(", ")),
        },
    )
}

/// Resolves the location of a probe. With `pending`, a place that no loaded module has may be in a module loaded later.
///
/// # Errors
/// [`Code::InvalidFile`], [`Code::InvalidLine`], [`Code::InvalidColumn`], [`Code::InvalidFunction`],
/// [`Code::InvalidAddress`].
pub(super) fn located(
    session: &LiveSession,
    target: &Target,
    pending: bool,
) -> Result<Location, Failure> {
    let space = session.live.space();
    if let Some(expression) = target.address_expression() {
        let address = session
            .look(|view| inspect::evaluate_address(view, expression))
            .map_err(|failure| match failure.hint {
                // A star in front may be meant as a pattern.
                None if !expression.starts_with('$') => failure.hint(format!(
                    "an address is written as *0x401136; for functions that match: --function '{target}'"
                )),
                _ => failure,
            })?;
        return match space.at(address) {
            Some(_) => Ok(Location::Address(address)),
            None => Err(no_code(address)),
        };
    }
    match target.parse()? {
        ParsedLocation::Function(name) => {
            let known = pending || !space.function_places(&name).is_empty();
            match known {
                true => Ok(Location::Function(name)),
                false => Err(no_function(&space, &name)),
            }
        }
        ParsedLocation::Line(line) => line_location(&space, line, pending),
        ParsedLocation::LineHere(line) => {
            let here = session.look(|view| inspect::line_here(view, line))?;
            line_location(&space, here, false)
        }
        ParsedLocation::Address(address) => match space.at(address) {
            Some(_) => Ok(Location::Address(address)),
            None => Err(no_code(address)),
        },
    }
}

/// Refuses a location that no loaded module has.
///
/// # Errors
/// As for [`located`].
pub(crate) fn checked_location(
    space: &debuginfo::AddressSpace,
    location: &Location,
) -> Result<(), Failure> {
    match location {
        Location::Function(name) => match space.function_places(name).is_empty() {
            true => Err(no_function(space, name)),
            false => Ok(()),
        },
        Location::Line { file, line, column } => {
            let target = LineTarget {
                file: file.clone(),
                line: *line,
                column: *column,
            };
            line_location(space, target, false).map(drop)
        }
        Location::Address(address) => match space.at(*address) {
            Some(_) => Ok(()),
            None => Err(no_code(*address)),
        },
        _ => Ok(()),
    }
}

fn no_code(address: u64) -> Failure {
    let message = format!("no module has code at {address:#x}");
    Failure::new(Code::InvalidAddress, message)
        .hint("see where functions are: hindsight disassemble")
}

fn no_function(space: &debuginfo::AddressSpace, name: &str) -> Failure {
    let nearest = inspect::nearest_functions(space, name);
    let mut own = space.modules().iter().filter(|mapped| !mapped.is_system);
    let is_bare = !own.any(|mapped| mapped.module.has_dwarf());
    let hint = match nearest.as_slice() {
        [] if is_bare => {
            "the program has no debug information: compile it with -g, or install its debug files"
                .to_owned()
        }
        [] => {
            "check the name (* stands for any text), or wait for its module: --pending".to_owned()
        }
        near => format!("did you mean {}?", near.join(" or ")),
    };
    let message = format!("no loaded module has a function {name}");
    Failure::new(Code::InvalidFunction, message)
        .hint(hint)
        .details(Details {
            nearest,
            ..Details::default()
        })
}

fn line_location(
    space: &debuginfo::AddressSpace,
    target: LineTarget,
    pending: bool,
) -> Result<Location, Failure> {
    let LineTarget { file, line, column } = target;
    match space.resolve_line(&file, line, column) {
        Ok(_) => {}
        Err(LineError::UnknownFile { .. } | LineError::NoLineTables) if pending => {}
        Err(error) => {
            let failure = inspect::of_line_error(&error);
            return Err(match &error {
                LineError::UnknownFile { nearest, .. } if nearest.is_empty() => {
                    failure.hint("compile it with -g, or wait for its module: --pending")
                }
                LineError::UnknownFile { .. } => failure.hint("wait for its module: --pending"),
                _ => failure,
            });
        }
    }
    Ok(Location::Line { file, line, column })
}

impl ProbeKind {
    pub(super) fn of(spec: &ProbeSpec) -> ProbeKind {
        match (&spec.location, &spec.action) {
            (_, Action::Log(_)) => ProbeKind::Logpoint,
            (Location::Memory { .. } | Location::Logged(_), _) => ProbeKind::Watchpoint,
            (
                Location::Throw { .. } | Location::Panic | Location::Signal(_) | Location::Event(_),
                _,
            ) => ProbeKind::Catchpoint,
            _ => ProbeKind::Breakpoint,
        }
    }

    /// Returns the name of the kind.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ProbeKind::Breakpoint => "breakpoint",
            ProbeKind::Logpoint => "logpoint",
            ProbeKind::Watchpoint => "watchpoint",
            ProbeKind::Catchpoint => "catchpoint",
        }
    }

    /// Returns the name of the kind, as the first word of a line.
    pub(super) fn title(self) -> String {
        let mut word = self.word().to_owned();
        word[..1].make_ascii_uppercase();
        word
    }
}

impl ProbeReport {
    /// Describes a probe.
    pub(super) fn of(view: &ProbeView) -> ProbeReport {
        let spec = &view.spec;
        let (all_threads, once, template) = match &spec.action {
            Action::Break { all_threads, once } => (*all_threads, *once, None),
            Action::Log(message) => (false, false, Some(message.source().to_owned())),
            Action::LogWrites => (false, false, None),
        };
        ProbeReport {
            id: view.id,
            kind: ProbeKind::of(spec),
            location: written(&spec.location),
            verified: view.state == ProbeState::Bound,
            enabled: view.state != ProbeState::Disabled,
            code: (view.state == ProbeState::Pending).then_some(Code::ModuleNotLoaded),
            places: view.places.iter().map(place).collect(),
            condition: spec.condition_text(),
            hit_count: spec.hit_count,
            template,
            all_threads,
            once,
            hits: view.hits,
            skips: view.skips(),
            existed: view.existed,
            message: told(view),
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Says that hits are skipped.
pub(super) fn skips(hits: u64) -> String {
    match hits {
        1 => "skips its next hit".to_owned(),
        hits => format!("skips its next {}", count(hits, "hit")),
    }
}

/// Returns the remark on a probe.
fn told(view: &ProbeView) -> Option<String> {
    let failed = view.failed.as_ref().map(|failed| failed.words());
    let skips = (view.skips() > 0).then(|| skips(view.skips()));
    let told = view.message.iter().cloned().chain(skips).chain(failed);
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join("; "))
}

fn place(place: &recorder::live::ProbePlace) -> PlaceReport {
    let (compiled, not_compiled) = match &place.judged {
        None => (None, None),
        Some(EvaluatedBy::InProgram) => (Some(true), None),
        Some(EvaluatedBy::Partly(what)) => (Some(true), Some(what.clone())),
        Some(EvaluatedBy::Asked(why) | EvaluatedBy::ByTracer(why)) => {
            (Some(false), Some(why.clone()))
        }
    };
    PlaceReport {
        address: hex(place.address),
        function: place.function.clone(),
        short_name: None,
        parameters: None,
        file: place.file.clone(),
        line: place.line,
        column: place.column.filter(|column| *column > 0),
        problem: place.problem.clone(),
        compiled,
        not_compiled,
    }
}

/// Writes a location as a user would.
fn written(location: &Location) -> String {
    match location {
        Location::Memory { access, len, .. } => {
            let access = match access {
                Access::Write => "write",
                Access::Read => "read",
                Access::Both => "access",
            };
            format!("{location} ({access}, {len} bytes)")
        }
        Location::Logged(_) => format!("{location} (its writes are logged)"),
        Location::Signal(Some(signal)) => signal_name(*signal),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_asked_is_told_by_its_action() {
        type Any = ProbeArgs<Chosen>;
        let read = |value| serde_json::from_value::<Any>(value);
        assert_eq!(read(json!({"action": "list"})).unwrap(), Any::List);
        let removed = read(json!({"action": "remove", "ids": [3]})).unwrap();
        let three = Chosen {
            ids: vec![3],
            all: false,
        };
        assert_eq!(removed, Any::Remove(three));
        assert!(read(json!({"action": "remove", "id": 3})).is_err());
        assert!(read(json!({})).is_err());
    }

    #[test]
    fn locations_are_written_as_they_are_read() {
        let line = |column| Location::Line {
            file: "a.c".to_owned(),
            line: 3,
            column,
        };
        assert_eq!(written(&line(None)), "a.c:3");
        assert_eq!(written(&line(Some(7))), "a.c:3:7");
        assert_eq!(written(&Location::Address(0x40)), "*0x40");
        assert_eq!(written(&Location::Signal(Some(11))), "SIGSEGV");
        let throw = Location::Throw {
            pattern: Some("std::*".to_owned()),
            unhandled_only: true,
        };
        assert_eq!(written(&throw), "throw std::* (unhandled)");
    }

    #[test]
    fn a_probe_that_logs_is_a_logpoint_wherever_it_is() {
        let spec = |location, action| ProbeSpec {
            location,
            action,
            condition: None,
            hit_count: 0,
        };
        let stop = Action::Break {
            all_threads: false,
            once: false,
        };
        let log = Action::Log(inspect::message("x").unwrap());
        let main = || Location::Function("main".to_owned());
        assert_eq!(
            ProbeKind::of(&spec(main(), stop.clone())),
            ProbeKind::Breakpoint
        );
        assert_eq!(ProbeKind::of(&spec(main(), log)), ProbeKind::Logpoint);
        assert_eq!(
            ProbeKind::of(&spec(Location::Panic, stop)),
            ProbeKind::Catchpoint
        );
    }
}
