"""What holds of session mode whatever comes: each property on FM_ITERATIONS random inputs (100), the fake engine.

The seed is printed; FM_SEED sets it.
"""

import json
import os
import random
import unittest

from gateway import PREFIX, Gateway, compact, says, scripted
from wire import SLOW

ITERATIONS = int(os.environ.get("FM_ITERATIONS", 100))
SEED = int(os.environ.get("FM_SEED", random.SystemRandom().randrange(1 << 32)))
MESSAGES = {"FM_ENGINE_FAKE_ANSWER": "messages"}  # the engine answers with what it was told
DEFAULT_INSTRUCTIONS = "You are a helpful assistant. Follow the prompt instructions precisely."
ALPHABET = ("abc xyz,.\"\\/{}[]\t\r\n\u0000\u00e4\u0416\u4e2d\u6587\u65e5\u672c\u05d0\u0939\u2028"
            "\U0001f600\U0001f468\u200d\U0001f469\U00020000")
FORMATS = ("text", "string_list")
NO_STRINGS = (None, 0, 1, -1.5, True, False, [], {}, ["text"], {"a": "b"})


class Case(unittest.TestCase):
    options = ()
    env = None

    def setUp(self):
        self.random = random.Random(f"{SEED} {self.id()}")
        self.gateway = Gateway(*self.options, env=self.env)

    def tearDown(self):
        self.assertEqual(self.gateway.close(), 0)
        for line in self.gateway.rest_of_log():
            self.assertTrue(line.startswith(PREFIX) and line.endswith("\n"), line)

    def text(self, most=40):
        return "".join(self.random.choice(ALPHABET) for _ in range(self.random.randrange(most)))

    def word(self):
        return "w%d" % self.random.randrange(1 << 40)

    def fault(self, answer, error):
        self.assertEqual(answer, {"ok": False, "error": error})

    def told(self, answer):
        """What the model saw, of an answer with MESSAGES."""
        self.assertTrue(answer["ok"], answer)
        return json.loads(answer["result"])

    def bad_json(self):
        """A line, not blank, that is no JSON object; now and then it is not even text."""
        choices = (
            lambda: self.random.choice(["nonsense", "{", "}", "[]", "null", "1", '"text"', "{'command':'shutdown'}",
                                        '{"command":"shutdown"', '{"command":shutdown}', '{"a":1,}', "{} {}",
                                        '{"command":"\\ud800"}', '{"a":NaN}', '{"a":01}']).encode(),
            lambda: b"x" + bytes(self.random.randrange(256) for _ in range(self.random.randrange(30))).replace(b"\n", b""),
            lambda: compact({"command": "open-session"}).encode()[:self.random.randrange(1, 25)],
            lambda: b'{"command":"open-session","instructions":"\xff\xfe"}',
            lambda: b"[" * self.random.randrange(1, 200),
        )
        return self.random.choice(choices)()


