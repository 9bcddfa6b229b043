"""Shared by the tests of runs: a gateway with the fake engine, and a client that separates events from answers."""

import contextlib
import json
import os
import tempfile

from gw import TOKEN, WAIT, Closed, Gateway  # first, because it adds the end-to-end tests' modules to the path
import wire  # noqa: E402
from wire import script, wait_until

WORKSPACE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../gateway/workspace")


def bash(command, **more):
    """Returns a step of the fake engine: the model calls bash."""
    return {"tool_call": {"name": "bash", "arguments": json.dumps({"command": command, **more})}}


def run_bash(*steps):
    """Returns a message that the model answers with a command. The command's output is the model's next script."""
    return script(bash(f"printf %s {json.dumps(json.dumps(steps))}"))


def gateway(*args, home=None, token=TOKEN, env=None, settings=None, cwd=None):
    home = home or tempfile.mkdtemp()
    path = os.path.join(home, "config.json")
    if not os.path.exists(path):
        config = {"agents": {"workspacePath": WORKSPACE}, "memory": {"enabled": False}}
        for key, value in (settings or {}).items():
            group, name = key.split(".")
            config.setdefault(group, {})[name] = value
        with open(path, "w") as file:
            json.dump(config, file)
    return Gateway("--helper-arg", "--engine", "--helper-arg", "fake", *args, home=home, token=token, env=env,
                   cwd=cwd)


class Client:
    """A socket that is logged in. `events` has the events that no test has read yet, in their order."""

    def __init__(self, gateway, token=TOKEN):
        self.socket = gateway.logged_in(token)
        self.events = []
        self.answers = {}
        self.last = 0

    def send(self, method, **params):
        self.last += 1
        self.socket.send({"id": str(self.last), "method": method, "params": params})
        return str(self.last)

    def read(self):
        message = self.socket.receive()
        if "event" in message:
            self.events.append(message)
        else:
            self.answers[message["id"]] = message

    def answer(self, call):
        while call not in self.answers:
            self.read()
        return self.answers.pop(call)

    def call(self, method, **params):
        """Returns the result; an error raises AssertionError."""
        answer = self.answer(self.send(method, **params))
        assert "result" in answer, answer
        return answer["result"]

    def fails(self, method, **params):
        return self.answer(self.send(method, **params))["error"]

    def event(self, name, **members):
        """The first event with this name and these members of data; events before it are kept."""
        at = 0
        while True:
            while at < len(self.events):
                event = self.events[at]
                if event["event"] == name and all(event["data"].get(k) == v for k, v in members.items()):
                    return self.events.pop(at)["data"]
                at += 1
            self.read()

    def session(self):
        return self.call("sessions.create")["sessionKey"]

    def say(self, key, message, **params):
        """Sends a message; returns the run's id."""
        return self.call("chat.send", sessionKey=key, message=message, **params)["runId"]

    def end(self, run):
        """Returns the run's events up to its end, which is the last event, as (name, data)."""
        taken = []
        while True:
            for at, event in enumerate(self.events):
                if event["data"].get("runId") == run:
                    taken.append(self.events.pop(at))
                    break
            else:
                self.read()
                continue
            if taken[-1]["event"] in ("chat.final", "chat.error"):
                return [(event["event"], event["data"]) for event in taken]

    def ask(self, key, message, **params):
        """The text of the answer."""
        events = self.end(self.say(key, message, **params))
        assert events[-1][0] == "chat.final", events[-1]
        return "".join(data["text"] for name, data in events if name == "chat.delta")

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.close()


def lives(pid):
    """Whether the process lives. A zombie, which waits until its new parent reads its status, does not."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    return False


def children(pid):
    """All living descendants of a process."""
    return [each for child in wire.children(pid) if lives(child) for each in (child, *children(child))]


__all__ = ["TOKEN", "WAIT", "Closed", "Client", "bash", "children", "gateway", "lives", "run_bash", "script", "wait_until"]
