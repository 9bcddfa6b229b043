"""Tests how the remote engine handles servers that are slow, cut off, broken, or of another kind:

    test_remote_faults.py PROGRAM [CASE...]

FM_FAILOVERS (default 1,000) is the number of random failovers. docs/remote.md ("What a fault becomes") has the same table as
FAULTS below: test_the_table_of_the_documentation compares them.
"""

import gzip
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from engine import GRACE, WAIT, Engine, Outcome, TimedTest, user
from faulty_server import PATHS, FaultyServer, certificate, chunked, head, models, resets, says, stream, whole

PROGRAM = None
DIALECTS = ("chat", "responses", "messages")
FAILOVERS = int(os.environ.get("FM_FAILOVERS", "1000"))
CANARY = "sk-canary-5b1f6d0c9e"


def error_body(message="no", **members):
    return json.dumps({"error": {"message": message, **members}}).encode()


def status(code, body=b"{}", **headers):
    return says(head(code, "application/json", Content_Length=len(body), **headers) + body)


def slow(data, step=97):
    """Sends the data in pieces, each after the one before has been sent."""
    def answer(server, connection, request):
        if models(connection, request):
            for at in range(0, len(data), step):
                connection.sendall(data[at:at + step])
        return True
    return answer


def silent(data=b""):
    """Sends these bytes, and then nothing for as long as the other side waits."""
    def answer(server, connection, request):
        if models(connection, request):
            connection.sendall(data)
            connection.recv(1)
            server.closed.release()
            return False
        return True
    return answer


CHAT = stream("chat")
HALF = CHAT[:CHAT.index(b"\n\n", 900) + 2]

CHUNKS = [json.loads(line) for line in re.findall(r"^data: (\{.*)$", CHAT.decode(), re.M)]
TEXT = "".join(choice["delta"].get("content") or "" for chunk in CHUNKS for choice in chunk["choices"])
MESSAGE = json.dumps({"choices": [{"message": {"content": TEXT}, "finish_reason": "length"}]}).encode()

LATER = "not streamed"  # only if the answer is not streamed

# name of the fault, what the server does, code, reason_code, whether the next endpoint gets the job, whether this endpoint gets
# the job once more (or up to this many times) if there is no other endpoint, the name in docs/remote.md
FAULTS = [
    ("slow", slow(whole(CHAT)), None, None, False, False, "slow, in small pieces"),
    ("no answer", says(b"", more=False), "OVERLOADED", None, True, True, "closed without an answer"),
    ("reset", resets(), "OVERLOADED", None, True, True, "reset before the answer"),
    ("cut in the head", says(b"HTTP/1.1 200 OK\r\nContent-", more=False), "OVERLOADED", None, True, True,
     "closed without an answer"),
    ("cut before output", says(head() + CHAT[:40], more=False), "OVERLOADED", None, True, True, "cut before the first output"),
    ("cut after output", says(head() + HALF, more=False), "OVERLOADED", None, LATER, True, "cut after output"),
    ("reset after output", resets(head() + HALF), "OVERLOADED", None, LATER, True, "reset after output"),
    ("rate limit", status(429), "RATE_LIMITED", None, True, False, "429"),
    ("rate limit with seconds", status(429, Retry_After=7), "RATE_LIMITED", None, True, False, "429 with Retry-After"),
    ("quota", status(429, error_body(code="insufficient_quota")), "UNAVAILABLE", "QUOTA", True, False, "429 insufficient_quota"),
    ("bad request", status(400, error_body()), "INVALID_REQUEST", None, False, False, "400, 422"),
    ("too long", status(400, error_body(code="context_length_exceeded")), "CONTEXT_OVERFLOW", None, True, False,
     "400 too long; 413"),
    ("too large", status(413), "CONTEXT_OVERFLOW", None, True, False, "400 too long; 413"),
    ("filtered", status(400, error_body(code="content_filter")), "GUARDRAIL", None, False, False, "400 content_filter"),
    ("bad key", status(401, error_body(f"wrong key {CANARY}")), "UNAVAILABLE", "AUTH_FAILED", True, False, "401, 403, 407"),
    ("forbidden", status(403), "UNAVAILABLE", "AUTH_FAILED", True, False, "401, 403, 407"),
    ("unpaid", status(402), "UNAVAILABLE", "QUOTA", True, False, "402"),
    ("not found", status(404), "NOT_FOUND", None, True, False, "404"),
    ("late", status(408), "OVERLOADED", None, True, False, "408, 409, 425"),
    ("500", status(500, b"<html>"), "OVERLOADED", None, True, True, "500, 504"),
    ("502", status(502, b"<html>"), "OVERLOADED", None, True, 3, "502"),
    ("503", status(503, Retry_After=2), "OVERLOADED", None, True, False, "503, 529, other 5xx"),
    ("529", status(529), "OVERLOADED", None, True, False, "503, 529, other 5xx"),
    ("501", status(501), "INVALID_REQUEST", None, True, False, "501"),
    ("redirect", status(307, Location="https://elsewhere.example/"), "UNAVAILABLE", "NOT_CONFIGURED", True, False, "3xx"),
    ("gzip", says(head(Content_Encoding="gzip") + gzip.compress(CHAT), more=False), "INTERNAL", None, True, False, "gzip"),
    ("no stream", says(head(kind="application/json", Content_Length=2) + b"{}"), "INTERNAL", None, True, False, "no stream"),
    ("no stream but the answer", status(200, MESSAGE), None, None, False, False, "the answer as JSON, not streamed"),
    ("a page", says(head(kind="text/html", Content_Length=6) + b"<html>"), "INTERNAL", None, True, False, "no stream"),
    ("no JSON", says(whole(b"data: {\"choices\": [\n\n")), "INTERNAL", None, True, False, "malformed events"),
    ("no events", says(whole(b"nonsense\n" * 9)), "OVERLOADED", None, True, True, "cut before the first output"),
    ("no end mark", says(whole(HALF)), "OVERLOADED", None, LATER, True, "cut after output"),
    ("an error event", says(whole(b'data: {"error":{"type":"overloaded_error","message":"x"}}\n\n')), "OVERLOADED", None, True,
     False, "an overloaded error as an event"),
    ("an odd event", says(whole(b'data: {"error":{"type":"stream_error","message":"x"}}\n\n')), "OVERLOADED", None, True, True,
     "an unknown error as an event"),
    ("a failure event", says(whole(b'data: {"error":{"type":"InternalServerError","code":500,"message":"x"}}\n\n')),
     "OVERLOADED", None, True, True, "an unknown error as an event"),
    ("no HTTP", says(b"SSH-2.0-OpenSSH_9\r\n", more=False), "OVERLOADED", None, True, True, "closed without an answer"),
    ("broken chunks", says(head(Transfer_Encoding="chunked") + b"zz\r\n", more=False), "OVERLOADED", None, True, True,
     "cut before the first output"),
]


