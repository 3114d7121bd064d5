import { Button, Grid, Paper, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { Overview } from "../api/types";
import { useMay } from "../auth/queries";
import { PageHead } from "../components/page-head";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { Stat, Stats } from "../components/stat";
import { FleetSummary } from "../fleet/fleet-summary";
import { formatElapsed } from "../format/time";
import { formatCount, plural } from "../format/units";
import { FirstJob } from "../jobs/first-job";
import { overviewQuery } from "./queries";
import { RecentBests } from "./recent-bests";
import { RecentJobs } from "./recent-jobs";

/** The present activity, and the results so far. */
export function OverviewPage() {
  const query = useQuery(overviewQuery);
  const maySubmit = useMay("submit");
  return (
    <Stack gap="md">
      <PageHead
        title="Overview"
        actions={
          maySubmit && (
            <Button component={Link} to="/submit" size="sm">
              Submit a job
            </Button>
          )
        }
      />
      <Ready query={query}>{(overview) => <Everything overview={overview} />}</Ready>
    </Stack>
  );
}

function Everything({ overview }: { overview: Overview }) {
  const jobs = overview.jobs_running + overview.jobs_queued + overview.jobs_finished;
  if (jobs === 0 && overview.bests === 0) {
    return (
      <>
        <FirstJob />
        <FleetSummary />
      </>
    );
  }
  return (
    <>
      <Figures overview={overview} />
      <Grid gap="md" align="stretch">
        <Grid.Col span={{ base: 12, lg: 8 }}>
          <RecentJobs />
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 4 }}>
          <FleetSummary />
        </Grid.Col>
      </Grid>
      <Panel
        title="Recent bests, by time gained"
        aside={
          <Link to="/bests" className="link">
            All best schedules
          </Link>
        }
      >
        <RecentBests rows={overview.recent_bests} />
      </Panel>
    </>
  );
}

function Figures({ overview: o }: { overview: Overview }) {
  return (
    <Paper component="section" aria-label="Figures" bg="transparent">
      <Stats>
        <Stat
          label="Jobs running"
          value={formatCount(o.jobs_running)}
          note={`${formatCount(o.jobs_queued)} queued, ${formatCount(o.jobs_finished)} finished`}
        />
        <Stat
          label="Workers alive"
          value={`${formatCount(o.workers_alive)} of ${formatCount(o.workers_total)}`}
          note={o.workers_quarantined > 0 ? `${o.workers_quarantined} in quarantine` : "none in quarantine"}
        />
        <Stat
          label="Certified bests"
          value={formatCount(o.bests)}
          note={`of ${plural(o.workloads, "workload")}`}
        />
        <Stat
          label="Trials"
          value={formatCount(o.trials)}
          note={`${formatCount(o.trials_last_hour)} in the last hour`}
        />
        <Stat
          label="Search time saved"
          value={formatElapsed(o.search_saved_s * 1_000)}
          note="by results from the database"
        />
      </Stats>
    </Paper>
  );
}
