//! Goal: sealing any log gives exactly the rows of the rules as written down, however it is cut into steps and parts.
//! Method: random logs of up to three threads with all kinds of records, late and torn ones too, against a model that
//! sorts everything at once and keeps calls in plain lists.

mod seal_support;

use std::collections::BTreeMap;

use proptest::prelude::*;
use seal_support::{Rows, folder, parts_of, record, seal};
use store::columns::{ReadCall, ReadEvent};
use store::control::Control;
use store::synth::SynthFrame;
use store::wire::{self, EnterFields, EnterForm, GapReason, Leave};

/// Bounds of every thread's main stack.
const MAIN: (u64, u64) = (0x10_0000, 0x20_0000);
/// Highest slots of two other stacks.
const OTHER: [u64; 2] = [0x500_0000, 0x600_0000];

/// Something a thread does, or the recorder.
#[derive(Clone, Debug)]
enum Act {
    Enter {
        stack: u8,
        slot: u8,
        form: u8,
        xmm: u8,
    },
    Leave {
        stack: u8,
        slot: u8,
        xmm: bool,
    },
    Left {
        stack: u8,
        slot: u8,
    },
    Output(u8),
    Gap,
    Exit,
    Torn,
    Control(u8),
    Flush,
    Watermark(u64),
}

/// One act: which thread, and how far its clock advances; clocks may run backwards.
#[derive(Clone, Debug)]
struct Step {
    thread: u8,
    ticks: i64,
    act: Act,
}

fn act() -> impl Strategy<Value = Act> {
    let stack = prop_oneof![6 => Just(0u8), 1 => Just(1), 1 => Just(2)];
    let xmm = prop_oneof![6 => Just(0u8), 1 => Just(2), 1 => Just(8)];
    let left = (stack.clone(), 0..6u8).prop_map(|(stack, slot)| Act::Left { stack, slot });
    prop_oneof![
        12 => (stack.clone(), 0..6u8, prop_oneof![6 => Just(0u8), 1 => Just(1), 1 => Just(2)], xmm)
            .prop_map(|(stack, slot, form, xmm)| Act::Enter { stack, slot, form, xmm }),
        12 => (stack, 0..6u8, any::<bool>()).prop_map(|(stack, slot, xmm)| Act::Leave { stack, slot, xmm }),
        3 => left,
        1 => (0..4u8).prop_map(Act::Output),
        1 => Just(Act::Gap),
        1 => Just(Act::Exit),
        1 => Just(Act::Torn),
        1 => (0..6u8).prop_map(Act::Control),
        3 => Just(Act::Flush),
        2 => (0..60u64).prop_map(Act::Watermark),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..3u8, prop_oneof![8 => 0..20i64, 1 => -40..0i64], act());
    let step = step.prop_map(|(thread, ticks, act)| Step { thread, ticks, act });
    proptest::collection::vec(step, 0..120)
}

/// A record as the model sees it.
#[derive(Clone, Debug)]
enum Item {
    Act(Act),
    Control(Control),
}

/// When and where, in the order of release.
type Key = (u64, Option<u8>, usize);

/// Builds the log, and the list of what it says.
struct Build {
    frames: Vec<SynthFrame>,
    blocks: BTreeMap<u8, Vec<(u64, Act)>>,
    clocks: [u64; 3],
    last: [u64; 3],
    last_control: u64,
    watermark: u64,
    items: Vec<(Key, Item)>,
}

