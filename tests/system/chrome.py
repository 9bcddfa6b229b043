"""Shared by the tests of Chrome's tabs: the programs, an X server, a web server for pages, a browser of `fm-system chrome`."""

import base64
import hashlib
import http.server
import json
import os
import select
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from patience import WAIT  # noqa: E402

DRIVER = os.environ.get("FM_SYSTEM_CHROME_DRIVER")
CHROMIUM = os.environ.get("FM_CHROMIUM") or shutil.which("chromium")
FLAGS = ["--disable-dev-shm-usage", "--disable-gpu", "--password-store=basic", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", *(["--no-sandbox"] if os.geteuid() == 0 else [])]


def until(what, look, wait=WAIT):
    """Calls `look` again and again until it returns a true value; returns that."""
    end = time.monotonic() + wait
    while True:
        value = look()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {wait} s: {what}")
        time.sleep(0.01)


class Driver:
    """system_chrome_driver on a socket and profiles: sends a line and gets a line."""

    def __init__(self, socket, *profiles, program=DRIVER, env=None):
        self.process = subprocess.Popen([program, socket, *profiles], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], WAIT)[0]:
            raise AssertionError(f"no answer to {request}")
        return json.loads(self.process.stdout.readline())

    def tabs(self):
        told = self.ask(dump=True)
        if "tabs" not in told:
            raise AssertionError(told)
        return sorted(told["tabs"], key=lambda tab: (int(tab["window"]), tab["position"]))

    def call(self, what, with_):
        return self.ask(call=what, **{"with": with_})

    def command(self, type, **args):
        return self.ask(type=type, args=args)

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(WAIT)
        self.process.stdout.close()
        return code


class Screen:
    """A separate X server."""

    def __init__(self):
        read, write = os.pipe()
        self.process = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "1600x1000x24", "-nolisten", "tcp"],
                                        pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as file:
            number = file.readline().strip() if select.select([file], [], [], WAIT)[0] else ""
        if not number:
            raise AssertionError("Xvfb does not start")
        self.env = {**os.environ, "DISPLAY": f":{number}"}

    def end(self):
        self.process.terminate()
        self.process.wait(WAIT)


class Web:
    """A web server. The page of any path has the path as its title, unless `pages` has a page for the path, or for host and
    path. With a folder, in which it makes its certificate, it is an https server. `asked` has the pages that browsers have
    requested."""

    def __init__(self, tls_folder=None):
        self.pages = {}
        self.asked = []
        web = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                address = f"{self.headers['Host']}{self.path}"
                web.asked.append(address)
                name = address if tls_folder else self.path
                plain = f"<title>{name}</title><p>page {name}"
                body = web.pages.get(address, web.pages.get(self.path, plain)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except ConnectionError:
                    pass  # the tab was closed during the request

            def log_message(self, *_):
                pass

        class Pages(http.server.ThreadingHTTPServer):
            def handle_error(self, request, client_address):
                if not isinstance(sys.exc_info()[1], OSError):  # a browser closes the connection, or speaks without TLS at first
                    super().handle_error(request, client_address)

        self.server = Pages(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls_folder:
            self.server.socket = self.encrypted(tls_folder)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def encrypted(self, folder):
        """The listening socket. The TLS handshake of a connection happens at its first read, in the thread of the connection."""
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=pages", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/certificate.pem"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=WAIT)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{folder}/certificate.pem", f"{folder}/key.pem")
        return context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)

    @staticmethod
    def trust(folder):
        """The flag that makes Chromium trust the certificate."""
        public = subprocess.run(["openssl", "x509", "-in", f"{folder}/certificate.pem", "-noout", "-pubkey"], check=True,
                                stdout=subprocess.PIPE, timeout=WAIT).stdout
        key = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], check=True, input=public, stdout=subprocess.PIPE,
                             timeout=WAIT).stdout
        return f"--ignore-certificate-errors-spki-list={base64.b64encode(hashlib.sha256(key).digest()).decode()}"

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def end(self):
        self.server.shutdown()
        self.server.server_close()


class Browser:
    """`fm-system chrome` with these pages."""

    def __init__(self, screen, *urls, flags=(), folder=None):
        self.folder = folder or tempfile.mkdtemp(prefix="fm-chrome-")
        self.socket = f"{self.folder}/run/chrome.sock"
        self.profile = f"{self.folder}/profile"
        self.process = subprocess.Popen(
            [DRIVER, "chrome", "--browser", CHROMIUM, "--profile", self.profile, "--socket", self.socket, "--", *FLAGS, *flags,
             *urls], env=screen.env, stderr=subprocess.PIPE)
        if not select.select([self.process.stderr], [], [], WAIT)[0]:
            raise AssertionError("the browser does not start")
        self.first_line = self.process.stderr.readline().decode()

    def end(self):
        self.process.terminate()
        code = self.process.wait(WAIT)
        self.process.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        return code


def descendants(pid):
    """The process and all its descendants."""
    children = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                children.setdefault(int(file.read().rpartition(")")[2].split()[1]), []).append(int(entry))
        except OSError:
            pass  # it has ended
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def listening_ports(pids):
    """TCP ports on which these processes listen."""
    inodes = set()
    for pid in pids:
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            pass  # it has ended
    ports = []
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}", encoding="ascii") as file:
            for line in list(file)[1:]:
                words = line.split()
                if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                    ports.append(int(words[1].rpartition(":")[2], 16))
    return ports
