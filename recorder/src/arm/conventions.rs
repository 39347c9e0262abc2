//! Names the functions that must not be hooked, with the reason, even if their first instructions allow it: they are
//! called, entered or left in an unusual way.
//!
//! A hook takes the word at rsp on entry for the return address, replaces it, and lets a few hundred bytes below the
//! stack pointer be overwritten. This is correct for every function called according to the System V ABI. Exceptions
//! are recognised by name, by the unwind tables of assembly and of parts split off a function, and, where both are
//! missing, by the code.

use debuginfo::{EntryFrame, Module, Svma};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};

const RETURNS_TWICE: &str = "it returns twice";
const OTHER_STACK: &str =
    "it returns on another stack, or to another place, than it was called from";
const LOOKS: &str = "what it does depends on its return address";
const KEEPS_REGISTERS: &str =
    "it is called with registers or a stack of its own, by code that compilers or linkers made";
const OURS: &str = "Hindsight calls it itself when a thread makes its first recorded call";
const UNWINDS: &str = "it unwinds the stack from its own frame on";

/// Names with the reason. A name that ends in an asterisk matches as a prefix.
const BY_NAME: &[(&str, &[&str])] = &[
    (
        RETURNS_TWICE,
        &[
            "setjmp",
            "_setjmp",
            "__setjmp",
            "sigsetjmp",
            "__sigsetjmp",
            "savectx",
            "vfork",
            "__vfork",
            "__libc_vfork",
            "getcontext",
            "__getcontext",
            "unw_getcontext",
            "__unw_getcontext",
            "_Ux86_64_getcontext*",
        ],
    ),
    (
        OTHER_STACK,
        &[
            "setcontext",
            "__setcontext",
            "swapcontext",
            "__swapcontext",
            "makecontext",
            "__makecontext",
            "__start_context",
            "clone",
            "__clone",
            "clone3",
            "__clone3",
            "__longjmp_chk",
            "____longjmp_chk",
            "ffi_call_unix64",
            "ffi_call_win64",
            "_dl_start_user",
        ],
    ),
    // The last entries (OCaml, V8): their garbage collectors look up return addresses.
    (
        LOOKS,
        &[
            "dlopen",
            "dlsym",
            "dlvsym",
            "dlmopen",
            "dlinfo",
            "dladdr",
            "mcount",
            "_mcount",
            "__mcount_internal",
            "__fentry__",
            "__morestack*",
            "__libc_start_main",
            "__cxa_finalize",
            "__stack_chk_fail",
            "caml_call_gc*",
            "caml_c_call*",
            "caml_alloc1",
            "caml_alloc2",
            "caml_alloc3",
            "caml_allocN",
            "caml_start_program*",
            "caml_callback*_asm",
            "caml_raise_exn",
            "caml_raise_exception",
            "Builtins_*",
        ],
    ),
    (
        KEEPS_REGISTERS,
        &[
            "_dl_runtime_resolve*",
            "_dl_runtime_profile*",
            "_dl_tlsdesc_*",
            "__tls_get_addr*",
            "__x86_indirect_thunk_*",
            "__x86_return_thunk*",
            "__llvm_retpoline_*",
            "__llvm_external_retpoline_*",
            "__llvm_lvi_thunk_*",
            "__asan_check_*",
            "__hwasan_check_*",
            "__hwasan_tag_mismatch*",
            "__rust_probestack",
            "__chkstk*",
            "___chkstk*",
        ],
    ),
    (
        OURS,
        &[
            "pthread_setspecific",
            "__pthread_setspecific",
            "___pthread_setspecific",
        ],
    ),
    (
        UNWINDS,
        &[
            "backtrace",
            "_Unwind_Backtrace",
            "_Unwind_RaiseException",
            "_Unwind_Resume",
            "_Unwind_Resume_or_Rethrow",
            "_Unwind_ForcedUnwind",
            "_Unwind_Find_FDE",
            "_Unwind_RaiseException_Phase2",
            "_Unwind_ForcedUnwind_Phase2",
            "uw_*",
            "__unw_init_local",
            "_ZN9libunwind*",
            "__cxa_throw",
            "__cxa_rethrow",
        ],
    ),
];

