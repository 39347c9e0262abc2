//! Finds the `syscall` instructions of a module, and plans the jumps to the runtime right before and right after each
//! of them.
//!
//! The instruction itself stays in place if possible: the kernel restarts calls there, and unwinders and debuggers know the place.
//! Otherwise it is displaced with its neighbours. A place that cannot be patched is reported with the reason, so that its calls are not
//! missed silently.

use std::collections::BTreeMap;
use std::ops::Range;

use debuginfo::{Module, Symbol};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register};
use memchr::memmem;
use store::control::Control;

use super::{LoadedModule, patch::skipped};
use crate::displace::{
    Branches, Displacement, Limits, PATCH_BYTES, branches_into, plan, plan_at_least,
};

const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Longest piece of code before an instruction from which it is decoded.
const MOST_BYTES: u64 = 1 << 16;
/// Most bytes and instructions displaced before a call: what fits a trampoline.
const MOST_BEFORE_BYTES: u64 = 15;
const MOST_BEFORE: usize = 5;
/// Most bytes that a patch displaces.
const MOST_DISPLACED: u64 = 19;
/// A thread that unmaps its own stack ends within this many bytes of code.
const UNMAPPED_BYTES: u64 = 24;

const MUNMAP: u32 = 11;
const SIGRETURN: u32 = 15;
const EXIT: u32 = 60;
const EXIT_GROUP: u32 = 231;

/// The name of a place that cannot be patched, before its number and function.
const NAMED: &str = "system call";

/// Returns whether it is such a place and not a function.
pub fn is_system_call(skipped: &Control) -> bool {
    matches!(skipped, Control::Skipped { name, .. } if name.starts_with(NAMED))
}

/// A system call to be recorded. Addresses are those in the process.
#[derive(Debug)]
pub(super) enum Site {
    /// The `syscall` instruction at `at` stays.
    Apart {
        at: u64,
        before: Before,
        /// The instructions after it, with their bytes; `None`: it does not return.
        after: Option<(Displacement, Vec<u8>)>,
    },
    /// It is displaced with the instructions around it, which have these bytes.
    Displaced {
        at: u64,
        displacement: Displacement,
        code: Vec<u8>,
    },
}

/// How the program reaches the runtime before the call.
#[derive(Debug)]
pub(super) enum Before {
    /// By its own patch.
    Patch(Displacement, Vec<u8>),
    /// By the patch at this address, of a function or after another call: its displaced instructions end where the call
    /// begins.
    OfPatch(u64),
}

/// What is known about an instruction in the file. Addresses are those in the file.
struct Found<'a> {
    at: u64,
    /// The code from the nearest known start on, and where that is.
    start: u64,
    code: &'a [u8],
    /// The instructions from there up to this one.
    instructions: Vec<Instruction>,
    /// Where other code begins.
    end: u64,
    /// The call's number, if it is set right before.
    number: Option<u32>,
}

impl Found<'_> {
    fn next(&self) -> u64 {
        self.at + SYSCALL.len() as u64
    }

    /// Where a patch before it may begin, the nearest first.
    fn starts_before(&self) -> impl Iterator<Item = u64> {
        let starts = self.instructions.iter().rev().map(Instruction::ip);
        let nearest = self.at.saturating_sub(PATCH_BYTES as u64);
        let furthest = self.at.saturating_sub(MOST_BEFORE_BYTES);
        starts
            .skip_while(move |start| *start > nearest)
            .take_while(move |start| *start >= furthest)
            .take(MOST_BEFORE)
    }

    /// Where a patch over it may begin, the nearest first.
    fn starts_around(&self) -> impl Iterator<Item = u64> {
        let furthest = self.at.saturating_sub(MOST_BEFORE_BYTES);
        let starts = self.instructions.iter().rev().map(Instruction::ip);
        std::iter::once(self.at)
            .chain(starts.take_while(move |start| *start >= furthest))
            .take(MOST_BEFORE)
    }

    fn bytes_from(&self, svma: u64) -> &[u8] {
        let end = (self.end - self.start) as usize;
        &self.code[(svma - self.start) as usize..end]
    }

    /// Whether the function has computed jumps: their targets may be anywhere in it.
    fn jumps_anywhere(&self) -> bool {
        let bytes = self.bytes_from(self.start);
        let decoder = Decoder::with_ip(64, bytes, self.start, DecoderOptions::NONE);
        decoder
            .into_iter()
            .any(|instruction| instruction.flow_control() == FlowControl::IndirectBranch)
    }
}

/// Returns the system calls of a module that can be recorded, and those that cannot. `taken` has the end of what other
/// patches displace, by its first address.
pub(super) fn find(
    module: &LoadedModule,
    elf: &Module,
    taken: BTreeMap<u64, u64>,
) -> (Vec<Site>, Vec<Control>) {
    let found = instructions(elf);
    if found.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let branches = branches(elf, &found).moved_up(module.bias);
    let mut planner = Planner {
        module,
        branches,
        taken,
        skipped: Vec::new(),
        names: elf.symbols(),
    };
    let mut sites = Vec::new();
    for (index, one) in found.iter().enumerate() {
        let previous = index.checked_sub(1).map(|index| &found[index]);
        match planner.site(one, previous, found.get(index + 1)) {
            Ok(site) => sites.push(site),
            Err(reason) => planner.skip(one, reason),
        }
    }
    (sites, planner.skipped)
}

