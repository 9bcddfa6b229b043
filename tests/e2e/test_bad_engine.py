"""Engines that are none of ours: each is a Python script with a fault of its own."""

import os
import sys
import tempfile
import textwrap
import time

import wire
from wire import SLOW, HelperTest, check_stream

PRELUDE = f"#!{sys.executable}\n" + textwrap.dedent("""\
    import json, os, signal, sys, time

    def read():
        length = None
        while (line := sys.stdin.buffer.readline()) != b"\\r\\n":
            if not line:
                sys.exit(0)
            length = int(line.split(b":")[1])
        return json.loads(sys.stdin.buffer.read(length))

    def send(**message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
        sys.stdout.buffer.flush()

    def initialize():
        send(id=read()["id"], result={"ok": True, "protocol_version": 1, "name": "bad", "version": "1", "slots": 1})

    def load():
        message = read()
        send(id=message["id"], result={"ok": True, "context_length": 1000, "slots": 1})

    def accept():
        job = read()["params"]["job"]
        send(method="job.accepted", params={"job": job, "input_tokens": 1})
        return job

    """)


class BadEngine(HelperTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def program(self, body, name="bad"):
        path = os.path.join(self.folder, f"fm-engine-{name}")
        with open(path, "w") as file:
            file.write(PRELUDE + textwrap.dedent(body))
        os.chmod(path, 0o755)

    def started(self, body):
        self.program(body)
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
        self.program("""
            initialize()
            message = read()
            while "first" in message["params"]["model"]:
                send(method="engine.load_progress", params={"progress": 0.5})
                time.sleep(0.05)
            send(id=message["id"], result={"ok": True, "context_length": 1000, "slots": 1})
            send(method="job.finished", params={"job": accept(), "reason": "stop", "usage": {}})
            """, name="llama")
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
