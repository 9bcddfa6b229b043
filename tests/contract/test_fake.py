"""Tests the fake engine's script and its faults, on which the tests of the front rely.

    test_fake.py PROGRAM
"""

import json
import os
import signal
import sys
import time
import unittest

from engine import EXIT, GRACE, WAIT, Engine, Outcome, TimedTest, frame, user

PROGRAM = None


def script(*steps):
    return user(json.dumps(list(steps)))


class Case(TimedTest):
    def start(self, **env):
        engine = Engine(PROGRAM, env)
        self.addCleanup(engine.close)
        return engine

    def ready(self, **env):
        engine = self.start(**env)
        self.assertTrue(engine.initialize()["ok"])
        self.assertTrue(engine.load(None)[0]["ok"])
        return engine


class Scripts(Case):
    def setUp(self):
        self.engine = self.ready()

    def deltas(self, messages, **params):
        job = self.engine.start(messages, **params)
        events = list(self.engine.events(job))
        return [p["text"] for name, p in events if name == "job.delta"], Outcome(events)

    def test_echo(self):
        for text, words in (("one two  three", ["one", " two", "  three"]),
                            (" lead and trail \n", [" lead", " and", " trail \n"]),
                            ("", []), ("  ", ["  "]), ("h\u00e9llo \u4e16\u754c", ["h\u00e9llo", " \u4e16\u754c"]),
                            ('{"no":"array"}', ['{"no":"array"}']), ("[broken", ["[broken"])):
            texts, outcome = self.deltas(user(text))
            self.assertEqual((texts, outcome.reason), (words, "stop"), text)

    def test_the_last_user_message_counts_and_all_are_input(self):
        texts, outcome = self.deltas([{"role": "system", "content": "a b c"}, *user("not me"),
                                      {"role": "assistant", "content": "d e"}, *user("me"),
                                      {"role": "assistant", "content": "f"}])
        self.assertEqual((texts, outcome.accepted), (["me"], 9))

    def test_steps(self):
        for steps, texts, reason in (
            ([], [], "stop"),
            (["a", "b c"], ["a", "b c"], "stop"),
            ([{"repeat": ["x", 3]}], ["x", "x", "x"], "stop"),
            ([{"repeat": ["x", 0]}], [], "stop"),
            (["a", {"finish": "stop"}, "b"], ["a"], "stop"),
            (["a", {"finish": "length"}], ["a"], "length"),
            ([{"finish": "content_filter"}], [], "content_filter"),
            ([{"sleep_ms": 1}, "a"], ["a"], "stop"),
            ([{"prefill_ms": 1}, "a"], ["a"], "stop"),
            ([{"try": "thread"}, {"try": "read=/no such file"}], ["ok", "ENOENT"], "stop"),
            (["a", {"tool_call": {"name": "f", "arguments": "{}"}}, {"finish": "length"}], ["a"], "length"),
        ):
            got, outcome = self.deltas(script(*steps))
            self.assertEqual((got, outcome.reason), (texts, reason), steps)

    def test_error(self):
        texts, outcome = self.deltas(script("half", {"error": "it broke"}))
        self.assertEqual((texts, outcome.error), (["half"], {"code": "INTERNAL", "detail": "it broke"}))

    def test_wrong_steps_are_named(self):
        for step in (5, None, {}, {"dance": 1}, {"finish": "soon"}, {"repeat": ["x"]}, {"repeat": ["x", -1]}, {"sleep_ms": "1"},
                     {"hang": "firm"}, {"signal": "HUP"}, {"exit": "0"},
                     {"try": "flying"}, {"try": "socket=1"}, {"try": 1}, {"sleep_ms": 1, "exit": 1}, {"reasoning": 1},
                     {"tool_call": "f"}, {"tool_call": {"name": "f"}}, {"tool_call": {"name": "f", "arguments": {}}},
                     {"tool_call": {"name": "f", "arguments": "{}", "id": "1"}}):
            texts, outcome = self.deltas(script("a", step))
            self.assertEqual((texts, outcome.reason, outcome.error["code"]), ([], "error", "INVALID_REQUEST"), step)
            self.assertIn("step 1", outcome.error["detail"])

    def test_tool_calls(self):
        call = {"tool_call": {"name": "f", "arguments": '{"a": 1, "b": 2}'}}
        job = self.engine.start(script("let me see", call, {"repeat": [" ", 2]}, {"tool_call": {"name": "g", "arguments": ""}}))
        events = list(self.engine.events(job))
        outcome = Outcome(events)
        self.assertEqual((outcome.text, outcome.reason), ("let me see", "stop"))
        self.assertEqual(outcome.calls, [["f", '{"a": 1, "b": 2}  '], ["g", ""]])
        pieces = [params["arguments"] for name, params in events if name == "job.tool_delta"]
        self.assertEqual(pieces, ['{"a":', " 1,", ' "b":', " 2}", " ", " "])
        self.assertEqual(outcome.usage["output_tokens"], 7)

    def test_a_tool_that_has_to_be_called(self):
        tools = [{"name": "f"}, {"name": "g"}]
        for choice, calls in (({"mode": "auto"}, []), ({"mode": "none"}, []), ({"mode": "required"}, [["f", "{}"]]),
                              ({"mode": "required", "names": ["g"]}, [["g", "{}"]])):
            outcome = self.engine.run(user("hi"), tools=tools, tool_choice=choice)
            self.assertEqual((outcome.calls, outcome.text), (calls, "" if calls else "hi"), choice)
        _, outcome = self.deltas(script("said"), tools=tools, tool_choice={"mode": "required"})
        self.assertEqual((outcome.calls, outcome.text), ([], "said"))

    def test_what_a_tool_said_is_echoed(self):
        called = {"role": "assistant", "tool_calls": [{"id": "1", "name": "f", "arguments": "{}"}]}
        said = {"role": "tool", "content": '[{"exit":5}]', "tool_call_id": "1"}
        self.assertEqual(self.engine.run([*user("hi"), called, said]).text, said["content"])
        self.assertEqual(self.engine.run([*user("hi"), called, said, *user("thanks")]).text, "thanks")

    def test_a_stop_string_over_tokens(self):
        texts, outcome = self.deltas(script("on", "e S", "T", "OP", " two"), stop=["STOP"])
        self.assertEqual((texts, outcome.reason, outcome.usage["output_tokens"]), (["on", "e "], "stop", 4))

    def test_tokens_without_text_are_told_now_and_then(self):
        pause = {"sleep_ms": 40}
        for first, stop, text in (("", None, ""), ("a", ["a" * 12 + "b"], "a" * 12)):
            job = self.engine.start(script(*[first, pause] * 12), **({"stop": stop} if stop else {}))
            times, events = [], []
            for event in self.engine.events(job):
                times.append(time.monotonic())
                events.append(event)
            outcome = Outcome(events)
            self.assertEqual((outcome.text, outcome.usage["output_tokens"]), (text, 12))
            # 12 tokens take 480 ms or more. A sign comes at the first token, and the next sign 100 ms later or a little more
            seconds = times[-1] - times[0]
            self.assertEqual(outcome.signs[0], 1)
            self.assert_undisturbed(len(outcome.signs) >= 3, outcome.signs)
            self.assertLessEqual(len(outcome.signs), 2 + seconds / 0.1)

    def test_a_flood_of_tokens_without_text_is_no_flood_of_messages(self):
        start = time.monotonic()
        _, outcome = self.deltas(script({"repeat": ["", 100000]}))
        self.assertEqual(outcome.usage["output_tokens"], 100000)
        self.assertLessEqual(len(outcome.signs), 2 + (time.monotonic() - start) / 0.1)

    def test_sleep_and_hang_end_with_an_abort(self):
        for steps in ([{"sleep_ms": 60000}], [{"hang": "soft"}], [{"prefill_ms": 60000}], [{"repeat": ["x", 10**9]}]):
            job = self.engine.start(script(*steps))
            events = self.engine.events(job)
            next(events)
            start = time.monotonic()
            self.engine.notify("job.abort", {"job": job})
            self.assertEqual(list(events)[-1][1]["reason"], "aborted", steps)
            self.assert_soon(time.monotonic() - start, GRACE, steps)

    def test_eight_side_by_side(self):
        hung = [self.engine.start(script("in", {"hang": "soft"})) for _ in range(7)]
        last = self.engine.start(user("done"))
        while True:
            message = self.engine.receive()
            if message["method"] == "job.finished":
                break
        self.assertEqual(message["params"]["job"], last)
        for job in hung:
            self.engine.notify("job.abort", {"job": job})
        reasons = {}
        while len(reasons) < 7:
            message = self.engine.receive()
            if message["method"] == "job.finished":
                reasons[message["params"]["job"]] = message["params"]["reason"]
        self.assertEqual(reasons, {job: "aborted" for job in hung})

    def test_raw_stdout_stands_between_frames(self):
        job = self.engine.start(script("a", {"stdout": "oops"}, "b"))
        while "broken" not in (message := self.engine.receive()):
            self.assertEqual(message["params"]["job"], job)
        self.assertTrue(message["broken"].startswith(b"oopsContent-Length"), message)

    def test_abrupt_ends(self):
        for step, status in (({"exit": 5}, 5), ({"signal": "KILL"}, -signal.SIGKILL), ({"signal": "ABRT"}, -signal.SIGABRT)):
            engine = self.ready()
            engine.start(script("a", step, "never"))
            got, _ = engine.wait_exit(WAIT)
            self.assertEqual(got, status, step)
            engine.threads[0].join()
            texts = []
            while message := engine.messages.get():
                texts.append(message["params"].get("text"))
            self.assertIn("a", texts)
            self.assertNotIn("never", texts)

    def test_a_hard_hang_ignores_the_abort_but_not_the_end(self):
        job = self.engine.start(script("a", {"hang": "hard"}))
        for awaited in ("job.delta", "job.progress"):  # the second one shows that the engine hangs
            while self.engine.receive()["method"] != awaited:
                pass
        self.engine.notify("job.abort", {"job": job})
        with self.assertRaises(AssertionError):
            self.engine.receive(timeout=GRACE)
        self.engine.process.stdin.close()
        status, seconds = self.engine.wait_exit(WAIT)
        self.assertEqual(status, 0)
        self.assert_soon(seconds, EXIT)

    def test_the_end_comes_though_nobody_reads(self):
        engine = self.ready()
        engine.messages.maxsize = 1  # the reader stops, the pipe fills
        engine.start(script({"repeat": ["x" * 1000, 10**7]}))
        while engine.messages.qsize() < 1:
            time.sleep(0.001)
        engine.process.stdin.close()
        status, seconds = engine.wait_exit(WAIT)
        self.assertEqual(status, 0)
        self.assert_soon(seconds, EXIT)
        while engine.messages.get():
            pass


