import { expect, it } from "vitest";
import { splitToken } from "./token";

it("takes the token out of the address and keeps the rest", () => {
  expect(splitToken("http://127.0.0.1:8080/jobs/7?task=ab&token=s3cret#x")).toEqual({
    token: "s3cret",
    address: "/jobs/7?task=ab#x",
  });
});

it("leaves an address without a token alone", () => {
  expect(splitToken("http://127.0.0.1:8080/bests")).toEqual({ token: null, address: "/bests" });
  expect(splitToken("http://127.0.0.1:8080/?token=")).toEqual({ token: null, address: "/" });
});
