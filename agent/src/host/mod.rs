//! The ways to drive Frida, as implementations of one trait. A build has one: `wheel`, a helper process, or with the
//! feature `devkit` Frida's own library, linked in.

#[cfg(feature = "devkit")]
pub mod devkit;
mod patience;
pub mod wheel;

use std::{
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use self::patience::Patience;
use crate::{Error, Result, runtime, shared};

/// The script that runs inside the target.
pub const SCRIPT: &str = include_str!("../../script/agent.js");

/// A way to get [`SCRIPT`] into a process and to call its exports.
pub trait Host {
    /// Waits until Frida has started.
    ///
    /// # Errors
    /// [`Error::HelperGone`] when it ended instead.
    fn ready(&mut self) -> Result<()>;

    /// Returns Frida's version.
    fn version(&self) -> &str;

    /// Attaches to a process.
    ///
    /// # Errors
    /// [`Error::Frida`] with what Frida said: not permitted, no such process.
    fn attach(&mut self, pid: i32) -> Result<()>;

    /// Loads a script into the attached process.
    ///
    /// # Errors
    /// [`Error::Frida`] when it does not compile or run.
    fn load(&mut self, source: &str) -> Result<()>;

    /// Calls an export of the loaded script.
    ///
    /// # Errors
    /// [`Error::Frida`] with what the script threw.
    fn call(&mut self, name: &str, argument: Value) -> Result<Value>;

    /// Unloads the script and leaves the process for good: the host cannot be used again. Returns when Frida has
    /// cleaned up in the process, as far as it reports; [`wait_until_gone`] checks.
    ///
    /// # Errors
    /// [`Error::Frida`] when the process has gone.
    fn detach(&mut self) -> Result<()>;
}

/// Starts Frida without waiting for it, so that its start overlaps with other work. The library is part of this
/// process.
///
/// # Errors
/// [`Error::HelperGone`] when the thread cannot be made.
#[cfg(feature = "devkit")]
pub fn start(_progress: &dyn Fn(&str)) -> Result<Box<dyn Host>> {
    Ok(Box::new(devkit::DevkitHost::start()?))
}

/// Starts Frida without waiting for it, so that its start overlaps with other work. Installs the wheel first if need
/// be; `progress` receives each step of that.
///
/// # Errors
/// As for [`install`]; [`Error::HelperGone`] when python3 cannot be run.
#[cfg(not(feature = "devkit"))]
pub fn start(progress: &dyn Fn(&str)) -> Result<Box<dyn Host>> {
    Ok(Box::new(wheel::WheelHost::start(progress)?))
}

/// Installs the prerequisites of [`start`], and returns their folder; `None` if this build has Frida linked in.
///
/// # Errors
/// See [`crate::wheel::ensure`].
pub fn install(progress: &dyn Fn(&str)) -> Result<Option<PathBuf>> {
    match cfg!(feature = "devkit") {
        true => Ok(None),
        false => crate::wheel::ensure(progress).map(Some),
    }
}

/// Addresses of the started runtime's parts in the target, as `start` in agent.js answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    /// Address of the shared memory.
    #[serde(deserialize_with = "address")]
    pub shared: u64,
    /// The jump target of stubs for functions without vector arguments or results.
    #[serde(deserialize_with = "address")]
    pub enter: u64,
    /// The jump target of stubs for functions with them.
    #[serde(deserialize_with = "address")]
    pub enter_xmm: u64,
    /// The jump target of stubs of functions whose texts are kept.
    #[serde(deserialize_with = "address")]
    pub enter_texts: u64,
    /// System library functions that the runtime can replace.
    pub replacements: Vec<Replacement>,
}

/// A function of a system library and its replacement.
#[derive(Clone, Debug, Deserialize)]
pub struct Replacement {
    /// Name of the exported function.
    pub name: String,
    /// Address of the replacement; 0: only the function's own address is wanted.
    #[serde(deserialize_with = "address")]
    pub by: u64,
    /// Where to write the address by which the replacement calls the original.
    #[serde(deserialize_with = "address")]
    pub original: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Start<'a> {
    library: &'a str,
    exports_version: u64,
    shared_path: &'a str,
    shared_size: u64,
    shadows: Vec<(String, u64)>,
}