class Faults(Case):
    def initializing(self, fault):
        engine = self.start(FM_ENGINE_FAKE_INIT=fault)
        engine.send_raw(frame({"jsonrpc": "2.0", "id": 1, "method": "engine.initialize", "params": {"protocol_version": 1}}))
        return engine

    def test_initialize(self):
        self.assertEqual(self.initializing("version:9").receive()["result"]["protocol_version"], 9)
        self.assertIn("broken", self.initializing("garbage").receive())
        self.assertEqual(self.initializing("crash").wait_exit(WAIT)[0], -signal.SIGABRT)
        self.assertEqual(self.initializing("network").receive()["result"]["sandbox"]["network"], "allowed")
        engine = self.initializing("hang")
        with self.assertRaises(AssertionError):
            engine.receive(timeout=0.2)
        engine.process.stdin.close()
        self.assertEqual(engine.wait_exit(WAIT)[0], 0)

    def test_load(self):
        for fault, status in (("crash", -signal.SIGABRT), ("exit", 3)):
            engine = self.start(FM_ENGINE_FAKE_LOAD=fault)
            engine.initialize()
            with self.assertRaises(AssertionError):
                engine.load("/models/some.gguf")
            self.assertEqual(engine.wait_exit(WAIT)[0], status)
        engine = self.start(FM_ENGINE_FAKE_LOAD="error")
        engine.initialize()
        result, _ = engine.load("/models/some.gguf")
        self.assertEqual((result["ok"], result["error"]["code"]), (False, "UNAVAILABLE"))
        self.assertIn("/models/some.gguf", result["error"]["detail"])
        engine = self.start(FM_ENGINE_FAKE_LOAD="slow:200")
        engine.initialize()
        start = time.monotonic()
        result, progress = engine.load(None)
        self.assertGreaterEqual(time.monotonic() - start, 0.199)  # the fake engine counts whole milliseconds
        self.assertEqual((result["ok"], len(progress), progress[-1]), (True, 11, 1))

    def test_calls(self):
        engine = self.ready(FM_ENGINE_FAKE_CALLS="auto")
        tools = [{"name": "f"}, {"name": "g"}]
        for params, calls in (({}, [["f", "{}"]]), ({"tool_choice": {"mode": "none"}}, [])):
            self.assertEqual(engine.run(user("hi"), tools=tools, **params).calls, calls)
        self.assertEqual(engine.run(user("hi")).text, "hi")
        done = [*user("hi"), {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "f", "arguments": "{}"}]},
                {"role": "tool", "tool_call_id": "1", "content": "done"}]
        self.assertEqual(engine.run(done, tools=tools).text, "done")


def main():
    global PROGRAM
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()


if __name__ == "__main__":
    main()
