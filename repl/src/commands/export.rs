//! `hindsight export`: writes recordings as plain Parquet files that any engine reads, partitioned by table and run.

mod bucket;
mod place;
mod request;
mod settings;
mod upload;

use std::io::Write;
use std::path::{Path, PathBuf};

use query::output::Format;
use query::runs::{find, names};
use serde_json::json;
use server::quantity::count;
use store::manifest::Lineage;
use store::recording::{Recording, RecordingState};

use self::place::Destination;
use crate::ask::Asker;
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::output::{self, to_stdout};
use crate::progress::Progress;
use crate::render::{Terminal, bytes, escaped};
use crate::report::without_numbers;

const EXAMPLES: &str = "\
Examples:
  hindsight export 'runs/*' --to lake
  hindsight export app --to lake --table calls --table functions
  hindsight export app --to s3://bucket/lake
  duckdb -c \"select run, count(*) from read_parquet('lake/table=calls/**', hive_partitioning=true) group by run\"

For s3:// these variables are read: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION (or \
AWS_DEFAULT_REGION), AWS_ENDPOINT_URL (or AWS_ENDPOINT_URL_S3; for stores of others than Amazon), AWS_CA_BUNDLE.

Exits with 1 when a recording was left out, or the store failed.";

/// Write recordings as plain Parquet
///
/// Writes each table of each recording to DIR/table=TABLE/run=RUN/part-0.parquet, with the columns that SQL shows: names,
/// arguments, files and lines are texts. Reads one recording after the other, so memory does not grow with their number
/// or length. DIR may be s3://BUCKET/PREFIX. Tables of every instruction, of which record --full has millions, are written
/// only if --table names them: instructions, lines, memory_writes and memory_reads.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Recordings, with or without .hindsight, folders of them, or patterns
    #[arg(value_name = "RECORDING", required = true)]
    recordings: Vec<PathBuf>,
    /// The folder or s3://BUCKET/PREFIX to write to; it may already hold other runs
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Only this table; may be repeated [default: all but those of every instruction]
    #[arg(long = "table", value_name = "TABLE")]
    tables: Vec<String>,
    /// Print what was written, and what was left out, as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// When a word means no recording, a table or run is wrong, or a file cannot be written.
pub fn run(args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    let tables = tables(&args.tables)?;
    let found = find(&args.recordings);
    if let Some((path, why)) = found.nothing.first() {
        let message = format!("{}: {why}", path.display());
        return Err(Error::usage(message, None));
    }
    let mut place = Destination::of(&args.to)?;
    let named = names(&found.folders);
    let keys: Vec<Vec<String>> = named
        .iter()
        .map(|name| tables.iter().map(|table| key(table, name)).collect())
        .collect();
    if place.is_near() {
        for key in keys.iter().flatten() {
            refuse_taken(&mut place, key)?;
        }
    }
    let lineages = lineages(&found.folders);
    let progress = Progress::new(terminal);
    let (mut files, mut size, mut runs) = (0, 0, 0);
    let mut left_out = Vec::new();
    let mut leave_out = |name: &str, why: &str| match args.json {
        true => left_out.push(json!({"run": name, "why": why})),
        false => progress.warning(&format!("{name} is left out: {why}")),
    };
    for ((folder, name), keys) in found.folders.iter().zip(&named).zip(&keys) {
        // A run that has a row in `runs` is complete.
        let state = Recording::open(folder).map(|recording| recording.state());
        if state.is_ok_and(|state| state == RecordingState::Live) {
            leave_out(name, "it is still being recorded");
            continue;
        }
        match export(folder, &tables, keys, &lineages, (&mut place, terminal)) {
            Ok(len) => {
                files += tables.len() as u64;
                size += len;
                runs += 1;
            }
            Err(error @ (Error::Query { .. } | Error::Store { .. })) => {
                let why = without_numbers(&error.to_string());
                leave_out(name, &why);
            }
            Err(error) => {
                if runs > 0 && !args.json {
                    progress.warning(&match runs {
                        1 => "only the first recording was exported".to_owned(),
                        runs => format!("only the first {runs} recordings were exported"),
                    });
                }
                return Err(error);
            }
        }
    }
    let mut out = output::stdout();
    let written = if args.json {
        let facts = json!({
            "to": crate::json::path(&args.to),
            "recordings": runs,
            "files": files,
            "bytes": size,
            "left_out": left_out,
        });
        writeln!(out, "{:#}", answer(facts))
    } else {
        writeln!(
            out,
            "{}: {}, {}, {}",
            escaped(&args.to.to_string_lossy()),
            count(runs, "recording"),
            count(files, "file"),
            bytes(size)
        )
    };
    written.and_then(|()| out.flush()).map_err(to_stdout)?;
    Ok(match runs == named.len() as u64 {
        true => exit::DONE,
        false => exit::FAILED,
    })
}

