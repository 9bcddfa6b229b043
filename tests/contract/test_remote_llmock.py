"""Tests the remote engine with llmock, a third-party server for testing clients: llmock's answers in all three dialects, and the
faults that it can make.

    test_remote_llmock.py PROGRAM [CASE...]

FM_REQUESTS (default 300) is the number of requests with random faults. Exit status 77: skipped, because llmock is not
there; packaging/setup.sh --tests installs it.
"""

import http.client
import json
import os
import random
import subprocess
import sys
import time
import unittest

from engine import WAIT, Engine, TimedTest, user
from llama_server import ROOT, free_port

FOLDER = os.path.join(ROOT, "build", "deps", "llmock")
PROGRAM = None
REQUESTS = int(os.environ.get("FM_REQUESTS", "300"))
DIALECTS = {"chat": "/v1", "responses": "/v1", "messages": "/anthropic/v1"}
WEATHER = {"name": "get_weather", "description": "The weather in a city.",
           "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
                          "additionalProperties": False}}
SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}, "pages": {"type": "integer"}},
          "required": ["title", "pages"], "additionalProperties": False}

# what llmock is told to do once, the code and reason code of the error, whether another endpoint gets the request, and whether
# this endpoint gets the request once more if there is no other
FAULTS = [
    ({"type": "fail", "status": 400}, "INVALID_REQUEST", None, False, False),
    ({"type": "fail", "status": 401}, "UNAVAILABLE", "AUTH_FAILED", True, False),
    ({"type": "fail", "status": 403}, "UNAVAILABLE", "AUTH_FAILED", True, False),
    ({"type": "fail", "status": 404}, "NOT_FOUND", None, True, False),
    ({"type": "fail", "status": 422}, "INVALID_REQUEST", None, False, False),
    ({"type": "fail", "status": 429, "retry_after": 2}, "RATE_LIMITED", None, True, False),
    ({"type": "fail", "status": 500}, "OVERLOADED", None, True, True),
    ({"type": "fail", "status": 503}, "OVERLOADED", None, True, False),
    ({"type": "fail", "status": 529}, "OVERLOADED", None, True, False),
    ({"type": "stream_fault", "kind": "disconnect", "after_chunks": 0}, "OVERLOADED", None, True, True),
    ({"type": "stream_fault", "kind": "truncate", "after_chunks": 1}, "OVERLOADED", None, True, True),
    ({"type": "stream_fault", "kind": "malformed", "after_chunks": 0}, "INTERNAL", None, True, False),
    ({"type": "stream_fault", "kind": "disconnect", "after_chunks": 7}, "OVERLOADED", None, False, False),
    ({"type": "stream_fault", "kind": "truncate", "after_chunks": 7}, "OVERLOADED", None, False, False),
    ({"type": "stream_fault", "kind": "malformed", "after_chunks": 7}, "INTERNAL", None, False, False),
]


