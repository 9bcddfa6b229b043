"""Tests what ENGINE.md promises about jobs that embed, for every engine with such jobs, and properties of the llama engine's
vectors:

    test_embeddings.py PROGRAM [MODEL [CHAT_MODEL]]

MODEL embeds (packaging/setup.sh --tests makes it), CHAT_MODEL does not; without them the engine has no files. Exit status
77: skipped, because MODEL is not there.
"""

import array
import base64
import json
import math
import operator
import os
import random
import re
import struct
import sys
import tempfile
import time
import unittest

from engine import GRACE, WAIT, Engine, TimedTest, user

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "e2e"))
import gguf

PROGRAM = None
MODEL = None
CHAT_MODEL = None

TEXTS = ["A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby.",
         "A man is riding a horse.", "A woman is playing violin.", "x", "Z\u00fcrich, \u6771\u4eac & \U0001F600\0!"]


def vector(text):
    data = base64.b64decode(text, validate=True)
    assert len(data) % 4 == 0
    return struct.unpack(f"<{len(data) // 4}f", data)


def dot(a, b):
    return sum(map(operator.mul, a, b))


class Embedded:
    """A job's events, checked against the order that ENGINE.md gives."""

    def __init__(self, events):
        self.vectors = []
        self.names = []
        self.accepted = self.dimension = None
        self.processed = []  # the counts of each job.progress, which also comes each second while a batch is computed
        processed = 0
        for name, params in events:
            self.names.append(name)
            if name == "job.accepted":
                assert self.names == ["job.accepted"], self.names
                self.accepted, self.dimension = params["input_tokens"], params["dimension"]
            elif name == "job.progress":
                assert processed <= params["processed"] <= self.accepted, params  # the count does not grow within a long batch
                assert params["cached"] == 0 and "output_tokens" not in params, params
                processed = params["processed"]
                self.processed.append(processed)
            elif name == "job.embedding":
                assert params["index"] == len(self.vectors), params
                self.vectors.append(vector(params["vector"]))
                assert len(self.vectors[-1]) == self.dimension, params
            else:
                assert name == "job.finished", name
                self.reason, self.usage, self.error = params["reason"], params["usage"], params.get("error")
        assert (self.error is not None) == (self.reason == "error"), self.error
        assert self.usage["input_tokens"] == (self.accepted or 0), self.usage
        assert self.usage["output_tokens"] == 0, self.usage


class Case(TimedTest):
    def ready(self, model=None, env=None, **more):
        engine = Engine(PROGRAM, {**(env or {}), **more})
        self.addCleanup(engine.close)
        self.assertTrue(engine.initialize()["ok"])
        loaded, _ = engine.load(model or MODEL)
        self.assertTrue(loaded["ok"], loaded)
        engine.context_length = loaded["context_length"]
        return engine

    def start(self, engine, texts):
        engine.next_job += 1
        engine.notify("job.start", {"job": engine.next_job, "embed": texts})
        return engine.next_job

    def embed(self, engine, *texts):
        outcome = Embedded(engine.events(self.start(engine, list(texts))))
        self.assertEqual((outcome.reason, len(outcome.vectors)), ("stop", len(texts)), outcome.error)
        return outcome

    def refused(self, engine, texts):
        outcome = Embedded(engine.events(self.start(engine, texts)))
        self.assertEqual((outcome.names, outcome.reason), (["job.finished"], "error"))
        return outcome.error


