//! Compares registers, frames and variables at a recorded position with those that gdb sees, and counts the
//! comparisons.

use debuginfo::Register;
use replay::{Event, Moment as Past, Seen, State, StateMachine, Timeline};
use store::control::{Param, ParameterPlace, ValueKind};

use crate::{
    captured::{REGISTERS, SCRATCH, is_argument, told_of_both},
    claims::Bytes,
    course::{Answer, Course},
    moment::{Moment, described, is_same_place, left_value},
};

/// Number of frames whose variables are compared.
const FRAMES: usize = 3;

/// Counts of comparisons.
#[derive(Debug, Default)]
pub struct Compared {
    /// Registers with a meaningful value.
    pub registers: usize,
    /// Registers in which calls leave arbitrary values.
    pub left_same: usize,
    pub left_other: usize,
    pub vectors: usize,
    pub frames: usize,
    pub all_frames: usize,
    pub variables: usize,
    pub bytes: Bytes,
    pub copied: Bytes,
}

impl Compared {
    /// Checks that enough was compared.
    pub fn are_enough(&self, positions: usize, is_optimised: bool) {
        let left = self.left_same + self.left_other;
        assert_eq!(self.registers + left, positions * REGISTERS.len());
        assert!(self.registers >= 9 * positions, "{self:?}");
        assert!(self.left_same * 10 >= left * 9, "{self:?}");
        assert!(self.bytes.known >= 200 * positions, "{self:?}");
        assert!(self.bytes.stale >= 30 * positions, "{self:?}");
        assert!(self.copied.known >= 100_000, "{self:?}");
        // Stale bytes are compared at several events, but little changes between two of them.
        assert!(self.bytes.moving * 100 <= self.bytes.stale, "{self:?}");
        assert!(self.copied.moving * 1000 <= self.copied.known, "{self:?}");
        if !is_optimised {
            assert!(self.frames * 10 >= self.all_frames * 8, "{self:?}");
            assert!(self.variables >= 8 * positions, "{self:?}");
            assert!(self.bytes.known >= 500 * positions, "{self:?}");
        }
    }
}

impl Compared {
    /// As [`Compared::are_enough`], for returns from functions of small programs.
    pub fn are_enough_of_returns(&self, returns: usize, is_optimised: bool) {
        let left = self.left_same + self.left_other;
        assert_eq!(self.registers + left, returns * REGISTERS.len());
        assert!(self.registers >= 8 * returns, "{self:?}");
        assert!(self.left_same * 3 >= left * 2, "{self:?}");
        assert!(self.bytes.known >= 50 * returns, "{self:?}");
        if !is_optimised {
            assert!(self.frames * 10 >= self.all_frames * 8, "{self:?}");
            assert!(self.variables >= 2 * returns, "{self:?}");
        }
    }
}

/// Returns whether the program goes on to use a register's value: calls preserve it, or it holds an argument or a
/// result. The others hold arbitrary values, which differ in libc: its locks and its allocator use the multi-threaded
/// path once the agent has had a thread, and `write` is replaced.
fn is_meant(timeline: &Timeline, event: &Event, name: &str) -> bool {
    if !SCRATCH.contains(&name) {
        return true;
    }
    match event {
        Event::Enter(call) => is_argument(timeline, call.start, name),
        Event::Leave(call) => {
            let function = timeline.function(call.function).expect("it was defined");
            name == "rax" && function.ret != ValueKind::Void
        }
        Event::Other(_) => unreachable!("no moment of the program"),
    }
}

/// As [`is_meant`], for a vector register. Variadic functions may get arguments in any of them, and all are recorded.
fn is_meant_vector(timeline: &Timeline, event: &Event, index: usize) -> bool {
    let (Event::Enter(call) | Event::Leave(call)) = event else {
        return false;
    };
    let function = timeline.function(call.function).expect("it was defined");
    let is_double = |param: &Param| param.kind == ValueKind::Float { bytes: 8 };
    let is_it = |param: &Param| param.place == ParameterPlace::Sse(index as u8) && is_double(param);
    match event {
        Event::Enter(_) => function.params.iter().any(is_it),
        _ => index == 0 && matches!(function.ret, ValueKind::Float { bytes: 8 }),
    }
}

