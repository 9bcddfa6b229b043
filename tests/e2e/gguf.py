"""Reads and writes GGUF files for tests: headers, a tiny model whose weights are all zero, and a copy of a model with only its
first layers. Uses only Python's standard library.

    file = magic "GGUF", version, number of tensors, number of pairs, the pairs, the tensors' descriptions, padding, data
"""

import atexit
import functools
import os
import re
import shutil
import struct
import sys
import tempfile

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}
ALIGNMENT = 32
TYPE_F32 = 0


def u32(n):
    return struct.pack("<I", n & 0xFFFFFFFF)


def u64(n):
    return struct.pack("<Q", n & 0xFFFFFFFFFFFFFFFF)


def string(text):
    text = text if isinstance(text, bytes) else text.encode()
    return u64(len(text)) + text


def value(kind, content):
    """Returns the bytes of a value, without its type. An array's content is (type, items)."""
    if kind == STRING:
        return string(content)
    if kind == ARRAY:
        item, items = content
        return u32(item) + u64(len(items)) + b"".join(value(item, i) for i in items)
    return struct.pack("<" + FORMATS[kind], content)


def pair(key, kind, content):
    return string(key) + u32(kind) + value(kind, content)


def tensor(name, dims, offset, kind=TYPE_F32):
    return string(name) + u32(len(dims)) + b"".join(u64(d) for d in dims) + u32(kind) + u64(offset)


def header(pairs, tensors, version=3, pair_count=None, tensor_count=None):
    """A file's header. `pairs` and `tensors` are bytes."""
    return (b"GGUF" + u32(version) + u64(len(tensors) if tensor_count is None else tensor_count)
            + u64(len(pairs) if pair_count is None else pair_count) + b"".join(pairs) + b"".join(tensors))


def padded(data, alignment=ALIGNMENT):
    return data + b"\0" * (-len(data) % alignment)


class Reader:
    """The header of a file: where its parts lie."""

    def __init__(self, data):
        self.data = data
        self.at = 4
        self.version, = self._take("I")
        self.tensor_count, self.pair_count = self._take("QQ")
        self.pairs = [self._pair() for _ in range(self.pair_count)]  # (key, type, first byte, byte after)
        self.pairs_end = self.at
        self.types = {}  # name: type of the tensor
        self.tensors = dict(self._tensor() for _ in range(self.tensor_count))  # name: (dims, offset in the data)
        self.end = self.at
        self.data_start = self.end + (-self.end % ALIGNMENT)

    def _take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def _string(self):
        length, = self._take("Q")
        self.at += length
        return self.data[self.at - length:self.at]

    def _skip(self, kind):
        if kind == STRING:
            self._string()
        elif kind == ARRAY:
            item, count = self._take("IQ")
            for _ in range(count):
                self._skip(item)
        else:
            self.at += struct.calcsize(FORMATS[kind])

    def _tensor(self):
        name = self._string().decode()
        count, = self._take("I")
        dims = self._take(f"{count}Q")
        self.types[name], offset = self._take("IQ")
        return name, (dims, offset)

    def _value(self, kind):
        if kind == STRING:
            return self._string().decode()
        if kind != ARRAY:
            return self._take(FORMATS[kind])[0]
        item, count = self._take("IQ")
        return [self._value(item) for _ in range(count)]

    def _pair(self):
        start = self.at
        key = self._string().decode()
        kind, = self._take("I")
        self._skip(kind)
        return key, kind, start, self.at

    def values(self):
        """The value of each pair, by its key."""
        at, found = self.at, {}
        for key, kind, start, _ in self.pairs:
            self.at = start + 8 + len(key.encode()) + 4
            found[key] = self._value(kind)
        self.at = at
        return found

    def with_more(self, pairs):
        """The header with more pairs at its end, padded up to the tensors' data."""
        head = b"GGUF" + u32(self.version) + u64(self.tensor_count) + u64(self.pair_count + len(pairs))
        return padded(head + self.data[24:self.pairs_end] + b"".join(pairs) + self.data[self.pairs_end:self.end])

    def with_pair(self, key, new):
        """The header with another pair in place of `key`, padded up to the tensors' data."""
        out = bytearray(b"GGUF" + u32(self.version) + u64(self.tensor_count) + u64(self.pair_count))
        for name, _, start, end in self.pairs:
            out += new if name == key else self.data[start:end]
        out += self.data[self.pairs_end:self.end]
        return padded(bytes(out))


