"""Tests stored responses (PROTOCOL.md, Stored responses): conversations that continue, the calls about stored responses,
background responses."""

import json
import os
import pathlib
import random
import resource
import signal
import sqlite3
import stat
import tempfile
import threading
import time
import zlib

import foreign_engine
import wire
from wire import HelperTest, check_stream, script, state, wait_until

STOP = ({"signal": "STOP"}, {"sleep_ms": 50})  # steps of a script; it takes a moment until all threads have stopped
KILLS = int(os.environ.get("FM_KILLS", 3))  # set more by hand


def text_of(response):
    return "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])


# The columns that the checksum of a row covers, and version 2 of the file, which had no checksums.
CHECKED = ("id", "previous", "bytes", "object", "input", "stream")
VERSION_2 = """
    CREATE TABLE responses(key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, previous TEXT NOT NULL,\
 used INTEGER NOT NULL, bytes INTEGER NOT NULL, object TEXT NOT NULL, input TEXT NOT NULL,\
 stream TEXT NOT NULL);
    CREATE INDEX responses_used ON responses(used);
    CREATE TABLE items(id TEXT NOT NULL, response INTEGER NOT NULL REFERENCES responses(key) ON DELETE CASCADE,\
 PRIMARY KEY(id, response)) WITHOUT ROWID;
    CREATE INDEX items_response ON items(response);
    CREATE TABLE total(bytes INTEGER NOT NULL);
    INSERT INTO total VALUES(0);
    CREATE TRIGGER put AFTER INSERT ON responses BEGIN UPDATE total SET bytes = bytes + new.bytes; END;
    CREATE TRIGGER removed AFTER DELETE ON responses BEGIN UPDATE total SET bytes = bytes - old.bytes; END;
    PRAGMA application_id = 1718448752;
    PRAGMA user_version = 2;"""


def checksum(*values):
    """The checksum of a row: CRC-32 of its columns as text, each with its length in 4 bytes before it."""
    texts = [value if isinstance(value, bytes) else str(value).encode() for value in values]
    return zlib.crc32(b"".join(len(text).to_bytes(4, "little") + text for text in texts))


class StoreTest(HelperTest):
    def ask(self, helper, input=None, **params):
        result = helper.call("responses.create", {**({} if input is None else {"input": input}), **params})
        self.assertTrue(result["ok"], result)
        return result["response"]

    def retrieve(self, helper, id):
        result = helper.call("responses.retrieve", {"id": id})
        self.assertTrue(result["ok"], result)
        return result["response"]

    def wait_for_end(self, helper, id):
        wait_until(lambda: self.retrieve(helper, id)["status"] not in ("queued", "in_progress"), what="the end")
        return self.retrieve(helper, id)


class Calls(StoreTest):
    def test_retrieve_and_delete(self):
        helper = self.helper()
        response = self.ask(helper, "one two")
        self.assertEqual(response["store"], True)
        self.assertEqual(self.retrieve(helper, response["id"]), response)
        self.assert_error(helper.call("responses.cancel", {"id": response["id"]}), "INVALID_REQUEST", "id")
        self.assertEqual(helper.call("responses.delete", {"id": response["id"]}),
                         {"ok": True, "id": response["id"], "object": "response", "deleted": True})
        for method in ("responses.retrieve", "responses.delete", "responses.input_items", "responses.cancel"):
            error = self.assert_error(helper.call(method, {"id": response["id"]}), "NOT_FOUND",
                                      openai_code="response_not_found")
            self.assertEqual(error["openai"]["status"], 404)

    def test_not_stored(self):
        helper = self.helper()
        response = self.ask(helper, "one two", store=False)
        self.assertEqual(response["store"], False)
        self.assert_error(helper.call("responses.retrieve", {"id": response["id"]}), "NOT_FOUND")
        self.assert_error(helper.call("responses.create", {"input": "x", "previous_response_id": response["id"]}),
                          "INVALID_REQUEST", "previous_response_id", "previous_response_not_found")

    def test_one_that_failed(self):
        helper = self.helper()
        _, result = helper.collect(self.create(helper, script("part", {"error": "it broke"})))
        self.assertEqual(self.retrieve(helper, result["response"]["id"]), result["response"])
        self.assertEqual(result["response"]["status"], "failed")

    def test_while_it_runs(self):
        helper = self.helper()
        call = self.create(helper, script("part", {"hang": "soft"}))
        id = helper.event(call, "response.created")["response"]["id"]
        helper.event(call, "response.output_text.delta")
        response = self.retrieve(helper, id)
        self.assertEqual((response["status"], text_of(response)), ("in_progress", "part"))
        self.assert_error(helper.call("responses.delete", {"id": id}), "INVALID_REQUEST", "id")
        self.assertTrue(helper.call("responses.cancel", {"id": id})["ok"])
        self.assertEqual(self.retrieve(helper, id)["status"], "cancelled")

    def test_input_items(self):
        helper = self.helper()
        items = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two", "id": "msg_mine"},
                 {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                 {"type": "function_call_output", "call_id": "c", "output": "done"},
                 {"role": "user", "content": [{"type": "input_text", "text": "five"}]}]
        id = self.ask(helper, items)["id"]

        def page(**params):
            return helper.call("responses.input_items", {"id": id, **params})

        whole = page(order="asc")
        data = whole["data"]
        self.assertEqual([item["type"] for item in data],
                         ["message", "message", "function_call", "function_call_output", "message"])
        self.assertEqual((whole["object"], whole["has_more"], whole["first_id"], whole["last_id"]),
                         ("list", False, data[0]["id"], data[4]["id"]))
        self.assertEqual(len({item["id"] for item in data}), 5)
        self.assertEqual(data[1]["id"], "msg_mine")
        self.assertEqual(data[0]["content"], [{"type": "input_text", "text": "one"}])
        self.assertEqual(data[1]["content"], [{"type": "output_text", "text": "two", "annotations": []}])
        self.assertEqual({item["status"] for item in data}, {"completed"})
        self.assertEqual(page()["data"], data[::-1])
        self.assertEqual(page(limit=2, order="asc", after=data[1]["id"]),
                         {"ok": True, "object": "list", "data": data[2:4], "first_id": data[2]["id"],
                          "last_id": data[3]["id"], "has_more": True})
        self.assertEqual(page(limit=2, after=data[2]["id"])["data"], [data[1], data[0]])
        self.assertEqual(page(after="none"), {"ok": True, "object": "list", "data": [], "first_id": None, "last_id": None,
                                              "has_more": False})

    def test_what_a_frame_holds(self):
        helper = self.helper("--store-bytes", str(1 << 30))
        large = "x" * 6000000
        for id in ("msg_a", "msg_b"):
            helper.call("responses.create", {"input": [{"role": "user", "id": id, "content": large}], "truncation": "auto"})
        self.assert_error(helper.call("responses.create", {"input": "x", "instructions": "y" * 9000000}),
                          "INVALID_REQUEST", "instructions", "invalid_value")
        words = "w" * 1000 + " "
        whole = helper.call("responses.create", {"input": script({"repeat": [words, 4000]}), "instructions": "y" * 6000000})
        self.assertEqual(whole["error"]["detail"], "the answer is too large to hold")
        both = self.ask(helper, [{"id": "msg_a"}, {"id": "msg_b"}, {"role": "user", "content": "one", "id": "msg_c"}])
        page = helper.call("responses.input_items", {"id": both["id"], "order": "asc"})
        self.assertEqual(([item["id"] for item in page["data"]], page["has_more"]), (["msg_a"], True))
        page = helper.call("responses.input_items", {"id": both["id"], "order": "asc", "after": "msg_a"})
        self.assertEqual(([item["id"] for item in page["data"]], page["has_more"]), (["msg_b", "msg_c"], False))

    def test_an_id_in_flight(self):
        helper = self.helper()
        for _ in range(50):
            helper.send("responses.retrieve", {"id": "resp_none"}, id=7)
        helper.send("responses.retrieve", {"id": "resp_none"}, id=8)
        replies = []
        while not replies or replies[-1]["id"] != 8:
            replies.append(helper.receive())
        self.assertIn(-32600, [reply["error"]["code"] for reply in replies if "error" in reply])

    def test_bad_params(self):
        helper = self.helper("--strict-parameters")
        for method, params, param, code in (
                ("responses.retrieve", {}, "id", "missing_required_parameter"),
                ("responses.retrieve", {"id": 1}, "id", "invalid_type"),
                ("responses.retrieve", {"id": "x", "zz": 1}, "zz", "unknown_parameter"),
                ("responses.retrieve", {"id": "x", "include": 1}, "include", "invalid_type"),
                ("responses.retrieve", {"id": "x", "include": ["everything"]}, "include[0]", "invalid_value"),
                ("responses.retrieve", {"id": "x", "stream": "yes"}, "stream", "invalid_type"),
                ("responses.retrieve", {"id": "x", "include_obfuscation": 1}, "include_obfuscation", "invalid_type"),
                ("responses.retrieve", {"id": "x", "stream": True, "starting_after": "1"}, "starting_after", "invalid_type"),
                ("responses.retrieve", {"id": "x", "stream": True, "starting_after": -1}, "starting_after",
                 "integer_below_min_value"),
                ("responses.retrieve", {"id": "x", "starting_after": 1}, "starting_after", "invalid_value"),
                ("responses.delete", {"id": None}, "id", "invalid_type"),
                ("responses.delete", {"id": "x", "include": []}, "include", "unknown_parameter"),
                ("responses.input_items", {"id": "x", "limit": 0}, "limit", "integer_below_min_value"),
                ("responses.input_items", {"id": "x", "limit": 101}, "limit", "integer_above_max_value"),
                ("responses.input_items", {"id": "x", "limit": "1"}, "limit", "invalid_type"),
                ("responses.input_items", {"id": "x", "order": "up"}, "order", "invalid_value"),
                ("responses.input_items", {"id": "x", "order": 1}, "order", "invalid_value"),
                ("responses.input_items", {"id": "x", "after": ""}, "after", "invalid_value"),
                ("responses.input_items", {"id": "x", "after": 1}, "after", "invalid_value"),
                ("responses.input_items", {"id": "x", "include": {}}, "include", "invalid_type")):
            with self.subTest(f"{method} {params}"):
                self.assert_error(helper.call(method, params), "INVALID_REQUEST", param, code)
        for id in ("", "x" * 1000, "resp_\0", "'; DROP TABLE responses; --"):
            self.assert_error(helper.call("responses.retrieve", {"id": id}), "NOT_FOUND")


