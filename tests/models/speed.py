"""Measures how much tools slow a stream down: compares two builds of fm-proxy, in turns, on a machine without other work.

    speed.py BINARIES BINARIES [ROUNDS] [--model FILE | --size SIZE]

BINARIES: a folder `bin` of a build, each with its engine. The answers are texts, with 10 tools in the request, so that
nothing is held back. Prints the median of each, and the median of the rounds' ratios.
"""

import argparse
import os
import statistics
import sys
import time

import fetch

sys.path.insert(0, os.path.join(fetch.ROOT, "tests", "bench"))
from contenders import Ask, Proxy

TOOLS = 10
TOKENS = 128
KINDS = ("string", "integer", "number", "boolean")
SUBJECTS = ("the sea", "a mountain", "an old house", "winter", "a long journey")


def tools(round_number):
    """Returns the tools of a round. The first tool's description has the round's number, so that the beginning of the prompt is
    new in each round."""
    return [{"type": "function", "function": {
        "name": f"device_{i}_set", "description": f"Sets device {i} of group {round_number} to a value, and says when it is done",
        "parameters": {"type": "object", "required": ["value"], "additionalProperties": False, "properties": {
            "value": {"type": KINDS[i % len(KINDS)], "description": "what the device is set to"},
            "mode": {"type": "string", "enum": ["now", "later"], "description": "when it is done"}}}}} for i in range(TOOLS)]


class Build(Proxy):
    """One of the two builds."""

    def send(self, number, ask):
        ask.sent = time.perf_counter()
        self.notify("chat.completions.create", {
            "messages": [{"role": "user", "content": ask.prompt}], "tools": ask.tools, "temperature": 0, "max_tokens": TOKENS,
            "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True}}, id=number)

    def figures(self, round_number):
        """The milliseconds to the first token of a new prompt, the milliseconds to the first token with known tools, and
        tokens/s."""
        asks = []
        for subject in SUBJECTS[round_number % 3:][:2]:
            asks.append(Ask(f"What do you know about {subject}? Answer at length.", TOKENS))
            asks[-1].tools = tools(round_number)
            self.play(asks[-1:])
        return asks[0].first_ms, asks[1].first_ms, statistics.mean(ask.tokens_per_second for ask in asks), asks[0].text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", nargs=2)
    parser.add_argument("rounds", type=int, nargs="?", default=20)
    fetch.add_options(parser)
    options = parser.parse_args()
    model = fetch.chosen(options)
    builds = [Build(binaries, model) for binaries in options.binaries]
    for build in builds:
        build.figures(-1)  # this loads the model
    rounds = []
    for number in range(options.rounds):
        figures = {}
        for build in builds if number % 2 else builds[::-1]:
            figures[build] = build.figures(number)
        rounds.append([figures[build] for build in builds])
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    for build in builds:
        build.close()
    print(f"| one stream, {TOOLS} tools | {' | '.join(options.binaries)} | second / first |\n|---|---|---|---|")
    for i, name in enumerate(("first token, new prompt (ms)", "first token, known tools (ms)", "tokens/s")):
        medians = [statistics.median(pair[build][i] for pair in rounds) for build in (0, 1)]
        ratio = statistics.median(second[i] / first[i] for first, second in rounds)
        print(f"| {name} | {medians[0]:.1f} | {medians[1]:.1f} | {ratio:.3f} |")
    same = sum(first[3] == second[3] for first, second in rounds)
    print(f"\n{same} of {len(rounds)} texts are the same.")


if __name__ == "__main__":
    main()
