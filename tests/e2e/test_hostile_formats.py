"""Tests formats that are meant to do harm, through the whole helper and on the real model. Each is refused in time, and does not
affect other requests.

Skipped, with the reason, if llama's engine, llguidance or the model is missing.
"""

import glob
import json
import os
import queue
import sys
import time

import wire
from wire import SANITIZED, SLOW, HelperTest, memory_kib

MODELS = os.environ.get("FM_MODELS", os.path.join(wire.BIN, "..", "models"))
FILES = sorted(glob.glob(os.path.join(MODELS, "*.gguf")))
ENGINE = os.path.join(wire.BIN, "fm-engine-llama")

REFUSED_WITHIN = 0.5  # seconds
PONG_WITHIN = 500 if SANITIZED else 150  # ms; with a sanitizer, reading a body of 9 MB is slow, and pings wait for it
MEMORY = 32 * 1024  # KiB that the allocator may keep


def by_schema(schema):
    return {"text": {"format": {"type": "json_schema", "name": "n", "strict": True, "schema": schema}}}


def by_member(schema):
    return by_schema({"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False})


def by_patterns(*patterns, **more):
    return by_member({"type": "string", "allOf": [{"pattern": pattern} for pattern in patterns], **more})


def by_grammar(syntax, definition):
    return {"fm": {"grammar": {"syntax": syntax, "definition": definition}}}


GROUPS = 60_000
HOSTILE = {
    "groups, a pattern": by_patterns("(" * GROUPS + "a" + ")" * GROUPS),
    "groups, a regular expression": by_grammar("regex", "(" * GROUPS + "a" + ")" * GROUPS),
    "groups, Lark": by_grammar("lark", "start: " + "(" * GROUPS + '"a"' + ")" * GROUPS),
    "references in a ring": by_schema({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"},
                                                                       "b": {"$ref": "#/$defs/a"}}}),
    "an object that holds itself": by_schema({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"],
                                              "additionalProperties": False}),
    "a rule of itself": by_grammar("lark", "start: start"),
    "a pattern of repeated repeats": by_patterns("^((((a{1,99}){1,99}){1,99}){1,99}){1,99}$"),
    "a pattern that counts far": by_patterns("^[a-z]{0,100000}$"),
    "a pattern and a length": by_patterns("^(a|b)*a(a|b){200}$", maxLength=400),
    "patterns with an exponential meet": by_patterns("^.*a.{20}$", "^.*b.{21}$", "^.*c.{22}$"),
    "patterns of many primes": by_patterns(*(f"^(a{{{prime}}})*$" for prime in (7, 11, 13, 17, 19, 23, 29))),
    "alternatives with many states": by_grammar("regex", "|".join(f"(.*{chr(97 + i % 26)}.{{{20 + i}}})" for i in range(200))),
    "9 MB of enums": by_member({"enum": [f"{i:07}" + "x" * 240 for i in range(36_000)]}),
    "depth": by_schema(json.loads('{"type":"array","items":' * 40 + '{"type":"null"}' + "}" * 40)),
}

# These patterns make a backtracking matcher explode, but are easy for a matcher with derivatives, so they must work.
HARMLESS = {
    "^(a+)+$": lambda text: set(text) == {"a"},
    "^(a|aa)+$": lambda text: set(text) == {"a"},
    "^(([a-z]+)+)+((x?){50}){50}$": lambda text: text.isalpha() and text.islower(),
}


class Hostile(HelperTest):
    @classmethod
    def setUpClass(cls):
        cls.shared = wire.Helper("--model", FILES[0], engine="llama")
        cls.create_now({"text": {"format": {"type": "json_object"}}})  # now the model and the vocabulary for grammars are loaded

    @classmethod
    def tearDownClass(cls):
        assert cls.shared.close() == 0

    @classmethod
    def create_now(cls, params):
        """Returns the result of a request, how long it took in s, and the slowest pong during this time in ms."""
        start = time.monotonic()
        id = cls.shared.start("responses.create", {"input": "hi", "max_output_tokens": 20, **params})
        slowest = cls.shared.ping_ms()
        while True:
            try:
                answer = cls.shared.receive_where(lambda message: message.get("id") == id, timeout=0.001)
                return answer["result"], time.monotonic() - start, slowest
            except queue.Empty:
                slowest = max(slowest, cls.shared.ping_ms())

    def memory(self):
        return {name: memory_kib(pid, "VmRSS")
                for name, pid in (("front", self.shared.pid), ("engine", self.shared.engine_pid()))}

    def test_refused_in_time(self):
        engine = self.shared.engine_pid()
        before = self.memory()
        for name, params in HOSTILE.items():
            with self.subTest(name):
                result, seconds, pong = self.create_now(params)
                error = self.assert_error(result, "INVALID_REQUEST")
                self.assertEqual(error["openai"]["status"], 400)
                self.assertRegex(error["openai"]["param"], r"^(text\.format|fm\.grammar\.definition)")
                self.assertNotRegex(error["detail"], r"fuel|limits\.|Regex|regex is empty|lexer|\n", "llguidance's words")
                self.assert_soon(seconds, REFUSED_WITHIN * SLOW)
                self.assert_soon(pong, PONG_WITHIN * SLOW)
                if "FM_FIGURES" in os.environ:
                    print(f"{name}: {seconds * 1000:.0f} ms, slowest pong {pong:.1f} ms, {error['openai']['param']}")
        after = self.memory()
        self.assertEqual(self.shared.engine_pid(), engine, "nobody died of it")
        if not os.environ.get("FM_SANITIZE"):
            for process, kib in after.items():
                self.assertLess(kib - before[process], MEMORY, process)
        if "FM_FIGURES" in os.environ:
            print(f"memory in KiB: {before} before, {after} after")

    def test_obeyed_where_it_is_cheap(self):
        for pattern, fits in HARMLESS.items():
            with self.subTest(pattern):
                result, _, pong = self.create_now({**by_patterns(pattern, maxLength=12), "max_output_tokens": 40})
                self.assertTrue(result["ok"], result)
                self.assertEqual(result["response"]["status"], "completed")
                value = json.loads(result["response"]["output"][0]["content"][0]["text"])["a"]
                self.assertTrue(len(value) <= 12 and fits(value), value)
                self.assert_soon(pong, PONG_WITHIN * SLOW)


def skip_without_formats():
    """Ends this process with status 77 if there is no engine that could refuse formats."""
    missing = [file for file in (ENGINE, FILES[0] if FILES else MODELS + "/*.gguf") if not os.path.exists(file)]
    if missing:
        print(f"skipped: there is no {missing[0]}")
        sys.exit(77)
    helper = wire.Helper("--model", FILES[0], engine="llama")
    result = helper.call("responses.create", {"input": "hi", "max_output_tokens": 1, **by_grammar("regex", "a")},
                         timeout=60 * SLOW)
    helper.close()
    if not result["ok"] and result["error"]["openai"]["param"] == "fm.grammar":
        print("skipped: the engine was built without llguidance")
        sys.exit(77)


if __name__ == "__main__":
    skip_without_formats()
    wire.main()
