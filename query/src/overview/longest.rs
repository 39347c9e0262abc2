//! Finds the calls that took longest: their times are known from counting, and one pass tells their events.

use super::source::Source;
use crate::error::Result;

/// A longest call that is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// That of a function.
    OfFunction(u32),
    /// That of a thread.
    OfThread(u32),
}

/// A call that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its enter event.
    pub seq: u64,
    /// Its function.
    pub function: u32,
    tid: Option<u32>,
    self_ns: u64,
}

/// The calls that were found.
#[derive(Debug, Default)]
pub struct Longest(Vec<Found>);

impl Longest {
    /// Searches for the first call with each wanted time without calls, in ns.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn find(source: &Source<'_>, wanted: &[(Wanted, u64)]) -> Result<Longest> {
        let mut wanted = wanted.to_vec();
        wanted.dedup();
        let Some(least) = wanted.iter().map(|(_, ns)| *ns).min() else {
            return Ok(Longest::default());
        };
        let is_wanted = wanted.iter().map(|(what, ns)| match what {
            Wanted::OfFunction(id) => format!("function_id = {id} and self_ns = {ns}"),
            Wanted::OfThread(tid) => format!("tid = {tid} and self_ns = {ns}"),
        });
        let is_wanted: Vec<String> = is_wanted.collect();
        let sql = format!(
            "select function_id, tid, self_ns, min(start_seq) from calls where self_ns >= {least} and ({}) \
             group by function_id, tid, self_ns",
            is_wanted.join(" or ")
        );
        let rows = source.ask(&sql)?;
        let mut found: Vec<Found> = rows
            .iter()
            .filter_map(|row| {
                Some(Found {
                    seq: row.count(3)?,
                    function: u32::try_from(row.number(0)?).ok()?,
                    tid: row.number(1).and_then(|tid| u32::try_from(tid).ok()),
                    self_ns: row.count(2)?,
                })
            })
            .collect();
        found.sort_by_key(|found| found.seq);
        Ok(Longest(found))
    }

    /// Returns a wanted call.
    pub fn get(&self, what: Wanted, self_ns: u64) -> Option<Found> {
        let is_it = |found: &&Found| {
            found.self_ns == self_ns
                && match what {
                    Wanted::OfFunction(id) => found.function == id,
                    Wanted::OfThread(tid) => found.tid == Some(tid),
                }
        };
        self.0.iter().find(is_it).copied()
    }
}
