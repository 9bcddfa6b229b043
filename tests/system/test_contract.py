"""The table of refusals in docs/requirements-system.md, code by code. For each code, a row here causes it on the fake desktop,
with its parameter, and changes nothing. There are no other codes."""

import json
import os
import re
import tempfile
import unittest

from fake import Case, call, run_all

PAGE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "requirements-system.md")
ANY = "any command"
REQUEST = "a request"
NOTES = "Notes (org.example.Notes.desktop)"


def rule(on, do):
    return {"on": on, "do": do}


class Row:
    """`actions`: what may happen before the refusal; most refusals come before any action."""

    def __init__(self, command, code, param=None, args=None, rules=(), actions=(), before=(), presets=None, model=None,
                 cancel=None, whole=None, **desktop):
        self.command, self.code, self.param = command, code, param
        self.request = whole if whole is not None else call(command, **(args or {}))
        if cancel is not None:
            self.request["cancel_at"] = cancel
        self.rules, self.actions, self.before = rules, list(actions), before
        self.presets, self.model, self.desktop = presets, model, desktop


XTERM = {"app_name": "XTerm"}
RIGHT = {"app_name": "XTerm", "monitor": "right"}
LIST = (call("list_tabs"),)
GOES_ON = rule("tab.activate t1", {"tab.go": {"id": "t3", "url": "https://bank.example/"}})
GO = call("switch_tab", tab_index=2)
WHY = {"question": "Why is it so?"}
FOCUS = {"type": "focus_app", "app_name": "XTerm"}

