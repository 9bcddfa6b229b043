#!/usr/bin/env python3
"""The project's style rules that a script can check; see RULES below. Uses only the standard library.

    check.py [ROOT]       checks the tree; prints "path:line: message" for each finding and a total, exit status 1 if any
    names.py              the rules for names in documents; check.py checks them too
    requirements.py       the rules for docs/requirements-*.md; check.py checks them too
    selftest.py           proves that each rule fires

A file is first *masked*: comments and the contents of string literals become spaces, line by line and byte by byte, so that
a rule only sees code, and line numbers stay right.
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import names  # noqa: E402
import requirements  # noqa: E402

FUNCTION_WARN = 60
FUNCTION_MAX = 100
FUNCTION_ALLOWED = {}  # {"path:name": lines}; this is empty, and should stay empty
LINE_MAX = 130

SKIPPED_FOLDERS = {".git", "node_modules", "build", "dist", "__pycache__", "golden", "corpus"}
C_ENDINGS = (".c", ".h")
CXX_ENDINGS = (".cpp", ".cc", ".cxx", ".hpp", ".hh")
TS_ENDINGS = (".ts", ".mts", ".cts")
TEXT_ENDINGS = C_ENDINGS + CXX_ENDINGS + TS_ENDINGS + (".py", ".sh", ".mjs", ".cjs", ".js", ".cmake", ".md")

BANNED = {
    "strcpy": "snprintf or memcpy", "strcat": "snprintf", "stpcpy": "snprintf", "strncat": "snprintf",
    "strncpy": "snprintf or memcpy", "sprintf": "snprintf", "vsprintf": "vsnprintf", "gets": "fgets",
    "atoi": "strtol", "atol": "strtol", "atoll": "strtoll", "atof": "strtod", "strtok": "strcspn",
    "strtok_r": "strcspn", "scanf": "strtol", "fscanf": "strtol", "sscanf": "strtol", "vscanf": "strtol",
    "vsscanf": "strtol", "vfscanf": "strtol", "alloca": "a buffer with a maximum", "system": "fm_child_start",
    "popen": "fm_child_start", "tmpnam": "mkstemp", "tempnam": "mkstemp", "mktemp": "mkstemp",
    "setjmp": "a return code", "longjmp": "a return code",
    # JSON uses the C locale's numbers, and so do strtod and printf as long as no code sets another locale
    "setlocale": "the C locale, which is there from the start", "uselocale": "the C locale",
}

# The folders that the files of a folder may include. The first row that matches a path counts. A folder may always include
# itself.
LAYERS = (
    ("helper/base/", ()),
    ("protocol/client/", ("protocol/", "base/")),
    ("protocol/", ("base/",)),
    ("helper/surface/", ("protocol/", "base/")),
    ("helper/front/", ("surface/", "protocol/", "base/")),
    ("helper/sessions/", ("front/", "surface/", "protocol/", "base/")),
    ("helper/bench/", ("sessions/", "front/", "surface/", "protocol/", "base/")),
    ("helper/engine/kit/", ("protocol/", "base/")),
    ("helper/engine/chat/", ("engine/kit/", "protocol/", "base/")),
    ("helper/engine/guide/", ("engine/chat/", "engine/kit/", "protocol/", "base/")),
    ("helper/engine/", ("engine/guide/", "engine/chat/", "engine/kit/", "protocol/", "base/")),  # and its own folder, below
    # For the gateway's folders, a row names the gateway folders that it may include besides itself. Of the helper, the gateway
    # only includes the base.
    ("gateway/config/", ("protocol/", "base/")),
    ("gateway/rpc/", ("protocol/", "base/")),
    ("gateway/net/", ("rpc/", "config/", "protocol/", "base/")),
    ("gateway/tools/", ("protocol/", "base/")),
    ("gateway/agents/", ("protocol/", "base/")),
    ("gateway/sessions/", ("protocol/", "base/")),
    ("gateway/security/", ("sessions/", "protocol/", "base/")),
    ("gateway/memory/", ("sessions/", "protocol/", "base/")),
    ("gateway/providers/", ("memory/", "agents/", "sessions/", "protocol/", "base/")),
    ("gateway/run/", ("providers/", "memory/", "security/", "tools/", "agents/", "sessions/", "rpc/", "config/",
                      "protocol/", "base/")),
    ("system/desktop/", ("protocol/", "base/")),
    ("system/backends/", ("desktop/", "protocol/", "base/")),
    ("system/commands/", ("desktop/", "protocol/", "base/")),
    ("system/mcp/", ("match/", "commands/", "desktop/", "protocol/", "base/")),
    ("system/match/", ("commands/", "desktop/", "protocol/", "base/")),
    ("system/cli/", ("mcp/", "match/", "backends/", "commands/", "desktop/", "protocol/", "base/")),
    ("system/main.c", ("cli/", "base/")),
    ("helper/main.c", ("bench/", "sessions/", "front/", "surface/", "protocol/", "base/")),
)
# The layers of helper/front/, from the bottom up. A row has layers, each with a name, and its files and folders. A file may
# include its own layer and the rows below its row, but not other layers of its row. A named file has priority over its folder.
FRONT = "helper/front/"
FRONT_LAYERS = (
    (("parts", ("options", "outbox", "reply", "metrics", "store/store", "store/db", "engines/aliases",
                "engines/availability", "engines/config",
                "engines/crash_loop", "engines/descriptor", "engines/failed_load", "engines/kv_files", "engines/memory",
                "engines/models", "engines/relay")),),
    (("state", ("state", "ignored")),),
    (("jobs", ("jobs", "streams", "watchdog", "engines/engine", "engines/lost", "engines/table")),),
    (("engines", ("engines/",)), ("store", ("store/",))),
    (("methods", ("methods/",)),),
    (("top", ("front", "intake", "dispatch", "pump")),),
)
# Only for hosts: neither the helper nor the rest of protocol/ may include it.
CLIENT = "protocol/client/"
NOT_HOSTS = ("helper/", "protocol/")
OUR_FOLDERS = ("base/", "protocol/", "surface/", "front/", "sessions/", "bench/", "engine/", "config/", "rpc/", "net/",
               "tools/", "agents/", "security/", "memory/", "providers/", "run/", "desktop/", "commands/", "backends/",
               "mcp/", "match/", "cli/")
LLAMA_HEADER = re.compile(r'^(llama|ggml|gguf|mtmd)[\w.-]*\.h$|^common/|^(common|chat|sampling|json-schema-to-grammar)\.h$')
LLAMA_FOLDER = "helper/engine/llama/"
LLAMA_TESTS = ("tests/bench/", "tests/contract/", "tests/gpu/")
CXX_FOLDERS = (LLAMA_FOLDER, "tests/bench/")
PLATFORM_MACRO = re.compile(r"\b(__linux__|__linux|__APPLE__|__MACH__|_WIN32|_WIN64|__FreeBSD__|__unix__)\b")
OPENING_ENDINGS = C_ENDINGS + CXX_ENDINGS + TS_ENDINGS + (".py", ".mjs", ".cjs", ".sh")
OPENING_TO_COME = ()  # folders where not all files follow the rule yet
CONFLICT = re.compile(r"(<{7}|>{7}|\|{7}) |={7}$")
PLATFORM_FILE = re.compile(r"helper/base/platform[\w.]*$")


class Source:
    """One file: its lines, and the same lines with comments and literals blanked."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.lines = text.split("\n")
        self.is_c = path.endswith(C_ENDINGS + CXX_ENDINGS)
        self.is_cxx = path.endswith(CXX_ENDINGS)
        self.is_ts = path.endswith(TS_ENDINGS)
        self.masked = mask(text) if self.is_c or self.is_ts else text
        self.code = self.masked.split("\n")

    def line_of(self, offset):
        return self.masked.count("\n", 0, offset) + 1


