//! Overloads of C++: which function of one name a call means ([over.match] of the C++ standard).
//!
//! A call that the standard leaves to a constructor or an operator of a class, or that nothing decides, is refused.

use crate::ast::{Expr, ExprKind, Span};
use crate::eval::calls::miscounted;
use crate::eval::ranks::{Given, Rank, Way, is_misfit, way};
use crate::eval::{Answer, EvalError};
use debuginfo::types::{Type, TypeKind};
use debuginfo::value::Value;

/// Functions that an error lists, at most.
const MOST_LISTED: usize = 8;

/// What decides whether a call means a function.
#[derive(Debug, Clone)]
pub(super) struct Signature {
    /// Its qualified name.
    pub name: String,
    /// The types of its parameters, that of the object included; `None` if nothing describes them.
    pub parameters: Option<Vec<Type>>,
    /// More arguments may follow.
    pub is_variadic: bool,
    /// It is one of a template, whose arguments the call does not write.
    pub is_of_template: bool,
    /// The first parameter is the object, which no argument stands for.
    pub has_object: bool,
}

/// A call, as overload resolution sees it.
pub(super) struct Wanted<'a> {
    name: &'a str,
    arguments: &'a [Expr],
    given: Vec<Given>,
    /// The object is `const`, if the call has one.
    object: Option<bool>,
    at: Span,
}

impl Signature {
    /// Returns the types of the parameters that arguments stand for.
    pub(super) fn parameters(&self) -> &[Type] {
        let all = self.parameters.as_deref().unwrap_or_default();
        all.get(usize::from(self.has_object)..).unwrap_or_default()
    }

    /// Returns the parameters as text, with the qualifier of the object: `(int, char *) const`.
    pub(super) fn list(&self) -> String {
        let Some(all) = &self.parameters else {
            return "(not described)".to_owned();
        };
        let mut names: Vec<String> = self.parameters().iter().map(Type::name).collect();
        if self.is_variadic {
            names.push("...".to_owned());
        }
        let object = all.first().filter(|_| self.has_object);
        let target = object.and_then(|object| object.strip().target());
        let is_const = target.is_some_and(|target| target.is_const());
        let qualifier = if is_const { " const" } else { "" };
        format!("({}){qualifier}", names.join(", "))
    }

    fn fits_count(&self, given: usize) -> bool {
        let wanted = self.parameters().len();
        given == wanted || self.is_variadic && given > wanted
    }

    fn may_have_default(&self, given: usize) -> bool {
        given < self.parameters().len()
    }
}

impl<'a> Wanted<'a> {
    /// Describes the call of `name`. `object` is set if it is one of a method, and true if the object is `const`.
    pub(super) fn new(
        name: &'a str,
        (arguments, values): (&'a [Expr], &[Value]),
        object: Option<bool>,
        at: Span,
    ) -> Wanted<'a> {
        let pairs = arguments.iter().zip(values);
        Wanted {
            name,
            arguments,
            given: pairs.map(|(expr, value)| Given::new(expr, value)).collect(),
            object,
            at,
        }
    }

    /// Returns the arguments with what decides how they are converted.
    pub(super) fn given(&self) -> impl Iterator<Item = (&'a Expr, &Given)> {
        self.arguments.iter().zip(&self.given)
    }

