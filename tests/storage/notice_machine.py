"""The notice machine of two watchers and two targets, made of the pure functions that production uses, beside an oracle made of the rules.

A `World` holds both, and `step` moves both and compares them. What the store does in SQL (which pairs an event reaches, in which order
openings are made) is played here; every decision is asked of `positions` and `heads`. The oracle keeps, per pair, what the
watcher has seen and the notice that it has, in the words of section 4, and knows no positions, no heads and nothing owed.

Sequences are only ever compared, so a world stays the same when they are renumbered in their order: `canonical` does that, and a
search over canonical worlds stands for all histories that lead to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kizuki.storage.heads import NOBODY, Latest, Notifying, Owed, first_material, material, merge, owe, owed_pin
from kizuki.storage.positions import acknowledge, is_open, is_pending, open_at, replay, seed
from kizuki.storage.records import Positions

WATCHERS = ("a", "b")
TARGETS = (0, 1)
PAIRS = tuple((watcher, target) for watcher in range(2) for target in TARGETS)
ALL = 2
"""An opening budget that reaches every watcher."""


class Seen(NamedTuple):
    """The oracle's pair: what was seen, and where its pending notice is pinned (None: no notice)."""

    last_seen: int
    pin: int | None


class Card(NamedTuple):
    """A notice as a turn showed it."""

    target: int
    last_seen: int
    notified: int


class Target(NamedTuple):
    """One target: its log, and its head."""

    version: int = 0
    log: tuple[Notifying, ...] = ()
    latest: Latest = Latest()
    owed: Owed | None = None


class Desk(NamedTuple):
    """What a watcher's host has: an open turn's notices, and those of the last turn that is over."""

    held: tuple[Card, ...] | None = None
    remembered: tuple[Card, ...] = ()


class World(NamedTuple):
    """A whole state. `cursors` (last seen, notified) is the machine's, `rules` the oracle's, both in the order of `PAIRS`."""

    sequence: int = 0
    targets: tuple[Target, ...] = (Target(), Target())
    desks: tuple[Desk, ...] = (Desk(), Desk())
    cursors: tuple[tuple[int, int] | None, ...] = (None,) * 4
    rules: tuple[Seen | None, ...] = (None,) * 4


class Step(NamedTuple):
    """One operation: its name, the watcher or None, the target or None, the actor of an event, and how many openings it may make."""

    name: str
    watcher: int = -1
    target: int = -1
    actor: str = NOBODY
    budget: int = ALL


def _steps() -> Iterator[Step]:
    for target in TARGETS:
        for actor in (NOBODY, *WATCHERS):
            for budget in (0, ALL):
                yield Step("event", target=target, actor=actor, budget=budget)
        yield Step("event", target=target, budget=1)
    for watcher in range(2):
        yield from (Step(name, watcher) for name in ("take", "take one", "acknowledge", "give back", "acknowledge late"))
        yield from (Step(name, watcher, target) for name in ("watch", "unwatch") for target in TARGETS)
    yield from (Step("settle"), Step("crash"))


STEPS = tuple(_steps())


class Draft:
    """A world on its way to the next: one mutable copy."""

    def __init__(self, world: World) -> None:
        self.sequence = world.sequence
        self.targets = list(world.targets)
        self.desks = list(world.desks)
        self.cursors = list(world.cursors)
        self.rules = list(world.rules)

    def world(self) -> World:
        return World(self.sequence, tuple(self.targets), tuple(self.desks), tuple(self.cursors), tuple(self.rules))

    def positions(self, pair: int) -> Positions | None:
        """The machine's three positions of a pair."""
        cursor = self.cursors[pair]
        watcher, target = PAIRS[pair]
        if cursor is None:
            return None
        return Positions(*cursor, material(self.targets[target].latest, WATCHERS[watcher], cursor[0]))

    def put(self, pair: int, positions: Positions) -> None:
        self.cursors[pair] = positions[:2]

    def news(self, pair: int) -> list[int]:
        """By the rules: the sequences on the pair's target that another actor caused and the watcher has not seen (rule 4.6)."""
        seen = self.rules[pair]
        watcher, target = PAIRS[pair]
        assert seen is not None
        log = self.targets[target].log
        return [event.sequence for event in log if event.actor != WATCHERS[watcher] and event.sequence > seen.last_seen]


