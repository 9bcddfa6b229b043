"""Tests embeddings.create and models.retrieve through the whole helper, with the fake engine, faulty engines and the real
model."""

import base64
import glob
import os
import re
import struct
import tempfile
import time
import unittest

import foreign_engine
import wire
from wire import SLOW, HelperTest, memory_kib, script

MODEL = "all-MiniLM-L6-v2.F32"
CHAT = sorted(glob.glob(os.path.join(os.environ.get("FM_MODELS", os.path.join(wire.BIN, "..", "models")), "*.gguf")))
MODELS = os.path.abspath(os.path.join(os.environ.get("FM_MODELS", os.path.join(wire.BIN, "..", "models")), "..",
                                      "models-embedding"))


def floats(text):
    data = base64.b64decode(text)
    return list(struct.unpack(f"<{len(data) // 4}f", data))


class Embeddings(HelperTest):
    def embed(self, helper, input, **params):
        return helper.call("embeddings.create", {"input": input, **params})

    def vectors(self, helper, input, **params):
        result = self.embed(helper, input, **params)
        self.assertIs(result["ok"], True, str(result)[:500])
        data = result["embeddings"]["data"]
        self.assertEqual([(e["object"], e["index"]) for e in data], [("embedding", i) for i in range(len(data))])
        return [e["embedding"] for e in data]


class Requests(Embeddings):
    def test_the_object(self):
        result = self.embed(self.helper(), ["one", "two words"])
        self.assertEqual(set(result), {"ok", "embeddings"})
        embeddings = result["embeddings"]
        self.assertEqual(set(embeddings), {"object", "data", "model", "usage"})
        self.assertEqual((embeddings["object"], embeddings["model"]), ("list", "fake"))
        self.assertEqual(embeddings["usage"], {"prompt_tokens": 3, "total_tokens": 3})
        self.assertEqual([len(e["embedding"]) for e in embeddings["data"]], [8, 8])

    def test_both_formats_say_the_same(self):
        helper = self.helper()
        numbers = self.vectors(helper, ["one", "two"], encoding_format="float")
        texts = self.vectors(helper, ["one", "two"], encoding_format="base64")
        self.assertEqual([struct.pack("<8f", *values) for values in numbers],
                         [struct.pack("<8f", *floats(text)) for text in texts])

    def test_a_string_and_a_list_of_it(self):
        helper = self.helper()
        self.assertEqual(self.vectors(helper, "one"), self.vectors(helper, ["one"]))

    def test_fewer_dimensions(self):
        helper = self.helper()
        whole, = self.vectors(helper, "one")
        part, = self.vectors(helper, "one", dimensions=3)
        length = sum(x * x for x in whole[:3]) ** 0.5
        for got, expected in zip(part, whole[:3], strict=True):
            self.assertAlmostEqual(got, expected / length, places=6)
        self.assertEqual(self.vectors(helper, "one", dimensions=8), [whole])
        error = self.assert_error(self.embed(helper, "one", dimensions=9), "INVALID_REQUEST", "dimensions",
                                  "integer_above_max_value")
        self.assertIn("8", error["detail"])
        self.assertEqual(self.vectors(helper, "one"), [whole])

    def test_an_overflow_names_the_input(self):
        helper = self.helper()
        long = "word " * 5000
        error = self.assert_error(self.embed(helper, ["x", long]), "CONTEXT_OVERFLOW", "input[1]",
                                  "context_length_exceeded")
        self.assertIn("maximum context length", error["openai"]["message"])
        self.assert_error(self.embed(helper, long), "CONTEXT_OVERFLOW", "input")

    def test_bad_parameters(self):
        helper = self.helper("--strict-parameters")
        for params, param, code in (
            ({}, "input", "missing_required_parameter"),
            ({"input": [1, 2]}, "input[0]", "unsupported_value"),
            ({"input": "x", "stream": True}, "stream", "unsupported_parameter"),
            ({"input": ["x"] * 2049}, "input", "array_above_max_length"),
        ):
            self.assert_error(helper.call("embeddings.create", params), "INVALID_REQUEST", param, code)
        self.assert_error(self.embed(helper, "x", model="none"), "NOT_FOUND", "model", "model_not_found")
        self.assertIsNone(helper.engine_pid())

    def test_a_reply_has_a_frames_size(self):
        """A request whose reply would be too large for a frame is refused before any work, and the error names what would fit."""
        helper = self.helper(env={"FM_ENGINE_FAKE_DIMENSION": "4096"})
        slow = [script({"sleep_ms": 60000})] + ["x"] * 2047
        error = self.assert_error(self.embed(helper, slow), "INVALID_REQUEST", "input", "invalid_value")
        self.assertRegex(error["detail"], r"At most (\d+) fit, with the encoding_format 'base64' (\d+)\.")
        most, most_text = (int(n) for n in re.findall(r"(?:most|base64') (\d+)", error["detail"]))
        self.assertEqual(len(self.vectors(helper, ["x"] * most)), most)
        self.assert_error(self.embed(helper, ["x"] * (most + 1)), "INVALID_REQUEST", "input")
        self.assertEqual(len(self.vectors(helper, ["x"] * most_text, encoding_format="base64")), most_text)
        self.assert_error(self.embed(helper, ["x"] * (most_text + 1), encoding_format="base64"), "INVALID_REQUEST")
        self.assertEqual(len(self.vectors(helper, ["x"] * 2048, dimensions=200)), 2048)

    def test_pings_go_on_beside_vectors(self):
        helper = self.helper(env={"FM_ENGINE_FAKE_DIMENSION": "4096"})
        call = helper.start("embeddings.create", {"input": ["x"] * 150})
        times = []
        while not any(message.get("id") == call for message in helper.backlog):
            times.append(helper.ping_ms())
        self.assertGreater(len(times), 5)
        self.assert_soon(max(times[:-1]), 100 * SLOW)  # the last pong waited for the reply, which is slow to parse in Python
        self.assertTrue(helper.reply(call)["result"]["ok"])

    def test_a_host_that_does_not_read(self):
        """If finished vectors are not read, the engine has to wait, so that they do not pile up without a bound."""
        helper = self.helper(env={"FM_ENGINE_FAKE_DIMENSION": "4096"})
        helper.ping_ms()
        helper.reading.clear()
        count = 6 if os.environ.get("FM_SANITIZE") else 24
        calls = [helper.start("embeddings.create", {"input": ["x"] * 150}) for _ in range(count)]
        highest, quiet = 0, 0
        while quiet < 10:
            time.sleep(0.1)
            now = memory_kib(helper.pid, "VmHWM")
            quiet = quiet + 1 if now == highest else 0
            highest = now
        if not os.environ.get("FM_SANITIZE"):
            self.assertLess(highest, 160 * 1024)  # the replies have 235 MB
        helper.reading.set()
        for call in calls:
            self.assertTrue(helper.reply(call)["result"]["ok"])


