"""fm-system with a client in Python: a script of clients/, such as run_python.py with the SDK of the Model Context Protocol.

    test_python_clients.py SCRIPT FOLDER...

Exit status 77: skipped, because a folder is missing; packaging/setup.sh --tests makes them, for Python 3.11 and later.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mcp_client import PROGRAM  # noqa: E402
from patience import WAIT  # noqa: E402

CLIENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients")


def main(script, *folders):
    for folder in folders:
        if not os.path.isfile(os.path.join(folder, ".installed")):
            print(f"skipped: there is no {folder}; `sh packaging/setup.sh --tests` brings it, for Python 3.11 and later")
            return 77
    command = [sys.executable, "-B", os.path.join(CLIENTS, script), PROGRAM, *folders]
    return subprocess.run(command, timeout=4 * WAIT).returncode


sys.exit(main(*sys.argv[1:]))
