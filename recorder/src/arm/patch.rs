//! Plans the patches of modules, and writes them into the stopped process.
//!
//! Invariants: nothing is written over bytes that are not what the file says; a thread that stands in displaced bytes is
//! moved to their copy in the same stop; what was written is remembered, so that it can be taken back.

use std::{
    collections::BTreeMap,
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
};

use agent::host::{Replacement, Started};
use agent::shared::Text;
use debuginfo::{AddressSpace, Module};
use store::control::{Control, FunctionDef};

use super::{
    LoadedModule,
    choose::{Candidate, candidates},
    filter::Filter,
    golang,
    judge::Judge,
    stubs::{Patch, Probe, Region},
    sweeps::Sweep,
};
use crate::{
    capture::{
        parameters::{in_registers, space},
        pointees, texts,
    },
    displace::{Displacement, PATCH_BYTES, place_near},
    live::tracee::hooks::SharedHooks,
    options::Captures,
    process::Way,
    stop::{StopError, StoppedProcess},
};

/// Functions of these libraries (by the beginning of their names) may be replaced.
const REPLACED_IN: [&str; 3] = ["libc.so", "ld-linux", "libgcc_s.so"];

/// A module's functions, chosen and found fit; memory for their stubs is still to be reserved.
#[derive(Debug)]
pub struct Prepared {
    module: u32,
    pub(super) probes: Vec<(Candidate, Displacement, Vec<u8>)>,
    replacements: Vec<(Replacement, Displacement, Vec<u8>)>,
    addresses: Vec<(u64, u64)>,
    /// Branches of the module that forbid patches, once they have been looked for.
    sweep: Option<Sweep>,
    anchor: Range<u64>,
    /// Probes that cannot be armed: address in the file, name, reason.
    pub skipped: Vec<Control>,
}

/// What is to be written into the stopped process.
#[derive(Debug, Default)]
pub struct Plan {
    /// Whole regions of new code.
    code: Vec<(u64, Vec<u8>)>,
    /// Words: addresses of originals, for the runtime.
    words: Vec<(u64, u64)>,
    patches: Vec<Patch>,
    /// Definitions of the functions armed, for the log.
    pub functions: Vec<FunctionDef>,
    /// What will not be seen, for the log.
    pub warnings: Vec<String>,
}

/// Arms modules, and can take everything back.
#[derive(Debug)]
pub struct Armer {
    filter: Filter,
    /// What is kept besides with calls.
    captures: Captures,
    started: Option<Started>,
    next_id: u32,
    written: BTreeMap<u64, Written>,
    /// Moved instructions: where each is now, and where it was.
    moved: Vec<(u64, u64)>,
    /// What a live session has to know of our changes.
    hooks: Option<Arc<SharedHooks>>,
    /// How the runtime got in; where not by the dynamic linker, also the executable.
    way: Way,
    alone: Option<PathBuf>,
}

/// What stood at a function's entry, and what was written over it.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// The function's own bytes.
    pub original: [u8; PATCH_BYTES],
    /// The jump to its stub.
    pub jump: [u8; PATCH_BYTES],
}

impl Plan {
    /// Returns the patches by entry address, as they will be written.
    pub fn patches(&self) -> impl Iterator<Item = (u64, Written)> {
        self.patches
            .iter()
            .map(|patch| (patch.entry, patch.written()))
    }
}

impl Patch {
    fn written(&self) -> Written {
        Written {
            original: self.expected[..PATCH_BYTES]
                .try_into()
                .expect("a displacement is at least as long as the jump"),
            jump: self.jump,
        }
    }
}

impl Prepared {
    /// Returns how many bytes of memory for code are needed near the module; 0: nothing is to be armed.
    pub fn region_bytes(&self) -> u64 {
        match self.probes.len() + self.replacements.len() {
            0 => 0,
            functions => Region::bytes_for(functions),
        }
    }

