//! Reads what readelf, nm, objdump and gdb report about a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use super::{hex, program, run, tool};

/// Address, size, name without version, and whether it is an indirect function.
pub type ToolSymbol = (u64, u64, String, bool);

/// Returns all defined function symbols of both tables, from readelf.
pub fn symbols(path: &Path) -> BTreeSet<ToolSymbol> {
    let output = tool("readelf", &["-sW"], path);
    let symbol = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [
            _,
            value,
            size,
            kind @ ("FUNC" | "IFUNC"),
            _,
            _,
            section,
            name,
            ..,
        ] = words[..]
        else {
            return None;
        };
        let size = match size.strip_prefix("0x") {
            Some(digits) => hex(digits),
            None => size.parse().expect("a size"),
        };
        let name = name.split('@').next().unwrap_or_default().to_owned();
        (section != "UND").then(|| (hex(value), size, name, kind == "IFUNC"))
    };
    output.lines().filter_map(symbol).collect()
}

/// Returns the stubs with objdump's names, without `@plt` and versions.
pub fn plt(path: &Path) -> BTreeMap<u64, String> {
    let sections = tool("readelf", &["-SW"], path);
    let names = [".plt", ".plt.sec", ".plt.got"];
    let there = names.iter().filter(|name| {
        let mut words = sections.split_whitespace();
        words.any(|word| word == **name)
    });
    let mut options = vec!["-d"];
    options.extend(there.flat_map(|name| ["-j", *name]));
    let output = tool("objdump", &options, path);
    let stub = |line: &str| {
        let (address, name) = line.strip_suffix(">:")?.split_once(" <")?;
        let name = name.strip_suffix("@plt")?;
        let name = name.split('@').next().unwrap_or_default().to_owned();
        Some((hex(address.trim_start_matches('0')), name))
    };
    output.lines().filter_map(stub).collect()
}

/// Returns the build id, from readelf.
pub fn build_id(path: &Path) -> Option<String> {
    let output = tool("readelf", &["-n"], path);
    let mut lines = output.lines();
    lines.find_map(|l| l.trim().strip_prefix("Build ID: ").map(str::to_owned))
}

/// Returns demangled names by address, as nm writes them.
pub fn demangled(path: &Path) -> BTreeMap<u64, Vec<String>> {
    let output = tool("nm", &["-C", "--defined-only"], path);
    let mut names = BTreeMap::<u64, Vec<String>>::new();
    for line in output.lines() {
        let mut words = line.splitn(3, ' ');
        if let (Some(address), Some("t" | "T" | "W" | "w" | "i"), Some(name)) =
            (words.next(), words.next(), words.next())
        {
            let address = u64::from_str_radix(address, 16).expect("an address");
            names.entry(address).or_default().push(name.to_owned());
        }
    }
    names
}

/// What gdb reports about one function.
#[derive(Debug)]
pub struct Described {
    pub file: String,
    pub line: u32,
    pub size: u64,
    pub result: Option<u64>,
    /// Names and sizes.
    pub params: Vec<(String, Option<u64>)>,
}

/// Asks gdb, without running the program.
pub fn described(path: &Path, addresses: &[u64]) -> BTreeMap<u64, Described> {
    let list: Vec<String> = addresses.iter().map(|a| format!("{a:x}")).collect();
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-x"])
        .arg(program("ask.py"))
        .arg(path);
    let output = run(gdb.env("ASK", list.join(" ")));
    let function = |line: &str| {
        let fields: Vec<&str> = line.strip_prefix("FUNCTION\t")?.split('\t').collect();
        let [address, file, line, size, result, params @ ..] = &fields[..] else {
            panic!("unexpected line {line}");
        };
        let param = |text: &&str| {
            let (name, size) = text.rsplit_once(':').expect("a size");
            (name.to_owned(), size.parse().ok())
        };
        let described = Described {
            file: file.to_string(),
            line: line.parse().expect("a line"),
            size: hex(size),
            result: result.parse().ok(),
            params: params.iter().map(param).collect(),
        };
        Some((hex(address), described))
    };
    let all: BTreeMap<_, _> = output.lines().filter_map(function).collect();
    assert_eq!(all.len(), addresses.len(), "gdb said:\n{output}");
    all
}
