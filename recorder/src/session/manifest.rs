//! Creates a recording's manifest.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{FileTypeExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

use agent::host::Host;
use store::{
    format::FORMAT_VERSION,
    manifest::{
        ByteBuf, Host as Machine, Launch, Lineage, Manifest, OnFull, RecordingId, Settings, Stdin,
    },
};

use super::program::Running;
use crate::{
    Captures, Error, RecordOptions, Result, SnapshotTimes, Target,
    clock::{Calibration, monotonic_ns},
    live::{FirstProbes, Location},
    stop::procfs::parent,
};

/// Returns the name of a recording of a program, without the ending.
pub(crate) fn default_name(exe: &Path) -> PathBuf {
    // The name of a login shell begins with a dash.
    let name = exe.file_name().unwrap_or_default().to_string_lossy();
    match name.trim_start_matches('-') {
        "" => "recording".into(),
        _ if !name.starts_with('-') => exe.file_name().unwrap_or_default().into(),
        name => name.into(),
    }
}

pub(super) fn manifest(
    (options, first): (&RecordOptions, Option<&FirstProbes>),
    target: &Running,
    host: Option<&dyn Host>,
    calibration: Calibration,
) -> Result<Manifest> {
    let filters = options
        .include
        .iter()
        .map(|pattern| format!("-f {pattern}"));
    let filters = filters.chain(
        options
            .exclude
            .iter()
            .map(|pattern| format!("-x {pattern}")),
    );
    let clock = calibration.finish();
    Ok(Manifest {
        format_version: FORMAT_VERSION,
        recording_id: new_id()?,
        hindsight_version: env!("CARGO_PKG_VERSION").into(),
        frida_version: host.map(|host| host.version().to_owned()),
        host: this_machine(),
        argv: target.argv.clone(),
        cwd: target.cwd.clone(),
        start_unix_ns: start_of(),
        start_monotonic_ns: Some(monotonic_ns()),
        clock,
        settings: Settings {
            on_full: options.on_full,
            filters: filters.collect(),
            keep_log: options.keep_log,
            captures: options.captures.names(),
            no_aslr: options.surroundings.no_aslr,
            log_writes: first.map_or_else(Vec::new, logged),
        },
        launch: launch(options, first, target),
        labels: options.labels.clone(),
        run_of: None,
        lineage: match &options.target {
            Target::Parked(member) => Some(member.lineage),
            Target::Spawn { .. } | Target::Attach { .. } => alone(target.pid),
        },
    })
}

/// A process that is no part of a set.
pub(crate) fn alone(pid: i32) -> Option<Lineage> {
    let parent_pid = parent(pid)?;
    Some(Lineage {
        pid,
        parent_pid,
        parent_run: None,
    })
}

/// Makes the id of a recording.
pub(crate) fn new_id() -> Result<RecordingId> {
    let mut id = [0; 16];
    fs::File::open("/dev/urandom")
        .and_then(|mut random| io::Read::read_exact(&mut random, &mut id))
        .map_err(Error::system("read random bytes"))?;
    Ok(RecordingId(id))
}

/// Describes the machine that we run on.
pub(crate) fn this_machine() -> Machine {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or_default();
    Machine {
        kernel: format!("Linux {}", release.trim()),
        cpu: cpu.trim_start_matches([' ', '\t', ':']).to_owned(),
        name: (!name.trim().is_empty()).then(|| name.trim().to_owned()),
    }
}

/// Returns the current time as the start of a recording: nanoseconds since 1970.
pub(crate) fn start_of() -> i64 {
    let start = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    start.as_nanos() as i64
}

/// The places whose writes are logged from the start.
pub(crate) fn logged(first: &FirstProbes) -> Vec<String> {
    let places = first.specs.iter().map(|spec| &spec.location);
    let logged = places.filter(|location| matches!(location, Location::Logged(_)));
    logged.map(ToString::to_string).collect()
}

