"""fm-system with the Python SDK of the Model Context Protocol, unmodified. FOLDER has the SDK: version 1, or version 2, which
speaks both eras.

    run_python.py PROGRAM FOLDER

Prints a line for each check, and ends at the first one that fails.
"""

import asyncio
import importlib.metadata
import json
import os
import sys
import tempfile

PROGRAM, FOLDER = sys.argv[1:]
sys.path.insert(0, FOLDER)
from mcp import ClientSession, StdioServerParameters  # noqa: E402
from mcp.client.stdio import stdio_client  # noqa: E402

try:
    from mcp import Client
    from mcp_types import ElicitResult
except ImportError:
    Client = None

DESKTOP = {
    "monitors": [{"area": [0, 0, 1920, 1080], "primary": True}],
    "apps": [{"id": name + ".desktop", "name": name, "class": name, "program": name} for name in ("XTerm", "Slow", "Stuck")],
    "windows": [{"id": "w1", "class": "XTerm", "title": "sh", "bounds": [0, 0, 640, 480], "active": True}],
    "tabs": [{"id": "t1", "window": "1", "active": True, "title": "Reddit", "url": "https://www.reddit.com/"},
             {"id": "t2", "window": "1", "title": "GitHub", "url": "https://github.com/a"}],
    "rules": [{"on": "launch Stuck.desktop", "do": "refuse"}],
    "takes_time": True,
}


def field(thing, old, new):
    """Version 1 uses the names of the wire, version 2 Python's."""
    return getattr(thing, new) if hasattr(thing, new) else getattr(thing, old)


async def check(session, actions):
    tools = (await session.list_tools()).tools
    assert {"list_apps", "close_tab", "run_commands"} <= {tool.name for tool in tools}
    hints = {tool.name: field(tool.annotations, "destructiveHint", "destructive_hint") for tool in tools}
    assert hints["close_tab"] and not hints["list_tabs"]
    for resource in (await session.list_resources()).resources:
        contents = (await session.read_resource(resource.uri)).contents
        assert isinstance(json.loads(contents[0].text), dict)
    prompts = (await session.list_prompts()).prompts
    text = (await session.get_prompt(prompts[0].name, {"words": "close all"})).messages[0].content.text
    assert text.endswith("The user says: close all")

    told = field(await session.call_tool("list_tabs", {}), "structuredContent", "structured_content")
    assert [tab["domain"] for tab in told["tabs"]] == ["reddit.com", "github.com"]
    told = await session.call_tool("close_tab", {"tab_indices": [2], "snapshot": told["snapshot"]})
    assert field(told, "structuredContent", "structured_content")["closed"] == [2]
    told = await session.call_tool("focus_app", {"app_name": "nobody"})
    assert field(told, "isError", "is_error")
    assert field(told, "structuredContent", "structured_content")["error"]["code"] == "unknown_app"
    try:
        await session.call_tool("nonsense", {})
        raise AssertionError("a tool that is not there was called")
    except Exception as error:  # each version has a different class
        assert "nonsense" in str(error), error

    steps = []

    async def on_progress(progress, total, message):
        steps.append((progress, total, message))
    commands = [{"type": "list_apps"}, {"type": "focus_app", "app_name": "Slow"}]
    await session.call_tool("run_commands", {"commands": commands}, progress_callback=on_progress)
    assert steps == [(0, 2, "1 of 2: list_apps"), (1, 2, "2 of 2: focus_app")], steps

    stuck = asyncio.create_task(session.call_tool("focus_app", {"app_name": "Stuck"}))
    while "launch Stuck.desktop" not in actions():
        await asyncio.sleep(0.01)
    stuck.cancel()
    await asyncio.wait([stuck])
    assert stuck.cancelled()


async def run(name, mode, folder, asked=None):
    """If `asked` is a list, the user gets a question before something is closed, and says yes. The questions are added to the
    list."""
    log = os.path.join(folder, name + ".log")
    desktop = os.path.join(folder, name + ".json")
    with open(log, "w", encoding="utf-8"), open(desktop, "w", encoding="utf-8") as file:
        json.dump({**DESKTOP, "log": log}, file)
    with open(os.path.join(folder, name + ".errors"), "w+", encoding="utf-8") as errors:
        server = stdio_client(StdioServerParameters(command=PROGRAM, args=["--desktop", desktop]), errlog=errors)

        def actions():
            with open(log, encoding="utf-8") as told:
                return told.read().split("\n")[:-1]
        if asked is not None:
            async def ask(_, params):
                asked.append(params.message)
                return ElicitResult(action="accept", content={})
            async with Client(server, mode=mode, elicitation_callback=ask) as client:
                await client.call_tool("close_tab", {"tab_indices": [1, 2]})
                assert len(asked) == 1 and actions() == ["tab.close t2", "tab.close t1"], (asked, actions())
                print(f"{name}: ok")
        elif mode:
            async with Client(server, mode=mode) as client:
                await check(client, actions)
                print(f"{name}: ok, {client.protocol_version}")
        else:
            async with server as streams, ClientSession(*streams) as session:
                answer = await session.initialize()
                await check(session, actions)
                print(f"{name}: ok, {field(answer, 'protocolVersion', 'protocol_version')}")
        errors.seek(0)
        assert errors.read() == "", "stderr is not quiet"


async def main():
    print("mcp", importlib.metadata.version("mcp"))
    with tempfile.TemporaryDirectory() as folder:
        await run("session", None, folder)
        for mode in ("legacy", "auto", "2026-07-28") if Client else ():
            await run(mode, mode, folder)
        if Client:
            await run("asks", "2026-07-28", folder, [])


asyncio.run(main())
