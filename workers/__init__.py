"""The fleet, on Ray: build, measure, isolate, detect the device."""
