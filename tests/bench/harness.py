"""Common parts of the measurements of `run`: rows with their goals, figures that are printed as they are measured, tools.

Each measurement is a module with ROWS, all its figures, and `measure (bench)`, which adds figures to the selected rows. It is
independent of the others, and leaves no files except cargo's.
"""

import dataclasses
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HINDSIGHT = pathlib.Path(os.environ.get("HINDSIGHT_BIN", ROOT / "target/release/hindsight"))
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
FRIDA_VERSION = "17.25.2"
FRIDA = CACHE / f"hindsight/frida-{FRIDA_VERSION}"


class Failed(Exception):
    """A measurement that is impossible, or whose figure would be meaningless."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    what: str
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    needs: tuple[str, ...] = ("hindsight",)

    def is_missed_by(self, value):
        """Whether there is a goal and `value` does not reach it."""
        over = self.at_most is not None and value > self.at_most
        return over or (self.at_least is not None and value < self.at_least)

    def goal(self):
        """The goal in words; empty if there is none."""
        if self.at_most is not None:
            return f"at most {self.at_most:g}"
        return "" if self.at_least is None else f"at least {self.at_least:g}"


@dataclasses.dataclass
class Sizes:
    """The sizes of the measurements."""

    call_millions: float
    memory_millions: float
    seal_millions: float
    log_mib: int
    question_calls: int
    idle_s: float
    rounds: int


class Bench:
    """The selected rows, the working folder, and the figures so far."""

    def __init__(self, rows, sizes, work):
        self.rows = {row.name: row for row in rows}
        self.sizes = sizes
        self.work = work
        self.figures = {row.name: [] for row in rows}
        self.notes = {}

    def wants(self, name):
        """Whether a row is selected."""
        return name in self.rows

    def add(self, name, value):
        """Adds a figure to a row and prints it; ignores rows that are not selected."""
        if not self.wants(name):
            return
        self.figures[name].append(value)
        count = len(self.figures[name])
        print(f"{name:26} {shown(value):>10} {self.rows[name].unit:12} ({count})", flush=True)

    def note(self, name, text):
        """Adds a note to a row's figure."""
        self.notes[name] = text

    def table(self):
        """The rows with figures, as Markdown."""
        lines = ["| row | what | median (least - most) | goal | |", "|---|---|---|---|---|"]
        for name, values in self.figures.items():
            if not values:
                continue
            row, median = self.rows[name], statistics.median(values)
            spread = f" ({shown(min(values))} - {shown(max(values))})" if len(values) > 1 else ""
            marks = (self.notes.get(name), "MISSED" if row.is_missed_by(median) else None)
            mark = ", ".join(filter(None, marks))
            lines.append(f"| {name} | {row.what} | {shown(median)}{spread} {row.unit} | {row.goal()} | {mark} |")
        return "\n".join(lines)


def shown(value):
    """A figure with three digits, or all digits before the decimal point if there are more."""
    for limit, digits in ((0, 0), (1, 3), (10, 2), (100, 1)):
        if value == 0 or (limit and abs(value) < limit):
            return f"{value:.{digits}f}"
    return f"{value:,.0f}"


def run(command, cwd, **options):
    """Runs a command that must succeed; returns what it printed, as a completed process."""
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, **options)
    if result.returncode:
        words = " ".join(map(str, command))
        raise Failed(f"{words}: {result.returncode}\n{result.stderr}")
    return result


def record(cwd, arguments, program):
    """Records a program as `rec`; returns what it printed, and the summary."""
    shutil.rmtree(cwd / "rec.hindsight", ignore_errors=True)
    result = run([HINDSIGHT, "record", "--json", "-o", "rec", *arguments, "--", *program], cwd)
    return result.stdout, json.loads(result.stderr.splitlines()[-1])["result"]


def info(cwd):
    """The output of `hindsight info` for the recording `rec`."""
    return json.loads(run([HINDSIGHT, "info", "rec", "--json"], cwd).stdout)["result"]


def sql(cwd, question):
    """The single number that a query on the recording `rec` returns."""
    return int(run([HINDSIGHT, "sql", "rec", question, "--format", "csv"], cwd).stdout.split()[1])