impl Build {
    fn new() -> Self {
        Self {
            frames: Vec::new(),
            blocks: BTreeMap::new(),
            clocks: [1000; 3],
            last: [0; 3],
            last_control: 0,
            watermark: 0,
            items: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        let clock = &mut self.clocks[usize::from(step.thread)];
        *clock = clock.checked_add_signed(step.ticks).unwrap();
        let ticks = *clock;
        match &step.act {
            Act::Flush => self.flush(step.thread),
            Act::Watermark(back) => {
                (0..3).for_each(|thread| self.flush(thread));
                let ticks = self.clocks.iter().max().unwrap().saturating_sub(*back);
                self.frames.push(SynthFrame::Watermark(ticks));
                self.watermark = self.watermark.max(ticks);
            }
            Act::Control(which) => self.control(control(*which, step.thread, ticks)),
            act => self
                .blocks
                .entry(step.thread)
                .or_default()
                .push((ticks, act.clone())),
        }
    }

    fn control(&mut self, control: Control) {
        self.frames.push(SynthFrame::Control(control.clone()));
        if let Some(ticks) = control.ticks() {
            self.last_control = ticks.max(self.watermark).max(self.last_control);
            let key = (self.last_control, None, self.items.len());
            self.items.push((key, Item::Control(control)));
        }
    }

    fn flush(&mut self, thread: u8) {
        let Some(acts) = self.blocks.remove(&thread) else {
            return;
        };
        let mut bytes = Vec::new();
        let last = &mut self.last[usize::from(thread)];
        let mut torn = false;
        for (ticks, act) in acts {
            push(&mut bytes, ticks, &act);
            if torn {
                continue;
            }
            torn = matches!(act, Act::Torn);
            let said = if torn { 0 } else { ticks };
            *last = said.max(self.watermark).max(*last);
            self.items
                .push(((*last, Some(thread), self.items.len()), Item::Act(act)));
        }
        self.frames.push(SynthFrame::Block {
            ring: thread.into(),
            tenancy: 0,
            bytes,
        });
    }

    fn finish(mut self) -> (Vec<SynthFrame>, Rows) {
        (0..3).for_each(|thread| self.flush(thread));
        self.items.sort_by_key(|(key, _)| *key);
        let mut model = Model::default();
        for thread in 0..3u8 {
            let tid = Some(100 + u32::from(thread));
            model.threads.insert(
                thread,
                ModelThread {
                    tid,
                    ..ModelThread::default()
                },
            );
        }
        for ((ticks, thread, _), item) in &self.items {
            model.item(*ticks as i64, *thread, item);
        }
        (self.frames, model.finish())
    }
}

fn slot(stack: u8, slot: u8) -> u64 {
    let top = match stack {
        0 => MAIN.1 - 8,
        other => OTHER[usize::from(other) - 1],
    };
    top - u64::from(slot) * 64
}

fn control(which: u8, thread: u8, ticks: u64) -> Control {
    let (ring, tid) = (thread.into(), 100 + u32::from(thread));
    match which {
        0 => Control::ThreadEnd {
            ticks,
            ring,
            tenancy: 0,
            tid,
        },
        1 => Control::ProcessExit {
            ticks,
            code: Some(1),
            signal: None,
        },
        2 => Control::Note {
            ticks,
            text: "n".into(),
        },
        3 => Control::Gap {
            ticks,
            tid,
            lost: 2,
            reason: GapReason::NoFreeRing,
        },
        4 => Control::Detached { ticks },
        _ => Control::Skipped {
            module: 0,
            svma: 1,
            name: "s".into(),
            reason: "r".into(),
        },
    }
}

fn xmm_of(count: u8) -> Vec<u64> {
    (0..u64::from(count)).map(|i| i * 7 + 1).collect()
}

fn push(bytes: &mut Vec<u8>, ticks: u64, act: &Act) {
    match *act {
        Act::Enter {
            stack,
            slot: number,
            form,
            xmm,
        } => wire::push_enter(
            bytes,
            ticks,
            &EnterFields {
                form: [EnterForm::Hooked, EnterForm::Tail, EnterForm::NoLeave][usize::from(form)],
                function_id: number.into(),
                slot: slot(stack, number),
                return_addr: 0x40,
                args: [ticks, 1, 2, 3, 4, 5],
                xmm: &xmm_of(xmm),
            },
        ),
        Act::Leave {
            stack,
            slot: number,
            xmm,
        } => {
            let xmm = xmm.then_some([5, 6]);
            let leave = Leave {
                slot: slot(stack, number),
                rax: ticks,
                rdx: 9,
                xmm,
            };
            wire::push_leave(bytes, ticks, &leave);
        }
        Act::Left {
            stack,
            slot: number,
        } => wire::push_frames_left(bytes, ticks, slot(stack, number)),
        Act::Output(fd) => wire::push_output(bytes, ticks, fd, b"hello"),
        Act::Gap => wire::push_gap(bytes, ticks, 3, GapReason::RingFull),
        Act::Exit => wire::push_thread_exit(bytes, ticks, 7),
        Act::Torn => bytes.extend_from_slice(&[0xff; 16]),
        Act::Control(_) | Act::Flush | Act::Watermark(_) => panic!("not a record: {act:?}"),
    }
}

#[derive(Default)]
struct Model {
    rows: Rows,
    seq: u64,
    threads: BTreeMap<u8, ModelThread>,
}

/// Open calls by stack; stacks in the order of use, the last one used last.
struct ModelThread {
    stacks: Vec<(u8, Vec<(ReadCall, bool)>)>,
    tid: Option<u32>,
    ended: bool,
}

impl Default for ModelThread {
    fn default() -> Self {
        Self {
            stacks: vec![(0, Vec::new())],
            tid: None,
            ended: false,
        }
    }
}

impl Model {
    fn next(&mut self) -> u64 {
        self.seq += 1;
        self.seq - 1
    }