# A raw string, a comment, a string or a character; anything else is code.
LITERAL = re.compile(
    r'R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"'
    r"|//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)"
    r'|"(?:\\.|[^"\\\n])*"?'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'?",
    re.S,
)


def mask(text):
    """Replaces comments, and text between quotes, with spaces."""
    def blank(match):
        found = match.group(0)
        spaces = re.sub(r"[^\n]", " ", found)
        if found[0] == "/":
            return spaces
        return found[0] + spaces[1:-1] + found[-1] if len(found) > 1 else found
    return LITERAL.sub(blank, text)


def banned_calls(source):
    """(a) calls without a bound or an error, or that do not belong in a library."""
    if not source.is_c:
        return
    for number, line in enumerate(source.code, 1):
        for match in re.finditer(r"(?<![\w.>])(\w+)\s*\(", line):
            name = match.group(1)
            if name in BANNED:
                yield number, f"{name}() is banned; use {BANNED[name]}"


KEYWORDS = {"if", "for", "while", "switch", "do", "else", "return", "sizeof", "catch"}
SCOPE = re.compile(r'(?:\bnamespace\b[\w:\s]*|\bextern\s+" *"\s*|\b(?:class|struct|union)\s+\w+[^;(){}]*)$')

INITIALIZERS = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:)")


