import "@mantine/core/styles.css";
import "./global.css";
import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { BrowserRouter } from "react-router";
import { createQueryClient } from "./api/query-client";
import { App } from "./app/app";
import { openSession, reloadForCredentials } from "./auth/opening";
import { SessionProvider } from "./auth/session";
import { theme } from "./theme";

const opening = openSession();
reloadForCredentials();

const nonce = document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.content;

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce ?? ""}>
      <QueryClientProvider client={createQueryClient()}>
        <SessionProvider opening={opening}>
          <BrowserRouter>
            <App />
          </BrowserRouter>
        </SessionProvider>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
