"""Shared by the end-to-end tests: a helper process, its frames, and a checker for streams."""

import json
import os
import queue
import re
import signal
import subprocess
import threading
import time
import unittest

from patience import SANITIZED, SLOW, WAIT, TimedTest

BIN = os.environ.get("FM_BIN", os.path.join(os.path.dirname(__file__), "..", "..", "build", "bin"))


def frame(body):
    if not isinstance(body, bytes):
        body = json.dumps(body, ensure_ascii=False).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def script(*steps):
    """A prompt that the fake engine runs as a script."""
    return json.dumps(list(steps))


def environment(more):
    """Returns the environment without the helper's settings, and with `more` (a dict or None). No engine finds what another
    engine has saved, unless the test needs it."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith("FM_PROXY_")}
    return {**ours, "FM_PROXY_NO_KV_CACHE_FILES": "1", **(more or {})}


def end(process, *readers):
    """Ends a program's input, and waits for its exit status; `readers` are the threads that read what it writes."""
    try:
        process.stdin.close()
    except (BrokenPipeError, AttributeError):
        pass
    try:
        return process.wait(WAIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
    finally:
        for reader in readers:
            reader.join(5)
        process.stdout.close()


class Helper:
    """A running program that speaks frames on stdio: fm-proxy, or an engine itself."""

    def __init__(self, *args, program="fm-proxy", engine="fake", env=None, stdin=subprocess.PIPE, folder=None, **popen):
        command = [os.path.join(folder or BIN, program)]
        if program == "fm-proxy":
            command += ["--engine", engine]
        self.process = subprocess.Popen(command + list(args), stdin=stdin, stdout=subprocess.PIPE, env=environment(env),
                                        **popen)
        self.messages = queue.Queue()
        self.backlog = []  # messages that were taken from the queue, but not returned yet
        self.next_id = 100
        self.reading = threading.Event()  # cleared for a host that does not read
        self.reading.set()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        out = self.process.stdout
        while True:
            self.reading.wait()
            header = out.readline()
            if not header:
                break
            match = re.fullmatch(rb"Content-Length: (\d+)\r\n", header)
            if not match or out.readline() != b"\r\n":
                self.messages.put({"broken frame": header.decode("latin-1")})
                break
            body = out.read(int(match.group(1)))
            if len(body) < int(match.group(1)):
                self.messages.put({"broken frame": "cut short"})
                break
            self.messages.put(json.loads(body))
        self.messages.put(None)

    @property
    def pid(self):
        return self.process.pid

    def send_raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method, params=None, id=None):
        message = {"jsonrpc": "2.0", "method": method}
        if id is not None:
            message["id"] = id
        if params is not None:
            message["params"] = params
        self.send_raw(frame(message))

    def start(self, method, params=None):
        """Sends a call; returns its id."""
        self.next_id += 1
        self.send(method, params, self.next_id)
        return self.next_id

    def receive(self, timeout=None):
        """The next message; None at the end of output."""
        if self.backlog:
            return self.backlog.pop(0)
        return self.messages.get(timeout=timeout or WAIT)

    def receive_where(self, wanted, timeout=None):
        """Returns the next message that matches; the others wait for later calls."""
        for i, message in enumerate(self.backlog):
            if wanted(message):
                return self.backlog.pop(i)
        deadline = time.monotonic() + (timeout or WAIT)
        while True:
            message = self.messages.get(timeout=max(0.01, deadline - time.monotonic()))
            if message is None:
                raise AssertionError("the output ended")
            if wanted(message):
                return message
            self.backlog.append(message)

    def reply(self, id, timeout=None):
        return self.receive_where(lambda m: m.get("id") == id and "method" not in m, timeout)

    def call(self, method, params=None, timeout=None):
        """Sends a call and waits for its result."""
        reply = self.reply(self.start(method, params), timeout)
        return reply["result"] if "result" in reply else reply

    def event(self, id, type=None, timeout=None, keep=False):
        """Returns the next streaming event (or chunk) of a call. `keep`: a later collect() returns the event again."""
        def wanted(m):
            if "params" not in m or m["params"].get("id") != id:
                return False
            body = m["params"].get("event") or m["params"].get("chunk")
            return body is not None and (type is None or body.get("type") == type)
        message = self.receive_where(wanted, timeout)
        if keep:
            self.backlog.append(message)  # the event is the last message received
        params = message["params"]
        return params.get("event") or params.get("chunk")

    def collect(self, id, timeout=None):
        """Returns all events of a call until its result: (events, whole_result)."""
        events = []
        mine = lambda m: m.get("id") == id or m.get("params", {}).get("id") == id
        while True:
            message = self.receive_where(mine, timeout)
            if "method" not in message:
                return events, whole_result(events, message.get("result", message))
            params = message["params"]
            events.append(params.get("event") or params.get("chunk"))

    def ping_ms(self):
        before = time.monotonic()
        assert self.call("health.ping")["ok"]
        return (time.monotonic() - before) * 1000

    def engine_pid(self):
        """The pid of the helper's child, from the process table."""
        kids = children(self.pid)
        return kids[0] if kids else None

    def wait_exit(self, timeout=None):
        return self.process.wait(timeout or WAIT)

    def close(self):
        self.reading.set()
        return end(self.process, self.reader)


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            kids = f.read().split()
    except OSError:
        return []
    out = [int(k) for k in kids]
    # /proc lists a child under the thread that forked it
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return out
    for task in tasks:
        try:
            if task != str(pid):
                with open(f"/proc/{pid}/task/{task}/children") as f:
                    out += [int(k) for k in f.read().split()]
        except OSError:
            pass  # this thread has ended meanwhile; the others have not
    return out


