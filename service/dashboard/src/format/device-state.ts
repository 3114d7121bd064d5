import type { DeviceState } from "../api/types";

/** Formats a GPU's state as reported by its driver: 1980 MHz, memory 2619 MHz, 61 °C, 412 W, throttled: power cap. */
export function formatDeviceState(state: DeviceState): string {
  const { sm_mhz, memory_mhz, celsius, watts, throttled } = state;
  const words: string[] = [];
  if (isKnown(sm_mhz)) words.push(`${sm_mhz}\u00a0MHz`);
  if (isKnown(memory_mhz)) words.push(`memory ${memory_mhz}\u00a0MHz`);
  if (isKnown(celsius)) words.push(`${celsius}\u00a0°C`);
  if (isKnown(watts)) words.push(`${watts}\u00a0W`);
  if (isKnown(throttled)) {
    const reasons = throttled.map((reason) => reason.replaceAll("_", " ")).join(" and ");
    words.push(reasons ? `throttled: ${reasons}` : "not throttled");
  }
  return words.join(", ");
}

function isKnown<T>(value: T | null | undefined): value is T {
  return value !== null && value !== undefined;
}
