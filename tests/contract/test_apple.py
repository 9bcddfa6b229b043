"""Tests how fm-engine-apple uses Apple's library, on the stand-in of tests/apple.

    test_apple.py PROGRAM LIBRARY

The stand-in ends the engine with status 97 when a rule of the library is broken, or if a reference is left when the engine
ends. So each engine here has to end with status 0.
"""

import json
import os
import sys
import time
import unittest

from engine import GRACE, SLOW, WAIT, Engine, Outcome, TimedTest, user

PROGRAM = None
LIBRARY = None

# A build without llguidance, which FM_GUIDANCE=off names, can't hold an answer to a format.
guided = unittest.skipIf(os.environ.get("FM_GUIDANCE") == "off", "built without llguidance")

STUCK = 75  # the engine's exit status if the library does not stop
WEATHER = {"name": "get_weather", "description": "The weather.", "strict": True, "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city", "days"], "additionalProperties": False}}
TIME = {"name": "get_time"}
PERSON = {"type": "object", "properties": {
    "name": {"type": "string"}, "age": {"type": ["integer", "null"], "minimum": 0, "maximum": 120},
    "kind": {"enum": ["cat", "dog"]}, "friends": {"type": "array", "items": {"$ref": "#/$defs/friend"}, "minItems": 1}},
    "required": ["name", "age", "kind", "friends"], "additionalProperties": False,
    "$defs": {"friend": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
                         "additionalProperties": False}}}


def script(*steps):
    return user(json.dumps(steps))


def schema_format(schema, strict=True):
    return {"type": "json_schema", "schema": schema, "strict": strict}


class Case(TimedTest):
    def start(self, told="", status=0, **env):
        engine = Engine(PROGRAM, {"FM_ENGINE_APPLE_LIBRARY": LIBRARY, "FM_ENGINE_STANDIN": told, **env})
        self.addCleanup(self.close, engine, status)
        return engine

    def close(self, engine, status):
        engine.close()
        self.assertEqual(engine.process.returncode, status, engine.stderr.decode(errors="replace"))

    def ready(self, told="", status=0, **env):
        engine = self.start(told, status, **env)
        self.assertTrue(engine.initialize()["ok"])
        loaded, _ = engine.load(None)
        self.assertTrue(loaded["ok"], loaded)
        self.assertEqual((loaded["slots"], loaded["silent"]), (1, True))
        return engine

    def assert_error(self, outcome, code, **members):
        self.assertEqual((outcome.reason, outcome.error["code"]), ("error", code), outcome.error)
        self.assertEqual({key: outcome.error.get(key) for key in members}, members, outcome.error)


class Availability(Case):
    def available(self, engine):
        engine.initialize()
        return engine.call("engine.available", {})[0]["result"]

    def test_it_is(self):
        result = self.available(self.start())
        self.assertEqual((result["ok"], result["available"]), (True, True))

    def test_reasons(self):
        for number, code in ((0, "AI_DISABLED"), (1, "UNSUPPORTED_HARDWARE"), (2, "MODEL_NOT_READY"), (3, "HELPER_UNHEALTHY"),
                             (255, "HELPER_UNHEALTHY")):
            engine = self.start(f"reason={number}")
            result = self.available(engine)
            self.assertEqual((result["available"], result["reason_code"]), (False, code))
            self.assertTrue(result["detail"])
            loaded, _ = engine.load(None)
            self.assertEqual((loaded["error"]["code"], loaded["error"]["reason_code"]), ("UNAVAILABLE", code))

    def test_without_a_library(self):
        for path, code, detail in (("/nowhere/lib.so", "HELPER_UNHEALTHY", "/nowhere/lib.so"),
                                   ("libm.so.6", "HELPER_UNHEALTHY", "FMSystemLanguageModelCreate"),
                                   ("", "UNSUPPORTED_PLATFORM", "macOS")):
            if path == "" and sys.platform == "darwin":
                continue
            engine = self.start(FM_ENGINE_APPLE_LIBRARY=path)
            result = self.available(engine)
            self.assertEqual((result["available"], result["reason_code"]), (False, code))
            self.assertIn(detail, result["detail"])


