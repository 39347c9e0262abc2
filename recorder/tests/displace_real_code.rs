//! Every function of the C and C++ libraries and of this test itself is either planned, with a copy that does the same
//! instruction by instruction, or refused for a reason; and few are refused. The copies are read back with a
//! disassembler and compared with the originals by rules written independently of the encoder.

mod displace_elf;

use std::collections::BTreeMap;
use std::path::Path;

use displace_elf::{Function, Text, texts};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};
use recorder::displace::{Displacement, Trampoline};

/// Where the copies near and far from the code lie, relative to the section.
const NEAR: u64 = 64 << 20;
const FAR: u64 = 0x5500_0000_0000;

fn instruction_at(code: &[u8], start: u64, at: u64) -> Instruction {
    let bytes = &code[(at - start) as usize..];
    let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
    assert!(!instruction.is_invalid(), "an instruction at {at:#x}");
    instruction
}

/// Decodes a copy like a processor.
struct Reader<'a> {
    copy: &'a Trampoline,
    at: u64,
}

impl Reader<'_> {
    fn next(&mut self) -> Instruction {
        let instruction = instruction_at(&self.copy.bytes, self.copy.at, self.at);
        self.at = instruction.next_ip();
        instruction
    }

    fn quad(&self, at: u64) -> u64 {
        let start = (at - self.copy.at) as usize;
        let bytes = self.copy.bytes[start..start + 8].try_into();
        u64::from_le_bytes(bytes.expect("eight bytes"))
    }

    /// Reads a jump, direct or through a literal after it, and returns its target.
    fn jump(&mut self) -> u64 {
        let jump = self.next();
        match jump.code() {
            Code::Jmp_rel32_64 => jump.near_branch_target(),
            Code::Jmp_rm64 => {
                assert_eq!(jump.ip_rel_memory_address(), self.at, "the literal follows");
                self.at += 8;
                self.quad(jump.next_ip())
            }
            other => panic!("{other:?} is not a jump"),
        }
    }

    /// Reads a conditional jump in its direct or its inverted form.
    fn jump_if(&mut self, original: &Instruction) -> u64 {
        let jump = self.next();
        if jump.is_jcc_near() {
            assert_eq!(jump.condition_code(), original.condition_code());
            return jump.near_branch_target();
        }
        assert!(jump.is_jcc_short());
        let mut opposite = jump;
        opposite.negate_condition_code();
        assert_eq!(opposite.condition_code(), original.condition_code());
        let target = self.jump();
        assert_eq!(jump.near_branch_target(), self.at, "jumps over the jump");
        target
    }

    /// Reads `loop over; jmp past; over: jmp target; past:`.
    fn count_jump(&mut self, original: &Instruction) -> u64 {
        let count = self.next();
        assert_eq!(count.code(), original.code());
        let past = self.next();
        assert_eq!(past.code(), Code::Jmp_rel8_64);
        assert_eq!(count.near_branch_target(), self.at);
        let target = self.jump();
        assert_eq!(past.near_branch_target(), self.at);
        target
    }

    /// Reads `push [literal]`. Returns the pushed value and the literal's address.
    fn push(&mut self) -> (u64, u64) {
        let push = self.next();
        assert_eq!(push.code(), Code::Push_rm64);
        let literal = push.ip_rel_memory_address();
        (self.quad(literal), literal)
    }
}