/// Number of instructions to read of a function that no table describes.
const LOOKED_AT: usize = 64;

/// Returns why a function must not be hooked, judged by its linkage name.
pub fn refused_by_name(linkage: &str) -> Option<&'static str> {
    let name = linkage.strip_suffix("@plt").unwrap_or(linkage);
    let is_it = |pattern: &&str| match pattern.split_once('*') {
        Some((start, end)) => name
            .strip_prefix(start)
            .is_some_and(|rest| rest.ends_with(end)),
        None => name == *pattern,
    };
    let found = BY_NAME.iter().find(|(_, names)| names.iter().any(&is_it));
    found.map(|(reason, _)| *reason)
}

/// Returns why the code at `svma` must not be hooked, judged by how control reaches it. `code` holds the bytes known to
/// belong to it.
pub fn refused_by_frame(elf: &Module, svma: u64, code: &[u8]) -> Option<&'static str> {
    match elf.entry_frame(Svma(svma)) {
        EntryFrame::Call => None,
        EntryFrame::Other => {
            Some("the unwind tables say that control does not come there by an ordinary call")
        }
        EntryFrame::Unknown => saves_all_registers(code).then_some(
            "it saves the vector registers at once, as what runs between a call and its function does",
        ),
    }
}

/// Returns whether `code` saves the vector registers before it returns or branches unconditionally, as the trampolines
/// of the dynamic linker do.
fn saves_all_registers(code: &[u8]) -> bool {
    let decoder = Decoder::new(64, code, DecoderOptions::NONE);
    decoder
        .into_iter()
        .take(LOOKED_AT)
        .take_while(|instruction| {
            !instruction.is_invalid()
                && !matches!(
                    instruction.flow_control(),
                    FlowControl::Return
                        | FlowControl::UnconditionalBranch
                        | FlowControl::IndirectBranch
                )
        })
        .any(|instruction| {
            matches!(
                instruction.mnemonic(),
                Mnemonic::Xsave
                    | Mnemonic::Xsave64
                    | Mnemonic::Xsavec
                    | Mnemonic::Xsavec64
                    | Mnemonic::Xsaveopt
                    | Mnemonic::Xsaveopt64
                    | Mnemonic::Fxsave
                    | Mnemonic::Fxsave64
            )
        })
}

/// How the names begin of functions that the code which HotSpot generates calls without noting from where: classes, and two functions.
const CALLED_BY_HOTSPOT: [&str; 8] = [
    "_ZN18InterpreterRuntime",
    "_ZN8Runtime1",
    "_ZN11OptoRuntime",
    "_ZN13SharedRuntime",
    "_ZN14Deoptimization",
    "_ZN12JVMCIRuntime",
    "_ZN20SafepointSynchronize29handle_polling_page_exception",
    "_ZN20ThreadSafepointState29handle_polling_page_exception",
];

/// The code of a module that belongs to languages whose garbage collectors look up return addresses on stacks.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    go: std::ops::Range<u64>,
    has_ocaml: bool,
    is_of_mono: bool,
    is_hotspot: bool,
}

impl Collected {
    /// Finds Go code: the range between two symbols of Go's linker, or the whole module if they were stripped.
    pub fn of(elf: &Module) -> Collected {
        let bounds = || {
            elf.address_of("runtime.text")
                .zip(elf.address_of("runtime.etext"))
        };
        let go = match elf.has_go() {
            true => bounds().map_or(0..u64::MAX, |(from, to)| from.0..to.0),
            false => 0..0,
        };
        Collected {
            go,
            has_ocaml: elf.address_of("caml_frametable").is_some(),
            is_of_mono: elf.address_of("mono_aot_file_info").is_some(),
            is_hotspot: elf.address_of("JNI_CreateJavaVM").is_some(),
        }
    }

