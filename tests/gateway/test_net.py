#!/usr/bin/env python3
"""Attacks on the gateway's server, from another process, and its answers to clients that follow the rules.
docs/requirements-gateway.md has the table of requirements that these tests check."""

import contextlib
import json
import os
import socket
import stat
import subprocess
import tempfile
import threading
import time
import unittest

from gw import TOKEN, WAIT, Closed, Gateway, answer, read_all

KEY = "0123456789abcdef0123456789abcdef"


class NetTest(unittest.TestCase):
    args = ()

    @classmethod
    def setUpClass(cls):
        cls.ui = tempfile.TemporaryDirectory()
        cls.secret = os.path.join(cls.ui.name, "secret.txt")
        page = os.path.join(cls.ui.name, "page")
        os.makedirs(os.path.join(page, "assets"))
        for name, text in (("index.html", "<!doctype html><p>page</p>"), ("assets/app-1.js", "1"), (".hidden.txt", "no"),
                           ("a b.txt", "no"), ("tool.exe", "no")):
            with open(os.path.join(page, name), "w", encoding="utf-8") as file:
                file.write(text)
        with open(cls.secret, "w", encoding="utf-8") as file:
            file.write("secret")
        os.symlink(cls.secret, os.path.join(page, "link.txt"))
        os.symlink(cls.ui.name, os.path.join(page, "up"))
        cls.page = page

    @classmethod
    def tearDownClass(cls):
        cls.ui.cleanup()

    def setUp(self):
        self.gateway = Gateway("--ui", self.page, *self.args)
        self.addCleanup(self.gateway.__exit__)


