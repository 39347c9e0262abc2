//! Finds where a function's body begins, after the instructions that set up its frame.
//!
//! The rules are those of other debuggers. The line tables of LLVM and Go mark the end of the prologue. In gcc's
//! unoptimised code, it is the second row. In gcc's optimised code it is the entry, since variables have locations from
//! the first instruction on.

use super::scopes::{FunctionScope, Scopes};
use super::table::Lines;
use super::units::{CodeUnit, Compiler};
use crate::module::Module;

const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
/// `push %rbp`, then `mov %rsp,%rbp` in both encodings.
const SET_FRAME: [&[u8]; 2] = [&[0x55, 0x48, 0x89, 0xe5], &[0x55, 0x48, 0x8b, 0xec]];
/// Bytes of a prologue that are examined.
const PROLOGUE_BYTES: usize = 64;

/// Returns the first address of the function around `svma` and the first address after its prologue. Both are `svma` if
/// nothing describes the function.
pub(crate) fn around(module: &Module, svma: u64) -> (u64, u64) {
    let described = || {
        let unit = module.units().find(svma)?;
        let scopes = unit.scopes(module);
        let function = &scopes.list[*scopes.chain(svma).first()?];
        Some((function.entry(), behind(module, unit, function)))
    };
    described().unwrap_or((svma, svma))
}

/// Returns where to set breakpoints on `function` of `unit`: the first address at which its variables can be read.
pub(super) fn end(module: &Module, unit: &CodeUnit, function: &FunctionScope) -> u64 {
    match unit.locates_at_entry(module) {
        true => function.entry(),
        false => behind(module, unit, function),
    }
}

/// Returns the first address after the prologue of `function` of `unit`.
pub(super) fn behind(module: &Module, unit: &CodeUnit, function: &FunctionScope) -> u64 {
    let entry = function.entry();
    let Some((from, to)) = function.ranges.first().copied() else {
        return entry;
    };
    let lines = unit.lines(module);
    let compiler = unit.compiler(module);
    if compiler != Compiler::Gnu {
        let stated = lines.sequence(entry).unwrap_or_default().iter();
        let mut stated = stated.filter(|r| r.prologue_end && (from..to).contains(&r.address));
        // A function of Go begins again at its entry whenever its stack had to grow, or another goroutine had its turn.
        if let Some(row) = stated.next() {
            return row.address;
        }
    }
    if compiler == Compiler::Llvm {
        return by_lines(lines, unit.scopes(module), from, to).unwrap_or(entry);
    }
    let code = &module.code;
    let behind = behind_frame(code.bytes(entry, PROLOGUE_BYTES)).map_or(entry, |n| entry + n);
    let starts_row = lines.row_at(behind).is_some_and(|r| r.address == behind);
    match lines.row_end(behind) {
        Some(next) if !starts_row && next < to => next,
        _ => behind,
    }
}

/// Returns the number of bytes up to the end of the instructions that set rbp, or `None` if the function does not begin
/// with them.
fn behind_frame(code: &[u8]) -> Option<u64> {
    let mut rest = code.strip_prefix(ENDBR64).unwrap_or(code);
    rest = realigned(rest).unwrap_or(rest);
    let set = SET_FRAME.iter().find(|bytes| rest.starts_with(bytes))?;
    Some((code.len() - rest.len() + set.len()) as u64)
}

/// Strips the code that aligns the stack of a function with wide locals: `lea 8(%rsp),%r10; and $-N,%rsp; push
/// -8(%r10)`.
fn realigned(code: &[u8]) -> Option<&[u8]> {
    let rest = code.strip_prefix(&[0x4c, 0x8d, 0x54, 0x24, 0x08])?;
    let rest = match rest {
        [0x48, 0x83, 0xe4, _, rest @ ..] => rest,
        [0x48, 0x81, 0xe4, _, _, _, _, rest @ ..] => rest,
        _ => return None,
    };
    rest.strip_prefix(&[0x41, 0xff, 0x72, 0xf8])
}

/// Returns the start of the first row whose line is not before the line of the entry's row. The rows between belong to
/// the prologue, where the compiler moved them.
fn by_lines(lines: &Lines, scopes: &Scopes, from: u64, to: u64) -> Option<u64> {
    let rows = lines.sequence(from)?;
    let mut at = rows.iter().position(|r| r.address == from)?;
    // Two rows at the entry mean that there is no prologue.
    if rows
        .get(at + 1)
        .is_some_and(|r| r.address == from && r.line > 0)
    {
        return Some(from);
    }
    loop {
        let row = rows.get(at)?;
        let next = at + rows[at..].iter().position(|r| r.address > row.address)?;
        let following = &rows[next];
        if following.end || following.address >= to {
            return None;
        }
        let is_inlined = scopes.chain(following.address).len() > 1;
        let is_body = following.line == 0
            || following.line >= row.line
            || following.file != row.file
            || is_inlined;
        if is_body {
            return Some(following.address);
        }
        at = next;
    }
}
