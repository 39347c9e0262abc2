//! Facts about a whole recording, gathered once and shown as text or JSON.

use std::path::PathBuf;

use serde_json::{Value, json};
use store::Manifest;
use store::labels::{self, Labels};
use store::manifest::OnFull;
use store::recording::{Recording, RecordingState};

use crate::ask::Asker;
use crate::error::Error;
use crate::recording::size_on_disk;
use crate::render::date;

/// Everything `info` shows.
pub struct Facts {
    pub recording: PathBuf,
    pub state: RecordingState,
    pub manifest: Manifest,
    pub labels: Labels,
    pub duration_ns: u64,
    pub end: End,
    /// Name and number of rows of each table.
    pub tables: Vec<(&'static str, u64)>,
    pub unfinished: u64,
    pub lost: u64,
    /// Gaps of which it is not known how many events were lost in them.
    pub unknown_gaps: u64,
    /// Why the recording ends before the program, if that is known.
    pub why_incomplete: Option<String>,
    /// Bytes at the end of the log that are not a complete frame.
    pub torn_bytes: u64,
    /// Name and size in bytes of each part of the folder.
    pub disk: Vec<(&'static str, u64)>,
    pub modules: Vec<Module>,
}

/// How the program ended, as far as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Code(i64),
    Signal(String),
    Detached,
    /// The recording does not show the end.
    NotSeen,
}

/// A mapped file.
pub struct Module {
    pub name: String,
    pub path: String,
    pub build_id: Option<String>,
    pub functions: u64,
    pub system: bool,
}

impl Facts {
    /// Gathers the facts by queries on the recording.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn gather(asker: &mut Asker) -> Result<Facts, Error> {
        let (Some(path), Some(extent)) = (asker.path(), asker.extent()) else {
            return Err(Error::usage("this needs exactly one recording", None));
        };
        let recording = Recording::open(path).map_err(|source| Error::Store { source })?;
        let mut tables = Vec::new();
        // The others are computed, most of them from all calls.
        let is_recorded = |table: &&query::TableDoc| {
            let is_computed = matches!(table.name, "runs" | "report" | "allocations" | "locks");
            !is_computed && !query::runs_again(table.name)
        };
        for table in query::TABLES.iter().filter(is_recorded) {
            let rows = asker.number(&format!("select count(*) from {}", table.name))?;
            tables.push((table.name, rows.unsigned_abs()));
        }
        let folder = recording.dir();
        let parts = [
            ("columns", recording.columns_dir()),
            ("log", recording.log_dir()),
        ];
        let mut disk = vec![("total", size_on_disk(folder))];
        disk.extend(parts.map(|(name, path)| (name, size_on_disk(&path))));
        Ok(Facts {
            recording: folder.to_owned(),
            state: extent.state,
            manifest: recording.manifest().clone(),
            labels: labels::read(&recording).map_err(|source| Error::Store { source })?,
            duration_ns: extent.duration_ns,
            end: end(asker)?,
            tables,
            unfinished: asker
                .number("select count(*) from calls where end_seq is null and dur_ns is not null")?
                .unsigned_abs(),
            lost: asker
                .number("select sum(lost) from gaps where reason <> 'memory not copied'")?
                .unsigned_abs(),
            unknown_gaps: asker
                .number("select count(*) from gaps where lost is null and reason <> 'memory not copied'")?
                .unsigned_abs(),
            why_incomplete: recording.why_incomplete(),
            torn_bytes: extent.torn_bytes,
            disk,
            modules: modules(asker)?,
        })
    }

    /// Returns the number of rows of a table.
    pub fn rows_of(&self, table: &str) -> u64 {
        self.tables
            .iter()
            .find(|(name, _)| *name == table)
            .map_or(0, |(_, rows)| *rows)
    }

