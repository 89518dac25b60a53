"""Checking a batch of threads that are kept in files: what was appended to each, within a bound for all.

Everything here blocks on the file system. A transcript is looked for elsewhere before it counts as missing: a tool moves it when it
archives it, and compresses it later.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..catalog import Activity, Failed, Happening, Missing, Nothing, Outcome, Probe
from ..formats.findings import findings
from ..formats.formats import Format
from ..formats.rows import Classified
from ..formats.scanning import reader_at
from . import compressed
from .follower import Follower, Marker, Restart, Scan
from .library import Library
from .marker import FileMarker
from .tracking import TrackedFile, TrackedFiles

Key = tuple[str, str, str]
"""Whom a transcript is followed for: session key, agent id, source."""


@dataclass(slots=True)
class _Batch:
    """One check, while it runs."""

    bytes_left: int
    library: Library
    places: dict[str, Path] | None = None

    def place_of(self, thread_id: str) -> Path | None:
        """Where the thread's transcript is now: all of them are looked up once, when the first is not in its place."""
        if self.places is None:
            self.places = self.library.by_thread()
        return self.places.get(thread_id)


class FileChecker:
    """Checks batches, one at a time, and remembers between them what it can do without."""

    def __init__(self, form: Format, library: Library, *, probe_max_bytes: int, check_max_bytes: int) -> None:
        self.bytes_read = 0
        self._form = form
        self._library = library
        self._probe_max_bytes = probe_max_bytes
        self._check_max_bytes = check_max_bytes
        self._tracked = TrackedFiles()
        self._moved: dict[str, Path] = {}
        self._settled: dict[Key, tuple[object, ...]] = {}
        self._checks = 0
        self._checked: dict[Key, int] = {}

    def check(self, probes: Sequence[Probe], abandoned: threading.Event) -> list[Outcome]:
        """One outcome for each probe, in their order. The bound leaves out those that were checked last."""
        batch = _Batch(self._check_max_bytes, self._library)
        outcomes: list[Outcome] = [Nothing()] * len(probes)
        self._checks += 1
        last = {_key(probe): self._checked.get(_key(probe), 0) for probe in probes}
        for index in sorted(range(len(probes)), key=lambda index: last[_key(probes[index])]):
            if batch.bytes_left > 0 and not abandoned.is_set():
                outcomes[index] = self._outcome(probes[index], batch)
                last[_key(probes[index])] = self._checks
        self._checked = last
        return outcomes

    def _outcome(self, probe: Probe, batch: _Batch) -> Outcome:
        try:
            return self._check_one(probe, batch)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one transcript concerns no other
            return Failed(f"{type(error).__name__}: {error}")

    def _check_one(self, probe: Probe, batch: _Batch) -> Outcome:
        marker = FileMarker.from_json(probe.marker)
        path = self._moved.get(probe.source, Path(probe.source))
        try:
            return self._at(path, probe, marker, batch)
        except FileNotFoundError:
            found = batch.place_of(probe.thread_id)
        if found is None or found == path:
            return self._gone(probe, found)
        self._moved[probe.source] = found
        return self._at(found, probe, marker, batch)

    def _at(self, path: Path, probe: Probe, marker: FileMarker, batch: _Batch) -> Outcome:
        read = self._expand if path.suffix == compressed.SUFFIX else self._follow
        return read(probe, marker, path, batch)

    def _gone(self, probe: Probe, found: Path | None) -> Outcome:
        """Only what was looked for in places that are there is definitely missing."""
        if found is not None:
            return Failed(f"{found} went and came back")
        return Missing() if self._library.is_there(Path(probe.source)) else Failed(f"there is no folder that {probe.source} could be in")

    def _follow(self, probe: Probe, marker: FileMarker, path: Path, batch: _Batch) -> Outcome:
        tracked = self._tracked.get(_key(probe), path)
        moved = self._form.moves or str(path) != probe.source
        begun = _recognised(marker, tracked) if moved and path.stat().st_ino != marker.file.inode else marker
        return self._read(probe, begun, tracked, batch)

    def _expand(self, probe: Probe, marker: FileMarker, path: Path, batch: _Batch) -> Outcome:
        """What was appended before a transcript was compressed is read from a plain copy, once. Without the means it waits."""
        stat = path.stat()
        state = (str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns, marker.file.position)
        if not compressed.can_expand() or self._settled.get(_key(probe)) == state:
            return Nothing()
        with compressed.expanded(path) as plain:
            batch.bytes_left -= plain.stat().st_size
            tracked = TrackedFile(plain)
            outcome = self._read(probe, _recognised(marker, tracked), tracked, batch)
        if outcome == Nothing():
            self._settled[_key(probe)] = state
        return outcome

    def _read(self, probe: Probe, marker: FileMarker, tracked: TrackedFile, batch: _Batch) -> Outcome:
        scan = tracked.follower.scan(marker.file, max(1, min(self._probe_max_bytes, batch.bytes_left)))
        batch.bytes_left -= scan.bytes_read
        self.bytes_read += scan.bytes_read
        spawned = marker.unknown(self._form.children(tracked.follower.path, probe.thread_id))
        after = replace(marker, file=scan.marker).having(spawned)
        happenings = tuple(Happening("child_spawned", child, None) for child in spawned)
        if scan.restart is not None:
            return _restarted(after, scan, scan.restart, happenings)
        found = findings(self._verdicts(probe, marker.file, scan, tracked), probe, scan.modified_at_ms)
        happenings += found.happenings
        if not found and not happenings and not scan.more:
            return Nothing(after.to_json()) if after != marker else Nothing()
        return Activity(after.to_json(), found.human_turns, found.occurred_at_ms, found.accounted_ids, happenings, more=scan.more)

    def _verdicts(self, probe: Probe, begun: Marker, scan: Scan, tracked: TrackedFile) -> list[tuple[str, Classified]]:
        if not scan.rows:
            return []
        path = tracked.follower.path
        reader = tracked.reader(begun, lambda: reader_at(path, begun, adopted_at_ms=probe.adopted_at_ms, form=self._form))
        verdicts = [(f"{scan.marker.inode}:{row.position}:{row.part}", verdict) for row in scan.rows for verdict in reader.feed(row.value)]
        tracked.offer(begun, scan.marker, reader)
        return verdicts


def _key(probe: Probe) -> Key:
    return (probe.address.session_key, probe.address.agent_id, probe.source)


def _recognised(marker: FileMarker, tracked: TrackedFile) -> FileMarker:
    """The marker for a copy of the transcript; as it is where the file is none, which the scan will tell."""
    return replace(marker, file=tracked.follower.recognise(marker.file) or marker.file)


def _restarted(after: FileMarker, scan: Scan, restart: Restart, happenings: tuple[Happening, ...]) -> Activity:
    return Activity(after.to_json(), 0, None, happenings=happenings, restarted=restart.value, more=scan.more)


def end_of(path: Path) -> Marker:
    """The marker behind the last complete row of a transcript, compressed or not. Raises `OSError`."""
    if path.suffix != compressed.SUFFIX:
        return Follower(path).start()
    with compressed.expanded(path) as plain:
        return Follower(plain).start()
