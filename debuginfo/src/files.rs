//! The files of a module, and what their headers state about it. Other parts of the crate share these files to read
//! symbols and debug information.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::elf::{Dynamic, Elf, TlsSegment, TlsSlot};
use crate::error::Warning;
use crate::model::{CodeRange, Segment, Svma};
use crate::module::Module;
use crate::separate::hex;

const PAGE: u64 = 4096;

/// The program or library, and the files that hold its debug information.
#[derive(Debug)]
pub(crate) struct Files {
    pub main: Elf,
    /// The separate debug file.
    pub debug: Option<Elf>,
    /// dwz's file.
    pub supplement: Option<Elf>,
    /// Files named by the debug information may be opened.
    pub may_open_more: bool,
    dynamic: Dynamic,
    build_id: Option<String>,
    warnings: Vec<Warning>,
    tls_slot: OnceLock<Option<TlsSlot>>,
}

impl Files {
    /// Makes a value of `main` alone, without debug files.
    pub(crate) fn alone(main: Elf) -> Files {
        Files {
            dynamic: main.dynamic(),
            build_id: main.build_id().map(hex),
            main,
            debug: None,
            supplement: None,
            may_open_more: false,
            warnings: Vec::new(),
            tls_slot: OnceLock::new(),
        }
    }

    /// Makes a value of `main` and the debug files found for it, with warnings about the search.
    pub(crate) fn with_companions(
        main: Elf,
        debug: Option<Elf>,
        supplement: Option<Elf>,
        warnings: Vec<Warning>,
    ) -> Files {
        Files {
            debug,
            supplement,
            may_open_more: true,
            warnings,
            ..Files::alone(main)
        }
    }

    /// Returns the file with the debug information.
    pub(crate) fn described(&self) -> &Elf {
        self.debug.as_ref().unwrap_or(&self.main)
    }

    /// Returns the thread-local storage segment of the module, if any.
    pub(crate) fn tls(&self) -> Option<TlsSegment> {
        self.main.tls()
    }

    /// Returns the word that tells where a thread has that storage.
    pub(crate) fn tls_slot(&self) -> Option<TlsSlot> {
        *self.tls_slot.get_or_init(|| self.main.tls_slot())
    }
}

