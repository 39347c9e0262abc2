//! How well an argument fits a parameter of C++: the ranks of implicit conversions ([over.ics.rank] of the C++ standard).
//!
//! The conversions that constructors and operators of classes make have a rank, too, but nothing says which exist.

use std::cmp::Ordering;

use crate::ast::{Expr, ExprKind, Literal, Suffix, UnaryOp};
use crate::eval::classes::derives;
use debuginfo::location::ValuePlace;
use debuginfo::types::{Language, Type, TypeKind, builtin};
use debuginfo::value::Value;

/// Pointers to pointers that are compared, at most.
const MAX_DEPTH: usize = 16;

/// An argument, as overload resolution sees it.
#[derive(Debug, Clone)]
pub(super) struct Given {
    /// Its type, without references.
    pub ty: Type,
    is_lvalue: bool,
    /// It is `nullptr`, `NULL` or 0.
    is_null: bool,
    /// It is a string literal.
    is_text: bool,
    /// Its type was computed: `long` and `long long` are not told apart.
    is_computed: bool,
}

/// The ranks of conversions, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// None at all, or only one of qualifiers, of an array to a pointer, or of an object to a reference to it.
    Exact,
    /// Of a small integer to `int`, or of `float` to `double`.
    Promoted,
    /// Between other numbers, between pointers, or to a base class.
    Converted,
    /// By a constructor or an operator of a class, if it has one.
    OfClass,
    /// The parameter is `...`.
    Ellipsis,
}

/// How an argument becomes a parameter.
#[derive(Debug, Clone)]
pub(super) struct Way {
    /// Its rank.
    pub rank: Rank,
    /// Among conversions of pointers: 1 to `void*`, 2 to `bool`, which are worse than others.
    detail: u8,
    /// The base class that is reached.
    base: Option<Type>,
    /// The parameter refers to the argument.
    is_reference: bool,
    /// Adds `const` to what is referred or pointed to.
    adds_const: bool,
}

impl Given {
    /// Returns an argument with its value.
    pub(super) fn new(expr: &Expr, value: &Value) -> Given {
        let ty = value.ty.strip();
        let referred = ty.target().filter(|_| is_reference(&ty));
        let is_result = matches!(expr.kind, ExprKind::Call { .. });
        let is_place = !is_result && !matches!(value.place, ValuePlace::Implicit(_));
        Given {
            is_lvalue: !is_moved(expr) && (referred.is_some() || is_place),
            ty: referred.unwrap_or_else(|| value.ty.clone()),
            is_null: is_null(expr),
            is_text: matches!(expr.kind, ExprKind::Literal(Literal::Text(_))),
            is_computed: value.ty.module().is_none() && is_computed(expr),
        }
    }

    /// Returns whether a written conversion to a type is possible.
    pub(super) fn can_become(&self, ty: &Type) -> bool {
        values::can_cast(&self.ty, ty, self.is_lvalue)
    }
}

/// Returns whether an argument is written as one that the function may take over: `(T &&)x`.
fn is_moved(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Cast { to, .. } if to.text.ends_with("&&"))
}

fn is_null(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Literal(Literal::Null | Literal::Integer { value: 0, .. })
    )
}

fn is_computed(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(Literal::Integer { suffix, .. }) => *suffix != Suffix::None,
        ExprKind::Unary(op, _) => !matches!(op, UnaryOp::Deref | UnaryOp::AddressOf),
        ExprKind::Binary(..) | ExprKind::Conditional { .. } => true,
        _ => false,
    }
}

impl Way {
    fn new(rank: Rank) -> Way {
        Way {
            rank,
            detail: 0,
            base: None,
            is_reference: false,
            adds_const: false,
        }
    }

    /// Returns how an argument becomes a part of `...`.
    pub(super) fn ellipsis() -> Way {
        Way::new(Rank::Ellipsis)
    }

    /// Returns how an object, which may be `const`, becomes the first parameter of a method.
    pub(super) fn of_object(is_const: bool, parameter: &Type) -> Option<Way> {
        let target = parameter.strip().target();
        let wants_const = target.is_some_and(|target| target.is_const());
        let way = Way {
            adds_const: wants_const && !is_const,
            is_reference: true,
            ..Way::new(Rank::Exact)
        };
        (wants_const || !is_const).then_some(way)
    }

    /// Compares two ways for one argument: the better one is less.
    pub(super) fn compare(&self, other: &Way) -> Ordering {
        let ranks = self.rank.cmp(&other.rank);
        ranks.then_with(|| match (self.rank, &self.base, &other.base) {
            (Rank::Converted, Some(own), Some(other)) if !is_same(own, other) => nearer(own, other),
            (Rank::Exact | Rank::Converted, ..) => {
                let details = self.detail.cmp(&other.detail);
                details.then_with(|| self.by_qualifiers(other))
            }
            _ => Ordering::Equal,
        })
    }

