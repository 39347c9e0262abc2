//! Finds types by the text of a cast, and the definitions of types that are only declared.

use std::sync::Arc;

use super::index::{Entry, EntryKind};
use super::text::{self, Rank};
use super::{Type, TypeKind, builtin};
use crate::address_space::{AddressSpace, Mapped};
use crate::dies::Home;
use crate::module::Module;
use crate::scope::{Imported, reach};

/// Candidates for one name whose full names are compared, at most.
const MAX_CANDIDATES: usize = 4096;
/// Signs after a name (`*`, `[4]`) that are read, at most.
const MAX_SIGNS: usize = 64;

/// The code whose source refers to a type.
#[derive(Clone, Copy)]
pub struct Near<'a> {
    /// An address of the code. Types of its module and language are preferred.
    pub address: u64,
    /// The unit of the code. Its types are preferred.
    pub unit: Option<usize>,
    /// Returns the name of the function, whose namespaces are preferred. Called if several types fit.
    pub function: &'a dyn Fn() -> String,
    /// Returns the full names that a name may mean because the source imports them.
    pub imported: &'a dyn Fn(&str) -> Vec<Imported>,
    /// Returns the type that was given for a template parameter, or that a function or class around the code declares.
    pub given: &'a dyn Fn(&str) -> Option<Type>,
}

fn nothing(_: &str) -> Vec<Imported> {
    Vec::new()
}

fn no_type(_: &str) -> Option<Type> {
    None
}

impl Near<'_> {
    /// Makes a value for code in no unit.
    #[must_use]
    pub fn address(address: u64) -> Near<'static> {
        Near {
            address,
            unit: None,
            function: &String::new,
            imported: &nothing,
            given: &no_type,
        }
    }
}

/// Finds the type that `text` names, as in a cast: `struct foo *`, `unsigned long`, `ns::Map<int, ns::A>`, `u32`,
/// `*const u8`, `char[16]`, `int (*)[4]`.
#[must_use]
pub fn find_type(space: &AddressSpace, near: Option<Near<'_>>, text: &str) -> Option<Type> {
    find(space, near, text.trim(), MAX_SIGNS)
}

fn find(space: &AddressSpace, context: Option<Near<'_>>, text: &str, signs: usize) -> Option<Type> {
    let signs = signs.checked_sub(1)?;
    let pointer_to = |rest: &str| Some(find(space, context, rest, signs)?.pointer());
    let text = text.trim();
    for prefix in ["*const ", "*mut ", "&mut ", "&"] {
        if let Some(rest) = text.strip_prefix(prefix) {
            // The debug information describes fat pointers and references by name.
            return named(space, context, text).or_else(|| pointer_to(rest));
        }
    }
    if let Some(rest) = text.strip_suffix('*') {
        return pointer_to(rest);
    }
    if let Some(inside) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        let (element, count) = inside.rsplit_once(';')?;
        let count = count.trim().parse().ok()?;
        return Some(find(space, context, element, signs)?.array(count));
    }
    if let Some((target, stars)) = pointer_to_array(text) {
        let target = find(space, context, &target, signs)?;
        return Some((0..stars).fold(target, |ty, _| ty.pointer()));
    }
    if text.ends_with(']') {
        // The first dimension is the outermost: `int[2][3]` are two arrays of three.
        let before = text.trim_end_matches(|c: char| c.is_ascii_digit() || "[] ".contains(c));
        let dimensions = text[before.len()..].find('[')? + before.len();
        let (count, inner) = text[dimensions + 1..].split_once(']')?;
        let count = count.trim().parse().ok()?;
        let element = format!("{}{inner}", &text[..dimensions]);
        return Some(find(space, context, &element, signs)?.array(count));
    }
    for word in ["const", "volatile"] {
        let before = text.strip_prefix(word).filter(|r| r.starts_with(' '));
        let behind = text.strip_suffix(word).filter(|r| r.ends_with([' ', '*']));
        if let Some(rest) = before.or(behind) {
            return find(space, context, rest, signs);
        }
    }
    for word in ["struct", "class", "union", "enum"] {
        if let Some(name) = text.strip_prefix(word).filter(|r| r.starts_with(' ')) {
            let name = name.trim();
            let given = context.and_then(|near| (near.given)(name));
            // A typedef may have the same name.
            let given = given.map(|ty| ty.strip());
            let is_it = |ty: &Type| is_a(Some(word), ty.kind()) && ty.plain_name() == Some(name);
            let given = given.filter(is_it);
            return given.or_else(|| in_modules(space, context, name, Some(word)));
        }
    }
    named(space, context, text)
}

/// Splits `int (*)[4]` into the array's type and the number of stars.
fn pointer_to_array(text: &str) -> Option<(String, usize)> {
    let (of, behind) = text.split_once("(*")?;
    let (stars, dimensions) = behind.split_once(")[")?;
    let is_pointer = text.ends_with(']')
        && stars.bytes().all(|byte| byte == b'*')
        && of.matches('<').count() == of.matches('>').count();
    is_pointer.then(|| (format!("{of}[{dimensions}"), stars.len() + 1))
}

fn named(space: &AddressSpace, context: Option<Near<'_>>, name: &str) -> Option<Type> {
    if name.is_empty() {
        return None;
    }
    let given = context.and_then(|near| (near.given)(name));
    let described = given.or_else(|| in_modules(space, context, name, None));
    described.or_else(|| builtin(name))
}

