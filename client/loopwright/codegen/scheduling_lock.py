"""The lock of the tables that TVM keeps for all threads of a process and does not lock itself."""

from __future__ import annotations

import threading

SCHEDULING = threading.RLock()
"""Held while a step of scheduling reads or changes such a table: that of the tensor intrinsics, which is looked up and
extended in two steps, and read by the C++ of a schedule; the list of Relax's builders in use; and the substitute for
TVM's package of intrinsics. Other threads may meanwhile generate code, which takes most of the time."""
