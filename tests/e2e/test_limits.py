"""Tests the watchdog: each of the four limits fires, is named in the error, and ends the work in the engine."""

import os
import signal
import tempfile
import time
import unittest

import wire
from patience import pace
from wire import SLOW, HelperTest, check_stream, cpu_seconds, script

CLOCKS = os.path.abspath(os.path.join(wire.BIN, "..", "tests-bin"))
WALL_CLOCK = os.path.join(CLOCKS, "libwall_clock.so")
FAST_CLOCK = os.path.join(CLOCKS, "libfast_clock.so")


class LimitsTest(HelperTest):
    def assert_timeout(self, result, limit, ms):
        error = self.assert_error(result, "TIMEOUT", openai_code="timeout")
        self.assertEqual((error["limit"], error["limit_ms"]), (limit, ms))
        self.assertEqual(error["openai"]["status"], 408)
        self.assertIn(limit, error["detail"])


class Limits(LimitsTest):

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
        self.assert_soon(ms, 500 * SLOW)
        self.assert_undisturbed(helper.engine_pid() == engine, "the engine stops the work itself and lives on")

    def test_first_token(self):
        _, result, _ = self.run_limited(self.warm(), script({"prefill_ms": 60000}, "x"), first_token_timeout_ms=150)
        self.assert_timeout(result, "first_token", 150)

    def test_no_progress_keeps_what_was_produced(self):
        helper = self.warm()
        events, result, _ = self.run_limited(helper, script("part", {"sleep_ms": 60000}), no_progress_timeout_ms=150)
        self.assert_timeout(result, "no_progress", 150)
        final = check_stream(self, events, result)
        self.assert_undisturbed(final["output"], "a token before the limit")
        self.assertEqual(final["output"][0]["content"][0]["text"], "part")
        self.assertEqual(final["usage"]["output_tokens"], 1)

    def test_progress_puts_no_progress_off(self):
        steps = [{"repeat": ["x", 1]}, {"sleep_ms": 100}] * 6
        _, result, _ = self.run_limited(self.warm(), script(*steps), no_progress_timeout_ms=int(500 * SLOW))
        self.assert_undisturbed(result["ok"], result)

    def test_tokens_without_text_are_progress(self):
        """Text that may become a stop string is held back, and a token may have no text: both count as progress."""
        held = script(*[step for _ in range(12) for step in ("a", {"sleep_ms": int(100 * SLOW)})])
        silent = script(*[step for _ in range(12) for step in ("", {"sleep_ms": int(100 * SLOW)})])
        limit = int(500 * SLOW)
        for prompt, more in ((held, {"stop": ["a" * 12 + "X"]}), (silent, {})):
            helper = self.warm()
            fm = {"no_progress_timeout_ms": limit, "first_token_timeout_ms": limit}
            result = helper.call("responses.create", {"input": prompt, "fm": fm, **more})
            self.assert_undisturbed(result["ok"], str(result.get("error")))

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

    def test_one_that_runs_alone_waits_and_is_waited_for(self):
        """Its time in the queue counts as usual, and so does the time of the requests that wait for it."""
        helper = self.warm()
        first = self.create(helper, script("x", {"hang": "soft"}))
        helper.event(first, "response.output_text.delta")
        alone = {"repeatable": True}
        events, result, _ = self.run_limited(helper, "waits", queue_timeout_ms=150, **alone)
        self.assertEqual(events, [])
        self.assert_timeout(result, "queue", 150)
        waiting = self.create(helper, script("y", {"hang": "soft"}), fm=alone)
        helper.send("$/cancelRequest", {"id": first})
        self.assert_error(helper.collect(first)[1], "CANCELLED")
        helper.event(waiting, "response.output_text.delta")
        for fm in ({}, alone):
            events, result, _ = self.run_limited(helper, "waits", queue_timeout_ms=150, **fm)
            self.assert_timeout(result, "queue", 150)
        helper.send("$/cancelRequest", {"id": waiting})
        self.assert_error(helper.collect(waiting)[1], "CANCELLED")
        self.assertTrue(helper.call("responses.create", {"input": "x"})["ok"])

    def test_none_overtakes_one_that_runs_alone(self):
        """Requests that come later do not overtake the waiting request: otherwise they could keep the engine busy for ever."""
        helper = self.warm()
        first = self.create(helper, script("x", {"hang": "soft"}))
        helper.event(first, "response.output_text.delta")
        calls = [self.create(helper, "x", fm={"repeatable": True})] + [self.create(helper, "x") for _ in range(20)]
        helper.send("$/cancelRequest", {"id": first})
        replies = [helper.receive_where(lambda m: m.get("id") in calls and "method" not in m) for _ in calls]
        self.assertTrue(all(reply["result"]["ok"] for reply in replies), replies)
        self.assertEqual(replies[0]["id"], calls[0])

    def test_unstreamed(self):
        helper = self.warm()
        result = helper.call("chat.completions.create", {
            "messages": [{"role": "user", "content": script("part", {"hang": "soft"})}], "fm": {"timeout_ms": 150}})
        self.assert_timeout(result, "total", 150)
        choices = result["completion"]["choices"]
        self.assert_undisturbed(choices, "a token before the limit")
        self.assertEqual(choices[0]["message"]["content"], "part")


