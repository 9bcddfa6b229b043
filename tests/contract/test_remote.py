"""Runs the contract's suite (test_engine.py) on the remote engine in front of llama.cpp's own server, in one of its dialects:

    test_remote.py PROGRAM MODEL chat|responses|messages [CASE...]

FM_REMOTE_SERVER=URL,MODEL names another server (with /v1) and a model of it to use instead. Exit status 77: skipped,
because the server or the model is not there; tests/bench/server.sh builds the server.
"""

import json
import os
import sys
import unittest

import test_engine
from llama_server import PROGRAM, LlamaServer


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    engine, model, dialect = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
    url, _, name = os.environ.get("FM_REMOTE_SERVER", "").partition(",")
    for path in () if url else (PROGRAM, model):
        if not os.path.exists(path):
            print(f"skipped: there is no {path}")
            sys.exit(77)
    server = None if url else LlamaServer(model)
    test_engine.PROGRAM, test_engine.REAL = engine, True
    endpoint = {"url": url, "dialect": dialect, "models": [name]} if url else {"url": server.url, "dialect": dialect}
    os.environ["FM_ENGINE_CONFIG"] = json.dumps({"endpoints": [endpoint]})
    try:
        unittest.main(module=test_engine, argv=[sys.argv[0], *sys.argv[4:]])
    finally:
        if server:
            server.close()


if __name__ == "__main__":
    main()