class Case(TimedTest):
    def engine(self, *endpoints, dialect="chat", env=None, log_level="off", **members):
        """An engine with an endpoint for each of these servers or URLs."""
        rows = [{"url": getattr(e, "url", e), "dialect": dialect, **members} for e in endpoints]
        engine = Engine(PROGRAM, {"FM_ENGINE_CONFIG": json.dumps({"endpoints": rows}), **(env or {})})
        self.addCleanup(engine.close)
        self.assertTrue(engine.initialize(log_level=log_level)["ok"])
        self.assertTrue(engine.load(None)[0]["ok"])
        return engine

    def server(self, answer, context=None):
        server = FaultyServer(answer, context)
        self.addCleanup(server.close)
        return server

    def good(self, dialect="chat"):
        return self.server(says(whole(stream(dialect))))

    @staticmethod
    def text(dialect="chat"):
        """The text of the recorded answer."""
        deltas = {
            "chat": lambda event: "".join(c["delta"].get("content") or "" for c in event["choices"]),
            "responses": lambda event: event["delta"] if event["type"] == "response.output_text.delta" else "",
            "messages": lambda event: event["delta"].get("text", "") if event["type"] == "content_block_delta" else "",
        }
        lines = re.findall(r"^data: (\{.*)$", stream(dialect).decode(), re.M)
        return "".join(deltas[dialect](json.loads(line)) for line in lines)

    def assert_whole(self, outcome, dialect="chat"):
        self.assertEqual((outcome.error, outcome.reason, outcome.text), (None, "length", self.text(dialect)))


class Streams(Case):
    def test_whole(self):
        for dialect in DIALECTS:
            server = self.good(dialect)
            outcome = self.engine(server, dialect=dialect).run(user("hi"), max_tokens=12)
            self.assert_whole(outcome, dialect)
            self.assertEqual((outcome.usage["input_tokens"], outcome.usage["output_tokens"]), (35, 12))
            self.assertEqual([r.path for r in server.requests], [PATHS[dialect]])

    def test_one_connection_for_many_requests(self):
        connections = set()

        def answer(server, connection, request):
            connections.add(connection.fileno())
            connection.sendall(whole(CHAT))
            return True

        engine = self.engine(self.server(answer))
        for _ in range(20):
            self.assert_whole(engine.run(user("hi")))
        self.assertEqual(len(connections), 1)

    def test_cut_at_each_hundredth_byte(self):
        for dialect in DIALECTS:
            data = whole(stream(dialect))
            at = [0]
            bad = self.server(lambda server, connection, request: connection.sendall(data[:at[0]]) or False)
            alone = self.engine(bad, dialect=dialect)
            both = self.engine(bad, self.good(dialect), dialect=dialect)
            for at[0] in range(0, len(data), 100):
                outcome = alone.run(user("hi"), max_tokens=12)
                if outcome.reason == "error":
                    self.assertIn(outcome.error["code"], ("INTERNAL", "OVERLOADED"), at)
                    self.assertTrue(self.text(dialect).startswith(outcome.text))
                else:  # the missing part is after the end mark
                    self.assert_whole(outcome, dialect)
                again = both.run(user("hi"), max_tokens=12)
                if outcome.text and outcome.reason == "error":
                    self.assertEqual((again.reason, again.text), ("error", outcome.text), at)
                else:
                    self.assert_whole(again, dialect)

    def test_many_at_once(self):
        engine = self.engine(self.good())
        jobs = [engine.start(user("hi")) for _ in range(64)]
        for outcome in engine.outcomes(jobs):
            self.assert_whole(outcome)


