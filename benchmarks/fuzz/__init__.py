"""Bytes from strangers, mutated with an eye on which branches they reach: every reader of them must keep its promises."""
