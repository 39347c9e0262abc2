//! The second walk: reads each function in full.

use std::sync::Arc;

use gimli::constants as dw;
use gimli::{AttributeValue, DwCc, DwLang};

use super::files::Files;
use super::names::{Change, Names, names};
use super::scan::{Candidate, Damage, MAX_RANGES, Scan};
use super::scopes::Scopes;
use super::signature::{Signature, Signatures, Trust};
use crate::abi::{Abi, Types};
use crate::code::Code;
use crate::dies::{Die, DieReader, Home};
use crate::lines::Compiler;
use crate::model::{CodeRange, Function, Svma};

/// Readers shared by the functions of one unit.
struct Builder<'s, 't, 'a> {
    session: &'s DieReader<'t, 'a>,
    code: &'s Code,
    files: Files<'s, 't, 'a>,
    scopes: Scopes<'s, 't, 'a>,
    types: Types<'s, 't, 'a>,
    scan: &'s Scan,
    language: Option<DwLang>,
    is_llvm: bool,
    /// The compiler states which functions the optimiser changed.
    marks_changed: bool,
}

/// What was read of one unit.
#[derive(Default)]
pub(super) struct Built {
    pub functions: Vec<Function>,
    /// The addresses of functions whose results the optimiser may have removed.
    pub doubted: Vec<u64>,
}

/// Builds the functions for `candidates` of unit `index`. If the unit demands more work than its size warrants, returns
/// fewer of them and the reason.
pub(super) fn build(
    session: &DieReader<'_, '_>,
    index: usize,
    scan: &Scan,
    candidates: &[&Candidate],
    code: &Code,
) -> (Built, Option<Damage>) {
    let mut built = Built::default();
    let root = match session.root(Home::Info, index) {
        Ok(root) => root,
        Err(error) => return (built, Some(error.into())),
    };
    session.begin(&root.unit);
    let builder = Builder {
        session,
        code,
        files: Files::new(session),
        scopes: Scopes::new(session),
        types: Types::new(session, (Home::Info, index)),
        scan,
        language: language(session, &root),
        is_llvm: Compiler::of(session, &root) == Compiler::Llvm,
        marks_changed: marks_changed(session, &root),
    };
    for candidate in candidates {
        let (function, is_doubted) = builder.function(&root, candidate);
        // What was read after the budget ran out may be wrong.
        if session.is_exhausted() {
            return (built, Some(Damage::Exhausted));
        }
        built.doubted.extend(is_doubted.then_some(candidate.svma));
        built.functions.push(function);
    }
    (built, None)
}

/// Returns whether the unit's compiler marks functions whose parameters or results it removed with `DW_CC_nocall`: LLVM does so
/// since version 15, which rustc contains since 1.65.
fn marks_changed<'a>(session: &DieReader<'_, 'a>, root: &Die<'a>) -> bool {
    let producer = session.string(root, dw::DW_AT_producer);
    let producer = producer.map(|producer| producer.to_string_lossy().into_owned());
    let version = |before: &str| {
        let (_, version) = producer.as_ref()?.split_once(before)?;
        let mut numbers = version.split(|c: char| !c.is_ascii_digit());
        let mut number = || numbers.next()?.parse::<u32>().ok();
        Some((number()?, number().unwrap_or(0)))
    };
    match version("rustc version ") {
        Some(rustc) => rustc >= (1, 65),
        None => version("clang version ").is_some_and(|clang| clang >= (15, 0)),
    }
}

fn language<'a>(session: &DieReader<'_, 'a>, root: &Die<'a>) -> Option<DwLang> {
    match session.attr(root, dw::DW_AT_language)? {
        AttributeValue::Language(language) => Some(language),
        _ => None,
    }
}

impl<'a> Builder<'_, '_, 'a> {
    /// Returns a function, and whether the optimiser may have removed its result.
    fn function(&self, root: &Die<'a>, candidate: &Candidate) -> (Function, bool) {
        let die = root.sibling(candidate.die);
        let chain = self.session.chain(&die);
        let names = names(
            self.session,
            &self.scopes,
            &chain,
            candidate.svma,
            candidate.top_level && chain.len() == 1,
            self.code,
        );
        let ranges = self.ranges(&die, candidate.svma);
        let signature = self.signature(&chain, candidate, &names);
        let (file, line) = self.declared_at(&chain);
        let function = Function {
            svma: Svma(candidate.svma),
            size: ranges.first().map_or(0, CodeRange::len),
            ranges,
            name: names.readable,
            linkage: names.linkage,
            file,
            line,
            params: signature.params,
            params_known: signature.params_known,
            variadic: candidate.variadic,
            ret: signature.ret,
            ret_place: signature.ret_place,
            xmm: signature.xmm,
        };
        (function, signature.is_result_doubted)
    }

