//! Generates the code of one probe at one address: chooses what it does, where it lies, and its counter.

use store::control::{LogFormat, LogKind, LogPart, LogValue};
use store::{control::Control, wire};

use debuginfo::{AddressSpace, location::ir::Int};
use expr::{MessagePart, Shown, compile_condition, compile_message};

use super::{
    plan::in_hook,
    stub::{Log, Program, Question, Then, assemble},
};
use crate::{
    clock,
    displace::{MAX_TRAMPOLINE_BYTES, patch_bytes},
    live::{
        breakpoints::{
            Breakpoints,
            sites::{Compiled, User},
        },
        condition::{Condition, Message},
        event_loop::Tracer,
        journal::Journal,
        model::{Action, EvaluatedBy, ProbeId, ProbeSpec},
        probes::{Probe, Probes},
        tracee::Tracee,
    },
};

/// Upper bound for the size of any code.
const MOST_CODE_BYTES: u64 = 32 << 10;
const COUNTED: &str = "the tracer counts how often threads come there";
const SCRIPT: &str = "its condition is JavaScript";
const SKIPPED: &str = "its next hits are skipped";
const KEPT: &str = "the registers or the stack are kept with it";
/// Size in bytes of `struct hs_log_spec` in agent/runtime/logpoint.c, and of the addition for each string.
const SPEC_BYTES: u64 = 16;
const SPEC_TEXT_BYTES: u64 = 8;

/// The words of a message, and how to format them.
struct Words {
    parts: Vec<LogPart>,
    values: Vec<(u32, Int)>,
    /// First word and capacity in bytes of each string.
    texts: Vec<(u32, u32)>,
    count: u32,
}

impl Tracer {
    /// Generates the code of a probe at an address. Returns who evaluates the probe.
    ///
    /// # Errors
    /// Why there is no code.
    pub(super) fn make_code(
        &mut self,
        id: ProbeId,
        spec: &ProbeSpec,
        address: u64,
    ) -> Result<EvaluatedBy, String> {
        let site = self
            .breakpoints
            .sites
            .at(address)
            .ok_or("it has no place")?;
        if site.users.len() != 1 || !site.users.contains(&User::Probe(id)) {
            return Err("something else stops at the same place".to_owned());
        }
        let at = site.patched_at;
        let displacement = self.breakpoints.displace(&self.tracee, address, at)?;
        let (mut program, words, judged) =
            self.breakpoints
                .program(&mut self.probes, &self.tracee, id, spec, address)?;
        let start = self.room(at)?;
        let spec_bytes = words.as_ref().map_or(0, |words| {
            SPEC_BYTES + SPEC_TEXT_BYTES * words.texts.len() as u64
        });
        if let Then::Log(log) = &mut program.then {
            log.spec_at = start;
        }
        let stub = assemble(&program, start + spec_bytes).map_err(|error| error.to_string())?;
        let len = spec_bytes + stub.bytes.len() as u64 + MAX_TRAMPOLINE_BYTES as u64;
        if len > MOST_CODE_BYTES {
            return Err("it takes too much code".to_owned());
        }
        let copy = displacement
            .encode(stub.end)
            .map_err(|refusal| refusal.to_string())?;
        if copy.moves.len() != displacement.instruction_count() {
            return Err("it begins with a system call".to_owned());
        }
        if let Some(words) = &words {
            self.probes.check_format(id, words)?;
        }
        let jump = patch_bytes(at, stub.at).map_err(|refusal| refusal.to_string())?;
        let mut bytes = words
            .as_ref()
            .map_or_else(Vec::new, |words| log_spec(id, words));
        bytes.extend_from_slice(&stub.bytes);
        bytes.extend_from_slice(&copy.bytes);
        let written = self.tracee.memory.write_raw(start, &bytes);
        written.map_err(|error| error.to_string())?;
        self.breakpoints.sites.take_room(start, bytes.len() as u64);
        let exact = copy.moves.iter().filter_map(|m| {
            let original = self.breakpoints.exact_pc(&self.tracee, m.old)?;
            Some((m.new, original))
        });
        let compiled = Compiled {
            exact: exact.collect(),
            stub,
            copy,
            jump,
            is_armed: false,
        };
        self.breakpoints
            .sites
            .attach(&self.tracee.memory, address, compiled);
        if let Some(words) = words {
            self.probes.tell_format(&self.journal, id, words);
        }
        self.probes.stopless.are_expected |= program.question.is_some();
        Ok(judged)
    }

