//! Evaluates one DWARF expression: answers the requests of gimli's evaluator.

use std::cell::Cell;

use gimli::constants as dw;
use gimli::{
    AttributeValue, DieReference, EvaluationResult, Expression, Location, Operation, Reader as _,
    Unit, UnitOffset, Value as Number, ValueType,
};

use super::parts::{self, Parts};
use super::{Context, Piece, ValuePlace, base, locate, tls};
use crate::dies::{Die, Home};
use crate::dwarf::Slice;
use crate::extended::x87_number;
use crate::machine::{Certainty, Register, Unknown};
use crate::types::{DieId, Type};
use crate::units::root_attributes;
use crate::value::Value;

/// Operations executed for one expression, at most.
const MAX_OPERATIONS: u32 = 1 << 12;
/// Requests answered for one expression, at most.
const MAX_ANSWERS: usize = 1 << 12;
/// Pieces of one value, at most.
const MAX_PIECES: usize = 1 << 10;

/// The pretended address of an object that has none, where no memory is mapped, and the number of bytes reserved for
/// it.
const HELD_AT: u64 = 0x4000_0000_0000_0000;
const HELD_BYTES: u64 = 1 << 16;

type Request<'a> = EvaluationResult<Slice<'a>>;
type Step<'a> = gimli::Result<Request<'a>>;

pub(super) struct Evaluator<'c, 'x, 't, 'a> {
    context: &'c Context<'x, 't, 'a>,
    unit: &'c Unit<Slice<'a>>,
    certainty: Cell<Certainty>,
    depth: usize,
    /// The address of the object, for expressions of its type.
    object: Option<u64>,
    /// The object, if it has no address. Reads from [`HELD_AT`] on are served from it.
    held: Option<&'c Value>,
    /// The expression applies to the whole body of a function, not just to the current address.
    is_everywhere: bool,
    /// The last word read from `.debug_addr`, preceded by the address made of it.
    indexed: Cell<Option<(u64, u64)>>,
}

/// Why a location that computes with numbers of 80 or 128 bits is unknown: gimli's evaluator has no such type.
const TOO_WIDE: &str =
    "a long double or 128-bit number inside a location expression is not supported";
/// The registers of the x87, in DWARF's numbering: st0 to st7.
const X87: std::ops::Range<u16> = 33..41;

fn damaged(error: gimli::Error) -> Unknown {
    match error {
        // Only numbers that are wider than a word are read so.
        gimli::Error::InvalidDerefSize(_) => Unknown::because(TOO_WIDE),
        error => Unknown::because(format!("its location cannot be evaluated: {error}")),
    }
}

/// The expression that calls another one and states that the result is a value.
const AS_VALUE: [u8; 6] = [dw::DW_OP_call4.0, 0, 0, 0, 0, dw::DW_OP_stack_value.0];

/// Why variables on the stack are unknown in a frame that no longer exists.
const LEFT: &str = "its function gave up its part of the stack before the tail call";

impl<'c, 'x, 't, 'a> Evaluator<'c, 'x, 't, 'a> {
    pub(super) fn new(context: &'c Context<'x, 't, 'a>, unit: &'c Unit<Slice<'a>>) -> Self {
        Evaluator {
            context,
            unit,
            certainty: Cell::new(Certainty::Known),
            depth: context.nesting,
            object: None,
            held: None,
            is_everywhere: false,
            indexed: Cell::new(None),
        }
    }

    /// Makes an evaluator for a location that is stated once for a whole function.
    pub(super) fn everywhere(context: &'c Context<'x, 't, 'a>, unit: &'c Unit<Slice<'a>>) -> Self {
        Evaluator {
            is_everywhere: true,
            ..Evaluator::new(context, unit)
        }
    }

    /// Makes an evaluator for expressions of a type, which may use the object's address.
    pub(super) fn about(
        context: &'c Context<'x, 't, 'a>,
        unit: &'c Unit<Slice<'a>>,
        object: Option<u64>,
        held: Option<&'c Value>,
    ) -> Self {
        Evaluator {
            object: object.or(held.map(|_| HELD_AT)),
            held,
            ..Evaluator::new(context, unit)
        }
    }

    /// Returns the certainty of everything read so far.
    pub(super) fn certainty(&self) -> Certainty {
        self.certainty.get()
    }

