"""Tests what the helper reports about its work, with the fake engine: fm.timings of an answer, and metrics.get."""

import tempfile

import wire
from patience import SLOW
from wire import HelperTest, script

TOLD = {"queue_ms", "prefill_ms", "decode_ms", "prompt_tokens_per_second", "output_tokens_per_second", "cached_tokens"}
ASKED = {"timings": True}


def user(text):
    return [{"role": "user", "content": text}]


class Timings(HelperTest):
    SLOW_ANSWER = script({"prefill_ms": 60}, "a", {"sleep_ms": 80}, "b", "c")

    def assert_timings(self, timings, prefill=50, decode=70):
        self.assertEqual(set(timings), TOLD)
        self.assertGreaterEqual(timings["prefill_ms"], prefill)
        self.assertGreaterEqual(timings["decode_ms"], decode)
        self.assertGreater(timings["queue_ms"], 0)

    def test_a_response(self):
        helper = self.helper()
        result = helper.call("responses.create", {"input": self.SLOW_ANSWER, "fm": ASKED})
        timings, usage = result["response"]["fm"]["timings"], result["response"]["usage"]
        self.assert_timings(timings)
        self.assertAlmostEqual(timings["prompt_tokens_per_second"],
                               1000 * usage["input_tokens"] / timings["prefill_ms"], delta=0.01)
        self.assertAlmostEqual(timings["output_tokens_per_second"],
                               1000 * (usage["output_tokens"] - 1) / timings["decode_ms"], delta=0.01)
        self.assertEqual(timings["cached_tokens"], usage["input_tokens_details"]["cached_tokens"])

    def test_only_where_it_is_asked_for(self):
        helper = self.helper()
        for fm in ({}, {"timings": False}, {"timings": None}):
            self.assertNotIn("fm", helper.call("responses.create", {"input": "x", "fm": fm})["response"])
        result = helper.call("responses.create", {"input": "x", "fm": {"timings": 1}})
        self.assert_error(result, "INVALID_REQUEST", "fm.timings", "invalid_type")

    def test_the_queue(self):
        """The waiting time includes the time of the earlier requests, and of the engine's start."""
        helper = self.helper()
        first = self.create(helper, script("x", {"sleep_ms": 100}))
        second = self.create(helper, "x", fm={"repeatable": True, **ASKED})
        helper.collect(first)
        timings = helper.collect(second)[1]["response"]["fm"]["timings"]
        self.assertGreaterEqual(timings["queue_ms"], 90)
        self.assertLess(timings["prefill_ms"] + timings["decode_ms"], 90)

    def test_streams(self):
        """Only the last event has timings."""
        helper = self.helper()
        events, result = helper.collect(self.create(helper, self.SLOW_ANSWER, fm=ASKED))
        self.assert_timings(events[-1]["response"]["fm"]["timings"])
        self.assertEqual(events[-1]["response"], result["response"])
        for event in events[:-1]:
            self.assertNotIn("fm", event.get("response", {}))
        for method, params in (("chat.completions.create", {"messages": user(self.SLOW_ANSWER), "n": 2}),
                               ("completions.create", {"prompt": self.SLOW_ANSWER, "max_tokens": 10})):
            with self.subTest(method):
                params.update({"stream": True, "fm": ASKED, "stream_options": {"include_usage": True}, "top_q": 1})
                chunks, result = helper.collect(helper.start(method, params))
                self.assertEqual([set(chunk["fm"]) for chunk in chunks if "fm" in chunk], [{"ignored"}, {"timings"}])
                self.assertIsNotNone(chunks[-2]["choices"][0]["finish_reason"])
                many = params.get("n", 1)
                self.assert_timings(chunks[-2]["fm"]["timings"], 50 * many, 70 * many)
                self.assertEqual(chunks[-2]["fm"]["timings"], result["completion"]["fm"]["timings"])

    def test_one_chunk_has_both(self):
        """A completion without text has one chunk, the first and the last."""
        chunks, _ = (helper := self.helper()).collect(helper.start("completions.create", {
            "prompt": script(), "stream": True, "fm": ASKED, "top_q": 1}))
        self.assertEqual([set(chunk["fm"]) for chunk in chunks], [{"ignored", "timings"}])
        self.assertIsNone(chunks[0]["fm"]["timings"]["output_tokens_per_second"])

    def test_other_calls(self):
        helper = self.helper()
        for method, params, member in (
                ("embeddings.create", {"input": ["a b", "c"]}, "embeddings"),
                ("responses.input_tokens", {"input": "a b"}, None),
                ("responses.compact", {"input": "a b", "model": "fake"}, None)):
            result = helper.call(method, {**params, "fm": ASKED})
            timings = (result[member] if member else result)["fm"]["timings"]
            self.assertEqual(set(timings), TOLD, method)
            self.assertEqual(timings["prefill_ms"] is None, method == "responses.input_tokens", "a count computes nothing")

    def test_one_that_is_cut_off(self):
        helper = self.helper()
        call = self.create(helper, script("x", {"hang": "soft"}), fm=ASKED)
        helper.event(call, "response.output_text.delta")
        helper.send("$/cancelRequest", {"id": call})
        self.assertEqual(set(helper.collect(call)[1]["response"]["fm"]["timings"]), TOLD)
        limit = {"timeout_ms": int(500 * SLOW)}  # after this time the engine certainly hangs
        result = helper.call("responses.create", {"input": script("x", {"hang": "hard"}), "fm": {**limit, **ASKED}})
        timings = result["response"]["fm"]["timings"]
        self.assertEqual((timings["prefill_ms"], timings["decode_ms"]), (None, None), "the engine was killed")

    def test_a_stored_response_keeps_them(self):
        with tempfile.TemporaryDirectory() as folder:
            store = ("--store", f"{folder}/store.db")
            helper = self.helper(*store)
            events, result = helper.collect(self.create(helper, self.SLOW_ANSWER, fm=ASKED))
            self._end(helper)
            helper = self.helper(*store)
            response = helper.call("responses.retrieve", {"id": result["response"]["id"]})["response"]
            self.assertEqual(response, result["response"])
            again, _ = helper.collect(helper.start("responses.retrieve", {"id": response["id"], "stream": True}))
            self.assertEqual(again, events)

    def test_what_an_engine_guesses_ahead(self):
        helper = self.helper(env={"FM_ENGINE_FAKE_DRAFTS": "7,5"})
        timings = helper.call("responses.create", {"input": "x y", "fm": ASKED})["response"]["fm"]["timings"]
        self.assertEqual((timings["drafted_tokens"], timings["accepted_tokens"]), (7, 5))