def step(world: World, operation: Step) -> World | None:
    """The next world, checked; None where the operation is not possible now."""
    draft = Draft(world)
    if not _APPLY[operation.name](draft, operation):
        return None
    _check(world, draft, operation)
    return draft.world()


def _pairs_on(target: int) -> list[int]:
    return [pair for pair in range(4) if PAIRS[pair][1] == target]


def _pairs_of(watcher: int) -> list[int]:
    return [pair for pair in range(4) if PAIRS[pair][0] == watcher]


# -- the operations: the machine, then the rules ---------------------------------------------------------------------------------


def _event(draft: Draft, operation: Step) -> bool:
    target = draft.targets[operation.target]
    clean = [pair for pair in _pairs_on(operation.target) if _is_clean(draft, pair)]
    if operation.budget < ALL and (target.owed is not None or len(clean) <= operation.budget):
        return False  # the budget would make no difference
    draft.sequence += 1
    event = Notifying(draft.sequence, operation.actor)
    owed = owe(target.owed, event) if target.owed is not None or operation.budget < ALL else None
    draft.targets[operation.target] = Target(event.sequence, (*target.log, event), merge(target.latest, event), owed)
    if target.owed is None:
        for pair in clean[: operation.budget]:
            _open_fresh(draft, pair, event)
    for pair in _pairs_on(operation.target):
        _rule_4_3(draft, pair, event)
    return True


def _is_clean(draft: Draft, pair: int) -> bool:
    positions = draft.positions(pair)
    return positions is not None and not is_open(positions)


def _open_fresh(draft: Draft, pair: int, event: Notifying) -> None:
    positions = draft.positions(pair)
    assert positions is not None
    pin = first_material([event], WATCHERS[PAIRS[pair][0]], positions.last_seen)
    if pin is not None:
        draft.put(pair, open_at(positions, pin))


def _rule_4_3(draft: Draft, pair: int, event: Notifying) -> None:
    seen = draft.rules[pair]
    if seen is not None and seen.pin is None and event.actor != WATCHERS[PAIRS[pair][0]]:
        draft.rules[pair] = seen._replace(pin=event.sequence)


def owed_position(draft: Draft, pair: int) -> int | None:
    """Where the machine would pin what it owes to a pair; None if it owes nothing."""
    target = draft.targets[PAIRS[pair][1]]
    positions = draft.positions(pair)
    if positions is None or target.owed is None or is_open(positions) or not is_pending(positions):
        return None
    watcher = WATCHERS[PAIRS[pair][0]]
    known = owed_pin(target.owed, watcher, positions.last_seen)
    return known if known is not None else first_material(target.log, watcher, positions.last_seen)


def _open_owed(draft: Draft, pairs: Iterable[int]) -> None:
    for pair in pairs:
        pin = owed_position(draft, pair)
        if pin is not None:
            positions = draft.positions(pair)
            assert positions is not None
            draft.put(pair, open_at(positions, pin))


def _settle(draft: Draft, _operation: Step) -> bool:
    if all(target.owed is None for target in draft.targets):
        return False
    _open_owed(draft, range(4))
    draft.targets = [target._replace(owed=None) for target in draft.targets]
    return True


def _take(draft: Draft, operation: Step) -> bool:
    desk = draft.desks[operation.watcher]
    if desk.held is not None:
        return False
    _open_owed(draft, _pairs_of(operation.watcher))
    cards = [
        Card(PAIRS[pair][1], positions.last_seen, positions.notified)
        for pair in _pairs_of(operation.watcher)
        if (positions := draft.positions(pair)) is not None and is_open(positions)
    ]
    cards.sort(key=lambda card: (card.notified, card.target))
    shown = tuple(cards[:1] if operation.name == "take one" else cards)
    expected = sorted(
        (seen.pin, PAIRS[pair][1], seen.last_seen)
        for pair in _pairs_of(operation.watcher)
        if (seen := draft.rules[pair]) is not None and seen.pin is not None
    )
    in_order = [(card.notified, card.target, card.last_seen) for card in shown]
    assert in_order == expected[: len(shown)], "a turn shows what is pending, in order"
    assert len(shown) == min(len(expected), 1 if operation.name == "take one" else 2), "a turn leaves out nothing that fits"
    draft.desks[operation.watcher] = desk._replace(held=shown)
    return True


