"""fm-system preset: saves the layout of the fake desktop, lists, deletes. FM_SYSTEM_PRESET names the program of
preset_driver.c."""

import json
import os
import stat
import subprocess
import tempfile
import threading
import unittest

from fake import DESKTOP, Case, call, run_all

PROGRAM = os.environ["FM_SYSTEM_PRESET"]
USAGE, DATA, UNAVAILABLE, BUSY = 64, 65, 69, 75


class Preset(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.config = os.path.join(folder.name, "config")
        self.path = os.path.join(self.config, "fm-system", "presets.json")
        self.desktop = os.path.join(folder.name, "desktop.json")
        self.use(DESKTOP)

    def use(self, desktop):
        with open(self.desktop, "w", encoding="utf-8") as file:
            json.dump(desktop, file)

    def preset(self, *args, **env):
        return subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "XDG_CONFIG_HOME": self.config, "FM_FAKE": self.desktop, **env})

    def works(self, *args):
        done = self.preset(*args)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout

    def fails(self, status, code, *args, **env):
        done = self.preset(*args, **env)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done)
        self.assertIn(f"({code})", done.stderr)

    def saved(self):
        with open(self.path, encoding="utf-8") as file:
            return json.load(file)["presets"]

    # ---- tests ----

    def test_what_was_saved_comes_back(self):
        told = self.works("save", "code space")
        self.assertTrue(told.startswith("saved code space: 3 windows, 0 URLs\n"), told)
        self.assertIn("Strange: it is not an installed application", told)
        self.assertEqual(self.saved(), [{"name": "code space", "apps": [
            {"app_name": "Google Chrome", "bounds": [0, 0, 960, 1080]}, {"app_name": "XTerm", "bounds": [1000, 100, 1640, 580]},
            {"app_name": "XTerm", "bounds": [2000, 0, 2640, 480]}]}])
        moved = [{**window, "bounds": [5, 5, 505, 505]} for window in DESKTOP["windows"]]
        activated = run_all(call("activate_preset", preset_name="code space"), windows=moved, besides={"presets": self.path})
        self.result(activated["answers"][0])
        self.assertEqual([activated["left"][id] for id in ("w1", "w2", "w3", "w4")],
                         ["0 0 960 1080", "1000 100 1640 580", "2000 0 2640 480", "5 5 505 505"])

    def test_nobody_else_can_read_it(self):
        self.works("save", "a")
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(self.path)).st_mode), 0o700)
        self.assertEqual(sorted(os.listdir(os.path.dirname(self.path))), ["presets.json", "presets.json.lock"])

    def test_tabs(self):
        tabs = [{"id": "a", "window": "1", "title": "A\x1b[2J", "url": "https://u:p@a.example/"},
                {"id": "b", "window": "1", "title": "B", "url": "https://b.example/?q=1"},
                {"id": "c", "window": "1", "title": "C", "url": "chrome://settings/"}]
        self.use({**DESKTOP, "tabs": tabs})
        told = self.works("save", "a", "--tabs")
        self.assertEqual(self.saved()[0]["urls"], ["https://b.example/?q=1"])
        self.assertIn("A[2J: the URL has a name or a password in it", told)
        self.assertIn("C: only http and https", told)

    def test_a_window_that_could_not_go_there_is_left_out(self):
        windows = [{"id": "w", "class": "XTerm", "title": "", "bounds": [-9000, 0, -8000, 900]}, *DESKTOP["windows"][:1]]
        self.use({**DESKTOP, "windows": windows})
        told = self.works("save", "a")
        self.assertIn("XTerm: less than 100x50 pixels", told)
        self.assertEqual([app["app_name"] for app in self.saved()[0]["apps"]], ["Google Chrome"])
        self.use({**DESKTOP, "windows": windows[:1]})
        self.fails(DATA, "nothing_to_save", "save", "b")

    def test_a_preset_is_not_overwritten_by_mistake(self):
        self.works("save", "a")
        self.works("save", "b", "--tabs")
        before = self.saved()
        self.fails(DATA, "preset_exists", "save", "a")
        self.assertEqual(self.saved(), before)
        self.use({**DESKTOP, "windows": DESKTOP["windows"][:1]})
        self.assertTrue(self.works("save", "a", "--replace").startswith("replaced a: 1 window, 0 URLs"))
        self.assertEqual([(preset["name"], len(preset["apps"])) for preset in self.saved()], [("a", 1), ("b", 3)])

    def test_list_and_delete(self):
        self.assertEqual(self.works("list"), "")
        self.assertEqual(self.works("list", "--json"), '{"presets":[]}\n')
        self.works("save", "a", "--tabs")
        self.works("save", "b\u202e\u00fc")
        self.assertEqual(self.works("list"), "a: 3 windows, 4 URLs\nb\u00fc: 3 windows, 0 URLs\n")
        self.assertEqual(json.loads(self.works("list", "--json"))["presets"][1]["name"], "b\u202e\u00fc")
        self.fails(DATA, "unknown_preset", "delete", "c")
        self.assertEqual(self.works("delete", "a"), "deleted a\n")
        self.assertEqual([preset["name"] for preset in self.saved()], ["b\u202e\u00fc"])

    def test_what_else_is_in_the_file_stays(self):
        os.makedirs(os.path.dirname(self.path), 0o700)
        other = {"name": "mine", "apps": [{"app_name": "XTerm", "bounds": [0, 0, 1e3, 12345678901234567890]}], "x": None}
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump({"presets": [other]}, file)
        self.works("save", "a")
        self.assertEqual(self.saved()[0], other)

    def test_a_damaged_file_stays_as_it_is(self):
        os.makedirs(os.path.dirname(self.path), 0o700)
        for text in ('{"presets": [', '{"presets": [{"name": 1}]}', ""):
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(text)
            for args in (("save", "a"), ("delete", "a"), ("list",)):
                self.fails(DATA, "invalid_preset", *args)
            with open(self.path, encoding="utf-8") as file:
                self.assertEqual(file.read(), text)
            self.assertFalse(os.path.exists(self.path + ".new"))

    def test_a_link_stays_one(self):
        target = os.path.join(os.path.dirname(self.config), "dotfiles")
        os.makedirs(os.path.dirname(self.path), 0o700)
        os.mkdir(target, 0o755)
        with open(os.path.join(target, "p.json"), "w", encoding="utf-8") as file:
            file.write('{"presets": []}')
        os.symlink(os.path.join(target, "p.json"), self.path)
        self.works("save", "a")
        self.assertTrue(os.path.islink(self.path))
        self.assertEqual([preset["name"] for preset in self.saved()], ["a"])

    def test_a_folder_that_others_can_write_to(self):
        os.makedirs(os.path.dirname(self.path), 0o700)
        os.chmod(os.path.dirname(self.path), 0o777)
        self.fails(UNAVAILABLE, "unavailable", "save", "a")

    def test_what_a_killed_process_left_is_no_obstacle(self):
        os.makedirs(os.path.dirname(self.path), 0o700)
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            file.write("half")
        self.works("save", "a")
        self.assertEqual([preset["name"] for preset in self.saved()], ["a"])

    def test_many_at_once_lose_nothing(self):
        """Each process either has its preset in the file at the end, or got the error that another process is writing it."""
        saved = []

        def save(name):
            for _ in range(200):
                done = self.preset("save", name)
                if done.returncode != BUSY:
                    saved.append((name, done.returncode))
                    return

        threads = [threading.Thread(target=save, args=(f"p{i}",)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(saved), [(f"p{i}", 0) for i in range(8)])
        self.assertEqual(sorted(preset["name"] for preset in self.saved()), [f"p{i}" for i in range(8)])

    def test_names(self):
        for name in ("x" * 101, "a\nb", "a\x7f", b"\xff"):
            self.fails(DATA, "invalid_name", "save", name)
        self.fails(DATA, "empty_string", "save", "")
        self.works("save", "x" * 100)

    def test_usage(self):
        for args in ((), ("fly",), ("save",), ("save", "a", "b"), ("save", "a", "--json"), ("list", "a"), ("list", "--tabs"),
                     ("delete",), ("delete", "a", "--replace"), ("list", "-"), ("list", "--js"), ("list", "--json", "--js"),
                     ("save", "a", "--tabs --replace"), ("save", "a", "--tabs", "--rep"), ("save", "a", "--tabs", "-")):
            with self.subTest(args):
                done = self.preset(*args)
                self.assertEqual((done.returncode, done.stdout), (USAGE, ""))
                self.assertIn("usage:", done.stderr)

    def test_where_it_is(self):
        home = os.path.join(os.path.dirname(self.config), "home")
        os.mkdir(home)
        done = self.preset("save", "a", XDG_CONFIG_HOME="", HOME=home)
        self.assertEqual(done.returncode, 0, done)
        self.assertTrue(os.path.exists(os.path.join(home, ".config/fm-system/presets.json")))
        self.fails(UNAVAILABLE, "unavailable", "list", XDG_CONFIG_HOME="relative", HOME="")

    def test_a_desktop_without_windows(self):
        self.use({**DESKTOP, "lacks": ["windows"]})
        self.fails(UNAVAILABLE, "unavailable", "save", "a")
        self.use({**DESKTOP, "lacks": ["tabs"]})
        self.fails(UNAVAILABLE, "unavailable", "save", "a", "--tabs")


if __name__ == "__main__":
    unittest.main()
