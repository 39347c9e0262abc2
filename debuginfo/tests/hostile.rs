//! Goal: debug information that refers to itself, or to the same parts over and over, costs no more time and memory
//! than the file's size warrants. Method: assembler code makes small files that would cost hours or gigabytes if every
//! reference were followed each time. A test that does not end has failed.

mod common;

use common::{Bench, open, peak_memory_kib};
use debuginfo::{Functions, ParameterPlace, Warning};

/// Memory limit for all tests of this program together.
const MEMORY_KIB: u64 = 1 << 20;

/// Abbreviations that all files share. Each test adds its own, starting at 20.
const ABBREVIATIONS: &str = r#"
    .byte 1, 0x11, 1, 0x13, 0x0b, 0x11, 0x01, 0, 0          # unit: language, low_pc
    .byte 2, 0x2e, 1, 0x11, 0x01, 0x49, 0x13, 0, 0          # subprogram: low_pc, type; with children
    .byte 3, 0x05, 0, 0x49, 0x13, 0, 0                      # parameter: type
    .byte 4, 0x16, 0, 0x49, 0x13, 0, 0                      # typedef: type
    .byte 5, 0x13, 1, 0x0b, 0x0b, 0, 0                      # structure: size
    .byte 6, 0x0d, 0, 0x49, 0x13, 0x38, 0x0b, 0, 0          # member: type, place
    .byte 7, 0x24, 0, 0x3e, 0x0b, 0x0b, 0x0b, 0, 0          # base type: encoding, size
    .byte 8, 0x01, 1, 0x49, 0x13, 0, 0                      # array: type
    .byte 9, 0x21, 0, 0x2f, 0x06, 0, 0                      # dimension: upper bound
    .byte 10, 0x2e, 0, 0x11, 0x01, 0x31, 0x13, 0, 0         # subprogram: low_pc, abstract origin
    .byte 11, 0x0f, 0, 0x49, 0x13, 0, 0                     # pointer: type
"#;

/// Assembles a library with 64 KiB of code and one unit in language C++ 98.
fn functions(abbreviations: &str, entries: &str, rest: &str) -> Functions {
    let bench = Bench::new();
    let source = bench.write(
        "hostile.s",
        &format!(
            r#"
    .text
code: .fill 0x10000, 1, 0x90
    .section .debug_abbrev, "", @progbits
    {ABBREVIATIONS}
    {abbreviations}
    .byte 0
    .section .debug_info, "", @progbits
unit:
    .long unit_end - unit_start
unit_start:
    .value 4
    .long 0
    .byte 8
    .uleb128 1
    .byte 4
    .quad code
    {entries}
    .byte 0
unit_end:
    {rest}
"#
        ),
    );
    let options = ["-shared", "-nostdlib"];
    let path = bench.compile("gcc", &source, "hostile.so", &options);
    let functions = open(&path).functions().clone();
    let peak = peak_memory_kib();
    assert!(peak < MEMORY_KIB, "{peak} KiB of memory were taken");
    functions
}

/// Returns whether the functions come with the warning that their unit demands too much work.
fn is_cut_short(functions: &Functions) -> bool {
    let is_bound = |w: &Warning| matches!(w, Warning::BadUnit { offset: 0, why, .. } if why.contains("too often"));
    functions.warnings.iter().any(is_bound)
}

#[test]
fn types_that_are_their_own_alias_member_or_element_are_unknown() {
    let entries = r#"
    alias: .uleb128 4; .long alias - unit
    own:   .uleb128 5; .byte 16
           .uleb128 6; .long own - unit; .byte 0
           .byte 0
    array: .uleb128 8; .long array - unit
           .uleb128 9; .long 0x7fffffff
           .byte 0
    .uleb128 2; .quad code + 16; .long alias - unit
           .uleb128 3; .long alias - unit
           .byte 0
    .uleb128 2; .quad code + 32; .long own - unit
           .uleb128 3; .long own - unit
           .byte 0
    .uleb128 2; .quad code + 48; .long array - unit
           .uleb128 3; .long array - unit
           .byte 0
    "#;
    let functions = functions("", entries, "");
    assert_eq!(functions.list.len(), 3);
    let places: Vec<ParameterPlace> = functions.list.iter().map(|f| f.params[0].place).collect();
    assert_eq!(
        places[..2],
        [ParameterPlace::Unknown, ParameterPlace::Unknown]
    );
}

#[test]
fn functions_that_are_their_own_origin_keep_their_address() {
    let entries = r#"
    one: .uleb128 10; .quad code + 16; .long one - unit
    two: .uleb128 10; .quad code + 32; .long three - unit
    three: .uleb128 10; .quad code + 48; .long two - unit
    "#;
    let functions = functions("", entries, "");
    // The code of the library begins at the start of a page.
    let at: Vec<u64> = functions.list.iter().map(|f| f.svma.0 % 0x1000).collect();
    assert_eq!(at, [16, 32, 48]);
}

