import type { Tensor } from "../api/types";

/** Arguments in a few words: `1×784, 784×128 float32`; types are listed one by one only if they differ. */
export function formatTensors(tensors: readonly Tensor[]): string {
  const types = new Set(tensors.map(({ dtype }) => dtype));
  const shape = (tensor: Tensor) => (tensor.shape.length === 0 ? "scalar" : tensor.shape.join("×"));
  const [only] = types;
  if (types.size === 1) return `${tensors.map(shape).join(", ")} ${only}`;
  return tensors.map((tensor) => `${shape(tensor)} ${tensor.dtype}`).join(", ");
}
