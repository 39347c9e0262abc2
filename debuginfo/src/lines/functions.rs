//! Finds functions by address and by name, for breakpoints on them.

use std::ops::Range;
use std::sync::Arc;

use super::model::{FunctionPlace, InlinedCall, InlinedCopy, LinePlace};
use super::pattern::{Pattern, Way};
use super::prologue;
use super::scopes::{FunctionScope, Scopes};
use super::units::CodeUnit;
use crate::address_space::{AddressSpace, Mapped};
use crate::dies::Home;
use crate::model::{Function, Svma, Symbol, SymbolKind};
use crate::module::Module;
use crate::scope::function_at;
use crate::types::DieId;

impl Mapped {
    /// Returns the functions whose whole name or alias, in the source or for the linker, is `name`.
    pub fn functions_called(&self, name: &str) -> Vec<FunctionPlace> {
        matching(self, &Pattern::read(name), Way::Whole)
    }

    /// Like [`AddressSpace::functions_matching`], for this module alone.
    pub fn functions_matching(&self, pattern: &str) -> Vec<FunctionPlace> {
        let readings = readings(pattern);
        let mut found = readings.iter().map(|(of, way)| matching(self, of, *way));
        found.find(|all| !all.is_empty()).unwrap_or_default()
    }

    /// Returns the copies of the functions that `pattern` names where they are inlined, in the order of the debug
    /// information. `pattern` is as for [`AddressSpace::functions_matching`]; with `*` or `?` it selects none.
    pub fn inlined_copies(&self, pattern: &str) -> Vec<InlinedCopy> {
        let readings = readings(pattern);
        let named = readings.iter().filter(|(pattern, _)| !pattern.is_glob());
        let mut found = named.map(|(pattern, way)| {
            let all = scopes_of_copies(self, pattern, *way).into_iter();
            let copies = all.map(|(_, scopes, at)| inlined_copy(self, scopes, at));
            copies.collect::<Vec<_>>()
        });
        found.find(|all| !all.is_empty()).unwrap_or_default()
    }
}

impl AddressSpace {
    /// Returns the function whose code contains `address`, from the debug information or else from the symbols. Code
    /// inlined into a function counts as part of it.
    #[must_use]
    pub fn function_at(&self, address: u64) -> Option<FunctionPlace> {
        let mapped = self.at(address)?;
        let svma = mapped.svma(address);
        let unit = mapped.module.units().find(svma.0);
        let described = unit.and_then(|unit| described(mapped, unit, svma.0));
        described.or_else(|| {
            let (name, start) = mapped.module.symbol_at(svma)?;
            Some(plain(mapped, name, start))
        })
    }

    /// Returns the name and address of the symbol or stub (`NAME@plt`) whose code contains `address`.
    #[must_use]
    pub fn symbol_at(&self, address: u64) -> Option<(String, u64)> {
        let mapped = self.at(address)?;
        let (name, start) = mapped.module.symbol_at(mapped.svma(address))?;
        Some((name, mapped.address(start)))
    }

    /// Returns the functions with machine code that `pattern` names, by module and address.
    ///
    /// `pattern` is a readable or linker name, in which `*` matches any text and `?` one character. A name without
    /// scope or template arguments selects all functions of that name, unless one has exactly that name. A parameter
    /// list, as in `f(int)`, selects the functions with these parameters. A file, as in `parse.c:f`, selects the
    /// functions declared in it. Reads the debug information of all modules, or the symbols of a module without any.
    #[must_use]
    pub fn functions_matching(&self, pattern: &str) -> Vec<FunctionPlace> {
        for (pattern, way) in &readings(pattern) {
            let found = |m: &Mapped| matching(m, pattern, *way);
            let all: Vec<FunctionPlace> = self.modules().iter().flat_map(found).collect();
            if !all.is_empty() {
                return all;
            }
        }
        Vec::new()
    }

    /// Returns the places for breakpoints on the functions that `pattern` names, by module and address: after the
    /// prologue of each function, and at the start of each inlined copy. `pattern` is as for
    /// [`AddressSpace::functions_matching`]. With `*` or `?` it selects no copies, of which there may be very many.
    #[must_use]
    pub fn function_places(&self, pattern: &str) -> Vec<LinePlace> {
        for (pattern, way) in &readings(pattern) {
            let found = |m: &Mapped| {
                let own = matching(m, pattern, *way).into_iter();
                let mut places: Vec<LinePlace> = own.map(|f| entered(m, f)).collect();
                if !pattern.is_glob() {
                    places.extend(copies(m, pattern, *way));
                }
                places.sort_by_key(|place| (place.address, place.inlined));
                places.dedup_by_key(|place| place.address);
                places
            };
            let all: Vec<LinePlace> = self.modules().iter().flat_map(found).collect();
            if !all.is_empty() {
                return all;
            }
        }
        Vec::new()
    }
}

