//! Answers SQL over one recording.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SQLOptions, SessionContext};
use datafusion::sql::parser::{DFParserBuilder, Statement};
use futures::channel::{mpsc, oneshot};
use futures::{SinkExt, StreamExt};
use store::Reader;

use crate::allocator::keep_freed_memory;
use crate::answer::{Answer, Task};
use crate::context::context;
use crate::definitions::Definitions;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::open::{Extent, sources};
use crate::options::Options;
use crate::question::{self, Names, diagnose};
use crate::state::States;
use crate::tables::TABLES;

/// Batches that wait between the computation and the reader of an answer.
const WAITING_BATCHES: usize = 2;

/// A recording that can be queried. It shows the content at its opening.
pub struct Session {
    context: SessionContext,
    options: Options,
    extent: Extent,
    names: Arc<Names>,
    engine: Arc<Engine>,
    reader: Arc<Reader>,
    definitions: Arc<Definitions>,
    states: States,
}

impl Session {
    /// Opens the recording that `path` names, with or without its ending `.hindsight`; it may still be being written.
    ///
    /// # Errors
    /// When the recording or a sealed file cannot be read, or temporary files cannot be written.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, Options::default())
    }

    /// As [`Self::open`], with other limits.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_with(path: &Path, options: Options) -> Result<Self> {
        let reader = Reader::open(path, &options.temp_dir)?;
        Self::new(Arc::new(reader), options)
    }

    /// Queries an opened recording.
    ///
    /// The process's allocator keeps up to 64 MiB of freed memory per thread from then on.
    ///
    /// # Errors
    /// When a sealed file cannot be read, or the threads cannot be made.
    pub fn new(reader: Arc<Reader>, options: Options) -> Result<Self> {
        keep_freed_memory();
        let states = States::new(Arc::clone(&reader));
        let sources = sources(&reader, &states)?;
        let context = context(&sources, &options).map_err(execution)?;
        states.register(&context);
        crate::compare::register(&context);
        let extent = Extent::of(&reader);
        let engine = Engine::start(options.cores, Arc::clone(&reader))?;
        Ok(Self {
            reader,
            definitions: sources.definitions,
            states,
            names: Arc::new(names(&context.state())),
            context,
            options,
            extent,
            engine: Arc::new(engine),
        })
    }

    /// Returns the opened recording.
    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns its functions and modules.
    pub(crate) fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Tells whether anything was captured with calls.
    pub(crate) fn has_captures(&self) -> bool {
        let manifest = self.reader.recording().manifest();
        !manifest.settings.captures.is_empty()
    }

    /// Returns its states.
    pub(crate) fn states(&self) -> &States {
        &self.states
    }

    /// Returns the part of the recording that this session sees.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Runs one query and waits until its answer has columns; rows come as the answer is read.
    ///
    /// # Errors
    /// [`Error::Sql`] for a wrong query, [`Error::ReadOnly`] for one that would change something.
    pub fn sql(&self, sql: &str) -> Result<Answer> {
        futures::executor::block_on(self.ask(sql, None))
    }

    /// As [`Self::sql`] for at most `max_rows` rows; [`Answer::was_cut`] tells whether there are more.
    ///
    /// # Errors
    /// As for [`Self::sql`].
    pub fn sql_up_to(&self, sql: &str, max_rows: usize) -> Result<Answer> {
        futures::executor::block_on(self.ask(sql, Some(max_rows)))
    }

    /// As [`Self::sql`] and [`Self::sql_up_to`], for asynchronous callers.
    ///
    /// # Errors
    /// As for [`Self::sql`].
    pub async fn ask(&self, sql: &str, max_rows: Option<usize>) -> Result<Answer> {
        let question = Question {
            state: self.context.state(),
            sql: sql.to_owned(),
            max_rows,
            names: Arc::clone(&self.names),
            memory_bytes: self.options.memory_bytes,
        };
        let (schema_sender, schema) = oneshot::channel();
        let (batch_sender, batches) = mpsc::channel(WAITING_BATCHES);
        let handle = self
            .engine
            .spawn(question.answer(schema_sender, batch_sender));
        let mut task = Task::new(handle, Arc::clone(&self.engine));
        match schema.await {
            Ok(schema) => Ok(Answer::new(schema?, batches, task, max_rows)),
            Err(_) => Err(task.end().await.err().unwrap_or_else(no_answer)),
        }
    }

    /// Returns the number of computations on this session's threads. Each running answer has one or more.
    pub fn running_tasks(&self) -> usize {
        self.engine.running_tasks()
    }

    /// Returns how many bytes the running answers have spilled to files now.
    pub fn spilled_bytes(&self) -> u64 {
        let progress = self.context.runtime_env().spilling_progress();
        progress.current_bytes
    }

    /// Returns the names of all functions, for completion.
    pub fn function_names(&self) -> &[String] {
        &self.names.functions
    }
}

