"""Whole investigations by tools alone. Usage: scenarios.py NAME ARGUMENTS..."""

import asyncio
import json
import os
import re
import sys

from harness import TOKENIZER, Failure, another, line_of, run

ALL = (
    "debug_launch", "debug_attach", "debug_session", "debug_overview", "debug_state", "debug_query", "debug_sql", "debug_history",
    "debug_why", "debug_object", "debug_compare", "debug_goto", "debug_source", "debug_read", "debug_write", "debug_breakpoint",
    "debug_logpoint", "debug_continue", "debug_wait", "debug_full", "debug_trace", "debug_note",
)


async def live(tools, program, source):
    """A suspicious value in the trace; a conditional breakpoint; other variables at the stop; the root cause; a write."""
    listed = await tools.client.list_tools()
    assert sorted(tool.name for tool in listed.tools) == sorted(ALL), listed
    # It may write a file.
    assert [tool for tool in listed.tools if tool.name == "debug_sql"][0].annotations.read_only_hint is False
    # The trace of a whole run shows the suspicious value.
    ran = await tools("debug_launch", program=program, args=["frequencies"], functions=["tune"])
    ran = await tools("debug_wait", sessionId=ran["sessionId"])
    assert ran["status"] == "exited", ran
    traced = await tools("debug_query", sessionId=ran["sessionId"], function={"equals": "tune"})
    given = [call["args"] for call in traced["events"]]
    assert given == ["frequency=440", "frequency=440", "frequency=-440"], traced
    await tools("debug_session", sessionId=ran["sessionId"], action="stop")

    launched = await tools(
        "debug_launch", program=program, args=["frequencies"], stopOnEntry=True, logWrites=["sample_rate"], recording="again"
    )
    assert launched["status"] == "paused", launched
    session = launched["sessionId"]
    line = line_of(source, "/* tune: set */")
    made = await tools("debug_breakpoint", sessionId=session, add=[{"function": "tune", "condition": "args[0] < 0"}])
    point = made["breakpoints"][0]
    assert point["line"] == line and point["address"].startswith("0x"), made
    stop = await tools("debug_continue", sessionId=session)
    assert stop["status"] == "paused" and stop["breakpointId"] == point["id"], stop
    assert (stop["function"], stop["line"]) == ("tune", line), stop
    assert isinstance(stop["seq"], int), stop
    suspicious = await tools("debug_query", sessionId=session, function={"equals": "tune"}, order="desc", limit=1)
    assert "frequency=-" in suspicious["events"][0]["args"], suspicious
    read = await tools(
        "debug_read",
        sessionId=session,
        targets=[{"variable": "sample_rate"}, {"variable": "buffer_size"}, {"variable": "frequency"}],
    )
    values = {result["variable"]: result["value"] for result in read["results"]}
    assert values == {"sample_rate": "-44100", "buffer_size": "512", "frequency": "-440"}, values
    wrote = await tools.text("debug_history", sessionId=session, expression="sample_rate", lastWrite=True)
    assert "sample_rate became -44100, after 44100" in wrote, wrote
    cause = re.search(r"\((\w+) at \S*?([\w.]+):(\d+)\)", wrote).groups()
    assert cause == ("configure", "tuner.c", str(line_of(source, "/* configure: bug */"))), wrote
    written = await tools(
        "debug_write", sessionId=session, targets=[{"variable": "sample_rate", "value": 44100}]
    )
    assert written["results"][0]["previousValue"] == "-44100", written
    assert written["results"][0]["newValue"] == "44100", written
    history = await tools("debug_history", sessionId=session, expression="sample_rate")
    assert history["changes"], history
    await tools("debug_breakpoint", sessionId=session, remove=[point["id"]])
    end = await tools("debug_continue", sessionId=session)
    assert end["status"] == "exited" and end["exitCode"] == 0, end
    printed = await tools("debug_query", sessionId=session, eventType=["stdout"])
    texts = "".join(event["text"] for event in printed["events"])
    assert "frequency 440\n" in texts.splitlines(keepends=True)[-1:][0], texts
    await tools("debug_session", sessionId=session, action="stop")


async def recorded(tools, recording, source):
    """Which call of `look_up` first returned a negative value, and who had written the field that it read?"""
    first = await tools(
        "debug_query",
        recording=recording,
        function={"equals": "look_up"},
        returnValue={"lessThan": 0},
        limit=1,
        verbosity="full",
    )
    call = first["events"][0]
    state = await tools.text("debug_state", recording=recording, at=call["seq"], show=["where", "calls"])
    assert "look_up" in state, state
    write = await tools.text(
        "debug_history", recording=recording, at=call["seq"], expression="table.limit", lastWrite=True
    )
    writer = re.search(r"between event \d+ \((\w+) at ", write)[1]
    changes = await tools("debug_history", recording=recording, expression="table.limit")
    paged = await tools("debug_history", recording=recording, expression="table.limit", budget=150)
    seen = paged["changes"]
    while "cursor" in paged:
        paged = await tools(
            "debug_history", recording=recording, expression="table.limit", budget=150, cursor=paged["cursor"]
        )
        seen += paged["changes"]
    assert seen == changes["changes"], seen
    try:
        chain = await tools.text("debug_why", recording=recording, of="look_up")
    except Failure as failure:
        chain = str(failure)
    assert "look_up is a recorded function" in chain and "debug_why of a call's seq" in chain, chain
    negative = next(change for change in changes["changes"] if change["value"].startswith("-"))
    shown = await tools("debug_query", recording=recording, seqFrom=negative["seq"], seqTo=negative["seq"])
    assert (shown["events"][0]["kind"], shown["events"][0]["function"]) == ("leave", writer), shown
    shown = await tools.text("debug_source", recording=recording, location=writer, wholeFunction=True)
    faulty = line_of(source, "/* shrink: bug */")
    assert re.search(rf"^\W*{faulty}\b.*/\* shrink: bug \*/", shown, re.M), shown
    rows = await tools(
        "debug_sql",
        recording=recording,
        sql="select function, count(*) as n from calls group by function order by n desc",
    )
    counts = {row["function"]: row["n"] for row in rows["rows"]}
    assert counts["look_up"] == 40, counts
    kept = await tools("debug_note", recording=recording, at=negative["seq"], text="the limit goes negative here")
    assert kept["seq"] == negative["seq"], kept
    moved = await tools("debug_goto", recording=recording, to=call["seq"])
    assert moved["seq"] == call["seq"] and moved["status"] == "paused", moved
    back = await tools("debug_goto", recording=recording, back="step")
    assert back["seq"] < call["seq"], back
    last = await tools("debug_goto", recording=recording, to="last")
    assert last["exitCode"] == 0 and "has ended with exit code 0" in last["event"], last
    state = await tools.text("debug_state", recording=recording, at="last")
    assert "has ended with exit code 0" in state, state
    beyond = await tools.refused("debug_continue", recording=recording)
    assert 'debug_goto {"to": "last"}' in beyond["hint"], beyond