    /// Returns the index of the function that the call means. A single one is only checked for the number of its parameters and for
    /// numbers that are no pointers, unless it is one of a template.
    ///
    /// # Errors
    /// None fits, or none fits better than all others.
    pub(super) fn resolve(&self, all: &[&Signature]) -> Answer<usize> {
        if let [only] = all {
            self.counted(only)?;
            let fits = match only.is_of_template {
                true => self.ways(only).is_some(),
                false => !self.has_misfit(only),
            };
            return if fits {
                Ok(0)
            } else {
                Err(self.undecided(all, &[]))
            };
        }
        let ways: Vec<Option<Vec<Way>>> = all.iter().map(|one| self.ways(one)).collect();
        let fitting: Vec<(usize, &[Way])> = ways
            .iter()
            .enumerate()
            .filter_map(|(at, ways)| Some((at, ways.as_deref()?)))
            .collect();
        let needs_class = |ways: &[Way]| ways.iter().any(|way| way.rank == Rank::OfClass);
        if !fitting.is_empty() && fitting.iter().all(|one| needs_class(one.1)) {
            let (name, types) = (self.name, self.types());
            let what = "without a conversion that a class defines";
            return Err(self.refused(&format!("no function {name} takes {types} {what}"), all));
        }
        let is_best = |one: &&(usize, &[Way])| {
            let mut others = fitting.iter().filter(|other| other.0 != one.0);
            others.all(|other| is_better((all[one.0], one.1), (all[other.0], other.1)))
        };
        let Some(best) = fitting
            .iter()
            .find(is_best)
            .filter(|best| !needs_class(best.1))
        else {
            let fitting: Vec<&Signature> = fitting.iter().map(|(at, _)| all[*at]).collect();
            return Err(self.undecided(all, &fitting));
        };
        let is_exact = best.1.iter().all(|way| way.rank == Rank::Exact);
        if !is_exact && all.iter().any(|one| one.parameters.is_none()) {
            let what = "is not known, as nothing describes the parameters of one";
            return Err(self.refused(&format!("which {} is meant {what}", self.name), all));
        }
        Ok(best.0)
    }

    fn counted(&self, only: &Signature) -> Answer<()> {
        let (wanted, given) = (only.parameters().len(), self.given.len());
        if only.parameters.is_none() || only.fits_count(given) {
            return Ok(());
        }
        let error = EvalError::new(self.at, miscounted(self.name, wanted, given));
        Err(match only.may_have_default(given) {
            true => error.with_hint(WRITE_ALL),
            false => error,
        })
    }

    fn has_misfit(&self, only: &Signature) -> bool {
        let mut pairs = self.given.iter().zip(only.parameters());
        pairs.any(|(given, parameter)| is_misfit(given, parameter))
    }

    /// Returns how the object and each argument become parameters; `None` if one of them does not.
    fn ways(&self, of: &Signature) -> Option<Vec<Way>> {
        if of.parameters.is_none() || !of.fits_count(self.given.len()) {
            return None;
        }
        let mut ways = Vec::new();
        if let Some(is_const) = self.object {
            let first = of.parameters.iter().flatten().next();
            ways.push(Way::of_object(is_const, first?)?);
        }
        let parameters = of.parameters();
        for (index, given) in self.given.iter().enumerate() {
            ways.push(match parameters.get(index) {
                Some(parameter) => way(given, parameter)?,
                None => Way::ellipsis(),
            });
        }
        // Of a template, another function may have to be made, which the program does not have.
        let is_certain = !of.is_of_template || ways.iter().all(|way| way.rank == Rank::Exact);
        is_certain.then_some(ways)
    }

    fn undecided(&self, all: &[&Signature], fitting: &[&Signature]) -> EvalError {
        let (name, types) = (self.name, self.types());
        match fitting {
            [] => {
                let object = if self.is_of_const() {
                    " for a const object"
                } else {
                    ""
                };
                self.refused(&format!("no function {name} takes {types}{object}"), all)
            }
            _ => {
                let what = format!("several functions {name} take {types} equally well");
                self.refused(&what, fitting)
            }
        }
    }

    fn is_of_const(&self) -> bool {
        self.object == Some(true)
    }

    /// Returns the types of the arguments as text.
    fn types(&self) -> String {
        let types: Vec<String> = self.given.iter().map(|given| given.ty.name()).collect();
        match types.is_empty() {
            true => "no arguments".to_owned(),
            false => format!("({})", types.join(", ")),
        }
    }

