"""Runs commands of the program `hindsight`."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any, Sequence

from ._errors import HindsightError


def binary() -> str:
    """Returns the program: HINDSIGHT_BIN, or `hindsight` on the PATH."""
    return os.environ.get("HINDSIGHT_BIN", "hindsight")


def run(words: Sequence[str], **options: Any) -> subprocess.CompletedProcess:
    """Runs `hindsight WORDS`; raises if the program is not there."""
    try:
        return subprocess.run([binary(), *words], **options)
    except FileNotFoundError as error:
        raise HindsightError(
            "NOT_INSTALLED",
            f"{binary()} cannot be run",
            "put hindsight on the PATH, or name it with HINDSIGHT_BIN",
        ) from error


def output(words: Sequence[str]) -> str:
    """Returns what `hindsight WORDS` prints; raises with its message if it fails."""
    done = run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode == 0:
        return done.stdout
    raise failed(done.stderr)


def failed(stderr: str) -> HindsightError:
    """Makes the error from what a command printed to stderr."""
    lines = stderr.strip().splitlines()
    message = [line for line in lines if not line.startswith(("help: ", "hindsight: "))]
    help_ = [line[len("help: ") :] for line in lines if line.startswith("help: ")]
    text = "\n".join(message) or stderr.strip() or "the command failed"
    return HindsightError("COMMAND", text.removeprefix("error: "), help_[0] if help_ else None)


def reply(words: Sequence[str]) -> Any:
    """Runs a verb with --json and returns its result."""
    done = run([*words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        response = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise failed(done.stderr) from None
    if not response.get("success"):
        raise HindsightError.of(response.get("error") or {})
    return response["result"]
