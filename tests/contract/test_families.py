"""Tests each family of llama.cpp's chat templates on the llama engine, with the family's control tokens and scripted answers.

    test_families.py PROGRAM MODEL TEMPLATES PROMPTS LIBRARY    PROMPTS, LIBRARY: what prompts.c and scripted.c are built to
    test_families.py ... --write       writes the tables of docs/conformance.md and docs/models.md, and prints all faults
    test_families.py ... NAME          the same for the templates whose names contain NAME; writes nothing

Exit status 77: skipped, because MODEL or LIBRARY is not there, or the engine was built without llguidance.
"""

import importlib
import json
import os
import shutil
import sys
import tempfile
import unittest

import families
import summary
from engine import skip_without, user
from scripted import Models, Prompts, Script, Scripted, names_in

PROGRAM = MODEL = TEMPLATES = PROMPTS = LIBRARY = None
DOCUMENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")
MADE = {"conformance.md": families, "models.md": summary}  # the modules that make the tables of these documents

LAMP = {"name": "lamp", "parameters": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"],
                                       "additionalProperties": False}}
ASK = user("Switch the lamp on.")


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.models = Models(MODEL, folder.name, TEMPLATES)
        cls.prompts = Prompts(PROMPTS, cls.models)
        cls.addClassCleanup(cls.prompts.close)

    def engine(self, name):
        engine = Scripted(PROGRAM, LIBRARY, self.models, name)
        self.addCleanup(engine.close)
        return engine


class Tools(Case):
    """Tests the tools that the other tests use."""

    def test_the_prompt(self):
        turn = "<|im_start|>user\nSwitch the lamp on.<|im_end|>\n"
        asked = self.prompts.ask("Qwen-Qwen3-0.6B", ASK)
        self.assertEqual(asked, {"prompt": turn + "<|im_start|>assistant\n", "native": False, "thinks": True, "begins": "either"})
        closed = self.prompts.ask("Qwen-Qwen3-0.6B", [*ASK, {"role": "assistant", "content": "Done."}], closed=True)
        self.assertTrue(closed["prompt"].endswith("Done.<|im_end|>\n"), closed)
        refused = self.prompts.ask("Qwen-Qwen3-0.6B", [{"role": "nobody", "content": ""}])
        self.assertEqual((refused["error"], refused["param"]), ("INVALID_REQUEST", "messages[0].role"))

    def test_the_script(self):
        engine = self.engine("Qwen-Qwen3-0.6B")
        outcome = engine.run(ASK, "<think>\nHm.\n</think>\n\nDone, <b>sir</b>.<|im_end|>")
        self.assertEqual((outcome.reasoning, outcome.text, outcome.reason, outcome.left),
                         ("Hm.", "Done, <b>sir</b>.", "stop", False))
        call = '<tool_call>\n{"name": "%s", "arguments": {"on": true}}\n</tool_call><|im_end|>'
        outcome = engine.run(ASK, call % "lamp", tools=[LAMP])
        self.assertEqual((outcome.calls, outcome.reason, outcome.left), ([["lamp", '{"on":true}']], "stop", False))
        call = call % "lamp"
        outcome = engine.run(ASK, call.replace("on", "off"), tools=[LAMP])
        self.assertTrue(outcome.left, "no grammar lets other arguments pass")


