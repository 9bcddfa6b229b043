"""Tests reasoning from an engine to the host, over both APIs, reasoning that is sent back as input, and engines that send
reasoning too late."""

import json
import tempfile

import foreign_engine
import wire
from wire import HelperTest, check_stream, script

DIALECTS = ("summary", "reasoning_text", "reasoning")
TOOL = {"type": "function", "name": "f"}
CALL = {"tool_call": {"name": "f", "arguments": "{}"}}


def think(text):
    return {"reasoning": text}


class Reasoning(HelperTest):
    def responses(self, helper, steps, stream=True, dialect=None, **params):
        """(response, result); the stream is checked."""
        fm = {"fm": {"reasoning_dialect": dialect}} if dialect else {}
        body = {"input": script(*steps), "stream": stream, "tools": [TOOL], **fm, **params}
        events, result = helper.collect(helper.start("responses.create", body))
        if stream:
            return check_stream(self, events, result, dialect or "summary"), result
        return result["response"], result

    def check_reasoning(self, item, text, status="completed", dialect="summary"):
        self.assertEqual(item.pop("id")[:3], "rs_")
        part = {"type": "summary_text" if dialect == "summary" else "reasoning_text", "text": text}
        shown = {"summary": [part]} if dialect == "summary" else {"summary": [], "content": [part]}
        self.assertEqual(item, {"type": "reasoning", "status": status, **shown})

    def test_items(self):
        helper = self.helper()
        for stream in (False, True):
            for dialect in (None, *DIALECTS):
                response, _ = self.responses(helper, [think("Hm, "), think("so ü."), "Yes", "."], stream, dialect)
                reasoning, message = response["output"]
                self.check_reasoning(reasoning, "Hm, so ü.", dialect=dialect or "summary")
                self.assertEqual(message["content"][0]["text"], "Yes.")
                self.assertEqual(response["usage"]["output_tokens"], 4)
                self.assertEqual(response["usage"]["output_tokens_details"], {"reasoning_tokens": 2})
            response, _ = self.responses(helper, [think("Hm."), CALL], stream)
            self.assertEqual([item["type"] for item in response["output"]], ["reasoning", "function_call"])
            response, _ = self.responses(helper, [think("Hm."), "a", CALL, CALL], stream)
            self.assertEqual([item["type"] for item in response["output"]],
                             ["reasoning", "message", "function_call", "function_call"])
            response, _ = self.responses(helper, [think("Hm.")], stream)
            self.check_reasoning(response["output"][0], "Hm.")
            self.assertEqual((response["status"], response["output"][1]["content"][0]["text"]), ("completed", ""))
            response, _ = self.responses(helper, [think(""), "a"], stream)  # an empty thought
            self.assertEqual([item["type"] for item in response["output"]], ["message"])
            self.assertEqual(response["usage"]["output_tokens_details"], {"reasoning_tokens": 1})

    def test_a_thought_that_is_cut(self):
        helper = self.helper()
        for stream in (False, True):
            for dialect in DIALECTS:
                response, result = self.responses(helper, [think("Hm."), {"finish": "length"}], stream, dialect)
                self.assertEqual((result["ok"], response["status"]), (True, "incomplete"))
                self.assertEqual(response["incomplete_details"], {"reason": "max_output_tokens"})
                (item,) = response["output"]
                self.check_reasoning(item, "Hm.", "incomplete", dialect)
                response, result = self.responses(helper, [think("Hm."), {"error": "no"}], stream, dialect)
                self.assert_error(result, "INTERNAL")
                self.check_reasoning(response["output"][0], "Hm.", "incomplete", dialect)
            response, _ = self.responses(helper, [think("one"), think("two"), "text"], stream, max_output_tokens=2)
            self.check_reasoning(response["output"][0], "onetwo", "incomplete")
            # a stop string has no effect in reasoning
            response, _ = self.responses(helper, [think("a stop b"), "c stop d"], stream, stop="stop")
            self.check_reasoning(response["output"][0], "a stop b")
            self.assertEqual(response["output"][1]["content"][0]["text"], "c ")

    def test_cancel(self):
        helper = self.helper()
        id = self.create(helper, script(think("Hm."), {"hang": "soft"}))
        helper.event(id, "response.reasoning_summary_text.delta", keep=True)
        helper.send("$/cancelRequest", {"id": id})
        events, result = helper.collect(id)
        self.assert_error(result, "CANCELLED")
        response = check_stream(self, sorted(events, key=lambda e: e["sequence_number"]), result)
        self.check_reasoning(response["output"][0], "Hm.", "incomplete")
        self.assertEqual((response["status"], len(response["output"])), ("cancelled", 1))

    def test_an_engine_that_dies(self):
        response, result = self.responses(self.helper(), [think("Hm."), {"signal": "SEGV"}])
        self.assert_error(result, "INTERNAL")
        self.check_reasoning(response["output"][0], "Hm.", "incomplete")
        self.assertEqual(response["usage"]["output_tokens_details"], {"reasoning_tokens": 1})

    def test_chat(self):
        helper = self.helper()

        def run(steps, stream, **params):
            body = {"messages": [{"role": "user", "content": script(*steps)}], "stream": stream,
                    "tools": [{"type": "function", "function": {"name": "f"}}], **params}
            chunks, result = helper.collect(helper.start("chat.completions.create", body))
            choice = result["completion"]["choices"][0]
            message = choice["message"]
            if stream:
                deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
                self.assertEqual(deltas[0], {"role": "assistant", "content": None})
                for key in ("reasoning_content", "content"):
                    told = "".join(delta.get(key) or "" for delta in deltas)
                    self.assertEqual(told, message.get(key) or "")
                order = [key for delta in deltas[1:] for key in delta]
                self.assertEqual(order, sorted(order, key=["reasoning_content", "content", "tool_calls"].index))
            return message, choice["finish_reason"], result["completion"]["usage"]
        for stream in (False, True):
            message, reason, usage = run([think("Hm, "), think("so."), "Yes."], stream, reasoning_effort="high")
            self.assertEqual((message["reasoning_content"], message["content"], reason), ("Hm, so.", "Yes.", "stop"))
            self.assertEqual(usage["completion_tokens_details"], {"reasoning_tokens": 2})
            message, reason, _ = run([think("Hm."), CALL], stream)
            self.assertEqual((message["reasoning_content"], message["content"], reason), ("Hm.", None, "tool_calls"))
            message, reason, _ = run([think("Hm."), {"finish": "length"}], stream)
            self.assertEqual((message["reasoning_content"], message["content"], reason), ("Hm.", "", "length"))
            self.assertNotIn("reasoning_content", run(["Yes."], stream)[0])

    def test_formats(self):
        """The script ignores the format. The report is about the text, and this answer has no text."""
        response, _ = self.responses(self.helper(), [think("Hm."), {"finish": "length"}],
                                     text={"format": {"type": "json_schema", "name": "n", "schema": {}}})
        self.assertEqual([item["type"] for item in response["output"]], ["reasoning"])

    def test_parameters(self):
        helper = self.helper()
        for said, echoed in (
            (None, {"effort": None, "summary": None}),
            ({"effort": "minimal", "summary": "concise"}, {"effort": "minimal", "summary": "concise"}),
            ({"generate_summary": "auto"}, {"effort": None, "summary": "auto"}),
            ({"generate_summary": "auto", "summary": "detailed"}, {"effort": None, "summary": "detailed"}),
        ):
            result = helper.call("responses.create", {"input": "a", "reasoning": said,
                                                      "include": ["reasoning.encrypted_content"]})
            self.assertEqual(result["response"]["reasoning"], echoed)
        for effort in ("none", "minimal", "low", "medium", "high", "xhigh", "max"):
            self.assertTrue(helper.call("responses.create", {"input": "a", "reasoning": {"effort": effort}})["ok"])
            chat = {"messages": [{"role": "user", "content": "a"}], "reasoning_effort": effort}
            self.assertTrue(helper.call("chat.completions.create", chat)["ok"])
        self.assert_error(helper.call("responses.create", {"input": "a", "reasoning": {"effort": "most"}}),
                          "INVALID_REQUEST", "reasoning.effort", "invalid_value")

    def test_the_way_back(self):
        """The items of an answer are a valid input, in each dialect."""
        helper = self.helper()
        for dialect in DIALECTS:
            response, _ = self.responses(helper, [think("Hm."), CALL], dialect=dialect)
            id = response["output"][1]["call_id"]
            items = [{"role": "user", "content": "a"}, *response["output"],
                     {"type": "function_call_output", "call_id": id, "output": "It rains."}]
            result = helper.call("responses.create", {"input": items})
            self.assertEqual(result["response"]["output"][0]["content"][0]["text"], "It rains.")

    def test_out_of_the_store(self):
        """A stored answer's reasoning is used in the next turn, and can be referred to."""
        helper = self.helper()
        for dialect in DIALECTS:
            response, _ = self.responses(helper, [think("Hm."), "Yes."], dialect=dialect)
            kept = helper.call("responses.retrieve", {"id": response["id"]})["response"]
            self.assertEqual(kept["output"], response["output"])
            more = helper.call("responses.create", {"previous_response_id": response["id"], "input": "Go on."})
            self.assertEqual(more["response"]["output"][0]["content"][0]["text"], "Go on.")
            items = [{"type": "item_reference", "id": item["id"]} for item in response["output"]]
            more = helper.call("responses.create", {"input": [*items, {"role": "user", "content": "And on."}]})
            self.assertEqual(more["response"]["output"][0]["content"][0]["text"], "And on.")
            said = helper.call("responses.input_items", {"id": more["response"]["id"], "order": "asc"})["data"]
            self.assertEqual(said[:2], response["output"])
        items = [{"type": "reasoning"}, {"role": "user", "content": "a"}]
        response = helper.call("responses.create", {"input": items})["response"]
        said = helper.call("responses.input_items", {"id": response["id"], "order": "asc"})["data"]
        self.assertEqual((said[0]["type"], said[0]["id"][:3], said[0]["summary"]), ("reasoning", "rs_", []))

    def test_what_the_engine_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            foreign_engine.write(folder, "odd", """
                initialize()
                load()
                while True:
                    message = read()
                    if message["method"] != "job.start":
                        continue
                    params = message["params"]
                    job = params["job"]
                    send(method="job.accepted", params={"job": job, "input_tokens": 1})
                    send(method="job.delta", params={"job": job, "text": json.dumps(params), "output_tokens": 1})
                    send(method="job.finished", params={"job": job, "reason": "stop"})
                """)
            helper = self.helper("--engine-dir", folder, engine="odd")
            items = [{"role": "user", "content": "a"},
                     {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
                     {"type": "message", "role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
            result = helper.call("responses.create", {"input": items, "reasoning": {"effort": "low"}})
            told = json.loads(result["response"]["output"][0]["content"][0]["text"])
            self.assertEqual(told["reasoning"], {"effort": "low"})
            self.assertEqual(told["messages"][1], {"role": "assistant", "content": "b", "reasoning": "Hm."})


class BadEngine(HelperTest):
    def test_a_thought_after_text(self):
        """The request fails at once, and its engine has to stop the job."""
        for first in ('method="job.delta", params={"job": job, "text": "a", "output_tokens": 1}',
                      'method="job.tool_call", params={"job": job, "index": 0, "name": "f", "output_tokens": 1}'):
            with tempfile.TemporaryDirectory() as folder:
                foreign_engine.write(folder, "odd", f"""
                    initialize()
                    load()
                    job = accept()
                    send({first})
                    send(method="job.reasoning", params={{"job": job, "text": "b", "output_tokens": 2}})
                    assert read()["method"] == "job.abort"
                    send(method="job.finished", params={{"job": job, "reason": "aborted"}})
                    read()
                    """)
                helper = self.helper("--engine-dir", folder, engine="odd")
                events, result = helper.collect(self.create(helper, "x", tools=[TOOL]))
                self.assertIn("thought", self.assert_error(result, "INTERNAL")["detail"])
                output = check_stream(self, events, result)["output"]
                self.assertNotIn("reasoning", [item["type"] for item in output])


if __name__ == "__main__":
    wire.main()
