"""Tests creating, streaming and cancelling, with the fake engine."""

import json
import subprocess
import tempfile

import foreign_engine
import wire
from wire import HelperTest, alive, check_logprobs, check_stream, script, text_of, wait_until


class Methods(HelperTest):
    def test_ping(self):
        helper = self.helper()
        result = helper.call("health.ping", {"anything": [1]})
        self.assertEqual(set(result), {"ok", "protocol_version", "version", "pid", "uptime_ms"})
        self.assertEqual(result["protocol_version"], 1)
        self.assertEqual(result["pid"], helper.pid)

    def test_capabilities_start_nothing(self):
        helper = self.helper()
        result = helper.call("capabilities.get")
        self.assertTrue(result["available"])
        self.assertEqual(result["engine"], {"name": "fake", "state": "idle", "sandbox": None, "gpu": None})
        self.assertEqual(result["limits"]["max_requests"], 64)
        self.assertIsNone(helper.engine_pid())

    def test_models(self):
        result = self.helper().call("models.list", {})
        self.assertEqual([m["id"] for m in result["data"]], ["fake"])
        self.assertEqual(set(result["data"][0]), {"id", "object", "created", "owned_by"})


class Create(HelperTest):
    def test_stream(self):
        helper = self.helper()
        events, result = helper.collect(self.create(helper, "Grüße, 世界 🙂!", instructions="be kind", metadata={"a": "b"}))
        final = check_stream(self, events, result)
        self.assertEqual(final["status"], "completed")
        self.assertEqual(final["output"][0]["content"][0]["text"], "Grüße, 世界 🙂!")
        self.assertEqual(final["usage"]["input_tokens"], 5)
        self.assertEqual(final["usage"]["total_tokens"], 5 + final["usage"]["output_tokens"])
        self.assertEqual((final["instructions"], final["metadata"]), ("be kind", {"a": "b"}))

    def test_unstreamed_has_no_events(self):
        helper = self.helper()
        events, result = helper.collect(self.create(helper, "one two", stream=False))
        self.assertEqual(events, [])
        self.assertEqual(result["response"]["status"], "completed")

    def test_message_items(self):
        helper = self.helper()
        items = [
            {"role": "developer", "content": "rules"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "before"}]},
            {"role": "user", "content": [{"type": "input_text", "text": "after "}, {"type": "input_text", "text": "all"}]},
        ]
        result = helper.call("responses.create", {"input": items})
        self.assertEqual(result["response"]["output"][0]["content"][0]["text"], "after all")
        self.assertEqual(result["response"]["usage"]["input_tokens"], 4)

    def test_token_limit(self):
        helper = self.helper()
        events, result = helper.collect(self.create(helper, "a b c d", max_output_tokens=2))
        final = check_stream(self, events, result)
        self.assertTrue(result["ok"])
        self.assertEqual(events[-1]["type"], "response.incomplete")
        self.assertEqual(final["status"], "incomplete")
        self.assertEqual(final["incomplete_details"], {"reason": "max_output_tokens"})
        self.assertEqual(final["output"][0]["status"], "incomplete")
        self.assertEqual(final["usage"]["output_tokens"], 2)

    def test_nothing_is_generated(self):
        """With `generate` false the prompt is read. The response is completed, has no output, and can be followed."""
        helper = self.helper()
        for stream in (False, True):
            events, result = helper.collect(self.create(helper, "one two", generate=False, stream=stream))
            final = check_stream(self, events, result) if stream else result["response"]
            self.assertEqual((final["status"], final["output"], final["incomplete_details"]), ("completed", [], None))
            self.assertEqual((final["usage"]["input_tokens"], final["usage"]["output_tokens"]), (2, 0))
        follows = helper.call("responses.create", {"input": "three", "previous_response_id": final["id"]})
        self.assertEqual(follows["response"]["usage"]["input_tokens"], 3)
        stored = helper.call("responses.retrieve", {"id": final["id"]})
        self.assertEqual((stored["response"]["status"], stored["response"]["output"]), ("completed", []))
        schema = {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}}
        body = {"input": "x", "generate": False, "text": schema, "fm": {"schema_report": True}}
        self.assertTrue(helper.call("responses.create", body)["ok"])
        tools = [{"type": "function", "function": {"name": "f"}}]
        for more in ({}, {"n": 2}, {"tools": tools, "tool_choice": "required"}):
            body = {"messages": [{"role": "user", "content": "a b"}], "generate": False, **more}
            chat = helper.call("chat.completions.create", body)["completion"]
            self.assertEqual([(choice["message"]["content"], choice["finish_reason"]) for choice in chat["choices"]],
                             [("", "stop")] * more.get("n", 1))
            self.assertEqual(chat["usage"]["completion_tokens"], 0)
        self.assert_error(helper.call("responses.create", {"input": "x", "generate": 0}), "INVALID_REQUEST", "generate")
        for method, body in (("completions.create", {"prompt": "x"}), ("responses.input_tokens", {"input": "x"})):
            self.assert_error(helper.call(method, {**body, "generate": False}), "INVALID_REQUEST", "generate")

    def test_content_filter(self):
        helper = self.helper()
        events, result = helper.collect(self.create(helper, script("some", {"finish": "content_filter"})))
        final = check_stream(self, events, result)
        self.assertEqual(final["incomplete_details"], {"reason": "content_filter"})

    def test_empty_answer(self):
        helper = self.helper()
        events, result = helper.collect(self.create(helper, script({"finish": "stop"})))
        final = check_stream(self, events, result)
        self.assertEqual(final["output"][0]["content"][0]["text"], "")

    def test_stop_string_over_token_borders(self):
        helper = self.helper()
        result = helper.call("responses.create", {"input": script("ab", "cSTO", "Pd"), "stop": ["STOP"]})
        self.assertEqual(result["response"]["output"][0]["content"][0]["text"], "abc")
        self.assertEqual(result["response"]["status"], "completed")

    def test_biases_are_the_engines_to_judge(self):
        helper = self.helper()
        body = {"messages": [{"role": "user", "content": "one"}], "presence_penalty": 2, "frequency_penalty": -2}
        self.assertTrue(helper.call("chat.completions.create", {**body, "logit_bias": {"5": 1}})["ok"])
        result = helper.call("chat.completions.create", {**body, "logit_bias": {"5": 1, "32768": 1}})
        self.assert_error(result, "INVALID_REQUEST", "logit_bias", "invalid_value")

    def test_engine_error(self):
        helper = self.helper()
        events, result = helper.collect(self.create(helper, script("part", {"error": "it broke"})))
        final = check_stream(self, events, result)
        self.assert_error(result, "INTERNAL")
        self.assertEqual(final["status"], "failed")
        self.assertEqual(final["output"][0]["content"][0]["text"], "part")
        self.assertTrue(helper.call("responses.create", {"input": "next"})["ok"])

    def test_overflow_has_no_events(self):
        helper = self.helper()
        events, result = helper.collect(self.create(helper, "word " * 5000))
        self.assertEqual(events, [])
        error = self.assert_error(result, "CONTEXT_OVERFLOW", openai_code="context_length_exceeded")
        self.assertIn("maximum context length", error["openai"]["message"])
        self.assertIn("5000", error["detail"])

    def test_eight_side_by_side_and_more_in_turn(self):
        helper = self.helper()
        steps = script({"repeat": ["x", 50]})
        calls = [self.create(helper, steps) for _ in range(20)]
        for call in calls:
            final = check_stream(self, *helper.collect(call))
            self.assertEqual(final["output"][0]["content"][0]["text"], "x" * 50)

    def test_sixty_fifth_request_is_refused(self):
        helper = self.helper()
        calls = [self.create(helper, script({"hang": "soft"})) for _ in range(64)]
        error = self.assert_error(helper.call("responses.create", {"input": "x"}), "RATE_LIMITED")
        self.assertIn("wait for an answer", error["detail"])
        self.assertEqual(error["openai"]["status"], 429)
        for call in calls:
            helper.send("$/cancelRequest", {"id": call})
        for call in calls:
            self.assert_error(helper.collect(call)[1], "CANCELLED")
        self.assertTrue(helper.call("responses.create", {"input": "x"})["ok"])


