//! Finds the function of glibc that returns the block of `posix_memalign`, which itself only stores its address.
//!
//! It has no symbol. It is the one function that both `posix_memalign` and `memalign` call, except those that
//! `mallopt` and `malloc_trim` call too.

use std::collections::BTreeSet;

use debuginfo::{Module, Svma, Symbol, SymbolKind};
use iced_x86::{Decoder, DecoderOptions, FlowControl};

/// Its name in glibc's sources and debug information.
pub const ALIGNED: &str = "_mid_memalign";

/// Those that call it.
const CALLERS: [&str; 2] = ["posix_memalign", "memalign"];
/// Of those functions, these call only the ones that initialize the allocator.
const OTHERS: [&str; 2] = ["mallopt", "malloc_trim"];

/// Returns its first byte and its size.
pub fn aligned(module: &Module) -> Option<(u64, u64)> {
    let symbols = module.symbols();
    let called_by = |name: &str| {
        let is_it =
            |symbol: &&Symbol| symbol.kind == SymbolKind::Function && symbol.linkage == name;
        let symbol = symbols.iter().find(is_it)?;
        Some(called(module, symbol.svma.0, symbol.size))
    };
    let [first, second] = CALLERS.map(called_by);
    let mut common: BTreeSet<u64> = first?.intersection(&second?).copied().collect();
    for other in OTHERS {
        let called = called_by(other)?;
        common.retain(|function| !called.contains(function));
    }
    let mut common = common.into_iter();
    let (Some(found), None) = (common.next(), common.next()) else {
        return None;
    };
    let end = module.function_end(Svma(found))?;
    Some((found, end.0 - found))
}

/// The functions that the code of a function calls, or ends in.
fn called(module: &Module, start: u64, size: u64) -> BTreeSet<u64> {
    let code = module.code(Svma(start), size).unwrap_or_default();
    let own = start..start + size;
    let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let branches = decoder.into_iter().filter(|instruction| {
        matches!(
            instruction.flow_control(),
            FlowControl::Call | FlowControl::UnconditionalBranch
        )
    });
    branches
        .map(|instruction| instruction.near_branch_target())
        .filter(|target| *target != 0 && !own.contains(target))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_by_those_that_call_it() {
        let path = "/lib/x86_64-linux-gnu/libc.so.6";
        let libc = Module::open(path).expect("the C library can be read");
        let (found, size) = aligned(&libc).expect("it is found");
        assert!(size > 16, "{size}");
        let known = &libc.functions().list;
        let named = known.iter().find(|function| function.name == ALIGNED);
        // Debug information of the C library may be missing.
        if let Some(named) = named {
            assert_eq!(found, named.svma.0);
        }
    }
}
