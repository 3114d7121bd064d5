"""Why a host cannot join. Each message is one line that says what to do."""


class CannotJoin(Exception):
    """Another attempt would fail in the same way, unless somebody changes something."""


class HeadAway(CannotJoin):
    """The head does not answer correctly. It may be starting, so another attempt may succeed."""
