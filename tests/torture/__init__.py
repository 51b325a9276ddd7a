"""Kills, races and long lives by the hour: what `make torture` does.

__main__ (plans rounds, starts processes, counts, can be stopped and goes on) -> worker (one
process, which may be killed) -> family
"""
