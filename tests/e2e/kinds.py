"""Requests of every kind for the real models, and the audit that their answers must pass: for a single request, among other
requests, and after hours.

Each request has a unique code in its prompt. If a format forces the answer to have the code, the answer must have it. No answer
may have the code of another request, except of an earlier turn of its conversation.
"""

import collections
import json
import random
import re
import unittest

import pictures
from wire import check_stream, whole_result

TEST = unittest.TestCase()
TEST.maxDiff = None
CODE = re.compile(r"[BCDFGHJKLMNPQRSTVWXZ]{8}")
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
STORIES = [f"{word} " * 40 for word in ("red", "green", "blue")]
TEXTS = ["A cat sleeps.", "A kitten is asleep.", "The tax form is due.", "x", "word " * 100, "Grüße aus Linz"]
RECENT = 10  # responses that a new request may continue
TURNS = 4
COUNTED = ("input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "text")  # the members that decide the prompt

CREATES = {"responses": "responses.create", "chat": "chat.completions.create", "completions": "completions.create",
           "embeddings": "embeddings.create"}
MEMBERS = {"responses": "response", "chat": "completion", "completions": "completion", "embeddings": "embeddings"}


class Request:
    """A request, and what must hold for a whole answer."""

    def __init__(self, number, kind, api, params, codes, check=None, conversation=()):
        self.number, self.kind, self.api, self.params, self.codes = number, kind, api, params, codes
        self.check = check or (lambda answer: True)
        self.conversation = list(conversation)  # the items of the turns before this request
        self.streams = params.get("stream", False)

    def __str__(self):
        return f"request {self.number} ({self.kind}, {self.api}{', stream' if self.streams else ''})"

    @property
    def method(self):
        return CREATES[self.api]


class Answer:
    """An answer, with the same members for every API: for each choice, a text, a list of calls and a list of log
    probabilities."""

    def __init__(self, api, body):
        self.body, self.texts, self.calls, self.logprobs, self.reasons, self.vectors = body, [], [], [], [], None
        usage = body.get("usage") or {}
        self.input = usage.get("input_tokens", usage.get("prompt_tokens", 0))
        self.output = usage.get("output_tokens", usage.get("completion_tokens", 0))
        self.total = usage.get("total_tokens", 0)
        details = usage.get("input_tokens_details", usage.get("prompt_tokens_details")) or {}
        self.cached = details.get("cached_tokens", 0)
        getattr(self, f"_take_{api}")(body)

    def _take_responses(self, body):
        parts = [part for item in body["output"] if item["type"] == "message" for part in item["content"]]
        self.texts = ["".join(part["text"] for part in parts)]
        self.calls = [[(item["name"], item["arguments"]) for item in body["output"] if item["type"] == "function_call"]]
        self.logprobs = [[entry for part in parts for entry in part["logprobs"]]]
        self.reasons = ["length" if body["status"] != "completed" else "tool_calls" if self.calls[0] else "stop"]

    def _take_chat(self, body):
        for choice in body["choices"]:
            message = choice["message"]
            self.texts.append(message["content"] or "")
            self.calls.append([(call["function"]["name"], call["function"]["arguments"])
                               for call in message.get("tool_calls", [])])
            self.logprobs.append((choice["logprobs"] or {}).get("content") or [])
            self.reasons.append(choice["finish_reason"])

    def _take_completions(self, body):
        self.texts = [choice["text"] for choice in body["choices"]]
        self.calls = [[] for _ in self.texts]
        self.logprobs = [[] for _ in self.texts]
        self.reasons = [choice["finish_reason"] for choice in body["choices"]]

    def _take_embeddings(self, body):
        self.vectors = [entry["embedding"] for entry in body["data"]]
        self.reasons = ["stop"]

    def told(self):
        """The values that must be equal in a fresh process."""
        return self.texts, self.calls, self.logprobs, self.reasons, self.output


# ---- the audit ----

def check_chunks(chunks, completion, whole):
    """Checks the chunks of a stream, of chat or of the legacy API, against the object in its result."""
    TEST.assertEqual(len({chunk["id"] for chunk in chunks}), 1)
    TEST.assertEqual([bool(chunk["choices"]) for chunk in chunks].count(False), bool(chunks and not chunks[-1]["choices"]))
    told = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    indices = [choice["index"] for choice in told]
    TEST.assertEqual(indices, sorted(indices), "a choice's chunks come before those of the next")
    for choice in completion["choices"]:
        mine = [piece for piece in told if piece["index"] == choice["index"]]
        if not mine and not whole:
            continue  # the choice had not begun yet
        reasons = [piece["finish_reason"] for piece in mine]
        TEST.assertEqual([r for r in reasons if r], [r for r in [choice["finish_reason"]] if r], "each ends once")
        TEST.assertTrue(reasons[-1] or not whole, "the end is the last")
        if "text" in choice:
            TEST.assertEqual("".join(piece["text"] for piece in mine), choice["text"])
            continue
        deltas = [piece["delta"] for piece in mine]
        TEST.assertEqual([i for i, delta in enumerate(deltas) if "role" in delta], [0], "it begins once")
        message = choice["message"]
        TEST.assertEqual("".join(delta.get("content") or "" for delta in deltas), message["content"] or "")
        arguments = collections.defaultdict(str)
        for piece in (piece for delta in deltas for piece in delta.get("tool_calls", [])):
            arguments[piece["index"]] += piece["function"]["arguments"]
        TEST.assertEqual(list(arguments.values()),
                         [call["function"]["arguments"] for call in message.get("tool_calls", [])])
    if chunks and not chunks[-1]["choices"]:
        TEST.assertEqual(chunks[-1]["usage"], completion["usage"])


def check_streamed(request, events, result):
    """Checks that the stream has the same content as the result, and ended once."""
    body = result.get(MEMBERS[request.api])
    if not request.streams or not body:
        TEST.assertEqual(events, [])
    elif request.api == "responses":
        check_stream(TEST, events, result)
    elif events or result["ok"]:
        check_chunks(events, body, result["ok"])


def check_usage(request, answer, ok):
    usage = (request.kind, answer.body.get("usage"))
    TEST.assertEqual(answer.input + answer.output, answer.total, usage)
    TEST.assertLessEqual(answer.cached, answer.input, usage)
    if not ok:
        return
    TEST.assertGreater(answer.input, 0, usage)
    TEST.assertTrue(answer.output == 0 or answer.vectors is None, usage)
    limit = request.params.get("max_output_tokens", request.params.get("max_tokens"))
    choices = max(1, len(answer.texts))
    if limit is not None:
        TEST.assertLessEqual(answer.output, limit * choices, usage)
        if answer.reasons == ["length"]:
            TEST.assertEqual(answer.output, limit, usage)


def check_codes(request, answer, issued):
    said = " ".join([*answer.texts, *(f"{name} {arguments}" for calls in answer.calls for name, arguments in calls)])
    strange = [code for code in CODE.findall(said) if code in issued and code not in request.codes]
    TEST.assertFalse(strange, f"{request}: the text of request {[issued[code] for code in strange]}: {said}")


def audit(request, events, result, issued):
    """Checks any answer, whatever happened to its request. `issued` has all codes so far. Returns the Answer, or None if the
    request has none."""
    try:
        result = whole_result(events, result)
        check_streamed(request, events, result)
        body = result.get(MEMBERS[request.api])
        if not body:
            TEST.assertFalse(result["ok"])
            return None
        answer = Answer(request.api, body)
        check_usage(request, answer, result["ok"])
        check_codes(request, answer, issued)
        for text, entries in zip(answer.texts, answer.logprobs):
            if entries:
                TEST.assertEqual(b"".join(bytes(entry["bytes"]) for entry in entries).decode(errors="replace"), text)
        if result["ok"]:
            TEST.assertEqual(len(answer.texts), 0 if answer.vectors else request.params.get("n", 1))
            if "length" not in answer.reasons:
                TEST.assertTrue(request.check(answer), (answer.texts, answer.calls))
        return answer
    except (AssertionError, KeyError, ValueError) as error:
        raise AssertionError(f"{request}: {error!r}\nparams: {request.params}\nresult: {str(result)[:3000]}") from error


# ---- the requests ----

class Turn:
    """A stored response that another request may continue."""

    def __init__(self, request, response):
        self.id, self.codes = response["id"], request.codes
        self.items = [*request.conversation, *request.params["input"], *response["output"]]
        self.number = sum(item.get("role") == "user" for item in self.items)
        self.has_image = any(type(item.get("content")) is list and item["content"][-1]["type"] == "input_image"
                             for item in self.items)
        self.outputs = [{"type": "function_call_output", "call_id": item["call_id"], "output": "done"}
                        for item in response["output"] if item["type"] == "function_call"]


class Maker:
    """Makes requests at random; the same seed makes the same requests, except those that continue an answer."""

    def __init__(self, seed, chats, embedder=None, seer=None):
        """`chats`: ids of models that chat (a request is for one of them); `embedder`: one that embeds; `seer`: one that sees
        images."""
        self.seed, self.pick, self.chats, self.embedder, self.seer = seed, random.Random(seed), chats, embedder, seer
        self.number, self.issued = 0, {}
        self.turns = collections.deque(maxlen=RECENT)
        self.vectors = {}  # the vectors of each text, from the first time
        self.kinds = [self.text, self.seeded, self.own_words, self.own_object, self.tool, self.log_probabilities,
                      self.choices, self.next_turn, self.next_turn, self.legacy, self.repeatable]
        self.kinds += [self.image] if seer else []
        self.kinds += [self.embedding] if embedder else []

    def make(self, kind=None, **fixed):
        self.number += 1
        code = "".join(random.Random(f"{self.seed} {self.number}").choices(LETTERS, k=8))
        self.issued[code] = self.number
        kind = kind or self.pick.choice(self.kinds)
        return kind(code, **fixed)

    def noted(self, request, answer):
        """Keeps a successful request, so that later ones can continue from it."""
        if request.api == "responses":
            turn = Turn(request, answer.body)
            if turn.number < TURNS:
                self.turns.append(turn)

    def request(self, code, api, params, check=None, codes=(), stream=None, kind=None, **more):
        stream = self.pick.random() < 0.5 if stream is None else stream
        if api != "embeddings":
            params = {"model": self.pick.choice(self.chats), **params, "stream": stream}
            if stream and api != "responses" and self.pick.random() < 0.5:
                params["stream_options"] = {"include_usage": True}
        return Request(self.number, kind, api, params, {code, *codes}, check, **more)

    def ask(self, code, kind, api=None, limit=None, check=None, parts=(), system=True, **params):
        """A request for either API; handles the differences between them."""
        own = {key: params.pop(key) for key in ("stream", "codes", "conversation", "first") if key in params}
        api = api or self.pick.choice(("responses", "chat"))
        words = self.pick.choice(("one", "two")) + " "
        text = f"The code is {code}. " + words * (self.pick.randint(1, 100) if self.pick.random() < 0.2 else 5)
        content = [{"type": "input_text", "text": text}, *parts] if parts else text
        messages = [{"role": "system", "content": self.pick.choice(STORIES)}] if system else []
        messages = [*own.pop("first", ()), *messages, {"role": "user", "content": content}]
        limit = limit or self.pick.randint(1, 24)
        if api == "responses":
            body = {"input": messages, "max_output_tokens": limit}
        else:
            body = {"messages": messages, "max_tokens": limit}
        return self.request(code, api, {**body, **params}, check, kind=kind, **own)

    def text(self, code, **own):
        return self.ask(code, "text", temperature=self.pick.choice((0, 0.7)), **own)

    def seeded(self, code, **own):
        sampling = {"seed": self.number, "top_k": 20, "presence_penalty": 1, "repeat_penalty": 1.3}
        return self.ask(code, "seeded", **sampling, **own)

    def forced(self, code):
        """Returns a grammar for a text that no other request may have, and the check of the text."""
        wanted = f"code {code} is [a-z]{{3,6}}"
        return ({"grammar": {"syntax": "regex", "definition": wanted}},
                lambda answer: all(re.fullmatch(wanted, text) for text in answer.texts))

    def own_words(self, code, **own):
        grammar, check = self.forced(code)
        return self.ask(code, "own words", limit=60, fm=grammar, check=check, **own)

    def own_object(self, code, api=None, **own):
        api = api or self.pick.choice(("responses", "chat"))
        schema = {"type": "object", "properties": {"code": {"const": code}, "tags": {
            "type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 3}}, "required": ["code", "tags"],
            "additionalProperties": False}
        named = {"name": "thing", "schema": schema, "strict": True}
        format = ({"text": {"format": {"type": "json_schema", **named}}} if api == "responses" else
                  {"response_format": {"type": "json_schema", "json_schema": named}})

        def check(answer):
            value = json.loads(answer.texts[0])
            return value["code"] == code and set(value["tags"]) <= {"a", "b"}
        return self.ask(code, "own object", api, 60, check, **format, **own)

    def tool(self, code, api=None, **own):
        api = api or self.pick.choice(("responses", "chat"))
        function = {"name": f"tool_{code}", "strict": True, "parameters": {
            "type": "object", "properties": {"n": {"enum": [self.number]}}, "required": ["n"], "additionalProperties": False}}
        tools = [{"type": "function", **function} if api == "responses" else {"type": "function", "function": function}]
        number = self.number

        def check(answer):
            (name, arguments), = answer.calls[0]
            return (name, json.loads(arguments), answer.texts[0]) == (f"tool_{code}", {"n": number}, "")
        return self.ask(code, "tool", api, 80, check, tools=tools, tool_choice="required", parallel_tool_calls=False, **own)

    def log_probabilities(self, code, api=None, kind="log probabilities", **own):
        api = api or self.pick.choice(("responses", "chat"))
        asked = {"include": ["message.output_text.logprobs"]} if api == "responses" else {"logprobs": True}
        own = {"temperature": 0, "limit": 12, "top_logprobs": self.pick.randint(0, 3), **own}

        def check(answer):
            return answer.texts == [""] or len(answer.logprobs[0]) > 0
        return self.ask(code, kind, api, check=check, **asked, **own)

    def choices(self, code, **own):
        """Several texts, each with the form that the grammar requires."""
        grammar, check = self.forced(code)
        n = self.pick.randint(2, 3)
        return self.ask(code, "choices", "chat", 60, lambda answer: check(answer) and len(answer.texts) == n,
                        fm=grammar, n=n, seed=self.number, **own)

    def image(self, code, **own):
        rgb = tuple(self.pick.randrange(256) for _ in range(3))
        part = {"type": "input_image", "image_url": pictures.url(pictures.png(rgb=rgb))}
        grammar, check = self.forced(code)
        asked = {"fm": grammar, "check": check, "limit": 60} if self.pick.random() < 0.5 else {}
        return self.ask(code, "image", "responses", parts=(part,), model=self.seer, **asked, **own)

    def next_turn(self, code, **own):
        """A turn after one of the last responses: many continue the same one, and some continue the result of such turns."""
        if not self.turns:
            return self.text(code, api="responses", **own)
        turn = self.pick.choice(self.turns)
        grammar, check = self.forced(code)
        asked = {"fm": grammar, "check": check, "limit": 60} if self.pick.random() < 0.5 else {"temperature": 0}
        if turn.has_image:
            asked["model"] = self.seer
        return self.ask(code, "next turn", "responses", first=turn.outputs, codes=turn.codes, conversation=turn.items,
                        previous_response_id=turn.id, system=False, **asked, **own)

    def legacy(self, code, **own):
        params = {"prompt": f"The code is {code}. One, two, three,", "max_tokens": self.pick.randint(1, 12), "temperature": 0}
        return self.request(code, "completions", params, kind="legacy", **own)

    def repeatable(self, code, **own):
        """The text and all its log probabilities must be the same again, to the bit."""
        sampling = {"temperature": 0} if self.pick.random() < 0.5 else {"temperature": 0.9, "seed": self.number}
        return self.log_probabilities(code, kind="repeatable", fm={"repeatable": True}, limit=self.pick.randint(1, 30),
                                      **{**sampling, **own})

    def embedding(self, code, **own):
        """The vectors must be the same as the first time, to the bit."""
        texts = self.pick.choices(TEXTS, k=self.pick.randint(1, 4))

        def check(answer):
            return [self.vectors.setdefault(text, vector) for text, vector in zip(texts, answer.vectors)] == answer.vectors
        params = {"model": self.embedder, "input": texts, "encoding_format": "base64"}
        return self.request(code, "embeddings", params, check, kind="embedding")
