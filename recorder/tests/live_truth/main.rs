//! Goal: what live control reports about real programs is true, and it changes nothing. Method: SQLite, Lua and a Rust
//! program, unoptimised and optimised, run with a breakpoint on every statement of their sources. At random stops, and
//! along random steps, gdb is asked the same questions. What recordings later report about these moments is compared
//! with gdb too. Each run takes a third of the programs, and a third of the places in them; `WHOLE=1` all.
//!
//! Addresses agree because both sides start the program with the same arguments, an empty environment and without
//! address space randomisation.

mod bench;
mod beside;
mod captured;
mod claims;
mod compiled;
mod course;
mod data;
mod instructions;
mod moment;
mod pauses;
mod places;
mod positions;
mod recorded;
mod statements;
mod steps;
mod stops;
mod threads;
mod windows;
