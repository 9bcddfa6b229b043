"""Tests the llama engine's tools in a model's own form (ENGINE.md, Tools), with other models' chat templates on our model.

    test_native_tools.py PROGRAM MODEL TEMPLATES    TEMPLATES: llama.cpp's folder of chat templates

Exit status 77: skipped, because MODEL is not there, or the engine was built without llguidance.
"""

import json
import sys
import tempfile
import unittest

import small_models
from small_models import gguf
from engine import Engine, skip_without, template_file, user

PROGRAM = MODEL = WHOLE = TEMPLATES = None

LAMP = {"name": "lamp", "parameters": {"properties": {"on": {"type": "boolean"}}, "required": ["on"],
                                       "additionalProperties": False}}
HOUR = {"type": "integer", "minimum": 0, "maximum": 23}
CLOCK = {"name": "set_clock", "parameters": {"type": "object", "properties": {"hour": HOUR}, "required": ["hour"],
                                             "additionalProperties": False}}
TOOLS = [LAMP, CLOCK]
REQUIRED = {"mode": "required"}
ASK = user("Switch the lamp on.")
CALL = [{"id": "call_1", "name": "lamp", "arguments": '{"on":true}'}]
CALLED = [*ASK, {"role": "assistant", "content": "", "tool_calls": CALL}]
ANSWERED = [*CALLED, {"role": "tool", "content": "The lamp is on now.", "tool_call_id": "call_1"}]

