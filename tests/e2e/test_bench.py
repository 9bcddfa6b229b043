"""Tests `fm-proxy bench` with the fake engine: what it prints, and when it refuses. The test checks that the figures are there,
not how good they are."""

import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

import wire
from patience import SLOW, WAIT, TimedTest
from wire import environment

PROGRAM = os.path.join(wire.BIN, "fm-proxy")


class Bench(TimedTest):
    def run_bench(self, *args, env=None, **more):
        """The exit status, the output for programs (stdout), and the output for people (stderr)."""
        done = subprocess.run([PROGRAM, "bench", "--engine", "fake", *args], capture_output=True, text=True, timeout=WAIT,
                              env=environment(env), **more)
        return done.returncode, done.stdout, done.stderr

    def test_a_table(self):
        status, table, progress = self.run_bench()
        self.assertEqual(status, 0, progress)
        first, *lines = table.splitlines()
        self.assertEqual(first, "fake (engine fake)")
        for words, unit in (("First token, with the load of the model", "ms"), ("First token, loaded", "ms"),
                            ("Reads a prompt", "tokens/s"), ("Writes an answer", "tokens/s"),
                            ("4 answers at once, together", "tokens/s"), ("4 answers at once, the last first token", "ms"),
                            ("Memory of fm-proxy", "MiB"), ("Memory of the engine", "MiB")):
            line = next((line for line in lines if words in line), None)
            self.assertIsNotNone(line, (words, table))
            self.assertRegex(line, rf"  \d+(\.\d)? {unit}$")
        self.assertEqual(len(lines), 8)
        self.assertTrue(all(line.startswith("fm-proxy bench: ") for line in progress.splitlines()), progress)
        self.assertIn("long prompt", progress)

    def test_json(self):
        status, text, progress = self.run_bench("--json")
        self.assertEqual((status, text.count("\n")), (0, 1), progress)
        figures = json.loads(text)
        self.assertEqual((figures["engine"], figures["model"]), ("fake", "fake"))
        self.assertEqual([(each["streams"], each["tokens_each"]) for each in figures["decode"]], [(1, 128), (4, 128)])
        self.assertGreater(figures["prefill"]["tokens"], 1000)
        numbers = [figures["cold_first_token_ms"], figures["first_token_ms"], figures["prefill"]["tokens_per_second"],
                   *(each["tokens_per_second"] for each in figures["decode"]),
                   *(each["first_token_ms"] for each in figures["decode"])]
        self.assertTrue(all(number > 0 for number in numbers), figures)
        self.assertTrue(all(1 << 20 < figures["memory_bytes"][name] < 1 << 30 for name in ("front", "engine")), figures)

    def test_the_first_token_has_the_load_in_it(self):
        figures = json.loads(self.run_bench("--json", env={"FM_ENGINE_FAKE_LOAD": "slow:300"})[1])
        self.assertGreaterEqual(figures["cold_first_token_ms"], 300)
        self.assertLess(figures["first_token_ms"], 300)

    def assert_refused(self, done, *words, status=69):
        self.assertEqual((done[0], done[1]), (status, ""))
        last = done[2].splitlines()[-1]
        for word in ("fm-proxy", *words):
            self.assertIn(word, last)

    @unittest.skipUnless(os.path.exists(os.path.join(wire.BIN, "fm-engine-llama")), "no llama engine is built")
    def test_no_model(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/fm-engine-files.json", "w") as file:
                file.write('{"models":"files"}')
            os.symlink(os.path.join(wire.BIN, "fm-engine-fake"), f"{folder}/fm-engine-files")
            engine = ("--engine", "files", "--engine-dir", folder)
            for models in (f"{folder}/none", folder):
                self.assert_refused(self.run_bench(*engine, "--models-dir", models), "bench", f"folder {models};", "--model")
            self.assert_refused(self.run_bench(*engine, "--model", f"{folder}/x.gguf"), "bench", "x.gguf")

    def test_an_engine_that_fails(self):
        self.assert_refused(self.run_bench(env={"FM_ENGINE_FAKE_LOAD": "error"}), "bench")
        self.assert_refused(self.run_bench(env={"FM_ENGINE_FAKE_LOAD": "crash"}), "fm-engine-fake")

    def test_wrong_options(self):
        self.assert_refused(self.run_bench("--store", "x"), "--store", "bench", status=64)
        self.assert_refused(self.run_bench("extra"), "extra", status=64)
        for mode in ([], ["sessions"]):
            done = subprocess.run([PROGRAM, *mode, "--json"], capture_output=True, text=True, env=environment(None))
            self.assertEqual(done.returncode, 64)
            self.assertIn("bench" if not mode else "sessions", done.stderr)

    def test_nobody_takes_the_figures(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "bench", "--engine", "fake"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  env=environment(None))
        self.assertEqual(done.returncode, 74)
        self.assertIn("could not be written", done.stderr)

    def test_ended_early(self):
        """A signal in the middle of a load ends the benchmark and its engine at once."""
        wire.heed_hangups(self)
        for number in (signal.SIGINT, signal.SIGHUP):
            with self.subTest(number):
                self.end_early(number)

    def end_early(self, number):
        process = subprocess.Popen([PROGRAM, "bench", "--engine", "fake"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment({"FM_ENGINE_FAKE_LOAD": "hang"}))
        self.assertIn(b"loading", process.stderr.readline())
        wire.wait_until(lambda: wire.children(process.pid), "an engine")
        engine = wire.children(process.pid)
        before = time.monotonic()
        process.send_signal(number)
        process.communicate(timeout=WAIT)
        self.assert_soon(time.monotonic() - before, 2 * SLOW)
        self.assertEqual(process.returncode, 69)
        self.assertFalse(any(wire.alive(pid) for pid in engine))


if __name__ == "__main__":
    wire.main()
