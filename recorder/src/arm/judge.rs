//! Decides whether a function may be patched, using everything known about it, and plans the patch.
//!
//! Invariant: no planned patch leaves a branch of the module into its middle. The rules for Go are in `golang.rs`.

use debuginfo::{Module, Svma};
use store::control::FunctionDef;

use super::{
    LoadedModule,
    conventions::{Collected, refused_by_frame, refused_by_name},
    sweeps::Sweep,
};
use crate::displace::{Branches, Displacement, Limits, plan};

/// Maximum number of bytes to read of a function whose size is unknown.
const LONGEST_UNKNOWN: u64 = 4096;

/// Decides which functions of a module may be patched.
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
        // Unwind tables describe all stubs together, by expressions. A stub is known to be safe without them.
        if !def.linkage.ends_with("@plt") {
            let code = self.code(def.svma, def.size)?;
            if let Some(reason) = refused_by_frame(self.elf, def.svma, code.own()) {
                return Err(reason.to_owned());
            }
        }
        self.displacement(def.svma, def.size)
    }

    /// Plans the displacement of the function at `svma`. Returns it with the code it was planned from.
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

    /// Returns the code of the function at `svma`. `size` is 0 if the file does not give it.
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

/// A function's bytes, and the bytes after it up to the next function.
struct FunctionCode<'a> {
    bytes: &'a [u8],
    /// Length of the function in bytes; 0 if unknown.
    size: u64,
    /// Address of the next code.
    limit: u64,
}

impl<'a> FunctionCode<'a> {
    /// The bytes that belong to the function, as far as known.
    fn own(&self) -> &'a [u8] {
        match self.size {
            0 => self.bytes,
            size => &self.bytes[..self.bytes.len().min(size as usize)],
        }
    }
}
