"""
The llama engine with Mesa's software driver for Vulkan as its GPU: see run.sh. The results of a GPU's failure are also tested
with the fake engine, which needs no driver (tests/e2e/test_gpu.py).
"""

import glob
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))

import wire
from wire import HelperTest

DIR = os.environ["FM_GPU_DIR"]
MODEL = sorted(glob.glob(os.path.join(wire.BIN, "..", "models", "*.gguf")))[0]
DRIVER = os.path.join(wire.BIN, "..", "tests-bin", "failing_vulkan.json")
TOKENS = 12
FULL = os.path.join(wire.BIN, "..", "tests-bin", "full-weights.gguf")  # the same model with 32-bit weights
FULL_TOKENS = 24
MARGIN = 0.4  # a difference of log probabilities: see SameText.compare
FULL_MARGIN = 0.02  # with FULL
LONG = 3600  # s; a software GPU computes a token a second, on a machine that does nothing else

PROMPTS = ("Why is the sky blue?", "Name three rivers in Europe.", "Write a haiku about the sea.",
           "What is the capital of France?", "Count from one to ten.")


class GpuTest(HelperTest):
    def start(self, *args, env=None, gpu_dir=DIR, visible=True):
        named = {"GGML_VK_VISIBLE_DEVICES": "0"} if visible else {}
        return self.helper("--model", MODEL, "--gpu-dir", gpu_dir, "--log-level", "warn", *args, engine="llama",
                           env={**named, **(env or {})}, stderr=self.log())

    def log(self):
        self.log_file = tempfile.TemporaryFile(mode="w+")
        self.addCleanup(self.log_file.close)
        return self.log_file

    def logged(self):
        self.log_file.seek(0)
        return self.log_file.read()

    def ask(self, helper, prompt, **params):
        limits = {name: LONG * 1000 for name in ("timeout_ms", "first_token_timeout_ms", "no_progress_timeout_ms")}
        return helper.call("responses.create", {"input": prompt, "temperature": 0, "max_output_tokens": TOKENS, "fm": limits,
                                                **params}, timeout=LONG)

    def text(self, result):
        self.assertTrue(result["ok"], result)
        return result["response"]["output"][0]["content"][0]["text"]

    def gpu(self, helper):
        return helper.call("capabilities.get")["engine"]["gpu"]

    def assert_on_cpu(self, helper, reason):
        gpu = self.gpu(helper)
        self.assertIsNone(gpu["device"], gpu)
        self.assertIn(reason, gpu["detail"])
        self.assertIn(reason, self.logged())


class EngineTest(GpuTest):
    """Runs only the engine: on a busy machine, the front would think that a software GPU hangs."""

    def unloaded(self, **env):
        engine = self.helper(program="fm-engine-llama", env={"GGML_VK_VISIBLE_DEVICES": "0", **env}, stderr=self.log())
        engine.initialized = engine.call("engine.initialize", {"protocol_version": 1, "log_level": "warn"})
        return engine

    def engine(self, model=MODEL, **env):
        engine = self.unloaded(**env)
        engine.loaded = engine.call("engine.load", {"model": model}, timeout=LONG)
        self.assertTrue(engine.loaded["ok"], engine.loaded)
        return engine


