//! The table function `history('expression')`: every change of a value, computed while its rows are read.
//!
//! Rows come in the order of events. The search yields often, so that the reader can stop it at any time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Int64Builder, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use debuginfo::Diagnostic;
use futures::stream;
use replay::Timeline;
use replay::history::{Changes, Progress, Tracked};

use super::writes::{Write, Writes};
use super::{States, failed, told};
use crate::question::suggest;
use crate::short_names::last_part;

/// Rows of a batch.
const ROWS: usize = 1024;
/// How long a search runs without yielding.
const SLICE: Duration = Duration::from_millis(20);
/// Global variables of a module among which the name that was meant is searched.
const MOST_GLOBALS: usize = 10_000;
/// Events that are examined between two checks of the clock.
const MOMENTS: usize = 32;

#[derive(Debug)]
struct Of {
    states: States,
}

/// Returns it.
pub fn function(states: &States) -> Arc<dyn TableFunctionImpl> {
    let states = states.clone();
    Arc::new(Of { states })
}

impl TableFunctionImpl for Of {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let exprs = args.exprs().iter();
        let texts: Option<Vec<&str>> = exprs.map(|expr| expr.as_literal()?.try_as_str()?).collect();
        let (expression, function) = match texts.as_deref() {
            Some([expression]) => (*expression, None),
            Some([expression, function]) => (*expression, Some(*function)),
            _ => {
                return plan_err!(
                    "history takes an expression, and the function whose variables it is about: \
                     history('total') or history('count', 'line')"
                );
            }
        };
        let asked = Asked {
            expression: expression.to_owned(),
            function: function.map(str::to_owned),
            schema: schema(),
            states: self.states.clone(),
        };
        // Report errors before the first row.
        let timeline = self.states.timeline()?;
        let tracked = asked.tracked(timeline)?;
        found_by(timeline, &tracked)?;
        Ok(Arc::new(StreamingTable::try_new(
            Arc::clone(&asked.schema),
            vec![Arc::new(asked)],
        )?))
    }
}

fn schema() -> SchemaRef {
    let number = |name: &str, is_null| Field::new(name, DataType::Int64, is_null);
    let text = |name: &str, is_null| Field::new(name, DataType::Utf8, is_null);
    Arc::new(Schema::new(vec![
        number("seq", false),
        number("ts_ns", false),
        number("tid", false),
        text("function", true),
        text("file", true),
        number("line", true),
        text("old", true),
        text("new", false),
    ]))
}

/// The arguments of one call of `history`.
#[derive(Clone, Debug)]
struct Asked {
    expression: String,
    function: Option<String>,
    schema: SchemaRef,
    states: States,
}

impl Asked {
    fn tracked(&self, timeline: &Timeline) -> Result<Tracked> {
        match &self.function {
            Some(function) => {
                Tracked::within(timeline, &self.expression, function).map_err(|error| match error {
                    replay::Error::Expression { what, .. } if is_unknown_function(&what) => {
                        told(with_near_function(timeline, function, what))
                    }
                    error => failed(error),
                })
            }
            None => Tracked::everywhere(timeline, &self.expression).map_err(|error| match error {
                replay::Error::Expression {
                    what,
                    position: None,
                } => told(with_next_step(timeline, what)),
                error => failed(error),
            }),
        }
    }
}

/// Says what to write instead of an expression that means nothing outside of all functions.
fn with_next_step(timeline: &Timeline, what: Diagnostic) -> Diagnostic {
    const IN_FUNCTION: &str =
        "name the function too for one of its variables: history('count', 'line')";
    let name = what.message.strip_prefix("no variable \"");
    let name = name.and_then(|rest| rest.split('"').next());
    let near = name.map_or_else(Vec::new, |name| {
        let globals = timeline.global_names(MOST_GLOBALS);
        suggest(name, globals.iter().map(String::as_str))
    });
    match near.is_empty() {
        true => what.with_hint(IN_FUNCTION),
        false => what.with_hint(format!("did you mean {}? {IN_FUNCTION}", near.join(" or "))),
    }
}

fn is_unknown_function(what: &Diagnostic) -> bool {
    what.message.starts_with("no recorded function is called ")
}

/// Names the functions that were perhaps meant.
fn with_near_function(timeline: &Timeline, function: &str, what: Diagnostic) -> Diagnostic {
    let names: Vec<String> = timeline.functions().map(|f| last_part(&f.name)).collect();
    let near = suggest(function, names.iter().map(String::as_str));
    let lists = what.hint.clone().unwrap_or_default();
    match near.is_empty() {
        true => what,
        false => what.with_hint(format!("did you mean {}? {lists}", near.join(" or "))),
    }
}

