"""Tests several models at the same time, each in a separate engine: which engines stay, which are ended for others, and that they
do not affect each other.

Only the engine "llama" has a models folder, so the fake engine takes its place.
"""

import os
import tempfile
import time
from random import Random

import foreign_engine
import wire
from wire import SLOW, HelperTest, check_stream, children, script

MIB = 1 << 20
CHAT, EMBEDDER, THIRD, FOURTH = "chat", "embedder", "third", "fourth"


class Engines(HelperTest):
    MODELS = (CHAT, EMBEDDER, THIRD, FOURTH)
    SIZE = 4  # of each file, in bytes

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        foreign_engine.borrow(os.path.join(wire.BIN, "fm-engine-fake"), self.folder, "llama")
        for name in self.MODELS:
            self.write(name, self.SIZE)

    def write(self, name, size):
        with open(os.path.join(self.folder, f"{name}.gguf"), "wb") as file:
            file.write(b"GGUF")
            file.truncate(size)

    def models(self, *args, **env):
        return self.helper("--engine-dir", self.folder, "--models-dir", self.folder, *args, engine="llama", env=env)

    def ask(self, helper, model, *steps, **fm):
        return self.create(helper, script(*steps), model=model, fm=fm)

    def assert_answer(self, helper, call, model):
        events, result = helper.collect(call)
        self.assertTrue(result["ok"], result)
        self.assertEqual(result["response"]["model"], model)
        check_stream(self, events, result)

    def answer(self, helper, model, *steps, **fm):
        self.assert_answer(helper, self.ask(helper, model, *(steps or ("x",)), **fm), model)

    def busy(self, helper, model):
        """Starts a request that runs until it is cancelled."""
        call = self.ask(helper, model, "begun", {"hang": "soft"})
        helper.event(call, "response.output_text.delta", keep=True)
        return call

    def cancel(self, helper, call):
        helper.call("responses.cancel", {"request_id": call})
        self.assert_error(helper.collect(call)[1], "CANCELLED")

    def engines(self, helper):
        """{model: its entry in capabilities.get}"""
        return {engine["model"]: engine for engine in helper.call("capabilities.get")["engines"]}

    def wait_for_engines(self, helper, *models):
        """Waits until these models have an engine that is ready, and no others have one."""
        wire.wait_until(lambda: {model: e["state"] for model, e in self.engines(helper).items()} ==
                        dict.fromkeys(models, "ready"), what=f"engines of {models}")


