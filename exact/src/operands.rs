//! The memory that one instruction reads and writes, from the registers before it.

use std::arch::x86_64::__cpuid_count;

use iced_x86::{
    Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};
use libc::user_regs_struct;

/// The direction of string instructions in eflags.
const DOWN: u64 = 1 << 10;
/// Bytes of the state that all processors save: x87 and SSE registers, and the header behind them.
const LEGACY: u64 = 576;
/// Where the kernel tells which parts of the state are enabled, in what it gives to tracers.
const ENABLED_AT: usize = 464;
/// In the header of a saved state: the parts are packed.
const PACKED_AT: u64 = 520;
const PACKED: u64 = 1 << 63;

/// All registers before an instruction.
pub(crate) struct State {
    pub(crate) general: user_regs_struct,
    /// In XSAVE's layout.
    pub(crate) extended: Vec<u8>,
}

/// A stretch of memory that an instruction uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operand {
    pub(crate) address: u64,
    /// At most, if it repeats.
    pub(crate) size: u64,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    /// The bytes of one repetition. How many there are is known by rcx after the instruction; the first is the highest if they go down.
    pub(crate) repeats: Option<u64>,
}

impl Operand {
    /// What of it is really used, when rcx was `before` and is `after`.
    pub(crate) fn used(&self, before: u64, after: u64, down: bool) -> (u64, u64) {
        let Some(element) = self.repeats else {
            return (self.address, self.size);
        };
        let size = before.saturating_sub(after).saturating_mul(element);
        let end = self.address.wrapping_add(self.size);
        if down {
            (end.wrapping_sub(size), size)
        } else {
            (self.address, size)
        }
    }
}

/// The number of repetitions that is left.
pub(crate) fn repetitions(instruction: &Instruction, registers: &user_regs_struct) -> u64 {
    let short = (0..instruction.op_count()).any(|op| {
        matches!(
            instruction.op_kind(op),
            OpKind::MemoryESEDI | OpKind::MemorySegESI | OpKind::MemorySegEDI
        )
    });
    if short {
        registers.rcx & 0xffff_ffff
    } else {
        registers.rcx
    }
}

pub(crate) fn goes_down(registers: &user_regs_struct) -> bool {
    registers.eflags & DOWN != 0
}

pub(crate) fn repeats(instruction: &Instruction) -> bool {
    instruction.is_string_instruction()
        && (instruction.has_rep_prefix()
            || instruction.has_repe_prefix()
            || instruction.has_repne_prefix())
}

/// Whether it reads and writes.
pub(crate) fn kinds(access: OpAccess) -> (bool, bool) {
    match access {
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
        OpAccess::None | OpAccess::NoMemAccess => (false, false),
    }
}

/// Whether which bytes it uses is told by more than its operand: the index of a bit, a mask, a vector of addresses, the state that
/// is enabled, or how often it repeats.
pub(crate) fn is_special(instruction: &Instruction) -> bool {
    repeats(instruction)
        || instruction.op_mask() != Register::None
        || instruction.is_vsib()
        || is_bit_of_register(instruction)
        || mask_register(instruction).is_some()
        || saves(instruction).is_some()
        || instruction.mnemonic() == Mnemonic::Xlatb
}

/// bt and its kind with a bit that may lie far from the address.
fn is_bit_of_register(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
    ) && instruction.op0_kind() == OpKind::Memory
        && instruction.op1_kind() == OpKind::Register
}

/// The register whose sign bits are the mask, and the bytes of an element.
fn mask_register(instruction: &Instruction) -> Option<(Register, u64)> {
    let element = match instruction.mnemonic() {
        Mnemonic::Maskmovdqu | Mnemonic::Vmaskmovdqu | Mnemonic::Maskmovq => {
            return Some((instruction.op2_register(), 1));
        }
        Mnemonic::Vmaskmovps | Mnemonic::Vpmaskmovd => 4,
        Mnemonic::Vmaskmovpd | Mnemonic::Vpmaskmovq => 8,
        _ => return None,
    };
    Some((instruction.op1_register(), element))
}

