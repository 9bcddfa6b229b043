"""Tests messages in any order with every chat template (ENGINE.md, Prompts): no order is refused, and the prompt has each text
once, in order.

    test_turns.py PROMPTS MODEL TEMPLATES    PROMPTS: prompts.c; TEMPLATES: llama.cpp's folder of chat templates

FM_ORDERS is the number of random orders for each template, in addition to the orders below. Exit status 77: skipped, because
MODEL is not
there.
"""

import glob
import json
import os
import random
import subprocess
import sys
import unittest

PROMPTS = MODEL = TEMPLATES = None
RANDOM = int(os.environ.get("FM_ORDERS", "4"))

# s system, u user, a assistant, c a call, C two calls, t the outcome of the oldest call that has none
ORDERS = {
    "a system message and a user's": "su", "two system messages": "ssuau", "a system message later": "suasu",
    "a system message last": "suas", "only a system message": "s", "two of the user": "suu", "two of the assistant": "uaau",
    "the assistant first": "au", "the assistant last": "sua", "a call after a text": "suactau",
    "outcomes, then a user's": "suCttu", "all at once": "asusaaCttusua",
}
NAMES = ("turn_on_lamp", "set_clock")
TOOLS = [{"name": name, "description": "Does it.", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}
         for name in NAMES]
ROLES = {"s": "system", "u": "user", "a": "assistant", "c": "assistant", "C": "assistant", "t": "tool"}


def conversation(order):
    """Returns the messages of an order, and the texts that must be in the prompt: the texts of the system, and the other
    texts."""
    messages, system, others, waiting = [], [], [], []

    def text(of):
        of.append(f"zq{len(system) + len(others)}x")
        return of[-1]
    for letter in order:
        message = {"role": ROLES[letter], "content": ""}
        if letter in "cC":
            message["tool_calls"] = []
            for _ in range(1 + (letter == "C")):
                name = NAMES[len(others) % 2]
                call = {"id": f"call{len(others):05}", "name": name, "arguments": json.dumps({"text": text(others)})}
                message["tool_calls"].append(call)
                waiting.append(call["id"])
        else:
            message["content"] = text(system if letter == "s" else others)
        if letter == "t":
            message["tool_call_id"] = waiting.pop(0)
        messages.append(message)
    return messages, system, others


def random_order(rng):
    order, waiting = "", 0
    for _ in range(rng.randint(1, 9)):
        letter = rng.choice("suuaacC" + "tttt" * (waiting > 0))
        waiting += "cC".find(letter) + 1 - (letter == "t")
        order += letter
    return order + "t" * waiting


class Turns(unittest.TestCase):
    def setUp(self):
        self.process = subprocess.Popen([PROMPTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.process.__exit__, None, None, None)

    def ask(self, template, **params):
        self.process.stdin.write(json.dumps({"model": MODEL, "template": template, **params}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def check(self, template, order, tools):
        messages, system, others = conversation(order)
        answer = self.ask(template, messages=messages, **({"tools": TOOLS} if tools else {}))
        prompt = answer.get("prompt")
        if prompt is None:
            return answer["detail"]
        texts = system + others
        if any(prompt.count(text) != 1 for text in texts):
            return "a text is lost, or comes twice"
        for part in (system, others):
            places = [prompt.index(text) for text in part]
            if places != sorted(places):
                return "the texts are out of order"
        if tools and not all(name in prompt for name in NAMES):
            return "a tool is lost"
        return None

    def test_orders(self):
        rng = random.Random(34)
        paths = sorted(glob.glob(os.path.join(TEMPLATES, "*.jinja")))
        self.assertGreater(len(paths), 60)
        wrong = []
        for path in paths:
            orders = [*ORDERS.values(), *(random_order(rng) for _ in range(RANDOM))]
            for order in orders:
                for tools in (False, True):
                    fault = self.check(path, order, tools)
                    if fault:
                        wrong.append(f"{os.path.basename(path)} {order}{' with tools' * tools}: {fault}")
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    PROMPTS, MODEL, TEMPLATES = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
    if not os.path.exists(MODEL):
        print(f"skipped: there is no model file {MODEL}; packaging/setup.sh downloads it")
        sys.exit(77)
    unittest.main(verbosity=2)
