"""Runs many random jobs on fm-engine-apple, with the stand-in of Apple's library:

    jobs.py PROGRAM LIBRARY [JOBS] [SEED]

The jobs have texts, formats, tools and statuses, aborts at random moments, and cancels that are noticed late or never. Each job
must end once, with the answer for its kind. If an engine could not stop its library, a new engine is started. Each of the other
engines must end with status 0: another status means that a reference is left, or that a rule of the library was broken
(standin.h). Prints the number of jobs of each kind.
"""

import collections
import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "contract"))
from engine import WAIT, Engine, Outcome, user  # noqa: E402
from test_apple import PERSON, STUCK, TIME, WEATHER, schema_format, script  # noqa: E402

AHEAD = 8  # jobs that wait in the engine
FOR_EVER = 1 << 40


def text_job(rng):
    words = [f"w{rng.randrange(1000)} " for _ in range(rng.randrange(1, 12))]
    expected = "".join(words).strip()
    return {"messages": user(expected)}, lambda o: (o.reason, o.text) == ("stop", expected)


def limit_job(rng):
    return {"messages": user("a b c d e f g"), "max_tokens": rng.randrange(1, 7)}, lambda o: o.reason == "length"


def stop_job(rng):
    return ({"messages": script({"ignore_cancel_ms": rng.randrange(8)}, "one", " two", " three", {"sleep_ms": 5}, " four"),
             "stop": [" three"]}, lambda o: (o.reason, o.text) == ("stop", "one two"))


def format_job(rng):
    return ({"messages": user("Tom and Tim"), "format": schema_format(PERSON)},
            lambda o: o.reason == "stop" and json.loads(o.text)["kind"] == "cat")


def broken_format_job(rng):
    return ({"messages": script({"content": rng.choice(["{", "[]", "5"])}), "format": schema_format(PERSON)},
            lambda o: o.reason == "error" and o.error["code"] == "INTERNAL")


def tool_job(rng):
    calls = [{"name": "get_time", "arguments": "{}"} for _ in range(rng.randrange(1, 5))]
    return ({"messages": script("Hm", {"tool_calls": calls}, "late"), "tools": [WEATHER, TIME]},
            lambda o: (o.reason, o.text, len(o.calls)) == ("stop", "Hm", len(calls)))


def required_job(rng):
    return ({"messages": user("Ulm"), "tools": [WEATHER, TIME], "tool_choice": {"mode": "required"}},
            lambda o: o.calls == [["get_weather", '{"city":"Ulm","days":1}']])


def status_job(rng):
    status = rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 77, 255])
    steps = ["x"] * rng.randrange(2)
    return ({"messages": script(*steps, {"status": status, "text": "no"})},
            lambda o: o.reason == ("stop" if status == 9 else "length" if status == 1 and steps else
                                   "content_filter" if status == 3 and steps else "error"))


def refused_job(rng):
    return {"messages": user("a"), "logprobs": 1}, lambda o: o.error["param"] == "logprobs"


def count_job(rng):
    return {"messages": user("a b"), "max_tokens": 0}, lambda o: (o.reason, o.accepted) == ("length", 5)


def rewriting_job(rng):
    return {"messages": script("One two", {"snapshot": "One"})}, lambda o: o.reason == "error"


def aborted_job(rng):
    tokens = rng.randrange(20)
    steps = [{"ignore_cancel_ms": rng.choice([0, 0, 1, 5, 20])}, *["x"] * tokens, {"hang": "soft"}]
    if rng.random() < 0.3:
        steps.insert(rng.randrange(1, len(steps)), {"tool_call": {"name": "get_time", "arguments": "{}"}})
    kind = {"format": schema_format(PERSON)} if rng.random() < 0.2 else {}
    return {"messages": script(*steps), "tools": [TIME], "abort": rng.randrange(tokens + 2), **kind}, \
        lambda o: o.reason in ("aborted", "stop", "error")


def stuck_job(rng):
    return ({"messages": script({"ignore_cancel_ms": FOR_EVER}, "x", {"hang": "soft"}), "abort": 2},
            lambda o: o.reason == "aborted")


KINDS = ((text_job, 30), (limit_job, 5), (stop_job, 8), (format_job, 10), (broken_format_job, 5), (tool_job, 6),
         (required_job, 5), (status_job, 15), (refused_job, 2), (count_job, 2), (rewriting_job, 2), (aborted_job, 10))


class Session:
    """An engine, and the jobs that it was sent."""

    def __init__(self, program, library):
        self.engine = Engine(program, {"FM_ENGINE_APPLE_LIBRARY": library, "FM_ENGINE_STANDIN": ""})
        assert self.engine.initialize()["ok"] and self.engine.load(None)[0]["ok"]
        self.sent = collections.deque()

    def send(self, kind, rng):
        params, check = kind(rng)
        abort = params.pop("abort", None)
        messages = params.pop("messages")
        job = self.engine.start(messages, **params)
        self.sent.append((job, kind, check, abort, params))

    def finish(self):
        """Waits for the oldest job, aborts it after its planned number of events, and returns the reason of its end."""
        job, kind, check, abort, params = self.sent.popleft()
        events = []
        if abort == 0:
            self.engine.notify("job.abort", {"job": job})
        for event in self.engine.events(job):
            events.append(event)
            if len(events) == abort or (abort and event[0] == "job.accepted" and params.get("format")):
                self.engine.notify("job.abort", {"job": job})
        outcome = Outcome(events)
        assert check(outcome), (kind.__name__, params, events)
        return outcome.reason

    def end(self, status):
        if status == STUCK:
            assert self.engine.wait_exit(WAIT)[0] == STUCK
        self.engine.close()
        assert self.engine.process.returncode == status, (self.engine.process.returncode, self.engine.stderr)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, library = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    jobs = int(sys.argv[3]) if len(sys.argv) > 3 else 100000
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 30)
    rng = random.Random(seed)
    kinds, weights = zip(*KINDS)
    seen = collections.Counter()
    start, left = time.monotonic(), jobs
    stuck_each = max(jobs // 20, 1)  # jobs for each stuck job, which takes 700 ms and ends the engine
    engines = 0
    while left > 0:
        session, engines = Session(program, library), engines + 1
        many = min(left, stuck_each)
        for _ in range(many):
            session.send(rng.choices(kinds, weights)[0], rng)
            if len(session.sent) > AHEAD:
                seen[session.finish()] += 1
        while session.sent:
            seen[session.finish()] += 1
        if engines % 2:  # the other engines end normally, and count what is left
            session.send(stuck_job, rng)
            seen[session.finish()] += 1
        session.end(STUCK if engines % 2 else 0)
        left -= many
    seconds = time.monotonic() - start
    print(f"{jobs} jobs in {seconds:.0f} s on {engines} engines, seed {seed}: " +
          ", ".join(f"{count} {reason}" for reason, count in sorted(seen.items())))


if __name__ == "__main__":
    main()
