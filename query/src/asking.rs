//! Answers SQL over the tables of any recordings: plans a query, runs it on threads of its own, and keeps the files
//! that it needs open while the answer is read.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::{EmptyRecordBatchStream, ExecutionPlan, execute_stream};
use datafusion::prelude::{SQLOptions, SessionContext};
use datafusion::sql::parser::{DFParserBuilder, Statement};
use futures::channel::{mpsc, oneshot};
use futures::{SinkExt, StreamExt};

use crate::allocator::keep_freed_memory;
use crate::answer::{Answer, Task};
use crate::careful;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::functions::cast_as;
use crate::options::Options;
use crate::question::{self, Headings, Names, diagnose};
use crate::reading::Reading;
use crate::stoppable::stoppable;
use crate::tables::TABLES;

/// Batches that wait between the computation and the reader of an answer.
const WAITING_BATCHES: usize = 2;

/// Tables that can be queried.
pub struct Asking {
    context: SessionContext,
    memory_bytes: usize,
    names: Arc<Names>,
    engine: Arc<Engine>,
}

impl Asking {
    /// Takes a context with tables and functions. `files`, the owner of their files, lives as long as any answer.
    ///
    /// The process's allocator keeps up to 64 MiB of freed memory per thread from then on.
    ///
    /// # Errors
    /// When the threads cannot be made.
    pub fn new(
        context: SessionContext,
        options: &Options,
        files: Arc<dyn Any + Send + Sync>,
    ) -> Result<Self> {
        keep_freed_memory();
        Ok(Self {
            names: Arc::new(names(&context.state())),
            context,
            memory_bytes: options.memory_bytes,
            engine: Arc::new(Engine::start(options.cores, files)?),
        })
    }

