//! Recorded moments as text: what an event was, and where a thread was.

use debuginfo::{Machine, short_name};
use replay::{Event, Moment, StateMachine, Timeline};
use store::columns::ReadEvent;

use super::{Looked, of_replay};
use crate::inspect::{hex_bytes, signal_by_name, signal_name, source_line};
use crate::protocol::Failure;
use crate::session::{ExitReport, LineReport, PlaceReport, ReasonReport, StopReport, hex};

/// How many bytes of an event's output are shown.
const MAX_OUTPUT: usize = 60;

impl Looked<'_> {
    /// Describes the moment as a stop.
    pub fn stop(&self) -> Result<StopReport, Failure> {
        let state = &self.moment.state;
        let timeline = state.timeline();
        let event = state.event().map_err(|error| of_replay(&error))?;
        let place = self.place();
        let threads = timeline.threads().map_err(|error| of_replay(&error))?;
        let thread = threads.into_iter().find(|t| t.tid == state.tid());
        Ok(StopReport {
            number: state.seq(),
            thread: state.tid() as i32,
            thread_name: thread.and_then(|thread| thread.name),
            reason: ReasonReport::Event {
                seq: state.seq(),
                steps: self.position.steps,
                what: match (ended(timeline, state.seq())?, event) {
                    (Some(exit), Event::Other(other)) if other.kind == "process_exit" => {
                        format!("the program {}", exit.text)
                    }
                    (Some(exit), _) => format!("{}; the program {}", self.what(event), exit.text),
                    (None, _) => self.what(event),
                },
                changed: Vec::new(),
                breaks: Vec::new(),
            },
            source_line: match (&place.file, place.line) {
                (Some(file), Some(line)) => source_line(file, line),
                _ => None,
            },
            place,
            displays: Vec::new(),
        })
    }

    /// Why the thread is stopped; `None` if it runs, or if the recording does not say that it is stopped.
    pub fn held_by(&self) -> Result<Option<ReasonReport>, Failure> {
        let state = &self.moment.state;
        let stop = state.held_by().map_err(|error| of_replay(&error))?;
        let Some(stop) = stop else {
            return Ok(None);
        };
        let what_came_before = || {
            let timeline = state.timeline();
            let before = match stop.seq.checked_sub(1) {
                Some(until) => timeline.last_of_thread(state.tid(), until, 0),
                None => Ok(None),
            };
            let seq = before.map_err(|error| of_replay(&error))?;
            let event = seq.map(|seq| timeline.other(seq)).transpose();
            let event = event.map_err(|error| of_replay(&error))?.flatten();
            Ok::<_, Failure>(event.filter(|event| event.kind == "exception"))
        };
        let probe = stop.probe;
        Ok(Some(match stop.reason.as_str() {
            "entry" => ReasonReport::Entry,
            "breakpoint" => ReasonReport::Breakpoint {
                probe: probe.unwrap_or_default(),
                hits: stop.hits.unwrap_or_default(),
            },
            "watch" => ReasonReport::Watch {
                probe: probe.unwrap_or_default(),
                expression: None,
                left: false,
                old: hex_bytes(stop.watch_old.as_deref().unwrap_or_default()),
                new: hex_bytes(stop.watch_new.as_deref().unwrap_or_default()),
                // The recording does not say.
                shared: false,
                by: LineReport::of(&self.moment.space, stop.pc.wrapping_sub(1)),
            },
            "step" => ReasonReport::Step,
            "signal" | "exception" => {
                let Some(event) = what_came_before()? else {
                    return Ok(Some(ReasonReport::User));
                };
                let is_unhandled = event.detail.as_deref() == Some("unhandled");
                match event.value {
                    Some(signal) => ReasonReport::Signal {
                        signal: signal as i32,
                        fault_address: event.addr.map(hex),
                        fatal: is_unhandled,
                        probe,
                    },
                    None => ReasonReport::Throw {
                        probe: probe.unwrap_or_default(),
                        what: event.aux.unwrap_or_default(),
                        message: event.text,
                        unhandled: is_unhandled,
                    },
                }
            }
            "all_threads" => ReasonReport::AllThreads,
            _ => ReasonReport::User,
        }))
    }

    /// Describes the thread's position, as far as it is known.
    pub fn place(&self) -> PlaceReport {
        let frames = &self.moment.trace.backtrace.frames;
        let Some(frame) = frames.first() else {
            return PlaceReport {
                address: "location unknown".to_owned(),
                ..PlaceReport::default()
            };
        };
        if frame.pc_is_known {
            let Moment { state, space, .. } = &self.moment;
            let to_come = StateMachine::new(state, space).calls_to_come();
            return PlaceReport::before(space, frame.pc, to_come);
        }
        PlaceReport {
            address: "not known".to_owned(),
            function: frame
                .function
                .as_ref()
                .map(|name| format!("somewhere in {name}")),
            short_name: frame
                .function
                .as_ref()
                .map(|name| (name, short_name(name)))
                .filter(|(name, short)| *name != short)
                .map(|(_, short)| format!("somewhere in {short}")),
            ..PlaceReport::default()
        }
    }

    /// Why a thread stopped, and where unless the place already says so.
    fn stopped_by(&self, event: &ReadEvent) -> String {
        let Some(text) = event.text.as_deref() else {
            return told(event);
        };
        // A jump to an address without code is in no function.
        let (why, place) = match text.split_once(" in ") {
            Some((why, place)) => (why, Some(place)),
            None => (text, None),
        };
        let why = match self.held_by().ok().flatten() {
            Some(ReasonReport::Signal {
                signal,
                fault_address,
                ..
            }) => {
                let at = fault_address.map(|address| format!(" at address {address}"));
                signal_name(signal) + &at.unwrap_or_default()
            }
            _ if place.is_none() => return told(event),
            _ => why.to_owned(),
        };
        match place.filter(|_| self.place().line.is_none()) {
            Some(place) => format!("pause: {why} in {place}"),
            None => format!("pause: {why}"),
        }
    }

    fn what(&self, event: &Event) -> String {
        let timeline = self.moment.state.timeline();
        let of_other = match event.tid() {
            Some(tid) if tid != self.position.tid => format!(" (of thread {tid})"),
            _ => String::new(),
        };
        let what = match event {
            Event::Enter(call) => format!("entry of {}", timeline.short_name(call)),
            Event::Leave(call) if call.unwound => {
                format!(
                    "{} was left by an exception or longjmp",
                    timeline.short_name(call)
                )
            }
            Event::Leave(call) if call.open_at_end => {
                let name = timeline.short_name(call);
                format!("{name} had not returned when its thread ended")
            }
            Event::Leave(call) => format!("return from {}", timeline.short_name(call)),
            Event::Other(event) => match event.kind.as_str() {
                kind @ ("stdout" | "stderr") => {
                    let bytes = event.bytes.as_deref().unwrap_or_default();
                    let shown = &bytes[..bytes.len().min(MAX_OUTPUT)];
                    let more = if shown.len() < bytes.len() { "..." } else { "" };
                    format!("{kind} {:?}{more}", String::from_utf8_lossy(shown))
                }
                "pause" => self.stopped_by(event),
                _ => told(event),
            },
        };
        what + &of_other
    }
}

