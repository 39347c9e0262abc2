"""Drives Frida for Hindsight: one JSON request per line on stdin, one JSON answer per line on stdout.

Usage: host.py FOLDER-OF-THE-FRIDA-PACKAGE
Requests: {"op": "attach", "pid"}, {"op": "load", "source"}, {"op": "call", "name", "argument"}, {"op": "detach"}.
Answers: {"ok": value} or {"error": text, "timed_out": bool}; the first answer comes without a request and describes Frida and Python.
Ends after detach, or at the end of stdin.

It uses the package's extension module alone: what the package puts around it (asyncio, ssl, inspect) takes as long to import as Frida
takes to start.
"""
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(sys.argv[1], "frida"))
import _frida  # noqa: E402


def waited(method, *arguments):
    """Calls a method of Frida that takes a callback, and returns what the callback is given."""
    done = threading.Event()
    outcome = []

    def complete(result, error):
        outcome.extend((result, error))
        done.set()

    method(*arguments, complete)
    done.wait()
    result, error = outcome
    if error is not None:
        raise error
    return result


class ScriptError(Exception):
    """What the script threw, without its location."""


class Calls:
    """Calls of the script's functions, one at a time: https://frida.re/docs/javascript-api/#rpc."""

    def __init__(self, script):
        self.script = script
        self.answered = threading.Event()
        self.outcome = None
        script.on("message", self.receive)
        script.on("destroyed", lambda *_: self.finish("error", "the script has been destroyed"))

    def receive(self, text, _data):
        message = json.loads(text)
        payload = message.get("payload")
        if message["type"] == "send" and isinstance(payload, list) and payload[:1] == ["frida:rpc"]:
            self.finish(payload[2], payload[3] if len(payload) > 3 else None)

    def finish(self, kind, value):
        self.outcome = kind, value
        self.answered.set()

    def call(self, name, argument):
        if self.script.is_destroyed():
            raise ScriptError("the script has been destroyed")
        self.answered.clear()
        self.script.post(json.dumps(["frida:rpc", 1, "call", name, [argument]]), None)
        self.answered.wait()
        kind, value = self.outcome
        if kind == "error":
            raise ScriptError(value)
        return value


class Host:
    def __init__(self):
        self.devices = _frida.get_device_manager()
        self.session = None
        self.calls = None

    def attach(self, pid):
        device = waited(self.devices.get_device_by_type, "local", 0)
        self.session = waited(device.attach, pid, _frida.SessionOptions())

    def load(self, source):
        script = waited(self.session.create_script, source, _frida.ScriptOptions())
        self.calls = Calls(script)
        waited(script.load)

    def call(self, name, argument):
        return self.calls.call(name, argument)

    def detach(self):
        # This unloads the script too.
        waited(self.session.detach)
        # Frida cleans up by borrowing a thread of the process; the process must not run before that is done.
        waited(self.devices.close)


def answer(host, request):
    operation = request.pop("op")
    try:
        return {"ok": getattr(host, operation)(**request)}
    except Exception as error:  # the recorder explains any exception to the user
        # ProcessNotRespondingError is how Frida reports a timeout while it waits for the process.
        late = isinstance(error, (_frida.TimedOutError, _frida.ProcessNotRespondingError))
        return {"error": f"{error}" or type(error).__name__, "timed_out": late}


def main():
    host = Host()
    print(json.dumps({"ok": {"version": _frida.__version__, "python": sys.executable}}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        last = request["op"] == "detach"
        print(json.dumps(answer(host, request)), flush=True)
        if last:
            break
    # Frida has been shut down; the recorder does not wait for Python's cleanup.
    os._exit(0)


main()
