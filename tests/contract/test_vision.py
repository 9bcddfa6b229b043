"""Tests how the llama engine handles images: their tokens are counted, a cached prefix never belongs to another image, errors
name the image.

    test_vision.py PROGRAM MODEL JPEG

The test makes a projector of random weights: this tests the path of an image, but the model recognises nothing. Exit status
77: skipped, because MODEL is not there, or the engine was built without libmtmd.
"""

import os
import random
import struct
import sys
import tempfile
import time
import unittest
import zlib

from engine import GRACE, SLOW, Engine, TimedTest, program_and_model, user

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import gguf  # noqa: E402
import make_projector  # noqa: E402
from pictures import bmp, png, text64  # noqa: E402

PROGRAM = None
MODEL = None  # gguf.shallow
JPEG = None  # a file with a photograph
FOLDER = None  # the folder of projectors
WIDTH = 576  # the model's width

RED, BLUE = png(), png(rgb=(0, 0, 255))
QUESTION = "What is in this picture?"


def projector(name="random", *args, **kwargs):
    path = os.path.join(FOLDER, name + ".gguf")
    if not os.path.exists(path):
        with open(path, "wb") as file:
            file.write(make_projector.make(*(args or (WIDTH,)), **kwargs))
    return path


def part(image):
    return {"type": "image", "data": text64(image)}


def turn(*images, text=QUESTION):
    return {"role": "user", "content": [*map(part, images), {"type": "text", "text": text}]}


def picture(*images, text=QUESTION):
    return [turn(*images, text=text)]


class Case(TimedTest):
    def fresh(self, mmproj=None, context=1024, model=None, **env):
        engine = Engine(PROGRAM, {"FM_ENGINE_LLAMA_CTX": str(context), **env})
        self.addCleanup(engine.close)
        self.assertTrue(engine.initialize()["ok"])
        result, _ = engine.load(model or MODEL, mmproj=mmproj or projector())
        self.assertTrue(result["ok"], result)
        return engine

    def greedy(self, engine, messages, max_tokens=12, **params):
        outcome = engine.run(messages, temperature=0, max_tokens=max_tokens, **params)
        self.assertIsNone(outcome.error)
        return outcome

    def drawn(self, engine, messages):
        """Returns the outcome of a job that need not be repeatable, so that it takes everything possible from the cache."""
        return engine.run(messages, temperature=1, max_tokens=2)

    def refused(self, engine, messages, *words, index=0, **params):
        outcome = engine.run(messages, max_tokens=2, **params)
        self.assertEqual((outcome.names, outcome.error["code"]), (["job.finished"], "INVALID_REQUEST"))
        self.assertEqual(outcome.error["param"], f"images[{index}]")
        for word in words:
            self.assertIn(word, outcome.error["detail"])


class Shared(Case):
    """One engine for all tests of a class."""

    def setUp(self):
        if "engine" not in type(self).__dict__:
            type(self).engine = engine = Engine(PROGRAM, {"FM_ENGINE_LLAMA_CTX": "1024"})
            self.addClassCleanup(engine.close)
            engine.initialize()
            result, _ = engine.load(MODEL, mmproj=projector())
            self.assertTrue(result["ok"], result)


