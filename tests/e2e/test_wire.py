"""Tests the rules of frames, JSON and RPC on the real binary. The unit tests have the rest of the tables."""

import os
import time
import unittest

import wire
from wire import SLOW, HelperTest, cpu_seconds, frame, memory_kib, wait_until

PING = {"jsonrpc": "2.0", "id": 1, "method": "health.ping"}


class Fatal(HelperTest):
    """A broken header gives one error reply with id null, then exit status 76. What follows is not executed."""

    CASES = {
        "no colon": b"GET / HTTP/1.1\r\n\r\n",
        "line feed only": b"Content-Length: 2\n\n{}",
        "negative": b"Content-Length: -1\r\n\r\n",
        "plus": b"Content-Length: +5\r\n\r\n",
        "leading zero": b"Content-Length: 010\r\n\r\n",
        "twice": b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        "missing": b"Content-Type: x\r\n\r\n{}",
        "too large": b"Content-Length: 40000001\r\n\r\n",
        "folded": b"Content-Length:\r\n 2\r\n\r\n{}",
        "not ASCII": b"Content-Length\xc3\xa9: 2\r\n\r\n{}",
        "many lines": b"A: b\r\n" * 33 + b"Content-Length: 2\r\n\r\n{}",
        "long": b"A: " + b"b" * 9000 + b"\r\n",
    }

    def test_each(self):
        for name, data in self.CASES.items():
            with self.subTest(name):
                helper = self.helper()
                helper.send_raw(data + frame(PING))
                reply = helper.receive()
                self.assertIsNone(reply["id"])
                self.assertEqual(reply["error"]["code"], -32700)
                self.assertIsNone(helper.receive())
                self.assertEqual(helper.wait_exit(), 76)


