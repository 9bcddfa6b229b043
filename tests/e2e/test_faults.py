"""Tests engines that die, hang, lie or can't be started: each request gets one terminal event, and the next request works."""

import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import foreign_engine
import wire
from wire import SLOW, HelperTest, alive, check_stream, script, wait_until


class Death(HelperTest):
    def assert_failed(self, helper, call):
        events, result = helper.collect(call)
        final = check_stream(self, events, result)
        self.assert_error(result, "INTERNAL")
        self.assertEqual([e["type"] for e in events][-2:], ["error", "response.failed"])
        self.assertTrue(helper.call("responses.create", {"input": "next"})["ok"])
        return final, result

    def test_killed_in_mid_stream(self):
        helper = self.helper()
        call = self.create(helper, script("part", {"hang": "soft"}))
        helper.event(call, "response.output_text.delta")
        pings = []
        before = time.monotonic()
        os.kill(helper.engine_pid(), signal.SIGKILL)
        for _ in range(20):
            pings.append(helper.ping_ms())
        helper.event(call, "error")
        helper.event(call, "response.failed")
        took = (time.monotonic() - before) * 1000
        self.assert_soon(max(pings), 50 * SLOW)
        self.assert_soon(took, 500 * SLOW)

    def test_killed_keeps_the_text(self):
        helper = self.helper()
        call = self.create(helper, script("part", {"hang": "soft"}))
        helper.event(call, "response.created")
        helper.event(call, "response.output_text.delta")
        os.kill(helper.engine_pid(), signal.SIGKILL)
        _, result = helper.collect(call)
        self.assertIn("signal 9", result["error"]["detail"])
        self.assertEqual(result["response"]["output"][0]["content"][0]["text"], "part")

    def test_each_way_to_die(self):
        for step, word in (({"signal": "SEGV"}, "signal 11"), ({"signal": "ABRT"}, "signal 6"), ({"exit": 0}, "status 0"),
                           ({"exit": 3}, "status 3")):
            with self.subTest(str(step)):
                no_handlers = "handle_segv=0:handle_abort=0"  # a sanitizer would catch the signal and exit
                helper = self.helper(env={"ASAN_OPTIONS": no_handlers, "TSAN_OPTIONS": no_handlers})
                _, result = self.assert_failed(helper, self.create(helper, script("a", step)))
                self.assertIn(word, result["error"]["detail"])

    def test_those_that_wait_outlive_it(self):
        helper = self.helper()
        inside = [self.create(helper, script("in", {"hang": "soft"})) for _ in range(8)]
        for call in inside:
            helper.event(call, "response.output_text.delta")
        waiting = [self.create(helper, "later") for _ in range(4)]
        self.assertTrue(helper.call("health.ping")["ok"])  # so the messages before it have arrived
        os.kill(helper.engine_pid(), signal.SIGKILL)
        for call in inside:
            self.assert_error(helper.collect(call)[1], "INTERNAL")
        for call in waiting:
            self.assertTrue(helper.collect(call)[1]["ok"])

    def stop_engine(self, helper):
        """Stops the engine as a debugger does: it reads and writes nothing."""
        pid = helper.engine_pid()
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(lambda: alive(pid) and os.kill(pid, signal.SIGKILL))
        return pid

    def wait_ending(self, helper, call):
        wait_until(lambda: helper.call("requests.get", {"request_id": call}).get("state") == "ending", "the limit")

    def test_a_limit_has_passed_and_the_engine_does_not_stop(self):
        """What comes after the limit waits, and goes to the next engine; so does what the engine never accepted."""
        helper = self.helper()
        late = self.create(helper, script("a", {"sleep_ms": 60000}), fm={"timeout_ms": 800})
        helper.event(late, "response.output_text.delta")
        self.stop_engine(helper)
        self.wait_ending(helper, late)
        after = self.create(helper, "after")
        self.assert_error(helper.collect(late)[1], "TIMEOUT")
        self.assertTrue(helper.collect(after)[1]["ok"])

    def test_what_a_silent_engine_never_accepted(self):
        helper = self.helper()
        late = self.create(helper, script("a", {"sleep_ms": 60000}), fm={"timeout_ms": 1500})
        helper.event(late, "response.output_text.delta")
        self.stop_engine(helper)
        unread = [self.create(helper, "unread", stream=stream) for stream in (True, False)]
        self.assert_error(helper.collect(late)[1], "TIMEOUT")
        for call in unread:
            self.assertEqual(helper.collect(call)[1].get("error"), None)

    def test_crash_loop(self):
        """After three deaths in a row, requests get UNAVAILABLE at once, with the reason; later the engine is tried again."""
        helper = self.helper()
        death = script({"signal": "KILL"})
        for _ in range(3):
            _, result = helper.collect(self.create(helper, death))
            self.assert_error(result, "INTERNAL")
        before = time.monotonic()
        error = self.assert_error(helper.call("responses.create", {"input": "x"}), "UNAVAILABLE")
        self.assert_soon(time.monotonic() - before, 0.5 * SLOW)
        self.assertIn("3 times in a row", error["detail"])
        self.assertIn("signal 9", error["detail"])
        self.assertIsNone(helper.engine_pid(), "no engine is started for it")
        wait_until(lambda: helper.call("responses.create", {"input": "x"})["ok"], "the next try")
        for _ in range(2):  # an answer that ended well has reset the count
            helper.collect(self.create(helper, death))
        self.assertTrue(helper.call("responses.create", {"input": "x"})["ok"])

    def test_garbage_on_stdout(self):
        for text in ("printf debugging\n", "Content-Length: 5\r\n\r\n{bad}", "Content-Length: 99999999999\r\n\r\n"):
            with self.subTest(text):
                helper = self.helper()
                _, result = self.assert_failed(helper, self.create(helper, script("a", {"stdout": text}, {"hang": "soft"})))
                self.assertIn("the engine sent what is not", result["error"]["detail"])

    def say(self, method_or_reply):
        """A step with which the engine sends a message that the kit would not send."""
        return {"stdout": wire.frame({"jsonrpc": "2.0", **method_or_reply}).decode()}

    def test_codes_and_counts_that_are_not_an_engines(self):
        for code in ("CANCELLED", "TIMEOUT", "NO_SUCH_CODE"):
            usage = {"input_tokens": -5, "cached_tokens": -1, "output_tokens": -7, "reasoning_tokens": -1}
            end = {"job": 1, "reason": "error", "error": {"code": code, "detail": "because"}, "usage": usage}
            helper = self.helper()
            call = self.create(helper, script("a", self.say({"method": "job.finished", "params": end}), {"hang": "soft"}))
            events, result = helper.collect(call)
            self.assertEqual(self.assert_error(result, "INTERNAL")["detail"], "because")
            final = check_stream(self, events, result)
            self.assertEqual((final["usage"]["input_tokens"], final["usage"]["total_tokens"]), (0, 0))

    # PROTOCOL.md, "Errors": the host's code, HTTP status and OpenAI's code for an engine's code
    CODES = {
        "UNAVAILABLE": ("UNAVAILABLE", 404, "server_error", "model_unavailable"),
        "TIMEOUT": ("INTERNAL", 500, "server_error", "server_error"),
        "CANCELLED": ("INTERNAL", 500, "server_error", "server_error"),
        "INTERNAL": ("INTERNAL", 500, "server_error", "server_error"),
        "INVALID_REQUEST": ("INVALID_REQUEST", 400, "invalid_request_error", "invalid_value"),
        "NOT_FOUND": ("NOT_FOUND", 404, "invalid_request_error", "model_not_found"),
        "CONTEXT_OVERFLOW": ("CONTEXT_OVERFLOW", 400, "invalid_request_error", "context_length_exceeded"),
        "RATE_LIMITED": ("RATE_LIMITED", 429, "rate_limit_error", "rate_limit_exceeded"),
        "OVERLOADED": ("OVERLOADED", 503, "server_error", "overloaded"),
        "GUARDRAIL": ("GUARDRAIL", 400, "invalid_request_error", "content_filter"),
        "NO_SUCH_CODE": ("INTERNAL", 500, "server_error", "server_error"),
    }

    def test_each_code_of_an_engine(self):
        for said, expected in self.CODES.items():
            with self.subTest(said):
                helper = self.helper()
                end = {"job": 1, "reason": "error", "error": {"code": said, "detail": "because"}}
                end = self.say({"method": "job.finished", "params": end})
                events, result = helper.collect(self.create(helper, script("a", end, {"hang": "soft"})))
                error = self.assert_error(result, expected[0])
                openai = error["openai"]
                self.assertEqual((error["code"], openai["status"], openai["type"], openai["code"]), expected)
                self.assertEqual(error["detail"], "because")
                check_stream(self, events, result)
                self.assertEqual([e["type"] for e in events][-2:], ["error", "response.failed"])
                self.assertEqual(events[-2]["code"], expected[3])

    def test_a_long_field_of_an_engine(self):
        """A field that is too long is cut between characters."""
        for param in ("a" + "é" * 200, "é" * 200):
            error = {"code": "INVALID_REQUEST", "detail": "because", "param": param}
            end = self.say({"method": "job.finished", "params": {"job": 1, "reason": "error", "error": error}})
            helper = self.helper()
            result = helper.collect(self.create(helper, script(end)))[1]
            shown = self.assert_error(result, "INVALID_REQUEST")["openai"]["param"]
            self.assertTrue(len(shown) > 70 and param.startswith(shown), shown)

    def test_counts_beyond_any_context(self):
        usage = {"input_tokens": 2**63 - 1, "cached_tokens": 2**64, "output_tokens": 2**63 - 1, "reasoning_tokens": 1e300}
        end = {"job": 1, "reason": "stop", "usage": usage}
        helper = self.helper()
        call = self.create(helper, script("a", self.say({"method": "job.finished", "params": end}), {"hang": "soft"}))
        events, result = helper.collect(call)
        final = check_stream(self, events, result)
        self.assertEqual((final["usage"]["input_tokens"], final["usage"]["total_tokens"]), (2**31 - 1, 2**32 - 2))

    def test_a_message_that_the_engine_could_not_read(self):
        helper = self.helper()
        step = self.say({"id": None, "error": {"code": -32700, "message": "too large"}})
        self.assert_failed(helper, self.create(helper, script("a", step, {"hang": "soft"})))

    def test_the_largest_request(self):
        """A request of 10,000,000 bytes also reaches the engine, with the bytes that the helper adds."""
        helper = self.helper()
        body = {"jsonrpc": "2.0", "id": 1, "method": "responses.create", "params": {"input": ""}}
        room = 10_000_000 - len(wire.frame(body).split(b"\r\n\r\n")[1])
        body["params"]["input"] = '["x"' + " " * (room - 8) + "]"  # the two quotes are escaped
        helper.send_raw(wire.frame(body))
        self.assertTrue(helper.reply(1)["result"]["ok"])

    def test_the_most_values(self):
        """A request of 65,536 values also reaches the engine. An engine that sends one value more is ended."""
        helper = self.helper()
        messages = [{"role": "user", "content": ""}] * 21842 + [{"role": "user", "content": "x"}]
        params = {"instructions": "y", "input": messages}  # the request has 7 other values
        helper.send_raw(wire.frame({"jsonrpc": "2.0", "id": 1, "method": "responses.create", "params": params}))
        reply = helper.reply(1)
        self.assertTrue(reply["result"]["ok"], str(reply)[:1000])
        event = {"stdout": 'Content-Length: %d\r\n\r\n[0' % (2 + 2 * 65535 + 1)}
        script_steps = ["a", event, {"stdout": ",0" * 65535 + "]"}, {"hang": "soft"}]
        _, result = self.assert_failed(helper, self.create(helper, script(*script_steps)))
        self.assertIn("more than 65,536 values", result["error"]["detail"])

    def test_events_nobody_asked_for(self):
        helper = self.helper()
        stray = b"".join(wire.frame({"jsonrpc": "2.0", "method": m, "params": p}) for m, p in [
            ("job.delta", {"job": 999, "text": "x", "output_tokens": 1}),
            ("job.finished", {"job": 999, "reason": "stop"}),
            ("job.delta", {"job": "one"}), ("job.delta", {}), ("job.delta", None), ("nope", {}), ("job.accepted", {"job": 1}),
        ]).decode()
        _, result = helper.collect(self.create(helper, script("a", {"stdout": stray}, "b")))
        self.assertTrue(result["ok"], result)
        self.assertEqual(result["response"]["output"][0]["content"][0]["text"], "ab")