    fn event(&mut self, ts_ns: i64, tid: Option<u32>, kind: &str) -> &mut ReadEvent {
        let seq = self.next();
        let kind = kind.to_string();
        self.rows.events.push(ReadEvent {
            seq,
            ts_ns,
            tid,
            kind,
            ..ReadEvent::default()
        });
        self.rows.events.last_mut().unwrap()
    }

    fn item(&mut self, ts: i64, thread: Option<u8>, item: &Item) {
        match (item, thread) {
            (Item::Control(control), _) => self.control(ts, control),
            (Item::Act(act), Some(thread)) => {
                let mut state = self.threads.remove(&thread).unwrap_or_default();
                self.act(ts, &mut state, act);
                self.threads.insert(thread, state);
            }
            (Item::Act(_), None) => panic!("an act of no thread"),
        }
    }

    fn control(&mut self, ts: i64, control: &Control) {
        match control {
            Control::ThreadEnd { ring, tid, .. } => {
                let thread = *ring as u8;
                if let Some(mut state) = self.threads.remove(&thread) {
                    state.tid = state.tid.or(Some(*tid));
                    self.exit(ts, &mut state);
                    self.threads.insert(thread, state);
                }
            }
            Control::ProcessExit { .. } => {
                for (thread, mut state) in std::mem::take(&mut self.threads) {
                    self.end_all(ts, &mut state);
                    self.threads.insert(thread, state);
                }
                self.event(ts, None, "process_exit").value = Some(1);
            }
            Control::Note { .. } => self.event(ts, None, "note").text = Some("n".into()),
            Control::Gap { tid, .. } => {
                let event = self.event(ts, Some(*tid), "gap");
                (event.text, event.value) = (Some("no free ring".into()), Some(2));
            }
            Control::Detached { .. } => {
                self.event(ts, None, "detached");
            }
            other => panic!("{other:?}"),
        }
    }

    fn act(&mut self, ts: i64, state: &mut ModelThread, act: &Act) {
        match *act {
            Act::Enter {
                stack,
                slot: number,
                form,
                xmm,
            } => {
                self.enter(ts, state, stack, number, form, xmm);
            }
            Act::Leave {
                stack,
                slot: number,
                xmm,
            } => self.leave(ts, state, stack, number, xmm),
            Act::Left {
                stack,
                slot: number,
            } => self.left(ts, state, stack, number),
            Act::Output(fd) => {
                let kind = match fd {
                    1 => "stdout",
                    2 => "stderr",
                    _ => return,
                };
                let event = self.event(ts, state.tid, kind);
                (event.bytes, event.size) = (Some(b"hello".to_vec()), Some(5));
            }
            Act::Gap => {
                let event = self.event(ts, state.tid, "gap");
                (event.text, event.value) = (Some("ring full".into()), Some(3));
            }
            Act::Torn => self.event(ts, state.tid, "gap").text = Some("torn".into()),
            Act::Exit => {
                state.tid = state.tid.or(Some(7));
                self.exit(ts, state);
            }
            Act::Control(_) | Act::Flush | Act::Watermark(_) => panic!("not a record: {act:?}"),
        }
    }

