"""How expensive is a distributed engine compared with the recordings themselves and DuckDB, and are its answers the same?

Usage: python3 tests/bench/ballista.py build FOLDER
       VENV/bin/python tests/bench/ballista.py ask RECORDINGS [FOLDER] [--rounds N] [--wheel]
`build` makes FOLDER/bin: Ballista's published scheduler and executor for the DataFusion version that Hindsight uses, and a client
(ballista_client.rs). It needs a Rust toolchain, compiles 340 crates almost without optimization and takes 3 GB of disk. `ask` exports
a folder of recordings to a folder and to a bucket of moto, and queries both through a cluster of one scheduler and two executors on
loopback addresses, whose programs are in FOLDER/bin; with --wheel, a cluster of Ballista's wheel also queries the folder. VENV has
moto[server,s3]==5.2.5, boto3, duckdb==2.0.0 and, for --wheel, the packages that tests/tests/export_ballista.rs installs. HINDSIGHT_BIN
names the binary; the default is target/release/hindsight. Each figure is from the run with the median time: wall seconds, processor
seconds (of the client; of the cluster), and the peak memory of the client and of the two executors together.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HINDSIGHT = pathlib.Path(os.environ.get("HINDSIGHT_BIN", ROOT / "target/release/hindsight"))
sys.path.insert(0, str(ROOT / "tests/tests/ballista"))
from cluster import Binaries, Wheel, tables  # noqa: E402

VERSION = "55.0.0"
# The adaptive planner of 55.0.0 fails if a query groups and sorts by a partition column, which is a dictionary: "RowConverter column
# schema mismatch, expected Dictionary(UInt16, Utf8) got Utf8".
SETTINGS = {Wheel: [], Binaries: ["SET ballista.planner.adaptive.enabled = false"]}
PUBLISHED = ["ballista-scheduler", "ballista-executor"]
QUESTIONS = {
    "calls of each run": "SELECT run, count(*) AS calls FROM calls GROUP BY run ORDER BY run",
    "longest and total time of each function": """SELECT function, count(*) AS calls, max(dur_ns) AS longest_ns, CAST(sum(dur_ns) AS BIGINT) AS total_ns
        FROM calls GROUP BY function ORDER BY total_ns DESC, function""",
    "a function's time by the label `build`, joined with `runs`": """SELECT r.labels LIKE '%"build":"b1"%' AS b1, count(*) AS calls,
        CAST(sum(c.dur_ns) AS BIGINT) AS total_ns FROM calls c JOIN runs r ON c.run = r.run WHERE c.function = 'sqlite3VdbeExec' GROUP BY 1 ORDER BY 1""",
    "functions of one run": "SELECT function, count(*) AS calls FROM calls WHERE run = '{run}' GROUP BY function ORDER BY calls DESC, function",
}
DUCKDB = """import duckdb, json, sys
for table in ("calls", "runs"):
    duckdb.sql(f"CREATE VIEW {table} AS FROM read_parquet('{sys.argv[1]}/table={table}/**/*.parquet', hive_partitioning = true)")
