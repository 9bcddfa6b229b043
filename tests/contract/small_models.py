"""Makes tiny GGUF models of random weights, one for each way in which llama.cpp remembers a sequence. `full` keeps each token in
each layer. `window` keeps only the last tokens in half of its layers (Gemma 2). `hybrid` (LFM2) and `delta` (Qwen 3.5) have some
layers with a state. `recurrent` has only states (Mamba). A token is a byte. Their answers mean
nothing, but depend clearly on everything that they have read, so that a wrong state gives another text. Uses only Python's
standard library."""

import array
import functools
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import gguf  # noqa: E402

EMBD, HEADS, FF, LAYERS, CONTEXT, WINDOW = 32, 2, 32, 4, 4096, 128
INNER, STATE, RANK, KERNEL = 2 * EMBD, 8, 4, 4  # sizes of Mamba; LFM2 uses KERNEL too

# Names each speaker, as most templates do; shows earlier answers without their thoughts.
TEMPLATE = ("{% for m in messages %}<{{ m.role }}>{{ m.content.split('</think>')[-1] }}\n{% endfor %}"
            "{% if add_generation_prompt %}<assistant>{% endif %}")


def attention(layer):
    square = [EMBD, EMBD]
    return [(f"blk.{layer}.attn_{name}.weight", square) for name in ("q", "k", "v", "output")]


def feed_forward(layer):
    return [(f"blk.{layer}.ffn_{name}.weight", dims)
            for name, dims in (("norm", [EMBD]), ("gate", [EMBD, FF]), ("up", [EMBD, FF]), ("down", [FF, EMBD]))]


def norms(layer, *names, dims=(EMBD,)):
    return [(f"blk.{layer}.{name}.weight", list(dims)) for name in names]


def full(layer):
    return norms(layer, "attn_norm") + attention(layer) + feed_forward(layer)


def window(layer):
    return full(layer) + norms(layer, "post_attention_norm", "post_ffw_norm")


