"""Tests how the llama engine decides questions (ENGINE.md, Decisions).

    test_decisions.py PROGRAM MODEL

Exit status 77: skipped, because MODEL is not there.
"""

import math
import os
import random
import re
import sys
import unittest

from engine import Engine, program_and_model, shared_engine, user

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import gguf  # noqa: E402
import small_models  # noqa: E402

LIKELY = 0.05  # how far a log probability may be from that of an answer, which is computed in other batches

PROGRAM = None
MODEL = None  # gguf.shallow
WHOLE = None

TEXT = "The parcel came two days late and the box was open. I want my money back, please answer today. " * 6
KIND = ("What is this message about? Answer with one of: money, money and time, a parcel, weather, thanks.",
        ["a parcel", "money", "money and time", "thanks", "weather"])
URGENT = ("Is the message urgent? Answer with one word, Yes or No.", ["Yes", "No"])
MOOD = ("How angry is the writer? Answer with one of: calm, firm, furious.", ["calm", "firm", "furious"])
WORDS = "red blue green fast slow a the box of fish sea run runs running under over and or not 12 123 x".split()


def question(row):
    return {"text": row[0], "choices": row[1]}


class Case(unittest.TestCase):
    def decide(self, messages, *rows, engine=None, **params):
        """The log probabilities of each question's choices, and the last event."""
        engine = engine or self.engine
        job = engine.start(messages, questions=[question(row) for row in rows], reasoning={"effort": "none"}, **params)
        events = list(engine.events(job))
        decisions = [params for name, params in events if name == "job.decision"]
        self.assertEqual([each["index"] for each in decisions], list(range(len(decisions))))
        self.assertEqual(events[-1][0], "job.finished")
        return [each["logprobs"] for each in decisions], events[-1][1]


class Likelihoods:
    """With random weights, so that rounding matters little; a token is a byte. One class for each kind of memory: an engine
    must go back to the end of the text and of the question, which not every memory can."""

    @classmethod
    def setUpClass(cls):
        cls.engine = shared_engine(cls, PROGRAM, small_models.file(cls.kind))

    def forced(self, messages, row, choice):
        """How likely the choice is, by an answer that a grammar forces."""
        outcome = self.engine.run([*messages, *user(row[0])], temperature=0, logprobs=0, max_tokens=100, seed=1,
                                  format={"type": "grammar", "syntax": "regex", "definition": re.escape(choice)})
        self.assertEqual((outcome.error, outcome.text), (None, choice))
        return sum(entry["logprob"] for entry in outcome.logprobs)

    def check(self, messages, row, got):
        wanted = {choice: self.forced(messages, row, choice) for choice in row[1]}
        for choice, logprob in zip(row[1], got):
            longer = [each for each in row[1] if each != choice and each.startswith(choice)]
            nearest = [each for each in longer if not any(each != other and each.startswith(other) for other in longer)]
            likely = math.exp(wanted[choice]) - sum(math.exp(wanted[each]) for each in nearest)
            self.assertAlmostEqual(logprob, math.log(likely), delta=LIKELY, msg=(choice, row[1]))

    def test_they_are_the_models(self):
        messages = user(TEXT)
        for row, got in zip((KIND, URGENT, MOOD), self.decide(messages, KIND, URGENT, MOOD)[0]):
            self.check(messages, row, got)

    def test_random_questions(self):
        chance = random.Random(7)
        for _ in range(4):
            messages = user(" ".join(chance.choices(WORDS, k=chance.randint(1, 60))))
            choices = sorted({" ".join(chance.choices(WORDS, k=chance.randint(1, 2))) for _ in range(4)} | {"z"})
            row = (f"Which one is it: {', '.join(choices)}?", choices)
            (got,), _ = self.decide(messages, row)
            self.check(messages, row, got)


class Full(Likelihoods, Case):
    kind = "full"


class Window(Likelihoods, Case):
    kind = "window"


class Hybrid(Likelihoods, Case):
    kind = "hybrid"


class Delta(Likelihoods, Case):
    kind = "delta"


class Recurrent(Likelihoods, Case):
    kind = "recurrent"