/// Whether it writes (true) or reads the extended state, packed or not.
fn saves(instruction: &Instruction) -> Option<(bool, bool)> {
    match instruction.mnemonic() {
        Mnemonic::Xsave | Mnemonic::Xsave64 | Mnemonic::Xsaveopt | Mnemonic::Xsaveopt64 => {
            Some((true, false))
        }
        Mnemonic::Xsavec | Mnemonic::Xsavec64 => Some((true, true)),
        Mnemonic::Xrstor | Mnemonic::Xrstor64 => Some((false, false)),
        _ => None,
    }
}

/// What the instruction uses, reads first.
pub(crate) fn operands(
    info: &mut InstructionInfoFactory,
    instruction: &Instruction,
    state: &State,
    word: &dyn Fn(u64) -> Option<u64>,
) -> Vec<Operand> {
    let used = info.info(instruction).used_memory().to_vec();
    let found = used.iter().flat_map(|memory| {
        let (reads, writes) = kinds(memory.access());
        if !reads && !writes {
            return Vec::new();
        }
        let at = |index| {
            memory.virtual_address(index, |register, element, size| {
                state.value(register, element, size)
            })
        };
        let one = |address, size| Operand {
            address,
            size,
            reads,
            writes,
            repeats: None,
        };
        let Some(address) = at(0) else {
            return Vec::new();
        };
        if memory.vsib_size() != 0 {
            let size = memory.memory_size().size() as u64;
            let elements = state.gathered(instruction, memory, size);
            let addresses = elements.into_iter().filter_map(at);
            return addresses.map(|address| one(address, size)).collect();
        }
        if repeats(instruction) {
            return vec![state.repeated(instruction, one(address, 0))];
        }
        if is_bit_of_register(instruction) {
            return vec![state.bit(instruction, one(address, 0))];
        }
        if let Some((writes, packed)) = saves(instruction) {
            let mut all = one(address, state.saved(address, writes, packed, word));
            (all.reads, all.writes) = (!writes, writes);
            return vec![all];
        }
        let size = match memory.memory_size().size() {
            0 => instruction.memory_size().size(),
            size => size,
        } as u64;
        match state.mask(instruction, memory) {
            Some(mask) => runs(&mask)
                .into_iter()
                .map(|(first, count)| one(address + first, count))
                .collect(),
            None => vec![one(address, size)],
        }
    });
    let mut found: Vec<Operand> = found.collect();
    found.sort_by_key(|operand| operand.writes);
    found
}

/// From which bytes are used: where stretches of them begin, and how long they are.
fn runs(bytes: &[bool]) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for (at, _) in (0..).zip(bytes).filter(|(_, used)| **used) {
        match found.last_mut() {
            Some((first, count)) if *first + *count == at => *count += 1,
            _ => found.push((at, 1)),
        }
    }
    found
}

impl State {
    /// The value of a register in an address.
    pub(crate) fn value(&self, register: Register, element: usize, size: usize) -> Option<u64> {
        if register.is_vector_register() {
            let at = element * size;
            let bytes = self.vector(register);
            let part = bytes.get(at..at + size)?;
            let mut value = [0; 8];
            value[..size].copy_from_slice(part);
            return Some(u64::from_le_bytes(value));
        }
        let r = &self.general;
        let full = match register.full_register() {
            Register::RAX => r.rax,
            Register::RCX => r.rcx,
            Register::RDX => r.rdx,
            Register::RBX => r.rbx,
            Register::RSP => r.rsp,
            Register::RBP => r.rbp,
            Register::RSI => r.rsi,
            Register::RDI => r.rdi,
            Register::R8 => r.r8,
            Register::R9 => r.r9,
            Register::R10 => r.r10,
            Register::R11 => r.r11,
            Register::R12 => r.r12,
            Register::R13 => r.r13,
            Register::R14 => r.r14,
            Register::R15 => r.r15,
            Register::FS => r.fs_base,
            Register::CS | Register::DS | Register::ES | Register::SS => 0,
            _ => return None,
        };
        Some(match register.size() {
            1 => full & 0xff,
            4 => full & 0xffff_ffff,
            _ => full,
        })
    }

