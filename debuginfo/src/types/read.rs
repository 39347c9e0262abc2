//! Reads one DIE as a node of the type graph.

use std::sync::Arc;

use gimli::constants as dw;
use gimli::{AttributeValue, DwAt, DwAte, DwTag, UnitOffset};

use super::members::Role;
use super::node::{
    Argument, Branch, DieId, Field, Keyword, Link, Node, Offset, Qualifier, Shape, VariantPart,
};
use super::parts::{bit_range, constant_offset, enumerators, storage_size};
use super::{Language, Type, TypeKind};
use crate::dies::{Die, DieReader, Home, Value};
use crate::entries::Entries;

/// Children read of one DIE, at most.
const MAX_CHILDREN: usize = 1 << 16;
/// Nesting of variants that is read, at most.
const MAX_NESTED_VARIANTS: usize = 8;

/// Calls `work` with the DIE `id`. If its unit is a skeleton, `id` is in the split unit. Returns `None` if there is no
/// such unit.
pub(crate) fn with_session<T>(
    entries: &Entries,
    id: DieId,
    work: impl for<'t, 'a> FnOnce(&DieReader<'t, 'a>, &Die<'a>) -> T,
) -> Option<T> {
    if id.home != Home::Info {
        return at_entry(&entries.units()?.session(), id, work);
    }
    let found = entries.in_unit(id.index, |session, own| {
        session.stand_for(id.index, own);
        at_entry(session, id, work)
    });
    found.flatten()
}

fn at_entry<'t, 'a, T>(
    session: &DieReader<'t, 'a>,
    id: DieId,
    work: impl FnOnce(&DieReader<'t, 'a>, &Die<'a>) -> T,
) -> Option<T> {
    let unit = session.unit(id.home, id.index).ok()?;
    session.begin(&unit);
    let die = Die {
        home: id.home,
        index: id.index,
        unit,
        offset: UnitOffset(id.offset),
    };
    Some(work(session, &die))
}

impl DieId {
    pub(crate) fn of(die: &Die<'_>) -> DieId {
        DieId {
            home: die.home,
            index: die.index,
            offset: die.offset.0,
        }
    }
}

/// Returns the node of the DIE `id`. If the DIE cannot be read, its type is unspecified.
pub(super) fn node(entries: &Entries, id: DieId) -> Node {
    with_session(entries, id, node_of).unwrap_or_else(|| damaged(id))
}

/// Returns the node of `die`, or of its definition in a type unit if it names one.
pub(crate) fn node_of<'a>(session: &DieReader<'_, 'a>, die: &Die<'a>) -> Node {
    let definition = session.follow(die, dw::DW_AT_signature);
    let read = definition.as_ref().unwrap_or(die);
    let reader = Reader {
        session,
        language: language_of(session, read),
    };
    reader.node(read).unwrap_or_else(|| damaged(DieId::of(die)))
}

fn damaged(id: DieId) -> Node {
    let mut node = Node::made(Shape::Unspecified, Some("<damaged type>".to_owned()), None);
    node.id = Some(id);
    node
}

pub(crate) fn language_of<'a>(session: &DieReader<'_, 'a>, die: &Die<'a>) -> Language {
    let Some(language) = session.language(die) else {
        return Language::Other;
    };
    match language {
        dw::DW_LANG_C
        | dw::DW_LANG_C89
        | dw::DW_LANG_C99
        | dw::DW_LANG_C11
        | dw::DW_LANG_C17
        | dw::DW_LANG_Mips_Assembler => Language::C,
        dw::DW_LANG_C_plus_plus
        | dw::DW_LANG_C_plus_plus_03
        | dw::DW_LANG_C_plus_plus_11
        | dw::DW_LANG_C_plus_plus_14
        | dw::DW_LANG_C_plus_plus_17
        | dw::DW_LANG_C_plus_plus_20 => Language::Cpp,
        dw::DW_LANG_Rust => Language::Rust,
        dw::DW_LANG_Fortran77
        | dw::DW_LANG_Fortran90
        | dw::DW_LANG_Fortran95
        | dw::DW_LANG_Fortran03
        | dw::DW_LANG_Fortran08
        | dw::DW_LANG_Fortran18 => Language::Fortran,
        dw::DW_LANG_Ada83 | dw::DW_LANG_Ada95 | dw::DW_LANG_Ada2005 | dw::DW_LANG_Ada2012 => {
            Language::Ada
        }
        _ => Language::Other,
    }
}

