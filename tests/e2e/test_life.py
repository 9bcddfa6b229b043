"""How the helper starts and ends, and what it must not leave behind."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import wire
from wire import SLOW, Helper, HelperTest, alive, check_stream, children, frame, script, wait_until

STATES = {
    "idle": None,
    "starting": ({}, "x", {"FM_ENGINE_FAKE_INIT": "hang"}),
    "loading": ({}, "x", {"FM_ENGINE_FAKE_LOAD": "hang"}),
    "prefill": ("response.in_progress", script({"prefill_ms": 60000}), {}),
    "streaming": ("response.output_text.delta", script("x", {"hang": "soft"}), {}),
    "hung": ("response.in_progress", script({"hang": "hard"}), {}),
}


class Ends(HelperTest):
    def in_state(self, name):
        """Returns a helper in the state, its engine's pid (or None), and the call that led to the state (or None)."""
        state = STATES[name]
        if state is None:
            helper = self.helper()
            helper.call("health.ping")
            return helper, None, None
        event, prompt, env = state
        helper = self.helper(env=env)
        call = self.create(helper, prompt)
        if event:
            helper.event(call, event)
        wait_until(helper.engine_pid, what="an engine")
        return helper, helper.engine_pid(), call

    def assert_ends(self, act, status):
        for name in STATES:
            with self.subTest(name):
                helper, engine, call = self.in_state(name)
                before = time.monotonic()
                act(helper)
                self.assertEqual(helper.wait_exit(), status)
                self.assert_soon(time.monotonic() - before, 2 * SLOW)
                if engine:
                    self.assertFalse(alive(engine), "the engine is gone when the helper is")
                if call:
                    self.assert_error(helper.collect(call)[1], "CANCELLED")

    def test_end_of_input(self):
        self.assert_ends(lambda h: h.process.stdin.close(), 0)

    def test_sigterm(self):
        self.assert_ends(lambda h: os.kill(h.pid, signal.SIGTERM), 0)

    def test_sigint(self):
        self.assert_ends(lambda h: os.kill(h.pid, signal.SIGINT), 0)

    def test_sighup(self):
        wire.heed_hangups(self)
        self.assert_ends(lambda h: os.kill(h.pid, signal.SIGHUP), 0)

    def test_a_closed_terminal(self):
        """The terminal sends SIGHUP to the whole group at once, also to the engine."""
        wire.heed_hangups(self)
        helper = self.helper(start_new_session=True)
        call = self.create(helper, script({"hang": "soft"}))
        helper.event(call, "response.in_progress")
        engine = helper.engine_pid()
        os.killpg(helper.pid, signal.SIGHUP)
        self.assertEqual(helper.wait_exit(), 0)
        self.assertFalse(alive(engine))
        self.assertFalse(helper.collect(call)[1]["ok"])

    def test_signals_that_the_host_has_blocked(self):
        """A signal mask survives exec."""
        blocked = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
        for number in (signal.SIGTERM, signal.SIGINT):
            for program in ("fm-proxy", "fm-engine-fake"):
                with self.subTest(f"{number} {program}"):
                    helper = self.helper(program=program,
                                         preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, blocked))
                    if program == "fm-proxy":
                        helper.call("health.ping")
                    else:
                        helper.call("engine.initialize", {"protocol_version": 1, "log_level": "off"})
                    os.kill(helper.pid, number)
                    self.assertEqual(helper.wait_exit(), 0)

    def test_a_host_that_ignores_sigchld(self):
        """SIG_IGN survives exec too. The system would then reap the engine, and its status would be lost."""
        helper = self.helper(preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        _, result = helper.collect(self.create(helper, script("a", {"exit": 3})))
        self.assertIn("status 3", result["error"]["detail"])

    def test_shutdown(self):
        def act(helper):
            helper.send("process.shutdown", id="bye")
            self.assertEqual(helper.reply("bye")["result"], {"ok": True})
        self.assert_ends(act, 0)

    def test_shutdown_with_eight_streams(self):
        helper = self.helper()
        calls = [self.create(helper, script("x", {"hang": "soft"})) for _ in range(8)]
        for call in calls:
            helper.event(call, "response.output_text.delta")
        before = time.monotonic()
        helper.send("process.shutdown", id="bye")
        for call in calls:
            events, result = helper.collect(call)
            self.assert_error(result, "CANCELLED")
            self.assertEqual(events[-1]["type"], "response.incomplete")
        self.assertEqual(helper.reply("bye")["result"], {"ok": True})
        self.assertEqual(helper.wait_exit(), 0)
        self.assert_soon(time.monotonic() - before, 2 * SLOW)

    def test_nothing_is_served_after_shutdown(self):
        helper = self.helper()
        helper.send_raw(frame({"jsonrpc": "2.0", "id": 1, "method": "process.shutdown"})
                        + frame({"jsonrpc": "2.0", "id": 2, "method": "health.ping"}))
        self.assertEqual(helper.receive()["id"], 1)
        self.assertIsNone(helper.receive())


class Idle(HelperTest):
    """--idle-unload-ms: an engine without a job is ended, and the next job starts another."""

    def ask(self, helper, *steps, **params):
        events, result = helper.collect(self.create(helper, script(*steps), **params))
        self.assertTrue(result["ok"], result)
        check_stream(self, events, result)

    def engine_state(self, helper):
        return helper.call("capabilities.get")["engine"]["state"]

    def test_an_engine_without_a_job_ends(self):
        helper = self.helper("--idle-unload-ms", "100")
        engines = []
        for _ in range(2):
            self.ask(helper, "x")
            engines.append(helper.engine_pid())
            wait_until(lambda: self.engine_state(helper) == "idle", "the engine's end")
            self.assertFalse(alive(engines[-1]))
        self.assertNotEqual(*engines)

    def test_a_job_keeps_it(self):
        """A job that takes several times as long as the idle time is not ended either."""
        helper = self.helper("--idle-unload-ms", "100")
        self.ask(helper, "a", {"sleep_ms": 500}, "b")

    def test_a_cancelled_job_keeps_it_no_longer(self):
        helper = self.helper("--idle-unload-ms", "100")
        call = self.create(helper, script("x", {"hang": "soft"}))
        helper.event(call, "response.output_text.delta")
        helper.call("responses.cancel", {"request_id": call})
        self.assert_error(helper.collect(call)[1], "CANCELLED")
        wait_until(lambda: self.engine_state(helper) == "idle", "the engine's end")

    def test_a_request_says_how_long(self):
        """fm.keep_alive_ms of the last request counts: 0 ends the engine after the answer, -1 never."""
        helper = self.helper("--idle-unload-ms", "50")
        for body in ({"keep_alive_ms": -1}, {"keep_alive_ms": 86400000}):
            self.ask(helper, "x", fm=body)
            stays = helper.engine_pid()
            self.ask(helper, {"sleep_ms": 200}, "x", fm=body)
            self.assertEqual(helper.engine_pid(), stays)
        self.ask(helper, "x", fm={"keep_alive_ms": 0})
        wait_until(lambda: not alive(stays), "the engine's end")
        helper = self.helper()
        self.ask(helper, "x", fm={"keep_alive_ms": 0})
        wait_until(lambda: helper.engine_pid() is None, "the engine's end")
        self.ask(helper, "x", {"sleep_ms": 400}, "y", fm={"keep_alive_ms": 0})  # busy for longer than a check interval
        embeddings = helper.call("embeddings.create", {"model": "fake", "input": "x", "fm": {"keep_alive_ms": 0}})
        self.assertTrue(embeddings["ok"], embeddings)
        wait_until(lambda: helper.engine_pid() is None, "the engine's end")

    def test_wrong_times(self):
        helper = self.helper()
        for wrong in (-2, 86400001, 1.5, "5m", True):
            result = helper.call("responses.create", {"input": "x", "fm": {"keep_alive_ms": wrong}})
            self.assert_error(result, "INVALID_REQUEST", "fm.keep_alive_ms")

    def test_who_is_kept_and_who_waits(self):
        """A request that comes while the engine answers a request with 0 is answered, and the setting of the later request
        counts."""
        helper = self.helper()
        first = self.create(helper, script("x", {"sleep_ms": 300}, "y"), fm={"keep_alive_ms": 0})
        helper.event(first, "response.output_text.delta", keep=True)
        second = self.create(helper, script("x"))
        for call in (first, second):
            self.assertTrue(helper.collect(call)[1]["ok"])
        self.assertEqual(self.engine_state(helper), "ready")

    def test_zero_is_never(self):
        stays, ends = self.helper("--idle-unload-ms", "0"), self.helper("--idle-unload-ms", "1")
        for helper in (stays, ends):
            self.ask(helper, "x")
        wait_until(lambda: self.engine_state(ends) == "idle", "the other engine's end")
        self.assertEqual(self.engine_state(stays), "ready")


class ParentDeath(HelperTest):
    HOST = textwrap.dedent("""
        import json, os, sys
        sys.path.insert(0, sys.argv[1])
        import wire
        read_end, write_end = os.pipe()
        helper = wire.Helper(stdin=read_end)
        if os.fork() == 0:          # another process that keeps stdin's write end open
            os.close(1); os.close(0)
            import time; time.sleep(60); os._exit(0)
        body = wire.frame({"jsonrpc": "2.0", "id": 1, "method": "responses.create",
                           "params": {"stream": True, "input": wire.script("x", {"hang": sys.argv[2]})}})
        os.write(write_end, body)
        helper.event(1, "response.in_progress")
        print(helper.pid, helper.engine_pid(), *[p for p in wire.children(os.getpid()) if p != helper.pid], flush=True)
        import time; time.sleep(60)
    """)

    def assert_end_soon(self, *pids):
        """Waits for processes that are not children of this process."""
        before = time.monotonic()
        wait_until(lambda: not any(map(alive, pids)), "the end of the processes")
        self.assert_soon(time.monotonic() - before, 2 * SLOW)

    def test_host_killed(self):
        for hang in ("soft", "hard"):
            with self.subTest(hang):
                host = subprocess.Popen([sys.executable, "-c", self.HOST, os.path.dirname(__file__), hang],
                                        stdout=subprocess.PIPE)
                pids = [int(p) for p in host.stdout.readline().split()]
                helper, engine, keeper = pids
                self.assertTrue(alive(helper) and alive(engine))
                host.kill()
                host.wait()
                host.stdout.close()
                self.assert_end_soon(helper, engine)
                os.kill(keeper, signal.SIGKILL)

    def test_helper_killed(self):
        for hang in ("soft", "hard"):
            helper = self.helper()
            call = self.create(helper, script({"hang": hang}))
            helper.event(call, "response.in_progress")
            engine = helper.engine_pid()
            os.kill(helper.pid, signal.SIGKILL)
            helper.wait_exit()
            self.assert_end_soon(engine)

    def test_helper_killed_and_engine_stopped(self):
        """An engine that is stopped can't notice that the helper is gone."""
        helper = self.helper()
        self.assertTrue(helper.call("responses.create", {"input": "x"})["ok"])
        engine = helper.engine_pid()
        self.addCleanup(lambda: alive(engine) and os.kill(engine, signal.SIGKILL))
        os.kill(engine, signal.SIGSTOP)
        os.kill(helper.pid, signal.SIGKILL)
        helper.wait_exit()
        self.assert_end_soon(engine)


class NothingLeft(HelperTest):
    def counts(self, pid):
        return (len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task")), len(children(pid)))

    def test_descriptors_threads_children(self):
        helper = self.helper()
        helper.call("responses.retrieve", {"id": "resp_none"})  # now the store's thread exists
        idle = len(os.listdir(f"/proc/{helper.pid}/task"))

        def round():
            calls = [self.create(helper, script("x", {"signal": "KILL"})), self.create(helper, "fine")]
            for call in calls:
                helper.collect(call)
            helper.call("responses.create", {"input": "x"})

        def rest():
            """With an engine there are two more threads: one reads from the engine, one writes to it."""
            wait_until(lambda: self.counts(helper.pid)[1:] == (idle + 2, 1), what="the watchdogs' end")
            return self.counts(helper.pid)

        round()
        before = rest()
        for _ in range(10):
            round()
        self.assertEqual(rest(), before)

    def test_no_socket(self):
        """Helper and engine have no port and no other socket, only pipes, also while they work."""
        helper = self.helper()
        helper.collect(self.create(helper, "fine"))
        for pid in (helper.pid, helper.engine_pid()):
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            self.assertTrue(any(link.startswith("pipe:") for link in links), links)
            self.assertEqual([link for link in links if link.startswith("socket:")], [])

    def test_stderr_is_quiet(self):
        process = subprocess.Popen([os.path.join(wire.BIN, "fm-proxy"), "--engine", "fake"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(frame({"jsonrpc": "2.0", "id": 1, "method": "responses.create",
                                              "params": {"input": script({"signal": "KILL"})}}))
        self.assertEqual(err, b"")

    def test_closed_stderr_and_no_reader_of_it(self):
        read_end, write_end = os.pipe()
        process = subprocess.Popen([os.path.join(wire.BIN, "fm-proxy"), "--engine", "fake", "--log-level", "debug"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=write_end)
        os.close(write_end)
        params = {"input": script({"exit": 1})}
        request = b"".join(frame({"jsonrpc": "2.0", "id": i, "method": "responses.create", "params": params}) for i in range(3))
        process.stdin.write(request)
        process.stdin.flush()
        os.close(read_end)
        out, _ = process.communicate(frame({"jsonrpc": "2.0", "id": 9, "method": "health.ping"}))
        self.assertIn(b'"id":9', out)
        self.assertEqual(process.returncode, 0)


class CommandLine(HelperTest):
    def run_it(self, *args):
        return subprocess.run([os.path.join(wire.BIN, "fm-proxy"), *args], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=wire.WAIT)

    def test_wrong(self):
        for args, word in ((["--nonsense"], "nonsense"), (["word"], "word"), (["--engine", "../x"], "--engine"),
                           (["--log-level", "loud"], "--log-level"), (["--model"], "model")):
            with self.subTest(str(args)):
                done = self.run_it(*args)
                self.assertEqual((done.returncode, done.stdout), (64, ""))
                self.assertIn(word, done.stderr)

    def test_help_and_version(self):
        self.assertIn("--models-dir", self.run_it("--help").stdout)
        self.assertRegex(self.run_it("--version").stdout, r"^fm-proxy \d+\.\d+\.\d+\n$")

    def test_nobody_reads_what_it_prints(self):
        for args in (["--help"], ["--version"], ["sessions", "--help"]):
            with self.subTest(str(args)):
                read_end, write_end = os.pipe()
                os.close(read_end)
                done = subprocess.run([os.path.join(wire.BIN, "fm-proxy"), *args], stdin=subprocess.DEVNULL,
                                      stdout=write_end, stderr=subprocess.PIPE, timeout=wire.WAIT)
                os.close(write_end)
                self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, b""))


if __name__ == "__main__":
    wire.main()
