"""Tests what changes the tokens that the llama engine draws (biases, penalties), and what it reports about them (log
probabilities).

    test_sampling.py PROGRAM MODEL

Exit status 77: skipped, because MODEL is not there.
"""

import math
import os
import sys
import unittest

from engine import program_and_model, shared_engine, user

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import gguf  # noqa: E402

PROGRAM = None
MODEL = None  # gguf.shallow
WHOLE = None


class Bias(unittest.TestCase):
    """Tests logit_bias, and the grammar, which is applied before logit_bias."""

    @classmethod
    def setUpClass(cls):
        cls.engine = shared_engine(cls, PROGRAM, WHOLE)
        with open(WHOLE, "rb") as file:
            names = gguf.Reader(file.read()).values()["tokenizer.ggml.tokens"]
        cls.ids = {name: token for token, name in enumerate(names)}

    def text(self, biases, **params):
        params = {"max_tokens": 12, "temperature": 0, **params}
        outcome = self.engine.run(user("Name three colours."), logit_bias=biases, **params)
        self.assertIsNone(outcome.error)
        return outcome.text

    def test_a_ban_and_its_opposite(self):
        free = self.text([])
        self.assertNotIn(free[0], self.text([[self.ids[free[0]], -100]]), "a digit, which is a token of its own")
        self.assertEqual(self.text([[self.ids["Ġcat"], 100]]), " cat" * 12)
        self.assertEqual(self.text([[self.ids["Ġcat"], 100]], temperature=1, seed=3), " cat" * 12)
        self.assertEqual(self.text([[self.ids["Ġcat"], 0], [self.ids["Ġdog"], -0.0]]), free)
        self.assertEqual(self.text([[self.ids["Ġcat"], 100], [self.ids["Ġcat"], 0]]), free, "the last one counts")

    def test_a_ban_is_one_however_likely_the_token_is(self):
        """A less likely token that is allowed is drawn instead."""
        for banned, other in ("12", "21"):
            text = self.text([[self.ids[banned], -100], [self.ids[other], -99.9]], max_tokens=60, format={
                "type": "json_schema", "strict": True, "schema": {"enum": [1, 2]}})
            self.assertEqual(text, other)

    def test_a_grammar_goes_first(self):
        for biases in ([[self.ids["Ġcat"], 100]], [[self.ids[name], -100] for name in ("{", "}", '"', "{\"", "{}")]):
            for params in ({"temperature": 0}, {"temperature": 1.5, "seed": 7}):
                text = self.text(biases, max_tokens=60, format={
                    "type": "json_schema", "strict": True,
                    "schema": {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"],
                               "additionalProperties": False}}, presence_penalty=2, frequency_penalty=-2, **params)
                self.assertIn(text, ('{"a":"x"}', '{"a":"y"}'))

    def test_a_call_is_whole_all_the_same(self):
        tool = {"name": "paint", "parameters": {"type": "object", "properties": {"c": {"enum": ["red"]}},
                                                "required": ["c"], "additionalProperties": False}}
        outcome = self.engine.run(user("Paint it red."), tools=[tool], tool_choice={"mode": "required"}, temperature=0,
                                  logit_bias=[[self.ids["Ġcat"], 100], [self.ids["red"], -100]], frequency_penalty=2)
        self.assertEqual(outcome.calls, [["paint", '{"c":"red"}']])

    def test_no_such_token(self):
        for token in (len(self.ids), 2147483647):
            outcome = self.engine.run(user("Hello"), logit_bias=[[0, 1], [token, 1]])
            self.assertEqual((outcome.names, outcome.error["code"]), (["job.finished"], "INVALID_REQUEST"))
            self.assertEqual(outcome.error["param"], "logit_bias")
            self.assertIn(str(len(self.ids)), outcome.error["detail"])
        self.assertIsNone(self.engine.run(user("Hello"), logit_bias=[[len(self.ids) - 1, 1]], max_tokens=1).error)