/// Reads a constant attribute as a number of the given signedness.
pub(crate) fn constant(value: Value<'_>, signed: bool) -> Option<i128> {
    if let AttributeValue::Block(block) = &value {
        let bytes = <[u8; 16]>::try_from(block.slice()).ok()?;
        return Some(i128::from_le_bytes(bytes));
    }
    match (signed, &value) {
        // Shorter forms are unsigned: gcc selects them by the number alone and writes negative ones in a signed form.
        (true, AttributeValue::Data8(number)) => Some(i128::from(*number as i64)),
        _ => {
            let unsigned = value.udata_value().map(i128::from);
            unsigned.or_else(|| value.sdata_value().map(i128::from))
        }
    }
}

pub(super) struct Reader<'s, 't, 'a> {
    pub(super) session: &'s DieReader<'t, 'a>,
    pub(super) language: Language,
}

impl<'a> Reader<'_, '_, 'a> {
    fn node(&self, die: &Die<'a>) -> Option<Node> {
        let session = self.session;
        let tag = session.tag(die)?;
        let name = session.string(die, dw::DW_AT_name);
        // It has the size of a pointer, which DWARF does not state.
        let is_null = tag == dw::DW_TAG_unspecified_type
            && name.is_some_and(|n| n.slice() == b"decltype(nullptr)");
        let size = session.unsigned(die, dw::DW_AT_byte_size);
        // The bytes of a biased type are not a value that can be shown.
        let size = size.filter(|_| !self.is_biased(die));
        Some(Node {
            id: Some(DieId::of(die)),
            language: self.language,
            name: name.map(|n| n.to_string_lossy().into_owned()),
            size: size.or(is_null.then_some(8)),
            alignment: session.unsigned(die, dw::DW_AT_alignment),
            encoding: self.encoding(die),
            declaration: session.flag(die, dw::DW_AT_declaration),
            unread: self.unread(die, tag),
            shape: self.shape(die, tag),
        })
    }

    fn link(&self, die: &Die<'a>, name: DwAt) -> Link {
        match self.session.follow(die, name) {
            Some(target) => Link::Die(DieId::of(&target)),
            None => Link::Void,
        }
    }

    pub(super) fn target(&self, die: &Die<'a>) -> Link {
        self.link(die, dw::DW_AT_type)
    }

    fn shape(&self, die: &Die<'a>, tag: DwTag) -> Shape {
        let target = || self.target(die);
        match tag {
            dw::DW_TAG_base_type if self.unread(die, tag).is_some() => {
                Shape::Base(TypeKind::Unspecified)
            }
            dw::DW_TAG_base_type => self
                .number_type(die)
                .unwrap_or_else(|| Shape::Base(self.base(die))),
            dw::DW_TAG_pointer_type => Shape::Pointer(target()),
            dw::DW_TAG_reference_type | dw::DW_TAG_rvalue_reference_type => Shape::Reference {
                target: target(),
                rvalue: tag == dw::DW_TAG_rvalue_reference_type,
            },
            dw::DW_TAG_ptr_to_member_type => Shape::MemberPointer {
                target: target(),
                class: self.link(die, dw::DW_AT_containing_type),
            },
            dw::DW_TAG_typedef
            | dw::DW_TAG_template_alias
            | dw::DW_TAG_immutable_type
            | dw::DW_TAG_packed_type
            | dw::DW_TAG_shared_type => Shape::Typedef(target()),
            dw::DW_TAG_subrange_type => self.subrange(die),
            dw::DW_TAG_const_type => Shape::Qualified(Qualifier::Const, target()),
            dw::DW_TAG_volatile_type => Shape::Qualified(Qualifier::Volatile, target()),
            dw::DW_TAG_restrict_type => Shape::Qualified(Qualifier::Restrict, target()),
            dw::DW_TAG_atomic_type => Shape::Qualified(Qualifier::Atomic, target()),
            dw::DW_TAG_structure_type | dw::DW_TAG_interface_type => {
                self.aggregate(die, Keyword::Struct)
            }
            dw::DW_TAG_class_type => self.aggregate(die, Keyword::Class),
            dw::DW_TAG_union_type => self.aggregate(die, Keyword::Union),
            dw::DW_TAG_array_type => self.array(die),
            dw::DW_TAG_string_type => self.text(die),
            dw::DW_TAG_enumeration_type => self.enumeration(die),
            dw::DW_TAG_subroutine_type | dw::DW_TAG_subprogram => self.function(die),
            _ => Shape::Unspecified,
        }
    }

