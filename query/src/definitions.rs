//! The definitions of a recording: functions, modules, the probes that could not be armed, and live probes.
//!
//! Everything that SQL shows about a function, except its id, comes from here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use arrow::array::{ArrayRef, Int64Array, StringViewArray};
use debuginfo::object_variant;
use rustc_hash::{FxHashMap, FxHashSet};
use store::control::{Control, FunctionDef, LiveProbe};

use crate::functions::headers::Headers;

/// A mapped ELF file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its number in the recording.
    pub id: u32,
    /// When it was mapped, in ticks.
    pub ticks: u64,
    /// Path of the file.
    pub path: String,
    /// GNU build id in hex.
    pub build_id: Option<String>,
    /// Where it is mapped.
    pub addr: u64,
    /// Bytes from the first to the last one, `.bss` included.
    pub size: u64,
    /// True for libraries of the system.
    pub system: bool,
}

impl Module {
    /// Returns the last component of the path: the usual name of the module.
    pub fn name(&self) -> &str {
        Path::new(&self.path)
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or(&self.path)
    }
}

/// A requested probe that could not be armed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Number of the module.
    pub module: u32,
    /// Address inside the file.
    pub svma: u64,
    /// Name of the function.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// A probe of live control in its last state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Its latest definition.
    pub definition: LiveProbe,
    /// Whether it was removed after that.
    pub removed: bool,
}

/// All definitions of one recording.
#[derive(Debug, Default)]
pub struct Definitions {
    functions: Vec<Option<FunctionDef>>,
    modules: BTreeMap<u32, Module>,
    skipped: Vec<Skipped>,
    probes: BTreeMap<u32, Probe>,
    processor_waits: BTreeMap<u32, u64>,
    headers: OnceLock<Headers>,
    of_one_name: OnceLock<FxHashSet<u32>>,
}

impl Definitions {
    /// Adds a control event; those that define nothing are ignored. A later definition of the same id wins.
    pub fn add(&mut self, control: Control) {
        match control {
            Control::Function(function) => self.add_function(function),
            Control::Skipped {
                module,
                svma,
                name,
                reason,
            } => {
                let skipped = Skipped {
                    module,
                    svma,
                    name,
                    reason,
                };
                if !self.skipped.contains(&skipped) {
                    self.skipped.push(skipped);
                }
            }
            Control::ModuleLoad {
                ticks,
                module: id,
                path,
                build_id,
                addr,
                size,
                system,
            } => {
                let module = Module {
                    id,
                    ticks,
                    path,
                    build_id,
                    addr,
                    size,
                    system,
                };
                self.modules.insert(id, module);
            }
            Control::Probe(definition) => {
                let removed = false;
                self.probes.insert(
                    definition.id,
                    Probe {
                        definition,
                        removed,
                    },
                );
            }
            Control::ProcessorWait { tid, ns } => {
                *self.processor_waits.entry(tid).or_default() += ns;
            }
            Control::ProbeRemoved { id, .. } => {
                if let Some(probe) = self.probes.get_mut(&id) {
                    probe.removed = true;
                }
            }
            _ => {}
        }
    }

    fn add_function(&mut self, function: FunctionDef) {
        let index = function.id as usize;
        if index >= store::control::MAX_FUNCTIONS as usize {
            return;
        }
        if index >= self.functions.len() {
            self.functions.resize(index + 1, None);
        }
        self.functions[index] = Some(function);
    }

    /// Returns how long each thread waited for a processor, in ns, if that is known.
    pub fn processor_waits(&self) -> &BTreeMap<u32, u64> {
        &self.processor_waits
    }

    /// Returns what headers say of the C library's functions. All functions must be added before.
    pub fn headers(&self) -> &Headers {
        self.headers.get_or_init(|| Headers::of(self))
    }

    /// Returns the name of a function. Constructors and destructors that share one say which they are: `A::~A (deleting)`. All
    /// functions must be added before.
    pub fn told_name(&self, function: &FunctionDef) -> String {
        let of_one_name = self.of_one_name.get_or_init(|| self.of_one_name());
        let is_shared = of_one_name.contains(&function.id);
        let variant = is_shared.then(|| object_variant(&function.linkage));
        match variant.flatten() {
            Some(variant) => format!("{} ({variant})", function.name),
            None => function.name.clone(),
        }
    }

    /// Returns the ids of functions that have the name of another one in their module.
    fn of_one_name(&self) -> FxHashSet<u32> {
        let mut ids: FxHashMap<(u32, &str), Vec<u32>> = FxHashMap::default();
        for function in self.functions() {
            let alike = ids
                .entry((function.module, function.name.as_str()))
                .or_default();
            alike.push(function.id);
        }
        let alike = ids.into_values().filter(|ids| ids.len() > 1);
        alike.flatten().collect()
    }

    /// Returns one more than the largest function id.
    pub fn id_limit(&self) -> usize {
        self.functions.len()
    }

    /// Returns the functions in order of their ids.
    pub fn functions(&self) -> impl Iterator<Item = &FunctionDef> {
        self.functions.iter().flatten()
    }

    /// Returns the definition of a function id.
    pub fn function(&self, id: usize) -> Option<&FunctionDef> {
        self.functions.get(id)?.as_ref()
    }

    /// Returns whether a module has functions that are written in Rust.
    pub fn is_rust(&self, module: u32) -> bool {
        let mut own = self
            .functions()
            .filter(|function| function.module == module);
        own.any(|function| {
            function
                .file
                .as_ref()
                .is_some_and(|file| file.ends_with(".rs"))
        })
    }

    /// Returns the modules in order of their numbers.
    pub fn modules(&self) -> impl Iterator<Item = &Module> {
        self.modules.values()
    }

    /// Returns the module with a number.
    pub fn module(&self, id: u32) -> Option<&Module> {
        self.modules.get(&id)
    }

    /// Returns the probes that could not be armed, in the order of the log.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Returns the probes of live control in order of their numbers.
    pub fn probes(&self) -> impl Iterator<Item = &Probe> {
        self.probes.values()
    }

    /// Returns one value per function id: `text` of its definition, null without one.
    pub fn texts<'a>(&'a self, text: impl Fn(&'a FunctionDef) -> Option<&'a str>) -> ArrayRef {
        let values = self.functions.iter().map(|f| f.as_ref().and_then(&text));
        Arc::new(values.collect::<StringViewArray>())
    }

    /// Returns one value per function id: `number` of its definition, null without one.
    pub fn numbers(&self, number: impl Fn(&FunctionDef) -> Option<i64>) -> ArrayRef {
        let values = self.functions.iter().map(|f| f.as_ref().and_then(&number));
        Arc::new(values.collect::<Int64Array>())
    }
}