/// What is needed to start the target again.
fn launch(
    options: &RecordOptions,
    first: Option<&FirstProbes>,
    target: &Running,
) -> Option<Launch> {
    let of_process = |name: &str| format!("/proc/{}/{name}", target.pid);
    let bytes = |text: OsString| ByteBuf::from(text.into_vec());
    let argv = match &options.target {
        Target::Spawn { argv } => {
            let name = options.surroundings.name.as_ref().or(argv.first());
            let words = name.into_iter().chain(argv.iter().skip(1));
            words.cloned().map(bytes).collect()
        }
        Target::Parked(_) => {
            let text = fs::read(of_process("cmdline")).ok()?;
            let words = text.strip_suffix(&[0])?.split(|byte| *byte == 0);
            words.map(|word| ByteBuf::from(word.to_vec())).collect()
        }
        Target::Attach { .. } => return None,
    };
    let cwd = fs::read_link(of_process("cwd")).ok()?;
    // Before the program runs, this is the initial one.
    let env = fs::read(of_process("environ")).ok()?;
    let env = env.split(|byte| *byte == 0).filter(|pair| !pair.is_empty());
    Some(Launch {
        argv,
        cwd: bytes(cwd.into_os_string()),
        env: env.map(|pair| ByteBuf::from(pair.to_vec())).collect(),
        stdin: stdin(target.pid),
        options: words(options, first),
    })
}

/// Describes our own standard input, which a program inherits.
pub(crate) fn own_stdin() -> Stdin {
    stdin(std::process::id().cast_signed())
}

fn stdin(pid: i32) -> Stdin {
    let open = PathBuf::from(format!("/proc/{pid}/fd/0"));
    let (Ok(path), Ok(metadata)) = (fs::read_link(&open), fs::metadata(&open)) else {
        return Stdin::Once;
    };
    let kind = metadata.file_type();
    let position = fs::read_to_string(format!("/proc/{pid}/fdinfo/0")).unwrap_or_default();
    let is_at_start = position
        .lines()
        .any(|line| line.split_whitespace().eq(["pos:", "0"]));
    let is_there = fs::metadata(&path).is_ok_and(|found| found.ino() == metadata.ino());
    let is_null = path == Path::new("/dev/null");
    match () {
        () if is_null || kind.is_file() && is_at_start && is_there => {
            Stdin::File(ByteBuf::from(path.as_os_str().as_bytes().to_vec()))
        }
        () if kind.is_char_device() && path.starts_with("/dev") => Stdin::Terminal,
        () => Stdin::Once,
    }
}

/// Returns the options of `record` for the same recording.
pub(crate) fn words(options: &RecordOptions, first: Option<&FirstProbes>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut add = |all: &[&str]| words.extend(all.iter().map(|word| (*word).to_owned()));
    for pattern in &options.include {
        add(&["-f", pattern]);
    }
    for pattern in &options.exclude {
        add(&["-x", pattern]);
    }
    if options.on_full == OnFull::Drop {
        add(&["--on-full", "drop"]);
    }
    match options.snapshots {
        SnapshotTimes::AtPauses => {}
        SnapshotTimes::Never => add(&["--snapshot", "never"]),
        SnapshotTimes::Every(time) => {
            add(&["--snapshot", &format!("every={}s", time.as_secs_f64())]);
        }
        SnapshotTimes::EveryEvents(count) => {
            add(&["--snapshot", &format!("every={count}events")]);
        }
    }
    for (key, value) in &options.labels {
        add(&["--label", &format!("{key}={value}")]);
    }
    if options.keep_log {
        add(&["--keep-log"]);
    }
    if options.surroundings.no_aslr {
        add(&["--no-aslr"]);
    }
    let Captures {
        registers,
        stack_len,
        texts,
        pointees,
        system_calls,
        memory,
        locks,
        watches,
    } = &options.captures;
    if *registers {
        add(&["--regs"]);
    }
    if *stack_len > 0 {
        add(&["--stack", &stack_len.to_string()]);
    }
    if *texts {
        add(&["--strings"]);
    }
    if *pointees {
        add(&["--pointees"]);
    }
    if *system_calls {
        add(&["--syscalls"]);
    }
    if *memory {
        add(&["--memory"]);
    }
    if *locks {
        add(&["--locks"]);
    }
    for watch in watches {
        add(&["--watch", watch]);
    }
    words.extend(first.map(probe_words).unwrap_or_default());
    words
}

/// Returns the options of `record` for the same probes.
pub(crate) fn probe_words(first: &FirstProbes) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut add = |all: &[&str]| words.extend(all.iter().map(|word| (*word).to_owned()));
    for spec in &first.specs {
        let place = spec.location.to_string();
        match (&spec.location, spec.action.message()) {
            (Location::Logged(_), _) => add(&["--log-writes", &place]),
            (_, Some(message)) => {
                add(&["--logpoint", &place, message.source()]);
                if let Some(condition) = spec.condition_text() {
                    add(&["--condition", &condition]);
                }
            }
            (_, None) => {}
        }
    }
    if first.pending {
        add(&["--pending"]);
    }
    words
}
