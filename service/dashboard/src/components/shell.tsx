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
import { versionQuery } from "../api/queries";
import { useSession } from "../auth/session";
import { Brand } from "./brand";
import { MoonIcon, SignOutIcon, SunIcon } from "./icons";
import classes from "./shell.module.css";

/** What every view stands in: skip link, navigation, the view, and which versions answer. */
export function Shell() {
  const { pathname } = useLocation();
  const main = useRef<HTMLElement>(null);
  const previous = useRef(pathname);

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
        <NavLink to="/" className={classes.brand} aria-label="Loopwright, to the jobs">
          <Brand />
        </NavLink>
        <nav className={classes.nav} aria-label="Views">
          <NavLink to="/" end className={() => tabClass(pathname === "/" || pathname.startsWith("/jobs"))}>
            Jobs
          </NavLink>
          <NavLink to="/bests" className={() => tabClass(/^\/(bests|records)/.test(pathname))}>
            Best schedules
          </NavLink>
        </nav>
        <Group gap={4} wrap="nowrap" className={classes.tools}>
          <ColorSchemeToggle />
          <SignOut />
        </Group>
      </header>
      <main id="main" ref={main} tabIndex={-1} className={classes.main}>
        <Outlet />
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
      <Anchor href="/openapi.json" fz="inherit" c="var(--link)">
        OpenAPI schema
      </Anchor>
    </footer>
  );
}
