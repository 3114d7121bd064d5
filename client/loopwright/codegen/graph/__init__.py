"""Graph preparation: rewritings of a Relax module that make its functions fewer, larger and simpler, one in each file.

`detaching` needs the values of weights and runs before they become parameters; `lowering` is purely structural and runs
wherever a module is lowered.
"""
