"""
Makes calls of the front fail in a dozen sessions: each allocation in turn (alone, and with all later ones), each start of a
thread, each read and each write. Also makes reads and writes that move few bytes and are interrupted.

    sessions.py [alloc|thread|read|write|short] [--every K] [--every-io L] [SCENARIO...]

K: only each Kth allocation fails; L: only each Lth read and write fails (default 1: all of them). Whatever fails, there is no
crash, no hang, and only whole frames on stdout. If the helper ends with status 0, each call was answered once, and each stream
had one terminal event; otherwise the status is one of ORDERLY. A helper that started without one of its threads answers a call
with OVERLOADED, unless the thread was for building a large frame. A helper without memory for a message ends with status 70. In
session
mode (the scenarios lines_...), each line has one answer, in order, or the status is 70 or 71, and no engine is left. In a
build with AddressSanitizer there is also no leak.
"""

import argparse
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))
from wire import BIN, TERMINAL, WAIT, alive, children, frame, script, wait_until  # noqa: E402

LIBRARY = os.environ.get("FM_FAILING", os.path.join(BIN, "..", "tests-bin", "libfailing.so"))
NO_MEMORY = -32603  # for a message, see PROTOCOL.md
EX_SOFTWARE = 70
EX_OSERR = 71
ORDERLY = {"alloc": (0, 70, 71), "thread": (0, 71), "read": (0, 76), "write": (0,), "short": (0,)}


class Ended(Exception):
    """The helper's output has ended: without memory this may happen at any time."""


class Broken(Exception):
    """Something that must never happen."""


