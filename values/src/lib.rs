//! Values as text, numbers and bytes: containers by their elements, rendering, floating-point formats, encoding and writes;
//! quantities and texts for people.
//!
//! [`Value`](debuginfo::Value) comes from `debuginfo`, which locates its parts. Nothing here reads debug information itself, and damaged
//! values never cause a panic.
#![forbid(unsafe_code)]

mod cast;
pub mod containers;
mod decimal;
mod draft;
mod encode;
mod enumerators;
mod errno;
mod fit;
mod fixed;
mod floats;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod member_pointer;
mod natural;
pub mod one_line;
mod printer;
pub mod quantity;
mod render;
mod scalar;
mod strings;
mod units;
mod wide;
mod write;

pub use cast::{can_cast, cast, float};
pub use draft::Draft;
pub use encode::{encode, encode_value};
pub use enumerators::write_enumerators;
pub use errno::errno_name;
pub use natural::Later;
pub use printer::{Children, Presented, Printer, printer_for};
pub use render::{
    Format, RenderOptions, Rendered, children, render, render_certain, render_known,
    render_shortened, render_with,
};
pub use strings::{Text, quoted, text_at};
pub use units::Units;
pub use wide::{Operation, Wide};
pub use write::{Write, WriteTarget, writes};
