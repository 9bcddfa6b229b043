"""The gateway's providers of models: the helper with the fake engine, and with the engine `remote` in front of servers on this
machine that answer like OpenAI and Anthropic, whole and cut at every byte."""

import base64
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
sys.path.insert(0, os.path.join(HERE, "..", "contract"))
from chat import Client, gateway  # noqa: E402
from faulty_server import FaultyServer, chunked, head, models, says, stream, whole  # noqa: E402
from patience import SANITIZED, WAIT, TimedTest  # noqa: E402
from reach import for_all  # noqa: E402

BIN = os.environ.get("FM_BIN", os.path.join(HERE, "..", "..", "build", "bin"))
DRIVER = os.path.join(BIN, "..", "tests-bin", "providers_driver")
HELPER = os.path.join(BIN, "fm-proxy")
EMBEDDING_MODELS = os.path.join(BIN, "..", "models-embedding")
AT_ONCE = 24  # simultaneous turns of a sweep over all bytes
KEYS = {"openaiKey": "sk-canary-openai-71c2f09a", "anthropicKey": "sk-ant-canary-5b1f6d0c9e"}
MODELS = {"openai": "openai/gpt-5.4-mini", "anthropic": "anthropic/claude-sonnet-5", "local": "local/default"}
DIALECT = {"openai": "responses", "anthropic": "messages"}
TOOLS = [{"type": "function", "name": "bash", "description": "Runs a command.",
          "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}]
ARGUMENTS = json.dumps({"command": "echo \u00e4\u20ac\U0001f600"}, ensure_ascii=False)
SAID = "I look: \u00e4\u20ac\U0001f600."
SECRET_THOUGHT = "gAAAAABo-encrypted-" + "x" * 40
SIGNATURE = "EqQBCgIYAhIM-signed-" + "y" * 40


def user(text):
    return {"role": "user", "content": text}


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def picture(text):
    return {"role": "user", "content": [{"type": "input_text", "text": text},
                                        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}]}


# ---- streams of the two APIs with text, a thought and a call of a tool ----

def sse(*events):
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e, ensure_ascii=False)}\n\n".encode() for e in events)


def pieces(text, size=3):
    return [text[at:at + size] for at in range(0, len(text), size)]


def openai_tool_stream():
    thought = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "A look helps."}]}
    said = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": SAID, "annotations": [], "logprobs": []}]}
    call = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "bash", "arguments": ARGUMENTS,
            "status": "completed"}
    thought_whole = {**thought, "encrypted_content": SECRET_THOUGHT}
    base = {"id": "resp_1", "object": "response", "model": "gpt-5.4-mini"}
    return sse(
        {"type": "response.created", "response": {**base, "status": "in_progress", "output": []}},
        {"type": "response.in_progress", "response": {**base, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**thought, "summary": []}},
        {"type": "response.reasoning_summary_part.added", "item_id": "rs_1", "output_index": 0, "summary_index": 0,
         "part": {"type": "summary_text", "text": ""}},
        {"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0, "summary_index": 0,
         "delta": "A look helps."},
        {"type": "response.reasoning_summary_text.done", "item_id": "rs_1", "output_index": 0, "summary_index": 0,
         "text": "A look helps."},
        {"type": "response.reasoning_summary_part.done", "item_id": "rs_1", "output_index": 0, "summary_index": 0,
         "part": {"type": "summary_text", "text": "A look helps."}},
        {"type": "response.output_item.done", "output_index": 0, "item": thought_whole},
        {"type": "response.output_item.added", "output_index": 1, "item": {**said, "status": "in_progress", "content": []}},
        {"type": "response.content_part.added", "item_id": "msg_1", "output_index": 1, "content_index": 0,
         "part": {"type": "output_text", "text": "", "annotations": []}},
        *({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 1, "content_index": 0, "delta": piece}
          for piece in pieces(SAID)),
        {"type": "response.output_text.done", "item_id": "msg_1", "output_index": 1, "content_index": 0, "text": SAID},
        {"type": "response.content_part.done", "item_id": "msg_1", "output_index": 1, "content_index": 0,
         "part": said["content"][0]},
        {"type": "response.output_item.done", "output_index": 1, "item": said},
        {"type": "response.output_item.added", "output_index": 2,
         "item": {**call, "arguments": "", "status": "in_progress"}},
        *({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 2, "delta": piece}
          for piece in pieces(ARGUMENTS, 7)),
        {"type": "response.function_call_arguments.done", "item_id": "fc_1", "output_index": 2, "arguments": ARGUMENTS},
        {"type": "response.output_item.done", "output_index": 2, "item": call},
        {"type": "response.completed",
         "response": {**base, "status": "completed", "output": [thought_whole, said, call],
                      "usage": {"input_tokens": 50, "input_tokens_details": {"cached_tokens": 30}, "output_tokens": 20,
                                "output_tokens_details": {"reasoning_tokens": 8}, "total_tokens": 70}}})


