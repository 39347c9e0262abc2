//! A process still works after every one of its functions, and every function of the C library, the maths library and
//! the unwinder, was patched to run its displaced instructions from a copy. The single test here patches its own
//! process, then sorts, prints, allocates, computes, starts threads and programs, and unwinds panics through patched
//! frames.

mod displace_elf;

use std::arch::asm;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::mem::offset_of;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use displace_elf::texts;
use recorder::displace::{MAX_TRAMPOLINE_BYTES, PATCH_BYTES, patch_bytes, place_near};

const LIBRARIES: [&str; 4] = ["libc.so", "libm.so", "libgcc_s.so", "libstdc++.so"];

/// A mapping of this process, as in /proc/self/maps.
struct Mapping {
    range: Range<u64>,
    executable: bool,
    offset: u64,
    path: String,
}

fn mappings() -> Vec<Mapping> {
    let maps = fs::read_to_string("/proc/self/maps").expect("/proc is mounted");
    let parse = |line: &str| {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let permissions = fields.next()?;
        let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
        let path = fields.nth(2).unwrap_or("").to_owned();
        let address = |hex| u64::from_str_radix(hex, 16).ok();
        Some(Mapping {
            range: address(start)?..address(end)?,
            executable: permissions.contains('x'),
            offset,
            path,
        })
    };
    maps.lines().filter_map(parse).collect()
}

/// Returns the files to patch: this program and the libraries, with their load addresses.
fn modules(mappings: &[Mapping]) -> Vec<(PathBuf, u64)> {
    let own = std::env::current_exe().expect("a test has a path");
    let wanted = |path: &str| {
        Path::new(path) == own || LIBRARIES.iter().any(|library| path.contains(library))
    };
    mappings
        .iter()
        .filter(|m| m.offset == 0 && wanted(&m.path))
        .map(|m| (PathBuf::from(&m.path), m.range.start))
        .collect()
}

struct Patch {
    entry: u64,
    bytes: [u8; PATCH_BYTES],
}

/// Maps memory for copies near `anchor`, at the place that `place_near` returns.
fn map_copies(anchor: &Range<u64>, len: usize) -> u64 {
    let taken: Vec<Range<u64>> = mappings().into_iter().map(|m| m.range).collect();
    let place = place_near(&taken, anchor, len as u64).expect("there is room");
    // SAFETY: MAP_FIXED_NOREPLACE replaces nothing.
    let mapped = unsafe {
        libc::mmap(
            place as *mut libc::c_void,
            len,
            libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    assert_eq!(mapped as u64, place, "the place was free");
    place
}

/// Plans every function of a module and writes its copies. Returns the patches that lead to them.
fn prepare(path: &Path, base: u64) -> Vec<Patch> {
    let mut patches = Vec::new();
    for text in texts(path, base) {
        let len = text.functions.len() * MAX_TRAMPOLINE_BYTES;
        let anchor = base..end_of_module(path);
        let mut place = map_copies(&anchor, len.next_multiple_of(4096));
        for function in &text.functions {
            let Ok(plan) = text.plan(function) else {
                continue;
            };
            let copy = plan.encode(place);
            let copy = copy.unwrap_or_else(|refusal| panic!("{}: {refusal}", function.name));
            let bytes = copy.bytes;
            // SAFETY: the copy lies in the mapping just made for this many copies of the maximum length.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), place as *mut u8, bytes.len());
            }
            patches.push(Patch {
                entry: function.entry,
                bytes: patch_bytes(function.entry, place).expect("the copies are near"),
            });
            place += MAX_TRAMPOLINE_BYTES as u64;
        }
    }
    patches
}

fn end_of_module(path: &Path) -> u64 {
    let path = path.to_str().expect("an ASCII path");
    let ends = mappings()
        .into_iter()
        .filter(|m| m.path == path)
        .map(|m| m.range.end);
    ends.max().expect("the module is mapped")
}

fn make_text_writable() {
    for mapping in mappings()
        .iter()
        .filter(|m| m.executable && m.path.starts_with('/'))
    {
        let len = (mapping.range.end - mapping.range.start) as usize;
        // SAFETY: adds a permission to memory that stays mapped.
        let failed = unsafe {
            libc::mprotect(
                mapping.range.start as *mut libc::c_void,
                len,
                libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
            )
        };
        assert_eq!(failed, 0, "mprotect of {}", mapping.path);
    }
}

/// Writes the patches without calling anything: a callee might be half patched. It is in assembly, because a compiler
/// may turn any line into a call.
fn apply(patches: &[Patch]) {
    let patches = patches.as_ptr_range();
    // SAFETY: the text is writable. The other thread of this process sleeps in the kernel, and this one executes none
    // of the bytes that it changes (it is inside this function, after its entry).
    unsafe {
        asm!(
            "2:",
            "cmp {patch}, {end}",
            "je 3f",
            "mov rdi, [{patch} + {entry}]",
            "lea rsi, [{patch} + {bytes}]",
            "mov ecx, {len}",
            "rep movsb",
            "add {patch}, {size}",
            "jmp 2b",
            "3:",
            patch = inout(reg) patches.start => _,
            end = in(reg) patches.end,
            entry = const offset_of!(Patch, entry),
            bytes = const offset_of!(Patch, bytes),
            len = const PATCH_BYTES,
            size = const size_of::<Patch>(),
            out("rdi") _,
            out("rsi") _,
            out("rcx") _,
            options(nostack),
        );
    }
}

/// Exercises much of the libraries. Returns a text that must not change.
fn workload() -> String {
    let mut report = String::new();
    let mut numbers: Vec<u64> = (0..20_000u64)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40)
        .collect();
    numbers.sort_unstable();
    let sum: u64 = numbers.iter().step_by(7).sum();
    writeln!(report, "sum {sum}").expect("writing to a string");
    let words: HashMap<String, usize> =
        (0..2000).map(|i| (format!("word{}", i % 701), i)).collect();
    writeln!(report, "words {} {:?}", words.len(), words.get("word17")).expect("a string");
    for x in [0.1f64, 1.0, 7.5, 1e-9, 3e10] {
        let values = [
            x.sin(),
            x.cos(),
            x.exp(),
            x.ln(),
            x.powf(1.7),
            x.tanh(),
            x.cbrt(),
            x.atan2(2.0),
        ];
        writeln!(report, "maths {x:e} {values:?}").expect("a string");
    }
    let threads: Vec<_> = (0..8u64)
        .map(|n| std::thread::spawn(move || (0..=n * 1000).sum::<u64>()))
        .collect();
    for thread in threads {
        writeln!(report, "thread {}", thread.join().expect("no panic")).expect("a string");
    }
    for depth in 0..20 {
        let caught = std::panic::catch_unwind(|| dive(depth)).expect_err("it panics");
        let depth = caught.downcast_ref::<u64>().expect("with its depth");
        writeln!(report, "panic {depth}").expect("a string");
    }
    let echo = Command::new("sh")
        .args(["-c", "echo $((6*7)); exit 3"])
        .output()
        .expect("sh runs");
    writeln!(report, "sh {:?} {:?}", echo.stdout, echo.status.code()).expect("a string");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("file");
    let mut file = fs::File::create(&path).expect("a file");
    for line in 0..1000 {
        writeln!(file, "line {line} {:>10.3}", f64::from(line) / 7.0).expect("written");
    }
    drop(file);
    let text = fs::read_to_string(&path).expect("read back");
    writeln!(
        report,
        "file {} {}",
        text.len(),
        text.lines().last().unwrap_or("")
    )
    .expect("a string");
    report.push_str(&c_library());
    report
}

