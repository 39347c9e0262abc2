//! Resolves a line of a source file to the places of its code, one for each copy.
//!
//! A copy is a function, or an inlined instance of one. A line often has several stretches of code in one copy (a
//! loop's condition, moved code). Its place is the lowest statement, as in other debuggers, but one in rarely executed
//! code only if there is no other. Statements in different lexical blocks of a copy are separate places, because a
//! closing brace may end several blocks, on different ways out.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::model::{LineError, LinePlace};
use super::prologue;
use super::table::Row;
use super::units::{CodeUnit, last_component};
use crate::address_space::{AddressSpace, Mapped};
use crate::model::Svma;

/// Names listed by an error.
const MAX_NEAREST: usize = 5;
/// Following lines tried in place of a line without code.
const MAX_FOLLOWING: usize = 64;

impl AddressSpace {
    /// Returns the places of the code of `file`:`line`, by address. `file` is a path or its last components.
    ///
    /// A line without code is moved to the next line with code, as in gdb; [`LinePlace::line`] has the result. With a
    /// `column`, only the statements that cover it are considered, or else those nearest to it. Without one, the first
    /// statement of each copy is.
    ///
    /// # Errors
    /// There is no such file, no code at or after the line, or the line's statements have no columns.
    pub fn resolve_line(
        &self,
        file: &str,
        line: u32,
        column: Option<u32>,
    ) -> Result<Vec<LinePlace>, LineError> {
        let found = self.units_with(file)?;
        let mut places = found.statements(line);
        if places.is_empty() {
            places = found.moved(line);
        } else if column.is_none() {
            places = beginning(places);
        }
        if places.is_empty() {
            return Err(LineError::NoCode {
                file: file.to_owned(),
                line,
                valid: found.nearest(line),
            });
        }
        if let Some(column) = column {
            places = at_column(places, file, column)?;
        }
        let mut answer: Vec<LinePlace> = lowest(places).iter().map(Statement::place).collect();
        answer.sort_by_key(|p| (p.address, p.inlined));
        answer.dedup_by_key(|p| p.address);
        Ok(answer)
    }

    /// Returns the lines of `file` with code, in order. `file` is as for [`AddressSpace::resolve_line`].
    ///
    /// # Errors
    /// There is no such file.
    pub fn valid_lines(&self, file: &str) -> Result<Vec<u32>, LineError> {
        Ok(self
            .units_with(file)?
            .lines(1, usize::MAX)
            .into_iter()
            .collect())
    }

    /// Returns the units whose line tables name the file.
    fn units_with(&self, file: &str) -> Result<Found<'_>, LineError> {
        let mut found = Found { units: Vec::new() };
        let mut has_tables = false;
        for mapped in self.modules() {
            let module = &mapped.module;
            let units = module.units();
            has_tables |= !units.all_files(module).is_empty();
            let named = last_component(file).map(|name| units.with_name(module, name));
            for of_unit in named.unwrap_or_default().chunk_by(|a, b| a.0 == b.0) {
                let unit = &units.list[of_unit[0].0 as usize];
                let names = unit.files(module);
                let numbers = of_unit.iter().map(|(_, number)| *number);
                let is_it = |number: &u32| is_named(&names[*number as usize], file);
                let files: Vec<u32> = numbers.filter(is_it).collect();
                if !files.is_empty() {
                    found.units.push((mapped, unit, files));
                }
            }
        }
        match (found.units.is_empty(), has_tables) {
            (false, _) => Ok(found),
            (true, false) => Err(LineError::NoLineTables),
            (true, true) => Err(LineError::UnknownFile {
                file: file.to_owned(),
                nearest: self.nearest_files(file),
            }),
        }
    }

    /// Returns the files with the names most similar to `wanted`: those of the program and its own libraries, or if none
    /// of them is similar, those of the system.
    fn nearest_files(&self, wanted: &str) -> Vec<Arc<str>> {
        let of = |is_system: bool| {
            let modules = self.modules().iter().filter(|m| m.is_system == is_system);
            let files = modules.flat_map(|m| m.module.units().all_files(&m.module).to_vec());
            let all: BTreeSet<Arc<str>> = files.collect();
            nearest_files(all, wanted)
        };
        let own = of(false);
        if own.is_empty() { of(true) } else { own }
    }
}

/// Units, each with its numbers for the file.
struct Found<'s> {
    units: Vec<(&'s Mapped, &'s CodeUnit, Vec<u32>)>,
}

#[derive(Clone, Copy)]
struct Statement<'s> {
    mapped: &'s Mapped,
    unit: &'s CodeUnit,
    row: Row,
    /// The innermost function or inlined copy around the statement.
    scope: Option<usize>,
    /// The innermost lexical block of that scope around the statement.
    block: Option<usize>,
}

