import { Route, Routes } from "react-router";
import { useSession } from "../auth/session";
import { SignIn } from "../auth/sign-in";
import { lazyView } from "../components/lazy-view";
import { NotFound } from "../components/not-found";
import { OverviewPage } from "../overview/overview-page";
import { Shell } from "./shell";

// The first view is part of the main bundle. The code of each other view is loaded when it is first opened.
const JobsPage = lazyView("jobs", () => import("../jobs/jobs-page"));
const CompareJobsPage = lazyView("compare jobs", () => import("../jobs/compare-page"));
const JobPage = lazyView("job", () => import("../jobs/job-page"));
const BestsPage = lazyView("bests", () => import("../bests/bests-page"));
const WorkloadPage = lazyView("workload", () => import("../workloads/workload-page"));
const RecordPage = lazyView("record", () => import("../records/record-page"));
const ComparePage = lazyView("compare", () => import("../compare/compare-page"));
const FleetPage = lazyView("fleet", () => import("../fleet/fleet-page"));
const AccessPage = lazyView("access", () => import("../access/access-page"));
const SubmitPage = lazyView("submit", () => import("../submit/submit-page"));

export function App() {
  const { signedIn } = useSession();
  if (!signedIn) return <SignIn />;
  return (
    <Routes>
      <Route element={<Shell />}>
        <Route index element={<OverviewPage />} />
        <Route path="jobs" element={<JobsPage />} />
        <Route path="jobs/compare" element={<CompareJobsPage />} />
        <Route path="jobs/:id" element={<JobPage />} />
        <Route path="bests" element={<BestsPage />} />
        <Route path="workloads/:hash" element={<WorkloadPage />} />
        <Route path="records/:id" element={<RecordPage />} />
        <Route path="compare" element={<ComparePage />} />
        <Route path="fleet" element={<FleetPage />} />
        <Route path="access" element={<AccessPage />} />
        <Route path="submit" element={<SubmitPage />} />
        <Route path="*" element={<NotFound />} />
      </Route>
    </Routes>
  );
}
