"""Tests several engines in an order: which engine a request goes to, when it moves on to the next one, what the host learns about
each engine, and which variables each engine gets. The engines are copies of the fake engine, each with separate variables
(fake.c)."""

import json
import os
import subprocess
import tempfile
import time

import foreign_engine
import wire
from gateway import Gateway
from wire import HelperTest, check_stream, script

FAKE = os.path.join(wire.BIN, "fm-engine-fake")


class OrderTest(HelperTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def engine(self, name, **variables):
        """Makes an engine with this name; returns the variables that the helper's environment needs for it."""
        path = os.path.join(self.folder, f"fm-engine-{name}")
        env = {f"FM_ENGINE_{name.upper()}_{key}": value for key, value in variables.items()}
        os.symlink(os.path.abspath(FAKE), path)
        described = subprocess.run([path, "--describe"], env={**os.environ, **env}, capture_output=True, check=True)
        with open(path + ".json", "wb") as file:
            file.write(described.stdout)
        return env

    def order(self, *engines, args=(), names=None, **more):
        """Returns a helper with these engines, each as (name, variables), in their order."""
        env = {}
        for name, variables in engines:
            env.update(self.engine(name, **variables))
        names = names or ",".join(name for name, _ in engines)
        return self.helper("--engine-dir", self.folder, "--models-dir", self.folder, *args, engine=names,
                           env={**env, **more})

    def ask(self, helper, prompt="hello", **params):
        return helper.call("responses.create", {"input": prompt, **params})

    def answered_by(self, helper, prompt="hello", **params):
        result = self.ask(helper, prompt, **params)
        self.assertTrue(result["ok"], result)
        return result["response"]["fm"]["engine"]

    def known(self, helper):
        """Returns the order, as soon as the helper knows which engines are available."""
        deadline = time.monotonic() + wire.WAIT
        while True:
            capabilities = helper.call("capabilities.get")
            if not any(e["reason_code"] == "CHECKING" for e in capabilities["order"]) or time.monotonic() > deadline:
                return capabilities
            time.sleep(0.01)


class Routes(OrderTest):
    def test_the_first_engine_answers_and_says_so(self):
        helper = self.order(("alpha", {}), ("beta", {}))
        self.assertEqual(self.answered_by(helper), "alpha")
        order = helper.call("capabilities.get")["order"]
        self.assertEqual([(e["name"], e["available"], e["reason_code"]) for e in order],
                         [("alpha", True, None), ("beta", True, None)])

    def test_one_engine_alone_is_not_named(self):
        helper = self.order(("alpha", {}))
        self.assertNotIn("fm", self.ask(helper)["response"])

    def test_a_model_names_its_engine(self):
        helper = self.order(("alpha", {}), ("beta", {"IS": "listed", "AVAILABLE": "yes", "MODELS": "big,small"}))
        self.known(helper)
        listed = [m["id"] for m in helper.call("models.list")["data"]]
        self.assertEqual(listed, ["alpha", "big", "small"])
        result = self.ask(helper, script({"parameter": "model"}), model="small")
        self.assertEqual(result["response"]["fm"]["engine"], "beta")
        self.assertEqual(result["response"]["model"], "small")
        self.assertEqual(result["response"]["output"][0]["content"][0]["text"], "small")
        self.assertEqual(self.answered_by(helper, model="alpha"), "alpha")
        self.assert_error(self.ask(helper, model="nothing"), "NOT_FOUND")

    def test_the_default_model_of_a_list_is_not_named(self):
        helper = self.order(("beta", {"IS": "listed", "AVAILABLE": "yes", "MODELS": "big,small"}))
        self.known(helper)
        result = self.ask(helper, script({"parameter": "model"}))
        self.assertEqual(result["response"]["model"], "big")
        self.assertEqual(result["response"]["output"][0]["content"][0]["text"], "none")

    def test_a_name_goes_to_an_engine_that_has_not_told_its_models(self):
        helper = self.order(("alpha", {}), ("beta", {"IS": "listed"}))
        result = self.ask(helper, script({"parameter": "model"}), model="whatever")
        self.assertEqual(result["response"]["fm"]["engine"], "beta")
        self.assertEqual(result["response"]["output"][0]["content"][0]["text"], "whatever")

    def test_who_has_the_model_is_before_who_may_have_it(self):
        helper = self.order(("alpha", {"IS": "listed"}), ("beta", {}))
        self.assertEqual(self.answered_by(helper, model="beta"), "beta")

    def test_local_only(self):
        helper = self.order(("alpha", {"IS": "remote"}), ("beta", {}))
        self.assertEqual(self.answered_by(helper), "alpha")
        self.assertEqual(self.answered_by(helper, fm={"local_only": True}), "beta")

    def test_local_only_without_a_local_engine(self):
        helper = self.order(("alpha", {"IS": "remote"}))
        error = self.assert_error(self.ask(helper, fm={"local_only": True}), "UNAVAILABLE")
        self.assertIn("local_only", error["detail"])

    def test_images_pass_over_engines_that_see_none(self):
        helper = self.order(("alpha", {}), ("beta", {"IS": "listed"}))
        image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
        content = [{"type": "input_text", "text": "what"}, image]
        result = self.ask(helper, [{"role": "user", "content": content}])
        self.assert_error(result, "INVALID_REQUEST")  # beta got the request, and its model does not see images either
        self.assertIn("does not see images", result["error"]["detail"])

    def test_a_conversation_has_one_session(self):
        helper = self.order(("alpha", {"IS": "session"}))

        def session(messages):
            result = helper.call("chat.completions.create", {"messages": messages})
            return result["completion"]["choices"][0]["message"]["content"]

        ask = {"role": "user", "content": script({"parameter": "session"})}
        first = session([{"role": "system", "content": "s"}, ask])
        later = session([{"role": "system", "content": "s"}, ask, {"role": "assistant", "content": "x"}, ask])
        other = session([{"role": "system", "content": "t"}, ask])
        self.assertRegex(first, "^[0-9a-f]{16}$")
        self.assertEqual(later, first)
        self.assertNotEqual(other, first)


class Moves(OrderTest):
    def test_before_the_first_output(self):
        for code in ("UNAVAILABLE", "RATE_LIMITED", "OVERLOADED", "CONTEXT_OVERFLOW:0:elsewhere"):
            with self.subTest(code=code):
                self.setUp()
                helper = self.order(("alpha", {"JOBS": code}), ("beta", {}))
                self.assertEqual(self.answered_by(helper), "beta")

    def test_other_errors_stay(self):
        helper = self.order(("alpha", {"JOBS": "INTERNAL"}), ("beta", {}))
        self.assert_error(self.ask(helper), "INTERNAL")

    def test_a_stream_moves_after_it_was_accepted(self):
        helper = self.order(("alpha", {}), ("beta", {}))
        steps = script({"error": {"code": "UNAVAILABLE", "detail": "gone"}})
        call = self.create(helper, steps)
        events, result = helper.collect(call)
        self.assert_error(result, "UNAVAILABLE")  # the answer is from beta, which runs the same script
        self.assertEqual([e["type"] for e in events][:2], ["response.created", "response.in_progress"])
        check_stream(self, events, result)

    def test_never_after_the_first_output(self):
        helper = self.order(("alpha", {}), ("beta", {}))
        steps = script("one", {"error": {"code": "UNAVAILABLE", "detail": "gone", "elsewhere": True}})
        call = self.create(helper, steps)
        events, result = helper.collect(call)
        self.assert_error(result, "UNAVAILABLE")
        text = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
        self.assertEqual(text, "one")

    def test_a_load_that_fails(self):
        for load in ("error", "crash", "exit", "refuse:OFFLINE"):
            with self.subTest(load=load):
                self.setUp()
                helper = self.order(("alpha", {"LOAD": load}), ("beta", {}))
                self.assertEqual(self.answered_by(helper), "beta")

    def test_a_program_that_is_missing(self):
        helper = self.order(("beta", {}), names="alpha,beta")
        self.assertEqual(self.answered_by(helper), "beta")
        order = helper.call("capabilities.get")["order"]
        self.assertEqual(order[0]["reason_code"], "HELPER_UNHEALTHY")

    def test_what_an_engine_can_not_do(self):
        helper = self.order(("alpha", {"IS": "grammarless"}), ("beta", {}))
        self.assertEqual(self.answered_by(helper, seed=1), "beta")
        self.assertEqual(self.answered_by(helper), "alpha")

    def test_all_fail(self):
        helper = self.order(("alpha", {"JOBS": "UNAVAILABLE"}), ("beta", {"JOBS": "RATE_LIMITED:7000"}))
        error = self.assert_error(self.ask(helper), "RATE_LIMITED")
        self.assertEqual(error["retry_after_ms"], 7000)

    def test_thousand_moves(self):
        helper = self.order(("alpha", {"JOBS": "RATE_LIMITED"}), ("beta", {}))
        for i in range(200):
            call = self.create(helper, f"number {i} of many")
            events, result = helper.collect(call)
            check_stream(self, events, result)
            text = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
            self.assertEqual(text, f"number {i} of many")


class AnotherTry(OrderTest):
    """An answer of which the host has seen nothing is made again (ENGINE.md, Another try): by the same engine, or by the next
    one."""

    CALL = {"tool_call": {"name": "f", "arguments": '{"a": 1}'}}
    TOOLS = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]

    def restarting(self, **env):
        return self.order(("alpha", {"IS": "restarts"}), **env)

    def chat(self, helper, prompt, **params):
        result = helper.call("chat.completions.create", {"messages": [{"role": "user", "content": prompt}], **params})
        self.assertTrue(result["ok"], result)
        return result["completion"]

    def wait_for_text(self, helper, id, text):
        deadline = time.monotonic() + wire.WAIT
        while text not in json.dumps(helper.call("responses.retrieve", {"id": id})) and time.monotonic() < deadline:
            time.sleep(0.01)

    def test_an_answer_that_is_not_streamed(self):
        helper = self.restarting()
        halves = (["half"], [{"reasoning": "hm"}, "half"], [self.CALL], [{"reasoning": "hm"}],
                  [{"piece": ["text", "half"]}, {"call": "f"}, {"piece": ["arguments", "{"]}])
        for half in halves:
            result = self.ask(helper, script(*half, {"restart": "gone"}, "the ", "whole"), tools=self.TOOLS)
            self.assertTrue(result["ok"], result)
            self.assertEqual([item["type"] for item in result["response"]["output"]], ["message"], half)
            self.assertEqual(result["response"]["output"][0]["content"][0]["text"], "the whole")
            self.assertEqual(result["response"]["usage"]["output_tokens"], 2)
        result = self.ask(helper, script("half", {"restart": "gone"}, self.CALL), tools=self.TOOLS)
        self.assertEqual([item["type"] for item in result["response"]["output"]], ["function_call"])
        thrice = self.ask(helper, script("a", {"restart": "1"}, "b", {"restart": "2"}, "c", {"restart": "3"}, "d"))
        self.assertEqual(thrice["response"]["output"][0]["content"][0]["text"], "d")

    def test_in_each_api(self):
        helper = self.restarting()
        steps = script("half", {"restart": "gone"}, "the ", "whole")
        completion = self.chat(helper, steps, n=3, logprobs=True)
        for choice in completion["choices"]:
            self.assertEqual(choice["message"]["content"], "the whole")
            self.assertEqual([entry["token"] for entry in choice["logprobs"]["content"]], ["the ", "whole"])
        self.assertEqual(completion["usage"]["completion_tokens"], 6)
        result = helper.call("completions.create", {"prompt": steps, "echo": True})
        self.assertEqual(result["completion"]["choices"][0]["text"], steps + "the whole")

    def test_a_stream_is_not_made_anew(self):
        helper = self.restarting()
        events, result = helper.collect(self.create(helper, script("half", {"restart": "gone"}, "whole")))
        error = self.assert_error(result, "OVERLOADED", openai_code="overloaded")
        self.assertEqual((error["detail"], error["openai"]["status"]), ("gone", 503))
        self.assertEqual(check_stream(self, events, result)["output"][0]["content"][0]["text"], "half")

    def test_an_engine_that_can_not_is_not_asked(self):
        helper = self.order(("alpha", {}))
        self.assert_error(self.ask(helper, script("half", {"restart": "gone"}, "whole")), "OVERLOADED")

    def test_a_cancel_has_what_is_new(self):
        helper = self.restarting()
        call = self.create(helper, script("half", {"restart": "gone"}, "new", {"hang": "soft"}), stream=False, background=True)
        id = helper.reply(call)["result"]["response"]["id"]
        self.wait_for_text(helper, id, "new")
        response = helper.call("responses.cancel", {"id": id})["response"]
        self.assertEqual(response["output"][0]["content"][0]["text"], "new")

    def test_the_next_engine(self):
        helper = self.order(("alpha", {"JOBS": "late:OVERLOADED"}), ("beta", {}))
        result = self.ask(helper, "a b")["response"]
        self.assertEqual((result["fm"]["engine"], result["model"]), ("beta", "beta"))
        self.assertEqual(result["output"][0]["content"][0]["text"], "a b")
        self.assertEqual(result["usage"]["output_tokens"], 2)
        completion = self.chat(helper, "a b", n=3, logprobs=True)
        self.assertEqual((completion["fm"]["engine"], completion["model"]), ("beta", "beta"))
        self.assertEqual([choice["message"]["content"] for choice in completion["choices"]], ["a b"] * 3)
        self.assertEqual([len(choice["logprobs"]["content"]) for choice in completion["choices"]], [2] * 3)
        vectors = helper.call("embeddings.create", {"input": ["a", "b"]})["embeddings"]["data"]
        self.assertEqual([entry["index"] for entry in vectors], [0, 1])

    def test_the_next_engine_gets_all_choices(self):
        """All choices of one answer come from one model. If one choice is lost, the other choices of the first engine are dropped
        too."""
        helper = self.order(("alpha", {"JOBS": "second:OVERLOADED", "ANSWER": "endless"}), ("beta", {}))
        completion = self.chat(helper, "a b", n=2, logprobs=True, max_tokens=9)
        self.assertEqual([choice["message"]["content"] for choice in completion["choices"]], ["a b"] * 2)
        self.assertEqual([len(choice["logprobs"]["content"]) for choice in completion["choices"]], [2] * 2)
        self.assertEqual((completion["fm"]["engine"], completion["usage"]["completion_tokens"]), ("beta", 4))

    def test_no_stream_moves(self):
        helper = self.order(("alpha", {"JOBS": "late:OVERLOADED"}), ("beta", {}))
        events, result = helper.collect(self.create(helper, "a b"))
        self.assert_error(result, "OVERLOADED")
        self.assertEqual(check_stream(self, events, result)["output"][0]["content"][0]["text"], "a b")

    def test_a_response_that_somebody_follows(self):
        """The response had no reader when it began. A reader that has got a part of a response does not get another beginning."""
        go = os.path.join(self.folder, "go")
        os.mkfifo(go)
        foreign_engine.describe(self.folder, "alpha", "own", ["restarts"])
        foreign_engine.write(self.folder, "alpha", """
            initialize(features=["restarts"])
            load()
            params = read()["params"]
            job = params["job"]
            assert params["restartable"] is True
            send(method="job.accepted", params={"job": job})
            send(method="job.delta", params={"job": job, "text": "half"})
            open(os.environ["FM_ENGINE_GO"]).read()
            send(method="job.restarted", params={"job": job, "error": {"code": "OVERLOADED", "detail": "gone"}})
            message = read()
            assert message["method"] == "job.abort"
            send(method="job.finished", params={"job": job, "reason": "aborted"})
            read()
            """)
        helper = self.helper("--engine-dir", self.folder, engine="alpha", env={"FM_ENGINE_GO": go})
        id = self.ask(helper, "x", background=True)["response"]["id"]
        self.wait_for_text(helper, id, "half")
        call = helper.start("responses.retrieve", {"id": id, "stream": True})
        helper.event(call, "response.output_text.delta", keep=True)
        with open(go, "w"):
            pass
        events, _ = helper.collect(call)
        failed = events[-1]["response"]
        self.assertEqual((events[-1]["type"], failed["output"][0]["content"][0]["text"]), ("response.failed", "half"))
        self.assertIn("gone", failed["error"]["message"])


