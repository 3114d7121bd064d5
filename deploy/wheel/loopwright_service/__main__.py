"""``python -m loopwright_service``: see `loopwright_service.serve`."""

from loopwright_service import serve

serve()
