//! Goal: a register of a caller is written where it is: in the processor, or in the frame of whichever callee saved it. Method: a
//! program keeps a value in rbx, one callee saves the register, another leaves it alone, and the program prints what it has afterwards.

use e2e::{Live, Scratch, compiled};

const SOURCE: &str = r#"
#include <stdio.h>
static long seen;
__attribute__((noinline, noclone)) long leaf(long x) { seen += x; __asm__ volatile("" ::: "memory"); return x + 1; }
__attribute__((noinline, noclone)) long saves(long x) {
    long own;
    __asm__ volatile("mov $7, %%rbx" ::: "rbx");
    own = leaf(x);
    __asm__ volatile("mov %%rbx, %0" : "=m"(seen) :: "memory");
    return own + 1;
}
__attribute__((noinline, noclone)) long passes(long x) { return saves(x) + 1; }
int main(void) {
    register long kept __asm__("rbx") = 41;
    __asm__ volatile("" : "+r"(kept));
    long got = passes(1);
    __asm__ volatile("" : "+r"(kept));
    printf("kept %ld seen %ld got %ld\n", kept, seen, got);
    return 0;
}
"#;

#[test]
fn a_register_of_a_caller_is_written_where_the_callee_saved_it() {
    let scratch = Scratch::new("registers-source");
    let flags = ["-g", "-O1", "-fno-omit-frame-pointer"];
    let app = compiled(&scratch, "app.c", SOURCE, &flags);
    for (frame, function, before, after) in [
        ("3", "main", "41", "kept 42 seen 7 got 4\n"),
        ("2", "passes", "41", "kept 42 seen 7 got 4\n"),
        ("1", "saves", "7", "kept 41 seen 42 got 4\n"),
        ("0", "leaf", "7", "kept 41 seen 42 got 4\n"),
    ] {
        let live = Live::started("registers", &["--break", "leaf"], &app, &[]);
        live.ask(&["frame", frame]);
        assert_eq!(live.print("(long)$rbx"), before, "{function}");
        live.ask(&["set", "$rbx", "42"]);
        assert_eq!(live.run_to_end(), 0, "{function}");
        assert!(
            live.output().contains(after),
            "{function}: {}",
            live.output()
        );
    }
}