class Recoverable(HelperTest):
    """A broken body in an intact frame gives one error, and the connection continues."""

    BODIES = {
        "empty": (b"", -32700),
        "not JSON": (b"{nope}", -32700),
        "two values": (b"{} {}", -32700),
        "byte order mark": (b"\xef\xbb\xbf{}", -32700),
        "overlong UTF-8": (b'{"a":"\xc0\x80"}', -32700),
        "lone surrogate": (b'{"a":"\\ud800"}', -32700),
        "NUL in a key": (b'{"a\\u0000":1}', -32700),
        "65 levels": (b"[" * 65 + b"]" * 65, -32700),
        "100,000 levels": (b"[" * 100000, -32700),
        "infinite": (b'{"a":1e400}', -32700),
        "number": (b"7", -32600),
        "null": (b"null", -32600),
        "batch of one": (b'[{"jsonrpc":"2.0","id":1,"method":"health.ping"}]', -32600),
        "no version": (b'{"id":1,"method":"health.ping"}', -32600),
        "id 1.5": (b'{"jsonrpc":"2.0","id":1.5,"method":"health.ping"}', -32600),
        "id null": (b'{"jsonrpc":"2.0","id":null,"method":"health.ping"}', -32600),
        "id too large": (b'{"jsonrpc":"2.0","id":9007199254740992,"method":"health.ping"}', -32600),
        "no method": (b'{"jsonrpc":"2.0","id":1}', -32600),
        "unknown method": (b'{"jsonrpc":"2.0","id":1,"method":"__proto__"}', -32601),
        "params missing": (b'{"jsonrpc":"2.0","id":1,"method":"responses.create"}', -32602),
        "params an array": (b'{"jsonrpc":"2.0","id":1,"method":"responses.create","params":[]}', -32602),
    }

    def test_each(self):
        helper = self.helper()
        for name, (body, code) in self.BODIES.items():
            with self.subTest(name):
                helper.send_raw(frame(body))
                self.assertEqual(helper.receive()["error"]["code"], code)
                self.assertTrue(helper.call("health.ping")["ok"])

    def test_too_many_values(self):
        """The error names the limit, and the refusal takes almost no time and memory."""
        helper = self.helper()
        ping = b'{"jsonrpc":"2.0","id":1,"method":"health.ping","params":[%s0]}'
        helper.send_raw(frame(ping % (b"0," * 65530)))  # the message has 6 other values
        self.assertTrue(helper.receive()["result"]["ok"])
        helper.send_raw(frame(ping % (b"0," * 65531)))
        error = helper.receive()
        self.assertEqual((error["id"], error["error"]["code"]), (None, -32700))
        self.assertIn("more than 65,536 values", error["error"]["message"])
        helper.send_raw(frame(ping % (b"{}," * 3_000_000)))
        self.assertIsNone(helper.receive()["id"])
        self.assert_soon(helper.ping_ms(), 100 * SLOW)

    @unittest.skipIf(os.environ.get("FM_SANITIZE"), "a sanitizer's allocator keeps what is freed")
    def test_memory_of_a_large_body_is_given_back(self):
        helper = self.helper()
        helper.send_raw(frame(b'{"jsonrpc":"2.0","id":1,"method":"health.ping","params":[%s0]}' % (b"{}," * 65_000)))
        self.assertTrue(helper.receive()["result"]["ok"])
        self.assertGreater(memory_kib(helper.pid, "VmHWM"), 40 * 1024)  # memory of the parsed body
        wait_until(lambda: memory_kib(helper.pid, "VmRSS") < 16 * 1024, "the memory of the body")

    def test_long_method(self):
        helper = self.helper()
        for name in ("x" * 65536, "health.ping" + "\0" * 65536):
            helper.send(name, id="long")
            reply = helper.receive()
            self.assertEqual((reply["id"], reply["error"]["code"]), ("long", -32601))
            self.assertIn("PROTOCOL.md", reply["error"]["message"])
            self.assertTrue(helper.call("health.ping")["ok"])

    def test_too_large_body_is_skipped_exactly(self):
        helper = self.helper()
        helper.send_raw(b"Content-Length: 10000001\r\n\r\n" + b"x" * 10000001 + frame(PING))
        self.assertEqual(helper.receive()["error"]["code"], -32700)
        self.assertEqual(helper.receive()["id"], 1)

    def test_largest_body_is_served(self):
        helper = self.helper()
        body = b'{"jsonrpc":"2.0","id":1,"method":"health.ping"}'
        helper.send_raw(frame(body + b" " * (10000000 - len(body))))
        self.assertEqual(helper.receive()["id"], 1)

    def long_call(self, helper, id):
        """Returns a create call that takes a while to parse and to check, and then fails."""
        input = [{"role": "user", "content": "x"}] * 16_000
        helper.send_raw(frame({"jsonrpc": "2.0", "id": id, "method": "responses.create",
                               "params": {"input": input, "instructions": "\\\n" * 2_000_000, "temperature": 9}}))

    def test_a_ping_does_not_wait_for_a_large_body(self):
        helper = self.helper()
        self.long_call(helper, 1)
        helper.send("health.ping", None, 2)
        answered = [helper.receive()["id"], helper.receive()["id"]]
        self.assertEqual(sorted(answered), [1, 2])
        self.assert_undisturbed(answered == [2, 1], "the ping is answered first")

    def test_a_ping_does_not_wait_for_large_bodies(self):
        helper = self.helper()
        for id in range(4):
            self.long_call(helper, id)  # 8 MB
        helper.send("health.ping", None, 4)
        answered = [helper.receive()["id"] for _ in range(5)]
        self.assertEqual(sorted(answered), [*range(5)])
        self.assert_undisturbed(answered.index(4) < 2, "the ping is answered before most of them")

    def test_what_follows_a_large_body_waits_for_it(self):
        helper = self.helper()
        self.long_call(helper, 1)
        for id in range(2, 50):
            helper.send("models.list", {}, id)
        self.assertEqual([helper.receive()["id"] for _ in range(49)], list(range(1, 50)))

    def test_the_end_comes_after_a_large_body(self):
        helper = self.helper()
        self.long_call(helper, 1)
        helper.send("process.shutdown", None, 2)
        helper.send("models.list", {}, 3)  # too late
        self.assertEqual([helper.receive()["id"], helper.receive()["id"]], [1, 2])
        self.assertEqual(helper.wait_exit(), 0)

    def test_other_charset(self):
        helper = self.helper()
        helper.send_raw(b"Content-Type: application/json; charset=utf-16\r\nContent-Length: 2\r\n\r\n{}")
        self.assertEqual(helper.receive()["error"]["code"], -32700)
        self.assertTrue(helper.call("health.ping")["ok"])


