"""False alarms of ``loopwright check``: programs raced with themselves, on a machine that others disturb."""
