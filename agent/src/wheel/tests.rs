//! Goal: every failure while Frida is installed gives one error that says what to do, and leaves no partial
//! installation. Method: a shell script plays python3 and pip, in caches of their own.

use std::{sync::mpsc, thread};

use tempfile::TempDir;

use super::*;

const WHEEL: &str = "the wheel";

/// A cache folder and a python3 that runs a script.
struct Machine {
    folder: TempDir,
    digest: String,
}

/// The fake `download` of pip; `$folder` is the destination.
const FETCHES: &str = "printf 'the wheel' > $folder/frida.whl";

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("cache")).unwrap();
        Self {
            folder,
            digest: hex(&Sha256::digest(WHEEL)),
        }
    }

    /// With a pip that works except for its download.
    fn with_download(download: &str) -> Self {
        let machine = Self::new();
        machine.set_python(&format!(
            r#"
case "$*" in
  --version | "-m pip --version") ;;
  *" download "*) shift 8; folder=$1; echo once >> {place}/downloads; {download} ;;
  *" install "*) shift 9; mkdir -p $1/frida; cp $2 $1/frida/installed ;;
  *) echo "unexpected: $*" >&2; exit 2 ;;
esac"#,
            place = machine.folder.path().display()
        ));
        machine
    }

    fn python(&self) -> PathBuf {
        self.folder.path().join("python3")
    }

    /// Another process writes it: a file that was open for writing here may still be open in a test's child for a
    /// moment, and cannot be executed then.
    fn set_python(&self, script: &str) {
        let source = self.folder.path().join("source");
        fs::write(&source, format!("#!/bin/sh\n{script}\n")).unwrap();
        let status = Command::new("install")
            .args(["-m", "755"])
            .args([&source, &self.python()])
            .status();
        assert!(status.unwrap().success());
    }

    fn script(&self) -> String {
        fs::read_to_string(self.python()).unwrap()
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn ensure_with(&self, progress: &dyn Fn(&str)) -> Result<PathBuf> {
        let installer = Installer {
            cache: &self.cache(),
            python: &self.python(),
            digests: &[&self.digest],
        };
        installer.ensure(progress)
    }

    fn ensure(&self) -> Result<PathBuf> {
        self.ensure_with(&|_| {})
    }

    fn downloads(&self) -> usize {
        let noted = fs::read_to_string(self.folder.path().join("downloads"));
        noted.unwrap_or_default().lines().count()
    }

    /// Checks that it fails with this message and this next step, and leaves nothing but the lock.
    fn check_refused(&self, message: &str, next_step: &str) {
        let error = self.ensure().unwrap_err();
        let (said, help) = (error.to_string(), error.hint().unwrap());
        assert!(!said.contains('\n'), "{said}");
        assert!(said.contains(message), "{said}");
        assert!(help.contains(next_step), "{help}");
        assert_eq!(self.left(), [format!("frida-{VERSION}.lock")]);
    }

    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.cache()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn check_installed(&self, place: &Path) {
        let installed = fs::read_to_string(place.join("frida/installed")).unwrap();
        assert_eq!(installed, WHEEL);
        let name = format!("frida-{VERSION}");
        assert_eq!(self.left(), [name.clone(), format!("{name}.lock")]);
    }
}

#[test]
fn the_wheel_is_installed_once() {
    let machine = Machine::with_download(FETCHES);
    machine.check_installed(&machine.ensure().unwrap());
    // Then there is nothing to do and no progress to report, even without python3.
    fs::remove_file(machine.python()).unwrap();
    let place = machine.ensure_with(&|step| panic!("{step}")).unwrap();
    machine.check_installed(&place);
}

#[test]
fn no_python3_says_what_to_install() {
    let machine = Machine::new();
    machine.check_refused("find a usable python3", "apt-get install python3)");
}

#[test]
fn no_pip_says_what_to_install() {
    let machine = Machine::new();
    machine
        .set_python("[ \"$1\" = --version ] || { echo \"$0: No module named pip\" >&2; exit 1; }");
    machine.check_refused("No module named pip", "apt-get install python3-pip)");
}

#[test]
fn an_unreachable_index_says_where_to_look() {
    let machine = Machine::with_download("echo a >&2; echo 'no route; none' >&2; exit 1");
    machine.check_refused("with pip: a / no route; none", "reaches PyPI");
}

#[test]
fn a_download_that_brings_nothing_is_told() {
    let machine = Machine::with_download("true");
    machine.check_refused("it fetched no wheel", "reaches PyPI");
}

