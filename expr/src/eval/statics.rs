//! Static members of classes, and variables that source files have for themselves.

use crate::ast::{Expr, Span};
use crate::eval::compile::names;
use crate::eval::{Context, Evaluator, with_evaluator};
use debuginfo::Diagnostic;
use debuginfo::scope::{Variable, classes_at, scope_at, static_member};
use debuginfo::types::{
    AmbiguousMember, Language, MemberOffset, Role, Type, TypeKind, find_member,
};

/// Lists the variables in an expression that other source files than the frame's have for themselves, each with its file.
#[must_use]
pub fn private_elsewhere(expr: &Expr, context: &Context<'_>) -> Vec<(String, String)> {
    with_evaluator(context, |evaluator| {
        let names = names(expr).into_iter();
        let found = names.filter_map(|name| {
            let local = evaluator.local(&name, Span::default(), evaluator.site);
            let is_outside = matches!(local, Ok(None));
            let variable = is_outside.then(|| evaluator.global(&name)).flatten()?;
            let file = variable.foreign_file(evaluator.site)?;
            Some((name, file))
        });
        found.collect()
    })
}

impl Evaluator<'_> {
    /// Finds the static member `name` of the classes that the frame's function is declared in, or of their bases.
    pub(super) fn static_around(&self, name: &str) -> Result<Option<Variable>, AmbiguousMember> {
        for class in classes_at(self.site) {
            if let Some(found) = static_in(&class, name)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns whether a name without a path is only the last part of the name of a static member, and the frame's function
    /// is not in that class.
    pub(super) fn is_of_other_class(&self, variable: &Variable, name: &str) -> bool {
        let Some((class, _)) = variable.name.rsplit_once("::") else {
            return false;
        };
        let is_around = || scope_at(self.site).starts_with(&format!("{class}::"));
        !name.contains("::") && variable.is_of_class() && !is_around()
    }

    /// Finds a static member that is named with its class, or with one that is derived from it.
    pub(super) fn static_of_class(&self, name: &str) -> Result<Option<Variable>, AmbiguousMember> {
        match self.class_and_member(name) {
            Some((class, member)) => static_in(&class, member),
            None => Ok(None),
        }
    }

    /// Splits `Class::member` of C++.
    fn class_and_member<'n>(&self, name: &'n str) -> Option<(Type, &'n str)> {
        let (class, member) = name
            .rsplit_once("::")
            .filter(|(class, _)| !class.is_empty())?;
        let named = self.find_type(class)?;
        // Without its arguments, a template stands for no class in particular.
        let has_arguments = |name: &str| name.ends_with('>');
        if named.plain_name().is_some_and(has_arguments) != has_arguments(class) {
            return None;
        }
        let class = named.strip();
        let is_class = matches!(
            class.kind(),
            TypeKind::Struct | TypeKind::Class | TypeKind::Union
        );
        (is_class && class.language() == Language::Cpp).then_some((class, member))
    }

    /// Returns a diagnostic for a name that means several members of the class that the frame's function is declared in.
    pub(super) fn ambiguous_member(&self, name: &str) -> Option<Diagnostic> {
        if self.has_variable(name) {
            return None;
        }
        let what = self.static_around(name).err()?;
        Some(Diagnostic::new(what.to_string()))
    }

    /// Returns a diagnostic for a name that means several members of a class, or one that only its objects have.
    pub(super) fn misused_member(&self, name: &str) -> Option<Diagnostic> {
        if let Some(what) = self.ambiguous_member(name) {
            return Some(what);
        }
        let (class, member) = self.class_and_member(name)?;
        match find_member(&class, member) {
            Err(what) => Some(Diagnostic::new(what.to_string())),
            Ok(Some(found)) if found.member.role == Role::Member => {
                let message = format!("{name} has a value only in an object");
                let hint = format!("write OBJECT.{name}");
                Some(Diagnostic::new(message).with_hint(hint))
            }
            Ok(_) => None,
        }
    }
}

/// Finds the static member `name` of a class or of its bases.
fn static_in(class: &Type, name: &str) -> Result<Option<Variable>, AmbiguousMember> {
    if class.language() != Language::Cpp {
        return Ok(None);
    }
    let found = find_member(class, name)?;
    let found = found.filter(|found| matches!(found.member.offset, MemberOffset::Static(_)));
    Ok(found.and_then(|found| static_member(&found.member, &found.class)))
}
