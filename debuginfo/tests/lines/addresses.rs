//! The lines of addresses, with inlined calls, and the lines with code.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use debuginfo::backtrace;

use super::common::{hex, program, run, tool};
use super::{At, Built, all, own_functions, space};

/// Returns addr2line's result for each address: file name and line, innermost first.
fn addr2line(path: &Path, addresses: &[u64]) -> Vec<Vec<(String, u32)>> {
    let mut command = Command::new("addr2line");
    command.args(["-a", "-i", "-e"]).arg(path);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("addr2line");
    let mut input = String::new();
    for address in addresses {
        writeln!(input, "{address:x}").expect("a string");
    }
    let mut stdin = child.stdin.take().expect("piped");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("addr2line ends");
    writer.join().expect("no panic").expect("it reads all");
    let mut answers: Vec<Vec<(String, u32)>> = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if line.starts_with("0x") {
            answers.push(Vec::new());
            continue;
        }
        let (file, number) = line.rsplit_once(':').expect("file:line");
        let number = number.split(' ').next().unwrap_or_default();
        let place = match number.parse().unwrap_or(0) {
            0 => (String::from("??"), 0),
            number => (base(file), number),
        };
        answers.last_mut().expect("an address first").push(place);
    }
    answers
}

/// Returns gdb's line for each address. If several rows begin at one address, addr2line selects another one.
fn gdb_lines(built: &Built, addresses: &[u64]) -> Vec<(String, u32)> {
    let list: Vec<String> = addresses.iter().map(|a| format!("{a:x}")).collect();
    let file = built.bench.write("addresses", &list.join("\n"));
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-x"])
        .arg(program("where.py"))
        .arg(&built.path);
    let output = run(gdb.env("ADDRESSES", file).env("LC_ALL", "C"));
    let line = |text: &str| {
        let fields: Vec<&str> = text.split('\t').collect();
        let ["AT", _, name, line] = fields[..] else {
            return None;
        };
        Some((name.to_owned(), line.parse().expect("a line")))
    };
    output.lines().filter_map(line).collect()
}

fn base(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

#[test]
fn lines_of_all_addresses_are_those_of_gdb_and_addr2line_with_inlined_calls() {
    // addr2line does not read split files.
    for built in all().iter().filter(|b| !b.what.contains("split")) {
        let space = space(&built.path);
        let functions = own_functions(built);
        assert!(functions.len() > 5, "{}", built.what);
        let ranges = functions.iter().flat_map(|f| f.ranges.iter());
        let addresses: Vec<u64> = ranges.flat_map(|r| r.start.0..r.end.0).collect();
        let mut inlined = 0;
        let innermost = gdb_lines(built, &addresses);
        assert_eq!(innermost.len(), addresses.len());
        let around = addr2line(&built.path, &addresses);
        for ((address, innermost), mut theirs) in addresses.iter().zip(innermost).zip(around) {
            // gdb assigns code without a line to the preceding line.
            if theirs[0].1 != 0 {
                theirs[0] = innermost;
            }
            let trace = backtrace(&space, &At(*address), 100);
            let own = trace.frames.iter().take_while(|f| f.inlined).count() + 1;
            let ours: Vec<(String, u32)> = trace.frames[..own]
                .iter()
                .map(|f| {
                    f.source
                        .as_ref()
                        .map_or((String::from("??"), 0), |s| (base(&s.file), s.line))
                })
                .collect();
            inlined += own - 1;
            assert_eq!(ours, theirs, "{address:#x} of {}", built.what);
        }
        assert!(inlined > 0 || built.what.contains("-O0") || built.what.contains("level=0"));
    }
}

/// Returns the statements according to readelf: line and address.
pub(super) fn statements(path: &Path, source: &str) -> BTreeSet<(u32, u64)> {
    let output = tool("readelf", &["--debug-dump=decodedline"], path);
    let line = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let is_statement = words.last() == Some(&"x");
        let [name, line, address, ..] = words[..] else {
            return None;
        };
        let is_it = name == source && is_statement && address.starts_with("0x");
        is_it.then(|| Some((line.parse().ok()?, hex(address.trim_start_matches("0x")))))?
    };
    output.lines().filter_map(line).collect()
}

/// Returns the lines with statements according to readelf.
fn statement_lines(path: &Path, source: &str) -> BTreeSet<u32> {
    let all = statements(path, source);
    all.into_iter().map(|(line, _)| line).collect()
}

#[test]
fn lines_with_code_are_those_of_readelf() {
    for built in all().iter() {
        let ours = space(&built.path)
            .valid_lines(built.source)
            .expect("the file");
        let ours: BTreeSet<u32> = ours.into_iter().collect();
        assert_eq!(
            ours,
            statement_lines(&built.path, built.source),
            "{}",
            built.what
        );
    }
}
