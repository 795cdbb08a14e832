"""Presses a card each second, in a process that does nothing else, so that only Nod makes it wait.

``python -m tests.torture.presser`` reads one line of JSON: where Nod is, a token, the cards. It writes a line
for each press: the status of the answer, and the seconds it took.
"""

import json
import sys
import time

import httpx


def main() -> None:
    site, token, cards = json.loads(sys.stdin.readline())
    with httpx.Client(base_url=site, headers={"Authorization": f"Bearer {token}"}, timeout=200) as client:
        for card in cards:
            began = time.monotonic()
            answer = client.post(f"/api/proposals/{card}/approve", json={})
            sys.stdout.write(json.dumps([answer.status_code, time.monotonic() - began]) + "\n")
            sys.stdout.flush()
            time.sleep(1)


if __name__ == "__main__":
    main()