    /// Makes the error for a call without a function, with the functions of the name.
    pub(super) fn refused(&self, why: &str, all: &[&Signature]) -> EvalError {
        let shown = all.iter().take(MOST_LISTED);
        let mut shown: Vec<String> = shown
            .map(|one| format!("{}{}", one.name, one.list()))
            .collect();
        if all.len() > MOST_LISTED {
            shown.push(format!("{} more", all.len() - MOST_LISTED));
        }
        let error = EvalError::meaningless(self.at, format!("{why}: {}", shown.join(", ")));
        error.with_hint(self.way_out(all))
    }

    /// Says how to write which function is meant.
    fn way_out(&self, all: &[&Signature]) -> String {
        let given = self.given.len();
        let example = all.iter().find_map(|one| self.written_for(one));
        let what = match (all, &example) {
            ([_], None) => "pass arguments of the types of its parameters",
            ([_], Some(_)) => "convert the arguments to the types of its parameters",
            _ => "convert the arguments to the types of one of them",
        };
        let example = example.map_or(String::new(), |text| format!(", such as {text}"));
        let mut cast = format!("{what}{example}");
        if self.is_of_const() {
            cast += "; for those without const, also convert the object to a reference: (CLASS &)OBJECT";
        }
        match all.iter().any(|one| one.may_have_default(given)) {
            true => format!("{cast}; {WRITE_ALL}"),
            false => cast,
        }
    }

    /// Returns the call with its arguments converted for a function: `g((int)x)`.
    fn written_for(&self, one: &Signature) -> Option<String> {
        let parameters = one.parameters();
        if parameters.is_empty() || parameters.len() != self.given.len() {
            return None;
        }
        let pairs = parameters.iter().zip(self.given());
        let possible = pairs.map(|(ty, (of, given))| {
            let can_be = given.can_become(ty);
            converted(ty, of).filter(|_| can_be)
        });
        let written: Option<Vec<String>> = possible.collect();
        Some(format!("{}({})", self.name, written?.join(", ")))
    }
}

/// What to do about arguments that the source may leave out.
const WRITE_ALL: &str = "write all arguments: default arguments are not in the debug information";

/// Returns an argument with a conversion to the type of a parameter, if it is one of numbers or pointers.
fn converted(ty: &Type, of: &Expr) -> Option<String> {
    let is_plain = matches!(
        ty.strip().kind(),
        TypeKind::Integer { .. }
            | TypeKind::Bool
            | TypeKind::Char { .. }
            | TypeKind::Float
            | TypeKind::Pointer
            | TypeKind::Enum
    );
    is_plain.then(|| conversion(ty, of))
}

/// Returns an argument with a conversion to a type, as it is written.
pub(super) fn conversion(ty: &Type, of: &Expr) -> String {
    let has_operator = matches!(of.kind, ExprKind::Binary(..) | ExprKind::Conditional { .. });
    match has_operator {
        true => format!("({})({of})", ty.name()),
        false => format!("({}){of}", ty.name()),
    }
}

/// Returns whether a function fits all arguments at least as well as another one, and one of them better. One that is of no
/// template comes first.
fn is_better((one, own): (&Signature, &[Way]), (other, others): (&Signature, &[Way])) -> bool {
    let compared: Vec<_> = own.iter().zip(others).map(|(a, b)| a.compare(b)).collect();
    let is_plain = !one.is_of_template && other.is_of_template;
    compared.iter().all(|order| order.is_le())
        && (is_plain || compared.iter().any(|order| order.is_lt()))
}

#[cfg(test)]
mod tests {
    use super::{Signature, Wanted};
    use crate::ast::{Expr, Span};
    use crate::eval::EvalError;
    use debuginfo::types::{Type, builtin};
    use debuginfo::value::Value;

    fn ty(name: &str) -> Type {
        match name.strip_suffix(" *") {
            Some(target) => ty(target).pointer(),
            None => builtin(name).expect("a type of C"),
        }
    }

