"""One process of a cluster of Ballista's wheel: `node.py scheduler HOST PORT` or `node.py executor HOST PORT SCHEDULER-HOST
SCHEDULER-PORT`. Writes its log on stderr until it is ended."""

import logging
import sys

from ballista import BallistaExecutor, BallistaScheduler

logging.basicConfig(level=logging.INFO)
what, host, port, *scheduler = sys.argv[1:]
if what == "scheduler":
    node = BallistaScheduler(host, int(port))
else:
    # One task at a time: two tasks of a stage are never both in one executor while the other has none.
    node = BallistaExecutor(int(port), host, scheduler[0], int(scheduler[1]), 1)
node.start()
node.wait_for_termination()
