"""What does tracing one call cost? Hindsight beside uftrace and Frida's CModule, as `tests/bench/run call` measures it.

Each tracer runs the same function (that of fixtures/tight: a multiply and an add) as many times; the program's own clock
gives ns per call. Runs are interleaved, so that a slow moment of the machine falls on all of them. Where Hindsight lost a call,
all ends: calls that are not recorded cost nothing. Where uftrace did, its row says so.
"""

import os
import shutil
import sys

from harness import FRIDA, HINDSIGHT, Row, check_nothing_was_lost, folder_bytes, run

UFTRACE = ("gcc", "uftrace")
ROWS = [
    Row("call.native", "a call, not traced", "ns", needs=("gcc",)),
    Row("call.hindsight", "a call: Hindsight (6 args, return value, 2 times)", "ns", at_most=45, needs=("hindsight", "gcc")),
    Row("call.uftrace-pg", "a call: uftrace -pg (2 times)", "ns", needs=UFTRACE),
    Row("call.uftrace-finstrument", "a call: uftrace -finstrument-functions", "ns", needs=UFTRACE),
    Row("call.uftrace-dynamic", "a call: uftrace -P, no recompilation", "ns", needs=UFTRACE),
    Row("call.cmodule", "a call: Frida CModule, enter and leave, nothing kept", "ns", needs=("gcc", "frida")),
]

SOURCE = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>
__attribute__((noinline, noclone)) uint64_t work(uint64_t i, uint64_t sum) { return sum * 31 + i; }
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}
static double ticks_per_ns(void) {
  double from = now(), ticks = __rdtsc();
  while (now() < from + 2e7);
  return (__rdtsc() - ticks) / (now() - from);
}
// Usage: work CALLS [NS]. With NS, a call begins that long after the one before, or when that one has ended.
int main(int argc, char **argv) {
  uint64_t calls = strtoull(argv[1], NULL, 10), sum = 0;
  double pace = argc > 2 ? atof(argv[2]) * ticks_per_ns() : 0, a = now();
  if (pace == 0) {
    for (uint64_t i = 0; i < calls; i++) sum = work(i, sum);
  } else {
    uint64_t begin = __rdtsc();
    for (uint64_t i = 0; i < calls; i++) {
      while (__rdtsc() - begin < i * pace);
      sum = work(i, sum);
    }
  }
  printf("%.2f %llu\n", (now() - a) / calls, (unsigned long long)sum);
}
"""

CMODULE = r"""
import sys, frida, threading
argv = sys.argv[1:]
device = frida.get_local_device()
pid = device.spawn(argv, stdio="pipe")
ended = threading.Event()
session = device.attach(pid)
output = []
device.on("output", lambda _pid, fd, data: output.append(data))
session.on("detached", lambda *_: ended.set())
script = session.create_script('''
const state = Memory.alloc(16);
const cm = new CModule(`
#include <gum/guminterceptor.h>
extern unsigned long state[];
void onEnter(GumInvocationContext *ic) { state[0] += (unsigned long) gum_invocation_context_get_nth_argument(ic, 0); }
void onLeave(GumInvocationContext *ic) { state[1] += (unsigned long) gum_invocation_context_get_return_value(ic); }
`, { state });
const work = Process.mainModule.enumerateSymbols().find(s => s.name === 'work').address;
Interceptor.attach(work, { onEnter: cm.onEnter, onLeave: cm.onLeave });
globalThis.keep = [cm, state];
''')
script.load()
device.resume(pid)
ended.wait(120)
print(b"".join(output).decode(), end="")
"""


def build(work):
    """Compiles the program in all ways; each prints ns per call for as many calls as it is told."""
    (work / "work.c").write_text(SOURCE)
    for name, flags in (("plain", []), ("pg", ["-pg"]), ("finstrument", ["-finstrument-functions"])):
        run(["gcc", "-O2", "-g", *flags, "-o", name, "work.c"], work)


def ns_per_call(output):
    """What the program printed of itself."""
    return float(output.split()[0])


def measure(bench):
    work, calls = bench.work, int(bench.sizes.call_millions * 1e6)
    build(work)
    (work / "cmodule.py").write_text(CMODULE)
    uftrace = ["uftrace", "record", "--no-libcall", "-d", "uf"]
    commands = {
        "call.native": ["./plain"],
        "call.hindsight": [HINDSIGHT, "record", "-o", "rec", "-f", "work", "--", "./plain"],
        "call.uftrace-pg": [*uftrace, "./pg"],
        "call.uftrace-finstrument": [*uftrace, "./finstrument"],
        "call.uftrace-dynamic": [*uftrace, "-P", "work", "./plain"],
        "call.cmodule": [sys.executable, "cmodule.py", "./plain"],
    }
    environment = os.environ | {"PYTHONPATH": str(FRIDA)}
    for _ in range(bench.sizes.rounds):
        for name, command in commands.items():
            if not bench.wants(name):
                continue
            result = run([*command, str(calls)], work, env=environment)
            bench.add(name, ns_per_call(result.stdout))
            if name == "call.hindsight":
                check_nothing_was_lost(work, calls)
            note_size(bench, name, calls, "LOST" in result.stderr)


def note_size(bench, name, calls, is_lossy):
    """Says beside the row how much a call takes on disk, and whether the tracer lost any; takes its files away."""
    for folder in ("rec.hindsight", "uf"):
        if (bench.work / folder).exists():
            size = f"{folder_bytes(bench.work / folder) / calls:.1f} B a call on disk"
            if is_lossy or "lost" in bench.notes.get(name, ""):
                size += ", lost records"
            bench.note(name, size)
            shutil.rmtree(bench.work / folder)
