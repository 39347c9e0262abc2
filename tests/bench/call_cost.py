"""How much does it cost to trace one call? Hindsight compared with uftrace and Frida's CModule, as measured by `tests/bench/run call`.

Each tracer runs the same function (that of fixtures/tight: a multiply and an add) equally often; the program's own clock gives ns per
call. Runs are interleaved, and each round begins with a different tracer, so that a slow moment of the machine affects all of them.
Each tracer gets its fastest options: for uftrace, its single-thread library if the program has one thread, buffers of 64 MB and no
scheduler events. `-mfentry` is the build that uftrace recommends. If Hindsight lost a call, the run fails, because calls that are not
recorded cost nothing. If uftrace lost one, its row has a note.
"""

import os
import resource
import shutil
import sys

from harness import FRIDA, HINDSIGHT, Row, check_nothing_was_lost, folder_bytes, run

UFTRACE = ("gcc", "uftrace")
OURS = ("hindsight", "gcc")
ROWS = [
    Row("call.native", "a call, not traced", "ns", needs=("gcc",)),
    Row("call.hindsight", "a call: Hindsight (6 args, return value, 2 times)", "ns", at_most=45, needs=OURS),
    Row("call.uftrace-pg", "a call: uftrace -pg (2 times)", "ns", needs=UFTRACE),
    Row("call.uftrace-mfentry", "a call: uftrace -pg -mfentry", "ns", needs=UFTRACE),
    Row("call.uftrace-finstrument", "a call: uftrace -finstrument-functions", "ns", needs=UFTRACE),
    Row("call.uftrace-dynamic", "a call: uftrace -P, no recompilation", "ns", needs=UFTRACE),
    Row("call.uftrace-values", "a call: uftrace -pg with 2 arguments and the return value", "ns", needs=UFTRACE),
    Row("call.cmodule", "a call: Frida CModule, enter and leave, nothing kept", "ns", needs=("gcc", "frida")),
    Row("threads.hindsight", "a call, 2 threads: Hindsight", "ns", needs=OURS),
    Row("threads.uftrace-pg", "a call, 2 threads: uftrace -pg", "ns", needs=UFTRACE),
    Row("processor.hindsight", "processor time a call until it can be queried, all processes: Hindsight", "ns", needs=OURS),
    Row("processor.uftrace-pg", "the same: uftrace -pg", "ns", needs=UFTRACE),
]

SOURCE = r"""
#include <pthread.h>
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
__attribute__((noinline)) static void *loop(void *calls) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < (uint64_t)calls; i++) sum = work(i, sum);
  return (void *)sum;
}
// Usage: work CALLS [NS]. With NS, a call begins that long after the one before, or when that one has ended. With the environment
// variable SECOND, a second thread makes half of the calls.
int main(int argc, char **argv) {
  uint64_t calls = strtoull(argv[1], NULL, 10), sum = 0;
  double pace = argc > 2 ? atof(argv[2]) * ticks_per_ns() : 0, a = now();
  if (getenv("SECOND")) {
    pthread_t second;
    void *theirs;
    pthread_create(&second, NULL, loop, (void *)(calls / 2));
    sum = (uint64_t)loop((void *)(calls - calls / 2));
    pthread_join(second, &theirs);
    sum += (uint64_t)theirs;
  } else if (pace == 0) {
    sum = (uint64_t)loop((void *)calls);
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
    """Compiles all variants of the program; each prints ns per call for a given number of calls."""
    (work / "work.c").write_text(SOURCE)
    ways = (("plain", []), ("pg", ["-pg"]), ("mfentry", ["-pg", "-mfentry"]), ("finstrument", ["-finstrument-functions"]))
    for name, flags in ways:
        run(["gcc", "-O2", "-g", "-pthread", *flags, "-o", name, "work.c"], work)


def ns_per_call(output):
    """The figure that the program printed."""
    return float(output.split()[0])


def commands():
    """The command of each row, without the number of calls."""
    several = ["uftrace", "record", "--no-libcall", "-b", "64m", "--no-event", "-d", "uf"]
    single = [*several, "--libmcount-single"]
    ours = [HINDSIGHT, "record", "-o", "rec", "-f", "work", "--", "./plain"]
    return {
        "call.native": ["./plain"],
        "call.hindsight": ours,
        "call.uftrace-pg": [*single, "./pg"],
        "call.uftrace-mfentry": [*single, "./mfentry"],
        "call.uftrace-finstrument": [*single, "./finstrument"],
        "call.uftrace-dynamic": [*single, "-P", "work", "./plain"],
        "call.uftrace-values": [*single, "-A", "work@arg1/u64,arg2/u64", "-R", "work@retval/u64", "./pg"],
        "call.cmodule": [sys.executable, "cmodule.py", "./plain"],
        "threads.hindsight": ours,
        "threads.uftrace-pg": [*several, "./pg"],
    }


def measure(bench):
    work, calls = bench.work, int(bench.sizes.call_millions * 1e6)
    build(work)
    (work / "cmodule.py").write_text(CMODULE)
    rows = list(commands().items())
    for number in range(bench.sizes.rounds):
        first = number % len(rows)
        for name, command in rows[first:] + rows[:first]:
            processor = name.replace("call.", "processor.")
            if bench.wants(name) or bench.wants(processor):
                measure_one(bench, name, command, calls)


def measure_one(bench, name, command, calls):
    """Runs one tracer once: the program's own time a call, and the processor time of all processes that took part."""
    environment = os.environ | {"PYTHONPATH": str(FRIDA)}
    if name.startswith("threads."):
        environment["SECOND"] = "1"
    before = processor_seconds()
    result = run([*command, str(calls)], bench.work, env=environment)
    if name.startswith("call."):
        bench.add(name.replace("call.", "processor."), (processor_seconds() - before) / calls * 1e9)
    bench.add(name, ns_per_call(result.stdout))
    if name.endswith(".hindsight"):
        check_nothing_was_lost(bench.work, calls)
    note_size(bench, name, calls, "LOST" in result.stderr)


def processor_seconds():
    """The processor time of all descendants that have been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def note_size(bench, name, calls, is_lossy):
    """Adds a note to the row: the bytes of a call on disk, and whether the tracer lost any calls; deletes its files."""
    for folder in ("rec.hindsight", "uf"):
        if (bench.work / folder).exists():
            size = f"{folder_bytes(bench.work / folder) / calls:.1f} B a call on disk"
            if is_lossy or "lost" in bench.notes.get(name, ""):
                size += ", lost records"
            bench.note(name, size)
            shutil.rmtree(bench.work / folder)