/// How changes are found.
enum Finder {
    /// Event by event.
    Events(Changes),
    /// In a recording of every instruction, by the writes.
    Writes(Writes),
}

fn found_by(timeline: &Timeline, tracked: &Tracked) -> Result<Finder> {
    let writes = match timeline.has_every_instruction() {
        true => Writes::of(timeline, tracked).map_err(failed)?,
        false => None,
    };
    Ok(match writes {
        Some(writes) => Finder::Writes(writes),
        None => Finder::Events(Changes::of(timeline)),
    })
}

/// A search in progress.
struct Search {
    asked: Asked,
    tracked: Tracked,
    finder: Finder,
    is_done: bool,
}

impl PartitionStream for Asked {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let asked = self.clone();
        let batches = stream::try_unfold(None, move |search: Option<Search>| {
            let asked = asked.clone();
            async move {
                tokio::task::yield_now().await;
                let mut search = match search {
                    Some(search) => search,
                    None => Search::begin(asked)?,
                };
                if search.is_done {
                    return Ok(None);
                }
                let batch = search.batch()?;
                Ok::<_, DataFusionError>(Some((batch, Some(search))))
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            batches,
        ))
    }
}

impl Search {
    fn begin(asked: Asked) -> Result<Self> {
        let states = asked.states.clone();
        let timeline = states.timeline()?;
        let tracked = asked.tracked(timeline)?;
        Ok(Self {
            finder: found_by(timeline, &tracked)?,
            tracked,
            is_done: false,
            asked,
        })
    }

    /// The changes found until it is time to yield; there may be none.
    fn batch(&mut self) -> Result<RecordBatch> {
        let states = self.asked.states.clone();
        let timeline = states.timeline()?;
        let began = Instant::now();
        let mut found: Vec<Write> = Vec::new();
        while found.len() < ROWS && began.elapsed() < SLICE {
            match self.next(timeline)? {
                Some(change) => found.extend(change),
                None => {
                    self.is_done = true;
                    break;
                }
            }
        }
        rows(timeline, &self.asked.schema, found)
    }

    /// The next change; the inner option is `None` if there may be more, the outer one at the end.
    fn next(&mut self, timeline: &Timeline) -> Result<Option<Option<Write>>> {
        let changes = match &mut self.finder {
            Finder::Writes(writes) => return writes.next(timeline).map_err(failed),
            Finder::Events(changes) => changes,
        };
        let progress = changes.next(timeline, &mut self.tracked, MOMENTS);
        Ok(match progress.map_err(failed)? {
            Progress::Change(change) => Some(Some(Write {
                stand: timeline.stand(change.seq, change.tid).map_err(failed)?,
                seq: change.seq,
                tid: change.tid,
                old: change.old,
                new: change.new,
            })),
            Progress::More => Some(None),
            Progress::End => None,
        })
    }
}

fn rows(timeline: &Timeline, schema: &SchemaRef, changes: Vec<Write>) -> Result<RecordBatch> {
    let mut numbers: [Int64Builder; 4] = std::array::from_fn(|_| Int64Builder::new());
    let mut texts: [StringBuilder; 4] = std::array::from_fn(|_| StringBuilder::new());
    for change in changes {
        let ts_ns = timeline.ts_ns(change.seq).map_err(failed)?;
        numbers[0].append_value(change.seq as i64);
        numbers[1].append_value(ts_ns);
        numbers[2].append_value(i64::from(change.tid));
        numbers[3].append_option(change.stand.line.map(i64::from));
        texts[0].append_option(change.stand.function);
        texts[1].append_option(change.stand.file);
        texts[2].append_option(change.old);
        texts[3].append_value(change.new);
    }
    let [mut seq, mut ts_ns, mut tid, mut line] = numbers;
    let [mut function, mut file, mut old, mut new] = texts;
    Ok(RecordBatch::try_new(
        Arc::clone(schema),
        vec![
            Arc::new(seq.finish()),
            Arc::new(ts_ns.finish()),
            Arc::new(tid.finish()),
            Arc::new(function.finish()),
            Arc::new(file.finish()),
            Arc::new(line.finish()),
            Arc::new(old.finish()),
            Arc::new(new.finish()),
        ],
    )?)
}
