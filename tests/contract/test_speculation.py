"""Speculation of the llama engine: it never changes an answer, and it saves work where an answer repeats its prompt.

    test_speculation.py PROGRAM MODEL

One compute thread: then a token's logits are the same to the bit, whatever else is in its batch. Exit status 77: skipped,
because MODEL is not there.
"""

import os
import re
import sys
import tempfile
import unittest

from engine import Engine, program_and_model, user

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
import gguf  # noqa: E402
import speculation as bench  # noqa: E402

PROGRAM = None
MODEL = None

SPECULATION = "FM_ENGINE_LLAMA_SPECULATION"
REWRITES = 1  # all 50: tests/bench/speculation.py


class Case(unittest.TestCase):
    @staticmethod
    def new_engine(at_end, mode, model=None, **env):
        """A fresh engine, which `at_end` is told to close, and its answer to engine.load."""
        engine = Engine(PROGRAM, {"FM_ENGINE_LLAMA_THREADS": "1", "FM_ENGINE_LLAMA_REPEATABLE": "", SPECULATION: mode, **env})
        at_end(engine.close)
        assert engine.initialize(log_level="info")["ok"]
        result, _ = engine.load(model or MODEL)
        return engine, result

    def load(self, mode, model=None, **env):
        return self.new_engine(self.addCleanup, mode, model, **env)

    def ready(self, mode, model=None, **env):
        engine, result = self.load(mode, model, **env)
        self.assertTrue(result["ok"], result)
        return engine

    def run_in(self, engine, messages, **params):
        """What is told of an answer, but for where it was cut into deltas, and its accepted and drafted tokens. Its prompt is
        computed before, by a repeatable job, unless the answer before had the same: else its bits depend on how fast the
        machine was."""
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

    def drafts(self, engine):
        """Accepted and drafted tokens of all its jobs. Ends it."""
        engine.close()
        found = re.findall(rb"(\d+) of (\d+) drafts accepted", engine.stderr)
        return tuple(sum(int(pair[i]) for pair in found) for i in (0, 1))


class SameAnswers(Case):
    """Two engines for all. Most ask for the same rewrite, whose prompt takes longer than an answer."""

    @classmethod
    def setUpClass(cls):
        cls.plain, cls.ours = (cls.new_engine(cls.addClassCleanup, mode)[0] for mode in ("off", "always"))

    def assert_same(self, jobs, plain=None, ours=None):
        """Each job is answered alike with drafts wherever they can be, and without any."""
        took = drafted = 0
        for messages, params in jobs:
            want, none = self.run_in(plain or self.plain, messages, **params)
            got, drafts = self.run_in(ours or self.ours, messages, **params)
            self.assertEqual(got, want, params)
            self.assertEqual(none, [0, 0])
            took, drafted = took + drafts[0], drafted + drafts[1]
        self.assertGreater(took, 0)
        self.assertLessEqual(took, drafted)
        return took, drafted

    def rewrite(self, number=0, **params):
        params = {**bench.rewrite(number), **params}
        return params.pop("messages"), params

    def test_rewrites(self):
        accepted, drafted = self.assert_same([self.rewrite(number) for number in range(REWRITES)])
        self.assertGreater(accepted, 100 * REWRITES, "of some 200 tokens each")

    def test_where_it_ends(self):
        """After so many tokens, at a stop string, at the end of the context."""
        text = {"prompt": "one two three four " * 4, "temperature": 0, "max_tokens": 40}
        self.assert_same([(None, {**text, **end}) for end in (
            *({"max_tokens": count} for count in (1, 2, 7, 8, 9, 20)), {"stop": ["three four"]}, {"stop": ["o"]})])
        for context in ("40", "41", "50"):
            plain, ours = (self.ready(mode, FM_ENGINE_LLAMA_CTX=context) for mode in ("off", "always"))
            self.assert_same([(None, {**text, "max_tokens": 60})], plain, ours)

    def test_log_probabilities(self):
        self.assert_same([self.rewrite(logprobs=3, max_tokens=60)])

    def test_penalties_and_biases(self):
        self.assert_same([self.rewrite(max_tokens=60, **params) for params in (
            {"presence_penalty": 0.4}, {"frequency_penalty": 0.1}, {"repeat_penalty": 1.05}, {"ignore_eos": True},
            {"logit_bias": [[28, -100]]})])

    def test_structured_output(self):
        """A grammar sees accepted tokens alone, and what it leaves no choice about is not drawn."""
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
        """The way of drawn tokens, without chance."""
        self.assert_same([self.rewrite(max_tokens=60, temperature=1, top_k=1)])

    def test_jobs_side_by_side(self):
        """Each goes on with its own words."""
        texts = ("one two three four", "red green blue", "Anna Ben Clara")
        for engine in (self.plain, self.ours):
            jobs = [engine.start(None, prompt=" ".join([text] * 8), max_tokens=40, temperature=0) for text in texts]
            outcomes, engine.prompt = engine.outcomes(jobs), None
            for outcome, own in zip(outcomes, texts):
                self.assertEqual((outcome.reason, outcome.usage["output_tokens"]), ("length", 40))
                said = [text for text in texts if set(text.split()) & set(outcome.text.split())]
                self.assertEqual(said, [own], outcome.text)


