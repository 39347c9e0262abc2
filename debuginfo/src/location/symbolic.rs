//! Translates the location of a variable at one address to operations on registers and memory. They are valid for every
//! thread that reaches the address. Not every location can be translated.

use std::sync::Arc;

use gimli::constants as dw;
use gimli::{Expression, Operation, UnitOffset};

use super::ir::{Int, IntOp};
use super::{Context, FrameContext, ValuePlace, base, with_context};
use crate::dies::Die;
use crate::dwarf::Slice;
use crate::machine::Register;
use crate::module::Module;
use crate::types::{DieId, Type};

/// Operations translated of one expression, at most.
const MAX_OPERATIONS: usize = 64;

/// The place of a variable.
#[derive(Debug, Clone)]
pub enum Symbolic {
    /// In memory, at this address.
    Memory(Int),
    /// In the low bytes of a register.
    Register(Register),
    /// Nowhere: the value is the low bytes of this number.
    Number(Int),
    /// Nowhere: the debug information states the bytes.
    Bytes(Vec<u8>),
}

/// A location, or the reason why none is valid for every thread.
pub(crate) type Found<T> = Result<T, String>;

/// Translates the location of the variable `id` of `function` at the address at which `site` looks up variables.
pub(crate) fn symbolic(
    site: &FrameContext<'_>,
    module: &Arc<Module>,
    id: DieId,
    function: Option<DieId>,
    ty: &Type,
) -> Found<Symbolic> {
    let located = with_context(site, module, id, function, 0, |context, die| {
        context.symbolic(die, ty)
    });
    located.unwrap_or_else(|| Err("its description cannot be read".to_owned()))
}

impl<'a> Context<'_, '_, 'a> {
    fn symbolic(&self, die: &Die<'a>, ty: &Type) -> Found<Symbolic> {
        let chain = self.session.chain(die);
        let stated = |name| self.session.stated(&chain, name);
        if let Some((at, value)) = stated(dw::DW_AT_location) {
            let expression = self.expression(at, value).map_err(|why| why.reason)?;
            let expression = expression.filter(|e| !e.0.is_empty());
            let expression = expression.ok_or("it is optimized out there")?;
            let is_everywhere = value.exprloc_value().is_some();
            return self.operations(at, expression, is_everywhere);
        }
        if let Some((at, value)) = stated(dw::DW_AT_const_value) {
            return match self.implicit(at, &value, ty) {
                ValuePlace::Implicit(bytes) => Ok(Symbolic::Bytes(bytes)),
                _ => Err("its constant cannot be read".to_owned()),
            };
        }
        Err("it is optimized out there".to_owned())
    }

    fn operations(
        &self,
        die: &Die<'a>,
        expression: Expression<Slice<'a>>,
        is_everywhere: bool,
    ) -> Found<Symbolic> {
        let encoding = die.unit.encoding();
        let mut stack: Vec<Int> = Vec::new();
        let expression = super::parts::without_uninit(expression, encoding);
        let mut operations = expression.operations(encoding);
        let mut is_value = false;
        let damaged = |_| "its location cannot be read".to_owned();
        for _ in 0..MAX_OPERATIONS {
            let Some(operation) = operations.next().map_err(damaged)? else {
                let top = stack.pop().ok_or("its location is empty")?;
                return Ok(match is_value {
                    true => Symbolic::Number(top),
                    false => Symbolic::Memory(top),
                });
            };
            if is_value {
                return Err("it is in several places".to_owned());
            }
            let is_last = operations.clone().next().is_ok_and(|next| next.is_none());
            match operation {
                Operation::Register { register } if is_last => {
                    return Ok(Symbolic::Register(Register(register.0)));
                }
                Operation::ImplicitValue { data } if is_last => {
                    return Ok(Symbolic::Bytes(data.slice().to_vec()));
                }
                Operation::StackValue => is_value = true,
                Operation::RegisterOffset {
                    register,
                    offset,
                    base_type: UnitOffset(0),
                } if is_everywhere => {
                    let base = self.base_register(Register(register.0))?;
                    stack.push(base.plus(offset as u64));
                }
                operation => self.push(die, operation, &mut stack)?,
            }
        }
        Err("its location is too long".to_owned())
    }