class Conversations(StoreTest):
    def test_goes_on(self):
        """The second turn has the same prompt as the whole conversation in one request."""
        helper = self.helper()
        first = self.ask(helper, "one two", instructions="be kind to me")
        second = self.ask(helper, "three", previous_response_id=first["id"])
        self.assertEqual(second["previous_response_id"], first["id"])
        self.assertEqual(second["instructions"], None)
        replay = self.ask(helper, [{"role": "user", "content": "one two"}, first["output"][0],
                                   {"role": "user", "content": "three"}])
        self.assertEqual(second["usage"]["input_tokens"], replay["usage"]["input_tokens"])
        third = self.ask(helper, "four", previous_response_id=second["id"], instructions="be brief")
        self.assertEqual(third["usage"]["input_tokens"], replay["usage"]["input_tokens"] + 1 + 1 + 2)
        self.assertEqual(text_of(self.ask(helper, previous_response_id=third["id"])), "four", "without an input")

    def test_a_tool_s_output(self):
        helper = self.helper()
        tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
        first = self.ask(helper, script({"tool_call": {"name": "f", "arguments": "{}"}}), tools=tools)
        call = first["output"][0]
        self.assertEqual(call["type"], "function_call")
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "18 degrees"}
        self.ask(helper, [output, {"role": "user", "content": "so"}], previous_response_id=first["id"])
        self.assert_error(helper.call("responses.create", {"input": [{**output, "call_id": "other"}],
                                                           "previous_response_id": first["id"]}),
                          "INVALID_REQUEST", "input")

    def test_references(self):
        helper = self.helper()
        first = self.ask(helper, "one two")
        message = first["output"][0]
        plain = self.ask(helper, [message, {"role": "user", "content": "go on"}])
        for reference in ({"type": "item_reference", "id": message["id"]}, {"id": message["id"]}):
            second = self.ask(helper, [reference, {"role": "user", "content": "go on"}])
            self.assertEqual(second["usage"]["input_tokens"], plain["usage"]["input_tokens"])
            items = helper.call("responses.input_items", {"id": second["id"], "order": "asc"})["data"]
            self.assertEqual((items[0]["id"], items[0]["type"]), (message["id"], "message"))
        of_input = helper.call("responses.input_items", {"id": first["id"]})["data"][0]["id"]
        self.assertEqual(text_of(self.ask(helper, [{"id": of_input}])), "one two")
        helper.call("responses.delete", {"id": first["id"]})
        again = self.ask(helper, [{"id": message["id"]}, {"role": "user", "content": "go on"}])
        self.assertEqual(again["usage"]["input_tokens"], plain["usage"]["input_tokens"], "the later ones have it too")
        error = self.assert_error(helper.call("responses.create", {"input": [{"id": "msg_none"}]}), "INVALID_REQUEST", "input")
        self.assertIsNone(error["openai"]["code"])

    def test_a_gap(self):
        helper = self.helper()
        first = self.ask(helper, "one")
        second = self.ask(helper, "two", previous_response_id=first["id"])
        helper.call("responses.delete", {"id": first["id"]})
        self.assert_error(helper.call("responses.create", {"input": "three", "previous_response_id": second["id"]}),
                          "INVALID_REQUEST", "previous_response_id", "previous_response_not_found")

    def test_streamed(self):
        helper = self.helper()
        first = self.ask(helper, "one")
        events, result = helper.collect(self.create(helper, "two three", previous_response_id=first["id"]))
        final = check_stream(self, events, result)
        self.assertEqual(self.retrieve(helper, final["id"]), final)
        events, result = helper.collect(self.create(helper, "x", previous_response_id="resp_none"))
        self.assertEqual(events, [], "a real 400")
        self.assert_error(result, "INVALID_REQUEST", "previous_response_id")

    def test_cancelled_while_the_store_is_asked(self):
        helper = self.helper()
        first = self.ask(helper, "one")
        calls = [self.create(helper, "two", previous_response_id=first["id"]) for _ in range(20)]
        for call in calls:
            helper.send("$/cancelRequest", {"id": call})
        for call in calls:
            _, result = helper.collect(call)
            self.assertTrue(result["ok"] or result["error"]["code"] == "CANCELLED", result)