    fn note(&self, certainty: Certainty) {
        self.certainty.set(self.certainty.get().and(certainty));
    }

    /// Returns the place that an expression describes. `object` is pushed first.
    pub(super) fn place(
        &self,
        expression: Expression<Slice<'a>>,
        object: Option<u64>,
    ) -> Result<ValuePlace, Unknown> {
        match parts::split(expression, self.unit.encoding()).map_err(damaged)? {
            Parts::Whole(expression) => self.whole(expression, object),
            Parts::Pieces(parts) if parts.len() > MAX_PIECES => {
                Err(Unknown::because("it is in too many pieces"))
            }
            Parts::Pieces(parts) => {
                let pieces = parts.into_iter().map(|part| {
                    let place = self.whole(part.expression, object);
                    // The other pieces may still be known.
                    let place = place.unwrap_or_else(ValuePlace::Unknown);
                    Piece::new(place, part.offset_bits, part.size_bits)
                });
                Ok(ValuePlace::Pieces(pieces.collect()))
            }
        }
    }

    /// Returns the place that an expression without pieces describes.
    fn whole(
        &self,
        expression: Expression<Slice<'a>>,
        object: Option<u64>,
    ) -> Result<ValuePlace, Unknown> {
        if expression.0.is_empty() {
            return Ok(ValuePlace::OptimizedOut);
        }
        match self.run(expression, object)?.as_slice() {
            [] => Ok(ValuePlace::OptimizedOut),
            [one] => self.single(&one.location),
            _ => Err(Unknown::because("its location describes several places")),
        }
    }

    /// Returns the integer that an expression computes.
    pub(super) fn number(&self, expression: Expression<Slice<'a>>) -> Result<u64, Unknown> {
        self.value(expression)?.to_u64(u64::MAX).map_err(damaged)
    }

    /// Returns the number, of any type, that an expression computes.
    pub(super) fn value(&self, expression: Expression<Slice<'a>>) -> Result<Number, Unknown> {
        let expression = parts::without_uninit(expression, self.unit.encoding());
        if let Some(typed) = self.typed(expression) {
            return typed;
        }
        let pieces = self.run(expression, None)?;
        match pieces.first().map(|p| &p.location) {
            Some(Location::Value { value }) => Ok(*value),
            Some(Location::Address { address }) => Ok(Number::Generic(*address)),
            Some(Location::Register { register }) => self.register(register.0).map(Number::Generic),
            _ => Err(Unknown::because("its expression computes no number")),
        }
    }

    /// Evaluates an expression that ends with a typed number, or returns `None` for any other. gimli's evaluator would
    /// take the result for an address, which has to be an integer.
    fn typed(&self, expression: Expression<Slice<'a>>) -> Option<Result<Number, Unknown>> {
        let encoding = self.unit.encoding();
        let Expression(whole) = expression;
        let (mut rest, mut last) = (whole, None);
        let mut start = 0;
        while !rest.is_empty() {
            start = whole.len() - rest.len();
            last = Some(Operation::parse(&mut rest, encoding).ok()?);
        }
        let mut before = whole;
        before.truncate(start).ok()?;
        match last? {
            Operation::TypedLiteral { base_type, value } if start == 0 => {
                let ty = self.base_type(base_type);
                Some(ty.and_then(|ty| parse(ty, value.slice())))
            }
            Operation::RegisterOffset {
                register,
                offset: 0,
                base_type,
            } if start == 0 && base_type.0 != 0 => Some(self.typed_register(register.0, base_type)),
            Operation::EntryValue { expression } if start == 0 => {
                Some(self.entry_value(Expression(expression)))
            }
            Operation::Deref {
                base_type,
                size,
                space: false,
            } if start > 0 && base_type.0 != 0 => {
                let address = self.number(Expression(before));
                Some(address.and_then(|address| self.memory(address, size, base_type)))
            }
            Operation::Plus
            | Operation::Minus
            | Operation::Mul
            | Operation::Div
            | Operation::Neg
            | Operation::Abs
            | Operation::Convert { .. }
            | Operation::Reinterpret { .. }
                if start > 0 =>
            {
                Some(self.computed(whole))
            }
            _ => None,
        }
    }

