"""Tests what the remote engine's sandbox denies, tried from inside the engine process, and what it must allow:

    test_remote_sandbox.py PROGRAM

The calls are made in the engine's own main thread (e2e/inject.py). The same calls in a process without a sandbox must
succeed: this proves that they are real attempts. Exit status 77: skipped, because the test needs root and Linux on x86_64.
"""

import errno
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

from engine import Engine, TimedTest, user
from faulty_server import FaultyServer, says, stream, whole

import inject  # in tests/e2e, which engine.py has added to the path
from poorer_kernel import landlock_abi

PROGRAM = None
# Numbers of x86_64: arch/x86/entry/syscalls/syscall_64.tbl
OPEN, CLOSE, SOCKET, CONNECT, SENDTO, BIND, LISTEN = 2, 3, 41, 42, 44, 49, 50
FORK, EXECVE, KILL, UNLINK, MKDIR, RENAME = 57, 59, 62, 87, 83, 82
DENIED = (errno.EPERM, errno.EACCES)


class Attempts:
    """Things to try in a process; each method returns 0, or the errno."""

    def __init__(self, pid):
        self.process = inject.Process(pid)

    def _error(self, result):
        return -result if result < 0 else 0

    def open(self, path, flags):
        fd = self.process.call(OPEN, path.encode() + b"\0", flags, 0o600)
        if fd >= 0:
            self.process.call(CLOSE, fd)
        return self._error(fd)

    def read(self, path):
        return self.open(path, os.O_RDONLY)

    def path(self, number, *paths):
        return self._error(self.process.call(number, *(path.encode() + b"\0" for path in paths)))

    def _with_socket(self, family, kind, number, address):
        fd = self.process.call(SOCKET, family, kind, 0)
        if fd < 0:
            return -fd
        result = self.process.call(number, fd, address, len(address))
        if number == BIND and result == 0:
            result = self.process.call(LISTEN, fd, 1)
        self.process.call(CLOSE, fd)
        return self._error(result)

    def connect(self, port):
        address = struct.pack("<H", socket.AF_INET) + struct.pack("!H", port) + bytes([127, 0, 0, 1]) + bytes(8)
        return self._with_socket(socket.AF_INET, socket.SOCK_STREAM, CONNECT, address)

    def listen(self):
        return self._with_socket(socket.AF_INET, socket.SOCK_STREAM, BIND, struct.pack("<H", socket.AF_INET) + bytes(14))

    def connect_unix(self, path):
        return self._with_socket(socket.AF_UNIX, socket.SOCK_STREAM, CONNECT,
                                 struct.pack("<H", socket.AF_UNIX) + path.encode() + b"\0")

    def execute(self):
        pointer = struct.pack("Q", 0)
        return self._error(self.process.call(EXECVE, b"/nowhere/program\0", pointer, pointer))

    def fork(self):
        return self._error(self.process.call(FORK))

    def signal(self, pid):
        return self._error(self.process.call(KILL, pid, 0))


