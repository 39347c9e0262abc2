//! Decides which instructions a patch displaces, or why it must not be made.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

use super::classify::{Kind, classify};
use super::scan::references;
use super::{Branches, Refusal};

/// Length of the patch: `jmp rel32`.
pub const PATCH_BYTES: usize = 5;

/// Constraints on a patch in addition to the function itself.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'a> {
    /// Start of the next function, or end of the section. Nothing at or above it is overwritten or displaced.
    pub next_code: u64,
    /// All branches, if known. Branches from outside the function into the patched bytes forbid the patch.
    pub branches: Option<&'a Branches>,
}

impl<'a> Limits<'a> {
    /// Returns limits that only know where the next code begins.
    pub fn up_to(next_code: u64) -> Limits<'a> {
        Limits {
            next_code,
            branches: None,
        }
    }

    /// Adds the branches of the surrounding code.
    pub fn with_branches(self, branches: &'a Branches) -> Limits<'a> {
        Limits {
            branches: Some(branches),
            ..self
        }
    }
}

/// One displaced instruction.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) instruction: Instruction,
    pub(super) bytes: Vec<u8>,
    pub(super) kind: Kind,
}

impl Piece {
    pub(super) fn at(&self) -> u64 {
        self.instruction.ip()
    }
}

/// The instructions that a patch at a function's entry displaces. Made by [`plan`].
#[derive(Debug, Clone)]
pub struct Displacement {
    pub(super) entry: u64,
    pub(super) pieces: Vec<Piece>,
    pub(super) end: u64,
    /// The branch target of the one instruction, if it was planned to run elsewhere by itself.
    pub(super) branch: Option<u64>,
    /// Where their copy continues; `None`: at `end`.
    pub(super) resume: Option<u64>,
    jumps_back_to_entry: bool,
}

impl Displacement {
    /// Returns the address of the patch.
    pub fn entry(&self) -> u64 {
        self.entry
    }

    /// Returns how many bytes from the entry on are displaced: whole instructions or padding, at least [`PATCH_BYTES`]
    /// and at most 19.
    pub fn len_bytes(&self) -> usize {
        (self.end - self.entry) as usize
    }

    /// Returns how many instructions are displaced, without padding.
    pub fn instruction_count(&self) -> usize {
        self.pieces.len()
    }

    /// Returns whether the function jumps to its own entry from beyond its displaced instructions. Each such jump (a
    /// tail call to itself, or a loop whose head is the entry; the two look the same) runs into the patch again.
    pub fn jumps_back_to_entry(&self) -> bool {
        self.jumps_back_to_entry
    }

    /// Returns whether control leaves the displaced instructions only at their end, or by a branch of one of them to a
    /// target outside them; and whether none of them uses the stack pointer in a way that moves it.
    pub fn runs_through(&self) -> bool {
        self.pieces.iter().all(|piece| {
            let is_plain = match piece.kind {
                Kind::Plain | Kind::RipRelative { .. } => true,
                Kind::JumpIf { .. } => {
                    let target = piece.instruction.near_branch_target();
                    !(self.entry..=self.end).contains(&target)
                }
                _ => false,
            };
            is_plain && piece.instruction.stack_pointer_increment() == 0
        })
    }

    /// Splits the displaced instructions into those before and those after the system call at `at`, if neither part
    /// branches to the other. Displacements of nothing are `None`.
    pub fn around(&self, at: u64) -> Option<(Option<Self>, Option<Self>)> {
        let place = self.pieces.iter().position(|piece| piece.at() == at)?;
        let is_call = |piece: &Piece| piece.kind == Kind::Syscall;
        let leads_inside = self.pieces.iter().any(|piece| {
            let inside = self.entry + 1..self.end;
            piece.kind.has_target() && inside.contains(&piece.instruction.near_branch_target())
        });
        if leads_inside || self.pieces.iter().filter(|piece| is_call(piece)).count() != 1 {
            return None;
        }
        let next = self.pieces[place].instruction.next_ip();
        let part = |pieces: &[Piece], entry, end| {
            (!pieces.is_empty()).then(|| Self {
                entry,
                pieces: pieces.to_vec(),
                end,
                branch: None,
                resume: None,
                jumps_back_to_entry: false,
            })
        };
        let before = part(&self.pieces[..place], self.entry, at);
        let after = part(&self.pieces[place + 1..], next, self.end);
        is_call(&self.pieces[place]).then_some((before, after))
    }

