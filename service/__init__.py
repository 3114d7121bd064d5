"""The composition root: the REST door, the controller, and the wiring of db and workers into the tuner."""
