//! The recording at the positions that gdb has seen.

use exact::Replay;

use crate::Recorded;
use crate::plan::Plan;
use crate::seen::{GENERAL, Memory, Moments, PAGE, Position, Vectors, X87};

/// Flags that are not the program's: gdb steps by the first, and the processor sets the second when a step has interrupted an
/// instruction (Intel, volume 3, 17.3.1.1).
const TRAP: u64 = 1 << 8;
const RESUME: u64 = 1 << 16;
/// Flags that a comparison with a process id sets, but the one for "equal".
const ARITHMETIC: u64 = 0x895;
/// Differences that are told of one program.
const MOST: usize = 12;

struct Check {
    replay: Replay,
    /// Process ids: that of the recording, and that of the program in gdb.
    pids: (u64, u64),
    start: u64,
    differences: Vec<String>,
    bytes: u64,
}

/// Compares everything; returns what differs, and how many bytes of memory were compared.
pub fn all(recorded: &Recorded, plan: &Plan, moments: &Moments) -> (Vec<String>, u64) {
    let mut check = Check {
        replay: Replay::open(&recorded.folder).unwrap(),
        pids: (recorded.pid, moments.pid),
        start: plan.start,
        differences: Vec::new(),
        bytes: 0,
    };
    // Forwards, and once more backwards at some.
    let forwards = moments.positions.iter();
    let backwards = moments
        .positions
        .iter()
        .filter(|position| position.memory.is_some())
        .rev()
        .step_by(7);
    for position in forwards.chain(backwards) {
        check.position(position);
        if check.differences.len() >= MOST {
            break;
        }
    }
    (check.differences, check.bytes)
}

impl Check {
    fn position(&mut self, position: &Position) {
        if let Err(error) = self.replay.goto(self.start + position.at) {
            self.differences
                .push(format!("{} after main: {error}", position.at));
            return;
        }
        let found: Vec<String> = [self.general(position), self.extended(position)].concat();
        for difference in found {
            self.differences.push(self.told(position, &difference));
        }
        if let Some(memory) = &position.memory {
            self.memory(position, memory);
        }
    }

    fn told(&self, position: &Position, what: &str) -> String {
        let mut code = [0; 16];
        let rip = position.general[16];
        self.replay.read(rip, &mut code);
        format!(
            "{} after main ({}), rip {rip:#x} {code:02x?}: {what}",
            position.at,
            self.start + position.at
        )
    }

    /// The same, or each run's own process id.
    fn same(&self, ours: u64, theirs: u64) -> bool {
        ours == theirs || (ours, theirs) == self.pids
    }

    fn general(&self, position: &Position) -> Vec<String> {
        let r = self.replay.registers().unwrap();
        let ours = [
            r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11,
            r.r12, r.r13, r.r14, r.r15, r.rip, r.eflags, r.fs_base,
        ];
        let has_pid = ours
            .into_iter()
            .zip(position.general)
            .any(|both| both == self.pids);
        let flags = if has_pid {
            !(TRAP | RESUME | ARITHMETIC)
        } else {
            !(TRAP | RESUME)
        };
        let all = GENERAL.iter().zip(ours).zip(position.general);
        let differing = all.filter_map(|((name, ours), theirs)| {
            let mask = if *name == "eflags" { flags } else { u64::MAX };
            let same = self.same(ours & mask, theirs & mask);
            (!same).then(|| format!("{name} is {ours:#x}, in gdb {theirs:#x}"))
        });
        differing.collect()
    }

    fn extended(&self, position: &Position) -> Vec<String> {
        let ours = self.replay.extended().unwrap();
        [vectors(&ours, &position.vectors), x87(&ours, &position.x87)].concat()
    }

    fn memory(&mut self, position: &Position, memory: &Memory) {
        for &(start, end) in &memory.ranges {
            let mut ours = vec![0; (end - start) as usize];
            let count = self.replay.read(start, &mut ours);
            if count < ours.len() {
                self.differences.push(self.told(
                    position,
                    &format!("there is no memory at {:#x}", start + count as u64),
                ));
                return;
            }
            self.bytes += count as u64;
            for (at, ours) in (start..).step_by(PAGE).zip(ours.chunks(PAGE)) {
                let theirs = &memory.pages[&at];
                if ours != &theirs[..]
                    && let Some(difference) = self.in_page(at, ours, theirs)
                {
                    self.differences.push(self.told(position, &difference));
                    return;
                }
            }
        }
    }

