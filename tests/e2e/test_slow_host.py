"""Tests a host that reads late: nothing is lost, deltas merge, and the helper's memory stays small."""

import os
import time

import wire
from wire import SANITIZED, SLOW, HelperTest, check_stream, script, wait_idle

MIB = 1 << 20


def rss(pid):
    """In bytes."""
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class SlowHost(HelperTest):
    def stalled(self, streams, prompt):
        """A helper whose streams are held up, because its output is not read: (helper, calls)."""
        helper = self.helper()
        helper.call("responses.create", {"input": "x"})
        helper.reading.clear()
        helper.send("health.ping", None, 1)  # the reader waits inside a read; this ping lets it return
        calls = [self.create(helper, prompt) for _ in range(streams)]
        wait_idle(helper.pid, helper.engine_pid())
        return helper, calls

    def test_streams_are_held_up_and_go_on(self):
        text = "0123456789abcdef" * 8
        helper, calls = self.stalled(8, script({"repeat": [text, 4000]}))  # 512,000 bytes each
        pings = [helper.start("health.ping") for _ in range(100)]
        helper.reading.set()
        for call in calls:
            events, result = helper.collect(call)
            final = check_stream(self, events, result)
            self.assertEqual(final["output"][0]["content"][0]["text"], text * 4000)
            self.assertEqual(final["usage"]["output_tokens"], 4000)
            deltas = [e for e in events if e["type"] == "response.output_text.delta"]
            self.assertLess(len(deltas), 3900, "deltas merge")
        replies = [m["id"] for m in helper.backlog if m.get("id") in pings]
        self.assertEqual(replies, pings, "replies come in order")

    def test_memory(self):
        """8 streams of 4 MiB go to a host that does not read. Generation pauses, and a cancel still works."""
        helper, calls = self.stalled(8, script({"repeat": ["0123456789abcdef" * 64, 4096]}))
        if not SANITIZED:  # sanitizers use additional memory
            self.assertLess(rss(helper.pid), 24 * MIB)
        cancels = [helper.start("responses.cancel", {"request_id": call}) for call in calls]
        wait_idle(helper.pid)
        if not SANITIZED:
            self.assertLess(rss(helper.pid), 24 * MIB)
        helper.reading.set()
        opened = 0
        for call, cancel in zip(calls, cancels):
            events, result = helper.collect(call)
            self.assert_error(result, "CANCELLED")
            self.assertEqual(bool(events), "response" in result)
            if events:
                check_stream(self, events, result)
                opened += 1
            self.assertTrue(helper.reply(cancel)["result"]["ok"])
        self.assertGreater(opened, 0, "the pause may come before the last ones are accepted, not before the first")
        self.assert_soon(helper.ping_ms(), 1000 * SLOW)

    def test_no_limit_fires_for_the_host(self):
        """The limits no_progress and first_token are about the engine, so the time in which the host does not read does not
        count."""
        helper = self.helper()
        helper.call("responses.create", {"input": "x"})
        helper.reading.clear()
        helper.send("health.ping", None, 1)
        fm = {"no_progress_timeout_ms": int(700 * SLOW), "first_token_timeout_ms": int(700 * SLOW)}
        call = self.create(helper, script({"repeat": ["x" * 1000, 4000]}), fm=fm)
        wait_idle(helper.pid, helper.engine_pid())
        time.sleep(1.0 * SLOW)  # longer than the limits
        helper.reading.set()
        events, result = helper.collect(call)
        self.assert_undisturbed(result["ok"], result.get("error"))
        check_stream(self, events, result)

    def test_one_frame_beyond_the_cap(self):
        """Each event that repeats these instructions is larger than the limit for unread output. This must not count as a slow
        host."""
        helper = self.helper()
        helper.call("responses.create", {"input": "x"})
        helper.reading.clear()
        helper.send("health.ping", None, 1)
        call = self.create(helper, "x", instructions="i" * 8_400_000)
        wait_idle(helper.pid, helper.engine_pid())
        pings = [helper.start("health.ping") for _ in range(100)]
        wait_idle(helper.pid)
        helper.reading.set()
        events, result = helper.collect(call)
        self.assertTrue(result["ok"])
        check_stream(self, events, result)
        for ping in pings:
            self.assertTrue(helper.reply(ping)["result"]["ok"])

    def test_a_cancel_while_generation_pauses(self):
        """The engine has stopped within its grace, but its messages are not read yet. The engine must not be ended."""
        helper, calls = self.stalled(1, script({"repeat": ["x" * 1000, 4000]}))
        engine = helper.engine_pid()
        ways = [{}, {"queue_timeout_ms": 100}, {"timeout_ms": 100}]
        others = [self.create(helper, script({"hang": "soft"}), fm=fm) for fm in ways]
        helper.send("$/cancelRequest", {"id": others[0]})
        time.sleep(1.5 * SLOW)  # longer than the grace
        helper.reading.set()
        events, result = helper.collect(calls[0])
        self.assertTrue(result["ok"], result)
        check_stream(self, events, result)
        for call, code in zip(others, ("CANCELLED", "TIMEOUT", "TIMEOUT")):
            self.assert_error(helper.collect(call)[1], code)
        self.assert_undisturbed(helper.engine_pid() == engine, "another engine")

    def test_a_broken_header_ends_it_within_a_second(self):
        """The host does not read, and the engine does not end by itself."""
        helper, _ = self.stalled(1, script({"repeat": ["x" * 1000, 400]}, {"hang": "hard"}))
        before = time.monotonic()
        helper.send_raw(b"GET / HTTP/1.1\r\n\r\n")
        self.assertEqual(helper.wait_exit(), 76)
        self.assert_soon(time.monotonic() - before, SLOW)
        helper.reading.set()

    def test_an_id_is_free_once_its_result_is_sent(self):
        helper, calls = self.stalled(1, script({"repeat": ["x" * 1000, 4000]}))
        helper.send("responses.create", {"input": "y"}, calls[0])
        helper.reading.set()
        refusal = helper.receive_where(lambda m: m.get("id") == calls[0] and "error" in m)
        self.assertEqual(refusal["error"]["code"], -32600)
        helper.collect(calls[0])
        helper.send("responses.create", {"input": "y"}, calls[0])
        self.assertTrue(helper.reply(calls[0])["result"]["ok"])


if __name__ == "__main__":
    wire.main()
