//! Links the program at a fixed address. Half of its start would be relocations: 410,000 of them touch 4.5 MB, 6 ms for each
//! command (docs/benchmarks.md).

fn main() {
    println!("cargo::rustc-link-arg-bins=-no-pie");
    println!("cargo::rerun-if-changed=build.rs");
}
