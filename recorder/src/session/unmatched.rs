//! The patterns of `-f` that have matched no function, each with suggestions.

use debuginfo::{Binding, Diagnostic, Glob, Symbol, SymbolKind};

use crate::arm::{Filter, LoadedModule, module_and_name};

/// How similar a name must be to be suggested.
const SIMILAR: f64 = 0.85;
/// The least likeness of names that differ by one slip.
const SLIP: f64 = 0.9;

/// Returns a warning for each pattern that has matched nothing.
pub fn warnings(filter: &Filter, modules: &[LoadedModule]) -> Vec<Diagnostic> {
    let unmatched = filter.unmatched();
    if unmatched.is_empty() {
        return Vec::new();
    }
    let names = Names::of(modules);
    let unmatched = unmatched.into_iter();
    unmatched.map(|pattern| names.warning(pattern)).collect()
}

struct Names {
    functions: Vec<String>,
    chosen_at_run_time: Vec<String>,
    modules: Vec<String>,
    /// Functions of system libraries, each with the library.
    in_libraries: Vec<(usize, String)>,
}

impl Names {
    fn of(modules: &[LoadedModule]) -> Names {
        let mut names = Names {
            functions: Vec::new(),
            chosen_at_run_time: Vec::new(),
            modules: Vec::new(),
            in_libraries: Vec::new(),
        };
        for module in modules {
            let file = module.file.path.file_name().unwrap_or_default();
            names.modules.push(file.to_string_lossy().into_owned());
            let Some(elf) = &module.elf else { continue };
            if !module.is_system {
                let functions = elf.functions().list.iter();
                names
                    .functions
                    .extend(functions.map(|function| function.name.clone()));
            }
            for symbol in elf.symbols() {
                names.add(symbol, module.is_system);
            }
        }
        names
    }

    /// Adds a symbol of the last module.
    fn add(&mut self, symbol: Symbol, is_system: bool) {
        let is_private = is_system && symbol.binding == Binding::Local;
        match symbol.kind {
            SymbolKind::Ifunc => self.chosen_at_run_time.push(symbol.name),
            SymbolKind::Function if !is_private => {
                if is_system {
                    let library = self.modules.len() - 1;
                    self.in_libraries.push((library, symbol.name.clone()));
                }
                self.functions.push(symbol.name);
            }
            SymbolKind::Function | SymbolKind::Cold => {}
        }
    }

    fn warning(&self, pattern: &str) -> Diagnostic {
        let message = format!("-f '{pattern}' matches no function");
        if let Some(module) = pattern.strip_prefix("module:") {
            let modules = self.modules.iter().map(String::as_str);
            return Diagnostic::new(message).with_hint(suggested(module, modules, "module:"));
        }
        if pattern.starts_with("file:") {
            let hint = "the path of a source file, or its last part, is what counts";
            return Diagnostic::new(message).with_hint(hint);
        }
        let name = module_and_name(pattern).map_or(pattern, |(_, name)| name);
        if self.chosen_at_run_time.iter().any(|known| known == name) {
            let why = format!(
                "{message}: its implementation is chosen when the program starts, and the program has no stub ({name}@plt) for it"
            );
            return Diagnostic::new(why).with_hint("record the functions that call it");
        }
        if let Some((library, name)) = module_and_name(pattern)
            && let Some(module) = self.modules.iter().position(|module| module == library)
        {
            let own = self.in_libraries.iter().filter(|(of, _)| *of == module);
            let own = own.map(|(_, name)| name.as_str());
            return Diagnostic::new(message).with_hint(suggested(
                name,
                own,
                &format!("{library}:"),
            ));
        }
        if let Some(library) = self.library_with(pattern) {
            return Diagnostic::new(format!("{message} of the program"))
                .with_hint(format!("those of a library: '{library}:{pattern}'"));
        }
        let others = self.functions.iter().map(String::as_str);
        let others = others.filter(|name| *name != pattern);
        Diagnostic::new(message).with_hint(suggested(pattern, others, ""))
    }

    /// Returns the first library with functions that a pattern matches.
    fn library_with(&self, pattern: &str) -> Option<&str> {
        let glob = Glob::new(pattern);
        let is_meant = |(_, name): &&(usize, String)| glob.matches_function(name);
        let (library, _) = self.in_libraries.iter().find(is_meant)?;
        Some(&self.modules[*library])
    }
}

fn suggested<'a>(wanted: &str, known: impl Iterator<Item = &'a str>, before: &str) -> String {
    let wanted = wanted.to_lowercase();
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        let likeness = strsim::jaro_winkler(&wanted, &name);
        // In a short name one slip is much.
        let is_slip = wanted.chars().count() > 2 && strsim::osa_distance(&wanted, &name) == 1;
        if is_slip {
            likeness.max(SLIP)
        } else {
            likeness
        }
    };
    let nearest = known
        .map(|name| (likeness(name), name))
        .filter(|(likeness, _)| *likeness > SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)));
    match nearest {
        Some((_, name)) => format!("did you mean '{before}{name}'?"),
        None => "`hindsight sql REC \"SELECT name FROM functions\"` of a recording without -f lists names".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_named() {
        let names = Names {
            functions: ["parse_order", "malloc", "fib"].map(str::to_owned).into(),
            chosen_at_run_time: vec!["strlen".to_owned()],
            modules: vec!["libc.so.6".to_owned()],
            in_libraries: vec![(0, "malloc".to_owned())],
        };
        let warned = |pattern: &str| names.warning(pattern).one_line();
        for (pattern, expected) in [
            ("parse_oder", "; did you mean 'parse_order'?"),
            ("fbi", "; did you mean 'fib'?"),
            ("module:libc.so", "; did you mean 'module:libc.so.6'?"),
            ("libc.so.6:maloc", "; did you mean 'libc.so.6:malloc'?"),
            (
                "strlen",
                ": its implementation is chosen when the program starts, and the program has no stub (strlen@plt) for it; \
                 record the functions that call it",
            ),
            (
                "*alloc",
                " of the program; those of a library: 'libc.so.6:*alloc'",
            ),
        ] {
            let expected = format!("-f '{pattern}' matches no function{expected}");
            assert_eq!(warned(pattern), expected);
        }
        assert!(!warned("parse_order").contains("did you mean"));
        assert!(warned("xyzzy").contains("lists names"));
    }
}