def anthropic_tool_stream():
    return sse(
        {"type": "message_start",
         "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "claude-sonnet-5",
                     "stop_reason": None, "usage": {"input_tokens": 20, "cache_read_input_tokens": 30, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": piece}}
          for piece in pieces("A look helps.", 5)),
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": SIGNATURE}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": piece}}
          for piece in pieces(SAID)),
        {"type": "content_block_stop", "index": 1},
        {"type": "something_new", "of": "a later day"},
        {"type": "content_block_start", "index": 2,
         "content_block": {"type": "tool_use", "id": "call_1", "name": "bash", "input": {}}},
        *({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": piece}}
          for piece in pieces(ARGUMENTS, 7)),
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 20}},
        {"type": "message_stop"})


TOOL_STREAM = {"openai": openai_tool_stream(), "anthropic": anthropic_tool_stream()}


def recorded_text(provider):
    """The text of the recorded answer."""
    text = ""
    for line in re.findall(r"^data: (\{.*)$", stream(DIALECT[provider]).decode(), re.M):
        event = json.loads(line)
        delta = event.get("delta")
        text += delta if event["type"] == "response.output_text.delta" else \
            delta.get("text", "") if event["type"] == "content_block_delta" else ""
    return text


class Outcome:
    """The result of a turn: its text, and its one end."""

    def __init__(self, lines):
        self.text = "".join(line["delta"] for line in lines if "delta" in line)
        self.deltas = sum("delta" in line for line in lines)
        self.end = lines[-1]
        self.error = self.end.get("error")
        self.detail = self.end.get("detail")
        self.items = self.end.get("final")

    def of(self, kind):
        return [item for item in self.items if item["type"] == kind]

    def said(self):
        """The texts of the messages among the items."""
        return "".join(part["text"] for item in self.of("message") for part in item["content"])


