/** Where what floats above the page is put: an element that the shell holds within its main part. */
export const FLOATING_ID = "floating";
export const FLOATING = `#${FLOATING_ID}`;