async def filters(tools, recording, threads):
    """Every filter of debug_query against the same question in SQL; `threads` has two threads."""

    async def both(sql, **asked):
        found = await tools("debug_query", recording=recording, limit=1000, budget=10000, **asked)
        rows = await tools("debug_sql", recording=recording, sql=sql, budget=10000)
        expected = [row["seq"] for row in rows["rows"]]
        seqs = [event["seq"] for event in found["events"]]
        assert expected and seqs == expected[: len(seqs)], (asked, seqs, expected)
        assert len(seqs) + found.get("leftOut", 0) == len(expected), (asked, found.get("leftOut"))

    calls = "select start_seq as seq from calls where "
    events = "select seq from events where "
    end = " order by seq"
    first = await tools("debug_sql", recording=recording, sql="select min(tid) as tid, (min(ts_ns) + max(ts_ns)) / 2 as ns, max(dur_ns) as d from calls")
    tid, ns, longest = (first["rows"][0][name] for name in ("tid", "ns", "d"))
    await both(calls + "function = 'look_up'" + end, function={"equals": "look_up"})
    await both(calls + "strpos(function, '_up') > 0" + end, function={"contains": "_up"})
    await both(calls + "function ~ '^(look|shr)'" + end, function={"matches": "^(look|shr)"})
    await both(calls + "file like '%tuner.c'" + end, sourceFile={"contains": "tuner.c"})
    file = (await tools("debug_sql", recording=recording, sql="select file from calls limit 1"))["rows"][0]["file"]
    await both(calls + f"file = '{file}'" + end, sourceFile={"equals": file})
    await both(calls + "file ~ 'tuner[.]c$'" + end, sourceFile={"matches": "tuner[.]c$"})
    await both(calls + "ret < 0" + end, returnValue={"lessThan": 0})
    await both(calls + "ret = -1" + end, returnValue={"equals": -1})
    await both(calls + "ret is null and ret_f is null and ret_text is null" + end, returnValue={"isNull": True})
    await both(calls + "(ret is not null or ret_f is not null or ret_text is not null)" + end, returnValue={"isNull": False})
    await both(calls + "ret > 0" + end, returnValue={"greaterThan": 0})
    await both(calls + "args = 'key=3'" + end, args={"equals": "key=3"})
    await both(calls + "args ~ 'key=[12]$'" + end, args={"matches": "key=[12]$"})
    await both(calls + "strpos(args, 'key=2') > 0" + end, args={"contains": "key=2"})
    await both(calls + f"tid = {tid}" + end, eventType=["call"], threadId=tid)
    await both(calls + f"ts_ns >= {ns}" + end, eventType=["call"], timeFrom=ns)
    await both(calls + f"ts_ns <= {ns}" + end, eventType=["call"], timeTo=ns)
    await both(calls + f"dur_ns >= {longest}" + end, minDurationNs=longest)
    made = await tools("debug_sql", recording=recording, sql="select max(parent) as parent from calls")
    parent = made["rows"][0]["parent"]
    await both(calls + f"parent = {parent}" + end, parent=parent)
    await both(events + "seq between 10 and 20" + end, seqFrom=10, seqTo=20)
    await both(events + "seq <= 20" + end, seqTo=20)
    await both(events + "seq >= 60" + end, seqFrom=60)
    await both(events + "kind = 'enter'" + end, eventType=["enter"])
    await both(events + "kind in ('leave', 'write')" + end, eventType=["leave", "write"])
    text = (await tools("debug_sql", recording=recording, sql="select text from events where kind = 'stdout' limit 1"))["rows"][0]["text"]
    await both(events + "text = '{}'".format(text.replace("'", "''")) + end, text={"equals": text})
    await both(events + "text ~ 'lim.t'" + end, text={"matches": "lim.t"})
    await both(events + "kind in ('stdout', 'stderr')" + end, eventType=["stdout", "stderr"])
    await both(events + "text like '%limit%'" + end, text={"contains": "limit"})
    await both(events + "true order by seq desc", order="desc")
    await both(calls + "true order by dur_ns desc, seq", order="duration")
    all = await tools("debug_query", recording=recording, function={"equals": "look_up"}, budget=10000)
    two = await tools("debug_query", recording=recording, function={"equals": "look_up"}, limit=2, offset=3)
    assert len(two["events"]) == 2 and two["events"] == all["events"][3:5], two
    total = (await tools("debug_sql", recording=recording, sql="select count(*) as n from events"))["rows"][0]["n"]
    usual = await tools("debug_query", recording=recording, verbosity="summary", budget=10000)
    assert len(usual["events"]) == 50 and usual["leftOut"] == total - 50, usual
    counts = await tools(
        "debug_sql", recording=threads, sql="select tid, count(*) as n from calls where function = 'work' group by tid order by n"
    )
    assert [row["n"] for row in counts["rows"]] == [3, 5], counts
    for row in counts["rows"]:
        found = await tools("debug_query", recording=threads, function={"equals": "work"}, threadId=row["tid"])
        assert [call["threadId"] for call in found["events"]] == [row["tid"]] * row["n"], found
    sizes = []
    for verbosity in ("summary", "standard", "full"):
        page = await tools("debug_query", recording=recording, function={"equals": "look_up"}, limit=1, verbosity=verbosity)
        sizes.append(len(page["events"][0]))
    assert sizes == sorted(sizes) and len(set(sizes)) == 3, sizes
    # The cursor leads through everything, once.
    seen, cursor = [], "0"
    while cursor is not None:
        page = await tools("debug_query", recording=recording, eventType=["call"], limit=1000, budget=400, cursor=cursor)
        seen += [event["seq"] for event in page["events"]]
        cursor = page.get("cursor")
    total = await tools("debug_sql", recording=recording, sql="select count(*) as n from calls")
    assert len(seen) == len(set(seen)) == total["rows"][0]["n"], (len(seen), total)


