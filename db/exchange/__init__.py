"""TVM's own tuning database in and out."""
