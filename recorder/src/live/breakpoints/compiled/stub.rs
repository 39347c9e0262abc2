//! Generates the code beside the program for one statement. The code saves what it uses, decides, and then runs the
//! displaced instructions or traps.
//!
//! ```text
//! entry:      save registers, flags and the red zone
//!             false: to pass              count or log, where that is all: to pass
//! no answer:  ask the tracer, where that may be: to pass
//!             restore ; int3 ; jmp copy   (nop instead of int3 once no tracer listens)
//! pass:       restore
//! copy:       the displaced instructions ; jmp to the rest of the function
//! ```

use std::collections::BTreeMap;

use debuginfo::Register;
use debuginfo::location::ir::Int;
use iced_x86::{BlockEncoderOptions, IcedError, code_asm::*};

use super::code::{Coder, Saved, takes_vectors};

/// Bytes below the stack pointer that the calling convention lets functions use.
const RED_ZONE: i32 = 128;
/// Set by the kernel in the lock of a dead owner (linux/futex.h).
const OWNER_DIED: u32 = 0x4000_0000;
/// All floating-point exceptions masked, rounding to nearest.
const USUAL_MXCSR: u32 = 0x1f80;
/// xmm0, xmm1, mxcsr.
const VECTOR_AREA: i32 = 48;
/// Flags that are always set in user space: IF, and bit 1.
const ALWAYS_SET: i32 = 0x202;

/// What a statement's code should do.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Continue only if this is not 0.
    pub condition: Option<Int>,
    pub then: Then,
    /// The tracer's lock, which shows its death.
    pub tracer_at: Option<u64>,
    /// If there is no answer, ask the tracer this first, without a stop.
    pub question: Option<Question>,
}

/// The arguments of a question to the tracer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    /// `hs_ask` in the runtime.
    pub function: u64,
    /// The address of the statement.
    pub site: u64,
}

/// What to do if the condition holds.
#[derive(Clone, Debug)]
pub(super) enum Then {
    /// Ask the tracer.
    Ask,
    /// Count in the word at `counter_at`. Ask the tracer before the count reaches the number in the next word.
    Count { counter_at: u64 },
    /// Write words to the thread's ring, and count.
    Log(Log),
}

/// Words to write.
#[derive(Clone, Debug)]
pub(super) struct Log {
    /// Address of the counter.
    pub counter_at: u64,
    /// `hs_log` in the runtime.
    pub function: u64,
    /// Its `struct hs_log_spec`.
    pub spec_at: u64,
    pub words: u32,
    /// Each value with the index of its word.
    pub values: Vec<(u32, Int)>,
}

/// Code for one address.
#[derive(Clone, Debug)]
pub(crate) struct Stub {
    /// Its first instruction.
    pub at: u64,
    /// Its end: the place for the displaced instructions.
    pub end: u64,
    pub bytes: Vec<u8>,
    /// Where a load that faults continues.
    pub no_answer_at: u64,
    pub trap_at: u64,
    /// Instructions that may fault.
    pub loads: Vec<u64>,
}

