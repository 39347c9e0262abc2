//! The entries of a module's debug information: its units, and the split halves of those that have one.

use std::sync::{Arc, OnceLock};

use crate::dies::{DieReader, Home};
use crate::files::Files;
use crate::functions::{self, Neighbours, SplitFiles};
use crate::kept::KeptUnits;

/// Hands out readers of entries; the headers of the units are read when first asked for.
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

    /// The unit headers, if there is debug information.
    pub(crate) fn units(&self) -> Option<&KeptUnits> {
        let read = || {
            let has_any = self.files.described().has_debug_info();
            let units = has_any.then(|| KeptUnits::read(self.files.clone()));
            units.filter(KeptUnits::has_info)
        };
        self.units.get_or_init(read).as_ref()
    }

    /// Hands a session on unit `index` of `.debug_info` to `work`, with the unit's index there: for a skeleton that is
    /// its split half, if it is found. Attributes of split units are complete ([`DieReader::skeleton`] is set).
    pub(crate) fn in_unit<T>(
        &self,
        index: usize,
        work: impl FnOnce(&DieReader<'_, '_>, usize) -> T,
    ) -> Option<T> {
        self.in_whole_unit(&self.units()?.session(), index, work)
    }

    /// As [`Entries::in_unit`], with a session on the module's units.
    pub(crate) fn in_whole_unit<'a, T>(
        &self,
        session: &DieReader<'_, 'a>,
        index: usize,
        work: impl FnOnce(&DieReader<'_, '_>, usize) -> T,
    ) -> Option<T> {
        let unit = session.unit(Home::Info, index).ok()?;
        functions::in_whole_unit(session, index, &unit, self.neighbours(), work)
    }

    /// Where the split halves of units are looked for; `None` if no other file may be opened.
    pub(crate) fn neighbours(&self) -> Option<Neighbours<'_>> {
        self.files.may_open_more.then(|| Neighbours {
            module: self.files.main.path(),
            files: &self.split,
        })
    }
}
