"""
Tests the example clients of session mode: each client runs against the real gateway with the fake engine, and against a scripted
gateway that sends what the fake engine can't. All clients must do and print the same.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import wire
from wire import BIN, SLOW

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
EXAMPLES = os.path.join(ROOT, "examples", "sessions")
RUST = os.path.join(ROOT, "build", "deps", "rust", "clients", "debug", "session-client")
PROXY = os.path.join(BIN, "fm-proxy")
SANITIZE = os.environ.get("FM_SANITIZE", "")
LINES = 100
SOURCES = ("client.c", "client.py", "client.mjs", os.path.join("rust", "src", "main.rs"))

# A gateway with two files as its options. The first file has its answers to each command, in turn, and its exit status. The
# gateway writes the commands that it got to the second file.
STAND_IN = """#!%s
import json, os, socket, sys, time
name, mode, table, log = sys.argv
assert mode == "sessions"
answers = json.load(open(table))
with open(log, "w") as file:
    for line in sys.stdin.buffer:
        request = json.loads(line)
        print(json.dumps(request, sort_keys=True), file=file, flush=True)
        told = answers.get(request["command"], [{"ok": True}])
        answer = told.pop(0) if told else None
        if answer is None:
            break
        if "deaf" in answers:
            try:
                socket.socket(fileno=os.dup(0)).shutdown(socket.SHUT_RD)
            except OSError:
                os.close(0) # a pipe
        out = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        sys.stdout.buffer.write(out.encode() + b"\\n")
        sys.stdout.buffer.flush()
        if "deaf" in answers or request["command"] == "shutdown":
            break
    time.sleep(answers.get("lingers_s", 0))
    print('"end"', file=file)
