"""
Runs the end-to-end tests that only need the fake engine, on the programs for Windows under wine; tests of what only Windows
has; and the llama engine with the real model.

    wine.py [SUITE[.CLASS[.TEST]]...]

Prints a line for each test, and the tests that are left out, with the reason. The last line is "N passed, N failed, N left
out". It needs what packaging/windows.sh built in build/windows. WINEPREFIX is build/windows/wine unless it is set.
"""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
WINDOWS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "windows")
PROGRAMS = os.path.join(WINDOWS, "bin")
HELPER = os.path.join(os.path.dirname(os.path.dirname(HERE)), "helper")
START = os.path.join(WINDOWS, "start")  # has a script for each program, with the program's name on other systems
ENGINES = ("fm-engine-fake", "fm-engine-llama")
MODEL = os.path.join(os.path.dirname(WINDOWS), "models", "SmolLM2-135M-Instruct.Q4_1.gguf")
QUESTION = {"input": "What is the capital of France?", "temperature": 0, "max_output_tokens": 24,
            "fm": {"timeout_ms": 600000, "first_token_timeout_ms": 300000, "no_progress_timeout_ms": 300000}}

os.environ.setdefault("WINEPREFIX", os.path.join(WINDOWS, "wine"))
os.environ.setdefault("WINEDEBUG", "-all")
os.environ["FM_BIN"] = START
os.environ.setdefault("FM_LINES", "1000")  # for test_sessions: each line takes ten times as long as without wine
os.environ.setdefault("FM_SLOW", "3")  # wine is slower than Windows
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import patience  # noqa: E402

patience.WAIT = float(os.environ.get("FM_WAIT", 120))
import pictures  # noqa: E402
import wire  # noqa: E402

SUITES = ("wire", "golden", "life", "requests", "sessions", "limits", "store.Calls", "store.Conversations")
SIGNALS = "SIGTERM ends a process under wine at once"
PARENT = "a parent outside wine is none to a process in it"
SCRIPTS = "its engine is a script, and Windows starts programs alone"
SLOW = "its limit is shorter than wine takes"
PROC = "it looks at files of /proc, which show wine"
LEFT_OUT = {
    "test_wire.Recoverable.test_memory_of_a_large_body_is_given_back": PROC,
    "test_golden.Document.test_capabilities": SCRIPTS,
    "test_golden.Golden.test_engine": "its record has the sandbox of Linux",
    "test_life.CommandLine.test_nobody_reads_what_it_prints": "there is no SIGPIPE",
    "test_life.Ends.test_sigterm": SIGNALS,
    "test_life.Ends.test_signals_that_the_host_has_blocked": SIGNALS,
    "test_life.NothingLeft.test_descriptors_threads_children": PROC,
    "test_life.NothingLeft.test_no_socket": PROC,
    "test_life.ParentDeath": PARENT,
    "test_limits.Limits.test_unstreamed": SLOW,
    "test_requests.Choices.test_a_limit_is_for_all_of_them": SLOW,
    "test_requests.Ignored.test_extras_of_an_engine_without": SCRIPTS,
    "test_requests.Methods.test_ping": "a process has another number on Windows than here",
    "test_sessions.Ends.test_host_that_stops_reading_and_goes": SIGNALS,
    "test_sessions.Ends.test_parent_killed": PARENT,
    "test_sessions.Ends.test_sigterm": SIGNALS,
    "test_sessions.Log.test_of_an_end": SIGNALS,
    "test_sessions.Ends.test_what_came_before_a_signal_is_answered": SIGNALS,
}
"""Which tests can't run, by their names or how these begin, and why."""