class Availability(OrderTest):
    def test_an_engine_that_is_not_is_passed_over(self):
        helper = self.order(("alpha", {"AVAILABLE": "AI_DISABLED"}), ("beta", {}))
        first = helper.call("capabilities.get")
        self.assertEqual(first["order"][0]["reason_code"], "CHECKING")
        order = self.known(helper)["order"]
        self.assertEqual([(e["name"], e["available"], e["reason_code"]) for e in order],
                         [("alpha", False, "AI_DISABLED"), ("beta", True, None)])
        self.assertEqual(self.answered_by(helper), "beta")
        self.assertEqual([e["engine"] for e in helper.call("capabilities.get")["engines"]], ["beta"])

    def test_what_is_known_holds_for_so_long(self):
        helper = self.order(("alpha", {"AVAILABLE": "OFFLINE:1"}), ("beta", {}))
        self.known(helper)
        time.sleep(0.01)
        self.assertEqual(helper.call("capabilities.get")["order"][0]["reason_code"], "CHECKING")

    def test_faults_of_the_call(self):
        for fault in ("hang", "crash"):
            with self.subTest(fault=fault):
                self.setUp()
                helper = self.order(("alpha", {"AVAILABLE": fault}), ("beta", {}))
                order = self.known(helper)["order"]
                self.assertEqual(order[0]["reason_code"], "HELPER_UNHEALTHY", order)

    def test_the_reader_is_never_blocked(self):
        helper = self.order(("alpha", {"AVAILABLE": "hang"}), ("beta", {}))
        before = time.monotonic()
        for _ in range(20):
            helper.call("capabilities.get")
            helper.call("health.ping")
        self.assert_soon(time.monotonic() - before, 1.0)

    def test_without_any_each_reason_is_told(self):
        helper = self.order(("alpha", {"AVAILABLE": "OS_TOO_OLD"}), ("beta", {"IS": "config"}))
        capabilities = self.known(helper)
        self.assertFalse(capabilities["available"])
        self.assertEqual([e["reason_code"] for e in capabilities["order"]], ["OS_TOO_OLD", "NOT_CONFIGURED"])

    def test_one_alone_that_is_unavailable_is_tried(self):
        helper = self.order(("alpha", {"AVAILABLE": "OFFLINE"}))
        self.known(helper)
        self.assertTrue(self.ask(helper)["ok"])
        self.assertTrue(helper.call("capabilities.get")["order"][0]["available"])

    def test_a_request_that_fails_tells_that_it_is_not(self):
        helper = self.order(("alpha", {"AVAILABLE": "yes", "JOBS": "UNAVAILABLE:0:AUTH_FAILED"}), ("beta", {}))
        self.assertTrue(self.known(helper)["order"][0]["available"])
        self.assertEqual(self.answered_by(helper), "beta")
        order = helper.call("capabilities.get")["order"]
        self.assertEqual([(e["name"], e["available"], e["reason_code"]) for e in order],
                         [("alpha", False, "AUTH_FAILED"), ("beta", True, None)])
        self.assertIn("as FM_ENGINE_FAKE_JOBS asks", order[0]["detail"])

    def test_a_request_for_another_model_tells_nothing(self):
        helper = self.order(("alpha", {"IS": "listed", "AVAILABLE": "yes", "MODELS": "big,small",
                                       "JOBS": "UNAVAILABLE:0:AUTH_FAILED"}))
        self.known(helper)
        for model, available in (("small", True), ("big", False)):
            self.assert_error(self.ask(helper, model=model), "UNAVAILABLE")
            self.assertEqual(helper.call("capabilities.get")["order"][0]["available"], available, model)

    def test_auto(self):
        self.engine("llama")
        helper = self.helper("--engine-dir", self.folder, "--models-dir", self.folder, engine="auto")
        order = self.known(helper)["order"]
        self.assertEqual([e["name"] for e in order], ["apple", "llama"])  # no servers without --remote
        self.assertEqual(order[0]["reason_code"], "UNSUPPORTED_PLATFORM")
        self.assertEqual(self.answered_by(helper), "llama")

    def test_auto_with_remote(self):
        path = os.path.join(self.folder, "remote.json")
        with open(path, "w") as file:
            file.write('{"endpoints": [{"url": "http://localhost"}]}')
        helper = self.helper("--engine-dir", self.folder, "--models-dir", self.folder, "--remote", path, engine="auto")
        told = self.known(helper)
        self.assertEqual([e["name"] for e in told["order"]], ["apple", "llama", "remote"])
        self.assertEqual(told["order"][2]["reason_code"], "HELPER_UNHEALTHY")  # the program is missing
        # If no engine is available, the code comes from the first engine that can be fixed, and the detail has the errors of all
        # engines.
        self.assertEqual(told["reason_code"], "HELPER_UNHEALTHY")
        for engine in told["order"]:
            self.assertIn(f"{engine['name']}: {engine['detail'][:40]}", told["detail"])


