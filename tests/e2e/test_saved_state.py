"""Tests what the llama engine saves when it ends, and the next engine uses. Uses the real model, through the whole helper.
Skipped, with the reason, if the engine or the model is missing."""

import glob
import os
import shutil
import signal
import struct
import sys
import tempfile
import time
import unittest

import gguf
import wire
from wire import SLOW, HelperTest, wait_until

MODELS = os.environ.get("FM_MODELS", os.path.join(wire.BIN, "..", "models"))
FILES = sorted(glob.glob(os.path.join(MODELS, "*.gguf")))
EMBEDDING = sorted(glob.glob(os.path.join(MODELS, "..", "models-embedding", "*.gguf")))
ENGINE = os.path.join(wire.BIN, "fm-engine-llama")
OTHER_RELEASE = os.path.join(os.path.abspath(wire.BIN), "..", "tests-bin", "libother_release.so")

FOX = "The quick brown fox jumps over the lazy dog. "  # ten tokens
LONG = FOX * 50
SHORT = FOX * 9
BLOCK = 128  # tokens that are saved together
LAYERS = 4  # layers of the model; few, because most tests do not check the text
BLOCK_BYTES = 128 * LAYERS * 2 * 192 * 2  # keys and values, their width, 2 bytes a number


def user(text):
    return [{"role": "user", "content": text}]


