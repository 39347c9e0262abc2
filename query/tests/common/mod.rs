//! Recordings for the tests of this crate, and how to query them.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::Path;

use query::{Options, Session};
use store::control::{Control, FunctionDef, Param, ParameterPlace, ValueKind};
use store::recording::Recording;
use store::synth::Synth;
use store::wire::{EnterFields, EnterForm, GapReason, Leave, Section};
use tempfile::TempDir;

pub const INT: ValueKind = ValueKind::Int {
    bytes: 4,
    signed: true,
};
pub const DOUBLE: ValueKind = ValueKind::Float { bytes: 8 };
pub const SINGLE: ValueKind = ValueKind::Float { bytes: 4 };

/// The lowest slot that the main thread's stack has, plus room to call.
pub const SLOT: u64 = 0x7f00_0000_8000;

pub fn param(name: &str, kind: ValueKind, place: ParameterPlace) -> Param {
    Param::in_one_place(name, kind, place)
}

pub fn function(
    id: u32,
    name: &str,
    file: &str,
    params: Vec<Param>,
    ret: ValueKind,
) -> FunctionDef {
    FunctionDef {
        id,
        module: 0,
        svma: 0x1000 + u64::from(id) * 0x100,
        size: 0x80,
        name: name.into(),
        linkage: format!("_{name}"),
        file: Some(file.into()),
        line: Some(10 * (id + 1)),
        params,
        ret,
        params_known: true,
        ret_place: None,
    }
}

/// A copy of a file: opened, read, written, closed; a missing file; an end without a return.
pub fn made_calls() -> Synth {
    let (path, data) = (0x1000, 0x2000);
    let text = |addr, bytes| Section { addr, bytes };
    let mut synth = Synth::new();
    let copy = synth.function("copy");
    let folder = -100i64 as u64;
    let stack = SLOT - 64;
    synth.thread(7).enter(copy, SLOT);
    synth.syscall(
        257,
        [folder, path, 0, 0, 0, 0],
        stack,
        &[text(path, b"/etc/motd\0")],
    );
    synth.syscall_end(3, stack, &[]);
    synth.syscall(
        257,
        [folder, path, 0o1101, 0o600, 0, 0],
        stack,
        &[text(path, b"copy\0")],
    );
    synth.syscall_end(4, stack, &[]);
    synth.syscall(0, [3, data, 4096, 0, 0, 0], stack, &[]);
    synth.syscall_end(6, stack, &[text(data, b"hello\n")]);
    synth.syscall(1, [4, data, 6, 0, 0, 0], stack, &[text(data, b"hello\n")]);
    synth.syscall_end(6, stack, &[]);
    synth
        .syscall(3, [3, 0, 0, 0, 0, 0], stack, &[])
        .syscall_end(0, stack, &[]);
    synth.syscall(
        257,
        [folder, path, 0, 0, 0, 0],
        stack,
        &[text(path, b"/none\0")],
    );
    synth.syscall_end(-2, stack, &[]);
    synth
        .leave(SLOT)
        .syscall(1, [2, 0x9000, 3, 0, 0, 0], stack, &[]);
    synth
        .syscall_end(3, stack, &[])
        .syscall(231, [0; 6], stack, &[]);
    synth
}

/// A small shop: seven functions, two threads, output, lost events, a call that was unwound.
pub fn shop() -> Synth {
    let mut synth = Synth::new();
    define_shop(&mut synth);
    synth
        .control(Control::ProcessStart {
            ticks: 1,
            pid: 4242,
            argv: vec!["shop".into(), "--fast".into()],
            exe: "/opt/shop/shop".into(),
            cwd: "/".into(),
            attached: false,
        })
        .at(10)
        .thread(100);
    enter(&mut synth, 0, 0, [0; 6], &[]);
    for n in 0..3u64 {
        enter(&mut synth, 1, 1, [n.wrapping_sub(1), 0, 0, 0, 0, 0], &[]);
        leave(&mut synth, 1, n.wrapping_sub(1) & 0xffff_ffff, None);
    }
    let price = [9.5f64.to_bits(), u64::from(0.5f32.to_bits())];
    enter(&mut synth, 2, 1, [0; 6], &price);
    synth.output(1, b"hello\n").output(2, &[0xff, 0xfe, b'x']);
    leave(&mut synth, 1, 7, Some([10.0f64.to_bits(), 0]));
    synth.thread(101);
    enter_worker(&mut synth, 5, [2, 1, u64::from(b'a'), 0, 0, 0]);
    synth.thread(100);
    enter(&mut synth, 3, 1, [0xdead, 2, 3, 4, 5, 6], &[]);
    enter(&mut synth, 4, 2, [77, 0, 0, 0, 0, 0], &[]);
    // Left by an exception: the next event of the thread is further out.
    leave(&mut synth, 1, 0xffff_ffff_ffff_fff0, None);
    synth.gap(7, GapReason::RingFull);
    synth
        .thread(101)
        .leave_value(WORKER_SLOT, 0x101)
        .thread_exit();
    synth.thread(100);
    enter(&mut synth, 6, 1, [0; 6], &[]);
    leave(&mut synth, 1, 99, None);
    leave(&mut synth, 0, 3, None);
    synth.thread_exit();
    let ticks = synth.ticks() + 10;
    synth.control(Control::ProcessExit {
        ticks,
        code: Some(3),
        signal: None,
    });
    synth.watermark();
    synth
}

const WORKER_SLOT: u64 = SLOT + 0x10_0000;

