from __future__ import annotations

import pytest

from kizuki.actors import Gateway, InvalidArgument
from tests.system.cast import CHILD, MAIN, there


async def test_several_turns_are_one_event(gateway: Gateway) -> None:
    """Rule 1.5: several human turns found at once are one event whose payload counts them; a single one has no payload."""
    await gateway.watch(MAIN, CHILD)
    assert there(await gateway.human_message(CHILD, channel="claude", turns=3)).payload == {"turns": 3}
    assert not there(await gateway.human_message(CHILD, channel="claude", turns=1)).payload
    assert len((await gateway.session_status(CHILD, changes_since=0))["stateChanges"]["events"]) == 2


@pytest.mark.parametrize("turns", [0, -1, True, 1.0, "2", None, 2**53 + 1])
async def test_wrong_numbers_of_turns(gateway: Gateway, turns: object) -> None:
    """Rule 1.9: a number of turns that is none is a programming error, which raises at once."""
    with pytest.raises(InvalidArgument, match="turns"):
        await gateway.human_message(CHILD, channel="claude", turns=turns)  # type: ignore[arg-type]
