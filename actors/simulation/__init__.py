"""A deterministic world on virtual time: the real actors, gateways and SQLite code, run as a pure function of story, seed and faults.

`world.World` is the front door. Mechanism: `loop` (processes as event loops, crashes), `inline` and `disk` (SQLite as steps of a loop),
`process` (one gateway and its host), `clock`, `presence`, `logs`, `inboxes`, `trace`, `observer`. Faults: `faults` (what there is),
`injector` (what strikes now), `plan` (which ones a run gets).
"""