    fn enter(
        &mut self,
        ts: i64,
        state: &mut ModelThread,
        stack: u8,
        number: u8,
        form: u8,
        xmm: u8,
    ) {
        let sp = slot(stack, number);
        state.use_stack(stack);
        while let Some((top, _)) = state.stacks.last().unwrap().1.last()
            && (top.sp < sp || top.sp == sp && form != 1)
        {
            self.end_top(ts, state, None);
        }
        let own = state.stacks.last().unwrap().1.last();
        let before = state.stacks.len().checked_sub(2);
        let caller = match (own, before) {
            (Some(own), _) => Some(own),
            (None, Some(before)) if stack != 0 => state.stacks[before].1.last(),
            _ => None,
        };
        let (depth, parent_seq) =
            caller.map_or((0, None), |(c, _)| (c.depth + 1, Some(c.start_seq)));
        let mut call = ReadCall {
            start_seq: self.next(),
            ts_ns: ts,
            dur_ns: -1,
            function_id: number.into(),
            depth,
            parent_seq,
            tail: form == 1,
            args: [0, 1, 2, 3, 4, 5],
            sp,
            ret_addr: 0x40,
            ..ReadCall::default()
        };
        for (to, from) in call.xmm.iter_mut().zip(xmm_of(xmm)) {
            *to = Some(from);
        }
        state.stacks.last_mut().unwrap().1.push((call, form != 2));
    }

    fn leave(&mut self, ts: i64, state: &mut ModelThread, stack: u8, number: u8, xmm: bool) {
        let sp = slot(stack, number);
        let mut returned = false;
        if state.stacks.iter().any(|(id, _)| *id == stack) {
            state.use_stack(stack);
            while let Some((top, hooked)) = state.stacks.last().unwrap().1.last()
                && top.sp <= sp
            {
                let returns = top.sp == sp && *hooked;
                returned |= returns;
                self.end_top(ts, state, returns.then_some(xmm));
            }
            state.drop_if_empty();
        }
        if !returned {
            let event = self.event(ts, state.tid, "leave");
            (event.addr, event.value) = (Some(sp), Some(0));
        }
    }

    /// The program goes on where the stack pointer is at a slot: calls below it have ended.
    fn left(&mut self, ts: i64, state: &mut ModelThread, stack: u8, number: u8) {
        if state.stacks.iter().all(|(id, _)| *id != stack) {
            return;
        }
        state.use_stack(stack);
        while let Some((top, _)) = state.stacks.last().unwrap().1.last()
            && top.sp < slot(stack, number)
        {
            self.end_top(ts, state, None);
        }
        state.drop_if_empty();
    }

    /// Ends the innermost call of the stack used last; `returned` says whether xmm registers were captured.
    fn end_top(&mut self, ts: i64, state: &mut ModelThread, returned: Option<bool>) {
        let (mut call, _) = state.stacks.last_mut().unwrap().1.pop().unwrap();
        call.end_seq = Some(self.next());
        call.dur_ns = ts - call.ts_ns;
        call.unwound = returned.is_none();
        call.tid = state.tid;
        if let Some(xmm) = returned {
            (call.rax, call.rdx) = (Some(0), Some(9));
            call.ret_xmm = if xmm { [Some(5), Some(6)] } else { [None; 2] };
        }
        let all = state.stacks.iter_mut().flat_map(|(_, open)| open);
        for (parent, _) in all {
            if Some(parent.start_seq) == call.parent_seq {
                parent.child_ns += call.dur_ns;
            }
        }
        self.rows.calls.push(call);
    }

    fn exit(&mut self, ts: i64, state: &mut ModelThread) {
        self.end_all(ts, state);
        if !std::mem::replace(&mut state.ended, true) {
            self.event(ts, state.tid, "thread_exit");
        }
    }

