"""Search beside MetaSchedule: the same workloads, target and threads, arms in random order, one closing race."""
