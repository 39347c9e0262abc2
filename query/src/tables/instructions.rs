//! The tables of what the program executed, read and wrote, in a recording of every instruction.

use super::doc::TableDoc;

const POSITION: (&str, &str) = (
    "position",
    "instructions that all threads had executed before it",
);
const SEQ: (&str, &str) = ("seq", "last event before it");
const STEP: (&str, &str) = ("step", "instructions since that event: goto seq+step");
const TID: (&str, &str) = ("tid", "thread");
const FUNCTION: (&str, &str) = ("function", "function of the instruction");
const FILE: (&str, &str) = ("file", "source file of the instruction");
const LINE: (&str, &str) = ("line", "line of the instruction");
const PC: (&str, &str) = (
    "pc",
    "address of the instruction; null for what the kernel did",
);
const SIZE: (&str, &str) = ("size", "bytes");

/// Describes the table of instructions.
pub const INSTRUCTIONS: TableDoc = TableDoc {
    name: "instructions",
    doc: "one row per instruction that was executed; recorded with --full",
    columns: &[
        POSITION,
        SEQ,
        STEP,
        TID,
        ("addr", "address of the instruction"),
        FUNCTION,
        FILE,
        LINE,
        ("text", "the instruction, and what it refers to"),
    ],
};

/// Describes the table of lines.
pub const LINES: TableDoc = TableDoc {
    name: "lines",
    doc: "one row each time that a thread begins a source line; recorded with --full",
    columns: &[POSITION, SEQ, STEP, TID, FILE, LINE, FUNCTION],
};

/// Describes the table of writes.
pub const MEMORY_WRITES: TableDoc = TableDoc {
    name: "memory_writes",
    doc: "one row per write to memory, of the program or the kernel; recorded with --full",
    columns: &[
        POSITION,
        SEQ,
        STEP,
        TID,
        ("addr", "address of the first byte that was written"),
        SIZE,
        ("old", "bytes before, at most 64; null where no memory was"),
        ("new", "bytes after, at most 64"),
        PC,
        FUNCTION,
        FILE,
        LINE,
    ],
};

/// Describes the table of reads.
pub const MEMORY_READS: TableDoc = TableDoc {
    name: "memory_reads",
    doc: "one row per read of memory; recorded with --full",
    columns: &[
        POSITION,
        SEQ,
        STEP,
        TID,
        ("addr", "address of the first byte that was read"),
        SIZE,
        (
            "value",
            "bytes that were read, at most 64; null if not known",
        ),
        PC,
        FUNCTION,
        FILE,
        LINE,
    ],
};
