#!/usr/bin/env python3
"""Runs in the real gateway with the fake engine: methods, events and their order, aborts at each stage, approvals and how they
are settled, the queue, repeated requests, joining in the middle of a run, restarts. docs/requirements-gateway.md has the
table of requirements that these tests check."""

import contextlib
import json
import os
import random
import shutil
import signal
import tempfile
import threading
import time
import unittest

from chat import WAIT, Client, Closed, bash, children, gateway, lives, run_bash, script, wait_until

HANG = script("begun", {"hang": "soft"})


class RunTest(unittest.TestCase):
    settings = {}

    def setUp(self):
        self.home = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.gateway = gateway(home=self.home, settings=self.settings)
        self.addCleanup(self.end)
        self.clients = []
        self.client = self.new_client()
        self.key = self.client.session()

    def new_client(self):
        client = Client(self.gateway)
        self.clients.append(client)
        return client

    def end(self):
        for client in self.clients:  # else the gateway would wait for the other side of a socket
            client.close()
        self.gateway.__exit__()

    def restart(self, kill=False, cwd=None):
        self.client.close()
        if kill:
            self.gateway.process.kill()
            self.gateway.process.wait(WAIT)
        self.gateway.stop()
        self.gateway = gateway(home=self.home, cwd=cwd)
        self.client = self.new_client()

    def names(self, events):
        """Names of a run's events; consecutive deltas count as one."""
        names = []
        for name, _ in events:
            if name != "chat.delta" or names[-1:] != ["chat.delta"]:
                names.append(name)
        return names

    def messages(self):
        return self.client.call("sessions.get", sessionKey=self.key)["messages"]


