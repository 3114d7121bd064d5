"""Loopwright's code beside other engines: each in a process of its own, in turn, on the same inputs. Linux only."""
