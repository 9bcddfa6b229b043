"""A client of fm-system that sends raw lines, and keeps every line that comes back."""

import json
import os
import queue
import socket as socketlib
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from patience import WAIT  # noqa: E402

PROGRAM = os.path.join(os.environ["FM_BIN"], "fm-system")
META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

DESKTOP = {
    "monitors": [{"area": [1920, 0, 3840, 1080]}, {"area": [0, 0, 1920, 1080], "primary": True}],
    "apps": [
        {"id": "google-chrome.desktop", "name": "Google Chrome", "class": "Google-chrome", "program": "google-chrome"},
        {"id": "xterm.desktop", "name": "XTerm", "class": "XTerm", "program": "xterm"},
        {"id": "notes.desktop", "name": "Notes", "class": "notes", "program": "notes"},
    ],
    "windows": [
        {"id": "w1", "class": "Google-chrome", "title": "Reddit", "bounds": [0, 0, 960, 1080], "active": True},
        {"id": "w2", "class": "XTerm", "title": "sh", "bounds": [1000, 100, 1640, 580]},
    ],
    "tabs": [
        {"id": "t1", "window": "1", "active": True, "title": "Reddit", "url": "https://www.reddit.com/?token=secret#x"},
        {"id": "t2", "window": "1", "title": "GitHub", "url": "https://github.com/a"},
        {"id": "t3", "window": "2", "active": True, "title": "r/c", "url": "https://old.reddit.com/r/c"},
    ],
}


class Server:
    """The program on a fake desktop or, if `desktop` is None, on the desktop of `env`. A thread reads its lines; `leftovers`
    has the unexpected ones."""

    def __init__(self, desktop=DESKTOP, *options, read=True, socket=False, env=None, **changes):
        self.files = tempfile.TemporaryDirectory()
        self.log_path = os.path.join(self.files.name, "log")
        arguments = [PROGRAM, *options]
        if desktop is not None:
            path = os.path.join(self.files.name, "desktop.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({**desktop, "log": self.log_path, **changes}, file)
            arguments += ["--desktop", path]
        os.mkdir(os.path.join(self.files.name, "fm-system"))
        own = {"HOME": self.files.name, "XDG_CONFIG_HOME": self.files.name, "XDG_DATA_HOME": self.files.name,
               "FM_PROXY_ENGINE": "fake", **(env or {})}
        env = {**os.environ, **own}
        for name in ("DISPLAY", "WAYLAND_DISPLAY") if desktop is None else ():
            if name not in own:
                env.pop(name, None)
        ours, theirs = socketlib.socketpair() if socket else (None, subprocess.PIPE)
        self.process = subprocess.Popen(arguments, env=env, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if socket:  # a socket, as Node makes it
            theirs.close()
            self.process.stdin = ours.makefile("wb")
            ours.close()
        self.lines = queue.Queue()
        self.got = []
        self.next_id = 0
        self.reader = threading.Thread(target=self.read_all, daemon=True)
        if read:
            self.reader.start()

    def read_all(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    # ---- raw ----

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, *messages):
        self.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def take(self):
        """The next message; None at the end of the output."""
        line = self.lines.get(timeout=WAIT)
        if line is None:
            return None
        assert line.endswith(b"\n"), line
        message = json.loads(line)
        self.got.append(message)
        return message

    def answer_to(self, id):
        """The answer, and the notifications that came before it."""
        before = []
        while True:
            message = self.take()
            assert message is not None, "the server has ended"
            if "method" not in message and message.get("id") == id:
                return message, before
            before.append(message)

    # ---- requests ----

    def params(self, version, params):
        if version is None:
            return params
        meta = {META + "protocolVersion": version, META + "clientCapabilities": {},
                META + "clientInfo": {"name": "test", "version": "0"}}
        return {**params, "_meta": {**meta, **params.get("_meta", {})}}

    def request(self, method, version=MODERN, **params):
        """Sends it; returns the id."""
        self.next_id += 1
        self.send({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": self.params(version, params)})
        return self.next_id

    def ask(self, method, version=MODERN, **params):
        """Sends it; returns the result."""
        answer, _ = self.answer_to(self.request(method, version, **params))
        assert "error" not in answer, answer
        return answer["result"]

    def error(self, method, version=MODERN, **params):
        answer, _ = self.answer_to(self.request(method, version, **params))
        assert "result" not in answer, answer
        return answer["error"]

    def call(self, tool, version=MODERN, **arguments):
        """The result's structuredContent. An era without this member has the value in the text."""
        result = self.ask("tools/call", version, name=tool, arguments=arguments)
        told = json.loads(result["content"][0]["text"])
        assert result.get("structuredContent", told) == told
        assert result["isError"] is not told["ok"]
        return told

    def initialize(self, version="2025-11-25"):
        result = self.ask("initialize", None, protocolVersion=version, capabilities={},
                          clientInfo={"name": "test", "version": "0"})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    # ---- the process ----

    def actions(self):
        try:
            with open(self.log_path, encoding="utf-8") as file:
                return file.read().split("\n")[:-1]
        except FileNotFoundError:
            return []

    def memory(self):
        """Its memory in KiB."""
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
            direct = file.read().split()
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            if task != str(self.process.pid):
                with open(f"/proc/{self.process.pid}/task/{task}/children", encoding="ascii") as file:
                    direct += file.read().split()
        return [int(pid) for pid in direct]

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def end(self):
        """Closes the program's input. Returns (exit status, stderr, unexpected messages)."""
        if not self.reader.is_alive() and self.process.poll() is None:
            self.reader.start()
        self.process.stdin.close()
        status = self.process.wait(WAIT)
        self.reader.join(WAIT)
        leftovers = []
        while (message := self.take()) is not None:
            leftovers.append(message)
        errors = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        self.files.cleanup()
        return status, errors, leftovers

    def kill(self):
        self.process.kill()
        self.process.wait()
        for file in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                file.close()
            except BrokenPipeError:
                pass
        self.files.cleanup()


def conforms(value, schema):
    """How the value breaks the schema; None if it does not. Supports the keywords of fm-system's schemas; any other keyword is an
    error."""
    types = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int}
    known = {"type", "properties", "required", "items", "anyOf", "const", "minItems", "maxItems", "description"}
    if set(schema) - known:
        return f"unknown keywords in {schema}"
    wanted = schema.get("type", [])
    wanted = [wanted] if isinstance(wanted, str) else wanted
    if wanted and not any(isinstance(value, types[name]) and not (name == "integer" and isinstance(value, bool))
                          for name in wanted):
        return f"{value!r} is no {wanted}"
    if "const" in schema and (value != schema["const"] or type(value) is not type(schema["const"])):
        return f"{value!r} is not {schema['const']!r}"
    if isinstance(value, dict):
        missing = [name for name in schema.get("required", []) if name not in value]
        faults = [conforms(value[name], part) for name, part in schema.get("properties", {}).items() if name in value]
        faults = [fault for fault in faults if fault]
        if missing or faults:
            return f"missing {missing}, {faults}"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return f"{len(value)} items"
        faults = [fault for item in value if (fault := conforms(item, schema.get("items", {})))]
        if faults:
            return faults[0]
    branches = [conforms(value, branch) for branch in schema.get("anyOf", [])]
    return f"none of anyOf: {branches}" if branches and all(branches) else None
