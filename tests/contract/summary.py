"""The table of docs/models.md: the parts of docs/conformance.md that users ask about first, by family. For test_families.py."""

import re

from families import COLUMNS

BEGIN, END = "<!-- summary: made by tests/contract/test_families.py -->", "<!-- end of summary -->"

# The usual name of a family, its templates, and whether libmtmd has projectors for the family (PROJECTOR_TYPE_NAMES in libmtmd's
# clip-impl.h).
FAMILIES = (
    ("Apertus", "Apertus", False), ("Apriel 1.5, 1.6", "Apriel", False), ("Bielik", "Bielik", False),
    ("Command R+, R7B", "CohereForAI", False), ("DeepSeek R1, distilled", "DeepSeek-R1|deepseek-r1", False),
    ("DeepSeek V3.1", "V3.1$", False), ("DeepSeek V3.2", "V3.2", False), ("DeepSeek V4", "DeepSeek-V4", True),
    ("Devstral", "Devstral", False), ("Functionary 3.1, 3.2", "functionary", False), ("Gemma 2", "gemma-2", False),
    ("Gemma 4", "gemma-4", True), ("GigaChat 3, 3.1", "GigaChat", False), ("GLM 4.6, 4.7", "GLM", True),
    ("gpt-oss", "gpt-oss", False), ("Granite 3.3", "granite-3", False), ("Granite 4.0, 4.1", "granite-4", True),
    ("Hermes 2 Pro, 3", "Hermes", False), ("Hy3", "Hy3", True), ("Kimi K2", "Kimi-K2", True), ("Kimi K3", "Kimi-K3", False),
    ("Laguna", "Laguna", False), ("LFM2, LFM2.5", "LFM2", True), ("Ling 3.0", "ling", False),
    ("Llama 3.1, 3.2, 3.3", "meta-llama", False), ("MiMo", "MiMo", True), ("MiniCPM 5", "MiniCPM", True),
    ("MiniMax M1, M2", "MiniMax-M[12]", False), ("MiniMax M3", "MiniMax-M3", True), ("Ministral 3", "Ministral", True),
    ("Mistral Nemo", "Nemo-", False), ("Mistral Small 3.2", "Small-3.2", True), ("Muse", "muse", True),
    ("Nemotron Nano 2, 3", "Nemotron", True), ("Phi 3.5", "Phi", False), ("Qwen 2.5, QwQ", "Qwen2.5|QwQ", True),
    ("Qwen 3", "Qwen3-0", True), ("Qwen3-Coder", "Qwen3-Coder", False), ("Qwen 3.5", "Qwen3.5", True),
    ("Reka Edge", "Reka", False), ("Seed-OSS", "Seed", False), ("SmolLM3", "SmolLM3", False), ("Solar Open", "Solar", False),
    ("Spark 2.5", "Spark", False), ("StepFun 3.5", "StepFun", True),
)


def whole(rows, column):
    """Whether the column is possible with one of these templates, and has a fault with none of them."""
    kinds = {found[name][0] for found in rows for name in COLUMNS[column]}
    return "partly" if "fault" in kinds else "yes" if "yes" in kinds else "-"


def calls(rows):
    own = {found["own_form"][0] == "yes" for found in rows}
    form = "its own or ours" if len(own) > 1 else "its own" if own == {True} else "ours"
    return form + (", with faults" if whole(rows, "calls") == "partly" else "")


def table(rows):
    """The table's lines for the document, from {template: its cells}."""
    lines = ["| Family | turns | thoughts | form of calls | images |", "|---|---|---|---|---|"]
    for family, templates, sees in FAMILIES:
        mine = [found for name, found in rows.items() if re.search(templates, name)]
        turns, thoughts = whole(mine, "turns"), whole(mine, "thought")
        lines.append(f"| {family} | {turns} | {thoughts} | {calls(mine)} | {'projector' if sees else '-'} |")
    return lines
