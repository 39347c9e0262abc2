"""The server over HTTP: with the token it answers, without it refuses. Usage: over_http.py RECORDING."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

recording = sys.argv[1]
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

    async def main():
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=120) as http:
            async with Client(streamable_http_client(address, http_client=http)) as client:
                arguments = {"recording": recording, "sql": "select count(*) as n from calls"}
                result = await client.call_tool("debug_sql", arguments)
                rows = json.loads(result.content[0].text)
                assert rows["rows"] == [{"n": 47}], rows

    asyncio.run(main())
finally:
    server.send_signal(signal.SIGTERM)
    assert server.wait(10) == 0, server.returncode
