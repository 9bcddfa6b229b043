#!/usr/bin/env python3
"""Proves that each rule of check.py, includes.py, names.py and requirements.py finds exactly the faults that it is for.

A row is: the rule, a path, a text, and the (line, part of the message) of each expected finding.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import check  # noqa: E402
import includes  # noqa: E402
import names  # noqa: E402
import requirements  # noqa: E402

C = "helper/base/x.c"
H = "helper/base/x.h"


def body(name, lines):
    """A function with that many lines in total."""
    return f"static int {name}(int a) {{\n" + "    a++;\n" * (lines - 3) + "    return a;\n}\n"


ROWS = [
    # (a) banned calls
    (check.banned_calls, C, "strcpy(a, b);\n", [(1, "strcpy() is banned")]),
    (check.banned_calls, C, "\nx = atoi (s);\n", [(2, "atoi() is banned; use strtol")]),
    (check.banned_calls, C, "a = sprintf(b, c) + strlen(d); gets(e);\n", [(1, "gets()"), (1, "sprintf()")]),
    (check.banned_calls, "helper/engine/llama/x.cpp", "std::system(c);\n", [(1, "system()")]),
    (check.banned_calls, C, "sscanf(a, b);\nalloca(4);\npopen(c, d);\ntmpnam(0);\n",
     [(1, "sscanf()"), (2, "alloca()"), (3, "popen()"), (4, "tmpnam()")]),
    (check.banned_calls, C, 'f("%s", /* gets( */ "system(\\"a\\") sprintf(");\n// atoi(x)\n', []),
    (check.banned_calls, C, "/* two\n strcpy(a, b)\n lines */ strcat(a, b);\n", [(3, "strcat()")]),
    (check.banned_calls, C, "snprintf(a); my_strcpy(b); fm_system(c); x->gets(d); y.system(e); int atoi;\n", []),
    (check.banned_calls, C, 'setlocale(LC_ALL, "");\nuselocale(a);\n', [(1, "setlocale() is banned"), (2, "uselocale()")]),
    (check.banned_calls, C, "char q = '\"'; strtok(a, b); char r = '\"';\n", [(1, "strtok()")]),
    (check.banned_calls, C, "char q = '\\''; strtok(a, b);\n", [(1, "strtok()")]),
    (check.banned_calls, "helper/engine/llama/x.cpp", 'auto s = R"(atoi(1) " )"; int n = 1\'000; atoi(s);\n',
     [(1, "atoi()")]),
    (check.banned_calls, "js-shim/src/x.ts", "system(1);\n", []),
    # (b) function length
    (check.function_length, C, body("short_one", 60), []),
    (check.function_length, C, body("longer", 61), [(1, "warning: longer has 61 lines")]),
    (check.function_length, C, "int a;\n\n" + body("longest", 100), [(3, "warning: longest has 100 lines")]),
    (check.function_length, C, body("first", 5) + body("too_long", 101), [(6, "too_long has 101 lines; 100 are")]),
    (check.function_length, C,
     "static int f(int a,\n             int b) {\n" + "    a++;\n" * 99 + "}\n", [(1, "f has 102 lines")]),
    (check.function_length, C, 'int f(void) {\n    g("}");\n' + "    /* } */\n" * 100 + "}\n",
     [(1, "f has 103 lines")]),
    (check.function_length, C, "static const int table[] = {\n" + "    1,\n" * 200 + "};\n", []),
    (check.function_length, C, "#define M(x) do { \\\n    (x); \\\n} while (0)\n" + body("f", 101),
     [(4, "f has 101 lines")]),
    (check.function_length, "helper/engine/llama/x.cpp",
     "namespace a {\nextern \"C\" {\n" + body("f", 101) + "}\n}\n", [(3, "f has 101")]),
    (check.function_length, "helper/engine/llama/x.cpp",
     "class A : public B {\n  public:\n" + body("m", 101) + "};\n", [(3, "m has 101")]),
    (check.function_length, "helper/engine/llama/x.cpp",
     "A::A(int a) : b(a), c{0} {\n" + "    x();\n" * 101 + "}\n", [(1, "A::A has 103")]),
    # (c) include direction
    (check.include_direction, "helper/base/x.c", '#include "protocol/frame.h"\n', [(1, "may not include it")]),
    (check.include_direction, "protocol/x.c", '#include "surface/surface.h"\n', [(1, "may not include it")]),
    (check.include_direction, "protocol/x.c", '#include "protocol/client/client.h"\n', [(1, "is for hosts")]),
    (check.include_direction, "helper/front/jobs.c", '#include "protocol/client/client.h"\n', [(1, "is for hosts")]),
    (check.include_direction, "protocol/client/x.c", '#include "surface/surface.h"\n', [(1, "may not include it")]),
    (check.include_direction, "helper/surface/x.h", '#include <stdio.h>\n#include "front/front.h"\n',
     [(2, "helper/surface may not")]),
    (check.include_direction, "helper/front/x.c", '#include "engine/kit/kit.h"\n', [(1, "may not include it")]),
    (check.include_direction, "helper/engine/kit/x.c", '#include "surface/surface.h"\n', [(1, "may not include it")]),
    (check.include_direction, "helper/engine/kit/x.c", '#include "engine/fake/script.h"\n',
     [(1, "may not include it")]),
    (check.include_direction, "helper/engine/fake/x.c", '#include "front/outbox.h"\n', [(1, "may not include it")]),
    (check.include_direction, "helper/engine/fake/x.c", '#include "engine/llama/cache.h"\n',
     [(1, "may not include it")]),
    (check.include_direction, "helper/engine/kit/x.c", '#include "engine/chat/tools.h"\n', [(1, "may not include it")]),
    (check.include_direction, "helper/engine/chat/x.c", '#include "engine/guide/schema.h"\n', [(1, "may not include it")]),
    (check.include_direction, "helper/engine/chat/x.c", '#include "engine/llama/bridge.h"\n', [(1, "may not include it")]),
    (check.include_direction, "helper/engine/guide/x.c", '#include "engine/llama/prompt.h"\n', [(1, "may not include it")]),
    (check.include_direction, "helper/engine/guide/x.c", '#include <llama.h>\n', [(1, "llama.cpp's headers")]),
    (check.include_direction, "helper/engine/guide/x.c", '#include "engine/chat/tools.h"\n#include "engine/kit/kit.h"\n', []),
    (check.include_direction, "helper/main.c", '#include "engine/kit/kit.h"\n', [(1, "may not include it")]),
    (check.include_direction, "helper/front/x.c", '#include "../surface/surface.h"\n', [(1, "from the root")]),
    (check.include_direction, "helper/front/x.c", '#include "front.h"\n', [(1, "names its folder")]),
    (check.include_direction, "helper/front/x.c", '#include "llama.h"\n', [(1, "llama.cpp's headers")]),
    (check.include_direction, "helper/engine/kit/x.c", "#include <ggml-backend.h>\n", [(1, "llama.cpp's headers")]),
    (check.include_direction, "helper/engine/fake/x.c", '#  include "common/chat.h"\n', [(1, "llama.cpp's headers")]),
    (check.include_direction, "tests/unit/x.c", "#include <llama.h>\n", [(1, "llama.cpp's headers")]),
    (check.include_direction, "helper/base/x.c", '#include "base/buf.h"\n#include <json-c/json.h>\n', []),
    (check.include_direction, "protocol/x.c", '#include "base/buf.h"\n#include "protocol/rpc.h"\n#include <math.h>\n',
     []),
    (check.include_direction, "protocol/client/x.c", '#include "protocol/client/a.h"\n#include "protocol/b.h"\n', []),
    (check.include_direction, "tests/client/x.c", '#include "protocol/client/client.h"\n', []),
    (check.include_direction, "helper/surface/x.c", '#include "surface/a.h"\n#include "protocol/a.h"\n#include "base/a.h"\n',
     []),
    (check.include_direction, "helper/front/jobs.c", '#include "front/state.h"\n#include "surface/a.h"\n#include "base/a.h"\n',
     []),
    # ... inside the front
    (check.include_direction, "helper/front/engines/relay.c", '#include "front/dispatch.h"\n',
     [(1, "the layer top of the front lies above parts")]),
    (check.include_direction, "helper/front/engines/events.c", '#include "front/store/queue.h"\n', [(1, "lies beside engines")]),
    (check.include_direction, "helper/front/store/new.c", '#include "front/engines/send.h"\n', [(1, "lies beside store")]),
    (check.include_direction, "helper/front/store/queue.c", '#include "front/methods/stored.h"\n', [(1, "layer methods of the")]),
    (check.include_direction, "helper/front/jobs.c", '#include "front/engines/supervisor.h"\n', [(1, "lies above jobs")]),
    (check.include_direction, "helper/front/state.h", '#include "front/jobs.h"\n', [(1, "lies above state")]),
    (check.include_direction, "helper/front/outbox.c", '#include "front/state.h"\n', [(1, "lies above parts")]),
    (check.include_direction, "helper/front/new.c", '#include "front/outbox.h"\n', [(1, "helper/front/new.c has no layer")]),
    (check.include_direction, "helper/front/front.c", '#include "front/new.h"\n', [(1, "helper/front/new.h has no layer")]),
    (check.include_direction, "helper/front/engines/new.c", '#include "front/engines/models.h"\n#include "front/jobs.h"\n', []),
    (check.include_direction, "helper/front/methods/new.c", '#include "front/methods/params.h"\n#include "front/store/queue.h"\n',
     []),
    (check.include_direction, "helper/sessions/link.c", '#include "front/front.h"\n', []),
    (check.include_direction, "helper/engine/kit/x.c", '#include "engine/kit/a.h"\n#include "protocol/a.h"\n', []),

        (check.include_direction, "helper/engine/llama/x.cpp", '#include "engine/llama/a.h"\n#include "engine/kit/kit.h"\n'
     '#include "llama.h"\n#include "log.h"\n', []),
    (check.include_direction, "tests/unit/x.c", '#include "front/outbox.h"\n#include "wire.h"\n', []),
    (check.include_direction, "helper/base/x.c", '// #include "front/front.h"\n/*\n#include "front/front.h"\n*/\n',
     []),
    # (d) platform conditionals
    (check.platform_conditionals, "helper/front/x.c", "#ifdef __linux__\n", [(1, "__linux__")]),
    (check.platform_conditionals, "helper/front/x.c", "#if 0\n#elif defined(__APPLE__)\n#endif\n",
     [(2, "__APPLE__")]),
    (check.platform_conditionals, "tests/unit/x.c", "#  ifndef _WIN32\n", [(1, "_WIN32")]),
    (check.platform_conditionals, "helper/base/platform_linux.c", "#ifdef __linux__\n", []),
    (check.platform_conditionals, "helper/base/clock.c", "#ifdef __linux__\n", [(1, "__linux__")]),
    (check.platform_conditionals, "helper/front/x.c", "#ifdef FM_SANITIZE\n/* #ifdef __linux__ */\n", []),
    # (e) C++
    (check.cxx_folder, "helper/front/x.cpp", "", [(1, "C++ belongs to")]),
    (check.cxx_folder, "helper/engine/kit/x.hpp", "", [(1, "C++ belongs to")]),
    (check.cxx_folder, "helper/engine/llama/x.cpp", "", []),
    (check.cxx_folder, "tests/bench/x.cc", "", []),
    (check.cxx_folder, "helper/front/x.c", "", []),
    # (f) comments in headers
    (check.commented_declarations, H, "int f(void);\n", [(1, "f has no comment")]),
    (check.commented_declarations, H, "/* What f does. */\nint f(void);\n", []),
    (check.commented_declarations, H, "/* Both. */\nint f(void);\nint g(int a,\n      int b);\nint h(void);\n", []),
    (check.commented_declarations, H, "/* Of f. */\nint f(void);\n\nint g(void);\n", [(4, "g has no comment")]),
    (check.commented_declarations, H, "/* Far off. */\n\nint f(void);\n", [(3, "f has no comment")]),
    (check.commented_declarations, H, "/*\n * Long.\n */\nFM_MUST_USE enum fm_code f(struct s *s,\n    int b) FM_PRINTF(1, 2);\n",
     []),
    (check.commented_declarations, H, "struct s {\n    int (*call)(void);\n};\n\nstruct s f(void);\n",
     [(5, "f has no comment")]),
    (check.commented_declarations, H, "int f(void); /* trailing only */\n", [(1, "f has no comment")]),
    (check.commented_declarations, H, "// C++ style.\nint f(void);\n", []),
    (check.commented_declarations, H, 'extern "C" {\n\nint f(void);\n}\n', [(3, "f has no comment")]),
    (check.commented_declarations, H, "extern const char *const words[];\ntypedef int (*fn)(void);\n#define F(x) g(x)\n",
     []),
    (check.commented_declarations, "protocol/x.h", "void f(void);\n", [(1, "f has no comment")]),
    (check.commented_declarations, "tests/unit/x.h", "int f(void);\n", []),
    (check.commented_declarations, C, "int f(void);\n", []),
    # (g) child_process
    (check.child_process, "js-shim/src/client.ts", 'import { spawn } from "node:child_process";\n',
     [(1, "child_process")]),
    (check.child_process, "js-shim/src/client.ts", "const c = require('child_process');\n", [(1, "child_process")]),
    (check.child_process, "js-shim/src/client.ts", 'const c = await import("child_process");\n',
     [(1, "child_process")]),
    (check.child_process, "js-shim/src/process.ts", 'import { spawn } from "node:child_process";\n', []),
    (check.child_process, "js-shim/src/client.ts", '// import { spawn } from "node:child_process";\nimport "./process.js";\n',
     []),
    # (h) line length
    (check.line_length, C, "x" * 130 + "\n", []),
    (check.line_length, C, "\n" + "x" * 131 + "\n", [(2, "131 characters")]),
    (check.line_length, "tests/x.py", "\u00e9" * 130 + "\n", []),
    (check.line_length, "x.md", "| " + "x" * 131 + "\n" + "x" * 131 + "\n", [(2, "131 characters")]),
    # (i) white space
    (check.white_space, C, "\tint a;\n", [(1, "a tab")]),
    (check.white_space, C, "int a; \nint b;\n", [(1, "white space at the end")]),
    (check.white_space, C, "int a;\r\n", [(1, "white space at the end")]),
    (check.white_space, C, "int a;", [(1, "one line end")]),
    (check.white_space, C, "int a;\n\n", [(3, "one line end")]),
    (check.white_space, C, "int a;\n\nint b;\n", []),
    # (j) leftovers of a merge
    (check.merge_leftover, "x.md", "\n".join(("a", "<" * 7 + " HEAD", "b", "=" * 7, "c", ">" * 7 + " topic", "")),
     [(2, "left over"), (4, "left over"), (6, "left over")]),
    (check.merge_leftover, "x.md", "=" * 8 + "\n" + "<" * 7 + "\n", []),
    # (k) what a file is
    (check.opening, C, '#include "base/x.h"\n', [(1, "must open with a comment")]),
    (check.opening, H, "\n/* Late. */\n", [(1, "must open")]),
    (check.opening, H, "/* */\nint a; /* b */\n", [(1, "must open")]),
    (check.opening, C, "", [(1, "must open")]),
    (check.opening, C, "/* What it is. */\n", []),
    (check.opening, C, "/*\n * What it is,\n * in two lines.\n */\n", []),
    (check.opening, "tests/unit/x.cpp", "// What it is.\n", []),
    (check.opening, "tests/js/x.test.mjs", 'import "a";\n// Late.\n', [(1, "must open")]),
    (check.opening, "tests/js/x.test.mjs", "// What it is.\n", []),
    (check.opening, "tests/bench/x.cjs", "require(1);\n", [(1, "must open")]),
    (check.opening, "js-shim/scripts/x.ts", "/** What it is. */\n", []),
    (check.opening, "js-shim/scripts/x.ts", "export {};\n", [(1, "must open")]),
    (check.opening, "tests/x.py", '#!/usr/bin/env python3\n"""What it is."""\n', []),
    (check.opening, "tests/x.py", '#!/usr/bin/env python3\n# What it is.\nimport os\n', []),
    (check.opening, "tests/x.py", "#!/usr/bin/env python3\nimport os\n", [(1, "must open")]),
    (check.opening, "tests/x.py", 'import os\n"""Late."""\n', [(1, "must open")]),
    (check.opening, "tests/x.py", '"""\n"""\n', [(1, "must open")]),
    (check.opening, "x.sh", "#!/bin/sh\n# What it is.\n", []),
    (check.opening, "x.sh", "#!/bin/sh\nset -eu\n# Late.\n", [(1, "must open")]),
    (check.opening, "x.cmake", "set(a 1)\n", []),
]


def run_row(row):
    rule, path, text, expected = row
    got = sorted(rule(check.Source(path, text)))
    same = len(got) == len(expected) and all(g[0] == e[0] and e[1] in g[1] for g, e in zip(got, expected))
    return same, got


def run_program(files, script=check, arguments=()):
    """Runs the script as users do, on a tree with these files. Returns its exit status and its output."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8", newline="") as file:
                file.write(text)
        result = subprocess.run([sys.executable, script.__file__, *arguments, root], capture_output=True, text=True, check=False)
        return result.returncode, result.stdout


