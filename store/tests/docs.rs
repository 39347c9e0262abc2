//! Goal: docs/format.md and docs/wire.md, the norms, agree with the code. Method: every public constant of the two
//! modules must be listed here, and the page must state its value next to its name.

use std::fs;
use std::path::Path;

use store::columns::{CALL_COLUMNS, EventKind, events_schema, states_schema};
use store::format::{self, FileKind, FrameKind};
use store::log::frame;
use store::{file_header, wire};

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Checks that `constants` are all public constants of the source file.
fn check_complete(source: &str, constants: &[(&str, String)]) {
    let source = read(source);
    let declared = source
        .lines()
        .filter_map(|line| line.strip_prefix("pub const "));
    let mut declared: Vec<&str> = declared.filter_map(|line| line.split(':').next()).collect();
    let mut compared: Vec<&str> = constants.iter().map(|(name, _)| *name).collect();
    declared.sort_unstable();
    compared.sort_unstable();
    assert_eq!(compared, declared);
}

/// Checks that the page says `NAME` = VALUE in a sentence, or has both side by side in a table.
fn check_stated(page: &str, constants: &[(&str, String)]) {
    for (name, value) in constants {
        let stated = ["` = ", "` = `", "` | ", "` | `"].iter().any(|between| {
            let needle = format!("`{name}{between}{value}");
            let after = page.match_indices(&needle).map(|(at, _)| at + needle.len());
            after.into_iter().any(|at| {
                let next = page[at..].chars().next();
                next.is_some_and(|c| !c.is_ascii_alphanumeric())
            })
        });
        assert!(stated, "the page does not say that {name} is {value}");
    }
}

fn check_line(page: &str, start: &str) {
    let found = page.lines().any(|line| line.starts_with(start));
    assert!(found, "the page has no line that begins with {start:?}");
}

macro_rules! values {
    ($module:ident: $($name:ident)*) => {
        vec![$((stringify!($name), $module::$name.to_string())),*]
    };
}

#[test]
fn the_format_page_states_every_constant() {
    let mut constants = values!(format:
        FORMAT_VERSION OLDEST_FORMAT_VERSION FILE_HEADER_LEN FRAME_HEADER_LEN FRAME_ALIGN
        MAX_PAYLOAD_LEN PACKED_MAX_LEN SEGMENT_ROLL_LEN SYNC_BYTES SYNC_INTERVAL_MS RECORDING_SUFFIX MANIFEST_FILE
        INCOMPLETE_FILE LOG_DIR COLUMNS_DIR SEGMENT_SUFFIX SEAL_STATE_FILE
        DEFINITIONS_FILE MEMORY_DIR MEMORY_SUFFIX NOTES_FILE CORE_LINK_FILE MAX_NOTES MAX_NOTE_LEN LABELS_FILE MAX_LABELS
        MAX_LABEL_LEN MODULES_DIR
        MODULES_INDEX_FILE PACKED_FILE INSTRUCTIONS_DIR INSTRUCTIONS_FILE);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    constants.push(("MAGIC", text(&format::MAGIC)));
    constants.push(("FRAME_MARK", text(&format::FRAME_MARK)));
    constants.push(("SPARE_FILES", format::SPARE_FILES.join("`, `")));
    check_complete("src/format.rs", &constants);
    check_stated(&read("../docs/format.md"), &constants);
}

#[test]
fn the_format_page_draws_the_headers_as_they_are() {
    let page = read("../docs/format.md");
    for (at, len, field) in [
        (0, file_header::VERSION_AT, "`MAGIC`"),
        (file_header::VERSION_AT, 4, "format version"),
        (file_header::KIND_AT, 4, "file kind"),
        (file_header::ID_AT, 16, "recording id"),
        (file_header::NUMBER_AT, 4, "number of the segment"),
        (file_header::CRC_AT, 4, "CRC-32C of bytes 0 to 59"),
        (frame::CRC_AT, 4, "CRC-32C of: bytes 0 to 59 of the file"),
        (frame::MARK_AT, 2, "`FRAME_MARK`"),
        (frame::KIND_AT, 1, "frame kind"),
        (frame::ZERO_AT, 1, "zero"),
        (frame::LEN_AT, 4, "length of the payload"),
        (frame::PLACE_AT, 4, "place"),
        (frame::ARG_AT, 8, "argument"),
    ] {
        check_line(&page, &format!("| {at} | {len} | {field}"));
    }
    for (kind, name) in [
        (FrameKind::Block, "BLOCK"),
        (FrameKind::Control, "CONTROL"),
        (FrameKind::Watermark, "WATERMARK"),
        (FrameKind::SegmentEnd, "SEGMENT_END"),
        (FrameKind::Document, "DOCUMENT"),
        (FrameKind::PackedBlock, "PACKED_BLOCK"),
        (FrameKind::Pages, "PAGES"),
    ] {
        check_line(&page, &format!("| {} | {name} |", kind as u8));
    }
    let kinds = [
        (FileKind::Log, "log"),
        (FileKind::Definitions, "definitions"),
        (FileKind::Manifest, "manifest"),
        (FileKind::SealState, "seal state"),
        (FileKind::Memory, "memory"),
        (FileKind::Notes, "notes"),
        (FileKind::Modules, "modules"),
    ]
    .map(|(kind, name)| format!("{} {name}", kind as u32));
    check_line(
        &page,
        &format!("| 12 | 4 | file kind: {}", kinds.join(", ")),
    );
    let (go_on, closed) = (frame::END_CONTINUES, frame::END_CLOSED);
    let ends = format!("{go_on}: goes on in the next segment; {closed}: the log was closed here");
    assert!(page.contains(&ends));
}