class Start(HelperTest):
    def assert_unavailable(self, helper, *words):
        events, result = helper.collect(self.create(helper, "x"))
        self.assertEqual(events, [])
        error = self.assert_error(result, "UNAVAILABLE", openai_code="model_unavailable")
        for word in words:
            self.assertIn(word, error["detail"])
        self.assertTrue(helper.call("health.ping")["ok"])

    def test_faults_while_starting(self):
        for env, words in (({"FM_ENGINE_FAKE_INIT": "crash"}, ["fm-engine-fake"]),
                           ({"FM_ENGINE_FAKE_INIT": "version:7"}, ["version 7", "1"]),
                           ({"FM_ENGINE_FAKE_LOAD": "error"}, []),
                           ({"FM_ENGINE_FAKE_LOAD": "exit"}, ["fm-engine-fake"]),
                           ({"FM_ENGINE_FAKE_LOAD": "crash"}, ["fm-engine-fake"])):
            with self.subTest(str(env)):
                helper = self.helper(env={**env, "ASAN_OPTIONS": "handle_segv=0:handle_abort=0"})
                for _ in range(2):
                    self.assert_unavailable(helper, *words)

    def test_a_failed_load_is_told_to_who_asks(self):
        for env, reason, word in (({"FM_ENGINE_FAKE_LOAD": "error"}, "MODEL_NOT_READY", "this load fails"),
                                  ({"FM_ENGINE_FAKE_LOAD": "exit"}, "MODEL_NOT_READY", "before the model"),
                                  ({"FM_ENGINE_FAKE_INIT": "crash"}, "HELPER_UNHEALTHY", "fm-engine-fake")):
            with self.subTest(str(env)):
                helper = self.helper(env={**env, "ASAN_OPTIONS": "handle_segv=0:handle_abort=0"})
                self.assertTrue(helper.call("capabilities.get")["available"], "nothing was tried yet")
                self.assert_unavailable(helper)
                told = helper.call("capabilities.get")
                self.assertEqual((told["available"], told["reason_code"]), (False, reason))
                self.assertIn(word, told["detail"])
        helper = self.helper(env={"FM_ENGINE_FAKE_LOAD": "slow:10"})
        self.assertTrue(helper.collect(self.create(helper, "x"))[1]["ok"])
        self.assertTrue(helper.call("capabilities.get")["available"])

    def test_garbage_first(self):
        helper = self.helper(env={"FM_ENGINE_FAKE_INIT": "garbage"})
        self.assertFalse(helper.collect(self.create(helper, "x"))[1]["ok"])

    def test_silent_at_initialize(self):
        helper = self.helper(env={"FM_ENGINE_FAKE_INIT": "hang"})
        before = time.monotonic()
        call = self.create(helper, "x")
        self.assert_soon(helper.ping_ms(), 100 * SLOW)
        error = self.assert_error(helper.collect(call)[1], "UNAVAILABLE")
        self.assertIn("no progress", error["detail"])
        self.assert_soon(time.monotonic() - before, 6 + 5 * SLOW)

    def test_hang_in_load_ends_with_the_queue_limit(self):
        helper = self.helper(env={"FM_ENGINE_FAKE_LOAD": "hang"})
        result = helper.collect(self.create(helper, "x", fm={"queue_timeout_ms": 200}))[1]
        self.assertEqual(self.assert_error(result, "TIMEOUT")["limit"], "queue")

    def test_slow_load_counts_as_queue(self):
        helper = self.helper(env={"FM_ENGINE_FAKE_LOAD": "slow:300"})
        self.assertTrue(helper.collect(self.create(helper, "x"))[1]["ok"])

    def test_engine_program_missing_or_not_a_program(self):
        with tempfile.TemporaryDirectory() as folder:
            helper = self.helper("--engine-dir", folder)
            self.assert_unavailable(helper, folder + "/fm-engine-fake", "No such file")
            capabilities = helper.call("capabilities.get")
            self.assertEqual((capabilities["available"], capabilities["reason_code"]), (False, "HELPER_UNHEALTHY"))
            with open(folder + "/fm-engine-fake", "w") as f:
                f.write("not a program")
            os.chmod(folder + "/fm-engine-fake", 0o755)
            self.assert_unavailable(helper, folder + "/fm-engine-fake", "Exec format error")
            with open(folder + "/new", "w") as f:
                f.write("#!/bin/sh\nexit 127\n")  # as the system's loader does if a library is missing
            os.chmod(folder + "/new", 0o755)
            os.replace(folder + "/new", folder + "/fm-engine-fake")
            self.assert_unavailable(helper, "status 127", "a library that it needs is missing or too old")
            shutil.copy(os.path.join(wire.BIN, "fm-engine-fake"), folder + "/new")
            os.replace(folder + "/new", folder + "/fm-engine-fake")
            self.assertTrue(helper.call("responses.create", {"input": "x"})["ok"], "found without a restart")

    def test_environment_is_an_allow_list(self):
        helper = self.helper(env={"SECRET_TOKEN": "hunter2", "LD_LIBRARY_PATH": "/nowhere"})
        helper.call("responses.create", {"input": "x"})
        with open(f"/proc/{helper.engine_pid()}/environ", "rb") as f:
            environ = f.read()
        self.assertNotIn(b"SECRET_TOKEN", environ)
        self.assertNotIn(b"LD_LIBRARY_PATH", environ)
        self.assertIn(b"PATH=", environ)
        self.assertIn(b"GLIBC_TUNABLES=glibc.malloc.hugetlb=1\0", environ, "large blocks lie in huge pages")

    def test_environment_is_whole(self):
        many = {f"FM_ENGINE_X{i}": "1" for i in range(300)}
        helper = self.helper(env={**many, "FM_ENGINE_FAKE_LOAD": "error"})
        self.assertIn("FM_ENGINE_FAKE_LOAD", self.assert_error(helper.call("responses.create", {"input": "x"}),
                                                               "UNAVAILABLE")["detail"])
        helper = self.helper(env=many)
        self.assertTrue(helper.call("responses.create", {"input": "x"})["ok"])
        with open(f"/proc/{helper.engine_pid()}/environ", "rb") as f:
            names = {entry.split(b"=")[0].decode() for entry in f.read().split(b"\0")}
        self.assertLessEqual({"PATH", *many}, names)