OPENED = "/* What it is. */\n"
PROGRAM_ROWS = [
    ({C: OPENED + "int a;\n"}, 0, "style: 1 files, 0 findings, 0 warnings\n"),
    ({C: OPENED + "\tint b;\n"}, 1, f"{C}:2: a tab\nstyle: 1 files, 1 findings, 0 warnings\n"),
    ({C: OPENED + body("f", 61)},
     0, f"{C}:2: warning: f has 61 lines; beyond 60 it asks to be cut\nstyle: 1 files, 0 findings, 1 warnings\n"),
    ({C: "int a;\n"}, 1,
     f"{C}:1: the file must open with a comment that says what it is\nstyle: 1 files, 1 findings, 0 warnings\n"),
    ({C: OPENED + "int a;\n", "js-shim/node_modules/x.ts": "\t\n", "build/x.c": "\t\n"},
     0, "style: 1 files, 0 findings, 0 warnings\n"),
    ({"helper/front/a.h": "/* A. */\nstruct fm_job {\n};\n", "helper/engine/kit/kit.h": "/* B. */\nstruct fm_job {\n};\n"},
     1, "helper/front/a.h:2: fm_job is defined in helper/engine/kit/kit.h too; different things need different names\n"
        "style: 2 files, 1 findings, 0 warnings\n"),
    ({"a.md": "`none.c`\n"}, 1, "a.md:1: none.c: there is no such name outside of the documents\n"
                                "style: 1 files, 1 findings, 0 warnings\n"),
    ({}, 1, "style: 0 files, 0 findings, 0 warnings\n"),
]


