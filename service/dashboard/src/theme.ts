import { createTheme, type MantineColorsTuple, Portal } from "@mantine/core";
import { FLOATING } from "./components/floating";

// A blue that passes AA as text on white (shade 7) and on the dark page (shade 3), and that the common kinds of
// colour blindness tell from the amber and vermillion used beside it (Okabe & Ito's palette).
const loop: MantineColorsTuple = [
  "#e8f4fb",
  "#cfe6f4",
  "#a0cde9",
  "#6db2de",
  "#449cd4",
  "#2b8ecf",
  "#1682c4",
  "#0b6ba6",
  "#0b5c8a",
  "#084769",
];

// The dark page's greys lean to blue as the light page's do; Mantine's own are neutral.
const dark: MantineColorsTuple = [
  "#e6e9ed",
  "#c2cad3",
  "#a3adb8",
  "#7d8793",
  "#3d4550",
  "#313741",
  "#262c35",
  "#1c2027",
  "#14171c",
  "#0e1014",
];

export const theme = createTheme({
  primaryColor: "loop",
  primaryShade: { light: 7, dark: 7 },
  colors: { loop, dark },
  defaultRadius: "md",
  cursorType: "pointer",
  respectReducedMotion: true,
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif",
  fontFamilyMonospace:
    "ui-monospace, 'SF Mono', 'Cascadia Code', Menlo, Consolas, 'DejaVu Sans Mono', monospace",
  // Tooltips and menus belong to the page's main part, not beside it, for those who hear the page by its parts.
  components: { Portal: Portal.extend({ defaultProps: { target: FLOATING } }) },
  headings: { fontWeight: "650", sizes: { h1: { fontSize: "1.5rem" }, h2: { fontSize: "1.125rem" } } },
});