class Chat(RunTest):
    def test_events_and_their_order(self):
        events = self.client.end(self.client.say(self.key, "good morning to you"))
        self.assertEqual(self.names(events), ["chat.message", "chat.start", "chat.delta", "chat.final"])
        self.assertEqual("".join(data["text"] for name, data in events if name == "chat.delta"), "good morning to you")
        self.assertEqual(events[-1][1]["usage"]["outputTokens"], 4)
        self.assertEqual([data["seq"] for _, data in events], sorted(data["seq"] for _, data in events))
        self.assertEqual({data["sessionKey"] for _, data in events}, {self.key})

    def test_what_is_kept(self):
        self.client.ask(self.key, "first words\nand more")
        session = self.client.call("sessions.get", sessionKey=self.key)
        self.assertEqual([(m["role"], m["content"]) for m in session["messages"]],
                         [("user", "first words\nand more"), ("assistant", "first words\nand more")])
        self.assertEqual(session["session"]["title"], "first words")
        self.assertEqual(session["session"]["usage"]["outputTokens"], 4)
        self.assertFalse(session["session"]["running"])
        history = self.client.call("chat.history", sessionKey=self.key, limit=1)["messages"]
        self.assertEqual([m["role"] for m in history], ["assistant"])
        self.restart()
        again = self.client.call("sessions.get", sessionKey=self.key)
        self.assertEqual([m["content"] for m in again["messages"]], [m["content"] for m in session["messages"]])
        self.assertEqual(again["session"]["usage"], session["session"]["usage"])

    def test_the_model_reads_what_was_said(self):
        self.client.ask(self.key, "one two three")
        usage = self.client.end(self.client.say(self.key, "four"))[-1][1]["usage"]
        before = self.client.end(self.client.say(self.client.session(), "four"))[-1][1]["usage"]
        self.assertEqual(usage["inputTokens"] - before["inputTokens"], 6)  # a question and its answer

    def test_a_session_that_is_longer_than_a_frame(self):
        """Nine messages of nearly 1 MiB: the newest ones are returned, and `more` says that there are others."""
        for _ in range(9):
            self.client.end(self.client.say(self.key, "word " * 200000))
        self.assertEqual(self.client.fails("chat.history", sessionKey=self.key)["code"], -32603)
        last = self.client.call("chat.history", sessionKey=self.key, limit=4)["messages"]
        self.assertEqual(len(last), 4)
        for method in ("sessions.get", "sessions.subscribe"):
            answer = self.client.call(method, sessionKey=self.key)
            self.assertTrue(answer["more"])
            self.assertEqual(answer["messages"][-4:], last)
            self.assertLess(len(answer["messages"]), 18)

    def test_more_sessions_than_a_frame_has(self):
        """Of 9,000 sessions with long titles, the latest ones are listed."""
        self.client.close()
        self.gateway.stop()
        for number in range(9000):
            time_ms = 1764061200000 + number
            records = ({"seq": 1, "time": time_ms, "type": "session", "agentId": "assistant"},
                       {"seq": 2, "time": time_ms, "type": "title", "title": 266 * "\u20ac"})
            path = os.path.join(self.home, "sessions", f"{number:032x}.jsonl")
            with open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        self.restart()
        listed = [session["sessionKey"] for session in self.client.call("sessions.list")["sessions"]]
        self.assertIn(f"{8999:032x}", listed)
        self.assertNotIn(f"{0:032x}", listed)

    def test_a_message_that_is_longer_than_a_turn(self):
        """Each byte of the message takes six bytes in JSON. The message is stored, and the model never gets an incomplete
        conversation."""
        events = self.client.end(self.client.say(self.key, 1048576 * "\x01"))
        self.assertIn("too long", events[-1][1]["message"])

    def test_unknown_things(self):
        for method, params, code in (("chat.send", {"sessionKey": "0" * 32, "message": "x"}, -32004),
                                     ("sessions.get", {"sessionKey": "0" * 32}, -32004),
                                     ("chat.history", {"sessionKey": "0" * 32}, -32004),
                                     ("sessions.subscribe", {"sessionKey": "0" * 32}, -32004),
                                     ("sessions.rename", {"sessionKey": "0" * 32, "title": "x"}, -32004),
                                     ("sessions.delete", {"sessionKey": "0" * 32}, -32004),
                                     ("blobs.get", {"blobId": "../../token"}, -32004),
                                     ("chat.abort", {"runId": "nothing"}, -32004),
                                     ("sessions.create", {"agentId": "nobody"}, -32004),
                                     ("sessions.rename", {"sessionKey": self.key, "title": "x" * 201}, -32602),
                                     ("chat.send", {"sessionKey": self.key, "message": "x", "requestKey": "no"}, -32602)):
            with self.subTest(method):
                self.assertEqual(self.client.fails(method, **params)["code"], code)
        self.assertFalse(self.client.call("exec.approve", approvalId="nothing")["ok"])

    def test_a_fault_of_the_model(self):
        events = self.client.end(self.client.say(self.key, script("some text", {"error": "it broke"})))
        self.assertEqual(events[-1][0], "chat.error")
        self.assertIn("it broke", events[-1][1]["message"])
        answer = self.messages()[1]
        self.assertEqual(answer["content"], "some text")
        self.assertIn("it broke", answer["error"])
        self.assertEqual(self.client.ask(self.key, "and now"), "and now")

    def test_the_helper_dies(self):
        run = self.client.say(self.key, script("some", " text", {"hang": "soft"}))
        self.client.event("chat.delta", runId=run)
        for pid in children(self.gateway.process.pid):
            with contextlib.suppress(ProcessLookupError):  # it may have ended together with the process that was killed before it
                os.kill(pid, signal.SIGKILL)
        self.assertEqual(self.client.end(run)[-1][0], "chat.error")
        self.assertEqual(self.client.ask(self.key, "again"), "again")

    def test_titles_search_and_deletion(self):
        self.client.ask(self.key, "where are the brown foxes")
        other = self.client.session()
        self.client.ask(other, "the weather of tomorrow")
        self.assertEqual(self.client.call("sessions.rename", sessionKey=self.key, title="Animals")["session"]["title"], "Animals")
        self.assertEqual(self.client.event("sessions.changed", sessionKey=self.key, session={
            **self.client.call("sessions.get", sessionKey=self.key)["session"]})["session"]["title"], "Animals")
        for query, found in (("FOXES brown", [self.key]), ("animals", [self.key]), ("the", [other, self.key]), ("birds", [])):
            results = self.client.call("sessions.search", query=query)["results"]
            self.assertEqual([r["sessionKey"] for r in results], found, query)
        self.assertEqual(len(self.client.call("sessions.search", query="the", limit=1)["results"]), 1)
        self.assertTrue(self.client.call("sessions.delete", sessionKey=self.key)["ok"])
        self.assertTrue(self.client.event("sessions.changed", sessionKey=self.key, deleted=True))
        self.assertEqual([s["sessionKey"] for s in self.client.call("sessions.list")["sessions"]], [other])
        self.assertEqual([n for n in os.listdir(os.path.join(self.home, "sessions")) if self.key in n], [])

    def test_search_reads_as_a_person_does(self):
        """Without regard to case, width, composition and accents."""
        text = "x" * 300 + " Я живу в МОСКВЕ, Cafe\u0301 Straße, 東京の天気, ｶﾒﾗ, \u1112\u1161\u11ab\u1100\u1173\u11af"
        self.client.ask(self.key, text)
        for query, found in (("москве", True), ("CAFÉ", True), ("cafe strasse", True), ("天気", True), ("カメラ", True),
                             ("ＴＯＫＹＯ", False), ("한글", True), ("москвич", False)):
            results = self.client.call("sessions.search", query=query)["results"]
            self.assertEqual(len(results), found, query)
        self.assertIn("МОСКВЕ", self.client.call("sessions.search", query="москве")["results"][0]["snippet"])

    def test_deletion_ends_what_goes_on(self):
        first = self.client.say(self.key, HANG)
        second = self.client.say(self.key, "waits")
        self.client.event("chat.delta", runId=first)
        self.assertTrue(self.client.call("sessions.delete", sessionKey=self.key)["ok"])
        for run in (first, second):
            self.assertTrue(self.client.event("chat.error", runId=run)["aborted"])

    def test_a_broken_agent(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        with open(os.path.join(folder, "AGENTS.md"), "w") as file:
            file.write("---\nmodel: openai/gpt-5.4-mini\n---\nhello\n")
        with open(os.path.join(self.home, "config.json"), "w") as file:
            json.dump({"agents": {"workspacePath": folder}, "memory": {"enabled": False}}, file)
        self.restart()
        events = self.client.end(self.client.say(self.key, "x"))
        self.assertEqual(events[-1][0], "chat.error")
        self.assertIn("OPENAI_API_KEY", events[-1][1]["message"])


class Aborts(RunTest):
    def sleeps(self):
        """Whether a command of the gateway is sleeping."""
        for pid in children(self.gateway.process.pid):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline") as file:
                if file.read().startswith("sleep"):
                    return True
        return False

    def abort(self, run):
        self.assertTrue(self.client.call("chat.abort", runId=run)["ok"])
        events = self.client.end(run)
        self.assertEqual(events[-1][0], "chat.error")
        self.assertTrue(events[-1][1]["aborted"])
        self.assertEqual(self.client.fails("chat.abort", runId=run)["code"], -32004)
        self.assertEqual(self.client.ask(self.key, "next"), "next")
        return events

    def test_amid_text(self):
        run = self.client.say(self.key, HANG)
        self.client.event("chat.delta", runId=run)
        self.abort(run)
        message = self.messages()[1]
        self.assertEqual((message["content"], message["aborted"]), ("begun", True))

    def test_before_text(self):
        self.abort(self.client.say(self.key, script({"hang": "soft"})))

    def test_at_once(self):
        for _ in range(20):
            call = self.client.send("chat.send", sessionKey=self.key, message=HANG)
            run = self.client.event("chat.message")["runId"]
            self.assertEqual(self.client.answer(call)["result"]["runId"], run)
            self.abort(run)

    def test_while_the_user_is_asked(self):
        run = self.client.say(self.key, run_bash("x"))
        approval = self.client.event("exec.approval_request")["approvalId"]
        events = self.abort(run)
        self.assertEqual(self.client.event("exec.approval_resolved")["outcome"], "withdrawn")
        self.assertEqual([data["state"] for name, data in events if name == "tool.result"], ["aborted"])
        self.assertFalse(self.client.call("exec.approve", approvalId=approval)["ok"])

    def test_while_a_tool_runs(self):
        run = self.client.say(self.key, script(bash("sleep 1000")))
        self.client.call("exec.approve", approvalId=self.client.event("exec.approval_request")["approvalId"])
        wait_until(self.sleeps)
        events = self.abort(run)
        self.assertEqual([data["state"] for name, data in events if name == "tool.result"], ["aborted"])
        self.assertFalse(self.sleeps())

    def test_in_the_queue(self):
        first = self.client.say(self.key, HANG)
        second = self.client.say(self.key, "waits")
        third = self.client.say(self.key, "waits too")
        self.assertTrue(self.client.call("chat.abort", runId=second)["ok"])
        self.assertEqual(self.names(self.client.end(second)), ["chat.message", "chat.error"])
        self.client.call("chat.abort", runId=first)
        self.assertEqual(self.client.end(third)[-1][0], "chat.final")


class Tools(RunTest):
    def approve(self, **more):
        request = self.client.event("exec.approval_request")
        self.assertTrue(self.client.call("exec.approve", approvalId=request["approvalId"], **more)["ok"])
        return request

    def test_a_command_that_is_approved(self):
        run = self.client.say(self.key, script("Look: ", bash("echo out; echo err >&2; exit 3")))
        request = self.approve()
        self.assertEqual(request["details"]["command"], "echo out; echo err >&2; exit 3")
        events = self.client.end(run)
        self.assertEqual(self.names(events), ["chat.message", "chat.start", "chat.delta", "tool.call", "tool.result",
                                              "chat.delta", "chat.final"])
        result = dict(events)["tool.result"]
        self.assertEqual((result["state"], result["exitCode"]), ("failed", 3))
        self.assertIn("out", result["output"])
        answer = self.messages()[1]
        self.assertEqual([part["type"] for part in answer["parts"]], ["text", "tool", "text"])
        self.assertEqual(answer["parts"][1]["output"], result["output"])

    def test_a_command_that_is_denied(self):
        run = self.client.say(self.key, script(bash("touch /tmp/never")))
        request = self.client.event("exec.approval_request")
        self.assertTrue(self.client.call("exec.deny", approvalId=request["approvalId"], reason="not today")["ok"])
        events = self.client.end(run)
        self.assertEqual(dict(events)["tool.result"]["output"], "Denied: not today")
        self.assertEqual(dict(events)["tool.result"]["state"], "denied")
        self.assertEqual(self.client.event("exec.approval_resolved")["outcome"], "denied")
        self.assertFalse(self.client.call("exec.approve", approvalId=request["approvalId"])["ok"])
        self.assertFalse(os.path.exists("/tmp/never"))

    def test_wrong_calls_are_told_to_the_model(self):
        for step in (bash(7), {"tool_call": {"name": "rm", "arguments": "{}"}},
                     {"tool_call": {"name": "bash", "arguments": "{}"}}):
            events = self.client.end(self.client.say(self.key, script(step)))
            self.assertIn(events[-1][0], ("chat.final", "chat.error"))
            results = [data for name, data in events if name == "tool.result"]
            for result in results:
                self.assertEqual(result["state"], "failed")
                self.assertTrue(result["output"].startswith("Error: "), result)
                self.assertLessEqual(result["output"].count("command"), 1, result)
            self.assertEqual([e for e in self.client.events if e["event"] == "exec.approval_request"], [])

    def test_a_rule_is_for_equal_bytes(self):
        def say(command):
            run = self.client.say(self.key, script(bash(command)))
            self.client.event("tool.call", runId=run)
            return run
        run = say("echo a")
        self.approve(remember=True)
        self.client.end(run)
        self.assertEqual(self.client.end(say("echo a"))[-1][0], "chat.final")
        for other in ("echo a ", "echo  a", "echo a; echo b", "echo b"):
            run = say(other)
            self.client.event("exec.approval_request")
            self.client.call("chat.abort", runId=run)
            self.client.end(run)
        self.restart()
        self.assertEqual(self.client.end(say("echo a"))[-1][0], "chat.final")

    def test_a_rule_is_for_the_folder_and_not_for_its_name(self):
        """The folder is moved away, and its name becomes a link to another folder."""
        with tempfile.TemporaryDirectory() as top:
            work, other = os.path.join(top, "work"), os.path.join(top, "other")
            os.mkdir(work)
            os.mkdir(other)
            self.restart(cwd=work)
            run = self.client.say(self.key, script(bash("touch here")))
            self.assertEqual(self.approve(remember=True)["details"]["workingDir"], work)
            self.client.end(run)
            os.rename(work, os.path.join(top, "moved"))
            os.symlink(other, work)
            run = self.client.say(self.key, script(bash("touch here")))
            self.assertTrue(self.client.event("tool.call", runId=run)["requiresApproval"])
            self.assertEqual(self.client.event("exec.approval_request")["details"]["workingDir"], other)
            self.client.call("chat.abort", runId=run)
            self.client.end(run)
            self.assertEqual(os.listdir(other), [])
            os.remove(work)
            os.rename(os.path.join(top, "moved"), work)
            self.assertEqual(self.client.end(self.client.say(self.key, script(bash("touch here"))))[-1][0], "chat.final")
            self.restart()

    def test_a_new_token_is_taken_out(self):
        home = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        path = os.path.join(home, "token")
        with gateway(home=home, token=None) as other:
            with open(path, encoding="utf-8") as file:
                client = Client(other, file.read().strip())
            other.run("--new-token")
            self.assertRaises(Closed, client.read)
            with open(path, encoding="utf-8") as file:
                client = Client(other, file.read().strip())
            run = client.say(client.session(), script(bash(f"cat {path}")))
            client.call("exec.approve", approvalId=client.event("exec.approval_request")["approvalId"])
            self.assertEqual(dict(client.end(run))["tool.result"]["output"], "[redacted]\n")
            client.close()

    def test_secrets_are_taken_out(self):
        run = self.client.say(self.key, script(bash("echo AWS_SECRET_ACCESS_KEY=abcdefghij0123456789abcdefghij0123456789; "
                                                    "echo a-token-of-the-tests-0123456789")))
        self.approve()
        output = dict(self.client.end(run))["tool.result"]["output"]
        self.assertNotIn("abcdefghij0123456789", output)
        self.assertNotIn("a-token-of-the-tests", output)
        for folder, _, names in os.walk(self.home):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    text = file.read()
                if name.endswith(".jsonl"):
                    self.assertNotIn(b"a-token-of-the-tests-0123456789\\n", text)

    def test_an_answer_from_before_the_restart(self):
        """An approval ends with the gateway, also by a kill: a later answer settles nothing, and nothing runs."""
        for kill in (False, True):
            path = os.path.join(self.home, "ran")
            self.client.say(self.key, script(bash(f"touch {path}")))
            approval = self.client.event("exec.approval_request")["approvalId"]
            self.restart(kill)
            for method in ("exec.approve", "exec.deny"):
                self.assertFalse(self.client.call(method, approvalId=approval)["ok"])
            self.assertEqual(self.client.ask(self.key, "next"), "next")
            self.assertFalse(os.path.exists(path))
            self.assertEqual(self.messages()[-3]["parts"][-1]["state"], "aborted")

    def test_the_audit(self):
        run = self.client.say(self.key, script(bash("true")))
        self.approve()
        self.client.end(run)
        with open(os.path.join(self.home, "audit.jsonl")) as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual([line["event"] for line in lines], ["auth", "tool_before", "tool_after"])
        self.assertEqual((lines[1]["approval"], lines[2]["outcome"], lines[2]["exitCode"]), ("user", "done", 0))

    def test_who_settles_first(self):
        """Approve against deny, over four sockets: one of them gets ok, and its answer counts."""
        others = [self.new_client() for _ in range(4)]
        for _ in range(int(os.environ.get("FM_RACES", "25"))):
            run = self.client.say(self.key, script(bash("echo yes")))
            approval = self.client.event("exec.approval_request")["approvalId"]
            told = []

            def answer(client, method):
                told.append((method, client.call(method, approvalId=approval)["ok"]))
            methods = ["exec.approve", "exec.deny"] * 2
            random.shuffle(methods)
            threads = [threading.Thread(target=answer, args=pair) for pair in zip(others, methods)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(WAIT)
            winners = [method for method, ok in told if ok]
            self.assertEqual((len(told), len(winners)), (4, 1), told)
            state = dict(self.client.end(run))["tool.result"]["state"]
            self.assertEqual(state, "done" if winners == ["exec.approve"] else "denied")


class Expiry(RunTest):
    settings = {"tools.approvalTimeout": 1000}

    def test_nobody_answers(self):
        run = self.client.say(self.key, script(bash("true")))
        request = self.client.event("exec.approval_request")
        events = self.client.end(run)
        self.assertEqual(dict(events)["tool.result"]["state"], "expired")
        self.assertEqual(self.client.event("exec.approval_resolved")["outcome"], "expired")
        self.assertFalse(self.client.call("exec.approve", approvalId=request["approvalId"])["ok"])


class Queue(RunTest):
    def test_twenty_wait(self):
        first = self.client.say(self.key, HANG)
        runs = [self.client.say(self.key, f"number {i}") for i in range(20)]
        self.assertEqual(self.client.fails("chat.send", sessionKey=self.key, message="one more")["code"], -32029)
        self.client.call("chat.abort", runId=first)
        for i, run in enumerate(runs):
            events = self.client.end(run)
            self.assertEqual("".join(d["text"] for n, d in events if n == "chat.delta"), f"number {i}")
        self.assertEqual([m["content"] for m in self.messages() if m["role"] == "user"][1:], [f"number {i}" for i in range(20)])

    def test_two_sessions_go_on_at_once(self):
        other = self.client.session()
        run = self.client.say(self.key, HANG)
        self.client.event("chat.delta", runId=run)
        self.assertEqual(self.client.ask(other, "meanwhile"), "meanwhile")
        self.client.call("chat.abort", runId=run)


class Requests(RunTest):
    def test_a_request_that_comes_again(self):
        request = "ab" * 16
        run = self.client.say(self.key, "once", requestKey=request)
        self.assertEqual(self.client.say(self.key, "once", requestKey=request), run)
        self.client.end(run)
        self.assertEqual(self.client.say(self.key, "once", requestKey=request), run)
        error = self.client.fails("chat.send", sessionKey=self.key, message="other", requestKey=request)
        self.assertEqual(error["code"], -32602)
        for kill in (False, True):
            self.restart(kill)
            self.assertEqual(self.client.say(self.key, "once", requestKey=request), run)
        self.assertEqual(len(self.messages()), 2)

    def test_the_same_request_at_once(self):
        calls = [self.client.send("chat.send", sessionKey=self.key, message="x", requestKey="cd" * 16) for _ in range(4)]
        runs = {self.client.answer(call)["result"]["runId"] for call in calls}
        self.assertEqual(len(runs), 1)
        self.client.end(runs.pop())
        self.assertEqual(len(self.messages()), 2)


class Joining(RunTest):
    def test_amid_an_answer(self):
        run = self.client.say(self.key, script("some", " text", bash("true")))
        self.client.event("exec.approval_request")
        waits = self.client.say(self.key, "waits")
        other = self.new_client()
        snapshot = other.call("sessions.subscribe", sessionKey=self.key)
        self.assertEqual([(r["runId"], r["state"]) for r in snapshot["runs"]], [(run, "running"), (waits, "queued")])
        text, tool = snapshot["runs"][0]["parts"]
        self.assertEqual((text["text"], tool["state"], tool["toolName"]), ("some text", "waiting", "bash"))
        self.assertEqual(len(snapshot["approvals"]), 1)
        self.assertEqual(other.call("sessions.list")["approvals"], snapshot["approvals"])
        self.assertTrue(other.call("exec.approve", approvalId=snapshot["approvals"][0]["approvalId"])["ok"])
        later = [name for name, data in self.client.end(run) if data["seq"] > snapshot["seq"]]
        self.assertEqual(later[0], "tool.result")

    def test_nothing_is_missing_and_nothing_doubled(self):
        """A client that is disconnected at random moments ends with the same state as one that was always connected."""
        for seed in range(10):
            chance = random.Random(seed)
            key = self.client.session()
            seen = set()
            after = None
            for i in range(5):
                run = self.client.say(key, f"message {i} of {seed}")
                if chance.random() < 0.5:
                    self.client.end(run)
                snapshot = self.client.call("sessions.subscribe", sessionKey=key, **({"afterSeq": after} if after else {}))
                new = [m["runId"] for m in snapshot["messages"] if m["role"] == "user"]
                self.assertEqual(seen & set(new), set())
                seen |= set(new)
                after = snapshot["seq"]
            wait_until(lambda: not self.client.call("sessions.get", sessionKey=key)["session"]["running"])
            seen |= {m["runId"] for m in self.client.call("sessions.subscribe", sessionKey=key, afterSeq=after)["messages"]}
            self.assertEqual(seen, {m["runId"] for m in self.client.call("sessions.get", sessionKey=key)["messages"]})

    def test_across_a_restart(self):
        self.client.ask(self.key, "before")
        after = self.client.call("sessions.subscribe", sessionKey=self.key)["seq"]
        run = self.client.say(self.key, HANG)
        self.client.event("chat.delta", runId=run)
        self.restart(kill=True)
        snapshot = self.client.call("sessions.subscribe", sessionKey=self.key, afterSeq=after)
        self.assertEqual([(m["role"], m["runId"]) for m in snapshot["messages"]], [("user", run), ("assistant", run)])
        self.assertIn("error", snapshot["messages"][1])
        self.assertEqual(snapshot["runs"], [])
        self.assertGreater(snapshot["seq"], after)
        again = self.client.call("sessions.subscribe", sessionKey=self.key, afterSeq=snapshot["seq"])
        self.assertEqual(again["messages"], [])


class Ends(RunTest):
    def test_in_order(self):
        """SIGTERM during an answer and a tool: both get an end in the transcript, and no process is left. Ctrl-C under a script
        sends two signals."""
        run = self.client.say(self.key, script(bash("sleep 1000")))
        self.client.call("exec.approve", approvalId=self.client.event("exec.approval_request")["approvalId"])
        other = self.client.session()
        self.client.event("chat.delta", runId=self.client.say(other, HANG))
        pids = children(self.gateway.process.pid)
        self.gateway.process.send_signal(signal.SIGINT)
        self.assertRaises(Closed, lambda: [self.client.read() for _ in range(1000)])  # the gateway is ending
        self.gateway.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.gateway.process.wait(WAIT), 0)
        wait_until(lambda: not any(map(lives, pids)))
        self.restart()
        messages = self.messages()
        self.assertEqual((messages[1]["error"], messages[1]["runId"]), ("the gateway was stopped", run))
        self.assertNotIn("aborted", messages[1])

    @unittest.skipIf(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, "under nohup the gateway outlives its terminal")
    def test_its_terminal_is_closed(self):
        self.client.event("chat.delta", runId=self.client.say(self.key, HANG))
        self.gateway.process.send_signal(signal.SIGHUP)
        self.assertEqual(self.gateway.process.wait(WAIT), 0)
        self.restart()
        self.assertEqual(self.messages()[1]["content"], "begun")

    def test_a_tool_is_never_run_again(self):
        marker = os.path.join(self.home, "marker")
        self.client.say(self.key, script(bash(f"echo x >> {marker}; sleep 1000")))
        self.client.call("exec.approve", approvalId=self.client.event("exec.approval_request")["approvalId"])
        wait_until(lambda: os.path.exists(marker) and os.path.getsize(marker))  # the shell makes the file before it writes
        pids = children(self.gateway.process.pid)
        self.restart(kill=True)
        wait_until(lambda: not any(map(lives, pids)))
        part = self.messages()[1]["parts"][-1]
        self.assertEqual(part["state"], "unknown")
        with open(marker) as file:
            self.assertEqual(file.read(), "x\n")

    def test_kills_amid_writes(self):
        """kill -9 at random moments: acknowledged data is not lost, no tool runs twice, no child process is left."""
        chance = random.Random(os.environ.get("FM_SEED", "1"))
        acknowledged = []
        marker = os.path.join(self.home, "ran")
        for i in range(int(os.environ.get("FM_KILLS", "6"))):
            command = f"echo {i} >> {marker}"
            calls = [self.client.send("chat.send", sessionKey=self.key, message=f"kill {i} {n}") for n in range(3)]
            calls.append(self.client.send("chat.send", sessionKey=self.key, message=script(bash(command))))
            end = time.monotonic() + chance.random() * 0.2
            approvals = 0
            self.client.socket.sock.settimeout(0.005)
            while time.monotonic() < end:
                try:
                    self.client.read()
                except TimeoutError:
                    pass
                requests = [e["data"] for e in self.client.events if e["event"] == "exec.approval_request"]
                for request in requests[approvals:]:
                    self.client.send("exec.approve", approvalId=request["approvalId"])
                approvals = len(requests)
            acknowledged += [a["result"]["runId"] for call, a in self.client.answers.items()
                             if call in calls and "result" in a]
            pids = children(self.gateway.process.pid)
            self.restart(kill=True)
            gone = time.monotonic() + 2 + WAIT / 10
            while any(map(lives, pids)):
                self.assertLess(time.monotonic(), gone, "a child is left")
                time.sleep(0.01)
        kept = {m["runId"] for m in self.messages() if m["role"] == "user"}
        self.assertEqual([run for run in acknowledged if run not in kept], [])
        if os.path.exists(marker):
            with open(marker) as file:
                lines = file.read().split()
            self.assertEqual(len(lines), len(set(lines)), "a tool ran twice")
        self.assertFalse(self.client.call("sessions.get", sessionKey=self.key)["session"]["running"])


if __name__ == "__main__":
    unittest.main()
