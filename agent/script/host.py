"""Drives Frida for Hindsight: one JSON request per line on stdin, one JSON answer per line on stdout.

Usage: host.py FOLDER-OF-THE-FRIDA-PACKAGE
Requests: {"op": "attach", "pid"}, {"op": "load", "source"}, {"op": "call", "name", "argument"}, {"op": "detach"}.
Answers: {"ok": value} or {"error": text, "timed_out": bool}; the first answer comes without a request and describes Frida and Python.
Ends after detach, or at the end of stdin.
"""
import json
import os
import sys

sys.path.insert(0, sys.argv[1])
import frida  # noqa: E402


class Host:
    def __init__(self):
        self.session = None
        self.script = None

    def attach(self, pid):
        self.session = frida.get_local_device().attach(pid)

    def load(self, source):
        self.script = self.session.create_script(source)
        self.script.load()

    def call(self, name, argument):
        return getattr(self.script.exports_sync, name)(argument)

    def detach(self):
        # This unloads the script too.
        self.session.detach()
        # Frida cleans up by borrowing a thread of the process; the process must not run before that is done.
        frida.shutdown()


def answer(host, request):
    operation = request.pop("op")
    try:
        return {"ok": getattr(host, operation)(**request)}
    except Exception as error:  # the recorder explains any exception to the user
        # The text of the script's exception, without its location.
        thrown = isinstance(error, frida.core.RPCException)
        # ProcessNotRespondingError is how Frida reports a timeout while it waits for the process.
        late = isinstance(error, (frida.TimedOutError, frida.ProcessNotRespondingError))
        message = f"{error.args[0] if thrown else error}" or type(error).__name__
        return {"error": message, "timed_out": late}


def main():
    host = Host()
    print(json.dumps({"ok": {"version": frida.__version__, "python": sys.executable}}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        last = request["op"] == "detach"
        print(json.dumps(answer(host, request)), flush=True)
        if last:
            break
    # Frida has been shut down; the recorder does not wait for Python's cleanup.
    os._exit(0)


main()