class Ends(Embeddings):
    def test_cancel_between_inputs(self):
        helper = self.helper()
        inputs = [script({"sleep_ms": 20}) for _ in range(1000)]
        call = helper.start("embeddings.create", {"input": inputs})
        wire.wait_until(lambda: helper.call("capabilities.get")["engine"]["state"] == "ready")
        cancel = helper.call("responses.cancel", {"request_id": call})
        self.assertTrue(cancel["ok"])
        data = cancel["embeddings"]["data"]
        self.assertLess(len(data), 1000)
        self.assertEqual([e["index"] for e in data], list(range(len(data))))
        self.assert_error(helper.reply(call)["result"], "CANCELLED")
        self.assertEqual(len(self.vectors(helper, "after")), 1)

    def test_cancel_while_it_waits(self):
        helper = self.helper(env={"FM_ENGINE_FAKE_LOAD": "slow:60000"})
        call = helper.start("embeddings.create", {"input": "x"})
        cancel = helper.call("responses.cancel", {"request_id": call})
        self.assertEqual((cancel["ok"], cancel["embeddings"]["data"]), (True, []))
        result = helper.reply(call)["result"]
        self.assert_error(result, "CANCELLED")
        self.assertNotIn("embeddings", result)

    def test_limits(self):
        helper = self.helper()
        self.vectors(helper, "warm")
        for input, fm, limit in (
            (["x", script({"hang": "soft"})], {"timeout_ms": 200}, "total"),
            (script({"hang": "soft"}), {"first_token_timeout_ms": 200}, "first_token"),
            (["x", script({"hang": "soft"})], {"no_progress_timeout_ms": 200}, "no_progress"),
        ):
            before = time.monotonic()
            result = self.embed(helper, input, fm=fm)
            self.assert_soon(time.monotonic() - before, 0.6 * SLOW)
            self.assertEqual(self.assert_error(result, "TIMEOUT")["limit"], limit)
            self.assert_undisturbed(len(result["embeddings"]["data"]) == isinstance(input, list), "a vector before the limit")
        engine = helper.engine_pid()
        self.assertEqual(len(self.vectors(helper, "x")), 1)
        self.assert_undisturbed(helper.engine_pid() == engine, "it goes on")

    def test_an_engine_that_does_not_stop_is_ended(self):
        helper = self.helper()
        before = time.monotonic()
        self.vectors(helper, "warm")
        engine = helper.engine_pid()
        result = self.embed(helper, script({"hang": "hard"}), fm={"timeout_ms": 100})
        self.assert_error(result, "TIMEOUT")
        self.assert_soon(time.monotonic() - before, 2 * SLOW)
        wire.wait_until(lambda: helper.engine_pid() != engine, "the engine's end")  # because it is idle
        self.assertEqual(len(self.vectors(helper, "x")), 1)

    def test_an_engine_that_dies(self):
        helper = self.helper()
        result = self.embed(helper, ["one", "two", script({"signal": "SEGV"})])
        self.assertIn("signal 11", self.assert_error(result, "INTERNAL")["detail"])
        self.assertEqual(len(result["embeddings"]["data"]), 2)
        self.assertEqual(len(self.vectors(helper, "x")), 1)

    def test_text_is_no_vector(self):
        """A job.delta, which the script sends, is not a vector."""
        result = self.embed(self.helper(), ["one", script("text")])
        self.assertIn("does not ask for", self.assert_error(result, "INTERNAL")["detail"])
        self.assertLessEqual(len(result["embeddings"]["data"]), 2)  # the vectors that came before it stopped

    def test_an_end_without_all_vectors(self):
        for word in ("length", "content_filter"):
            result = self.embed(self.helper(), ["one", script({"finish": word}), "three"])
            self.assertIn("all vectors", self.assert_error(result, "INTERNAL")["detail"])