class Statuses(Case):
    def setUp(self):
        self.engine = self.ready()

    def test_before_output(self):
        for status, code, members in (
            (1, "CONTEXT_OVERFLOW", {"elsewhere": True}),
            (2, "UNAVAILABLE", {"reason_code": "MODEL_NOT_READY"}),
            (3, "GUARDRAIL", {}),
            (4, "INVALID_REQUEST", {"param": "format.schema", "elsewhere": True}),
            (5, "INVALID_REQUEST", {"elsewhere": True}),
            (6, "INTERNAL", {}),
            (7, "RATE_LIMITED", {"retry_after_ms": 60000}),
            (8, "INTERNAL", {}),
            (10, "INVALID_REQUEST", {"param": "format.schema"}),
            (11, "INTERNAL", {}),
            (99, "INTERNAL", {}),
            (255, "INTERNAL", {}),
        ):
            outcome = self.engine.run(script({"status": status, "text": "Secret."}))
            self.assert_error(outcome, code, **members)
            self.assertNotIn("Secret", outcome.error["detail"])

    def test_after_output(self):
        for status, reason in ((1, "length"), (3, "content_filter"), (2, "error"), (7, "error"), (255, "error")):
            outcome = self.engine.run(script("Once", {"status": status, "text": "x"}))
            self.assertEqual((outcome.reason, outcome.text), (reason, "Once"), status)

    @guided
    def test_a_refusal(self):
        for steps in ([], ["Well,"]):
            outcome = self.engine.run(script(*steps, {"status": 9, "text": "I can't do that."}))
            self.assertEqual((outcome.reason, outcome.refusal), ("stop", "I can't do that."))
        whole = self.engine.run(script({"status": 9, "text": "No."}), format=schema_format(PERSON))
        self.assertEqual((whole.reason, json.loads(whole.refusal)), ("stop", "No."))

    @guided
    def test_the_limit_is_told_by_a_decoding_failure(self):
        outcome = self.engine.run(script({"status": 6, "text": "x"}), format=schema_format(PERSON), max_tokens=2)
        self.assertEqual(outcome.reason, "length")

    def test_an_unknown_error_is_named_without_its_text(self):
        outcome = self.engine.run(script({"status": 255, "text": "Error NSCocoaErrorDomain:4864 - User said: secret"}))
        self.assertIn("NSCocoaErrorDomain:4864", outcome.error["detail"])
        self.assertNotIn("secret", outcome.error["detail"])
        outcome = self.engine.run(script({"status": 255, "text": "Error FoundationModels.LanguageModelError:2 - x"}))
        self.assertIn("Xcode 26.4", outcome.error["detail"])


