"""
Tests how the helper handles a GPU, with the fake engine, which has no GPU: the variables that the engine gets, what it reports,
and what happens when it dies. tests/gpu tests the real engine.
"""

import os
import re
import subprocess
import tempfile

import wire
from wire import HelperTest, script

CRASH = {"gpu_signal": "SEGV"}  # as long as the engine gets a GPU


class GpuTest(HelperTest):
    def start(self, *args, env=None, **kwargs):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.addCleanup(self.log.close)
        return self.helper("--log-level", "warn", *args, env=env, stderr=self.log, **kwargs)

    def with_gpu(self, *args, **kwargs):
        return self.start("--gpu-dir", "/usr/lib", *args, **kwargs)

    def logged(self):
        self.log.seek(0)
        return self.log.read()

    def ask(self, helper, *steps, **params):
        return helper.call("responses.create", {"input": script(*steps), **params})

    def text(self, result):
        self.assertTrue(result["ok"], result)
        return result["response"]["output"][0]["content"][0]["text"]

    def gpu(self, helper):
        return helper.call("capabilities.get")["engine"]["gpu"]

    def variables(self, helper):
        """The engine's variables that are about the GPU."""
        with open(f"/proc/{helper.engine_pid()}/environ") as file:
            entries = dict(entry.split("=", 1) for entry in file.read().split("\0") if entry)
        return {name: value for name, value in entries.items() if "GPU" in name and "FAKE" not in name or "VK_" in name}


class Told(GpuTest):
    def test_without_a_folder_there_is_none(self):
        for args in ((), ("--gpu", "auto"), ("--gpu", "5"), ("--gpu-dir", ""), ("--gpu-dir", "/usr/lib", "--gpu", "off")):
            with self.subTest(args):
                helper = self.start(*args, env={"FM_ENGINE_GPU": "auto", "FM_ENGINE_GPU_DIR": "/usr/lib"})
                self.ask(helper, "x")
                self.assertEqual(self.variables(helper), {}, "of our own environment, nothing is passed on")
                self.assertIsNone(self.gpu(helper))

    def test_with_one(self):
        chosen = {"GGML_VK_VISIBLE_DEVICES": "1", "VK_DRIVER_FILES": "/a", "VK_ICD_FILENAMES": "/b"}
        helper = self.with_gpu("--gpu", "5", env=chosen)
        self.assertIsNone(self.gpu(helper), "no engine has run")
        self.ask(helper, "x")
        self.assertEqual(self.variables(helper), {**chosen, "FM_ENGINE_GPU": "5", "FM_ENGINE_GPU_DIR": "/usr/lib"})
        self.assertEqual(self.gpu(helper), {"device": "fake GPU", "layers": 5, "total_layers": 12, "detail": None})

    def test_the_folder_is_resolved(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "real"))
            os.symlink("real", os.path.join(folder, "link"))
            helper = self.start("--gpu-dir", "link", cwd=folder)
            self.ask(helper, "x")
            self.assertEqual(self.variables(helper)["FM_ENGINE_GPU_DIR"], os.path.realpath(os.path.join(folder, "real")))

    def test_by_variables(self):
        helper = self.start(env={"FM_PROXY_GPU": "auto", "FM_PROXY_GPU_DIR": "/usr/lib"})
        self.ask(helper, "x")
        self.assertEqual(self.gpu(helper)["layers"], 12)

    def test_one_that_can_not_be_used(self):
        helper = self.with_gpu(env={"FM_ENGINE_FAKE_GPU": "none"})
        self.ask(helper, "x")
        gpu = self.gpu(helper)
        self.assertEqual((gpu["device"], gpu["layers"], gpu["total_layers"]), (None, 0, 12))
        self.assertIn("there is none", gpu["detail"])

    def test_wrong_values(self):
        for value in ("0", "-1", "all", "", "100001", "5x", "AUTO", "99999999999999999999"):
            with self.subTest(value):
                said = subprocess.run([os.path.join(wire.BIN, "fm-proxy"), "--gpu", value], capture_output=True, text=True,
                                      check=False)
                self.assertEqual(said.returncode, 64)
                self.assertRegex(said.stderr, re.escape('--gpu must be auto, off, or a number of layers from 1 to 100000'))


