//! Turns linker names into readable ones: C++ names without the parameter list, Rust names without the hash.

use std::fmt;

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

use crate::functions::without_arguments;

/// Longest linker name that is demangled. Longer ones stay as they are.
const MAX_MANGLED_BYTES: usize = 64 << 10;
/// Longest readable name. Hostile substitutions could grow without bound.
const MAX_READABLE_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mangling {
    Cpp,
    RustLegacy,
    RustV0,
}

/// Returns the readable form of `linkage`, or `None` if it is not a mangled name.
pub(crate) fn readable(linkage: &str) -> Option<(String, Mangling)> {
    if linkage.len() > MAX_MANGLED_BYTES {
        return None;
    }
    rust(linkage).or_else(|| Some((cpp(linkage)?, Mangling::Cpp)))
}

/// Returns the readable form of a function's linker name, or `None` if it is not mangled.
#[must_use]
pub fn function_name(linkage: &str) -> Option<String> {
    readable(linkage).map(|(name, _)| name)
}

/// Returns the readable form of the name in a C++ `std::type_info`, or the name itself if it is not mangled.
#[must_use]
pub fn type_name(mangled: &str) -> String {
    const PREFIX: &str = "typeinfo for ";
    let demangled = readable(&format!("_ZTI{mangled}"));
    demangled
        .and_then(|(name, _)| name.strip_prefix(PREFIX).map(str::to_owned))
        .unwrap_or_else(|| mangled.to_owned())
}

/// Returns which of the functions that a C++ compiler makes of one constructor or destructor has this linker name, in the words of
/// the ABI: for a `complete object`, for a `base object`, or the `deleting` one. `None` for all other functions.
#[must_use]
pub fn object_variant(linkage: &str) -> Option<&'static str> {
    if linkage.len() > MAX_MANGLED_BYTES || !linkage.starts_with("_Z") {
        return None;
    }
    let base = linkage.split('.').next()?;
    let name = cpp(base)?;
    let mut codes = base.match_indices(['C', 'D']);
    codes.find_map(|(at, kind)| {
        let (variant, other) = match (kind, base.as_bytes().get(at + 1)?) {
            ("D", b'0') => ("deleting", "C1"),
            ("D", b'1') => ("complete object", "C1"),
            ("D", b'2') => ("base object", "C1"),
            ("C", b'1') => ("complete object", "D1"),
            ("C", b'2') => ("base object", "D1"),
            _ => return None,
        };
        // Such letters may be part of a longer name. If they are the code, the other one is that of the opposite function.
        let mut swapped = base.to_owned();
        swapped.replace_range(at..at + 2, other);
        let opposite = cpp(&swapped)?;
        let is_code = match kind {
            "D" => is_destructor_of(&name, &opposite),
            _ => is_destructor_of(&opposite, &name),
        };
        is_code.then_some(variant)
    })
}

/// Tells whether the names are those of a destructor and of a constructor of one class.
fn is_destructor_of(destructor: &str, constructor: &str) -> bool {
    let Some((scope, last)) = destructor.rsplit_once('~') else {
        return false;
    };
    // A function inside of one has a longer name.
    let is_last = !without_arguments(last).contains("::");
    is_last && constructor.strip_prefix(scope) == Some(last)
}

fn rust(linkage: &str) -> Option<(String, Mangling)> {
    let demangled = rustc_demangle::try_demangle(linkage).ok()?;
    let mut out = Bounded(String::new());
    fmt::write(&mut out, format_args!("{demangled:#}")).ok()?;
    if linkage.trim_start_matches('_').starts_with('R') {
        return Some((without_turbofish(&out.0), Mangling::RustV0));
    }
    Some((out.0, Mangling::RustLegacy))
}

/// Writes `f::<T>` as `f<T>`, like the legacy mangling, the debug information and other debuggers.
fn without_turbofish(name: &str) -> String {
    name.replace("::<", "<")
}

fn cpp(linkage: &str) -> Option<String> {
    let whole = demangled(linkage, DemangleOptions::new().no_params())?;
    let name = without_qualifiers(&whole);
    (!name.is_empty()).then(|| without_empty_packs(with_suffixed_literals(name)))
}

fn demangled(linkage: &str, options: DemangleOptions) -> Option<String> {
    let mangled = linkage.strip_prefix("_Z").map(|_| linkage)?;
    // `.isra.0`, `.cold` and the like follow the first dot; a dot cannot occur in the mangled name itself.
    let base = mangled.split('.').next()?;
    let parse = ParseOptions::default().recursion_limit(128);
    let (symbol, tail) = BorrowedSymbol::with_tail_and_options(base.as_bytes(), &parse).ok()?;
    if !tail.is_empty() {
        return None;
    }
    let options = options.no_return_type().recursion_limit(128);
    let mut out = Bounded(String::new());
    symbol.structured_demangle(&mut out, &options).ok()?;
    Some(out.0)
}

/// Returns the comma-separated parameter types of a C++ function, and the qualifiers after them that select the objects
/// of a member function. Returns `None` if the linker name does not include them.
pub(crate) fn parameters(linkage: &str) -> Option<(String, String)> {
    if linkage.len() > MAX_MANGLED_BYTES || rust(linkage).is_some() {
        return None;
    }
    let name = demangled(linkage, DemangleOptions::new().no_params())?;
    let whole = demangled(linkage, DemangleOptions::new())?;
    let list = whole.strip_prefix(without_qualifiers(&name))?;
    let (list, qualifiers) = list.strip_prefix('(')?.rsplit_once(')')?;
    Some((list.to_owned(), qualifiers.trim_start().to_owned()))
}

