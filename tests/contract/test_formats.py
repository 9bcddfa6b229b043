"""The llama engine's formats (ENGINE.md, Formats): the answer has the requested format, whatever the model prefers.

    test_formats.py PROGRAM MODEL

Exit status 77: skipped, because MODEL is not there, or the engine was built without llguidance.
"""

import json
import math
import os
import re
import sys
import tempfile
import time
import unittest

from engine import SLOW, WAIT, Engine, TimedTest, shared_engine, skip_without, user

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import gguf  # noqa: E402

PROGRAM = None
MODEL = None  # gguf.shallow

PROMPT = user("Tell me about a cat called Tom.")
CAT = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "kind": {"enum": ["cat", "dog"]},
                                        "age": {"type": "integer", "minimum": 0, "maximum": 30},
                                        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3}},
       "required": ["name", "kind", "age", "tags"], "additionalProperties": False}


def by_schema(schema, strict=True):
    return {"type": "json_schema", "schema": schema, "strict": strict}


def by_grammar(syntax, definition):
    return {"type": "grammar", "syntax": syntax, "definition": definition}


class Case(TimedTest):
    """One engine for all tests: whatever a format does, the next job must not be affected."""

    @classmethod
    def setUpClass(cls):
        cls.engine = shared_engine(cls, PROGRAM, MODEL)

    def run_format(self, format, **params):
        return self.engine.run(PROMPT, **{"max_tokens": 300, "temperature": 0, **params}, format=format)

    def assert_refused(self, format, param, *words):
        start = time.monotonic()
        outcome = self.run_format(format)
        self.assert_soon(time.monotonic() - start, 0.5 * SLOW, "tests/README.md promises half a second")
        self.assertEqual((outcome.names, outcome.reason), (["job.finished"], "error"))
        self.assertEqual((outcome.error["code"], outcome.error.get("param")), ("INVALID_REQUEST", param), outcome.error)
        for word in words:
            self.assertIn(word, outcome.error["detail"])


