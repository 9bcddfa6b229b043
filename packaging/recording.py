#!/usr/bin/env python3
"""
Makes docs/recording.svg: runs a command in a pseudo-terminal and draws its output as an SVG image that replays it at the
speed of the run, with long pauses shortened. Viewers without CSS animation show the last frame. Standard library only.

    python3 packaging/recording.py COMMAND...

The command runs in the current folder. README.md shows the first program of docs/recipes.md, saved as appointment.mjs in a
project, with the model that FM_PROXY_MODEL names:

    node appointment.mjs "Lunch with Anna and Bob, Friday at half past 12, Blue Cafe"
"""
import codecs
import fcntl
import html
import os
import re
import shlex
import struct
import subprocess
import sys
import termios
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IMAGE = os.path.join(ROOT, "docs", "recording.svg")

COLUMNS, ROWS = 84, 14  # further rows are left out; then the last row fades
FONT, LINE, MARGIN = 14, 21, 20  # pixels
CHARACTER = 0.602 * FONT  # the widest of the usual fonts
PAUSE = 0.8  # seconds before the output begins, to read the command
FRAME = 0.05  # seconds: pieces of output closer than this appear together
GAP_MAX = 0.1  # seconds: a longer pause is shortened to this, since the machine may be busy
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")

STYLE = """
    .back { fill: #f6f8fa; stroke: #d1d9e0; }
    .fade { stop-color: #f6f8fa; }
    text { fill: #1f2328; font: %dpx ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
    .dim { fill: #59636e; }
    .bold { font-weight: 600; }
    .out { animation: appear 0.15s ease-out backwards; }
    @keyframes appear { from { fill-opacity: 0; } }
    @media (prefers-reduced-motion: reduce) { .out { animation: none; } }
    @media (prefers-color-scheme: dark) {
      .back { fill: #151b23; stroke: #3d444d; }
      .fade { stop-color: #151b23; }
      text { fill: #f0f6fc; }
      .dim { fill: #9198a1; }
    }""" % FONT


def record(command):
    """Runs the command. Returns its exit status, and its output as a list of (seconds since the start, text)."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    begun = time.monotonic()
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    pieces = []
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # Linux reports the end of a terminal as an error
            data = b""
        if not data:
            break
        pieces.append((time.monotonic() - begun, data))
    os.close(ours)
    return child.wait(), pieces


def characters(pieces):
    """Converts the output to a list of (character, seconds), without control sequences for terminals."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    timed = [(c, at) for at, data in pieces for c in decoder.decode(data)]
    text = "".join(c for c, _ in timed)
    skipped = {i for match in ESCAPES.finditer(text) for i in range(match.start(), match.end())}
    return [pair for i, pair in enumerate(timed) if i not in skipped]


def wrap(chars):
    """Breaks the characters into rows of (character, seconds), between words."""
    rows = [[]]
    for c, at in chars:
        if c == "\n":
            rows.append([])
            continue
        rows[-1].append((c, at))
        if len(rows[-1]) > COLUMNS:
            text = "".join(c for c, _ in rows[-1])
            cut = text.rfind(" ") + 1 or COLUMNS
            rows.append(rows[-1][cut:])
            rows[-2] = rows[-2][:cut]
    while rows and not rows[-1]:
        rows.pop()
    return rows


def shorten(chars):
    """The same characters, with times from 0 on and no pause longer than GAP_MAX."""
    now, before = 0.0, chars[0][1] if chars else 0.0
    for c, at in chars:
        now += min(at - before, GAP_MAX)
        before = at
        yield c, now


def spans(row):
    """Writes a row as SVG. Characters of the same moment share one element."""
    groups = []
    for c, at in row:
        frame = round(at / FRAME)
        if groups and groups[-1][0] == frame:
            groups[-1][1] += c
        else:
            groups.append([frame, c])
    for frame, text in groups:
        yield f'<tspan class="out" style="animation-delay:{PAUSE + frame * FRAME:.2f}s">{html.escape(text, quote=False)}</tspan>'


def draw(command, rows):
    width = round(2 * MARGIN + COLUMNS * CHARACTER)
    cut = len(rows) > ROWS - 2
    rows = rows[: ROWS - 2]
    while not rows[-1]:
        rows.pop()
    height = 2 * MARGIN + (len(rows) + 2) * LINE - LINE // 2
    baseline = MARGIN + FONT
    shown = html.escape(shlex.join(command).replace("'", '"'), quote=False)
    lines = [f'<text x="{MARGIN}" y="{baseline}" xml:space="preserve"><tspan class="dim">$ </tspan>'
             f'<tspan class="bold">{shown}</tspan></text>']
    for i, row in enumerate(rows):
        if row:
            lines.append(f'<text x="{MARGIN}" y="{baseline + (i + 2) * LINE - LINE // 2}" xml:space="preserve">'
                         f'{"".join(spans(row))}</text>')
    if cut:
        lines.append(f'<rect x="1" y="{height - 3 * LINE}" width="{width - 2}" height="{3 * LINE - 8}" fill="url(#end)"/>')
    body = "\n  ".join(lines)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">
  <title>{shown}</title>
  <style>{STYLE}
  </style>
  <linearGradient id="end" x1="0" y1="0" x2="0" y2="1">
    <stop class="fade" offset="0" stop-opacity="0"/>
    <stop class="fade" offset="0.9" stop-opacity="1"/>
  </linearGradient>
  <rect class="back" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>
  {body}
</svg>
"""


def main(command):
    status, pieces = record(command)
    rows = wrap(shorten(characters(pieces)))
    if status != 0 or not rows:
        print("\n".join("".join(c for c, _ in row) for row in rows), file=sys.stderr)
        print(f"recording.py: the command ended with status {status}; the image was not changed", file=sys.stderr)
        return 1
    with open(IMAGE, "w", encoding="utf-8", newline="\n") as f:
        f.write(draw(command, rows))
    print(f"{IMAGE}: {len(rows)} rows in {pieces[-1][0]:.1f} s, {os.path.getsize(IMAGE)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) if len(sys.argv) > 1 else __doc__)
