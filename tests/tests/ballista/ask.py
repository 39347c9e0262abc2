"""Asks a cluster of Ballista's wheel about an exported folder. Arguments: that folder, a folder for logs; on stdin the questions as JSON.
Prints as JSON the answer to each, which runs' files its plan names, and how many tasks of each stage either executor finished."""

import json
import sys

from cluster import Wheel, tables

lake, logs = sys.argv[1:]
made = tables(lake)
with Wheel(logs) as cluster:
    answers = cluster.ask(made + json.load(sys.stdin))[len(made) :]
    told = [{"rows": rows, **job} for rows, job in zip(answers, cluster.jobs(), strict=True)]
print(json.dumps(told))
