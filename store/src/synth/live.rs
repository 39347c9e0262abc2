//! Records and control events of live control for made-up logs, and a complete synthetic debugging session.

use super::Synth;
use crate::control::{
    Control, Exception, ExceptionPhase, LiveProbe, LogFormat, LogKind, LogPart, LogValue, Pause,
    PauseReason, ProbeKind, ProbePlace, ProbeState, SavedRegisters, Watched, Write,
};
use crate::wire;

/// Where the synthetic program is mapped.
const BASE: u64 = 0x5555_5555_4000;
/// Where its threads stop: in `price`, after the prologue.
const PRICE: u64 = BASE + 0x1048;
/// Its main thread and another one.
const MAIN: u32 = 4242;
const WORKER: u32 = 4243;
const STACK: u64 = 0x7f00_0000_8000;

impl Synth {
    /// Passes logpoint `probe` with these words in its record.
    pub fn logpoint(&mut self, probe: u32, words: &[u64]) -> &mut Self {
        self.record_with(|block, ticks| wire::push_logpoint(block, ticks, probe, words))
    }

    /// Fails to evaluate the condition of `probe` because `addr` cannot be read.
    pub fn condition_error(&mut self, probe: u32, addr: u64) -> &mut Self {
        self.record_with(|block, ticks| wire::push_condition_error(block, ticks, probe, addr))
    }

    /// Appends the control event that `make` returns for its time, 10 ticks after the last one by default.
    pub fn live(&mut self, make: impl FnOnce(u64) -> Control) -> &mut Self {
        let ticks = self.next_ticks();
        self.ticks_set = false;
        self.control(make(ticks))
    }
}

/// Returns a pause of a thread at `ticks` with registers that all differ and 64 bytes of stack.
pub fn pause(ticks: u64, tid: u32, reason: PauseReason) -> Pause {
    let vector = |i: usize| std::array::from_fn(|byte| (16 * i + byte) as u8);
    let mut general = std::array::from_fn(|i| 0x1000 + i as u64);
    (general[16], general[19]) = (PRICE, STACK - 0x40);
    Pause {
        ticks,
        tid,
        reason,
        probe: None,
        hits: None,
        pc: PRICE,
        function: Some("price".into()),
        file: Some("/src/shop.c".into()),
        line: Some(12),
        registers: Some(SavedRegisters {
            general,
            vectors: std::array::from_fn(vector),
        }),
        stack_addr: STACK - 0x40,
        stack: (0..64).collect::<Vec<u8>>().into(),
        values: Vec::new(),
        watched: None,
    }
}

/// Returns a synthetic debugging session: a breakpoint and a step, a logpoint, a watchpoint, writes, an exception.
pub fn debugged() -> Synth {
    let mut synth = Synth::new();
    synth.control(Control::ModuleLoad {
        ticks: 0,
        module: 0,
        path: "/home/ada/shop/shop".into(),
        build_id: None,
        addr: BASE,
        size: 0x8000,
        system: false,
    });
    let price = synth.function("price");
    synth.thread(MAIN).live(|ticks| Control::Note {
        ticks,
        text: "why is order 3 free?".into(),
    });
    stops(&mut synth, price);
    messages(&mut synth);
    ends(&mut synth);
    synth
}

/// A breakpoint hit, a changed value, a step.
fn stops(synth: &mut Synth, price: u32) {
    let breakpoint = |ticks, state| LiveProbe {
        ticks,
        id: 1,
        kind: ProbeKind::Breakpoint,
        location: "shop.c:12".into(),
        condition: Some("items > 2".into()),
        hit_count: 0,
        action: "pause".into(),
        state,
        places: match state {
            ProbeState::Pending => Vec::new(),
            _ => vec![place()],
        },
    };
    synth
        .live(|ticks| Control::Probe(breakpoint(ticks, ProbeState::Pending)))
        .live(|ticks| Control::Probe(breakpoint(ticks, ProbeState::Bound)))
        .enter(price, STACK)
        .live(|ticks| {
            Control::Pause(Box::new(Pause {
                probe: Some(1),
                hits: Some(1),
                values: vec![
                    ("items".into(), "3".into()),
                    ("name".into(), "\"Ada\"".into()),
                ],
                ..pause(ticks, MAIN, PauseReason::Breakpoint)
            }))
        })
        .live(|ticks| {
            Control::Write(Write {
                ticks,
                tid: MAIN,
                target: "items".into(),
                addr: Some(STACK - 0x14),
                register: None,
                old: Some(vec![3, 0, 0, 0].into()),
                new: vec![4, 0, 0, 0].into(),
                by: "ada".into(),
            })
        })
        .live(|ticks| Control::Resume {
            ticks,
            tid: MAIN,
            action: "next".into(),
        })
        .live(|ticks| {
            Control::Pause(Box::new(Pause {
                line: Some(13),
                pc: PRICE + 9,
                ..pause(ticks, MAIN, PauseReason::Step)
            }))
        })
        .live(|ticks| {
            Control::Write(Write {
                ticks,
                tid: MAIN,
                target: "$xmm0".into(),
                addr: None,
                register: Some("xmm0".into()),
                old: None,
                new: 1.25f64.to_bits().to_le_bytes().to_vec().into(),
                by: "ada".into(),
            })
        })
        .live(|ticks| Control::Resume {
            ticks,
            tid: MAIN,
            action: "continue".into(),
        })
        .leave_value(STACK, 7);
}

