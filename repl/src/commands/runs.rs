//! `hindsight runs`: the catalog of this machine's runs.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use server::quantity::{count, grouped};
use store::Summary;
use store::catalog::{Catalog, folder};
use store::format::MANIFEST_FILE;
use store::labels::{self, Changes, Labels};
use store::recording::Recording;
use store::set::{Fact, PROCESSES_FILE, ProcessLog, SET_SUFFIX};

use crate::commands::deleting::{counted, delete_whole, is_wanted};
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::listing::{self, Listing, Row};
use crate::output::{self, Told};
use crate::render::{Paint, Terminal, escaped};
use crate::report::report;
use crate::sets::{self, Whole};

/// How long to wait for another process that uses the catalog.
const PATIENCE: Duration = Duration::from_secs(5);

/// Most runs of one name that an error names.
const MOST_NAMED: usize = 8;

const EXAMPLES: &str = "\
Examples:
  hindsight runs                                 all recordings made on this machine
  hindsight runs list --failed --label branch=main
  hindsight runs label app reviewed=yes          also: --remove KEY
  hindsight runs prune --older 7d --keep-failed  deletes old recordings, after asking
  hindsight runs scan ~/recordings               adds those that were copied here

The catalog is kept in $XDG_DATA_HOME/hindsight/runs, or ~/.local/share/hindsight/runs. The recordings are \
the truth: it is made again from them when it is lost.";

/// List, label and delete the runs of this machine
///
/// A catalog notes every recording that this user makes, wherever it lies. Without a command, this lists them. A set of
/// record --children is one run: `runs show SET` lists what is in it.
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
    /// Show everything that is known about a run; of a set, each recording
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
        /// Remove this label; may be repeated
        #[arg(long, value_name = "KEY")]
        remove: Vec<String>,
    },
    /// Remove runs from the catalog; the recordings stay
    Forget {
        /// Names or folders
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<PathBuf>,
    },
    /// Delete old recordings (a set as a whole), and forget those that are gone
    Prune(Prune),
    /// Add the recordings in a folder and its subfolders
    Scan {
        /// The folder
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

/// What is listed.
#[derive(Debug, Default, clap::Args)]
struct List {
    /// Only runs whose program failed: an exit code other than 0, or a signal
    #[arg(long)]
    failed: bool,
    /// Only runs with this label; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = labels::parse)]
    labels: Vec<(String, String)>,
    /// Also those whose recording is gone
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    listing: Listing,
}

/// What is deleted.
#[derive(Debug, clap::Args)]
struct Prune {
    /// Those that began longer ago than this, such as 7d or 12h
    #[arg(long, value_name = "TIME", value_parser = crate::duration::with_unit)]
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
            if all.is_empty() && !list.listing.json {
                let word = terminal.stderr_colour.paint(Paint::Warning, "note:");
                eprintln!(
                    "hindsight: {word} the catalog knows no runs; add those that you have: hindsight runs scan FOLDER"
                );
            }
            let rows: Vec<Row> = all.into_iter().filter(|row| list.has(row)).collect();
            listing::print(&rows, &list.listing, terminal)?;
        }
        Action::Show { run } => {
            let row = catalog.find(&run)?;
            output::line(format_args!("{:#}", answer(row.as_json())))?;
        }
        Action::Label {
            run,
            labels,
            remove,
        } => {
            let now = catalog.label(&run, labels, &remove)?;
            output::line(escaped(&listing::labels(&now)))?;
        }
        Action::Forget { runs } => {
            let found = runs.iter().map(|run| catalog.find(run));
            let found = found.collect::<Result<Vec<_>, _>>()?;
            for row in &found {
                catalog.forget(row)?;
            }
            output::line(format_args!("forgot {}", count(found.len() as u64, "run")))?;
        }
        Action::Prune(prune) => return prune.run(catalog, terminal),
        Action::Scan { folder } => {
            let entries = catalog.catalog.entries().map_err(in_store)?;
            let known: HashSet<PathBuf> = entries.into_iter().map(|entry| entry.path).collect();
            let (mut added, mut again) = (0, 0);
            let (recordings, sets) = below(&folder)?;
            for path in recordings {
                match catalog.catalog.add(&path) {
                    Ok(entry) if known.contains(&entry.path) => again += 1,
                    Ok(_) => added += 1,
                    Err(source) => report(&Error::Store { source }, terminal),
                }
            }
            let mut new_sets = 0;
            for set in sets {
                let is_new = catalog.catalog.add_set(&set).map_err(in_store)?;
                // Others are known by their recordings.
                new_sets += u64::from(is_new && sets::members(&set).is_empty());
            }
            let sets = (new_sets > 0).then(|| {
                let sets = count(new_sets, "set");
                format!(" and {sets} without recordings")
            });
            let known = (again > 0).then(|| format!("; {} known", are(again)));
            output::line(format_args!(
                "added {}{}{}",
                count(added, "recording"),
                sets.unwrap_or_default(),
                known.unwrap_or_default()
            ))?;
        }
    }
    Ok(exit::DONE)
}

