//! Debug exceptions of which the processor does not tell whether watched bytes were written: the instruction is looked at again.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

use super::Replay;
use super::search::Watch;
use crate::error::Result;
use crate::operands::{Operand, State, operands};

/// Bytes of the longest instruction.
const LONGEST: usize = 15;

impl Replay {
    /// The instructions that wrote to bytes that were watched, in order. The process stays where it is, unless there are some to be
    /// looked at again.
    pub(super) fn hits_of(&mut self, watch: Watch) -> Result<Vec<u64>> {
        let bytes = watch.address..watch.address.saturating_add(watch.length);
        let mut hits = watch.hits;
        let mut is_on_its_way = false;
        for at in watch.unsure {
            let Err(index) = hits.binary_search(&at) else {
                continue;
            };
            // Where a search was left, the process may be within a translated instruction.
            if !is_on_its_way || self.position() > at {
                self.restore(self.checkpoints.number(at).unwrap_or(0))?;
            }
            self.forward(at)?;
            is_on_its_way = true;
            if self.writes_next(&bytes)? {
                hits.insert(index, at);
            }
        }
        Ok(hits)
    }

    /// Whether the next instruction writes to any of these bytes.
    fn writes_next(&mut self, bytes: &Range<u64>) -> Result<bool> {
        let state = State {
            general: self.registers()?,
            extended: self.extended()?,
        };
        let pc = state.general.rip;
        let code = self.process.bytes(pc, LONGEST);
        let instruction = Decoder::with_ip(64, &code, pc, DecoderOptions::NONE).decode();
        let mut info = InstructionInfoFactory::new();
        let word = |address| self.process.word(address).ok();
        let used = operands(&mut info, &instruction, &state, &word);
        Ok(used.iter().any(|operand| writes_to(operand, bytes)))
    }
}

fn writes_to(operand: &Operand, bytes: &Range<u64>) -> bool {
    let end = operand.address.saturating_add(operand.size);
    operand.writes && operand.size > 0 && operand.address < bytes.end && bytes.start < end
}

#[cfg(test)]
mod tests {
    //! Goal: writes are found, and nothing else is, if the processor loses what it has to tell. Method: a program writes to a number
    //! in several ways, also what was there already, and beside it. The search is told of no hit for sure, and asked about all
    //! instructions around them. What others send to the process is taken for nothing of the program.

    use std::process::Command;

    use tempfile::TempDir;

    use super::*;
    use crate::replay::tested::recorded;

    const SOURCE: &str = r#"
#include <stdio.h>
volatile struct { int before, hot, behind; } at;
int main(void) {
  for (int i = 0; i < 20; i++) { at.hot = 5; at.before = i; at.behind = i; }
  __asm__ volatile("movq %1, %0" : "=m"(*(volatile long *)&at) : "r"(5L << 32));
  __asm__ volatile("lock xaddl %1, %0" : "+m"(at.hot), "+r"(at.before));
  printf("%p\n", (void *)&at.hot);
}
"#;

    #[test]
    fn writes_that_are_not_told_are_found() {
        let folder = TempDir::new().unwrap();
        let hot = recorded(SOURCE, folder.path());
        let mut replay = Replay::open(folder.path()).unwrap();
        let end = replay.end();
        let writes = replay.writes(hot, 4, end, usize::MAX).unwrap();
        assert_eq!(writes.len(), 22, "{writes:?}");
        let mut watch = Watch::new((hot, 4), false, usize::MAX);
        watch.unsure = (writes[0] - 2..writes[21] + 3).collect();
        assert_eq!(replay.hits_of(watch).unwrap(), writes);
        let mut watch = Watch::new((hot, 4), false, usize::MAX);
        watch.hits = writes.iter().step_by(2).copied().collect();
        watch.unsure = writes.clone();
        assert_eq!(replay.hits_of(watch).unwrap(), writes);
    }

    #[test]
    fn signals_from_others_are_not_the_program_s() {
        let folder = TempDir::new().unwrap();
        recorded(SOURCE, folder.path());
        let mut replay = Replay::open(folder.path()).unwrap();
        let end = replay.end();
        for (number, signal) in (1u64..).zip(["TRAP", "CONT", "INT", "SEGV", "TSTP"]) {
            let command = format!("kill -{signal} {}", replay.process.pid);
            let sent = Command::new("sh").args(["-c", &command]).status().unwrap();
            assert!(sent.success(), "{signal}");
            let goal = end * number / 6;
            replay.goto(goal).unwrap();
            assert_eq!(replay.position(), goal, "{signal}");
        }
        replay.goto(end).unwrap();
    }
}