class GivenUp(GpuTest):
    """The engine crashes while it has a GPU: a driver may be the cause."""

    def assert_given_up(self, helper, why):
        gpu = self.gpu(helper)
        self.assertEqual((gpu["device"], gpu["layers"]), (None, 0))
        self.assertIn("no GPU is used any more: with one, ", gpu["detail"])
        self.assertIn(why, gpu["detail"])
        self.assertEqual(self.logged().count("no GPU is used any more"), 1)
        self.assertEqual(self.variables(helper), {})

    def test_while_it_loads(self):
        helper = self.with_gpu(env={"FM_ENGINE_FAKE_LOAD": "gpu_crash"})
        self.assertEqual(self.text(self.ask(helper, "answer")), "answer")
        self.assert_given_up(helper, "before the model")

    def test_before_the_answer(self):
        helper = self.with_gpu()
        self.assertEqual(self.text(self.ask(helper, CRASH, "answer")), "answer")
        self.assert_given_up(helper, "was ended by signal 11")
        self.assertEqual(self.text(self.ask(helper, CRASH, "again")), "again")

    def test_a_stream_goes_on(self):
        """The stream has begun, but has no text yet: the host sees one response, and each event once."""
        helper = self.with_gpu()
        events, result = helper.collect(self.create(helper, script({"sleep_ms": 10}, CRASH, "a", "b")))
        final = wire.check_stream(self, events, result)
        self.assertEqual(final["output"][0]["content"][0]["text"], "ab")
        self.assertEqual(sum(e["type"] == "response.created" for e in events), 1)

    def test_in_the_middle_of_an_answer(self):
        """A stream ends when the engine crashes. An answer that is not streamed is made again, because the host has seen nothing
        of it."""
        helper = self.with_gpu()
        _, result = helper.collect(self.create(helper, script("a", CRASH, "b")))
        self.assertIn("signal 11", self.assert_error(result, "INTERNAL")["detail"])
        self.assertEqual(self.text(self.ask(helper, CRASH, "c")), "c")
        self.assert_given_up(helper, "was ended by signal 11")
        self.assertEqual(self.text(self.ask(self.with_gpu(), "a", CRASH, "b")), "ab")

    def test_several_at_once(self):
        """A stream that has text already fails. A stream without text is answered."""
        helper = self.with_gpu()
        begun = self.create(helper, script("text", {"hang": "soft"}))
        helper.event(begun, "response.output_text.delta")
        waiting = self.create(helper, script({"sleep_ms": 60000}, "never"), fm={"timeout_ms": 500})
        crashing = self.create(helper, script(CRASH, "answer"))
        events, result = helper.collect(crashing)
        self.assertEqual(wire.check_stream(self, events, result)["output"][0]["content"][0]["text"], "answer")
        self.assert_error(helper.collect(begun)[1], "INTERNAL")
        self.assert_error(helper.collect(waiting)[1], "TIMEOUT")

    def test_vectors(self):
        helper = self.with_gpu(env={"FM_ENGINE_FAKE_LOAD": "gpu_crash"})
        result = helper.call("embeddings.create", {"input": ["a", "b"]})
        self.assertEqual(len(result["embeddings"]["data"]), 2)

    def test_an_exit(self):
        """An engine ends with status 70 when its GPU fails; any other status counts too."""
        helper = self.with_gpu()
        self.assert_error(self.ask(helper, "a", {"exit": 70}), "INTERNAL")
        self.ask(helper, "x")
        self.assert_given_up(helper, "exited with status 70")

    def test_what_is_no_fault_of_a_gpu(self):
        helper = self.with_gpu()
        self.ask(helper, "x")
        wire.kill(helper.engine_pid())  # as the system does when memory runs out
        self.ask(helper, "x")
        self.assertEqual(self.gpu(helper)["device"], "fake GPU")
        self.assert_error(helper.call("responses.create", {"input": script({"hang": "hard"}), "fm": {"timeout_ms": 200}}),
                          "TIMEOUT")
        self.ask(helper, "x")
        self.assertEqual(self.gpu(helper)["device"], "fake GPU", "a request that did not stop")

    def test_an_engine_that_uses_none(self):
        helper = self.with_gpu(env={"FM_ENGINE_FAKE_GPU": "none"})
        self.assert_error(self.ask(helper, {"signal": "SEGV"}), "INTERNAL")
        self.ask(helper, "x")
        self.assertNotIn("any more", self.gpu(helper)["detail"])

    def test_a_crash_that_has_another_cause(self):
        """The second crash, without a GPU, is an ordinary crash."""
        helper = self.with_gpu()
        error = self.assert_error(self.ask(helper, {"signal": "SEGV"}), "INTERNAL")
        self.assertIn("signal 11", error["detail"])
        self.ask(helper, "x")
        self.assert_given_up(helper, "signal 11")


if __name__ == "__main__":
    wire.main()