class BadEngines(Embeddings):
    def result(self, body, method="embeddings.create", **params):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        foreign_engine.write(folder.name, "bad", f"""
            initialize()
            load()
            job = read()["params"]["job"]
            def embedding(**params):
                send(method="job.embedding", params={{"job": job, **params}})
            send(method="job.accepted", params={{"job": job, "input_tokens": 1, "dimension": 1}})
            {body}
            finish(job)
            read()
            """)
        helper = self.helper("--engine-dir", folder.name, engine="bad")
        return helper.call(method, params or {"input": ["a", "b"]})

    def test_vectors_out_of_order(self):
        for body, said in (
            ('embedding(index=1, vector="AACAPw==")', "out of order"),
            ('embedding(vector="AACAPw==")', "out of order"),
            ('embedding(index=0)', "without its text"),
            ('embedding(index=0, vector=[1])', "without its text"),
            ('embedding(index=0, vector="AACAPwAAgD8=")', "other than a vector of 1 numbers"),
            ('embedding(index=0, vector="AADAfw==")', "other than a vector of 1 numbers"),
            ('[embedding(index=i, vector="AACAPw==") for i in range(3)]', "more vectors"),
            ('embedding(index=0, vector="AACAPw==")', "all vectors"),
        ):
            result = self.result(body)
            self.assertIn(said, self.assert_error(result, "INTERNAL")["detail"], body)

    def test_dimensions_that_can_not_be(self):
        for dimension in ("0", "-1", "1 << 40", "None"):
            result = self.result(f'send(method="job.accepted", params={{"job": job, "dimension": {dimension}}})')
            self.assert_error(result, "INTERNAL")  # only the first job.accepted counts, and then no vectors come

    def test_a_vector_is_no_answer(self):
        result = self.result('embedding(index=0, vector="AACAPw==")', "responses.create", input="x")
        self.assertIn("does not ask for", self.assert_error(result, "INTERNAL")["detail"])


class Models(HelperTest):
    def test_retrieve(self):
        helper = self.helper("--strict-parameters")
        listed, = helper.call("models.list")["data"]
        result = helper.call("models.retrieve", {"id": "fake"})
        self.assertEqual(result, {"ok": True, **listed})
        for params, param, code in (
            ({}, "id", "missing_required_parameter"),
            ({"id": None}, "id", "missing_required_parameter"),
            ({"id": 5}, "id", "invalid_type"),
            ({"id": "fake\0"}, "id", "invalid_value"),
            ({"id": "fake", "more": 1}, "more", "unknown_parameter"),
        ):
            self.assert_error(helper.call("models.retrieve", params), "INVALID_REQUEST", param, code)
        for name in ("Fake", "", "fake.gguf"):
            error = self.assert_error(helper.call("models.retrieve", {"id": name}), "NOT_FOUND", "model", "model_not_found")
            self.assertEqual(error["openai"]["status"], 404)
        self.assertEqual(helper.call("models.retrieve")["error"]["code"], -32602)
        self.assertIsNone(helper.engine_pid())

    def test_of_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("one", "two"):
                with open(os.path.join(folder, f"{name}.gguf"), "wb") as file:
                    file.write(b"no model at all")  # the engine notices this when it uses the file
            helper = self.helper("--models-dir", folder, engine="llama")
            self.assertEqual([helper.call("models.retrieve", {"id": m["id"]}) for m in helper.call("models.list")["data"]],
                             [{"ok": True, **m} for m in helper.call("models.list")["data"]])
            self.assert_error(helper.call("models.retrieve", {"id": "three"}), "NOT_FOUND")