class Jobs(Case):
    def setUp(self):
        self.engine = self.ready()

    def test_vectors(self):
        outcome = self.embed(self.engine, *TEXTS)
        self.assertGreaterEqual(outcome.dimension, 1)
        self.assertEqual(len(set(outcome.vectors)), len(TEXTS))
        for values in outcome.vectors:
            self.assertAlmostEqual(dot(values, values), 1, places=6)

    def test_tokens_are_counted(self):
        one, two = (self.embed(self.engine, text).accepted for text in TEXTS[:2])
        self.assertEqual(self.embed(self.engine, *TEXTS[:2]).accepted, one + two)

    def test_the_same_text_has_the_same_vector(self):
        """A vector is the same to the last bit as a single text, among others, in any order, after others, and in another
        process."""
        alone = {text: self.embed(self.engine, text).vectors[0] for text in TEXTS}
        chance = random.Random(7)
        for _ in range(4):
            texts = chance.choices(TEXTS, k=chance.randint(2, 9)) + ["something else " * chance.randint(1, 50)]
            chance.shuffle(texts)
            for text, values in zip(texts, self.embed(self.engine, *texts).vectors):
                self.assertEqual(values, alone.get(text, values))
        other = self.ready()
        self.assertEqual(self.embed(other, *reversed(TEXTS)).vectors, [alone[text] for text in reversed(TEXTS)])

    def test_many_at_once(self):
        texts = [f"number {i % 16}" for i in range(2048 if not MODEL else 200)]
        vectors = self.embed(self.engine, *texts).vectors
        self.assertEqual(len(set(vectors)), 16)
        self.assertEqual(vectors[:16], vectors[-16:] if len(texts) % 16 == 0 else vectors[-24:-8])

    def test_an_overflow_names_the_input(self):
        error = self.refused(self.engine, ["short", "word " * (self.engine.context_length + 40), "short"])
        self.assertEqual((error["code"], error["param"]), ("CONTEXT_OVERFLOW", "embed[1]"))
        numbers = [int(n) for n in re.findall(r"\d+", error["detail"])]
        self.assertIn(self.engine.context_length, numbers)
        self.assertGreater(max(numbers), self.engine.context_length)
        self.embed(self.engine, *TEXTS)

    def test_malformed_starts(self):
        for params, param in (
            ({"embed": []}, "embed"),
            ({"embed": "text"}, "embed"),
            ({"embed": ["x"] * 2049}, "embed"),
            ({"embed": ["x", ""]}, "embed[1]"),
            ({"embed": [5]}, "embed[0]"),
            ({"embed": ["x"], "messages": user("hi")}, "messages"),
            ({"embed": ["x"], "temperature": 0}, "temperature"),
        ):
            self.engine.next_job += 1
            self.engine.notify("job.start", {"job": self.engine.next_job, **params})
            (name, params), = self.engine.events(self.engine.next_job)
            self.assertEqual((params["error"]["code"], params["error"].get("param")), ("INVALID_REQUEST", param))
        self.embed(self.engine, *TEXTS)

    def test_jobs_that_wait(self):
        jobs = [self.start(self.engine, TEXTS) for _ in range(3)]
        left = set(jobs)
        while left:
            message = self.engine.receive()
            if message["method"] == "job.finished":
                left.remove(message["params"]["job"])
                self.assertEqual(message["params"]["reason"], "stop")

    def test_an_abort_between_inputs(self):
        engine = self.ready(FM_ENGINE_FAKE_DIMENSION="65536")  # such long vectors take some time
        job = self.start(engine, ["word " * 100] * 1000)
        seen, asked = [], None
        for name, params in engine.events(job):
            seen.append((name, params))
            if name == "job.embedding" and not asked:
                asked = time.monotonic()
                engine.notify("job.abort", {"job": job})
        self.assert_soon(time.monotonic() - asked, GRACE)
        outcome = Embedded(seen)
        self.assertEqual(outcome.reason, "aborted")
        self.assertTrue(1 <= len(outcome.vectors) < 1000, len(outcome.vectors))
        self.embed(engine, *TEXTS)

    def test_an_abort_inside_an_input(self):
        before = self.embed(self.engine, *TEXTS).vectors
        text = "word " * (self.engine.context_length - 2) if MODEL else json.dumps([{"hang": "soft"}])
        job = self.start(self.engine, [text] * 5)
        events = self.engine.events(job)
        first = next(events)
        self.assertEqual(first[0], "job.accepted")
        start = time.monotonic()
        self.engine.notify("job.abort", {"job": job})
        outcome = Embedded([first, *events])
        self.assert_soon(time.monotonic() - start, GRACE)
        self.assertEqual((outcome.reason, outcome.vectors), ("aborted", []))
        self.assertEqual(self.embed(self.engine, *TEXTS).vectors, before, "an abort leaves nothing behind")

    def test_stdin_ends(self):
        self.start(self.engine, ["word " * 100] * 2000)
        self.assertEqual(self.engine.receive()["method"], "job.accepted")
        self.engine.hang_up()
        self.assertEqual(self.engine.wait_exit(WAIT)[0], 0)


