//! The sources of all tables: sealed files, definitions and the functions that read them.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, ScalarUDF, TableSource, col, lit, when};
use store::Recording;
use store::clock::Clock;
use store::control::FunctionDef;

use crate::definitions::Definitions;
use crate::functions::args::Asked;
use crate::functions::needed::Needed;
use crate::functions::{Lookup, args, outs, ret, ret_text, text};
use crate::instructions::{Kind, table};
use crate::parts::{OpenedPart, PartsTable, calls_schema, events_schema, id_bounds, states_schema};
use crate::report;
use crate::state::States;
use crate::tables::doc::TableDoc;
use crate::tables::followed::Followed;

/// The manifest's name for the captures of `--pointees`.
const POINTEES: &str = "pointees";

/// The sources of the tables.
pub struct Sources {
    /// The sealed calls.
    pub calls: Arc<dyn TableSource>,
    /// The sealed other events.
    pub events: Arc<dyn TableSource>,
    /// The sealed states of stopped threads.
    pub states: Arc<dyn TableSource>,
    /// Functions, modules and probes.
    pub definitions: Arc<Definitions>,
    /// What reports are made of.
    pub report: Arc<report::Source>,
    /// The recording.
    pub recording: Recording,
    /// What its set knows of the processes that it made.
    pub followed: Followed,
    /// From ticks to nanoseconds.
    pub clock: Clock,
    /// Bytes as text.
    pub utf8_text: ScalarUDF,
    /// Bytes in hexadecimal.
    pub hex: ScalarUDF,
    states_of_moments: States,
    of_calls: OfCalls,
}

/// The columns that the function of a call determines.
struct OfCalls {
    function: ScalarUDF,
    file: ScalarUDF,
    line: ScalarUDF,
    module: ScalarUDF,
    args: ScalarUDF,
    /// `args` uses the states for values that registers do not hold.
    args_ask: bool,
    /// The registers that `args` needs of any call.
    needed: Needed,
    ret: ScalarUDF,
    ret_f: ScalarUDF,
    ret_text: ScalarUDF,
    /// `None`: its captures do not exist.
    outs: Option<ScalarUDF>,
}

impl Sources {
    /// Returns the sources of a recording from its sealed files, given in order.
    pub fn new(
        calls: &[OpenedPart],
        events: &[OpenedPart],
        states: &[OpenedPart],
        definitions: Definitions,
        recording: &Recording,
        of_states: &States,
    ) -> Self {
        let definitions = Arc::new(definitions);
        let report = Arc::new(report::Source::new(calls, &definitions, of_states));
        let needed = needed_of(&definitions, calls);
        let calls = PartsTable::new(calls_schema(), calls, Some("end_seq"));
        let events = PartsTable::new(events_schema(), events, Some("seq"));
        let states = PartsTable::new(states_schema(), states, Some("seq"));
        Self {
            calls: provider_as_source(Arc::new(calls)),
            events: provider_as_source(Arc::new(events)),
            states: provider_as_source(Arc::new(states)),
            clock: recording.clock(),
            recording: recording.clone(),
            followed: Followed::default(),
            utf8_text: text::utf8_text(),
            hex: text::hex_text(),
            states_of_moments: of_states.clone(),
            of_calls: OfCalls::new(&definitions, recording, of_states, needed),
            report,
            definitions,
        }
    }

    /// Returns a table of instructions.
    pub fn run_again(&self, kind: Kind, doc: &TableDoc) -> Arc<dyn TableProvider> {
        let settings = &self.recording.manifest().settings;
        table(
            kind,
            doc,
            settings.has_every_instruction(),
            &self.states_of_moments,
        )
    }

    /// Returns the expression over a call's physical columns for a column that its function determines.
    pub fn of_call(&self, column: &str) -> Option<Expr> {
        let value = self.of_calls.column(column)?;
        // Go passes arguments in registers of its own, which are not recorded.
        let is_of_go = column == "args" && self.report.only_entries;
        match is_of_go {
            true => {
                let unknown = lit(ScalarValue::Utf8View(Some("?".into())));
                let known = when(col("child_ns").lt(lit(0i64)), unknown).otherwise(value.unalias());
                Some(known.ok()?.alias(column))
            }
            false => Some(value),
        }
    }
}

/// Returns the registers that the arguments of any call are made of.
fn needed_of(definitions: &Definitions, calls: &[OpenedPart]) -> Needed {
    let all = definitions.functions();
    let needed = all.fold(Needed::default(), |needed, function| {
        needed.or(Needed::of_defined(definitions, function))
    });
    let is_defined = |id: i32| definitions.function(id as usize).is_some();
    let groups = || calls.iter().flat_map(|part| part.footer.row_groups());
    match id_bounds(groups()) {
        Some((first, last)) if first >= 0 && (first..=last).all(is_defined) => needed,
        None if groups().next().is_none() => needed,
        _ => needed.or(Needed::of(None)),
    }
}

impl OfCalls {
    fn new(
        definitions: &Arc<Definitions>,
        recording: &Recording,
        of_states: &States,
        needed: Needed,
    ) -> Self {
        let captures = &recording.manifest().settings.captures;
        let has_pointees = captures.iter().any(|capture| capture == POINTEES);
        let asked = Asked {
            states: of_states.clone(),
            has_captures: recording.manifest().settings.captures_with_calls(),
        };
        let asked = asked.is_needed(definitions).then_some(asked);
        let module = |f: &FunctionDef| definitions.module(f.module);
        let modules = definitions.texts(|f| module(f).map(|module| module.name()));
        let lines = definitions.numbers(|f| f.line.map(i64::from));
        let (ret, ret_f) = ret::functions(definitions);
        Self {
            function: Lookup::function("function_name", definitions.texts(|f| Some(&f.name))),
            file: Lookup::function("function_file", definitions.texts(|f| f.file.as_deref())),
            line: Lookup::function("function_line", lines),
            module: Lookup::function("function_module", modules),
            args_ask: asked.is_some(),
            needed,
            args: args::function(definitions, asked),
            ret,
            ret_f,
            ret_text: ret_text::function(definitions, of_states),
            outs: has_pointees.then(|| outs::function(definitions, of_states)),
        }
    }

    fn column(&self, column: &str) -> Option<Expr> {
        let id = || col("function_id");
        let expr = match column {
            "function" => self.function.call(vec![id()]),
            "file" => self.file.call(vec![id()]),
            "line" => self.line.call(vec![id()]),
            "module" => self.module.call(vec![id()]),
            "args" => {
                let mut inputs = vec![id()];
                let names = (0..6).map(|i| format!("a{i}"));
                let names = names.chain((0..8).map(|i| format!("x{i}"))).enumerate();
                inputs.extend(names.map(|(at, name)| match self.needed.has(at) {
                    true => col(name),
                    false => lit(ScalarValue::Int64(None)),
                }));
                if self.args_ask {
                    inputs.push(col("start_seq"));
                }
                self.args.call(inputs)
            }
            "ret" => self.ret.call(vec![id(), col("rax")]),
            "ret_text" => {
                let inputs = ["end_seq", "rax", "xr0"].map(col);
                let inputs = std::iter::once(id()).chain(inputs).collect();
                self.ret_text.call(inputs)
            }
            "outs" => match &self.outs {
                Some(outs) => outs.call(vec![id(), col("end_seq")]),
                None => lit(ScalarValue::Utf8View(None)),
            },
            "ret_f" => self.ret_f.call(vec![id(), col("xr0")]),
            _ => return None,
        };
        Some(expr.alias(column))
    }
}
