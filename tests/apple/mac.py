"""Asks questions about fm-engine-apple that only a Mac with Apple's library can answer. Prints a report to send back
(docs/apple.md):

    mac.py PROGRAM LIBRARY [--calls N]

PROGRAM is fm-engine-apple, in its app or beside it; LIBRARY is libFoundationModels.dylib. Each line is a question, its
answer, and how long it took. Nothing is right or wrong here: an answer that is an error is an answer. --calls (default 30) is for
the question about rate limits. With the stand-in of tests/apple the same script runs everywhere: its test does that. Needs only
Python 3.9 and its standard library.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "contract"))
from engine import Engine, Outcome, frame, user  # noqa: E402

STORY = "Write a story of five hundred words about a fox and the sea."
CITY = {"type": "object", "properties": {"city": {"type": "string"}, "people": {"type": "integer", "minimum": 0}},
        "required": ["city", "people"], "additionalProperties": False}
SCHEMAS = {
    "an object": CITY,
    "an object in an object": {"type": "object", "properties": {"capital": CITY}, "required": ["capital"]},
    "an array of objects": {"type": "object", "properties": {"cities": {"type": "array", "items": CITY, "maxItems": 2}},
                            "required": ["cities"]},
    "a choice of strings": {"type": "object", "properties": {"size": {"enum": ["small", "large"]}}, "required": ["size"]},
    "a property that may be null": {"type": "object", "properties": {"mayor": {"type": ["string", "null"]}},
                                    "required": ["mayor"]},
    "anyOf": {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, CITY]}}, "required": ["a"]},
    "a reference to itself": {"type": "object", "properties": {"name": {"type": "string"}, "parts": {
        "type": "array", "items": {"$ref": "#"}, "maxItems": 1}}, "required": ["name", "parts"]},
    "an array as the root": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
}
WEATHER = {"name": "get_weather", "description": "The weather of a city.", "parameters": CITY}


class Report:
    def __init__(self, program, library):
        self.program, self.library, self.loaded = program, library, None

    def engine(self, **env):
        """A loaded engine; if it does not load, `self.loaded` has the reason."""
        engine = Engine(self.program, {"FM_ENGINE_APPLE_LIBRARY": self.library, **env})
        engine.initialize()
        self.loaded = engine.load(None)[0]
        if not self.loaded["ok"]:
            engine.close()
            raise RuntimeError(json.dumps(self.loaded["error"]))
        return engine

    def ask(self, question, answer):
        """Prints one line; if something fails, the error is the answer."""
        start = time.monotonic()
        try:
            told = answer()
        except (AssertionError, RuntimeError, OSError, KeyError, ValueError) as error:
            told = f"{type(error).__name__}: {error}"
        print(f"{question}: {told} [{(time.monotonic() - start) * 1000:.0f} ms]", flush=True)

    def with_engine(self, question, answer, **env):
        def run():
            engine = self.engine(**env)
            try:
                return answer(engine)
            finally:
                engine.close()
        self.ask(question, run)


def shown(outcome):
    told = {"reason": outcome.reason, "usage": outcome.usage, "text": outcome.text[:80], "calls": outcome.calls,
            "refusal": outcome.refusal, "error": outcome.error}
    return json.dumps({key: value for key, value in told.items() if value})


def available(report):
    engine = Engine(report.program, {"FM_ENGINE_APPLE_LIBRARY": report.library})
    try:
        engine.initialize()
        return json.dumps(engine.call("engine.available", {})[0]["result"])
    finally:
        engine.close()


def first_text(engine):
    start = time.monotonic()
    times, events = [], []
    for name, params in engine.events(engine.start(user(STORY), max_tokens=100)):
        events.append((name, params))
        if name == "job.delta":
            times.append(time.monotonic() - start)
    first = f"first text after {times[0] * 1000:.0f} ms, {len(times)} pieces; " if times else ""
    return first + shown(Outcome(events))


def cancels(engine, **params):
    """Measures the time from an abort to the end of the job, ten times."""
    times, reasons = [], set()
    for _ in range(10):
        job = engine.start(user(STORY), **params)
        start = None
        for name, members in engine.events(job):
            if start is None and name == ("job.accepted" if params else "job.delta"):
                start = time.monotonic()
                engine.notify("job.abort", {"job": job})
            if name == "job.finished" and start is not None:
                times.append((time.monotonic() - start) * 1000)
                reasons.add(members["reason"])
    return f"median {statistics.median(times):.0f} ms, longest {max(times):.0f} ms, {sorted(reasons)}" if times else "too quick"


def after_tools(engine):
    return shown(engine.run([*user("How is the weather in Ulm?"), {"role": "assistant", "tool_calls": [
        {"id": "call_1", "name": "get_weather", "arguments": '{"city":"Ulm","people":0}'}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "18 degrees, rain"}], tools=[WEATHER]))


def calls_in_a_row(engine, count):
    codes = [(outcome.error or {}).get("code", outcome.reason)
             for outcome in (engine.run(user("Say yes."), max_tokens=5) for _ in range(count))]
    return json.dumps({code: codes.count(code) for code in sorted(set(codes))})


def leaks(engine):
    """Reports how many leaks Apple's tool counts after a hundred jobs of all kinds."""
    for number in range(100):
        kind = ({}, {"format": {"type": "json_schema", "schema": CITY}}, {"tools": [WEATHER]})[number % 3]
        engine.run(user("Berlin"), max_tokens=40, **kind)
    tool = "/usr/bin/leaks"
    if not os.path.exists(tool):
        return f"there is no {tool}"
    told = subprocess.run([tool, str(engine.process.pid)], capture_output=True, text=True, check=False).stdout
    return " ".join(line.strip() for line in told.splitlines() if "leaks for" in line) or "it says nothing"