    /// Reads a subrange: a type without some of its values, which may need fewer bytes and no sign.
    fn subrange(&self, die: &Die<'a>) -> Shape {
        if self.is_biased(die) {
            return Shape::Unspecified;
        }
        let is_shorter = self.session.unsigned(die, dw::DW_AT_byte_size).is_some();
        match is_shorter && self.is_natural(die) {
            true => Shape::Base(TypeKind::Integer { signed: false }),
            false => match self.target(die) {
                Link::Void => Shape::Unspecified,
                of => Shape::Typedef(of),
            },
        }
    }

    /// Returns whether a value of an Ada type is stored as the distance from its first number.
    fn is_biased(&self, die: &Die<'a>) -> bool {
        let bias = match self.language {
            Language::Ada => self.session.attr(die, dw::DW_AT_GNU_bias),
            _ => None,
        };
        bias.is_some_and(|bias| constant(bias, true) != Some(0))
    }

    /// Returns whether `die` is a range of a signed integer that begins at 0 or later.
    fn is_natural(&self, die: &Die<'a>) -> bool {
        let session = self.session;
        let lower = session.attr(die, dw::DW_AT_lower_bound);
        let is_from_zero = lower
            .and_then(|l| constant(l, true))
            .is_some_and(|l| l >= 0);
        let mut of = session.follow(die, dw::DW_AT_type);
        for _ in 0..super::MAX_STEPS {
            let Some(at) = of.filter(|_| is_from_zero) else {
                return false;
            };
            if let Some(encoding) = session.attr(&at, dw::DW_AT_encoding) {
                return encoding == AttributeValue::Encoding(dw::DW_ATE_signed);
            }
            of = session.follow(&at, dw::DW_AT_type);
        }
        false
    }

    /// Returns the type of a value with fewer bits than its type. If it is never negative, it has no sign bit.
    pub(super) fn packed(&self, die: &Die<'a>) -> Link {
        let session = self.session;
        let mut of = session.follow(die, dw::DW_AT_type);
        for _ in 0..super::MAX_STEPS {
            let Some(at) = of else { break };
            match session.tag(&at) {
                Some(dw::DW_TAG_subrange_type) if self.is_natural(&at) => {
                    let size = storage_size(self.session, die);
                    let shape = Shape::Base(TypeKind::Integer { signed: false });
                    let mut node = Node::made(shape, self.name(&at), size);
                    node.language = self.language;
                    return Link::Made(Box::new(Type::new(None, Arc::new(node))));
                }
                Some(dw::DW_TAG_typedef | dw::DW_TAG_const_type) => {
                    of = session.follow(&at, dw::DW_AT_type);
                }
                _ => break,
            }
        }
        self.target(die)
    }

    fn base(&self, die: &Die<'a>) -> TypeKind {
        let Some(encoding) = self.encoding(die) else {
            return TypeKind::Unspecified;
        };
        let signed_char = || TypeKind::Char { signed: true };
        match encoding {
            // g++ describes these characters of C++ as integers.
            dw::DW_ATE_signed if self.is_cpp(die, b"wchar_t") => signed_char(),
            dw::DW_ATE_unsigned if self.is_cpp(die, b"char8_t") => TypeKind::Char { signed: false },
            // Some versions of Rust describe one-byte integers as characters. The names distinguish them.
            dw::DW_ATE_signed_char if !self.is_rust_byte(die) => signed_char(),
            dw::DW_ATE_unsigned_char if !self.is_rust_byte(die) => TypeKind::Char { signed: false },
            dw::DW_ATE_UTF | dw::DW_ATE_ASCII | dw::DW_ATE_UCS => TypeKind::Char { signed: false },
            dw::DW_ATE_signed | dw::DW_ATE_signed_char => TypeKind::Integer { signed: true },
            dw::DW_ATE_unsigned | dw::DW_ATE_unsigned_char | dw::DW_ATE_address => {
                TypeKind::Integer { signed: false }
            }
            dw::DW_ATE_boolean => TypeKind::Bool,
            _ => TypeKind::Unspecified,
        }
    }

