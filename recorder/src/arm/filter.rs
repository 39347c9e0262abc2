//! The patterns of `-f` and `-x`, which select functions.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use debuginfo::{Diagnostic, Glob, Module, function_name, prototypes};

use super::also::Also;
use super::libraries::Library;
use crate::{Error, Result};

#[derive(Clone, Debug)]
enum Pattern {
    /// Matches the demangled name or the linkage name.
    Name(Glob),
    /// `MODULE:NAME` matches the names of functions in ELF files of that name. A name may have a colon itself.
    NameIn {
        /// The ELF file's path, or its last component.
        module: Glob,
        /// The function.
        name: Glob,
        /// All of the text, as a name.
        whole: Glob,
    },
    /// `file:` matches the path of the source file, or its last component.
    File(Glob),
    /// `module:` matches the path of the ELF file, or its last component.
    Module(Glob),
}

/// What a pattern is matched against.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Demangled name.
    pub name: &'a str,
    /// Linkage name.
    pub linkage: &'a str,
    /// Its other names, in a system library.
    pub aliases: &'a [String],
    /// Source file.
    pub file: Option<&'a str>,
    /// ELF file.
    pub module: Place<'a>,
}

/// What patterns see of an ELF file.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Its path.
    pub path: &'a Path,
    /// Whether it is the C library, or a part of it: their functions are selected by patterns of their names.
    pub is_c_library: bool,
}

impl<'a> Place<'a> {
    /// Returns that of `elf`, which was mapped from `path`. Static programs contain the C library, and are none.
    pub(crate) fn of(path: &'a Path, elf: &Module, is_system: bool) -> Self {
        Self {
            path,
            is_c_library: is_system && Library::of(elf).is_some_and(Library::is_of_c),
        }
    }
}

impl Subject<'_> {
    fn is_called(&self, glob: &Glob) -> bool {
        glob.matches_function(self.name)
            || glob.matches(self.linkage)
            || self.aliases.iter().any(|alias| glob.matches(alias))
            || self.in_sources().any(|name| glob.matches(name))
    }

    /// The names that sources have for a function of the C library, where headers put another one in its place.
    fn in_sources(&self) -> impl Iterator<Item = &str> {
        let exported = self.aliases.iter().map(String::as_str);
        let exported = exported.chain([self.linkage]);
        let exported = exported.filter(|_| self.module.is_c_library);
        exported.flat_map(prototypes::in_sources)
    }
}

/// Selects the functions that match any include pattern (or all, if there are none) and no exclude pattern.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    include: Vec<Included>,
    exclude: Vec<Pattern>,
    /// Functions that are selected in addition to those that match.
    also: Also,
}

/// A pattern of `-f`. Copies of a filter share what has matched.
#[derive(Clone, Debug)]
struct Included {
    text: String,
    pattern: Pattern,
    has_matched: Arc<AtomicBool>,
}

/// Characters before the first `*` or `?` that a glob needs to select functions of the C library: `*` alone means the
/// program.
const MIN_LITERAL: usize = 3;

impl Filter {
    /// Parses patterns: `GLOB`, `MODULE:GLOB`, `file:GLOB` or `module:GLOB`. In a glob `*` matches anything, including `/` and `::`.
    ///
    /// # Errors
    /// [`Error::Pattern`] if a pattern is empty.
    pub fn new(include: &[String], exclude: &[String]) -> Result<Self> {
        let included = include.iter().map(|text| {
            Ok(Included {
                text: text.clone(),
                pattern: Pattern::parse(text)?,
                has_matched: Arc::default(),
            })
        });
        let excluded = exclude.iter().map(|text| Pattern::parse(text));
        Ok(Self {
            include: included.collect::<Result<_>>()?,
            exclude: excluded.collect::<Result<_>>()?,
            also: Also::default(),
        })
    }

    /// Adds functions that no pattern needs to match. Those that match an exclude pattern stay out.
    #[must_use]
    pub fn and_also(self, also: Also) -> Self {
        Self { also, ..self }
    }

    /// Returns the functions that no pattern needs to match.
    pub fn also(&self) -> &Also {
        &self.also
    }

    /// Returns whether there are patterns that select functions: without them all of the program's are wanted.
    pub fn has_patterns(&self) -> bool {
        !self.include.is_empty()
    }

    /// Returns whether the filter selects a function.
    pub fn wants(&self, subject: Subject<'_>) -> bool {
        self.selects(subject, self.include.is_empty(), |_| true)
    }