class Model(Case):
    """Tests of the llama engine."""

    def setUp(self):
        if not MODEL:
            self.skipTest("this engine has no files")

    def test_meaning(self):
        """The figures that the model's authors publish for these sentences."""
        first, bread, baby, horse, violin = self.embed(self.ready(), *TEXTS[:5]).vectors
        self.assertAlmostEqual(dot(first, bread), 0.7553, places=3)
        for other in (baby, horse, violin):
            self.assertLess(dot(first, other), 0.3)

    def test_the_vector_is_the_models(self):
        """Compares with the same computation in Python."""
        tokens = ["[CLS]", "\u2581a", "\u2581cat", "\u2581em", "bed", "s", "[SEP]"]
        expected = Bert(MODEL).embed(tokens)
        outcome = self.embed(self.ready(), "A cat embeds")
        self.assertEqual(outcome.accepted, len(tokens))
        self.assertEqual(outcome.dimension, len(expected))
        self.assertGreater(dot(outcome.vectors[0], expected), 0.99999)
        self.assertLess(max(abs(a - b) for a, b in zip(outcome.vectors[0], expected)), 1e-3)

    def test_control_tokens_are_text(self):
        engine = self.ready()
        self.assertGreater(self.embed(engine, "x [SEP] [CLS]").accepted, self.embed(engine, "x").accepted + 2)

    def test_the_context_is_full(self):
        engine = self.ready()
        self.assertEqual(engine.context_length, 512)
        self.assertEqual(self.embed(engine, "word " * 510).accepted, 512)
        self.assertEqual(self.refused(engine, ["word " * 511])["code"], "CONTEXT_OVERFLOW")

    def test_the_context_is_never_longer_than_the_models(self):
        """The model has no positions beyond 512."""
        self.assertEqual(self.ready(FM_ENGINE_LLAMA_CTX="4096").context_length, 512)
        engine = self.ready(FM_ENGINE_LLAMA_CTX="100")
        self.assertEqual(engine.context_length, 100)
        self.assertEqual(self.embed(engine, "word " * 98).accepted, 100)
        self.assertEqual(self.refused(engine, ["word " * 99])["code"], "CONTEXT_OVERFLOW")

    def test_a_context_of_any_length_gives_the_same_vectors(self):
        whole = self.embed(self.ready(), *TEXTS).vectors
        self.assertEqual(self.embed(self.ready(FM_ENGINE_LLAMA_CTX="100"), *TEXTS).vectors, whole)

    def test_text_without_words(self):
        vectors = self.embed(self.ready(), " \n", "\0").vectors
        self.assertEqual(vectors[0], vectors[1])  # white space at the ends is removed

    def test_it_does_not_chat(self):
        outcome = self.ready().run(user("hi"))
        self.assertEqual((outcome.error["code"], outcome.error["param"]), ("INVALID_REQUEST", "model"))

    def test_a_model_that_chats_does_not_embed(self):
        if not CHAT_MODEL or not os.path.exists(CHAT_MODEL):
            self.skipTest("no model that chats")
        engine = self.ready(CHAT_MODEL)
        error = self.refused(engine, ["hi"])
        self.assertEqual((error["code"], error["param"]), ("INVALID_REQUEST", "model"))
        self.assertEqual(engine.run(user("hi"), max_tokens=2, temperature=0).error, None)


class Decoders(Case):
    """A model that generates, with a field that sets how it embeds."""

    def setUp(self):
        if not CHAT_MODEL or not os.path.exists(CHAT_MODEL):
            self.skipTest("no model that chats")

    def pooled(self, pooling, *more):
        with open(CHAT_MODEL, "rb") as file:
            data = file.read()
        added = [gguf.pair("llama.pooling_type", gguf.U32, pooling), *more]
        reader = gguf.Reader(data)
        file = tempfile.NamedTemporaryFile(suffix=".gguf")
        self.addCleanup(file.close)
        file.write(reader.with_more(added))
        file.write(memoryview(data)[reader.data_start:])
        file.flush()
        return file.name

    def stops_within(self, engine, text, outcome):
        """Whether the first text of the job, `text`, was computed in pieces."""
        whole = self.embed(engine, text).accepted
        return any(0 < processed < whole for processed in outcome.processed)

    def test_the_last_state(self):
        """The text is computed in pieces, and the host gets the progress."""
        engine = self.ready(self.pooled(3), FM_ENGINE_LLAMA_CTX="1024")
        long = "It was a quiet day by the sea. " * 30
        first = self.embed(engine, long, "The sea.")
        self.assertTrue(self.stops_within(engine, long, first))
        second = self.embed(engine, "The sea.", "Something else", long)
        self.assertEqual(first.vectors, [second.vectors[2], second.vectors[0]])
        self.assertEqual(self.refused(engine, ["x", "word " * 1100])["param"], "embed[1]")

    def test_the_mean(self):
        """This way of embedding needs all states of a text, so the text is computed in one piece."""
        engine = self.ready(self.pooled(1), FM_ENGINE_LLAMA_CTX="512")
        long = "It was a quiet day by the sea. " * 30
        first = self.embed(engine, long, "The sea.")
        self.assertFalse(self.stops_within(engine, long, first))
        second = self.embed(engine, "The sea.", long)
        self.assertEqual(first.vectors, second.vectors[::-1])
        near, far = "It was a quiet day by the water.", "def main(): return 0"
        a, b, c = self.embed(engine, long, near, far).vectors
        self.assertGreater(dot(a, b), dot(a, c))

    def test_what_does_not_embed(self):
        for pooling in (4, 99):
            engine = Engine(PROGRAM)
            self.addCleanup(engine.close)
            engine.initialize()
            result, _ = engine.load(self.pooled(pooling))
            self.assertEqual((result["ok"], result.get("error", {}).get("code")), (False, "UNAVAILABLE"), result)

    def test_a_model_of_nothing(self):
        """All states are zero, and such a vector has no direction."""
        file = tempfile.NamedTemporaryFile(suffix=".gguf")
        self.addCleanup(file.close)
        file.write(gguf.tiny([gguf.pair(*p) for p in gguf.tiny_pairs()] + [gguf.pair("llama.pooling_type", gguf.U32, 3)]))
        file.flush()
        engine = self.ready(file.name)
        outcome = Embedded(engine.events(self.start(engine, ["a"])))
        self.assertEqual((outcome.error["code"], outcome.error["param"]), ("INTERNAL", "embed[0]"))