def install():
    """The scripts that start the programs under wine."""
    os.makedirs(START, exist_ok=True)
    for name in ("fm-proxy", *ENGINES):
        path = os.path.join(START, name)
        with open(path + ".new", "w") as file:
            # Under wine, the engine's parent is another process. The engine inherits this variable, so that engines() can find
            # it.
            file.write(f'#!/bin/sh\nexport FM_ENGINE_RUN=$$\nexec wine "{PROGRAMS}/{name}.exe" "$@"\n')
        os.chmod(path + ".new", 0o755)
        os.replace(path + ".new", path)
    for name in ENGINES:
        shutil.copy(os.path.join(PROGRAMS, name + ".json"), START)


def engines(helper):
    """The pids of the helper's running engines. Under wine, their parent is not the helper."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                command = file.read()
            if command.startswith(b"C:") or b"fm-engine-fake.exe" not in command or wire.state(int(entry)) in "ZX":
                continue
            with open(f"/proc/{entry}/environ", "rb") as file:
                if b"FM_ENGINE_RUN=%d\0" % helper in file.read():
                    found.append(int(entry))
        except OSError:
            pass  # it has ended
    return found


def reason_for(test):
    """Why a test is left out; None: it is run."""
    return next((why for name, why in LEFT_OUT.items() if test.id().startswith(name)), None)


def flat(suite):
    for test in suite:
        yield from flat(test) if isinstance(test, unittest.TestSuite) else (test,)


class Report(unittest.TestResult):
    """Prints a line for each test."""

    def startTest(self, test):
        super().startTest(test)
        self.begun = time.monotonic()
        self.seen = len(self.failures), len(self.errors)

    def stopTest(self, test):
        super().stopTest(test)
        failures, errors = self.seen
        bad = self.failures[failures:] + self.errors[errors:]
        print(f"{'FAILED' if bad else 'ok':6} {time.monotonic() - self.begun:6.1f} s  {test.id()}", flush=True)
        for part, text in bad:
            print(f"    {part.id()}\n    " + text.rstrip().replace("\n", "\n    "), flush=True)

    def is_bad(self, test):
        return any(each.id().startswith(test.id()) for each, _ in self.failures + self.errors)

    def forget(self, test):
        self.failures = [each for each in self.failures if not each[0].id().startswith(test.id())]
        self.errors = [each for each in self.errors if not each[0].id().startswith(test.id())]


class Windows(unittest.TestCase):
    """Tests of features that only Windows has."""

    def helper(self, *args, **more):
        helper = wire.Helper(*args, **more)
        self.addCleanup(lambda: helper.process.poll() is None and helper.process.kill())
        return helper

    def gone(self, pid):
        patience_until = time.monotonic() + patience.WAIT
        while wire.state(pid) not in "ZX" and time.monotonic() < patience_until:
            time.sleep(0.02)
        return wire.state(pid) in "ZX"

    def test_an_engine_ends_with_a_helper_that_is_killed(self):
        helper = self.helper()
        call = helper.start("responses.create", {"input": wire.script("a", {"hang": "hard"}), "stream": True})
        helper.event(call, "response.output_text.delta")
        (engine,) = engines(helper.pid)
        os.kill(engine, signal.SIGSTOP)  # so that it can't notice the end of its input
        helper.process.kill()
        helper.wait_exit()
        gone = self.gone(engine)
        if not gone:
            os.kill(engine, signal.SIGKILL)
        self.assertTrue(gone)

    def test_a_helper_ends_with_its_parent(self):
        """The helper's parent is a Windows command line, and the helper's input stays open."""
        program = "Z:" + PROGRAMS.replace("/", "\\") + "\\fm-proxy.exe"
        read_end, write_end = os.pipe()
        parent = subprocess.Popen(["wine", "cmd", "/c", program, "--engine", "fake"], stdin=read_end, stdout=subprocess.PIPE)
        os.close(read_end)
        os.write(write_end, wire.frame({"jsonrpc": "2.0", "id": 1, "method": "health.ping"}))
        self.assertTrue(parent.stdout.readline().startswith(b"Content-Length"))
        parent.kill()
        parent.wait()
        parent.stdout.read()  # this output ends when the helper ends
        os.close(write_end)
        parent.stdout.close()

    def test_paths_and_variables_are_utf_8(self):
        with tempfile.TemporaryDirectory(prefix="käse 語 ") as folder:
            for name in os.listdir(PROGRAMS):
                shutil.copy(os.path.join(PROGRAMS, name), folder)
            process = subprocess.Popen(["wine", os.path.join(folder, "fm-proxy.exe"), "--engine", "fake"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       env={**os.environ, "LC_ALL": "C.UTF-8", "FM_PROXY_ALIASES": "ß=default"})
            process.stdin.write(wire.frame({"jsonrpc": "2.0", "id": 1, "method": "responses.create",
                                            "params": {"model": "ß", "input": "語"}}))
            process.stdin.flush()
            length = int(process.stdout.readline().split()[1])
            process.stdout.readline()
            text = process.stdout.read(length).decode()
            process.stdin.close()
            self.assertEqual(process.wait(), 0)
            process.stdout.close()
            self.assertIn("語", text)
            self.assertIn('"ok":true', text)

    def test_started_in_a_folder_whose_name_is_not_ascii(self):
        """A command line keeps the folder of each drive in its environment, under names such as "=Z:"."""
        program = "Z:" + PROGRAMS.replace("/", "\\") + "\\fm-proxy.exe"
        with tempfile.TemporaryDirectory(prefix="käse 語 ") as folder:
            process = subprocess.run(["wine", "cmd", "/c", program, "--version"], stdout=subprocess.PIPE, cwd=folder,
                                     env={**os.environ, "LC_ALL": "C.UTF-8"}, check=False)
        self.assertEqual(process.returncode, 0)
        self.assertTrue(process.stdout.startswith(b"fm-proxy "), process.stdout)

    def probe(self, word):
        """Builds tests/windows/probe.c again, and runs it."""
        compiler = ["x86_64-w64-mingw32-gcc-posix", "-O1", "-I" + HELPER, os.path.join(HERE, "probe.c")]
        ours = ["-municode", "-static", "-I" + os.path.join(HELPER, "base", "windows"), "-include",
                os.path.join(HELPER, "base", "windows", "posix.h"), os.path.join(WINDOWS, "libfm_base.a"), "-lbcrypt", "-lntdll"]
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([*compiler, "-DLIBRARY", "-shared", "-o", os.path.join(folder, "probe.dll")], check=True)
            subprocess.run([*compiler, *ours, "-o", os.path.join(folder, "probe.exe")], check=True)
            program = os.path.join(folder, "probe.exe")
            return subprocess.run(["wine", program, word], stdout=subprocess.PIPE, cwd=folder, text=True, check=False)

    def test_an_end_at_once_runs_nothing_of_a_library(self):
        """_exit ends the engine while another of its threads may be doing anything."""
        self.assertEqual(self.probe("end").returncode, 7)

    def test_a_limit_is_of_processor_time(self):
        self.assertEqual(self.probe("patience").stdout, "ran late\n")

    def test_a_program_that_windows_does_not_let_start(self):
        """A virus scanner, a policy and a quota have special errors. The host gets them as sentences."""
        told = dict(map(int, line.split()) for line in self.probe("errors").stdout.splitlines())
        for numbers, meaning in (((5, 225, 226, 740, 1260, 4551), errno.EACCES), ((193, 14001), errno.ENOEXEC),
                                 ((8, 1454, 1816), errno.ENOMEM), ((89, 164), errno.EAGAIN)):
            self.assertEqual({told[number] for number in numbers}, {meaning}, numbers)

    def test_model_files(self):
        """Model files in a folder, and by a path in Windows' form. The engine is the fake one, under a name whose description
        says that it reads files."""
        with tempfile.TemporaryDirectory() as folder:
            for name in os.listdir(PROGRAMS):
                shutil.copy(os.path.join(PROGRAMS, name), os.path.join(folder, name.replace("-fake", "-files")))
            with open(os.path.join(folder, "fm-engine-files.json"), "w") as file:
                file.write('{"models": "files"}')
            models = os.path.join(folder, "模型 ä")
            os.makedirs(os.path.join(models, "folder.gguf"))
            for name in ("modèle.gguf", "b.gguf", ".hidden.gguf", "text.txt"):
                with open(os.path.join(models, name), "wb") as file:
                    file.write(b"GGUF" + bytes(20))
            with_windows_path = ("--model", "Z:" + os.path.join(models, "modèle.gguf").replace("/", "\\"))
            for more, ids in (((), ["b", "modèle"]), (with_windows_path, ["modèle", "b"])):
                with self.subTest(str(more)):
                    helper = self.helper("--engine-dir", folder, "--models-dir", models, *more, engine="files")
                    self.assertEqual([model["id"] for model in helper.call("models.list")["data"]], ids)
                    self.assertTrue(helper.call("responses.create", {"input": "x"})["ok"])
                    helper.close()

    def test_the_systems_libraries_and_ours_are_enough(self):
        system = re.compile(r"(advapi32|bcrypt|bcryptprimitives|kernel32|msvcrt|ntdll|shell32|userenv|ws2_32|api-ms-win-.*)\.dll")
        files = {name.lower() for name in os.listdir(PROGRAMS) if name.endswith((".exe", ".dll"))}
        self.assertLessEqual({"fm-proxy.exe", "fm-engine-llama.exe", "libllama.dll", "ggml-cpu-haswell.dll"}, files)
        for name in files:
            told = subprocess.run(["x86_64-w64-mingw32-objdump", "-p", os.path.join(PROGRAMS, name)], stdout=subprocess.PIPE,
                                  check=True, text=True).stdout
            needed = {line.split()[-1].lower() for line in told.splitlines() if "DLL Name:" in line}
            self.assertEqual({each for each in needed - files if not system.fullmatch(each)}, set(), name)

    def test_how_an_engine_died(self):
        for step, said in (({"signal": "SEGV"}, "signal 11"), ({"signal": "KILL"}, "signal 9"), ({"exit": 5}, "status 5")):
            with self.subTest(said):
                helper = self.helper()
                result = helper.call("responses.create", {"input": wire.script("a", step)})
                self.assertIn(said, result["error"]["detail"])
                self.assertTrue(helper.call("responses.create", {"input": "x"})["ok"])
                self.assertEqual(helper.close(), 0)

    def test_an_engine_that_lacks_a_library(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("fm-engine-llama.exe", "fm-engine-llama.json"):
                shutil.copy(os.path.join(PROGRAMS, name), folder)
            helper = self.helper("--engine-dir", folder, "--model", MODEL, engine="llama")
            result = helper.call("responses.create", {"input": "x"})
            self.assertIn("exited with status 127", result["error"]["detail"])
            self.assertEqual(helper.close(), 0)

    def test_no_handle_but_the_pipes_is_inherited(self):
        """Only the helper holds its output pipe. So its end is noticed while its engine still runs."""
        helper = self.helper()
        call = helper.start("responses.create", {"input": wire.script("a", {"hang": "hard"}), "stream": True})
        helper.event(call, "response.output_text.delta")
        self.assertEqual(helper.close(), 0)


class Llama(unittest.TestCase):
    """The real model."""

    def helper(self, *args):
        helper = wire.Helper("--model", MODEL, *args, engine="llama", env={"FM_ENGINE_LLAMA_THREADS": "1"})
        self.addCleanup(lambda: helper.process.poll() is None and helper.process.kill())
        return helper

    def ask(self, helper, **more):
        result = helper.call("responses.create", {**QUESTION, **more})
        self.assertTrue(result["ok"], result)
        return result["response"]["output"][0]["content"][0]["text"]

    def test_it_streams_what_it_answers_at_once(self):
        helper = self.helper()
        events, result = helper.collect(helper.start("responses.create", {**QUESTION, "stream": True}))
        self.assertTrue(result["ok"], result)
        deltas = [event["delta"] for event in events if event and event["type"] == "response.output_text.delta"]
        self.assertGreater(len(deltas), 3)
        self.assertGreater(len("".join(deltas)), 20)
        self.assertEqual("".join(deltas), self.ask(helper))
        self.assertEqual(helper.close(), 0)

    def test_a_schema(self):
        schema = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}, "big": {"type": "boolean"}},
                  "required": ["city", "big"], "additionalProperties": False}
        text = {"format": {"type": "json_schema", "name": "capital", "schema": schema, "strict": True}}
        helper = self.helper()
        value = json.loads(self.ask(helper, text=text, max_output_tokens=60))
        self.assertEqual(list(value), ["city", "big"])
        self.assertIn(value["city"], ("Paris", "Rome"))
        self.assertIn(value["big"], (True, False))
        self.assertEqual(helper.close(), 0)

    def test_an_image(self):
        """With a projector of random weights, which recognises nothing."""
        with tempfile.TemporaryDirectory(prefix="模型 ") as folder:
            projector = os.path.join(folder, "projector.gguf")
            subprocess.run([sys.executable, "-B", os.path.join(HERE, "..", "e2e", "make_projector.py"), projector], check=True)
            helper = self.helper("--mmproj", projector)
            parts = [{"type": "input_image", "image_url": pictures.url(pictures.png())},
                     {"type": "input_text", "text": "What is this?"}]
            self.assertGreater(len(self.ask(helper, input=[{"role": "user", "content": parts}])), 0)
            self.assertEqual(helper.close(), 0)

    def test_an_exception_of_a_library_is_an_error(self):
        """Each of llama.cpp's DLLs has a separate C++ library. An exception that one DLL throws is caught in another."""
        with tempfile.TemporaryDirectory() as folder:
            template = os.path.join(folder, "template.jinja")
            with open(template, "w") as file:
                file.write("{{ raise_exception('not today') }}")
            helper = self.helper("--chat-template", template)
            result = helper.call("responses.create", QUESTION)
            self.assertFalse(result["ok"])
            self.assertIn("not today", result["error"]["detail"])
            self.assertEqual(helper.close(), 0)


