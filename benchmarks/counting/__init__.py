"""How near the counts are to what providers bill, and what counting costs: ``python -m benchmarks.counting``."""
