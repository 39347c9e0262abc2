"""How long does value(seq, EXPRESSION) over consecutive entries of a function take, by the kind of expression?

Usage: python3 tests/bench/values.py [THOUSAND-ROWS] [ROUNDS]     (1000 rows by the thousand, 3 rounds by default; needs gcc, and the
       binary that HINDSIGHT_BIN names or target/release/hindsight)
tests/bench/queue.c is recorded without captures, with --regs, with --regs --stack, with all captures, with copies of memory and with a
watched variable of push's caller. Each query counts the rows and the known values, in the order of seq. The seconds are those of the
whole command: wall time and processor time (user and system), medians of the rounds.
"""

import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HINDSIGHT = pathlib.Path(os.environ.get("HINDSIGHT_BIN", ROOT / "target/release/hindsight"))
ROWS = int(float(sys.argv[1] if len(sys.argv) > 1 else "1000") * 1000)
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
CAPTURES = ["--regs", "--stack", "256", "--strings", "--watch", "queue.len", "--watch", "push::p->x"]
RECORDINGS = {
    "plain": [],
    "regs": ["--regs"],
    "stack": ["--regs", "--stack", "256"],
    "all": CAPTURES,
    "copies": ["--snapshot", "every=5000events"],
    "caller": ["-f", "fill", "--watch", "fill::local"],
}
# Recording, place of the event, expression, kind of expression.
QUESTIONS = [
    ("plain", "start_seq", "a", "a parameter in a register"),
    ("plain", "start_seq", "a + 1", "a sum with one"),
    ("plain", "start_seq", "queue.len", "a global structure's member, never captured"),
    ("all", "start_seq", "queue.len", "the same, watched"),
    ("copies", "start_seq", "queue.len", "the same, copied at times"),
    ("stack", "start_seq", "on_stack", "a parameter on the stack"),
    ("stack", "end_seq", "local", "a variable of the caller, on the stack"),
    ("caller", "end_seq", "local", "the same, watched"),
    ("all", "start_seq", "p->x", "behind a pointer, watched"),
    ("copies", "start_seq", "p->x", "behind a pointer, copied at times"),
    ("regs", "start_seq", "$rbx", "a register"),
    ("all", "start_seq", "name", "a text, captured"),
    ("plain", "start_seq", "name", "a text among constants"),
]


def record(work, program, name, options):
    command = [HINDSIGHT, "record", "-o", name, "-f", "push", *options, "--", program, str(ROWS)]
    subprocess.run(command, cwd=work, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ask(work, name, at, expression):
    """Wall time, processor time, rows, known rows."""
    sql = f"SELECT count(*), count(v) FROM (SELECT value({at}, '{expression}') AS v FROM calls WHERE function = 'push' ORDER BY {at})"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    command = [HINDSIGHT, "sql", name, sql, "--format", "csv"]
    answer = subprocess.run(command, cwd=work, capture_output=True, text=True, check=True)
    wall = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    rows, known = answer.stdout.split()[1].split(",")
    if int(rows) != ROWS:
        sys.exit(f"{rows} rows of {ROWS}: {sql}")
    return wall, used, int(known)


def main():
    if not HINDSIGHT.exists():
        sys.exit(f"there is no {HINDSIGHT}; build it, or name it in HINDSIGHT_BIN")
    work = pathlib.Path(tempfile.mkdtemp(prefix="hindsight-values-"))
    try:
        program = work / "queue"
        source = ROOT / "tests/bench/queue.c"
        subprocess.run(["gcc", "-O0", "-g", "-o", program, source], check=True)
        for name, options in RECORDINGS.items():
            record(work, program, name, options)
        print(f"{ROWS:,} rows, {ROUNDS} rounds\n")
        print("| recorded with | expression | what | known rows | s | s of processors |\n|---|---|---|---|---|---|")
        for name, at, expression, what in QUESTIONS:
            asked = [ask(work, name, at, expression) for _ in range(ROUNDS)]
            wall, used = (statistics.median(one[place] for one in asked) for place in (0, 1))
            options = " ".join(RECORDINGS[name]) or "nothing"
            print(f"| {options} | `{expression}` | {what} | {asked[0][2]:,} | {wall:.2f} | {used:.2f} |", flush=True)
    finally:
        shutil.rmtree(work)


main()
