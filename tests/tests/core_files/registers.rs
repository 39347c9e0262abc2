//! Registers of the vector and x87 units are those of gdb.

use e2e::{Scratch, compiled};

use super::dumped::Dumped;

const SOURCE: &str = r#"
#include <stdint.h>
static const uint8_t bytes[64] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, [15] = 0xa0, 0xa1, [31] = 0xb2, 0xb3, [63] = 0xc4 };
int main(int count, char **words) {
    uint32_t control = 0x9f80;
    (void)words;
    __asm__ volatile("ldmxcsr %0; fldpi; fld1" : : "m"(control));
    if (count > 1)
        __asm__ volatile("vmovdqu64 %0, %%zmm5; vmovdqu64 %0, %%zmm21; mov $0x5a5a, %%eax; kmovw %%eax, %%k3; movl $0, 0"
                         : : "m"(bytes) : "eax", "memory");
    __asm__ volatile("vmovdqu %0, %%ymm5; movl $0, 0" : : "m"(bytes) : "memory");
    return 0;
}
"#;

/// What the program loads into the vector registers.
const BYTES: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut at = 0;
    while at < 9 {
        bytes[at] = at as u8 + 1;
        at += 1;
    }
    (bytes[15], bytes[16], bytes[31], bytes[32], bytes[63]) = (0xa0, 0xa1, 0xb2, 0xb3, 0xc4);
    bytes
};

/// Each run has the registers that all processors with AVX have; one with AVX-512, if this processor has it, more.
#[test]
fn vector_and_x87_registers_are_those_of_gdb() {
    let flags = std::fs::read_to_string("/proc/cpuinfo").expect("readable");
    let runs: &[&[&str]] = match flags.contains(" avx512f ") {
        true => &[&[], &["wide"]],
        false => &[&[]],
    };
    for args in runs {
        let scratch = Scratch::new("core-registers");
        let program = compiled(&scratch, "app.c", SOURCE, &["-g", "-O0"]);
        let dumped = Dumped::running(scratch, program, args);
        let mut vectors = vec![("xmm5", 16), ("xmm15", 16), ("ymm5", 32), ("ymm9", 32)];
        if !args.is_empty() {
            vectors.extend([("zmm5", 64), ("zmm21", 64), ("ymm21", 32)]);
        }
        let asked: Vec<String> = vectors
            .iter()
            .map(|(name, bytes)| format!("p/x ${name}.v{bytes}_int8"))
            .chain(["p/x $mxcsr".to_owned(), "info registers st0 st1".to_owned()])
            .collect();
        let limits = [
            "set print repeats unlimited",
            "set print elements unlimited",
        ];
        let asked: Vec<&str> = limits
            .into_iter()
            .chain(asked.iter().map(String::as_str))
            .chain(args.iter().map(|_| "p/x $k3"))
            .collect();
        let theirs = numbers(&dumped.gdb(&asked));
        let names = vectors.iter().map(|(name, _)| *name);
        let names = names.chain(["mxcsr", "st0", "st1"]);
        let names: Vec<&str> = names.chain(args.iter().map(|_| "k3")).collect();
        assert_eq!(theirs.len(), names.len(), "{theirs:?}");
        for (name, (their, is_whole)) in names.iter().zip(&theirs) {
            let stop = dumped.stop();
            let rows = dumped.rows(&format!(
                "SELECT encode(reg({stop}, '{name}'), 'hex') AS bytes"
            ));
            let text = rows[0]["bytes"]
                .as_str()
                .unwrap_or_else(|| panic!("{name} is not known"));
            let own = (0..text.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&text[at..at + 2], 16));
            let own: Vec<u8> = own.map(|byte| byte.expect("two digits")).collect();
            let length = their.len().min(own.len());
            assert_eq!(own[..length], their[..length], "{name}");
            let rest = own[length..].iter().chain(&their[length..]);
            let is_same = rest.copied().all(|byte| byte == 0);
            assert!(is_same || !is_whole, "{name}");
            // gdb 13 cannot read those of processors whose state is laid out otherwise than Intel's; ours are known there, too.
            let loaded = match *name {
                "ymm5" | "zmm5" | "ymm21" | "zmm21" => own == BYTES[..own.len()],
                "k3" => own.starts_with(&[0x5a, 0x5a]),
                _ => true,
            };
            assert!(*is_whole || loaded, "{name}: {own:x?}");
        }
        let pi = names.iter().zip(&theirs).find(|(name, _)| **name == "st1");
        assert!(
            pi.is_some_and(|(_, (bytes, _))| bytes.len() == 10),
            "{theirs:?}"
        );
    }
}

/// The bytes of each answer, the lowest one first: of arrays, of numbers, and of the raw form of x87 numbers. And whether gdb knows all.
fn numbers(text: &str) -> Vec<(Vec<u8>, bool)> {
    let byte = |text: &str| u8::from_str_radix(text, 16).ok();
    let of_number = |digits: &str| -> Vec<u8> {
        let digits = format!(
            "{digits:0>width$}",
            width = digits.len().next_multiple_of(2)
        );
        let pairs = (0..digits.len()).step_by(2).rev();
        pairs.filter_map(|at| byte(&digits[at..at + 2])).collect()
    };
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some((_, raw)) = line.split_once("(raw 0x") {
            found.push((of_number(raw.trim_end_matches(')')), true));
        } else if let Some((_, value)) = line.split_once(" = ")
            && line.starts_with('$')
        {
            let value = value.trim_matches(['{', '}']);
            let is_whole = !value.contains("unavailable");
            let bytes = match value.split_once(',') {
                Some(_) => value
                    .split(", ")
                    .filter_map(|one| byte(one.trim_start_matches("0x")))
                    .collect(),
                None => of_number(value.trim_start_matches("0x")),
            };
            found.push((bytes, is_whole));
        }
    }
    found
}