    /// Only references are compared with references, and pointers with pointers.
    fn by_qualifiers(&self, other: &Way) -> Ordering {
        match self.is_reference == other.is_reference {
            true => self.adds_const.cmp(&other.adds_const),
            false => Ordering::Equal,
        }
    }
}

/// Compares two base classes of one class: a class is nearer than its own bases.
fn nearer(one: &Type, other: &Type) -> Ordering {
    match (derives(one, other), derives(other, one)) {
        (true, _) => Ordering::Less,
        (_, true) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

/// Returns how an argument becomes a parameter of this type; `None` if it does not.
pub(super) fn way(given: &Given, parameter: &Type) -> Option<Way> {
    let to = parameter.strip();
    match to.target().filter(|_| is_reference(&to)) {
        Some(target) => bound(given, &target, to.kind() == TypeKind::RvalueReference),
        None => by_value(given, &to),
    }
}

/// Returns whether an argument is a number and its parameter a pointer, or the other way round, or one of a scoped enumeration and
/// its parameter a number, and C++ converts it only where that is written. Between pointers the address stays what it is, and
/// so does the number for an enumeration: those are passed.
pub(super) fn is_misfit(given: &Given, parameter: &Type) -> bool {
    let (from, to) = (given.ty.strip(), parameter.strip().kind());
    let is_number = |kind: TypeKind| is_arithmetic(kind) || kind == TypeKind::Enum;
    let is_pointer = |kind: TypeKind| matches!(kind, TypeKind::Pointer | TypeKind::MemberPointer);
    let is_address =
        is_pointer(from.kind()) || matches!(from.kind(), TypeKind::Array | TypeKind::Function);
    let is_other = is_number(from.kind()) && is_pointer(to)
        || is_address && is_number(to)
        || from.is_scoped_enum() && is_arithmetic(to);
    is_other && way(given, parameter).is_none()
}

/// Returns how a reference to `target` is bound to an argument.
fn bound(given: &Given, target: &Type, is_rvalue: bool) -> Option<Way> {
    let (is_const, is_derived) = (target.is_const(), derives(&given.ty, target));
    if is_same(&given.ty, target) || is_derived {
        let fits = match (is_rvalue, is_const) {
            (true, _) => !given.is_lvalue,
            (false, true) => true,
            (false, false) => given.is_lvalue && !given.ty.is_const(),
        };
        let way = Way {
            base: is_derived.then(|| target.strip()),
            is_reference: true,
            adds_const: is_const && !given.ty.is_const(),
            ..Way::new(if is_derived {
                Rank::Converted
            } else {
                Rank::Exact
            })
        };
        return fits.then_some(way);
    }
    // It refers to a temporary object.
    let way = (is_const || is_rvalue).then(|| by_value(given, &target.strip()))?;
    way.map(|way| Way {
        is_reference: true,
        ..way
    })
}

/// Returns how an argument is copied to a parameter of the type `to`, which is stripped.
fn by_value(given: &Given, to: &Type) -> Option<Way> {
    let from = given.ty.strip();
    let is_pointer = matches!(
        from.kind(),
        TypeKind::Pointer | TypeKind::Array | TypeKind::Function | TypeKind::MemberPointer
    );
    if is_same(&from, to) && from.kind() != TypeKind::Pointer {
        return Some(Way::new(Rank::Exact));
    }
    match (from.kind(), to.kind()) {
        _ if derives(&from, to) => Some(Way {
            base: Some(to.clone()),
            ..Way::new(Rank::Converted)
        }),
        (kind, other) if is_class(kind) || is_class(other) => Some(Way::new(Rank::OfClass)),
        (_, TypeKind::Pointer) => pointed(given, &from, to),
        (_, TypeKind::Unspecified) if given.is_null => Some(Way::new(Rank::Exact)),
        (_, TypeKind::MemberPointer) if given.is_null => Some(Way::new(Rank::Converted)),
        (_, TypeKind::Bool) if is_pointer => Some(Way {
            detail: 2,
            ..Way::new(Rank::Converted)
        }),
        (TypeKind::Enum, kind) if is_arithmetic(kind) => of_enumerator(&from, to),
        (one, other) if is_arithmetic(one) && is_arithmetic(other) => {
            Some(Way::new(between_numbers(given, &from, to)))
        }
        _ => None,
    }
}

/// Returns how an argument becomes a pointer.
fn pointed(given: &Given, from: &Type, to: &Type) -> Option<Way> {
    if given.is_null {
        return Some(Way::new(Rank::Converted));
    }
    let target = to.target()?;
    let source = match from.kind() {
        TypeKind::Pointer => from.target()?,
        TypeKind::Array => from.element()?,
        TypeKind::Function => from.clone(),
        _ => return None,
    };
    let is_array = from.kind() == TypeKind::Array;
    let is_const = source.is_const() || given.is_text || is_array && given.ty.is_const();
    let (is_equal, wants_const) = (is_same(&source, &target), target.is_const());
    let way = Way {
        adds_const: wants_const && !is_const,
        ..Way::new(Rank::Converted)
    };
    if is_const && !wants_const {
        // What compilers still allow: `char *` for a string literal.
        return (given.is_text && is_equal).then_some(Way { detail: 1, ..way });
    }
    let is_object = source.strip().kind() != TypeKind::Function;
    match target.strip().kind() {
        _ if is_equal => Some(Way {
            rank: Rank::Exact,
            ..way
        }),
        TypeKind::Void if is_object => Some(Way { detail: 1, ..way }),
        _ => derives(&source, &target).then(|| Way {
            base: Some(target.strip()),
            ..way
        }),
    }
}

/// Returns how a value of an enumeration becomes a number. Compilers promote it to `int` or to `unsigned int`.
fn of_enumerator(from: &Type, to: &Type) -> Option<Way> {
    if from.is_scoped_enum() {
        return None;
    }
    let behind = from.target().map(|target| base_name(&target.strip()));
    let (name, size) = (base_name(to), from.size());
    let is_promoted = match name.as_str() {
        "int" => size.is_some_and(|size| size <= 4),
        "unsigned int" => size == Some(4),
        _ => false,
    };
    Some(Way::new(match is_promoted || behind == Some(name) {
        true => Rank::Promoted,
        false => Rank::Converted,
    }))
}

fn between_numbers(given: &Given, from: &Type, to: &Type) -> Rank {
    let (own, wanted) = (base_name(from), base_name(to));
    if given.is_computed && own.replace("long", "long long") == wanted {
        return Rank::Exact;
    }
    match promoted(&own, from) == Some(wanted.as_str()) {
        true => Rank::Promoted,
        false => Rank::Converted,
    }
}

/// Returns the type that a number is promoted to, if it is.
fn promoted(name: &str, ty: &Type) -> Option<&'static str> {
    match name {
        "float" => Some("double"),
        "char32_t" => Some("unsigned int"),
        "wchar_t" => Some("int"),
        _ => (ty.kind() != TypeKind::Float && ty.size()? < 4).then_some("int"),
    }
}

/// Returns whether two types are the same one, outer qualifiers aside. Each module describes a type for itself.
fn is_same(one: &Type, other: &Type) -> bool {
    same_to(one, other, MAX_DEPTH)
}

fn same_to(one: &Type, other: &Type, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else {
        return false;
    };
    let (one, other) = (one.strip(), other.strip());
    let are_targets_same = || match (one.target(), other.target()) {
        (Some(a), Some(b)) => a.is_const() == b.is_const() && same_to(&a, &b, depth),
        (a, b) => a.is_none() && b.is_none(),
    };
    match (one.kind(), other.kind()) {
        (a, b) if is_class(a) && is_class(b) => has_same_name(&one, &other),
        (TypeKind::Enum, TypeKind::Enum) => has_same_name(&one, &other),
        (a, b) if is_arithmetic(a) && is_arithmetic(b) => base_name(&one) == base_name(&other),
        (a, b) if a != b => false,
        (TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference, _) => {
            are_targets_same()
        }
        (TypeKind::Array, _) => match (one.element(), other.element()) {
            (Some(a), Some(b)) => one.size() == other.size() && same_to(&a, &b, depth),
            _ => false,
        },
        _ => one.name() == other.name(),
    }
}

fn has_same_name(one: &Type, other: &Type) -> bool {
    let name = one.own_name();
    one == other || name.is_some() && name == other.own_name()
}

/// Returns whether a stripped type is a reference.
pub(super) fn is_reference(ty: &Type) -> bool {
    matches!(ty.kind(), TypeKind::Reference | TypeKind::RvalueReference)
}

fn is_class(kind: TypeKind) -> bool {
    matches!(kind, TypeKind::Struct | TypeKind::Class | TypeKind::Union)
}

fn is_arithmetic(kind: TypeKind) -> bool {
    matches!(
        kind,
        TypeKind::Integer { .. } | TypeKind::Bool | TypeKind::Char { .. } | TypeKind::Float
    )
}

/// Returns C's usual name of a number type: compilers write the words of `unsigned long` in any order.
fn base_name(ty: &Type) -> String {
    let own = ty.plain_name().unwrap_or_default();
    let Some(known) = builtin(own) else {
        return own.to_owned();
    };
    let name = match known.language() {
        Language::Rust => name_in_c(own),
        _ => known.plain_name().unwrap_or_default(),
    };
    name.to_owned()
}

/// Computed numbers have the names of Rust's types.
fn name_in_c(name: &str) -> &str {
    match name {
        "i8" => "signed char",
        "u8" => "unsigned char",
        "i16" => "short",
        "u16" => "unsigned short",
        "i32" => "int",
        "u32" => "unsigned int",
        "i64" | "isize" => "long",
        "u64" | "usize" => "unsigned long",
        "i128" => "__int128",
        "u128" => "unsigned __int128",
        "f32" => "float",
        "f64" => "double",
        other => other,
    }
}