class Schemas(Case):
    def assert_cat(self, outcome):
        self.assertEqual(outcome.reason, "stop", outcome.text)
        cat = json.loads(outcome.text)
        self.assertEqual(list(cat), list(CAT["properties"]), "the keys come in the schema's order")
        self.assertEqual(json.dumps(cat, separators=(",", ":"), ensure_ascii=False), outcome.text, "compact")
        self.assertLessEqual(len(cat["name"]), 12)
        self.assertIn(cat["kind"], ["cat", "dog"])
        self.assertTrue(isinstance(cat["age"], int) and 0 <= cat["age"] <= 30)
        self.assertTrue(set(cat["tags"]) <= {"a", "b"} and len(cat["tags"]) <= 3)
        return outcome.text

    def test_whatever_is_drawn(self):
        texts = {self.assert_cat(self.run_format(by_schema(CAT), temperature=2, seed=seed)) for seed in range(6)}
        self.assertGreater(len(texts), 3)

    def test_greedy_and_seeds_repeat(self):
        for params in ({"temperature": 0}, {"temperature": 1, "seed": 7}):
            texts = {self.assert_cat(self.run_format(by_schema(CAT), **params)) for _ in range(2)}
            self.assertEqual(len(texts), 1)

    def test_the_report(self):
        outcome = self.run_format(by_schema(CAT))
        enforced = ["additionalProperties", "enum", "items", "maxItems", "maxLength", "maximum", "minimum", "properties",
                    "required", "type"]
        self.assertEqual(outcome.report, {"enforced": enforced, "checked": []})
        self.assertIsNone(outcome.schema_error)

    def test_token_limit(self):
        """Each cut is reported, except after the last token."""
        whole = self.run_format(by_schema(CAT))
        tokens = whole.usage["output_tokens"]
        for limit in (1, tokens // 2, tokens - 1):
            outcome = self.run_format(by_schema(CAT), max_tokens=limit)
            self.assertEqual(outcome.reason, "length")
            self.assertTrue(whole.text.startswith(outcome.text) and outcome.text != whole.text)
            self.assertEqual(outcome.usage["output_tokens"], limit)
        self.assertEqual(self.run_format(by_schema(CAT), max_tokens=tokens).reason, "stop")

    def test_forced_text(self):
        """Forced text comes at once, as a whole, and its tokens are counted."""
        text = "It was a dark and stormy night; the rain fell in torrents. " * 12
        outcome = self.run_format(by_schema({"const": text}))
        self.assertEqual((outcome.reason, json.loads(outcome.text)), ("stop", text))
        free = self.engine.run(user(text + text), max_tokens=1)
        self.assertGreater(outcome.usage["output_tokens"], free.accepted // 3)

    def test_no_room_for_forced_text(self):
        """The text is longer than the context: it is cut at the end of the context."""
        engine = Engine(PROGRAM, {"FM_ENGINE_LLAMA_CTX": "300"})
        self.addCleanup(engine.close)
        engine.initialize()
        engine.load(MODEL)
        text = by_schema({"const": "It was a dark and stormy night. " * 90})
        outcome = engine.run(PROMPT, temperature=0, max_tokens=100_000, format=text)
        self.assertEqual(outcome.reason, "length", outcome.error)
        self.assertEqual(sum(outcome.usage[key] for key in ("input_tokens", "output_tokens")), 300)

    def test_stop_strings(self):
        """The text ends where a stop string begins, also in forced text, and is reported as cut; a whole text is not."""
        const = by_schema({"const": "red green blue"})
        loose = by_schema({"const": "red green blue", "not": {"const": 1}}, strict=False)
        for format, stop, text in ((const, ["green"], '"red '), (const, ["d g"], '"re'), (loose, ["blue"], '"red green '),
                                   (const, ['"'], ""), (const, ['e"'], '"red green blu')):
            with self.subTest(str((format, stop))):
                outcome = self.run_format(format, stop=stop)
                self.assertEqual((outcome.reason, outcome.text), ("stop", text))
                self.assertIn("stop string", outcome.schema_error)
        outcome = self.run_format(loose, stop=["yellow", 'blue"]'])
        self.assertEqual((json.loads(outcome.text), outcome.schema_error), ("red green blue", None))
        outcome = self.run_format(by_schema(CAT), stop=[',"age"'])
        self.assertEqual((outcome.reason, list(json.loads(outcome.text + "}"))), ("stop", ["name", "kind"]))
        outcome = self.run_format(by_schema(CAT), stop=["}"], logprobs=1)
        self.assertEqual(list(json.loads(outcome.text + "}")), list(CAT["properties"]))
        outcome = self.run_format({"type": "json_object"}, stop=["{"])
        self.assertEqual((outcome.reason, outcome.text, outcome.schema_error), ("stop", "", None))
        outcome = self.run_format(by_grammar("lark", 'start: "one two three"'), stop=["two"])
        self.assertEqual((outcome.reason, outcome.text), ("stop", "one "))

    def test_not_strict(self):
        schema = {"type": "array", "items": {"enum": ["a"]}, "minItems": 2, "maxItems": 2, "uniqueItems": True}
        self.assert_refused(by_schema(schema), "format.schema.uniqueItems")
        outcome = self.run_format(by_schema(schema, strict=False))
        self.assertEqual(outcome.text, '["a","a"]')
        self.assertEqual(outcome.report["checked"], ["uniqueItems"])
        self.assertIn("uniqueItems", outcome.schema_error)
        self.assertNotIn("a", re.findall(r'"(.*?)"', outcome.schema_error), "the text itself is not told")
        schema["items"] = {"enum": ["a", "b"]}
        schema["prefixItems"] = [{"const": "b"}]
        schema["not"] = {"type": "object"}
        outcome = self.run_format(by_schema(schema, strict=False))
        self.assertEqual(json.loads(outcome.text)[0], "b")
        self.assertEqual(outcome.schema_error is None, json.loads(outcome.text)[1] == "a")

    def test_more_keys_than_allowed(self):
        """A past bug: an answer had two required keys although one was the maximum, and the report called the answer valid."""
        pair = {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["a", "b"],
                "maxProperties": 1, "additionalProperties": False}
        for strict in (True, False):
            self.assert_refused(by_schema(pair, strict), "format.schema.maxProperties", "maxProperties", "require fewer")
            self.assert_refused(by_schema({"type": "array", "items": pair, "minItems": 1}, strict), "format.schema")
            whole = {"type": "object", "properties": {"o": pair, "n": {"const": 3}}, "additionalProperties": False}
            self.assert_refused(by_schema({**whole, "required": ["o"]}, strict), "format.schema.properties.o.maxProperties")
            outcome = self.run_format(by_schema({**whole, "required": ["n"]}, strict))
            self.assertEqual((outcome.text, outcome.report["checked"]), ('{"n":3}', []))
            self.assertEqual(self.run_format(by_schema({"anyOf": [pair, {"const": 4}]}, strict)).text, "4")

    def test_a_check_that_does_not_end(self):
        """The validator builds such a schema again and again: the answer reports it, and the engine ends because of it."""
        chain = {f"a{i}": {"anyOf": [{"not": {"$ref": f"#/$defs/a{i + 1}"}}] * 2} for i in range(40)}
        schema = {"const": 1, "not": {"$ref": "#/$defs/a0"}, "$defs": {**chain, "a40": {"const": 2}}}
        engine = Engine(PROGRAM, {"FM_ENGINE_LLAMA_CTX": "1024"})
        self.addCleanup(engine.close)
        engine.initialize()
        engine.load(MODEL)
        outcome = engine.run(PROMPT, temperature=0, format=by_schema(schema, strict=False))
        self.assertEqual((outcome.reason, outcome.text), ("stop", "1"))
        self.assertIn("could not be checked in time", outcome.schema_error)
        self.assertEqual(engine.wait_exit(WAIT)[0], 71)

    def test_odd_annotations_are_no_error(self):
        schema = {"const": {"title": "x"}, "title": None, "$comment": 1, "uniqueItems": True}
        self.assertIsNone(self.run_format(by_schema(schema, strict=False)).schema_error)

    def test_any_object(self):
        outcome = self.run_format({"type": "json_object"}, max_tokens=40)
        self.assertEqual(outcome.text[0], "{")
        if outcome.reason == "stop":
            self.assertIsInstance(json.loads(outcome.text), dict)
        else:
            self.assertEqual(outcome.reason, "length")

    def test_an_abort(self):
        """An aborted job ends within the time that the front waits, also in forced text and in a string that may not end yet."""
        for schema in ({"type": "string", "minLength": 2000}, {"type": "array", "items": {"type": "number"}, "minItems": 5000},
                       {"const": "It was a dark and stormy night. " * 500}):
            job = self.engine.start(PROMPT, temperature=1, format=by_schema(schema))
            aborted = False
            for name, params in self.engine.events(job):
                if name in ("job.delta", "job.progress") and not aborted:
                    self.engine.notify("job.abort", {"job": job})
                    aborted, start = True, time.monotonic()
            self.assertIn(params["reason"], ("aborted", "length"))
            self.assert_soon(time.monotonic() - start, 0.75 * SLOW)

    def test_free_text_after_it(self):
        before = self.engine.run(PROMPT, max_tokens=12, temperature=0).text
        self.run_format(by_schema(CAT))
        self.assertEqual(self.engine.run(PROMPT, max_tokens=12, temperature=0).text, before)


def engine_with(test, pairs):
    """An engine that has loaded a tiny model with this metadata."""
    engine = Engine(PROGRAM)
    test.addCleanup(engine.close)
    engine.initialize()
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        file.write(gguf.tiny(pairs))
        file.flush()
        test.assertTrue(engine.load(file.name)[0]["ok"])
    return engine


class WhiteSpace(TimedTest):
    """A past bug: a model that writes a space before each part of its JSON drew tokens with another beginning where no space is
    allowed."""

    def test_a_token_means_its_text(self):
        names = gguf.byte_tokens()
        spaced = names.index("ab")
        names[spaced] = names[ord(" ")] + "a"
        pairs = [gguf.pair(key, kind, (gguf.STRING, names) if key == "tokenizer.ggml.tokens" else content)
                 for key, kind, content in gguf.tiny_pairs()]
        engine = engine_with(self, pairs)
        likes = [[spaced, 100], [ord("b"), 50], [ord(" "), 60]]
        for pattern, text, more in (
                ("[ab]{4}", "aaaa", []),
                ("( a){3}", " a a a", []),
                ("[bc]{4}", "bbbb", []),
                ("(a| b){3}", " b b b", []),  # a space is allowed here, so the space counts
                ("[ab]{4}", "bbbb", [[ord("a"), -100]])):
            with self.subTest(pattern=pattern, more=more):
                outcome = engine.run(None, prompt="x", format=by_grammar("regex", pattern), temperature=0, max_tokens=9,
                                     logit_bias=likes + more)
                self.assertEqual((outcome.reason, outcome.text), ("stop", text))


class SpaceInFront(TimedTest):
    """A tokenizer of Llama 2's kind puts a space in front of each text. A past bug: a forced text had no tokens because of that,
    and the job failed if the model wanted another text."""

    def test_what_is_forced(self):
        tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(255)), "<|end|>", "\N{LOWER ONE EIGHTH BLOCK}"]
        new = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": (gguf.STRING, tokens),
               "tokenizer.ggml.token_type": (gguf.I32, [2] + [6] * 255 + [3, 1])}
        pairs = [gguf.pair(key, kind, new.get(key, content)) for key, kind, content in gguf.tiny_pairs()]
        pairs.append(gguf.pair("tokenizer.ggml.scores", gguf.ARRAY, (gguf.F32, [0.0] * len(tokens))))
        engine = engine_with(self, pairs)
        for pattern, text in (('"a" is b', '"a" is b'), ("  [ab]\n x", "  a\n x"), ('[ab] "c"[d]', 'a "c"d')):
            with self.subTest(pattern=pattern):
                outcome = engine.run(None, prompt="x", format=by_grammar("regex", pattern), temperature=0, max_tokens=20)
                self.assertEqual((outcome.error, outcome.reason, outcome.text), (None, "stop", text))