async def mistakes(tools, recording, FIB):
    """Bad input gets clear errors, and the server goes on."""
    nowhere = await tools.refused("debug_state")
    assert nowhere["code"] == "NO_SESSION" and nowhere["hint"], nowhere
    for tool, arguments, code, word in [
        ("debug_fly", {}, "BAD_REQUEST", "debug_sql"),
        ("debug_sql", {"recording": recording}, "BAD_REQUEST", "sql"),
        ("debug_sql", {"recording": recording, "sql": 7}, "BAD_REQUEST", "sql: integer `7` is not a text"),
        ("debug_query", {"recording": recording, "limit": "five"}, "BAD_REQUEST", "limit: string \"five\" is not a whole number"),
        ("debug_query", {"recording": recording, "function": "look_up"}, "BAD_REQUEST", "function: "),
        ("debug_query", {"recording": recording, "eventType": ["nonsense"]}, "BAD_REQUEST", "call, enter, "),
        ("debug_launch", {"program": FIB, "logWrites": ["nope"]}, "BAD_REQUEST", "nope"),
        ("debug_launch", {"program": FIB, "breakAt": ["nope_never"], "recording": "refused"}, "INVALID_FUNCTION", "nope_never"),
        ("debug_launch", {"program": FIB, "breakAt": ["nope_never"], "recording": "refused"}, "INVALID_FUNCTION", "nope_never"),
        ("debug_sql", {"recording": recording, "sql": "select functon from calls"}, "BAD_REQUEST", "function"),
        ("debug_sql", {"recording": recording, "sql": "drop table calls"}, "BAD_REQUEST", "read-only"),
        ("debug_sql", {"recording": recording, "sql": "select 1", "file": recording + "/x.csv"}, "BAD_REQUEST", "inside the recording"),
        ("debug_sql", {"recording": recording, "sql": "select 1", "file": recording + "/columns/x.csv"}, "BAD_REQUEST", "inside the recording"),
        ("debug_sql", {"recording": "nothing-here", "sql": "select 1"}, "FAILED", "nothing-here"),
        ("debug_query", {"recording": recording, "functions": "x"}, "BAD_REQUEST", "functions"),
        ("debug_query", {"session": 1}, "BAD_REQUEST", "sessionId"),
        ("debug_trace", {"recording": recording}, "BAD_REQUEST", "sessionId"),
        ("debug_state", {"recording": recording, "at": 10**12}, "NO_EVENT", "event"),
        ("debug_state", {"sessionId": 99}, "NO_SESSION", "99"),
        ("debug_history", {"recording": recording, "expression": "tabel.limit"}, "EVAL_FAILED", "tabel"),
        ("debug_launch", {"program": "./no-such-program"}, "NOT_STARTED", "no-such-program"),
        ("debug_attach", {"pid": 999999999}, "NOT_STARTED", "999999999"),
        ("debug_breakpoint", {"recording": recording, "add": [{"line": 3}]}, "BAD_REQUEST", "place"),
        ("debug_query", {"recording": recording, "function": {"matches": "("}}, "BAD_REQUEST", "unclosed group"),
        ("debug_read", {"recording": recording, "targets": []}, "BAD_REQUEST", "targets"),
        ("debug_source", {"recording": recording, "location": "x" * 1_000_000}, "INVALID_FUNCTION", "no loaded module has a function xxx"),
    ]:
        error = await tools.refused(tool, **arguments)
        assert error["code"] == code, (tool, error)
        told = error["message"] + error.get("hint", "")
        assert word in told and len(told) < 2000, (tool, told[:2000])
    rows = await tools("debug_sql", recording=recording, sql="select 1 as one")
    assert rows["rows"] == [{"one": 1}], rows

    # At a program that stands.
    await tools("debug_launch", program=FIB, stopOnEntry=True, recording="standing")
    file = {"file": "fib.c", "line": 99_999}
    for asked, code in [
        ({"add": [file]}, "INVALID_LINE"),
        ({"add": [{**file, "file": "nowhere.c"}]}, "INVALID_FILE"),
        ({"add": [{"function": "main", "condition": "argc =="}]}, "INVALID_CONDITION"),
        ({"remove": ["77"]}, "BREAKPOINT_NOT_FOUND"),
    ]:
        error = await tools.refused("debug_breakpoint", **asked)
        assert error["code"] == code, (asked, error)
        if code == "INVALID_LINE":
            valid = error["details"]["valid_lines"]
    made = await tools("debug_breakpoint", add=[{"file": "fib.c", "line": valid[0]}])
    assert made["breakpoints"][0]["line"] == valid[0], (valid, made)
    await tools("debug_session", action="stop")