impl Module {
    /// Returns the path by which the module was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.files.main.path()
    }

    /// Returns the file that contains the debug information, if it is not the module itself.
    #[must_use]
    pub fn debug_path(&self) -> Option<&Path> {
        self.files.debug.as_ref().map(Elf::path)
    }

    /// Returns dwz's supplementary debug file, if the debug information refers to one that was found.
    #[must_use]
    pub fn supplement_path(&self) -> Option<&Path> {
        self.files.supplement.as_ref().map(Elf::path)
    }

    /// Returns the files that hold the module's debug information, apart from the module itself: their paths, and their
    /// build ids in hexadecimal if they have one. `.dwo` files are not included.
    #[must_use]
    pub fn companions(&self) -> Vec<(PathBuf, Option<String>)> {
        let elves = self.files.debug.iter().chain(&self.files.supplement);
        let mut found: Vec<_> = elves
            .map(|elf| (elf.path().to_owned(), elf.build_id().map(hex)))
            .collect();
        let mut package = self.path().as_os_str().to_owned();
        package.push(".dwp");
        let package = PathBuf::from(package);
        if self.files.may_open_more && package.is_file() {
            found.push((package, None));
        }
        found
    }

    /// Returns the build id of dwz's file that the debug information refers to, in hexadecimal, if that file was not
    /// found.
    #[must_use]
    pub fn missing_supplement(&self) -> Option<String> {
        if self.files.supplement.is_some() {
            return None;
        }
        let named = self.files.described().contents(".gnu_debugaltlink")?.ok()?;
        let end = named.iter().position(|byte| *byte == 0)?;
        Some(hex(&named[end + 1..])).filter(|id| !id.is_empty())
    }

    /// Returns the problems found while looking for debug files.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.files.warnings
    }

    /// Returns the GNU build id in lower-case hexadecimal, if the module has one.
    #[must_use]
    pub fn build_id(&self) -> Option<&str> {
        self.files.build_id.as_deref()
    }

    /// Returns whether the module is an executable that may be loaded at any address.
    #[must_use]
    pub fn is_pie(&self) -> bool {
        // Linkers have marked such files since 2015. In older ones, the interpreter distinguishes them from libraries.
        let unmarked = self.interp().is_some() && self.soname().is_none();
        self.files.main.is_dyn() && (self.files.dynamic.says_pie || unmarked)
    }

    /// Returns whether the module is a shared library.
    #[must_use]
    pub fn is_library(&self) -> bool {
        self.files.main.is_dyn() && !self.is_pie()
    }

    /// Returns whether Go's linker made any part of the module: a program, a library, or an archive linked into C code.
    #[must_use]
    pub fn has_go(&self) -> bool {
        // When a C linker combines the parts, it merges Go's function table into another section. Of the other marks, a
        // plugin has only the data section, and a file without section headers only the note.
        const OF_GO: [&str; 2] = [".go.buildinfo", ".noptrdata"];
        let of_go = |name: &str| name.ends_with("gopclntab") || OF_GO.contains(&name);
        let mut sections = self.files.main.sections().iter();
        sections.any(|section| of_go(&section.name)) || self.files.main.has_note_of(b"Go")
    }

    /// Returns the address of the first instruction, to which the kernel or the dynamic linker jumps; 0 for none.
    #[must_use]
    pub fn entry(&self) -> Svma {
        self.files.main.entry()
    }

    /// Returns the path of the dynamic linker that the module requests.
    #[must_use]
    pub fn interp(&self) -> Option<&str> {
        self.files.main.interp()
    }

    /// Returns the name by which other modules request this library.
    #[must_use]
    pub fn soname(&self) -> Option<&str> {
        self.files.dynamic.soname.as_deref()
    }

    /// Returns the names of the libraries that the module requires.
    #[must_use]
    pub fn needed(&self) -> &[String] {
        &self.files.dynamic.needed
    }

    /// Returns the address of the symbol, code or data, that the module defines under exactly this linker name.
    #[must_use]
    pub fn address_of(&self, name: &str) -> Option<Svma> {
        let found = self.files.main.address_of(name);
        let debug = self.files.debug.as_ref();
        found
            .or_else(|| debug.and_then(|debug| debug.address_of(name)))
            .map(Svma)
    }

    /// Returns the mapped parts of the file, in the order of the program headers.
    #[must_use]
    pub fn load_segments(&self) -> &[Segment] {
        self.files.main.segments()
    }

    /// Returns whether the mapping from `start` to before `end` is what the dynamic linker made read-only after relocation
    /// (`PT_GNU_RELRO`): whole pages, and no data that can be written beside it.
    #[must_use]
    pub fn is_relro(&self, start: Svma, end: Svma) -> bool {
        let relro = self.files.main.relro();
        relro.is_some_and(|relro| relro.start & !(PAGE - 1) <= start.0 && end.0 <= relro.end)
    }

    /// Returns all addresses of the module, of which `mapped` are those that are mapped from its file, from its first page on:
    /// the zeros at the end of its last segment (`.bss`) are in memory that no file backs.
    #[must_use]
    pub fn extent(&self, mapped: Range<u64>) -> Range<u64> {
        let segments = self.load_segments().iter();
        let first = segments.clone().map(|segment| segment.vaddr.0).min();
        let last = segments.map(|segment| segment.vaddr.0.saturating_add(segment.memsz));
        let len = last.max().unwrap_or(0) - (first.unwrap_or(0) & !(PAGE - 1));
        mapped.start..mapped.end.max(mapped.start.saturating_add(len))
    }

    /// Returns the file's `len` bytes at `svma`, before relocation, or `None` if the file does not have all of them.
    #[must_use]
    pub fn code(&self, svma: Svma, len: u64) -> Option<&[u8]> {
        self.files.main.at(svma.0, len)
    }

    /// Returns the read-only constants of the program, strings included, as stored in the file.
    #[must_use]
    pub fn constants(&self) -> &[u8] {
        let section = self.files.main.section(".rodata");
        section.map_or(&[], |section| self.files.main.section_bytes(section))
    }

    /// Returns whether the module or its debug file holds DWARF.
    #[must_use]
    pub fn has_dwarf(&self) -> bool {
        self.files.described().has_debug_info()
    }

    /// Returns the names of the C++ types that the module may throw and catch, according to its symbols, and whether
    /// the list is complete.
    #[must_use]
    pub fn thrown_types(&self) -> (Vec<String>, bool) {
        let debug = self.files.debug.as_ref();
        let files = [Some(&self.files.main), debug].into_iter().flatten();
        let is_complete = files.clone().any(|elf| elf.is_unstripped());
        let names = files.flat_map(|elf| elf.type_infos()).collect();
        (names, is_complete)
    }

    /// Returns whether the module imports the symbol with linker name `name` from another module.
    pub fn imports(&self, name: &str) -> bool {
        self.files.main.imports(name)
    }

    /// Returns the ranges of the module's code: its executable sections or, if it has no sections, its executable
    /// segments.
    #[must_use]
    pub fn code_ranges(&self) -> Vec<CodeRange> {
        self.files.main.code_ranges_listed()
    }
}