/// Generates the code for address `at`.
///
/// # Errors
/// The assembler's error.
pub(super) fn assemble(program: &Program, at: u64) -> Result<Stub, IcedError> {
    // Caller-saved registers must be saved if the code calls something.
    let calls = matches!(program.then, Then::Log(_)) || program.question.is_some();
    let vectors = program.condition.as_ref().is_some_and(takes_vectors);
    let mut asm = CodeAssembler::new(64)?;
    let (no_answer, pass, done) = (asm.create_label(), asm.create_label(), asm.create_label());
    let mut coder = Coder {
        asm,
        saved: saved(calls, vectors),
        no_answer,
        loads: Vec::new(),
    };
    save(&mut coder, calls)?;
    if let Some(tracer_at) = program.tracer_at {
        // Without a tracer, nothing would handle a load that faults.
        coder.asm.mov(rax, tracer_at)?;
        coder.asm.test(dword_ptr(rax), OWNER_DIED)?;
        coder.asm.jne(pass)?;
    }
    if let Some(condition) = &program.condition {
        coder.int(condition)?;
        coder.asm.test(rax, rax)?;
        coder.asm.je(pass)?;
    }
    match &program.then {
        Then::Ask => {}
        Then::Count { counter_at } => {
            count_up_to(&mut coder, *counter_at)?;
            coder.asm.jmp(pass)?;
        }
        Then::Log(log) => {
            leave_words(&mut coder, log)?;
            coder.asm.jmp(pass)?;
        }
    }
    let no_answer_number = coder.asm.instructions().len();
    coder.place(no_answer)?;
    if let Some(question) = program.question {
        ask(&mut coder, question)?;
        coder.asm.test(rax, rax)?;
        coder.asm.je(pass)?;
    }
    restore(&mut coder, calls)?;
    let trap_number = coder.asm.instructions().len();
    coder.asm.int3()?;
    coder.asm.jmp(done)?;
    coder.place(pass)?;
    restore(&mut coder, calls)?;
    coder.place(done)?;
    let options = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
    let made = coder.asm.assemble_options(at, options)?.inner;
    let address = |number: usize| at + u64::from(made.new_instruction_offsets[number]);
    Ok(Stub {
        at,
        end: at + made.code_buffer.len() as u64,
        no_answer_at: address(no_answer_number),
        trap_at: address(trap_number),
        loads: coder.loads.iter().map(|number| address(*number)).collect(),
        bytes: made.code_buffer,
    })
}

/// Caller-saved registers besides those used to compute, in the order in which they are pushed.
const CALL_CLOBBERED: [(u16, AsmRegister64); 6] =
    [(11, r11), (10, r10), (9, r9), (8, r8), (5, rdi), (4, rsi)];

fn saved(calls: bool, vectors: bool) -> Saved {
    let more = if calls {
        8 * CALL_CLOBBERED.len() as i32
    } else {
        0
    };
    // rbx, rdx, rcx, perhaps more, flags, rax
    let registers = [(3, 0), (1, 8), (2, 16), (0, 32 + more)];
    let clobbered = CALL_CLOBBERED.iter().rev().zip(0..);
    let others = clobbered
        .filter(|_| calls)
        .map(|((number, _), index)| (*number, 24 + 8 * index));
    Saved {
        registers: registers
            .into_iter()
            .chain(others)
            .collect::<BTreeMap<_, _>>(),
        stack: 40 + more + RED_ZONE,
        vectors: vectors.then_some([-16, -32]),
    }
}

fn save(coder: &mut Coder, calls: bool) -> Result<(), IcedError> {
    let asm = &mut coder.asm;
    asm.lea(rsp, qword_ptr(rsp - RED_ZONE))?;
    asm.push(rax)?;
    // No pushf: a single-stepped thread would save the trap flag, and keep it for ever. No instruction here or in the
    // runtime depends on the direction flag.
    asm.lahf()?;
    asm.seto(al)?;
    asm.push(rax)?;
    if calls {
        for (_, register) in CALL_CLOBBERED {
            asm.push(register)?;
        }
    }
    asm.push(rcx)?;
    asm.push(rdx)?;
    asm.push(rbx)?;
    asm.mov(rbx, rsp)?;
    if let Some([first, second]) = coder.saved.vectors {
        asm.lea(rsp, qword_ptr(rsp - VECTOR_AREA))?;
        asm.movups(xmmword_ptr(rbx + first), xmm0)?;
        asm.movups(xmmword_ptr(rbx + second), xmm1)?;
        asm.stmxcsr(dword_ptr(rbx - 40))?;
        asm.mov(dword_ptr(rbx - 36), USUAL_MXCSR)?;
        asm.ldmxcsr(dword_ptr(rbx - 36))?;
    }
    Ok(())
}