class Splits(HelperTest):
    def test_one_byte_a_write(self):
        helper = self.helper()
        for byte in frame(PING):
            helper.send_raw(bytes([byte]))
        self.assertEqual(helper.receive()["id"], 1)

    def test_many_frames_in_one_write(self):
        helper = self.helper()
        helper.send_raw(b"".join(frame({**PING, "id": i}) for i in range(64)))
        self.assertEqual([helper.receive()["id"] for _ in range(64)], list(range(64)))

    def test_a_prompt_that_holds_a_frame_is_text(self):
        helper = self.helper()
        prompt = "Content-Length: 5\r\n\r\n{}"
        result = helper.call("responses.create", {"input": prompt})
        self.assertEqual(result["response"]["output"][0]["content"][0]["text"], prompt)


class Stalls(HelperTest):
    STALL = 2.0  # measured seconds in which the peer sends nothing

    def test_inside_a_header_and_a_body(self):
        helper = self.helper()
        self.assertTrue(helper.call("health.ping")["ok"])  # now the helper has started
        whole = frame(PING)
        for part in (whole[:9], whole[9:-20]):
            helper.send_raw(part)
            before = cpu_seconds(helper.pid)
            time.sleep(self.STALL)
            self.assertLess(cpu_seconds(helper.pid) - before, 0.03 * self.STALL)
        helper.send_raw(whole[-20:])
        self.assertEqual(helper.receive()["id"], 1)
        self.assertTrue(helper.call("health.ping")["ok"])


class Ids(HelperTest):
    def test_echoed_as_they_came(self):
        helper = self.helper()
        for id in [0, -1, 9007199254740991, "", "a", "é\u0001\"\\", "x" * 256]:
            helper.send("health.ping", id=id)
            self.assertEqual(helper.receive()["id"], id)

    def test_in_flight_again(self):
        helper = self.helper()
        helper.send("responses.create", {"input": wire.script({"hang": "soft"}), "stream": True}, id=5)
        helper.event(5)
        helper.send("health.ping", id=5)
        self.assertEqual(helper.reply(5)["error"]["code"], -32600)
        helper.send("$/cancelRequest", {"id": 5})
        self.assert_error(helper.reply(5)["result"], "CANCELLED")

    def test_notifications_are_not_answered(self):
        helper = self.helper()
        for method in ["health.ping", "nope", "responses.create", "$/cancelRequest"]:
            helper.send(method, {"id": 1})
        helper.send_raw(frame({"jsonrpc": "2.0", "id": 9, "result": {}}))  # an unexpected response
        helper.send("health.ping", id=3)
        self.assertEqual(helper.receive()["id"], 3)


class EndOfInput(HelperTest):
    def test_between_frames(self):
        helper = self.helper()
        helper.send_raw(frame(PING))
        self.assertEqual(helper.close(), 0)
        self.assertEqual(helper.receive()["id"], 1)

    def test_inside_a_header_or_body(self):
        for part in (b"Content-Le", frame(PING)[:-1]):
            helper = self.helper()
            helper.send_raw(part)
            self.assertEqual(helper.close(), 76)
            self.assertIsNone(helper.receive())


if __name__ == "__main__":
    wire.main()
