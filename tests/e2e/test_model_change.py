"""Tests two models with one engine at a time (--max-engines 1): which requests wait, which engine ends, and what the other
requests get.

Only the engine "llama" has a models folder, so the fake engine takes its place.
"""

import time

import test_engines
import wire
from wire import SLOW

FIRST, SECOND = "first", "second"


class ModelChange(test_engines.Engines):
    MODELS = (FIRST, SECOND)

    def two_models(self, **env):
        return self.models("--max-engines", "1", **env)

    def test_an_idle_engine_gives_way(self):
        helper = self.two_models()
        engines = []
        for model in (FIRST, SECOND, SECOND, FIRST):
            self.assert_answer(helper, self.ask(helper, model, "x"), model)
            engines.append(helper.engine_pid())
        self.assertEqual(engines[1], engines[2])
        self.assertEqual(len(set(engines)), 3)
        self.assertFalse(any(wire.alive(pid) for pid in engines[:2]))

    def test_models_that_die_in_turns(self):
        """Deaths are counted for each model, and an answer that ended well resets only the count of its model."""
        helper = self.two_models()

        def die(model):
            result = helper.collect(self.ask(helper, model, {"signal": "KILL"}))[1]
            self.assert_error(result, "INTERNAL")
        for model in (FIRST, SECOND, FIRST, SECOND):
            die(model)
        self.assert_answer(helper, self.ask(helper, SECOND, "x"), SECOND)
        die(FIRST)
        result = helper.collect(self.ask(helper, FIRST, "x"))[1]
        self.assertIn("3 times in a row", self.assert_error(result, "UNAVAILABLE")["detail"])
        self.assert_answer(helper, self.ask(helper, SECOND, "x"), SECOND)

    def test_a_busy_engine_is_waited_for(self):
        helper = self.two_models()
        busy = self.ask(helper, FIRST, "begun", {"hang": "soft"})
        helper.event(busy, "response.output_text.delta", keep=True)
        engine = helper.engine_pid()
        waiting = self.ask(helper, SECOND, "x")
        impatient = self.ask(helper, SECOND, "x", queue_timeout_ms=100)
        error = self.assert_error(helper.collect(impatient)[1], "TIMEOUT")
        self.assertEqual(error["limit"], "queue")
        self.assertEqual(helper.engine_pid(), engine)
        helper.call("responses.cancel", {"request_id": busy})
        self.assert_answer(helper, waiting, SECOND)
        self.assertFalse(wire.alive(engine))

    def test_a_load_that_nobody_waits_for_gives_way(self):
        helper = self.two_models(FM_ENGINE_FAKE_LOAD=f"hang:{FIRST}")
        before = time.monotonic()
        hung = self.ask(helper, FIRST, "x", timeout_ms=300)
        waiting = [self.ask(helper, SECOND, "x") for _ in range(3)]
        self.assertEqual(self.assert_error(helper.collect(hung)[1], "TIMEOUT")["limit"], "total")
        for call in waiting:
            self.assert_answer(helper, call, SECOND)
        self.assert_soon(time.monotonic() - before, 0.3 + 2 * SLOW)

    def test_a_load_that_somebody_waits_for_goes_on(self):
        helper = self.two_models(FM_ENGINE_FAKE_LOAD=f"hang:{FIRST}")
        hung = [self.ask(helper, FIRST, "x", timeout_ms=200)]
        waiting = self.ask(helper, SECOND, "x")
        hung.append(self.ask(helper, FIRST, "x", timeout_ms=1200))  # this request came later, but needs the same load
        self.assert_error(helper.collect(hung[0])[1], "TIMEOUT")
        self.assertEqual(helper.call("capabilities.get")["engine"]["state"], "starting")
        engine = helper.engine_pid()
        self.assertEqual(self.assert_error(helper.collect(hung[1])[1], "TIMEOUT")["limit_ms"], 1200)
        self.assert_answer(helper, waiting, SECOND)
        self.assertFalse(wire.alive(engine))


if __name__ == "__main__":
    wire.main()