pub fn same_registers(
    timeline: &Timeline,
    course: &Course<'_>,
    state: &State<'_>,
    theirs: &Answer,
    compared: &mut Compared,
) -> Vec<String> {
    let seq = state.seq();
    let event = &course.events[seq as usize];
    let mut found = Vec::new();
    for name in REGISTERS {
        let register = Register::by_name(name).expect("a register");
        let other = theirs.moment.registers[name];
        let Seen::Known { value, .. } = state.register(register) else {
            found.push(format!("event {seq}: {name} is not known"));
            continue;
        };
        let is_meant = is_meant(timeline, event, name);
        let is_same = match is_meant {
            true => value == other,
            false => left_value(name, value) == left_value(name, other),
        };
        match (is_meant, is_same) {
            (true, true) => compared.registers += 1,
            (true, false) => {
                found.push(format!("event {seq}: {name} is {value:x}, gdb: {other:x}"))
            }
            (false, true) => compared.left_same += 1,
            (false, false) => compared.left_other += 1,
        }
    }
    for (index, other) in &theirs.vectors {
        let register = Register(Register::XMM0.0 + *index as u16);
        let Seen::Known { value, .. } = state.vector(register) else {
            continue;
        };
        if is_meant_vector(timeline, event, *index) {
            compared.vectors += 1;
            if value[..8] != other.to_le_bytes() {
                found.push(format!(
                    "event {seq}: xmm{index} is {value:x?}, gdb: {other:x}"
                ));
            }
        }
    }
    found
}

/// Up to the first gap all frames must be reported; after it, the reported frames must exist, in order.
fn same_frames(seq: u64, past: &Past<'_>, theirs: &Moment, compared: &mut Compared) -> Vec<String> {
    let first_gap = past.trace.gaps.first().copied();
    let mut at = 0;
    compared.all_frames += theirs.frames.len();
    let mut found = Vec::new();
    let frames = &past.trace.backtrace.frames;
    for (index, frame) in frames.iter().enumerate().filter(|(_, f)| f.pc_is_known) {
        let text = described(frame);
        let mut others = theirs.frames[at..].iter();
        let place = others.position(|other| is_same_place(&text, other));
        match place {
            Some(skipped) if skipped == 0 || first_gap.is_some_and(|gap| index >= gap) => {
                at += skipped + 1;
                compared.frames += 1;
            }
            _ => found.push(format!(
                "event {seq}: frame {index} is {text:?}, gdb: {:?}",
                theirs.frames
            )),
        }
    }
    found
}

/// Compares the frames, and the variables in them, as far as known.
pub fn same_frames_and_variables(
    past: &Past<'_>,
    event: &Event,
    theirs: &Moment,
    compared: &mut Compared,
) -> Vec<String> {
    let seq = past.state.seq();
    let mut found = same_frames(seq, past, theirs, compared);
    let machine = StateMachine::new(&past.state, &past.space);
    let frames = &past.trace.backtrace.frames;
    let told = past.trace.gaps.first().copied().unwrap_or(frames.len());
    let mut ours = Moment::with(&past.space, &machine, &[], &frames[..told]);
    let mut theirs = theirs.clone();
    // gdb is not asked for more, since there are many positions.
    ours.variables.retain(|(level, ..)| *level < FRAMES);
    let is_entry = matches!(event, Event::Enter(_));
    told_of_both(&mut ours, &mut theirs, usize::from(is_entry));
    compared.variables += ours.variables.len();
    theirs.frames.clone_from(&ours.frames);
    let differing = ours.differences(&theirs, true).into_iter();
    found.extend(differing.map(|text| format!("event {seq}: {text}")));
    found
}
