"""Tests formats on their way to the engine, and the engine's reports on the way back. The engine sends what the test
specifies."""

import json
import tempfile

import foreign_engine
import wire
from wire import HelperTest, check_stream

SCHEMA = {"type": "object", "properties": {"a": {"type": "number", "maximum": 10**30, "minimum": 1.5}}, "required": ["a"]}
RESPONSES = {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}}
CHAT = {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}}
OBJECT = {"type": "json_object"}
GRAMMAR = {"fm": {"grammar": {"syntax": "lark", "definition": "start: /x/"}}}


class Formats(HelperTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # The prompt has members for the engine's messages. The answer's text is the job's format.
        foreign_engine.write(folder.name, "formal", """
            initialize()
            load()
            while (message := read())["method"] == "job.start":
                params = message["params"]
                say = json.loads(params["messages"][-1]["content"])
                job = {"job": params["job"]}
                if "error" not in say:
                    send(method="job.accepted", params={**job, "input_tokens": 1, **say.get("accepted", {})})
                    text = json.dumps(params.get("format"))
                    send(method="job.delta", params={**job, "text": text, "output_tokens": 1})
                reason = "error" if "error" in say else "stop"
                send(method="job.finished", params={**job, "reason": reason, "usage": {}, **say})
            """)
        self.started = self.helper("--engine-dir", folder.name, engine="formal")

    def responses(self, say=None, **params):
        return self.started.call("responses.create", {"input": json.dumps(say or {}), **params})

    def chat(self, say=None, **params):
        messages = [{"role": "user", "content": json.dumps(say or {})}]
        return self.started.call("chat.completions.create", {"messages": messages, **params})

    def test_what_the_engine_gets(self):
        job = {"type": "json_schema", "schema": SCHEMA, "strict": False}
        grammar = {"type": "grammar", "syntax": "lark", "definition": "start: /x/"}
        for responses, chat, expected in (
            ({}, {}, None),
            ({"text": {}}, {"response_format": None}, None),
            ({"text": {"format": {"type": "text"}}}, {"response_format": {"type": "text"}}, None),
            ({"text": {"format": OBJECT}}, {"response_format": OBJECT}, OBJECT),
            (RESPONSES, CHAT, job),
            (CHAT, CHAT, job),  # chat's parameter, sent to the Responses API too
            ({"response_format": RESPONSES["text"]["format"]}, CHAT, job),
            (GRAMMAR, GRAMMAR, grammar),
        ):
            with self.subTest(str(responses)):
                text = self.responses(**responses)["response"]["output"][0]["content"][0]["text"]
                self.assertEqual(json.loads(text), expected)
                self.assertTrue(self.started.call("responses.input_tokens", {"input": "{}", **responses})["ok"])
                text = self.chat(**chat)["completion"]["choices"][0]["message"]["content"]
                self.assertEqual(json.loads(text), expected)

    def test_the_report_reaches_the_host(self):
        report = {"enforced": ["properties", "type"], "checked": ["properties.a.maximum"]}
        say = {"accepted": {"schema_report": report}}
        asked = {"fm": {"schema_report": True}}
        good = {"schema": {**report, "valid": True, "error": None}}
        bad = {"schema": {**report, "valid": False, "error": "a is 2"}}
        self.assertNotIn("fm", self.responses(say, **RESPONSES)["response"])
        self.assertEqual(self.responses(say, **RESPONSES, **asked)["response"]["fm"], good)
        self.assertEqual(self.chat(say, **CHAT, **asked)["completion"]["fm"], good)
        say["schema_error"] = "a is 2"
        self.assertEqual(self.responses(say, **RESPONSES, **asked)["response"]["fm"], bad)
        self.assertEqual(self.chat(say, **CHAT, **asked)["completion"]["fm"], bad)
        say["schema_error"] = ""
        self.assertEqual(self.chat(say, **CHAT, **asked)["completion"]["fm"]["schema"]["error"], "the engine gave no reason")
        self.assertEqual(self.responses(say, **asked)["response"]["fm"], {"schema": None})

    def test_the_report_in_a_stream(self):
        say = json.dumps({"accepted": {"schema_report": {"enforced": ["type"], "checked": []}}})
        call = self.create(self.started, say, **RESPONSES, fm={"schema_report": True})
        events, result = self.started.collect(call)
        final = check_stream(self, events, result)
        self.assertEqual(events[0]["response"]["fm"]["schema"],
                         {"enforced": ["type"], "checked": [], "valid": None, "error": None})
        self.assertIs(final["fm"]["schema"]["valid"], True)

    def test_a_tool_that_is_not_there(self):
        for told, shown in (("get_wether", "get_wether"), ("é" * 40, "é" * 32)):
            say = {"unknown_tool": told}
            response = self.responses(say)["response"]
            self.assertEqual((response["status"], response["fm"]), ("completed", {"unknown_tool": shown}))
            stored = self.started.call("responses.retrieve", {"id": response["id"]})["response"]
            self.assertEqual(stored["fm"], response["fm"])
            self.assertEqual(self.chat(say, n=2)["completion"]["fm"], response["fm"])
            self.assertEqual(check_stream(self, *self.started.collect(self.create(self.started, json.dumps(say))))["fm"],
                             response["fm"])
            body = {"messages": [{"role": "user", "content": json.dumps(say)}], "stream": True}
            chunks, _ = self.started.collect(self.started.start("chat.completions.create", body))
            self.assertEqual([chunk["fm"] for chunk in chunks if "fm" in chunk], [response["fm"]])
        self.assertNotIn("fm", self.responses({"unknown_tool": ""})["response"])

    def test_a_text_that_is_not_whole_is_not_judged(self):
        for reason in ("length", "content_filter"):
            say = {"reason": reason, "schema_error": "cut"}
            response = self.responses(say, **RESPONSES, fm={"schema_report": True})["response"]
            self.assertEqual(response["status"], "incomplete")
            self.assertEqual(response["fm"]["schema"], {"enforced": [], "checked": [], "valid": None, "error": None})

    def test_the_report_is_of_all_choices(self):
        say = {"accepted": {"schema_report": {"enforced": ["type"], "checked": []}}}
        good = {"enforced": ["type"], "checked": [], "valid": True, "error": None}
        for n in (1, 2, 3, 4, 9):
            with self.subTest(n=n):
                completion = self.chat(say, n=n, **CHAT, fm={"schema_report": True})["completion"]
                self.assertEqual(len(completion["choices"]), n)
                self.assertEqual(completion["fm"]["schema"], good)
                cut = self.chat({**say, "reason": "length"}, n=n, **CHAT, fm={"schema_report": True})["completion"]
                self.assertEqual(cut["fm"]["schema"], {**good, "valid": None})

    def test_reports_of_an_engine_that_is_off(self):
        long = "é" * 200
        many = [f"k{i}" for i in range(300)]
        for report, enforced, checked in (
            (None, [], []),
            ("type", [], []),
            ([["type"]], [], []),
            ({}, [], []),
            ({"enforced": "type", "checked": {"a": "b"}}, [], []),
            ({"enforced": ["a", 7, None, ["b"], {}, "c", True], "checked": [1], "more": [1]}, ["a", "c"], []),
            ({"enforced": many, "checked": [0] * 300 + many}, many[:200], many[:200]),
            ({"enforced": [long, "\0", "a\0b"], "checked": []}, [long[:127], "", "a"], []),
        ):
            with self.subTest(str(report)[:100]):
                say = {"accepted": {"schema_report": report}}
                result = self.responses(say, **RESPONSES, fm={"schema_report": True})
                self.assertEqual(result["response"]["fm"]["schema"],
                                 {"enforced": enforced, "checked": checked, "valid": True, "error": None})

    def test_a_refusal_names_the_hosts_field(self):
        for said, responses, chat, grammar in (
            ("format", "text.format", "response_format", "fm.grammar"),
            ("format.schema.properties.a.not", "text.format.schema.properties.a.not",
             "response_format.json_schema.schema.properties.a.not", None),
            ("format.definition", None, None, "fm.grammar.definition"),
            ("messages[0].content", "messages[0].content", "messages[0].content", "messages[0].content"),
        ):
            say = {"error": {"code": "INVALID_REQUEST", "detail": "because", "param": said}}
            for create, params, param in ((self.responses, RESPONSES, responses), (self.chat, CHAT, chat),
                                          (self.responses, CHAT, chat),
                                          (self.responses, GRAMMAR, grammar), (self.chat, GRAMMAR, grammar)):
                if param:
                    error = self.assert_error(create(say, **params), "INVALID_REQUEST", param, "invalid_value")
                    self.assertEqual((error["openai"]["status"], error["detail"]),
                                     (400, f"Invalid '{param}': because"))


class StopStrings(HelperTest):
    """A stop string ends a text with a format like any other text; the report says so."""

    CUT = {"valid": False, "error": "a stop string cut the text before it was whole"}

    def whole(self, helper, **params):
        return helper.call("responses.create", {"input": "one two three", **params})["response"]

    def test_both_apis_streamed_or_not(self):
        helper = self.helper()
        schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 8}}, "required": ["a"]}
        format = {"type": "json_schema", "name": "n", "schema": schema, "strict": True}
        chat_format = {"type": "json_schema", "json_schema": {k: format[k] for k in ("name", "schema", "strict")}}
        report = {"fm": {"schema_report": True}}
        whole = self.whole(helper, text={"format": format}, **report)
        text = whole["output"][0]["content"][0]["text"]
        self.assertIs(whole["fm"]["schema"]["valid"], True)
        stop = text[len(text) // 2:][:3]
        cut = text[:text.index(stop)]
        call = self.create(helper, "one two three", text={"format": format}, stop=stop, **report)
        events, result = helper.collect(call)
        final = check_stream(self, events, result)
        self.assertEqual((final["status"], final["output"][0]["content"][0]["text"]), ("completed", cut))
        self.assertEqual({k: final["fm"]["schema"][k] for k in self.CUT}, self.CUT)
        deltas = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
        self.assertEqual(deltas, cut)
        completion = helper.call("chat.completions.create", {
            "messages": [{"role": "user", "content": "one two three"}], "response_format": chat_format, "stop": [stop], "n": 2,
            **report})["completion"]
        for choice in completion["choices"]:
            self.assertEqual((choice["message"]["content"], choice["finish_reason"]), (cut, "stop"))
        self.assertEqual({k: completion["fm"]["schema"][k] for k in self.CUT}, self.CUT)
        outside = self.whole(helper, text={"format": format}, stop="@@", **report)
        self.assertEqual(outside["fm"], whole["fm"], "one that does not come changes nothing")

    def test_any_object(self):
        response = self.whole(self.helper(), response_format=OBJECT, stop="}", fm={"schema_report": True})
        self.assertEqual(response["text"]["format"], OBJECT)
        self.assertEqual((response["output"][0]["content"][0]["text"], response["fm"]), ("{", {"schema": None}))


if __name__ == "__main__":
    wire.main()
