//! Locates variables: evaluates location lists and DWARF expressions on a [`Machine`].
//!
//! The number of evaluation steps is bounded. If something required is not available, the answer is [`Unknown`], with
//! the reason from where it is missing.

mod base;
mod call_site;
mod dynamic;
mod evaluate;
mod fixed;
mod frame;
pub mod ir;
pub(crate) mod list;
mod parts;
mod stored;
mod symbolic;
mod tls;

use std::sync::Arc;

use gimli::constants as dw;
use gimli::{AttributeValue, Expression};

use crate::address_space::AddressSpace;
use crate::dies::{Die, DieReader, Value as Attribute};
use crate::dwarf::Slice;
use crate::machine::{Certainty, Machine, Register, Unknown};
use crate::module::Module;
use crate::types::{DieId, Type, constant, with_session};
use crate::value::{SeenRegister, Value};
pub(crate) use dynamic::decided;
use evaluate::Evaluator;
pub(crate) use fixed::{
    FixedPlace, depends_on_instruction, fixed_place, is_removed, why_unsettled,
};
use frame::MAX_CALLERS;
pub use frame::at_frame;
pub(crate) use stored::{Stored, stored, why_item};
pub use symbolic::Symbolic;
pub(crate) use symbolic::symbolic;

/// Entries read from one location list, at most.
const MAX_ENTRIES: usize = 1 << 14;
/// Nesting of implicit pointers to variables that are implicit pointers themselves, and the like, at most.
const MAX_NESTING: usize = 8;
/// Why a variable that the debug information describes is not in the program.
const REMOVED: &str = "the linker removed it, because nothing in the program uses it";

/// Where a value is.
#[derive(Debug, Clone)]
pub enum ValuePlace {
    /// In memory, at this address of the process.
    Memory(u64),
    /// In the low bytes of a register.
    Register(Register),
    /// In several places, the lowest bits first.
    Pieces(Vec<Piece>),
    /// Nowhere: the debug information states the bytes themselves.
    Implicit(Vec<u8>),
    /// A pointer that does not exist at run time, whose target may still be known.
    ImplicitPointer {
        /// The target of the pointer.
        target: Box<Value>,
        /// Bytes from the start of the target.
        offset: i64,
    },
    /// Nowhere: the compiler removed it.
    OptimizedOut,
    /// The place is unknown.
    Unknown(Unknown),
}

/// A part of a value.
#[derive(Debug, Clone)]
pub struct Piece {
    /// Where the piece is; never in pieces itself.
    pub place: ValuePlace,
    /// Bits of the place before the piece.
    pub offset_bits: u64,
    /// The size of the piece in bits.
    pub size_bits: u64,
    /// For a register, what it held when the value was read.
    pub(crate) seen: Option<Arc<SeenRegister>>,
}

impl Piece {
    /// Makes a piece of `size_bits` bits of a place, behind `offset_bits` others of it.
    #[must_use]
    pub fn new(place: ValuePlace, offset_bits: u64, size_bits: u64) -> Piece {
        Piece {
            place,
            offset_bits,
            size_bits,
            seen: None,
        }
    }
}

/// One frame at one moment, in which locations are evaluated.
#[derive(Clone, Copy)]
pub struct FrameContext<'a> {
    /// The modules of the process.
    pub space: &'a AddressSpace,
    /// Registers of the frame, and memory.
    pub machine: &'a dyn Machine,
    /// The address at which variables are looked up: inside the current instruction or, in callers, inside the call.
    pub lookup_pc: u64,
    /// The number of inlined calls between the frame and its function with code.
    pub inline_depth: usize,
    /// The CFA, if it could be found.
    pub cfa: Option<u64>,
    /// The function gave up its frame before a tail call, so the stack no longer holds its variables.
    pub is_left: bool,
    /// The frame that called this one, which knows the entry values of arguments.
    pub caller: Option<&'a FrameContext<'a>>,
}

impl<'a> FrameContext<'a> {
    /// Makes a context outside any function, for what needs no frame, such as global variables.
    #[must_use]
    pub fn outside(space: &'a AddressSpace, machine: &'a dyn Machine) -> FrameContext<'a> {
        FrameContext {
            space,
            machine,
            lookup_pc: 0,
            inline_depth: 0,
            cfa: None,
            is_left: false,
            caller: None,
        }
    }
}

pub(crate) struct Located {
    pub place: ValuePlace,
    pub certainty: Certainty,
}

/// A context together with the module of the variable.
pub(crate) struct Context<'x, 't, 'a> {
    pub site: &'x FrameContext<'x>,
    pub module: &'x Arc<Module>,
    pub bias: u64,
    pub session: &'x DieReader<'t, 'a>,
    /// The function with code that contains the variable.
    pub function: Option<Die<'a>>,
    pub nesting: usize,
}