    fn declared_at(&self, chain: &[Die<'a>]) -> (Option<Arc<str>>, Option<u32>) {
        let file_of = |d| self.files.path(d, self.file_number(d)?);
        let line_of = |d| {
            let line = self.session.unsigned(d, dw::DW_AT_decl_line)?;
            u32::try_from(line).ok().filter(|line| *line > 0)
        };
        let file = chain.iter().find_map(file_of);
        let line = chain.iter().find_map(line_of);
        // The call operator of a lambda has no line of its own. The line of its class is the same.
        let around = match (&file, line, chain.last()) {
            (None, None, Some(die)) => self.scopes.around(die),
            _ => None,
        };
        match around {
            Some(class) => (file_of(&class), line_of(&class)),
            None => (file, line),
        }
    }

    fn file_number(&self, die: &Die<'a>) -> Option<u64> {
        match self.session.attr(die, dw::DW_AT_decl_file)? {
            AttributeValue::FileIndex(number) => Some(number),
            other => other.udata_value(),
        }
    }

    /// Returns the parts of the function, the one that begins at `svma` first.
    fn ranges(&self, die: &Die<'a>, svma: u64) -> Vec<CodeRange> {
        let mut ranges = self.listed_ranges(die).unwrap_or_default();
        ranges.extend(self.only_range(die).filter(|_| ranges.is_empty()));
        ranges.retain(|range| !range.is_empty() && self.code.is_code(range.start.0));
        match ranges.iter().position(|r| r.start.0 == svma) {
            Some(entry) => ranges.swap(0, entry),
            None => ranges.clear(),
        }
        ranges
    }

    fn listed_ranges(&self, die: &Die<'a>) -> Option<Vec<CodeRange>> {
        let value = self.session.attr(die, dw::DW_AT_ranges)?;
        let dwarf = self.session.dwarf(die);
        let offset = dwarf.attr_ranges_offset(&die.unit, value).ok()??;
        let mut iter = dwarf.ranges(&die.unit, offset).ok()?;
        let mut ranges = Vec::new();
        while let (Some(range), true) = (iter.next().ok()?, ranges.len() < MAX_RANGES) {
            self.session.spend(1)?;
            ranges.push(CodeRange {
                start: Svma(range.begin),
                end: Svma(range.end),
            });
        }
        Some(ranges)
    }

    /// Returns the range from the stated first address to the stated end, which is an address or a length.
    fn only_range(&self, die: &Die<'a>) -> Option<CodeRange> {
        let dwarf = self.session.dwarf(die);
        let address = |value| dwarf.attr_address(&die.unit, value).ok()?;
        let start = address(self.session.attr(die, dw::DW_AT_low_pc)?)?;
        let end = self.session.attr(die, dw::DW_AT_high_pc)?;
        let end = match end.udata_value() {
            Some(distance) => start.checked_add(distance)?,
            None => address(end)?,
        };
        Some(CodeRange {
            start: Svma(start),
            end: Svma(end),
        })
    }

    fn signature(&self, chain: &[Die<'a>], candidate: &Candidate, names: &Names) -> Signature {
        let abi = self.abi(names);
        let closure = matches!(abi, Abi::Rust) && {
            // Closures and coroutines receive their environment in a parameter that DWARF does not describe.
            let plain = self.session.string(&chain[0], dw::DW_AT_name);
            plain.is_some_and(|n| n.slice().starts_with(b"{"))
        };
        let calling_convention = chain.iter().find_map(|d| {
            match self.session.attr(d, dw::DW_AT_calling_convention)? {
                AttributeValue::CallingConvention(convention) => Some(convention),
                _ => None,
            }
        });
        let standard = calling_convention.is_none_or(is_standard);
        let is_marked = self.is_llvm && calling_convention == Some(dw::DW_CC_nocall);
        let trust = match names.changed {
            _ if is_marked => Trust::Read,
            _ if !standard => Trust::Nothing,
            Some(Change::ParamsAndResult) => Trust::Nothing,
            Some(Change::Params) => Trust::Result,
            None if closure => Trust::Result,
            None => Trust::All,
        };
        let signatures = Signatures {
            session: self.session,
            types: &self.types,
            code: self.code,
            abi,
            described: self.scan.described,
            is_llvm: self.is_llvm,
            may_change: self.is_llvm && !self.marks_changed && self.scan.optimised,
            is_closure: closure,
        };
        let params = &self.scan.params;
        let own: Vec<Die<'a>> = params
            .get(candidate.params.start as usize..candidate.params.end as usize)
            .unwrap_or_default()
            .iter()
            .map(|offset| chain[0].sibling(*offset))
            .collect();
        signatures.read(chain, own, candidate.svma, trust)
    }

    fn abi(&self, names: &Names) -> Abi {
        match self.language {
            // `extern "C"` functions are not marked, but most of them keep their plain names.
            Some(dw::DW_LANG_Rust) if names.mangled => Abi::Rust,
            Some(dw::DW_LANG_Rust) => Abi::SysV { cxx: false },
            Some(language) if is_cxx(language) => Abi::SysV { cxx: true },
            Some(language) if is_c(language) => Abi::SysV { cxx: false },
            _ => Abi::Other,
        }
    }
}

fn is_standard(convention: DwCc) -> bool {
    /// clang's `__attribute__((sysv_abi))`.
    const DW_CC_LLVM_X86_64_SYSV: DwCc = DwCc(0xc3);
    matches!(
        convention,
        dw::DW_CC_normal | dw::DW_CC_program | DW_CC_LLVM_X86_64_SYSV
    )
}

fn is_cxx(language: DwLang) -> bool {
    matches!(
        language,
        dw::DW_LANG_C_plus_plus
            | dw::DW_LANG_C_plus_plus_03
            | dw::DW_LANG_C_plus_plus_11
            | dw::DW_LANG_C_plus_plus_14
            | dw::DW_LANG_C_plus_plus_17
            | dw::DW_LANG_C_plus_plus_20
            | dw::DW_LANG_ObjC_plus_plus
    )
}

fn is_c(language: DwLang) -> bool {
    matches!(
        language,
        dw::DW_LANG_C89
            | dw::DW_LANG_C
            | dw::DW_LANG_C99
            | dw::DW_LANG_C11
            | dw::DW_LANG_C17
            | dw::DW_LANG_ObjC
            | dw::DW_LANG_UPC
            | dw::DW_LANG_Mips_Assembler
    )
}
