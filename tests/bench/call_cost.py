"""What does tracing one call cost? Hindsight beside uftrace and Frida's CModule, in one run, as medians.

Usage: python3 tests/bench/call_cost.py [MILLION-CALLS]     (needs gcc, uftrace, and the binary that HINDSIGHT_BIN names or
       target/release/hindsight; "hindsight setup" fetches the Frida that is measured)
Each tracer runs the same function (fixtures/tight: a multiply and an add) that many times; the program's own clock
gives ns per call. Runs are interleaved, so that a slow moment of the machine falls on all of them. Where Hindsight lost a call,
all ends: calls that are not recorded cost nothing. Where uftrace did, its row says so.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

CALLS = int(float(sys.argv[1] if len(sys.argv) > 1 else "10") * 1e6)
RUNS = 5
ROOT = pathlib.Path(__file__).resolve().parents[2]
HINDSIGHT = pathlib.Path(os.environ.get("HINDSIGHT_BIN", ROOT / "target/release/hindsight"))
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
FRIDA = CACHE / "hindsight/frida-17.25.2"

SOURCE = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
__attribute__((noinline, noclone)) uint64_t work(uint64_t i, uint64_t sum) { return sum * 31 + i; }
int main(int argc, char **argv) {
  uint64_t calls = strtoull(argv[1], NULL, 10), sum = 0;
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (uint64_t i = 0; i < calls; i++) sum = work(i, sum);
  clock_gettime(CLOCK_MONOTONIC, &b);
  printf("%.2f %llu\n", ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / calls, (unsigned long long)sum);
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


def ns(command, cwd):
    environment = os.environ | {"PYTHONPATH": str(FRIDA)}
    result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    words = result.stdout.split()
    if result.returncode or not words:
        sys.exit(f"{command}: {result.returncode}\n{result.stderr}")
    return float(words[0]), "LOST" in result.stderr


def number(sql, cwd):
    command = [HINDSIGHT, "sql", "rec", sql, "--format", "csv"]
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"{command}: {result.returncode}\n{result.stderr}")
    return int(result.stdout.split()[1])


def check_nothing_was_lost(cwd):
    calls = number("SELECT count(*) FROM calls WHERE function = 'work' AND NOT unwound", cwd)
    gaps = number("SELECT count(*) FROM gaps", cwd)
    if (calls, gaps) != (CALLS, 0):
        sys.exit(f"Hindsight recorded {calls:,} of {CALLS:,} calls, with {gaps} gaps: its figure would mean nothing")


def check_tools():
    if not HINDSIGHT.exists():
        sys.exit(f"there is no {HINDSIGHT}; build it, or name it in HINDSIGHT_BIN")
    environment = os.environ | {"PYTHONPATH": str(FRIDA)}
    asked = [sys.executable, "-c", "import frida; print(frida.__version__)"]
    frida = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
    if frida.stdout.strip() != "17.25.2":
        sys.exit(
            f"the row of Frida's CModule cannot be made: {FRIDA} has no frida 17.25.2 for {sys.executable}; "
            f'run "{HINDSIGHT} setup"\n{frida.stdout}{frida.stderr}'
        )
    if shutil.which("uftrace") is None:
        sys.exit("the rows of uftrace cannot be made: it is not installed (Debian: uftrace)")


def folder_bytes(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main():
    check_tools()
    work = pathlib.Path(tempfile.mkdtemp())
    (work / "work.c").write_text(SOURCE)
    (work / "cmodule.py").write_text(CMODULE)
    for name, flags in (("plain", []), ("pg", ["-pg"]), ("finstrument", ["-finstrument-functions"])):
        subprocess.run(["gcc", "-O2", "-g", *flags, "-o", name, "work.c"], cwd=work, check=True)
    calls = str(CALLS)
    rows = {
        "native": ["./plain", calls],
        "Hindsight (6 args, return value, 2 times)": [HINDSIGHT, "record", "-o", "rec", "-f", "work", "--", "./plain", calls],
        "uftrace -pg": ["uftrace", "record", "--no-libcall", "-d", "uf", "./pg", calls],
        "uftrace -finstrument-functions": ["uftrace", "record", "--no-libcall", "-d", "uf", "./finstrument", calls],
        "Frida CModule, enter and leave, nothing kept": [sys.executable, "cmodule.py", "./plain", calls],
    }
    figures = {name: [] for name in rows}
    sizes, lossy = {}, set()
    for _ in range(RUNS):
        for name, command in rows.items():
            for left in ("rec.hindsight", "uf"):
                shutil.rmtree(work / left, ignore_errors=True)
            figure, has_lost = ns(command, work)
            figures[name].append(figure)
            if has_lost:
                lossy.add(name)
            if command[0] == HINDSIGHT:
                check_nothing_was_lost(work)
            for folder in ("rec.hindsight", "uf"):
                if (work / folder).exists():
                    sizes[name] = folder_bytes(work / folder) / CALLS
    print(f"{CALLS:,} calls, median of {RUNS} runs\n")
    print("| tracer | ns per call | min - max | B per call on disk |\n|---|---|---|---|")
    for name, values in figures.items():
        size = f"{sizes[name]:.1f}" if name in sizes else ""
        name = f"{name} (lost records)" if name in lossy else name
        print(f"| {name} | {statistics.median(values):.1f} | {min(values):.1f} - {max(values):.1f} | {size} |")
    shutil.rmtree(work)


main()