def is_asleep(pid):
    """Returns true if no thread of the process runs or waits for a processor."""
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/stat") as f:
                if f.read().rsplit(")", 1)[1].split()[0] in "RD":
                    return False
    except OSError:
        return False  # a thread has just ended
    return True


def state(pid):
    """Returns the process' state as a letter, such as "T" for a stopped process; "X" if the process does not exist."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "X"


def alive(pid):
    """Whether the process runs; false for a zombie too."""
    return state(pid) not in "ZX"


def session(pid):
    """(process group, session, controlling terminal's device or 0)"""
    with open(f"/proc/{pid}/stat") as f:
        return tuple(int(field) for field in f.read().rsplit(")", 1)[1].split()[2:5])


def cpu_seconds(pid):
    """The processor time of a process so far, with all its threads."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_kib(pid, field):
    """Returns VmRSS, or VmHWM, which is the peak of VmRSS."""
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(rf"^{field}:\s+(\d+) kB", f.read(), re.M).group(1))


def wait_until(condition, what="the condition"):
    """Waits for something that no message reports (another process's end)."""
    deadline = time.monotonic() + WAIT
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true in {WAIT} s")
        time.sleep(0.005)


def wait_idle(*pids):
    """Waits until all of the processes have slept for a while, because their work is held up. A busy machine does not cause
    that."""
    last = None
    since = time.monotonic()

    def idle():
        nonlocal last, since
        now = [cpu_seconds(pid) for pid in pids]
        if now != last or not all(is_asleep(pid) for pid in pids):
            last, since = now, time.monotonic()
        return time.monotonic() - since > 0.3
    wait_until(idle, "idleness")


def kill(pid, number=signal.SIGKILL):
    os.kill(pid, number)


RESPONSE_KEYS = set("""id object created_at completed_at status incomplete_details model previous_response_id instructions
output error tools tool_choice truncation parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs
temperature reasoning usage max_output_tokens max_tool_calls store background service_tier metadata safety_identifier
prompt_cache_key access_programs""".split())

TERMINAL = {"response.completed", "response.incomplete", "response.failed"}


def check_logprobs(test, text, entries):
    """Checks that the entries, if there are any, match `text`; returns them."""
    for entry in entries:
        test.assertEqual(set(entry), {"token", "logprob", "bytes", "top_logprobs"})
        for token in [entry, *entry["top_logprobs"]]:
            test.assertEqual(token["token"], bytes(token["bytes"]).decode(errors="replace"))
    if entries:
        test.assertEqual(b"".join(bytes(entry["bytes"]) for entry in entries).decode(errors="replace"), text)
    return entries


# The `done` events with a whole text, and the events at the beginning and end of an item. The events of reasoning depend on the
# dialect.
TOLD = {"output_text.done", "refusal.done", "function_call_arguments.done", "reasoning_summary_text.done", "reasoning_text.done",
        "reasoning.done"}
PARTS = {
    "message": ["content_part.added", "output_text.delta", "output_text.done", "content_part.done"],
    "refusal": ["content_part.added", "refusal.delta", "refusal.done", "content_part.done"],
    "state": [],
    "function_call": ["function_call_arguments.delta", "function_call_arguments.done"],
    "summary": ["reasoning_summary_part.added", "reasoning_summary_text.delta", "reasoning_summary_text.done",
                "reasoning_summary_part.done"],
    "reasoning_text": ["content_part.added", "reasoning_text.delta", "reasoning_text.done", "content_part.done"],
    "reasoning": ["content_part.added", "reasoning.delta", "reasoning.done", "content_part.done"],
}


def text_of(item):
    """Returns the content of an item: the text of its only part, or its arguments."""
    if item["type"] == "function_call":
        return item["arguments"]
    parts = item["content"] if item["type"] == "message" else item["summary"] + item.get("content", [])
    if not parts and item.get("encrypted_content"):
        return None  # this reasoning has no text, only a state
    assert len(parts) == 1, item
    return parts[0].get("text", parts[0].get("refusal"))


def kind_of(item, dialect):
    """Returns the row of PARTS for an item."""
    if item["type"] == "reasoning":
        return dialect if text_of(item) is not None else "state"
    refuses = item["type"] == "message" and item["content"][0]["type"] == "refusal"
    return "refusal" if refuses else item["type"]


def check_items(test, events, dialect="summary"):
    """Checks that each item's events come from its beginning to its end, before the next item begins; returns the items as
    they ended."""
    items = []
    item = None  # the item that is open
    kinds = []  # kinds of its events, each repeated kind once
    for e in events:
        kind = e["type"].removeprefix("response.")
        if "output_index" in e and not kind.startswith("output_item.") and kind not in kinds[-1:]:
            kinds.append(kind)
        if kind == "output_item.added":
            test.assertIsNone(item, "two items at once")
            test.assertEqual(e["output_index"], len(items))
            item, said, told, entries, kinds = e["item"], "", None, [], []
            test.assertEqual(item["status"], "in_progress")
            test.assertEqual(item.get("content", []) + item.get("summary", []), [])
        elif "output_index" in e:
            test.assertEqual(e["output_index"], len(items))
            test.assertEqual(e.get("item_id", item["id"]), item["id"])
        if kind.endswith(".delta"):
            test.assertIsNone(told, "a delta after the end")
            said += e["delta"]
            entries += check_logprobs(test, e["delta"], e.get("logprobs", []))
        elif kind in TOLD:
            told = e.get("text", e.get("refusal", e.get("arguments")))
            test.assertEqual(told, said)
            test.assertEqual(e.get("name"), item.get("name"))
            test.assertEqual(e.get("logprobs", []), entries)
        elif kind == "output_item.done":
            done = e["item"]
            text = text_of(done)
            test.assertEqual((text or "", text), (said, told))
            row = kind_of(done, dialect)
            if row == "message":
                test.assertEqual(done["content"][0]["logprobs"], entries)
            parts = PARTS[row]
            test.assertEqual(kinds, [part for part in parts if said or not part.endswith("output_text.delta")])
            constant = ("id", "type", "call_id", "name", "role")
            test.assertEqual([done.get(key) for key in constant], [item.get(key) for key in constant])
            items.append(done)
            item = None
    test.assertIsNone(item, "an item that never ends")
    return items


def whole_result(events, result):
    """The result of a stream only names the response of its last event. Returns the result with the whole response."""
    if not events or set(result.get("response") or ()) != {"id", "object", "status"}:
        return result
    whole = events[-1]["response"]
    assert result["response"] == {key: whole[key] for key in result["response"]}, result
    return dict(result, response=whole)


def check_stream(test, events, result, dialect="summary", any_order=False):
    """Checks a Responses stream; returns the final response. `any_order`: the engine's parts have no order."""
    test.assertEqual([e["sequence_number"] for e in events], list(range(len(events))))
    types = [e["type"] for e in events]
    queued = ["response.queued"] if events[0]["response"]["background"] else []
    test.assertEqual(types[: 2 + len(queued)], ["response.created", *queued, "response.in_progress"])
    test.assertEqual([t for t in types if t in TERMINAL], types[-1:], "exactly one terminal event, the last")
    if types[-1] == "response.failed":
        test.assertEqual(types[-2], "error")
    for e in events:
        if "response" in e:
            test.assertEqual(set(e["response"]) - {"fm"}, RESPONSE_KEYS)  # `fm` only appears on request
            test.assertEqual(e["response"]["id"], events[0]["response"]["id"])
    final = events[-1]["response"]
    test.assertEqual(check_items(test, events, dialect), final["output"])
    kinds = [item["type"] for item in final["output"]]
    if not any_order:
        test.assertEqual(kinds, sorted(kinds, key=["reasoning", "message", "function_call"].index))
        test.assertLessEqual(kinds.count("reasoning"), 1)
    test.assertEqual(len({item["id"] for item in final["output"]}), len(final["output"]))
    whole = [item["status"] == "completed" for item in final["output"]]
    test.assertTrue(all(whole[:-1]), "only the last item can be incomplete")
    test.assertEqual(final["status"] == "completed", all(whole) if whole else final["status"] == "completed")
    test.assertEqual(result.get("response"), final)
    return final


def heed_hangups(test):
    """Processes that `test` starts from now on get SIGHUP, even if the tests run under nohup."""
    test.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))


