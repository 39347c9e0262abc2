"""Drives the program of the fixture `fib` with the package, and checks each answer."""

import sys

import hindsight

fib = sys.argv[1]

# A finished recording, in all four forms.
recording = hindsight.record([fib, "10"], output="ten")
assert recording.status == 0, recording.stderr
question = "SELECT function, count(*) AS n FROM calls GROUP BY function ORDER BY n"
expected = [{"function": "main", "n": 1}, {"function": "fib", "n": 177}]
assert recording.rows(question) == expected, recording.rows(question)
assert recording.arrow(question).to_pylist() == expected
assert recording.pandas(question)["n"].tolist() == [1, 177]
assert recording.polars(question)["function"].to_list() == ["main", "fib"]
assert recording.info()["rows"]["calls"] == 178
again = hindsight.record([fib, "9"], output="nine")
both = hindsight.sql([recording.path, again.path], "SELECT run, count(*) AS n FROM calls GROUP BY run ORDER BY n DESC")
assert both["n"].to_pylist() == [178, 110], both

# Mistakes have a code, a message and the next step.
try:
    recording.rows("SELECT nope FROM calls")
    raise AssertionError("the column does not exist")
except hindsight.HindsightError as error:
    assert 'no column "nope"' in error.message, error.message
try:
    hindsight.record(["./nothing-here"])
    raise AssertionError("the program does not exist")
except hindsight.HindsightError as error:
    assert "nothing-here" in error.message, error.message

# A library that is not installed is a mistake of that kind, too.
for library, form in [("pyarrow", recording.arrow), ("polars", recording.polars), ("pandas", recording.pandas)]:
    removed = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == library}
    sys.modules[library] = None
    try:
        form(question)
        raise AssertionError(f"{library} cannot be imported")
    except hindsight.HindsightError as error:
        assert error.code == "NO_LIBRARY" and library in error.message, (error.code, error.message)
        assert error.hint.startswith("pip install 'hindsight["), error.hint
    del sys.modules[library]
    sys.modules.update(removed)

# A live session.
with hindsight.start([fib, "5"], breakpoints=["fib"], output="live") as session:
    assert session.value("n") == "5"
    stop = session.continue_()["stop"]
    assert (stop["function"], stop["reason"]) == ("fib", "breakpoint"), stop
    assert session.value("n") == "4"
    frames = session.command("backtrace")["threads"][0]["frames"]
    assert [frame["function"] for frame in frames][:3] == ["fib", "fib", "main"], frames
    # Commands of several words have the options that the package adds between them.
    session.command("set", "var", "n", "=", "4")
    each = session.command("thread", "apply", "all", "print", "n")["threads"]
    assert [of["result"]["value"] for of in each] == ["4"], each
    assert session.command("list", "1,", "3")["first"] == 1
    try:
        session.value("nope")
        raise AssertionError("the variable does not exist")
    except hindsight.HindsightError as error:
        assert error.code == "EVAL_FAILED" and "nope" in error.message, (error.code, error.message)
    happened = session.events()
    session.break_(action="remove", all=True)
    ended = session.continue_()
    assert ended["status"] == "ended", ended
    # The last output may come after the end.
    printed, has_ended = "", False
    for event in happened:
        printed += event["text"] if event["kind"] == "output" else ""
        has_ended = has_ended or event["kind"] == "ended"
        if has_ended and "fib(5) = 5" in printed:
            break

# The same verbs on the recording.
with hindsight.Recording("ten").open() as past:
    enters = recording.rows("SELECT start_seq FROM calls WHERE function = 'fib' ORDER BY start_seq LIMIT 2")
    past.goto(to=str(enters[1]["start_seq"]))
    assert past.value("n") == "9"
    past.step_back()
    assert past.value("n") == "10"
    past.verb("close")
print("all checks passed")
