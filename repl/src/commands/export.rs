//! `hindsight export`: writes recordings as plain Parquet files that any engine reads, partitioned by table and run.

mod bucket;
mod mark;
mod place;
mod request;
mod settings;
mod upload;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use query::output::Format;
use query::runs::{find, names_with_sets};
use serde_json::json;
use server::quantity::count;
use store::recording::{Recording, RecordingState};

use self::place::Destination;
use crate::ask::{Asker, Interrupts};
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
  duckdb -c \"select run, count(*) from read_parquet('lake/table=calls/**/*.parquet', hive_partitioning=true) group by run\"

For s3:// these variables are read: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION (or \
AWS_DEFAULT_REGION), AWS_ENDPOINT_URL (or AWS_ENDPOINT_URL_S3; for stores of others than Amazon), AWS_CA_BUNDLE.

Exits with 1 when a recording was left out, or the store failed.";

/// Time to look whether a signal has come.
const MOMENT: Duration = Duration::from_millis(1);

/// Write recordings as plain Parquet
///
/// Writes each table of each recording to DIR/table=TABLE/run=RUN/part-0.parquet, with the columns that SQL shows: names,
/// arguments, files and lines are texts. The name of a recording in a set begins with that of the set. Reads one
/// recording after the other, so memory does not grow with their number or length. DIR may be s3://BUCKET/PREFIX. Tables
/// of every instruction, of which record --full has millions, are written only if --table names them: instructions,
/// lines, memory_writes and memory_reads.
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
    // From here on they are noted, whatever this waits for.
    let mut signals = Interrupts::catch_ends()?;
    let mut place = Destination::of(&args.to)?;
    let named = names_with_sets(&found.folders).into_iter();
    let named: Vec<Run<'_>> = named
        .zip(&found.folders)
        .map(|(name, folder)| Run::new(name, folder, &tables))
        .collect();
    if place.is_near() {
        for run in &named {
            run.find_room(&mut place)?;
        }
    }
    let all = complete_ones(&found.folders);
    let progress = Progress::new(terminal);
    let (mut files, mut size, mut runs) = (0, 0, 0);
    let mut left_out = Vec::new();
    let mut leave_out = |name: &str, why: &str| match args.json {
        true => left_out.push(json!({"run": name, "why": why})),
        false => progress.warning(&format!("{name} is left out: {why}")),
    };
    for run in &named {
        // A run that has a row in `runs` is complete.
        let state = Recording::open(run.folder).map(|recording| recording.state());
        if state.is_ok_and(|state| state == RecordingState::Live) {
            leave_out(&run.name, "it is still being recorded");
            continue;
        }
        match export(run, &tables, &all, (&mut place, terminal), &mut signals) {
            Ok(len) => {
                files += tables.len() as u64;
                size += len;
                runs += 1;
            }
            Err(error @ (Error::Query { .. } | Error::Store { .. })) => {
                let why = without_numbers(&error.to_string());
                leave_out(&run.name, &why);
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

/// A recording and its files, in the order of the tables.
struct Run<'a> {
    folder: &'a Path,
    name: String,
    keys: Vec<String>,
    /// The file that is there until all of these are.
    mark: String,
}

impl<'a> Run<'a> {
    fn new(name: String, folder: &'a Path, tables: &[&str]) -> Self {
        Run {
            folder,
            keys: tables.iter().map(|table| key(table, &name)).collect(),
            mark: format!("unfinished-{}", encoded(&name)),
            name,
        }
    }

    /// Removes what a killed export has left of the run, and refuses to overwrite anything else.
    fn find_room(&self, place: &mut Destination) -> Result<(), Error> {
        place.clear(&self.mark)?;
        for key in &self.keys {
            refuse_taken(place, key)?;
        }
        Ok(())
    }
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

/// Returns the recordings that are exported: processes of other recordings of a set have no second row in that of their parent.
fn complete_ones(folders: &[PathBuf]) -> Vec<Recording> {
    let opened = folders
        .iter()
        .filter_map(|folder| Recording::open(folder).ok());
    opened
        .filter(|recording| recording.state() != RecordingState::Live)
        .collect()
}

/// Writes a recording, all of it or nothing, and returns the number of bytes.
fn export(
    run: &Run<'_>,
    tables: &[&str],
    all: &[Recording],
    (place, terminal): (&mut Destination, &Terminal),
    signals: &mut Interrupts,
) -> Result<u64, Error> {
    let mut asker = Asker::open_beside(run.folder, all)?;
    asker.show_life(terminal);
    // Another export may have come since the beginning.
    run.find_room(place)?;
    let mut begun = 0;
    let mut write_all = || -> Result<u64, Error> {
        let mut size = 0;
        place.begin(&run.mark, &run.keys)?;
        for (table, key) in tables.iter().zip(&run.keys) {
            // One that came between two waits.
            signals.wait(async { tokio::time::sleep(MOMENT).await })?;
            begun += 1;
            size += write(&mut asker, table, (&mut *place, key))?;
        }
        place.complete(&run.mark)?;
        Ok(size)
    };
    let written = write_all();
    if written.is_err() {
        // The rows of an incomplete recording could pass for all of them.
        place.remove(&run.keys[..begun], &run.mark);
    }
    written
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