class HelperTest(TimedTest):
    """A test with helpers that are closed at its end."""

    def helper(self, *args, **kwargs):
        helper = Helper(*args, **kwargs)
        self.addCleanup(self._end, helper)
        return helper

    def _end(self, helper):
        if helper.process.poll() is None:
            self.assertEqual(helper.close(), 0, "a clean end (sanitizers speak up here too)")
        elif not helper.process.stdout.closed:
            helper.reader.join(WAIT)
            helper.process.stdout.close()
            if helper.process.stdin and not helper.process.stdin.closed:
                try:
                    helper.process.stdin.close()
                except BrokenPipeError:
                    pass

    def wait_engine_end(self, helper):
        """Waits until the idle engine has ended, so that it has saved its state."""
        wait_until(lambda: helper.call("capabilities.get")["engine"]["state"] == "idle", "the engine's end")

    def create(self, helper, prompt, stream=True, **params):
        """Starts responses.create; returns the call's id."""
        return helper.start("responses.create", {"input": prompt, "stream": stream, **params})

    def assert_error(self, result, code, param=None, openai_code=None):
        said = str(result)[:1000]
        self.assertIs(result.get("ok"), False, said)
        self.assertEqual(result["error"]["code"], code, said)
        openai = result["error"]["openai"]
        self.assertEqual(set(openai), {"status", "type", "code", "param", "message"})
        if param is not None:
            self.assertEqual(openai["param"], param)
        if openai_code is not None:
            self.assertEqual(openai["code"], openai_code)
        return result["error"]


def main():
    unittest.main(verbosity=1, failfast="FM_FAIL_FAST" in os.environ)  # for callers that only check whether a test fails