    fn signature(parameters: &str) -> Signature {
        let names = parameters.split(", ").filter(|name| !name.is_empty());
        Signature {
            name: "g".to_owned(),
            parameters: Some(names.map(ty).collect()),
            is_variadic: false,
            is_of_template: false,
            has_object: false,
        }
    }

    /// Returns the parameters of the function that a call with variables of these types means.
    fn chosen<'p>(overloads: &[&'p str], given: &[&str]) -> Result<&'p str, EvalError> {
        let values = given
            .iter()
            .map(|name| Value::constant(ty(name), vec![0; 8]));
        let values: Vec<Value> = values.collect();
        let variable = crate::parse("x").expect("it is a name");
        let arguments: Vec<Expr> = values.iter().map(|_| variable.clone()).collect();
        let wanted = Wanted::new("g", (&arguments, &values), None, Span::default());
        let signatures: Vec<Signature> = overloads.iter().map(|list| signature(list)).collect();
        let all: Vec<&Signature> = signatures.iter().collect();
        wanted.resolve(&all).map(|at| overloads[at])
    }

    #[test]
    fn the_better_conversion_decides() {
        let numbers = ["int", "long", "double", "int, int", ""];
        let cases: &[(&[&str], &[&str], &str)] = &[
            (&numbers, &["int"], "int"),
            (&numbers, &["short"], "int"),
            (&numbers, &["char"], "int"),
            (&numbers, &["long"], "long"),
            (&numbers, &["float"], "double"),
            (&numbers, &["char", "double"], "int, int"),
            (&numbers, &[], ""),
            (&["double", "int"], &["int"], "int"),
            (
                &["unsigned char", "int"],
                &["unsigned char"],
                "unsigned char",
            ),
            (&["long long", "long"], &["long"], "long"),
            (&["int", "char *"], &["char *"], "char *"),
            (&["bool", "void *"], &["char *"], "void *"),
            (&["bool", "int"], &["char *"], "bool"),
            (
                &["int, double", "double, double"],
                &["int", "int"],
                "int, double",
            ),
        ];
        for (overloads, given, right) in cases {
            let found = chosen(overloads, given);
            assert_eq!(found, Ok(*right), "{overloads:?}: {given:?}");
        }
    }

    #[test]
    fn what_nothing_decides_is_refused_with_the_functions() {
        let told = |overloads: &[&str], given: &[&str]| {
            let error = chosen(overloads, given).expect_err("nothing decides it");
            (error.message, error.hint.unwrap_or_default())
        };
        let (message, hint) = told(&["int", "long"], &["unsigned long"]);
        assert_eq!(
            message,
            "several functions g take (unsigned long) equally well: g(int), g(long)"
        );
        assert_eq!(
            hint,
            "convert the arguments to the types of one of them, such as g((int)x)"
        );
        let (message, hint) = told(&["int *", "int, int"], &["int"]);
        assert_eq!(message, "no function g takes (int): g(int *), g(int, int)");
        assert!(hint.contains("such as g((int *)x); write all"), "{hint}");
        let (message, _) = told(&["int, double", "double, int"], &["int", "int"]);
        assert!(
            message.contains("take (int, int) equally well"),
            "{message}"
        );
        for (only, given) in [("int", "char *"), ("char *", "int"), ("double", "char *")] {
            let (message, hint) = told(&[only], &[given]);
            assert_eq!(message, format!("no function g takes ({given}): g({only})"));
            let example = format!("such as g(({only})x)");
            let right = format!("convert the arguments to the types of its parameters, {example}");
            assert_eq!(hint, right);
        }
        let (message, hint) = told(&["int, int"], &["int"]);
        assert_eq!(message, "g takes 2 arguments, not 1");
        assert!(hint.starts_with("write all arguments"), "{hint}");
    }
}
