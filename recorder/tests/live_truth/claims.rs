//! Compares what a recording says about memory with what gdb sees.

use std::{fmt, ops::Range};

use replay::{Event, Seen, State};

use crate::{
    course::{Answer, Course},
    data::Owner,
};

/// Consecutive bytes that one event is said to have shown.
pub struct Claim {
    /// The moment of the query.
    pub seq: u64,
    pub address: u64,
    pub bytes: Vec<u8>,
    /// The event that showed the bytes, if they may have changed since; otherwise they are known.
    pub as_of: Option<u64>,
    /// Whether it is a stack, parts of which need not have a value.
    pub is_stack: bool,
}

/// Number of compared bytes.
#[derive(Debug, Default)]
pub struct Bytes {
    pub known: usize,
    pub stale: usize,
    pub unknown: usize,
    /// Bytes of the stack that have no value.
    pub idle: usize,
    /// Bytes that change between the two events around a snapshot.
    pub moving: usize,
}

/// Queries memory of a state.
pub fn claims(
    state: &State<'_>,
    range: Range<u64>,
    stack: &Range<u64>,
    counted: &mut Bytes,
) -> Vec<Claim> {
    let runs = state.memory(range.start, range.end - range.start).unwrap();
    let mut all = Vec::new();
    let mut at = range.start;
    for run in runs {
        assert_eq!(
            run.address,
            at,
            "event {}: runs follow each other",
            state.seq()
        );
        at += run.len;
        let (bytes, as_of) = match run.bytes {
            Seen::Known { value, .. } => (value, None),
            Seen::Stale { value, as_of } => (value, Some(as_of)),
            Seen::Unknown(_) => {
                counted.unknown += run.len as usize;
                continue;
            }
        };
        all.push(Claim {
            seq: state.seq(),
            address: run.address,
            bytes,
            as_of,
            is_stack: stack.contains(&run.address),
        });
    }
    assert_eq!(at, range.end, "event {}: all is told", state.seq());
    all
}

impl Claim {
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the moments at which gdb can see the claimed bytes: for a snapshot, those before and after it. None if
    /// the snapshot precedes all moments.
    pub fn moments(&self, course: &Course<'_>) -> Vec<u64> {
        let shown = self.as_of.unwrap_or(self.seq);
        match &course.events[shown as usize] {
            Event::Other(_) => course.around(shown).map_or(Vec::new(), |(a, b)| vec![a, b]),
            _ => vec![shown],
        }
    }

    /// Compares the claim with what gdb saw at its moments. Returns the difference.
    pub fn check(&self, seen: &[&Answer], owner: Owner, counted: &mut Bytes) -> Option<Wrong<'_>> {
        if seen.is_empty() {
            return None;
        }
        let addresses = (0..self.len()).map(|at| self.address + at);
        let theirs: Vec<Option<u8>> = addresses
            .map(|address| self.theirs(address, seen, counted))
            .collect();
        let wrong = owner.differences(&self.bytes, &theirs);
        let first = *wrong.first()?;
        let at = self.address + first as u64;
        Some(Wrong {
            claim: self,
            at,
            what: seen[0].lasting(at).unwrap_or_default().to_owned(),
            theirs: theirs[first..].iter().copied().take(16).collect(),
        })
    }

    /// Returns the byte that gdb sees at all moments, if it counts.
    fn theirs(&self, address: u64, seen: &[&Answer], counted: &mut Bytes) -> Option<u8> {
        let mut theirs = seen.iter().map(|answer| {
            let is_idle = self.is_stack && answer.lasting(address).is_none();
            (!is_idle).then(|| answer.byte(address).expect("gdb was asked for it"))
        });
        let first = theirs.next()?;
        let is_same = theirs.all(|other| other == first);
        let counter = match (is_same, first, self.as_of) {
            (false, ..) => &mut counted.moving,
            (true, None, _) => &mut counted.idle,
            (true, Some(_), None) => &mut counted.known,
            (true, Some(_), Some(_)) => &mut counted.stale,
        };
        *counter += 1;
        first.filter(|_| is_same)
    }
}

/// A false claim.
pub struct Wrong<'c> {
    pub claim: &'c Claim,
    /// The first byte that differs.
    pub at: u64,
    /// gdb's name for it.
    pub what: String,
    /// The bytes that gdb sees from there on, if they count.
    pub theirs: Vec<Option<u8>>,
}

impl fmt::Display for Wrong<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Claim {
            seq,
            address,
            bytes,
            as_of,
            ..
        } = self.claim;
        let said = as_of.map_or("known".to_owned(), |seq| format!("as of event {seq}"));
        let from = (self.at - address) as usize;
        let ours = &bytes[from..bytes.len().min(from + 16)];
        write!(
            f,
            "event {seq}: {:#x} {:?} is {ours:x?} ({said}), gdb: {:x?}",
            self.at, self.what, self.theirs
        )
    }
}
