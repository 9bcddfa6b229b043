"""Finds out what each family's model writes, from its chat template, and whether the engine handles this correctly: these are the
cells of the table of docs/conformance.md. For test_families.py."""

import json
import os.path
import re

import test_turns
from engine import user
from scripted import ENDS, EOS, of_family

COLORS = ("teal", "pink")
LAMP = {"name": "lamp", "description": "Switches the lamp.", "parameters": {
    "type": "object", "properties": {"color": {"type": "string"}, "level": {"type": "integer"}},
    "required": ["color", "level"], "additionalProperties": False}}
CLOCK = {"name": "clock", "description": "Sets the clock.", "parameters": {
    "type": "object", "properties": {"hour": {"type": "integer"}}, "required": ["hour"], "additionalProperties": False}}
TOOLS = [LAMP, CLOCK]
FORMAT = {"type": "json_schema", "strict": True, "schema": {
    "type": "object", "properties": {"color": {"enum": list(COLORS)}}, "required": ["color"], "additionalProperties": False}}
ASK = user("Switch the lamp on.")
SHOWN, THOUGHT, TEXT = '{"color":"teal"}', "They want light.", "Sure, now."


def call(name="lamp", number=1, **arguments):
    return {"id": f"call{number:05}", "name": name, "arguments": json.dumps(arguments)}


TEAL, PINK, HOUR = call(color="teal", level=3), call(number=2, color="pink", level=4), call("clock", hour=7)


def said(content="", **more):
    return {"role": "assistant", "content": content, **more}


def result(number=1, text="It is on."):
    return {"role": "tool", "content": text, "tool_call_id": f"call{number:05}"}


# The texts around a model's thought, for templates that do not show the thought of the last answer. "": the model never thinks.
MARKS = {
    "Apriel": ("Here are my reasoning steps:\n", "\n[BEGIN FINAL RESPONSE]\n"),
    "Ministral": ("[THINK]", "[/THINK]"), "mistral|LFM2.5-Instruct": ("", ""),
    "gpt-oss": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
    "gemma-4": ("<|channel>thought\n", "<channel|>"),
    "command-r7b|Cohere2": ("<|START_THINKING|>", "<|END_THINKING|>"), "rwkv": ("<think>", "</think>\n"),
    "Solar": ("<|think|>", "<|end|><|begin|>assistant"), "MiniMax-M3": ("<mm:think>", "</mm:think>"),
    "Hy3": ("<think:opensource>", "</think:opensource>"), "Kimi-K3": ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
}
# Models that think only when asked to.
ASKED = {"Hy3": {"reasoning": {"effort": "high"}}}
# What ends the last turn, if the template only has the text between two turns.
LAST = {"Solar": ("<|end|><|begin|>assistant", "<|flush|>"), "GigaChat3-": ("<|message_sep|>\n\n", "</s>")}
NEXT_TURN = "<|START_OF_TURN_TOKEN|>"
# How a model writes a text before a call, and a call, if its template writes them in another form.
WRITTEN = {"gpt-oss": ("<|channel|>commentary<|message|>%s<|end|><|start|>assistant",
                       "<|channel|>commentary to=functions.%s <|constrain|>json<|message|>%s<|call|>")}
# Families whose texts have marks. If their template drops a text before a call, the form of such a text is not known.
MARKED_TEXTS = "glimmer|Solar|Cohere"
# Families whose template asks for a list of calls in every answer. There, a text is a call of a special tool, and another
# template shows the text.
LISTS = {"command-r-plus": "directly-answer"}
# Families whose calls the engine can't read, with the part of the template that shows this, and the reason. Their calls are in
# our form.
OURS = {
    "Kimi-K3": ("('type', xtml_type(value))", "our form: the tag of each argument tells the type of its value"),
    "MiniMax-M3": ("ns_token + '</' + k + '>'", "our form: the key is in the tag that ends an argument, and values are not JSON"),
    "glimmer": ('<atem:invoke name="\' + tc.function.name', "our form: the tool's name stands twice in a call"),
}
TAGS = ("<think>\n", "\n</think>\n\n")
USUAL_ENDS = ("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<turn|>", "<|END_OF_TURN_TOKEN|>")
OTHER_ENDS = ("<|call|>", "<|eom_id|>", "<|calls|>", "<|tool_response>")  # of calls


class NotPossible(Exception):
    """Why a family does not have this cell."""


class Ours(NotPossible):
    """Why a family's calls are in our form, although it has a form for calls."""


class Wrong(Exception):
    """Reports what came instead of the expected result."""


