//! The table functions `backtrace(seq)` and `locals(seq)`. In a core file, which shows one moment, they need no number.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Field, Schema};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::datasource::MemTable;
use datafusion::logical_expr::Expr;
use debuginfo::location::at_frame;
use debuginfo::value::Look;
use debuginfo::{Certainty, variables_at};
use replay::Moment;
use values::{RenderOptions, render_certain};

use super::{States, failed};

/// Most frames that are shown.
const MAX_FRAMES: usize = 10_000;

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Backtrace,
    Locals,
}

#[derive(Debug)]
struct Of {
    kind: Kind,
    states: States,
}

/// Returns them.
pub fn functions(states: &States) -> Vec<(&'static str, Arc<dyn TableFunctionImpl>)> {
    let of = |kind| {
        let states = states.clone();
        Arc::new(Of { kind, states }) as Arc<dyn TableFunctionImpl>
    };
    vec![
        ("backtrace", of(Kind::Backtrace)),
        ("locals", of(Kind::Locals)),
    ]
}

impl TableFunctionImpl for Of {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let name = match self.kind {
            Kind::Backtrace => "backtrace",
            Kind::Locals => "locals",
        };
        let seq = match args.exprs() {
            [Expr::Literal(ScalarValue::Int64(Some(seq)), _)] if *seq >= 0 => *seq as u64,
            [] if self.states.timeline()?.is_core() => self.only_stop()?,
            _ => return plan_err!("{name} takes the number of an event: {name}(48211)"),
        };
        let batch = match self.kind {
            Kind::Backtrace => self.backtrace(seq)?,
            Kind::Locals => self.locals(seq)?,
        };
        let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
        Ok(Arc::new(table))
    }
}

impl Of {
    fn moment(&self, seq: u64, limit: usize) -> Result<Moment<'_>> {
        let timeline = self.states.timeline()?;
        let tid = timeline.thread_at(seq).map_err(failed)?;
        Moment::at(timeline, seq, tid, limit).map_err(failed)
    }

    /// The stop of the thread that a core file is about: the one that a signal hit, or its first one.
    fn only_stop(&self) -> Result<u64> {
        let timeline = self.states.timeline()?;
        let crash = timeline.crash().map_err(failed)?;
        let stop = crash.filter(|seq| timeline.is_stop(*seq));
        Ok(stop.unwrap_or(timeline.last()))
    }

    fn backtrace(&self, seq: u64) -> Result<RecordBatch> {
        let moment = self.moment(seq, MAX_FRAMES)?;
        let frames = &moment.trace.backtrace.frames;
        let number = |value: Option<u64>| value.map(|value| value as i64);
        let columns: Vec<(&str, ArrayRef)> = vec![
            (
                "frame",
                Arc::new(Int64Array::from_iter_values(0..frames.len() as i64)),
            ),
            (
                "function",
                Arc::new(StringArray::from_iter(
                    frames.iter().map(|f| f.function.as_deref()),
                )),
            ),
            (
                "file",
                Arc::new(StringArray::from_iter(
                    frames.iter().map(|f| f.source.as_ref().map(|s| &*s.file)),
                )),
            ),
            (
                "line",
                Arc::new(Int64Array::from_iter(
                    frames
                        .iter()
                        .map(|f| f.source.as_ref().map(|s| i64::from(s.line))),
                )),
            ),
            (
                "pc",
                Arc::new(Int64Array::from_iter(
                    frames
                        .iter()
                        .map(|f| number(Some(f.pc).filter(|_| f.pc_is_known))),
                )),
            ),
            (
                "cfa",
                Arc::new(Int64Array::from_iter(frames.iter().map(|f| number(f.cfa)))),
            ),
            (
                "inlined",
                Arc::new(BooleanArray::from_iter(
                    frames.iter().map(|f| Some(f.inlined)),
                )),
            ),
        ];
        batch(columns)
    }

    fn locals(&self, seq: u64) -> Result<RecordBatch> {
        let moment = self.moment(seq, 1)?;
        let frames = &moment.trace.backtrace.frames;
        let machine = moment.machine();
        let look = Look {
            space: &moment.space,
            machine: &machine,
        };
        let mut rows: Vec<[Option<String>; 4]> = Vec::new();
        let mut stale = Vec::new();
        if frames.first().is_some_and(|frame| frame.pc_is_known) {
            at_frame(&moment.space, &machine, frames, 0, |site| {
                for variable in variables_at(site) {
                    let value = variable.read(site);
                    let (shown, certainty) =
                        render_certain(&value, &RenderOptions::default(), &look);
                    let (text, unknown) = match &value.bytes {
                        Ok(_) => (Some(shown), None),
                        Err(why) => (None, Some(why.to_string())),
                    };
                    rows.push([
                        Some(variable.name.clone()),
                        Some(value.ty.name()),
                        text,
                        unknown,
                    ]);
                    stale.push(match certainty {
                        Certainty::Known => None,
                        Certainty::Stale { as_of } => Some(as_of as i64),
                    });
                }
            });
        }
        let text = |at: usize| -> ArrayRef {
            Arc::new(StringArray::from_iter(
                rows.iter().map(|row| row[at].as_deref()),
            ))
        };
        batch(vec![
            ("name", text(0)),
            ("type", text(1)),
            ("value", text(2)),
            ("unknown", text(3)),
            ("stale_since", Arc::new(Int64Array::from(stale))),
        ])
    }
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> Result<RecordBatch> {
    let field =
        |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    Ok(RecordBatch::try_new(Arc::new(schema), arrays)?)
}
