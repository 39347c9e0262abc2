//! Where in the program the thread is that runs translated code.

/// What a stretch of translated code means. It reaches to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeSpan {
    /// Where the stretch begins.
    pub at: u64,
    /// The instruction of the program.
    pub pc: u64,
    /// How many instructions the counter is ahead of the program here.
    pub ahead: u8,
    /// Whether the state at `at` is exactly the one before the instruction.
    pub boundary: bool,
    /// Whether r15 is the program's (else it is the counter).
    pub swapped: bool,
    /// Whether rax and rcx of the program are in the thread's block.
    pub saved: bool,
}

/// All of a cache, in ascending order.
#[derive(Debug, Default)]
pub(super) struct Places(Vec<CodeSpan>);

impl Places {
    pub(super) fn add(&mut self, place: CodeSpan) {
        debug_assert!(self.0.last().is_none_or(|last| last.at <= place.at));
        self.0.push(place);
    }

    /// The stretch with this address.
    pub(super) fn find(&self, address: u64) -> Option<CodeSpan> {
        let after = self.0.partition_point(|place| place.at <= address);
        self.0[..after].last().copied()
    }

    /// In the block that is counted at `head`, the place before one of its instructions, the first having number 0.
    pub(super) fn instruction_in(&self, head: u64, number: u8) -> Option<u64> {
        let first = self.0.partition_point(|place| place.at <= head);
        let block = self.0[first..].iter().take_while(|place| place.ahead > 0);
        let count = block.clone().next()?.ahead;
        let wanted = count.checked_sub(number)?;
        let mut found = block.filter(|place| place.boundary && place.ahead == wanted);
        found.next().map(|place| place.at)
    }
}