    /// Runs one query for at most `max_rows` rows, and waits until its answer has columns.
    ///
    /// # Errors
    /// [`Error::Sql`] for a wrong query, [`Error::ReadOnly`] for one that would change something.
    pub async fn ask(&self, sql: &str, max_rows: Option<usize>) -> Result<Answer> {
        let question = Question {
            state: self.context.state(),
            sql: sql.to_owned(),
            max_rows,
            names: Arc::clone(&self.names),
            memory_bytes: self.memory_bytes,
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

    /// Returns the number of computations on these threads. Each running answer has one or more.
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

/// The plan of a statement; `None` if its answer would have no column.
type Planned = datafusion::common::Result<Option<Arc<dyn ExecutionPlan>>>;

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
        schema: oneshot::Sender<Result<(SchemaRef, Reading)>>,
        mut batches: mpsc::Sender<Result<RecordBatch>>,
    ) {
        let plan = match self.plan(&self.state).await {
            Ok(plan) => plan,
            Err(error) => return drop(schema.send(Err(error))),
        };
        let mut stream = match execute_stream(Arc::clone(&plan), self.state.task_ctx()) {
            Ok(stream) => stream,
            Err(error) => return drop(schema.send(Err(self.failed(error)))),
        };
        let reading = Reading::of(Arc::clone(&plan));
        let headings = self.headings(plan.schema().fields().len());
        let told = headings.schema(&plan.schema());
        if schema.send(Ok((told, reading.clone()))).is_err() {
            return;
        }
        let mut next = stream.next().await;
        if let Some(Err(error)) = &next
            && is_short_of_memory(error)
        {
            // The first plan's memory is freed before the second begins.
            stream = Box::pin(EmptyRecordBatchStream::new(plan.schema()));
            if let Some((again, other)) = self.carefully().await {
                reading.follow(other);
                stream = again;
                next = stream.next().await;
            }
        }
        while let Some(batch) = next {
            let batch = batch.and_then(|batch| Ok(headings.batch(batch)?));
            let batch = batch.map_err(|error| self.failed(error));
            let failed = batch.is_err();
            if batches.send(batch).await.is_err() || failed {
                return;
            }
            next = stream.next().await;
        }
    }

    /// Plans and starts the query again, so that it needs less memory.
    async fn carefully(&self) -> Option<(SendableRecordBatchStream, Arc<dyn ExecutionPlan>)> {
        let mut state = self.state.clone();
        careful::plan_carefully(&mut state, self.memory_bytes);
        let plan = self.plan(&state).await.ok()?;
        let context = careful::context(&state, self.memory_bytes).ok()?;
        let stream = execute_stream(Arc::clone(&plan), context).ok()?;
        Some((stream, plan))
    }

    async fn plan(&self, state: &SessionState) -> Result<Arc<dyn ExecutionPlan>> {
        let wrong = |error: DataFusionError| match is_short_of_memory(&error) {
            true => self.failed(error),
            false => diagnose(&self.sql, &error, &self.names),
        };
        let mut statement = self.parse()?;
        question::check(&statement)?;
        question::check_words(&statement, &self.sql)?;
        question::make_exact(&mut statement);
        question::ascending(&mut statement);
        let asked = statement.clone();
        let is_rewritten = question::with_unknown(&mut statement);
        let plan = match self.named(state, statement).await {
            Err(error) if is_rewritten && !is_short_of_memory(&error) => {
                return Err(self.without_unknown(state, asked).await);
            }
            planned => planned.map_err(wrong)?,
        };
        plan.ok_or_else(|| question::no_columns(&self.sql))
    }

    /// The error of a question that has no plan with the unknown of the standard: its own, if it is wrong as it was asked.
    async fn without_unknown(&self, state: &SessionState, asked: Statement) -> Error {
        match self.mended(state, asked).await {
            Err(error) => diagnose(&self.sql, &error, &self.names),
            Ok(_) => question::no_unknown(&self.sql),
        }
    }

    /// As [`Self::mended`]; where the question sorts or groups, with names of their own for its casts.
    async fn named(&self, state: &SessionState, statement: Statement) -> Planned {
        let mut named = statement.clone();
        if !question::sorts_or_groups(&statement) || !question::tell_apart(&mut named) {
            return self.mended(state, statement).await;
        }
        match self.mended(state, named).await {
            // The error about the question as it was asked has the user's words.
            Err(error) if !is_short_of_memory(&error) => {
                let asked = self.mended(state, statement).await;
                Err(asked.err().unwrap_or(error))
            }
            planned => planned,
        }
    }

    /// As [`Self::planned`], once more with what DataFusion refuses though it is right.
    async fn mended(&self, state: &SessionState, mut statement: Statement) -> Planned {
        match self.planned(state, statement.clone()).await {
            Err(error) if mend(&mut statement, &error) => {
                let again = self.planned(state, statement).await;
                again.map_err(|_| error)
            }
            planned => planned,
        }
    }

    /// Returns the plan of a statement; `None` if its answer would have no column.
    async fn planned(&self, state: &SessionState, statement: Statement) -> Planned {
        let plan = state.statement_to_plan(statement).await?;
        if plan.schema().fields().is_empty() {
            return Ok(None);
        }
        SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false)
            .verify_plan(&plan)?;
        question::check_not_in(&plan)?;
        let plan = self.limited(plan)?;
        let plan = state.create_physical_plan(&plan).await?;
        stoppable(plan).map(Some)
    }

    fn headings(&self, columns: usize) -> Headings {
        let statement = self.parse();
        statement.map_or_else(
            |_| Headings::default(),
            |statement| Headings::of(&statement, columns),
        )
    }

    fn parse(&self) -> Result<Statement> {
        let wrong = |error| diagnose(&self.sql, &error, &self.names);
        question::check_depth(&self.sql)?;
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

/// Rewrites what DataFusion refuses though it is right. Returns whether there was anything of the kind.
fn mend(statement: &mut Statement, error: &DataFusionError) -> bool {
    let has_places = question::resolve(statement);
    let has_same_names = question::same_names(error) && question::tell_apart(statement);
    has_places || has_same_names
}

fn is_short_of_memory(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
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
    functions.remove(cast_as::NAME);
    functions.extend(state.aggregate_functions().keys().cloned());
    functions.extend(state.window_functions().keys().cloned());
    functions.extend(state.table_functions().keys().cloned());
    Names {
        tables: TABLES.iter().map(|table| table.name.to_owned()).collect(),
        functions: functions.into_iter().collect(),
        of_tables: state.table_functions().keys().cloned().collect(),
    }
}