    /// Where parts of the state lie that came later: mask registers, upper halves, the other sixteen registers.
    fn offsets(&self) -> [usize; 3] {
        if self.extended.len() >= 2688 {
            [1088, 1152, 1664]
        } else {
            [832, 896, 1408]
        }
    }

    fn bytes(&self, at: usize, count: usize) -> &[u8] {
        self.extended.get(at..at + count).unwrap_or(&[])
    }

    fn vector(&self, register: Register) -> Vec<u8> {
        let [_, high, more] = self.offsets();
        if register.is_mm() {
            let number = register.number();
            return self.bytes(32 + number * 16, 8).to_vec();
        }
        let number = register.number();
        if number >= 16 {
            return self
                .bytes(more + (number - 16) * 64, register.size())
                .to_vec();
        }
        let mut found = self.bytes(160 + number * 16, 16).to_vec();
        found.extend_from_slice(self.bytes(576 + number * 16, 16));
        found.extend_from_slice(self.bytes(high + number * 32, 32));
        found.truncate(register.size());
        found
    }

    fn mask_bits(&self, register: Register) -> u64 {
        let at = self.offsets()[0] + register.number() * 8;
        let bytes = self.bytes(at, 8).try_into().map_or(0, u64::from_le_bytes);
        if register == Register::None {
            u64::MAX
        } else {
            bytes
        }
    }

    /// The bytes of a vector in memory that a mask lets through; `None`: there is no mask.
    fn mask(&self, instruction: &Instruction, memory: &UsedMemory) -> Option<Vec<bool>> {
        let size = memory.memory_size().size();
        if let Some((register, element)) = mask_register(instruction) {
            let signs = self.vector(register);
            let size = signs.len();
            let sign = |at: usize| {
                let last = at - at % element as usize + element as usize - 1;
                signs.get(last).is_some_and(|byte| byte & 0x80 != 0)
            };
            return Some((0..size).map(sign).collect());
        }
        if instruction.op_mask() == Register::None {
            return None;
        }
        let to_memory = kinds(memory.access()).1;
        if !to_memory && reads_all(instruction) {
            return None;
        }
        let element = masked_element(instruction)
            .unwrap_or(memory.memory_size().element_size())
            .clamp(1, size.max(1));
        let count = (size / element).clamp(1, 64);
        let all = if count == 64 {
            u64::MAX
        } else {
            (1 << count) - 1
        };
        let bits = self.mask_bits(instruction.op_mask());
        if is_packed_by_mask(instruction) {
            let used = (bits & all).count_ones() as usize * element;
            return Some((0..size).map(|at| at < used).collect());
        }
        if !to_memory && instruction.is_broadcast() {
            return Some(vec![bits != 0; size]);
        }
        if !to_memory && is_spread(instruction) {
            let filled = instruction.op0_register().size() / element;
            let is_used = |part: usize| (part..filled).step_by(count).any(|at| bits >> at & 1 == 1);
            return Some((0..size).map(|at| is_used(at / element)).collect());
        }
        Some(
            (0..size)
                .map(|at| bits >> (at / element) & 1 == 1)
                .collect(),
        )
    }

    /// The numbers of the elements that a gather or scatter uses.
    fn gathered(&self, instruction: &Instruction, memory: &UsedMemory, size: u64) -> Vec<usize> {
        let index = memory.index().size() / memory.vsib_size() as usize;
        let registers = (0..instruction.op_count())
            .filter(|op| instruction.op_kind(*op) == OpKind::Register)
            .map(|op| instruction.op_register(op));
        let vectors: Vec<Register> = registers
            .filter(|register| register.is_vector_register())
            .collect();
        let Some(data) = vectors.first() else {
            return Vec::new();
        };
        let count = index.min(data.size() / size.max(1) as usize);
        let lets = |element: usize| match (instruction.op_mask(), vectors.get(1)) {
            (Register::None, Some(mask)) => {
                let last = (element + 1) * size as usize - 1;
                self.vector(*mask)
                    .get(last)
                    .is_some_and(|byte| byte & 0x80 != 0)
            }
            (mask, _) => self.mask_bits(mask) >> element & 1 == 1,
        };
        (0..count).filter(|element| lets(*element)).collect()
    }