/// Locates the variable `id` of `function`, for a value of type `ty`.
pub(crate) fn locate(
    site: &FrameContext<'_>,
    module: &Arc<Module>,
    id: DieId,
    function: Option<DieId>,
    ty: &Type,
    nesting: usize,
) -> Located {
    let unknown = |reason: &str| Located {
        place: ValuePlace::Unknown(Unknown::because(reason)),
        certainty: Certainty::Known,
    };
    if nesting > MAX_NESTING {
        return unknown("its location refers to itself");
    }
    let located = with_context(site, module, id, function, nesting, |context, die| {
        context.locate(die, ty)
    });
    located.unwrap_or_else(|| unknown("its description cannot be read"))
}

fn with_context<T>(
    site: &FrameContext<'_>,
    module: &Arc<Module>,
    id: DieId,
    function: Option<DieId>,
    nesting: usize,
    work: impl for<'x, 't, 'a> FnOnce(&Context<'x, 't, 'a>, &Die<'a>) -> T,
) -> Option<T> {
    let bias = bias_of(site, module);
    with_session(module.entries(), id, |session, die| {
        let function = function.and_then(|f| {
            Some(Die {
                home: f.home,
                index: f.index,
                unit: session.unit(f.home, f.index).ok()?,
                offset: gimli::UnitOffset(f.offset),
            })
        });
        let context = Context {
            site,
            module,
            bias,
            session,
            function,
            nesting,
        };
        work(&context, die)
    })
}

/// What leads from a nested function's frame to that of the function around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticLink {
    /// The frame base of the outer frame. gfortran 12 leaves it zero.
    pub base: Option<u64>,
    /// Where the base is kept: in the outer frame.
    pub slot: Option<u64>,
}

/// Returns the static link of a nested function, if it is stated.
pub(crate) fn static_link(
    site: &FrameContext<'_>,
    module: &Arc<Module>,
    function: DieId,
) -> Result<Option<StaticLink>, Unknown> {
    let link = with_context(site, module, function, Some(function), 0, |context, die| {
        let Some(value) = context.session.attr(die, dw::DW_AT_static_link) else {
            return Ok(None);
        };
        let Some(expression) = context.expression(die, value)? else {
            return Err(Unknown::because("the static link is not stated here"));
        };
        let address = |expression| match Evaluator::new(context, &die.unit).place(expression, None)
        {
            Ok(ValuePlace::Memory(address)) => Ok(Some(address)),
            Ok(_) => Ok(None),
            Err(why) => Err(why),
        };
        let code = expression.0.slice();
        let slot = match code.split_last() {
            Some((last, before)) if *last == dw::DW_OP_deref.0 => {
                let before = Slice::new(before, gimli::LittleEndian);
                address(Expression(before))?
            }
            _ => None,
        };
        let base = match slot {
            Some(_) => address(expression).unwrap_or(None),
            None => address(expression)?,
        };
        Ok(Some(StaticLink { base, slot }))
    });
    link.unwrap_or(Ok(None))
}

/// Returns the address that a function's variables are relative to.
pub(crate) fn frame_base(
    site: &FrameContext<'_>,
    module: &Arc<Module>,
    function: DieId,
) -> Result<u64, Unknown> {
    let base = with_context(site, module, function, Some(function), 0, |context, die| {
        Evaluator::new(context, &die.unit).frame_base()
    });
    base.unwrap_or_else(|| Err(Unknown::because("its function cannot be read")))
}

fn bias_of(site: &FrameContext<'_>, module: &Arc<Module>) -> u64 {
    let mut mapped = site.space.modules().iter();
    let mapped = mapped.find(|m| Arc::ptr_eq(&m.module, module));
    mapped.map_or(0, |m| m.bias)
}

/// Returns the address of a member that is computed from the address of its object.
pub(crate) fn computed_member(
    site: &FrameContext<'_>,
    module: &Arc<Module>,
    member: DieId,
    object: u64,
) -> Result<u64, Unknown> {
    let address = with_context(site, module, member, None, 0, |context, die| {
        let location = context.session.attr(die, dw::DW_AT_data_member_location);
        let expression = location.and_then(|l| l.exprloc_value());
        let expression = expression
            .ok_or_else(|| Unknown::because("the member's place in its object is not stated"))?;
        let evaluator = Evaluator::new(context, &die.unit);
        match evaluator.place(expression, Some(object))? {
            ValuePlace::Memory(address) => Ok(address),
            _ => Err(Unknown::because("the member's place is not an address")),
        }
    });
    address.unwrap_or_else(|| Err(Unknown::because("the member's description cannot be read")))
}

