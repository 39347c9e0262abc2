"""Twelve planted bugs, each found by tools alone. Usage: hunts.py PROGRAMS SOURCES [NAME]...

A hunt knows the symptom, and the names of functions as a reader of the source would. Its calls follow from the results before; the line that it
returns comes from a result. At the end it is compared with the line that carries the mark.
"""

import json
import os
import re
import sys

from harness import line_of, run

MOST_CALLS = 10
MOST_TOKENS = 12_000


async def ended(tools, program, **options):
    """Runs a program to its end, and returns its recording, its exit code and what it printed."""
    session = (await tools("debug_launch", program=program, **options))["sessionId"]
    end = await tools("debug_wait", sessionId=session)
    assert end["status"] == "exited", end
    printed = await tools("debug_query", recording=end["recording"], eventType=["stdout"], verbosity="summary")
    text = "".join(event["what"] for event in printed["events"])
    return end["recording"], end["exitCode"], text


async def hung(tools, program):
    """Runs a program until nothing happens any more, stops it, and returns its session and its threads but the first."""
    session = (await tools("debug_launch", program=program))["sessionId"]
    waited = await tools("debug_wait", sessionId=session, timeoutMs=4000)
    assert waited["status"] == "running", waited
    stop = await tools("debug_continue", sessionId=session, action="pause")
    assert stop["status"] == "paused", stop
    listed = await tools.text("debug_state", sessionId=session, show=["threads"])
    threads = [int(number) for number in re.findall(r"^[ *]*(\d+) \|", listed, re.MULTILINE)]
    return session, threads[1:]


async def written(tools, program, watch, condition=None, **options):
    """Runs a program until a value is written, and returns the stop."""
    options = options or {"stopOnEntry": True}
    session = (await tools("debug_launch", program=program, **options))["sessionId"]
    add = {"watch": watch} if condition is None else {"watch": watch, "condition": condition}
    await tools("debug_breakpoint", sessionId=session, add=[add])
    stop = await tools("debug_continue", sessionId=session)
    assert stop["status"] == "paused" and stop["reason"] == "watchpoint", stop
    return stop


def writer(stop):
    """The file and line that wrote the value at whose watchpoint a program stopped."""
    return stop["writtenBy"]["file"], stop["writtenBy"]["line"]


def frames(text):
    """The frames of a backtrace that have a line: (function, file, line), from the innermost."""
    found = re.findall(r"^[ *]*#\d+ +(.*?) \(.*\) at (\S+):(\d+)", text, re.MULTILINE)
    return [(function, file, int(line)) for function, file, line in found]


def frame_in(text, source):
    """The innermost frame in a source file."""
    return next(frame for frame in frames(text) if frame[1].endswith("/" + source))


def lines(text):
    """The lines of an excerpt of source: (number, whether it has code, text)."""
    found = re.findall(r"^(?:->)? *(\d+) ([|:]) ?(.*)$", text, re.MULTILINE)
    return [(int(number), mark == "|", line) for number, mark, line in found]


def argument(args, name):
    """The value of an argument in a text of arguments."""
    return re.search(rf"\b{name}=([^,\s]+)", args)[1]


async def invoices(tools, program):
    """An invoice is negative: its rate is. Who wrote the rate?"""
    recording, _, printed = await ended(tools, program)
    assert ": -" in printed, printed
    found = await tools(
        "debug_query", recording=recording, function={"equals": "total_of"}, returnValue={"lessThan": 0}, verbosity="full"
    )
    (call,) = found["events"]
    inside = await tools("debug_query", recording=recording, eventType=["call"], seqFrom=call["seq"], seqTo=call["endSeq"])
    net = next(event for event in inside["events"] if event["function"] == "net_of")
    tax = next(event for event in inside["events"] if event["function"] == "tax_of")
    assert int(net["returnValue"]) > 0 > int(tax["returnValue"]), inside
    stop = await written(tools, program, f"rates[{argument(call['args'], 'region')}].per_mille")
    assert int(stop["oldValue"]) > 0 > int(stop["newValue"]), stop
    return writer(stop)


