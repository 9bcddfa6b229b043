"""Makes a folder that vLLM loads as a model, from a GGUF file with the architecture of SmolLM2:

    stand_in.py MODEL.gguf FOLDER

It replaces Qwen3-8B: its weights are small, and its template has tools, thoughts and marks like Qwen3's, because the
parsers that docs/scaling.md names expect these. It never thinks: the prompt closes the thought, so the whole answer is
text. Run it with the Python of tests/remote/cluster.sh.
"""

import json
import os
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

MARKS = {"<gh_stars>": "<think>", "<issue_start>": "</think>"}  # tokens that only appeared in source files during its training
TEMPLATE = """\
{%- if tools %}{{ '<|im_start|>system\\n# Tools\\n<tools>\\n' }}{% for tool in tools %}{{ tool | tojson }}{{ '\\n' }}{% endfor %}
{{- '</tools>\\nA call is <tool_call>\\n{"name": ..., "arguments": ...}\\n</tool_call>.<|im_end|>\\n' }}{% endif %}
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}{% if message.content is string %}{{ message.content }}{% endif %}
{%- for call in message.tool_calls or [] %}{{ '<tool_call>\\n' + (call.function | tojson) + '\\n</tool_call>' }}{% endfor %}
{{- '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think></think>' }}{% endif %}"""


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    path, folder = sys.argv[1:]
    where = {"pretrained_model_name_or_path": os.path.dirname(os.path.abspath(path)), "gguf_file": os.path.basename(path)}
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    model.hf_quantizer = None  # the weights are plain numbers now, which the quantizer can't know
    del model.config.quantization_config
    tokenizer = AutoTokenizer.from_pretrained(**where)
    tokenizer.chat_template = TEMPLATE
    rows = model.get_input_embeddings().weight.data
    for mark in MARKS:  # the model reads a mark like the end of a line, and a mark is slightly less likely
        rows[tokenizer.convert_tokens_to_ids(mark)] = 0.99 * rows[tokenizer.encode("\n")[-1]]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for name in os.listdir(folder):
        if name.startswith("tokenizer"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                text = file.read()
            for old, new in MARKS.items():
                text = text.replace(json.dumps(old), json.dumps(new))
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)


if __name__ == "__main__":
    main()