class SameText(EngineTest):

    def tokens(self, engine, number, prompt, most=TOKENS):
        """[(the token's bytes, its log probability, the log probabilities of the two best tokens)]"""
        engine.send("job.start", {"job": number, "messages": [{"role": "user", "content": prompt}], "temperature": 0,
                                  "max_tokens": most, "logprobs": 2})
        entries = []
        while True:
            message = engine.receive(timeout=LONG)
            entries += message["params"].get("logprobs", [])
            if message["method"] == "job.finished":
                self.assertIn(message["params"]["reason"], ("stop", "length"), message)
                return [(bytes(e["bytes"]), e["logprob"], [t["logprob"] for t in e["top"]]) for e in entries]

    def compare(self, prompt, ours, theirs, margin):
        """
        True if both texts are the same. If the two most likely tokens are nearer to each other than `margin`, the other token may
        win. Then the texts are only compared up to this token, and the output says so.
        """
        length = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a[0] != b[0]), min(len(ours), len(theirs)))
        apart = max((abs(a[1] - b[1]) for a, b in zip(ours[:length], theirs[:length])), default=0)
        text = b"".join(token for token, *_ in ours).decode(errors="replace")
        print(f"{prompt} The same {length} of {len(theirs)} tokens: {text!r}; their log probabilities differ by {apart:.4f} "
              "at most", flush=True)
        self.assertLess(apart, margin)
        if length == len(ours) == len(theirs):
            return True
        best, second = theirs[length][2]
        print(f"    then {ours[length][0]!r} ({ours[length][1]:.4f}), on the CPU {theirs[length][0]!r} ({best:.4f}, the second "
              f"{second:.4f})", flush=True)
        self.assertLess(best - second, margin, "more than rounding")
        return False

    def same_texts(self, model, most, margin):
        """Returns how many prompts give the CPU's text, and the engine on the GPU."""
        cpu = self.engine(model)
        self.assertNotIn("gpu", cpu.loaded)
        gpu = self.engine(model, FM_ENGINE_GPU="auto", FM_ENGINE_GPU_DIR=DIR)
        same = sum(self.compare(prompt, self.tokens(gpu, i, prompt, most), self.tokens(cpu, i, prompt, most), margin)
                   for i, prompt in enumerate(PROMPTS, 1))
        print(f"{same} of {len(PROMPTS)} texts are the same as on the CPU", flush=True)
        return same, gpu

    def test_as_on_the_cpu(self):
        same, gpu = self.same_texts(FULL, FULL_TOKENS, FULL_MARGIN)
        self.assertEqual(same, len(PROMPTS))
        print(gpu.loaded, flush=True)
        report = gpu.loaded["gpu"]
        self.assertIn("llvmpipe", report["device"])
        self.assertEqual((report["layers"], report["detail"]), (report["total_layers"], None))
        sandbox = gpu.initialized["sandbox"]
        self.assertEqual((sandbox["network"], sandbox["seccomp"]), ("denied", True))
        self.assertEqual(sandbox["devices"], "gpus" if sandbox["landlock"] else "allowed")
        self.check_process(gpu.pid)

    def test_with_quantized_weights(self):
        """
        With quantized weights, the CPU rounds activations to 8 bits, and a GPU to 16. This alone changes the distance of two log
        probabilities by 0.2. So the text may differ if two tokens are that near to each other.
        """
        same, _ = self.same_texts(MODEL, TOKENS, MARGIN)
        self.assertGreater(same, 0)

    def test_an_abort(self):
        """The abort does not wait for the whole batch."""
        gpu = self.engine(FM_ENGINE_GPU="auto", FM_ENGINE_GPU_DIR=DIR)
        gpu.send("job.start", {"job": 1, "messages": [{"role": "user", "content": "word " * 4000}], "temperature": 0})
        gpu.receive_where(lambda m: m.get("method") == "job.progress", timeout=LONG)
        gpu.send("job.abort", {"job": 1})
        finished = gpu.receive_where(lambda m: m.get("method") == "job.finished", timeout=LONG)["params"]
        self.assertEqual(finished["reason"], "aborted")
        self.assertEqual(len(self.tokens(gpu, 2, PROMPTS[0])), TOKENS, "and it goes on")

    def test_some_layers(self):
        report = self.engine(FM_ENGINE_GPU="10", FM_ENGINE_GPU_DIR=DIR).loaded["gpu"]
        self.assertEqual(report["layers"], 10)

    def check_process(self, engine):
        """All threads are in the sandbox, also those of the driver, and no descriptor is open that should not be."""
        states, names, opened = set(), set(), {}
        for thread in os.listdir(f"/proc/{engine}/task"):
            with open(f"/proc/{engine}/task/{thread}/status") as file:
                lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
            states.add((lines["NoNewPrivs"], lines["Seccomp"], lines["CapEff"].strip("0")))
            names.add(lines["Name"])
        print(f"the engine's threads: {sorted(names)}")
        self.assertEqual(states, {("1", "2", "")})
        self.assertTrue(any(name.startswith("llvmpipe") for name in names), "the driver has threads of its own")
        for fd in os.listdir(f"/proc/{engine}/fd"):
            with open(f"/proc/{engine}/fdinfo/{fd}") as file:
                flags = next(int(line.split()[1], 8) for line in file if line.startswith("flags:"))
            opened[os.readlink(f"/proc/{engine}/fd/{fd}")] = flags & os.O_ACCMODE
        print(f"its descriptors: {sorted(opened)}")
        self.assertFalse([path for path in opened if path.startswith("socket:")])
        stderr = os.readlink(f"/proc/{engine}/fd/2")  # a file of this test: it also gets the output of libraries
        writable = [path for path, mode in opened.items() if mode != os.O_RDONLY and path.startswith("/") and path != stderr]
        self.assertFalse([path for path in writable if not path.startswith(("/memfd:", "/dev/null", "/dev/dri/"))])