def _acknowledge(draft: Draft, operation: Step) -> bool:
    desk = draft.desks[operation.watcher]
    if desk.held is None:
        return False
    _acknowledge_cards(draft, operation.watcher, desk.held)
    draft.desks[operation.watcher] = Desk(None, desk.held)
    return True


def _acknowledge_late(draft: Draft, operation: Step) -> bool:
    desk = draft.desks[operation.watcher]
    if not desk.remembered:
        return False
    _acknowledge_cards(draft, operation.watcher, desk.remembered)
    return True


def _acknowledge_cards(draft: Draft, watcher: int, cards: Iterable[Card]) -> None:
    _open_owed(draft, _pairs_of(watcher))
    for card in cards:
        pair = PAIRS.index((watcher, card.target))
        positions = draft.positions(pair)
        moved = None if positions is None else acknowledge(positions, card.last_seen, card.notified)
        if moved is not None:
            draft.put(pair, moved)
        _rule_4_5(draft, pair, card)


def _rule_4_5(draft: Draft, pair: int, card: Card) -> None:
    if draft.rules[pair] == Seen(card.last_seen, card.notified):
        draft.rules[pair] = Seen(card.notified, None)
        beyond = draft.news(pair)
        if beyond:
            draft.rules[pair] = Seen(card.notified, max(beyond))


def _give_back(draft: Draft, operation: Step) -> bool:
    held = draft.desks[operation.watcher].held
    if held is None:
        return False
    draft.desks[operation.watcher] = Desk(None, held)
    return True


def _watch(draft: Draft, operation: Step) -> bool:
    pair = PAIRS.index((operation.watcher, operation.target))
    if draft.cursors[pair] is not None:
        return False  # a renewal moves nothing
    version = draft.targets[operation.target].version
    draft.put(pair, seed(version))
    draft.rules[pair] = Seen(version, None)
    return True


def _unwatch(draft: Draft, operation: Step) -> bool:
    pair = PAIRS.index((operation.watcher, operation.target))
    if draft.cursors[pair] is None:
        return False
    draft.cursors[pair] = draft.rules[pair] = None
    return True


def _crash(draft: Draft, _operation: Step) -> bool:
    """The start after a crash: open turns are gone, what is pending is pinned at its material position, owed or not (rule 4.11)."""
    for number, target in enumerate(draft.targets):
        latest = target.latest
        if target.owed is not None and latest.actor is not None:
            draft.targets[number] = target._replace(owed=Owed(latest.actor, latest.sequence, latest.other_sequence or None))
    for pair in range(4):
        positions = draft.positions(pair)
        if positions is not None and is_open(positions):
            draft.put(pair, replay(positions))
        seen = draft.rules[pair]
        if seen is not None and seen.pin is not None:
            draft.rules[pair] = seen._replace(pin=max(draft.news(pair)))
    draft.desks = [Desk(None, desk.remembered if desk.held is None else desk.held) for desk in draft.desks]
    return True


_APPLY = {
    "event": _event,
    "settle": _settle,
    "take": _take,
    "take one": _take,
    "acknowledge": _acknowledge,
    "acknowledge late": _acknowledge_late,
    "give back": _give_back,
    "watch": _watch,
    "unwatch": _unwatch,
    "crash": _crash,
}


# -- what must be true after every step ------------------------------------------------------------------------------------------


