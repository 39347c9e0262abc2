//! Goal: a recording shows at every position what the processor and the kernel made of the same program without us. Method: programs
//! whose runs are the same each time are recorded, and run in gdb, which steps each instruction. Registers are compared at 10,000
//! positions from `main` on and at 1,000 random later ones, all memory that the program can write at 100 of them. `SEED` repeats a
//! choice of positions.
//!
//! Both runs have the same environment, processor, random bytes and clock. What differs in any two runs is the process's id: where
//! each of them has its own, that is no difference, and neither are flags that come from a comparison with it.

mod compare;
mod plan;
mod seen;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use plan::{Numbers, Plan};

/// A program that has no clock and starts no threads.
struct Program {
    path: PathBuf,
    arguments: Vec<String>,
    /// A file that it makes.
    makes: Option<PathBuf>,
    cpu: String,
}

/// What was recorded.
struct Recorded {
    program: Program,
    folder: PathBuf,
    pid: u64,
}

fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn tool(name: &str, package: &str) -> PathBuf {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| path.exists());
    let path = found.unwrap_or_else(|| panic!("{name} is missing: apt-get install {package}"));
    path.canonicalize().unwrap()
}

fn fixture(folder: &Path) -> PathBuf {
    let path = folder.join("truth");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gdb/truth.c");
    run(Command::new("gcc")
        .args(["-O1", "-s", "-mno-red-zone", "-o"])
        .arg(&path)
        .arg(source)
        .arg("-lm"));
    path
}

/// The processors that this thread may use.
fn cpus() -> Vec<String> {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap()
        .trim();
    let parts = list.split(',').flat_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse::<u32>().unwrap()..=last.parse().unwrap()
    });
    parts.map(|cpu| cpu.to_string()).collect()
}

fn use_cpus(list: &str) {
    let thread = fs::read_link("/proc/thread-self").unwrap();
    run(Command::new("taskset")
        .args(["-cp", list])
        .arg(thread.file_name().unwrap()));
}

fn environment() -> Vec<(&'static str, String)> {
    // The kernel would write into the memory of a program that asks for restartable sequences; recordings have none.
    let tunables = String::from("glibc.pthread.rseq=0");
    vec![
        ("HOME", String::from("/nonexistent")),
        ("LANG", String::from("C")),
        ("GLIBC_TUNABLES", tunables),
    ]
}

fn programs(folder: &Path) -> Vec<Program> {
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        // The next to read it do not change when it was read.
        fs::read(&path).unwrap();
        path
    };
    let text: String = (0..60u64)
        .map(|number| format!("{number}: {} of {}\n", number * number, number % 7))
        .collect();
    let small = file("small", &text);
    let script = file(
        "script.lua",
        "local t = {}\nfor i = 1, 50 do t[#t + 1] = ('x'):rep(i % 9) .. i end\ntable.sort(t)\n\
         local s = 0.5\nfor _, v in ipairs(t) do s = s * 1.25 + #v // 2; s = s % 97 end\n\
         assert(string.format('%.3f', s):find('%d'))\nassert(not pcall(error, 'thrown'))\n",
    );
    let queries = file(
        "init.sql",
        "pragma journal_mode = off;\ncreate table t (a integer primary key, b text);\ninsert into t values (1, 'one'), (2, 'two'), (3, 'three');\n\
         update t set b = b || '!' where a > 1;\ndelete from t where a = 2;\n",
    );
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let one = |path: PathBuf, arguments: Vec<String>| Program {
        path,
        arguments,
        makes: None,
        cpu: String::new(),
    };
    let mut gzip = one(tool("gzip", "gzip"), vec!["-k".into(), text(&small)]);
    gzip.makes = Some(folder.join("small.gz"));
    let init = ["-batch", "-init"]
        .map(String::from)
        .into_iter()
        .chain([text(&queries)]);
    let sqlite = init
        .chain([":memory:", "delete/**/from/**/t"].map(String::from))
        .collect();
    let mut all = vec![
        one(fixture(folder), Vec::new()),
        gzip,
        one(tool("lua5.4", "lua5.4"), vec![text(&script)]),
        one(tool("sqlite3", "sqlite3"), sqlite),
    ];
    let cpus = cpus();
    for (program, cpu) in all.iter_mut().zip(cpus.iter().cycle()) {
        program.cpu.clone_from(cpu);
    }
    all
}

