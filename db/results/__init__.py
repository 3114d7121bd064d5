"""Results of workloads: certificates, records, rechecks, comparisons, and their lists."""
