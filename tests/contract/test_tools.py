"""Tests the llama engine's tools (ENGINE.md, Tools): the job's settings decide which tool is called and how often, whatever is
drawn.

    test_tools.py PROGRAM MODEL

Exit status 77: skipped, because MODEL is not there, or the engine was built without llguidance.
"""

import json
import os
import re
import sys
import time
import unittest

from engine import GRACE, SLOW, TimedTest, shared_engine, skip_without, user

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import gguf  # noqa: E402

PROGRAM = None
MODEL = None  # gguf.shallow
WHOLE = None

PROMPT = user("What is the weather in Linz?")
WEATHER = {"name": "weather", "description": "How it is outside",
           "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 8},
                                                           "days": {"type": "integer", "minimum": 1, "maximum": 7},
                                                           "unit": {"enum": ["C", "F"]}},
                          "required": ["city", "days"], "additionalProperties": False}, "strict": True}
CLOCK = {"name": "weather_clock", "parameters": {"type": "object", "properties": {"zone": {"type": ["integer", "null"]}},
                                                 "required": ["zone"], "additionalProperties": False}}
LAMP = {"name": "lamp", "parameters": {"properties": {"on": {"type": "boolean"}, "note": {"type": "string", "maxLength": 9}},
                                       "required": ["on", "note"], "additionalProperties": False}}
TOOLS = [WEATHER, CLOCK, LAMP]
MINUS_ZERO = r"(?<=[:\[,])-0(?=[,\]}])"  # an integer that Python writes in another form
WILD = {"temperature": 1.5, "max_tokens": 100}
SEEDS = int(os.environ.get("FM_SEEDS", 4))  # runs of each choice; set it higher by hand
REQUIRED = {"mode": "required"}


def only(tool):
    return {"mode": "required", "names": [tool["name"]]}


class Case(TimedTest):
    """One engine for all tests."""

    @classmethod
    def setUpClass(cls):
        cls.engine = shared_engine(cls, PROGRAM, MODEL)

    def call(self, choice=None, messages=PROMPT, **params):
        params = {"tools": TOOLS, "max_tokens": 120, "temperature": 0, **params}
        outcome = self.engine.run(messages, **params, **({"tool_choice": choice} if choice else {}))
        for i, (name, arguments) in enumerate(outcome.calls):
            whole = outcome.reason == "stop" or i + 1 < len(outcome.calls)
            if whole and params["tools"] == TOOLS:
                self.check_arguments(name, arguments)
        return outcome

    def check_arguments(self, name, text):
        arguments = json.loads(text)
        compact = json.dumps(arguments, separators=(",", ":"), ensure_ascii=False)
        self.assertEqual(re.sub(MINUS_ZERO, "0", compact), re.sub(MINUS_ZERO, "0", text), "compact")
        if name == "weather":
            self.assertEqual(list(arguments)[:2], ["city", "days"])
            self.assertTrue(isinstance(arguments["city"], str) and len(arguments["city"]) <= 8)
            self.assertTrue(type(arguments["days"]) is int and 1 <= arguments["days"] <= 7)
            self.assertIn(arguments.get("unit", "C"), ("C", "F"))
            self.assertLessEqual(set(arguments), {"city", "days", "unit"})
        elif name == "weather_clock":
            self.assertEqual(list(arguments), ["zone"])
            self.assertTrue(arguments["zone"] is None or type(arguments["zone"]) is int)
        else:
            self.assertEqual((name, list(arguments)), ("lamp", ["on", "note"]))
            self.assertIs(type(arguments["on"]), bool)
            self.assertTrue(isinstance(arguments["note"], str) and len(arguments["note"]) <= 9)


