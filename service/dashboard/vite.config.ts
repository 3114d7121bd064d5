import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const service = "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react()],
  server: { proxy: { "/api": service, "/version": service } },
  // ECharts is the one large chunk, and it is loaded only by the views that plot. scripts/bundle-size.mjs reads the manifest.
  build: { chunkSizeWarningLimit: 700, manifest: true },
  // The tests are of functions alone, which keep nothing: all files share a worker.
  test: { include: ["src/**/*.test.ts"], isolate: false },
});
