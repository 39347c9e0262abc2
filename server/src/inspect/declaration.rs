//! Declarations of types, with the members of structures and where they lie: the text of `ptype`.

use debuginfo::types::{Language, Member, MemberOffset, Role, Type, TypeKind};

/// The maximum depth of pointers and arrays to follow.
const MAX_STEPS: usize = 32;
/// The maximum depth of unnamed structures in each other.
const MAX_NESTING: usize = 16;

/// A line, and what `--offsets` writes before it.
struct Line {
    note: String,
    text: String,
}

/// Writes a type without aliases, with the contents of the structure in it. `is_placed`: with offsets, sizes and holes in
/// bytes, as `ptype/o` of gdb.
#[must_use]
pub fn declaration(ty: &Type, is_placed: bool) -> Vec<String> {
    let lines = Writer { is_placed }.whole(ty);
    if !is_placed {
        return lines.into_iter().map(|line| line.text).collect();
    }
    let width = lines.iter().map(|line| line.note.len()).max().unwrap_or(0);
    let written = |line: Line| format!("{:width$}  {}", line.note, line.text);
    lines.into_iter().map(written).collect()
}

struct Writer {
    is_placed: bool,
}

impl Writer {
    fn whole(&self, ty: &Type) -> Vec<Line> {
        let whole = ty.without_aliases().name();
        let inner = innermost(&ty.strip());
        let Some(inside) = self.inside(&inner, 0, 0) else {
            return vec![plain(whole)];
        };
        let (before, behind) = around(&whole, &inner.name());
        let mut lines = vec![Line {
            note: "/* offset | size */".to_owned(),
            text: format!("{before}{}", heading(&inner)),
        }];
        lines.extend(inside.into_iter().map(indented));
        let size = inner.size().filter(|_| self.is_placed);
        let total = size.map(|size| plain(format!("    /* total size: {size} bytes */")));
        lines.extend(total);
        lines.push(plain(format!("}}{behind}")));
        lines
    }

    /// Writes the contents of a structure or enumeration that begins `base` bytes into the outermost one; `None` for other
    /// types and for a type that is only declared.
    fn inside(&self, ty: &Type, base: u64, depth: usize) -> Option<Vec<Line>> {
        match ty.kind() {
            TypeKind::Enum => {
                let enumerators = ty.enumerators().iter();
                let line =
                    |e: &debuginfo::types::Enumerator| plain(format!("{} = {},", e.name, e.value));
                Some(enumerators.map(line).collect())
            }
            TypeKind::Struct | TypeKind::Class | TypeKind::Union if !ty.is_declaration() => {
                Some(self.members(ty, base, depth))
            }
            _ => None,
        }
    }

    fn members(&self, ty: &Type, base: u64, depth: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut end = 0;
        for member in ty.members() {
            if is_base(&member) || member.artificial {
                end = end.max(bits_of(&member).map_or(0, |(_, end)| end));
                continue;
            }
            let place = bits_of(&member);
            if let Some((from, to)) = place.filter(|_| ty.kind() != TypeKind::Union) {
                if let Some(hole) = hole(end, from).filter(|_| self.is_placed) {
                    lines.push(plain(hole));
                }
                end = end.max(to);
            }
            lines.extend(self.member(&member, ty.language(), base, depth));
        }
        for variant in ty.variants().into_iter().flat_map(|variants| variants.list) {
            let name = variant.name.unwrap_or_default();
            let fields = variant.member.ty.strip().members();
            let fields: Vec<String> = fields
                .iter()
                .map(|field| one_line(field, Language::Rust))
                .collect();
            lines.push(plain(match fields.is_empty() {
                true => format!("{name},"),
                false => format!("{name} {{ {} }},", fields.join(" ").trim_end_matches(',')),
            }));
        }
        let is_padded = self.is_placed && ty.kind() != TypeKind::Union && ty.variants().is_none();
        if let (true, Some(size)) = (is_padded, ty.size())
            && let Some(hole) = hole(end, size * 8)
        {
            lines.push(plain(hole.replace("hole", "padding")));
        }
        lines
    }

    /// Writes a member; an unnamed structure in it with its own members.
    fn member(&self, member: &Member, language: Language, base: u64, depth: usize) -> Vec<Line> {
        let note = self.note(member, base);
        let inner = innermost(&member.ty.strip());
        let is_unnamed = inner.own_name().is_none() && depth < MAX_NESTING;
        let at = base + bits_of(member).map_or(0, |(from, _)| from / 8);
        let inside = (is_unnamed && language != Language::Rust)
            .then(|| self.inside(&inner, at, depth + 1))
            .flatten();
        let text = one_line(member, language);
        let folded = text.split_once("{...}");
        match (inside, folded) {
            (Some(inside), Some((before, behind))) => {
                let first = Line {
                    note,
                    text: format!("{before}{{"),
                };
                let last = plain(format!("}}{behind}"));
                let inside = inside.into_iter().map(indented);
                [first].into_iter().chain(inside).chain([last]).collect()
            }
            _ => vec![Line { note, text }],
        }
    }

