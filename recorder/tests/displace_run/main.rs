//! Patched functions compute what the unpatched ones do. Generated functions of many shapes run unpatched, then with
//! the patch leading straight to the copy (near, and beyond the reach of 32-bit distances). All registers, the flags,
//! the stack pointer and the data they write must be the same. A thread at a displaced instruction that is moved to its
//! copy must end the same way too.

mod assembler;
mod bench;
mod shape;

#[path = "../displace_lab/mod.rs"]
mod displace_lab;

use std::collections::HashMap;

use assembler::Assembler;
use bench::{Bench, COPY, FUNCTION};
use iced_x86::{Decoder, DecoderOptions, Mnemonic, Register};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};
use recorder::displace::{Limits, Refusal, plan};
use shape::{Op, Shape, shape};

const POPF: u8 = 0x9d;

/// Returns how many bytes are pushed when the function entered at `entry` reaches `address`. After a return or jump,
/// that is the number at the branch that skipped it.
fn pushed_before(code: &[u8], entry: u64, address: u64) -> u64 {
    let mut pushed = 0;
    let mut pushed_at: HashMap<u64, i64> = HashMap::new();
    for instruction in &mut Decoder::with_ip(64, code, entry, DecoderOptions::NONE) {
        pushed = *pushed_at.get(&instruction.ip()).unwrap_or(&pushed);
        if instruction.ip() >= address {
            break;
        }
        if instruction.is_jcc_short_or_near() || instruction.is_jmp_short_or_near() {
            pushed_at.insert(instruction.near_branch_target(), pushed);
        }
        let explicit = instruction.op0_register() == Register::RSP;
        pushed += match instruction.mnemonic() {
            Mnemonic::Sub if explicit => instruction.immediate(1) as i64,
            Mnemonic::Add if explicit => -(instruction.immediate(1) as i64),
            Mnemonic::Lea if explicit => -(instruction.memory_displacement64() as i64),
            Mnemonic::Call => 0,
            _ => -i64::from(instruction.stack_pointer_increment()),
        };
    }
    pushed as u64
}

#[derive(Debug, Default)]
struct Counts {
    planned: u32,
    run_far: u32,
    moved: u32,
    refused: u32,
}

fn check_shape(bench: &Bench, shape: &Shape, counts: &mut Counts) -> Result<(), TestCaseError> {
    let entry = bench.at(FUNCTION);
    let code = Assembler::assemble(shape, bench.near.start());
    let padded = [&code[..], &[0xcc; 16][..]].concat();
    let size = code.len() as u64;
    let next_code = entry + size.next_multiple_of(16);
    let plan = match plan(&padded, entry, size, Limits::up_to(next_code)) {
        Ok(plan) => plan,
        Err(refusal) => {
            counts.refused += 1;
            return check_refusal(&refusal, &code, shape);
        }
    };
    counts.planned += 1;
    bench.place(&code);
    let expected = bench.run(entry, shape, 0);

    let copy = bench
        .patch(&plan, &bench.near, bench.at(COPY))
        .expect("all is near");
    prop_assert_eq!(&bench.run(entry, shape, 0), &expected);
    for step in &copy.moves {
        // `popf` takes what the instruction before it pushed, but a run that begins there has pushed nothing.
        if code[(step.old - entry) as usize] == POPF {
            continue;
        }
        let pushed = pushed_before(&code, entry, step.old);
        bench.place(&code);
        let unmoved = bench.run(step.old, shape, pushed);
        bench
            .patch(&plan, &bench.near, bench.at(COPY))
            .expect("as before");
        prop_assert_eq!(&bench.run(step.new, shape, pushed), &unmoved);
        counts.moved += 1;
    }
    if bench.patch(&plan, &bench.far, bench.far.start()).is_ok() {
        prop_assert_eq!(&bench.run(entry, shape, 0), &expected);
        counts.run_far += 1;
    }
    Ok(())
}

/// Checks that a generated function is refused only for something it contains.
fn check_refusal(refusal: &Refusal, code: &[u8], shape: &Shape) -> Result<(), TestCaseError> {
    let calls = shape.ops.iter().any(|op| matches!(op, Op::Call(_)));
    let branches_back = shape.back.is_some();
    let skips = |op: &Op| matches!(op, Op::SkipAlways { .. } | Op::ReturnIf { .. });
    let justified = match refusal {
        Refusal::ReturnIntoPatch { .. } => calls,
        Refusal::BranchIntoPatch { from, to } => branches_back && to < from,
        Refusal::TooShort { .. } => code.len() < 5,
        Refusal::HiddenCode { .. } => shape.ops.iter().any(skips),
        _ => false,
    };
    prop_assert!(justified, "{refusal} in {shape:?}");
    Ok(())
}

#[test]
fn generated_functions_compute_the_same_when_patched() {
    let bench = Bench::new();
    let mut runner = TestRunner::new(Config {
        cases: 10_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource(
            "proptest-regressions",
        ))),
        source_file: Some(file!()),
        ..Config::default()
    });
    let counts = std::cell::RefCell::new(Counts::default());
    let result = runner.run(&shape(), |shape| {
        check_shape(&bench, &shape, &mut counts.borrow_mut())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let counts = counts.into_inner();
    println!("{counts:?}");
    assert!(counts.planned > 8000, "{counts:?}");
    assert!(counts.run_far > 5000, "{counts:?}");
    assert!(counts.moved > 10_000, "{counts:?}");
}