class Hosts(OrderTest):
    """Commands that ask for the engines wait for those that have not answered yet."""

    def gateway(self, available):
        env = self.engine("alpha", AVAILABLE=available)
        made = Gateway("--engine-dir", self.folder, "--models-dir", self.folder, engine="alpha", env=env)
        self.addCleanup(made.close)
        return made

    def test_sessions(self):
        self.assertEqual(self.gateway("slow").ask("check-availability"), {"ok": True, "available": True, "reason": None})

    def test_sessions_whose_engine_does_not_answer(self):
        made = self.gateway("hang")
        before = time.monotonic()
        answer = made.ask("check-availability")
        self.assert_soon(time.monotonic() - before, 4 * wire.SLOW)  # the engine may take 7 s
        self.assertFalse(answer["available"])
        self.assertRegex(answer["reason"], "^CHECKING: the engine alpha is being asked")

    def test_bench(self):
        env = self.engine("alpha", AVAILABLE="slow", LOAD="error")
        words = ["bench", "--engine", "alpha", "--engine-dir", self.folder, "--models-dir", self.folder]
        done = subprocess.run([os.path.join(wire.BIN, "fm-proxy"), *words], capture_output=True, text=True, timeout=wire.WAIT,
                              env=wire.environment(env))
        self.assertEqual(done.returncode, 69)
        self.assertIn("this load fails", done.stderr)


