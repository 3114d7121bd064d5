import { Button, Code, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { ApiError } from "../api/errors";
import { signIn } from "../api/session";
import { Brand } from "../components/brand";
import { ErrorNotice } from "../components/error-notice";
import { Notice } from "../components/notice";
import { useSession } from "./session";
import classes from "./sign-in.module.css";

/** Asks for a token. The address is kept, so that a shared link opens its view after signing in. */
export function SignIn() {
  const { refused, entered } = useSession();
  const [token, setToken] = useState("");
  const { mutate, error, isIdle, isPending } = useMutation({
    mutationFn: (candidate: string) => signIn("Bearer", candidate),
    onSuccess: entered,
  });
  const wrong = error instanceof ApiError && error.status === 401;

  function submit(event: FormEvent) {
    event.preventDefault();
    if (token.trim() !== "") mutate(token.trim());
  }

  return (
    <main className={classes.page}>
      <title>Sign in · Loopwright</title>
      <Paper withBorder p="xl" className={classes.card}>
        <form onSubmit={submit}>
          <Stack gap="md">
            <Brand />
            <Title order={1}>Sign in</Title>
            {refused && isIdle && (
              <Notice tone="warn" title="Not signed in">
                {refused}
              </Notice>
            )}
            <Text c="var(--muted)" size="sm">
              When the service starts, it prints an address that signs in one browser, once.{" "}
              <Code>loopwright dashboard</Code> prints a new address. You can also paste a token here.
            </Text>
            <PasswordInput
              label="Token"
              name="token"
              autoComplete="current-password"
              value={token}
              onChange={(event) => setToken(event.currentTarget.value)}
              error={
                wrong &&
                "The service does not accept this token. It may have expired or been revoked, or it belongs to another installation."
              }
            />
            {error && !wrong && <ErrorNotice error={error} />}
            <Button type="submit" loading={isPending} disabled={token.trim() === ""}>
              Sign in
            </Button>
          </Stack>
        </form>
      </Paper>
    </main>
  );
}