    /// Returns a place for that memory, given what is mapped.
    pub fn place(&self, mapped: &[Range<u64>]) -> Option<u64> {
        place_near(mapped, &self.anchor, self.region_bytes())
    }
}

impl Armer {
    /// Starts with nothing armed.
    pub fn new(filter: Filter, captures: Captures) -> Self {
        Self {
            filter,
            captures,
            started: None,
            next_id: 0,
            written: BTreeMap::new(),
            moved: Vec::new(),
            hooks: None,
            way: Way::Frida,
            alone: None,
        }
    }

    /// Tells that the runtime gets in without the help of a dynamic linker: functions of libraries are then replaced in
    /// the executable as well.
    pub fn goes_by(&mut self, way: Way, exe: &Path) {
        self.way = way;
        self.alone = Some(exe.to_owned());
    }

    /// Keeps `hooks` up to date from here on.
    pub(crate) fn tell(&mut self, hooks: Arc<SharedHooks>) {
        self.hooks = Some(hooks);
    }

    /// Tells where the runtime's entry points are.
    pub fn runtime_started(&mut self, started: Started) {
        self.started = Some(started);
    }

    /// Chooses what to arm in `module`. Reads files only; needs the runtime's addresses only for replacements, by name.
    pub fn prepare(&self, module: &LoadedModule) -> Prepared {
        let mut prepared = Prepared {
            module: module.number,
            probes: Vec::new(),
            replacements: Vec::new(),
            addresses: Vec::new(),
            sweep: None,
            anchor: module.file.range.clone(),
            skipped: Vec::new(),
        };
        let Some(elf) = &module.elf else {
            return prepared;
        };
        if self.filter.considers(&module.file.path, module.is_system) {
            let wanted = candidates(elf, &self.filter, module.is_system);
            if wanted.is_empty() {
                return prepared;
            }
            let starts: Vec<u64> = wanted
                .iter()
                .map(|wanted| match self.way {
                    Way::LoaderForGo => golang::patched_at(elf, &wanted.def),
                    Way::Frida | Way::Loader => wanted.def.svma,
                })
                .collect();
            let sweep = Sweep::of(elf, &starts);
            let judge = Judge::new(module, elf, &sweep);
            let space = (self.captures.texts || self.captures.pointees).then(|| space(elf));
            for mut candidate in wanted {
                if let Some(space) = &space {
                    self.choose_captures(elf, space, &mut candidate);
                }
                match self.way {
                    Way::LoaderForGo => prepared.probe_of_go(&judge, candidate),
                    Way::Frida | Way::Loader => prepared.probe(&judge, candidate),
                }
            }
            prepared.sweep = Some(sweep);
        }
        prepared
    }

    /// Says what is captured behind the arguments of a function.
    fn choose_captures(&self, elf: &Arc<Module>, space: &AddressSpace, candidate: &mut Candidate) {
        let in_registers = in_registers(space, &candidate.def);
        if self.captures.texts {
            let found = texts::of(&in_registers);
            candidate.texts = found.map(|text| text.map_or(0, Text::code));
        }
        if self.captures.pointees {
            candidate.pointees = pointees::of(elf, &candidate.def, &in_registers);
        }
    }

    /// Adds the functions of system libraries that the runtime stands in for.
    pub fn prepare_replacements(&self, module: &LoadedModule, prepared: &mut Prepared) {
        let (Some(started), Some(elf)) = (&self.started, &module.elf) else {
            return;
        };
        if !self.is_replaced_in(module) {
            return;
        }
        let symbols = elf.symbols();
        let sweep = prepared.sweep.take();
        let sweep = sweep.unwrap_or_else(|| Sweep::of(elf, &[]));
        let judge = Judge::new(module, elf, &sweep);
        for replacement in &started.replacements {
            let Some(symbol) = symbols
                .iter()
                .find(|symbol| symbol.linkage == replacement.name)
            else {
                continue;
            };
            if replacement.by == 0 {
                prepared
                    .addresses
                    .push((replacement.original, module.addr_from_svma(symbol.svma.0)));
                continue;
            }
            match judge.displacement(symbol.svma.0, symbol.size) {
                Ok((displacement, code)) => {
                    prepared
                        .replacements
                        .push((replacement.clone(), displacement, code))
                }
                Err(reason) => prepared.skipped.push(skipped(
                    module.number,
                    symbol.svma.0,
                    &symbol.name,
                    reason,
                )),
            }
        }
    }

