//! The unit headers of a module, read once and kept together with the files they borrow from.
//!
//! A query for a single address, line or variable cannot afford to list the units again. The unit table borrows from
//! the sections, and the sections borrow from the files. This file ties the three together and does nothing else.

use std::fmt;
use std::sync::Arc;

use self_cell::self_cell;

use crate::dies::{DieReader, UnitTable};
use crate::dwarf::DebugSections;
use crate::elf::Elf;
use crate::error::Warning;
use crate::files::Files;

/// The sections of a file with debug information, and of dwz's file.
struct Sections<'f> {
    main: DebugSections<'f>,
    supplement: Option<DebugSections<'f>>,
}

self_cell!(
    struct FilesWithSections {
        owner: Arc<Files>,
        #[covariant]
        dependent: Sections,
    }
);

self_cell!(
    struct SectionsWithTable {
        owner: FilesWithSections,
        #[covariant]
        dependent: UnitTable,
    }
);

/// A unit table with everything it borrows from.
pub(crate) struct KeptUnits(SectionsWithTable);

impl KeptUnits {
    /// Reads the headers of all units.
    pub(crate) fn read(files: Arc<Files>) -> KeptUnits {
        let sections = FilesWithSections::new(files, |files| Sections {
            main: DebugSections::read(files.described()),
            supplement: files.supplement.as_ref().map(DebugSections::read),
        });
        KeptUnits(SectionsWithTable::new(sections, |sections| {
            let Sections { main, supplement } = sections.borrow_dependent();
            let dwarf = main.dwarf(supplement.as_ref());
            let files = sections.borrow_owner();
            let supplement_path = files.supplement.as_ref().map(Elf::path);
            UnitTable::read(dwarf, files.described().path(), supplement_path)
        }))
    }

    pub(crate) fn table(&self) -> &UnitTable<'_> {
        self.0.borrow_dependent()
    }

    pub(crate) fn session(&self) -> DieReader<'_, '_> {
        DieReader::new(self.table())
    }

    fn sections(&self) -> &Sections<'_> {
        self.0.borrow_owner().borrow_dependent()
    }

    pub(crate) fn has_info(&self) -> bool {
        self.sections().main.has_info()
    }

    pub(crate) fn info_bytes(&self) -> usize {
        self.sections().main.get(gimli::SectionId::DebugInfo).len()
    }

    /// Returns the problems found while the sections and headers were read.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let Sections { main, supplement } = self.sections();
        let mut warnings = main.warnings.clone();
        warnings.extend(supplement.iter().flat_map(|s| s.warnings.iter().cloned()));
        warnings.extend(self.table().warnings.iter().cloned());
        warnings
    }
}

impl fmt::Debug for KeptUnits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptUnits")
            .field("path", &self.table().path)
            .finish_non_exhaustive()
    }
}

self_cell!(
    struct FileWithSections {
        owner: Elf,
        #[covariant]
        dependent: DebugSections,
    }

    impl {Debug}
);

/// The debug sections of a file, with the file they borrow from.
#[derive(Debug)]
pub(crate) struct KeptSections(FileWithSections);

impl KeptSections {
    /// Reads the sections of a `.dwo` or `.dwp` file.
    pub(crate) fn of_split(file: Elf) -> KeptSections {
        KeptSections(FileWithSections::new(file, |file| {
            DebugSections::read_split(file)
        }))
    }

    pub(crate) fn sections(&self) -> &DebugSections<'_> {
        self.0.borrow_dependent()
    }
}
