"""Drives Frida for Hindsight: one JSON request a line on stdin, one JSON answer a line on stdout.

Usage: host.py FOLDER-OF-THE-FRIDA-PACKAGE
Requests: {"op": "attach", "pid"}, {"op": "load", "source"}, {"op": "call", "name", "argument"}, {"op": "detach"}.
Answers: {"ok": value} or {"error": text}. Ends when stdin does.
"""
import json
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
        if self.script is not None:
            self.script.unload()
        self.session.detach()
        # Frida cleans up behind itself by borrowing a thread of the process; the process must not run before it has.
        frida.shutdown()


def answer(host, request):
    operation = request.pop("op")
    try:
        return {"ok": getattr(host, operation)(**request)}
    except Exception as error:  # whatever it is, the recorder explains it to the user
        return {"error": f"{error}" or type(error).__name__}


def main():
    host = Host()
    print(json.dumps({"ok": frida.__version__}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(host, json.loads(line))), flush=True)


main()