class Numbers(Case):
    """A past bug: a small model wrote digits until its token limit. Here a bias makes the model prefer digits."""

    PARTS = re.compile(r"-?(\d{1,20})(?:\.(\d{1,20}))?(?:[eE][+-]?(\d{1,2}))?")
    NUMBER = {"type": "number"}
    TOOL = {"name": "f", "parameters": {"properties": {"n": NUMBER}, "required": ["n"], "additionalProperties": False}}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(MODEL, "rb") as file:
            names = gguf.Reader(file.read()).values()["tokenizer.ggml.tokens"]
        wanted = {"9": 100, ".": 80, "e": 70, "0": 60, "[": 50, "{\"": 50}
        cls.minus = names.index("-")
        cls.biases = [[names.index(name), bias] for name, bias in wanted.items() if name in names]

    def run_on(self, **params):
        outcome = self.engine.run(PROMPT, **{"max_tokens": 120, "temperature": 0, "logit_bias": self.biases, **params})
        self.assertEqual(outcome.reason, "stop", (outcome.text, outcome.calls))
        return outcome

    def parts(self, text):
        match = self.PARTS.fullmatch(text)
        self.assertIsNotNone(match, text)
        self.assertTrue(math.isfinite(float(text)), text)
        return match.groups()

    def test_an_integer_ends(self):
        for bounds in ({}, {"minimum": 5}, {"maximum": 2**53 - 1, "minimum": 0}, {"exclusiveMinimum": -3}):
            with self.subTest(bounds):
                text = self.run_on(format=by_schema({"type": "integer", **bounds})).text
                self.parts(text)
                self.assertGreater(len(text), 14, "it wants to run on")

    def test_no_integer_is_minus_0(self):
        biases = [[token, bias] for token, bias in self.biases if bias == 60]  # only the bias of "0"
        for bounds in ({}, {"minimum": -5}, {"maximum": 5}, {"minimum": -5, "maximum": 5}):
            with self.subTest(bounds):
                schema = by_schema({"type": "integer", **bounds})
                text = self.run_on(format=schema, logit_bias=[[self.minus, 100], *biases]).text
                self.assertRegex(text, "^-[1-9]")

    def test_a_number_ends(self):
        for bounds in ({}, {"minimum": 0.5}, {"maximum": 9.5}, {"minimum": 9.5, "exclusiveMaximum": 9.75}):
            with self.subTest(bounds):
                digits, places, exponent = self.parts(self.run_on(format=by_schema({**self.NUMBER, **bounds})).text)
                self.assertEqual(len(places), 20)
                self.assertTrue(bounds or (digits, exponent) == ("9" * 20, "99"), "it wants to run on")

    def test_wherever_it_stands(self):
        array = {"type": "array", "minItems": 1, "maxItems": 1}
        for schema in ({**array, "items": {}}, array, {"type": "object", "required": ["n"], "maxProperties": 1}):
            with self.subTest(json.dumps(schema)):
                text = self.run_on(format=by_schema(schema), logit_bias=[
                    [token, bias] for token, bias in self.biases if bias > 50]).text
                self.parts(re.sub(r'^(\[|\{"n":)|[\]}]$', "", text))

    def test_in_arguments(self):
        outcome = self.run_on(tools=[self.TOOL], tool_choice={"mode": "required"}, parallel_tool_calls=False)
        (name, arguments), *_ = outcome.calls
        self.assertEqual(name, "f")
        self.parts(re.fullmatch(r'\{"n":(.*)\}', arguments)[1])

    def test_a_constant_is_as_long_as_it_is(self):
        for number in (1.2345678901234567e-19, 1e-20, 9007199254740991):
            self.assertEqual(json.loads(self.run_on(format=by_schema({"enum": [number]})).text), number)
        narrow = {**self.NUMBER, "exclusiveMinimum": 1.1e-19, "exclusiveMaximum": 1.2e-19}
        self.assertTrue(1.1e-19 <= json.loads(self.run_on(format=by_schema(narrow)).text) <= 1.2e-19)

    def test_a_multiple_is_one_for_a_double(self):
        for bounds in ({}, {"maximum": 9e15}):
            text = self.run_on(format=by_schema({**self.NUMBER, "multipleOf": 0.01, **bounds})).text
            self.assertLess(abs(float(text)), 2**53 / 100)


