//! The second attempt at a query that exceeded its memory.
//!
//! Joins sort, because sorts can spill, whereas a hash join holds one side in memory. A part of the memory is reserved for what
//! cannot spill: a sort that has spilled needs room for merging, which its neighbours must not take. It is slower than the
//! first attempt.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionState;

/// Memory for each core that takes part. Each core has its own sorts, which share the memory.
const MEMORY_PER_CORE_BYTES: usize = 256 << 20;
/// With one core alone, groups would be held in memory.
const FEWEST_CORES: usize = 2;
/// Operators that can spill get at most this part of the memory, in equal shares.
const SPILLING_PERCENT: usize = 50;
/// Merges of spilled sorts get this part, in equal shares.
const MERGING_PERCENT: usize = 30;
/// Sorts of one question, for each core: those of both sides of two joins, and of the answer. Each has its share from its beginning.
const SORTS_PER_CORE: usize = 8;
/// The beginning of the names of such merges.
const MERGE: &str = "ExternalSorterMerge";
/// Rows of a batch at most.
const BATCH_ROWS: usize = 2048;

/// Changes how queries are planned, for this many bytes of memory.
pub fn plan_carefully(state: &mut SessionState, memory_bytes: usize) {
    let options = state.config_mut().options_mut();
    options.optimizer.prefer_hash_join = false;
    let cores = (memory_bytes / MEMORY_PER_CORE_BYTES).max(FEWEST_CORES);
    options.execution.target_partitions = options.execution.target_partitions.min(cores);
    // Pieces of one sorted batch share its texts, and each counts all of them.
    options.execution.sort_in_place_threshold_bytes = 0;
    let merges = memory_bytes / 100 * MERGING_PERCENT;
    let merge_bytes = merges / (options.execution.target_partitions.max(1) * SORTS_PER_CORE);
    let usual_bytes = options.execution.sort_spill_reservation_bytes;
    options.execution.sort_spill_reservation_bytes = usual_bytes.min(merge_bytes);
    let config = state.config_mut();
    let batch_rows = config.batch_size().min(BATCH_ROWS);
    *config = config.clone().with_batch_size(batch_rows);
}

/// Returns the context that runs the plan of such a state.
///
/// # Errors
/// When there is no runtime.
pub fn context(state: &SessionState, memory_bytes: usize) -> Result<Arc<TaskContext>> {
    let runtime = RuntimeEnvBuilder::from_runtime_env(state.runtime_env())
        .with_memory_pool(Arc::new(Pool::new(memory_bytes)))
        .build_arc()?;
    Ok(Arc::new(TaskContext::from(state).with_runtime(runtime)))
}

/// The kind of a memory consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It can spill.
    Spills,
    /// It merges what a sort has spilled.
    Merges,
    /// It can do neither.
    Holds,
}

impl Kind {
    fn of(consumer: &MemoryConsumer) -> Kind {
        match consumer.can_spill() {
            true => Kind::Spills,
            false if consumer.name().starts_with(MERGE) => Kind::Merges,
            false => Kind::Holds,
        }
    }
}

/// Memory of which each kind has a part. Otherwise a merge would take all free memory, and the other sorts, which need some
/// to start their own merges, would fail.
#[derive(Debug)]
struct Pool {
    limit: usize,
    used: Mutex<Used>,
}

/// Bytes in use, and the number of consumers, by kind.
#[derive(Debug, Default)]
struct Used {
    bytes: [usize; 3],
    consumers: [usize; 3],
}

impl Pool {
    fn new(limit: usize) -> Pool {
        Pool {
            limit,
            used: Mutex::default(),
        }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fits(&self, used: &Used, reservation: &MemoryReservation, additional: usize) -> bool {
        let kind = Kind::of(reservation.consumer());
        let part = |percent: usize| self.limit / 100 * percent;
        let share = |all: usize| all / used.consumers[kind as usize].max(1);
        let wanted = reservation.size() + additional;
        let merging = part(MERGING_PERCENT);
        let is_within_share = match kind {
            Kind::Spills => wanted <= share(part(SPILLING_PERCENT)),
            Kind::Merges => wanted <= share(merging),
            Kind::Holds => true,
        };
        // The rest of the merges' part is theirs.
        let theirs = match (kind, used.consumers[Kind::Merges as usize]) {
            (Kind::Merges, _) | (_, 0) => 0,
            _ => merging.saturating_sub(used.bytes[Kind::Merges as usize]),
        };
        let all: usize = used.bytes.iter().sum();
        is_within_share && all + additional + theirs <= self.limit
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.limit)
    }
}

impl MemoryPool for Pool {
    fn name(&self) -> &str {
        "careful"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.used().consumers[Kind::of(consumer) as usize] += 1;
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.used().consumers[Kind::of(consumer) as usize] -= 1;
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.used().bytes[Kind::of(reservation.consumer()) as usize] += additional;
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.used().bytes[Kind::of(reservation.consumer()) as usize] -= shrink;
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut used = self.used();
        if !self.fits(&used, reservation, additional) {
            let name = reservation.consumer().name();
            return Err(DataFusionError::ResourcesExhausted(format!(
                "Failed to allocate {additional} bytes for {name}"
            )));
        }
        used.bytes[Kind::of(reservation.consumer()) as usize] += additional;
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.used().bytes.iter().sum()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_part_and_each_consumer_its_share() {
        let pool: Arc<dyn MemoryPool> = Arc::new(Pool::new(1000));
        let spills = |name: &str| {
            MemoryConsumer::new(name)
                .with_can_spill(true)
                .register(&pool)
        };
        let holds = |name: &str| MemoryConsumer::new(name).register(&pool);
        let (first, second) = (spills("first"), spills("second"));
        let (one, other) = (
            holds("ExternalSorterMerge[0]"),
            holds("ExternalSorterMerge[1]"),
        );
        assert!(first.try_grow(250).is_ok());
        assert!(first.try_grow(1).is_err());
        assert!(one.try_grow(150).is_ok());
        assert!(one.try_grow(1).is_err());
        // 300 are the second one's of each kind and the other merge's.
        let join = holds("join");
        assert!(join.try_grow(450).is_ok());
        assert!(join.try_grow(1).is_err());
        assert!(second.try_grow(1).is_err());
        assert!(other.try_grow(150).is_ok());
        drop(join);
        assert!(second.try_grow(250).is_ok());
        assert_eq!(pool.reserved(), 800);
        drop((first, second, one, other));
        assert_eq!(pool.reserved(), 0);
    }
}
