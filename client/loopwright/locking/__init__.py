"""Lock files: the bests with which a project's models are compiled, without a service."""
