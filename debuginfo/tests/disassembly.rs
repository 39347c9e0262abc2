//! Goal: instructions equal those of objdump: addresses, bytes, mnemonics and the names of call targets. Method: both
//! disassemble all functions of optimised programs. Then the different ways to request instructions are compared with
//! each other.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use common::{Bench, hex, open, program, tool};
use debuginfo::{
    AddressSpace, Certainty, Instruction, Machine, Mapped, Register, Unknown, disassemble,
    disassemble_function,
};

/// The file's own bytes as memory.
struct FileMemory(AddressSpace);

impl Machine for FileMemory {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        let module = &self.0.modules()[0].module;
        let found = module.code(debuginfo::Svma(address), bytes.len() as u64);
        let found = found.ok_or_else(|| Unknown::because(format!("no memory at {address:#x}")))?;
        bytes.copy_from_slice(found);
        Ok(Certainty::Known)
    }

    fn register(&self, _: Register) -> Result<(u64, Certainty), Unknown> {
        Err(Unknown::because("not captured"))
    }

    fn vector(&self, _: Register) -> Result<([u8; 16], Certainty), Unknown> {
        Err(Unknown::because("not captured"))
    }
}

fn machine(path: &Path) -> FileMemory {
    FileMemory(AddressSpace::new(vec![Mapped {
        module: Arc::new(open(path)),
        number: 0,
        bias: 0,
        range: 0..u64::MAX,
        is_system: false,
    }]))
}

/// Address, bytes, mnemonic, and the text in angle brackets.
type Theirs = BTreeMap<u64, (Vec<u8>, String, Option<String>)>;

fn objdump(path: &Path) -> Theirs {
    let output = tool("objdump", &["-d", "-M", "intel", "--insn-width=15"], path);
    let instruction = |line: &str| {
        let mut fields = line.split('\t');
        let address = fields.next()?.trim().strip_suffix(':')?;
        let bytes = fields.next()?.split_whitespace();
        let bytes: Vec<u8> = bytes
            .map(|b| u8::from_str_radix(b, 16).expect("a byte"))
            .collect();
        let text = fields.next()?;
        let named = text
            .split_once('<')
            .map(|(_, rest)| rest.trim_end_matches('>').to_owned());
        let mut words = text.split_whitespace();
        let prefixes = [
            "bnd", "rep", "repz", "repnz", "notrack", "lock", "data16", "cs",
        ];
        let mnemonic = words.find(|w| !prefixes.contains(w)).unwrap_or_default();
        Some((hex(address), (bytes, mnemonic.to_owned(), named)))
    };
    output.lines().filter_map(instruction).collect()
}

fn is_call(instruction: &Instruction) -> bool {
    instruction.text.starts_with("call ") || instruction.text.starts_with("jmp ")
}

#[test]
fn instructions_are_those_of_objdump() {
    let bench = Bench::new();
    let c = bench.compile("gcc", &program("frames.c"), "c", &["-g", "-O2", "-pthread"]);
    let plain = bench.compile("gcc", &program("arguments.c"), "plain", &["-g", "-O0"]);
    for path in [c, plain] {
        let machine = machine(&path);
        let space = &machine.0;
        let theirs = objdump(&path);
        let (mut count, mut calls) = (0, 0);
        for function in &space.modules()[0].module.functions().list {
            for ours in disassemble_function(space, &machine, function.svma.0).expect("readable") {
                let (bytes, mnemonic, named) = &theirs[&ours.address];
                assert_eq!(&ours.bytes, bytes, "{ours:x?}");
                let text = ours
                    .text
                    .split(' ')
                    .find(|w| !["bnd", "rep", "repne", "notrack", "lock"].contains(w));
                // The two use different aliases of these.
                let aliased = [
                    "j", "set", "cmov", "nop", "movs", "stos", "xchg", "movabs", "mov", "ret",
                ];
                if !aliased.iter().any(|a| mnemonic.starts_with(a)) {
                    assert_eq!(text, Some(mnemonic.as_str()), "{ours:x?}");
                }
                if let (true, Some(named)) = (is_call(&ours), named) {
                    assert_eq!(ours.target.as_ref(), Some(named), "{ours:x?}");
                    calls += 1;
                }
                assert_eq!(ours.source, space.line_at(ours.address));
                count += 1;
            }
        }
        assert!(count > 100 && calls > 10, "{count} {calls}");
    }
}

#[test]
fn instructions_from_one_on_are_those_of_its_function() {
    let bench = Bench::new();
    let path = bench.compile("gcc", &program("frames.c"), "c", &["-g", "-O2", "-pthread"]);
    let machine = machine(&path);
    let space = &machine.0;
    let main = space.functions_matching("main")[0].entry;
    let whole = disassemble_function(space, &machine, main).expect("readable");
    for (at, instruction) in whole.iter().enumerate() {
        let from = disassemble(space, &machine, instruction.address, 2).expect("readable");
        assert_eq!(from[0], *instruction);
        if let Some(next) = whole.get(at + 1) {
            assert_eq!(from[1], *next);
        }
    }
    assert!(disassemble(space, &machine, 0xffff_ffff_0000, 1).is_err());
    assert!(disassemble_function(space, &machine, 0xffff_ffff_0000).is_err());
}
