"""The cache of what this process stored just now."""

from bot.domain.jobs import OwnWork
from bot.domain.people import Actor

ANA = Actor("chat", "ana")


def test_a_turn_whose_person_was_dropped_from_the_cache_is_left_to_its_row() -> None:
    own = OwnWork("this", 3)
    own.learn(ANA, "ana")
    assert own.owner(ANA) == "this"
    for number in range(10_000):
        own.learn(Actor("chat", str(number)), str(number))
    own.begins("talk", ANA)
    assert own.queue("talk") is None
    assert own.owner(ANA) == ""
