"""Searching for faults: random histories in simulated worlds, judged by the oracle.

`histories` draws what hosts ask and what goes wrong, from a seed; `player` plays a history and tells the oracle, `trial` does it once in
a new world; `campaign` plays many on all cores; `shrinking` leaves out of a failing history what it fails without; `figures` is what it
came to.
"""
