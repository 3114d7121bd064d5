"""What is known of workloads: certificates, records, rechecks, comparisons, and their lists."""
