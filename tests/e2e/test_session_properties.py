"""
Tests the 25 correctness properties of a gateway of sessions, each on FM_ITERATIONS random inputs (100; 20 under sanitizers), on
the real binary with the fake engine. A test's name begins with the number of its property. The seed is printed; FM_SEED sets it.

Every test also checks that stdout has one JSON object per line and no unexpected answer, that each line of stderr begins with the
prefix, and that the exit status is 0.
"""

import json
import os
import random
import re
import unittest

from gateway import GUIDES, PREFIX, Gateway, compact, says, scripted
from wire import SANITIZED, SLOW, TimedTest, alive

ITERATIONS = int(os.environ.get("FM_ITERATIONS", 20 if SANITIZED else 100))
SEED = int(os.environ.get("FM_SEED", random.SystemRandom().randrange(1 << 32)))
MESSAGES = {"FM_ENGINE_FAKE_ANSWER": "messages"}  # the engine answers with the messages that it got
DEFAULT_INSTRUCTIONS = "You are a helpful assistant. Follow the prompt instructions precisely."
CONTENT_MAX = 10_000
# no white space: the fake engine's context has 4,096 words
LETTERS = ("abcxyz.\"\\/{}[]\u0000\u007f\u00e4\u0416\u4e2d\u6587\u65e5\u672c\u05d0\u0939\u0301"
           "\U0001f600\U0001f468\u200d\U0001f469\U00020000")
ALPHABET = LETTERS + "   ,\t\r\n\u2028"
FORMATS = ("text", "string_list")
FIELDS = ("session_id", "prompt", "content", "output_format")
NO_STRINGS = (None, 0, 1, -1.5, True, False, [], {}, ["text"], {"a": "b"})
ERRORS = re.compile("invalid_json|command_required|unknown_command|session_id_required|prompt_required|content_required|"
                    "output_format_required|session_not_found|unknown_output_format|guardrail_blocked|model_unavailable|"
                    "failed_to_open_session: .+|execution_failed: .+")


class Case(TimedTest):
    options = ("--max-sessions", str(4 * ITERATIONS))
    env = None

    def setUp(self):
        self.random = random.Random(f"{SEED} {self.id()}")
        self.gateway = Gateway(*self.options, env=self.env)
        self.addCleanup(self.gateway.close)

    def tearDown(self):
        self.assertEqual(self.gateway.close(), 0)
        self.assertIsNone(self.gateway.answer_line(), "an answer without a request")
        for line in self.gateway.rest_of_log():
            self.assertTrue(line.startswith(PREFIX) and line.endswith("\n"), line)

    def text(self, most=40):
        """Returns a text that is not empty, and not a script for the fake engine."""
        return "".join(self.random.choices(ALPHABET, k=self.random.randrange(most))) + "x"

    def word(self):
        return "w%d" % self.random.randrange(1 << 40)

    def fault(self, answer, error):
        self.assertEqual(answer, {"ok": False, "error": error})

    def bad_json(self):
        """Returns a line that is not empty and not a JSON object; sometimes it is not even valid text."""
        valid = compact({"command": "open-session", "instructions": self.text()}).encode()
        cut = self.random.randrange(1, len(valid))
        choices = (
            lambda: self.random.choice(("nonsense", "{", "}", "[]", "null", "1", '"text"', "{'command':'shutdown'}",
                                        '{"command":"shutdown"', '{"command":shutdown}', '{"a":1,}', "{} {}",
                                        '{"command":"\\ud800"}', '{"a":NaN}', '{"a":01}')).encode(),
            lambda: b"x" + self.random.randbytes(self.random.randrange(30)).replace(b"\n", b""),
            lambda: valid[:cut],
            lambda: valid[:-1] + b"," + self.word().encode() + b"}",
            lambda: valid.replace(b'"', b"", 1),
            lambda: b'{"command":"open-session","instructions":"\xff' + self.word().encode() + b'"}',
            lambda: b"[" * self.random.randrange(1, 200),
        )
        return self.random.choice(choices)()

    def message(self, session, content=None):
        return {"command": "message", "session_id": session, "prompt": self.text(), "content": content or self.text(),
                "output_format": "text"}

    def valid_request(self, sessions):
        """Returns a request that is answered with ok. A session that the request closes is removed from `sessions`."""
        kinds = ["open-session", "check-availability", *["message"] * 3, "close-session"]
        kind = self.random.choice(kinds if len(sessions) > 1 else kinds[:-1])
        if kind == "message":
            return self.message(self.random.choice(sessions), self.random.choice((None, says(self.word()))))
        if kind == "close-session":
            return {"command": kind, "session_id": sessions.pop(self.random.randrange(len(sessions)))}
        if kind == "open-session" and self.random.random() < 0.5:
            return {"command": kind, "instructions": self.text()}
        return {"command": kind}

    def bad_request(self, session):
        """Returns a line that is answered with an error, and the error's code."""
        name = self.word()
        return self.random.choice((
            (self.bad_json(), "invalid_json"),
            (compact({name: 1}).encode(), "command_required"),
            (compact({"command": name}).encode(), "unknown_command"),
            (compact({**self.message(session), "session_id": name}).encode(), "session_not_found"),
            (compact({**self.message(session), "prompt": ""}).encode(), "prompt_required"),
            (compact({**self.message(session), "content": None}).encode(), "content_required"),
            (compact({**self.message(session), "output_format": name}).encode(), "unknown_output_format"),
            (compact({"command": "close-session"}).encode(), "session_id_required"),
            (compact({"command": "open-session", "instructions": 1}).encode(), "failed_to_open_session"),
            (compact(self.message(session, scripted({"error": "broken"}))).encode(), "execution_failed"),
            (compact(self.message(session, scripted({"finish": "content_filter"}))).encode(), "guardrail_blocked"),
        ))