/// Compares a copy with the original, instruction by instruction.
fn check_equivalent(text: &Text, function: &Function, plan: &Displacement, copy: &Trampoline) {
    let code = text.code_from(function);
    let moved = |target: u64| copy.moved(target).unwrap_or(target);
    let mut reader = Reader { copy, at: copy.at };
    let mut ended = false;
    for step in &copy.moves[..plan.instruction_count()] {
        assert_eq!(step.new, reader.at, "the copies lie side by side");
        let original = instruction_at(code, function.entry, step.old);
        ended = false;
        match original.flow_control() {
            FlowControl::ConditionalBranch if original.is_jcc_short_or_near() => {
                assert_eq!(
                    reader.jump_if(&original),
                    moved(original.near_branch_target())
                );
            }
            FlowControl::ConditionalBranch => {
                assert_eq!(
                    reader.count_jump(&original),
                    moved(original.near_branch_target())
                );
            }
            FlowControl::UnconditionalBranch => {
                assert_eq!(reader.jump(), moved(original.near_branch_target()));
                ended = true;
            }
            FlowControl::Call if original.mnemonic() == Mnemonic::Call => {
                let (pushed, literal) = reader.push();
                assert_eq!(pushed, original.next_ip());
                assert_eq!(reader.jump(), original.near_branch_target());
                assert_eq!(literal, reader.at);
                reader.at += 8;
                ended = true;
            }
            FlowControl::IndirectCall => {
                let (pushed, literal) = reader.push();
                assert_eq!(pushed, original.next_ip());
                check_called_through_jump(&original, &reader.next());
                assert_eq!(literal, reader.at);
                reader.at += 8;
                ended = true;
            }
            flow => {
                assert_eq!(reader.next(), original);
                ended = matches!(flow, FlowControl::Return | FlowControl::IndirectBranch);
            }
        }
    }
    if !ended {
        assert_eq!(reader.jump(), function.entry + plan.len_bytes() as u64);
    }
    assert_eq!(
        reader.at,
        copy.at + copy.bytes.len() as u64,
        "nothing follows"
    );
}

fn check_called_through_jump(call: &Instruction, jump: &Instruction) {
    assert_eq!(jump.code(), Code::Jmp_rm64);
    let mut expected = *call;
    expected.set_code(Code::Jmp_rm64);
    if call.op0_kind() == OpKind::Memory && call.memory_base() == Register::RSP {
        expected.set_memory_displacement64(call.memory_displacement64().wrapping_add(8));
        expected.set_memory_displ_size(jump.memory_displ_size());
    }
    assert_eq!(*jump, expected);
}

#[derive(Default)]
struct Tally {
    functions: usize,
    long_enough: usize,
    refused_long_enough: usize,
    refused: BTreeMap<&'static str, Vec<String>>,
}

impl Tally {
    fn of(path: &Path) -> Tally {
        let mut tally = Tally::default();
        for text in texts(path, 0) {
            for function in &text.functions {
                tally.count(&text, function);
            }
        }
        tally.print(path);
        tally
    }

    fn count(&mut self, text: &Text, function: &Function) {
        // At least five bytes of its own: a shorter function depends on the padding after it.
        let long_enough = function.size >= 5;
        self.functions += 1;
        self.long_enough += usize::from(long_enough);
        match text.plan(function) {
            Ok(plan) => {
                let near = plan.encode(text.start + NEAR).expect("all is near");
                check_equivalent(text, function, &plan, &near);
                if let Ok(far) = plan.encode(FAR) {
                    check_equivalent(text, function, &plan, &far);
                }
            }
            Err(refusal) => {
                self.refused_long_enough += usize::from(long_enough);
                let line = format!("{} ({} bytes): {refusal}", function.name, function.size);
                self.refused.entry(refusal.kind()).or_default().push(line);
            }
        }
    }

    fn print(&self, path: &Path) {
        println!(
            "{}: {} functions, {} of at least 5 bytes, of which {} refused ({:.2} %)",
            path.display(),
            self.functions,
            self.long_enough,
            self.refused_long_enough,
            self.refused_percent()
        );
        for (kind, lines) in &self.refused {
            println!("  {kind}: {}", lines.len());
            for line in lines.iter().take(5) {
                println!("    {line}");
            }
        }
    }

    fn refused_percent(&self) -> f64 {
        100.0 * self.refused_long_enough as f64 / self.long_enough.max(1) as f64
    }
}

fn check_file(path: &Path, at_least_functions: usize) {
    let tally = Tally::of(path);
    assert!(
        tally.functions >= at_least_functions,
        "{} functions",
        tally.functions
    );
    assert!(
        tally.refused_percent() < 2.0,
        "{:.2} % refused",
        tally.refused_percent()
    );
}

#[test]
fn c_library_can_be_patched() {
    check_file(Path::new("/lib/x86_64-linux-gnu/libc.so.6"), 1000);
}

#[test]
fn cxx_library_can_be_patched() {
    check_file(Path::new("/usr/lib/x86_64-linux-gnu/libstdc++.so.6"), 1000);
}

#[test]
fn this_test_can_be_patched() {
    check_file(&std::env::current_exe().expect("a test has a path"), 1000);
}
