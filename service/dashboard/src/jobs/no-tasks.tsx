import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { Ablation } from "../api/types";
import { Empty } from "../components/empty";
import { Panel } from "../components/panel";
import { effectsOf } from "../records/ablation";
import { Effects } from "../records/ablation-panel";
import { ablationOfJobQuery } from "../records/queries";
import { rechecksQuery } from "./queries";
import { RecheckPanel } from "./recheck-panel";

/** The result of a job without tasks: races of known schedules, or nothing, if there was nothing to tune. */
export function NoTasks({ id }: { id: string }) {
  const { data: rechecks } = useQuery(rechecksQuery(id));
  const { data: ablation } = useQuery(ablationOfJobQuery(id));
  if (rechecks === undefined || ablation === undefined) return null;
  if (rechecks.items.length > 0) return <RecheckPanel rechecks={rechecks.items} />;
  if (ablation !== null) return <AblationOfJob ablation={ablation} />;
  return (
    <Panel title="Tasks">
      <Empty>
        Nothing to tune: the module calls only functions that Loopwright does not change. The notes name these
        functions. The module compiles and runs without a search.
      </Empty>
    </Panel>
  );
}

function AblationOfJob({ ablation }: { ablation: Ablation }) {
  return (
    <Panel
      title="What each decision brings"
      aside={
        <Link to={`/records/${ablation.record_id}`} className="link">
          The schedule
        </Link>
      }
    >
      {ablation.result === null ? (
        <Empty>The races of the schedule with its neighbours have no result yet.</Empty>
      ) : (
        <Effects effects={effectsOf(ablation.result.neighbours)}>This job</Effects>
      )}
    </Panel>
  );
}