#[inline(never)]
fn dive(depth: u64) -> u64 {
    struct Guard<'a>(&'a mut u64);
    impl Drop for Guard<'_> {
        fn drop(&mut self) {
            *self.0 += 1;
        }
    }
    let mut left = 0;
    let guard = Guard(&mut left);
    let deeper = match depth {
        0 => std::panic::resume_unwind(Box::new(depth)),
        _ => dive(depth - 1),
    };
    *guard.0 + std::hint::black_box(deeper)
}

/// Exercises functions that Rust's own library does not use.
fn c_library() -> String {
    extern "C" fn compare(a: *const libc::c_void, b: *const libc::c_void) -> libc::c_int {
        // SAFETY: qsort passes pointers to elements of the array below.
        let (a, b) = unsafe { (*a.cast::<i32>(), *b.cast::<i32>()) };
        a.cmp(&b) as libc::c_int
    }
    let mut numbers: Vec<i32> = (0..5000).map(|i| (i * 7919) % 5003).collect();
    let mut printed = [0u8; 128];
    // SAFETY: the array, the buffer and the format have the lengths and types that are passed.
    unsafe {
        libc::qsort(numbers.as_mut_ptr().cast(), numbers.len(), 4, Some(compare));
        let format = c"%08.3f|%-10s|%+d|%llx".as_ptr();
        libc::snprintf(
            printed.as_mut_ptr().cast(),
            printed.len(),
            format,
            2.5f64,
            c"left".as_ptr(),
            42 as libc::c_int,
            0xfeed_beefu64,
        );
        let parsed = libc::strtod(c"  -12.75e2x".as_ptr(), std::ptr::null_mut());
        let number = libc::strtoll(c"-7fff".as_ptr(), std::ptr::null_mut(), 16);
        let length = libc::strlen(printed.as_ptr().cast());
        let text = String::from_utf8_lossy(&printed[..length]);
        format!("c {:?} {text} {parsed} {number}\n", &numbers[..5])
    }
}

#[test]
fn process_works_with_all_of_its_functions_patched() {
    let expected = workload();
    let modules = modules(&mappings());
    assert!(
        modules.len() >= 3,
        "this program, libc and libgcc_s at least"
    );
    let mut patches = Vec::new();
    for (path, base) in &modules {
        let prepared = prepare(path, *base);
        println!("{}: {} functions patched", path.display(), prepared.len());
        patches.extend(prepared);
    }
    make_text_writable();
    apply(&patches);
    for _ in 0..3 {
        assert_eq!(workload(), expected);
    }
    assert!(patches.len() > 5000, "{} functions patched", patches.len());
}
