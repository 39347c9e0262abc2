"""Talks to `hindsight mcp` through the Python SDK of the protocol, and counts what a model would read."""

import asyncio
import contextlib
import json
import os

from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client
from rs_bpe.bpe import openai

TOKENIZER = openai.o200k_base()


class Failure(AssertionError):
    """A tool refused, or a scenario did not find what it looked for."""


class Tools:
    """The tools of one server. Counts calls and tokens of results."""

    def __init__(self, client):
        self.client = client
        self.calls = 0
        self.tokens = 0
        self.seen = ""

    async def text(self, tool, **arguments):
        """Returns the text of a result within its budget; raises Failure where the tool refuses."""
        return await self.within(arguments.get("budget", 2000), tool, **arguments)

    async def within(self, most, tool, **arguments):
        """Returns the text of a result with at most so many tokens; raises Failure where the tool refuses."""
        result = await self.client.call_tool(tool, arguments)
        assert len(result.content) == 1, result
        assert result.structured_content is None, "the same thing twice"
        text = result.content[0].text
        self.calls += 1
        tokens = len(TOKENIZER.encode(text))
        assert tokens <= most, f"{tool}: {tokens} tokens\n{text}"
        self.tokens += tokens
        self.seen += text
        if result.is_error:
            raise Failure(text)
        return text

    async def __call__(self, tool, **arguments):
        """Returns a result that is JSON."""
        return json.loads(await self.text(tool, **arguments))

    async def refused(self, tool, **arguments):
        """Returns the error of a call that must be refused."""
        try:
            text = await self.text(tool, **arguments)
        except Failure as failure:
            answer = json.loads(str(failure))
            assert answer["success"] is False, answer
            return answer["error"]
        raise AssertionError(f"{tool} {arguments} was not refused: {text}")


@contextlib.asynccontextmanager
async def another():
    """The tools of a server of its own: the binary in HINDSIGHT_BIN, in the current folder and the environment of this process."""
    server = StdioServerParameters(command=os.environ["HINDSIGHT_BIN"], args=["mcp"], env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        yield Tools(client)


def run(scenario, *arguments):
    """Runs a scenario against a server."""

    async def main():
        async with another() as tools:
            await scenario(tools, *arguments)
            return tools

    return asyncio.run(main())


def line_of(source, mark):
    """The number of the line of a file that has a mark in it."""
    with open(source, encoding="utf-8") as file:
        found = [number for number, line in enumerate(file, 1) if mark in line]
    assert len(found) == 1, f"{source}: {mark} on lines {found}"
    return found[0]
