"""Sessions: a program under control, or an opened recording. Every verb of Hindsight is a method."""

from __future__ import annotations

import json
import os
import socket
from typing import Any, Iterator, Optional, Sequence

from . import _command
from ._errors import HindsightError


def socket_path() -> str:
    """Returns where the daemon listens."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = os.path.join(runtime, "hindsight") if os.path.isabs(runtime) else f"/tmp/hindsight-{os.geteuid()}"
    return os.path.join(folder, "daemon.sock")


class Connection:
    """A connection to the daemon. Requests are answered one at a time."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(socket_path())
        except OSError as error:
            self._socket.close()
            raise HindsightError("NO_SESSION", "no daemon runs", "begin a session: hindsight.start([...])") from error
        self._lines = self._socket.makefile("r", encoding="utf-8")
        self._id = 0
        greeting = json.loads(self._lines.readline() or "{}")
        if greeting.get("hindsight") != 1:
            raise HindsightError("PROTOCOL", f"the daemon speaks another protocol: {greeting}")

    def request(self, verb: str, args: dict, session: Optional[int]) -> Any:
        """Sends a request and returns the reply."""
        self._id += 1
        request = {"id": self._id, "command": verb, "args": args, "folder": os.getcwd()}
        if session is not None:
            request["session"] = session
        self._socket.sendall((json.dumps(request) + "\n").encode())
        for message in self._messages():
            if message.get("id") != self._id or "success" not in message:
                continue
            if message["success"]:
                return message["result"]
            raise HindsightError.of(message.get("error") or {})
        raise HindsightError("PROTOCOL", "the daemon has ended")

    def pushes(self) -> Iterator[dict]:
        """Yields what the daemon sends on its own."""
        for message in self._messages():
            if "push" in message:
                yield message["push"]

    def _messages(self) -> Iterator[dict]:
        for line in self._lines:
            yield json.loads(line)

    def close(self) -> None:
        """Ends the connection. The session goes on."""
        self._lines.close()
        self._socket.close()


class Session:
    """A session by its number. `session.verb(**arguments)` sends a verb of Hindsight, such as `session.step_back()`.

    Verbs that are words of Python take an underscore: `continue_`, `break_`, `await_`. The arguments have the names of
    the socket's protocol. A reply is what the daemon answers, as dicts and lists.
    """

    def __init__(self, number: int, report: Optional[dict] = None):
        self.number = number
        self.report = report or {}
        self._connection = Connection()

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        verb = name.rstrip("_")

        def send(**arguments: Any) -> Any:
            return self.verb(verb, **arguments)

        send.__name__ = name
        send.__doc__ = f"Sends the verb {verb}."
        return send

    def verb(self, verb: str, **arguments: Any) -> Any:
        """Sends a verb with its arguments and returns the reply."""
        return self._connection.request(verb, arguments, self.number)

    def command(self, *words: str) -> Any:
        """Sends a verb in the words of the command line: `session.command("break", "parse.c:12")`."""
        return _command.reply([words[0], "--json", "--session", str(self.number), *words[1:]])

    def value(self, expression: str) -> str:
        """Returns the value of an expression as text. Raises with the code UNKNOWN if the recording does not tell it."""
        reply = self.verb("print", expression=expression)
        if "value" not in reply:
            raise HindsightError("UNKNOWN", f"{expression}: {reply.get('unknown', 'its value is not known')}")
        return reply["value"]

    def events(self) -> Iterator[dict]:
        """Yields stops, output and ends of this session from now on, over a connection of its own."""
        connection = Connection()
        connection.request("subscribe", {}, self.number)
        return self._events(connection)

    def _events(self, connection: Connection) -> Iterator[dict]:
        try:
            for push in connection.pushes():
                if push.get("session") == self.number:
                    yield push
        finally:
            connection.close()

    def close(self) -> None:
        """Ends the connection. The session goes on: `stop()` or `detach()` end it."""
        self._connection.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session({self.number})"


def start(command: Sequence[str], *, breakpoints: Sequence[str] = (), output: Optional[str] = None, options: Sequence[str] = ()) -> Session:
    """Starts a program under control. `options` are those of `hindsight start`."""
    words = ["start", "--json", *options]
    for location in breakpoints:
        words += ["--break", location]
    if output is not None:
        words += ["--output", os.fspath(output)]
    return begun(_command.reply([*words, "--", *map(os.fspath, command)]))


def attach(pid: int, *, options: Sequence[str] = ()) -> Session:
    """Takes a running process under control."""
    return begun(_command.reply(["attach", "--json", *options, str(pid)]))


def begun(report: dict) -> Session:
    """Makes the session that a reply has begun."""
    number = report.get("session")
    if isinstance(number, dict):
        number = number.get("session")
    return Session(int(number), report)
