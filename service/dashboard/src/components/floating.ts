/** The container of floating elements, which the shell places in its main part. */
export const FLOATING_ID = "floating";
export const FLOATING = `#${FLOATING_ID}`;