class Ignored(HelperTest):
    """An unknown member has no effect, and is reported."""

    BODIES = {"responses.create": {"input": [{"role": "user", "content": "one two"}]},
              "chat.completions.create": {"messages": [{"role": "user", "content": "one two"}]},
              "completions.create": {"prompt": "one two"}}

    def test_reported_with_the_answer(self):
        helper = self.helper()
        for method, body in self.BODIES.items():
            result = helper.call(method, {**body, "top_q": {"deep": [1]}, "temp": None})
            answer = result.get("response") or result["completion"]
            self.assertEqual(answer["fm"], {"ignored": ["top_q", "temp"]}, method)
            self.assertNotIn("top_q", answer)
            events, result = helper.collect(helper.start(method, {**body, "top_q": 1, "stream": True}))
            first = events[0].get("response") or events[0]
            self.assertEqual(first["fm"], {"ignored": ["top_q"]}, method)
            answer = result.get("response") or result["completion"]
            self.assertEqual(answer["fm"], {"ignored": ["top_q"]}, method)
            answer = helper.call(method, body)
            self.assertNotIn("fm", answer.get("response") or answer["completion"])
        result = helper.call("embeddings.create", {"input": "x", "top_q": 1})
        self.assertEqual(result["embeddings"]["fm"], {"ignored": ["top_q"]})
        result = helper.call("responses.input_tokens", {"input": "x", "top_q": 1})
        self.assertEqual(result["fm"], {"ignored": ["top_q"]})
        result = helper.call("responses.compact", {"model": "fake", "input": "x", "top_q": 1})
        self.assertEqual(result["fm"], {"ignored": ["top_q"]})

    def test_what_another_call_has_is_refused(self):
        """Ignoring such a member would change the answer: it may be a limit of tokens."""
        helper = self.helper()
        for method, body, param in (
                ("responses.create", {"input": "x", "max_tokens": 5}, "max_tokens"),
                ("responses.create", {"input": "x", "n": 2}, "n"),
                ("chat.completions.create", {"messages": [{"role": "user", "content": "x"}], "max_output_tokens": 5},
                 "max_output_tokens"),
                ("completions.create", {"prompt": "x", "response_format": {"type": "json_object"}}, "response_format"),
                ("embeddings.create", {"input": "x", "stream": True}, "stream"),
                ("responses.input_tokens", {"input": "x", "temperature": 1}, "temperature"),
                ("responses.compact", {"model": "fake", "input": "x", "stream": True}, "stream")):
            self.assert_error(helper.call(method, body), "INVALID_REQUEST", param, "unsupported_parameter")
            self.assertNotIn("error", helper.call(method, {**body, param: None}), method)

    def test_of_a_stored_response(self):
        helper = self.helper()
        body = {"input": [{"type": "message", "role": "user", "mood": "x", "content": "hi"}], "stream": True}
        call = helper.start("responses.create", body)
        events, result = helper.collect(call)
        made = result["response"]
        self.assertEqual(made["fm"], {"ignored": ["input[0].mood"]})
        self.assertEqual(helper.call("responses.retrieve", {"id": made["id"]})["response"], made)
        again, _ = helper.collect(helper.start("responses.retrieve", {"id": made["id"], "stream": True}))
        self.assertEqual(again, events)
        item, = helper.call("responses.input_items", {"id": made["id"]})["data"]
        self.assertNotIn("mood", item)
        followed = helper.call("responses.create", {"previous_response_id": made["id"], "input": "on"})
        self.assertNotIn("fm", followed["response"])

    def test_of_calls_without_a_body(self):
        helper = self.helper()
        for method in ("models.list", "capabilities.get"):
            self.assertEqual(helper.call(method, {"engine": "x"})["fm"], {"ignored": ["engine"]})
        self.assertEqual(helper.call("models.retrieve", {"id": "fake", "x": 1})["fm"], {"ignored": ["x"]})
        made = helper.call("responses.create", {"input": "x"})["response"]
        for method in ("responses.retrieve", "responses.input_items", "responses.delete"):
            self.assertEqual(helper.call(method, {"id": made["id"], "x": 1})["fm"], {"ignored": ["x"]}, method)

    def test_chat_is_not_stored(self):
        """OpenAI's server keeps such a completion. The helper answers the request, and the answer says that the completion is not
        kept."""
        helper = self.helper("--log-level", "warn", stderr=subprocess.PIPE)
        body = {"messages": [{"role": "user", "content": "x"}]}
        self.assertNotIn("fm", helper.call("chat.completions.create", {**body, "store": False})["completion"])
        for more in ({}, {"n": 2}):
            completion = helper.call("chat.completions.create", {**body, **more, "store": True})["completion"]
            self.assertEqual(completion["fm"], {"ignored": ["store"]})
        call = helper.start("chat.completions.create", {**body, "store": True, "stream": True})
        chunks, result = helper.collect(call)
        self.assertTrue(result["ok"])
        self.assertEqual(chunks[0]["fm"], {"ignored": ["store"]})
        helper.close()
        with helper.process.stderr as stderr:
            self.assertEqual(stderr.read().decode().count("ignored parameter store"), 1)

    def test_strict(self):
        for args, env in ((["--strict-parameters"], {}), ([], {"FM_PROXY_STRICT_PARAMETERS": "1"})):
            helper = self.helper(*args, env=env)
            for method, body in self.BODIES.items():
                self.assert_error(helper.call(method, {**body, "top_q": 1}), "INVALID_REQUEST", "top_q", "unknown_parameter")
            self.assertIsNone(helper.engine_pid())
            self.assertTrue(helper.call("responses.create", {"input": "x", "top_k": 5})["ok"])
            chat = {**self.BODIES["chat.completions.create"], "store": True}
            self.assertTrue(helper.call("chat.completions.create", chat)["ok"])
        helper = self.helper(env={"FM_PROXY_STRICT_PARAMETERS": "0"})
        self.assertTrue(helper.call("responses.create", {"input": "x", "top_q": 5})["ok"])

    def test_logged_once(self):
        secret = "what the user said"
        helper = self.helper("--log-level", "warn", stderr=subprocess.PIPE)
        for at in range(3):
            items = [{"role": "user", "content": "x"}] * at + [{"role": "user", "content": "x", "foo": 1}]
            helper.call("responses.create", {"input": items, "top_q": 1, secret: 1, "k" * 65: 1})
        helper.call("process.shutdown")
        helper.wait_exit()
        with helper.process.stderr as stderr:
            lines = [line for line in stderr.read().decode().splitlines() if "ignored" in line]
        self.assertEqual([line.split("ignored parameter ")[1] for line in lines],
                         ["input[].foo", "top_q", f"of {len(secret)} bytes", "of 65 bytes"])

    def test_extras_reach_an_engine_that_has_them(self):
        helper = self.helper()
        asked = {"top_k": 40, "min_p": 0.25, "repeat_penalty": 1.5, "ignore_eos": True}
        steps = script({"parameter": "top_k"}, " ", {"parameter": "min_p"}, " ", {"parameter": "repeat_penalty"}, " ",
                       {"parameter": "ignore_eos"})
        for method, body in (("responses.create", {"input": steps}),
                             ("chat.completions.create", {"messages": [{"role": "user", "content": steps}]}),
                             ("completions.create", {"prompt": steps})):
            result = helper.call(method, {**body, **asked})
            self.assertIn("40 0.25 1.5 true", json.dumps(result), method)
            self.assertNotIn("fm", result.get("response") or result["completion"])
        result = helper.call("responses.create", {"input": steps})
        self.assertIn('"0 -1 1 false"', json.dumps(result))
        result = helper.call("responses.create", {"input": "one two", "ignore_eos": True, "max_output_tokens": 5})
        self.assertEqual((result["response"]["status"], result["response"]["usage"]["output_tokens"]), ("incomplete", 5))

    def test_extras_of_an_engine_without(self):
        """An engine that names no parameters gets none. An engine that names some gets these parameters."""
        for named, has in (({}, []), ({"parameters": ["min_p", "sing", 7]}, ["min_p"]), ({"parameters": "min_p"}, [])):
            with tempfile.TemporaryDirectory() as folder:
                foreign_engine.write(folder, "foreign", f"""
                    initialize(**{named!r})
                    load()
                    params = read()["params"]
                    job = params["job"]
                    send(method="job.accepted", params={{"job": job, "input_tokens": 1}})
                    send(method="job.delta", params={{"job": job, "text": json.dumps(sorted(params)), "output_tokens": 1}})
                    finish(job)
                    read()
                """)
                helper = self.helper("--engine-dir", folder, "--strict-parameters", engine="foreign")
                body = {"input": "x", "top_k": 40, "min_p": 0.25, "repeat_penalty": 1, "stream": True}
                events, result = helper.collect(helper.start("responses.create", body))
                final = check_stream(self, events, result)
                ignored = [name for name in ("top_k", "min_p") if name not in has]
                self.assertEqual(final["fm"], {"ignored": ignored})
                self.assertEqual(events[0]["response"]["fm"], {"ignored": ignored})
                got = json.loads(text_of(final["output"][0]))
                self.assertEqual([name for name in got if name not in ("job", "messages")], has)


