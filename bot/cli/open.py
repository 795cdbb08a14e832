"""``nod open``: the console of the running nod, in a browser."""

import webbrowser

import httpx2

from bot.approvals import signing_in
from bot.cli.shared import existing, load, operator, plain, told
from bot.domain.times import now
from bot.errors import NodError

_SECONDS = 5.0


def open_console(*, only_print: bool) -> None:
    with told():
        settings = load()
        try:
            httpx2.get(f"{settings.own_url}/healthz", timeout=_SECONDS, trust_env=False)
        except httpx2.TransportError:
            raise NodError(f"no nod can be reached at {settings.own_url}. Start it: nod run") from None
        address = settings.site_url()
        if settings.tokens:  # without them this machine is let in as it is
            with existing(settings) as database:
                code = database.write_now(signing_in.new_link, operator(), now())
            address += f"/#/sign-in/{code}"
        if only_print or not webbrowser.open(address):
            print(plain(address))
        else:
            print("Opened the console in your browser.")