fn restore(coder: &mut Coder, calls: bool) -> Result<(), IcedError> {
    let asm = &mut coder.asm;
    if let Some([first, second]) = coder.saved.vectors {
        asm.ldmxcsr(dword_ptr(rbx - 40))?;
        asm.movups(xmm0, xmmword_ptr(rbx + first))?;
        asm.movups(xmm1, xmmword_ptr(rbx + second))?;
    }
    asm.mov(rsp, rbx)?;
    asm.pop(rbx)?;
    asm.pop(rdx)?;
    asm.pop(rcx)?;
    if calls {
        for (_, register) in CALL_CLOBBERED.iter().rev() {
            asm.pop(*register)?;
        }
    }
    asm.pop(rax)?;
    asm.add(al, 127)?;
    asm.sahf()?;
    asm.pop(rax)?;
    asm.lea(rsp, qword_ptr(rsp + RED_ZONE))
}

/// Leaves the answer in rax.
fn ask(coder: &mut Coder, question: Question) -> Result<(), IcedError> {
    const REGISTERS: u16 = 16;
    let buffer = -(VECTOR_AREA + 8 * i32::from(REGISTERS));
    coder.asm.lea(rsp, qword_ptr(rbx + buffer))?;
    for number in 0..REGISTERS {
        coder.register(Register(number))?;
        let place = buffer + 8 * i32::from(number);
        coder.asm.mov(qword_ptr(rbx + place), rax)?;
    }
    if let Some([first, second]) = coder.saved.vectors {
        coder.asm.movups(xmm0, xmmword_ptr(rbx + first))?;
        coder.asm.movups(xmm1, xmmword_ptr(rbx + second))?;
    }
    // In the saved flags, ah holds those that lahf loads and al the overflow flag.
    let flags = coder.saved.registers[&0] - 8;
    coder.asm.movzx(edx, byte_ptr(rbx + flags + 1))?;
    coder.asm.movzx(eax, byte_ptr(rbx + flags))?;
    coder.asm.shl(eax, 11)?;
    coder.asm.lea(edx, dword_ptr(rdx + rax + ALWAYS_SET))?;
    coder.asm.mov(rdi, question.site)?;
    coder.asm.lea(rsi, qword_ptr(rbx + buffer))?;
    coder.asm.and(rsp, -16)?;
    coder.asm.mov(rax, question.function)?;
    coder.asm.call(rax)
}

fn count_up_to(coder: &mut Coder, counter_at: u64) -> Result<(), IcedError> {
    let again = coder.asm.create_label();
    coder.asm.mov(rcx, counter_at)?;
    coder.place(again)?;
    coder.asm.mov(rax, qword_ptr(rcx))?;
    coder.asm.lea(rdx, qword_ptr(rax + 1))?;
    coder.asm.cmp(rdx, qword_ptr(rcx + 8))?;
    coder.asm.je(coder.no_answer)?;
    coder.asm.lock().cmpxchg(qword_ptr(rcx), rdx)?;
    coder.asm.jne(again)
}

fn leave_words(coder: &mut Coder, log: &Log) -> Result<(), IcedError> {
    let area = if coder.saved.vectors.is_some() {
        VECTOR_AREA
    } else {
        0
    };
    let buffer = -(area + 8 * log.words as i32);
    coder.asm.lea(rsp, qword_ptr(rbx + buffer))?;
    for (word, value) in &log.values {
        coder.int(value)?;
        coder
            .asm
            .mov(qword_ptr(rbx + (buffer + 8 * *word as i32)), rax)?;
    }
    coder.asm.mov(rdi, log.spec_at)?;
    coder.asm.lea(rsi, qword_ptr(rbx + buffer))?;
    coder.asm.and(rsp, -16)?;
    coder.asm.mov(rax, log.function)?;
    coder.asm.call(rax)?;
    coder.asm.test(rax, rax)?;
    coder.asm.jne(coder.no_answer)?;
    coder.asm.mov(rcx, log.counter_at)?;
    coder.asm.lock().inc(qword_ptr(rcx))
}
