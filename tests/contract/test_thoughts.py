"""Tests the thoughts of the llama engine's models (ENGINE.md, Reasoning), on our model with chat templates that have thoughts.

    test_thoughts.py PROGRAM MODEL TEMPLATES    TEMPLATES: llama.cpp's folder of chat templates

The prompt shows the model short thoughts, and then it writes its own. Exit status 77: skipped, because MODEL is not there,
or the engine was built without llguidance.
"""

import json
import os
import sys
import unittest

from engine import Engine, skip_without, template_file, user

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import gguf  # noqa: E402

PROGRAM = MODEL = TEMPLATES = None

# %s stands for the beginning of the assistant's turn in a prompt.
THINKS = """{%% for m in messages %%}<|im_start|>{{ m.role }}
{%% if m.reasoning_content %%}<think>
{{ m.reasoning_content }}
</think>

{%% endif %%}{{ m.content }}<|im_end|>
{%% endfor %%}{%% if add_generation_prompt %%}<|im_start|>assistant
%s{%% endif %%}"""
FREE = THINKS % ""  # the model may begin a thought
OPENED = THINKS % "<think>\n"
CAN_STOP = THINKS % "<think>{{ '\\n' if enable_thinking else '\\n\\n</think>\\n\\n' }}"
# A text stands directly after the thought, and shares a token with the end of the tag.
TIGHT = OPENED.replace("</think>\n\n", "</think>")

SHOWN = []
for english, german in (("red", "rot"), ("blue", "blau"), ("green", "gruen")):
    SHOWN += user(f"German for {english}?")
    SHOWN += [{"role": "assistant", "content": german, "reasoning": f"They ask for {english}."}]
ASK = SHOWN + user("German for black?")
THOUGHT = "They ask for black."
SCHEMA = {"type": "object", "properties": {"a": {"enum": ["rot", "schwarz"]}}, "required": ["a"],
          "additionalProperties": False}
FORMAT = {"type": "json_schema", "schema": SCHEMA, "strict": True}
LAMP = {"name": "lamp", "parameters": {"properties": {"on": {"type": "boolean"}}, "required": ["on"],
                                       "additionalProperties": False}}
REQUIRED = {"tools": [LAMP], "tool_choice": {"mode": "required"}}
NONE = {"effort": "none"}

# The marks of templates in llama.cpp's folder, as the engine logs them; the other templates have none.
MARKS = {
    "Qwen-Qwen3-0.6B": "<think> </think>", "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "<think> </think>",
    "HuggingFaceTB-SmolLM3-3B": "<think> </think>", "ByteDance-Seed-OSS": "<seed:think> </seed:think>",
    "google-gemma-4-31B-it": "<|channel>thought <channel|>", "Cohere2MoE": "<|START_THINKING|> <|END_THINKING|><|START_TEXT|>",
    "mistralai-Ministral-3-14B-Reasoning-2512": "[THINK] [/THINK]",
    "openai-gpt-oss-120b":
        "<|channel|>analysis<|message|> <|end|><|start|>assistant<|channel|>final<|message|>",
    "Apriel-1.6-15b-Thinker-fixed": "Here are my reasoning steps: [BEGIN FINAL RESPONSE]",
    "Qwen-Qwen2.5-7B-Instruct": "none", "meta-llama-Llama-3.2-3B-Instruct": "none", "google-gemma-2-2b-it": "none",
}


class Case(unittest.TestCase):
    engines = {}

    def engine(self, template, at_end=None, context=8192, model=None):
        """An engine with a template of the folder, or with this text as its template. It logs what it does."""
        engine = Engine(PROGRAM, {"FM_ENGINE_LLAMA_CTX": str(context)})
        (at_end or self.addCleanup)(engine.close)
        self.assertTrue(engine.initialize(log_level="info")["ok"])
        self.assertTrue(engine.load(model or MODEL, chat_template=template_file(self, TEMPLATES, template))[0]["ok"])
        return engine

    def engine_of_all(self, template):
        """An engine with this template, shared by all tests."""
        if template not in self.engines or self.engines[template].process.poll() is not None:
            self.engines[template] = self.engine(template, unittest.addModuleCleanup, 2048)
        return self.engines[template]

    def run_cold(self, engine, messages=ASK, **params):
        outcome = engine.run(messages, temperature=0, **{"max_tokens": 60, **params})
        self.assertIsNone(outcome.error)
        return outcome

    def check_thought(self, outcome):
        self.assertEqual(outcome.reasoning, THOUGHT)
        self.assertGreater(outcome.usage["reasoning_tokens"], 4)
        self.assertLess(outcome.usage["reasoning_tokens"], outcome.usage["output_tokens"])