class Requests(Case):
    def test_one_answer_per_request(self):
        session = self.gateway.open()
        for _ in range(ITERATIONS):
            lines = [self.random.choice((
                self.bad_json(), b"{}", b'{"command":"check-availability"}', b'{"command":"nothing"}',
                compact({"command": "message", "session_id": session, "prompt": self.text(), "content": says(self.word()),
                         "output_format": "text"}).encode(),
            )) for _ in range(self.random.randrange(1, 8))]
            self.gateway.send_raw(b"".join(line + b"\n" for line in lines))
            for _ in lines:
                self.assertIn("ok", self.gateway.answer())
            self.assertTrue(self.gateway.answers.empty())

    def test_order(self):
        sessions = [self.gateway.open() for _ in range(4)]
        for _ in range(ITERATIONS):
            words = [self.word() for _ in range(self.random.randrange(2, 9))]
            for word in words:
                pause = {"sleep_ms": self.random.randrange(3)}
                self.gateway.send_message(self.random.choice(sessions), "p",
                                          scripted(pause, compact({"result": word})))
            self.assertEqual([self.gateway.answer()["result"] for _ in words], words)

    def test_lines_of_json(self):
        session = self.gateway.open()
        for _ in range(ITERATIONS):
            result = self.random.choice((self.text(), [self.text() for _ in range(self.random.randrange(4))]))
            output_format = "text" if isinstance(result, str) else "string_list"
            self.gateway.send_message(session, self.text(), says(result), output_format)
            line = self.gateway.answer_line().decode()
            self.assertEqual(json.loads(line), {"ok": True, "result": result})
            self.assertEqual(line.count("\n"), 1)
            self.assertTrue(line.endswith("}\n") and line.startswith('{"ok":true,"result":'))
            self.assertEqual(compact(json.loads(line)), line[:-1])

    def test_invalid_json(self):
        for _ in range(ITERATIONS):
            self.gateway.send_raw(self.bad_json() + b"\n")
            self.fault(self.gateway.answer(), "invalid_json")

    def test_empty_lines(self):
        for _ in range(ITERATIONS):
            blanks = b"".join(self.random.choices((b"\n", b"\r\n", b"  \n", b"\t \r\n"), k=self.random.randrange(1, 9)))
            request = compact({"command": "close-session", "session_id": self.word()}).encode()
            self.gateway.send_raw(blanks + request + b"\r\n" + blanks)
            self.fault(self.gateway.answer(), "session_not_found")
        self.fault(self.gateway.ask("nothing"), "unknown_command")
        self.assertTrue(self.gateway.answers.empty())

    def test_missing_command(self):
        for _ in range(ITERATIONS):
            value = {self.random.choice(("Command", "cmd", "session_id", self.word())): self.text()}
            if self.random.random() < 0.5:
                value["command"] = self.random.choice(NO_STRINGS)
            self.gateway.send_raw(compact(value).encode() + b"\n")
            self.fault(self.gateway.answer(), "command_required")

    def test_unknown_command(self):
        for _ in range(ITERATIONS):
            name = self.random.choice(("", "Shutdown", "open_session", "open-session ", "open-session\u0000", self.text(),
                                       self.word()))
            self.fault(self.gateway.ask(name), "unknown_command")

    def test_error_shape(self):
        for _ in range(ITERATIONS):
            fields = {key: self.random.choice((self.text(), *NO_STRINGS))
                      for key in ("session_id", "prompt", "content", "output_format") if self.random.random() < 0.7}
            self.gateway.send(self.random.choice(("message", "close-session", self.word())), **fields)
            answer = self.gateway.answer()
            self.assertEqual(list(answer), ["ok", "error"])
            self.assertIs(answer["ok"], False)
            self.assertIn(answer["error"], ("unknown_command", "session_id_required", "session_not_found"))

    def test_unknown_members(self):
        session = self.gateway.open()
        for _ in range(ITERATIONS):
            name = self.random.choice(("id", "model", "temperature", "Prompt", self.word()))
            command, fields, error = self.random.choice((
                ("open-session", {}, "failed_to_open_session"),
                ("close-session", {"session_id": session}, "execution_failed"),
                ("check-availability", {}, "execution_failed"),
                ("message", {"session_id": session, "prompt": "p", "content": "c", "output_format": "text"}, "execution_failed"),
                ("shutdown", {}, "execution_failed"),
            ))
            self.fault(self.gateway.ask(command, **fields, **{name: self.text()}), f'{error}: unknown field "{name}"')

    def test_mixed_input(self):
        """Whatever stands between, each session goes on where it was."""
        turns = {self.gateway.open(): [] for _ in range(3)}
        for _ in range(ITERATIONS):
            session = self.random.choice(list(turns))
            for _ in range(self.random.randrange(4)):
                bad = self.random.choice((self.bad_json(), b"", b" ", b"{}", b'{"command":"message"}'))
                self.gateway.send_raw(bad + b"\n")
                if bad.strip():
                    self.assertFalse(self.gateway.answer()["ok"])
            word = self.word()
            self.assertEqual(self.gateway.message(session, "p", says(word)), {"ok": True, "result": word})
            turns[session].append(word)
        logged = [self.gateway.log_where("input tokens") for _ in range(ITERATIONS)]
        self.assertEqual(len(logged), sum(map(len, turns.values())))


