"""What Prometheus is told: figures of the fleet, from the database, and of this process."""
