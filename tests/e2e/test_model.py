"""Tests the real model, through the whole helper. Skipped, with the reason, if llama's engine or the model is missing."""

import glob
import os
import re
import signal
import sys
import tempfile
import time

import wire
from wire import SLOW, HelperTest, check_stream, wait_until

MODELS = os.environ.get("FM_MODELS", os.path.join(wire.BIN, "..", "models"))
FILES = sorted(glob.glob(os.path.join(MODELS, "*.gguf")))
ENGINE = os.path.join(wire.BIN, "fm-engine-llama")

STORY = "Write a long story about a lighthouse keeper and the sea."
LONG = "The quick brown fox jumps over the lazy dog. " * 780  # about 7,800 tokens: seconds of prefill


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


class ModelTest(HelperTest):
    REPEATABLE = "1"  # repeatable, because texts are compared

    @classmethod
    def setUpClass(cls):
        cls.shared = wire.Helper("--model", FILES[0], engine="llama", env={"FM_ENGINE_LLAMA_REPEATABLE": cls.REPEATABLE})

    @classmethod
    def tearDownClass(cls):
        assert cls.shared.close() == 0

    def text(self, result):
        return result["response"]["output"][0]["content"][0]["text"]

    def ask(self, input, **params):
        result = self.shared.call("responses.create", {"input": input, "temperature": 0, "max_output_tokens": 24, **params},
                                  timeout=120 * SLOW)
        self.assertTrue(result["ok"], result)
        return result


