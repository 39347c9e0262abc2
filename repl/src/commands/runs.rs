//! `hindsight runs`: the catalog of this machine's runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use server::quantity::count;
use store::catalog::{Catalog, folder};
use store::format::MANIFEST_FILE;
use store::labels;
use store::recording::Recording;

use crate::commands::deleting::{delete, is_wanted};
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::listing::{self, Row};
use crate::render::{Paint, Terminal, escaped};
use crate::report::report;

/// How long to wait for another process that uses the catalog.
const PATIENCE: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples:
  hindsight runs                                 all recordings made on this machine
  hindsight runs list --failed --label branch=main
  hindsight runs label app reviewed=yes          also: --remove KEY
  hindsight runs prune --older 7d --keep-failed  deletes old recordings, after asking
  hindsight runs scan ~/recordings               adds those that were copied here

The catalog is kept in $XDG_DATA_HOME/hindsight/runs, or ~/.local/share/hindsight/runs. The recordings are the truth: it
is made again from them when it is lost.";

/// List the runs of this machine, label them, and delete old ones
///
/// Every recording that this user makes is noted, wherever it lies. Without a command it lists them.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the runs, the newest first
    List(List),
    /// Show everything that is known of a run
    Show {
        /// Its name or its folder
        #[arg(value_name = "RUN")]
        run: PathBuf,
    },
    /// Change the labels of a run
    Label {
        /// Its name or its folder
        #[arg(value_name = "RUN")]
        run: PathBuf,
        /// New labels
        #[arg(value_name = "KEY=VALUE", value_parser = labels::parse)]
        labels: Vec<(String, String)>,
        /// Take this label away; may be repeated
        #[arg(long, value_name = "KEY")]
        remove: Vec<String>,
    },
    /// Take runs out of the catalog; the recordings stay
    Forget {
        /// Names or folders
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<PathBuf>,
    },
    /// Delete old recordings, and forget those that are gone
    Prune(Prune),
    /// Add the recordings in a folder and in the folders in it
    Scan {
        /// The folder
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

/// What is listed.
#[derive(Debug, Default, clap::Args)]
struct List {
    /// Only runs whose program failed: exit code other than 0, or a signal
    #[arg(long)]
    failed: bool,
    /// Only runs with this label; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = labels::parse)]
    labels: Vec<(String, String)>,
    /// Also those whose recording is gone
    #[arg(long)]
    all: bool,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

/// What is deleted.
#[derive(Debug, clap::Args)]
struct Prune {
    /// Those that began longer ago than this, as 7d or 12h
    #[arg(long, value_name = "TIME", value_parser = crate::duration::parse)]
    older: Duration,
    /// Only those whose program is known to have exited with 0
    #[arg(long)]
    keep_failed: bool,
    /// Only those with this label; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = labels::parse)]
    labels: Vec<(String, String)>,
    /// Say what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Delete without asking
    #[arg(short, long)]
    yes: bool,
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// When the catalog cannot be used, or there is no such run.
pub fn run(args: Args, terminal: &Terminal) -> Result<u8, Error> {
    let catalog = Open::new()?;
    match args.action.unwrap_or(Action::List(args.list)) {
        Action::List(list) => {
            let all = catalog.rows()?;
            if all.is_empty() && !list.json {
                let word = terminal.stderr_colour.paint(Paint::Warning, "note:");
                eprintln!(
                    "hindsight: {word} the catalog knows no runs; add those that you have: hindsight runs scan FOLDER"
                );
            }
            let rows: Vec<Row> = all.into_iter().filter(|row| list.has(row)).collect();
            listing::print(&rows, list.json, terminal)?;
        }
        Action::Show { run } => {
            let row = catalog.find(&run)?;
            println!("{:#}", answer(row.as_json()));
        }
        Action::Label {
            run,
            labels,
            remove,
        } => {
            let row = catalog.find(&run)?;
            let new = labels.into_iter().map(|(key, value)| (key, Some(value)));
            let old = remove.into_iter().map(|key| (key, None));
            let recording = Recording::open_exact(&row.path).map_err(in_store)?;
            let now = labels::change(&recording, &new.chain(old).collect()).map_err(in_store)?;
            catalog.catalog.add(&row.path).map_err(in_store)?;
            println!("{}", escaped(&listing::labels(&now)));
        }
        Action::Forget { runs } => {
            let found = runs.iter().map(|run| catalog.find(run).map(|row| row.path));
            let found = found.collect::<Result<Vec<_>, _>>()?;
            catalog.catalog.forget(&found).map_err(in_store)?;
            println!("forgot {}", count(found.len() as u64, "run"));
        }
        Action::Prune(prune) => return prune.run(&catalog, terminal),
        Action::Scan { folder } => {
            let mut added = 0;
            for path in below(&folder)? {
                match catalog.catalog.add(&path) {
                    Ok(_) => added += 1,
                    Err(source) => report(&Error::Store { source }, terminal),
                }
            }
            println!("{} in the catalog", count(added, "recording"));
        }
    }
    Ok(exit::DONE)
}

fn in_store(source: store::Error) -> Error {
    Error::Store { source }
}

/// The user's catalog.
struct Open {
    catalog: Catalog,
}

impl Open {
    fn new() -> Result<Open, Error> {
        let folder = folder().ok_or_else(|| {
            let help = "set HOME, or XDG_DATA_HOME to a folder";
            Error::usage(
                "there is no home to keep the catalog in",
                Some(help.to_owned()),
            )
        })?;
        let catalog = Catalog::open(&folder, PATIENCE).map_err(in_store)?;
        Ok(Open { catalog })
    }

    /// Returns all runs, the newest first.
    fn rows(&self) -> Result<Vec<Row>, Error> {
        let entries = self.catalog.entries().map_err(in_store)?;
        Ok(entries.into_iter().map(Row::of_entry).collect())
    }

    /// Finds a run by its folder or its name; of several with one name, the newest.
    fn find(&self, run: &Path) -> Result<Row, Error> {
        let by_path = store::recording::resolve(run).ok();
        let real = by_path.and_then(|path| path.canonicalize().ok());
        let rows = self.rows()?;
        let is_it = |row: &Row| match &real {
            Some(real) => row.path.canonicalize().is_ok_and(|path| path == *real),
            None => Path::new(&row.name) == run || row.path == run,
        };
        let found = rows.into_iter().find(is_it);
        found.ok_or_else(|| {
            let help =
                "hindsight runs lists them; hindsight runs scan FOLDER adds those of a folder";
            Error::usage(
                format!("the catalog has no run {}", run.display()),
                Some(help.to_owned()),
            )
        })
    }
}

impl List {
    fn has(&self, row: &Row) -> bool {
        (self.all || !row.is_gone())
            && (!self.failed || row.has_failed())
            && has_labels(row, &self.labels)
    }
}

fn has_labels(row: &Row, wanted: &[(String, String)]) -> bool {
    wanted
        .iter()
        .all(|(key, value)| row.labels.get(key) == Some(value))
}

impl Prune {
    fn run(&self, catalog: &Open, terminal: &Terminal) -> Result<u8, Error> {
        let rows = catalog.rows()?;
        let gone = rows.iter().filter(|row| row.is_gone());
        let mut forgotten: Vec<PathBuf> = gone.map(|row| row.path.clone()).collect();
        let old = rows.iter().filter(|row| self.takes(row));
        let old: Vec<PathBuf> = old.map(|row| row.path.clone()).collect();
        if self.dry_run {
            for path in &old {
                println!("{}", escaped(&path.to_string_lossy()));
            }
            println!("{} would be deleted", count(old.len() as u64, "recording"));
            return Ok(exit::DONE);
        }
        let mut code = exit::DONE;
        if !old.is_empty() {
            if !self.yes && !is_wanted(&old, terminal)? {
                return Ok(exit::FAILED);
            }
            for path in old {
                match delete(&path) {
                    Ok(gone) => {
                        gone.tell();
                        forgotten.push(path);
                    }
                    Err(error) => {
                        report(&error, terminal);
                        code = exit::FAILED;
                    }
                }
            }
        }
        catalog.catalog.forget(&forgotten).map_err(in_store)?;
        catalog.catalog.compact().map_err(in_store)?;
        println!("forgot {}", count(forgotten.len() as u64, "run"));
        Ok(code)
    }

    /// Returns whether a recording is old enough, and not one to be kept.
    fn takes(&self, row: &Row) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        let began = u128::try_from(row.start_unix_ns).unwrap_or(0);
        !row.is_gone()
            && !row.is_live()
            && now.saturating_sub(began) > self.older.as_nanos()
            && (!self.keep_failed || row.has_passed())
            && has_labels(row, &self.labels)
    }
}

/// Returns the recordings below a folder. It follows no symbolic links.
fn below(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    let mut is_first = true;
    while let Some(folder) = folders.pop() {
        if folder.join(MANIFEST_FILE).is_file() {
            found.push(folder);
            continue;
        }
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(source) if is_first => {
                return Err(Error::io(format!("read {}", folder.display()), source));
            }
            Err(_) => continue,
        };
        is_first = false;
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}
