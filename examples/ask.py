"""Ask a person before you deploy. Needs: nod-client, and NOD_URL and NOD_TOKEN of a running Nod.

python examples/ask.py 1.4
"""

import sys

from nod_client import CouldNotAsk, Declined, NotApproved, ask, needs_approval


@needs_approval(summary="Roll back to {version}")
def roll_back(version: str) -> None:
    print(f"rolled back to {version}")


def main(version: str) -> int:
    try:
        request = ask(f"Deploy {version}?", fields={"version": version}, ttl=3600)
        print(f"{request.told} Deploying {request.fields['version']}.")
        roll_back("1.3")
    except Declined as refusal:
        print(f"Not deployed. {refusal}")
        return 1
    except NotApproved as silence:  # expired, withdrawn …: no one said no
        print(f"Not deployed. {silence}")
        return 2
    except CouldNotAsk as fault:
        print(fault)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