async def limited(tools, recording):
    """No result is longer than 10,000 tokens, whatever is asked for; what was left out can be reached."""
    series = "select value as n from generate_series(1, 6000) order by n"
    text = json.dumps(await tools("debug_sql", recording=recording, sql=series, budget=10_000))
    told = json.loads(await tools.within(10_000, "debug_sql", recording=recording, sql=series, budget=50_000))
    assert json.dumps(told) == text, "a budget beyond the limit is the limit"
    shown = len(told["rows"])
    assert told["leftOut"] == f"more than {5000 - shown}" and "parameter file" in told["note"], told
    # The cursor leads on beyond the rows that were computed first.
    beyond = await tools("debug_sql", recording=recording, sql=series, cursor="5500")
    assert len(beyond["rows"]) > 50, beyond
    last = await tools("debug_sql", recording=recording, sql=series, cursor="5990")
    assert len(last["rows"]) == 10 and "leftOut" not in last and "note" not in last, last
    long = await tools.within(10_000, "debug_sql", recording=recording, sql="select repeat('word ', 100000) as text", budget=50_000)
    kept, more = re.search(r'"((?:word ?)+)\.\.\. \((\d+) more characters\)', long).groups()
    assert len(kept) + int(more) == 500_000, (len(kept), more)


async def overview(tools, recording, core):
    """What to ask next are three calls, which answer, and come before what a small budget cuts."""
    for name in (recording, core):
        for budget in (2000, 400):
            told = await tools.text("debug_overview", recording=name, budget=budget)
            next = told.split("\nAsk next\n", 1)[1]
            calls = re.findall(r"^  (debug_\w+) (\{.*\})$", next, re.M)
            assert len(calls) == 3 and next.count("\n  debug_") == 2, told
        for tool, arguments in calls:
            assert await tools.text(tool, **json.loads(arguments)), (tool, arguments)
        if name == core:
            shown = [json.loads(arguments)["show"] for _, arguments in calls]
            assert shown == [["backtrace"], ["locals"], ["registers"]], calls


async def shared(tools, program):
    """Two clients work with one program: what one does the other sees."""
    launched = await tools("debug_launch", program=program, args=["frequencies"], stopOnEntry=True)
    of = {"sessionId": launched["sessionId"]}
    async with another() as other:
        made = await other("debug_breakpoint", add=[{"function": "tune"}], **of)
        listed = await tools("debug_breakpoint", **of)
        assert [one["id"] for one in listed["breakpoints"]] == [made["breakpoints"][0]["id"]], listed
        stop = await tools("debug_continue", **of)
        assert stop["function"] == "tune", stop
        written = await other("debug_write", targets=[{"variable": "buffer_size", "value": 77}], **of)
        assert written["results"][0]["previousValue"] == "512", written
        read = await tools("debug_read", targets=[{"variable": "buffer_size"}], **of)
        assert read["results"][0]["value"] == "77", read
        await other("debug_breakpoint", remove=[made["breakpoints"][0]["id"]], **of)
        end = await other("debug_continue", **of)
        assert end["status"] == "exited" and end["exitCode"] == 0, end
        end = await tools("debug_wait", **of)
        assert end["status"] == "exited" and end["exitCode"] == 0, end


async def waiting(tools, program):
    """A wait ends at its limit with status running, calling again restarts nothing, and other calls go on meanwhile."""
    launched = await tools("debug_launch", program=program, args=["spinning"])
    session = launched["sessionId"]
    for tool in ("debug_continue", "debug_continue", "debug_wait"):
        running = await tools(tool, sessionId=session, timeoutMs=200)
        assert running["status"] == "running", (tool, running)
    begun = await tools("debug_query", sessionId=session, eventType=["process_start"])
    assert len(begun["events"]) == 1, begun
    (listed,) = (await tools("debug_session"))["sessions"]
    assert listed["pid"] == launched["pid"], (listed, launched)
    stop = await tools("debug_continue", sessionId=session, action="pause")
    assert stop["status"] == "paused", stop
    await tools("debug_write", sessionId=session, targets=[{"variable": "tempo", "value": 90}])
    end = await tools("debug_continue", sessionId=session)
    assert end["status"] == "exited", end
    gone = await tools.refused("debug_write", sessionId=session, targets=[{"variable": "tempo", "value": 1}])
    assert gone["code"] == "NOT_RUNNING", gone
    await tools("debug_session", sessionId=session, action="stop")


async def progress(tools, program):
    """A call that takes long reports progress to a client that asks for it."""
    launched = await tools("debug_launch", program=program, args=["spinning"])
    told = []

    async def tell(progress, total, message):
        told.append((progress, message))

    waited = {"sessionId": launched["sessionId"], "timeoutMs": 2500}
    result = await tools.client.call_tool("debug_wait", waited, progress_callback=tell)
    assert json.loads(result.content[0].text)["status"] == "running", result
    assert [step for step, _ in told] == list(range(1, len(told) + 1)) and len(told) >= 2, told
    assert told[0][1] == "working, 1 s", told
    await tools("debug_session", sessionId=launched["sessionId"], action="stop")


