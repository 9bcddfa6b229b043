"""query on the fake desktop: what code answers and what the model answers; conversations; the content of a prompt."""

import json
import os
import tempfile
import time
import unittest

from fake import Case, call, run, run_all

DAY = 86400


def tab(id, url, title=None, ago=None, window="1", **more):
    opened = {} if ago is None else {"opened": (time.time() - ago) * 1000}
    return {"id": id, "window": window, "title": title or id, "url": url, **opened, **more}


TABS = [tab("a", "https://www.reddit.com/r/c", "r/c", 3 * DAY + 60), tab("b", "https://github.com/x", "X", 90 * 60),
        tab("c", "https://old.reddit.com/", "old", 30), tab("d", "https://github.com/x", "X again", 2 * DAY, window="2"),
        tab("e", "https://notreddit.example/", "N", window="2")]


class Query(Case):
    def ask(self, question, **options):
        told = run_all(call("query", question=question), **{"tabs": TABS, **options})
        return told["answers"][0]

    def answer(self, question, **options):
        result = self.result(self.ask(question, **options))
        self.assertEqual(result["by"], "code")
        return result

    # ---- by code ----

    def test_how_many(self):
        for question, count, text in (
                ("How many tabs are open?", 5, "There are 5 tabs in 2 windows."),
                ("how many tabs do I have open right now", 5, "There are 5 tabs in 2 windows."),
                ("Number of Google Chrome tabs?", 5, "There are 5 tabs in 2 windows."),
                ("How many reddit tabs are there?", 2, "There are 2 tabs of reddit: 1 and 3."),
                ("How many tabs from github.com do I have?", 2, "There are 2 tabs of github.com: 2 and 4."),
                ("How many bbc tabs?", 1, "There is 1 tab of bbc: 1."),
                ("how many youtube tabs", 0, "There are 0 tabs of youtube."),
                ("How many old.reddit.com pages are open?", 1, "There is 1 tab of old.reddit.com: 3."),
                ("How many Chrome windows are open?", 2, "There are 2 windows of Chrome."),
                ("How many windows are open?", 4, "There are 4 windows."),
                ("How many monitors do I have?", 2, "There are 2 monitors."),
                ("What's the number of running apps?", 3, "There are 3 applications running: Google Chrome, Strange and XTerm."),
                ("how many applications are installed?", 4, "There are 4 applications installed.")):
            with self.subTest(question):
                result = self.answer(question, **({"tabs": [tab("a", "https://www.bbc.co.uk/")]} if "bbc" in question else {}))
                self.assertEqual((result["count"], result["answer"]), (count, text))

    def test_duplicates(self):
        for question in ("Do I have duplicate tabs?", "Which tabs are open twice?", "Are there any tabs with the same URL?",
                         "how many duplicates are there", "find duplicated pages"):
            with self.subTest(question):
                result = self.answer(question)
                self.assertEqual((result["duplicates"], result["count"]), ([[2, 4]], 1))
                self.assertEqual(result["answer"], 'More than one tab shows "X" (tabs 2 and 4).')
        self.assertEqual(self.answer("any duplicates?", tabs=TABS[:3])["answer"], "No page is open in more than one tab.")

    def test_oldest(self):
        result = self.answer("What are my oldest tabs right now?")
        self.assertEqual(result["tabs"], [1, 4, 2, 3])
        self.assertEqual(result["answer"], 'Loaded longest ago: "r/c" (tab 1, 3 days ago); "X again" (tab 4, 2 days ago); '
                         '"X" (tab 2, 1 hour ago); "old" (tab 3, less than a minute ago). Not known of 1 tab.')
        self.assertEqual(self.answer("which tab has been open longest?")["tabs"][0], 1)
        self.assertEqual(self.answer("show my 2 newest tabs")["tabs"], [3, 2])
        self.refused(self.ask("Which is my oldest tab?", tabs=TABS[4:]), "unavailable")

    def test_an_index_in_an_answer_means_that_tab(self):
        close = {"on": "tab.activate b", "do": {"tab.close": "a"}}
        answers, log = run(call("query", question="how many tabs?"), call("switch_tab", tab_index=2),
                           call("close_tab", tab_indices=[4]), tabs=TABS, rules=[close])
        self.assertEqual(log, ["tab.activate b", "tab.close d"])

    def test_what_the_desktop_lacks(self):
        self.refused(self.ask("How many tabs are open?", lacks=["tabs"]), "unavailable")
        self.refused(self.ask("How many windows are open?", lacks=["windows"]), "unavailable")
        self.refused(self.ask("How many apps are installed?", lacks=["apps"]), "unavailable")
        self.assertEqual(self.answer("How many monitors are there?", lacks=["tabs"])["count"], 2)

    # ---- by the model ----

    def test_what_is_not_understood_is_left_to_the_model(self):
        """An unknown word may change the meaning of the question."""
        for question in ("How many tabs did I open yesterday?", "How many tabs are not from reddit?",
                         "How many tabs are playing music?",
                         "What is my oldest file?", "Which tabs are about cats?", "How many tabs and windows are there?", "tabs",
                         "How many old tabs are there?", "Wie viele Tabs sind offen?", "How many tabs does each window have?",
                         "?",
                         "How many reddit windows?", "How many tabs are installed?", "how many", "duplicate windows",
                         "0 oldest tabs",
                         "How many tabs have I closed?", "x" * 100, "How many \u202ebats tabs are open?"):
            with self.subTest(question):
                self.refused(self.ask(question), "model_unavailable", "question")
                result = self.result(self.ask(question, besides={"model": ["So it is."]}))
                self.assertEqual((result["answer"], result["by"]), ("So it is.", "model"))

    def test_the_model_is_not_asked_what_code_knows(self):
        told = run_all(call("query", question="How many tabs are open?"), tabs=TABS, besides={"model": ["wrong"]})
        self.assertEqual(told["prompts"], [])
        self.assertEqual(self.result(told["answers"][0])["count"], 5)

    def test_refusals(self):
        for args, code, param in (({}, "missing_param", "question"), ({"question": ""}, "empty_string", "question"),
                                  ({"question": 7}, "invalid_type", "question"), ({"question": "x" * 2001}, "question_too_long",
                                                                                  "question"),
                                  ({"question": "how many tabs", "conversation": "0" * 16}, "unknown_conversation",
                                   "conversation"),
                                  ({"question": "how many tabs", "why": 1}, "unknown_param", "why")):
            with self.subTest(args):
                self.refused(run(call("query", **args))[0][0], code, param)

    def test_a_model_that_fails(self):
        for fails, code in (("UNAVAILABLE", "model_unavailable"), ("CONTEXT_OVERFLOW", "model_unavailable"),
                            ("INTERNAL", "model_unavailable"), ("TIMEOUT", "timeout"), ("CANCELLED", "cancelled")):
            with self.subTest(fails):
                self.refused(self.ask("Which tabs are about cats?", besides={"model": [{"fails": fails}]}), code)
        for silent in ("", " \n\x07"):
            self.refused(self.ask("Which tabs are about cats?", besides={"model": [silent]}), "model_unavailable")

    def test_an_answer_has_no_control_characters(self):
        result = self.result(self.ask("Which tabs are about cats?", besides={"model": ["\x1b[2JTab 1\n\u202eand 2\x00."]}))
        self.assertEqual(result["answer"], "[2JTab 1\nand 2 .")

    # ---- prompts ----

    def prompt(self, *requests, **options):
        return run_all(*requests, **options)["prompts"]

    def data(self, message):
        self.assertTrue(message["text"].startswith("Data:\n"))
        return json.loads(message["text"][len("Data:\n"):message["text"].index("\n\nQuestion: ")])

    def test_what_a_prompt_has(self):
        tabs = [tab("a", "https://u:secret1@a.example/p?token=secret2#secret3", "A \x1b[31m\u202e title", 60, active=True),
                tab("b", "data:text/html,secret4", "B"), tab("c", "blob:https://a.example/secret5", "C"),
                tab("d", "https://b.example?secret6", "t" * 300), tab("e", "about:secret7", "")]
        [[system, message]] = self.prompt(call("query", question="Which is it?"), tabs=tabs, besides={"model": ["None."]})
        self.assertEqual((system["role"], message["role"]), ("system", "user"))
        data = self.data(message)
        self.assertEqual([(tab["index"], tab["title"], tab["address"], tab.get("in_front")) for tab in data["tabs"]],
                         [(1, "A [31m title", "https://a.example/p", True), (2, "B", "data:", None), (3, "C", "blob:", None),
                          (4, "t" * 80, "https://b.example", None), (5, "e", "about:", None)])
        self.assertEqual(data["running_applications"], ["Google Chrome", "Strange", "XTerm"])
        self.assertIn("XTerm", data["installed_applications"])
        self.assertNotIn("secret", json.dumps(message))
        self.assertTrue(message["text"].endswith("\n\nQuestion: Which is it?"))

    def test_more_tabs_than_fit_are_counted(self):
        tabs = [tab(f"t{i}", f"https://{i}.example/") for i in range(1000)]
        apps = [{"id": f"a{i}.desktop", "name": f"Application {i}", "class": "", "program": ""} for i in range(500)]
        [[_, message]] = self.prompt(call("query", question="Which is it?"), tabs=tabs, apps=apps, besides={"model": ["None."]})
        data = self.data(message)
        self.assertEqual([tab["index"] for tab in data["tabs"]], list(range(1, len(data["tabs"]) + 1)))
        self.assertEqual(len(data["tabs"]) + data["more_tabs"], 1000)
        self.assertGreater(len(data["tabs"]), 50)
        self.assertEqual(len(data["installed_applications"]) + data["more_installed_applications"], 500)

    def test_a_prompt_fits_a_small_model(self):
        """The prompt fits whatever is open, and whatever was said. The smallest models have 8,192 tokens of a few bytes each."""
        long = "\u4e2d\"" * 500
        tabs = [tab(f"t{i}", f"https://{i}.example/{'y' * 3000}?{'z' * 3000}", long) for i in range(200)]
        apps = [{"id": f"a{i}.desktop", "name": f"{i} {long}", "class": "", "program": ""} for i in range(200)]
        windows = [{"id": f"w{i}", "class": f"{i}{long}", "title": "x", "bounds": [0, 0, 10, 10]} for i in range(200)]
        asks = [{"ask": {"question": f"Why {i}? " + "q" * 1900}, "as": 0} for i in range(9)]
        prompts = self.prompt(call("query", question="Why?"), *asks, tabs=tabs, apps=apps, windows=windows,
                              besides={"model": ["So. " + "a" * 3000] * 10})
        for messages in prompts:
            self.assertLess(sum(len(message["text"].encode()) for message in messages), 16000)
            self.assertTrue(self.data(messages[-1])["tabs"])
        self.assertIn("Why 7?", prompts[-1][1]["text"])  # the prompt contains the last question

    def test_tabs_with_the_words_of_the_question_come_first(self):
        tabs = [tab(f"t{i}", f"https://{i}.example/", "N" * 80) for i in range(300)]
        tabs[250] = tab("cats", "https://c.example/", "A CAT and its catS")
        tabs[260] = tab("both", "https://d.example/siamese", "Cats for you")
        [[_, message]] = self.prompt(call("query", question="Which tabs are about Siamese cats?"), tabs=tabs,
                                     besides={"model": ["None."]})
        self.assertEqual([tab["index"] for tab in self.data(message)["tabs"]][:3], [261, 251, 1])

    def test_git_folders(self):
        with tempfile.TemporaryDirectory() as home:
            for path in ("one/.git", "work/two/.git", "work/a/three/.git", "work/a/b/four/.git", ".hidden/five/.git",
                         "one/six/.git",
                         "node_modules/seven/.git", "plain"):
                os.makedirs(os.path.join(home, path))
            open(os.path.join(home, "file"), "w").close()
            os.symlink(home, os.path.join(home, "plain", "circle"))
            os.utime(os.path.join(home, "work/two/.git"), (2e9, 2e9))
            [[_, message]] = self.prompt(call("query", question="Which is it?"), besides={"model": ["None."], "home": home})
            folders = [os.path.relpath(path, home) for path in self.data(message)["git_folders"]]
        self.assertEqual(folders[0], "work/two")
        self.assertTrue({"one", "work/a/three"} <= set(folders))
        self.assertFalse([path for path in folders if any(name in path for name in ("four", "five", "six", "seven"))])

    # ---- conversations ----

    def test_follow_ups(self):
        told = run_all(call("query", question="How many tabs are open?"),
                       {"ask": {"question": "And which of them is best?"}, "as": 0},
                       {"ask": {"question": "Why is it?"}, "as": 1}, call("query", question="Why is it?"), tabs=TABS,
                       besides={"model": ["The first.", "It is old.", "Who?"]})
        results = [self.result(answer) for answer in told["answers"]]
        self.assertEqual(len({result["conversation"] for result in results[:3]}), 1)
        self.assertNotEqual(results[3]["conversation"], results[0]["conversation"])
        said = [[(message["role"], message["text"]) for message in prompt[1:-1]] for prompt in told["prompts"]]
        first = [("user", "How many tabs are open?"), ("assistant", "There are 5 tabs in 2 windows.")]
        second = [("user", "And which of them is best?"), ("assistant", "The first.")]
        self.assertEqual(said, [first, first + second, []])

    def test_the_last_8_are_kept(self):
        asks = [{"ask": {"question": f"Why {i}?"}, "as": 0} for i in range(1, 12)]
        told = run_all(call("query", question="Why 0?"), *asks, besides={"model": [f"So {i}." for i in range(12)]})
        self.assertEqual([message["text"] for message in told["prompts"][-1][1:-1]],
                         [text for i in range(3, 11) for text in (f"Why {i}?", f"So {i}.")])

    def test_the_conversation_used_longest_ago_is_forgotten(self):
        new = [call("query", question=f"Why {i}?") for i in range(15)]
        told = run_all(call("query", question="Why a?"), call("query", question="Why b?"),
                       {"ask": {"question": "Why c?"}, "as": 0},
                       *new, {"ask": {"question": "Why d?"}, "as": 0}, {"ask": {"question": "Why e?"}, "as": 1},
                       besides={"model": ["So."] * 30})
        self.result(told["answers"][-2])
        self.refused(told["answers"][-1], "unknown_conversation")


if __name__ == "__main__":
    unittest.main()