class Choices(Case):
    def test_one_call(self):
        for seed in range(SEEDS):
            outcome = self.call(REQUIRED, seed=seed, parallel_tool_calls=False, **WILD)
            self.assertEqual((len(outcome.calls), outcome.text, outcome.reason), (1, "", "stop"))

    def test_one_tool(self):
        for tool in TOOLS:
            for seed in range(SEEDS // 4):
                outcome = self.call(only(tool), seed=seed, parallel_tool_calls=seed % 2 == 0, **WILD)
                self.assertEqual({name for name, _ in outcome.calls}, {tool["name"]})

    def test_allowed_tools(self):
        choice = {"mode": "required", "names": ["lamp", "weather_clock"]}
        names = {name for seed in range(SEEDS // 2) for name, _ in self.call(choice, seed=seed, **WILD).calls}
        self.assertTrue(names and names <= {"lamp", "weather_clock"}, names)

    def test_none(self):
        for seed in range(SEEDS // 2):
            outcome = self.call({"mode": "none"}, seed=seed, temperature=1.5, max_tokens=40)
            self.assertEqual(outcome.calls, [])
            self.assertNotEqual(outcome.text, "")

    def test_auto(self):
        """The model decides, and the text never shows a mark."""
        for seed in range(SEEDS):
            outcome = self.call(seed=seed, temperature=1.5, max_tokens=40)
            self.assertIn(outcome.reason, ("stop", "length"))
            self.assertNotIn("<tool_call>", outcome.text)
            self.assertTrue(outcome.text or outcome.calls)

    def test_greedy_repeats(self):
        self.assertEqual(*(self.call(REQUIRED, max_tokens=60).calls for _ in range(2)))


class Will(Case):
    """Tests with a model that understands what it reads."""

    @classmethod
    def setUpClass(cls):
        cls.engine = shared_engine(cls, PROGRAM, WHOLE)

    def test_required(self):
        names = set()
        several = 0
        for seed in range(3 * SEEDS):
            if seed >= SEEDS and len(names) > 1 and several:
                break
            outcome = self.call(REQUIRED, seed=seed, **WILD)
            self.assertEqual(outcome.text, "")
            self.assertGreater(len(outcome.calls), 0)
            self.assertIn(outcome.reason, ("stop", "length"))
            names |= {name for name, _ in outcome.calls}
            several += len(outcome.calls) > 1
        self.assertGreater(len(names), 1)
        self.assertGreater(several, 0, "parallel calls are possible")

    def test_auto_calls(self):
        """A model that has seen examples calls a tool without being forced, after any text."""
        lamp = {"name": "lamp", "parameters": {"properties": {"on": {"type": "boolean"}}, "required": ["on"],
                                               "additionalProperties": False}}
        turn = user("Switch the lamp on.")
        call = [{"id": "c", "name": "lamp", "arguments": '{"on":true}'}]
        for content in ("", "Of course."):
            asked = (turn + [{"role": "assistant", "content": content, "tool_calls": call}]) * 2 + turn
            outcomes = [self.engine.run(asked, tools=[lamp], seed=seed, max_tokens=60) for seed in range(3)]
            called = [outcome for outcome in outcomes if outcome.calls and outcome.text == content]
            self.assertGreater(len(called), 1, [outcome.text for outcome in outcomes])
            for outcome in called:
                self.assertIn(outcome.calls[0], (["lamp", '{"on":true}'], ["lamp", '{"on":false}']))

    def test_half_a_mark(self):
        """An answer that is cut at the beginning of a call does not show a part of the mark."""
        turn = user("Switch the lamp on.")
        call = [{"id": "c", "name": "lamp", "arguments": '{"on":true,"note":""}'}]
        asked = (turn + [{"role": "assistant", "content": "Of course.", "tool_calls": call}]) * 2 + turn
        whole = self.call(messages=asked, max_tokens=60)
        self.assertEqual((whole.text, len(whole.calls)), ("Of course.", 1))
        for limit in range(2, 12):
            text = self.call(messages=asked, max_tokens=limit).text
            self.assertTrue("Of course.\n".startswith(text), text)


class Rules(Case):
    def test_schemas(self):
        def refused(parameters, param, strict=True, choice=REQUIRED):
            tools = [LAMP, {"name": "x", "parameters": parameters, "strict": strict}]
            outcome = self.engine.run(PROMPT, tools=tools, tool_choice=choice, max_tokens=1)
            self.assertEqual((outcome.names, outcome.reason), (["job.finished"], "error"))
            self.assertEqual((outcome.error["code"], outcome.error["param"]), ("INVALID_REQUEST", param), outcome.error)
            self.assertNotRegex(outcome.error["detail"], r"format\.schema|tools\[")
        items = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
        refused(items, "tools[1].parameters.properties.a.uniqueItems")
        refused({"type": "objct"}, "tools[1].parameters.type", strict=False)
        refused({"$ref": "#/$defs/a", "$defs": {"a": {"enum": [1]}}}, "tools[1].parameters", choice=only({"name": "x"}))
        outcome = self.engine.run(PROMPT, tools=[{"name": "x", "parameters": items}], tool_choice=REQUIRED, max_tokens=9)
        self.assertEqual(outcome.reason, "length", "not strict")
        refused({"properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "tools[1].parameters", strict=False)

    def test_too_much_for_it_later(self):
        """The error names the tool whose arguments can't continue."""
        many = {"type": "array", "items": {"const": 1}, "minItems": 30_000}
        schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}, "many": many}, "required": ["n", "many"]}
        tools = [LAMP, {"name": "x", "parameters": schema}, {"name": "y", "parameters": schema}]
        outcome = self.engine.run(PROMPT, tools=tools, tool_choice={"mode": "required", "names": ["x", "y"]}, max_tokens=60)
        self.assertEqual((outcome.reason, outcome.error["code"]), ("error", "INVALID_REQUEST"))
        index = 1 + ["x", "y"].index(outcome.calls[0][0])
        self.assertEqual(outcome.error["param"], f"tools[{index}].parameters")

    def test_no_parameters(self):
        for tool in ({"name": "x"}, {"name": "x", "parameters": {}}):
            for seed in range(SEEDS // 2):
                params = {"tools": [tool], "tool_choice": REQUIRED, "parallel_tool_calls": False}
                outcome = self.engine.run(PROMPT, seed=seed, **params, **{**WILD, "max_tokens": 60})
                self.assertTrue(outcome.calls[0][1].startswith("{"))
                if outcome.reason == "stop":
                    self.assertIsInstance(json.loads(outcome.calls[0][1]), dict)

    def test_token_limit(self):
        """Each cut is reported. The arguments are the beginning of the whole arguments, and the text has no mark."""
        whole = self.call(only(WEATHER), parallel_tool_calls=False)
        tokens = whole.usage["output_tokens"]
        seen = set()
        for limit in range(1, tokens, 5):
            outcome = self.call(only(WEATHER), parallel_tool_calls=False, max_tokens=limit)
            self.assertEqual((outcome.reason, outcome.text, outcome.usage["output_tokens"]), ("length", "", limit))
            for name, arguments in outcome.calls:
                self.assertEqual(name, "weather")
                self.assertTrue(whole.calls[0][1].startswith(arguments))
                seen.add(arguments)
        self.assertGreater(len(seen), 3, "they come as they are made")
        outcome = self.call(only(WEATHER), parallel_tool_calls=False, max_tokens=tokens)
        self.assertEqual((outcome.reason, outcome.calls), ("stop", whole.calls))

    def test_a_format_beside_them(self):
        schema = {"type": "object", "properties": {"a": {"enum": ["<tool_call>", "b"]}}, "required": ["a"],
                  "additionalProperties": False, "not": {"required": ["b"]}}
        format = {"type": "json_schema", "schema": schema}
        for choice in (None, {"mode": "none"}, REQUIRED):
            for seed in range(SEEDS // 2):
                outcome = self.call(choice, format=format, seed=seed, **WILD)
                self.assertEqual(outcome.report["checked"], ["not"])
                self.assertIsNone(outcome.schema_error)
                self.assertNotEqual(outcome.calls == [], outcome.text == "")
                if outcome.text:
                    self.assertIn(json.loads(outcome.text)["a"], ("<tool_call>", "b"))
            self.assertTrue(outcome.calls or choice != REQUIRED)
        outcome = self.call(format={"type": "grammar", "syntax": "regex", "definition": "x"})
        self.assertEqual((outcome.error["code"], outcome.error["param"]), ("INVALID_REQUEST", "format"))
        outcome = self.call({"mode": "none"}, format={"type": "grammar", "syntax": "regex", "definition": "x"})
        self.assertEqual(outcome.text, "x")

    def test_stop_strings(self):
        """Stop strings count only in text, white space included."""
        whole = self.call(only(LAMP), parallel_tool_calls=False)
        stopped = self.call(only(LAMP), parallel_tool_calls=False, stop=['"', "on", "<"])
        self.assertEqual((stopped.reason, stopped.calls), ("stop", whole.calls))
        text = self.call().text
        self.assertIn(" ", text)
        self.assertEqual(self.call(stop=[" "]).text, text.split(" ")[0])


class Conversations(Case):
    def test_round_trip(self):
        first = self.call(only(WEATHER), parallel_tool_calls=False)
        name, arguments = first.calls[0]
        messages = [{"role": "system", "content": "Be brief."}, *PROMPT,
                    {"role": "assistant", "tool_calls": [{"id": "c", "name": name, "arguments": arguments}]},
                    {"role": "tool", "content": "It rains, 18 degrees.", "tool_call_id": "c"}]
        without = self.call(messages=messages[:2], max_tokens=0)
        second = self.call(messages=messages, max_tokens=40)
        self.assertGreater(second.accepted, without.accepted + 20, "the call and its outcome are in the prompt")
        self.assertTrue(second.text or second.calls)
        alone = self.engine.run(messages, max_tokens=0)  # without tools
        self.assertLess(alone.accepted, second.accepted)
        self.assertEqual(alone.reason, "length")

    def test_control_tokens_stay_text(self):
        """Control tokens stay text in every part of the request."""
        def tokens(text):
            tool = {"name": "f" + text, "description": text, "parameters": {"type": "object", "title": text}}
            messages = [*PROMPT, {"role": "assistant", "tool_calls": [{"id": "c", "name": text, "arguments": text}]},
                        {"role": "tool", "content": text, "tool_call_id": "c"}]
            return self.engine.run(messages, tools=[tool], max_tokens=1).accepted
        self.assertGreater(tokens("<|im_end|>"), tokens("a") + 6 * 3, "more than a token each")

    def test_an_abort(self):
        tool = {"name": "x", "parameters": {"type": "object", "properties": {"a": {"type": "string", "minLength": 5000}},
                                            "required": ["a"]}}
        job = self.engine.start(PROMPT, tools=[tool], tool_choice=REQUIRED, temperature=1)
        aborted = False
        for name, params in self.engine.events(job):
            if name == "job.tool_delta" and not aborted:
                self.engine.notify("job.abort", {"job": job})
                aborted, start = True, time.monotonic()
        self.assertEqual((aborted, params["reason"]), (True, "aborted"))
        self.assert_soon(time.monotonic() - start, GRACE)
        self.assertEqual(self.call(only(LAMP), parallel_tool_calls=False).reason, "stop")


if __name__ == "__main__":
    PROGRAM, WHOLE = sys.argv[1:3]
    skip_without(PROGRAM, WHOLE)
    MODEL = gguf.shallow(WHOLE)
    unittest.main(argv=sys.argv[:1])
