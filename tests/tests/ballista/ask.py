"""Asks a cluster of Ballista questions about an exported folder. Arguments: that folder, a folder for logs; on stdin the questions as JSON.
Prints as JSON the answer to each, which runs' files its plan names, and how many tasks of each stage either executor finished."""

import json
import sys

from ballista import BallistaSessionContext
from cluster import SCHEDULER, Wheel

lake, logs = sys.argv[1:]
questions = json.load(sys.stdin)
with Wheel(logs) as cluster:
    # As many tasks on any machine.
    settings = {"datafusion.execution.target_partitions": "4"}
    context = BallistaSessionContext(f"df://{SCHEDULER}:{cluster.port}", cluster_config=settings)
    for table in ("calls", "runs"):
        context.sql(f"CREATE EXTERNAL TABLE {table} STORED AS PARQUET PARTITIONED BY (run) LOCATION '{lake}/table={table}/'")
    answers = [context.sql(question).to_arrow_table().to_pylist() for question in questions]
    told = [{"rows": rows, **job} for rows, job in zip(answers, cluster.jobs(), strict=True)]
print(json.dumps(told))
