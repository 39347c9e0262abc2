//! The table `probes`: the functions selected for tracing, armed or not and why; and the probes of live control.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, StringViewArray};
use arrow::record_batch::RecordBatch;
use datafusion::common::{JoinType, Result, ScalarValue};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::functions_aggregate::expr_fn::{count, max};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, col, lit, when};
use store::control::{FunctionDef, ProbePlace};

use super::doc::TableDoc;
use super::sources::Sources;
use crate::definitions::{Definitions, Probe, Skipped};

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "probes",
    doc: "one row per function that the filter selects, and per live probe",
    columns: &[
        (
            "function_id",
            "number of the function; null when skipped or live",
        ),
        (
            "function",
            "name of the function; of a live probe, that of its first place",
        ),
        ("module", "file name of the module"),
        ("svma", "address inside the module's file"),
        (
            "kind",
            "trace; live: breakpoint, logpoint, watchpoint or catch",
        ),
        (
            "state",
            "armed or skipped; live: pending, bound, disabled or removed",
        ),
        (
            "reason",
            "why it was skipped, or only its entries are recorded",
        ),
        ("id", "live: its number"),
        ("location", "live: the location as given"),
        ("condition", "live: it counts only if this is true"),
        (
            "hit_count",
            "live: it acts on that hit only; 0: on every one",
        ),
        ("action", "live: what it does"),
        ("places", "live: in how many places it is"),
        ("hits", "live: how often it was seen to be hit"),
    ],
};

/// The columns that do not need the events.
const DEFINED: usize = DOC.columns.len() - 1;

/// Returns the plan of all columns but `hits`, and that of all columns.
pub fn plans(sources: &Sources) -> Result<(LogicalPlan, LogicalPlan)> {
    let rows = rows(&sources.definitions)?;
    let table = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
    let defined = LogicalPlanBuilder::scan("probes", provider_as_source(Arc::new(table)), None)?;
    let mut columns: Vec<_> = DOC.columns[..DEFINED]
        .iter()
        .map(|(name, _)| col(*name))
        .collect();
    let none_seen = when(col("id").is_not_null(), lit(0i64)).end()?;
    let hits = when(col("seen").is_not_null(), col("seen")).otherwise(none_seen)?;
    columns.push(hits.alias("hits"));
    let counted = defined
        .clone()
        .join(
            hits_seen(sources)?,
            JoinType::Left,
            (vec!["id"], vec!["seen_id"]),
            None,
        )?
        .project(columns)?
        .build()?;
    Ok((defined.build()?, counted))
}

/// The hits of each live probe: the largest count of a pause, or the number of its messages or logged writes.
fn hits_seen(sources: &Sources) -> Result<LogicalPlan> {
    let paused = LogicalPlanBuilder::scan("states", Arc::clone(&sources.states), None)?
        .filter(col("probe").is_not_null())?
        .project(vec![col("probe"), col("hits"), unknown("message")])?;
    let logged = LogicalPlanBuilder::scan("events", Arc::clone(&sources.events), None)?
        .filter(
            col("kind")
                .eq(lit("logpoint"))
                .or(col("kind").eq(lit("logged_write"))),
        )?
        .project(vec![
            col("probe"),
            unknown("hits"),
            col("seq").alias("message"),
        ])?
        .build()?;
    paused
        .union(logged)?
        .aggregate(
            vec![col("probe").alias("seen_id")],
            vec![
                max(col("hits")).alias("most"),
                count(col("message")).alias("messages"),
            ],
        )?
        .project(vec![
            col("seen_id"),
            when(col("messages").gt(lit(0i64)), col("messages"))
                .otherwise(col("most"))?
                .alias("seen"),
        ])?
        .build()
}

fn unknown(name: &str) -> Expr {
    lit(ScalarValue::Int64(None)).alias(name)
}

