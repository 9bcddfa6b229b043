#!/usr/bin/env python3
"""
Tests the tool `browser` with a real Chromium: what it does, what it refuses, and hostile pages. One server on 127.0.0.1 stands
for the web: the setting `exempt` lets the browser reach its address. Another server must not be reached, and counts requests.
"""
import base64
import ctypes
import http.server
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
from tools import DRIVER, NO_NAMESPACE, ROOT, Driver, as_nobody, landlock_abi, processes, wait_until  # noqa: E402
from patience import SANITIZED, WAIT, TimedTest  # noqa: E402

CHROMIUM = shutil.which("chromium")

PAGES = {
    "/": "<title>Home</title><h1>Hello</h1><form action=/found><input id=q name=q value=old></form>"
         "<button id=b onclick=\"document.title=document.querySelector('#q').value\">go</button>"
         "<a id=next href=/next>next</a> <a id=blank target=_blank href=/next>blank</a><p id=hidden style=display:none>x</p>"
         "<div style=position:relative><button id=under>u</button><div id=over style='position:absolute;inset:0'>o</div></div>",
    "/next": "<title>Next</title>next page",
    "/late": "<script>setTimeout(()=>{document.body.innerHTML='<p id=late>there</p>'},300)</script>",
    "/loop": "<title>Loop</title>x<script>setTimeout(()=>{for(;;);},50)</script>",
    "/liar": "<title>Liar</title><p>truth</p><script>document.querySelector=()=>{throw 1};"
             "Object.defineProperty(HTMLElement.prototype,'innerText',{get:()=>'a lie'});window.Array=window.JSON=null</script>",
    "/dialog": "<title>Dialog</title><p>after</p><script>alert('pay'); confirm('really'); prompt('how')</script>",
    "/popups": "<title>Popups</title><p>still here</p><script>for(let i=0;i<30;i++)window.open('/next')</script>",
    "/big": "<title>Big</title><script>document.write('<p>' + 'word '.repeat(400000))</script>",
    "/bidi": "<title>Bidi</title><p>a\u202eb</p>",
    "/file": "<title>File</title><p>mine</p><script>location='file:///etc/passwd';window.open('file:///etc/passwd')</script>"
             "<iframe src=file:///etc/passwd></iframe><meta http-equiv=refresh content='0;url=file:///etc/passwd'>",
}


class Server:
    """A web server. `pages` has PAGES and the pages that a test adds. `hits` has the requested paths."""

    def __init__(self, address="127.0.0.1", port=0):
        self.hits = []
        self.pages = dict(PAGES)
        self.redirects = {}
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path = self.path.partition("?")[0]
                server.hits.append(self.path)
                if path in server.redirects:
                    self.send_response(302)
                    self.send_header("Location", server.redirects[path])
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                body = server.pages.get(path, f"<title>Other</title>{self.path}").encode("utf-8", "surrogatepass")
                self.send_response(200)
                if path == "/download":
                    self.send_header("Content-Disposition", "attachment; filename=evil.sh")
                kind = "text/javascript" if path.endswith(".js") else "text/html"
                self.send_header("Content-Type", kind + "; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Listener(http.server.ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

        self.server = Listener((address, port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.port}{path}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(WAIT)


class Names:
    """
    A DNS server on 127.0.0.1. The name rebind.example has one address at first. When `changed` is true, the server alternates
    between this address and another one. So a program that asks again after its check would connect to the other address.
    """

    def __init__(self, first, later):
        self.changed = lambda: False
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        self.addresses = [first, later]
        self.asked = 0
        self.names = set()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while (message := self.socket.recvfrom(512))[0] != b"end":
            query, sender = message
            end = query.index(b"\0", 12) + 5
            self.names.add(b".".join(re.findall(rb"[\0-\x1f]([^\0-\x1f]+)", query[12:end - 4])).decode())
            answer = b""
            if query[12:end - 2] == b"\6rebind\7example\0\0\1":  # a query for an A record
                self.asked += self.changed()
                answer = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(self.addresses[self.asked % 2])
            self.socket.sendto(query[:2] + b"\x84\0\0\1\0" + bytes([bool(answer)]) + b"\0\0\0\0" + query[12:end] + answer, sender)
        self.socket.close()

    def close(self):
        self.socket.sendto(b"end", ("127.0.0.1", 53))
        self.thread.join(WAIT)


class Network:
    """
    A separate network for the processes that this thread starts. It has loopback, and an interface with public addresses but no
    host. Needs root.
    """
    LIBC = ctypes.CDLL(None, use_errno=True)
    SETUP = """cd /proc/sys/net/ipv6/conf/default && echo 0 > accept_dad && echo 1 > addr_gen_mode;
               ip link set lo up && ip link add eth9 type veth peer name eth8 && ip addr add 11.22.33.44/24 dev eth9 &&
               ip addr add 2a00:1:2:3::4/64 dev eth9 nodad && ip link set eth8 up && ip link set eth9 up &&
               ip route add default dev eth9"""

    def __enter__(self):
        self.before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        if self.LIBC.unshare(0x40000000) != 0:  # CLONE_NEWNET
            os.close(self.before)
            raise unittest.SkipTest("this kernel makes no network of its own")
        if subprocess.run(self.SETUP, shell=True, capture_output=True).returncode != 0:
            self.__exit__()
            raise unittest.SkipTest("this kernel has no interface of that kind, or ip is missing")
        return self

    def __exit__(self, *_):
        self.LIBC.setns(self.before, 0)
        os.close(self.before)

    def listen(self):
        """From now on, `datagrams` sees what is sent on every interface."""
        self.sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))  # ETH_P_ALL
        self.sniffer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.sniffer.setblocking(False)

    def datagrams(self):
        """The (port, content) of each UDP datagram."""
        found = []
        try:
            while True:
                packet, (_, protocol, kind, *_) = self.sniffer.recvfrom(65536)
                six = protocol == 0x86DD
                head = 40 if six else (packet[0] & 15) * 4
                if kind == 4 and protocol in (0x86DD, 0x800) and packet[6 if six else 9] == 17:  # PACKET_OUTGOING, UDP
                    found.append((int.from_bytes(packet[head + 2:head + 4], "big"), packet[head + 8:]))
        except BlockingIOError:
            self.sniffer.close()
        return found


