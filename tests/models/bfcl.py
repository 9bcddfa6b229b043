"""Asks the whole helper, and llama-server of the same release, BFCL's questions. See tests/models.sh.

BFCL's own checker decides whether a call is right. This script also counts calls that are in the text, and arguments that
the tool's schema does not allow.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import queue
import re
import signal
import sys
import threading
import time
import types
import urllib.request

import fetch

sys.path.insert(0, os.path.join(fetch.ROOT, "tests", "bench"))
from contenders import Proxy, Server, whole_frames

CATEGORIES = ("simple_python", "irrelevance", "multiple", "parallel")
SIDES = {"ours": "fm-proxy", "theirs": "llama-server"}
MAX_TOKENS = 256
SEVERAL_CALLS = 512  # tokens
BLOCK = 16  # questions for one side before it is the other side's turn
LOST = 2  # percentage points by which `auto` may be worse than `required`
ENDLESS = {"stop": ["\n" * 12]}  # ends answers of endless line breaks, which contain no call and would take most of the time


class Questions:
    """For each category: (id, messages, tools in OpenAI's form, how to check calls)."""

    def __init__(self):
        self.folder = fetch.questions()
        sys.path.insert(0, self.folder)
        # The checker needs a table of all models only for one fact: whether a dot in a function's name is sent as "_".
        config = types.ModuleType("bfcl_eval.constants.model_config")
        config.MODEL_CONFIG_MAPPING = {"any": types.SimpleNamespace(underscore_to_dot=True)}
        sys.modules[config.__name__] = config
        from bfcl_eval.constants.enums import Language
        from bfcl_eval.constants.type_mappings import GORILLA_TO_OPENAPI
        from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker
        self.types = GORILLA_TO_OPENAPI
        self.checker = lambda *facts: ast_checker(*facts[:3], Language.PYTHON, facts[3], "any")["valid"]

    def lines(self, *path):
        with open(os.path.join(self.folder, "bfcl_eval", "data", *path), encoding="utf-8") as source:
            return [json.loads(line) for line in source]

    def of(self, category, number):
        name = f"BFCL_v4_{category}.json"
        asked = self.lines(name)
        answers = {} if category == "irrelevance" else {
            line["id"]: line["ground_truth"] for line in self.lines("possible_answer", name)}
        step = max(1, len(asked) / number) if number else 1
        for i in range(min(number or len(asked), len(asked))):
            line = asked[int(i * step)]
            tools = [{"type": "function", "function": {
                "name": tool["name"].replace(".", "_"), "description": tool["description"],
                "parameters": self.schema(tool["parameters"])}} for tool in line["function"]]
            yield line, tools, answers.get(line["id"])

    def schema(self, value):
        out = {key: value[key] for key in ("description", "enum", "required") if key in value}
        out["type"] = self.types[value["type"]]
        if "properties" in value:
            out["properties"] = {name: self.schema(inner) for name, inner in value["properties"].items()}
        if "items" in value:
            out["items"] = self.schema(value["items"])
        return out

    def right(self, category, line, calls, answer):
        if category == "irrelevance":
            return not calls
        if not calls or not all(isinstance(arguments, dict) for _, arguments in calls):
            return False
        return self.checker(line["function"], [{name: arguments} for name, arguments in calls], answer, category)


CALL = re.compile(r'\{\s*"name"\s*:\s*"([^"]*)"')
TYPES = {"integer": int, "number": (int, float), "string": str, "boolean": bool, "array": list, "object": dict}


def fits(value, schema):
    """Whether a value is valid by a schema that Questions.schema makes."""
    if not isinstance(value, TYPES[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean"):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, list):
        return all(fits(item, schema["items"]) for item in value) if "items" in schema else True
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return all(name in value for name in schema.get("required", ())) and all(
            fits(item, known[name]) for name, item in value.items() if name in known)
    return True


def is_call(value, names):
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    return isinstance(value, dict) and value.get("name") in names and any(
        isinstance(value.get(key), dict) for key in ("arguments", "parameters"))


def written_calls(text, names):
    """The calls of these tools in a text: (name, arguments). Of a call that is no valid JSON the arguments are None."""
    at = text.find("{")
    while at >= 0:
        end = at + 1
        begun = CALL.match(text, at)
        try:
            value, after = json.JSONDecoder().raw_decode(text, at)
            if is_call(value, names):
                value, end = value.get("function", value), after
                yield value["name"], value.get("arguments", value.get("parameters"))
        except ValueError:
            if begun and begun[1] in names:
                yield begun[1], None
        at = text.find("{", end)


def parsed(arguments):
    try:
        return json.loads(arguments)
    except ValueError:
        return None


class Ours:
    """The whole helper. Answers come in any order."""

    has_text = False  # whether an answer to tool_choice `required` may be text

    def __init__(self, model, streams):
        self.proxy = Proxy(os.path.join(fetch.ROOT, "build", "bin"), model, SLOTS=streams)
        self.numbers, self.waiting, self.lock = itertools.count(1), {}, threading.Lock()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        pipe = self.proxy.pipe
        while not pipe.closed:
            pipe.read()
            if whole_frames(pipe.bytes()):
                for _, message in self.proxy.messages():
                    self.waiting.pop(message["id"]).put(message["result"])
        for answer in self.waiting.values():
            answer.put({"error": "fm-proxy has ended"})

    def choice(self, body):
        with self.lock:
            number, answer = next(self.numbers), queue.SimpleQueue()
            self.waiting[number] = answer
            self.proxy.notify("chat.completions.create", body, id=number)
        result = answer.get()
        if not result.get("ok"):  # the call was cancelled, because this run was ended
            raise SystemExit(f"models: {result}")
        return result["completion"]["choices"][0]

    def close(self):
        self.proxy.close()


class Theirs:
    """llama-server."""

    has_text = True

    def __init__(self, model, streams):
        program = os.path.join(fetch.ROOT, "build", "deps", "llama-server", "bin", "llama-server")
        self.server = Server(program, model, "--jinja", "-np", str(streams), "-c", str(8192 * streams))
        self.close = self.server.close

    def choice(self, body):
        request = urllib.request.Request(f"http://127.0.0.1:{self.server.port}/v1/chat/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=1800) as response:
            return json.load(response)["choices"][0]


def ask(questions, asked, category, choice, question):
    line, tools, answer = question
    begun = time.time()
    has_text = choice == "auto" or asked.has_text
    said = asked.choice({"messages": line["question"][0], "tools": tools, "tool_choice": choice, "temperature": 0,
                         "max_tokens": SEVERAL_CALLS if category == "parallel" else MAX_TOKENS, **(ENDLESS if has_text else {})})
    message = said["message"]
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
    calls = [(call["function"]["name"], parsed(call["function"]["arguments"])) for call in message.get("tool_calls") or ()]
    whole = calls[:-1] if said["finish_reason"] == "length" else calls  # the limit has cut the last call
    return {
        "right": questions.right(category, line, calls, answer),
        "as_text": any(arguments is not None for _, arguments in written_calls(message.get("content") or "", schemas)),
        "calls": len(whole),
        "valid": sum(name in schemas and fits(arguments, schemas[name]) for name, arguments in whole),
        "finish": said["finish_reason"],
        "seconds": round(time.time() - begun, 2),
        "message": message,
    }


def share(rows, part, whole):
    total = sum(whole(row) for row in rows)
    return 100 * sum(part(row) for row in rows) / total if total else None


def as_written(rows, questions):
    """The same answers, if a program read the calls in their texts."""
    of = {(category, question[0]["id"]): question for category in CATEGORIES for question in questions.of(category, None)}
    for row in rows:
        line, tools, answer = of[row["category"], row["id"]]
        names = [tool["function"]["name"] for tool in tools]
        calls = list(written_calls(row["message"].get("content") or "", names)) if not row["calls"] else None
        yield {**row, "right": questions.right(row["category"], line, calls, answer)} if calls else row


def right(rows, category=None):
    return share([row for row in rows if category in (None, row["category"])], lambda row: row["right"], lambda row: 1)


def percent(value):
    return "" if value is None else f"{value:.1f}%"


def read_texts(rows, questions):
    """The rows, and those of llama-server once more, as a side of their own: with the calls that its texts have."""
    theirs = [{**row, "side": "written"} for row in rows if row["side"] == "theirs"]
    return rows + list(as_written(theirs, questions))


def table(rows):
    """A line for each side and tool choice."""
    counted = "calls as text | arguments valid | cut by the limit"
    out = [f"| | `tool_choice` | {' | '.join(CATEGORIES)} | {counted} |", "|---" * 9 + "|"]
    for side, name in {**SIDES, "written": "llama-server, the calls in its text counted"}.items():
        for choice in ("auto", "required"):
            mine = [row for row in rows if (row["side"], row["choice"]) == (side, choice)]
            if mine:
                cells = [percent(right(mine, category)) for category in CATEGORIES]
                cells += [f"{sum(row['as_text'] for row in mine)} of {len(mine)}",
                          percent(share(mine, lambda row: row["valid"], lambda row: row["calls"])),
                          f"{sum(row['finish'] == 'length' for row in mine)}"]
                out.append(f"| {name} | {choice} | {' | '.join(cells)} |")
    return "\n".join(out)


def faults(rows):
    """Our side's faults, one per line."""
    of = lambda side, choice: [row for row in rows if (row["side"], row["choice"]) == (side, choice)]
    ours = [row for row in rows if row["side"] == "ours"]
    if any(row["as_text"] for row in ours):
        yield f"{sum(row['as_text'] for row in ours)} calls came out as text"
    if any(row["valid"] < row["calls"] for row in ours):
        yield f"{sum(row['calls'] - row['valid'] for row in ours)} calls have arguments that their schema does not allow"
    for category in CATEGORIES:
        auto, required = right(of("ours", "auto"), category), right(of("ours", "required"), category)
        if None not in (auto, required) and auto < required - LOST:
            yield f"{category}: {auto:.1f}% right with auto, {required:.1f}% with required"
    # a server that reads no call out of a text is always right here, so its texts count
    mine, theirs = right(of("ours", "auto"), "irrelevance"), right(of("written", "auto"), "irrelevance")
    if None not in (mine, theirs) and mine < theirs:
        yield f"irrelevance: {mine:.1f}% right, and {theirs:.1f}% with llama-server, the calls in its text counted"


def key_of(row):
    return tuple(row[name] for name in ("model", "side", "category", "choice", "id"))


def read(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as source:
        return {key_of(row): row for row in map(json.loads, source)}


class Run:
    """Asks the questions that have no answer in the file yet."""

    def __init__(self, options, model, questions, rows, out):
        self.options, self.model, self.questions, self.rows, self.out = options, model, questions, rows, out
        self.sides, self.lock = {}, threading.Lock()

    def missing(self, side, category, question):
        """The missing rows of one question. The second request has the same prompt as the first one, so the prompt is cached."""
        for choice in ("auto",) if category == "irrelevance" else ("auto", "required"):
            row = {"model": os.path.basename(self.model), "side": side, "category": category, "choice": choice,
                   "id": question[0]["id"]}
            if key_of(row) not in self.rows:
                yield row

    def ask(self, side, category, question):
        for row in self.missing(side, category, question):
            row.update(ask(self.questions, self.sides[side], category, row["choice"], question))
            with self.lock:
                self.rows[key_of(row)] = row
                print(json.dumps(row), file=self.out, flush=True)

    def block(self, side, category, block):
        block = [question for question in block if any(self.missing(side, category, question))]
        if block and side not in self.sides:
            self.sides[side] = (Ours if side == "ours" else Theirs)(self.model, self.options.streams)
        begun = time.time()
        with concurrent.futures.ThreadPoolExecutor(self.options.streams) as pool:
            list(pool.map(lambda question: self.ask(side, category, question), block))
        if block:
            print(f"models: {SIDES[side]}, {category}, to {block[-1][0]['id']}: "
                  f"{(time.time() - begun) / len(block):.1f} s a question", file=sys.stderr, flush=True)

    def all(self):
        for category in CATEGORIES:
            questions = list(self.questions.of(category, self.options.questions))
            # so that an interrupted run has asked both sides the same number of questions
            for at in range(0, len(questions), BLOCK):
                for side in SIDES if self.options.only is None else (self.options.only,):
                    self.block(side, category, questions[at:at + BLOCK])
        for side in self.sides.values():
            side.close()


def main():
    parser = argparse.ArgumentParser()
    fetch.add_options(parser)
    parser.add_argument("--questions", type=int)
    parser.add_argument("--only", choices=SIDES)
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--out", default=os.path.join(fetch.FOLDER, "bfcl.jsonl"))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that its child processes end too
    model = fetch.chosen(options)
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    rows, questions = read(options.out), Questions()
    if not options.table:
        with open(options.out, "a", encoding="utf-8") as out:
            Run(options, model, questions, rows, out).all()
    mine = read_texts([row for row in rows.values() if row["model"] == os.path.basename(model)], questions)
    print(table(mine))
    lost = list(faults(mine))
    for line in lost:
        print(f"\nNot as it must be: {line}.")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
