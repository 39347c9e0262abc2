//! Asks a module for the places, types and values of its variables, on a machine with made-up contents.

use std::sync::Arc;

use super::Show;
use crate::address_space::{AddressSpace, Mapped};
use crate::location::FrameContext;
use crate::machine::{Certainty, Machine, Register, Unknown};
use crate::module::Module;
use crate::scope::{globals, variables_at};
use crate::types::{Type, find_type};
use crate::value::{Look, Value};

/// Functions whose variables are read.
const MAX_FUNCTIONS: usize = 8;
/// Variables read of one function.
const MAX_VARIABLES: usize = 16;
const BIAS: u64 = 0x5000_0000;

/// A machine on which every word is an address near the module, so that pointers lead somewhere, and every eighth page
/// is missing.
struct MadeUp;

impl Machine for MadeUp {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        if address >> 12 & 7 == 7 {
            return Err(Unknown::because("no memory"));
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            let place = address.wrapping_add(at as u64);
            let word = BIAS.wrapping_add((place >> 3).wrapping_mul(0x9e37) & 0xffff);
            *byte = word.to_le_bytes()[(place & 7) as usize];
        }
        Ok(Certainty::Known)
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        match register.0 % 5 {
            4 => Err(Unknown::because("no register")),
            _ => Ok((BIAS + u64::from(register.0) * 0x100, Certainty::Known)),
        }
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        Ok(([register.0 as u8; 16], Certainty::Known))
    }
}

/// Reads everything about the variables of `module`.
pub(super) fn ask(module: &Arc<Module>, show: Show<'_>) {
    let show = |site: &FrameContext<'_>, value: &Value| {
        look(site, value);
        show(site, value);
    };
    let mapped = Mapped {
        module: module.clone(),
        number: 0,
        bias: BIAS,
        range: BIAS..BIAS + (1 << 32),
        is_system: false,
    };
    let space = AddressSpace::new(vec![mapped]);
    let functions = module.functions().list.iter().take(MAX_FUNCTIONS);
    let ranges = functions.flat_map(|f| f.ranges.first());
    let places = ranges.flat_map(|r| [r.start.0, r.start.0.midpoint(r.end.0)]);
    let outside = FrameContext::outside(&space, &MadeUp);
    for svma in places {
        let address = svma.wrapping_add(BIAS);
        let caller = FrameContext {
            lookup_pc: address,
            cfa: Some(BIAS + 0x2000),
            ..outside
        };
        for inline_depth in 0..3 {
            let site = FrameContext {
                lookup_pc: address,
                inline_depth,
                cfa: Some(BIAS + 0x1000),
                caller: Some(&caller),
                ..outside
            };
            variables(&site, &show);
        }
    }
    for name in module
        .types()
        .index()
        .names(module.entries(), MAX_VARIABLES)
    {
        let site = outside;
        for variable in globals(&site, &name).iter().take(2) {
            show(&site, &variable.read(&site));
        }
        if let Some(ty) = find_type(&space, None, &name) {
            types(&ty, 3);
            show(&site, &Value::at(ty, BIAS + 0x100, &MadeUp));
        }
    }
}

fn variables(site: &FrameContext<'_>, show: Show<'_>) {
    for variable in variables_at(site).iter().take(MAX_VARIABLES) {
        show(site, &variable.read(site));
    }
}

fn look(site: &FrameContext<'_>, value: &Value) {
    let look = Look {
        space: site.space,
        machine: site.machine,
    };
    let _ = (value.as_integer(), value.address(), value.variant(&look));
    let _ = (value.deref(&look), value.index(1, &look));
    let _ = value.member("a", &look);
}

fn types(ty: &Type, depth: usize) {
    let _ = (ty.name(), ty.size(), ty.strip().kind(), ty.count());
    let _ = (
        ty.enumerators().len(),
        ty.variants(),
        ty.template_arguments(),
    );
    if depth > 0 {
        for member in ty.members().iter().take(8) {
            types(&member.ty, depth - 1);
        }
        for inner in ty.target().iter().chain(&ty.element()) {
            types(inner, depth - 1);
        }
    }
}
