"""fm-system with the OpenAI Agents SDK for Python, unmodified, and a scripted model: it lists the tools, converts their
schemas, calls them, and gives the results to the model.

    run_agents.py PROGRAM FOLDER...

The folders have the SDK and its dependencies. Prints a line for each check, and ends at the first one that fails.
"""

import asyncio
import importlib.metadata
import json
import os
import sys
import tempfile

PROGRAM, *FOLDERS = sys.argv[1:]
sys.path[:0] = FOLDERS
from agents import Agent, ModelResponse, Runner, Usage, set_tracing_disabled  # noqa: E402
from agents.mcp import MCPServerStdio  # noqa: E402
from agents.models.interface import Model  # noqa: E402
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText  # noqa: E402

DESKTOP = {
    "monitors": [{"area": [0, 0, 1920, 1080], "primary": True}],
    "apps": [{"id": "xterm.desktop", "name": "XTerm", "class": "XTerm", "program": "xterm"}],
    "windows": [{"id": "w1", "class": "XTerm", "title": "sh", "bounds": [0, 0, 640, 480], "active": True}],
    "tabs": [{"id": "t1", "window": "1", "active": True, "title": "Reddit", "url": "https://www.reddit.com/"},
             {"id": "t2", "window": "1", "title": "GitHub", "url": "https://github.com/a"},
             {"id": "t3", "window": "2", "active": True, "title": "r/c", "url": "https://old.reddit.com/r/c"}],
}
TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", type(None): "null"}
STEPS = [
    ("list_tabs", {}),
    lambda told: ("close_tab", {"tab_indices": [3, 1], "snapshot": told["snapshot"]}),
    ("focus_app", {"app_name": "nobody"}),
    ("place_app", {"app_name": "XTerm", "bounds": [0, 0, 800, 600]}),
    ("undo", {}),
    ("run_commands", {"commands": [{"type": "list_apps"}, {"type": "focus_app", "app_name": "XTerm"}]}),
]
ACTIONS = ["tab.close t3", "tab.close t1", "place w1 0 0 800 600", "place w1 0 0 640 480", "focus w1"]


def say(schema, wanted):
    """The parameters from a model that follows the schema: all required members, null for those that it does not want."""
    properties = schema["properties"]
    assert wanted.keys() <= properties.keys(), (wanted, schema)
    said = [name for name in properties if name in wanted or name in schema.get("required", ())]
    return {name: fit(properties[name], wanted.get(name)) for name in said}


def fit(schema, value):
    for form in schema.get("anyOf", [schema]):
        types = form["type"] if isinstance(form["type"], list) else [form["type"]]
        if TYPES[type(value)] in types:
            assert value in form.get("enum", [value]), (value, form)
            if isinstance(value, list):
                return [fit(form["items"], item) for item in value]
            return say(form, value) if isinstance(value, dict) else value
    raise AssertionError(f"the schema lets nobody say {value}: {schema}")


def objects_of(schema):
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    found = [item for value in inner for item in objects_of(value)]
    return found + [schema] if isinstance(schema, dict) and isinstance(schema.get("properties"), dict) else found


class Scripted(Model):
    """A model with scripted steps. Each step is a tool and its parameters, or a function that makes them from the last result."""

    def __init__(self):
        self.steps, self.results, self.tools = list(STEPS), [], {}

    async def get_response(self, system_instructions, input, model_settings, tools, *args, **kwargs):
        self.tools.update({tool.name: tool for tool in tools})
        last = input[-1]
        if isinstance(last, dict) and last.get("type") == "function_call_output":
            output = last["output"]
            self.results.append(json.loads(output if isinstance(output, str) else output[0]["text"]))
        if not self.steps:
            text = ResponseOutputText(type="output_text", text="done", annotations=[])
            return self.answer(ResponseOutputMessage(id="m", type="message", role="assistant", status="completed",
                                                     content=[text]))
        step = self.steps.pop(0)
        name, wanted = step(self.results[-1]) if callable(step) else step
        said = json.dumps(say(self.tools[name].params_json_schema, wanted))
        return self.answer(ResponseFunctionToolCall(type="function_call", call_id=str(len(self.steps)), name=name,
                                                    arguments=said))

    def answer(self, item):
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


async def check(strict, folder):
    log = os.path.join(folder, f"{strict}.log")
    desktop = os.path.join(folder, f"{strict}.json")
    with open(desktop, "w", encoding="utf-8") as file:
        json.dump({**DESKTOP, "log": log}, file)
    model = Scripted()
    async with MCPServerStdio(params={"command": PROGRAM, "args": ["--desktop", desktop]}) as server:
        agent = Agent(name="Desk", model=model, mcp_servers=[server], mcp_config={"convert_schemas_to_strict": strict})
        result = await Runner.run(agent, "close all reddit tabs")
    assert result.final_output == "done", result
    for tool in model.tools.values():
        assert tool.strict_json_schema == strict, tool.name
        for schema in objects_of(tool.params_json_schema) if strict else ():
            assert schema["additionalProperties"] is False and schema["required"] == list(schema["properties"]), tool
    tabs, closed, refused, placed, undone, request = model.results
    assert [tab["domain"] for tab in tabs["tabs"]] == ["reddit.com", "github.com", "old.reddit.com"]
    assert closed["closed"] == [1, 3], closed
    assert refused["error"]["code"] == "unknown_app" and refused["error"]["candidates"][0] == "XTerm", refused
    assert placed["bounds"] == [0, 0, 800, 600] and undone["restored"][0]["bounds"] == [0, 0, 640, 480], (placed, undone)
    assert [each["type"] for each in request["results"]] == ["list_apps", "focus_app"], request
    with open(log, encoding="utf-8") as told:
        assert told.read().split("\n")[:-1] == ACTIONS
    print(f"{'strict' if strict else 'not strict'}: ok, {len(model.tools)} tools")


async def main():
    set_tracing_disabled(True)
    for package in ("openai-agents", "mcp"):
        print(package, importlib.metadata.version(package))
    with tempfile.TemporaryDirectory() as folder:
        for strict in (False, True):
            await check(strict, folder)


asyncio.run(main())
