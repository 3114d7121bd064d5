import { Group, NativeSelect, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { PredictionRound } from "../api/types";
import { lazyChart } from "../charts/lazy-chart";
import { Empty } from "../components/empty";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { useQueryState } from "../components/use-query-state";
import { plural } from "../format/units";
import { MODEL_NAMES, type Model, meanCorrelation, modelOf } from "./models";
import { predictionsQuery } from "./queries";

const PredictionsChart = lazyChart("predictions", () => import("./predictions-chart"));
const HEIGHT = 300;

/** The quality of one model's predictions, by round. Model and round are in the address (`?model=`, `?round=`). */
export function PredictionsPanel({ hash, deviceClass }: { hash: string; deviceClass: string }) {
  const query = useQuery(predictionsQuery(hash, deviceClass));
  const [params, change] = useQueryState();
  const chosen = params.has("round") ? Number(params.get("round")) - 1 : null;
  const choose = (index: number | null) => change({ round: index === null ? null : index + 1 });
  const models = [...new Set((query.data?.rounds ?? []).map(modelOf))];
  const model = models.find((each) => each === params.get("model")) ?? models.at(-1);
  // Scores of different models cannot be compared, so that the plot has those of one.
  const rounds = (query.data?.rounds ?? []).filter((round) => modelOf(round) === model);
  return (
    <Panel
      title="Predicted against measured"
      aside={
        rounds.length > 0 && (
          <Group gap="xs">
            {models.length > 1 && (
              <NativeSelect
                aria-label="Model shown"
                size="xs"
                value={model}
                onChange={({ currentTarget: { value } }) => change({ model: value, round: null })}
                data={models.map((each) => ({ value: each, label: MODEL_NAMES[each] }))}
              />
            )}
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
          </Group>
        )
      }
    >
      <Ready query={query}>
        {() =>
          model === undefined ? (
            <Empty>
              There are no predictions. Models predict only after enough trials have been measured.
            </Empty>
          ) : (
            <div style={{ padding: "0 1rem 1rem" }}>
              <Text size="sm" c="var(--muted)" mb="xs">
                {inWords(model, rounds)}
              </Text>
              <PredictionsChart
                rounds={rounds}
                chosen={chosen}
                onChoose={choose}
                height={HEIGHT}
                summary={inWords(model, rounds)}
              />
            </div>
          )
        }
      </Ready>
    </Panel>
  );
}

function words({ rank_correlation: rank }: PredictionRound): string {
  return rank === null ? "" : ` (${rank.toFixed(2)})`;
}

function inWords(model: Model, rounds: PredictionRound[]): string {
  const rank = meanCorrelation(rounds);
  const pairs = rounds.reduce((sum, round) => sum + round.pairs.length, 0);
  const count = `${MODEL_NAMES[model]}: ${plural(pairs, "prediction")} in ${plural(rounds.length, "round")}`;
  if (rank === null) return `${count}; each round has too few for a rank correlation.`;
  return `${count}; the rank correlation of score and speed is ${rank.toFixed(2)} (1: perfect order, 0: chance).`;
}