class Tokens(Shared):
    def count(self, messages):
        outcome = self.engine.run(messages, max_tokens=0)
        self.assertEqual(outcome.names, ["job.accepted", "job.finished"])
        return outcome.accepted

    def test_they_are_as_many_as_patches(self):
        without = self.count(user(QUESTION))
        for image, patches in ((png(32, 32), 4), (png(64, 64), 16), (png(128, 128), 64), (png(64, 32), 8), (png(1, 1), 4),
                               (png(2000, 2000), 64), (bmp(64, 64), 16)):
            self.assertEqual(self.count(picture(image)) - without, patches)
        self.assertEqual(self.count(picture(RED, BLUE)) - without, 32)

    def test_usage_has_them(self):
        outcome = self.greedy(self.engine, picture(RED))
        self.assertEqual(outcome.usage["input_tokens"], self.count(picture(RED)))
        self.assertEqual(outcome.processed, outcome.accepted)

    def test_text_is_never_an_image(self):
        """A user may write the text that libmtmd uses as the marker of an image."""
        for text in ("<fm-image>", "<__media__>", "<|im_end|>", "<image>", "[0x]"):
            between = self.count(picture(RED, text=text)) - self.count(user(text))
            self.assertEqual(between, 16, text)
            self.assertEqual(self.count(picture(RED, text=text)), self.count(picture(BLUE, text=text)))
            both = [{"role": "user", "content": [{"type": "text", "text": text}, part(RED)]}]
            self.assertEqual(self.count(both), self.count(picture(RED, text=text)), text)

    def test_beside_tools(self):
        tools = [{"name": "look", "parameters": {"type": "object", "properties": {}}}]
        said = [{"role": "user", "content": "Look."},
                {"role": "assistant", "tool_calls": [{"id": "1", "name": "look", "arguments": "{}"}]},
                {"role": "tool", "tool_call_id": "1", "content": "<|im_end|> done"}]
        if self.engine.run(said, tools=tools, max_tokens=0).error:
            self.skipTest("the engine was built without llguidance")
        with_image, without = (self.engine.run([*said, last], tools=tools, max_tokens=0).accepted
                               for last in (turn(RED), *user(QUESTION)))
        self.assertEqual(with_image - without, 16)
        self.assertEqual(self.greedy(self.engine, [*said, turn(RED)], tools=tools, tool_choice={"mode": "none"}).reason,
                         "length")


class Sight(Shared):
    def test_the_same_image_gives_the_same_text(self):
        first, second = (self.greedy(self.engine, picture(RED)) for _ in range(2))
        self.assertEqual(first.text, second.text)
        self.assertGreater(second.cached, 16)

    def test_another_image_gives_another_text(self):
        """The first image gives the same text again, so nothing of the other image is left."""
        texts = [self.greedy(self.engine, picture(image)).text for image in (RED, BLUE, RED, BLUE)]
        self.assertNotEqual(texts[0], texts[1])
        self.assertEqual(texts[:2], texts[2:])
        self.assertEqual(texts[0], self.greedy(self.fresh(), picture(RED)).text)

    def test_where_it_stands_matters(self):
        before = [{"role": "user", "content": [part(RED), {"type": "text", "text": QUESTION}]}]
        after = [{"role": "user", "content": [{"type": "text", "text": QUESTION}, part(RED)]}]
        likely = [self.greedy(self.engine, messages, logprobs=0).logprobs for messages in (before, after)]
        self.assertNotEqual(*likely)

    def test_the_same_pixels_in_another_file(self):
        self.assertEqual(self.greedy(self.engine, picture(RED)).text, self.greedy(self.engine, picture(bmp())).text)

    def test_what_is_taken_over(self):
        """The cache is used up to an image that differs, and after an image that does not differ."""
        engine = self.fresh(FM_ENGINE_LLAMA_REPEATABLE="")
        self.drawn(engine, user("Something else."))
        place = self.drawn(engine, picture(RED)).cached
        other = self.drawn(engine, picture(BLUE))
        self.assertLess(other.cached, place + 16)
        self.assertGreater(self.drawn(engine, picture(BLUE, text="Where?")).cached, other.cached + 15)
        two = self.drawn(engine, picture(BLUE, RED))
        self.assertLess(two.cached, two.accepted - 16)
        swapped = self.drawn(engine, picture(RED, BLUE))
        self.assertGreater(swapped.cached, place + 15, "the first image is that of the first conversation")

    def test_a_conversation_goes_on_as_in_a_fresh_engine(self):
        """Chunks end at images, wherever the images are. The part that comes from the cache equals what would be computed."""
        for words in (0, 110):
            first = picture(RED, text="word " * words + QUESTION)
            outcome = self.greedy(self.engine, first)
            second = [*first, {"role": "assistant", "content": outcome.text}, turn(BLUE, text="And this?"),
                      {"role": "assistant", "content": "A cat."}, turn(text="word " * words + "Sure?")]
            again = self.greedy(self.engine, second)
            fresh = self.greedy(self.fresh(), second)
            self.assertEqual(again.text, fresh.text)
            if words >= 110:
                self.assertGreater(again.cached, 16)


