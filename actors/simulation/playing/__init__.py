"""Plays a scenario in a simulated world: the real gateways, and agents and people who are not.

`experiment` is the front door. `modes` says how agents learn of each other's changes, `minds` does it, `player` is one agent, `stage` all
of them with the people and the processes; `truth` sees what really happened, `record` keeps what is needed of it, `figures` judges it.
"""
