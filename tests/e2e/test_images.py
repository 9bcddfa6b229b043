"""Images from the host to the engine: which requests get there, with what, and what comes back.

The fake engine says of each image what it begins like and how long it is; no file is opened for --mmproj then.
"""

import json
import os
import tempfile

import foreign_engine
import wire
from pictures import png, text64, url
from wire import HelperTest, check_stream

IMAGE = png()
SEEN = f"[png of {len(IMAGE)} bytes]"


def content(*images, text="What is it?"):
    return [{"type": "input_text", "text": text}, *({"type": "input_image", "image_url": url(i)} for i in images)]


def turn(*images, **more):
    return {"role": "user", "content": content(*images, **more)}


def chat(*images):
    parts = [{"type": "image_url", "image_url": {"url": url(i), "detail": "low"}} for i in images]
    return [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, *parts]}]


class Case(HelperTest):
    def seeing(self, *args, **kwargs):
        return self.helper("--mmproj", "/a/projector", *args, **kwargs)

    def text(self, result):
        self.assertTrue(result["ok"], str(result)[:500])
        return result["response"]["output"][0]["content"][0]["text"]


class Seen(Case):
    def test_both_apis_streamed_or_not(self):
        helper = self.seeing()
        text = f"What is it? {SEEN}"
        events, result = helper.collect(helper.start("responses.create", {"input": [turn(IMAGE)], "stream": True}))
        self.assertEqual(check_stream(self, events, result)["output"][0]["content"][0]["text"], text)
        self.assertEqual(self.text(helper.call("responses.create", {"input": [turn(IMAGE)]})), text)
        for stream in (False, True):
            result = helper.call("chat.completions.create", {"messages": chat(IMAGE), "stream": stream})
            self.assertEqual(result["completion"]["choices"][0]["message"]["content"], text)

    def test_several_and_one_alone(self):
        helper = self.seeing()
        two = self.text(helper.call("responses.create", {"input": [turn(IMAGE, IMAGE + b"x")]}))
        self.assertEqual(two, f"What is it? {SEEN} [png of {len(IMAGE) + 1} bytes]")
        alone = {"role": "user", "content": content(IMAGE)[1:]}
        self.assertEqual(self.text(helper.call("responses.create", {"input": [alone]})), SEEN)

    def test_they_count(self):
        helper = self.seeing()
        body = {"input": [turn(IMAGE)]}
        tokens = helper.call("responses.input_tokens", body)["input_tokens"]
        self.assertEqual(tokens, helper.call("responses.create", body)["response"]["usage"]["input_tokens"])
        without = helper.call("responses.input_tokens", {"input": [turn()]})["input_tokens"]
        self.assertEqual(tokens - without, 16)
        result = helper.call("responses.create", {"input": [turn(*[IMAGE] * 300)]})
        self.assert_error(result, "CONTEXT_OVERFLOW", None, "context_length_exceeded")

    def test_as_large_as_a_frame_holds(self):
        big = IMAGE + b"\0" * 7_400_000
        self.assertIn(f"[png of {len(big)} bytes]",
                      self.text(self.seeing().call("responses.create", {"input": [turn(big)], "store": False})))

    def test_one_that_is_broken(self):
        helper = self.seeing()
        for method, body, param in (
            ("responses.create", {"input": [turn(IMAGE), turn(IMAGE, b"no image")]}, "input[1].content[2].image_url"),
            ("chat.completions.create", {"messages": chat(b"no image")}, "messages[0].content[1].image_url"),
        ):
            events, result = helper.collect(helper.start(method, {**body, "stream": True}))
            self.assertEqual(events, [])
            error = self.assert_error(result, "INVALID_REQUEST", param, "invalid_image")
            self.assertEqual(error["openai"]["status"], 400)
        self.assertEqual(self.text(helper.call("responses.create", {"input": [turn(IMAGE)]})), f"What is it? {SEEN}")


