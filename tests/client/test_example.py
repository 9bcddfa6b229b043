"""Runs examples/host/host.c with the real helper and the fake engine. Its argument is the program."""

import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from patience import WAIT  # noqa: E402
from wire import BIN, environment, script  # noqa: E402

HOST = None


def start(prompt, helper=os.path.join(BIN, "fm-proxy"), options=("--engine", "fake")):
    return subprocess.Popen([HOST, helper, prompt, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment(None))


class Example(unittest.TestCase):
    def expect(self, process, status, out, err):
        got_out, got_err = process.communicate(timeout=WAIT)
        self.assertEqual((status, out), (process.returncode, got_out))
        self.assertIn(err, got_err)

    def test_answer(self):
        self.expect(start(script("Good", " morning")), 0, "Good morning\n", "")

    def test_failure(self):
        self.expect(start(script("Good", {"error": "no luck"})), 1, "Good\n", "INTERNAL: ")

    def test_options_reach_the_helper(self):
        self.expect(start("x", options=("--engine", "nobody")), 1, "\n", "UNAVAILABLE: ")

    def test_no_helper(self):
        self.expect(start("x", helper="/no/such/fm-proxy"), 1, "", "/no/such/fm-proxy can't be started")

    def test_interrupt(self):
        process = start(script("Good", {"hang": "soft"}))
        self.assertEqual("Good", process.stdout.read(4))
        process.send_signal(signal.SIGINT)
        self.expect(process, 1, "\n", "CANCELLED: ")


if __name__ == "__main__":
    HOST = sys.argv.pop(1)
    unittest.main()
