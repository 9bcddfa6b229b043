"""All commands together on a real desktop, by fm-system as an MCP server: two monitors, openbox or xfwm4, xterm, xclock and
Chromium. Each result is compared with the state of X, the keyboard and the web server. A picture of each step goes to
FM_PICTURES. FM_BIN is the folder of the programs."""

import json
import os
import sys
import unittest

import whole
from desktop import LEFT, RIGHT, until
from whole import Whole, call_and_say

if whole.missing():
    print(f"SKIPPED: {whole.missing()}")
    sys.exit(77)

PICTURES = os.environ.get("FM_PICTURES", "/tmp/fm-system-pictures")
START, NEWS, CHAT = "start.example/", "news.example/today", "chatgpt.com/"
RUST, C = "www.reddit.com/r/rust", "old.reddit.com/r/c"
TITLES = {RUST: "Borrowing : rust", C: "Pointers : C", NEWS: "News of today", CHAT: "A chat", START: "Start"}


def https(address):
    return f"https://{address}"


class Story:
    """One desktop, from its first window to its last; `manager` is the window manager's name."""

    @classmethod
    def setUpClass(cls):
        cls.desktop = Whole(cls.manager)
        cls.addClassCleanup(cls.desktop.end)
        for address, title in TITLES.items():
            cls.desktop.web.pages[address] = f"<title>{title}</title><h1>{title}</h1>"
        cls.server = cls.desktop.serve()
        cls.addClassCleanup(cls.server.kill)
        cls.pictures = 0

    def test_a_day(self):
        for step in (self.lists_of_nothing, self.starts, self.placements, self.tabs, self.closing_tabs, self.questions,
                     self.a_preset, self.a_request, self.closing_apps, self.the_end):
            step()
            self.picture(step.__name__)

    def picture(self, name):
        type(self).pictures += 1
        self.desktop.screenshot(f"{PICTURES}/all-{self.manager}-{self.pictures:02}-{name}.png")

    def done(self, tool, **arguments):
        told = self.server.call(tool, **arguments)
        self.assertTrue(told["ok"], told)
        return told

    def refused(self, code, tool, **arguments):
        told = self.server.call(tool, **arguments)
        self.assertEqual((told["ok"], told.get("error", {}).get("code")), (False, code), told)

    def arrives(self, window_class, bounds):
        """X has the window at the place that the command reported."""
        self.assertEqual(self.desktop.edges(window_class), bounds)

    # ---- the day ----

    def lists_of_nothing(self):
        self.assertEqual(self.done("list_apps")["apps"], [])
        self.refused("unavailable", "list_tabs")
        told = self.server.ask("resources/read", uri="fm-system://context/monitors")["contents"][0]["text"]
        self.assertEqual([(monitor["names"], monitor["bounds"]) for monitor in json.loads(told)["monitors"]],
                         [(["main", "left"], LEFT), (["right"], RIGHT)])

    def starts(self):
        """Tests focus_app and list_apps."""
        for name in ("XTerm", "XClock", "Chromium"):
            self.assertTrue(self.done("focus_app", app_name=name)["launched"])
            self.assertEqual(self.desktop.text(self.desktop.stacked()[0], "WM_CLASS"), name)
        self.assertEqual(self.desktop.classes(), ["Chromium", "XClock", "XTerm"])
        apps = self.done("list_apps")["apps"]
        self.assertEqual([(app["name"], app["windows"], app["is_active"]) for app in apps],
                         [("Chromium", 1, True), ("XClock", 1, False), ("XTerm", 1, False)])
        self.assertFalse(self.done("focus_app", app_name="XTerm")["launched"])
        self.assertEqual((self.desktop.active(), len(self.desktop.stacked())), ("XTerm", 3))

    def placements(self):
        """Tests place_app, dry_run and undo."""
        before = self.desktop.edges("XClock")
        would = self.done("place_app", app_name="XClock", bounds=[1300, 100, 1700, 500], dry_run=True)
        self.assertTrue(would["dry_run"])
        self.arrives("XClock", before)
        self.arrives("XTerm", self.done("place_app", app_name="XTerm", monitor="right")["bounds"])
        self.assertGreaterEqual(self.desktop.edges("XTerm")[0], RIGHT[0])
        clock = self.done("place_app", app_name="XClock", bounds=[1300, 100, 1700, 500])
        self.assertTrue(clock["exact"], clock)
        self.arrives("XClock", [1300, 100, 1700, 500])
        self.picture("placed")
        self.assertEqual(self.done("undo", handle=clock["undo"])["restored"][0]["bounds"], before)
        self.arrives("XClock", before)
        self.maximised()
        self.done("place_app", app_name="Chromium", bounds=[0, 0, 1000, 700])
        self.arrives("Chromium", [0, 0, 1000, 700])
        self.done("place_app", app_name="XClock", bounds=[1950, 300, 2350, 700])
        self.refused("bounds_off_screen", "place_app", app_name="XClock", bounds=[5000, 0, 5400, 400])

    def maximised(self):
        """A window manager that knows two monitors maximises to one of them. place_app ends that state."""
        left, top = self.desktop.edges("XTerm")[:2]
        self.desktop.run("xdotool", "mousemove", str(left + 200), str(top + 8), "click", "--repeat", "2", "1")
        left, top, right, bottom = until("it is larger", lambda: self.desktop.edges("XTerm")[2] > RIGHT[2] - 20
                                         and self.desktop.edges("XTerm"))
        self.assertTrue(left >= RIGHT[0] and right <= RIGHT[2] and bottom - top > RIGHT[3] - 50, (left, top, right, bottom))
        self.picture("maximised")
        self.arrives("XTerm", self.done("place_app", app_name="XTerm", bounds=[1300, 50, 1900, 550])["bounds"])
        self.assertEqual(self.desktop.edges("XTerm")[:2], [1300, 50])

    def tabs(self):
        """Tests list_tabs, open_url and switch_tab."""
        tabs = until("Chromium has a tab", lambda: self.server.call("list_tabs").get("tabs"))
        self.assertEqual([tab["url"] for tab in tabs], [https(START)])
        for given, address in ((RUST, RUST), (C, C), (https(NEWS), NEWS), ("chatgpt", CHAT)):
            self.done("open_url", url=given)
            until("its page is in front", lambda: self.desktop.page() == TITLES[address])
            self.assertIn(address, self.desktop.web.asked)
        self.expect_pages(START, RUST, C, NEWS, CHAT)
        self.done("switch_tab", tab_index=2)
        until("it is in front", lambda: self.desktop.page() == TITLES[RUST])
        self.assertEqual(self.desktop.active(), "Chromium")
        self.refused("unknown_tab", "switch_tab", tab_index=9)
        for url in ("file:///etc/passwd", "chrome://settings"):
            self.refused("scheme_not_allowed", "open_url", url=url)

    def expect_pages(self, *addresses):
        """Checks that these are the tabs, according to fm-system and to the keyboard."""
        self.done("focus_app", app_name="Chromium")
        self.desktop.expect_pages([TITLES[address] for address in addresses])
        tabs = self.done("list_tabs")["tabs"]
        self.assertEqual([(tab["index"], tab["title"], tab["url"], tab["is_active"], tab["local_index"]) for tab in tabs],
                         [(i, TITLES[address], https(address), i == len(addresses), i) for i, address in enumerate(addresses, 1)])

    def closing_tabs(self):
        """close_tab: if more than one tab would be closed, the user gets a question, and may say no."""
        meant = [tab["index"] for tab in self.done("list_tabs")["tabs"] if "reddit.com" in tab["domain"]]
        self.assertEqual(meant, [2, 3])
        self.done("close_tab", tab_indices=meant, dry_run=True)
        question, told = call_and_say(self.server, "close_tab", "decline", tab_indices=meant)
        self.assertIn(TITLES[C], question)
        self.assertEqual(told["error"]["code"], "denied")
        self.expect_pages(START, RUST, C, NEWS, CHAT)
        self.done("list_tabs")
        question, told = call_and_say(self.server, "close_tab", "accept", tab_indices=meant)
        self.assertEqual((told["closed"], told["blocked"], told["changed"]), (meant, [], []), told)
        self.expect_pages(START, NEWS, CHAT)

    def questions(self):
        """query: the answers that need no model."""
        for words, count in (("how many tabs do I have?", 3), ("how many tabs of chatgpt.com are open?", 1),
                             ("how many windows are open?", len(self.desktop.stacked()))):
            told = self.done("query", question=words)
            self.assertEqual((told["by"], told["count"]), ("code", count), told)

    def a_preset(self):
        """activate_preset: the saved layout comes back, whatever has happened since `preset save`."""
        saved = self.desktop.fm_system("preset", "save", "work", "--tabs")
        self.assertEqual((saved.returncode, saved.stderr), (0, ""), saved)
        places = {name: self.desktop.edges(name) for name in ("XTerm", "XClock", "Chromium")}
        self.done("close_app", app_name="XClock")
        self.done("place_app", app_name="XTerm", monitor="left")
        self.done("place_app", app_name="Chromium", bounds=[1250, 20, 2350, 780])
        self.done("close_tab", tab_indices=[2])
        self.expect_pages(START, CHAT)
        self.assertEqual(self.desktop.classes(), ["Chromium", "XTerm"])
        self.picture("before_the_preset")
        told = self.done("activate_preset", preset_name="work")
        self.assertEqual([app["app_name"] for app in told["apps"] if app["launched"]], ["XClock"], told)
        for name, bounds in places.items():
            self.arrives(name, bounds)
        self.assertEqual([url["url"] for url in told["urls"] if url["opened"]], [https(NEWS)], told)
        until("its page is in front", lambda: self.desktop.page() == TITLES[NEWS])
        self.expect_pages(START, CHAT, NEWS)
        self.picture("the_preset")
        self.done("undo", handle=told["undo"])
        self.arrives("Chromium", [1250, 20, 2350, 780])
        self.refused("unknown_preset", "activate_preset", preset_name="play")

    def a_request(self):
        """run_commands: all are checked before the first one runs."""
        good = [{"type": "place_app", "app_name": "XClock", "bounds": [100, 500, 300, 700]},
                {"type": "focus_app", "app_name": "XTerm"}, {"type": "list_apps"}]
        before = self.desktop.edges("XClock")
        self.refused("unknown_app", "run_commands", commands=[good[0], {"type": "focus_app", "app_name": "Nobody"}])
        self.done("run_commands", commands=good, dry_run=True)
        self.arrives("XClock", before)
        results = self.done("run_commands", commands=good)["results"]
        self.arrives("XClock", [100, 500, 300, 700])
        self.assertEqual(self.desktop.active(), "XTerm")
        self.assertEqual([app["name"] for app in results[2]["apps"] if app["is_active"]], ["XTerm"])

    def closing_apps(self):
        """close_app, after a yes. When Chromium ends, `fm-system chrome` ends too."""
        until("xterm runs its program", lambda: os.path.exists(f"{self.desktop.home}/xterm-is-ready"))
        _, told = call_and_say(self.server, "close_app", "decline", app_name="XTerm")
        self.assertEqual(told["error"]["code"], "denied")
        self.assertEqual(self.desktop.classes(), ["Chromium", "XClock", "XTerm"])
        for name in ("XTerm", "Chromium"):
            question, told = call_and_say(self.server, "close_app", "accept", app_name=name)
            self.assertIn(name, question)
            self.assertEqual(told["closed_windows"], 1)
            self.assertNotIn(name, self.desktop.classes())
            self.refused("not_running", "close_app", app_name=name)
        self.assertEqual(self.desktop.classes(), ["XClock"])
        until("the browser has ended", lambda: self.server.call("list_tabs").get("error", {}).get("code") == "unavailable")

    def the_end(self):
        status, errors, leftovers = self.server.end()
        self.assertEqual((status, errors, leftovers), (0, "", []))
        self.assertEqual(self.desktop.classes(), ["XClock"])  # xclock continues


class Openbox(Story, unittest.TestCase):
    manager = "openbox"


class Xfwm4(Story, unittest.TestCase):
    manager = "xfwm4"


if __name__ == "__main__":
    unittest.main()