class BadInput(HelperTest):
    CASES = [
        ({}, "input", "missing_required_parameter"),
        ({"input": []}, "input", None),
        ({"input": []}, "input", None),
        ({"input": 7}, "input", "invalid_type"),
        ({"input": "x", "temperature": 3}, "temperature", "decimal_above_max_value"),
        ({"input": "x", "temperature": "hot"}, "temperature", "invalid_type"),
        ({"input": "x", "max_output_tokens": 0}, "max_output_tokens", "integer_below_min_value"),
        ({"input": "x", "tools": [{"type": "web_search"}]}, "tools[0].type", "unsupported_value"),
        ({"input": "x", "tools": [{"type": "function", "name": "f"}] * 2}, "tools[1].name", "invalid_value"),
        ({"input": "x", "tool_choice": "required"}, "tool_choice", "invalid_value"),
        ({"input": "x", "store": 1}, "store", "invalid_type"),
        ({"input": "x", "conversation": "conv_1"}, "conversation", "unsupported_parameter"),
        ({"input": "x", "text": {"format": {"type": "xml"}}}, "text.format.type", "invalid_value"),
        ({"input": "x", "text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema",
         "missing_required_parameter"),
        ({"input": "x", "text": {"format": {"type": "json_object"}}, "response_format": {"type": "text"}}, "response_format",
         "invalid_value"),
        ({"input": "x", "nonsense": 1}, "nonsense", "unknown_parameter"),
        ({"input": "x", "fm": {"timeout_ms": 0}}, "fm.timeout_ms", "integer_below_min_value"),
        ({"input": "x", "fm": {"time": 1}}, "fm.time", "unknown_parameter"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input[0].content[0].image_url",
         "invalid_value"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]}]},
         "input[0].content[0].type", "unsupported_parameter"),
        ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}, "input[0].content[0].file_id", None),
    ]

    def test_each_names_the_field(self):
        helper = self.helper("--strict-parameters")
        for body, param, openai_code in self.CASES:
            with self.subTest(str(body)):
                events, result = helper.collect(helper.start("responses.create", {**body, "stream": True}))
                self.assertEqual(events, [])
                self.assert_error(result, "INVALID_REQUEST", param, openai_code)
        self.assertIsNone(helper.engine_pid(), "a bad request starts no engine")

    def test_unknown_model(self):
        for method, body in (("responses.create", {"input": "x"}),
                             ("chat.completions.create", {"messages": [{"role": "user", "content": "x"}]})):
            result = self.helper().call(method, {**body, "model": "gpt-9"})
            error = self.assert_error(result, "NOT_FOUND", "model", "model_not_found")
            self.assertIn("gpt-9", error["openai"]["message"])