    /// Returns the same displacement, whose copy continues at `address`, which need not be the end of the displaced
    /// instructions.
    #[must_use]
    pub fn leading_to(mut self, address: u64) -> Self {
        self.resume = Some(address);
        self
    }

    pub(super) fn starts_piece(&self, address: u64) -> bool {
        self.pieces.iter().any(|piece| piece.at() == address)
    }
}

/// Plans the patch of the function at `entry`.
///
/// `code` holds the bytes from `entry` on: the whole function if its `size` in bytes is known (0 = unknown), and
/// preferably up to `limits.next_code`, because a function shorter than the patch can be patched if padding follows.
///
/// # Errors
/// Why the function must not be patched.
pub fn plan(
    code: &[u8],
    entry: u64,
    size: u64,
    limits: Limits<'_>,
) -> Result<Displacement, Refusal> {
    plan_at_least(code, entry, size, limits, PATCH_BYTES, entry)
}

/// As [`plan`], for a patch that displaces at least `least` bytes, no fewer than [`PATCH_BYTES`]. No branch may lead past
/// its first byte, up to `last`.
///
/// # Errors
/// As [`plan`].
pub fn plan_at_least(
    code: &[u8],
    entry: u64,
    size: u64,
    limits: Limits<'_>,
    least: usize,
    last: u64,
) -> Result<Displacement, Refusal> {
    let given = code.len() as u64;
    if given < size {
        return Err(Refusal::CodeMissing { given, size });
    }
    if is_signal_return(code) {
        return Err(Refusal::SignalReturn);
    }
    let room = limits.next_code.saturating_sub(entry).min(given) as usize;
    let known = if size == 0 { room } else { size as usize };
    let (pieces, length) = cut(&code[..room], entry, known, least)?;
    let mut displacement = Displacement {
        entry,
        pieces,
        end: entry + length as u64,
        branch: None,
        resume: None,
        jumps_back_to_entry: false,
    };
    let inside = entry + 1..(entry + PATCH_BYTES as u64).max(last + 1);
    check_references(&mut displacement, &code[..known], limits, inside)?;
    Ok(displacement)
}

/// Plans to run the single instruction at `at`, of any length, elsewhere. Only a trap byte is written over it. `code`
/// holds its bytes, and may hold more. `resume` maps the address of an instruction of the program to where the program
/// continues: that address itself, or the copy of the instruction. An instruction that branches to itself runs into
/// the trap again.
///
/// # Errors
/// Why it cannot run elsewhere.
pub fn single(code: &[u8], at: u64, resume: impl Fn(u64) -> u64) -> Result<Displacement, Refusal> {
    let mut decoder = Decoder::with_ip(64, code, at, DecoderOptions::NONE);
    let too_short = Refusal::TooShort {
        room: code.len() as u64,
    };
    let piece = decode(&mut decoder, code, 0, too_short)?;
    let next = piece.instruction.next_ip();
    let branches = piece.kind.has_target();
    Ok(Displacement {
        entry: at,
        branch: branches.then(|| resume(piece.instruction.near_branch_target())),
        resume: None,
        pieces: vec![piece],
        end: resume(next),
        jumps_back_to_entry: false,
    })
}

/// Takes whole instructions from the front of `code` until they cover `least` bytes. Returns them and their length in
/// bytes. The function is known to be `known` bytes long; only padding may follow.
fn cut(
    code: &[u8],
    entry: u64,
    known: usize,
    least: usize,
) -> Result<(Vec<Piece>, usize), Refusal> {
    let too_short = Refusal::TooShort {
        room: code.len() as u64,
    };
    if code.len() < least {
        return Err(too_short);
    }
    let mut decoder = Decoder::with_ip(64, code, entry, DecoderOptions::NONE);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut offset = 0;
    while offset < least {
        let at = entry + offset as u64;
        if !is_reached(&pieces, at) {
            offset += padding(&code[offset..]).ok_or(Refusal::HiddenCode { at })?;
            continue;
        }
        seek(&mut decoder, entry, offset);
        let piece = decode(&mut decoder, code, offset, too_short.clone())?;
        if offset >= known && piece.instruction.mnemonic() != Mnemonic::Nop {
            return Err(Refusal::TooShort { room: known as u64 });
        }
        offset += piece.bytes.len();
        refuse_return_into_patch(&piece, entry)?;
        pieces.push(piece);
    }
    Ok((pieces, offset))
}

