"""Runs an engine program on two pipes and talks to it in ENGINE.md's frames. Uses only Python's standard library."""

import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from patience import SLOW, WAIT, TimedTest  # noqa: E402,F401

GRACE = 0.75 * SLOW  # ENGINE.md: how long the front waits for an aborted job
EXIT = 1.0 * SLOW  # ENGINE.md: how long an engine has to exit


def frame(body):
    if not isinstance(body, bytes):
        body = json.dumps(body, ensure_ascii=False).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def notification(method, params=None):
    message = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return frame(message)


def user(text):
    return [{"role": "user", "content": text}]


def program_and_model(doc):
    """Removes the first two arguments, so that unittest does not see them. Ends this process with status 77 if there is no
    model."""
    if len(sys.argv) < 3:
        sys.exit(doc)
    program, model = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
    if not os.path.exists(model):
        print(f"skipped: there is no model file {model}; packaging/setup.sh downloads it")
        sys.exit(77)
    return program, model


def template_file(test, folder, template):
    """Returns the path of a template of the folder, or of a new file with the text `template`. The new file exists as long as the
    test runs."""
    path = os.path.join(folder, template + ".jinja")
    if os.path.exists(path):
        return path
    file = tempfile.NamedTemporaryFile("w", suffix=".jinja")
    test.addCleanup(file.close)
    file.write(template)
    file.flush()
    return file.name


def skip_without(program, model):
    """Ends this process with status 77 if there is no model, or if the engine has no llguidance, which formats and tools need."""
    if not os.path.exists(model):
        print(f"SKIPPED: no model: {model}")
        sys.exit(77)
    engine = Engine(program)
    engine.initialize()
    engine.load(model)
    error = engine.run(user("hi"), format={"type": "json_object"}, max_tokens=1).error
    engine.close()
    if error is not None and error.get("param") == "format":
        print("SKIPPED: the engine was built without llguidance")
        sys.exit(77)