class Family:
    """Knows what the model that belongs to a template writes."""

    def __init__(self, name, prompts):
        self.name, self.prompts, self.asked = name, prompts, of_family(ASKED, name, {})
        with open(prompts.models.template(name), encoding="utf-8") as file:
            self.source = file.read()
        asked = self.prompts.ask(name, ASK, tools=TOOLS)
        self.native = asked.get("native", False)
        rest = self.written(said(TEXT))
        after = rest[rest.index(TEXT) + len(TEXT):] if TEXT in rest else ""
        self.end = min((end for end in (of_family(ENDS, name, EOS), *USUAL_ENDS) if end in after), key=after.index, default="")
        self.has_calls = self.template_calls()

    def own(self, messages, tools=None, **kind):
        answer = self.prompts.ask(self.name, messages, **({"tools": tools} if tools else {}), **self.asked, **kind)
        if "error" in answer:
            raise NotPossible("the template refuses: " + answer["detail"].split("Exception: ")[-1])
        return answer["prompt"]

    def template_calls(self):
        try:
            return "teal" in self.written(said(tool_calls=[TEAL]), TOOLS)
        except NotPossible:
            return False

    def written(self, answer, tools=None):
        """Returns what the template writes for `answer` after the prompt, including a thought that the prompt may have opened."""
        opened, closed = self.own(ASK, tools, own=True), self.own([*ASK, answer], tools, closed=True)
        same = os.path.commonprefix([opened, closed])
        if same != opened:
            mark = same.rfind("<")
            same = same[:mark] if mark > same.rfind(">") else same
        tail, rest = opened[len(same):], closed[len(same):]
        begin, end = self.marks()
        if begin and (tail or opened).rstrip().endswith(begin.strip()) and end.strip() not in rest:
            rest = (answer.get("reasoning") or "") + end + rest.lstrip()
        again = next((n for n in range(len(rest), 4, -1) if opened.endswith(rest[:n])), 0)  # this part is already in the prompt
        rest = rest[again:]
        between, last = of_family(LAST, self.name, ("", ""))
        return rest.removesuffix(between) + last if between and rest.endswith(between) else rest

    def opened(self):
        """Whether the prompt has begun a thought."""
        begin, _ = self.marks()
        return begin and self.own(ASK, own=True).rstrip().endswith(begin.strip())

    def marks(self):
        return of_family(MARKS, self.name, TAGS if TAGS[0].strip() in self.source else ("", ""))

    def cut(self, rest, last):
        """`rest` up to the end of the turn, which comes after `last`."""
        at = rest.rindex(last) + len(last)
        ends = [self.end, *OTHER_ENDS]
        found = min((rest.index(end, at) + len(end) for end in ends if end and end in rest[at:]), default=len(rest))
        return rest[:found].split(NEXT_TURN)[0].rstrip("\n") if NEXT_TURN in rest[at:found] else rest[:found]

    # ---- scripts ----

    def text(self, text=TEXT, thought=None, before=""):
        rest = self.written(said(text, **({"reasoning": thought} if thought else {})))
        if text not in rest:
            raise NotPossible("the template writes no text")
        script = self.cut(rest, text)
        return before + (script if not thought or thought in rest else self.thinking(script, thought))

    def thinking(self, script, thought):
        """Returns `script` with a thought before it that the template does not write."""
        begin, end = self.marks()
        if not begin:
            raise NotPossible("the family does not think")
        script = script.lstrip()
        script = script[len(begin.strip()):].lstrip() if script.startswith(begin.strip()) else script
        script = script[len(end.strip()):].lstrip() if script.startswith(end.strip()) else script
        return ("" if self.opened() else begin) + thought + end + script

    def calls(self, *calls, text="", thought=None):
        if not self.native:
            one = '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>'
            script = text + ("\n" if text else "") + "\n".join(one % (c["name"], c["arguments"]) for c in calls)
            return self.thinking(script, thought or "") if thought or self.opened() else script
        rest = self.written(said(text, tool_calls=list(calls), **({"reasoning": thought} if thought else {})), TOOLS)
        written = of_family(WRITTEN, self.name, None)
        color = json.loads(calls[-1]["arguments"]).get("color", "7")
        if len(calls) > 1 and any(json.loads(c["arguments"])["color"] not in rest for c in calls):
            raise NotPossible("the template writes one call")
        # the template drops it, yet a model may write it
        if text and not written and not 0 <= rest.find(text) < rest.find("lamp"):
            if re.search(MARKED_TEXTS, self.name):
                raise NotPossible("the template drops a text beside a call")
            script, end = self.calls(*calls, thought=thought), self.marks()[1].strip()
            at = script.index(end) + len(end) if end and end in script else 0
            return script[:at] + "\n\n" * (at > 0) + text + "\n\n" + script[at:].lstrip()
        if self.end and self.end in rest[:rest.find(color)]:
            raise NotPossible("a text before a call ends the turn")
        script = self.cut(rest, color)
        if written and calls[0] is TEAL:
            script = (written[0] % text if text else "") + written[1] % (TEAL["name"], TEAL["arguments"])
        return script if not thought or thought in script else self.thinking(script, thought)