/// Returns the possible meanings of a pattern, best first.
fn readings(pattern: &str) -> Vec<(Pattern<'_>, Way)> {
    let readings = Pattern::read(pattern).readings();
    let ways = [Way::Whole, Way::WithoutScope];
    readings
        .into_iter()
        .flat_map(|reading| ways.map(|way| (reading.clone(), way)))
        .collect()
}

/// Returns the place of the function that the unit describes around `svma`.
fn described(mapped: &Mapped, unit: &CodeUnit, svma: u64) -> Option<FunctionPlace> {
    let module = &mapped.module;
    let scopes = unit.scopes(module);
    let scope = &scopes.list[*scopes.chain(svma).first()?];
    let range = |(from, to): &(u64, u64)| Range {
        start: mapped.address(Svma(*from)),
        end: mapped.address(Svma(*to)),
    };
    Some(FunctionPlace {
        name: scope.name.as_deref()?.to_owned(),
        entry: mapped.address(Svma(scope.entry())),
        after_prologue: mapped.address(Svma(prologue::end(module, unit, scope))),
        ranges: scope.ranges.iter().map(range).collect(),
        file: scope.file.clone(),
        line: scope.line,
        module: mapped.number,
    })
}

/// Returns the place of a function that only symbols name.
fn plain(mapped: &Mapped, name: String, start: Svma) -> FunctionPlace {
    let entry = mapped.address(start);
    let end = mapped.module.function_end(start);
    FunctionPlace {
        name,
        entry,
        after_prologue: entry,
        ranges: end
            .map(|end| entry..mapped.address(end))
            .into_iter()
            .collect(),
        file: None,
        line: None,
        module: mapped.number,
    }
}

/// Returns the place where a function with code of its own is entered.
fn entered(mapped: &Mapped, function: FunctionPlace) -> LinePlace {
    let svma = mapped.svma(function.after_prologue);
    let unit = mapped.module.units().find(svma.0);
    place_at(mapped, unit, svma.0, Some(Arc::from(function.name)))
}

/// Returns the place of code that begins at `svma`.
fn place_at(
    mapped: &Mapped,
    unit: Option<&CodeUnit>,
    svma: u64,
    function: Option<Arc<str>>,
) -> LinePlace {
    let source = unit.and_then(|unit| {
        let lines = unit.lines(&mapped.module);
        lines.source_line(lines.row_at(svma)?)
    });
    LinePlace {
        address: mapped.address(Svma(svma)),
        line: source.as_ref().map_or(0, |source| source.line),
        column: source.as_ref().map_or(0, |source| source.column),
        file: source.map_or_else(Arc::default, |source| source.file),
        function,
        inlined: false,
        module: mapped.number,
    }
}

/// Returns where inlined copies of the functions that `pattern` names begin.
fn copies(mapped: &Mapped, pattern: &Pattern<'_>, way: Way) -> Vec<LinePlace> {
    let found = scopes_of_copies(mapped, pattern, way).into_iter();
    let entered = found.map(|(unit, scopes, at)| {
        let copy = &scopes.list[at];
        let function = scopes.chain(copy.entry()).first().copied();
        // If variables cannot be read in the prologue, copies inside it are entered after it.
        let ready = function.map_or(0, |at| {
            prologue::end(&mapped.module, unit, &scopes.list[at])
        });
        let entry = function.map_or(0, |at| scopes.list[at].entry());
        let svma = match (entry..ready).contains(&copy.entry()) {
            true => ready,
            false => copy.entry(),
        };
        LinePlace {
            inlined: true,
            ..place_at(mapped, Some(unit), svma, copy.name.clone())
        }
    });
    entered.collect()
}

/// Returns the scopes of the inlined copies of the functions that `pattern` names: the unit, its scopes, and the index
/// of the copy.
fn scopes_of_copies<'m>(
    mapped: &'m Mapped,
    pattern: &Pattern<'_>,
    way: Way,
) -> Vec<(&'m CodeUnit, &'m Scopes, usize)> {
    let module = &mapped.module;
    let mut found = Vec::new();
    if !module.may_have_function(&pattern.name) {
        return found;
    }
    for unit in module.units().with_copies(module, &pattern.name) {
        let scopes = unit.scopes(module);
        for (at, copy) in scopes.list.iter().enumerate() {
            let is_named = |own: &Arc<str>| pattern.fits(way, own, "");
            let die = DieId {
                home: Home::Info,
                index: unit.index,
                offset: copy.die.0,
            };
            if copy.parent.is_some()
                && copy.name.as_ref().is_some_and(is_named)
                && pattern.fits_place(copy.file.as_ref(), copy.line)
                && pattern.fits_parameters(module, || Some(die), None)
            {
                found.push((unit, scopes, at));
            }
        }
    }
    found
}

