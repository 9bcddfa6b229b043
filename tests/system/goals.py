#!/usr/bin/env python3
"""The goals of fm-system on a real desktop: short times, little memory, and no growth after many calls. Prints a row for each
goal, measured on this machine by an MCP client, with the target. Run it on a machine without other work; it takes some minutes.

    goals.py [ROUNDS [TABS [CALLS]]]     by default 100, 200 and 10,000; FM_BIN is the folder of the programs (build/bin)

The desktop has two monitors, openbox, two xterms, xclock and Chromium with this many tabs, whose pages come from this
machine. With less than 20 rounds the figures mean nothing: then only errors make it fail.
"""

import json
import os
import random
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("FM_BIN", os.path.join(ROOT, "build", "bin"))

import whole  # noqa: E402
from desktop import until  # noqa: E402
from patience import pace  # noqa: E402

MEANS = 20  # the figures mean something if there are at least this many rounds
RSS_MB, GROWTH_KB = 12, 512
APPS = ("XTerm", "XClock", "Chromium")
LAYOUTS = {"a": ([10, 10, 590, 390], [10, 400, 590, 790], [600, 10, 1190, 390], [1210, 10, 2390, 790]),
           "b": ([1210, 10, 1790, 390], [1210, 400, 1790, 790], [1800, 10, 2390, 390], [10, 10, 1190, 790])}


