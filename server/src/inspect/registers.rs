//! Registers by name, as a frame sees them.

use debuginfo::{Certainty, Extended, Machine, Register, RegisterPart, Unknown};
use serde::{Deserialize, Serialize};

use super::memory::hex_bytes;
use crate::protocol::{Code, Failure};

/// A register and its contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterValue {
    /// Its name.
    pub name: String,
    /// In hexadecimal. For vectors, the 16 bytes in memory order, with `??` for each unknown one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The event that showed the value, if it may have changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<u64>,
    /// Why the value is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// What FXSAVE writes: the x87 unit and xmm0 to xmm15.
const FXSAVE_BYTES: usize = 512;

/// The registers shown by default, in gdb's order.
pub const GENERAL: [&str; 20] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "rip", "rflags", "fs_base", "gs_base",
];

/// Returns the registers called `names`. Without names, returns the general registers, and the vectors too if
/// `vectors`.
///
/// # Errors
/// A name is not that of a register.
pub fn registers(
    machine: &dyn Machine,
    names: &[String],
    vectors: bool,
) -> Result<Vec<RegisterValue>, Failure> {
    if !names.is_empty() {
        return names.iter().map(|name| named(machine, name)).collect();
    }
    let mut all: Vec<String> = GENERAL.iter().map(|name| (*name).to_owned()).collect();
    if vectors {
        all.extend((0..16).map(|number| format!("xmm{number}")));
    }
    all.iter().map(|name| named(machine, name)).collect()
}

fn named(machine: &dyn Machine, name: &str) -> Result<RegisterValue, Failure> {
    let lower = name.to_lowercase();
    if let Some(register) = Extended::by_name(lower.trim_start_matches(['$', '%'])) {
        return Ok(extended(machine, name, register));
    }
    if let Some(part) = RegisterPart::by_name(lower.trim_start_matches(['$', '%'])) {
        return Ok(part_of(machine, &lower, part));
    }
    let Some(register) = Register::by_name(&lower) else {
        let message = format!("there is no register {name}");
        return Err(Failure::new(Code::BadRequest, message)
            .hint("registers are rax to r15 and their parts (eax, ax, al, ah), rip, rflags, cs to gs, fs_base, gs_base, xmm0 to xmm15, ymm0 to ymm31, zmm0 to zmm31, k0 to k7, st0 to st7, mxcsr, fctrl, fstat, ftag, fop"));
    };
    let read = match is_vector(register) {
        true => machine
            .vector(register)
            .map(|(bytes, certainty)| (hex_bytes(&bytes), certainty))
            // The upper bytes were not captured; they are shown as unknown.
            .or_else(|unknown| {
                let low = machine.vector_low(register).map_err(|_| unknown)?;
                Ok((hex_bytes(&low.0) + &"?".repeat(16), low.1))
            }),
        false => machine
            .register(register)
            .map(|(value, certainty)| (format!("{value:#x}"), certainty)),
    };
    let name = register.name().unwrap_or_else(|| name.to_owned());
    Ok(reported(name, read))
}

fn reported(name: String, read: Result<(String, Certainty), Unknown>) -> RegisterValue {
    match read {
        Ok((value, certainty)) => RegisterValue {
            name,
            value: Some(value),
            stale_since: match certainty {
                Certainty::Known => None,
                Certainty::Stale { as_of } => Some(as_of),
            },
            unknown: None,
        },
        Err(unknown) => RegisterValue {
            name,
            value: None,
            stale_since: None,
            unknown: Some(unknown.to_string()),
        },
    }
}

/// A part of a general register.
fn part_of(machine: &dyn Machine, name: &str, part: RegisterPart) -> RegisterValue {
    let mask = u64::MAX >> (64 - part.bytes * 8);
    let read = machine.register(part.register);
    let read = read.map(|(value, certainty)| {
        let low = value >> part.offset_bits & mask;
        (format!("{low:#x}"), certainty)
    });
    reported(name.trim_start_matches(['$', '%']).to_owned(), read)
}

/// A register of the area of XSAVE: its bytes in memory order.
fn extended(machine: &dyn Machine, name: &str, register: Extended) -> RegisterValue {
    let area = machine.extended();
    let bytes = area.as_deref().and_then(|area| register.read(area));
    let unknown = match (&bytes, &area) {
        (Some(_), _) => None,
        // Of an older core file.
        (None, Some(area)) if area.len() <= FXSAVE_BYTES => Some("not captured"),
        (None, Some(_)) => Some("the processor has no such register"),
        (None, None) => Some("not captured"),
    };
    RegisterValue {
        name: name.trim_start_matches(['$', '%']).to_lowercase(),
        value: bytes.map(|bytes| hex_bytes(&bytes)),
        stale_since: None,
        unknown: unknown.map(str::to_owned),
    }
}

fn is_vector(register: Register) -> bool {
    (Register::XMM0.0..Register::XMM0.0 + 16).contains(&register.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OnlyRax;

    impl Machine for OnlyRax {
        fn memory(&self, _: u64, _: &mut [u8]) -> Result<Certainty, Unknown> {
            Err(Unknown::because("a test has none"))
        }
        fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
            match register {
                Register::RAX => Ok((0x2a, Certainty::Stale { as_of: 7 })),
                _ => Err(Unknown::because("not captured")),
            }
        }
        fn vector(&self, _: Register) -> Result<([u8; 16], Certainty), Unknown> {
            Ok(([0xab; 16], Certainty::Known))
        }
    }

    #[test]
    fn what_is_not_known_is_no_zero() {
        let all = registers(&OnlyRax, &[], false).unwrap();
        assert_eq!(all.len(), GENERAL.len());
        assert_eq!(all[0].value.as_deref(), Some("0x2a"));
        assert_eq!(all[0].stale_since, Some(7));
        assert_eq!(all[1].value, None);
        assert_eq!(all[1].unknown.as_deref(), Some("not captured"));
    }

    #[test]
    fn registers_are_found_by_every_name() {
        let names = ["$RAX", "xmm3", "pc", "$al"].map(str::to_owned);
        let some = registers(&OnlyRax, &names, false).unwrap();
        let found: Vec<&str> = some.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(found, ["rax", "xmm3", "rip", "al"]);
        assert_eq!(some[3].value.as_deref(), Some("0x2a"));
        assert_eq!(some[1].value, Some("ab".repeat(16)));
        let wrong = registers(&OnlyRax, &["rxx".to_owned()], false).unwrap_err();
        assert_eq!(wrong.code, Code::BadRequest);
        assert_eq!(registers(&OnlyRax, &[], true).unwrap().len(), 36);
    }
}