    fn repeated(&self, instruction: &Instruction, mut operand: Operand) -> Operand {
        let element = instruction.memory_size().size() as u64;
        operand.repeats = Some(element);
        operand.size = repetitions(instruction, &self.general).saturating_mul(element);
        if goes_down(&self.general) {
            let first = operand.size.saturating_sub(element);
            operand.address = operand.address.wrapping_sub(first);
        }
        operand
    }

    fn bit(&self, instruction: &Instruction, mut operand: Operand) -> Operand {
        let register = instruction.op1_register();
        let size = register.size();
        let value = self.value(register.full_register(), 0, 0).unwrap_or(0);
        let bit = match size {
            2 => i64::from(value as i16),
            4 => i64::from(value as i32),
            _ => value as i64,
        };
        let step = bit.div_euclid(size as i64 * 8) * size as i64;
        operand.address = operand.address.wrapping_add(step as u64);
        operand.size = size as u64;
        operand
    }

    /// Bytes of the area that an instruction saves to, or loads from.
    fn saved(
        &self,
        address: u64,
        writes: bool,
        mut packed: bool,
        word: &dyn Fn(u64) -> Option<u64>,
    ) -> u64 {
        let enabled = self
            .bytes(ENABLED_AT, 8)
            .try_into()
            .map_or(0, u64::from_le_bytes);
        let mut parts = (self.general.rdx << 32 | self.general.rax & 0xffff_ffff) & enabled;
        if !writes {
            let layout = word(address + PACKED_AT).unwrap_or(0);
            packed = layout & PACKED != 0;
            if packed {
                parts = layout & enabled;
            }
        }
        let mut size = LEGACY;
        for part in (2..63).filter(|part| parts >> part & 1 == 1) {
            // Intel, volume 1, 13.2: size, offset, and whether it is aligned where parts are packed.
            let leaf = __cpuid_count(0xd, part);
            if packed {
                if leaf.ecx & 2 != 0 {
                    size = size.next_multiple_of(64);
                }
                size += u64::from(leaf.eax);
            } else {
                size = size.max(u64::from(leaf.ebx) + u64::from(leaf.eax));
            }
        }
        size
    }
}

/// Compressing stores and expanding loads: as many elements as the mask has bits, one behind the other.
fn is_packed_by_mask(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Vpcompressb
            | Mnemonic::Vpcompressw
            | Mnemonic::Vpcompressd
            | Mnemonic::Vpcompressq
            | Mnemonic::Vcompressps
            | Mnemonic::Vcompresspd
            | Mnemonic::Vpexpandb
            | Mnemonic::Vpexpandw
            | Mnemonic::Vpexpandd
            | Mnemonic::Vpexpandq
            | Mnemonic::Vexpandps
            | Mnemonic::Vexpandpd
    )
}

/// Bytes of memory that a bit of the mask stands for, where that is more than one number.
fn masked_element(instruction: &Instruction) -> Option<usize> {
    if instruction.is_broadcast() {
        return None;
    }
    match instruction.mnemonic() {
        Mnemonic::Vpdpbusd | Mnemonic::Vpdpbusds | Mnemonic::Vpdpwssd | Mnemonic::Vpdpwssds => {
            Some(4)
        }
        Mnemonic::Vpmuldq | Mnemonic::Vpmuludq => Some(8),
        _ => None,
    }
}

