"""Tests what the llama engine keeps from a conversation, with each kind of memory that llama.cpp has (small_models.py): how many
tokens of a prompt it does not read again, and that its answer equals the answer of an engine that has read the whole prompt.

    test_kept_states.py PROGRAM
"""

import os
import random
import struct
import sys
import tempfile
import unittest

import small_models
from engine import SLOW, WAIT, Engine, Outcome, user

PROGRAM = None
SLOW_READS = None

RULES = "Be brief. " + "".join(chr(98 + (i * i * 7 + i // 5) % 25) for i in range(640))
TOKENS = 12
QUESTION = "What jumps over the dog, and over which of all dogs that there are?"


def system(text):
    return [{"role": "system", "content": text}]


def assistant(text):
    return [{"role": "assistant", "content": text}]


def rendered(messages):
    """The messages as text, as in small_models.TEMPLATE; a token is a byte."""
    return "".join(f"<{m['role']}>{m['content'].split('</think>')[-1]}\n" for m in messages) + "<assistant>"


def shared(one, other):
    return len(os.path.commonprefix([rendered(one), rendered(other)]))


class Kept:
    """The tests, for a model of the kind `kind`."""

    @classmethod
    def setUpClass(cls):
        cls.file = small_models.file(cls.kind)
        cls.cold = cls.start(FM_ENGINE_LLAMA_REPEATABLE="1")  # reads each prompt from the beginning

    @classmethod
    def start(cls, saved=(), **env):
        """`saved`: the files from which the engine reads its state, and to which it writes its state."""
        env = {"FM_ENGINE_LLAMA_REPEATABLE": "", "FM_ENGINE_LLAMA_SLOTS": "1", **env}
        engine = Engine(PROGRAM, env, pass_fds=[file.fileno() for file in saved])
        cls.addClassCleanup(engine.close)
        engine.initialize()
        files = dict(zip(("write", "read"), (file.fileno() for file in saved)), max_bytes=1 << 28)
        assert engine.load(cls.file, **({"saved": files} if saved else {}))[0]["ok"]
        return engine

    def end(self, engine):
        """Ends the engine, which saves its state."""
        engine.notify("engine.shutdown", {"save_ms": int(3000 * SLOW)})
        self.assertEqual(engine.receive()["method"], "engine.saved")
        engine.wait_exit(WAIT)

    def ask(self, engine, messages, least=0):
        """Returns the answer, and how many tokens were cached, which must be at least `least`."""
        job = engine.start(messages, max_tokens=TOKENS, temperature=0, logprobs=0)
        engine.until(job, "job.finished")
        events, engine.seen = [(message["method"], message["params"]) for message in engine.seen], []
        self.unusable = [params["reason"] for method, params in events if method == "engine.saved_unusable"]
        outcome = Outcome(event for event in events if event[0] != "engine.saved_unusable")
        whole = self.cold.run(messages, max_tokens=TOKENS, temperature=0, logprobs=0)
        self.assertEqual(outcome.accepted, len(rendered(messages)))
        self.assertEqual((outcome.text, outcome.reason), (whole.text, "length"))
        for entry, other in zip(outcome.logprobs, whole.logprobs):
            self.assertAlmostEqual(entry["logprob"], other["logprob"], delta=0.01)
        self.assertGreaterEqual(outcome.cached, least)
        return outcome.text, outcome.cached

    def new_file(self):
        file = tempfile.TemporaryFile()
        self.addCleanup(file.close)
        return file

    def start_after(self, saved, messages, least):
        """Starts an engine from the `saved` state, and lets it answer; returns the engine and the file for its state. If another
        program uses the processor, reading may take longer than computing, and the engine gives up reading. Then another engine
        tries."""
        for _ in range(5):
            own = self.new_file()
            engine = self.start([own, saved])
            _, cached = self.ask(engine, messages)
            if cached >= least:
                break
        self.assertGreaterEqual(cached, least)
        return engine, own

    def test_next_turns(self):
        """The next turn continues. Then the previous answer differs, because the host changed it or the template dropped a
        thought. Then the question differs."""
        engine = self.start()
        first = system(RULES) + user(QUESTION)
        text, _ = self.ask(engine, first)
        second = first + assistant(text) + user("Why?")
        self.ask(engine, second, len(rendered(first)) + TOKENS - 1)
        third = first + assistant("The fox.") + user("Why does it do so?")
        self.ask(engine, third, 0.95 * shared(second, third))
        fourth = third[:-1] + user("Whose dog is it?")
        self.ask(engine, fourth, 0.95 * shared(third, fourth))

    def test_after_a_restart(self):
        """An answer is changed, and another conversation has the same beginning. Then an engine that has used neither of them
        saves both again."""
        first = system(RULES) + user(QUESTION)
        second = first + assistant("The fox.") + user("Why does it do so?")
        other = second[:2] + assistant("The quick brown fox.") + user("And over which of them all does it jump then?")
        one = self.new_file()
        engine = self.start([one])
        text, _ = self.ask(engine, first)
        goes_on = first + assistant(text) + user("Why?")
        self.end(engine)
        engine, two = self.start_after(one, second, 0.95 * shared(first, second))
        self.end(engine)
        engine, _ = self.start_after(two, goes_on, len(rendered(first)) + TOKENS - 1)
        self.ask(engine, other, 0.95 * shared(second, other))

    def test_a_damaged_file(self):
        """The engine computes the damaged part and everything after it, or the whole prompt."""
        first = system(RULES[:300]) + user(QUESTION)
        with tempfile.TemporaryFile() as whole:
            engine = self.start([whole])
            self.ask(engine, first)
            self.end(engine)
            data = os.pread(whole.fileno(), os.fstat(whole.fileno()).st_size, 0)
        index, = struct.unpack_from("<Q", data, len(data) - 48)  # the blocks come before this part of the file
        seen = []
        for at in range(index // 8, index, index // 4):
            with tempfile.TemporaryFile() as damaged, tempfile.TemporaryFile() as new:
                damaged.write(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
                damaged.flush()
                self.ask(self.start([new, damaged]), first)
                seen += self.unusable
        self.assertIn("the file is damaged", seen)

    @unittest.skipUnless(sys.platform == "linux", "the slow disk is a library for glibc's LD_PRELOAD")
    def test_a_slow_disk(self):
        """A short stall costs nothing. Reading that would take longer than computing is given up."""
        first = system(RULES) + user(QUESTION)
        with tempfile.TemporaryFile() as whole:
            engine = self.start([whole])
            text, _ = self.ask(engine, first)
            goes_on = first + assistant(text) + user("Why?")
            self.end(engine)
            for ms, least in (10, len(rendered(first)) + TOKENS - 1), (1000, 0):
                with self.subTest(ms=ms):
                    slow = {"LD_PRELOAD": SLOW_READS, "FM_SLOW_READS_MS": str(ms)}
                    slow["ASAN_OPTIONS"] = "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")
                    for _ in range(5):
                        with tempfile.TemporaryFile() as new:
                            _, cached = self.ask(self.start([new, whole], **slow), goes_on)
                        # If another program uses the processor, reading takes longer than `ms`, and may be given up.
                        if cached >= least:
                            break
                    self.assertGreaterEqual(cached, least)
                    self.assertEqual(cached > 0, least > 0)

    def test_beside_each_other(self):
        """Other prompts continue from the place where two prompts have differed, also from a prompt whose answer is being
        made."""
        engine = self.start(FM_ENGINE_LLAMA_SLOTS="3")
        turns = [system(RULES) + user(name + " asks: " + QUESTION) for name in ("Ann", "Bob", "Cid", "Dan")]
        for messages in turns[:2]:
            self.ask(engine, messages)
        jobs = [engine.start(messages, max_tokens=TOKENS, temperature=0) for messages in turns]
        for messages, outcome in zip(turns, engine.outcomes(jobs)):
            self.assertEqual(outcome.text, self.cold.run(messages, max_tokens=TOKENS, temperature=0).text)
            self.assertGreaterEqual(outcome.cached, 0.95 * len(RULES))


class Full(Kept, unittest.TestCase):
    kind = "full"


class Window(Kept, unittest.TestCase):
    kind = "window"

    def test_what_others_overwrote(self):
        """Each conversation has a text of its own. D takes the place of A. In the layers that keep all tokens, E takes the place
        of C. In the other layers, E takes the cells of B that are out of the window."""
        engine = self.start(FM_ENGINE_LLAMA_CTX="1024", FM_ENGINE_LLAMA_KV_TOKENS="2048")
        lengths = {"A": 600, "B": 720, "C": 640, "D": 670, "E": 300}
        texts = {name: "".join(random.Random(name).choices("bcdefghijklmnopq", k=length)) for name, length in lengths.items()}
        for text in texts.values():
            self.ask(engine, user(text))
        self.ask(engine, user(texts["B"][:300]))


class Hybrid(Kept, unittest.TestCase):
    kind = "hybrid"


class Delta(Kept, unittest.TestCase):
    kind = "delta"

    def test_memory(self):
        """Half of the layers have keys and values."""
        engine = Engine(PROGRAM, {"FM_ENGINE_LLAMA_KV_TOKENS": "8192"})
        self.addCleanup(engine.close)
        engine.initialize()
        memory = engine.load(self.file)[0]["memory_bytes"]
        kv = 8192 * 2 * 2 * small_models.EMBD * small_models.LAYERS // 2
        self.assertAlmostEqual(memory - kv, os.path.getsize(self.file), delta=kv // 8)


class Recurrent(Kept, unittest.TestCase):
    kind = "recurrent"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    SLOW_READS = os.path.join(os.path.dirname(PROGRAM), "..", "tests-bin", "libslow_reads.so")
    unittest.main(verbosity=2)
