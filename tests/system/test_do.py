"""`do` on the fake desktop: what it prints, asks and does. FM_DO_DRIVER names the program of do_driver.c."""

import json
import os
import subprocess
import tempfile
import unittest

DRIVER = os.environ["FM_DO_DRIVER"]
DESKTOP = {
    "monitors": [{"area": [0, 0, 1920, 1080], "primary": True}],
    "apps": [{"id": "slack.desktop", "name": "Slack", "class": "Slack", "program": "slack"}],
    "windows": [{"id": "w1", "class": "Slack", "title": "general", "bounds": [0, 0, 800, 600], "active": True}],
    "tabs": [
        {"id": "t1", "window": "1", "active": True, "title": "r/c - Reddit", "url": "https://www.reddit.com/r/c"},
        {"id": "t2", "window": "1", "title": "r/rust\x1b[2J - Reddit", "url": "https://www.reddit.com/r/rust"},
        {"id": "t3", "window": "1", "title": "Weather", "url": "https://weather.example/"},
    ],
}


class Do(unittest.TestCase):
    def run_do(self, *arguments, answers="", desktop=None):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(desktop or DESKTOP, file)
            file.flush()
            done = subprocess.run([DRIVER, file.name, *arguments], input=answers, capture_output=True, text=True, timeout=60)
        lines = done.stdout.splitlines()
        log = [line[4:] for line in lines if line.startswith("LOG ")]
        return done.returncode, [line for line in lines if not line.startswith("LOG ")], log, done.stderr

    def test_what_destroys_nothing_runs_at_once(self):
        status, out, log, _ = self.run_do("switch to the weather")
        self.assertEqual((status, out, log), (0, ["switch_tab: Weather"], ["tab.activate t3"]))

    def test_without_a_terminal_nothing_is_closed(self):
        status, _, log, err = self.run_do("close all reddit tabs")
        self.assertEqual((status, log), (1, []))
        self.assertIn("--yes", err)
        self.assertIn("(denied)", err)

    def test_yes_closes(self):
        status, out, log, _ = self.run_do("--yes", "close all reddit tabs")
        self.assertEqual((status, log), (0, ["tab.close t2", "tab.close t1"]))
        self.assertEqual(out, ["close_tab: closed tab 1, 2"])

    def test_a_terminal_is_asked_first(self):
        status, out, log, _ = self.run_do("--terminal", "close slack", answers="y\n")
        self.assertEqual((status, log), (0, ["close w1"]))
        self.assertEqual(out[0], "close the application Slack (1 window)")
        for answer in ("n\n", "", "\n", "yesterday\n"):
            status, _, log, _ = self.run_do("--terminal", "close slack", answers=answer)
            self.assertEqual((status, log), (1, []), answer)

    def test_a_step_that_fails_has_no_line(self):
        rules = [{"on": "tab.activate t3", "do": "fail"}]
        status, out, _, err = self.run_do("switch to the weather", desktop={**DESKTOP, "rules": rules})
        self.assertEqual((status, out), (1, []))
        self.assertIn("(unavailable)", err)

    def test_a_tab_that_refuses_is_told(self):
        rules = [{"on": "tab.close t3", "do": "refuse"}]
        status, out, _, _ = self.run_do("--yes", "close the weather", desktop={**DESKTOP, "rules": rules})
        self.assertEqual((status, out), (0, ["close_tab; the page refused: tab 3"]))

    def test_dry_run(self):
        status, out, log, _ = self.run_do("--dry-run", "close the weather")
        self.assertEqual((status, out, log), (0, ["would close_tab", "  close the tab Weather"], []))

    def test_what_is_unclear_is_asked_on_a_terminal(self):
        status, out, log, _ = self.run_do("--terminal", "switch to reddit", answers="the rust one\n")
        self.assertEqual((status, log), (0, ["tab.activate t2"]))
        self.assertIn("Which one?", out[0])

    def test_what_is_unclear_ends_without_one(self):
        status, out, log, _ = self.run_do("switch to reddit")
        self.assertEqual((status, log), (2, []))
        self.assertIn("Which one?", out[0])

    def test_the_question_of_which_one_and_the_one_before_closing(self):
        status, _, log, _ = self.run_do("--terminal", "close the reddit tab", answers="2\ny\n")
        self.assertEqual((status, log), (0, ["tab.close t2"]))

    def test_questions_end(self):
        status, out, log, _ = self.run_do("--terminal", "switch to reddit", answers="zebra\n" * 50)
        self.assertEqual((status, log), (2, []))
        self.assertLessEqual(len(out), 6)

    def test_json_is_a_line_each_and_asks_nothing(self):
        status, out, log, _ = self.run_do("--json", "--terminal", "switch to the weather")
        envelope, done = (json.loads(line) for line in out)
        self.assertEqual((status, log), (0, ["tab.activate t3"]))
        self.assertEqual(envelope["commands"][0]["tab_index"], 3)
        self.assertTrue(done["ok"])
        status, out, log, _ = self.run_do("--json", "--terminal", "switch to reddit", answers="2\n")
        self.assertEqual((status, log, len(out)), (2, [], 1))
        self.assertTrue(json.loads(out[0])["needs_clarification"])
        status, out, log, _ = self.run_do("--json", "--terminal", "close slack", answers="y\n")
        self.assertEqual((status, log), (1, []))
        self.assertEqual(json.loads(out[1])["error"]["code"], "denied")

    def test_the_desktop_can_not_write_to_the_terminal(self):
        for arguments in (("list my tabs",), ("--terminal", "close all reddit tabs"), ("switch to reddit",)):
            _, out, _, err = self.run_do(*arguments, answers="y\n")
            self.assertNotIn("\x1b", "".join(out) + err)

    def test_bad_words(self):
        status, _, log, err = self.run_do("--yes", " ")
        self.assertEqual((status, log), (1, []))
        self.assertIn("(empty_string)", err)
        status, _, _, err = self.run_do("x" * 1001)
        self.assertEqual(status, 1)
        self.assertIn("(invalid_words)", err)


if __name__ == "__main__":
    unittest.main()
