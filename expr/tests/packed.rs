//! Goal: a packed bit field that crosses its storage unit has its own bits, however the compiler describes where it begins. Method:
//! gdb stops programs and writes core files. The programs' sources state the correct values.
//! Of several compilers or options each run takes a part; `WHOLE=1` all.

#[path = "../../debuginfo/tests/common/mod.rs"]
mod common;
#[path = "../../debuginfo/tests/core_file/mod.rs"]
mod core_file;
#[path = "stopped/mod.rs"]
mod stopped;

use common::Bench;
use common::share::in_turn;
use stopped::{all_say, stopped};

const FIELDS: &str =
    "struct __attribute__((packed)) narrow { short t : 9; short u : 9; } n = {100, -77};
struct __attribute__((packed)) wide { long a : 40; long b : 40; unsigned c : 17; int d : 31; } w
    = {-5, 123456789012, 70000, -1};
void place(void) {}
int main(void) { place(); return 0; }
";

/// DWARF 4 and before count from the end of the storage unit, and the number may be negative (DWARF 3, section 5.5.6).
#[test]
fn packed_bit_fields_that_cross_their_storage_are_right() {
    let bench = Bench::new();
    let source = bench.write("fields.c", FIELDS);
    for (compiler, options) in in_turn([
        ("clang", &["-g", "-gdwarf-3"][..]),
        ("clang", &["-g", "-gdwarf-4"]),
        ("clang", &["-g", "-gdwarf-5"]),
        ("gcc", &["-gdwarf-3", "-gstrict-dwarf"]),
        ("gcc", &["-g", "-gdwarf-4"]),
        ("gcc", &["-g", "-gdwarf-5"]),
    ]) {
        let path = bench.compile(compiler, &source, "fields", options);
        let core = &stopped(&bench, &path, "place", 0)[0];
        println!("{compiler} {options:?}");
        all_say(
            core,
            1,
            &[
                ("n", "{t = 100, u = -77}"),
                ("n.u", "-77"),
                ("w", "{a = -5, b = 123456789012, c = 70000, d = -1}"),
                ("w.d", "-1"),
            ],
        );
    }
}
