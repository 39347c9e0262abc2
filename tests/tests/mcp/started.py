"""What tools do with a program that they start or attach to. Usage: started.py NAME ARGUMENTS..."""

import os
import subprocess
import sys

from harness import line_of, run


async def texts(tools, session, kind):
    """The texts of all events of a kind."""
    said = await tools("debug_query", sessionId=session, eventType=[kind])
    return [event["text"] for event in said["events"]]


async def equipped(tools, program, source, folder):
    """A launch with a folder, an environment, functions left out, a watched expression and logpoints."""
    added = line_of(source, "/* step: add */")
    launched = await tools(
        "debug_launch",
        program=program,
        args=["4"],
        cwd=folder,
        env={"MODE": "fast"},
        exclude=["twice"],
        watch=["total"],
        logpoints=[
            {"at": "step", "message": "n={n}", "condition": "n > 1"},
            {"at": f"steps.c:{added}", "message": "total={total}"},
        ],
    )
    session = launched["sessionId"]
    end = await tools("debug_wait", sessionId=session)
    assert end["status"] == "exited" and end["exitCode"] == 0, end
    printed = "".join(await texts(tools, session, "stdout"))
    assert printed == f"{folder} fast 12\n", printed
    said = await texts(tools, session, "logpoint")
    assert sorted(said) == sorted(["n=2", "n=3", "total=0", "total=0", "total=2", "total=6"]), said
    rows = await tools("debug_sql", sessionId=session, sql="select function, count(*) as n from calls group by 1")
    counted = {row["function"]: row["n"] for row in rows["rows"]}
    assert counted.get("step") == 4 and "twice" not in counted, counted
    history = await tools("debug_history", sessionId=session, expression="total")
    values = [change["value"] for change in history["changes"]]
    assert values == ["0", "2", "6", "12"], history
    await tools("debug_session", sessionId=session, action="stop")


async def which_line(tools, program, source):
    """Launch again with full, or with logWrites, then ask for the last write: the page for agents says no more."""
    added = line_of(source, "/* step: add */")
    for name, asked in (("full", {"full": True}), ("logged", {"logWrites": ["total"]})):
        launched = await tools("debug_launch", program=program, args=["4"], recording=name, **asked)
        if launched["status"] == "running":
            assert (await tools("debug_wait"))["status"] == "exited"
        for of in ({}, {"recording": name}):
            said = await tools.text("debug_history", expression="total", lastWrite=True, **of)
            assert "total became 12, after 6" in said and f"steps.c:{added}" in said, said
            assert "up to event" not in said and "econd run" not in said, said
            why = await tools.text("debug_why", of="total", **of)
            assert "total became 12, after 6" in why and f"steps.c:{added}" in why, why
        main = (await tools("debug_query", recording=name, function={"equals": "main"}))["events"][0]["seq"]
        await tools("debug_goto", to=main, recording=name)
        early = await tools.text("debug_history", expression="total", lastWrite=True, recording=name)
        assert f"up to event {main}; 4 later writes, the last at event " in early, early
        assert 'debug_goto {"to": "last"}' in early and "econd run" not in early, early


async def pointed(tools, program, source):
    """A logpoint by file and line, with a condition; removed, it says nothing more."""
    added = line_of(source, "/* step: add */")
    launched = await tools("debug_launch", program=program, args=["6"], stopOnEntry=True)
    session = launched["sessionId"]
    made = await tools(
        "debug_logpoint",
        sessionId=session,
        add=[{"file": "steps.c", "line": added, "message": "at {n}", "condition": "n % 2 == 1"}],
    )
    point = made["logpoints"][0]
    assert point["line"] == added and point["condition"] == "n % 2 == 1", made
    stops = await tools("debug_breakpoint", sessionId=session, add=[{"function": "twice", "hitCount": 5}])
    stop = await tools("debug_continue", sessionId=session)
    assert stop["status"] == "paused" and stop["function"] == "twice", stop
    assert await texts(tools, session, "logpoint") == ["at 1", "at 3"]
    listed = await tools("debug_logpoint", sessionId=session)
    assert [one["id"] for one in listed["logpoints"]] == [point["id"]], listed
    await tools("debug_logpoint", sessionId=session, remove=[point["id"]])
    listed = await tools("debug_logpoint", sessionId=session)
    assert listed["logpoints"] == [], listed
    await tools("debug_breakpoint", sessionId=session, remove=[stops["breakpoints"][0]["id"]])
    end = await tools("debug_continue", sessionId=session)
    assert end["status"] == "exited" and end["exitCode"] == 0, end
    assert await texts(tools, session, "logpoint") == ["at 1", "at 3"]
    await tools("debug_session", sessionId=session, action="stop")


