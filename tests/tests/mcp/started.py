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
    call = (await tools("debug_query", recording=recording, function={"equals": "given"}, limit=1))["events"][0]
    then = await tools.text("debug_object", recording=recording, address=address, at=call["seq"])
    assert then.startswith(f"At event {call['seq']}, {address} is the first byte of a block of 100 bytes"), then


if __name__ == "__main__":
    scenario = {f.__name__: f for f in (equipped, which_line, pointed, attached, blocks)}[sys.argv[1]]
    done = run(scenario, *sys.argv[2:])
    print(f"{sys.argv[1]}: {done.calls} calls, {done.tokens} tokens")
