"""An oracle for simulated worlds: the rules written down once more, independently of the code that keeps them.

It sees what a host sees (what was asked, what was answered, which wakes came) and what the documented tables and views say after every
write; it never asks the code under test to decide. `oracle.Oracle` is the front door. Mechanism: `durable` (what the views say, change by
change), `effects` (what each operation may do to it, by the rules), `explaining` (which operations explain a change), `book` (states and
calls), `answers` and `turns` (whether a reply fits a state that there was while it was asked for), `waking` (who must be woken),
`operations` (one call).
"""
