//! Allocation functions: what a function does with memory, by its name.

use store::control::FunctionDef;

/// How a function receives the size of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// In an argument.
    Argument(usize),
    /// It is the product of two arguments, from this one on.
    Product(usize),
}

impl Size {
    /// Returns the size in bytes that a call with these arguments requests.
    #[must_use]
    pub fn of(self, args: &[u64]) -> u64 {
        match self {
            Size::Argument(number) => args[number],
            Size::Product(first) => args[first].saturating_mul(args[first + 1]),
        }
    }
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

    /// Returns whether the program has more memory afterwards, or has it elsewhere.
    #[must_use]
    pub fn gives_memory(self) -> bool {
        !matches!(self, Role::Frees | Role::Unmaps)
    }

    /// Returns whether the program no longer has the memory at its first argument, or has it elsewhere.
    #[must_use]
    pub fn takes_memory(self) -> bool {
        !matches!(self, Role::Makes(_) | Role::Stores(_) | Role::Maps)
    }

    /// Returns the size in bytes of the memory whose address a call with these arguments returns; `None` if it returns none.
    #[must_use]
    pub fn returned_len(self, args: &[u64]) -> Option<u64> {
        match self {
            Role::Makes(size) | Role::Moves(size) => Some(size.of(args)),
            Role::Maps => Some(args[1]),
            Role::Remaps => Some(args[2]),
            Role::Stores(_) | Role::Frees | Role::Unmaps => None,
        }
    }
}

/// How glibc's mmap(2) and mremap(2) report failure: `MAP_FAILED`.
pub(crate) const MAP_FAILED: u64 = u64::MAX;

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
    Some(match library_name(name) {
        "malloc" | "valloc" | "pvalloc" => Role::Makes(Argument(0)),
        "aligned_alloc" | "memalign" | "_mid_memalign" => Role::Makes(Argument(1)),
        "calloc" => Role::Makes(Product(0)),
        "posix_memalign" => Role::Stores(Argument(2)),
        "realloc" => Role::Moves(Argument(1)),
        "reallocarray" => Role::Moves(Product(1)),
        "free" | "cfree" => Role::Frees,
        "mmap" | "mmap64" => Role::Maps,
        "munmap" => Role::Unmaps,
        "mremap" => Role::Remaps,
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

/// The name of a function without glibc's prefixes: debug information has one of several names, such as `__libc_malloc`,
/// `__GI___libc_malloc` or `__mmap`.
#[must_use]
pub fn library_name(name: &str) -> &str {
    // Compilers make copies of a function for some arguments: `_mid_memalign.constprop.0`.
    let name = name.split_once(".constprop").map_or(name, |(name, _)| name);
    // Newer compilers of Rust have theirs in a crate of that name.
    let is_rust = name.starts_with("__rustc::") || name.starts_with("__rustc[");
    let name = match name.rsplit_once("::") {
        Some((_, name)) if is_rust => name,
        _ => name,
    };
    let name = name.strip_prefix("__GI_").unwrap_or(name);
    let name = name.strip_prefix("__libc_").unwrap_or(name);
    match name.strip_prefix("__") {
        Some(
            name @ ("mmap" | "mmap64" | "munmap" | "mremap" | "posix_memalign" | "aligned_alloc"
            | "reallocarray"),
        ) => name,
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
            ("__GI___munmap", Role::Unmaps),
            ("__libc_free", Role::Frees),
            ("operator delete(void*, unsigned long)", Role::Frees),
            ("__rustc::__rust_dealloc", Role::Frees),
            ("reallocarray", Role::Moves(Size::Product(1))),
            ("__posix_memalign", Role::Stores(Size::Argument(2))),
        ] {
            assert_eq!(of_name(name), Some(role), "{name}");
        }
        for name in ["malloc_trim", "malloc_usable_size", "free_list_push"] {
            assert_eq!(of_name(name), None, "{name}");
        }
        assert_eq!(known_as("operator new[](unsigned long)"), "operator new[]");
        assert_eq!(known_as("__GI___libc_malloc"), "malloc");
    }

    #[test]
    fn a_place_that_is_only_returned_is_no_block() {
        let name = "operator new(unsigned long, void*)";
        assert_eq!(role_of(name, "_ZnwmPv"), None);
        let nothrow = "operator new(unsigned long, std::nothrow_t const&)";
        let makes = Some(Role::Makes(Size::Argument(0)));
        assert_eq!(role_of(nothrow, "_ZnwmRKSt9nothrow_t"), makes);
    }
}