def checksum(data):
    """Returns the checksum at a saved file's end, as in helper/engine/llama/saved_file.c."""
    mask = 2 ** 64 - 1

    def mix(state, word):
        state = (state ^ word) * 0x9e3779b97f4a7c15 & mask
        return state ^ state >> 32
    lanes = [0, mask, 1, mask - 1]
    padded = bytes(data) + bytes(-len(data) % 32 or 32)
    for at in range(0, len(padded), 32):
        lanes = [mix(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", padded, at))]
    total = 0
    for lane in lanes:
        total = mix(total, lane)
    return struct.pack("<Q", mix(total, len(data)))


class SavedTest(HelperTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "kv")

    def start(self, *args, **env):
        env = {"FM_PROXY_NO_KV_CACHE_FILES": "0", "FM_PROXY_KV_CACHE_DIR": self.folder, **env}
        return self.helper("--model", gguf.shallow(FILES[0], LAYERS), *args, engine="llama", env=env)

    def ask(self, helper, messages, **params):
        """Returns the time to the first token, the answer's text, the prompt's tokens, and how many of these tokens were
        cached."""
        before = time.monotonic()
        call = self.create(helper, messages, **{"temperature": 0, "max_output_tokens": 8, **params})
        helper.event(call, "response.output_text.delta", timeout=240 * SLOW, keep=True)
        first = time.monotonic() - before
        result = helper.collect(call, timeout=240 * SLOW)[1]
        self.assertTrue(result["ok"], result)
        usage = result["response"]["usage"]
        return (first, result["response"]["output"][0]["content"][0]["text"], usage["input_tokens"],
                usage["input_tokens_details"]["cached_tokens"])

    def end(self, helper):
        helper.call("process.shutdown")
        self.assertEqual(helper.wait_exit(), 0)

    def assert_saved(self, cached, expected, least=180):
        """Checks which prompts were read from the saved file. When a helper ends, its engine has 0.4 s to save."""
        found = [count >= least for count in cached]
        self.assert_undisturbed(all(not b or a for a, b in zip(found, expected)), f"{cached} tokens were saved in time")
        self.assertEqual(found, expected, cached)

    def run_once(self, *conversations, **env):
        """Runs one helper; returns the answers to the conversations, and how much of each prompt was cached."""
        helper = self.start(**env)
        answers = [self.ask(helper, messages) for messages in conversations]
        self.end(helper)
        return [(text, cached) for _, text, _, cached in answers]

    def run_until_idle(self, *conversations, **env):
        """Does the same with an engine that ends because it is idle, and has more time to save."""
        helper = self.start("--idle-unload-ms", "1000", **env)
        for messages in conversations:
            self.ask(helper, messages)
        self.wait_engine_end(helper)
        self.end(helper)

    def files(self):
        return os.listdir(self.folder) if os.path.exists(self.folder) else []

    def only_file(self):
        self.assertEqual(len(self.files()), 1, self.files())
        return os.path.join(self.folder, self.files()[0])


class NextTurn(SavedTest):
    def test_after_an_idle_unload(self):
        """The next turn only needs the new tokens, and its usage says so."""
        helper = self.start("--model", FILES[0], "--idle-unload-ms", "200")  # the whole model, because it is slow
        turns = user(LONG + "What does it jump over?")
        cold, text, tokens, cached = self.ask(helper, turns)
        self.assertGreater(tokens, 500)
        self.assertEqual(cached, 0)
        self.wait_engine_end(helper)
        self.assertGreater(os.path.getsize(self.only_file()), tokens // BLOCK * BLOCK_BYTES)
        turns += [{"role": "assistant", "content": text}, *user("And what is it called?")]
        warm, text, more, cached = self.ask(helper, turns)
        self.assertGreaterEqual(cached, tokens + 8 - 2, "all but the new turn, and how the template ends the last one")
        self.assertLess(cached, more)
        self.assert_undisturbed(warm < cold / 2, f"{warm} s, and {cold} s with a whole prefill")

    def test_the_same_text_as_in_the_same_engine(self):
        turns = user(SHORT * 3 + "What does it jump over?")
        helper = self.start()
        text = self.ask(helper, turns)[1]
        turns += [{"role": "assistant", "content": text}, *user("And what is it called?")]
        self.end(helper)
        path = self.only_file()
        shutil.copy2(path, path + "-copy")
        (restored, cached), = self.run_once(turns)
        self.assert_saved([cached], [True])
        helper = self.start(FM_PROXY_NO_KV_CACHE_FILES="1")
        self.assertEqual(self.ask(helper, turns[:1])[1], text)
        _, kept, _, same = self.ask(helper, turns)
        self.assertEqual((kept, same), (restored, cached))

    def test_what_two_engines_computed(self):
        """Tokens that an engine did not use stay in the file."""
        one, other = user("One. " + SHORT * 2), user("Other. " + SHORT * 2)
        self.run_once(one)
        (_, cached), = self.run_once(other)
        self.assertLess(cached, 40, "what the template begins with")
        (_, first), (_, second) = self.run_once(one, other)
        self.assert_saved([first, second], [True, True])

    def test_nothing_new_is_not_written_again(self):
        self.run_once(user(SHORT * 2))
        inode = os.stat(self.only_file()).st_ino
        self.run_once()
        helper = self.start()
        self.ask(helper, user("Hi"))
        self.end(helper)
        self.assertEqual(os.stat(self.only_file()).st_ino, inode)

    def test_a_beginning_of_many_is_worth_most(self):
        """There is room for two blocks: the blocks of the instructions of three conversations are saved, and those of a longer
        conversation are not."""
        rules = {"role": "system", "content": "Be brief, and never talk of anything else. " + FOX * 28}
        requests = [[rules, *user(f"{name}: who are you?")] for name in ("Ann", "Bob", "Cid")]
        long, begin = (user("Tell me more. " + FOX * count) for count in (40, 14))
        room = {"FM_PROXY_KV_CACHE_BYTES": str(2 * int(2.2 * BLOCK_BYTES))}
        self.run_until_idle(*requests, long, **room)
        self.assertLess(os.path.getsize(self.only_file()), 2.2 * BLOCK_BYTES)
        (_, of_long), (_, of_rules) = self.run_once(begin, [rules, *user("Dan: where are you?")], **room)
        self.assertLess(of_long, 40)
        self.assertEqual(of_rules, 2 * BLOCK)

    def test_more_than_the_kv_memory_begins_with(self):
        """Four conversations; at first, the KV memory has room for two."""
        conversations = [user(f"{name} says: " + FOX * 40) for name in ("Ann", "Bob", "Cid", "Dan")]
        self.run_until_idle(*conversations)
        for _, cached in self.run_once(*conversations):
            self.assert_saved([cached], [True], 3 * BLOCK)


class NotUsed(SavedTest):
    """One answer and its file for all tests."""

    turns = user(SHORT * 2 + "What does it jump over?")
    saved = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.whole = os.path.join(folder.name, "whole")

    def setUp(self):
        super().setUp()
        if not self.saved:
            (text, _), = self.run_once(self.turns)
            shutil.copy2(self.only_file(), self.whole)
            type(self).saved = text, os.path.basename(self.only_file())
        self.text, self.name = self.saved
        self.restore_file()

    def restore_file(self):
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        shutil.copy2(self.whole, os.path.join(self.folder, self.name))

    def test_damaged(self):
        """One byte is wrong, in data, index or trailer. The damaged part and everything after it is computed, and the next file
        is whole."""
        size = os.path.getsize(self.whole)
        for at, whole_again in ((13, False), (BLOCK_BYTES // 2, False), (BLOCK_BYTES + 100, True), (size - 900, True),
                                (size - 60, True), (size - 1, False)):
            with self.subTest(at=at, size=size):
                self.restore_file()
                with open(self.only_file(), "r+b") as f:
                    f.seek(at)
                    byte = f.read(1)[0]
                    f.seek(at)
                    f.write(bytes([byte ^ 0x10]))
                (text, cached), = self.run_once(self.turns)
                self.assertEqual(text, self.text)
                self.assertIn(cached, (0, BLOCK), "blocks before the damaged one")
                if not whole_again:
                    continue
                (text, cached), = self.run_once(self.turns)
                self.assertEqual(text, self.text)
                self.assert_saved([cached], [True])

    def test_torn(self):
        for size in (0, 100, BLOCK_BYTES, os.path.getsize(self.whole) - 1):
            with self.subTest(size):
                self.restore_file()
                os.truncate(self.only_file(), size)
                (text, cached), = self.run_once(self.turns)
                self.assertEqual((text, cached), (self.text, 0))

    def test_of_another_context(self):
        """With another context, some models compute other numbers."""
        (text, cached), = self.run_once(self.turns, FM_ENGINE_LLAMA_CTX="2048")
        self.assertEqual((text, cached), (self.text, 0))
        (text, cached), = self.run_once(self.turns, FM_ENGINE_LLAMA_CTX="2048")
        self.assert_saved([cached], [True])

    def test_of_another_file(self):
        """Another model file, which has the same path and the same length."""
        path = os.path.join(os.path.dirname(self.folder), "model.gguf")
        shutil.copyfile(gguf.shallow(FILES[0], LAYERS), path)
        cached = []
        for changed in (None, None, 1):
            if changed:
                os.utime(path, (changed, changed))
            helper = self.start("--model", path)
            cached.append(self.ask(helper, self.turns)[3])
            self.end(helper)
        self.assert_saved(cached, [False, True, False])

    def test_what_llama_cpp_does_not_take(self):
        """The file has only half of the first block's bytes, although all checksums are right. The block is computed, and saved
        again."""
        with open(self.only_file(), "r+b") as f:
            data = bytearray(f.read())
            index, length = struct.unpack_from("<QQ", data, len(data) - 48)
            begin, size = struct.unpack_from("<QQ", data, index + 8)
            struct.pack_into("<Q8s", data, index + 16, size // 2, checksum(data[begin:begin + size // 2]))
            data[-32:-24] = checksum(data[index:index + length])
            data[-8:] = checksum(data[-64:-8])
            f.seek(0)
            f.write(data)
        cached = []
        for _ in range(2):
            (text, count), = self.run_once(self.turns)
            self.assertEqual(text, self.text)
            cached.append(count)
        self.assert_saved(cached, [False, True])

    @unittest.skipUnless(os.path.exists(OTHER_RELEASE), "the library is built for Linux, and not with ThreadSanitizer")
    def test_of_another_release(self):
        """Tests another release with the same version: only the commit shows the difference."""
        engines = os.path.join(os.path.dirname(self.folder), "engines")
        os.mkdir(engines)
        shutil.copy(ENGINE + ".json", engines)
        path = os.path.join(engines, "fm-engine-llama")
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\nexport ASAN_OPTIONS=verify_asan_link_order=0:$ASAN_OPTIONS LD_PRELOAD={OTHER_RELEASE}\n"
                       f"exec {os.path.abspath(ENGINE)}\n")
        os.chmod(path, 0o755)
        cached = []
        for _ in range(2):
            helper = self.start("--engine-dir", engines)
            cached.append(self.ask(helper, self.turns)[3])
            self.end(helper)
        self.assert_saved(cached, [False, True])

    def test_by_option(self):
        (text, cached), = self.run_once(self.turns, FM_PROXY_NO_KV_CACHE_FILES="1")
        self.assertEqual((text, cached), (self.text, 0))

    def test_by_what_must_be_repeatable(self):
        """A request with a seed, or an engine where every request is repeatable, computes as in a fresh process, from whole
        chunks."""
        helper = self.start()
        self.assertEqual(self.ask(helper, self.turns, seed=1)[3], 0)
        self.end(helper)
        self.restore_file()
        (_, cached), = self.run_once(self.turns, FM_ENGINE_LLAMA_REPEATABLE="1")
        self.assertEqual(cached, 0)

    def test_an_engine_that_is_killed_saves_nothing(self):
        helper = self.start()
        self.ask(helper, user("Another one. " + SHORT * 3))
        os.kill(helper.engine_pid(), signal.SIGKILL)
        wait_until(lambda: len(self.files()) == 1, "the end of the new file")
        helper.close()
        with open(self.whole, "rb") as whole, open(self.only_file(), "rb") as now:
            self.assertEqual(whole.read(), now.read())


class Ends(SavedTest):
    def test_in_time(self):
        """This also holds while a prompt is computed. The KV memory has grown before, because on a busy machine growing takes as
        long."""
        helper = self.start()
        self.ask(helper, user("First this. " + LONG * 3))
        self.ask(helper, user(LONG))
        call = self.create(helper, user("Now this. " + LONG * 3))
        helper.event(call, "response.in_progress")
        before = time.monotonic()
        helper.call("process.shutdown")
        self.assertEqual(helper.wait_exit(), 0)
        self.assert_soon(time.monotonic() - before, 2 * SLOW)
        (_, cached), = self.run_once(user(LONG))
        self.assert_undisturbed(cached > 450, f"{cached} tokens were saved in time")

    def test_a_model_that_embeds_leaves_nothing(self):
        if not EMBEDDING:
            self.skipTest("no model that embeds; packaging/setup.sh downloads it")
        helper = self.start("--model", EMBEDDING[0])
        self.assertEqual(len(helper.call("embeddings.create", {"input": "x"})["embeddings"]["data"]), 1)
        self.end(helper)
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    for needed in (ENGINE, *(FILES or [os.path.join(MODELS, "*.gguf")])):
        if not os.path.exists(needed):
            print(f"skipped: there is no {needed}; packaging/setup.sh brings it")
            sys.exit(77)
    wire.main()
