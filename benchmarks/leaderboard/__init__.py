"""Best schedules of a hundred thousand workloads: how long a page, a sort, a filter and a search take over HTTP."""