class Heads(NetTest):
    def test_health(self):
        status, headers, body = self.gateway.http("/health")
        self.assertEqual((status, json.loads(body)["status"]), (200, "ok"))
        self.assertGreaterEqual(json.loads(body)["uptime"], 0)
        self.assertEqual(headers["content-type"], "application/json")
        self.assertNotIn("access-control-allow-origin", headers)

    def test_hosts_of_rebinding_are_refused(self):
        port = self.gateway.port
        for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", "127.0.0.1", "localhost",
                     f"127.0.0.1:{port + 1}", f"localhost.:{port}", f"0.0.0.0:{port}", f"[::]:{port}", f"2130706433:{port}",
                     f"user@127.0.0.1:{port}", f"127.0.0.1:0{port}", "", f"127.0.0.2:{port}", f"127.0.0.1:{port}x"):
            with self.subTest(host):
                self.assertIn(self.gateway.http(host=[f"Host: {host}"])[0], (400, 421))
                with self.gateway.socket(host=f"Host: {host}") as sock:
                    self.assertIn(sock.status, (400, 421))
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
            with self.subTest(host):
                self.assertEqual(self.gateway.http(host=[f"Host: {host}"])[0], 200)

    def test_one_host(self):
        good = f"Host: 127.0.0.1:{self.gateway.port}"
        for hosts in ([], [good, good], [good, "Host: evil.example"], ["Host: evil.example", good], [good, "host : x"]):
            with self.subTest(hosts):
                self.assertEqual(self.gateway.http(host=hosts)[0], 400)

    def test_foreign_origins_are_refused(self):
        port = self.gateway.port
        for origin in ("http://evil.example", "null", f"https://127.0.0.1:{port}", "http://127.0.0.1", "http://localhost:5173",
                       f"http://127.0.0.1:{port}.evil.example", f"http://evil.example:{port}", "file://", "",
                       f"http://localhost:{port}/", f"http://127.0.0.1:{port}, http://evil.example"):
            with self.subTest(origin):
                with self.gateway.socket(headers=[f"Origin: {origin}"]) as sock:
                    self.assertEqual(sock.status, 403)
                self.assertEqual(self.gateway.http(headers=[f"Origin: {origin}"])[0], 403)
        for origin in (f"http://127.0.0.1:{port}", f"http://localhost:{port}", f"http://[::1]:{port}"):
            with self.subTest(origin), self.gateway.socket(headers=[f"Origin: {origin}"]) as sock:
                self.assertEqual(sock.status, 101)
        with self.gateway.socket(headers=[f"Origin: http://localhost:{port}", "Origin: http://evil.example"]) as sock:
            self.assertEqual(sock.status, 403)

    def test_what_is_no_get(self):
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"):
            self.assertEqual(self.gateway.http(method=method)[0], 405, method)
        self.assertEqual(self.gateway.http(headers=["Content-Length: 5"])[0], 400)
        self.assertEqual(self.gateway.http(headers=["Transfer-Encoding: chunked"])[0], 400)
        self.assertEqual(self.gateway.http(headers=["Content-Length: 0", "Content-Length: 5"])[0], 400)
        self.assertEqual(self.gateway.http(version="1.0")[0], 505)
        status, headers, body = self.gateway.http("/", method="HEAD")
        self.assertEqual((status, headers["content-length"], body), (200, "26", b""))

    def test_broken_heads(self):
        host = f"Host: 127.0.0.1:{self.gateway.port}\r\n".encode()
        for head in (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"GET / HTTP/1.1\r\n" + host + b"A: b\r\n c\r\n\r\n",
                     b"GET / HTTP/1.1\n" + host + b"\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + host + b"A\x00: b\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                     b"GET http://evil.example/ HTTP/1.1\r\n" + host + b"\r\n", b"GET /\r\n\r\n"):
            with self.subTest(head):
                self.assertGreaterEqual(self.gateway.raw(head)[0], 400)
        self.assertEqual(self.gateway.http(headers=[f"A{i}: b" for i in range(70)])[0], 431)
        self.assertEqual(self.gateway.http(headers=["A: " + "b" * 8192])[0], 431)
        self.assertEqual(self.gateway.http("/" + "b" * 2000)[0], 414)

    def test_upgrades(self):
        for headers, status in ((["Sec-WebSocket-Version: 8"], 426), (["Upgrade: h2c"], 400)):
            with self.gateway.socket(headers=headers) as sock:
                self.assertEqual(sock.status, status if headers != ["Sec-WebSocket-Version: 8"] else 426)
        for key in ("short", "=" * 24, "A" * 24):
            with self.gateway.socket(key=key) as sock:
                self.assertEqual(sock.status, 400)
        with self.gateway.socket(path="/other") as sock:
            self.assertEqual(sock.status, 404)
        with self.gateway.socket(path="/ws", headers=["Sec-WebSocket-Extensions: permessage-deflate"]) as sock:
            self.assertEqual(sock.status, 101)
        self.assertEqual(self.gateway.http(headers=["Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings",
                                                    "HTTP2-Settings: AAMAAABkAAQAAP__"])[0], 400)

    def test_a_token_in_an_address_is_refused_and_told_nowhere(self):
        for path in (f"/?token={TOKEN}", f"/health?token={TOKEN}"):
            status, headers, body = self.gateway.http(path)
            self.assertEqual(status, 400)
            self.assertIn(b"first message", body)
            self.assertNotIn(TOKEN, str(headers) + body.decode())
        with self.gateway.socket(path=f"/?token={TOKEN}") as sock:
            self.assertEqual(sock.status, 400)
        self.gateway.stop()
        self.assertEqual(self.gateway.errors, b"")
        for folder, _, files in os.walk(self.gateway.home):
            for name in files:
                with open(os.path.join(folder, name), "rb") as file:
                    self.assertNotIn(TOKEN.encode(), file.read(), name)


