"""Draws a picture of compare.py's figures: how many times better each row is than llama-server's. Prints the same as a table for
README.md.

    chart.py compare.json FILE.svg
"""

import json
import math
import statistics
import sys
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, ROW = 900, 480, 60, 26
TOP = 58
STYLE = """
    text { fill: #1f2328; font: 13px system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }
    .name { text-anchor: end; }
    .title { font-size: 15px; font-weight: 600; }
    .dim { fill: #59636e; font-size: 12px; text-anchor: middle; }
    .better { fill: #1a7f37; }
    .worse { fill: #bc4c00; }
    .grid { stroke: #d1d9e0; }
    .even { stroke: #59636e; stroke-width: 1.5; }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc; }
      .dim { fill: #9198a1; }
      .better { fill: #3fb950; }
      .worse { fill: #f0883e; }
      .grid { stroke: #3d444d; }
      .even { stroke: #9198a1; }
    }
"""


def short(value):
    return f"{value:.3g}" if value < 10 else f"{value:.0f}"


def svg(lines):
    """An SVG of `lines`: (name, how many times better), on a logarithmic scale."""
    least = min(0.5, *(value for _, value in lines))
    most = max(2, *(value for _, value in lines)) * 1.05
    place = lambda value: LEFT + (WIDTH - LEFT - RIGHT) * math.log(value / least) / math.log(most / least)
    bottom = TOP + ROW * len(lines)
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if least <= tick <= most]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 12}" width="{WIDTH}" '
           f'height="{bottom + 12}" role="img">',
           "  <title>How many times better fm-proxy is than llama-server, row by row</title>",
           f"  <style>{STYLE}  </style>",
           '  <text class="title" x="16" y="26">Times better than llama-server</text>']
    for tick in ticks:
        kind = "even" if tick == 1 else "grid"
        out.append(f'  <path class="{kind}" d="M{place(tick):.1f} {TOP - 6} V{bottom}"/>')
        out.append(f'  <text class="dim" x="{place(tick):.1f}" y="{TOP - 12}">{tick:g}</text>')
    for i, (name, value) in enumerate(lines):
        y = TOP + ROW * i
        start, end = sorted((place(1), place(value)))
        out.append(f'  <text class="name" x="{LEFT - 12}" y="{y + 17}">{escape(name)}</text>')
        out.append(f'  <rect class="{"better" if value >= 1 else "worse"}" x="{start:.1f}" y="{y + 5}" '
                   f'width="{max(end - start, 1):.1f}" height="{ROW - 10}" rx="2"/>')
        out.append(f'  <text x="{end + 6:.1f}" y="{y + 17}">{short(value)}</text>')
    return "\n".join([*out, "</svg>", ""])


def grouped(bars):
    """Turns `bars`: (row, file, how many times better) into lines for svg(): the rows in their order, with each name once."""
    rows = dict.fromkeys(row for row, _, _ in bars)
    out = []
    for row in rows:
        of_row = [(file, value) for name, file, value in bars if name == row]
        out += [(file if i else f"{row}: {file}", value) for i, (file, value) in enumerate(of_row)]
    return out


def table(lines):
    out = ["| | fm-proxy | llama-server | times better |", "|---|---|---|---|"]
    for line in lines:
        ours, theirs = (f"{statistics.median(line[who]):,.{0 if line['unit'] == 'ms' else 1}f} {line['unit']}".strip()
                        for who in ("ours", "theirs"))
        out.append(f"| {line['name']} | {ours} | {theirs} | {short(line['times_better'])} |")
    return "\n".join(out)


def main():
    with open(sys.argv[1], encoding="utf-8") as source:
        lines = [line for line in json.load(source)["lines"]
                 if line["peer"] == "llama-server" and line["wanted"] and line["times_better"]]
    if not lines:
        return
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(svg([(line["name"], line["times_better"]) for line in lines]))
    print(table(lines))


if __name__ == "__main__":
    main()
