"""How long do queries take compared with DuckDB, on the same files? As measured by `tests/bench/run questions`.

`query/benches/questions.rs` makes the recording on its first run and answers `questions.sql`; `duckdb_questions.py` there runs the
same queries in DuckDB. Each prints the median of nine warm runs of each query: one series. The two take turns, and each ratio is
between two adjacent series.
"""

import os
import pathlib
import re

from harness import ROOT, Failed, Row, cargo_built, duckdb_python, run

NEEDS = ("cargo", "duckdb")
# A row's name, the query's title in both files, the goal of its ratio.
QUESTIONS = (
    ("sums", "sums per function", 1.0),
    ("top", "top 10 functions by total time", 1.5),
    ("last", "last call of f", 1.5),
    ("max-seq", "max(start_seq) of f", 1.5),
    ("ret", "ret = -1 and name = f", 1.5),
    ("lag", "lag() over f", 1.5),
    ("p99", "p99 per function", 1.5),
    ("one-seq", "one known seq", 1.5),
    ("range", "calls of a 1,000-seq range", 1.5),
    ("names", "names by pattern", 1.5),
    ("slow", "slow calls", 1.5),
    ("count", "count", None),
)
FIRST_ROW = "events of a 1,000-seq range"
ROWS = [
    *(Row(f"questions.{name}", f"{title}: time to DuckDB's", "x", at_most=goal, needs=NEEDS) for name, title, goal in QUESTIONS),
    Row("first-row.range", "first row of all columns of the events of a 1,000-seq range", "ms", at_most=20, needs=("cargo",)),
]
LINE = re.compile(r"^ *([\d.]+) ms, cpu .* rows  (.*)$", re.MULTILINE)
FIRST = re.compile(r"first rows +([\d.]+) ms, .* rows  (.*)$", re.MULTILINE)


def measure(bench):
    rows = [(f"questions.{name}", title) for name, title, _ in QUESTIONS if bench.wants(f"questions.{name}")]
    environment = os.environ | {"HINDSIGHT_CALLS": str(bench.sizes.question_calls)}
    ask = cargo_built("bench", "query", "questions")
    recording = cargo_tmp(ask) / f"questions-{bench.sizes.question_calls}.hindsight"
    if not recording.exists():
        print(f"making {recording}", flush=True)
    for _ in range(bench.sizes.rounds):
        text = run([ask], bench.work, env=environment).stdout
        first = {title: float(ms) for ms, title in FIRST.findall(text)}
        bench.add("first-row.range", first[FIRST_ROW])
        if rows:
            add_ratios(bench, rows, milliseconds(text), theirs(recording))


def theirs(recording):
    """One series of DuckDB."""
    script = ROOT / "query/benches/duckdb_questions.py"
    return milliseconds(run([duckdb_python(), script, recording], ROOT).stdout)


def milliseconds(text):
    """The medians by the titles of the queries."""
    return {title: float(ms) for ms, title in LINE.findall(text)}


def add_ratios(bench, rows, ours_ms, theirs_ms):
    """Adds the ratio of each query, with a note of both times in this series."""
    for name, title in rows:
        if title not in ours_ms or title not in theirs_ms:
            raise Failed(f"there is no answer to {title}: {ours_ms} {theirs_ms}")
        bench.add(name, ours_ms[title] / theirs_ms[title])
        bench.note(name, f"{ours_ms[title]:.1f} ms to {theirs_ms[title]:.1f} in the last series")


def cargo_tmp(executable):
    """Cargo's folder for files of tests and benches, next to the folder of `executable`."""
    return pathlib.Path(executable).resolve().parents[2] / "tmp"
