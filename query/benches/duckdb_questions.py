"""How long does DuckDB take for the questions of questions.sql, on the same Parquet files?

Usage: python3 -m venv VENV && VENV/bin/pip install duckdb==2.0.0
       VENV/bin/python duckdb_questions.py target/tmp/questions-10000000.hindsight
Run `cargo bench -p query` first: it makes the recording. Prints the median of nine warm runs in ms. DuckDB takes all processors that this
process may run on, as Hindsight does, and its answers stay in its own columns: no time goes into Python objects.
"""

import os
import statistics
import sys
import time

import duckdb

RUNS = 9

CALLS = "calls c JOIN functions f USING (function_id)"

QUESTIONS = {
    "sums per function": f"""
        SELECT f.name, count(*), sum(dur_ns) AS total_ns, sum(dur_ns - child_ns), min(dur_ns), max(dur_ns)
        FROM {CALLS} GROUP BY f.name ORDER BY total_ns DESC""",
    "top 10 functions by total time": f"""
        SELECT f.name, sum(dur_ns) AS total_ns FROM {CALLS} GROUP BY f.name ORDER BY total_ns DESC LIMIT 10""",
    "last call of f": f"""
        SELECT start_seq, ts_ns, dur_ns, a0, rax FROM {CALLS} WHERE f.name = 'module_03::function_077'
        ORDER BY start_seq DESC LIMIT 1""",
    "max(start_seq) of f": f"""
        SELECT max(start_seq) FROM {CALLS} WHERE f.name = 'module_03::function_077'""",
    "ret = -1 and name = f": f"""
        SELECT start_seq, ts_ns, dur_ns, a0 FROM {CALLS}
        WHERE rax = 4294967295 AND f.name = 'module_03::function_075'""",
    "lag() over f": f"""
        SELECT max(gap_ns), avg(gap_ns) FROM
        (SELECT ts_ns - lag(ts_ns) OVER (ORDER BY start_seq) AS gap_ns FROM {CALLS}
         WHERE f.name = 'module_03::function_075') AS t""",
    "p99 per function": f"""
        SELECT f.name, quantile_cont(dur_ns, 0.99) AS p99 FROM {CALLS} GROUP BY f.name ORDER BY p99 DESC""",
    "one known seq": f"""
        SELECT start_seq, end_seq, f.name, dur_ns, a0, rax FROM {CALLS} WHERE start_seq IN (10000001, 10000002)""",
    "calls of a 1,000-seq range": f"""
        SELECT start_seq, end_seq, f.name, dur_ns, a0, rax FROM {CALLS}
        WHERE start_seq BETWEEN 9000000 AND 9000999 ORDER BY start_seq""",
    "names by pattern": f"""
        SELECT f.name, count(*) FROM {CALLS}
        WHERE f.name LIKE '%function_1%' AND f.file <> 'src/file9.c' GROUP BY f.name""",
    "slow calls": f"""
        SELECT f.name, tid, ts_ns, dur_ns, a0, rax FROM {CALLS} ORDER BY dur_ns DESC LIMIT 20""",
    "count": "SELECT count(*) FROM calls",
}


def function_name(number):
    if number % 10 == 9:
        return f"shared_{number // 100}"
    return f"module_{number // 25:02}::function_{number:03}"


def main():
    columns = sys.argv[1] + "/columns"
    print(f"DuckDB {duckdb.__version__}, {len(os.sched_getaffinity(0))} threads")
    db = duckdb.connect()
    db.execute(f"SET threads = {len(os.sched_getaffinity(0))}")
    db.execute("SET parquet_metadata_cache = true")
    db.execute(f"CREATE VIEW calls AS FROM read_parquet('{columns}/calls-*.parquet')")
    db.execute("CREATE TABLE functions (function_id INTEGER, name VARCHAR, file VARCHAR)")
    rows = [(n, function_name(n), f"src/file{n // 12}.c") for n in range(300)]
    db.executemany("INSERT INTO functions VALUES (?, ?, ?)", rows)
    for title, sql in QUESTIONS.items():
        times_ms = []
        cpu = time.process_time()
        for _ in range(RUNS):
            begun = time.perf_counter()
            answer = db.sql(sql).materialize()
            times_ms.append((time.perf_counter() - begun) * 1e3)
        cpu_ms = (time.process_time() - cpu) * 1e3 / RUNS
        print(f"{statistics.median(times_ms):9.2f} ms, cpu {cpu_ms:9.2f} ms, {len(answer.fetchall()):9} rows  {title}", flush=True)


if __name__ == "__main__":
    main()
