//! Encodes displaced instructions for their new address, and the patch that leads away from the old one.
//!
//! Instructions are copied byte for byte; only distances change. Branches get their longest form, so that lengths do
//! not depend on the final addresses. There is one exception: a target out of reach of a 32-bit distance is reached by
//! a jump through eight bytes in the code. No register, no flag and no stack below the program's own is touched.
//!
//! `call target` becomes `push [return address]; jmp target`. The pushed address is the original one, so unwinders find
//! the rules of the function itself, and the callee returns straight into it. One `push` from memory is used instead of
//! two stores of half an address: the `ret` that loads both halves at once would have to wait until they leave the
//! store buffer.

use super::classify::Kind;
use super::plan::{Displacement, PATCH_BYTES, Piece};
use super::refusal::Refusal;

/// Upper bound for the length of any trampoline: at most five instructions and a jump back.
pub const MAX_TRAMPOLINE_BYTES: usize = 128;

const LONG_JUMP_BYTES: u8 = 14;
const SHORT_JUMP_BYTES: u8 = 5;

/// Moves a thread from `old` to `new`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    pub old: u64,
    pub new: u64,
}

/// Displaced instructions, encoded for one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trampoline {
    /// The address that `bytes` are for.
    pub at: u64,
    /// The relocated instructions, then a jump to the rest of the function if control can reach it.
    pub bytes: Vec<u8>,
    /// The old and new address of each displaced instruction, in order. A displaced `syscall` also has an entry for the
    /// address after it, where a thread blocked in the call is: the kernel may set the instruction pointer back from
    /// there by the length of the instruction to restart the call. The first entry is the function's entry: a thread
    /// there has run nothing of the function yet and may stay, to run into the patch.
    pub moves: Vec<Move>,
}

impl Trampoline {
    /// Returns where a thread at `old` must continue, if `old` is the address of a displaced instruction.
    pub fn moved(&self, old: u64) -> Option<u64> {
        self.moves.iter().find(|m| m.old == old).map(|m| m.new)
    }

    /// Returns the original address of the instruction that contains `address` in the trampoline. `None` for the jump
    /// back at its end, and outside the trampoline.
    pub fn original(&self, address: u64) -> Option<u64> {
        let end = self.at + self.bytes.len() as u64;
        let within = (self.at..end).contains(&address);
        self.moves
            .iter()
            .rev()
            .find(|m| within && m.new <= address)
            .map(|m| m.old)
    }
}

/// Returns the bytes to write at `entry` to make it jump to `stub`.
///
/// # Errors
/// [`Refusal::OutOfReach`] if `stub` is not within 2 GiB.
pub fn patch_bytes(entry: u64, stub: u64) -> Result<[u8; PATCH_BYTES], Refusal> {
    let distance = distance(entry + PATCH_BYTES as u64, stub)?.to_le_bytes();
    Ok([0xe9, distance[0], distance[1], distance[2], distance[3]])
}

impl Displacement {
    /// Encodes the displaced instructions for address `at`. The result has at most [`MAX_TRAMPOLINE_BYTES`] bytes.
    ///
    /// # Errors
    /// [`Refusal::OutOfReach`] if an instruction refers to memory that is not within 2 GiB of `at`. Branches reach
    /// everything.
    pub fn encode(&self, at: u64) -> Result<Trampoline, Refusal> {
        let nowhere = vec![at; self.pieces.len()];
        let (_, starts) = self.emit(at, &nowhere)?;
        let (bytes, settled) = self.emit(at, &starts)?;
        assert_eq!(
            starts, settled,
            "lengths do not depend on where copies start"
        );
        assert!(bytes.len() <= MAX_TRAMPOLINE_BYTES, "the bound holds");
        let moves = self.moves(&starts);
        Ok(Trampoline { at, bytes, moves })
    }

    /// Encodes once, given the start of each piece's copy. Returns the actual starts.
    fn emit(&self, at: u64, starts: &[u64]) -> Result<(Vec<u8>, Vec<u64>), Refusal> {
        let mut writer = Writer {
            at,
            bytes: Vec::with_capacity(MAX_TRAMPOLINE_BYTES),
        };
        let mut actual = Vec::with_capacity(starts.len());
        for piece in &self.pieces {
            actual.push(writer.here());
            self.emit_piece(&mut writer, piece, starts)?;
        }
        let last = self.pieces.last().expect("a patch displaces something");
        if last.kind.falls_through() {
            writer.jump(self.resume.unwrap_or(self.end));
        }
        Ok((writer.bytes, actual))
    }

    fn emit_piece(
        &self,
        writer: &mut Writer,
        piece: &Piece,
        starts: &[u64],
    ) -> Result<(), Refusal> {
        match piece.kind {
            Kind::Plain | Kind::Syscall | Kind::Leaves { field: None } => {
                writer.bytes.extend_from_slice(&piece.bytes);
                Ok(())
            }
            Kind::RipRelative { field } | Kind::Leaves { field: Some(field) } => {
                writer.copy_rip_relative(&piece.bytes, field, piece)
            }
            Kind::Jump => {
                writer.jump(self.destination(piece, starts));
                Ok(())
            }
            Kind::JumpIf { condition } => {
                writer.jump_if(condition, self.destination(piece, starts));
                Ok(())
            }
            Kind::CountJump { opcode, ecx } => {
                writer.count_jump(opcode, ecx, self.destination(piece, starts));
                Ok(())
            }
            Kind::Call => {
                let target = self.call_destination(piece, starts);
                let skipped = writer.jump_length(target);
                writer.push_literal(skipped);
                writer.jump(target);
                writer.literal(piece.instruction.next_ip());
                Ok(())
            }
            Kind::CallIndirect { field } => {
                let jump = jump_from_call(piece);
                writer.push_literal(jump.len() as u8);
                match field {
                    Some(field) => writer.copy_rip_relative(&jump, field, piece)?,
                    None => writer.bytes.extend_from_slice(&jump),
                }
                writer.literal(piece.instruction.next_ip());
                Ok(())
            }
        }
    }