def check_nothing_was_lost(cwd, calls):
    """Calls that are not recorded cost nothing: fails if one is missing."""
    seen = sql(cwd, "SELECT count(*) FROM calls WHERE function = 'work' AND NOT unwound")
    gaps = sql(cwd, "SELECT count(*) FROM gaps")
    if (seen, gaps) != (calls, 0):
        raise Failed(f"{seen:,} of {calls:,} calls were recorded, with {gaps} gaps: the figure would mean nothing")


def folder_bytes(folder):
    """The total length of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def cargo_built(kind, package, name):
    """Builds one of a crate's examples or benches, with the features of a build of the whole workspace; returns its path."""
    command = ["cargo", "bench" if kind == "bench" else "build", "--workspace", f"--{kind}", name]
    command += ["--no-run"] if kind == "bench" else ["--release"]
    print(f"{' '.join(command)} ({package})", flush=True)
    messages = run([*command, "--message-format", "json"], ROOT).stdout.splitlines()
    for message in map(json.loads, messages):
        target = message.get("target", {})
        if message.get("executable") and (target.get("name"), target.get("kind")) == (name, [kind]):
            return message["executable"]
    raise Failed(f"cargo built no {kind} {name}")


def duckdb_python():
    """A Python that has DuckDB: this one, or the one that the tests of `query` install; None if neither has it."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    for python in (sys.executable, target / "tmp/duckdb-venv/bin/python"):
        try:
            if subprocess.run([python, "-c", "import duckdb"], capture_output=True, check=False).returncode == 0:
                return python
        except OSError:
            pass
    return None


def has_frida():
    """Whether the Frida to measure is in Hindsight's folder for it."""
    asked = [sys.executable, "-c", "import frida; print(frida.__version__)"]
    environment = os.environ | {"PYTHONPATH": str(FRIDA)}
    answer = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
    return answer.stdout.strip() == FRIDA_VERSION


# The tools that rows need: how to find each, and what to do if it is missing.
TOOLS = {
    "hindsight": (HINDSIGHT.exists, f"there is no {HINDSIGHT}; run cargo build --release, or name the binary in HINDSIGHT_BIN"),
    "cargo": (lambda: shutil.which("cargo"), "there is no cargo; install the Rust toolchain that Cargo.toml names"),
    "gcc": (lambda: shutil.which("gcc"), "there is no gcc; run apt install gcc"),
    "uftrace": (lambda: shutil.which("uftrace"), "there is no uftrace; run apt install uftrace"),
    "frida": (has_frida, f'{FRIDA} has no frida {FRIDA_VERSION} for {sys.executable}; run "{HINDSIGHT} setup"'),
    "duckdb": (
        duckdb_python,
        f"neither {sys.executable} nor the tests' environment has DuckDB; run python3 -m venv VENV && VENV/bin/pip install "
        "duckdb==2.0.0 && VENV/bin/python tests/bench/run",
    ),
}


def versions():
    """The processor, the kernel and the version of each tool that figures depend on, one per line."""
    model = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    told = [f"{len(os.sched_getaffinity(0))} x {model[1] if model else 'unknown processor'}, Linux {platform.release()}"]
    duckdb = [duckdb_python() or sys.executable, "-c", "import duckdb; print('DuckDB', duckdb.__version__)"]
    for command in ([HINDSIGHT, "--version"], ["gcc", "--version"], ["uftrace", "--version"], ["gdb", "--version"], duckdb):
        try:
            answer = subprocess.run(command, capture_output=True, text=True, check=False)
            told += answer.stdout.splitlines()[:1]
        except OSError:
            told.append(f"{command[0]}: not installed")
    if has_frida():
        told.append(f"Frida {FRIDA_VERSION}")
    return "\n".join(told)


def check_tools(rows):
    """If a tool is missing, fails with a list of the rows that cannot be measured and what to install for them."""
    problems = []
    for tool, (is_there, advice) in TOOLS.items():
        in_need = [row.name for row in rows if tool in row.needs]
        if in_need and not is_there():
            problems.append(f"{advice}\n    without it there is no {', '.join(in_need)}")
    if problems:
        raise Failed("\n".join(problems))
