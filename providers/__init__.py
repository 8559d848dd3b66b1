"""Everything Turnfold knows about other APIs, as plain values and plain functions without I/O."""