class Goals:
    def __init__(self, rounds, tabs):
        self.rounds = rounds
        self.tabs = tabs
        self.missed = 0
        self.chance = random.Random(1)
        self.desktop = whole.Whole("openbox", flags=("--renderer-process-limit=8",))
        self.server = None

    # ---- measuring ----

    def call(self, times, tool, **arguments):
        """Returns the result; adds the time in ms to `times`."""
        begin = time.perf_counter()
        told = self.server.call(tool, **arguments)
        times.append((time.perf_counter() - begin) * 1000)
        if not told["ok"]:
            raise AssertionError(f"{tool} {arguments}: {told}")
        return told

    def row(self, what, measured, wanted, holds):
        self.missed += not holds
        print(f"| {what} | {wanted} | {measured} | {'NOT' if not holds else 'holds' if wanted != '' else ''} |", flush=True)

    def times(self, what, times, wanted_ms=None):
        times = sorted(times)
        p50, p95 = times[len(times) // 2], times[int(len(times) * 0.95)]
        holds = wanted_ms is None or p95 <= wanted_ms
        self.row(what, f"{p50:.1f} / {p95:.1f} ms of {len(times)}", f"{wanted_ms} ms" if wanted_ms else "", holds)

    # ---- the desktop ----

    def start(self):
        self.server = self.desktop.serve()
        times = []
        for name in APPS:
            self.call(times, "focus_app", app_name=name)
        self.desktop.start("xterm", stderr=subprocess.DEVNULL)
        until("there are four windows", lambda: len(self.desktop.stacked()) == 4)
        until("Chromium has a tab", lambda: self.server.call("list_tabs").get("tabs"))
        self.write_presets()

    def write_presets(self):
        names = ("XTerm", "XTerm", "XClock", "Chromium")
        presets = [{"name": name, "apps": [{"app_name": app, "bounds": edges} for app, edges in zip(names, layout)]}
                   for name, layout in LAYOUTS.items()]
        folder = f"{self.desktop.env['XDG_CONFIG_HOME']}/fm-system"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(f"{folder}/presets.json", "w", encoding="utf-8") as file:
            json.dump({"presets": presets}, file)

    def open(self, times, address):
        self.call(times, "open_url", url=address)
        until("its page is asked for", lambda: address in self.desktop.web.asked)

    # ---- goals ----

    def measure_tabs(self):
        opened, just_opened, listed, switched = [], [], [], []
        for i in range(self.tabs - 1):
            self.open(opened, f"site{i % 7}.example/{i}")
            self.call(just_opened, "list_tabs")
        for _ in range(self.rounds):
            told = self.call(listed, "list_tabs")["tabs"]
        if len(told) != self.tabs:
            raise AssertionError(f"{len(told)} tabs, not {self.tabs}")
        for _ in range(self.rounds):
            self.call(switched, "switch_tab", tab_index=self.chance.randint(1, self.tabs))
        self.times(f"list_tabs, {self.tabs} tabs", listed, 50)
        self.times("list_tabs, just after a tab was opened", just_opened)
        self.times("switch_tab", switched, 150)
        self.times("open_url", opened, 300)

    def measure_closing(self):
        times = []
        for round_ in range(max(self.rounds // 5, 1)):
            addresses = [f"close.example/{round_}-{i}" for i in range(5)]
            for address in addresses:
                self.open([], address)
            tabs = self.server.call("list_tabs")["tabs"]
            indices = [tab["index"] for tab in tabs if tab["domain"] == "close.example"]
            if len(self.call(times, "close_tab", tab_indices=indices)["closed"]) != 5:
                raise AssertionError(f"not closed: {indices}")
        self.times(f"close_tab, 5 of {self.tabs + 5} tabs", times, 500)

    def measure_windows(self):
        listed, focused, placed, presets, undone, asked = [], [], [], [], [], []
        for i in range(self.rounds):
            self.call(listed, "list_apps")
            self.call(focused, "focus_app", app_name=APPS[i % 3])
            left, top = self.chance.randint(0, 1800), self.chance.randint(0, 300)
            self.call(placed, "place_app", app_name=APPS[i % 3], bounds=[left, top, left + 503 + i % 50, top + 413])
            self.call(undone, "undo")
            self.call(asked, "query", question="how many tabs do I have?")
        for i in range(max(self.rounds // 2, 1)):
            self.call(presets, "activate_preset", preset_name="ab"[i % 2])
        self.times("list_apps", listed, 50)
        self.times("focus_app", focused, 150)
        self.times("place_app", placed, 300)
        self.times("undo of a placement", undone)
        self.times("activate_preset, 4 windows", presets, 1000)
        self.times("query, by code", asked)

    def measure_start(self):
        begun, listed = [], []
        for _ in range(max(self.rounds // 2, 1)):
            begin = time.perf_counter()
            server = self.desktop.serve()
            try:
                server.initialize()
                begun.append((time.perf_counter() - begin) * 1000)
                server.call("list_tabs", None)
                listed.append((time.perf_counter() - begin) * 1000)
            finally:
                server.kill()
        self.times("start, to the answer of `initialize`", begun, 50)
        self.times("start, to the first list of all tabs", listed)

    def measure_many(self, calls):
        """Calls of all kinds that close nothing: compares the program's memory and descriptors before and after."""
        before = None
        begin = time.monotonic()
        for i in range(calls):
            self.one_of_many(i)
            if i == calls // 10:  # before this call the program's memory may grow
                before = self.server.memory(), self.server.descriptors()
        took = time.monotonic() - begin
        growth = self.server.memory() - before[0]
        memory = self.server.memory() / 1024
        descriptors = self.server.descriptors() - before[1]
        self.row("memory, after all that", f"{memory:.1f} MB", f"{RSS_MB} MB", memory <= RSS_MB)
        self.row(f"{calls:,} calls in {took:.0f} s: growth", f"{growth} KiB", f"{GROWTH_KB} KiB", growth <= GROWTH_KB)
        if descriptors:
            raise AssertionError(f"{descriptors} descriptors more")

    def one_of_many(self, i):
        times = []
        kind = i % 10
        if kind < 4:
            self.call(times, "list_apps")
        elif kind == 4:
            self.call(times, "list_tabs", content_summary=i % 100 == 4, raw=i % 50 == 4)
        elif kind == 5:
            self.call(times, "query", question="how many windows are open?")
        elif kind == 6:
            self.call(times, "switch_tab", tab_index=self.chance.randint(1, self.tabs))
        elif kind == 7:
            self.call(times, "focus_app", app_name=APPS[i // 10 % 3])
        elif kind == 8:
            left = self.chance.randint(0, 1800)
            self.call(times, "place_app", app_name="XClock", bounds=[left, 10, left + 400, 410])
        else:
            self.server.call("focus_app", app_name="Nobody")  # this call is refused

    def end(self):
        """Unexpected output on stdout or stderr is a fault."""
        status, errors, leftovers = self.server.end()
        self.row("stray bytes, in all lines", len(errors) + len(leftovers), 0, not errors and not leftovers)
        if status != 0:
            raise AssertionError(f"it ended with status {status}")


def main():
    rounds, tabs, calls = (int(given) for given in (sys.argv[1:] + ["100", "200", "10000"][len(sys.argv) - 1:])[:3])
    if whole.missing():
        print(f"SKIPPED: {whole.missing()}")
        return 77
    print(f"{rounds} rounds; load {os.getloadavg()[0]:.1f}, {pace():.1f} times the time of the machine that bounds are for\n")
    print("| | wanted (p95) | measured (p50 / p95) | |\n|---|---|---|---|")
    goals = Goals(rounds, tabs)
    try:
        goals.start()
        goals.measure_tabs()
        goals.measure_closing()
        goals.measure_windows()
        goals.measure_start()
        goals.measure_many(calls)
        goals.end()
    finally:
        goals.desktop.end()
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")
    return 1 if goals.missed and rounds >= MEANS else 0


if __name__ == "__main__":
    sys.exit(main())
