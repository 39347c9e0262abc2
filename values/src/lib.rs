//! What values look like, and what they are as numbers and bytes: containers by what they hold, rendering, floating-point formats,
//! encoding and writes.
//!
//! A [`Value`](debuginfo::Value) is of `debuginfo`, which says where its parts are. Nothing here reads debug information itself, and damaged
//! values never make it panic.
#![forbid(unsafe_code)]

mod cast;
pub mod containers;
mod decimal;
mod encode;
mod fixed;
mod floats;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod natural;
mod printer;
mod render;
mod scalar;
mod strings;
mod write;

pub use cast::{cast, float};
pub use encode::{encode, encode_value};
pub use printer::{Children, Presented, Printer, printer_for};
pub use render::{
    Format, RenderOptions, children, render, render_certain, render_known, render_with,
};
pub use strings::{Text, text_at};
pub use write::{Write, WriteTarget, writes};
