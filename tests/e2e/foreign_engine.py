"""Engine programs that are not built on the kit: Python scripts of a few lines, with a shared beginning."""

import json
import os
import sys
import textwrap

PRELUDE = f"#!{sys.executable}\n" + textwrap.dedent("""\
    import json, os, signal, subprocess, sys, time

    def read():
        length = None
        while (line := sys.stdin.buffer.readline()) != b"\\r\\n":
            if not line:
                sys.exit(0)
            length = int(line.split(b":")[1])
        return json.loads(sys.stdin.buffer.read(length))

    def send(**message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
        sys.stdout.buffer.flush()

    def initialize(**more):
        result = {"ok": True, "protocol_version": 1, "name": "foreign", "version": "1", "slots": 1, **more}
        send(id=read()["id"], result=result)

    def load():
        message = read()
        send(id=message["id"], result={"ok": True, "context_length": 1000, "slots": 1})

    def accept():
        job = read()["params"]["job"]
        send(method="job.accepted", params={"job": job, "input_tokens": 1})
        return job

    def finish(job):
        send(method="job.finished", params={"job": job, "reason": "stop", "usage": {}})

    """)


def describe(folder, name, models="files", features=()):
    """Writes what the front may know about the engine before it runs (ENGINE.md, Description)."""
    with open(os.path.join(folder, f"fm-engine-{name}.json"), "w") as file:
        json.dump({"models": models, "features": list(features)}, file)


def borrow(program, folder, name):
    """Links an existing engine program to another name, with GGUF files as models; its features stay the same."""
    os.symlink(os.path.abspath(program), os.path.join(folder, f"fm-engine-{name}"))
    with open(program + ".json") as file:
        describe(folder, name, features=json.load(file)["features"])


def write(folder, name, body):
    """Makes the program of the engine `name` in the folder; returns its path."""
    path = os.path.join(folder, f"fm-engine-{name}")
    with open(path, "w") as file:
        file.write(PRELUDE + textwrap.dedent(body))
    os.chmod(path, 0o755)
    return path