async def sensors(tools, program):
    """A station rings no more: its limit is 0. Who wrote the limit?"""
    recording, code, printed = await ended(tools, program, pointees=True)
    assert code == 1, printed
    station = re.search(r"(\w+): highest \d+, alarms 0\n\w+: .*\n*\Z", printed)[1]
    asked = await tools(
        "debug_query",
        recording=recording,
        function={"equals": "must_ring"},
        args={"contains": f'"{station}"'},
        order="desc",
        limit=1,
    )
    shown = asked["events"][0]
    assert shown["returnValue"] == "0" and "alarm_above = 0" in shown["args"], shown
    before = await tools(
        "debug_sql",
        recording=recording,
        sql=f"select count(*) as n from calls where function = 'must_ring' and start_seq < {shown['seq']}"
        f" and args not like '%alarm_above = 0%' and args like '%\"{station}\"%'",
    )
    assert before["rows"][0]["n"] > 0, before
    index = re.findall(r"^(\w+):", printed, re.MULTILINE).index(station)
    stop = await written(tools, program, f"stations[{index}].alarm_above")
    assert stop["newValue"] == "0", stop
    # The place that the line writes to is the limit itself.
    target = stop["writtenBy"]["text"].split("=")[0].strip()
    asked = [{"variable": f"&{target}"}, {"variable": f"&stations[{index}].alarm_above"}]
    read = await tools("debug_read", sessionId=stop["sessionId"], targets=asked)
    assert len({result["value"] for result in read["results"]}) == 1 and "samples" in target, read
    return writer(stop)


async def packets(tools, program):
    """A packet is dropped: its length is negative. Which line makes it so?"""
    recording, code, printed = await ended(tools, program)
    assert code == 1 and "1 packets dropped" in printed, printed
    found = await tools(
        "debug_sql",
        recording=recording,
        sql="select n, start_seq, ret from (select *, row_number() over (order by start_seq) as n from calls"
        " where function = 'length_of') where ret < 0",
    )
    (call,) = found["rows"]
    session = (await tools("debug_launch", program=program, stopOnEntry=True))["sessionId"]
    await tools("debug_breakpoint", sessionId=session, add=[{"function": "length_of", "hitCount": call["n"]}])
    stop = await tools("debug_continue", sessionId=session)
    assert stop["function"] == "length_of", stop
    second = await tools("debug_continue", sessionId=session, action="step-over")
    await tools("debug_continue", sessionId=session, action="step-over")
    read = await tools("debug_read", sessionId=session, targets=[{"variable": "high"}, {"variable": "low"}, {"variable": "(unsigned char)at[2]"}])
    high, low, byte = (int(result["value"].split()[0]) for result in read["results"])
    # The byte is right, and the number made of it is not.
    assert high == 0 and low == call["ret"] < 0 and byte == low + 256, read
    assert "low" in second["source"], second
    return second["file"], second["line"]


async def bank(tools, program):
    """Deposits vanish: at one event the balance falls. Who wrote it, and what was written since it had been read?"""
    recording, code, printed = await ended(tools, program, logWrites=["balance"])
    assert code == 1, printed
    history = await tools("debug_history", recording=recording, expression="balance")
    falls = [change for change in history["changes"] if "old" in change and int(change["value"]) < int(change["old"])]
    fall = max(falls, key=lambda change: int(change["old"]) - int(change["value"]))
    call = await tools(
        "debug_sql",
        recording=recording,
        sql=f"select function, args, start_seq, end_seq from calls where tid = {fall['threadId']}"
        f" and {fall['seq']} between start_seq and end_seq order by start_seq desc limit 1",
    )
    (call,) = call["rows"]
    assert call["function"] == fall["function"], (call, fall)
    # It wrote what had been there at its beginning and its amount, and other threads wrote meanwhile.
    read = [change for change in history["changes"] if change["seq"] < call["start_seq"]][-1]
    assert int(fall["value"]) == int(read["value"]) + int(argument(call["args"], "amount")), (read, fall)
    lost = [change for change in history["changes"] if call["start_seq"] < change["seq"] < fall["seq"]]
    assert lost and all(change["threadId"] != fall["threadId"] for change in lost), lost
    return fall["file"], fall["line"]


async def timers(tools, program):
    """A timer rings with another text: its memory had been freed. Who freed it?"""
    recording, _, printed = await ended(tools, program)
    assert "3: buy milk" in printed, printed
    rung = await tools("debug_query", recording=recording, function={"equals": "Timer::ring"}, returnValue={"equals": 1})
    # Each call that returned true printed a line.
    order = [number for number, line in enumerate(printed.splitlines()) if "milk" in line]
    call = rung["events"][order[0]]
    address = argument(call["args"], "this")
    life = await tools(
        "debug_query", recording=recording, args={"contains": address}, function={"matches": "^Timer::"}, seqTo=call["seq"]
    )
    freed = next(event for event in life["events"] if event["function"] == "Timer::~Timer")
    state = await tools.text("debug_state", recording=recording, at=freed["seq"], show=["backtrace"])
    _, file, line = frames(state)[1]
    shown = await tools.text("debug_source", recording=recording, location=f"{os.path.basename(file)}:{line}", context=2)
    assert any(number == line and "delete" in text for number, _, text in lines(shown)), shown
    return file, line