class SmallLimits(HelperTest):
    """A helper with few resources: it does not start, or it answers each call and ends normally."""

    NO_MEMORY = 70
    NOT_STARTED = (NO_MEMORY, 71, 127) + ((1,) if os.environ.get("FM_SANITIZE") else ())  # 127: the dynamic linker
    REFUSED = ("OVERLOADED", "UNAVAILABLE")

    def limited(self, which, limit, *args, **kwargs):
        """A helper that answers a ping; None if it can't start."""
        def set_limit():
            resource.setrlimit(which, (limit, limit))
        helper = wire.Helper(*args, preexec_fn=set_limit, stderr=subprocess.DEVNULL, **kwargs)
        try:
            helper.send("health.ping", id=1)
            reply = helper.receive()
        except BrokenPipeError:
            reply = None
        if reply:
            self.addCleanup(self._end, helper)
            self.assertTrue(reply["result"]["ok"])
            return helper
        self.assertIn(helper.wait_exit(), self.NOT_STARTED)
        helper.reader.join()
        helper.process.stdout.close()
        try:
            helper.process.stdin.close()
        except BrokenPipeError:
            pass
        return None

    def codes(self, which, limits, call, *args, **kwargs):
        """The result of `call` under each limit: "ok", the error's code, or "the end" if the memory was not enough."""
        codes = []
        for limit in limits:
            helper = self.limited(which, limit, *args, **kwargs)
            if helper:
                try:
                    result = helper.call("responses.create", call)
                except AssertionError:  # the output ended
                    self.assertEqual((helper.wait_exit(), which), (self.NO_MEMORY, resource.RLIMIT_AS))
                    codes.append("the end")
                    continue
                codes.append("ok" if result["ok"] else result["error"]["code"])
                self.assertTrue(helper.call("health.ping")["ok"])
                self.assertEqual(helper.close(), 0)
        return codes

    @unittest.skipIf(os.environ.get("FM_SANITIZE"), "a leak checker needs descriptors of its own")
    def test_descriptors(self):
        codes = self.codes(resource.RLIMIT_NOFILE, range(3, 20), {"input": "x"})
        self.assertEqual(codes[-1], "ok")
        self.assertIn(codes[0], self.REFUSED)
        self.assertLessEqual(set(codes), {"ok", *self.REFUSED})

    def test_eight_descriptors(self):
        helper = self.limited(resource.RLIMIT_NOFILE, 8)
        self.assertEqual(helper.call("responses.create", {"input": "x"})["error"]["code"], "OVERLOADED")

    @unittest.skipIf(os.environ.get("FM_SANITIZE"), "a leak checker needs descriptors of its own")
    def test_a_folder_that_no_descriptor_is_left_for(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "good.gguf"), "wb") as f:
                f.write(b"GGUF")
            foreign_engine.describe(folder, "llama")
            for call in ({"input": "x"}, {"input": "x", "model": "good"}):
                codes = self.codes(resource.RLIMIT_NOFILE, range(3, 12), call, "--models-dir", folder,
                                   "--engine-dir", folder, engine="llama")
                self.assertIn("OVERLOADED", codes)
                self.assertLessEqual(set(codes), set(self.REFUSED))

    @unittest.skipIf(os.environ.get("FM_SANITIZE"), "sanitizers reserve terabytes")
    @unittest.skipIf(os.environ.get("FM_COVERAGE") in ("ON", "1"), "gcov does not survive without memory")
    def test_memory(self):
        engine_stack = 16 << 20
        # An engine's memory grows in steps of a huge page, 2 MiB.
        program = 4 << 20  # with less memory, the kernel can't start the program, and kills it with a signal
        limits = (*range(program, 8 << 20, 128 << 10), *range(engine_stack, engine_stack + (16 << 20), 1 << 20))
        codes = self.codes(resource.RLIMIT_AS, limits, {"input": "x"})
        self.assertEqual(codes[-1], "ok")
        self.assertNotEqual(codes[0], "ok")
        self.assertLessEqual(set(codes), {"ok", "the end", "INTERNAL", *self.REFUSED})


