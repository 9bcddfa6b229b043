"""Tests calls that are plain JSON on the llama engine (ENGINE.md, Tools), with scripted answers in the forms of several families.

    test_json_calls.py PROGRAM MODEL TEMPLATES LIBRARY    LIBRARY: what scripted.c is built to

Exit status 77: skipped, because MODEL or LIBRARY is not there, or the engine was built without llguidance.
"""

import os
import sys
import tempfile
import unittest

from engine import skip_without, user
from scripted import Models, Scripted

PROGRAM = MODEL = TEMPLATES = LIBRARY = None

# The first family has calls in tags, the second as JSON, and the engine does not understand the calls of the third.
FAMILIES = "Qwen-Qwen2.5-7B-Instruct", "meta-llama-Llama-3.1-8B-Instruct", "Qwen3-Coder"
HELD_MAX = 24  # number of tokens; the vocabulary has few long tokens

LAMP = {"name": "lamp", "parameters": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"],
                                       "additionalProperties": False}}
FORECAST = {"name": "get_weather_forecast", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}}
TOOLS = [LAMP, FORECAST]
ASK = user("Switch the lamp on.")

ON = '{"name": "lamp", "arguments": {"on": true}}'
LINZ = '{\n  "name": "get_weather_forecast",\n  "parameters": {"city": "Linz"}\n}'
LAMP_ON, IN_LINZ = ["lamp", '{"on":true}'], ["get_weather_forecast", '{"city":"Linz"}']
CALLS = (
    (ON, "", [LAMP_ON]),
    (f"```json\n{LINZ}\n```", "", [IN_LINZ]),
    (f"I'll look.\n\n```tool_call\n{LINZ}\n```", "I'll look.", [IN_LINZ]),
    (f"Now:\n{ON}\n{LINZ}", "Now:", [LAMP_ON, IN_LINZ]),
    (f"[{ON}, {LINZ}]", "", [LAMP_ON, IN_LINZ]),
    (f"<tools>\n{ON}\n</tools>", "", [LAMP_ON]),
    ('{"type": "function", "function": {"name": "lamp", "parameters": {"on": true}}}', "", [LAMP_ON]),
    (f"```json\n{ON}\n```\n\n```json\n{ON}\n```", "", [LAMP_ON, LAMP_ON]),
)
TEXTS = (
    '{"name": "Anna", "age": 30}',
    '{"name": "lamps", "arguments": {}}',
    '```json\n{\n  "name": "John Doe",\n  "arguments": {"on": true}\n}\n```',
    f"An example is {ON}, which switches it on.",
    '{"tools": [\n  {"name": "lamp"}\n]}',
    '```python\nx = [\n    {"name": "lamp"},\n]\n```\n\nThat is all.',
    '{"name": "l\\u0061mp"}',
    "```json\n[]\n```",
    '{"name": "lamp',
)