# The marks are control tokens of our model's vocabulary.
CONTROL = """{%- if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content or '' }}{% for call in message.tool_calls or [] -%}
<issue_start>{{ call.function.name }}<issue_comment>{{ call.function.arguments | tojson }}
{%- endfor %}{% if message.tool_calls %}<issue_closed>{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

OWN = "tools: in the model's own form"
OURS = "tools: in our form"
FORMS = {
    "Qwen-Qwen2.5-7B-Instruct": OWN, "Qwen-Qwen3-0.6B": OWN, "MiniMax-M1": OWN, "ibm-granite-granite-4.0": OWN,
    "unsloth-mistral-Devstral-Small-2507": OWN,
    "Kimi-K2-Instruct": OWN,  # calls have numbers
    "mistralai-Mistral-Nemo-Instruct-2407": OWN,  # call ids have nine characters, also in the next prompt
    "Mistral-Small-3.2-24B-Instruct-2506": OWN,
    "Qwen3-Coder": OWN, "GLM-4.6": OWN,  # arguments in tags
    "HuggingFaceTB-SmolLM3-3B": OURS,
}


class Case(unittest.TestCase):
    def engine(self, template, model=None):
        """An engine with a template of the folder, or with this text as its template. It logs what it does."""
        return self.engine_with(template_file(self, TEMPLATES, template), model)

    def engine_with(self, path, model=None):
        engine = Engine(PROGRAM, {"FM_ENGINE_LLAMA_CTX": "8192" if model else "2048"})
        self.addCleanup(engine.close)
        self.assertTrue(engine.initialize(log_level="info")["ok"])
        self.result, _ = engine.load(model or MODEL, chat_template=path)
        return engine

    def check_calls(self, outcome):
        self.assertEqual((outcome.error, outcome.text), (None, ""))
        for i, (name, arguments) in enumerate(outcome.calls):
            if outcome.reason == "stop" or i + 1 < len(outcome.calls):
                value = json.loads(arguments)
                self.assertIn((name, list(value)), (("lamp", ["on"]), ("set_clock", ["hour"])))
                self.assertIn(list(value.values())[0], (True, False) if name == "lamp" else range(24))
        self.assertGreater(len(outcome.calls), 0)


class Forms(Case):
    def test_templates(self):
        """A model of random weights chooses among everything that the form allows. A token is a byte."""
        model = small_models.file("full", context=8192)
        for template, form in FORMS.items():
            with self.subTest(template):
                engine = self.engine_with(template_file(self, TEMPLATES, template), model)
                # some models think first, which other tests check
                plain = {"tool_choice": REQUIRED, "reasoning": {"effort": "none"}}
                outcome = engine.run(ANSWERED, tools=TOOLS, seed=1, max_tokens=200 if form == OWN else 0, **plain)
                if form == OWN:
                    self.check_calls(outcome)
                self.assertIn(outcome.reason, ("stop", "length"))
                one = engine.run(ASK, tools=[LAMP], parallel_tool_calls=False, max_tokens=400, **plain)
                self.check_calls(one)
                self.assertEqual((one.reason, len(one.calls)), ("stop", 1))
                engine.close()
                self.assertIn(form, engine.stderr.decode())

    def test_the_prompt_is_the_template_s(self):
        template = "{% for m in messages %}{{ m.content }}{% if m.tool_calls %}!{% endif %}{% endfor %}"
        engine = self.engine(template)
        self.assertEqual(engine.run(user("a"), max_tokens=1).accepted, 1)
        tokens = engine.run(ASK, tools=TOOLS, max_tokens=0).accepted
        self.assertGreater(tokens, 50, "it shows no tools, so they are told in the system message")

    def test_control_tokens(self):
        engine = self.engine(CONTROL)
        several = 0
        for seed in range(12):
            if seed > 2 and several:
                break
            outcome = engine.run(ASK, tools=TOOLS, tool_choice=REQUIRED, seed=seed, temperature=1.5, max_tokens=40)
            self.check_calls(outcome)
            several += len(outcome.calls) > 1
        self.assertGreater(several, 0)
        schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False}
        for seed in range(3):
            outcome = engine.run(ASK, tools=TOOLS, seed=seed, temperature=1.5, max_tokens=40,
                                 format={"type": "json_schema", "schema": schema})
            if outcome.text:
                self.assertEqual(list(json.loads(outcome.text)), ["a"])
            else:
                self.check_calls(outcome)
        text = engine.run(ASK, tools=TOOLS, seed=1, max_tokens=20)
        self.assertNotIn("<issue", text.text)
        engine.close()
        self.assertIn(OWN, engine.stderr.decode())

    def test_tools_that_the_template_does_not_show(self):
        """The system message describes the tools, and how to call them with control tokens; the same tokens in a user's text
        are text."""
        engine = self.engine(CONTROL.replace("{%- if tools %}", "{%- if false %}"))
        how = "\n\nTo call one, answer with its name and its arguments as JSON in these tags, and end there:\n"
        example = "<issue_start><function-name><issue_comment><args-json-object><issue_closed>"

        def tokens(system, choice):
            messages = [{"role": "system", "content": system}, *ASK]
            return engine.run(messages, max_tokens=0, tools=TOOLS, tool_choice={"mode": choice}).accepted
        told = tokens("a", "auto") - tokens("a", "none")
        as_text = tokens("a" + how + example, "none") - tokens("a", "none")
        self.assertGreater(told, 20)
        self.assertGreater(as_text, told + 6)
        self.check_calls(engine.run(ASK, tools=TOOLS, tool_choice=REQUIRED, seed=1, max_tokens=60))
        engine.close()
        self.assertIn(OWN, engine.stderr.decode())

    def test_control_text_in_a_tool(self):
        """The template would render this text as control tokens, so the tools are described in our form."""
        engine = self.engine(CONTROL)

        def tokens(text):
            tool = {"name": "f", "description": text}
            outcome = engine.run(ASK, tools=[tool], tool_choice=REQUIRED, max_tokens=30)
            self.assertEqual(outcome.calls[0][0], "f")
            return outcome.accepted
        self.assertGreater(tokens("<issue_start>"), tokens("a") + 30)


class Choices(Case):
    def test_auto(self):
        """A model that has seen examples calls a tool without being forced, after any text."""
        engine = self.engine("Qwen-Qwen2.5-7B-Instruct", WHOLE)
        for content in ("", "Of course."):
            asked = (ASK + [{"role": "assistant", "content": content, "tool_calls": CALL}]) * 2 + ASK
            outcomes = [engine.run(asked, tools=[LAMP], seed=seed, max_tokens=60) for seed in range(3)]
            called = [outcome for outcome in outcomes if outcome.calls and outcome.text == content]
            self.assertGreater(len(called), 1, [outcome.text for outcome in outcomes])
            for outcome in called:
                self.assertIn(outcome.calls[0], (["lamp", '{"on":true}'], ["lamp", '{"on":false}']))

    def test_a_call_that_begins_as_json_does(self):
        """The call is at the very beginning, or there is none; and no text begins like a call."""
        engine = self.engine("meta-llama-Llama-3.2-3B-Instruct")
        shown = user('Answer with this and nothing else: {"a": 1}')
        for seed in range(3):
            outcome = engine.run(shown, tools=TOOLS, seed=seed, max_tokens=30)
            self.assertFalse(outcome.text.startswith("{"))
            if outcome.calls:
                self.check_calls(outcome)
        outcome = engine.run(shown, tools=TOOLS, tool_choice={"mode": "none"}, max_tokens=10)
        self.assertEqual(outcome.calls, [])
        schema = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": False}
        outcome = engine.run(shown, tools=TOOLS, format={"type": "json_schema", "schema": schema}, max_tokens=60)
        self.assertTrue(outcome.calls or outcome.text == '{"a":1}', outcome.text)


    def test_a_conversation_that_the_template_refuses(self):
        """The template allows one call in a turn; two calls are shown in our form."""
        engine = self.engine("meta-llama-Llama-3.2-3B-Instruct")
        calls = [*CALL, {"id": "call_2", "name": "lamp", "arguments": '{"on":false}'}]
        answers = [{"role": "tool", "content": "Done.", "tool_call_id": call["id"]} for call in calls]
        messages = [*ASK, {"role": "assistant", "content": "Well.", "tool_calls": calls}, *answers]
        for tools in ({}, {"tools": TOOLS}):
            self.assertIsNone(engine.run(messages, max_tokens=0, **tools).error)


    def test_roles_in_turns(self):
        """A template that needs alternating roles gets the tool's outcome and the user's text after it in one turn."""
        done = {"role": "tool", "content": "Done.", "tool_call_id": "call_1"}
        for template, kinds in (("google-gemma-2-2b-it", 1), ("Mistral-Small-3.2-24B-Instruct-2506", 1),
                                ("mistralai-Ministral-3-14B-Reasoning-2512", 2)):
            engine = self.engine(template)
            for messages in ([*CALLED, done, *ASK], [*CALLED, *ASK])[:kinds]:
                for tools in ({}, {"tools": [LAMP], "tool_choice": {"mode": "none"}}):
                    with self.subTest(template, messages=len(messages), tools=len(tools)):
                        self.assertIsNone(engine.run(messages, max_tokens=0, **tools).error)
            called = engine.run([*CALLED, done, *ASK], tools=[LAMP], tool_choice=REQUIRED, max_tokens=60,
                                parallel_tool_calls=False)
            self.check_calls(called)
            engine.close()

    def test_calls_without_tools(self):
        """If the template drops calls without tools, they are shown in our form."""
        template = CONTROL.replace("message.tool_calls or []", "(message.tool_calls or []) if tools else []")
        engine = self.engine(template)
        self.assertGreater(engine.run(ANSWERED, max_tokens=0).accepted,
                           engine.run([*ASK, {"role": "assistant", "content": ""}], max_tokens=0).accepted + 30)
        engine.run(ANSWERED, tools=TOOLS, max_tokens=1)
        engine.close()
        self.assertIn(OWN, engine.stderr.decode())


class Files(Case):
    def test_no_template(self):
        for path in ("/nonexistent/a.jinja", tempfile.gettempdir()):
            self.engine_with(path)
            self.assert_unavailable(path)

    def assert_unavailable(self, *words):
        self.assertEqual((self.result["ok"], self.result["error"]["code"]), (False, "UNAVAILABLE"))
        for word in words:
            self.assertIn(word, self.result["error"]["detail"])

    def test_odd_contents(self):
        for contents, word in ((b"", "empty"), (b"a\0b", "UTF-8"), (b"\xff", "UTF-8"), (b"x" * 2**20, "too long"),
                               (b"x" * (2**20 + 1), "too long")):
            with tempfile.NamedTemporaryFile(suffix=".jinja") as file:
                file.write(contents)
                file.flush()
                self.engine_with(file.name)
                self.assert_unavailable(file.name, word)
        self.engine_with(file.name)
        self.assert_unavailable(file.name, "No such file", "the option chatTemplate (--chat-template), or leave it out")

    def test_a_broken_template(self):
        self.engine("{% for m in messages %}")
        self.assert_unavailable()
        self.assertRegex(self.result["error"]["detail"], r"/.*\.jinja: the chat template can't be used: Unexpected token")


if __name__ == "__main__":
    PROGRAM, WHOLE, TEMPLATES = sys.argv[1:4]
    skip_without(PROGRAM, WHOLE)
    MODEL = gguf.shallow(WHOLE)
    unittest.main(argv=sys.argv[:1])
