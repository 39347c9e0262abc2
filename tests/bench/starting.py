"""How long does it take to start recording a program? As measured by `tests/bench/run start armed`: whole commands, wall time.

Programs with AddressSanitizer are measured because the sanitizer reserves 16 TiB, which all code that reads mappings has to cope with."""

import os
import shutil
import subprocess
import time

from harness import HINDSIGHT, ROOT, Failed, Row, record, run

FUNCTIONS = 5000
CHILDREN = 10
NEEDS = ("hindsight", "gcc")
ROWS = [
    Row("start.true", "true", "s", needs=()),
    Row("start.record-true", "hindsight record -- true", "s", at_most=0.5),
    Row("start.children", f"hindsight record --children of a shell that runs true {CHILDREN} times", "s"),
    Row("start.record-asan", "hindsight record of a small program with AddressSanitizer", "s", at_most=5, needs=NEEDS),
    Row("start.start-asan", "hindsight start of the same, to the stop at its entry", "s", at_most=5, needs=NEEDS),
    Row("armed.5000", f"hindsight record of a program of {FUNCTIONS:,} functions, all armed, from start to end", "s", at_most=2, needs=NEEDS),
    Row("armed.processor", "the same, processor time of all that took part", "s", needs=NEEDS),
]


def measure(bench):
    is_asan_wanted = bench.wants("start.record-asan") or bench.wants("start.start-asan")
    if is_asan_wanted:
        run(["gcc", "-g", "-pthread", "-fsanitize=address", "-o", bench.work / "sanitized", ROOT / "fixtures/sanitized/sanitized.c"], bench.work)
    is_armed_wanted = bench.wants("armed.5000") or bench.wants("armed.processor")
    if is_armed_wanted:
        source = run(["sh", ROOT / "fixtures/many_functions/generate.sh", str(FUNCTIONS)], bench.work).stdout
        (bench.work / "many_functions.c").write_text(source)
        run(["gcc", "-O1", "-g", "-o", "many_functions", "many_functions.c"], bench.work)
    for _ in range(bench.sizes.rounds):
        if bench.wants("start.true"):
            bench.add("start.true", seconds(lambda: subprocess.run(["true"], check=True)))
        if bench.wants("start.record-true"):
            bench.add("start.record-true", seconds(lambda: record(bench.work, [], ["true"])))
        if bench.wants("start.children"):
            bench.add("start.children", seconds(lambda: recorded_children(bench)))
        if bench.wants("start.record-asan"):
            bench.add("start.record-asan", seconds(lambda: recorded_asan(bench)))
        if bench.wants("start.start-asan"):
            started_asan(bench)
        if is_armed_wanted:
            armed(bench)
    shutil.rmtree(bench.work / "rec.hindsight", ignore_errors=True)


def seconds(action):
    """The wall time."""
    begun = time.monotonic()
    action()
    return time.monotonic() - begun


def processor_seconds():
    """The processor time of all commands so far, and of the descendants that they waited for."""
    times = os.times()
    return times.children_user + times.children_system


def recorded_children(bench):
    shutil.rmtree(bench.work / "set.children", ignore_errors=True)
    loop = f"i=0; while [ $i -lt {CHILDREN} ]; do /bin/true; i=$((i + 1)); done"
    run([HINDSIGHT, "record", "--children", "-o", "set", "--", "sh", "-c", loop], bench.work)


def recorded_asan(bench):
    """Records the program with AddressSanitizer, which must end as it does natively."""
    ended = subprocess.run([HINDSIGHT, "record", "-o", bench.work / "asan", "--", "./sanitized"], cwd=bench.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    shutil.rmtree(bench.work / "asan.hindsight", ignore_errors=True)
    if ended.returncode != 25 or "result 7" not in ended.stdout:
        raise Failed(f"the program ended otherwise: {ended.returncode} {ended.stdout}{ended.stderr}")


def started_asan(bench):
    """Starts it under control. The benchmark has its own sessions and daemon."""
    folder = bench.work / "daemon"
    folder.mkdir(mode=0o700, exist_ok=True)
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}

    def command(*words):
        subprocess.run([HINDSIGHT, *words], cwd=bench.work, env=environment, check=True, stdout=subprocess.DEVNULL)

    bench.add("start.start-asan", seconds(lambda: command("start", "--stop-on-entry", "-o", "asan", "./sanitized")))
    command("stop")
    shutil.rmtree(bench.work / "asan.hindsight", ignore_errors=True)


def armed(bench):
    """Records the program with many functions; all must have been armed and called."""
    begun, used = time.monotonic(), processor_seconds()
    _, summary = record(bench.work, [], ["./many_functions"])
    bench.add("armed.5000", time.monotonic() - begun)
    bench.add("armed.processor", processor_seconds() - used)
    if summary["functions_armed"] < FUNCTIONS or summary["calls"] < 2 * FUNCTIONS:
        raise Failed(f"not all of {FUNCTIONS:,} functions were armed and called: {summary}")