def made_up(token):
    """The fake engine's log probability of a token."""
    return -(sum(token.encode()) % 1024) / 1000


class Logprobs(HelperTest):
    INCLUDE = ["message.output_text.logprobs"]
    WORDS = ["Grüße,", " 世界", " 🙂", " and", " more"]

    def test_the_tokens_of_a_stream(self):
        helper = self.helper()
        for top in (None, 0, 1, 20):
            call = self.create(helper, "".join(self.WORDS), include=self.INCLUDE, top_logprobs=top)
            final = check_stream(self, *helper.collect(call))
            entries = final["output"][0]["content"][0]["logprobs"]
            self.assertEqual([e["token"] for e in entries], self.WORDS)
            self.assertEqual([e["logprob"] for e in entries], [made_up(word) for word in self.WORDS])
            for entry in entries:
                tops = [(entry["token"] + "~" * i, round(entry["logprob"] - i, 6)) for i in range(top or 0)]
                self.assertEqual([(t["token"], t["logprob"]) for t in entry["top_logprobs"]], tops)
            self.assertEqual(final["top_logprobs"], top or 0)

    def test_only_who_includes_them_gets_them(self):
        helper = self.helper()
        for params in ({"top_logprobs": 5}, {"top_logprobs": 5, "include": ["reasoning.encrypted_content"]}):
            final = check_stream(self, *helper.collect(self.create(helper, "one two", **params)))
            self.assertEqual(final["output"][0]["content"][0]["logprobs"], [])

    def test_a_stop_string_cuts_the_last_token(self):
        helper = self.helper()
        for steps, tokens in ((["ab", "cSTO", "Pd"], ["ab", "c"]), (["ab", "STOP"], ["ab"]), (["STOP"], []),
                              (["a", "ST", "O", "b"], ["a", "ST", "O", "b"])):
            call = self.create(helper, script(*steps), stop="STOP", include=self.INCLUDE)
            final = check_stream(self, *helper.collect(call))
            self.assertEqual([e["token"] for e in final["output"][0]["content"][0]["logprobs"]], tokens)

    def test_text_before_a_call_has_them_and_arguments_have_none(self):
        helper = self.helper()
        tools = [{"type": "function", "name": "f"}]
        steps = script("I", " call", {"tool_call": {"name": "f", "arguments": "{\"a\": 1}"}})
        final = check_stream(self, *helper.collect(self.create(helper, steps, tools=tools, include=self.INCLUDE)))
        self.assertEqual([e["token"] for e in final["output"][0]["content"][0]["logprobs"]], ["I", " call"])

    def test_deltas_that_merge_have_all_of_their_entries(self):
        helper = self.helper()
        helper.call("responses.create", {"input": "x"})
        engine = helper.engine_pid()
        helper.reading.clear()
        call = self.create(helper, script({"repeat": [" word", 20000]}, {"exit": 3}), include=self.INCLUDE)
        wait_until(lambda: not alive(engine), "the end of all words")
        helper.reading.set()
        events, result = helper.collect(call)
        final = check_stream(self, events, result)
        self.assertEqual(len(final["output"][0]["content"][0]["logprobs"]), 20000)
        self.assertTrue(any(len(e["logprobs"]) > 100 for e in events if e["type"].endswith("text.delta")))

    def test_more_than_an_event_holds(self):
        helper = self.helper()
        call = self.create(helper, script({"repeat": [" word", 20000]}), include=self.INCLUDE, top_logprobs=20)
        events, result = helper.collect(call)
        final = check_stream(self, events, result)
        self.assertIn("too many", self.assert_error(result, "INTERNAL")["detail"])
        self.assertGreater(len(final["output"][0]["content"][0]["text"]), 1000)
        self.assertTrue(helper.call("responses.create", {"input": "next"})["ok"])

    def test_chat(self):
        helper = self.helper()
        body = {"messages": [{"role": "user", "content": "".join(self.WORDS)}], "logprobs": True, "top_logprobs": 2}
        choice = helper.call("chat.completions.create", body)["completion"]["choices"][0]
        self.assertEqual(set(choice["logprobs"]), {"content", "refusal"})
        whole = check_logprobs(self, choice["message"]["content"], choice["logprobs"]["content"])
        self.assertEqual([e["token"] for e in whole], self.WORDS)
        self.assertEqual([len(e["top_logprobs"]) for e in whole], [2] * len(self.WORDS))
        chunks, _ = helper.collect(helper.start("chat.completions.create", {**body, "stream": True}))
        entries = []
        for chunk in (chunk["choices"][0] for chunk in chunks):
            content = chunk["delta"].get("content")
            self.assertEqual(chunk["logprobs"] is None, content is None)
            if content is not None:
                self.assertIsNone(chunk["logprobs"]["refusal"])
                entries += check_logprobs(self, content, chunk["logprobs"]["content"])
        self.assertEqual(entries, whole)
        del body["logprobs"], body["top_logprobs"]
        self.assertIsNone(helper.call("chat.completions.create", body)["completion"]["choices"][0]["logprobs"])


class Chat(HelperTest):
    BODY = {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "one two"}]}

    def test_completion(self):
        completion = self.helper().call("chat.completions.create", self.BODY)["completion"]
        self.assertEqual(completion["choices"][0]["message"]["content"], "one two")
        self.assertEqual(completion["choices"][0]["finish_reason"], "stop")
        self.assertEqual(completion["usage"]["total_tokens"], 5)

    def test_chunks(self):
        helper = self.helper()
        body = {**self.BODY, "stream": True, "stream_options": {"include_usage": True}}
        chunks, result = helper.collect(helper.start("chat.completions.create", body))
        self.assertTrue(result["ok"])
        self.assertEqual(len({c["id"] for c in chunks}), 1)
        self.assertEqual(chunks[0]["choices"][0]["delta"]["role"], "assistant")
        text = "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])
        self.assertEqual(text, "one two")
        reasons = [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]]
        self.assertEqual([r for r in reasons if r], ["stop"])
        self.assertEqual(chunks[-1]["choices"], [])
        self.assertEqual(chunks[-1]["usage"]["total_tokens"], 5)

    def test_length_and_stop(self):
        helper = self.helper()
        result = helper.call("chat.completions.create", {**self.BODY, "max_tokens": 1})
        self.assertEqual(result["completion"]["choices"][0]["finish_reason"], "length")
        result = helper.call("chat.completions.create", {**self.BODY, "stop": "two"})
        self.assertEqual(result["completion"]["choices"][0]["message"]["content"], "one ")


