"""Chrome's tabs with the real Chromium, by the broker of `fm-system chrome` and by a port. FM_SYSTEM_CHROME_DRIVER names the
program of chrome_driver.c. A user interferes during bulk closes; FM_CLOSES is their number."""

import json
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import chrome
from chrome import CHROMIUM, FLAGS, WAIT, Browser, Driver, Screen, Web, descendants, listening_ports, until
from patience import TimedTest

for program in (CHROMIUM, "Xvfb"):
    if not program or not shutil.which(program):
        print(f"SKIPPED: there is no {program or 'chromium'} (packaging/setup.sh --tests)")
        sys.exit(77)

STUBBORN = "<title>stubborn</title><button style='position:fixed;inset:0'>x</button>" \
           "<script>addEventListener('beforeunload',e=>{e.preventDefault();e.returnValue='no'})</script>"


class Client:
    """Speaks CDP with the broker, as a hostile client could."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(WAIT)
        self.socket.connect(path)
        self.rest = b""
        self.last_id = 0

    def next(self):
        while b"\0" not in self.rest:
            data = self.socket.recv(65536)
            if not data:
                return None
            self.rest += data
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def call(self, method, params=None, **more):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, **more, **({} if params is None else {"params": params})}
        self.socket.sendall(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next()
            if answer is None or answer.get("id") == self.last_id:
                return answer

    def close(self):
        self.socket.close()


# Hangs as soon as it is in front, but not before its title and time are known.
LOOP = "<title>loop</title><script>document.onvisibilitychange = () => { while (!document.hidden); }</script>"


class Case(TimedTest):
    @classmethod
    def setUpClass(cls):
        cls.screen = Screen()
        cls.addClassCleanup(cls.screen.end)
        cls.web = Web()
        cls.addClassCleanup(cls.web.end)

    def start(self, *paths, **options):
        """Starts a browser that shows these pages, and a driver for it."""
        browser = Browser(self.screen, *map(self.web.url, paths), **options)
        self.addCleanup(browser.end)
        driver = Driver(browser.socket)
        self.addCleanup(driver.end)
        self.shown(driver, len(paths))
        return browser, driver

    def shown(self, driver, count):
        """Waits until there are this many tabs with loaded pages."""
        def look():
            told = driver.ask(dump=True).get("tabs", [])
            # At first, the title is the address.
            titled = [tab for tab in told if tab["title"] and not tab["url"].endswith("//" + tab["title"])]
            return len(told) == len(titled) == count and all(tab["opened_ms"] for tab in told)
        until(f"{count} tabs are shown", look)

    def open(self, driver, path):
        told = driver.call("open", self.web.url(path))
        self.assertNotIn("failed", told)
        until("the page is shown", lambda: any(tab["id"] == told["tab"] and tab["opened_ms"] for tab in driver.tabs()))
        return told["tab"]

    def paths(self, driver):
        return [tab["url"].removeprefix(self.web.url("")) for tab in driver.tabs()]

    def result(self, answer):
        self.assertNotIn("error", answer)
        return answer["done"]["results"][0]


class Tabs(Case):
    def test_the_four_commands(self):
        before_ms = time.time() * 1000
        _, driver = self.start("/a", "/b", "/c")
        listed = self.result(driver.command("list_tabs"))["tabs"]
        self.assertEqual([(tab["index"], tab["title"], tab["is_active"], tab["window_index"], tab["local_index"])
                          for tab in listed], [(1, "/a", True, 1, 1), (2, "/b", False, 1, 2), (3, "/c", False, 1, 3)])
        for tab in driver.tabs():
            self.assertTrue(before_ms - 1000 < tab["opened_ms"] < time.time() * 1000 + 1000, tab)
        self.assertEqual(self.result(driver.command("switch_tab", tab_index=3))["title"], "/c")
        self.assertEqual([tab["active"] for tab in driver.tabs()], [False, False, True])
        self.assertEqual(self.result(driver.command("open_url", url=self.web.url("/d")))["url"], self.web.url("/d"))
        self.shown(driver, 4)
        self.assertEqual(self.paths(driver), ["/a", "/b", "/c", "/d"])
        self.assertTrue(driver.tabs()[3]["active"])
        self.result(driver.command("list_tabs"))
        self.assertEqual(self.result(driver.command("close_tab", tab_indices=[3, 1]))["closed"], [1, 3])
        self.assertEqual(self.paths(driver), ["/b", "/d"])

    def test_only_web_addresses(self):
        _, driver = self.start("/a")
        for url in ("file:///etc/passwd", "chrome://settings", "javascript:alert(1)", "data:text/html,x", "about:blank",
                    "view-source:http://a.example", "http:/a.example", "http://a.example/ b", "https://u:p@a.example/", ""):
            with self.subTest(url):
                self.assertEqual(driver.call("open", url)["failed"], "INVALID_REQUEST")
        self.assertEqual(self.paths(driver), ["/a"])

    def test_two_windows(self):
        browser, driver = self.start("/a", "/b")
        # a second browser process on the profile passes its page to the first one, as a new window
        subprocess.run([CHROMIUM, f"--user-data-dir={browser.profile}", *FLAGS, "--new-window", self.web.url("/c")],
                       env=self.screen.env, timeout=WAIT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.shown(driver, 3)
        listed = self.result(driver.command("list_tabs"))["tabs"]
        self.assertEqual([(tab["title"], tab["window_index"], tab["local_index"], tab["is_active"]) for tab in listed],
                         [("/a", 1, 1, True), ("/b", 1, 2, False), ("/c", 2, 1, True)])
        self.result(driver.command("switch_tab", tab_index=2))
        self.assertEqual([tab["active"] for tab in driver.tabs()], [False, True, True])
        self.open(driver, "/d")
        self.assertEqual(self.paths(driver), ["/a", "/b", "/d", "/c"], "it opens in the window that was switched to")

    def test_what_pages_are_about(self):
        self.web.pages["/meta"] = "<title>m</title><meta name=Description content='  About\n\tthis  '><p>no"
        self.web.pages["/long"] = "<title>l</title><p>" + "\U0001f600a " * 300
        self.web.pages["/lies"] = "<title>x</title><p>true</p><script>document.querySelector=()=>({content:'a lie'});" \
                                  "Array.from=()=>['a lie'];String.prototype.trim=()=>'a lie'</script>"
        self.web.pages["/half"] = "<title>h</title><p id=p><script>p.textContent='x\\ud800y\\u202ez\\u0000'</script>"
        self.web.pages["/empty"] = "<title>e</title>"
        _, driver = self.start("/meta", "/long", "/lies", "/half", "/empty")
        texts = [driver.call("text", tab["id"])["text"] for tab in driver.tabs()]
        self.assertEqual(texts[0], "About this")
        self.assertEqual(texts[1], ("\U0001f600a " * 300)[:200].rstrip())
        self.assertEqual(texts[2], "true")
        self.assertEqual(texts[3], "x\ufffdy z")
        self.assertIsNone(texts[4])

    def test_a_page_that_hangs(self):
        self.web.pages["/loop"] = LOOP
        _, driver = self.start("/a", "/loop")
        loop = driver.tabs()[1]["id"]
        driver.call("activate", loop)
        until("it hangs", lambda: driver.call("text", loop)["text"] is None)
        until("the other page answers", lambda: driver.call("text", driver.tabs()[0]["id"])["text"] == "page /a")
        self.assertEqual([tab["title"] for tab in driver.tabs()], ["/a", "loop"])
        self.assertNotIn("failed", driver.call("activate", driver.tabs()[0]["id"]))

    def test_a_page_that_refuses(self):
        self.web.pages["/stubborn"] = STUBBORN
        if not shutil.which("xdotool"):
            self.skipTest("there is no xdotool: a page may refuse only what a user has touched")
        _, driver = self.start("/stubborn", "/b")

        def touch():
            subprocess.run(["xdotool", "mousemove", "500", "500", "click", "1"], env=self.screen.env, check=True, timeout=WAIT)
        touch()
        self.result(driver.command("list_tabs"))
        result = self.result(driver.command("close_tab", tab_indices=[1, 2]))
        self.assertEqual((result["closed"], result["blocked"]), ([2], [1]))
        self.assertEqual(self.paths(driver), ["/stubborn"])
        self.assertNotIn("failed", driver.ask(dump=True))  # no error: the browser is waiting for its user's answer

    def test_other_lists_while_tabs_come_and_go(self):
        _, driver = self.start("/a", "/b")
        stop = threading.Event()
        other = Driver(f"{os.path.dirname(os.path.dirname(self.socket_of(driver)))}/run/chrome.sock")
        self.addCleanup(other.end)

        def user():
            while not stop.is_set():
                tab = other.call("open", self.web.url("/user"))["tab"]
                other.call("close", tab)
        thread = threading.Thread(target=user)
        thread.start()
        try:
            for _ in range(40):
                tabs = driver.tabs()
                self.assertLessEqual({"/a", "/b"}, set(self.paths(driver)))
                self.assertTrue(all(tab["window"] for tab in tabs))
        finally:
            stop.set()
            thread.join()

    @staticmethod
    def socket_of(driver):
        return driver.process.args[1]

    def test_no_memory_of_what_was_closed(self):
        _, driver = self.start("/a")
        tab = self.open(driver, "/b")
        self.assertNotIn("failed", driver.call("close", tab))
        until("it is closed", lambda: self.paths(driver) == ["/a"])
        for what in ("close", "activate", "text"):
            self.assertEqual(driver.call(what, tab)["failed"], "NOT_FOUND")
        for id in ("", "no such", "a" * 200, '"},{"'):
            self.assertEqual(driver.call("close", id)["failed"], "NOT_FOUND")

    def test_bulk_closes_with_a_user_who_interferes(self):
        """A user opens, closes, and goes on to other pages while tabs are closed: only the intended tabs close."""
        seed = int(os.environ.get("FM_SEED", random.randrange(1 << 30)))
        rounds = int(os.environ.get("FM_CLOSES", "5"))
        print(f"seed {seed}, {rounds} rounds")
        _, driver = self.start("/keep-first")
        user = Driver(self.socket_of(driver))
        self.addCleanup(user.end)
        closed = 0
        for round_ in range(rounds):
            with self.subTest(seed=seed, round=round_):
                closed += self.bulk(random.Random(f"{seed}/{round_}"), driver, user, round_)
        print(f"{closed} tabs closed, 0 wrong")
        self.assertGreater(closed, rounds)

    def bulk(self, chance, driver, user, round_):
        kinds = [chance.choice(("close", "keep")) for _ in range(chance.randint(2, 6))] + ["close", "close"]
        for i, kind in enumerate(kinds):
            self.open(driver, f"/{kind}-{round_}-{i}")
        listed = self.result(driver.command("list_tabs"))["tabs"]
        wanted = [tab["index"] for tab in listed if "/close-" in tab["url"]]
        ids = {tab["id"]: tab["url"] for tab in driver.tabs()}
        by_url = {url: id for id, url in ids.items()}
        mine = chance.sample([url for url in by_url if "keep-first" not in url], 2)
        opened = []

        def interfere():
            for step in range(4):
                time.sleep(chance.random() * 0.004)
                if step % 2 == 0:
                    opened.append(user.call("open", self.web.url(f"/keep-user-{round_}-{step}"))["tab"])
                else:
                    user.call("close" if chance.random() < 0.5 else "activate", by_url[mine[step // 2]])
        thread = threading.Thread(target=interfere)
        closing = {}
        thread.start()
        answer = driver.command("close_tab", tab_indices=wanted)
        thread.join()
        if "error" in answer:  # the user closed one of them before the command was checked
            self.assertEqual(answer["error"]["code"], "unknown_tab", answer)
        else:
            closing = self.result(answer)
            self.assertEqual(sorted(closing["closed"] + closing["blocked"] + closing["changed"]), wanted)
        left = {tab["id"] for tab in driver.tabs()}
        wrong = [url for id, url in ids.items() if id not in left and "/close-" not in url and url not in mine]
        self.assertEqual(wrong, [], "tabs that nobody meant")
        self.assertEqual([id for id in opened if id not in left], [], "the user's new tabs")
        for index in closing.get("closed", []):
            self.assertNotIn(by_url[listed[index - 1]["url"]], left)
        for tab in left - {id for id, url in ids.items() if "keep-first" in url}:
            user.call("close", tab)
        until("only the first is left", lambda: self.paths(driver) == ["/keep-first"])
        return len(closing.get("closed", []))


class Broker(Case):
    def refused_by_the_broker(self, answer):
        """Checks that the broker has refused the call, and not the browser, which never gets it."""
        self.assertRegex(answer["error"]["message"],
                         "^(fm-system does not make this call|params must be an object|there is no such session)")

    def test_what_is_passed_on(self):
        browser, driver = self.start("/a")
        tab = driver.tabs()[0]["id"]
        client = Client(browser.socket)
        self.addCleanup(client.close)
        attach = {"targetId": tab, "flatten": True}
        tabs = [{"type": "tab"}]
        for method, params in (
                ("Browser.close", None), ("Browser.crash", None), ("Storage.getCookies", {}), ("Network.enable", {}),
                ("Target.exposeDevToolsProtocol", attach), ("Target.closeTarget", {"targetId": tab}),
                ("Target.createBrowserContext", {}), ("Target.getTargets", {}), ("Target.getTargets", {"filter": []}),
                ("Target.getTargets", {"filter": [{"type": "page"}]}),
                ("Target.createTarget", {"url": "file:///etc/passwd", "forTab": True}),
                ("Target.createTarget", {"url": "chrome://settings", "forTab": True}),
                ("Target.createTarget", {"url": "http://a.example/\0", "forTab": True}),
                ("Target.createTarget", {"url": self.web.url("/x")}),
                ("Target.createTarget", {"url": self.web.url("/x"), "forTab": True, "browserContextId": "1"}),
                ("Target.attachToTarget", {"targetId": tab}), ("Target.attachToBrowserTarget", {}),
                ("Target.sendMessageToTarget", {"message": "{}", "targetId": tab}), ("Runtime.evaluate", {"expression": "1"}),
                ("Target.detachFromTarget", {"sessionId": "0"}), ("", {}), ("Target.getTargets", [1])):
            with self.subTest(method=method, params=params):
                self.refused_by_the_broker(client.call(method, params))
        told = client.call("Target.getTargets", {"filter": tabs})["result"]["targetInfos"]
        self.assertEqual([target["type"] for target in told], ["tab"])
        self.assertEqual(self.paths(driver), ["/a"])

        session = client.call("Target.attachToTarget", attach)["result"]["sessionId"]
        for method, params in (("Runtime.evaluate", {"expression": "document.cookie"}), ("Page.navigate", {"url": "http://x"}),
                               ("Runtime.evaluate", {"expression": "document.cookie", "contextId": 1, "returnByValue": True}),
                               ("Target.setAutoAttach", {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}),
                               ("Page.createIsolatedWorld", {"frameId": tab, "worldName": "w"}), ("Page.close", {"x": 1})):
            with self.subTest(method=method, params=params):
                self.refused_by_the_broker(client.call(method, params, sessionId=session))
        other = Client(browser.socket)
        self.addCleanup(other.close)
        for method, params, more in (
                ("Target.setAutoAttach", {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": True},
                 {"sessionId": session}), ("Target.detachFromTarget", {"sessionId": session}, {}),
                ("Page.close", {}, {"sessionId": session})):
            self.assertEqual(other.call(method, params, **more)["error"]["message"], "there is no such session")
        self.assertEqual(self.paths(driver), ["/a"])
        self.assertIn("result", client.call("Target.detachFromTarget", {"sessionId": session}))

    def test_sessions_that_were_left_take_no_room(self):
        _, driver = self.start("/a")
        tab = driver.tabs()[0]["id"]
        for _ in range(600):  # more calls than there is room for
            driver.call("text", tab)
        until("pages still answer", lambda: driver.call("text", tab).get("text") == "page /a")

    def test_calls_without_an_answer_take_no_room(self):
        """A page that closes or hangs does not answer any more."""
        self.web.pages["/loop"] = LOOP
        browser, driver = self.start("/a", "/loop")
        loop = driver.tabs()[1]["id"]
        driver.call("activate", loop)
        until("it hangs", lambda: driver.call("text", loop)["text"] is None)
        follow = {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": True}
        for _ in range(30):
            client = Client(browser.socket)
            for _ in range(20):
                session = client.call("Target.attachToTarget", {"targetId": loop, "flatten": True})["result"]["sessionId"]
                message = {"id": 0, "method": "Target.setAutoAttach", "params": follow, "sessionId": session}
                client.socket.sendall(json.dumps(message).encode() + b"\0")
                page = until("the page", lambda: (client.next().get("params") or {}).get("sessionId"))
                world = {"frameId": loop, "worldName": "fm-system"}
                message = {"id": 0, "method": "Page.createIsolatedWorld", "params": world, "sessionId": page}
                client.socket.sendall(json.dumps(message).encode() + b"\0")
            client.close()
        until("pages still answer", lambda: driver.call("text", driver.tabs()[0]["id"])["text"] == "page /a")

    def test_garbage_ends_one_connection(self):
        browser, driver = self.start("/a")
        for garbage in (b"hello\0", b"\0", b"[]\0", b'{"method":"Target.getTargets"}\0', b'{"id":"1","method":"x"}\0',
                        b'{"id":1e3,"method":"x"}\0', b"\xff\0", b"x" * 70000, b"[" * 100 + b"\0"):
            client = Client(browser.socket)
            client.socket.sendall(garbage)
            with self.subTest(garbage[:20]):
                try:
                    self.assertIsNone(client.next())
                except ConnectionError:
                    pass
            client.close()
        self.assertEqual(self.paths(driver), ["/a"])

    def test_who_may_connect(self):
        browser, driver = self.start("/a")
        self.assertEqual(stat.S_IMODE(os.stat(browser.socket).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(browser.socket)).st_mode), 0o700)
        self.assertEqual(listening_ports(descendants(browser.process.pid)), [])
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        try:  # the broker checks the user itself, whatever the file modes are
            os.chmod(browser.folder, 0o755)
            os.chmod(os.path.dirname(browser.socket), 0o755)
            os.chmod(browser.socket, 0o666)
            self.assertEqual(self.connect_as_nobody(browser.socket), b"b''")
        finally:
            os.chmod(os.path.dirname(browser.socket), 0o700)
        self.assertEqual(self.paths(driver), ["/a"])

    @staticmethod
    def connect_as_nobody(path):
        """What a process of another user reads from the socket, as Python prints it."""
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
                client = socket.socket(socket.AF_UNIX)
                client.settimeout(WAIT)
                client.connect(path)
                os.write(write, repr(client.recv(9)).encode())
            except OSError as error:
                os.write(write, repr(error).encode())
            finally:
                os._exit(0)
        os.close(write)
        os.waitpid(pid, 0)
        with os.fdopen(read, "rb") as file:
            return file.read()

    def test_the_end(self):
        browser, driver = self.start("/a")
        pids = descendants(browser.process.pid)
        browser.process.terminate()
        self.assertEqual(browser.process.wait(WAIT), 0)
        self.assertFalse(os.path.exists(browser.socket))
        self.assertEqual(driver.ask(dump=True)["failed"], "UNAVAILABLE")
        self.assertIn("fm-system chrome", driver.ask(dump=True)["detail"])
        until("no process is left", lambda: not [pid for pid in pids if os.path.exists(f"/proc/{pid}/exe")])
        again = Browser(self.screen, self.web.url("/again"), folder=browser.folder)
        self.addCleanup(again.end)
        self.shown(driver, 1)
        self.assertEqual(self.paths(driver), ["/again"])

    def test_the_broker_is_killed(self):
        browser, driver = self.start("/a")
        pids = descendants(browser.process.pid)[1:]
        browser.process.send_signal(signal.SIGKILL)
        until("the browser ends with it", lambda: not [pid for pid in pids if os.path.exists(f"/proc/{pid}/exe")])
        self.assertEqual(driver.ask(dump=True)["failed"], "UNAVAILABLE")
        self.assertTrue(os.path.exists(browser.socket), "it is left, and does not keep the next one from starting")
        again = Browser(self.screen, self.web.url("/again"), folder=browser.folder)
        self.addCleanup(again.end)
        self.assertIn("can be used", again.first_line)

    def test_the_last_tab_ends_it(self):
        browser, driver = self.start("/a")
        self.assertNotIn("failed", driver.call("close", driver.tabs()[0]["id"]))
        self.assertEqual(browser.process.wait(WAIT), 0)

    def test_refused_starts(self):
        folder = tempfile.mkdtemp(prefix="fm-chrome-")
        self.addCleanup(shutil.rmtree, folder)
        for options, words in (
                (["--", "--remote-debugging-port=0"], "gets no --remote-debugging-port"),
                (["--", "-remote-debugging-address=0.0.0.0"], "gets no -remote"),
                (["--", "--user-data-dir=/tmp/x"], "the profile is --profile"),
                (["--browser", "/no/such"], "can't be started: No such file"),
                (["--socket", "relative"], "absolute"), (["--socket", f"/{'x' * 200}/s"], "shorter"), (["--what", "x"], "usage")):
            given = options if "--socket" in options else ["--socket", f"{folder}/run/s", *options]
            with self.subTest(options):
                done = subprocess.run([chrome.DRIVER, "chrome", "--profile", f"{folder}/p", *given], env=self.screen.env,
                                      capture_output=True, timeout=WAIT, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(words, done.stderr.decode())
        browser, _ = self.start("/a")
        done = subprocess.run([chrome.DRIVER, "chrome", "--profile", f"{folder}/p", "--socket", browser.socket],
                              env=self.screen.env, capture_output=True, timeout=WAIT, check=False)
        self.assertIn("runs already", done.stderr.decode())


class Port(Case):
    def test_a_browser_that_listens(self):
        folder = tempfile.mkdtemp(prefix="fm-chrome-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        browser = subprocess.Popen([CHROMIUM, "--remote-debugging-port=0", f"--user-data-dir={folder}", "--no-first-run", *FLAGS,
                                    self.web.url("/a"), self.web.url("/b")], env=self.screen.env, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(browser.wait, WAIT)
        self.addCleanup(browser.terminate)
        driver = Driver(f"{folder}/no-socket", f"{folder}/nothing", folder)
        self.addCleanup(driver.end)
        until("the port is told", lambda: os.path.exists(f"{folder}/DevToolsActivePort"))
        if "WebSocket" in driver.ask(dump=True).get("detail", ""):
            self.skipTest("built without wslay and libcrypto")
        self.shown(driver, 2)
        self.assertEqual(self.paths(driver), ["/a", "/b"])
        tab = self.open(driver, "/c")
        self.assertEqual(driver.call("text", tab)["text"], "page /c")
        self.result(driver.command("list_tabs"))
        self.assertEqual(self.result(driver.command("close_tab", tab_indices=[1, 3]))["closed"], [1, 3])
        browser.terminate()
        browser.wait(WAIT)
        self.assertEqual(driver.ask(dump=True)["failed"], "UNAVAILABLE")


if __name__ == "__main__":
    unittest.main()