class UnknownTools(Case):
    """A call of a tool that does not exist becomes text; what follows it is handled as usual."""

    FORMS = {"Qwen-Qwen3-0.6B": '<tool_call>\n{"name": "%s", "arguments": {"on": true}}\n</tool_call>',
             "google-gemma-2-2b-it": '<tool_call>\n{"name": "%s", "arguments": {"on": true}}\n</tool_call>',
             "Qwen3-Coder": "<tool_call>\n<function=%s>\n<parameter=on>\nTrue\n</parameter>\n</function>\n</tool_call>",
             "GLM-4.6": "<tool_call>%s\n<arg_key>on</arg_key>\n<arg_value>true</arg_value>\n</tool_call>"}

    def test_names(self):
        for name, form in self.FORMS.items():
            engine = self.engine(name)
            for unknown in ("door", "lam", "lamps", "Lamp", "home.lamp"):
                call = form % unknown
                for script, text in ((call, call), (f"Sure.\n{call}\nDone.", f"Sure.\n{call}\nDone."),
                                     (f"{call}\n{call}", f"{call}\n{call}")):
                    with self.subTest(name, script=script):
                        outcome = engine.run(ASK, script, tools=[LAMP])
                        self.assertEqual((outcome.error, outcome.calls, outcome.text, outcome.left), (None, [], text, False))
                        self.assertEqual(outcome.unknown_tool, unknown)
                with self.subTest(name, then="a call"):
                    outcome = engine.run(ASK, f"{call}\n{form % 'lamp'}", tools=[LAMP])
                    self.assertEqual((outcome.calls, outcome.text, outcome.left), ([["lamp", '{"on":true}']], call, False))
            outcome = engine.run(ASK, form % "lamp", tools=[LAMP])
            self.assertEqual((outcome.unknown_tool, outcome.text), (None, ""))
            outcome = engine.run(ASK, form % "door", tools=[LAMP], tool_choice={"mode": "required"})
            self.assertEqual([call[0] for call in outcome.calls], ["lamp"])


    def test_names_between_control_tokens(self):
        """A call with JSON is reported as text in our form. After another call, it is not reported at all."""
        teal = json.dumps({"color": "teal", "level": 3})
        lamp = ["lamp", teal.replace(" ", "")]
        for name in ("Kimi-K2-Instruct", "Mistral-Small-3.2-24B-Instruct-2506", "openai-gpt-oss-120b",
                     "deepseek-ai-DeepSeek-V3.1", "Qwen-Qwen3-0.6B"):
            family, engine = families.Family(name, self.prompts), self.engine(name)
            call = family.calls(families.TEAL)
            for unknown in ("door", "lam", "lamps"):
                with self.subTest(name, unknown=unknown):
                    outcome = engine.run(families.ASK, call.replace("lamp", unknown), tools=families.TOOLS)
                    text = f'<tool_call>\n{{"name": "{unknown}", "arguments": {teal}}}\n</tool_call>'
                    self.assertEqual((outcome.error, outcome.calls, outcome.text.strip()), (None, [], text))
                    self.assertEqual((outcome.unknown_tool, outcome.left), (unknown, False))
            if "gpt-oss" in name:
                continue
            first, _, rest = family.calls(families.TEAL, families.TEAL).rpartition("lamp")
            outcome = engine.run(families.ASK, f"{first}door{rest}", tools=families.TOOLS)
            self.assertEqual((outcome.calls, outcome.text.strip()), ([lamp], ""))
            self.assertEqual((outcome.unknown_tool, outcome.left), ("door", False))


    def test_names_before_tags(self):
        """If the arguments are not JSON, neither they nor the text after them are reported."""
        for name in ("ByteDance-Seed-OSS", "LFM2.5-8B-A1B", "google-gemma-4-31B-it-interleaved", "GLM-4.6"):
            family, engine = families.Family(name, self.prompts), self.engine(name)
            call, (first, _, rest) = family.calls(families.TEAL), family.calls(families.TEAL, families.TEAL).rpartition("lamp")
            if name != "GLM-4.6":
                outcome = engine.run(families.ASK, call.replace("lamp", "lamps"), tools=families.TOOLS)
                self.assertEqual((outcome.calls, outcome.text), ([], '<tool_call>\n{"name": "lamps"}\n</tool_call>'))
                self.assertEqual((outcome.error, outcome.unknown_tool, outcome.left), (None, "lamps", False))
            outcome = engine.run(families.ASK, f"{first}door{rest}", tools=families.TOOLS)
            self.assertEqual((outcome.calls, outcome.text.strip()), ([["lamp", '{"color":"teal","level":3}']], ""))
            self.assertEqual((outcome.error, outcome.unknown_tool, outcome.left), (None, "door", False))