async def last(tools, recording, program):
    """Without a name the session of the last call is meant, also when its program has ended; never another program."""
    await tools.text("debug_state", recording=recording)
    launched = await tools("debug_launch", program=program, functions=["main"])
    await tools("debug_wait", sessionId=launched["sessionId"])
    asked = await tools("debug_query", eventType=["call"])
    assert [call["function"] for call in asked["events"]] == ["main"], asked
    await tools("debug_session", action="stop")
    again = await tools("debug_query", eventType=["call"])
    assert again == asked, "what was recorded of it stays"
    named = await tools("debug_query", recording=recording, function={"equals": "look_up"}, limit=1)
    await tools.text("debug_state", recording=recording)
    again = await tools("debug_query", function={"equals": "look_up"}, limit=1)
    assert again == named, again
    async with another() as other:
        for tool in ("debug_query", "debug_state", "debug_query"):
            asked = {"function": {"equals": "look_up"}, "limit": 1} if tool == "debug_query" else {"at": "last"}
            first = await other.text(tool, recording=recording, **asked)
            assert await other.text(tool, **asked) == first, "the recording of the last call is meant"

    first = await tools("debug_launch", program=program, stopOnEntry=True)
    second = await tools("debug_launch", program=program, stopOnEntry=True)
    async with another() as other:
        refused = await other.refused("debug_continue")
        assert refused["code"] == "BAD_REQUEST" and "sessionId" in refused["hint"], refused
        for launched in (first, second):
            assert str(launched["sessionId"]) in refused["message"], refused
        await other.text("debug_state", sessionId=first["sessionId"])
        at = await other.text("debug_state")
        assert "_start" in at, at
    end = await tools("debug_continue")
    assert end["status"] == "exited" and end["sessionId"] == second["sessionId"], end
    over = await tools.refused("debug_continue")
    assert over["code"] == "NOT_RUNNING", over
    stands = await tools.text("debug_state", sessionId=first["sessionId"])
    assert "_start" in stands, "the other program was not moved"
    await tools("debug_session", action="stop", sessionId=first["sessionId"])


async def logged(tools, program):
    """Logpoints of a live program, and the tables that a launch records on request."""
    launched = await tools("debug_launch", program=program, stopOnEntry=True, syscalls=True, memory=True, locks=True)
    made = await tools("debug_logpoint", add=[{"function": "main", "message": "argc {argc}"}])
    assert len(made["logpoints"]) == 1, made
    end = await tools("debug_continue")
    assert end["status"] == "exited", end
    said = await tools("debug_query", eventType=["logpoint"])
    assert [event["text"] for event in said["events"]] == ["argc 1"], said
    counted = await tools("debug_sql", sql="select count(*) as n from syscalls where name = 'write'")
    assert counted["rows"][0]["n"] > 0, counted
    assert "note" not in counted, counted
    blocks = await tools("debug_sql", sql="select count(*) as n from allocations")
    assert blocks["rows"][0]["n"] > 0, blocks
    await tools("debug_session", action="stop", sessionId=launched["sessionId"])
    launched = await tools("debug_launch", program=program, stopOnEntry=True)
    none = await tools("debug_sql", sql="select * from syscalls")
    assert none["rows"] == [] and "debug_launch with syscalls" in none["note"], none
    await tools("debug_session", action="stop")


async def traced(tools, program):
    """More functions are recorded from the moment on at which that is asked for; what cannot be is refused."""
    launched = await tools("debug_launch", program=program, functions=["main"], stopOnEntry=True)
    session = launched["sessionId"]
    unknown = await tools.refused("debug_trace", sessionId=session, add=["fob"])
    assert unknown["code"] == "INVALID_FUNCTION" and unknown["hint"], unknown
    kept = await tools.refused("debug_trace", sessionId=session, remove=["main"])
    assert kept["code"] == "BAD_REQUEST" and kept["hint"], kept
    made = await tools("debug_breakpoint", sessionId=session, add=[{"function": "fib", "hitCount": 1000}])
    stop = await tools("debug_continue", sessionId=session)
    assert stop["function"] == "fib" and stop["hits"] == 1000, stop
    more = await tools("debug_trace", sessionId=session, add=["fib"])
    assert more == {"recorded": 1, "functions": ["fib"]}, more
    again = await tools("debug_trace", sessionId=session, add=["fib", "main"])
    assert again == {"already": 2}, again
    await tools("debug_breakpoint", sessionId=session, remove=[made["breakpoints"][0]["id"]])
    end = await tools("debug_continue", sessionId=session)
    assert end["status"] == "exited" and end["exitCode"] == 0, end
    counted = await tools("debug_sql", sessionId=session, sql="select function, count(*) as n from calls group by 1 order by 2")
    # fib(25) makes 242,785 calls; the thousandth has begun.
    assert counted["rows"] == [{"function": "main", "n": 1}, {"function": "fib", "n": 242_785 - 1000}], counted
    printed = await tools("debug_query", sessionId=session, eventType=["stdout"])
    texts = "".join(event["text"] for event in printed["events"])
    assert texts == "fib(25) = 75025\ncalls fib 242785\n", printed
    await tools("debug_session", sessionId=session, action="stop")


