//! How much of a recording an answer has read so far. It says that a long question is alive.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::physical_plan::ExecutionPlan;

/// The metric of scans that counts bytes.
pub(crate) const BYTES: &str = "bytes_scanned";

/// A view of a running answer that may be kept beside it.
#[derive(Debug, Clone)]
pub struct Reading(Arc<Mutex<Arc<dyn ExecutionPlan>>>);

impl Reading {
    pub(crate) fn of(plan: Arc<dyn ExecutionPlan>) -> Self {
        Self(Arc::new(Mutex::new(plan)))
    }

    /// The answer is computed by another plan from now on.
    pub(crate) fn follow(&self, plan: Arc<dyn ExecutionPlan>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }

    /// Returns how many bytes of sealed files the answer has read, compressed as they are on disk.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let plan = Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner));
        bytes(&plan)
    }
}

fn bytes(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let own = plan
        .metrics()
        .and_then(|metrics| metrics.sum_by_name(BYTES));
    let own = own.map_or(0, |sum| sum.as_usize() as u64);
    own + plan.children().into_iter().map(bytes).sum::<u64>()
}
