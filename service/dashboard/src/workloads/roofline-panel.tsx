import { Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Roofline } from "../api/types";
import { lazyChart } from "../charts/lazy-chart";
import { Empty } from "../components/empty";
import { Fact, Facts } from "../components/facts";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { formatScaled, formatShare } from "../format/units";
import { rooflineQuery } from "./queries";
import { boundInWords, ceilingOf, roofOf } from "./roofline";

const RooflineChart = lazyChart("roofline", () => import("./roofline-chart"));
const HEIGHT = 300;

/** How close the workload comes to the device's limits. */
export function RooflinePanel({ hash, deviceClass }: { hash: string; deviceClass: string }) {
  const query = useQuery(rooflineQuery(hash, deviceClass));
  return (
    <Panel title="Roofline">
      <Ready query={query}>{(roofline) => <Content roofline={roofline} />}</Ready>
    </Panel>
  );
}

function Content({ roofline }: { roofline: Roofline }) {
  const roof = roofOf(roofline);
  const best = roofline.points.find(({ name }) => name === "best");
  const bound = boundInWords(roofline);
  const ceiling = ceilingOf(roofline);
  return (
    <Stack gap="md" px="md" pb="md">
      <Facts>
        <Fact label="Operations per call">{formatScaled(roofline.flop, "FLOP")}</Fact>
        <Fact label="Minimum bytes moved" title="Each argument is read or written once">
          {formatScaled(roofline.bytes, "B")}
        </Fact>
        {roofline.intensity !== null && (
          <Fact label="Intensity">{`${Number(roofline.intensity.toPrecision(3))} FLOP/B${bound ? `, ${bound}` : ""}`}</Fact>
        )}
        {best && <Fact label="Throughput of the best">{formatScaled(best.flops, "FLOP/s")}</Fact>}
        {best && ceiling !== null && (
          <Fact label="Share of the limit">{formatShare(best.flops / ceiling)}</Fact>
        )}
      </Facts>
      {roof === null ? (
        <Empty>{whyNot(roofline)}</Empty>
      ) : (
        <RooflineChart
          roofline={roofline}
          roof={roof}
          height={HEIGHT}
          summary={`Roofline: ${roofline.points.map(({ name, flops }) => `${name} ${formatScaled(flops, "FLOP/s")}`).join(", ")}; the measured peak is ${formatScaled(roofline.peaks?.flops, "FLOP/s")} and ${formatScaled(roofline.peaks?.bytes_per_s, "B/s")}.`}
        />
      )}
    </Stack>
  );
}

function whyNot({ flop, peaks }: Roofline): string {
  if (flop === null) return "TVM cannot count the operations of this workload, so there is no roofline.";
  if (peaks === null)
    return "The peaks of this device have not been measured yet. A worker measures them when it joins.";
  return "The peaks were measured for another data type than that of this workload.";
}