class Thoughts(Case):
    """Thoughts are separated from the text, with and without tools and formats, in whatever order the model writes its marks."""

    # Each case has the text at the very beginning, the text directly before the answer or JSON, and the expected thought.
    WRITTEN = {
        "GLM-4.6": (("\n<think>Hm.</think>\n", "", "Hm."), ("\n\n", "", ""), ("</think>\n", "", "")),
        "Qwen-Qwen3-0.6B": (("\n<think>\nHm.\n</think>\n\n", "", "Hm."), ("<think>\na\n<think>\nb</think>\n", "", "a\n\nb")),
        "openai-gpt-oss-120b": tuple((thoughts, f"<|channel|>{channel}<|message|>", "\n\n".join(told))
                                     for channel in ("final", "commentary")
                                     for thoughts, told in (
            ("", ()), ("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant", ("Hm.",)),
            ("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>analysis<|message|>Ho.<|end|><|start|>"
             "assistant", ("Hm.", "Ho.")))),
    }
    # calls of families whose form differs from ours
    CALLS = {"GLM-4.6": "<tool_call>lamp\n<arg_key>on</arg_key>\n<arg_value>true</arg_value>\n</tool_call>",
             "openai-gpt-oss-120b": '<|channel|>commentary to=functions.lamp <|constrain|>json<|message|>{"on": true}<|call|>'}
    CALL = '<tool_call>\n{"name": "lamp", "arguments": {"on": true}}\n</tool_call>'
    NUMBER = {"type": "json_schema", "strict": True, "schema": {
        "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}}

    def test_before_everything(self):
        for name, scripts in self.WRITTEN.items():
            engine = self.engine(name)
            call = self.CALLS.get(name, self.CALL)
            answers = (("Done.", {}, ("Done.", [])), ("Done.", {"tools": [LAMP]}, ("Done.", [])),
                       (call, {"tools": [LAMP], "tool_choice": {"mode": "required"}}, ("", [["lamp", '{"on":true}']])),
                       ('{"a": 1}', {"format": self.NUMBER}, ('{"a":1}', [])))
            for before, lead, thought in scripts:
                for answer, params, wanted in answers:
                    script = before + ("" if answer == call else lead) + answer
                    with self.subTest(name, script=script, **params):
                        outcome = engine.run(ASK, script, **params)
                        self.assertEqual((outcome.error, outcome.reasoning, outcome.left), (None, thought, False))
                        self.assertEqual((outcome.text.strip(), outcome.calls), wanted)

    def test_headers_of_calls(self):
        """gpt-oss names the tool in the header's part for the role or for the channel, with or without a text before."""
        engine = self.engine("openai-gpt-oss-120b")
        preamble = "<|channel|>commentary<|message|>Well.<|end|><|start|>assistant"
        thought = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
        for call in ("<|channel|>commentary to=functions.lamp <|constrain|>json<|message|>",
                     "<|channel|>commentary to=functions.lamp<|message|>",
                     "<|channel|>commentary to=functions.lamp json<|message|>",
                     " to=functions.lamp<|channel|>commentary json<|message|>",
                     " to=functions.lamp<|channel|>commentary <|constrain|>json<|message|>"):
            for before, said, told in (("", "", ""), (thought, "Hm.", ""), (thought + preamble, "Hm.", "Well.")):
                for params in ({}, {"reasoning": {"effort": "low"}}):
                    with self.subTest(call=call, before=before, **params):
                        outcome = engine.run(ASK, before + call + '{"on": true}<|call|>', tools=[LAMP], **params)
                        self.assertEqual((outcome.error, outcome.reasoning, outcome.text, outcome.calls, outcome.left),
                                         (None, said, told, [["lamp", '{"on":true}']], False))
        for text in (" to=functions are words.", "Say to=functions.lamp.", " to"):
            outcome = engine.run(ASK, f"<|channel|>final<|message|>{text}<|return|>", tools=[LAMP])
            self.assertEqual((outcome.text, outcome.calls, outcome.left), (text, [], False))
        outcome = engine.run(ASK, preamble[:32] + "Well.<|return|>", tools=[LAMP], reasoning={"effort": "none"})
        self.assertEqual((outcome.text, outcome.reasoning, outcome.left), ("Well.", "", False))

    def test_marks_in_a_users_text(self):
        """llama.cpp returns the header's tokens as text; the same text from a user still does not become tokens."""
        engine = self.engine("openai-gpt-oss-120b")
        plain = engine.run(user("hi"), "<|channel|>final<|message|>A<|return|>").accepted
        marked = engine.run(user("hi<|start|>"), "<|channel|>final<|message|>A<|channel|>B<|return|>")
        self.assertGreater(marked.accepted, plain + 2)
        self.assertEqual(marked.text, "AB")

    def test_texts_that_begin_alike(self):
        engine = self.engine("Qwen-Qwen3-0.6B")
        for text in ("\n\nDone.", "<thing>", "<thi", "\n<t", "<b>Done</b>"):
            for tools in ({}, {"tools": [LAMP]}):
                for more in ({}, {"logprobs": 2}):
                    outcome = engine.run(ASK, text, **tools, **more)
                    self.assertEqual((outcome.text, outcome.reasoning, outcome.left), (text, "", False))
                    if more:
                        told = b"".join(bytes(entry["bytes"]) for entry in outcome.logprobs)
                        self.assertEqual(told.decode(), text)

    def test_amid_a_text(self):
        """All marks are removed from the text, and the text between two marks stays."""
        call = '<tool_call>\n{"name": "lamp", "arguments": {"on": true}}\n</tool_call>'
        for name in ("Qwen-Qwen3-0.6B", "HuggingFaceTB-SmolLM3-3B"):
            engine = self.engine(name)
            for params in ({}, {"tools": [LAMP]}, {"tools": [LAMP], "tool_choice": {"mode": "none"}}, {"logprobs": 1}):
                for script, text in (("a<think>b</think>c", "abc"), ("Done.</think>\nYes.", "Done.\nYes."),
                                     ("Done.\n<think>", "Done.\n")):
                    with self.subTest(name, script=script, **params):
                        outcome = engine.run(ASK, script, **params)
                        self.assertEqual((outcome.error, outcome.reasoning, outcome.calls), (None, "", []))
                        self.assertEqual((outcome.text, outcome.left), (text, False))
            outcome = engine.run(ASK, "a</think>\n" + call, tools=[LAMP])
            self.assertEqual((outcome.text.strip(), outcome.calls), ("a", [["lamp", '{"on":true}']]))


class Values(Case):
    """Arguments of each kind in the notations of the families."""

    MAKE = {"name": "make", "parameters": {
        "type": "object", "required": ["url"], "properties": {
            "url": {"type": "string", "format": "uri", "minLength": 1}, "size": {"type": "integer", "minimum": 1},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "tags": {"type": "array", "items": {"type": "string"}}, "place": {"$ref": "#/$defs/place"}},
        "$defs": {"place": {"type": "object", "required": ["x"],
                            "properties": {"x": {"type": "number"}, "name": {"type": "string"}}}}}}
    MADE = {"url": "https://a.b/c", "size": 3, "note": None, "tags": ['a "b"', "it's\n", "\u00e9"],
            "place": {"x": -1.5, "name": "n"}}
    MARKED = ("<|tool_call>call:make{note:null,place:{name:~n~,x:-1.5},size:3,tags:[~a \"b\"~,~it's\n~,~\u00e9~],"
              "url:~https://a.b/c~}<tool_call|>").replace("~", '<|"|>')
    WRITTEN = {
        "google-gemma-4-31B-it": MARKED + "<|tool_response>", "google-gemma-4-31B-it-interleaved": MARKED + "<turn|>",
        "LFM2.5-8B-A1B": '<|tool_call_start|>[make(url="https://a.b/c", size=3, note=None, '
                         'tags=[\'a "b"\', "it\'s\\n", "\u00e9"], '
                         "place={\"x\": -1.5, 'name': 'n'})]<|tool_call_end|><|im_end|>",
        "Qwen3-Coder": "<tool_call>\n<function=make>\n" + "".join(
            f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in (
                ("url", "https://a.b/c"), ("size", 3), ("note", None), ("tags", json.dumps(MADE["tags"], ensure_ascii=False)),
                ("place", json.dumps(MADE["place"])))) + "</function>\n</tool_call><|im_end|>",
    }

    def test_each_kind(self):
        for name, script in self.WRITTEN.items():
            with self.subTest(name):
                outcome = self.engine(name).run(ASK, script, tools=[self.MAKE])
                self.assertEqual((outcome.error, outcome.text, len(outcome.calls)), (None, "", 1))
                self.assertEqual(json.loads(outcome.calls[0][1]), self.MADE)
                self.assertTrue(self.prompts.ask(name, ASK, tools=[self.MAKE])["native"])


class Front(Case):
    """End to end: what both APIs return for the scripts, streamed and whole."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.environ["FM_BIN"] = os.path.dirname(PROGRAM)
        cls.wire = importlib.import_module("wire")

    def helper(self, name):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        shutil.copy(PROGRAM + ".json", folder.name)
        script = Script(folder.name)
        path = os.path.join(folder.name, os.path.basename(PROGRAM))
        with open(path, "w") as file:
            exports = " ".join(f"{key}={value}" for key, value in script.environment(LIBRARY).items())
            file.write(f"#!/bin/sh\nexport {exports}\nexec {PROGRAM}\n")
        os.chmod(path, 0o755)
        helper = self.wire.Helper("--engine-dir", folder.name, "--model", self.models.path(name), "--chat-template",
                                  self.models.template(name), engine="llama")
        self.addCleanup(helper.close)
        return helper, script

    def chat(self, helper, stream):
        tools = [{"type": "function", "function": tool} for tool in families.TOOLS]
        body = {"messages": families.ASK, "tools": tools, "temperature": 0, "stream": stream}
        events, result = helper.collect(helper.start("chat.completions.create", body))
        self.assertTrue(result["ok"], result)
        text, reasoning, calls = "", "", {}
        for chunk in events if stream else [result["completion"]]:
            for choice in chunk["choices"]:
                part = choice["delta" if stream else "message"]
                text += part.get("content") or ""
                reasoning += part.get("reasoning_content") or ""
                for index, call in enumerate(part.get("tool_calls") or []):
                    known = calls.setdefault(call.get("index", index), ["", ""])
                    known[0] += call["function"].get("name") or ""
                    known[1] += call["function"].get("arguments") or ""
        return text.strip(), reasoning, list(calls.values())

    def response(self, helper, stream):
        tools = [{"type": "function", **tool} for tool in families.TOOLS]
        body = {"input": families.ASK[0]["content"], "tools": tools, "temperature": 0, "stream": stream}
        events, result = helper.collect(helper.start("responses.create", body))
        self.assertTrue(result["ok"], result)
        response = self.wire.check_stream(self, events, result) if stream else result["response"]
        parts = {"message": "", "reasoning": "", "function_call": []}
        for item in response["output"]:
            if item["type"] == "function_call":
                parts["function_call"].append([item["name"], item["arguments"]])
            else:
                parts[item["type"]] += "".join(part["text"] for part in item.get("content") or item.get("summary"))
        return parts["message"].strip(), parts["reasoning"], parts["function_call"]

    def test_both_apis(self):
        call = ["lamp", '{"color":"teal","level":3}']
        for name in ("Qwen-Qwen3-0.6B", "Reka-Edge"):
            family = families.Family(name, self.prompts)
            helper, script = self.helper(name)
            for text, wanted in (
                    (family.text(thought=families.THOUGHT), (families.TEXT, families.THOUGHT, [])),
                    (family.calls(families.TEAL, families.TEAL, thought=families.THOUGHT), ("", families.THOUGHT, [call] * 2))):
                for ask in (self.chat, self.response):
                    for stream in (False, True):
                        with self.subTest(name, api=ask.__name__, stream=stream):
                            script.write(text)
                            self.assertEqual(ask(helper, stream), wanted)


def rows(models, prompts, part=""):
    """{template: its cells} of the templates with `part` in their names."""
    found = {}
    for name in names_in(TEMPLATES):
        if part in name:
            engine = Scripted(PROGRAM, LIBRARY, models, name)
            found[name] = families.row(families.Cells(families.Family(name, prompts), engine))
            engine.close()
    return found


def split(name):
    """The text before the table of a document, the table, and the text after it."""
    maker = MADE[name]
    with open(os.path.join(DOCUMENTS, name), encoding="utf-8") as file:
        before, rest = file.read().split(maker.BEGIN + "\n")
    made, after = rest.split("\n" + maker.END)
    return before + maker.BEGIN + "\n", made, "\n" + maker.END + after


class Matrix(Case):
    def test_the_table(self):
        """The table has the known faults. If a cell gets better, the table has to change too."""
        found = rows(self.models, self.prompts)
        _, known, _ = split("conformance.md")
        made = families.table(found)
        for line in sorted(set(made) - set(known.split("\n"))):
            name = line.split(" | ")[0].strip("| ")
            print(line, *(f"    {cell}: {why}" for cell, (what, why) in found.get(name, {}).items() if what == "fault"), sep="\n")
        self.assertEqual("\n".join(made), known, "see above; --write writes the table")
        self.assertEqual("\n".join(summary.table(found)), split("models.md")[1], "--write writes this table, too")


def write(part):
    with tempfile.TemporaryDirectory() as folder:
        models = Models(MODEL, folder, TEMPLATES)
        prompts = Prompts(PROMPTS, models)
        found = rows(models, prompts, part)
        prompts.close()
    for name, cells in found.items():
        print(name, *(f"    {cell}: {why}" for cell, (what, why) in cells.items() if what == "fault"), sep="\n")
    if not part:
        for document, maker in MADE.items():
            before, _, after = split(document)
            with open(os.path.join(DOCUMENTS, document), "w", encoding="utf-8") as file:
                file.write(before + "\n".join(maker.table(found)) + after)


if __name__ == "__main__":
    PROGRAM, MODEL, TEMPLATES, PROMPTS, LIBRARY = map(os.path.abspath, sys.argv[1:6])
    if not os.path.exists(LIBRARY):
        print(f"skipped: there is no {LIBRARY}")
        sys.exit(77)
    skip_without(PROGRAM, MODEL)
    if len(sys.argv) > 6:
        write("" if sys.argv[6] == "--write" else sys.argv[6])
    else:
        unittest.main(argv=sys.argv[:1])
