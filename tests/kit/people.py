"""Who speaks in the tests, and where."""

from bot.domain.chat import Address
from bot.domain.people import Actor

ANA = Actor("chat", "ana", "Ana")


BEN = Actor("chat", "ben", "Ben")


EVE = Actor("chat", "eve", "Eve")  # may decide nothing


ADA = Actor("chat", "ada", "Ada")  # an admin where a test says so


ROOM = Address("chat", "room")


WALL = Address("wall", "approvals")  # another channel, where cards may be routed to
