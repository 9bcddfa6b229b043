"""A gateway with the fake engine: what its tests of runs share. An agent's model reads a script (helper/engine/fake/script.h)
as the last message or as the last output of a tool, so a test's message says what the model does first, and a command's output
what it does then."""

import json
import os
import shutil
import tempfile
import threading

from gw import TOKEN, WAIT, Closed, Gateway

HELPER = ("--helper-arg", "--engine", "--helper-arg", "fake")
AGENT = "---\nmodel: local/default\nname: Tester\n---\nBe brief.\n"


def bash(command):
    """A step of a script: a call of the tool bash."""
    return {"tool_call": {"name": "bash", "arguments": json.dumps({"command": command})}}


def then(*steps, before=""):
    """A command whose output is the next script. `before`: what it does before."""
    text = json.dumps(list(steps)).replace("'", "'\\''")
    return bash(f"{before}printf %s '{text}'")


def script(*steps):
    return json.dumps(list(steps))


class Folder:
    """A state folder, a workspace and a working folder, for one gateway after the other."""

    def __init__(self, config=None, state=None):
        self.path = tempfile.mkdtemp()
        self.home = state or os.path.join(self.path, "state")
        self.work = os.path.join(self.path, "work")
        os.makedirs(self.work)
        os.makedirs(self.home, mode=0o700, exist_ok=True)
        os.makedirs(os.path.join(self.path, "agent"))
        self.write_agent(AGENT)
        config = config or {}
        config.setdefault("agents", {})["workspacePath"] = os.path.join(self.path, "agent")
        config.setdefault("memory", {}).setdefault("enabled", False)
        with open(os.path.join(self.home, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)

    def write_agent(self, text):
        with open(os.path.join(self.path, "agent", "AGENTS.md"), "w", encoding="utf-8") as file:
            file.write(text)

    def gateway(self, *args, env=None, **kwargs):
        return Gateway(*HELPER, *args, home=self.home, cwd=self.work, env=env, **kwargs)

    def audit(self):
        return self.lines("audit.jsonl")

    def lines(self, name):
        with open(os.path.join(self.home, name), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


class Client:
    """A socket that is logged in: calls are answered out of order, events are kept in `events`."""

    def __init__(self, gateway):
        self.sock = gateway.socket()
        self.sock.send({"type": "auth", "token": TOKEN})
        assert self.sock.receive() == {"type": "auth", "ok": True}
        self.events = []
        self.answers = {}
        self.last_id = 0
        self.seen = 0

    def send(self, method, **params):
        self.last_id += 1
        self.sock.send({"id": str(self.last_id), "method": method, "params": params})
        return str(self.last_id)

    def read(self):
        """One frame."""
        frame = self.sock.receive()
        if "event" in frame:
            self.events.append((frame["event"], frame["data"]))
        else:
            self.answers[frame["id"]] = frame

    def answer(self, call_id):
        while call_id not in self.answers:
            self.read()
        return self.answers.pop(call_id)

    def call(self, method, **params):
        """The result; Failure with the error."""
        answer = self.answer(self.send(method, **params))
        if "error" in answer:
            raise Failure(answer["error"]["code"], answer["error"]["message"])
        return answer["result"]

    def wait(self, *names, since=0, **wanted):
        """The first event from number `since` on with such a name and such data."""
        at = since
        while True:
            while at < len(self.events):
                name, data = self.events[at]
                if name in names and all(data.get(key) == value for key, value in wanted.items()):
                    return data
                at += 1
            self.read()

    def of(self, *names, **wanted):
        return [data for name, data in self.events if name in names and all(data.get(k) == v for k, v in wanted.items())]

    def end(self, run_id):
        """(event, data) of the run's end."""
        self.wait("chat.final", "chat.error", runId=run_id)
        return next((name, data) for name, data in self.events
                    if name in ("chat.final", "chat.error") and data["runId"] == run_id)

    def text(self, run_id):
        return "".join(data["text"] for data in self.of("chat.delta", runId=run_id))

    def session(self):
        return self.call("sessions.create")["sessionKey"]

    def run(self, key, *steps, **more):
        """Sends a script, and returns the run's id."""
        return self.call("chat.send", sessionKey=key, message=script(*steps), **more)["runId"]

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Failure(Exception):
    """An error frame: (code, message)."""


__all__ = ["Client", "Closed", "Failure", "Folder", "TOKEN", "WAIT", "bash", "json", "os", "script", "then", "threading"]
