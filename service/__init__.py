"""The composition root: the REST interface, the controller, and the wiring of db and workers into the tuner."""
