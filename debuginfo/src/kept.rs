//! The unit headers of a module, read once and kept beside the files they borrow from.
//!
//! Whoever asks for one address, line or variable at a time cannot afford to list the units again. The unit table borrows
//! from the sections, and they from the files; this file ties the three together, which takes a lifetime that the
//! compiler cannot check. Nothing else happens here.
#![allow(unsafe_code)]

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::dies::{Session, UnitTable};
use crate::dwarf::DebugSections;
use crate::elf::Elf;
use crate::error::Warning;

/// A unit table with everything that it borrows from.
pub(crate) struct KeptUnits {
    // The fields are dropped in this order: what borrows before what it borrows from.
    table: UnitTable<'static>,
    sections: Box<DebugSections<'static>>,
    supplement: Option<Box<DebugSections<'static>>>,
    _files: (Arc<Elf>, Option<Arc<Elf>>),
    supplement_path: Option<PathBuf>,
}

impl KeptUnits {
    /// Reads the headers of all units of `elf`; `supplement` is dwz's file.
    pub(crate) fn read(elf: &Arc<Elf>, supplement: Option<&Arc<Elf>>) -> KeptUnits {
        let files = (elf.clone(), supplement.cloned());
        let supplement_path = supplement.map(|s| s.path().to_owned());
        // SAFETY: the files live on the heap, behind `Arc`s that the result holds, are never changed, and are dropped
        // after everything that borrows from them. The long lifetime is seen inside this file only: `table` hands out
        // one that ends with the borrow of the result.
        let elf: &'static Elf = unsafe { &*Arc::as_ptr(&files.0) };
        // SAFETY: as above.
        let other = files.1.as_ref().map(|s| unsafe { &*Arc::as_ptr(s) });
        let sections = Box::new(DebugSections::read(elf));
        let supplement = other.map(|s: &'static Elf| Box::new(DebugSections::read(s)));
        // SAFETY: the boxes are not moved out of, changed or dropped before the table, which is the first field.
        let kept: &'static DebugSections<'static> = unsafe { &*std::ptr::from_ref(&*sections) };
        // SAFETY: as above.
        let kept_supplement = supplement
            .as_ref()
            .map(|s| unsafe { &*std::ptr::from_ref::<DebugSections<'static>>(s) });
        let dwarf = kept.dwarf(kept_supplement);
        let table = UnitTable::read(dwarf, elf.path(), supplement_path.as_deref());
        KeptUnits {
            table,
            sections,
            supplement,
            _files: files,
            supplement_path,
        }
    }

    /// The table, for as long as this value is borrowed.
    pub(crate) fn table(&self) -> &UnitTable<'_> {
        // SAFETY: the two types differ in a lifetime only, and the new one is that of the borrow. Shortening it is what
        // the compiler would do by itself, had gimli not made the type invariant by naming an associated type in it;
        // nothing in the table can be changed through a shared reference.
        unsafe { std::mem::transmute::<&UnitTable<'static>, &UnitTable<'_>>(&self.table) }
    }

    /// A reader of its entries.
    pub(crate) fn session(&self) -> Session<'_, '_> {
        Session::new(self.table())
    }

    /// Tells whether there is anything to read.
    pub(crate) fn has_info(&self) -> bool {
        self.sections.has_info()
    }

    /// Bytes of `.debug_info`.
    pub(crate) fn info_bytes(&self) -> usize {
        self.sections.get(gimli::SectionId::DebugInfo).len()
    }

    /// What was found wrong while the sections and headers were read.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.sections.warnings.clone();
        let supplement = self.supplement.iter();
        warnings.extend(supplement.flat_map(|s| s.warnings.iter().cloned()));
        warnings.extend(self.table.warnings.iter().cloned());
        warnings
    }
}

impl fmt::Debug for KeptUnits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptUnits")
            .field("path", &self.table.path)
            .field("supplement", &self.supplement_path)
            .finish_non_exhaustive()
    }
}

/// The debug sections of a file with the file that they borrow from.
#[derive(Debug)]
pub(crate) struct KeptSections {
    // The fields are dropped in this order: what borrows before what it borrows from.
    sections: DebugSections<'static>,
    _file: Arc<Elf>,
}

impl KeptSections {
    /// Reads the sections of a `.dwo` or `.dwp` file.
    pub(crate) fn of_split(file: Elf) -> KeptSections {
        let file = Arc::new(file);
        // SAFETY: the file lives on the heap, behind an `Arc` that the result holds, is never changed, and is dropped after
        // the sections. The long lifetime is seen inside this file only: `sections` hands out one that ends with the
        // borrow of the result.
        let elf: &'static Elf = unsafe { &*Arc::as_ptr(&file) };
        KeptSections {
            sections: DebugSections::read_split(elf),
            _file: file,
        }
    }

    /// The sections, for as long as this value is borrowed.
    pub(crate) fn sections(&self) -> &DebugSections<'_> {
        &self.sections
    }
}
