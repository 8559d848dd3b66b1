"""Read messages as lines, the units of choice of a fold: sentences, records, calls and rows of output."""
