"""activate_preset on the fake desktop: a preset is checked completely before anything happens, and comes back as it was saved."""

import json
import os
import tempfile
import unittest

from fake import DESKTOP, Case, call, run, run_all

NOTES = "Notes (org.example.Notes.desktop)"
CODE = {"name": "code space",
        "apps": [{"app_name": "XTerm", "monitor": "right"}, {"app_name": "Google Chrome", "bounds": [0, 0, 1920, 1080]}],
        "urls": ["https://github.com/a", "chatgpt"]}


class Presets(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "presets.json")

    def write(self, *presets, text=None):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(json.dumps({"presets": presets}) if text is None else text)

    def activate(self, name, *more, **options):
        return run_all(call("activate_preset", preset_name=name), *more, besides={"presets": self.path}, **options)

    def refusal(self, name, code, *in_detail, **options):
        told = self.activate(name, **options)
        error = self.refused(told["answers"][0], code, "preset_name")
        for part in in_detail:
            self.assertIn(part, error["detail"])
        self.assertEqual(told["log"], [])
        return error

    # ---- what it does ----

    def test_windows_and_urls(self):
        self.write({"name": "other", "apps": [{"app_name": "nothing", "monitor": "left"}]}, CODE)
        told = self.activate("code space")
        result = self.result(told["answers"][0])
        self.assertEqual(told["log"], ["place w2 2920 100 3560 580", "place w1 0 0 1920 1080", "tab.open https://chatgpt.com"])
        self.assertEqual(result["apps"], [
            {"app_name": "XTerm", "bounds": [2920, 100, 3560, 580], "exact": True, "launched": False},
            {"app_name": "Google Chrome", "bounds": [0, 0, 1920, 1080], "exact": True, "launched": False}])
        self.assertEqual(result["urls"], [{"url": "https://github.com/a", "opened": False},
                                          {"url": "https://chatgpt.com", "opened": True}])

    def test_an_open_page_is_not_opened_again(self):
        tabs = [{"id": "t1", "window": "1", "title": "", "url": url} for url in ("https://chatgpt.com/", "https://a.example/x/")]
        self.write({"name": "p", "urls": ["chatgpt", "https://a.example/x", "https://a.example/x/"]})
        self.assertEqual(self.activate("p", tabs=tabs)["log"], ["tab.open https://a.example/x"])

    def test_what_does_not_run_is_started_at_once(self):
        self.write({"name": "p", "apps": [{"app_name": NOTES, "bounds": [0, 0, 960, 1080]},
                                          {"app_name": "Notes (other-notes.desktop)", "bounds": [960, 0, 1920, 1080]},
                                          {"app_name": "XTerm", "monitor": "left"}]})
        told = self.activate("p")
        self.assertEqual(told["log"], ["launch org.example.Notes.desktop", "launch other-notes.desktop",
                                       "place new1 0 0 960 1080",
                                       "place new2 960 0 1920 1080", "place w2 1000 100 1640 580"])
        self.assertEqual([app["launched"] for app in self.result(told["answers"][0])["apps"]], [True, True, False])

    def test_two_windows_of_an_application(self):
        """Each entry gets a different window, the topmost first; a missing window is started."""
        sides = [[0, 0, 640, 480], [640, 0, 1280, 480], [1280, 0, 1920, 480]]
        self.write({"name": "p", "apps": [{"app_name": "XTerm", "bounds": bounds} for bounds in sides]})
        self.assertEqual(self.activate("p")["log"], ["launch xterm.desktop", "place w2 0 0 640 480", "place w3 640 0 1280 480",
                                                     "place new1 1280 0 1920 480"])

    def test_undo_brings_all_back(self):
        self.write(CODE)
        told = self.activate("code space", call("undo"), call("undo"))
        self.assertEqual(told["log"][3:], ["place w1 0 0 960 1080", "place w2 1000 100 1640 580"])
        self.refused(told["answers"][2], "nothing_to_undo")

    def test_dry_run(self):
        self.write(CODE)
        request = {"commands": [{"type": "activate_preset", "preset_name": "code space"}], "dry_run": True}
        answers, log = run(request, besides={"presets": self.path})
        self.assertEqual(answers[0]["done"]["would"], [{"type": "activate_preset", "preset_name": "code space", "would": [
            {"type": "place_app", "app_name": "XTerm", "monitor": "right", "ids": ["w2", "w3"]},
            {"type": "place_app", "app_name": "Google Chrome", "bounds": [0, 0, 1920, 1080], "ids": ["w1"]},
            {"type": "open_url", "url": "https://github.com/a"}, {"type": "open_url", "url": "https://chatgpt.com"}]}])
        self.assertEqual(log, [])

    # ---- what fails ----

    def test_unknown_preset(self):
        self.refusal("code space", "unknown_preset")
        self.write(CODE, {"name": "second", "urls": ["chatgpt"]})
        error = self.refusal("Code space", "unknown_preset")
        self.assertEqual(error["candidates"], ["code space", "second"])
        answers, log = run(call("activate_preset", preset_name="code space"))
        self.refused(answers[0], "unknown_preset", "preset_name")

    def test_invalid_file(self):
        for text, part in (("", "no JSON"), ("{", "no JSON"), ("[]", '{"presets": [...]}'), ("null", '{"presets": [...]}'),
                           ('{"presets": {}}', '{"presets": [...]}'), ('{"presets": [], "x": 1}', "nothing besides"),
                           ('{"presets": [1]}', "presets[0] must be an object"), ('{"presets": [{}]}', "presets[0].name must be"),
                           ('{"presets": [{"name": ""}]}', "presets[0].name must be"),
                           ('{"presets": [{"name": "a\\u0000b"}]}', "presets[0].name must be"),
                           ('{"presets": [{"name": "a\\u0007b"}]}', "presets[0].name must be"),
                           ('{"presets": [{"name": "%s"}]}' % ("x" * 101), "presets[0].name must be"),
                           ('{"presets": [{"name": "a"}, {"name": "a"}]}', "presets[1].name is the name of a preset before it"),
                           (json.dumps({"presets": [{"name": str(i)} for i in range(101)]}), "more than 100"),
                           (" " * (1 << 20) + "{}", "longer than")):
            with self.subTest(text[:80]):
                self.write(text=text)
                self.refusal("p", "invalid_preset", "presets.json", part)

    def test_a_file_that_cant_be_read(self):
        os.mkdir(self.path)
        told = self.activate("p")
        self.refused(told["answers"][0], "unavailable")

    def test_invalid_preset(self):
        whole = {"app_name": "XTerm", "monitor": "left"}
        for preset, where, why in (
                ({}, "presets[0]", "missing_param"),
                ({"apps": []}, "presets[0]", "missing_param"),
                ({"apps": {}}, "presets[0].apps", "invalid_type"),
                ({"urls": "chatgpt"}, "presets[0].urls", "invalid_type"),
                ({"apps": [whole] * 21}, "presets[0].apps", "invalid_type"),
                ({"apps": [whole], "url": []}, "presets[0].url", "unknown_param"),
                ({"apps": [whole, 1]}, "presets[0].apps[1]", "invalid_type"),
                ({"apps": [{**whole, "type": "close_app"}]}, "presets[0].apps[0]", "unknown_param"),
                ({"apps": [{"monitor": "left"}]}, "presets[0].apps[0].app_name", "missing_param"),
                ({"apps": [whole, {"app_name": "XTerm"}]}, "presets[0].apps[1].monitor", "no_target"),
                ({"apps": [{**whole, "monitor": "up"}]}, "presets[0].apps[0].monitor", "unknown_monitor"),
                ({"apps": [{**whole, "size": 1}]}, "presets[0].apps[0].size", "unknown_param"),
                ({"apps": [{"app_name": "nothing", "monitor": "left"}]}, "presets[0].apps[0].app_name", "unknown_app"),
                ({"apps": [{"app_name": "XTerm", "bounds": [0, 0, 0, 9]}]}, "presets[0].apps[0].bounds", "invalid_bounds"),
                ({"apps": [{"app_name": "XTerm", "bounds": [9000, 0, 9900, 900]}]}, "presets[0].apps[0].bounds",
                 "bounds_off_screen"),
                ({"urls": ["chatgpt", "file:///etc/passwd"]}, "presets[0].urls[1]", "scheme_not_allowed"),
                ({"urls": ["https://u:p@a.example"]}, "presets[0].urls[0]", "credentials_in_url"),
                ({"apps": [whole], "urls": [7]}, "presets[0].urls[0]", "invalid_type"),
                ({"urls": ["a\0.example"]}, "presets[0].urls[0]", "invalid_type")):
            with self.subTest(preset):
                self.write({"name": "p", **preset})
                self.refusal("p", "invalid_preset", where, f"({why})")

    def test_what_the_desktop_lacks(self):
        self.write(CODE)
        for lacks in ("windows", "monitors", "tabs"):
            told = self.activate("code space", lacks=[lacks])
            self.refused(told["answers"][0], "unavailable")
            self.assertEqual(told["log"], [])
        self.write({"name": "p", "urls": ["chatgpt"]})
        self.assertEqual(self.activate("p", lacks=["windows"])["log"], ["tab.open https://chatgpt.com"])

    def test_an_application_without_a_window(self):
        self.write({"name": "p", "apps": [{"app_name": "XTerm", "monitor": "right"}, {"app_name": NOTES, "monitor": "left"}],
                    "urls": ["chatgpt"]})
        told = self.activate("p", call("undo"), rules=[{"on": "launch", "do": "refuse"}])
        error = self.refused(told["answers"][0], "no_window", "preset_name")
        self.assertIn("presets[0].apps[1].app_name", error["detail"])
        result = told["answers"][0]["done"]["results"][0]
        self.assertEqual((result["ok"], result["apps"][0]["app_name"]), (False, "XTerm"))
        self.assertEqual(told["log"], ["launch org.example.Notes.desktop", "place w2 2920 100 3560 580",
                                       "place w2 1000 100 1640 580"])

    def test_in_a_request(self):
        self.write(CODE)
        answers, log = run({"commands": [{"type": "focus_app", "app_name": "XTerm"},
                                         {"type": "activate_preset", "preset_name": "none"}]}, besides={"presets": self.path})
        self.refused(answers[0], "unknown_preset", "commands[1].preset_name")
        self.assertEqual(log, [])
        self.assertEqual(DESKTOP["windows"][0]["id"], "w1")


if __name__ == "__main__":
    unittest.main()
