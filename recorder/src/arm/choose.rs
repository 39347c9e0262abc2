//! Selects the functions of a module that are candidates for hooks, and collects what is known about them.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use debuginfo::prototypes::{Prototype, is_c_library, prototype};
use debuginfo::{EntryFrame, Module, PltEntry, Symbol, SymbolKind, function_name};
use store::control::{FunctionDef, Param, ParameterPlace, RetPlace, SecondPlace, ValueKind};

use super::conventions::refused_by_name;
use super::filter::{Filter, Place, Subject};
use super::inner;
use super::prototypes;

/// A function to hook. It gets its id when it is armed.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its definition in the recording, except for `id` and `module`.
    pub def: FunctionDef,
    /// How many xmm argument registers to keep: 0, 2, 4 or 8.
    pub xmm_args: u8,
    /// Whether to keep xmm0 and xmm1 on return.
    pub ret_xmm: bool,
    /// How to find the strings that its integer arguments point to: `HS_TEXT_`, or 0.
    pub texts: [u8; 6],
    /// What to capture of the memory that its integer arguments point to: `HS_POINTEE_`, or 0.
    pub pointees: [u16; 6],
    /// Its prototype from the headers of the C library.
    pub prototype: Option<Prototype>,
}

/// Start-up code that the linker adds. It is never a candidate by symbol.
const START_UP: &[&str] = &[
    "_start",
    "_init",
    "_fini",
    "_dl_relocate_static_pie",
    "deregister_tm_clones",
    "register_tm_clones",
    "__do_global_dtors_aux",
    "frame_dummy",
    "__libc_csu_init",
    "__libc_csu_fini",
];

/// Functions that a language's static library brings along, without debug information: of C and C++, unwinding, Ada, Fortran, D, Haskell,
/// OCaml, sanitizers and coverage. A module with one of them has the others too.
const OF_STATIC_LIBRARIES: &[&str] = &[
    "__libc_start_main",
    "__libc_start_call_main",
    "__cxa_throw",
    "_Unwind_Resume",
    "__gnat_initialize",
    "_gfortran_set_args",
    "_d_run_main",
    "hs_main",
    "caml_main",
    "__sanitizer_set_report_path",
    "__gcov_exit",
    "__llvm_profile_write_file",
];
/// Functions that the C library has only in its static part, from which linkers take them for any program.
const LINKED_IN: &[&str] = &["atexit", "at_quick_exit", "pthread_atfork"];
/// What is in no source of the program: how demangled names of such functions begin. Two underscores are reserved to compilers and
/// their libraries (`__udivti3`, `__clang_call_terminate`, `__rustc::__rust_alloc`).
const MADE_BY_COMPILERS: &[&str] = &[
    "__",
    "non-virtual thunk to ",
    "virtual thunk to ",
    "covariant return thunk to ",
];
/// How the names of the parts of Rust's library begin that run a program's `main`.
const RUST_START: &str = "std::rt::lang_start";