class Llmock:
    def __init__(self):
        self.port = free_port()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "llmock.main:app", "--port", str(self.port), "--log-level", "warning"],
            env={**os.environ, "PYTHONPATH": FOLDER, "PYTHONDONTWRITEBYTECODE": "1"}, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + WAIT
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                self.control("GET", "/health")
                return
            except OSError:
                time.sleep(0.05)  # the server does not report when it is ready
        self.close()
        raise AssertionError("llmock did not start")

    def control(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        try:
            connection.request(method, path, body and json.dumps(body))
            reply = connection.getresponse()
            data = json.loads(reply.read())
            assert reply.status < 300, data
            return data
        finally:
            connection.close()

    def will(self, *behaviors):
        self.control("POST", "/_llmock/reset")
        if behaviors:
            self.control("POST", "/_llmock/scenario", {"behaviors": list(behaviors)})

    def requests(self):
        """Returns how many requests for an answer llmock has got since the last `will`."""
        rows = self.control("GET", "/_llmock/requests")["requests"]
        return sum(row["method"] == "POST" for row in rows)

    def url(self, dialect):
        return f"http://127.0.0.1:{self.port}{DIALECTS[dialect]}"

    def close(self):
        self.process.kill()
        self.process.wait()


class Case(TimedTest):
    @classmethod
    def setUpClass(cls):
        cls.first, cls.second = Llmock(), Llmock()
        cls.addClassCleanup(cls.first.close)
        cls.addClassCleanup(cls.second.close)

    def setUp(self):
        self.first.will()
        self.second.will()

    def engine(self, dialect, servers=None, **members):
        rows = [{"url": server.url(dialect), "dialect": dialect, "models": ["any"], **members}
                for server in servers or [self.first]]
        engine = Engine(PROGRAM, {"FM_ENGINE_CONFIG": json.dumps({"endpoints": rows})})
        self.addCleanup(engine.close)
        self.assertTrue(engine.initialize()["ok"])
        self.assertTrue(engine.load(None)[0]["ok"])
        return engine


class Answers(Case):
    def test_text(self):
        for dialect in DIALECTS:
            engine = self.engine(dialect)
            self.first.will({"type": "reply", "text": "One, two,\nthree: ä 😀 done."})
            outcome = engine.run(user("count"), max_tokens=50)
            self.assertEqual((outcome.error, outcome.reason, outcome.text), (None, "stop", "One, two,\nthree: ä 😀 done."))
            self.assertGreater(outcome.usage["input_tokens"], 0)
            self.assertGreater(outcome.usage["output_tokens"], 0)
            self.assertEqual(self.first.requests(), 1)

    def test_it_is_available(self):
        for dialect in DIALECTS:
            self.assertTrue(self.engine(dialect).call("engine.available", {})[0]["result"]["available"], dialect)

    def test_calls(self):
        for dialect in DIALECTS:
            engine = self.engine(dialect)
            outcome = engine.run(user("What is the weather in Paris?"), tools=[WEATHER])
            self.assertEqual((outcome.error, outcome.reason, outcome.text), (None, "stop", ""), dialect)
            [(name, arguments)] = outcome.calls
            self.assertEqual((name, list(json.loads(arguments))), ("get_weather", ["city"]))
            two = [{"name": "get_weather", "arguments": {"city": city}} for city in ("Paris", "Rome")]
            self.first.will({"type": "reply", "tool_calls": two})
            outcome = engine.run(user("both"), tools=[WEATHER])
            self.assertEqual([json.loads(arguments)["city"] for _, arguments in outcome.calls], ["Paris", "Rome"])

    def test_calls_that_are_broken(self):
        for dialect in DIALECTS:
            engine = self.engine(dialect)
            self.first.will({"type": "tool_fault", "kind": "malformed_arguments"})
            outcome = engine.run(user("What is the weather in Paris?"), tools=[WEATHER])
            self.assertEqual(outcome.error and outcome.error["code"], "INTERNAL", (dialect, outcome.calls))
            self.assertIn("not a JSON object", outcome.error["detail"])
            self.first.will({"type": "tool_fault", "kind": "unknown_tool"})
            outcome = engine.run(user("What is the weather in Paris?"), tools=[WEATHER])
            self.assertEqual((outcome.error, outcome.calls), (None, []), dialect)
            self.assertIn(f'<tool_call>\n{{"name": "{outcome.unknown_tool}", "arguments": {{', outcome.text)

    def test_a_format(self):
        for dialect in DIALECTS:
            engine = self.engine(dialect)
            strict = {"type": "json_schema", "schema": SCHEMA, "strict": True}
            outcome = engine.run(user("a book"), format=strict)
            if outcome.error and outcome.error.get("param") == "format":
                self.skipTest("the engine was built without llguidance")
            self.first.will({"type": "reply", "text": '{"title": 1}'})
            broken = engine.run(user("a book"), format=strict)
            if dialect == "messages":  # llmock reads an older name of this member: the test sees that the schema is ignored
                self.assertEqual(outcome.error["code"], "INTERNAL")
                self.first.will({"type": "reply", "text": '{"title": "x", "pages": 1}'})
                outcome = engine.run(user("a book"), format=strict)
            self.assertIsNone(outcome.error, dialect)
            self.assertEqual(sorted(json.loads(outcome.text)), ["pages", "title"])
            self.assertEqual(broken.error["code"], "INTERNAL")

    def test_vectors(self):
        engine = self.engine("chat")
        engine.next_job += 1
        engine.notify("job.start", {"job": engine.next_job, "embed": ["a", "b"]})
        names = [name for name, _ in engine.events(engine.next_job)]
        self.assertEqual(names, ["job.accepted", "job.embedding", "job.embedding", "job.finished"])


class Faults(Case):
    def test_what_each_becomes(self):
        for dialect in DIALECTS:
            engine = self.engine(dialect, [self.first, self.second])
            alone = self.engine(dialect)
            for fault, code, reason_code, moves, once_more in FAULTS:
                with self.subTest(dialect=dialect, fault=fault):
                    self.first.will(fault)
                    outcome = alone.run(user("Tell me about the sea, please."))
                    if not once_more:
                        self.assertEqual((outcome.error["code"], outcome.error.get("reason_code")), (code, reason_code),
                                         outcome.error)
                    self.assertEqual((outcome.error is None, self.first.requests()), (once_more, 1 + once_more), outcome.error)
                    if "retry_after" in fault:
                        self.assertEqual(outcome.error["retry_after_ms"], 1000 * fault["retry_after"])
                    self.first.will(fault)
                    self.second.will()
                    again = engine.run(user("Tell me about the sea, please."))
                    self.assertEqual((again.error is None, self.second.requests()), (moves, int(moves)), again.error)

    def test_too_long(self):
        self.first.will({"type": "fail", "status": 400, "code": "context_length_exceeded", "message": "too long"})
        self.assertEqual(self.engine("chat").run(user("hi")).error["code"], "CONTEXT_OVERFLOW")

    def test_slow(self):
        self.first.will({"type": "slow_first_token", "seconds": 0.5})
        start = time.monotonic()
        outcome = self.engine("chat").run(user("hi"))
        self.assertEqual((outcome.error, time.monotonic() - start > 0.5), (None, True))

    def test_silence(self):
        engine = self.engine("chat", [self.first, self.second], timeouts={"first_byte_ms": 300, "silence_ms": 300})
        for after, moves in ((0, True), (7, False)):
            self.second.will()
            self.first.will({"type": "stream_fault", "kind": "stall", "after_chunks": after, "stall_seconds": WAIT})
            outcome = engine.run(user("Tell me about the sea, please."))
            self.assert_undisturbed((outcome.error is None) == moves, str(outcome.error))

    def test_random_ones_at_once(self):
        """Each request is answered once, or fails once. No text is cut or doubled without an error."""
        random.seed(18)
        text = "".join(f"word-{number} " for number in range(20)) + "end."
        for dialect in DIALECTS:
            engine, seen = self.engine(dialect, [self.first, self.second]), 0
            self.second.will({"type": "reply", "text": text, "times": None})
            faults = [random.choice(FAULTS)[0] if random.random() < 0.5 else {"type": "delay", "seconds": 0.001}
                      for _ in range(REQUESTS // 3)]
            self.first.will({"type": "reply", "text": text, "times": None}, *faults)
            answered = failed = 0
            for begin in range(0, len(faults), 20):
                jobs = [engine.start(user("go"), restartable=i % 2 == 0) for i in range(len(faults[begin:begin + 20]))]
                for i, outcome in enumerate(engine.outcomes(jobs)):
                    answered += outcome.error is None
                    failed += outcome.error is not None
                    seen += bool(outcome.restarts)
                    self.assertTrue(text.startswith(outcome.text) if outcome.error else outcome.text == text, outcome.text)
                    # the host has not seen any part of the answer, so only an invalid request fails
                    if outcome.error and i % 2 == 0:
                        self.assertEqual(outcome.error["code"], "INVALID_REQUEST")
            self.assertEqual(answered + failed, len(faults))
            self.assertGreater(min(answered, failed, self.second.requests()), 0)
            self.assertTrue(engine.messages.empty(), "nothing comes after the end")
            print(f"{dialect}: {answered} answered, {seen} of them anew, {failed} failed, of {len(faults)}; "
                  f"{self.second.requests()} asked the second")


def main():
    global PROGRAM
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if not os.path.exists(FOLDER):
        print(f"skipped: there is no {FOLDER}")
        sys.exit(77)
    unittest.main()


if __name__ == "__main__":
    main()