answer = duckdb.sql(sys.argv[2])
print(json.dumps([dict(zip(answer.columns, row)) for row in answer.fetchall()]))"""
# Quick to compile; the crates that read and decompress Parquet are optimized, their C code fully.
OPTIMIZED = {"zstd-sys": 3, "libmimalloc-sys": 3, "arrow-select": 1, "arrow-buffer": 1, "arrow-array": 1, "parquet": 1, "hashbrown": 1}
PROFILE = "[profile.dev]\ndebug = false\nincremental = false\n"
PROFILE += "".join(f"[profile.dev.package.{name}]\nopt-level = {level}\n" for name, level in OPTIMIZED.items())


def build(folder):
    """Compiles the published crates and the client as one workspace, so that shared crates are compiled once."""
    folder.mkdir(parents=True, exist_ok=True)
    client = folder / "client"
    (client / "src").mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "tests/bench/ballista_client.rs", client / "src/main.rs")
    needs = [f'{name} = "={VERSION}"' for name in PUBLISHED]
    needs += [f'ballista = {{ version = "={VERSION}", default-features = false }}']
    needs += [f'ballista-core = {{ version = "={VERSION}", features = ["build-binary"] }}']
    needs += ['datafusion = "55"', 'tokio = { version = "1", features = ["full"] }']
    package = '[package]\nname = "ballista-client"\nversion = "0.0.0"\nedition = "2024"\n\n[dependencies]\n'
    (client / "Cargo.toml").write_text(package + "\n".join(needs) + "\n")
    workspace = folder / "Cargo.toml"
    workspace.write_text('[workspace]\nresolver = "3"\nmembers = ["client"]\n')
    listed = subprocess.run(["cargo", "metadata", "--format-version", "1"], cwd=folder, check=True, stdout=subprocess.PIPE).stdout
    sources = {one["name"]: pathlib.Path(one["manifest_path"]).parent for one in json.loads(listed)["packages"] if one["version"] == VERSION}
    for name in PUBLISHED:
        if sources[name] != folder / name:
            shutil.copytree(sources[name], folder / name, dirs_exist_ok=True)
    members = json.dumps([*PUBLISHED, "client"])
    patched = "\n".join(f'{name} = {{ path = "{name}" }}' for name in PUBLISHED)
    workspace.write_text(f'[workspace]\nresolver = "3"\nmembers = {members}\n[patch.crates-io]\n{patched}\n{PROFILE}')
    programs = [*PUBLISHED, "ballista-client"]
    target = folder / "target"
    command = ["cargo", "build", "--target-dir", target, *(word for name in programs for word in ("--bin", name))]
    subprocess.run(command, cwd=folder, check=True)
    (folder / "bin").mkdir(exist_ok=True)
    for name in programs:
        shutil.copy(target / "debug" / name, folder / "bin" / name)


def processor_s(pid):
    """The processor time of a process in seconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mb(pid):
    """The peak memory of a process since `forget_peak`."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000


def forget_peak(pid):
    """Begins a new peak (proc(5): clear_refs)."""
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")


def measured(command, env=None, cluster=None):
    """Output, seconds, processor seconds of the command and of the cluster, peak memory of both in MB."""
    pids = [process.pid for _, process in cluster.processes] if cluster else []
    for pid in pids:
        forget_peak(pid)
    before = sum(map(processor_s, pids))
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen(command, stdout=output, env=env)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.monotonic() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            sys.exit(f"{command}: {child.returncode}")
        output.seek(0)
        said = output.read()
    executors = sum(map(peak_mb, pids[1:]))
    return said, wall, used.ru_utime + used.ru_stime, sum(map(processor_s, pids)) - before, used.ru_maxrss / 1000, executors


class Engines:
    """The engines, each a function from a query to rows and figures; `expected` has the recordings' answers."""

    def __init__(self, rounds):
        self.rounds = rounds
        self.expected = {}
        self.cells = {}

    def run(self, engine, ask, questions):
        """Runs every query on one engine, in rounds, and compares the answers."""
        for title, question in questions.items():
            taken = sorted((ask(question) for _ in range(self.rounds)), key=lambda one: one[1])
            rows, wall, own, theirs, memory, executors = taken[len(taken) // 2]
            if rows != self.expected.setdefault(title, rows):
                sys.exit(f"{engine} answers otherwise: {title}\n{rows[:5]}\n{self.expected[title][:5]}")
            cluster = f" and {theirs:.1f} s, {executors:.0f} MB in the executors" if executors else ""
            self.cells[title, engine] = f"{wall:.1f} s, {own:.1f} s, {memory:.0f} MB{cluster}"
            print(f"{engine} | {title} | {len(rows)} rows | {self.cells[title, engine]}", flush=True)


def export(to, env):
    """Exports the two queried tables."""
    command = [HINDSIGHT, "export", *sorted(RECORDINGS.glob("*.hindsight")), "--table", "calls", "--table", "runs", "--to", to]
    _, wall, own, _, memory, _ = measured(command, env)
    print(f"export to {to}: {wall:.0f} s, {own:.0f} s of the processors, {memory:.0f} MB", flush=True)


def ask_cluster(engines, engine, cluster, place, questions, env):
    """Queries a cluster, and prints how the tasks were distributed among its executors."""
    with cluster:
        made = [*SETTINGS[type(cluster)], *tables(place)]

        def ask(question):
            said, *figures = measured(cluster.client([*made, question]), env, cluster)
            return json.loads(said.splitlines()[-1]), *figures

        engines.run(engine, ask, questions)
        tasks = [[sum(stage[index] for stage in job["stages"].values()) for index in (0, 1)] for job in cluster.jobs()]
        print(f"{engine}: tasks of the two executors in each question: {tasks}", flush=True)


def main():
    """Exports, starts the store, and queries every engine."""
    names = sorted(path.name.removesuffix(".hindsight") for path in RECORDINGS.glob("*.hindsight"))
    questions = {title: text.format(run=names[len(names) // 2]) if "{run}" in text else text for title, text in QUESTIONS.items()}
    work = pathlib.Path(tempfile.mkdtemp(prefix="hindsight-ballista-"))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([sys.executable, ROOT / "tests/tests/s3/server.py"], text=True, **pipes)
    try:
        endpoint = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1"}
        keys |= {"AWS_ENDPOINT_URL": endpoint, "AWS_ENDPOINT": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_EC2_METADATA_DISABLED": "true"}
        env = {**os.environ, **keys}
        make = "import boto3; boto3.client('s3').create_bucket(Bucket='lake')"
        subprocess.run([sys.executable, "-c", make], env=env, check=True)
        export(work / "lake", env)
        engines = Engines(OPTIONS.rounds)

        def recordings(question):
            said, *figures = measured([HINDSIGHT, "sql", RECORDINGS, question, "--json"])
            return json.loads(said)["result"], *figures

        def duckdb(question):
            said, *figures = measured([sys.executable, "-c", DUCKDB, work / "lake", question])
            return json.loads(said), *figures

        engines.run("hindsight sql", recordings, questions)
        engines.run("DuckDB", duckdb, questions)
        if OPTIONS.wheel:
            ask_cluster(engines, "Ballista, wheel", Wheel(work / "wheel", env), work / "lake", questions, env)
        if OPTIONS.folder:
            programs = OPTIONS.folder.resolve() / "bin"
            ask_cluster(engines, "Ballista, crates", Binaries(work / "crates", programs, env), work / "lake", questions, env)
            export("s3://lake/runs", env)
            ask_cluster(engines, "Ballista, crates, s3", Binaries(work / "s3", programs, env), "s3://lake/runs", questions, env)
        used = list(dict.fromkeys(engine for _, engine in engines.cells))
        print("\n| question | " + " | ".join(used) + " |\n|---" + "|---" * len(used) + "|")
        for title in questions:
            print(f"| {title} | " + " | ".join(engines.cells[title, engine] for engine in used) + " |")
    finally:
        server.stdin.close()
        server.wait()
        shutil.rmtree(work)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
commands = parser.add_subparsers(dest="command", required=True)
commands.add_parser("build").add_argument("folder", type=pathlib.Path)
asking = commands.add_parser("ask")
asking.add_argument("recordings", type=pathlib.Path)
asking.add_argument("folder", type=pathlib.Path, nargs="?")
asking.add_argument("--rounds", type=int, default=3)
asking.add_argument("--wheel", action="store_true")
OPTIONS = parser.parse_args()
if OPTIONS.command == "build":
    build(OPTIONS.folder.resolve())
else:
    RECORDINGS = OPTIONS.recordings.resolve()
    main()