# files, and (path, line, part of the message) of each finding of same_names
NAME_ROWS = [
    ({"helper/front/a.h": "struct fm_job {\n    int a;\n};\n", "helper/engine/kit/kit.h": "\nstruct fm_job {\n"},
     [("helper/engine/kit/kit.h", 2, "fm_job is defined in helper/front/a.h too")]),
    ({"helper/front/a.c": "void fm_free(int a) {\n}\n", "protocol/b.c": "/* */\nint fm_free(void) {\n}\n"},
     [("protocol/b.c", 2, "fm_free is defined in helper/front/a.c too")]),
    ({"helper/front/a.h": "#define FM_MAX 1\n", "protocol/b.h": "\n# define FM_MAX(a) (a)\n"},
     [("protocol/b.h", 2, "FM_MAX is defined in helper/front/a.h too")]),
    ({"helper/a/a.h": "enum fm_a { A };\n", "helper/b/b.c": "struct fm_a {\n"}, [("helper/b/b.c", 1, "fm_a is")]),
    # names that are declared, used, or known only to one file
    ({"helper/front/a.h": "struct fm_job;\nvoid fm_free(struct fm_job *job);\n", "helper/front/b.h": "struct fm_job {\n",
      "helper/front/b.c": "void fm_free(struct fm_job *job) {\n}\n"}, []),
    ({C: "struct row {\n};\nstatic int f(void) {\n}\n", "helper/front/x.c": "struct row {\n};\nstatic int f(void) {\n}\n"}, []),
    ({"helper/main.c": "int main(void) {\n}\n", "helper/engine/fake/fake.c": "int main(void) {\n}\n"}, []),
    ({"tests/unit/a.c": "struct fm_a {\n", "tests/unit/b.c": "struct fm_a {\n"}, []),
    ({"helper/a/a.h": "#define FM_A 1\n", "helper/a/a.c": "#define FM_A 2\n", "helper/b/b.h": "/*\n#define FM_A 3\n*/\n",
      "helper/c/c.h": "#ifdef FM_A\n#undef FM_A\n"}, []),
    ({"helper/a/a.h": "#define MAX 1\n", "helper/b/b.h": "#define MAX 2\n"}, []),
    # files of which a build uses one
    ({"helper/base/platform_macos.c": "int fm_a(void) {\n}\n", "helper/base/platform_cpus_linux.c": "int fm_a(void) {\n}\n"}, []),
    ({"helper/engine/guide/a.c": "int fm_a(void) {\n}\n", "helper/engine/guide/a_none.c": "int fm_a(void) {\n}\n"}, []),
    ({"helper/engine/guide/a.c": "int fm_a(void) {\n}\n", "helper/engine/guide/b_none.c": "int fm_a(void) {\n}\n"},
     [("helper/engine/guide/b_none.c", 1, "fm_a is defined in")]),
]


