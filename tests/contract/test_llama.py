"""Tests features that only the llama engine has: its settings, odd GGUF files, its sampling.

    test_llama.py PROGRAM MODEL

Exit status 77: skipped, because MODEL is not there.
"""

import os
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import small_models
from engine import Engine, Outcome, program_and_model, user

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import gguf  # noqa: E402

PROGRAM = None
MODEL = None  # gguf.shallow
WHOLE = None

CTX = "FM_ENGINE_LLAMA_CTX"
SLOTS = "FM_ENGINE_LLAMA_SLOTS"
KV_TOKENS = "FM_ENGINE_LLAMA_KV_TOKENS"
THREADS = "FM_ENGINE_LLAMA_THREADS"
CTX_MAX = 16_777_216  # docs/options.md names it
LINE_MAX = 524_288  # characters; docs/limits.md names it


def small():
    """A model of random weights, which is very fast. A token is a byte."""
    return small_models.file("full", context=16384)


class Case(unittest.TestCase):
    def load(self, model=None, popen=None, log_level="off", **env):
        """Returns a fresh engine, and its answer to engine.load."""
        engine = Engine(PROGRAM, env, **(popen or {}))
        self.addCleanup(engine.close)
        self.assertTrue(engine.initialize(log_level=log_level)["ok"])
        result, _ = engine.load(model or MODEL)
        return engine, result

    def ready(self, model=None, popen=None, **env):
        engine, result = self.load(model, popen, **env)
        self.assertTrue(result["ok"], result)
        return engine, result["context_length"]

    def assert_refused(self, result, *words):
        self.assertIs(result["ok"], False, result)
        self.assertEqual(result["error"]["code"], "UNAVAILABLE")
        for word in words:
            self.assertIn(word, result["error"]["detail"])

    def prompt_of(self, engine, tokens):
        """A prompt of exactly `tokens` tokens. The chat template takes some of them."""
        words = " a" * max(0, tokens - engine.run(user("a"), max_tokens=0).accepted)
        for _ in range(4):
            outcome = engine.run(user("a" + words), max_tokens=0)
            if outcome.accepted == tokens:
                return user("a" + words)
            words = " a" * (len(words) // 2 + tokens - outcome.accepted)
        self.fail(f"no prompt of {tokens} tokens")


class Fast(Case):
    """Tests the engine without jobs that request exactly repeatable texts."""

    def load(self, model=None, popen=None, **env):
        return super().load(model, popen, FM_ENGINE_LLAMA_REPEATABLE="", **env)

    def assert_same(self, ours, theirs, margin=0.8):
        """
        Expects the same tokens with the same log probabilities, apart from rounding. Rounding depends on what is computed
        together, and therefore on timing (differences of up to 0.4 were seen). If the two best tokens are so close that rounding
        decides, the texts may differ.
        """
        for our, their in zip(ours.logprobs, theirs.logprobs):
            if our["bytes"] != their["bytes"]:
                best, second = (token["logprob"] for token in their["top"])
                self.assertLess(best - second, margin, (ours.text, theirs.text))
                return
            self.assertLess(abs(our["logprob"] - their["logprob"]), margin, (ours.text, theirs.text))
        self.assertEqual(ours.text, theirs.text)


class Processor(Case):
    OWN_CHOICE = """
import ctypes, os, sys
ggml = ctypes.CDLL(next(sys.argv[1] + "/" + name for name in os.listdir(sys.argv[1]) if name.startswith("libggml.")))
ggml.ggml_backend_load_all_from_path(sys.argv[1].encode())
"""

    def test_the_library_for_it(self):
        """The engine chooses the same library as ggml itself, which tries all of them."""
        engine, _ = self.ready()
        with open(f"/proc/{engine.process.pid}/maps", encoding="ascii") as maps:
            loaded = {line.split()[-1] for line in maps if "/libggml-cpu" in line}
        self.assertEqual(len(loaded), 1, loaded)
        folder = os.path.dirname(next(iter(loaded)))
        own = subprocess.run([sys.executable, "-c", self.OWN_CHOICE, folder], stderr=subprocess.PIPE, check=True).stderr
        self.assertIn(f"loaded CPU backend from {next(iter(loaded))}\n", own.decode())


class SlowMachine(Case):
    def test_a_batch_that_takes_long_is_told(self):
        """The engine is stopped during its prefill, for longer than it may be silent. It reports progress before the batch
        ends."""
        engine, _ = self.ready(**{CTX: "2048"})
        job = engine.start(user(" a" * 1200), max_tokens=1)
        told = []
        for name, params in engine.events(job):
            told += [params["processed"]] if name == "job.progress" and "output_tokens" not in params else []
            if len(told) in (1, 3):
                engine.process.send_signal(signal.SIGSTOP)
                time.sleep(1.1)  # the engine's own limit is 1 s
                engine.process.send_signal(signal.SIGCONT)
        self.assertEqual(told, sorted(told))
        self.assertLess(len(set(told)), len(told), told)


class BusyMachine(Fast):
    """Other programs compute meanwhile. Threads that wait for each other would also wait for those programs."""

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one processor: one thread")
    def test_fewer_threads_compute(self):
        processors = len(os.sched_getaffinity(0))
        for _ in range(processors):
            other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            self.addCleanup(other.wait)
            self.addCleanup(other.kill)
        engine = Engine(PROGRAM, {"FM_ENGINE_LLAMA_REPEATABLE": "", THREADS: str(processors)})
        self.addCleanup(engine.close)
        self.assertTrue(engine.initialize(log_level="debug")["ok"])
        self.assertTrue(engine.load(MODEL)[0]["ok"])
        job = engine.start(user("Tell me a story."), max_tokens=4000, ignore_eos=True)
        fewer = re.compile(rb"(\d+) of %d threads compute" % processors)
        for _ in engine.events(job):
            if found := fewer.search(engine.stderr):
                self.assertLess(int(found[1]), processors)
                engine.notify("job.abort", {"job": job})
                return
        self.fail("all threads computed all the time")


class Context(Case):
    """llama.cpp rounds a context up to a multiple of 256 tokens, and its batch down to the requested context."""

    def assert_overflow(self, outcome, context):
        self.assertEqual((outcome.names, outcome.error["code"]), (["job.finished"], "CONTEXT_OVERFLOW"))
        numbers = [int(number) for number in re.findall(r"\d+", outcome.error["detail"])]
        self.assertIn(context, numbers, outcome.error["detail"])
        self.assertNotIn(256, numbers, outcome.error["detail"])

    def assert_obeyed(self, engine, context, prompt):
        outcome = engine.run(prompt, temperature=0)
        self.assertEqual(outcome.reason, "length")
        self.assertEqual(outcome.usage["input_tokens"] + outcome.usage["output_tokens"], context)

    def test_what_is_set_is_what_holds(self):
        roomy, _ = self.ready()
        for context in (60, 130, 300):
            engine, told = self.ready(**{CTX: str(context)})
            self.assertEqual(told, context)
            self.assert_overflow(engine.run(user("word " * 400)), context)
            self.assert_overflow(engine.run(self.prompt_of(roomy, context)), context)
            for room in (1, 20):
                self.assert_obeyed(engine, context, self.prompt_of(roomy, context - room))

    def test_too_short_for_any_prompt(self):
        for context in (1, 2, 4):
            engine, told = self.ready(**{CTX: str(context)})
            self.assertEqual(told, context)
            self.assert_overflow(engine.run(user("Hello")), context)

    def test_the_text_is_the_same_in_a_short_context(self):
        roomy, _ = self.ready()
        prompt = self.prompt_of(roomy, 100)
        texts = []
        for context in (64 + 60, 1000):
            engine, _ = self.ready(**{CTX: str(context)})
            texts.append(engine.run(prompt, max_tokens=8, temperature=0).text)
        self.assertEqual(texts[0], texts[1])

    def test_no_number_or_far_too_large(self):
        for value in ("x", "0", "-5", "12k", str(CTX_MAX + 1), "2147483647", "99999999999999999999"):
            _, result = self.load(**{CTX: value})
            self.assert_refused(result, CTX, str(CTX_MAX))

    def test_more_than_the_memory_holds(self):
        engine, result = self.load(**{CTX: str(CTX_MAX)})
        self.assert_refused(result, CTX, MODEL)
        again, _ = engine.load(MODEL)
        self.assert_refused(again, CTX)

    def test_what_would_fit_does(self):
        _, result = self.load(**{CTX: str(CTX_MAX)})
        fits = int(re.search(r"(\d+) would fit", result["error"]["detail"]).group(1))
        self.assertEqual(self.ready(**{CTX: str(fits)})[1], fits)
        _, result = self.load(**{CTX: str(fits + 256)})
        self.assert_refused(result, CTX, f"{fits} would fit")

    def cgroup(self, mib):
        """Returns a function that a new process calls to move itself to a cgroup with this much memory."""
        root, limit = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
        if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
            root, limit = "/sys/fs/cgroup", "memory.max"
        folder = os.path.join(root, f"fm-proxy-test-{os.getpid()}")
        try:
            os.mkdir(folder)
            self.addCleanup(os.rmdir, folder)
            with open(os.path.join(folder, limit), "w", encoding="ascii") as file:
                file.write(str(mib << 20))
        except OSError as error:
            self.skipTest(f"no cgroup with a limit can be made here: {error}")

        def enter():
            with open(os.path.join(folder, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
        return enter

    def test_the_memory_of_a_cgroup(self):
        """The limit holds on every machine: above it, the kernel would end the engine in the middle of an answer."""
        popen = {"preexec_fn": self.cgroup(600)}
        _, result = self.load(WHOLE, popen, **{CTX: "100000"})
        self.assert_refused(result, CTX, "450 MiB", "would fit")
        fits = re.search(r"(\d+) would fit", result["error"]["detail"]).group(1)
        self.assertEqual(self.ready(WHOLE, popen, **{CTX: fits})[1], int(fits))

    def wide(self, *args):
        """The path of a file whose context takes more memory than is plausible for a file of its size."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "wide.gguf")
        with open(path, "wb") as file:
            file.write(gguf.wide(*args))
        return path

    def test_a_default_context_out_of_proportion(self):
        for path in (self.wide(65536), self.wide(64, (1, 1023))):  # the layers of the second model differ from each other
            self.assertLess(os.path.getsize(path), 3 << 20)
            engine, result = self.load(path)
            self.assert_refused(result, path, "2048 MiB", "proportion", CTX)
            again, _ = engine.load(path)
            self.assert_refused(again, path)
        self.assertEqual(self.ready(self.wide(65536), **{CTX: "100"})[1], 100)

    def test_a_default_context_that_is_small(self):
        self.assertEqual(self.ready(self.wide(1024))[1], 8192)  # 32 MiB for a file of 80 KiB

    def test_a_default_context_beyond_the_memory(self):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        path = self.wide(memory // (4 * 8192) // 32 * 32)
        _, result = self.load(path)
        self.assert_refused(result, path, "three quarters", CTX)
        self.assertTrue(result["error"]["detail"].startswith(path + ": 8192 tokens"), result)


def small_stack():
    resource.setrlimit(resource.RLIMIT_STACK, (512 * 1024, 512 * 1024))


class PromptShape(Case):
    """llama.cpp's tokenizers recurse through std::regex, once for each character of a run; the tokenizer decides which runs."""

    def assert_overflows(self, engine, text):
        outcome = engine.run(user(text), max_tokens=1)
        self.assertEqual(outcome.reason, "error", text[:20])
        self.assertEqual(outcome.error["code"], "CONTEXT_OVERFLOW", (text[:20], outcome.error))
        return outcome.error["detail"]

    def tiny(self, splitter, context, **changed):
        """An empty model whose text is split by the patterns that `splitter` names."""
        changed["pre"] = splitter
        pairs = [gguf.pair(key, kind, changed.get(key.split(".")[-1], content))
                 for key, kind, content in gguf.tiny_pairs()]
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "tiny.gguf")
        with open(path, "wb") as file:
            file.write(gguf.tiny(pairs))
        return self.ready(path, popen={"preexec_fn": small_stack}, **{CTX: str(context)})[0]

    def test_odd_ones(self):
        engine, _ = self.ready(popen={"preexec_fn": small_stack}, **{CTX: "2500"})
        for text in ("a" * 26000, "a" * 200000, "1" * 200000, "é" * 200000, " " * 200000, "\n" * 200000, "a " * 100000,
                     "🙂" * 250000, "<|im_start|>" * 20000, "<|im_start" * 20000, "[" * 100000 + "]" * 100000,
                     "你" * 100000, "e" + "\u0301" * 200000, "\0" * 200000, "'s" * 100000, "a" * 8000000):
            self.assert_overflows(engine, text)
        self.assertEqual(engine.run(user("Hello"), max_tokens=1).reason, "length")

    def test_runs(self):
        """A past bug: 60,000 of these characters crashed an engine with 8 MiB of stack. Here the engine has only 512 KiB."""
        for splitter, units in (("default", "1!"), ("tekken", "a é\n"), ("gpt-4o", "A!"), ("deepseek-llm", "1你"),
                                ("exaone-moe", ("ab ", "é"))):
            engine = self.tiny(splitter, 80000)
            for unit in units:
                detail = self.assert_overflows(engine, unit * (180000 // len(unit)))
                self.assertNotIn("has at least", detail, "it was not tokenized")
        self.assert_overflows(engine, "a" * (LINE_MAX - 4))

    def test_a_line_is_too_long(self):
        engine = self.tiny("tekken", LINE_MAX + 1000)  # each character is a token, so the beginning of the line fits
        outcome = engine.run(user("a" * (LINE_MAX + 1)))
        self.assertEqual((outcome.names, outcome.error["code"]), (["job.finished"], "INVALID_REQUEST"))
        self.assertIn(str(LINE_MAX), outcome.error["detail"])
        engine = self.tiny("tekken", 80000)
        self.assert_overflows(engine, ("a" * 1000 + "\n") * 520)
        self.assertIn("at least", self.assert_overflows(engine, "a" * (LINE_MAX + 1)), "its beginning does not fit")

    def test_more_control_texts_than_the_context_has_tokens(self):
        short = [{"<|end|>": "<s>"}.get(token, token) for token in gguf.byte_tokens()]
        engine = self.tiny("default", 60, tokens=(gguf.STRING, short))
        for count in (60, 3_300_000):  # this many markers exceed every bound
            self.assertIn("has at least 60", self.assert_overflows(engine, "<s>" * count))
        self.assertEqual(engine.run(user("<s>" * 19), max_tokens=1).accepted, 57)  # three bytes each

    def test_what_can_not_fit_is_not_tokenized(self):
        engine, _ = self.ready(**{CTX: "100"})
        self.assertIn("has at least", self.assert_overflows(engine, "a" * 100000))
        self.assertNotIn("has at least", self.assert_overflows(engine, "a" * 10000))
        outcome = engine.run(user(" " * 64 * 50), max_tokens=1)  # these are few tokens of many bytes
        self.assertGreater(outcome.accepted or 0, 50, outcome.error)


class Markers(Case):
    """Text that looks like a control token is replaced while the template runs."""

    TEXT = "ab<|end|>cd<|end|>ef"

    def outcome(self, template, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "tiny.gguf")
        with open(path, "wb") as file:
            file.write(gguf.tiny([gguf.pair(key, kind, template if key.endswith("chat_template") else content)
                                  for key, kind, content in gguf.tiny_pairs()]))
        engine, _ = self.ready(path, **{CTX: "200"})
        return engine.run(text if isinstance(text, list) else user(text), max_tokens=1)

    def test_templates_that_alter_text(self):
        text = "{{ messages[0].content%s }}"
        for change in ("|upper", "|lower", "|title", "|capitalize", "[:40]"):
            with self.subTest(change):
                outcome = self.outcome(text % change, self.TEXT)
                self.assertEqual(outcome.reason, "error", outcome.accepted)
                self.assertEqual(outcome.error["code"], "INVALID_REQUEST")
                self.assertIn("alters", outcome.error["detail"])
                plain = self.outcome(text % change, self.TEXT.replace("|", "!"))
                self.assertGreater(plain.accepted, 0, "text of no control token may be altered")

    def test_templates_that_leave_out_text(self):
        text = "{{ messages[0].content%s }}"
        for change in ("|length", "[:4]", "[3:]", "[:-3]", "[-9:]", "|replace('_', 'z')", "[::-1]"):
            with self.subTest(change):
                for said in (self.TEXT, "Hello"):
                    outcome = self.outcome(text % change, said)
                    self.assertEqual(outcome.error["code"], "INVALID_REQUEST")
                    self.assertIn("--chat-template", outcome.error["detail"])

    def test_templates_that_leave_it_as_it_is(self):
        both = "{{ messages[0].content%s }}{{ messages[1].content }}"
        whole = 19 + 3  # ab is one token, all others are bytes
        for template, tokens in ((both % "", whole), (both % "|trim", whole),
                                 ("{{ messages[0].content }}" + both % "", whole + 19),
                                 (both % "" + "{{ messages[0].role }}", whole + 4),
                                 (both % "" + "{% if '<|end|>' in messages[0].content %}x{% endif %}y", whole + 1)):
            with self.subTest(template):
                outcome = self.outcome(template, user(self.TEXT) + user("hi!"))
                self.assertIsNone(outcome.error)
                self.assertEqual(outcome.accepted, tokens)


class Infill(Fast):
    """Tests a text between a prompt and a suffix. The tiny model's tokens for this are x, y and z, and a prompt can also contain
    them as text. The test expects such a prompt to be in the cache, which shows that it is the same, token by token."""

    def tiny(self, *changed):
        ids = [(f"tokenizer.ggml.fim_{name}_token_id", gguf.U32, gguf.byte_tokens().index(letter))
               for name, letter in (("pre", "x"), ("suf", "y"), ("mid", "z"))]
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "tiny.gguf")
        with open(path, "wb") as file:
            file.write(gguf.tiny([gguf.pair(*pair) for pair in [*gguf.tiny_pairs(), *ids, *changed]]))
        return self.ready(path)[0]

    def run_both(self, engine, plain, prompt, suffix):
        engine.run(None, prompt=plain, max_tokens=1, temperature=0)
        return engine.run(None, prompt=prompt, suffix=suffix, max_tokens=1, temperature=0)

    def test_what_stands_where(self):
        engine = self.tiny()
        for prompt, suffix in (("ab", "cd"), ("", "cd"), ("ab", ""), ("", ""), ("<|end|>", "c<|end|>")):
            outcome = self.run_both(engine, f"x{prompt}y{suffix}z", prompt, suffix)
            self.assertIsNone(outcome.error)
            self.assertEqual(outcome.cached, outcome.accepted - 1, (prompt, suffix))
        self.assertEqual(outcome.accepted, 3 + 7 + 8)

    def test_the_beginning_of_a_text(self):
        engine = self.tiny(("tokenizer.ggml.add_bos_token", gguf.BOOL, True))
        outcome = self.run_both(engine, "xaycz", "a", "c")
        self.assertEqual((outcome.accepted, outcome.cached), (6, 5))
        for prompt, tokens in (("", 1), ("a", 2), ("ab", 2)):
            self.assertEqual(engine.run(None, prompt=prompt, max_tokens=0).accepted, tokens)
        self.assertEqual(self.tiny().run(None, prompt="", max_tokens=0).accepted, 1, "it begins with nothing else")

    def test_what_does_not_fit(self):
        engine = self.tiny()
        for prompt, suffix in (("a" * 62, "b"), ("a", "b" * 62), ("a" * 31, "b" * 31), ("a" * 8000, "b" * 8000)):
            error = engine.run(None, prompt=prompt, suffix=suffix).error
            self.assertEqual(error["code"], "CONTEXT_OVERFLOW")
        outcome = engine.run(None, prompt="a" * 30, suffix="b" * 30, ignore_eos=True)
        self.assertEqual(outcome.usage["output_tokens"], 1)

    def test_a_model_without_such_tokens(self):
        engine, _ = self.ready()
        error = engine.run(None, prompt="a", suffix="b").error
        self.assertEqual((error["code"], error["param"]), ("INVALID_REQUEST", "suffix"))
        self.assertEqual(engine.run(None, prompt="a", max_tokens=1).reason, "length")


class Threads(Case):
    def test_one_and_the_most(self):
        for threads in (1, 512):
            engine, _ = self.ready(**{THREADS: str(threads)})
            self.assertEqual(engine.run(user("Hello"), max_tokens=2).reason, "length")

    def test_no_number_or_too_many(self):
        for value in ("x", "0", "513", "600", "2147483647"):
            _, result = self.load(**{THREADS: value})
            self.assert_refused(result, THREADS, "from 1 to 512")

    def count(self, threads):
        """How many threads the engine has after an answer that it computed on one processor: threads stay after a batch."""
        processor = min(os.sched_getaffinity(0))
        popen = {"preexec_fn": lambda: os.sched_setaffinity(0, {processor})}
        engine, _ = self.ready(popen=popen, **{THREADS: threads})
        self.assertEqual(engine.run(user("Hello"), max_tokens=2).reason, "length")
        return len(os.listdir(f"/proc/{engine.process.pid}/task"))

    @unittest.skipIf(os.cpu_count() < 2, "this machine has one processor")
    def test_no_more_than_there_are_processors(self):
        """Two threads that wait for each other on one processor were 200 times slower."""
        one = self.count("1")
        for threads in ("", "512"):
            self.assertEqual(self.count(threads), one, threads)


class Files(Case):
    """Copies of the model with other metadata."""

    def setUp(self):
        with open(MODEL, "rb") as file:
            self.data = bytearray(file.read())
        handle, self.path = tempfile.mkstemp(suffix=".gguf")
        os.close(handle)
        self.addCleanup(os.unlink, self.path)

    def value_at(self, key):
        """Returns the offset of a key's value. Before the value are the key (a length and a text) and the type of 4 bytes."""
        match = re.search(key, self.data)
        if not match:
            self.skipTest(f"the model has no {key}")
        return match.end() + 4

    def write(self):
        with open(self.path, "wb") as file:
            file.write(self.data)
        return self.path

    def set_template(self, text):
        at = self.value_at(rb"tokenizer\.chat_template(?=\x08\0\0\0)")
        length, = struct.unpack_from("<Q", self.data, at)
        template = text.encode().ljust(length)
        self.assertEqual(len(template), length, "the template fits into the model's own")
        self.data[at + 8:at + 8 + length] = template
        return self.write()

    def test_a_model_of_a_short_context(self):
        struct.pack_into("<I", self.data, self.value_at(rb"[a-z0-9]\.context_length(?=\x04\0\0\0)"), 40)
        engine, told = self.ready(self.write())
        self.assertEqual(told, 40)
        outcome = engine.run(user("Hello"), temperature=0)
        total = outcome.usage["input_tokens"] + outcome.usage["output_tokens"]
        self.assertEqual((outcome.reason, total), ("length", 40))
        outcome = engine.run(user("word " * 100))
        self.assertEqual(outcome.error["code"], "CONTEXT_OVERFLOW")

    def test_a_file_that_is_cut_short_says_so(self):
        self.data = gguf.tiny()
        whole, header = len(self.data), gguf.Reader(self.data).data_start
        for length in (whole - 1, whole // 2 + header // 2, header + 1, header - 40, header // 2, 30, 5):
            with open(self.path, "wb") as file:
                file.write(self.data[:length])
            _, result = self.load(self.path)
            self.assert_refused(result, self.path, "cut short")
            if length > header:
                self.assert_refused(result, f"{length} of {whole} bytes")
        with open(self.path, "wb") as file:
            file.write(self.data.replace(b"blk.0.attn_q.weight", b"blk.0.attn_z.weight"))
        _, result = self.load(self.path)
        self.assert_refused(result, self.path, "attn_q")
        self.assertNotIn("cut short", result["error"]["detail"])

    def test_a_template_that_raises_is_told_in_one_line(self):
        for text, words in (("no system here", ["no system here"]), ("two\\nlines", ["two lines"]),
                            ("é" * 100, ["é" * 20])):
            path = self.set_template("{# a remark #}\n\n{{ raise_exception('%s') }}" % text)
            engine, _ = self.ready(path)
            error = engine.run(user("Hello")).error
            self.assertEqual(error["code"], "INVALID_REQUEST")
            self.assertRegex(error["detail"], r"^the model's chat template [^\x00-\x1f]{10,200}$")
            self.assertNotIn("raise_exception", error["detail"], "the template's source")
            for word in words:
                self.assertIn(word, error["detail"])


class Reuse(Fast):
    STORY = "Tell a story about a lighthouse and a storm. "

    def run_story(self, engine, sentences, max_tokens=10, **params):
        return engine.run(user(self.STORY * sentences), max_tokens=max_tokens, **params)

    def test_a_prompt_that_comes_again(self):
        """All tokens except the last one are already there, whatever the other parameters are."""
        engine, _ = self.ready()
        first = self.run_story(engine, 20, temperature=0)
        again = self.run_story(engine, 20, temperature=0)
        self.assertEqual((first.cached, again.cached), (0, again.accepted - 1))
        self.assertEqual(again.usage["output_tokens"], 10)
        self.assertEqual(self.run_story(engine, 20, temperature=1).cached, first.accepted - 1)

    def test_branches_share_their_beginning(self):
        """Each of three conversations finds its own tokens again, and a fourth finds what it shares with one of them."""
        engine, _ = self.ready()
        begin = [{"role": "system", "content": self.STORY * 10}]
        branches = [[*begin, {"role": "user", "content": f"{word} " * 30}] for word in ("red", "green", "blue")]
        counts = [engine.run(branch, max_tokens=2, temperature=0) for branch in branches]
        self.assertEqual(counts[0].cached, 0)
        shared = counts[1].cached
        self.assertGreater(shared, 100)
        self.assertEqual(counts[2].cached, shared)
        for branch, first in zip(branches, counts):
            again = engine.run(branch, max_tokens=2, temperature=0)
            self.assertEqual((again.cached, again.text), (again.accepted - 1, first.text))

    def test_more_than_the_memory_holds(self):
        """A conversation that does not continue is moved out of the KV memory. It comes back whole, for itself or for a
        branch."""
        engine, _ = self.ready(small(), log_level="debug", **{CTX: "2048", KV_TOKENS: "2048"})
        prompts = [user(f"{self.STORY * 18} It is {word}.") for word in ("red", "green", "blue", "white")]
        prompts = [[{"role": "system", "content": f"Say {i}."}, *prompt] for i, prompt in enumerate(prompts)]

        def run(prompt, **params):
            return engine.run(prompt, max_tokens=8, temperature=0, logprobs=2, **params)
        first = [run(prompt) for prompt in prompts]
        for prompt, before in zip(prompts, first):
            again = run(prompt)
            self.assertEqual(again.cached, again.accepted - 1)
            self.assert_same(again, before)
        begin = [*prompts[0][:1], *user(self.STORY * 15)]
        branch = run(begin)
        self.assertGreater(branch.cached, 150)
        fresh, _ = self.ready(small())
        self.assert_same(branch, fresh.run(begin, max_tokens=8, temperature=0, logprobs=2))
        again = run(prompts[0])
        self.assertEqual(again.cached, again.accepted - 1)
        self.assert_same(again, first[0])
        run(prompts[1], seed=1)
        run(prompts[2])
        run(prompts[3], seed=1)
        seeded = run(prompts[1], seed=1)
        self.assertEqual(seeded.cached, 0, "in other cells its last bits would be others")
        engine.close()
        for told in (b"tokens moved out of the KV memory", b"tokens came back to the KV memory"):
            self.assertIn(told, engine.stderr)

    def test_a_seed_is_repeatable(self):
        """Tests that texts are repeatable to the bit, whatever was computed before, if the engine does nothing else."""
        engine, _ = self.ready(small())
        fresh = self.run_story(engine, 20, temperature=1, seed=7)
        again = self.run_story(engine, 20, temperature=1, seed=7)
        self.assertEqual((again.cached % 128, again.text), (0, fresh.text))
        self.assertGreater(again.cached, 0, "whole chunks")
        for sentences in (10, 30):  # a part of the story, and more than the story
            self.run_story(engine, sentences, max_tokens=1)
            begun = self.run_story(engine, 20, temperature=1)
            self.assertGreater(begun.cached % 128, 0, "no whole chunks")
            third = self.run_story(engine, 20, temperature=1, seed=7)
            self.assertEqual((third.cached, third.text), (0, fresh.text))


class Repeatable(Case):
    def test_greedy_texts_come_again(self):
        """Greedy texts are the same to the bit, as the log probabilities show, whatever was computed before."""
        engine, _ = self.ready(small())

        def run(prompt, max_tokens=10):
            outcome = engine.run(user(prompt), max_tokens=max_tokens, temperature=0, logprobs=0)
            return [(entry["bytes"], entry["logprob"]) for entry in outcome.logprobs]
        fresh = run("Tell a story about a storm. " * 20)
        for before in (10, 20, 30):
            run("Tell a story about a storm. " * before, max_tokens=2)
            self.assertEqual(run("Tell a story about a storm. " * 20), fresh)

    def test_one_of_many(self):
        """A job with `repeatable` runs without other jobs: to the bit as in a fresh process, whatever comes before or beside
        it."""
        def start(engine, prompt, **params):
            return engine.start(user(prompt), max_tokens=8, logprobs=0, **params)

        def told(outcome):
            return [(entry["bytes"], entry["logprob"]) for entry in outcome.logprobs]
        wanted = {"repeatable": True, "seed": 3}
        fast = {"FM_ENGINE_LLAMA_REPEATABLE": "", SLOTS: "4"}
        fresh, _ = self.ready(small(), **fast)
        want = told(fresh.outcomes([start(fresh, "Tell a story about a storm. " * 20, **wanted)])[0])
        engine, _ = self.ready(small(), **fast)
        jobs = []
        for words in (3, 18, 30):
            jobs += [start(engine, "Tell a story about a storm. " * words) for _ in range(2)]
            jobs.append(start(engine, "Tell a story about a storm. " * 20, **wanted))
        at_once, order = set(), []
        outcomes = {job: [] for job in jobs}
        for job, name, params in engine.together(jobs):
            outcomes[job].append((name, params))
            if name == "job.accepted":
                at_once.add(job)
                order.append(job)
                self.assertTrue(len(at_once) == 1 or not at_once & set(jobs[2::3]), at_once)
            elif name == "job.finished":
                at_once.discard(job)
        self.assertEqual(order, jobs, "none overtakes one that runs alone")
        for job in jobs[2::3]:
            self.assertEqual(told(Outcome(outcomes[job])), want)

    def test_an_abort_of_one_that_waits(self):
        engine, _ = self.ready(**{"FM_ENGINE_LLAMA_REPEATABLE": "", SLOTS: "4"})
        long = engine.start(user("Count from one to a hundred."), max_tokens=100, temperature=0, ignore_eos=True)
        engine.until(long, "job.delta")
        waiting = engine.start(user("Hello"), max_tokens=4, repeatable=True)
        behind = engine.start(user("Hello"), max_tokens=4)
        engine.notify("job.abort", {"job": waiting})
        order = [job for job, name, _ in engine.together((long, waiting, behind)) if name == "job.finished"]
        self.assertEqual(order, [waiting, behind, long])

    def test_contradictory_settings(self):
        _, result = self.load(**{SLOTS: "2"})
        self.assert_refused(result, SLOTS, "FM_ENGINE_LLAMA_REPEATABLE")
        for name, value in ((SLOTS, "0"), (SLOTS, "65"), (KV_TOKENS, "x"), ("FM_ENGINE_LLAMA_REPEATABLE", "yes")):
            _, result = self.load(**{name: value})
            self.assert_refused(result, name)
        _, result = self.load(**{KV_TOKENS: "300", CTX: "400"})
        self.assert_refused(result, KV_TOKENS, CTX, "300", "400")


class Together(Fast):
    """Several jobs at the same time."""

    PROMPTS = ("Name three colours.", "What is the capital of France?", "Count from one to ten.", "Say hello.",
               "Tell a story about a lighthouse and a storm. " * 15)

    def start_greedy(self, engine, prompt, **params):
        return engine.start(user(prompt), **{"max_tokens": 12, "temperature": 0, "logprobs": 2, **params})

    def test_the_texts_of_each_alone(self):
        engine, _ = self.ready(**{SLOTS: "5"})
        want = [engine.outcomes([self.start_greedy(engine, prompt)])[0] for prompt in self.PROMPTS]
        other, _ = self.ready(**{SLOTS: "5"})
        jobs = [self.start_greedy(other, prompt) for prompt in self.PROMPTS]
        for ours, theirs in zip(other.outcomes(jobs), want):
            self.assert_same(ours, theirs)

    def test_they_run_side_by_side(self):
        """A second answer begins, and ends, before the first one ends."""
        engine, _ = self.ready(**{SLOTS: "2"})
        long = engine.start(user("Count from one to a hundred."), max_tokens=80, temperature=0, ignore_eos=True)
        engine.until(long, "job.delta")
        short = engine.start(user("Say hello."), max_tokens=4, temperature=0)
        order = [job for job, name, _ in engine.together((long, short)) if name == "job.finished"]
        self.assertEqual(order, [short, long])

    def interrupt(self, engine, prompt):
        """Sends another job whenever the last one has ended and the engine has been silent for 5 ms, because it is then in the
        middle of a batch. Returns the prompt's outcome, how much of the prompt was computed when each of these jobs was
        accepted, and at last all of it."""
        long = self.start_greedy(engine, prompt)
        events, processed, other = [], [], None
        while not events or other or events[-1][0] != "job.finished":
            message = engine.receive() if not events or other else engine.receive_soon(0.005)
            if not message:
                other = engine.start(user("Hello"), max_tokens=0)
                continue
            name, job = message["method"], message["params"]["job"]
            if job == long:
                events.append((name, message["params"]))
            elif name == "job.accepted":
                processed.append(max([0] + [params["processed"] for name, params in events if name == "job.progress"]))
            elif name == "job.finished":
                other = None
        return Outcome(events), processed + [max(params["processed"] for name, params in events if name == "job.progress")]

    def test_a_prompt_gives_way(self):
        """A job that comes while only a prompt is computed does not wait until the prompt's batch ends. The prompt still gets its
        answer, however many jobs come."""
        fresh, _ = self.ready(**{SLOTS: "2"})
        # A fast processor is done with a short prompt before another job can come.
        prompts = [f"{times}. {self.PROMPTS[4] * times}" for times in (1, 4, 16, 32)]
        want = fresh.outcomes([self.start_greedy(fresh, prompts[0])])[0]
        engine, _ = self.ready(**{SLOTS: "2"})
        for prompt in prompts:
            outcome, processed = self.interrupt(engine, prompt)
            if prompt == prompts[0]:
                self.assert_same(outcome, want)
            if any(one == next < processed[-1] for one, next in zip(processed, processed[1:])):
                return  # between two jobs no batch of the prompt was computed
        self.fail("batches were done with before another job was accepted")

    def test_more_jobs_than_slots(self):
        """The front does not send more jobs than slots. An engine that gets more jobs runs them one after the other."""
        engine, _ = self.ready(**{SLOTS: "2"})
        jobs = [engine.start(user(f"Say {number}."), max_tokens=6, temperature=0) for number in range(6)]
        for outcome in engine.outcomes(jobs):
            self.assertIn(outcome.reason, ("stop", "length"))

    def test_a_memory_of_few_tokens(self):
        """A batch has a token of each slot, however small the memory is."""
        engine, _ = self.ready(**{SLOTS: "64", CTX: "8", KV_TOKENS: "8"})
        jobs = []
        for _ in range(12):
            engine.next_job += 1
            engine.notify("job.start", {"job": engine.next_job, "prompt": "a", "ignore_eos": True})
            jobs.append(engine.next_job)
        for outcome in engine.outcomes(jobs):
            self.assertEqual((outcome.reason, outcome.usage["input_tokens"] + outcome.usage["output_tokens"]), ("length", 8))

    def test_an_abort_costs_the_others_nothing(self):
        engine, _ = self.ready(**{SLOTS: "3"})
        want = engine.outcomes([self.start_greedy(engine, self.PROMPTS[2])])[0]
        prefill = engine.start(user(self.PROMPTS[4] * 5), max_tokens=12, temperature=0)
        decode = engine.start(user("Count from one to a hundred."), max_tokens=500, temperature=0, ignore_eos=True)
        kept = self.start_greedy(engine, self.PROMPTS[2])
        engine.until(decode, "job.delta")
        for job in (prefill, decode):
            engine.notify("job.abort", {"job": job})
        outcomes = engine.outcomes((prefill, decode, kept))
        self.assertEqual([outcome.reason for outcome in outcomes[:2]], ["aborted", "aborted"])
        self.assert_same(outcomes[2], want)

    def test_each_has_its_own_grammar_and_penalties(self):
        engine, _ = self.ready(**{SLOTS: "3"})
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
                  "additionalProperties": False}
        jobs = [engine.start(user("A number."), max_tokens=40, temperature=0,
                             format={"type": "json_schema", "schema": schema, "strict": True}),
                engine.start(user("Say yes or no."), max_tokens=40, temperature=0,
                             format={"type": "grammar", "syntax": "regex", "definition": "yes|no"}),
                engine.start(user("Say hello."), max_tokens=10, temperature=0, logprobs=1)]
        number, word, hello = engine.outcomes(jobs)
        self.assertRegex(number.text, r'^\{"a": ?-?\d+\}$')
        self.assertIn(word.text, ("yes", "no"))
        self.assertEqual("".join(bytes(entry["bytes"]).decode() for entry in hello.logprobs), hello.text)

    def test_one_that_finds_no_room_waits(self):
        """The KV memory has room for one context. Long answers do not fit at the same time, but no answer is cut because of
        another one."""
        engine, context = self.ready(small(), **{SLOTS: "3", CTX: "1024", KV_TOKENS: "1024"})
        jobs = [engine.start(user(f"{word} " * 300), temperature=0, ignore_eos=True) for word in ("a", "b", "c")]
        for outcome in engine.outcomes(jobs):
            self.assertEqual(outcome.reason, "length")
            self.assertEqual(outcome.usage["input_tokens"] + outcome.usage["output_tokens"], context)

    def test_slots(self):
        """The engine has the requested number of slots, or eight. It has one slot if each request is repeatable."""
        for settings, slots in (({}, 8), ({SLOTS: "3"}, 3), ({"FM_ENGINE_LLAMA_REPEATABLE": "1"}, 1)):
            engine = Engine(PROGRAM, {"FM_ENGINE_LLAMA_REPEATABLE": "", **settings})
            self.addCleanup(engine.close)
            engine.initialize()
            self.assertEqual(engine.load(MODEL)[0]["slots"], slots)

    def finished(self, engine, jobs):
        """The order in which the jobs end."""
        return [job for job, name, _ in engine.together(jobs) if name == "job.finished"]

    def test_none_begins_that_would_find_no_room(self):
        """The job waits, together with the jobs that came after it, and nothing is computed in vain."""
        engine, _ = self.ready(log_level="debug", **{SLOTS: "4", CTX: "512", KV_TOKENS: "512"})
        jobs = [engine.start(user(f"{word} " * count), max_tokens=4, temperature=0, ignore_eos=True)
                for word, count in (("a", 300), ("the", 250), ("of", 20), ("to", 20))]
        self.assertEqual(self.finished(engine, jobs)[0], jobs[0])
        engine.close()
        self.assertNotIn(b"waits for memory", engine.stderr)

    def test_what_is_shared_takes_room_once(self):
        """Prompts that begin alike run side by side in a memory that has no room for two of them."""
        engine, _ = self.ready(**{SLOTS: "3", CTX: "1024", KV_TOKENS: "1024"})
        begin = "a " * 600
        first = engine.start(user(begin), max_tokens=120, temperature=0, ignore_eos=True)
        engine.until(first, "job.delta")
        others = [engine.start(user(begin + word), max_tokens=2, temperature=0, ignore_eos=True) for word in ("red", "blue")]
        self.assertEqual(self.finished(engine, [first, *others])[-1], first)


class Growth(Fast):
    """Tests the KV memory, which begins with room for 1,024 tokens, and is replaced by a larger memory when it is full."""

    GREW = b"the KV memory has room for"

    def letters(self, engine, tokens):
        return user("x" * (tokens - engine.run(user("x"), max_tokens=0).accepted + 1))

    def test_amid_an_answer(self):
        """The result is the same to the bit as with the full memory from the beginning, and the conversation is kept."""
        texts = []
        for settings, times in (({}, 1), ({CTX: "2000", KV_TOKENS: "2000"}, 0)):
            engine, _ = self.ready(small(), log_level="debug", **settings)
            prompt = self.letters(engine, 950)
            run = engine.run(prompt, max_tokens=90, temperature=0, seed=1, ignore_eos=True, logprobs=1)
            texts.append([(entry["bytes"], entry["logprob"]) for entry in run.logprobs])
            again = engine.run(prompt, max_tokens=1)
            self.assertEqual(again.cached, 949)
            engine.close()
            self.assertEqual(engine.stderr.count(self.GREW), times)
        self.assertEqual(len(texts[0]), 90)
        self.assertEqual(texts[0], texts[1])

    def test_in_steps(self):
        """The memory grows to four times its size, not to the whole context."""
        engine, context = self.ready(small(), log_level="debug")
        self.assertGreater(context, 4096)
        self.assertEqual(engine.run(self.letters(engine, 1100), max_tokens=1).accepted, 1100)
        engine.close()
        self.assertEqual(re.findall(self.GREW + rb" (\d+) tokens", engine.stderr), [b"4096"])

    def test_amid_the_answers_of_several(self):
        engine, _ = self.ready(small(), log_level="debug", **{SLOTS: "4"})
        begin = "Tell a story about a lighthouse and a storm. " * 20
        prompts = [user(f"{begin} It is {word}.") for word in ("red", "green", "blue", "white")]
        params = {"max_tokens": 70, "temperature": 0, "ignore_eos": True, "logprobs": 2}
        jobs = [engine.start(prompt, **params) for prompt in prompts]
        together = engine.outcomes(jobs)
        for prompt, outcome in zip(prompts, together):
            fresh, _ = self.ready(small())
            self.assert_same(outcome, fresh.run(prompt, **params))
            again = engine.run(prompt, max_tokens=1)
            self.assertEqual(again.cached, again.accepted - 1)
        engine.close()
        self.assertEqual(engine.stderr.count(self.GREW), 1)

    def test_without_memory_for_it(self):
        """Only the request that needs the memory fails, and its error says why."""
        engine, _ = self.ready(log_level="warn")
        engine.run(user("a"), max_tokens=1)
        with open(f"/proc/{engine.process.pid}/statm", encoding="ascii") as statm:
            pages = int(statm.read().split()[0])
        limit = pages * resource.getpagesize() + (64 << 20)
        resource.prlimit(engine.process.pid, resource.RLIMIT_AS, (limit, limit))
        failed = engine.run(user(" a" * 1500), max_tokens=1)
        self.assertEqual(failed.reason, "error")
        self.assertIn("the KV memory is too small", failed.error["detail"])
        self.assertEqual(engine.run(user("a"), max_tokens=1).reason, "length")
        engine.close()
        self.assertIn(b"no memory for", engine.stderr)


class Sampling(Case):
    def test_next_to_no_temperature_is_none(self):
        engine, _ = self.ready()
        prompt = user("Name three colours.")
        greedy = engine.run(prompt, max_tokens=8, temperature=0).text
        for temperature in (1e-8, 1e-9, 1e-30, 1e-36, 1e-37, 1e-38, 1e-39, 1e-44, 1e-45, 1e-46, 1e-300):
            text = engine.run(prompt, max_tokens=8, temperature=temperature, seed=1).text
            self.assertEqual(text, greedy, temperature)


if __name__ == "__main__":
    PROGRAM, WHOLE = program_and_model(__doc__)
    MODEL = gguf.shallow(WHOLE)
    unittest.main()