    /// Ends all calls: of other stacks first, the one used last before the others, then of the main stack.
    fn end_all(&mut self, ts: i64, state: &mut ModelThread) {
        let others: Vec<u8> = state
            .stacks
            .iter()
            .map(|(id, _)| *id)
            .filter(|id| *id != 0)
            .collect();
        for stack in others.into_iter().rev() {
            let at = state
                .stacks
                .iter()
                .position(|(id, _)| *id == stack)
                .unwrap();
            let one = state.stacks.remove(at);
            state.stacks.push(one);
            while !state.stacks.last().unwrap().1.is_empty() {
                self.end_open(ts, state);
            }
            state.drop_if_empty();
        }
        while !state.stacks.last().unwrap().1.is_empty() {
            self.end_open(ts, state);
        }
    }

    /// Ends the innermost call of the stack used last, as its thread ends.
    fn end_open(&mut self, ts: i64, state: &mut ModelThread) {
        self.end_top(ts, state, None);
        let call = self.rows.calls.last_mut().unwrap();
        (call.unwound, call.open_at_end) = (false, true);
    }

    fn finish(mut self) -> Rows {
        let mut unfinished: Vec<ReadCall> = Vec::new();
        for state in self.threads.into_values() {
            let open = state.stacks.into_iter().flat_map(|(_, open)| open);
            unfinished.extend(open.map(|(call, _)| ReadCall {
                tid: state.tid,
                ..call
            }));
        }
        unfinished.sort_by_key(|call| call.start_seq);
        self.rows.calls.extend(unfinished);
        self.rows
    }
}

impl ModelThread {
    fn use_stack(&mut self, stack: u8) {
        let at = self.stacks.iter().position(|(id, _)| *id == stack);
        let used = at.map_or((stack, Vec::new()), |at| self.stacks.remove(at));
        self.stacks.push(used);
    }

    fn drop_if_empty(&mut self) {
        let (id, open) = self.stacks.last().unwrap();
        if *id != 0 && open.is_empty() {
            self.stacks.pop();
        }
    }
}

/// Arguments and rax repeat the ticks, which differ from the time where the clock is corrected: not for the model.
fn without_ticks(mut rows: Rows) -> Rows {
    for call in &mut rows.calls {
        call.args[0] = 0;
        call.rax = call.rax.map(|_| 0);
    }
    for event in &mut rows.events {
        if event.kind == "leave" {
            event.value = Some(0);
        }
    }
    rows
}

fn build(steps: &[Step]) -> (Vec<SynthFrame>, Rows) {
    let mut build = Build::new();
    for thread in 0..3u8 {
        let mut bytes = Vec::new();
        let tid = 100 + u32::from(thread);
        wire::push_thread(&mut bytes, 0, tid, MAIN, b"x");
        build.frames.push(SynthFrame::Block {
            ring: thread.into(),
            tenancy: 0,
            bytes,
        });
    }
    build.watermark = 1;
    build.frames.push(SynthFrame::Watermark(build.watermark));
    steps.iter().for_each(|step| build.step(step));
    build.finish()
}

/// Puts what every log here begins with in front of the model's rows: three threads start.
fn with_starts(model: Rows) -> Rows {
    let shift = |seq: u64| seq + 3;
    let mut rows = Rows::default();
    for thread in 0..3u32 {
        rows.events.push(ReadEvent {
            seq: thread.into(),
            tid: Some(100 + thread),
            kind: "thread_start".into(),
            text: Some("x".into()),
            addr: Some(MAIN.0),
            size: Some(MAIN.1 - MAIN.0),
            ..ReadEvent::default()
        });
    }
    for mut event in model.events {
        event.seq = shift(event.seq);
        rows.events.push(event);
    }
    for mut call in model.calls {
        call.start_seq = shift(call.start_seq);
        call.end_seq = call.end_seq.map(shift);
        call.parent_seq = call.parent_seq.map(shift);
        rows.calls.push(call);
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_log_seals_to_the_rows_of_the_model(steps in steps(), part_calls in 1..40u64, step in 1..50u64) {
        let (frames, model) = build(&steps);
        let dir = folder();
        let recording = record(dir.path(), &frames);
        let rows = without_ticks(seal(&recording, parts_of(part_calls), step));
        prop_assert_eq!(rows, with_starts(model));
    }
}