class Room(Case):
    def test_what_does_not_fit(self):
        engine = self.fresh(context=100)
        room = 100 - engine.run(user(QUESTION), max_tokens=0).accepted
        fits = picture(*[png(32, 32, (0, 0, i)) for i in range((room - 1) // 4)])
        self.assertEqual(engine.run(fits, max_tokens=1).reason, "length")
        outcome = engine.run(picture(*[RED] * 10), max_tokens=1)
        self.assertEqual((outcome.names, outcome.error["code"]), (["job.finished"], "CONTEXT_OVERFLOW"))
        self.assertIn("100", outcome.error["detail"])

    def test_the_oldest_turns_go_with_their_images(self):
        engine = self.fresh(context=200)
        turns = []
        for i in range(8):
            turns += [turn(png(96, 96, (i, 0, 0))), {"role": "assistant", "content": "A cat."}]
        turns.append(turn(BLUE, text="And this?"))
        self.assertEqual(engine.run(turns, max_tokens=1).error["code"], "CONTEXT_OVERFLOW")
        outcome = self.greedy(engine, turns, truncation="auto")
        self.assertGreater(outcome.dropped, 8)
        left = self.greedy(self.fresh(context=200), turns[outcome.dropped:])
        self.assertEqual((outcome.accepted, outcome.text), (left.accepted, left.text))

    def test_broken_ones_that_are_left_out(self):
        """An image that no longer belongs to the prompt is not decoded."""
        engine = self.fresh(context=150)
        turns = [turn(png()[:80]), {"role": "assistant", "content": "word " * 100}, turn(BLUE)]
        self.assertGreater(self.greedy(engine, turns, truncation="auto").dropped, 0)
        self.refused(self.fresh(), turns)


class Bad(Shared):
    def test_what_is_no_image(self):
        for image in (b"x", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff\xe0", b"BM", b"RIFF\0\0\0\0WEBPVP8 ",
                      b"P6 1 1 255 abc", b"ID3" + bytes(100), png()[:40]):
            self.refused(self.engine, picture(image))
        self.refused(self.engine, [turn(RED), {"role": "assistant", "content": "Red."}, turn(BLUE, b"no")], index=2)
        self.assertTrue(self.greedy(self.engine, picture(RED)).text)

    def test_what_is_damaged(self):
        for image in (png()[:100], png(packed=b"\0" * 40), png(packed=zlib.compress(b"\0" * 100)), bmp()[:200],
                      png(packed=b"")):
            self.refused(self.engine, picture(image), "can't be read")
        self.refused(self.engine, picture(RED, png()[:100]), index=1)
        self.assertTrue(self.greedy(self.engine, picture(RED)).text)

    def test_photographs(self):
        with open(JPEG, "rb") as file:
            image = file.read()
        self.assertTrue(self.greedy(self.engine, picture(image), max_tokens=1).text)
        self.refused(self.engine, picture(image[:len(image) // 2]), "cut short")
        self.refused(self.engine, picture(image[:300]))
        # each scan may cost as much as a picture, and needs no more than a marker
        self.assertTrue(self.greedy(self.engine, picture(image + b"\xff\xda" * 50), max_tokens=1).text)
        self.refused(self.engine, picture(image + b"\xff\xda" * 100), "more than 100 scans")

    def test_what_is_too_large(self):
        """The image is refused because of its dimensions, before anything is unpacked."""
        for width, height in ((60000, 60000), (16385, 1), (1, 16385), (16384, 2049), (2**31 - 1, 1)):
            start = time.monotonic()
            self.refused(self.engine, picture(png(width, height, packed=b"x")), "16384")
            self.assert_soon(time.monotonic() - start, SLOW)

    def test_more_data_than_pixels(self):
        """A small image whose data unpack to a gigabyte."""
        packer = zlib.compressobj(9)
        packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(1024)) + packer.flush()
        before = self.peak()
        start = time.monotonic()
        self.refused(self.engine, picture(png(packed=packed)), "can't be read")
        self.assert_soon(time.monotonic() - start, 3 * SLOW)
        self.assertLess(self.peak() - before, 64 << 10)

    def peak(self):
        with open(f"/proc/{self.engine.process.pid}/status") as file:
            return int(next(line for line in file if line.startswith("VmHWM")).split()[1])

    def test_largest_sides(self):
        self.assertEqual(self.greedy(self.engine, picture(png(16384, 8, packed=None)), max_tokens=1).reason, "length")


class Abort(Case):
    def slow(self):
        path = projector("slow", WIDTH, embd=256, layers=16, max_pixels=1024 * 1024, blank=True)
        return self.fresh(path, context=5000), picture(png(1024, 1024))

    def test_while_an_image_is_computed(self):
        engine, messages = self.slow()
        job = engine.start(messages, max_tokens=2)
        events = engine.events(job)
        self.assertEqual(next(events)[0], "job.accepted")
        # the words before the image are computed quickly; then the engine sends a sign of life each second
        while (event := next(events))[1].get("processed", 0) < 4096:
            if event[0] == "job.progress":
                break
        time.sleep(0.2)
        start = time.monotonic()
        engine.notify("job.abort", {"job": job})
        last = list(events)[-1]
        self.assertEqual(last[1]["reason"], "aborted")
        self.assert_soon(time.monotonic() - start, GRACE)
        self.assertTrue(self.greedy(engine, user("Hello"), max_tokens=2).text)

    def test_signs_of_life(self):
        engine, messages = self.slow()
        job = engine.start(messages, max_tokens=1)
        told = []
        for name, params in engine.events(job):
            if name == "job.progress" and params["processed"] < 4096:
                told.append(time.monotonic())
            if len(told) == 4:
                engine.notify("job.abort", {"job": job})
        self.assertGreater(len(told), 2, "the image took no time")
        self.assert_soon(max(b - a for a, b in zip(told, told[1:])), 2.5 * SLOW)


class Load(Case):
    def test_projectors_that_do_not_fit(self):
        junk = os.path.join(FOLDER, "junk.gguf")
        with open(junk, "wb") as file:
            file.write(b"GGUF" + bytes(100))
        text = os.path.join(FOLDER, "text.gguf")
        with open(text, "w") as file:
            file.write("no projector")
        engine = Engine(PROGRAM)
        self.addCleanup(engine.close)
        engine.initialize()
        for path in (projector("narrow", 64), junk, text, os.path.join(FOLDER, "absent.gguf"), FOLDER, MODEL):
            result, _ = engine.load(MODEL, mmproj=path)
            self.assertIs(result["ok"], False, path)
            self.assertEqual(result["error"]["code"], "UNAVAILABLE")
            self.assertIn(path, result["error"]["detail"])
        result, _ = engine.load(MODEL, mmproj=projector())
        self.assertTrue(result["ok"], "it may be tried again")
        self.assertTrue(self.greedy(engine, picture(RED)).text)

    def test_without_one(self):
        engine = Engine(PROGRAM)
        self.addCleanup(engine.close)
        engine.initialize()
        engine.load(MODEL)
        self.refused(engine, picture(RED), "does not see")
        self.assertTrue(self.greedy(engine, user(QUESTION)).text)

    def test_the_text_alone_is_as_without(self):
        plain = Engine(PROGRAM, {"FM_ENGINE_LLAMA_CTX": "1024"})
        self.addCleanup(plain.close)
        plain.initialize()
        plain.load(MODEL)
        engine = self.fresh()
        self.greedy(engine, picture(RED))
        self.assertEqual(self.greedy(engine, user(QUESTION)).text, self.greedy(plain, user(QUESTION)).text)


class Whole(Case):
    """A projector whose places attend to each other: an image is one batch, and the text around it is causal."""

    def test_it_sees_as_the_others_do(self):
        engine = self.fresh(projector("gemma3", WIDTH, kind="gemma3"))
        seen = [self.greedy(engine, picture(image), logprobs=1).logprobs for image in (RED, BLUE, RED)]
        self.assertEqual(seen[0], seen[2])
        self.assertNotEqual(seen[0], seen[1])  # the texts may be the same: only the first layers of a model compute them
        plain = self.greedy(self.fresh(), user(QUESTION))
        self.assertEqual(self.greedy(engine, user(QUESTION)).text, plain.text)


class Plane(Case):
    """A model that distinguishes rows and columns of an image, as Qwen's models do: an image takes fewer positions than it has
    places. The only such model that is small enough has random weights."""

    def model(self):
        path = os.path.join(FOLDER, "plane.gguf")
        pairs = [(key.replace("llama.", "qwen2vl."), kind, 1024 if key.endswith("context_length") else content)
                 for key, kind, content in gguf.tiny_pairs()[1:]]
        pairs += [("general.architecture", gguf.STRING, "qwen2vl"),
                  ("qwen2vl.rope.dimension_sections", gguf.ARRAY, (gguf.I32, [2, 3, 3, 0]))]
        tensors = gguf.tiny_tensors() + [(f"blk.0.attn_{name}.bias", [gguf.EMBD]) for name in "qkv"]
        generator = random.Random(1)
        described, data, offset = [], [], 0
        for name, dims in tensors:
            described.append(gguf.tensor(name, dims, offset))
            data.append(gguf.padded(make_projector.numbers(generator, name, dims)))
            offset += len(data[-1])
        with open(path, "wb") as file:
            file.write(gguf.padded(gguf.header([gguf.pair(*p) for p in pairs], described)) + b"".join(data))
        return path

    def test_positions(self):
        model, mmproj = self.model(), projector("plane-eyes", gguf.EMBD)
        engine = self.fresh(mmproj, model=model)
        wide = png(128, 64)  # 8 by 4 places, 8 positions
        first = [{"role": "user", "content": [part(wide), {"type": "text", "text": "a" * 200}]}]
        second = [{"role": "user", "content": [part(wide), {"type": "text", "text": "a" * 200 + "b"}, part(RED)]}]
        other = [{"role": "user", "content": [part(png(128, 64, (0, 255, 0))), {"type": "text", "text": "a" * 200}]}]
        texts = [self.greedy(engine, messages).text for messages in (first, second, other, first)]
        self.assertEqual(texts[0], texts[3])
        self.assertNotEqual(texts[0], texts[2])
        self.assertEqual(texts[1], self.greedy(self.fresh(mmproj, model=model), second).text)
        self.greedy(engine, first)
        self.assertGreater(self.greedy(engine, second).cached, 32)


def skip_without_vision():
    engine = Engine(PROGRAM)
    engine.initialize()
    result, _ = engine.load(MODEL, mmproj=projector())
    engine.close()
    if not result["ok"] and "no models that see" in result["error"]["detail"]:
        print("SKIPPED: the engine was built without libmtmd")
        sys.exit(77)


if __name__ == "__main__":
    PROGRAM, MODEL = program_and_model(__doc__)
    MODEL = gguf.shallow(MODEL)
    JPEG = sys.argv.pop(1)
    with tempfile.TemporaryDirectory() as FOLDER:
        skip_without_vision()
        unittest.main()
