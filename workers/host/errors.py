"""Why a host cannot join. Each message is one line that says what to do."""


class CannotJoin(Exception):
    """Another attempt would end the same, unless somebody changes something."""


class HeadAway(CannotJoin):
    """The head does not answer, or not as it should. It may be starting, so that another attempt may succeed."""
