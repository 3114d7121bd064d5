import { Button, Code, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { isTokenAccepted } from "../api/client";
import { Brand } from "../components/brand";
import { ErrorNotice } from "../components/error-notice";
import { useSession } from "./session";
import classes from "./sign-in.module.css";

/** Asks for the token. The address is kept, so that a shared link opens where it points once signed in. */
export function SignIn() {
  const { state, signIn } = useSession();
  const [token, setToken] = useState("");
  const check = useMutation({
    mutationFn: isTokenAccepted,
    onSuccess: (accepted, candidate) => accepted && signIn(candidate),
  });
  const refused = check.isIdle ? state === "rejected" : check.data === false;

  function submit(event: FormEvent) {
    event.preventDefault();
    if (token.trim() !== "") check.mutate(token.trim());
  }

  return (
    <main className={classes.page}>
      <title>Sign in · Loopwright</title>
      <Paper withBorder p="xl" className={classes.card}>
        <form onSubmit={submit}>
          <Stack gap="md">
            <Brand />
            <Title order={1}>Sign in</Title>
            <Text c="var(--muted)" size="sm">
              When it starts, the service prints an address that ends in <Code>?token=…</Code>. Open that
              address, or paste its token here.
            </Text>
            <PasswordInput
              label="Token"
              name="token"
              autoComplete="current-password"
              value={token}
              onChange={(event) => setToken(event.currentTarget.value)}
              error={
                refused &&
                "The service does not accept this token. It may be from another or an earlier installation."
              }
            />
            {check.error && <ErrorNotice error={check.error} />}
            <Button type="submit" loading={check.isPending} disabled={token.trim() === ""}>
              Sign in
            </Button>
          </Stack>
        </form>
      </Paper>
    </main>
  );
}
