"""Jobs and their tasks: submitted, claimed, finished."""
