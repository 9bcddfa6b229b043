#!/usr/bin/env python3
"""Measures the goals of the gateway: fast compared with the bare helper, small, and with a memory that finds the right sessions.
Prints a row for each goal, measured on this machine, with the target. Run it on a machine without other work; it takes some
minutes.

    goals.py [ROUNDS]     rounds of the first row (default 200). FM_BIN as in the tests

The first row compares gateway and helper in turns, both with the fake engine. So it measures the gateway's own time: message on
the disk, agent, transcript, request, and the way back. The second row is with the memory on, 40 earlier sessions, and the
embedding model.
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from chat import Client, gateway
from gw import BIN

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
import wire  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS_BIN = os.path.join(BIN, "..", "tests-bin")
EMBEDDING = os.path.join(BIN, "..", "models-embedding")


def p95(values):
    return sorted(values)[int(len(values) * 0.95)]


def row(goal, measured, wanted, holds):
    print(f"| {goal} | {measured} | {wanted} | {'holds' if holds else 'NOT'} |", flush=True)


def first_delta(client, key, message):
    """Milliseconds from chat.send to the first text."""
    begin = time.monotonic()
    run = client.send("chat.send", sessionKey=key, message=message)
    client.event("chat.delta")
    took = (time.monotonic() - begin) * 1000
    client.end(client.answer(run)["result"]["runId"])
    return took


def bare_delta(helper, message):
    begin = time.monotonic()
    call = helper.start("responses.create", {"input": message, "stream": True, "store": False})
    took = None
    while True:
        got = helper.messages.get(timeout=wire.WAIT)
        if took is None and got.get("params", {}).get("event", {}).get("type") == "response.output_text.delta":
            took = (time.monotonic() - begin) * 1000
        if got.get("id") == call:
            return took


def speed(rounds):
    with gateway() as server, tempfile.TemporaryDirectory() as folder:
        client = Client(server)
        helper = wire.Helper("--models-dir", folder)
        ours, bare = [], []
        for i in range(rounds):
            key = client.session()
            ours.append(first_delta(client, key, f"hello number {i}"))
            bare.append(bare_delta(helper, f"hello number {i}"))
        helper.close()
        client.close()
    over = [a - b for a, b in zip(ours, bare)]
    row("first text over the bare helper, p95", f"{p95(over):.1f} ms (bare {p95(bare):.1f} ms)", "5 ms", p95(over) <= 5)


def recall(rounds):
    home = tempfile.mkdtemp()
    with gateway("--embedding-models", EMBEDDING, home=home, settings={"memory.enabled": True}) as server:
        client = Client(server)
        for i in range(40):
            client.ask(client.session(), f"note {i}: the spare key of house {i} is under stone {i * 7}")
        first_delta(client, client.session(), "where is the spare key of house 12")  # this loads the model
        times = [first_delta(client, client.session(), f"where is the spare key of house {i % 40}") for i in range(rounds)]
        client.close()
    row("first text with recall, p95", f"{p95(times):.0f} ms", "150 ms", p95(times) <= 150)


def program(goal, wanted, pattern, holds, *command):
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.search(pattern, done.stdout + done.stderr)
    if not found:
        print(f"| {goal} | could not be measured: {(done.stdout + done.stderr)[-200:]!r} | {wanted} | NOT |")
        return
    row(goal, found.group(0).strip(), wanted, holds(found))


def page():
    files = [path for path in glob.glob(os.path.join(BIN, "gateway-ui", "**"), recursive=True) if os.path.isfile(path)]
    size = 0
    for path in files:
        with open(path, "rb") as file:
            size += len(subprocess.run(["gzip", "-9c"], input=file.read(), capture_output=True, check=True).stdout)
    row("the page, gzipped", f"{size / 1000:.0f} KB in {len(files)} files", "150 KB", 0 < size <= 150_000)


def need(*paths):
    for path in paths:
        if not os.path.exists(path):
            sys.exit(f"goals: {os.path.relpath(path)} is missing: cmake --build --preset default")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    python = sys.executable
    need(os.path.join(BIN, "fm-engine-fake"), os.path.join(TESTS_BIN, "memory_judge"))
    print("| Goal | Measured | Wanted | |\n|---|---|---|---|")
    speed(rounds)
    recall(min(rounds, 60))
    program("an idle socket, of 1,000", "16 KiB", r"[\d.]+ KiB", lambda m: float(m.group(0)[:-4]) <= 16, python, "-B",
            os.path.join(HERE, "test_start.py"), "-k", "test_1000_idle_sockets")
    program("hybrid search over 100,000 chunks of 384 numbers", "p95 100 ms", r"both[^\n]*", lambda m: fast_enough(m.group(0)),
            os.path.join(TESTS_BIN, "memory_judge"), "speed", "100000", "384")
    program("60 labelled questions", "recall@5 of both 0.9, and above words and vectors alone", r"both[^\n]*",
            lambda m: True, python, "-B", os.path.join(HERE, "memory_quality.py"), os.path.join(TESTS_BIN, "memory_judge"))
    page()


def fast_enough(line):
    found = re.search(r"p95\D*([\d.]+)", line)
    return bool(found) and float(found.group(1)) <= 100


if __name__ == "__main__":
    main()
