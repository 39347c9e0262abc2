//! Patterns by which users name functions: `f`, `ns::f`, `Stack::push`, `f(int)`, `file.c:f`, `Filter::*`.
//!
//! Scopes may be omitted from the outside in, template arguments of any scope, and parameters only as a whole.

use std::borrow::Cow;
use std::sync::Arc;

use gimli::constants as dw;

use super::resolve;
use crate::demangle;
use crate::dies::{Die, DieReader};
use crate::functions::short_name;
use crate::glob::Glob;
use crate::module::Module;
use crate::types::{ANONYMOUS, DieId, Type, canonical, same_text, with_session, without_arguments};

/// Parameters of one function that are compared.
const MAX_PARAMETERS: usize = 64;

#[derive(Debug, Clone)]
pub(super) struct Pattern<'p> {
    /// The end of the path of the source file.
    file: Option<&'p str>,
    /// The line that declares them.
    line: Option<u32>,
    /// The name of the functions.
    pub name: Cow<'p, str>,
    /// The name as a glob, if it has wildcards.
    glob: Option<Glob>,
    /// The parameter types, normalised.
    parameters: Option<String>,
    /// The qualifiers after the parameter list, without spaces, which select the objects of a member function. `None`
    /// matches any.
    qualifiers: Option<String>,
}

/// How much of a name a pattern has to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Whole,
    WithoutScope,
}

impl<'p> Pattern<'p> {
    pub(super) fn read(text: &'p str) -> Pattern<'p> {
        let text = text.trim();
        let (file, name) = match file_end(text) {
            Some(at) => (Some(&text[..at]), text[at + 1..].trim_start()),
            None => (None, text),
        };
        let (name, parameters) = match parameters_start(name) {
            Some(at) => {
                let end = name[at + 1..].rsplit_once(')');
                let (list, qualifiers) = end.unwrap_or_default();
                let qualifiers = qualifiers.split_whitespace().collect();
                (name[..at].trim_end(), Some((canonical(list), qualifiers)))
            }
            None => (name, None),
        };
        let (parameters, qualifiers) = parameters.unzip();
        Pattern {
            file,
            line: None,
            name: name.into(),
            glob: Glob::is_one(name).then(|| Glob::new(name)),
            parameters,
            qualifiers,
        }
    }

    /// Returns the possible meanings, best first. `f()` is the function for non-const objects or, if there is none, the
    /// one for const objects. `Outer.Inner` is Ada's notation for `outer__inner`.
    pub(super) fn readings(self) -> Vec<Pattern<'p>> {
        let is_plain = self.qualifiers.as_deref() == Some("");
        let any = is_plain.then(|| Pattern {
            qualifiers: None,
            ..self.clone()
        });
        let ada = is_dotted(&self.name).then(|| Pattern {
            name: self.name.replace('.', "__").to_ascii_lowercase().into(),
            ..self.clone()
        });
        let closures = self.closures();
        let plain = [Some(self), any, ada].into_iter().flatten();
        plain.chain(closures).collect()
    }

