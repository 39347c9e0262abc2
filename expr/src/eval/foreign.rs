//! Names of other modules. They are taken only if the module or the file is written; otherwise the error says where they are.

use crate::eval::Evaluator;
use crate::eval::names::entry_in;
use debuginfo::scope::{Variable, defines, globals_of, globals_of_file, split_module};
use debuginfo::{Diagnostic, Mapped};

/// Names of so many characters are not looked for in libraries of the system.
const SHORT: usize = 2;
/// Most modules that an error names.
const MOST_NAMED: usize = 3;

impl Evaluator<'_> {
    /// Returns the variable of a quoted source file, `'file.c'::x`, if exactly one other module has it.
    pub(super) fn of_foreign_file(&self, name: &str) -> Option<Variable> {
        let mut found = self.in_foreign_files(name);
        let (_, variable) = found.pop().filter(|_| found.is_empty())?;
        Some(variable)
    }

    /// Returns the variables of a quoted source file in other modules, sorted: the first one of each.
    fn in_foreign_files(&self, name: &str) -> Vec<(&Mapped, Variable)> {
        let quoted = split_module(name).filter(|_| name.starts_with('\''));
        let Some((file, plain)) = quoted else {
            return Vec::new();
        };
        let foreign = self.look.space.foreign(self.site.lookup_pc).into_iter();
        let of_file = |m| {
            let first = globals_of_file(m, file, plain).into_iter().next();
            first.map(|variable| (m, variable))
        };
        let mut found: Vec<(&Mapped, Variable)> = foreign.filter_map(of_file).collect();
        found.sort_by_key(|(m, _)| m.file_name());
        found
    }

    /// Returns a diagnostic if several other modules have the variable of a quoted source file.
    pub(super) fn of_several_files(&self, name: &str) -> Option<Diagnostic> {
        let (file, plain) = split_module(name)?;
        let found = self.in_foreign_files(name);
        if found.len() < 2 {
            return None;
        }
        let modules: Vec<&Mapped> = found.iter().map(|(m, _)| *m).collect();
        let files = named(&modules);
        let what = Diagnostic::new(format!("{files} each have a file {file} with \"{plain}\""));
        let is_meant = |(m, variable): &&(&Mapped, Variable)| {
            let first = globals_of(m, self.site, plain).into_iter().next();
            first.is_some_and(|first| first.is_same(variable))
        };
        let meant = found.iter().filter(is_meant).take(MOST_NAMED);
        let ways: Vec<String> = meant.map(|(m, _)| m.with_name(plain)).collect();
        Some(what.with_hint(match ways.is_empty() {
            true => "write more of the path of the file".to_owned(),
            false => format!("write which one: {}", joined(&ways, "or")),
        }))
    }

    /// Returns the entry of the function of this name and the file that it is in, if exactly one other module has one. Private
    /// functions of the dynamic linker do not count.
    pub(super) fn only_elsewhere(&self, name: &str) -> Option<(u64, String)> {
        let plain = name.strip_prefix("::").unwrap_or(name);
        let foreign = self.look.space.foreign(self.site.lookup_pc).into_iter();
        let found = foreign.filter_map(|m| Some((entry_in(&[m], plain)?, m.file_name())));
        let found: Vec<(u64, String)> = found.collect();
        let mut found = without_linker(found, |(_, file)| file.clone());
        match found.len() {
            1 => found.pop(),
            _ => None,
        }
    }

    /// Returns a diagnostic if other modules have something of this name.
    pub(super) fn elsewhere(&self, name: &str) -> Option<Diagnostic> {
        let plain = name.strip_prefix("::").unwrap_or(name);
        let found = self.modules_with(plain);
        let (first, others) = found.split_first()?;
        let files = named(&found);
        if others.is_empty() {
            let what = Diagnostic::new(format!("no \"{name}\" here, but one in {files}"));
            let way = first.with_name(plain);
            return Some(what.with_hint(format!("if that is meant, write {way}")));
        }
        let what = Diagnostic::new(format!("no \"{name}\" here, but {files} have one each"));
        let ways = found.iter().take(MOST_NAMED).map(|m| m.with_name(plain));
        let ways = joined(&ways.collect::<Vec<String>>(), "or");
        Some(what.with_hint(format!("write which one: {ways}")))
    }

    /// Returns the other modules that have something of this name, those of the system last.
    fn modules_with(&self, plain: &str) -> Vec<&Mapped> {
        // A letter or two hardly mean something of the system's: a variable is not in scope.
        let is_short = plain.chars().count() <= SHORT;
        let mut foreign = self.look.space.foreign(self.site.lookup_pc);
        foreign.retain(|m| !(is_short && m.is_system));
        let has = |m: &&Mapped| defines(m, plain) || entry_in(&[*m], plain).is_some();
        let mut found: Vec<&Mapped> = foreign.iter().copied().filter(has).collect();
        if found.is_empty() {
            // Declarations of several modules are of one variable.
            let declares = |m: &&Mapped| !globals_of(m, self.site, plain).is_empty();
            found = foreign.into_iter().find(declares).into_iter().collect();
        }
        found.sort_by_key(|m| (m.is_system, m.file_name()));
        without_linker(found, |m| m.file_name())
    }
}

/// Leaves out what is in the dynamic linker, if anything is elsewhere: it has private copies of functions of the C library.
fn without_linker<T>(found: Vec<T>, file: impl Fn(&T) -> String) -> Vec<T> {
    let is_linker = |one: &T| file(one).starts_with("ld-");
    let (linker, others): (Vec<T>, Vec<T>) = found.into_iter().partition(is_linker);
    match others.is_empty() {
        true => linker,
        false => others,
    }
}

/// Lists the first modules by their file names, and counts the others.
fn named(modules: &[&Mapped]) -> String {
    let files = modules.iter().take(MOST_NAMED).map(|m| m.file_name());
    let files: Vec<String> = files.collect();
    match modules.len() - files.len() {
        0 => joined(&files, "and"),
        more => format!("{} and {more} more", files.join(", ")),
    }
}

/// Joins words as in a sentence: `a, b or c`.
fn joined(words: &[String], last: &str) -> String {
    match words.split_last() {
        Some((end, [])) => end.clone(),
        Some((end, others)) => format!("{} {last} {end}", others.join(", ")),
        None => String::new(),
    }
}