class Driver:
    def __init__(self, env=None, **config):
        self.process = subprocess.Popen([DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env={**os.environ, **(env or {})})
        self.changed = threading.Condition()
        self.lines = {}  # by id
        self.ended = False
        self.log = []
        self.readers = [threading.Thread(target=target, daemon=True) for target in (self._read, self._read_log)]
        for reader in self.readers:
            reader.start()
        self.last = 0
        self.send(op="open", **{"helper": HELPER, "arguments": ["--engine", "fake"], **KEYS, **config})

    def _read(self):
        for line in self.process.stdout:
            line = json.loads(line)
            with self.changed:
                self.lines.setdefault(line["id"], []).append(line)
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def _read_log(self):
        self.log.extend(self.process.stderr)

    def send(self, **message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def start(self, provider, items, **more):
        self.last += 1
        items = [user(items)] if isinstance(items, str) else items
        self.send(op="turn", id=self.last, **{"model": MODELS.get(provider, provider), "input": items, **more})
        return self.last

    def abort(self, turn):
        self.send(op="abort", id=turn)

    def wait(self, turn, holds):
        """Waits until the turn's lines fulfil the condition; returns them."""
        deadline = time.monotonic() + WAIT
        with self.changed:
            while not holds(self.lines.get(turn, [])):
                assert not self.ended, ("the driver has ended", self.log)
                assert self.changed.wait(deadline - time.monotonic()), "it did not happen in time"
            return list(self.lines[turn])

    def deltas(self, turn, count):
        return self.wait(turn, lambda lines: sum("delta" in line for line in lines) >= count)

    def outcome(self, turn):
        return Outcome(self.wait(turn, lambda lines: any("delta" not in line for line in lines)))

    def run(self, provider, items, **more):
        return self.outcome(self.start(provider, items, **more))

    def helpers(self):
        """The processes of fm-proxy."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == self.process.pid and fields[0] != "Z":
                found.append(int(name))
        return found

    def close(self):
        self.process.stdin.close()
        try:
            return self.process.wait(WAIT)
        finally:
            self.process.kill()
            for reader in self.readers:
                reader.join(WAIT)
            self.process.stdout.close()
            self.process.stderr.close()


class Case(TimedTest):
    def driver(self, *, clean=True, **config):
        driver = Driver(**config)

        def close():
            status = driver.close()
            ends = {turn: [line for line in lines if "delta" not in line] for turn, lines in driver.lines.items()}
            self.assertEqual(status, 0, driver.log)
            for turn, lines in driver.lines.items():
                self.assertEqual(len(ends[turn]), 1, "exactly one end")
                self.assertNotIn("delta", lines[-1], "nothing after it")
            self.assertEqual(sorted(ends), list(range(1, driver.last + 1)), "each turn has its end")

        self.addCleanup(close if clean else driver.close)
        return driver

    def server(self, answer):
        server = FaultyServer(answer)
        self.addCleanup(server.close)
        return server

    def remote(self, answer, **config):
        """A driver whose providers elsewhere are this server, and the server."""
        server = self.server(answer)
        return self.driver(openaiUrl=server.url, anthropicUrl=server.url.removesuffix("/v1"), **config), server


PROVIDERS = ("openai", "anthropic")


class Local(Case):
    def test_text_usage_and_items(self):
        outcome = self.driver().run("local", json.dumps(["Hello", " there", {"usage": {"input": 7, "cached": 3, "output": 2}}]))
        self.assertEqual((outcome.text, outcome.said(), outcome.end["cut"]), ("Hello there",) * 2 + (False,))
        self.assertEqual([outcome.end[name] for name in ("inputTokens", "outputTokens", "cachedTokens")], [7, 2, 3])

    def test_a_tool_and_its_result(self):
        driver = self.driver()
        first = driver.run("local", json.dumps(["So:", {"tool_call": {"name": "bash", "arguments": '{"command":"ls"}'}}]),
                           tools=TOOLS)
        call, = first.of("function_call")
        self.assertEqual((first.text, call["name"], call["arguments"]), ("So:", "bash", '{"command":"ls"}'))
        second = driver.run("local", [user("list"), *first.items, {"type": "function_call_output", "call_id": call["call_id"],
                                                                   "output": "a b"}, user('["two", " files"]')], tools=TOOLS)
        self.assertEqual(second.text, "two files")

    def test_the_name_of_a_model(self):
        driver = self.driver()
        self.assertEqual(driver.run("local/fake", '["known"]').text, "known")
        lost = driver.run("local/huge", '["x"]')
        self.assertEqual(lost.error, "NOT_FOUND")
        self.assertIn("'huge'", lost.detail)
        self.assertIn("AGENTS.md", lost.detail)

    def test_a_model_that_sees_no_images_is_asked_without(self):
        driver = self.driver()
        outcome = driver.run("local", [picture("What is this?")])
        self.assertIsNone(outcome.error, outcome.detail)
        self.assertEqual(outcome.text, "What is this?[an image, which this model can't see]")
        refused = driver.run("local", [picture("What is this?"), {"type": "nonsense"}])
        self.assertEqual(refused.error, "INVALID_REQUEST", "what is wrong otherwise stays wrong")

    def test_cut_at_a_limit(self):
        self.assertTrue(self.driver().run("local", '["so far", {"finish":"length"}]').end["cut"])

    def test_a_failure_keeps_what_came(self):
        outcome = self.driver().run("local", '["part", {"error":"no more"}]')
        self.assertEqual((outcome.text, outcome.error), ("part", "INTERNAL"))
        self.assertIn("no more", outcome.detail)

    def test_many_at_once_are_kept_apart(self):
        driver = self.driver()
        turns = [driver.start("local", json.dumps([f"{n} "] * 20)) for n in range(40)]
        for n, turn in enumerate(turns):
            self.assertEqual(driver.outcome(turn).text, f"{n} " * 20)

    def test_abort(self):
        driver = self.driver()
        for script in ('["a", {"hang":"soft"}]', '["a", {"hang":"hard"}]'):
            turn = driver.start("local", script)
            driver.deltas(turn, 1)
            driver.abort(turn)
            driver.abort(turn)
            outcome = driver.outcome(turn)
            self.assertEqual((outcome.text, outcome.error), ("a", "CANCELLED"))
        self.assertEqual(driver.run("local", '["goes on"]').text, "goes on")

    def test_abort_from_within_a_delta(self):
        outcome = self.driver().run("local", '[{"repeat":["a", 1000000]}]', abortAfter=3)
        self.assertEqual(outcome.error, "CANCELLED")

    def test_abort_before_anything_has_come(self):
        driver = self.driver()
        turn = driver.start("local", '[{"prefill_ms":100000}]')
        driver.abort(turn)
        self.assertEqual(driver.outcome(turn).error, "CANCELLED")

    def test_the_helper_is_killed(self):
        driver = self.driver()
        for _ in range(2):
            turn = driver.start("local", '["part", {"hang":"soft"}]')
            driver.deltas(turn, 1)
            helper, = driver.helpers()
            os.kill(helper, signal.SIGKILL)
            outcome = driver.outcome(turn)
            self.assertEqual((outcome.text, outcome.error), ("part", "UNAVAILABLE"))
            self.assertIn("signal 9", outcome.detail)
        deadline = time.monotonic() + WAIT
        while (outcome := driver.run("local", '["again"]')).error:  # during the pause after two deaths
            self.assertEqual(outcome.error, "UNAVAILABLE")
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual(outcome.text, "again")

    def test_the_engine_dies(self):
        driver = self.driver()
        outcome = driver.run("local", '["part", {"signal":"KILL"}]')
        self.assertEqual((outcome.text, outcome.error), ("part", "INTERNAL"))
        self.assertEqual(driver.run("local", '["again"]').text, "again")

    def test_a_helper_that_hangs_is_ended(self):
        driver = self.driver(pulse=100)
        turn = driver.start("local", '["part", {"hang":"soft"}]')
        driver.deltas(turn, 1)
        helper, = driver.helpers()
        os.kill(helper, signal.SIGSTOP)
        driver.abort(turn)  # this helper does not answer the abort
        self.assertEqual(driver.outcome(turn).error, "CANCELLED")
        self.assertEqual(driver.run("local", '["again"]').text, "again")
        self.assertNotIn(helper, driver.helpers())

    def test_a_slow_turn_is_no_hang(self):
        outcome = self.driver(pulse=50).run("local", '["slow", {"sleep_ms":1500}, " but sure"]')
        self.assert_undisturbed(outcome.text == "slow but sure", outcome.detail)

    def test_the_end_amid_turns(self):
        driver = self.driver()
        turns = [driver.start("local", '["a", {"hang":"soft"}]') for _ in range(5)]
        for turn in turns:
            driver.deltas(turn, 1)
        helper, = driver.helpers()
        self.assertEqual(driver.close(), 0)
        for turn in turns:
            self.assertEqual(driver.lines[turn][-1]["error"], "CANCELLED")
        self.assertFalse(os.path.exists(f"/proc/{helper}"))
        driver.close = lambda: 0  # the driver is closed already

    def test_no_helper(self):
        outcome = self.driver(helper="/nowhere/fm-proxy").run("local", '["x"]')
        self.assertEqual(outcome.error, "UNAVAILABLE")
        self.assertIn("/nowhere/fm-proxy", outcome.detail)

    def test_a_helper_that_refuses_its_options_says_so_in_the_log(self):
        driver = self.driver(arguments=["--no-such-option"])
        outcome = driver.run("local", '["x"]')
        self.assertIn("exit status 64", outcome.detail)
        driver.process.stdin.close()
        driver.process.wait(WAIT)
        driver.readers[1].join(WAIT)
        self.assertIn("no-such-option", "".join(driver.log))

    @unittest.skipUnless(os.path.exists(os.path.join(BIN, "fm-engine-llama")), "built without llama.cpp")
    def test_no_model(self):
        with tempfile.TemporaryDirectory() as folder:
            outcome = self.driver(arguments=["--models-dir", folder]).run("local", "Hello")
        self.assertEqual(outcome.error, "UNAVAILABLE")
        self.assertIn(folder, outcome.detail)
        self.assertIn("put one there", outcome.detail)
        self.assertIn("--helper-arg", outcome.detail)


class Remote(Case):
    def test_recorded_streams(self):
        for provider in PROVIDERS:
            with self.subTest(provider):
                driver, server = self.remote(says(whole(stream(DIALECT[provider]))))
                outcome = driver.run(provider, "hi", instructions="Be kind.")
                self.assertIsNone(outcome.error, outcome.detail)
                self.assertEqual((outcome.text, outcome.said()), (recorded_text(provider),) * 2)
                self.assertEqual((outcome.end["inputTokens"], outcome.end["outputTokens"]), (35, 12))
                request = [r for r in server.requests if r.method == "POST"][-1]
                self.assertEqual(request.path, f"/v1/{DIALECT[provider]}")
                key = request.headers["authorization" if provider == "openai" else "x-api-key"]
                self.assertEqual(key.removeprefix("Bearer "), KEYS[provider + "Key"])
                body = json.loads(request.body)
                self.assertEqual((body["model"], body["stream"]), (MODELS[provider].partition("/")[2], True))
                self.assertIn("Be kind.", request.body.decode())

    def test_a_conversation_with_tools(self):
        """Items that only the provider can read are sent back unchanged."""
        for provider in PROVIDERS:
            with self.subTest(provider):
                answers = [TOOL_STREAM[provider], stream(DIALECT[provider])]

                def answer(server, connection, request, answers=answers):
                    if models(connection, request):
                        connection.sendall(whole(answers.pop(0)))
                    return True

                driver, server = self.remote(answer)
                first = driver.run(provider, "look", tools=TOOLS)
                self.assertEqual((first.error, first.text, first.said()), (None, SAID, SAID), first.detail)
                call, = first.of("function_call")
                self.assertEqual((call["name"], call["arguments"]), ("bash", ARGUMENTS))
                self.assertEqual([first.end[n] for n in ("inputTokens", "outputTokens", "cachedTokens")], [50, 20, 30])
                second = driver.run(provider, [user("look"), *first.items, {
                    "type": "function_call_output", "call_id": call["call_id"], "output": "seen"}], tools=TOOLS)
                self.assertEqual((second.error, second.text), (None, recorded_text(provider)), second.detail)
                body = json.loads([r for r in server.requests if r.method == "POST"][-1].body)
                getattr(self, "check_" + provider)(body)

    def check_openai(self, body):
        kinds = [item["type"] for item in body["input"]]
        self.assertEqual(kinds, ["message", "reasoning", "message", "function_call", "function_call_output"])
        self.assertEqual(body["input"][1]["encrypted_content"], SECRET_THOUGHT)
        self.assertEqual(body["input"][3]["arguments"], ARGUMENTS)
        self.assertEqual(body["input"][4]["call_id"], body["input"][3]["call_id"])
        self.assertEqual(body["input"][4]["output"], "seen")
        self.assertEqual((body["store"], body["include"]), (False, ["reasoning.encrypted_content"]))

    def check_anthropic(self, body):
        asked, said, result = body["messages"]
        self.assertEqual([asked["role"], said["role"], result["role"]], ["user", "assistant", "user"])
        thought, text, call = said["content"]
        self.assertEqual((thought["thinking"], thought["signature"]), ("A look helps.", SIGNATURE))
        self.assertEqual((text["text"], call["name"], call["input"]), (SAID, "bash", json.loads(ARGUMENTS)))
        self.assertEqual((result["content"][0]["type"], result["content"][0]["tool_use_id"]), ("tool_result", call["id"]))

    def test_images_go_to_models_that_see(self):
        for provider in PROVIDERS:
            driver, server = self.remote(says(whole(stream(DIALECT[provider]))))
            self.assertIsNone(driver.run(provider, [picture("What is this?")]).error)
            self.assertIn(PNG, [r for r in server.requests if r.method == "POST"][-1].body.decode())

    def sweep(self, provider, body, text, calls=()):
        """Cuts the answer at each of its bytes, including those of HTTP. With a sanitizer, it only cuts at each seventh byte and
        near both ends."""
        data = whole(body)
        ends = {"final": 0, "error": 0}

        def answer(server, connection, request):
            if models(connection, request):
                at = int(re.search(rb"cut at (\d+)\.", request.body).group(1))
                connection.sendall(data[:at])
                return False
            return True

        driver, _ = self.remote(answer)
        turns = queue.SimpleQueue()
        near = 64
        cuts = [at for at in range(len(data) + 1)
                if not SANITIZED or at % 7 == 0 or at < near or at > len(data) - near]
        for at in cuts:
            turns.put((at, driver.start(provider, f"cut at {at}.", tools=TOOLS)))
            while turns.qsize() >= (AT_ONCE if at < len(data) else 1):
                cut, turn = turns.get()
                outcome = driver.outcome(turn)
                ends["error" if outcome.error else "final"] += 1
                if outcome.error:
                    self.assertIn(outcome.error, ("INTERNAL", "OVERLOADED"), (cut, outcome.detail))
                    self.assertTrue(text.startswith(outcome.text), (cut, outcome.text))
                else:  # only bytes after the end of the answer are missing
                    self.assertEqual((outcome.text, outcome.said()), (text, text), cut)
                    self.assertEqual([call["arguments"] for call in outcome.of("function_call")], list(calls), cut)
        self.assertGreater(ends["error"], len(cuts) * 0.8)
        self.assertGreater(ends["final"], 0)
        print(f"{provider}: {len(cuts)} cuts, {ends['final']} final, {ends['error']} errors")

    def test_openai_recorded_cut_at_every_byte(self):
        self.sweep("openai", stream("responses"), recorded_text("openai"))

    def test_openai_tools_cut_at_every_byte(self):
        self.sweep("openai", TOOL_STREAM["openai"], SAID, [ARGUMENTS])

    def test_anthropic_recorded_cut_at_every_byte(self):
        self.sweep("anthropic", stream("messages"), recorded_text("anthropic"))

    def test_anthropic_tools_cut_at_every_byte(self):
        self.sweep("anthropic", TOOL_STREAM["anthropic"], SAID, [ARGUMENTS])

    def test_abort_ends_the_connection(self):
        for provider in PROVIDERS:
            with self.subTest(provider):
                body = stream(DIALECT[provider])
                half = body[:body.index(b"\n\n", len(body) // 2) + 2]

                def answer(server, connection, request, half=half):
                    if models(connection, request):
                        connection.sendall(head() + half)
                        connection.recv(1)
                        server.closed.release()
                        return False
                    return True

                driver, server = self.remote(answer)
                turn = driver.start(provider, "hi")
                driver.deltas(turn, 1)
                driver.abort(turn)
                self.assertEqual(driver.outcome(turn).error, "CANCELLED")
                self.assertTrue(server.closed.acquire(timeout=WAIT))

    def test_the_helper_is_killed(self):
        body = stream("messages")

        def answer(server, connection, request):
            if models(connection, request):
                connection.sendall(head() + body[:body.index(b"\n\n", 900) + 2])
                connection.recv(1)
                return False
            return True

        driver, server = self.remote(answer)
        turn = driver.start("anthropic", "hi")
        driver.deltas(turn, 1)
        os.kill(driver.helpers()[0], signal.SIGKILL)
        outcome = driver.outcome(turn)
        self.assertEqual(outcome.error, "UNAVAILABLE")
        self.assertTrue(recorded_text("anthropic").startswith(outcome.text))
        self.assertEqual(len([r for r in server.requests if r.method == "POST"]), 1, "it is not asked twice")

    def test_a_missing_key_is_named(self):
        driver = self.driver(openaiKey=None, anthropicKey="")
        for provider, name in (("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")):
            outcome = driver.run(provider, "hi")
            self.assertEqual(outcome.error, "UNAVAILABLE")
            self.assertIn(name, outcome.detail)
        self.assertEqual(driver.helpers(), [], "nothing was started for it")

    def test_what_errors_say(self):
        def refuses(status, **error):
            body = json.dumps({"error": {"message": "no", **error}}).encode()
            return says(head(status, "application/json", Content_Length=len(body)) + body)

        rows = [(refuses(401, message=f"bad key {KEYS['openaiKey']}"), "UNAVAILABLE", "OPENAI_API_KEY"),
                (refuses(429, code="insufficient_quota"), "UNAVAILABLE", "credit"),
                (refuses(404), "NOT_FOUND", "AGENTS.md"),
                (refuses(400, code="context_length_exceeded"), "CONTEXT_OVERFLOW", "begin a new conversation"),
                (refuses(429), "RATE_LIMITED", "wait"),
                (refuses(529), "OVERLOADED", "again")]
        for answer, code, words in rows:
            with self.subTest(code + words):
                driver, _ = self.remote(answer)
                outcome = driver.run("openai", "hi")
                self.assertEqual(outcome.error, code)
                self.assertIn("OpenAI: 127.0.0.1", outcome.detail)
                self.assertIn(words, outcome.detail)
                self.assertNotIn(KEYS["openaiKey"], outcome.detail)

    def test_a_key_reaches_its_own_helper_alone(self):
        driver, _ = self.remote(says(whole(stream("responses"))))
        self.assertIsNone(driver.run("openai", "hi").error)
        self.assertIsNone(driver.run("local", '["hi"]').error)
        self.assertEqual(len(driver.helpers()), 2)
        for helper in driver.helpers():
            for pid in (helper, *Driver.helpers(type("P", (), {"process": type("Q", (), {"pid": helper})}))):
                for name in ("cmdline", "environ"):
                    try:
                        with open(f"/proc/{pid}/{name}", "rb") as file:
                            held = file.read().decode(errors="replace")
                    except PermissionError:
                        continue  # the process hides its files
                    for key in KEYS.values():
                        self.assertNotIn(key, held, (pid, name))


    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_no_process_of_the_user_reads_the_key_of_a_helper(self):
        """A command without a namespace could try this, on a system where it may inspect the user's processes."""
        def become():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        read = "import sys; open(f'/proc/{sys.argv[1]}/mem', 'rb').close()"
        config = {"endpoints": [{"url": "http://127.0.0.1:9", "dialect": "responses", "key_env": "OPENAI_API_KEY"}]}
        for named, readable in ((config, False), ({"endpoints": [{"url": "http://127.0.0.1:9"}]}, True)):
            with self.subTest(named):
                helper = subprocess.Popen([os.path.join(for_all(BIN), "fm-proxy"), "--engine", "remote", "--remote",
                                           "env:OF_TEST"], preexec_fn=become,
                                          env={"PATH": "/usr/bin:/bin", "OPENAI_API_KEY": KEYS["openaiKey"],
                                               "OF_TEST": json.dumps(named)},
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                try:
                    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "health.ping", "params": {}}).encode()
                    helper.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(message), message))
                    helper.stdin.flush()
                    self.assertTrue(helper.stdout.readline())  # after its answer, the helper has read its configuration
                    attack = subprocess.run(["python3", "-c", read, str(helper.pid)], preexec_fn=become, capture_output=True)
                    self.assertEqual(attack.returncode == 0, readable, attack.stderr)
                finally:
                    helper.kill()
                    helper.communicate()


