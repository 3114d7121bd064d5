import { Button, Grid, Group, Paper, Stack, Text } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";
import { useMay } from "../auth/queries";
import { ErrorNotice } from "../components/error-notice";
import { Notice } from "../components/notice";
import { PageHead } from "../components/page-head";
import { commandOf } from "./command-line";
import {
  bodyOf,
  EMPTY_FORM,
  guessFormat,
  keepsPreview,
  previewOf,
  problemsOf,
  type SubmitForm,
  targetsOf,
} from "./form";
import { MarkedLine } from "./marked-line";
import { ModuleInput } from "./module-input";
import { Options } from "./options";
import { PreviewPanel } from "./preview-panel";
import { newKey, usePreview, useSubmit } from "./queries";

/** Composes a job, previews it, and submits it. */
export default function SubmitPage() {
  const maySubmit = useMay("submit");
  return (
    <Stack gap="md">
      <PageHead title="Submit a job">
        A job is a module, a target and a budget. The preview shows what the job would tune, and stores
        nothing.
      </PageHead>
      {maySubmit ? (
        <SubmitForms />
      ) : (
        <Notice tone="warn" title="You cannot submit">
          You are signed in with read-only access. Ask an admin of the service for a token with the scope
          submit.
        </Notice>
      )}
    </Stack>
  );
}

function SubmitForms() {
  const navigate = useNavigate();
  const [form, setForm] = useState<SubmitForm>(EMPTY_FORM);
  const [tried, setTried] = useState(false);
  const [key, setKey] = useState(newKey);
  const preview = usePreview();
  const submit = useSubmit();
  const problems = problemsOf(form);
  const valid = Object.keys(problems).length === 0;

  function change(changes: Partial<SubmitForm>) {
    setForm((current) => ({ ...current, ...changes }));
    if (!keepsPreview(changes)) preview.reset();
    submit.reset();
    setKey(newKey());
  }

  /** Uses the suggested trials, and updates the preview. */
  function takeTrials(trials: number) {
    const next = { ...form, trials };
    change(next);
    preview.mutate(previewOf(next));
  }

  function look() {
    setTried(true);
    submit.reset();
    if (valid) preview.mutate(previewOf(form));
  }

  function send(event: FormEvent) {
    event.preventDefault();
    setTried(true);
    if (valid)
      submit.mutate({ body: bodyOf(form), key }, { onSuccess: (job) => navigate(`/jobs/${job.id}`) });
  }

  const error = submit.error ?? preview.error;

  return (
    <>
      <Paper withBorder p="md" bg="var(--surface)">
        <form onSubmit={send} noValidate>
          <Grid gap="lg">
            <Grid.Col span={{ base: 12, md: 8 }}>
              <ModuleInput
                code={form.code}
                error={tried ? problems.code : undefined}
                command={(fileName) => commandOf(form, fileName)}
                onChange={(code, fileName) =>
                  change({
                    code,
                    format: guessFormat(code),
                    name: form.name || (fileName ?? "").replace(/\.\w+$/, ""),
                  })
                }
              />
            </Grid.Col>
            <Grid.Col span={{ base: 12, md: 4 }}>
              <Options form={form} problems={problems} onChange={change} />
            </Grid.Col>
          </Grid>
          <Group justify="flex-end" mt="md">
            <Button variant="default" loading={preview.isPending} onClick={look}>
              Preview
            </Button>
            <Button type="submit" loading={submit.isPending} disabled={preview.data?.tasks.length === 0}>
              Submit job
            </Button>
          </Group>
        </form>
      </Paper>
      <div role="status">
        {(preview.isPending || submit.isPending) && (
          <Text size="sm" c="var(--muted)">
            Reading the module …
          </Text>
        )}
      </div>
      {error && (
        <>
          <ErrorNotice error={error} />
          <MarkedLine code={form.code} message={error.message} />
        </>
      )}
      {preview.data && (
        <PreviewPanel
          preview={preview.data}
          targets={targetsOf(form).length}
          trials={Number(form.trials)}
          onTrials={takeTrials}
        />
      )}
    </>
  );
}