    /// The closures that a short name calls by their file and line, as compilers name them.
    fn closures(&self) -> Vec<Pattern<'p>> {
        const KINDS: [(&str, &str); 4] = [
            ("{closure@", "{closure#*}"),
            ("{closure@", "{{closure}}"),
            ("{lambda@", "{lambda(*)#*}::operator()"),
            ("{lambda@", "$_*::operator()"),
        ];
        let Cow::Borrowed(name) = self.name else {
            return Vec::new();
        };
        let reading = |(open, own): &(&str, &str)| {
            let (before, place) = name.strip_suffix('}')?.rsplit_once(open)?;
            let (file, line) = place.rsplit_once(':')?;
            let name = format!("{before}{own}");
            Some(Pattern {
                file: Some(file),
                line: Some(line.parse().ok()?),
                glob: Some(Glob::new(&name)),
                name: name.into(),
                ..self.clone()
            })
        };
        KINDS.iter().filter_map(reading).collect()
    }

    pub(super) fn is_glob(&self) -> bool {
        self.glob.is_some()
    }

    /// Returns whether the pattern selects a function with these names.
    pub(super) fn fits(&self, way: Way, name: &str, linkage: &str) -> bool {
        let is_whole = match &self.glob {
            Some(glob) => glob.matches(name) || glob.matches(linkage),
            None => self.name == name || self.name == linkage,
        };
        is_whole || way == Way::WithoutScope && self.fits_inside(name)
    }

    /// Matches partially qualified names: `f` also selects `ns::f<int>`.
    fn fits_inside(&self, name: &str) -> bool {
        let name = &*without_tags(name, &self.name);
        // Otherwise a short name has nothing that the full one lacks.
        let may_be_short = self.name.contains('<') || self.name.contains("::");
        self.fits_end(name)
            || may_be_short && self.fits_end(&short_name(name))
            || self.fits_visible(name)
    }

    /// Members of a namespace without a name are names of the scope around it.
    fn fits_visible(&self, name: &str) -> bool {
        name.contains(ANONYMOUS) && self.fits_end(&name.replace(&format!("{ANONYMOUS}::"), ""))
    }

    /// Matches the end of a name.
    fn fits_end(&self, name: &str) -> bool {
        let own = components(name);
        if let Some(glob) = &self.glob {
            let bare: Vec<&str> = own.iter().map(|part| without_arguments(part)).collect();
            return (0..own.len()).any(|at| {
                let tail = own[at..].join("::");
                let ends = [
                    without_arguments(&tail).to_owned(),
                    bare[at..].join("::"),
                    tail,
                ];
                ends.iter().any(|end| glob.matches(end))
            });
        }
        let wanted = components(self.name.strip_prefix("::").unwrap_or(&self.name));
        let is_same = |(wanted, own): (&&str, &&str)| {
            same_text(wanted, own) || same_text(wanted, without_arguments(own))
        };
        wanted.len() <= own.len() && wanted.iter().rev().zip(own.iter().rev()).all(is_same)
    }

    /// Returns whether the pattern means a function that is declared at `line` of `file`.
    pub(super) fn fits_place(&self, file: Option<&Arc<str>>, line: Option<u32>) -> bool {
        let is_it = |wanted| file.is_some_and(|file| resolve::is_named(file, wanted));
        self.file.is_none_or(is_it) && self.line.is_none_or(|wanted| line == Some(wanted))
    }

    /// Returns whether the pattern selects the function of DIE `die`, judged by its parameters. For a function without
    /// a DIE, the linker name may tell.
    pub(super) fn fits_parameters(
        &self,
        module: &Arc<Module>,
        die: impl FnOnce() -> Option<DieId>,
        linkage: Option<&str>,
    ) -> bool {
        let Some(wanted) = &self.parameters else {
            return true;
        };
        let are_for = |own: &str| {
            let qualifiers = self.qualifiers.as_deref();
            qualifiers.is_none_or(|wanted| own.split_whitespace().collect::<String>() == wanted)
        };
        // A type may have a different name in the debug information than in the linker name, so a different list
        // decides nothing. Qualifiers have only one spelling.
        let is_stated = |linkage: &str| match demangle::parameters(linkage) {
            Some((_, own)) if !are_for(&own) => Some(false),
            Some((list, _)) if canonical(&list) == *wanted => Some(true),
            _ => None,
        };
        if let Some(is_it) = linkage.and_then(is_stated) {
            return is_it;
        }
        let described = die().and_then(|die| {
            with_session(module.entries(), die, |session, die| {
                let chain = session.chain(die);
                let stated = chain
                    .iter()
                    .find_map(|die| session.string(die, dw::DW_AT_linkage_name));
                let stated = stated.and_then(|name| is_stated(&name.to_string_lossy()));
                stated.unwrap_or_else(|| canonical(&declared(module, session, &chain)) == *wanted)
            })
        });
        described.unwrap_or(false)
    }
}

/// Returns whether `asked`, without wildcards, may mean the function called `name`. Scopes at the beginning and template
/// arguments may be left out.
#[must_use]
pub fn names_function(asked: &str, name: &str) -> bool {
    let pattern = Pattern::read(asked);
    let is_plain = !pattern.is_glob() && pattern.file.is_none() && pattern.parameters.is_none();
    let last = key(&pattern.name);
    // Few names have its last component. Those of operators may have spaces.
    let may_be = !last.is_empty() && (last.starts_with("operator") || name.contains(&last));
    is_plain && may_be && pattern.fits_inside(name)
}

/// Returns the types of a function's parameters, as its debug information names them.
fn declared<'a>(module: &Arc<Module>, session: &DieReader<'_, 'a>, chain: &[Die<'a>]) -> String {
    for die in chain {
        let mut types = Vec::new();
        session.each_child(die, |tag, offset| {
            let child = die.sibling(offset);
            let chain = session.chain(&child);
            if tag == dw::DW_TAG_unspecified_parameters {
                types.push("...".to_owned());
            } else if tag == dw::DW_TAG_formal_parameter
                && !chain.iter().any(|d| session.flag(d, dw::DW_AT_artificial))
            {
                let ty = chain.iter().find_map(|d| session.follow(d, dw::DW_AT_type));
                types.extend(ty.map(|ty| Type::at(module, DieId::of(&ty)).name()));
            }
            types.len() < MAX_PARAMETERS
        });
        if !types.is_empty() {
            return types.join(",");
        }
    }
    String::new()
}