class Configuration(OrderTest):
    KEY = "sk-canary-0123456789"

    def write(self, text):
        path = os.path.join(self.folder, "config.json")
        with open(path, "w") as file:
            file.write(text)
        return path

    def text_of(self, result):
        self.assertTrue(result["ok"], result)
        return result["response"]["output"][0]["content"][0]["text"]

    def test_it_reaches_its_engine_alone(self):
        config = {"endpoints": [{"url": "http://localhost", "key_env": "CANARY_KEY"}]}
        path = self.write(json.dumps(config))
        helper = self.order(("remote", {"IS": "config,remote"}), ("beta", {}), args=("--remote", path),
                            CANARY_KEY=self.KEY)
        told = self.text_of(self.ask(helper, script({"parameter": "config"})))
        self.assertEqual(json.loads(told), config)
        self.assertEqual(self.text_of(self.ask(helper, script({"parameter": "key:CANARY_KEY"}))), self.KEY)
        self.assertEqual(self.text_of(self.ask(helper, script({"parameter": "config_dir"}))), self.folder)
        local = {"local_only": True}
        for name in ("CANARY_KEY", "FM_ENGINE_CONFIG"):
            told = self.text_of(self.ask(helper, script({"parameter": f"env:{name}"}), fm=local))
            self.assertEqual(told, "unset")
        self.assert_nowhere(helper)

    def assert_nowhere(self, helper):
        for pid in [helper.pid, *wire.children(helper.pid)]:
            for file in ("environ", "cmdline"):
                with open(f"/proc/{pid}/{file}", "rb") as proc:
                    self.assertNotIn(self.KEY.encode(), proc.read(), f"{pid} {file}")

    def test_names_that_others_read_are_refused(self):
        """With such names, another program would run in place of the engine, or one of our programs would get the key."""
        for name in ("LD_PRELOAD", "PATH", "HOME", "GLIBC_TUNABLES", "MALLOC_TRACE", "FM_ENGINE_KEY", "FM_PROXY_STORE", "LC_ALL"):
            with self.subTest(name):
                self.setUp()
                path = self.write(json.dumps({"key_env": name}))
                helper = self.order(("remote", {"IS": "config"}), args=("--remote", path), FM_ENGINE_KEY=self.KEY)
                entry = helper.call("capabilities.get")["order"][0]
                self.assertEqual(entry["reason_code"], "NOT_CONFIGURED")
                self.assertIn(f"the variable {name} itself", entry["detail"])
        for name in ("PATH_KEY", "HOME2", "LDKEY", "KEY_OF_ENDPOINT_1"):
            with self.subTest(name):
                self.setUp()
                path = self.write(json.dumps({"key_env": name}))
                helper = self.order(("remote", {"IS": "config"}), args=("--remote", path), **{name: self.KEY})
                self.assertEqual(self.text_of(self.ask(helper, script({"parameter": "key:" + name}))), self.KEY)

    def test_in_a_variable(self):
        helper = self.order(("remote", {"IS": "config"}), args=("--remote", "env:THE_CONFIG"),
                            THE_CONFIG='{"key_env": "CANARY_KEY", "a": 1}', CANARY_KEY=self.KEY)
        told = self.text_of(self.ask(helper, script({"parameter": "config"})))
        self.assertEqual(json.loads(told), {"key_env": "CANARY_KEY", "a": 1})
        self.assert_nowhere(helper)

    def test_what_is_wrong_is_told(self):
        for text, words in (("{", "not JSON"), ("[]", "not a JSON object"), ('{"key_env": "NOT_THERE"}', "NOT_THERE"),
                            ('{"a": "%s"}' % ("x" * 40000), "config.json"), (None, "config.json")):
            with self.subTest(words=words):
                self.setUp()
                path = self.write(text) if text else os.path.join(self.folder, "config.json")
                helper = self.order(("remote", {"IS": "config"}), args=("--remote", path, "--log-level", "off"))
                entry = helper.call("capabilities.get")["order"][0]
                self.assertEqual(entry["reason_code"], "NOT_CONFIGURED")
                self.assertIn(words, entry["detail"])
                error = self.assert_error(self.ask(helper), "UNAVAILABLE")
                self.assertEqual(error["reason_code"], "NOT_CONFIGURED")