fn record(program: Program, folder: &Path) -> Recorded {
    let name = program.path.file_name().unwrap().to_str().unwrap();
    let folder = folder.join(format!("recording-{name}"));
    fs::create_dir(&folder).unwrap();
    let args: Vec<_> = [program.path.clone().into_os_string()]
        .into_iter()
        .chain(program.arguments.iter().map(Into::into))
        .collect();
    let (send, receive) = std::sync::mpsc::channel();
    let options = exact::Options {
        when: exact::When::Always,
        fixed_addresses: true,
        environment: Some(
            environment()
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        ),
        input: Some(PathBuf::from("/dev/null")),
        spare: None,
        output: Some(PathBuf::from("/dev/null")),
        default_signals: vec![libc::SIGPIPE],
        in_child: None,
        started: Some(Box::new(move |pid| send.send(pid).unwrap())),
    };
    use_cpus(&program.cpu);
    let summary = exact::record(&program.path, &args, &folder, options).unwrap();
    assert_eq!((summary.code, summary.lost), (Some(0), None), "{name}");
    if let Some(made) = &program.makes {
        fs::remove_file(made).unwrap();
    }
    let pid = receive.recv().unwrap() as u64;
    Recorded {
        program,
        folder,
        pid,
    }
}

/// The program in gdb, as planned.
fn run_in_gdb(recorded: &Recorded, plan: &Plan) -> Vec<u8> {
    let program = &recorded.program;
    let (file, out) = (
        recorded.folder.join("plan.json"),
        recorded.folder.join("seen"),
    );
    let arguments: Vec<String> = program.arguments.clone();
    let environment = environment();
    let pairs: Vec<[&str; 2]> = environment
        .iter()
        .map(|(name, value)| [*name, value.as_str()])
        .collect();
    let head = format!(
        "{{\"program\": {:?}, \"arguments\": {arguments:?}, \"environment\": {pairs:?}, \"out\": {out:?}, ",
        program.path
    );
    fs::write(&file, head + &plan.json()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gdb/gdb.py");
    let mut command = Command::new("taskset");
    command
        .args(["-c", &program.cpu])
        .arg(tool("gdb", "gdb"))
        .args(["-nx", "-q", "-batch", "-ex"]);
    command
        .arg(format!("python plan = {file:?}"))
        .arg("-x")
        .arg(script);
    let gdb = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    let error = String::from_utf8_lossy(&gdb.stderr);
    assert!(
        gdb.status.success()
            && !["Error", "Traceback"]
                .iter()
                .any(|word| error.contains(word)),
        "{}: {error}",
        program.path.display()
    );
    fs::read(out).unwrap()
}

/// Compares one program; returns what differs.
fn check(recorded: &Recorded, seed: u64) -> Vec<String> {
    let start = Instant::now();
    let plan = Plan::new(&recorded.folder, &mut Numbers(seed));
    let planned = start.elapsed();
    let moments = seen::moments(&run_in_gdb(recorded, &plan));
    let ran = start.elapsed();
    let path = recorded.program.path.display();
    assert_eq!(moments.positions.len(), plan.looked_at, "{path}");
    let (differences, bytes) = compare::all(recorded, &plan, &moments);
    println!(
        "{path}: {} positions up to {} after main, {bytes} bytes of memory; planned {planned:?}, in gdb {ran:?}, compared {:?}",
        plan.looked_at,
        moments.positions.last().unwrap().at,
        start.elapsed()
    );
    differences
        .into_iter()
        .map(|difference| format!("{path}: {difference}"))
        .collect()
}

#[test]
fn registers_and_memory_are_those_that_gdb_sees() {
    let now = || std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    // A failed test is run again with the seed of the run.
    let named = std::env::var("SEED").or_else(|_| std::env::var("PROPTEST_RNG_SEED"));
    let seed = named.map_or_else(|_| now(), |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let all_cpus = cpus().join(",");
    let programs = programs(folder.path());
    // One after the other: a recorder waits for all children of its process.
    let recorded: Vec<Recorded> = programs
        .into_iter()
        .map(|program| record(program, folder.path()))
        .collect();
    use_cpus(&all_cpus);
    let differences: Vec<String> = std::thread::scope(|scope| {
        let checks: Vec<_> = recorded
            .iter()
            .map(|recorded| scope.spawn(move || check(recorded, seed)))
            .collect();
        let results = checks.into_iter().map(|check| {
            let failed = |_| vec![String::from("one program could not be compared")];
            check.join().unwrap_or_else(failed)
        });
        results.flatten().collect()
    });
    assert!(
        differences.is_empty(),
        "SEED={seed}\n{}",
        differences.join("\n")
    );
}
