"""What Turnfold knows about other people's APIs: plain values and plain functions, no I/O."""
