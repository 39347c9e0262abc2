//! What is displayed after every move through a recording.

use std::sync::{MutexGuard, PoisonError};

use recorder::live::{Display, Displays};

use super::Past;
use crate::inspect;
use crate::protocol::Failure;
use crate::session::of_recorder;

impl Past {
    pub(crate) fn displays(&self) -> MutexGuard<'_, Displays> {
        self.displays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows what the program whose past this is shows at its stops.
    pub(crate) fn show_displays(&self, shown: &[Display]) {
        let read = |display: &Display| {
            let what = inspect::displayable(&display.expression).ok()?;
            Some((display.clone(), what))
        };
        self.displays()
            .replace(shown.iter().filter_map(read).collect());
    }

    /// Has an expression shown after every move. The past of a program has none of its own.
    ///
    /// # Errors
    /// It cannot be read, or there are too many.
    pub(crate) fn add_display(&self, text: &str) -> Result<Display, Failure> {
        if self.is_of_a_program {
            return Err(self.needs_the_program("display"));
        }
        let added = self.displays().add(inspect::displayable(text)?);
        added.map_err(|error| of_recorder(&error.into()))
    }
}
