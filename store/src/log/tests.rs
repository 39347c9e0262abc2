//! Shows that a log returns what was appended, up to the last whole frame, under any failure of the disk.
//!
//! Every test writes a small log, damages it in one way at every place where that makes a difference,
//! and compares the frames that are read with those that were appended.

mod faults;
mod harm;
mod support;
mod whole;