# ---- the model in Python ----


class Bert:
    """A BERT model of 32-bit floats from a GGUF file, with mean pooling."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        reader = gguf.Reader(self.data)
        self.values, self.tensors, self.start = reader.values(), reader.tensors, reader.data_start
        self.heads = self.values["bert.attention.head_count"]
        self.epsilon = self.values["bert.attention.layer_norm_epsilon"]

    def tensor(self, name):
        """The rows of the tensor."""
        dims, offset = self.tensors[name]
        numbers = array.array("f", self.data[self.start + offset:self.start + offset + gguf.size(dims)])
        return [numbers[i:i + dims[0]] for i in range(0, len(numbers), dims[0])]

    def row(self, name, index):
        dims, offset = self.tensors[name]
        at = self.start + offset + 4 * dims[0] * index
        return array.array("f", self.data[at:at + 4 * dims[0]])

    def linear(self, name, states):
        rows, bias = self.tensor(name + ".weight"), self.tensor(name + ".bias")[0]
        return [[dot(row, state) + b for row, b in zip(rows, bias)] for state in states]

    def norm(self, name, states):
        weight, bias = self.tensor(name + ".weight")[0], self.tensor(name + ".bias")[0]
        out = []
        for state in states:
            mean = sum(state) / len(state)
            deviation = math.sqrt(sum((x - mean) ** 2 for x in state) / len(state) + self.epsilon)
            out.append([(x - mean) / deviation * w + b for x, w, b in zip(state, weight, bias)])
        return out

    def attention(self, block, states):
        query, key, value = (self.linear(f"{block}.attn_{which}", states) for which in "qkv")
        size = len(states[0]) // self.heads
        out = [[] for _ in states]
        for head in range(0, len(states[0]), size):
            part = slice(head, head + size)
            for i, q in enumerate(query):
                weights = [math.exp(dot(q[part], k[part]) / math.sqrt(size)) for k in key]
                columns = zip(*(v[part] for v in value))
                out[i] += [dot(weights, column) / sum(weights) for column in columns]
        return self.linear(f"{block}.attn_output", out)

    def layer(self, block, states):
        states = self.norm(f"{block}.attn_output_norm", add(states, self.attention(block, states)))
        inner = [[x / 2 * (1 + math.erf(x / math.sqrt(2))) for x in state]
                 for state in self.linear(f"{block}.ffn_up", states)]
        return self.norm(f"{block}.layer_output_norm", add(states, self.linear(f"{block}.ffn_down", inner)))

    def embed(self, tokens):
        ids = [self.values["tokenizer.ggml.tokens"].index(token) for token in tokens]
        states = [[a + b + c for a, b, c in zip(self.row("token_embd.weight", token), self.row("token_types.weight", 0),
                                                self.row("position_embd.weight", at))] for at, token in enumerate(ids)]
        states = self.norm("token_embd_norm", states)
        for block in range(self.values["bert.block_count"]):
            states = self.layer(f"blk.{block}", states)
        mean = [sum(column) / len(states) for column in zip(*states)]
        length = math.sqrt(dot(mean, mean))
        return [x / length for x in mean]


def add(left, right):
    return [[a + b for a, b in zip(x, y)] for x, y in zip(left, right)]


def main():
    global PROGRAM, MODEL, CHAT_MODEL
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv[1])
    files = [os.path.abspath(a) for a in sys.argv[2:4] if not a.startswith("-") and a.endswith(".gguf")]
    MODEL, CHAT_MODEL = (files + [None, None])[:2]
    del sys.argv[1:2 + len(files)]
    if MODEL and not os.path.exists(MODEL):
        print(f"skipped: there is no model file {MODEL}; packaging/setup.sh --tests makes it")
        sys.exit(77)
    unittest.main()


if __name__ == "__main__":
    main()
