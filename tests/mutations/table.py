"""Shared by both tables of mutations: replaces one text with another, builds, checks that a test fails, and prints the
outcome."""

import os
import re
import subprocess


def call(*command, cwd=None):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=cwd)


def try_mutation(path, old, new, build, is_red):
    """
    Returns what happened, in a word.

    build -- returns the compiler's output if it fails, else ""
    is_red -- True if the test fails
    """
    with open(path) as f:
        whole = f.read()
    if whole.count(old) != 1:
        return f"STALE ({whole.count(old)} places)"
    with open(path, "w") as f:
        f.write(whole.replace(old, new))
    try:
        errors = build()
        if errors:
            return "DOES NOT BUILD: " + " ".join(re.findall(r"error\b.*", errors)[:2])
        return "red" if is_red() else "GREEN"
    finally:
        with open(path, "w") as f:
            f.write(whole)


def check_places(folder, mutations):
    """Checks that each text to be replaced is in its file exactly once; prints where it is not. Returns the exit status."""
    stale = 0
    for rule, file, old, *_ in mutations:
        with open(os.path.join(folder, file)) as f:
            count = f.read().count(old)
        if count != 1:
            stale += 1
            print(f"{file}: {count} places for the mutation '{rule}': {old}")
    print(f"mutations: {len(mutations)}, {stale} stale")
    return 1 if stale else 0


def chosen(mutations, words):
    """The mutations whose rule contains one of the words; all if there are no words."""
    return [mutation for mutation in mutations if not words or any(word in mutation[0] for word in words)]


def print_table(rows):
    """Prints rows of (rule, file, test, outcome) as they come; returns the exit status."""
    print("| Rule | Taken out of | Test that goes red |\n|---|---|---|", flush=True)
    count = red = 0
    for rule, file, test, outcome in rows:
        count += 1
        red += outcome == "red"
        note = "" if outcome == "red" else f" **{outcome}**"
        print(f"| {rule} | `{file}` | {test}{note} |", flush=True)
    print(f"\n{red} of {count} go red")
    return 0 if red == count else 1
