"""Who is gone is judged by beats alone."""

from bot.domain.jobs import FailureDetector


def test_a_process_that_does_not_beat_for_four_looks_is_silent() -> None:
    watch = FailureDetector()
    looks = [watch.record_beats({"a": 7, "b": b}) for b in range(5)]
    assert looks == [{}, {}, {}, {}, {"a": 7}]


def test_one_beat_begins_the_count_over() -> None:
    watch = FailureDetector()
    for beats in (1, 1, 1, 1, 2, 2, 2, 2):
        assert watch.record_beats({"a": beats}) == {}
    assert watch.record_beats({"a": 2}) == {"a": 2}


def test_one_that_was_forgotten_and_came_back_is_new() -> None:
    watch = FailureDetector()
    for _ in range(4):
        watch.record_beats({"a": 1})
    assert watch.record_beats({}) == {}
    assert watch.record_beats({"a": 1}) == {}
