//! Plans the patches of modules, and writes them into the stopped process.
//!
//! Invariants: bytes that differ from the file are never overwritten; a thread inside displaced bytes is moved to their
//! copy within the same stop; every write is remembered, so that it can be undone.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
    sync::{Arc, PoisonError},
};

use agent::host::{Replacement, Started};
use agent::shared::Text;
use debuginfo::{AddressSpace, Module, Svma};
use store::control::{Control, FunctionDef};

use super::{
    LoadedModule,
    choose::{Candidate, candidates},
    filter::Filter,
    golang,
    judge::Judge,
    leavers,
    libraries::Library,
    prototypes,
    replace::Owners,
    resolvers,
    stubs::{Patch, Probe, Region},
    sweeps::Sweep,
    system_calls::{self, Before, Site},
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

/// The first byte of a patch: `jmp` with a distance of 32 bits.
pub(super) const JUMP: u8 = 0xe9;

/// The runtime's code around system calls, as its replacements name it.
const AROUND_CALLS: [&str; 2] = ["hs_before_syscall", "hs_after_syscall"];

/// The chosen functions of a module that are fit to patch. Memory for their stubs is still to be reserved.
#[derive(Debug)]
pub struct Prepared {
    module: u32,
    pub(super) probes: Vec<(Candidate, Displacement, Vec<u8>)>,
    /// What the module is, if it has replaced functions.
    pub(super) library: Option<Library>,
    pub(super) replacements: Vec<(Replacement, Displacement, Vec<u8>)>,
    system_calls: Vec<Site>,
    leavers: Vec<leavers::Site>,
    pub(super) addresses: Vec<(u64, u64)>,
    /// A variable of the module, and the function of the runtime that it has to point to.
    resolver: Option<(u64, u64)>,
    /// The branches of the module that forbid patches, once swept.
    pub(super) sweep: Option<Sweep>,
    anchor: Range<u64>,
    /// Probes that cannot be armed: file address, name, reason.
    pub skipped: Vec<Control>,
}

/// What to write into the stopped process.
#[derive(Debug, Default)]
pub struct Plan {
    /// Whole regions of new code.
    code: Vec<(u64, Vec<u8>)>,
    /// Words to write for the runtime: addresses of originals.
    pub(super) words: Vec<(u64, u64)>,
    pub(super) patches: Vec<Patch>,
    /// Definitions of the armed functions, for the log.
    pub functions: Vec<FunctionDef>,
    /// What the recording will miss, for the log.
    pub warnings: Vec<String>,
}

/// Arms modules, and can undo every change.
#[derive(Debug)]
pub struct Armer {
    filter: Filter,
    /// What to capture with each call.
    captures: Captures,
    pub(super) started: Option<Started>,
    /// Whose functions the runtime calls instead of those that it replaces.
    pub(super) owners: Owners,
    next_id: u32,
    /// Names of the functions of system libraries that are recorded.
    exported: HashSet<String>,
    written: BTreeMap<u64, Written>,
    /// Those that are never undone.
    staying: HashSet<u64>,
    /// Moved instructions: new and old address.
    moved: Vec<(u64, u64)>,
    /// The changes that a live session must know about.
    hooks: Option<Arc<SharedHooks>>,
    /// How the runtime was loaded.
    way: Way,
}

/// The bytes at a function's entry before and after patching.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// The function's own bytes.
    pub original: [u8; PATCH_BYTES],
    /// The jump to its stub.
    pub jump: [u8; PATCH_BYTES],
}

impl Plan {
    /// Returns the patches that are to be undone, as they will be written, by entry address.
    pub fn patches(&self) -> impl Iterator<Item = (u64, Written)> {
        self.patches
            .iter()
            .filter(|patch| patch.tells_unwinders.is_none())
            .map(|patch| (patch.entry, patch.written()))
    }
}

