//! The patterns of `-f` and `-x`, which select functions.

use std::path::Path;

use debuginfo::{Diagnostic, Glob};

use crate::{Error, Result};

#[derive(Clone, Debug)]
enum Pattern {
    /// Matches the demangled name or the linkage name.
    Name(Glob),
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
    /// Source file.
    pub file: Option<&'a str>,
    /// ELF file.
    pub module: &'a Path,
}

/// Selects the functions that match any include pattern (or all, if there are none) and no exclude pattern.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
}

impl Filter {
    /// Parses patterns: `GLOB`, `file:GLOB` or `module:GLOB`. In a glob `*` matches anything, including `/` and `::`.
    ///
    /// # Errors
    /// [`Error::Pattern`] if a pattern is empty.
    pub fn new(include: &[String], exclude: &[String]) -> Result<Self> {
        let parse = |patterns: &[String]| {
            patterns
                .iter()
                .map(|pattern| Pattern::parse(pattern))
                .collect::<Result<_>>()
        };
        Ok(Self {
            include: parse(include)?,
            exclude: parse(exclude)?,
        })
    }

    /// Returns whether the filter selects a function.
    pub fn wants(&self, subject: Subject<'_>) -> bool {
        let included =
            self.include.is_empty() || self.include.iter().any(|pattern| pattern.matches(subject));
        included && !self.exclude.iter().any(|pattern| pattern.matches(subject))
    }

    /// Returns whether the functions of a module are candidates. Those of the program always are; those of a system
    /// library only if a `module:` pattern names it.
    pub fn considers(&self, module: &Path, is_system: bool) -> bool {
        let named = |patterns: &[Pattern]| {
            patterns.iter().any(
                |pattern| matches!(pattern, Pattern::Module(glob) if glob.matches_path(module)),
            )
        };
        !named(&self.exclude) && (!is_system || named(&self.include))
    }

    /// Returns whether any include pattern was given.
    pub fn is_explicit(&self) -> bool {
        !self.include.is_empty()
    }
}

impl Pattern {
    fn parse(text: &str) -> Result<Self> {
        let (make, glob): (fn(Glob) -> Self, &str) = match text.split_once(':') {
            Some(("file", glob)) => (Self::File, glob),
            Some(("module", glob)) => (Self::Module, glob),
            _ => (Self::Name, text),
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

    fn matches(&self, subject: Subject<'_>) -> bool {
        match self {
            Self::Name(glob) => {
                glob.matches_function(subject.name) || glob.matches(subject.linkage)
            }
            Self::File(glob) => subject
                .file
                .is_some_and(|file| glob.matches_path(Path::new(file))),
            Self::Module(glob) => glob.matches_path(subject.module),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(include: &[&str], exclude: &[&str], name: &str) -> bool {
        let owned =
            |patterns: &[&str]| patterns.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>();
        let subject = Subject {
            name,
            linkage: "_Zlinkage",
            file: Some("/src/queue.c"),
            module: Path::new("/opt/bin/app"),
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
        let libz = Path::new("/usr/lib/libz.so.1");
        assert!(!filter("*").considers(libz, true));
        assert!(filter("module:libz*").considers(libz, true));
        assert!(filter("*").considers(libz, false));
    }
}