def run_name_rows():
    failed = 0
    for files, expected in NAME_ROWS:
        got = list(check.same_names([check.Source(path, text) for path, text in files.items()]))
        if len(got) != len(expected) or any(g[:2] != e[:2] or e[2] not in g[2] for g, e in zip(got, expected)):
            failed += 1
            print(f"{files}\n  expected {expected}\n  got      {got}")
    return failed


def calls(*others):
    """A function fm_NAME that calls the functions of others."""
    return lambda name: f"void fm_{name}(void) {{\n" + "".join(f"    fm_{other}();\n" for other in others) + "}\n"


def tree(folder, **files):
    return {f"{folder}/{name}.c": text(name) for name, text in files.items()}


def headers(folder, **included):
    """A header that includes other headers, and a .c file that includes this header."""
    made = {}
    for name, others in included.items():
        made[f"helper/{folder}/{name}.h"] = "".join(f'#include "{folder}/{other}.h"\n' for other in others)
        made[f"helper/{folder}/{name}.c"] = f'#include "{folder}/{name}.h"\n'
    return made


PUMP = "void fm_front_pump_locked(void) {\n"


def inline(path, *others):
    """A header that defines fm_NAME, which calls the functions of others."""
    return {path: "static inline " + calls(*others)(os.path.basename(path)[:-2])}


