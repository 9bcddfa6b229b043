"""Tests the llama engine's speculation: it never changes an answer, and saves work if an answer repeats its prompt.

    test_speculation.py PROGRAM MODEL

Uses one compute thread, so that a token's logits are the same to the bit, whatever else is in its batch. Exit status 77: skipped,
because MODEL is not there.
"""

import os
import re
import sys
import tempfile
import time
import unittest

from engine import GRACE, Engine, program_and_model, user

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
import gguf  # noqa: E402
import patience  # noqa: E402
import speculation as bench  # noqa: E402

PROGRAM = None
WHOLE = None  # the model
MODEL = None  # gguf.shallow

SPECULATION = "FM_ENGINE_LLAMA_SPECULATION"


class Case(unittest.TestCase):
    @staticmethod
    def new_engine(at_end, mode, model=None, draft=None, **env):
        """Returns a fresh engine, which `at_end` closes, and its answer to engine.load."""
        engine = Engine(PROGRAM, {"FM_ENGINE_LLAMA_THREADS": "1", "FM_ENGINE_LLAMA_REPEATABLE": "", SPECULATION: mode, **env})
        at_end(engine.close)
        assert engine.initialize(log_level="info")["ok"]
        result, _ = engine.load(model or MODEL, **({"draft_model": draft} if draft else {}))
        return engine, result

    def load(self, mode, model=None, draft=None, **env):
        return self.new_engine(self.addCleanup, mode, model, draft, **env)

    def ready(self, mode, model=None, draft=None, **env):
        engine, result = self.load(mode, model, draft, **env)
        self.assertTrue(result["ok"], result)
        return engine

    def run_in(self, engine, messages, **params):
        """Returns what an answer contains, apart from where it was cut into deltas, and its accepted and drafted tokens. A
        repeatable job computes the prompt first, unless the previous answer had the same prompt: otherwise the prompt's bits
        depend on how fast the machine was."""
        prompt = (messages, params.get("prompt"), params.get("tools"))
        if getattr(engine, "prompt", None) != prompt:
            engine.run(messages, **{**params, "max_tokens": 1, "seed": 1})
            engine.prompt = prompt
        outcome = engine.run(messages, **params)
        self.assertEqual(outcome.cached, outcome.accepted - 1)
        usage = {name: count for name, count in outcome.usage.items() if name != "cached_tokens"}
        drafts = [outcome.timings.get(name, 0) for name in ("accepted_tokens", "drafted_tokens")]
        return {"text": outcome.text, "reason": outcome.reason, "usage": usage, "logprobs": outcome.logprobs,
                "calls": outcome.calls, "error": outcome.error}, drafts

    def file(self, data):
        """The path of a file with this content, which exists as long as the test runs."""
        with tempfile.NamedTemporaryFile(suffix=".gguf", delete=False) as file:
            file.write(data)
        self.addCleanup(os.unlink, file.name)
        return file.name

    def drafts(self, engine, kind=rb"drafts accepted"):
        """Ends the engine. Returns the accepted and drafted tokens of all its jobs."""
        engine.close()
        found = re.findall(rb"(\d+) of (\d+) " + kind, engine.stderr)
        return tuple(sum(int(pair[i]) for pair in found) for i in (0, 1))


