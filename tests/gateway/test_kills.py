#!/usr/bin/env python3
"""A program that writes transcripts is killed at random moments. Everything that it has acknowledged is complete afterwards.

    test_kills.py [ROUNDS]      the nightly run has 1,000; FM_WRITER is the program transcript_writer

Also on a full disk (a small tmpfs, if this user may mount one): only what is on the disk is acknowledged, and the program
continues when there is room again.
"""
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

WRITER = os.environ["FM_WRITER"]
ROUNDS = int(os.environ.get("FM_KILLS", "60"))
ROUNDS_A_FOLDER = 20
WAIT = 60


class Writer:
    """A running writer, and what it has acknowledged."""

    def __init__(self, folder, records=0):
        self.process = subprocess.Popen([WRITER, folder, str(records)], stdout=subprocess.PIPE)
        self.records = collections.defaultdict(set)
        self.sessions = set()
        self.blobs = set()
        self.failures = []
        self.mended = None

    def take(self, line):
        word, *rest = line.decode().rstrip("\n").split(" ")
        if word == "ready":
            self.mended = [int(number) for number in rest]
        elif word == "session":
            self.sessions.add(rest[0])
        elif word == "record":
            self.records[rest[0]].add(int(rest[1]))
        elif word == "blob":
            self.blobs.add(rest[0])
        elif word == "failed":
            self.failures.append(" ".join(rest))

    def read_one(self):
        line = self.process.stdout.readline()
        if line:
            self.take(line)
        return bool(line)

    def read_all(self):
        """Reads the program's remaining output. An incomplete last line is not an acknowledgement."""
        rest = self.process.stdout.read()
        for line in rest.splitlines(keepends=True):
            if line.endswith(b"\n"):
                self.take(line)
        self.process.stdout.close()
        self.process.wait(WAIT)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.read_all()


def read_transcript(folder, key):
    """The `seq` of each complete line of a transcript, and whether its last line is incomplete."""
    with open(os.path.join(folder, "sessions", key + ".jsonl"), "rb") as file:
        data = file.read()
    *lines, tail = data.split(b"\n")
    return [json.loads(line)["seq"] for line in lines], bool(tail)


class Kills(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="fm-gw-kills-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.wanted = collections.defaultdict(set)
        self.blobs = set()

    def note(self, writer):
        for key in writer.sessions:
            self.wanted[key].add(1)
        for key, seqs in writer.records.items():
            self.wanted[key] |= seqs
        self.blobs |= writer.blobs

    def check(self, folder):
        for key, seqs in self.wanted.items():
            there, _ = read_transcript(folder, key)
            self.assertEqual(there, sorted(set(there)), "seq does not rise")
            self.assertEqual(seqs - set(there), set(), f"acknowledged and lost in {key}")
        for blob in self.blobs:
            self.assertEqual(os.path.getsize(os.path.join(folder, "blobs", blob)), 8)

    def test_what_was_acknowledged_is_there(self):
        dice = random.Random(19)
        torn = acknowledged = runs = 0
        folder = os.path.join(self.folder, "0")
        for number in range(ROUNDS):
            if number % ROUNDS_A_FOLDER == 0:
                shutil.rmtree(folder, True)
                folder = os.path.join(self.folder, str(number))
                self.wanted.clear()
                self.blobs.clear()
            writer = Writer(folder)
            for _ in range(dice.choice((0, 0, 1, 2, 5, 30, 150))):
                writer.read_one()
            writer.kill()
            self.note(writer)
            self.check(folder)
            acknowledged += sum(len(seqs) for seqs in writer.records.values())
            torn += any(read_transcript(folder, key)[1] for key in self.wanted)
            if writer.mended:
                runs += writer.mended[0]
                self.assertEqual(writer.mended[2:], [0, 0], "a kill damages nothing")
            self.assertEqual(writer.failures, [])
        last = Writer(folder, 30)  # this writer ends by itself
        last.read_all()
        self.assertEqual(last.process.returncode, 0)
        self.note(last)
        self.check(folder)
        self.assertGreater(acknowledged, ROUNDS)
        self.assertGreater(runs, 0)
        print(f"{ROUNDS} kills, {acknowledged} records acknowledged, none lost; {torn} transcripts torn, {runs} runs closed")

    def test_a_full_disk(self):
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", disk],
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("this user can't mount a small disk")
        self.addCleanup(subprocess.run, ["umount", "-l", disk])
        filler = os.path.join(disk, "filler")
        with open(filler, "wb") as file:
            file.write(bytes(600000))
        writer = Writer(disk)
        while not writer.failures:
            self.assertTrue(writer.read_one())
        self.assertIn("No space left", writer.failures[0])
        self.note(writer)
        self.check(disk)
        os.unlink(filler)
        before = sum(map(len, writer.records.values()))
        while sum(map(len, writer.records.values())) <= before + 20:
            self.assertTrue(writer.read_one())
        writer.kill()
        self.note(writer)
        self.check(disk)
        os.unlink(os.path.join(disk, "sessions", next(iter(self.wanted)) + ".jsonl"))
        again = Writer(disk, 1)
        again.read_all()
        self.assertEqual(again.mended[2:], [0, 0])


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        ROUNDS = int(sys.argv.pop(1))
    unittest.main()