class Answers(ModelTest):
    def test_streamed_equals_unstreamed(self):
        for prompt in ("Why is the sky blue?", "Say this again: 🙂 你好 Grüße", "Count from one to ten."):
            plain = self.ask(prompt)
            events, result = self.shared.collect(self.create(self.shared, prompt, temperature=0, max_output_tokens=24))
            final = check_stream(self, events, result)
            self.assertEqual(final["output"][0]["content"][0]["text"], self.text(plain))
            self.assertEqual(final["usage"]["output_tokens"], plain["response"]["usage"]["output_tokens"])

    def test_choices_differ_and_come_again(self):
        body = {"messages": [{"role": "user", "content": "Invent a name for a ship."}], "n": 3, "seed": 7, "max_tokens": 20}

        def texts(**params):
            result = self.shared.call("chat.completions.create", {**body, **params}, timeout=120 * SLOW)
            self.assertTrue(result["ok"], result)
            return [choice["message"]["content"] for choice in result["completion"]["choices"]]
        first = texts()
        self.assertEqual(len(set(first)), 3)
        self.assertEqual(texts(), first)
        self.assertEqual(texts(n=1, seed=9), first[2:], "the third one's seed")

    def test_a_summary(self):
        """A summary replaces its conversation, and its text is read as the conversation. An incomplete summary is not
        accepted."""
        turns = [{"role": "user", "content": "My name is Ada and I live in Linz. Which lake is near?"},
                 {"role": "assistant", "content": "The Traunsee is a good lake near Linz."}]
        model = self.shared.call("models.list")["data"][0]["id"]
        compacted = self.shared.call("responses.compact", {"model": model, "input": turns}, timeout=60 * SLOW)
        self.assertTrue(compacted["output"][0]["encrypted_content"].startswith("fm1:"), compacted)
        follow = {"role": "user", "content": "Where is that?"}
        count = self.shared.call("responses.input_tokens", {"input": [*compacted["output"], follow]})["input_tokens"]
        self.assertGreater(count, compacted["usage"]["output_tokens"] + 10)  # its heading, the question, the template
        helper = self.helper("--model", FILES[0], engine="llama",
                             env={"FM_ENGINE_LLAMA_CTX": str(compacted["usage"]["input_tokens"] + 2)})
        result = helper.call("responses.compact", {"model": model, "input": turns}, timeout=60 * SLOW)
        self.assert_error(result, "CONTEXT_OVERFLOW")
        self.assertNotIn("output", result)

    def test_a_summary_that_repeats_itself(self):
        """In summaries of these conversations the model repeats itself without end. A second try follows, and at worst the text
        is cut."""
        count = "List the numbers from one to thirty in words."
        numbers = "one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen, fifteen"
        loop = 'for (int i = 1; i <= 10; i++) printf("%d\\n", i);'
        back = 'for (int i = 10; i >= 1; i--) printf("%d\\n", i);'
        context = 280  # small, so that a loop soon ends; the fake engine tests a loop of 1,024 tokens
        helper = self.helper("--model", FILES[0], engine="llama",
                             env={"FM_ENGINE_LLAMA_CTX": str(context), "FM_ENGINE_LLAMA_THREADS": "1"})
        model = helper.call("models.list")["data"][0]["id"]
        again = 0
        for turns in ((count, numbers, "Go on.", "sixteen, seventeen, eighteen, nineteen, twenty"),
                      ("Write a C loop that prints 1 to 10.", loop, "And backwards?", back)):
            items = [{"role": ("user", "assistant")[i % 2], "content": turn} for i, turn in enumerate(turns)]
            result = helper.call("responses.compact", {"model": model, "input": items}, timeout=120 * SLOW)
            self.assertTrue(result["ok"], result)
            room = context - result["usage"]["input_tokens"]
            again += result["usage"]["output_tokens"] > room
            self.assertLessEqual(result["usage"]["output_tokens"], 2 * room)
            self.assertRegex(result["output"][0]["encrypted_content"], r"(?s)^fm1:.*\w")
        self.assertGreater(again, 0, "another machine may round otherwise, but hardly for both")

    def test_a_chat_template_of_the_host_s(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write("{{ messages[0].content }}")
            file.flush()
            helper = self.helper("--model", FILES[0], "--chat-template", file.name, engine="llama")
            result = helper.call("responses.create", {"input": "hi", "max_output_tokens": 1}, timeout=60 * SLOW)
            self.assertEqual(result["response"]["usage"]["input_tokens"], 1)
        helper = self.helper("--model", FILES[0], "--chat-template", file.name, engine="llama")
        result = helper.call("responses.create", {"input": "hi"}, timeout=60 * SLOW)
        self.assertEqual((result["ok"], result["error"]["code"]), (False, "UNAVAILABLE"))
        self.assertIn(file.name, result["error"]["detail"])

    def test_seed_reproduces(self):
        texts = [self.text(self.ask(STORY, temperature=1.2, seed=seed)) for seed in (7, 7, 8)]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_token_limit_counts_tokens(self):
        response = self.ask(STORY, max_output_tokens=12)["response"]
        self.assertEqual((response["status"], response["usage"]["output_tokens"]), ("incomplete", 12))

    def test_instructions_reach_the_model(self):
        plain = self.ask("Hello")["response"]["usage"]
        instructed = self.ask("Hello", instructions="You answer in French only, and very briefly.")["response"]["usage"]
        self.assertNotEqual(plain["input_tokens"], instructed["input_tokens"])

    def test_stop_string(self):
        whole = self.text(self.ask("Count from one to ten, in words."))
        word = whole.split()[3]
        cut = self.ask("Count from one to ten, in words.", stop=[word])
        self.assertEqual(self.text(cut), whole[: whole.index(word)])
        self.assertEqual(cut["response"]["status"], "completed")

    def test_overflow(self):
        error = self.assert_error(self.shared.call("responses.create", {"input": LONG * 3}), "CONTEXT_OVERFLOW")
        self.assertIn("8192", error["detail"])


class Fast(ModelTest):
    """Tests the engine with its default: nothing is computed twice, and several answers are made at the same time."""

    REPEATABLE = ""

    def test_a_second_turn(self):
        """With previous_response_id, the prompt is the whole conversation, and everything that was computed is cached."""
        first = self.ask("Name a river in Austria.")["response"]
        second = self.ask("And its longest tributary?", previous_response_id=first["id"])["response"]["usage"]
        turns = [{"role": "user", "content": "Name a river in Austria."}, *first["output"],
                 {"role": "user", "content": "And its longest tributary?"}]
        replay = self.ask(turns)["response"]["usage"]
        self.assertEqual(second["input_tokens"], replay["input_tokens"])
        before = first["usage"]["input_tokens"] + first["usage"]["output_tokens"]
        cached = second["input_tokens_details"]["cached_tokens"]
        self.assertLessEqual(cached, before + 1)
        self.assertGreaterEqual(cached, first["usage"]["input_tokens"] - 1)

    def test_second_turn_reuses_the_prefix(self):
        self.ask(STORY + LONG[:1000])
        usage = self.ask(STORY + LONG[:1100])["response"]["usage"]
        self.assertGreater(usage["input_tokens_details"]["cached_tokens"], 100)
        self.assertLess(usage["input_tokens_details"]["cached_tokens"], usage["input_tokens"])
        usage = self.ask(STORY + LONG[:1100])["response"]["usage"]
        self.assertEqual(usage["input_tokens_details"]["cached_tokens"], usage["input_tokens"] - 1)

    def test_weights_move_into_huge_pages(self):
        """When the engine is idle, the weights move from the file's pages to huge pages, and answers stay the same."""
        try:
            with open("/sys/kernel/mm/transparent_hugepage/enabled") as setting:
                if "[never]" in setting.read():
                    self.skipTest("the kernel gives no huge pages here")
        except FileNotFoundError:
            self.skipTest("the engine learns by /sys that there are huge pages, and there is no /sys here")
        helper = self.helper("--model", FILES[0], engine="llama")
        before = self.answer(helper)
        pid = helper.engine_pid()

        def in_file():
            """Returns how many bytes of the file the engine still has in memory, as pages of the file."""
            with open(f"/proc/{pid}/smaps") as smaps:
                parts = re.findall(r"\.gguf\n(?:\w+:.*\n)*?Rss: +(\d+) kB", smaps.read())
            return sum(map(int, parts)) * 1024
        wait_until(lambda: in_file() < os.path.getsize(FILES[0]) / 8, "the move of what is read often")
        self.assertEqual(self.answer(helper), before)
        with open(f"/proc/{pid}/smaps_rollup") as rollup:
            kib = next(int(line.split()[1]) for line in rollup if line.startswith("AnonHugePages:"))
        self.assertGreater(kib, 16 << 10)  # the embeddings at least: llama.cpp may have copied the rest (AMX), and reads its copy

    def answer(self, helper):
        call = self.create(helper, STORY, max_output_tokens=20, temperature=0, ignore_eos=True)
        return helper.collect(call, timeout=120 * SLOW)[1]["response"]["output"][0]["content"]

    def test_requests_side_by_side(self):
        """A short answer does not wait for a long one. Requests beyond the number of slots wait."""
        long = self.create(self.shared, STORY, max_output_tokens=120, ignore_eos=True)
        short = self.create(self.shared, "Say hello.", max_output_tokens=4)
        more = [self.create(self.shared, f"Say the number {i}.", max_output_tokens=8) for i in range(6)]
        check_stream(self, *self.shared.collect(short, timeout=120 * SLOW))
        replies = [message["id"] for message in self.shared.backlog if "method" not in message]
        self.assertNotIn(long, replies, "the long answer is whole before the short one")
        for call in (*more, long):
            check_stream(self, *self.shared.collect(call, timeout=120 * SLOW))


class Completions(ModelTest):
    def complete(self, prompt, **params):
        return self.shared.call("completions.create", {"prompt": prompt, "temperature": 0, **params}, timeout=120 * SLOW)

    def test_a_text_goes_on(self):
        result = self.complete("One, two, three, four,", max_tokens=4)
        choice = result["completion"]["choices"][0]
        self.assertTrue(choice["text"].startswith(" five"), choice)
        self.assertEqual((choice["finish_reason"], result["completion"]["usage"]["completion_tokens"]), ("length", 4))
        self.assertEqual(self.complete("One, two, three, four,")["completion"]["usage"]["completion_tokens"], 16)
        echo = self.complete("One, two, three, four,", max_tokens=4, echo=True)["completion"]["choices"][0]["text"]
        self.assertEqual(echo, "One, two, three, four," + choice["text"])

    def test_a_suffix_needs_a_model_for_it(self):
        error = self.assert_error(self.complete("def f():", suffix="return 1"), "INVALID_REQUEST", "suffix", "invalid_value")
        self.assertIn("suffix", error["detail"])


class InputTokens(ModelTest):
    TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {"city": {}}}}

    def test_the_count_is_that_of_the_request(self):
        call = [{"type": "function_call", "call_id": "1", "name": "get_weather", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "1", "output": "sunny"}]
        for body in ({"input": "Hello <|im_end|> there"}, {"input": STORY, "instructions": "Be brief."},
                     {"input": "Hi", "tools": [self.TOOL]}, {"input": "Hi", "tools": [self.TOOL], "tool_choice": "none"},
                     {"input": [{"role": "user", "content": "Hi"}, *call, {"role": "user", "content": "So?"}]},
                     {"input": "Hi", "text": {"format": {"type": "json_object"}}}):
            with self.subTest(str(body)):
                counted = self.shared.call("responses.input_tokens", body, timeout=120 * SLOW)
                created = self.shared.call("responses.create", {**body, "max_output_tokens": 1}, timeout=120 * SLOW)
                if not counted["ok"]:
                    counted.pop("error"), created.pop("error")  # the engine has no llguidance, and reports this to both
                    self.assertEqual(counted, created)
                    continue
                self.assertEqual(counted["input_tokens"], created["response"]["usage"]["input_tokens"])


