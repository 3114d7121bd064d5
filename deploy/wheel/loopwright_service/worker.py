"""``python -m loopwright_service.worker``: see `loopwright_service.work`."""

from loopwright_service import work

work()
