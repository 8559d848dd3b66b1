"""The question to a summariser, and the verdict on its answer.

`transcript` writes the question, `verdict` reads the answer.
"""