class Texts(Case):
    def test_snapshots(self):
        engine = self.ready()
        same = engine.run(script("One", {"snapshot": "One"}, {"snapshot": "One two"}, " three"))
        self.assertEqual((same.reason, same.text), ("stop", "One two three"))
        back = engine.run(script("One two", {"snapshot": "One"}, " three"))
        self.assert_error(back, "INTERNAL")
        self.assertEqual(back.text, "One two")

    def test_counts(self):
        engine = self.ready()
        outcome = engine.run(user("one two three four five"))
        self.assertEqual((outcome.accepted, outcome.usage), (8, {"input_tokens": 8, "cached_tokens": 0, "output_tokens": 5,
                                                             "reasoning_tokens": 0}))
        outcome = engine.run([{"role": "system", "content": "Be brief."}, {"role": "system", "content": "Be kind."},
                              {"role": "user", "content": "a"}, {"role": "assistant", "content": "b c"},
                              {"role": "user", "content": "d"}])
        self.assertEqual((outcome.accepted, outcome.text), (4 * 3 + 4 + 4, "d"))

    def test_an_older_macos_does_not_count(self):
        engine = self.ready("nocount")
        outcome = engine.run(user("one two three"), max_tokens=2)
        self.assertEqual((outcome.accepted, outcome.text, outcome.reason, outcome.usage),
                         (None, "one two", "stop", {"reasoning_tokens": 0}))
        self.assert_error(engine.run(user("one"), max_tokens=0), "INVALID_REQUEST", param="max_tokens", elsewhere=True)
        self.assert_error(engine.run(user("one"), truncation="auto"), "INVALID_REQUEST", param="truncation")

    def test_after_an_output_of_a_tool(self):
        engine = self.ready()
        for arguments in ('{"city":"Ulm"}', "not JSON", "[1]"):
            outcome = engine.run([*user("How is it?"), {"role": "assistant", "content": "Let me see.", "tool_calls": [
                {"id": "1", "name": "get_weather", "arguments": arguments}]},
                {"role": "tool", "content": "18 degrees", "tool_call_id": "1"}], tools=[WEATHER])
            self.assertEqual((outcome.reason, outcome.text), ("stop", "18 degrees"))

    def test_what_is_refused(self):
        engine = self.ready()
        for params, param in (({"presence_penalty": 1}, "presence_penalty"), ({"frequency_penalty": 1}, "frequency_penalty"),
                              ({"logit_bias": [[1, 5]]}, "logit_bias"), ({"logprobs": 1}, "logprobs"), ({"top_k": 3}, "top_k"),
                              ({"min_p": 0.1}, "min_p"), ({"repeat_penalty": 1.1}, "repeat_penalty"),
                              ({"ignore_eos": True}, "ignore_eos"), ({"temperature": 1.5}, "temperature"),
                              ({"format": {"type": "json_object"}}, "format"),
                              ({"format": {"type": "grammar", "syntax": "regex", "definition": "a"}}, "format"),
                              ({"messages": user("a\0b")}, "messages[0]")):
            outcome = engine.run(**{"messages": user("a"), **params})
            self.assertEqual((outcome.names, outcome.error["code"]), (["job.finished"], "INVALID_REQUEST"), params)
            self.assertTrue(outcome.error["param"].startswith(param), outcome.error)
            self.assertIs(outcome.error.get("elsewhere"), True, outcome.error)
        self.assertEqual(engine.run(None, embed=["a"]).error["param"], "embed")

    def test_seeds_and_temperatures_are_those_that_the_library_takes(self):
        engine = self.ready()
        for params in ({"seed": -1}, {"seed": 2**63 - 1}, {"temperature": 0}, {"temperature": 1, "top_p": 0.5}, {"top_p": 0},
                       {"temperature": 0.3, "seed": 0, "repeatable": True}):
            self.assertEqual(engine.run(user("a b"), **params).text, "a b", params)