impl<'a> Context<'_, '_, 'a> {
    /// Returns the place of the variable `die` at the site.
    fn locate(&self, die: &Die<'a>, ty: &Type) -> Located {
        let known = |place| Located {
            place,
            certainty: Certainty::Known,
        };
        let chain = self.session.chain(die);
        let stated = |name| self.session.stated(&chain, name);
        if let Some((at, value)) = stated(dw::DW_AT_location) {
            let evaluator = match value.exprloc_value() {
                Some(_) => Evaluator::everywhere(self, &at.unit),
                None => Evaluator::new(self, &at.unit),
            };
            let place = match self.expression(at, value) {
                Ok(Some(expression)) if expression.0.is_empty() => Ok(ValuePlace::OptimizedOut),
                Ok(Some(expression)) => evaluator.place(expression, None),
                Ok(None) => Ok(ValuePlace::OptimizedOut),
                Err(why) => Err(why),
            };
            return Located {
                place: place.unwrap_or_else(ValuePlace::Unknown),
                certainty: evaluator.certainty(),
            };
        }
        if let Some((at, value)) = stated(dw::DW_AT_const_value) {
            return known(self.implicit(at, &value, ty));
        }
        known(ValuePlace::OptimizedOut)
    }

    /// Converts an address that the debug information states to one of the process.
    fn placed(&self, svma: u64) -> Result<u64, Unknown> {
        match self.module.files.main.may_place(svma) {
            true => Ok(svma.wrapping_add(self.bias)),
            false => Err(Unknown::because(REMOVED)),
        }
    }

    /// Returns the bytes of a constant.
    fn implicit(&self, die: &Die<'a>, value: &Attribute<'a>, ty: &Type) -> ValuePlace {
        if let AttributeValue::Block(bytes) = value {
            return ValuePlace::Implicit(bytes.slice().to_vec());
        }
        if let Some(number) = constant(*value, true) {
            let bytes = number.to_le_bytes();
            let size = ty.size().and_then(|s| usize::try_from(s).ok());
            let size = size.map_or(8, |s| s.min(bytes.len()));
            return ValuePlace::Implicit(bytes[..size].to_vec());
        }
        match self.session.dwarf(die).attr_string(&die.unit, *value) {
            Ok(text) => {
                let mut bytes = text.slice().to_vec();
                bytes.push(0);
                ValuePlace::Implicit(bytes)
            }
            Err(_) => ValuePlace::Unknown(Unknown::because("its constant cannot be read")),
        }
    }

    /// Returns the expression that applies at the site, or `None` if the location list has none.
    fn expression(
        &self,
        die: &Die<'a>,
        value: Attribute<'a>,
    ) -> Result<Option<Expression<Slice<'a>>>, Unknown> {
        if let Some(expression) = value.exprloc_value() {
            return Ok(Some(expression));
        }
        let damaged = || Unknown::because("its location list is damaged");
        let pc = self.site.lookup_pc.wrapping_sub(self.bias);
        let list = self.session.dwarf(die).attr_locations(&die.unit, value);
        let mut list = list.map_err(|_| damaged())?.ok_or_else(damaged)?;
        for _ in 0..MAX_ENTRIES {
            match list.next().map_err(|_| damaged())? {
                Some(entry) if entry.range.begin <= pc && pc < entry.range.end => {
                    return Ok(Some(entry.data));
                }
                Some(_) => {}
                None if self.is_function_entry(pc) => {
                    return Ok(list::before_entry(self.session, die, value, pc));
                }
                None => return Ok(None),
            }
        }
        Err(Unknown::because("its location list is too long"))
    }

    /// Returns whether an address of the module is the first one of the function.
    fn is_function_entry(&self, svma: u64) -> bool {
        let low = |function| {
            let value = self.session.attr(function, dw::DW_AT_low_pc)?;
            let dwarf = self.session.dwarf(function);
            dwarf.attr_address(&function.unit, value).ok().flatten()
        };
        self.function.as_ref().and_then(low) == Some(svma)
    }

    /// Returns the value of the variable that an attribute refers to.
    fn variable_number(
        &self,
        die: &Die<'a>,
        value: Attribute<'a>,
    ) -> Result<(i64, Certainty), Unknown> {
        let variable = self
            .session
            .resolve(die, value)
            .ok_or_else(|| Unknown::because("it refers to nothing"))?;
        let chain = self.session.chain(&variable);
        let ty = chain
            .iter()
            .find_map(|d| self.session.follow(d, dw::DW_AT_type));
        let ty = ty.ok_or_else(|| Unknown::because("it has no type"))?;
        let ty = Type::at(self.module, DieId::of(&ty));
        let located = locate(
            self.site,
            self.module,
            DieId::of(&variable),
            self.function.as_ref().map(DieId::of),
            &ty,
            self.nesting + 1,
        );
        let value = Value::read(ty, located.place, self.site.machine);
        let number = value
            .as_integer()
            .map_err(|why| Unknown::because(why.to_string()))?;
        let number = i64::try_from(number).map_err(|_| Unknown::because("it is too large"))?;
        Ok((number, located.certainty.and(value.certainty)))
    }
}