    /// Returns why the function at `svma` must not be hooked.
    pub fn refuses(&self, svma: u64, linkage: &str) -> Option<&'static str> {
        if self.go.contains(&svma) {
            return Some(
                "it is Go: its stacks move, and its garbage collector looks up return addresses",
            );
        }
        if self.is_of_mono {
            return Some("Mono compiled it, which looks up return addresses");
        }
        if self.is_hotspot && is_called_by_hotspot(linkage) {
            return Some(
                "code that HotSpot generates calls it, and HotSpot looks up the return address",
            );
        }
        (self.has_ocaml && is_ocaml(linkage))
            .then_some("it is OCaml, whose garbage collector looks up return addresses")
    }
}

fn is_called_by_hotspot(linkage: &str) -> bool {
    CALLED_BY_HOTSPOT
        .iter()
        .any(|start| linkage.starts_with(start))
}

/// Returns whether the function was compiled from OCaml (`camlList__map_123`, `caml_curry2_1_app`) and is not part of
/// OCaml's runtime, which is C.
fn is_ocaml(linkage: &str) -> bool {
    const GENERATED: [&str; 6] = ["apply", "curry", "tuplify", "send", "program", "startup_"];
    let Some(rest) = linkage.strip_prefix("caml") else {
        return false;
    };
    let generated = rest
        .strip_prefix('_')
        .is_some_and(|rest| GENERATED.iter().any(|start| rest.starts_with(start)));
    rest.starts_with(|c: char| c.is_ascii_uppercase()) || generated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_return_twice_are_refused_by_name() {
        assert!(refused_by_name("_setjmp@plt").is_some());
        assert!(refused_by_name("vfork").is_some());
        assert!(refused_by_name("uw_init_context_1").is_some());
        assert!(refused_by_name("my_setjmp").is_none());
    }

    #[test]
    fn names_match_by_their_beginning_where_the_list_says_so() {
        for name in [
            "_dl_runtime_resolve_xsavec",
            "_dl_tlsdesc_dynamic",
            "__x86_indirect_thunk_rax",
            "__morestack",
            "caml_callback2_asm",
        ] {
            assert!(refused_by_name(name).is_some(), "{name}");
        }
        for name in [
            "_ZN18InterpreterRuntime3ldcEP10JavaThreadb",
            "_ZN20ThreadSafepointState29handle_polling_page_exceptionEv",
        ] {
            assert!(is_called_by_hotspot(name), "{name}");
            assert!(refused_by_name(name).is_none(), "{name}");
        }
        assert!(!is_called_by_hotspot("_ZN11InterpreterC1Ev"));
        for name in ["_dl_runtime", "__x86_indirect", "dlopen2", "caml_callback2"] {
            assert!(refused_by_name(name).is_none(), "{name}");
        }
    }

    #[test]
    fn ocamls_functions_are_told_from_its_runtime() {
        for name in ["camlStdlib__List__map_123", "caml_apply2", "caml_program"] {
            assert!(is_ocaml(name), "{name}");
        }
        for name in ["caml_alloc_string", "camlp4", "main"] {
            assert!(!is_ocaml(name), "{name}");
        }
    }

    #[test]
    fn a_trampoline_without_a_name_is_known_by_what_it_saves() {
        // push %rbx; mov %rsp,%rbx; and $-64,%rsp; sub $0x280,%rsp; mov %rax,(%rsp); xsavec 0x40(%rsp)
        let resolver = [
            0x53, 0x48, 0x89, 0xe3, 0x48, 0x83, 0xe4, 0xc0, 0x48, 0x81, 0xec, 0x80, 0x02, 0, 0,
            0x48, 0x89, 0x04, 0x24, 0x0f, 0xc7, 0x64, 0x24, 0x40,
        ];
        assert!(saves_all_registers(&resolver));
        // ret; xsavec 0x40(%rsp): no longer part of this function
        assert!(!saves_all_registers(&[0xc3, 0x0f, 0xc7, 0x64, 0x24, 0x40]));
    }
}
