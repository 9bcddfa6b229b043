"""Shared by fm-system's tests: the fake desktop, and running requests on it. FM_SYSTEM_DRIVER names the program of driver.c."""

import copy
import json
import os
import subprocess
import unittest

BUILT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "tests-bin", "system_driver")
DRIVER = os.environ.get("FM_SYSTEM_DRIVER", BUILT)

DESKTOP = {
    "monitors": [{"area": [1920, 0, 3840, 1080]}, {"area": [0, 0, 1920, 1080], "primary": True}],
    "apps": [
        {"id": "google-chrome.desktop", "name": "Google Chrome", "class": "Google-chrome", "program": "google-chrome"},
        {"id": "xterm.desktop", "name": "XTerm", "class": "XTerm", "program": "xterm"},
        {"id": "org.example.Notes.desktop", "name": "Notes", "class": "", "program": "notes"},
        {"id": "other-notes.desktop", "name": "Notes", "class": "othernotes", "program": "other"},
    ],
    "windows": [
        {"id": "w1", "class": "Google-chrome", "title": "Reddit", "bounds": [0, 0, 960, 1080], "active": True},
        {"id": "w2", "class": "XTerm", "title": "sh", "bounds": [1000, 100, 1640, 580]},
        {"id": "w3", "class": "XTerm", "title": "top", "bounds": [2000, 0, 2640, 480]},
        {"id": "w4", "class": "Strange", "title": "?", "bounds": [0, 0, 100, 100]},
    ],
    "tabs": [
        {"id": "t1", "window": "20", "active": True, "title": "Reddit", "url": "https://www.reddit.com/"},
        {"id": "t2", "window": "20", "title": "GitHub", "url": "https://github.com/a"},
        {"id": "t3", "window": "9", "active": True, "title": "r/c", "url": "https://old.reddit.com/r/c"},
        {"id": "t4", "window": "100", "active": True, "title": "News", "url": "https://news.example/"},
    ],
}
# tabs by index: 1 t3 (window 9), 2 t1, 3 t2 (window 20), 4 t4 (window 100)


def run_all(*requests, rules=(), besides=None, env=None, **changes):
    """Everything that the driver returns. `besides` has members beside the desktop, such as the path of presets.json."""
    desktop = {**copy.deepcopy(DESKTOP), **changes, "rules": list(rules)}
    given = json.dumps({**(besides or {}), "desktop": desktop, "requests": requests}).encode()
    done = subprocess.run([DRIVER], input=given, capture_output=True, timeout=60, env={**os.environ, **(env or {})})
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())
    return json.loads(done.stdout)


def run(*requests, **options):
    """The answers and the actions."""
    told = run_all(*requests, **options)
    return told["answers"], told["log"]


def call(type, **args):
    return {"type": type, "args": args}


def one(type, rules=(), desktop=None, **args):
    answers, log = run(call(type, **args), rules=rules, **(desktop or {}))
    return answers[0], log


class Case(unittest.TestCase):
    def result(self, answer):
        self.assertNotIn("error", answer)
        self.assertTrue(answer["done"]["ok"])
        return answer["done"]["results"][0]

    def refused(self, answer, code, param=None):
        self.assertIn("error", answer)
        self.assertEqual(answer["error"]["code"], code, answer)
        if param is not None:
            self.assertEqual(answer["error"]["param"], param, answer)
        return answer["error"]
