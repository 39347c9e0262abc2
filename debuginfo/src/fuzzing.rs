//! Feeds arbitrary bytes to everything that reads a module or its debug files. No input may cause a panic, an endless
//! loop or disproportionate memory use.
//!
//! [`entry`] reads modules. [`location()`] reads places of variables. The caller supplies a function to apply to each
//! value found, because crates above decide how values look.
//!
//! The fuzz targets of `fuzz/` and tests on the stable toolchain share this code. For modules, the first byte selects
//! what the rest is: a module, two files of which the second is found through the first, or sections that receive valid
//! headers.

mod location;
mod variables;

use std::path::Path;
use std::sync::Arc;

pub use location::location;

use crate::{
    AddressSpace, Certainty, FrameContext, Machine, Mapped, Module, OpenOptions, Register, Result,
    Svma, Unknown, Value, backtrace, disassemble_function,
};

/// The number of ways to read the input. The way is the first byte modulo this number.
pub const WAYS: u8 = 6;
/// The rest is one file.
pub const MODULE: u8 = 0;
/// The rest is a module and its debug file, which is placed where the module's build id says.
pub const BUILD_ID: u8 = 1;
/// The rest is a module and a file placed next to it as [`SPLIT_NAME`].
pub const SPLIT: u8 = 2;
/// The rest is a module and a package placed next to it.
pub const PACKAGE: u8 = 3;
/// The rest is a module and a file placed next to it as [`SUPPLEMENT_NAME`].
pub const SUPPLEMENT: u8 = 4;
/// The rest is the contents of debug sections.
pub const SECTIONS: u8 = 5;

/// The name of a split debug file.
pub const SPLIT_NAME: &str = "fuzz.dwo";
/// The name of a supplementary debug file.
pub const SUPPLEMENT_NAME: &str = "fuzz.sup";

/// Functions of one input whose lines and frames are queried.
const MAX_LIVE_QUESTIONS: usize = 16;
/// Sections into which one input is cut.
const MAX_SECTIONS: usize = 64;
const MODULE_NAME: &str = "fuzz";
/// The address of the code in [`elf`].
pub const CODE_SVMA: u64 = 0x1000;
/// Bytes of code in [`elf`].
pub const CODE_BYTES: u64 = 0x1000;

/// The sections that [`SECTIONS`] can fill, by number.
const SECTION_NAMES: [&str; 16] = [
    ".debug_info",
    ".debug_abbrev",
    ".debug_str",
    ".debug_line",
    ".debug_line_str",
    ".debug_str_offsets",
    ".debug_addr",
    ".debug_types",
    ".debug_loc",
    ".debug_loclists",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_frame",
    ".eh_frame",
    ".gnu_debuglink",
    ".gnu_debugaltlink",
];

/// What to do with each value.
pub type Show<'a> = &'a dyn Fn(&FrameContext<'_>, &Value);

/// Reads `data` in the way selected by its first byte. Writes files to the folder `dir`.
///
/// # Errors
/// The folder cannot be written. Damage in `data` is not an error.
pub fn entry(data: &[u8], dir: &Path, show: Show<'_>) -> std::io::Result<()> {
    let Some((way, data)) = data.split_first() else {
        return Ok(());
    };
    let way = way % WAYS;
    if way == MODULE || way == SECTIONS {
        let bytes = match way {
            MODULE => data.to_vec(),
            _ => elf(&sections(data)),
        };
        ask(Module::from_bytes(MODULE_NAME, bytes), show);
        return Ok(());
    }
    let (module, other) = two_files(data);
    let path = dir.join(MODULE_NAME);
    std::fs::write(&path, module)?;
    let beside = match way {
        BUILD_ID => {
            let parsed = Module::from_bytes(&path, module.to_vec());
            let id = parsed.ok().and_then(|m| m.build_id().map(str::to_owned));
            let id = id.filter(|id| id.len() > 2);
            id.map(|id| format!(".build-id/{}/{}.debug", &id[..2], &id[2..]))
        }
        SPLIT => Some(SPLIT_NAME.to_owned()),
        PACKAGE => Some(format!("{MODULE_NAME}.dwp")),
        _ => Some(SUPPLEMENT_NAME.to_owned()),
    };
    let Some(beside) = beside.map(|name| dir.join(name)) else {
        return Ok(());
    };
    if let Some(folder) = beside.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&beside, other)?;
    let opened = OpenOptions::new().debug_dirs([dir.to_owned()]).open(&path);
    ask(opened, show);
    // Each round may have another build id.
    std::fs::remove_file(&beside)
}

