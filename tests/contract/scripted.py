"""Models of other families, with their chat templates and control tokens, that say what a test wants.

    models = Models(MODEL, FOLDER, TEMPLATES)      files are made in FOLDER, and belong to the caller
    prompts = Prompts(DRIVER, models)              tests/contract/prompts.c: the prompts that the engine makes
    prompts.ask("Qwen3-Coder", messages, tools=[...])
    engine = Scripted(PROGRAM, LIBRARY, models, "Qwen3-Coder")      LIBRARY: tests/contract/scripted.c
    outcome = engine.run(messages, "Hello!<|im_end|>", tools=[...])

A model has the commonest tokens of MODEL, then the control tokens of its family, and only a few weights, which are all zero:
the script decides what it says, below the sampler. `outcome.left` is true if the answer differs from the script. Uses only
Python's standard library.
"""

import itertools
import json
import mmap
import os
import re
import struct
import subprocess
import sys

from engine import Engine, Outcome

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import gguf  # noqa: E402

CONTEXT = 65536
TOKENS = 4096  # how many of MODEL's tokens: the first are the commonest, and include all bytes
HEADER = 4 << 20  # bytes that hold the model's header
SCRIPT_MAX = 1 << 16  # scripted.c
CONTROL, USER_DEFINED = 3, 4  # types of tokens
BOS, EOS = "<s>", "</s>"


def bracketed(pairs, singles):
    return [f"[{slash}{name}]" for name in pairs.split() for slash in ("", "/")] + [f"[{name}]" for name in singles.split()]


# Any text between such brackets counts as a control token in a template. The tokenizers of some families have more control
# tokens.
MARK = re.compile(r"<\|[^<>|\s'\"{}]+\|>|<｜[^<>\s'\"{}]+｜>|<\|[a-z_]+>|<[a-z_]+\|>|<seed:[a-z_]+>|</?(?:start|end)_of_[a-z]+>")
MORE = {
    "Ministral": bracketed("INST SYSTEM_PROMPT AVAILABLE_TOOLS TOOL_RESULTS THINK", "TOOL_CALLS ARGS IMG"),
    "mistral|Devstral|Apriel-1.5": bracketed("INST SYSTEM_PROMPT AVAILABLE_TOOLS TOOL_RESULTS",
                                             "TOOL_CALLS CALL_ID ARGS TOOL_CONTENT IMG"),
    "GLM": ["<|endoftext|>"],
    "gpt-oss": ["<|constrain|>", "<|call|>", "<|return|>"],
    "Solar": ["<|calls|>", "<|flush|>"],
    "gemma-4": ['<|"|>'],
}
# These texts are tokens too, but a user's text may also have them.
TAGS = re.compile(r"</?(?:think|tool_call|tool_response|arg_key|arg_value|minimax:tool_call)>")
# These texts are also tokens, in the files that llama.cpp makes from a family's model.
VISIBLE = {
    "gemma-4-31B-it$": ["<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>",
                        '<|"|>'],
}
# The token that ends a turn, if it is neither EOS nor known to llama.cpp.
ENDS = {
    "GLM": "<|user|>", "gpt-oss": "<|return|>", "Apertus": "<|assistant_end|>", r"GigaChat3\.1": "<|message_sep|>",
    "MiniMax-M1": "<end_of_sentence>", "MiniMax-M[23]": "[e~[", "Nemotron-Nano-v2": "<SPECIAL_12>", "Seed-OSS": "<seed:eos>",
    "Reka": "<sep>", "Spark|DeepSeek": "<｜end▁of▁sentence｜>", "granite": "<|end_of_text|>", "ling-3": "<|role_end|>",
    "Laguna": "</assistant>", "Hy3": "<｜hy_eos:opensource｜>", "Kimi-K3": "<|end_of_msg|>", "glimmer": "<|eot|>",
    "Solar": "<|flush|>", "rwkv": "\n\n", "Cohere": "<|END_OF_TURN_TOKEN|>",
}


def of_family(table, name, default):
    return next((value for pattern, value in table.items() if re.search(pattern, name, re.IGNORECASE)), default)


def names_in(templates):
    return sorted(name[:-len(".jinja")] for name in os.listdir(templates) if name.endswith(".jinja"))