class Penalties(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.engine = shared_engine(cls, PROGRAM, MODEL)

    def text(self, **params):
        params = {"max_tokens": 30, "temperature": 0, **params}
        outcome = self.engine.run(user("Write the word red again and again."), **params)
        self.assertIsNone(outcome.error)
        return outcome.text

    def test_they_repeat(self):
        for params in ({"frequency_penalty": 0.7, "presence_penalty": 0.3}, {"presence_penalty": -2},
                       {"frequency_penalty": 1.1, "temperature": 0.9, "seed": 11}):
            self.assertEqual(self.text(**params), self.text(**params))

    def test_zero_is_none(self):
        self.assertEqual(self.text(frequency_penalty=0, presence_penalty=0.0), self.text())


class ExtrasCase(unittest.TestCase):
    """top_k, min_p, repeat_penalty and ignore_eos, which `parameters` of engine.initialize names."""

    @classmethod
    def setUpClass(cls):
        cls.engine = shared_engine(cls, PROGRAM, MODEL)

    def run_job(self, prompt, **params):
        outcome = self.engine.run(user(prompt), **{"max_tokens": 40, "temperature": 0, **params})
        self.assertIsNone(outcome.error)
        return outcome


class Extras(ExtrasCase):
    def ranks(self, **params):
        """Returns, for each drawn token, its place among the 20 most likely tokens, and how much less likely it is than the best
        token."""
        params = {"temperature": 2, "min_p": 0, "logprobs": 20, "max_tokens": 24, **params}
        found = []
        for seed in range(2):
            for entry in self.run_job("Tell me a story.", seed=seed, **params).logprobs:
                better = [top for top in entry["top"] if top["logprob"] > entry["logprob"]]
                found.append((len(better), entry["top"][0]["logprob"] - entry["logprob"]))
        return found

    def test_top_k(self):
        self.assertGreater(max(rank for rank, _ in self.ranks()), 5)
        for top_k in (1, 3):
            self.assertEqual(max(rank for rank, _ in self.ranks(top_k=top_k)), top_k - 1)
        for top_k in (0, -1):
            drawn = {"temperature": 1, "seed": 4, "max_tokens": 16}
            self.assertEqual(self.run_job("Tell me a story.", top_k=top_k, **drawn).text,
                             self.run_job("Tell me a story.", **drawn).text)

    def test_min_p(self):
        usual = -math.log(0.05)
        self.assertGreater(max(less for _, less in self.ranks()), usual + 0.1)
        self.assertLess(max(less for _, less in self.ranks(min_p=None)), usual + 0.01, "5% is the default")
        self.assertLess(max(less for _, less in self.ranks(min_p=0.5)), -math.log(0.5) + 0.01)
        self.assertLess(max(less for _, less in self.ranks(min_p=1)), 0.01)

    def repeats(self, outcome, window=64):
        """How many tokens of the answer are among the `window` before them."""
        tokens = [bytes(entry["bytes"]) for entry in outcome.logprobs]
        return sum(token in tokens[max(0, at - window):at] for at, token in enumerate(tokens))

    def test_repeat_penalty(self):
        prompt = "Write the word red again and again."
        free = self.run_job(prompt, max_tokens=64, logprobs=0)
        held = self.run_job(prompt, max_tokens=64, logprobs=0, repeat_penalty=2)
        self.assertLess(self.repeats(held), self.repeats(free) / 2)
        for params in ({}, {"temperature": 0.9, "seed": 11}):
            again = [self.run_job(prompt, repeat_penalty=1.3, **params).text for _ in range(2)]
            self.assertEqual(again[0], again[1])
        self.assertEqual(self.run_job(prompt, repeat_penalty=1).text, self.run_job(prompt).text)
        for tiny in (1e-300, 1e-3):
            self.run_job(prompt, repeat_penalty=tiny, max_tokens=8)

    def test_a_format_has_its_end_all_the_same(self):
        schema = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"],
                  "additionalProperties": False}
        form = {"type": "json_schema", "strict": True, "schema": schema}
        asked = {"ignore_eos": True, "repeat_penalty": 10, "top_k": 1, "min_p": 1, "max_tokens": 60}
        for params in ({}, {"temperature": 1.5, "seed": 7}):
            outcome = self.run_job("Name a letter.", format=form, **asked, **params)
            self.assertIn(outcome.text, ('{"a":"x"}', '{"a":"y"}'))
            self.assertEqual(outcome.reason, "stop")
        tool = {"name": "paint", "parameters": {"type": "object", "properties": {"c": {"enum": ["red"]}},
                                                "required": ["c"], "additionalProperties": False}}
        outcome = self.run_job("Paint it red.", tools=[tool], tool_choice={"mode": "required"},
                               parallel_tool_calls=False, **asked)
        self.assertEqual(outcome.calls, [["paint", '{"c":"red"}']])


