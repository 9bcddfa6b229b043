"""A whole desktop like a user's. It has applications in a menu, including Chromium, which `fm-system chrome` starts; pages from
this machine under any address; and fm-system as an MCP server. FM_BIN is the folder of the program."""

import json
import os
import shutil
import subprocess

from chrome import CHROMIUM, FLAGS, Web
from desktop import Desktop, missing as desktop_lacks, until
from mcp_client import META, PROGRAM, Server
from patience import WAIT

CAN_ASK = {META + "clientCapabilities": {"elicitation": {"form": {}}}}
TITLE_END = " - Chromium"


def missing():
    """What this machine lacks, in words; "": nothing."""
    lacks = [name for name in ("xdotool", "openssl") if not shutil.which(name)] + ([] if CHROMIUM else ["chromium"])
    return f"these programs are missing: {' '.join(lacks)} (packaging/setup.sh --tests)" if lacks else desktop_lacks()


class Whole(Desktop):
    def __init__(self, manager="openbox", flags=()):
        super().__init__(manager)
        try:
            self.web = Web(tls_folder=self.home)
            self.install(flags)
        except BaseException:
            self.end()
            raise

    def install(self, flags):
        with open(f"{self.home}/inside.sh", "w", encoding="utf-8") as file:
            file.write(f"echo a terminal\necho >{self.home}/xterm-is-ready\nexec cat\n")
        flags = [*FLAGS, "--no-first-run", "--test-type", self.web.trust(self.home), *flags,
                 f"--host-resolver-rules=MAP * 127.0.0.1:{self.web.server.server_port}"]
        with open(f"{self.home}/browser", "w", encoding="utf-8") as file:
            words = " ".join(f"'{word}'" for word in [PROGRAM, "chrome", "--browser", CHROMIUM, "--", *flags])
            file.write(f'#!/bin/sh\nexec {words} "$@"\n')
        os.chmod(f"{self.home}/browser", 0o700)
        self.entry("xterm.desktop", "XTerm", f"xterm -geometry 60x20 -e sh {self.home}/inside.sh", "XTerm")
        self.entry("xclock.desktop", "XClock", "xclock", "XClock")
        self.entry("chromium.desktop", "Chromium", f"{self.home}/browser https://start.example/", "Chromium")

    def serve(self):
        return Server(None, env=self.env)

    def fm_system(self, *args, **more):
        """Runs the program to its end; returns the result of subprocess.run."""
        return subprocess.run([PROGRAM, *args], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=WAIT, check=False, **more)

    def end(self):
        if getattr(self, "web", None):
            self.web.end()
            self.web = None
        super().end()

    # ---- a second look, by X and by the keyboard ----

    def window_of(self, window_class):
        """The topmost window of this class; None: there is none."""
        return next((window for window in self.stacked() if self.text(window, "WM_CLASS") == window_class), None)

    def edges(self, window_class):
        """The edges of its topmost window, with the frame and without the shadow."""
        window = self.window_of(window_class)
        told = self.run("xprop", "-id", window, "_GTK_FRAME_EXTENTS").decode().partition("=")[2]
        left, right, top, bottom = [int(number) for number in told.split(",")] if told else [0] * 4
        frame = self.frame(window)
        return [frame[0] + left, frame[1] + top, frame[2] - right, frame[3] - bottom]

    def classes(self):
        return sorted(filter(None, (self.text(window, "WM_CLASS") for window in self.stacked())))

    def active(self):
        """The class of the window that has the focus."""
        window = self.listed("_NET_ACTIVE_WINDOW")[0]
        return self.text(window, "WM_CLASS") if window != "0x0" else None

    def page(self):
        """The title of the page in Chromium, from its window's title."""
        window = self.window_of("Chromium")
        return ((self.text(window, "_NET_WM_NAME") if window else None) or "").removesuffix(TITLE_END)

    def press(self, keys):
        self.run("xdotool", "key", keys)

    def expect_pages(self, titles):
        """Checks with keys that the active browser has tabs with these titles, up to 8 different ones. ctrl+9 shows the last
        tab."""
        for key, title in [*enumerate(titles, 1), (1, titles[0]), (9, titles[-1])]:
            until(f"ctrl+{key} shows {title}", lambda: self.press(f"ctrl+{key}") or self.page() == title)


def call_and_say(server, tool, action, **arguments):
    """Calls a tool as a client that can ask its user, who answers with `action`; returns (the question, the result)."""
    asked = server.ask("tools/call", name=tool, arguments=arguments, _meta=CAN_ASK)
    if asked["resultType"] != "input_required":
        raise AssertionError(f"{tool} asks nothing: {json.dumps(asked)}")
    question = asked["inputRequests"]["confirm"]["params"]["message"]
    done = server.ask("tools/call", name=tool, arguments=arguments, _meta=CAN_ASK, requestState=asked["requestState"],
                      inputResponses={"confirm": {"action": action}})
    return question, done["structuredContent"]