@unittest.skipUnless(os.path.exists(FAST_CLOCK), "the library is built for Linux, and not with ThreadSanitizer")
class Defaults(LimitsTest):
    """The default limits end requests that hang, not those that work. The helper's clock is fast, the engine's is not."""

    RATE = 50  # seconds of the helper's clock for each true second
    DAY_MS = 86400000
    MINUTES = 160  # seconds of the helper's clock: longer than the limits of 120, shorter than the limit of 600

    def setUp(self):
        super().setUp()
        self.rate = max(8, int(self.RATE / pace()))  # on that clock, an engine has 750 ms to obey an abort

    def fast_helper(self, warm=True, **env):
        handle, clock = tempfile.mkstemp()
        os.close(handle)
        self.addCleanup(os.unlink, clock)
        with open(clock, "wb") as f:
            f.write(bytes(16))
        options = "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")
        helper = self.helper(env={"LD_PRELOAD": FAST_CLOCK, "FM_FAST_CLOCK": clock, "ASAN_OPTIONS": options, **env})
        if warm:
            helper.call("responses.create", {"input": "the engine is there"})
        with open(clock, "r+b") as f:
            f.write(time.monotonic_ns().to_bytes(8, "little") + (self.rate - 1).to_bytes(8, "little"))
        return helper

    def long_prefill(self):
        """Tests a prefill of minutes, with progress all the time."""
        return script(*[{"prefill_ms": 100}] * (self.MINUTES * 10 // self.rate), "read")

    def assert_read(self, helper, call):
        _, result = helper.collect(call)
        self.assert_undisturbed("did not stop within" not in result.get("error", {}).get("detail", ""), result)
        self.assertTrue(result["ok"], result.get("error"))

    def test_first_token(self):
        helper = self.fast_helper()
        works = self.create(helper, self.long_prefill())
        exact = self.create(helper, self.long_prefill(), fm={"first_token_timeout_ms": 120000})
        hangs = self.create(helper, script({"hang": "soft"}))
        alone = self.create(helper, script({"hang": "soft"}), fm={"no_progress_timeout_ms": self.DAY_MS})
        self.assert_timeout(helper.collect(hangs)[1], "no_progress", 60000)
        self.assert_timeout(helper.collect(exact)[1], "first_token", 120000)
        self.assert_timeout(helper.collect(alone)[1], "first_token", 120000)
        self.assert_read(helper, works)

    def test_queue_after_what_works(self):
        helper = self.fast_helper()
        running = [self.create(helper, self.long_prefill()) for _ in range(8)]
        waits = self.create(helper, "waits")
        exact = self.create(helper, "waits", fm={"queue_timeout_ms": 120000})
        self.assert_timeout(helper.collect(exact)[1], "queue", 120000)
        for call in [*running, waits]:
            self.assert_read(helper, call)

    def test_queue_after_what_hangs(self):
        helper = self.fast_helper()
        for _ in range(8):
            self.create(helper, script({"hang": "soft"}), fm={
                "no_progress_timeout_ms": self.DAY_MS, "first_token_timeout_ms": self.DAY_MS})
        self.assert_timeout(helper.collect(self.create(helper, "waits"))[1], "queue", 120000)

    def test_loading(self):
        helper = self.fast_helper(warm=False, FM_ENGINE_FAKE_LOAD=f"slow:{1000 * self.MINUTES // self.rate}")
        self.assert_read(helper, self.create(helper, "loads for minutes"))

    def test_total(self):
        """The total limit also ends a request that makes progress."""
        helper = self.fast_helper()
        call = self.create(helper, script(*[{"prefill_ms": 100}] * (900 * 10 // self.rate)))
        self.assert_timeout(helper.collect(call)[1], "total", 600000)


class Grace(HelperTest):
    """An engine that does not stop when it is told to is ended: its jobs fail, and the waiting requests are served."""

    def test_hard_hang(self):
        helper = self.helper()
        victim = self.create(helper, script("begun", {"hang": "soft"}))
        helper.event(victim, "response.output_text.delta", keep=True)
        engine = helper.engine_pid()
        before = time.monotonic()
        hung = self.create(helper, script({"hang": "hard"}), fm={"timeout_ms": 200})
        helper.event(hung, "response.in_progress", keep=True)
        while not any(m.get("id") == hung for m in helper.backlog):
            self.assert_soon(helper.ping_ms(), 100 * SLOW)
            time.sleep(0.02)
        events, result = helper.collect(hung)
        self.assert_soon(time.monotonic() - before, 1.2 + SLOW)
        error = self.assert_error(result, "TIMEOUT")
        self.assertEqual(error["limit"], "total")
        check_stream(self, events, result)
        events, result = helper.collect(victim)
        self.assert_error(result, "INTERNAL")
        check_stream(self, events, result)
        self.assertTrue(helper.call("responses.create", {"input": "next"})["ok"])
        self.assertFalse(wire.alive(engine))

    def test_one_that_waits_outlives_the_engine(self):
        """All slots of the engine have jobs that hang. One job is cancelled, so the engine is ended, and the waiting requests are
        served."""
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
        """When a stopped helper continues, its limits must not all fire: the time while it was stopped does not count."""
        helper = self.helper()
        steps = ["x"] + 15 * [{"sleep_ms": 100}, "y"]  # so that most of the work is left when the helper continues
        call = self.create(helper, script(*steps), fm={"timeout_ms": int(3000 * SLOW)})
        helper.event(call, "response.output_text.delta")
        engine = helper.engine_pid()
        pids = [helper.pid, engine]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(4 * SLOW)  # the time that must not count
        for pid in reversed(pids):
            os.kill(pid, signal.SIGCONT)
        self.assert_undisturbed(helper.collect(call)[1]["ok"], "no limit fires")


class HardHangs(HelperTest):
    """If an engine does not stop when it is told to, the host gets its answer within the limit and one second."""

    LIMIT_MS = 200

    def assert_told_in_time(self, helper, call, since, code, limit_ms):
        events, result = helper.collect(call)
        took = time.monotonic() - since
        self.assert_soon(took, (limit_ms / 1000 + 1) * SLOW)
        self.assertGreater(took, limit_ms / 1000)
        self.assert_error(result, code)
        check_stream(self, events, result)
        self.assertTrue(helper.call("responses.create", {"input": "next"})["ok"])

    def test_in_prefill_and_in_the_stream(self):
        for steps in ([{"hang": "hard"}], ["text", {"hang": "hard"}]):
            with self.subTest(str(steps)):
                helper = self.helper()
                helper.call("responses.create", {"input": "the engine is there"})
                since = time.monotonic()
                call = self.create(helper, script(*steps), fm={"timeout_ms": self.LIMIT_MS})
                self.assert_told_in_time(helper, call, since, "TIMEOUT", self.LIMIT_MS)

    def test_in_a_cancel(self):
        helper = self.helper()
        call = self.create(helper, script("text", {"hang": "hard"}))
        helper.event(call, "response.output_text.delta", keep=True)
        since = time.monotonic()
        cancel = helper.start("responses.cancel", {"request_id": call})
        self.assert_soon(helper.ping_ms(), 100 * SLOW)
        self.assert_told_in_time(helper, call, since, "CANCELLED", 0)
        self.assertTrue(helper.reply(cancel)["result"]["ok"])


@unittest.skipUnless(os.path.exists(WALL_CLOCK), "the library is built for Linux, and not with ThreadSanitizer")
class WallClock(HelperTest):
    """The user, or the network, moves the clock by a day: no limit fires because of that, and none is late."""

    DAY = 86400

    def set_clock(self, seconds):
        with open(self.clock, "r+b") as f:
            f.write(seconds.to_bytes(8, "little", signed=True))

    def setUp(self):
        handle, self.clock = tempfile.mkstemp()
        os.close(handle)
        self.addCleanup(os.unlink, self.clock)
        with open(self.clock, "wb") as f:
            f.write(bytes(8))

    def limited(self, helper, ms):
        """Starts a call that ends with its limit; returns it with the time."""
        since = time.monotonic()
        call = self.create(helper, script("x", {"hang": "soft"}), fm={"timeout_ms": ms})
        return call, since, ms

    def assert_on_time(self, helper, call, since, ms):
        """Returns the clock's time at the creation of the response."""
        events, result = helper.collect(call)
        took = (time.monotonic() - since) * 1000
        self.assertEqual(self.assert_error(result, "TIMEOUT")["limit"], "total")
        self.assertGreaterEqual(took, ms - 1)
        self.assert_soon(took, ms + 300 * SLOW)
        return check_stream(self, events, result)["created_at"]

    def set_and_limit(self, helper, seconds):
        """One limit runs while the clock is set, one begins afterwards, and one call continues below its limits."""
        goes_on = self.create(helper, script("x", {"sleep_ms": 1000}, "y"))
        helper.event(goes_on, "response.output_text.delta")
        runs = self.limited(helper, int(600 * SLOW))
        helper.event(runs[0], "response.output_text.delta", keep=True)
        self.set_clock(seconds)
        before = cpu_seconds(helper.pid), time.monotonic()
        begins = self.limited(helper, int(300 * SLOW))
        created = self.assert_on_time(helper, *begins)
        self.assert_on_time(helper, *runs)
        self.assertTrue(helper.collect(goes_on)[1]["ok"])
        share = (cpu_seconds(helper.pid) - before[0]) / (time.monotonic() - before[1])
        self.assert_soon(share, 0.2, "a wait that returns at once, again and again")
        return created

    def test_set_by_a_day(self):
        for day in (self.DAY, -self.DAY):
            with self.subTest(day):
                options = "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")
                helper = self.helper(env={"LD_PRELOAD": WALL_CLOCK, "FM_WALL_CLOCK": self.clock, "ASAN_OPTIONS": options})
                self.set_clock(0)
                first = helper.call("responses.create", {"input": "the engine is there"})["response"]["created_at"]
                there = self.set_and_limit(helper, day)
                back = self.set_and_limit(helper, 0)
                for created, shift in ((there, day), (back, 0)):  # if this fails, the clock was never set
                    self.assertAlmostEqual(created - first, shift, delta=60 * SLOW)


if __name__ == "__main__":
    wire.main()