@guided
class Formats(Case):
    def setUp(self):
        self.engine = self.ready()

    def test_an_instance(self):
        outcome = self.engine.run(user("Tom and Tim"), format=schema_format(PERSON))
        self.assertEqual((outcome.reason, outcome.names.count("job.delta"), outcome.schema_error), ("stop", 1, None))
        answer = json.loads(outcome.text)
        self.assertEqual(list(answer), ["name", "age", "kind", "friends"])
        self.assertEqual((answer["kind"], list(answer["friends"][0])), ("cat", ["name"]))
        self.assertEqual(outcome.report["checked"], [])
        self.assertIn("minimum", outcome.report["enforced"])

    def test_what_was_left_out_is_null(self):
        content = {"content": json.dumps({"friends": [{"name": "Tim"}], "kind": "dog", "name": "Tom"})}
        outcome = self.engine.run(script(content), format=schema_format(PERSON))
        self.assertEqual(outcome.text, '{"name":"Tom","age":null,"kind":"dog","friends":[{"name":"Tim"}]}')

    def test_other_roots(self):
        for schema, value in (({"type": "array", "items": {"type": "string"}, "minItems": 1}, ["Tom"]),
                              ({"type": "string"}, "Tom"),
                              ({"enum": ["a", "b"]}, "a"), ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, 0)):
            outcome = self.engine.run(user("Tom"), format=schema_format(schema))
            self.assertEqual((outcome.reason, json.loads(outcome.text)), ("stop", value), outcome.error)

    def test_a_schema_that_refers_to_itself(self):
        tree = {"type": "object", "properties": {"name": {"type": "string"}, "children": {
            "type": "array", "items": {"$ref": "#"}}}, "required": ["name", "children"], "additionalProperties": False}
        outcome = self.engine.run(user("Tom"), format=schema_format(tree))
        answer = json.loads(outcome.text)
        self.assertEqual(answer["children"][0]["name"], "Tom")

    def test_what_has_no_counterpart(self):
        for schema, param in (
            ({"type": "object"}, "format.schema"),
            ({}, "format.schema"),
            ({"type": "object", "properties": {"a": {"enum": [1, 2]}}}, "format.schema.properties.a.enum"),
            ({"type": "object", "properties": {"a": {"type": "array"}}}, "format.schema.properties.a.items"),
            ({"type": "object", "properties": {"a": True}}, "format.schema.properties.a"),
            ({"type": "object", "properties": {"a": {"type": 5}}}, "format.schema.properties.a.type"),
        ):
            outcome = self.engine.run(user("x"), format=schema_format(schema))
            self.assertEqual((outcome.names, outcome.error["code"]), (["job.finished"], "INVALID_REQUEST"), schema)
            self.assertEqual(outcome.error["param"], param)

    def test_what_is_checked_afterwards(self):
        schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 3}}, "required": ["a"]}
        good = self.engine.run(script({"content": '{"a":"long"}'}), format=schema_format(schema, strict=False))
        self.assertEqual((good.reason, good.schema_error, good.report["checked"]), ("stop", None, ["properties.a.minLength"]))
        strict = self.engine.run(script({"content": '{"a":"long"}'}), format=schema_format(schema))
        self.assertEqual((strict.reason, strict.text), ("stop", '{"a":"long"}'))
        broken = self.engine.run(script({"content": '{"a":"x"}'}), format=schema_format(schema))
        self.assert_error(broken, "INTERNAL")
        self.assertEqual(broken.text, "", "nothing of it is told")
        bad = self.engine.run(script({"content": '{"a":"x"}'}), format=schema_format(schema, strict=False))
        self.assertEqual((bad.reason, bad.text), ("stop", '{"a":"x"}'))
        self.assertTrue(bad.schema_error)

    def test_a_broken_answer(self):
        for content in ("{", "[]", '{"name":5}', "", '"x"'):
            outcome = self.engine.run(script({"content": content or " "}), format=schema_format(PERSON))
            self.assert_error(outcome, "INTERNAL")
            self.assertEqual(outcome.text, "")

    def test_the_limit(self):
        outcome = self.engine.run(user("Tom"), format=schema_format(PERSON), max_tokens=3)
        self.assertEqual((outcome.reason, outcome.text), ("length", ""))