/// Searches the module of `context`, then the others in load order.
fn in_modules(
    space: &AddressSpace,
    context: Option<Near<'_>>,
    name: &str,
    word: Option<&str>,
) -> Option<Type> {
    let first = context.and_then(|near| space.at(near.address));
    let number = first.map(|m| m.number);
    let others = space.modules().iter();
    let others = others.filter(|m| Some(m.number) != number);
    let mut all = first.into_iter().chain(others);
    // The words of a base type may be in any order.
    let usual =
        builtin(name).and_then(|ty| Some((ty.plain_name()?.to_owned(), ty.kind(), ty.size())));
    all.find_map(
        |Mapped {
             module, number: of, ..
         }| {
            let near = context.filter(|_| Some(*of) == number);
            let found = in_module(module, name, word, near);
            found.or_else(|| {
                let (usual, kind, size) = usual.as_ref()?;
                let spellings = spellings(usual);
                let mut found = spellings
                    .iter()
                    .filter_map(|s| in_module(module, s, None, near));
                found.find(|ty| ty.kind() == *kind && ty.size() == *size)
            })
        },
    )
}

/// Returns the names that compilers use for the base type `usual`.
fn spellings(usual: &str) -> Vec<String> {
    let mut all = vec![usual.to_owned()];
    let swapped = match usual {
        "short" => "short int",
        "unsigned short" => "short unsigned int",
        "long" => "long int",
        "unsigned long" => "long unsigned int",
        "long long" => "long long int",
        "unsigned long long" => "long long unsigned int",
        "_Bool" => "bool",
        "bool" => "_Bool",
        _ => return all,
    };
    all.push(swapped.to_owned());
    all
}

fn in_module(
    module: &Arc<Module>,
    name: &str,
    word: Option<&str>,
    near: Option<Near<'_>>,
) -> Option<Type> {
    let wanted = |kind| match word {
        Some(_) => matches!(kind, EntryKind::Tagged | EntryKind::Declared),
        None => !matches!(
            kind,
            EntryKind::Variable
                | EntryKind::DeclaredVariable
                | EntryKind::Inlined
                | EntryKind::Enumerator
        ),
    };
    let own = near.and_then(|near| best_of_unit(module, name, wanted, near));
    let ty = own.or_else(|| best(module, name, wanted))?.definition();
    is_a(word, ty.kind()).then_some(ty)
}

/// Returns whether the word before a type's name, such as `struct`, goes with its kind.
fn is_a(word: Option<&str>, kind: TypeKind) -> bool {
    match word {
        Some("enum") => kind == TypeKind::Enum,
        Some("union") => kind == TypeKind::Union,
        Some("struct" | "class") => matches!(kind, TypeKind::Struct | TypeKind::Class),
        _ => true,
    }
}

/// Returns the type of the unit that the source refers to: in the innermost namespace around its function.
fn best_of_unit(
    module: &Arc<Module>,
    name: &str,
    wanted: impl Fn(EntryKind) -> bool,
    near: Near<'_>,
) -> Option<Type> {
    let unit = near.unit?;
    let candidates = module.types().index().candidates(name);
    let own = candidates.iter().filter(|entry| {
        let is_own = entry.id.index == unit && entry.id.home == Home::Info;
        is_own && entry.kind != EntryKind::Declared && wanted(entry.kind)
    });
    let own: Vec<&Entry> = own.take(MAX_CANDIDATES).collect();
    if own.is_empty() {
        return None;
    }
    let imported = (near.imported)(name);
    let mut found: Vec<(Rank, EntryKind, String, Type)> = own
        .into_iter()
        .filter_map(|entry| {
            let ty = Type::at(module, entry.id);
            let full = ty.own_name()?;
            let rank = text::matches(name, &full);
            let rank = rank.or_else(|| reach(&imported, &full).map(|_| Rank::Whole))?;
            Some((rank, entry.kind, full, ty))
        })
        .collect();
    if found.len() > 1 {
        let function = (near.function)();
        found.sort_by_key(|(rank, kind, full, _)| {
            let scope = full.strip_suffix(name).unwrap_or(full);
            let is_around = function.starts_with(scope);
            let shared = if is_around { scope.len() } else { 0 };
            let reach = reach(&imported, full);
            let is_imported = reach.is_some_and(|reach| !is_around || reach > shared);
            let shared = std::cmp::Reverse(shared.max(reach.unwrap_or(0)));
            (
                !is_around && !is_imported,
                shared,
                is_imported,
                *rank,
                *kind,
            )
        });
    }
    found.into_iter().next().map(|(.., ty)| ty)
}

fn best(module: &Arc<Module>, name: &str, wanted: impl Fn(EntryKind) -> bool) -> Option<Type> {
    let candidates = module.types().index().candidates(name);
    let mut best: Option<((Rank, EntryKind), Type)> = None;
    for entry in candidates
        .iter()
        .filter(|e| wanted(e.kind))
        .take(MAX_CANDIDATES)
    {
        let ty = Type::at(module, entry.id);
        // This also works in a type unit, where only the declaration is in its scope.
        let Some(full) = ty.own_name() else {
            continue;
        };
        let Some(rank) = text::matches(name, &full) else {
            continue;
        };
        let key = (rank, entry.kind);
        if key == (Rank::Whole, EntryKind::Tagged) {
            return Some(ty);
        }
        if best.as_ref().is_none_or(|(found, _)| key < *found) {
            best = Some((key, ty));
        }
    }
    best.map(|(_, ty)| ty)
}

/// Returns the definition of a declared type: the one of the same name in the same module.
pub(super) fn definition(ty: &Type) -> Option<Type> {
    let module = ty.module()?;
    let name = ty.own_name()?;
    let candidates = module.types().index().candidates(&name);
    let defined = candidates.iter().filter(|e| e.kind == EntryKind::Tagged);
    defined.take(MAX_CANDIDATES).find_map(|entry| {
        let found = Type::at(module, entry.id);
        let same = found.own_name().is_some_and(|n| text::same_text(&n, &name));
        (same && !found.is_declaration()).then_some(found)
    })
}
