"""Tests faulty engines: each is a Python script with one fault."""

import os
import re
import shutil
import signal
import tempfile
import time

import foreign_engine
import gateway
import wire
from wire import SLOW, HelperTest, check_stream

SANITIZE = os.environ.get("FM_SANITIZE", "")  # under a sanitizer, engines' output is shown at every level


class Foreign(HelperTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def started(self, body, *args, **kwargs):
        foreign_engine.write(self.folder, "bad", body)
        return self.helper("--engine-dir", self.folder, *args, engine="bad", **kwargs)


class BadEngine(Foreign):

    def test_its_child_holds_the_pipe(self):
        """An engine that has died counts as dead, although its output does not end."""
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
            self.assert_soon(time.monotonic() - before, SLOW)
            self.assertIn("signal 11", self.assert_error(result, "INTERNAL")["detail"])
            self.assertEqual(check_stream(self, events, result)["output"][0]["content"][0]["text"], "last words")

    def test_it_talks_but_does_not_initialize(self):
        """engine.initialize has 5 s, whatever else the engine sends."""
        helper = self.started("""
            for _ in range(1000):
                send(method="engine.news", params={})
                time.sleep(0.1)
            """)
        before = time.monotonic()
        error = self.assert_error(helper.collect(self.create(helper, "x"))[1], "UNAVAILABLE")
        self.assertIn("while it started", error["detail"])
        self.assert_soon(time.monotonic() - before, 5 + SLOW)

    def test_it_loads_for_ever(self):
        """Progress of a load that no request waits for does not stop the engine from loading another model."""
        for model in ("first", "second"):
            with open(os.path.join(self.folder, f"{model}.gguf"), "wb") as file:
                file.write(b"GGUF")
        foreign_engine.describe(self.folder, "llama")
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


class Description(Foreign):
    """Tests the features of an engine: first they come from the engine's file, then from the engine. The front knows no engine by
    its name."""

    ENGINE = """
        initialize(models="own", features=["embeddings", "unheard of", 1])
        load()
        finish(accept())
        """

    def features(self, helper):
        features = helper.call("capabilities.get")["features"]
        self.assertTrue(features["responses"] and features["cancel"], features)
        return {name: features[name] for name in ("tools", "structured_output", "embeddings")}

    def test_the_file_then_the_engine(self):
        foreign_engine.describe(self.folder, "bad", "own", ["tools"])
        helper = self.started(self.ENGINE)
        self.assertEqual(self.features(helper), {"tools": True, "structured_output": False, "embeddings": False})
        helper.collect(self.create(helper, "x"))
        self.assertEqual(self.features(helper), {"tools": False, "structured_output": False, "embeddings": True})

    def test_without_a_file(self):
        helper = self.started(self.ENGINE)
        self.assertEqual(self.features(helper), {"tools": None, "structured_output": None, "embeddings": None})
        helper.collect(self.create(helper, "x"))
        self.assertEqual(self.features(helper)["embeddings"], True)

    def test_in_an_app(self):
        """In an app of macOS the file is in Contents/Resources. Elsewhere, a folder of this name is not read."""
        outside = self.folder
        os.mkdir(os.path.join(outside, "Resources"))
        foreign_engine.describe(os.path.join(outside, "Resources"), "bad", "own", ["tools"])
        for place, tools in (("bin", None), ("some.app/Contents/MacOS", True)):
            self.folder = os.path.join(outside, place)
            os.makedirs(self.folder)
            if tools:
                shutil.move(os.path.join(outside, "Resources"), os.path.join(self.folder, "..", "Resources"))
            self.assertEqual(self.features(self.started(self.ENGINE))["tools"], tools, place)

    def assert_refused(self, why):
        """The description file is not valid: every request gets the reason, and the log has the reason once."""
        path = os.path.join(self.folder, "fm-engine-bad.json")
        with tempfile.TemporaryFile() as log:
            helper = self.started(self.ENGINE, stderr=log)
            said = helper.call("capabilities.get")
            self.assertEqual((said["available"], said["reason_code"], said["models"]), (False, "HELPER_UNHEALTHY", []))
            for part in (why, path, "fm-engine-bad --describe"):
                self.assertIn(part, said["detail"])
            self.assertIsNone(said["features"]["tools"])
            for method, params in (("responses.create", {"input": "x"}), ("responses.create", {"input": "x", "model": "bad"}),
                                   ("models.retrieve", {"id": "bad"})):
                error = self.assert_error(helper.call(method, params), "UNAVAILABLE")
                self.assertEqual(error["detail"], said["detail"])
            self.assertEqual(helper.call("models.list")["data"], [])
            self.assertEqual(helper.close(), 0)
            log.seek(0)
            lines = log.read().decode().splitlines()
            self.assertEqual(lines, ["fm-proxy: error: " + said["detail"]])

    def test_a_file_of_something_else(self):
        path = os.path.join(self.folder, "fm-engine-bad.json")
        for text, why in (("", "not JSON"), ("{", "not JSON"), ("\ufeff{}", "not JSON"), ("{} {}", "not JSON"),
                          ("\0" * 10, "not JSON"), ("[]", "not an object"), ('"own"', "not an object"),
                          ("null", "not an object"), ('{"models": "file"}', "models"), ('{"models": ["own"]}', "models"),
                          ('{"features": "tools"}', "features"), ('{"models": "own"}' + " " * 65536, "too long")):
            with self.subTest(text[:20]):
                with open(path, "w") as file:
                    file.write(text)
                self.assert_refused(why)

    def test_a_file_that_is_none(self):
        path = os.path.join(self.folder, "fm-engine-bad.json")
        for make, remove in ((os.mkdir, os.rmdir), (os.mkfifo, os.remove)):
            make(path)
            self.assert_refused("not a regular file")
            remove(path)
        os.symlink(path, path)
        self.assert_refused("can't open the file")

    def test_a_file_that_says_little(self):
        for text in ("{}", '{"models": null, "features": null, "more": [1]}', ' {"models": "own"}\n'):
            with open(os.path.join(self.folder, "fm-engine-bad.json"), "w") as file:
                file.write(text)
            helper = self.started(self.ENGINE)
            self.assertTrue(helper.call("capabilities.get")["available"], text)
            self.assertIsNone(self.features(helper)["tools"])
            self.assertEqual([model["id"] for model in helper.call("models.list")["data"]], ["bad"])
            helper.close()

    def test_sessions(self):
        os.mkdir(os.path.join(self.folder, "fm-engine-bad.json"))
        foreign_engine.write(self.folder, "bad", self.ENGINE)
        made = gateway.Gateway("--engine-dir", self.folder, engine="bad")
        self.addCleanup(made.close)
        self.assertIn("not a regular file", made.log_where("fm-engine-bad.json"))
        answer = made.ask("check-availability")
        self.assertEqual((answer["ok"], answer["available"]), (True, False))
        self.assertRegex(answer["reason"], "^HELPER_UNHEALTHY: .*not a regular file: .*fm-engine-bad.json")
        self.assertEqual(made.message(made.open(), "p", "c"), {"ok": False, "error": "model_unavailable"})

    def test_an_engine_with_files_needs_its_file(self):
        for models in (None, "own"):
            with self.subTest(models):
                if models:
                    foreign_engine.describe(self.folder, "bad", models, ["embeddings"])
                helper = self.started('initialize(models="files", features=["tools"])')
                error = self.assert_error(helper.collect(self.create(helper, "x"))[1], "UNAVAILABLE")
                path = os.path.join(self.folder, "fm-engine-bad")
                self.assertIn(f"{path}.json is missing or says otherwise", error["detail"])
                self.assertIn("fm-engine-bad --describe", error["detail"])
                expected = {"tools": False, "structured_output": False, "embeddings": True}
                self.assertEqual(self.features(helper), expected if models else dict.fromkeys(expected))
                helper.close()


class Log(Foreign):
    """Tests what an engine writes to its stderr, and which part of this text the helper writes to its own stderr."""

    def logged(self, body, level):
        """Runs one request to its end; returns the helper's stderr."""
        with tempfile.TemporaryFile() as log:
            helper = self.started(body, "--log-level", level, stderr=log)
            helper.call("responses.create", {"input": "x"})
            self.assertEqual(helper.close(), 0)
            log.seek(0)
            return log.read()

    LAST_WORDS = """
        os.write(2, b"first \\x1b]52;c;eA==\\x07\\xff\\n")
        initialize()
        load()
        accept()
        os.write(2, b"fm-proxy: error: forged\\nwhy I abort")
        os.abort()
        """

    def test_last_words(self):
        lines = self.logged(self.LAST_WORDS, "error").decode().splitlines()
        self.assertEqual(lines, ["bad: first ?]52;c;eA==??", "bad: fm-proxy: error: forged", "bad: why I abort"])

    def test_off(self):
        log = self.logged(self.LAST_WORDS, "off")
        if SANITIZE:
            print("test_bad_engine: builds with a sanitizer show what engines write at off too")
        else:
            self.assertEqual(log, b"")

    def test_reports_of_sanitizers(self):
        """These reports are shown at every log level, because otherwise they would be lost."""
        if not SANITIZE or "address" not in SANITIZE and "thread" not in SANITIZE:
            return print("test_bad_engine: no sanitizer here, so no report of one is looked for")
        with tempfile.TemporaryFile() as log:
            helper = self.helper(stderr=log)
            call = self.create(helper, wire.script("x", {"hang": "soft"}))
            helper.event(call, "response.output_text.delta")
            wire.kill(helper.engine_pid(), signal.SIGSEGV)
            self.assert_error(helper.collect(call)[1], "INTERNAL")
            helper.close()
            log.seek(0)
            self.assertRegex(log.read(), rb"ERROR: \w+Sanitizer: SEGV")

    def test_session_mode(self):
        foreign_engine.write(self.folder, "bad", self.LAST_WORDS)
        made = gateway.Gateway("--engine-dir", self.folder, "--log-level", "error", engine="bad")
        self.addCleanup(made.close)
        session = made.ask("open-session")["session_id"]
        made.ask("message", session_id=session, prompt="x", content="y", output_format="text")
        made.close()
        lines = made.rest_of_log()
        self.assertEqual([line for line in lines if not line.startswith(gateway.PREFIX)], [])
        self.assertIn(gateway.PREFIX + "why I abort\n", lines)

    FLOOD = """
        import threading
        def flood():
            while True:
                os.write(2, b"noise " * 1000 + b"\\n")
        threading.Thread(target=flood, daemon=True).start()
        initialize()
        load()
        while True:
            job = accept()
            os.write(2, b"more than a pipe holds\\n" * 10000)
            for i in range(200):
                send(method="job.delta", params={"job": job, "text": "x", "output_tokens": i + 1})
            finish(job)
        """

    def test_a_flood(self):
        """Requests are answered, and the helper's memory stays the same, whether the output is shown or not, and read or not."""
        for level in ("off", "error"):
            with self.subTest(level):
                read_end, write_end = os.pipe()  # never read, as by a host that ignores stderr
                self.addCleanup(os.close, read_end)
                helper = self.started(self.FLOOD, "--log-level", level, stderr=write_end)
                os.close(write_end)
                for round in range(5):
                    self.assertTrue(helper.collect(self.create(helper, "x"))[1]["ok"])
                    if round == 0:
                        before = wire.memory_kib(helper.pid, "VmRSS")
                self.assertLess(wire.memory_kib(helper.pid, "VmRSS"), before + 2048 * SLOW)

    def test_its_child_holds_stderr(self):
        """The front does not wait for an engine that has ended, even if the engine's child keeps its stderr and writes on."""
        helper = self.started("""
            for _ in range(2):
                if os.fork() == 0:
                    os.setsid()
                    os.close(0)
                    os.close(1)
                    while True:  # short lines: they are written faster than shown
                        os.write(2, b"x\\n" * 32768)
            initialize()
            load()
            accept()
            os._exit(3)
            """, "--log-level", "error", stderr=wire.subprocess.DEVNULL)
        before = time.monotonic()
        for _ in range(2):
            error = self.assert_error(helper.call("responses.create", {"input": "x"}), "INTERNAL")
            self.assertIn("status 3", error["detail"])
        self.assertLess(time.monotonic() - before, 5 * SLOW)

    def test_it_has_no_descriptor_of_ours(self):
        """The engine gets no terminal and no log file: only pipes."""
        log = tempfile.TemporaryFile()
        self.addCleanup(log.close)
        helper = self.started("""
            initialize()
            load()
            job = accept()
            for fd in sorted(int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")):
                text = f"{fd} {os.readlink(f'/proc/self/fd/{fd}')}\\n"
                send(method="job.delta", params={"job": job, "text": text, "output_tokens": 1})
            finish(job)
            """, stderr=log)
        answer = helper.call("responses.create", {"input": "x"})["response"]["output"][0]["content"][0]["text"]
        self.assertEqual(re.sub(r"\d+\]", "N]", answer).split("\n")[:3], ["0 pipe:[N]", "1 pipe:[N]", "2 pipe:[N]"])
        self.assertEqual(answer.count("\n"), 3 + ("/fd" in answer), "the folder itself may be among them")


class LargePrompts(HelperTest):
    def test_together(self):
        """The requests have more bytes than an engine's queue holds, so they are handed over one after the other."""
        helper = self.helper(env={"FM_ENGINE_FAKE_LOAD": f"slow:{int(1000 * SLOW)}"})
        messages = [{"role": "user", "content": "x" * 9_000_000}, {"role": "user", "content": "short"}]
        calls = [helper.start("responses.create", {"input": messages}) for _ in range(4)]
        for call in calls:
            self.assertTrue(helper.collect(call)[1]["ok"])


if __name__ == "__main__":
    wire.main()
