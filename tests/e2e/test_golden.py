"""
Replays the recorded exchanges of PROTOCOL.md and ENGINE.md: protocol/golden/*.jsonl, one message a line, {"to": ...} or {"from":
...}. Values that differ from run to run (ids, times, process ids) are replaced by a fixed word on both sides. `test_golden.py
--record` writes the files again; look at the difference before you keep it.
"""

import json
import os
import re
import sys
import tempfile

import foreign_engine
import wire
from wire import Helper, HelperTest, script

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
GOLDEN = os.path.join(ROOT, "protocol", "golden")

HOST = [
    ("health.ping", None, "id"),
    ("capabilities.get", {}, "id"),
    ("models.list", {}, "id"),
    ("responses.create", {"input": "Hello there", "stream": True, "max_output_tokens": 16}, "id"),
    ("responses.create", {"input": "one two three", "max_output_tokens": 2}, "id"),
    ("chat.completions.create", {"messages": [{"role": "user", "content": "Hi"}], "stream": True,
                                 "stream_options": {"include_usage": True}}, "id"),
    ("completions.create", {"prompt": "Once upon a time", "stream": True, "max_tokens": 2, "echo": True}, "id"),
    ("responses.input_tokens", {"input": "Hello there", "instructions": "Be brief."}, "id"),
    ("responses.create", {"input": "Hi", "temperature": 3}, "id"),
    ("responses.create", {"input": script("part", {"error": "it broke"}), "stream": True}, "id"),
    ("responses.create", {"input": script({"prefill_ms": 60000}), "stream": True, "fm": {"timeout_ms": 50}}, "id"),
    ("responses.cancel", {"id": "resp_none"}, "id"),
    ("embeddings.create", {"input": ["Hello there", "Hi"], "dimensions": 2}, "id"),
    ("decisions.create", {"input": "Yes, please.", "questions": [
        {"type": "predicate", "name": "wanted", "instructions": "Is it wanted?"},
        {"type": "choice", "instructions": "What is it?", "choices": [{"value": "please"}, {"value": "thanks"}]}]}, "id"),
    ("responses.create", {"input": "Hello there", "generate": False}, "id"),
    ("models.retrieve", {"id": "fake"}, "id"),
    ("no.such.method", {}, "id"),
    ("process.shutdown", {}, "id"),
]

ENGINE = [
    ("engine.initialize", {"protocol_version": 1, "log_level": "off"}, "id"),
    ("engine.load", {"model": None}, "id"),
    ("job.start", {"job": 1, "messages": [{"role": "user", "content": "Hello there"}], "max_tokens": 16}, "finished"),
    ("job.start", {"job": 2, "messages": [{"role": "user", "content": "a b c"}], "max_tokens": 2}, "finished"),
    ("job.start", {"job": 3, "messages": [{"role": "user", "content": script({"error": "it broke"})}]}, "finished"),
    ("job.start", {"job": 4, "messages": []}, "finished"),
    ("job.start", {"job": 5, "embed": ["Hello there", "Hi"]}, "finished"),
    ("job.start", {"job": 6, "messages": [{"role": "user", "content": "Hello there"}], "max_tokens": 0}, "finished"),
    ("job.start", {"job": 7, "prompt": "Once upon a time", "max_tokens": 2}, "finished"),
    ("job.start", {"job": 8, "messages": [{"role": "user", "content": "Yes"}],
                   "questions": [{"text": "Is it so?", "choices": ["Yes", "No"]}]}, "finished"),
    ("job.start", {"job": 9, "messages": [{"role": "user", "content": "Hello there"}], "generate": False}, "finished"),
]

VOLATILE = {"pid", "uptime_ms", "created_at", "completed_at", "created", "version", "landlock",
            "prefill_ms", "decode_ms"}


def normal(value, key=None):
    if isinstance(value, dict):
        return {k: normal(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [normal(v) for v in value]
    if key in VOLATILE and value is not None:
        return "0" if isinstance(value, str) else 0
    if key == "devices":
        return "denied"
    if isinstance(value, str):
        return re.sub(r"\b(resp|msg|chatcmpl|cmpl)([_-])[0-9a-f]{32}", r"\1\g<2>0", value)
    return value


def converse(helper, conversation):
    """Runs the conversation; yields ("to" or "from", message)."""
    for number, (method, params, until) in enumerate(conversation, 1):
        message = {"jsonrpc": "2.0", "method": method}
        if until == "id":
            message["id"] = number
        if params is not None:
            message["params"] = params
        helper.send_raw(wire.frame(message))
        yield "to", message
        while True:
            answer = helper.receive()
            yield "from", normal(answer)
            if answer.get("id") == number if until == "id" else answer.get("method") == "job.finished":
                break


CONVERSATIONS = {
    "host": (dict(program="fm-proxy"), HOST),
    "engine": (dict(program="fm-engine-fake"), ENGINE),
}


class Golden(HelperTest):
    maxDiff = None

    def replay(self, name):
        arguments, conversation = CONVERSATIONS[name]
        with open(os.path.join(GOLDEN, name + ".jsonl")) as f:
            recorded = [json.loads(line) for line in f]
        seen = [{direction: message} for direction, message in converse(self.helper(**arguments), conversation)]
        for expected, actual in zip(recorded, seen):
            self.assertEqual(expected, actual)
        self.assertEqual(len(recorded), len(seen))

    def test_host(self):
        self.replay("host")

    def test_engine(self):
        self.replay("engine")


class Document(HelperTest):
    """PROTOCOL.md shows the answer of capabilities.get by a helper with the model that the set-up downloads."""

    maxDiff = None

    def test_capabilities(self):
        with open(os.path.join(ROOT, "protocol", "PROTOCOL.md"), encoding="utf-8") as f:
            shown = re.search(r"^### capabilities\.get\n\n```\n(.*?)```", f.read(), re.M | re.S).group(1)
        with open(os.path.join(ROOT, "packaging", "pins"), encoding="utf-8") as f:
            file, = (line.split()[-1] for line in f if line.startswith("model-gguf "))
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        foreign_engine.borrow(os.path.join(wire.BIN, "fm-engine-fake"), folder.name, "llama")
        with open(os.path.join(folder.name, file), "wb") as f:
            f.write(b"GGUF")
        helper = self.helper("--engine-dir", folder.name, "--models-dir", folder.name, engine="llama")
        self.assertEqual(json.loads(shown), helper.call("capabilities.get"))
        self.assertEqual(helper.call("models.list")["data"][0]["id"], json.loads(shown)["models"][0]["id"])


def record():
    for name, (arguments, conversation) in CONVERSATIONS.items():
        helper = Helper(**arguments)
        with open(os.path.join(GOLDEN, name + ".jsonl"), "w") as f:
            for direction, message in converse(helper, conversation):
                f.write(json.dumps({direction: message}, ensure_ascii=False) + "\n")
        helper.close()


if __name__ == "__main__":
    if "--record" in sys.argv:
        record()
    else:
        wire.main()
