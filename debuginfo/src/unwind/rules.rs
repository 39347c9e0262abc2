//! Unwinds one frame to its caller with the rules of the unwind tables.
//!
//! A register that no rule mentions keeps its value if it is callee-saved in the calling convention, and is unknown
//! otherwise.

use gimli::{
    CfaRule, Encoding, EvaluationResult, Expression, Format, RegisterRule, UnwindExpression, Value,
};

use super::frame::{FrameRegisters, not_preserved};
use super::tables::Rules;
use crate::address_space::Mapped;
use crate::machine::{Certainty, Machine, Register, Unknown};

/// Operations executed for one expression, at most.
const MAX_OPERATIONS: u32 = 10_000;
const ENCODING: Encoding = Encoding {
    format: Format::Dwarf32,
    version: 4,
    address_size: 8,
};

/// The result of the rules.
pub(super) enum Caller {
    /// The caller's registers. rip is where the caller resumes.
    Frame(FrameRegisters),
    /// No caller: this is the outermost frame.
    None,
}

/// A frame whose caller is to be found.
pub(super) struct Step<'s> {
    pub machine: &'s dyn Machine,
    pub mapped: &'s Mapped,
    pub registers: &'s FrameRegisters,
}

type Known = Result<(u64, Certainty), Unknown>;

impl Step<'_> {
    pub(super) fn cfa(&self, rules: &Rules) -> Result<u64, Unknown> {
        match &rules.cfa {
            CfaRule::RegisterAndOffset { register, offset } => {
                let (base, _) = self.registers.get(Register(register.0))?;
                Ok(base.wrapping_add_signed(*offset))
            }
            CfaRule::Expression(expression) => self
                .evaluate(rules, expression, None)
                .map(|(value, _)| value),
        }
    }

    pub(super) fn caller(&self, rules: &Rules, cfa: u64) -> Result<Caller, Unknown> {
        // What this frame leaves alone is still where an inner one saved it.
        let mut saved: [Option<u64>; 17] = std::array::from_fn(|n| {
            let register = Register(n as u16);
            let is_kept = Register::PRESERVED.contains(&register);
            is_kept.then(|| self.registers.saved_at(register)).flatten()
        });
        let mut values: [Known; 17] = std::array::from_fn(|n| self.unmentioned(n as u16));
        values[7] = Ok((cfa, Certainty::Known));
        values[16] = Err(Unknown::because("no rule"));
        for (number, rule) in &rules.registers {
            let at = match *number {
                n if n == rules.return_address => 16,
                n if n < 16 => usize::from(n),
                _ => continue,
            };
            (values[at], saved[at]) = self.rule(rules, cfa, Register(at as u16), rule);
        }
        let has_return = rules
            .registers
            .iter()
            .any(|(n, _)| *n == rules.return_address);
        if !has_return {
            return Ok(Caller::None);
        }
        let (found, certainty) = values[16].clone()?;
        let pc = match (rules.is_signal, saved[16]) {
            // The kernel stored it, and the thread may have been anywhere.
            (true, _) => self.machine.original_pc(found),
            (false, Some(slot)) => self.machine.return_address(slot, found)?,
            (false, None) => found,
        };
        values[16] = Ok((pc, certainty));
        for register in Register::PRESERVED {
            let at = usize::from(register.0);
            if let (Err(_), Some(slot)) = (&values[at], saved[16])
                && let Some(value) = self.machine.preserved_register(slot, register)
            {
                values[at] = Ok((value, Certainty::Known));
            }
        }
        match pc {
            // No function returns to address 0. The code that started the thread stored it.
            0 => Ok(Caller::None),
            _ => Ok(Caller::Frame(FrameRegisters::recovered(values, saved))),
        }
    }

    /// Returns a register that has no rule.
    fn unmentioned(&self, number: u16) -> Known {
        let register = Register(number);
        match Register::PRESERVED.contains(&register) {
            true => self.registers.get(register),
            false => Err(not_preserved(register)),
        }
    }

    fn rule(
        &self,
        rules: &Rules,
        cfa: u64,
        register: Register,
        rule: &RegisterRule<usize>,
    ) -> (Known, Option<u64>) {
        let at = |address: u64| (self.word(address), Some(address));
        match rule {
            RegisterRule::SameValue => (
                self.registers.get(register),
                self.registers.saved_at(register),
            ),
            RegisterRule::Offset(offset) => at(cfa.wrapping_add_signed(*offset)),
            RegisterRule::ValOffset(offset) => (
                Ok((cfa.wrapping_add_signed(*offset), Certainty::Known)),
                None,
            ),
            RegisterRule::Register(other) => {
                let other = Register(other.0);
                (self.registers.get(other), self.registers.saved_at(other))
            }
            RegisterRule::Expression(expression) => {
                match self.evaluate(rules, expression, Some(cfa)) {
                    Ok((address, _)) => at(address),
                    Err(why) => (Err(why), None),
                }
            }
            RegisterRule::ValExpression(expression) => {
                (self.evaluate(rules, expression, Some(cfa)), None)
            }
            RegisterRule::Constant(value) => (Ok((*value, Certainty::Known)), None),
            _ => (Err(not_preserved(register)), None),
        }
    }

    fn word(&self, address: u64) -> Known {
        let mut bytes = [0; 8];
        let certainty = self.machine.memory(address, &mut bytes)?;
        Ok((u64::from_le_bytes(bytes), certainty))
    }

    /// Evaluates an expression. `initial` is pushed first.
    fn evaluate(
        &self,
        rules: &Rules,
        expression: &UnwindExpression<usize>,
        initial: Option<u64>,
    ) -> Known {
        let damaged =
            |why: gimli::Error| Unknown::because(format!("the unwind tables are damaged: {why}"));
        let module = &self.mapped.module;
        let operations = module
            .unwind()
            .tables()
            .expression(rules.table, expression)
            .ok_or_else(|| damaged(gimli::Error::OffsetOutOfBounds))?;
        let mut evaluation = Expression(operations).evaluation(ENCODING);
        evaluation.set_max_iterations(MAX_OPERATIONS);
        if let Some(value) = initial {
            evaluation.set_initial_value(value);
        }
        let mut certainty = Certainty::Known;
        let mut state = evaluation.evaluate().map_err(damaged)?;
        loop {
            let next = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let (value, known) = self.registers.get(Register(register.0))?;
                    certainty = certainty.and(known);
                    evaluation.resume_with_register(Value::Generic(value))
                }
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let mut bytes = [0; 8];
                    let part = bytes.get_mut(..usize::from(size));
                    let part = part
                        .ok_or_else(|| Unknown::because("an unwind rule reads too much at once"))?;
                    certainty = certainty.and(self.machine.memory(address, part)?);
                    evaluation.resume_with_memory(Value::Generic(u64::from_le_bytes(bytes)))
                }
                EvaluationResult::RequiresRelocatedAddress(svma) => {
                    let address = svma.wrapping_add(self.mapped.bias);
                    evaluation.resume_with_relocated_address(address)
                }
                _ => {
                    return Err(Unknown::because(
                        "an unwind rule asks for what only variables have",
                    ));
                }
            };
            state = next.map_err(damaged)?;
        }
        let value = evaluation.value_result();
        let value = value.and_then(|v| v.to_u64(u64::MAX).ok());
        let value = value.ok_or_else(|| Unknown::because("an unwind rule gives no value"))?;
        Ok((value, certainty))
    }
}
