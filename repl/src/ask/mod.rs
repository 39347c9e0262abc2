//! SQL queries and their answers. Ctrl-C stops a query but not the prompt. Answers are drawn as tables or passed to one
//! of the writers of `query`.

mod asker;
mod cells;
mod interrupt;
mod opening;
mod show;

pub use asker::Asker;
pub use interrupt::{Interrupts, caught, is_ignored};
pub use opening::{of_timeline, open, open_past, open_session, open_timeline};
pub use show::{Records, View, note_extent, parquet_needs_a_file, show, show_document, warn};
