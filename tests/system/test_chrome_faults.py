"""The tabs backend with a browser that is a script: cut, late, wrong and hostile messages, by a Unix socket and by WebSocket.
FM_SYSTEM_CHROME_DRIVER names the program of chrome_driver.c."""

import base64
import hashlib
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from chrome import DRIVER, WAIT, Driver, until
from patience import TimedTest


def target(id, index, url="http://a.example/", **more):
    return {"targetId": id, "type": "tab", "title": id, "url": url,
            "embedderData": {"tabStripIndex": index, "tabActive": not index}, **more}


class Peer:
    """A browser on a Unix socket. `answers`: for each method the result, or a function of the call that returns bytes, a
    result, an Exception (the error), or None (no answer)."""

    def __init__(self, path):
        self.path = path
        self.answers = {"Target.getTargets": {"targetInfos": [target("A", 0), target("B", 1)]},
                        "Browser.getWindowForTarget": {"windowId": 7}, "Target.setDiscoverTargets": {},
                        "Target.attachToTarget": lambda call: {"sessionId": f"5{call['params']['targetId']}"},
                        "Target.setAutoAttach": self.follow, "Page.createIsolatedWorld": {"executionContextId": 3},
                        "Runtime.evaluate": {"result": {"value": 5}}, "Page.close": {}, "Target.activateTarget": {},
                        "Target.detachFromTarget": {}, "Target.createTarget": {"targetId": "N"}}
        self.calls = []
        self.connections = []
        self.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def listen(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()

    @staticmethod
    def follow(call):
        session = call["sessionId"]
        event = {"method": "Target.attachedToTarget", "sessionId": session,
                 "params": {"sessionId": f"{session}-p", "targetInfo": {"type": "page", "targetId": f"{session}-f"}}}
        return json.dumps(event).encode() + b"\0" + json.dumps({"id": call["id"], "result": {}}).encode() + b"\0"

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def read(self, connection):
        """Yields the messages of a connection until its end."""
        rest = b""
        while True:
            data = connection.recv(65536)
            if not data:
                return
            *whole, rest = (rest + data).split(b"\0")
            yield from whole

    def frame(self, data):
        return data

    def talk(self, connection):
        try:
            for message in self.read(connection):
                call = json.loads(message)
                self.calls.append(call)
                answer = self.answers.get(call["method"], ValueError("no such method"))
                if callable(answer):
                    answer = answer(call)
                if isinstance(answer, Exception):
                    answer = json.dumps({"id": call["id"], "error": {"code": -32000, "message": str(answer)}}).encode() + b"\0"
                elif answer is not None and not isinstance(answer, bytes):
                    answer = json.dumps({"id": call["id"], "result": answer}).encode() + b"\0"
                if answer == b"":
                    connection.shutdown(socket.SHUT_RDWR)
                    return
                if answer:
                    connection.sendall(self.frame(answer))
        except OSError:
            pass  # the other side has gone

    def methods(self):
        return [call["method"] for call in self.calls]

    def end(self):
        for one in (self.listener, *self.connections):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the connection has ended already
            one.close()


class Faults(TimedTest):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="fm-chrome-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.peer = Peer(f"{self.folder}/s")
        self.addCleanup(self.peer.end)
        self.driver = Driver(self.peer.path)
        self.addCleanup(lambda: self.assertEqual(self.driver.end(), 0))

    def failed(self, code="UNAVAILABLE"):
        told = self.driver.ask(dump=True)
        self.assertEqual(told.get("failed"), code, told)
        return told["detail"]

    def test_it_works(self):
        until("the pages have answered", lambda: all(tab["opened_ms"] for tab in self.driver.tabs()))
        self.assertEqual([(tab["id"], tab["window"], tab["position"], tab["active"], tab["opened_ms"])
                          for tab in self.driver.tabs()], [("A", "7", 0, True, 5), ("B", "7", 1, False, 5)])
        until("it leaves nothing attached", lambda: self.peer.methods().count("Target.detachFromTarget") == 2)
        begun = len(self.peer.calls)
        self.driver.tabs()
        self.assertEqual(self.peer.methods()[begun:], ["Target.getTargets"] + ["Browser.getWindowForTarget"] * 2)

    def test_the_program_finds_the_socket(self):
        program = os.path.join(os.environ["FM_BIN"], "fm-system")
        env = {**os.environ, "HOME": self.folder, "XDG_RUNTIME_DIR": self.folder}
        for options, line in ((("--chrome-socket", self.peer.path), "tabs +ok, 2 now"), ((), "tabs +unavailable: ")):
            done = subprocess.run([program, "doctor", *options], env=env, capture_output=True, text=True, timeout=WAIT)
            self.assertRegex(done.stdout, f"(?m)^{line}")

    def test_a_cut_connection(self):
        for method in ("Target.getTargets", "Browser.getWindowForTarget", "Target.attachToTarget", "Runtime.evaluate"):
            for piece in (b"", b'{"id":1', b'{"id":1,"result":{}}\0{"id'):
                with self.subTest(method=method, piece=piece):
                    before = self.peer.answers[method]

                    def cut(call, piece=piece):
                        connection = self.peer.connections[-1]
                        if piece:
                            connection.sendall(piece)
                        return b""
                    self.peer.answers[method] = cut
                    self.driver = self.fresh()
                    self.failed()
                    self.peer.answers[method] = before
                    self.assertEqual(len(self.driver.tabs()), 2, "it connects again")

    def fresh(self):
        """A driver that knows no tabs yet."""
        self.driver.end()
        return Driver(self.peer.path)

    def test_garbage(self):
        for garbage in (b"hello\0", b"\0", b"{}\0", b"[1]\0", b"\xff\xfe\0", b'{"id":1,"result":"\\ud800"}\0', b"1\0", b"null\0",
                        b'{"id":1,"id":{}}{}\0', b"[" * 70 + b"]" * 70 + b"\0"):
            with self.subTest(garbage):
                self.peer.answers["Target.getTargets"] = lambda call, garbage=garbage: garbage
                self.assertIn("no message", self.failed())
        self.peer.answers["Target.getTargets"] = {"targetInfos": [target("A", 0)]}
        self.assertEqual(len(self.driver.tabs()), 1)

    def test_answers_that_make_no_sense(self):
        for answer, count in (({}, 0), ({"targetInfos": {}}, 0), ({"targetInfos": []}, 0), ({"targetInfos": "x"}, 0), ([], 0),
                              ({"targetInfos": [1, None, [], {}, target("A", 0)]}, 1),
                              ({"targetInfos": [target('"', 0), target("x" * 200, 1), target("", 2), target("A", 3)]}, 1),
                              ({"targetInfos": [target("A", 0), {**target("B", 1), "type": "page"}]}, 1)):
            with self.subTest(answer):
                self.peer.answers["Target.getTargets"] = answer
                self.assertEqual(len(self.driver.tabs()), count)
        self.peer.answers["Target.getTargets"] = {"targetInfos": [{"targetId": "A", "type": "tab", "title": "", "url": ""}]}
        self.assertIn("Chrome 150", self.failed())
        self.peer.answers["Target.getTargets"] = ValueError("no")
        self.failed()

    def test_values_that_make_no_sense(self):
        for method, answer in (("Target.attachToTarget", {}), ("Target.attachToTarget", {"sessionId": 5}),
                               ("Target.attachToTarget", {"sessionId": '"'}), ("Target.setAutoAttach", {}),
                               ("Page.createIsolatedWorld", {}), ("Runtime.evaluate", {}), ("Runtime.evaluate", {"result": 1}),
                               ("Runtime.evaluate", {"exceptionDetails": {}, "result": {"value": {}}})):
            with self.subTest(method=method, answer=answer):
                before = self.peer.answers[method]
                self.peer.answers[method] = answer
                self.driver = self.fresh()
                self.assertEqual([tab["opened_ms"] for tab in self.driver.tabs()], [0, 0])
                self.assertIsNone(self.driver.call("text", "A").get("text"))
                self.peer.answers[method] = before

    def test_a_tab_that_goes_meanwhile(self):
        def window(call):
            return ValueError("gone") if call["params"]["targetId"] == "A" else {"windowId": 7}
        self.peer.answers["Browser.getWindowForTarget"] = window
        self.assertEqual([tab["id"] for tab in self.driver.tabs()], ["B"])
        gone = ValueError("No target with given id found")
        self.peer.answers.update({"Target.attachToTarget": gone, "Target.activateTarget": gone})
        for what in ("close", "text", "activate"):
            self.assertEqual(self.driver.call(what, "A")["failed"], "NOT_FOUND")

    def test_a_tab_that_goes_amid_a_visit(self):
        def detached(call):
            event = {"method": "Target.detachedFromTarget", "params": {"sessionId": call["sessionId"].removesuffix("-p")}}
            return json.dumps(event).encode() + b"\0"
        self.driver.tabs()
        for method in ("Target.setAutoAttach", "Page.createIsolatedWorld", "Runtime.evaluate"):
            with self.subTest(method):
                before = self.peer.answers[method]
                self.peer.answers[method] = detached
                self.assertEqual(self.driver.call("text", "A")["failed"], "NOT_FOUND")
                self.peer.answers[method] = before
        self.peer.answers["Page.close"] = detached
        self.assertNotIn("failed", self.driver.call("close", "A"))

    def test_a_page_that_is_just_coming_is_asked_again(self):
        for method in ("Target.attachToTarget", "Target.setAutoAttach", "Page.createIsolatedWorld", "Runtime.evaluate"):
            with self.subTest(method):
                before, tries = self.peer.answers[method], []

                def fails_first(call, before=before, tries=tries):
                    tries.append(call)
                    return ValueError("no frame") if len(tries) < 4 else before(call) if callable(before) else before
                self.peer.answers[method] = fails_first
                self.driver = self.fresh()
                until("it is known", lambda: all(tab["opened_ms"] == 5 for tab in self.driver.tabs()))
                self.peer.answers[method] = lambda call, tries=tries: tries.append(call) or ValueError("no frame")
                self.driver = self.fresh()
                tries.clear()
                for _ in range(10):
                    self.driver.tabs()
                self.assertEqual(len(tries), 10, "five times for each tab")
                self.peer.answers[method] = before

    def test_silence(self):
        self.peer.answers["Target.getTargets"] = lambda call: None
        self.assertIn("does not answer", self.failed())
        self.peer.answers["Target.getTargets"] = {"targetInfos": [target("A", 0)]}
        self.peer.answers["Runtime.evaluate"] = lambda call: None
        begun = time.monotonic()
        self.assertEqual(self.driver.tabs()[0]["opened_ms"], 0)
        self.assertIsNone(self.driver.call("text", "A")["text"])
        self.assert_soon(time.monotonic() - begun, 1)
        self.peer.answers["Page.close"] = lambda call: None
        self.assertNotIn("failed", self.driver.call("close", "A"), "the page takes its time")
        begun = len(self.peer.calls)
        self.driver.tabs()
        self.assertNotIn("Target.attachToTarget", self.peer.methods()[begun:], "a silent page is asked once")

    def test_late_answers_are_nobody_elses(self):
        held = []

        def late(call):
            held.append(call)
        self.peer.answers["Target.getTargets"] = late
        self.failed()
        again = target("LATE", 0)

        def both(call):
            old = json.dumps({"id": held[0]["id"], "result": {"targetInfos": [again]}}).encode() + b"\0"
            return old + json.dumps({"id": call["id"], "result": {"targetInfos": [target("NEW", 0)]}}).encode() + b"\0"
        self.peer.answers["Target.getTargets"] = both
        self.assertEqual([tab["id"] for tab in self.driver.tabs()], ["NEW"])

    def test_events_of_others(self):
        def noisy(call):
            events = [{"method": "Target.attachedToTarget", "sessionId": "other",
                       "params": {"sessionId": "evil", "targetInfo": {"type": "page", "targetId": "E"}}},
                      {"method": "Target.attachedToTarget", "sessionId": call["sessionId"],
                       "params": {"sessionId": "frame", "targetInfo": {"type": "iframe", "targetId": "F"}}},
                      {"method": "Target.attachedToTarget", "sessionId": call["sessionId"],
                       "params": {"sessionId": "pre", "targetInfo": {"type": "page", "subtype": "prerender", "targetId": "F"}}},
                      {"method": "Target.detachedFromTarget", "params": {}}, {"method": "x", "params": [1]}, {"method": "y"},
                      {"id": 99999, "result": {}}, {"id": -1, "result": {}}]
            return b"".join(json.dumps(event).encode() + b"\0" for event in events) + Peer.follow(call)
        self.peer.answers["Target.setAutoAttach"] = noisy
        self.assertNotIn("failed", self.driver.call("close", "A"))
        closed = [call for call in self.peer.calls if call["method"] == "Page.close"]
        self.assertEqual([call["sessionId"] for call in closed], ["5A-p"])

    def test_many_tabs(self):
        self.peer.answers["Target.getTargets"] = {"targetInfos": [target(f"T{i}", i) for i in range(250)]}
        self.assertEqual(len(self.driver.tabs()), 250)
        until("all pages are asked", lambda: all(tab["opened_ms"] for tab in self.driver.tabs()))

    def test_a_thousand_silent_pages(self):
        """Calls that are never answered do not fill the memory."""
        self.peer.answers["Runtime.evaluate"] = lambda call: None
        for i in range(60):
            self.peer.answers["Target.getTargets"] = {"targetInfos": [target(f"T{i}x{k}", k) for k in range(20)]}
            self.assertEqual(len(until("a list", lambda: self.driver.ask(dump=True).get("tabs"))), 20)

    def test_a_browser_that_was_started_again(self):
        """The first command after a restart works too."""
        self.assertEqual(len(self.driver.tabs()), 2)
        begun = self.peer
        for _ in range(2):
            begun.end()
            os.unlink(begun.path)
            begun = Peer(begun.path)
            self.addCleanup(begun.end)
            self.assertEqual(len(self.driver.tabs()), 2)
        begun.end()
        self.assertIn("fm-system chrome", self.failed())

    def test_nobody_is_there(self):
        self.peer.end()
        self.assertIn("fm-system chrome", self.failed())
        os.unlink(self.peer.path)
        self.failed()


class WebSocketPeer(Peer):
    """A browser that listens on a port. `greeting`: its answer in place of 101, as a function of the key."""

    greeting = None

    def listen(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.heads, self.wrong, self.pongs = [], 0, 0
        with open(f"{self.path}/DevToolsActivePort", "w", encoding="ascii") as file:
            file.write(f"{self.listener.getsockname()[1]}\n/devtools/browser/1-2")

    def read(self, connection):
        file = connection.makefile("rb")
        head = b"".join(iter(file.readline, b"\r\n")).decode()
        self.heads.append(head)
        key = head.partition("Sec-WebSocket-Key: ")[2].partition("\r\n")[0]
        proof = base64.b64encode(hashlib.sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
        hello = f"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {proof}\r\n\r\n"
        if self.greeting:
            connection.sendall(self.greeting(hello))
        else:
            for byte in hello.encode():
                connection.sendall(bytes([byte]))
        while True:
            start = file.read(2)
            if len(start) < 2:
                return
            size = start[1] & 127
            size = struct.unpack(">H", file.read(2))[0] if size == 126 else size
            mask = file.read(4)
            text = bytes(byte ^ mask[i % 4] for i, byte in enumerate(file.read(size)))
            self.wrong += start[0] not in (0x81, 0x8a, 0x88) or not start[1] & 128
            self.pongs += start[0] == 0x8a and text == b"hi"
            if start[0] == 0x81:
                yield text

    def frame(self, data):
        """Each message in two frames, with a ping between them."""
        frames = b""
        for message in data.split(b"\0")[:-1]:
            frames += b"\x01\x05" + message[:5] + b"\x89\x02hi"
            rest = message[5:]
            size = bytes([len(rest)]) if len(rest) < 126 else b"\x7e" + struct.pack(">H", len(rest))
            frames += b"\x80" + size + rest
        return frames


class Port(TimedTest):
    def start(self, greeting=None, raw=None):
        folder = tempfile.mkdtemp(prefix="fm-chrome-")
        self.addCleanup(shutil.rmtree, folder)
        peer = WebSocketPeer(folder)
        self.addCleanup(peer.end)
        peer.greeting = greeting
        if raw is not None:
            peer.frame = lambda data: raw
        driver = Driver(f"{folder}/none", folder)
        self.addCleanup(driver.end)
        return peer, driver

    def setUp(self):
        _, driver = self.start()
        if "wslay" in driver.ask(dump=True).get("detail", ""):
            self.skipTest("built without wslay and libcrypto")

    def test_it_works(self):
        peer, driver = self.start()
        self.assertEqual([tab["id"] for tab in driver.tabs()], ["A", "B"])
        self.assertIn("GET /devtools/browser/1-2 HTTP/1.1\r\n", peer.heads[0])
        self.assertIn("Host: 127.0.0.1:", peer.heads[0])
        self.assertNotIn("Origin", peer.heads[0])
        until("pings are answered", lambda: peer.pongs)
        self.assertEqual(peer.wrong, 0, "frames that a client must not send")


    @unittest.skipIf(os.geteuid(), "only root can be two users")
    def test_another_users_program_on_the_port(self):
        """Another user's program listens on the port of a browser that has ended."""
        os.seteuid(65534)
        try:
            stranger = socket.create_server(("127.0.0.1", 0))
        finally:
            os.seteuid(0)
        self.addCleanup(stranger.close)
        folder = tempfile.mkdtemp(prefix="fm-chrome-")
        self.addCleanup(shutil.rmtree, folder)
        with open(f"{folder}/DevToolsActivePort", "w", encoding="ascii") as file:
            file.write(f"{stranger.getsockname()[1]}\n/devtools/browser/1-2")
        driver = Driver(f"{folder}/none", folder)
        self.addCleanup(driver.end)
        self.assertIn("no browser can be reached", driver.ask(dump=True)["detail"])
        stranger.settimeout(0)
        self.assertRaises(BlockingIOError, stranger.accept)

    def test_handshakes_that_fail(self):
        for greeting in (lambda hello: hello.replace("101", "200").encode(),
                         lambda hello: hello.replace("Accept: ", "Accept: x").encode(),
                         lambda hello: hello.replace("Accept", "Except").encode(), lambda hello: b"x" * 9000,
                         lambda hello: b"\0\0\r\n\r\n", lambda hello: b"HTTP/1.1 403 Forbidden\r\n\r\n"):
            _, driver = self.start(greeting)
            self.assertEqual(driver.ask(dump=True).get("failed"), "UNAVAILABLE")

    def test_the_user_is_asked_first(self):
        allowed = threading.Event()

        def ask(hello):
            allowed.wait(WAIT)
            return hello.encode()
        peer, driver = self.start(ask)
        self.assertIn("asks", driver.ask(dump=True)["detail"])
        allowed.set()
        until("it goes on where it was", lambda: len(driver.ask(dump=True).get("tabs", [])) == 2)
        self.assertEqual(len(peer.heads), 1, "the user is asked once")

    def test_frames_that_make_no_sense(self):
        for raw in (b"\x81\x05hello", b"\x82\x02{}", b"\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", b"\xf1\x00",
                    b"\x81\x82abcd{}", b"\x88\x00", b"\x81\x7f\x00\x00\x00\x00\x70\x00\x00\x00",
                    b"\x81\x04\x00{}\x00", b"\x80\x00", b"\x81\x02\xff\xfe"):
            with self.subTest(raw):
                _, driver = self.start(raw=raw)
                self.assertEqual(driver.ask(dump=True).get("failed"), "UNAVAILABLE")

    def test_files_that_make_no_sense(self):
        for text in ("", "x", "0\n/a", "70000\n/a", "-1\n/a", "80", "80\n", "80\na", "1\n/a", "99999999999999999999\n/a",
                     "a" * 5000):
            with self.subTest(text), tempfile.TemporaryDirectory() as folder:
                with open(f"{folder}/DevToolsActivePort", "w", encoding="ascii") as file:
                    file.write(text)
                driver = Driver(f"{folder}/none", folder)
                self.assertEqual(driver.ask(dump=True).get("failed"), "UNAVAILABLE")
                driver.end()


NOISY = """#!/usr/bin/env python3
import json, os, select
tab = {"targetId": "A", "type": "tab", "title": "x", "url": "http://a.example/",
       "embedderData": {"tabStripIndex": 0, "tabActive": True}}
changed = {"method": "Target.targetInfoChanged", "params": {"targetInfo": {**tab, "url": "http://a.example/" + "x" * 2000}}}
answers = {"Target.getTargets": {"targetInfos": [tab]}, "Browser.getWindowForTarget": {"windowId": 7}}
rest = b""
told = 0
def say(data):
    while data:
        data = data[os.write(4, data):]
while True:
    more = told < 40000
    if select.select([3], [], [], 0 if more else None)[0]:
        data = os.read(3, 65536)
        if not data:
            break
        *whole, rest = (rest + data).split(b"\\0")
        for message in whole:
            call = json.loads(message)
            found = call["method"] in answers or "Discover" in call["method"]
            answer = {"result": answers.get(call["method"], {})} if found else {"error": {"code": 1, "message": "no"}}
            say(json.dumps({"id": call["id"], **answer}).encode() + b"\\0")
    if more:
        say(json.dumps(changed).encode() + b"\\0")
        told += 1
        if told == 40000:
            open(os.environ["FM_TOLD"], "w").close()
"""


class Broker(TimedTest):
    """`fm-system chrome` with a script for its browser."""

    def test_a_browser_that_ends_at_once(self):
        """The browser was never usable, and nothing is reported."""
        folder = tempfile.mkdtemp(prefix="fm-chrome-")
        self.addCleanup(shutil.rmtree, folder)
        for browser in ("true", "false"):
            done = subprocess.run([DRIVER, "chrome", "--browser", shutil.which(browser), "--profile", f"{folder}/profile",
                                   "--socket", f"{folder}/run/s"], capture_output=True, timeout=WAIT)
            self.assertEqual(done.returncode, 69)
            self.assertIn(b"ended before", done.stderr)
            self.assertNotIn(b"can be used, at", done.stderr)

    def test_a_broker_that_is_busy_keeps_its_socket(self):
        folder = tempfile.mkdtemp(prefix="fm-chrome-")
        self.addCleanup(shutil.rmtree, folder)
        os.mkdir(f"{folder}/run", 0o700)
        listener = socket.socket(socket.AF_UNIX)  # this listener takes the place of a stopped broker
        self.addCleanup(listener.close)
        listener.bind(f"{folder}/run/s")
        listener.listen(0)
        with socket.socket(socket.AF_UNIX) as first:
            first.connect(f"{folder}/run/s")
            done = subprocess.run([DRIVER, "chrome", "--browser", shutil.which("true"), "--profile", f"{folder}/profile",
                                   "--socket", f"{folder}/run/s"], capture_output=True, timeout=WAIT)
        self.assertEqual(done.returncode, 69)
        self.assertIn(b"runs already", done.stderr)
        self.assertTrue(os.path.exists(f"{folder}/run/s"))

    def test_a_browser_that_tells_much_while_nobody_asks(self):
        """Pages that change their titles all the time do not end the connection of a client that sends no request for a while."""
        folder = tempfile.mkdtemp(prefix="fm-chrome-")
        self.addCleanup(shutil.rmtree, folder)
        with open(f"{folder}/browser", "w", encoding="utf-8") as file:
            file.write(NOISY)
        os.chmod(f"{folder}/browser", 0o755)
        broker = subprocess.Popen([DRIVER, "chrome", "--browser", f"{folder}/browser", "--profile", f"{folder}/profile",
                                   "--socket", f"{folder}/run/s"], stderr=subprocess.PIPE,
                                  env={**os.environ, "FM_TOLD": f"{folder}/told"})
        self.addCleanup(broker.stderr.close)
        self.addCleanup(broker.wait)
        self.addCleanup(broker.terminate)
        self.assertIn(b"can be used", broker.stderr.readline())
        driver = Driver(f"{folder}/run/s")
        self.addCleanup(driver.end)
        self.assertEqual(len(driver.tabs()), 1)
        with socket.socket(socket.AF_UNIX) as silent:
            silent.connect(f"{folder}/run/s")
            silent.sendall(b'{"id":1,"method":"Target.setDiscoverTargets",'
                           b'"params":{"discover":true,"filter":[{"type":"tab"}]}}\0')
            until("it has told much", lambda: os.path.exists(f"{folder}/told"))
            self.assertEqual(len(driver.tabs()), 1)
            silent.sendall(b'{"id":2,"method":"Browser.getVersion"}\0')
            silent.settimeout(WAIT)
            got = b""
            while b'"id":2' not in got[-65536:]:
                piece = silent.recv(65536)
                self.assertTrue(piece, "the connection of who did not read for a while has ended")
                got += piece
        self.assertLess(len(got), 4 << 20)


class Urls(unittest.TestCase):
    def test_is_web(self):
        driver = Driver("/nowhere")
        self.addCleanup(driver.end)
        for url, web in (("http://a.example", True), ("HTTPS://a.example/x?y#z", True), ("https://[::1]:80/", True),
                         ("http:a.example", False), ("https:///x", False), ("ftp://a.example", False),
                         ("httpsx://a.example", False),
                         ("http://a b.example", False), ("http://a.example/\n", False), ("http://u@a.example", False),
                         ("http://a.example/" + "x" * 8192, False), ("file:///x", False), ("", False), ("http://", False)):
            with self.subTest(url[:40]):
                self.assertEqual(driver.ask(url=url)["is_web"], web)


if __name__ == "__main__":
    unittest.main()
