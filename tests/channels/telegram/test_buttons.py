"""What a button carries comes back the same, or not at all."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.channels.telegram.buttons import ButtonAction, ButtonData


@given(
    st.builds(
        ButtonData,
        st.sampled_from(ButtonAction),
        st.uuids().map(str) | st.uuids().map(lambda u: UUID(int=u.int).hex),
        st.integers(min_value=0, max_value=999_999_999),
        st.none() | st.integers(min_value=0, max_value=9999),
    )
)
def test_it_fits_and_comes_back_the_same(callback: ButtonData):
    packed = callback.pack()
    assert len(packed.encode()) <= 64
    assert ButtonData.parse(packed) == callback


@pytest.mark.parametrize("ident", ["", "x" * 49, "a.b", "a b", "é"])
def test_an_id_that_would_not_come_back_is_refused_when_the_button_is_made(ident: str):
    with pytest.raises(ValueError, match="does not fit"):
        ButtonData(ButtonAction.APPROVE, ident, 1).pack()


@given(st.text(max_size=80))
def test_whatever_a_client_sends_is_nothing_or_exactly_what_would_be_packed(data: str):
    callback = ButtonData.parse(data)
    assert callback is None or callback.pack() == data


@pytest.mark.parametrize("data", ["ap.x.01", "ap.x.-1", "ap.x.1\n", "AP.x.1", "ap.x.1.", "ap.x.٣"])
def test_near_misses_are_nothing(data: str):
    assert ButtonData.parse(data) is None
