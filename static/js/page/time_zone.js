// Tells the site once in which time zone the browser is, so that times are shown in it.
import { postFields, Refused } from "./fragments.js";

export async function suggestTimeZone(url) {
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!name) return;
  try {
    await postFields(url, { time_zone: name, suggested: "1" });
  } catch (error) {
    // Nothing is lost: times are shown in UTC, and the next page suggests it again.
    if (!(error instanceof Refused)) throw error;
  }
}