    /// Translates an operation that pushes a number.
    fn push(
        &self,
        die: &Die<'a>,
        operation: Operation<Slice<'a>>,
        stack: &mut Vec<Int>,
    ) -> Found<()> {
        const EMPTY: &str = "its location takes more than there is";
        let generic = UnitOffset(0);
        let value = match operation {
            Operation::Nop => return Ok(()),
            Operation::UnsignedConstant { value } => Int::Const(value),
            Operation::SignedConstant { value } => Int::Const(value as u64),
            Operation::PlusConstant { value } => stack.pop().ok_or(EMPTY)?.plus(value),
            Operation::RegisterOffset {
                register,
                offset,
                base_type,
            } if base_type == generic => self.register(register.0)?.plus(offset as u64),
            Operation::FrameOffset { offset } => self.frame_address()?.plus(offset as u64),
            Operation::CallFrameCFA => self.cfa()?,
            Operation::Address { address } => {
                Int::Const(self.placed(address).map_err(|why| why.reason)?)
            }
            Operation::AddressIndex { index } => {
                let dwarf = self.session.dwarf(die);
                let address = dwarf.address(&die.unit, index);
                let address = address.map_err(|_| "its address cannot be read".to_owned())?;
                Int::Const(self.placed(address).map_err(|why| why.reason)?)
            }
            Operation::Deref {
                base_type,
                size: bytes @ (1 | 2 | 4 | 8),
                space: false,
            } if base_type == generic => Int::Load {
                at: Box::new(stack.pop().ok_or(EMPTY)?),
                bytes,
                signed: false,
            },
            Operation::Plus => binary(stack, IntOp::Add)?,
            Operation::Minus => binary(stack, IntOp::Subtract)?,
            Operation::Mul => binary(stack, IntOp::Multiply)?,
            Operation::And => binary(stack, IntOp::And)?,
            Operation::Or => binary(stack, IntOp::Or)?,
            Operation::Xor => binary(stack, IntOp::Xor)?,
            Operation::EntryValue { .. } | Operation::ParameterRef { .. } => {
                return Err("only its caller knows it there".to_owned());
            }
            Operation::TLS => return Err("each thread has its own".to_owned()),
            Operation::Piece { .. } => return Err("it is in several places".to_owned()),
            _ => return Err("its location takes a computation".to_owned()),
        };
        stack.push(value);
        Ok(())
    }

    /// Returns a register of the site's frame, which is the innermost one.
    fn register(&self, number: u16) -> Found<Int> {
        match number {
            0..=15 => Ok(Int::Register(Register(number))),
            16 => Ok(Int::Const(self.site.lookup_pc)),
            _ => Err("it depends on an unusual register".to_owned()),
        }
    }

    /// Returns the address that the function's variables are relative to.
    fn frame_address(&self) -> Found<Int> {
        const NONE: &str = "its function's frame base is not stated";
        let function = self.function.as_ref().ok_or(NONE)?;
        let value = self.session.attr(function, dw::DW_AT_frame_base);
        let expression = self.expression(function, value.ok_or(NONE)?);
        let expression = expression.map_err(|why| why.reason)?.ok_or(NONE)?;
        let mut operations = expression.operations(function.unit.encoding());
        while let Ok(Some(operation)) = operations.next() {
            if matches!(operation, Operation::FrameOffset { .. }) {
                return Err("its function's frame base refers to itself".to_owned());
            }
        }
        match self.operations(function, expression, false)? {
            Symbolic::Memory(address) | Symbolic::Number(address) => Ok(address),
            Symbolic::Register(register) => self.base_register(register),
            Symbolic::Bytes(_) => Err(NONE.to_owned()),
        }
    }

    /// Returns the value of a register after the prologue.
    fn base_register(&self, register: Register) -> Found<Int> {
        let svma = base::svma_of(self.site, self.bias);
        let Some(distance) = base::distance(self.module, svma, register) else {
            base::in_body(self.module, svma).map_err(|why| why.reason)?;
            return self.register(register.0);
        };
        let rule = crate::unwind::cfa_rule(self.site.space, self.site.lookup_pc);
        match rule == Some((register.0, distance)) {
            true => self.register(register.0),
            false => Ok(self.cfa()?.plus((distance as u64).wrapping_neg())),
        }
    }

    fn cfa(&self) -> Found<Int> {
        let rule = crate::unwind::cfa_rule(self.site.space, self.site.lookup_pc);
        let (register, offset) = rule.ok_or("its frame's address takes a computation")?;
        Ok(self.register(register)?.plus(offset as u64))
    }
}

fn binary(stack: &mut Vec<Int>, op: IntOp) -> Found<Int> {
    match (stack.pop(), stack.pop()) {
        (Some(right), Some(left)) => Ok(Int::binary(op, left, right)),
        _ => Err("its location takes more than there is".to_owned()),
    }
}
