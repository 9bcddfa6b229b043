"""Shared by the tests of the tools: the driver, and a list of processes that a call left behind."""

import fcntl
import json
import os
import queue
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))
from patience import WAIT  # noqa: E402
from poorer_kernel import MACHINE, NO_LANDLOCK, landlock_abi, poorer  # noqa: E402,F401
from reach import for_all  # noqa: E402
from wire import wait_until  # noqa: E402,F401

BIN = os.environ.get("FM_BIN", os.path.join(os.path.dirname(__file__), "..", "..", "build", "bin"))
BIN = for_all(BIN) if os.geteuid() == 0 else BIN
DRIVER = os.path.join(BIN, "..", "tests-bin", "tools_driver")
RUNNER = os.path.join(BIN, "fm-tool-run")
ROOT = os.geteuid() == 0
NOBODY = 65534
CLONE = {"x86_64": 56, "aarch64": 220}.get(MACHINE)
EPERM = 1
# clone(2) with the runner's flags for a PID namespace, with and without a user namespace
NO_NAMESPACE = ((CLONE, 0x20020011, EPERM), (CLONE, 0x30020011, EPERM))


def as_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


class Driver:
    """The tools in a separate process. `rules`: calls that its kernel lacks; `command`: the command that starts it."""

    def __init__(self, env=None, rules=(), nobody=False, command=(DRIVER,), **config):
        prepare = [f for f in (as_nobody if nobody else None, poorer(*rules) if rules else None) if f]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})},
                                        preexec_fn=(lambda: [f() for f in prepare]) if prepare else None)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.next_id = 0
        self.progress = []
        self.send(op="open", **{"runner": RUNNER, "timeout": 120_000, "maxOutputBytes": 100_000, "sandbox": "off", **config})

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def send(self, **message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def line(self):
        line = self.lines.get(timeout=WAIT)
        assert line is not None, "the driver has ended"
        return line

    def prepare(self, tool, call_input, folder="/"):
        self.next_id += 1
        self.send(op="prepare", id=self.next_id, tool=tool, input=call_input, folder=folder)
        others = []  # lines about calls that were started earlier
        while (line := self.line())["id"] != self.next_id:
            others.append(line)
        for other in others:
            self.lines.put(other)
        return line

    def start(self):
        """Starts the last prepared call."""
        self.send(op="start", id=self.next_id)

    def abort(self):
        self.send(op="abort", id=self.next_id)

    def result(self):
        while "end" not in (line := self.line()):
            self.progress.append(line["progress"])
        return line

    def run(self, tool, call_input, folder="/"):
        request = self.prepare(tool, call_input, folder)
        assert "error" not in request, request
        self.start()
        return self.result()

    def bash(self, command, folder="/"):
        return self.run("bash", {"command": command}, folder)

    def peak_memory(self):
        """The highest memory use so far, in bytes."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))

    def close(self):
        """Returns the exit status: 0 only if nothing was left on the loop."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            return self.process.wait(WAIT)
        finally:
            self.process.kill()
            self.reader.join(WAIT)
            self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        status = self.close()
        assert kind or status == 0, f"the driver ended with {status}"


def processes(marker):
    """The ids of processes with `marker` in their command line, except this one. A driver never has it there."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if marker.encode() in file.read() and int(name) != os.getpid():
                    found.append(int(name))
        except OSError:
            pass
    return found


def memfd(data, sealed=True):
    fd = os.memfd_create("job", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    if sealed:
        fcntl.fcntl(fd, 1033, 0xF)  # F_ADD_SEALS: all of them
    return fd