class SideBySide(Engines):
    def test_models_in_turns(self):
        """Uses chat and embeddings in turns. No engine is started after the first round."""
        helper = self.models()
        after = []
        for _ in range(100):
            self.answer(helper, CHAT)
            embeddings = helper.call("embeddings.create", {"model": EMBEDDER, "input": "some text"})
            self.assertTrue(embeddings["ok"], embeddings)
            after.append(set(children(helper.pid)))
        self.assertEqual(len(after[0]), 2)
        self.assertTrue(all(engines == after[0] for engines in after), after)
        self.assertEqual(helper.call("metrics.get")["engines"]["starts"], 2)

    def test_at_the_same_time(self):
        helper = self.models()
        running = {model: self.busy(helper, model) for model in (CHAT, EMBEDDER, THIRD)}
        self.assertEqual(len(children(helper.pid)), 3)
        for call in running.values():
            self.cancel(helper, call)

    def test_a_dead_engine_fails_its_own_requests_alone(self):
        helper = self.models()
        lives = self.busy(helper, CHAT)
        engine = helper.engine_pid()
        dies = [self.ask(helper, EMBEDDER, "x", {"hang": "soft"}) for _ in range(2)]
        for call in dies:
            helper.event(call, "response.output_text.delta", keep=True)
        dies.append(self.ask(helper, EMBEDDER, {"signal": "SEGV"}))
        for call in dies:
            self.assert_error(helper.collect(call)[1], "INTERNAL")
        self.assertTrue(wire.alive(engine))
        self.answer(helper, EMBEDDER)
        self.cancel(helper, lives)
        self.answer(helper, CHAT)
        self.assertIn(engine, children(helper.pid))

    def test_a_hung_engine_is_ended_alone(self):
        helper = self.models()
        self.answer(helper, CHAT)
        engine = helper.engine_pid()
        hung = self.ask(helper, EMBEDDER, "x", {"hang": "hard"}, timeout_ms=200)
        self.assertEqual(self.assert_error(helper.collect(hung)[1], "TIMEOUT")["limit"], "total")
        wire.wait_until(lambda: set(children(helper.pid)) == {engine}, "the end of the hung engine")
        self.answer(helper, CHAT)

    def test_a_crash_loop_is_one_models(self):
        helper = self.models(FM_ENGINE_FAKE_LOAD=f"crash:{EMBEDDER}")
        self.answer(helper, CHAT)
        engine = helper.engine_pid()
        details = [self.assert_error(helper.collect(self.ask(helper, EMBEDDER, "x"))[1], "UNAVAILABLE")["detail"]
                   for _ in range(4)]
        self.assertIn("3 times in a row", details[3])
        self.answer(helper, CHAT)
        self.assertEqual(children(helper.pid), [engine])

    def test_a_failed_load_is_that_models(self):
        """`chat` is the default: its failed load stays visible although another model's load has succeeded."""
        helper = self.models(FM_ENGINE_FAKE_LOAD=f"error:{CHAT}")
        for _ in range(2):
            self.assert_error(helper.collect(self.ask(helper, CHAT, "x"))[1], "UNAVAILABLE")
            self.answer(helper, EMBEDDER)
            capabilities = helper.call("capabilities.get")
            self.assertEqual((capabilities["available"], capabilities["reason_code"]), (False, "MODEL_NOT_READY"))

    def test_what_capabilities_say(self):
        helper = self.models(FM_ENGINE_FAKE_MEMORY=str(7 * MIB))
        self.assertEqual(helper.call("capabilities.get")["engines"], [])
        self.answer(helper, EMBEDDER)
        running = self.busy(helper, CHAT)
        engines = self.engines(helper)
        self.assertEqual({model: (e["state"], e["requests"], e["memory_bytes"]) for model, e in engines.items()},
                         {CHAT: ("ready", 1, 7 * MIB), EMBEDDER: ("ready", 0, 7 * MIB)})
        for engine in engines.values():
            self.assertEqual(set(engine), {"model", "state", "state_ms", "requests", "memory_bytes"})
            self.assertGreaterEqual(engine["state_ms"], 0)
        self.assertEqual(helper.call("capabilities.get")["engine"]["state"], "ready")
        self.cancel(helper, running)

    def test_shutdown_ends_all(self):
        """Engines that do not answer are ended too: all of them within the time limit of one engine."""
        helper = self.models("--max-engines", "4")
        for model in self.MODELS:
            call = self.ask(helper, model, "x", {"hang": "hard"})
            helper.event(call, "response.output_text.delta", keep=True)
        engines = children(helper.pid)
        self.assertEqual(len(engines), 4)
        before = time.monotonic()
        self.assertEqual(helper.close(), 0)
        self.assert_soon(time.monotonic() - before, 2)
        self.assertFalse([pid for pid in engines if wire.alive(pid)])


class Idle(Engines):
    def test_each_engine_by_itself(self):
        helper = self.models("--idle-unload-ms", "100")
        running = self.busy(helper, CHAT)
        self.answer(helper, EMBEDDER)
        self.wait_for_engines(helper, CHAT)
        self.cancel(helper, running)
        self.wait_for_engines(helper)

    def test_one_that_stays(self):
        helper = self.models("--idle-unload-ms", "100")
        self.answer(helper, CHAT, keep_alive_ms=-1)
        self.answer(helper, EMBEDDER)
        self.answer(helper, THIRD, keep_alive_ms=0)
        self.wait_for_engines(helper, CHAT)