class Session:
    """The helper with failing calls: sends, waits, and keeps all its messages."""

    ARGUMENTS = ("--engine", "fake")
    ORDERLY = ORDERLY

    def __init__(self, env):
        command = [os.path.join(BIN, "fm-proxy"), *self.ARGUMENTS]
        # a file, because a leak checker's helper process can outlive a killed engine, and would keep a pipe open
        self.stderr = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr,
                                        env=env, close_fds=False)
        self.bytes = b""
        self.messages = []
        self.calls = []
        self.large = False  # a frame is normally built by another thread, and no thread can be started for it
        self.provoked = ()  # codes of errors without an id that the scenario itself causes

    def send_raw(self, data):
        try:
            os.write(self.process.stdin.fileno(), data)
        except BrokenPipeError:
            raise Ended from None

    def call(self, method, params=None):
        id = len(self.calls) + 1
        self.calls.append(id)
        self.send_raw(frame({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}))
        return id

    def _take(self):
        while match := re.match(rb"Content-Length: (\d+)\r\n\r\n", self.bytes):
            end = match.end() + int(match.group(1))
            if len(self.bytes) < end:
                return
            self.messages.append(json.loads(self.bytes[match.end():end]))
            self.bytes = self.bytes[end:]

    def read(self, deadline):
        """Returns False at the end of the output."""
        fd = self.process.stdout.fileno()
        if not select.select([fd], [], [], max(0, deadline - time.monotonic()))[0]:
            raise Broken("a hang")
        data = os.read(fd, 1 << 20)
        self.bytes += data
        self._take()
        return bool(data)

    def until(self, condition):
        deadline = time.monotonic() + WAIT
        while not condition():
            if not self.read(deadline):
                raise Ended

    def reply(self, id):
        self.until(lambda: any(m.get("id") == id and "method" not in m for m in self.messages) or self.nameless())

    def nameless(self):
        """The codes of errors without an id that the scenario did not cause."""
        codes = [m["error"]["code"] for m in self.messages if "id" in m and m["id"] is None]
        return [code for code in codes if code not in self.provoked]

    def response(self, id):
        """The response in the answer to the call `id`; {} if it has none."""
        self.reply(id)
        return next((m.get("result", {}).get("response") or {} for m in self.messages if m.get("id") == id), {})

    def response_id(self, id):
        return self.response(id).get("id", "resp_none")

    def lost_one(self):
        """Whether the response failed, or is not stored."""
        said = [m.get("result") or m.get("params", {}).get("event") or {} for m in self.messages]
        responses = [value.get("response") or {} for value in said]
        return any(response.get("status") == "failed" or response.get("store") is False for response in responses)

    def has_code(self, code):
        return any(m.get("result", {}).get("error", {}).get("code") == code for m in self.messages)

    def delta(self, id):
        """Waits for the first delta; an answer also ends the wait."""
        wanted = lambda m: (m.get("params", {}).get("event", {}).get("type") == "response.output_text.delta"
                            or m.get("id") == id)
        self.until(lambda: any(wanted(m) for m in self.messages) or self.nameless())

    def end(self):
        """Closes stdin and reads to the end. Returns the exit status and stderr."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        deadline = time.monotonic() + WAIT
        while self.read(deadline):
            pass
        status = self.process.wait(WAIT)
        self.process.stdout.close()
        self.stderr.seek(0)
        said = self.stderr.read().decode(errors="replace")
        self.stderr.close()
        return status, said


class Lines(Session):
    """Session mode: sends a line for each request, and reads its answer before the next one."""

    ARGUMENTS = ("sessions", "--engine", "fake", "--log-level", "warn", "--max-output-tokens", "20")
    ORDERLY = {"alloc": (0, 70, 71), "thread": (0, 70, 71), "read": (0, 70), "write": (0, 70), "short": (0,)}

    def __init__(self, env):
        super().__init__(env)
        self.requests = 0
        self.engines = set()

    def _take(self):
        *lines, self.bytes = self.bytes.split(b"\n")
        self.messages += [json.loads(line) for line in lines]

    def send(self, command, **fields):
        self.requests += 1
        self.send_raw(json.dumps({"command": command, **fields}).encode() + b"\n")

    def ask(self, command, **fields):
        self.send(command, **fields)
        self.until(lambda: len(self.messages) == self.requests)
        self.engines.update(children(self.process.pid))
        return self.messages[-1]

    def message(self, session, *steps, output_format="text"):
        return self.ask("message", session_id=session, prompt="p", content=json.dumps(steps), output_format=output_format)


def check_streams(session, status):
    """No event comes after the answer; the last event of an answered stream is its one terminal event."""
    for id in session.calls:
        mine = [m for m in session.messages if m.get("id") == id or m.get("params", {}).get("id") == id]
        answers = [i for i, m in enumerate(mine) if "method" not in m]
        if len(answers) > 1 or (answers and answers[0] != len(mine) - 1):
            raise Broken(f"call {id}: {len(answers)} answers, or events after one")
        types = [m["params"].get("event", {}).get("type") for m in mine if m.get("method") == "responses.event"]
        terminals = [t for t in types if t in TERMINAL]
        if len(terminals) > 1 or (terminals and types[-1] not in TERMINAL):
            raise Broken(f"call {id}: terminal events {terminals}")
        if status == 0 and not answers and not session.nameless():
            raise Broken(f"call {id} was never answered")
        if answers and types and not terminals:
            raise Broken(f"call {id}: answered without a terminal event")


def check_lines(session, what, status):
    """
    Checks that each answer is whole, and that each request has at most one answer, or exactly one if the exit status is success.
    A failed read counts as the end of the input, and a failed write may mean that the host has gone.
    """
    if session.bytes and what != "write":
        raise Broken(f"not a whole line: {session.bytes[:200]!r}")
    for answer in session.messages:
        if not isinstance(answer.get("ok"), bool) or answer["ok"] == ("error" in answer):
            raise Broken(f"no answer: {answer}")
    missing = session.requests - len(session.messages)
    if missing < 0 or (missing > 0 and status == 0 and what not in ("read", "write")):
        raise Broken(f"{session.requests} requests and {len(session.messages)} answers, then status {status}")
    wait_until(lambda: not any(alive(engine) for engine in session.engines), what="the engines' end")


def check(session, what, failed, left, status, said):
    """`left`: the host went before it had its answers, or its output failed, so some answers may be missing."""
    if status not in session.ORDERLY[what]:
        raise Broken(f"status {status}: {said[-3000:]}")
    if status == EX_OSERR and what == "thread" and not re.search(r"can't start: \w", said):
        raise Broken(f"status {status} without a reason: {said[-3000:]}")
    if isinstance(session, Lines):
        check_lines(session, what, status)
        return
    if session.bytes and what != "write":
        raise Broken(f"not a whole frame: {session.bytes[:200]!r}")
    if session.nameless() and (set(session.nameless()) != {NO_MEMORY} or status != EX_SOFTWARE):
        raise Broken(f"errors {session.nameless()} without an id, then status {status}")
    told = session.has_code("OVERLOADED") or session.lost_one()
    if failed and what == "thread" and status == 0 and not told and not session.large:
        raise Broken("a thread is missing, and no call was told so")
    check_streams(session, -1 if left else status)


# ---- the scenarios ----

def ping(s):
    s.reply(s.call("health.ping"))


def lists(s):
    s.reply(s.call("capabilities.get"))
    s.reply(s.call("models.list"))
    s.reply(s.call("models.retrieve", {"id": "fake"}))


def answer(s):
    s.reply(s.call("responses.create", {"input": "hello", "metadata": {"a": "b"}, "stop": ["x"]}))


def stream(s):
    s.reply(s.call("responses.create", {"input": script("one", " two", " three"), "stream": True}))


def chat(s):
    s.reply(s.call("chat.completions.create", {"messages": [{"role": "user", "content": "hi"}]}))


def chat_stream(s):
    s.reply(s.call("chat.completions.create", {"messages": [{"role": "user", "content": script("a", "b")}],
                                               "stream": True, "stream_options": {"include_usage": True}}))


def embeddings(s):
    s.reply(s.call("embeddings.create", {"input": ["one", "two"], "dimensions": 3}))
    s.reply(s.call("embeddings.create", {"input": "one", "encoding_format": "base64"}))


def completion(s):
    s.reply(s.call("completions.create", {"prompt": "one two", "echo": True, "stream": True}))


def truncated(s):
    input = [{"role": role, "content": "word " * 300} for _ in range(8) for role in ("user", "assistant")]
    body = {"input": [*input, {"role": "user", "content": "hi"}], "truncation": "auto"}
    s.reply(s.call("responses.input_tokens", body))
    s.reply(s.call("responses.create", {**body, "store": False}))


def refused(s):
    s.reply(s.call("responses.create", {"input": "x", "temperature": 9}))
    s.reply(s.call("responses.create", {"input": "x", "model": "nope"}))
    s.reply(s.call("no.such.method"))


def cancelled(s):
    id = s.call("responses.create", {"input": script("part", {"hang": "soft"}), "stream": True})
    s.delta(id)
    s.reply(s.call("responses.cancel", {"request_id": id}))
    s.reply(id)


def timed_out(s):
    s.reply(s.call("responses.create", {"input": script("part", {"hang": "soft"}), "stream": True,
                                        "fm": {"no_progress_timeout_ms": 30}}))


def engine_dies(s):
    s.reply(s.call("responses.create", {"input": script("part", {"signal": "KILL"}), "stream": True}))
    s.reply(s.call("responses.create", {"input": "next"}))


def together(s):
    ids = [s.call("responses.create", {"input": script("a", "b"), "stream": True}) for _ in range(3)]
    for id in ids:
        s.reply(id)


def shutdown(s):
    id = s.call("responses.create", {"input": script("part", {"hang": "soft"}), "stream": True})
    s.delta(id)
    s.reply(s.call("process.shutdown"))


def bad_bodies(s):
    s.provoked = (-32700, -32600)
    s.send_raw(frame(b"{bad}"))
    s.send_raw(frame({"jsonrpc": "2.0", "id": [], "method": "health.ping"}))
    s.until(lambda: len(s.messages) >= 2)
    s.reply(s.call("health.ping"))


def exponent(s):
    """Whether a number is valid JSON does not depend on the memory."""
    s.calls.append(1)
    s.send_raw(frame(b'{"jsonrpc":"2.0","id":1,"method":"health.ping","params":{"temperature":1e0}}'))
    s.reply(1)


def large(s):
    s.large = True
    s.reply(s.call("responses.create", {"input": script({"repeat": ["0123456789" * 2000, 20]}), "stream": True}))


def stored(s):
    """A turn that continues a stored turn, and the calls about both."""
    id = s.response_id(s.call("responses.create", {"input": "one"}))
    s.reply(s.call("responses.create", {"input": "two", "previous_response_id": id, "stream": True}))
    s.reply(s.call("responses.create", {"input": [{"id": "msg_none"}]}))
    for method in ("responses.retrieve", "responses.input_items", "responses.cancel", "responses.delete"):
        s.reply(s.call(method, {"id": id}))


def read_again(s):
    """Reads the events of a stored response, and of a running one."""
    id = s.response_id(s.call("responses.create", {"input": script("one ", "two"), "stream": True}))
    s.reply(s.call("responses.retrieve", {"id": id, "stream": True, "starting_after": 2}))
    id = s.response_id(s.call("responses.create", {"input": script("one ", {"hang": "soft"}), "background": True}))
    call = s.call("responses.retrieve", {"id": id, "stream": True})
    s.reply(s.call("responses.cancel", {"id": id}))
    s.reply(call)


def background(s):
    id = s.response_id(s.call("responses.create", {"input": script("part", {"hang": "soft"}), "background": True}))
    stream = s.call("responses.retrieve", {"id": id, "stream": True})
    s.delta(stream)
    s.reply(s.call("responses.retrieve", {"id": id}))
    s.reply(s.call("responses.cancel", {"id": id}))
    s.reply(stream)


def killed_host(s):
    s.delta(s.call("responses.create", {"input": script("part", {"hang": "soft"}), "stream": True}))
    raise Ended


def lines_talk(s):
    """A session's life, with errors in between; an answer that is too long is generated twice."""
    s.ask("check-availability")
    opened = s.ask("open-session", instructions="say \"yes\"\n")
    session = opened.get("session_id", "sess_none")
    s.message(session, '{"result":', '"a\\n"}')
    s.message(session, '{"result":["a","b"]}', output_format="string_list")
    s.message(session, "no JSON")
    s.message(session, "{", {"repeat": ["x", 30]})
    s.message(session, {"signal": "KILL"})
    s.ask("message", session_id=session, prompt="p", content="", output_format="text")
    s.ask("open-session", odd="ignored\n")
    s.ask("close-session", session_id=session)
    s.ask("close-session", session_id=session)
    s.ask("shutdown")