/// Returns the functions of `module` that `filter` wants: the functions with debug information, and those with symbols that none
/// describes. A module without debug information yields also the stubs through which it calls other libraries. A function of a
/// system library has the name that its users know.
pub fn candidates(module: &Module, filter: &Filter, is_system: bool) -> Vec<Candidate> {
    let functions = &module.functions().list;
    let mut all = if functions.is_empty() {
        from_symbols(module, is_system)
    } else {
        let described = functions.iter().map(from_dwarf);
        described
            .chain(undescribed(module, filter, is_system))
            .collect()
    };
    if is_system && filter.also().has_inner() {
        add_aligned(module, &mut all);
    }
    if !is_system && !functions.is_empty() {
        // If the library's own function cannot be patched, its stub may be.
        all.extend(stubs(module).filter(|stub| filter.also().has_stub(&stub.def.linkage)));
    }
    if is_system {
        // What chooses among several functions has the name of what is chosen, and is not it.
        let choosers = addresses_of(module, SymbolKind::Ifunc);
        all.retain(|candidate| !choosers.contains(&candidate.def.svma));
    }
    let aliases = match is_system {
        true => Aliases::of(module),
        false => Aliases::default(),
    };
    let by_name = is_system && !filter.names(module.path());
    let place = Place::of(module.path(), module, is_system);
    let wants = |def: &FunctionDef, aliases: &[String]| {
        let subject = Subject {
            name: &def.name,
            linkage: &def.linkage,
            aliases,
            file: def.file.as_deref(),
            module: place,
        };
        match by_name {
            true => filter.wants_by_name(subject),
            false => filter.wants(subject),
        }
    };
    all.retain_mut(|candidate| {
        let aliases = aliases.at(candidate.def.svma);
        let is_wanted = wants(&candidate.def, aliases);
        if let Some(known) = aliases.first().filter(|_| is_wanted) {
            candidate.def.name.clone_from(known);
            candidate.def.linkage.clone_from(known);
        }
        // Debug information of the library has its inner names and no constants.
        if is_wanted && place.is_c_library {
            let known = aliases.iter().find_map(|alias| prototype(alias));
            known
                .into_iter()
                .for_each(|known| prototypes::apply(candidate, known));
        }
        is_wanted
    });
    if !is_system {
        let known: HashSet<u64> = all.iter().map(|candidate| candidate.def.svma).collect();
        let by_target = stubs_by_target(module, filter);
        all.extend(by_target.filter(|stub| !known.contains(&stub.def.svma)));
    }
    all
}

/// The addresses of the symbols of a kind.
fn addresses_of(module: &Module, kind: SymbolKind) -> HashSet<u64> {
    let symbols = module.symbols().into_iter();
    let of_kind = symbols.filter(|symbol| symbol.kind == kind);
    of_kind.map(|symbol| symbol.svma.0).collect()
}

/// The names of the functions of a C library by address. The one that programs use is the first.
#[derive(Debug, Default)]
struct Aliases(HashMap<u64, Vec<String>>);

impl Aliases {
    fn of(module: &Module) -> Aliases {
        let mut names: HashMap<u64, Vec<String>> = HashMap::new();
        for symbol in module.symbols() {
            // C++ and Rust have names of their own, which say more than the linker's.
            if symbol.kind == SymbolKind::Function && symbol.name == symbol.linkage {
                names.entry(symbol.svma.0).or_default().push(symbol.linkage);
            }
        }
        for names in names.values_mut() {
            let underscores = |name: &String| name.bytes().take_while(|byte| *byte == b'_').count();
            // A function that must not be hooked under one of its names is known by that name.
            let is_free = |name: &String| refused_by_name(name).is_none();
            names.sort_by_cached_key(|name| {
                (is_free(name), underscores(name), name.len(), name.clone())
            });
        }
        Aliases(names)
    }

    fn at(&self, svma: u64) -> &[String] {
        self.0.get(&svma).map_or(&[], Vec::as_slice)
    }
}

fn from_dwarf(function: &debuginfo::Function) -> Candidate {
    let params = function.params.iter().map(|param| Param {
        name: param.name.clone(),
        kind: if param.indirect {
            ValueKind::Pointer
        } else {
            value_kind(&param.kind)
        },
        place: place(param.place),
        second: param.place2.map(|second| SecondPlace {
            from: param.second_at,
            place: place(second),
        }),
        is_indirect: param.indirect,
    });
    let def = FunctionDef {
        id: 0,
        module: 0,
        svma: function.svma.0,
        size: function.size,
        name: function.name.clone(),
        linkage: function.linkage.clone(),
        file: function.file.as_deref().map(str::to_owned),
        line: function.line,
        params: params.collect(),
        ret: value_kind(&function.ret),
        params_known: function.params_known,
        ret_place: Some(ret_place(function.ret_place)),
    };
    let xmm_args = match function.xmm.args {
        0 if function.variadic => 8,
        0 => 0,
        1..=2 => 2,
        3..=4 => 4,
        _ => 8,
    };
    Candidate {
        def,
        xmm_args,
        ret_xmm: function.xmm.ret,
        texts: [0; 6],
        pointees: [0; 6],
        prototype: None,
    }
}

