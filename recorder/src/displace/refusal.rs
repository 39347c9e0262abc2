//! Why a function's entry cannot be displaced.

use thiserror::Error;

/// A reason not to patch a function. All addresses are those passed to [`plan`](super::plan) or
/// [`encode`](super::Displacement::encode).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("only {given} of the function's {size} bytes were given")]
    CodeMissing { given: u64, size: u64 },
    #[error(
        "the function has only {room} bytes to overwrite before other code begins; a patch needs 5"
    )]
    TooShort { room: u64 },
    #[error("the bytes at {at:#x} are not a known instruction")]
    Undecodable { at: u64 },
    #[error(
        "the code at {at:#x}, inside the patched bytes, is only reached by a jump that cannot be seen"
    )]
    HiddenCode { at: u64 },
    #[error("the branch at {from:#x} leads to {to:#x}, inside the patched bytes")]
    BranchIntoPatch { from: u64, to: u64 },
    #[error("the instruction at {from:#x} refers to {to:#x}, inside the patched bytes, as data")]
    PatchUsedAsData { from: u64, to: u64 },
    #[error("the call at {call:#x} returns to {to:#x}, inside the patched bytes")]
    ReturnIntoPatch { call: u64, to: u64 },
    #[error(
        "the call at {call:#x} finds its target through a stack slot that displacing would overwrite"
    )]
    CallThroughStack { call: u64 },
    #[error("the instruction at {at:#x} is privileged")]
    Privileged { at: u64 },
    #[error("the instruction at {at:#x} traps on purpose, and its address is the message")]
    Trap { at: u64 },
    #[error("the branch at {at:#x} is a far branch or return")]
    FarBranch { at: u64 },
    #[error(
        "the branch at {at:#x} has a 16-bit form whose meaning depends on the processor's maker"
    )]
    OddBranch { at: u64 },
    #[error("the instruction at {at:#x} begins a hardware transaction, which would be aborted")]
    Transaction { at: u64 },
    #[error("the instruction at {at:#x} addresses memory relative to eip")]
    EipRelative { at: u64 },
    #[error(
        "the instruction at {at:#x} enters the kernel or a hypervisor in a way that is not relocated"
    )]
    OddSystemCall { at: u64 },
    #[error(
        "the function is a signal return trampoline: it is never called, and unwinders recognise it by its bytes"
    )]
    SignalReturn,
    #[error("{target:#x} is more than 2 GiB away from {from:#x}")]
    OutOfReach { from: u64, target: u64 },
}

impl Refusal {
    /// Names the reason without its addresses, for counting.
    pub fn kind(&self) -> &'static str {
        match self {
            Refusal::CodeMissing { .. } => "code missing",
            Refusal::TooShort { .. } => "too short",
            Refusal::Undecodable { .. } => "undecodable",
            Refusal::HiddenCode { .. } => "hidden code",
            Refusal::BranchIntoPatch { .. } => "branch into patch",
            Refusal::PatchUsedAsData { .. } => "patch used as data",
            Refusal::ReturnIntoPatch { .. } => "return into patch",
            Refusal::CallThroughStack { .. } => "call through stack",
            Refusal::Privileged { .. } => "privileged",
            Refusal::Trap { .. } => "trap",
            Refusal::FarBranch { .. } => "far branch",
            Refusal::OddBranch { .. } => "odd branch",
            Refusal::Transaction { .. } => "transaction",
            Refusal::EipRelative { .. } => "eip-relative",
            Refusal::OddSystemCall { .. } => "odd system call",
            Refusal::SignalReturn => "signal return",
            Refusal::OutOfReach { .. } => "out of reach",
        }
    }
}
