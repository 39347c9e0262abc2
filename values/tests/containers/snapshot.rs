//! A fixture stopped at `stop_here`, as a core file that gdb saved: the `Machine` and the `AddressSpace` of these tests.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use debuginfo::{AddressSpace, Certainty, Machine, Mapped, Module, Register, Unknown};
use e2e::fixture_artifact;
use object::Endianness;
use object::elf::{FileHeader64, NT_FILE, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};

/// One program at one moment.
pub struct Snapshot {
    core: Vec<u8>,
    /// Address, offset in `core`, bytes.
    segments: Vec<(u64, usize, usize)>,
    pub space: AddressSpace,
    /// What gdb printed.
    pub said: String,
    /// The program's output, if requested.
    pub printed: String,
}

fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("run {command:?}: {e}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Snapshot {
    /// Stops one; gdb lists the members of `*everything` if `members`.
    pub fn take(fixture: &str, artifact: &str, members: bool) -> Snapshot {
        let dir = tempfile::Builder::new()
            .prefix("debuginfo-containers-")
            .tempdir();
        let dir = dir.expect("a temporary directory");
        let program = fixture_artifact(fixture, artifact);
        let core = dir.path().join("core");
        let output = dir.path().join("output");
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../debuginfo/tests/programs/containers.py");
        let mut gdb = Command::new("gdb");
        gdb.args(["-nx", "-batch", "-x"]).arg(script).arg(&program);
        gdb.env("CORE", &core).env("OUTPUT", &output);
        if members {
            gdb.env("MEMBERS", "1");
        }
        let said = run(&mut gdb);
        let core = std::fs::read(&core).unwrap_or_else(|e| panic!("{e}; gdb said {said}"));
        let space = space(&program, &core);
        Snapshot {
            segments: segments(&core),
            core,
            space,
            said,
            printed: std::fs::read_to_string(&output).unwrap_or_default(),
        }
    }
}

fn segments(core: &[u8]) -> Vec<(u64, usize, usize)> {
    let header = FileHeader64::<Endianness>::parse(core).expect("a core file");
    let endian = header.endian().expect("little endian");
    let headers = header.program_headers(endian, core).expect("its segments");
    let loads = headers.iter().filter(|h| h.p_type(endian) == PT_LOAD);
    let segment = |h: &object::elf::ProgramHeader64<Endianness>| {
        let (offset, len) = h.file_range(endian);
        (h.p_vaddr(endian), offset as usize, len as usize)
    };
    loads.map(segment).collect()
}

/// The mappings of files that the core's note lists: first and last address, name.
fn mapped_files(core: &[u8]) -> Vec<(u64, u64, String)> {
    let header = FileHeader64::<Endianness>::parse(core).expect("a core file");
    let endian = header.endian().expect("little endian");
    let mut found = Vec::new();
    for segment in header.program_headers(endian, core).expect("its segments") {
        let Some(mut notes) = segment.notes(endian, core).expect("readable notes") else {
            continue;
        };
        while let Some(note) = notes.next().expect("a whole note") {
            if note.n_type(endian) == NT_FILE {
                found.extend(file_note(note.desc()));
            }
        }
    }
    found
}

fn file_note(bytes: &[u8]) -> Vec<(u64, u64, String)> {
    let word = |i: usize| {
        let bytes = bytes[i * 8..i * 8 + 8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes)
    };
    let count = word(0) as usize;
    let names = &bytes[(2 + 3 * count) * 8..];
    let names = names.split(|b| *b == 0).take(count);
    let entry = |(i, name): (usize, &[u8])| {
        let name = String::from_utf8_lossy(name).into_owned();
        (word(2 + 3 * i), word(3 + 3 * i), name)
    };
    names.enumerate().map(entry).collect()
}

fn space(program: &Path, core: &[u8]) -> AddressSpace {
    let program = program.canonicalize().expect("the program exists");
    let files = mapped_files(core);
    let own = files.iter().filter(|f| Path::new(&f.2) == program);
    let start = own.clone().map(|f| f.0).min().expect("it is mapped");
    let end = own.map(|f| f.1).max().expect("it is mapped");
    let module = Module::open(&program).expect("a readable program");
    let bias = if module.is_pie() { start } else { 0 };
    AddressSpace::new(vec![Mapped {
        module: Arc::new(module),
        number: 0,
        bias,
        range: start..end,
        is_system: false,
    }])
}

impl Machine for Snapshot {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        let mut done = 0;
        while done < bytes.len() {
            let at = address.wrapping_add(done as u64);
            let inside = |s: &&(u64, usize, usize)| at.wrapping_sub(s.0) < s.2 as u64;
            let Some(segment) = self.segments.iter().find(inside) else {
                return Err(Unknown::because(format!("no memory at {at:#x}")));
            };
            let skip = (at - segment.0) as usize;
            let len = (segment.2 - skip).min(bytes.len() - done);
            let from = segment.1 + skip;
            bytes[done..done + len].copy_from_slice(&self.core[from..from + len]);
            done += len;
        }
        Ok(Certainty::Known)
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        Err(Unknown::because(format!("{register:?} is not looked at")))
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        Err(Unknown::because(format!("{register:?} is not looked at")))
    }
}
