import { Popover } from "@mantine/core";
import type { ReactNode } from "react";
import { useState } from "react";

interface UnfoldingProps {
  /** Label of the popover for screen readers. */
  label: string;
  width: number;
  /** The button; it calls `toggle`. */
  button: (toggle: () => void) => ReactNode;
  /** Rendered at each opening; may call `close`. */
  children: (close: () => void) => ReactNode;
}

/** A button that opens a popover below it, which then has the keyboard focus. */
export function Unfolding({ label, width, button, children }: UnfoldingProps) {
  const [open, setOpen] = useState(false);
  return (
    <Popover
      opened={open}
      onChange={setOpen}
      position="bottom-end"
      shadow="md"
      trapFocus
      returnFocus
      width={width}
      hideDetached={false} // what is being filled in stays when news above push the button out of view
    >
      <Popover.Target>{button(() => setOpen(!open))}</Popover.Target>
      <Popover.Dropdown aria-label={label}>{open && children(() => setOpen(false))}</Popover.Dropdown>
    </Popover>
  );
}