class Sandbox(TimedTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = lambda name: os.path.join(folder.name, name)
        for name in ("secret", "ca.pem", "old"):
            with open(self.path(name), "w") as file:
                file.write("text")
        self.server = FaultyServer(says(whole(stream("chat"))))
        self.addCleanup(self.server.close)
        self.other = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.other.close)

    def engine(self, **members):
        rows = [{"url": self.server.url, "dialect": "chat", "ca_file": self.path("ca.pem"), **members}]
        engine = Engine(PROGRAM, {"FM_ENGINE_CONFIG": json.dumps({"endpoints": rows})})
        self.addCleanup(engine.close)
        reply = engine.initialize()
        self.assertTrue(reply["ok"])
        self.assertTrue(engine.load(None)[0]["ok"])
        self.assertIsNone(engine.run(user("hi")).error)  # now the engine has loaded everything that it loads late
        return engine, reply["sandbox"]

    def all_of(self, attempts, port, parent):
        """{name of the attempt: errno}"""
        write, create = os.O_WRONLY, os.O_WRONLY | os.O_CREAT
        return {
            "connect to another port": attempts.connect(port),
            "listen": attempts.listen(),
            "read a file": attempts.read(self.path("secret")),
            "read a home": attempts.open(os.path.expanduser("~"), os.O_RDONLY | os.O_DIRECTORY),
            "read memory of others": attempts.read(f"/proc/{parent}/environ"),
            "read a device": attempts.read("/dev/kmsg") if os.path.exists("/dev/kmsg") else attempts.read("/dev/tty"),
            "write a file": attempts.open(self.path("old"), write),
            "create a file": attempts.open(self.path("new"), create),
            "remove a file": attempts.path(UNLINK, self.path("old")),
            "rename a file": attempts.path(RENAME, self.path("secret"), self.path("moved")),
            "make a folder": attempts.path(MKDIR, self.path("made")),
            "start a program": attempts.execute(),
            "signal its parent": attempts.signal(parent),
        }

    def test_denied(self):
        engine, told = self.engine()
        attempts = Attempts(engine.process.pid)
        try:
            seen = self.all_of(attempts, self.other.getsockname()[1], os.getpid())
            seen["fork"] = attempts.fork()
        finally:
            attempts.process.let_go()
        if told["landlock"] == 0:
            for what in [what for what in seen if what.startswith("read")] + ["connect to another port"]:
                del seen[what]
        elif told["landlock"] < 4:
            del seen["connect to another port"]
        print(f"landlock {told['landlock']}, seccomp {told['seccomp']}: {len(seen)} denied")
        self.assertEqual({what: error for what, error in seen.items() if error not in DENIED}, {})
        self.assertEqual(sorted(os.listdir(self.path(""))), ["ca.pem", "old", "secret"])
        self.assertIsNone(engine.run(user("hi")).error, "it goes on as before")

    def test_allowed(self):
        engine, _ = self.engine()
        attempts = Attempts(engine.process.pid)
        try:
            seen = {"its endpoint": attempts.connect(self.server.port), "its certificates": attempts.read(self.path("ca.pem")),
                    "names": attempts.read(next(filter(os.path.exists, ("/etc/hosts", "/etc/resolv.conf", "/etc/passwd"))))}
        finally:
            attempts.process.let_go()
        self.assertEqual(seen, dict.fromkeys(seen, 0))

    def test_the_port_is_that_of_the_proxy_where_there_is_one(self):
        engine = Engine(PROGRAM, {"FM_ENGINE_CONFIG": json.dumps({"endpoints": [
            {"url": self.server.url, "dialect": "chat", "proxy": f"http://127.0.0.1:{self.other.getsockname()[1]}"}]})})
        self.addCleanup(engine.close)
        told = engine.initialize()["sandbox"]
        if told["landlock"] < 4:
            self.skipTest("Landlock knows ports from its ABI 4 on")
        attempts = Attempts(engine.process.pid)
        try:
            seen = attempts.connect(self.other.getsockname()[1]), attempts.connect(self.server.port)
        finally:
            attempts.process.let_go()
        self.assertEqual(seen, (0, errno.EACCES))

    def test_the_attempts_are_real(self):
        """In a process without a sandbox, all attempts succeed."""
        with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
            while True:  # until the process waits for input
                with open(f"/proc/{process.pid}/syscall") as file:
                    if file.read().startswith("0 "):
                        break
            attempts = Attempts(process.pid)
            try:
                seen = self.all_of(attempts, self.other.getsockname()[1], os.getpid())
            finally:
                attempts.process.let_go()
            process.stdin.close()
        self.assertEqual(seen.pop("start a program"), errno.ENOENT)
        seen.pop("read a device")  # this process may have no such device
        self.assertEqual(seen, dict.fromkeys(seen, 0))


def main():
    global PROGRAM
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if not inject.SUPPORTED or os.geteuid() != 0:
        print("skipped: needs root, and Linux on x86_64")
        sys.exit(77)
    print(f"the kernel's Landlock has ABI {landlock_abi()}")
    unittest.main()


if __name__ == "__main__":
    main()