/// A logpoint with a message from the reader, one with a message from the recorder, and a condition that fails.
fn messages(synth: &mut Synth) {
    let logpoint = |ticks, id, condition: Option<&str>| LiveProbe {
        ticks,
        id,
        kind: ProbeKind::Logpoint,
        location: "price".into(),
        condition: condition.map(str::to_owned),
        hit_count: 0,
        action: "order {id} of {customer}: {price}".into(),
        state: ProbeState::Bound,
        places: vec![place()],
    };
    let value = |expression: &str, word, kind, bytes| {
        LogPart::Value(LogValue {
            expression: expression.into(),
            word,
            kind,
            bytes,
        })
    };
    let text = |text: &str| LogPart::Text(text.into());
    synth
        .live(|ticks| Control::Probe(logpoint(ticks, 2, Some("customer[0] != 0"))))
        .live(|ticks| {
            Control::LogFormat(LogFormat {
                ticks,
                probe: 2,
                parts: vec![
                    text("order "),
                    value("id", 0, LogKind::Signed, 4),
                    text(" of "),
                    value("customer", 1, LogKind::Text, 8),
                    text(": "),
                    value("price", 3, LogKind::Float, 8),
                ],
            })
        })
        .logpoint(
            2,
            &[
                1,
                3,
                u64::from_le_bytes(*b"Ada\0\0\0\0\0"),
                2.5f64.to_bits(),
            ],
        )
        .thread(WORKER)
        .logpoint(
            2,
            &[2, 12, u64::from_le_bytes(*b"Archibal"), 5.0f64.to_bits()],
        )
        .condition_error(2, 0x18)
        .live(|ticks| Control::Probe(logpoint(ticks, 3, Some("depth(tree) > 3"))))
        .live(|ticks| Control::Logpoint {
            ticks,
            tid: WORKER,
            probe: 3,
            message: "order 3 of Zoe: 0.0".into(),
            values: vec![
                ("id".into(), "3".into()),
                ("customer".into(), "Zoe".into()),
                ("price".into(), "0.0".into()),
            ],
            passed: None,
            error: None,
        })
        .live(|ticks| Control::ConditionError {
            ticks,
            tid: WORKER,
            probe: 3,
            condition: "depth(tree) > 3".into(),
            error: "tree is optimized out here".into(),
        });
}

/// A watched value, an exception, and the end.
fn ends(synth: &mut Synth) {
    synth
        .live(|ticks| {
            Control::Probe(LiveProbe {
                ticks,
                id: 4,
                kind: ProbeKind::Watchpoint,
                location: "total".into(),
                condition: None,
                hit_count: 2,
                action: "pause".into(),
                state: ProbeState::Bound,
                places: vec![ProbePlace {
                    addr: BASE + 0x4010,
                    module: Some(0),
                    svma: Some(0x4010),
                    function: None,
                    file: None,
                    line: None,
                }],
            })
        })
        .live(|ticks| {
            Control::Pause(Box::new(Pause {
                probe: Some(4),
                hits: Some(2),
                watched: Some(Watched {
                    addr: BASE + 0x4010,
                    old: Some(vec![5, 0].into()),
                    new: Some(vec![0, 0].into()),
                }),
                ..pause(ticks, WORKER, PauseReason::Watch)
            }))
        })
        .live(|ticks| {
            Control::Exception(Exception {
                ticks,
                tid: WORKER,
                signal: None,
                type_name: Some("std::out_of_range".into()),
                phase: ExceptionPhase::FirstChance,
                addr: Some(PRICE + 32),
                message: Some("no such order".into()),
            })
        })
        .live(|ticks| {
            Control::Exception(Exception {
                ticks,
                tid: WORKER,
                signal: Some(11),
                type_name: None,
                phase: ExceptionPhase::Unhandled,
                addr: Some(0),
                message: None,
            })
        })
        .live(|ticks| {
            Control::Pause(Box::new(Pause {
                function: None,
                file: None,
                line: None,
                registers: None,
                stack: Vec::new().into(),
                ..pause(ticks, WORKER, PauseReason::Signal)
            }))
        })
        .live(|ticks| Control::ProbeRemoved { ticks, id: 1 })
        .live(|ticks| Control::ProcessExit {
            ticks,
            code: None,
            signal: Some(11),
        })
        .watermark();
}

fn place() -> ProbePlace {
    ProbePlace {
        addr: PRICE,
        module: Some(0),
        svma: Some(PRICE - BASE),
        function: Some("price".into()),
        file: Some("/src/shop.c".into()),
        line: Some(12),
    }
}
