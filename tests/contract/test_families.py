"""Each family of llama.cpp's chat templates on the llama engine, with the family's control tokens and scripted answers.

    test_families.py PROGRAM MODEL TEMPLATES PROMPTS LIBRARY    PROMPTS, LIBRARY: what prompts.c and scripted.c are built to

Exit status 77: skipped, because MODEL or LIBRARY is not there, or the engine was built without llguidance.
"""

import os
import sys
import tempfile
import unittest

from engine import skip_without, user
from scripted import Models, Prompts, Scripted

PROGRAM = MODEL = TEMPLATES = PROMPTS = LIBRARY = None

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
    """What the other tests are made with."""

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
        outcome = engine.run(ASK, call % "door", tools=[LAMP])
        self.assertTrue(outcome.left, "no grammar lets a call of another tool pass")


if __name__ == "__main__":
    PROGRAM, MODEL, TEMPLATES, PROMPTS, LIBRARY = map(os.path.abspath, sys.argv[1:6])
    if not os.path.exists(LIBRARY):
        print(f"skipped: there is no {LIBRARY}")
        sys.exit(77)
    skip_without(PROGRAM, MODEL)
    unittest.main(argv=sys.argv[:1])
