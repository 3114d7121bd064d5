"""The work on a device's host: build, measure, race, check, detect. Imports no Ray."""
