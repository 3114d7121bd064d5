import { Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Empty } from "../components/empty";
import { PageHead } from "../components/page-head";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { DeviceClassTable } from "./device-class-table";
import { FleetLine } from "./fleet-line";
import { LeaseTable } from "./lease-table";
import { QuarantineNotice } from "./quarantine-notice";
import { deviceClassesQuery, leasesQuery, workersQuery } from "./queries";
import { WorkerTable } from "./worker-table";

/** Workers, device classes and leases. */
export default function FleetPage() {
  const workers = useQuery(workersQuery);
  const classes = useQuery(deviceClassesQuery);
  const leases = useQuery(leasesQuery);
  return (
    <Stack gap="md">
      <PageHead title="Fleet">
        <FleetLine />
      </PageHead>
      {workers.data?.items.map((worker) => (
        <QuarantineNotice key={worker.id} worker={worker} />
      ))}
      <Panel title="Workers">
        <Ready query={workers}>
          {({ items }) =>
            items.length > 0 ? (
              <WorkerTable workers={items} />
            ) : (
              <Empty>
                No worker has joined yet. Each node of the service's Ray cluster joins as a worker.
              </Empty>
            )
          }
        </Ready>
      </Panel>
      <Panel title="Device classes">
        <Ready query={classes}>
          {({ items }) =>
            items.length > 0 ? (
              <DeviceClassTable classes={items} />
            ) : (
              <Empty>No device class is known yet. The first worker adds its class.</Empty>
            )
          }
        </Ready>
      </Panel>
      <Panel title="Leases">
        <Ready query={leases}>
          {({ items }) =>
            items.length > 0 ? (
              <LeaseTable leases={items} />
            ) : (
              <Empty>There is no lease, because no job is running.</Empty>
            )
          }
        </Ready>
      </Panel>
    </Stack>
  );
}