# ---- a tiny model: one layer, all weights zero ----

EMBD, HEADS, FF, CONTEXT = 32, 2, 32, 64


def byte_tokens():
    """GPT-2's names for the 256 bytes, and one control token."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    names, more = {}, 0
    for byte in range(256):
        names[byte] = chr(byte) if byte in plain else chr(256 + more)
        more += byte not in plain
    return [names[b] for b in range(256)] + ["<|end|>", "ab"]


def tiny_pairs():
    """(key, type, content) of each pair of the tiny model."""
    tokens = byte_tokens()
    return [
        ("general.architecture", STRING, "llama"),
        ("general.name", STRING, "tiny"),
        ("general.alignment", U32, ALIGNMENT),
        ("llama.context_length", U32, CONTEXT),
        ("llama.embedding_length", U32, EMBD),
        ("llama.block_count", U32, 1),
        ("llama.feed_forward_length", U32, FF),
        ("llama.attention.head_count", U32, HEADS),
        ("llama.attention.head_count_kv", U32, HEADS),
        ("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
        ("llama.rope.dimension_count", U32, EMBD // HEADS),
        ("llama.rope.freq_base", F32, 10000.0),
        ("llama.vocab_size", U32, len(tokens)),
        ("tokenizer.ggml.model", STRING, "gpt2"),
        ("tokenizer.ggml.pre", STRING, "default"),
        ("tokenizer.ggml.tokens", ARRAY, (STRING, tokens)),
        ("tokenizer.ggml.token_type", ARRAY, (I32, [1] * 256 + [3, 1])),
        ("tokenizer.ggml.merges", ARRAY, (STRING, ["a b"])),
        ("tokenizer.ggml.bos_token_id", U32, 256),
        ("tokenizer.ggml.eos_token_id", U32, 256),
        ("tokenizer.chat_template", STRING, "{% for m in messages %}{{ m.content }}{% endfor %}"),
    ]


def tiny_tensors():
    """(name, dims) of each tensor of the tiny model."""
    vocab = len(byte_tokens())
    square, up, down = [EMBD, EMBD], [EMBD, FF], [FF, EMBD]
    block = [("attn_norm", [EMBD]), ("attn_q", square), ("attn_k", square), ("attn_v", square), ("attn_output", square),
             ("ffn_norm", [EMBD]), ("ffn_gate", up), ("ffn_up", up), ("ffn_down", down)]
    return ([("token_embd.weight", [EMBD, vocab]), ("output_norm.weight", [EMBD]), ("output.weight", [EMBD, vocab])]
            + [(f"blk.0.{name}.weight", dims) for name, dims in block])


def wide(width, kv_heads=(1,), context=8192):
    """A file whose keys and values have `width` numbers per head; `kv_heads` has one number for each layer. The file is small."""
    embd, ff, layers = 2, 8, len(kv_heads)
    values = {"llama.context_length": context, "llama.embedding_length": embd, "llama.block_count": layers,
              "llama.feed_forward_length": ff, "llama.attention.head_count": 1, "llama.attention.head_count_kv": 1,
              "llama.rope.dimension_count": width}
    pairs = [(key, kind, values.get(key, content)) for key, kind, content in tiny_pairs()]
    if layers > 1:
        pairs = [(key, ARRAY, (U32, kv_heads)) if key.endswith("head_count_kv") else (key, kind, content)
                 for key, kind, content in pairs]
    pairs += [("llama.attention.key_length", U32, width), ("llama.attention.value_length", U32, width)]
    vocab, tall = len(byte_tokens()), [embd, width]
    block = [("attn_norm", [embd]), ("attn_q", tall), ("attn_k", tall), ("attn_v", tall), ("attn_output", [width, embd]),
             ("ffn_norm", [embd]), ("ffn_gate", [embd, ff]), ("ffn_up", [embd, ff]), ("ffn_down", [ff, embd])]
    tensors = ([("token_embd.weight", [embd, vocab]), ("output_norm.weight", [embd]), ("output.weight", [embd, vocab])]
               + [(f"blk.{i}.{name}.weight", dims) for i in range(layers) for name, dims in block])
    return whole([pair(*p) for p in pairs], tensors)


def size(dims):
    n = 4
    for d in dims:
        n *= d
    return n


def tiny(pairs=None, tensors=None, **counts):
    """The whole tiny file. `pairs` and `tensors` (lists of bytes) replace the good ones."""
    pairs = [pair(*p) for p in tiny_pairs()] if pairs is None else pairs
    return whole(pairs, tiny_tensors(), tensors, **counts)


def chain(letters, strength):
    """The tiny model with weights: after each of `letters`, the next one in the circle has the logit `strength`."""
    data, vocab = bytearray(tiny()), byte_tokens()
    reader = Reader(data)

    def put(name, row, column, number):
        dims, offset = reader.tensors[name]
        struct.pack_into("<f", data, reader.data_start + offset + 4 * (row * dims[0] + column), number)

    for column in range(EMBD):
        put("output_norm.weight", 0, column, 1.0)
    for token, name in enumerate(vocab):
        put("token_embd.weight", token, letters.index(name) if name in letters else EMBD - 1, 1.0)
    for place, letter in enumerate(letters):  # the norm multiplies a vector with a single 1 by the square root of its length
        put("output.weight", vocab.index(letters[(place + 1) % len(letters)]), place, strength / EMBD ** 0.5)
    return bytes(data)


def whole(pairs, tensors, described=None, **counts):
    """A file with room for `tensors`, a list of (name, dims). `described` (bytes each) replaces their descriptions."""
    good, offset = [], 0
    for name, dims in tensors:
        good.append(tensor(name, dims, offset))
        offset += size(dims) + (-size(dims) % ALIGNMENT)
    return padded(header(pairs, good if described is None else described, **counts)) + b"\0" * offset


# ---- files that exist as long as the process ----

def kept(name, data):
    """The path of a file with this content, in a folder that is removed when the process ends."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    path = os.path.join(folder.name, name)
    with open(path, "wb") as file:
        file.write(data)
    return path


