import {
  ActionIcon,
  Anchor,
  Group,
  Tooltip,
  useComputedColorScheme,
  useMantineColorScheme,
} from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { NavLink, Outlet, useLocation } from "react-router";
import { useMay } from "../auth/queries";
import { useSession } from "../auth/session";
import { ShareButton } from "../auth/share-button";
import { Brand } from "../components/brand";
import { ErrorBoundary } from "../components/error-boundary";
import { FLOATING_ID } from "../components/floating";
import { MoonIcon, SignOutIcon, SunIcon } from "../components/icons";
import { versionQuery } from "../overview/queries";
import classes from "./shell.module.css";

const VIEWS = [
  { to: "/", label: "Overview", within: /^\/$/ },
  { to: "/jobs", label: "Jobs", within: /^\/jobs/ },
  { to: "/bests", label: "Best schedules", within: /^\/(bests|workloads|records|compare)/ },
  { to: "/fleet", label: "Fleet", within: /^\/fleet/ },
  { to: "/submit", label: "Submit", within: /^\/submit/, needsSubmit: true },
  { to: "/access", label: "Access", within: /^\/access/, needsSubmit: true },
];

/** The frame of every view: skip link, navigation, the view, and the versions of the service. */
export function Shell() {
  const { pathname } = useLocation();
  const main = useRef<HTMLElement>(null);
  const previous = useRef(pathname);
  const maySubmit = useMay("submit");

  // A keyboard or screen reader user who follows a link within the page must land in the new view.
  useEffect(() => {
    if (previous.current === pathname) return;
    previous.current = pathname;
    main.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [pathname]);

  return (
    <div className={classes.shell}>
      <a className={classes.skip} href="#main">
        Skip to content
      </a>
      <header className={classes.header}>
        <NavLink to="/" className={classes.brand} aria-label="Loopwright, to the overview">
          <Brand />
        </NavLink>
        <nav className={classes.nav} aria-label="Views">
          {VIEWS.filter((view) => !view.needsSubmit || maySubmit).map(({ to, label, within }) => (
            <NavLink key={to} to={to} end className={() => tabClass(within.test(pathname))}>
              {label}
            </NavLink>
          ))}
        </nav>
        <Group gap={4} wrap="nowrap" className={classes.tools}>
          <ShareButton />
          <ColorSchemeToggle />
          <SignOut />
        </Group>
      </header>
      <main id="main" ref={main} tabIndex={-1} className={classes.main}>
        <ErrorBoundary key={pathname}>
          <Outlet />
        </ErrorBoundary>
        <div id={FLOATING_ID} />
      </main>
      <Footer />
    </div>
  );
}

function tabClass(active: boolean): string {
  return active ? `${classes.tab} ${classes.current}` : (classes.tab as string);
}

function ColorSchemeToggle() {
  const { setColorScheme } = useMantineColorScheme();
  const dark = useComputedColorScheme("light") === "dark";
  const label = dark ? "Use light colours" : "Use dark colours";
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={label}
        onClick={() => setColorScheme(dark ? "light" : "dark")}
      >
        {dark ? <SunIcon /> : <MoonIcon />}
      </ActionIcon>
    </Tooltip>
  );
}

function SignOut() {
  const { signOut } = useSession();
  return (
    <Tooltip label="Sign out">
      <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Sign out" onClick={signOut}>
        <SignOutIcon />
      </ActionIcon>
    </Tooltip>
  );
}

function Footer() {
  const { data } = useQuery(versionQuery);
  return (
    <footer className={classes.footer}>
      <span>{data ? `Loopwright ${data.loopwright} · TVM ${data.tvm}` : "Loopwright"}</span>
      <Anchor href="/docs/" fz="inherit" c="var(--link)">
        Documentation
      </Anchor>
      <Anchor href="/openapi.json" fz="inherit" c="var(--link)">
        OpenAPI schema
      </Anchor>
    </footer>
  );
}
