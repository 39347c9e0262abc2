//! How much of a recording an answer has read so far: a sign that a long query still runs.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::physical_plan::ExecutionPlan;

use crate::instructions::INSTRUCTIONS;

/// The metric of scans that counts bytes.
pub(crate) const BYTES: &str = "bytes_scanned";

/// A view of a running answer, independent of its lifetime.
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
        sum(&self.plan(), BYTES)
    }

    /// Returns the instruction up to which the answer has run the program again; 0 if it does not run it.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        sum(&self.plan(), INSTRUCTIONS)
    }

    fn plan(&self) -> Arc<dyn ExecutionPlan> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn sum(plan: &Arc<dyn ExecutionPlan>, name: &str) -> u64 {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name(name));
    let own = own.map_or(0, |sum| sum.as_usize() as u64);
    let children = plan.children().into_iter();
    own + children.map(|child| sum(child, name)).sum::<u64>()
}