async def compared(tools, good, bad, again):
    """A change was planted in one of two builds: which function made the difference, and where does it show first?"""
    told = await tools.text("debug_compare", a=good, b=bad)
    lines = told.splitlines()
    first = lines[lines.index("Look first at") + 1]
    assert first.startswith("  1. tax_of at invoices.c:") and "its code differs" in first, told
    assert "B invoices.c:59  return net * rate->per_mille / 100;" in told, told
    # The seq that it names is a call of that function in the recording that it names.
    differs = re.search(r"^  B tax_of\(.*, seq (\d+)$", told, re.M)
    rows = await tools("debug_query", recording=bad, seqFrom=int(differs[1]), seqTo=int(differs[1]))
    assert rows["events"][0]["function"] == "tax_of", rows
    # Pages of a small budget are the same text, once.
    whole = await tools.text("debug_compare", a=good, b=bad, full=True, budget=10_000)
    assert "more lines" not in whole and "All calls that differ" in whole, whole
    pages, cursor = "", "0"
    while cursor is not None:
        page = await tools.text("debug_compare", a=good, b=bad, full=True, budget=500, cursor=cursor)
        end = re.search(r'^\(\d+ more lines: call again with cursor "(\d+)"\)\n\Z', page, re.M)
        pages += page[: end.start()] if end else page
        cursor = end and end[1]
    assert pages == whole, (pages, whole)
    same = await tools.text("debug_compare", a=good, b=again)
    assert same.startswith(f"A {good} and B {again}: the same\n"), same
    ignored = await tools.text(
        "debug_compare", a=good, b=bad, ignore={"functions": ["*_of", "print_invoice"], "output": ["^invoice"]}
    )
    assert f"B {bad}: the same" in ignored, ignored
    for arguments, code, word in [
        ({"a": good, "b": good}, "FAILED", "same recording"),
        ({"a": good}, "BAD_REQUEST", "b"),
        ({"a": good, "b": "nothing-here"}, "FAILED", "nothing-here"),
        ({"a": good, "b": bad, "ignore": {"kinds": ["colour"]}}, "BAD_REQUEST", "colour"),
        ({"a": good, "b": bad, "ignore": {"functions": "x"}}, "BAD_REQUEST", "is not a list"),
    ]:
        error = await tools.refused("debug_compare", **arguments)
        assert error["code"] == code and word in error["message"], error


async def offered(tools, recording, agents):
    """Resources, prompts and instructions, which are the page `agents`."""
    with open(agents, encoding="utf-8") as page:
        assert tools.client.instructions == page.read()
    resources = await tools.client.list_resources()
    addresses = [str(resource.uri) for resource in resources.resources]
    following = set()
    for address in addresses:
        read = await tools.client.read_resource(address)
        text = read.contents[0].text
        assert text and len(TOKENIZER.encode(text)) <= 10_000, address
        following |= set(re.findall(r"Next part: (\S+?)[,)]", text[-300:]))
    # The parts of a long page lead to each other, and all are listed.
    assert following and following <= set(addresses), following
    assert "hindsight://schema" in addresses, addresses
    assert any(address.startswith("hindsight://recording/") for address in addresses), addresses
    prompts = await tools.client.list_prompts()
    assert {prompt.name for prompt in prompts.prompts} == {"investigate_crash", "investigate_wrong_value"}
    for name, more in (("investigate_crash", {}), ("investigate_wrong_value", {"symptom": "a wrong sum"})):
        prompt = await tools.client.get_prompt(name, {"recording": recording, **more})
        text = prompt.messages[0].content.text
        assert "debug_why" in text and "full" in text, text
    prompt = await tools.client.get_prompt("investigate_crash", {"recording": recording})
    assert recording in prompt.messages[0].content.text and "seq" in prompt.messages[0].content.text


async def full(tools, recording, source):
    """Who wrote this byte? A crash in a recording of every instruction, from the symptom to the line."""
    of = {"recording": recording}
    state = await tools.text("debug_state", at="crash", **of)
    assert "sum" in state, state
    wrote = await tools.text("debug_history", expression="accounts[2].next", lastWrite=True, **of)
    planted = f"planted.c:{line_of(source, '// planted')}"
    assert "call_it" in wrote and planted in wrote, wrote
    moment = re.search(r"at event (\d+\+\d+)", wrote)[1]
    stop = await tools("debug_goto", to=moment, **of)
    assert stop["line"] == line_of(source, "// planted"), stop
    sql = f"select value('{moment}', 'i') as i, value('{moment}', 'name') as name, value('{moment}', 'sizeof it->name') as room"
    row = (await tools("debug_sql", sql=sql, **of))["rows"][0]
    # The eleventh letter does not fit into eight.
    assert row["i"] == "10" and "christopher" in row["name"] and row["room"] == "8", row
    assert tools.calls <= 5, tools.calls

    # The same by the table, and both ways by breakpoints and instructions.
    rows = await tools("debug_sql", sql="select function, line from memory_writes where function = 'call_it' and line = "
                       f"{line_of(source, '// planted')} and size = 1", **of)
    assert len(rows["rows"]) == len("annbertachristopherdora"), rows
    await tools("debug_goto", to="first", **of)
    place = {"file": "planted.c", "line": line_of(source, "// deposit")}
    await tools("debug_breakpoint", add=[{**place, "condition": "amount == 7"}], **of)
    stop = await tools("debug_continue", **of)
    assert stop["reason"] == "breakpoint" and stop["breakpoints"] == [1], stop
    there = stop
    await tools("debug_continue", action="step-into", granularity="instruction", count=3, **of)
    stop = await tools("debug_goto", back="step", granularity="instruction", count=3, **of)
    assert [stop[key] for key in ("seq", "steps")] == [there[key] for key in ("seq", "steps")], (stop, there)
    await tools("debug_goto", to="last", **of)
    stop = await tools("debug_goto", back="continue", **of)
    assert "SIGSEGV" in stop["event"], stop
    stop = await tools("debug_goto", back="continue", **of)
    assert stop["reason"] == "breakpoint", stop
    lines = await tools("debug_logpoint", add=[{**place, "message": "{amount}", "condition": "amount < 3"}], **of)
    assert [line["message"] for line in lines["lines"]] == ["1", "2", "1", "2"], lines


