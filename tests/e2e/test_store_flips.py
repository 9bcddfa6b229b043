"""Flips bits in a store's file and in its log. Each later call is right, or fails alone; the helper continues.

FM_FLIPS is the number of flips, one per helper (default 200, or 60 if everything is slower); FM_SEED chooses the places (default
1).
"""

import collections
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback

import wire
from wire import HelperTest, script

FLIPS = int(os.environ.get("FM_FLIPS", 200 if wire.SLOW <= 1 else 60))
SEED = int(os.environ.get("FM_SEED", 1))
PAGE = 4096
# How a call may fail: the response is not found or damaged, or the store can't be used.
ERRORS = {"NOT_FOUND", "INTERNAL", "UNAVAILABLE"}
# If a request continues from a missing or damaged response, it has these codes.
MISSING = {"previous_response_id": "previous_response_not_found", "input": None}


class Flips(HelperTest):
    def setUp(self):
        self.random = random.Random(SEED)
        self.counts = collections.Counter()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.base, self.copy = (os.path.join(folder.name, name) for name in ("base", "copy"))
        os.mkdir(self.base)
        self.fill()

    def start(self, folder, *arguments):
        return wire.Helper("--store", os.path.join(folder, "db"), *arguments, stderr=wire.subprocess.DEVNULL)

    def fill(self):
        """Small and large responses, a chain, free pages, and two responses that are only in the log."""
        helper = self.start(self.base)
        self.responses = []

        def ask(helper, input, **params):
            response = helper.call("responses.create", {"input": input, **params})["response"]
            self.responses.append(response)
            return response["id"]

        first = ask(helper, script({"reasoning": "let me"}, "one ", "two"))
        ask(helper, "three", previous_response_id=first)
        ask(helper, "w" * 9000)
        gone = helper.call("responses.create", {"input": "v" * 20000})["response"]["id"]
        ask(helper, "u" * 3000)
        helper.call("responses.delete", {"id": gone})
        helper.close()
        helper = self.start(self.base)
        for input in ("four", "five" * 2000):
            ask(helper, input, previous_response_id=first)
        wire.kill(helper.pid, signal.SIGKILL)
        helper.wait_exit()
        wire.end(helper.process, helper.reader)
        os.unlink(os.path.join(self.base, "db-shm"))  # the first process that opens the store creates this file again
        self.put_copy()
        helper = self.start(self.copy)
        self.truth = self.read(helper)
        self.tokens = [answer["response"]["usage"]["input_tokens"] for answer in self.go_on(helper)]
        helper.close()

    def put_copy(self):
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.base, self.copy)

    def read(self, helper):
        """Reads everything that can be read about the responses."""
        calls = [helper.start(method, {"id": response["id"], **more}) for response in self.responses
                 for method, more in (("responses.retrieve", {}), ("responses.input_items", {}),
                                      ("responses.retrieve", {"stream": True}))]
        answers = []
        for call in calls:
            events, result = helper.collect(call)
            answers.append({**result, "events": events} if result["ok"] else result)
        return answers

    def go_on(self, helper):
        first, second = self.responses[:2]
        requests = ({"input": "x", "previous_response_id": second["id"]},
                    {"input": [{"id": first["output"][-1]["id"]}, {"role": "user", "content": "x"}]},
                    {"input": "y" * 9000})
        return [helper.call("responses.create", request) for request in requests]

    def expect(self, answer, right, what):
        """`right`: whether the answer is correct if it is not an error."""
        if answer["ok"]:
            self.assertTrue(right, what)
            self.counts["right"] += 1
            return
        code, openai = answer["error"]["code"], answer["error"]["openai"]
        if code == "INVALID_REQUEST":
            self.assertEqual(openai["code"], MISSING[openai["param"]], what)
        else:
            self.assertIn(code, ERRORS, f"{what}: {answer}")
        self.counts[code] += 1

    def judge(self, helper):
        for answer, truth in zip(self.read(helper), self.truth):
            self.expect(answer, answer == truth, "a stored response")
        for answer, tokens in zip(self.go_on(helper), self.tokens):
            response = answer.get("response")
            self.expect(answer, response and response["usage"]["input_tokens"] == tokens, "one that goes on")
            if response and response["store"]:
                again = helper.call("responses.retrieve", {"id": response["id"]})
                self.expect(again, again.get("response") == response, "one that was just stored")
            self.counts["stored" if response and response["store"] else "not stored"] += 1
        for answer, truth in zip(self.read(helper), self.truth):
            self.expect(answer, answer == truth, "a stored response, after others made it go")
        id = self.responses[-1]["id"]
        deleted = helper.call("responses.delete", {"id": id})
        self.expect(deleted, True, "a delete")
        if deleted["ok"]:
            self.expect(helper.call("responses.retrieve", {"id": id}), False, "one that is deleted")
        self.assertTrue(helper.call("health.ping")["ok"])
        self.assertEqual(helper.close(), 0)

    def place(self, size, pages, header):
        """Returns an offset: half of the offsets are anywhere, the others are at SQLite's own numbers."""
        if self.random.random() < 0.5:
            return self.random.randrange(size)
        page = self.random.randrange((size - header) // pages)
        return header + page * pages + self.random.randrange(100)

    def flip(self, name, pages, header):
        self.put_copy()
        path = os.path.join(self.copy, name)
        offset, bit = self.place(os.path.getsize(path), pages, header), self.random.randrange(8)
        with open(path, "rb+") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 1 << bit]))
        # there is room only for the existing responses, so new responses remove old ones
        helper = self.start(self.copy, "--store-bytes", "70000")
        try:
            self.judge(helper)
        except Exception as error:
            wire.kill(helper.pid, signal.SIGKILL)
            wire.end(helper.process, helper.reader)
            self.fail(f"bit {bit} of byte {offset} of {name}, FM_SEED={SEED}: {error!r}\n{traceback.format_exc()}")

    def flips(self, name, count, pages, header=0):
        for _ in range(count):
            self.flip(name, pages, header)
        print(f"{self.id().split('.')[-1]}: {count} flips, {dict(self.counts)}", file=sys.stderr)
        if count >= 50:
            self.assertGreater(self.counts["right"], 10 * count)
            self.assertGreater(self.counts["INTERNAL"] + self.counts["UNAVAILABLE"] + self.counts["NOT_FOUND"], 0)

    def test_in_the_file(self):
        self.flips("db", FLIPS * 3 // 4, PAGE)
        if FLIPS >= 50:
            self.assertGreater(self.counts["INTERNAL"], 0, "rows whose checksum found it")

    def test_in_the_log(self):
        self.flips("db-wal", FLIPS // 4, PAGE + 24, 32)  # the headers of a frame and of the log (sqlite.org/fileformat2.html)


if __name__ == "__main__":
    wire.main()
