"""Recordings, and answers to SQL as rows, Arrow, pandas or polars."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import tempfile
from typing import Any, Optional, Sequence, Union

from . import _command
from ._errors import HindsightError
from ._session import Session, begun

PathLike = Union[str, "os.PathLike[str]"]


class Recording:
    """A recording by its name or folder. It is read by the program, so one that is being written can be asked too."""

    def __init__(self, path: PathLike):
        self.path = os.fspath(path)
        self.status: Optional[int] = None
        self.stderr: Optional[str] = None

    def rows(self, query: str) -> list[dict]:
        """Answers SQL as a list of dicts."""
        return rows([self.path], query)

    def arrow(self, query: str):
        """Answers SQL as a `pyarrow.Table`."""
        return arrow([self.path], query)

    def pandas(self, query: str):
        """Answers SQL as a `pandas.DataFrame`."""
        _needed("pandas", "pandas")
        return self.arrow(query).to_pandas()

    def polars(self, query: str):
        """Answers SQL as a `polars.DataFrame`."""
        return polars([self.path], query)

    def info(self) -> dict:
        """Returns what was recorded: the result of `hindsight info --json`."""
        return _command.reply(["info", self.path, "--json"])

    def overview(self) -> dict:
        """Returns what is worth knowing first: the result of `hindsight overview --json`."""
        return _command.reply(["overview", self.path, "--json"])

    def open(self) -> Session:
        """Opens the recording as a session: `goto`, `step_back`, `print`, `history`."""
        return begun(_command.reply(["open", "--json", self.path]))

    def __repr__(self) -> str:
        return f"Recording({self.path!r})"


def sql(recordings: Sequence[PathLike], query: str):
    """Answers SQL over several recordings, folders or patterns as a `pyarrow.Table`."""
    return arrow([os.fspath(path) for path in recordings], query)


def rows(recordings: Sequence[str], query: str) -> list[dict]:
    """Answers SQL as a list of dicts."""
    lines = _command.output(["sql", "--format", "jsonl", *recordings, query])
    return [json.loads(line) for line in lines.splitlines()]


def arrow(recordings: Sequence[str], query: str):
    """Answers SQL as a `pyarrow.Table`."""
    return _by_file(recordings, query, _needed("pyarrow.parquet", "arrow").read_table)


def polars(recordings: Sequence[str], query: str):
    """Answers SQL as a `polars.DataFrame`."""
    return _by_file(recordings, query, _needed("polars", "polars").read_parquet)


def _needed(library: str, extra: str) -> Any:
    """Imports a library that the package does not need itself."""
    try:
        return importlib.import_module(library)
    except ImportError as error:
        message = f"this needs the library {library.split('.')[0]}: {error}"
        hint = f"pip install 'hindsight[{extra}]', or ask for rows() instead"
        raise HindsightError("NO_LIBRARY", message, hint) from error


def _by_file(recordings: Sequence[str], query: str, read: Any) -> Any:
    with tempfile.TemporaryDirectory(prefix="hindsight-") as folder:
        file = os.path.join(folder, "answer.parquet")
        _command.output(["sql", *recordings, query, "-o", file])
        return read(file)


def record(command: Sequence[PathLike], *, output: Optional[PathLike] = None, options: Sequence[str] = (), **run: Any) -> Recording:
    """Records a program and returns its recording, which has the attributes `status`, the program's own, and `stderr`.

    `options` are those of `hindsight record`; `run` are those of `subprocess.run` for the program's input and output. The
    recording is `output`, or named after the program, with a number if that is taken.
    """
    words = [os.fspath(word) for word in command]
    named = [] if output is None else ["--output", os.fspath(output)]
    done = _command.run(["record", *options, *named, "--", *words], stderr=subprocess.PIPE, text=True, **run)
    # The last line of the command's own says what was recorded.
    said = re.findall(r"^hindsight: (.+\.hindsight): [\d,]+ call", done.stderr, re.MULTILINE)
    if not said:
        raise _command.failed(done.stderr)
    recording = Recording(said[-1])
    recording.status, recording.stderr = done.returncode, done.stderr
    return recording
