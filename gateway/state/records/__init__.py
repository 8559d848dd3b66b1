"""The records of past requests: in memory, and in the store for some days.

- `keeper`: all records of one process. `base`: a log of records, in `sqlite` or `redis`. `opening`: which of them.
"""