/// Whether it reads its operand whatever the mask says: each result may need any part of it (exceptions of type E4NF and its kind;
/// Intel, volume 2, 2.8).
fn reads_all(instruction: &Instruction) -> bool {
    shifts_all_alike(instruction)
        || rearranges(instruction)
        || matches!(
            instruction.mnemonic(),
            Mnemonic::Vcvtne2ps2bf16
                | Mnemonic::Vdbpsadbw
                | Mnemonic::Vgf2p8affineinvqb
                | Mnemonic::Vgf2p8affineqb
                | Mnemonic::Vmovddup
                | Mnemonic::Vmovshdup
                | Mnemonic::Vmovsldup
                | Mnemonic::Vpconflictd
                | Mnemonic::Vpconflictq
                | Mnemonic::Vpmaddubsw
                | Mnemonic::Vpmaddwd
                | Mnemonic::Vpmultishiftqb
        )
}

/// Shifts by a number in memory. With an immediate, memory has what is shifted.
fn shifts_all_alike(instruction: &Instruction) -> bool {
    let is_shift = matches!(
        instruction.mnemonic(),
        Mnemonic::Vpsllw
            | Mnemonic::Vpslld
            | Mnemonic::Vpsllq
            | Mnemonic::Vpsraw
            | Mnemonic::Vpsrad
            | Mnemonic::Vpsraq
            | Mnemonic::Vpsrlw
            | Mnemonic::Vpsrld
            | Mnemonic::Vpsrlq
    );
    is_shift && instruction.op2_kind() == OpKind::Memory
}

/// Instructions that take their results from other places of the operand.
fn rearranges(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Valignd
            | Mnemonic::Valignq
            | Mnemonic::Vinsertf32x4
            | Mnemonic::Vinsertf32x8
            | Mnemonic::Vinsertf64x2
            | Mnemonic::Vinsertf64x4
            | Mnemonic::Vinserti32x4
            | Mnemonic::Vinserti32x8
            | Mnemonic::Vinserti64x2
            | Mnemonic::Vinserti64x4
            | Mnemonic::Vpackssdw
            | Mnemonic::Vpacksswb
            | Mnemonic::Vpackusdw
            | Mnemonic::Vpackuswb
            | Mnemonic::Vpalignr
            | Mnemonic::Vpermb
            | Mnemonic::Vpermd
            | Mnemonic::Vpermi2b
            | Mnemonic::Vpermi2d
            | Mnemonic::Vpermi2pd
            | Mnemonic::Vpermi2ps
            | Mnemonic::Vpermi2q
            | Mnemonic::Vpermi2w
            | Mnemonic::Vpermilpd
            | Mnemonic::Vpermilps
            | Mnemonic::Vpermpd
            | Mnemonic::Vpermps
            | Mnemonic::Vpermq
            | Mnemonic::Vpermt2b
            | Mnemonic::Vpermt2d
            | Mnemonic::Vpermt2pd
            | Mnemonic::Vpermt2ps
            | Mnemonic::Vpermt2q
            | Mnemonic::Vpermt2w
            | Mnemonic::Vpermw
            | Mnemonic::Vpshufb
            | Mnemonic::Vpshufd
            | Mnemonic::Vpshufhw
            | Mnemonic::Vpshuflw
            | Mnemonic::Vpunpckhbw
            | Mnemonic::Vpunpckhdq
            | Mnemonic::Vpunpckhqdq
            | Mnemonic::Vpunpckhwd
            | Mnemonic::Vpunpcklbw
            | Mnemonic::Vpunpckldq
            | Mnemonic::Vpunpcklqdq
            | Mnemonic::Vpunpcklwd
            | Mnemonic::Vshuff32x4
            | Mnemonic::Vshuff64x2
            | Mnemonic::Vshufi32x4
            | Mnemonic::Vshufi64x2
            | Mnemonic::Vshufpd
            | Mnemonic::Vshufps
            | Mnemonic::Vunpckhpd
            | Mnemonic::Vunpckhps
            | Mnemonic::Vunpcklpd
            | Mnemonic::Vunpcklps
    )
}

