"""Tests that a key of the remote engine is only in the header that carries it. The key is not in the store on the disk, in a log,
in an environment, in a command line, in an error text, or in a core file of the helper or of its engine."""

import glob
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile

import wire
from wire import WAIT, HelperTest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "contract"))
from faulty_server import FaultyServer, head, models, stream, whole  # noqa: E402

KEY = "sk-canary-7e1d40b2c6a9"
SECRET = "canary-header-90f3ab12"  # a header of the configuration
CORES = "/proc/sys/kernel/core_pattern"


def unlimited_cores():
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def core_names():
    """Returns the pattern for the names of core files if they are written into the folder of the process, else None."""
    try:
        with open(CORES) as file:
            pattern = file.read().strip()
    except OSError:
        return None
    return "*" + pattern.split("%")[0] + "*" if pattern and pattern[0] not in "|/" else None


class Keys(HelperTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.refuses = False
        self.heads = []
        self.server = FaultyServer(self.answer)
        self.addCleanup(self.server.close)

    def answer(self, server, connection, request):
        """Answers like a server that repeats a wrong key in its error."""
        self.heads.append(request.headers)
        if not self.refuses:
            if models(connection, request):
                connection.sendall(whole(stream("chat")))
            return True
        body = json.dumps({"error": {"message": f"no such key: {KEY}, {SECRET}, or {KEY[3:15]}"}}).encode()
        connection.sendall(head(401, "application/json", Content_Length=len(body)) + body)
        return True

    def start(self, how):
        """A helper that has the key in a variable or in a file, or the whole configuration in a variable."""
        endpoint = {"url": self.server.url, "dialect": "chat", "headers": {"x-team": SECRET}}
        env = {}
        if how == "file":
            endpoint["key_file"] = "key.txt"
            with open(os.path.join(self.folder, "key.txt"), "w") as file:
                file.write(KEY + "\n")
        else:
            endpoint["key_env"] = "CANARY_KEY"
            env["CANARY_KEY"] = KEY
        config = json.dumps({"endpoints": [endpoint]})
        self.config_path = os.path.join(self.folder, "remote.json")
        if how == "all":
            env["THE_CONFIG"] = config
        else:
            with open(self.config_path, "w") as file:
                file.write(config)
        self.errors = open(os.path.join(self.folder, "stderr"), "wb")
        self.addCleanup(self.errors.close)
        return self.helper("--remote", "env:THE_CONFIG" if how == "all" else self.config_path, "--store",
                           os.path.join(self.folder, "responses.db"), "--log-level", "debug", engine="remote", env=env,
                           stderr=self.errors, cwd=self.folder, preexec_fn=unlimited_cores)

    def texts(self, helper):
        """Returns what the host gets from each call: a stored answer, a refusal, and the availability."""
        self.refuses = False
        told = [helper.call("responses.create", {"input": "hi", "store": True})]
        self.assertTrue(told[0]["ok"], told[0])
        self.refuses = True
        told.append(helper.call("responses.create", {"input": "hi", "store": True}))
        error = self.assert_error(told[1], "UNAVAILABLE")
        self.assertEqual(error["reason_code"], "AUTH_FAILED")
        self.answer_id = told[0]["response"]["id"]
        told.append(helper.call("responses.retrieve", {"id": self.answer_id}))
        self.assertIn(self.answer_id, json.dumps(told[2]))
        told.append(helper.call("capabilities.get"))
        self.assertEqual({h["authorization"] for h in self.heads}, {"Bearer " + KEY})
        self.assertEqual({h["x-team"] for h in self.heads}, {SECRET})
        return json.dumps(told)

    @staticmethod
    def read(path):
        with open(path, "rb") as file:
            return file.read()

    def assert_clean(self, data, where):
        for secret in (KEY, SECRET, KEY[3:15]):
            self.assertNotIn(secret.encode(), data, where)

    def test_nowhere(self):
        for how in ("variable", "file", "all"):
            with self.subTest(how):
                self.setUp()
                helper = self.start(how)
                self.assert_clean(self.texts(helper).encode(), "what the host is told")
                engines = wire.children(helper.pid)
                self.assertTrue(engines)
                for pid in [helper.pid, *engines]:
                    for name in ("environ", "cmdline"):
                        self.assert_clean(self.read(f"/proc/{pid}/{name}"), f"{pid} {name}")
                files = self.look_at_files()
                self.assertTrue(any(name.startswith("responses.db") for name in files), files)
                self.assertEqual(helper.close(), 0)
                self.look_at_files()
                self.assertIn(b"AUTH_FAILED", self.read(os.path.join(self.folder, "stderr")), "the log is at work")

    def look_at_files(self):
        """Checks everything that was written: the store with its log, and stderr. Returns the names of the files."""
        names = [name for name in os.listdir(self.folder) if name not in ("key.txt", "remote.json")]
        for name in names:
            self.assert_clean(self.read(os.path.join(self.folder, name)), name)
        return names

    def cores(self):
        return [name for name in glob.glob(os.path.join(self.folder, core_names())) if os.path.getsize(name)]

    def need_cores(self):
        """Checks that a program that aborts leaves a core file with its environment: otherwise these tests could not fail."""
        if not core_names():
            self.skipTest("core files go elsewhere on this system")
        control = subprocess.Popen(["/bin/sleep", "1000"], env={"CANARY": KEY}, cwd=self.folder, preexec_fn=unlimited_cores)
        wire.wait_until(lambda: b"sleep" in self.read(f"/proc/{control.pid}/cmdline"), "the program's start")
        control.send_signal(signal.SIGABRT)
        control.wait(WAIT)
        cores = self.cores()
        if not cores:
            self.skipTest("this system writes no core files")
        self.assertIn(KEY.encode(), self.read(cores[0]))
        os.unlink(cores[0])

    def test_no_core_file_of_the_engine(self):
        self.need_cores()
        for how in ("variable", "file", "all"):
            with self.subTest(how):
                self.setUp()
                helper = self.start(how)
                self.texts(helper)
                [engine] = wire.children(helper.pid)
                os.kill(engine, signal.SIGABRT)
                wire.wait_until(lambda: not wire.alive(engine), "the engine's end")
                helper.call("health.ping")
                self.assertEqual(self.cores(), [])

    def test_a_core_file_of_the_helper(self):
        """The engine may write a core file or not. The key is not in the core file."""
        self.need_cores()
        for how in ("variable", "file", "all"):
            with self.subTest(how):
                self.setUp()
                helper = self.start(how)
                self.texts(helper)
                helper.process.send_signal(signal.SIGABRT)
                self.assertEqual(helper.process.wait(WAIT), -signal.SIGABRT)
                for name in self.cores():
                    data = self.read(name)
                    self.assertIn(self.answer_id.encode(), data, "its memory is in it")
                    self.assert_clean(data, "the core file of the helper")


if __name__ == "__main__":
    if not os.path.exists("/proc/self/environ"):
        print("skipped: needs /proc")
        sys.exit(77)
    if not os.path.exists(os.path.join(wire.BIN, "fm-engine-remote")):
        print("skipped: there is no fm-engine-remote")
        sys.exit(77)
    wire.main()