def lines_end(s):
    """The input ends while a message is generated."""
    session = s.ask("open-session").get("session_id", "sess_none")
    s.message(session, '{"result":"a"}')
    s.send("message", session_id=session, prompt="p", content=json.dumps([{"hang": "soft"}]), output_format="text")


LINES = [lines_talk, lines_end]
SCENARIOS = [ping, lists, answer, stream, chat, chat_stream, embeddings, completion, truncated, refused, cancelled,
             timed_out, engine_dies, together, shutdown, bad_bodies, exponent, large, stored, read_again, background,
             killed_host, *LINES]


# ---- the sweep ----

def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("FM_PROXY_")}
    env.update(more, LD_PRELOAD=LIBRARY)
    env["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=1:exitcode=99"
    env["LSAN_OPTIONS"] = f"print_suppressions=0:suppressions={os.path.join(os.path.dirname(__file__), 'lsan.supp')}"
    return env


def run(scenario, what, **env):
    """Runs one session. Returns the exit status."""
    session = (Lines if scenario in LINES else Session)(environment(FM_FAIL_WHAT=what, **env))
    left = False
    try:
        scenario(session)
    except Ended:
        left = scenario is killed_host or what == "write"
    except Broken:
        session.process.kill()
        session.end()
        raise
    status, said = session.end()
    check(session, what, "FM_FAIL_AT" in env or "FM_FAIL_FROM" in env, left, status, said)
    return status


def count(scenario, what):
    """Returns how many such calls the session has if no call fails."""
    with tempfile.TemporaryFile() as out:
        os.set_inheritable(out.fileno(), True)
        status = run(scenario, what, FM_FAIL_COUNT=str(out.fileno()))
        out.seek(0)
        if status != 0:
            raise Broken(f"status {status} though nothing failed")
        return int(out.read())


def sweep(scenario, what, every, part):
    """
    Makes each call fail in turn. Returns how many there are, and how often each exit status came.

    every -- 1, or N to take only each Nth call
    part -- (K, N): this run takes the Kth of N shares of these calls, K from 0
    """
    total = count(scenario, what)
    failures = [(mode, number) for offset, mode in enumerate(("FM_FAIL_AT", "FM_FAIL_FROM"))
                for number in range(1 + offset % every, total + 1, every)]
    statuses = {}
    for mode, number in failures[part[0]::part[1]]:
        try:
            status = run(scenario, what, **{mode: str(number)})
        except Broken as e:
            raise Broken(f"{mode}={number}: {e}") from None
        statuses[status] = statuses.get(status, 0) + 1
    return total, statuses


def trickle(scenario):
    return 1, {run(scenario, "short", FM_FAIL_SHORT="1"): 1}


def report(scenario, what, every, part):
    """Prints a line. True if there was no fault."""
    before = time.monotonic()
    try:
        total, statuses = trickle(scenario) if what == "short" else sweep(scenario, what, every, part)
    except Broken as e:
        print(f"{what:6} {scenario.__name__:12} BROKEN {e}", flush=True)
        return False
    told = ", ".join(f"{n} x status {s}" for s, n in sorted(statuses.items()))
    print(f"{what:6} {scenario.__name__:12} {total:4} calls: {told} ({time.monotonic() - before:.1f} s)", flush=True)
    return True


def share(text):
    part, parts = map(int, text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError
    return part - 1, parts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--every-io", type=int, default=1)
    parser.add_argument("--part", type=share, default=(0, 1), metavar="K/N", help="the Kth of N shares of the failures")
    arguments = parser.parse_intermixed_args()
    if not os.path.exists(LIBRARY):
        print(f"skipped: {LIBRARY} is not there; it is built with glibc only")
        return 77
    named = set(arguments.names)
    whats = [w for w in ORDERLY if w in named] or list(ORDERLY)
    scenarios = [s for s in SCENARIOS if s.__name__ in named] or SCENARIOS
    every = {"alloc": arguments.every, "read": arguments.every_io, "write": arguments.every_io}
    short = (ping, exponent)  # in these scenarios every call fails in turn, whatever `every` is
    held = (report(s, w, 1 if s in short else every.get(w, 1), arguments.part) for w in whats for s in scenarios)
    return 0 if all(held) else 1  # stops at the first fault


if __name__ == "__main__":
    sys.exit(main())