class ExtrasWithSense(ExtrasCase):
    """Tests with a model that understands what it reads."""

    @classmethod
    def setUpClass(cls):
        cls.engine = shared_engine(cls, PROGRAM, WHOLE)

    def plain(self, prompt, **params):
        """The first token after a prompt without a template."""
        outcome = self.engine.run(None, prompt=prompt, temperature=0, **{"max_tokens": 1, **params})
        self.assertIsNone(outcome.error)
        return outcome.text

    def test_the_last_64_tokens_of_the_prompt_count(self):
        again = "red red red red red red red red"
        self.assertEqual(self.plain(again), " red")
        self.assertNotEqual(self.plain(again, repeat_penalty=5), " red")
        either = {"format": {"type": "grammar", "syntax": "regex", "definition": "( red| blue)"}, "max_tokens": 8}
        for words, counts in ((40, True), (80, False)):
            far = again + " one" * words
            free = self.plain(far, **either)
            self.assertEqual(self.plain(far, repeat_penalty=10, **either) != free, counts, (words, free))

    def test_ignore_eos(self):
        prompt = "Say hi."
        free = self.run_job(prompt, max_tokens=300)
        self.assertEqual(free.reason, "stop")
        limit = free.usage["output_tokens"] + 20
        for params in ({"temperature": 1, "seed": 3}, {"logit_bias": [[0, 1]]}, {}):
            held = self.run_job(prompt, ignore_eos=True, max_tokens=limit, **params)
            self.assertEqual((held.reason, held.usage["output_tokens"]), ("length", limit))
        self.assertTrue(held.text.startswith(free.text[:20]))
        self.assertEqual(self.run_job(prompt, ignore_eos=False, max_tokens=300).text, free.text)


