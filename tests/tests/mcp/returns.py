"""Finds calls by what they returned, in a recording whose results are known."""

import sys

from harness import run

MOST = 2**63


async def returns(tools, recording):
    async def found(**asked):
        """The events of a page, and how many there are in all."""
        page = await tools("debug_query", recording=recording, budget=10000, **asked)
        return page["events"], len(page["events"]) + page.get("leftOut", 0)

    async def total(**wanted):
        return (await found(returnValue=wanted))[1]

    assert await total(equals=-1) == 667
    assert await total(lessThan=0) == 667
    assert await total(isNull=True) == 2000
    assert await total(isNull=False) == 4 * 2000 + 31 + 1
    assert await total(greaterThan=MOST) == 1999
    events, count = await found(returnValue={"equals": 7})
    assert count == 2, events
    assert [(event["function"], event["args"]) for event in events] == [("odd", "i=7"), ("wide", "i=7")], events
    events, count = await found(returnValue={"equals": MOST * 2 - 5})
    assert count == 1 and events[0]["args"] == "i=5", events
    # Calls that begin later end earlier.
    events, count = await found(function={"equals": "deep"})
    boxes = [f"{{a = {n}, b = {max(n - 1, 0)}, c = 0}}" for n in range(30, -1, -1)]
    assert [event["returnValue"] for event in events] == boxes, events
    events, count = await found(function={"equals": "big"}, returnValue={"isNull": False}, order="desc", limit=2)
    assert count == 2000, count
    assert [event["returnValue"] for event in events] == [f"{{a = {i}, b = {2 * i}, c = {3 * i}}}" for i in (1999, 1998)], events


done = run(returns, sys.argv[1])
print(f"returns: {done.calls} calls")
