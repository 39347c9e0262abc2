//! Tells virtual machines that read return addresses from the stack where those of hooked calls are.
//!
//! V8 does so when it collects garbage and when it makes an error. For every place where it expects a return address it asks a
//! function, if one is set, where the address really is (`v8::V8::SetReturnAddressLocationResolver`). It is made for tools that
//! replace return addresses.

use agent::host::Replacement;
use debuginfo::Module;

use super::LoadedModule;

/// The variable of V8 that points to the function.
const VARIABLE: &str = "_ZN2v88internal10StackFrame33return_address_location_resolver_E";
/// The runtime's function, as its replacements name it.
const RESOLVER: &str = "hs_return_address_at";

/// Returns the address of the variable in a module with V8, and what it has to point to.
pub(super) fn find(
    module: &LoadedModule,
    elf: &Module,
    replacements: &[Replacement],
) -> Option<(u64, u64)> {
    let resolver = replacements.iter().find(|known| known.name == RESOLVER)?;
    let variable = elf.address_of(VARIABLE)?;
    Some((module.addr_from_svma(variable.0), resolver.by))
}
