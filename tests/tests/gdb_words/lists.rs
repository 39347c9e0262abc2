//! Lists of what a program has, types as text, and single instructions: the same in gdb. gdb reads no separate debug files here,
//! so it lists what the program itself describes, in less time.

use std::collections::BTreeSet;

use e2e::{Live, Program, compiled};

use super::{plain, program, prompt};

/// What gdb says to commands at the entry of a function.
fn of_gdb_at(live: &Live, function: &str, commands: &[&str]) -> String {
    let begin = format!("break {function}");
    let begin = ["set width 0", &begin, "run > /dev/null", "echo ~~~\\n"];
    let words = begin.iter().chain(commands);
    let said = Program::new("/usr/bin/gdb", live.scratch.path())
        .args(["-batch", "-nx", "-q"])
        .args(["-iex", "set debug-file-directory /nowhere"])
        .args(words.flat_map(|command| ["-ex", *command]))
        .args([program().to_str().expect("text")])
        .run()
        .text();
    let (_, said) = said.split_once("~~~\n").unwrap_or_else(|| panic!("{said}"));
    said.to_owned()
}

fn at_leaf(name: &str) -> Live {
    Live::started(name, &["--break", "leaf"], &program(), &[])
}

/// The cells of a table's rows.
fn rows(table: &str) -> Vec<Vec<&str>> {
    let rows = table.lines().skip(2).filter(|line| line.contains(" | "));
    rows.map(|line| line.split(" | ").map(str::trim).collect())
        .collect()
}

