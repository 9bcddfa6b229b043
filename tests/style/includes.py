#!/usr/bin/env python3
"""The picture of what includes what in helper/ and protocol/, and three rules for it. Uses only the standard library.

    includes.py [--files | --calls] [--dot] [ROOT]

Prints the graph as Mermaid, or with --dot for Graphviz: by folder, and helper/front/ by layer, so that all arrows go down;
with --files by file; with --calls it shows which file calls a function of which other file. A .c file and the header with
its name are one node, and a function in a header belongs to this node. The exit status is 1 if a rule is broken:

    (a) a circle of #include has at most two nodes, and so does a circle of calls in the folders of CALLS_CHECKED
    (b) no #include goes up or across: check.py has the layers (LAYERS, FRONT_LAYERS). So the picture by folder has no circle
    (c) no call goes up or across. GOES_UP names the exceptions, at most two

A call is a function's name in the code. Calls through a table of functions or a callback's member are not found.

selftest.py proves that each rule fires.
"""
import argparse
import collections
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import check  # noqa: E402

ROOTS = ("helper/", "protocol/")
HEADER_ENDINGS = (".h", ".hpp", ".hh")
CIRCLE_MAX = 2
CALLS_CHECKED = ("helper/base/", "protocol/", "helper/engine/", "helper/front/", "helper/surface/", "helper/sessions/",
                 "helper/bench/")

# Functions that may be called from below, each with its reason. The rules ignore these calls; --calls draws them.
GOES_UP = {
    "fm_front_pump_locked": "who changed something has its consequences carried out; the parts do not know by whom",
}
GOES_UP_MAX = 2


def read_sources(root):
    """{path: check.Source} of all C and C++ in ROOTS."""
    sources = {}
    for path in check.paths_below(root):
        if path.startswith(ROOTS) and path.endswith(check.C_ENDINGS + check.CXX_ENDINGS):
            with open(os.path.join(root, path), encoding="utf-8", newline="") as file:
                sources[path] = check.Source(path, file.read())
    return sources


def node_of(path):
    return os.path.splitext(path)[0]


def folder_of(path):
    """The node in the picture by folder; in helper/front/ it is a layer."""
    if path.startswith(check.FRONT):
        return f"{check.FRONT[:-1]}: {check.front_layer(path)[1]}"
    return path.rsplit("/", 1)[0]


def file_included(name, sources):
    """The path of one of our files that an #include names; None for other files."""
    return next((path for path in ("helper/" + name, name) if path in sources), None)


def include_edges(sources):
    """(path, line, path that it includes)"""
    for path, source in sources.items():
        for number, name, quoted in check.includes(source):
            included = file_included(name, sources) if quoted else None
            if included:
                yield path, number, included


def functions_in_header(source):
    """(name, text) of every function that a header defines as static inline."""
    if source.path.endswith(HEADER_ENDINGS):
        for name, first, last in check.functions(source):
            yield name, "\n".join(source.code[first - 1:last])


def calling_text(source):
    """The part of a file that can make calls. In a header this is only its functions, because a header also declares functions of
    other files."""
    if source.path.endswith(HEADER_ENDINGS):
        return "\n".join(text for _, text in functions_in_header(source))
    return source.masked


def call_edges(sources, left_out=()):
    """{(path, path of the file whose function it names)}; the functions in `left_out` do not count."""
    owner = {}
    for path, source in sources.items():
        for name, _ in [*check.external_functions(source), *functions_in_header(source)]:
            owner.setdefault(name, path)
    edges = set()
    for path, source in sources.items():
        words = set(re.findall(r"\bfm_\w+", calling_text(source))) - set(left_out)
        edges |= {(path, owner[word]) for word in words if word in owner}
    return {(a, b) for a, b in edges if node_of(a) != node_of(b)}