/// Loads that put what they read into several elements.
fn is_spread(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Vpbroadcastb
            | Mnemonic::Vpbroadcastw
            | Mnemonic::Vpbroadcastd
            | Mnemonic::Vpbroadcastq
            | Mnemonic::Vbroadcastss
            | Mnemonic::Vbroadcastsd
            | Mnemonic::Vbroadcastf32x2
            | Mnemonic::Vbroadcastf32x4
            | Mnemonic::Vbroadcastf32x8
            | Mnemonic::Vbroadcastf64x2
            | Mnemonic::Vbroadcastf64x4
            | Mnemonic::Vbroadcasti32x2
            | Mnemonic::Vbroadcasti32x4
            | Mnemonic::Vbroadcasti32x8
            | Mnemonic::Vbroadcasti64x2
            | Mnemonic::Vbroadcasti64x4
    )
}

#[cfg(test)]
mod tests {
    //! Goal: of a vector in memory, those bytes are named that the processor reads or writes under a mask. Method: what a processor
    //! does beside memory that nobody may use, for each kind of instruction.

    use iced_x86::{Decoder, DecoderOptions};

    use super::*;
    use crate::log::Registers;

    /// Where the operand in memory is used when k1 has these bits, from its start on.
    fn used(code: &[u8], mask: u64) -> Vec<(u64, u64)> {
        let mut extended = vec![0; 2696];
        extended[1088 + 8..1088 + 16].copy_from_slice(&mask.to_le_bytes());
        let mut general = user_regs_struct::from(&Registers([0; 27]));
        general.rax = 0x1000;
        let state = State { general, extended };
        let instruction = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).decode();
        assert!(!instruction.is_invalid(), "{code:x?}");
        let mut info = InstructionInfoFactory::new();
        let found = operands(&mut info, &instruction, &state, &|_| None);
        let found = found.into_iter();
        found
            .map(|operand| (operand.address - 0x1000, operand.size))
            .collect()
    }

    #[test]
    fn a_bit_of_a_mask_stands_for_what_it_selects() {
        // vpaddd zmm0{k1}, zmm1, [rax]; the same with one number for all; vmovdqu32 [rax]{k1}, zmm0
        assert_eq!(
            used(&[0x62, 0xf1, 0x75, 0x49, 0xfe, 0], 0x8001),
            [(0, 4), (60, 4)]
        );
        assert_eq!(used(&[0x62, 0xf1, 0x75, 0x59, 0xfe, 0], 0x8000), [(0, 4)]);
        assert_eq!(used(&[0x62, 0xf1, 0x7e, 0x49, 0x7f, 0], 0x8000), [(60, 4)]);
        // vpdpbusd and vpmuludq: several numbers for each result.
        assert_eq!(used(&[0x62, 0xf2, 0x75, 0x49, 0x50, 0], 0x8000), [(60, 4)]);
        assert_eq!(used(&[0x62, 0xf1, 0xf5, 0x49, 0xf4, 0], 0x80), [(56, 8)]);
        // vpsllw zmm0{k1}, [rax], 1
        assert_eq!(
            used(&[0x62, 0xf1, 0x7d, 0x49, 0x71, 0x30, 1], 0x8000_0000),
            [(62, 2)]
        );
    }

    #[test]
    fn what_needs_all_of_its_operand_reads_it_whatever_the_mask() {
        // vpmaddwd and vshufps zmm0{k1}, zmm1, [rax]; vpsllw zmm0{k1}, zmm1, xmmword [rax]
        for mask in [0, 1, 0x8000_0000] {
            assert_eq!(used(&[0x62, 0xf1, 0x75, 0x49, 0xf5, 0], mask), [(0, 64)]);
            assert_eq!(used(&[0x62, 0xf1, 0x74, 0x49, 0xc6, 0, 0], mask), [(0, 64)]);
            assert_eq!(used(&[0x62, 0xf1, 0x75, 0x49, 0xf1, 0], mask), [(0, 16)]);
        }
    }

    #[test]
    fn what_is_put_into_several_places_is_read_if_one_of_them_is_selected() {
        // vbroadcasti32x4 zmm0{k1}, [rax]
        let load = [0x62, 0xf2, 0x7d, 0x49, 0x5a, 0];
        assert_eq!(used(&load, 0x8000), [(12, 4)]);
        assert_eq!(used(&load, 0x0021), [(0, 8)]);
        assert_eq!(used(&load, 0x1_0000), []);
    }
}
