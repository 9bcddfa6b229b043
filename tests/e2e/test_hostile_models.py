"""Tests damaged model files: cut, with flipped bits, malformed, shrinking. Within the time limit, each file gives an error that
names the file, or a load that works. llama.cpp ends its process on some of them; the front reports that and continues."""

import glob
import itertools
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import gguf
import wire
from gguf import ARRAY, F32, I32, I64, STRING, U8, U32, U64, pair, string, tensor, tiny, u32, u64
from wire import SANITIZED, SLOW, WAIT, HelperTest, alive, wait_until

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "contract"))
import engine as contract  # noqa: E402

PROGRAM = os.path.join(wire.BIN, "fm-engine-llama")
MODELS = sorted(glob.glob(os.path.join(os.environ.get("FM_MODELS", "build/models"), "*.gguf")))
STRIDE = 12 if SANITIZED else 1  # sanitizers get only each twelfth case
SEED = 20240229
FLIPS = int(os.environ.get("FM_FLIPS", 240))
LIMIT = WAIT  # for one load or job
NOBODY = 65534

os.environ["FM_ENGINE_LLAMA_THREADS"] = "1"
for options in ("ASAN_OPTIONS", "TSAN_OPTIONS"):  # a sanitizer would catch the signal and exit
    handlers = ":".join(f"handle_{name}=0" for name in ("segv", "abort", "sigbus", "sigfpe", "sigill"))
    os.environ[options] = ":".join(filter(None, (os.environ.get(options), handlers)))


