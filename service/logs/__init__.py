"""What every part of the service writes about its work, a line a fact, on stderr."""