/// Returns whether a name consists of words separated by dots.
fn is_dotted(name: &str) -> bool {
    let mut words = name.split('.');
    let is_word = |word: &str| {
        let starts = word.starts_with(|c: char| c.is_ascii_alphabetic());
        starts && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    name.contains('.') && words.all(is_word)
}

/// Returns where a file name ends: at the only colon that does not belong to a `::`.
fn file_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b':', Some(b':')) => at += 2,
            (b':', Some(_)) if at > 0 => return Some(at),
            (b'<' | b'(' | b'{', _) => return None,
            _ => at += 1,
        }
    }
    None
}

/// Returns where the parameter list at the end of a name begins.
fn parameters_start(name: &str) -> Option<usize> {
    let mut end = name;
    for qualifier in ["&&", "&", "volatile", "const"] {
        end = end.trim_end().trim_end_matches(qualifier);
    }
    let end = end.trim_end();
    let mut depth = 0usize;
    for (at, byte) in end.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth = depth.saturating_sub(1),
            _ if depth == 0 => return None,
            _ => {}
        }
        if depth == 0 {
            let before = end[..at].trim_end();
            let is_name = before.is_empty() || before.ends_with("::");
            let is_operator = components(before).last() == Some(&"operator");
            return (!is_name && !is_operator).then_some(at);
        }
    }
    None
}

/// Splits a name at `::`, except inside brackets.
fn components(name: &str) -> Vec<&str> {
    let bytes = name.as_bytes();
    let (mut depth, mut start, mut parts) = (0usize, 0, Vec::new());
    for at in 0..bytes.len() {
        match bytes[at] {
            b'<' | b'(' | b'{' | b'[' => depth += 1,
            // The `>` of an arrow closes no bracket.
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && at >= start && bytes.get(at + 1) == Some(&b':') => {
                parts.push(&name[start..at]);
                start = at + 2;
            }
            _ => {}
        }
    }
    parts.push(&name[start..]);
    parts
}

/// Returns the last component of a name, without template arguments, which is its key in the index.
pub(crate) fn key(name: &str) -> String {
    let name = without_tags(name, "");
    let last = components(&name).last().copied().unwrap_or_default();
    match last.strip_prefix("operator\"\"") {
        // The space before the suffix is optional.
        Some(suffix) => format!("operator\"\"{}", suffix.trim_start()),
        None => without_arguments(last).to_owned(),
    }
}