/// Finds the instructions. The same bytes inside other instructions do not count.
fn instructions(elf: &Module) -> Vec<Found<'_>> {
    let mut found = Vec::new();
    for range in elf.code_ranges() {
        let Some(code) = elf.code(range.start, range.len()) else {
            continue;
        };
        let range = range.start.0..range.start.0 + code.len() as u64;
        for offset in memmem::find_iter(code, &SYSCALL) {
            found.extend(instruction(elf, code, &range, range.start + offset as u64));
        }
    }
    found
}

fn instruction<'a>(elf: &Module, code: &'a [u8], range: &Range<u64>, at: u64) -> Option<Found<'a>> {
    let starts = elf.code_starts();
    let next = starts.partition_point(|start| *start <= at);
    let start = next.checked_sub(1).map_or(range.start, |last| starts[last]);
    let start = start.max(range.start);
    let end = starts
        .get(next)
        .map_or(range.end, |end| (*end).min(range.end));
    if at - start > MOST_BYTES {
        return None;
    }
    let code = &code[(start - range.start) as usize..];
    let mut instructions = Vec::new();
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    while decoder.ip() < at && decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.mnemonic() == Mnemonic::INVALID {
            instructions.clear();
        } else {
            instructions.push(instruction);
        }
    }
    if decoder.ip() != at || decoder.decode().mnemonic() != Mnemonic::Syscall {
        return None;
    }
    let number = number(&instructions);
    Some(Found {
        at,
        start,
        code,
        instructions,
        end,
        number,
    })
}

/// Returns the constant that the instructions last moved to eax, if they did so directly.
fn number(instructions: &[Instruction]) -> Option<u32> {
    let last = instructions.iter().rev().take(8).find(|instruction| {
        instruction.op_count() > 0
            && instruction.op0_register().full_register() == Register::RAX
            && !matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test)
    })?;
    match last.code() {
        Code::Mov_r32_imm32 => Some(last.immediate32()),
        Code::Mov_rm64_imm32 => Some(last.immediate32to64() as u32),
        Code::Xor_rm32_r32 | Code::Xor_r32_rm32 if last.op1_register() == Register::EAX => Some(0),
        _ => None,
    }
}

/// Returns the branches to places where patches may be.
fn branches(elf: &Module, found: &[Found<'_>]) -> Branches {
    let ranges = elf.code_ranges();
    let code: Vec<(u64, &[u8])> = ranges
        .iter()
        .filter_map(|range| Some((range.start.0, elf.code(range.start, range.len())?)))
        .collect();
    let around = found
        .iter()
        .map(|one| one.at.saturating_sub(MOST_BEFORE_BYTES)..one.next() + MOST_DISPLACED);
    branches_into(&code, elf.code_starts(), around)
}

struct Planner<'a> {
    module: &'a LoadedModule,
    branches: Branches,
    taken: BTreeMap<u64, u64>,
    skipped: Vec<Control>,
    names: Vec<Symbol>,
}

