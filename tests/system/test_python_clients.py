"""fm-system with the Python SDK of the Model Context Protocol, version 1 or 2 (clients/run_python.py).

    test_python_clients.py FOLDER

Exit status 77: skipped, because the SDK is not there; packaging/setup.sh --tests brings it, for Python 3.11 and later.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mcp_client import PROGRAM  # noqa: E402
from patience import WAIT  # noqa: E402

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients", "run_python.py")


def main(folder):
    if not os.path.isdir(os.path.join(folder, "mcp")):
        print(f"skipped: {folder} has no SDK; `sh packaging/setup.sh --tests` brings it")
        return 77
    return subprocess.run([sys.executable, "-B", SCRIPT, PROGRAM, folder], timeout=4 * WAIT).returncode


sys.exit(main(*sys.argv[1:]))
