//! Loads the DWARF sections of a file for gimli, decompressed if needed.

use std::borrow::Cow;
use std::sync::Arc;
use std::thread;

use gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};

use crate::elf::Elf;
use crate::error::Warning;

/// The gimli reader for all DWARF sections.
pub(crate) type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The sections that this crate reads.
const NEEDED: [SectionId; 12] = [
    SectionId::DebugInfo,
    SectionId::DebugStr,
    SectionId::DebugAbbrev,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugAddr,
    SectionId::DebugTypes,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
];

/// The debug sections of one file, borrowed or decompressed.
#[derive(Debug, Default)]
pub(crate) struct DebugSections<'a> {
    found: Vec<(SectionId, Cow<'a, [u8]>)>,
    pub warnings: Vec<Warning>,
}

impl<'a> DebugSections<'a> {
    /// Reads the sections of a module or of its debug file.
    pub(crate) fn read(elf: &'a Elf) -> DebugSections<'a> {
        Self::read_named(elf, &NEEDED.map(|id| (id, id.name())))
    }

    /// Reads the sections of a `.dwo` file, or of a `.dwp` file with its index.
    pub(crate) fn read_split(elf: &'a Elf) -> DebugSections<'a> {
        let indexes = [SectionId::DebugCuIndex, SectionId::DebugTuIndex];
        let split = NEEDED.iter().chain(&indexes);
        let named: Vec<_> = split.filter_map(|id| Some((*id, id.dwo_name()?))).collect();
        Self::read_named(elf, &named)
    }

    fn read_named(elf: &'a Elf, wanted: &[(SectionId, &'static str)]) -> DebugSections<'a> {
        let mut sections = DebugSections::default();
        // Decompression costs far more than starting a thread. Plain sections cost nothing either way.
        let answers: Vec<_> = thread::scope(|scope| {
            let start = |(id, name): &(SectionId, &'static str)| {
                let (id, name) = (*id, *name);
                match elf.is_compressed(name) {
                    true => Started::Thread(id, name, scope.spawn(move || elf.contents(name))),
                    false => Started::Done(id, name, elf.contents(name)),
                }
            };
            let started: Vec<_> = wanted.iter().map(start).collect();
            started.into_iter().map(Started::wait).collect()
        });
        for (id, name, answer) in answers {
            match answer {
                Some(Ok(bytes)) => sections.found.push((id, bytes)),
                Some(Err(why)) => sections.warnings.push(Warning::BadSection {
                    path: elf.path().to_owned(),
                    section: name.to_owned(),
                    why,
                }),
                None => {}
            }
        }
        sections
    }

    pub(crate) fn get(&self, id: SectionId) -> Slice<'_> {
        let found = self.found.iter().find(|(i, _)| *i == id);
        let bytes: &[u8] = found.map_or(&[], |(_, bytes)| bytes);
        EndianSlice::new(bytes, LittleEndian)
    }

    pub(crate) fn has_info(&self) -> bool {
        !self.get(SectionId::DebugInfo).is_empty()
    }

    /// Returns the sections as a `Dwarf`. `supplement` is dwz's file.
    pub(crate) fn dwarf<'s>(
        &'s self,
        supplement: Option<&'s DebugSections<'a>>,
    ) -> Dwarf<Slice<'s>> {
        let mut dwarf = self.load();
        dwarf.sup = supplement.map(|s| Arc::new(s.load()));
        dwarf
    }

    fn load(&self) -> Dwarf<Slice<'_>> {
        let section = |id| Ok::<_, gimli::Error>(self.get(id));
        Dwarf::load(section).expect("the loader above never fails")
    }
}

type Contents<'a> = Option<Result<Cow<'a, [u8]>, String>>;

/// A section being read, on this thread or on its own.
enum Started<'scope, 'a> {
    Done(SectionId, &'static str, Contents<'a>),
    Thread(
        SectionId,
        &'static str,
        thread::ScopedJoinHandle<'scope, Contents<'a>>,
    ),
}

impl<'a> Started<'_, 'a> {
    fn wait(self) -> (SectionId, &'static str, Contents<'a>) {
        match self {
            Started::Done(id, name, answer) => (id, name, answer),
            Started::Thread(id, name, handle) => match handle.join() {
                Ok(answer) => (id, name, answer),
                Err(panic) => std::panic::resume_unwind(panic),
            },
        }
    }
}
