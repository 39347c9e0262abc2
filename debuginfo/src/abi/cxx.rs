//! Decides whether a C++ class is passed by reference because copying or destroying it is non-trivial (Itanium C++ ABI,
//! 3.1.2.3).
//!
//! DWARF 5 states it (`DW_AT_calling_convention`). For older versions, the members and special member functions tell.

use gimli::AttributeValue;
use gimli::constants as dw;

use super::Types;
use super::form::{Form, fields, members};
use crate::dies::Die;
use crate::types::{DieId, Field, Node, Role};

/// How objects of a class are passed. The answer for a class is the greatest of the answers for its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClassPassing {
    ByValue,
    /// The debug information does not distinguish the compiler's functions from the programmer's.
    Unclear,
    ByReference,
}

use ClassPassing::{ByReference, ByValue, Unclear};

impl<'a> Types<'_, '_, 'a> {
    pub(super) fn class_passing(&self, class: &Node) -> ClassPassing {
        let mut visits = super::MAX_VISITS;
        self.passing_of(class, 0, &mut visits)
    }

    fn passing_of(&self, class: &Node, depth: u32, visits: &mut u32) -> ClassPassing {
        let Some(die) = class.id.and_then(|id| self.die(id)) else {
            return Unclear;
        };
        match self.session.attr(&die, dw::DW_AT_calling_convention) {
            Some(AttributeValue::CallingConvention(dw::DW_CC_pass_by_reference)) => {
                return ByReference;
            }
            Some(AttributeValue::CallingConvention(dw::DW_CC_pass_by_value)) => return ByValue,
            _ => {}
        }
        if depth > 32 || *visits == 0 {
            return Unclear;
        }
        *visits -= 1;
        if fields(class).iter().any(is_virtual) {
            return ByReference;
        }
        match self.by_functions(class, &die) {
            ByReference => ByReference,
            other => other.max(self.by_parts(class, depth, visits)),
        }
    }

    fn by_parts(&self, class: &Node, depth: u32, visits: &mut u32) -> ClassPassing {
        let of_part = |member: &Field| {
            let mut form = self.form(&self.linked(&member.ty));
            while let Form::Array { element, .. } = &form {
                if *visits == 0 {
                    return Unclear;
                }
                *visits -= 1;
                form = self.form(element);
            }
            match form {
                Form::Record(part) => self.passing_of(&part, depth + 1, visits),
                _ => ByValue,
            }
        };
        let parts = members(fields(class)).map(of_part);
        parts.max().unwrap_or(ByValue)
    }

    /// Checks for a user-provided destructor, copy or move constructor, or for deleted copy and move constructors only.
    fn by_functions(&self, class: &Node, die: &Die<'a>) -> ClassPassing {
        // Constructors of a class template instance are named without the template arguments.
        let name = class.name.as_deref().and_then(|n| n.split('<').next());
        let name = name.unwrap_or_default().as_bytes();
        let mut deleted = 0;
        let mut usable = 0;
        let mut unclear = false;
        let (mut copies, mut copies_more) = (false, false);
        for function in self.session.children(die, &[dw::DW_TAG_subprogram]) {
            let Some(called) = self.session.string(&function, dw::DW_AT_name) else {
                continue;
            };
            let is_destructor = called.slice().starts_with(b"~");
            if !is_destructor {
                let is_constructor = called.slice() == name;
                match is_constructor.then(|| self.arguments_behind_own_class(&function, class)) {
                    Some(Some(0)) => copies = true,
                    Some(Some(_)) => {
                        copies_more |= !self.session.flag(&function, dw::DW_AT_deleted);
                        continue;
                    }
                    _ => continue,
                }
            }
            if self.session.flag(&function, dw::DW_AT_deleted) {
                // A class with a deleted destructor cannot be passed by value in either case.
                deleted += usize::from(!is_destructor);
                continue;
            }
            match self.written_by(&function) {
                Author::Programmer => return ByReference,
                Author::Unknown => unclear = true,
                Author::Compiler => {}
            }
            usable += usize::from(!is_destructor);
        }
        // A constructor with further parameters is a copy constructor if all of them have default arguments, which
        // DWARF does not record. If the class also has a copy constructor without further parameters, they have no
        // defaults: overload resolution could not choose between the two.
        unclear |= copies_more && !copies;
        match deleted > 0 && usable == 0 {
            true => ByReference,
            false if unclear => Unclear,
            false => ByValue,
        }
    }