class LoadAndUnload(Engines):
    def load(self, helper, model, **fm):
        return helper.call("models.load", {"model": model, "fm": fm})

    def test_load(self):
        """The call is answered when the model is loaded. The next request starts no engine."""
        helper = self.models(FM_ENGINE_FAKE_LOAD="slow:200", FM_ENGINE_FAKE_MEMORY=str(7 * MIB))
        result = self.load(helper, EMBEDDER)
        load_ms = result.pop("load_ms")
        self.assertGreaterEqual(load_ms, 200)
        self.assertEqual(result, {"ok": True, "model": EMBEDDER, "memory_bytes": 7 * MIB, "context_length": 4096, "slots": 8})
        self.assertEqual(self.engines(helper)[EMBEDDER]["state"], "ready")
        engine = helper.engine_pid()
        self.assertEqual(self.load(helper, EMBEDDER)["load_ms"], load_ms, "it was loaded")
        self.answer(helper, EMBEDDER)
        self.assertEqual(children(helper.pid), [engine])

    def test_load_beside_requests(self):
        helper = self.models()
        running = self.busy(helper, CHAT)
        self.assertTrue(self.load(helper, CHAT)["ok"])
        self.assertTrue(self.load(helper, EMBEDDER)["ok"])
        self.cancel(helper, running)

    def test_the_default_model(self):
        helper = self.models()
        for params in ({}, {"model": "default"}):
            self.assertEqual(helper.call("models.load", params)["model"], CHAT)
        self.assertEqual(helper.call("models.unload", {}), {"ok": True, "model": CHAT, "unloaded": True})

    def test_a_load_that_fails(self):
        helper = self.models(FM_ENGINE_FAKE_LOAD=f"error:{CHAT}")
        self.assertIn("this load fails", self.assert_error(self.load(helper, CHAT), "UNAVAILABLE")["detail"])
        self.assert_error(self.load(helper, "none"), "NOT_FOUND", "model")
        helper = self.models(FM_ENGINE_FAKE_LOAD=f"crash:{CHAT}")
        details = [self.assert_error(self.load(helper, CHAT), "UNAVAILABLE")["detail"] for _ in range(4)]
        self.assertIn("3 times in a row", details[3])

    def test_a_cancel_ends_the_load(self):
        helper = self.models(FM_ENGINE_FAKE_LOAD=f"hang:{CHAT}")
        for end in (lambda call: helper.call("responses.cancel", {"request_id": call}),
                    lambda call: helper.send("$/cancelRequest", {"id": call})):
            call = helper.start("models.load", {"model": CHAT})
            wire.wait_until(helper.engine_pid, "the engine")
            before = time.monotonic()
            end(call)
            self.assert_error(helper.reply(call)["result"], "CANCELLED")
            wire.wait_until(lambda: not children(helper.pid), "the end of the load")
            self.assert_soon(time.monotonic() - before, 2 * SLOW, "a load without progress ends after a minute anyway")

    def test_a_limit_ends_the_load(self):
        helper = self.models(FM_ENGINE_FAKE_LOAD=f"hang:{CHAT}")
        for name, limit in (("timeout_ms", "total"), ("queue_timeout_ms", "queue")):
            self.assertEqual(self.assert_error(self.load(helper, CHAT, **{name: 200}), "TIMEOUT")["limit"], limit)
            wire.wait_until(lambda: not children(helper.pid), "the end of the load")

    def test_a_cancel_spares_a_load_that_a_request_waits_for(self):
        helper = self.models(FM_ENGINE_FAKE_LOAD="slow:300")
        call = helper.start("models.load", {"model": CHAT})
        wire.wait_until(helper.engine_pid, "the engine")
        engine = helper.engine_pid()
        waiting = self.ask(helper, CHAT, "x")
        helper.call("responses.cancel", {"request_id": call})
        self.assert_answer(helper, waiting, CHAT)
        self.assertEqual(helper.engine_pid(), engine)

    def test_unload(self):
        helper = self.models()
        self.answer(helper, CHAT)
        self.answer(helper, EMBEDDER)
        for unloaded in (True, False):
            self.assertEqual(helper.call("models.unload", {"model": CHAT}), {"ok": True, "model": CHAT, "unloaded": unloaded})
            self.assertEqual(set(self.engines(helper)), {EMBEDDER})
            self.assertEqual(len(children(helper.pid)), 1)
        self.answer(helper, CHAT)

    def test_a_model_that_works_is_not_unloaded(self):
        helper = self.models()
        running = self.busy(helper, CHAT)
        error = self.assert_error(helper.call("models.unload", {"model": CHAT}), "OVERLOADED")
        self.assertIn(f"the model {CHAT} has 1 request;", error["detail"])
        self.cancel(helper, running)
        self.assertTrue(helper.call("models.unload", {"model": CHAT})["unloaded"])

    def test_a_request_that_comes_while_it_is_unloaded(self):
        helper = self.models()
        for _ in range(20):
            self.answer(helper, CHAT)
            unload = helper.start("models.unload", {"model": CHAT})
            self.answer(helper, CHAT)
            self.assertTrue(helper.reply(unload)["result"]["unloaded"])

    def test_how_long_it_stays(self):
        helper = self.models("--idle-unload-ms", "100")
        self.assertTrue(self.load(helper, CHAT, keep_alive_ms=-1)["ok"])
        self.assertTrue(self.load(helper, EMBEDDER)["ok"])
        self.wait_for_engines(helper, CHAT)
        self.assertTrue(self.load(helper, CHAT, keep_alive_ms=0)["ok"])
        self.wait_for_engines(helper)

    def test_wrong_params(self):
        helper = self.models()
        for method in ("models.load", "models.unload"):
            self.assert_error(helper.call(method, {"model": 5}), "INVALID_REQUEST", "model")
            self.assert_error(helper.call(method, {"fm": {"no_such": 1}}), "INVALID_REQUEST", "fm.no_such")
            self.assertEqual(helper.call(method, {"model": CHAT, "stream": True})["fm"], {"ignored": ["stream"]})