class Stops(ModelTest):
    def assert_idle(self):
        """Asserts that the engine uses no CPU after its work was stopped: three quiet checks in a row."""
        pid = self.shared.engine_pid()
        self.assert_undisturbed(pid, "an engine that does not stop within its grace is ended")
        quiet = []
        def look():
            self.assert_undisturbed(pid and wire.alive(pid), "its grace was over before it came to the abort")
            before = cpu_ticks(pid)
            time.sleep(0.2)
            quiet.append(cpu_ticks(pid) - before <= 1)
            return quiet[-3:] == [True] * 3
        wait_until(look, "an idle engine")

    def warm(self):
        self.shared.call("responses.create", {"input": "x", "max_output_tokens": 1}, timeout=120 * SLOW)

    def test_total_limit_in_prefill(self):
        self.warm()
        before = time.monotonic()
        events, result = self.shared.collect(self.create(self.shared, LONG, fm={"timeout_ms": 200}))
        took = time.monotonic() - before
        error = self.assert_error(result, "TIMEOUT")
        self.assertEqual((error["limit"], error["limit_ms"]), ("total", 200))
        self.assertEqual([e for e in events if e["type"].endswith("delta")], [])
        self.assert_soon(took, 0.2 + 0.5 * SLOW)
        self.assert_idle()

    def test_cancel_in_prefill_and_decode(self):
        self.warm()
        for prompt, event in ((LONG, "response.in_progress"), (STORY, "response.output_text.delta")):
            call = self.create(self.shared, prompt)
            self.shared.event(call, event, keep=True)
            before = time.monotonic()
            cancel = self.shared.start("responses.cancel", {"request_id": call})
            events, result = self.shared.collect(call)
            self.assert_soon(time.monotonic() - before, 0.5 * SLOW)
            self.assert_error(result, "CANCELLED")
            check_stream(self, events, result)
            self.assertTrue(self.shared.reply(cancel)["result"]["ok"])
            self.assert_idle()

    def test_killed_in_mid_stream(self):
        call = self.create(self.shared, STORY)
        self.shared.event(call, "response.output_text.delta", keep=True, timeout=120 * SLOW)
        before = time.monotonic()
        os.kill(self.shared.engine_pid(), signal.SIGKILL)
        pings = [self.shared.ping_ms() for _ in range(10)]
        events, result = self.shared.collect(call)
        self.assert_soon(time.monotonic() - before, 0.5 * SLOW)
        self.assert_soon(max(pings), 50 * SLOW)
        self.assertEqual([e["type"] for e in events][-2:], ["error", "response.failed"])
        self.assert_error(result, "INTERNAL")
        self.assertTrue(self.shared.call("responses.create", {"input": "Hi", "max_output_tokens": 4}, timeout=120 * SLOW)["ok"])


