"""Which simulated gateways are alive: what `flock` tells between real processes.

A real gateway's lock ends with its process. Here all processes are in one, so who is alive is kept by the world, which forgets a process
that crashes at the moment at which the operating system would have taken its lock away.
"""

from __future__ import annotations

from pathlib import Path

from ...storage.sqlite.presence import NOT_REGISTERED, Presence


class SimulatedPresence(Presence):
    """See `Presence`; `living` is what all stores of the world share."""

    nowhere = Path()
    """No file tells who is alive."""

    def __init__(self, living: set[int]) -> None:
        super().__init__(self.nowhere)
        self._living = living

    def appear(self, gateway_id: int) -> None:
        self.give_up()
        self._living.add(gateway_id)
        self.gateway_id = gateway_id

    def give_up(self) -> None:
        self._living.discard(self.gateway_id)
        self.gateway_id = NOT_REGISTERED

    def clear_away(self, gateway_id: int) -> None:
        """A dead gateway leaves no file here."""

    def is_alive(self, gateway_id: int) -> bool:
        return gateway_id in self._living