class Case(HelperTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "case.gguf")
        self.engine = None
        self.front = None
        self.counts = {"refused": 0, "works": 0, "ends the engine": 0}
        self.addCleanup(lambda: self.engine and self.engine.close())

    def write(self, data, path=None):
        with open(path or self.path, "wb") as f:
            f.write(data)

    # ---- one engine for all files, as long as it refuses them ----

    def try_load(self, name):
        """Returns the outcome of self.path. If the engine dies, the front gets the same file."""
        if not self.engine:
            self.engine = contract.Engine(PROGRAM)
            self.engine.initialize()
        try:
            result = self._load_and_run()
        except AssertionError as dead:
            self.engine.process.wait(LIMIT)  # a hang is a failure
            self.assertLess(self.engine.process.returncode, 0, f"{name}: {dead}")
            result = "ends the engine"
        if result != "refused":
            self.engine.close()
            self.engine = None
        if result == "ends the engine":
            self.assert_front_lives(name)
        self.counts[result] += 1
        return result

    def _load_and_run(self):
        before = time.monotonic()
        result, _ = self.engine.load(self.path)
        self.assert_soon(time.monotonic() - before, LIMIT)
        if not result["ok"]:
            self.assertEqual(result["error"]["code"], "UNAVAILABLE", result)
            self.assertIn(self.path, result["error"]["detail"])
            return "refused"
        outcome = self.engine.run(contract.user("hi"), max_tokens=1)
        self.assertIn(outcome.reason, ("length", "stop", "error"))
        return "works"

    # ---- one front for all ----

    def start_front(self, **popen):
        self.write(tiny(), os.path.join(self.folder, "good.gguf"))
        self.front = self.helper("--models-dir", self.folder, "--max-engines", "1", engine="llama", **popen)
        self.assert_good_model()
        self.baseline = self.footprint()

    def assert_good_model(self):
        result = self.front.call("responses.create", {"model": "good", "input": "hi", "max_output_tokens": 1}, LIMIT)
        self.assertTrue(result["ok"], result)

    def footprint(self):
        kids = wire.children(self.front.pid)
        return len(os.listdir(f"/proc/{self.front.pid}/fd")), len(kids), sum(alive(k) for k in kids)

    def assert_front_lives(self, name):
        if not self.front:
            self.start_front()
        for number in itertools.count():  # a new name, because deaths are counted for each model
            model = f"case-{number}"
            path = os.path.join(self.folder, model + ".gguf")
            if not os.path.exists(path):
                break
        os.link(self.path, path)
        result = self.front.call("responses.create", {"model": model, "input": "hi", "max_output_tokens": 1}, LIMIT)
        self.assertFalse(result["ok"], f"{name}: {result}")
        detail = result["error"]["detail"]
        self.assertRegex(detail, "was ended by signal", name)
        if result["error"]["code"] == "UNAVAILABLE":
            self.assertIn(path, detail, name)
        else:  # the model had loaded
            self.assertEqual(result["error"]["code"], "INTERNAL", name)
        self.assert_soon(self.front.ping_ms(), 100 * SLOW)
        self.assert_good_model()
        self.assertEqual(self.footprint(), self.baseline)

    def run_cases(self, cases, least):
        for name, data in itertools.islice(cases, 0, None, STRIDE):
            with self.subTest(name):
                self.write(data)
                self.try_load(name)
        print(f"{self.id().split('.')[-1]}: {self.counts}", file=sys.stderr)
        self.assertGreater(self.counts["refused"], least // STRIDE)


# ---- malformed on purpose ----

def changed_pairs():
    """Tests each pair of the tiny model: absent, twice, with another type, with other values."""
    values = {
        U32: [0, 1, 3, 0x7FFFFFFF, 0xFFFFFFFF],
        F32: [0.0, -1.0, float("nan"), float("inf")],
        STRING: ["", "x" * 100000, b"\xff\xfe", "nul\0nul", "%s%n"],
    }
    pairs = gguf.tiny_pairs()
    good = [pair(*p) for p in pairs]
    for i, (key, kind, content) in enumerate(pairs):
        def case(what, *new):
            return f"{key} {what}", tiny(good[:i] + list(new) + good[i + 1:])
        yield case("absent")
        yield case("twice", good[i], good[i])
        yield case("a negative i64", pair(key, I64, -1))
        yield case("of another type", pair(key, STRING, "7") if kind != STRING else pair(key, U32, 7))
        for value in values.get(kind, []):
            yield case(f"= {value[:10] if kind == STRING else value!r}", pair(key, kind, value))
        if kind == ARRAY:
            item, items = content
            wrong = {"empty": [], "too short": items[:1], "too long": items * 2}
            wrong["of odd items"] = [b"\xff"] * len(items) if item == STRING else [0x7FFFFFFF] * len(items)
            for what, new in wrong.items():
                yield case(what, pair(key, ARRAY, (item, new)))
            yield case("of another item type", pair(key, ARRAY, (F32, [1.0] * len(items))))


def changed_tensors():
    """Tests each kind of wrong entry in a tensor's description."""
    described, offset = [], 0
    for name, dims in gguf.tiny_tensors():
        described.append((name, dims, offset))
        offset += gguf.size(dims)
    good = [tensor(*d) for d in described]
    big = 1 << 40
    for i, (name, dims, offset) in enumerate(described):
        def case(what, *new):
            return f"{name} {what}", tiny(tensors=good[:i] + list(new) + good[i + 1:])
        yield case("absent")
        yield case("twice", good[i], good[i])
        yield case("renamed", tensor("nonsense", dims, offset))
        for what, wrong in (("no dimensions", []), ("five", [2] * 5), ("of zero", [0] * len(dims)), ("huge", [big] * len(dims)),
                            ("overflowing", [1 << 62, 4]), ("negative", [-1] * len(dims)), ("one more", [d + 1 for d in dims]),
                            ("swapped", [*reversed(dims), 1]), ("a billion dimensions", None)):
            new = tensor(name, wrong, offset) if wrong is not None else string(name) + u32(1 << 30)
            yield case(f"dimensions {what}", new)
        for where in (offset + 1, offset + (1 << 30), (1 << 64) - 32, (1 << 63)):
            yield case(f"at {where:#x}", tensor(name, dims, where))
        for kind in (1, 2, 8, 30, 31, 39, 255, 0xFFFFFFFF):
            yield case(f"of type {kind}", tensor(name, dims, offset, kind))


def shapes():
    """Tests wrong counts and lengths."""
    key = string("a.b")
    for version in (0, 1, 2, 4, 0x03000000, 0xFFFFFFFF):
        yield f"version {version:#x}", tiny(version=version)
    for count in (0, 1, 1 << 16, 1 << 32, 1 << 60, (1 << 63) - 1, (1 << 64) - 1):
        yield f"{count:#x} pairs", tiny(pair_count=count)
        yield f"{count:#x} tensors", tiny(tensor_count=count)
        yield f"a key of {count:#x} bytes", tiny([u64(count) + b"key"])
        yield f"a string of {count:#x} bytes", tiny([key + u32(STRING) + u64(count) + b"text"])
        for item in (U8, STRING, U64, ARRAY, 99):
            yield f"an array of {count:#x} items of type {item}", tiny([key + u32(ARRAY) + u32(item) + u64(count) + b"\0" * 64])
    for kind in (13, 99, 0xFFFFFFFF):
        yield f"a value of type {kind}", tiny([key + u32(kind) + u64(1)])
    yield "a bool of 7", tiny([key + u32(7) + b"\x07"] + [pair(*p) for p in gguf.tiny_pairs()])
    nested = u32(ARRAY) + u64(1)
    for depth in (1, 100, 100000):
        yield f"arrays {depth} deep", tiny([key + u32(ARRAY) + nested * depth + u32(U8) + u64(1) + b"\0"])
    for name, data in (("nothing", b""), ("the magic alone", b"GGUF"), ("another magic", b"GGML" + tiny()[4:]),
                       ("zeros", b"\0" * 4096), ("the magic and zeros", b"GGUF" + b"\0" * 4096),
                       ("the magic and ones", b"GGUF" + b"\xff" * 4096), ("big-endian", b"FUGG" + tiny()[4:])):
        yield name, data


def flipped(data, header_len, count):
    random_bits = random.Random(SEED)
    for _ in range(count):
        at, bit = random_bits.randrange(4, header_len), random_bits.randrange(8)
        copy = bytearray(data)
        copy[at] ^= 1 << bit
        yield f"bit {bit} of byte {at}", bytes(copy)


class Malformed(Case):
    def test_the_tiny_model_is_good(self):
        self.write(tiny())
        self.assertEqual(self.try_load("as it is"), "works")

    def test_pairs(self):
        self.run_cases(changed_pairs(), 80)

    def test_tensors(self):
        self.run_cases(changed_tensors(), 150)

    def test_shapes(self):
        self.run_cases(shapes(), 60)

    def test_bits(self):
        good = tiny()
        self.run_cases(flipped(good, gguf.Reader(good).end, FLIPS), FLIPS // 4)

    def test_truncations(self):
        good = tiny()
        steps = sorted({*range(4, 600, 7), *range(600, len(good), 401)}, reverse=True)
        self.run_cases(((f"{n} bytes", good[:n]) for n in steps), 60)


class RealModel(Case):
    """Tests the real file, cut, and with bits flipped."""

    def setUp(self):
        super().setUp()
        shutil.copyfile(MODELS[0], self.path)
        with open(self.path, "rb") as f:
            head = f.read(8 << 20)
        self.reader = gguf.Reader(head)

    def test_truncations(self):
        full, header = os.path.getsize(self.path), self.reader.data_start
        steps = [*range(full - 1, header, -(8 << 20)), header, *range(header - header % 4096, 0, -4096), 4, 3, 0]
        for length in steps[::STRIDE]:
            os.truncate(self.path, length)
            with self.subTest(length):
                self.assertEqual(self.try_load(f"{length} bytes"), "refused")
        print(f"{self.id().split('.')[-1]}: {self.counts}", file=sys.stderr)

    def test_bits(self):
        random_bits = random.Random(SEED)
        with open(self.path, "r+b") as f:
            for _ in range(max(2, 10 // STRIDE)):
                at, bit = random_bits.randrange(4, self.reader.end), 1 << random_bits.randrange(8)
                for _ in range(2):  # flips the bit, and then flips it back
                    f.seek(at)
                    byte = f.read(1)[0]
                    f.seek(at)
                    f.write(bytes([byte ^ bit]))
                    f.flush()
                    if _ == 0:
                        with self.subTest(at):
                            self.try_load(f"bit {bit:#x} of byte {at}")
        print(f"{self.id().split('.')[-1]}: {self.counts}", file=sys.stderr)


# ---- cases that need the front ----

class Templates(Case):
    """A chat template is a program. It runs in the engine, within the job's limits."""

    def create(self, template, **limits):
        pairs = [pair(key, kind, template if key == "tokenizer.chat_template" else content)
                 for key, kind, content in gguf.tiny_pairs()]
        self.write(tiny(pairs))
        before = time.monotonic()
        result = self.front.call("responses.create", {"model": "case", "input": "hi", "max_output_tokens": 1,
                                                      "fm": limits}, LIMIT)
        return result, time.monotonic() - before

    def test_broken_ones(self):
        self.start_front()
        for template in ("{% if %}", "{{", "{% for %}", "{{ raise_exception('no') }}", "{{ nothing.at.all() }}",
                         "{{ messages[99].content }}", "\xff", "{{ 1/0 }}"):
            with self.subTest(template):
                result, _ = self.create(template)
                if not result["ok"]:
                    self.assertIn(result["error"]["code"], ("UNAVAILABLE", "INTERNAL", "INVALID_REQUEST"), result)
                self.assert_soon(self.front.ping_ms(), 100 * SLOW)
                self.assert_good_model()

    def test_ones_without_an_end(self):
        self.start_front()
        for template in ("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
                         "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "(" * 100000, "{{ " + "(" * 100000 + " }}",
                         "{{ 'x' * 1000000000000 }}", "{% for a in range(30000000) %}{% endfor %}"):
            with self.subTest(template[:60]):
                result, seconds = self.create(template, queue_timeout_ms=1500)
                if not result["ok"]:
                    self.assertIn(result["error"]["code"],
                                  ("TIMEOUT", "UNAVAILABLE", "INTERNAL", "INVALID_REQUEST", "CONTEXT_OVERFLOW"), result)
                self.assert_soon(seconds, 5 * SLOW)
                self.assert_soon(self.front.ping_ms(), 100 * SLOW)
                self.assert_good_model()
                self.assertEqual(self.footprint(), self.baseline)


class Tokenizers(Case):
    """A tokenizer's patterns also run in the engine, on prompts of any shape."""

    def start(self, splitter):
        def small_stack():
            resource.setrlimit(resource.RLIMIT_STACK, (512 * 1024, 512 * 1024))
        self.start_front(preexec_fn=small_stack, env={"FM_ENGINE_LLAMA_CTX": "80000"})
        self.write(tiny([pair(key, kind, splitter if key == "tokenizer.ggml.pre" else content)
                         for key, kind, content in gguf.tiny_pairs()]))
        self.ask("hi")

    def ask(self, prompt, **limits):
        return self.front.call("responses.create", {"model": "case", "input": prompt, "max_output_tokens": 1,
                                                    "fm": limits}, LIMIT)

    def test_a_long_run_on_a_small_stack(self):
        self.start("tekken")
        error = self.assert_error(self.ask("a" * 500_000), "CONTEXT_OVERFLOW")
        self.assertNotIn("has at least", error["detail"], "it was not tokenized")
        self.assertTrue(self.ask("hi")["ok"])

    def test_a_slow_one_is_ended(self):
        self.start("superbpe")
        digits = "1" * 40_000  # the time grows quadratically: most of a minute
        before = time.monotonic()
        error = self.assert_error(self.ask(digits, queue_timeout_ms=300), "TIMEOUT")
        self.assertEqual(error["limit"], "queue")
        self.assert_soon(time.monotonic() - before, 3 * SLOW)
        self.assertTrue(self.ask("hi")["ok"])
        before = time.monotonic()
        call = self.front.start("responses.create", {"model": "case", "input": digits})
        cancel = self.front.start("responses.cancel", {"request_id": call})
        self.assert_error(self.front.collect(call, LIMIT)[1], "CANCELLED")
        self.assert_soon(time.monotonic() - before, 3 * SLOW)
        self.assertTrue(self.front.reply(cancel)["result"]["ok"])
        self.assert_good_model()
        self.assertEqual(self.footprint(), self.baseline)


class Shrinking(Case):
    def setUp(self):
        super().setUp()
        self.start_front()

    def cut(self, after, then, model):
        """Cuts the real model to `then` bytes, `after` seconds into its load. The name is new: deaths are counted for each
        model."""
        self.path = os.path.join(self.folder, model + ".gguf")
        shutil.copyfile(MODELS[0], self.path)
        timer = threading.Timer(after, os.truncate, (self.path, then))
        timer.start()
        result = self.front.call("responses.create", {"model": model, "input": "hi", "max_output_tokens": 8}, LIMIT)
        timer.join()
        return result

    def test_while_loading(self):
        random_times = random.Random(SEED)
        for number in range(max(2, 8 // STRIDE)):
            after, then = random_times.uniform(0, 0.3) * SLOW, random_times.choice((0, 1000, 1 << 20, 50 << 20))
            with self.subTest(f"{then} bytes after {after:.3f} s"):
                result = self.cut(after, then, f"cut-{number}")
                if not result["ok"]:
                    error = result["error"]
                    self.assertIn(error["code"], ("UNAVAILABLE", "INTERNAL"), result)
                    self.assertRegex(error["detail"], "ended by signal" if error["code"] == "INTERNAL" else self.path)
                self.assert_soon(self.front.ping_ms(), 100 * SLOW)
                self.assert_good_model()
                self.assertEqual(self.footprint(), self.baseline)

    def test_while_generating(self):
        shutil.copyfile(MODELS[0], self.path)
        call = self.front.start("responses.create", {"model": "case", "input": "Count to a thousand.", "stream": True,
                                                     "max_output_tokens": 2000})
        self.front.event(call, "response.output_text.delta", LIMIT, keep=True)
        os.truncate(self.path, 0)
        events, result = self.front.collect(call, LIMIT)
        wire.check_stream(self, events, result)
        if not result["ok"]:
            self.assert_error(result, "INTERNAL")
            self.assertIn("ended by signal 7", result["error"]["detail"])
        self.assert_good_model()
        self.assertEqual(self.footprint(), self.baseline)


class Unreadable(Case):
    def test_no_permission(self):
        self.write(tiny())
        os.chmod(self.path, 0)
        options = {}
        if os.getuid() == 0:  # root can read everything: another user tries
            options = {"user": NOBODY, "group": NOBODY}
            os.chmod(self.folder, 0o755)
        try:
            ping = wire.frame({"jsonrpc": "2.0", "id": 1, "method": "responses.create", "params": {"input": "x"}})
            done = subprocess.run([os.path.join(wire.BIN, "fm-proxy"), "--model", self.path], input=ping,
                                  capture_output=True, timeout=LIMIT, cwd="/", **options)
        except PermissionError as error:
            self.skipTest(f"the programs can't be run by another user than root: {error}")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b'"code":"UNAVAILABLE"', done.stdout)
        self.assertIn(b"Permission denied", done.stdout)
        self.assertIn(self.path.encode(), done.stdout)


def missing():
    for path in (PROGRAM, MODELS[0] if MODELS else "build/models/*.gguf"):
        if not os.path.exists(path):
            return path
    return None


if __name__ == "__main__":
    if missing():
        print(f"skipped: {missing()} is missing")
        sys.exit(77)
    contract.WAIT = LIMIT
    wire.main()