class Completions(HelperTest):
    def complete(self, helper, prompt, **params):
        return helper.call("completions.create", {"prompt": prompt, **params})

    def test_completion(self):
        helper = self.helper()
        for prompt in ("one two", ["one two"]):
            completion = self.complete(helper, prompt)["completion"]
            self.assertEqual(set(completion), {"id", "object", "created", "model", "choices", "usage"})
            self.assertEqual(completion["object"], "text_completion")
            self.assertEqual(completion["choices"], [{"index": 0, "text": "one two", "logprobs": None, "finish_reason": "stop"}])
            self.assertEqual(completion["usage"]["total_tokens"], 4)

    def test_chunks(self):
        helper = self.helper()
        body = {"prompt": "one two", "stream": True, "stream_options": {"include_usage": True}}
        chunks, result = helper.collect(helper.start("completions.create", body))
        self.assertTrue(result["ok"])
        self.assertEqual({c["id"] for c in chunks}, {result["completion"]["id"]})
        self.assertEqual([c["choices"][0]["text"] for c in chunks[:-1]], ["one", " two", ""])
        self.assertEqual([c["choices"][0]["finish_reason"] for c in chunks[:-1]], [None, None, "stop"])
        self.assertEqual((chunks[-1]["choices"], chunks[-1]["usage"]["total_tokens"]), ([], 4))

    def test_echo_and_limits(self):
        helper = self.helper()
        words = " ".join("abcdefghijklmnopqrst")
        for params, text, reason in (({}, words[:31], "length"), ({"max_tokens": 2}, "a b", "length"),
                                     ({"max_tokens": 2, "echo": True}, words + "a b", "length"),
                                     ({"max_tokens": 0, "echo": True}, words, "length"), ({"max_tokens": 0}, "", "length"),
                                     ({"stop": " c"}, "a b", "stop"), ({"suffix": "x y", "max_tokens": 1}, "a", "length")):
            completion = self.complete(helper, words, **params)["completion"]
            self.assertEqual((completion["choices"][0]["text"], completion["choices"][0]["finish_reason"]), (text, reason))
        self.assertEqual(completion["usage"]["prompt_tokens"], 22)

    def test_cancel(self):
        helper = self.helper()
        body = {"prompt": script("begun", {"hang": "soft"}), "stream": True}
        call = helper.start("completions.create", body)
        id = helper.event(call)["id"]
        cancel = helper.start("responses.cancel", {"id": id})
        chunks, result = helper.collect(call)
        self.assert_error(result, "CANCELLED")
        self.assertEqual([c for c in chunks if c["choices"][0]["finish_reason"]], [])
        self.assertEqual(result["completion"]["choices"][0]["text"], "begun")
        self.assertIn("completion", helper.reply(cancel)["result"])

    def test_several_prompts(self):
        helper = self.helper()
        body = {"prompt": ["one two", script({"sleep_ms": 1}, "a", " b"), ""], "n": 2, "max_tokens": 9}
        texts = [(index, text) for index, text in enumerate(["one two", "one two", "a b", "a b", "", ""])]
        whole = helper.call("completions.create", body)["completion"]
        self.assertEqual([(choice["index"], choice["text"]) for choice in whole["choices"]], texts)
        alone = [self.complete(helper, prompt)["completion"]["usage"] for prompt in body["prompt"]]
        self.assertEqual(whole["usage"]["prompt_tokens"], sum(usage["prompt_tokens"] for usage in alone))
        self.assertEqual(whole["usage"]["completion_tokens"], 2 * sum(usage["completion_tokens"] for usage in alone))
        chunks, result = helper.collect(helper.start("completions.create", {**body, "stream": True}))
        said = dict.fromkeys(range(6), "")
        for chunk in chunks:
            said[chunk["choices"][0]["index"]] += chunk["choices"][0]["text"]
        self.assertEqual(list(said.items()), texts)
        self.assertEqual(result["completion"]["choices"], whole["choices"])
        result = helper.call("completions.create", {"prompt": ["a", "word " * 5000, "c"]})
        self.assert_error(result, "CONTEXT_OVERFLOW", "prompt[1]")
        # one that fails ends all of them
        result = helper.call("completions.create", {"prompt": ["a", script("b", {"error": "it broke"}), "c"]})
        self.assert_error(result, "INTERNAL")
        self.assertEqual([choice["finish_reason"] for choice in result["completion"]["choices"]], ["stop", None])

    def test_errors(self):
        helper = self.helper()
        self.assert_error(self.complete(helper, "x", best_of=2), "INVALID_REQUEST", "best_of", "unsupported_parameter")
        self.assert_error(self.complete(helper, [1, 2]), "INVALID_REQUEST", "prompt[0]", "unsupported_value")
        self.assert_error(self.complete(helper, "word " * 5000, echo=True), "CONTEXT_OVERFLOW")
        grammar = {"grammar": {"syntax": "regex", "definition": "x"}}  # the fake engine does not support it
        self.assert_error(self.complete(helper, "x", fm=grammar), "INVALID_REQUEST", "fm.grammar")
        events, result = helper.collect(helper.start("completions.create", {"prompt": script("a", {"error": "it broke"})}))
        self.assert_error(result, "INTERNAL")
        self.assertEqual(result["completion"]["choices"][0]["finish_reason"], None)


