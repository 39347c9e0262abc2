//! What a function does with memory, by its name.

use replay::library_name;
use store::control::FunctionDef;

/// How a function receives the size of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// In an argument.
    Argument(usize),
    /// It is the product of two arguments, from this one on.
    Product(usize),
}

/// What a function does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Returns a block.
    Makes(Size),
    /// Stores the address of a block, which is not recorded: a function that it calls returns the block.
    Stores(Size),
    /// Frees the block in its first argument and returns another one, or the same with another size.
    Moves(Size),
    /// Frees the block in its first argument.
    Frees,
    /// Maps pages.
    Maps,
    /// Unmaps pages.
    Unmaps,
    /// Moves mapped pages.
    Remaps,
}

impl Role {
    /// Returns whether it is about mapped pages, and not blocks of the heap.
    #[must_use]
    pub fn is_of_pages(self) -> bool {
        matches!(self, Role::Maps | Role::Unmaps | Role::Remaps)
    }
}

/// The linker's names of the operators that only return or take a place: `new (place) T`.
const PLACEMENT: [&str; 4] = ["_ZnwmPv", "_ZnamPv", "_ZdlPvS_", "_ZdaPvS_"];

/// Returns what a function does with memory, if anything.
#[must_use]
pub fn role(function: &FunctionDef) -> Option<Role> {
    role_of(&function.name, &function.linkage)
}

/// The same for a function with these names.
#[must_use]
pub fn role_of(name: &str, linkage: &str) -> Option<Role> {
    match PLACEMENT.contains(&linkage) {
        true => None,
        false => of_name(name),
    }
}

fn of_name(name: &str) -> Option<Role> {
    use Size::{Argument, Product};
    // Compilers make copies of a function for some arguments: `_mid_memalign.constprop.0`.
    let name = name.split_once(".constprop").map_or(name, |(name, _)| name);
    Some(match library_name(name) {
        "malloc" | "valloc" | "pvalloc" => Role::Makes(Argument(0)),
        "aligned_alloc" | "memalign" | "_mid_memalign" => Role::Makes(Argument(1)),
        "calloc" => Role::Makes(Product(0)),
        "posix_memalign" => Role::Stores(Argument(2)),
        "realloc" => Role::Moves(Argument(1)),
        "reallocarray" => Role::Moves(Product(1)),
        "free" | "cfree" => Role::Frees,
        "mmap" | "mmap64" => Role::Maps,
        "munmap" | "__munmap" => Role::Unmaps,
        "mremap" | "__mremap" => Role::Remaps,
        "__rust_alloc" | "__rdl_alloc" | "__rg_alloc" => Role::Makes(Argument(0)),
        "__rust_alloc_zeroed" | "__rdl_alloc_zeroed" | "__rg_alloc_zeroed" => {
            Role::Makes(Argument(0))
        }
        "__rust_realloc" | "__rdl_realloc" | "__rg_realloc" => Role::Moves(Argument(3)),
        "__rust_dealloc" | "__rdl_dealloc" | "__rg_dealloc" => Role::Frees,
        other if other.starts_with("operator new") => Role::Makes(Argument(0)),
        other if other.starts_with("operator delete") => Role::Frees,
        _ => return None,
    })
}

/// Returns the name under which an allocating or freeing function is shown: a function of the C library without its prefixes, an
/// operator without its parameters.
#[must_use]
pub fn known_as(name: &str) -> &str {
    let name = library_name(name);
    match name.split_once('(') {
        Some((operator, _)) if operator.starts_with("operator ") => operator,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_any_of_their_names() {
        for (name, role) in [
            ("malloc", Role::Makes(Size::Argument(0))),
            ("__GI___libc_calloc", Role::Makes(Size::Product(0))),
            (
                "operator new[](unsigned long)",
                Role::Makes(Size::Argument(0)),
            ),
            ("operator delete(void*)", Role::Frees),
            ("__rustc::__rust_realloc", Role::Moves(Size::Argument(3))),
            ("__mmap", Role::Maps),
            ("_mid_memalign.constprop.0", Role::Makes(Size::Argument(1))),
        ] {
            assert_eq!(of_name(name), Some(role), "{name}");
        }
        assert_eq!(of_name("malloc_trim"), None);
        assert_eq!(known_as("operator new[](unsigned long)"), "operator new[]");
        assert_eq!(known_as("__GI___libc_malloc"), "malloc");
    }
}
