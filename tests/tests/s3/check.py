"""Compares what was exported to a bucket with what was exported to a folder: the bytes or the rows of each object, and what
DuckDB answers from both. Arguments: the store's address, the bucket, the prefix, the folder. Prints what it found as JSON."""

import io
import json
import os
import sys

import boto3
import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import S3FileSystem

endpoint, bucket, prefix, folder = sys.argv[1:]
client = boto3.client("s3", endpoint_url=endpoint)
found = {}
for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix + "/"):
    for entry in page.get("Contents", []):
        body = client.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
        found[entry["Key"][len(prefix) + 1 :]] = body
files = {}
for at, _, names in os.walk(folder):
    for name in names:
        path = os.path.join(at, name)
        with open(path, "rb") as file:
            files[os.path.relpath(path, folder)] = file.read()
questions = [
    "select run, count(*), count(distinct function), min(start_seq), max(end_seq) from calls group by run order by run",
    "select run, function, count(*) as n from calls group by run, function order by run, n desc, function",
    "select args, ret_text from calls where function = 'fib' order by run, start_seq limit 10",
]


def answers(calls):
    duckdb.register("calls", calls)
    return [duckdb.sql(question).fetchall() for question in questions]


def same_rows(a, b):
    duckdb.register("a", pq.read_table(io.BytesIO(a)))
    duckdb.register("b", pq.read_table(io.BytesIO(b)))
    rest = "select count(*) from (from {} except all from {})"
    return [duckdb.sql(rest.format(*pair)).fetchall()[0][0] for pair in ["ab", "ba"]] == [0, 0]


def dataset(filesystem, table):
    at = f"{bucket}/{prefix}" if filesystem else folder
    return ds.dataset(f"{at}/table={table}", filesystem=filesystem, partitioning="hive")


store = S3FileSystem(endpoint_override=endpoint, scheme="http", region="us-east-1")
in_bucket = dataset(store, "calls")
in_folder = dataset(None, "calls")
print(
    json.dumps(
        {
            "objects": len(found),
            "names": sorted(found) == sorted(files),
            # Rows of some tables come in any order.
            "rows": all(found[name] == files[name] or same_rows(found[name], files[name]) for name in files),
            "same": sum(found[name] == files[name] for name in files),
            "largest": max(len(body) for body in found.values()),
            "answers": answers(in_bucket) == answers(in_folder),
            "calls": in_bucket.count_rows(),
            "uploads": len(client.list_multipart_uploads(Bucket=bucket).get("Uploads", [])),
        }
    )
)
