//! The second walk: reads one function in full.

use gimli::constants as dw;
use gimli::{AttributeValue, DwCc, DwLang};

use super::files::Files;
use super::names::{Change, Names, names};
use super::scan::{Candidate, Damage, MAX_RANGES, Scan};
use super::scopes::Scopes;
use super::signature::{Signature, Signatures, Trust};
use crate::code::Code;
use crate::dies::{Die, Home, Session};
use crate::model::{CodeRange, Function, Svma};
use crate::types::{Abi, Types};

/// Readers shared by the functions of one unit.
struct Builder<'s, 't, 'a> {
    session: &'s Session<'t, 'a>,
    code: &'s Code<'s>,
    files: Files<'s, 't, 'a>,
    scopes: Scopes<'s, 't, 'a>,
    types: Types<'s, 't, 'a>,
    scan: &'s Scan,
    language: Option<DwLang>,
}

/// Builds the functions that `candidates` of unit `index` stand for; fewer, and why, if the unit asks for more work
/// than its size warrants.
pub(super) fn build(
    session: &Session<'_, '_>,
    index: usize,
    scan: &Scan,
    candidates: &[&Candidate],
    code: &Code<'_>,
) -> (Vec<Function>, Option<Damage>) {
    let root = match session.root(Home::Info, index) {
        Ok(root) => root,
        Err(error) => return (Vec::new(), Some(error.into())),
    };
    session.begin(&root.unit);
    let builder = Builder {
        session,
        code,
        files: Files::new(session),
        scopes: Scopes::new(session),
        types: Types::new(session),
        scan,
        language: language(session, &root),
    };
    let mut functions = Vec::new();
    for candidate in candidates {
        let function = builder.function(&root, candidate);
        // What was read when the steps ran out may be wrong.
        if session.is_exhausted() {
            return (functions, Some(Damage::Exhausted));
        }
        functions.push(function);
    }
    (functions, None)
}

fn language<'a>(session: &Session<'_, 'a>, root: &Die<'a>) -> Option<DwLang> {
    match session.attr(root, dw::DW_AT_language)? {
        AttributeValue::Language(language) => Some(language),
        _ => None,
    }
}

impl<'a> Builder<'_, '_, 'a> {
    fn function(&self, root: &Die<'a>, candidate: &Candidate) -> Function {
        let die = root.sibling(candidate.die);
        let chain = self.session.chain(&die);
        let names = names(self.session, &self.scopes, &chain, candidate, self.code);
        let ranges = self.ranges(&die, candidate.svma);
        let signature = self.signature(&chain, candidate, &names);
        let first = |name| chain.iter().find_map(|d| self.session.unsigned(d, name));
        let file = chain.iter().find_map(|d| {
            let number = self.file_number(d)?;
            self.files.path(d, number)
        });
        Function {
            svma: Svma(candidate.svma),
            size: ranges.first().map_or(0, CodeRange::len),
            ranges,
            name: names.readable,
            linkage: names.linkage,
            file,
            line: first(dw::DW_AT_decl_line)
                .and_then(|l| u32::try_from(l).ok())
                .filter(|l| *l > 0),
            params: signature.params,
            params_known: signature.params_known,
            variadic: candidate.variadic,
            ret: signature.ret,
            ret_place: signature.ret_place,
            xmm_args: signature.xmm_args,
            ret_in_xmm: signature.ret_in_xmm,
            noreturn: chain
                .iter()
                .any(|d| self.session.flag(d, dw::DW_AT_noreturn)),
        }
    }

    fn file_number(&self, die: &Die<'a>) -> Option<u64> {
        match self.session.attr(die, dw::DW_AT_decl_file)? {
            AttributeValue::FileIndex(number) => Some(number),
            other => other.udata_value(),
        }
    }

    /// The function's parts, the one that begins at `svma` first.
    fn ranges(&self, die: &Die<'a>, svma: u64) -> Vec<CodeRange> {
        let dwarf = self.session.dwarf(die);
        let entry = die.unit.entry(die.offset);
        let Some(mut iter) = entry
            .ok()
            .and_then(|e| dwarf.die_ranges(&die.unit, &e).ok())
        else {
            return Vec::new();
        };
        let mut ranges = Vec::new();
        for _ in 0..MAX_RANGES {
            let next = iter.next().ok().flatten();
            let Some(range) = next.filter(|_| self.session.spend(1).is_some()) else {
                break;
            };
            let range = CodeRange {
                start: Svma(range.begin),
                end: Svma(range.end),
            };
            if !range.is_empty() && self.code.is_code(range.start.0) {
                ranges.push(range);
            }
        }
        match ranges.iter().position(|r| r.start.0 == svma) {
            Some(entry) => ranges.swap(0, entry),
            None => ranges.clear(),
        }
        ranges
    }

    fn signature(&self, chain: &[Die<'a>], candidate: &Candidate, names: &Names) -> Signature {
        let abi = self.abi(names);
        let closure = matches!(abi, Abi::Rust) && {
            // Closures and coroutines get their environment in a parameter that is not described.
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
        let trust = match names.changed {
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
            // `extern "C"` functions are not told apart, but most of them keep their plain name.
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