class Sampled(Case):
    TOKENS = "xyz"

    def tiny(self):
        with tempfile.NamedTemporaryFile(suffix=".gguf", delete=False) as file:
            file.write(gguf.tiny())
        self.addCleanup(os.unlink, file.name)
        return file.name

    def test_drafts_do_not_change_how_likely_a_text_is(self):
        """Texts of three letters after a prompt that promises "xyzxyz": as often with drafts as without, chi-square."""
        ids = [gguf.byte_tokens().index(letter) for letter in self.TOKENS]
        params = {"max_tokens": 6, "temperature": 1, "min_p": 0, "ignore_eos": True,
                  "logit_bias": [[token, 30 + extra] for token, extra in zip(ids, (0.5, 0, -0.5))]}
        counts = []
        for mode in ("off", "always"):
            engine = self.ready(mode, self.tiny())
            count = {}
            for _ in range(1500):
                outcome = engine.run(None, prompt="xyzxyzxyzxyzxyz", **params)
                self.assertIsNone(outcome.error)
                text = outcome.text
                self.assertLessEqual(set(text), set(self.TOKENS))
                for place in (0, 2, 4):  # each pair, by its place
                    key = (place, text[place:place + 2])
                    count[key] = count.get(key, 0) + 1
            counts.append(count)
        accepted, drafted = self.drafts(engine)
        self.assertGreater(drafted, 1000)
        self.assertGreater(drafted - accepted, 100)
        keys = set(counts[0]) | set(counts[1])
        square = sum((counts[0].get(key, 0) - counts[1].get(key, 0)) ** 2 / (counts[0].get(key, 0) + counts[1].get(key, 0))
                     for key in keys)
        self.assertLess(square, 24 + 8 * 7)  # 24 degrees of freedom, deviation 7


class Saves(Case):
    def seconds(self, engine):
        """What its process has computed so far."""
        with open(f"/proc/{engine.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @unittest.skipUnless(os.path.exists("/proc/self/stat"), "no /proc tells what a process computes")
    def test_rewrites_take_less_work(self):
        """Drafts are tried by themselves where a text repeats its prompt. How much faster that is: tests/bench/speculation.py.
        Here other tests run beside it: processor time is compared, and asked is only that it is not lost."""
        took = {}
        for mode in ("off", "lookup"):
            engine = self.ready(mode)
            took[mode] = 0
            for number in range(REWRITES):
                params = bench.rewrite(number)
                engine.run(params["messages"], max_tokens=1, seed=1)  # its prompt is computed
                before = self.seconds(engine)
                engine.run(**params)
                took[mode] += self.seconds(engine) - before
        print(f"rewrites: {took['off'] / took['lookup']:.2f} times the speed without", file=sys.stderr)
        self.assertGreater(took["off"] / took["lookup"], 0.7)
        accepted, _ = self.drafts(engine)
        self.assertGreater(accepted, 40 * REWRITES, "of some 200 tokens each")

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
    PROGRAM, MODEL = program_and_model(__doc__)
    unittest.main()