    fn room(&mut self, near: u64) -> Result<u64, String> {
        if let Some(at) = self.breakpoints.sites.room_of(near, MOST_CODE_BYTES) {
            return Ok(at);
        }
        self.make_room(near).map_err(|error| error.to_string())?;
        let found = self.breakpoints.sites.room_of(near, MOST_CODE_BYTES);
        found.ok_or_else(|| "there is no room for code within reach".to_owned())
    }
}

impl Probes {
    /// Checks that all places of a probe produce the same words.
    fn check_format(&self, id: ProbeId, words: &Words) -> Result<(), String> {
        let probe = self.by_id.get(&id).ok_or("it is gone")?;
        match &probe.format {
            Some(format) if *format != words.parts => {
                Err("its values are of other types at another place".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn tell_format(&mut self, journal: &Journal, id: ProbeId, words: Words) {
        let Some(probe) = self.by_id.get_mut(&id) else {
            return;
        };
        if probe.format.is_none() {
            probe.format = Some(words.parts.clone());
            journal.send(Control::LogFormat(LogFormat {
                ticks: clock::ticks(),
                probe: id,
                parts: words.parts,
            }));
        }
    }
}

impl Breakpoints {
    fn displace(
        &mut self,
        tracee: &Tracee,
        address: u64,
        at: u64,
    ) -> Result<crate::displace::Displacement, String> {
        let space = tracee.space_now();
        if let Some((_, hook)) = tracee.memory.hooks_now().over(address) {
            return in_hook(hook, at);
        }
        let memory = tracee.memory.clone();
        self.compiling.surveys.in_program(&space, &memory, address)
    }

    /// Decides what the code does.
    fn program(
        &mut self,
        probes: &mut Probes,
        tracee: &Tracee,
        id: ProbeId,
        spec: &ProbeSpec,
        address: u64,
    ) -> Result<(Program, Option<Words>, EvaluatedBy), String> {
        let space = tracee.space_now();
        let runtime = self.compiling.runtime;
        let question = runtime.map(|runtime| Question {
            function: runtime.ask,
            site: address,
        });
        let program = |condition, then, question| Program {
            condition,
            then,
            tracer_at: runtime.map(|runtime| runtime.tracer),
            question,
        };
        let (_, inside) = probes.known_calls(tracee, id, address);
        let condition = match (condition_at(spec, &space, address, inside), question) {
            (Ok(condition), _) => condition,
            (Err(why), None) => return Err(why),
            (Err(why), Some(_)) => {
                return Ok((
                    program(None, Then::Ask, question),
                    None,
                    EvaluatedBy::Asked(why),
                ));
            }
        };
        let counts = spec.hit_count != 0;
        let skips = probes.by_id.get(&id).is_some_and(Probe::skips);
        let message = match &spec.action {
            Action::Log(_) if skips => Some(Err(SKIPPED.to_owned())),
            // Only the tracer reads what is captured of a thread.
            Action::Log(_) if !counts && probes.capture.any() => Some(Err(KEPT.to_owned())),
            Action::Log(message) if !counts => Some(self.words(tracee, message, (address, inside))),
            _ => None,
        };
        let is_conditional = condition.is_some();
        // A true condition without a message or a count stops the thread.
        let (condition, then, question, by) = match message {
            Some(Ok((function, words))) => {
                let log = Log {
                    counter_at: self.counter(probes, id)?,
                    function,
                    spec_at: 0,
                    words: words.count,
                    values: words.values.clone(),
                };
                let program = program(condition, Then::Log(log), question);
                return Ok((program, Some(words), EvaluatedBy::InProgram));
            }
            Some(Err(why)) if is_conditional => {
                let by = EvaluatedBy::Partly(format!("its message is not: {why}"));
                (condition, Then::Ask, question, by)
            }
            Some(Err(why)) if question.is_some() => {
                (None, Then::Ask, question, EvaluatedBy::Asked(why))
            }
            Some(Err(why)) => return Err(why),
            None if counts => {
                let counter_at = self.counter(probes, id)?;
                let then = Then::Count { counter_at };
                (condition, then, None, EvaluatedBy::InProgram)
            }
            None if is_conditional => (condition, Then::Ask, None, EvaluatedBy::InProgram),
            None if skips && question.is_some() => {
                let by = EvaluatedBy::Asked(SKIPPED.to_owned());
                (None, Then::Ask, question, by)
            }
            None => return Err("it always stops".to_owned()),
        };
        Ok((program(condition, then, question), None, by))
    }

    /// Compiles a message to words. Also returns the function that takes them.
    fn words(
        &self,
        tracee: &Tracee,
        message: &Message,
        (address, inside): (u64, usize),
    ) -> Result<(u64, Words), String> {
        let runtime = self.compiling.runtime;
        let runtime = runtime.ok_or("the program's runtime cannot take messages")?;
        let message = compile_message(message.template(), &tracee.space_now(), address, inside);
        let message = message.map_err(|why| why.to_string())?;
        let mut words = Words {
            parts: Vec::new(),
            values: Vec::new(),
            texts: Vec::new(),
            count: 0,
        };
        for part in message.parts {
            match part {
                MessagePart::Text(text) => words.parts.push(LogPart::Text(text)),
                MessagePart::Value(value) => words.add(value),
            }
        }
        match words.count as usize <= wire::LOG_MAX_VALUES {
            true => Ok((runtime.log, words)),
            false => Err("its values take too many words".to_owned()),
        }
    }

    /// Returns a probe's counter. Allocates one if it has none.
    fn counter(&mut self, probes: &mut Probes, id: ProbeId) -> Result<u64, String> {
        let probe = probes.by_id.get(&id).ok_or("it is gone")?;
        let at = match probe.counter_at {
            Some(at) => at,
            None => {
                let taken = self.compiling.take_counter();
                taken.ok_or("there are no more counters")?
            }
        };
        let probe = probes.by_id.get_mut(&id).ok_or("it is gone")?;
        probe.counter_at = Some(at);
        let probe = &probes.by_id[&id];
        self.tell_count(probe);
        Ok(at)
    }
}

/// Compiles the condition of a probe, if it has one, for the instruction at `address`.
fn condition_at(
    spec: &ProbeSpec,
    space: &AddressSpace,
    address: u64,
    inside: usize,
) -> Result<Option<Int>, String> {
    match &spec.condition {
        _ if spec.asks_hits() => Err(COUNTED.to_owned()),
        None => Ok(None),
        Some(Condition::JavaScript(_)) => Err(SCRIPT.to_owned()),
        Some(Condition::Own(expression)) => {
            let compiled = compile_condition(expression, space, address, inside);
            compiled.map(Some).map_err(|why| why.to_string())
        }
    }
}

impl Words {
    fn add(&mut self, value: expr::Logged) {
        let word = self.count;
        let plain = |kind, bytes| {
            LogPart::Value(LogValue {
                expression: value.source.clone(),
                word,
                kind,
                bytes,
            })
        };
        let (part, count) = match value.shown {
            Shown::Signed => (plain(LogKind::Signed, 8), 1),
            Shown::Unsigned => (plain(LogKind::Unsigned, 8), 1),
            Shown::Hex => (plain(LogKind::Hex, 8), 1),
            Shown::Float { bytes } => (plain(LogKind::CFloat, bytes.into()), 1),
            Shown::RustFloat { bytes } => (plain(LogKind::Float, bytes.into()), 1),
            Shown::Text { limit } => {
                let room = limit as u32;
                self.texts.push((word, room));
                (plain(LogKind::Text, room), 1 + room.div_ceil(8))
            }
            Shown::Named(names) => (
                LogPart::Named {
                    expression: value.source.clone(),
                    word,
                    names,
                },
                1,
            ),
        };
        self.parts.push(part);
        self.values.push((word, value.value));
        self.count += count;
    }
}

/// Returns the bytes of a `struct hs_log_spec`.
fn log_spec(id: ProbeId, words: &Words) -> Vec<u8> {
    let head = u64::from(words.count) << wire::LOG_COUNT_SHIFT
        | u64::from(id) << 8
        | u64::from(wire::KIND_LOGPOINT);
    let mut bytes = head.to_le_bytes().to_vec();
    bytes.extend(words.count.to_le_bytes());
    bytes.extend((words.texts.len() as u32).to_le_bytes());
    for (word, room) in &words.texts {
        bytes.extend(word.to_le_bytes());
        bytes.extend(room.to_le_bytes());
    }
    bytes
}
