"""Tests session mode (protocol/SESSIONS.md): its life, its limits, its log, and the conversation in the document."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import textwrap
import time
import unittest

from gateway import PREFIX, Gateway, compact, says, scripted
from wire import BIN, SANITIZED, SLOW, WAIT, TimedTest, alive, children, heed_hangups, memory_kib, wait_until

LINE_MAX = 10_000_000
LINES = int(os.environ.get("FM_LINES", 1_000 if SANITIZED else 10_000))
DOCUMENT = os.path.join(os.path.dirname(__file__), "..", "..", "protocol", "SESSIONS.md")
HANGS = scripted({"hang": "soft"})
DEAF = scripted({"hang": "hard"})


class Case(TimedTest):
    def gateway(self, *args, **kwargs):
        made = Gateway(*args, **kwargs)
        self.addCleanup(made.close)
        return made

    def fault(self, answer, error):
        self.assertEqual(answer, {"ok": False, "error": error})


class Ends(Case):
    def ends(self, act):
        for content in (HANGS, DEAF, None):
            with self.subTest(content):
                made = self.gateway()
                session = made.open()
                engine = None
                if content:
                    self.assertTrue(made.message(session, "p", says("x"))["ok"])
                    engine = children(made.pid)[0]
                    made.send_message(session, "p", content)
                before = time.monotonic()
                act(made)
                self.assertEqual(made.wait_exit(), 0)
                self.assert_soon(time.monotonic() - before, 2 * SLOW)
                if content:
                    self.fault(made.answer(), "execution_failed: cancelled: the input has ended")
                    self.assertFalse(alive(engine))
                self.assertIsNone(made.answer_line())

    def test_end_of_input(self):
        self.ends(lambda made: made.process.stdin.close())

    def test_sigterm(self):
        self.ends(lambda made: os.kill(made.pid, signal.SIGTERM))

    def test_sigint(self):
        self.ends(lambda made: os.kill(made.pid, signal.SIGINT))

    def test_sighup(self):
        heed_hangups(self)
        self.ends(lambda made: os.kill(made.pid, signal.SIGHUP))

    def test_shutdown(self):
        made = self.gateway()
        session = made.open()
        self.assertTrue(made.message(session, "p", says("x"))["ok"])
        engine = children(made.pid)[0]
        # One write, because the input may be closed before a second one. The second line is never read.
        made.send_raw(b'{"command":"shutdown"}\n{"command":"open-session"}\n')
        self.assertEqual(made.answer(), {"ok": True})
        self.assertEqual(made.wait_exit(), 0)
        self.assertIsNone(made.answer_line())
        self.assertFalse(alive(engine))

    def test_sigterm_before_anything(self):
        made = self.gateway()
        self.assertTrue(made.ask("check-availability")["available"])
        os.kill(made.pid, signal.SIGTERM)
        self.assertEqual(made.wait_exit(), 0)

    def test_parent_killed(self):
        """This also holds while a message is generated, and while another process holds stdin and stdout open."""
        for content in (None, HANGS):
            read_end, write_end = os.pipe()
            answers_read, answers_write = os.pipe()
            parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent("""
                import os, subprocess, sys, time
                child = subprocess.Popen(sys.argv[3:], stdin=int(sys.argv[1]), stdout=int(sys.argv[2]),
                                         stderr=subprocess.DEVNULL)
                print(child.pid, flush=True)
                time.sleep(600)
                """), str(read_end), str(answers_write), os.path.join(BIN, "fm-proxy"), "sessions", "--engine", "fake"],
                stdout=subprocess.PIPE, pass_fds=(read_end, answers_write))
            pid = int(parent.stdout.readline())
            os.write(write_end, b'{"command":"open-session"}\n')
            with os.fdopen(answers_read, "rb") as answers:
                session = json.loads(answers.readline())["session_id"]
                if content:
                    os.write(write_end, compact({"command": "message", "session_id": session, "prompt": "p",
                                                 "content": content, "output_format": "text"}).encode() + b"\n")
                    wait_until(lambda: children(pid), what="an engine")
                left = children(pid)
                parent.kill()
                parent.wait()
                parent.stdout.close()
                before = time.monotonic()
                wait_until(lambda: not alive(pid), what="the gateway's end")
                self.assert_soon(time.monotonic() - before, 2 * SLOW)
                self.assertFalse(any(alive(engine) for engine in left))
            for fd in (read_end, write_end, answers_write):
                os.close(fd)

    def test_lines_before_the_end_are_answered(self):
        commands = ("open-session", "nothing", "check-availability", [], "shutdown")
        text = "\n".join(compact({"command": command}) for command in commands)  # the last line has no newline
        done = subprocess.run([os.path.join(BIN, "fm-proxy"), "sessions", "--engine", "fake", "--log-level", "off"],
                              input=text.encode(), capture_output=True, timeout=WAIT)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([answer["ok"] for answer in answers], [True, False, True, False, True])

    def test_eof_wait(self):
        """After the end of the input, messages continue for as long as the option allows."""
        made = self.gateway("--eof-wait-ms", "60000")
        session = made.open()
        for word in ("a", "b"):
            made.send_message(session, "p", scripted({"sleep_ms": 200}, compact({"result": word})))
        made.process.stdin.close()
        self.assertEqual([made.answer(), made.answer()], [{"ok": True, "result": "a"}, {"ok": True, "result": "b"}])
        self.assertEqual(made.wait_exit(), 0)
        made = self.gateway("--eof-wait-ms", "100")
        made.send_message(made.open(), "p", HANGS)
        made.process.stdin.close()
        self.fault(made.answer(), "execution_failed: cancelled: the input has ended")
        self.assertEqual(made.wait_exit(), 0)

    def test_what_came_before_a_signal_is_answered(self):
        """The gateway also answers what is still in the pipe."""
        for _ in range(20):
            made = self.gateway()
            self.assertFalse(made.ask("nothing")["ok"])
            made.send("nothing")
            os.kill(made.pid, signal.SIGTERM)
            self.fault(made.answer(), "unknown_command")
            self.assertEqual(made.wait_exit(), 0)

    def test_end_after_a_backlog(self):
        """The gateway notices the end of the input although there is no room to read everything before the end."""
        made = self.gateway()
        session = made.open()
        made.send_message(session, "p", HANGS)
        made.send_raw(b"\n" * (LINE_MAX + 60_000))
        made.process.stdin.close()
        self.fault(made.answer(), "execution_failed: cancelled: the input has ended")
        self.assertEqual(made.wait_exit(), 0)

    def ended(self, lines, read, stderr=subprocess.DEVNULL):
        """Runs a gateway whose input has ended; `read` gets its stdout. Returns the exit status."""
        made = subprocess.Popen([os.path.join(BIN, "fm-proxy"), "sessions", "--engine", "fake"], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=stderr)
        made.stdin.write(b'{"command":"check-availability"}\n' * lines)
        made.stdin.close()
        read(made.stdout)
        made.stdout.close()
        return made.wait(WAIT)

    def test_host_that_pauses_at_the_end(self):
        """The host pauses for longer than answers may take after a signal."""
        came = []

        def read(stdout):
            time.sleep(1)  # a test can't see whether the gateway waits for us
            came.extend(stdout)

        self.assertEqual(self.ended(2000, read), 0)
        self.assertEqual(len(came), 2000)

    def test_answers_that_nobody_takes(self):
        """The exit status shows the failure."""
        self.assertEqual(self.ended(5000, lambda stdout: None), 70)
        with open("/dev/full", "wb") as full:
            done = subprocess.run([os.path.join(BIN, "fm-proxy"), "sessions", "--engine", "fake"], stdout=full,
                                  input=b'{"command":"check-availability"}\n', stderr=subprocess.PIPE, timeout=WAIT)
        self.assertEqual(done.returncode, 70)
        self.assertIn(b"Error: the host takes no answers any more", done.stderr)

    def test_host_that_stops_reading_and_goes(self):
        """A gateway that waits for room ends when it is asked to."""
        made = subprocess.Popen([os.path.join(BIN, "fm-proxy"), "sessions", "--engine", "fake", "--log-level", "off"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        os.set_blocking(made.stdin.fileno(), False)
        line = b'{"command":"check-availability"}\n' * 1000
        sent, last = 0, time.monotonic()
        while time.monotonic() - last < 0.5 * SLOW:  # until the gateway takes no more
            try:
                sent += os.write(made.stdin.fileno(), line)
                last = time.monotonic()
            except BlockingIOError:
                time.sleep(0.01)
        self.assertGreater(sent, 1_000_000)
        if not SANITIZED:
            self.assertLess(memory_kib(made.pid, "VmRSS"), 64 * 1024)
        os.kill(made.pid, signal.SIGTERM)
        before = time.monotonic()
        self.assertEqual(made.wait(WAIT), 0)
        self.assert_soon(time.monotonic() - before, 2 * SLOW)
        made.stdout.close()
        made.stdin.close()


class Lines(Case):
    def test_long_lines(self):
        made = self.gateway()
        session = made.open()
        fields = {"command": "message", "session_id": session, "prompt": "p", "content": "", "output_format": "text"}
        room = LINE_MAX - len(compact(fields))
        for more, ok in ((0, True), (1, False), (3_000_000, False)):
            line = compact({**fields, "content": "c" * (room + more)}).encode()
            self.assertEqual(len(line), LINE_MAX + more)
            made.send_raw(line + b"\n")
            answer = made.answer()
            self.assertEqual(answer, {"ok": True, "result": "p"} if ok else {"ok": False, "error": "invalid_json"})
        made.send_raw(b"x" * (2 * LINE_MAX))  # the end of this line comes later
        self.fault(made.answer(), "invalid_json")
        made.send_raw(b"yyy\n")
        self.assertEqual(made.message(session, "p", says("x")), {"ok": True, "result": "x"})
        self.assertTrue(made.answers.empty())

    def random_line(self, rng, session):
        kind = rng.random()
        if kind < 0.3:
            return compact({"command": "message", "session_id": session, "prompt": "p", "content": says("x" * rng.randrange(50)),
                            "output_format": "text"}).encode()
        if kind < 0.6:
            return compact({"command": rng.choice(("check-availability", "nothing", "message", 1, None)), "x": 1}).encode()
        if kind < 0.98:
            return bytes(rng.randrange(256) for _ in range(rng.randrange(200))).replace(b"\n", b"")
        return b'{"command":"' + bytes([rng.randrange(32, 127)]) * rng.choice((70_000, 1_000_000)) + b'"}'

    def test_many_random_lines(self):
        """There are as many answers as lines that are not blank, and memory stays the same."""
        seed = int(os.environ.get("FM_SEED", random.SystemRandom().randrange(1 << 32)))
        print(f"FM_SEED={seed}", flush=True)
        rng = random.Random(seed)
        huge = {LINES // 3, LINES // 2, LINES - 1}
        made = self.gateway("--log-level", "off", "--max-turns", "10000")
        session = made.open()
        asked = warm = 0
        for i in range(LINES):
            line = b'"' + b"x" * (LINE_MAX + rng.randrange(1, 100_000)) if i in huge else self.random_line(rng, session)
            made.send_raw(line + b"\n")
            if line.strip(b" \t\r\n"):
                asked += 1
                self.assertIn("ok", made.answer())
            if i % 500 == 0:
                self.assertTrue(made.ask("close-session", session_id=session)["ok"])
                session = made.open()
            if i == LINES // 5:
                warm = [memory_kib(pid, "VmRSS") for pid in (made.pid, *children(made.pid))]
        self.fault(made.ask("nothing"), "unknown_command")
        self.assertTrue(made.answers.empty())
        now = [memory_kib(pid, "VmRSS") for pid in (made.pid, *children(made.pid))]
        if os.environ.get("FM_FIGURES"):
            print(f"{LINES} lines, {asked} asked something; the gateway's and the engine's KiB: {warm}, then {now}")
        if not SANITIZED:  # sanitizers' allocators keep freed memory
            self.assertEqual(len(now), 2)
            for before, after in zip(warm, now):
                self.assertLess(after - before, 4096)


class Limits(Case):
    def test_sessions(self):
        made = self.gateway("--max-sessions", "2")
        first, _ = made.open(), made.open()
        self.fault(made.ask("open-session"),
                   "failed_to_open_session: 2 sessions are open already: close one, or raise --max-sessions")
        self.assertTrue(made.ask("close-session", session_id=first)["ok"])
        made.open()

    def test_turns(self):
        made = self.gateway("--max-turns", "2")
        session = made.open()
        for word in ("a", "b"):
            self.assertTrue(made.message(session, "p", says(word))["ok"])
        self.fault(made.message(session, "p", says("c")), "execution_failed: session full: it has had 2 turns; open a new one")
        self.assertTrue(made.message(made.open(), "p", says("c"))["ok"])

    def test_bytes(self):
        made = self.gateway("--max-session-bytes", "2000")
        session = made.open(instructions="i")
        self.assertTrue(made.message(session, "p" * 900, says("a"))["ok"])
        answer = made.message(session, "p" * 1000, says("a"))
        self.assertRegex(answer["error"],
                         r"^execution_failed: session full: \d+ bytes and a message of \d+, of 2000 that it may have; "
                         "open a new one$")
        answer = made.message(session, "p", scripted('{"result":"', {"repeat": ["a", 900]}, '"}'))
        self.assertRegex(answer["error"],
                         r"^execution_failed: session full: \d+ bytes with the answer, of 2000 that it may have; open a new one$")
        self.assertEqual(made.message(session, "p", says("a")), {"ok": True, "result": "a"})
        self.assertRegex(made.ask("open-session", instructions="i" * 2000)["error"],
                         r"^failed_to_open_session: the instructions have 2000 bytes, and a session's conversation may have 2000")

    def test_time(self):
        limit = int(300 * SLOW)
        made = self.gateway("--message-timeout-ms", str(limit))
        session = made.open()
        self.assertRegex(made.message(session, "p", HANGS)["error"], rf"^execution_failed: .*\b{limit} ms")
        answer = made.message(session, "p", says("x"))
        self.assert_undisturbed(answer == {"ok": True, "result": "x"}, answer)

    def test_context(self):
        """The conversation becomes larger than the model's context: the fake engine's has 4,096 words."""
        words = "word " * 1900
        made = self.gateway()
        session = made.open()
        self.assertTrue(made.message(session, words, "c")["ok"])
        self.assertTrue(made.message(session, words, "c")["ok"])
        answer = made.message(session, words, "c")
        self.assertRegex(answer["error"], r"^execution_failed: context full: the input has \d+ tokens, the context holds 4096$")
        self.assertTrue(made.message(session, "word", "c")["ok"])
        made = self.gateway("--truncation", "auto")
        session = made.open()
        for _ in range(4):
            self.assertTrue(made.message(session, words, "c")["ok"])

    def test_an_answer_that_runs_on(self):
        """The answer is generated once more, with a penalty. If the second answer is also too long, the message fails."""
        made = self.gateway("--max-output-tokens", "20")
        session = made.open()
        answer = made.message(session, "p", scripted("{", {"repeat": ["x", 30]}))
        self.fault(answer, "execution_failed: the answer has more than 20 tokens: ask for a shorter one, or raise "
                           "--max-output-tokens")
        line = made.log_where("Warning: ")
        self.assertEqual(line, PREFIX + "Warning: message: the answer ran on to 20 tokens, so it is generated again")
        made.log_where("Error: message: execution_failed after")

    def test_options(self):
        program = os.path.join(BIN, "fm-proxy")
        for args, said in (
            (["sessions", "--max-turns", "0"], '--max-turns must be an integer from 1 to 10000, not "0"'),
            (["sessions", "--max-turns", "x"], '--max-turns must be an integer from 1 to 10000, not "x"'),
            (["sessions", "--max-session-bytes", "99999999999999999999"], "--max-session-bytes must be "),
            (["sessions", "--temperature", "2.1"], '--temperature must be a number from 0 to 2, not "2.1"'),
            (["sessions", "--temperature", "nan"], "--temperature must be "),
            (["sessions", "--truncation", "on"], '--truncation must be auto or disabled, not "on"'),
            (["sessions", "--log-prefix", "a\nb"], "--log-prefix must be one line"),
            (["sessions", "--store", "x"], "--store is no option of fm-proxy sessions; leave it out"),
            (["sessions", "sessions"], "unknown argument: sessions"),
            (["doctor"], "doctor is a command of the npm package: run npx fm-proxy doctor"),
            (["--max-turns", "5"], "--max-turns is an option of fm-proxy sessions"),
        ):
            done = subprocess.run([program, *args], capture_output=True, text=True, timeout=WAIT, stdin=subprocess.DEVNULL)
            self.assertEqual((done.returncode, done.stdout), (64, ""), args)
            self.assertIn(said, done.stderr)


class Availability(Case):
    def test_no_engine_program(self):
        made = self.gateway("--engine-dir", "/nonexistent")
        before = time.monotonic()
        answer = made.ask("check-availability")
        self.assert_soon(time.monotonic() - before, 2 * SLOW)
        self.assertEqual((answer["ok"], answer["available"]), (True, False))
        self.assertRegex(answer["reason"], "^HELPER_UNHEALTHY: .*fm-engine-fake")
        self.fault(made.message(made.open(), "p", "c"), "model_unavailable")
        self.assertIn("fm-engine-fake", made.log_where("model_unavailable"))

    def test_no_model(self):
        made = self.gateway("--model", "/nonexistent.gguf", engine="llama")
        before = time.monotonic()
        answer = made.ask("check-availability")
        self.assert_soon(time.monotonic() - before, 2 * SLOW)
        self.assertEqual((answer["ok"], answer["available"]), (True, False))
        self.assertRegex(answer["reason"], "^[A-Z_]+: ")
        self.fault(made.message(made.open(), "p", "c"), "model_unavailable")

    def test_model_that_does_not_load(self):
        made = self.gateway(env={"FM_ENGINE_FAKE_LOAD": "error"})
        self.assertTrue(made.ask("check-availability")["available"])
        session = made.open()
        self.fault(made.message(session, "p", "c"), "model_unavailable")

    def test_loads_nothing(self):
        made = self.gateway()
        self.assertTrue(made.ask("check-availability")["available"])
        self.assertEqual(children(made.pid), [])


class Log(Case):
    SECRET = "SECRET"

    def talk(self, *args):
        """The log of a conversation with secrets in it."""
        made = self.gateway(*args)
        session = made.open(instructions=self.SECRET)
        made.message(session, self.SECRET, says(self.SECRET + "\n\x1b\x7f\u009b"))
        made.message(session, self.SECRET, scripted(self.SECRET))
        made.message(session, self.SECRET, scripted({"error": self.SECRET}))
        made.send_raw(self.SECRET.encode() + b"\n")
        made.answer()
        made.ask("nothing", **{self.SECRET: 1})
        made.ask("open-session", **{f"{self.SECRET}\n\x1b[31m\x7f": 1})
        made.ask("shutdown")
        self.assertEqual(made.wait_exit(), 0)
        return made.rest_of_log()

    def test_no_user_text(self):
        for args in ((), ("--log-level", "debug")):
            lines = self.talk(*args)
            self.assertNotIn(self.SECRET, "".join(lines))
            self.assertTrue(all(line.startswith(PREFIX) for line in lines), lines)

    def read(self, made, *expected):
        """Checks that the log of a gateway that has ended has these lines, as regular expressions, in this order, among
        others."""
        self.assertEqual(made.wait_exit(), 0)
        lines = made.rest_of_log()
        self.assertTrue(all(line.startswith(PREFIX) for line in lines), lines)
        at = 0
        for pattern in expected:
            while at < len(lines) and not re.fullmatch(re.escape(PREFIX) + pattern + "\n", lines[at]):
                at += 1
            self.assertLess(at, len(lines), f"no {pattern} in {lines}")
            at += 1
        return lines

    def test_of_a_life(self):
        """Tests what is logged about the server, its sessions and their messages at the default level."""
        made = self.gateway()
        session = made.open(instructions="\u4e2d" * 20)
        other = made.open()
        self.assertTrue(made.message(session, "123456", "c" * 10_001, "string_list")["ok"])
        self.assertFalse(made.message(other, "p", scripted("some ", {"error": "broken"}))["ok"])
        self.assertTrue(made.ask("close-session", session_id=session)["ok"])
        self.assertTrue(made.ask("shutdown")["ok"])
        lines = self.read(
            made,
            "IntelligenceKit server ready",
            rf"Session opened: {session} \(instructions_length=20, open=1\)",
            rf"Session opened: {other} \(instructions_length=0, open=2\)",
            rf"Message processed: session={session}, format=string_list, content_length=10001, time=\d+\.\d\ds, prompt_length=6, "
            r"input_tokens=\d+, cached_tokens=0, output_tokens=[1-9]\d*",
            rf"Message failed: session={other}, format=text, content_length=\d+, time=\d+\.\d\ds, prompt_length=1, .*",
            r"Error: message: execution_failed after \d+ ms: .+",
            f"Session closed: {session}",
            "Shutting down",
            f"Session closed: {other}",
            "IntelligenceKit shutdown complete",
        )
        self.assertIn("server ready", lines[0])
        self.assertIn("shutdown complete", lines[-1])

    def test_of_an_end(self):
        for act, said in ((lambda made: os.kill(made.pid, signal.SIGTERM), ["Signal received.*shutting down"]),
                          (lambda made: made.process.stdin.close(), [])):
            made = self.gateway()
            session = made.open()
            act(made)
            self.read(made, "IntelligenceKit server ready", *said, f"Session closed: {session}",
                      "IntelligenceKit shutdown complete")

    def test_user_text(self):
        lines = self.talk("--log-user-text")
        self.assertNotIn("may have user text", "".join(lines))
        self.assertFalse(re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", "".join(lines)))
        self.assertGreaterEqual("".join(lines).count(self.SECRET), 5)
        self.assertTrue(all(line.startswith(PREFIX) for line in lines), lines)

    def test_prefix_and_level(self):
        lines = self.talk("--log-prefix", "gateway| ")
        self.assertTrue(any(line.startswith("gateway| Error: ") for line in lines), lines)
        self.assertTrue(all(line.startswith("gateway| ") for line in lines), lines)
        self.assertTrue(any(line.startswith("Error: ") for line in self.talk("--log-prefix", "")))
        self.assertTrue(all("Error: " in line for line in self.talk("--log-level", "error")))
        self.assertEqual([line for line in self.talk("--log-level", "warn") if not re.search("Error: |Warning: ", line)], [])
        self.assertEqual(self.talk("--log-level", "off"), [])


class Document(Case):
    def test_recorded(self):
        """The conversation of SESSIONS.md, line by line."""
        with open(DOCUMENT, encoding="utf-8") as f:
            block = re.search(r"<!-- recorded: .*? -->\n```\n(.*?)```", f.read(), re.S).group(1)
        lines = block.splitlines()
        self.assertGreater(len(lines), 10)
        made = self.gateway()
        drawn = None
        for line in lines:
            if line.startswith("> "):
                made.send_raw((line[2:].replace("sess_1", drawn) if drawn else line[2:]).encode() + b"\n")
                continue
            self.assertTrue(line.startswith("< "), line)
            answer = made.answer_line().decode().rstrip("\n")
            found = re.search(r"sess_[0-9a-f]{32}", answer)
            drawn = drawn or (found and found.group(0))
            self.assertEqual(answer.replace(drawn or "?", "sess_1"), line[2:])
        self.assertEqual(made.wait_exit(), 0)

    def test_codes(self):
        """Each error that the tests name is in the document's table, and the other way round."""
        with open(DOCUMENT, encoding="utf-8") as f:
            table = re.search(r"\n## Errors\n(.*?)\n## ", f.read(), re.S).group(1)
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "helper", "sessions", "command.c")) as f:
            names = re.findall(r'\[FM_FAULT_\w+\] = "(\w+)"', f.read())
        told = [name for row in re.findall(r"^\| (`.*?) \|", table, re.M)[1:] for name in re.findall(r"`(\w+)", row)]
        self.assertEqual(told, names)


if __name__ == "__main__":
    unittest.main(verbosity=1)