    /// As [`Self::wants`], for a function of a system library that no `module:` pattern names: its name selects it.
    pub fn wants_by_name(&self, subject: Subject<'_>) -> bool {
        let is_c_library = subject.module.is_c_library;
        self.selects(subject, false, |one| one.reaches_library(is_c_library))
    }

    /// Returns whether a pattern selects the stubs that jump to `target`, a function of `module`, by the name of that function.
    /// `is_one`: its stubs may be selected so.
    pub fn wants_stub_of(
        &self,
        target: &str,
        module: Place<'_>,
        is_one: impl FnOnce() -> bool,
    ) -> bool {
        let name = function_name(target);
        let subject = Subject {
            name: name.as_deref().unwrap_or(target),
            linkage: target,
            aliases: &[],
            file: None,
            module,
        };
        let selects = |one: &&Included| {
            one.reaches_library(module.is_c_library) && one.pattern.matches(subject)
        };
        let selecting: Vec<&Included> = self.include.iter().filter(selects).collect();
        let is_excluded = || self.exclude.iter().any(|pattern| pattern.matches(subject));
        if selecting.is_empty() || is_excluded() || !is_one() {
            return false;
        }
        for one in selecting {
            one.has_matched.store(true, Ordering::Relaxed);
        }
        true
    }

    /// `all`: the function is wanted although nothing names it.
    fn selects(&self, subject: Subject<'_>, all: bool, counts: impl Fn(&Included) -> bool) -> bool {
        let mut included = all;
        for one in self.include.iter().filter(|one| counts(one)) {
            if one.pattern.matches(subject) {
                one.has_matched.store(true, Ordering::Relaxed);
                included = true;
            }
        }
        included |= self.also.has(subject);
        included && !self.exclude.iter().any(|pattern| pattern.matches(subject))
    }

    /// Returns whether the functions of a module are candidates. Those of the program always are; those of a system
    /// library only if a pattern names the library, or a function that it `exports`, or if it is the C library and a pattern
    /// may name a function of it.
    pub fn considers(
        &self,
        module: Place<'_>,
        is_system: bool,
        exports: impl Fn(&str) -> bool,
    ) -> bool {
        let mut excluding = self.exclude.iter();
        let is_excluded = excluding.any(|pattern| pattern.is_module(module.path));
        let is_reached = || self.names(module.path) || self.reaches(module, exports);
        !is_excluded && (!is_system || is_reached())
    }

    /// Returns whether a `module:` pattern names the module.
    pub fn names(&self, module: &Path) -> bool {
        self.include.iter().any(|one| one.pattern.is_module(module))
    }

    fn reaches(&self, module: Place<'_>, exports: impl Fn(&str) -> bool) -> bool {
        let Place { path, is_c_library } = module;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let has_function = |one: &Included| match &one.pattern {
            Pattern::NameIn { module: of, .. } => of.matches_path(path),
            _ => one.reaches_library(is_c_library) && (is_c_library || exports(&one.text)),
        };
        is_c_library && !self.also.is_empty()
            || self.also.is_in(&name)
            || self.include.iter().any(has_function)
    }

    /// Returns the include patterns that have matched no function so far.
    pub fn unmatched(&self) -> Vec<&str> {
        let unmatched = |one: &&Included| !one.has_matched.load(Ordering::Relaxed);
        let unmatched = self.include.iter().filter(unmatched);
        unmatched.map(|one| one.text.as_str()).collect()
    }
}

impl Included {
    /// Returns whether the pattern may name functions of a system library: a whole name does, and in the C library so does
    /// a pattern that says enough.
    fn reaches_library(&self, is_c_library: bool) -> bool {
        match (&self.pattern, self.text.find(['*', '?', '['])) {
            (Pattern::NameIn { .. }, _) | (Pattern::Name(_), None) => true,
            (Pattern::Name(_), Some(literal)) => is_c_library && literal >= MIN_LITERAL,
            (Pattern::File(_) | Pattern::Module(_), _) => false,
        }
    }
}

/// Splits `MODULE:NAME` at the only colons that are not those of `::`.
pub(crate) fn module_and_name(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let is_single = |at: &usize| {
        bytes[*at] == b':' && bytes.get(at + 1) != Some(&b':') && bytes[at - 1] != b':'
    };
    let at = (1..bytes.len().saturating_sub(1)).find(is_single)?;
    Some((&text[..at], &text[at + 1..]))
}