class Places(Engines):
    """--max-engines"""

    def test_the_least_recently_used_makes_way(self):
        helper = self.models("--max-engines", "2")
        for model in (CHAT, EMBEDDER, CHAT, THIRD):
            self.answer(helper, model)
        self.wait_for_engines(helper, CHAT, THIRD)
        self.answer(helper, EMBEDDER)
        self.wait_for_engines(helper, EMBEDDER, THIRD)

    def test_three_by_default(self):
        helper = self.models()
        for model in self.MODELS:
            self.answer(helper, model)
        self.wait_for_engines(helper, EMBEDDER, THIRD, FOURTH)

    def test_one_that_runs_a_request_is_waited_for(self):
        helper = self.models("--max-engines", "2")
        first, second = self.busy(helper, CHAT), self.busy(helper, EMBEDDER)
        waiting = self.ask(helper, THIRD, "x")
        impatient = self.ask(helper, FOURTH, "x", queue_timeout_ms=100)
        self.assertEqual(self.assert_error(helper.collect(impatient)[1], "TIMEOUT")["limit"], "queue")
        self.assertEqual(set(self.engines(helper)), {CHAT, EMBEDDER})
        self.cancel(helper, second)
        self.assert_answer(helper, waiting, THIRD)
        self.assertEqual(self.engines(helper)[CHAT]["requests"], 1)
        self.cancel(helper, first)

    def test_who_waits_is_not_overtaken_for_ever(self):
        """Requests for the loaded models keep coming, but a waiting request still gets an engine."""
        helper = self.models("--max-engines", "2")
        running = [self.busy(helper, CHAT), self.busy(helper, EMBEDDER)]
        waiting = self.ask(helper, THIRD, "x")
        for model in (CHAT, EMBEDDER):
            later = [self.ask(helper, model, "later", {"hang": "soft"}) for model in (CHAT, EMBEDDER)]
            running += later
        self.cancel(helper, running.pop(0))
        self.cancel(helper, running.pop(0))
        self.assert_answer(helper, waiting, THIRD)
        for call in running:
            helper.start("responses.cancel", {"request_id": call})
        for call in running:
            self.assert_error(helper.collect(call)[1], "CANCELLED")

    def test_who_waits_for_a_place_holds_up_no_engine_that_stays(self):
        helper = self.models("--max-engines", "2")
        running = [self.busy(helper, CHAT), self.busy(helper, CHAT), self.busy(helper, EMBEDDER)]
        waiting = self.ask(helper, THIRD, "x")  # it waits for the place of EMBEDDER, which has the fewest requests
        self.answer(helper, CHAT)
        for call in running:
            self.cancel(helper, call)
        self.assert_answer(helper, waiting, THIRD)


    def test_an_answer_with_several_choices_is_not_interrupted(self):
        """A request that was waiting already does not interrupt the answer, although the engine has no job between two
        choices."""
        helper = self.models("--max-engines", "2")
        running = [self.busy(helper, CHAT), self.busy(helper, EMBEDDER), self.busy(helper, EMBEDDER)]
        waiting = self.ask(helper, THIRD, "x")
        messages = [{"role": "user", "content": script("x", {"sleep_ms": 300})}]
        choices = helper.start("chat.completions.create", {"model": EMBEDDER, "n": 3, "stream": True, "messages": messages})
        helper.event(choices)
        for call in running[1:]:
            self.cancel(helper, call)
        self.assertTrue(helper.collect(choices)[1]["ok"])
        starts = helper.call("metrics.get")["engines"]["starts"]
        self.assertLessEqual(starts, 3, "the engine did not end between two choices, and start again")
        self.cancel(helper, running[0])
        self.assert_answer(helper, waiting, THIRD)


