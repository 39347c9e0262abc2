"""How long does a copy of the program's memory stop the program? The longest gap that the program itself measures, per GiB.

Usage: python3 tests/bench/snapshot_pause.py [GIB]...     (needs gcc; HINDSIGHT_BIN, or target/release/hindsight)
The program fills that much memory, with random numbers or with slowly rising numbers, then reads its clock every 0.1 ms. Hindsight
attaches when the memory is full, so that the first copy contains all of it: the worst case. Three runs each, in turn.
"""

import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

SIZES = [float(size) for size in sys.argv[1:]] or [0.25, 1.0, 2.0]
ROUNDS = 3
ROOT = pathlib.Path(__file__).resolve().parents[2]
HINDSIGHT = os.environ.get("HINDSIGHT_BIN", str(ROOT / "target/release/hindsight"))

SOURCE = r"""
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static volatile sig_atomic_t done;
static void end(int number) { (void)number; done = 1; }
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
__attribute__((noinline)) void tick(void) { __asm__ volatile("nop; nop; nop; nop; nop"); }
int main(int argc, char **argv) {
  size_t words = (size_t)(atof(argv[1]) * (1 << 30)) / 8;
  uint64_t *all = malloc(words * 8), random = 88172645463325252u;
  for (size_t i = 0; i < words; i++) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    all[i] = *argv[2] == 'r' ? random : i / 100;
  }
  signal(SIGTERM, end);
  printf("ready\n");
  fflush(stdout);
  double longest = 0, last = now();
  while (!done) {
    tick();
    nanosleep(&(struct timespec){0, 100000}, NULL);
    double time = now();
    if (time - last > longest) longest = time - last;
    last = time;
  }
  printf("%.4f\n", longest);
}
"""


def longest_gap(program, folder, size, content, recorded):
    process = subprocess.Popen([program, str(size), content], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    if recorded:
        command = [HINDSIGHT, "record", "-o", str(folder / "gap"), "--attach", str(process.pid), "--for", "3"]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        subprocess.run(["rm", "-r", str(folder / "gap.hindsight")], check=True)
    process.send_signal(signal.SIGTERM)
    gap = float(process.stdout.readline())
    process.wait()
    return gap


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source, program = folder / "gap.c", str(folder / "gap")
        source.write_text(SOURCE)
        subprocess.run(["gcc", "-O2", "-g", "-o", program, str(source)], check=True)
        cases = [(size, content) for size in SIZES for content in ("random", "slow")]
        gaps = {case: [] for case in cases}
        native = []
        for _ in range(ROUNDS):
            native.append(longest_gap(program, folder, 0.01, "random", False))
            for size, content in cases:
                gaps[size, content].append(longest_gap(program, folder, size, content, True))
        print("| memory | content | longest gap, s (median, min - max) | s per GiB |")
        print("|---|---|---|---|")
        for (size, content), seen in gaps.items():
            median = statistics.median(seen)
            print(f"| {size} GiB | {content} | {median:.3f} ({min(seen):.3f} - {max(seen):.3f}) | {median / size:.2f} |")
        print(f"| | not recorded | {statistics.median(native):.4f} | |")


main()