class Engine:
    def __init__(self, program, env=None, **popen):
        full_env = {k: v for k, v in os.environ.items() if not k.startswith("FM_ENGINE_FAKE_")}
        # The tests compare texts, and on a busy machine threads wait for each other.
        full_env.update({"FM_ENGINE_LLAMA_REPEATABLE": "1", "FM_ENGINE_LLAMA_THREADS": "1", **(env or {})})
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=full_env, start_new_session=True, **popen)
        self.messages = queue.Queue()
        self.next_id = 0
        self.next_job = 0
        self.seen = []  # messages that `until` has received
        self.stderr = b""
        self.threads = [threading.Thread(target=body, daemon=True) for body in (self._read, self._read_stderr)]
        for thread in self.threads:
            thread.start()

    def _read(self):
        out = self.process.stdout
        while header := out.readline():
            match = re.fullmatch(rb"Content-Length: (\d+)\r\n", header)
            if not match or out.readline() != b"\r\n":
                self.messages.put({"broken": header})
                break
            body = out.read(int(match.group(1)))
            if len(body) < int(match.group(1)):
                break  # the engine died in the middle of a frame
            self.messages.put(json.loads(body.decode("utf-8")))
        self.messages.put(None)

    def _read_stderr(self):
        for line in self.process.stderr:
            self.stderr += line

    def close(self):
        """Ends the engine as a front that hangs up does, so that sanitizers and coverage can report. On a slow machine the
        engine's own time limit ends the engine during a leak check. This leaves a process of the engine's group, which holds our
        pipes (tests/asan_engine.c)."""
        self.hang_up()
        try:
            self.process.wait(WAIT)
        finally:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for thread in self.threads:
            thread.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()
            except BrokenPipeError:
                pass

    def hang_up(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def send_raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def notify(self, method, params=None):
        self.send_raw(notification(method, params))

    def receive_soon(self, timeout):
        """The next message; None if there is none within `timeout` seconds, or at the end of the engine's output."""
        try:
            return self.messages.get(timeout=timeout)
        except queue.Empty:
            return None

    def receive(self, timeout=WAIT):
        """The next message; None at the end of the engine's output."""
        try:
            return self.messages.get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"no message within {timeout} s")

    def call(self, method, params):
        """A call's reply, and the notifications that came before it."""
        self.next_id += 1
        self.send_raw(frame({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}))
        before = []
        while True:
            message = self.receive()
            assert message is not None, "the engine ended without an answer"
            if message.get("id") == self.next_id:
                return message, before
            before.append(message)

    def initialize(self, version=1, log_level="off"):
        reply, _ = self.call("engine.initialize", {"protocol_version": version, "log_level": log_level})
        return reply["result"]

    def load(self, model, **more):
        reply, before = self.call("engine.load", {"model": model, **more})
        assert all(m["method"] == "engine.load_progress" for m in before), before
        return reply["result"], [m["params"]["progress"] for m in before]

    def start(self, messages, **params):
        self.next_job += 1
        self.notify("job.start", {"job": self.next_job, "messages": messages, **params})
        return self.next_job

    def events(self, job, timeout=WAIT):
        """Returns the events of `job` up to job.finished. No other job may run."""
        while True:
            message = self.receive(timeout)
            assert message is not None, "the engine ended inside a job"
            assert message["params"]["job"] == job, message
            yield message["method"], message["params"]
            if message["method"] == "job.finished":
                return

    def run(self, messages, **params):
        return Outcome(self.events(self.start(messages, **params)))

    def until(self, job, method):
        """Waits for an event of one of several running jobs. `together` later returns this event and the events before it
        again."""
        while not self.seen or self.seen[-1]["method"] != method or self.seen[-1]["params"]["job"] != job:
            self.seen.append(self.receive())
            assert self.seen[-1] is not None, "the engine ended inside a job"

    def together(self, jobs):
        """The events of several jobs up to their ends: (job, method, params)."""
        left = set(jobs)
        while left:
            message = self.seen.pop(0) if self.seen else self.receive()
            assert message is not None, "the engine ended inside a job"
            job = message["params"]["job"]
            assert job in left, message
            left -= {job} if message["method"] == "job.finished" else set()
            yield job, message["method"], message["params"]

    def outcomes(self, jobs):
        """The outcome of each job."""
        events = list(self.together(jobs))
        return [Outcome((method, params) for number, method, params in events if number == job) for job in jobs]

    def wait_exit(self, timeout):
        """The exit status, and the seconds until the exit."""
        start = time.monotonic()
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the engine is still there after {timeout} s")
        return status, time.monotonic() - start


def grown(output_tokens, params):
    """Checks the count of an event, if the engine counts tokens: it never gets lower."""
    count = params.get("output_tokens", output_tokens)
    assert count >= output_tokens, params
    return count


