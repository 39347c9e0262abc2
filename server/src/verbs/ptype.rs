//! `ptype`: the type of an expression, or a named type, with its members.

use debuginfo::types::{Language, Member, Role, Type, TypeKind};
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word};
use crate::inspect;
use crate::protocol::Failure;

/// The `ptype` verb.
pub struct Ptype;

/// The arguments of `ptype`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PtypeArgs {
    /// An expression, as for `print`, or the name of a type, as in a cast.
    pub of: String,
}

/// The reply of `ptype`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PtypeReply {
    /// The type's name.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its size in bytes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Its declaration, line by line.
    pub lines: Vec<String>,
}

/// The maximum depth of pointers and arrays to follow.
const MAX_STEPS: usize = 32;

impl Verb for Ptype {
    const NAME: &'static str = "ptype";
    const DOC: &'static str = "Show the type of an expression, or a type, with its members";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Expression;
    type Args = PtypeArgs;
    type Reply = PtypeReply;

    fn run(call: &Call<'_>, args: PtypeArgs) -> Result<PtypeReply, Failure> {
        call.look(1, |view| {
            let ty = inspect::type_of(view, &args.of)?;
            Ok(PtypeReply {
                type_name: ty.name(),
                size: ty.size(),
                lines: declaration(&ty),
            })
        })
    }
}

impl Command for Ptype {
    const WORDS: &'static [Word] = &[Word::new(
        "of",
        "EXPRESSION|TYPE",
        Form::Expression,
        "An expression, as for print, or a type: struct order, std::string",
    )];

    fn text(reply: &PtypeReply, _: &Self::Args) -> Text {
        let mut lines = reply.lines.iter();
        let first = lines.next().map(|line| format!("type = {line}"));
        Text::lines(first.into_iter().chain(lines.cloned()))
    }
}

/// Writes a type without aliases, with the contents of the structure in it.
fn declaration(ty: &Type) -> Vec<String> {
    let ty = ty.strip();
    let inner = innermost(&ty);
    let (name, whole) = (inner.name(), ty.name());
    // Pointer and array signs around the structure: after its name in C, before it in Rust.
    let (before, behind) = whole.split_once(&name).unwrap_or((&whole, ""));
    let Some(inside) = inside(&inner) else {
        return vec![whole];
    };
    let mut lines = vec![format!("{before}{}", heading(&inner))];
    lines.extend(inside.into_iter().map(|line| format!("    {line}")));
    lines.push(format!("}}{behind}"));
    lines
}

/// Follows pointers and arrays to the innermost type.
fn innermost(ty: &Type) -> Type {
    let mut ty = ty.clone();
    for _ in 0..MAX_STEPS {
        let next = match ty.kind() {
            TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference => ty.target(),
            TypeKind::Array => ty.element(),
            _ => None,
        };
        match next {
            Some(next) => ty = next.strip(),
            None => break,
        }
    }
    ty
}

fn heading(ty: &Type) -> String {
    let bases = ty.members().into_iter().filter(is_base);
    let bases: Vec<String> = bases.map(|base| base.ty.name()).collect();
    let name = ty.name();
    let word = match ty.kind() {
        TypeKind::Class => "class ",
        TypeKind::Union => "union ",
        TypeKind::Enum => "enum ",
        _ if ty.language() == Language::Rust && ty.variants().is_some() => "enum ",
        _ => "struct ",
    };
    // In C the word is part of the name.
    let word = if name.starts_with(word) { "" } else { word };
    match bases.is_empty() {
        true => format!("{word}{name} {{"),
        false => format!("{word}{name} : {} {{", bases.join(", ")),
    }
}

/// Writes the contents of a structure or enumeration; `None` for other types and for a type that is only declared.
fn inside(ty: &Type) -> Option<Vec<String>> {
    match ty.kind() {
        TypeKind::Enum => {
            let line = |e: &debuginfo::types::Enumerator| format!("{} = {},", e.name, e.value);
            Some(ty.enumerators().iter().map(line).collect())
        }
        TypeKind::Struct | TypeKind::Class | TypeKind::Union if !ty.is_declaration() => {
            let members = ty.members().into_iter();
            let own = members.filter(|member| !is_base(member) && !member.artificial);
            let mut lines: Vec<String> = own.map(|m| member(&m, ty.language())).collect();
            for variant in ty.variants().into_iter().flat_map(|variants| variants.list) {
                let name = variant.name.unwrap_or_default();
                let fields = variant.member.ty.strip().members();
                let fields: Vec<String> =
                    fields.iter().map(|m| member(m, Language::Rust)).collect();
                lines.push(match fields.is_empty() {
                    true => format!("{name},"),
                    false => format!("{name} {{ {} }},", fields.join(" ").trim_end_matches(',')),
                });
            }
            Some(lines)
        }
        _ => None,
    }
}

fn is_base(member: &Member) -> bool {
    matches!(member.role, Role::Base | Role::VirtualBase)
}

fn member(member: &Member, language: Language) -> String {
    let name = member.name.clone().unwrap_or_default();
    if language == Language::Rust {
        return format!("{name}: {},", member.ty.name());
    }
    let word = match member.role {
        Role::Static => "static ",
        _ => "",
    };
    let bits = member.bits.map(|bits| format!(" : {}", bits.size));
    let declared = declared(&member.ty.name(), &name);
    format!("{word}{declared}{};", bits.unwrap_or_default())
}

/// Writes a declaration. The name of an array or of a pointer to a function goes inside the type.
fn declared(ty: &str, name: &str) -> String {
    let at = ty.find("(*").map(|at| at + 2).or_else(|| ty.find(" ["));
    let (before, behind) = ty.split_at(at.unwrap_or(ty.len()));
    let space = match before.ends_with(['*', '&']) || name.is_empty() {
        true => "",
        false => " ",
    };
    format!("{before}{space}{name}{}", behind.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_where_c_has_them() {
        for (ty, name, text) in [
            ("int", "n", "int n"),
            ("const char *", "text", "const char *text"),
            ("char [16]", "name", "char name[16]"),
            ("int (*)(int)", "call", "int (*call)(int)"),
            ("struct pair", "", "struct pair"),
        ] {
            assert_eq!(declared(ty, name), text);
        }
    }
}