class Forms(Case):
    def test_templates(self):
        for template, marks in MARKS.items():
            with self.subTest(template):
                engine = self.engine(template, model=gguf.shallow(MODEL))
                for effort in (NONE, {"effort": "max"}):
                    outcome = engine.run(user("hi"), reasoning=effort, seed=1, max_tokens=2)
                    self.assertEqual((outcome.error, outcome.usage["output_tokens"]), (None, 2))
                engine.close()
                self.assertIn(f"thoughts: {marks}\n", engine.stderr.decode() + "\n")

    def test_no_thoughts(self):
        """If the template has no thoughts, a tag is text."""
        engine = self.engine("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
                             "<|im_start|>assistant\n")
        shown = (user("Go.") + [{"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes."}]) * 3 + user("Go.")
        outcome = self.run_cold(engine, shown, max_tokens=20)
        self.assertEqual((outcome.reasoning, outcome.usage["reasoning_tokens"]), ("", 0))
        self.assertTrue(outcome.text.strip().startswith("<think>"), outcome.text)


class Thoughts(Case):
    def test_text(self):
        for template in (FREE, OPENED, CAN_STOP):
            engine = self.engine_of_all(template)
            outcome = self.run_cold(engine)
            self.check_thought(outcome)
            self.assertTrue(outcome.text and not outcome.text[0].isspace(), outcome.text)
            self.assertNotIn("think", outcome.text)
            self.assertEqual(outcome.reason, "stop")
            # a stop string counts only in text
            self.check_thought(self.run_cold(engine, stop=["ask"]))
            stopped = self.run_cold(engine, stop=[outcome.text[1:3]])
            self.check_thought(stopped)
            self.assertEqual(stopped.text, outcome.text[0])

    def test_the_limit(self):
        for params in ({}, {"format": FORMAT}, REQUIRED):
            outcome = self.run_cold(self.engine_of_all(OPENED), max_tokens=3, **params)
            self.assertTrue(THOUGHT.startswith(outcome.reasoning) and outcome.reasoning)
            self.assertEqual((outcome.reason, outcome.text, outcome.calls), ("length", "", []))
            self.assertEqual(outcome.usage["reasoning_tokens"], 3)

    def test_formats(self):
        for template in (FREE, OPENED, CAN_STOP):
            engine = self.engine_of_all(template)
            outcome = self.run_cold(engine, format=FORMAT)
            self.check_thought(outcome)
            self.assertIn(json.loads(outcome.text)["a"], ("rot", "schwarz"))
            outcome = self.run_cold(engine, **REQUIRED)
            self.check_thought(outcome)
            self.assertEqual([name for name, _ in outcome.calls], ["lamp"])
            grammar = {"type": "grammar", "syntax": "regex", "definition": "[a-z]{3}"}
            outcome = self.run_cold(engine, format=grammar)
            self.check_thought(outcome)
            self.assertRegex(outcome.text, "^[a-z]{3}$")

    def test_a_format_without_a_thought(self):
        """The model may think, but does not."""
        engine = self.engine_of_all(FREE)
        for seed in range(4):
            outcome = engine.run(user("Hello."), seed=seed, temperature=1, max_tokens=40, format=FORMAT)
            self.assertEqual((outcome.reason, outcome.usage["reasoning_tokens"]), ("stop", 0))
            self.assertIn(json.loads(outcome.text)["a"], ("rot", "schwarz"))

    def test_a_turn_that_ends_in_a_thought(self):
        """With a format, an answer still has a text."""
        shown = []
        for word in ("one", "two", "six"):
            shown += user(word) + [{"role": "assistant", "content": f"<think>\nThis is {word}."}]
        engine = self.engine_of_all(OPENED)
        outcome = self.run_cold(engine, shown + user("ten"))
        self.assertEqual((outcome.reason, outcome.text), ("stop", ""))
        self.assertTrue(outcome.reasoning)
        formed = self.run_cold(engine, shown + user("ten"), format=FORMAT)
        self.assertEqual(formed.reasoning, outcome.reasoning)
        self.assertIn(json.loads(formed.text)["a"], ("rot", "schwarz"))

    def test_a_token_of_both(self):
        """One token has the end of the tag and the beginning of the text."""
        shown = []
        for word in ("one", "two", "six", "five"):
            shown += user(word) + [{"role": "assistant", "content": ".x {}", "reasoning": f"This is {word}"}]
        engine = self.engine_of_all(TIGHT)
        free = self.run_cold(engine, shown + user("ten"), max_tokens=30)
        self.assertEqual(free.reasoning, "This is ten")
        self.assertTrue(free.text.startswith("."), free.text)
        formed = self.run_cold(engine, shown + user("ten"), format=FORMAT)
        self.assertEqual(formed.reasoning, free.reasoning)
        self.assertIn(json.loads(formed.text)["a"], ("rot", "schwarz"))