    /// Returns where a displaced branch leads: to the copy, if its target was displaced.
    fn destination(&self, piece: &Piece, starts: &[u64]) -> u64 {
        if let Some(branch) = self.branch {
            return branch;
        }
        let target = piece.instruction.near_branch_target();
        let copied = self.pieces.iter().position(|other| other.at() == target);
        copied.map_or(target, |index| starts[index])
    }

    /// As `destination`, but a call of the function's entry is an ordinary call and runs through the patch.
    fn call_destination(&self, piece: &Piece, starts: &[u64]) -> u64 {
        let target = piece.instruction.near_branch_target();
        if target == self.entry || self.branch.is_some() {
            return target;
        }
        self.destination(piece, starts)
    }

    fn moves(&self, starts: &[u64]) -> Vec<Move> {
        let mut moves: Vec<Move> = Vec::with_capacity(starts.len() + 1);
        for (piece, &new) in self.pieces.iter().zip(starts) {
            moves.push(Move {
                old: piece.at(),
                new,
            });
        }
        if let (Some(last), Some(&new)) = (self.pieces.last(), starts.last())
            && last.kind == Kind::Syscall
        {
            moves.push(Move {
                old: last.instruction.next_ip(),
                new: new + last.bytes.len() as u64,
            });
        }
        moves
    }
}

struct Writer {
    at: u64,
    bytes: Vec<u8>,
}

impl Writer {
    fn here(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    fn distance(&mut self, from: u64, to: u64) -> Result<(), Refusal> {
        let distance = distance(from, to)?;
        self.bytes.extend_from_slice(&distance.to_le_bytes());
        Ok(())
    }

    /// Copies an instruction. Adjusts the displacement at `field` to keep the target.
    fn copy_rip_relative(
        &mut self,
        bytes: &[u8],
        field: usize,
        piece: &Piece,
    ) -> Result<(), Refusal> {
        let next = self.here() + bytes.len() as u64;
        let target = piece.instruction.ip_rel_memory_address();
        let start = self.bytes.len() + field;
        self.bytes.extend_from_slice(bytes);
        self.bytes[start..start + 4].copy_from_slice(&distance(next, target)?.to_le_bytes());
        Ok(())
    }

    fn jump(&mut self, target: u64) {
        if self.reaches(target) {
            self.bytes.push(0xe9);
            let next = self.here() + 4;
            self.distance(next, target).expect("the target is in reach");
        } else {
            self.bytes.extend_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
            self.literal(target);
        }
    }

    fn jump_length(&self, target: u64) -> u8 {
        if self.reaches(target) {
            SHORT_JUMP_BYTES
        } else {
            LONG_JUMP_BYTES
        }
    }

    fn jump_if(&mut self, condition: u8, target: u64) {
        if self.reaches(target) {
            self.bytes.extend_from_slice(&[0x0f, 0x80 | condition]);
            let next = self.here() + 4;
            self.distance(next, target).expect("the target is in reach");
        } else {
            let opposite = condition ^ 1;
            self.bytes
                .extend_from_slice(&[0x70 | opposite, LONG_JUMP_BYTES]);
            self.jump(target);
        }
    }

    /// `loop over; jmp short past; over: jmp target; past:`
    fn count_jump(&mut self, opcode: u8, ecx: bool, target: u64) {
        if ecx {
            self.bytes.push(0x67);
        }
        let length = self.jump_length(target);
        self.bytes.extend_from_slice(&[opcode, 2, 0xeb, length]);
        self.jump(target);
    }

    /// Pushes the eight bytes that lie `skipped` bytes after the push.
    fn push_literal(&mut self, skipped: u8) {
        self.bytes
            .extend_from_slice(&[0xff, 0x35, skipped, 0, 0, 0]);
    }

    fn literal(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Returns whether a 32-bit distance reaches `target` from anywhere in the trampoline, so that the answer is the
    /// same for all its instructions.
    fn reaches(&self, target: u64) -> bool {
        let end = self.at + MAX_TRAMPOLINE_BYTES as u64;
        distance(self.at, target).is_ok() && distance(end, target).is_ok()
    }
}

fn distance(from: u64, target: u64) -> Result<i32, Refusal> {
    let distance = target.wrapping_sub(from) as i64;
    i32::try_from(distance).map_err(|_| Refusal::OutOfReach { from, target })
}

/// Turns `call r/m` into `jmp r/m` to the same target, for a stack pointer that is 8 lower.
fn jump_from_call(piece: &Piece) -> Vec<u8> {
    const GROUP5: u8 = 0xff;
    let mut bytes = piece.bytes.clone();
    let opcode = bytes
        .iter()
        .position(|&byte| byte == GROUP5)
        .expect("call r/m has opcode ff, which is no prefix");
    let modrm = opcode + 1;
    assert_eq!(bytes[modrm] & 0x38, 0x10, "call r/m is ff /2");
    bytes[modrm] ^= 0x30; // /2 -> /4
    if piece.instruction.memory_base() == iced_x86::Register::RSP {
        let moved = piece.instruction.memory_displacement64() as i64 + 8;
        let moved = i32::try_from(moved).expect("classify refused distances that do not fit");
        let sib = bytes[modrm + 1];
        bytes.truncate(modrm);
        bytes.extend_from_slice(&[0xa4, sib]); // mod 2, /4, SIB: a 32-bit displacement follows
        bytes.extend_from_slice(&moved.to_le_bytes());
    }
    bytes
}
