//! Planted bugs: the function that contains the bug comes first. Each run plants a sixth of them; `WHOLE=1` all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use e2e::{Program, Scratch, fixture_source, has_turn_among, lua_source, sqlite_source};
use serde_json::Value;

use crate::{build, compare, ends_with, record};

/// A bug of the list.
struct Bug {
    program: String,
    file: String,
    function: String,
    old: String,
    new: String,
}

/// Reads the list.
fn bugs() -> Vec<Bug> {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compare/bugs.txt");
    let text = fs::read_to_string(list).expect("the list of bugs");
    let paragraphs = text
        .split("\n\n")
        .filter(|paragraph| paragraph.starts_with("program: "));
    let bug = |paragraph: &str| {
        let lines = |sign: &str| {
            let lines = paragraph.lines().filter_map(|line| line.strip_prefix(sign));
            lines.collect::<Vec<_>>().join("\n")
        };
        Bug {
            program: lines("program: "),
            file: lines("file: "),
            function: lines("function: "),
            old: lines("-"),
            new: lines("+"),
        }
    };
    paragraphs.map(bug).collect()
}

/// A program's sources, the commands that build it in a copy of them, and its arguments.
fn recipe(program: &str) -> (Vec<PathBuf>, &'static str, &'static [&'static str]) {
    let of = |fixture: &str, file: &str| fixture_source(fixture).join(file);
    match program {
        "lua" => (
            vec![lua_source(), of("lua", "driver.c")],
            // The seed of random numbers is the time.
            "sed -i 's/(lua_Unsigned)time(NULL)/7/' lmathlib.c; gcc -no-pie -O0 -g -DLUA_USE_POSIX '-Dluai_makeseed(L)=0x5eed' -I. -o program driver.c \
             $(ls l*.c | grep -v -x -e lua.c -e luac.c) -lm",
            &[],
        ),
        "sqlite" => (
            vec![sqlite_source(), of("sqlite", "driver.c")],
            "gcc -O0 -g -DSQLITE_OMIT_LOAD_EXTENSION -I. -o program driver.c sqlite3.c -lpthread -lm",
            &["120"],
        ),
        "invoices" => (
            vec![of("hunts", "invoices.c")],
            "gcc -O0 -g -o program invoices.c",
            &[],
        ),
        "packets" => (
            vec![of("hunts", "packets.c")],
            "gcc -O0 -g -o program packets.c",
            &[],
        ),
        "sensors" => (
            vec![of("hunts", "sensors.c")],
            "gcc -O0 -g -o program sensors.c",
            &[],
        ),
        "shapes" => (
            vec![of("statements", "shapes.cc")],
            "g++ -std=c++20 -O0 -g -o program shapes.cc",
            &[],
        ),
        "orders" => (
            vec![of("statements", "orders.rs")],
            "rustc --edition 2024 -C opt-level=0 -g -o program orders.rs",
            &[],
        ),
        other => panic!("there is no program {other}"),
    }
}

/// Copies a program's C files, or its one file, into a folder, with a change.
fn copy(sources: &[PathBuf], to: &Path, bug: Option<&Bug>) {
    fs::create_dir_all(to).expect("the test's folder is writable");
    for source in sources {
        let files = match source.is_dir() {
            true => fs::read_dir(source)
                .expect("a folder")
                .map(|entry| entry.expect("an entry").path())
                .collect(),
            false => vec![source.clone()],
        };
        for file in files {
            let name = file
                .file_name()
                .expect("a file")
                .to_str()
                .expect("a name")
                .to_owned();
            if !["c", "h", "rs", "cc"]
                .iter()
                .any(|end| name.ends_with(&format!(".{end}")))
            {
                continue;
            }
            let target = to.join(&name);
            match bug.filter(|bug| bug.file == name) {
                Some(bug) => {
                    let text = fs::read_to_string(&file).expect("a source");
                    assert_eq!(text.matches(&bug.old).count(), 1, "{name}: {}", bug.old);
                    fs::write(target, text.replace(&bug.old, &bug.new))
                        .expect("the test's folder is writable");
                }
                None => drop(fs::copy(file, target).expect("the test's folder is writable")),
            }
        }
    }
}

/// Returns the rank of the right function among the suspects, from 1.
fn rank(found: &Value, function: &str) -> Option<usize> {
    let suspects = found["suspects"].as_array().expect("a list");
    let is_it = |suspect: &Value| {
        let name = suspect["function"].as_str().unwrap_or_default();
        // The last part of a path, without parameters: `<Order as Priced>::price`, `sum<Order>`.
        let name = name.split('(').next().unwrap_or_default();
        let name = name
            .strip_suffix('>')
            .and_then(|name| name.rsplit_once('<'))
            .map_or(name, |(name, _)| name);
        let name = name.trim_end_matches("::");
        name == function || name.ends_with(&format!("::{function}"))
    };
    suspects.iter().position(is_it).map(|at| at + 1)
}

#[test]
fn planted_bugs_are_found() {
    let scratch = Scratch::new("bugs");
    let mut built = BTreeMap::new();
    let mut ranks = Vec::new();
    let bugs = bugs();
    let turns = bugs
        .iter()
        .enumerate()
        .filter(|(number, _)| has_turn_among(6, *number));
    for (number, bug) in turns {
        let (sources, command, args) = recipe(&bug.program);
        let good = built.entry(bug.program.clone()).or_insert_with(|| {
            let folder = scratch.join(&bug.program);
            copy(&sources, &folder, None);
            build(&folder, command);
            record(
                &scratch,
                &bug.program,
                &[],
                &Program::new(folder.join("program"), scratch.path()).args(args),
            );
            bug.program.clone()
        });
        let name = format!("bug{number}");
        let folder = scratch.join(&name);
        copy(&sources, &folder, Some(bug));
        build(&folder, command);
        record(
            &scratch,
            &name,
            &[],
            &Program::new(folder.join("program"), scratch.path()).args(args),
        );
        let rank = |options: &[&str]| {
            let ended = compare(&scratch, &[&[&**good, &*name, "--json"], options].concat());
            ends_with(&ended, 1);
            rank(&ended.result(), &bug.function)
        };
        let (with_code, without) = (rank(&[]), rank(&["--no-code"]));
        println!(
            "{:8} {:18} {with_code:?} {without:?}",
            bug.program, bug.function
        );
        ranks.push((bug.function.clone(), with_code, without));
        let _ = fs::remove_dir_all(&folder);
        let _ = fs::remove_dir_all(scratch.join(&format!("{name}.hindsight")));
    }
    let first = |which: fn(&(String, Option<usize>, Option<usize>)) -> Option<usize>,
                 most: usize| {
        ranks
            .iter()
            .filter(|bug| which(bug).is_some_and(|rank| rank <= most))
            .count()
    };
    let all = ranks.len();
    let table = format!(
        "of {all}: first {}, in three {}; by behaviour alone: first {}, in three {}\n{ranks:?}",
        first(|bug| bug.1, 1),
        first(|bug| bug.1, 3),
        first(|bug| bug.2, 1),
        first(|bug| bug.2, 3)
    );
    println!("{table}");
    assert!(all >= bugs.len() / 6);
    assert!(first(|bug| bug.1, 1) * 10 >= all * 9, "{table}");
    assert_eq!(first(|bug| bug.1, 3), all, "{table}");
}