#[test]
fn structures_that_double_thirty_times_are_bounded() {
    let level = |n: u32| {
        format!(
            "s{}: .uleb128 5; .byte 16
             .uleb128 6; .long s{n} - unit; .byte 0
             .uleb128 6; .long s{n} - unit; .byte 0
             .byte 0\n",
            n + 1
        )
    };
    let entries = format!(
        "s0: .uleb128 5; .byte 16\n .byte 0\n {}
         .uleb128 2; .quad code + 16; .long s30 - unit
         .uleb128 3; .long s30 - unit
         .byte 0",
        (0..30).map(level).collect::<String>()
    );
    // The walk ends and takes little memory. Excessive work is reported.
    let functions = functions("", &entries, "");
    assert!(!functions.list.is_empty() || !functions.warnings.is_empty());
}

#[test]
fn an_origin_with_endless_children_is_not_read_for_each_function() {
    let entries = r#"
    origin: .uleb128 2; .quad code; .long origin - unit
        .rept 60000
        .uleb128 4; .long origin - unit
        .endr
        .byte 0
    .set at, 1
    .rept 30000
    .uleb128 10; .quad code + at; .long origin - unit
    .set at, at + 1
    .endr
    "#;
    assert!(is_cut_short(&functions("", entries, "")));
}

#[test]
fn a_list_of_ranges_is_not_read_for_each_function() {
    let abbreviation = ".byte 20, 0x2e, 0, 0x55, 0x17, 0, 0";
    // The ranges are outside the code, so none of them ends the search for the entry.
    let entries = r#"
    .rept 60000
    .uleb128 20; .long 0
    .endr
    "#;
    let rest = r#"
    .section .debug_ranges, "", @progbits
    .rept 60000
    .quad 0x100000000, 0x100000010
    .endr
    .quad 0, 0
    "#;
    assert!(is_cut_short(&functions(abbreviation, entries, rest)));
}

#[test]
fn a_long_name_is_not_copied_for_each_function() {
    let abbreviation = ".byte 20, 0x2e, 0, 0x11, 0x01, 0x03, 0x0e, 0, 0";
    let entries = r#"
    .set at, 1
    .rept 30000
    .uleb128 20; .quad code + at; .long 0
    .set at, at + 1
    .endr
    "#;
    let rest = r#"
    .section .debug_str, "", @progbits
    .fill 1000000, 1, 'n'
    .byte 0
    "#;
    assert!(is_cut_short(&functions(abbreviation, entries, rest)));
}

#[test]
fn attributes_without_bytes_are_counted() {
    // 50,000 flags that are present and take no byte in the DIE.
    let abbreviation = ".byte 20, 0x34, 0\n .rept 50000\n .byte 0x3f, 0x19\n .endr\n .byte 0, 0";
    let entries = ".rept 100000\n .uleb128 20\n .endr";
    assert!(is_cut_short(&functions(abbreviation, entries, "")));
}

#[test]
fn overlapping_tables_of_abbreviations_are_cut_off() {
    // 20,000 units use the section from different bytes on, two units each.
    let abbreviations = r#"
    .rept 40000
    .byte 21, 0x34, 0, 0, 0
    .byte 22, 0x34, 0, 0, 0
    .endr
    "#;
    let rest = r#"
    .set at, 200
    .rept 10000
    .long 8
    .value 4
    .long at
    .byte 8
    .uleb128 21
    .long 8
    .value 4
    .long at
    .byte 8
    .uleb128 21
    .set at, at + 10
    .endr
    "#;
    let functions = functions(abbreviations, "", rest);
    assert!(!functions.warnings.is_empty());
}

#[test]
fn symbols_without_end_are_bounded() {
    let bench = Bench::new();
    let symbol = |n: usize| {
        format!(
            ".globl {0}\n .type {0}, @function\n {0} = code + {n}\n",
            name(n)
        )
    };
    // Names with equal ends share their bytes. The string table contains no end for any of them.
    fn name(n: usize) -> String {
        format!("{}{n:05}", "s".repeat(10_000))
    }
    let text: String = (0..40).map(symbol).collect();
    let source = bench.write("long.s", &format!(".text\ncode: .fill 64, 1, 0x90\n{text}"));
    let path = bench.compile("gcc", &source, "long.so", &["-shared", "-nostdlib"]);
    let mut bytes = std::fs::read(&path).expect("a file that gcc wrote");
    bytes
        .iter_mut()
        .filter(|b| **b == b'0')
        .for_each(|b| *b = b's');
    assert_eq!(open(&path).symbols().len(), 40);
    // Now no name ends before the section does.
    let strings = bytes.windows(2).enumerate();
    let ends: Vec<usize> = strings
        .filter(|(_, w)| *w == b"\0s")
        .map(|(at, _)| at)
        .collect();
    ends.into_iter().for_each(|at| bytes[at] = b's');
    let symbols = debuginfo::Module::from_bytes("long.so", bytes)
        .expect("headers are whole")
        .symbols();
    let named: usize = symbols.iter().map(|s| s.name.len()).sum();
    assert!(named < 64 << 20, "{named} bytes of names");
}
