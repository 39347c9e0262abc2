//! Finds the file of a program, and refuses one that the kernel cannot execute: the C library passes it to the shell,
//! which must not be recorded.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{self, Read},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::MetadataExt,
    },
    path::{Path, PathBuf},
};

use debuginfo::Diagnostic;

use crate::{Error, Result};

/// Bytes at the beginning of a file by which the kernel knows how to execute it.
const HEAD_BYTES: u64 = 256;
/// Interpreters of interpreters that the kernel follows.
const MOST_INTERPRETERS: usize = 5;
/// The machine of an ELF file for x86-64.
const X86_64: u16 = 62;
/// Size of an entry of the program headers.
const PROGRAM_HEADER_BYTES: u16 = 56;

/// Refuses a program that the kernel cannot execute, and a script whose interpreter it cannot.
///
/// # Errors
/// [`Error::Unsupported`].
pub(crate) fn refuse_what_only_a_shell_would_run(program: &OsStr) -> Result<()> {
    let mut next = find_in_path(program);
    for _ in 0..=MOST_INTERPRETERS {
        let Some(path) = next.take() else {
            break;
        };
        // A file that cannot be read may still be executable.
        let Ok(head) = head_of(&path) else {
            break;
        };
        next = interpreter(&path, &head).map_err(|reason| Error::Unsupported { path, reason })?;
    }
    Ok(())
}

/// Refuses an ELF file that is no 64-bit program for x86-64. Other files are none of its business.
///
/// # Errors
/// [`Error::Unsupported`].
pub(crate) fn refuse_other_elf(path: &Path) -> Result<()> {
    let head = head_of(path).unwrap_or_default();
    if !head.starts_with(b"\x7fELF") {
        return Ok(());
    }
    check_elf(&head).map_err(|reason| Error::Unsupported {
        path: path.to_owned(),
        reason,
    })
}

/// Returns whether a file can be read and is an ELF file.
pub(crate) fn is_elf(path: &Path) -> bool {
    head_of(path).is_ok_and(|head| head.starts_with(b"\x7fELF"))
}

fn head_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    fs::File::open(path)?
        .take(HEAD_BYTES)
        .read_to_end(&mut head)?;
    Ok(head)
}

/// Returns the interpreter of a script; `None` for an ELF file that the kernel can execute.
fn interpreter(path: &Path, head: &[u8]) -> Result<Option<PathBuf>, Diagnostic> {
    if head.starts_with(b"\x7fELF") {
        return check_elf(head).map(|()| None);
    }
    let Some(line) = head.strip_prefix(b"#!") else {
        return Err("it is neither an ELF program nor a script that begins with #!".into());
    };
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\0');
    let line = line.split(is_end).next().unwrap_or_default();
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t'));
    let word = words.find(|word| !word.is_empty()).unwrap_or_default();
    let named = PathBuf::from(OsString::from_vec(word.to_vec()));
    // A relative one is looked up in the program's folder, which is not always ours.
    if !named.is_absolute() {
        return Ok(None);
    }
    if named.exists() {
        return Ok(Some(named));
    }
    let shown = named.as_os_str().as_bytes().escape_ascii();
    let reason = Diagnostic::new(format!("there is no {shown}, its interpreter"));
    Err(match word.ends_with(b"\r") {
        true => reason.with_hint(format!(
            "its lines end as on Windows: sed -i 's/\\r$//' {}",
            path.display()
        )),
        false => reason.with_hint("correct its first line"),
    })
}

/// Says why the kernel would not execute an ELF file, or why we cannot record it.
fn check_elf(head: &[u8]) -> Result<(), Diagnostic> {
    const ONLY: &str = "only 64-bit little-endian programs can be used";
    let half = |at: usize| {
        let bytes = head.get(at..at + 2)?;
        Some(u16::from_le_bytes(bytes.try_into().ok()?))
    };
    match (head.get(4), head.get(5)) {
        (Some(1), _) => return Err(Diagnostic::new("it is a 32-bit ELF file").with_hint(ONLY)),
        (_, Some(2)) => return Err(Diagnostic::new("it is a big-endian ELF file").with_hint(ONLY)),
        _ => {}
    }
    let (kind, machine, size, count) = (half(16), half(18), half(54), half(56));
    if let Some(machine) = machine.filter(|machine| *machine != X86_64) {
        let what = format!("it is an ELF file for {}", machine_name(machine));
        return Err(Diagnostic::new(what).with_hint("only programs for x86-64 can be used"));
    }
    match kind {
        Some(1) => return Err("it is an object file, which is not linked yet".into()),
        Some(4) => return Err("it is a core dump".into()),
        _ => {}
    }
    let is_whole = matches!(kind, Some(2 | 3)) && size == Some(PROGRAM_HEADER_BYTES);
    match is_whole && count.is_some_and(|count| count > 0) {
        true => Ok(()),
        false => Err("its ELF header is damaged".into()),
    }
}

/// The name of a processor in an ELF header.
fn machine_name(machine: u16) -> String {
    let name = match machine {
        3 => "32-bit x86",
        8 => "MIPS",
        20 => "PowerPC",
        21 => "64-bit PowerPC",
        22 => "S/390",
        40 => "ARM",
        43 => "SPARC",
        183 => "AArch64",
        243 => "RISC-V",
        258 => "LoongArch",
        _ => return format!("machine {machine}"),
    };
    name.to_owned()
}

/// Finds a program as execvp(3) does; `None` if there is no such executable file.
pub(crate) fn find_in_path(program: &OsStr) -> Option<PathBuf> {
    let may_be_run = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o111 != 0)
    };
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program)).filter(may_be_run);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(may_be_run)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginning of a position-independent program.
    fn elf(class: u8, machine: u16) -> Vec<u8> {
        let mut head = vec![0; 64];
        head[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
        head[16] = 3;
        head[18..20].copy_from_slice(&machine.to_le_bytes());
        head[54] = PROGRAM_HEADER_BYTES as u8;
        head[56] = 1;
        head
    }

    #[test]
    fn an_elf_file_of_another_machine_is_named() {
        let why = |head: &[u8]| check_elf(head).map_err(|reason| reason.message);
        assert_eq!(why(&elf(2, X86_64)), Ok(()));
        let message = |text: &str| Err(text.to_owned());
        assert_eq!(why(&elf(2, 183)), message("it is an ELF file for AArch64"));
        assert_eq!(
            why(&elf(2, 999)),
            message("it is an ELF file for machine 999")
        );
        assert_eq!(why(&elf(1, 3)), message("it is a 32-bit ELF file"));
        let mut cut = elf(2, X86_64);
        cut.truncate(30);
        assert_eq!(why(&cut), message("its ELF header is damaged"));
    }

    #[test]
    fn an_interpreter_is_looked_up() {
        let of = |head: &[u8]| interpreter(Path::new("s.sh"), head);
        assert_eq!(of(b"#! /bin/sh -e\nls\n"), Ok(Some("/bin/sh".into())));
        assert_eq!(of(b"#!sh\n"), Ok(None));
        let refused = of(b"#!/bin/sh\r\nls\r\n").expect_err("there is no such file");
        assert_eq!(refused.message, "there is no /bin/sh\\r, its interpreter");
        assert_eq!(
            refused.hint.as_deref(),
            Some("its lines end as on Windows: sed -i 's/\\r$//' s.sh")
        );
        assert!(of(b"ls\n").is_err());
    }
}
