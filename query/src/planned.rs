//! The future that a table's `scan` returns, written as `async_trait` would write it.
//!
//! The plans here are made without waiting. With an `async fn` the compiler would prove anew for each method that all
//! expressions of a query can be sent to another thread, which took most of the time of checking this crate.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;

/// The plan of a scan, or the error.
pub type Planned<'a> = Pin<Box<dyn Future<Output = Result<Arc<dyn ExecutionPlan>>> + Send + 'a>>;