class Lines(Case):
    def test_01_one_response_per_request(self):
        sessions = [self.gateway.open()]
        for _ in range(ITERATIONS):
            requests = [self.valid_request(sessions) for _ in range(self.random.randrange(1, 8))]
            self.gateway.send_raw("".join(compact(request) + "\n" for request in requests).encode())
            for request in requests:
                answer = self.gateway.answer()
                self.assertTrue(answer["ok"], (request, answer))
                if "session_id" in answer:
                    sessions.append(answer["session_id"])
            self.assertTrue(self.gateway.answers.empty())
            while len(sessions) > 8:
                self.assertTrue(self.gateway.ask("close-session", session_id=sessions.pop())["ok"])

    def test_02_sequential_processing(self):
        """Answers have the order of the requests, however long each request takes, and whichever session it is for."""
        sessions = [self.gateway.open() for _ in range(4)]
        for _ in range(ITERATIONS):
            expected = []
            for _ in range(self.random.randrange(2, 9)):
                if self.random.random() < 0.3:
                    line, error = self.bad_request(sessions[0])
                    self.gateway.send_raw(line + b"\n")
                    expected.append(error)
                    continue
                word = self.word()
                pause = {"sleep_ms": self.random.randrange(3)}
                self.gateway.send_message(self.random.choice(sessions), "p", scripted(pause, compact({"result": word})))
                expected.append(word)
            answers = [self.gateway.answer() for _ in expected]
            self.assertEqual([a["result"] if a["ok"] else a["error"].split(":")[0] for a in answers], expected)

    def test_03_ndjson_responses(self):
        """Each answer is compact JSON in UTF-8, with a single newline at its end; texts are unchanged."""
        session = self.gateway.open()
        for _ in range(ITERATIONS):
            if self.random.random() < 0.3:
                line, error = self.bad_request(session)
                self.gateway.send_raw(line + b"\n")
                begins = f'{{"ok":false,"error":"{error}'
            else:
                result = self.random.choice((self.text(), [self.text() for _ in range(self.random.randrange(4))]))
                self.gateway.send_message(session, self.text(), says(result), FORMATS[isinstance(result, list)])
                begins = '{"ok":true,"result":' + compact(result)
            line = self.gateway.answer_line().decode()
            self.assertTrue(line.endswith("}\n") and line.count("\n") == 1 and "\r" not in line, line)
            self.assertIsInstance(json.loads(line), dict)
            self.assertEqual(compact(json.loads(line)), line[:-1])
            self.assertTrue(line.startswith(begins), (line, begins))

    def test_04_invalid_json(self):
        session = self.gateway.open()
        for _ in range(ITERATIONS):
            self.gateway.send_raw(self.bad_json() + b"\n")
            self.fault(self.gateway.answer(), "invalid_json")
            word = self.word()
            self.assertEqual(self.gateway.message(session, "p", says(word)), {"ok": True, "result": word})

    def test_05_empty_lines(self):
        session = self.gateway.open()
        for _ in range(ITERATIONS):
            words = [self.word() for _ in range(self.random.randrange(1, 4))]
            for word in words:
                empty = b"".join(self.random.choices((b"\n", b"\r\n", b"  \n", b"\t \r\n"), k=self.random.randrange(5)))
                request = compact(self.message(session, says(word))).encode()
                self.gateway.send_raw(empty + request + self.random.choice((b"\n", b"\r\n")) + empty)
            self.assertEqual([self.gateway.answer() for _ in words], [{"ok": True, "result": word} for word in words])

    def test_06_required_command(self):
        session = self.gateway.open()
        for _ in range(ITERATIONS):
            value = self.message(session)
            del value["command"]
            value[self.random.choice(("Command", "cmd", self.word()))] = self.text()
            if self.random.random() < 0.5:
                value["command"] = self.random.choice(NO_STRINGS)
            self.gateway.send_raw(compact(value).encode() + b"\n")
            self.fault(self.gateway.answer(), "command_required")

    def test_unknown_command(self):
        for _ in range(ITERATIONS):
            name = self.random.choice(("", "Shutdown", "open_session", "open-session ", "open-session\u0000", self.text()))
            self.fault(self.gateway.ask(name), "unknown_command")

    def test_18_error_structure(self):
        session = self.gateway.open()
        seen = set()
        for _ in range(ITERATIONS):
            line, error = self.bad_request(session)
            self.gateway.send_raw(line + b"\n")
            answer = self.gateway.answer()
            self.assertEqual(list(answer), ["ok", "error"])
            self.assertIs(answer["ok"], False)
            self.assertRegex(answer["error"], f"^({ERRORS.pattern})$")
            self.assertEqual(answer["error"].split(":")[0], error)
            seen.add(error)
        self.assertGreater(len(seen), min(ITERATIONS, 20) // 4)

    def test_20_errors_are_logged(self):
        """The log has the prefix and the code, but not the user's text."""
        session = self.gateway.open()
        secret = "SECRET"
        text = {"command": "message", "session_id": session, "prompt": secret, "content": secret, "output_format": "text"}
        for _ in range(ITERATIONS):
            line, error = self.random.choice((
                (self.bad_json().replace(b"x", secret.encode()) + b"," + secret.encode(), "invalid_json"),
                (compact({secret: 1}).encode(), "command_required"),
                (compact({"command": secret}).encode(), "unknown_command"),
                (compact({"command": "open-session", "instructions": [secret]}).encode(), "failed_to_open_session"),
                *((compact({**text, name: 1}).encode(), f"{name}_required") for name in FIELDS),
                (compact({**text, "session_id": secret}).encode(), "session_not_found"),
                (compact({**text, "output_format": secret}).encode(), "unknown_output_format"),
                (compact({**text, "content": scripted(secret, {"error": "broken"})}).encode(), "execution_failed"),
                (compact({**text, "content": scripted(secret, {"finish": "content_filter"})}).encode(), "guardrail_blocked"),
            ))
            self.gateway.send_raw(line + b"\n")
            self.assertFalse(self.gateway.answer()["ok"])
            logged = self.gateway.log_where("Error: ")
            self.assertRegex(logged, r"^\[IntelligenceKit\] Error: [a-z -]+: %s after \d+ ms: .+" % error)
            self.assertNotIn(secret, logged)

    def test_21_continuity(self):
        """Whatever comes between, the server and each of its sessions continue."""
        turns = {self.gateway.open(): 0 for _ in range(3)}
        for _ in range(ITERATIONS):
            session = self.random.choice(list(turns))
            for _ in range(self.random.randrange(4)):
                line, error = self.bad_request(session)
                self.gateway.send_raw(line + b"\n")
                self.assertEqual(self.gateway.answer()["error"].split(":")[0], error)
            word = self.word()
            self.assertEqual(self.gateway.message(session, "p", says(word)), {"ok": True, "result": word})
            turns[session] += 1
        self.assertTrue(alive(self.gateway.pid))
        logged = [self.gateway.log_where("Message processed: ") for _ in range(ITERATIONS)]
        for session, count in turns.items():
            self.assertEqual(sum(f"session={session}," in line for line in logged), count)


class Sessions(Case):
    def test_07_unique_ids(self):
        ids = [self.gateway.open() for _ in range(ITERATIONS)]
        for i in self.random.sample(range(ITERATIONS), ITERATIONS // 2):
            self.assertTrue(self.gateway.ask("close-session", session_id=ids[i])["ok"])
        ids += [self.gateway.open() for _ in range(ITERATIONS)]
        self.assertEqual(len(set(ids)), 2 * ITERATIONS)

    def test_09_session_not_found(self):
        known = self.gateway.open()
        for _ in range(ITERATIONS):
            session = self.random.choice((self.text(), self.word(), "sess_%032x" % self.random.getrandbits(128), "",
                                          known[:-1], known + "0", known.upper(), known + "\u0000"))
            output_format = self.random.choice((*FORMATS, self.word()))
            self.fault(self.gateway.message(session, self.text(), self.text(), output_format), "session_not_found")
            self.fault(self.gateway.ask("close-session", session_id=session), "session_not_found")

    def test_10_closure(self):
        for _ in range(ITERATIONS):
            sessions = [self.gateway.open() for _ in range(self.random.randrange(1, 4))]
            closed = self.random.choice(sessions)
            for session in sessions:
                self.assertTrue(self.gateway.message(session, self.text(), says("x"))["ok"])
            self.assertEqual(self.gateway.ask("close-session", session_id=closed), {"ok": True})
            self.fault(self.gateway.message(closed, self.text(), self.text()), "session_not_found")
            self.fault(self.gateway.ask("close-session", session_id=closed), "session_not_found")
            for session in set(sessions) - {closed}:
                self.assertTrue(self.gateway.ask("close-session", session_id=session)["ok"])

    def test_22_life_cycle(self):
        for _ in range(ITERATIONS):
            self.assertEqual(self.gateway.ask("check-availability"), {"ok": True, "available": True, "reason": None})
            session = self.gateway.open(instructions=self.text())
            for _ in range(self.random.randrange(1, 4)):
                word = self.word()
                self.assertEqual(self.gateway.message(session, self.text(), says([word]), "string_list"),
                                 {"ok": True, "result": [word]})
            self.assertEqual(self.gateway.ask("close-session", session_id=session), {"ok": True})
            self.fault(self.gateway.message(session, self.text(), self.text()), "session_not_found")
        self.assertEqual(self.gateway.ask("shutdown"), {"ok": True})
        self.assertEqual(self.gateway.wait_exit(), 0)


class Messages(Case):
    def setUp(self):
        super().setUp()
        self.session = self.gateway.open()

    def test_13_required_fields(self):
        """Absent, null and other types are treated the same. If several fields are missing, the first one is reported, before
        the session is looked for."""
        for _ in range(ITERATIONS):
            fields = {"session_id": self.random.choice((self.session, self.word())), "prompt": self.text(),
                      "content": self.text(), "output_format": self.random.choice((*FORMATS, self.word()))}
            missing = self.random.sample(FIELDS, self.random.choice((1, 1, 2, 3, 4)))
            for name in missing:
                if self.random.random() < 0.5:
                    del fields[name]
                else:
                    fields[name] = self.random.choice(NO_STRINGS)
            first = min(missing, key=FIELDS.index)
            self.fault(self.gateway.ask("message", **fields), first + "_required")

    def test_14_output_format(self):
        """An answer of another shape is an error; an engine that follows the schema has the right shape."""
        for _ in range(ITERATIONS):
            output_format = self.random.choice(FORMATS)
            answer = self.gateway.message(self.session, self.text(), self.text(), output_format)
            self.assertEqual(list(answer), ["ok", "result"], answer)
            self.assertIs(answer["ok"], True)
            self.assertIsInstance(answer["result"], str if output_format == "text" else list)
            self.assertTrue(output_format == "text" or all(isinstance(item, str) for item in answer["result"]))
            wrong = self.random.choice((1, None, {}, [1], ["a", None], [["a"]], ["a"] if output_format == "text" else "a"))
            if self.random.random() < 0.3:
                steps = scripted(self.random.choice(("nonsense", "{}", '{"result":"a"', "[]", '{"result":"a"}[]')))
            else:
                steps = says(wrong)
            self.fault(self.gateway.message(self.session, "p", steps, output_format),
                       "execution_failed: the engine's answer does not match its schema: send the message again")

    def test_15_unknown_output_format(self):
        for _ in range(ITERATIONS):
            output_format = self.random.choice(("", "Text", "TEXT", " text", "text\u0000", "string-list", "json", "strings",
                                                self.word(), self.text()))
            self.fault(self.gateway.message(self.session, self.text(), self.text(), output_format), "unknown_output_format")

    def test_23_empty_prompt(self):
        for _ in range(ITERATIONS):
            session = self.random.choice((self.session, self.word()))
            content = self.random.choice(("", self.text()))
            answer = self.gateway.message(session, "", content, self.random.choice((*FORMATS, self.word())))
            self.fault(answer, "prompt_required")
        self.assertEqual(self.gateway.message(self.session, " ", says("x")), {"ok": True, "result": "x"})

    def test_24_empty_content(self):
        for _ in range(ITERATIONS):
            session = self.random.choice((self.session, self.word()))
            answer = self.gateway.message(session, self.text(), "", self.random.choice((*FORMATS, self.word())))
            self.fault(answer, "content_required")
        self.assertTrue(self.gateway.message(self.session, "p", " ")["ok"])


class Got(Case):
    """Tests that look at the messages that the engine got."""

    env = MESSAGES

    def got(self, answer):
        """Returns the conversation, as pairs of role and content, without the guide of the format "text"."""
        self.assertTrue(answer["ok"], answer)
        (role, instructions), *turns = json.loads(answer["result"])
        self.assertTrue(instructions.endswith(GUIDES["text"]), instructions)
        return [[role, instructions.removesuffix(GUIDES["text"])], *turns]

    def long_text(self, length):
        """Returns a text of `length` characters: characters of one, two, three and four bytes, or one repeated character."""
        letters = self.random.choice((LETTERS, LETTERS, self.random.choice(LETTERS[:3]), self.random.choice(LETTERS[-6:])))
        return "".join(self.random.choices(letters, k=length))

    def test_08_independent_sessions(self):
        """A session is not affected by the errors and the end of the other session either."""
        for _ in range(ITERATIONS):
            sessions = {self.gateway.open(instructions=word): [["system", word]] for word in (self.word(), self.word())}
            for session in self.random.sample(2 * list(sessions), 4):
                if self.random.random() < 0.3:
                    line, _ = self.bad_request(self.random.choice(list(sessions)))
                    self.gateway.send_raw(line + b"\n")
                    self.assertFalse(self.gateway.answer()["ok"])
                self.turn(session, sessions[session])
            closed, other = self.random.sample(list(sessions), 2)
            self.assertTrue(self.gateway.ask("close-session", session_id=closed)["ok"])
            self.turn(other, sessions[other])
            self.fault(self.gateway.message(closed, "p", "c"), "session_not_found")
            self.assertTrue(self.gateway.ask("close-session", session_id=other)["ok"])

    def turn(self, session, conversation):
        """Sends a message; checks that the model sees exactly the conversation and the message, and adds the turn to it."""
        prompt, content = self.text(), self.text()
        conversation.append(["user", f"{prompt}\n\nContent:\n{content}"])
        answer = self.gateway.message(session, prompt, content)
        self.assertEqual(self.got(answer), conversation)
        conversation.append(["assistant", compact({"result": answer["result"]})])

    def test_12_optional_instructions(self):
        for _ in range(ITERATIONS):
            fields = self.random.choice(({}, {"instructions": None}, {"instructions": self.text()}, {"instructions": ""}))
            got = self.got(self.gateway.message(self.gateway.open(**fields), "p", "c"))
            given = fields.get("instructions")
            self.assertEqual(got, [["system", DEFAULT_INSTRUCTIONS if given is None else given],
                                   ["user", "p\n\nContent:\nc"]])
            wrong = self.random.choice([value for value in NO_STRINGS if value is not None])
            self.fault(self.gateway.ask("open-session", instructions=wrong),
                       'failed_to_open_session: "instructions" must be a string')

    def test_16_truncation(self):
        for _ in range(ITERATIONS):
            length = self.random.choice((self.random.randrange(1, 25_000), self.random.randrange(9_990, 10_011)))
            content = self.long_text(length)
            got = self.got(self.gateway.message(self.gateway.open(), "p", content))
            self.assertEqual(got[1:], [["user", "p\n\nContent:\n" + content[:CONTENT_MAX]]])

    def test_17_prompt_construction(self):
        """The whole prompt, an empty line, "Content:", and the content, byte by byte."""
        for _ in range(ITERATIONS):
            prompt = self.random.choice((self.text(), self.text(), self.long_text(self.random.randrange(9_000, 12_000))))
            content = self.text(400)
            got = self.got(self.gateway.message(self.gateway.open(), prompt, content))
            self.assertEqual(got[1:], [["user", f"{prompt}\n\nContent:\n{content}"]])

    def test_19_resilience(self):
        """An error leaves the session as it was: the next message has all the turns before it, and nothing from the error."""
        faults = [{"error": "broken"}, {"finish": "content_filter"}, {"finish": "length"}]
        session, conversation = None, []
        for i in range(ITERATIONS):
            if i % 10 == 0:
                session, conversation = self.gateway.open(instructions="i"), [["system", "i"]]
                self.turn(session, conversation)
            # an engine that dies three times in a row is not started for a while, so most errors are of other kinds
            fault = self.random.choice(faults + [{"exit": 3}, {"signal": "SEGV"}] * (i % 10 == 5))
            answer = self.gateway.message(session, "lost", scripted("{", fault), self.random.choice(FORMATS))
            self.assertRegex(answer["error"], "^(guardrail_blocked$|execution_failed: .)")
            if i % 4 == 0:
                self.turn(session, conversation)
        self.turn(session, conversation)

    def test_25_exactly_the_most(self):
        """10,000 characters are passed on. If the content has one character more, its last character is not passed on."""
        for _ in range(ITERATIONS):
            content = self.long_text(CONTENT_MAX)
            got = self.got(self.gateway.message(self.gateway.open(), "p", content))
            self.assertEqual(got[1:], [["user", "p\n\nContent:\n" + content]])
            if self.random.random() < 0.2:
                got = self.got(self.gateway.message(self.gateway.open(), "p", content + "!"))
                self.assertEqual(got[1:], [["user", "p\n\nContent:\n" + content]])

    def test_unknown_members(self):
        """Such members are ignored, also those of other commands, whatever their type."""
        values = (*NO_STRINGS, "", "text")
        session = self.gateway.open()
        for _ in range(ITERATIONS):
            names = [self.random.choice(("id", "model", "temperature", "Prompt", "instructions", self.word()))
                     for _ in range(self.random.randrange(1, 4))]
            more = {name: self.random.choice(values) for name in names}
            prompt, content = self.text(), self.text()
            session = self.gateway.open(**{**more, "instructions": "i", "prompt": self.random.choice(values)})
            got = self.got(self.gateway.ask("message", **{**more, "session_id": session, "prompt": prompt, "content": content,
                                                          "output_format": "text"}))
            self.assertEqual(got, [["system", "i"], ["user", f"{prompt}\n\nContent:\n{content}"]])
            self.assertTrue(self.gateway.ask("check-availability", **more, session_id=[])["available"])
            self.assertEqual(self.gateway.ask("close-session", **more, session_id=session, content=1), {"ok": True})
        self.assertEqual(self.gateway.ask("shutdown", session_id=1, odd=2), {"ok": True})


class Idle(Case):
    idle_ms = int(1000 * SLOW)
    options = ("--idle-timeout-ms", str(idle_ms), "--idle-check-ms", "20", "--max-sessions", str(2 * ITERATIONS))

    def test_11_idle_timeout(self):
        """Sessions in use stay; the others are closed, with a warning each, and not too early."""
        idle = {self.gateway.open(instructions=self.text()) for _ in range(ITERATIONS)}
        for session in self.random.sample(sorted(idle), ITERATIONS // 2):
            self.assertTrue(self.gateway.message(session, self.text(), self.text())["ok"])
        busy = self.gateway.open()
        gone = set()
        while len(gone) < ITERATIONS:
            # three of four sleeps happen while a message is generated; no session is closed during a message
            answer = self.gateway.message(busy, "p", scripted({"sleep_ms": self.idle_ms // 4}, compact({"result": "x"})))
            self.assert_undisturbed(answer == {"ok": True, "result": "x"}, answer)
            while not self.gateway.log.empty():
                line = self.gateway.log.get().decode()
                if "Warning: " in line:
                    found = re.fullmatch(re.escape(PREFIX) + r"Warning: Session (\S+) idle timeout, closing after (\d+) ms "
                                         r"without activity\n", line)
                    self.assertGreaterEqual(int(found.group(2)), self.idle_ms)
                    gone.add(found.group(1))
        self.assertEqual(gone, idle)
        for session in idle:
            self.fault(self.gateway.message(session, "p", "c"), "session_not_found")
        self.assert_undisturbed(self.gateway.message(busy, "p", says("x"))["ok"], "the busy session is open")
        self.gateway.log_where(f"Session {busy} idle timeout, closing")
        self.gateway.log_where(f"Session closed: {busy}")
        self.fault(self.gateway.message(busy, "p", "c"), "session_not_found")

    def test_a_request_that_waits(self):
        """A session is not closed while one of its requests waits for the answer to another request."""
        slow, waiting = self.gateway.open(), self.gateway.open()
        self.gateway.send_message(slow, "p", scripted({"sleep_ms": self.idle_ms * 3 // 2}, compact({"result": "x"})))
        self.gateway.send_message(waiting, "p", says("y"))
        answers = [self.gateway.answer(), self.gateway.answer()]
        self.assert_undisturbed(answers == [{"ok": True, "result": "x"}, {"ok": True, "result": "y"}], answers)


if __name__ == "__main__":
    print(f"FM_SEED={SEED} FM_ITERATIONS={ITERATIONS}", flush=True)
    unittest.main(verbosity=1)