/// Asks a module every question that files can answer.
fn ask(module: Result<Module>, show: Show<'_>) {
    let module = match module {
        Ok(module) => Arc::new(module),
        Err(error) => return assert!(error.to_string().contains(MODULE_NAME)),
    };
    let functions = module.functions();
    let symbols = module.symbols();
    let starts = functions.list.iter().map(|f| f.svma);
    let starts = starts.chain(symbols.iter().map(|s| s.svma));
    for svma in starts.chain([Svma(0), Svma(u64::MAX), module.entry()]) {
        let end = module.function_end(svma);
        let len = end.map_or(16, |end| end.0.saturating_sub(svma.0));
        let _ = (module.code(svma, len), module.frame_at(svma));
        let _ = module.next_function_start(svma);
    }
    for f in &functions.list {
        assert!(f.xmm.args <= 8, "{f:?}");
        assert!(
            f.ranges.first().is_none_or(|r| r.start == f.svma),
            "the entry comes first: {f:?}"
        );
    }
    let ordered = functions.list.windows(2).all(|f| f[0].svma < f[1].svma);
    assert!(ordered, "each address once, in order");
    variables::ask(&module, show);
    let _ = (module.plt_entries(), module.is_pie(), module.is_library());
    let warnings = module.warnings().iter().chain(&functions.warnings);
    assert!(warnings.into_iter().all(|w| !w.to_string().is_empty()));
    let starts = functions.list.iter().map(|f| f.svma.0);
    let starts: Vec<u64> = starts.take(MAX_LIVE_QUESTIONS).collect();
    ask_live(Arc::clone(&module), &starts);
}

/// Asks the questions that need a running program: lines, frames, instructions.
fn ask_live(module: Arc<Module>, starts: &[u64]) {
    let space = AddressSpace::new(vec![Mapped {
        module,
        number: 0,
        bias: 0,
        range: 0..u64::MAX,
        is_system: false,
    }]);
    let code = [0, 1, 7, 100, CODE_BYTES - 1].map(|at| CODE_SVMA + at);
    for address in starts.iter().copied().chain(code) {
        let machine = Filled(address);
        let trace = backtrace(&space, &machine, 50);
        assert!(!trace.frames.is_empty() && trace.frames.len() <= 50);
        let _ = (space.step_line(address), space.function_at(address));
        let _ = space.calls_beginning(address);
        let _ = disassemble_function(&space, &machine, address);
    }
    for file in space.source_files().iter().take(4) {
        let lines = space.valid_lines(file).unwrap_or_default();
        for line in lines.iter().take(8).chain(&[1, u32::MAX]) {
            let _ = space.resolve_line(file, *line, None);
        }
    }
    let _ = space.resolve_line("x.c", 1, Some(1));
    let _ = space.functions_matching("m*n");
}

/// A thread at an address. All its memory and registers hold that address.
struct Filled(u64);

impl Machine for Filled {
    fn memory(&self, _: u64, bytes: &mut [u8]) -> std::result::Result<Certainty, Unknown> {
        let word = self.0.to_le_bytes();
        let filled = bytes.iter_mut().zip(word.iter().cycle());
        filled.for_each(|(byte, value)| *byte = *value);
        Ok(Certainty::Known)
    }

    fn register(&self, _: Register) -> std::result::Result<(u64, Certainty), Unknown> {
        Ok((self.0, Certainty::Known))
    }

