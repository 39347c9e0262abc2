//! Resolves names, from the innermost scope outwards, and suggests similar names for unknown ones.

use crate::HIT_COUNT;
use crate::ast::{Expr, ExprKind, Span};
use crate::eval::operand::{number_value, pointer_value};
use crate::eval::{Answer, EvalError, Evaluator, Missing, base_type};
use crate::number::{IntKind, Number};
use debuginfo::location::FrameContext;
use debuginfo::scope::{
    Variable, enumerators, function_type, globals, has_enumerator, imported, is_in_file,
    language_at, local_enumerators, outer_template_value, scope_at, template_value, variable_at,
    variables_at,
};
use debuginfo::types::{Language, MemberOffset, Type, TypeKind, find_member};
use debuginfo::value::{Value, ValueError};
use debuginfo::{Certainty, Diagnostic, Mapped};

/// Names of the current object, in C++ and in Rust.
const OBJECTS: [&str; 2] = ["this", "self"];

impl Evaluator<'_> {
    pub(super) fn name(&self, name: &str, at: Span) -> Answer<Value> {
        self.name_at(name, at, self.site)
    }

    /// Like `name`, but reads a variable through `site`.
    pub(super) fn name_at(&self, name: &str, at: Span, site: &FrameContext<'_>) -> Answer<Value> {
        if let Some(local) = self.local(name, at, site)? {
            return Ok(local);
        }
        if let Some(enumerator) = self.local_enumerator(name) {
            return Ok(enumerator);
        }
        if let Some(variable) = self.global(name) {
            return Ok(variable.read(site));
        }
        if let Some(count) = self.hit_count(name) {
            return Ok(count);
        }
        if let Some(enumerator) = self.enumerator(name) {
            return Ok(enumerator);
        }
        if let Some(entry) = self.function(name) {
            return Ok(self.function_value(entry));
        }
        if self.find_type(name).is_some() {
            let error = EvalError::meaningless(at, format!("{name} is a type"));
            return Err(error.with_hint(format!("to convert to it, write ({name})(value)")));
        }
        let of_function = self.of_function(name, at);
        if !matches!(of_function, Ok(Some(_)))
            && let Some(what) = self.misused_member(name)
        {
            return Err(EvalError::missing(at, Missing::Name, what));
        }
        if let Some(found) = of_function? {
            return Ok(found);
        }
        if let Some(found) = self.of_module(name, site) {
            return Ok(found);
        }
        if let Some(folded) = self.folded(name) {
            return self.name_at(&folded, at, site);
        }
        let (missing, what) = self.missing_name(name);
        Err(EvalError::missing(at, missing, what))
    }

    /// Returns the name as the compilers of languages without upper and lower case have it, if that is another one.
    pub(super) fn folded(&self, name: &str) -> Option<String> {
        let has_upper = name.contains(|c: char| c.is_ascii_uppercase());
        let folds = || matches!(language_at(self.site), Language::Ada | Language::Fortran);
        (has_upper && folds()).then(|| name.to_ascii_lowercase())
    }

    /// Returns a variable of the frame or of a frame around it that it is inlined into, a member of the object whose
    /// method one of these frames executes, or a variable of a function around it in the source.
    pub(super) fn local(
        &self,
        name: &str,
        at: Span,
        site: &FrameContext<'_>,
    ) -> Answer<Option<Value>> {
        for depth in self.depths(name) {
            if let Some(variable) = self.variable_in(depth, name) {
                return Ok(Some(variable.read(site)));
            }
            if let Some(member) = self.member_of_object_in(depth, name, at)? {
                return Ok(Some(member));
            }
            if let Some(given) = self.given_around(depth, name) {
                return Ok(Some(given.read(site)));
            }
        }
        self.declared_around(name, at)
    }

    /// Returns the frames in which to look up `name`, by the number of inlined calls around them: the frame itself,
    /// then those that it is inlined into. Declarations of the file take precedence over variables that happen to have
    /// the name in callers.
    pub(super) fn depths(&self, name: &str) -> impl Iterator<Item = usize> + use<> {
        let own = self.site.inline_depth;
        let ends = own > 0 && self.variable(name).is_none() && is_in_file(self.site, name);
        let last = if ends { own } else { 0 };
        (last..=own).rev()
    }

    pub(super) fn variable(&self, name: &str) -> Option<Variable> {
        self.variable_in(self.site.inline_depth, name)
    }

    /// Finds a variable of the frame nested in `inline_depth` inlined calls, or the value of a template parameter there.
    pub(super) fn variable_in(&self, inline_depth: usize, name: &str) -> Option<Variable> {
        let site = FrameContext {
            inline_depth,
            ..*self.site
        };
        variable_at(&site, name).or_else(|| template_value(&site, name))
    }

    /// Finds the value of a template parameter of a function around that frame's function in the source.
    pub(super) fn given_around(&self, inline_depth: usize, name: &str) -> Option<Variable> {
        let site = FrameContext {
            inline_depth,
            ..*self.site
        };
        outer_template_value(&site, name)
    }

    /// Returns whether `name` is a variable of the frame, of one that it is inlined into, or of a function around it in the
    /// source.
    pub(super) fn has_variable(&self, name: &str) -> bool {
        let mut depths = self.depths(name);
        let is_of = |depth| {
            self.variable_in(depth, name).is_some() || self.given_around(depth, name).is_some()
        };
        depths.any(is_of) || self.is_declared_around(name)
    }

    pub(super) fn global(&self, name: &str) -> Option<Variable> {
        match name.strip_prefix("::") {
            Some(outermost) => {
                let mut all = globals(self.site, outermost).into_iter();
                all.find(|variable| variable.name == outermost)
            }
            None => {
                // In a class, its static members and those of its bases come before what is outside.
                match self.static_around(name) {
                    Ok(None) => {}
                    found => return found.ok().flatten(),
                }
                let mut all = globals(self.site, name).into_iter();
                let found = all.find(|one| !self.is_of_other_class(one, name));
                found.or_else(|| self.static_of_class(name).ok().flatten())
            }
        }
    }

    /// Returns the value of [`HIT_COUNT`], if that is the name and it has a value.
    pub(super) fn hit_count(&self, name: &str) -> Option<Value> {
        let count = (name == HIT_COUNT).then(|| self.look.machine.hit_count())?;
        let number = Number::integer(IntKind::UNSIGNED_LONG, u128::from(count?));
        Some(number_value(number, Certainty::Known))
    }

    /// Returns whether any near enumeration has an enumerator of this name. Compared with a value of its type, it needs
    /// no scope.
    pub(super) fn enumerates(&self, name: &str) -> bool {
        let near = self.look.space.near(self.site.lookup_pc);
        self.enumerator(name).is_some() || near.iter().any(|m| has_enumerator(m, name))
    }

    /// Returns the object whose method the frame at this inline depth executes.
    pub(super) fn object_in(&self, inline_depth: usize) -> Option<Variable> {
        let mut names = OBJECTS.iter();
        names.find_map(|name| self.variable_in(inline_depth, name))
    }

    /// Returns whether `name` is a member of an object, or captured in one, that cannot be read here.
    pub(super) fn is_of_lost_object(&self, name: &str) -> bool {
        for depth in self.depths(name) {
            if self.variable_in(depth, name).is_some() {
                return false;
            }
            match self.member_of_object_in(depth, name, Span::default()) {
                Ok(None) if self.given_around(depth, name).is_some() => return false,
                Ok(None) => {}
                found => return found.is_err(),
            }
        }
        false
    }

    /// Returns a member of the object whose method the frame at this inline depth executes, or what its lambda captured.
    fn member_of_object_in(
        &self,
        inline_depth: usize,
        name: &str,
        at: Span,
    ) -> Answer<Option<Value>> {
        let own = self.own_member_in(inline_depth, name, at);
        if matches!(own, Ok(Some(_))) {
            return own;
        }
        match self.captured_in(inline_depth, name, at) {
            Ok(None) => own,
            found => found,
        }
    }

    fn own_member_in(&self, inline_depth: usize, name: &str, at: Span) -> Answer<Option<Value>> {
        let Some(object) = self.object_in(inline_depth) else {
            return Ok(None);
        };
        let object = match self.pointee(&object.read(self.site), at) {
            Ok(object) => object,
            // What a name means does not depend on whether the object is known here.
            Err(why) if is_in_each_object(&object.ty(), name) => return Err(why),
            Err(_) => return Ok(None),
        };
        match object.member(name, &self.look) {
            Ok(value) => Ok(Some(value)),
            Err(ValueError::NoMember { .. } | ValueError::WrongType { .. }) => Ok(None),
            Err(error) => Err(EvalError::of_value(at, &error)),
        }
    }

    /// Returns an enumerator that a function around declares.
    pub(super) fn local_enumerator(&self, name: &str) -> Option<Value> {
        let found = local_enumerators(self.site, name);
        let ((ty, number), others) = found.split_first()?;
        let is_one = others.iter().all(|(_, other)| other == number);
        is_one.then(|| enum_value(ty, *number))
    }

    /// Returns an enumerator in scope, or one of an enumeration that is the type of a variable in scope.
    pub(super) fn enumerator(&self, name: &str) -> Option<Value> {
        let found = self.enumerators(name);
        if let [(ty, number), others @ ..] = found.as_slice() {
            let is_one = others.iter().all(|(_, other)| other == number);
            return is_one.then(|| enum_value(ty, *number));
        }
        let (ty, number) = match name.rsplit_once("::") {
            Some((scope, last)) => {
                let ty = self.find_type(scope)?;
                let number = enumerator_of(&ty, last)?;
                (ty, number)
            }
            None => variables_at(self.site).iter().find_map(|variable| {
                let ty = variable.ty();
                let number = enumerator_of(&ty, name)?;
                Some((ty, number))
            })?,
        };
        Some(enum_value(&ty, number))
    }

    /// Returns the enumerators that a name, or what it stands for in the source, refers to.
    fn enumerators(&self, name: &str) -> Vec<(Type, i128)> {
        let own = enumerators(self.site, name);
        if !own.is_empty() || !name.contains("::") {
            return own;
        }
        let imported = imported(self.site, name).into_iter();
        let mut found = imported.map(|one| enumerators(self.site, &one.name));
        found.find(|all| !all.is_empty()).unwrap_or_default()
    }

    /// Returns the enumerator that `expr` names in the enumeration type of `value`.
    pub(super) fn enumerator_like(&self, expr: &Expr, value: &Value) -> Option<Value> {
        let ExprKind::Name(name) = &expr.kind else {
            return None;
        };
        let value = self.settled(value, expr.at).ok()?;
        let number = enumerator_of(&value.ty, name)?;
        Some(enum_value(&value.ty, number))
    }

    /// Returns the entry of the function called `name`.
    pub(super) fn function(&self, name: &str) -> Option<u64> {
        let plain = name.strip_prefix("::").unwrap_or(name);
        let space = self.look.space;
        let near = space.near(self.site.lookup_pc);
        // The innermost namespace or class around the function comes first.
        let around = scope_at(self.site);
        let mut scope = around.as_str();
        while let Some((outer, _)) = scope.rsplit_once("::").filter(|_| plain == name) {
            scope = outer;
            if let Some(entry) = entry_in(&near, &format!("{outer}::{plain}")) {
                return Some(entry);
            }
        }
        if let Some(entry) = entry_in(&near, plain) {
            return Some(entry);
        }
        let imported = imported(self.site, name).into_iter();
        let mut imported = imported.filter_map(|one| entry_in(&near, &one.name));
        if let Some(entry) = imported.next() {
            return Some(entry);
        }
        if let Some(entry) = self.module_procedure(&near, plain) {
            return Some(entry);
        }
        let is_imported = near.iter().any(|m| m.module.imports(plain));
        match is_imported || near.is_empty() {
            true => entry_in(&space.foreign(self.site.lookup_pc), plain),
            false => None,
        }
    }

    /// Returns the procedure of a Fortran module that its last name alone means, as in `break NAME`: the only one of that name.
    fn module_procedure(&self, near: &[&Mapped], name: &str) -> Option<u64> {
        if name.contains("::") || language_at(self.site) != Language::Fortran {
            return None;
        }
        let found = near.iter().flat_map(|m| m.functions_matching(name));
        let last = |full: &str| full.rsplit_once("::").map(|(_, last)| last.to_owned());
        let mut fitting = found.filter(|f| last(&f.name).as_deref() == Some(name));
        let first = fitting.next()?;
        fitting.next().is_none().then_some(first.entry)
    }

    /// Returns whether an expression is the name of a function, and not of a variable.
    pub(super) fn names_function(&self, expr: &Expr) -> bool {
        let ExprKind::Name(name) = &expr.kind else {
            return false;
        };
        let is_local = || !matches!(self.local(name, expr.at, self.site), Ok(None));
        self.function(name).is_some() && !is_local() && self.global(name).is_none()
    }

    /// Returns a pointer to the function that begins at `entry`.
    pub(super) fn function_value(&self, entry: u64) -> Value {
        let ty = self.function_type(entry);
        let ty = ty.unwrap_or_else(|| base_type("void"));
        pointer_value(ty.pointer(), entry, Certainty::Known)
    }

    fn function_type(&self, entry: u64) -> Option<Type> {
        let mapped = self.look.space.at(entry)?;
        let ty = function_type(&mapped.module, mapped.svma(entry));
        ty.filter(|ty| ty.kind() == TypeKind::Function)
    }

    pub(super) fn unknown_name(&self, name: &str) -> Diagnostic {
        self.missing_name(name).1
    }

    fn missing_name(&self, name: &str) -> (Missing, Diagnostic) {
        let several = self.ambiguous(name).or_else(|| self.undecided(name));
        if let Some(what) = several.or_else(|| self.of_several_files(name)) {
            return (Missing::Ambiguous, what);
        }
        if let Some(what) = self.misused_member(name) {
            return (Missing::Name, what);
        }
        if let Some(what) = self.elsewhere(name) {
            return (Missing::Elsewhere, what);
        }
        let mut known: Vec<String> = Vec::new();
        let mut members: Vec<String> = Vec::new();
        for inline_depth in (0..=self.site.inline_depth).rev() {
            let site = FrameContext {
                inline_depth,
                ..*self.site
            };
            known.extend(variables_at(&site).iter().map(|v| v.name.clone()));
            if let Some(object) = self.object_in(inline_depth) {
                let ty = object.ty().strip();
                let ty = ty.target().map_or(ty, |target| target.strip());
                members.extend(ty.members().into_iter().filter_map(|member| member.name));
            }
        }
        if members.iter().any(|member| member == name) {
            let message = format!("{name} is a member of an object that is optimized out here");
            return (Missing::Name, message.into());
        }
        let known = known.iter().chain(&members).map(String::as_str);
        let known = known.filter(|other| *other != name);
        let what = Diagnostic {
            message: format!("no variable \"{name}\" here"),
            hint: nearest(name, known).map(|near| format!("did you mean \"{near}\"?")),
        };
        (Missing::Name, what)
    }

    /// Returns a diagnostic if different enumerations have different enumerators of this name.
    fn ambiguous(&self, name: &str) -> Option<Diagnostic> {
        let found = enumerators(self.site, name);
        let (first, number) = found.first()?;
        let (second, _) = found.iter().find(|(_, other)| other != number)?;
        let (first, second) = (first.name(), second.name());
        let message = format!("{name} is an enumerator of {first} and another one of {second}");
        Some(Diagnostic::new(message).with_hint("write (the type)(number)"))
    }
}

