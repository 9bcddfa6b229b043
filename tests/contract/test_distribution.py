"""Tests that the llama engine draws each text as often as the definition of its parameters says, with and without drafted tokens.

    test_distribution.py PROGRAM MODEL

The model is a tiny one, whose logits depend only on the last letter, so that the probability of each text can be computed
here. The test notices if a draft is accepted more often than the model would draw it, or if a parameter counts twice or not at
all for a drafted token. MODEL only shows whether models are available. Exit status 77: skipped.
"""

import math
import os
import sys
import tempfile
import unittest

from engine import Engine, program_and_model

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import gguf  # noqa: E402

PROGRAM = None

LETTERS = "xyz"
NEXT = 1.0  # the logit of the letter that follows the last one in the circle; other letters have 0
OF_LETTERS = 60  # added to letters' logits, so that nothing else is ever drawn: at temperature 1.8, once in 100 million runs
BIAS = {"x": OF_LETTERS + 0.55, "y": OF_LETTERS, "z": OF_LETTERS - 0.5}
LENGTH = 6  # letters of a text
TEXTS = int(os.environ.get("FM_DRAWS", "800"))
DEVIATIONS = 5.5  # exceeded by chance once in 50 million

# Properties of a text that are counted: which letters it has, how it begins, goes on and ends.
PARTS = {"letters": lambda text: "".join(sorted(text)), "begin": lambda text: text[:3], "middle": lambda text: text[2:4],
         "end": lambda text: text[-3:]}


def logits(prompt, text, presence, frequency, repeat):
    """The logits of each letter after `text`, with biases and penalties as PROTOCOL.md defines them."""
    found = {}
    for place, letter in enumerate(LETTERS):
        logit = NEXT if (prompt + text)[-1] == LETTERS[place - 1] else 0
        if letter in (prompt + text)[-64:]:
            logit = logit / repeat if logit > 0 else logit * repeat
        count = text.count(letter)
        found[letter] = logit + BIAS[letter] - frequency * count - (presence if count else 0)
    return found


def cut(of, temperature, top_p, min_p, top_k):
    """{letter: probability} of the letters with these logits."""
    best = max(of.values())
    left = sorted((letter for letter in of if of[letter] >= best + (math.log(min_p) if min_p else -math.inf)),
                  key=lambda letter: -of[letter])[:top_k or len(of)]
    weights = [math.exp((of[letter] - best) / temperature) for letter in left]
    chosen, total = {}, 0
    for letter, weight in zip(left, weights):
        chosen[letter] = weight
        total += weight / sum(weights)
        if total >= top_p:
            break
    return {letter: weight / sum(chosen.values()) for letter, weight in chosen.items()}


def likely(prompt, format=None, temperature=1, top_p=1, min_p=0, top_k=0, presence=0, frequency=0, repeat=1):
    """{text: its probability}. A letter that the format does not allow at its place is drawn again, from the allowed ones
    (sampler.c)."""
    texts = {"": 1.0}
    for place in range(LENGTH):
        longer = {}
        for text, so_far in texts.items():
            of = logits(prompt, text, presence, frequency, repeat)
            allowed = format[place] if format else LETTERS
            free = cut(of, temperature, top_p, min_p, top_k)
            anew = cut({letter: of[letter] for letter in allowed}, temperature, top_p, min_p, top_k)
            lost = sum(chance for letter, chance in free.items() if letter not in allowed)
            for letter in allowed:
                longer[text + letter] = so_far * (free.get(letter, 0) + lost * anew.get(letter, 0))
        texts = longer
    return texts


def by(part, texts):
    """{part: the sum of the numbers of its texts}"""
    sums = {}
    for text, number in texts.items():
        sums[part(text)] = sums.get(part(text), 0) + number
    return sums


def deviation(counts, chances):
    """Returns by how many standard deviations chi-square is too high (Wilson and Hilferty's approximation by a normal variable).
    Texts that are expected less than 5 times are counted together."""
    drawn = sum(counts.values())
    cells = [(counts.get(key, 0), chance * drawn) for key, chance in chances.items() if chance * drawn >= 5]
    rest = drawn - sum(wanted for _, wanted in cells)
    if rest >= 1:
        cells.append((drawn - sum(count for count, _ in cells), rest))
    square = sum((count - wanted) ** 2 / wanted for count, wanted in cells)
    spread = 2 / (9 * (len(cells) - 1))
    return ((square / (len(cells) - 1)) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)