class SameAnswers(Case):
    """Two engines for all tests. test_distribution.py tests random draws."""

    @classmethod
    def setUpClass(cls):
        cls.plain, cls.ours = (cls.new_engine(cls.addClassCleanup, mode)[0] for mode in ("off", "always"))

    def assert_same(self, jobs, plain=None, ours=None):
        """Each job has the same answer with as many drafts as possible, and without any."""
        took = drafted = 0
        for messages, params in jobs:
            want, none = self.run_in(plain or self.plain, messages, **params)
            got, drafts = self.run_in(ours or self.ours, messages, **params)
            self.assertEqual(got, want, params)
            self.assertEqual(none, [0, 0])
            took, drafted = took + drafts[0], drafted + drafts[1]
        self.assertGreater(took, 0)
        self.assertLessEqual(took, drafted)

    def rewrite(self, number=0, **params):
        params = {**bench.rewrite(number), **params}
        return params.pop("messages"), params

    def test_where_it_ends(self):
        """Answers that end after a number of tokens, at a stop string, and at the end of the context."""
        text = {"prompt": "one two three four " * 4, "temperature": 0, "max_tokens": 40}
        plain, ours = (self.ready(mode, WHOLE) for mode in ("off", "always"))
        self.assert_same([(None, {**text, **end}) for end in (
            *({"max_tokens": count} for count in (1, 2, 7, 8, 9, 20)), {"stop": ["three four"]}, {"stop": ["o"]})], plain, ours)
        for context in ("40", "41", "50"):
            plain, ours = (self.ready(mode, WHOLE, FM_ENGINE_LLAMA_CTX=context) for mode in ("off", "always"))
            self.assert_same([(None, {**text, "max_tokens": 60})], plain, ours)

    def test_log_probabilities(self):
        self.assert_same([self.rewrite(logprobs=3, max_tokens=60)])

    def test_penalties_and_biases(self):
        self.assert_same([self.rewrite(max_tokens=60, **params) for params in (
            {"presence_penalty": 0.4}, {"frequency_penalty": 0.1}, {"repeat_penalty": 1.05}, {"ignore_eos": True},
            {"logit_bias": [[28, -100]]})])

    def test_structured_output(self):
        """A grammar only sees accepted tokens, and forced tokens are not drawn."""
        schema = {"type": "object", "properties": {"first": {"type": "string"}, "again": {"type": "string"}},
                  "required": ["first", "again"], "additionalProperties": False}
        words = "the quick brown fox jumps over the lazy dog"
        text = user(f'Give {{"first": "{words}", "again": "{words}"}} as it is.')
        lines = {"type": "grammar", "syntax": "regex", "definition": f"({words}, (and )?){{4}}end"}
        tools = [{"name": "say", "parameters": {**schema}, "strict": True}]
        self.assert_same([
            (text, {"max_tokens": 80, "temperature": 0, "format": {"type": "json_schema", "schema": schema, "strict": True}}),
            (text, {"max_tokens": 80, "temperature": 0, "format": {"type": "json_object"}}),
            (text, {"max_tokens": 80, "temperature": 0, "format": lines}),
            (text, {"max_tokens": 80, "temperature": 0, "format": lines, "logprobs": 1}),
            (text, {"max_tokens": 80, "temperature": 0, "tools": tools, "tool_choice": {"mode": "required"}})])

    def test_sampled_where_one_token_is_left(self):
        """Tests the path of drawn tokens, without randomness."""
        self.assert_same([self.rewrite(max_tokens=60, temperature=1, top_k=1)])

    def test_jobs_side_by_side(self):
        """Each job continues with its own words."""
        texts = ("one two three four", "red green blue", "Anna Ben Clara")
        for engine in (self.ready(mode, WHOLE) for mode in ("off", "always")):
            jobs = [engine.start(None, prompt=" ".join([text] * 8), max_tokens=40, temperature=0) for text in texts]
            for outcome, own in zip(engine.outcomes(jobs), texts):
                self.assertEqual((outcome.reason, outcome.usage["output_tokens"]), ("length", 40))
                said = [text for text in texts if set(text.split()) & set(outcome.text.split())]
                self.assertEqual(said, [own], outcome.text)