class Metrics(HelperTest):
    OUTCOMES = ("completed", "incomplete", "failed", "timed_out", "cancelled", "refused", "queued", "running")

    def requests(self, helper, **want):
        """Compares the counts of requests; counts that are not in `want` must be 0."""
        metrics = helper.call("metrics.get")
        counts = metrics["requests"]
        self.assertEqual(counts, {**dict.fromkeys(self.OUTCOMES, 0), **want, "received": sum(want.values())})
        return metrics

    def test_nothing_yet(self):
        helper = self.helper()
        metrics = self.requests(helper)
        self.assertEqual(set(metrics), {"ok", "uptime_ms", "requests", "tokens", "time_ms", "engines", "bytes"})
        self.assertEqual(metrics["engines"], {"starts": 0, "deaths": 0, "now": []})
        self.assertEqual(set(metrics["tokens"].values()) | set(metrics["time_ms"].values()), {0})
        self.assertIsNone(helper.engine_pid(), "nothing is started for it")

    def test_each_outcome_counts_once(self):
        helper = self.helper()
        for prompt, params in (("x", {}), ("x y", {"max_output_tokens": 1}), (script({"error": "it broke"}), {}),
                               (script("x", {"hang": "soft"}), {"fm": {"timeout_ms": 150}}),
                               ("x", {"temperature": 3}), ("x", {"model": "nobody"})):
            helper.call("responses.create", {"input": prompt, **params})
        call = self.create(helper, script("x", {"hang": "soft"}))
        helper.event(call, "response.output_text.delta")
        waiting = self.create(helper, "x", fm={"repeatable": True})
        ended = {"completed": 1, "incomplete": 1, "failed": 1, "timed_out": 1, "refused": 2}
        metrics = self.requests(helper, **ended, queued=1, running=1)
        self.assertEqual(metrics["engines"], {"starts": 1, "deaths": 0, "now": [
            {"model": "fake", "state": "ready", "requests": 1}]})
        helper.send("$/cancelRequest", {"id": call})
        helper.collect(call)
        helper.collect(waiting)
        self.requests(helper, **{**ended, "completed": 2}, cancelled=1)

    def test_every_call_that_makes_an_answer_counts(self):
        helper = self.helper()
        for method, params in (("chat.completions.create", {"messages": user("x"), "n": 3}),
                               ("completions.create", {"prompt": "x"}), ("embeddings.create", {"input": "x"}),
                               ("responses.input_tokens", {"input": "x"}),
                               ("responses.compact", {"input": "x", "model": "fake"})):
            self.assertTrue(helper.call(method, params)["ok"])
        stored = helper.call("responses.create", {"input": "x"})["response"]["id"]
        helper.collect(helper.start("responses.retrieve", {"id": stored, "stream": True}))
        self.assertTrue(helper.call("models.list")["ok"])
        self.requests(helper, completed=5, incomplete=1)

    def test_tokens_and_times(self):
        helper = self.helper()
        usages, sums = [], {"queue": 0, "prefill": 0, "decode": 0}
        for prompt in ("one two three", "x", script({"prefill_ms": 40}, "a", {"sleep_ms": 60}, "b")):
            response = helper.call("responses.create", {"input": prompt, "fm": ASKED})["response"]
            usages.append(response["usage"])
            for name in sums:
                sums[name] += response["fm"]["timings"][f"{name}_ms"]
        metrics = helper.call("metrics.get")
        for name in ("input", "output"):
            self.assertEqual(metrics["tokens"][name], sum(usage[f"{name}_tokens"] for usage in usages))
        for name, value in sums.items():
            self.assertAlmostEqual(metrics["time_ms"][name], value, delta=1)

    def test_engines_that_die(self):
        helper = self.helper()
        self.assert_error(helper.call("responses.create", {"input": script({"signal": "SEGV"})}), "INTERNAL")
        self.assertTrue(helper.call("responses.create", {"input": "x"})["ok"])
        engines = self.requests(helper, completed=1, failed=1)["engines"]
        self.assertEqual((engines["starts"], engines["deaths"], len(engines["now"])), (2, 1, 1))

    def test_bytes(self):
        """The helper counts exactly the bytes of the frames that this test sends and receives."""
        helper = self.helper()
        before = helper.call("metrics.get")["bytes"]
        text = "x" * 5000
        self.assertTrue(helper.call("responses.create", {"input": text})["ok"])
        now = helper.call("metrics.get")["bytes"]
        for name in ("host", "engines"):
            for way in ("received", "sent"):
                self.assertGreater(now[name][way] - before[name][way], 5000, (name, way))
                self.assertLess(now[name][way] - before[name][way], 15000, (name, way))
        body = {"jsonrpc": "2.0", "id": 1, "method": "metrics.get"}
        helper.send_raw(wire.frame(body))
        again = helper.reply(1)["result"]["bytes"]
        self.assertEqual(again["host"]["received"] - now["host"]["received"], len(wire.frame(body)))

    def test_an_engine_that_hangs_does_not_hold_it_up(self):
        helper = self.helper(env={"FM_ENGINE_FAKE_LOAD": "hang"})
        helper.start("responses.create", {"input": "x"})
        wire.wait_until(lambda: helper.call("metrics.get")["engines"]["now"])
        metrics = self.requests(helper, queued=1)
        self.assertEqual(metrics["engines"]["now"], [{"model": "fake", "state": "starting", "requests": 0}])


if __name__ == "__main__":
    wire.main()
