//! Goal: virtual machines that read return addresses from the stack run as they do without a recorder. Method: small programs that have
//! what such machines are known by, and look for their return addresses as these do.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use std::path::PathBuf;

use e2e::{Hindsight, Program, Scratch, compiled, in_turn};

/// V8 reads the return address of the function that its code has called. It asks the resolver where that is.
const READS_RETURN_ADDRESSES: &str = r#"
#include <cstdint>
#include <cstdio>
namespace v8::internal {
struct StackFrame { static uintptr_t (*return_address_location_resolver_)(uintptr_t); };
uintptr_t (*StackFrame::return_address_location_resolver_)(uintptr_t) = nullptr;
}
extern "C" char returns_here[];
extern "C" int looks(uintptr_t *stack) {
    auto resolver = v8::internal::StackFrame::return_address_location_resolver_;
    auto location = reinterpret_cast<uintptr_t>(stack - 1);
    if (resolver) location = resolver(location);
    return *reinterpret_cast<uintptr_t *>(location) == reinterpret_cast<uintptr_t>(returns_here);
}
asm(".text\n.globl generated, returns_here\ngenerated:\n.cfi_startproc\n sub $8, %rsp\n.cfi_adjust_cfa_offset 8\n"
    " mov %rsp, %rdi\n call looks\nreturns_here:\n add $8, %rsp\n.cfi_adjust_cfa_offset -8\n ret\n.cfi_endproc\n");
extern "C" int generated();
int main() {
    int found = 0;
    for (int i = 0; i < 1000; i++) found += generated();
    printf("%d\n", found);
}
"#;

#[test]
fn v8_finds_the_return_addresses_of_recorded_calls() {
    for linked in in_turn(["-pie", "-static"]) {
        let scratch = Scratch::new(&format!("resolver{linked}"));
        let options = ["-std=c++17", "-g", "-O1", linked];
        let program = compiled(&scratch, "engine.cc", READS_RETURN_ADDRESSES, &options);
        let program = Program::new(program, scratch.path());
        assert_eq!(program.run().text(), "1000\n");
        for options in [&[][..], &["--regs"], &["-f", "module:*"]] {
            let kept = Scratch::new("resolver-recorded");
            let (recorded, recording) = Hindsight::record(&kept, options, &program);
            assert_eq!(recorded.text(), "1000\n", "{linked} {options:?}");
            assert_eq!(recording.calls_of("looks"), 1000, "{linked} {options:?}");
        }
    }
}

/// What Mono has compiled before is known by a variable.
#[test]
fn what_mono_compiled_is_not_recorded() {
    let source = r#"
#include <stdio.h>
char mono_aot_file_info;
__attribute__((noinline)) int managed(int x) { volatile int y = x; return y; }
int main(void) { printf("%d\n", managed(7)); return 0; }
"#;
    let scratch = Scratch::new("mono");
    let program = compiled(&scratch, "image.c", source, &["-g", "-O1"]);
    assert_refused(&scratch, program, "managed", "%Mono%");
}

/// Code that HotSpot generates calls some classes without noting from where. Without HotSpot, classes of these names are recorded.
#[test]
fn what_hotspots_code_calls_is_not_recorded() {
    let source = r#"
#include <cstdio>
struct SharedRuntime { __attribute__((noinline)) static int resolve(int x) { volatile int y = x; return y; } };
#ifdef HOTSPOT
extern "C" void JNI_CreateJavaVM() {}
#endif
int main() { printf("%d\n", SharedRuntime::resolve(7)); }
"#;
    let scratch = Scratch::new("hotspot");
    let options = ["-g", "-O1", "-DHOTSPOT"];
    let program = compiled(&scratch, "vm.cc", source, &options);
    assert_refused(&scratch, program, "SharedRuntime::resolve", "%HotSpot%");
    let scratch = Scratch::new("no-hotspot");
    let program = compiled(&scratch, "vm.cc", source, &["-g", "-O1"]);
    let program = Program::new(program, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(recording.calls_of("SharedRuntime::resolve"), 1);
}

/// The program prints 7; one of its functions is not recorded, for a reason that is like `why`.
fn assert_refused(scratch: &Scratch, program: PathBuf, function: &str, why: &str) {
    let program = Program::new(program, scratch.path());
    let (recorded, recording) = Hindsight::record(scratch, &["-f", "module:*"], &program);
    assert_eq!(recorded.text(), "7\n");
    assert_eq!(recording.calls_of(function), 0);
    let refused = format!(
        "SELECT count(*) FROM probes WHERE function = '{function}' AND state = 'skipped' AND reason LIKE '{why}'"
    );
    assert_eq!(recording.number(&refused), 1);
}