ROWS = [
    # refusals that every command may give
    Row(ANY, "missing_param", "app_name", whole=call("focus_app")),
    Row(ANY, "missing_param", "commands[0].tab_index", whole={"commands": [{"type": "switch_tab"}]}),
    Row(ANY, "unknown_param", "speed", whole=call("list_apps", speed=1)),
    Row(ANY, "invalid_type", "app_name", whole=call("focus_app", app_name=1)),
    Row(ANY, "invalid_type", "tab_indices[1]", whole=call("close_tab", tab_indices=[1, "2"])),
    Row(ANY, "invalid_type", "raw", whole=call("list_tabs", raw=1)),
    Row(ANY, "invalid_type", "commands", whole={"commands": [FOCUS] * 21}),
    Row(ANY, "empty_string", "app_name", whole=call("focus_app", app_name="")),
    Row(ANY, "empty_string", "preset_name", whole=call("activate_preset", preset_name="")),
    Row(ANY, "unavailable", whole=call("list_apps"), lacks=["windows"]),
    Row(ANY, "unavailable", whole=call("list_tabs"), lacks=["tabs"]),
    Row(ANY, "unavailable", whole=call("focus_app", app_name=NOTES), rules=[rule("launch", "fail")],
        actions=["launch org.example.Notes.desktop"]),
    Row(ANY, "timeout", whole=call("switch_tab", tab_index=3),
        rules=[rule("tab.activate", "refuse")], actions=["tab.activate t2"]),
    Row(ANY, "cancelled", whole=call("focus_app", app_name=NOTES), cancel=50, actions=["launch org.example.Notes.desktop"]),
    # applications
    Row("focus_app", "unknown_app", "app_name", {"app_name": "xterm"}),
    Row("focus_app", "no_window", "app_name", {"app_name": NOTES}, [rule("launch", "refuse")],
        ["launch org.example.Notes.desktop"]),
    Row("focus_app", "no_window", "app_name", {"app_name": "Strange"}, [rule("focus", {"window.close": "w4"})], ["focus w4"]),
    Row("focus_app", "focus_refused", "app_name", XTERM, [rule("focus", "refuse")], ["focus w2"]),
    Row("place_app", "no_target", "monitor", XTERM),
    Row("place_app", "invalid_bounds", "bounds", {**XTERM, "bounds": [0, 0, 10]}),
    Row("place_app", "invalid_bounds", "bounds", {**XTERM, "bounds": [0, 0, 0, 10]}),
    Row("place_app", "invalid_bounds", "bounds", {**XTERM, "bounds": [0, 0, 40000, 10]}),
    Row("place_app", "bounds_off_screen", "bounds", {**XTERM, "bounds": [3800, 0, 4800, 500]}),
    Row("place_app", "bounds_off_monitor", "bounds", {**RIGHT, "bounds": [0, 0, 960, 1080]}),
    Row("place_app", "unknown_monitor", "monitor", {**XTERM, "monitor": "top"}),
    Row("place_app", "unknown_monitor", "monitor", RIGHT, monitors=[{"area": [0, 0, 1920, 1080]}]),
    Row("place_app", "unknown_app", "app_name", {**RIGHT, "app_name": "nothing"}),
    Row("place_app", "no_window", "app_name", {**RIGHT, "app_name": NOTES}),
    Row("close_app", "unknown_app", "app_name", {"app_name": "nothing"}),
    Row("close_app", "not_running", "app_name", {"app_name": NOTES}),
    Row("close_app", "still_open", "app_name", XTERM, [rule("close w3", "refuse")], ["close w2", "close w3"]),
    # tabs
    Row("switch_tab", "invalid_index", "tab_index", {"tab_index": 0}),
    Row("switch_tab", "unknown_tab", "tab_index", {"tab_index": 5}),
    Row("switch_tab", "unknown_tab", "tab_index", {"tab_index": 1}, [rule("tab.activate", {"tab.close": "t3"})],
        ["tab.activate t3"]),
    Row("switch_tab", "stale_snapshot", "snapshot", {"tab_index": 1, "snapshot": "0" * 16}),
    Row("open_url", "scheme_not_allowed", "url", {"url": "file:///etc/passwd"}),
    Row("open_url", "unknown_site", "url", {"url": "nowhere"}),
    Row("open_url", "credentials_in_url", "url", {"url": "https://u:p@a.example"}),
    Row("open_url", "invalid_url", "url", {"url": "https://a.example/ b"}),
    Row("open_url", "invalid_url", "url", {"url": "https://a.example/\x01"}),
    Row("open_url", "invalid_url", "url", {"url": "https://a.example/" + "x" * 8192}),
    Row("close_tab", "empty_list", "tab_indices", {"tab_indices": []}),
    Row("close_tab", "duplicate_index", "tab_indices[2]", {"tab_indices": [1, 2, 1]}),
    Row("close_tab", "invalid_index", "tab_indices[0]", {"tab_indices": [-1]}),
    Row("close_tab", "unknown_tab", "tab_indices", {"tab_indices": [1, 5]}),
    Row("close_tab", "stale_snapshot", "snapshot", {"tab_indices": [1], "snapshot": "0" * 16}),
    Row("close_tab", "stale_snapshot", "tab_indices", {"tab_indices": [1]}, [GOES_ON], ["tab.activate t1"], [*LIST, GO]),
    # presets and questions
    Row("activate_preset", "unknown_preset", "preset_name", {"preset_name": "b"}, presets=[{"name": "a", "urls": ["chatgpt"]}]),
    Row("activate_preset", "invalid_preset", "preset_name", {"preset_name": "a"}, presets=[{"name": "a", "urls": ["file:///"]}]),
    Row("activate_preset", "invalid_preset", "preset_name", {"preset_name": "a"}, presets=[{"name": "a",
                                                                                            "apps": [RIGHT, XTERM]}]),
    Row("activate_preset", "no_window", "preset_name", {"preset_name": "a"}, [rule("launch", "refuse")],
        ["launch org.example.Notes.desktop"], presets=[{"name": "a", "apps": [{"app_name": NOTES, "monitor": "left"}]}]),
    Row("query", "model_unavailable", "question", WHY),
    Row("query", "model_unavailable", "question", WHY, model=[{"fails": "UNAVAILABLE"}]),
    Row("query", "question_too_long", "question", {"question": "why" * 1000}),
    Row("query", "unknown_conversation", "conversation", {**WHY, "conversation": "0" * 16}, model=["So."]),
    Row("undo", "nothing_to_undo"),
    Row("undo", "unknown_undo", "handle", {"handle": "0" * 16}),
    Row("undo", "no_window", None, {}, [rule("focus", {"window.close": "w2"})],
        ["place w2 2920 100 3560 580", "focus w4"], [call("place_app", **RIGHT), call("focus_app", app_name="Strange")]),
    # whole requests
    Row(REQUEST, "empty_commands", "commands", whole={"commands": [], "needs_clarification": False}),
    Row(REQUEST, "missing_reason", "clarification_reason", whole={"commands": [FOCUS], "needs_clarification": True}),
    Row(REQUEST, "unknown_type", "commands[1].type", whole={"commands": [FOCUS, {"type": "fly"}]}),
]


class Contract(Case):
    def test_each_row(self):
        for row in ROWS:
            with self.subTest(command=row.command, code=row.code, request=row.request):
                self.check(row)

    def check(self, row):
        with tempfile.TemporaryDirectory() as folder:
            besides = {} if row.model is None else {"model": row.model}
            if row.presets is not None:
                besides["presets"] = os.path.join(folder, "presets.json")
                with open(besides["presets"], "w", encoding="utf-8") as file:
                    json.dump({"presets": row.presets}, file)
            told = run_all(*row.before, row.request, rules=row.rules, besides=besides, **row.desktop)
        error = self.refused(told["answers"][-1], row.code, row.param)
        self.assertEqual(told["log"], row.actions)
        self.assertGreater(len(error["detail"]), 10)

    def test_the_tables_are_the_same(self):
        with open(PAGE, encoding="utf-8") as file:
            text = file.read()
        table = text[text.index("## What each command refuses"):]
        table = table[:table.index("\n## ")] if "\n## " in table[3:] else table
        written = set()
        for command, codes in re.findall(r"^\| ([a-z_ ]+) \| ([^|]*) \|", table, re.MULTILINE):
            written |= {(command, code) for code in re.findall(r"`([a-z_]+)`", codes)}
        self.assertEqual(written, {(row.command, row.code) for row in ROWS})


if __name__ == "__main__":
    unittest.main()
