#!/usr/bin/env python3
"""How the gateway starts: its folder, its settings, one gateway per folder, its options, and the memory that 1,000 idle
sockets take."""

import json
import os
import re
import resource
import stat
import subprocess
import tempfile
import unittest

from gw import PROGRAM, TOKEN, WAIT, Gateway, environment


def run(*args, home, **env):
    return subprocess.run([PROGRAM, *args], env=environment(home, **env), capture_output=True, text=True, timeout=WAIT)


class Starts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = os.path.join(folder.name, "state")

    def config(self, text):
        os.makedirs(self.home, mode=0o700, exist_ok=True)
        with open(os.path.join(self.home, "config.json"), "w", encoding="utf-8") as file:
            file.write(text)

    def test_options(self):
        self.assertRegex(run("--version", home=self.home).stdout, r"^fm-gateway \d+\.\d+\.\d+\n$")
        self.assertIn("--new-token", run("--help", home=self.home).stdout)
        for args in (("--nonsense",), ("--ui",), ("more",)):
            result = run(*args, home=self.home)
            self.assertEqual(result.returncode, 64)
            self.assertIn(args[-1], result.stderr)
        self.assertFalse(os.path.exists(self.home))

    def test_first_run_makes_the_folder_and_its_settings(self):
        with Gateway(home=self.home):
            pass
        self.assertEqual(stat.S_IMODE(os.stat(self.home).st_mode), 0o700)
        path = os.path.join(self.home, "config.json")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        config = json.loads(text)
        self.assertEqual(config["gateway"], {"port": 18789, "host": "127.0.0.1"})
        self.assertEqual(config["agents"], {"default": "assistant", "workspacePath": "./workspace"})
        self.assertEqual((config["tools"]["timeout"], config["tools"]["maxOutputBytes"]), (120000, 100000))
        self.assertEqual((config["memory"]["enabled"], config["memory"]["embeddingModel"]), (True, "text-embedding-3-small"))
        self.assertEqual(config["security"], {"auditLog": True, "secretsFilter": True})
        with Gateway(home=self.home):
            pass
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), text)

    def test_a_broken_config_names_key_and_line(self):
        for text, words in (('{"gateway": {\n  "host": "0.0.0.0"}}', ("line 2", "gateway.host", "0.0.0.0")),
                            ('{\n"tols": {}}', ("line 2", "tols")),
                            ('{\n\n"tools": {"timeout": "5"}}', ("line 3", "tools.timeout")),
                            ("{\n\n,", ("line 3", "not JSON"))):
            with self.subTest(text):
                self.config(text)
                result = run(home=self.home)
                self.assertEqual(result.returncode, 78)
                for word in (*words, "config.json"):
                    self.assertIn(word, result.stderr)
                with open(os.path.join(self.home, "config.json"), encoding="utf-8") as file:
                    self.assertEqual(file.read(), text)

    def test_the_workspace_is_named_by_its_absolute_path(self):
        """The configured path may begin with "~", or be relative to the working folder."""
        folder = os.path.dirname(self.home)
        agent = os.path.join(folder, "agent")
        for path, found in (("~/agent", agent), ("./agent", agent), ("agent", agent), ("~", folder), (agent, agent)):
            with self.subTest(path):
                self.config(json.dumps({"agents": {"workspacePath": path}}))
                with Gateway(home=self.home, env={"HOME": folder}, cwd=folder) as gateway, gateway.logged_in() as sock:
                    self.assertIn(f" in {found}: set agents.workspacePath", sock.call("agents.list")["error"]["message"])
        self.config('{"agents": {"workspacePath": "~/agent"}}')
        self.assertIn("agents.workspacePath is ~/agent, and HOME is not set", run(home=self.home, HOME="").stderr)

    def test_the_example_names_all_variables(self):
        gateway = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../gateway")
        read = set()
        for folder, _, names in os.walk(gateway):
            for name in names:
                if name.endswith(".c") and "node_modules" not in folder:
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        read |= set(re.findall(r'"((?:PROJ_JARVIS|OPENAI|ANTHROPIC)_[A-Z_]+)"', file.read()))
        with open(os.path.join(gateway, ".env.example"), encoding="utf-8") as file:
            self.assertEqual(set(re.findall(r"^# ([A-Z_]+)=", file.read(), re.M)), read)

    def test_variables_rule(self):
        for name, value in (("PROJ_JARVIS_PORT", "99999"), ("PROJ_JARVIS_HOST", "10.0.0.1"), ("PROJ_JARVIS_HOME", "here")):
            result = run(home=self.home, **{name: value}) if name != "PROJ_JARVIS_HOME" else run(home=value)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(name, result.stderr)
        self.assertIn("PROJ_JARVIS_TOKEN", run(home=self.home, PROJ_JARVIS_TOKEN=513 * "t").stderr)  # no client could log in
        self.config('{"gateway": {"port": 1}}')
        with Gateway(home=self.home) as gateway:
            self.assertNotEqual(gateway.port, 1)

    def test_one_gateway_a_folder(self):
        with Gateway(home=self.home) as gateway:
            result = run(home=self.home)
            self.assertEqual(result.returncode, 69)
            self.assertIn(f"process {gateway.process.pid}", result.stderr)
            self.assertEqual(gateway.http()[0], 200)
            gateway.process.kill()
            gateway.process.wait(WAIT)
            with Gateway(home=self.home) as next_one:
                self.assertEqual(next_one.http()[0], 200)
            gateway.process.returncode = 0  # it was killed on purpose
        self.assertIn("start it first", run("--link", home=self.home, PROJ_JARVIS_TOKEN=TOKEN).stderr)

    def test_a_port_that_is_taken(self):
        with Gateway() as gateway:
            result = run(home=self.home, PROJ_JARVIS_PORT=str(gateway.port))
            self.assertEqual(result.returncode, 69)
            self.assertIn(str(gateway.port), result.stderr)

    def test_a_folder_that_others_can_write_to(self):
        os.makedirs(self.home)
        os.chmod(self.home, 0o777)
        result = run(home=self.home)
        self.assertEqual(result.returncode, 69)
        self.assertIn("chmod 700", result.stderr)

    def test_only_loopback_listens(self):
        for host in ("127.0.0.1", "localhost"):
            with Gateway(env={"PROJ_JARVIS_HOST": host}) as gateway:
                with open("/proc/net/tcp", encoding="ascii") as file:
                    listeners = re.findall(rf"^ *\d+: (\w+):{gateway.port:04X} \w+:0000 0A", file.read(), re.M)
                self.assertEqual(listeners, ["0100007F"])

    @unittest.skipIf(os.environ.get("FM_SANITIZE"), "a sanitizer's allocator takes more")
    def test_1000_idle_sockets(self):
        """At most 16 KiB per socket, and every one of them still answers."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 1200:
            self.skipTest("too few descriptors")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
        with Gateway() as gateway:
            def memory():
                with open(f"/proc/{gateway.process.pid}/statm", encoding="ascii") as file:
                    return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
            for _ in range(20):
                gateway.logged_in().close()
            before = memory()
            sockets = [gateway.logged_in() for _ in range(1000)]
            each = (memory() - before) / len(sockets)
            print(f"an idle socket takes {each / 1024:.1f} KiB", flush=True)
            self.assertLess(each, 16 * 1024)
            for sock in sockets:
                self.assertEqual(sock.call("health.check")["result"]["status"], "ok")
            for sock in sockets:
                sock.close()


if __name__ == "__main__":
    unittest.main()