#[test]
fn the_format_page_lists_every_column_and_kind() {
    let page = read("../docs/format.md");
    let call_columns = CALL_COLUMNS.iter().map(|column| column.name.to_string());
    let schema = events_schema();
    let event_columns = schema.fields().iter().map(|field| field.name().clone());
    let kinds = [
        EventKind::ProcessStart,
        EventKind::ProcessExit,
        EventKind::Exec,
        EventKind::ExecFailed,
        EventKind::Fork,
        EventKind::ThreadStart,
        EventKind::ThreadExit,
        EventKind::ModuleLoad,
        EventKind::ModuleUnload,
        EventKind::Arming,
        EventKind::RingWait,
        EventKind::Stdout,
        EventKind::Stderr,
        EventKind::Gap,
        EventKind::Warning,
        EventKind::Note,
        EventKind::Detached,
        EventKind::Leave,
        EventKind::Probe,
        EventKind::ProbeRemoved,
        EventKind::Pause,
        EventKind::Resume,
        EventKind::Write,
        EventKind::LoggedWrite,
        EventKind::Logpoint,
        EventKind::Exception,
        EventKind::ConditionError,
        EventKind::Snapshot,
        EventKind::Syscall,
        EventKind::SyscallEnd,
    ];
    let kinds = kinds.iter().map(|kind| kind.name().to_string());
    let states = states_schema();
    let state_columns = states.fields().iter().map(|field| field.name().clone());
    let columns = call_columns.chain(event_columns).chain(state_columns);
    for name in columns.chain(kinds) {
        let quoted = format!("`{name}`");
        let mut rows = page.lines().filter(|line| line.starts_with("| `"));
        assert!(rows.any(|row| row.contains(&quoted)), "no row has {name}");
    }
}

#[test]
fn the_wire_page_states_every_constant() {
    let page = read("../docs/wire.md");
    let kinds = values!(wire:
        KIND_ENTER KIND_ENTER_TAIL KIND_LEAVE KIND_THREAD KIND_OUTPUT KIND_THREAD_EXIT KIND_THREAD_NAME KIND_GAP
        KIND_ENTER_NOLEAVE KIND_FORK KIND_EXEC KIND_LOGPOINT KIND_CONDITION_ERROR KIND_CAPTURE KIND_ENTER_ONLY
        KIND_SYSCALL);
    for (name, kind) in &kinds {
        check_line(&page, &format!("| {kind} | {} |", &name["KIND_".len()..]));
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
    let constants = values!(wire:
        WORD_LEN KIND_BITS XMM_SHIFT VALUE_SHIFT FUNCTION_LOW_BITS FUNCTION_HIGH_SHIFT FUNCTION_BITS
        SLOT_POSITION SLOT_SHIFT LEN_SHIFT ENTER_WORDS LEAVE_WORDS THREAD_WORDS THREAD_EXIT_WORDS THREAD_NAME_WORDS
        GAP_WORDS FORK_WORDS BYTES_WORDS ENTER_MAX_XMM LEAVE_XMM INT_ARGS THREAD_NAME_LEN
        PROBE_BITS LOG_COUNT_SHIFT LOG_WORDS LOG_MAX_VALUES CONDITION_ERROR_WORDS
        CAPTURE_REGISTERS CAPTURE_REGISTER_WORDS SECTION_WORDS SECTION_THREAD
        SYSCALL_BEGINS SYSCALL_ENDS SYSCALL_WORDS SYSCALL_END_WORDS FRAMES_LEFT FRAMES_LEFT_WORDS
        RING_WAIT RING_WAIT_WORDS STACK_SWITCH STACK_SWITCH_WORDS UNKNOWN_ERROR);
    check_stated(&page, &constants);
    check_complete("src/wire.rs", &[constants, kinds].concat());
}
