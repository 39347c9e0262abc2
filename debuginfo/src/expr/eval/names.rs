//! What names stand for, from the innermost scope outwards, and what may have been meant by those that stand for nothing.

use super::super::ast::{Expr, ExprKind, Span};
use super::operand::{number_value, pointer_value};
use super::{Answer, EvalError, Evaluator, base_type};
use crate::expr::number::{IntKind, Number};
use crate::layout::{Type, TypeKind};
use crate::location::Site;
use crate::machine::Certainty;
use crate::scope::{Variable, function_at, globals, variable_at, variables_at};
use crate::value::{Value, ValueError};

/// Members of the object that is worked on, in C++ and in Rust.
const OBJECTS: [&str; 2] = ["this", "self"];

impl Evaluator<'_> {
    pub(super) fn name(&self, name: &str, at: Span) -> Answer<Value> {
        self.name_at(name, at, self.site)
    }

    /// The same, a variable as `site` reads it.
    pub(super) fn name_at(&self, name: &str, at: Span, site: &Site<'_>) -> Answer<Value> {
        if let Some(variable) = self.variable(name) {
            return Ok(variable.read(site));
        }
        if let Some(member) = self.member_of_object(name, at)? {
            return Ok(member);
        }
        if let Some(variable) = self.global(name) {
            return Ok(variable.read(site));
        }
        if let Some(enumerator) = self.enumerator(name) {
            return Ok(enumerator);
        }
        if let Some(entry) = self.function(name) {
            let ty = self.function_type(entry);
            let ty = ty.unwrap_or_else(|| base_type("void"));
            return Ok(pointer_value(ty.pointer(), entry, Certainty::Known));
        }
        if self.find_type(name).is_some() {
            let message = format!("{name} is a type; to convert to it, write ({name})(value)");
            return Err(EvalError::new(at, message));
        }
        Err(EvalError::unknown_name(at, self.unknown_name(name)))
    }

    /// Finds a variable of the frame.
    pub(super) fn variable(&self, name: &str) -> Option<Variable> {
        variable_at(self.site, name)
    }

    pub(super) fn global(&self, name: &str) -> Option<Variable> {
        let plain = name.strip_prefix("::").unwrap_or(name);
        globals(self.site, plain).into_iter().next()
    }

    /// The object whose method the frame is in.
    fn object(&self) -> Option<Value> {
        let variable = OBJECTS.iter().find_map(|name| self.variable(name))?;
        Some(variable.read(self.site))
    }

    pub(super) fn member_of_object(&self, name: &str, at: Span) -> Answer<Option<Value>> {
        let Some(object) = self.object() else {
            return Ok(None);
        };
        let Ok(object) = self.pointee(&object, at) else {
            return Ok(None);
        };
        match object.member(name, &self.look) {
            Ok(value) => Ok(Some(value)),
            Err(ValueError::NoMember { .. } | ValueError::WrongType { .. }) => Ok(None),
            Err(error) => Err(EvalError::new(at, error.to_string())),
        }
    }

    /// `Color::Red`, also as a member of an enumeration that a variable in scope has.
    pub(super) fn enumerator(&self, name: &str) -> Option<Value> {
        let (found, number) = match name.rsplit_once("::") {
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
        Some(enum_value(&found, number))
    }

    /// The enumerator that `expr` names in the enumeration that `value` is of.
    pub(super) fn enumerator_like(&self, expr: &Expr, value: &Value) -> Option<Value> {
        let ExprKind::Name(name) = &expr.kind else {
            return None;
        };
        let value = self.settled(value, expr.at).ok()?;
        let number = enumerator_of(&value.ty, name)?;
        Some(enum_value(&value.ty, number))
    }

    /// The entry of the function that is called `name`.
    pub(super) fn function(&self, name: &str) -> Option<u64> {
        let plain = name.strip_prefix("::").unwrap_or(name);
        let space = self.look.space;
        let mut found = space.functions_matching(plain);
        found.retain(|f| space.at(f.entry).is_none_or(|m| space.names_from(m)));
        let exact = found.iter().find(|f| f.name == plain);
        exact.or(found.first()).map(|f| f.entry)
    }

    /// What the function that begins at `entry` takes and returns.
    fn function_type(&self, entry: u64) -> Option<Type> {
        let mapped = self.look.space.at(entry)?;
        let id = function_at(&mapped.module, mapped.svma(entry))?;
        Some(Type::of_function(&mapped.module, id)).filter(|ty| ty.kind() == TypeKind::Function)
    }

    pub(super) fn unknown_name(&self, name: &str) -> String {
        let mut known: Vec<String> = variables_at(self.site)
            .into_iter()
            .map(|variable| variable.name.clone())
            .collect();
        if let Some(object) = self.object() {
            let ty = object.ty.strip();
            let ty = ty.target().map_or(ty, |target| target.strip());
            known.extend(ty.members().into_iter().filter_map(|member| member.name));
        }
        let known = known.iter().map(String::as_str);
        match nearest(name, known) {
            Some(near) => format!("no variable \"{name}\" here; did you mean \"{near}\"?"),
            None => format!("no variable \"{name}\" here"),
        }
    }
}

pub(super) fn enumerator_of(ty: &Type, name: &str) -> Option<i128> {
    let ty = ty.strip();
    let all = ty.enumerators().iter();
    // C++ and Rust leave out the name of the enumeration.
    let mut fitting = all.filter(|e| e.name == name || e.name.rsplit("::").next() == Some(name));
    fitting.next().map(|e| e.value)
}

/// A value of an enumeration; as an `int` if its size is not known.
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

/// The name that is most like `name`, if one is like it at all.
pub(super) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let most = (name.chars().count() / 3).max(1);
    let rated = known.map(|other| (distance(name, other, most), other));
    let best = rated.filter(|(distance, _)| *distance <= most).min();
    best.map(|(_, other)| other)
}

/// How many characters must be changed, added, removed or exchanged with their neighbour; anything above `most` counts the
/// same.
fn distance(a: &str, b: &str, most: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > most || a.len().min(b.len()) == 0 {
        return most + 1;
    }
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect(), Vec::new()];
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let changed = rows[1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = changed.min(rows[1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(rows[0][j - 2] + 1);
            }
        }
        rows[2] = row;
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn names_are_near_if_few_characters_differ() {
        assert_eq!(distance("cuonter", "counter", 3), 1);
        assert_eq!(distance("abc", "abd", 3), 1);
        assert_eq!(distance("abc", "ab", 3), 1);
        assert_eq!(distance("kitten", "sitting", 5), 3);
        let near = |name| nearest(name, ["counter", "count", "x", "len"].into_iter());
        assert_eq!(near("cuonter"), Some("counter"));
        assert_eq!(near("lne"), Some("len"));
        assert_eq!(near("zzz"), None);
    }
}