class Uncounted(Engines):
    """An engine without files takes little memory: neither --max-engines nor the budget delays it."""

    def both(self, *args, **env):
        program = os.path.join(wire.BIN, "fm-engine-fake")
        os.symlink(os.path.abspath(program), os.path.join(self.folder, "fm-engine-other"))
        foreign_engine.describe(self.folder, "other", models="own")
        return self.helper("--engine-dir", self.folder, "--models-dir", self.folder, *args, engine="llama,other", env=env)

    def test_it_waits_behind_nobody_who_waits_for_a_place(self):
        helper = self.both("--max-engines", "1")
        running = self.busy(helper, CHAT)
        waiting = self.ask(helper, THIRD, "x")
        also = self.ask(helper, FOURTH, "x")
        self.answer(helper, "other")
        self.assertEqual(set(self.engines(helper)), {CHAT, "other"})
        self.cancel(helper, running)
        for call, model in ((waiting, THIRD), (also, FOURTH)):
            self.assert_answer(helper, call, model)

    def test_a_model_beside_it_counts_as_alone(self):
        """The model counts as alone even if the two engines exceed the budget: otherwise it would wait for an engine that is
        never ended."""
        helper = self.both("--memory-budget", "100M", FM_ENGINE_OTHER_MEMORY=str(90 * MIB),
                           FM_ENGINE_LLAMA_MEMORY=str(50 * MIB))
        self.answer(helper, "other")
        self.answer(helper, CHAT)
        engines = set(children(helper.pid))
        self.answer(helper, CHAT)
        self.assertEqual(set(children(helper.pid)), engines, "it is not ended for the budget when it has nothing to do")
        self.assertTrue(helper.call("models.unload", {"model": CHAT})["unloaded"])
        self.answer(helper, CHAT, queue_timeout_ms=20000)  # now the engine's memory is known


