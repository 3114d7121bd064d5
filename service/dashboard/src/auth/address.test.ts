import { expect, it } from "vitest";
import { splitCredential } from "./address";

it("takes a code or a guest's token out of the address and keeps the rest", () => {
  expect(splitCredential("http://127.0.0.1:8080/jobs/7?task=ab#code=s3cret")).toEqual({
    credential: { scheme: "Code", secret: "s3cret" },
    address: "/jobs/7?task=ab",
  });
  expect(splitCredential("http://127.0.0.1:8080/#guest=g")).toEqual({
    credential: { scheme: "Bearer", secret: "g" },
    address: "/",
  });
});

it("leaves other addresses alone", () => {
  expect(splitCredential("http://127.0.0.1:8080/bests?token=x#top")).toEqual({
    credential: null,
    address: "/bests?token=x#top",
  });
  expect(splitCredential("http://127.0.0.1:8080/#code=")).toEqual({ credential: null, address: "/" });
});