#[test]
fn a_wheel_with_another_digest_is_refused() {
    let machine = Machine::with_download("printf 'another wheel' > $folder/frida.whl");
    let found = hex(&Sha256::digest("another wheel"));
    let message = format!("frida.whl: its 13 bytes have the sha256 {found}");
    machine.check_refused(&message, "index-url serves PyPI's files");
}

#[test]
fn half_a_file_is_refused_and_the_next_attempt_succeeds() {
    let machine = Machine::with_download("printf 'the wh' > $folder/frida.whl");
    machine.check_refused(
        "its 6 bytes",
        "try again in case the download was cut short",
    );
    let again = Machine::with_download(FETCHES);
    machine.set_python(&again.script());
    machine.check_installed(&machine.ensure().unwrap());
}

#[test]
fn a_killed_pip_is_told_and_leaves_nothing() {
    let machine = Machine::with_download("printf 'the wh' > $folder/frida.whl; kill -9 $$");
    machine.check_refused("signal: 9", "try again");
}

#[test]
fn what_a_killed_installer_left_is_not_used() {
    let machine = Machine::with_download(FETCHES);
    let partial = machine.cache().join(format!("frida-{VERSION}.partial"));
    fs::create_dir_all(partial.join("download")).unwrap();
    fs::write(partial.join("download/a.whl"), "the wh").unwrap();
    fs::create_dir_all(partial.join("packages/frida")).unwrap();
    // The same for an installation with a deleted part.
    let place = machine.cache().join(format!("frida-{VERSION}"));
    fs::create_dir_all(place.join("else")).unwrap();
    machine.check_installed(&machine.ensure().unwrap());
    assert!(!place.join("else").exists());
}

#[test]
fn an_unwritable_cache_says_how_to_choose_another() {
    let machine = Machine::with_download(FETCHES);
    // Root may write to any folder, but even root cannot create a file below a file.
    fs::remove_dir(machine.cache()).unwrap();
    fs::write(machine.cache(), "").unwrap();
    let error = machine.ensure().unwrap_err();
    assert!(
        matches!(&error, Error::File { source, .. } if source.kind() == io::ErrorKind::NotADirectory)
    );
    let hint = error.hint().unwrap();
    assert!(hint.starts_with("make your cache folder writable, or set XDG_CACHE_HOME"));
    let error = create_private(&machine.cache().join("hindsight")).unwrap_err();
    assert!(error.to_string().starts_with("create "), "{error}");
    assert_eq!(machine.downloads(), 0);
}

#[test]
fn a_second_process_waits_for_the_first() {
    // The download of the first one ends once the second one waits. The lock is per open file, so threads serve as
    // well as processes.
    let machine = Machine::new();
    let gate = machine.folder.path().join("gate");
    let download = format!(
        "until [ -e {} ]; do sleep 0.01; done; {FETCHES}",
        gate.display()
    );
    machine.set_python(&Machine::with_download(&download).script());
    let (waiting, seen) = mpsc::channel();
    thread::scope(|scope| {
        let first = {
            let (began, has_begun) = mpsc::channel();
            let first = scope.spawn({
                let machine = &machine;
                move || machine.ensure_with(&|step| began.send(step.to_owned()).unwrap_or_default())
            });
            assert!(has_begun.recv().unwrap().starts_with("fetching"));
            first
        };
        let second = scope.spawn(|| {
            let waiting = waiting;
            machine.ensure_with(&|step| waiting.send(step.to_owned()).unwrap())
        });
        assert!(
            seen.recv()
                .unwrap()
                .starts_with("waiting for another hindsight")
        );
        fs::write(&gate, "").unwrap();
        machine.check_installed(&first.join().unwrap().unwrap());
        machine.check_installed(&second.join().unwrap().unwrap());
    });
    // The second one only waited.
    assert!(seen.recv().is_err());
}

#[test]
fn only_the_last_lines_of_an_error_are_shown() {
    assert_eq!(last_lines(b"a\nb\n\n c\nd\n"), "b / c / d");
    assert_eq!(last_lines(b""), "");
}

#[test]
fn ctrl_c_while_it_is_fetched_is_no_fault_of_the_network() {
    for download in [
        "echo 'ERROR: Operation cancelled by user' >&2; exit 1",
        "printf 'Traceback\nKeyboardInterrupt\n' >&2; exit 1",
        "kill -INT $$",
    ] {
        let machine = Machine::with_download(download);
        let error = machine.ensure().unwrap_err();
        assert!(matches!(error, Error::InstallInterrupted { .. }), "{error}");
        assert!(!error.hint().unwrap().contains("PyPI"));
    }
}
