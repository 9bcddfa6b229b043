"""The watchdog: each of the four limits fires, is named, and ends the work in the engine."""

import os
import signal
import time

import wire
from wire import SLOW, HelperTest, check_stream, script


class Limits(HelperTest):
    def assert_timeout(self, result, limit, ms):
        error = self.assert_error(result, "TIMEOUT", openai_code="timeout")
        self.assertEqual((error["limit"], error["limit_ms"]), (limit, ms))
        self.assertEqual(error["openai"]["status"], 408)
        self.assertIn(limit, error["detail"])

    def run_limited(self, helper, prompt, **fm):
        before = time.monotonic()
        events, result = helper.collect(self.create(helper, prompt, fm=fm))
        return events, result, (time.monotonic() - before) * 1000

    def warm(self):
        helper = self.helper()
        helper.call("responses.create", {"input": "x"})
        return helper

    def test_total_in_prefill(self):
        helper = self.warm()
        engine = helper.engine_pid()
        events, result, ms = self.run_limited(helper, script({"prefill_ms": 60000}, "x"), timeout_ms=200)
        self.assert_timeout(result, "total", 200)
        self.assertEqual([e["type"] for e in events][-2:], ["error", "response.failed"])
        check_stream(self, events, result)
        self.assertGreaterEqual(ms, 199)  # both sides round to milliseconds
        self.assertLess(ms, 500 * SLOW)
        self.assertEqual(helper.engine_pid(), engine, "the engine stopped the work itself and lives on")

    def test_first_token(self):
        _, result, _ = self.run_limited(self.warm(), script({"prefill_ms": 60000}, "x"), first_token_timeout_ms=150)
        self.assert_timeout(result, "first_token", 150)

    def test_no_progress_keeps_what_was_produced(self):
        helper = self.warm()
        events, result, _ = self.run_limited(helper, script("part", {"sleep_ms": 60000}), no_progress_timeout_ms=150)
        self.assert_timeout(result, "no_progress", 150)
        final = check_stream(self, events, result)
        self.assertEqual(final["output"][0]["content"][0]["text"], "part")
        self.assertEqual(final["usage"]["output_tokens"], 1)

    def test_progress_puts_no_progress_off(self):
        steps = [{"repeat": ["x", 1]}, {"sleep_ms": 100}] * 6
        _, result, _ = self.run_limited(self.warm(), script(*steps), no_progress_timeout_ms=int(500 * SLOW))
        self.assertTrue(result["ok"], result)

    def test_tokens_without_text_are_progress(self):
        """What may become a stop string is held back, and a token may have no text: the engine works all the same."""
        held = script(*[step for _ in range(12) for step in ("a", {"sleep_ms": int(100 * SLOW)})])
        silent = script(*[step for _ in range(12) for step in ("", {"sleep_ms": int(100 * SLOW)})])
        limit = int(500 * SLOW)
        for prompt, more in ((held, {"stop": ["a" * 12 + "X"]}), (silent, {})):
            helper = self.warm()
            fm = {"no_progress_timeout_ms": limit, "first_token_timeout_ms": limit}
            result = helper.call("responses.create", {"input": prompt, "fm": fm, **more})
            self.assertTrue(result["ok"], str(result.get("error")))

    def test_queue(self):
        helper = self.warm()
        running = [self.create(helper, script("x", {"hang": "soft"})) for _ in range(8)]
        for call in running:
            helper.event(call, "response.output_text.delta")
        events, result, _ = self.run_limited(helper, "waits", queue_timeout_ms=150)
        self.assertEqual(events, [])
        self.assert_timeout(result, "queue", 150)
        for call in running:
            helper.send("$/cancelRequest", {"id": call})
            self.assert_error(helper.collect(call)[1], "CANCELLED")

    def test_unstreamed(self):
        helper = self.warm()
        result = helper.call("chat.completions.create", {
            "messages": [{"role": "user", "content": script("part", {"hang": "soft"})}], "fm": {"timeout_ms": 150}})
        self.assert_timeout(result, "total", 150)
        self.assertEqual(result["completion"]["choices"][0]["message"]["content"], "part")


class Grace(HelperTest):
    """An engine that does not stop when it is asked is ended; those in it are told, those that wait are served."""

    def test_hard_hang(self):
        helper = self.helper()
        victim = self.create(helper, script("begun", {"hang": "soft"}))
        helper.event(victim, "response.output_text.delta", keep=True)
        engine = helper.engine_pid()
        before = time.monotonic()
        hung = self.create(helper, script({"hang": "hard"}), fm={"timeout_ms": 200})
        helper.event(hung, "response.in_progress", keep=True)
        while not any(m.get("id") == hung for m in helper.backlog):
            self.assertLess(helper.ping_ms(), 100 * SLOW)
            time.sleep(0.02)
        events, result = helper.collect(hung)
        self.assertLess(time.monotonic() - before, 1.2 + SLOW)
        error = self.assert_error(result, "TIMEOUT")
        self.assertEqual(error["limit"], "total")
        check_stream(self, events, result)
        events, result = helper.collect(victim)
        self.assert_error(result, "INTERNAL")
        check_stream(self, events, result)
        self.assertTrue(helper.call("responses.create", {"input": "next"})["ok"])
        self.assertFalse(wire.alive(engine))

    def test_one_that_waits_outlives_the_engine(self):
        """Its slots are full of jobs that hang; one is cancelled, so the engine is ended. Those in the queue are served."""
        helper = self.helper()
        hung = [self.create(helper, script({"hang": "hard"})) for _ in range(8)]
        for call in hung:
            helper.event(call, "response.in_progress", keep=True)
        engine = helper.engine_pid()
        waiting = [self.create(helper, "next") for _ in range(3)]
        helper.send("$/cancelRequest", {"id": hung[0]})
        self.assert_error(helper.collect(hung[0])[1], "CANCELLED")
        for call in hung[1:]:
            events, result = helper.collect(call)
            self.assert_error(result, "INTERNAL")
            check_stream(self, events, result)
        for call in waiting:
            events, result = helper.collect(call)
            self.assertTrue(result["ok"], result)
            check_stream(self, events, result)
        self.assertNotEqual(helper.engine_pid(), engine)


class StoppedTime(HelperTest):
    def test_sigstop_does_not_count(self):
        """A stopped helper's limits must not all fire when it goes on: that time was nobody's fault."""
        helper = self.helper()
        call = self.create(helper, script("x", {"sleep_ms": 1500}, "y"), fm={"timeout_ms": int(3000 * SLOW)})
        helper.event(call, "response.output_text.delta")
        engine = helper.engine_pid()
        pids = [helper.pid, engine]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(4 * SLOW)  # the time that must not count
        for pid in reversed(pids):
            os.kill(pid, signal.SIGCONT)
        self.assertTrue(helper.collect(call)[1]["ok"])


if __name__ == "__main__":
    wire.main()