# files, and a part of each finding of includes.py
INCLUDE_ROWS = [
    (headers("surface", a=("b",), b=("c",), c=("a",)), ["a circle of #include over 3 files: helper/surface/a, helper/surface/b"]),
    (headers("surface", a=("b",), b=("a",)), []),
    (headers("surface", a=("b", "c"), b=("c",), c=()), []),
    # a circle through a .c file: a header and the file with its name are one node
    ({**headers("surface", a=("b",), b=("c",), c=()), "helper/surface/c.c": '#include "surface/a.h"\n'},
     ["a circle of #include over 3 files"]),
    (headers("surface", answer=("items",), items=("other",), other=("answer",)), ["over 3 files"]),
    (tree("helper/engine/kit", a=calls("b"), b=calls("c"), c=calls("a")), ["a circle of calls over 3 files"]),
    (tree("helper/engine/kit", a=calls("b"), b=calls("a"), c=calls("a", "b")), []),
    ({"helper/base/a.h": "", "protocol/p.h": "", "helper/base/b.c": '#include "base/a.h"\n#include "protocol/p.h"\n'},
     ["helper/base/b.c:2: protocol/p.h lies above it, or beside it"]),
    ({"helper/engine/kit/kit.h": "", "helper/front/f.c": '#include "engine/kit/kit.h"\n'},
     ["helper/front/f.c:1: engine/kit/kit.h lies above it, or beside it"]),
    ({"helper/engine/llama/a.h": "", "helper/engine/fake/f.c": '#include "engine/llama/a.h"\n'}, ["beside it"]),
    ({"helper/engine/guide/a.h": "", "helper/engine/chat/f.c": '#include "engine/guide/a.h"\n'}, ["lies above it"]),
    ({"helper/front/front.h": "", "helper/engine/guide/f.c": '#include "front/front.h"\n'}, ["lies above it"]),
    ({"helper/front/store/s.h": "", "helper/front/methods/f.c": '#include "front/store/s.h"\n'}, []),
    ({"helper/new/a.h": "", "helper/new/a.c": '#include "new/a.h"\n'}, ["no place among the layers"]),
    # the layers of the front
    ({"helper/front/dispatch.h": "", "helper/front/engines/relay.c": '#include "front/dispatch.h"\n'},
     ["helper/front/engines/relay.c:1: front/dispatch.h: the layer top of the front lies above parts"]),
    # a call that no header shows: declared below, defined above
    ({"helper/front/state.h": "void fm_pump(void);\n", "helper/front/jobs.c": "void fm_a(void) {\n    fm_pump();\n}\n",
      "helper/front/pump.c": "void fm_pump(void) {\n}\n"},
     ["helper/front/jobs.c calls a function of helper/front/pump.c: front/pump.c: the layer top of the front lies above jobs"]),
    # the same through a function in a header; a header's declarations are not calls
    ({**inline("helper/engine/kit/a.h", "b"), **tree("helper/engine/kit", b=calls("c"), c=calls("a"))},
     ["a circle of calls over 3 files"]),
    ({"helper/engine/kit/a.h": "void fm_b(void);\n", **tree("helper/engine/kit", b=calls("c"), c=calls("a"))}, []),
    (inline("helper/base/a.h", "b") | {"protocol/b.c": "void fm_b(void) {\n}\n"},
     ["helper/base/a.h calls a function of protocol/b.c: protocol/b.c lies above it, or beside it"]),
    # the function that may be called from below, and no other with it
    (inline("helper/front/state.h", "front_pump_locked") | tree("helper/front", pump=lambda name: PUMP + "    fm_state();\n}\n"),
     []),
    (inline("helper/front/state.h", "front_pump_locked", "z") | {"helper/front/pump.c": PUMP + "}\nvoid fm_z(void) {\n}\n"},
     ["helper/front/state.h calls a function of helper/front/pump.c"]),
]
PICTURE = {"helper/base/a.h": "", "helper/base/a.c": '#include "base/a.h"\n', "protocol/p.c": '#include "base/a.h"\n'}
PICTURE_ROWS = [
    ((), 'graph TD\n    n0["helper/base"]\n    n1["protocol"]\n    n1 -->|1| n0\n'),
    (("--files",), 'graph TD\n    n0["helper/base/a"]\n    n1["protocol/p"]\n    n1 -->|1| n0\n'),
    (("--dot",), 'digraph includes {\n    node [shape=box]\n    n0 [label="helper/base"]\n    n1 [label="protocol"]\n'
     '    n1 -> n0 [label="1"]\n}\n'),
    (("--calls",), "graph TD\n"),
]
# the layers of the front, for a file in a folder and a file beside the folder
FRONT_PICTURE = {"helper/front/state.h": '#include "front/engines/models.h"\n', "helper/front/engines/models.h": "",
                 "helper/front/engines/send.c": '#include "front/state.h"\n'}