/// Everything that one query needs.
struct Question {
    state: SessionState,
    sql: String,
    max_rows: Option<usize>,
    names: Arc<Names>,
    memory_bytes: usize,
}

impl Question {
    /// Sends the columns or the query's error, then the rows.
    async fn answer(
        self,
        schema: oneshot::Sender<Result<SchemaRef>>,
        mut batches: mpsc::Sender<Result<RecordBatch>>,
    ) {
        let plan = match self.plan().await {
            Ok(plan) => plan,
            Err(error) => return drop(schema.send(Err(error))),
        };
        let columns = plan.schema();
        let mut stream = match execute_stream(plan, self.state.task_ctx()) {
            Ok(stream) => stream,
            Err(error) => return drop(schema.send(Err(self.failed(error)))),
        };
        if schema.send(Ok(columns)).is_err() {
            return;
        }
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(|error| self.failed(error));
            let failed = batch.is_err();
            if batches.send(batch).await.is_err() || failed {
                return;
            }
        }
    }

    async fn plan(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let wrong = |error: DataFusionError| match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => self.failed(error),
            _ => diagnose(&self.sql, &error, &self.names),
        };
        let mut statement = self.parse()?;
        question::check(&statement)?;
        let planned = self.state.statement_to_plan(statement.clone()).await;
        let plan = match planned {
            Err(error) if question::resolve(&mut statement) => {
                let again = self.state.statement_to_plan(statement).await;
                again.map_err(|_| error)
            }
            planned => planned,
        };
        let plan = plan.map_err(wrong)?;
        SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false)
            .verify_plan(&plan)
            .map_err(wrong)?;
        let plan = self.limited(plan).map_err(wrong)?;
        self.state.create_physical_plan(&plan).await.map_err(wrong)
    }

    fn parse(&self) -> Result<Statement> {
        let wrong = |error| diagnose(&self.sql, &error, &self.names);
        let mut parser = DFParserBuilder::new(self.sql.as_str())
            .build()
            .map_err(wrong)?;
        let mut statements = parser.parse_statements().map_err(wrong)?;
        match (statements.pop_front(), statements.len()) {
            (Some(statement), 0) => Ok(statement),
            (None, _) => Err(wrong(DataFusionError::Plan("there is no question".into()))),
            _ => Err(question::second_question(&self.sql)),
        }
    }

    /// Requests one row more than wanted, to know whether there are more.
    fn limited(&self, plan: LogicalPlan) -> datafusion::common::Result<LogicalPlan> {
        let explains = matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
        match self.max_rows {
            Some(rows) if !explains => LogicalPlanBuilder::from(plan)
                .limit(0, Some(rows.saturating_add(1)))?
                .build(),
            _ => Ok(plan),
        }
    }

    fn failed(&self, error: DataFusionError) -> Error {
        match error.find_root() {
            DataFusionError::ResourcesExhausted(message) => Error::Memory {
                limit_bytes: self.memory_bytes,
                message: question::memory_message(message),
            },
            _ => execution(error),
        }
    }
}

/// The error for a computation that ended without a result.
fn no_answer() -> Error {
    execution(DataFusionError::Internal(
        "the computation ended without an answer".into(),
    ))
}

pub(crate) fn execution(error: DataFusionError) -> Error {
    Error::Execution(Box::new(error))
}

fn names(state: &SessionState) -> Names {
    let mut functions: BTreeSet<String> = state.scalar_functions().keys().cloned().collect();
    functions.extend(state.aggregate_functions().keys().cloned());
    functions.extend(state.window_functions().keys().cloned());
    functions.extend(state.table_functions().keys().cloned());
    Names {
        tables: TABLES.iter().map(|table| table.name.to_owned()).collect(),
        functions: functions.into_iter().collect(),
        of_tables: state.table_functions().keys().cloned().collect(),
    }
}