os._exit(answers.get("status", 0)) # where stdin has been closed, Python's own end complains
""" % sys.executable

AVAILABLE = {"ok": True, "available": True, "reason": None}
OPENED = {"ok": True, "session_id": 'sess_"1"'}
TEXT = "Apples and pears grew in the garden. The plums came later, from a neighbour."
REQUESTS = [
    {"command": "check-availability"},
    {"command": "open-session", "instructions": "You answer in few words."},
    {"command": "message", "session_id": 'sess_"1"', "prompt": "List the fruits that the text names.", "content": TEXT,
     "output_format": "string_list"},
    {"command": "message", "session_id": 'sess_"1"', "prompt": "Write a sentence about the first of them.", "content": TEXT,
     "output_format": "text"},
    {"command": "close-session", "session_id": 'sess_"1"'},
    {"command": "shutdown"},
]


def table(fruits=(), text="", **more):
    results = [{"ok": True, "result": list(fruits)}, {"ok": True, "result": text}]
    return {"check-availability": [AVAILABLE], "open-session": [OPENED], "message": results, **more}


class Client:
    """The tests of one client. `command` starts it; it can't be started without the files `needs`."""

    command = needs = ()

    @classmethod
    def setUpClass(cls):
        missing = [file for file in cls.needs if not os.path.exists(file)]
        reason = f"there is no {missing[0]}" if missing else "there is no program to run it" if None in cls.command else None
        if SANITIZE and cls is not C:
            reason = "the sanitizer sees nothing of it"
        if reason:
            print(f"skipped, {cls.__name__}: {reason}", file=sys.stderr)
            raise unittest.SkipTest(reason)

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.stand_in = os.path.join(self.folder.name, "fm-proxy")
        with open(self.stand_in, "w", encoding="utf-8") as file:
            file.write(STAND_IN)
        os.chmod(self.stand_in, 0o755)

    def run_client(self, *arguments, **env):
        """Runs the client; returns its status, its output, and its error messages."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith("FM_PROXY_")}
        done = subprocess.run([*self.command, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                              env={**clean, **env}, timeout=wire.WAIT)
        self.log = done.stderr.decode()  # the output ended, so the gateway, which holds it too, has ended
        said = [line for line in self.log.splitlines() if line.startswith("error: ")]
        return done.returncode, done.stdout.decode(), said

    def run_fake(self, *options, **env):
        return self.run_client(PROXY, "--engine", "fake", *options, **env)

    def run_stand_in(self, answers):
        """Does the same with a gateway that gives these answers. Keeps the commands that the gateway got, and "end" if the client
        ended normally."""
        told, asked = (os.path.join(self.folder.name, name) for name in ("told", "asked"))
        with open(told, "w", encoding="utf-8") as file:
            json.dump(answers, file)
        result = self.run_client(self.stand_in, told, asked)
        with open(asked, encoding="utf-8") as file:
            self.asked = [json.loads(line) for line in file]
        return result

    def assert_error(self, result, printed, error):
        status, out, said = result
        self.assertEqual((status, out), (1, printed), self.log)
        self.assertEqual(len(said), 1, self.log)
        self.assertRegex(said[0], "^error: " + error + "$")

    def test_a_conversation(self):
        self.assertEqual(self.run_fake(), (0, "- List\nWrite\n", []))
        self.assertEqual(len(re.findall(r"\] Message processed: ", self.log)), 2)
        self.assertIn("Session closed: sess_", self.log)

    def test_no_model(self):
        status, out, said = self.run_client(PROXY, "--engine-dir", "/nonexistent", "--log-level", "error")
        self.assertEqual((status, said, self.log), (0, [], ""), "that is no error")
        self.assertRegex(out, r"\Anot available: HELPER_UNHEALTHY: .*/nonexistent/fm-engine-\w+; build or install it, .*\n\Z")

    def test_an_error_of_a_message(self):
        result = self.run_fake("--max-turns", "1")
        self.assert_error(result, "- List\n", "execution_failed: session full: it has had 1 turns; open a new one")

    def test_an_error_of_the_first_request(self):
        refusal = {"ok": False, "error": "failed_to_open_session: no room"}
        self.assert_error(self.run_stand_in(table(**{"open-session": [refusal]})), "", "failed_to_open_session: no room")

    def test_a_model_that_does_not_load(self):
        self.assert_error(self.run_fake(FM_ENGINE_FAKE_LOAD="error"), "", "model_unavailable")

    def test_what_goes_over_the_wire(self):
        self.assertEqual(self.run_stand_in(table(["figs"], "They grow.")), (0, "- figs\nThey grow.\n", []))
        self.assertEqual(self.asked, [*REQUESTS, "end"])

    def test_nobody_reads_what_it_prints(self):
        """Tests an output that is closed early, as with `| head`. A language may end the client by SIGPIPE, or report the failed
        write. No client may print a stack trace."""
        read_end, write_end = os.pipe()
        os.close(read_end)
        env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}  # as for a user
        done = subprocess.run([*self.command, PROXY, "--engine", "fake"], stdin=subprocess.DEVNULL, stdout=write_end,
                              stderr=subprocess.PIPE, env=env, timeout=wire.WAIT)
        os.close(write_end)
        own = [line for line in done.stderr.decode().splitlines() if not line.startswith("[IntelligenceKit] ")]
        self.assertLessEqual(len(own), 1, done.stderr.decode())
        self.assertRegex("".join(own), r"\A(error: .*)?\Z")

    def test_the_default_is_the_program_of_the_path(self):
        with open(self.stand_in, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {PROXY} "$@" --engine fake\n')
        self.assertEqual(self.run_client(PATH=f"{self.folder.name}:{os.environ['PATH']}"), (0, "- List\nWrite\n", []))

    def test_any_string(self):
        fruits = ['"', "\\n", "a\u2028b\u2029c\x85d", "äß\U0001f34e", "", "x" * 300_000]
        status, out, said = self.run_stand_in(table(fruits, "one\ntwo"))
        self.assertEqual((status, said), (0, []), self.log)
        self.assertTrue(out == "".join(f"- {fruit}\n" for fruit in fruits) + "one\ntwo\n", out[:200])
        self.assertEqual(self.run_stand_in(table([], "")), (0, "\n", []), "and none")

    def test_a_gateway_that_ends(self):
        for command in ("check-availability", "message", "shutdown"):
            with self.subTest(command=command):
                printed = "\n" if command == "shutdown" else ""
                self.assert_error(self.run_stand_in(table(**{command: []})), printed, "(the gateway has ended|no answer)")
        for status in (3, 70):
            with self.subTest(status=status):
                self.assertEqual(self.run_stand_in(table(status=status))[:2], (1, "\n"))

        with self.subTest("it has closed its stdin before the second request"):
            self.assert_error(self.run_stand_in(table(deaf=True)), "", ".+")

    def test_it_waits_for_the_end_of_the_gateway(self):
        unavailable = {"ok": True, "available": False, "reason": "none"}
        told, asked = (os.path.join(self.folder.name, name) for name in ("told", "asked"))
        with open(told, "w", encoding="utf-8") as file:
            json.dump({"check-availability": [unavailable], "lingers_s": 0.2 * SLOW}, file)
        subprocess.run([*self.command, self.stand_in, told, asked], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=wire.WAIT)
        with open(asked, encoding="utf-8") as file:
            self.assertEqual(file.readlines()[-1], '"end"\n')

    def test_what_is_no_answer(self):
        for line in ("", "no JSON", '{"ok":'):
            with self.subTest(line=line):
                self.assert_error(self.run_stand_in(table(**{"open-session": [line]})), "", ".+")

    def test_a_gateway_that_does_not_start(self):
        for arguments in (["/nonexistent/fm-proxy"], [PROXY, "--nonsense"]):
            with self.subTest(arguments=arguments):
                status, out, said = self.run_client(*arguments)
                self.assertEqual((status, out), (1, ""))
                self.assertTrue(said, self.log)


class C(Client, unittest.TestCase):
    needs = command = (os.path.join(BIN, "..", "tests-bin", "session_client"),)


class Python(Client, unittest.TestCase):
    command = (sys.executable, "-B", os.path.join(EXAMPLES, "client.py"))


class Node(Client, unittest.TestCase):
    command = (shutil.which("node"), os.path.join(EXAMPLES, "client.mjs"))


class Rust(Client, unittest.TestCase):
    needs = command = (RUST,)


class Sources(unittest.TestCase):
    def test_they_are_short(self):
        for source in SOURCES:
            with self.subTest(source=source), open(os.path.join(EXAMPLES, source), encoding="utf-8") as file:
                self.assertLess(len(file.readlines()), LINES)


if __name__ == "__main__":
    wire.main()
