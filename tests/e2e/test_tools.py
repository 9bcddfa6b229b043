"""Tests tools, from the host to an engine, and the calls back, over both APIs. Also tests engines that break the rules for
calls."""

import json
import tempfile

import foreign_engine
import wire
from wire import SLOW, HelperTest, check_stream, script

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "weather", "description": "How it is outside", "parameters": SCHEMA, "strict": True}
TOOLS = [{"type": "function", **WEATHER}, {"type": "function", "name": "time"}]
CHAT_TOOLS = [{"type": "function", "function": WEATHER}, {"type": "function", "function": {"name": "time"}}]
ARGUMENTS = '{"city": "Bad Ischl", "days": 3}'


def call(name="weather", arguments=ARGUMENTS):
    return {"tool_call": {"name": name, "arguments": arguments}}


def check_chunks(test, chunks):
    """Checks a chat stream that ended well; returns (text, calls, finish_reason)."""
    text, calls, reason = "", [], None
    test.assertEqual(chunks[0]["choices"][0]["delta"], {"role": "assistant", "content": None})
    for chunk in chunks[1:]:
        (choice,) = chunk["choices"]
        test.assertIsNone(reason, "a chunk after the last")
        reason = choice["finish_reason"]
        delta = choice["delta"]
        text += delta.get("content", "")
        for piece in delta.get("tool_calls", []):
            if "id" in piece:
                test.assertEqual((piece["index"], piece["type"], piece["function"]["arguments"]), (len(calls), "function", ""))
                calls.append({"id": piece["id"], "type": "function", "function": piece["function"]})
            else:
                test.assertEqual((set(piece), set(piece["function"])), ({"index", "function"}, {"arguments"}))
                test.assertEqual(piece["index"], len(calls) - 1)
                calls[-1]["function"]["arguments"] += piece["function"]["arguments"]
    return text, calls, reason


