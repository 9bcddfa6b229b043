#!/usr/bin/env python3
"""Makes the pictures of system/README.md from a real run: docs/system-before.png, system-after.png and system-preset.png. The
words are typed into a terminal. The pages come from this machine, under the addresses that the browser shows.

    pictures.py     FM_BIN is the folder of the programs (build/bin)
"""

import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("FM_BIN", os.path.join(ROOT, "build", "bin"))

import whole  # noqa: E402
from desktop import LEFT, png, read_xwd, until  # noqa: E402

PAGES = {
    "www.reddit.com/r/rust/": "Borrowing, explained : r/rust",
    "github.com/issues": "Issues",
    "old.reddit.com/r/C_Programming/": "Pointers for beginners : r/C_Programming",
    "news.example/today": "News of today",
    "www.reddit.com/r/battlestations/": "Two monitors, at last : r/battlestations",
    "blog.example/reddit": "Why I left Reddit",
}
STAYS = [address for address in PAGES if "reddit.com/" not in address]
PAGE = """<title>{title}</title><style>body {{ font: 20px sans-serif; margin: 40px; color: #333; background: #fafafa }}
p {{ height: 14px; border-radius: 7px; background: #ddd; max-width: 900px }}</style><h2>{title}</h2>""" + "<p></p>" * 5
TERMINAL = ["xterm", "-fa", "DejaVu Sans Mono", "-fs", "15", "-bg", "#151b23", "-fg", "#f0f6fc", "-title", "Terminal", "-e",
            "sh", "-i"]


class Run:
    def __init__(self):
        self.desktop = whole.Whole("openbox")
        self.desktop.env["PATH"] = f"{os.environ['FM_BIN']}:{self.desktop.env['PATH']}"
        self.desktop.env["PS1"] = "$ "
        for address, title in PAGES.items():
            self.desktop.web.pages[address] = PAGE.format(title=title)
        self.server = None

    def picture(self):
        """The whole screen, as rows in read_xwd's form."""
        return read_xwd(self.desktop.run("xwd", "-root", "-silent"))[1]

    def place(self, name, bounds):
        told = self.server.call("place_app", app_name=name, bounds=bounds)
        if not told["ok"]:
            raise AssertionError(told)

    def type(self, text):
        self.server.call("focus_app", app_name="XTerm")
        self.desktop.run("xdotool", "type", "--delay", "20", text)

    def addresses(self):
        return [tab["url"].removeprefix("https://") for tab in self.server.call("list_tabs").get("tabs", [])]

    def settled(self):
        """Waits until the picture is the same three times: then everything is drawn."""
        seen = [self.picture()]

        def same():
            seen.append(self.picture())
            return seen[-3:].count(seen[-1]) == 3
        until("nothing is drawn any more", same)
        return seen[-1]

    # ---- the run ----

    def start(self):
        self.desktop.run("xsetroot", "-solid", "#3a5068")
        self.desktop.start(*TERMINAL)
        until("there is a terminal", lambda: self.desktop.window_of("XTerm"))
        self.server = self.desktop.serve()
        self.server.call("focus_app", app_name="Chromium")
        until("it has a tab", self.addresses)
        for address in PAGES:
            self.server.call("open_url", url=address)
            until("its page is shown", lambda: self.desktop.page() == PAGES[address])
        self.server.call("list_tabs")
        self.server.call("close_tab", tab_indices=[1])
        self.place("Chromium", [10, 10, 1190, 470])
        self.place("XTerm", [10, 480, 1190, 790])

    def close_tabs(self):
        """Takes two pictures: the question, and the tabs after the answer yes."""
        self.type('fm-system do "close all reddit tabs"\n')
        before = self.settled()
        self.type("y\n")
        until("they are closed", lambda: self.addresses() == STAYS)
        return before, self.settled()

    def preset(self):
        """Takes two pictures: windows in any places, and in the preset's places."""
        self.server.call("focus_app", app_name="XClock")
        self.place("Chromium", [0, 0, 1200, 800])
        self.place("XTerm", [1210, 10, 2390, 460])
        self.place("XClock", [1640, 470, 1960, 790])
        saved = self.desktop.fm_system("preset", "save", "work", "--tabs")
        if saved.returncode != 0:
            raise AssertionError(saved)
        self.server.call("close_app", app_name="XClock")
        self.place("Chromium", [1500, 100, 2300, 500])
        self.place("XTerm", [300, 250, 1480, 760])
        self.server.call("close_tab", tab_indices=[2])
        self.type("clear\n")
        self.type('fm-system do "switch to my work preset"')
        before = self.settled()
        self.type("\n")
        until("it is done", lambda: self.desktop.window_of("XClock"))
        return before, self.settled()


def cut(rows, edges):
    left, top, right, bottom = edges
    return [row[3 * left:3 * right] for row in rows[top:bottom]]


def halved(rows):
    """Makes a picture half as wide and high: each pixel is the average of four."""
    small = []
    for upper, lower in zip(rows[::2], rows[1::2]):
        row = bytearray(len(upper) // 2)
        for colour in range(3):
            four = (upper[colour::6], upper[colour + 3::6], lower[colour::6], lower[colour + 3::6])
            row[colour::3] = bytes(sum(values) // 4 for values in zip(*four))
        small.append(bytes(row))
    return small


def write(name, rows):
    path = os.path.join(ROOT, "docs", name)
    with open(path, "wb") as file:
        file.write(png(len(rows[0]) // 3, rows))
    print(f"{path}: {os.path.getsize(path)} bytes")


def main():
    run = Run()
    try:
        run.start()
        before, after = run.close_tabs()
        messy, neat = map(halved, run.preset())
        write("system-before.png", cut(before, LEFT))
        write("system-after.png", cut(after, LEFT))
        write("system-preset.png", [*messy, *[b"\xff" * len(messy[0])] * 10, *neat])
        run.server.end()
    finally:
        run.desktop.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
