//! The scalar and aggregate functions that compute columns, and those that users call.

pub mod aliases;
pub mod args;
pub mod arithmetic;
pub mod avg;
pub mod cast_as;
mod ellipsis;
pub mod headers;
mod id_set;
pub mod label;
mod lookup;
pub mod needed;
pub mod outs;
pub mod ret;
pub mod ret_text;
pub mod sum;
pub mod syscalls;
pub mod text;

pub use id_set::IdSet;
pub use lookup::Lookup;
