"""Compares the cost of session mode with the same work by responses.create, in one run: the two take turns (A B A B ...), each
with a separate engine, and the median of the pairs' ratios counts. Takes two minutes; run nothing else meanwhile.

    python3 tests/bench/sessions.py [ROUNDS]     after sh packaging/setup.sh --tests
"""

import glob
import os
import statistics
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
os.environ.setdefault("FM_BIN", os.path.join(ROOT, "build", "bin"))

from gateway import Gateway  # noqa: E402
from wire import Helper  # noqa: E402

BOUND = 1.02
SETTLE_S = 0.3  # after computing, a side's threads still spin for a while, waiting for more work
PROMPT = "Answer with one short sentence: where does the ship go?"
INSTRUCTIONS = "You are a helpful assistant."
FORMAT = {"type": "json_schema", "name": "text", "strict": True, "schema": {
    "type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"], "additionalProperties": False}}
OPTIONS = {"temperature": 0, "max_output_tokens": 200}


def content(number):
    """Returns about 300 tokens, different each time from the beginning on."""
    places = ("Lisbon", "Oslo", "Genoa", "Cork", "Riga", "Bergen", "Malmo", "Porto", "Split", "Turku")
    days = (f"On day {day} it reached {place}, where the crew bought bread, rope and oil."
            for day, place in enumerate(places, number))
    return f"This is the log of ship {number}. " + " ".join(days)


def by_session(gateway, number):
    session = gateway.open(instructions=INSTRUCTIONS)
    before = time.perf_counter()
    answer = gateway.message(session, PROMPT, content(number), timeout=120)
    took = time.perf_counter() - before
    gateway.ask("close-session", session_id=session)
    return took, answer["ok"]


def by_create(helper, number):
    params = {**OPTIONS, "store": False, "text": {"format": FORMAT}, "input": [
        {"role": "system", "content": INSTRUCTIONS},
        {"role": "user", "content": f"{PROMPT}\n\nContent:\n{content(number)}"}]}
    before = time.perf_counter()
    result = helper.call("responses.create", params, timeout=120)
    return time.perf_counter() - before, result["response"]["status"] == "completed"


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    model = sorted(glob.glob(os.path.join(ROOT, "build", "models", "*.gguf")))[0]
    limits = ("--temperature", "0", "--max-output-tokens", "200")
    gateway = Gateway("--model", model, "--log-level", "off", *limits, engine="llama")
    helper = Helper("--model", model, engine="llama")
    pairs = []
    number = 0
    while len(pairs) < rounds:
        number += 1
        # the two take turns in being first
        ways = [lambda: by_session(gateway, number), lambda: by_create(helper, number)]
        order = (0, 1) if number % 2 else (1, 0)
        took = [0.0, 0.0]
        whole = True
        for way in order:
            time.sleep(SETTLE_S)
            took[way], ok = ways[way]()
            whole = whole and ok
        if number == 20 and not pairs:
            raise SystemExit("the model's answers run on: there is nothing to compare")
        if whole and number > 2:  # the first requests load the model; an answer that is too long is generated twice
            pairs.append(took)
    session, create = (statistics.median(pair[i] for pair in pairs) * 1000 for i in (0, 1))
    ratio = statistics.median(a / b for a, b in pairs)
    holds = ratio <= BOUND
    print(f"a message {session:.1f} ms, responses.create {create:.1f} ms, {len(pairs)} pairs: {ratio:.4f} (at most {BOUND})"
          f"{'' if holds else '  DOES NOT HOLD'}")
    gateway.close()
    helper.close()
    return not holds


if __name__ == "__main__":
    sys.exit(main())
