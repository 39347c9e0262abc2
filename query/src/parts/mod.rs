//! Scans the sealed Parquet files of a recording through DataFusion's own Parquet operator.

mod file;
mod last_footer;
mod morsel;
mod reader;
mod schema;
mod table;

pub use file::{OpenedPart, PartFile};
pub use last_footer::LastFooter;
pub use morsel::{has_only_entries, id_bounds};
pub use schema::{calls_schema, events_schema, states_schema};
pub use table::PartsTable;