/// The functions that a module's debug information does not describe. Without a pattern that selects them, those which the program's
/// author did not write are left out, assembler that no unwind table describes, and what lies between functions that are described.
fn undescribed(module: &Module, filter: &Filter, is_system: bool) -> Vec<Candidate> {
    if is_system {
        return Vec::new();
    }
    let mut found = module.undescribed_functions();
    if filter.has_patterns() {
        let beside = module.functions_beside_entries().into_iter();
        found.extend(beside.filter(|symbol| !is_made_by_compilers(symbol)));
    }
    found.retain(|symbol| !START_UP.contains(&symbol.linkage.as_str()));
    if !filter.has_patterns() {
        let has_one = |names: &[&str]| {
            let mut linkages = found.iter().map(|symbol| symbol.linkage.as_str());
            linkages.any(|linkage| names.contains(&linkage))
        };
        if has_one(OF_STATIC_LIBRARIES) {
            return Vec::new();
        }
        let functions = &module.functions().list;
        let is_start = |function: &debuginfo::Function| function.name.starts_with(RUST_START);
        let is_rust = functions.iter().any(is_start);
        found.retain(|symbol| {
            let linkage = symbol.linkage.as_str();
            let is_entry_of_rust = is_rust && linkage == "main";
            let is_own = !is_entry_of_rust && !LINKED_IN.contains(&linkage);
            // Compilers say how their code is unwound. Assembler that says nothing may use its return address, which a hook changes.
            let is_compiled = || matches!(module.entry_frame(symbol.svma), EntryFrame::Call);
            is_own && !is_made_by_compilers(symbol) && is_compiled()
        });
    }
    let found = found.into_iter();
    found
        .map(|symbol| unknown(symbol.svma.0, symbol.size, symbol.name, symbol.linkage))
        .collect()
}

fn is_made_by_compilers(symbol: &Symbol) -> bool {
    let mut starts = MADE_BY_COMPILERS.iter();
    starts.any(|start| symbol.name.starts_with(*start))
}

fn from_symbols(module: &Module, is_system: bool) -> Vec<Candidate> {
    let symbols = module.symbols().into_iter().filter(|symbol| {
        symbol.kind == SymbolKind::Function && !START_UP.contains(&symbol.linkage.as_str())
    });
    let named =
        symbols.map(|symbol| unknown(symbol.svma.0, symbol.size, symbol.name, symbol.linkage));
    // Calls from one system library to another are of no interest, so their stubs are left out.
    let stubs = stubs(module).filter(|_| !is_system);
    let mut all: Vec<Candidate> = named.chain(stubs).collect();
    all.sort_by_key(|candidate| candidate.def.svma);
    all.dedup_by_key(|candidate| candidate.def.svma);
    all
}

/// The stubs through which a module calls functions of other modules by name.
fn stubs(module: &Module) -> impl Iterator<Item = Candidate> + '_ {
    let stubs = module.plt_entries().iter();
    stubs.filter(|stub| !stub.symbol.is_empty()).map(stub)
}

fn stub(stub: &PltEntry) -> Candidate {
    let linkage = format!("{}@plt", stub.symbol);
    let name = function_name(&stub.symbol).map(|name| format!("{name}@plt"));
    let name = name.unwrap_or_else(|| linkage.clone());
    let mut candidate = unknown(stub.svma.0, stub.size, name, linkage);
    if stub.library.as_deref().is_some_and(is_c_library) {
        let known = prototype(&stub.symbol).into_iter();
        known.for_each(|known| prototypes::apply(&mut candidate, known));
    }
    candidate
}

