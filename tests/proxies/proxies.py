"""How the remote engine handles a server behind third-party programs: toxiproxy, haproxy, tinyproxy, squid. run.sh installs
them, and starts this script:

    proxies.py ENGINE TOXIPROXY [CASE...]

A CASE is the beginning of a row's name. Each row is tried twice: with only its endpoint, and with a good endpoint after it.
The good endpoint must get the request if the row says so, and never after output. FM_CUTS (default 300) is the number of
streams that toxiproxy cuts at random. Prints a table; the exit status is 1 if a row is not as expected.
"""

import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "contract"))
from engine import WAIT, Engine, Outcome, user  # noqa: E402
from faulty_server import FaultyServer, certificate, chunked, head, models, says, stream, whole  # noqa: E402
from llama_server import free_port  # noqa: E402

CUTS = int(os.environ.get("FM_CUTS", "300"))
CHAT = stream("chat")
HALF = CHAT[:CHAT.index(b"\n\n", 900) + 2]
GOOD = ("whole", "", False)
ENGINE = None


def control(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
    try:
        connection.request(method, path, body and json.dumps(body), {"User-Agent": "tests"})
        reply = connection.getresponse()
        data = reply.read()
        assert reply.status < 300, data
        return json.loads(data or b"null")
    finally:
        connection.close()


class Program:
    """A program that is ready when something listens on its port."""

    def __init__(self, port, *command):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
                connection.connect()
                connection.close()
                return
            except OSError:
                time.sleep(0.05)  # the program does not report when it is ready
        self.close()
        self.log.seek(0)
        raise AssertionError(f"{command[0]} did not start:\n{self.log.read().decode(errors='replace')[-2000:]}")

    def close(self):
        self.process.kill()
        self.process.wait()


class Toxiproxy(Program):
    def __init__(self, path):
        self.port = free_port()
        super().__init__(self.port, path, "-host", "127.0.0.1", "-port", str(self.port))
        self.count = 0

    def before(self, server, *toxics, enabled=True):
        """The URL of a proxy in front of the server, with these toxics: (type, attributes), or with "upstream" as a third."""
        self.count += 1
        name, port = f"p{self.count}", free_port()
        control(self.port, "POST", "/proxies", {"name": name, "listen": f"127.0.0.1:{port}",
                                                "upstream": f"127.0.0.1:{server.port}", "enabled": enabled})
        for kind, attributes, *to in toxics:
            control(self.port, "POST", f"/proxies/{name}/toxics",
                    {"type": kind, "stream": to[0] if to else "downstream", "attributes": attributes})
        return f"http://127.0.0.1:{port}/v1"


def silent(data=b""):
    """Sends these bytes, and then nothing for as long as the other side waits."""
    def answer(server, connection, request):
        if models(connection, request):
            connection.sendall(data)
            connection.recv(1)
            return False
        return True
    return answer


# ---- what is asked ----

def engine(*endpoints):
    """An engine with these endpoints. Each endpoint is given as its members."""
    rows = [{"dialect": "chat", "models": ["any"], **endpoint} for endpoint in endpoints]
    started = Engine(ENGINE, {"FM_ENGINE_CONFIG": json.dumps({"endpoints": rows})})
    assert started.initialize()["ok"] and started.load(None)[0]["ok"]
    return started


def ask(*endpoints):
    started = engine(*endpoints)
    try:
        return started.run(user("hi"), max_tokens=12)
    finally:
        started.close()


def told(outcome, text):
    """("whole", "") for a whole answer, or else (code, reason code)."""
    if outcome.error is None:
        return ("whole" if outcome.text == text else "ANOTHER TEXT", "")
    assert text.startswith(outcome.text), outcome.text
    return outcome.error["code"], outcome.error.get("reason_code", "")


def toxic_rows(toxiproxy, origin, quiet, stops):
    """(name, endpoint, the expected result, whether the request moves on)"""
    before = toxiproxy.before
    head_size = len(head(Transfer_Encoding="chunked"))
    yield "toxiproxy: nothing", before(origin), GOOD
    yield "toxiproxy: latency of 200 ms", before(origin, ("latency", {"latency": 200, "jitter": 50})), GOOD
    yield "toxiproxy: 4 KB/s", before(origin, ("bandwidth", {"rate": 4})), GOOD
    small = {"average_size": 7, "size_variation": 3, "delay": 50}
    yield "toxiproxy: in pieces of 7 bytes", before(origin, ("slicer", small)), GOOD
    yield "toxiproxy: requests in pieces of 7 bytes", before(origin, ("slicer", small, "upstream")), GOOD
    yield "toxiproxy: closes late", before(origin, ("slow_close", {"delay": 500})), GOOD
    yield "toxiproxy: reset at once", before(origin, ("reset_peer", {"timeout": 0})), ("OVERLOADED", "", True)
    yield "toxiproxy: closed without an answer", before(origin, ("timeout", {"timeout": 100})), ("OVERLOADED", "", True)
    yield "toxiproxy: cut in the head", before(origin, ("limit_data", {"bytes": head_size // 2})), ("OVERLOADED", "", True)
    yield "toxiproxy: cut before the first output", before(origin, ("limit_data", {"bytes": head_size + 40})), \
        ("INTERNAL", "", True)
    yield "toxiproxy: cut after output", before(origin, ("limit_data", {"bytes": head_size + len(HALF)})), \
        ("INTERNAL", "", False)
    yield "toxiproxy: the request is cut", before(origin, ("limit_data", {"bytes": 100}, "upstream")), ("OVERLOADED", "", True)
    yield "toxiproxy: silence (first_byte_ms)", {"url": before(origin, ("timeout", {"timeout": 0})),
                                                 "timeouts": {"first_byte_ms": 300}}, ("OVERLOADED", "", True)
    yield "toxiproxy: silence after output (silence_ms)", {"url": before(stops), "timeouts": {"silence_ms": 300}}, \
        ("INTERNAL", "", False)
    yield "toxiproxy: not there", before(origin, enabled=False), ("UNAVAILABLE", "OFFLINE", True)


class Haproxy(Program):
    """A front with TLS for each certificate, one for each of haproxy's own errors, and the servers behind them."""

    def __init__(self, folder, origin, quiet, stops):
        self.ports = {}
        self.certificates = {}
        text = "defaults\n  mode http\n  timeout connect 2s\n  timeout client 60s\n  timeout server 60s\n"
        for name, days, alternative in (("good", 30, "IP:127.0.0.1"), ("other name", 30, "DNS:elsewhere.example"),
                                        ("expired", -1, "IP:127.0.0.1")):
            _, path = certificate(folder, name.replace(" ", "-"), days, alternative=alternative)
            both = os.path.join(folder, name.replace(" ", "-") + ".both")
            with open(both, "w") as file:
                file.write(open(path).read() + open(path[:-3] + "key").read())
            self.certificates[name] = path
            text += self.front(name, origin, f"ssl crt {both} alpn h2,http/1.1")
        text += self.front("gzip", origin, "", "compression algo gzip\n  compression type text/event-stream")
        text += self.front("gone", None)
        text += self.front("late", quiet, "", "timeout server 300ms")
        text += self.front("late after output", stops, "", "timeout server 300ms")
        text += self.front("limit", origin, "", "http-request return status 429 content-type application/json string {} hdr "
                           "retry-after 3")
        text += self.front("denied", origin, "", "http-request deny deny_status 403")
        text += self.front("redirect", origin, "", "http-request redirect location https://elsewhere.example/ code 307")
        path = os.path.join(folder, "haproxy.cfg")
        with open(path, "w") as file:
            file.write(text)
        super().__init__(self.ports["good"], "/usr/sbin/haproxy", "-db", "-f", path)

    def front(self, name, server, bind="", more=""):
        self.ports[name] = free_port()
        return (f"listen {name.replace(' ', '-')}\n  bind 127.0.0.1:{self.ports[name]} {bind}\n  {more}\n"
                f"  server s 127.0.0.1:{server.port if server else free_port()}\n")

    def url(self, name, scheme="http"):
        return f"{scheme}://127.0.0.1:{self.ports[name]}/v1"

    def rows(self):
        for name, expected in (("good", GOOD), ("other name", ("UNAVAILABLE", "TLS_FAILED", True)),
                               ("expired", ("UNAVAILABLE", "TLS_FAILED", True))):
            yield f"haproxy: TLS, {name}", {"url": self.url(name, "https"), "ca_file": self.certificates[name]}, expected
        yield "haproxy: TLS, unknown", self.url("good", "https"), ("UNAVAILABLE", "TLS_FAILED", True)
        yield "haproxy: http where TLS is", self.url("good"), ("OVERLOADED", "", True)
        yield "haproxy: TLS where http is", self.url("gzip", "https"), ("UNAVAILABLE", "TLS_FAILED", True)
        yield "haproxy: it could compress", self.url("gzip"), GOOD
        for name, expected in (("gone", ("OVERLOADED", "", True)), ("late", ("OVERLOADED", "", True)),
                               ("late after output", ("INTERNAL", "", False)), ("limit", ("RATE_LIMITED", "", True)),
                               ("denied", ("UNAVAILABLE", "AUTH_FAILED", True)),
                               ("redirect", ("UNAVAILABLE", "NOT_CONFIGURED", True))):
            yield f"haproxy: {name}", self.url(name), expected


def tinyproxy(folder, name, more=""):
    port = free_port()
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(f"Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nMaxClients 100\nTimeout 60\nLogLevel Critical\n{more}\n")
    program = Program(port, "/usr/bin/tinyproxy", "-d", "-c", path)
    program.url = f"http://127.0.0.1:{port}"
    return program


def squid(folder, name, rules):
    port = free_port()
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(f"http_port 127.0.0.1:{port}\npid_filename none\naccess_log none\ncache_log /dev/null\ncache deny all\n"
                   f"shutdown_lifetime 0 seconds\nvisible_hostname tests\nnetdb_filename none\n{rules}\n")
    program = Program(port, "/usr/sbin/squid", "-N", "-f", path)
    program.url = f"http://127.0.0.1:{port}"
    return program


def proxy_rows(name, proxy, refuses, origin, secure, gone, ca_file, refused):
    """`refused`: the result of a proxy's refusal, for http and for https."""
    yield f"{name}: http", {"url": origin.url, "proxy": proxy.url}, GOOD
    yield f"{name}: https", {"url": secure.url, "ca_file": ca_file, "proxy": proxy.url}, GOOD
    yield f"{name}: https, unknown certificate", {"url": secure.url, "proxy": proxy.url}, ("UNAVAILABLE", "TLS_FAILED", True)
    yield f"{name}: it refuses http", {"url": origin.url, "proxy": refuses.url}, refused[0]
    yield f"{name}: it refuses https", {"url": secure.url, "ca_file": ca_file, "proxy": refuses.url}, refused[1]
    yield f"{name}: the server is not there, http", {"url": gone, "proxy": proxy.url}, ("OVERLOADED", "", True)
    yield f"{name}: the server is not there, https", {"url": gone.replace("http:", "https:"), "proxy": proxy.url}, \
        ("UNAVAILABLE", "OFFLINE", True)


def check(rows, wanted, text, good):
    """Prints a line for each row; returns how many were wrong."""
    wrong = 0
    for name, endpoint, (code, reason_code, moves) in rows:
        if wanted and not any(name.startswith(word) for word in wanted):
            continue
        endpoint = endpoint if isinstance(endpoint, dict) else {"url": endpoint}
        alone = ask(endpoint)
        before = len(good.requests)
        both = ask(endpoint, {"url": good.url})
        moved = len(good.requests) > before
        seen = (*told(alone, text), moved)
        fits = seen == (code, reason_code, moves)
        # With the second endpoint, the whole answer must come if the request moved on. Otherwise the result must be the same as
        # without it.
        fits = fits and (told(both, text)[0] == "whole" if moved else told(both, text) == seen[:2])
        wrong += not fits
        print(f"| {name} | {' '.join(filter(None, seen[:2]))} | {'yes' if moved else '-' if code == 'whole' else 'no'} |"
              + ("" if fits else f"  WRONG: expected {code} {reason_code} {moves}; {alone.error}; {both.error}"), flush=True)
    return wrong


def stream_through(name, endpoint, text):
    """The first piece arrives while the server still holds back the rest: no program between them delays it."""
    started = engine(endpoint(gate := threading.Event()))
    try:
        job = started.start(user("hi"))
        events = started.events(job)
        first = [next(events) for _ in range(2)]
        gate.set()
        outcome = Outcome(first + list(events))
        assert outcome.text == text, outcome.error
        print(f"| {name}: the first piece before the rest | whole | - |", flush=True)
    finally:
        gate.set()
        started.close()


def cut_at_random(toxiproxy, origin, good, text):
    """toxiproxy cuts streams at a random byte, and another endpoint follows: no byte is lost or doubled."""
    random.seed(18)
    size = len(whole(CHAT))
    moved = failed = complete = 0
    for _ in range(CUTS):
        url = toxiproxy.before(origin, ("limit_data", {"bytes": random.randrange(1, size // 2)}))
        before = len(good.requests)
        outcome = ask({"url": url}, {"url": good.url})
        if outcome.error:
            assert outcome.text and text.startswith(outcome.text) and len(good.requests) == before, outcome.error
            failed += 1
        else:
            assert outcome.text == text
            moved += len(good.requests) > before
            complete += len(good.requests) == before
        control(toxiproxy.port, "DELETE", f"/proxies/p{toxiproxy.count}")
    print(f"{CUTS} streams cut at random: {moved} moved on, {failed} failed after output, {complete} whole; "
          "0 bytes lost or doubled")
    assert moved and failed


def main():
    global ENGINE
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    ENGINE = os.path.abspath(sys.argv[1])
    wanted = sys.argv[3:]
    opened = []

    def keep(thing):
        opened.append(thing)
        return thing

    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o755)  # so that proxies can read it after they have given up their rights
    text = "".join(c["delta"].get("content") or "" for line in CHAT.decode().splitlines() if line.startswith("data: {")
                   for c in json.loads(line[6:])["choices"])
    try:
        origin, good = keep(FaultyServer(says(whole(CHAT)))), keep(FaultyServer(says(whole(CHAT))))
        quiet, stops = keep(FaultyServer(silent())), keep(FaultyServer(silent(head() + HALF)))
        context, ca_file = certificate(folder, "secure", 30)
        secure = keep(FaultyServer(says(whole(CHAT)), context))
        gone = f"http://127.0.0.1:{free_port()}/v1"
        toxiproxy = keep(Toxiproxy(os.path.abspath(sys.argv[2])))
        print("| Between | Becomes | Next endpoint |\n|---|---|---|")
        wrong = check(toxic_rows(toxiproxy, origin, quiet, stops), wanted, text, good)
        haproxy = keep(Haproxy(folder, origin, quiet, stops))
        wrong += check(haproxy.rows(), wanted, text, good)
        tiny = [keep(tinyproxy(folder, "tiny")), keep(tinyproxy(folder, "tiny-auth", "BasicAuth user password"))]
        refused = ("UNAVAILABLE", "AUTH_FAILED", True)
        wrong += check(proxy_rows("tinyproxy", *tiny, origin, secure, gone, ca_file, (refused, refused)), wanted, text, good)
        squids = [keep(squid(folder, "squid", "http_access allow all")), keep(squid(folder, "squid-no", "http_access deny all"))]
        wrong += check(proxy_rows("squid", *squids, origin, secure, gone, ca_file, (refused, refused)), wanted, text, good)
        wrong += check([("a proxy that is not there", {"url": origin.url, "proxy": gone[:-3]}, ("UNAVAILABLE", "OFFLINE", True))],
                       wanted, text, good)
        for name, between in (("toxiproxy", None), ("haproxy", None), ("tinyproxy", tiny[0]), ("squid", squids[0])):
            if wanted and not any(name.startswith(word) for word in wanted):
                continue
            gates = []

            def answer(server, connection, request):
                if models(connection, request):
                    connection.sendall(head(Transfer_Encoding="chunked") + b"%x\r\n%s\r\n" % (len(HALF), HALF))
                    gates[-1].wait(WAIT)
                    connection.sendall(chunked(CHAT[len(HALF):]))
                return True

            held = keep(FaultyServer(answer))
            if name == "haproxy":
                more = keep(Haproxy(folder, held, held, held))
                members = {"url": more.url("gzip")}
            else:
                members = {"url": held.url, "proxy": between.url} if between else {"url": toxiproxy.before(held)}
            stream_through(name, lambda gate, members=members: gates.append(gate) or members, text)
        if not wanted:
            cut_at_random(toxiproxy, origin, good, text)
    finally:
        for thing in opened:
            thing.close()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{wrong} rows are not as they should be" if wrong else "all rows are as they should be")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