    fn is_replaced_in(&self, module: &LoadedModule) -> bool {
        let path = &module.file.path;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_library =
            module.is_system && REPLACED_IN.iter().any(|start| name.starts_with(start));
        is_library || self.alone.as_ref() == Some(path)
    }

    /// Lays out a prepared module's code at `base` and gives its functions their ids.
    ///
    /// # Panics
    /// When the runtime was not started.
    pub fn lay_out(&mut self, prepared: &mut Prepared, base: u64, plan: &mut Plan) {
        let started = self
            .started
            .as_ref()
            .expect("modules are laid out after the runtime has started");
        let mut region = Region::new(
            base,
            prepared.region_bytes(),
            started.enter,
            started.enter_xmm,
        );
        let mut replaced = BTreeMap::new();
        for (replacement, displacement, code) in prepared.replacements.drain(..) {
            if let Ok(patch) = region.add_replacement(&displacement, &code, replacement.by) {
                plan.words.push((replacement.original, patch.trampoline.at));
                replaced.insert(patch.entry, patch);
            }
        }
        for (candidate, displacement, code) in prepared.probes.drain(..) {
            let Candidate {
                mut def,
                xmm_args,
                ret_xmm,
                texts,
                pointees,
            } = candidate;
            let probe = Probe {
                id: self.next_id,
                xmm_args,
                ret_xmm,
                texts,
                pointees,
                is_go: self.way == Way::LoaderForGo,
            };
            // A function that is both: its calls are recorded, and then what stands in for it runs.
            let added = match replaced.get(&displacement.entry()) {
                Some(replacement) => region.add_probe_of(replacement, probe),
                None => region.add_probe(&displacement, &code, probe),
            };
            match added {
                Ok(patch) => {
                    def.id = self.next_id;
                    def.module = prepared.module;
                    self.next_id += 1;
                    replaced.remove(&patch.entry);
                    plan.patches.push(patch);
                    plan.functions.push(def);
                }
                Err(refusal) => {
                    prepared.skipped.push(skipped(
                        prepared.module,
                        def.svma,
                        &def.name,
                        refusal.to_string(),
                    ));
                }
            }
        }
        plan.patches.extend(replaced.into_values());
        for (original, address) in prepared.addresses.drain(..) {
            // The runtime's own calls of a recorded function are none of the program's.
            let patch = plan.patches.iter().find(|patch| patch.entry == address);
            let address = patch.map_or(address, |patch| patch.trampoline.at);
            plan.words.push((original, address));
        }
        plan.code.push((base, region.bytes().to_vec()));
    }

    /// Writes a plan. Returns the functions whose code in memory is not the file's, by entry address: they stay as
    /// they are.
    ///
    /// # Errors
    /// When memory cannot be written; what was written until then is remembered and can be taken back.
    pub fn apply(
        &mut self,
        plan: &Plan,
        process: &mut StoppedProcess,
    ) -> Result<Vec<u64>, StopError> {
        for (address, bytes) in &plan.code {
            process.write(*address, bytes)?;
        }
        for (address, word) in &plan.words {
            process.write(*address, &word.to_le_bytes())?;
        }
        let mut changed = Vec::new();
        let mut moves = BTreeMap::new();
        for patch in &plan.patches {
            let mut found = vec![0; patch.expected.len()];
            process.read(patch.entry, &mut found)?;
            if found != patch.expected {
                changed.push(patch.entry);
                continue;
            }
            process.write(patch.entry, &patch.jump)?;
            self.written.insert(patch.entry, patch.written());
            let pairs = patch.trampoline.moves.iter();
            self.moved.extend(pairs.map(|m| (m.new, m.old)));
            moves.extend(
                patch
                    .trampoline
                    .moves
                    .iter()
                    .filter(|m| m.old != patch.entry)
                    .map(|m| (m.old, m.new)),
            );
        }
        process.move_threads(|rip| moves.get(&rip).copied())?;
        self.tell_of(plan);
        Ok(changed)
    }

