"""The store on SQLite.

One transaction is one synchronous function on the write connection's thread (`transaction.py`), which applies the writes in order
(`apply.py`). Runs of appends go in bulk (`append.py`): the rows that they touch are read once into folds (`folds.py`), the merging
is plain Python, and everything is written in statements of 64 rows, for each statement takes the interpreter lock anew.
"""
