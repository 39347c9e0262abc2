//! Goal: the helper distinguishes what Frida refused for good from what may succeed at another attempt. Method: `script/host.py`
//! drives an extension module that only refuses, in Frida's own classes.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const REFUSING: &str = "
__version__ = '0'
class TimedOutError(Exception): pass
class ProcessNotRespondingError(Exception): pass
class ProcessNotFoundError(Exception): pass
REFUSALS = [TimedOutError('late'), ProcessNotRespondingError('no sign of life'), ProcessNotFoundError('it timed out, it says')]
class SessionOptions: pass
class Device:
    def attach(self, pid, options, done):
        done(None, REFUSALS[pid])
class DeviceManager:
    def get_device_by_type(self, kind, timeout, done):
        done(Device(), None)
def get_device_manager():
    return DeviceManager()
";

#[test]
fn frida_says_by_its_class_that_it_took_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("frida");
    fs::create_dir(&package).unwrap();
    fs::write(package.join("_frida.py"), REFUSING).unwrap();
    let mut host = Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/script/host.py"))
        .arg(folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut requests = host.stdin.take().unwrap();
    for pid in 0..3 {
        writeln!(requests, "{}", json!({"op": "attach", "pid": pid})).unwrap();
    }
    drop(requests);
    let output = host.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = text
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected = [
        json!({"error": "late", "timed_out": true}),
        json!({"error": "no sign of life", "timed_out": true}),
        json!({"error": "it timed out, it says", "timed_out": false}),
    ];
    assert_eq!(answers, expected);
}