class Tools(Case):
    def setUp(self):
        self.engine = self.ready("calls")

    def call(self, *calls, **params):
        return self.engine.run(script({"tool_calls": [{"name": n, "arguments": json.dumps(a)} for n, a in calls]}, "late"),
                               tools=[WEATHER, TIME], **params)

    def test_by_itself(self):
        outcome = self.engine.run(user("Ulm now"), tools=[WEATHER, TIME])
        self.assertEqual((outcome.reason, outcome.text), ("stop", ""))
        self.assertEqual(outcome.calls, [["get_weather", '{"city":"Ulm","days":1}']])
        self.assertEqual(self.engine.run(user("Ulm now"), tools=[WEATHER], tool_choice={"mode": "none"}).text, "Ulm now")

    def test_text_and_then_a_call(self):
        step = {"tool_call": {"name": "get_time", "arguments": "{}"}}
        outcome = self.engine.run(script("Let me see.", step, "late"), tools=[TIME])
        self.assertEqual((outcome.reason, outcome.text, outcome.calls), ("stop", "Let me see.", [["get_time", "{}"]]))

    def test_several(self):
        calls = [("get_weather", {"city": "Ulm", "days": 2}), ("get_time", {})]
        self.assertEqual(self.call(*calls).calls, [["get_weather", '{"city":"Ulm","days":2}'], ["get_time", "{}"]])
        self.assertEqual(len(self.call(*calls, parallel_tool_calls=False).calls), 1)

    def test_required(self):
        for choice in ({"mode": "required", "names": ["get_weather"]}, {"mode": "required"}):
            outcome = self.engine.run(user("Ulm"), tools=[WEATHER, TIME], tool_choice=choice)
            self.assertEqual((outcome.reason, outcome.calls), ("stop", [["get_weather", '{"city":"Ulm","days":1}']]))
        outcome = self.engine.run(user("Ulm"), tools=[WEATHER, TIME], tool_choice={"mode": "required", "names": ["get_time"]})
        self.assertEqual(outcome.calls, [["get_time", "{}"]])

    @guided
    def test_arguments_are_checked(self):
        """`maxLength` can't be expressed in the library: a strict tool never reports a call that breaks it."""
        for strict, city, calls in ((True, "Ulm", 1), (True, "Hamburg", 0), (False, "Hamburg", 1)):
            tool = {"name": "f", "strict": strict, "parameters": {"type": "object", "properties": {
                "city": {"type": "string", "maxLength": 4}}, "required": ["city"], "additionalProperties": False}}
            outcome = self.engine.run(script({"tool_call": {"name": "f", "arguments": json.dumps({"city": city})}}), tools=[tool])
            self.assertEqual(len(outcome.calls), calls)
            if not calls:
                self.assert_error(outcome, "INTERNAL")

    @guided
    def test_beside_a_format(self):
        outcome = self.engine.run(user("Ulm"), tools=[TIME], format=schema_format(PERSON))
        self.assertEqual(outcome.calls, [["get_time", "{}"]])
        outcome = self.engine.run(script({"content": '{"name":"T","kind":"cat","friends":[{"name":"U"}]}'}), tools=[TIME],
                                  format=schema_format(PERSON))
        self.assertEqual(json.loads(outcome.text)["age"], None)

    def test_parameters(self):
        named = {"name": "f", "parameters": {"type": "object", "properties": {
            "where": {"type": "object", "properties": {"x": {"type": "number", "minimum": 0}}, "required": ["x"]},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 3},
            "all": {"type": "array", "items": {"type": "object", "title": "One", "properties": {"y": {"type": "boolean"}}}},
            "maybe": {"type": ["string", "null"]}}, "required": ["where", "tags", "maybe"]}}
        outcome = self.engine.run(user("Ulm"), tools=[named])
        self.assertEqual(outcome.reason, "stop", outcome.error)
        arguments = json.loads(outcome.calls[0][1])
        self.assertEqual((arguments["tags"], list(arguments["where"])), (["a"], ["x"]))

    def test_parameters_without_a_counterpart(self):
        for schema, strict, param in (({"anyOf": [{"type": "string"}, {"type": "integer"}]}, True, "tools[1].parameters"),
                                      ({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}, False,
                                       "tools[1].parameters"),
                                      ({"type": 7}, False, "tools[1].parameters.properties.a.type")):
            tool = {"name": "f", "strict": strict, "parameters": {"type": "object", "properties": {"a": schema}}}
            outcome = self.engine.run(user("x"), tools=[TIME, tool])
            self.assert_error(outcome, "INVALID_REQUEST", param=param)

    def test_a_tool_that_the_library_does_not_take(self):
        outcome = self.engine.run(user("x"), tools=[{"name": "refused_by_library"}])
        self.assert_error(outcome, "INVALID_REQUEST", param="tools")

    def test_as_many_as_there_may_be(self):
        self.engine = self.ready("context=100000")
        tools = [{"name": f"tool_{i}"} for i in range(128)]
        calls = [{"name": f"tool_{i}", "arguments": "{}"} for i in range(128)]
        outcome = self.engine.run(script({"tool_calls": calls}), tools=tools)
        self.assert_undisturbed([name for name, _ in outcome.calls] == [f"tool_{i}" for i in range(128)], outcome.calls)

    def test_calls_that_come_one_after_the_other(self):
        """Simulates a busy machine: the calls of one answer are reported together."""
        names = [f"tool_{i}" for i in range(8)]
        outcome = self.engine.run(script({"tool_calls": [{"name": name, "arguments": "{}"} for name in names], "gap_ms": 10}),
                                  tools=[{"name": name} for name in names])
        self.assert_undisturbed([name for name, _ in outcome.calls] == names, outcome.calls)

    def test_an_abort_while_a_tool_is_waited_for(self):
        for _ in range(5):
            job = self.engine.start(script("a", {"tool_call": {"name": "get_time", "arguments": "{}"}}), tools=[TIME])
            events = self.engine.events(job)
            seen = [next(events)]
            self.engine.notify("job.abort", {"job": job})
            outcome = Outcome(seen + list(events))
            self.assertIn(outcome.reason, ("aborted", "stop"))