class Sessions(Case):
    options = ("--max-sessions", str(4 * ITERATIONS))

    def test_unique_ids(self):
        ids = [self.gateway.open() for _ in range(ITERATIONS)]
        for i in range(0, ITERATIONS, 2):
            self.assertTrue(self.gateway.ask("close-session", session_id=ids[i])["ok"])
        ids += [self.gateway.open() for _ in range(ITERATIONS)]
        self.assertEqual(len(set(ids)), 2 * ITERATIONS)

    def test_unknown_session(self):
        known = self.gateway.open()
        for _ in range(ITERATIONS):
            session = self.random.choice((self.text(), self.word(), known[:-1], known + "0", known.upper(), known + "\u0000", ""))
            self.fault(self.gateway.message(session, "p", "c"), "session_not_found")
            self.fault(self.gateway.ask("close-session", session_id=session), "session_not_found")

    def test_closure(self):
        for _ in range(ITERATIONS):
            sessions = [self.gateway.open() for _ in range(self.random.randrange(2, 5))]
            closed = sessions.pop(self.random.randrange(len(sessions)))
            self.assertEqual(self.gateway.ask("close-session", session_id=closed), {"ok": True})
            self.fault(self.gateway.message(closed, "p", "c"), "session_not_found")
            self.fault(self.gateway.ask("close-session", session_id=closed), "session_not_found")
            for session in sessions:
                self.assertTrue(self.gateway.message(session, "p", says("x"))["ok"])
                self.assertTrue(self.gateway.ask("close-session", session_id=session)["ok"])

    def test_life_cycle(self):
        for _ in range(ITERATIONS):
            self.assertEqual(self.gateway.ask("check-availability"), {"ok": True, "available": True, "reason": None})
            session = self.gateway.open(instructions=self.text())
            for _ in range(self.random.randrange(1, 4)):
                word = self.word()
                self.assertEqual(self.gateway.message(session, self.text(), says([word]), "string_list"),
                                 {"ok": True, "result": [word]})
            self.assertEqual(self.gateway.ask("close-session", session_id=session), {"ok": True})
        self.assertEqual(self.gateway.ask("shutdown"), {"ok": True})
        self.assertEqual(self.gateway.wait_exit(), 0)