class Distribution(unittest.TestCase):
    NAMES = {"presence": "presence_penalty", "frequency": "frequency_penalty", "repeat": "repeat_penalty"}

    @classmethod
    def setUpClass(cls):
        cls.ids = {letter: gguf.byte_tokens().index(letter) for letter in LETTERS}
        cls.model, cls.draft = (cls.file(gguf.chain(LETTERS, strength)) for strength in (NEXT, 8))
        cls.engines = {mode: cls.engine(mode, draft) for mode, draft in (("off", None), ("always", None), ("guess", cls.draft))}

    @classmethod
    def file(cls, data):
        with tempfile.NamedTemporaryFile(suffix=".gguf", delete=False) as file:
            file.write(data)
        cls.addClassCleanup(os.unlink, file.name)
        return file.name

    @classmethod
    def engine(cls, mode, draft):
        engine = Engine(PROGRAM, {"FM_ENGINE_LLAMA_REPEATABLE": "",
                                  "FM_ENGINE_LLAMA_SPECULATION": "off" if mode == "off" else "always"})
        cls.addClassCleanup(engine.close)
        assert engine.initialize()["ok"]
        result, _ = engine.load(cls.model, **({"draft_model": draft} if draft else {}))
        assert result["ok"], result
        return engine

    def params(self, of):
        params = {"max_tokens": LENGTH, "ignore_eos": True, "min_p": 0, "temperature": 1,
                  "logit_bias": [[self.ids[letter], BIAS[letter]] for letter in LETTERS]}
        for name, value in of.items():
            params[self.NAMES.get(name, name)] = value
        if "format" in of:
            regex = "".join(f"[{letters}]" for letters in of["format"])
            params["format"] = {"type": "grammar", "syntax": "regex", "definition": regex}
        return params

    def draw(self, mode, prompt, params):
        """Returns how often each text came, and the numbers of accepted and drafted tokens."""
        counts, drafts = {}, [0, 0]
        for _ in range(TEXTS):
            outcome = self.engines[mode].run(None, prompt=prompt, **params)
            self.assertIsNone(outcome.error)
            counts[outcome.text] = counts.get(outcome.text, 0) + 1
            drafts[0] += outcome.timings.get("accepted_tokens", 0)
            drafts[1] += outcome.timings.get("drafted_tokens", 0)
        return counts, drafts

    def assert_distributed(self, mode="always", prompt="xyzxyzxyzxyz", logprobs=0, **of):
        texts = likely(prompt, **of)
        counts, (accepted, drafted) = self.draw(mode, prompt, {**self.params(of), **({"logprobs": logprobs} if logprobs else {})})
        self.assertEqual([text for text in counts if not texts.get(text)], [], "texts that can't come")
        if mode != "off":
            self.assertGreater(min(accepted, drafted - accepted), TEXTS / 4, "right and wrong drafts")
        found = {name: deviation(by(part, counts), by(part, texts)) for name, part in PARTS.items()}
        self.assertLess(max(found.values()), DEVIATIONS, (of, found))

    def test_without_drafts(self):
        """Verifies the definition that this file computes."""
        self.assert_distributed("off", temperature=1.3, top_p=0.9, min_p=0.05, presence=0.4, frequency=0.2, repeat=1.2)

    def test_temperature(self):
        for temperature in (0.5, 1, 1.8):
            self.assert_distributed(temperature=temperature)

    def test_what_cuts_candidates(self):
        for of in ({"top_p": 0.7}, {"min_p": 0.3}, {"top_k": 2}):
            self.assert_distributed(**of)

    def test_penalties_count_each_token_once(self):
        self.assert_distributed(presence=0.8, frequency=0.6)
        self.assert_distributed(prompt="xyxyxyxyxyxy", repeat=1.5)

    def test_log_probabilities_change_nothing(self):
        self.assert_distributed(logprobs=3)

    def test_a_grammar(self):
        for of in ({}, {"top_p": 0.9, "logprobs": 2}):
            self.assert_distributed(format=["xy", "xyz", "xz", "yz", "xyz", "xy"], **of)

    def test_all_together(self):
        of = {"temperature": 1.3, "top_p": 0.9, "min_p": 0.05, "presence": 0.4, "frequency": 0.2, "repeat": 1.2}
        self.assert_distributed(logprobs=2, **of)
        self.assert_distributed("guess", prompt="z", logprobs=2, **of)

    def test_a_draft_model(self):
        self.assert_distributed("guess", prompt="z")


if __name__ == "__main__":
    PROGRAM, _ = program_and_model(__doc__)
    unittest.main()
