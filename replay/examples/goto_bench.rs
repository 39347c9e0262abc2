//! How long does it take to open a recording, to go to any event, and to step from there?
//!
//! `goto_bench RECORDING [COUNT [EXPRESSION]]`: opens it, then looks at COUNT random events (registers, memory around rsp, ten frames,
//! the expression's value), steps back from each, and prints the median, the 99th percentile and the longest time.

use std::path::Path;
use std::time::{Duration, Instant};

use debuginfo::Register;
use debuginfo::value::Look;
use expr::{Context, Expr};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use replay::{Moment, StateMachine, Timeline};
use values::{RenderOptions, render_with};

const FRAMES: usize = 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("name a recording")?;
    let count = args.next().map_or(Ok(1000), |count| count.parse())?;
    let expression = args.next().map(|text| expr::parse(&text)).transpose()?;
    let expression = expression.as_ref();
    let started = Instant::now();
    let timeline = Timeline::open(Path::new(&path), &std::env::temp_dir())?;
    println!("events {}, open {:?}", timeline.events(), started.elapsed());
    let mut random = StdRng::seed_from_u64(1);
    let (mut jumps, mut steps, mut nexts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        let seq = random.random_range(0..timeline.events());
        let started = Instant::now();
        look(&timeline, seq, expression)?;
        jumps.push(started.elapsed());
        let started = Instant::now();
        look(&timeline, seq.saturating_sub(1), expression)?;
        steps.push(started.elapsed());
        let started = Instant::now();
        let tid = timeline.thread_at(seq)?;
        let _ = timeline.next(tid, seq);
        nexts.push(started.elapsed());
    }
    report("goto", &mut jumps);
    report("step back", &mut steps);
    report("next", &mut nexts);
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    println!("{}", peak.unwrap_or_default());
    Ok(())
}

fn look(timeline: &Timeline, seq: u64, expression: Option<&Expr>) -> replay::Result<()> {
    let tid = timeline.thread_at(seq)?;
    let moment = Moment::at(timeline, seq, tid, FRAMES)?;
    if let Some(sp) = moment.state.register(Register::RSP).value() {
        moment.state.memory(*sp, 64)?;
    }
    if let Some(expression) = expression {
        print(&moment, expression);
    }
    Ok(())
}

/// What the verb `print` does.
fn print(moment: &Moment<'_>, expression: &Expr) {
    let machine = StateMachine::new(&moment.state, &moment.space);
    let frames = &moment.trace.backtrace.frames;
    let is_known = frames.first().is_some_and(|frame| frame.pc_is_known);
    let context = Context::new(
        &moment.space,
        &machine,
        if is_known { frames } else { &[] },
        0,
    );
    let look = Look {
        space: &moment.space,
        machine: &machine,
    };
    if let Ok(value) = expr::evaluate(expression, &context) {
        std::hint::black_box(render_with(&value, &RenderOptions::default(), &look));
    }
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
    println!(
        "{what}: median {:?}, 99th percentile {:?}, most {:?}",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}
