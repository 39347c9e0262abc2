"""Drives Hindsight from Python.

The program `hindsight` does all the work: this package sends requests to its socket and runs its commands. It must be on
the PATH, or named by the variable HINDSIGHT_BIN.
"""

from ._errors import HindsightError
from ._recording import Recording, record, sql
from ._session import Session, attach, start

__all__ = ["HindsightError", "Recording", "Session", "attach", "record", "sql", "start"]
