"""What the llama engine keeps of a conversation, with each kind of memory that llama.cpp has (small_models.py): how many tokens
of a prompt it does not read again, and that the answer is the one of an engine that has read all of it.

    test_kept_states.py PROGRAM
"""

import os
import sys
import tempfile
import unittest

import small_models
from engine import Engine, user

PROGRAM = None

RULES = "Be brief. " + "".join(chr(98 + (i * i * 7 + i // 5) % 25) for i in range(640))
TOKENS = 12
QUESTION = "What jumps over the dog, and over which of all dogs that there are?"


def system(text):
    return [{"role": "system", "content": text}]


def assistant(text):
    return [{"role": "assistant", "content": text}]


def rendered(messages):
    """small_models.TEMPLATE; a token is a byte."""
    return "".join(f"<{m['role']}>{m['content'].split('</think>')[-1]}\n" for m in messages) + "<assistant>"


def shared(one, other):
    return len(os.path.commonprefix([rendered(one), rendered(other)]))


class Kept:
    """Tests of the model `kind`."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.file = os.path.join(folder.name, cls.kind + ".gguf")
        with open(cls.file, "wb") as file:
            file.write(small_models.make(cls.kind))
        cls.cold = cls.start(FM_ENGINE_LLAMA_REPEATABLE="1")  # reads each prompt as if it were its first

    @classmethod
    def start(cls, **env):
        engine = Engine(PROGRAM, {"FM_ENGINE_LLAMA_REPEATABLE": "", "FM_ENGINE_LLAMA_SLOTS": "1", **env})
        cls.addClassCleanup(engine.close)
        engine.initialize()
        assert engine.load(cls.file)[0]["ok"]
        return engine

    def ask(self, engine, messages, least=0):
        """The answer, and how many tokens were read already: at least `least`."""
        outcome = engine.run(messages, max_tokens=TOKENS, temperature=0, logprobs=0)
        whole = self.cold.run(messages, max_tokens=TOKENS, temperature=0, logprobs=0)
        self.assertEqual(outcome.accepted, len(rendered(messages)))
        self.assertEqual((outcome.text, outcome.reason), (whole.text, "length"))
        for entry, other in zip(outcome.logprobs, whole.logprobs):
            self.assertAlmostEqual(entry["logprob"], other["logprob"], delta=0.01)
        self.assertGreaterEqual(outcome.cached, least)
        return outcome.text, outcome.cached

    def test_next_turns(self):
        """The next one goes on; then the answer before it is another one, as its host changed it or the template dropped a
        thought; then the question is."""
        engine = self.start()
        first = system(RULES) + user(QUESTION)
        text, _ = self.ask(engine, first)
        second = first + assistant(text) + user("Why?")
        self.ask(engine, second, len(rendered(first)) + TOKENS - 1)
        third = first + assistant("The fox.") + user("Why does it do so?")
        self.ask(engine, third, 0.95 * shared(second, third))
        fourth = third[:-1] + user("Whose dog is it?")
        self.ask(engine, fourth, 0.95 * shared(third, fourth))

    def test_beside_each_other(self):
        """Where two prompts have parted, others go on, also from what an answer is being made of."""
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


class Hybrid(Kept, unittest.TestCase):
    kind = "hybrid"


class Recurrent(Kept, unittest.TestCase):
    kind = "recurrent"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