async def attached(tools, program, folder):
    """A running process is taken under control, read, recorded, and let go unharmed."""
    end = os.path.join(folder, "end")
    with subprocess.Popen([program, "1", end], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "waits\n"
        begun = await tools("debug_attach", pid=process.pid, recording="attached")
        session = begun["sessionId"]
        assert begun["pid"] == process.pid and begun["status"] == "running", begun
        await tools("debug_breakpoint", sessionId=session, add=[{"function": "step"}])
        stop = await tools("debug_wait", sessionId=session)
        assert stop["status"] == "paused" and stop["function"] == "step", stop
        read = await tools("debug_read", sessionId=session, targets=[{"variable": "n"}, {"variable": "total"}])
        values = {result["variable"]: result["value"] for result in read["results"]}
        assert values["n"] == "7" and int(values["total"]) % 14 == 0, values
        with open(end, "w", encoding="utf-8"):
            pass
        listed = await tools("debug_breakpoint", sessionId=session)
        ids = [one["id"] for one in listed["breakpoints"]]
        await tools("debug_breakpoint", sessionId=session, remove=ids)
        done = await tools("debug_continue", sessionId=session)
        assert done["status"] == "exited" and done["exitCode"] == 0, done
        assert process.wait(60) == 0
    rows = await tools("debug_sql", sessionId=session, sql="select count(*) as n from calls where function = 'step'")
    assert rows["rows"][0]["n"] >= 1, rows
    await tools("debug_session", sessionId=session, action="stop")


async def blocks(tools, program):
    """The life of a heap block: who made it, who freed it, and who had its address afterwards."""
    launched = await tools(
        "debug_launch", program=program, args=["1"], functions=["*", "module:libc.so*"], breakAt=["given"]
    )
    session = launched["sessionId"]
    assert launched["function"] == "given", launched
    pointer = await tools("debug_read", sessionId=session, targets=[{"variable": "block"}])
    address = pointer["results"][0]["value"].split()[0]
    told = await tools.text("debug_object", sessionId=session, address="block")
    assert "100 bytes" in told and "malloc" in told and "main" in told, told
    await tools("debug_breakpoint", sessionId=session, remove=[
        one["id"] for one in (await tools("debug_breakpoint", sessionId=session))["breakpoints"]
    ])
    end = await tools("debug_continue", sessionId=session)
    assert end["status"] == "exited", end
    told = await tools.text("debug_object", sessionId=session, address=address)
    assert "malloc" in told and "free" in told, told
    nothing = await tools.text("debug_object", sessionId=session, address="0x10")
    assert "no recorded call returned" in nothing, nothing
    recording = launched["recording"]
    await tools("debug_session", sessionId=session, action="stop")
    # The finished recording tells the same.
    afterwards = await tools.text("debug_object", recording=recording, address=address)
    assert "malloc" in afterwards and "free" in afterwards, afterwards
    # It is asked about its end, where the block is free.
    assert f"Before: 100 bytes at {address}" in afterwards, afterwards
    call = (await tools("debug_query", recording=recording, function={"equals": "given"}, limit=1))["events"][0]
    then = await tools.text("debug_object", recording=recording, address=address, at=call["seq"])
    assert then.startswith(f"At event {call['seq']}, {address} is the first byte of a block of 100 bytes"), then


async def both(tools, program, **options):
    """The program recorded with full, and the program live; each as calls name it."""
    ran = await tools("debug_launch", program=program, args=["4"], full=True, recording="whole", timeoutMs=120_000)
    assert ran["status"] == "recorded", ran
    launched = await tools("debug_launch", program=program, args=["4"], recording="calls", **options)
    return {"recording": "whole"}, {"sessionId": launched["sessionId"]}


async def value_of(tools, expression, of):
    """The value of one expression."""
    return (await tools("debug_read", targets=[{"variable": expression}], **of))["results"][0]["value"]


async def reached(tools, program, source):
    """until and advance lead to the same places in the program and in a recording of every instruction."""
    loop, after, prints = (line_of(source, f"/* main: {mark} */") for mark in ("loop", "after", "prints"))
    whole, now = await both(tools, program, breakAt=["main"])
    main = (await tools("debug_query", function={"equals": "main"}, **whole))["events"][0]["seq"]
    await tools("debug_goto", to=main, **whole)
    for of in (whole, now):
        for function in ("step", "twice"):
            stop = await tools("debug_continue", action="advance", location=function, **of)
            assert stop["function"] == function, stop
        for line in (None, loop):
            stop = await tools("debug_continue", action="step-out", **of)
            assert line in (None, stop["line"]), stop
        stop = await tools("debug_continue", action="until", **of)
        assert (stop["function"], stop["line"]) == ("main", after), stop
        assert await value_of(tools, "total", of) == "12"
        stop = await tools("debug_continue", action="until", location=f"steps.c:{prints}", **of)
        assert (stop["function"], stop["line"]) == ("main", prints), stop
        for wrong in ({"action": "advance"}, {"action": "step-over", "location": "step"}, {"location": "step"}):
            error = await tools.refused("debug_continue", **wrong, **of)
            assert error["code"] == "BAD_REQUEST" and "location" in error["message"] and error["hint"], error
        for wrong in (
            {"action": "advance", "location": "step", "count": 3},
            {"action": "until", "count": 2},
            {"action": "step-out", "count": 2},
            {"action": "pause", "count": 2},
        ):
            error = await tools.refused("debug_continue", **wrong, **of)
            assert error["code"] == "BAD_REQUEST", error
            assert error["message"] == "only continue, step-over and step-into take a count", error
            assert "debug_breakpoint with hitCount, then debug_continue" in error["hint"], error
        error = await tools.refused("debug_continue", action="step-out", granularity="instruction", **of)
        assert error["message"] == "only step-over and step-into go by instructions", error
        for wrong in ({"to": "first", "count": 2}, {"back": "finish", "granularity": "instruction"}):
            error = await tools.refused("debug_goto", **wrong, **of)
            assert error["message"] == "only back step and back next take count and granularity", error
    await tools("debug_session", action="stop", **now)
    for asked in ({"action": "until"}, {"action": "advance", "location": "twice"}):
        error = await tools.refused("debug_continue", recording="calls", **asked)
        assert error["code"] == "NOT_ALLOWED" and 'debug_launch {"full": true}' in error["hint"], error


async def arrived(tools, program):
    """continue with a count stops at that arrival; a condition stops a run backwards, too."""
    whole, now = await both(tools, program, stopOnEntry=True)
    await tools("debug_goto", to="first", **whole)
    for of in (whole, now):
        made = await tools("debug_breakpoint", add=[{"function": "step"}], **of)
        for count, n in ((1, "0"), (3, "3")):
            stop = await tools("debug_continue", **({} if count == 1 else {"count": count}), **of)
            assert stop["function"] == "step" and await value_of(tools, "n", of) == n, stop
        await tools("debug_breakpoint", remove=[str(made["breakpoints"][0]["id"])], **of)
    await tools("debug_breakpoint", add=[{"function": "step", "condition": "n == 1"}], **whole)
    stop = await tools("debug_goto", back="continue", **whole)
    assert stop["reason"] == "breakpoint" and await value_of(tools, "n", whole) == "1", stop
    await tools("debug_session", action="stop", **now)


async def running(tools, program, folder):
    """While the program runs, no function is called and no step begins, and the answers say so; nor is its past known."""
    end = os.path.join(folder, "ended")
    launched = await tools("debug_launch", program=program, args=["1", end], recording="runs")
    of = {"sessionId": launched["sessionId"]}
    pause = 'debug_continue {"action": "pause"}'
    error = await tools.refused("debug_write", call="twice(5)", **of)
    assert error["code"] == "NOT_STOPPED" and pause in error["hint"], error
    plain = await tools("debug_continue", timeoutMs=300, **of)
    assert plain == {"sessionId": launched["sessionId"], "status": "running"}, plain
    for asked, unused in (
        ({"action": "advance", "location": "step"}, "action and location"),
        ({"action": "step-over", "count": 2}, "action and count"),
        ({"action": "until"}, "action"),
    ):
        waited = await tools("debug_continue", timeoutMs=300, **asked, **of)
        assert waited["status"] == "running", waited
        assert waited["note"].startswith(
            f"the program ran already: this call only waited for its next stop and did not use {unused}; "
        ), waited
        assert pause in waited["note"], waited
    error = await tools.refused("debug_history", expression="total", **of)
    assert error["code"] == "NOT_STOPPED" and error["hint"] == f"stop it first: {pause}", error
    stop = await tools("debug_continue", action="pause", **of)
    assert stop["status"] == "paused", stop
    stop = await tools("debug_continue", action="advance", location="twice", **of)
    assert stop["status"] == "paused" and "note" not in stop, stop
    with open(end, "w", encoding="utf-8"):
        pass
    done = await tools("debug_continue", **of)
    assert done["status"] == "exited", done
    # The session is gone, and its recording is not.
    await tools("debug_session", action="stop", **of)
    error = await tools.refused("debug_state", **of)
    assert error["code"] == "NO_SESSION", error
    # Calls that name nothing mean the recording.
    await tools.text("debug_overview")
    for tool, arguments in (
        ("debug_state", {"at": "last"}),
        ("debug_history", {"expression": "total"}),
        ("debug_source", {"location": "twice"}),
        ("debug_read", {"targets": [{"variable": "1 + 1"}]}),
        ("debug_note", {"text": "the end"}),
    ):
        await tools.text(tool, **arguments)
    waited = await tools("debug_wait")
    assert waited["status"] == "recorded" and waited["recording"] == launched["recording"], waited


async def places(tools, program, source):
    """Breakpoints and watches of a recording have the shape of those of a program."""
    whole, now = await both(tools, program, stopOnEntry=True)
    await tools("debug_session", action="stop", **now)
    line = line_of(source, "static int twice(int n)")
    await tools("debug_goto", to="first", **whole)
    (made,) = (await tools("debug_breakpoint", add=[{"function": "twice"}], **whole))["breakpoints"]
    assert made.pop("address").startswith("0x"), made
    assert made == {"id": "1", "location": "twice", "function": "twice", "file": source, "line": line}, made
    (watch,) = (await tools("debug_breakpoint", add=[{"watch": "total"}], **whole))["breakpoints"]
    assert watch == {"id": "2", "location": "total"}, watch
    listed = (await tools("debug_breakpoint", **whole))["breakpoints"]
    assert [one["id"] for one in listed] == ["1", "2"], listed
    error = await tools.refused("debug_breakpoint", remove=["77"], **whole)
    assert error["hint"] == "list them with: debug_breakpoint", error
    left = await tools("debug_breakpoint", remove=["1", "2"], **whole)
    assert left == {"breakpoints": []}, left
    # Of a recording of calls, the functions are known.
    ran = await tools("debug_launch", program=program, args=["2"], recording="of-calls")
    if ran["status"] == "running":
        await tools("debug_wait")
    await tools("debug_session", action="stop")
    (made,) = (await tools("debug_breakpoint", add=[{"function": "twice"}], recording="of-calls"))["breakpoints"]
    known = await tools("debug_sql", sql="select addr, file, line from functions where name = 'twice'", recording="of-calls")
    (row,) = known["rows"]
    assert made == {
        "id": "1",
        "location": "twice",
        "function": "twice",
        "address": hex(row["addr"]),
        "file": row["file"],
        "line": row["line"],
    }, made


async def beyond(tools, program):
    """After the end of an answer, there is nothing, and it says so."""
    await tools("debug_launch", program=program, args=["1"], stopOnEntry=True)
    for shown in ({}, {"show": []}):
        said = await tools.text("debug_state", **shown, cursor="99999999")
        assert said.startswith('(nothing is left at cursor "99999999": the text has '), said
    listed = await tools("debug_breakpoint", cursor="9")
    assert listed == {"breakpoints": [], "leftOut": "nothing is left at cursor 9"}, listed
    await tools("debug_session", action="stop")


async def called(tools, program):
    """Functions of the program are called: at a stop by the program itself, in a recording by a copy of which nothing stays."""
    whole, now = await both(tools, program, stopOnEntry=True)
    await tools("debug_goto", to="first", **whole)
    for of, total, notes in ((whole, "0", ["shout printed: 5!"]), (now, "10", None)):
        await tools("debug_breakpoint", add=[{"function": "step", "condition": "n == 1"}], **of)
        await tools("debug_continue", **of)
        for call, value in (("twice(21) + n", "43"), ("shout(5)", "10"), ("step(5)", "void")):
            made = await tools("debug_write", call=call, **of)
            assert made["results"][0]["value"] == value, made
            assert made.get("notes") == (notes if call == "shout(5)" else None), made
        assert await value_of(tools, "total", of) == total, of
        error = await tools.refused("debug_read", targets=[{"variable": "twice(1)"}], **of)
        assert error["code"] == "EVAL_FAILED" and error["hint"].startswith("debug_write with call"), error
        for wrong in ({}, {"call": "twice(1)", "targets": [{"variable": "total", "value": 1}]}):
            error = await tools.refused("debug_write", **wrong, **of)
            assert error["code"] == "BAD_REQUEST" and "either targets or call" in error["message"], error
    error = await tools.refused("debug_write", targets=[{"variable": "total", "value": 1}], **whole)
    assert error["code"] == "NOT_ALLOWED", error
    await tools("debug_session", action="stop", **now)
    error = await tools.refused("debug_write", call="twice(2)", recording="calls")
    assert error["code"] == "EVAL_FAILED" and 'debug_launch {"full": true}' in error["hint"], error


async def newest(tools, program):
    """A name means the newest recording that was to have it, also of every instruction; a result says so if it is not the one of that name."""
    for rounds in "12":
        await tools("debug_launch", program=program, args=[rounds], full=True, timeoutMs=120_000)
    counted = {"sql": "select count(*) as n from calls where function = 'step'"}
    for name, calls, meant in (("steps", 2, True), ("steps-2", 2, False), ("steps.hindsight", 1, False)):
        asked = await tools("debug_sql", recording=name, **counted)
        assert asked["rows"] == [{"n": calls}], asked
        said = {"meant": "steps-2.hindsight is meant, which is newer than steps.hindsight"} if meant else {}
        assert {key: asked[key] for key in asked if key != "rows"} == said, asked
    overview = await tools.text("debug_overview", recording="steps")
    assert overview.startswith("steps-2.hindsight is meant, "), overview


async def instructions(tools, program, folder):
    """At a stop, all instructions up to the next stop are recorded, or until that is ended."""
    end = os.path.join(folder, "ended")
    launched = await tools("debug_launch", program=program, args=["1", end], breakAt=["step"])
    of = {"sessionId": launched["sessionId"]}
    await tools("debug_breakpoint", add=[{"function": "twice"}], **of)
    done = await tools("debug_full", action="on", **of)
    assert done["function"] == "twice" and 1 < done["recorded"]["instructions"] < 50, done
    assert done["seq"] == done["recorded"]["last_seq"], done
    # All tools ask these instructions at once, and say that they do not have the whole run.
    counted = "select count(*) as n from instructions"
    rows = (await tools("debug_sql", sql=counted, **of))["rows"]
    assert rows == [{"n": done["recorded"]["instructions"]}], rows
    shown = await tools.text("debug_state", show=["where"], **of)
    assert shown.startswith(f"seq {done['seq']}, thread {done['threadId']}\n"), shown
    written = await tools("debug_history", expression="total", **of)
    assert written == {"changes": [], "searched": "what was recorded"}, written
    left = await tools("debug_full", action="off", **of)
    assert left["past"] == "that of the whole session again" and left["function"] == "twice", left
    assert "recorded" not in left, left
    error = await tools.refused("debug_sql", sql=counted, **of)
    assert "instructions needs a recording of every instruction" in error["message"], error
    error = await tools.refused("debug_full", action="off", **of)
    assert error["code"] == "NOT_ALLOWED" and error["hint"] == "record the next ones: debug_full", error
    error = await tools.refused("debug_full", count=0, **of)
    assert error["code"] == "BAD_REQUEST" and error["hint"] == "write a count from 1", error
    set_now = (await tools("debug_breakpoint", **of))["breakpoints"]
    await tools("debug_breakpoint", remove=[one["id"] for one in set_now], **of)
    running = await tools("debug_full", action="on", timeoutMs=1000, **of)
    assert running["status"] == "running" and "recorded" not in running, running
    stopped = await tools("debug_full", action="off", **of)
    assert stopped["status"] == "paused" and stopped["recorded"]["instructions"] > 500, stopped
    assert any("only in the recording of these" in note for note in stopped["notes"]), stopped
    with open(end, "w", encoding="utf-8"):
        pass
    ran = await tools("debug_continue", **of)
    assert ran["status"] == "exited" and ran["exitCode"] == 0, ran
    await tools("debug_session", action="stop", **of)


if __name__ == "__main__":
    scenarios = (equipped, which_line, pointed, attached, blocks, reached, arrived, running, places, beyond, called, newest, instructions)
    scenario = {f.__name__: f for f in scenarios}[sys.argv[1]]
    done = run(scenario, *sys.argv[2:])
    print(f"{sys.argv[1]}: {done.calls} calls, {done.tokens} tokens")
