"""What the fleet measures of a net beside the engines."""

from enum import StrEnum


class What(StrEnum):
    """Also the names in the kept lines."""

    MODEL = "the whole model"
    FUNCTIONS = "certified functions"
