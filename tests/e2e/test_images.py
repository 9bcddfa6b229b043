"""Tests images from the host to the engine: which requests reach the engine, what they contain, and what comes back.

The fake engine reports the first bytes and the length of each image; it does not open the file of --mmproj.
"""

import json
import os
import signal
import tempfile

import foreign_engine
import gguf
import make_projector
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
        """The image is refused at once, without an engine. The error has the name that it had when no model supported images."""
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
        many = [{"type": "input_text", "text": ""}] * 16384  # text parts without an image are joined into one
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
        for args, wanted in (([], {"model": None}),
                             (["--draft-model", link], {"model": None, "draft_model": os.path.realpath(projector)})):
            helper = self.helper("--engine-dir", folder.name, *args, engine="seeing")
            loaded, _ = json.loads(self.text(helper.call("responses.create", {"input": [turn()]})))
            self.assertEqual(loaded, wanted)


class Found(Case):
    """A projector beside the model. Only the engine "llama" has files; the fake engine, or a script, takes its place."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.projector = os.path.realpath(os.path.join(self.folder, "mmproj.gguf"))
        for name, pairs in (("model", gguf.tiny_pairs()), ("mmproj", make_projector.pairs("phi4", gguf.EMBD, 32, 2, 4096))):
            with open(os.path.join(self.folder, f"{name}.gguf"), "wb") as file:
                file.write(gguf.header([gguf.pair(*pair) for pair in pairs], []))

    def finding(self, engine=None, **kwargs):
        if engine:
            foreign_engine.write(self.folder, "llama", engine)
            foreign_engine.describe(self.folder, "llama")
        else:
            foreign_engine.borrow(os.path.join(wire.BIN, "fm-engine-fake"), self.folder, "llama")
        return self.helper("--engine-dir", self.folder, "--models-dir", self.folder, engine="llama", **kwargs)

    def ask(self, helper, *images, **params):
        return helper.call("responses.create", {"input": [turn(*images)], **params})

    def test_it_is_no_model_and_is_offered(self):
        helper = self.finding()
        self.assertEqual([model["id"] for model in helper.call("models.list")["data"]], ["model"])
        models = helper.call("capabilities.get")["models"]
        self.assertEqual(models, [{"id": "model", "default": True, "images": True, "mmproj": self.projector}])
        os.unlink(self.projector)
        models = helper.call("capabilities.get")["models"]
        self.assertEqual(models, [{"id": "model", "default": True, "images": False, "mmproj": None}])
        self.assert_error(self.ask(helper, IMAGE), "INVALID_REQUEST", "input[0].content[1].type", "unsupported_parameter")
        self.assertIsNone(helper.engine_pid())

    def test_named_as_a_model(self):
        foreign_engine.borrow(os.path.join(wire.BIN, "fm-engine-fake"), self.folder, "llama")
        helper = self.helper("--engine-dir", self.folder, "--models-dir", self.folder, "--model", self.projector, engine="llama")
        capabilities = helper.call("capabilities.get")
        self.assertEqual(capabilities["reason_code"], "MODEL_NOT_READY")
        self.assertIn(f"{self.projector} is a projector", capabilities["detail"])
        self.assertIn("--mmproj", capabilities["detail"])

    def test_it_is_loaded_for_the_first_image(self):
        """A text does not load the projector, because the projector costs memory. The engine that was started with the projector
        also answers texts."""
        helper = self.finding()
        engines = []
        for images in ((), (), (IMAGE,), (), (IMAGE,)):
            text = self.text(self.ask(helper, *images))
            self.assertEqual(text, "What is it? " + SEEN if images else "What is it?")
            engines.append(helper.engine_pid())
        self.assertEqual([engine == engines[0] for engine in engines], [True, True, False, False, False])
        self.assertEqual(len(set(engines)), 2)

    def test_who_waits_for_the_projector_holds_up_no_other_model(self):
        """The engine without the projector is answering a request, so the image waits. There is a place for another model."""
        with open(os.path.join(self.folder, "other.gguf"), "wb") as file:
            file.write(b"GGUF")
        helper = self.finding()
        busy = self.create(helper, wire.script("begun", {"hang": "soft"}))
        helper.event(busy, "response.output_text.delta", keep=True)
        waiting = helper.start("responses.create", {"input": [turn(IMAGE)]})
        result = helper.call("responses.create", {"input": "x", "model": "other", "fm": {"queue_timeout_ms": 20000}})
        self.assertTrue(result["ok"], result)
        later = self.create(helper, "after the image")
        helper.call("responses.cancel", {"request_id": busy})
        self.assertEqual(self.text(helper.reply(waiting)["result"]), "What is it? " + SEEN)
        self.assertTrue(helper.collect(later)[1]["ok"])

    def test_an_image_in_what_is_stored(self):
        helper = self.finding()
        seen = self.ask(helper, IMAGE)["response"]
        os.kill(helper.engine_pid(), signal.SIGKILL)
        self.wait_until_gone(helper)
        result = helper.call("responses.create", {"input": "And?", "previous_response_id": seen["id"]})
        self.assertTrue(result["ok"], result)
        seeing = helper.engine_pid()
        self.assertEqual(self.text(self.ask(helper, IMAGE)), "What is it? " + SEEN)
        self.assertEqual(helper.engine_pid(), seeing, "it was started with the projector")

    def wait_until_gone(self, helper):
        wire.wait_until(lambda: helper.engine_pid() is None, what="the engine's end")

    BROKEN = """
        initialize()
        message = read()
        if "mmproj" in message["params"]:
            %s
        send(id=message["id"], result={"ok": True, "context_length": 1000, "slots": 1})
        while (message := read())["method"] == "job.start":
            job = {"job": message["params"]["job"]}
            send(method="job.accepted", params={**job, "input_tokens": 1})
            send(method="job.delta", params={**job, "text": "text", "output_tokens": 1})
            send(method="job.finished", params={**job, "reason": "stop", "usage": {}})
        """
    REFUSE = 'send(id=message["id"], result={"ok": False, "error": {"code": "UNAVAILABLE", "detail": "broken eyes"}}); sys.exit()'

    def test_one_that_does_not_load_leaves_text_alone(self):
        log = tempfile.TemporaryFile()
        self.addCleanup(log.close)
        helper = self.finding(self.BROKEN % self.REFUSE, stderr=log, env={"FM_PROXY_LOG_LEVEL": "warn"})
        for _ in range(4):
            error = self.assert_error(self.ask(helper, IMAGE), "UNAVAILABLE")
            self.assertIn("broken eyes", error["detail"])
            self.assertEqual(self.text(self.ask(helper)), "text")
        self.assertEqual(helper.close(), 0)
        log.seek(0)
        self.assertEqual(log.read().count(b"the projector beside it: broken eyes"), 4)

    def test_nor_does_one_that_ends_the_engine(self):
        """Deaths with the projector do not count as deaths of the model."""
        helper = self.finding(self.BROKEN % "os.kill(os.getpid(), signal.SIGSEGV)")
        for _ in range(4):
            self.assert_error(self.ask(helper, IMAGE), "UNAVAILABLE")
        self.assertIn("3 times in a row", self.ask(helper, IMAGE)["error"]["detail"])
        self.assertEqual(self.text(self.ask(helper)), "text")

    def test_text_that_waits_for_the_same_model(self):
        """The text's request does not fail because of the projector, which only the other request needs."""
        helper = self.finding(self.BROKEN % ("time.sleep(0.3); " + self.REFUSE))
        image = helper.start("responses.create", {"input": [turn(IMAGE)]})
        text = helper.start("responses.create", {"input": [turn()]})
        self.assert_error(helper.collect(image)[1], "UNAVAILABLE")
        self.assertEqual(self.text(helper.collect(text)[1]), "text")


if __name__ == "__main__":
    wire.main()