class Refused(Case):
    def test_a_model_that_sees_none(self):
        """At once, without an engine, and named as it was when no model saw."""
        helper = self.helper()
        for method, body, param in (
            ("responses.create", {"input": [turn(), turn(IMAGE)]}, "input[1].content[1].type"),
            ("responses.input_tokens", {"input": [turn(IMAGE)]}, "input[0].content[1].type"),
            ("chat.completions.create", {"messages": chat(IMAGE)}, "messages[0].content[1].type"),
        ):
            events, result = helper.collect(helper.start(method, body))
            self.assertEqual(events, [])
            error = self.assert_error(result, "INVALID_REQUEST", param, "unsupported_parameter")
            self.assertIn("--mmproj", error["detail"])
        self.assertIsNone(helper.engine_pid())

    def test_what_is_not_in_the_request_itself(self):
        helper = self.seeing()
        for part, param, code in (
            ({"image_url": "https://example.com/a.png"}, "image_url", "unsupported_value"),
            ({"file_id": "file_1"}, "file_id", "unsupported_parameter"),
            ({"image_url": "data:image/png;base64,%%"}, "image_url", "invalid_value"),
        ):
            body = {"input": [{"role": "user", "content": [{"type": "input_image", **part}]}]}
            self.assert_error(helper.call("responses.create", body), "INVALID_REQUEST", f"input[0].content[0].{param}", code)
        self.assertIsNone(helper.engine_pid())

    def test_capabilities(self):
        for helper, sees in ((self.helper(), False), (self.seeing(), True)):
            capabilities = helper.call("capabilities.get")
            self.assertEqual([model["images"] for model in capabilities["models"]], [sees])
            self.assertIs(capabilities["features"]["images"], True)

    def test_a_path_that_is_empty(self):
        helper = self.helper("--mmproj", "", stderr=-3)
        self.assertEqual(helper.wait_exit(), 64)


class Kept(Case):
    def test_a_conversation_keeps_them(self):
        helper = self.seeing()
        first = helper.call("responses.create", {"input": [{"id": "msg_1", **turn(IMAGE)}]})["response"]
        items = helper.call("responses.input_items", {"id": first["id"]})["data"]
        self.assertEqual(items[0]["content"], content(IMAGE))
        usage = first["usage"]["input_tokens"]
        next = helper.call("responses.create", {"input": "And?", "previous_response_id": first["id"]})["response"]
        self.assertGreater(next["usage"]["input_tokens"], usage)
        again = helper.call("responses.create", {"input": [{"type": "item_reference", "id": "msg_1"}]})
        self.assertEqual(self.text(again), f"What is it? {SEEN}")
        many = [{"type": "input_text", "text": ""}] * 16384  # of a text alone they become one
        for parts, fits in ((many + content(), True), (many + content(IMAGE), False)):
            last = helper.call("responses.create", {"input": [{"role": "user", "content": parts}]})["response"]
            result = helper.call("responses.create", {"input": "And?", "previous_response_id": last["id"]})
            self.assertEqual(result["ok"], fits, str(result)[:300])
        self.assert_error(result, "CONTEXT_OVERFLOW")
        result = helper.call("responses.create", {"input": [turn(b"no")], "previous_response_id": first["id"]})
        self.assert_error(result, "INVALID_REQUEST", "input", "invalid_image")

    def test_a_later_helper_that_sees_none(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        store = ("--store", os.path.join(folder.name, "store"))
        helper = self.seeing(*store)
        first = helper.call("responses.create", {"input": [{"id": "msg_1", **turn(IMAGE)}]})["response"]["id"]
        helper.close()
        helper = self.helper(*store)
        for body in ({"input": "And?", "previous_response_id": first},
                     {"input": [{"type": "item_reference", "id": "msg_1"}]}):
            self.assert_error(helper.call("responses.create", body), "INVALID_REQUEST", "input", "unsupported_parameter")
        self.assertEqual(helper.call("responses.input_items", {"id": first})["data"][0]["content"], content(IMAGE))


class Wire(Case):
    def test_what_the_engine_gets(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        projector = os.path.join(folder.name, "projector")
        open(projector, "w").close()
        os.symlink(projector, os.path.join(folder.name, "link"))
        foreign_engine.write(folder.name, "seeing", """
            initialize()
            message = read()
            loaded = message["params"]
            send(id=message["id"], result={"ok": True, "context_length": 1000, "slots": 1})
            while (message := read())["method"] == "job.start":
                job = {"job": message["params"]["job"]}
                said = json.dumps([loaded, message["params"]["messages"]])
                send(method="job.accepted", params={**job, "input_tokens": 1})
                send(method="job.delta", params={**job, "text": said, "output_tokens": 1})
                send(method="job.finished", params={**job, "reason": "stop", "usage": {}})
            """)
        link = os.path.join(folder.name, "link")
        helper = self.helper("--engine-dir", folder.name, "--mmproj", link, engine="seeing")
        loaded, messages = json.loads(self.text(helper.call("responses.create", {"input": [turn(IMAGE)]})))
        self.assertEqual(loaded, {"model": None, "mmproj": os.path.realpath(projector)})
        parts = [{"type": "text", "text": "What is it?"}, {"type": "image", "data": text64(IMAGE)}]
        self.assertEqual(messages, [{"role": "user", "content": parts}])
        helper = self.helper("--engine-dir", folder.name, engine="seeing")
        loaded, _ = json.loads(self.text(helper.call("responses.create", {"input": [turn()]})))
        self.assertEqual(loaded, {"model": None})


if __name__ == "__main__":
    wire.main()