class Cancels(Case):
    def abort(self, engine, *steps, **params):
        job = engine.start(script(*steps, "Once", {"hang": "soft"}), **params)
        seen = []
        for name, members in engine.events(job):
            seen.append((name, members))
            if name == "job.delta":
                start = time.monotonic()
                engine.notify("job.abort", {"job": job})
        self.assert_soon(time.monotonic() - start, GRACE)
        return Outcome(seen)

    def test_a_late_one(self):
        engine = self.ready()
        for ms in (0, 50, 300):
            self.assertEqual(self.abort(engine, {"ignore_cancel_ms": ms}).reason, "aborted")
        self.assertEqual(engine.run(user("still here")).text, "still here")

    def test_one_that_is_ignored_for_ever(self):
        engine = self.ready(status=STUCK)
        self.assertEqual(self.abort(engine, {"ignore_cancel_ms": 1 << 40}).reason, "aborted")
        self.assertEqual(engine.wait_exit(WAIT)[0], STUCK)

    def test_a_stop_string_then_a_cancel_that_is_ignored(self):
        engine = self.ready(status=STUCK)
        outcome = engine.run(script({"ignore_cancel_ms": 60000}, "One", " two", " three", {"hang": "soft"}), stop=[" two"])
        self.assertEqual((outcome.reason, outcome.text), ("stop", "One"))
        self.assertEqual(engine.wait_exit(WAIT)[0], STUCK)

    @guided
    def test_with_a_schema(self):
        engine = self.ready()
        job = engine.start(script({"hang": "soft"}), format=schema_format(PERSON))
        events = engine.events(job)
        next(events)
        engine.notify("job.abort", {"job": job})
        self.assertEqual(list(events)[-1][1]["reason"], "aborted")

    def test_the_end_comes_in_the_middle(self):
        for steps in (["a", {"hang": "soft"}], [{"tool_call": {"name": "get_time", "arguments": "{}"}}]):
            engine = self.ready()
            job = engine.start(script(*steps), tools=[TIME])
            next(engine.events(job))
            engine.hang_up()
            status, seconds = engine.wait_exit(WAIT)
            self.assertEqual(status, 0, engine.stderr)
            self.assert_soon(seconds, 1.0 * SLOW)


def main():
    global PROGRAM, LIBRARY
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    PROGRAM, LIBRARY = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
    unittest.main()


if __name__ == "__main__":
    main()