class Messages(Case):
    def test_required_fields(self):
        session = self.gateway.open()
        whole = {"session_id": session, "prompt": "p", "content": "c", "output_format": "text"}
        order = list(whole)
        for _ in range(ITERATIONS):
            fields = dict(whole)
            missing = self.random.sample(order, self.random.randrange(1, 5))
            for name in missing:
                if self.random.random() < 0.5:
                    del fields[name]
                else:
                    fields[name] = self.random.choice(NO_STRINGS + (("",) if name == "output_format" else ()))
            first = min(missing, key=order.index)
            self.fault(self.gateway.ask("message", **fields), first + "_required")
        self.assertTrue(self.gateway.ask("message", **whole)["ok"])

    def test_unknown_format(self):
        session = self.gateway.open()
        for _ in range(ITERATIONS):
            output_format = self.random.choice(("Text", "TEXT", " text", "text\u0000", "string-list", "json", "strings",
                                                self.word(), self.text() + "x"))
            self.fault(self.gateway.message(session, "p", "c", output_format), "unknown_output_format")

    def test_shape(self):
        """What an engine says of another shape does not get through; what it makes itself by the schema has the shape."""
        session = self.gateway.open()
        for _ in range(ITERATIONS):
            output_format = self.random.choice(FORMATS)
            answer = self.gateway.message(session, self.text() + "x", self.text(), output_format)
            self.assertTrue(answer["ok"], answer)
            self.assertIsInstance(answer["result"], str if output_format == "text" else list)
            wrong = self.random.choice((1, None, {}, [1], ["a", None], [["a"]], ["a"] if output_format == "text" else "a"))
            if self.random.random() < 0.3:
                steps = scripted(self.random.choice(("nonsense", "{}", '{"result":"a"', "[]", '{"result":"a"}[]')))
            else:
                steps = says(wrong)
            self.fault(self.gateway.message(session, "p", steps, output_format),
                       "execution_failed: the engine's answer has not the shape")

    def test_resilience(self):
        """A session outlives what happens to the engine."""
        faults = ({"error": "broken"}, {"exit": 3}, {"signal": "SEGV"}, {"finish": "content_filter"}, {"finish": "length"})
        session = self.gateway.open()
        for i in range(ITERATIONS):
            # an engine that dies three times in a row is not started for a while, so most faults are others
            fault = self.random.choice(faults if i % 5 == 0 else (faults[0], *faults[3:]))
            answer = self.gateway.message(session, "p", scripted("{", fault), self.random.choice(FORMATS))
            self.assertFalse(answer["ok"])
            self.assertRegex(answer["error"], "^(guardrail_blocked$|execution_failed: .)")
            word = self.word()
            self.assertEqual(self.gateway.message(session, "p", says(word)), {"ok": True, "result": word})

    def test_errors_are_logged(self):
        session = self.gateway.open()
        secret = "SECRET"
        for _ in range(ITERATIONS):
            error, answer = self.random.choice((
                ("invalid_json", lambda: self.gateway.send_raw(secret.encode() + b"\n") or self.gateway.answer()),
                ("session_not_found", lambda: self.gateway.message(secret, secret, secret)),
                ("unknown_output_format", lambda: self.gateway.message(session, secret, secret, secret)),
                ("execution_failed", lambda: self.gateway.message(session, secret, scripted({"error": "broken"}))),
                ("guardrail_blocked", lambda: self.gateway.message(session, secret, scripted({"finish": "content_filter"}))),
            ))
            self.assertFalse(answer()["ok"])
            line = self.gateway.log_where("Error: ")
            self.assertRegex(line, r"^\[IntelligenceKit\] Error: [a-z -]+: %s after \d+ ms" % error)
            self.assertNotIn(secret, line)


class Told(Case):
    """What the model saw."""

    env = MESSAGES
    options = ("--max-sessions", str(8 * ITERATIONS))

    def test_optional_instructions(self):
        for _ in range(ITERATIONS):
            fields = self.random.choice(({}, {"instructions": None}, {"instructions": self.text()}, {"instructions": ""}))
            session = self.gateway.open(**fields)
            told = self.told(self.gateway.message(session, "p", "c"))
            given = fields.get("instructions")
            self.assertEqual(told[0], ["system", DEFAULT_INSTRUCTIONS if given is None else given])
            self.assertEqual(len(told), 2)
            wrong = self.random.choice([value for value in NO_STRINGS if value is not None])
            self.fault(self.gateway.ask("open-session", instructions=wrong),
                       'failed_to_open_session: "instructions" must be a string')

    def test_prompt(self):
        for _ in range(ITERATIONS):
            prompt, content = self.text(), self.text()
            told = self.told(self.gateway.message(self.gateway.open(), prompt, content))
            self.assertEqual(told[1:], [["user", f"{prompt}\n\nContent:\n{content}"]])

    def test_empty_prompt(self):
        for _ in range(ITERATIONS):
            content = self.text()
            told = self.told(self.gateway.message(self.gateway.open(), "", content))
            self.assertEqual(told[1], ["user", f"\n\nContent:\n{content}"])

    def test_empty_content(self):
        for _ in range(ITERATIONS):
            prompt = self.text()
            told = self.told(self.gateway.message(self.gateway.open(), prompt, ""))
            self.assertEqual(told[1], ["user", f"{prompt}\n\nContent:\n"])

    def test_truncation(self):
        """At 10,000 code points, whatever stands at the border."""
        border = "a\u0416\u4e2d\u65e5\U0001f600\U0001f468\u200d\U00020000\u0301"
        for _ in range(ITERATIONS):
            filler = self.random.choice(border)
            at = self.random.randrange(9990, 10001)
            content = filler * at + "".join(self.random.choice(border) for _ in range(self.random.randrange(10000 - at, 60)))
            told = self.told(self.gateway.message(self.gateway.open(), "p", content))
            self.assertEqual(told[1][1], "p\n\nContent:\n" + content[:10000])

    def test_exactly_10000(self):
        for _ in range(ITERATIONS):
            characters = self.random.choice(("a", "\u4e2d", "\U0001f600", "ab\u4e2d\U0001f600"))
            content = (characters * 10000)[:10000]
            told = self.told(self.gateway.message(self.gateway.open(), "p", content))
            self.assertEqual(told[1][1], "p\n\nContent:\n" + content)

    def test_turns(self):
        """A session's next message has all before it, and a failed one is as if it had never been."""
        for _ in range(ITERATIONS):
            session = self.gateway.open(instructions="i")
            expected = [["system", "i"]]
            for turn in range(3):
                if self.random.random() < 0.4:
                    self.assertFalse(self.gateway.message(session, "lost", scripted({"error": "broken"}))["ok"])
                prompt, content = self.text(), self.text(10)
                expected.append(["user", f"{prompt}\n\nContent:\n{content}"])
                answer = self.gateway.message(session, prompt, content)
                self.assertEqual(self.told(answer), expected)
                expected.append(["assistant", compact({"result": answer["result"]})])

    def test_independent_sessions(self):
        for _ in range(ITERATIONS):
            sessions = {self.gateway.open(instructions=word): [["system", word]] for word in (self.word(), self.word())}
            plan = 2 * list(sessions)
            self.random.shuffle(plan)
            for session in plan:
                word = self.word()
                sessions[session].append(["user", f"p\n\nContent:\n{word}"])
                answer = self.gateway.message(session, "p", word)
                self.assertEqual(self.told(answer), sessions[session])
                sessions[session].append(["assistant", compact({"result": answer["result"]})])


