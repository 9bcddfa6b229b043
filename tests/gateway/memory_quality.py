#!/usr/bin/env python3
"""Measures how often the memory finds the right session: 60 labelled questions, by words, by vectors and by both.

    memory_quality.py [PROGRAM]     PROGRAM is memory_judge (build/tests-bin/memory_judge); FM_BIN has fm-proxy

memory_questions.jsonl has conversations: 60 with a question that only this conversation answers, and others on similar topics. A
third of the questions has other words than the conversation ("meaning"), a third has some of the same words ("mixed"), and a
third asks for a name or number among similar ones ("name"). The documents of this repository are further sessions, as a haystack.
The vectors come from the embedding model that packaging/setup.sh downloads, through fm-proxy. The script prints recall@1, @3, @5
and the
mean reciprocal rank. It fails if recall@5 of both methods together is below 0.9, or not above the recall@5 of words only and of
vectors only.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from wire import Helper  # noqa: E402

MODELS = os.path.join(ROOT, "build", "models-embedding")
DOCUMENTS = ("README.md", "helper/README.md", "protocol/PROTOCOL.md", "protocol/ENGINE.md", "tests/README.md",
             "CONTRIBUTING.md", "docs")
MODES = ("words", "vectors", "both")
KINDS = ("meaning", "mixed", "name")
PART = 6000  # bytes of a document in one message


def write_session(folder, number, messages):
    name = f"{number:032x}.jsonl"
    with open(os.path.join(folder, name), "w", encoding="utf-8", opener=lambda p, f: os.open(p, f, 0o600)) as file:
        for seq, (role, content) in enumerate(messages, 1):
            file.write(json.dumps({"seq": seq, "time": 1, "type": "message", "role": role, "content": content},
                                  ensure_ascii=False) + "\n")
    return "sessions/" + name


def documents():
    for path in DOCUMENTS:
        path = os.path.join(ROOT, path)
        names = [path] if os.path.isfile(path) else [os.path.join(path, n) for n in sorted(os.listdir(path))]
        for name in names:
            if name.endswith(".md"):
                with open(name, encoding="utf-8") as file:
                    yield file.read()


def write_all(folder):
    """Writes the sessions; returns each question with the path of its session."""
    questions = []
    number = 1
    with open(os.path.join(HERE, "memory_questions.jsonl"), encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            path = write_session(folder, number, (("user", row["user"]), ("assistant", row["assistant"])))
            number += 1
            if "question" in row:
                questions.append((row["question"], path, row["kind"]))
    for text in documents():
        parts = [text[at:at + PART] for at in range(0, len(text), PART)]
        write_session(folder, number, [("assistant", part) for part in parts])
        number += 1
    return questions


class Embedder:
    """fm-proxy with the embedding model."""

    def __init__(self):
        self.helper = Helper("--models-dir", MODELS, engine="llama")
        self.texts = 0
        model = next(n for n in sorted(os.listdir(MODELS)) if n.endswith(".gguf"))
        self.model = model[:-len(".gguf")]

    def __call__(self, texts):
        self.texts += len(texts)
        answer = self.helper.call("embeddings.create", {"model": self.model, "input": texts})
        if "embeddings" in answer:
            return [row["embedding"] for row in answer["embeddings"]["data"]]
        if "CONTEXT_OVERFLOW" in json.dumps(answer):
            return {"overflow": True}
        raise SystemExit(f"no vectors: {answer}")


def judge(program, folder, questions):
    """The paths found for each question, in each mode."""
    found = {mode: [] for mode in MODES}
    list_path = os.path.join(folder, "questions")
    with open(list_path, "w", encoding="utf-8") as file:
        file.writelines(question + "\n" for question, *_ in questions)
    embed = Embedder()
    process = subprocess.Popen([program, "quality", folder, list_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for line in process.stdout:
        message = json.loads(line)
        if "embed" in message:
            process.stdin.write(json.dumps(embed(message["embed"])).encode() + b"\n")
            process.stdin.flush()
        else:
            found[message["mode"]].append(message["paths"])
    if process.wait() != 0:
        raise SystemExit("memory_judge failed")
    print(f"{embed.texts} texts were embedded")
    return found


def ranks(found, questions, kind=None):
    """The rank of the right session in the result of each question; 0: it was not found."""
    return [paths.index(path) + 1 if path in paths else 0
            for paths, (_, path, of) in zip(found, questions) if kind in (None, of)]


def recall(places, at):
    return sum(0 < place <= at for place in places) / len(places)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build", "tests-bin", "memory_judge")
    if not os.path.isdir(MODELS):
        print("there is no embedding model: sh packaging/setup.sh --tests brings it")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="fm-gw-quality-") as folder:
        os.mkdir(os.path.join(folder, "sessions"))
        questions = write_all(os.path.join(folder, "sessions"))
        found = judge(program, folder, questions)
    print(f"{len(questions)} questions")
    scores = {}
    for mode in MODES:
        places = ranks(found[mode], questions)
        scores[mode] = recall(places, 5)
        kinds = "  ".join(f"{kind} {recall(ranks(found[mode], questions, kind), 5):.2f}" for kind in KINDS)
        print(f"{mode:8} recall@1 {recall(places, 1):.3f}  @3 {recall(places, 3):.3f}  @5 {scores[mode]:.3f}  "
              f"MRR {sum(1 / place for place in places if place) / len(places):.3f}   @5 by kind: {kinds}")
    for (question, path, _), paths in zip(questions, found["both"]):
        if path not in paths[:5]:
            print(f"  missed: {question}")
    good = scores["both"] >= 0.9 and scores["both"] > max(scores["words"], scores["vectors"])
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
