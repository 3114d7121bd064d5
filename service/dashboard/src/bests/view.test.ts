import { expect, it } from "vitest";
import { csvPath, viewOf } from "./view";

const view = (address: string) => viewOf(new URLSearchParams(address));

it("an address without parameters shows the newest first", () => {
  expect(view("")).toMatchObject({ sort: "created", order: "desc", q: undefined, op: undefined });
});

it("sort, search and filters are read from the address", () => {
  expect(view("q=mm&op=matmul&device_class=ab12&sort=-speedup")).toMatchObject({
    q: "mm",
    op: "matmul",
    device_class: "ab12",
    sort: "speedup",
    order: "desc",
  });
  expect(view("sort=best")).toMatchObject({ sort: "best", order: "asc" });
});

it("a sort that the service does not know is not asked for", () => {
  expect(view("sort=nosuch")).toMatchObject({ sort: "created", order: "desc" });
});

it("the file holds what is shown", () => {
  expect(csvPath(view("q=a b&sort=-speedup"))).toBe(
    "/api/v1/best-schedules.csv?q=a+b&sort=speedup&order=desc",
  );
});
