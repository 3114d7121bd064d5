import { Paper, SimpleGrid, Text, Title } from "@mantine/core";
import { Link } from "react-router";
import { useMay } from "../auth/queries";
import { Command } from "../components/command";

/** Instructions for the first job, shown by an empty list. */
export function FirstJob() {
  const url = window.location.origin;
  const cli = `export LOOPWRIGHT_URL=${url}
export LOOPWRIGHT_TOKEN=…
loopwright job submit model.py`;
  const sdk = `import loopwright

client = loopwright.Client("${url}", token="…")
job = client.submit("model.py", max_trials=64)
job.wait(progress=True)`;
  return (
    <Paper withBorder p="lg" bg="var(--surface)">
      <Title order={2}>Submit the first job</Title>
      <Text c="var(--muted)" size="sm" mt={4} mb="md" maw="44rem">
        A job is a model and a budget. Loopwright finds the functions worth tuning, measures schedules of each
        function on the fleet, and keeps the fastest schedule that computes the same results. <SubmitHere />
      </Text>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Command label="Command line" text={cli} />
        <Command label="Python" text={sdk} />
      </SimpleGrid>
    </Paper>
  );
}

function SubmitHere() {
  if (!useMay("submit"))
    return "To submit jobs, ask an admin of this service for a token with the scope submit.";
  return (
    <>
      <Link to="/submit" className="link">
        Paste a program here
      </Link>
      , or submit one from your machine with a token from{" "}
      <Link to="/access" className="link">
        Access
      </Link>
      .
    </>
  );
}