/// Returns how the program has ended, if event `seq` is that of its end or a later one.
pub(super) fn ended(timeline: &Timeline, seq: u64) -> Result<Option<ExitReport>, Failure> {
    let end = timeline.end().map_err(|error| of_replay(&error))?;
    let end = end.filter(|(end, _)| *end <= seq);
    Ok(end.map(|(_, event)| exit(&event)))
}

/// Returns how the program ended or was detached, from that event.
fn exit(event: &ReadEvent) -> ExitReport {
    let signal = event
        .aux
        .as_deref()
        .filter(|_| event.kind == "process_exit");
    let code = event
        .value
        .filter(|_| signal.is_none() && event.kind == "process_exit");
    let detached = event.kind == "detached";
    let text = match (signal, code) {
        (Some(signal), _) => format!("was killed by {signal}"),
        (None, Some(code)) => format!("has ended with exit code {code}"),
        (None, None) if detached => "was left running".to_owned(),
        (None, None) => "became another program (exec)".to_owned(),
    };
    ExitReport {
        code: code.and_then(|code| i32::try_from(code).ok()),
        signal: signal.and_then(signal_by_name),
        detached,
        text,
    }
}

fn told(event: &ReadEvent) -> String {
    match event.text.as_deref() {
        Some("") | None => event.kind.clone(),
        Some(text) => format!("{}: {text}", event.kind),
    }
}