    /// Returns the word for the state of the recording.
    pub fn state_word(&self) -> &'static str {
        match self.state {
            RecordingState::Closed => "closed",
            RecordingState::Live => "live",
            RecordingState::Interrupted => "incomplete",
        }
    }

    /// Returns the word for what a thread does when its ring is full.
    pub fn on_full(&self) -> &'static str {
        match self.manifest.settings.on_full {
            OnFull::Block => "block",
            OnFull::Drop => "drop",
        }
    }

    /// Returns all facts as JSON.
    pub fn as_json(&self) -> Value {
        let manifest = &self.manifest;
        let (code, signal) = match &self.end {
            End::Code(code) => (Some(*code), None),
            End::Signal(name) => (None, Some(name)),
            End::Detached | End::NotSeen => (None, None),
        };
        let modules = self.modules.iter().map(|module| {
            json!({
                "name": module.name,
                "path": module.path,
                "build_id": module.build_id,
                "functions": module.functions,
                "system": module.system,
            })
        });
        let map = |pairs: &[(&'static str, u64)]| {
            pairs
                .iter()
                .map(|(name, n)| ((*name).to_owned(), json!(n)))
                .collect::<serde_json::Map<_, _>>()
        };
        json!({
            "recording": crate::json::path(&self.recording),
            "state": self.state_word(),
            "id": manifest.recording_id.to_string(),
            "argv": manifest.argv,
            "labels": self.labels,
            "cwd": manifest.cwd,
            "start": date(manifest.start_unix_ns),
            "start_unix_ns": manifest.start_unix_ns,
            "duration_ns": self.duration_ns,
            "exit_code": code,
            "exit_signal": signal,
            "detached": self.end == End::Detached,
            "rows": map(&self.tables),
            "unfinished_calls": self.unfinished,
            "lost": self.lost,
            "torn_bytes": self.torn_bytes,
            "bytes_on_disk": map(&self.disk),
            "settings": {
                "on_full": self.on_full(),
                "filters": manifest.settings.filters,
                "keep_log": manifest.settings.keep_log,
                "captures": manifest.settings.captures,
                "no_aslr": manifest.settings.no_aslr,
                "log_writes": manifest.settings.log_writes,
            },
            "host": {
                "kernel": manifest.host.kernel,
                "cpu": manifest.host.cpu,
                "name": manifest.host.name,
            },
            "tsc_hz": manifest.clock.tsc_hz,
            "format_version": manifest.format_version,
            "hindsight_version": manifest.hindsight_version,
            "frida_version": manifest.frida_version,
            "modules": modules.collect::<Vec<_>>(),
        })
    }
}

fn end(asker: &mut Asker) -> Result<End, Error> {
    let sql = "select kind, value, aux from events where kind in ('process_exit', 'detached') \
               order by seq desc limit 1";
    let rows = asker.texts(sql)?;
    let Some([Some(kind), value, signal]) = rows.first().map(Vec::as_slice) else {
        return Ok(End::NotSeen);
    };
    Ok(
        match (
            kind.as_str(),
            signal,
            value.as_ref().and_then(|v| v.parse().ok()),
        ) {
            ("detached", _, _) => End::Detached,
            (_, Some(signal), _) => End::Signal(signal.clone()),
            (_, None, Some(code)) => End::Code(code),
            (_, None, None) => End::NotSeen,
        },
    )
}

fn modules(asker: &mut Asker) -> Result<Vec<Module>, Error> {
    let sql = "select m.name, m.path, m.build_id, count(f.name), m.system \
               from modules m left join functions f on f.module = m.name \
               group by m.module_id, m.name, m.path, m.build_id, m.system order by 4 desc, m.module_id";
    let rows = asker.texts(sql)?;
    let module = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter();
        let mut next = || cells.next().flatten();
        Module {
            name: next().unwrap_or_default(),
            path: next().unwrap_or_default(),
            build_id: next(),
            functions: next().and_then(|n| n.parse().ok()).unwrap_or(0),
            system: next().as_deref() == Some("true"),
        }
    };
    Ok(rows.into_iter().map(module).collect())
}
