"""Hours in minutes: a thousand streams and hundreds of conversations at once, faults in the middle, overload at the end."""