@unittest.skipUnless(os.path.exists(os.path.join(MODELS, f"{MODEL}.gguf")) and "thread" not in
                     os.environ.get("FM_SANITIZE", ""), "no model that embeds, or a build that it takes too long for")
class RealModel(Embeddings):
    def setUp(self):
        self.model = self.helper("--models-dir", MODELS, engine="llama", env={"FM_ENGINE_LLAMA_THREADS": "1"})

    def vectors(self, helper, input, **params):
        return super().vectors(helper, input, encoding_format="float", **params)

    def test_meaning(self):
        cat, kitten, tax = self.vectors(self.model, ["A cat sleeps.", "A kitten is asleep.", "The tax form is due."])
        dot = lambda a, b: sum(x * y for x, y in zip(a, b))
        self.assertGreater(dot(cat, kitten), 0.6)
        self.assertLess(dot(cat, tax), 0.2)
        small = self.vectors(self.model, ["A cat sleeps.", "A kitten is asleep.", "The tax form is due."], dimensions=128)
        self.assertGreater(dot(small[0], small[1]), dot(small[0], small[2]) + 0.3)

    def test_the_same_text_has_the_same_vector(self):
        alone, = self.vectors(self.model, "A cat sleeps.")
        among = self.vectors(self.model, ["x", "A cat sleeps.", "y " * 100, "A cat sleeps."], model=MODEL)
        self.assertEqual([among[1], among[3]], [alone, alone])

    def test_cancel(self):
        call = self.model.start("embeddings.create", {"input": ["word " * 500] * 300, "encoding_format": "base64"})
        wire.wait_until(lambda: self.model.call("capabilities.get")["engine"]["state"] == "ready")
        before = time.monotonic()
        self.assertTrue(self.model.call("responses.cancel", {"request_id": call})["ok"])
        self.assert_soon(time.monotonic() - before, 0.75 * SLOW)
        self.assert_error(self.model.reply(call)["result"], "CANCELLED")
        self.assertEqual(len(self.vectors(self.model, "after")[0]), 384)

    @unittest.skipUnless(CHAT, "the chat model is missing: sh packaging/setup.sh")
    def test_beside_a_chat_model(self):
        """Uses both models in turns. No engine is started after the first round, and each engine reports the memory of its
        model."""
        with tempfile.TemporaryDirectory() as folder:
            for file in (CHAT[0], os.path.join(MODELS, f"{MODEL}.gguf")):
                os.symlink(os.path.abspath(file), os.path.join(folder, os.path.basename(file)))
            chat = os.path.basename(CHAT[0]).removesuffix(".gguf")
            helper = self.helper("--models-dir", folder, engine="llama", env={"FM_ENGINE_LLAMA_THREADS": "1"})
            first, vectors = None, []
            for _ in range(100):
                result = helper.call("chat.completions.create", {
                    "model": chat, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1, "temperature": 0})
                self.assertTrue(result["ok"], result)
                vectors.append(self.vectors(helper, "A cat sleeps.", model=MODEL))
                first = first or set(wire.children(helper.pid))
                self.assertEqual(set(wire.children(helper.pid)), first)
            self.assertEqual(len(first), 2)
            self.assertEqual(helper.call("metrics.get")["engines"]["starts"], 2)
            self.assertTrue(all(vector == vectors[0] for vector in vectors))
            engines = {engine["model"]: engine for engine in helper.call("capabilities.get")["engines"]}
            self.assertEqual(set(engines), {chat, MODEL})
            sizes = {chat: os.path.getsize(CHAT[0]), MODEL: os.path.getsize(os.path.join(MODELS, f"{MODEL}.gguf"))}
            for model, engine in engines.items():  # the memory includes the KV memory, but not the file's vocabulary
                self.assertGreater(engine["memory_bytes"], 0.9 * sizes[model])
                self.assertLess(engine["memory_bytes"], 5 * sizes[model])
            both = sum(engine["memory_bytes"] for engine in engines.values())
            used = sum(memory_kib(pid, "VmRSS") for pid in first) * 1024
            self.assertLess(both, 2 * used, "more than a lot is not taken")

    def test_it_does_not_chat(self):
        result = self.model.call("responses.create", {"input": "hi"})
        self.assert_error(result, "INVALID_REQUEST", "model", "invalid_value")


if __name__ == "__main__":
    wire.main()
