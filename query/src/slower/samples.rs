//! What a recording contributes to the comparison: the time of each function in that run.

use std::collections::HashMap;

use crate::compare::module_key;
use crate::error::Result;
use crate::rows::ask;
use crate::session::Session;

/// Events at the beginning that are used to measure the cost of recording.
const CALIBRATED: u64 = 100_000;

/// A function in two builds of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Named {
    /// Its name.
    pub function: String,
    /// The name of its module, the same in other builds; empty for the program itself.
    pub module: String,
}

/// The time of one function's calls in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// How many there were.
    pub calls: u64,
    /// Their time without the recorded calls that they made, less what recording these cost, in ns.
    pub self_ns: f64,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Its functions.
    pub functions: HashMap<Named, Sample>,
    /// What recording a call adds to the time of its caller, in ns.
    pub overhead_ns: f64,
}

impl Run {
    /// Returns the time of all functions together, in ns.
    pub fn total_ns(&self) -> f64 {
        self.functions.values().map(|sample| sample.self_ns).sum()
    }
}

/// Reads a recording.
///
/// # Errors
/// The recording cannot be read.
pub fn run(session: &Session) -> Result<Run> {
    let overhead_ns = overhead_ns(session)?;
    let mut run = Run {
        functions: HashMap::new(),
        overhead_ns,
    };
    let sql = "select function_id, count(*), sum(greatest(self_ns, 0)) from calls \
               where dur_ns >= 0 group by function_id";
    for row in ask(session, sql)? {
        let Some(named) = named(session, row.count(0)) else {
            continue;
        };
        let sample = run.functions.entry(named).or_default();
        sample.calls += row.count(1).unwrap_or(0);
        sample.self_ns += row.count(2).unwrap_or(0) as f64;
    }
    let sql = "select caller.function_id, count(*) from calls \
               join calls caller on calls.parent = caller.start_seq \
               where caller.dur_ns >= 0 group by 1";
    for row in ask(session, sql)? {
        let made = row.count(1).unwrap_or(0) as f64;
        let sample = named(session, row.count(0)).and_then(|named| run.functions.get_mut(&named));
        if let Some(sample) = sample {
            sample.self_ns = (sample.self_ns - made * overhead_ns).max(0.0);
        }
    }
    Ok(run)
}

fn named(session: &Session, id: Option<u64>) -> Option<Named> {
    let definitions = session.definitions();
    let function = definitions.function(usize::try_from(id?).ok()?)?;
    Some(Named {
        function: function.name.clone(),
        module: module_key(definitions.module(function.module)),
    })
}

/// The least time between two calls of the same caller: it contains the recording of a call, and hardly any of the
/// caller's own code. 0 if no caller made two calls.
fn overhead_ns(session: &Session) -> Result<f64> {
    let sql = format!(
        "select min(gap) from (\
            select ts_ns - lag(ts_ns + dur_ns) over (partition by parent order by start_seq) as gap \
            from calls where start_seq < {CALIBRATED} and parent is not null and dur_ns >= 0) \
        where gap >= 0"
    );
    let rows = ask(session, &sql)?;
    Ok(rows.first().and_then(|row| row.count(0)).unwrap_or(0) as f64)
}