async def launched(tools, program, source):
    """A model without a shell records every instruction, and ends a program that does not end."""
    ran = await tools("debug_launch", program=program, full=True, functions=["call_it", "sum"], timeoutMs=120_000)
    assert ran["status"] == "recorded" and ran["instructions"] > 50_000, ran
    of = {"recording": ran["recording"]}
    wrote = await tools.text("debug_history", expression="accounts[2].next", lastWrite=True, at="crash", **of)
    assert f"planted.c:{line_of(source, '// planted')}" in wrote, wrote
    functions = await tools("debug_sql", sql="select distinct function from calls order by 1", **of)
    assert [row["function"] for row in functions["rows"]] == ["call_it", "sum"], functions

    running = await tools("debug_launch", program="/bin/sleep", args=["1000"], full=True, recording="slept", timeoutMs=1500)
    assert running["status"] == "running" and "slept" in running["recording"], running
    stopped = await tools("debug_session", action="stop", recording="slept")
    assert stopped["status"] == "recorded" and stopped["recording"] == running["recording"], stopped
    last = await tools("debug_goto", to="last", recording="slept")
    assert "SIGINT" in last["event"], last
    # One that ignores signals, too.
    script = "trap '' INT TERM; mkfifo deaf; read x < deaf"
    running = await tools("debug_launch", program="/bin/sh", args=["-c", script], full=True, recording="deaf", timeoutMs=500)
    assert running["status"] == "running", running
    while not os.path.exists("deaf"):
        await asyncio.sleep(0.05)
    stopped = await tools("debug_session", action="stop", recording="deaf")
    assert stopped["status"] == "recorded" and '"to": "last"' in stopped["next"], stopped
    assert stopped["signal"] == "SIGKILL", stopped
    # What the program has started ends with it; a shell has a background process ignore SIGINT.
    script = "sleep 1000 & echo $! > started; wait"
    running = await tools("debug_launch", program="/bin/sh", args=["-c", script], full=True, recording="parent", timeoutMs=500)
    assert running["status"] == "running", running
    while not os.path.exists("started") or not (child := open("started").read().strip()):
        await asyncio.sleep(0.05)
    stopped = await tools("debug_session", action="stop", recording="parent")
    assert stopped["status"] == "recorded" and stopped["signal"] == "SIGINT", stopped
    stat = f"/proc/{child}/stat"
    while os.path.exists(stat) and open(stat).read().rpartition(")")[2].split()[0] != "Z":
        await asyncio.sleep(0.05)

    # Meanwhile calls without a name mean this program, and no earlier one; waiting for it is a call like any other.
    short = await tools("debug_launch", program="/bin/sleep", args=["4"], full=True, recording="short", timeoutMs=500)
    assert short["status"] == "running", short
    error = await tools.refused("debug_overview")
    assert error["code"] == "NOT_STOPPED" and "short" in error["message"] and "debug_wait" in error["hint"], error
    still = await tools("debug_wait", timeoutMs=500)
    assert still["status"] == "running" and still["recording"] == short["recording"], still
    waited = await tools("debug_wait", timeoutMs=60_000)
    assert waited["status"] == "recorded" and waited["recording"] == short["recording"], waited
    assert "sleep" in await tools.text("debug_overview")

    # At a live stop, the next instructions.
    stop = await tools("debug_launch", program=program, breakAt=["call_it"])
    assert stop["function"] == "call_it", stop
    await tools("debug_breakpoint", remove=[one["id"] for one in (await tools("debug_breakpoint"))["breakpoints"]])
    done = await tools("debug_full", count=5000)
    assert 100 < done["recorded"]["instructions"] <= 5000, done
    # Each seq is one of these instructions' own recording: the last is where the program stands.
    assert done["seq"] == done["recorded"]["last_seq"], done
    assert (await tools("debug_goto", to="last"))["seq"] == done["seq"], done
    await tools("debug_goto", to="live")
    assert "is running" not in await tools.text("debug_overview"), "it is paused"
    wrote = await tools.text("debug_history", expression="accounts[2].next", lastWrite=True)
    assert f"planted.c:{line_of(source, '// planted')}" in wrote, wrote
    await tools("debug_session", action="stop")

    for wrong, code in (({"watch": ["total"]}, "BAD_REQUEST"), ({"program": "./nowhere"}, "NOT_STARTED")):
        error = await tools.refused("debug_launch", **{"program": program, "full": True, **wrong})
        assert error["code"] == code, error
    error = await tools.refused("debug_session", action="stop", recording="slept")
    assert error["code"] == "NOT_RUNNING", error


async def executed(tools, program):
    """A launcher becomes the program: calls that name no session go on with that."""
    script = f"echo begun; exec {program} tables"
    launched = await tools("debug_launch", program="/bin/sh", args=["-c", script], stopOnEntry=True)
    assert launched["status"] == "paused", launched
    ended = await tools("debug_continue")
    assert ended["status"] == "exited" and ended["sessionId"] != launched["sessionId"], ended
    assert ended["program"] == program and ended["recording"] != launched["recording"], ended
    rows = (await tools("debug_sql", sql="select count(*) as n from calls where function = 'main'"))["rows"]
    assert rows == [{"n": 1}], rows