class Outcome:
    """Checks a job's events against the order that ENGINE.md gives, and collects what they contain."""

    def __init__(self, events):
        events = list(events)
        self.names = []
        last = max((i for i, (name, _) in enumerate(events) if name == "job.restarted"), default=-1)
        self.restarts = [params["error"] for name, params in events if name == "job.restarted"]
        events = events[last + 1:]  # everything before this event is void
        self.text = ""
        self.reasoning = ""
        self.refusal = ""
        self.is_accepted = False
        self.accepted = None  # tokens of the prompt; None if the engine can't count them
        self.dropped = 0
        self.processed = 0
        self.cached = 0
        self.counted = any("output_tokens" in params for name, params in events if name != "job.finished")
        self.signs = []  # output_tokens of each job.progress during generation
        self.report = None  # only for a job with a schema
        self.schema_error = None
        self.timings = None
        self.unknown_tool = None
        self.calls = []  # [name, arguments] for each call
        self.logprobs = None  # the entries of all deltas, if there are any
        output_tokens = 0
        for name, params in events:
            self.names.append(name)
            if name == "job.accepted":
                assert self.names == ["job.accepted"], self.names
                self.is_accepted = True
                self.accepted = params.get("input_tokens")
                self.dropped = params.get("dropped", 0)
                self.report = params.get("schema_report")
            elif name == "job.progress" and "output_tokens" in params:
                assert params["processed"] == self.accepted and params["cached"] == self.cached, params
                assert params["output_tokens"] >= output_tokens, params
                output_tokens = params["output_tokens"]
                self.signs.append(output_tokens)
            elif name == "job.progress":
                assert self.is_accepted and not self.signs, self.names
                assert not {"job.delta", "job.reasoning"} & set(self.names), self.names
                # the same count comes again within a long batch
                assert self.processed <= params["processed"] <= self.accepted, params
                assert 0 <= params["cached"] <= params["processed"], params
                self.processed, self.cached = params["processed"], params["cached"]
            elif name == "job.reasoning":
                assert self.is_accepted and params["text"] != "", params
                output_tokens = grown(output_tokens, params)
                self.reasoning += params["text"]
                assert not self.text and not self.calls, "a thought after text or a call"
            elif name == "job.delta":
                assert self.is_accepted and params["text"] != "", params
                output_tokens = grown(output_tokens, params)
                self.text += params["text"]
                if "logprobs" in params:
                    self._add_logprobs(params["logprobs"], params["text"])
                assert not self.calls, "text after a call"
            elif name == "job.refusal":
                assert self.is_accepted and params["text"] != "", params
                self.refusal += params["text"]
            elif name in ("job.tool_call", "job.tool_delta"):
                assert self.is_accepted, params
                output_tokens = grown(output_tokens, params)
                if name == "job.tool_call":
                    self.calls.append([params["name"], ""])
                else:
                    assert params["arguments"] != "", params
                    self.calls[-1][1] += params["arguments"]
                assert params["index"] == len(self.calls) - 1, params
            else:
                assert name == "job.finished", name
                self.reason, self.usage, self.error = params["reason"], params.get("usage", {}), params.get("error")
                self.schema_error = params.get("schema_error")
                self.timings = params.get("timings")
                self.unknown_tool = params.get("unknown_tool")
        assert (self.error is not None) == (self.reason == "error"), self.error
        usage = self.usage  # an engine leaves out counts that it does not know
        # If job.accepted has no counts, only job.finished has them: then `accepted` and `cached` are the counts of job.finished.
        if self.is_accepted and self.accepted is None:
            self.accepted, self.cached = usage.get("input_tokens"), usage.get("cached_tokens", 0)
        if self.is_accepted:
            assert usage.get("input_tokens", self.accepted or 0) == (self.accepted or 0), usage
            assert usage.get("cached_tokens", self.cached) == self.cached, usage
        assert usage.get("output_tokens", output_tokens) >= output_tokens, usage
        assert 0 <= usage.get("reasoning_tokens", 0) <= usage.get("output_tokens", 1 << 40), usage
        assert not self.reasoning or usage.get("reasoning_tokens", 1) > 0, usage

    def _add_logprobs(self, entries, text):
        """The entries' bytes are the text, with replacement characters where bytes are not UTF-8."""
        told = b"".join(bytes(entry["bytes"]) for entry in entries)
        assert told.decode(errors="replace") == text, (told, text)
        for entry in entries:
            assert set(entry) == {"bytes", "logprob", "top"} and entry["bytes"], entry
            for token in [entry, *entry["top"]]:
                assert -9999 <= token["logprob"] <= 0, token
        self.logprobs = (self.logprobs or []) + entries


def shared_engine(case, program, model):
    """Starts an engine `llama` with `model`, for all tests of the class `case`."""
    engine = Engine(program, {"FM_ENGINE_LLAMA_CTX": "1024"})
    case.addClassCleanup(engine.close)
    assert engine.initialize()["ok"]
    result, _ = engine.load(model)
    assert result["ok"], result
    return engine