class JsonCalls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        models = Models(MODEL, folder.name, TEMPLATES)
        cls.fence = models.known.index("```")
        cls.engines = []
        for family in FAMILIES:
            cls.engines.append(Scripted(PROGRAM, LIBRARY, models, family))
            cls.addClassCleanup(cls.engines[-1].close)

    def test_calls(self):
        for engine in self.engines:
            for script, text, calls in CALLS:
                outcome = engine.run(ASK, script, tools=TOOLS)
                self.assertEqual((outcome.text, outcome.calls, outcome.reason, outcome.left), (text, calls, "stop", False))

    def test_the_line_s_end_after_a_call(self):
        """The line end is not yet the beginning of another call."""
        call = f"<tool_call>\n{ON.replace(': true', ':true')}\n</tool_call>"
        for script, calls in ((f"{call}\n", [LAMP_ON]), (f"{call}\n{call}", [LAMP_ON, LAMP_ON])):
            for mode in ("auto", "required"):
                outcome = self.engines[0].run(ASK, script, tools=TOOLS, tool_choice={"mode": mode})
                self.assertEqual((outcome.calls, outcome.reason, outcome.left), (calls, "stop", False))

    def test_prose_after_a_call(self):
        """A call that prose follows ends the answer. The model would otherwise have to make another call."""
        for prose in ("This switches it on.", "Das schaltet sie ein.", "これで点きます。"):
            script = f"Try this:\n\n```json\n{ON}\n```\n\n{prose}\n\n```json\n{ON}\n```"
            for engine in self.engines:
                # of what the grammar allows there, another fence is the likeliest
                outcome = engine.run(ASK, script, tools=TOOLS, logit_bias=[[self.fence, 100]])
                self.assertEqual((outcome.text, outcome.calls, outcome.reason), ("Try this:", [LAMP_ON], "stop"))

    def test_other_keys(self):
        """Keys that the schema does not name only come if the schema allows them."""
        for more, arguments in (({}, '{"on":true}'), ({"additionalProperties": True}, '{"on":true,"color":"red"}')):
            lamp = {"name": "lamp", "parameters": {"properties": {"on": {"type": "boolean"}}, "required": ["on"], **more}}
            outcome = self.engines[0].run(ASK, '{"name": "lamp", "arguments": {"on":true,"color":"red"}}', tools=[lamp])
            self.assertEqual((outcome.calls, outcome.left), ([["lamp", arguments]], not more))

    def test_one_call(self):
        for engine in self.engines:
            outcome = engine.run(ASK, f"{ON}\n{ON}", tools=TOOLS, parallel_tool_calls=False)
            self.assertEqual((outcome.text, outcome.calls, outcome.reason), ("", [LAMP_ON], "stop"))

    def test_no_calls(self):
        for engine in self.engines:
            script = f'Well.\n<tool_call>\n{ON}\n</tool_call>'
            outcome = engine.run(ASK, script, tools=TOOLS, tool_choice={"mode": "none"})
            json_alone = engine is self.engines[1]  # in this case such tags are text, and JSON is not recognised as a call
            self.assertEqual((outcome.calls, "<tool_call>" in outcome.text, outcome.error), ([], json_alone, None))
            for text in (ON, *TEXTS):
                outcome = engine.run(ASK, text, tools=TOOLS, tool_choice={"mode": "none"})
                self.assertEqual((outcome.text, outcome.calls, outcome.left), (text, [], False))

    def test_the_schema_holds_from_the_name_on(self):
        for engine in self.engines:
            outcome = engine.run(ASK, 'So:\n{"name": "lamp", "color": "red"}', tools=TOOLS)
            self.assertEqual((outcome.text, outcome.calls[0][0], outcome.left), ("So:", "lamp", True))

    def test_texts(self):
        for engine in self.engines:
            for script in TEXTS:
                outcome = engine.run(ASK, script, tools=TOOLS)
                self.assertEqual((outcome.text, outcome.calls, outcome.reason, outcome.left), (script, [], "stop", False))

    def test_log_probabilities(self):
        for engine in self.engines:
            for script, text in ((TEXTS[2], TEXTS[2]), (CALLS[2][0], CALLS[2][1])):
                outcome = engine.run(ASK, script, tools=TOOLS, logprobs=0)
                self.assertEqual(bytes(b for entry in outcome.logprobs for b in entry["bytes"])[:len(text)].decode(), text)

    def test_what_is_held_back(self):
        for engine in self.engines:
            script = 'I look.\n\n```json\n{\n  "name": "lamp",\n  "arguments": {"on": true}\n}\n```'
            events = engine.events(ASK, script, tools=TOOLS)
            told = [params["output_tokens"] for name, params in events if name in ("job.delta", "job.tool_call")]
            self.assertEqual([name for name, _ in events].count("job.tool_call"), 1)
            self.assertLessEqual(max(after - before for before, after in zip([0, *told], told)), HELD_MAX)


if __name__ == "__main__":
    PROGRAM, MODEL, TEMPLATES, LIBRARY = map(os.path.abspath, sys.argv[1:5])
    if not os.path.exists(LIBRARY):
        print(f"skipped: there is no {LIBRARY}")
        sys.exit(77)
    skip_without(PROGRAM, MODEL)
    unittest.main(argv=sys.argv[:1])