async def named(tools, recording, program):
    """Functions have short names, notes are found, and a call sets all of its breakpoints or none."""
    short = "Cache<int, std::string>::get"
    of = {"recording": recording}
    row = (await tools("debug_sql", sql="select name, short_name from functions where name like 'Cache<%get'", **of))["rows"][0]
    assert row["short_name"] == short != row["name"], row
    for name in (short, row["name"]):
        for filter in ("equals", "contains"):
            asked = await tools("debug_query", function={filter: name}, **of)
            assert [call["function"] for call in asked["events"]] == [short] * 5, asked
    asked = await tools("debug_query", function={"equals": "Cache::get"}, **of)
    assert [call["function"] for call in asked["events"]] == [short] * 5, asked
    asked = await tools("debug_query", function={"matches": "^Cache<int, std::string>::get"}, verbosity="full", limit=1, **of)
    call = asked["events"][0]
    assert (call["function"], call["fullName"]) == (short, row["name"]), call
    for kinds in ("enter", "leave"):
        asked = await tools("debug_query", eventType=[kinds], function={"equals": short}, verbosity="summary", **of)
        assert [event["what"] for event in asked["events"]] == [short] * 5, asked
        assert "function_id" not in asked["events"][0], asked
    none = await tools("debug_query", function={"equals": "Cash::get"}, **of)
    assert none["events"] == [] and "no recorded function" in none["hint"], none
    # The last part is enough, as for a breakpoint; a misspelt or differently qualified name is answered by those that are near.
    asked = await tools("debug_query", function={"equals": "get"}, **of)
    assert [call["function"] for call in asked["events"]].count(short) == 5 and "hint" not in asked, asked
    for wrong in ("gett", "Cache<long, std::string>::get", "nowhere::get"):
        none = await tools("debug_query", function={"equals": wrong}, **of)
        assert none["events"] == [] and short in none["hint"], none
    # It has calls, but none that is so long: the name is not the mistake.
    none = await tools("debug_query", function={"equals": short}, minDurationNs=10**15, **of)
    assert none["events"] == [] and "hint" not in none, none

    await tools("debug_note", at=call["seq"], text="the first look", **of)
    for asked in ({"eventType": ["note"]}, {"text": {"contains": "first look"}}, {"eventType": ["note"], "verbosity": "full"}):
        notes = await tools("debug_query", **asked, **of)
        found = [(note["seq"], note["kind"], note["text"]) for note in notes["events"]]
        assert found == [(call["seq"], "note", "the first look")], notes

    launched = await tools("debug_launch", program=program, stopOnEntry=True)
    made = await tools("debug_breakpoint", add=[{"function": row["name"]}])
    assert made["breakpoints"][0]["function"] == short and made["breakpoints"][0]["location"] == short, made
    refused = await tools.refused("debug_breakpoint", add=[{"function": "main"}, {"watch": "total"}, {"function": "nope"}])
    assert refused["code"] == "INVALID_FUNCTION", refused
    listed = await tools("debug_breakpoint")
    assert [at["id"] for at in listed["breakpoints"]] == [made["breakpoints"][0]["id"]], listed
    refused = await tools.refused("debug_breakpoint", add=[{"function": "main"}], remove=["77"])
    listed = await tools("debug_breakpoint")
    assert len(listed["breakpoints"]) == 1, listed
    refused = await tools.refused(
        "debug_logpoint", add=[{"function": "main", "message": "begun"}, {"function": "nope", "message": ""}]
    )
    assert refused["code"] == "INVALID_FUNCTION", refused
    assert (await tools("debug_logpoint"))["logpoints"] == [], "none is left"
    stop = await tools("debug_continue")
    assert stop["reason"] == "breakpoint" and stop["function"] == short, stop

    # Tools and parameters that no other scenario uses.
    stop = await tools("debug_continue", action="step-out")
    assert stop["function"] == "main", stop
    address = (await tools("debug_read", targets=[{"variable": "&total"}], hex=True))["results"][0]["value"]
    address = re.search(r"0x[0-9a-f]+", address)[0]
    written = await tools("debug_write", targets=[{"address": address, "type": "i32", "value": 77}])
    assert written["results"][0]["newValue"] == "77", written
    read = await tools("debug_read", targets=[{"variable": "total"}, {"address": address, "type": "i32"}], hex=True)
    assert [result["value"] for result in read["results"]] == ["0x4d", "0x4d"], read
    made = await tools("debug_breakpoint", add=[{"function": "add_*"}])
    places = made["breakpoints"][0]["places"]
    assert sorted(at["function"] for at in places if at["file"].endswith("cached.cpp")) == ["add_one", "add_two"], made
    again = await tools("debug_session", action="restart")
    assert again["sessionId"] != launched["sessionId"] or again["pid"] != launched["pid"], again
    await tools("debug_session", action="detach")
    opened = await tools("debug_session", action="open", recording=recording)
    assert opened["status"] == "recorded", opened
    closed = await tools("debug_session", action="close", sessionId=opened["sessionId"])
    assert closed == {"sessionId": opened["sessionId"]}, closed
    ran = await tools("debug_sql", sql="select function from calls", file="calls.csv", **of)
    with open("calls.csv", encoding="utf-8") as file:
        assert len(file.readlines()) > ran["rows"] > 5, ran
    listed = await tools.client.list_tools()
    for tool in listed.tools:
        waits = tool.input_schema["properties"].get("timeoutMs")
        assert waits is None or "[default: 20000]" in waits["description"], tool.name


async def inlined(tools, recording):
    """A function without calls of its own is known, and so are writes of the other kind."""
    of = {"recording": recording}
    none = await tools("debug_query", function={"equals": "push"}, **of)
    assert none["events"] == [] and "push is inlined everywhere" in none["hint"], none
    assert none["hint"].endswith(("fill; main", "main; fill")), none
    shown = await tools.text("debug_source", location="push", **of)
    assert "total += n" in shown, shown
    error = await tools.refused("debug_source", location="push", wholeFunction=True, **of)
    assert "inlined everywhere" in error["message"] and "inlined.c:4" in error["hint"], error
    none = await tools("debug_query", eventType=["write"], **of)
    assert none["events"] == [] and "logged_write" in none["hint"], none
    made = await tools("debug_query", eventType=["logged_write"], **of)
    assert [write["target"] for write in made["events"]] == ["total"] * 4 and "hint" not in made, made


if __name__ == "__main__":
    scenarios = (
        live, recorded, filters, mistakes, waiting, progress, last, logged, traced, compared, offered, full, launched, executed, named,
        inlined, limited, overview, shared
    )
    scenario = {f.__name__: f for f in scenarios}[sys.argv[1]]
    done = run(scenario, *sys.argv[2:])
    print(f"{sys.argv[1]}: {done.calls} calls, {done.tokens} tokens")
