import { Popover } from "@mantine/core";
import type { ReactNode } from "react";
import { useState } from "react";

interface UnfoldingProps {
  /** What unfolds, to screen readers. */
  label: string;
  width: number;
  /** The button; it calls `toggle`. */
  button: (toggle: () => void) => ReactNode;
  /** Made anew at each unfolding; may call `close`. */
  children: (close: () => void) => ReactNode;
}

/** A button that unfolds something beneath it, which then has the keyboard's focus. */
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
