//! Access to the DIEs of a module's debug information: its units, and the split units of its skeletons.

use std::sync::{Arc, OnceLock};

use crate::dies::{DieReader, Home};
use crate::files::Files;
use crate::functions::{self, Neighbours, SplitFiles};
use crate::kept::KeptUnits;

/// Creates DIE readers. Reads the unit headers on first use.
#[derive(Debug)]
pub(crate) struct Entries {
    files: Arc<Files>,
    units: OnceLock<Option<KeptUnits>>,
    split: SplitFiles,
}

impl Entries {
    pub(crate) fn new(files: Arc<Files>) -> Entries {
        Entries {
            files,
            units: OnceLock::new(),
            split: SplitFiles::default(),
        }
    }

    /// Returns the unit headers, if there is debug information.
    pub(crate) fn units(&self) -> Option<&KeptUnits> {
        let read = || {
            let has_any = self.files.described().has_debug_info();
            let units = has_any.then(|| KeptUnits::read(self.files.clone()));
            units.filter(KeptUnits::has_info)
        };
        self.units.get_or_init(read).as_ref()
    }

    /// Calls `work` with a session and a unit's index in it, for unit `index` of `.debug_info`. For a skeleton, both
    /// belong to its split unit, if it is found. Attributes of split units are complete ([`DieReader::skeleton`] is
    /// set).
    pub(crate) fn in_unit<T>(
        &self,
        index: usize,
        work: impl FnOnce(&DieReader<'_, '_>, usize) -> T,
    ) -> Option<T> {
        self.in_whole_unit(&self.units()?.session(), index, work)
    }

    /// Like [`Entries::in_unit`], with a session on the module's units.
    pub(crate) fn in_whole_unit<'a, T>(
        &self,
        session: &DieReader<'_, 'a>,
        index: usize,
        work: impl FnOnce(&DieReader<'_, '_>, usize) -> T,
    ) -> Option<T> {
        let unit = session.unit(Home::Info, index).ok()?;
        functions::in_whole_unit(session, index, &unit, self.neighbours(), work)
    }

    /// Returns where to look for split units, or `None` if no other file may be opened.
    pub(crate) fn neighbours(&self) -> Option<Neighbours<'_>> {
        self.files.may_open_more.then(|| Neighbours {
            module: self.files.main.path(),
            files: &self.split,
        })
    }
}
