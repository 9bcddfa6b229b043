"""llama.cpp's own server on a free port of this machine, for tests that send requests to it. Uses only Python's standard
library."""

import http.client
import os
import random
import socket
import subprocess
import tempfile
import time

from patience import WAIT

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PROGRAM = os.path.join(ROOT, "build", "deps", "llama-server", "bin", "llama-server")


def free_port():
    """Returns a port below the range that the system uses for connections: a port of this range could be in use again before the
    server opens it."""
    while True:
        port = random.SystemRandom().randrange(10000, 32000)  # tests that run at the same time may have the same seed
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass  # the port is in use


class LlamaServer:
    """`arguments` go to the server after the usual arguments."""

    def __init__(self, model, *arguments, port=None):
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [PROGRAM, "-m", model, "--host", "127.0.0.1", "--port", str(self.port), "-c", "16384", "-np", "2", "-t", "1",
             "--jinja", "--no-webui", *arguments], stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        self._wait_until_ready()

    def _wait_until_ready(self):
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline and self.process.poll() is None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
            try:
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            finally:
                connection.close()
            time.sleep(0.05)  # the server does not report when it is ready
        self.close()
        self.log.seek(0)
        raise AssertionError("llama-server did not start:\n" + self.log.read().decode(errors="replace")[-2000:])

    def close(self):
        self.process.kill()
        self.process.wait()