def main(names):
    install()
    wire.children = engines
    loader = unittest.defaultTestLoader
    suite = unittest.TestSuite()
    if not names:
        suite.addTests(loader.loadTestsFromTestCase(Windows))
        suite.addTests(loader.loadTestsFromTestCase(Llama))
    for name in names or SUITES:
        own = name.startswith(("Windows", "Llama"))
        suite.addTests(loader.loadTestsFromName(name, sys.modules[__name__]) if own
                       else loader.loadTestsFromName("test_" + name))
    tests = list(flat(suite))
    report = Report()
    left_out = 0
    # One helper runs all the time, because starting wine itself takes longer than any test.
    awake = subprocess.Popen([os.path.join(START, "fm-proxy"), "--engine", "fake"], stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL)
    try:
        for test in tests:
            why = reason_for(test)
            if why:
                print(f"left out         {test.id()}: {why}", flush=True)
                left_out += 1
                continue
            test.run(report)
            if report.is_bad(test):  # the machine may be busy: wine kills a process that takes longer than a second to end
                report.forget(test)
                print("       once more", flush=True)
                test.run(report)
    finally:
        awake.stdin.close()
        awake.wait()
    for test, why in report.skipped:
        print(f"left out         {test.id()}: {why}")
    left_out += len(report.skipped)
    bad = sum(report.is_bad(test) for test in tests)
    print(f"{len(tests) - left_out - bad} passed, {bad} failed, {left_out} left out")
    return 1 if bad else 0


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
