//! Tests of sealing as a whole.