# ---- a model's first layers ----

def first_layers(data, count):
    """A whole model's file, but with only `count` of its layers."""
    reader, described, weights = Reader(data), [], bytearray()
    places = sorted((offset, name) for name, (_, offset) in reader.tensors.items())
    ends = [offset for offset, _ in places[1:]] + [len(data) - reader.data_start]
    for (start, name), end in zip(places, ends):
        layer = re.match(r"blk\.(\d+)\.", name)
        if not layer or int(layer[1]) < count:
            described.append(tensor(name, reader.tensors[name][0], len(weights), reader.types[name]))
            weights += padded(data[reader.data_start + start:reader.data_start + end])
    pairs = [pair(key, U32, count) if key.endswith(".block_count") else data[start:end] for key, _, start, end in reader.pairs]
    return padded(header(pairs, described)) + bytes(weights)


@functools.cache
def shallow(model, layers=4):
    """The path of a copy of `model` with only its first layers. It has the tokens and the template of the whole model, and
    takes a fraction of its time. Its answers mean nothing, and its tokens are often almost equally likely."""
    with open(model, "rb") as file:
        return kept("shallow-" + os.path.basename(model), first_layers(file.read(), layers))


if __name__ == "__main__":  # gguf.py MODEL COPY, used by the tests in JavaScript
    shutil.copyfile(shallow(sys.argv[1]), sys.argv[2])