def orphan(report):
    """Measures how long the engine lives after its parent is killed, while the engine's stdin stays open."""
    read_end, write_end = os.pipe()
    middle = "import subprocess, sys; subprocess.Popen([sys.argv[1]], stdin=int(sys.argv[2])).wait()"
    parent = subprocess.Popen([sys.executable, "-c", middle, report.program, str(read_end)], stdout=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, pass_fds=[read_end])
    os.close(read_end)
    os.write(write_end, frame({"jsonrpc": "2.0", "id": 1, "method": "engine.initialize",
                               "params": {"protocol_version": 1, "log_level": "off"}}))
    parent.stdout.readline()
    parent.kill()
    parent.wait()
    start = time.monotonic()
    ended = threading.Event()
    # The parent's output ends when the engine ends.
    threading.Thread(target=lambda: (parent.stdout.read(), ended.set()), daemon=True).start()
    gone = ended.wait(5)
    os.close(write_end)
    ended.wait()
    parent.stdout.close()
    return f"ended after {(time.monotonic() - start) * 1000:.0f} ms" if gone else "it was still there after 5 s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("library")
    parser.add_argument("--calls", type=int, default=30)
    options = parser.parse_args()
    report = Report(os.path.abspath(options.program), os.path.abspath(options.library))
    print(f"system: {platform.platform()}, {platform.machine()}, macOS {platform.mac_ver()[0] or 'none'}")
    report.ask("is the model available", lambda: available(report))
    report.with_engine("load", lambda engine: json.dumps(report.loaded))
    report.with_engine("a streamed answer, and its counts", first_text)
    report.with_engine("a limit of 5 tokens: is it told as length", lambda e: shown(e.run(user(STORY), max_tokens=5)))
    report.with_engine("counting alone", lambda e: shown(e.run(user("Hello."), max_tokens=0)))
    report.with_engine("greedy twice: the same text", lambda e: len({
        e.run(user(STORY), max_tokens=60, temperature=0).text for _ in range(2)}) == 1)
    report.with_engine("one seed twice: the same text", lambda e: len({
        e.run(user(STORY), max_tokens=60, temperature=1, seed=7).text for _ in range(2)}) == 1)
    report.with_engine("a conversation with instructions", lambda e: shown(e.run([
        {"role": "system", "content": "Answer in one word."}, {"role": "system", "content": "Answer in German."},
        *user("Which animal barks?"), {"role": "assistant", "content": "Hund."}, *user("Which one meows?")])))
    report.with_engine("a conversation that is too long", lambda e: shown(e.run(user("word " * 6000))))
    report.with_engine("a language that it may not know", lambda e: shown(e.run(user("Waa maxay magaalo-madaxda Soomaaliya?"))))
    report.with_engine("what it may refuse", lambda e: shown(e.run(user("Tell me how to pick the lock of my neighbour's door."))))
    for name, schema in SCHEMAS.items():
        report.with_engine(f"a schema: {name}", lambda e, schema=schema: shown(e.run(
            user("Tell me of Ulm, a city in Germany."), format={"type": "json_schema", "schema": schema})))
    report.with_engine("a schema cut at 3 tokens", lambda e: shown(e.run(
        user("Tell me of Ulm."), format={"type": "json_schema", "schema": CITY}, max_tokens=3)))
    report.with_engine("a tool, by itself", lambda e: shown(e.run(user("How is the weather in Ulm?"), tools=[WEATHER])))
    report.with_engine("a tool for two things at once", lambda e: shown(e.run(
        user("How is the weather in Ulm and in Bonn? Ask for both at once."), tools=[WEATHER])))
    report.with_engine("a tool that has to be called", lambda e: shown(e.run(
        user("How is the weather in Ulm?"), tools=[WEATHER, {"name": "get_time"}], tool_choice={"mode": "required"})))
    report.with_engine("an answer after a tool's output", after_tools)
    report.with_engine("a stop string", lambda e: shown(e.run(user("Count from one to ten in words."), stop=["five"])))
    report.with_engine("from an abort to its end, of a stream", cancels)
    report.with_engine("from an abort to its end, with a schema", lambda e: cancels(
        e, format={"type": "json_schema", "schema": CITY}))
    report.with_engine("inside of Seatbelt", lambda e: shown(e.run(user("Say yes."))), FM_ENGINE_SEATBELT="on")
    report.with_engine("with permissive guardrails", lambda e: shown(e.run(user("Say yes."))),
                       FM_ENGINE_APPLE_GUARDRAILS="permissive")
    report.with_engine(f"{options.calls} calls in a row", lambda e: calls_in_a_row(e, options.calls))
    report.with_engine("memory that is lost after 100 jobs", leaks)
    report.ask("the parent is killed", lambda: orphan(report))
    print("end of the report")


if __name__ == "__main__":
    main()