impl<'s> Found<'s> {
    /// Returns the lines with statements, starting at `first`; at most `count` for each file of a unit.
    fn lines(&self, first: u32, count: usize) -> BTreeSet<u32> {
        let mut lines = BTreeSet::new();
        for (mapped, unit, files) in &self.units {
            let table = unit.lines(&mapped.module);
            for file in files {
                let mut last = 0;
                let mut found = 0;
                for row in table.statements_from(*file, first) {
                    if row.line != last {
                        found += 1;
                        last = row.line;
                    }
                    if found > count {
                        break;
                    }
                    lines.insert(row.line);
                }
            }
        }
        lines
    }

    fn statements(&self, line: u32) -> Vec<Statement<'s>> {
        let mut places = Vec::new();
        for (mapped, unit, files) in &self.units {
            let (mapped, unit): (&'s Mapped, &'s CodeUnit) = (mapped, unit);
            let table = unit.lines(&mapped.module);
            let rows = files.iter().flat_map(|file| table.statements(*file, line));
            places.extend(rows.map(|row| {
                let scopes = unit.scopes(&mapped.module);
                let scope = scope_of(unit, mapped, row);
                Statement {
                    mapped,
                    unit,
                    row: *row,
                    scope,
                    block: scope.and_then(|at| scopes.block(at, row.address)),
                }
            }));
        }
        places
    }

    /// Returns the statements of the next line with code.
    fn moved(&self, line: u32) -> Vec<Statement<'s>> {
        let following = self.lines(line.saturating_add(1), MAX_FOLLOWING);
        let following = following.into_iter().take(MAX_FOLLOWING);
        let mut found = following.map(|next| beginning(self.statements(next)));
        found.find(|places| !places.is_empty()).unwrap_or_default()
    }

    /// Returns the nearest line with code on each side.
    fn nearest(&self, line: u32) -> Vec<u32> {
        let lines = self.lines(1, usize::MAX);
        let before = lines.range(..line).next_back();
        let after = lines.range(line..).next();
        before.into_iter().chain(after).copied().collect()
    }
}

impl Statement<'_> {
    /// Returns what identifies the function or inlined copy.
    fn copy(&self) -> (u32, usize, Option<usize>) {
        (self.mapped.number, self.unit.index, self.scope)
    }

    /// Returns whether the statement is in a part of its function without the entry: rarely executed code.
    fn is_split_off(&self) -> bool {
        let scopes = self.unit.scopes(&self.mapped.module);
        let address = self.row.address;
        let function = scopes.chain(address).first().map(|at| &scopes.list[*at]);
        let first = function.and_then(|f| f.ranges.first());
        first.is_some_and(|(from, to)| !(*from..*to).contains(&address))
    }

    fn place(&self) -> LinePlace {
        let module = &self.mapped.module;
        let scopes = self.unit.scopes(module);
        let lines = self.unit.lines(module);
        let mut scope = self.scope.map(|at| &scopes.list[at]);
        let mut row = self.row;
        let mut address = row.address;
        // Applies also if the function begins with a copy of another one.
        let around = scopes.chain(address).first().map(|at| &scopes.list[*at]);
        if let Some(function) = around.filter(|s| s.parent.is_none() && s.entry() == address) {
            // The frame does not exist yet, so arguments and variables cannot be read.
            address = prologue::end(module, self.unit, function);
            if address != row.address {
                scope = Some(function);
            }
            let behind = lines
                .row_at(address)
                .filter(|r| r.file == row.file && r.line > 0);
            row = behind.copied().unwrap_or(row);
        }
        LinePlace {
            address: self.mapped.address(Svma(address)),
            file: lines
                .files
                .get(row.file as usize)
                .cloned()
                .unwrap_or_default(),
            line: row.line,
            column: row.column,
            function: scope.and_then(|s| s.name.clone()),
            inlined: scope.is_some_and(|s| s.parent.is_some()),
            module: self.mapped.number,
        }
    }
}

/// Returns the innermost function or copy whose line the row states. An inlined copy often begins with a row of the
/// line that calls it, which another row at that address replaces: this row belongs to the caller.
fn scope_of(unit: &CodeUnit, mapped: &Mapped, row: &Row) -> Option<usize> {
    let scopes = unit.scopes(&mapped.module);
    let chain = scopes.chain(row.address);
    let lines = unit.lines(&mapped.module);
    let file = lines.files.get(row.file as usize);
    let is_called = |at: &usize| {
        let call = scopes.list[*at].call.as_ref();
        call.is_some_and(|call| call.line == row.line && Some(&call.file) == file)
    };
    let called = match row.superseded {
        true => chain.iter().position(is_called),
        false => None,
    };
    chain[..called.unwrap_or(chain.len())].last().copied()
}