/// Returns whether control can reach `at` from the pieces taken so far. Backward branches do not matter: their targets
/// were reached before.
fn is_reached(pieces: &[Piece], at: u64) -> bool {
    match pieces.last() {
        None => true,
        Some(last) => {
            let falls = last.kind.falls_through() && last.instruction.next_ip() == at;
            falls
                || pieces.iter().any(|piece| {
                    piece.kind.has_target() && piece.instruction.near_branch_target() == at
                })
        }
    }
}

fn decode(
    decoder: &mut Decoder,
    code: &[u8],
    offset: usize,
    too_short: Refusal,
) -> Result<Piece, Refusal> {
    let instruction = decoder.decode();
    if instruction.is_invalid() {
        return Err(match decoder.last_error() {
            iced_x86::DecoderError::NoMoreBytes => too_short,
            _ => Refusal::Undecodable {
                at: instruction.ip(),
            },
        });
    }
    let bytes = &code[offset..offset + instruction.len()];
    let offsets = decoder.get_constant_offsets(&instruction);
    let kind = classify(&instruction, bytes, &offsets)?;
    Ok(Piece {
        instruction,
        bytes: bytes.to_vec(),
        kind,
    })
}

fn refuse_return_into_patch(piece: &Piece, entry: u64) -> Result<(), Refusal> {
    let returns = matches!(piece.kind, Kind::Call | Kind::CallIndirect { .. });
    let to = piece.instruction.next_ip();
    if returns && to < entry + PATCH_BYTES as u64 {
        return Err(Refusal::ReturnIntoPatch {
            call: piece.at(),
            to,
        });
    }
    Ok(())
}

/// Returns the length of the padding unit at the start of `code`: a nop of any length, `int3`, or a zero byte.
fn padding(code: &[u8]) -> Option<usize> {
    if matches!(code.first(), Some(0xcc | 0x00)) {
        return Some(1);
    }
    let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
    (!instruction.is_invalid() && instruction.mnemonic() == Mnemonic::Nop)
        .then_some(instruction.len())
}

/// Refuses branches into the patched bytes, except those between displaced instructions: the copies lead to the copies.
fn check_references(
    displacement: &mut Displacement,
    function: &[u8],
    limits: Limits<'_>,
    inside: Range<u64>,
) -> Result<(), Refusal> {
    let entry = displacement.entry;
    let found = references(function, entry, entry..inside.end);
    if let Some(&(from, to)) = found.data.first() {
        return Err(Refusal::PatchUsedAsData { from, to });
    }
    displacement.jumps_back_to_entry = found
        .branches
        .into_range(entry..entry + 1)
        .any(|branch| !branch.is_call && !displacement.starts_piece(branch.from));
    let elsewhere = limits.branches.iter();
    let all = std::iter::once(&found.branches).chain(elsewhere.copied());
    for branch in all.flat_map(|branches| branches.into_range(inside.clone())) {
        let own = (entry..displacement.end).contains(&branch.from);
        let redirected =
            displacement.starts_piece(branch.from) && displacement.starts_piece(branch.to);
        // A branch "from" the middle of a displaced instruction was decoded out of step, and is not real.
        let misread = own && !displacement.starts_piece(branch.from);
        if !redirected && !misread {
            return Err(Refusal::BranchIntoPatch {
                from: branch.from,
                to: branch.to,
            });
        }
    }
    Ok(())
}

/// Recognises `mov eax, 15; syscall`: `__restore_rt` and the like.
fn is_signal_return(code: &[u8]) -> bool {
    const LONG: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
    const SHORT: [u8; 7] = [0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05];
    code.starts_with(&LONG) || code.starts_with(&SHORT)
}

fn seek(decoder: &mut Decoder, entry: u64, offset: usize) {
    decoder
        .set_position(offset)
        .expect("the offset is inside the code");
    decoder.set_ip(entry + offset as u64);
}
