import { expect, it } from "vitest";
import { formatDeviceState } from "./device-state";

const plain = (words: string) => words.replaceAll("\u00a0", " ");

it("says clocks, temperature, power and why it was slowed down", () => {
  const state = { sm_mhz: 1980, memory_mhz: 2619, celsius: 61, watts: 412 };
  expect(plain(formatDeviceState({ ...state, throttled: ["power_cap", "hardware_temperature"] }))).toBe(
    "1980 MHz, memory 2619 MHz, 61 °C, 412 W, throttled: power cap and hardware temperature",
  );
});

it("passes over what the driver does not tell", () => {
  expect(plain(formatDeviceState({ celsius: 0, throttled: [] }))).toBe("0 °C, not throttled");
  expect(plain(formatDeviceState({ sm_mhz: 1410, memory_mhz: null, throttled: null }))).toBe("1410 MHz");
});