class Embeddings(Case):
    def embed(self, driver, texts):
        driver.last += 1
        driver.send(op="embed", id=driver.last, texts=texts)
        return driver.wait(driver.last, bool)[0]

    def test_openai(self):
        def answer(server, connection, request):
            if models(connection, request):
                data = [{"object": "embedding", "index": i, "embedding": [0.6, 0.8]}
                        for i in range(len(json.loads(request.body)["input"]))]
                body = json.dumps({"object": "list", "data": data, "model": "m",
                                   "usage": {"prompt_tokens": 1, "total_tokens": 1}}).encode()
                connection.sendall(head(kind="application/json", Content_Length=len(body)) + body)
            return True

        driver, server = self.remote(answer)
        driver.send(op="embedder", helper=HELPER, openaiKey=KEYS["openaiKey"], openaiUrl=server.url,
                    model="text-embedding-3-small")
        line = self.embed(driver, ["one", "two"])
        self.assertEqual([[round(n, 5) for n in v] for v in line["vectors"]], [[0.6, 0.8]] * 2)
        self.assertEqual(json.loads(server.requests[-1].body)["model"], "text-embedding-3-small")

    def test_openai_without_a_key(self):
        driver = self.driver()
        driver.send(op="embedder", helper=HELPER, model="text-embedding-3-small")
        line = self.embed(driver, ["one"])
        self.assertEqual(line["error"], "UNAVAILABLE")
        self.assertIn("OPENAI_API_KEY", line["detail"])

    @unittest.skipUnless(os.path.exists(os.path.join(BIN, "fm-engine-llama")) and os.path.exists(EMBEDDING_MODELS),
                         "no llama.cpp, or no embedding model")
    def test_a_model_here(self):
        driver = self.driver()
        driver.send(op="embedder", helper=HELPER, models=EMBEDDING_MODELS)
        cat, kitten, tax = self.embed(driver, ["The cat sleeps.", "A kitten is asleep.", "Taxes are due in May."])["vectors"]
        self.assertEqual(len(cat), 384)
        self.assertGreater(sum(a * b for a, b in zip(cat, kitten)), sum(a * b for a, b in zip(cat, tax)) + 0.2)
        long = self.embed(driver, ["word " * 5000])
        self.assertEqual(long["error"], "CONTEXT_OVERFLOW", "it comes again in halves")

    @unittest.skipUnless(os.path.exists(os.path.join(BIN, "fm-engine-llama")), "built without llama.cpp")
    def test_a_folder_without_a_model(self):
        with tempfile.TemporaryDirectory() as folder:
            driver = self.driver()
            driver.send(op="embedder", helper=HELPER, models=folder)
            line = self.embed(driver, ["one"])
            self.assertEqual(line["error"], "UNAVAILABLE")
            self.assertIn(folder, line["detail"])