FRONT_PICTURE_ROWS = [
    ((), 'graph TD\n    n0["helper/front: engines"]\n    n1["helper/front: parts"]\n    n2["helper/front: state"]\n'
     '    n0 -->|1| n2\n    n2 -->|1| n1\n'),
    (("--files",), 'graph TD\n    n0["helper/front/engines/models"]\n    n1["helper/front/engines/send"]\n'
     '    n2["helper/front/state"]\n    n1 -->|1| n2\n    n2 -->|1| n0\n'),
]


# A page and other files, and a part of each finding of names.py
CODE = {"helper/base/buf.h": "int fm_buf;\n", "helper/base/buf.c": "",
        "tests/e2e/test_a.py": "def test_b_c(): f('--c-d')\n", "js-shim/src/a.ts": "const maxRetries = 1;\n",
        ".ci/run": None}
NAMED_ROWS = [
    # (a) paths and files
    ("`helper/base/buf.c`, `buf.h`, `base/buf.[ch]`, `e2e/`, `../helper/base/buf.h`, `python3 tests/e2e/test_a.py X`", []),
    ("`helper/base/none.c`", ["docs/a.md:1: helper/base/none.c: there is no such name"]),
    ("a\n\n`none.md`, `buf.[cm]`, `tests/no/`, `sh none.sh MINUTES`", ["a.md:3: none.md", "buf.[cm]", "tests/no/", "none.sh"]),
    ("`src/buf.h`", ["src/buf.h"]),  # the end of a path, with whole names
    ("`e2e/test_NAME.py`, `tests/FOLDER/test_a.py`, `base/*.c`", []),
    ("`e2e/test_NAME.c`, `NAME`", ["test_NAME.c"]),
    ("`build/x.c`, `remote.json`, `llama.cpp`, `image/png`, `a.b.c`, `~/x.json`, `/etc/x.json`", ["a.b.c"]),
    ("```\n`none.c`\n```\nnone.c\n", []),
    # (b) identifiers and options
    ("`fm_buf`, `fm_buf(&x)`, `maxRetries: 2`, `A.test_b_c`, `test_a`, `--c-d`, `x --c-d=1`", []),
    ("`fm_none`", ["docs/a.md:1: fm_none: there is no such name"]),
    ("`maxNone`, `A.test_none`, `--none`, `f(fm_none)`", ["maxNone", "test_none", "--none", "fm_none"]),
    ("`test_b_...`, `test_..._c`, `..._c`, `fm_*`", []),
    ("`test_c_...`, `..._d`", ["test_c_...", "..._d"]),
    ("`none`, `None`, `NONE`, `X-None`, `asarUnpack`", []),
]
# users' requests may have any names; the descriptions of what is here may not
ASKED = {"docs/requirements-a.md": "| a | `fm_old`, `old.c` | yes: `fm_none` | `none.c` |\n| `fm_old` | `none.c` |\n`fm_old`\n"}
ASKED_FOUND = ["a.md:1: fm_none", "a.md:1: none.c", "a.md:2: none.c", "a.md:3: fm_old"]
# a page does not prove that a name on another page exists
PAGES = {"docs/a.md": "`fm_none` `b.md` `c/d.md`\n", "docs/b.md": "fm_none c/d.md\n"}
PAGES_FOUND = ["a.md:1: fm_none", "a.md:1: c/d.md"]
# the table of files
TABLE = "| Folder | File | What |\n|---|---|---|\n| `helper/` | `main.c` | |\n| `base/` | `buf`, `a.h` | |\n| | `b` | |\n"
TABLED = {"helper/main.c": "", "helper/base/buf.c": "", "helper/base/buf.h": "", "helper/base/a.h": "", "helper/base/b.c": ""}
TABLE_ROWS = [
    (TABLE, TABLED, []),
    (TABLE, TABLED | {"helper/base/c.h": ""}, ["helper/README.md:1: helper/base/c.h has no line"]),
    (TABLE, TABLED | {"helper/base/a.c": ""}, ["helper/base/a.c has no line"]),  # the row only has the header
    (TABLE, TABLED | {"helper/front/b.c": ""}, ["helper/front/b.c has no line"]),
    (TABLE + "| | `c` | |\n", TABLED, ["helper/README.md:6: c: the row's folder has no such file"]),
    (TABLE + "| `base/` | `main.c` | |\n", TABLED, ["README.md:6: main.c: the row's"]),
    (TABLE + "| `front/methods/` | a file for each | |\n", TABLED | {"helper/front/methods/x.c": ""}, []),
    (TABLE + "| `../protocol/` | `p` | |\n", TABLED | {"protocol/p.c": "", "tests/x.c": "", "helper/x.py": ""}, []),
]


