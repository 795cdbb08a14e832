"""Who is gone is judged by beats alone."""

from bot.domain.jobs import Watch


def test_a_process_that_does_not_beat_for_four_looks_is_silent() -> None:
    watch = Watch()
    looks = [watch.look({"a": 7, "b": b}) for b in range(5)]
    assert looks == [{}, {}, {}, {}, {"a": 7}]


def test_one_beat_begins_the_count_over() -> None:
    watch = Watch()
    for beats in (1, 1, 1, 1, 2, 2, 2, 2):
        assert watch.look({"a": beats}) == {}
    assert watch.look({"a": 2}) == {"a": 2}


def test_one_that_was_forgotten_and_came_back_is_new() -> None:
    watch = Watch()
    for _ in range(4):
        watch.look({"a": 1})
    assert watch.look({}) == {}
    assert watch.look({"a": 1}) == {}