/// Attaches to `pid` and starts the runtime in `library` there over the shared memory at `shared_path`.
/// The caller then reserves its memory and detaches.
///
/// # Errors
/// When Frida or the runtime refuse; the process then continues unchanged.
pub fn start_runtime(
    host: &mut dyn Host,
    pid: i32,
    library: &str,
    shared_path: &str,
) -> Result<Started> {
    host.attach(pid)?;
    let shadows = shared::SHADOWS
        .iter()
        .map(|shadow| (format!("{:#x}", shadow.base), shadow.bytes))
        .collect();
    let start = Start {
        library,
        exports_version: runtime::EXPORTS_VERSION,
        shared_path,
        shared_size: shared::TOTAL_BYTES,
        shadows,
    };
    let argument = serde_json::to_value(&start).expect("strings and numbers are JSON");
    let answer = host
        .load(SCRIPT)
        .and_then(|()| host.call("start", argument));
    if answer.is_err() {
        // Report the first error.
        let _ = host.detach();
    }
    serde_json::from_value(answer?).map_err(|error| Error::Runtime {
        detail: error.to_string(),
        hint: None,
    })
}

/// Reserves memory for code (readable, executable) at `address` in the program. False: the place is taken.
///
/// # Errors
/// When the script or the process has gone.
pub fn reserve(host: &mut dyn Host, address: u64, bytes: u64) -> Result<bool> {
    let answer = host.call(
        "reserve",
        serde_json::json!({"address": format!("{address:#x}"), "size": bytes}),
    )?;
    Ok(answer.as_bool().unwrap_or(false))
}

/// How long no trace of Frida may be seen in the process before it counts as gone: between two steps of its clean-up
/// it traces no thread.
const QUIET: Duration = Duration::from_millis(15);
const GONE_PATIENCE: Duration = Duration::from_secs(3);

/// Returns whether a process has one thread and no other.
#[must_use]
pub fn has_one_thread(pid: i32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    tasks.is_ok_and(|tasks| tasks.flatten().count() == 1)
}

/// Waits until no trace of Frida is left in process `pid`: no tracer, no agent mapped, none of its threads. Its last
/// steps borrow a thread of the program, and a signal that arrived meanwhile would find the thread far from its own
/// code. `was_alone`: the process had one thread before Frida came, and that thread makes no other. Any second one is
/// Frida's then: the last to end has the program's own name, and may wait for a processor.
///
/// # Errors
/// [`Error::Runtime`] when it stays.
pub fn wait_until_gone(pid: i32, was_alone: bool) -> Result<()> {
    let mut patience = Patience::new(GONE_PATIENCE, &[pid]);
    loop {
        let began = Instant::now();
        if has_left(pid, was_alone) {
            return Ok(());
        }
        if !patience.goes_on(began.elapsed()) {
            return Err(Error::Runtime {
                detail: "Frida does not leave the program".into(),
                hint: None,
            });
        }
    }
}

/// Returns whether no trace of Frida is seen in a process for a while.
fn has_left(pid: i32, was_alone: bool) -> bool {
    let since = Instant::now();
    while since.elapsed() < QUIET {
        if is_present(pid) || was_alone && !has_one_thread(pid) {
            thread::sleep(Duration::from_millis(1));
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

fn is_present(pid: i32) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    if maps.lines().any(|line| line.contains("frida-agent")) {
        return true;
    }
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    tasks.flatten().any(|task| {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let traced = status.lines().any(|line| {
            line.strip_prefix("TracerPid:")
                .is_some_and(|tracer| tracer.trim() != "0")
        });
        let name = status.lines().next().unwrap_or_default();
        traced
            || ["gum-js-loop", "gmain", "gdbus", "pool-frida", "frida-"]
                .iter()
                .any(|ours| name.contains(ours))
    })
}

fn address<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<u64, D::Error> {
    let text = String::deserialize(from)?;
    let digits = text.strip_prefix("0x").unwrap_or(&text);
    u64::from_str_radix(digits, 16).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_thread_of_a_program_that_had_one_is_a_trace() {
        let pid = std::process::id().cast_signed();
        thread::scope(|scope| {
            let (done, is_done) = std::sync::mpsc::channel::<()>();
            // It has no name of its own, as the last thread of Frida.
            scope.spawn(move || is_done.recv());
            assert!(!has_one_thread(pid));
            assert!(has_left(pid, false));
            assert!(!has_left(pid, true));
            drop(done);
        });
        let mut alone = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .expect("sleep is there");
        let pid = alone.id().cast_signed();
        assert!(has_one_thread(pid) && has_left(pid, true));
        alone.kill().expect("it sleeps");
        alone.wait().expect("it ends");
    }
}