class InputTokens(HelperTest):
    BODY = {"input": [{"role": "user", "content": "one two"}, {"role": "assistant", "content": "three"},
                      {"role": "user", "content": script("a", "b")}], "instructions": "be kind"}

    def count(self, helper, **more):
        return helper.call("responses.input_tokens", {**self.BODY, **more})

    def test_the_count_is_that_of_the_request(self):
        helper = self.helper()
        tools = {"tools": [{"type": "function", "name": "f"}]}
        schema = {"text": {"format": {"type": "json_schema", "name": "n", "schema": {}}}}
        for more in ({}, tools, schema):
            usage = helper.call("responses.create", {**self.BODY, **more})["response"]["usage"]
            self.assertEqual(self.count(helper, **more), {"ok": True, "object": "response.input_tokens",
                                                          "input_tokens": usage["input_tokens"]})

    def test_a_conversation_that_goes_on(self):
        helper = self.helper()
        first = helper.call("responses.create", {"input": "one two"})["response"]
        for more in ({"previous_response_id": first["id"]},
                     {"input": [{"type": "item_reference", "id": first["output"][0]["id"]}, *self.BODY["input"]]}):
            created = helper.call("responses.create", {**self.BODY, **more})["response"]
            self.assertEqual(self.count(helper, **more)["input_tokens"], created["usage"]["input_tokens"])
        self.assertGreater(created["usage"]["input_tokens"], self.count(helper)["input_tokens"])

    def test_it_fails_as_the_request_would(self):
        helper = self.helper("--strict-parameters")
        self.assert_error(self.count(helper, input="word " * 5000), "CONTEXT_OVERFLOW")
        self.assert_error(self.count(helper, model="gpt-9"), "NOT_FOUND", "model")
        for key, value, code in (("stream", True, "unsupported_parameter"), ("top_q", 5, "unknown_parameter"),
                                 ("previous_response_id", "resp_1", "previous_response_not_found"),
                                 ("input", [], "invalid_value")):
            self.assert_error(self.count(helper, **{key: value}), "INVALID_REQUEST", key, code)

    def test_a_schema_report(self):
        result = self.count(self.helper(), fm={"schema_report": True})
        self.assertEqual((result["input_tokens"], result["fm"]), (7, {"schema": None}))

    def test_it_waits_and_is_cancelled_like_any_request(self):
        helper = self.helper(env={"FM_ENGINE_FAKE_LOAD": "hang"})
        self.assert_error(self.count(helper, fm={"queue_timeout_ms": 30}), "TIMEOUT")
        call = helper.start("responses.input_tokens", self.BODY)
        cancel = helper.start("responses.cancel", {"request_id": call})
        self.assertEqual(set(helper.reply(call)["result"]), {"ok", "error"})
        self.assertEqual(helper.reply(cancel)["result"], {"ok": True})


class Truncation(HelperTest):
    INPUT = [{"role": role, "content": "word " * 500} for _ in range(8) for role in ("user", "assistant")]
    LAST = {"role": "user", "content": "one two"}

    def test_what_was_left_out_is_told(self):
        helper = self.helper()
        input = [*self.INPUT, self.LAST]
        self.assert_error(helper.call("responses.create", {"input": input}), "CONTEXT_OVERFLOW")
        self.assert_error(helper.call("responses.create", {"input": input, "truncation": "disabled"}), "CONTEXT_OVERFLOW")
        body = {"instructions": "be kind", "truncation": "auto"}
        events, result = helper.collect(self.create(helper, input, **body))
        final = check_stream(self, events, result)
        self.assertEqual((final["status"], final["truncation"], final["fm"]), ("completed", "auto", {"dropped_messages": 10}))
        self.assertEqual(events[0]["response"]["fm"], final["fm"])
        self.assertEqual(final["usage"]["input_tokens"], 2 + 6 * 500 + 2)
        counted = helper.call("responses.input_tokens", {**body, "input": input})
        self.assertEqual((counted["input_tokens"], counted["fm"]), (3004, {"dropped_messages": 10}))

    def test_a_small_answer_needs_a_small_reserve(self):
        input = [*self.INPUT, self.LAST]
        result = self.helper().call("responses.create", {"input": input, "truncation": "auto", "max_output_tokens": 2})
        self.assertEqual(result["response"]["fm"], {"dropped_messages": 8})
        self.assertEqual(result["response"]["output"][0]["content"][0]["text"], "one two")

    def test_stored_turns_are_left_out_too(self):
        helper = self.helper()
        first = helper.call("responses.create", {"input": "word " * 3000, "max_output_tokens": 5})["response"]
        body = {"input": "word " * 1500, "previous_response_id": first["id"]}
        self.assert_error(helper.call("responses.create", body), "CONTEXT_OVERFLOW")
        result = helper.call("responses.create", {**body, "truncation": "auto", "max_output_tokens": 5})
        self.assertEqual(result["response"]["fm"], {"dropped_messages": 2})
        self.assertEqual(result["response"]["usage"]["input_tokens"], 1500)
        kept = helper.call("responses.retrieve", {"id": result["response"]["id"]})["response"]
        self.assertEqual((kept["fm"], kept["truncation"]), ({"dropped_messages": 2}, "auto"))

    def test_what_fits_says_nothing(self):
        result = self.helper().call("responses.create", {"input": "one two", "truncation": "auto"})
        self.assertNotIn("fm", result["response"])

    def test_the_rest_does_not_fit(self):
        input = [*self.INPUT, {"role": "user", "content": "word " * 5000}]
        result = self.helper().call("responses.create", {"input": input, "truncation": "auto"})
        self.assertIn("5000", self.assert_error(result, "CONTEXT_OVERFLOW")["detail"])