    /// Returns the number that a computation leaves on the stack.
    fn computed(&self, operations: Slice<'a>) -> Result<Number, Unknown> {
        let around = Expression(Slice::new(&AS_VALUE, gimli::LittleEndian));
        let mut evaluation = self.evaluation(around, None);
        evaluation.evaluate().map_err(damaged)?;
        let request = evaluation.resume_with_at_location(operations);
        let pieces = self.finish(evaluation, request.map_err(damaged)?)?;
        match pieces.first().map(|piece| &piece.location) {
            Some(Location::Value {
                value: value @ (Number::F32(_) | Number::F64(_)),
            }) => Ok(*value),
            Some(Location::Value { value }) => {
                let bits = value.to_u64(u64::MAX).map_err(damaged)?;
                Ok(Number::Generic(bits))
            }
            _ => Err(Unknown::because("its expression computes no number")),
        }
    }

    /// Returns the value that the register `expression` had at function entry.
    fn entry_value(&self, expression: Expression<Slice<'a>>) -> Result<Number, Unknown> {
        let (value, certainty) = super::call_site::entry_value(self.context, expression)?;
        self.note(certainty);
        self.read_as(value, expression)
    }

    /// Converts a register's value to the type that `expression` reads it as.
    fn read_as(&self, value: Number, expression: Expression<Slice<'a>>) -> Result<Number, Unknown> {
        let register = super::call_site::only_register(expression, self.unit.encoding());
        let Some((_, Some(base))) = register else {
            return Ok(value);
        };
        let ty = self.base_type(base)?;
        let has = value.value_type();
        if has == ty {
            return Ok(value);
        }
        let bits = |ty: ValueType| ty.bit_size(u64::MAX);
        if has != ValueType::Generic && bits(has) != bits(ty) {
            return Err(Unknown::because(
                "the caller passed a number of another size",
            ));
        }
        let mut bytes = bytes_of(value);
        bytes.resize(8, 0);
        parse(ty, &bytes)
    }

    fn single(&self, location: &Location<Slice<'a>>) -> Result<ValuePlace, Unknown> {
        Ok(match location {
            Location::Empty => ValuePlace::OptimizedOut,
            Location::Register { register } => ValuePlace::Register(Register(register.0)),
            Location::Address { address } => ValuePlace::Memory(*address),
            Location::Value { value } => ValuePlace::Implicit(bytes_of(*value)),
            Location::Bytes { value } => ValuePlace::Implicit(value.slice().to_vec()),
            Location::ImplicitPointer { value, byte_offset } => {
                self.implicit_pointer(value.0, *byte_offset)?
            }
        })
    }

    fn implicit_pointer(&self, target: usize, offset: i64) -> Result<ValuePlace, Unknown> {
        let context = self.context;
        let lost = || Unknown::because("what it pointed to was optimized out");
        let (index, inside) = context
            .session
            .table
            .locate(Home::Info, target)
            .ok_or_else(lost)?;
        let unit = context.session.unit(Home::Info, index).map_err(damaged)?;
        let die = Die {
            home: Home::Info,
            index,
            unit,
            offset: inside,
        };
        let chain = context.session.chain(&die);
        let mut types = chain.iter();
        let ty = types.find_map(|d| context.session.follow(d, dw::DW_AT_type));
        // Constants without a name have no type. Only their bytes are known.
        let typed = ty.map(|ty| Type::at(context.module, DieId::of(&ty)));
        let ty = typed.clone().unwrap_or_else(|| bytes_type(0));
        let function = context.function.as_ref().map(DieId::of);
        let nesting = context.nesting + 1;
        let id = DieId::of(&die);
        let located = locate(context.site, context.module, id, function, &ty, nesting);
        self.note(located.certainty);
        let ty = match (&typed, &located.place) {
            (None, ValuePlace::Implicit(bytes)) => bytes_type(bytes.len() as u64),
            _ => ty,
        };
        let value = Value::read(ty, located.place, context.site.machine);
        Ok(ValuePlace::ImplicitPointer {
            target: Box::new(value),
            offset,
        })
    }

