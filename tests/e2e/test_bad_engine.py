"""Engines that are none of ours: each is a Python script with a fault of its own."""

import os
import tempfile
import time

import foreign_engine
import wire
from wire import SLOW, HelperTest, check_stream

class BadEngine(HelperTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def started(self, body):
        foreign_engine.write(self.folder, "bad", body)
        return self.helper("--engine-dir", self.folder, engine="bad")

    def test_its_child_holds_the_pipe(self):
        """An engine that dies is dead, although its output does not end."""
        helper = self.started("""
            initialize()
            load()
            job = accept()
            send(method="job.delta", params={"job": job, "text": "last words", "output_tokens": 2})
            if os.fork() == 0:
                signal.pause()
            os.kill(os.getpid(), signal.SIGSEGV)
            """)
        for _ in range(2):
            before = time.monotonic()
            events, result = helper.collect(self.create(helper, "x"))
            self.assertLess(time.monotonic() - before, SLOW)
            self.assertIn("signal 11", self.assert_error(result, "INTERNAL")["detail"])
            self.assertEqual(check_stream(self, events, result)["output"][0]["content"][0]["text"], "last words")

    def test_it_talks_but_does_not_initialize(self):
        """engine.initialize has 5 s, whatever else the engine says."""
        helper = self.started("""
            for _ in range(1000):
                send(method="engine.news", params={})
                time.sleep(0.1)
            """)
        before = time.monotonic()
        error = self.assert_error(helper.collect(self.create(helper, "x"), 20 * SLOW)[1], "UNAVAILABLE")
        self.assertIn("while it started", error["detail"])
        self.assertLess(time.monotonic() - before, 5 + SLOW)

    def test_it_loads_for_ever(self):
        """News of a load that nobody waits for do not keep the engine from another model."""
        for model in ("first", "second"):
            with open(os.path.join(self.folder, f"{model}.gguf"), "wb") as file:
                file.write(b"GGUF")
        foreign_engine.write(self.folder, "llama", """
            initialize()
            message = read()
            while "first" in message["params"]["model"]:
                send(method="engine.load_progress", params={"progress": 0.5})
                time.sleep(0.05)
            send(id=message["id"], result={"ok": True, "context_length": 1000, "slots": 1})
            finish(accept())
            """)
        helper = self.helper("--engine-dir", self.folder, "--models-dir", self.folder, engine="llama")
        hung = self.create(helper, "x", model="first", fm={"timeout_ms": 300})
        waiting = self.create(helper, "x", model="second")
        self.assertEqual(self.assert_error(helper.collect(hung)[1], "TIMEOUT")["limit"], "total")
        self.assertTrue(helper.collect(waiting)[1]["ok"])


class LargePrompts(HelperTest):
    def test_together(self):
        """More than an engine's queue holds: they are handed over one after the other."""
        helper = self.helper(env={"FM_ENGINE_FAKE_LOAD": f"slow:{int(1000 * SLOW)}"})
        messages = [{"role": "user", "content": "x" * 9_000_000}, {"role": "user", "content": "short"}]
        calls = [helper.start("responses.create", {"input": messages}) for _ in range(4)]
        for call in calls:
            self.assertTrue(helper.collect(call, 20 * SLOW)[1]["ok"])


if __name__ == "__main__":
    wire.main()
