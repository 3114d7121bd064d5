import { useComputedColorScheme } from "@mantine/core";

/** Colours of a plot: Okabe & Ito's palette, darkened or lightened for contrast with the page. */
export interface Ink {
  text: string;
  line: string;
  surface: string;
  best: string;
  trial: string;
  failed: string;
  baseline: string;
  faint: string;
  /** For several items of one kind: tasks, device classes, workers. Shape or name also distinguishes them. */
  series: string[];
  /** From fast to slow. One hue; lightness shows the order. */
  ramp: string[];
}

const INK: Record<"light" | "dark", Ink> = {
  light: {
    text: "#57606a",
    line: "#dfe4ea",
    surface: "#ffffff",
    best: "#0b6ba6",
    trial: "#c98a00",
    failed: "#c04a00",
    baseline: "#57606a",
    faint: "#c3ccd6",
    series: ["#0b6ba6", "#c98a00", "#00866a", "#9a4c86", "#c04a00", "#3f4a5a"],
    ramp: ["#08416a", "#1f77b0", "#7cb6dc", "#c9d6e2"],
  },
  dark: {
    text: "#a3adb8",
    line: "#313741",
    surface: "#1c2027",
    best: "#6db2de",
    trial: "#e6a93c",
    failed: "#ff8f5c",
    baseline: "#a3adb8",
    faint: "#4a5361",
    series: ["#6db2de", "#e6a93c", "#4fc3a1", "#dca0cc", "#ff8f5c", "#c2cad3"],
    ramp: ["#cfe8fa", "#6db2de", "#3b7aa3", "#36475a"],
  },
};

export function useInk(): Ink {
  return INK[useComputedColorScheme("light")];
}

/** Common options of all axes, to be spread into an axis. */
export function axisInk(ink: Ink) {
  return {
    axisLine: { lineStyle: { color: ink.line } },
    axisLabel: { color: ink.text },
    nameTextStyle: { color: ink.text },
    splitLine: { lineStyle: { color: ink.line } },
  };
}

export function tooltipInk(ink: Ink) {
  return {
    backgroundColor: ink.surface,
    borderColor: ink.line,
    textStyle: { color: ink.text, fontSize: 13 },
    confine: true,
  };
}

export function legendInk(ink: Ink) {
  return {
    top: 0,
    left: 0,
    itemWidth: 14,
    itemHeight: 10,
    selectedMode: false,
    textStyle: { color: ink.text },
  };
}

/** Grid with room for the axes' labels. `top` is the room for a legend. */
export function gridInk(top = 40) {
  return { left: 8, right: 24, top, bottom: 4, outerBoundsMode: "same" };
}

export const LINE_ICON = "path://M0 4H14V6H0Z";
export const CROSS_ICON = "path://M0 1L1 0L5 4L9 0L10 1L6 5L10 9L9 10L5 6L1 10L0 9L4 5Z";

/** Escapes text for formatters, whose results ECharts inserts as HTML; names come from users. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