# ---- the expected results ----

def check(outcome, text="", reasoning="", calls=()):
    got = [[name, parsed(arguments)] for name, arguments in outcome.calls]
    wanted = [[c["name"], json.loads(c["arguments"])] for c in calls]
    what = (outcome.error, outcome.reason, outcome.text.strip(), outcome.reasoning.strip(), got)
    if what != (None, "stop", text, reasoning, wanted):
        raise Wrong(f"error {what[0]}, {what[1]}, text {what[2]!r}, reasoning {what[3]!r}, calls {got}")


def parsed(arguments):
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def once(prompt, texts):
    places = [prompt.find(text) for text in texts]
    if -1 in places or places != sorted(places) or any(prompt.count(text) != 1 for text in texts):
        raise Wrong(f"not once, in order: {texts}, at {places}")


class Cells:
    """Each method is one cell. It raises NotPossible or Wrong."""

    def __init__(self, family, engine):
        self.family, self.engine = family, engine

    def run(self, script, **params):
        return self.engine.run(ASK, script, **self.family.asked, **params)

    def answer(self, messages, **params):
        answer = self.family.prompts.ask(self.family.name, messages, **params)
        if "error" in answer:
            raise Wrong(f"{answer['error']}: {answer['detail']}")
        return answer

    def ask(self, messages, **params):
        return self.answer(messages, **params)["prompt"]

    # thoughts
    def text(self):
        check(self.run(self.family.text()), TEXT)

    def thought(self):
        check(self.run(self.family.text(thought=THOUGHT)), TEXT, THOUGHT)

    def thought_after_a_line(self):
        script = self.family.text(thought=THOUGHT, before="\n")
        check(self.run(script, tools=TOOLS), TEXT, THOUGHT)

    def thought_with_tools(self):
        check(self.run(self.family.text(thought=THOUGHT), tools=TOOLS), TEXT, THOUGHT)

    def thought_and_call(self):
        check(self.run(self.family.calls(TEAL, thought=THOUGHT), tools=TOOLS), "", THOUGHT, [TEAL])

    def thought_and_format(self):
        check(self.run(self.family.text(SHOWN, THOUGHT), format=FORMAT), SHOWN, THOUGHT)

    # calls
    def own_form(self):
        if not self.family.has_calls:
            raise NotPossible("the template writes no calls")
        tool = of_family(LISTS, self.family.name, None)
        if tool:
            assert tool in self.family.source
            raise NotPossible(f"each answer is a list of calls, and `{tool}` is not a host's")
        shown, why = of_family(OURS, self.family.name, (None, None))
        if not self.family.native and why and shown in self.family.source:
            raise Ours(why)
        if not self.family.native or why:
            raise Wrong("calls are in our form" if not self.family.native else "calls are in the own form, after all")

    def call(self):
        check(self.run(self.family.calls(TEAL), tools=TOOLS), "", "", [TEAL])

    def two_calls(self):
        check(self.run(self.family.calls(TEAL, PINK), tools=TOOLS), "", "", [TEAL, PINK])

    def text_and_call(self):
        check(self.run(self.family.calls(TEAL, text=TEXT), tools=TOOLS), TEXT, "", [TEAL])

    def required(self):
        check(self.run(self.family.calls(TEAL), tools=TOOLS, tool_choice={"mode": "required"}), "", "", [TEAL])

    def named(self):
        choice = {"mode": "required", "names": ["clock"]}
        check(self.run(self.family.calls(HOUR), tools=TOOLS, tool_choice=choice), "", "", [HOUR])

    def none(self):
        """Checks that no mark of a call is in the text."""
        script = self.family.calls(TEAL)
        mark = re.search(r"^\W*[\w▁]*", script.split("lamp")[0].split("</think>")[-1].strip()).group()
        if len(mark) < 4 or '"' in mark:
            raise NotPossible("its calls begin as a text may")
        outcome = self.run(script, tools=TOOLS, tool_choice={"mode": "none"}, max_tokens=30)
        if outcome.error or outcome.calls or mark in outcome.text:
            raise Wrong(f"{mark!r} in {outcome.text!r}")

    def format(self):
        check(self.run(self.family.text(SHOWN), format=FORMAT), SHOWN)

    # the part that is in the prompt
    def order(self, order, **params):
        messages, system, others = test_turns.conversation(order)
        try:
            prompt = self.ask(messages, **params)
            once(prompt, system)
            once(prompt, others)
        except Wrong as fault:
            raise Wrong(f"{order}: {fault}") from None

    def system(self):
        self.order("su")
        self.order("su", tools=test_turns.TOOLS)

    def developer(self):
        """A developer message: for an engine it is a system message, beside `instructions`."""
        self.order("ssu")
        self.order("ssu", tools=test_turns.TOOLS)

    def twelve_orders(self):
        for order in test_turns.ORDERS.values():
            self.order(order, tools=test_turns.TOOLS)

    def results(self):
        one = [*ASK, said(tool_calls=[TEAL]), result(text="rzq1")]
        two = [*ASK, said(tool_calls=[TEAL, PINK]), result(text="rzq1"), result(2, "rzq2")]
        for messages, texts in ((one, ["teal", "rzq1"]), (two, ["teal", "pink", "rzq1", "rzq2"]),
                                ([*two, *user("uzq3")], ["teal", "pink", "rzq1", "rzq2", "uzq3"])):
            for tools in ({}, {"tools": TOOLS}):
                once(self.ask(messages, **tools), texts)

    def reasoning_back(self):
        for text in ([], ["xzq0"]):
            messages = [*ASK, said("".join(text), tool_calls=[TEAL], reasoning="tzq1"), result(text="rzq2")]
            shown = "tzq1" in self.family.own(messages, TOOLS, own=True)
            answer = self.answer(messages, tools=TOOLS)
            lost = "tzq1" not in answer["prompt"]
            once(answer["prompt"], ["tzq1"] * (not lost) + ["rzq2"])
            once(answer["prompt"], [*text, "rzq2"])  # the text may stand before the thought, as a separate message
            if lost and shown and answer["native"]:
                raise Wrong(f"the thought is lost: {messages}")
            if lost and not text:
                raise NotPossible("in our form of calls, the template drops thoughts before their results" if shown else
                                  "the template has no place for it")


