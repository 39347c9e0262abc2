//! Where a thread leaves its line forwards: what gdb's `until` without a location runs to.

use std::collections::HashSet;
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};

use super::steps::StepLine;
use crate::address_space::AddressSpace;

impl AddressSpace {
    /// Returns where the statements of the function around `address` begin that lie behind the code of its line, and those
    /// of the function's other parts: gdb's `until` without a location runs to one of them ("Continuing and Stepping").
    ///
    /// A line may have several statements, as that of a loop has. Those to which its own code leads are left out, as gdb stops only
    /// when it comes to a line from another one.
    #[must_use]
    pub fn statements_past(&self, address: u64) -> Vec<u64> {
        let (Some(here), Some(function)) = (self.step_line(address), self.function_at(address))
        else {
            return Vec::new();
        };
        let is_own = |line: &StepLine| line.line == here.line && line.file == here.file;
        let (mut past, mut reached) = (Vec::new(), HashSet::new());
        for part in &function.ranges {
            let first = match part.contains(&address) {
                true => here.range.end,
                false => part.start,
            };
            for line in self.step_lines(part) {
                let is_own = is_own(&line);
                if is_own {
                    reached.extend(self.leads_to(&line.range));
                }
                let start = line.range.start;
                if line.is_statement && first <= start && part.contains(&start) {
                    past.push((start, is_own));
                }
            }
        }
        past.retain(|(start, is_own)| !is_own || !reached.contains(start));
        past.into_iter().map(|(start, _)| start).collect()
    }

    /// The rows of the line table in a range, in order.
    fn step_lines(&self, part: &Range<u64>) -> impl Iterator<Item = StepLine> {
        let mut at = part.start;
        std::iter::from_fn(move || {
            let line = (at < part.end).then(|| self.step_line(at))??;
            let goes_on = line.range.end > at;
            at = line.range.end;
            goes_on.then_some(line)
        })
    }

    /// Returns where the code in a range may go on: the targets of its jumps, and its end.
    fn leads_to(&self, range: &Range<u64>) -> Vec<u64> {
        let Some(mapped) = self.at(range.start) else {
            return Vec::new();
        };
        let len = (range.end - range.start) as usize;
        let bytes = mapped.module.code.bytes(mapped.svma(range.start).0, len);
        let decoder = Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE);
        let mut falls_through = true;
        let mut found = Vec::new();
        for instruction in decoder {
            found.extend(jump(&instruction));
            falls_through = !matches!(
                instruction.flow_control(),
                FlowControl::UnconditionalBranch
                    | FlowControl::IndirectBranch
                    | FlowControl::Return
                    | FlowControl::Exception
            );
        }
        found.extend(falls_through.then_some(range.end));
        found
    }
}

fn jump(instruction: &Instruction) -> Option<u64> {
    let is_jump = matches!(
        instruction.flow_control(),
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
    );
    let is_near = instruction.op0_kind() == OpKind::NearBranch64;
    (is_jump && is_near).then(|| instruction.near_branch64())
}
