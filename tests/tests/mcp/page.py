"""Makes the calls that a page shows, and compares their answers. Usage: page.py PAGE HEADING.

The current folder holds what the page starts. What differs from run to run is not compared: ids, addresses, times.
"""

import json
import os
import re
import sys

from harness import run

CALL = re.compile(r"^(debug_\w+) (\{.*\})$")


def section(page, heading):
    """The lines of a section's blocks of code."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    text = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return "\n".join(text.split("```")[1::2]).splitlines()


def calls(lines):
    """The calls among the lines: (tool, arguments, answer)."""
    found = []
    for line in lines:
        if call := CALL.match(line):
            found.append((call[1], json.loads(call[2]), []))
        elif found:
            found[-1][2].append(line)
    return [(tool, arguments, "\n".join(answer).strip()) for tool, arguments, answer in found]


def comparable(text):
    """An answer without what differs from run to run."""
    text = text.replace(os.getcwd(), "/home/ada")
    text = re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)
    text = re.sub(r'("pid":|"threadId":|thread )\d+', r"\1ID", text)
    return re.sub(r'("durationNs":)\d+', r"\1TIME", text)


async def scenario(tools, page, heading):
    shown = calls(section(page, heading))
    for tool, arguments, answer in shown:
        said = comparable((await tools.text(tool, **arguments)).strip())
        if tool == "debug_launch":
            # Whether it still runs is a matter of chance.
            said, answer = (re.sub(r'"(exit|exitCode|status)":("[^"]*"|\d+),?', "", text).replace(",}", "}") for text in (said, answer))
        assert said == comparable(answer), f"{tool} {json.dumps(arguments)} answers\n{said}\nand not\n{answer}"
    print(f"page: {len(shown)} calls")


run(scenario, *sys.argv[1:])