/// Empty argument packs leave a stray comma: `f<int, >` is `f<int>`.
fn without_empty_packs(mut name: String) -> String {
    for (empty, plain) in [(", , ", ", "), (", >", ">"), ("<, ", "<")] {
        while name.contains(empty) {
            name = name.replace(empty, plain);
        }
    }
    name
}

/// Writes template arguments like `(unsigned long)3` as `3ul`, like debuggers and binutils.
fn with_suffixed_literals(name: &str) -> String {
    const SUFFIXES: [(&str, &str); 5] = [
        ("(unsigned int)", "u"),
        ("(long)", "l"),
        ("(unsigned long)", "ul"),
        ("(long long)", "ll"),
        ("(unsigned long long)", "ull"),
    ];
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('(') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let literal = SUFFIXES.iter().find_map(|(cast, suffix)| {
            let value = from.strip_prefix(cast)?;
            let digits = value
                .trim_start_matches('-')
                .trim_start_matches(|c: char| c.is_ascii_digit());
            let number = &value[..value.len() - digits.len()];
            number
                .ends_with(|c: char| c.is_ascii_digit())
                .then_some((number, *suffix, digits))
        });
        match literal {
            Some((number, suffix, after)) => {
                out.push_str(number);
                out.push_str(suffix);
                rest = after;
            }
            None => {
                out.push('(');
                rest = &from[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Strips the qualifiers after the parameters of a member function: `f const` and `f &` both become `f`.
fn without_qualifiers(name: &str) -> &str {
    // The target type of `operator T` may end in the same words.
    if name.contains("operator ") {
        return name;
    }
    let mut name = name;
    for qualifier in [" &&", " &", " volatile", " const"] {
        name = name.strip_suffix(qualifier).unwrap_or(name);
    }
    name
}

/// A string that refuses to grow past [`MAX_READABLE_BYTES`].
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_READABLE_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(linkage: &str) -> Option<String> {
        readable(linkage).map(|(name, _)| name)
    }

    #[test]
    fn names_are_those_of_debuggers_without_parameters() {
        for (linkage, expected) in [
            ("_ZN2ns1CIiE6methodEv", "ns::C<int>::method"),
            ("_ZNK2ns1C6methodEi", "ns::C::method"),
            ("_ZNRSt8optionalIiEdeEv", "std::optional<int>::operator*"),
            ("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()"),
            ("_ZNK1CcvKiEv", "C::operator int const"),
            ("_Z3getILm3ELin1ELb1EEvv", "get<3ul, -1, true>"),
            ("_Z4makeIiJEEvv", "make<int>"),
            ("_Z4makeIJiEJEiEvv", "make<int, int>"),
            ("_ZL6hiddeni.isra.0", "hidden"),
            ("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"),
        ] {
            assert_eq!(name(linkage).as_deref(), Some(expected), "{linkage}");
        }
    }

    #[test]
    fn parameters_are_those_of_the_source() {
        for (linkage, expected) in [
            ("_Z1fi", Some(("int", ""))),
            ("_Z1fv", Some(("", ""))),
            ("_Z1fPKcd", Some(("char const*, double", ""))),
            ("_ZNK2ns1C6methodEi", Some(("int", "const"))),
            ("_ZNKO1S1hEi", Some(("int", "const &&"))),
            ("_Z3sumIiET_S0_S0_", Some(("int, int", ""))),
            ("_ZL6hiddeni.isra.0", Some(("int", ""))),
            ("main", None),
            ("_RNvNtCs1234_7mycrate3foo3bar", None),
        ] {
            let found = parameters(linkage);
            let found = found.as_ref().map(|(list, own)| (&**list, &**own));
            assert_eq!(found, expected, "{linkage}");
        }
    }

    #[test]
    fn constructors_and_destructors_of_one_name_are_told_apart() {
        for (linkage, expected) in [
            ("_ZN1VC1Ei", Some("complete object")),
            ("_ZN1VC2Ei", Some("base object")),
            ("_ZN1VD0Ev", Some("deleting")),
            ("_ZN1VD1Ev", Some("complete object")),
            ("_ZN1VD2Ev.cold", Some("base object")),
            ("_ZN1VIiLi5EED0Ev", Some("deleting")),
            ("_ZN1VIiEC2IdEET_", Some("base object")),
            ("_ZN3C1EC2Ev", Some("base object")),
            ("_ZN3D0ED1Ev", Some("complete object")),
            ("_ZN3D0E3C1EEv", None),
            ("_ZN1VcoEv", None),
            ("_ZZN1VC1EvENKUlvE_clEv", None),
            ("main", None),
        ] {
            assert_eq!(object_variant(linkage), expected, "{linkage}");
        }
    }

    #[test]
    fn what_is_not_mangled_stays() {
        for linkage in ["main", "_Zxx", "_ZN", "", "_R", "_Z3fo"] {
            assert_eq!(name(linkage), None, "{linkage}");
        }
    }

    #[test]
    fn names_that_would_grow_without_end_stay() {
        // Each substitution doubles the expansion of the previous one.
        let doubled = |levels: &str| {
            format!(
                "_Z1fI{}E",
                levels
                    .chars()
                    .fold("i".to_owned(), |inner, _| format!("1AI{inner}{inner}E"))
            )
        };
        assert_eq!(name(&doubled("0123456789abcdefghi")), None);
    }
}