/// The last part of a path.
fn file(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Lines as `24:\tint leaf(int);`: the line, and the declaration.
fn declarations(text: &str) -> Vec<(&str, &str)> {
    text.lines()
        .filter_map(|line| line.strip_suffix(';')?.split_once(":\t"))
        .collect()
}

#[test]
fn types_are_those_that_gdb_lists() {
    let live = at_leaf("gdb-types");
    let theirs = of_gdb_at(&live, "leaf", &["info types _t$"]);
    let theirs = declarations(&theirs).into_iter();
    let theirs = theirs.filter_map(|(_, declared)| declared.rsplit(' ').next());
    let theirs: BTreeSet<&str> = theirs.collect();
    let ours = prompt(&live, &["info types _t$"]);
    let ours: BTreeSet<&str> = ours.lines().map(str::trim).collect();
    assert_eq!(ours, theirs);
    assert!(ours.contains("pthread_t"), "{ours:?}");
}

#[test]
fn functions_and_variables_are_those_that_gdb_lists() {
    let live = at_leaf("gdb-functions");
    let theirs = of_gdb_at(&live, "leaf", &["info functions -n ."]);
    let theirs = declarations(&theirs)
        .into_iter()
        .filter_map(|(line, declared)| {
            let (name, _) = declared.split_once('(')?;
            Some((name.rsplit([' ', '*']).next()?, line))
        });
    let theirs: BTreeSet<(&str, &str)> = theirs.collect();
    let ours = prompt(&live, &["info functions . --limit 0"]);
    let rows_of_all = rows(&ours);
    let ours = rows_of_all.iter().filter_map(|row| {
        let line = file(row[2]).strip_prefix("control.c:")?;
        Some((row[1], line))
    });
    assert_eq!(ours.collect::<BTreeSet<_>>(), theirs);
    assert!(theirs.contains(&("leaf", "24")), "{theirs:?}");

    let theirs = of_gdb_at(&live, "leaf", &["info variables -n ."]);
    let theirs = declarations(&theirs);
    let ours = prompt(&live, &["info variables ."]);
    let ours: BTreeSet<&str> = rows(&ours).iter().map(|row| row[0]).collect();
    assert_eq!(ours.len(), theirs.len(), "{ours:?} {theirs:?}");
    for (_, declared) in theirs {
        let mut words = declared.split(|c: char| !c.is_alphanumeric() && c != '_');
        assert!(words.any(|word| ours.contains(word)), "{declared} {ours:?}");
    }
}

/// gdb does not list the program itself.
#[test]
fn libraries_threads_and_arguments_are_those_that_gdb_lists() {
    let live = at_leaf("gdb-threads");
    let theirs = of_gdb_at(&live, "leaf", &["info sharedlibrary"]);
    let theirs = theirs.lines().filter(|line| line.starts_with("0x"));
    let theirs: BTreeSet<&str> = theirs.map(file).collect();
    let ours = prompt(&live, &["info sharedlibrary"]);
    let ours = rows(&ours);
    let mut ours: BTreeSet<&str> = ours.iter().map(|row| file(row[3])).collect();
    assert!(ours.remove("control_O0_fixed"), "{ours:?}");
    assert_eq!(ours, theirs);

    let theirs = of_gdb_at(&live, "leaf", &["info threads"]);
    let theirs: Vec<&str> = theirs
        .lines()
        .filter(|line| line.starts_with('*'))
        .collect();
    let ours = prompt(&live, &["info threads"]);
    let ours = rows(&ours);
    let ([theirs], [ours]) = (theirs.as_slice(), ours.as_slice()) else {
        panic!("one thread: {theirs:?} {ours:?}");
    };
    assert!(ours[0].starts_with('*'), "{ours:?}");
    assert!(theirs.contains(&format!("\"{}\"", ours[1])), "{theirs}");
    let (function, place) = ours[3].split_once(" at ").expect("a place");
    assert!(
        theirs.contains(&format!("\" {function} (x=20) at ")),
        "{theirs}"
    );
    assert!(theirs.ends_with(file(place)), "{theirs}");

    let theirs = of_gdb_at(&live, "leaf", &["info args"]);
    let ours = prompt(&live, &["info args"]);
    let ours = rows(&ours);
    let ours = ours.iter().map(|row| format!("{} = {}", row[0], row[2]));
    assert_eq!(ours.collect::<Vec<_>>(), theirs.lines().collect::<Vec<_>>());
}

/// DWARF's names of C's integers, which gdb shortens.
#[test]
fn types_are_shown_as_gdb_shows_them() {
    let live = at_leaf("gdb-ptype");
    let commands = [
        "ptype struct _IO_FILE",
        "ptype pthread_attr_t",
        "ptype size_t",
        "ptype tempo",
        "ptype progress",
        "ptype &tempo",
        "whatis &tempo",
        "ptype leaf",
        "whatis leaf",
        "ptype &leaf",
        "whatis leaf(1)",
        "ptype chosen",
        "ptype *chosen",
        "ptype *progress",
    ];
    let asked: Vec<&str> = commands
        .iter()
        .flat_map(|command| [*command, "echo ~~~\\n"])
        .collect();
    let theirs = of_gdb_at(&live, "leaf", &asked);
    let theirs: Vec<&str> = theirs.split("~~~\n").collect();
    assert_eq!(theirs.len(), commands.len() + 1, "{theirs:?}");
    for (command, theirs) in commands.into_iter().zip(theirs) {
        let ours = plain(&prompt(&live, &[command]))
            .replace("long unsigned int", "unsigned long")
            .replace("short unsigned int", "unsigned short")
            .replace("long int", "long");
        assert_eq!(ours, plain(theirs), "{command}");
    }
}

/// Typedefs are replaced up to the innermost type, and every qualifier stays.
#[test]
fn qualified_types_are_shown_as_gdb_shows_them() {
    let source = "typedef const struct s { int a; volatile int b; } cs;\n\
        typedef int num; typedef volatile num vnum; typedef const num *cp;\n\
        typedef int (*fn)(num); typedef int row[3];\n\
        cs v1; vnum v2; struct s *const v3 = 0; const struct s v4[2]; volatile struct s *v5[2];\n\
        const num v6 = 3; struct s *volatile *const v7 = 0; const volatile int v8 = 1; const row v9;\n\
        cp v10; const cp v11; cs *v12; int *restrict v13; _Atomic int v14; fn v15; fn v16[2];\n\
        int *const volatile v17 = 0; row v18[2]; int *const v20[2]; volatile num *const v21[2];\n\
        num v19(num x) { return x; }\nint main(void) { return v19(0); }\n";
    let live = Live::new("gdb-qualified");
    let program = compiled(&live.scratch, "qualified.c", source, &["-g", "-O0"]);
    live.start(&["--break", "main"], &program, &[]);
    let names = (1..=19).map(|number| format!("v{number}"));
    let commands: Vec<String> = names
        .flat_map(|name| [format!("ptype {name}"), format!("whatis {name}")])
        .collect();
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let theirs = Program::new("/usr/bin/gdb", live.scratch.path())
        .args(["-batch", "-nx", "-q"])
        .args(commands.iter().flat_map(|command| ["-ex", *command]))
        .args([program.to_str().expect("text")])
        .run()
        .text();
    let ours = prompt(&live, &commands);
    let answers = |text: &str| -> Vec<String> { text.split("type = ").map(plain).collect() };
    let (ours, theirs) = (answers(&ours), answers(&theirs));
    assert_eq!(theirs.len(), commands.len() + 1, "{theirs:?}");
    for (at, command) in commands.iter().enumerate() {
        assert_eq!(ours.get(at + 1), theirs.get(at + 1), "{command}");
    }
    // The same in gdb, without the space before the brackets.
    let said = prompt(&live, &["ptype v20", "whatis v21"]);
    let expected = [
        "type = int * const [2]\n",
        "type = volatile num * const [2]\n",
    ];
    assert!(expected.iter().all(|line| said.contains(line)), "{said}");
}

/// The addresses that `print $pc` shows.
fn positions(text: &str) -> Vec<&str> {
    let values = text.lines().filter(|line| line.starts_with('$'));
    values
        .filter_map(|line| line.split_once("0x").map(|(_, at)| at.trim()))
        .collect()
}

/// From `middle`, the first `ni` steps over a call.
#[test]
fn single_instructions_go_where_gdb_goes() {
    for (function, moves) in [
        ("leaf", ["si", "si", "ni", "ni", "si", "ni"]),
        ("middle", ["si", "si", "ni", "ni", "si", "ni"]),
        ("middle", ["si", "si", "si", "si", "ni", "si"]),
    ] {
        let live = Live::started("gdb-instructions", &["--break", function], &program(), &[]);
        let lines: Vec<&str> = moves.iter().flat_map(|line| [*line, "print $pc"]).collect();
        let theirs = of_gdb_at(&live, function, &lines);
        let ours = prompt(&live, &lines);
        assert_eq!(positions(&ours), positions(&theirs), "{function} {moves:?}");
        assert_eq!(positions(&ours).len(), moves.len(), "{ours}");
    }
}
