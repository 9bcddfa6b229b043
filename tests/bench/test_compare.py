"""Verifies that compare.py works: what it computes and prints, how it parses streams, and its picture. `test_compare.py Quick`
runs all rows, if llama-server is built. It does not measure speed.

Exit status 77: skipped, with the reason.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

import chart
import compare
import contenders
import model_files
import model_rows
import models
import processes
import report
import rows

HERE = os.path.dirname(os.path.abspath(__file__))


def result(ours, theirs, loop=(), processor=((), ()), **line):
    row = rows.Row(None)
    row.number, row.title = 9, "a row"
    row.values = {rows.OURS: {"key": ours, rows.PROCESSOR: processor[0]},
                  rows.SERVER: {"key": theirs, rows.PROCESSOR: processor[1]}, rows.BATCHED: {"key": loop}}
    return report.Result(row, rows.Line("key", "a line", "ms", **line))


class Figures(unittest.TestCase):
    def test_the_ratio_is_of_each_round(self):
        of = result([1, 2, 90], [2, 4, 100], wanted=("<=", 0.9))
        self.assertEqual(of.ratios, [0.5, 0.5, 0.9])
        self.assertEqual(of.value, 0.5)
        self.assertEqual(of.times_better, 2)
        self.assertTrue(of.holds)

    def test_more_is_better_the_other_way_round(self):
        of = result([3], [2], wanted=(">=", 1.6), more=True)
        self.assertEqual(of.times_better, 1.5)
        self.assertFalse(of.holds)

    def test_a_figure_of_ours_alone(self):
        of = result([4, 5, 6], [], wanted=("<=", 4.5), alone=True)
        self.assertEqual((of.value, of.holds, of.theirs, of.times_better), (5, False, [], None))

    def test_a_quick_run_loses_nothing(self):
        of = result([2], [1], wanted=("<=", 1))
        self.assertIs(of.holds, False)
        of.judges = False
        self.assertIsNone(of.holds)

    def test_a_figure_of_nothing(self):
        self.assertIsNone(result([0], [5]).times_better)

    def test_a_line_that_is_not_counted(self):
        self.assertIsNone(result([1], [2]).holds)

    def test_the_table_and_the_prose(self):
        lost = result([200, 100, 300], [100, 100, 100], wanted=("<=", 0.9), why="It waits.")
        lines = report.table([lost, result([1], [2])], [(4, "a row", "a line", "not in this build yet")]).splitlines()
        self.assertEqual(lines[2], "| 9 | a row: a line | 200 ms | 100 ms (llama-server) | 2 (1 to 3) | <= 0.9 |  |  | "
                         "**lost** |")
        self.assertTrue(lines[3].endswith("| 0.5 (0.5 to 0.5) |  |  |  |  |"), lines[3])
        self.assertIn("not in this build", lines[4])
        self.assertEqual(report.prose(lost), "Row 9 is lost, a row: a line: 200 ms beside 100 ms of llama-server, "
                         "a ratio of 2; wanted is <= 0.9. It waits.")

    def test_a_row_that_cannot_be_won(self):
        bounds = {"wanted": (">=", 1.05), "more": True, "limit": rows.BATCHED}
        near = result([97, 98], [97, 97], [100, 100], processor=([40.0], [41.0]), **bounds)
        far = result([96, 96], [97, 97], [100, 100], **bounds)
        self.assertEqual((near.verdict, far.verdict), ("at the limit", "**lost**"))
        self.assertIn("| >= 1.05 | 0.975 | 40 / 41 | at the limit |", report.table([near], []))
        self.assertIn("(0.96 of llama-batched-bench)", report.prose(far))

    def test_an_unknown_row_is_named(self):
        with contextlib.redirect_stderr(io.StringIO()) as errors, self.assertRaises(SystemExit) as end:
            compare.chosen_rows(compare.parser(), "1,99", rows.Bench(report.ROOT, 1, True, report.tell))
        self.assertEqual(end.exception.code, 2)
        self.assertIn("99", errors.getvalue())

    def test_the_picture(self):
        text = chart.svg([("8 < 9 & more", 2.5), ("slower", 0.25), ("much faster", 40)])
        picture = xml.dom.minidom.parseString(text)
        bars = [(bar.getAttribute("class"), float(bar.getAttribute("x")), float(bar.getAttribute("width")))
                for bar in picture.getElementsByTagName("rect")]
        self.assertEqual([kind for kind, _, _ in bars], ["better", "worse", "better"])
        self.assertEqual(bars[0][1], bars[2][1])  # both lines begin where the servers are equal
        self.assertAlmostEqual(bars[1][1] + bars[1][2], bars[0][1], delta=0.11)  # and this line ends there too
        self.assertTrue(all(chart.LEFT <= x and x + width <= chart.WIDTH for _, x, width in bars))


    def test_bars_of_several_files(self):
        self.assertEqual(chart.grouped([("a", "X", 1), ("b", "X", 2), ("a", "Y", 3)]), [("a: X", 1), ("Y", 3), ("b: X", 2)])


class Results(unittest.TestCase):
    """The file of results of `--models`, and the page that is made from it."""

    SAME = {"commit": "abc", "busy": 0, "quick": False}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "models.jsonl")

    def add(self, number, ours=2, **more):
        ledger = models.Ledger(self.path, **{**self.SAME, **more})
        figures = {rows.OURS: {"speed": ours}, rows.SERVER: {"speed": 1}, rows.BATCHED: {"speed": 4}}
        ledger.add("0.5B Q8_0", "one stream", number, figures, machine="a machine", notes={})

    def rounds(self, **more):
        return models.Ledger(self.path, **{**self.SAME, **more}).rounds("0.5B Q8_0", "one stream")

    def test_a_run_that_was_cut_knows_its_whole_rounds(self):
        self.add(0)
        self.add(1)
        with open(self.path, encoding="utf-8") as file:
            lines = file.readlines()
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("".join(lines[:-1]) + lines[-1][:40])  # killed in the middle of a line
        self.assertEqual(list(self.rounds()), [0])
        self.add(1, ours=3)
        self.assertEqual({number: of[rows.OURS]["figures"]["speed"] for number, of in self.rounds().items()}, {0: 2, 1: 3})

    def test_other_commits_and_loops_are_others(self):
        self.add(0)
        self.add(0, commit="def")
        self.add(1, busy=2)
        self.assertEqual((list(self.rounds()), list(self.rounds(busy=2)), list(self.rounds(busy=1))), ([0], [1], []))

    def test_the_page(self):
        for number in range(3):
            self.add(number)
        ledger = models.Ledger(self.path, **self.SAME)
        row = model_rows.every(rows.Bench(report.ROOT, 3, False, report.tell), model_files.COUNTS["0.5b"])[0]
        ledger.fill("0.5B Q8_0", row)
        path = self.path + ".md"
        models.page(ledger, {"135M Q4_1": [], "0.5B Q8_0": models.results_of(row, False)}, path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("| 1. one stream: tokens/s | >= 1.02 |  | 2 / 1 = 2x |", text)
        self.assertIn("on a machine, 20", text)
        xml.dom.minidom.parse(self.path + ".svg")

    def test_beside_loops_as_good_as_the_server_is_enough(self):
        bench = rows.Bench(report.ROOT, 5, False, report.tell, loops=processes.Loops(3))
        lines = [line for row in model_rows.every(bench, model_files.COUNTS["1.5b"]) for line in row.lines]
        self.assertEqual({line.wanted[1] for line in lines if line.peer == rows.SERVER}, {1})
        fair = 0.8 * model_rows.share(3)
        self.assertEqual([line.wanted for line in lines if line.peer == rows.QUIET], [(">=", fair), ("<=", 2), (">=", fair)])

    def test_each_row_has_its_own_title_and_number(self):
        every = model_rows.every(rows.Bench(report.ROOT, 5, False, report.tell), model_files.COUNTS["135m"])
        self.assertEqual([row.number for row in every], list(range(1, 11)))
        self.assertEqual(len({row.title for row in every}), len(every))


class Processes(unittest.TestCase):
    """Tests the time and memory of a program and of its children."""

    def test_a_child_of_a_child(self):
        script = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', sys.argv[1]])"
        works = "sum(range(3000000)); print(flush=True); input()"
        with subprocess.Popen([sys.executable, "-c", script, works], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
            parent.stdout.readline()
            self.assertEqual(len(processes.tree(parent.pid)), 2)
            self.assertGreater(processes.processor_seconds(parent.pid), 0.01)
            self.assertGreater(processes.memory_mib(processes.tree(parent.pid), "VmRSS"), 2)
            parent.communicate(b"\n")
        self.assertEqual(processes.processor_seconds(parent.pid), 0)

    def test_loops_rest_within_quiet(self):
        with processes.Loops(1) as loops:
            of = lambda: processes.processor_seconds(loops.running[0].pid)
            while not of():
                pass
            with loops.quiet():
                while processes.stat_of(loops.running[0].pid)[0] != "T":
                    pass
                before = of()
                sum(range(3000000))
                self.assertEqual(of(), before)
            while of() == before:
                pass
        self.assertEqual(loops.running, [])


class Streams(unittest.TestCase):
    """Tests bytes that arrive in any pieces, here from a pipe that the test writes."""

    def channel(self, pieces, *marks):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        channel = contenders.Channel(reader, *marks)
        for piece in pieces:
            os.write(writer, piece)
            channel.read()
        os.close(writer)
        return channel

    def test_marks_are_counted_across_pieces(self):
        data = b'{"a.chunk"}{"b.chunk"}{"result":{}}'
        for size in (1, 2, 5, 100):
            channel = self.channel([data[at:at + size] for at in range(0, len(data), size)], b'.chunk"', b'"result":{')
            self.assertEqual(channel.seen, [2, 1], size)

    def test_a_frame_has_the_time_of_its_end(self):
        data = b"".join(contenders.frame({"n": n}) for n in range(3))
        channel = self.channel([data[:30], data[30:]], b"x", b"y")
        whole, time_of = channel.taken()
        bodies = list(contenders.frames(whole))
        self.assertEqual([json.loads(whole[start:end])["n"] for start, end in bodies], [0, 1, 2])
        times = [time_of(end) for _, end in bodies]
        self.assertLess(times[0], times[1])
        self.assertEqual(times[1], times[2])

    def test_a_frame_that_is_not_whole(self):
        data = contenders.frame({"a": 1}) + contenders.frame({"b": 2})
        self.assertTrue(contenders.whole_frames(data))
        for cut in range(1, len(data)):
            self.assertEqual(contenders.whole_frames(data[:cut]), cut == len(data) // 2, cut)

    def test_the_end_of_a_server(self):
        channel = self.channel([b"x"], b"x", b"y")
        channel.read()
        self.assertTrue(channel.closed)


class Quick(unittest.TestCase):
    def test_all_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "compare.json")
            run = subprocess.run([sys.executable, "-B", os.path.join(HERE, "compare.py"), "--quick", "--out", out],
                                 stdout=subprocess.PIPE, text=True)
            if run.returncode == 77:
                print(run.stdout, end="")
                self.skipTest(run.stdout)
            self.assertEqual(run.returncode, 0)
            with open(out, encoding="utf-8") as file:
                told = {line["row"] for line in json.load(file)["lines"]}
            self.assertEqual(told - {7}, {1, 2, 3, 4, 5, 6, 11, 12})  # 7 is speculation, which an engine may lack
            picture = os.path.join(folder, "compare.svg")
            subprocess.run([sys.executable, "-B", os.path.join(HERE, "chart.py"), out, picture], check=True)
            xml.dom.minidom.parse(picture)

    def test_all_rows_on_a_file(self):
        """Runs each row of `--models`, without loops and beside a loop, with the model that is always there."""
        for loops in "01":
            with self.subTest(loops=loops), tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, "-B", os.path.join(HERE, "compare.py"), "--models", "--files", "135M Q4_1", "--quick",
                           "--busy", loops, "--page", os.path.join(folder, "page.md"),
                           "--results", os.path.join(folder, "results")]
                run = subprocess.run(command, stdout=subprocess.PIPE, text=True)
                if run.returncode == 77:
                    self.skipTest(run.stdout)
                self.assertEqual(run.returncode, 0, run.stdout)
                with open(os.path.join(folder, "results"), encoding="utf-8") as file:
                    told = {json.loads(line)["row"] for line in file}
                self.assertEqual(len(told), 10)


if __name__ == "__main__":
    outcome = unittest.main(exit=False).result
    sys.exit(1 if not outcome.wasSuccessful() else 77 if outcome.skipped else 0)
