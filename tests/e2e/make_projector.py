"""
Makes a tiny projector for images, a GGUF file of random weights. With this projector, a text model takes the code path of a model
that sees images, but recognises nothing.

    make_projector.py FILE [WIDTH] [KIND]

WIDTH is the width of the text model (default 576, as in SmolLM2-135M). KIND is "phi4" (the default: as many tokens as an image
has patches of
16 by 16 pixels, 4 to 64) or "gemma3" (4 tokens that attend to each other). Uses only Python's standard library; the same
arguments give the same bytes.
"""

import random
import struct
import sys

import gguf

SEED = 576
PATCH, SIDE = 16, 64  # pixels; SIDE is the side of the image that the positions are for
HEADS, HIDDEN = 2, 48
MIN_PIXELS = 32 * 32


def pairs(kind, width, embd, layers, max_pixels):
    floats = lambda *numbers: (gguf.F32, list(numbers))
    return [
        ("general.architecture", gguf.STRING, "clip"),
        ("general.alignment", gguf.U32, gguf.ALIGNMENT),
        ("clip.has_vision_encoder", gguf.BOOL, True),
        ("clip.projector_type", gguf.STRING, kind),
        ("clip.use_gelu", gguf.BOOL, True),
        ("clip.vision.embedding_length", gguf.U32, embd),
        ("clip.vision.feed_forward_length", gguf.U32, embd * 2),
        ("clip.vision.block_count", gguf.U32, layers),
        ("clip.vision.attention.head_count", gguf.U32, HEADS),
        ("clip.vision.attention.layer_norm_epsilon", gguf.F32, 1e-6),
        ("clip.vision.projection_dim", gguf.U32, width),
        ("clip.vision.image_size", gguf.U32, SIDE),
        ("clip.vision.patch_size", gguf.U32, PATCH),
        ("clip.vision.image_mean", gguf.ARRAY, floats(0.5, 0.5, 0.5)),
        ("clip.vision.image_std", gguf.ARRAY, floats(0.5, 0.5, 0.5)),
        ("clip.vision.image_min_pixels", gguf.U32, MIN_PIXELS),
        ("clip.vision.image_max_pixels", gguf.U32, max_pixels),
        ("clip.vision.projector.scale_factor", gguf.U32, 2),
    ]


def layer(i, embd):
    square = [embd, embd]
    block = [("attn_q", square), ("attn_k", square), ("attn_v", square), ("attn_out", square), ("ln1", [embd]),
             ("ln2", [embd]), ("ffn_up", [embd, embd * 2]), ("ffn_down", [embd * 2, embd])]
    for name, dims in block:
        yield f"v.blk.{i}.{name}.weight", dims
        yield f"v.blk.{i}.{name}.bias", dims[-1:]


def tensors(kind, width, embd, layers):
    """(name, dims) of each."""
    yield "v.patch_embd.weight", [PATCH, PATCH, 3, embd]
    yield "v.patch_embd.bias", [embd]
    yield "v.position_embd.weight", [embd, (SIDE // PATCH) ** 2]
    for i in range(layers):
        yield from layer(i, embd)
    yield "v.post_ln.weight", [embd]
    yield "v.post_ln.bias", [embd]
    if kind == "gemma3":
        yield "mm.input_projection.weight", [width, embd]
        yield "mm.soft_emb_norm.weight", [embd]
    else:
        yield "mm.0.weight", [embd, HIDDEN]
        yield "mm.0.bias", [HIDDEN]
        yield "mm.2.weight", [HIDDEN, width]
        yield "mm.2.bias", [width]


def numbers(generator, name, dims):
    """The weights are so large that different images give different texts."""
    count = gguf.size(dims) // 4
    norm = name.endswith("weight") and len(dims) == 1
    return struct.pack(f"<{count}f", *(norm + generator.random() * 0.8 - 0.4 for _ in range(count)))


def make(width, kind="phi4", embd=32, layers=2, max_pixels=128 * 128, blank=False):
    """The file's bytes. `blank`: all weights are 0."""
    generator = random.Random(SEED)
    described, data, offset = [], [], 0
    for name, dims in tensors(kind, width, embd, layers):
        described.append(gguf.tensor(name, dims, offset))
        data.append(gguf.padded(b"\0" * gguf.size(dims) if blank else numbers(generator, name, dims)))
        offset += len(data[-1])
    header = gguf.header([gguf.pair(*p) for p in pairs(kind, width, embd, layers, max_pixels)], described)
    return gguf.padded(header) + b"".join(data)


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    width = int(sys.argv[2]) if len(sys.argv) > 2 else 576
    kind = sys.argv[3] if len(sys.argv) > 3 else "phi4"
    with open(sys.argv[1], "wb") as file:
        file.write(make(width, kind))


if __name__ == "__main__":
    main()