impl Pattern {
    fn parse(text: &str) -> Result<Self> {
        let (make, glob): (fn(Glob) -> Self, &str) = match text.split_once(':') {
            Some(("file", glob)) => (Self::File, glob),
            Some(("module", glob)) => (Self::Module, glob),
            _ => (Self::name, text),
        };
        if glob.is_empty() {
            let reason =
                Diagnostic::new("it is empty").with_hint("write a name, file:GLOB or module:GLOB");
            return Err(Error::Pattern {
                pattern: text.to_owned(),
                reason,
            });
        }
        Ok(make(Glob::new(glob)))
    }

    /// A name alone, or in a module.
    fn name(whole: Glob) -> Self {
        match module_and_name(whole.text()) {
            None => Self::Name(whole),
            Some((module, name)) => Self::NameIn {
                module: Glob::new(module),
                name: Glob::new(name),
                whole,
            },
        }
    }

    fn is_module(&self, module: &Path) -> bool {
        matches!(self, Self::Module(glob) if glob.matches_path(module))
    }

    fn matches(&self, subject: Subject<'_>) -> bool {
        match self {
            Self::Name(glob) => subject.is_called(glob),
            Self::NameIn {
                module,
                name,
                whole,
            } => {
                subject.is_called(whole)
                    || module.matches_path(subject.module.path) && subject.is_called(name)
            }
            Self::File(glob) => subject
                .file
                .is_some_and(|file| glob.matches_path(Path::new(file))),
            Self::Module(glob) => glob.matches_path(subject.module.path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Captures;

    fn place(path: &str) -> Place<'_> {
        Place {
            path: Path::new(path),
            is_c_library: path.ends_with("/libc.so.6"),
        }
    }

    fn wants(include: &[&str], exclude: &[&str], name: &str) -> bool {
        let owned =
            |patterns: &[&str]| patterns.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>();
        let subject = Subject {
            name,
            linkage: "_Zlinkage",
            aliases: &[],
            file: Some("/src/queue.c"),
            module: place("/opt/bin/app"),
        };
        Filter::new(&owned(include), &owned(exclude))
            .unwrap()
            .wants(subject)
    }

    #[test]
    fn without_patterns_everything_is_wanted() {
        assert!(wants(&[], &[], "main"));
        assert!(!wants(&[], &["m*"], "main"));
    }

    #[test]
    fn globs_cross_namespaces_and_match_linkage_names() {
        assert!(wants(&["a::*"], &[], "a::b::c"));
        assert!(wants(&["_Zlink*"], &[], "a::b"));
        assert!(!wants(&["b*"], &[], "a::b"));
    }

    #[test]
    fn names_with_glob_characters_match_themselves() {
        assert!(wants(
            &["std::vector<int>::operator[]"],
            &[],
            "std::vector<int>::operator[]"
        ));
        assert!(wants(
            &["app::main::{closure#0}"],
            &[],
            "app::main::{closure#0}"
        ));
        assert!(wants(&["{{closure"], &[], "{{closure"));
    }

    #[test]
    fn files_and_modules_match_by_path_or_last_part() {
        for pattern in ["file:queue.c", "file:/src/*", "module:app", "module:/opt/*"] {
            assert!(wants(&[pattern], &[], "x"), "{pattern}");
        }
        assert!(!wants(&["file:main.c"], &[], "x"));
    }

    #[test]
    fn a_name_may_be_in_a_module() {
        assert!(wants(&["app:parse*"], &[], "parse_order"));
        assert!(wants(&["/opt/*:a::b"], &[], "a::b"));
        assert!(!wants(&["app:parse"], &[], "x") && !wants(&["other:x"], &[], "x"));
        assert!(!wants(&["x"], &["app:x"], "x"));
        // Names of Go.
        assert!(wants(&["type:.eq.*"], &[], "type:.eq.main.T"));
        for text in ["a::b", "::b", ":b", "b:", "", ":"] {
            assert_eq!(module_and_name(text), None, "{text}");
        }
        assert_eq!(module_and_name("l.so:a::b"), Some(("l.so", "a::b")));
        assert_eq!(module_and_name("a::b:c"), Some(("a::b", "c")));
    }

    #[test]
    fn an_empty_pattern_is_refused() {
        for pattern in ["", "file:", "module:"] {
            assert!(
                matches!(
                    Filter::new(&[pattern.into()], &[]),
                    Err(Error::Pattern { .. })
                ),
                "{pattern:?}"
            );
        }
    }

    #[test]
    fn system_libraries_are_reached_only_by_module_patterns() {
        let filter = |pattern: &str| Filter::new(&[pattern.to_owned()], &[]).unwrap();
        let libz = place("/usr/lib/libz.so.1");
        assert!(!filter("*").considers(libz, true, |_| false));
        assert!(filter("module:libz*").considers(libz, true, |_| false));
        assert!(filter("*").considers(libz, false, |_| false));
    }

    #[test]
    fn options_reach_their_functions_alone() {
        let also = Also::of(&Captures {
            memory: true,
            ..Captures::default()
        });
        let libc = place("/usr/lib/x86_64-linux-gnu/libc.so.6");
        let of = |name: &'static str| Subject {
            name,
            linkage: name,
            aliases: &[],
            file: None,
            module: libc,
        };
        let everything = Filter::new(&[], &[]).unwrap().and_also(also.clone());
        assert!(everything.considers(libc, true, |_| false));
        assert!(!everything.considers(place("/usr/lib/libz.so.1"), true, |_| false));
        assert!(everything.considers(place("/usr/lib/libstdc++.so.6"), true, |_| false));
        assert!(everything.wants_by_name(of("malloc")));
        assert!(!everything.wants_by_name(of("printf")));
        let one = Filter::new(&["parse".to_owned()], &[]).unwrap();
        let one = one.and_also(also.clone());
        assert!(one.wants(of("malloc")) && !one.wants(of("main")));
        let none = Filter::new(&[], &["free".to_owned()]).unwrap();
        let none = none.and_also(also);
        assert!(none.wants_by_name(of("malloc")) && !none.wants_by_name(of("free")));
    }

    #[test]
    fn functions_that_headers_put_in_place_of_others_have_their_names() {
        let is_wanted = |pattern: &str, name: &'static str, module: &'static str| {
            let subject = Subject {
                name,
                linkage: name,
                aliases: &[],
                file: None,
                module: place(module),
            };
            let filter = Filter::new(&[pattern.to_owned()], &[]).unwrap();
            filter.wants_by_name(subject)
        };
        assert!(is_wanted("printf", "__printf_chk", "/lib/libc.so.6"));
        assert!(is_wanted("sscan*", "__isoc99_sscanf", "/lib/libc.so.6"));
        assert!(!is_wanted("fprintf", "__printf_chk", "/lib/libc.so.6"));
        assert!(!is_wanted("printf", "__printf_chk", "/lib/libz.so.1"));
    }

    #[test]
    fn other_libraries_are_reached_by_whole_names() {
        let filter = |pattern: &str| Filter::new(&[pattern.to_owned()], &[]).unwrap();
        let libz = place("/usr/lib/libz.so.1");
        let considers = |pattern: &str| {
            filter(pattern).considers(libz, true, |name| matches!(name, "inflate" | "*flate"))
        };
        for pattern in ["inflate", "libz*:*flate"] {
            assert!(considers(pattern), "{pattern}");
        }
        for pattern in [
            "deflate",
            "infl*",
            "*flate",
            "libc*:inflate",
            "file:inflate",
        ] {
            assert!(!considers(pattern), "{pattern}");
        }
        let subject = Subject {
            name: "inflate",
            linkage: "inflate",
            aliases: &[],
            file: None,
            module: libz,
        };
        for pattern in ["inflate", "libz.so.1:in*"] {
            assert!(filter(pattern).wants_by_name(subject), "{pattern}");
        }
        // What such a pattern names does not make others reach the library.
        let owned = ["libz.so.1:deflate", "*", "infl*"].map(str::to_owned);
        let several = Filter::new(&owned, &[]).unwrap();
        assert!(several.considers(libz, true, |_| false) && !several.wants_by_name(subject));
    }

    #[test]
    fn the_c_library_is_reached_by_names() {
        let filter = |pattern: &str| Filter::new(&[pattern.to_owned()], &[]).unwrap();
        let libc = place("/usr/lib/x86_64-linux-gnu/libc.so.6");
        for pattern in ["malloc", "pthread_*", "io"] {
            assert!(
                filter(pattern).considers(libc, true, |_| false),
                "{pattern}"
            );
        }
        for pattern in ["*", "ma*", "file:malloc.c", "module:app"] {
            assert!(
                !filter(pattern).considers(libc, true, |_| false),
                "{pattern}"
            );
        }
        let open = filter("open");
        let subject = Subject {
            name: "__open64",
            linkage: "__open64",
            aliases: &["open".to_owned()],
            file: None,
            module: libc,
        };
        assert_eq!(open.unmatched(), ["open"]);
        assert!(open.wants_by_name(subject));
        assert!(open.clone().unmatched().is_empty());
        assert!(!filter("module:libc*").wants_by_name(subject));
    }
}
