//! Names of types in source notation, and the namespaces around a DIE.

use gimli::UnitOffset;
use gimli::constants as dw;

use super::arrays::{Bound, Dimension};
use super::node::{DieId, Keyword, Link, Qualifier, Shape};
use super::read::with_session;
use super::text::ANONYMOUS;
use super::{Count, KnownTypes, Language, MAX_STEPS, Type};
use crate::dies::{Die, DieReader, Home};
use crate::entries::Entries;
use crate::nesting::ScopeTable;

/// Parameters shown of one function type, at most.
const MAX_PARAMETERS: usize = 64;
/// Longest name, in bytes. Parts inside a longer one are omitted.
const MAX_BYTES: usize = 1 << 14;

/// The qualifiers, in the order in which they are written.
const QUALIFIERS: [(&str, Qualifier); 4] = [
    ("const", Qualifier::Const),
    ("volatile", Qualifier::Volatile),
    ("restrict", Qualifier::Restrict),
    ("_Atomic", Qualifier::Atomic),
];

/// The tags that form scopes of types and variables.
const SCOPES: [gimli::DwTag; 5] = [
    dw::DW_TAG_namespace,
    dw::DW_TAG_structure_type,
    dw::DW_TAG_class_type,
    dw::DW_TAG_union_type,
    dw::DW_TAG_enumeration_type,
];

pub(super) fn scopes(entries: &Entries, home: Home, index: usize) -> ScopeTable {
    table_of(entries, home, index, &SCOPES)
}

pub(super) fn functions(entries: &Entries, home: Home, index: usize) -> ScopeTable {
    table_of(entries, home, index, &[dw::DW_TAG_subprogram])
}

fn table_of(entries: &Entries, home: Home, index: usize, tags: &[gimli::DwTag]) -> ScopeTable {
    let id = DieId {
        home,
        index,
        offset: 0,
    };
    let table = with_session(entries, id, |session, die| {
        ScopeTable::read(session, die, tags)
    });
    table.unwrap_or_default()
}

/// Returns `plain`, qualified with the names of the namespaces and classes around the DIE `id`.
pub(crate) fn qualified(known: &KnownTypes, id: DieId, plain: &str) -> String {
    let table = known.scopes(id.home, id.index);
    let near = table.near(id.offset);
    let around = near.filter(|scope| scope.holds(id.offset));
    let around: Vec<usize> = around.map(|scope| scope.start).take(MAX_STEPS).collect();
    if around.is_empty() {
        return plain.to_owned();
    }
    let named = with_session(&known.entries, id, |session, die| {
        let mut path = Vec::new();
        for start in around.iter().rev() {
            let entry = Die {
                offset: UnitOffset(*start),
                ..die.clone()
            };
            let name = name_of(session, &entry);
            path.push(name.unwrap_or_else(|| ANONYMOUS.to_owned()));
        }
        path.push(plain.to_owned());
        path.join("::")
    });
    named.unwrap_or_else(|| plain.to_owned())
}

fn name_of<'a>(session: &DieReader<'_, 'a>, die: &Die<'a>) -> Option<String> {
    let name = session.string(die, dw::DW_AT_name)?;
    Some(name.to_string_lossy().into_owned())
}

pub(super) fn own_name(ty: &Type) -> Option<String> {
    let node = ty.node();
    let plain = node.name.as_deref()?;
    match (ty.module(), node.id, node.language, &node.shape) {
        // Names in C have no scope. The names of Rust's pointers and base types already include theirs.
        (_, _, Language::C, _)
        | (_, _, _, Shape::Base(_) | Shape::Float { .. } | Shape::Pointer(_)) => {
            Some(plain.to_owned())
        }
        (Some(module), Some(id), ..) => {
            // In a type unit, the definition is separate from the declaration, which is in its scope.
            let declared = with_session(module.entries(), id, |session, die| {
                session.chain(die).last().map(DieId::of)
            });
            Some(qualified(
                module.types(),
                declared.flatten().unwrap_or(id),
                plain,
            ))
        }
        _ => Some(plain.to_owned()),
    }
}

pub(super) fn name(ty: &Type) -> String {
    declare(ty, String::new(), MAX_STEPS)
}

pub(super) fn declared(ty: &Type, variable: &str) -> String {
    declare(ty, variable.to_owned(), MAX_STEPS)
}