impl Planner<'_> {
    fn skip(&mut self, one: &Found<'_>, reason: String) {
        let after = self.names.partition_point(|symbol| symbol.svma.0 <= one.at);
        let number = one.number.map_or(String::new(), |n| format!(" {n}"));
        let name = match after.checked_sub(1).map(|index| &self.names[index]) {
            Some(symbol) => format!("{NAMED}{number} in {}", symbol.name),
            None => format!("{NAMED}{number}"),
        };
        self.skipped
            .push(skipped(self.module.number, one.at, &name, reason));
    }

    fn site(
        &mut self,
        one: &Found<'_>,
        previous: Option<&Found<'_>>,
        next: Option<&Found<'_>>,
    ) -> Result<Site, String> {
        if one.number == Some(SIGRETURN) {
            return Err(
                "a signal handler returns there, and unwinders know it by its bytes".into(),
            );
        }
        let is_soon = |from: &Found<'_>, to: &Found<'_>| to.at - from.at <= UNMAPPED_BYTES;
        let unmaps = |from: &Found<'_>, to: &Found<'_>| {
            from.number == Some(MUNMAP) && to.number == Some(EXIT) && is_soon(from, to)
        };
        if next.is_some_and(|next| unmaps(one, next))
            || previous.is_some_and(|previous| unmaps(previous, one))
        {
            return Err("the thread has no stack there any more".into());
        }
        let jumps_anywhere = one.jumps_anywhere();
        let at = self.module.addr_from_svma(one.at);
        let returns = !matches!(one.number, Some(EXIT | EXIT_GROUP));
        let was_taken = self.taken.clone();
        let apart = self.before(one, jumps_anywhere).and_then(|before| {
            let after = match returns {
                true => Some(self.after(one, jumps_anywhere)?),
                false => None,
            };
            Ok(Site::Apart { at, before, after })
        });
        let reason = match apart {
            Ok(site) => return Ok(site),
            Err(reason) => reason,
        };
        self.taken = was_taken;
        if let Some(site) = self.displaced(one, jumps_anywhere) {
            return Ok(site);
        }
        let before = self.before(one, jumps_anywhere)?;
        self.skip(one, format!("only its beginning is recorded: {reason}"));
        let after = None;
        Ok(Site::Apart { at, before, after })
    }

    /// Plans to displace the instruction itself.
    fn displaced(&mut self, one: &Found<'_>, jumps_anywhere: bool) -> Option<Site> {
        if jumps_anywhere {
            return None;
        }
        let at = self.module.addr_from_svma(one.at);
        for start in one.starts_around() {
            let entry = self.module.addr_from_svma(start);
            let code = one.bytes_from(start);
            let size = one.end - start;
            let least = ((one.next() - start) as usize).max(PATCH_BYTES);
            let planned = plan_at_least(code, entry, size, self.limits(one), least, at);
            let Ok(planned) = planned else {
                continue;
            };
            let len = planned.len_bytes();
            let parts = planned.around(at);
            let runs_through =
                parts.is_some_and(|(before, _)| before.is_none_or(|before| before.runs_through()));
            if !runs_through
                || planned.instruction_count() > MOST_BEFORE
                || self.overlaps(entry..entry + len as u64)
            {
                continue;
            }
            self.taken.insert(entry, entry + len as u64);
            return Some(Site::Displaced {
                at,
                displacement: planned,
                code: code[..len].to_vec(),
            });
        }
        None
    }

    fn before(&mut self, one: &Found<'_>, jumps_anywhere: bool) -> Result<Before, String> {
        let at = self.module.addr_from_svma(one.at);
        let near = self.taken.range(..at).next_back();
        if let Some((entry, end)) = near
            && *end >= at
        {
            let is_passed_by = self.branches.into_range(entry + 1..at + 1).next().is_some();
            return match (*end == at, is_passed_by) {
                (true, false) => Ok(Before::OfPatch(*entry)),
                (true, true) => Err("a branch leads past the patch before it".into()),
                (false, _) => Err("another patch displaces it".into()),
            };
        }
        let mut reason = "the function begins right before it".to_owned();
        for start in one.starts_before() {
            let entry = self.module.addr_from_svma(start);
            if self.overlaps(entry..at) {
                reason = "another patch is right before it".into();
                continue;
            }
            let code = one.bytes_from(start);
            let size = one.end - start;
            let least = (one.at - start) as usize;
            let planned = plan_at_least(code, entry, size, self.limits(one), least, at);
            match planned {
                Err(refusal) => reason = refusal.to_string(),
                Ok(planned) => match fits_before(&planned, least, jumps_anywhere) {
                    Some(why) => reason = why.to_owned(),
                    None => {
                        self.taken.insert(entry, at);
                        return Ok(Before::Patch(planned, code[..least].to_vec()));
                    }
                },
            }
        }
        Err(reason)
    }

    fn after(
        &mut self,
        one: &Found<'_>,
        jumps_anywhere: bool,
    ) -> Result<(Displacement, Vec<u8>), String> {
        let entry = self.module.addr_from_svma(one.next());
        let size = one.end.saturating_sub(one.next());
        if size == 0 {
            return Err("nothing follows it".into());
        }
        let code = one.bytes_from(one.next());
        let planned = plan(code, entry, size, self.limits(one)).map_err(|why| why.to_string())?;
        let len = planned.len_bytes();
        if jumps_anywhere && planned.instruction_count() > 1 {
            return Err(COMPUTED.into());
        }
        if self.overlaps(entry..entry + len as u64) {
            return Err("another patch follows it directly".into());
        }
        self.taken.insert(entry, entry + len as u64);
        Ok((planned, code[..len].to_vec()))
    }

    fn limits(&self, one: &Found<'_>) -> Limits<'_> {
        Limits::up_to(self.module.addr_from_svma(one.end)).with_branches(&self.branches)
    }

    fn overlaps(&self, range: Range<u64>) -> bool {
        let before = self.taken.range(..range.end).next_back();
        before.is_some_and(|(_, end)| *end > range.start)
    }
}

const COMPUTED: &str =
    "its function jumps to computed addresses, which may be between the instructions";

/// Returns why the instructions before a call cannot be displaced.
fn fits_before(planned: &Displacement, least: usize, jumps_anywhere: bool) -> Option<&'static str> {
    let count = planned.instruction_count();
    match () {
        () if planned.len_bytes() != least || count > MOST_BEFORE => {
            Some("the instructions before it cannot be displaced alone")
        }
        () if !planned.runs_through() => Some("the instructions before it do not lead to it"),
        () if jumps_anywhere && count > 1 => Some(COMPUTED),
        () => None,
    }
}