    /// The first difference in a page.
    fn in_page(&self, at: u64, ours: &[u8], theirs: &[u8]) -> Option<String> {
        let word = |bytes: &[u8]| u64::from(u32::from_le_bytes(bytes.try_into().unwrap()));
        let words = ours.chunks(4).map(word).zip(theirs.chunks(4).map(word));
        let (at, (ours, theirs)) = (at..)
            .step_by(4)
            .zip(words)
            .find(|(_, (ours, theirs))| !self.same(*ours, *theirs))?;
        Some(format!(
            "memory at {at:#x} is {ours:#x}, in gdb {theirs:#x}"
        ))
    }
}

/// Where parts of the state begin in XSAVE's layout. Processors without bounds registers, which those of Intel have, have no gap
/// for them (CPUID leaf 13 says so).
fn offsets(length: usize) -> [usize; 3] {
    if length >= 2688 {
        [1088, 1152, 1664]
    } else {
        [832, 896, 1408]
    }
}

/// A vector register, as wide as gdb has it.
fn vector(ours: &[u8], number: usize, length: usize) -> Vec<u8> {
    let [_, high, more] = offsets(ours.len());
    if number >= 16 {
        let at = more + (number - 16) * 64;
        return ours[at..at + length].to_vec();
    }
    let parts = [
        (160 + number * 16, 16),
        (576 + number * 16, 16),
        (high + number * 32, 32),
    ];
    let mut found = Vec::new();
    for (at, part) in parts {
        if found.len() < length {
            found.extend_from_slice(&ours[at..at + part]);
        }
    }
    found
}

fn vectors(ours: &[u8], theirs: &Vectors) -> Vec<String> {
    let mut found = Vec::new();
    let mxcsr = u32::from_le_bytes(ours[24..28].try_into().unwrap());
    if mxcsr != theirs.mxcsr {
        found.push(format!("mxcsr is {mxcsr:#x}, in gdb {:#x}", theirs.mxcsr));
    }
    for (number, theirs) in theirs.registers.iter().enumerate() {
        let ours = vector(ours, number, theirs.len());
        if ours != *theirs {
            found.push(format!(
                "vector register {number} is {ours:02x?}, in gdb {theirs:02x?}"
            ));
        }
    }
    for (number, theirs) in theirs.masks.iter().enumerate() {
        let at = offsets(ours.len())[0] + number * 8;
        let ours = u64::from_le_bytes(ours[at..at + 8].try_into().unwrap());
        if ours != *theirs {
            found.push(format!("k{number} is {ours:#x}, in gdb {theirs:#x}"));
        }
    }
    found
}

fn x87(ours: &[u8], theirs: &X87) -> Vec<String> {
    let mut found = Vec::new();
    let word = |at: usize| u16::from_le_bytes([ours[at], ours[at + 1]]);
    for (name, ours, theirs) in [
        ("control", word(0), theirs.control),
        ("status", word(2), theirs.status),
        ("opcode", word(6), theirs.opcode),
    ] {
        if ours != theirs {
            found.push(format!(
                "the x87 unit's {name} is {ours:#x}, in gdb {theirs:#x}"
            ));
        }
    }
    let long = |at: usize| u32::from_le_bytes(ours[at..at + 4].try_into().unwrap());
    let addresses = [long(8), long(12) & 0xffff, long(16), long(20) & 0xffff];
    if addresses != theirs.addresses {
        found.push(format!(
            "the x87 unit's last instruction and operand are at {addresses:x?}, in gdb {:x?}",
            theirs.addresses
        ));
    }
    for number in 0..8 {
        let (used, theirs_used) = (
            ours[4] >> number & 1 == 1,
            theirs.tags >> (number * 2) & 3 != 3,
        );
        if used != theirs_used {
            found.push(format!(
                "register {number} of the x87 unit is in use: {used}, in gdb {theirs_used}"
            ));
        }
        let at = 32 + number * 16;
        let (ours, theirs) = (&ours[at..at + 10], &theirs.stack[number]);
        if ours != &theirs[..] {
            found.push(format!("st{number} is {ours:02x?}, in gdb {theirs:02x?}"));
        }
    }
    found
}
