"""Many devices, many jobs: what the service's own work costs, and how jobs share the machines."""