class Models:
    def __init__(self, model, folder, templates):
        with open(model, "rb") as file:
            values = gguf.Reader(file.read(HEADER)).values()
        self.folder, self.templates, self.made = folder, templates, {}
        self.known, self.types = (values["tokenizer.ggml." + key][:TOKENS] for key in ("tokens", "token_type"))
        self.pre = values["tokenizer.ggml.pre"]
        known = set(self.known)
        self.merges = [merge for merge in values["tokenizer.ggml.merges"] if merge.replace(" ", "") in known]

    def template(self, name):
        return os.path.join(self.templates, name + ".jinja")

    def tokens(self, name):
        """Returns {text: type} of the family's tokens that are not in the vocabulary."""
        with open(self.template(name), encoding="utf-8") as file:
            text = file.read()
        found = [BOS, EOS, of_family(ENDS, name, EOS), *of_family(MORE, name, []), *MARK.findall(text)]
        tokens = dict.fromkeys(found, CONTROL)
        tokens.update(dict.fromkeys(set(TAGS.findall(text)) - set(tokens), USER_DEFINED))
        tokens.update(dict.fromkeys(of_family(VISIBLE, name, []), USER_DEFINED))
        known = set(self.known)
        return {text: kind for text, kind in tokens.items() if text not in known}

    def path(self, name):
        """The GGUF file of the family that has the template `name`."""
        if name not in self.made:
            self.made[name] = os.path.join(self.folder, name + ".gguf")
            with open(self.made[name], "wb") as file:
                file.write(self._file(self.tokens(name), of_family(ENDS, name, EOS)))
        return self.made[name]

    def _file(self, more, end):
        tokens, count = [*self.known, *more], len(self.known) + len(more)
        own = {"llama.context_length": CONTEXT, "llama.embedding_length": EMBD, "llama.feed_forward_length": FF,
               "llama.attention.head_count": 1, "llama.attention.head_count_kv": 1, "llama.rope.dimension_count": EMBD,
               "llama.vocab_size": count, "tokenizer.ggml.token_type": (gguf.I32, self.types + list(more.values())),
               "tokenizer.ggml.tokens": (gguf.STRING, tokens), "tokenizer.ggml.merges": (gguf.STRING, self.merges),
               "tokenizer.ggml.pre": self.pre,
               "tokenizer.ggml.bos_token_id": tokens.index(BOS), "tokenizer.ggml.eos_token_id": tokens.index(end)}
        pairs = [gguf.pair(key, kind, own.get(key, content)) for key, kind, content in gguf.tiny_pairs()]
        pairs.append(gguf.pair("tokenizer.ggml.add_bos_token", gguf.BOOL, False))
        return gguf.whole(pairs, tensors(count))


EMBD, FF = 2, 8


def tensors(vocab):
    square, up, down = [EMBD, EMBD], [EMBD, FF], [FF, EMBD]
    block = [("attn_norm", [EMBD]), ("attn_q", square), ("attn_k", square), ("attn_v", square), ("attn_output", square),
             ("ffn_norm", [EMBD]), ("ffn_gate", up), ("ffn_up", up), ("ffn_down", down)]
    return ([("token_embd.weight", [EMBD, vocab]), ("output_norm.weight", [EMBD]), ("output.weight", [EMBD, vocab])]
            + [(f"blk.0.{name}.weight", dims) for name, dims in block])


class Prompts:
    """One driver process for all families."""

    def __init__(self, driver, models):
        self.models = models
        self.process = subprocess.Popen([driver], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, name, messages, **params):
        """The driver's answer: prompts.c describes it."""
        self.send(name, messages, **params)
        return self.receive()

    def send(self, name, messages, **params):
        line = {"model": self.models.path(name), "template": self.models.template(name), "messages": messages, **params}
        self.process.stdin.write(json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        assert line, "the driver ended"
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        status = self.process.wait()
        self.process.stdout.close()
        assert status == 0, status


class Script:
    """The script of engines that run with `environment`. The file in `folder` may be removed once the engines run."""

    numbers = itertools.count(1)

    def __init__(self, folder):
        self.path = os.path.join(folder, f"script{next(self.numbers)}")
        with open(self.path, "w+b") as file:
            file.truncate(16 + SCRIPT_MAX)
            self.map = mmap.mmap(file.fileno(), 0)

    def environment(self, library):
        options = "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")
        return {"LD_PRELOAD": library, "FM_SCRIPTED": self.path, "ASAN_OPTIONS": options,
                "FM_ENGINE_LLAMA_CTX": str(CONTEXT), "FM_ENGINE_LLAMA_SPECULATION": "off"}

    def write(self, text):
        text = text.encode()
        self.map[16:16 + len(text)] = text
        self.map[:12] = struct.pack("<III", next(self.numbers), len(text), 0)

    def left(self):
        return struct.unpack_from("<I", self.map, 8)[0] == 1


class Scripted:
    """An engine with the model of a family. What it says is the script of each run."""

    def __init__(self, program, library, models, name, env=None):
        self.script = Script(models.folder)
        self.engine = Engine(program, {**self.script.environment(library), **(env or {})})
        self.engine.initialize(log_level="info")
        result, _ = self.engine.load(models.path(name), chat_template=models.template(name))
        assert result["ok"], result

    def events(self, messages, script, **params):
        self.last = script
        self.script.write(script)
        params = {"temperature": 0, "max_tokens": len(script.encode()) + 16, **params}
        return list(self.engine.events(self.engine.start(messages, **params)))

    def run(self, messages, script, **params):
        outcome = Outcome(self.events(messages, script, **params))
        outcome.left = self.script.left()
        return outcome

    def close(self):
        self.engine.close()
        self.script.map.close()