    /// Returns how many parameters follow the first one of a constructor if the first is a reference to its own class,
    /// else `None`.
    fn arguments_behind_own_class(&self, function: &Die<'a>, class: &Node) -> Option<usize> {
        let params = self
            .session
            .children(function, &[dw::DW_TAG_formal_parameter]);
        let explicit: Vec<_> = params
            .iter()
            .filter(|p| !self.session.flag(p, dw::DW_AT_artificial))
            .collect();
        let (first, more) = explicit.split_first()?;
        let reference = self.session.follow(first, dw::DW_AT_type)?;
        let is_reference = matches!(
            self.session.tag(&reference)?,
            dw::DW_TAG_reference_type | dw::DW_TAG_rvalue_reference_type
        );
        let target = self.session.follow(&reference, dw::DW_AT_type)?;
        let target = self.form(&self.node(DieId::of(&target)));
        let is_own = matches!(target, Form::Record(record) if record.id == class.id);
        (is_reference && is_own).then_some(more.len())
    }

    fn written_by(&self, function: &Die<'a>) -> Author {
        if self.session.flag(function, dw::DW_AT_artificial) {
            return Author::Compiler;
        }
        match self.session.unsigned(function, dw::DW_AT_defaulted) {
            // DW_DEFAULTED_in_class. A function defaulted outside the class counts as the programmer's.
            Some(1) => Author::Compiler,
            Some(_) => Author::Programmer,
            None if self.states_defaulted(function) => Author::Programmer,
            None => Author::Unknown,
        }
    }

    /// Returns whether the unit would state that a function is defaulted or deleted.
    fn states_defaulted(&self, function: &Die<'a>) -> bool {
        if function.unit.header.version() >= 5 {
            return true;
        }
        let producer = |unit: &Die<'a>| {
            let producer = self.session.string(unit, dw::DW_AT_producer)?;
            Some(is_explicit(&producer.to_string_lossy()))
        };
        // Type units and dwz's units name no producer. They come from the producer of the unit that uses them.
        let own = self.session.root(function.home, function.index).ok();
        let own = own.and_then(|root| producer(&root));
        let using = || self.session.root(self.unit.0, self.unit.1).ok();
        own.or_else(|| producer(&using()?)).unwrap_or(false)
    }
}

/// Returns whether a field exists for virtual functions or bases. The constructor of a class with virtual functions sets
/// the address of the vtable.
fn is_virtual(field: &Field) -> bool {
    let is_vtable = || field.name.as_ref().is_some_and(|n| n.starts_with("_vptr"));
    match field.role {
        Role::VirtualBase => true,
        Role::Member => is_vtable(),
        Role::Base | Role::Static => false,
    }
}

/// Who wrote a member function.
enum Author {
    Programmer,
    Compiler,
    Unknown,
}

/// Returns whether a compiler marks defaulted and deleted functions before DWARF 5. gcc does since version 7, unless
/// `-gstrict-dwarf` restricts it to the older standards.
fn is_explicit(producer: &str) -> bool {
    let mut words = producer.split(' ');
    let is_gcc = words.next() == Some("GNU") && words.next().is_some_and(|w| w.starts_with("C++"));
    let version = words
        .next()
        .and_then(|v| v.split('.').next()?.parse::<u32>().ok());
    is_gcc && version.is_some_and(|v| v >= 7) && !producer.contains("-gstrict-dwarf")
}
