"""Runs random mixes of simultaneous jobs on the llama engine. Each answer must pass the same audit as without other jobs, and
belong to its job.

    mixes.py PROGRAM MODEL [JOBS] [SEED] [REPEATABLE]

Prompts share beginnings, jobs are aborted at random moments, and the KV memory is so small that some have to wait. Continues
until there are REPEATABLE answers of repeatable jobs (if REPEATABLE is more than JOBS, every second job is repeatable). Each such
answer is compared with the answer of a fresh process, to the last bit of its log probabilities. Prints the seed, which gives the
same jobs again. The engine loads only the first layers of MODEL. Exit status 77: skipped, because MODEL is not there.
"""

import json
import os
import random
import re
import sys

from engine import Engine, Outcome, user

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import gguf  # noqa: E402

SLOTS = 5
STORIES = [[{"role": "system", "content": f"{word} " * 60}] for word in ("red", "green", "blue")]


def plain(pick, number):
    return {"max_tokens": pick.randint(1, 40), "temperature": pick.choice([0, 0.7])}, lambda outcome: True


def seeded(pick, number):
    return {"max_tokens": pick.randint(1, 20), "seed": number}, lambda outcome: True


def own_number(pick, number):
    """A text that no other job is allowed to write."""
    wanted = f"job {number} is [a-z]{{3,6}}"
    return ({"format": {"type": "grammar", "syntax": "regex", "definition": wanted}},
            lambda outcome: re.fullmatch(wanted, outcome.text))


def own_object(pick, number):
    schema = {"type": "object", "properties": {"job": {"const": number}, "tags": {
        "type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 3}}, "required": ["job", "tags"],
        "additionalProperties": False}

    def check(outcome):
        value = json.loads(outcome.text)
        return value["job"] == number and set(value["tags"]) <= {"a", "b"}
    return {"format": {"type": "json_schema", "schema": schema, "strict": True}}, check


def tool(pick, number):
    tools = [{"name": f"tool_{number}", "parameters": {"type": "object", "properties": {"n": {"enum": [number]}},
                                                      "required": ["n"], "additionalProperties": False}, "strict": True}]

    def check(outcome):
        return outcome.text == "" and all(
            name == f"tool_{number}" and json.loads(arguments) == {"n": number} for name, arguments in outcome.calls)
    return {"tools": tools, "tool_choice": {"mode": "required"}, "parallel_tool_calls": False}, check


def logprobs(pick, number):
    def check(outcome):
        return b"".join(bytes(entry["bytes"]) for entry in outcome.logprobs or []).decode(errors="replace") == outcome.text
    return {"logprobs": pick.randint(0, 3), "max_tokens": 12, "temperature": 0}, check


def penalised(pick, number):
    return {"max_tokens": 20, "presence_penalty": 1, "repeat_penalty": 1.3, "top_k": 20}, lambda outcome: True


def counted(pick, number):
    return {"max_tokens": 0}, lambda outcome: outcome.usage["output_tokens"] == 0


def repeatable_job(pick, number):
    sampling = {"temperature": 0} if pick.random() < 0.5 else {"temperature": 0.9, "seed": number}
    return {"repeatable": True, "logprobs": 0, "max_tokens": pick.randint(1, 60), **sampling}, lambda outcome: True


def told(outcome):
    """The values that must be equal in a fresh process."""
    return outcome.reason, outcome.text, outcome.logprobs, outcome.usage["output_tokens"]


KINDS = (plain, plain, seeded, own_number, own_object, tool, logprobs, penalised, counted, repeatable_job)


class Mix:
    def __init__(self, engine, pick, kinds):
        self.kinds = kinds
        self.engine, self.pick, self.running, self.ended = engine, pick, {}, 0
        self.repeatable = []  # messages, parameters and outcome of each repeatable job

    def start(self):
        kind = self.pick.choice(self.kinds)
        number = self.engine.next_job + 1
        params, check = kind(self.pick, number)
        words = self.pick.randint(1, 250) if self.pick.random() < 0.3 else 5
        messages = [*self.pick.choice(STORIES), *user(f"{self.pick.choice(('one', 'two'))} " * words)]
        job = self.engine.start(messages, **params)
        self.running[job] = {"kind": kind.__name__, "check": check, "messages": messages, "params": params,
                             "events": [], "aborted": False,
                             "patience": self.pick.randint(0, 25) if self.pick.random() < 0.2 else None}

    def abort_some(self):
        for job, state in self.running.items():
            if state["patience"] is not None and len(state["events"]) >= state["patience"] and not state["aborted"]:
                state["aborted"] = True
                self.engine.notify("job.abort", {"job": job})

    def receive(self):
        message = self.engine.receive()
        assert message is not None, "the engine ended"
        state = self.running[message["params"]["job"]]
        state["events"].append((message["method"], message["params"]))
        if message["method"] == "job.finished":
            self.audit(message["params"]["job"])

    def audit(self, job):
        state = self.running.pop(job)
        outcome = Outcome(state["events"])
        reasons = ("stop", "length", "aborted") if state["aborted"] else ("stop", "length")
        assert outcome.reason in reasons, (state["kind"], outcome.reason, outcome.error)
        assert outcome.reason != "stop" or state["check"](outcome), (job, state["kind"], outcome.text, outcome.calls)
        if state["kind"] == "repeatable_job" and not state["aborted"]:
            self.repeatable.append((state["messages"], state["params"], outcome))
        self.ended += 1


def ready(program, model):
    settings = {"SLOTS": SLOTS, "CTX": 1024, "KV_TOKENS": 1536, "THREADS": 1, "REPEATABLE": ""}
    engine = Engine(program, {f"FM_ENGINE_LLAMA_{name}": str(value) for name, value in settings.items()})
    assert engine.initialize()["ok"]
    loaded, _ = engine.load(model)
    assert loaded["slots"] == SLOTS, loaded
    return engine


def compare(program, model, answers):
    for messages, params, outcome in answers:
        fresh = ready(program, model)
        want = fresh.run(messages, **params)
        assert told(outcome) == told(want), (messages, params, outcome.text, want.text)
        fresh.close()
    print(f"mixes: {len(answers)} of {len(answers)} repeatable answers are those of a fresh process")


def main(program, model, jobs="60", seed=None, repeatable="2"):
    if not os.path.exists(model):
        print(f"skipped: {model} is not there")
        return 77
    model = gguf.shallow(model)
    seed = int(seed) if seed else random.randrange(1 << 30)
    print(f"mixes: {jobs} jobs, seed {seed}", flush=True)
    often = (repeatable_job,) * len(KINDS) if int(repeatable) > int(jobs) else ()
    mix = Mix(ready(program, model), random.Random(seed), KINDS + often)
    started = 0
    while mix.running or started < int(jobs) or len(mix.repeatable) < int(repeatable):
        while len(mix.running) < SLOTS and (started < int(jobs) or len(mix.repeatable) < int(repeatable)):
            mix.start()
            started += 1
        mix.receive()
        mix.abort_some()
    mix.engine.close()
    assert mix.engine.process.returncode == 0, mix.engine.process.returncode
    compare(program, model, mix.repeatable)
    print(f"mixes: {mix.ended} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
