//! Text output: numbers, tables, colours, pages. Nothing here knows about recordings.

mod colour;
mod date;
mod number;
mod table;
mod terminal;
mod text;

pub use colour::{Colour, ColourChoice, Paint};
pub use date::date;
pub use number::{bytes, per};
pub use table::{Align, Column, Layout, Table};
pub use terminal::Terminal;
pub use text::{escaped, fitted_paths, fold, width};