class Choices(HelperTest):
    """Tests chat's `n`: the engine gets several jobs, one after the other, and the host gets one answer."""

    def body(self, text, n, **params):
        return {"messages": [{"role": "user", "content": text}], "n": n, **params}

    def test_a_completion(self):
        completion = self.helper().call("chat.completions.create", self.body("one two", 3))["completion"]
        choices = completion["choices"]
        self.assertEqual([c["index"] for c in choices], [0, 1, 2])
        self.assertEqual([c["message"]["content"] for c in choices], ["one two"] * 3)
        self.assertEqual([c["finish_reason"] for c in choices], ["stop"] * 3)
        usage = completion["usage"]
        self.assertEqual((usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]), (2, 6, 8))

    def take(self, chunks, n):
        """Returns the texts of a stream's choices, each with its first and its last chunk."""
        texts, begun, ended = [""] * n, [0] * n, [None] * n
        for choice in (chunk["choices"][0] for chunk in chunks if chunk["choices"]):
            index, delta = choice["index"], choice["delta"]
            self.assertIsNone(ended[index], "a chunk after the last")
            begun[index] += "role" in delta
            self.assertEqual(begun[index], 1)
            texts[index] += delta.get("content") or ""
            ended[index] = choice["finish_reason"]
        return texts, ended

    def test_a_stream(self):
        helper = self.helper()
        call = helper.start("chat.completions.create", self.body("a b c d", 3, stream=True, max_tokens=3,
                                                                 stream_options={"include_usage": True}))
        chunks, result = helper.collect(call)
        self.assertEqual(len({chunk["id"] for chunk in chunks}), 1)
        self.assertEqual(self.take(chunks, 3), (["a b c"] * 3, ["length"] * 3))
        self.assertEqual([bool(chunk["choices"]) for chunk in chunks].index(False), len(chunks) - 1)
        self.assertEqual(chunks[-1]["usage"], result["completion"]["usage"])
        self.assertEqual(chunks[-1]["usage"]["completion_tokens"], 9)

    def test_the_most(self):
        result = self.helper().call("chat.completions.create", self.body("x", 128))
        self.assertEqual([c["index"] for c in result["completion"]["choices"]], list(range(128)))

    def test_a_slow_host_gets_them_all(self):
        helper = self.helper()
        helper.reading.clear()
        call = helper.start("chat.completions.create", self.body("word " * 3000, 8, stream=True))
        other = helper.start("chat.completions.create", self.body("hi", 8))
        helper.reading.set()
        self.assertEqual(self.take(helper.collect(call)[0], 8), (["word " * 3000] * 8, ["stop"] * 8))
        self.assertEqual(len(helper.collect(other)[1]["completion"]["choices"]), 8)

    def test_a_cancel_in_the_middle_keeps_what_there_is(self):
        helper = self.helper()
        call = helper.start("chat.completions.create", self.body(script("one", {"sleep_ms": 20}), 128, stream=True))
        while helper.event(call)["choices"][0]["index"] < 2:
            pass
        cancelled = helper.call("responses.cancel", {"request_id": call})
        _, result = helper.collect(call)
        self.assert_error(result, "CANCELLED")
        choices = result["completion"]["choices"]
        self.assertEqual(cancelled["completion"], result["completion"])
        self.assertLess(len(choices), 128)
        self.assertEqual([c["message"]["content"] for c in choices[:2]], ["one"] * 2)
        self.assertEqual([c["finish_reason"] for c in choices], ["stop"] * (len(choices) - 1) + [None])
        self.assertTrue(helper.call("chat.completions.create", self.body("next", 2))["ok"])

    def test_a_limit_is_for_all_of_them(self):
        helper = self.helper()
        result = helper.call("chat.completions.create",
                             self.body(script("one", {"sleep_ms": 150}), 128, fm={"timeout_ms": 600, "queue_timeout_ms": 300}))
        error = self.assert_error(result, "TIMEOUT")
        self.assert_undisturbed(error["limit"] == "total", error)
        self.assert_undisturbed(len(result["completion"]["choices"]) >= 2, "two answers before the limit")

    def test_an_engine_that_dies(self):
        helper = self.helper()
        result = helper.call("chat.completions.create", self.body(script("one", {"signal": "KILL"}), 3))
        self.assert_error(result, "INTERNAL")
        self.assertEqual([c["message"]["content"] for c in result["completion"]["choices"]], ["one"])

    def test_all_of_them_fit_into_one_answer(self):
        helper = self.helper()
        steps = script({"repeat": ["x" * 1000, 1500]})
        result = helper.call("chat.completions.create", self.body(steps, 4))
        self.assertIn("too large", self.assert_error(result, "INTERNAL")["detail"])
        self.assertEqual(len(result["completion"]["choices"]), 3)
        self.assertTrue(helper.call("chat.completions.create", self.body(steps, 2))["ok"])

    def test_calls_and_logprobs_of_each(self):
        helper = self.helper()
        tools = [{"type": "function", "function": {"name": "f"}}]
        steps = script("I", " call", {"tool_call": {"name": "f", "arguments": "{}"}})
        body = self.body(steps, 2, tools=tools, logprobs=True)
        for choice in helper.call("chat.completions.create", body)["completion"]["choices"]:
            self.assertEqual([e["token"] for e in choice["logprobs"]["content"]], ["I", " call"])
            self.assertEqual((choice["finish_reason"], len(choice["message"]["tool_calls"])), ("tool_calls", 1))
        chunks, _ = helper.collect(helper.start("chat.completions.create", {**body, "stream": True}))
        entries = [[], []]
        for choice in (chunk["choices"][0] for chunk in chunks):
            entries[choice["index"]] += (choice["logprobs"] or {"content": []})["content"]
        self.assertEqual([[e["token"] for e in each] for each in entries], [["I", " call"]] * 2)


class ResultsOfStreams(HelperTest):
    """The last event has the response, so the result of the call does not repeat the response."""

    def raw(self, helper, call):
        while "method" in (message := helper.receive()):
            last = message["params"]["event"]
        self.assertEqual(message["id"], call)
        return last["response"], message["result"]

    def test_names_it_alone(self):
        helper = self.helper()
        for prompt, ok in (("one two", True), (script("x", {"finish": "length"}), True),
                           (script("x", {"error": "it broke"}), False)):
            last, result = self.raw(helper, self.create(helper, prompt))
            self.assertEqual(result["ok"], ok)
            self.assertEqual(result["response"], {key: last[key] for key in ("id", "object", "status")})

    def test_has_it_for_those_who_ask(self):
        helper = self.helper()
        last, result = self.raw(helper, self.create(helper, "one two", fm={"full_result": True}))
        self.assertEqual(result, {"ok": True, "response": last})
        self.assert_error(helper.call("responses.create", {"input": "x", "fm": {"full_result": 1}}), "INVALID_REQUEST",
                          "fm.full_result", "invalid_type")

    def test_of_one_that_is_read_again(self):
        helper = self.helper()
        last, _ = self.raw(helper, self.create(helper, "one two"))
        query = {"id": last["id"], "stream": True}
        again, result = self.raw(helper, helper.start("responses.retrieve", query))
        self.assertEqual((again, set(result["response"])), (last, {"id", "object", "status"}))
        again, result = self.raw(helper, helper.start("responses.retrieve", {**query, "fm": {"full_result": True}}))
        self.assertEqual((again, result), (last, {"ok": True, "response": last}))
        for fm, param, reason in (({"full_result": 1}, "fm.full_result", "invalid_type"), (7, "fm", "invalid_type"),
                                  ({"timings": True}, "fm.timings", "unknown_parameter")):
            for stream in (True, False):
                self.assert_error(helper.call("responses.retrieve", {**query, "stream": stream, "fm": fm}),
                                  "INVALID_REQUEST", param, reason)
        after = helper.call("responses.retrieve", {**query, "starting_after": 1000})  # no event has this number
        self.assertEqual(after, {"ok": True, "response": last})

    def test_of_one_that_was_left(self):
        helper = self.helper()
        call = self.create(helper, script("begun", {"hang": "soft"}), background=True)
        helper.event(call, "response.output_text.delta")
        helper.send("$/cancelRequest", {"id": call})
        self.assertEqual(helper.reply(call)["result"]["response"]["output"][0]["content"][0]["text"], "begun")


