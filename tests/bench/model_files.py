"""The models of `compare.sh --models`: their files, and how much work a row has with each model."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "models"))

import fetch  # noqa: E402
from rows import SMALLEST  # noqa: E402


class Counts:
    """Counts for a model size. `one`, `four` and `eight`: tokens of each answer with this many streams. `prompt`: tokens of the
    prompt that comes when nothing else runs. `late`: tokens of the prompt that comes beside four streams. `streams`: tokens of
    these streams' answers. `copy`: tokens of the answer that copies. `asks`: the number of requests of a median.
    """

    def __init__(self, **counts):
        self.__dict__.update(counts)


# With these numbers, five rounds of all rows take about 10 minutes with the first model, 22 with the second and 30 with the
# third. This is at the speeds of two cores of a server (tokens/s: 70, 25 and 13 for one stream; 250, 85 and 38 for a prompt).
COUNTS = {
    "135m": Counts(one=128, four=128, eight=128, prompt=1000, late=2000, streams=256, copy=256, asks=5),
    "0.5b": Counts(one=64, four=48, eight=32, prompt=1000, late=1000, streams=96, copy=128, asks=5),
    "1.5b": Counts(one=48, four=24, eight=16, prompt=600, late=600, streams=64, copy=64, asks=3),
}


class ModelFile:
    """`kind`: the file's own format, or the one that llama-quantize makes from it."""

    def __init__(self, size, kind, made=False):
        self.name = f"{size.upper()} {kind}"
        self.size, self.kind, self.made = size, kind, made
        self.counts = COUNTS[size]

    def path(self, root, quantize):
        """Returns the path of the file. If the file is missing, it is downloaded, or made with the program `quantize`."""
        if self.size == "135m":
            return os.path.join(root, SMALLEST)
        source = fetch.model(self.size)
        if not self.made:
            return source
        path = source.replace("q4_k_m", self.kind.lower())
        if not os.path.exists(path):
            subprocess.run([quantize, "--allow-requantize", source, path + ".new", self.kind], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            os.rename(path + ".new", path)
        return path


FILES = (ModelFile("135m", "Q4_1"), ModelFile("0.5b", "Q4_K_M"), ModelFile("0.5b", "Q8_0", made=True),
         ModelFile("0.5b", "Q4_0", made=True), ModelFile("1.5b", "Q4_K_M"))