class Files(NetTest):
    def test_the_page_and_its_guards(self):
        status, headers, body = self.gateway.http("/")
        self.assertEqual((status, body), (200, b"<!doctype html><p>page</p>"))
        policy = headers["content-security-policy"]
        for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'",
                     "require-trusted-types-for 'script'", "img-src 'self' data: blob:"):
            self.assertIn(part, policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual(headers["x-content-type-options"], "nosniff")
        self.assertEqual(headers["referrer-policy"], "no-referrer")
        self.assertEqual(headers["cross-origin-resource-policy"], "same-origin")
        self.assertEqual(self.gateway.http("/assets/app-1.js")[1]["content-type"], "text/javascript; charset=utf-8")
        self.assertEqual(self.gateway.http("/", headers=[f"If-None-Match: {headers['etag']}"])[0], 304)

    def test_no_path_leads_out(self):
        for path in ("/../secret.txt", "/assets/../../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/link.txt",
                     "/up/secret.txt", "//etc/passwd", "/\\..\\secret.txt", "/.hidden.txt", "/a%20b.txt", "/tool.exe", "/assets",
                     "/assets/", "/index.html/", "/./index.html", "/index.html%00.js", "/INDEX.HTML"):
            with self.subTest(path):
                status, _, body = self.gateway.http(path)
                self.assertIn(status, (400, 404))
                self.assertNotIn(b"secret", body)


class Dev(NetTest):
    args = ("--dev",)

    def test_vites_pages_may_connect_with_dev(self):
        with self.gateway.socket(path="/ws", headers=["Origin: http://localhost:5173"]) as sock:
            self.assertEqual(sock.status, 101)
        with self.gateway.socket(headers=["Origin: http://localhost:5174"]) as sock:
            self.assertEqual(sock.status, 403)


class Logins(NetTest):
    def test_a_token_opens(self):
        with self.gateway.logged_in() as sock:
            self.assertEqual(sock.call("health.check")["result"]["status"], "ok")

    def test_what_is_no_good_first_message_closes(self):
        for text in ({"type": "auth", "token": "wrong"}, {"type": "auth"}, {"type": "auth", "token": 1},
                     {"type": "auth", "token": TOKEN, "code": "x"}, {"type": "other", "token": TOKEN},
                     {"id": "1", "method": "agents.list"}, {"id": "1", "method": "none"}, [], "x",
                     {"id": 1, "method": "health.check"}, {"type": "auth", "token": TOKEN, "more": "x"}):
            with self.subTest(text), self.gateway.socket() as sock:
                sock.send(text)
                self.assertEqual(sock.closed()[0], 1008)
        with self.gateway.socket() as sock:
            sock.send_text("{")
            self.assertEqual(sock.closed()[0], 1008)

    def test_health_check_needs_no_login(self):
        with self.gateway.socket() as sock:
            reply = sock.call("health.check", call_id="before")
            self.assertEqual((reply["id"], reply["result"]["status"]), ("before", "ok"))
            sock.send({"type": "auth", "token": TOKEN})
            self.assertTrue(sock.receive()["ok"])

    def test_ten_failures_a_minute(self):
        with self.gateway.logged_in() as kept:
            for _ in range(10):
                with self.gateway.socket() as sock:
                    sock.send({"type": "auth", "token": "wrong"})
                    self.assertIn("wrong", sock.closed()[1])
            for token in ("wrong", TOKEN):
                with self.gateway.socket() as sock:
                    sock.send({"type": "auth", "token": token})
                    self.assertEqual(sock.closed(), (1008, "too many failures: try again in a minute"))
            self.assertEqual(kept.call("health.check")["result"]["status"], "ok")

    def test_a_code_opens_once(self):
        link = self.gateway.run("--link").stdout.strip()
        self.assertRegex(link, rf"^http://127\.0\.0\.1:{self.gateway.port}/#code=[0-9a-f]{{64}}$")
        code = link.partition("#code=")[2]
        with self.gateway.socket() as sock:
            sock.send({"type": "auth", "code": code})
            self.assertEqual(sock.receive(), {"type": "auth", "ok": True, "token": TOKEN})
            with self.gateway.socket() as other:
                other.send({"type": "auth", "code": code})
                self.assertEqual(other.closed()[0], 1008)
        forged = f"{int(code[:16], 16) + 1:016x}" + code[16:]
        with self.gateway.socket() as sock:
            sock.send({"type": "auth", "code": forged})
            self.assertEqual(sock.closed()[0], 1008)


class Frames(NetTest):
    def test_each_wrong_frame_has_its_code_and_the_socket_lives(self):
        with self.gateway.logged_in() as sock:
            for text, code, call_id in (
                    ('{"id":"a"', -32700, None), ("", -32700, None), ("[]", -32600, None), ('"x"', -32600, None),
                    ('{"id":1,"method":"health.check"}', -32600, None), ('{"method":"health.check"}', -32600, None),
                    ('{"id":"","method":"health.check"}', -32600, None), ('{"id":"a"}', -32600, "a"),
                    ('{"id":"a","method":5}', -32600, "a"), ('{"id":"a","method":"x","jsonrpc":"2.0"}', -32600, "a"),
                    ('{"type":"auth","token":"x"}', -32600, None), ('{"id":"a","method":"none"}', -32601, "a"),
                    ('{"id":"a","method":"chat.send"}', -32602, "a"),
                    ('{"id":"a","method":"chat.send","params":[]}', -32602, "a"),
                    ('{"id":"\\u0000\\"","method":"none"}', -32601, "\0\""), ("[" * 100, -32700, None),
                    ('{"id":"a","method":"health.check","params":{"x":1}}', -32602, "a")):
                with self.subTest(text):
                    sock.send_text(text)
                    reply = sock.receive()
                    self.assertEqual((reply["id"], reply["error"]["code"]), (call_id, code), reply)
                    self.assertTrue(reply["error"]["message"])
            self.assertEqual(sock.call("health.check", {}, "z")["id"], "z")

    def test_parameters_are_named(self):
        cases = (("sessions.create", {"agentId": 1}, "agentId"), ("sessions.get", {}, "sessionKey"),
                 ("sessions.get", {"sessionKey": "../../etc/passwd"}, "sessionKey"),
                 ("sessions.get", {"sessionKey": KEY.upper()}, "sessionKey"),
                 ("chat.send", {"sessionKey": KEY}, "message"), ("chat.send", {"sessionKey": KEY, "message": ""}, "message"),
                 ("chat.history", {"sessionKey": KEY, "limit": 0}, "limit"), ("chat.abort", {"runId": ""}, "runId"),
                 ("chat.history", {"sessionKey": KEY, "limit": 1.5}, "limit"),
                 ("exec.approve", {"approvalId": None}, "approvalId"),
                 ("exec.deny", {"approvalId": "a", "reason": []}, "reason"), ("agents.list", {"more": 1}, "more"),
                 ("exec.approve", {"approvalId": "a", "remember": "yes"}, "remember"),
                 ("chat.send", {"sessionKey": KEY, "message": "x", "requestKey": "x"}, "requestKey"),
                 ("sessions.subscribe", {"sessionKey": KEY, "afterSeq": -1}, "afterSeq"),
                 ("sessions.subscribe", {"sessionKey": KEY, "afterSeq": 2 ** 53}, "afterSeq"),
                 ("sessions.search", {"query": ""}, "query"), ("sessions.search", {"query": "x", "limit": 201}, "limit"),
                 ("sessions.rename", {"sessionKey": KEY, "title": "a\nb"}, "title"), ("blobs.get", {}, "blobId"))
        with self.gateway.logged_in() as sock:
            for method, params, named in cases:
                with self.subTest(method=method, params=params):
                    error = sock.call(method, params)["error"]
                    self.assertEqual(error["code"], -32602)
                    self.assertTrue(error["message"].startswith(named + ":"), error)

    def test_a_part_that_can_not_work_says_so(self):
        with self.gateway.logged_in() as sock:
            error = sock.call("agents.list")["error"]
            self.assertEqual(error["code"], -32050)
            self.assertIn("agents.workspacePath", error["message"])

    def test_broken_websocket_frames(self):
        attacks = (("no mask", 1002, {"opcode": 1, "payload": b"x", "mask": False}),
                   ("binary", 1003, {"opcode": 2, "payload": b"x"}),
                   ("2^62", 1009, {"opcode": 1, "payload": b"x", "length": 1 << 62}),
                   ("2^63", 1002, {"opcode": 1, "payload": b"x", "length": 1 << 63}),
                   ("8 MiB and 1", 1009, {"opcode": 1, "payload": b"x", "length": (8 << 20) + 1}),
                   ("compressed", 1002, {"opcode": 1, "rsv": 4}),
                   ("not UTF-8", 1007, {"opcode": 1, "payload": b"\xff"}),
                   ("a long ping", 1002, {"opcode": 9, "payload": b"x" * 126}),
                   ("cut ping", 1002, {"opcode": 9, "fin": False}), ("no beginning", 1002, {"opcode": 0, "payload": b"x"}),
                   ("unknown", 1002, {"opcode": 3, "payload": b"x"}))
        for name, code, frame in attacks:
            with self.subTest(name), self.gateway.logged_in() as sock:
                sock.send_frame(**frame)
                self.assertEqual(sock.closed()[0], code)
        self.assertLess(self.memory(), 100_000_000 * (10 if os.environ.get("FM_SANITIZE") else 1))

    def test_a_message_in_pieces(self):
        text = b'{"id":"1","method":"health.check"}'
        with self.gateway.logged_in() as sock:
            sock.send_frame(1, text[:1], fin=False)
            for i in range(1, len(text)):
                sock.send_frame(9, b"p")
                self.assertEqual(sock.frame(), (10, b"p"))
                sock.send_frame(0, text[i:i + 1], fin=i == len(text) - 1)
            self.assertEqual(sock.receive()["id"], "1")
            sock.send_frame(1, b" ", fin=False)
            with contextlib.suppress(OSError):
                for _ in range(5000):
                    sock.send_frame(0, b" ", fin=False)
            self.assertEqual(sock.closed()[0], 1009)

    def test_a_message_of_8_mib(self):
        with self.gateway.logged_in() as sock:
            frame = b'{"id":"1","method":"health.check"}'
            sock.send_text(frame + b" " * ((8 << 20) - len(frame)))
            self.assertEqual(sock.receive()["id"], "1")

    def test_closing(self):
        with self.gateway.logged_in() as sock:
            sock.send_frame(8, b"\x03\xe8")
            self.assertEqual(sock.closed()[0], 1000)
        with self.gateway.socket() as sock:
            sock.send({"type": "auth", "token": TOKEN})
            sock.receive()
            self.gateway.process.terminate()
            self.assertEqual(sock.closed()[0], 1001)
            self.assertEqual(self.gateway.process.wait(WAIT), 0)

    def test_who_sends_but_does_not_read_is_not_read(self):
        """Unread answers stay limited: the gateway stops reading, and continues when they are read."""
        with self.gateway.logged_in() as sock:
            sock.sock.settimeout(0.5)
            sent = 0
            line = json.dumps({"id": "x" * 200, "method": "none"}).encode()
            with contextlib.suppress(TimeoutError):
                for _ in range(400_000):
                    sock.send_frame(1, line)
                    sent += 1
            self.assertLess(sent, 400_000)
            self.assertLess(self.memory(), 100_000_000 * (10 if os.environ.get("FM_SANITIZE") else 1))
            with self.gateway.logged_in() as other:
                self.assertEqual(other.call("health.check")["id"], "1")
            sock.sock.settimeout(WAIT)
            for _ in range(sent):
                self.assertEqual(sock.receive()["error"]["code"], -32601)

    def memory(self):
        with open(f"/proc/{self.gateway.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class Floods(NetTest):
    def test_strangers(self):
        strangers = [self.gateway.connect() for _ in range(32)]
        try:
            with self.gateway.connect() as late:
                self.assertEqual(answer(read_all(late))[0], 503)
            started = time.monotonic()
            for sock in strangers:  # the gateway closes a connection without a head after 5 s
                self.assertEqual(read_all(sock), b"")
            self.assertGreater(time.monotonic() - started, 4)
        finally:
            for sock in strangers:
                sock.close()
        self.assertEqual(self.gateway.http()[0], 200)

    def test_slow_loris(self):
        """A client that sends a byte from time to time can't keep an incomplete head, or an incomplete login, open."""
        def dribble(sock, data):
            started = time.monotonic()
            with contextlib.suppress(OSError):
                while time.monotonic() - started < WAIT:
                    sock.sendall(data)
                    sock.settimeout(0.2)
                    try:
                        if not sock.recv(4096):
                            break
                    except TimeoutError:
                        pass
            return time.monotonic() - started
        with self.gateway.connect() as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nA: ")
            self.assertLess(dribble(sock, b"a"), WAIT)
        with self.gateway.socket() as sock:
            started = time.monotonic()
            sock.send_frame(9, b"x")
            self.assertEqual(sock.frame(), (10, b"x"))
            self.assertEqual(sock.closed(), (1008, "log in within 5 s"))
            self.assertGreater(time.monotonic() - started, 3)

    def test_4_kib_before_the_login(self):
        with self.gateway.socket() as sock:
            sock.send_frame(1, b"x", length=4097)
            self.assertEqual(sock.closed()[0], 1009)
        with self.gateway.socket() as sock:
            with contextlib.suppress(OSError):
                for _ in range(200):
                    sock.send({"id": "1" * 100, "method": "health.check"})
            self.assertEqual(sock.closed()[0], 1009)

    def test_a_reader_that_stands_still_holds_nobody(self):
        threads = [threading.Thread(target=self.flood) for _ in range(8)]
        for thread in threads:
            thread.start()
        with self.gateway.logged_in() as sock:
            for i in range(100):
                self.assertEqual(sock.call("health.check", call_id=str(i))["id"], str(i))
        for thread in threads:
            thread.join()

    def flood(self):
        with self.gateway.logged_in() as sock:
            sock.sock.settimeout(0.3)
            with contextlib.suppress(TimeoutError):
                for _ in range(2000):
                    sock.send({"id": "1" * 200, "method": "none"})


class Tokens(unittest.TestCase):
    def test_the_file_is_made_private_and_random(self):
        with Gateway(token=None) as gateway:
            path = os.path.join(gateway.home, "token")
            with open(path, encoding="ascii") as file:
                token = file.read().strip()
            self.assertRegex(token, "^[0-9a-f]{64}$")
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
            self.assertEqual(stat.S_IMODE(os.stat(gateway.home).st_mode), 0o700)
            with gateway.logged_in(token) as sock:
                old = gateway.run("--link").stdout.partition("#code=")[2].strip()
                self.assertEqual(gateway.run("--new-token").returncode, 0)
                self.assertEqual(sock.closed(), (1008, "the token was changed: log in again"))
            for frame in ({"token": token}, {"code": old}):
                with gateway.socket() as other:
                    other.send({"type": "auth", **frame})
                    self.assertEqual(other.closed()[0], 1008)
            with open(path, encoding="ascii") as file:
                self.assertNotEqual(file.read().strip(), token)

    def test_a_code_is_not_good_twice_after_a_restart(self):
        with tempfile.TemporaryDirectory() as home:
            gateway = Gateway(home=home)
            code = gateway.run("--link").stdout.partition("#code=")[2].strip()
            with gateway.socket() as sock:
                sock.send({"type": "auth", "code": code})
                self.assertTrue(sock.receive()["ok"])
            gateway.process.kill()
            gateway.stop()
            with Gateway(home=home) as gateway, gateway.socket() as sock:
                sock.send({"type": "auth", "code": code})
                with self.assertRaises(Closed):
                    sock.receive()

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_a_process_of_the_same_user_can_not_look_into_it(self):
        """A command without a namespace tries to read the environment, the memory and the descriptors, and to trace the
        process."""
        def become():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        with tempfile.TemporaryDirectory() as home:
            os.chown(home, 65534, 65534)
            with Gateway(home=home, env={"OPENAI_API_KEY": "key-of-openai"}, prepare=become) as gateway:
                self.assertTrue(gateway.http("/health"))
                pid = gateway.process.pid
                attacks = {name: f"open('/proc/{pid}/{name}', 'rb').read(100)" for name in ("environ", "maps", "auxv", "stack")}
                attacks["mem"] = f"open('/proc/{pid}/mem', 'rb')"
                attacks["fd"] = f"os.listdir('/proc/{pid}/fd')"
                attacks["root"] = f"os.listdir('/proc/{pid}/root')"
                attacks["exe"] = f"os.readlink('/proc/{pid}/exe')"
                attacks["trace"] = (f"assert ctypes.CDLL(None).ptrace(16, {pid}, 0, 0) == 0")  # PTRACE_ATTACH
                attacks["descriptors"] = ("c = ctypes.CDLL(None).syscall; "
                                          f"assert c(438, c(434, {pid}, 0), 3, 0) >= 0")  # pidfd_getfd(pidfd_open())
                for name, attack in attacks.items():
                    with self.subTest(name):
                        run = [subprocess.run(["python3", "-c", "import ctypes, os; " + attack.replace(str(pid), str(target))],
                                              preexec_fn=become, capture_output=True, timeout=WAIT).returncode
                               for target in (pid, self.victim(become))]
                        self.assertNotEqual(run[0], 0)
                        if name not in ("stack", "descriptors"):
                            self.assertEqual(run[1], 0, "the attack works on nobody")

    def victim(self, become):
        """An ordinary process."""
        victim = subprocess.Popen(["sleep", "600"], preexec_fn=become)
        self.addCleanup(victim.wait)
        self.addCleanup(victim.kill)
        return victim.pid

    def test_the_environment_has_no_secret(self):
        with Gateway(env={"OPENAI_API_KEY": "key-of-openai", "ANTHROPIC_API_KEY": "key-of-anthropic"}) as gateway:
            try:
                with open(f"/proc/{gateway.process.pid}/environ", "rb") as file:
                    text = file.read()
            except PermissionError:  # not root: this process can't be inspected at all
                return
            for secret in (TOKEN, "key-of-openai", "key-of-anthropic"):
                self.assertNotIn(secret.encode(), text)


if __name__ == "__main__":
    socket.setdefaulttimeout(WAIT)
    unittest.main()
