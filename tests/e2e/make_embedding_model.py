"""
Makes the tests' embedding model: a GGUF file of a BERT, from the files that its authors publish.

    make_embedding_model.py FOLDER FILE

FOLDER holds config.json, vocab.txt, model.safetensors and 1_Pooling/config.json. Weights stay 32-bit floats. Uses only
Python's standard library; the same input gives the same bytes.
"""

import json
import os
import struct
import sys

import gguf

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
NORMAL, CONTROL = 1, 3  # types of tokens
MEAN, CLS = 1, 2  # llama.cpp's pooling types

# A tensor's name in the safetensors file, and in GGUF.
TENSORS = [
    ("embeddings.word_embeddings", "token_embd"),
    ("embeddings.token_type_embeddings", "token_types"),
    ("embeddings.position_embeddings", "position_embd"),
    ("embeddings.LayerNorm", "token_embd_norm"),
]
BLOCK_TENSORS = [
    ("attention.self.query", "attn_q"),
    ("attention.self.key", "attn_k"),
    ("attention.self.value", "attn_v"),
    ("attention.output.dense", "attn_output"),
    ("attention.output.LayerNorm", "attn_output_norm"),
    ("intermediate.dense", "ffn_up"),
    ("output.dense", "ffn_down"),
    ("output.LayerNorm", "layer_output_norm"),
]


def read_json(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file)


class SafeTensors:
    """A file with an 8-byte length, JSON of that length, and the tensors after it."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        length, = struct.unpack_from("<Q", data)
        self.entries = json.loads(data[8:8 + length])
        self.data = data[8 + length:]

    def take(self, name):
        """(dimensions in GGUF's order, bytes) of the tensor."""
        entry = self.entries[name]
        assert entry["dtype"] == "F32", (name, entry["dtype"])
        start, end = entry["data_offsets"]
        return entry["shape"][::-1], self.data[start:end]


def token(text):
    """The token in the form of llama.cpp's vocabularies, which mark a word's beginning, not its continuation."""
    if text in SPECIAL:
        return text
    return text[2:] if text.startswith("##") else "\u2581" + text


def pairs(folder):
    config = read_json(folder, "config.json")
    pooling = read_json(folder, "1_Pooling", "config.json")
    with open(os.path.join(folder, "vocab.txt"), encoding="utf-8") as file:
        words = file.read().split("\n")
    words = words[:-1] if words[-1] == "" else words
    assert len(words) == config["vocab_size"]
    assert pooling["pooling_mode_mean_tokens"] != pooling["pooling_mode_cls_token"]
    ids = {name: words.index(f"[{name}]") for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}
    return [
        ("general.architecture", gguf.STRING, "bert"),
        ("general.alignment", gguf.U32, gguf.ALIGNMENT),
        ("general.file_type", gguf.U32, 0),
        ("bert.context_length", gguf.U32, config["max_position_embeddings"]),
        ("bert.embedding_length", gguf.U32, config["hidden_size"]),
        ("bert.feed_forward_length", gguf.U32, config["intermediate_size"]),
        ("bert.block_count", gguf.U32, config["num_hidden_layers"]),
        ("bert.attention.head_count", gguf.U32, config["num_attention_heads"]),
        ("bert.attention.layer_norm_epsilon", gguf.F32, config["layer_norm_eps"]),
        ("bert.attention.causal", gguf.BOOL, False),
        ("bert.pooling_type", gguf.U32, MEAN if pooling["pooling_mode_mean_tokens"] else CLS),
        ("tokenizer.ggml.model", gguf.STRING, "bert"),
        ("tokenizer.ggml.tokens", gguf.ARRAY, (gguf.STRING, [token(word) for word in words])),
        ("tokenizer.ggml.token_type", gguf.ARRAY,
         (gguf.I32, [CONTROL if word in SPECIAL else NORMAL for word in words])),
        ("tokenizer.ggml.token_type_count", gguf.U32, config["type_vocab_size"]),
        ("tokenizer.ggml.unknown_token_id", gguf.U32, ids["UNK"]),
        ("tokenizer.ggml.padding_token_id", gguf.U32, ids["PAD"]),
        ("tokenizer.ggml.cls_token_id", gguf.U32, ids["CLS"]),
        ("tokenizer.ggml.seperator_token_id", gguf.U32, ids["SEP"]),  # llama.cpp spells it like this
        ("tokenizer.ggml.mask_token_id", gguf.U32, ids["MASK"]),
    ]


def names(blocks):
    """(name in the safetensors file, name in GGUF) of every tensor."""
    layers = TENSORS + [(f"encoder.layer.{i}.{old}", f"blk.{i}.{new}") for i in range(blocks) for old, new in BLOCK_TENSORS]
    for old, new in layers:
        yield old + ".weight", new + ".weight"
        if not old.endswith("_embeddings"):
            yield old + ".bias", new + ".bias"


def make(folder):
    source = SafeTensors(os.path.join(folder, "model.safetensors"))
    described, data, offset = [], [], 0
    for old, new in names(read_json(folder, "config.json")["num_hidden_layers"]):
        dims, numbers = source.take(old)
        described.append(gguf.tensor(new, dims, offset))
        data.append(gguf.padded(numbers))
        offset += len(data[-1])
    return gguf.padded(gguf.header([gguf.pair(*p) for p in pairs(folder)], described)) + b"".join(data)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[2], "wb") as file:
        file.write(make(sys.argv[1]))


if __name__ == "__main__":
    main()