class Hostile(Case):
    """A schema or grammar that would take seconds or a deep stack is refused, and the engine continues."""

    def test_schemas(self):
        cycle = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}}
        for schema, param in (
                (cycle, None),
                ({"type": "string", "pattern": "(" * 500 + "a" + ")" * 500}, "format.schema.pattern"),
                ({"type": "string", "pattern": "a" * 2000}, "format.schema.pattern"),
                ({"type": "string", "pattern": "(((a{99}){99}){99}){99}"}, "format.schema.pattern"),
                ({"type": "string", "pattern": "(?=a)a"}, "format.schema.pattern"),
                ({"enum": [f"value {i}" for i in range(60_000)]}, None),
                ({"type": "integer", "multipleOf": 1234567}, "format.schema.multipleOf"),
                ({"allOf": [{"type": "integer", "multipleOf": m} for m in (97, 89, 83)]}, None),
                ({"minItems": 10**9}, "format.schema.minItems"),
                ({"$ref": "http://example.com/x.json"}, "format.schema.$ref"),
                ({"x-guidance": {"whitespace_flexible": True}}, None),
                ({"type": "strin"}, "format.schema.type"),
                ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "format.schema"),
                ({"type": "object", "required": ["a", "b"], "maxProperties": 1}, "format.schema.maxProperties"),
                ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "format.schema")):
            with self.subTest(json.dumps(schema)[:80]):
                start = time.monotonic()
                outcome = self.run_format(by_schema(schema))
                self.assert_soon(time.monotonic() - start, 0.5 * SLOW)
                self.assertEqual(outcome.error["code"], "INVALID_REQUEST")
                self.assertTrue(outcome.error["param"].startswith(param or "format.schema"), outcome.error)

    def test_too_much_for_it_later(self):
        """A problem that only appears during the answer is reported, and an incomplete text does not count as a whole text."""
        outcome = self.run_format(by_schema({"type": "array", "items": {"const": 1}, "minItems": 30_000}))
        self.assertEqual((outcome.reason, outcome.error["code"]), ("error", "INVALID_REQUEST"))
        self.assertTrue(outcome.error["param"].startswith("format"))

    def test_too_much_for_it_in_arguments(self):
        """The error names the tool's schema, and does not contain llguidance's words."""
        patterns = {"type": "string", "allOf": [{"pattern": "^.*a.{20}$"}, {"pattern": "^.*b.{21}$"}]}
        schema = {"type": "object", "properties": {"a": patterns}, "required": ["a"], "additionalProperties": False}
        outcome = self.engine.run(PROMPT, tools=[{"name": "f", "parameters": schema}], tool_choice={"mode": "required"})
        self.assertEqual((outcome.error["code"], outcome.error["param"]), ("INVALID_REQUEST", "tools[0].parameters"))
        self.assertTrue(outcome.error["detail"].startswith("the schema can't be used: it is too large"), outcome.error)

    def test_grammars(self):
        for syntax, definition, *words in (
                ("lark", "start: (", "Expected"),
                ("lark", "start: " + "(" * 30_000 + '"a"' + ")" * 30_000, "brackets"),
                ("lark", 'begin: "a"', "start"),
                ("lark", "start: r0\n" + "".join(f"r{i}: r{i + 1}\n" for i in range(4500)) + "r4500: (", "Expected"),
                ("regex", "(?=a)b", "look-around"),
                ("regex", "(" * 30_000, "brackets"),
                ("regex", "a(b", "can't be used: invalid regular expression: unclosed group"),
                ("lark", 'start: "a" b\nb: /(/', "can't be used: line 2, column 4: invalid regular expression: unclosed group"),
                ("lark", "start: start", "no text fits"),
                ("lark", '%llguidance {"allow_invalid_utf8": true}\nstart: /./', "UTF-8"),
                ("lark", 'start: "a" (<|im_end|> "b" | "c")', "tokens"),
                ("lark", 'start: "a" <[2]> "b"', "tokens"),
                ("lark", 'start: A\nA: "\\"" /\\/"/ // "\n | <[^0-7]>', "tokens")):
            with self.subTest(f"{syntax}: {definition[:40]}"):
                self.assert_refused(by_grammar(syntax, definition), "format.definition", *words)
        self.assertEqual(self.run_format(by_grammar("regex", "yes|no")).reason, "stop")
        text = self.run_format(by_grammar("lark", 'start: "<a>\\"<b>" /<c>\\/<d>/ %json {"const": "<e>"} // <[2]>'))
        self.assertEqual((text.reason, text.text), ("stop", '<a>"<b><c>/<d>"<e>"'))

    def test_deep_grammars(self):
        """The library recurses on rules and groups until it has finished or the time is over."""
        for around in ("{}", "(" * 28 + "{}" + ")" * 28):
            count = 58_000 // (len(around) + 14)
            rules = "".join(f"a{i:x}:{around.format(f'a{i + 1:x}')}\n" for i in range(count))
            outcome = self.run_format(by_grammar("lark", f'start: a0\n{rules}a{count:x}:"x"\n'))
            if outcome.reason == "stop":
                self.assertEqual(outcome.text, "x")
            else:
                self.assertEqual(outcome.error["param"], "format.definition")

    def test_those_that_take_seconds(self):
        """A past bug: they stopped every answer for 0.3 s each, and the next format was refused until they were compiled."""
        engine = Engine(PROGRAM, {"FM_ENGINE_LLAMA_CTX": "2048", "FM_ENGINE_LLAMA_REPEATABLE": "", "FM_ENGINE_LLAMA_SLOTS": "4"})
        self.addCleanup(engine.close)
        engine.initialize()
        engine.load(MODEL)
        answer = engine.start(PROMPT, max_tokens=1900, ignore_eos=True, temperature=0)
        engine.until(answer, "job.delta")
        schema = by_schema({"properties": {f"p{i}": {"type": "string"} for i in range(4900)}})
        hostile = [engine.start(PROMPT, max_tokens=5, format=schema) for _ in range(4)]
        innocent = [engine.start(PROMPT, temperature=0, max_tokens=9, format=by_schema({"const": i})) for i in range(3)]
        ends = {}
        tokens = 0  # tokens of the answer while the last of the four is compiled: there are three slots for formats
        for job, name, params in engine.together([answer, *hostile, *innocent]):
            tokens += name == "job.delta" and job == answer and any(one in ends for one in hostile) and hostile[3] not in ends
            if name == "job.finished":
                ends[job] = params
                if len(ends) == 7:
                    engine.notify("job.abort", {"job": answer})
        if any(ends[job]["reason"] != "error" for job in hostile):
            self.skipTest("this machine compiles it in time")
        for job in hostile:
            self.assertIn("ms to compile", ends[job]["error"]["detail"])
        self.assertEqual([ends[job]["reason"] for job in innocent], ["stop"] * 3)
        self.assert_undisturbed(tokens > 6, f"{tokens} tokens of the answer beside a compilation")