    fn vector(&self, register: Register) -> std::result::Result<([u8; 16], Certainty), Unknown> {
        Err(Unknown::because(format!(
            "vector register {} is not known",
            register.0
        )))
    }
}

/// Joins two files into one input for `way`.
#[must_use]
pub fn join(way: u8, module: &[u8], other: &[u8]) -> Vec<u8> {
    let length = (module.len() as u32).to_le_bytes();
    [&[way], &length[..], module, other].concat()
}

fn two_files(data: &[u8]) -> (&[u8], &[u8]) {
    match data.split_first_chunk::<4>() {
        Some((length, rest)) => {
            let length = u32::from_le_bytes(*length) as usize;
            rest.split_at(length.min(rest.len()))
        }
        None => (data, &[]),
    }
}

/// Cuts `data` into sections: a byte for the name, three bytes for the length, then the contents.
fn sections(mut data: &[u8]) -> Vec<(&'static str, &[u8])> {
    let mut found = Vec::new();
    while let [name, a, b, c, rest @ ..] = data
        && found.len() < MAX_SECTIONS
    {
        let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
        let (contents, rest) = rest.split_at(length.min(rest.len()));
        data = rest;
        found.push((
            SECTION_NAMES[usize::from(*name) % SECTION_NAMES.len()],
            contents,
        ));
    }
    found
}

/// Makes a library that consists of code (zeros) and the given sections, with valid headers.
#[must_use]
pub fn elf(sections: &[(&str, &[u8])]) -> Vec<u8> {
    const HEADER: u64 = 64;
    const NULL: [u64; 6] = [0; 6];
    let mut names = vec![0];
    let mut headers = vec![(0, 0, NULL)];
    let mut body = vec![0; CODE_BYTES as usize];
    let mut add = |name: &str, kind: u32, flags: u64, addr: u64, offset: u64, size: u64| {
        let at = names.len() as u32;
        names.extend_from_slice(name.as_bytes());
        names.push(0);
        headers.push((at, kind, [flags, addr, offset, size, 0, 1]));
    };
    add(".text", 1, 6, CODE_SVMA, HEADER, CODE_BYTES);
    for (name, contents) in sections {
        let offset = HEADER + body.len() as u64;
        add(name, 1, 0, 0, offset, contents.len() as u64);
        body.extend_from_slice(contents);
    }
    let offset = HEADER + body.len() as u64;
    add(".shstrtab", 3, 0, 0, offset, 0);
    let size = names.len() as u64;
    headers.last_mut().expect("just added").2[3] = size;
    body.extend_from_slice(&names);
    let table = HEADER + body.len() as u64;
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // Type, machine, version. Then entry, program headers, section headers, flags. Then sizes and counts.
    out.extend([3, 0, 62, 0, 1, 0, 0, 0]);
    for word in [0, 0, table] {
        out.extend(u64::to_le_bytes(word));
    }
    let count = headers.len() as u16;
    out.extend([0, 0, 0, 0, 64, 0, 56, 0, 0, 0, 64, 0]);
    out.extend(count.to_le_bytes());
    out.extend((count - 1).to_le_bytes());
    out.append(&mut body);
    for (name, kind, [flags, addr, offset, size, link, align]) in headers {
        out.extend(name.to_le_bytes());
        out.extend(kind.to_le_bytes());
        for word in [flags, addr, offset, size, link, align, 0] {
            out.extend(word.to_le_bytes());
        }
    }
    out
}

/// Makes one input for [`SECTIONS`] from the given sections. Omits sections with other names.
#[must_use]
pub fn join_sections(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = vec![SECTIONS];
    for (name, contents) in sections {
        let Some(number) = SECTION_NAMES.iter().position(|n| n == name) else {
            continue;
        };
        out.push(number as u8);
        out.extend(&(contents.len() as u32).to_le_bytes()[..3]);
        out.extend_from_slice(contents);
    }
    out
}