/// Returns `name` without ABI tags (`f[abi:cxx11]`), unless `pattern` has some.
pub(crate) fn without_tags<'n>(name: &'n str, pattern: &str) -> Cow<'n, str> {
    const TAG: &str = "[abi:";
    if pattern.contains(TAG) || !name.contains(TAG) {
        return name.into();
    }
    let mut rest = name;
    let mut bare = String::with_capacity(name.len());
    while let Some((before, tagged)) = rest.split_once(TAG) {
        bare.push_str(before);
        rest = tagged.split_once(']').map_or("", |(_, after)| after);
    }
    bare.push_str(rest);
    bare.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_and_template_arguments_may_be_left_out() {
        for (pattern, name, expected) in [
            ("f", "ns::f", true),
            ("f", "ns::f<int>", true),
            ("f", "f<int>", true),
            ("f", "ns::C<a::f>::g", false),
            ("f", "<T as ns::Trait>::f", true),
            ("f", "ns::ff", false),
            ("f", "ns::f::g", false),
            ("C::g", "ns::C::g", true),
            ("Stack::push", "Stack<int>::push", true),
            ("Stack::push", "ns::Stack<int, 3>::push<long>", true),
            ("Stack<int,3>::push", "ns::Stack<int, 3>::push<long>", true),
            ("Stack<int>::push", "Stack<long>::push", false),
            ("Stack::*", "ns::Stack<int>::push", true),
            ("::f", "f<int>", true),
            ("operator<<", "ns::operator<< <char>", true),
            ("operator->", "ns::P<int>::operator->", true),
            ("P::operator->", "ns::P<int>::operator->", true),
            ("operator()", "main::{lambda()#1}::operator()", true),
            ("name", "ns::name[abi:cxx11]", true),
            ("operator\"\"_s", "operator\"\" _s[abi:cxx11]", true),
            ("operator\"\" _s", "ns::operator\"\" _s", true),
        ] {
            let pattern = Pattern::read(pattern);
            let fits = pattern.fits(Way::WithoutScope, name, "");
            assert_eq!(fits, expected, "{pattern:?} {name}");
            let is_same = key(name) == key(&pattern.name);
            assert!(
                !fits || pattern.is_glob() || is_same,
                "{name}: {}",
                key(name)
            );
        }
    }

    #[test]
    fn functions_are_named_without_scopes_and_arguments() {
        for (asked, name, expected) in [
            ("f", "ns::f<int>", true),
            ("Stack::push", "ns::Stack<int, 3>::push<long>", true),
            (
                "Vec<i32>::push",
                "alloc::vec::Vec<i32, alloc::alloc::Global>::push",
                true,
            ),
            ("app::deep", "app::(anonymous namespace)::deep", true),
            ("Stack::push", "Stack<int>::pushed", false),
            ("Stack::*", "Stack<int>::push", false),
            ("a.c:f", "f", false),
            ("f(int)", "f", false),
            ("", "f", false),
            ("::", "f", false),
        ] {
            assert_eq!(names_function(asked, name), expected, "{asked} {name}");
        }
    }

    #[test]
    fn functions_for_other_objects_are_other_functions() {
        let itself = std::env::current_exe().expect("the test has a file");
        let module = Arc::new(Module::open(itself).expect("it is a module"));
        let linkages = ["_ZN1S1gEv", "_ZNK1S1gEv", "_ZNO1S1gEv", "_ZNKR1S1gEv"];
        for (text, expected) in [
            ("S::g", [true; 4]),
            ("S::g()", [true, false, false, false]),
            ("S::g() const", [false, true, false, false]),
            ("S::g() &&", [false, false, true, false]),
            ("S::g()const&", [false, false, false, true]),
            ("S::g(int)", [false; 4]),
        ] {
            let pattern = Pattern::read(text);
            assert_eq!(pattern.name, "S::g");
            let fits = |linkage| pattern.fits_parameters(&module, || None, Some(linkage));
            assert_eq!(linkages.map(fits), expected, "{text}");
        }
        // The only overload is for const objects, so it is selected.
        let readings = Pattern::read("S::g()").readings();
        let any = readings.last().expect("there are some");
        assert!(any.fits_parameters(&module, || None, Some("_ZNK1S1gEv")));
        assert_eq!(Pattern::read("S::g() const").readings().len(), 1);
    }

    #[test]
    fn names_of_ada_have_dots() {
        for (text, expected) in [
            ("Outer.Stop_Here", Some("outer__stop_here")),
            ("a.b.c", Some("a__b__c")),
            ("main.(*T).f", None),
            ("libc.so.6", None),
            ("f", None),
            ("a::b.c", None),
        ] {
            let readings = Pattern::read(text).readings();
            let found = readings.get(1).map(|reading| &*reading.name);
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn files_and_parameters_are_told_from_names() {
        let read = |text| {
            let pattern = Pattern::read(text);
            (pattern.file, pattern.name.into_owned(), pattern.parameters)
        };
        let list = |list: &str| Some(list.to_owned());
        for (text, expected) in [
            ("f", (None, "f", None)),
            ("a.c:f", (Some("a.c"), "f", None)),
            ("src/a.cc:ns::f", (Some("src/a.cc"), "ns::f", None)),
            ("ns::f", (None, "ns::f", None)),
            ("f(int)", (None, "f", list("int"))),
            ("f()", (None, "f", list(""))),
            ("a.c:f(void)", (Some("a.c"), "f", list(""))),
            ("C::f(char) const", (None, "C::f", list("char"))),
            ("operator()", (None, "operator()", None)),
            ("C::operator()(int)", (None, "C::operator()", list("int"))),
            ("f(void (*)(int))", (None, "f", list("void(*)(int)"))),
            (
                "(anonymous namespace)::f",
                (None, "(anonymous namespace)::f", None),
            ),
        ] {
            let (file, name, parameters) = expected;
            assert_eq!(read(text), (file, name.to_owned(), parameters), "{text}");
        }
    }

    #[test]
    fn types_are_the_same_however_they_are_written() {
        for (one, other) in [
            ("const char *, int", "char const*,int"),
            ("unsigned", "unsigned int"),
            ("long unsigned int", "unsigned long"),
            ("short int&", "short&"),
            ("struct point", "point"),
            (
                "std::vector<int, std::allocator<int> > const&",
                "const std::vector<int,std::allocator<int>>&",
            ),
            (
                "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&",
                "const std::string &",
            ),
            ("void", ""),
            ("a::b<c>::d*", "a::b<c>::d *"),
        ] {
            assert_eq!(canonical(one), canonical(other), "{one}");
        }
        for (one, other) in [
            ("int", "long"),
            ("char*", "char const*"),
            ("char", "signed char"),
            ("char* const", "char const*"),
        ] {
            assert_ne!(canonical(one), canonical(other), "{one}");
        }
    }
}