class DraftModel(patience.TimedTest, Case):
    ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDE"  # no text in it repeats, so the lookup finds nothing
    GUESSES = rb"of the draft model"

    def chain(self, letters=ALPHABET):
        return self.file(gguf.chain(letters, 9))

    def test_right_and_wrong_guesses(self):
        """The text is the same, whatever is guessed. It ends at its limit, at a stop string, or at the end of the context."""
        model, plain = self.chain(), None
        ends = ({"max_tokens": 24}, {"max_tokens": 5}, {"stop": ["p"], "max_tokens": 24}, {"logprobs": 2, "max_tokens": 9})
        for draft, right in ((model, True), (self.chain(self.ALPHABET[::-1]), False)):
            for env in ({}, {"FM_ENGINE_LLAMA_CTX": "16"}):
                plain, ours = self.ready("off", model, **env), self.ready("always", model, draft, **env)
                for end in ends:
                    params = {"prompt": "abcd", "temperature": 0, **end}
                    self.assertEqual(self.run_in(ours, None, **params)[0], self.run_in(plain, None, **params)[0], (end, env))
                accepted, drafted = self.drafts(ours, self.GUESSES)
                self.assertEqual((accepted, drafted), self.drafts(ours))
                self.assertGreater(drafted, 20)
                self.assertTrue(accepted > drafted / 2 if right else accepted == 0, (accepted, drafted))

    def test_the_model_guesses_for_itself(self):
        """The guesses are the text that the model writes, except after a stop."""
        params = {"max_tokens": 24, "temperature": 0}
        plain, ours = self.ready("off"), self.ready("always", MODEL, MODEL)
        text = user("Write a sentence about the sea.")
        self.assertEqual(self.run_in(ours, text, **params)[0], self.run_in(plain, text, **params)[0])
        accepted, drafted = self.drafts(ours, self.GUESSES)
        self.assertGreater(drafted, 8)
        self.assertGreaterEqual(accepted, 0.9 * drafted)

    def test_one_that_does_not_pay_is_left_out(self):
        """A draft model that is as slow as the model itself: after a few trials, nothing more is guessed."""
        engine = self.ready("lookup", WHOLE, WHOLE)
        for topic in ("the sea", "a forest"):
            engine.run(user(f"Write about {topic}."), max_tokens=40, temperature=0)
        _, drafted = self.drafts(engine, self.GUESSES)
        self.assert_undisturbed(drafted <= 10, f"{drafted} guessed, of 80 tokens")

    def test_an_abort_while_it_reads_the_prompt(self):
        engine = self.ready("always", MODEL, MODEL)
        numbers = " ".join(str(n * n) for n in range(50, 120))  # nothing repeats, so the lookup finds nothing
        job = engine.start(None, prompt=numbers, max_tokens=50, temperature=0)
        for name, params in engine.events(job):
            if name == "job.accepted":
                tokens = params["input_tokens"]
            if name == "job.progress" and params["processed"] == tokens and "output_tokens" not in params:
                start = time.monotonic()
                engine.notify("job.abort", {"job": job})
        self.assertEqual(params["reason"], "aborted")
        self.assertLess(time.monotonic() - start, GRACE)

    def test_its_memory_counts(self):
        model = self.chain()
        _, alone = self.load("lookup", model)
        _, both = self.load("lookup", model, model)
        more = both["memory_bytes"] - alone["memory_bytes"]
        self.assertGreater(more, os.path.getsize(model) * 0.8)  # the model's header takes no memory, its KV memory has 16 KiB
        _, off = self.load("off", model, model)
        self.assertEqual(off["memory_bytes"], alone["memory_bytes"], "nothing is guessed then")

    def test_repeatable_answers_have_no_guesses(self):
        engine = self.ready("always", self.chain(), self.chain())
        for params in ({"seed": 1}, {"repeatable": True}):
            engine.run(None, prompt="abcd", max_tokens=9, temperature=0, **params)
        self.assertEqual(self.drafts(engine), (0, 0))

    def assert_refused(self, draft, *words, model=None):
        _, result = self.load("lookup", model or self.chain(), draft)
        self.assertIs(result["ok"], False)
        self.assertEqual(result["error"]["code"], "UNAVAILABLE")
        for word in ("--draft-model", draft, *words):
            self.assertIn(word, result["error"]["detail"])

    def with_tokens(self, change):
        """The tiny model with a changed vocabulary."""
        pairs = [(key, kind, change(key, content)) for key, kind, content in gguf.tiny_pairs()]
        return self.file(gguf.tiny([gguf.pair(*pair) for pair in pairs]))

    def wider(self, name, kind):
        """The tiny model with one more token."""
        count = len(gguf.byte_tokens())
        changed = {"llama.vocab_size": count + 1, "tokenizer.ggml.tokens": (gguf.STRING, [*gguf.byte_tokens(), name]),
                   "tokenizer.ggml.token_type": (gguf.I32, [1] * 256 + [3, 1, kind])}
        pairs = [gguf.pair(key, form, changed.get(key, content)) for key, form, content in gguf.tiny_pairs()]
        return self.file(gguf.whole(pairs, [(tensor, [count + 1 if size == count else size for size in dims])
                                            for tensor, dims in gguf.tiny_tensors()]))

    def test_another_vocabulary(self):
        def renamed(key, content):
            return (content[0], [*content[1][:-1], "ac"]) if key.endswith(".tokens") else content

        def other_end(key, content):
            return 255 if key.endswith("eos_token_id") else content

        for change in (renamed, other_end):
            self.assert_refused(self.with_tokens(change), "vocabulary")
        self.assert_refused(MODEL, "vocabulary")

    def test_a_vocabulary_that_is_padded(self):
        """Models of one family have vocabularies of different lengths, because of tokens that nothing uses."""
        narrow, padded, wider = self.chain(), self.wider("[PAD258]", 5), self.wider("more", 1)
        for model, draft in ((narrow, padded), (padded, narrow), (padded, padded)):
            engine = self.ready("always", model, draft)
            self.assertIsNone(engine.run(None, prompt="abcd", max_tokens=9, temperature=0).error)
        self.assert_refused(wider, "vocabulary")
        self.assert_refused(narrow, "vocabulary", model=wider)

    def test_files_that_are_none(self):
        self.assert_refused("/nonexistent/draft.gguf", "No such file")
        self.assert_refused(self.file(b"no model"), "GGUF")
        self.assert_refused(self.file(gguf.chain("xyz", 1)[:9000]), "cut short")


