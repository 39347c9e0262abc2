# Stops at every hit of the places of the plan, in whatever thread, and says what gdb sees there.
import os
import sys
import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import alive, begin, plan
from describe import describe

begin()
for where, _, _ in plan():
    gdb.Breakpoint(where).silent = True
while True:
    gdb.execute("continue", to_string=True)
    if not alive():
        break
    describe(gdb.newest_frame())