/// The stubs that a pattern selects by the function that they jump to: one of the C library, or one of several in the module
/// itself, of which one is chosen when the program starts. Such a function may have no code of its own that could be patched.
/// Where it has, its stubs are left out later.
fn stubs_by_target<'m>(
    module: &'m Module,
    filter: &'m Filter,
) -> impl Iterator<Item = Candidate> + 'm {
    let own = OnceCell::new();
    let is_chosen_here = move |name: &String| {
        let own = own.get_or_init(|| {
            let symbols = module.symbols().into_iter();
            let chosen = symbols.filter(|symbol| symbol.kind == SymbolKind::Ifunc);
            chosen
                .map(|symbol| symbol.linkage)
                .collect::<HashSet<String>>()
        });
        own.contains(name)
    };
    let is_wanted = move |stub: &&PltEntry| {
        let is_c_library = stub.library.as_deref().is_some_and(is_c_library);
        let path = match stub.library.as_deref() {
            Some(library) if is_c_library => Path::new(library),
            Some(_) => return false,
            None => module.path(),
        };
        let place = Place { path, is_c_library };
        filter.wants_stub_of(&stub.symbol, place, || {
            stub.library.is_some() || is_chosen_here(&stub.symbol)
        })
    };
    module.plt_entries().iter().filter(is_wanted).map(stub)
}

/// Adds the function that returns the block of `posix_memalign`, by the name that it has in the C library's sources.
fn add_aligned(module: &Module, all: &mut Vec<Candidate>) {
    let Some((svma, size)) = inner::aligned(module) else {
        return;
    };
    let name = inner::ALIGNED.to_owned();
    match all.iter_mut().find(|known| known.def.svma == svma) {
        Some(known) => (known.def.name, known.def.linkage) = (name.clone(), name),
        None => all.push(unknown(svma, size, name.clone(), name)),
    }
}

fn unknown(svma: u64, size: u64, name: String, linkage: String) -> Candidate {
    let def = FunctionDef {
        svma,
        size,
        ..FunctionDef::named(name, linkage)
    };
    Candidate {
        def,
        xmm_args: 0,
        ret_xmm: false,
        texts: [0; 6],
        pointees: [0; 6],
        prototype: None,
    }
}

pub(super) fn place(place: debuginfo::ParameterPlace) -> ParameterPlace {
    match place {
        debuginfo::ParameterPlace::Int(register) => ParameterPlace::Int(register),
        debuginfo::ParameterPlace::Sse(register) => ParameterPlace::Sse(register),
        _ => ParameterPlace::Memory,
    }
}

fn ret_place(place: debuginfo::RetPlace) -> RetPlace {
    use debuginfo::{RetPlace as At, RetReg};
    match place {
        At::None => RetPlace::Nowhere,
        At::Regs(RetReg::Rax, None) => RetPlace::Rax,
        At::Regs(RetReg::Xmm0, None) => RetPlace::Xmm0,
        At::Regs(_, Some(_)) => RetPlace::Registers,
        At::Hidden => RetPlace::Memory,
        At::X87 => RetPlace::X87,
        _ => RetPlace::Unknown,
    }
}

pub(super) fn value_kind(kind: &debuginfo::ValueKind) -> ValueKind {
    match kind {
        debuginfo::ValueKind::Void => ValueKind::Void,
        debuginfo::ValueKind::Bool => ValueKind::Bool,
        debuginfo::ValueKind::Char { bytes: 1 } => ValueKind::Char,
        debuginfo::ValueKind::Char { bytes } => ValueKind::Unicode { bytes: *bytes },
        debuginfo::ValueKind::Int { bytes, signed } => ValueKind::Int {
            bytes: *bytes,
            signed: *signed,
        },
        debuginfo::ValueKind::Float { bytes } => ValueKind::Float { bytes: *bytes },
        debuginfo::ValueKind::Pointer => ValueKind::Pointer,
        debuginfo::ValueKind::Enum {
            bytes,
            signed,
            names,
        } => ValueKind::Enum {
            bytes: *bytes,
            signed: *signed,
            names: names.to_vec(),
        },
        debuginfo::ValueKind::Struct { bytes } => ValueKind::Struct { bytes: *bytes },
        _ => ValueKind::Unknown,
    }
}
