import { Route, Routes } from "react-router";
import { useSession } from "./auth/session";
import { SignIn } from "./auth/sign-in";
import { BestsPage } from "./bests/bests-page";
import { NotFound } from "./components/not-found";
import { Shell } from "./components/shell";
import { JobPage } from "./jobs/job-page";
import { JobsPage } from "./jobs/jobs-page";
import { RecordPage } from "./records/record-page";

export function App() {
  const { state } = useSession();
  if (state !== "signed-in") return <SignIn />;
  return (
    <Routes>
      <Route element={<Shell />}>
        <Route index element={<JobsPage />} />
        <Route path="jobs" element={<JobsPage />} />
        <Route path="jobs/:id" element={<JobPage />} />
        <Route path="bests" element={<BestsPage />} />
        <Route path="records/:id" element={<RecordPage />} />
        <Route path="*" element={<NotFound />} />
      </Route>
    </Routes>
  );
}