def _check(before: World, draft: Draft, operation: Step) -> None:
    for pair in range(4):
        positions, seen = draft.positions(pair), draft.rules[pair]
        assert (positions is None) == (seen is None), f"a cursor too many or too few after {operation}"
        if positions is not None and seen is not None:
            _check_pair(draft, pair, positions, seen, operation)
            _check_move(before, pair, seen, operation)


def _check_pair(draft: Draft, pair: int, positions: Positions, seen: Seen, operation: Step) -> None:
    news = draft.news(pair)
    assert bool(news) == (seen.pin is not None), f"lost or invented by the oracle itself after {operation}"
    assert positions.last_seen == seen.last_seen, f"last seen differs after {operation}"
    assert positions.last_seen <= positions.notified <= positions.material, f"positions out of order after {operation}"
    assert is_pending(positions) == bool(news), f"pending is not what is unseen after {operation}"
    pinned = positions.notified if is_open(positions) else owed_position(draft, pair)
    assert pinned == seen.pin, f"a notice is missing, invented or pinned elsewhere after {operation}"


def _check_move(before: World, pair: int, seen: Seen, operation: Step) -> None:
    earlier = before.rules[pair]
    if earlier is None or operation.name.startswith("acknowledge"):
        return
    assert seen.last_seen == earlier.last_seen, f"{operation} moved what was seen, and so the text"
    if earlier.pin is not None and operation.name != "crash":
        assert seen.pin == earlier.pin, f"{operation} moved a pin"


# -- renumbering -----------------------------------------------------------------------------------------------------------------


def canonical(world: World) -> World:
    """The same world with the fewest and smallest sequences: what nobody can ask for any more is dropped, the rest is renumbered."""
    targets = [_forgetful(world, number) for number in TARGETS]
    used = {0}
    for target in targets:
        used.update((target.version, target.latest.sequence, target.latest.other_sequence))
        used.update(event.sequence for event in target.log)
        if target.owed is not None:
            used.update((target.owed.sequence, target.owed.other_sequence or 0))
    for cursor in world.cursors:
        used.update(cursor or ())
    for desk in world.desks:
        for card in (*(desk.held or ()), *desk.remembered):
            used.update(card[1:])
    number = {sequence: rank for rank, sequence in enumerate(sorted(used))}
    return World(
        len(number),
        tuple(_renumbered_target(target, number) for target in targets),
        tuple(_renumbered_desk(desk, number) for desk in world.desks),
        tuple(None if cursor is None else (number[cursor[0]], number[cursor[1]]) for cursor in world.cursors),
        tuple(
            None if seen is None else Seen(number[seen.last_seen], None if seen.pin is None else number[seen.pin]) for seen in world.rules
        ),
    )


def _forgetful(world: World, number: int) -> Target:
    """The target without events that every cursor on it has seen; a cursor to come begins at the version, so it has seen them too."""
    target = world.targets[number]
    seen = min((cursor[0] for pair in _pairs_on(number) if (cursor := world.cursors[pair]) is not None), default=target.version)
    latest = target.latest
    if latest.other_sequence <= seen:
        latest = latest._replace(other_sequence=0)
    if latest.sequence <= seen:
        latest = latest._replace(sequence=0)
    return target._replace(log=tuple(event for event in target.log if event.sequence > seen), latest=latest)


def _renumbered_target(target: Target, number: dict[int, int]) -> Target:
    owed = target.owed
    if owed is not None:
        other = None if owed.other_sequence is None else number[owed.other_sequence]
        owed = Owed(owed.actor, number[owed.sequence], other)
    latest = target.latest
    return Target(
        number[target.version],
        tuple(Notifying(number[event.sequence], event.actor) for event in target.log),
        Latest(latest.actor, number[latest.sequence], latest.other_actor, number[latest.other_sequence]),
        owed,
    )


def _renumbered_desk(desk: Desk, number: dict[int, int]) -> Desk:
    def renumbered(cards: tuple[Card, ...]) -> tuple[Card, ...]:
        return tuple(Card(card.target, number[card.last_seen], number[card.notified]) for card in cards)

    return Desk(None if desk.held is None else renumbered(desk.held), renumbered(desk.remembered))