/// One row, from one of the three sources.
#[derive(Clone, Copy)]
enum Row<'a> {
    Armed(&'a FunctionDef),
    Skipped(&'a Skipped),
    Live(&'a Probe),
}

impl<'a> Row<'a> {
    fn function(self) -> Option<&'a str> {
        match self {
            Self::Armed(function) => Some(&function.name),
            Self::Skipped(skipped) => Some(&skipped.name),
            Self::Live(_) => self.place()?.function.as_deref(),
        }
    }

    fn module(self) -> Option<u32> {
        match self {
            Self::Armed(function) => Some(function.module),
            Self::Skipped(skipped) => Some(skipped.module),
            Self::Live(_) => self.place()?.module,
        }
    }

    fn svma(self) -> Option<u64> {
        match self {
            Self::Armed(function) => Some(function.svma),
            Self::Skipped(skipped) => Some(skipped.svma),
            Self::Live(_) => self.place()?.svma,
        }
    }

    fn kind(self) -> &'static str {
        self.live()
            .map_or("trace", |probe| probe.definition.kind.name())
    }

    fn state(self) -> &'static str {
        match self {
            Self::Armed(_) => "armed",
            Self::Skipped(_) => "skipped",
            Self::Live(probe) if probe.removed => "removed",
            Self::Live(probe) => probe.definition.state.name(),
        }
    }

    fn reason(self) -> Option<&'a str> {
        match self {
            Self::Skipped(skipped) => Some(&skipped.reason),
            Self::Armed(function) if is_go(function) => {
                Some("only entries: return addresses of Go must stay as they are")
            }
            Self::Armed(_) | Self::Live(_) => None,
        }
    }

    fn live(self) -> Option<&'a Probe> {
        match self {
            Self::Live(probe) => Some(probe),
            Self::Armed(_) | Self::Skipped(_) => None,
        }
    }

    fn place(self) -> Option<&'a ProbePlace> {
        self.live()?.definition.places.first()
    }
}

/// Returns whether a function is written in Go: only entries of those are recorded.
fn is_go(function: &FunctionDef) -> bool {
    let file = function.file.as_deref();
    file.is_some_and(|file| file.ends_with(".go"))
}

/// Returns the rows of all columns but `hits`: armed probes, skipped ones, live ones.
fn rows(definitions: &Definitions) -> Result<RecordBatch> {
    let armed = definitions.functions().map(Row::Armed);
    let skipped = definitions.skipped().iter().map(Row::Skipped);
    let live = definitions.probes().map(Row::Live);
    let rows: Vec<Row<'_>> = armed.chain(skipped).chain(live).collect();
    let text = |text: &dyn Fn(Row<'_>) -> Option<String>| -> ArrayRef {
        Arc::new(
            rows.iter()
                .map(|row| text(*row))
                .collect::<StringViewArray>(),
        )
    };
    let number = |number: &dyn Fn(Row<'_>) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(|row| number(*row)).collect::<Int64Array>())
    };
    let short = |number: &dyn Fn(Row<'_>) -> Option<u32>| -> ArrayRef {
        let numbers = rows.iter().map(|row| number(*row).map(|id| id as i32));
        Arc::new(numbers.collect::<Int32Array>())
    };
    let id = |row: Row<'_>| match row {
        Row::Armed(function) => Some(function.id),
        Row::Skipped(_) | Row::Live(_) => None,
    };
    let module = |row: Row<'_>| {
        definitions
            .module(row.module()?)
            .map(|m| m.name().to_owned())
    };
    let live = |row: Row<'_>| row.live().map(|probe| probe.definition.clone());
    let columns: [ArrayRef; DEFINED] = [
        short(&id),
        text(&|row| row.function().map(str::to_owned)),
        text(&module),
        number(&|row| row.svma().map(|svma| svma as i64)),
        text(&|row| Some(row.kind().to_owned())),
        text(&|row| Some(row.state().to_owned())),
        text(&|row| row.reason().map(str::to_owned)),
        short(&|row| live(row).map(|probe| probe.id)),
        text(&|row| live(row).map(|probe| probe.location)),
        text(&|row| live(row)?.condition),
        number(&|row| live(row).map(|probe| probe.hit_count as i64)),
        text(&|row| live(row).map(|probe| probe.action)),
        number(&|row| live(row).map(|probe| probe.places.len() as i64)),
    ];
    DOC.rows(columns)
}
