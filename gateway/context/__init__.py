"""The decisions: what is counted, what is cut, what is tried next. Plain functions over plain values."""