/// Returns whether each object that values of type `ty` lead to has a member of this name.
pub(super) fn is_in_each_object(ty: &Type, name: &str) -> bool {
    member_type(ty, name).is_some()
}

/// Returns the type of the member that each object has that values of type `ty` lead to.
pub(super) fn member_type(ty: &Type, name: &str) -> Option<Type> {
    let mut class = ty.strip();
    while let TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference = class.kind()
        && let Some(target) = class.target()
    {
        class = target.strip();
    }
    let found = find_member(&class, name).ok().flatten();
    let found = found.filter(|found| !matches!(found.member.offset, MemberOffset::Static(_)));
    found.map(|found| found.member.ty)
}

/// Returns the entry of the function called `name`, in no further namespace or class, from the first of `modules` that
/// has one.
pub(super) fn entry_in(modules: &[&Mapped], name: &str) -> Option<u64> {
    let is_meant = |full: &str| {
        let rest = full.strip_prefix(name);
        rest.is_some_and(|rest| !rest.starts_with("::"))
    };
    modules.iter().find_map(|mapped| {
        let found = mapped.functions_matching(name);
        let exact = found.iter().find(|f| f.name == name);
        let exact = exact.or_else(|| found.iter().find(|f| is_meant(&f.name)));
        // DWARF describes many functions of the C library under only one of their names: `puts` as `_IO_puts`.
        let alias = || mapped.functions_called(name).first().map(|f| f.entry);
        exact.map(|f| f.entry).or_else(alias)
    })
}