class Faults(Case):
    def test_what_each_becomes(self):
        for name, answer, code, reason_code, moves, again, _ in FAULTS:
            for restartable in (False, True):
                with self.subTest(name, restartable=restartable):
                    self.look_at(answer, code, reason_code, moves is True or (moves == LATER and restartable), again, restartable)

    def look_at(self, answer, code, reason_code, moves, again, restartable):
        server = self.server(answer)
        outcome = self.engine(server).run(user("hi"), restartable=restartable)
        if code is None:
            self.assert_whole(outcome)
            return
        self.assertEqual((outcome.reason, outcome.error["code"], outcome.error.get("reason_code")),
                         ("error", code, reason_code), outcome.error)
        self.assertIn(server.host, outcome.error["detail"])
        self.assertEqual(len(server.requests), 1 + again if moves else 1)
        self.assertEqual("; before that: " in outcome.error["detail"], bool(moves and again))
        engine_moves = outcome.error.get("elsewhere") or code in ("UNAVAILABLE", "RATE_LIMITED", "OVERLOADED")
        self.assertEqual(bool(engine_moves), moves or code == "OVERLOADED", "to the next engine, as to the next endpoint")
        good = self.good()
        other = self.engine(server, good).run(user("hi"), restartable=restartable)
        self.assertEqual(len(good.requests), int(moves))
        if moves:
            self.assert_whole(other)
        else:
            self.assertEqual((other.error["code"], other.text), (code, outcome.text))

    def test_the_table_of_the_documentation(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "remote.md")
        with open(path) as file:
            section = file.read().split("## What a fault becomes")[1].split("\n## ")[0]
        table = {row[0]: row[1:] for row in re.findall(r"^\| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \|", section, re.M)}
        for _, _, code, reason_code, moves, again, words in FAULTS:
            told = "the whole answer" if code is None else " ".join(filter(None, (code, reason_code)))
            where = {True: "yes", False: "no"}.get(moves, moves)
            often = {False: "no", True: where, 3: "up to three times"}[again]
            expected = (told, "-", "-") if code is None else (told, where, often)
            self.assertEqual(table.get(words), expected, words)

    def test_retry_after(self):
        later = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(1_700_000_060))
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(1_700_000_000))
        for headers, expected in (({"Retry_After": 7}, 7000), ({"Retry_After": later, "Date": date}, 60000), ({}, None),
                                  ({"retry_after_ms": 1250, "Retry_After": 9}, 1250), ({"Retry_After": "soon"}, None)):
            error = self.engine(self.server(status(429, **headers))).run(user("hi")).error
            self.assertEqual((error["code"], error.get("retry_after_ms")), ("RATE_LIMITED", expected), headers)

    def test_a_server_that_is_not_there(self):
        gone = self.good()
        gone.close()
        error = self.engine(gone).run(user("hi")).error
        self.assertEqual((error["code"], error["reason_code"]), ("UNAVAILABLE", "OFFLINE"))
        self.assert_whole(self.engine(gone, self.good()).run(user("hi")))

    def test_silence_ends_by_the_limits_of_the_configuration(self):
        good = self.good()
        waits = self.server(silent())
        outcome = self.engine(waits, timeouts={"first_byte_ms": 50}).run(user("hi"))
        self.assertEqual(outcome.error["code"], "OVERLOADED")
        self.assertTrue(waits.closed.acquire(timeout=WAIT))
        self.assert_whole(self.engine(waits, good, timeouts={"first_byte_ms": 50}).run(user("hi")))
        stops = self.server(silent(head() + HALF))
        outcome = self.engine(stops, good, timeouts={"silence_ms": 50}).run(user("hi"))
        self.assertEqual((outcome.error["code"], self.text().startswith(outcome.text)), ("OVERLOADED", True))
        self.assert_whole(self.engine(stops, good, timeouts={"silence_ms": 50}).run(user("hi"), restartable=True))

    def test_a_model_that_no_endpoint_has(self):
        error = self.engine(self.good(), models=["a"]).run(user("hi"), model="b").error
        self.assertEqual((error["code"], error["param"], error["elsewhere"]), ("NOT_FOUND", "model", True))

    def test_what_a_dialect_lacks_goes_to_another_endpoint(self):
        responses, chat = self.good("responses"), self.good("chat")
        rows = [{"url": responses.url, "dialect": "responses"}, {"url": chat.url, "dialect": "chat"}]
        engine = Engine(PROGRAM, {"FM_ENGINE_CONFIG": json.dumps({"endpoints": rows})})
        self.addCleanup(engine.close)
        engine.initialize()
        engine.load(None)
        self.assert_whole(engine.run(user("hi"), seed=1))
        self.assertEqual((len(responses.requests), len(chat.requests)), (0, 1))