# ---- the table ----

# The columns, with their cells.
COLUMNS = {
    "turns": ("system", "developer", "twelve_orders"),
    "text": ("text",), "format": ("format",),
    "thought": ("thought", "thought_after_a_line", "thought_with_tools", "thought_and_call", "thought_and_format"),
    "own form of calls": ("own_form",),
    "calls": ("call", "two_calls", "text_and_call", "required", "named"), "no calls": ("none",),
    "results": ("results",), "reasoning back": ("reasoning_back",),
}
BEGIN, END = "<!-- families: made by tests/contract/test_families.py -->", "<!-- end of families -->"


def row(cells):
    """{cell: ("yes" or "-" or "ours" or "fault", why)} of a family."""
    found = {}
    for cell in sum(COLUMNS.values(), ()):
        cells.engine.last = None
        try:
            getattr(cells, cell)()
            found[cell] = ("yes", None)
        except NotPossible as reason:
            found[cell] = ("ours" if isinstance(reason, Ours) else "-", str(reason))
        except Wrong as fault:
            said = cells.engine.last
            found[cell] = ("fault", f"{fault}; script {said!r}" if said else str(fault))
    return found


def in_words(found, names, notes):
    """Returns a column of a row: the faults, or "yes" if there are none, with the numbers of the notes on what is not
    possible."""
    faults = [name.replace("_", " ") for name in names if found[name][0] == "fault"]
    missing = [notes.setdefault(found[name][1], len(notes) + 1) for name in names if found[name][0] in ("-", "ours")]
    numbers = ", ".join(map(str, dict.fromkeys(missing)))
    word = "yes" if len(missing) < len(names) else found[names[0]][0]
    if faults:
        word = "**fault**" + (": " + ", ".join(faults) if len(names) > 1 else "")
    return f"{word} ({numbers})" if numbers else word


def table(rows):
    """The table's lines for the document."""
    notes = {}
    lines = ["| Template | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name, found in rows.items():
        lines.append("| " + " | ".join([name, *(in_words(found, names, notes) for names in COLUMNS.values())]) + " |")
    return [*lines, "", "Reasons:", "", *(f"{number}. {reason}" for reason, number in notes.items())]
