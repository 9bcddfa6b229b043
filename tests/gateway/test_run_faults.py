#!/usr/bin/env python3
"""Faults during runs of the real gateway: a disk that fails at each record, answers that race with the expiry, a model that
never stops calling tools, a memory that is late, a page that loses its connection or the gateway at any moment.

FM_RACES: how many approvals expire while four sockets answer them. FM_ROUNDS: how many times the page is interrupted."""

import contextlib
import json
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest

from chat import WAIT, Client, bash, children, gateway, script, wait_until
from gw import BIN

RACES = int(os.environ.get("FM_RACES", "40"))
ROUNDS = int(os.environ.get("FM_ROUNDS", "12"))
CHROMIUM = shutil.which("chromium")
ENDS = ("chat.final", "chat.error")


class FaultTest(unittest.TestCase):
    settings = {}
    arguments = ()
    env = {}

    def setUp(self):
        self.home = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.clients = []
        self.gateway = None
        self.addCleanup(self.stop)
        self.begin()

    def begin(self):
        self.gateway = gateway(*self.arguments, home=self.home, settings=self.settings, env=self.env)
        self.client = self.connect()

    def connect(self):
        self.clients.append(Client(self.gateway))
        return self.clients[-1]

    def stop(self, kill=False):
        for client in self.clients:
            client.close()
        self.clients = []
        if kill:
            self.gateway.process.kill()
            self.gateway.stop()
        elif self.gateway.process.poll() is None:
            self.gateway.__exit__()

    def restart(self, kill=False):
        self.stop(kill)
        self.begin()

    def records(self, key):
        with open(os.path.join(self.home, "sessions", key + ".jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]


class FullDisk(FaultTest):
    """The limit on the size of files grows by one byte, so that each record in turn is the one that fails."""

    def limit(self, size):
        resource.prlimit(self.gateway.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def transcript(self, key):
        return os.path.join(self.home, "sessions", key + ".jsonl")

    def one(self, room):
        """Runs a tool when the transcript may grow by `room` bytes. Returns what was reported about the run, and whether the tool
        ran."""
        key = self.client.session()
        marker = os.path.join(self.home, f"ran-{room}")
        self.limit(os.path.getsize(self.transcript(key)) + room)
        answer = self.client.answer(self.client.send("chat.send", sessionKey=key,
                                                     message=script("text", bash(f": > {marker}"))))
        told = []
        approved = None
        while "result" in answer and not (told and told[-1][0] in ENDS):
            event = self.client.events.pop(0) if self.client.events else None
            if event is None:
                self.client.read()
            elif event["data"].get("sessionKey") == key:
                told.append((event["event"], event["data"]))
                if event["event"] == "exec.approval_request":
                    approved = self.client.answer(self.client.send("exec.approve", approvalId=event["data"]["approvalId"]))
        self.limit(resource.RLIM_INFINITY)
        return key, answer, told, approved, os.path.exists(marker)

    def check(self, key, answer, told, approved, ran):
        records = self.records(key)
        kinds = [record["type"] for record in records]
        names = [name for name, _ in told]
        if "error" in answer:
            self.assertEqual(answer["error"]["code"], -32050)
            self.assertEqual(names, [])
        else:
            self.assertIn("message", kinds)
            self.assertEqual([name for name in names if name in ENDS], names[-1:])
        settled = [record["verdict"] for record in records if record["type"] == "approval_settled"]
        if ran or (approved and "result" in approved):
            self.assertEqual(settled, ["approved"])
        if approved and "error" in approved:
            self.assertFalse(ran)
        if "tool.result" in names:
            self.assertIn("tool_result", kinds)
        if names[-1:] == ["chat.final"]:
            self.assertEqual(records[-1]["outcome"], "final")
            self.assertEqual([r["role"] for r in records if r["type"] == "message"], ["user", "assistant"])

    def test_each_record(self):
        seen = {}
        ends = set()
        for room in range(0, 3600, 83):
            with self.subTest(room=room):
                key, answer, told, approved, ran = self.one(room)
                self.check(key, answer, told, approved, ran)
                ends.add("refused" if "error" in answer else told[-1][0])
                seen[key] = answer["result"]["runId"] if "result" in answer else None
                self.assertEqual(self.client.ask(key, "and on"), "and on")
        self.assertEqual(ends, {"refused", "chat.error", "chat.final"})
        self.restart()
        for key, run in seen.items():
            messages = self.client.call("sessions.get", sessionKey=key)["messages"]
            runs = [message["runId"] for message in messages if message["role"] == "user"]
            self.assertEqual(len(runs), 2 if run else 1)
            self.assertTrue(run is None or runs[0] == run)

    def test_a_small_disk(self):
        disk = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", disk],
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("this user can't mount a small disk")
        self.addCleanup(subprocess.run, ["umount", "-l", disk])
        self.stop()
        self.home = disk
        self.begin()
        key = self.client.session()
        message = "word " * 6000
        while "result" in (answer := self.client.answer(self.client.send("chat.send", sessionKey=key, message=message))):
            self.client.end(answer["result"]["runId"])
        self.assertEqual(answer["error"]["code"], -32050)
        self.assertIn("No space left", answer["error"]["message"])
        kept = self.client.call("sessions.get", sessionKey=key)["messages"]
        self.assertTrue(self.client.call("sessions.delete", sessionKey=key)["ok"])
        self.assertGreater(len(kept), 2)
        self.assertEqual(self.client.ask(self.client.session(), "there is room again"), "there is room again")


class Expiry(FaultTest):
    settings = {"tools.approvalTimeout": 1000}

    def test_answers_race_with_the_time(self):
        """Four sockets answer each approval at the moment when it expires. There is one outcome, and the gateway reports this
        outcome."""
        counts = {}
        for begin in range(0, RACES, 10):
            sessions = [self.client.session() for _ in range(min(10, RACES - begin))]
            runs = {self.client.say(key, script(bash("echo yes"))): key for key in sessions}
            requests = [self.client.event("exec.approval_request") for _ in runs]
            clients = [self.connect() for _ in range(4)]
            oks = {request["approvalId"]: [] for request in requests}

            def answer(client, method, requests=requests, oks=oks):
                for request in requests:
                    time.sleep(max(0, request["expiresAt"] / 1000 - time.time() - 0.002))
                    if client.call(method, approvalId=request["approvalId"])["ok"]:
                        oks[request["approvalId"]].append(method)
            threads = [threading.Thread(target=answer, args=(client, ("exec.approve", "exec.deny")[i % 2]))
                       for i, client in enumerate(clients)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(WAIT)
            for request in requests:
                winners = oks[request["approvalId"]]
                self.assertLessEqual(len(winners), 1)
                wanted = {"exec.approve": "approved", "exec.deny": "denied"}[winners[0]] if winners else "expired"
                outcome = self.client.event("exec.approval_resolved", approvalId=request["approvalId"])["outcome"]
                self.assertEqual(outcome, wanted)
                state = dict(self.client.end(request["runId"]))["tool.result"]["state"]
                self.assertEqual(state, {"approved": "done"}.get(outcome, outcome))
                counts[outcome] = counts.get(outcome, 0) + 1
            for client in clients:
                client.close()
        again = [event for event in self.client.events if event["event"] == "exec.approval_resolved"]
        self.assertEqual(again, [])
        print(f"{RACES} approvals settled once each: {counts}", flush=True)


class Steps(FaultTest):
    env = {"FM_ENGINE_FAKE_IS": "led_by_tools"}

    def test_sixteen_steps(self):
        """The output of a command makes the model call it again: although a rule allows the command, the run ends."""
        loop = os.path.join(self.home, "loop")
        with open(loop, "w", encoding="utf-8") as file:
            file.write(script(bash(f"cat {loop}")))
        run = self.client.say(self.client.session(), script(bash(f"cat {loop}")))
        request = self.client.event("exec.approval_request")
        self.assertTrue(request["canRemember"])
        self.assertTrue(self.client.call("exec.approve", approvalId=request["approvalId"], remember=True)["ok"])
        events = self.client.end(run)
        self.assertEqual(events[-1][0], "chat.error")
        self.assertIn("16", events[-1][1]["message"])
        self.assertEqual(len([name for name, _ in events if name == "tool.result"]), 15)
        with open(os.path.join(self.home, "audit.jsonl"), encoding="utf-8") as file:
            by = [line["approval"] for line in map(json.loads, file) if line["event"] == "tool_before"]
        self.assertEqual(by, ["user"] + 14 * ["rule"])

    def test_usage_is_the_sum_of_all_steps(self):
        key = self.client.session()
        run = self.client.say(key, script("one two", bash("echo three")))
        self.client.call("exec.approve", approvalId=self.client.event("exec.approval_request")["approvalId"])
        usage = self.client.end(run)[-1][1]["usage"]
        steps = [record for record in self.records(key) if record["type"] == "step"]
        self.assertEqual(len(steps), 2)
        self.assertGreater(usage["outputTokens"], 3)
        self.assertEqual(self.client.call("sessions.get", sessionKey=key)["session"]["usage"], usage)

    def test_a_broken_rules_file(self):
        self.stop()
        with open(os.path.join(self.home, "rules.json"), "w", encoding="utf-8") as file:
            file.write('[{"tool": "bash"}]')
        with self.assertRaisesRegex(AssertionError, "rules.json"):
            gateway(home=self.home)
        os.unlink(os.path.join(self.home, "rules.json"))
        self.begin()


FACT = "The aardvark Konstantin lives in Lisbon, behind the green door."


class Memory(FaultTest):
    settings = {"memory.enabled": True}

    def input_tokens(self, message):
        return self.client.end(self.client.say(self.client.session(), message))[-1][1]["usage"]["inputTokens"]

    def wait_for_more(self, count, before):
        deadline = time.monotonic() + WAIT
        while count() <= before:
            self.assertLess(time.monotonic(), deadline, "nothing is recalled")

    def test_recall(self):
        question = "where does the aardvark live"
        before = self.input_tokens(question)
        self.client.ask(self.client.session(), FACT)
        self.wait_for_more(lambda: self.input_tokens(question), before)
        self.restart()
        self.assertGreater(self.input_tokens(question), before)

    def test_recall_for_a_long_message(self):
        """The search uses the beginning of the message."""
        question = "where does the aardvark live " + 10000 * "z"
        before = self.input_tokens(question)
        self.client.ask(self.client.session(), FACT)
        self.wait_for_more(lambda: self.input_tokens(question), before)

    def talk(self):
        """The input tokens of a question at the end of a conversation. The conversation has more chunks about it than are
        recalled."""
        key = self.client.session()
        for number in range(6):
            self.client.ask(key, 14 * f"aardvark {number} live where, we talk of the aardvark and where it may live. ")
        tokens = self.client.end(self.client.say(key, "where does the aardvark live"))[-1][1]["usage"]["inputTokens"]
        self.client.call("sessions.delete", sessionKey=key)
        return tokens

    def test_recall_amid_a_long_conversation(self):
        before = self.talk()
        self.client.ask(self.client.session(), FACT)
        self.wait_for_more(self.talk, before)

    def test_what_was_taken_back(self):
        key = self.client.session()
        first = self.client.say(key, script("begun", {"hang": "soft"}))
        self.client.event("chat.delta", runId=first)
        second = self.client.say(key, "the okapi said so")
        for run in (second, first):
            self.client.call("chat.abort", runId=run)
        self.client.ask(key, "the zebra said so")
        self.assertEqual(self.client.call("sessions.search", query="okapi")["results"], [])
        self.assertEqual(len(self.client.call("sessions.search", query="zebra")["results"]), 1)
        wait_until(lambda: self.remembered("zebra"))
        self.assertEqual(self.remembered("okapi"), [])

    def query(self, sql, *values):
        """The first column; an empty list while the tables are being created."""
        with contextlib.closing(sqlite3.connect(os.path.join(self.home, "memory.db"))) as memory, \
                contextlib.suppress(sqlite3.OperationalError):
            return [row[0] for row in memory.execute(sql, values)]
        return []

    def remembered(self, word):
        return self.query("SELECT content FROM chunks WHERE content LIKE ?", f"%{word}%")

    def model_names(self):
        return self.query("SELECT name FROM embedding_model")

    def remember_with(self, settings=""):
        """From the next start on, the helper for vectors is the fake engine, with these settings in its environment."""
        helper = os.path.join(self.home, "helper.sh")
        with open(helper, "w", encoding="utf-8") as file:
            file.write(f"""#!/bin/sh
case " $* " in
*" --models-dir "*) {settings} exec {BIN}/fm-proxy --engine fake ;;
esac
exec {BIN}/fm-proxy "$@"
""")
        os.chmod(helper, 0o700)
        self.arguments = ("--helper", helper, "--embedding-models", self.home)

    def test_another_file_of_a_model(self):
        """The new model's vectors have the same length, but different values: everything is indexed again."""
        self.stop()
        self.remember_with()
        names = []
        for content in ("one", "another"):
            with open(os.path.join(self.home, "model.gguf"), "w", encoding="utf-8") as file:
                file.write(content)
            self.begin()
            self.client.ask(self.client.session(), FACT)
            wait_until(lambda: [name for name in self.model_names() if name not in names])
            names += self.model_names()
            self.stop()
        self.arguments = ()
        self.begin()
        self.client.ask(self.client.session(), "where does the aardvark live")
        self.assertEqual(self.model_names(), names[1:])
        self.assertEqual(len(names), 2)

    def test_a_memory_that_is_late(self):
        """The helper for vectors hangs: the run continues without recalling anything."""
        question = "where does the aardvark live"
        before = self.input_tokens(question)
        self.stop()
        self.remember_with("FM_ENGINE_FAKE_LOAD=hang")
        self.begin()
        self.client.ask(self.client.session(), FACT)
        self.assertEqual(self.input_tokens(question), before)
        with contextlib.suppress(ProcessLookupError):  # the second helper is the hanging one
            self.assertEqual(len([pid for pid in children(self.gateway.process.pid) if name_of(pid) == "fm-proxy"]), 2)


def name_of(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return file.read().strip()


@unittest.skipUnless(CHROMIUM, "there is no chromium; packaging/setup.sh --tests brings it")
class Pictures(FaultTest):
    def browse(self, *actions):
        return {"tool_call": {"name": "browser", "arguments": json.dumps({"actions": list(actions)})}}

    def test_a_screenshot_and_the_rules_after_it(self):
        key = self.client.session()
        run = self.client.say(key, script(bash("echo a")))
        request = self.client.event("exec.approval_request")
        self.client.call("exec.approve", approvalId=request["approvalId"], remember=True)
        self.client.end(run)
        run = self.client.say(key, script(self.browse({"action": "screenshot"})))
        request = self.client.event("exec.approval_request")
        self.assertFalse(request["canRemember"])
        self.assertEqual(self.client.fails("exec.approve", approvalId=request["approvalId"], remember=True)["code"], -32602)
        self.assertTrue(self.client.call("exec.approve", approvalId=request["approvalId"])["ok"])
        result = dict(self.client.end(run))["tool.result"]
        self.assertEqual(result["state"], "done", result)
        picture = result["attachments"][0]
        blob = self.client.call("blobs.get", blobId=picture["blobId"])
        self.assertEqual((picture["type"], picture["mimeType"], blob["mimeType"]), ("image", "image/png", "image/png"))
        self.assertTrue(blob["data"].startswith("iVBORw0KGgo"))
        answer = self.client.call("chat.history", sessionKey=key, limit=1)["messages"][0]
        self.assertEqual(answer["parts"][0]["attachments"], result["attachments"])
        for restarted in (False, True):  # the session now has text of a web page, so the rule no longer applies to it
            if restarted:
                self.restart()
            run = self.client.say(key, script(bash("echo a")))
            request = self.client.event("exec.approval_request")
            self.assertFalse(request["canRemember"])
            self.client.call("chat.abort", runId=run)
            self.client.end(run)
        other = self.client.session()
        self.assertEqual(self.client.end(self.client.say(other, script(bash("echo a"))))[-1][0], "chat.final")
        self.client.call("sessions.delete", sessionKey=key)
        self.assertEqual(self.client.fails("blobs.get", blobId=picture["blobId"])["code"], -32004)


class Page:
    """A page's state of one session, updated as in PROTOCOL.md, "Joining in the midst"."""

    def __init__(self, key):
        self.key = key
        self.seq = None
        self.messages = []
        self.runs = {}

    def join(self, client):
        after = {} if self.seq is None else {"afterSeq": self.seq}
        snapshot = client.call("sessions.subscribe", sessionKey=self.key, **after)
        self.messages += [(m["runId"], m["role"], m["content"]) for m in snapshot["messages"]]
        self.runs = {run["runId"]: [run["message"], "".join(p.get("text", "") for p in run["parts"]), run["state"]]
                     for run in snapshot["runs"]}
        assert self.seq is None or snapshot["seq"] >= self.seq, (snapshot["seq"], self.seq)
        self.seq = snapshot["seq"]

    def take(self, event):
        name, data = event["event"], event["data"]
        if data["seq"] <= self.seq:
            return
        self.seq = data["seq"]
        if data.get("sessionKey") != self.key:
            return
        run = data.get("runId")
        if name == "chat.message":
            self.runs[run] = [data["content"], "", "queued"]
        elif name == "chat.start":
            self.runs[run][2] = "running"
        elif name == "chat.delta":
            self.runs[run][1] += data["text"]
        elif name in ENDS:
            message, text, state = self.runs.pop(run)
            if state == "running" or not data.get("aborted"):
                self.messages += [(run, "user", message), (run, "assistant", text)]


class Reconnects(FaultTest):
    def test_a_page_misses_nothing_and_has_nothing_twice(self):
        chance = random.Random(os.environ.get("FM_SEED", "7"))
        key = self.client.session()
        page = Page(key)
        page.join(self.client)
        taken = 0
        for number in range(ROUNDS):
            sent = [self.client.send("chat.send", sessionKey=key, message=script(
                f"answer {number}.{i} ", {"sleep_ms": 10}, *[f"{word} " for word in range(chance.randrange(6))]))
                for i in range(chance.randrange(1, 4))]
            if chance.random() < 0.3:
                answer = self.client.answer(sent[-1])
                self.client.send("chat.abort", runId=answer.get("result", {}).get("runId", "none"))
            stop_at = len(self.client.events) + chance.randrange(1, 25)
            deadline = time.monotonic() + chance.random() * 0.3
            self.client.socket.sock.settimeout(0.02)
            while len(self.client.events) < stop_at and time.monotonic() < deadline:
                try:
                    self.client.read()
                except TimeoutError:
                    pass
            for event in self.client.events[:]:
                page.take(event)
                taken += 1
            how = chance.choice(("socket", "socket", "term", "kill"))
            if how == "socket":
                self.client.close()
                self.client = self.connect()
            else:
                self.restart(kill=how == "kill")
            page.join(self.client)
        while page.runs:
            if self.client.events:  # some events came before the answer to `join`
                page.take(self.client.events.pop(0))
            else:
                self.client.read()
        messages = self.client.call("sessions.get", sessionKey=key)["messages"]
        self.assertEqual(page.messages, [(m["runId"], m["role"], m["content"]) for m in messages])
        self.assertGreater(len(messages), ROUNDS)
        print(f"{ROUNDS} interruptions, {taken} events, {len(messages)} messages: none missing, none twice", flush=True)


if __name__ == "__main__":
    unittest.main()