    /// The offset of a member in the outermost structure, in bytes and, for a bit field, bits; and its size.
    fn note(&self, member: &Member, base: u64) -> String {
        let Some((from, to)) = bits_of(member).filter(|_| self.is_placed) else {
            return String::new();
        };
        let at = base + from / 8;
        match &member.bits {
            Some(_) => format!("/* {:>4}:{:>2} | {:>2} bits */", at, from % 8, to - from),
            None => format!("/* {at:>6} | {:>4} */", (to - from) / 8),
        }
    }
}

/// Splits a type's name at the name of the structure in it. Pointer and array signs are after it in C, before it in Rust;
/// qualifiers are words before it.
fn around<'w>(whole: &'w str, name: &str) -> (&'w str, &'w str) {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let parts = whole.match_indices(name);
    let mut parts = parts.map(|(at, _)| (&whole[..at], &whole[at + name.len()..]));
    let found = parts
        .find(|(before, behind)| !before.ends_with(is_letter) && !behind.starts_with(is_letter));
    found.unwrap_or((whole, ""))
}

fn plain(text: String) -> Line {
    Line {
        note: String::new(),
        text,
    }
}

fn indented(line: Line) -> Line {
    Line {
        text: format!("    {}", line.text),
        ..line
    }
}

/// The first bit of a member in its structure, and the one after its last; `None` if that is not fixed.
fn bits_of(member: &Member) -> Option<(u64, u64)> {
    if let Some(bits) = &member.bits {
        return Some((bits.offset, bits.offset + bits.size));
    }
    match member.offset {
        MemberOffset::Bytes(at) => Some((at * 8, (at + member.ty.size().unwrap_or(0)) * 8)),
        _ => None,
    }
}

/// Names the unused bits between two members.
fn hole(end: u64, next: u64) -> Option<String> {
    let bits = next.checked_sub(end).filter(|bits| *bits > 0)?;
    Some(match (bits / 8, bits % 8) {
        (bytes, 0) => format!("/* {bytes}-byte hole */"),
        (0, bits) => format!("/* {bits}-bit hole */"),
        (bytes, bits) => format!("/* {bytes}-byte {bits}-bit hole */"),
    })
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
    let name = name.strip_suffix(" {...}").unwrap_or(&name);
    let word = match ty.kind() {
        TypeKind::Class => "class",
        TypeKind::Union => "union",
        TypeKind::Enum => "enum",
        _ if ty.language() == Language::Rust && ty.variants().is_some() => "enum",
        _ => "struct",
    };
    // In C the word is part of the name, and an unnamed type has nothing else.
    let is_told = name == word || name.starts_with(&format!("{word} "));
    let name = match is_told {
        true => name.to_owned(),
        false => format!("{word} {name}"),
    };
    match bases.is_empty() {
        true => format!("{name} {{"),
        false => format!("{name} : {} {{", bases.join(", ")),
    }
}

fn is_base(member: &Member) -> bool {
    matches!(member.role, Role::Base | Role::VirtualBase)
}

fn one_line(member: &Member, language: Language) -> String {
    let name = member.name.clone().unwrap_or_default();
    if language == Language::Rust {
        return format!("{name}: {},", member.ty.name());
    }
    let word = match member.role {
        Role::Static => "static ",
        _ => "",
    };
    let bits = member.bits.map(|bits| format!(" : {}", bits.size));
    let declared = member.ty.declared(&name);
    format!("{word}{declared}{};", bits.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_and_qualifiers_are_around_the_name() {
        for (whole, name, parts) in [
            ("const struct s *[2]", "struct s", ("const ", " *[2]")),
            ("const t *", "t", ("const ", " *")),
            ("const c", "c", ("const ", "")),
            ("*mut t", "t", ("*mut ", "")),
            ("volatile e", "e", ("volatile ", "")),
            ("&[Row; 4]", "Row", ("&[", "; 4]")),
        ] {
            assert_eq!(around(whole, name), parts, "{whole}");
        }
    }

    #[test]
    fn holes_are_told_in_bytes_and_bits() {
        for (end, next, text) in [
            (8, 32, Some("/* 3-byte hole */")),
            (3, 8, Some("/* 5-bit hole */")),
            (3, 32, Some("/* 3-byte 5-bit hole */")),
            (32, 32, None),
            (40, 32, None),
        ] {
            assert_eq!(hole(end, next).as_deref(), text);
        }
    }
}