class Logprobs(Case):
    """Log probabilities only come for the text. engine.py joins the tokens of each delta."""

    def check(self, engine, messages=ASK, **params):
        plain = self.run_cold(engine, messages, **params)
        told = self.run_cold(engine, messages, logprobs=3, **params)
        self.assertEqual((told.text, told.reasoning, told.usage["output_tokens"]),
                         (plain.text, plain.reasoning, plain.usage["output_tokens"]))
        self.assertLessEqual(len(told.logprobs or []), told.usage["output_tokens"] - told.usage["reasoning_tokens"])
        for entry in told.logprobs or []:  # a token that is drawn at temperature 0 is the likeliest, unless a format forbids it
            self.assertEqual(len(entry["top"]), 3)
            if "format" not in params:
                self.assertEqual(entry["logprob"], entry["top"][0]["logprob"])
                self.assertEqual(entry["top"][0]["bytes"][-len(entry["bytes"]):], entry["bytes"])
        return told

    def test_after_a_thought(self):
        for template, params in ((FREE, {}), (FREE, {"format": FORMAT}), (OPENED, {"format": FORMAT}), (CAN_STOP, {})):
            self.check_thought(self.check(self.engine_of_all(template), **params))

    def test_a_token_of_both(self):
        shown = []
        for word in ("one", "two", "six", "five"):
            shown += user(word) + [{"role": "assistant", "content": ".x {}", "reasoning": f"This is {word}"}]
        told = self.check(self.engine_of_all(TIGHT), shown + user("ten"), max_tokens=30)
        self.assertEqual(told.logprobs[0]["bytes"], [ord(".")])

    def test_what_may_become_a_thought(self):
        shown = []
        for word in ("one", "two", "six", "five"):
            shown += user(word) + [{"role": "assistant", "content": f"<thing>{word}</thing>"}]
        engine = self.engine_of_all(FREE)
        told = self.check(engine, shown + user("ten"), max_tokens=12)
        self.assertTrue(told.text.startswith("<thing>"), told.text)
        self.assertEqual(len(told.logprobs), told.usage["output_tokens"])
        cut = self.check(engine, shown + user("ten"), max_tokens=1)
        self.assertTrue("<think>".startswith(cut.text) and cut.text)
        self.assertEqual(len(cut.logprobs), 1)

    def test_a_thought_that_is_cut(self):
        self.assertIsNone(self.check(self.engine_of_all(OPENED), max_tokens=3).logprobs)


class Efforts(Case):
    def test_none(self):
        """The template turns thoughts off, or an empty thought is added to the prompt."""
        for template in (FREE, OPENED, CAN_STOP):
            engine = self.engine_of_all(template)
            for params in ({}, {"format": FORMAT}, REQUIRED):
                outcome = self.run_cold(engine, reasoning=NONE, **params)
                self.assertEqual((outcome.reasoning, outcome.usage["reasoning_tokens"]), ("", 0))
                self.assertTrue(outcome.text or outcome.calls)
        thinking = self.run_cold(engine, reasoning={"effort": "high"})
        self.check_thought(thinking)

    def test_the_template_is_told(self):
        engine = self.engine(OPENED.replace("<|im_end|>", "{{ reasoning_effort }}<|im_end|>"))
        tokens = {effort: engine.run(user("hi"), reasoning={"effort": effort}, max_tokens=1).accepted
                  for effort in ("minimal", "low", "medium", "high", "xhigh", "max")}
        plain = engine.run(user("hi"), max_tokens=1).accepted
        self.assertTrue(all(count > plain for count in tokens.values()), (tokens, plain))


class Conversations(Case):
    def test_thoughts_of_before(self):
        """Earlier thoughts go to the template, and control tokens in them stay text."""
        engine = self.engine_of_all(FREE)

        def accepted(reasoning):
            thought = {"reasoning": reasoning} if reasoning else {}
            messages = user("a") + [{"role": "assistant", "content": "b", **thought}] + user("c")
            return engine.run(messages, max_tokens=1).accepted
        self.assertGreater(accepted("hm"), accepted(""))
        self.assertGreater(accepted("<|im_end|>"), accepted("hm") + 2)
        plain = self.engine("{% for m in messages %}{{ m.content }}{% endfor %}")
        messages = user("a") + [{"role": "assistant", "content": "b", "reasoning": "<|im_end|> x"}] + user("c")
        accepted_of_plain = plain.run(messages, max_tokens=1).accepted
        del messages[1]["reasoning"]
        self.assertEqual(plain.run(messages, max_tokens=1).accepted, accepted_of_plain)


if __name__ == "__main__":
    PROGRAM, MODEL, TEMPLATES = sys.argv[1:4]
    skip_without(PROGRAM, MODEL)
    unittest.main(argv=sys.argv[:1])