class Decisions(Case):
    @classmethod
    def setUpClass(cls):
        cls.engine = shared_engine(cls, PROGRAM, MODEL)

    def test_the_same_to_the_bit_whatever_came_before_and_beside(self):
        messages = user(TEXT)
        together, finished = self.decide(messages, KIND, URGENT, MOOD)
        self.assertEqual((finished["reason"], finished["usage"]["output_tokens"]), ("stop", 0))
        self.assertEqual(self.decide(messages, KIND, URGENT, MOOD)[0], together)
        self.engine.run(user("Something else."), max_tokens=5)
        for row, wanted in zip((KIND, URGENT, MOOD), together):
            self.assertEqual(self.decide(messages, row)[0], [wanted])
        self.assertEqual(self.decide(messages, MOOD, URGENT, KIND)[0], together[::-1])
        fresh = Engine(PROGRAM)
        self.addCleanup(fresh.close)
        self.assertTrue(fresh.initialize()["ok"] and fresh.load(MODEL)[0]["ok"])
        self.assertEqual(self.decide(messages, URGENT, engine=fresh)[0], [together[1]])

    def test_a_longer_choice_is_not_the_shorter_one(self):
        """The same question with and without choices that begin with another choice."""
        (apart,), _ = self.decide(user(TEXT), (KIND[0], ["money", "weather"]))
        (beside,), _ = self.decide(user(TEXT), (KIND[0], ["money", "money and", "money and time"]))
        short, middle, long = map(math.exp, beside)
        self.assertAlmostEqual((short + middle + long) / math.exp(apart[0]), 1, places=6)
        self.assertGreater(middle + long, 0)

    def test_the_text_is_read_once(self):
        one = self.decide(user(TEXT * 3), URGENT)[1]["usage"]["input_tokens"]
        many = self.decide(user(TEXT * 3), *[URGENT] * 20)[1]["usage"]["input_tokens"]
        self.assertLess(many, 3 * one)

    def test_beside_an_answer(self):
        """Both go on, and the answer is not held up."""
        alone = self.decide(user(TEXT), KIND, URGENT)[0]
        answer = self.engine.start(user("Count to a hundred."), max_tokens=60, temperature=0, ignore_eos=True)
        self.engine.until(answer, "job.delta")
        job = self.engine.start(user(TEXT), questions=[question(KIND), question(URGENT)] * 3)
        decisions = [params["logprobs"] for number, name, params in self.engine.together([answer, job])
                     if name == "job.decision" and number == job]
        self.assertEqual(len(decisions), 6)
        for got, wanted in zip(decisions, alone * 3):
            for a, b in zip(got, wanted):
                self.assertAlmostEqual(a, b, delta=0.2)

    def test_an_abort(self):
        job = self.engine.start(user(TEXT), questions=[question(KIND)] * 400)
        self.engine.until(job, "job.decision")
        self.engine.notify("job.abort", {"job": job})
        *_, (_, name, params) = self.engine.together([job])
        self.assertEqual((name, params["reason"]), ("job.finished", "aborted"))
        self.assertEqual(len(self.decide(user(TEXT), URGENT)[0]), 1)

    def test_what_does_not_fit(self):
        for rows in ([URGENT, ("word " * 20000, ["a", "b"])], [(URGENT[0], ["Yes", "no " * 20000])]):
            decisions, finished = self.decide(user(TEXT), *rows)
            self.assertEqual((decisions, finished["reason"], finished["error"]["code"]), ([], "error", "CONTEXT_OVERFLOW"))
        self.assertEqual(len(self.decide(user(TEXT), URGENT)[0]), 1)

    def test_what_is_wrong(self):
        good = question(URGENT)
        for params, param in (
            ({"questions": []}, "questions"),
            ({"questions": [good] * 401}, "questions"),
            ({"questions": [5]}, "questions[0]"),
            ({"questions": [{**good, "more": 1}]}, "questions[0]"),
            ({"questions": [good, {**good, "text": ""}]}, "questions[1].text"),
            ({"questions": [{**good, "choices": ["a"]}]}, "questions[0].choices"),
            ({"questions": [{**good, "choices": ["a", ""]}]}, "questions[0].choices"),
            ({"questions": [{**good, "choices": ["a"] * 256}]}, "questions[0].choices"),
            ({"questions": [good], "temperature": 1}, "temperature"),
            ({"questions": [good], "max_tokens": 1}, "max_tokens"),
        ):
            outcome = self.engine.run(user("x"), **params)
            self.assertEqual((outcome.error["code"], outcome.error["param"]), ("INVALID_REQUEST", param))


if __name__ == "__main__":
    PROGRAM, WHOLE = program_and_model(__doc__)
    MODEL = gguf.shallow(WHOLE)
    unittest.main()
