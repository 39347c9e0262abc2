"""The server over HTTP: with the token it answers, without it refuses, and a client that vanishes does no harm.

Usage: over_http.py RECORDING PROGRAM.
"""

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

recording, program = sys.argv[1:]
server = subprocess.Popen(
    [os.environ["HINDSIGHT_BIN"], "mcp", "--http", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
)
try:
    address = re.search(r"http://\S+", server.stderr.readline()).group()
    token = server.stderr.readline().split()[-1]
    for header in ({}, {"Authorization": "Bearer wrong"}):
        try:
            urllib.request.urlopen(urllib.request.Request(address, data=b"{}", headers=header))
            raise AssertionError("a request without the token was answered")
        except urllib.error.HTTPError as error:
            assert error.code == 401, error
    longest = 16 << 20
    too_long = b" " * (longest + 1)
    try:
        urllib.request.urlopen(
            urllib.request.Request(address, data=too_long, headers={"Authorization": f"Bearer {token}"})
        )
        raise AssertionError("a request that is too long was answered")
    except urllib.error.HTTPError as error:
        assert error.code == 413, error
        assert str(longest) in error.read().decode(), error

    def post(session, **message):
        """Sends a message as a client of its own, and returns the connection, whose answer may come late."""
        place = urllib.parse.urlsplit(address)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **({"Mcp-Session-Id": session} if session else {}),
        }
        connection.request("POST", place.path, json.dumps({"jsonrpc": "2.0", **message}), headers)
        return connection

    def call(number, tool, **arguments):
        return {"id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}

    async def until(client, session, status):
        """Waits until a program has a status, at most half a minute."""
        for _ in range(300):
            result = await client.call_tool("debug_session", {})
            sessions = json.loads(result.content[0].text)["sessions"]
            if [one["status"] for one in sessions if one["sessionId"] == session] == [status]:
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"the program is not {status}: {sessions}")

    async def vanishes(client):
        """A client goes in the middle of debug_continue: the program runs on, and others can end it."""

        async def asked(tool, **arguments):
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result
            return json.loads(result.content[0].text)

        launched = await asked("debug_launch", program=program, args=["spinning"], stopOnEntry=True)
        of = {"sessionId": launched["sessionId"]}
        who = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
        begun = post(None, id=0, method="initialize", params=who).getresponse()
        assert begun.status == 200, begun.read()
        session = begun.headers["Mcp-Session-Id"]
        post(session, method="notifications/initialized").getresponse().read()
        waiting = post(session, **call(1, "debug_continue", timeoutMs=600_000, **of))
        await until(client, launched["sessionId"], "running")
        waiting.close()
        await asyncio.sleep(1)
        await until(client, launched["sessionId"], "running")
        stop = await asked("debug_continue", action="pause", **of)
        assert stop["status"] == "paused", stop
        await asked("debug_write", targets=[{"variable": "tempo", "value": 90}], **of)
        end = await asked("debug_continue", **of)
        assert end["status"] == "exited" and end["exitCode"] == 0, end
        # The end of a session is answered as a success, and the scheme is spelt as one likes.
        place = urllib.parse.urlsplit(address)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
        headers = {"Authorization": f"bearer {token}", "Mcp-Session-Id": session}
        connection.request("DELETE", place.path, headers=headers)
        ended = connection.getresponse()
        assert ended.status == 204, (ended.status, ended.read())

    async def main():
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=120) as http:
            async with Client(streamable_http_client(address, http_client=http)) as client:
                arguments = {"recording": recording, "sql": "select count(*) as n from calls"}
                result = await client.call_tool("debug_sql", arguments)
                rows = json.loads(result.content[0].text)
                assert rows["rows"] == [{"n": 47}], rows
                await vanishes(client)

    asyncio.run(main())
finally:
    server.send_signal(signal.SIGTERM)
    assert server.wait(10) == 0, server.returncode