class Cancel(HelperTest):
    def running(self, helper, *steps):
        """Starts a call that has produced "begun" and continues; returns (call, response id)."""
        call = self.create(helper, script("begun", *(steps or ({"hang": "soft"},))))
        id = helper.event(call, "response.created")["response"]["id"]
        helper.event(call, "response.output_text.delta")
        return call, id

    def assert_cancelled(self, helper, call):
        events, result = helper.collect(call)
        self.assert_error(result, "CANCELLED")
        self.assertEqual(events[-1]["type"], "response.incomplete")
        self.assertEqual(result["response"], events[-1]["response"])
        self.assertEqual(result["response"]["status"], "cancelled")
        self.assertEqual(result["response"]["output"][0]["content"][0]["text"], "begun")
        self.assertEqual(result["response"]["usage"]["output_tokens"], 1)
        return result

    def test_by_response_id(self):
        helper = self.helper()
        call, id = self.running(helper)
        cancel = helper.start("responses.cancel", {"id": id})
        result = self.assert_cancelled(helper, call)
        self.assertEqual(helper.reply(cancel)["result"], {"ok": True, "response": result["response"]})

    def test_by_request_id(self):
        helper = self.helper()
        call, _ = self.running(helper)
        cancel = helper.start("responses.cancel", {"request_id": call})
        self.assert_cancelled(helper, call)
        self.assertTrue(helper.reply(cancel)["result"]["ok"])

    def test_by_cancel_request(self):
        helper = self.helper()
        call, _ = self.running(helper)
        helper.send("$/cancelRequest", {"id": call})
        self.assert_cancelled(helper, call)

    def test_chat(self):
        helper = self.helper()
        body = {"messages": [{"role": "user", "content": script("begun", {"hang": "soft"})}], "stream": True}
        call = helper.start("chat.completions.create", body)
        id = helper.event(call)["id"]
        cancel = helper.start("responses.cancel", {"id": id})
        chunks, result = helper.collect(call)
        self.assert_error(result, "CANCELLED")
        self.assertFalse([c for c in chunks if c["choices"] and c["choices"][0]["finish_reason"]])
        self.assertIn("completion", helper.reply(cancel)["result"])

    def test_twice_and_again(self):
        helper = self.helper()
        call, id = self.running(helper)
        cancels = [helper.start("responses.cancel", {"id": id}) for _ in range(2)]
        self.assert_cancelled(helper, call)
        self.assertTrue(helper.reply(cancels[0])["result"]["ok"])
        self.assertTrue(helper.reply(cancels[1])["result"]["ok"])
        again = helper.call("responses.cancel", {"id": id})  # now it is stored
        self.assertEqual((again["ok"], again["response"]["status"]), (True, "cancelled"))

    def test_how_far_a_request_is(self):
        helper = self.helper()
        calls = [self.running(helper)[0] for _ in range(8)]  # all of the engine's slots
        waiting = self.create(helper, "x")
        calls.append(waiting)
        asked = lambda id: helper.call("requests.get", {"request_id": id})
        self.assertEqual([asked(id) for id in calls], [{"ok": True, "state": "running"}] * 8 + [{"ok": True, "state": "queued"}])
        helper.send("$/cancelRequest", {"id": calls[0]})
        self.assert_cancelled(helper, calls[0])
        self.assertTrue(helper.collect(waiting)[1]["ok"])
        for id in (calls[0], waiting, 12345, "none"):
            self.assert_error(asked(id), "NOT_FOUND", openai_code="response_not_found")
        for params, code in (({}, "missing_required_parameter"), ({"request_id": None}, "invalid_type")):
            self.assert_error(helper.call("requests.get", params), "INVALID_REQUEST", "request_id", code)

    def test_a_request_that_does_not_stop_is_ending(self):
        helper = self.helper()
        call, id = self.running(helper, {"hang": "hard"})
        cancel = helper.start("responses.cancel", {"id": id})
        asked = helper.call("requests.get", {"request_id": call})
        self.assert_undisturbed(asked == {"ok": True, "state": "ending"}, str(asked))
        helper.collect(call)
        helper.reply(cancel)

    def test_a_fifth_call_that_waits_for_it(self):
        helper = self.helper()
        call, id = self.running(helper, {"hang": "hard"})
        cancels = [helper.start("responses.cancel", {"id": id}) for _ in range(5)]
        error = self.assert_error(helper.reply(cancels[4])["result"], "RATE_LIMITED", openai_code="too_many_requests")
        self.assertEqual(error["openai"]["status"], 429)
        self.assert_error(helper.collect(call)[1], "CANCELLED")
        for cancel in cancels[:4]:
            self.assertTrue(helper.reply(cancel)["result"]["ok"])

    def test_in_prefill(self):
        helper = self.helper()
        call = self.create(helper, script({"prefill_ms": 60000}, "never"))
        helper.event(call, "response.in_progress")
        helper.send("$/cancelRequest", {"id": call})
        events, result = helper.collect(call)
        self.assert_error(result, "CANCELLED")
        self.assertEqual(result["response"]["output"], [])

    def test_queued_leaves_the_running_alone(self):
        helper = self.helper()
        running = [self.running(helper)[0] for _ in range(8)]
        queued = self.create(helper, "waits")
        cancel = helper.start("responses.cancel", {"request_id": queued})
        events, result = helper.collect(queued)
        self.assertEqual(events, [])
        self.assert_error(result, "CANCELLED")
        self.assertTrue(helper.reply(cancel)["result"]["ok"])
        helper.send("$/cancelRequest", {"id": running[0]})
        self.assert_cancelled(helper, running[0])
        for call in running[1:]:
            helper.send("$/cancelRequest", {"id": call})
            self.assert_cancelled(helper, call)

    def test_unknown_and_malformed(self):
        helper = self.helper("--strict-parameters")
        self.assert_error(helper.call("responses.cancel", {"id": "resp_none"}), "NOT_FOUND", openai_code="response_not_found")
        self.assert_error(helper.call("responses.cancel", {"request_id": 4711}), "NOT_FOUND")
        self.assert_error(helper.call("responses.cancel", {"id": "resp_1", "request_id": 1}), "INVALID_REQUEST", "request_id")
        self.assert_error(helper.call("responses.cancel", {"id": "resp_1", "zz": 1}), "INVALID_REQUEST", "zz",
                          "unknown_parameter")
        long = "ab" + "\u00e9" * 200  # a name is cut between characters
        error = self.assert_error(helper.call("models.list", {long: 1}), "INVALID_REQUEST", long[:128], "unknown_parameter")
        self.assertIn(f"'{long[:128]}'", error["detail"])
        self.assert_error(helper.call("responses.cancel", {}), "INVALID_REQUEST", "id", "missing_required_parameter")
        self.assert_error(helper.call("responses.cancel", {"id": 7}), "INVALID_REQUEST", "id", "invalid_type")
        self.assert_error(helper.call("responses.cancel", {"request_id": [1]}), "INVALID_REQUEST", "request_id")


if __name__ == "__main__":
    wire.main()