    pub(super) fn encoding(&self, die: &Die<'a>) -> Option<DwAte> {
        match self.session.attr(die, dw::DW_AT_encoding)? {
            AttributeValue::Encoding(encoding) => Some(encoding),
            _ => None,
        }
    }

    /// Returns whether it is the type of C++ with this name.
    fn is_cpp(&self, die: &Die<'a>, called: &[u8]) -> bool {
        let name = self.session.string(die, dw::DW_AT_name);
        self.language == Language::Cpp && name.is_some_and(|n| n.slice() == called)
    }

    fn is_rust_byte(&self, die: &Die<'a>) -> bool {
        let name = self.session.string(die, dw::DW_AT_name);
        self.language == Language::Rust
            && name.is_some_and(|n| matches!(n.slice(), b"u8" | b"i8" | b"usize" | b"isize"))
    }

    fn aggregate(&self, die: &Die<'a>, keyword: Keyword) -> Shape {
        let (mut fields, mut arguments, mut variants) = (Vec::new(), Vec::new(), None);
        for (tag, child) in self.children(die) {
            match tag {
                dw::DW_TAG_member | dw::DW_TAG_inheritance | dw::DW_TAG_variable => {
                    fields.extend(self.field(&child, tag));
                }
                dw::DW_TAG_template_type_parameter | dw::DW_TAG_template_value_parameter => {
                    arguments.push(self.argument(&child));
                }
                dw::DW_TAG_GNU_template_parameter_pack => {
                    let pack = self.children(&child);
                    arguments.extend(pack.iter().map(|(_, child)| self.argument(child)));
                }
                dw::DW_TAG_variant_part => variants = Some(self.variant_part(&child)),
                _ => {}
            }
        }
        Shape::Aggregate {
            keyword,
            fields,
            variants,
            arguments,
        }
    }

    fn children(&self, die: &Die<'a>) -> Vec<(DwTag, Die<'a>)> {
        let mut found = Vec::new();
        self.session.each_child(die, |tag, offset| {
            found.push((tag, die.sibling(offset)));
            found.len() < MAX_CHILDREN
        });
        found
    }

    fn name(&self, die: &Die<'a>) -> Option<String> {
        let name = self.session.string(die, dw::DW_AT_name)?;
        Some(name.to_string_lossy().into_owned())
    }

    fn field(&self, die: &Die<'a>, tag: DwTag) -> Option<Field> {
        let session = self.session;
        let name = self.name(die);
        let is_static = tag == dw::DW_TAG_variable
            || session.flag(die, dw::DW_AT_external) && tag == dw::DW_TAG_member;
        if is_static && name.is_none() {
            return None;
        }
        let is_virtual = matches!(
            session.attr(die, dw::DW_AT_virtuality),
            Some(AttributeValue::Virtuality(v)) if v != dw::DW_VIRTUALITY_none
        );
        let location = session.attr(die, dw::DW_AT_data_member_location);
        let offset = match (is_static, location) {
            (true, _) => Offset::Static(DieId::of(die)),
            (false, None) => Offset::Bytes(0),
            (false, Some(location)) => match constant_offset(&location) {
                Some(bytes) if !is_virtual => Offset::Bytes(bytes),
                _ => Offset::Computed(DieId::of(die)),
            },
        };
        let at = match offset {
            Offset::Bytes(bytes) => Some(bytes),
            _ => None,
        };
        let bits = bit_range(session, die, at);
        Some(Field {
            name,
            ty: match bits {
                Some(_) => self.packed(die),
                None => self.target(die),
            },
            bits,
            offset,
            role: match (is_static, tag == dw::DW_TAG_inheritance, is_virtual) {
                (true, ..) => Role::Static,
                (_, true, true) => Role::VirtualBase,
                (_, true, false) => Role::Base,
                _ => Role::Member,
            },
            artificial: session.flag(die, dw::DW_AT_artificial),
        })
    }

    fn argument(&self, die: &Die<'a>) -> Argument {
        let value = self.session.attr(die, dw::DW_AT_const_value);
        Argument {
            name: self.name(die),
            ty: self.target(die),
            value: value.and_then(|v| constant(v, true)),
        }
    }

    fn variant_part(&self, die: &Die<'a>) -> VariantPart {
        self.variants(die, MAX_NESTED_VARIANTS)
    }

