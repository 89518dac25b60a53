"""The store on PostgreSQL, by asyncpg.

Several gateways write at once here, so order is everything. A transaction first locks the heads of all sessions that its writes concern, in
the order of their ids (`locks.py`), and only then takes sequences: so a session's sequences rise in the order of the commits, and no
reader of a session skips an event that was committed late. Who moves a cursor's positions holds the lock of its target's head, which takes
the place of SQLite's one writer; cursors are locked after heads, in the order of target and watcher. A batch is few statements with
arrays. `transaction.py` tells apart what can go wrong, and looks up what became of a commit whose answer was lost.

One connection writes, two read, one says that this gateway is alive and listens (`presence.py`), and one sends word to other gateways
(`notifier.py`): a NOTIFY inside of a writing transaction would have all commits of the database wait for one another.
"""