class Mixes(Engines):
    """Requests, deaths, cancels, loads and unloads of more models than there are places for, in any order."""
    STEPS = (("x",), ("x", {"sleep_ms": 5}, "y"), ({"prefill_ms": 3}, "x"), ("x", {"hang": "soft"}),
             ("x", {"signal": "SEGV"}), ({"exit": 1},), ({"error": "it broke"},))

    def act(self, helper, random):
        """Starts a random call; returns its id, and whether only a cancel ends the call."""
        model = random.choice(self.MODELS)
        fm = {"keep_alive_ms": random.choice((-1, 0, 1, 1000))} if random.random() < 0.3 else {}
        kind = random.random()
        if kind < 0.1:
            return helper.start("models.load", {"model": model, "fm": fm}), False
        if kind < 0.2:
            return helper.start("models.unload", {"model": model}), False
        if kind < 0.4:
            return helper.start("embeddings.create", {"model": model, "input": "x", "fm": fm}), False
        steps = random.choice(self.STEPS)
        return self.create(helper, script(*steps), stream=False, model=model, fm=fm), {"hang": "soft"} in steps

    def run_mix(self, seed, count):
        random = Random(seed)
        helper = self.models("--max-engines", "2", "--idle-unload-ms", random.choice(("0", "5", "600000")))
        open_calls = {}
        for _ in range(count):
            call, hangs = self.act(helper, random)
            open_calls[call] = hangs
            if random.random() < 0.3:
                helper.send("$/cancelRequest", {"id": random.choice(list(open_calls))})
            while len(open_calls) > 12:
                for call in [call for call, hangs in open_calls.items() if hangs]:
                    helper.send("$/cancelRequest", {"id": call})
                message = helper.receive()
                self.assertIn(message["id"], open_calls, "settled twice, or never asked")
                del open_calls[message["id"]]
            self.assertLessEqual(len(children(helper.pid)), 2)
        for call in open_calls:
            helper.send("$/cancelRequest", {"id": call})
        while open_calls:
            del open_calls[helper.receive()["id"]]
        for model in self.MODELS:
            helper.call("models.unload", {"model": model})
        self.assertEqual(children(helper.pid), [])
        self.assertEqual(helper.close(), 0)
        self.assertIsNone(helper.receive(), "settled twice")

    def test_some(self):
        for seed in range(int(os.environ.get("FM_MIXES", "4"))):
            with self.subTest(seed=seed):
                self.run_mix(seed, 150)


class Budget(Engines):
    """--memory-budget"""
    SIZE = 100 * MIB

    def test_the_least_recently_used_makes_way(self):
        helper = self.models("--memory-budget", "250M")
        for model in (CHAT, EMBEDDER, CHAT, THIRD):
            self.answer(helper, model)
        self.wait_for_engines(helper, CHAT, THIRD)

    def test_several_make_way_for_a_large_one(self):
        self.write("large", 280 * MIB)
        helper = self.models("--memory-budget", "300M")
        for model in (CHAT, EMBEDDER, THIRD, "large"):
            self.answer(helper, model)
        self.wait_for_engines(helper, "large")

    def test_one_that_runs_a_request_is_waited_for(self):
        helper = self.models("--memory-budget", "150M")
        running = self.busy(helper, CHAT)
        waiting = self.ask(helper, EMBEDDER, "x")
        impatient = self.ask(helper, THIRD, "x", queue_timeout_ms=100)
        self.assertEqual(self.assert_error(helper.collect(impatient)[1], "TIMEOUT")["limit"], "queue")
        self.cancel(helper, running)
        self.assert_answer(helper, waiting, EMBEDDER)

    def test_a_model_that_is_too_large(self):
        helper = self.models("--memory-budget", "64M")
        error = self.assert_error(helper.collect(self.ask(helper, CHAT, "x"))[1], "UNAVAILABLE")
        for part in ("--memory-budget", "64 MiB", "100 MiB", CHAT):
            self.assertIn(part, error["detail"])
        self.assertEqual(children(helper.pid), [])

    def test_what_the_engine_reports_counts(self):
        helper = self.models("--memory-budget", "250M", FM_ENGINE_FAKE_MEMORY=str(140 * MIB))
        for model in (CHAT, EMBEDDER):  # according to the sizes of their files, both models would fit
            self.answer(helper, model)
            self.wait_for_engines(helper, model)

    def test_a_model_that_reports_too_much(self):
        """The second request gets this error from memory: no engine is started."""
        helper = self.models("--memory-budget", "120M", FM_ENGINE_FAKE_MEMORY=str(140 * MIB), FM_ENGINE_FAKE_LOAD="slow:500")
        for takes in (5, 0.4):
            before = time.monotonic()
            error = self.assert_error(helper.collect(self.ask(helper, CHAT, "x"))[1], "UNAVAILABLE")
            self.assertIn("--memory-budget", error["detail"])
            self.assertIn("140 MiB", error["detail"])
            self.assert_soon(time.monotonic() - before, takes * SLOW)
            wire.wait_until(lambda: not children(helper.pid), "the engine's end")


if __name__ == "__main__":
    wire.main()