impl Patch {
    /// If `found`, in the place of the patch, is what an earlier recording of the process has left there: returns the word for the
    /// function that the replacement calls, and the earlier replacement's address. Each shows its own runtime.
    fn of_earlier_recording(&self, found: &[u8]) -> Option<(u64, u64)> {
        let word = self.tells_unwinders?;
        let (jump, rest) = found.split_first_chunk::<PATCH_BYTES>()?;
        let [JUMP, distance @ ..] = *jump else {
            return None;
        };
        let next = self.entry + PATCH_BYTES as u64;
        let to = next.wrapping_add_signed(i32::from_le_bytes(distance).into());
        (rest == &self.expected[PATCH_BYTES..]).then_some((word, to))
    }

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
    /// Moves to `plan` what needs no memory near the module.
    pub fn tell(&mut self, plan: &mut Plan) {
        plan.words.extend(self.resolver.take());
    }

    /// Returns how many bytes of code memory are needed near the module; 0 if nothing is to be armed.
    pub fn region_bytes(&self) -> u64 {
        let functions = self.probes.len() + self.replacements.len() + self.leavers.len();
        match functions + 2 * self.system_calls.len() {
            0 => 0,
            entries => Region::bytes_for(entries),
        }
    }

    /// Returns a free place for that memory, given the current mappings.
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
            owners: Owners::default(),
            next_id: 0,
            exported: HashSet::new(),
            written: BTreeMap::new(),
            staying: HashSet::new(),
            moved: Vec::new(),
            hooks: None,
            way: Way::Frida,
        }
    }

    /// Sets how the runtime was loaded.
    pub fn goes_by(&mut self, way: Way) {
        self.way = way;
    }

    /// Returns the filter that selects the functions.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Keeps `hooks` up to date from now on.
    pub(crate) fn tell(&mut self, hooks: Arc<SharedHooks>) {
        self.hooks = Some(hooks);
    }

    /// Sets the addresses of the runtime's entry points.
    pub fn runtime_started(&mut self, started: Started) {
        self.started = Some(started);
    }

    /// Chooses what to arm in `module`. Only reads files. Needs the runtime's addresses only for replacements, by name.
    pub fn prepare(&self, module: &LoadedModule) -> Prepared {
        self.prepare_more(module, &self.filter).0
    }

    /// Chooses what else to arm in `module`: what a filter wants and is not patched yet. Returns how many functions already are.
    pub fn prepare_more(&self, module: &LoadedModule, filter: &Filter) -> (Prepared, u64) {
        let mut already = 0;
        let mut prepared = Prepared {
            module: module.number,
            probes: Vec::new(),
            library: None,
            replacements: Vec::new(),
            system_calls: Vec::new(),
            leavers: Vec::new(),
            addresses: Vec::new(),
            resolver: None,
            sweep: None,
            anchor: module.file.range.clone(),
            skipped: Vec::new(),
        };
        let Some(elf) = &module.elf else {
            return (prepared, already);
        };
        if filter.considers(module.place(), module.is_system, |name| elf.exports(name)) {
            let mut wanted = candidates(elf, filter, module.is_system);
            let start = |wanted: &Candidate| match self.way {
                Way::LoaderForGo => golang::patched_at(elf, &wanted.def),
                Way::Frida | Way::Loader => wanted.def.svma,
            };
            wanted.retain(|wanted| {
                let is_new = !self.has_patched(module.addr_from_svma(start(wanted)));
                already += u64::from(!is_new);
                is_new
            });
            if wanted.is_empty() {
                return (prepared, already);
            }
            let starts: Vec<u64> = wanted.iter().map(start).collect();
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
        (prepared, already)
    }

    /// Whether our jump is at a function's entry.
    pub fn has_patched(&self, entry: u64) -> bool {
        self.written.contains_key(&entry)
    }

    /// Decides what to capture of the memory that a function's arguments point to.
    fn choose_captures(&self, elf: &Arc<Module>, space: &AddressSpace, candidate: &mut Candidate) {
        if let Some(prototype) = &candidate.prototype {
            if self.captures.texts {
                candidate.texts = prototypes::texts(prototype, true);
            }
            return;
        }
        let in_registers = in_registers(space, &candidate.def);
        if self.captures.texts {
            let found = texts::of(&in_registers);
            candidate.texts = found.map(|text| text.map_or(0, Text::code));
        }
        if self.captures.pointees {
            candidate.pointees = pointees::of(elf, &candidate.def, &in_registers);
        }
    }

    /// Leaves out the stubs through which modules call functions of system libraries that are recorded themselves: a call would
    /// be recorded twice. `all` are the `modules`, prepared in the same order.
    pub fn leave_out_stubs(&mut self, modules: &[LoadedModule], all: &mut [Prepared]) {
        for (module, prepared) in modules.iter().zip(all.iter()) {
            self.exported.extend(prepared.exported(module));
        }
        for prepared in all {
            prepared.leave_out_stubs_of(&self.exported);
        }
    }

    /// Adds the functions of system libraries that the runtime replaces, where frames are left without a return, and the
    /// module's system calls if they are recorded.
    pub fn prepare_replacements(&self, module: &LoadedModule, prepared: &mut Prepared) {
        self.prepare_replaced(module, prepared);
        if let Some(elf) = &module.elf
            && self.way != Way::LoaderForGo
        {
            prepared.leavers = leavers::find(module, elf);
            let started = self.started.as_ref();
            prepared.resolver =
                started.and_then(|started| resolvers::find(module, elf, &started.replacements));
        }
        self.prepare_system_calls(module, prepared);
    }

    fn prepare_system_calls(&self, module: &LoadedModule, prepared: &mut Prepared) {
        let Some(elf) = &module.elf else {
            return;
        };
        // Goroutines' stacks have no room for a call.
        if !self.captures.system_calls || self.way == Way::LoaderForGo {
            return;
        }
        let probes = prepared.probes.iter().map(|(_, displaced, _)| displaced);
        let replaced = prepared
            .replacements
            .iter()
            .map(|(_, displaced, _)| displaced);
        let taken = probes.chain(replaced);
        let taken = taken.map(|d| (d.entry(), d.entry() + d.len_bytes() as u64));
        let (sites, mut skipped) = system_calls::find(module, elf, taken.collect());
        prepared.system_calls = sites;
        prepared.skipped.append(&mut skipped);
    }

    /// Lays out a prepared module's code at `base` and assigns ids to its functions.
    ///
    /// # Panics
    /// If the runtime was not started.
    pub fn lay_out(&mut self, prepared: &mut Prepared, base: u64, plan: &mut Plan) {
        let started = self
            .started
            .as_ref()
            .expect("modules are laid out after the runtime has started");
        let mut region = Region::new(
            base,
            prepared.region_bytes(),
            [started.enter, started.enter_xmm, started.enter_texts],
        );
        let thunk = |name: &str| {
            let mut all = started.replacements.iter();
            all.find(|r| r.name == name).map_or(0, |r| r.by)
        };
        let [before, after] = AROUND_CALLS.map(thunk);
        let before_leaving = leavers::BEFORE.map(thunk);
        let sites = std::mem::take(&mut prepared.system_calls);
        let stubs = stubs_of_patches(&sites, before, &mut region);
        let leading = |displacement: Displacement| match stubs.get(&displacement.entry()) {
            Some(stub) => displacement.leading_to(*stub),
            None => displacement,
        };
        let mut replaced = self.add_replacements(prepared, &leading, &mut region, plan);
        self.add_probes(prepared, &leading, &mut region, &mut replaced, plan);
        plan.patches.extend(replaced.into_values());
        for site in prepared.leavers.drain(..) {
            let thunk = before_leaving[site.by];
            let added = region.add_leaving(&site.displacement, &site.code, thunk);
            plan.patches.extend(added.ok());
        }
        for site in sites {
            add_site(
                site,
                [before, after],
                &leading,
                &mut region,
                &mut plan.patches,
            );
        }
        self.add_addresses(prepared, plan);
        plan.code.push((base, region.bytes().to_vec()));
    }

    /// Adds the hooks of a prepared module's functions. Takes the replacements that are part of a hook out of `replaced`.
    fn add_probes(
        &mut self,
        prepared: &mut Prepared,
        leading: &dyn Fn(Displacement) -> Displacement,
        region: &mut Region,
        replaced: &mut BTreeMap<u64, Patch>,
        plan: &mut Plan,
    ) {
        for (candidate, displacement, code) in prepared.probes.drain(..) {
            let Candidate {
                mut def,
                xmm_args,
                ret_xmm,
                texts,
                pointees,
                prototype: _,
            } = candidate;
            let probe = Probe {
                id: self.next_id,
                xmm_args,
                ret_xmm,
                texts,
                pointees,
                is_go: self.way == Way::LoaderForGo,
            };
            let displacement = leading(displacement);
            // A function may be both recorded and replaced: its calls are recorded, then the replacement runs.
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
    }

    /// Writes a plan. Returns, by entry address, the functions whose code in memory differs from the file: they are
    /// left unpatched.
    ///
    /// # Errors
    /// If memory cannot be written. Everything written before the failure is remembered and can be undone.
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
            let earlier = patch.of_earlier_recording(&found);
            if found != patch.expected && earlier.is_none() {
                changed.push(patch.entry);
                continue;
            }
            if let Some((word, earlier)) = earlier {
                process.write(word, &earlier.to_le_bytes())?;
            }
            process.write(patch.entry, &patch.jump)?;
            self.written.insert(patch.entry, patch.written());
            if patch.tells_unwinders.is_some() {
                self.staying.insert(patch.entry);
            }
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

    /// Returns the original address of the instruction now at `pc`, if one was moved there.
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

    /// Undoes every write that is still in place, but for those that stay.
    ///
    /// # Errors
    /// If memory cannot be written.
    pub fn take_back(&mut self, process: &mut StoppedProcess) -> Result<(), StopError> {
        if let Some(hooks) = &self.hooks {
            hooks
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
        }
        let mut undone = std::mem::take(&mut self.written);
        undone.retain(|entry, _| !self.staying.contains(entry));
        take_back(&undone, process)
    }

    /// Forgets the writes in a module that is gone.
    pub fn forget(&mut self, range: &Range<u64>) {
        self.written.retain(|entry, _| !range.contains(entry));
        self.moved.retain(|(_, old)| !range.contains(old));
        self.owners.forget(range);
        if let Some(hooks) = &self.hooks {
            hooks
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .forget(range);
        }
    }
}

impl Prepared {
    /// Returns the names by which other modules call those functions of a system library that are to be recorded.
    fn exported<'m>(&'m self, module: &'m LoadedModule) -> impl Iterator<Item = String> + 'm {
        let elf = module.elf.as_ref().filter(|_| module.is_system);
        let svmas = self.probes.iter().map(|(candidate, ..)| candidate.def.svma);
        elf.into_iter()
            .flat_map(move |elf| {
                let names = svmas.clone();
                names.flat_map(move |svma| elf.linker_names_at(Svma(svma)))
            })
            .map(str::to_owned)
    }

    fn leave_out_stubs_of(&mut self, recorded: &HashSet<String>) {
        self.probes.retain(|(candidate, ..)| {
            let stub = candidate.def.linkage.strip_suffix("@plt");
            stub.is_none_or(|target| !recorded.contains(target))
        });
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

/// Adds the stubs before system calls to which the displaced instructions of other patches lead. Returns them by
/// patch.
fn stubs_of_patches(sites: &[Site], thunk: u64, region: &mut Region) -> BTreeMap<u64, u64> {
    let mut stubs = BTreeMap::new();
    for site in sites {
        if let Site::Apart {
            at,
            before: Before::OfPatch(entry),
            ..
        } = site
        {
            stubs.insert(*entry, region.add_call_stub(thunk, *at, *at));
        }
    }
    stubs
}

/// Adds the patches around a system call, which lead to `thunks`. `leading`: their displaced instructions may lead to
/// another call.
fn add_site(
    site: Site,
    thunks: [u64; 2],
    leading: &dyn Fn(Displacement) -> Displacement,
    region: &mut Region,
    patches: &mut Vec<Patch>,
) {
    match site {
        Site::Apart { before, after, .. } => {
            if let Before::Patch(displacement, code) = before {
                patches.extend(region.add_before(displacement, &code, thunks[0]).ok());
            }
            if let Some((displacement, code)) = after {
                let displacement = leading(displacement);
                patches.extend(region.add_after(&displacement, &code, thunks[1]).ok());
            }
        }
        Site::Displaced {
            at,
            displacement,
            code,
        } => {
            patches.extend(region.add_around(&displacement, &code, at, thunks).ok());
        }
    }
}

/// Undoes those of `patches` that are still in place.
///
/// # Errors
/// If memory cannot be written.
pub fn take_back(
    patches: &BTreeMap<u64, Written>,
    process: &mut StoppedProcess,
) -> Result<(), StopError> {
    for (entry, written) in patches {
        let mut found = [0; PATCH_BYTES];
        // The patches of an unmapped module are gone with it.
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