def hybrid(layer):
    if layer % 2:
        return full(layer) + norms(layer, "attn_q_norm", "attn_k_norm", dims=[EMBD // HEADS])
    return norms(layer, "attn_norm") + feed_forward(layer) + [
        (f"blk.{layer}.shortconv.{name}.weight", dims)
        for name, dims in (("conv", [KERNEL, EMBD]), ("in_proj", [EMBD, 3 * EMBD]), ("out_proj", [EMBD, EMBD]))]


def delta(layer):
    """Returns the tensors of a layer. Every second layer has keys and values; its queries are twice as wide, for a gate."""
    more = norms(layer, "attn_norm", "post_attention_norm") + feed_forward(layer)[1:]
    if layer % 2:
        wide = [(f"blk.{layer}.attn_q.weight", [EMBD, 2 * EMBD])]
        return more + wide + attention(layer)[1:] + norms(layer, "attn_q_norm", "attn_k_norm", dims=[EMBD // HEADS])
    return more + [
        (f"blk.{layer}.{name}", dims)
        for name, dims in (("attn_qkv.weight", [EMBD, 3 * EMBD]), ("attn_gate.weight", [EMBD, EMBD]),
                           ("ssm_conv1d.weight", [KERNEL, 3 * EMBD]), ("ssm_dt.bias", [HEADS]), ("ssm_a", [HEADS]),
                           ("ssm_beta.weight", [EMBD, HEADS]), ("ssm_alpha.weight", [EMBD, HEADS]),
                           ("ssm_norm.weight", [EMBD // HEADS]), ("ssm_out.weight", [EMBD, EMBD]))]


def recurrent(layer):
    return norms(layer, "attn_norm") + [
        (f"blk.{layer}.{name}", dims)
        for name, dims in (("ssm_in.weight", [EMBD, 2 * INNER]), ("ssm_conv1d.weight", [KERNEL, INNER]),
                           ("ssm_conv1d.bias", [INNER]), ("ssm_x.weight", [INNER, RANK + 2 * STATE]),
                           ("ssm_dt.weight", [RANK, INNER]), ("ssm_dt.bias", [INNER]), ("ssm_a", [STATE, INNER]),
                           ("ssm_d", [INNER]), ("ssm_out.weight", [INNER, EMBD]))]


# name: (architecture, the tensors of a layer, the name of the last norm, more pairs)
KINDS = {
    "full": ("llama", full, "output_norm", []),
    "window": ("gemma2", window, "output_norm", [("attention.sliding_window", gguf.U32, WINDOW)]),
    "hybrid": ("lfm2", hybrid, "token_embd_norm",
               [("shortconv.l_cache", gguf.U32, KERNEL),
                ("attention.head_count_kv", gguf.ARRAY, (gguf.U32, [HEADS * (i % 2) for i in range(LAYERS)]))]),
    "delta": ("qwen35", delta, "output_norm",
              [("full_attention_interval", gguf.U32, 2), ("rope.dimension_sections", gguf.ARRAY, (gguf.U32, [4, 2, 2, 0])),
               ("ssm.conv_kernel", gguf.U32, KERNEL), ("ssm.inner_size", gguf.U32, EMBD), ("ssm.group_count", gguf.U32, HEADS),
               ("ssm.state_size", gguf.U32, EMBD // HEADS), ("ssm.time_step_rank", gguf.U32, HEADS)]),
    "recurrent": ("mamba", recurrent, "output_norm",
                  [("ssm.conv_kernel", gguf.U32, KERNEL), ("ssm.inner_size", gguf.U32, INNER),
                   ("ssm.state_size", gguf.U32, STATE), ("ssm.time_step_rank", gguf.U32, RANK)]),
}


def pairs_of(architecture, more, context):
    values = {"general.architecture": architecture, "llama.context_length": context, "llama.embedding_length": EMBD,
              "llama.block_count": LAYERS, "llama.feed_forward_length": FF, "llama.attention.head_count": HEADS,
              "llama.attention.head_count_kv": HEADS, "llama.rope.dimension_count": EMBD // HEADS,
              "tokenizer.chat_template": TEMPLATE}
    own = {architecture + "." + key for key, _, _ in more}
    pairs = [(key.replace("llama.", architecture + "."), kind, values.get(key, content))
             for key, kind, content in gguf.tiny_pairs()]
    return ([pair for pair in pairs if pair[0] not in own]
            + [(architecture + "." + key, kind, content) for key, kind, content in more])


def numbers(name, dims, draw):
    count = gguf.size(dims) // 4
    if name.endswith("norm.weight"):
        return [1.0] * count
    if name.endswith("ssm_a"):  # how fast a state fades: slowly, so that it has a strong influence
        return [-0.02 - 0.1 * draw.random() for _ in range(count)]
    strength = 3 ** 0.5 / dims[0] ** 0.5 / 32768  # for numbers up to 32768: a sum of such products is about 1
    return [strength * number for number in array.array("h", draw.randbytes(2 * count))]


def said(token):
    """Whether an answer may have this token: the token's text must give the same token again. ("ab" is one token.)"""
    return 0x20 < token < 0x7F and token not in b"a<"


def make(kind, context=CONTEXT):
    """The file's bytes. `context`: the context length that the model names."""
    architecture, layer, last, more = KINDS[kind]
    tensors = [("token_embd.weight", [EMBD, len(gguf.byte_tokens())]), (last + ".weight", [EMBD])]
    tensors += [tensor for i in range(LAYERS) for tensor in layer(i)]
    data = bytearray(gguf.whole([gguf.pair(*pair) for pair in pairs_of(architecture, more, context)], tensors))
    reader, draw = gguf.Reader(data), random.Random(kind)
    for name, (dims, offset) in reader.tensors.items():
        found = numbers(name, dims, draw)
        if name == "token_embd.weight":
            found = [number if said(at // EMBD) else 0 for at, number in enumerate(found)]
        struct.pack_into(f"<{len(found)}f", data, reader.data_start + offset, *found)
    return bytes(data)


@functools.cache
def file(kind, context=CONTEXT):
    """The path of such a file, which exists as long as the process."""
    return gguf.kept(kind + ".gguf", make(kind, context))
