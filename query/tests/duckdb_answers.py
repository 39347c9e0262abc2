"""Answers questions with DuckDB over the Parquet files of a recording, one JSON line per row.

Reads from standard input a JSON object: "calls", a pattern of files; "functions", rows of id, name and file;
"questions", a list of SQL. Writes a line "---" after each answer.
"""

import json
import sys

import duckdb


def main():
    asked = json.load(sys.stdin)
    db = duckdb.connect()
    db.execute(f"CREATE VIEW parts AS FROM read_parquet('{asked['calls']}')")
    db.execute("CREATE TABLE functions (function_id INTEGER, function VARCHAR, file VARCHAR)")
    db.executemany("INSERT INTO functions VALUES (?, ?, ?)", asked["functions"])
    db.execute(
        """CREATE VIEW calls AS
        SELECT parts.*, functions.function, functions.file, parent_seq AS parent,
               CASE WHEN dur_ns < 0 THEN -1 ELSE dur_ns - child_ns END AS self_ns,
               CASE WHEN rax & 4294967295 >= 2147483648 THEN (rax & 4294967295) - 4294967296
                    ELSE rax & 4294967295 END AS ret
        FROM parts JOIN functions USING (function_id)"""
    )
    for question in asked["questions"]:
        for row in db.execute(question).fetchall():
            print(json.dumps([float(v) if isinstance(v, float) else v for v in row], default=int))
        print("---")


if __name__ == "__main__":
    main()