class Logprobs(unittest.TestCase):
    """The log probabilities match the text (engine.py checks this), and are those of the model."""

    @classmethod
    def setUpClass(cls):
        cls.engine = shared_engine(cls, PROGRAM, MODEL)

    def run_job(self, prompt, **params):
        outcome = self.engine.run(user(prompt), **{"max_tokens": 24, "temperature": 0, "logprobs": 20, **params})
        self.assertIsNone(outcome.error)
        return outcome

    @staticmethod
    def told(entry):
        return bytes(entry["bytes"]), entry["logprob"]

    def test_the_best_token_is_the_greedy_one(self):
        outcome = self.run_job("Name three colours.")
        self.assertEqual(len(outcome.logprobs), outcome.usage["output_tokens"])
        for entry in outcome.logprobs:
            top = [alternative["logprob"] for alternative in entry["top"]]
            self.assertEqual((len(top), top), (20, sorted(top, reverse=True)))
            self.assertEqual(self.told(entry["top"][0]), self.told(entry))
            self.assertLessEqual(sum(math.exp(logprob) for logprob in top), 1.00001)
        self.assertEqual(self.run_job("Name three colours.", logprobs=0).text, outcome.text)
        plain = self.engine.run(user("Name three colours."), max_tokens=24, temperature=0)
        self.assertEqual((plain.text, plain.logprobs), (outcome.text, None))

    def test_as_many_as_are_asked_for(self):
        for top in (0, 1, 7):
            for entry in self.run_job("Hello", logprobs=top, max_tokens=4).logprobs:
                self.assertEqual(len(entry["top"]), top)

    def test_neither_temperature_nor_bias_nor_penalties_change_them(self):
        first = self.run_job("Name three colours.", max_tokens=1).logprobs[0]
        for params in ({"temperature": 2, "seed": 5}, {"top_p": 0.1, "temperature": 1}, {"logit_bias": [[33, 100]]}):
            again = self.run_job("Name three colours.", max_tokens=1, **params).logprobs[0]
            self.assertEqual([self.told(top) for top in again["top"]], [self.told(top) for top in first["top"]])

    def test_penalties_are_what_the_protocol_says(self):
        """At temperature 0, the token with the best of the model's values is drawn, after penalties for the tokens so far."""
        for presence, frequency in ((1.5, 0), (0, 1.5), (0.7, 0.9), (-1, 0.5)):
            outcome = self.run_job("Write the word red again and again.", max_tokens=40, presence_penalty=presence,
                                   frequency_penalty=frequency)
            seen, others = {}, 0
            for entry in outcome.logprobs:
                def penalised(token):
                    count = seen.get(bytes(token["bytes"]), 0)
                    return token["logprob"] - count * frequency - (presence if count else 0)
                best = max(entry["top"], key=penalised)
                if penalised(best) - penalised(entry) > 1e-4:
                    self.fail((presence, frequency, entry))
                others += bytes(entry["bytes"]) != bytes(entry["top"][0]["bytes"])
                seen[bytes(entry["bytes"])] = seen.get(bytes(entry["bytes"]), 0) + 1
            self.assertGreater(others, 0, "a penalty changed something")

    def test_tokens_that_are_parts_of_characters(self):
        smile = "\U0001f600\U0001f642"
        form = {"type": "grammar", "syntax": "regex", "definition": f"a{smile}z"}
        outcome = self.run_job("Hello", format=form)
        self.assertEqual(outcome.text, f"a{smile}z")
        parts = [bytes(entry["bytes"]) for entry in outcome.logprobs]
        self.assertEqual(b"".join(parts).decode(), f"a{smile}z")
        self.assertTrue(any(b"\xef\xbf\xbd" not in part and "\ufffd" in part.decode(errors="replace") for part in parts))

    def test_forced_tokens_have_them_too(self):
        schema = {"type": "object", "properties": {"colour": {"enum": ["red", "green"]}}, "required": ["colour"],
                  "additionalProperties": False}
        outcome = self.run_job("Name a colour.", format={"type": "json_schema", "schema": schema, "strict": True})
        self.assertIn(outcome.text, ('{"colour":"red"}', '{"colour":"green"}'))
        self.assertEqual(len(outcome.logprobs), outcome.usage["output_tokens"])
        self.assertEqual(len({entry["logprob"] for entry in outcome.logprobs}), len(outcome.logprobs),
                         "each has its own logits")
        again = self.run_job("Name a colour.", format={"type": "json_schema", "schema": schema, "strict": True})
        self.assertEqual(again.logprobs, outcome.logprobs)

    def test_stop_strings(self):
        whole = self.run_job("Count from one to ten in words.")
        for stop in (whole.text[7:9], whole.text[10:15], whole.text[3], "nowhere"):
            outcome = self.run_job("Count from one to ten in words.", stop=[stop])
            self.assertEqual(outcome.text, whole.text.split(stop)[0])
            self.assertEqual(b"".join(bytes(e["bytes"]) for e in outcome.logprobs or []).decode(), outcome.text)

    def test_calls_have_none(self):
        tool = {"name": "paint", "parameters": {"type": "object", "properties": {"c": {"enum": ["red"]}},
                                                "required": ["c"], "additionalProperties": False}}
        outcome = self.run_job("Paint it red.", tools=[tool], tool_choice={"mode": "required"})
        self.assertEqual((outcome.calls, outcome.logprobs), ([["paint", '{"c":"red"}']], None))
        auto = self.run_job("Say hello.", tools=[tool], max_tokens=30)
        self.assertEqual(b"".join(bytes(entry["bytes"]) for entry in auto.logprobs or []).decode(), auto.text)


if __name__ == "__main__":
    PROGRAM, WHOLE = program_and_model(__doc__)
    MODEL = gguf.shallow(WHOLE)
    unittest.main()