class Tools(HelperTest):
    def responses(self, helper, input, stream=True, **params):
        """Checks a stream; returns the final response and the result."""
        started = helper.start("responses.create", {"input": input, "stream": stream, "tools": TOOLS, **params})
        events, result = helper.collect(started)
        return (check_stream(self, events, result) if stream else result["response"]), result

    def chat(self, helper, messages, stream=True, **params):
        """Returns (text, calls, finish_reason) of an answer that ended well."""
        body = {"messages": messages, "stream": stream, "tools": CHAT_TOOLS, **params}
        chunks, result = helper.collect(helper.start("chat.completions.create", body))
        self.assertTrue(result["ok"], result)
        choice = result["completion"]["choices"][0]
        message = choice["message"]
        whole = message["content"], message.get("tool_calls", []), choice["finish_reason"]
        if stream:
            text, calls, reason = check_chunks(self, chunks)
            self.assertEqual((text or None, calls, reason), (whole[0] or None, whole[1], whole[2]))
        return whole

    def test_calls(self):
        helper = self.helper()
        for stream in (False, True):
            for steps, text, calls in (
                ([call()], None, [("weather", ARGUMENTS)]),
                (["Let me ", "see.", call("time", "{}"), call()], "Let me see.", [("time", "{}"), ("weather", ARGUMENTS)]),
                ([call("time", "")], None, [("time", "")]),
                ([call() for _ in range(128)], None, [("weather", ARGUMENTS)] * 128),
                (["no call"], "no call", []),
            ):
                response, result = self.responses(helper, script(*steps), stream)
                self.assertTrue(result["ok"])
                self.assertEqual(response["status"], "completed")
                output = response["output"]
                if text:
                    self.assertEqual(output.pop(0)["content"][0]["text"], text)
                self.assertEqual([(item["type"], item["name"], item["arguments"]) for item in output],
                                 [("function_call", *one) for one in calls])
                got = self.chat(helper, [{"role": "user", "content": script(*steps)}], stream)
                self.assertEqual((got[0], got[2]), (text, "tool_calls" if calls else "stop"))
                self.assertEqual([(c["function"]["name"], c["function"]["arguments"]) for c in got[1]], calls)

    def test_round_trip(self):
        """The answer is sent back unchanged, with the tool's output. The fake engine repeats this output."""
        helper = self.helper()
        items = [{"role": "user", "content": script("Hm.", call(), call("time", "{}"))}]
        response, _ = self.responses(helper, items)
        items += response["output"]
        for item in response["output"][1:]:
            items.append({"type": "function_call_output", "call_id": item["call_id"], "output": f"{item['name']}: fine"})
        response, _ = self.responses(helper, items, stream=False)
        self.assertEqual(response["output"][0]["content"][0]["text"], "time: fine")
        self.assertEqual(len(response["output"]), 1)

        messages = [{"role": "user", "content": script(call(), call("time", "{}"))}]
        text, calls, _ = self.chat(helper, messages)
        messages.append({"role": "assistant", "content": text, "tool_calls": calls})
        for one in calls:
            messages.append({"role": "tool", "tool_call_id": one["id"], "content": [{"type": "text", "text": "dry"}]})
        self.assertEqual(self.chat(helper, messages), ("dry", [], "stop"))

    def test_a_choice_reaches_the_engine(self):
        helper = self.helper()
        named = {"type": "function", "name": "time"}
        allowed = {"type": "allowed_tools", "mode": "required", "tools": [named]}
        for choice, names in (("auto", []), ("none", []), ("required", ["weather"]), (named, ["time"]), (allowed, ["time"])):
            response, _ = self.responses(helper, "hi", tool_choice=choice)
            self.assertEqual([item.get("name") for item in response["output"] if item["type"] == "function_call"], names)
            self.assertEqual(response["tool_choice"], choice)
            self.assertEqual(response["tools"][0], TOOLS[0])

    def test_the_token_limit(self):
        helper = self.helper()
        response, result = self.responses(helper, script("Hm.", call("time", "{}"), call()), max_output_tokens=4)
        self.assertTrue(result["ok"])
        self.assertEqual((response["status"], response["incomplete_details"]), ("incomplete", {"reason": "max_output_tokens"}))
        self.assertEqual([item["status"] for item in response["output"]], ["completed", "completed", "incomplete"])
        self.assertEqual(response["output"][2]["arguments"], '{"city": "Bad')
        got = self.chat(helper, [{"role": "user", "content": script(call())}], max_tokens=2)
        self.assertEqual((got[0], got[1][0]["function"]["arguments"], got[2]), (None, '{"city": "Bad', "length"))

    def test_cancelled_in_mid_call(self):
        helper = self.helper()
        prompt = script("Hm.", call("time", "{}"), call(arguments='{"city":'), {"hang": "soft"})
        started = helper.start("responses.create", {"input": prompt, "stream": True, "tools": TOOLS})
        seen = []
        while not seen or "city" not in seen[-1].get("delta", ""):
            seen.append(helper.event(started))
        helper.send("$/cancelRequest", {"id": started})
        events, result = helper.collect(started)
        events = seen + events
        self.assert_error(result, "CANCELLED")
        final = check_stream(self, events, result)
        self.assertEqual(final["status"], "cancelled")
        self.assertEqual([item["status"] for item in final["output"]], ["completed", "completed", "incomplete"])
        self.assertTrue(self.responses(helper, "hi")[1]["ok"])

    def test_failed_in_mid_call(self):
        for last in ({"error": "it broke"}, {"signal": "KILL"}):
            helper = self.helper()
            prompt = script(call("time", "{}"), call(arguments='{"city":'), {"sleep_ms": 1}, last)
            final, result = self.responses(helper, prompt)
            self.assert_error(result, "INTERNAL")
            self.assertEqual(final["status"], "failed")
            self.assertEqual([(item["arguments"], item["status"]) for item in final["output"]],
                             [("{}", "completed"), ('{"city":', "incomplete")])
            messages = [{"role": "user", "content": prompt}]
            body = {"messages": messages, "stream": True, "tools": CHAT_TOOLS}
            chunks, result = helper.collect(helper.start("chat.completions.create", body))
            self.assert_error(result, "INTERNAL")
            text, calls, reason = check_chunks(self, chunks)
            self.assertEqual((text, reason), ("", None))
            self.assertEqual(calls, result["completion"]["choices"][0]["message"]["tool_calls"])

    def test_arguments_are_progress(self):
        helper = self.helper()
        self.responses(helper, "warm")
        pause = {"sleep_ms": 100}
        limits = {"no_progress_timeout_ms": int(500 * SLOW), "first_token_timeout_ms": int(500 * SLOW)}
        prompt = script(call(arguments=""), *[pause, "1"] * 8)
        self.assert_undisturbed(self.responses(helper, prompt, fm=limits)[1]["ok"], "no limit fires")
        _, result = self.responses(helper, script(call(), {"sleep_ms": 60000}), fm={"no_progress_timeout_ms": 150})
        self.assertEqual(self.assert_error(result, "TIMEOUT")["limit"], "no_progress")

    def test_arguments_that_are_too_long(self):
        helper = self.helper()
        prompt = script(call(arguments=""), {"repeat": ["x" * 1000, 5000]})
        final, result = self.responses(helper, prompt)
        self.assertIn("too large", self.assert_error(result, "INTERNAL")["detail"])
        self.assertGreater(len(final["output"][0]["arguments"]), 4_000_000)
        self.assertTrue(self.responses(helper, "hi")[1]["ok"])

    def test_a_host_that_reads_late(self):
        helper = self.helper()
        self.responses(helper, "warm")
        helper.reading.clear()
        helper.send("health.ping", None, 1)
        prompt = script(*[{"tool_call": {"name": "time", "arguments": ""}}, {"repeat": ["0123456789" * 8, 3000]}] * 4)
        started = helper.start("responses.create", {"input": prompt, "stream": True, "tools": TOOLS})
        for _ in range(3):
            helper.start("health.ping")
        helper.reading.set()
        events, result = helper.collect(started)
        final = check_stream(self, events, result)
        self.assertEqual([item["arguments"] for item in final["output"]], ["0123456789" * 8 * 3000] * 4)

    def test_a_format_beside_tools(self):
        """The answer is a text in the requested format, or calls."""
        helper = self.helper()
        params = {"input": "x", "tools": TOOLS, "text": {"format": {"type": "json_object"}}}
        result = helper.call("responses.create", params)
        self.assertEqual(result["response"]["output"][0]["content"][0]["text"], "{}")
        result = helper.call("responses.create", {**params, "tool_choice": "required"})
        self.assertEqual([item["type"] for item in result["response"]["output"]], ["function_call"])

    def test_capabilities(self):
        self.assertIs(self.helper().call("capabilities.get")["features"]["tools"], True)