    fn run(
        &self,
        expression: Expression<Slice<'a>>,
        object: Option<u64>,
    ) -> Result<Vec<gimli::Piece<Slice<'a>>>, Unknown> {
        let mut evaluation = self.evaluation(expression, object);
        let request = evaluation.evaluate().map_err(damaged)?;
        self.finish(evaluation, request)
    }

    /// Begins an evaluation. `object` is pushed first.
    fn evaluation(
        &self,
        expression: Expression<Slice<'a>>,
        object: Option<u64>,
    ) -> gimli::Evaluation<Slice<'a>> {
        let mut evaluation = expression.evaluation(self.unit.encoding());
        evaluation.set_max_iterations(MAX_OPERATIONS);
        if let Some(object) = object {
            evaluation.set_initial_value(object);
        }
        if let Some(object) = object.or(self.object) {
            evaluation.set_object_address(object);
        }
        evaluation
    }

    /// Answers an evaluation's requests until it ends.
    fn finish(
        &self,
        mut evaluation: gimli::Evaluation<Slice<'a>>,
        mut request: Request<'a>,
    ) -> Result<Vec<gimli::Piece<Slice<'a>>>, Unknown> {
        for _ in 0..MAX_ANSWERS {
            if request == EvaluationResult::Complete {
                return Ok(evaluation.result());
            }
            request = self.answer(&mut evaluation, request)?.map_err(damaged)?;
        }
        Err(Unknown::because("its location does not come to an end"))
    }

    fn answer(
        &self,
        evaluation: &mut gimli::Evaluation<Slice<'a>>,
        request: Request<'a>,
    ) -> Result<Step<'a>, Unknown> {
        let context = self.context;
        Ok(match request {
            EvaluationResult::Complete => Ok(EvaluationResult::Complete),
            EvaluationResult::RequiresMemory {
                address,
                size,
                base_type,
                space,
            } => {
                if space.is_some() {
                    return Err(Unknown::because("it is in another address space"));
                }
                evaluation.resume_with_memory(self.memory(address, size, base_type)?)
            }
            EvaluationResult::RequiresRegister {
                register,
                base_type,
            } => evaluation.resume_with_register(self.typed_register(register.0, base_type)?),
            EvaluationResult::RequiresFrameBase => {
                evaluation.resume_with_frame_base(self.frame_base()?)
            }
            EvaluationResult::RequiresTls(offset) => {
                let offset = self.tls_offset(offset)?;
                let address = tls::address(context.site, context.module, offset)?;
                self.note(address.1);
                evaluation.resume_with_tls(address.0)
            }
            EvaluationResult::RequiresCallFrameCfa => {
                evaluation.resume_with_call_frame_cfa(self.cfa()?)
            }
            EvaluationResult::RequiresAtLocation(reference) => {
                evaluation.resume_with_at_location(self.called(reference)?)
            }
            EvaluationResult::RequiresEntryValue(expression) => {
                evaluation.resume_with_entry_value(self.entry_value(expression)?)
            }
            EvaluationResult::RequiresParameterRef(offset) => {
                let (value, certainty) = super::call_site::parameter(context, offset, self.unit)?;
                self.note(certainty);
                evaluation.resume_with_parameter_ref(value)
            }
            EvaluationResult::RequiresRelocatedAddress(address) => {
                evaluation.resume_with_relocated_address(context.placed(address)?)
            }
            EvaluationResult::RequiresIndexedAddress { index, relocate } => {
                let dwarf = context.session.table.dwarf(Home::Info);
                let address = dwarf.address(self.unit, index).map_err(damaged)?;
                let made = match relocate {
                    true => context.placed(address)?,
                    false => address,
                };
                self.indexed.set(Some((made, address)));
                evaluation.resume_with_indexed_address(made)
            }
            EvaluationResult::RequiresBaseType(offset) => {
                evaluation.resume_with_base_type(self.base_type(offset)?)
            }
        })
    }

    /// Returns the offset of a variable in its module's thread-local storage.
    fn tls_offset(&self, stated: u64) -> Result<u64, Unknown> {
        match self.indexed.take() {
            Some((made, word)) if made == stated && self.is_gnu() => {
                tls::indexed(self.context.module, word)
            }
            Some((made, word)) if made == stated => Ok(word),
            _ => Ok(stated),
        }
    }

    fn is_gnu(&self) -> bool {
        let attributes = root_attributes(self.unit).unwrap_or_default();
        let mut attributes = attributes.iter();
        let producer = attributes.find(|a| a.name() == dw::DW_AT_producer);
        let dwarf = self.context.session.table.dwarf(Home::Info);
        let producer = producer.and_then(|p| dwarf.attr_string(self.unit, p.value()).ok());
        producer.is_some_and(|p| p.slice().starts_with(b"GNU "))
    }

    fn base_type(&self, offset: UnitOffset) -> Result<ValueType, Unknown> {
        if offset.0 == 0 {
            return Ok(ValueType::Generic);
        }
        let unknown = || Unknown::because("its location uses a type that cannot be read");
        let mut entries = self.unit.entries_raw(Some(offset)).map_err(damaged)?;
        let abbreviation = entries.read_abbreviation().map_err(damaged)?;
        let (mut encoding, mut size) = (None, None);
        for spec in abbreviation.ok_or_else(unknown)?.attributes() {
            let attribute = entries.read_attribute(*spec).map_err(damaged)?;
            match (attribute.name(), attribute.value()) {
                (dw::DW_AT_byte_size, value) => size = value.udata_value(),
                (_, AttributeValue::Encoding(e)) => encoding = Some(e),
                _ => {}
            }
        }
        let encoding = match encoding.ok_or_else(unknown)? {
            _ if size.is_some_and(|bytes| bytes > 8) => {
                return Err(Unknown::because(TOO_WIDE));
            }
            dw::DW_ATE_UTF | dw::DW_ATE_boolean => dw::DW_ATE_unsigned,
            encoding => encoding,
        };
        let found = ValueType::from_encoding(encoding, size.ok_or_else(unknown)?);
        found.ok_or_else(unknown)
    }

    fn memory(&self, address: u64, size: u8, base: UnitOffset) -> Result<Number, Unknown> {
        let mut bytes = [0; 16];
        let size = usize::from(size).min(bytes.len());
        self.read(address, &mut bytes[..size])?;
        match self.base_type(base)? {
            ValueType::Generic => {
                let mut word = [0; 8];
                word[..size.min(8)].copy_from_slice(&bytes[..size.min(8)]);
                Ok(Number::Generic(u64::from_le_bytes(word)))
            }
            ty => parse(ty, &bytes),
        }
    }

    /// Reads memory, or the object that is not in memory.
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Unknown> {
        let machine = self.context.site.machine;
        let inside = address.checked_sub(HELD_AT).filter(|at| *at < HELD_BYTES);
        let certainty = match (self.held, inside) {
            (Some(held), Some(offset)) => {
                let part = held.bytes_at(offset, bytes.len() as u64, machine);
                bytes.copy_from_slice(&part.bytes?);
                part.certainty
            }
            _ => machine.memory(address, bytes)?,
        };
        self.note(certainty);
        Ok(())
    }

    fn register(&self, number: u16) -> Result<u64, Unknown> {
        if X87.contains(&number) {
            return Err(Unknown::because(TOO_WIDE));
        }
        let (value, certainty) = self.context.site.machine.register(Register(number))?;
        self.note(certainty);
        Ok(value)
    }

    /// Returns a number of `length` bytes in a register of the x87.
    fn x87(&self, number: u16, length: usize) -> Result<Vec<u8>, Unknown> {
        let unknown = || Unknown::because("it is on the x87 stack");
        let area = self.context.site.machine.extended().ok_or_else(unknown)?;
        x87_number(&area, usize::from(number), length).ok_or_else(unknown)
    }

    fn typed_register(&self, number: u16, base: UnitOffset) -> Result<Number, Unknown> {
        let ty = self.base_type(base)?;
        if (Register::XMM0.0..Register::XMM0.0 + 16).contains(&number) {
            let (bytes, certainty) = self.context.site.machine.vector(Register(number))?;
            self.note(certainty);
            return parse(ty, &bytes);
        }
        if X87.contains(&number)
            && let ValueType::F32 | ValueType::F64 = ty
        {
            let length = if ty == ValueType::F32 { 4 } else { 8 };
            return parse(ty, &self.x87(number - X87.start, length)?);
        }
        let value = match self.is_everywhere {
            true => self.base_register(Register(number))?,
            false => self.register(number)?,
        };
        match ty {
            ValueType::Generic => Ok(Number::Generic(value)),
            ty => parse(ty, &value.to_le_bytes()),
        }
    }

    /// Returns the address that the function's variables are relative to.
    pub(super) fn frame_base(&self) -> Result<u64, Unknown> {
        let context = self.context;
        if context.site.is_left {
            return Err(Unknown::because(LEFT));
        }
        let unknown = || Unknown::because("its function's frame base is not stated");
        let function = context.function.as_ref().ok_or_else(unknown)?;
        if self.depth > context.nesting {
            return Err(Unknown::because(
                "its function's frame base refers to itself",
            ));
        }
        let value = context.session.attr(function, dw::DW_AT_frame_base);
        let expression = context.expression(function, value.ok_or_else(unknown)?)?;
        let inner = Evaluator {
            context,
            unit: &function.unit,
            certainty: Cell::new(Certainty::Known),
            depth: self.depth + 1,
            object: None,
            held: None,
            is_everywhere: false,
            indexed: Cell::new(None),
        };
        let place = inner.place(expression.ok_or_else(unknown)?, None)?;
        self.note(inner.certainty());
        match place {
            ValuePlace::Memory(address) => Ok(address),
            ValuePlace::Register(register) => self.base_register(register),
            ValuePlace::Implicit(bytes) => {
                let bytes = bytes.first_chunk::<8>().ok_or_else(unknown)?;
                Ok(u64::from_le_bytes(*bytes))
            }
            _ => Err(unknown()),
        }
    }

    /// Returns the value of a register after the prologue.
    fn base_register(&self, register: Register) -> Result<u64, Unknown> {
        let context = self.context;
        let svma = base::svma_of(context.site, context.bias);
        match base::distance(context.module, svma, register) {
            None => {
                base::in_body(context.module, svma)?;
                self.register(register.0)
            }
            Some(distance) => {
                let cfa = self.cfa()?;
                Ok(cfa.wrapping_sub(distance as u64))
            }
        }
    }

    fn cfa(&self) -> Result<u64, Unknown> {
        let site = self.context.site;
        site.cfa.ok_or_else(|| {
            Unknown::because(match site.machine.has_returned() {
                true => "the call has returned, and its frame is gone",
                false => "its frame could not be unwound",
            })
        })
    }

    /// Returns the expression that `DW_OP_call` inserts: empty if the DIE has none.
    fn called(&self, reference: DieReference) -> Result<Slice<'a>, Unknown> {
        let session = self.context.session;
        let value = match reference {
            DieReference::UnitRef(offset) => {
                let header = self.unit.header.offset();
                let start = header.as_debug_info_offset().map_or(0, |o| o.0);
                start.saturating_add(offset.0)
            }
            DieReference::DebugInfoRef(offset) => offset.0,
        };
        let unknown = || Unknown::because("its location refers to nothing");
        let (index, offset) = session
            .table
            .locate(Home::Info, value)
            .ok_or_else(unknown)?;
        let die = Die {
            home: Home::Info,
            index,
            unit: session.unit(Home::Info, index).map_err(damaged)?,
            offset,
        };
        match session.attr(&die, dw::DW_AT_location) {
            Some(value) => {
                let expression = self.context.expression(&die, value)?;
                Ok(expression.map_or(Slice::new(&[], gimli::LittleEndian), |e| e.0))
            }
            None => Ok(Slice::new(&[], gimli::LittleEndian)),
        }
    }
}

fn bytes_type(count: u64) -> Type {
    let byte = crate::types::builtin("u8").expect("u8 is a base type");
    byte.array(count)
}

fn parse(ty: ValueType, bytes: &[u8]) -> Result<Number, Unknown> {
    Number::parse(ty, Slice::new(bytes, gimli::LittleEndian)).map_err(damaged)
}

fn bytes_of(value: Number) -> Vec<u8> {
    match value {
        Number::Generic(v) | Number::U64(v) => v.to_le_bytes().to_vec(),
        Number::I64(v) => v.to_le_bytes().to_vec(),
        // A wider read of a narrow number is sign-extended.
        Number::I8(v) => i64::from(v).to_le_bytes().to_vec(),
        Number::I16(v) => i64::from(v).to_le_bytes().to_vec(),
        Number::I32(v) => i64::from(v).to_le_bytes().to_vec(),
        Number::U8(v) => u64::from(v).to_le_bytes().to_vec(),
        Number::U16(v) => u64::from(v).to_le_bytes().to_vec(),
        Number::U32(v) => u64::from(v).to_le_bytes().to_vec(),
        Number::F32(v) => v.to_le_bytes().to_vec(),
        Number::F64(v) => v.to_le_bytes().to_vec(),
    }
}