fn are(number: u64) -> String {
    match number {
        1 => "1 was".to_owned(),
        number => format!("{} were", grouped(number)),
    }
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

    /// Returns all runs, the newest first. The recordings of a set are one of them.
    fn rows(&self) -> Result<Vec<Row>, Error> {
        let mut seen = HashSet::new();
        let mut rows = Vec::new();
        for entry in self.catalog.entries().map_err(in_store)? {
            let set = sets::around(&entry.path).map(Path::to_owned);
            let is_known = set.as_ref().is_some_and(|set| !seen.insert(set.clone()));
            if !is_known {
                let whole = set.and_then(|set| Whole::read(&set).ok());
                rows.push(whole.map_or_else(|| Row::of_entry(entry), Row::of_set));
            }
        }
        for set in self.catalog.sets().map_err(in_store)? {
            if seen.insert(set.clone()) {
                rows.extend(Whole::read(&set).ok().map(Row::of_set));
            }
        }
        rows.sort_by(|a, b| (b.start_unix_ns, &a.path).cmp(&(a.start_unix_ns, &b.path)));
        Ok(rows)
    }

    /// Finds a run by its folder or its name. A name means a recording, else a set, else a recording in a set; and what is there
    /// before what is gone.
    fn find(&self, run: &Path) -> Result<Row, Error> {
        let by_path = store::recording::resolve(run).ok();
        let by_path = by_path.or_else(|| sets::named(run));
        let real = by_path.and_then(|path| path.canonicalize().ok());
        let rows = self.rows()?;
        let is_it = |row: &Row| match &real {
            Some(real) => row.path.canonicalize().is_ok_and(|path| path == *real),
            None => {
                let set = row
                    .members()
                    .and_then(|_| row.name.strip_suffix(SET_SUFFIX));
                let names = [Some(row.name.as_str()), set];
                names
                    .into_iter()
                    .flatten()
                    .any(|name| Path::new(name) == run)
                    || row.path == run
            }
        };
        let members = rows.iter().filter_map(Row::members).flatten();
        let members = members.filter(|row| is_it(row)).map(|row| row.path.clone());
        // They were read: none is gone.
        let members: Vec<PathBuf> = members.collect();
        let mut own: Vec<Row> = rows.into_iter().filter(is_it).collect();
        if !members.is_empty() || own.iter().any(|row| !row.is_gone()) {
            own.retain(|row| !row.is_gone());
        }
        if own.iter().any(|row| row.members().is_none()) {
            own.retain(|row| row.members().is_none());
        }
        let found = match (own.len(), members.as_slice()) {
            (0, [member]) => Summary::read(member).ok().map(Row::of),
            (0, members @ [_, _, ..]) => return Err(several(run, members.iter())),
            (0, []) => None,
            (1, _) => own.pop(),
            _ => return Err(several(run, own.iter().map(|row| &row.path))),
        };
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

/// Says that a name means several runs, the newest first.
fn several<'p>(run: &Path, paths: impl Iterator<Item = &'p PathBuf>) -> Error {
    let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    let shown = paths[..paths.len().min(MOST_NAMED)].join(", ");
    let more = if paths.len() > MOST_NAMED {
        ", ..."
    } else {
        ""
    };
    let number = grouped(paths.len() as u64);
    Error::usage(
        format!("{number} runs are called {}: {shown}{more}", run.display()),
        Some("name one by its folder".to_owned()),
    )
}

impl Open {
    /// Takes a run out of the catalog: a set with all of its recordings.
    fn forget(&self, row: &Row) -> Result<(), Error> {
        let is_in = |path: &Path| row.members().is_some() && path.parent() == Some(&row.path);
        let entries = self.catalog.entries().map_err(in_store)?;
        let paths = entries.into_iter().map(|entry| entry.path);
        let paths = paths.filter(|path| is_in(path));
        let paths: Vec<PathBuf> = paths.chain([row.path.clone()]).collect();
        self.catalog.forget(&paths).map_err(in_store)
    }

    /// Changes the labels of a run, of a set those of all its recordings. Returns all labels that it has then.
    fn label(
        &self,
        run: &Path,
        new: Vec<(String, String)>,
        remove: &[String],
    ) -> Result<Labels, Error> {
        let row = self.find(run)?;
        let of_members = row.members().unwrap_or_default().iter();
        let mut known = row.labels.clone();
        known.extend(of_members.flat_map(|row| row.labels.clone()));
        if let Some(key) = remove.iter().find(|key| !known.contains_key(*key)) {
            let help = match known.is_empty() {
                true => "it has no labels".to_owned(),
                false => format!("it has {}", listing::labels(&known)),
            };
            return Err(Error::usage(
                format!("{} has no label {key}", run.display()),
                Some(help),
            ));
        }
        let new = new.into_iter().map(|(key, value)| (key, Some(value)));
        let old = remove.iter().map(|key| (key.clone(), None));
        let changes: Changes = new.chain(old).collect();
        let own = [row.path.clone()];
        let members = row
            .members()
            .map(|rows| rows.iter().map(|row| row.path.clone()));
        let paths: Vec<PathBuf> = members.map_or_else(|| own.into(), Iterator::collect);
        let mut now = Labels::new();
        for path in &paths {
            let recording = Recording::open_exact(path).map_err(in_store)?;
            now = labels::change(&recording, &changes).map_err(in_store)?;
            self.catalog.add(path).map_err(in_store)?;
        }
        if row.members().is_none() {
            return Ok(now);
        }
        let log = ProcessLog::open(&row.path).map_err(in_store)?;
        log.add(&Fact::Labels { labels: changes })
            .map_err(in_store)?;
        Ok(Whole::read(&row.path)?.labels)
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
    fn run(&self, catalog: Open, terminal: &Terminal) -> Result<u8, Error> {
        let rows = catalog.rows()?;
        // Others use the catalog while the question waits for its answer, and while files are deleted.
        drop(catalog);
        let old: Vec<&Row> = rows.iter().filter(|row| self.takes(row)).collect();
        let paths: Vec<PathBuf> = old.iter().map(|row| row.path.clone()).collect();
        if self.dry_run {
            for path in &paths {
                output::line(escaped(&path.to_string_lossy()))?;
            }
            output::line(format_args!("{} would be deleted", counted(&paths)))?;
            return Ok(exit::DONE);
        }
        let mut code = exit::DONE;
        let mut told = Told::default();
        if !old.is_empty() && !self.yes && !is_wanted(&paths, terminal)? {
            return Ok(exit::FAILED);
        }
        // Meanwhile others may have deleted some of them, and brought back what was gone.
        let is_left = |row: &Row| {
            let mut files = [MANIFEST_FILE, PROCESSES_FILE].iter();
            files.any(|file| row.path.join(file).is_file())
        };
        let mut forgotten: Vec<&Row> = rows.iter().filter(|row| !is_left(row)).collect();
        for row in old.into_iter().filter(|row| is_left(row)) {
            match delete_whole(&row.path) {
                Ok(gone) => {
                    gone.tell(&mut told);
                    forgotten.push(row);
                }
                Err(error) => {
                    report(&error, terminal);
                    code = exit::FAILED;
                }
            }
        }
        let catalog = Open::new()?;
        for row in &forgotten {
            catalog.forget(row)?;
        }
        catalog.catalog.compact().map_err(in_store)?;
        let number = count(forgotten.len() as u64, "run");
        told.line(format_args!("forgot {number}"));
        told.end(code)
    }

    /// Returns whether a recording is old enough, and not one to be kept. A set is judged as a whole.
    fn takes(&self, row: &Row) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        let began = u128::try_from(row.newest_unix_ns()).unwrap_or(0);
        !row.is_gone()
            && !row.is_live()
            && now.saturating_sub(began) > self.older.as_nanos()
            && (!self.keep_failed || row.has_passed())
            && has_labels(row, &self.labels)
    }
}

/// Returns the recordings below a folder, and the sets. It follows no symbolic links.
fn below(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Error> {
    let (mut found, mut sets) = (Vec::new(), Vec::new());
    let mut folders = vec![folder.to_owned()];
    let mut is_first = true;
    while let Some(folder) = folders.pop() {
        if folder.join(MANIFEST_FILE).is_file() {
            found.push(folder);
            continue;
        }
        if folder.join(PROCESSES_FILE).is_file() {
            sets.push(folder.clone());
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
    Ok((found, sets))
}