class Saves(patience.TimedTest, Case):
    def seconds(self, engine):
        """The processor time of the engine so far."""
        with open(f"/proc/{engine.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @unittest.skipUnless(os.path.exists("/proc/self/stat"), "there is no /proc, which says how long a process computes")
    def test_a_rewrite(self):
        """The real model rewrites a function. Drafts are tried automatically if a text repeats its prompt, and they do not change
        the text. tests/bench/speculation.py measures how much faster 50 rewrites are. Other tests run at the same time, so this
        test compares processor time, and only expects that drafts cost none."""
        took, texts = {}, {}
        params = bench.rewrite(0)
        for mode in ("off", "lookup"):
            engine = self.ready(mode, WHOLE)
            engine.run(params["messages"], max_tokens=1, seed=1)  # computes the prompt
            before = self.seconds(engine)
            texts[mode] = engine.run(**params).text
            took[mode] = self.seconds(engine) - before
        print(f"a rewrite: {took['off'] / took['lookup']:.2f} times the speed without", file=sys.stderr)
        self.assertEqual(texts["off"], texts["lookup"])
        self.assertGreater(took["off"] / took["lookup"], 0.7)
        accepted, _ = self.drafts(engine)
        self.assert_undisturbed(accepted > 40, f"{accepted} accepted, of some 200 tokens")

    def test_repeatable_answers_have_no_drafts(self):
        text = {"prompt": "one two three four " * 8, "temperature": 0, "max_tokens": 30}
        engine = self.ready("always")
        self.assertGreater(engine.run(None, **text).timings["drafted_tokens"], 0)
        self.assertEqual(engine.run(None, seed=1, **text).timings["drafted_tokens"], 0)
        engine = self.ready("always", FM_ENGINE_LLAMA_REPEATABLE="1")
        self.assertEqual(engine.run(None, **text).timings["drafted_tokens"], 0)

    def test_a_setting_that_is_none(self):
        for value in ("on", "1", "Lookup"):
            _, result = self.load(value)
            self.assertIs(result["ok"], False)
            self.assertEqual(result["error"]["code"], "UNAVAILABLE")
            for word in (SPECULATION, "lookup", "off"):
                self.assertIn(word, result["error"]["detail"])


if __name__ == "__main__":
    PROGRAM, WHOLE = program_and_model(__doc__)
    MODEL = gguf.shallow(WHOLE)
    unittest.main()