async def mailbox(tools, program):
    """The reader waits though there is a letter: who put it down without the lock?"""
    session, (reader,) = await hung(tools, program)
    state = await tools.text("debug_state", sessionId=session, threadId=reader, show=["backtrace"])
    assert "cond_wait" in state, state
    index = int(re.search(r"#(\d+) +take ", state)[1])
    seen = await tools.text("debug_state", sessionId=session, threadId=reader, frame=index, show=["where"])
    assert "arrived.wait" in seen, seen
    read = await tools("debug_read", sessionId=session, targets=[{"variable": "box.letters"}])
    assert "1" in read["results"][0]["value"], (seen, read)
    # Who used the number of letters, and how many locks had that thread taken before?
    uses = await tools(
        "debug_sql",
        sessionId=session,
        sql="select p.start_seq, p.tid, p.function, count(l.start_seq) as locks from calls c join calls p on p.start_seq = c.parent"
        " left join calls l on l.tid = c.tid and l.function = 'std::mutex::lock' and l.start_seq < c.start_seq"
        f" where c.args like '%this={read['results'][0]['address']}%' and c.function like '%operator%' and p.file like '%mailbox.cc'"
        " group by 1, 2, 3 order by 1",
    )
    assert any(use["tid"] == reader and use["locks"] > 0 for use in uses["rows"]), uses
    (suspect,) = (use for use in uses["rows"] if use["locks"] == 0)
    shown = await tools.text("debug_source", sessionId=session, location=suspect["function"], wholeFunction=True)
    changes = [number for number, _, text in lines(shown) if "letters" in text]
    assert len(changes) == 1, shown
    return "mailbox.cc", changes[0]


async def frames_leak(tools, program):
    """The pool runs dry: which way out of `decode` keeps the buffer?"""
    recording, code, printed = await ended(tools, program)
    assert code == 1 and "no buffer left" in printed, printed
    kept = await tools(
        "debug_sql",
        recording=recording,
        sql="select p.start_seq, p.function, p.args, p.ret_text from calls a join calls p on p.start_seq = a.parent"
        " where a.function = 'acquire' and a.ret <> 0 and a.parent not in"
        " (select parent from calls where function = 'release') order by 1",
    )
    call = kept["rows"][0]
    session = (await tools("debug_launch", program=program, stopOnEntry=True))["sessionId"]
    shown = await tools.text("debug_source", sessionId=session, location=call["function"], wholeFunction=True)
    ways = [number for number, _, text in lines(shown) if "return " in text]
    condition = f"frame == {argument(call['args'], 'frame')}"
    add = [{"file": "frames.cc", "line": number, "condition": condition} for number in ways]
    await tools("debug_breakpoint", sessionId=session, add=add)
    stop = await tools("debug_continue", sessionId=session)
    assert stop["reason"] == "breakpoint" and stop["line"] in ways, stop
    return stop["file"], stop["line"]


async def catalog(tools, program):
    """An order is charged the old price: the cache answered. Who changed the price without the cache?"""
    recording, code, printed = await ended(tools, program)
    assert code == 1, printed
    asked = await tools(
        "debug_sql",
        recording=recording,
        sql="select c.start_seq, c.function, c.ret_text, (select count(*) from calls i where i.parent = c.start_seq) as calls_made"
        " from calls c where c.function like '%Catalog::%' and c.args like '%id=4%' order by 1",
    )
    rows = asked["rows"]
    prices = [row for row in rows if row["function"].endswith("::price")]
    change = next(row for row in rows if row["function"].endswith("set_price"))
    assert prices[0]["start_seq"] < change["start_seq"] < prices[-1]["start_seq"], rows
    assert prices[0]["ret_text"] == prices[-1]["ret_text"], rows
    computed = [row for row in rows if row["function"].endswith("computed_price")]
    assert all(row["start_seq"] < change["start_seq"] for row in computed), rows
    made = await tools(
        "debug_sql",
        recording=recording,
        sql="select distinct p.function as caller, c.function as callee from calls c join calls p on p.start_seq = c.parent"
        f" where p.function in ('{change['function']}', '{change['function'].replace('set_price', 'rearrange')}')",
    )
    removers = {row["caller"] for row in made["rows"] if "remove" in row["callee"]}
    assert removers and change["function"] not in removers, made
    stop = await written(tools, program, "self.shelf.cents[4]", breakAt=[change["function"]])
    assert stop["newValue"] != stop["oldValue"], stop
    return writer(stop)


