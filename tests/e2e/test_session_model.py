"""Tests session mode with the real model. Skipped, with the reason, if llama's engine or the model is missing."""

import glob
import os
import re
import signal
import sys
import time
import unittest

import wire
from gateway import Gateway

MODELS = os.environ.get("FM_MODELS", os.path.join(wire.BIN, "..", "models"))
FILES = sorted(glob.glob(os.path.join(MODELS, "*.gguf")))
ENGINE = os.path.join(wire.BIN, "fm-engine-llama")
COUNT = int(os.environ.get("FM_MESSAGES", 1 if wire.SANITIZED else 8))  # messages of each format; tests/nightly.sh sends 50
PATIENCE = 120 * wire.SLOW

TOPICS = ("rivers of Europe", "musical instruments", "a short poem", "the history of bread", "planets", "how engines work",
          "names for a cat", "a birthday", "winter sports", "the sea \u2013 \u6d77 \U0001f30a")
PROMPTS = {"text": "Describe this topic in two sentences.", "string_list": "List some ideas about this topic."}


class Model(wire.TimedTest):
    def open(self, *options):
        self.gateway = Gateway("--model", FILES[0], "--max-output-tokens", "300", *options, engine="llama")
        return self.gateway.open()

    def tearDown(self):
        self.assertEqual(self.gateway.close(), 0)

    def test_shape(self):
        """At temperature 1 each answer has the requested format. Sometimes a model of this size does not stop, even at the second
        try: this gives an error."""
        session, long = self.open(), 0
        for i in range(COUNT):
            for output_format, prompt in PROMPTS.items():
                answer = self.gateway.message(session, prompt, TOPICS[i % len(TOPICS)], output_format, timeout=PATIENCE)
                if not answer["ok"]:
                    self.assertRegex(answer["error"], "^execution_failed: the answer has more than 300 tokens")
                    long += 1
                elif output_format == "text":
                    self.assertIsInstance(answer["result"], str)
                else:
                    self.assertIsInstance(answer["result"], list)
                    self.assertTrue(all(isinstance(item, str) for item in answer["result"]), answer)
                self.assertTrue(self.gateway.ask("close-session", session_id=session)["ok"])
                session = self.gateway.open()
        if COUNT > 1:  # of only two answers, both may be too long
            self.assertLess(long, COUNT, f"of {2 * COUNT}")

    def test_signal_in_mid_generation(self):
        session = self.open()
        self.gateway.message(session, "Say hello.", "To whom you like.", timeout=PATIENCE)
        engine = wire.children(self.gateway.pid)[0]
        self.gateway.send_message(session, "Write a long story about a lighthouse.", "sea " * 1500)
        before = time.monotonic()
        os.kill(self.gateway.pid, signal.SIGTERM)
        self.assertEqual(self.gateway.wait_exit(), 0)
        self.assert_soon(time.monotonic() - before, 2 * wire.SLOW)
        self.assertFalse(wire.alive(engine))
        self.assertEqual(self.gateway.answer(), {"ok": False, "error": "execution_failed: cancelled: the input has ended"})

    def turn(self, session, prompt, content):
        """A message's tokens, as logged: (input, cached)."""
        answer = self.gateway.message(session, prompt, content, timeout=PATIENCE)
        self.assertTrue(answer["ok"], answer)
        line = self.gateway.log_where("Message processed: ")
        return tuple(map(int, re.search(r"input_tokens=(\d+), cached_tokens=(\d+)", line).groups()))

    def test_second_turn(self):
        """The second turn's prompt has the text of the first turn, and the first turn is in the KV cache."""
        session = self.open("--temperature", "0")
        ask = "Answer with one word: yes."
        first, _ = self.turn(session, ask, "The code word is xylophone. " * 30)
        second, cached = self.turn(session, ask, "Nothing else.")
        alone, _ = self.turn(self.gateway.open(), ask, "Nothing else.")
        self.assertGreater(second, first, "the first turn is part of it")
        self.assertGreater(second, alone + first // 2)
        # the whole first turn, except what the template writes after it
        self.assertGreaterEqual(cached, first - 16)
        self.assertLessEqual(cached, second)  # the whole prompt is cached if the answer was too long and was generated again


if __name__ == "__main__":
    if not FILES or not os.path.exists(ENGINE):
        print(f"skipped: no {ENGINE}" if FILES else f"skipped: no model in {MODELS}")
        sys.exit(77)
    unittest.main(verbosity=1)