def functions(source):
    """(name, first line, last line) of every function body, also inside namespaces and classes."""
    code = re.sub(r"(?m)^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), source.masked)
    at = 0
    while True:
        brace = code.find("{", at)
        if brace < 0:
            return
        head = re.split(r"[;{}]", code[at:brace])[-1]
        if SCOPE.search(head) and "(" not in head:
            at = brace + 1
            continue
        start = brace - len(re.sub(r"^\s*(?:(?:public|private|protected)\s*:)?\s*", "", head))
        end = closing_brace(code, brace)
        # these braces initialise a member; they are not the body
        while INITIALIZERS.search(head) and re.match(r"\w", code[brace - 1]):
            brace = code.find("{", end)
            end = closing_brace(code, brace)
        match = re.search(r"([\w:~]+)\s*\(", head)
        if match and "=" not in head[: match.start()] and match.group(1) not in KEYWORDS:
            first = source.line_of(start)
            yield match.group(1), first, source.line_of(end)
        at = end + 1


def closing_brace(code, brace):
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, brace):
        depth += 1 if match.group(0) == "{" else -1
        if depth == 0:
            return match.start()
    return len(code) - 1


def external_functions(source):
    """(name, line) of every function that a .c or C++ file defines for other files."""
    if source.path.endswith((".h", ".hpp", ".hh")):
        return
    for name, first, _ in functions(source):
        head = source.code[first - 1]
        if not re.match(r"\s*(?:static|inline|class|struct\s+\w+\s*\{)\b", head) and not head.startswith((" ", "\t")):
            yield name, first


def function_length(source):
    """(b) a function of more than 60 lines gives a warning, one of more than 100 a finding."""
    if not source.is_c:
        return
    for name, first, last in functions(source):
        lines = last - first + 1
        allowed = FUNCTION_ALLOWED.get(f"{source.path}:{name}", FUNCTION_MAX)
        if lines > allowed:
            yield first, f"{name} has {lines} lines; {FUNCTION_MAX} are the most"
        elif lines > FUNCTION_WARN:
            yield first, f"warning: {name} has {lines} lines; beyond {FUNCTION_WARN} it asks to be cut"