class Budget(HelperTest):
    def load(self, budget):
        helper = self.helper("--model", FILES[0], "--memory-budget", budget, engine="llama")
        return helper.call("models.load", {"model": "default"}, timeout=120 * SLOW)

    def test_what_would_be_enough_is(self):
        """This also holds if the front only knows the model's file."""
        error = self.assert_error(self.load("32M"), "UNAVAILABLE")
        enough = re.search(r"(\d+M) would be enough", error["detail"]).group(1)
        result = self.load(enough)
        self.assertTrue(result["ok"], result)
        self.assertLess(int(enough[:-1]) << 20, 1.2 * result["memory_bytes"])


class BrokenFiles(HelperTest):
    def test_truncated_and_damaged(self):
        with open(FILES[0], "rb") as f:
            head = f.read(1 << 20)
        damaged = bytearray(head)
        damaged[8:24] = b"\xff" * 16  # the counts of tensors and of keys
        with tempfile.TemporaryDirectory() as folder:
            for name, data in (("magic-only", b"GGUF"), ("cut-in-header", head[:4096]), ("cut-in-weights", head),
                               ("huge-counts", bytes(damaged))):
                with self.subTest(name):
                    path = os.path.join(folder, name + ".gguf")
                    with open(path, "wb") as f:
                        f.write(data)
                    helper = self.helper("--model", path, engine="llama")
                    result = helper.call("responses.create", {"input": "x"}, timeout=60 * SLOW)
                    self.assertIn(path, self.assert_error(result, "UNAVAILABLE")["detail"])
                    self.assertTrue(helper.call("health.ping")["ok"])

    def test_stderr_stays_quiet(self):
        import subprocess
        with tempfile.NamedTemporaryFile(suffix=".gguf") as f:
            f.write(b"GGUF and then nothing that makes sense")
            f.flush()
            process = subprocess.Popen([os.path.join(wire.BIN, "fm-proxy"), "--model", f.name], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            process.stdin.write(wire.frame({"jsonrpc": "2.0", "id": 1, "method": "responses.create", "params": {"input": "x"}}))
            process.stdin.flush()
            header = process.stdout.readline()
            process.stdout.read(2 + int(header.split()[1]))
            _, err = process.communicate()
            self.assertEqual(err, b"")


if __name__ == "__main__":
    for missing in [p for p in (ENGINE, FILES[0] if FILES else MODELS + "/*.gguf") if not os.path.exists(p)]:
        print(f"skipped: there is no {missing}")
        sys.exit(77)
    wire.main()