class Compact(StoreTest):
    def compact(self, helper, **params):
        return helper.call("responses.compact", {"model": "fake", **params})

    def test_in_its_place(self):
        helper = self.helper()
        items = [{"role": "user", "content": "one two"}, {"role": "assistant", "content": "three"}]
        result = self.compact(helper, input=items, instructions="be kind")
        self.assertEqual((result["object"], len(result["output"])), ("response.compaction", 1))
        item = result["output"][0]
        self.assertEqual(set(item), {"id", "type", "encrypted_content"})
        summary = item["encrypted_content"].removeprefix("fm1:")  # the fake engine repeats its prompt
        self.assertIn("Summarize", summary)
        words = len(summary.split())
        self.assertEqual(result["usage"]["input_tokens"], 5 + words)
        after = self.ask(helper, [item, {"role": "user", "content": "go on"}])
        self.assertEqual(after["usage"]["input_tokens"], len("Summary of the conversation so far:".split()) + words + 2)
        self.assertEqual(helper.call("responses.input_items", {"id": after["id"]})["data"][-1],
                         {**item, "status": "completed"})
        again = self.ask(helper, "on", previous_response_id=after["id"])
        self.assertGreater(again["usage"]["input_tokens"], after["usage"]["input_tokens"])

    def test_of_stored_ones(self):
        helper = self.helper()
        first = self.ask(helper, "one two")
        direct = self.compact(helper, input=[{"role": "user", "content": "one two"}, first["output"][0]])
        chained = self.compact(helper, previous_response_id=first["id"])
        self.assertEqual(chained["usage"], direct["usage"])
        self.assert_error(helper.call("responses.retrieve", {"id": chained["id"]}), "NOT_FOUND")

    def test_one_that_repeats_itself(self):
        """A summary that repeats itself is cut at 1,024 tokens, and tried once more with a penalty. At worst it ends with its
        last complete sentence."""
        once = self.compact(self.helper(), input="x")
        text = once["output"][0]["encrypted_content"]
        penalised = self.compact(self.helper(env={"FM_ENGINE_FAKE_ANSWER": "loop"}), input="x")
        self.assertEqual(penalised["output"][0]["encrypted_content"].strip(), text)
        self.assertEqual(penalised["usage"]["output_tokens"], 1024 + once["usage"]["output_tokens"])
        self.assertEqual(penalised["usage"]["input_tokens"], once["usage"]["input_tokens"])
        helper = self.helper(env={"FM_ENGINE_FAKE_ANSWER": "endless"})
        endless = self.compact(helper, input="x")
        self.assertEqual(endless["usage"]["output_tokens"], 2048)
        summary = endless["output"][0]["encrypted_content"]
        words = text.removeprefix("fm1:").split()
        said = summary.removeprefix("fm1:").split()
        self.assertEqual(said, (words * (1024 // len(words) + 1))[:len(said)])
        self.assertTrue(summary.endswith("."), summary[-50:])
        self.assertLess(1024 - len(said), len(words))
        self.assertTrue(self.ask(helper, [endless["output"][0], {"role": "user", "content": script("on")}]))

    def test_the_second_try(self):
        """The second try is the same job with a penalty. A cancel and the limits apply to both, and no other request runs
        between them."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        foreign_engine.write(folder.name, "cutter", """
            initialize()
            load()
            usage = {"input_tokens": 5, "output_tokens": 1024}
            first = None
            while (message := read())["method"] == "job.start":
                params = message["params"]
                job = {"job": params.pop("job")}
                send(method="job.accepted", params={**job, "input_tokens": 5})
                if first is None:
                    first = params
                    send(method="job.delta", params={**job, "text": "A. B", "output_tokens": 1024})
                    send(method="job.finished", params={**job, "reason": "length", "usage": usage})
                    continue
                same = params == {**first, "frequency_penalty": 0.5}
                first = None
                send(method="job.delta", params={**job, "text": "S. " if same else "D. ", "output_tokens": 1})
                if "hang" in json.dumps(params):
                    while read()["method"] != "job.abort":
                        pass
                    send(method="job.finished", params={**job, "reason": "aborted", "usage": usage})
                else:
                    send(method="job.finished", params={**job, "reason": "length", "usage": usage})
            """)
        helper = self.helper("--engine-dir", folder.name, engine="cutter")
        model = {"model": "cutter"}
        calls = [helper.start("responses.compact", {**model, "input": "x"}) for _ in range(3)]
        for call in calls:
            result = helper.reply(call)["result"]
            self.assertEqual((result["output"][0]["encrypted_content"], result["usage"]["output_tokens"]), ("fm1:S.", 2048))
        result = helper.call("responses.compact", {**model, "input": "hang", "fm": {"no_progress_timeout_ms": 200}})
        self.assertEqual(self.assert_error(result, "TIMEOUT")["limit"], "no_progress")
        call = helper.start("responses.compact", {**model, "input": "hang"})
        cancelled = helper.call("responses.cancel", {"request_id": call})
        self.assertTrue(cancelled["ok"])
        self.assert_error(helper.reply(call)["result"], "CANCELLED")

    def test_bad(self):
        helper = self.helper("--strict-parameters")
        for params, param, code in (({"model": None}, "model", "missing_required_parameter"),
                                    ({"temperature": 1}, "temperature", "unsupported_parameter"),
                                    ({"top_q": 1}, "top_q", "unknown_parameter"),
                                    ({"input": []}, "input", "invalid_value"),
                                    ({"previous_response_id": "resp_x"}, "previous_response_id",
                                     "previous_response_not_found")):
            self.assert_error(self.compact(helper, **{"input": "x", **params}), "INVALID_REQUEST", param, code)
        self.assert_error(self.compact(helper), "INVALID_REQUEST", "input", "missing_required_parameter")
        self.assert_error(self.compact(helper, input="x", model="gpt-9"), "NOT_FOUND", "model")
        item = {"type": "compaction", "encrypted_content": "gAAAAA"}
        self.assert_error(helper.call("responses.create", {"input": [item]}), "INVALID_REQUEST",
                          "input[0].encrypted_content", "invalid_value")


class Background(StoreTest):
    def test_polled(self):
        helper = self.helper()
        queued = self.ask(helper, script("one ", {"sleep_ms": 50}, "two"), background=True)
        self.assertEqual((queued["status"], queued["background"], queued["output"]), ("queued", True, []))
        response = self.wait_for_end(helper, queued["id"])
        self.assertEqual((response["status"], text_of(response)), ("completed", "one two"))
        again = helper.call("responses.cancel", {"id": queued["id"]})
        self.assertEqual(again["response"], response, "a cancel comes too late")

    def test_cancelled(self):
        helper = self.helper()
        id = self.ask(helper, script("part", {"hang": "soft"}), background=True)["id"]
        wait_until(lambda: text_of(self.retrieve(helper, id)) == "part", what="the text")
        cancelled = helper.call("responses.cancel", {"id": id})
        self.assertEqual((cancelled["ok"], cancelled["response"]["status"]), (True, "cancelled"))
        self.assertEqual(self.retrieve(helper, id), cancelled["response"])

    def test_where_nothing_is_stored(self):
        helper = self.helper("--store-bytes", "0")
        self.assert_error(helper.call("responses.create", {"input": "one", "background": True}), "INVALID_REQUEST",
                          "background", "unsupported_value")
        events, _ = helper.collect(self.create(helper, "one"))
        self.assertEqual({event["response"]["store"] for event in events if "response" in event}, {False})

    def test_fails(self):
        helper = self.helper()
        id = self.ask(helper, script({"exit": 3}), background=True)["id"]
        response = self.wait_for_end(helper, id)
        self.assertEqual((response["status"], response["error"]["code"]), ("failed", "server_error"))

    def test_fails_before_it_begins(self):
        helper = self.helper()
        queued = self.ask(helper, "x", background=True, previous_response_id="resp_none")
        response = self.wait_for_end(helper, queued["id"])
        self.assertEqual(response["error"]["code"], "previous_response_not_found")

    def test_streamed(self):
        helper = self.helper()
        events, result = helper.collect(self.create(helper, "one two", background=True))
        self.assertEqual([event["type"] for event in events][:3],
                         ["response.created", "response.queued", "response.in_progress"])
        self.assertEqual([event["response"]["status"] for event in events[:3]], ["queued", "queued", "in_progress"])
        self.assertEqual(check_stream(self, events, result)["status"], "completed")

    def test_a_stream_that_is_left(self):
        helper = self.helper()
        call = self.create(helper, script("one ", {"sleep_ms": 200}, "two"), background=True)
        helper.event(call, "response.output_text.delta")
        helper.send("$/cancelRequest", {"id": call})
        _, result = helper.collect(call)
        self.assertEqual((result["ok"], result["response"]["status"]), (True, "in_progress"))
        response = self.wait_for_end(helper, result["response"]["id"])
        self.assertEqual((response["status"], text_of(response)), ("completed", "one two"))

    def test_a_stream_that_fails_early(self):
        helper = self.helper()
        call = self.create(helper, "x", background=True, previous_response_id="resp_none")
        events, result = helper.collect(call)
        self.assertEqual([event["type"] for event in events],
                         ["response.created", "response.queued", "error", "response.failed"])
        self.assertEqual(result["response"]["status"], "failed")


class Streams(StoreTest):
    """Tests the events of a response, for readers that come later."""

    def follow(self, helper, id, **params):
        return helper.start("responses.retrieve", {"id": id, "stream": True, **params})

    def go_on(self, helper):
        """Continues the engine, which the script stopped."""
        wait_until(lambda: state(helper.engine_pid()) == "T", what="the stop")
        os.kill(helper.engine_pid(), signal.SIGCONT)

    def test_of_one_that_has_ended(self):
        helper = self.helper()
        prompts = ["one two", script("part", {"error": "it broke"}),
                   script({"reasoning": "let me"}, "one ", {"sleep_ms": 20}, "two")]
        for prompt in prompts:
            events, result = helper.collect(self.create(helper, prompt))
            id = result["response"]["id"]
            with self.subTest(prompt):
                again, answer = helper.collect(self.follow(helper, id))
                self.assertEqual(again, events)
                self.assertEqual(answer, {"ok": True, "response": events[-1]["response"]})
                for after in (0, 3, len(events) - 1, len(events) + 7):
                    rest, answer = helper.collect(self.follow(helper, id, starting_after=after))
                    self.assertEqual(rest, events[after + 1:])
                    self.assertTrue(answer["ok"])
        self.assertEqual(self.retrieve(helper, id)["status"], "completed", "who reads a stream keeps nobody from it")

    def test_of_one_without_a_stream(self):
        helper = self.helper()
        response = self.ask(helper, "one two")
        events, result = helper.collect(self.follow(helper, response["id"]))
        self.assertEqual(check_stream(self, events, result), response)

    def test_of_one_that_runs(self):
        helper = self.helper()
        call = self.create(helper, script("one ", *STOP, "two"), background=True)
        first = [helper.event(call)]
        id = first[0]["response"]["id"]
        early = self.follow(helper, id)
        first.append(helper.event(call, "response.output_text.delta"))
        late = self.follow(helper, id, starting_after=first[-1]["sequence_number"])
        helper.event(early, "response.output_text.delta", keep=True)
        self.go_on(helper)
        events, result = helper.collect(early)
        check_stream(self, events, result)
        rest, also = helper.collect(late)
        self.assertEqual(rest, events[first[-1]["sequence_number"] + 1:])
        self.assertEqual(result, also)
        rest, also = helper.collect(call)
        self.assertEqual((rest[-1], also), (events[-1], result))
        self.assertEqual(helper.collect(self.follow(helper, id))[0], events)

    def test_of_one_that_nobody_streams(self):
        helper = self.helper()
        id = self.ask(helper, script("one ", *STOP, "two"), background=True)["id"]
        call = self.follow(helper, id)
        helper.event(call, "response.output_text.delta", keep=True)
        self.go_on(helper)
        events, result = helper.collect(call)
        self.assertEqual(text_of(check_stream(self, events, result)), "one two")

    def test_one_that_is_left(self):
        helper = self.helper()
        id = self.ask(helper, script("one ", *STOP, "two"), background=True)["id"]
        calls = [self.follow(helper, id) for _ in range(3)]
        for call in calls:
            helper.event(call, "response.output_text.delta", keep=True)
        helper.send("$/cancelRequest", {"id": calls[0]})
        for reply in (helper.collect(calls[0])[1], helper.call("responses.cancel", {"request_id": calls[1]}),
                      helper.collect(calls[1])[1]):
            self.assertEqual((reply["ok"], reply["response"]["status"]), (True, "in_progress"))
        self.go_on(helper)
        events, result = helper.collect(calls[2])
        self.assertEqual(text_of(check_stream(self, events, result)), "one two")

    def test_one_that_is_cancelled(self):
        helper = self.helper()
        id = self.ask(helper, script("one ", {"hang": "soft"}), background=True)["id"]
        call = self.follow(helper, id)
        helper.event(call, "response.output_text.delta")
        cancelled = helper.call("responses.cancel", {"id": id})
        events, result = helper.collect(call)
        self.assertEqual(events[-1]["type"], "response.incomplete")
        self.assertEqual((result["ok"], result["response"]), (True, cancelled["response"]))

    def test_an_id_is_of_what_ended(self):
        """A call that reads a finished response's events can't be cancelled by the response's id."""
        helper = self.helper()
        response = self.ask(helper, script({"repeat": ["word ", 100_000]}))
        call = self.follow(helper, response["id"])
        helper.event(call, "response.created", keep=True)  # the next events have more bytes than the pipe and the queue hold
        self.assert_error(helper.call("responses.cancel", {"id": response["id"]}), "INVALID_REQUEST", "id")
        events, result = helper.collect(call)
        self.assertEqual(check_stream(self, events, result), response)

    def test_of_one_that_can_not_be_stored(self):
        helper = self.helper("--store-bytes", "1000")
        id = self.ask(helper, script(*STOP, {"repeat": ["word ", 1000]}), background=True)["id"]
        call = self.follow(helper, id)
        helper.event(call, "response.in_progress", keep=True)
        self.go_on(helper)
        self.assertEqual(check_stream(self, *helper.collect(call))["store"], False)

    def test_too_many(self):
        helper = self.helper()
        id = self.ask(helper, script(*STOP, "one"), background=True)["id"]
        calls = [self.follow(helper, id) for _ in range(64)]
        self.assert_error(helper.reply(calls.pop())["result"], "RATE_LIMITED")
        self.go_on(helper)
        for call in calls:
            self.assertEqual(helper.collect(call)[1]["response"]["status"], "completed")
        self.assertTrue(self.ask(helper, "one")["id"], "all places are free again")

    def test_one_that_is_left_at_once(self):
        """The reader leaves before the store has found the response."""
        helper = self.helper()
        id = self.ask(helper, script("one ", *STOP, "two"), background=True)["id"]
        for _ in range(70):
            helper.send("responses.retrieve", {"id": id, "stream": True}, id="left")
            helper.send("$/cancelRequest", {"id": "left"})
            self.assertTrue(helper.collect("left")[1]["ok"])
            helper.send("responses.retrieve", {"id": id, "stream": True}, id="left")
            self.assertTrue(helper.call("responses.cancel", {"request_id": "left"})["ok"])
            self.assertTrue(helper.collect("left")[1]["ok"])
        self.assertIn(self.retrieve(helper, id)["status"], ("queued", "in_progress"))
        self.go_on(helper)
        self.assertEqual(self.wait_for_end(helper, id)["status"], "completed")

    def test_before_it_is_deleted(self):
        helper = self.helper()
        for _ in range(30):
            id = self.ask(helper, "one two")["id"]
            call = self.follow(helper, id)
            self.assertTrue(helper.call("responses.delete", {"id": id})["ok"])
            events, result = helper.collect(call)
            check_stream(self, events, result)

    def test_an_id_is_free_with_the_result(self):
        helper = self.helper()
        id = self.ask(helper, "one")["id"]
        for _ in range(500):
            helper.send("responses.retrieve", {"id": id, "stream": True, "starting_after": 900}, id=5)
            self.assertEqual(helper.collect(5)[1]["response"]["id"], id)

    def test_not_of_one_that_is_not_stored(self):
        helper = self.helper()
        call = self.create(helper, script("part", {"hang": "soft"}), store=False)
        id = helper.event(call, "response.created")["response"]["id"]
        for params in ({}, {"stream": True}):
            self.assert_error(helper.call("responses.retrieve", {"id": id, **params}), "NOT_FOUND")
        self.assertTrue(helper.call("responses.cancel", {"id": id})["ok"])

    def test_at_the_end(self):
        helper = self.helper()
        id = self.ask(helper, script("one ", {"hang": "soft"}), background=True)["id"]
        call = self.follow(helper, id)
        helper.event(call, "response.output_text.delta")
        helper.start("process.shutdown")
        events, result = helper.collect(call)
        self.assertEqual((events[-1]["type"], result["response"]["status"]), ("response.incomplete", "cancelled"))
        self.assertEqual(helper.wait_exit(), 0)

    def test_of_none_that_is_left_at_once(self):
        helper = self.helper()
        helper.send("responses.retrieve", {"id": "resp_none", "stream": True}, id="left")
        helper.send("responses.cancel", {"request_id": "left"}, id="cancel")
        for call in ("left", "cancel"):
            self.assert_error(helper.collect(call)[1], "NOT_FOUND", openai_code="response_not_found")

    def test_of_none(self):
        self.assert_error(self.helper().call("responses.retrieve", {"id": "resp_none", "stream": True}), "NOT_FOUND")

class Files(StoreTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = os.path.join(self.folder.name, "responses.db")

    def test_outlives_the_helper(self):
        helper = self.helper("--store", self.file)
        first = self.ask(helper, "one two")
        self.assertEqual(helper.close(), 0)
        self.assertEqual(os.listdir(self.folder.name), ["responses.db"], "one file")
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o600)
        helper = self.helper("--store", self.file)
        self.assertEqual(self.retrieve(helper, first["id"]), first)
        self.ask(helper, "three", previous_response_id=first["id"])

    def test_events_outlive_the_helper(self):
        helper = self.helper("--store", self.file)
        prompt = script("one ", {"sleep_ms": 20}, "two")
        events, _ = helper.collect(self.create(helper, prompt, include=["message.output_text.logprobs"]))
        helper.close()
        helper = self.helper("--store", self.file)
        again = helper.start("responses.retrieve", {"id": events[0]["response"]["id"], "stream": True})
        self.assertEqual(helper.collect(again)[0], events)

    def test_nothing_on_the_disk_without_it(self):
        helper = self.helper(env={"TMPDIR": self.folder.name, "SQLITE_TMPDIR": self.folder.name})
        for _ in range(3):
            self.ask(helper, "one " * 1000)
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_shared(self):
        one, other = self.helper("--store", self.file), self.helper("--store", self.file)
        id = self.ask(one, "one two")["id"]
        self.assertEqual(text_of(self.retrieve(other, id)), "one two")
        self.ask(other, "three", previous_response_id=id)

    def test_deleted_is_gone(self):
        helper = self.helper("--store", self.file)
        id = self.ask(helper, "very-secret words")["id"]
        held = lambda: [file.name for file in pathlib.Path(self.folder.name).iterdir() if b"very-secret" in file.read_bytes()]
        self.assertTrue(held())
        helper.call("responses.delete", {"id": id})
        self.assertEqual(held(), [])

    def test_cancelled_while_it_is_put_together(self):
        helper = self.helper("--store", self.file)
        first = self.ask(helper, "one")
        for _ in range(20):
            with sqlite3.connect(self.file) as other:  # makes the store wait
                other.execute("BEGIN IMMEDIATE")
                call = self.create(helper, "two", background=True, previous_response_id=first["id"])
                helper.send("responses.cancel", {"request_id": call}, id="cancel")
            events, result = helper.collect(call)
            stored = self.retrieve(helper, result["response"]["id"])
            self.assertEqual(stored, result["response"])
            items = helper.call("responses.input_items", {"id": stored["id"]})["data"]
            self.assertEqual([item["content"][0]["text"] for item in items], ["two"])

    def test_killed(self):
        """A response that was reported as stored is in the file, however the helper ended."""
        told = []
        for _ in range(KILLS):
            helper = self.helper("--store", self.file)
            for i in range(8):
                helper.start("responses.create", {"input": f"word {i} " * 200, "model": "fake"})
            for _ in range(random.randrange(1, 8)):
                told.append(helper.receive_where(lambda message: "result" in message)["result"]["response"])
            wire.kill(helper.pid, signal.SIGKILL)
            helper.wait_exit()
            while (message := helper.receive()) is not None:
                if message.get("result", {}).get("ok"):
                    told.append(message["result"]["response"])
        helper = self.helper("--store", self.file)
        for response in told:
            self.assertEqual(self.retrieve(helper, response["id"]), response)
        helper.close()
        with sqlite3.connect(self.file) as db:
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchone(), ("ok",))

    def test_what_can_not_be_used(self):
        """Requests are still answered, and the answers say that they are not stored."""
        with open(self.file, "w") as file:
            file.write("this is a letter to a friend, and no database at all")
        other = os.path.join(self.folder.name, "other.db")
        db = sqlite3.connect(other)
        db.execute("CREATE TABLE responses(mine)")
        db.close()
        for path in (self.file, other, os.path.join(self.folder.name, "no", "such", "folder")):
            helper = self.helper("--store", path)
            self.assertEqual(self.ask(helper, "one two")["store"], False)
            for method, params in (("responses.retrieve", {"id": "resp_1"}), ("responses.delete", {"id": "resp_1"}),
                                   ("responses.create", {"input": "x", "previous_response_id": "resp_1"})):
                error = self.assert_error(helper.call(method, params), "UNAVAILABLE")
                self.assertIn(path, error["detail"])
                self.assertEqual("something else" in error["detail"], path in (self.file, other))
        with open(self.file) as file:
            self.assertIn("letter", file.read())

    def test_bytes(self):
        helper = self.helper("--store-bytes", "20000")
        ids = [self.ask(helper, "word " * 400)["id"] for _ in range(10)]
        there = [helper.call("responses.retrieve", {"id": id})["ok"] for id in ids]
        self.assertEqual(there, sorted(there), "the oldest made room")
        self.assertIn(True, there)
        self.assertIn(False, there)
        self.assertEqual(self.ask(helper, "word" * 10_000)["store"], False, "larger than the store")
        self.assertEqual(self.ask(self.helper("--store-bytes", "0"), "one")["store"], False)

    def test_damaged(self):
        """Any content in the file leads only to an error."""
        helper = self.helper("--store", self.file)
        id = self.ask(helper, "one two")["id"]
        helper.close()
        good = sqlite3.connect(self.file).execute(f"SELECT {', '.join(CHECKED)} FROM responses").fetchone()[3:5]
        for object, input in (("{", good[1]), (good[0], "{}"), (good[0], "[1]"), (good[0], '[{"type":"message"}]'),
                              ('{"output":[{"type":"x"}]}', good[1]), ("", ""), (b"\xff\0", b"\0"), ("7", "7"),
                              (good[0], json.dumps([{"id": id}]))):
            db = sqlite3.connect(self.file)
            db.create_function("checksum", -1, checksum)
            db.execute("UPDATE responses SET object = CAST(? AS TEXT), input = CAST(? AS TEXT)", (object, input))
            db.execute(f"UPDATE responses SET checksum = checksum(id, previous, bytes, CAST(object AS BLOB),"
                       " CAST(input AS BLOB), stream)")
            db.commit()
            db.close()
            with self.subTest(f"{object[:20]} {input[:20]}"):
                helper = self.helper("--store", self.file)
                result = helper.call("responses.create", {"input": "x", "previous_response_id": id})
                self.assertEqual(result["error"]["code"], "INTERNAL")
                for method, params in (("responses.retrieve", {}), ("responses.retrieve", {"stream": True}),
                                       ("responses.input_items", {}), ("responses.cancel", {})):
                    helper.collect(helper.start(method, {"id": id, **params}))
                if object in ("", "{", b"\xff\0"):  # this is not JSON, so it can't be sent
                    self.assert_error(helper.call("responses.retrieve", {"id": id}), "INTERNAL")
                self.assertEqual(helper.close(), 0)

    def edit(self, sql, *values):
        db = sqlite3.connect(self.file)
        db.execute(sql, values)
        db.commit()
        db.close()

    def test_a_changed_letter(self):
        """The response is still valid JSON, but its checksum is wrong. Only calls about this response fail."""
        helper = self.helper("--store", self.file)
        first = self.ask(helper, "one two")
        second = self.ask(helper, "three", previous_response_id=first["id"])
        third = self.ask(helper, "four", previous_response_id=second["id"])
        apart = self.ask(helper, "five")
        helper.close()
        with open(self.file, "rb") as file:
            good = file.read()
        id = second["id"]
        for column, change in (("object", "replace(object, 'three', 'thref')"), ("input", "replace(input, 'three', 'thref')"),
                               ("stream", "replace(stream, 'opened', 'openee')"), ("previous", "''"),
                               ("previous", f"'{apart['id']}'"), ("bytes", "bytes + 1"), ("checksum", "checksum + 1"),
                               ("object", f"(SELECT object FROM responses WHERE id = '{first['id']}')")):
            with open(self.file, "wb") as file:
                file.write(good)
            self.edit(f"UPDATE responses SET {column} = {change} WHERE id = ?", id)
            with self.subTest(f"{column} = {change}"):
                helper = self.helper("--store", self.file)
                for method, params in (("responses.retrieve", {"id": id}), ("responses.retrieve", {"id": id, "stream": True}),
                                       ("responses.input_items", {"id": id}), ("responses.cancel", {"id": id}),
                                       ("responses.create", {"input": "x", "previous_response_id": id}),
                                       ("responses.create", {"input": "x", "previous_response_id": third["id"]}),
                                       ("responses.create", {"input": [{"id": second["output"][0]["id"]}]})):
                    error = self.assert_error(helper.collect(helper.start(method, params))[1], "INTERNAL")
                    self.assertIn(id, error["detail"])
                    self.assertIn(self.file, error["detail"])
                for response in (first, third, apart):
                    self.assertEqual(self.retrieve(helper, response["id"]), response)
                self.assertTrue(self.ask(helper, "six")["store"])
                self.assertTrue(helper.call("responses.delete", {"id": id})["ok"])
                self.assert_error(helper.call("responses.retrieve", {"id": id}), "NOT_FOUND")
                self.assertEqual(helper.close(), 0)

    def test_a_row_under_another_s_id(self):
        """An index leads to the wrong row, which is intact."""
        helper = self.helper("--store", self.file)
        first, second = self.ask(helper, "one two"), self.ask(helper, "three")
        helper.close()
        with open(self.file, "rb") as file:
            data = bytearray(file.read())
        page = next(i for i in range(4096, len(data), 4096) if data[i] == 10 and data.find(first["id"].encode(), i, i + 4096) > 0
                    and first["output"][0]["id"].encode() not in data[i:i + 4096])
        at = data.find(second["id"].encode(), page, page + 4096) + len(second["id"])
        self.assertEqual(data[at], 2, "the key after the id")
        data[at - len(second["id"]) - 1] = 9  # SQLite's type for the number 1, which has no data bytes
        with open(self.file, "wb") as file:
            file.write(data)
        helper = self.helper("--store", self.file)
        self.assert_error(helper.call("responses.retrieve", {"id": second["id"]}), "INTERNAL")
        self.assert_error(helper.call("responses.delete", {"id": second["id"]}), "NOT_FOUND")
        self.assertEqual(self.retrieve(helper, first["id"]), first)

    def test_version_2(self):
        helper = self.helper("--store", self.file)
        first = self.ask(helper, "one two")
        second = self.ask(helper, "three", previous_response_id=first["id"])
        helper.close()
        db = sqlite3.connect(self.file)
        rows = [db.execute(f"SELECT {columns} FROM {table}").fetchall() for table, columns in
                (("responses", "key, id, previous, used, bytes, object, input, stream"), ("items", "id, response"))]
        db.close()
        os.unlink(self.file)
        db = sqlite3.connect(self.file)
        db.executescript(VERSION_2)
        db.executemany("INSERT INTO responses VALUES(?, ?, ?, ?, ?, ?, ?, ?)", rows[0])
        db.executemany("INSERT INTO items VALUES(?, ?)", rows[1])
        db.commit()
        db.close()
        for _ in range(2):
            helper = self.helper("--store", self.file)
            self.assertEqual(self.retrieve(helper, first["id"]), first)
            self.assertTrue(self.ask(helper, "on", previous_response_id=second["id"])["store"])
            helper.close()
        self.edit("PRAGMA user_version = 4")
        helper = self.helper("--store", self.file)
        self.assertIn("another version", helper.call("responses.retrieve", {"id": first["id"]})["error"]["detail"])

    def test_other_tables(self):
        """Another program has put a trigger into the file, which our connection would run."""
        helper = self.helper("--store", self.file)
        first = self.ask(helper, "one two")
        helper.close()
        self.edit("CREATE TRIGGER theirs AFTER INSERT ON responses BEGIN DELETE FROM responses; END")
        helper = self.helper("--store", self.file)
        self.assertFalse(self.ask(helper, "three")["store"])
        error = self.assert_error(helper.call("responses.retrieve", {"id": first["id"]}), "UNAVAILABLE")
        self.assertIn("move or delete", error["detail"])

    def test_an_index_of_what_is_not_there(self):
        """Without a check, the search for a response to remove would never end."""
        helper = self.helper("--store", self.file)
        first = self.ask(helper, "w" * 3000)
        second = self.ask(helper, "w" * 3000)
        helper.close()
        where = "FROM sqlite_master WHERE name = 'responses_used'"
        with sqlite3.connect(self.file) as db:
            index = db.execute(f"SELECT * {where}").fetchone()
        db.close()
        for sql, values in ((f"DELETE {where}", ()), ("DELETE FROM responses WHERE id = ?", (first["id"],)),
                            ("INSERT INTO sqlite_master VALUES(?, ?, ?, ?, ?)", index)):
            db = sqlite3.connect(self.file)
            db.execute("PRAGMA writable_schema = ON")
            db.execute(sql, values)
            db.commit()
            db.close()
        helper = self.helper("--store", self.file, "--store-bytes", "12000")
        self.assertFalse(self.ask(helper, "w" * 3000)["store"])
        self.assertEqual(self.retrieve(helper, second["id"]), second)
        error = self.assert_error(helper.call("responses.create", {"input": [{"id": first["output"][0]["id"]}]}), "UNAVAILABLE")
        self.assertIn("is damaged", error["detail"])

    def test_sizes_that_are_damaged(self):
        """Damaged sizes cause no endless loop, and no good response is removed because of them."""
        helper = self.helper("--store", self.file)
        ids = [self.ask(helper, f"word {i}")["id"] for i in range(3)]
        helper.close()
        for column in ("bytes", "used"):
            for value in (0, -9223372036854775808, 9223372036854775807):
                self.edit(f"UPDATE responses SET {column} = ? WHERE id = ?", value, ids[0])
                with self.subTest(f"{column} = {value}"):
                    helper = self.helper("--store", self.file, "--store-bytes", str(1 << 40))
                    last = self.ask(helper, "on")
                    self.assertTrue(last["store"])
                    for id in (*ids[1:], last["id"]):
                        self.retrieve(helper, id)
                    helper.close()


class Trouble(StoreTest):
    """Tests a store that can't be used: this is reported once, delays no answer, and the store is used again when possible."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = os.path.join(self.folder.name, "responses.db")
        self.said = os.path.join(self.folder.name, "stderr")

    def start(self, *arguments):
        with open(self.said, "ab") as said:
            return self.helper("--store", self.file, *arguments, stderr=said)

    def lines(self):
        """The lines on stderr so far; each names the file."""
        with open(self.said) as said:
            lines = said.read().splitlines()
        for line in lines:
            self.assertIn(self.file, line)
        return lines

    def store(self, helper):
        return helper.call("capabilities.get")["store"]

    def wait_for(self, helper, usable):
        wait_until(lambda: self.store(helper)["usable"] is usable, what="the store's state")
        return self.store(helper)

    def lock(self):
        db = sqlite3.connect(self.file, isolation_level=None, check_same_thread=False)
        self.addCleanup(db.close)
        db.execute("BEGIN EXCLUSIVE")
        return db

    def test_kinds(self):
        self.assertEqual(self.store(self.helper()), {"kind": "memory", "usable": True, "detail": None})
        self.assertEqual(self.store(self.helper("--store-bytes", "0")), {"kind": "none", "usable": False, "detail": None})
        self.assertEqual(self.wait_for(self.start(), True), {"kind": "file", "usable": True, "detail": None})
        self.assertEqual(self.lines(), [])

    def test_reported_once(self):
        with open(self.file, "w") as file:
            file.write("this is a letter to a friend, and no database at all")
        helper = self.start()
        state = self.wait_for(helper, False)  # the store is checked before any call about it
        self.assertIn(self.file, state["detail"])
        self.assertIn("name another file", state["detail"])
        for _ in range(3):
            self.assertFalse(self.ask(helper, "one")["store"])
            self.assert_error(helper.call("responses.retrieve", {"id": "resp_1"}), "UNAVAILABLE")
        self.assertEqual(len(self.lines()), 1)
        os.unlink(self.file)
        response = self.ask(helper, "two")
        self.assertEqual((response["store"], self.retrieve(helper, response["id"])), (True, response))
        self.assertEqual(self.store(helper), {"kind": "file", "usable": True, "detail": None})
        self.assertEqual(len(self.lines()), 1)

    def test_nothing_runs_in_the_background(self):
        """Its answer would be lost. When the store can be used again, a later request is accepted."""
        with open(self.file, "w") as file:
            file.write("this is a letter to a friend, and no database at all")
        helper = self.start()
        self.wait_for(helper, False)
        body = {"input": "one", "background": True}
        error = self.assert_error(helper.call("responses.create", body), "UNAVAILABLE")
        self.assertIn(self.file, error["detail"])
        os.unlink(self.file)
        wait_until(lambda: helper.call("responses.create", body)["ok"], "the store")

    def test_a_folder_that_comes_later(self):
        self.file = os.path.join(self.folder.name, "sub", "responses.db")
        helper = self.start()
        self.assertIn("No such file", self.wait_for(helper, False)["detail"])
        self.assertFalse(self.ask(helper, "one")["store"])
        os.mkdir(os.path.dirname(self.file))
        self.assertTrue(self.ask(helper, "one")["store"])
        self.assertEqual(len(self.lines()), 1)

    def test_damaged_inside(self):
        """If SQLite finds damage in the file, the file is read where possible, and no longer written."""
        helper = self.start()
        first = self.ask(helper, "one" * 10000)
        second = self.ask(helper, "two")
        helper.close()
        with open(self.file, "rb+") as file:
            data = file.read()
            page = data.index(b"oneone", 8192) // 4096 * 4096  # a page inside a chain of pages
            file.seek(page)
            file.write(b"\xff\xff\xff\xff")
        helper = self.start()
        error = self.assert_error(helper.call("responses.retrieve", {"id": first["id"]}), "UNAVAILABLE")
        self.assertIn(self.file, error["detail"])
        self.assertIn("move or delete the file", error["detail"])
        self.assertFalse(self.ask(helper, "three")["store"])
        self.assertEqual(self.retrieve(helper, second["id"]), second)
        self.assertIn("move or delete the file", self.store(helper)["detail"])
        os.unlink(self.file)
        self.assertTrue(self.ask(helper, "four")["store"])
        self.assertEqual(self.store(helper)["usable"], True)
        self.assertEqual(len(self.lines()), 2, "the damage, and that the file was deleted")

    def test_full(self):
        helper = self.start()
        first = self.ask(helper, "one")
        limit = resource.prlimit(helper.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(helper.pid, resource.RLIMIT_FSIZE, (200_000, limit[1]))
        for _ in range(3):
            self.assertFalse(self.ask(helper, "word" * 100_000)["store"])
        self.assertEqual(self.retrieve(helper, first["id"]), first)
        state = self.store(helper)
        self.assertIn("is full", state["detail"])
        self.assertEqual((state["usable"], len(self.lines())), (False, 1))
        resource.prlimit(helper.pid, resource.RLIMIT_FSIZE, limit)
        last = self.ask(helper, "word" * 100_000)
        self.assertEqual((last["store"], self.store(helper)["usable"]), (True, True))
        helper.close()
        with sqlite3.connect(self.file) as db:
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        helper = self.start()
        for response in (first, last):
            self.assertEqual(self.retrieve(helper, response["id"]), response)

    def test_deleted(self):
        for names in (("",), ("", "-wal", "-shm")):
            with self.subTest(names):
                helper = self.start()
                lost = self.ask(helper, "one")
                before = len(self.lines())
                for name in names:
                    os.unlink(self.file + name)
                response = self.ask(helper, "two")
                self.assertTrue(response["store"])
                self.assertEqual(self.retrieve(self.start(), response["id"]), response)
                self.assert_error(helper.call("responses.retrieve", {"id": lost["id"]}), "NOT_FOUND")
                self.assertEqual(len(self.lines()), before + 1)
                self.assertIn("deleted or replaced", self.lines()[-1])

    def test_deleted_under_two(self):
        """Only the file is deleted. A response that one helper reported as stored is in the new file, and is not lost when the
        other helper notices the deletion."""
        for names in (("",), ("", "-shm")):
            with self.subTest(names):
                one, two = self.start(), self.start()
                self.ask(one, "one")
                self.ask(two, "two")
                for name in names:
                    os.unlink(self.file + name)
                responses = [self.ask(one, f"word {i}") for i in range(5)]
                responses.append(self.ask(two, "two"))
                stored = [response["store"] for response in responses]
                self.assert_undisturbed(all(stored), f"the other helper keeps its lock for at most 200 ms: {stored}")
                for helper in (one, two, self.start()):
                    for response in responses:
                        self.assertEqual(self.retrieve(helper, response["id"]), response)

    def test_replaced(self):
        helper = self.start()
        old = self.ask(helper, "one")
        there, self.file = self.file, self.file + ".other"
        other = self.start()
        response = self.ask(other, "two")
        other.close()
        os.replace(self.file, there)
        self.file = there
        self.assertEqual(self.retrieve(helper, response["id"]), response)
        self.assert_error(helper.call("responses.retrieve", {"id": old["id"]}), "NOT_FOUND")

    def test_its_log_deleted(self):
        helper = self.start()
        first = self.ask(helper, "one")
        os.unlink(self.file + "-wal")
        second = self.ask(helper, "two")
        wire.kill(helper.pid, signal.SIGKILL)
        helper.wait_exit()
        helper = self.start()
        for response in (first, second):
            self.assertEqual(self.retrieve(helper, response["id"]), response)

    def test_locked(self):
        """A process keeps the file locked. No answer waits for this process."""
        helper = self.start()
        first = self.ask(helper, "one")
        db = self.lock()
        begun = time.monotonic()
        for _ in range(8):
            self.assertFalse(self.ask(helper, "two")["store"])
            self.assertEqual(self.retrieve(helper, first["id"]), first)
        self.assertLess(time.monotonic() - begun, 4 * wire.SLOW, "not 8 waits of a second, and 8 more")
        self.assert_error(helper.call("responses.delete", {"id": first["id"]}), "UNAVAILABLE")
        state = self.store(helper)
        self.assertIn("another process has locked it", state["detail"])
        self.assertEqual((state["usable"], len(self.lines())), (False, 1))
        db.execute("COMMIT")
        last = self.ask(helper, "three")
        self.assertEqual((last["store"], self.store(helper)["usable"]), (True, True))
        self.assertEqual(self.retrieve(helper, last["id"]), last)
        db.execute("BEGIN EXCLUSIVE")
        self.assertFalse(self.ask(helper, "four")["store"])
        self.assertEqual(len(self.lines()), 1, "the same again, within a minute")

    def test_locked_from_the_start(self):
        helper = self.start()
        first = self.ask(helper, "one")
        helper.close()
        db = sqlite3.connect(self.file, isolation_level=None)
        self.addCleanup(db.close)
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("BEGIN EXCLUSIVE")  # without the log, other processes can't read now
        helper = self.start()
        begun = time.monotonic()
        for _ in range(8):
            self.assertFalse(self.ask(helper, "two")["store"])
            self.assert_error(helper.call("responses.retrieve", {"id": first["id"]}), "UNAVAILABLE")
        self.assertLess(time.monotonic() - begun, 4 * wire.SLOW)
        self.assertEqual(len(self.lines()), 1)
        db.execute("COMMIT")
        self.assertEqual(self.retrieve(helper, first["id"]), first)
        self.assertTrue(self.store(helper)["usable"])

    def test_locked_for_a_moment(self):
        """Processes that share a file wait for each other."""
        helper = self.start()
        self.ask(helper, "one")
        db = self.lock()
        call = self.create(helper, "two", stream=False)
        threading.Timer(0.02, db.execute, ("COMMIT",)).start()
        self.assertTrue(helper.reply(call)["result"]["response"]["store"])


class CommandLine(HelperTest):
    def test_bad(self):
        for arguments in (["--store", ""], ["--store-bytes", "-1"], ["--store-bytes", "1x"], ["--store-bytes", ""],
                          ["--store-bytes", "99999999999999999999"]):
            helper = self.helper(*arguments, stderr=wire.subprocess.PIPE)
            self.assertEqual(helper.wait_exit(), 64, arguments)
            self.assertIn(arguments[0].encode(), helper.process.stderr.read())
            helper.process.stderr.close()


if __name__ == "__main__":
    wire.main()
