// Texts that have been rendered wrongly somewhere. The Python and browser tests read the JSON that this imports.
import { readFileSync } from "node:fs";

export const corpus = JSON.parse(readFileSync(new URL("./corpus.json", import.meta.url), "utf-8"));
