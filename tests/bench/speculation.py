"""Measures how much time speculation saves if an answer repeats its prompt, and how much it costs otherwise. Two engines take
turns, one with speculation and one without. The answers are rewrites of functions of some 300 tokens with one name changed, and
free prose, at temperature 0.

    python3 tests/bench/speculation.py [--rewrites N] [--prose N] [--json]     after sh packaging/setup.sh --tests

The speed is measured from the first token of an answer on. Texts are compared byte by byte. Takes ten minutes; run nothing else
meanwhile. FM_BENCH_THREADS: compute threads.
"""

import argparse
import glob
import json
import os
import random
import statistics
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "contract"))

from engine import Engine, Outcome  # noqa: E402

REWRITE_MIN = 1.5
PROSE_MIN = 0.98
MODES = ("off", "lookup")
NAMES = ("items", "rows", "orders", "events", "samples", "records", "values", "points", "users", "tasks")
NEW_NAMES = ("entries", "elements", "batch", "inputs", "collection")
FIELDS = ("price", "weight", "count", "age", "score", "length", "level", "size", "rate", "delay")
VERBS = ("summarize", "filter", "check", "collect", "merge", "analyze", "prepare", "report")
TOPICS = ("a lighthouse in a storm", "how bread is made", "the history of the bicycle", "a walk through a market",
          "why leaves change their colour", "a letter to an old friend", "the life of bees", "a train at night",
          "how to learn an instrument", "a city by the sea")


def function(number):
    """The source of a function, different for each number; the name to change; and the function with the new name."""
    pick = random.Random(number)
    name, verb = pick.choice(NAMES), pick.choice(VERBS)
    new = pick.choice(NEW_NAMES)
    one, two, three = pick.sample(FIELDS, 3)
    low, high = pick.randrange(1, 50), pick.randrange(51, 500)
    source = f'''def {verb}_{one}s({name}, limit={high}):
    """Return the total and the mean of all {one}s below the limit."""
    total = 0
    found = []
    skipped = []
    if not {name}:
        raise ValueError("there is nothing to {verb}")
    for index, entry in enumerate({name}):
        {one} = entry.get("{one}", {low})
        {two} = entry.get("{two}", 0)
        {three} = entry.get("{three}", None)
        if {one} > limit:
            print("skipped", index, {one})
            skipped.append(entry)
            continue
        if {two} < {low} and {three} is not None:
            total += {one} * {two}
            found.append((index, {one}, {three}))
        else:
            total += {one}
    print("found", len(found), "of", len({name}))
    mean = total / len({name})
    found.sort(key=lambda row: row[1], reverse=True)
    return {{
        "total": total,
        "mean": mean,
        "found": found,
        "skipped": skipped,
    }}
'''
    return source, name, new, source.replace(name, new)


EXAMPLE = """def double(number):
    result = number * 2
    print("doubled", number)
    return {"before": number, "after": result}
"""


def rewrite(number):
    """A request to rewrite the function, after an example."""
    source, name, new, _ = function(number)
    ask = "Rewrite this function with the name `%s` changed to `%s`. Answer with the code only.\n\n```python\n%s```"
    return {"messages": [{"role": "user", "content": ask % ("number", "value", EXAMPLE)},
                         {"role": "assistant", "content": "```python\n%s```" % EXAMPLE.replace("number", "value")},
                         {"role": "user", "content": ask % (name, new, source)}],
            "max_tokens": 400, "temperature": 0}


def prose(number):
    """A request that repeats nothing."""
    text = f"Write some paragraphs about {TOPICS[number % len(TOPICS)]}, part {number}."
    return {"messages": [{"role": "user", "content": text}],
            "max_tokens": 200, "temperature": 0, "ignore_eos": True}


class Timed:
    """An engine, and the times of its answers."""

    def __init__(self, program, model, mode, threads):
        env = {"FM_ENGINE_LLAMA_REPEATABLE": "", "FM_ENGINE_LLAMA_SPECULATION": mode}
        if threads:
            env["FM_ENGINE_LLAMA_THREADS"] = threads
        self.engine = Engine(program, env)
        self.engine.initialize()
        result, _ = self.engine.load(model)
        assert result["ok"], result

    def run(self, params):
        """Returns the text, its tokens, and the seconds from the first to the last token. A repeatable job computes the prompt
        first: otherwise the prompt's bits depend on how fast the machine was, and the texts may differ only because of that."""
        engine = self.engine
        engine.run(**{**params, "max_tokens": 1, "seed": 1})
        engine.next_job += 1
        engine.notify("job.start", {"job": engine.next_job, **params})
        events, times = [], []
        for event in engine.events(engine.next_job):
            events.append(event)
            times += [time.perf_counter()] if event[0] in ("job.delta", "job.finished") else []
        outcome = Outcome(events)
        first = next(params["output_tokens"] for name, params in events if name == "job.delta")
        return outcome.text, outcome.usage["output_tokens"] - first, times[-1] - times[0]


def compare(engines, kind, count, make):
    """Runs both engines in turns; they also take turns in being first."""
    rows, parted = [], []
    for number in range(count):
        params = make(number)
        took = {}
        for mode in (MODES if number % 2 else MODES[::-1]):
            took[mode] = engines[mode].run(params)
        (ours, ours_tokens, ours_s), (plain, plain_tokens, plain_s) = took["lookup"], took["off"]
        if ours != plain:
            parted.append(number)
        rows.append((ours_tokens / ours_s) / (plain_tokens / plain_s))
        print(f"{kind} {number}: {ours_tokens} tokens, {ours_tokens / ours_s:.0f}/s with, "
              f"{plain_tokens / plain_s:.0f}/s without, {rows[-1]:.2f}{'' if ours == plain else ', ANOTHER TEXT'}",
              file=sys.stderr)
    return {"count": count, "ratio": statistics.median(rows), "least": min(rows), "most": max(rows), "parted": parted}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rewrites", type=int, default=50)
    parser.add_argument("--prose", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "bin", "fm-engine-llama"))
    arguments = parser.parse_args()
    model = sorted(glob.glob(os.path.join(ROOT, "build", "models", "*.gguf")))[0]
    engines = {mode: Timed(arguments.program, model, mode, os.environ.get("FM_BENCH_THREADS")) for mode in MODES}
    results = {}
    for kind, count, make, least in (("rewrites", arguments.rewrites, rewrite, REWRITE_MIN),
                                     ("prose", arguments.prose, prose, PROSE_MIN)):
        for engine in engines.values():
            engine.run(make(1000))  # the first request warms the caches
        if count:
            results[kind] = {**compare(engines, kind, count, make), "at_least": least}
    for engine in engines.values():
        engine.engine.close()
    if arguments.json:
        print(json.dumps(results))
        return 0
    holds = True
    for kind, row in results.items():
        good = row["ratio"] >= row["at_least"] and not row["parted"]
        holds = holds and good
        print(f"{kind}: {row['ratio']:.3f} of the speed without ({row['least']:.2f} to {row['most']:.2f}; at least "
              f"{row['at_least']}), {len(row['parted'])} of {row['count']} texts differ"
              f"{'' if good else '  DOES NOT HOLD'}")
    return not holds


if __name__ == "__main__":
    sys.exit(main())