def circles(edges):
    """Sets of nodes that can all reach each other (Tarjan's algorithm), without sets of one node."""
    after = collections.defaultdict(list)
    for a, b in sorted(edges):
        after[a].append(b)
    order, low, stack, found = {}, {}, [], []

    def visit(node):
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in after[node]:
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            at = stack.index(node)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(after):
        if node not in order:
            visit(node)
    return sorted(circle for circle in found if len(circle) > 1)


def circle_findings(kind, edges):
    for circle in circles(edges):
        if len(circle) > CIRCLE_MAX:
            yield f"a circle of {kind} over {len(circle)} files: {', '.join(circle)}"


def fault(path, other):
    """Why `path` may not use the file `other`, in the words of a finding; None: it may."""
    allowed = check.allowed_folders(path)
    name = re.sub(r"^helper/", "", other)
    if allowed is None:
        return "the folder has no place among the layers of check.py"
    if not name.startswith(allowed):
        return f"{name} lies above it, or beside it"
    reason = check.front_fault(path, other)
    return f"{name}: {reason}" if reason else None


def arrow_findings(sources):
    for path, number, included in include_edges(sources):
        if fault(path, included):
            yield f"{path}:{number}: {fault(path, included)}"


def call_findings(sources, goes_up):
    if len(goes_up) > GOES_UP_MAX:
        yield f"GOES_UP has {len(goes_up)} functions; {GOES_UP_MAX} are the most"
    edges = call_edges(sources, goes_up)
    for path, other in sorted(edges):
        if fault(path, other):
            yield f"{path} calls a function of {other}: {fault(path, other)}"
    nodes = {(node_of(a), node_of(b)) for a, b in edges}
    checked = {(a, b) for a, b in nodes if a.startswith(CALLS_CHECKED) and b.startswith(CALLS_CHECKED)}
    yield from circle_findings("calls", checked)


def all_findings(sources, goes_up=GOES_UP):
    includes = {(node_of(a), node_of(b)) for a, _, b in include_edges(sources) if node_of(a) != node_of(b)}
    yield from circle_findings("#include", includes)
    yield from arrow_findings(sources)
    yield from call_findings(sources, goes_up)


def picture(edges, dot):
    """Draws `edges`: {(from, to): how many}."""
    names = sorted({name for edge in edges for name in edge})
    lines = ["digraph includes {", "    node [shape=box]"] if dot else ["graph TD"]
    ids = {name: f"n{at}" for at, name in enumerate(names)}
    lines += [f'    {ids[name]} [label="{name}"]' if dot else f'    {ids[name]}["{name}"]' for name in names]
    for (a, b), count in sorted(edges.items()):
        if dot:
            lines.append(f'    {ids[a]} -> {ids[b]} [label="{count}"]')
        else:
            lines.append(f"    {ids[a]} -->|{count}| {ids[b]}")
    return "\n".join(lines + (["}"] if dot else []))


def edges_to_show(sources, arguments):
    if arguments.calls:
        return collections.Counter({(node_of(a), node_of(b)) for a, b in call_edges(sources)})
    of = node_of if arguments.files else folder_of
    counted = collections.Counter((of(a), of(b)) for a, _, b in include_edges(sources))
    return {edge: count for edge, count in counted.items() if edge[0] != edge[1]}


def main():
    parser = argparse.ArgumentParser(description="what includes what")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--files", action="store_true", help="by file, not by folder")
    what.add_argument("--calls", action="store_true", help="calls, by file")
    parser.add_argument("--dot", action="store_true", help="for Graphviz, not Mermaid")
    parser.add_argument("root", nargs="?", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    arguments = parser.parse_args()
    sources = read_sources(arguments.root)
    print(picture(edges_to_show(sources, arguments), arguments.dot))
    findings = list(all_findings(sources))
    for finding in findings:
        print(f"includes: {finding}", file=sys.stderr)
    print(f"includes: {len(sources)} files, {len(findings)} findings", file=sys.stderr)
    return 1 if findings or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