def includes(source):
    for number, line in enumerate(source.lines, 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match and source.code[number - 1].lstrip().startswith("#"):
            yield number, match.group(2), match.group(1) == '"'


def allowed_folders(path):
    for folder, allowed in LAYERS:
        if path.startswith(folder):
            own = re.match(r"(?:helper/|gateway/|system/)?((?:engine/)?[\w-]+/)", path)
            return allowed + ((own.group(1),) if own and folder.endswith("/") else ())
    return None


def front_layer(path):
    """(row number, name) of the layer of a file in helper/front/; (-1, "") for one without a layer."""
    name = os.path.splitext(path[len(FRONT):])[0]
    for wanted in (name, name.split("/")[0] + "/"):
        for number, row in enumerate(FRONT_LAYERS):
            for layer, members in row:
                if wanted in members:
                    return number, layer
    return -1, ""


def front_fault(path, other):
    """Why `path` may not use the file `other`, in the words of a finding, if both are in helper/front/."""
    if not path.startswith(FRONT) or not other.startswith(FRONT):
        return None
    (number, layer), (other_number, other_layer) = front_layer(path), front_layer(other)
    for file, its_number in ((path, number), (other, other_number)):
        if its_number < 0:
            return f"{file} has no layer; give it one in FRONT_LAYERS of check.py"
    if layer == other_layer or other_number < number:
        return None
    return f"the layer {other_layer} of the front lies {'beside' if number == other_number else 'above'} {layer}"


def include_direction(source):
    """(c) includes only go downwards, also inside helper/front/; llama.cpp's headers are only included in its engine's folder."""
    if not source.is_c:
        return
    allowed = allowed_folders(source.path)
    for number, name, quoted in includes(source):
        if LLAMA_HEADER.search(name) and not source.path.startswith((LLAMA_FOLDER, *LLAMA_TESTS)):
            yield number, f"{name}: llama.cpp's headers belong to {LLAMA_FOLDER} alone"
        elif name.startswith(CLIENT) and source.path.startswith(NOT_HOSTS) and not source.path.startswith(CLIENT):
            yield number, f"{name}: {CLIENT} is for hosts"
        elif allowed is None:
            continue
        elif ".." in name.split("/"):
            yield number, f"{name}: an include names its folder from the root"
        elif name.startswith(OUR_FOLDERS) and not name.startswith(allowed):
            yield number, f"{name}: {source.path.rsplit('/', 1)[0]} may not include it"
        elif front_fault(source.path, "helper/" + name):
            yield number, f"{name}: {front_fault(source.path, 'helper/' + name)}"
        elif quoted and "/" not in name and not source.path.startswith(LLAMA_FOLDER):
            yield number, f"{name}: an include names its folder"


def platform_conditionals(source):
    """(d) only helper/base/platform* may ask which system this is."""
    if not source.is_c or PLATFORM_FILE.match(source.path):
        return
    for number, line in enumerate(source.code, 1):
        match = re.match(r"\s*#\s*(?:el)?if", line) and PLATFORM_MACRO.search(line)
        if match:
            yield number, f"{match.group(1)}: only helper/base/platform* asks for the platform"


def cxx_folder(source):
    """(e) C++ only in the llama engine and the benchmarks."""
    if source.is_cxx and not source.path.startswith(CXX_FOLDERS):
        yield 1, f"C++ belongs to {' and '.join(CXX_FOLDERS)} alone"


DECLARATION = re.compile(r"^(?!typedef\b|#|return\b|static_assert\b|_Static_assert\b)[A-Za-z_][\w\s\*,]*?\b(\w+)\s*\(")


def declarations(source):
    """First line and name of each function declared at file level, brace depth 0 (extern "C" does not count)."""
    depth = 0
    continued = False
    for number, line in enumerate(source.code, 1):
        directive = line.lstrip().startswith("#")
        if depth == 0 and not continued and not directive:
            match = DECLARATION.match(line)
            if match and match.group(1) not in KEYWORDS:
                yield number, match.group(1)
        if directive:
            continued = False if not line.rstrip().endswith("\\") else continued
            continue
        opens_scope = re.search(r'extern\s+" *"\s*\{\s*$', line)
        depth += line.count("{") - line.count("}") - (1 if opens_scope else 0)
        depth = max(depth, 0)
        stripped = line.rstrip()
        continued = bool(stripped) and not stripped.endswith((";", "{", "}")) and not opens_scope


def commented_declarations(source):
    """(f) in headers, each function has a comment above it, or belongs to a group without blank lines that has one."""
    if not source.path.endswith((".h", ".hpp")) or not source.path.startswith(("helper/", "protocol/", "gateway/", "system/")):
        return
    for number, name in declarations(source):
        above = number - 2
        while above >= 0 and source.lines[above].strip() and source.code[above].strip():
            above -= 1
        if above < 0 or not source.lines[above].strip() or not source.lines[above].rstrip().endswith("*/"):
            if not (above >= 0 and source.lines[above].lstrip().startswith("//")):
                yield number, f"{name} has no comment above it"


CHILD_PROCESS = re.compile(r"""(?:from|require\s*\(|import\s*\(|import)\s*["'](?:node:)?child_process["']""")


def child_process(source):
    """(g) only one TypeScript file starts processes, and one of the command line."""
    if not source.is_ts or source.path in ("js-shim/src/process.ts", "js-shim/src/cli/helper.ts"):
        return
    for number, line in enumerate(source.lines, 1):
        if CHILD_PROCESS.search(line) and source.code[number - 1].strip():
            yield number, "child_process is imported by process.ts and cli/helper.ts alone"


def line_length(source):
    """(h) at most 130 characters a line; a row of a Markdown table can't be broken."""
    for number, line in enumerate(source.lines, 1):
        if len(line) > LINE_MAX and not (source.path.endswith(".md") and line.startswith("|")):
            yield number, f"{len(line)} characters; {LINE_MAX} are the most"


def white_space(source):
    """(i) no tabs, no white space at a line's end, one line feed at the end of the file."""
    for number, line in enumerate(source.lines, 1):
        if "\t" in line:
            yield number, "a tab"
        if line != line.rstrip():
            yield number, "white space at the end of the line"
    if source.text and (not source.text.endswith("\n") or source.text.endswith("\n\n")):
        yield len(source.lines), "the file must end with one line end"


def merge_leftover(source):
    """(j) no conflict markers from git."""
    for number, line in enumerate(source.lines, 1):
        if CONFLICT.match(line):
            yield number, "left over from a merge"


# A comment or docstring with at least one word, after a "#!" line if there is one.
OPENING = {
    "c": re.compile(r"/\*(?:(?!\*/).)*?\w.*?\*/|//[^\n]*\w", re.S),
    "py": re.compile(r"#[^\n]*\w|[rR]?\"{3}\s*[^\s\"]"),
    "sh": re.compile(r"#[^\n]*\w"),
}


def opening(source):
    """(k) a file begins with a comment or docstring that says what it is."""
    if not source.path.endswith(OPENING_ENDINGS) or source.path.startswith(OPENING_TO_COME):
        return
    text = re.sub(r"\A#![^\n]*\n", "", source.text)
    language = source.path.rsplit(".", 1)[1] if source.path.endswith((".py", ".sh")) else "c"
    if not OPENING[language].match(text):
        yield 1, "the file must open with a comment that says what it is"


RULES = (banned_calls, function_length, include_direction, platform_conditionals, cxx_folder, commented_declarations,
         child_process, line_length, white_space, merge_leftover, opening)


TAG = re.compile(r"\b(?:struct|union|enum)\s+(fm_\w+)\s*\{")
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(FM_\w+)", re.M)
VARIANT = re.compile(r"(?:_none|_linux|_macos)?\.\w+$")  # endings of files; a build uses one of these files


def names_defined(source):
    """(name, line) of names that other files can use: tags and a header's macros, if they have our prefix, and functions."""
    macros = MACRO.finditer(source.masked) if source.path.endswith((".h", ".hpp", ".hh")) else ()
    for match in (*TAG.finditer(source.masked), *macros):
        yield match.group(1), source.line_of(match.start(1))
    for name, line in external_functions(source):
        if name != "main":
            yield name, line


def same_names(sources):
    """(k) in helper/ and protocol/, each name is used only once: tags, macros of headers, external functions."""
    first = {}
    for source in sources:
        if not source.path.startswith(("helper/", "protocol/")) or not source.is_c:
            continue
        for name, line in names_defined(source):
            path = first.setdefault(name, source.path)
            if path != source.path and not are_variants(path, source.path):
                yield source.path, line, f"{name} is defined in {path} too; different things need different names"


def are_variants(path, other):
    """Whether a build uses at most one of the two files: NAME_linux.c and NAME_macos.c, NAME.c and NAME_none.c."""
    names = {VARIANT.sub("", path), VARIANT.sub("", other)}
    return len(names) == 1 or all(PLATFORM_FILE.match(each) for each in (path, other))


def check_text(path, text):
    """All findings in one file, as (line, message), in order."""
    source = Source(path, text)
    return sorted(finding for rule in RULES for finding in rule(source))


def paths_below(root):
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIPPED_FOLDERS and not f.startswith(("build-", ".")))
        for name in sorted(files):
            if name.endswith(TEXT_ENDINGS) or name == "CMakeLists.txt":
                yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


def main(root):
    sources = []
    findings = warnings = 0
    found = []
    for path in paths_below(root):
        with open(os.path.join(root, path), encoding="utf-8", newline="") as file:
            text = file.read()
        sources.append(Source(path, text))
        found += [(path, line, message) for line, message in check_text(path, text)]
    files = names.read_files(root)
    found += [*same_names(sources), *names.all_findings(files), *requirements.all_findings(files)]
    for path, line, message in found:
        print(f"{path}:{line}: {message}")
        is_warning = message.startswith("warning:")
        warnings += is_warning
        findings += not is_warning
    print(f"style: {len(sources)} files, {findings} findings, {warnings} warnings")
    return 1 if findings or not sources else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")))
