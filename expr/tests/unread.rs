//! Goal: a number whose bytes do not tell its value is unknown. Method: gdb stops programs and writes core files. The programs'
//! sources state the correct values.

#[path = "../../debuginfo/tests/common/mod.rs"]
mod common;
#[path = "../../debuginfo/tests/core_file/mod.rs"]
mod core_file;
#[path = "stopped/mod.rs"]
mod stopped;

use common::Bench;
use stopped::{all_say, said, stopped};

const SWAPPED: &str = "struct __attribute__((scalar_storage_order(\"big-endian\"))) swapped {
  unsigned short p; int q; float f; unsigned b : 4;
} s = {0x1234, 5, 1.5f, 9};
struct plain { unsigned short p; int q; } n = {0x1234, 5};
void place(void) {}
int main(void) { place(); return 0; }
";

const WIDTHS: &str = "_BitInt(7) x = -5;
unsigned _BitInt(33) y = 8000000000;
void place(void) {}
int main(void) { place(); return 0; }
";

const BIG_ENDIAN: &str = "<unknown: its bytes are in big-endian order, which is not supported>";

#[test]
fn big_endian_members_are_unknown() {
    let bench = Bench::new();
    let source = bench.write("swapped.c", SWAPPED);
    let path = bench.compile("gcc", &source, "swapped", &["-g"]);
    let core = &stopped(&bench, &path, "place", 0)[0];
    let expected = [
        ("s.p", BIG_ENDIAN),
        ("s.q", BIG_ENDIAN),
        ("s.f", BIG_ENDIAN),
        ("s.b", BIG_ENDIAN),
        ("n", "{p = 4660, q = 5}"),
    ];
    all_say(core, 1, &expected);
    assert!(said(core, 1, "s.q == 5").starts_with('<'));
}

/// Older versions of clang do not describe the width.
#[test]
fn integers_of_unknown_width_are_unknown() {
    let bench = Bench::new();
    let source = bench.write("widths.c", WIDTHS);
    let path = bench.compile("clang", &source, "widths", &["-g", "-w"]);
    let core = &stopped(&bench, &path, "place", 0)[0];
    for (name, right) in [("x", "-5"), ("y", "8000000000")] {
        let said = said(core, 1, name);
        assert!(
            said == right || said.starts_with("<unknown"),
            "{name}: {said}"
        );
    }
}
