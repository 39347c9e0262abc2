//! Freed blocks of the heap that a crashed thread still used: by the address of its fault, or by a pointer argument of its
//! innermost calls.

use serde::Serialize;
use store::control::{ParameterPlace, ValueKind};

use super::source::Source;
use crate::error::Result;
use crate::rows::Row;

/// Innermost calls whose arguments are looked at.
const CALLS: usize = 3;

/// A freed block that was still used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FreedBlock {
    /// The address that the thread used.
    pub address: String,
    /// The parameter with this address, and its function; `None`: it is the address of the fault.
    pub argument: Option<(String, String)>,
    /// How far in the block it is.
    pub offset: u64,
    /// Bytes of the block, if they are known.
    pub size: Option<u64>,
    /// What allocated it, if that was recorded.
    pub made: Option<Step>,
    /// What freed it.
    pub freed: Step,
}

/// A call that allocated or freed a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its enter event.
    pub seq: u64,
    /// The function.
    pub function: String,
    /// Who called it.
    pub place: Option<String>,
}

/// Finds them. `fault` is the address of the fault.
///
/// # Errors
/// The recording cannot be read.
pub fn freed(
    source: &Source<'_>,
    tid: u32,
    seq: u64,
    fault: Option<u64>,
) -> Result<Vec<FreedBlock>> {
    let open = source.around(tid, seq)?;
    let mut used: Vec<(u64, Option<(String, String)>)> = Vec::new();
    used.extend(fault.map(|address| (address, None)));
    for call in open.iter().take(CALLS) {
        let sql = format!(
            "select a0, a1, a2, a3, a4, a5 from calls where start_seq = {}",
            call.start
        );
        let rows = source.ask(&sql)?;
        let (Some(row), Some(function)) = (rows.first(), source.function(call.function)) else {
            continue;
        };
        for param in &function.params {
            if let (ValueKind::Pointer, ParameterPlace::Int(register)) = (&param.kind, param.place)
                && let Some(address) = row.number(usize::from(register))
                && used.iter().all(|(known, _)| *known != address as u64)
            {
                let named = (param.name.clone(), function.name.clone());
                used.push((address as u64, Some(named)));
            }
        }
    }
    used.retain(|(address, _)| *address != 0);
    if used.is_empty() {
        return Ok(Vec::new());
    }
    let holds = used.iter().map(|(address, _)| {
        let address = *address as i64;
        format!("addr <= {address} and {address} < addr + greatest(coalesce(size, 1), 1)")
    });
    let holds = holds.collect::<Vec<_>>().join(" or ");
    let sql = format!(
        "select addr, size, function, seq, place, freed_by, freed_seq, freed_place from allocations \
         where (seq is null or seq <= {seq}) and ({holds}) order by freed_seq nulls last"
    );
    let blocks = source.ask(&sql)?;
    let is_open = |seq: u64| open.iter().any(|call| call.start == seq);
    let found = used.into_iter().filter_map(|(address, argument)| {
        // A call that frees a block once more has a row of its own, of a block that nothing made.
        let is_life = |row: &&Row| row.count(3).is_some() || !row.count(6).is_some_and(is_open);
        let mut holding = blocks.iter().filter(|row| holds_it(row, address));
        // The one freed last; a block that is not freed yet comes after all others, and so does one that is being freed.
        let holding = holding.rfind(is_life)?;
        let freed_seq = holding.count(6).filter(|at| *at < seq && !is_open(*at))?;
        let step = |seq, function, place| Step {
            seq,
            function: holding.text(function).unwrap_or_default().to_owned(),
            place: holding.text(place).map(str::to_owned),
        };
        Some(FreedBlock {
            address: format!("{address:#x}"),
            argument,
            offset: address - holding.number(0)? as u64,
            size: holding.count(1),
            made: holding.count(3).map(|seq| step(seq, 2, 4)),
            freed: step(freed_seq, 5, 7),
        })
    });
    Ok(found.collect())
}

/// Whether a block of `allocations` has this address.
fn holds_it(row: &Row, address: u64) -> bool {
    let (Some(start), size) = (row.number(0), row.count(1).unwrap_or(1).max(1)) else {
        return false;
    };
    let start = start as u64;
    (start..start.saturating_add(size)).contains(&address)
}
