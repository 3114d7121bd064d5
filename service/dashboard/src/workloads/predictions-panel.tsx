import { NativeSelect, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Predictions } from "../api/types";
import { lazyChart } from "../charts/lazy-chart";
import { Empty } from "../components/empty";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { useQueryState } from "../components/use-query-state";
import { plural } from "../format/units";
import { predictionsQuery } from "./queries";

const PredictionsChart = lazyChart("predictions", () => import("./predictions-chart"));
const HEIGHT = 300;

/** The quality of the cost model's predictions, by round. The round is in the address (`?round=`). */
export function PredictionsPanel({ hash, deviceClass }: { hash: string; deviceClass: string }) {
  const query = useQuery(predictionsQuery(hash, deviceClass));
  const [params, change] = useQueryState();
  const chosen = params.has("round") ? Number(params.get("round")) - 1 : null;
  const choose = (index: number | null) => change({ round: index === null ? null : index + 1 });
  const rounds = query.data?.rounds ?? [];
  return (
    <Panel
      title="Predicted against measured"
      aside={
        rounds.length > 0 && (
          <NativeSelect
            aria-label="Round shown"
            size="xs"
            value={chosen ?? ""}
            onChange={({ currentTarget: { value } }) => choose(value === "" ? null : Number(value))}
            data={[
              { value: "", label: "All rounds" },
              ...rounds.map((round, index) => ({
                value: String(index),
                label: `Round ${index + 1}${words(round)}`,
              })),
            ]}
          />
        )
      }
    >
      <Ready query={query}>
        {(predictions) =>
          predictions.rounds.length === 0 ? (
            <Empty>
              There are no predictions. Models predict only after enough trials have been measured.
            </Empty>
          ) : (
            <div style={{ padding: "0 1rem 1rem" }}>
              <Text size="sm" c="var(--muted)" mb="xs">
                {inWords(predictions)}
              </Text>
              <PredictionsChart
                rounds={predictions.rounds}
                chosen={chosen}
                onChoose={choose}
                height={HEIGHT}
                summary={inWords(predictions)}
              />
            </div>
          )
        }
      </Ready>
    </Panel>
  );
}

function words({ rank_correlation: rank }: Predictions["rounds"][number]): string {
  return rank === null ? "" : ` (${rank.toFixed(2)})`;
}

function inWords({ rounds, rank_correlation: rank }: Predictions): string {
  const pairs = rounds.reduce((sum, round) => sum + round.pairs.length, 0);
  const count = `${plural(pairs, "prediction")} in ${plural(rounds.length, "round")}`;
  if (rank === null) return `${count}; each round has too few for a rank correlation.`;
  return `${count}; the rank correlation of score and speed is ${rank.toFixed(2)} (1: perfect order, 0: chance).`;
}