def some(rows):
    """Each row needs a new Chromium. A sanitizer only sees our code, and unit tests cover the addresses. So every third row is
    enough with a sanitizer."""
    return rows[::3] if SANITIZED else rows


# These tests are about Chromium; other tests cover the same lines of our code.
of_chromium = unittest.skipIf(SANITIZED, "Chromium is the same in each build")


def navigate(url):
    return {"action": "navigate", "url": url}


TEXT = {"action": "text"}


@unittest.skipUnless(CHROMIUM, "there is no chromium; packaging/setup.sh --tests brings it")
class Browser(TimedTest):
    nobody = False

    def setUp(self):
        self.web = Server()
        self.addCleanup(self.web.close)
        self.inside = Server()  # this server must not be reached
        self.addCleanup(self.inside.close)
        self.folder = tempfile.mkdtemp(prefix="fm-tools-")
        os.chmod(self.folder, 0o777)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def driver(self, **config):
        config = {"exempt": f"127.0.0.1:{self.web.port}", **config}
        return Driver(env={"TMPDIR": self.folder}, nobody=self.nobody, **config)

    def browse(self, *actions, **config):
        with self.driver(**config) as driver:
            result = driver.run("browser", {"actions": list(actions)})
            self.progress = driver.progress
        self.assertEqual(os.listdir(self.folder), [], "the profile is left")
        self.assertEqual(processes(self.folder), [])
        return result

    # ---- what it does

    def test_a_form_and_links(self):
        result = self.browse(navigate(self.web.url()), {"action": "type", "selector": "#q", "text": "grün"},
                             {"action": "click", "selector": "#b"}, {"action": "text", "selector": "h1"},
                             {"action": "type", "selector": "#q", "text": "a b", "submit": True}, TEXT,
                             navigate(self.web.url()), {"action": "click", "selector": "#blank"}, TEXT,
                             {"action": "screenshot"})
        self.assertEqual(result["end"], "done", result["output"])
        url = self.web.url
        lines = [line for line in result["output"].splitlines() if not line.startswith("(Chromium's own sandbox")]
        self.assertEqual(lines, [
            f'1. navigate: {url("/")} "Home"', "2. type: done", f'3. click: {url("/")} "grün"', f'4. text of {url("/")}:',
            "Hello",
            f'5. type: {url("/found?q=a+b")} "Other"', f'6. text of {url("/found?q=a+b")}:', "/found?q=a+b",
            f'7. navigate: {url("/")} "Home"', f'8. click: {url("/next")} "Next"', f'9. text of {url("/next")}:', "next page",
            "10. screenshot: screenshot-10.png"])
        [picture] = result["attachments"]
        self.assertEqual((picture["type"], picture["mimeType"], picture["name"]), ("image", "image/png", "screenshot-10.png"))
        png = base64.b64decode(picture["data"], validate=True)
        self.assertEqual((png[:8], int.from_bytes(png[16:20], "big")), (b"\x89PNG\r\n\x1a\n", 1280))
        self.assertIn(f"Navigate to {url('/')}", self.progress)
        self.assertTrue(self.progress[0].startswith("Starting the browser"))

    def test_wait(self):
        result = self.browse(navigate(self.web.url("/late")), {"action": "wait", "selector": "#late"},
                             {"action": "wait", "ms": 10}, TEXT)
        self.assertIn("there", result["output"])

    def test_which_action_failed(self):
        rows = (
            ({"action": "click", "selector": "#none"}, "no element matches the selector"),
            ({"action": "click", "selector": "##"}, "is the selector one of CSS?"),
            ({"action": "click", "selector": "#hidden"}, "not visible"),
            ({"action": "click", "selector": "#under"}, "covered by another one: DIV"),
            ({"action": "type", "selector": "h1", "text": "x"}, "takes no text"),
            ({"action": "text", "selector": "#none"}, "no element matches"),
            ({"action": "wait", "selector": "##"}, "is the selector one of CSS?"),
        )
        for action, expected in some(rows):
            with self.subTest(action):
                result = self.browse(navigate(self.web.url()), action, TEXT)
                self.assertEqual(result["end"], "failed")
                self.assertIn(f"actions[1] ({action['action']}) failed: ", result["output"])
                self.assertIn(expected, result["output"])
                self.assertIn("1. navigate", result["output"])  # the earlier steps are still there

    def test_a_server_that_is_not_there(self):
        self.inside.close()
        result = self.browse(navigate(self.inside.url()), exempt=f"127.0.0.1:{self.inside.port}")
        self.assertEqual(result["end"], "failed")
        self.assertIn("actions[0] (navigate) failed: net::ERR_", result["output"])
        self.inside = Server()
        self.addCleanup(self.inside.close)

    def test_what_is_shown(self):
        with self.driver() as driver:
            request = driver.prepare("browser", {"actions": [navigate("https://user.example/a?b#c"), TEXT, TEXT]})
            self.assertEqual(request["summary"], "Navigate to user.example, then 2 more actions")
            self.assertEqual(request["details"], {"actions": [navigate("https://user.example/a?b#c"), TEXT, TEXT]})
            driver.send(op="free", id=driver.next_id)
            for given in ("user.example", "user.example:8080/a?b#c", "m\u00fcnchen.example/x@y", "127.1:80"):
                request = driver.prepare("browser", {"actions": [navigate(given)]})
                self.assertEqual(request["details"], {"actions": [navigate("https://" + given)]})
                self.assertEqual(request["summary"], "Navigate to " + re.split("[/?#]", given)[0])
                driver.send(op="free", id=driver.next_id)
            request = driver.prepare("browser", {"actions": [{"action": "type", "selector": "#a", "text": "x\u202ey"}]})
            self.assertEqual(request["details"], {"actions": [{"action": "type", "selector": "#a", "text": "x<U+202E>y"}],
                                                  "escaped": True})
            driver.send(op="free", id=driver.next_id)

    def test_bad_input(self):
        rows = (
            ({}, "actions"),
            ({"actions": []}, "actions"),
            ({"actions": [TEXT] * 21}, "actions"),
            ({"actions": ["text"]}, "actions[0]"),
            ({"actions": [TEXT, {"action": "fly"}]}, "actions[1].action"),
            ({"actions": [{"action": "navigate"}]}, "actions[0].url"),
            ({"actions": [{"action": "click"}]}, "actions[0].selector"),
            ({"actions": [{"action": "type", "selector": "a"}]}, "actions[0].text"),
            ({"actions": [{"action": "wait"}]}, "actions[0].selector"),
            ({"actions": [{"action": "wait", "ms": 30001}]}, "actions[0].ms"),
            ({"actions": [{"action": "text", "url": "http://a/"}]}, "actions[0].url"),
            ({"actions": [{"action": "text", "selector": "a\0b"}]}, "actions[0].selector"),
            *(({"actions": [navigate(url)]}, "actions[0].url") for url in (
                "file:///etc/passwd", "FILE:/etc/passwd", "chrome://version", "javascript:alert(1)", "data:text/html,x",
                "view-source:http://a/", "about:blank", "ftp://a/", "//a/", "http:a", "https://", "https:///x", "http://?x",
                "https://bank.example@evil.example/", "https://evil.example\\@bank.example/", "http://a/ b", "http://a/\nb",
                " http://a/", "http://a\tb/", "a", "a.b:", "a.b:x", ".a", "-a.b", "a b.c", "me@a.example", "javascript:a.b")),
        )
        with self.driver() as driver:
            for call_input, param in rows:
                with self.subTest(str(call_input)[:80]):
                    answer = driver.prepare("browser", call_input)
                    self.assertEqual((answer.get("error"), answer.get("param")), ("INVALID_REQUEST", param))

    # ---- what it refuses

    def refused(self, result, reason):
        self.assertEqual(result["end"], "failed", result["output"])
        self.assertIn("actions[0] (navigate) failed: net::ERR_", result["output"])
        self.assertIn("Refused: ", result["output"])
        self.assertIn(reason, result["output"])
        self.assertEqual(self.inside.hits, [])

    def test_addresses(self):
        port = self.inside.port
        rows = (
            (f"127.0.0.1:{port}", "127.0.0.1 is a loopback address"),
            (f"localhost:{port}", "localhost: 127.0.0.1 is a loopback address"),
            (f"x.LOCALHOST:{port}", "x.localhost: 127.0.0.1 is a loopback address"),
            (f"127.1:{port}", "127.0.0.1 is a loopback address"),
            (f"2130706433:{port}", "127.0.0.1 is a loopback address"),
            (f"0x7f000001:{port}", "127.0.0.1 is a loopback address"),
            (f"0:{port}", "0.0.0.0 is an address for special purposes"),
            (f"[::1]:{port}", "[::1] is a loopback address"),
            (f"[::]:{port}", "[::] is an address for special purposes"),
            (f"[::ffff:127.0.0.1]:{port}", "[::ffff:127.0.0.1] is a loopback address"),
            ("10.1.2.3", "10.1.2.3 is an address of a private network"),
            ("192.168.0.1", "192.168.0.1 is an address of a private network"),
            ("169.254.169.254/latest/meta-data", "169.254.169.254 is an address of the local link"),
        )
        for group in (rows[i:i + 4] for i in range(0, len(rows), 4)):  # a result names the first 5 refused addresses
            self.web.pages["/images"] = "".join(f"<img src=http://{host}/{i}>" for i, (host, _) in enumerate(group))
            result = self.browse(navigate(self.web.url("/images")), TEXT)
            self.assertEqual(result["end"], "done", result["output"])
            for host, reason in group:
                with self.subTest(host):
                    self.assertIn(reason, result["output"])
        self.assertEqual(self.inside.hits, [])

    def test_pages_of_this_machine(self):
        """They are opened by the names of this machine, and shown as such. Then nothing else is reached: another port of this
        machine, another name that leads here, the web."""
        other = Server()
        self.addCleanup(other.close)
        self.inside.pages["/"] = (f"<title>Mine</title><img src=http://localhost:{other.port}/port>"
                                  f"<img src=http://x.localhost:{self.inside.port}/name><img src=http://203.0.114.9/>"
                                  "<img src=http://secret.web.example/>")
        for host in ("localhost", "127.0.0.1"):
            with self.subTest(host):
                self.inside.hits.clear()
                result = self.browse(navigate(f"{host}:{self.inside.port}"), TEXT, exempt="")
                self.assertEqual(result["end"], "done", result["output"])
                self.assertIn('"Mine"', result["output"])
                for reason in ("localhost: 127.0.0.1 is a loopback address", "x.localhost: 127.0.0.1 is a loopback address",
                               "203.0.114.9 is not of this machine, whose pages are all that the call reaches",
                               "secret.web.example: it is not of this machine"):
                    self.assertIn(reason, result["output"])
                self.assertEqual((self.inside.hits[0], other.hits), ("/", []))
                self.assertNotIn("/name", "".join(self.inside.hits))
        with self.driver(ownPort=self.inside.port) as driver:
            request = driver.prepare("browser", {"actions": [navigate(f"http://LOCALHOST:{other.port}/a"), TEXT]})
            self.assertEqual(request["summary"], f"Navigate to LOCALHOST:{other.port} (this machine), then 1 more action")
            self.assertEqual(request["details"]["note"], "The pages are on this machine. Nothing else can be reached.")
            driver.send(op="free", id=driver.next_id)
            here, web = navigate(f"http://[::1]:{other.port}/"), navigate("https://web.example/")
            for actions, param, words in (([here, web], "actions[1].url", "is of the web, and another one is on this machine"),
                                          ([TEXT, web, here], "actions[2].url", "is on this machine, and another one is not"),
                                          ([navigate(self.inside.url())], "actions[0].url", "is the gateway's own address"),
                                          ([here, navigate(f"localhost:{self.inside.port}")], "actions[1].url", "own address")):
                answer = driver.prepare("browser", {"actions": actions})
                self.assertEqual(answer.get("param"), param, answer)
                self.assertIn(words, answer["detail"])

    def test_a_page_that_listens_on_six_only(self):
        """As servers of developers do that listen on "localhost"."""
        try:
            six = Server("::1")
        except OSError:
            self.skipTest("this machine has no address ::1")
        self.addCleanup(six.close)
        result = self.browse(navigate(f"http://localhost:{six.port}/next"), TEXT, exempt="")
        self.assertIn("next page", result["output"])

    def test_redirects(self):
        for target in some((self.inside.url("/secret"), f"http://[::1]:{self.inside.port}/", "http://10.0.0.1/")):
            with self.subTest(target):
                self.web.redirects["/away"] = target
                self.refused(self.browse(navigate(self.web.url("/away"))), " is a")
        self.web.redirects["/away"] = "file:///etc/passwd"
        result = self.browse(navigate(self.web.url("/away")), TEXT)
        self.assertEqual(result["end"], "failed")
        self.assertNotIn("root:", result["output"])

    @unittest.skipUnless(ROOT, "only root makes a network")
    def test_public_addresses_that_are_near(self):
        """Addresses of this machine and of its neighbours, in each notation."""
        rows = (
            ("http://11.22.33.44:{}/", "11.22.33.44 is an address of this machine"),
            ("http://[::ffff:11.22.33.44]:{}/", "is an address of this machine"),
            ("http://[64:ff9b::11.22.33.44]:{}/", "is an address of this machine"),
            ("http://[2a00:1:2:3::4]:{}/", "is an address of this machine"),
            ("http://11.22.33.7/", "11.22.33.7 is an address of a network that this machine is in"),
            ("http://[2a00:1:2:3::7]/", "is an address of a network that this machine is in"),
        )
        with Network():
            self.inside = Server("0.0.0.0")
            self.addCleanup(self.inside.close)
            for url, reason in some(rows):
                with self.subTest(url):
                    self.refused(self.browse(navigate(url.format(self.inside.port))), reason)

    @unittest.skipUnless(ROOT, "only root makes a network")
    def test_a_name_that_changes(self):
        """DNS rebinding: the name has an allowed address until the page has loaded, and then the address of another server."""
        with Network():
            web = Server("127.0.0.2")
            self.addCleanup(web.close)
            self.inside = Server("127.0.0.1", web.port)
            self.addCleanup(self.inside.close)
            web.pages["/"] = ("<title>Rebind</title>first<script>setInterval(()=>{fetch('/secret').then(r=>r.text())"
                              ".then(t=>document.body.append(t)).catch(()=>document.body.append(' refused'))}, 50);"
                              "new WebSocket(`ws://${location.host}/ws`)</script>")
            names = Names("127.0.0.2", "127.0.0.1")
            self.addCleanup(names.close)
            names.changed = lambda: "/" in web.hits
            with self.driver_with("resolv.conf", "nameserver 127.0.0.1\n", exempt=f"127.0.0.2:{web.port}") as driver:
                result = driver.run("browser", {"actions": [navigate(f"http://rebind.example:{web.port}/"),
                                                            {"action": "wait", "ms": 6000}, TEXT]})
            self.assertEqual(result["end"], "done", result["output"])
            self.assertGreater(names.asked, 1)
            self.assertEqual(names.names, {"rebind.example"}, "Chromium asks nobody by itself")
            self.assertIn("rebind.example: 127.0.0.1 is a loopback address", result["output"])
            self.assertIn("first", result["output"])
            self.assertIn(" refused", result["output"])
            self.assertEqual((web.hits[0], set(self.inside.hits)), ("/", set()))

    @of_chromium
    @unittest.skipUnless(ROOT, "only root makes a network")
    def test_no_datagram_leaves(self):
        """A TCP proxy is not enough if a page can send datagrams. WebRTC, WebTransport and name look-ups send datagrams."""
        servers = ",".join(f"{{urls:'{url}',username:'a',credential:'b'}}" for url in (
            "stun:11.22.33.99:3478", "turn:11.22.33.99:3478?transport=udp", "stun:127.0.0.1:3478", "stun:[2a00:1:2:3::9]:3478",
            "stun:stun.example:3478"))
        attack = f"""<title>Attack</title><link rel=dns-prefetch href=//prefetch.example>
            <link rel=preconnect href=//connect.example>
            <script>const pc = new RTCPeerConnection({{iceServers: [{servers}], iceCandidatePoolSize: 2}});
            pc.createDataChannel('x'); pc.createOffer().then(o => pc.setLocalDescription(o));
            pc.onicecandidate = e => document.body.append(e.candidate ? e.candidate.candidate : ' gathered');
            for (const at of ['127.0.0.1:4433', '11.22.33.99:4433', '[2a00:1:2:3::9]:4433', 'quic.example:4433'])
              try {{ new WebTransport('https://' + at + '/').ready.catch(() => document.body.append(' closed')) }}
              catch (e) {{ document.body.append(String(e)) }}</script><body>begun"""
        with Network() as network:
            web = Server()
            self.addCleanup(web.close)
            web.pages["/"] = attack
            network.listen()
            result = self.browse(navigate(web.url()), {"action": "wait", "ms": 3000}, TEXT, exempt=f"127.0.0.1:{web.port}")
            self.assertEqual(result["end"], "done", result["output"])
            self.assertIn("begun", result["output"])
            self.assertIn(" closed", result["output"])
            # the proxy itself may look up a name to connect to it
            self.assertEqual([(port, content) for port, content in network.datagrams()
                              if port != 53 or re.search(rb"prefetch|stun|quic", content)], [])

    @of_chromium
    def test_a_worker_that_stays(self):
        """A service worker sends requests in the name of its page, even after the page has gone."""
        inside = self.inside.url("/from-worker")
        self.web.pages["/worker.js"] = (f"const ask = () => fetch('{inside}', {{mode: 'no-cors'}}).catch(() => 0);"
                                        "oninstall = e => e.waitUntil(ask()); onactivate = e => e.waitUntil(clients.claim());"
                                        f"onfetch = e => {{ ask(); if (e.request.url.endsWith('/own')) "
                                        f"e.respondWith(fetch('{inside}').catch(() => new Response('refused'))) }}")
        self.web.pages["/"] = ("<title>Page</title><script>navigator.serviceWorker.register('/worker.js').then(() => "
                               "navigator.serviceWorker.ready).then(() => fetch('/own')).then(r => r.text()).then(t => "
                               "{ document.body.id = 'done'; document.body.append(t) })</script><body>")
        result = self.browse(navigate(self.web.url()), {"action": "wait", "selector": "#done"}, TEXT,
                             navigate(self.web.url("/next")), {"action": "wait", "ms": 300})
        self.assertEqual(result["end"], "done", result["output"])
        self.assertIn("refused", result["output"])
        self.assertIn("127.0.0.1 is a loopback address", result["output"])
        self.assertEqual(self.inside.hits, [])

    @of_chromium
    def test_no_other_program_is_started(self):
        """In a browser with a screen, links with other schemes open programs."""
        programs = tempfile.mkdtemp(prefix="fm-programs-")
        self.addCleanup(shutil.rmtree, programs)
        os.chmod(programs, 0o777)
        for name in ("xdg-open", "gio", "xdg-email", "x-www-browser", "sensible-browser"):
            path = os.path.join(programs, name)
            with open(path, "w", encoding="ascii") as file:
                file.write(f"#!/bin/sh\necho \"$0 $*\" >> {programs}/started\n")
            os.chmod(path, 0o755)
        self.web.pages["/"] = ("<title>Links</title><a id=a href=mailto:a@b.example>mail</a> <a id=b href=own-scheme:x>own</a>"
                               "<iframe src=tel:1></iframe><script>location='own-scheme:y';window.open('ssh://a.example')"
                               "</script>")
        with Driver(env={"TMPDIR": self.folder, "PATH": f"{programs}:{os.environ['PATH']}"}, nobody=self.nobody,
                    exempt=f"127.0.0.1:{self.web.port}") as driver:
            result = driver.run("browser", {"actions": [navigate(self.web.url()), {"action": "click", "selector": "#a"},
                                                        {"action": "click", "selector": "#b"}, {"action": "wait", "ms": 500},
                                                        TEXT]})
        self.assertIn("mail", result["output"])
        self.assertFalse(os.path.exists(os.path.join(programs, "started")))

    def test_what_its_progress_shows(self):
        url = self.web.url("/next?\u202egnp.exe")
        self.browse(navigate(url))
        self.assertIn(f"Navigate to {self.web.url('/next?')}<U+202E>gnp.exe", self.progress)

    def driver_with(self, name, text, **config):
        """A driver that finds a file with this name and text in /etc: a copy of /etc is mounted in a separate namespace. The
        driver also has a user namespace. So the mount is invisible elsewhere, whatever kind of mount the root is."""
        own = ("unshare", "--user", "--map-root-user", "--mount", "--propagation", "unchanged")
        if subprocess.run([*own, "true"], capture_output=True).returncode != 0:
            self.skipTest("no namespace for mounts is to be had here")
        etc = os.path.join(self.folder, "etc")
        shutil.rmtree(etc, ignore_errors=True)
        subprocess.run(["cp", "-a", "/etc", etc], check=True)
        path = os.path.join(etc, name)
        if os.path.lexists(path):
            os.remove(path)  # the path may be a link
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        return Driver(command=[*own, "sh", "-c", 'mount --bind "$1" /etc && exec "$2"', "sh", etc, DRIVER], **config)

    @unittest.skipUnless(ROOT, "only root copies all of /etc")
    def test_a_name_that_leads_here(self):
        names = "127.0.0.1 public.example\n::1 six.example\n10.9.8.7 inner.example\n"
        for name, reason in some((("public", "public.example: 127.0.0.1 is a loopback address"),
                                  ("six", "six.example: [::1] is a loopback address"),
                                  ("inner", "inner.example: 10.9.8.7 is an address of a private network"))):
            with self.subTest(name):
                with self.driver_with("hosts", names, exempt=f"127.0.0.1:{self.web.port}") as driver:
                    result = driver.run("browser", {"actions": [navigate(f"http://{name}.example:{self.inside.port}/")]})
                self.refused(result, reason)

    def test_what_a_page_loads(self):
        """Everything that a page loads goes through the proxy."""
        inside, ws = self.inside.url("/from-page"), self.inside.url("/ws").replace("http", "ws")
        self.web.pages["/attack"] = f"""<title>Attack</title><img src={inside}><iframe src={inside}></iframe>
            <link rel=prefetch href={inside}><link rel=preconnect href={inside}><link rel=stylesheet href={inside}>
            <script src={inside}></script><object data={inside}></object><video src={inside}></video>
            <script>fetch('{inside}',{{mode:'no-cors'}}).catch(()=>0); navigator.sendBeacon('{inside}');
            new WebSocket('{ws}').onerror=()=>document.title='refused'; try{{new EventSource('{inside}')}}catch(e){{}}
            new Worker(URL.createObjectURL(new Blob([`fetch('{inside}',{{mode:'no-cors'}})`])));
            new RTCPeerConnection({{iceServers:[{{urls:'stun:127.0.0.1:{self.inside.port}'}}]}}).createDataChannel('x');
            window.open('{inside}'); let f=document.createElement('form'); f.action='{inside}'; f.target='_blank';
            document.documentElement.append(f); f.submit();</script>"""
        result = self.browse(navigate(self.web.url("/attack")), {"action": "wait", "ms": 1000}, {"action": "screenshot"})
        self.assertEqual(result["end"], "done", result["output"])
        self.assertIn("127.0.0.1 is a loopback address", result["output"])
        self.assertEqual(self.inside.hits, [])

    @of_chromium
    def test_the_same_page_reaches_what_it_may(self):
        """The page can load an allowed address. This proves that the proxy is what stops the requests of the test before."""
        self.web.pages["/own"] = f"<title>Own</title><img src={self.web.url('/image')}>"
        self.browse(navigate(self.web.url("/own")))
        self.assertIn("/image", self.web.hits)

    def test_downloads(self):
        result = self.browse(navigate(self.web.url("/download")))
        self.assertEqual(result["end"], "failed")
        self.assertIn("actions[0] (navigate) failed: net::ERR_ABORTED", result["output"])

    @of_chromium
    def test_downloads_of_a_page(self):
        self.web.pages["/"] = "<script>location='/download'</script>"
        with self.driver() as driver:
            driver.prepare("browser", {"actions": [navigate(self.web.url()), {"action": "wait", "ms": 1500},
                                                   {"action": "wait", "selector": "#never"}]})
            driver.start()
            while driver.line()["progress"] != "Wait for #never":
                pass
            self.assertIn("/download", self.web.hits)
            names = [name for _, _, files in os.walk(self.folder) for name in files]
            self.assertEqual([name for name in names if "evil" in name or name.endswith(".crdownload")], [])
            driver.abort()
            driver.result()

    def test_strict(self):
        with self.driver(sandbox="strict") as driver:
            answer = driver.prepare("browser", {"actions": [TEXT]})
            self.assertEqual(answer["error"], "UNAVAILABLE")
            self.assertIn('tools.sandbox is "strict"', answer["detail"])

    @unittest.skipUnless(landlock_abi() >= 2, "this kernel has no Landlock")
    def test_write(self):
        result = self.browse(navigate(self.web.url("/next")), TEXT, {"action": "screenshot"}, sandbox="write")
        self.assertEqual((result["end"], len(result["attachments"])), ("done", 1), result["output"])

    def test_no_chromium(self):
        result = self.browse(TEXT, browser="/no/such/chromium")
        self.assertEqual(result["end"], "failed")
        self.assertIn("/no/such/chromium can't be run: No such file or directory", result["output"])
        result = self.browse(TEXT, browser="/bin/true")
        self.assertEqual(result["end"], "failed")
        self.assertIn("did not start", result["output"])
        result = self.browse(TEXT, browser="/bin/cat", timeout=500)
        self.assertEqual(result["end"], "failed" if "did not start" in result["output"] else "timeout")

    # ---- hostile pages

    @of_chromium
    def test_a_page_that_lies(self):
        result = self.browse(navigate(self.web.url("/liar")), {"action": "text", "selector": "p"})
        self.assertIn("\ntruth\n", result["output"])
        self.assertNotIn("a lie", result["output"])

    def test_dialogs(self):
        result = self.browse(navigate(self.web.url("/dialog")), TEXT)
        self.assertEqual(result["end"], "done", result["output"])
        for text in ("closed: pay", "closed: really", "closed: how", "after"):
            self.assertIn(text, result["output"])

    def test_popups_and_files(self):
        result = self.browse(navigate(self.web.url("/popups")), TEXT, navigate(self.web.url("/file")),
                             {"action": "wait", "ms": 300}, TEXT)
        self.assertEqual(result["end"], "done", result["output"])
        self.assertIn("still here", result["output"])
        self.assertIn("mine", result["output"])
        self.assertNotIn("root:", result["output"])

    def test_a_long_text(self):
        result = self.browse(navigate(self.web.url("/big")), TEXT)
        self.assertTrue(result["truncated"])
        self.assertLess(len(result["output"].encode()), 100_200)
        self.assertIn("the first 200000 were read", result["output"])

    def test_a_page_that_hangs(self):
        result = self.browse(navigate(self.web.url("/loop")), {"action": "wait", "ms": 300}, TEXT, timeout=9_000)
        self.assertEqual(result["end"], "timeout", result["output"])
        self.assertIn("ended in actions[", result["output"])

    # ---- ends

    def wait_for_page(self, driver):
        driver.prepare("browser", {"actions": [navigate(self.web.url("/next")), {"action": "wait", "selector": "#never"}]})
        driver.start()
        while not (line := driver.line()).get("progress", "").startswith("Wait for"):
            self.assertNotIn("end", line)
        self.assertGreater(len(processes(self.folder)), 3)

    def test_abort(self):
        with self.driver() as driver:
            self.wait_for_page(driver)
            begun = time.monotonic()
            driver.abort()
            result = driver.result()
            self.assert_soon(time.monotonic() - begun, 2)
            self.assertEqual(result["end"], "aborted")
            self.assertEqual(processes(self.folder), [])
            self.assertEqual(os.listdir(self.folder), [])

    def test_abort_at_once(self):
        with self.driver() as driver:
            driver.prepare("browser", {"actions": [navigate(self.web.url())]})
            driver.start()
            driver.abort()
            self.assertEqual(driver.result()["end"], "aborted")
        self.assertEqual(os.listdir(self.folder), [])

    def test_the_gateway_is_killed(self):
        driver = self.driver()
        self.wait_for_page(driver)
        begun = time.monotonic()
        driver.process.kill()
        wait_until(lambda: not processes(self.folder))
        self.assert_soon(time.monotonic() - begun, 2)
        wait_until(lambda: not os.listdir(self.folder))
        driver.close()

    def test_chromiums_own_sandbox(self):
        with self.driver() as driver:
            self.wait_for_page(driver)
            renderers = [pid for pid in processes(self.folder) if "--type=renderer" in self.command(pid)]
            root = ROOT and not self.nobody
            self.assertTrue(renderers)
            for pid in renderers:
                with open(f"/proc/{pid}/status", encoding="ascii") as file:
                    self.assertIn(f"Seccomp:\t{0 if root else 2}\n", file.read())
                self.assertEqual("--no-sandbox" in self.command(pid), root)
            driver.abort()
            result = driver.result()
        self.assertEqual("sandbox is off, because the gateway runs as root" in result["output"], root)

    @staticmethod
    def command(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return file.read().decode()
        except OSError:
            return ""


@unittest.skipUnless(CHROMIUM and ROOT, "is the first class for a normal user")
class BrowserAsNobody(Browser):
    """Runs with Chromium's own sandbox, and in a user namespace."""
    nobody = True

    @classmethod
    def setUpClass(cls):
        helper = "/usr/lib/chromium/chrome-sandbox"  # from Debian's package chromium-sandbox
        own = os.path.exists(helper) and os.stat(helper).st_mode & 0o4000
        if not own and subprocess.run(["unshare", "--user", "true"], preexec_fn=as_nobody, capture_output=True).returncode != 0:
            raise unittest.SkipTest("Chromium has no sandbox here: normal users get no namespace of users")


class BrowserAsNobodyWithoutNamespace(BrowserAsNobody):
    def driver(self, **config):
        return super().driver(rules=NO_NAMESPACE, **config)


def load_tests(loader, tests, _):
    """As another user, runs only the tests that differ there."""
    suite = unittest.TestSuite(loader.loadTestsFromTestCase(Browser))
    for case in (BrowserAsNobody, BrowserAsNobodyWithoutNamespace):
        for name in ("test_a_form_and_links", "test_abort", "test_the_gateway_is_killed", "test_chromiums_own_sandbox",
                     "test_what_a_page_loads", "test_write"):
            suite.addTest(case(name))
    return suite


if __name__ == "__main__":
    unittest.main()
