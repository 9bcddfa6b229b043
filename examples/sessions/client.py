#!/usr/bin/env python3
"""
A conversation with the local model through session mode (protocol/SESSIONS.md). Standard library only.

    python3 client.py [FM_PROXY [OPTION...]]
"""

import json
import os
import subprocess
import sys

TEXT = "Apples and pears grew in the garden. The plums came later, from a neighbour."


class GatewayError(Exception):
    """The gateway's error in place of an answer."""


class Gateway:
    """A running `fm-proxy sessions`. Use it in a `with` block, which ends it, and from one thread at a time."""

    def __init__(self, program="fm-proxy", *options):
        self.process = subprocess.Popen(
            [program, "sessions", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.communicate()  # ends the input, and so the gateway, whatever went wrong here

    def ask(self, command, **members):
        """Sends one request and waits for its answer."""
        print(json.dumps({"command": command, **members}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise GatewayError("the gateway has ended")
        answer = json.loads(line)
        if not answer["ok"]:
            raise GatewayError(answer["error"])
        return answer

    def message(self, session, prompt, content, output_format):
        """Returns a list of strings, or a string, as output_format says."""
        answer = self.ask(
            "message", session_id=session, prompt=prompt, content=content, output_format=output_format
        )
        return answer["result"]

    def shut_down(self):
        self.ask("shutdown")
        status = self.process.wait()
        if status != 0:
            raise GatewayError(f"the gateway ended with status {status}")


def converse(gateway):
    availability = gateway.ask("check-availability")
    if not availability["available"]:
        print("not available:", availability["reason"])
        return
    session = gateway.ask("open-session", instructions="You answer in few words.")["session_id"]
    fruits = gateway.message(session, "List the fruits that the text names.", TEXT, "string_list")
    for fruit in fruits:
        print("-", fruit)
    # The session remembers the first answer.
    print(gateway.message(session, "Write a sentence about the first of them.", TEXT, "text"))
    gateway.ask("close-session", session_id=session)
    gateway.shut_down()


def main():
    try:
        with Gateway(*sys.argv[1:]) as gateway:
            converse(gateway)
        sys.stdout.flush()
    except (GatewayError, OSError, ValueError) as error:
        if isinstance(error, BrokenPipeError):  # nobody reads what is printed: Python must not try again at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