    fn tell_of(&self, plan: &Plan) {
        let Some(hooks) = &self.hooks else {
            return;
        };
        let mut hooks = hooks.write().unwrap_or_else(PoisonError::into_inner);
        for (address, bytes) in &plan.code {
            hooks.add_region(*address..*address + bytes.len() as u64);
        }
        for patch in &plan.patches {
            if self.written.contains_key(&patch.entry) {
                hooks.add(patch);
            }
        }
    }

    /// Returns where the instruction stood that is now at `pc`, if one was moved there.
    pub fn original_pc(&self, pc: u64) -> Option<u64> {
        let mut moved = self.moved.iter().rev();
        moved.find(|(new, _)| *new == pc).map(|(_, old)| *old)
    }

    /// Returns the entry of the function whose stub is at `at`.
    pub fn entry_of_stub(&self, at: u64) -> Option<u64> {
        let mut patched = self.written.iter();
        let found = patched.find(|(entry, written)| {
            let [_, distance @ ..] = written.jump;
            let target =
                **entry as i64 + PATCH_BYTES as i64 + i64::from(i32::from_le_bytes(distance));
            target as u64 == at
        });
        found.map(|(entry, _)| *entry)
    }

    /// Takes back everything that still stands where it was written.
    ///
    /// # Errors
    /// When memory cannot be written.
    pub fn take_back(&mut self, process: &mut StoppedProcess) -> Result<(), StopError> {
        if let Some(hooks) = &self.hooks {
            hooks
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
        }
        take_back(&std::mem::take(&mut self.written), process)
    }

    /// Forgets what was written into a module that is gone.
    pub fn forget(&mut self, range: &Range<u64>) {
        self.written.retain(|entry, _| !range.contains(entry));
        self.moved.retain(|(_, old)| !range.contains(old));
        if let Some(hooks) = &self.hooks {
            hooks
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .forget(range);
        }
    }
}

impl Prepared {
    /// Tells whether a function of that name is replaced.
    pub fn replaces(&self, name: &str) -> bool {
        self.replacements.iter().any(|(r, ..)| r.name == name)
    }

    fn probe(&mut self, judge: &Judge<'_>, candidate: Candidate) {
        let def = &candidate.def;
        match judge.probe(def) {
            Ok((displacement, code)) => self.probes.push((candidate, displacement, code)),
            Err(reason) => self
                .skipped
                .push(skipped(self.module, def.svma, &def.name, reason)),
        }
    }
}

/// Takes back, of `patches`, what still stands where it was written.
///
/// # Errors
/// When memory cannot be written.
pub fn take_back(
    patches: &BTreeMap<u64, Written>,
    process: &mut StoppedProcess,
) -> Result<(), StopError> {
    for (entry, written) in patches {
        let mut found = [0; PATCH_BYTES];
        // A module that was unmapped took its patches along.
        if process.read(*entry, &mut found).is_ok() && found == written.jump {
            process.write(*entry, &written.original)?;
        }
    }
    Ok(())
}

pub(super) fn skipped(module: u32, svma: u64, name: &str, reason: String) -> Control {
    Control::Skipped {
        module,
        svma,
        name: name.to_owned(),
        reason,
    }
}
