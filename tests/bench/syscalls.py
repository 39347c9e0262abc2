"""What does `record --syscalls` cost? As measured by `tests/bench/run syscalls`: ns for one system call, natively and recorded, by the
clock of a program that makes many, and what the option adds to the runs of three programs whose calls are recorded: sort(1) of 300,000
lines, sqlite3(1) filling a table in a file, and git(1) listing the commits of a small repository. `--syscalls` would be the default if it added less than 1 %.
"""

import shutil
import statistics

from harness import HINDSIGHT, Row, info, run

ROWS = [
    Row("syscalls.each-native", "a system call (getppid), not recorded", "ns", needs=("gcc",)),
    Row("syscalls.each", "the same with record --syscalls", "ns", needs=("hindsight", "gcc")),
    Row("syscalls.added", "what --syscalls adds to recorded runs of sort, sqlite3 and git", "%", needs=("hindsight", "gcc")),
]
NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) SELECT i, i * 7919 % 1000003 AS v FROM n ORDER BY v;"
SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
  long count = atol(argv[1]);
  struct timespec from, to;
  clock_gettime(CLOCK_MONOTONIC, &from);
  for (long i = 0; i < count; i++) syscall(SYS_getppid);
  clock_gettime(CLOCK_MONOTONIC, &to);
  printf("%.1f\n", ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / count);
  return 0;
}
"""


def measure(bench):
    if bench.wants("syscalls.each") or bench.wants("syscalls.each-native"):
        each(bench)
    if bench.wants("syscalls.added"):
        added(bench)


def each(bench):
    (bench.work / "many.c").write_text(SOURCE)
    run(["gcc", "-O1", "-g", "-o", "many", "many.c"], bench.work)
    program = ["./many", str(int(bench.sizes.call_millions * 1e5))]
    for _ in range(bench.sizes.rounds):
        bench.add("syscalls.each-native", float(run(program, bench.work).stdout.split()[0]))
        recorded = [HINDSIGHT, "record", "-o", "many", "-f", "main", "--syscalls", "--", *program]
        bench.add("syscalls.each", float(run(recorded, bench.work).stdout.split()[0]))
        shutil.rmtree(bench.work / "many.hindsight")


def added(bench):
    (bench.work / "lines").write_text("".join(f"{n * 7919 % 1000003}\n" for n in range(300_000)))
    repository = bench.work / "repository"
    git = ["git", "-C", repository, "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    run(["git", "init", "-q", repository], bench.work)
    for number in range(200):
        run([*git, "commit", "-q", "--allow-empty", "-m", f"number {number}"], bench.work)
    programs = {
        "sort": ["sort", "lines", "-o", "sorted"],
        "sqlite3": ["sqlite3", "table.db", "DROP TABLE IF EXISTS t; CREATE TABLE t AS " + NUMBERS],
        "git": [*git, "log", "--stat"],
    }
    took = {name: ([], []) for name in programs}
    for _ in range(bench.sizes.rounds):
        for name, program in programs.items():
            for options, times in zip(([], ["--syscalls"]), took[name]):
                run([HINDSIGHT, "record", "-o", "rec", *options, "--", *program], bench.work)
                times.append(info(bench.work)["duration_ns"])
                shutil.rmtree(bench.work / "rec.hindsight")
    shares = {name: (statistics.median(with_calls) / statistics.median(plain) - 1) * 100 for name, (plain, with_calls) in took.items()}
    bench.add("syscalls.added", max(shares.values()))
    bench.note("syscalls.added", "the most of " + ", ".join(f"{name} {share:.1f} %" for name, share in shares.items()))
