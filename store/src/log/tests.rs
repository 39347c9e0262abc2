//! Shows that a log gives back what was appended, up to the last whole frame, whatever the disk does.
//!
//! Every test writes a small log, harms it in one way at every place where that makes a difference,
//! and compares what is read with the frames that were appended.

mod faults;
mod harm;
mod support;
mod whole;
