"""The cache of what this process stored just now."""

from bot.domain.jobs import WorkCache
from bot.domain.people import Actor

ANA = Actor("chat", "ana")


def test_a_turn_whose_person_was_dropped_from_the_cache_is_left_to_its_row() -> None:
    own = WorkCache("this", 3)
    own.remember_person(ANA, "ana")
    assert own.find_turn_owner(ANA) == "this"
    for number in range(10_000):
        own.remember_person(Actor("chat", str(number)), str(number))
    own.note_turn_begun("talk", ANA)
    assert own.find_turn_queue("talk") is None
    assert own.find_turn_owner(ANA) == ""