class Models(HelperTest):
    """Tests the front's checks of the llama engine's model file. The fake engine takes the place of the llama engine."""

    def llama(self, *args):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        foreign_engine.borrow(os.path.join(wire.BIN, "fm-engine-fake"), folder.name, "llama")
        return self.helper("--engine-dir", folder.name, *args, engine="llama")

    def unavailable(self, *args):
        helper = self.llama(*args)
        error = self.assert_error(helper.call("responses.create", {"input": "x"}), "UNAVAILABLE")
        capabilities = helper.call("capabilities.get")
        self.assertFalse(capabilities["available"])
        self.assertIn(capabilities["reason_code"], ("MODEL_NOT_READY", "HELPER_UNHEALTHY"))
        self.assertIsNone(helper.engine_pid())
        return error["detail"]

    def test_bad_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = lambda name: os.path.join(folder, name)
            with open(path("text.gguf"), "w") as f:
                f.write("this is no model")
            open(path("empty.gguf"), "w").close()
            os.mkdir(path("folder.gguf"))
            os.mkfifo(path("fifo.gguf"))
            for name, why in (("missing.gguf", "No such file"), ("text.gguf", "not a GGUF file"),
                              ("empty.gguf", "not a GGUF file"), ("folder.gguf", "not a regular file"),
                              ("fifo.gguf", "not a regular file")):
                with self.subTest(name):
                    detail = self.unavailable("--model", path(name))
                    self.assertIn(path(name), detail)
                    self.assertIn(why, detail)

    def test_only_what_can_be_asked_for_is_listed(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in (b"good.gguf", b"bad\xff.gguf", b".hidden.gguf", b"other.bin"):
                open(os.path.join(folder.encode(), name), "w").close()
            os.mkdir(os.path.join(folder, "folder.gguf"))
            os.mkfifo(os.path.join(folder, "fifo.gguf"))
            helper = self.llama("--models-dir", folder, "--strict-parameters")
            self.assertEqual([m["id"] for m in helper.call("models.list")["data"]], ["good"])
            for method in ("models.list", "capabilities.get"):
                self.assert_error(helper.call(method, {"engine": "x"}), "INVALID_REQUEST", "engine", "unknown_parameter")

    def test_no_model(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn(folder, self.unavailable("--models-dir", folder))
            self.assertIn("tiny", self.unavailable("--models-dir", folder, "--model", "tiny"))


if __name__ == "__main__":
    wire.main()
