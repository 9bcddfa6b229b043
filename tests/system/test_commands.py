"""Each command of fm-system on the fake desktop: what it does, each refusal's exact code, and that nothing runs before all
commands of a request are checked."""

import unittest

from fake import DESKTOP, Case, call, one, run, run_all


class Commands(Case):
    # ---- lists ----

    def test_list_apps(self):
        answer, log = one("list_apps")
        self.assertEqual(self.result(answer)["apps"], [
            {"name": "Google Chrome", "windows": 1, "is_active": True}, {"name": "Strange", "windows": 1, "is_active": False},
            {"name": "XTerm", "windows": 2, "is_active": False}])
        self.assertEqual(log, [])

    def test_a_refusal_of_a_whole_command_names_it(self):
        answers, _ = run({"commands": [{"type": "list_apps"}, 7]}, {"commands": [{"type": "list_apps"}, {"type": "undo"}]})
        self.refused(answers[0], "invalid_type", "commands[1]")
        self.refused(answers[1], "nothing_to_undo", "commands[1]")

    def test_names_are_unique(self):
        windows = [{"id": "a", "class": "org.example.notes", "title": "1"}, {"id": "b", "class": "OtherNotes", "title": "2"},
                   {"id": "c", "class": "XTERM", "title": "3"}, {"id": "d", "class": "", "title": "Google Chrome"}]
        answer, _ = one("list_apps", desktop={"windows": windows})
        self.assertEqual([app["name"] for app in self.result(answer)["apps"]],
                         ["Google Chrome (window)", "Notes (org.example.Notes.desktop)", "Notes (other-notes.desktop)", "XTerm"])

    def test_names_that_are_made_alike(self):
        """A window or an application can't take the name of another one by choosing a similar name."""
        apps = [{"id": id, "name": name, "class": id, "program": ""}
                for id, name in (("a.desktop", "Dup"), ("b.desktop", "Dup"), ("c.desktop", "Dup (a.desktop)"),
                                 ("d.desktop", "Text Editor"))]
        windows = [{"id": id, "class": name, "title": id} for id, name in (
            ("1", "Text Editor"), ("2", "Text Editor (window)"), ("3", "Dup (a.desktop)"), ("4", "Dup (a.desktop) (c.desktop)"))]
        answers, log = run(call("list_apps"), call("focus_app", app_name="Dup (a.desktop)"),
                           call("focus_app", app_name="Dup (a.desktop) (c.desktop)"),
                           apps=apps, windows=windows)
        names = [app["name"] for app in self.result(answers[0])["apps"]]
        self.assertEqual(len(set(names)), 4, names)
        self.assertEqual([action for action in log if "launch" in action], ["launch a.desktop", "launch c.desktop"])

    def test_windows_that_only_their_process_tells(self):
        """The class of a window has priority. If several entries match, the entry with more arguments wins. Two entries with the
        same command do not count."""
        apps = DESKTOP["apps"] + [
            {"id": f"{name}.desktop", "name": name, "runs": command} for name, command in (
                ("Tool", ["/usr/bin/tool"]), ("Tool of x", ["/usr/bin/tool", "--profile", "x"]), ("Unknown", []),
                ("One", ["/usr/bin/python3"]), ("Another", ["/usr/bin/python3"]), ("Script", ["/usr/bin/python3", "/opt/it"]))]
        windows = [{"id": f"w{i}", "class": name, "title": "", "runs": command} for i, (name, command) in enumerate((
            ("", ["/usr/bin/tool", "file"]), ("", ["/usr/bin/tool", "--profile", "x", "file"]), ("Tk", ["/usr/bin/tool"]),
            ("", ["/usr/bin/tool", "--profile", "xy"]), ("XTerm", ["/usr/bin/tool"]), ("Ours", ["/usr/bin/python3", "/opt/my"]),
            ("", ["/usr/bin/python3", "/opt/it"]), ("Theirs", ["/usr/bin/tools"]), ("None", [])))]
        answer, _ = one("list_apps", desktop={"apps": apps, "windows": windows})
        self.assertEqual([(app["name"], app["windows"]) for app in self.result(answer)["apps"]],
                         [("None", 1), ("Ours", 1), ("Script", 1), ("Theirs", 1), ("Tool", 3), ("Tool of x", 1), ("XTerm", 1)])

    def test_list_tabs(self):
        answer, _ = one("list_tabs")
        result = self.result(answer)
        self.assertRegex(result["snapshot"], "^[0-9a-f]{16}$")
        self.assertEqual([(tab["index"], tab["window_index"], tab["local_index"], tab["domain"], tab["is_active"])
                          for tab in result["tabs"]],
                         [(1, 1, 1, "old.reddit.com", True), (2, 2, 1, "reddit.com", True), (3, 2, 2, "github.com", False),
                          (4, 3, 1, "news.example", True)])
        self.assertEqual(set(result["tabs"][0]), {"index", "title", "url", "domain", "content_summary", "is_active",
                                                  "window_index", "local_index"})
        self.assertEqual({tab["content_summary"] for tab in result["tabs"]}, {None})

    def test_list_tabs_as_the_browser_has_them(self):
        raw = self.result(one("list_tabs", raw=True)[0])["raw"]
        self.assertEqual(sorted((tab["id"], tab["window_id"], tab["position"], tab["active"], tab["title"], tab["url"])
                                for tab in raw),
                         [("t1", "20", 0, True, "Reddit", "https://www.reddit.com/"),
                          ("t2", "20", 1, False, "GitHub", "https://github.com/a"),
                          ("t3", "9", 0, True, "r/c", "https://old.reddit.com/r/c"),
                          ("t4", "100", 0, True, "News", "https://news.example/")])
        self.assertNotIn("raw", self.result(one("list_tabs", raw=False)[0]))
        for name in ("raw", "content_summary"):
            self.refused(one("list_tabs", **{name: "yes"})[0], "invalid_type", name)

    def summaries(self, texts, rules=()):
        tabs = [{"id": id, "window": "1", "title": id, "url": f"https://{id}.example/", "text": text}
                for id, text in texts.items()]
        answer, log = one("list_tabs", rules, {"tabs": tabs}, content_summary=True)
        return [tab["content_summary"] for tab in self.result(answer)["tabs"]], log

    def test_content_summary(self):
        shown, log = self.summaries({"a": "About  \n\tit\x1b[31m\u202e \u200b.", "b": None, "c": "x" * 201, "d": "é" * 300,
                                     "e": " \n"})
        self.assertEqual(shown, ["About it[31m .", None, "x" * 200, "é" * 200, None])
        self.assertEqual(log, [f"tab.text {id}" for id in "abcde"])

    def test_content_summary_of_pages_that_hang_or_fail(self):
        """Each page that does not answer gets half of the remaining time. So 75 ms of 300 are left after two such pages."""
        texts = {id: f"about {id}" for id in "abcdefghijklmnop"}
        hang = [{"on": f"tab.text {id}", "do": "refuse"} for id in "ac"]
        shown, _ = self.summaries(texts, [*hang, {"on": "tab.text d", "do": "fail"},
                                          {"on": "tab.text e", "do": {"tab.close": "e"}}])
        self.assertEqual(shown, [None if id in "acde" else f"about {id}" for id in texts])
        shown, log = self.summaries(texts, [{"on": "tab.text", "do": "refuse"}])
        self.assertEqual(set(shown), {None})
        self.assertLess(len(log), len(texts))

    def test_lists_are_of_the_moment(self):
        """Within a request, a list shows the effects of the commands before it."""
        answers, _ = run({"commands": [{"type": "close_tab", "tab_indices": [1]}, {"type": "list_tabs"},
                                       {"type": "close_app", "app_name": "Strange"}, {"type": "list_apps"},
                                       {"type": "query", "question": "How many tabs are open?"}]})
        results = answers[0]["done"]["results"]
        self.assertEqual([tab["title"] for tab in results[1]["tabs"]], ["Reddit", "GitHub", "News"])
        self.assertEqual([app["name"] for app in results[3]["apps"]], ["Google Chrome", "XTerm"])
        self.assertEqual(results[4]["count"], 3)

    # ---- focus_app ----

    def test_focus_the_topmost_window(self):
        answer, log = one("focus_app", app_name="XTerm")
        self.assertFalse(self.result(answer)["launched"])
        self.assertEqual(log, ["focus w2"])

    def test_focus_starts_what_does_not_run(self):
        answer, log = one("focus_app", app_name="Notes (org.example.Notes.desktop)")
        self.assertTrue(self.result(answer)["launched"])
        self.assertEqual(log, ["launch org.example.Notes.desktop", "focus new1"])

    def test_focus_without_an_entry(self):
        answer, log = one("focus_app", app_name="Strange")
        self.result(answer)
        self.assertEqual(log, ["focus w4"])

    def test_focus_refusals(self):
        error = self.refused(one("focus_app", app_name="chrome")[0], "unknown_app", "app_name")
        self.assertEqual(error["candidates"], ["Google Chrome"])
        refuse = [{"on": "focus", "do": "refuse"}]
        self.refused(one("focus_app", refuse, app_name="XTerm")[0], "focus_refused")
        silent = [{"on": "launch", "do": "refuse"}]
        name = "Notes (other-notes.desktop)"
        self.refused(one("focus_app", silent, app_name=name)[0], "no_window")
        gone = [{"on": "focus", "do": {"window.close": "w2"}}]
        self.refused(one("focus_app", gone, app_name="XTerm")[0], "no_window")
        gone = [{"on": "place", "do": {"window.close": "w2"}}]
        self.refused(one("place_app", gone, app_name="XTerm", monitor="right")[0], "no_window")
        self.refused(one("focus_app", [{"on": "focus", "do": "fail"}], app_name="XTerm")[0], "unavailable")

    # ---- place_app ----

    def test_place_by_bounds(self):
        answer, log = one("place_app", app_name="XTerm", bounds=[1920, 0, 2880, 1080])
        self.assertEqual(self.result(answer)["bounds"], [1920, 0, 2880, 1080])
        self.assertEqual(log, ["place w2 1920 0 2880 1080"])

    def test_place_on_a_monitor_keeps_size_and_place(self):
        for monitor, bounds in (("right", "2920 100 3560 580"), ("left", "1000 100 1640 580"), ("main", "1000 100 1640 580")):
            answer, log = one("place_app", app_name="XTerm", monitor=monitor)
            self.result(answer)
            self.assertEqual(log, [f"place w2 {bounds}"])

    def test_what_monitors_are_called(self):
        areas = [[1920, 0, 3840, 1080], [-1280, 0, 0, 1024], [0, 0, 1920, 1080]]
        places = {-1280: "-640 100 0 580", 0: "1000 100 1640 580", 1920: "2920 100 3560 580"}
        for primary, monitors, main, left, right in (
                (None, areas, 0, -1280, 1920),       # the main monitor is the one nearest to 0,0
                (1920, areas, 1920, -1280, 1920),
                (-1280, areas, -1280, -1280, 1920),
                (None, areas[:2], -1280, -1280, 1920),
                (None, areas[:1], 1920, None, None)):  # with one monitor, none is left or right
            listed = [{"area": area, "primary": area[0] == primary} for area in monitors]
            for name, edge in (("main", main), ("left", left), ("right", right)):
                with self.subTest(primary=primary, monitors=len(monitors), name=name):
                    window = {"id": "w2", "class": "XTerm", "title": "", "bounds": [1000, 100, 1640, 580]}
                    answer, log = one("place_app", app_name="XTerm", monitor=name,
                                      desktop={"monitors": listed, "windows": [window]})
                    if edge is None:
                        self.refused(answer, "unknown_monitor", "monitor")
                    elif len(monitors) == 3:
                        self.assertEqual(log, [f"place w2 {places[edge]}"])
                    else:
                        bounds = self.result(answer)["bounds"]
                        self.assertTrue(edge <= bounds[0] < edge + 1920 and answer["done"]["ok"])

    def test_a_window_that_is_too_large_begins_at_the_edge(self):
        monitors = [{"area": [0, 0, 1920, 1080], "primary": True}, {"area": [1920, 0, 2560, 400]}]
        _, log = one("place_app", app_name="XTerm", monitor="right", desktop={"monitors": monitors})
        self.assertEqual(log, ["place w2 1920 0 2560 480"])

    def test_what_the_window_manager_lets_it_be(self):
        answer, _ = one("place_app", [{"on": "place", "do": "refuse"}], app_name="XTerm", monitor="right")
        result = self.result(answer)
        self.assertEqual((result["bounds"], result["exact"]), ([1000, 100, 1640, 580], False))

    def test_place_refusals(self):
        for args, code, param in (
                ({}, "no_target", "monitor"),
                ({"monitor": "top"}, "unknown_monitor", "monitor"),
                ({"monitor": None, "bounds": None}, "no_target", "monitor"),
                ({"bounds": [0, 0, 10]}, "invalid_bounds", "bounds"),
                ({"bounds": [0, 0, 10, 10.5]}, "invalid_bounds", "bounds"),
                ({"bounds": [0, 0, "10", 10]}, "invalid_bounds", "bounds"),
                ({"bounds": "left"}, "invalid_bounds", "bounds"),
                ({"bounds": [10, 0, 10, 10]}, "invalid_bounds", "bounds"),
                ({"bounds": [0, 20, 10, 10]}, "invalid_bounds", "bounds"),
                ({"bounds": [0, 0, 32768, 10]}, "invalid_bounds", "bounds"),
                ({"bounds": [0, 0, 2 ** 40, 10]}, "invalid_bounds", "bounds"),
                ({"bounds": [-900, 0, 99, 500]}, "bounds_off_screen", "bounds"),
                ({"bounds": [5000, 0, 6000, 500]}, "bounds_off_screen", "bounds"),
                ({"bounds": [0, 1040, 600, 1600]}, "bounds_off_screen", "bounds"),
                ({"bounds": [0, 0, 960, 1080], "monitor": "right"}, "bounds_off_monitor", "bounds")):
            with self.subTest(args):
                answer, log = one("place_app", app_name="XTerm", **args)
                self.refused(answer, code, param)
                self.assertEqual(log, [])
        self.refused(one("place_app", app_name="XTerm", monitor="right", desktop={"monitors": DESKTOP["monitors"][1:]})[0],
                     "unknown_monitor", "monitor")
        self.refused(one("place_app", app_name="Notes (other-notes.desktop)", monitor="main")[0], "no_window", "app_name")

    def test_a_started_application_is_placed(self):
        name = "Notes (other-notes.desktop)"
        answers, log = run({"commands": [{"type": "focus_app", "app_name": name},
                                         {"type": "place_app", "app_name": name, "monitor": "right"}],
                            "needs_clarification": False, "clarification_reason": None})
        self.assertTrue(answers[0]["done"]["ok"])
        self.assertEqual(log, ["launch other-notes.desktop", "focus new1", "place new1 2020 100 2660 580"])

    # ---- undo ----

    def test_undo_the_last(self):
        told = run_all(call("place_app", app_name="XTerm", monitor="right"), call("place_app", app_name="Strange",
                                                                                  bounds=[0, 0, 500, 500]),
                       call("undo"), call("undo"), call("undo"))
        self.assertEqual(told["log"], ["place w2 2920 100 3560 580", "place w4 0 0 500 500", "place w4 0 0 100 100",
                                       "place w2 1000 100 1640 580"])
        self.assertEqual(self.result(told["answers"][2])["restored"],
                         [{"app_name": "Strange", "bounds": [0, 0, 100, 100], "exact": True}])
        self.refused(told["answers"][4], "nothing_to_undo")
        self.assertEqual(told["left"]["w2"], "1000 100 1640 580")

    def test_undo_that_does_not_get_there(self):
        answers, _ = run(call("place_app", app_name="Strange", bounds=[0, 0, 500, 500]), call("undo"),
                         rules=[{"on": "place w4 0 0 100 100", "do": "refuse"}])
        self.assertEqual(self.result(answers[1])["restored"],
                         [{"app_name": "Strange", "bounds": [0, 0, 500, 500], "exact": False}])

    def test_undo_by_handle(self):
        answers, log = run(call("place_app", app_name="XTerm", monitor="right"), call("place_app", app_name="Strange",
                                                                                      bounds=[0, 0, 500, 500]),
                           {"undo_of": 0}, {"undo_of": 0}, call("undo"))
        self.assertRegex(self.result(answers[0])["undo"], "^[0-9a-f]{16}$")
        self.assertNotEqual(self.result(answers[0])["undo"], self.result(answers[1])["undo"])
        self.assertEqual(log[2:], ["place w2 1000 100 1640 580", "place w4 0 0 100 100"])
        self.refused(answers[3], "unknown_undo", "handle")

    def test_undo_refusals(self):
        self.refused(one("undo")[0], "nothing_to_undo")
        self.refused(one("undo", handle="0123456789abcdef")[0], "unknown_undo", "handle")
        self.refused(one("undo", handle="")[0], "empty_string", "handle")
        self.refused(one("undo", desktop={"lacks": ["windows"]})[0], "unavailable")
        place = call("place_app", app_name="Strange", bounds=[0, 0, 500, 500])
        focus = call("focus_app", app_name="XTerm")
        answers, log = run(place, focus, call("undo"), call("undo"), rules=[{"on": "focus", "do": {"window.close": "w4"}}])
        self.refused(answers[2], "no_window")
        self.refused(answers[3], "nothing_to_undo")
        other = {"id": "w4", "class": "Bank", "title": "Bank", "pid": 99, "bounds": [0, 0, 9, 9]}
        answers, log = run(place, focus, call("undo"), rules=[{"on": "focus", "do": {"window.close": "w4",
                                                                                     "window.open": other}}])
        self.refused(answers[2], "no_window")
        self.assertEqual(log, ["place w4 0 0 500 500", "focus w2"])

    def test_undo_in_a_request(self):
        place = {"type": "place_app", "app_name": "XTerm", "monitor": "right"}
        answers, log = run({"commands": [place, {"type": "undo"}]})
        self.assertTrue(answers[0]["done"]["ok"])
        self.assertEqual(log, ["place w2 2920 100 3560 580", "place w2 1000 100 1640 580"])
        self.refused(run({"commands": [{"type": "undo"}, place]})[0][0], "nothing_to_undo", "commands[0]")

    def test_what_failed_halfway_can_be_undone(self):
        answers, log = run({**call("place_app", app_name="XTerm", monitor="right"), "cancel_at": 100}, call("undo"),
                           rules=[{"on": "place", "do": "refuse", "once": True}])
        self.refused(answers[0], "cancelled")
        self.assertTrue(answers[1]["done"]["ok"])
        self.assertEqual(len(log), 2)

    def test_undo_forgets_the_oldest(self):
        answers, _ = run(*[call("place_app", app_name="Strange", bounds=[i, 0, i + 500, 500]) for i in range(33)],
                         {"undo_of": 0}, {"undo_of": 1})
        self.refused(answers[33], "unknown_undo", "handle")
        self.assertEqual(self.result(answers[34])["restored"][0]["bounds"], [0, 0, 500, 500])

    # ---- close_app ----

    def test_close_all_windows(self):
        answer, log = one("close_app", app_name="XTerm")
        self.assertEqual(self.result(answer)["closed_windows"], 2)
        self.assertEqual(log, ["close w2", "close w3"])

    def test_close_refusals(self):
        self.refused(one("close_app", app_name="Notes (other-notes.desktop)")[0], "not_running", "app_name")
        self.refused(one("close_app", app_name="nothing")[0], "unknown_app", "app_name")
        self.refused(one("close_app", [{"on": "close w3", "do": "refuse"}], app_name="XTerm")[0], "still_open", "app_name")
        _, log = one("close_app", [{"on": "close w2", "do": {"window.close": "w2"}}], app_name="XTerm")
        self.assertEqual(log, ["close w2", "close w3"])

    # ---- tabs ----

    def test_switch_tab(self):
        answer, log = one("switch_tab", tab_index=3)
        self.assertEqual(self.result(answer)["title"], "GitHub")
        self.assertEqual(log, ["tab.activate t2"])

    def test_switch_refusals(self):
        for args, code in (({}, "missing_param"), ({"tab_index": 0}, "invalid_index"), ({"tab_index": -1}, "invalid_index"),
                           ({"tab_index": 5}, "unknown_tab"), ({"tab_index": "3"}, "invalid_type"),
                           ({"tab_index": 3.0}, "invalid_type"), ({"tab_index": 2 ** 70}, "unknown_tab"),
                           ({"tab_index": 1, "snapshot": "0" * 16}, "stale_snapshot"),
                           ({"tab_index": 1, "snapshot": ""}, "empty_string"), ({"tab_index": 1, "x": 1}, "unknown_param")):
            with self.subTest(args):
                answer, log = one("switch_tab", **args)
                self.refused(answer, code)
                self.assertEqual(log, [])
        refuse = [{"on": "tab.activate", "do": "refuse"}]
        self.refused(one("switch_tab", refuse, tab_index=3)[0], "timeout")

    def test_open_url(self):
        answer, log = one("open_url", url="chatgpt")
        self.assertEqual(self.result(answer)["url"], "https://chatgpt.com")
        self.assertEqual(log, ["tab.open https://chatgpt.com"])
        self.refused(one("open_url", url="file:///etc/passwd")[0], "scheme_not_allowed", "url")
        self.refused(one("open_url", url="")[0], "empty_string", "url")

    def test_close_tabs_from_the_highest(self):
        answer, log = one("close_tab", tab_indices=[1, 3, 2])
        self.assertEqual(self.result(answer)["closed"], [1, 2, 3])
        self.assertEqual(log, ["tab.close t2", "tab.close t1", "tab.close t3"])

    def test_a_page_may_refuse(self):
        answer, _ = one("close_tab", [{"on": "tab.close t1", "do": "refuse"}], tab_indices=[1, 2])
        result = self.result(answer)
        self.assertEqual((result["closed"], result["blocked"]), ([1], [2]))

    def test_close_tab_refusals(self):
        for indices, code, param in (([], "empty_list", "tab_indices"), ([1, 1], "duplicate_index", "tab_indices[1]"),
                                     ([1, 0], "invalid_index", "tab_indices[1]"), ([1, 9], "unknown_tab", "tab_indices"),
                                     (3, "invalid_type", "tab_indices"), (["a"], "invalid_type", "tab_indices[0]"),
                                     (None, "missing_param", "tab_indices")):
            with self.subTest(indices):
                answer, log = one("close_tab", tab_indices=indices)
                self.refused(answer, code, param)
                self.assertEqual(log, [])

    # ---- a user who interferes ----

    def test_indices_mean_what_the_client_saw(self):
        listed = {"type": "list_tabs"}
        user = {"after_ms": 5, "do": {"tab.close": "t3"}}
        wait = {"type": "switch_tab", "args": {"tab_index": 9}}  # takes no time
        answers, log = run(listed, {"type": "close_tab", "args": {"tab_indices": [2]}}, wait, listed,
                           {"type": "switch_tab", "args": {"tab_index": 2}}, rules=[user])
        self.assertEqual(log, ["tab.close t1", "tab.activate t2"])
        self.assertEqual(answers[1]["done"]["results"][0]["closed"], [2])

    def test_a_tab_that_was_closed_is_not_another_one(self):
        close = {"on": "tab.activate t1", "do": {"tab.close": "t3"}}
        answers, log = run({"type": "list_tabs"}, {"type": "switch_tab", "args": {"tab_index": 2}},
                           {"type": "close_tab", "args": {"tab_indices": [1]}}, rules=[close])
        self.refused(answers[2], "unknown_tab", "tab_indices")
        self.assertEqual(log, ["tab.activate t1"])

    def test_an_older_handle(self):
        first = run({"type": "list_tabs"})[0][0]["done"]["results"][0]["snapshot"]
        close = {"on": "tab.activate t1", "do": {"tab.close": "t3"}}
        answers, log = run({"type": "list_tabs"}, {"type": "switch_tab", "args": {"tab_index": 2}}, {"type": "list_tabs"},
                           {"type": "close_tab", "args": {"tab_indices": [4], "snapshot": first}}, rules=[close])
        self.assertEqual(answers[3]["done"]["results"][0]["closed"], [4])
        self.assertEqual(log, ["tab.activate t1", "tab.close t4"])

    def test_another_page_in_the_tab_is_not_closed(self):
        """Between the check and the action, the user opens another page in the tab."""
        rule = {"on": "tab.close t1", "do": {"tab.go": {"id": "t3", "url": "https://bank.example/"}}}
        answer, log = one("close_tab", [rule], tab_indices=[1, 2])
        result = self.result(answer)
        self.assertEqual((result["closed"], result["changed"]), ([2], [1]))
        self.assertEqual(log, ["tab.close t1"])

    def test_cancel(self):
        answers, log = run({"type": "close_app", "args": {"app_name": "XTerm"}, "cancel_at": 100},
                           rules=[{"on": "close w3", "do": "refuse"}])
        self.refused(answers[0], "cancelled")
        self.assertEqual(log, ["close w2", "close w3"])

    # ---- requests ----

    def test_nothing_runs_before_all_is_checked(self):
        answers, log = run({"commands": [{"type": "focus_app", "app_name": "XTerm"}, {"type": "switch_tab", "tab_index": 99}]})
        self.refused(answers[0], "unknown_tab", "commands[1].tab_index")
        self.assertEqual(log, [])

    def test_the_first_failure_ends_it(self):
        answers, log = run({"commands": [{"type": "focus_app", "app_name": "XTerm"}, {"type": "close_app", "app_name": "Strange"},
                                         {"type": "switch_tab", "tab_index": 1}]}, rules=[{"on": "close", "do": "refuse"}])
        self.refused(answers[0], "still_open", "commands[1].app_name")
        results = answers[0]["done"]["results"]
        self.assertEqual([(r["type"], r["ok"]) for r in results], [("focus_app", True), ("close_app", False)])
        self.assertEqual(log, ["focus w2", "close w4"])

    def test_a_question_runs_nothing(self):
        answers, log = run({"commands": [{"type": "switch_tab"}], "needs_clarification": True, "clarification_reason": "Which?"})
        self.assertEqual(answers[0], {"question": "Which?"})
        self.assertEqual(log, [])

    def test_request_refusals(self):
        focus = {"type": "focus_app", "app_name": "XTerm"}
        for request, code, param in (
                ({"commands": []}, "empty_commands", "commands"),
                ({}, "missing_param", "commands"),
                ({"commands": {}}, "invalid_type", "commands"),
                ({"commands": [1]}, "invalid_type", None),
                ({"commands": [{}]}, "missing_param", "commands[0].type"),
                ({"commands": [{"type": 1}]}, "invalid_type", "commands[0].type"),
                ({"commands": [{"type": "fly"}]}, "unknown_type", "commands[0].type"),
                ({"commands": [focus] * 21}, "invalid_type", "commands"),
                ({"commands": [focus], "needs_clarification": "no"}, "invalid_type", "needs_clarification"),
                ({"commands": [focus], "needs_clarification": True}, "missing_reason", "clarification_reason"),
                ({"commands": [focus], "needs_clarification": True, "clarification_reason": ""}, "missing_reason", None),
                ({"commands": [focus], "more": 1}, "unknown_param", "more"),
                ({"commands": [focus], "x" * 63 + "\u20ac": 1}, "unknown_param", "x" * 63),  # cut between characters
                ({"commands": [{**focus, "app_name": ""}]}, "empty_string", "commands[0].app_name"),
                ({"commands": [{**focus, "app_name": 7}]}, "invalid_type", "commands[0].app_name"),
                ({"commands": [{**focus, "app_name": "a\0b"}]}, "invalid_type", "commands[0].app_name"),
                ({"commands": [{**focus, "x" * 63 + "\u20ac": 7}]}, "unknown_param", "commands[0]." + "x" * 63),
                ({"commands": [{**focus, "why": 7}]}, "unknown_param", "commands[0].why")):
            with self.subTest(request):
                answers, log = run(request)
                self.refused(answers[0], code, param)
                self.assertEqual(log, [])

    def test_null_is_left_out(self):
        nothing = dict.fromkeys(("app_name", "monitor", "bounds", "content_summary", "raw", "tab_index", "tab_indices",
                                 "snapshot", "url", "preset_name", "question", "conversation", "handle"))
        close = {**nothing, "type": "close_tab", "tab_indices": [1]}
        answers, log = run({"commands": [{**nothing, "type": "list_apps"}, close],
                            "needs_clarification": None, "clarification_reason": None, "dry_run": None})
        self.assertTrue(answers[0]["done"]["ok"])
        self.assertEqual(log, ["tab.close t3"])
        for given, code, param in (({"app_name": None}, "missing_param", "app_name"),
                                   ({"why": None}, "unknown_param", "why")):
            answers, log = run({"commands": [{**nothing, "type": "focus_app", **given}]})
            self.refused(answers[0], code, "commands[0]." + param)

    def test_dry_run(self):
        answers, log = run({"commands": [{"type": "close_tab", "tab_indices": [1]}, {"type": "open_url", "url": "chatgpt"}],
                            "dry_run": True})
        self.assertEqual(answers[0]["done"]["would"], [{"type": "close_tab", "ids": ["t3"]},
                                                       {"type": "open_url", "url": "https://chatgpt.com"}])
        self.assertEqual(log, [])

    # ---- what a desktop lacks ----

    def test_unavailable(self):
        self.refused(one("close_tab", tab_indices=[1], desktop={"lacks": ["tabs"]})[0], "unavailable")
        self.refused(one("close_app", app_name="XTerm", desktop={"lacks": ["windows"]})[0], "unavailable")
        for lacks, requests in (("windows", ("list_apps", {"app_name": "XTerm"})), ("tabs", ("list_tabs", {"tab_index": 1}))):
            with self.subTest(lacks):
                self.refused(one(requests[0], desktop={"lacks": [lacks]})[0], "unavailable")
        # without a list of windows, as on Wayland, it is started again
        answer, log = one("focus_app", app_name="XTerm", desktop={"lacks": ["windows"]})
        self.assertEqual((self.result(answer)["launched"], log), (True, ["launch xterm.desktop"]))
        self.refused(one("focus_app", app_name="?", desktop={"lacks": ["windows"]})[0], "unavailable")
        self.refused(one("open_url", url="chatgpt", desktop={"lacks": ["tabs"]})[0], "unavailable")
        self.refused(one("place_app", app_name="XTerm", monitor="main", desktop={"lacks": ["monitors"]})[0], "unavailable")


if __name__ == "__main__":
    unittest.main()
