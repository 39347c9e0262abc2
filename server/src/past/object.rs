//! The life of a heap block: who allocated it, who freed it, and what was at its address before and after.

use debuginfo::Certainty;
use replay::{Block, CallHead};
use serde::{Deserialize, Serialize};

use super::{Past, Position, frames_for, of_replay};
use crate::inspect;
use crate::protocol::Failure;
use crate::session::hex;

/// Most blocks before and after that are reported.
const OTHERS: usize = 5;

/// What is known about a heap block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectReply {
    /// The address.
    pub address: String,
    /// The event of the question.
    pub seq: u64,
    /// If the expression may have another value by then: the event that showed this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<u64>,
    /// The block that held it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockReport>,
    /// Blocks that held it before, the last one first.
    pub earlier: Vec<BlockReport>,
    /// Blocks that held it afterwards, in order.
    pub later: Vec<BlockReport>,
    /// Blocks before and after that are omitted.
    pub more: usize,
    /// What is not known, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// What would have recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A block of the heap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockReport {
    /// Its first byte.
    pub address: String,
    /// The requested size in bytes.
    pub size: u64,
    /// How far the address is after its first byte.
    pub offset: u64,
    /// The call that returned it.
    pub made: BlockCall,
    /// The call that freed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed: Option<BlockCall>,
}

/// A call that allocated or freed a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockCall {
    /// Its enter event.
    pub seq: u64,
    /// Its leave event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_seq: Option<u64>,
    /// Its function.
    pub function: String,
    /// The thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// The function of the program that called, and the enter event of its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<(String, u64)>,
    /// The source line of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Past {
    /// Describes the block that holds an address at event `at`, or at the moment gone to, or else at the end.
    ///
    /// # Errors The address is invalid, there is no such event, or the recording cannot be read.
    pub(crate) fn object(&self, text: &str, at: Option<u64>) -> Result<ObjectReply, Failure> {
        match at {
            Some(_) => self.object_at(text, self.position_at(at)?),
            None => self.at_end_unless_chosen(|here| self.object_at(text, here)),
        }
    }

    fn object_at(&self, text: &str, here: Position) -> Result<ObjectReply, Failure> {
        let (address, certainty) = match parsed(text) {
            Some(address) => (address, Certainty::Known),
            None => self.look_at(here, frames_for(text), |looked| {
                inspect::dated_address(&looked.view(), text)
            })?,
        };
        let blocks = self.timeline.blocks_at(address);
        let found = blocks.map_err(|error| of_replay(&error))?;
        let given = |block: &Block| block.made.end.unwrap_or(u64::MAX);
        let before = found
            .blocks
            .partition_point(|block| given(block) <= here.seq);
        let (before, after) = found.blocks.split_at(before);
        let (block, earlier) = match before.split_last() {
            Some((last, others)) if last.is_there(here.seq) => (Some(last), others),
            _ => (None, before),
        };
        let report = |block: &Block| self.block_report(block, address);
        let reply = ObjectReply {
            address: hex(address),
            seq: here.seq,
            stale_since: match certainty {
                Certainty::Known => None,
                Certainty::Stale { as_of } => Some(as_of),
            },
            block: block.map(report).transpose()?,
            earlier: earlier
                .iter()
                .rev()
                .take(OTHERS)
                .map(report)
                .collect::<Result<_, _>>()?,
            later: after
                .iter()
                .take(OTHERS)
                .map(report)
                .collect::<Result<_, _>>()?,
            more: earlier.len().saturating_sub(OTHERS) + after.len().saturating_sub(OTHERS),
            unknown: None,
            hint: None,
        };
        let is_nothing = found.blocks.is_empty();
        let unknown = match (found.has_makers, found.has_freers) {
            (false, _) => Some("no call of a function that allocates was recorded"),
            (true, _) if is_nothing => Some(
                "no recorded call returned a block that holds it: it may lie on a stack, in a global variable, or in a block of a function that was not recorded",
            ),
            (true, false) => Some(
                "no call of a function that frees was recorded: when blocks ended is not known",
            ),
            (true, true) => None,
        };
        let is_missing = !found.has_makers || !found.has_freers;
        Ok(ObjectReply {
            unknown: unknown.map(str::to_owned),
            hint: self
                .with_allocations()
                .filter(|_| is_missing)
                .map(|command| format!("they are recorded with: {command}")),
            ..reply
        })
    }

    /// Returns the command that records allocation functions in addition to those of the program; `None` if this recording was
    /// made with it.
    pub(super) fn with_allocations(&self) -> Option<&'static str> {
        let settings = &self.timeline.recording().manifest().settings;
        if settings.captures.iter().any(|capture| capture == "memory") {
            return None;
        }
        Some(match self.timeline.has_every_instruction() {
            true => "hindsight record --full --memory PROGRAM",
            false => "hindsight record --memory PROGRAM",
        })
    }

    fn block_report(&self, block: &Block, address: u64) -> Result<BlockReport, Failure> {
        let freed = block.freed.map(|call| self.block_call(&call));
        Ok(BlockReport {
            address: hex(block.address),
            size: block.len,
            offset: address - block.address,
            made: self.block_call(&block.made)?,
            freed: freed.transpose()?,
        })
    }

    fn block_call(&self, call: &CallHead) -> Result<BlockCall, Failure> {
        let mut by = None;
        let mut outer = *call;
        while let Some(parent) = self.timeline.parent(&outer).map_err(|e| of_replay(&e))? {
            if self.is_own(&parent) {
                by = Some((self.timeline.name(&parent), parent.start));
                break;
            }
            outer = parent;
        }
        let place = self.called_at(call);
        Ok(BlockCall {
            seq: call.start,
            end_seq: call.end,
            function: self.timeline.name(call),
            thread: call.tid,
            by,
            file: place.as_ref().map(|(file, _)| file.clone()),
            line: place.map(|(_, line)| line),
        })
    }
}

/// Returns whether a text is an address, and no expression.
pub(crate) fn is_address(text: &str) -> bool {
    parsed(text).is_some()
}

/// Reads an address that is written as a number.
fn parsed(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