def run_named_rows():
    tables = [({"docs/a.md": page, **CODE}, expected) for page, expected in NAMED_ROWS]
    tables += [(PAGES, PAGES_FOUND), (ASKED, ASKED_FOUND)]
    tables += [({"helper/README.md": page, **files}, expected) for page, files, expected in TABLE_ROWS]
    failed = 0
    for files, expected in tables:
        got = [f"{path}:{line}: {message}" for path, line, message in names.all_findings(files)]
        status, _ = run_program({path: text or "" for path, text in files.items()}, names)
        if len(got) != len(expected) or any(e not in g for e, g in zip(expected, got)) or status != bool(expected):
            failed += 1
            print(f"{files}\n  expected {expected}\n  got      {got}, exit status {status}")
    return failed


# rows of a table of requirements, its numbers in the index, and a part of each finding
INDEXED = "| [A](requirements-a.md#the-first-one) | {} |\n"
TESTS = {"tests/js/a.test.mjs": 'test("one thing")', "tests/unit/b.c": "void two(void)", "sh/c.sh": "three"}
REQUIRED_ROWS = [
    ("| 1 | a | yes | `js/a.test.mjs` \"one\"; `unit/b.c` `two`; `sh/c.sh` |\n| 1 | b | other: c | - |\n", "2 | 1 | 1 | 0 | 0",
     []),
    ("| 1 | a | not yet | - |\n| 1 | b | no: c | - |\n| 1 | d | yes | the same |\n", "3 | 1 | 0 | 1 | 1", []),
    ("| 1 | a | yes | - |\n", "1 | 1 | 0 | 0 | 0", ["a.md:5: what is met has a test"]),
    ("| 1 | a | yes | soon |\n", "1 | 1 | 0 | 0 | 0", ['"soon" names no test']),
    ("| 1 | a | done | `unit/b.c` |\n", "1 | 0 | 0 | 0 | 0", ['a.md:5: "done" begins with none of yes, other']),
    ("| 1 | a | yes |\n", "0 | 0 | 0 | 0 | 0", ["a row has four cells"]),
    ("| 1 | | yes | `unit/b.c` |\n", "1 | 1 | 0 | 0 | 0", ["none of them empty"]),
    ("| 1 | a | yes | `unit/none.c` `two` |\n", "1 | 1 | 0 | 0 | 0", ["unit/none.c is no file", "two is in no file"]),
    ("| 1 | a | yes | `unit/b.c` `one`, \"three\" |\n", "1 | 1 | 0 | 0 | 0", ["one is in no file", "three is in no file"]),
    ("| 1 | a | yes | \"one\" `js/a.test.mjs` |\n", "1 | 1 | 0 | 0 | 0", ["one is in no file"]),  # the file must come first
    ("| 1 | a | yes | `unit/b.c` |\n", "2 | 2 | 0 | 0 | 0", ["a.md:1: the first one: [1, 1, 0, 0, 0] rows (all, yes"]),
]
REQUIRED = "## the first one\n\n| Part | Requirement | Here | Test |\n|---|---|---|---|\n"


