import { describe, expect, it } from "vitest";
import type { SigningKey } from "../api/types";
import { importedWorth, keyComplaint } from "./key-words";

function key(id: string, times: Partial<SigningKey> = {}): SigningKey {
  return { id, public_key: "", created_at: "2030-01-01T00:00:00Z", retired_at: null, ...times };
}

describe("keyComplaint", () => {
  const keys = [
    key("1111"),
    key("2222", { retired_at: "2030-02-01T00:00:00Z", revoked_at: null }),
    key("3333", { retired_at: "2030-02-01T00:00:00Z", revoked_at: "2030-03-01T00:00:00Z" }),
    key("4444", { revoked_at: "2030-03-01T00:00:00Z" }),
  ];

  it.each(["1111", "2222"])("has none of a key that is not revoked, retired or not (%s)", (id) => {
    expect(keyComplaint(id, keys)).toBeNull();
  });

  it.each(["3333", "4444"])("says that a key is revoked, whether it was retired before or not (%s)", (id) => {
    expect(keyComplaint(id, keys)).toBe("which is revoked: others may have it");
  });

  it.each(["5555", "111", ""])("says that a key is none of the service's (%s)", (id) => {
    expect(keyComplaint(id, keys)).toBe("which is none of this service's keys");
    expect(keyComplaint(id, [])).toBe("which is none of this service's keys");
  });
});

describe("importedWorth", () => {
  it("trusts a certificate of this service alone", () => {
    expect(importedWorth("this service")).not.toMatch(/anybody/);
    expect(importedWorth("another deployment")).toMatch(/can be anybody/);
    expect(importedWorth("a revoked key")).toMatch(/anybody may have signed/);
  });
});