/// Returns the tables to write, with `runs` last: a run that is listed there is complete.
fn tables(wanted: &[String]) -> Result<Vec<&'static str>, Error> {
    let all: Vec<_> = query::TABLES.iter().map(|table| table.name).collect();
    if let Some(name) = wanted.iter().find(|name| !all.contains(&name.as_str())) {
        let help = format!("the tables are {}", all.join(", "));
        return Err(Error::usage(
            format!("there is no table {name}"),
            Some(help),
        ));
    }
    // Tables of every instruction grow with the length of the run.
    let is_wanted = |table: &&str| match wanted {
        [] => !query::runs_again(table),
        wanted => wanted.iter().any(|name| name == table),
    };
    Ok(all.into_iter().filter(is_wanted).collect())
}

/// Refuses to overwrite a file.
fn refuse_taken(place: &mut Destination, key: &str) -> Result<(), Error> {
    match place.has(key)? {
        false => Ok(()),
        true => Err(Error::usage(
            format!("{} exists already", place.name(key)),
            Some("choose another folder, or remove what it has of this run".to_owned()),
        )),
    }
}

/// Returns whose recordings are exported: processes of other recordings of a set have no second row in that of their parent.
fn lineages(folders: &[PathBuf]) -> Vec<Lineage> {
    let opened = folders
        .iter()
        .filter_map(|folder| Recording::open(folder).ok());
    opened
        .filter(|recording| recording.state() != RecordingState::Live)
        .filter_map(|recording| recording.manifest().lineage)
        .collect()
}

/// Writes a recording, all of it or nothing, and returns the number of bytes.
fn export(
    folder: &Path,
    tables: &[&str],
    keys: &[String],
    lineages: &[Lineage],
    (place, terminal): (&mut Destination, &Terminal),
) -> Result<u64, Error> {
    let mut asker = Asker::open_beside(folder, lineages)?;
    asker.show_life(terminal);
    if !place.is_near() {
        for key in keys {
            refuse_taken(place, key)?;
        }
    }
    let mut size = 0;
    for (at, (table, key)) in tables.iter().zip(keys).enumerate() {
        match write(&mut asker, table, (&mut *place, key)) {
            Ok(len) => size += len,
            Err(error) => {
                // The rows of an incomplete recording could pass for all of them.
                place.remove(&keys[..=at]);
                return Err(error);
            }
        }
    }
    Ok(size)
}

/// Writes a table and returns the number of bytes.
fn write(
    asker: &mut Asker,
    table: &str,
    (place, key): (&mut Destination, &str),
) -> Result<u64, Error> {
    let columns = match table == "runs" {
        // The folder says which run it is.
        true => query::TABLES
            .iter()
            .filter(|known| known.name == table)
            .flat_map(|table| table.columns)
            .map(|(name, _)| *name)
            .filter(|name| *name != "run")
            .collect::<Vec<_>>()
            .join(", "),
        false => "*".to_owned(),
    };
    let answer = asker.ask(&format!("select {columns} from {table}"), None)?;
    let mut draft = place.draft(key)?;
    if let Err(error) = asker.write(answer, Format::Parquet, &mut draft, true) {
        return Err(draft.failure().unwrap_or(error));
    }
    draft.finish()
}

/// Returns the name of the file of a table of a run, below the folder of the export.
fn key(table: &str, run: &str) -> String {
    format!("table={table}/run={}/part-0.parquet", encoded(run))
}

/// Encodes a name as Hive does in the name of a folder: characters other than letters, digits, `-`, `_` and `.` as `%`
/// and two hexadecimal digits per byte.
fn encoded(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let mut text = String::new();
    for byte in name.bytes() {
        match is_plain(byte) {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_last_and_no_table_twice() {
        let words = ["runs", "calls", "runs"].map(str::to_owned);
        assert_eq!(tables(&words).unwrap(), ["calls", "runs"]);
        assert_eq!(tables(&[]).unwrap().last(), Some(&"runs"));
        assert!(tables(&["cals".to_owned()]).is_err());
    }

    #[test]
    fn names_of_runs_are_names_of_folders() {
        assert_eq!(encoded("t-2"), "t-2");
        assert_eq!(encoded("a/t x=1"), "a%2Ft%20x%3D1");
        assert_eq!(encoded(".."), "..");
        assert_eq!(key("calls", "a/t"), "table=calls/run=a%2Ft/part-0.parquet");
    }
}
