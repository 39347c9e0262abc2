//! What lies where in the memory that is added to the program, and in the block of each thread that its gs register points to.

/// In a thread's block: the program's own r15, while the counter is in the register.
pub const SLOT_R15: u32 = 0;
/// The counter, while the register has the program's r15.
pub const SLOT_COUNTER: u32 = 8;
/// rax and rcx of the program, while an indirect jump is looked up.
pub const SLOT_RAX: u32 = 16;
pub const SLOT_RCX: u32 = 24;
/// Another register, for one instruction.
pub const SLOT_SCRATCH: u32 = 32;
/// One more.
pub const SLOT_SCRATCH_2: u32 = 40;
/// Where the next record of a traced call goes.
pub const SLOT_RECORDS: u32 = 48;
/// Registers that code which notes reads and writes takes for itself, and an address.
pub const SLOT_FIRST: u32 = 56;
pub const SLOT_SECOND: u32 = 64;
pub const SLOT_THIRD: u32 = 72;
pub const SLOT_ADDRESS: u32 = 80;
/// The base of the segment fs, while reads and writes are noted.
pub const SLOT_FS: u32 = 88;
/// In code that is recorded: the number of the indirect jump that came last.
pub const SLOT_ORIGIN: u32 = 96;
/// While calls are recorded: returns with a lower stack pointer than this end no call that is open. It is kept negated.
pub const SLOT_LOWEST: u32 = 104;
/// Bytes of a thread's block.
pub const BLOCK_BYTES: u64 = 128;
/// How many threads there are blocks for.
pub const BLOCKS: u64 = 4096;

/// Entries of the table of indirect jumps: one for each value of an address's low 16 bits.
pub const TABLE_ENTRIES: u64 = 1 << 16;
/// Bytes of the table and of the blocks behind it.
pub const LOW_BYTES: u64 = TABLE_ENTRIES * 8 + BLOCKS * BLOCK_BYTES;

/// Bytes of a cache of translated code.
pub const CACHE_BYTES: u64 = 64 << 20;

/// The block of thread number `slot`.
pub fn block(low: u64, slot: u64) -> u64 {
    low + TABLE_ENTRIES * 8 + slot * BLOCK_BYTES
}