class Idle(Case):
    options = ("--idle-timeout-ms", str(int(400 * SLOW)), "--idle-check-ms", "20", "--max-sessions", str(2 * ITERATIONS))

    def test_idle_timeout(self):
        """Those that are used stay; the others go, with a warning each, and no sooner than they may."""
        idle = {self.gateway.open() for _ in range(ITERATIONS)}
        busy = self.gateway.open()
        gone = set()
        while len(gone) < ITERATIONS:
            # 3 of 4 in one that is slow: not closed while it generates
            answer = self.gateway.message(busy, "p", scripted({"sleep_ms": int(100 * SLOW)}, compact({"result": "x"})))
            self.assertEqual(answer, {"ok": True, "result": "x"})
            while not self.gateway.log.empty():
                line = self.gateway.log.get().decode()
                if "Warning: " in line:
                    self.assertRegex(line, r"session sess_[0-9a-f]{32} was closed after \d+ ms without activity")
                    self.assertGreaterEqual(int(line.split(" ms without")[0].split()[-1]), int(400 * SLOW))
                    gone.add(line.split("session ")[1].split()[0])
        self.assertEqual(gone, idle)
        for session in idle:
            self.fault(self.gateway.message(session, "p", "c"), "session_not_found")
        self.assertTrue(self.gateway.message(busy, "p", says("x"))["ok"])
        self.gateway.log_where(f"session {busy} was closed")
        self.fault(self.gateway.message(busy, "p", "c"), "session_not_found")

    def test_a_request_that_waits(self):
        """A session is not closed while a request of its own waits for another one's answer."""
        slow, waiting = self.gateway.open(), self.gateway.open()
        self.gateway.send_message(slow, "p", scripted({"sleep_ms": int(600 * SLOW)}, compact({"result": "x"})))
        self.gateway.send_message(waiting, "p", says("y"))
        self.assertEqual(self.gateway.answer(), {"ok": True, "result": "x"})
        self.assertEqual(self.gateway.answer(), {"ok": True, "result": "y"})


if __name__ == "__main__":
    print(f"FM_SEED={SEED} FM_ITERATIONS={ITERATIONS}", flush=True)
    unittest.main(verbosity=1)
