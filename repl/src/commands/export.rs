//! `hindsight export`: writes recordings as plain Parquet files that any engine reads, partitioned by table and run.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use query::Options;
use query::output::Format;
use query::runs::{find, names};
use server::quantity::count;

use crate::ask::Asker;
use crate::error::Error;
use crate::exit;
use crate::progress::Progress;
use crate::render::{Terminal, bytes, escaped};
use crate::report::without_numbers;

/// The file of a table of a run.
const FILE: &str = "part-0.parquet";

const EXAMPLES: &str = "\
Examples:
  hindsight export 'runs/*' --to lake
  hindsight export app --to lake --table calls --table functions
  duckdb -c \"select run, count(*) from read_parquet('lake/table=calls/**', hive_partitioning=true) group by run\"

Exits with 1 when a recording was left out.";

/// Write recordings as plain Parquet
///
/// Writes each table of each recording to DIR/table=TABLE/run=RUN/part-0.parquet, with the columns that SQL shows: names,
/// arguments, files and lines are texts. One recording is read after the other, so memory does not grow with their
/// number or length.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Recordings, with or without .hindsight, folders of them, or patterns
    #[arg(value_name = "RECORDING", required = true)]
    recordings: Vec<PathBuf>,
    /// The folder to write to; it may have other runs already
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Only this table; may be repeated
    #[arg(long = "table", value_name = "TABLE")]
    tables: Vec<String>,
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// When a word means no recording, a table or run is wrong, or a file cannot be written.
pub fn run(args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    let to = args.to.to_string_lossy();
    if to.contains("://") {
        return Err(Error::usage(
            format!("export writes to a folder of this machine, not to {to}"),
            Some("export to a folder, and copy that: its layout stays the same".to_owned()),
        ));
    }
    let tables = tables(&args.tables)?;
    let found = find(&args.recordings);
    if let Some((path, why)) = found.nothing.first() {
        let message = format!("{}: {why}", path.display());
        return Err(Error::usage(message, None));
    }
    let named = names(&found.folders);
    for (name, table) in named
        .iter()
        .flat_map(|name| tables.iter().map(move |t| (name, t)))
    {
        let file = partition(&args.to, table, name).join(FILE);
        if file.exists() {
            return Err(Error::usage(
                format!("{} exists already", file.display()),
                Some("choose another folder, or remove what it has of this run".to_owned()),
            ));
        }
    }
    let progress = Progress::new(terminal);
    let (mut files, mut size, mut runs) = (0, 0, 0);
    for (folder, name) in found.folders.iter().zip(&named) {
        match export(folder, name, &tables, (&args.to, terminal)) {
            Ok(len) => {
                files += tables.len() as u64;
                size += len;
                runs += 1;
            }
            Err(error @ (Error::Query { .. } | Error::Store { .. })) => {
                let why = without_numbers(&error.to_string());
                progress.warning(&format!("{name} is left out: {why}"));
            }
            Err(error) => return Err(error),
        }
    }
    println!(
        "{}: {}, {}, {}",
        escaped(&to),
        count(runs, "recording"),
        count(files, "file"),
        bytes(size)
    );
    Ok(match runs == named.len() as u64 {
        true => exit::DONE,
        false => exit::FAILED,
    })
}

/// Returns the tables to write.
fn tables(wanted: &[String]) -> Result<Vec<&'static str>, Error> {
    let all = || query::TABLES.iter().map(|table| table.name);
    if wanted.is_empty() {
        return Ok(all().collect());
    }
    let known = |name: &String| {
        let found = all().find(|table| table == name);
        found.ok_or_else(|| {
            let help = format!("the tables are {}", all().collect::<Vec<_>>().join(", "));
            Error::usage(format!("there is no table {name}"), Some(help))
        })
    };
    wanted.iter().map(known).collect()
}

/// Writes a recording, all of it or nothing, and returns the number of bytes.
fn export(
    folder: &Path,
    name: &str,
    tables: &[&str],
    (to, terminal): (&Path, &Terminal),
) -> Result<u64, Error> {
    let mut asker = Asker::open_with(folder, Options::default(), true)?;
    asker.show_life(terminal);
    let mut written: Vec<PathBuf> = Vec::new();
    let mut size = 0;
    for table in tables {
        let file = partition(to, table, name).join(FILE);
        written.push(file.clone());
        match write(&mut asker, table, &file) {
            Ok(len) => size += len,
            Err(error) => {
                for file in written {
                    // Rows of a recording that is not whole could pass for all of them.
                    let _ = fs::remove_file(&file);
                    let _ = file.parent().map(fs::remove_dir);
                }
                return Err(error);
            }
        }
    }
    Ok(size)
}

/// Writes a table and returns the number of bytes.
fn write(asker: &mut Asker, table: &str, path: &Path) -> Result<u64, Error> {
    let failed = |source| Error::io(format!("write {}", path.display()), source);
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
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(failed)?;
    let draft = folder.join(format!(".{FILE}.draft"));
    let file = File::create(&draft).map_err(failed)?;
    let mut out = BufWriter::with_capacity(1 << 20, &file);
    let written = asker
        .write(answer, Format::Parquet, &mut out, true)
        .and_then(|_| out.flush().map_err(failed));
    if let Err(error) = written {
        let _ = fs::remove_file(&draft);
        return Err(error);
    }
    drop(out);
    let len = file.metadata().map_err(failed)?.len();
    fs::rename(&draft, path).map_err(failed)?;
    Ok(len)
}

/// Returns the folder of a table of a run.
fn partition(to: &Path, table: &str, run: &str) -> PathBuf {
    to.join(format!("table={table}"))
        .join(format!("run={}", encoded(run)))
}

/// Writes a name as Hive does in the name of a folder: other characters than letters, digits, `-`, `_` and `.` as `%` and
/// two hexadecimal digits per byte.
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
    fn names_of_runs_are_names_of_folders() {
        assert_eq!(encoded("t-2"), "t-2");
        assert_eq!(encoded("a/t x=1"), "a%2Ft%20x%3D1");
        assert_eq!(encoded(".."), "..");
        assert_eq!(
            partition(Path::new("lake"), "calls", "a/t"),
            Path::new("lake/table=calls/run=a%2Ft")
        );
    }
}