class Failovers(Case):
    def test_no_byte_is_lost_or_doubled(self):
        """The first endpoint is cut at a random place. The second one answers only if the first had no output yet."""
        self.fail_over(FAILOVERS, False)

    def test_no_answer_is_lost_that_nobody_has_seen(self):
        """The first endpoint is cut while it sends an answer that is not streamed. The second endpoint always answers."""
        self.fail_over(FAILOVERS // 4, True)

    def fail_over(self, count, restartable):
        random.seed(18)
        for dialect in DIALECTS:
            data, text = whole(stream(dialect)), self.text(dialect)
            at = [0]
            bad = self.server(lambda server, connection, request: connection.sendall(data[:at[0]]) or False)
            good = self.good(dialect)
            engine = self.engine(bad, good, dialect=dialect)
            moved = 0
            each = -(-count // len(DIALECTS))
            for _ in range(each):
                at[0] = random.randrange(len(data) // 3)
                before = len(good.requests)
                outcome = engine.run(user("hi"), max_tokens=12, restartable=restartable)
                if len(good.requests) > before:
                    moved += 1
                    self.assert_whole(outcome, dialect)
                else:
                    self.assertEqual((outcome.reason, outcome.error["code"]), ("error", "OVERLOADED"))
                    self.assertTrue(outcome.text and text.startswith(outcome.text))
            self.assertGreater(moved, 0)
            self.assertTrue(moved == each or not restartable)
            self.assertEqual(len(bad.requests), len(good.requests) + each - moved)

    def test_a_server_that_died_is_asked_once_more(self):
        """A router may have another worker. The router is not asked again if the host already has a part of the answer."""
        for dialect in DIALECTS:
            data, text = whole(stream(dialect)), self.text(dialect)
            for at in (0, 30, len(data) // 4, len(data) // 2, len(data) - 100):
                for restartable in (False, True):
                    def answer(server, connection, request, at=at, data=data):
                        connection.sendall(data[:at] if len(server.requests) == 1 else data)
                        return len(server.requests) > 1
                    server = self.server(answer)
                    outcome = self.engine(server, dialect=dialect).run(user("hi"), max_tokens=12, restartable=restartable)
                    if len(server.requests) == 1:
                        self.assertFalse(restartable, at)
                        self.assertEqual((outcome.error["code"], outcome.error.get("elsewhere")), ("OVERLOADED", None))
                        self.assertTrue(outcome.text and text.startswith(outcome.text))
                    else:
                        self.assert_whole(outcome, dialect)
                        self.assertEqual((outcome.usage["input_tokens"], outcome.usage["output_tokens"]), (35, 12))

    def test_a_router_whose_worker_died_is_asked_until_it_has_left_that_one(self):
        """vllm-router, in the dialects that it only passes on, answers 502 until it has counted two failures."""
        for wanting in (1, 2, 3):
            def answer(server, connection, request, wanting=wanting):
                count = len(server.requests)
                act = says(head() + HALF, more=False) if count == 1 else status(502) if count <= wanting else says(whole(CHAT))
                return act(server, connection, request)
            server = self.server(answer)
            outcome = self.engine(server).run(user("hi"), restartable=True)
            self.assert_whole(outcome)
            self.assertEqual((len(outcome.restarts), len(server.requests)), (1, wanting + 1))

    def test_which_server_is_asked_once_more(self):
        """After all other servers have refused, the server that died is asked again. Then its answer counts."""
        def dies_once(server, connection, request):
            connection.sendall(head() + HALF if len(server.requests) == 1 else whole(CHAT))
            return False
        dying, busy = self.server(dies_once), self.server(status(429))
        outcome = self.engine(dying, busy).run(user("hi"), restartable=True)
        self.assert_whole(outcome)
        self.assertEqual((len(outcome.restarts), len(dying.requests), len(busy.requests)), (1, 2, 1))
        gone = self.server(lambda server, connection, request: server.close() or connection.sendall(head() + HALF) or False)
        error = self.engine(gone).run(user("hi"), restartable=True).error
        self.assertEqual((error["code"], error["elsewhere"]), ("OVERLOADED", True))
        self.assertRegex(error["detail"], f"^{gone.host} can't be reached.*; before that: {gone.host} (broke|ended)")

    def test_whose_error_it_is(self):
        """The host gets the error of the server that was asked last, with all its details. The text names the earlier errors."""
        def turns(*answers):
            return self.server(lambda server, *rest: answers[min(len(server.requests), len(answers)) - 1](server, *rest))
        died = status(500, error_body("a long story"))
        busy = status(429, error_body("slow down"), Retry_After=5)
        for servers, last, code, reason_code, retry_ms, before in [
                ([turns(died, busy)], "status 429: slow down", "RATE_LIMITED", None, 5000, ["500"]),
                ([turns(died, status(400, error_body("no such schema")))], "status 400: no such schema", "INVALID_REQUEST", None,
                 None, ["500"]),
                ([turns(died, status(401))], "status 401", "UNAVAILABLE", "AUTH_FAILED", None, ["500"]),
                ([turns(status(502))], "status 502", "OVERLOADED", None, None, ["502"]),
                ([turns(died), turns(busy)], "status 500: a long story", "OVERLOADED", None, None, ["500", "429"]),
                ([turns(died, busy), turns(status(401))], "status 429: slow down", "RATE_LIMITED", None, 5000, ["500", "401"]),
                ([turns(status(401)), turns(busy)], "status 429: slow down", "RATE_LIMITED", None, 5000, ["401"]),
        ]:
            with self.subTest(last=last, before=before):
                error = self.engine(*servers).run(user("hi")).error
                asked = (servers * 2)[:len(before) + 1]
                self.assertEqual((error["code"], error.get("reason_code"), error.get("retry_after_ms")),
                                 (code, reason_code, retry_ms))
                told = ", ".join(f"{server.host} answered with status {each}" for server, each in zip(asked, before))
                self.assertEqual(error["detail"], f"{asked[-1].host} answered with {last}; before that: {told}")

    def test_many_servers_before_the_last_one(self):
        """Eight servers, each with a long error text: what does not fit is cut between characters."""
        servers = [self.server(status(503, error_body("é" * 400))) for _ in range(8)]
        detail = self.engine(*servers).run(user("hi")).error["detail"]
        self.assertTrue(detail.startswith(f"{servers[-1].host} answered with status 503: éé"), detail)
        self.assertIn(f"; before that: {servers[0].host} answered with status 503, {servers[1].host} answered", detail)
        self.assertNotIn("\ufffd", detail)

    def test_an_abort_after_another_try_has_begun(self):
        def answer(server, connection, request):
            act = resets if len(server.requests) == 1 else silent
            return act(head() + HALF)(server, connection, request)
        server = self.server(answer)
        engine = self.engine(server)
        job = engine.start(user("hi"), restartable=True)
        events = engine.events(job)
        names = [next(events)[0]]
        while "job.restarted" not in names or names[-1] != "job.delta":
            names.append(next(events)[0])
        engine.notify("job.abort", {"job": job})
        self.assertEqual(list(events)[-1][1]["reason"], "aborted")
        self.assertTrue(server.closed.acquire(timeout=WAIT))


class Aborts(Case):
    def test_an_abort_closes_the_connection(self):
        for data in (b"", head(), head() + HALF):
            server = self.server(silent(data))
            engine = self.engine(server)
            job = engine.start(user("hi"))
            events = engine.events(job)
            if data.endswith(HALF):
                next(events)
            else:
                deadline = time.monotonic() + WAIT
                while not server.requests and time.monotonic() < deadline:
                    time.sleep(0.01)
            start = time.monotonic()
            engine.notify("job.abort", {"job": job})
            self.assertEqual(list(events)[-1][1]["reason"], "aborted")
            self.assertTrue(server.closed.acquire(timeout=WAIT))
            self.assert_soon(time.monotonic() - start, GRACE)

    def test_an_abort_harms_no_other_job(self):
        gate = threading.Event()

        def answer(server, connection, request):
            connection.sendall(head(Transfer_Encoding="chunked"))
            gate.wait(WAIT)
            connection.sendall(chunked(CHAT))
            return True

        engine = self.engine(self.server(answer))
        jobs = [engine.start(user("hi")) for _ in range(8)]
        for job in jobs[::2]:
            engine.notify("job.abort", {"job": job})
        self.assertEqual([outcome.reason for outcome in engine.outcomes(jobs[::2])], ["aborted"] * 4)
        gate.set()
        for outcome in engine.outcomes(jobs[1::2]):
            self.assert_whole(outcome)


class Availability(Case):
    def available(self, *endpoints, **members):
        reply, _ = self.engine(*endpoints, **members).call("engine.available", {})
        return reply["result"]

    def test_by_what_the_server_says(self):
        def for_models(code, **headers):
            data = head(code, "application/json", Content_Length=2, **headers) + b"{}"
            return lambda server, connection, request: connection.sendall(data)
        gone = self.good()
        gone.close()
        for server, available, reason in ((self.good(), True, None), (gone, False, "OFFLINE"),
                                          (self.server(for_models(401)), False, "AUTH_FAILED"),
                                          (self.server(for_models(402)), False, "QUOTA"),
                                          (self.server(for_models(404)), True, None),
                                          (self.server(for_models(500)), True, None),
                                          (self.server(for_models(429, Retry_After=3)), False, "RATE_LIMITED"),
                                          (self.server(for_models(302)), False, "NOT_CONFIGURED")):
            result = self.available(server)
            self.assertEqual((result["available"], result.get("reason_code")), (available, reason), result)
        self.assertTrue(self.available(gone, self.good())["available"], "one is enough")
        self.assertEqual(self.available(self.server(for_models(429, Retry_After=3)))["ttl_ms"], 3000)

    def test_a_server_that_says_nothing(self):
        start = time.monotonic()
        result = self.available(self.server(lambda server, connection, request: connection.recv(1) or False))
        self.assertEqual((result["available"], result["reason_code"]), (False, "OFFLINE"))
        self.assert_soon(time.monotonic() - start, 3)

    def test_the_models_of_the_configuration(self):
        result = self.available(self.good(), models=["a", {"id": "b", "context_length": 9}])
        self.assertEqual(result["models"], [{"id": "a"}, {"id": "b", "context_length": 9}])

    def test_a_configuration_that_is_wrong(self):
        for config, param in (({"endpoints": [{"url": "http://far.example", "dialect": "chat"}]}, "endpoints[0].url"),
                              ({"endpoints": []}, "endpoints")):
            engine = Engine(PROGRAM, {"FM_ENGINE_CONFIG": json.dumps(config)})
            self.addCleanup(engine.close)
            engine.initialize()
            result = engine.call("engine.available", {})[0]["result"]
            self.assertEqual((result["available"], result["reason_code"]), (False, "NOT_CONFIGURED"))
            self.assertIn(param, result["detail"])
            error = engine.load(None)[0]["error"]
            self.assertEqual((error["code"], error["reason_code"], error["param"]), ("UNAVAILABLE", "NOT_CONFIGURED", param))


class Tls(Case):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.good_context, cls.good_cert = certificate(folder.name, "good", 2)
        cls.name_context, cls.name_cert = certificate(folder.name, "name", 2, "/CN=other.example", "DNS:other.example")
        cls.old_context, cls.old_cert = certificate(folder.name, "old", -1)

    def test_a_certificate_that_is_trusted(self):
        server = self.server(says(whole(CHAT)), self.good_context)
        self.assert_whole(self.engine(server, ca_file=self.good_cert).run(user("hi")))

    def test_certificates_that_are_not(self):
        for context, ca_file in ((self.name_context, self.name_cert), (self.old_context, self.old_cert),
                                 (self.good_context, None)):
            server = self.server(says(whole(CHAT)), context)
            more = {"ca_file": ca_file} if ca_file else {}
            engine = self.engine(server, self.good(), **more)
            alone = self.engine(server, **more)
            error = alone.run(user("hi")).error
            self.assertEqual((error["code"], error["reason_code"]), ("UNAVAILABLE", "TLS_FAILED"), error)
            self.assertEqual(server.requests, [], "nothing was sent, not even a head")
            self.assert_whole(engine.run(user("hi")))
            result = alone.call("engine.available", {})[0]["result"]
            self.assertEqual((result["available"], result["reason_code"]), (False, "TLS_FAILED"))


class Keys(Case):
    """A key is only in the header that carries it."""

    def look_everywhere(self, engine, *texts):
        needle = CANARY.encode()
        for text in texts:
            self.assertNotIn(CANARY, text)
        for name in ("environ", "cmdline"):
            with open(f"/proc/{engine.process.pid}/{name}", "rb") as file:
                self.assertNotIn(needle, file.read())
        engine.hang_up()
        engine.process.wait(WAIT)
        engine.threads[1].join()
        self.assertNotIn(needle, engine.stderr)

    def test_where_it_is_not(self):
        if not os.path.exists("/proc/self/environ"):
            self.skipTest("needs /proc")
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(CANARY + "\n")
            file.flush()
            for members, env in (({"key_env": "FM_TEST_CANARY"}, {"FM_TEST_CANARY": CANARY}), ({"key_file": file.name}, {})):
                for log_level in ("off", "error", "warn", "info", "debug"):
                    bad = self.server(status(401, error_body(f"wrong key: {CANARY}, or {CANARY[3:14]}")))
                    engine = self.engine(bad, env=env, log_level=log_level, **members)
                    outcome = engine.run(user("hi"))
                    self.assertEqual(bad.requests[0].headers["authorization"], "Bearer " + CANARY)
                    available = engine.call("engine.available", {})[0]["result"]
                    self.assertNotIn(CANARY[3:14], outcome.error["detail"])
                    self.look_everywhere(engine, json.dumps(outcome.error), json.dumps(available))

    def test_other_processes_of_the_user_can_not_read_it(self):
        """Other processes can't read the engine's memory, and there is no core file."""
        if os.geteuid() != 0 or not os.path.exists("/proc/self/environ"):
            self.skipTest("needs root, to be somebody else, and /proc")
        rows = [{"url": self.good().url, "dialect": "chat", "key_env": "FM_TEST_CANARY"}]
        with tempfile.TemporaryDirectory() as folder:  # a folder that every user may read
            os.chmod(folder, 0o755)
            program = shutil.copy(PROGRAM, folder)
            engine = Engine(program, {"FM_ENGINE_CONFIG": json.dumps({"endpoints": rows}), "FM_TEST_CANARY": CANARY},
                            user=65534, group=65534, extra_groups=[])
            self.addCleanup(engine.close)
            self.assertTrue(engine.initialize()["ok"])
            reads = subprocess.run(["/bin/cat", f"/proc/{engine.process.pid}/environ"], user=65534, group=65534,
                                   extra_groups=[], capture_output=True, text=True, env={})
            self.assertIn("Permission denied", reads.stderr)
            engine.process.send_signal(signal.SIGSEGV)  # a crash
            engine.process.wait(WAIT)
            self.assertEqual([name for name in os.listdir(folder) if "core" in name], [])

    def test_the_header_that_a_dialect_has(self):
        for dialect, more, name, value in (("messages", {}, "x-api-key", CANARY),
                                           ("chat", {"key_header": "api-key"}, "api-key", CANARY),
                                           ("responses", {}, "authorization", "Bearer " + CANARY)):
            server = self.good(dialect)
            engine = self.engine(server, dialect=dialect, env={"FM_TEST_CANARY": CANARY}, key_env="FM_TEST_CANARY", **more)
            self.assert_whole(engine.run(user("hi"), max_tokens=12), dialect)
            self.assertEqual(server.requests[0].headers.get(name), value)

    def test_a_session_and_other_headers(self):
        server = self.good()
        engine = self.engine(server, session_header="x-session-id", headers={"x-team": "blue"})
        engine.run(user("hi"), session="00112233aabbccdd")
        engine.run(user("hi"))
        first, second = server.requests
        self.assertEqual((first.headers["x-session-id"], first.headers["x-team"]), ("00112233aabbccdd", "blue"))
        self.assertNotIn("x-session-id", second.headers)


class Output(Case):
    """Tests the parts of an answer besides text."""

    def run_events(self, dialect, *events, **params):
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
        return self.engine(self.server(says(whole(body))), dialect=dialect).run(user("hi"), **params)

    def chat(self, *deltas, finish="stop", **params):
        events = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        return self.run_events("chat", *events, {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}, **params)

    def guided(self):
        """Whether the engine was built with llguidance, which checks schemas."""
        error = self.chat({"content": "{}"}, format={"type": "json_object"}).error
        return error is None or error.get("param") != "format"

    def test_calls(self):
        call = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}]}
        outcome = self.chat(call, finish="tool_calls", tools=[{"name": "f"}])
        self.assertEqual((outcome.reason, outcome.calls), ("stop", [["f", "{}"]]))
        outcome = self.chat({"content": "no"}, tools=[{"name": "f"}], tool_choice={"mode": "required"})
        self.assertEqual((outcome.error["code"], outcome.text), ("INTERNAL", "no"))

    def test_calls_that_are_broken(self):
        """Tests arguments that are not valid or, with `strict`, do not match; a tool that was not offered; a second call."""
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        tools = [{"name": "f", "parameters": schema}, {"name": "g", "parameters": schema, "strict": True}, {"name": "h"}]

        def call(name, arguments, index=0):
            return {"tool_calls": [{"index": index, "id": f"c{index}", "function": {"name": name, "arguments": arguments}}]}
        unlike = "its schema" if self.guided() else None
        for calls, params, words in (
                ([call("f", '{"a": 1}')], {}, None), ([call("f", '{"b": 1}')], {}, None), ([call("g", '{"a": 1}')], {}, None),
                ([call("f", '{"a": ')], {}, "not a JSON object"), ([call("f", "[1]")], {}, "not a JSON object"),
                ([call("f", '{"a": '), call("f", "{}", 1)], {}, "not a JSON object"),
                ([call("f", '{"a": 1}'), call("g", "{", 1)], {}, "g, with arguments that are not a JSON object"),
                ([call("g", '{"a": "x"}')], {}, unlike), ([call("g", "{}")], {}, unlike),
                ([call("g", "")], {}, unlike), ([call("g", "", 0), call("f", "{}", 1)], {}, unlike),
                ([call("x", "{}")], {"tool_choice": {"mode": "required"}}, "may not call"),
                ([call("x", "{}")], {"tool_choice": {"mode": "none"}}, "may not call"), ([call("h", "{}")], {}, None),
                ([call("f", "{}"), call("f", "{}", 1)], {"parallel_tool_calls": False}, "one call alone")):
            outcome = self.chat(*calls, finish="tool_calls", tools=tools, **params)
            self.assertEqual(outcome.error and outcome.error["code"], words and "INTERNAL", (calls, outcome.error))
            self.assertIn(words or "", outcome.error["detail"] if outcome.error else "")
        for finish in ("length", "content_filter"):
            cut = self.chat(call("f", '{"a": '), finish=finish, tools=tools)
            self.assertEqual((cut.error, cut.reason, cut.calls), (None, finish, [["f", '{"a": ']]))
            for calls in (['{"a": ', "{"], ["[1"], ['{"a" 1'], ["{} x"]):
                broken = self.chat(*(call("f", text, i) for i, text in enumerate(calls)), finish=finish, tools=tools)
                self.assertEqual((broken.error or {}).get("code"), "INTERNAL", calls)
                self.assertIn("not a JSON object", broken.error["detail"])

    def test_calls_of_tools_that_are_not_there(self):
        """Such calls become text before other calls. After a call, they are dropped."""
        tools, called = [{"name": "f"}, {"name": "h"}], [["f", "{}"]]

        def call(name, arguments, index=0):
            return {"tool_calls": [{"index": index, "id": f"c{index}", "function": {"name": name, "arguments": arguments}}]}

        def text(name, arguments):
            return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'
        x, end = text("x", '{"a": "b"}'), "}\n</tool_call>"
        only = {"tool_choice": {"mode": "auto", "names": ["f"]}}
        for calls, params, told, said in (
                ([call("x", '{"a": "b"}')], {}, "x", (x, [])), ([call("h", "")], only, "h", (text("h", "{}"), [])),
                ([{"content": "Well."}, call("x", '{"a": "b"}')], {}, "x", (f"Well.\n{x}", [])),
                ([call("x", '{"a": "b"}'), call("y", "{", 1)], {}, "x", (f'{x}\n{text("y", "{")}', [])),
                ([call("x", '{"a": "b"}'), call("f", "", 1)], {}, "x", (x, called)),
                ([call("f", "{}"), call("x", "{}", 1), call("f", "{}", 2)], {}, "x", ("", called * 2))):
            outcome = self.chat(*calls, finish="tool_calls", tools=tools, **params)
            self.assertEqual((outcome.error, outcome.reason, outcome.unknown_tool), (None, "stop", told), calls)
            self.assertEqual((outcome.text, outcome.calls), said)
        cut = self.chat(call("x", '{"a": "b"}'), finish="length", tools=tools)
        self.assertEqual((cut.reason, cut.text), ("length", x.removesuffix(end)))
        name = "\u00e9" * 40
        self.assertEqual(self.chat(call(name, "{}"), finish="tool_calls", tools=tools).unknown_tool, name[:32])

    def test_a_text_that_is_longer_than_a_frame(self):
        """A very long text arrives whole, in several frames. Data that the host has to send back may not be as long: such data is
        an error."""
        text = "\u0001" * 1_000_000 + "x" * 9_000_000
        outcome = self.chat({"content": text})
        self.assertEqual((outcome.error, outcome.reason, len(outcome.text)), (None, "stop", len(text)))
        self.assertEqual(outcome.text, text)
        block = {"type": "redacted_thinking", "data": "x" * 300_000}
        error = self.run_events("messages", {"type": "content_block_start", "content_block": block}).error
        self.assertEqual(error["code"], "INTERNAL")
        self.assertIn("262144", error["detail"])

    def test_a_refusal(self):
        outcome = self.chat({"refusal": "I "}, {"refusal": "won't"})
        self.assertEqual((outcome.reason, outcome.refusal, outcome.text), ("stop", "I won't", ""))

    def test_a_filter(self):
        self.assertEqual(self.chat({"content": "a"}, finish="content_filter").reason, "content_filter")

    def test_a_stop_string_is_looked_for_here_too(self):
        outcome = self.chat({"content": "one, t"}, {"content": "wo, three"}, stop=["two"])
        self.assertEqual((outcome.reason, outcome.text), ("stop", "one, "))

    def test_formats_are_checked(self):
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        strict = {"type": "json_schema", "schema": schema, "strict": True}
        loose = {"type": "json_schema", "schema": schema}
        if not self.guided():
            self.skipTest("the engine was built without llguidance")
        for text, format, code, schema_error in (
                ('{"a": 1}', strict, None, False), ('{"a": "1"}', strict, "INTERNAL", False),
                ("nonsense", strict, "INTERNAL", False),
                ('{"a": "1"}', loose, None, True), ("nonsense", loose, None, True), ('{"a": 1}', loose, None, False),
                ('{"x": 1}', {"type": "json_object"}, None, False), ("[1]", {"type": "json_object"}, "INTERNAL", False),
                ("", strict, "INTERNAL", False)):
            outcome = self.chat({"content": text}, format=format)
            self.assertEqual((outcome.error and outcome.error["code"], outcome.schema_error is not None), (code, schema_error),
                             (text, format, outcome.error))

    def test_what_to_do_about_a_format_that_is_ignored(self):
        """Only in chat does llama.cpp's server keep to formats."""
        strict = {"type": "json_schema", "schema": {"type": "object"}, "strict": True}
        answers = {
            "chat": [{"choices": [{"index": 0, "delta": {"content": "no"}, "finish_reason": "stop"}]}],
            "responses": [{"type": "response.output_text.delta", "delta": "no"},
                          {"type": "response.completed", "response": {}}],
            "messages": [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "no"}},
                         {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}],
        }
        for dialect, advice in (("chat", "it may ignore formats; try another server or model"),
                                ("responses", "it may ignore formats in the dialect responses; try the dialect chat"),
                                ("messages", "it may ignore formats in the dialect messages; try the dialect chat")):
            error = self.run_events(dialect, *answers[dialect], format=strict).error
            if error.get("param") == "format":
                self.skipTest("the engine was built without llguidance")
            self.assertEqual(error["code"], "INTERNAL")
            self.assertIn(f"has not kept to the format ({advice}): it is not JSON", error["detail"])

    def test_no_more_likely_tokens_than_were_asked_for(self):
        """llama.cpp's server sends some even if none are requested; OpenAI's sends none."""
        tops = [{"token": token, "logprob": -0.5, "bytes": [ord(token)]} for token in "abc"]
        entry = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": tops}
        event = {"choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [entry]},
                              "finish_reason": "stop"}]}
        for asked in (0, 2, 20):
            outcome = self.run_events("chat", event, logprobs=asked)
            self.assertEqual([len(told["top"]) for told in outcome.logprobs], [min(asked, 3)])

    def test_vectors(self):
        body = json.dumps({"data": [{"index": 1, "embedding": "AAAAAAAAgD8="}, {"index": 0, "embedding": [3, 4]}],
                           "usage": {"prompt_tokens": 5}}).encode()
        server = self.server(says(head(kind="application/json", Content_Length=len(body)) + body))
        engine = self.engine(server)
        engine.next_job += 1
        engine.notify("job.start", {"job": engine.next_job, "embed": ["a", "b"]})
        events = list(engine.events(engine.next_job))
        self.assertEqual([name for name, _ in events], ["job.accepted", "job.embedding", "job.embedding", "job.finished"])
        self.assertEqual(events[0][1], {"job": 1, "input_tokens": 5, "dimension": 2})
        self.assertEqual([params["vector"] for _, params in events[1:3]], ["mpkZP83MTD8=", "AAAAAAAAgD8="])
        self.assertEqual(server.requests[0].path, "/v1/embeddings")

    def test_vectors_that_are_none(self):
        for vector in ([3, "4"], [3, None], [True, 4], ["x", "y"], {}, "AAAA", [1e999]):
            body = json.dumps({"data": [{"index": 0, "embedding": vector}]}).replace("Infinity", "1e999").encode()
            engine = self.engine(self.server(says(head(kind="application/json", Content_Length=len(body)) + body)))
            engine.next_job += 1
            engine.notify("job.start", {"job": engine.next_job, "embed": ["a"]})
            finished = list(engine.events(engine.next_job))[-1][1]
            self.assertEqual((finished["reason"], finished["error"]["code"]), ("error", "INTERNAL"), vector)
            self.assertIn("vectors that can't be understood", finished["error"]["detail"])


def main():
    global PROGRAM
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()


if __name__ == "__main__":
    main()