impl Module {
    /// Returns the calls that are inlined into the function at `start`, those inside inlined calls included; empty if the debug
    /// information does not tell.
    #[must_use]
    pub fn inlined_calls(&self, start: Svma) -> Vec<InlinedCall> {
        let Some(unit) = self.units().find(start.0) else {
            return Vec::new();
        };
        let scopes = unit.scopes(self);
        let Some(function) = scopes.chain(start.0).first().copied() else {
            return Vec::new();
        };
        let inlined = scopes.inside(function).filter_map(|copy| {
            let caller = &scopes.list[copy.parent?];
            Some(InlinedCall {
                caller: Arc::clone(caller.name.as_ref()?),
                callee: Arc::clone(copy.name.as_ref()?),
                at: copy.call.clone(),
            })
        });
        inlined.collect()
    }
}

fn inlined_copy(mapped: &Mapped, scopes: &Scopes, at: usize) -> InlinedCopy {
    let copy = &scopes.list[at];
    let around = std::iter::successors(Some(copy), |scope| Some(&scopes.list[scope.parent?]));
    let address = |svma: u64| mapped.address(Svma(svma));
    let parts = copy.ranges.iter();
    InlinedCopy {
        ranges: parts
            .map(|(from, to)| address(*from)..address(*to))
            .collect(),
        inline_depth: around.clone().count() - 1,
        function_entry: address(around.last().map_or(0, FunctionScope::entry)),
    }
}

fn matching(mapped: &Mapped, pattern: &Pattern<'_>, way: Way) -> Vec<FunctionPlace> {
    let module = &mapped.module;
    if !pattern.is_glob() && !module.may_have_function(&pattern.name) {
        return Vec::new();
    }
    let is_wanted = |name: &str, linkage: &str, at: Svma| {
        let die = || function_at(module, at);
        pattern.fits(way, name, linkage) && pattern.fits_parameters(module, die, Some(linkage))
    };
    let list = &module.functions().list;
    let symbols = module.code.symbols();
    let (functions, symbols) = match pattern.is_glob() {
        true => (list.iter().collect(), symbols.iter().collect()),
        false => named(module, &pattern.name),
    };
    let by_debug = functions
        .into_iter()
        .filter(|f| is_wanted(&f.name, &f.linkage, f.svma));
    let mut found: Vec<FunctionPlace> = by_debug.map(|f| known(mapped, f)).collect();
    let mut last = None;
    for symbol in symbols {
        let is_new = symbol.kind == SymbolKind::Function && last != Some(symbol.svma);
        if !is_new || !is_wanted(&symbol.name, &symbol.linkage, symbol.svma) {
            continue;
        }
        last = Some(symbol.svma);
        match list.binary_search_by_key(&symbol.svma, |f| f.svma) {
            // An alias of a function that the debug information has under another name.
            Ok(at) if is_wanted(&list[at].name, &list[at].linkage, symbol.svma) => {}
            Ok(at) => found.push(known(mapped, &list[at])),
            Err(_) => found.push(plain(mapped, symbol.name.clone(), symbol.svma)),
        }
    }
    found.retain(|f| pattern.fits_place(f.file.as_ref(), f.line));
    found.sort_by_key(|f| f.entry);
    found
}

/// Returns the functions and symbols that may be called `name`, in the order of the module's lists.
fn named<'m>(module: &'m Module, name: &str) -> (Vec<&'m Function>, Vec<&'m Symbol>) {
    let (functions, symbols) = module.by_name().candidates(name);
    let (list, all) = (&module.functions().list, module.code.symbols());
    (
        functions.into_iter().map(|at| &list[at]).collect(),
        symbols.into_iter().map(|at| &all[at]).collect(),
    )
}

/// Returns the place of a function from the debug information.
fn known(mapped: &Mapped, function: &Function) -> FunctionPlace {
    let unit = mapped.module.units().find(function.svma.0);
    let place = unit.and_then(|unit| described(mapped, unit, function.svma.0));
    let place = place.filter(|p| p.entry == mapped.address(function.svma));
    match place {
        Some(place) => FunctionPlace {
            name: function.name.clone(),
            ..place
        },
        None => FunctionPlace {
            file: function.file.clone(),
            line: function.line,
            ..plain(mapped, function.name.clone(), function.svma)
        },
    }
}