/// Writes a declaration of `inner`, a declarator such as `*` or `[4]`, with type `ty`.
fn declare(ty: &Type, inner: String, steps: usize) -> String {
    let Some(steps) = steps.checked_sub(1).filter(|_| inner.len() < MAX_BYTES) else {
        return format!("...{inner}");
    };
    let target = || ty.target().unwrap_or_else(super::builtin::void);
    let node = ty.node();
    if let (Shape::Pointer(_) | Shape::Reference { .. }, Some(name)) = (&node.shape, &node.name) {
        return spaced(name, &inner);
    }
    match &node.shape {
        Shape::Void => spaced(
            if node.language == Language::Rust {
                "()"
            } else {
                "void"
            },
            &inner,
        ),
        Shape::Pointer(_) => declare(&target(), format!("*{inner}"), steps),
        Shape::Reference { rvalue, .. } => {
            let sign = if *rvalue { "&&" } else { "&" };
            declare(&target(), format!("{sign}{inner}"), steps)
        }
        Shape::MemberPointer { class, .. } => {
            let class = Type::linked(ty.module(), class);
            let class = declare(&class, String::new(), steps);
            declare(&target(), format!("{class}::*{inner}"), steps)
        }
        Shape::Qualified(..) => qualify(ty, inner, steps),
        Shape::Array {
            element,
            dimensions,
            ..
        } => {
            let element = Type::linked(ty.module(), element);
            declare_array(ty, &element, dimensions, inner, steps)
        }
        Shape::Function { variadic, .. } => {
            let declarator = with_parameters(ty, *variadic, inner, steps);
            declare(&target(), declarator, steps)
        }
        Shape::Aggregate { keyword, .. } => {
            let word = match keyword {
                Keyword::Struct => "struct",
                Keyword::Class => "class",
                Keyword::Union => "union",
            };
            spaced(&tagged(ty, word), &inner)
        }
        Shape::Enum { .. } => spaced(&tagged(ty, "enum"), &inner),
        Shape::Base(_)
        | Shape::Float { .. }
        | Shape::Fixed { .. }
        | Shape::Typedef(_)
        | Shape::Unspecified => spaced(
            &own_name(ty).unwrap_or_else(|| "<unnamed>".to_owned()),
            &inner,
        ),
    }
}

fn declare_array(
    ty: &Type,
    element: &Type,
    dimensions: &[Dimension],
    inner: String,
    steps: usize,
) -> String {
    let language = ty.node().language;
    if language == Language::Rust {
        let element = declare(element, String::new(), steps);
        let count = ty.count().map_or_else(|| "_".to_owned(), |c| c.to_string());
        return spaced(&format!("[{element}; {count}]"), &inner);
    }
    if ty.is_text() {
        return spaced(&text_name(ty), &inner);
    }
    if matches!(language, Language::Fortran | Language::Ada) {
        let element = declare(element, String::new(), steps);
        let bounds: Vec<String> = dimensions.iter().map(|d| bounds(language, d)).collect();
        let name = match language {
            Language::Ada => format!("array ({}) of {element}", bounds.join(", ")),
            _ => format!("{element} ({})", bounds.join(",")),
        };
        return spaced(&name, &inner);
    }
    let mut declarator = grouped(inner);
    for dimension in dimensions {
        match dimension.count {
            Count::Known(count) => declarator.push_str(&format!("[{count}]")),
            Count::Open => declarator.push_str("[]"),
            Count::Computed(_) => declarator.push_str("[variable length]"),
        }
    }
    declare(element, declarator, steps)
}

/// Returns whether an array is written as in C, with `[]` behind its name.
fn has_declarator(array: &Type) -> bool {
    let others = [Language::Rust, Language::Fortran, Language::Ada];
    !array.is_text() && !others.contains(&array.node().language)
}

/// Writes the declarator of a function: `inner` followed by the parameters.
fn with_parameters(ty: &Type, variadic: bool, inner: String, steps: usize) -> String {
    let parameters = ty.parameters();
    let shown = parameters.iter().take(MAX_PARAMETERS);
    let mut names: Vec<String> = shown.map(|p| declare(p, String::new(), steps)).collect();
    if variadic {
        names.push("...".to_owned());
    }
    if names.is_empty() && ty.node().language == Language::C {
        names.push("void".to_owned());
    }
    format!("{}({})", grouped(inner), names.join(", "))
}

