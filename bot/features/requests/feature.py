"""Requests: scripts and other agents ask people over HTTP for approval of what they are about to do.

`REQUESTS` names the feature's parts: the routes, and the tools whose proposals the requests are.
"""

from bot.features.feature import Feature
from bot.features.requests import routes
from bot.features.requests.tools import make_request_toolset

REQUESTS = Feature(
    name="requests",
    api=(routes.router,),
    tags={"requests": "A script asks people."},
    make_toolsets=lambda _: (make_request_toolset(),),
)