/// Returns the statements that are places of their own. A copy without one in its main part keeps the others there,
/// because the line is executed in the copy, and its rarely executed part would show some of it only.
fn beginning(mut places: Vec<Statement<'_>>) -> Vec<Statement<'_>> {
    let own = places.iter().filter(|place| !place.row.superseded);
    let in_main = own.filter(|place| !place.is_split_off());
    let complete: HashSet<_> = in_main.map(Statement::copy).collect();
    let own = places.iter().filter(|place| !place.row.superseded);
    let begun: HashSet<_> = own.map(Statement::copy).collect();
    places.retain(|place| {
        let copy = place.copy();
        !place.row.superseded
            || !complete.contains(&copy) && (!place.is_split_off() || !begun.contains(&copy))
    });
    places
}

/// Returns the lowest statement of each copy. A split-off part is used only if there is no other.
fn lowest(places: Vec<Statement<'_>>) -> Vec<Statement<'_>> {
    let mut copies = BTreeMap::new();
    for place in places {
        // Code outside functions forms one copy for each address.
        let alone = place.scope.is_none().then_some(place.row.address);
        let key = (place.copy(), place.block, alone);
        let known = copies.entry(key).or_insert(place);
        let rank = |p: &Statement<'_>| (p.is_split_off(), p.row.address);
        if rank(&place) < rank(known) {
            *known = place;
        }
    }
    copies.into_values().collect()
}

/// Returns the statements that cover `column`: those with the last column up to it, or else those with the first
/// column.
fn at_column<'s>(
    mut places: Vec<Statement<'s>>,
    file: &str,
    column: u32,
) -> Result<Vec<Statement<'s>>, LineError> {
    let line = places[0].row.line;
    let columns = places.iter().map(|p| p.row.column);
    let columns: BTreeSet<u32> = columns.filter(|c| *c > 0).collect();
    let before = columns.range(..=column).next_back();
    let Some(nearest) = before.or(columns.first()).copied() else {
        return Err(LineError::NoColumns {
            file: file.to_owned(),
            line,
        });
    };
    places.retain(|p| p.row.column == nearest);
    Ok(places)
}

/// Returns whether `wanted` is `path` or its last components. `.` and `..` are resolved textually.
pub(super) fn is_named(path: &str, wanted: &str) -> bool {
    if path.is_empty() || wanted.is_empty() {
        return false;
    }
    // Most paths already differ in their last component.
    if last_component(path) != last_component(wanted) {
        return false;
    }
    let (have, want) = (components(path), components(wanted));
    match wanted.starts_with('/') {
        true => have == want && path.starts_with('/'),
        false => have.ends_with(&want),
    }
}

fn components(path: &str) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if all.last().is_some_and(|last| *last != "..") => {
                all.pop();
            }
            part => all.push(part),
        }
    }
    all
}

/// Returns the files with the names most similar to `wanted`.
fn nearest_files(all: impl IntoIterator<Item = Arc<str>>, wanted: &str) -> Vec<Arc<str>> {
    let name = |path: &str| {
        components(path)
            .last()
            .map_or(String::new(), |n| n.to_lowercase())
    };
    let wanted_name = name(wanted);
    // The largest distance at which two names may still be mistaken for each other.
    let most = wanted_name.chars().count() / 3;
    let rated = all.into_iter().filter_map(|path| {
        let name = name(&path);
        let distance = match name.contains(&wanted_name) || wanted_name.contains(&name) {
            true => name.len().abs_diff(wanted_name.len()).min(1),
            false => distance(&name, &wanted_name),
        };
        (distance <= most).then_some((distance, path))
    });
    let mut rated: Vec<_> = rated.collect();
    rated.sort();
    let best = rated.into_iter().take(MAX_NEAREST);
    best.map(|(_, path)| path).collect()
}

/// Returns the edit distance of two texts: the characters to insert, remove or replace, and the neighbours to exchange.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(256).collect();
    let b: Vec<char> = b.chars().take(256).collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            let is_exchange = i > 1 && j > 1 && (a[i - 1], a[i - 2]) == (b[j - 2], b[j - 1]);
            if is_exchange {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_its_last_components() {
        let path = "/home/me/src/../lib/./file.c";
        for (wanted, expected) in [
            ("file.c", true),
            ("lib/file.c", true),
            ("./file.c", true),
            ("/home/me/lib/file.c", true),
            ("/lib/file.c", false),
            ("src/file.c", false),
            ("ile.c", false),
            ("", false),
        ] {
            assert_eq!(is_named(path, wanted), expected, "{wanted}");
        }
    }

    #[test]
    fn similar_names_are_offered_and_others_not() {
        let all = || -> [Arc<str>; 5] {
            let paths = [
                "/a/main.c",
                "/a/mein.c",
                "/b/list.h",
                "/c/fib.c",
                "/c/fts.c",
            ];
            paths.map(Arc::from)
        };
        let near = |wanted: &str| -> Vec<String> {
            let found = nearest_files(all(), wanted);
            found.iter().map(|path| path.to_string()).collect()
        };
        assert_eq!(near("mian.c"), ["/a/main.c", "/a/mein.c"]);
        // Two of the three letters of the other one differ.
        assert_eq!(near("fbi.c"), ["/c/fib.c"]);
        assert_eq!(near("fib.cc"), ["/c/fib.c"]);
        assert!(near("completely_different.rs").is_empty());
    }

    #[test]
    fn two_letters_in_the_wrong_order_are_one_slip() {
        for (a, b, expected) in [
            ("fbi", "fib", 1),
            ("fib", "fib", 0),
            ("fib", "fibs", 1),
            ("", "abc", 3),
            ("mian", "mein", 2),
            ("fbi", "fts", 2),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
