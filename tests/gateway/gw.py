"""Shared by the gateway's tests: a running fm-gateway in a separate folder, raw sockets, and a WebSocket client."""

import base64
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from patience import WAIT  # noqa: E402
from reach import for_all  # noqa: E402

BIN = os.environ.get("FM_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/bin"))
PROGRAM = os.path.join(BIN, "fm-gateway")
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TOKEN = "a-token-of-the-tests-0123456789"


def environment(home, **more):
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ}
    return {**kept, "PROJ_JARVIS_HOME": home, "PROJ_JARVIS_PORT": "0", **more}


class Gateway:
    """A running gateway on a free port. `home` is removed at the end, unless it was given."""

    def __init__(self, *args, home=None, token=TOKEN, env=None, cwd=None, prepare=None):
        self.own = home is None
        self.home = home or tempfile.mkdtemp()
        self.env = environment(self.home, **({"PROJ_JARVIS_TOKEN": token} if token else {}), **(env or {}))
        program = os.path.join(for_all(BIN), "fm-gateway") if prepare else PROGRAM  # `prepare` may make it another user
        self.process = subprocess.Popen([program, *args], env=self.env, cwd=cwd, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, preexec_fn=prepare)
        line = self.process.stdout.readline().decode()
        match = re.fullmatch(r"http://(127\.0\.0\.1|\[::1\]|localhost):(\d+)/\n", line)
        if not match:
            raise AssertionError(f"no address but {line!r}: {self.process.communicate()[1].decode()}")
        self.port = int(match.group(2))
        self.errors = b""
        self.reader = threading.Thread(target=self._read_errors, daemon=True)
        self.reader.start()

    def _read_errors(self):
        self.errors = self.process.stderr.read()

    def run(self, *args):
        return subprocess.run([PROGRAM, *args], env=self.env, capture_output=True, text=True, timeout=WAIT)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=WAIT)

    def http(self, path="/health", method="GET", headers=(), host=None, version="1.1"):
        """Returns (status, headers in lower case, body) of a request."""
        host = [f"Host: 127.0.0.1:{self.port}"] if host is None else host
        text = "\r\n".join([f"{method} {path} HTTP/{version}", *host, *headers, "", ""])
        return self.raw(text.encode("latin-1"))

    def raw(self, data):
        with self.connect() as sock:
            sock.sendall(data)
            return answer(read_all(sock))

    def socket(self, **kwargs):
        return WebSocket(self, **kwargs)

    def logged_in(self, token=TOKEN):
        sock = self.socket()
        sock.send({"type": "auth", "token": token})
        assert sock.receive() == {"type": "auth", "ok": True}
        return sock

    def stop(self):
        """Ends the gateway normally; returns the exit status. A sanitizer's report is a failure."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(WAIT)
        self.reader.join(WAIT)
        self.process.stdout.close()
        self.process.stderr.close()
        if self.own:
            shutil.rmtree(self.home, ignore_errors=True)
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        status = self.stop()
        assert status == 0, (status, self.errors.decode(errors="replace"))


def read_all(sock):
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while more := sock.recv(65536):
            data += more
    return data


def answer(data):
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split()[1]) if first else 0, headers, body


class Closed(Exception):
    """The other side has closed: (code, reason). The code is 0 if the other side sent none."""


class WebSocket:
    """A client that can break every rule: `send_frame` sends anything."""

    def __init__(self, gateway, path="/", headers=(), host=None, key=None):
        self.sock = gateway.connect()
        key = key or base64.b64encode(os.urandom(16)).decode()
        host = host or f"Host: 127.0.0.1:{gateway.port}"
        self.sock.sendall("\r\n".join([f"GET {path} HTTP/1.1", host, "Upgrade: websocket", "Connection: keep-alive, Upgrade",
                                       f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", *headers, "", ""])
                          .encode("latin-1"))
        self.data = b""
        while b"\r\n\r\n" not in self.data:
            more = self.sock.recv(65536)
            if not more:
                break
            self.data += more
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        self.status, self.headers, _ = answer(head)
        if self.status == 101:
            digest = hashlib.sha1((key + GUID).encode()).digest()
            assert self.headers["sec-websocket-accept"] == base64.b64encode(digest).decode()
            assert "sec-websocket-extensions" not in self.headers  # no compression

    def send_frame(self, opcode, payload=b"", fin=True, mask=True, length=None, rsv=0):
        length = len(payload) if length is None else length
        head = bytes([fin << 7 | rsv << 4 | opcode])
        if length < 126:
            head += bytes([mask << 7 | length])
        elif length < 65536:
            head += bytes([mask << 7 | 126]) + struct.pack(">H", length)
        else:
            head += bytes([mask << 7 | 127]) + struct.pack(">Q", length)
        key = os.urandom(4) if mask else b""
        if mask:
            payload = (int.from_bytes(payload, "big") ^
                       int.from_bytes((key * (len(payload) // 4 + 1))[:len(payload)], "big")).to_bytes(len(payload), "big")
        self.sock.sendall(head + key + payload)

    def send_text(self, text):
        self.send_frame(1, text if isinstance(text, bytes) else text.encode())

    def send(self, value):
        self.send_text(json.dumps(value))

    def call(self, method, params=None, call_id="1"):
        self.send({"id": call_id, "method": method, **({} if params is None else {"params": params})})
        return self.receive()

    def _take(self, count):
        while len(self.data) < count:
            try:
                more = self.sock.recv(65536)
            except ConnectionResetError:
                more = b""
            if not more:
                raise Closed(0, "")
            self.data += more
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def frame(self):
        """Returns (opcode, payload) of the next frame."""
        first, second = self._take(2)
        length = second & 127
        if length > 125:
            length = int.from_bytes(self._take(2 if length == 126 else 8), "big")
        return first & 15, self._take(length)

    def receive(self):
        """The next text message, parsed. Raises Closed at a close frame or the end."""
        opcode, payload = self.frame()
        if opcode == 8:
            raise Closed(int.from_bytes(payload[:2], "big"), payload[2:].decode())
        assert opcode == 1, (opcode, payload)
        return json.loads(payload)

    def closed(self):
        """Returns the (code, reason) of the close. Drops the messages before it."""
        try:
            while True:
                self.receive()
        except Closed as e:
            return e.args

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