async def journal(tools, program):
    """Two threads wait for each other: which of them takes the locks in an order of its own?"""
    session, threads = await hung(tools, program)
    waits = []
    for thread in threads:
        state = await tools.text("debug_state", sessionId=session, threadId=thread, show=["backtrace"])
        own = [frame for frame in frames(state) if frame[1].endswith("/journal.rs")]
        # The innermost waits for a lock; the one around it asked for it.
        waits.append(own[1])
    orders = await tools(
        "debug_sql",
        sessionId=session,
        sql="select p.function, p.start_seq, c.function as lock from calls c join calls p on p.start_seq = c.parent"
        " where c.function like '%Office::lock_%' order by c.start_seq",
    )
    firsts = {}
    for row in orders["rows"]:
        firsts.setdefault((row["function"], row["start_seq"]), row["lock"])
    usual = max(firsts.values(), key=list(firsts.values()).count)
    (other,) = {function for (function, _), lock in firsts.items() if lock != usual}
    _, file, line = next(wait for wait in waits if wait[0].split("::")[-1] == other.split("::")[-1])
    return file, line


async def settings(tools, program):
    """All requests time out: the time is 0. Which error became a 0?"""
    recording, code, printed = await ended(tools, program)
    assert code == 1 and "timed out" in printed, printed
    asked = await tools("debug_query", recording=recording, function={"equals": "settings::ask"}, limit=1)
    assert argument(asked["events"][0]["args"], "timeout") == "0", asked
    errors = await tools(
        "debug_sql",
        recording=recording,
        sql="select c.start_seq, c.function, c.ret_text, p.function as caller, p.ret_text as caller_returned from calls c"
        " join calls p on p.start_seq = c.parent where c.function like 'settings::%' and c.ret_text like '%Err%' order by 1",
    )
    error = errors["rows"][0]
    assert error["caller_returned"] == "0", errors
    state = await tools.text("debug_state", recording=recording, at=error["start_seq"], show=["backtrace"])
    _, file, line = frames(state)[1]
    shown = await tools.text("debug_source", recording=recording, location=f"{os.path.basename(file)}:{line}", context=2)
    assert any(number == line and "unwrap_or" in text for number, _, text in lines(shown)), shown
    return file, line


async def orders(tools, program):
    """The database of a shop is said to be malformed: which value was wrong, and who had written it?"""
    session = (await tools("debug_launch", program=program))["sessionId"]
    end = await tools("debug_wait", sessionId=session)
    said = await tools.text("debug_overview", recording=end["recording"])
    assert end["exitCode"] == 1 and "database disk image" in said, said
    suspect = int(re.search(r'debug_why {"of":(\d+)}', said)[1])
    chain = await tools.text("debug_why", recording=end["recording"], of=suspect)
    origin, place, line = re.search(r"same value inside it: (\w+)\(.*called at (\S+):(\d+)", chain).groups()
    # It stopped there in a run whose addresses are those of the next one.
    stop = await tools("debug_launch", program=program, noAslr=True, breakAt=[origin])
    assert stop["function"] == origin, stop
    state = await tools.text("debug_state", sessionId=stop["sessionId"], frame=1, show=["where"])
    (condition,) = (text for number, _, text in lines(state) if number == int(line))
    left, right = re.search(r"if\( (\w+)>(\S+) \) return", condition).groups()
    asked = [{"variable": text} for text in (left, right, f"&{right}")]
    read = await tools("debug_read", sessionId=stop["sessionId"], targets=asked)
    wanted, had, _ = (result["value"].split()[0] for result in read["results"])
    address = read["results"][1]["address"]
    assert int(wanted) > int(had) == 0, read
    session = (await tools("debug_launch", program=program, noAslr=True, logWrites=[f"{address}:1"]))["sessionId"]
    end = await tools("debug_wait", sessionId=session)
    made = await tools(
        "debug_sql",
        recording=end["recording"],
        sql="select file, line, function, count(*) as writes, sum(case when new > old then 1 else 0 end) as raised,"
        " sum(case when new < old then 1 else 0 end) as lowered, max(seq) as last from writes group by 1, 2, 3 order by last desc",
    )
    # The place that counts fragments up has lowered their number, and was the last to change it.
    (suspect,) = (row for row in made["rows"] if row["raised"] and row["lowered"])
    return suspect["file"], suspect["line"]