/// Writes a Fortran string as in a declaration.
fn text_name(ty: &Type) -> String {
    match ty.count() {
        Some(count) => format!("character*{count}"),
        None => "character*(*)".to_owned(),
    }
}

/// Writes the first and the last index in the notation of the language.
fn bounds(language: Language, dimension: &Dimension) -> String {
    let lower = match dimension.lower {
        Bound::Known(lower) => Some(i128::from(lower)),
        Bound::Computed(_) => None,
    };
    let last = match (lower, &dimension.count) {
        (Some(lower), Count::Known(count)) => Some(lower + i128::from(*count) - 1),
        _ => None,
    };
    match (language, lower, last) {
        (Language::Ada, Some(lower), Some(last)) => format!("{lower} .. {last}"),
        (Language::Ada, ..) => "<>".to_owned(),
        (_, Some(1), Some(last)) => last.to_string(),
        (_, Some(lower), Some(last)) => format!("{lower}:{last}"),
        (_, Some(1), None) if matches!(dimension.count, Count::Open) => "*".to_owned(),
        _ => ":".to_owned(),
    }
}

/// Writes a qualified type, with its qualifiers in the order that is usual in C.
fn qualify(ty: &Type, inner: String, steps: usize) -> String {
    let (mut qualifiers, target) = qualifiers(ty);
    match &target.node().shape {
        // The pointer is constant, not its target.
        Shape::Pointer(_) if target.node().name.is_none() => {
            let words = words(&qualifiers);
            declare(&target, spaced(&format!(" {words}"), &inner), steps)
        }
        // Compilers qualify an array, its elements or both: in C that is one qualifier (C17, 6.7.3), of the elements.
        Shape::Array {
            element,
            dimensions,
            ..
        } if has_declarator(&target) => {
            let element = Type::linked(target.module(), element);
            let element = qualifiers.iter().fold(element, |element, qualifier| {
                let link = Link::Made(Box::new(element.clone()));
                element.made(Shape::Qualified(*qualifier, link), None)
            });
            declare_array(&target, &element, dimensions, inner, steps)
        }
        _ => {
            let declared = declare(&target, inner, steps);
            let stated: Vec<Qualifier> = declared.split(' ').map_while(qualifier).collect();
            qualifiers.retain(|one| !stated.contains(one));
            prefixed(&words(&qualifiers), declared)
        }
    }
}

/// Returns the qualifiers of a type, each once and in order, and the type without them.
fn qualifiers(ty: &Type) -> (Vec<Qualifier>, Type) {
    let (mut target, mut found) = (ty.clone(), Vec::new());
    for _ in 0..MAX_STEPS {
        let Shape::Qualified(qualifier, link) = &target.node().shape else {
            break;
        };
        found.push(*qualifier);
        target = Type::linked(target.module(), link);
    }
    let all = QUALIFIERS.iter().map(|(_, qualifier)| *qualifier);
    let found = all.filter(|qualifier| found.contains(qualifier)).collect();
    (found, target)
}

fn qualifier(word: &str) -> Option<Qualifier> {
    let mut all = QUALIFIERS.iter();
    let found = all.find(|(known, _)| *known == word)?;
    Some(found.1)
}

fn words(qualifiers: &[Qualifier]) -> String {
    let all = QUALIFIERS.iter();
    let stated = all.filter(|(_, qualifier)| qualifiers.contains(qualifier));
    let words: Vec<&str> = stated.map(|(word, _)| *word).collect();
    words.join(" ")
}

fn prefixed(words: &str, declared: String) -> String {
    match words.is_empty() {
        true => declared,
        false => format!("{words} {declared}"),
    }
}

fn tagged(ty: &Type, word: &str) -> String {
    match own_name(ty) {
        Some(name) if ty.language() == Language::C => format!("{word} {name}"),
        Some(name) => name,
        None => format!("{word} {{...}}"),
    }
}

/// Puts parentheses around a declarator that begins with a sign that binds less than `[]` and `()`.
fn grouped(inner: String) -> String {
    match inner.starts_with(['*', '&']) || inner.contains("::*") {
        true => format!("({inner})"),
        false => inner,
    }
}

fn spaced(name: &str, inner: &str) -> String {
    match inner.is_empty() {
        true => name.to_owned(),
        false => format!("{name} {inner}"),
    }
}