class Whole(Case):
    """The whole gateway: a conversation with an approved tool call, through each provider."""

    def folder(self):
        path = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, path)
        return path

    def talk(self, provider, answers, home, **env):
        server = self.server(lambda server, connection, request: not models(connection, request) or
                             connection.sendall(whole(answers.pop(0))) or True)
        workspace = self.folder()
        with open(os.path.join(workspace, "AGENTS.md"), "w") as file:
            file.write(f"---\nmodel: {MODELS[provider]}\n---\nBe kind.\n")
        gw = gateway(home=home, settings={"agents.workspacePath": workspace},
                     env={"OPENAI_API_KEY": KEYS["openaiKey"], "ANTHROPIC_API_KEY": KEYS["anthropicKey"],
                          "OPENAI_BASE_URL": server.url, "ANTHROPIC_BASE_URL": server.url, **env})
        self.addCleanup(gw.stop)
        return Client(gw), server

    def test_a_tool_through_each(self):
        for provider in PROVIDERS:
            with self.subTest(provider):
                rest = stream(DIALECT[provider]).replace(b'"max_tokens"', b'"end_turn"')  # the recorded answer was cut
                client, server = self.talk(provider, [TOOL_STREAM[provider], rest], self.folder())
                run = client.say(client.session(), "look")
                request = client.event("exec.approval_request", runId=run)
                self.assertEqual(request["details"]["command"], json.loads(ARGUMENTS)["command"])
                client.call("exec.approve", approvalId=request["approvalId"])
                result = client.event("tool.result", runId=run)
                name, data = client.end(run)[-1]
                self.assertEqual(name, "chat.final", data)
                self.assertEqual((name, data["usage"]["inputTokens"], data["usage"]["outputTokens"]), ("chat.final", 85, 32))
                self.addCleanup(client.close)
                paths = {r.path for r in server.requests if r.method == "POST"}
                self.assertEqual(paths, {f"/v1/{DIALECT[provider]}"}, "a URL with the /v1 is fine too")
                body = json.loads([r for r in server.requests if r.method == "POST"][-1].body)
                said = json.dumps(body, ensure_ascii=False)
                self.assertIn(SECRET_THOUGHT if provider == "openai" else SIGNATURE, said)
                self.assertIn(json.dumps(result["output"] + "[exit code 0]", ensure_ascii=False), said)

    def test_an_image_of_a_tool(self):
        """A conversation with a screenshot continues: the model sees it."""
        key = "0123456789abcdef" * 2
        blob = f"{key}-{'f' * 16}"
        records = [
            {"type": "session", "agentId": "assistant"},
            {"type": "run_started", "runId": "r1"},
            {"type": "message", "runId": "r1", "role": "user", "content": "shoot"},
            {"type": "step", "runId": "r1", "provider": "openai", "model": "gpt-5.4-mini", "text": "", "items": [
                {"type": "function_call", "call_id": "call_9", "name": "browser", "arguments": '{"actions":[]}'}]},
            {"type": "tool_call", "runId": "r1", "callId": "c1", "providerCallId": "call_9", "name": "browser", "input": {}},
            {"type": "tool_result", "runId": "r1", "callId": "c1", "output": "done", "attachments": [
                {"type": "image", "mimeType": "image/png", "name": "shot.png", "bytes": 70, "blobId": blob}]},
            {"type": "message", "runId": "r1", "role": "assistant", "content": ""},
            {"type": "run_ended", "runId": "r1", "outcome": "final"}]
        lines = "".join(json.dumps({"seq": seq, "time": 1764061200000, **record}) + "\n"
                        for seq, record in enumerate(records, 1))
        files = {f"sessions/{key}.jsonl": lines.encode(), f"blobs/{blob}": base64.b64decode(PNG)}
        for provider in PROVIDERS:
            with self.subTest(provider):
                home = self.folder()
                for name, data in files.items():
                    os.makedirs(os.path.dirname(os.path.join(home, name)), mode=0o700)
                    with open(os.open(os.path.join(home, name), os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
                        file.write(data)
                client, server = self.talk(provider, [stream(DIALECT[provider])], home)
                client.end(client.say(key, "What do you see?"))
                body = [r for r in server.requests if r.method == "POST"][-1].body.decode()
                self.assertIn(PNG, body)
                self.assertIn("done\\n[image shot.png: image/png, 70 bytes, in the next message]", body)
                client.close()

    def test_a_missing_key_is_told(self):
        client, _ = self.talk("openai", [], self.folder(), OPENAI_API_KEY="")
        name, data = client.end(client.say(client.session(), "hi"))[-1]
        self.assertEqual(name, "chat.error")
        self.assertIn("OPENAI_API_KEY", data["message"])
        client.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