fn define_shop(synth: &mut Synth) {
    for (module, path, system) in [(0, "/opt/shop/shop", false), (1, "/lib/libc.so.6", true)] {
        synth.control(Control::ModuleLoad {
            ticks: 0,
            module,
            path: path.into(),
            build_id: (module == 0).then(|| "abcd".into()),
            addr: 0x5555_0000_0000 + (u64::from(module) << 32),
            size: 0x10_0000,
            system,
        });
    }
    let mode = ValueKind::Enum {
        bytes: 4,
        signed: false,
        names: vec![(1, "slow".into()), (2, "fast".into())],
    };
    let n = || vec![param("n", INT, ParameterPlace::Int(0))];
    let total = vec![
        param("price", DOUBLE, ParameterPlace::Sse(0)),
        param("tax", SINGLE, ParameterPlace::Sse(1)),
    ];
    let set_mode = vec![
        param("mode", mode, ParameterPlace::Int(0)),
        param("now", ValueKind::Bool, ParameterPlace::Int(1)),
        param("key", ValueKind::Char, ParameterPlace::Int(2)),
    ];
    synth.define(function(0, "main", "shop.c", vec![], INT));
    synth.define(function(1, "parse", "shop.c", n(), INT));
    synth.define(function(2, "order::total", "order.cc", total, DOUBLE));
    let mut unknown = function(3, "free", "", vec![], ValueKind::Unknown);
    (unknown.module, unknown.file, unknown.line) = (1, None, None);
    unknown.params_known = false;
    synth.define(unknown);
    synth.define(function(4, "parse", "order.cc", n(), INT));
    synth.define(function(5, "set_mode", "mode.c", set_mode, ValueKind::Bool));
    synth.define(function(6, "destroy", "mode.c", vec![], ValueKind::Void));
    synth.control(Control::Skipped {
        module: 0,
        svma: 0x9000,
        name: "tiny".into(),
        reason: "shorter than a jump".into(),
    });
}

fn enter(synth: &mut Synth, id: u32, depth: u64, args: [u64; 6], xmm: &[u64]) {
    synth.enter_full(&EnterFields {
        form: EnterForm::Hooked,
        function_id: id,
        slot: SLOT - depth * 64,
        return_addr: 0x5555_0000_1234,
        args,
        xmm,
    });
}

fn enter_worker(synth: &mut Synth, id: u32, args: [u64; 6]) {
    synth.enter_full(&EnterFields {
        form: EnterForm::Hooked,
        function_id: id,
        slot: WORKER_SLOT,
        return_addr: 0x5555_0000_4321,
        args,
        xmm: &[],
    });
}

fn leave(synth: &mut Synth, depth: u64, rax: u64, xmm: Option<[u64; 2]>) {
    synth.leave_full(&Leave {
        slot: SLOT - depth * 64,
        rax,
        rdx: 0,
        xmm,
    });
}

/// Copies a frozen recording of the prompt's tests to `path`.
pub fn frozen(name: &str, path: &Path) -> store::Result<Recording> {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../repl/tests/recordings");
    copy_folder(&recordings.join(format!("{name}.hindsight")), path);
    // git keeps no empty folders.
    std::fs::create_dir(path.join("log")).unwrap();
    Recording::open(path)
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let copy = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &copy),
            false => drop(std::fs::copy(entry.path(), copy).unwrap()),
        }
    }
}

/// A recording in a folder of its own, and a session on it.
pub struct Asked {
    pub dir: TempDir,
    pub recording: Recording,
    pub session: Session,
}

impl Asked {
    pub fn new(make: impl FnOnce(&Path) -> store::Result<Recording>) -> Self {
        let cores = 2; // so that plans look the same everywhere
        Self::with(
            make,
            Options {
                cores,
                ..Options::default()
            },
        )
    }

    pub fn with(make: impl FnOnce(&Path) -> store::Result<Recording>, options: Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let recording = make(&dir.path().join("test")).unwrap();
        let session = Session::open_with(recording.dir(), options).unwrap();
        Self {
            dir,
            recording,
            session,
        }
    }

    /// Returns the answer as lines of values, separated by ` | `, or the error's message.
    pub fn ask(&self, sql: &str) -> String {
        ask(&self.session, sql)
    }
}

pub fn ask(session: &Session, sql: &str) -> String {
    match lines(session, sql) {
        Ok(lines) => redact(&lines),
        Err(error) => {
            let help = error.hint().map(|hint| format!("help: {hint}\n"));
            format!("error: {error}\n{}", help.unwrap_or_default())
        }
    }
}

fn lines(session: &Session, sql: &str) -> query::Result<String> {
    use arrow::util::display::{ArrayFormatter, FormatOptions};
    let options = FormatOptions::default().with_null("NULL");
    let mut lines = String::new();
    for batch in session.sql(sql)? {
        let batch = query::output::without_bytes(&batch?)?;
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let values: Vec<_> = columns.iter().map(|c| c.value(row).to_string()).collect();
            lines.push_str(&values.join(" | ").replace('\n', "\\n"));
            lines.push('\n');
        }
    }
    Ok(lines)
}

/// Hides the names of temporary folders, and shows non-ASCII characters by their numbers.
fn redact(text: &str) -> String {
    let mut parts = text.split("hindsight-tail-");
    let mut redacted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        redacted.push_str("TAIL");
        redacted.push_str(rest);
    }
    let ascii = |c: char| match c.is_ascii() {
        true => c.to_string(),
        false => c.escape_unicode().to_string(),
    };
    redacted.chars().map(ascii).collect()
}
