//! The functions of an ELF file as visible without debug information, for the tests over real code.

use std::collections::BTreeMap;
use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind, SymbolSection};
use recorder::displace::{Branches, Displacement, Limits, Refusal, plan};

/// A section with code, and the functions in it.
pub struct Text {
    pub start: u64,
    pub code: Vec<u8>,
    pub functions: Vec<Function>,
    branches: Branches,
}

/// A function: its address, its size (0 = unknown) and the address of the next symbol or of the section's end.
pub struct Function {
    pub name: String,
    pub entry: u64,
    pub size: u64,
    pub next_code: u64,
}

impl Text {
    pub fn plan(&self, function: &Function) -> Result<Displacement, Refusal> {
        let limits = Limits::up_to(function.next_code).with_branches(&self.branches);
        let code = self.code_from(function);
        plan(code, function.entry, function.size, limits)
    }

    /// Returns the bytes from a function's entry to the end of the section.
    pub fn code_from(&self, function: &Function) -> &[u8] {
        &self.code[(function.entry - self.start) as usize..]
    }
}

/// Reads the code sections of a file that have function symbols, with addresses as if it were loaded at `base`.
pub fn texts(path: &Path, base: u64) -> Vec<Text> {
    let data = std::fs::read(path).expect("the file can be read");
    let file = object::File::parse(&*data).expect("it is an ELF file");
    let mut texts = Vec::new();
    for section in file.sections().filter(|s| s.kind() == SectionKind::Text) {
        let sizes = function_sizes(&file, section.index(), base);
        if sizes.is_empty() {
            continue;
        }
        let start = base + section.address();
        let code = section.data().expect("code sections have data").to_vec();
        texts.push(Text {
            start,
            branches: Branches::of(&code, start),
            functions: functions(sizes, start + code.len() as u64),
            code,
        });
    }
    texts
}

/// Returns the functions in a section: address -> (largest size, name).
fn function_sizes(
    file: &object::File,
    section: object::SectionIndex,
    base: u64,
) -> BTreeMap<u64, (u64, String)> {
    let mut sizes: BTreeMap<u64, (u64, String)> = BTreeMap::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let here = symbol.section() == SymbolSection::Section(section);
        if here && symbol.kind() == SymbolKind::Text {
            let name = symbol.name().unwrap_or("?").to_owned();
            let known = sizes.entry(base + symbol.address()).or_default();
            if known.1.is_empty() || symbol.size() > known.0 {
                *known = (symbol.size(), name);
            }
        }
    }
    sizes
}

fn functions(sizes: BTreeMap<u64, (u64, String)>, end: u64) -> Vec<Function> {
    let next: Vec<u64> = sizes.keys().copied().skip(1).chain([end]).collect();
    let with_next = sizes.into_iter().zip(next);
    with_next
        .map(|((entry, (size, name)), next_code)| Function {
            name,
            entry,
            size,
            next_code,
        })
        .collect()
}
