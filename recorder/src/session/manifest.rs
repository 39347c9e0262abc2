//! What a recording's manifest says.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use agent::host::Host;
use store::{
    format::FORMAT_VERSION,
    manifest::{Host as Machine, Manifest, RecordingId, Settings},
};

use super::program::Running;
use crate::{Error, RecordOptions, Result, clock::Calibration};

pub(super) fn default_name(exe: &Path) -> PathBuf {
    exe.file_name()
        .map_or_else(|| "recording".into(), PathBuf::from)
}

pub(super) fn manifest(
    options: &RecordOptions,
    target: &Running,
    host: Option<&dyn Host>,
    calibration: Calibration,
) -> Result<Manifest> {
    let mut id = [0; 16];
    fs::File::open("/dev/urandom")
        .and_then(|mut random| io::Read::read_exact(&mut random, &mut id))
        .map_err(Error::system("read random bytes"))?;
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
    let first_line = |path: &str| {
        fs::read_to_string(path)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or_default();
    let clock = calibration.finish();
    let start = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Ok(Manifest {
        format_version: FORMAT_VERSION,
        recording_id: RecordingId(id),
        hindsight_version: env!("CARGO_PKG_VERSION").into(),
        frida_version: host.map(|host| host.version().to_owned()),
        host: Machine {
            kernel: format!("Linux {}", first_line("/proc/sys/kernel/osrelease")),
            cpu: cpu.trim_start_matches([' ', '\t', ':']).to_owned(),
        },
        argv: target.argv.clone(),
        cwd: target.cwd.clone(),
        start_unix_ns: start.as_nanos() as i64,
        clock,
        settings: Settings {
            on_full: options.on_full,
            filters: filters.collect(),
            keep_log: options.keep_log,
            captures: options.captures.names(),
        },
    })
}
