"""Jobs as users hold them: submitted, followed, checked."""
