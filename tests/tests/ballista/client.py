"""Asks a Ballista scheduler through the wheel: the words are its URL and statements, and the rows of each come as JSON on a line."""

import json
import sys

from ballista import BallistaSessionContext

url, *statements = sys.argv[1:]
# As many tasks on any machine.
context = BallistaSessionContext(url, cluster_config={"datafusion.execution.target_partitions": "4"})
for statement in statements:
    frame = context.sql(statement)
    is_question = not statement.startswith("CREATE")
    print(json.dumps(frame.to_arrow_table().to_pylist() if is_question else []))