class Answers(OrderTest):
    """Answers of engines that count nothing, refuse, or have a state."""

    def items(self, steps, **params):
        helper = self.order(("alpha", {"IS": "any_order,uncounted"}))
        call = self.create(helper, script(*steps), **params)
        events, result = helper.collect(call)
        check_stream(self, events, result, any_order=True)
        return result["response"]

    def test_no_counts(self):
        response = self.items([{"piece": ["text", "a"]}])
        self.assertIsNone(response["usage"])

    def test_final_counts(self):
        response = self.items([{"piece": ["text", "a"]}, {"usage": {"input": 7, "output": 3}}])
        usage = response["usage"]
        self.assertEqual((usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]), (7, 3, 10))
        self.assertEqual(usage["input_tokens_details"]["cached_tokens"], 0)
        self.assertEqual(usage["output_tokens_details"]["reasoning_tokens"], 0)
        self.assertEqual(response["fm"]["uncounted"], ["cached_tokens", "reasoning_tokens"])

    def test_chat_without_counts(self):
        helper = self.order(("alpha", {"IS": "uncounted"}))
        messages = [{"role": "user", "content": script({"piece": ["text", "a"]})}]
        completion = helper.call("chat.completions.create", {"messages": messages})["completion"]
        self.assertIsNone(completion["usage"])
        call = helper.start("chat.completions.create", {"messages": messages, "stream": True,
                                                        "stream_options": {"include_usage": True}})
        events, result = helper.collect(call)
        self.assertTrue(result["ok"], result)
        self.assertTrue(all(chunk["choices"] for chunk in events))

    def test_a_refusal(self):
        response = self.items([{"refusal": "I can't "}, {"refusal": "do that."}])
        self.assertEqual(response["output"][0]["content"], [{"type": "refusal", "refusal": "I can't do that."}])
        self.assertEqual(response["status"], "completed")

    def test_a_refusal_in_chat(self):
        helper = self.order(("alpha", {}))
        messages = [{"role": "user", "content": script({"refusal": "No."})}]
        completion = helper.call("chat.completions.create", {"messages": messages})["completion"]
        message = completion["choices"][0]["message"]
        self.assertEqual((message["content"], message["refusal"]), (None, "No."))
        call = helper.start("chat.completions.create", {"messages": messages, "stream": True})
        events, result = helper.collect(call)
        deltas = [chunk["choices"][0]["delta"] for chunk in events]
        self.assertEqual("".join(delta.get("refusal") or "" for delta in deltas), "No.")

    def test_nothing_follows_a_refusal(self):
        helper = self.order(("alpha", {"IS": "any_order"}))
        result = self.ask(helper, script({"refusal": "No."}, {"piece": ["text", "Yes."]}))
        self.assert_error(result, "INTERNAL")

    def test_parts_in_any_order(self):
        tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
        response = self.items([{"piece": ["text", "first"]}, {"piece": ["reasoning", "hm"]}, {"call": "f"},
                               {"piece": ["arguments", "{}"]}, {"piece": ["text", "then"]}, {"call": "f"},
                               {"piece": ["arguments", "{}"]}], tools=tools)
        self.assertEqual([item["type"] for item in response["output"]],
                         ["message", "reasoning", "function_call", "message", "function_call"])

    def test_chat_in_any_order(self):
        helper = self.order(("alpha", {"IS": "any_order"}))
        steps = [{"piece": ["text", "first"]}, {"piece": ["reasoning", "hm"]}, {"call": "f"},
                 {"piece": ["arguments", "{}"]}, {"piece": ["text", " then"]}, {"call": "f"},
                 {"piece": ["arguments", "[]"]}]
        params = {"messages": [{"role": "user", "content": script(*steps)}],
                  "tools": [{"type": "function", "function": {"name": "f"}}]}
        message = helper.call("chat.completions.create", params)["completion"]["choices"][0]["message"]
        self.assertEqual((message["content"], message["reasoning_content"]), ("first then", "hm"))
        self.assertEqual([c["function"]["arguments"] for c in message["tool_calls"]], ["{}", "[]"])
        events, result = helper.collect(helper.start("chat.completions.create", {**params, "stream": True}))
        self.assertTrue(result["ok"], result)
        deltas = [chunk["choices"][0]["delta"] for chunk in events]
        self.assertEqual("".join(d.get("content") or "" for d in deltas), "first then")
        arguments = {}
        for delta in deltas:
            for call in delta.get("tool_calls", ()):
                arguments[call["index"]] = arguments.get(call["index"], "") + call["function"]["arguments"]
        self.assertEqual(arguments, {0: "{}", 1: "[]"})

    def test_an_engine_that_has_an_order_keeps_it(self):
        helper = self.order(("alpha", {}))
        result = self.ask(helper, script({"piece": ["text", "a"]}, {"piece": ["reasoning", "b"]}))
        self.assert_error(result, "INTERNAL")

    def test_a_state_comes_back(self):
        helper = self.order(("alpha", {}))
        first = self.ask(helper, script({"piece": ["reasoning", "hm"]}, {"state": "S1"}, {"piece": ["text", "a"]}))
        reasoning = first["response"]["output"][0]
        self.assertEqual((reasoning["type"], reasoning["encrypted_content"]), ("reasoning", "S1"))
        later = self.ask(helper, script({"parameter": "states"}), previous_response_id=first["response"]["id"])
        self.assertEqual(later["response"]["output"][0]["content"][0]["text"], "S1 ")
        items = [{"role": "user", "content": "x"}, *first["response"]["output"],
                 {"role": "user", "content": script({"parameter": "states"})}]
        again = self.ask(helper, items, store=False)
        self.assertEqual(again["response"]["output"][0]["content"][0]["text"], "S1 ")

    def test_a_state_alone_has_an_item_without_text(self):
        response = self.items([{"piece": ["text", "a"]}, {"state": "S"}])
        self.assertEqual([item["type"] for item in response["output"]], ["message", "reasoning"])
        self.assertEqual((response["output"][1]["summary"], response["output"][1]["encrypted_content"]), ([], "S"))

    def test_a_stored_stream_is_the_same(self):
        helper = self.order(("alpha", {"IS": "any_order"}))
        steps = script({"state": "S0"}, {"piece": ["reasoning", "hm"]}, {"state": "S1"}, {"piece": ["text", "a"]},
                       {"piece": ["reasoning", "x"]}, {"refusal": "No."})
        events, result = helper.collect(self.create(helper, steps))
        check_stream(self, events, result, any_order=True)
        call = helper.start("responses.retrieve", {"id": result["response"]["id"], "stream": True})
        self.assertEqual(helper.collect(call)[0], events)

    def test_too_much_state(self):
        helper = self.order(("alpha", {}))
        result = self.ask(helper, script(*[{"state": "x"}] * 17))
        self.assert_error(result, "INTERNAL")

    def test_retry_after(self):
        helper = self.order(("alpha", {}))
        result = self.ask(helper, script({"error": {"code": "RATE_LIMITED", "retry_after_ms": 1500}}))
        self.assertEqual(self.assert_error(result, "RATE_LIMITED")["retry_after_ms"], 1500)
        result = self.ask(helper, script({"error": {"code": "UNAVAILABLE", "reason_code": "AUTH_FAILED"}}))
        self.assertEqual(self.assert_error(result, "UNAVAILABLE")["reason_code"], "AUTH_FAILED")


