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
import { reachedOf, roofInWords, roofOf } from "./roofline";

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
  const reached = reachedOf(roofline);
  return (
    <Stack gap="md" px="md" pb="md">
      <Facts>
        <Fact label="Operations per call">{formatScaled(roofline.flop, "FLOP")}</Fact>
        <Fact label="Minimum bytes moved" title="Each argument is read or written once">
          {formatScaled(roofline.bytes, "B")}
        </Fact>
        {roofline.intensity !== null && (
          <Fact label="Intensity">{`${Number(roofline.intensity.toPrecision(3))} FLOP/B`}</Fact>
        )}
        {roofline.limit && (
          <Fact label="Limited by" title="Arithmetic, or the smallest memory that has room for all arguments">
            {roofline.limit}
          </Fact>
        )}
        {best && <Fact label="Throughput of the best">{formatScaled(best.flops, "FLOP/s")}</Fact>}
        {reached !== null && <Fact label="Share of the limit">{formatShare(reached)}</Fact>}
      </Facts>
      {roof === null ? (
        <Empty>{whyNot(roofline)}</Empty>
      ) : (
        <RooflineChart
          roofline={roofline}
          roof={roof}
          height={HEIGHT}
          summary={`Roofline: ${roofline.points.map(({ name, flops }) => `${name} ${formatScaled(flops, "FLOP/s")}`).join(", ")}; the measured peaks are ${roofInWords(roof, rateInWords)}.`}
        />
      )}
    </Stack>
  );
}

function rateInWords(name: string, rate: number): string {
  return `${name} ${formatScaled(rate, name === "arithmetic" ? "FLOP/s" : "B/s")}`;
}

function whyNot({ flop, dtype, peaks }: Roofline): string {
  if (flop === null) return "TVM cannot count the operations of this workload, so there is no roofline.";
  if (peaks === null)
    return "The peaks of this device have not been measured yet. A worker measures them when it joins.";
  if (peaks.dtype !== dtype)
    return "The peaks were measured for another data type than that of this workload.";
  return "A call takes less time than the counted operations and bytes would: they are not what it does.";
}