pub(super) fn enumerator_of(ty: &Type, name: &str) -> Option<i128> {
    let ty = ty.strip();
    let all = ty.enumerators().iter();
    // C++ and Rust omit the name of the enumeration.
    let mut fitting = all.filter(|e| e.name == name || e.name.rsplit("::").next() == Some(name));
    fitting.next().map(|e| e.value)
}

/// Returns a value of an enumeration, or an `int` if its size is unknown.
pub(super) fn enum_value(ty: &Type, number: i128) -> Value {
    let size = ty.size().and_then(|size| usize::try_from(size).ok());
    match size.filter(|size| (1..=16).contains(size) && ty.strip().kind() == TypeKind::Enum) {
        Some(size) => Value::constant(ty.clone(), number.to_le_bytes()[..size].to_vec()),
        None => number_value(
            Number::integer(IntKind::INT, number as u128),
            Certainty::Known,
        ),
    }
}

/// Returns the name most similar to `name`, if any is similar enough.
#[must_use]
pub fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let length = name.chars().count();
    let most = (length / 3).max(1);
    let is_as_long = |other: &&str| {
        let other = other.chars().count();
        length.min(other) > 0 && length.abs_diff(other) <= most
    };
    let known = known.filter(is_as_long);
    let rated = known.map(|other| (strsim::osa_distance(name, other), other));
    let best = rated.filter(|(distance, _)| *distance <= most).min();
    best.map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn names_are_near_if_few_characters_differ() {
        let is_near = |name, other| nearest(name, [other].into_iter()).is_some();
        assert!(is_near("abc", "abd"));
        assert!(is_near("abc", "ab"));
        assert!(!is_near("kitten", "sitting"), "3 characters of 6 differ");
        assert!(!is_near("x", ""));
        let near = |name| nearest(name, ["counter", "count", "x", "len"].into_iter());
        assert_eq!(near("cuonter"), Some("counter"));
        assert_eq!(near("lne"), Some("len"));
        assert_eq!(near("zzz"), None);
    }
}