class Rules(HelperTest):
    """Tests messages that an engine may not send. The job is aborted and fails; the engine continues."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # The prompt lists events as [name, params]; "wait" waits for the abort.
        foreign_engine.write(folder.name, "rude", """
            initialize()
            load()
            while True:
                message = read()
                if message["method"] != "job.start":
                    continue
                params = message["params"]
                job = {"job": params["job"]}
                said = json.loads(params["messages"][-1]["content"])
                if said == "refuse":
                    error = {"code": "INVALID_REQUEST", "detail": "no", "param": "tools[1].parameters.properties.a.not"}
                    send(method="job.finished", params={**job, "reason": "error", "usage": {}, "error": error})
                    continue
                send(method="job.accepted", params={**job, "input_tokens": 1})
                for method, more in said:
                    if method == "wait":
                        while read()["method"] != "job.abort":
                            pass
                        break
                    send(method=method, params={**job, "output_tokens": 1, **more})
                else:
                    send(method="job.finished", params={**job, "reason": "stop", "usage": {}})
                    continue
                send(method="job.finished", params={**job, "reason": "aborted", "usage": {}})
            """)
        self.started = self.helper("--engine-dir", folder.name, engine="rude")

    def ask(self, said, **params):
        body = {"input": json.dumps(said), "stream": True, "tools": TOOLS, **params}
        return self.started.collect(self.started.start("responses.create", body))

    def test_what_breaks_them(self):
        begin = ["job.tool_call", {"index": 0, "name": "time"}]
        delta = ["job.tool_delta", {"index": 0, "arguments": "{}"}]
        named = {"tool_choice": {"type": "function", "name": "weather"}}
        for said, params, kept, words in (
            ([["job.tool_call", {"index": 0, "name": "rm"}]], {}, 0, "unknown tool"),
            ([begin], {"tool_choice": "none"}, 0, "unknown tool"),
            ([begin], named, 0, "unknown tool"),
            ([begin], {"tools": []}, 0, "unknown tool"),
            ([begin, delta, ["job.tool_call", {"index": 1, "name": "time"}]], {"parallel_tool_calls": False}, 1, "more calls"),
            ([["job.tool_call", {"index": 1, "name": "time"}]], {}, 0, "not in order"),
            ([begin, begin], {}, 1, "not in order"),
            ([["job.tool_call", {"name": "time"}]], {}, 0, "not in order"),
            ([["job.tool_call", {"index": "0", "name": "time"}]], {}, 0, "not in order"),
            ([["job.tool_call", {"index": 0}]], {}, 0, "without its name"),
            ([["job.tool_call", {"index": 0, "name": 7}]], {}, 0, "without its name"),
            ([delta], {}, 0, "does not make"),
            ([["job.tool_delta", {"index": -1, "arguments": "{}"}]], {}, 0, "does not make"),
            ([begin, ["job.tool_delta", {"index": 1, "arguments": "{}"}]], {}, 1, "does not make"),
            ([begin, ["job.tool_delta", {"index": -1, "arguments": "{}"}]], {}, 1, "does not make"),
            ([begin, ["job.tool_delta", {"arguments": "{}"}]], {}, 1, "does not make"),
            ([begin, ["job.tool_delta", {"index": 0}]], {}, 1, "does not make"),
            ([begin, ["job.tool_delta", {"index": 0, "arguments": {}}]], {}, 1, "does not make"),
            ([begin, delta, ["job.delta", {"text": "and"}]], {}, 1, "text after a call"),
            ([["job.tool_call", {"index": n, "name": "time"}] for n in range(129)], {}, 128, "more calls"),
        ):
            with self.subTest(str(said)[:100]):
                events, result = self.ask([*said, ["wait", {}]], **params)
                self.assertIn(words, self.assert_error(result, "INTERNAL")["detail"])
                final = check_stream(self, events, result)
                self.assertEqual(len(final["output"]), kept)
        events, result = self.ask([["job.delta", {"text": "Hm"}], begin, delta])
        self.assertTrue(result["ok"], "it goes on")
        self.assertEqual(len(check_stream(self, events, result)["output"]), 2)

    def test_a_refusal_names_the_hosts_field(self):
        _, result = self.ask("refuse")
        self.assert_error(result, "INVALID_REQUEST", "tools[1].parameters.properties.a.not", "invalid_value")
        body = {"messages": [{"role": "user", "content": '"refuse"'}], "tools": CHAT_TOOLS}
        result = self.started.call("chat.completions.create", body)
        self.assert_error(result, "INVALID_REQUEST", "tools[1].function.parameters.properties.a.not", "invalid_value")

    def test_calls_before_the_prompt_is_accepted(self):
        """Calls before job.accepted are dropped, like text."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        foreign_engine.write(folder.name, "hasty", """
            initialize()
            load()
            job = read()["params"]["job"]
            for method, more in (("job.tool_call", {"index": 5}), ("job.tool_delta", {"index": 5, "arguments": "{}"})):
                send(method=method, params={"job": job, "name": "time", "output_tokens": 1, **more})
            send(method="job.accepted", params={"job": job, "input_tokens": 1})
            finish(job)
            """)
        helper = self.helper("--engine-dir", folder.name, engine="hasty")
        self.assertTrue(helper.call("responses.create", {"input": "x", "tools": TOOLS})["ok"])


if __name__ == "__main__":
    wire.main()
