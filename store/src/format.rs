//! Names the constants of the files of a recording; `docs/format.md` is the norm and repeats each of them.

/// The first eight bytes of every file of a recording except the Parquet ones.
pub const MAGIC: [u8; 8] = *b"HNDSIGHT";

/// The version of the format that this build writes, and the newest it reads.
///
/// 1: the first one. 2: packed blocks; events of live control: records of kinds 11 and 12, control events, states of
/// stopped threads; captures: records of kind 13; calls of Go: records of kind 15; system calls: records of kind 0;
/// snapshots of memory; notes and copies of modules.
pub const FORMAT_VERSION: u32 = 2;

/// The oldest version that this build reads.
pub const OLDEST_FORMAT_VERSION: u32 = 1;

/// Length of the header that begins each file, in bytes.
pub const FILE_HEADER_LEN: usize = 64;

/// Length of the header that begins each frame, in bytes.
pub const FRAME_HEADER_LEN: usize = 24;

/// Two bytes in every frame header, so that a reader lost in a damaged file can find the next frame.
pub const FRAME_MARK: [u8; 2] = *b"hf";

/// Frames begin at multiples of this many bytes; payloads are zero padded to it.
pub const FRAME_ALIGN: usize = 8;

/// Largest payload of one frame, in bytes: bounds the memory of a reader.
pub const MAX_PAYLOAD_LEN: usize = 64 << 20;

/// Most bytes that a packed block unpacks to: bounds the memory of a reader.
pub const PACKED_MAX_LEN: usize = 1 << 20;

/// A segment that has reached this length, in bytes, takes no further frame.
pub const SEGMENT_ROLL_LEN: u64 = 256 << 20;

/// Appended bytes after which the log is synced without waiting for [`SYNC_INTERVAL_MS`].
pub const SYNC_BYTES: u64 = 256 << 20;

/// Longest time, in milliseconds, that appended bytes wait to be synced.
pub const SYNC_INTERVAL_MS: u64 = 100;

/// Ending of the name of a recording's folder.
pub const RECORDING_SUFFIX: &str = ".hindsight";
/// The file with the manifest.
pub const MANIFEST_FILE: &str = "manifest";
/// Present until the recording is closed cleanly.
pub const INCOMPLETE_FILE: &str = "incomplete";
/// The folder of the log's segments.
pub const LOG_DIR: &str = "log";
/// The folder of the sealed columns.
pub const COLUMNS_DIR: &str = "columns";
/// The file name ending of a segment: `000000.seg` is the first one.
pub const SEGMENT_SUFFIX: &str = ".seg";
/// The folder of the snapshots of memory.
pub const MEMORY_DIR: &str = "memory";
/// The file name ending of a snapshot: `000000.mem` is the first one.
pub const MEMORY_SUFFIX: &str = ".mem";
/// The file that names the core file of a recording that was made of one.
pub const CORE_LINK_FILE: &str = "core";
/// The file with the notes that were added later.
pub const NOTES_FILE: &str = "notes";
/// Most notes that may be added.
pub const MAX_NOTES: usize = 10_000;
/// Longest text of a note that is added, in bytes.
pub const MAX_NOTE_LEN: usize = 4096;
/// The file with the labels that were given later.
pub const LABELS_FILE: &str = "labels";
/// Most labels of a recording.
pub const MAX_LABELS: usize = 100;
/// Longest key and longest value of a label, in bytes.
pub const MAX_LABEL_LEN: usize = 256;
/// The folder with copies of the modules' files.
pub const MODULES_DIR: &str = "modules";
/// The file with the index of the copies, in that folder.
pub const MODULES_INDEX_FILE: &str = "index";
/// An empty file, made with the first copies, so that a lost folder of copies is noticed.
pub const PACKED_FILE: &str = "packed";
/// The folder with the log of every instruction.
pub const INSTRUCTIONS_DIR: &str = "instructions";
/// The file in it.
pub const INSTRUCTIONS_FILE: &str = "log.zst";
/// Files beside it while it is written, which keep room on the disk: for the end of the log, and for the events.
pub const SPARE_FILES: [&str; 2] = ["spare.log", "spare.events"];
/// The file with the progress of sealing, in the columns folder.
pub const SEAL_STATE_FILE: &str = "seal.state";
/// The file with the definitions found in the log so far, in the columns folder.
pub const DEFINITIONS_FILE: &str = "definitions.seg";

/// The content of a file that begins with [`MAGIC`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum FileKind {
    /// A segment of the log.
    Log = 1,
    /// Definitions copied out of the log.
    Definitions = 2,
    /// The manifest.
    Manifest = 3,
    /// The progress of sealing.
    SealState = 4,
    /// A snapshot of memory.
    Memory = 5,
    /// Notes that were added later.
    Notes = 6,
    /// The index of modules with copies.
    Modules = 7,
    /// Labels that were given later.
    Labels = 8,
}

impl FileKind {
    /// Returns the kind that `code` stands for in a file header.
    pub fn from_code(code: u32) -> Option<Self> {
        [
            Self::Log,
            Self::Definitions,
            Self::Manifest,
            Self::SealState,
            Self::Memory,
            Self::Notes,
            Self::Modules,
            Self::Labels,
        ]
        .into_iter()
        .find(|kind| *kind as u32 == code)
    }
}

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// Whole records of one ring, as the target wrote them.
    Block = 1,
    /// A control event in MessagePack.
    Control = 2,
    /// A lower bound for the ticks of later records.
    Watermark = 3,
    /// The last frame of a segment.
    SegmentEnd = 4,
    /// The one frame of a document such as the manifest, in MessagePack.
    Document = 5,
    /// As [`Self::Block`], without words that an earlier record of the block implies.
    PackedBlock = 6,
    /// Pages of memory.
    Pages = 7,
}

impl FrameKind {
    /// Returns the kind that `code` stands for in a frame header.
    pub fn from_code(code: u8) -> Option<Self> {
        [
            Self::Block,
            Self::Control,
            Self::Watermark,
            Self::SegmentEnd,
            Self::Document,
            Self::PackedBlock,
            Self::Pages,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == code)
    }
}