async def rules(tools, program):
    """After many refused orders the interpreter says that its stack overflows: who counts its calls, and does not count back?"""
    session = (await tools("debug_launch", program=program))["sessionId"]
    end = await tools("debug_wait", sessionId=session)
    said = await tools.text("debug_overview", recording=end["recording"])
    assert end["exitCode"] == 1 and "C stack overflow" in said, said
    suspect = int(re.search(r'debug_why {"of":(\d+)}', said)[1])
    chain = await tools.text("debug_why", recording=end["recording"], of=suspect)
    checker = re.search(r"called by (\w+)", chain)[1]
    stop = await tools("debug_launch", program=program, noAslr=True, breakAt=[checker])
    assert "getCcalls(L)" in stop["source"], stop
    told = await tools.text("debug_why", sessionId=stop["sessionId"], of="L->nCcalls")
    again = json.loads(re.search(r"debug_launch with (\{.*\})", told)[1])
    session = (await tools("debug_launch", program=program, **again))["sessionId"]
    end = await tools("debug_wait", sessionId=session)
    made = await tools(
        "debug_sql",
        recording=end["recording"],
        sql="select file, line, function, count(*) as writes, sum(case when left(new, 4) <> left(old, 4) then 1 else 0 end) as changes"
        " from writes group by 1, 2, 3 order by writes desc",
    )
    # The calls are counted in its lower half. One line writes it after each protected call, and that never changes the count.
    (suspect,) = (row for row in made["rows"] if row["writes"] > 100 and row["changes"] == 0)
    location = f"{os.path.basename(suspect['file'])}:{suspect['line']}"
    shown = await tools.text("debug_source", recording=end["recording"], location=location, context=10)
    assert any(number == suspect["line"] and "oldnCcalls" in text for number, _, text in lines(shown)), shown
    return suspect["file"], suspect["line"]


HUNTS = {
    "invoices": ("wrong value far from its cause", "C", "invoices.c", invoices),
    "sensors": ("off by one", "C", "sensors.c", sensors),
    "packets": ("wrong sign extension", "C", "packets.c", packets),
    "bank": ("race", "C", "bank.c", bank),
    "timers": ("use after free", "C++", "timers.cc", timers),
    "mailbox": ("lost wake-up", "C++", "mailbox.cc", mailbox),
    "frames": ("leak", "C++", "frames.cc", frames_leak),
    "catalog": ("stale cache", "Rust", "catalog.rs", catalog),
    "journal": ("deadlock", "Rust", "journal.rs", journal),
    "settings": ("wrong error handling", "Rust", "settings.rs", settings),
    "orders": ("wrong value far from its cause", "SQLite", "sqlite3.c", orders),
    "rules": ("wrong error handling", "Lua", "ldo.c", rules),
}


async def hunt(tools, name, programs, sources):
    """Runs one hunt, compares its line with the marked one, and prints a row."""
    bug, language, source, investigate = HUNTS[name]
    try:
        file, line = await investigate(tools, os.path.join(programs, name))
        calls, tokens = tools.calls, tools.tokens
    finally:
        await leave(tools)
    # What a build patches lies beside the program.
    folder = sources if os.path.exists(os.path.join(sources, source)) else programs
    marked = line_of(os.path.join(folder, source), "/* bug */" if not source.endswith(".rs") else "// bug")
    assert (os.path.basename(file), line) == (source, marked), f"{name}: {file}:{line}, not line {marked}"
    assert calls <= MOST_CALLS and tokens <= MOST_TOKENS, f"{name}: {calls} calls, {tokens} tokens"
    print(f"| {name} | {bug} | {language} | {calls} | {tokens:,} |", flush=True)


async def leave(tools):
    """Ends the programs that still run. Recordings are closed by the server."""
    listed = await tools("debug_session")
    for session in listed.get("sessions", []):
        if session["status"] != "recorded":
            await tools("debug_session", action="stop", sessionId=session["sessionId"])


if __name__ == "__main__":
    for chosen in sys.argv[3:] or HUNTS:
        run(hunt, chosen, sys.argv[1], sys.argv[2])