class NoGpu(GpuTest):
    def assert_answers(self, helper):
        self.assertEqual(self.text(self.ask(helper, PROMPTS[0])), self.text(self.ask(self.start("--gpu", "off"), PROMPTS[0])))

    def test_a_device_that_is_a_cpu_is_left_out(self):
        helper = self.start(visible=False)
        self.ask(helper, PROMPTS[0], max_output_tokens=1)
        self.assert_on_cpu(helper, "Vulkan has found none")

    def test_no_driver(self):
        helper = self.start(env={"VK_DRIVER_FILES": "/nowhere.json", "VK_ICD_FILENAMES": "/nowhere.json"})
        self.text(self.ask(helper, PROMPTS[0], max_output_tokens=1))
        self.assertIsNone(self.gpu(helper)["device"])
        print(self.gpu(helper)["detail"])

    def test_another_release(self):
        """Uses a copy of the libraries with another commit."""
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(DIR, folder, dirs_exist_ok=True)
            path = os.path.join(folder, "libggml-base.so")
            with open(path, "rb") as file:
                library = file.read()
            commit = self.commit(library)
            with open(path, "wb") as file:
                file.write(library.replace(commit, b"1234567"))
            helper = self.start(gpu_dir=folder)
            self.text(self.ask(helper, PROMPTS[0], max_output_tokens=1))
            self.assert_on_cpu(helper, "(1234567), this engine has")

    def commit(self, library):
        """The commit's text in the library: the function ggml_commit returns its address."""
        import ctypes
        base = ctypes.CDLL(os.path.join(DIR, "libggml-base.so"))
        base.ggml_commit.restype = ctypes.c_char_p
        commit = base.ggml_commit()
        self.assertIn(b"\0" + commit + b"\0", library)
        return commit

    def test_no_library(self):
        with tempfile.TemporaryDirectory() as folder:
            helper = self.start(gpu_dir=folder)
            self.text(self.ask(helper, PROMPTS[0], max_output_tokens=1))
            self.assert_on_cpu(helper, "libggml-base.so")


class Failures(GpuTest):
    """The device fails when the file appears."""

    def failing(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.fault = os.path.join(folder.name, "fault")
        return self.start(env={"VK_DRIVER_FILES": DRIVER, "VK_ICD_FILENAMES": DRIVER, "FM_ENGINE_TEST_FAULT": self.fault})

    def fail_now(self, how):
        with open(self.fault + ".new", "w") as file:
            file.write(how)
        os.rename(self.fault + ".new", self.fault)

    def test_while_the_model_loads(self):
        """llama.cpp reports a lost device; a driver that crashes ends the engine."""
        for how, reason in (("lost", "does not load with"), ("crash", "no GPU is used any more")):
            with self.subTest(how):
                helper = self.failing()
                self.fail_now(how)
                self.text(self.ask(helper, PROMPTS[0], max_output_tokens=4))
                self.assert_on_cpu(helper, reason)
                print(f"{how}: {self.gpu(helper)['detail']}", flush=True)

    def test_before_an_answer_begins(self):
        on_cpu = self.text(self.ask(self.start("--gpu", "off"), PROMPTS[0], max_output_tokens=2))
        for how in ("lost", "crash"):
            with self.subTest(how):
                helper = self.failing()
                self.text(self.ask(helper, PROMPTS[0], max_output_tokens=2))
                self.assertIn("llvmpipe", self.gpu(helper)["device"])
                self.fail_now(how)
                again = self.ask(helper, PROMPTS[0] + " Say it in one sentence.", max_output_tokens=4)
                self.text(again)
                self.assert_on_cpu(helper, "no GPU is used any more")
                self.assertEqual(self.text(self.ask(helper, PROMPTS[0], max_output_tokens=2)), on_cpu)

    def test_in_the_middle_of_an_answer(self):
        helper = self.failing()
        call = self.create(helper, PROMPTS[0], temperature=0, max_output_tokens=200)
        helper.event(call, "response.output_text.delta", timeout=LONG)
        self.fail_now("lost")
        _, result = helper.collect(call, timeout=LONG)
        self.assert_error(result, "INTERNAL")
        self.text(self.ask(helper, PROMPTS[0], max_output_tokens=4))
        self.assert_on_cpu(helper, "no GPU is used any more")


if __name__ == "__main__":
    wire.main()