class Grammars(Case):
    PATTERN = r"(\+|-)[1-9][0-9]{2} (EUR|USD)"
    GRAMMARS = {
        "regex": PATTERN,
        "lark": 'start: SIGN NUMBER " " UNIT\nSIGN: "+" | "-"\nNUMBER: /[1-9][0-9]{2}/\nUNIT: "EUR" | "USD"',
    }

    def test_each_syntax(self):
        for syntax, definition in self.GRAMMARS.items():
            with self.subTest(syntax):
                texts = set()
                for seed in range(6):
                    outcome = self.run_format(by_grammar(syntax, definition), temperature=2, seed=seed)
                    self.assertEqual(outcome.reason, "stop")
                    self.assertRegex(outcome.text, f"^{self.PATTERN}$")
                    self.assertIsNone(outcome.report)
                    texts.add(outcome.text)
                self.assertGreater(len(texts), 2)

    def test_text_of_all_kinds(self):
        """Tests characters that need several tokens, and characters that JSON would escape."""
        text = 'naïve 日本語 🦙 "quoted" \\ back'
        outcome = self.run_format(by_grammar("lark", "start: " + json.dumps(text, ensure_ascii=False)))
        self.assertEqual((outcome.reason, outcome.text), ("stop", text))


if __name__ == "__main__":
    PROGRAM, MODEL = sys.argv[1:3]
    skip_without(PROGRAM, MODEL)
    MODEL = gguf.shallow(MODEL)
    unittest.main(argv=sys.argv[:1])