    fn variants(&self, die: &Die<'a>, depth: usize) -> VariantPart {
        let discriminant = self.session.follow(die, dw::DW_AT_discr);
        let field = |die: &Die<'a>| self.field(die, dw::DW_TAG_member);
        let mut branches = Vec::new();
        for (_, child) in self
            .children(die)
            .iter()
            .filter(|(tag, _)| *tag == dw::DW_TAG_variant)
        {
            let members = self.session.children(child, &[dw::DW_TAG_member]);
            let inner = self.session.children(child, &[dw::DW_TAG_variant_part]);
            let inner = inner.first().filter(|_| depth > 0);
            branches.push(Branch {
                values: self.discriminants(child),
                fields: members.iter().filter_map(field).collect(),
                inner: inner.map(|die| Box::new(self.variants(die, depth - 1))),
            });
        }
        VariantPart {
            discriminant: discriminant.as_ref().and_then(field),
            branches,
        }
    }

    fn discriminants(&self, die: &Die<'a>) -> Vec<(u128, u128)> {
        if let Some(value) = self.session.attr(die, dw::DW_AT_discr_value) {
            return constant(value, false)
                .map(|value| (value as u128, value as u128))
                .into_iter()
                .collect();
        }
        let Some(AttributeValue::Block(list)) = self.session.attr(die, dw::DW_AT_discr_list) else {
            return Vec::new();
        };
        ranges(list).unwrap_or_default()
    }

    fn enumeration(&self, die: &Die<'a>) -> Shape {
        let signed = self.is_signed(die);
        let scoped = self.session.flag(die, dw::DW_AT_enum_class);
        Shape::Enum {
            target: self.target(die),
            enumerators: enumerators(self.session, die, signed),
            scoped,
        }
    }

    /// Returns whether an enumeration's values are signed, according to the underlying integer or to its values.
    fn is_signed(&self, die: &Die<'a>) -> bool {
        let mut ty = self.session.follow(die, dw::DW_AT_type);
        for _ in 0..super::MAX_STEPS {
            let Some(at) = ty else { break };
            if let Some(AttributeValue::Encoding(e)) = self.session.attr(&at, dw::DW_AT_encoding) {
                return matches!(e, dw::DW_ATE_signed | dw::DW_ATE_signed_char);
            }
            ty = self.session.follow(&at, dw::DW_AT_type);
        }
        let all = self.session.children(die, &[dw::DW_TAG_enumerator]);
        all.iter().any(|die| {
            let value = self.session.attr(die, dw::DW_AT_const_value);
            matches!(value, Some(AttributeValue::Sdata(value)) if value < 0)
        })
    }

    /// Returns the return type of a function. A DIE with code leaves it to its declaration.
    fn result(&self, die: &Die<'a>) -> Link {
        let own = self.target(die);
        let declared = [dw::DW_AT_abstract_origin, dw::DW_AT_specification];
        match own {
            Link::Void => declared
                .into_iter()
                .find_map(|name| self.session.follow(die, name))
                .filter(|declaration| declaration.offset != die.offset)
                .map_or(Link::Void, |declaration| self.target(&declaration)),
            known => known,
        }
    }

    fn function(&self, die: &Die<'a>) -> Shape {
        let mut parameters = Vec::new();
        let mut variadic = false;
        for (tag, child) in self.children(die) {
            match tag {
                dw::DW_TAG_formal_parameter => parameters.push(self.result(&child)),
                dw::DW_TAG_GNU_formal_parameter_pack => {
                    let pack = self.children(&child);
                    parameters.extend(pack.iter().map(|(_, one)| self.result(one)));
                }
                dw::DW_TAG_unspecified_parameters => variadic = true,
                _ => {}
            }
        }
        Shape::Function {
            result: self.result(die),
            parameters,
            variadic,
        }
    }
}

/// Reads the labels and ranges of `DW_AT_discr_list`.
fn ranges(mut list: crate::dwarf::Slice<'_>) -> Option<Vec<(u128, u128)>> {
    use gimli::Reader as _;
    let mut found = Vec::new();
    while !list.is_empty() {
        let kind = list.read_u8().ok()?;
        let low = u128::from(list.read_uleb128().ok()?);
        let high = match dw::DwDsc(kind) {
            dw::DW_DSC_range => u128::from(list.read_uleb128().ok()?),
            _ => low,
        };
        found.push((low, high));
    }
    Some(found)
}