def run_required_rows():
    failed = 0
    for rows, numbers, expected in REQUIRED_ROWS:
        files = {"docs/requirements-a.md": REQUIRED + rows, "docs/requirements.md": INDEXED.format(numbers), **TESTS}
        got = [f"{path}:{line}: {message}" for path, line, message in requirements.all_findings(files)]
        if len(got) != len(expected) or any(e not in g for e, g in zip(expected, got)):
            failed += 1
            print(f"{rows}\n  expected {expected}\n  got      {got}")
    return failed


def run_include_row(files, expected):
    sources = {path: check.Source(path, text) for path, text in files.items()}
    got = list(includes.all_findings(sources))
    return len(got) == len(expected) and all(e in g for g, e in zip(got, expected)), got


def run_include_rows():
    failed = 0
    for files, expected in INCLUDE_ROWS:
        good, got = run_include_row(files, expected)
        status, _ = run_program(files, includes)
        if not good or status != bool(expected):
            failed += 1
            print(f"{files}\n  expected {expected}\n  got      {got}, exit status {status}")
    for files, rows in ((PICTURE, PICTURE_ROWS), (FRONT_PICTURE, FRONT_PICTURE_ROWS)):
        for arguments, output in rows:
            got = run_program(files, includes, arguments)
            if got != (0, output):
                failed += 1
                print(f"includes.py {arguments}\n  expected {(0, output)}\n  got      {got}")
    return failed


def run_goes_up_rows():
    """At most two functions may be called from below."""
    failed = 0
    for count, expected in ((includes.GOES_UP_MAX, 0), (includes.GOES_UP_MAX + 1, 1)):
        got = list(includes.all_findings({}, {f"fm_{number}": "why" for number in range(count)}))
        failed += len(got) != expected
    if failed or includes.GOES_UP_MAX > 2 or not all(includes.GOES_UP.values()):
        print(f"GOES_UP: {failed} failed; it has at most two functions, each with a reason")
        return 1
    return 0


def main():
    failed = run_include_rows() + run_goes_up_rows() + run_name_rows() + run_named_rows() + run_required_rows()
    for row in ROWS:
        good, got = run_row(row)
        if not good:
            failed += 1
            print(f"{row[0].__name__}, {row[1]}: {row[2][:200]!r}\n  expected {row[3]}\n  got      {got}")
    fired = {row[0] for row in ROWS if row[3]}
    for rule in check.RULES:
        if rule not in fired:
            failed += 1
            print(f"{rule.__name__}: no row shows that it fires")
    for files, status, output in PROGRAM_ROWS:
        got = run_program(files)
        if got != (status, output):
            failed += 1
            print(f"{files}\n  expected {(status, output)}\n  got      {got}")
    rows = sum(len(table) for table in (ROWS, NAME_ROWS, PROGRAM_ROWS, INCLUDE_ROWS, PICTURE_ROWS, FRONT_PICTURE_ROWS, NAMED_ROWS,
                                       TABLE_ROWS, REQUIRED_ROWS)) + 2
    print(f"style selftest: {rows} rows, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
