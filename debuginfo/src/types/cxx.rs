//! Decides whether a C++ class is passed by reference: non-trivial copying or destruction (Itanium C++ ABI, 3.1.2.3).
//!
//! DWARF 5 says so (`DW_AT_calling_convention`). For older versions the members and special member functions tell.

use gimli::constants as dw;
use gimli::{AttributeValue, DwVirtuality};

use super::Types;
use super::shape::Shape;
use crate::dies::Die;

impl<'a> Types<'_, '_, 'a> {
    pub(super) fn is_passed_by_reference(&self, class: &Die<'a>) -> bool {
        let mut visits = super::MAX_VISITS;
        self.is_non_trivial(class, 0, &mut visits)
    }

    fn is_non_trivial(&self, class: &Die<'a>, depth: u32, visits: &mut u32) -> bool {
        match self.session.attr(class, dw::DW_AT_calling_convention) {
            Some(AttributeValue::CallingConvention(dw::DW_CC_pass_by_reference)) => return true,
            Some(AttributeValue::CallingConvention(dw::DW_CC_pass_by_value)) => return false,
            _ => {}
        }
        if depth > 32 || *visits == 0 {
            return false;
        }
        *visits -= 1;
        self.has_virtual_base(class)
            || self.has_vtable(class)
            || self.has_non_trivial_function(class)
            || self.has_non_trivial_part(class, depth, visits)
    }

    fn has_virtual_base(&self, class: &Die<'a>) -> bool {
        let bases = self.session.children(class, &[dw::DW_TAG_inheritance]);
        bases.iter().any(|base| {
            let value = self.session.attr(base, dw::DW_AT_virtuality);
            matches!(value, Some(AttributeValue::Virtuality(v)) if v != DwVirtuality(0))
        })
    }

    /// A class with virtual functions has a constructor that sets the table's address.
    fn has_vtable(&self, class: &Die<'a>) -> bool {
        let members = self.session.children(class, &[dw::DW_TAG_member]);
        members.iter().any(|member| {
            let name = self.session.string(member, dw::DW_AT_name);
            name.is_some_and(|n| n.slice().starts_with(b"_vptr"))
        })
    }

    fn has_non_trivial_part(&self, class: &Die<'a>, depth: u32, visits: &mut u32) -> bool {
        self.members(class).iter().any(|member| {
            let mut of = member.of.clone();
            while let Shape::Array { element, .. } = self.shape(&of) {
                if *visits == 0 {
                    return false;
                }
                *visits -= 1;
                of = element;
            }
            match self.shape(&of) {
                Shape::Record(part) => self.is_non_trivial(&part, depth + 1, visits),
                _ => false,
            }
        })
    }

    /// A user-provided destructor, copy or move constructor; or all copy and move constructors deleted.
    fn has_non_trivial_function(&self, class: &Die<'a>) -> bool {
        let name = self.session.string(class, dw::DW_AT_name);
        let full_name = name.as_ref().map_or(&b""[..], |n| n.slice());
        // Constructors of a class template's instance are named without the template arguments.
        let name = full_name.split(|b| *b == b'<').next().unwrap_or_default();
        let mut deleted = 0;
        let mut usable = 0;
        for function in self.session.children(class, &[dw::DW_TAG_subprogram]) {
            let Some(called) = self.session.string(&function, dw::DW_AT_name) else {
                continue;
            };
            let is_destructor = called.slice().starts_with(b"~");
            let is_copy = || called.slice() == name && self.takes_own_class(&function, class);
            if !is_destructor && !is_copy() {
                continue;
            }
            if self.session.flag(&function, dw::DW_AT_deleted) {
                // A deleted destructor makes the class unusable by value either way.
                deleted += usize::from(!is_destructor);
                continue;
            }
            if self.is_user_provided(&function) {
                return true;
            }
            usable += usize::from(!is_destructor);
        }
        deleted > 0 && usable == 0
    }

    /// Tells whether a constructor's first argument is a reference to its own class.
    fn takes_own_class(&self, function: &Die<'a>, class: &Die<'a>) -> bool {
        let params = self
            .session
            .children(function, &[dw::DW_TAG_formal_parameter]);
        let explicit: Vec<_> = params
            .iter()
            .filter(|p| !self.session.flag(p, dw::DW_AT_artificial))
            .collect();
        let [only] = explicit.as_slice() else {
            return false;
        };
        let Some(reference) = self.session.follow(only, dw::DW_AT_type) else {
            return false;
        };
        let is_reference = matches!(
            self.session.tag(&reference),
            Some(dw::DW_TAG_reference_type | dw::DW_TAG_rvalue_reference_type)
        );
        let target = self.session.follow(&reference, dw::DW_AT_type);
        is_reference
            && target.is_some_and(
                |t| matches!(self.shape(&t), Shape::Record(r) if r.key() == class.key()),
            )
    }

    fn is_user_provided(&self, function: &Die<'a>) -> bool {
        // DW_DEFAULTED_in_class; one defaulted outside of the class counts as the user's.
        let in_class = self.session.unsigned(function, dw::DW_AT_defaulted) == Some(1);
        !in_class && !self.session.flag(function, dw::DW_AT_artificial)
    }
}
