"""The one error of this package."""

from __future__ import annotations

from typing import Any, Optional


class HindsightError(Exception):
    """Hindsight refused or failed. `code` is for programs, `message` and `hint` are for people."""

    def __init__(self, code: str, message: str, hint: Optional[str] = None, details: Any = None):
        super().__init__(message if hint is None else f"{message} ({hint})")
        self.code = code
        self.message = message
        self.hint = hint
        self.details = details

    @classmethod
    def of(cls, failure: dict) -> "HindsightError":
        """Makes the error from the daemon's `error` object."""
        return cls(
            failure.get("code", "UNKNOWN"),
            failure.get("message", "no reason was given"),
            failure.get("hint"),
            failure.get("details"),
        )
