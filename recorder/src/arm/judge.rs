//! Judges whether a function may be patched, by all that is known of it, and plans how.
//!
//! Invariant: what is planned leaves no branch of the module in the middle of a patch. What is particular to Go lies in
//! `golang.rs`.

use debuginfo::{Module, Svma};
use store::control::FunctionDef;

use super::{
    LoadedModule,
    conventions::{Collected, refused_by_frame, refused_by_name},
    sweeps::Sweep,
};
use crate::displace::{Branches, Displacement, Limits, plan};

/// More is not read of a function whose size nobody knows.
const LONGEST_UNKNOWN: u64 = 4096;

/// What decides which functions of a module may be patched.
pub(super) struct Judge<'a> {
    pub module: &'a LoadedModule,
    pub elf: &'a Module,
    sweep: &'a Sweep,
    branches: Branches,
    collected: Collected,
}

impl<'a> Judge<'a> {
    pub fn new(module: &'a LoadedModule, elf: &'a Module, sweep: &'a Sweep) -> Self {
        Self {
            module,
            elf,
            sweep,
            branches: sweep.inside(module.bias),
            collected: Collected::of(elf),
        }
    }

    /// Plans the hook of a function.
    pub fn probe(&self, def: &FunctionDef) -> Result<(Displacement, Vec<u8>), String> {
        let aliases = self.elf.linker_names_at(Svma(def.svma));
        let mut names = aliases.into_iter().chain([def.linkage.as_str()]);
        let refused = names
            .find_map(refused_by_name)
            .or_else(|| self.collected.refuses(def.svma, &def.linkage))
            .or_else(|| self.sweep.refuses(def.svma));
        if let Some(reason) = refused {
            return Err(reason.to_owned());
        }
        // The tables describe stubs as a whole, by expressions; what they are is known.
        if !def.linkage.ends_with("@plt") {
            let code = self.code(def.svma, def.size)?;
            if let Some(reason) = refused_by_frame(self.elf, def.svma, code.own()) {
                return Err(reason.to_owned());
            }
        }
        self.displacement(def.svma, def.size)
    }

    /// Plans the displacement of the function at `svma`; returns it with the code it was planned from.
    pub fn displacement(&self, svma: u64, size: u64) -> Result<(Displacement, Vec<u8>), String> {
        let code = self.code(svma, size)?;
        let entry = self.module.addr_from_svma(svma);
        let limit = self.module.addr_from_svma(code.limit);
        let limits = Limits::up_to(limit).with_branches(&self.branches);
        let planned = plan(code.bytes, entry, code.size, limits);
        let displacement = planned.map_err(|refusal| refusal.to_string())?;
        let code = code.bytes[..displacement.len_bytes()].to_vec();
        Ok((displacement, code))
    }

    /// The code of the function at `svma`; `size` is 0 where the file does not say.
    fn code(&self, svma: u64, size: u64) -> Result<FunctionCode<'a>, String> {
        let elf = self.elf;
        let next = elf.next_function_start(Svma(svma)).map(|next| next.0);
        let segment_end = elf
            .load_segments()
            .iter()
            .map(|segment| (segment.vaddr.0, segment.vaddr.0 + segment.filesz))
            .find(|(start, end)| (*start..*end).contains(&svma))
            .map(|(_, end)| end)
            .ok_or("it is not in a part of the file that is mapped")?;
        let known_end = if size == 0 {
            elf.function_end(Svma(svma)).map(|end| end.0)
        } else {
            Some(svma + size)
        };
        let limit = next.unwrap_or(segment_end).min(segment_end);
        let wanted = known_end
            .unwrap_or(svma + LONGEST_UNKNOWN)
            .max(limit.min(svma + 64))
            .min(segment_end)
            - svma;
        let bytes = elf
            .code(Svma(svma), wanted)
            .ok_or("its code is not in the file")?;
        let size = if size == 0 {
            known_end.map_or(0, |end| end - svma)
        } else {
            size
        };
        Ok(FunctionCode { bytes, size, limit })
    }
}

/// A function's bytes, and what follows up to the next function.
struct FunctionCode<'a> {
    bytes: &'a [u8],
    /// How many are the function's; 0: not known.
    size: u64,
    /// Where the next code begins.
    limit: u64,
}

impl<'a> FunctionCode<'a> {
    /// The bytes that are the function's, as far as that is known.
    fn own(&self) -> &'a [u8] {
        match self.size {
            0 => self.bytes,
            size => &self.bytes[..self.bytes.len().min(size as usize)],
        }
    }
}