class Aborts(OrderTest):
    LIMIT = {"timeout_ms": 500}  # then the hang has begun; a cancel could come before the hang
    # The engine sends text for the second of two jobs all the time. It stops the first job when the file GATE exists.
    STUBBORN = """
        initialize()
        send(id=read()["id"], result={"ok": True, "context_length": 1000, "slots": 2})
        first, second = accept(), accept()

        def say(text):
            send(method="job.delta", params={"job": second, "text": text, "output_tokens": 1})

        while not os.path.exists(GATE):
            say("still ")
            time.sleep(0.1)
        send(method="job.finished", params={"job": first, "reason": "aborted", "usage": {}})
        say("there")
        finish(second)
        while True:
            read()
        """

    def stubborn(self):
        """Returns the helper, the path of the gate, and the request that continues. The other request does not stop as it
        should."""
        gate = os.path.join(self.folder, "gate")
        foreign_engine.write(self.folder, "alpha", self.STUBBORN.replace("GATE", repr(gate)))
        helper = self.helper("--engine-dir", self.folder, engine="alpha")
        first, second = (self.create(helper, "x") for _ in range(2))
        helper.event(second, "response.output_text.delta", keep=True)  # the engine has both jobs
        helper.start("responses.cancel", {"request_id": first})
        self.assert_error(helper.collect(first)[1], "CANCELLED")
        return helper, gate, second

    def held(self, helper):
        return [engine["requests"] for engine in helper.call("capabilities.get")["engines"]]

    def test_one_that_ends_at_last_frees_its_slot(self):
        helper, gate, second = self.stubborn()
        self.assertEqual(self.held(helper), [2], "its slot is taken still")
        open(gate, "w").close()
        _, result = helper.collect(second)
        self.assertTrue(result["ok"], result)
        self.assertEqual(self.held(helper), [0])

    def test_an_engine_that_goes_on_with_others_stays(self):
        helper, gate, second = self.stubborn()
        until = time.monotonic() + 6  # an engine that is silent for 5 s is ended
        while time.monotonic() < until:
            helper.event(second, "response.output_text.delta")
        open(gate, "w").close()
        _, result = helper.collect(second)
        self.assertTrue(result["ok"], result)
        self.assertRegex(result["response"]["output"][0]["content"][0]["text"], "^(still )+there$")

    def test_one_that_is_not_obeyed_does_no_harm_to_others(self):
        helper = self.order(("alpha", {}))
        stuck = self.create(helper, script("a", {"hang": "hard"}), fm=self.LIMIT)
        helper.event(stuck, "response.output_text.delta", keep=True)
        other = self.create(helper, script("b", {"sleep_ms": 1500}, "c"))
        self.assert_error(helper.collect(stuck)[1], "TIMEOUT")
        events, result = helper.collect(other)
        self.assertTrue(result["ok"], result)
        self.assertEqual(result["response"]["output"][0]["content"][0]["text"], "bc")

    def test_an_engine_with_nothing_else_to_do_is_ended(self):
        helper = self.order(("alpha", {}))
        stuck = self.create(helper, script("a", {"hang": "hard"}), fm=self.LIMIT)
        helper.event(stuck, "response.output_text.delta", keep=True)
        before = wire.children(helper.pid)
        helper.collect(stuck)
        deadline = time.monotonic() + wire.WAIT
        while wire.children(helper.pid) == before and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertNotEqual(wire.children(helper.pid), before)
        self.assertTrue(self.ask(helper)["ok"])

    def test_one_that_may_hang_gets_no_other_job(self):
        helper = self.order(("alpha", {}))
        stuck, other = (self.create(helper, script("a", {"hang": "hard"}), fm=limit) for limit in (self.LIMIT, {}))
        for call in (stuck, other):
            helper.event(call, "response.output_text.delta", keep=True)
        before = wire.children(helper.pid)
        self.assert_error(helper.collect(stuck)[1], "TIMEOUT")
        self.assertTrue(self.ask(helper)["ok"], "it waits for an engine that does not hang")
        self.assertNotEqual(wire.children(helper.pid), before)
        self.assert_error(helper.collect(other)[1], "INTERNAL")

    def test_one_slot_ends_the_engine(self):
        helper = self.order(("alpha", {"IS": "one_slot"}))
        stuck = self.create(helper, script("a", {"hang": "hard"}), fm=self.LIMIT)
        helper.event(stuck, "response.output_text.delta", keep=True)
        before = wire.children(helper.pid)
        self.assert_error(helper.collect(stuck)[1], "TIMEOUT")
        self.assertNotEqual(wire.children(helper.pid), before)


class Silence(OrderTest):
    def test_no_progress_counts_from_the_first_output(self):
        steps = script({"sleep_ms": 900}, "a", {"sleep_ms": 60000})
        loud = self.order(("alpha", {}))
        limit = {"no_progress_timeout_ms": 300}
        before = time.monotonic()
        error = self.assert_error(self.ask(loud, steps, fm=limit), "TIMEOUT")
        self.assertEqual(error["limit"], "no_progress")
        self.assert_soon(time.monotonic() - before, 0.9)
        silent = self.order(("beta", {"IS": "silent"}))
        result = self.ask(silent, steps, fm=limit)
        self.assertEqual(self.assert_error(result, "TIMEOUT")["limit"], "no_progress")
        self.assertEqual(result["response"]["output"][0]["content"][0]["text"], "a")


if __name__ == "__main__":
    wire.main()
